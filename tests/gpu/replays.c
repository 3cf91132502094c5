/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marlin's bits: a captured launch is replayed many times on two streams at once, each with a
 * workspace of its own, and every replay must leave the bits that the first launch, alone, left.
 *
 *     marlin_replays [cpu | gpu] [REPLAYS]      gpu and 100 by default
 */
#include <ptxgen/device.h>
#include <ptxgen/emulator.h>
#include <ptxgen/marlin.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 2, POISON = 0xFF };

struct problem {
    uint32_t m;
    ptxgen_marlin_spec spec;
};

/* Divided and whole tiles, of every size; gathered activations; tails. */
static const struct problem gpu_problems[] = {
    {1, {.k = 4096, .n = 4096, .group_size = 128, .type = PTXGEN_F16}},
    {16, {.k = 8192, .n = 1032, .group_size = 32, .type = PTXGEN_BF16, .zeros = 1}},
    {16, {.k = 4096, .n = 14336, .group_size = 128, .type = PTXGEN_F16}},
    {33, {.k = 10944, .n = 640, .group_size = 64, .type = PTXGEN_F16, .act_order = 1}},
    {64, {.k = 4096, .n = 4096, .group_size = PTXGEN_W4_PER_CHANNEL, .type = PTXGEN_BF16}},
    {200, {.k = 2048, .n = 2048, .group_size = 128, .type = PTXGEN_F16}},
    {1000, {.k = 4096, .n = 1024, .group_size = 128, .type = PTXGEN_F16,
            .epilogue = PTXGEN_EPILOGUE_SWIGLU}},
};
static const struct problem cpu_problems[] = {
    {5, {.k = 512, .n = 96, .group_size = 128, .type = PTXGEN_F16}},
    {17, {.k = 272, .n = 72, .group_size = 16, .type = PTXGEN_BF16, .zeros = 1, .act_order = 1}},
};

/* What a stream works with. */
struct lane {
    ptxgen_cu_stream stream;
    ptxgen_cu_deviceptr c, workspace;
    uint64_t workspace_bytes;
    ptxgen_cu_graph graph;
    ptxgen_cu_graph_exec exec;
    unsigned char *got;
};

struct bench {
    ptxgen_driver driver;
    ptxgen_device_facts facts;
    ptxgen_cu_context context;
    uint32_t random;
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

/* ---- memory ---- */

static ptxgen_cu_deviceptr allocate(const struct bench *b, size_t bytes, int value)
{
    ptxgen_cu_deviceptr address;
    must(b->driver.mem_alloc(&address, bytes + 16), "cuMemAlloc");
    must(b->driver.memset_d8(address, (unsigned char)value, bytes + 16), "cuMemsetD8");
    return address;
}

/* Bytes from `low` on, of a range of a power of two. */
static ptxgen_cu_deviceptr random_bytes(struct bench *b, size_t bytes, unsigned low, unsigned bits)
{
    ptxgen_cu_deviceptr address = allocate(b, bytes, 0);
    unsigned char *host = malloc(bytes + 1);
    for (size_t i = 0; host && i < bytes; i++) {
        b->random = b->random * 1664525u + 1013904223u;
        host[i] = (unsigned char)(low + (b->random >> (32 - bits)));
    }
    must(host ? b->driver.memcpy_htod(address, host, bytes) : PTXGEN_CUDA_ERROR_OUT_OF_MEMORY,
         "cuMemcpyHtoD");
    free(host);
    return address;
}

/* Elements whose bytes are 0x20 … 0x3f: finite and positive as f16 and as bf16. */
static ptxgen_cu_deviceptr random_elements(struct bench *b, size_t count)
{
    return random_bytes(b, 2 * count, 0x20, 5);
}

static ptxgen_cu_deviceptr backward_order(const struct bench *b, uint32_t k)
{
    ptxgen_cu_deviceptr address = allocate(b, 4 * (size_t)k, 0);
    uint32_t *host = malloc(4 * (size_t)k);
    for (uint32_t i = 0; host && i < k; i++)
        host[i] = k - 1 - i;
    must(host ? b->driver.memcpy_htod(address, host, 4 * (size_t)k) : PTXGEN_CUDA_ERROR_OUT_OF_MEMORY,
         "cuMemcpyHtoD");
    free(host);
    return address;
}

static ptxgen_marlin_args make_operands(struct bench *b, const struct problem *p)
{
    const ptxgen_marlin_spec *s = &p->spec;
    ptxgen_marlin_packed packed;
    ptxgen_error err;
    must_do(ptxgen_marlin_packed_layout(s, &packed, &err), "the layout", &err);
    ptxgen_marlin_args args = {.m = p->m};
    args.a = random_elements(b, (size_t)p->m * s->k);
    args.codes = random_bytes(b, packed.codes_bytes, 0, 8);
    args.scales = random_elements(b, packed.scales_bytes / 2);
    args.zeros = random_bytes(b, packed.zeros_bytes, 0, 8);
    args.order = s->act_order ? backward_order(b, s->k) : 0;
    return args;
}

static void free_operands(const struct bench *b, const ptxgen_marlin_args *args)
{
    const uint64_t all[] = {args->a, args->codes, args->scales, args->zeros, args->order};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            must(b->driver.mem_free(all[i]), "cuMemFree");
}

/* ---- streams ---- */

static void open_lane(struct bench *b, struct lane *l, const ptxgen_marlin *kernel,
                      ptxgen_marlin_args args, size_t c_bytes)
{
    const ptxgen_driver *d = &b->driver;
    ptxgen_error err;
    must_do(ptxgen_marlin_workspace_bytes(kernel, &args, &l->workspace_bytes, &err), "sizing", &err);
    l->c = args.c = allocate(b, c_bytes, POISON);
    l->workspace = args.workspace = allocate(b, l->workspace_bytes, 0);
    args.workspace_bytes = l->workspace_bytes;
    l->got = malloc(c_bytes);
    must(d->stream_create(&l->stream, PTXGEN_CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(d->stream_begin_capture(l->stream, PTXGEN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "capturing");
    must_do(ptxgen_marlin_launch(kernel, &args, l->stream, &err), "a launch", &err);
    must(d->stream_end_capture(l->stream, &l->graph), "capturing");
    must(d->graph_instantiate(&l->exec, l->graph, 0), "cuGraphInstantiate");
    must(d->ctx_synchronize(), "cuCtxSynchronize"); /* the streams would not wait for what was set */
}

static void close_lane(const struct bench *b, struct lane *l)
{
    b->driver.graph_exec_destroy(l->exec);
    b->driver.graph_destroy(l->graph);
    b->driver.stream_destroy(l->stream);
    b->driver.mem_free(l->c);
    b->driver.mem_free(l->workspace);
    free(l->got);
}

/* Enqueues a replay over poison, and the copy of what it leaves. */
static void replay(const struct bench *b, const struct lane *l, size_t c_bytes)
{
    const ptxgen_driver *d = &b->driver;
    must(d->memset_d8_async(l->c, POISON, c_bytes, l->stream), "cuMemsetD8Async");
    must(d->graph_launch(l->exec, l->stream), "cuGraphLaunch");
    must(d->memcpy_dtoh_async(l->got, l->c, c_bytes, l->stream), "cuMemcpyDtoHAsync");
}

static bool was_written(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i + 1 < count; i += 2)
        if (bytes[i] == POISON && bytes[i + 1] == POISON)
            return false;
    return true;
}

/* ---- a problem ---- */

/* How many of the replays left other bits than the first launch. */
static unsigned run(struct bench *b, const struct problem *p, unsigned replays)
{
    ptxgen_target target = ptxgen_device_target(&b->facts);
    ptxgen_marlin_plan plan;
    ptxgen_marlin *kernel;
    ptxgen_error err;
    must_do(ptxgen_marlin_make_plan(&p->spec, &target, &plan, &err), "the plan", &err);
    must_do(ptxgen_marlin_load(&b->driver, &plan, NULL, &kernel, &err), "loading", &err);
    ptxgen_marlin_args args = make_operands(b, p);
    size_t c_bytes = 2 * (size_t)p->m * p->spec.n;
    unsigned char *wanted = malloc(c_bytes);
    struct lane lanes[STREAMS] = {{.stream = NULL}};
    for (int i = 0; i < STREAMS; i++)
        open_lane(b, &lanes[i], kernel, args, c_bytes);
    replay(b, &lanes[0], c_bytes);
    must(b->driver.stream_synchronize(lanes[0].stream), "the first launch");
    memcpy(wanted, lanes[0].got, c_bytes);
    unsigned different = !was_written(wanted, c_bytes);
    for (unsigned r = 0; r < replays; r++) {
        for (int i = 0; i < STREAMS; i++)
            replay(b, &lanes[i], c_bytes);
        for (int i = 0; i < STREAMS; i++) {
            must(b->driver.stream_synchronize(lanes[i].stream), "a replay");
            different += memcmp(lanes[i].got, wanted, c_bytes) != 0;
        }
    }
    for (int i = 0; i < STREAMS; i++)
        close_lane(b, &lanes[i]);
    free_operands(b, &args);
    free(wanted);
    ptxgen_marlin_destroy(kernel);
    return different;
}

static void open_bench(struct bench *b, bool emulated)
{
    ptxgen_error err = {0};
    *b = (struct bench){.random = 1};
    if (emulated)
        ptxgen_emulator_driver(&b->driver);
    else
        must_do(ptxgen_driver_open(&b->driver, NULL, &err), "the driver", &err);
    must_do(ptxgen_driver_start(&b->driver, &err), "the driver", &err);
    must_do(ptxgen_device_read(&b->driver, 0, &b->facts, &err), "the device", &err);
    must(b->driver.ctx_create(&b->context, 0, 0), "cuCtxCreate");
}

int main(int argc, char **argv)
{
    static struct bench bench;
    bool emulated = argc > 1 && strcmp(argv[1], "cpu") == 0;
    unsigned replays = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 100, all = 0;
    const struct problem *problems = emulated ? cpu_problems : gpu_problems;
    size_t count = emulated ? sizeof cpu_problems / sizeof *cpu_problems
                            : sizeof gpu_problems / sizeof *gpu_problems;
    open_bench(&bench, emulated);
    for (size_t i = 0; i < count; i++) {
        unsigned different = run(&bench, &problems[i], replays);
        printf("K=%u N=%u M=%u: %u replays on each of %d streams, %u with other bits\n",
               problems[i].spec.k, problems[i].spec.n, problems[i].m, replays, STREAMS, different);
        fflush(stdout);
        all += different;
    }
    bench.driver.ctx_destroy(bench.context);
    return all ? 1 : 0;
}
