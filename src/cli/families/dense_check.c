/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches dense on a problem, checks all that it may and may not write, and compares with the
 * reference, a block of 64 rows and 64 columns at a time.
 */
#include "dense.h"

#include "../blocks.h"
#include "../launch_check.h"

static size_t element_of(const struct dense_problem *p)
{
    return ptxgen_element_size((ptxgen_element)p->plan.spec.type);
}

/* ---- comparing ---- */

static ptxgen_status compare_one(const void *problem, const struct block *b,
                                 struct comparison *part, ptxgen_error *err)
{
    const struct dense_problem *p = problem;
    ptxgen_dense_plan plan = p->plan; /* has only the variant that was launched */
    plan.spec.n = b->columns;
    struct block_reference r;
    size_t e = element_of(p);
    const ptxgen_dense_operands operands = {
        .m = b->rows,
        .x = buffer_at(&p->x, b->row * p->x_stride * e),
        .w = buffer_at(&p->w, b->column * p->w_stride * e),
        .bias = buffer_at(&p->bias, b->column * e),
        .residual = buffer_at(&p->residual, (b->row * p->residual_stride + b->column) * e),
        .x_stride = p->x_stride,
        .w_stride = p->w_stride,
        .residual_stride = p->residual_stride,
    };
    ptxgen_status status =
        ptxgen_dense_reference_spread(&plan, &operands, r.value, r.bound, r.spread, err);
    if (status == PTXGEN_OK)
        check_block(&part->reference, "y", b, (ptxgen_element)plan.spec.type, p->y.host,
                    p->y_stride, &r);
    return status;
}

/* Outputs that are back on the host, and the gaps between their rows. */
static ptxgen_status compare(void *problem, struct check *check, ptxgen_error *err)
{
    const struct dense_problem *p = problem;
    const ptxgen_dense_spec *s = &p->plan.spec;
    const struct blocks blocks = {.problem = p,
                                  .compare = compare_one,
                                  .rows = p->m,
                                  .columns = s->n,
                                  .work = (double)p->m * s->n * s->k,
                                  .most_work = 0x1p36};
    buffer_check_gaps(&p->y, p->m, s->n, p->y_stride, element_of(p), check);
    return compare_blocks(&blocks, check, NULL, err);
}

/* ---- launching ---- */

static ptxgen_dense_args arguments_of(const struct dense_problem *p)
{
    return (ptxgen_dense_args){
        .m = p->m,
        .x = p->x.address,
        .w = p->w.address,
        .bias = p->bias.address,
        .residual = p->in_place ? p->y.address : p->residual.address,
        .y = p->y.address,
        .x_stride = p->x_stride,
        .w_stride = p->w_stride,
        .residual_stride = p->in_place ? p->y_stride : p->residual_stride,
        .y_stride = p->y_stride,
        .workspace = p->workspace.address,
        .workspace_bytes = p->workspace.bytes,
    };
}

static ptxgen_status create_workspace(const ptxgen_dense *kernel, struct dense_problem *p,
                                      struct device *d, ptxgen_error *err)
{
    const ptxgen_dense_args args = arguments_of(p);
    uint64_t bytes;
    ptxgen_status status = ptxgen_dense_workspace_bytes(kernel, &args, &bytes, err);
    return status == PTXGEN_OK ? buffer_create_workspace(d, bytes, &p->workspace, err) : status;
}

/* Where Y is the residual too, its rows hold that. */
static void prepare(void *problem)
{
    struct dense_problem *p = problem;
    size_t e = element_of(p);
    if (p->in_place)
        buffer_copy_rows(&p->y, e * p->y_stride, &p->residual, e * p->residual_stride, p->m,
                         e * p->plan.spec.n);
}

struct launching {
    const ptxgen_dense *kernel;
    ptxgen_dense_args args;
    ptxgen_cu_stream stream;
};

static ptxgen_status enqueue(void *state, uint32_t copy, ptxgen_error *err)
{
    (void)copy;
    const struct launching *l = state;
    return ptxgen_dense_launch(l->kernel, &l->args, l->stream, err);
}

static ptxgen_status launch_and_compare(const ptxgen_dense *kernel, struct dense_problem *p,
                                        struct device *d, struct check *check, ptxgen_error *err)
{
    struct buffer *const inputs[] = {&p->x, &p->w, &p->bias, &p->residual};
    struct buffer *const outputs[] = {&p->y};
    uint32_t ctas = 0;
    ptxgen_status status = create_workspace(kernel, p, d, err);
    if (status == PTXGEN_OK)
        status = ptxgen_dense_ctas(&p->plan, p->m, &ctas, err);
    if (status != PTXGEN_OK)
        return status;
    struct launching launching = {kernel, arguments_of(p), d->stream};
    const struct launch_check c = {
        .problem = p,
        .inputs = inputs,
        .outputs = outputs,
        .input_count = sizeof inputs / sizeof *inputs,
        .output_count = sizeof outputs / sizeof *outputs,
        .workspace = &p->workspace,
        .flags = ctas,
        .activations = &p->x,
        .activation_type = p->plan.spec.type,
        .has_rows = p->m > 0,
        .in_place = p->in_place,
        .prepare = prepare,
        .launch = enqueue,
        .launching = &launching,
        .compare = compare,
    };
    return launch_check(&c, d, check, err);
}

ptxgen_status dense_check(struct dense_problem *p, struct device *device, struct check *check,
                          ptxgen_error *err)
{
    ptxgen_error local;
    ptxgen_dense *kernel = NULL;
    err = err ? err : &local;
    dense_name(&p->plan.spec, p->m, check->problem, sizeof check->problem);
    ptxgen_status status = ptxgen_dense_load(&device->driver, &p->plan, NULL, &kernel, err);
    if (status == PTXGEN_OK)
        status = launch_and_compare(kernel, p, device, check, err);
    ptxgen_dense_destroy(kernel);
    return status;
}
