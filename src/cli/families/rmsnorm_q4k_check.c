/* SPDX-License-Identifier: Apache-2.0 */
/* Launches rmsnorm_q4k on a problem and checks all that it may and may not write. */
#include "rmsnorm_q4k.h"

#include "../../harness/launch_check.h"

#include <string.h>

/* ---- launching ---- */

static ptxgen_rmsnorm_q4k_args arguments_of(const struct rmsnorm_q4k_problem *p)
{
    ptxgen_rmsnorm_q4k_args a = {.x = p->x.address,
                                 .residual = p->residual.address,
                                 .residual_out = p->residual_out.address,
                                 .gamma = p->gamma.address,
                                 .x_stride = p->x_stride,
                                 .residual_stride = p->residual_stride,
                                 .residual_out_stride = p->residual_out_stride,
                                 .m = p->m};
    for (int i = 0; i < MATRICES; i++) {
        a.w[i] = p->w[i].address;
        a.bias[i] = p->bias[i].address;
        a.y[i] = p->y[i].address;
        a.y_stride[i] = p->y_stride[i];
    }
    return a;
}

struct operand_lists {
    struct buffer *inputs[3 + 2 * MATRICES], *outputs[1 + MATRICES];
};
enum { INPUTS = 3 + 2 * MATRICES, OUTPUTS = 1 + MATRICES };

static struct operand_lists list_operands(struct rmsnorm_q4k_problem *p)
{
    struct operand_lists l = {.inputs = {&p->x, &p->residual, &p->gamma},
                              .outputs = {&p->residual_out}};
    for (int i = 0; i < MATRICES; i++) {
        l.inputs[3 + i] = &p->w[i];
        l.inputs[3 + MATRICES + i] = &p->bias[i];
        l.outputs[1 + i] = &p->y[i];
    }
    return l;
}

struct launching {
    const ptxgen_rmsnorm_q4k *kernel;
    ptxgen_rmsnorm_q4k_args args;
    ptxgen_cu_stream stream;
};

static ptxgen_status enqueue(void *state, uint32_t copy, ptxgen_error *err)
{
    (void)copy;
    const struct launching *l = state;
    return ptxgen_rmsnorm_q4k_launch(l->kernel, &l->args, l->stream, err);
}

static ptxgen_status compare(void *problem, struct check *check, ptxgen_error *err)
{
    return rmsnorm_q4k_compare(problem, check, err);
}

static ptxgen_status launch_and_compare(const ptxgen_rmsnorm_q4k *kernel,
                                        struct rmsnorm_q4k_problem *p, struct device *d,
                                        struct check *check, ptxgen_error *err)
{
    struct operand_lists l = list_operands(p);
    struct launching launching = {kernel, arguments_of(p), d->stream};
    const struct launch_check c = {
        .problem = p,
        .inputs = l.inputs,
        .outputs = l.outputs,
        .input_count = INPUTS,
        .output_count = OUTPUTS,
        .activations = &p->x,
        .has_rows = p->m > 0,
        .launch = enqueue,
        .launching = &launching,
        .overlap = &launching.args.overlap_previous,
        .compare = compare,
    };
    return launch_check(&c, d, check, err);
}

ptxgen_status rmsnorm_q4k_check(struct rmsnorm_q4k_problem *p, struct device *device,
                                struct check *check, ptxgen_error *err)
{
    ptxgen_error local;
    ptxgen_rmsnorm_q4k *kernel = NULL;
    err = err ? err : &local;
    rmsnorm_q4k_name(&p->plan.spec, p->m, check->problem, sizeof check->problem);
    ptxgen_status status = ptxgen_rmsnorm_q4k_load(&device->driver, &p->plan, NULL, &kernel, err);
    if (status == PTXGEN_OK)
        status = launch_and_compare(kernel, p, device, check, err);
    ptxgen_rmsnorm_q4k_destroy(kernel);
    return status;
}
