/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight threads on four streams dispatch and launch every family and unload in between; each result
 * is bit for bit what one thread got before. On a GPU by hand, on the emulator in every build.
 *
 *     dispatch_stress [cpu | gpu] [SECONDS]      gpu and 60 by default
 */
#include <ptxgen/device.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/emulator.h>
#include <ptxgen/dense.h>
#include <ptxgen/marlin.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    THREADS = 8,
    STREAMS = 4,
    WIDTHS = 2,
    TIERS = 2,
    BATCHES = 2,
    VECTOR = 1 << 20,
    VECTORS = 4
};

/* ---- the families ---- */

/*
 * Device memory that all read: four vectors, weights, and a 2:4 sparse one of each width for each
 * tier. Every byte is in 0x20 … 0x3f, which is a finite, positive number in each format that a
 * kernel may read it as; but for the metadata of sparse weights.
 */
struct inputs {
    ptxgen_cu_deviceptr vectors[VECTORS], weights, sparse[WIDTHS][TIERS];
};

struct shape {
    uint32_t k, n, m;
    int width; /* which n it is */
};

/* One launch's own memory. */
struct outputs {
    ptxgen_cu_deviceptr y, workspace;
    uint64_t workspace_bytes;
};

/* Dispatches, launches on the stream and gives the kernel back. */
typedef ptxgen_status use_family(ptxgen_dispatcher *dispatcher, const struct shape *shape,
                                 const struct inputs *in, const struct outputs *out,
                                 ptxgen_cu_stream stream, ptxgen_error *err);

static ptxgen_status use_rmsnorm_q4k(ptxgen_dispatcher *dispatcher, const struct shape *shape,
                                     const struct inputs *in, const struct outputs *out,
                                     ptxgen_cu_stream stream, ptxgen_error *err)
{
    const ptxgen_rmsnorm_q4k_spec spec = {.k = shape->k,
                                          .n = {shape->n},
                                          .epsilon = 1e-5f,
                                          .max_m = 4,
                                          .x_type = PTXGEN_F16,
                                          .y_type = PTXGEN_F16};
    const ptxgen_rmsnorm_q4k_args args = {.x = in->vectors[0],
                                          .gamma = in->vectors[1],
                                          .w = {in->weights},
                                          .y = {out->y},
                                          .m = shape->m};
    ptxgen_rmsnorm_q4k *kernel;
    ptxgen_status status = ptxgen_rmsnorm_q4k_dispatch(dispatcher, &spec, &kernel, err);
    if (status != PTXGEN_OK)
        return status;
    status = ptxgen_rmsnorm_q4k_launch(kernel, &args, stream, err);
    ptxgen_rmsnorm_q4k_destroy(kernel);
    return status;
}

static ptxgen_status use_marlin(ptxgen_dispatcher *dispatcher, const struct shape *shape,
                                const struct inputs *in, const struct outputs *out,
                                ptxgen_cu_stream stream, ptxgen_error *err)
{
    const ptxgen_marlin_spec spec = {
        .k = shape->k, .n = shape->n, .group_size = 128, .max_m = 8, .type = PTXGEN_F16};
    const ptxgen_marlin_args args = {.m = shape->m,
                                     .x = in->vectors[0],
                                     .codes = in->weights,
                                     .scales = in->vectors[1],
                                     .y = out->y,
                                     .workspace = out->workspace,
                                     .workspace_bytes = out->workspace_bytes};
    ptxgen_marlin *kernel;
    ptxgen_status status = ptxgen_marlin_dispatch(dispatcher, &spec, &kernel, err);
    if (status != PTXGEN_OK)
        return status;
    status = ptxgen_marlin_launch(kernel, &args, stream, err);
    ptxgen_marlin_destroy(kernel);
    return status;
}

static ptxgen_status use_w8a8(ptxgen_dispatcher *dispatcher, const struct shape *shape,
                              const struct inputs *in, const struct outputs *out,
                              ptxgen_cu_stream stream, ptxgen_error *err)
{
    const ptxgen_w8a8_spec spec = {
        .k = shape->k, .n = shape->n, .max_m = 8, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    const ptxgen_w8a8_args args = {.x = in->vectors[0],
                                   .w = in->weights,
                                   .w_scale = in->vectors[1],
                                   .y = out->y,
                                   .workspace = out->workspace,
                                   .workspace_bytes = out->workspace_bytes,
                                   .m = shape->m};
    ptxgen_w8a8 *kernel;
    ptxgen_status status = ptxgen_w8a8_dispatch(dispatcher, &spec, &kernel, err);
    if (status != PTXGEN_OK)
        return status;
    status = ptxgen_w8a8_launch(kernel, &args, stream, err);
    ptxgen_w8a8_destroy(kernel);
    return status;
}

static ptxgen_sparse24_spec sparse24_spec(const struct shape *shape, unsigned tier)
{
    return (ptxgen_sparse24_spec){.n = shape->n,
                                  .k = shape->k,
                                  .max_m = 8,
                                  .type = PTXGEN_SPARSE24_F16,
                                  .y_type = PTXGEN_F16,
                                  .tier = (uint8_t)tier};
}

static ptxgen_status use_tier(unsigned tier, ptxgen_dispatcher *dispatcher,
                              const struct shape *shape, const struct inputs *in,
                              const struct outputs *out, ptxgen_cu_stream stream, ptxgen_error *err)
{
    const ptxgen_sparse24_spec spec = sparse24_spec(shape, tier);
    const ptxgen_sparse24_args args = {.m = shape->m,
                                       .x = in->vectors[0],
                                       .w = in->sparse[shape->width][tier - 1],
                                       .y = out->y,
                                       .workspace = out->workspace,
                                       .workspace_bytes = out->workspace_bytes};
    ptxgen_sparse24 *kernel;
    ptxgen_status status = ptxgen_sparse24_dispatch(dispatcher, &spec, &kernel, err);
    if (status != PTXGEN_OK)
        return status;
    status = ptxgen_sparse24_launch(kernel, &args, stream, err);
    ptxgen_sparse24_destroy(kernel);
    return status;
}

static ptxgen_status use_sparse24(ptxgen_dispatcher *dispatcher, const struct shape *shape,
                                  const struct inputs *in, const struct outputs *out,
                                  ptxgen_cu_stream stream, ptxgen_error *err)
{
    return use_tier(2, dispatcher, shape, in, out, stream, err);
}

/* The weight is inflated into the workspace, then multiplied as dense's. */
static ptxgen_status use_inflated(ptxgen_dispatcher *dispatcher, const struct shape *shape,
                                  const struct inputs *in, const struct outputs *out,
                                  ptxgen_cu_stream stream, ptxgen_error *err)
{
    return use_tier(1, dispatcher, shape, in, out, stream, err);
}

static ptxgen_status use_dense(ptxgen_dispatcher *dispatcher, const struct shape *shape,
                               const struct inputs *in, const struct outputs *out,
                               ptxgen_cu_stream stream, ptxgen_error *err)
{
    const ptxgen_dense_spec spec = {.n = shape->n, .k = shape->k, .max_m = 8, .type = PTXGEN_F16};
    const ptxgen_dense_args args = {.m = shape->m,
                                    .x = in->vectors[0],
                                    .w = in->weights,
                                    .y = out->y,
                                    .workspace = out->workspace,
                                    .workspace_bytes = out->workspace_bytes};
    ptxgen_dense *kernel;
    ptxgen_status status = ptxgen_dense_dispatch(dispatcher, &spec, &kernel, err);
    if (status != PTXGEN_OK)
        return status;
    status = ptxgen_dense_launch(kernel, &args, stream, err);
    ptxgen_dense_destroy(kernel);
    return status;
}

static use_family *const families[] = {use_rmsnorm_q4k, use_marlin,   use_w8a8,
                                       use_sparse24,    use_inflated, use_dense};
enum { FAMILIES = sizeof families / sizeof *families, CASES = FAMILIES * WIDTHS * BATCHES };

/* ---- the bench ---- */

struct bench {
    ptxgen_driver driver;
    ptxgen_cu_context context;
    ptxgen_dispatcher *dispatcher;
    ptxgen_cu_stream streams[STREAMS];
    struct inputs in;
    bool emulated;
    size_t most_bytes; /* of an output */
    char *wanted[CASES];
    atomic_int stop;
    atomic_ulong launches, unloads, wrong;
};

struct worker {
    struct bench *bench;
    unsigned number;
    uint32_t random;
    struct outputs outputs[FAMILIES]; /* a family's workspace is not another's */
    char *got;
};

_Noreturn static void stop(const char *what, const ptxgen_error *err)
{
    fprintf(stderr, "%s failed: %s\n", what, err->message);
    exit(1);
}

static void must(ptxgen_cu_result result, const char *what)
{
    if (result != PTXGEN_CUDA_SUCCESS) {
        fprintf(stderr, "%s failed: %d\n", what, (int)result);
        exit(1);
    }
}

static struct shape shape_of(const struct bench *bench, int index)
{
    int width = index / FAMILIES % WIDTHS;
    struct shape gpu = {4096, width ? 4096 : 1024, index / FAMILIES / WIDTHS ? 4 : 1, width};
    return bench->emulated ? (struct shape){512, gpu.n / 64, gpu.m, width} : gpu;
}

static ptxgen_cu_deviceptr allocate(struct bench *bench, size_t bytes, int value)
{
    ptxgen_cu_deviceptr address;
    must(bench->driver.mem_alloc(&address, bytes), "cuMemAlloc");
    must(bench->driver.memset_d8(address, (unsigned char)value, bytes), "cuMemsetD8");
    return address;
}

/* Bytes in 0x20 … 0x3f; free them. */
static unsigned char *make_bytes(size_t bytes)
{
    unsigned char *host = malloc(bytes);
    uint32_t random = 1;
    for (size_t i = 0; host && i < bytes; i++) {
        random = random * 1664525u + 1013904223u;
        host[i] = (unsigned char)(0x20 + (random >> 27));
    }
    if (!host)
        must(PTXGEN_CUDA_ERROR_OUT_OF_MEMORY, "malloc");
    return host;
}

static ptxgen_cu_deviceptr upload(struct bench *bench, const void *host, size_t bytes)
{
    ptxgen_cu_deviceptr address = allocate(bench, bytes, 0);
    must(bench->driver.memcpy_htod(address, host, bytes), "cuMemcpyHtoD");
    must(bench->driver.ctx_synchronize(), "cuCtxSynchronize"); /* the streams would not wait */
    return address;
}

static ptxgen_cu_deviceptr allocate_input(struct bench *bench, size_t bytes)
{
    unsigned char *host = make_bytes(bytes);
    ptxgen_cu_deviceptr address = upload(bench, host, bytes);
    free(host);
    return address;
}

/* Which two of four columns are kept goes through all six choices. */
static ptxgen_cu_deviceptr allocate_sparse(struct bench *bench, const struct shape *shape,
                                           unsigned tier)
{
    static const unsigned char choices[] = {0x4, 0x8, 0x9, 0xc, 0xd, 0xe};
    const ptxgen_sparse24_spec spec = sparse24_spec(shape, tier);
    size_t groups = (size_t)shape->n * shape->k / 4, bytes;
    ptxgen_error err = {0};
    if (ptxgen_sparse24_packed_bytes(&spec, &bytes, &err) != PTXGEN_OK)
        stop("a sparse weight", &err);
    unsigned char *values = make_bytes(groups * 4), *metadata = make_bytes(groups);
    unsigned char *packed = make_bytes(bytes);
    for (size_t i = 0; i < groups; i++)
        metadata[i] = choices[metadata[i] % sizeof choices];
    if (ptxgen_sparse24_pack(&spec, (ptxgen_const_span){values, groups * 4}, PTXGEN_SPARSE24_BYTES,
                             (ptxgen_const_span){metadata, groups}, (ptxgen_span){packed, bytes},
                             &err) != PTXGEN_OK)
        stop("a sparse weight", &err);
    ptxgen_cu_deviceptr address = upload(bench, packed, bytes);
    free(values);
    free(metadata);
    free(packed);
    return address;
}

static void prepare_worker(struct worker *worker, struct bench *bench, unsigned number)
{
    const uint64_t workspace = bench->emulated ? 1 << 20 : 40 << 20; /* an inflated weight fits */
    *worker = (struct worker){.bench = bench, .number = number, .random = number * 7919 + 1};
    worker->got = malloc(bench->most_bytes);
    for (int i = 0; i < FAMILIES; i++)
        worker->outputs[i] = (struct outputs){allocate(bench, bench->most_bytes, 0),
                                              allocate(bench, workspace, 0), workspace};
}

/* Runs case `index` into worker->got. */
static ptxgen_status run_case(struct worker *worker, int index, ptxgen_error *err)
{
    struct bench *bench = worker->bench;
    const ptxgen_driver *driver = &bench->driver;
    struct shape shape = shape_of(bench, index);
    const struct outputs *out = &worker->outputs[index % FAMILIES];
    ptxgen_cu_stream stream = bench->streams[worker->number % STREAMS];
    size_t bytes = (size_t)shape.m * shape.n * 2;
    must(driver->memset_d8_async(out->y, 0xff, bytes, stream), "cuMemsetD8Async");
    ptxgen_status status =
        families[index % FAMILIES](bench->dispatcher, &shape, &bench->in, out, stream, err);
    if (status != PTXGEN_OK)
        return status;
    must(driver->memcpy_dtoh_async(worker->got, out->y, bytes, stream), "cuMemcpyDtoHAsync");
    must(driver->stream_synchronize(stream), "cuStreamSynchronize");
    return PTXGEN_OK;
}

static uint32_t draw(struct worker *worker, uint32_t below)
{
    worker->random = worker->random * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)worker->random * below >> 32);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct bench *bench = worker->bench;
    bench->driver.ctx_set_current(bench->context);
    while (!atomic_load(&bench->stop)) {
        ptxgen_error err = {0};
        int index = (int)draw(worker, CASES);
        struct shape shape = shape_of(bench, index);
        if (run_case(worker, index, &err) != PTXGEN_OK)
            stop("a launch", &err);
        if (memcmp(worker->got, bench->wanted[index], (size_t)shape.m * shape.n * 2) != 0)
            atomic_fetch_add(&bench->wrong, 1);
        atomic_fetch_add(&bench->launches, 1);
        if (draw(worker, 200) == 0) {
            if (ptxgen_dispatcher_unload(bench->dispatcher, NULL, NULL, NULL, &err) != PTXGEN_OK)
                stop("unloading", &err);
            atomic_fetch_add(&bench->unloads, 1);
        }
    }
    return NULL;
}

static void open_bench(struct bench *bench, bool emulated)
{
    ptxgen_error err = {0};
    bench->emulated = emulated;
    if (emulated)
        ptxgen_emulator_driver(&bench->driver);
    else if (ptxgen_driver_open(&bench->driver, NULL, &err))
        stop("the driver", &err);
    if (ptxgen_driver_start(&bench->driver, &err))
        stop("the driver", &err);
    must(bench->driver.ctx_create(&bench->context, 0, 0), "cuCtxCreate");
    ptxgen_dispatch_options options = {.no_cache = emulated};
    if (ptxgen_dispatcher_create(&bench->driver, &options, &bench->dispatcher, &err))
        stop("the dispatcher", &err);
    for (int i = 0; i < STREAMS; i++)
        must(bench->driver.stream_create(&bench->streams[i], PTXGEN_CU_STREAM_NON_BLOCKING),
             "cuStreamCreate");
    size_t most_weights = 0;
    for (int i = 0; i < CASES; i++) {
        struct shape shape = shape_of(bench, i);
        size_t bytes = (size_t)shape.m * shape.n * 2, weights = (size_t)shape.k * shape.n * 2;
        bench->most_bytes = bytes > bench->most_bytes ? bytes : bench->most_bytes;
        most_weights = weights > most_weights ? weights : most_weights;
        for (unsigned tier = 1; tier <= TIERS && !bench->in.sparse[shape.width][TIERS - 1]; tier++)
            bench->in.sparse[shape.width][tier - 1] = allocate_sparse(bench, &shape, tier);
    }
    for (int i = 0; i < VECTORS; i++)
        bench->in.vectors[i] = allocate_input(bench, VECTOR);
    bench->in.weights = allocate_input(bench, most_weights);
}

/* What one thread gets is what all are to get. */
static void compute_wanted(struct bench *bench, struct worker *worker)
{
    for (int i = 0; i < CASES; i++) {
        struct shape shape = shape_of(bench, i);
        size_t bytes = (size_t)shape.m * shape.n * 2;
        ptxgen_error err = {0};
        if (run_case(worker, i, &err) != PTXGEN_OK)
            stop("the first launch", &err);
        bench->wanted[i] = malloc(bytes);
        memcpy(bench->wanted[i], worker->got, bytes);
    }
}

static void close_bench(struct bench *bench, struct worker workers[THREADS])
{
    for (int i = 0; i < CASES; i++)
        free(bench->wanted[i]);
    for (int i = 0; i < THREADS; i++)
        free(workers[i].got);
    ptxgen_dispatcher_destroy(bench->dispatcher);
    for (int i = 0; i < STREAMS; i++)
        bench->driver.stream_destroy(bench->streams[i]);
    bench->driver.ctx_destroy(bench->context);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    long seconds = argc > 2 ? strtol(argv[2], NULL, 10) : 60;
    open_bench(&bench, argc > 1 && strcmp(argv[1], "cpu") == 0);
    for (unsigned i = 0; i < THREADS; i++)
        prepare_worker(&workers[i], &bench, i);
    must(bench.driver.ctx_synchronize(), "cuCtxSynchronize"); /* the streams do not wait for it */
    compute_wanted(&bench, &workers[0]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &workers[i]);
    nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
    atomic_store(&bench.stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d threads, %d streams, %d cases: %lu launches, %lu unloads, %lu results that differ\n",
           THREADS, STREAMS, CASES, atomic_load(&bench.launches), atomic_load(&bench.unloads),
           atomic_load(&bench.wrong));
    close_bench(&bench, workers);
    return atomic_load(&bench.wrong) ? 1 : 0;
}
