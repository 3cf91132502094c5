/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse24's bits: a captured launch is replayed a hundred times on two streams at once, each with
 * a workspace and an output of its own. The first launch, alone, is compared with the reference;
 * every replay must leave its bits.
 *
 *     sparse24_replays [DEVICE]      cpu by default
 */
#include "src/cli/families/sparse24.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 2, REPLAYS = 100, POISON = 0xFF };

struct shape {
    uint32_t n;
    ptxgen_sparse24_spec spec;
};

/* Divided and whole tiles of every size, tails, aligned rows. */
static const struct shape gpu_shapes[] = {
    {1, {.m = 4096, .k = 4096, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16}},
    {16, {.m = 8192, .k = 8192, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16, .bias = 1}},
    {9, {.m = 1000, .k = 10944, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_BF16}},
    {33, {.m = 640, .k = 4104, .type = PTXGEN_SPARSE24_BF16, .y_type = PTXGEN_BF16}},
    {64, {.m = 4096, .k = 2048, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_F16}},
    {500, {.m = 2048, .k = 4096, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16}},
};
static const struct shape cpu_shapes[] = {
    {5, {.m = 96, .k = 1032, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16}},
    {17, {.m = 72, .k = 520, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_BF16, .bias = 1}},
    {130, {.m = 33, .k = 136, .type = PTXGEN_SPARSE24_BF16, .y_type = PTXGEN_BF16}},
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

static ptxgen_cu_deviceptr allocate(const ptxgen_driver *d, size_t bytes, unsigned char value)
{
    ptxgen_cu_deviceptr address;
    must(d->mem_alloc(&address, bytes + 16), "cuMemAlloc");
    must(d->memset_d8(address, value, bytes + 16), "cuMemsetD8");
    return address;
}

static void open_lane(const ptxgen_driver *d, struct lane *l, const ptxgen_sparse24 *kernel,
                      ptxgen_sparse24_args args, size_t y_bytes)
{
    ptxgen_error err;
    must_do(ptxgen_sparse24_workspace_bytes(kernel, &args, &args.workspace_bytes, &err), "sizing",
            &err);
    l->y = args.y = allocate(d, y_bytes, POISON);
    l->workspace = args.workspace = allocate(d, args.workspace_bytes, 0);
    l->got = malloc(y_bytes);
    must(d->stream_create(&l->stream, PTXGEN_CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(d->stream_begin_capture(l->stream, PTXGEN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
         "capturing");
    must_do(ptxgen_sparse24_launch(kernel, &args, l->stream, &err), "a launch", &err);
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

static void upload(struct sparse24_problem *p)
{
    struct buffer *const inputs[] = {&p->x,       &p->packed, &p->x_scale,
                                     &p->w_scale, &p->bias,   &p->residual};
    ptxgen_error err;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i]->base)
            must_do(buffer_upload(inputs[i], &err), "an upload", &err);
}

/* How many replays left other bits than the first launch, or 1 more where that was wrong. */
static unsigned replay_all(const ptxgen_driver *d, struct sparse24_problem *p,
                           const ptxgen_sparse24 *kernel, size_t y_bytes)
{
    const ptxgen_sparse24_args args = {.n = p->n,
                                       .x = p->x.address,
                                       .packed = p->packed.address,
                                       .x_scale = p->x_scale.address,
                                       .w_scale = p->w_scale.address,
                                       .bias = p->bias.address};
    struct lane lanes[STREAMS] = {{.stream = NULL}};
    struct check check = {.outputs = 0};
    ptxgen_error err;
    for (int i = 0; i < STREAMS; i++)
        open_lane(d, &lanes[i], kernel, args, y_bytes);
    replay(d, &lanes[0], y_bytes);
    must(d->stream_synchronize(lanes[0].stream), "the first launch");
    memcpy(p->y.host, lanes[0].got, y_bytes);
    must_do(sparse24_compare(p, &check, &err), "comparing", &err);
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
    const struct sparse24_options options = {.spec = shape->spec};
    const struct sparse24_layout packed = {.x_gap = 0};
    struct sparse24_problem p;
    struct random r = random_start(shape->n);
    ptxgen_sparse24 *kernel;
    ptxgen_error err;
    must_do(sparse24_allocate(&p, &options, shape->n, &packed, device, &err), "the plan", &err);
    must_do(sparse24_fill(&p, &r, &err), "the operands", &err);
    upload(&p);
    must_do(ptxgen_sparse24_load(&device->driver, &p.plan, NULL, &kernel, &err), "loading", &err);
    unsigned different =
        replay_all(&device->driver, &p, kernel, 2 * (size_t)shape->n * shape->spec.m);
    ptxgen_sparse24_destroy(kernel);
    sparse24_release(&p);
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
        printf("M=%u N=%u K=%u: %d replays on each of %d streams, %u with other bits\n",
               shapes[i].spec.m, shapes[i].n, shapes[i].spec.k, REPLAYS, STREAMS, different);
        fflush(stdout);
        all += different;
    }
    device_close(&device);
    return all ? 1 : 0;
}
