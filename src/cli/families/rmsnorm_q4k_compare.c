/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what rmsnorm_q4k wrote with the reference, a slice of rows at a time. */
#include "rmsnorm_q4k.h"

#include "../../harness/slices.h"

#include <math.h>
#include <stdlib.h>

/* ---- slices of rows ---- */

struct comparing {
    const struct rmsnorm_q4k_problem *p;
    ptxgen_rmsnorm_q4k_operands operands;
};
enum { SLICE_ROWS = 64 };

struct slice {
    uint32_t matrix, first, rows;
};

static uint32_t slices_of(uint32_t n)
{
    return n / SLICE_ROWS + (n % SLICE_ROWS != 0);
}

static struct slice find_slice(const ptxgen_rmsnorm_q4k_spec *s, uint32_t index)
{
    struct slice slice = {0};
    while (index >= slices_of(s->n[slice.matrix]))
        index -= slices_of(s->n[slice.matrix++]);
    slice.first = index * SLICE_ROWS;
    uint32_t left = s->n[slice.matrix] - slice.first;
    slice.rows = left < SLICE_ROWS ? left : SLICE_ROWS;
    return slice;
}

static double output_at(const struct rmsnorm_q4k_problem *p, uint32_t matrix, uint32_t m,
                        uint32_t row)
{
    return ptxgen_element_load((ptxgen_element)p->plan.spec.y_type, p->y[matrix].host,
                               (size_t)m * p->y_stride[matrix] + row);
}

/* What the reference says of a slice's outputs, token by token. */
struct slice_reference {
    double y[PTXGEN_RMSNORM_Q4K_MAX_M * SLICE_ROWS];
    double bound[PTXGEN_RMSNORM_Q4K_MAX_M * SLICE_ROWS];
    ptxgen_spread spread[PTXGEN_RMSNORM_Q4K_MAX_M * SLICE_ROWS];
};

static void compare_slice_outputs(const struct rmsnorm_q4k_problem *p, const struct slice *s,
                                  const struct slice_reference *r, struct check *check)
{
    for (uint32_t m = 0; m < p->m; m++)
        for (uint32_t i = 0; i < s->rows; i++) {
            size_t at = (size_t)m * s->rows + i;
            const struct expected_output expected = {r->y[at], r->bound[at], &r->spread[at]};
            check_output(check, p->y[s->matrix].name, m, s->first + i,
                         (ptxgen_element)p->plan.spec.y_type,
                         output_at(p, s->matrix, m, s->first + i), &expected);
        }
}

/*
 * The file's expected output was computed from x as the file has it, and rounded to f32. Where x
 * was rounded on its way to the kernel, the reference's own two answers say how much that matters.
 */
static ptxgen_status compare_expected(const struct rmsnorm_q4k_problem *p,
                                      const ptxgen_rmsnorm_q4k_operands *operands,
                                      const struct slice *s, const struct slice_reference *r,
                                      struct check *check, ptxgen_error *err)
{
    ptxgen_rmsnorm_q4k_plan exact = p->plan;
    ptxgen_rmsnorm_q4k_operands from_exact = *operands;
    double unrounded[PTXGEN_RMSNORM_Q4K_MAX_M * SLICE_ROWS];
    exact.spec.x_type = PTXGEN_F32;
    size_t count = (size_t)p->m * p->plan.spec.k;
    float *x = malloc(count * sizeof *x);
    if (!x)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for x in f32");
    for (size_t i = 0; i < count; i++)
        x[i] = (float)p->exact_x[i];
    from_exact.x = x;
    from_exact.x_stride = 0;
    ptxgen_status status = ptxgen_rmsnorm_q4k_reference(&exact, &from_exact, s->matrix, s->first,
                                                        s->rows, unrounded, NULL, NULL, err);
    free(x);
    for (uint32_t m = 0; status == PTXGEN_OK && m < p->m; m++)
        for (uint32_t i = 0; i < s->rows; i++) {
            size_t at = (size_t)m * s->rows + i;
            double apart = fabs(r->y[at] - unrounded[at]);
            const ptxgen_spread spread = {r->spread[at].below + apart, r->spread[at].above + apart,
                                          r->spread[at].deviation};
            const struct expected_output own = {.bound = r->bound[at] + apart, .spread = &spread};
            expected_check(&p->expected, m, s->first + i, (ptxgen_element)p->plan.spec.y_type,
                           output_at(p, s->matrix, m, s->first + i), &own, check);
        }
    return status;
}

static ptxgen_status compare(void *state, uint32_t index, struct comparison *part,
                             ptxgen_error *err)
{
    const struct comparing *c = state;
    struct slice s = find_slice(&c->p->plan.spec, index);
    struct slice_reference r;
    ptxgen_status status = ptxgen_rmsnorm_q4k_reference_spread(
        &c->p->plan, &c->operands, s.matrix, s.first, s.rows, r.y, r.bound, r.spread, NULL, err);
    if (status == PTXGEN_OK)
        compare_slice_outputs(c->p, &s, &r, &part->reference);
    if (status == PTXGEN_OK && c->p->expected.values)
        status = compare_expected(c->p, &c->operands, &s, &r, &part->expected, err);
    return status;
}

static ptxgen_rmsnorm_q4k_operands operands_of(const struct rmsnorm_q4k_problem *p)
{
    ptxgen_rmsnorm_q4k_operands o = {.x = p->x.host,
                                     .residual = p->residual.host,
                                     .gamma = (const float *)(const void *)p->gamma.host,
                                     .x_stride = p->x_stride,
                                     .residual_stride = p->residual_stride,
                                     .m = p->m};
    for (int i = 0; i < MATRICES; i++) {
        o.w[i] = p->w[i].host;
        o.bias[i] = (const float *)(const void *)p->bias[i].host;
    }
    return o;
}

static ptxgen_status compare_outputs(const struct rmsnorm_q4k_problem *p, struct check *check,
                                     ptxgen_error *err)
{
    struct comparing state = {.p = p, .operands = operands_of(p)};
    struct comparison total = {.reference = {.outputs = 0}};
    uint32_t slices = 0;
    for (unsigned i = 0; i < rmsnorm_q4k_outputs(&p->plan.spec); i++)
        slices += slices_of(p->plan.spec.n[i]);
    ptxgen_status status = compare_slices("comparing with the reference, slices of 64 rows", slices,
                                          compare, &state, &total, err);
    if (status != PTXGEN_OK)
        return status;
    check_add(check, &total.reference);
    if (p->expected.values)
        check_note_expected(check, &total.expected);
    return PTXGEN_OK;
}

/* residual_out holds the reference's bits, whatever NaN stands for. */
static ptxgen_status compare_sums(const struct rmsnorm_q4k_problem *p, struct check *check,
                                  ptxgen_error *err)
{
    const ptxgen_rmsnorm_q4k_spec *s = &p->plan.spec;
    ptxgen_element type = (ptxgen_element)s->x_type;
    ptxgen_rmsnorm_q4k_operands operands = operands_of(p);
    void *sum = malloc((size_t)p->m * s->k * ptxgen_element_size(type));
    double unused;
    if (!sum)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the reference's sums");
    ptxgen_status status =
        ptxgen_rmsnorm_q4k_reference(&p->plan, &operands, 0, 0, 0, &unused, NULL, sum, err);
    for (uint32_t m = 0; status == PTXGEN_OK && m < p->m; m++)
        for (uint32_t i = 0; i < s->k; i++) {
            double ours = ptxgen_element_load(type, p->residual_out.host,
                                              (size_t)m * p->residual_out_stride + i);
            double reference = ptxgen_element_load(type, sum, (size_t)m * s->k + i);
            check_output(check, "residual_out", m, i, type, ours,
                         &(struct expected_output){.value = reference});
        }
    free(sum);
    return status;
}

static void check_all_gaps(const struct rmsnorm_q4k_problem *p, struct check *check)
{
    const ptxgen_rmsnorm_q4k_spec *s = &p->plan.spec;
    if (s->residual_out)
        buffer_check_gaps(&p->residual_out, p->m, s->k, p->residual_out_stride,
                          ptxgen_element_size((ptxgen_element)s->x_type), check);
    for (unsigned i = 0; i < rmsnorm_q4k_outputs(s); i++)
        buffer_check_gaps(&p->y[i], p->m, s->n[i], p->y_stride[i],
                          ptxgen_element_size((ptxgen_element)s->y_type), check);
}

ptxgen_status rmsnorm_q4k_compare(const struct rmsnorm_q4k_problem *p, struct check *check,
                                  ptxgen_error *err)
{
    check_all_gaps(p, check);
    ptxgen_status status = compare_outputs(p, check, err);
    if (status == PTXGEN_OK && p->plan.spec.residual_out)
        status = compare_sums(p, check, err);
    return status;
}
