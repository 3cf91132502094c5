/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what marlin wrote with the reference, a slice of 64 rows and 64 columns at a time. */
#include "marlin.h"

#include "../slices.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 64 };

/* Multiply-adds of the reference beyond which not every slice is compared. */
static const double most_work = 0x1p37;

struct comparing {
    const struct marlin_problem *p;
    uint32_t across, every; /* slices along N; one in `every` is compared */
};

/* Rows and columns of C. */
struct slice {
    uint64_t row, rows;
    uint32_t column, columns;
};

static struct slice find_slice(const struct comparing *c, uint64_t index)
{
    struct slice s = {.row = index / c->across * SLICE,
                      .column = (uint32_t)(index % c->across) * SLICE};
    uint64_t rows = c->p->m - s.row;
    uint32_t columns = c->p->plan.spec.n - s.column;
    s.rows = rows < SLICE ? rows : SLICE;
    s.columns = columns < SLICE ? columns : SLICE;
    return s;
}

/* Columns of a row-major array of `element` bytes; the caller frees it. */
static void *copy_columns(const void *array, size_t rows, size_t n, const struct slice *s,
                          size_t element)
{
    unsigned char *copy = malloc(rows * s->columns * element);
    for (size_t row = 0; copy && row < rows; row++)
        memcpy(copy + row * s->columns * element,
               (const unsigned char *)array + (row * n + s->column) * element,
               s->columns * element);
    return copy;
}

static void free_matrix(ptxgen_w4_matrix *m)
{
    free(m->codes);
    free(m->scales);
    free(m->zeros);
}

static bool slice_matrix(const ptxgen_w4_matrix *m, const struct slice *s, ptxgen_w4_matrix *to)
{
    size_t groups = m->k / (size_t)m->group_size;
    *to = *m;
    to->n = s->columns;
    to->codes = copy_columns(m->codes, m->k, m->n, s, 1);
    to->scales = copy_columns(m->scales, groups, m->n, s, ptxgen_element_size(m->scale_type));
    to->zeros = copy_columns(m->zeros, groups, m->n, s, 1);
    return to->codes && to->scales && to->zeros;
}

static const void *offset(const struct buffer *b, uint64_t elements)
{
    return b->host ? b->host + 2 * elements : NULL;
}

static ptxgen_status reference(const struct comparing *c, const struct slice *s,
                               const ptxgen_w4_matrix matrices[2], double *values, double *bound,
                               ptxgen_error *err)
{
    const struct marlin_problem *p = c->p;
    ptxgen_marlin_plan plan = p->plan; /* has only the variant that was launched */
    plan.spec.n = s->columns;
    const ptxgen_marlin_operands operands = {
        .m = s->rows,
        .a = offset(&p->a, s->row * p->a_stride),
        .weights = &matrices[0],
        .up = &matrices[1],
        .bias = offset(&p->bias, s->column),
        .up_bias = offset(&p->up_bias, s->column),
        .residual = offset(&p->residual, s->row * p->residual_stride + s->column),
        .a_stride = p->a_stride,
        .residual_stride = p->residual_stride,
    };
    return ptxgen_marlin_reference(&plan, &operands, values, bound, err);
}

static void compare_outputs(const struct comparing *c, const struct slice *s, const double *values,
                            const double *bound, struct comparison *part)
{
    const struct marlin_problem *p = c->p;
    ptxgen_element type = (ptxgen_element)p->plan.spec.type;
    for (size_t i = 0; i < s->rows; i++)
        for (size_t j = 0; j < s->columns; j++) {
            size_t row = s->row + i, column = s->column + j, at = i * s->columns + j;
            double output = ptxgen_element_load(type, p->c.host, row * p->c_stride + column);
            check_output(&part->reference, "c", row, column, output, values[at], bound[at]);
            if (!p->expected)
                continue;
            double expected = p->expected[row * p->plan.spec.n + column];
            check_output(&part->expected, "expected", row, column, output, expected,
                         bound[at] + 0x1p-24 * fabs(expected));
        }
}

static ptxgen_status compare(void *state, uint32_t index, struct comparison *part,
                             ptxgen_error *err)
{
    const struct comparing *c = state;
    struct slice s = find_slice(c, (uint64_t)index * c->every);
    double values[SLICE * SLICE], bound[SLICE * SLICE];
    ptxgen_w4_matrix matrices[2] = {{.codes = NULL}, {.codes = NULL}};
    bool have = true;
    for (unsigned i = 0; have && i < marlin_matrices(&c->p->plan.spec); i++)
        have = slice_matrix(&c->p->matrices[i], &s, &matrices[i]);
    ptxgen_status status =
        have ? reference(c, &s, matrices, values, bound, err)
             : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for columns of the weights");
    if (status == PTXGEN_OK)
        compare_outputs(c, &s, values, bound, part);
    for (int i = 0; i < 2; i++)
        free_matrix(&matrices[i]);
    return status;
}

static struct comparing start(const struct marlin_problem *p, uint64_t *slices)
{
    const ptxgen_marlin_spec *s = &p->plan.spec;
    struct comparing c = {.p = p, .across = (s->n + SLICE - 1) / SLICE};
    double all = (double)p->m * s->n * s->k * marlin_matrices(s);
    c.every = all > most_work ? (uint32_t)ceil(all / most_work) : 1;
    *slices = (uint64_t)c.across * (((uint64_t)p->m + SLICE - 1) / SLICE);
    while (c.every > 1 && c.across % c.every == 0) /* so that every column has its turn */
        c.every++;
    return c;
}

ptxgen_status marlin_compare(const struct marlin_problem *p, struct check *check, ptxgen_error *err)
{
    uint64_t slices;
    struct comparing c = start(p, &slices);
    struct comparison total = {.reference = {.outputs = 0}};
    uint32_t compared = (uint32_t)((slices + c.every - 1) / c.every);
    buffer_check_gaps(&p->c, p->m, p->plan.spec.n, p->c_stride, 2, check);
    ptxgen_status status = compare_slices("comparing with the reference, slices of 64 by 64",
                                          compared, compare, &c, &total, err);
    if (status != PTXGEN_OK)
        return status;
    check_add(check, &total.reference);
    if (compared < slices)
        snprintf(check->note, sizeof check->note,
                 "%u of %" PRIu64 " slices of 64 by 64 outputs were compared", compared, slices);
    if (p->expected)
        check_note_expected(check, &total.expected);
    return PTXGEN_OK;
}
