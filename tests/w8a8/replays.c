/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w8a8's bits over a hundred replays; the first launch is compared with the reference.
 *
 *     w8a8_replays [DEVICE]      cpu by default
 */
#include "src/cli/families/w8a8.h"
#include "tests/replays.h"
#include "tests/share.h"

#include <stdio.h>
#include <string.h>

enum { REPLAYS = 100 };

struct shape {
    uint32_t m;
    ptxgen_w8a8_spec spec;
};

/* Fused, clusters, divided and whole tiles, tails, unaligned rows. */
static const struct shape gpu_shapes[] = {
    {1, {.k = 8192, .n = 8192, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16}},
    {16, {.k = 8192, .n = 8192, .x_type = PTXGEN_BF16, .y_type = PTXGEN_BF16, .bias = 1}},
    {40, {.k = 4096, .n = 4096, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16, .asymmetric = 1}},
    {64, {.k = 4096, .n = 4096, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16}},
    {100, {.k = 4547, .n = 1000, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32}},
    {300, {.k = 4096, .n = 1024, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16}},
    {1000, {.k = 2048, .n = 4096, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16}},
};
static const struct shape cpu_shapes[] = {
    {1, {.k = 520, .n = 96, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16}},
    {17, {.k = 512, .n = 72, .x_type = PTXGEN_BF16, .y_type = PTXGEN_BF16, .asymmetric = 1}},
    {130, {.k = 1001, .n = 33, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32, .bias = 1}},
};

struct bench {
    struct w8a8_problem problem;
    ptxgen_w8a8 *kernel;
    ptxgen_w8a8_args args; /* but for y and the workspace */
};

static ptxgen_status launch(void *bench, ptxgen_cu_deviceptr y, ptxgen_cu_deviceptr workspace,
                            ptxgen_cu_stream stream, ptxgen_error *err)
{
    const struct bench *b = bench;
    ptxgen_w8a8_args args = b->args;
    args.y = y;
    args.workspace = workspace;
    return ptxgen_w8a8_launch(b->kernel, &args, stream, err);
}

static bool is_right(void *bench, const unsigned char *y)
{
    struct w8a8_problem *p = &((struct bench *)bench)->problem;
    struct check check = {.outputs = 0};
    ptxgen_error err;
    memcpy(p->y.host, y, p->y.bytes);
    must_do(w8a8_compare(p, &check, &err), "comparing", &err);
    return check_passed(&check);
}

static void upload(struct w8a8_problem *p)
{
    struct buffer *const inputs[] = {&p->x,    &p->w,       &p->w_scale, &p->w_sum,
                                     &p->bias, &p->x_scale, &p->x_zero};
    ptxgen_error err;
    must_do(buffers_each(inputs, sizeof inputs / sizeof *inputs, buffer_upload, &err), "an upload",
            &err);
}

static unsigned run(struct device *device, const struct shape *shape)
{
    const struct w8a8_options options = {.spec = shape->spec};
    const struct w8a8_layout packed = {.x_gap = 0};
    struct bench b;
    struct w8a8_problem *p = &b.problem;
    struct random r = random_start(shape->m);
    ptxgen_error err;
    must_do(w8a8_allocate(p, &options, shape->m, &packed, device, &err), "the plan", &err);
    w8a8_fill(p, &r);
    upload(p);
    must_do(ptxgen_w8a8_load(&device->driver, &p->plan, NULL, &b.kernel, &err), "loading", &err);
    b.args = (ptxgen_w8a8_args){.m = p->m,
                                .x = p->x.address,
                                .w = p->w.address,
                                .w_scale = p->w_scale.address,
                                .w_sum = p->w_sum.address,
                                .bias = p->bias.address};
    struct replayed what = {.problem = &b,
                            .launch = launch,
                            .is_right = is_right,
                            .y_bytes = p->y.bytes,
                            .workspace_fill = REPLAY_POISON};
    must_do(ptxgen_w8a8_workspace_bytes(b.kernel, &b.args, &b.args.workspace_bytes, &err), "sizing",
            &err);
    what.workspace_bytes = b.args.workspace_bytes;
    unsigned different = replays_that_differ(&device->driver, &what, (unsigned)test_share(REPLAYS));
    ptxgen_w8a8_destroy(b.kernel);
    w8a8_release(p);
    return different;
}

int main(int argc, char **argv)
{
    struct device device;
    ptxgen_error err;
    unsigned all = 0;
    must_do(device_open(argc > 1 ? argv[1] : "cpu", &device, &err), "the device", &err);
    const struct shape *shapes = device.emulated ? cpu_shapes : gpu_shapes;
    size_t count = device.emulated ? sizeof cpu_shapes / sizeof *cpu_shapes
                                   : sizeof gpu_shapes / sizeof *gpu_shapes;
    for (size_t i = 0; i < count; i++) {
        unsigned different = run(&device, &shapes[i]);
        printf("K=%u N=%u M=%u: %d replays on each of %d streams, %u with other bits\n",
               shapes[i].spec.k, shapes[i].spec.n, shapes[i].m, test_share(REPLAYS), REPLAY_STREAMS,
               different);
        fflush(stdout);
        all += different;
    }
    device_close(&device);
    return all ? 1 : 0;
}
