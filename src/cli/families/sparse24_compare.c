/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what sparse24 wrote with the reference, a slice of 64 rows and 64 columns at a time. */
#include "sparse24.h"

#include "../slices.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { SLICE = 64 };

/* Multiply-adds of the reference beyond which not every slice is compared. */
static const double most_work = 0x1p36;

struct comparing {
    const struct sparse24_problem *p;
    uint32_t across, every; /* slices along M; one in `every` is compared */
};

static const void *offset(const struct buffer *b, size_t bytes)
{
    return b->host ? b->host + bytes : NULL;
}

/* `rows` rows of a matrix of `count` rows, from `first` on. */
static ptxgen_const_span part_of(const ptxgen_span *matrix, size_t count, size_t first, size_t rows)
{
    size_t row_bytes = matrix->bytes / count;
    return (ptxgen_const_span){(const unsigned char *)matrix->data + first * row_bytes,
                               rows * row_bytes};
}

static ptxgen_status compare(void *state, uint32_t index, struct comparison *part,
                             ptxgen_error *err)
{
    const struct comparing *c = state;
    const struct sparse24_problem *p = c->p;
    uint64_t slice = (uint64_t)index * c->every, row = slice / c->across * SLICE;
    uint32_t all = p->plan.spec.m, column = (uint32_t)(slice % c->across) * SLICE;
    ptxgen_sparse24_plan plan = p->plan; /* has only the variant that was launched */
    plan.spec.m = all - column < SLICE ? all - column : SLICE;
    size_t e = ptxgen_element_size((ptxgen_element)plan.spec.y_type);
    double y[SLICE * SLICE], bound[SLICE * SLICE];
    const ptxgen_sparse24_operands operands = {
        .n = p->n - row < SLICE ? p->n - row : SLICE,
        .x = offset(&p->x, row * p->x_stride * sparse24_x_element(&plan.spec)),
        .values = part_of(&p->values, all, column, plan.spec.m),
        .form = PTXGEN_SPARSE24_BYTES,
        .metadata = part_of(&p->metadata, all, column, plan.spec.m),
        .x_scale = offset(&p->x_scale, row * sizeof(float)),
        .w_scale = offset(&p->w_scale, column * sizeof(float)),
        .bias = offset(&p->bias, column * e),
        .residual = offset(&p->residual, (row * p->residual_stride + column) * e),
        .x_stride = p->x_stride,
        .residual_stride = p->residual_stride,
    };
    ptxgen_status status = ptxgen_sparse24_reference(&plan, &operands, y, bound, err);
    if (status != PTXGEN_OK)
        return status;
    for (size_t i = 0; i < operands.n * plan.spec.m; i++) {
        size_t at_row = row + i / plan.spec.m, at_column = column + i % plan.spec.m;
        double output = ptxgen_element_load((ptxgen_element)plan.spec.y_type, p->y.host,
                                            at_row * p->y_stride + at_column);
        check_output(&part->reference, "y", at_row, at_column, output, y[i], bound[i]);
    }
    return PTXGEN_OK;
}

ptxgen_status sparse24_compare(const struct sparse24_problem *p, struct check *check,
                               ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &p->plan.spec;
    struct comparing c = {.p = p, .across = s->m / SLICE + (s->m % SLICE != 0), .every = 1};
    double all = (double)p->n * s->m * s->k;
    if (all > most_work)
        c.every = (uint32_t)ceil(all / most_work);
    while (c.every > 1 && c.across % c.every == 0) /* so that every column has its turn */
        c.every++;
    uint64_t slices = (uint64_t)c.across * (((uint64_t)p->n + SLICE - 1) / SLICE);
    uint32_t compared = (uint32_t)((slices + c.every - 1) / c.every);
    struct comparison total = {.reference = {.outputs = 0}};
    buffer_check_gaps(&p->y, p->n, s->m, p->y_stride,
                      ptxgen_element_size((ptxgen_element)s->y_type), check);
    ptxgen_status status = compare_slices("comparing with the reference, slices of 64 by 64",
                                          compared, compare, &c, &total, err);
    if (status != PTXGEN_OK)
        return status;
    check_add(check, &total.reference);
    if (compared < slices)
        snprintf(check->note, sizeof check->note,
                 "%u of %" PRIu64 " slices of 64 by 64 outputs were compared", compared, slices);
    return PTXGEN_OK;
}
