/* SPDX-License-Identifier: Apache-2.0 */
/* Launches rmsnorm_q4k on a problem and checks all that it may and may not write. */
#include "rmsnorm_q4k.h"

#include "../bench_time.h"

#include <stdlib.h>
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
        a.weights[i] = p->weights[i].address;
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
        l.inputs[3 + i] = &p->weights[i];
        l.inputs[3 + MATRICES + i] = &p->bias[i];
        l.outputs[1 + i] = &p->y[i];
    }
    return l;
}

/* How to launch. */
struct launches {
    int times;
    bool overlap; /* each may begin before the one ahead of it ends */
};

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

/* Poisons the outputs, launches and fetches the outputs; time of one launch in seconds. */
static ptxgen_status launch(const ptxgen_rmsnorm_q4k *kernel, struct rmsnorm_q4k_problem *p,
                            struct device *d, struct launches how, double *seconds,
                            ptxgen_error *err)
{
    struct operand_lists l = list_operands(p);
    struct launching launching = {kernel, arguments_of(p), d->stream};
    launching.args.overlap_previous = how.overlap;
    for (int i = 0; i < OUTPUTS; i++)
        if (l.outputs[i]->base)
            memset(l.outputs[i]->host, BUFFER_POISON, l.outputs[i]->bytes);
    ptxgen_status status = buffers_each(l.outputs, OUTPUTS, buffer_upload, err);
    if (status == PTXGEN_OK)
        status = time_launches(d, enqueue, &launching, how.times, seconds, err);
    return status == PTXGEN_OK ? buffers_each(l.outputs, OUTPUTS, buffer_download, err) : status;
}

/* ---- the whole ---- */

/* On a GPU more launches give the time, and must give the same bits; so must overlapping ones. */
static ptxgen_status repeat(const ptxgen_rmsnorm_q4k *kernel, struct rmsnorm_q4k_problem *p,
                            struct device *d, struct check *check, ptxgen_error *err)
{
    unsigned char *before = malloc(p->y[0].bytes + 1);
    double seconds = 0;
    bool can_overlap = d->facts.compute_capability >= 90;
    ptxgen_status status = PTXGEN_OK;
    if (!before)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to keep y");
    memcpy(before, p->y[0].host, p->y[0].bytes);
    for (int overlap = can_overlap; status == PTXGEN_OK && overlap >= 0; overlap--) {
        status = launch(kernel, p, d, (struct launches){10, overlap}, &seconds, err);
        if (status == PTXGEN_OK && memcmp(before, p->y[0].host, p->y[0].bytes))
            check_fail(check, "the tenth of ten%s launches gave other bits in y[0] than the first",
                       overlap ? " overlapping" : "");
    }
    check->microseconds = seconds * 1e6; /* of those that did not overlap */
    free(before);
    return status;
}

static ptxgen_status launch_and_compare(const ptxgen_rmsnorm_q4k *kernel,
                                        struct rmsnorm_q4k_problem *p, struct device *d,
                                        struct check *check, ptxgen_error *err)
{
    struct operand_lists l = list_operands(p);
    double seconds;
    ptxgen_status status = buffers_each(l.inputs, INPUTS, buffer_upload, err);
    if (status == PTXGEN_OK)
        status = buffer_finding(launch(kernel, p, d, (struct launches){1, false}, &seconds, err),
                                err, check);
    if (status == PTXGEN_OK)
        status = buffer_finding(buffers_each(l.inputs, INPUTS, buffer_verify, err), err, check);
    if (status == PTXGEN_OK && p->m) {
        status = rmsnorm_q4k_compare(p, check, err);
        if (status == PTXGEN_OK && !d->emulated)
            status = buffer_finding(repeat(kernel, p, d, check, err), err, check);
    }
    return status;
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
