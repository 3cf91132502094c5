/* SPDX-License-Identifier: Apache-2.0 */
/* Launches w8a8 on a problem and checks all that it may and may not write. */
#include "w8a8.h"

#include "../../harness/launch_check.h"

/* ---- launching ---- */

static ptxgen_w8a8_args arguments_of(const struct w8a8_problem *p)
{
    return (ptxgen_w8a8_args){
        .x = p->x.address,
        .w = p->w.address,
        .w_scale = p->w_scale.address,
        .w_sum = p->w_sum.address,
        .bias = p->bias.address,
        .x_scale = p->x_scale.address,
        .x_zero = p->x_zero.address,
        .y = p->y.address,
        .workspace = p->workspace.address,
        .workspace_bytes = p->workspace.bytes,
        .x_stride = p->x_stride,
        .y_stride = p->y_stride,
        .m = p->m,
    };
}

/* The workspace, full of poison. */
static ptxgen_status create_workspace(const ptxgen_w8a8 *kernel, struct w8a8_problem *p,
                                      struct device *d, ptxgen_error *err)
{
    const ptxgen_w8a8_args args = arguments_of(p);
    uint64_t bytes;
    ptxgen_status status = ptxgen_w8a8_workspace_bytes(kernel, &args, &bytes, err);
    if (status != PTXGEN_OK)
        return status;
    const struct buffer_plan plan = {&p->workspace, "workspace", bytes > 0, bytes, 0};
    return buffers_create(d, &plan, 1, err);
}

struct launching {
    const ptxgen_w8a8 *kernel;
    ptxgen_w8a8_args args;
    ptxgen_cu_stream stream;
};

static ptxgen_status enqueue(void *state, uint32_t copy, ptxgen_error *err)
{
    (void)copy;
    const struct launching *l = state;
    return ptxgen_w8a8_launch(l->kernel, &l->args, l->stream, err);
}

static ptxgen_status compare(void *problem, struct check *check, ptxgen_error *err)
{
    return w8a8_compare(problem, check, err);
}

static ptxgen_status launch_and_compare(const ptxgen_w8a8 *kernel, struct w8a8_problem *p,
                                        struct device *d, struct check *check, ptxgen_error *err)
{
    struct buffer *const inputs[] = {&p->x,    &p->w,       &p->w_scale, &p->w_sum,
                                     &p->bias, &p->x_scale, &p->x_zero};
    struct buffer *const outputs[] = {&p->y};
    uint32_t ctas = 0;
    ptxgen_status status = create_workspace(kernel, p, d, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w8a8_ctas(&p->plan, p->m, &ctas, err);
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
        .activation_type = p->plan.spec.x_type,
        .has_rows = p->m > 0,
        .launch = enqueue,
        .launching = &launching,
        .overlap = &launching.args.overlap_previous,
        .compare = compare,
    };
    return launch_check(&c, d, check, err);
}

ptxgen_status w8a8_check(struct w8a8_problem *p, struct device *device, struct check *check,
                         ptxgen_error *err)
{
    ptxgen_error local;
    ptxgen_w8a8 *kernel = NULL;
    err = err ? err : &local;
    w8a8_name(&p->plan.spec, p->m, check->problem, sizeof check->problem);
    ptxgen_status status = ptxgen_w8a8_load(&device->driver, &p->plan, NULL, &kernel, err);
    if (status == PTXGEN_OK)
        status = launch_and_compare(kernel, p, device, check, err);
    ptxgen_w8a8_destroy(kernel);
    return status;
}
