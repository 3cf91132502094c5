/* SPDX-License-Identifier: Apache-2.0 */
/* Launches sparse24 on a problem and checks all that it may and may not write. */
#include "sparse24.h"

#include "../../harness/launch_check.h"

/* ---- launching ---- */

static ptxgen_sparse24_args arguments_of(const struct sparse24_problem *p)
{
    return (ptxgen_sparse24_args){
        .m = p->m,
        .x = p->x.address,
        .w = p->w.address,
        .x_scale = p->x_scale.address,
        .w_scale = p->w_scale.address,
        .bias = p->bias.address,
        .residual = p->in_place ? p->y.address : p->residual.address,
        .y = p->y.address,
        .x_stride = p->x_stride,
        .residual_stride = p->in_place ? p->y_stride : p->residual_stride,
        .y_stride = p->y_stride,
        .workspace = p->workspace.address,
        .workspace_bytes = p->workspace.bytes,
    };
}

static ptxgen_status create_workspace(const ptxgen_sparse24 *kernel, struct sparse24_problem *p,
                                      struct device *d, ptxgen_error *err)
{
    const ptxgen_sparse24_args args = arguments_of(p);
    uint64_t bytes;
    ptxgen_status status = ptxgen_sparse24_workspace_bytes(kernel, &args, &bytes, err);
    return status == PTXGEN_OK ? buffer_create_workspace(d, bytes, &p->workspace, err) : status;
}

/* Of tier 1 the workspace is dense's, of which there may be none, and then W. */
static ptxgen_status count_flags(const struct sparse24_problem *p, uint32_t *flags,
                                 ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &p->plan.spec;
    bool inflates = !ptxgen_sparse24_choose(&p->plan, p->m);
    ptxgen_status status = ptxgen_sparse24_ctas(&p->plan, p->m, flags, err);
    if (inflates && p->workspace.bytes == (size_t)s->n * s->k * sparse24_x_element(s))
        *flags = 0;
    return status;
}

/* Where Y is the residual too, its rows hold that. */
static void prepare(void *problem)
{
    struct sparse24_problem *p = problem;
    size_t y = ptxgen_element_size((ptxgen_element)p->plan.spec.y_type);
    if (p->in_place)
        buffer_copy_rows(&p->y, y * p->y_stride, &p->residual, y * p->residual_stride, p->m,
                         y * p->plan.spec.n);
}

struct launching {
    const ptxgen_sparse24 *kernel;
    ptxgen_sparse24_args args;
    ptxgen_cu_stream stream;
};

static ptxgen_status enqueue(void *state, uint32_t copy, ptxgen_error *err)
{
    (void)copy;
    const struct launching *l = state;
    return ptxgen_sparse24_launch(l->kernel, &l->args, l->stream, err);
}

static ptxgen_status compare(void *problem, struct check *check, ptxgen_error *err)
{
    return sparse24_compare(problem, check, err);
}

static ptxgen_status launch_and_compare(const ptxgen_sparse24 *kernel, struct sparse24_problem *p,
                                        struct device *d, struct check *check, ptxgen_error *err)
{
    struct buffer *const inputs[] = {&p->x,       &p->w,    &p->x_scale,
                                     &p->w_scale, &p->bias, &p->residual};
    struct buffer *const outputs[] = {&p->y};
    uint32_t flags = 0;
    ptxgen_status status = create_workspace(kernel, p, d, err);
    if (status == PTXGEN_OK)
        status = count_flags(p, &flags, err);
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
        .flags = flags,
        .activations = &p->x,
        .activation_type = p->plan.spec.type == PTXGEN_SPARSE24_S8 ? ELEMENT_S8 : (int)p->plan.spec.type,
        .has_rows = p->m > 0,
        .in_place = p->in_place,
        .prepare = prepare,
        .launch = enqueue,
        .launching = &launching,
        .overlap = &launching.args.overlap_previous,
        .compare = compare,
    };
    return launch_check(&c, d, check, err);
}

ptxgen_status sparse24_check(struct sparse24_problem *p, struct device *device, struct check *check,
                             ptxgen_error *err)
{
    ptxgen_error local;
    ptxgen_sparse24 *kernel = NULL;
    err = err ? err : &local;
    sparse24_name(&p->plan.spec, p->m, check->problem, sizeof check->problem);
    ptxgen_status status = ptxgen_sparse24_load(&device->driver, &p->plan, NULL, &kernel, err);
    if (status == PTXGEN_OK)
        status = launch_and_compare(kernel, p, device, check, err);
    ptxgen_sparse24_destroy(kernel);
    return status;
}
