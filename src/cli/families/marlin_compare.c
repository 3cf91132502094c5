/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what marlin wrote with the reference, a block of 64 rows and 64 columns at a time. */
#include "marlin.h"

#include "../../harness/blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns of a row-major array of `element` bytes; the caller frees it. */
static void *copy_columns(const void *array, size_t rows, size_t n, const struct block *b,
                          size_t element)
{
    unsigned char *copy = malloc(rows * b->columns * element);
    for (size_t row = 0; copy && row < rows; row++)
        memcpy(copy + row * b->columns * element,
               (const unsigned char *)array + (row * n + b->column) * element,
               b->columns * element);
    return copy;
}

static void free_matrix(ptxgen_w4_matrix *m)
{
    free(m->codes);
    free(m->scales);
    free(m->zeros);
}

static bool slice_matrix(const ptxgen_w4_matrix *m, const struct block *b, ptxgen_w4_matrix *to)
{
    size_t groups = m->k / (size_t)m->group_size;
    *to = *m;
    to->n = b->columns;
    to->codes = copy_columns(m->codes, m->k, m->n, b, 1);
    to->scales = copy_columns(m->scales, groups, m->n, b, ptxgen_element_size(m->scale_type));
    to->zeros = copy_columns(m->zeros, groups, m->n, b, 1);
    return to->codes && to->scales && to->zeros;
}

static ptxgen_status reference(const struct marlin_problem *p, const struct block *b,
                               const ptxgen_w4_matrix matrices[2], struct block_reference *r,
                               ptxgen_error *err)
{
    ptxgen_marlin_plan plan = p->plan; /* has only the variant that was launched */
    plan.spec.n = b->columns;
    const ptxgen_marlin_operands operands = {
        .m = b->rows,
        .x = buffer_at(&p->x, 2 * b->row * p->x_stride),
        .weights = &matrices[0],
        .up = &matrices[1],
        .bias = buffer_at(&p->bias, 2 * (size_t)b->column),
        .up_bias = buffer_at(&p->up_bias, 2 * (size_t)b->column),
        .residual = buffer_at(&p->residual, 2 * (b->row * p->residual_stride + b->column)),
        .x_stride = p->x_stride,
        .residual_stride = p->residual_stride,
    };
    return ptxgen_marlin_reference_spread(&plan, &operands, r->value, r->bound, r->spread, err);
}

static void check_expected(const struct marlin_problem *p, const struct block *b,
                           const struct block_reference *r, struct check *check)
{
    ptxgen_element type = (ptxgen_element)p->plan.spec.type;
    for (size_t i = 0; i < b->rows * b->columns; i++) {
        size_t row = b->row + i / b->columns, column = b->column + i % b->columns;
        double output = ptxgen_element_load(type, p->y.host, row * p->y_stride + column);
        const struct expected_output own = {.bound = r->bound[i], .spread = &r->spread[i]};
        expected_check(&p->expected, row, column, type, output, &own, check);
    }
}

static ptxgen_status compare(const void *problem, const struct block *b, struct comparison *part,
                             ptxgen_error *err)
{
    const struct marlin_problem *p = problem;
    struct block_reference r;
    ptxgen_w4_matrix matrices[2] = {{.codes = NULL}, {.codes = NULL}};
    bool have = true;
    for (unsigned i = 0; have && i < marlin_matrices(&p->plan.spec); i++)
        have = slice_matrix(&p->matrices[i], b, &matrices[i]);
    ptxgen_status status =
        have ? reference(p, b, matrices, &r, err)
             : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for columns of the weights");
    if (status == PTXGEN_OK)
        check_side_block(&part->reference, "y", b, (ptxgen_element)p->plan.spec.type, p->y.host,
                    p->y_stride, &r);
    if (status == PTXGEN_OK && p->expected.values)
        check_expected(p, b, &r, &part->expected);
    for (int i = 0; i < 2; i++)
        free_matrix(&matrices[i]);
    return status;
}

ptxgen_status marlin_compare(const struct marlin_problem *p, struct check *check, ptxgen_error *err)
{
    const ptxgen_marlin_spec *s = &p->plan.spec;
    const struct blocks blocks = {.problem = p,
                                  .compare = compare,
                                  .rows = p->m,
                                  .columns = s->n,
                                  .work = (double)p->m * s->n * s->k * marlin_matrices(s),
                                  .most_work = 0x1p37};
    struct check expected;
    buffer_check_gaps(&p->y, p->m, s->n, p->y_stride, 2, check);
    ptxgen_status status = compare_blocks(&blocks, check, &expected, err);
    if (status == PTXGEN_OK && p->expected.values)
        check_note_expected(check, &expected);
    return status;
}
