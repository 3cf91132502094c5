/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what sparse24 wrote with the reference, a block of 64 rows and 64 columns at a time. */
#include "sparse24.h"

#include "../../harness/blocks.h"

#include <math.h>

/* `rows` rows of a matrix of `count` rows, from `first` on. */
static ptxgen_const_span part_of(const ptxgen_span *matrix, size_t count, size_t first, size_t rows)
{
    size_t row_bytes = matrix->bytes / count;
    return (ptxgen_const_span){(const unsigned char *)matrix->data + first * row_bytes,
                               rows * row_bytes};
}

/*
 * The reference's bound is for an exact sum that is rounded at last. Of s8 the reference is the
 * kernel's own roundings instead; the file's output may have others, of the sum, two scales, the
 * bias and Y's type.
 */
static double own_bound(const struct sparse24_problem *p, const struct block_reference *r, size_t i,
                        uint32_t column)
{
    const ptxgen_sparse24_spec *s = &p->plan.spec;
    ptxgen_element type = (ptxgen_element)s->y_type;
    double y = fabs(r->value[i]), unit = type == PTXGEN_BF16 ? 0x1p-8 : 0x1p-11;
    if (!isfinite(y))
        return 0;
    if (s->type != PTXGEN_SPARSE24_S8)
        return r->bound[i];
    double bias = s->bias ? fabs(ptxgen_element_load(type, p->bias.host, column)) : 0;
    return r->bound[i] + unit * y + 0x1p-25 + 0x1p-21 * (y + 2 * bias);
}

static void check_expected(const struct sparse24_problem *p, const struct block *b,
                           const struct block_reference *r, struct check *check)
{
    ptxgen_element type = (ptxgen_element)p->plan.spec.y_type;
    bool exact = p->plan.spec.type == PTXGEN_SPARSE24_S8;
    for (size_t i = 0; i < b->rows * b->columns; i++) {
        size_t row = b->row + i / b->columns;
        uint32_t column = b->column + (uint32_t)(i % b->columns);
        const struct expected_output own = {.bound = own_bound(p, r, i, column),
                                            .spread = exact ? NULL : &r->spread[i]};
        expected_check(&p->expected, row, column, type,
                       ptxgen_element_load(type, p->y.host, row * p->y_stride + column), &own,
                       check);
    }
}

static ptxgen_status compare(const void *problem, const struct block *b, struct comparison *part,
                             ptxgen_error *err)
{
    const struct sparse24_problem *p = problem;
    uint32_t all = p->plan.spec.n;
    ptxgen_sparse24_plan plan = p->plan; /* has only the variant that was launched */
    plan.spec.n = b->columns;
    size_t e = ptxgen_element_size((ptxgen_element)plan.spec.y_type);
    struct block_reference r;
    const ptxgen_sparse24_operands operands = {
        .m = b->rows,
        .x = buffer_at(&p->x, b->row * p->x_stride * sparse24_x_element(&plan.spec)),
        .values = part_of(&p->values, all, b->column, b->columns),
        .form = PTXGEN_SPARSE24_BYTES,
        .metadata = part_of(&p->metadata, all, b->column, b->columns),
        .x_scale = buffer_at(&p->x_scale, b->row * sizeof(float)),
        .w_scale = buffer_at(&p->w_scale, b->column * sizeof(float)),
        .bias = buffer_at(&p->bias, b->column * e),
        .residual = buffer_at(&p->residual, (b->row * p->residual_stride + b->column) * e),
        .x_stride = p->x_stride,
        .residual_stride = p->residual_stride,
    };
    ptxgen_status status =
        ptxgen_sparse24_reference_spread(&plan, &operands, r.value, r.bound, r.spread, err);
    if (status == PTXGEN_OK)
        check_side_block(&part->reference, "y", b, (ptxgen_element)plan.spec.y_type, p->y.host,
                    p->y_stride, &r);
    if (status == PTXGEN_OK && p->expected.values)
        check_expected(p, b, &r, &part->expected);
    return status;
}

ptxgen_status sparse24_compare(const struct sparse24_problem *p, struct check *check,
                               ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &p->plan.spec;
    const struct blocks blocks = {.problem = p,
                                  .compare = compare,
                                  .rows = p->m,
                                  .columns = s->n,
                                  .work = (double)p->m * s->n * s->k,
                                  .most_work = 0x1p36};
    buffer_check_gaps(&p->y, p->m, s->n, p->y_stride,
                      ptxgen_element_size((ptxgen_element)s->y_type), check);
    struct check expected;
    ptxgen_status status = compare_blocks(&blocks, check, &expected, err);
    if (status == PTXGEN_OK && p->expected.values)
        check_note_expected(check, &expected);
    return status;
}
