/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w8a8's bits: a captured launch is replayed a hundred times on two streams at once, each with a
 * workspace and an output of its own. The first launch, alone, is compared with the reference;
 * every replay must leave its bits.
 *
 *     w8a8_replays [DEVICE]      cpu by default
 */
#include "src/cli/families/w8a8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 2, REPLAYS = 100, POISON = 0xFF };

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

/* What a stream works with. */
struct lane {
    ptxgen_cu_stream stream;
    ptxgen_cu_deviceptr y, workspace;
    ptxgen_cu_graph graph;
    ptxgen_cu_graph_exec exec;
    unsigned char *got;
};

static void must_do(ptxgen_status status, const char *what, const ptxgen_error *err)
{
    if (status == PTXGEN_OK)
        return;
    fprintf(stderr, "%s failed: %s\n", what, err->message);
    exit(1);
}

static void must(ptxgen_cu_result result, const char *what)
{
    if (result == PTXGEN_CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s failed: %d\n", what, (int)result);
    exit(1);
}

/* ---- streams ---- */

static ptxgen_cu_deviceptr allocate(const ptxgen_driver *d, size_t bytes)
{
    ptxgen_cu_deviceptr address;
    must(d->mem_alloc(&address, bytes + 16), "cuMemAlloc");
    must(d->memset_d8(address, POISON, bytes + 16), "cuMemsetD8");
    return address;
}

static void open_lane(const ptxgen_driver *d, struct lane *l, const ptxgen_w8a8 *kernel,
                      ptxgen_w8a8_args args, size_t y_bytes)
{
    uint64_t bytes;
    ptxgen_error err;
    must_do(ptxgen_w8a8_workspace(ptxgen_w8a8_loaded_plan(kernel), args.m, &bytes, &err), "sizing",
            &err);
    l->y = args.y = allocate(d, y_bytes);
    l->workspace = args.workspace = allocate(d, bytes);
    l->got = malloc(y_bytes);
    must(d->stream_create(&l->stream, PTXGEN_CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(d->stream_begin_capture(l->stream, PTXGEN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
         "capturing");
    must_do(ptxgen_w8a8_launch(kernel, &args, l->stream, &err), "a launch", &err);
    must(d->stream_end_capture(l->stream, &l->graph), "capturing");
    must(d->graph_instantiate(&l->exec, l->graph, 0), "cuGraphInstantiate");
    must(d->ctx_synchronize(), "cuCtxSynchronize"); /* what was set must be there on any stream */
}

static void close_lane(const ptxgen_driver *d, struct lane *l)
{
    d->graph_exec_destroy(l->exec);
    d->graph_destroy(l->graph);
    d->stream_destroy(l->stream);
    d->mem_free(l->y);
    d->mem_free(l->workspace);
    free(l->got);
}

/* Enqueues a replay over poison, and the copy of what it leaves. */
static void replay(const ptxgen_driver *d, const struct lane *l, size_t y_bytes)
{
    must(d->memset_d8_async(l->y, POISON, y_bytes, l->stream), "cuMemsetD8Async");
    must(d->graph_launch(l->exec, l->stream), "cuGraphLaunch");
    must(d->memcpy_dtoh_async(l->got, l->y, y_bytes, l->stream), "cuMemcpyDtoHAsync");
}

/* ---- a problem ---- */

static void upload(struct w8a8_problem *p)
{
    struct buffer *const inputs[] = {&p->x,    &p->w,       &p->w_scale, &p->w_sum,
                                     &p->bias, &p->x_scale, &p->x_zero};
    ptxgen_error err;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i]->base)
            must_do(buffer_upload(inputs[i], &err), "an upload", &err);
}

/* How many replays left other bits than the first launch, or 1 more where that was wrong. */
static unsigned replay_all(const ptxgen_driver *d, struct w8a8_problem *p,
                           const ptxgen_w8a8 *kernel, size_t y_bytes)
{
    const ptxgen_w8a8_args args = {.m = p->m,
                                   .x = p->x.address,
                                   .w = p->w.address,
                                   .w_scale = p->w_scale.address,
                                   .w_sum = p->w_sum.address,
                                   .bias = p->bias.address};
    struct lane lanes[STREAMS] = {{.stream = NULL}};
    struct check check = {.outputs = 0};
    ptxgen_error err;
    for (int i = 0; i < STREAMS; i++)
        open_lane(d, &lanes[i], kernel, args, y_bytes);
    replay(d, &lanes[0], y_bytes);
    must(d->stream_synchronize(lanes[0].stream), "the first launch");
    memcpy(p->y.host, lanes[0].got, y_bytes);
    must_do(w8a8_compare(p, &check, &err), "comparing", &err);
    unsigned different = !check_passed(&check);
    for (unsigned r = 0; r < REPLAYS; r++) {
        for (int i = 0; i < STREAMS; i++)
            replay(d, &lanes[i], y_bytes);
        for (int i = 0; i < STREAMS; i++) {
            must(d->stream_synchronize(lanes[i].stream), "a replay");
            different += memcmp(lanes[i].got, p->y.host, y_bytes) != 0;
        }
    }
    for (int i = 0; i < STREAMS; i++)
        close_lane(d, &lanes[i]);
    return different;
}

static unsigned run(struct device *device, const struct shape *shape)
{
    const struct w8a8_options options = {.spec = shape->spec};
    const struct w8a8_layout packed = {.x_gap = 0};
    const ptxgen_w8a8_spec *s = &shape->spec;
    struct w8a8_problem p;
    struct random r = random_start(shape->m);
    ptxgen_w8a8 *kernel;
    ptxgen_error err;
    must_do(w8a8_allocate(&p, &options, shape->m, &packed, device, &err), "the plan", &err);
    w8a8_fill(&p, &r);
    upload(&p);
    must_do(ptxgen_w8a8_load(&device->driver, &p.plan, NULL, &kernel, &err), "loading", &err);
    size_t y_bytes = ptxgen_element_size((ptxgen_element)s->y_type) * shape->m * s->n;
    unsigned different = replay_all(&device->driver, &p, kernel, y_bytes);
    ptxgen_w8a8_destroy(kernel);
    w8a8_release(&p);
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
               shapes[i].spec.k, shapes[i].spec.n, shapes[i].m, REPLAYS, STREAMS, different);
        fflush(stdout);
        all += different;
    }
    device_close(&device);
    return all ? 1 : 0;
}
