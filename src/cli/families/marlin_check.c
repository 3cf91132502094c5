/* SPDX-License-Identifier: Apache-2.0 */
/* Launches marlin on a problem and checks all that it may and may not write. */
#include "marlin.h"

#include "../bench_time.h"

#include <stdlib.h>
#include <string.h>

/* ---- launching ---- */

static ptxgen_marlin_args arguments_of(const struct marlin_problem *p)
{
    return (ptxgen_marlin_args){
        .m = p->m,
        .a = p->a.address,
        .codes = p->codes.address,
        .scales = p->scales.address,
        .zeros = p->zeros.address,
        .order = p->order.address,
        .bias = p->bias.address,
        .up_bias = p->up_bias.address,
        .residual = p->in_place ? p->c.address : p->residual.address,
        .c = p->c.address,
        .a_stride = p->a_stride,
        .residual_stride = p->in_place ? p->c_stride : p->residual_stride,
        .c_stride = p->c_stride,
        .workspace = p->workspace.address,
        .workspace_bytes = p->workspace.bytes,
    };
}

enum { INPUTS = 8 };

static void list_inputs(struct marlin_problem *p, struct buffer *inputs[INPUTS])
{
    struct buffer *const all[INPUTS] = {&p->a,     &p->codes, &p->scales,  &p->zeros,
                                        &p->order, &p->bias,  &p->up_bias, &p->residual};
    memcpy(inputs, all, sizeof all);
}

/* Zeroed once: every launch must leave it ready for the next. */
static ptxgen_status create_workspace(const ptxgen_marlin *kernel, struct marlin_problem *p,
                                      struct device *d, ptxgen_error *err)
{
    const ptxgen_marlin_args args = arguments_of(p);
    uint64_t bytes;
    ptxgen_status status = ptxgen_marlin_workspace_bytes(kernel, &args, &bytes, err);
    if (status == PTXGEN_OK)
        status = buffer_create(d, "workspace", bytes, 0, &p->workspace, err);
    if (status != PTXGEN_OK)
        return status;
    memset(p->workspace.host, 0, bytes);
    return buffer_upload(&p->workspace, err);
}

/* Poison; where C is the residual too, that in its rows. */
static void prepare_c(struct marlin_problem *p)
{
    size_t row_bytes = 2 * (size_t)p->plan.spec.n;
    memset(p->c.host, BUFFER_POISON, p->c.bytes);
    for (uint64_t m = 0; p->in_place && m < p->m; m++)
        memcpy(p->c.host + 2 * m * p->c_stride, p->residual.host + 2 * m * p->residual_stride,
               row_bytes);
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

static ptxgen_status launch(const ptxgen_marlin *kernel, struct marlin_problem *p, struct device *d,
                            int times, double *seconds, ptxgen_error *err)
{
    struct launching launching = {kernel, arguments_of(p), d->stream};
    prepare_c(p);
    ptxgen_status status = buffer_upload(&p->c, err);
    if (status == PTXGEN_OK)
        status = time_launches(d, enqueue, &launching, times, seconds, err);
    if (status == PTXGEN_OK)
        status = buffer_download(&p->workspace, err);
    return status == PTXGEN_OK ? buffer_download(&p->c, err) : status;
}

/* ---- the whole ---- */

/* On a GPU ten more launches give the time, and the last must give the same bits. */
static ptxgen_status repeat(const ptxgen_marlin *kernel, struct marlin_problem *p, struct device *d,
                            struct check *check, ptxgen_error *err)
{
    int times = p->in_place ? 1 : 10; /* in place a second launch has another residual */
    double seconds = 0;
    unsigned char *before = malloc(p->c.bytes + 1);
    if (!before)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to keep c");
    memcpy(before, p->c.host, p->c.bytes);
    ptxgen_status status = launch(kernel, p, d, times, &seconds, err);
    if (status == PTXGEN_OK && memcmp(before, p->c.host, p->c.bytes))
        check_fail(check, "a later launch gave other bits in c than the first");
    check->microseconds = times > 1 ? seconds * 1e6 : 0;
    free(before);
    return status;
}

static ptxgen_status launch_and_compare(const ptxgen_marlin *kernel, struct marlin_problem *p,
                                        struct device *d, struct check *check, ptxgen_error *err)
{
    struct buffer *inputs[INPUTS];
    double seconds;
    list_inputs(p, inputs);
    ptxgen_status status = buffers_each(inputs, INPUTS, buffer_upload, err);
    if (status == PTXGEN_OK)
        status = create_workspace(kernel, p, d, err);
    if (status == PTXGEN_OK)
        status = buffer_finding(launch(kernel, p, d, 1, &seconds, err), err, check);
    if (status == PTXGEN_OK && check_passed(check))
        status = buffer_finding(buffers_each(inputs, INPUTS, buffer_verify, err), err, check);
    if (status == PTXGEN_OK && check_passed(check) && p->m) {
        status = marlin_compare(p, check, err);
        if (status == PTXGEN_OK && !d->emulated)
            status = buffer_finding(repeat(kernel, p, d, check, err), err, check);
    }
    return status;
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
