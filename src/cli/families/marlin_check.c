/* SPDX-License-Identifier: Apache-2.0 */
/* Launches marlin on a problem and checks all that it may and may not write. */
#include "marlin.h"

#include "../../harness/launch_check.h"

/* ---- launching ---- */

static ptxgen_marlin_args arguments_of(const struct marlin_problem *p)
{
    return (ptxgen_marlin_args){
        .m = p->m,
        .x = p->x.address,
        .codes = p->codes.address,
        .scales = p->scales.address,
        .zeros = p->zeros.address,
        .order = p->order.address,
        .bias = p->bias.address,
        .up_bias = p->up_bias.address,
        .residual = p->in_place ? p->y.address : p->residual.address,
        .y = p->y.address,
        .x_stride = p->x_stride,
        .residual_stride = p->in_place ? p->y_stride : p->residual_stride,
        .y_stride = p->y_stride,
        .workspace = p->workspace.address,
        .workspace_bytes = p->workspace.bytes,
    };
}

static ptxgen_status create_workspace(const ptxgen_marlin *kernel, struct marlin_problem *p,
                                      struct device *d, ptxgen_error *err)
{
    const ptxgen_marlin_args args = arguments_of(p);
    uint64_t bytes;
    ptxgen_status status = ptxgen_marlin_workspace_bytes(kernel, &args, &bytes, err);
    return status == PTXGEN_OK ? buffer_create_workspace(d, bytes, &p->workspace, err) : status;
}

/* Where y is the residual too, its rows hold that. */
static void prepare(void *problem)
{
    struct marlin_problem *p = problem;
    if (p->in_place)
        buffer_copy_rows(&p->y, 2 * p->y_stride, &p->residual, 2 * p->residual_stride, p->m,
                         2 * (size_t)p->plan.spec.n);
}

struct launching {
    const ptxgen_marlin *kernel;
    ptxgen_marlin_args args;
    ptxgen_cu_stream stream;
};

static ptxgen_status enqueue(void *state, uint32_t copy, ptxgen_error *err)
{
    (void)copy;
    const struct launching *l = state;
    return ptxgen_marlin_launch(l->kernel, &l->args, l->stream, err);
}

static ptxgen_status compare(void *problem, struct check *check, ptxgen_error *err)
{
    return marlin_compare(problem, check, err);
}

static ptxgen_status launch_and_compare(const ptxgen_marlin *kernel, struct marlin_problem *p,
                                        struct device *d, struct check *check, ptxgen_error *err)
{
    struct buffer *const inputs[] = {&p->x,     &p->codes, &p->scales,  &p->zeros,
                                     &p->order, &p->bias,  &p->up_bias, &p->residual};
    struct buffer *const outputs[] = {&p->y};
    uint32_t ctas = 0;
    ptxgen_status status = create_workspace(kernel, p, d, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_ctas(&p->plan, p->m, &ctas, err);
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
        .overlap = &launching.args.overlap_previous,
        .compare = compare,
    };
    return launch_check(&c, d, check, err);
}

ptxgen_status marlin_check(struct marlin_problem *p, struct device *device, struct check *check,
                           ptxgen_error *err)
{
    ptxgen_error local;
    ptxgen_marlin *kernel = NULL;
    err = err ? err : &local;
    marlin_name(&p->plan.spec, p->m, check->problem, sizeof check->problem);
    ptxgen_status status = ptxgen_marlin_load(&device->driver, &p->plan, NULL, &kernel, err);
    if (status == PTXGEN_OK)
        status = launch_and_compare(kernel, p, device, check, err);
    ptxgen_marlin_destroy(kernel);
    return status;
}
