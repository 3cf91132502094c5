/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what w8a8 wrote with the reference, some tokens at a time: every bit but a NaN's. */
#include "w8a8.h"

#include "../../harness/slices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 64, TOKENS = 8 };

/* Products of the reference beyond which not every block of 64 rows of W is compared. */
static const double most_work = 0x1p37;

struct comparing {
    const struct w8a8_problem *p;
    ptxgen_w8a8_operands operands;
    uint32_t every; /* one block in `every`, other ones from token to token */
};

static ptxgen_w8a8_operands operands_of(const struct w8a8_problem *p)
{
    return (ptxgen_w8a8_operands){
        .x = p->x.host,
        .w = (const int8_t *)p->w.host,
        .w_scale = p->w_scale.host,
        .bias = p->bias.host,
        .x_scale = p->x_scale.host,
        .x_zero = (const int32_t *)(const void *)p->x_zero.host,
        .x_stride = p->x_stride,
        .m = p->m,
    };
}

/*
 * The file's output, of the same codes, in double precision or in the kernel's four roundings: the
 * sum of products as a float, two scales and the bias. What it is rounded to at last comes on top.
 */
static void check_expected(const struct comparing *c, uint32_t m, uint32_t n, int32_t sum,
                           const ptxgen_w8a8_token *token, double output, double y,
                           struct check *check)
{
    const ptxgen_w8a8_spec *s = &c->p->plan.spec;
    ptxgen_element work = ptxgen_w8a8_work_type(s);
    double product = sum * token->scale * ptxgen_element_load(work, c->operands.w_scale, n);
    double bias = s->bias ? ptxgen_element_load(work, c->operands.bias, n) : 0;
    double bound = 0x1p-21 * (fabs(product) + fabs(bias)) + fabs(y - (product + bias));
    const struct expected_output own = {.bound = isfinite(y) ? bound : 0};
    expected_check(&c->p->expected, m, n, (ptxgen_element)s->y_type, output, &own, check);
}

static ptxgen_status compare_block(const struct comparing *c, uint32_t m, uint32_t first,
                                   const int8_t *codes, const ptxgen_w8a8_token *token,
                                   struct comparison *part, ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = &c->p->plan.spec;
    ptxgen_element type = (ptxgen_element)s->y_type;
    uint32_t rows = s->n - first < BLOCK ? s->n - first : BLOCK;
    double y[BLOCK]; /* room for any type */
    int32_t sums[BLOCK];
    ptxgen_status status =
        ptxgen_w8a8_reference(s, &c->operands, codes, token, first, rows, y, sums, err);
    for (uint32_t i = 0; status == PTXGEN_OK && i < rows; i++) {
        size_t at = (size_t)m * c->p->y_stride + first + i;
        double output = ptxgen_element_load(type, c->p->y.host, at);
        const struct expected_output reference = {.value = ptxgen_element_load(type, y, i)};
        check_output(&part->reference, "y", m, first + i, type, output, &reference);
        if (c->p->expected.values)
            check_expected(c, m, first + i, sums[i], token, output, reference.value,
                           &part->expected);
    }
    return status;
}

/* Tokens side by side, so that W is read once for all of them. */
static ptxgen_status compare_tokens(const struct comparing *c, uint32_t m, uint32_t count,
                                    int8_t *codes, struct comparison *part, ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = &c->p->plan.spec;
    ptxgen_w8a8_token tokens[TOKENS];
    ptxgen_status status = PTXGEN_OK;
    for (uint32_t i = 0; status == PTXGEN_OK && i < count; i++)
        status = ptxgen_w8a8_reference_codes(s, &c->operands, m + i, codes + (size_t)i * s->k,
                                             &tokens[i], err);
    for (uint64_t first = 0; first < s->n; first += BLOCK)
        for (uint32_t i = 0; status == PTXGEN_OK && i < count; i++)
            if ((first / BLOCK + m + i) % c->every == 0)
                status = compare_block(c, m + i, (uint32_t)first, codes + (size_t)i * s->k,
                                       &tokens[i], part, err);
    return status;
}

static ptxgen_status compare(void *state, uint32_t index, struct comparison *part,
                             ptxgen_error *err)
{
    const struct comparing *c = state;
    uint32_t m = index * TOKENS, left = c->p->m - m;
    int8_t *codes = malloc(TOKENS * (size_t)c->p->plan.spec.k);
    if (!codes)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for tokens' codes");
    ptxgen_status status = compare_tokens(c, m, left < TOKENS ? left : TOKENS, codes, part, err);
    free(codes);
    return status;
}

ptxgen_status w8a8_compare(const struct w8a8_problem *p, struct check *check, ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = &p->plan.spec;
    double all = (double)p->m * s->n * s->k;
    struct comparing c = {.p = p, .operands = operands_of(p), .every = 1};
    struct comparison total = {.reference = {.outputs = 0}};
    if (all > most_work)
        c.every = (uint32_t)ceil(all / most_work);
    buffer_check_gaps(&p->y, p->m, s->n, p->y_stride,
                      ptxgen_element_size((ptxgen_element)s->y_type), check);
    ptxgen_status status =
        compare_slices("comparing with the reference, tokens by 8",
                       p->m / TOKENS + (p->m % TOKENS > 0), compare, &c, &total, err);
    if (status != PTXGEN_OK)
        return status;
    check_add(check, &total.reference);
    if (c.every > 1)
        snprintf(check->note, sizeof check->note, "one in %u outputs was compared", c.every);
    if (p->expected.values)
        check_note_expected(check, &total.expected);
    return PTXGEN_OK;
}
