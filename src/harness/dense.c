/* SPDX-License-Identifier: Apache-2.0 */
#include "dense.h"

#include <stdio.h>
#include <string.h>

#define ARG(member) offsetof(ptxgen_dense_args, member)

TILE_VERB(dense)
KERNEL_VERBS(dense, verb_use_tile);

static void name(const void *spec, uint64_t m, char *text, size_t size)
{
    const ptxgen_dense_spec *s = spec;
    snprintf(text, size, "K=%u N=%u M=%llu %s%s%s%s%s", s->k, s->n, (unsigned long long)m,
             element_type_names[s->type], s->activation ? " " : "",
             s->activation ? activation_kind_names[s->activation] : "", s->bias ? " bias" : "",
             s->residual ? " residual" : "");
}

static struct product product(const void *spec)
{
    const ptxgen_dense_spec *s = spec;
    return (struct product){.k = s->k,
                            .n = s->n,
                            .type = s->type == PTXGEN_BF16 ? PTXGEN_BF16 : PTXGEN_F16,
                            .tensor_f16 = s->type != PTXGEN_F32};
}

KEEP_VARIANT(dense, ptxgen_tile, false)

/* ---- operands ---- */

static unsigned operands(const void *plan, uint64_t m, struct operand *to)
{
    const ptxgen_dense_spec *s = plan;
    size_t e = ptxgen_element_size((ptxgen_element)s->type);
    const struct operand all[DENSE_OPERANDS] = {
        [DENSE_AT_X] = OPERAND_ROWS(x, X, true, m, s->k, s->type),
        [DENSE_AT_W] = OPERAND_ROWS(w, WEIGHTS, true, s->n, s->k, s->type),
        [DENSE_AT_BIAS] = OPERAND_ROW(bias, INPUT, s->bias, s->n, s->type),
        [DENSE_AT_RESIDUAL] = OPERAND_ROWS(residual, RESIDUAL, s->residual, m, s->n, s->type),
        [DENSE_AT_Y] = OPERAND_ROWS(y, OUTPUT, true, m, s->n, s->type),
    };
    memcpy(to, all, sizeof all);
    for (int i = 0; i < DENSE_OPERANDS; i++) {
        to[i].shift = e;
        to[i].deviation = to[i].role != OPERAND_OUTPUT;
    }
    return DENSE_OPERANDS;
}

static ptxgen_status reference(const struct problem *p, const struct block *b,
                               struct block_reference *r, ptxgen_error *err)
{
    ptxgen_dense_plan plan = *(const ptxgen_dense_plan *)p->plan;
    plan.spec.n = b->columns;
    const ptxgen_dense_operands operands = {
        .m = b->rows,
        .x = problem_at(p, DENSE_AT_X, b->row, 0),
        .w = problem_at(p, DENSE_AT_W, b->column, 0),
        .bias = problem_at(p, DENSE_AT_BIAS, 0, b->column),
        .residual = problem_at(p, DENSE_AT_RESIDUAL, b->row, b->column),
        .x_stride = p->strides[DENSE_AT_X],
        .w_stride = p->strides[DENSE_AT_W],
        .residual_stride = p->strides[DENSE_AT_RESIDUAL],
    };
    return ptxgen_dense_reference_spread(&plan, &operands, r->value, r->bound, r->spread, err);
}

/* ---- a random problem ---- */

/* Of a size that the reference does in a second. */
static uint32_t draw(struct random *r, bool small, const ptxgen_target *target, void *spec)
{
    (void)target;
    ptxgen_dense_spec *s = spec;
    uint32_t most = small ? 400 : random_below(r, 3) ? 2048 : 8192;
    s->type = (uint8_t)random_below(r, 3);
    s->k = 1 + random_below(r, 2 * most);
    if (random_below(r, 3))
        s->k = (s->k + 7) / 8 * 8;
    random_features(r, small ? 300 : most, 64, 1, &s->k, &s->n);
    s->activation = (uint8_t)random_below(r, PTXGEN_ACTIVATION_RELU + 1);
    s->bias = (uint8_t)random_below(r, 2);
    s->residual = (uint8_t)random_below(r, 2);
    uint64_t products = (small ? 1u << 20 : 1u << 31) / ((uint64_t)s->k * s->n);
    uint32_t m = random_launch_rows(r, small, products);
    s->max_m = random_max_m(r, m);
    return m;
}

const struct harness dense_harness = {
    HARNESS_MEMBERS(dense),
    HARNESS_WORKSPACE,
    .block_rows = 64,
    .block_columns = 64,
};
