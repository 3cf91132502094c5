/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse24's bits over a hundred replays; the first launch is compared with the reference.
 *
 *     sparse24_replays [DEVICE]      cpu by default
 */
#include "src/cli/families/sparse24.h"
#include "tests/replays.h"
#include "tests/share.h"

#include <stdio.h>
#include <string.h>

enum { REPLAYS = 100 };

struct shape {
    uint32_t m;
    ptxgen_sparse24_spec spec;
};

/* Divided and whole tiles of every size, tails, aligned rows. */
static const struct shape gpu_shapes[] = {
    {1, {.n = 4096, .k = 4096, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16}},
    {16, {.n = 8192, .k = 8192, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16, .bias = 1}},
    {9, {.n = 1000, .k = 10944, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_BF16}},
    {33, {.n = 640, .k = 4104, .type = PTXGEN_SPARSE24_BF16, .y_type = PTXGEN_BF16}},
    {64, {.n = 4096, .k = 2048, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_F16}},
    {500, {.n = 2048, .k = 4096, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16}},
};
static const struct shape cpu_shapes[] = {
    {5, {.n = 96, .k = 1032, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16}},
    {17, {.n = 72, .k = 520, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_BF16, .bias = 1}},
    {130, {.n = 33, .k = 136, .type = PTXGEN_SPARSE24_BF16, .y_type = PTXGEN_BF16}},
};

struct bench {
    struct sparse24_problem problem;
    ptxgen_sparse24 *kernel;
    ptxgen_sparse24_args args; /* but for y and the workspace */
};

static ptxgen_status launch(void *bench, ptxgen_cu_deviceptr y, ptxgen_cu_deviceptr workspace,
                            ptxgen_cu_stream stream, ptxgen_error *err)
{
    const struct bench *b = bench;
    ptxgen_sparse24_args args = b->args;
    args.y = y;
    args.workspace = workspace;
    return ptxgen_sparse24_launch(b->kernel, &args, stream, err);
}

static bool is_right(void *bench, const unsigned char *y)
{
    struct sparse24_problem *p = &((struct bench *)bench)->problem;
    struct check check = {.outputs = 0};
    ptxgen_error err;
    memcpy(p->y.host, y, p->y.bytes);
    must_do(sparse24_compare(p, &check, &err), "comparing", &err);
    return check_passed(&check);
}

static void upload(struct sparse24_problem *p)
{
    struct buffer *const inputs[] = {&p->x,       &p->w,    &p->x_scale,
                                     &p->w_scale, &p->bias, &p->residual};
    ptxgen_error err;
    must_do(buffers_each(inputs, sizeof inputs / sizeof *inputs, buffer_upload, &err), "an upload",
            &err);
}

static unsigned run(struct device *device, const struct shape *shape)
{
    const struct sparse24_options options = {.spec = shape->spec};
    const struct sparse24_layout packed = {.x_gap = 0};
    struct bench b;
    struct sparse24_problem *p = &b.problem;
    struct random r = random_start(shape->m);
    ptxgen_error err;
    must_do(sparse24_allocate(p, &options, shape->m, &packed, device, &err), "the plan", &err);
    must_do(sparse24_fill(p, &r, &err), "the operands", &err);
    upload(p);
    must_do(ptxgen_sparse24_load(&device->driver, &p->plan, NULL, &b.kernel, &err), "loading",
            &err);
    b.args = (ptxgen_sparse24_args){.m = p->m,
                                    .x = p->x.address,
                                    .w = p->w.address,
                                    .x_scale = p->x_scale.address,
                                    .w_scale = p->w_scale.address,
                                    .bias = p->bias.address};
    must_do(ptxgen_sparse24_workspace_bytes(b.kernel, &b.args, &b.args.workspace_bytes, &err),
            "sizing", &err);
    const struct replayed what = {.problem = &b,
                                  .launch = launch,
                                  .is_right = is_right,
                                  .y_bytes = p->y.bytes,
                                  .workspace_bytes = b.args.workspace_bytes};
    unsigned different = replays_that_differ(&device->driver, &what, (unsigned)test_share(REPLAYS));
    ptxgen_sparse24_destroy(b.kernel);
    sparse24_release(p);
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
        printf("N=%u M=%u K=%u: %d replays on each of %d streams, %u with other bits\n",
               shapes[i].spec.n, shapes[i].m, shapes[i].spec.k, test_share(REPLAYS), REPLAY_STREAMS,
               different);
        fflush(stdout);
        all += different;
    }
    device_close(&device);
    return all ? 1 : 0;
}
