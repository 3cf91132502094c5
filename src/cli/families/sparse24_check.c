/* SPDX-License-Identifier: Apache-2.0 */
/* Launches sparse24 on a problem and checks all that it may and may not write. */
#include "sparse24.h"

#include "../bench_time.h"

#include <stdlib.h>
#include <string.h>

/* ---- launching ---- */

static ptxgen_sparse24_args arguments_of(const struct sparse24_problem *p)
{
    return (ptxgen_sparse24_args){
        .n = p->n,
        .x = p->x.address,
        .packed = p->packed.address,
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

enum { INPUTS = 6 };

static void list_inputs(struct sparse24_problem *p, struct buffer *inputs[INPUTS])
{
    struct buffer *const all[INPUTS] = {&p->x,       &p->packed, &p->x_scale,
                                        &p->w_scale, &p->bias,   &p->residual};
    memcpy(inputs, all, sizeof all);
}

/* Zeroed once: every launch must leave it ready for the next. */
static ptxgen_status create_workspace(const ptxgen_sparse24 *kernel, struct sparse24_problem *p,
                                      struct device *d, ptxgen_error *err)
{
    const ptxgen_sparse24_args args = arguments_of(p);
    uint64_t bytes;
    ptxgen_status status = ptxgen_sparse24_workspace_bytes(kernel, &args, &bytes, err);
    if (status == PTXGEN_OK)
        status = buffer_create(d, "workspace", bytes, 0, &p->workspace, err);
    if (status != PTXGEN_OK)
        return status;
    memset(p->workspace.host, 0, bytes);
    return buffer_upload(&p->workspace, err);
}

/* Poison; where Y is the residual too, that in its rows. */
static void prepare_y(struct sparse24_problem *p)
{
    size_t row_bytes = 2 * (size_t)p->plan.spec.m;
    memset(p->y.host, BUFFER_POISON, p->y.bytes);
    for (uint64_t n = 0; p->in_place && n < p->n; n++)
        memcpy(p->y.host + 2 * n * p->y_stride, p->residual.host + 2 * n * p->residual_stride,
               row_bytes);
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

static ptxgen_status launch(const ptxgen_sparse24 *kernel, struct sparse24_problem *p, struct device *d,
                            int times, double *seconds, ptxgen_error *err)
{
    struct launching launching = {kernel, arguments_of(p), d->stream};
    prepare_y(p);
    ptxgen_status status = buffer_upload(&p->y, err);
    if (status == PTXGEN_OK)
        status = time_launches(d, enqueue, &launching, times, seconds, err);
    if (status == PTXGEN_OK)
        status = buffer_download(&p->workspace, err);
    return status == PTXGEN_OK ? buffer_download(&p->y, err) : status;
}

/* ---- the whole ---- */

/* On a GPU ten more launches give the time, and the last must give the same bits. */
static ptxgen_status repeat(const ptxgen_sparse24 *kernel, struct sparse24_problem *p, struct device *d,
                            struct check *check, ptxgen_error *err)
{
    int times = p->in_place ? 1 : 10; /* in place a second launch has another residual */
    double seconds = 0;
    unsigned char *before = malloc(p->y.bytes + 1);
    if (!before)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to keep y");
    memcpy(before, p->y.host, p->y.bytes);
    ptxgen_status status = launch(kernel, p, d, times, &seconds, err);
    if (status == PTXGEN_OK && memcmp(before, p->y.host, p->y.bytes))
        check_fail(check, "a later launch gave other bits in y than the first");
    check->microseconds = times > 1 ? seconds * 1e6 : 0;
    free(before);
    return status;
}

static ptxgen_status launch_and_compare(const ptxgen_sparse24 *kernel, struct sparse24_problem *p,
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
    if (status == PTXGEN_OK && check_passed(check) && p->n) {
        status = sparse24_compare(p, check, err);
        if (status == PTXGEN_OK && !d->emulated)
            status = buffer_finding(repeat(kernel, p, d, check, err), err, check);
    }
    return status;
}

ptxgen_status sparse24_check(struct sparse24_problem *p, struct device *device, struct check *check,
                           ptxgen_error *err)
{
    ptxgen_error local;
    ptxgen_sparse24 *kernel = NULL;
    err = err ? err : &local;
    sparse24_name(&p->plan.spec, p->n, check->problem, sizeof check->problem);
    ptxgen_status status = ptxgen_sparse24_load(&device->driver, &p->plan, NULL, &kernel, err);
    if (status == PTXGEN_OK)
        status = launch_and_compare(kernel, p, device, check, err);
    ptxgen_sparse24_destroy(kernel);
    return status;
}
