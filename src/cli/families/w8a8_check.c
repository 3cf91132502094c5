/* SPDX-License-Identifier: Apache-2.0 */
/* Launches w8a8 on a problem and checks all that it may and may not write. */
#include "w8a8.h"

#include "../bench_time.h"

#include <stdlib.h>
#include <string.h>

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
        .x_stride = p->x_stride,
        .y_stride = p->y_stride,
        .m = p->m,
    };
}

enum { INPUTS = 7 };

static void list_inputs(struct w8a8_problem *p, struct buffer *inputs[INPUTS])
{
    struct buffer *const all[INPUTS] = {&p->x,    &p->w,       &p->w_scale, &p->w_sum,
                                        &p->bias, &p->x_scale, &p->x_zero};
    memcpy(inputs, all, sizeof all);
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

/* How to launch. */
struct launches {
    int times;
    bool overlap; /* each may begin before the one ahead of it ends */
};

/* y, and before the first launch the workspace, hold poison. */
static ptxgen_status launch(const ptxgen_w8a8 *kernel, struct w8a8_problem *p, struct device *d,
                            struct launches how, double *seconds, ptxgen_error *err)
{
    struct launching launching = {kernel, arguments_of(p), d->stream};
    launching.args.overlap_previous = how.overlap;
    memset(p->y.host, BUFFER_POISON, p->y.bytes);
    ptxgen_status status = buffer_upload(&p->y, err);
    if (status == PTXGEN_OK)
        status = time_launches(d, enqueue, &launching, how.times, seconds, err);
    if (status == PTXGEN_OK && p->workspace.base)
        status = buffer_download(&p->workspace, err);
    return status == PTXGEN_OK ? buffer_download(&p->y, err) : status;
}

/* ---- the whole ---- */

/* On a GPU more launches give the time, and must give the same bits; so must overlapping ones. */
static ptxgen_status repeat(const ptxgen_w8a8 *kernel, struct w8a8_problem *p, struct device *d,
                            struct check *check, ptxgen_error *err)
{
    double seconds = 0;
    ptxgen_status status = PTXGEN_OK;
    unsigned char *before = malloc(p->y.bytes + 1);
    if (!before)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to keep y");
    memcpy(before, p->y.host, p->y.bytes);
    for (int overlap = d->facts.compute_capability >= 90; status == PTXGEN_OK && overlap >= 0;
         overlap--) {
        status = launch(kernel, p, d, (struct launches){10, overlap}, &seconds, err);
        if (status == PTXGEN_OK && memcmp(before, p->y.host, p->y.bytes))
            check_fail(check, "the tenth of ten%s launches gave other bits in y than the first",
                       overlap ? " overlapping" : "");
    }
    check->microseconds = seconds * 1e6; /* of those that did not overlap */
    free(before);
    return status;
}

static ptxgen_status launch_and_compare(const ptxgen_w8a8 *kernel, struct w8a8_problem *p,
                                        struct device *d, struct check *check, ptxgen_error *err)
{
    struct buffer *inputs[INPUTS];
    double seconds;
    list_inputs(p, inputs);
    ptxgen_status status = buffers_each(inputs, INPUTS, buffer_upload, err);
    if (status == PTXGEN_OK && p->workspace.base)
        status = buffer_upload(&p->workspace, err);
    if (status == PTXGEN_OK)
        status = buffer_finding(launch(kernel, p, d, (struct launches){1, false}, &seconds, err),
                                err, check);
    if (status == PTXGEN_OK && check_passed(check))
        status = buffer_finding(buffers_each(inputs, INPUTS, buffer_verify, err), err, check);
    if (status == PTXGEN_OK && check_passed(check) && p->m) {
        status = w8a8_compare(p, check, err);
        if (status == PTXGEN_OK && !d->emulated)
            status = buffer_finding(repeat(kernel, p, d, check, err), err, check);
    }
    return status;
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
