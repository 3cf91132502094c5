/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what sparse24 wrote with the reference, a block of 64 rows and 64 columns at a time. */
#include "sparse24.h"

#include "../blocks.h"

/* `rows` rows of a matrix of `count` rows, from `first` on. */
static ptxgen_const_span part_of(const ptxgen_span *matrix, size_t count, size_t first, size_t rows)
{
    size_t row_bytes = matrix->bytes / count;
    return (ptxgen_const_span){(const unsigned char *)matrix->data + first * row_bytes,
                               rows * row_bytes};
}

static ptxgen_status compare(const void *problem, const struct block *b, struct comparison *part,
                             ptxgen_error *err)
{
    const struct sparse24_problem *p = problem;
    uint32_t all = p->plan.spec.m;
    ptxgen_sparse24_plan plan = p->plan; /* has only the variant that was launched */
    plan.spec.m = b->columns;
    size_t e = ptxgen_element_size((ptxgen_element)plan.spec.y_type);
    struct block_reference r;
    const ptxgen_sparse24_operands operands = {
        .n = b->rows,
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
        check_block(&part->reference, "y", b, (ptxgen_element)plan.spec.y_type, p->y.host,
                    p->y_stride, &r);
    return status;
}

ptxgen_status sparse24_compare(const struct sparse24_problem *p, struct check *check,
                               ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &p->plan.spec;
    const struct blocks blocks = {.problem = p,
                                  .compare = compare,
                                  .rows = p->n,
                                  .columns = s->m,
                                  .work = (double)p->n * s->m * s->k,
                                  .most_work = 0x1p36};
    buffer_check_gaps(&p->y, p->n, s->m, p->y_stride,
                      ptxgen_element_size((ptxgen_element)s->y_type), check);
    return compare_blocks(&blocks, check, NULL, err);
}
