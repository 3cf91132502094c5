/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel's bits: a captured launch is replayed many times on two streams at once, each with a
 * workspace and an output of its own. What the first launch, alone, left is compared with the
 * reference; every replay must leave its bits.
 *
 *     replays [FAMILY] [DEVICE] [REPLAYS]      all families, cpu and 100 by default
 */
#include "share.h"

#include "src/harness/problem.h"

#include <ptxgen/gguf_linear.h>
#include <ptxgen/marlin.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 2 };

struct shape {
    const struct harness *harness;
    uint32_t m;
    const void *spec;
};

/* Divided and whole tiles of every size, clusters, gathered and unaligned activations, tails. */
static const struct shape gpu_shapes[] = {
    {&marlin_harness, 1,
     &(const ptxgen_marlin_spec){.k = 4096, .n = 4096, .group_size = 128, .type = PTXGEN_F16}},
    {&marlin_harness, 16,
     &(const ptxgen_marlin_spec){
         .k = 8192, .n = 1032, .group_size = 32, .type = PTXGEN_BF16, .zeros = 1}},
    {&marlin_harness, 16,
     &(const ptxgen_marlin_spec){.k = 4096, .n = 14336, .group_size = 128, .type = PTXGEN_F16}},
    {&marlin_harness, 33,
     &(const ptxgen_marlin_spec){
         .k = 10944, .n = 640, .group_size = 64, .type = PTXGEN_F16, .act_order = 1}},
    {&marlin_harness, 64,
     &(const ptxgen_marlin_spec){
         .k = 4096, .n = 4096, .group_size = PTXGEN_W4_PER_CHANNEL, .type = PTXGEN_BF16}},
    {&marlin_harness, 200,
     &(const ptxgen_marlin_spec){.k = 2048, .n = 2048, .group_size = 128, .type = PTXGEN_F16}},
    {&marlin_harness, 1000,
     &(const ptxgen_marlin_spec){.k = 4096,
                                 .n = 1024,
                                 .group_size = 128,
                                 .type = PTXGEN_F16,
                                 .epilogue = PTXGEN_EPILOGUE_SWIGLU}},
    {&sparse24_harness, 1,
     &(const ptxgen_sparse24_spec){
         .n = 4096, .k = 4096, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16}},
    {&sparse24_harness, 16,
     &(const ptxgen_sparse24_spec){
         .n = 8192, .k = 8192, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16, .bias = 1}},
    {&sparse24_harness, 9,
     &(const ptxgen_sparse24_spec){
         .n = 1000, .k = 10944, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_BF16}},
    {&sparse24_harness, 33,
     &(const ptxgen_sparse24_spec){
         .n = 640, .k = 4104, .type = PTXGEN_SPARSE24_BF16, .y_type = PTXGEN_BF16}},
    {&sparse24_harness, 64,
     &(const ptxgen_sparse24_spec){
         .n = 4096, .k = 2048, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_F16}},
    {&sparse24_harness, 500,
     &(const ptxgen_sparse24_spec){
         .n = 2048, .k = 4096, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16}},
    {&w8a8_harness, 1,
     &(const ptxgen_w8a8_spec){.k = 8192, .n = 8192, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16}},
    {&w8a8_harness, 16,
     &(const ptxgen_w8a8_spec){
         .k = 8192, .n = 8192, .x_type = PTXGEN_BF16, .y_type = PTXGEN_BF16, .bias = 1}},
    {&w8a8_harness, 16,
     &(const ptxgen_w8a8_spec){.k = 8192,
                               .n = 8192,
                               .x_type = PTXGEN_F16,
                               .y_type = PTXGEN_F16,
                               .codes = PTXGEN_W8A8_E4M3}},
    {&w8a8_harness, 40,
     &(const ptxgen_w8a8_spec){
         .k = 4096, .n = 4096, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16, .asymmetric = 1}},
    {&w8a8_harness, 64,
     &(const ptxgen_w8a8_spec){.k = 4096, .n = 4096, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16}},
    {&w8a8_harness, 100,
     &(const ptxgen_w8a8_spec){.k = 4547, .n = 1000, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32}},
    {&w8a8_harness, 300,
     &(const ptxgen_w8a8_spec){.k = 4096, .n = 1024, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16}},
    {&w8a8_harness, 1000,
     &(const ptxgen_w8a8_spec){.k = 2048, .n = 4096, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16}},
    {&gguf_linear_harness, 1,
     &(const ptxgen_gguf_linear_spec){.k = 8192,
                                      .n = {8192},
                                      .w_type = {PTXGEN_GGUF_Q4_K},
                                      .x_type = PTXGEN_F16,
                                      .y_type = PTXGEN_F16}},
    {&gguf_linear_harness, 8,
     &(const ptxgen_gguf_linear_spec){.k = 14336,
                                      .n = {4096},
                                      .w_type = {PTXGEN_GGUF_Q6_K},
                                      .x_type = PTXGEN_F16,
                                      .y_type = PTXGEN_F16}},
};
static const struct shape cpu_shapes[] = {
    {&gguf_linear_harness, 8,
     &(const ptxgen_gguf_linear_spec){.k = 14336,
                                      .n = {40},
                                      .w_type = {PTXGEN_GGUF_Q8_0},
                                      .x_type = PTXGEN_F32,
                                      .y_type = PTXGEN_F16}},
    {&marlin_harness, 5,
     &(const ptxgen_marlin_spec){.k = 512, .n = 96, .group_size = 128, .type = PTXGEN_F16}},
    {&marlin_harness, 17,
     &(const ptxgen_marlin_spec){
         .k = 272, .n = 72, .group_size = 16, .type = PTXGEN_BF16, .zeros = 1, .act_order = 1}},
    {&sparse24_harness, 5,
     &(const ptxgen_sparse24_spec){
         .n = 96, .k = 1032, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16}},
    {&sparse24_harness, 17,
     &(const ptxgen_sparse24_spec){
         .n = 72, .k = 520, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_BF16, .bias = 1}},
    {&sparse24_harness, 130,
     &(const ptxgen_sparse24_spec){
         .n = 33, .k = 136, .type = PTXGEN_SPARSE24_BF16, .y_type = PTXGEN_BF16}},
    {&w8a8_harness, 1,
     &(const ptxgen_w8a8_spec){.k = 520, .n = 96, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16}},
    {&w8a8_harness, 17,
     &(const ptxgen_w8a8_spec){
         .k = 512, .n = 72, .x_type = PTXGEN_BF16, .y_type = PTXGEN_BF16, .asymmetric = 1}},
    {&w8a8_harness, 130,
     &(const ptxgen_w8a8_spec){
         .k = 1001, .n = 33, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32, .bias = 1}},
    {&w8a8_harness, 40,
     &(const ptxgen_w8a8_spec){.k = 1040,
                               .n = 96,
                               .x_type = PTXGEN_F16,
                               .y_type = PTXGEN_F16,
                               .codes = PTXGEN_W8A8_E4M3}},
    {&w8a8_harness, 70,
     &(const ptxgen_w8a8_spec){.k = 1040,
                               .n = 96,
                               .x_type = PTXGEN_F16,
                               .y_type = PTXGEN_F16,
                               .codes = PTXGEN_W8A8_E4M3,
                               .group = PTXGEN_W8A8_GROUP}},
};

/* What is replayed. */
struct replayed {
    struct problem *p;
    const void *kernel;
    uint64_t workspace_bytes;
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

static unsigned char *host_bytes(size_t bytes)
{
    unsigned char *host = malloc(bytes);
    must(host ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_OUT_OF_MEMORY, "malloc");
    return host;
}

static ptxgen_cu_deviceptr allocate(const ptxgen_driver *d, size_t bytes, unsigned char fill)
{
    size_t some = bytes ? bytes : 1; /* there is no allocation of nothing */
    ptxgen_cu_deviceptr address;
    must(d->mem_alloc(&address, some), "cuMemAlloc");
    must(d->memset_d8(address, fill, some), "cuMemsetD8");
    return address;
}

/* The family's only one. */
static unsigned output_of(const struct problem *p)
{
    unsigned i = 0;
    while (!p->operands[i].used || p->operands[i].role != OPERAND_OUTPUT)
        i++;
    return i;
}

static bool is_right(struct problem *p, const unsigned char *y)
{
    struct buffer *output = &p->buffers[output_of(p)];
    struct check check = {.outputs = 0};
    ptxgen_error err;
    memcpy(output->host, y, output->bytes);
    must_do(problem_compare(p, &check, &err), "comparing", &err);
    return check_passed(&check);
}

static void open_lane(const ptxgen_driver *d, struct lane *l, const struct replayed *what)
{
    size_t y_bytes = what->p->buffers[output_of(what->p)].bytes;
    const struct harness *h = what->p->harness;
    bool poisons = h->poisons_workspace && h->poisons_workspace(what->p->plan);
    unsigned char fill = poisons ? BUFFER_POISON : 0;
    ptxgen_error err;
    l->y = allocate(d, y_bytes, BUFFER_POISON);
    l->workspace = allocate(d, what->workspace_bytes, fill);
    l->got = host_bytes(y_bytes);
    must(d->stream_create(&l->stream, PTXGEN_CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(d->stream_begin_capture(l->stream, PTXGEN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
         "capturing");
    struct kernel_args args = problem_args(what->p);
    args_set(&args, what->p->operands[output_of(what->p)].address, l->y);
    args_set(&args, what->p->harness->workspace, l->workspace);
    args_set(&args, what->p->harness->workspace_bytes, what->workspace_bytes);
    must_do(what->p->harness->verbs->launch(what->kernel, &args, l->stream, &err), "a launch",
            &err);
    must(d->stream_end_capture(l->stream, &l->graph), "capturing");
    must(d->graph_instantiate(&l->exec, l->graph, 0), "cuGraphInstantiate");
    must(d->ctx_synchronize(),
         "cuCtxSynchronize"); /* the streams would not wait for what was set */
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
    must(d->memset_d8_async(l->y, BUFFER_POISON, y_bytes, l->stream), "cuMemsetD8Async");
    must(d->graph_launch(l->exec, l->stream), "cuGraphLaunch");
    must(d->memcpy_dtoh_async(l->got, l->y, y_bytes, l->stream), "cuMemcpyDtoHAsync");
}

/* How many replays left other bits than the first launch, and 1 more where that was not right. */
static unsigned replays_that_differ(const ptxgen_driver *d, const struct replayed *what,
                                    unsigned replays)
{
    size_t y_bytes = what->p->buffers[output_of(what->p)].bytes;
    struct lane lanes[STREAMS] = {{.stream = NULL}};
    unsigned char *wanted = host_bytes(y_bytes);
    for (int i = 0; i < STREAMS; i++)
        open_lane(d, &lanes[i], what);
    replay(d, &lanes[0], y_bytes);
    must(d->stream_synchronize(lanes[0].stream), "the first launch");
    memcpy(wanted, lanes[0].got, y_bytes);
    unsigned different = !is_right(what->p, wanted);
    for (unsigned r = 0; r < replays; r++) {
        for (int i = 0; i < STREAMS; i++)
            replay(d, &lanes[i], y_bytes);
        for (int i = 0; i < STREAMS; i++) {
            must(d->stream_synchronize(lanes[i].stream), "a replay");
            different += memcmp(lanes[i].got, wanted, y_bytes) != 0;
        }
    }
    for (int i = 0; i < STREAMS; i++)
        close_lane(d, &lanes[i]);
    free(wanted);
    return different;
}

static unsigned run(struct device *device, const struct shape *shape, unsigned replays)
{
    const struct harness *h = shape->harness;
    const struct kernel_request request = {.spec = shape->spec};
    struct random r = random_start(shape->m);
    struct problem p;
    void *kernel = NULL;
    ptxgen_error err;
    must_do(problem_allocate(&p, h, &request, shape->m, NULL, device, &err), "the plan", &err);
    must_do(problem_fill(&p, &r, &err), "the operands", &err);
    for (unsigned i = 0; i < p.count; i++)
        if (p.operands[i].used)
            must_do(buffer_upload(&p.buffers[i], &err), "an upload", &err);
    must_do(h->verbs->load(&device->driver, p.plan, &kernel, &err), "loading", &err);
    struct replayed what = {.p = &p, .kernel = kernel};
    const struct kernel_args args = problem_args(&p);
    must_do(h->verbs->workspace_bytes(kernel, &args, &what.workspace_bytes, &err), "sizing", &err);
    unsigned different = replays_that_differ(&device->driver, &what, replays);
    char name[256];
    h->name(p.plan, p.m, name, sizeof name);
    printf("%s %s: %u replays on each of %d streams, %u with other bits\n", h->family()->name, name,
           replays, STREAMS, different);
    fflush(stdout);
    h->verbs->destroy(kernel);
    problem_release(&p);
    return different;
}

int main(int argc, char **argv)
{
    struct device device;
    const char *family = argc > 1 ? argv[1] : NULL;
    unsigned replays = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : (unsigned)test_share(100);
    unsigned all = 0, done = 0;
    ptxgen_error err;
    must_do(device_open(argc > 2 ? argv[2] : "cpu", &device, &err), "the device", &err);
    const struct shape *shapes = device.emulated ? cpu_shapes : gpu_shapes;
    size_t count = device.emulated ? sizeof cpu_shapes / sizeof *cpu_shapes
                                   : sizeof gpu_shapes / sizeof *gpu_shapes;
    for (size_t i = 0; i < count; i++) {
        if (family && strcmp(family, shapes[i].harness->family()->name) != 0)
            continue;
        all += run(&device, &shapes[i], replays);
        done++;
    }
    device_close(&device);
    return all || !done;
}
