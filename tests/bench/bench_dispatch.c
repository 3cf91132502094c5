/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What getting a kernel costs: a hit in the registry, in one thread and in several; a hit on disk;
 * a miss, by its parts; the driver's own cache, missed and hit; and NVRTC, where it can be opened,
 * on a plain kernel of the same job.
 *
 *     bench_dispatch [cpu | gpu]      gpu by default; times on cpu say nothing of a driver
 *
 * The driver's cache is switched by the environment before the driver starts, so those two figures
 * come from the program run again by itself.
 */
#define _GNU_SOURCE
#include <ptxgen/dense.h>
#include <ptxgen/device.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/emulator.h>
#include <ptxgen/marlin.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DISK_ROUNDS = 9, HITS = 2000000, MOST_THREADS = 16 };

struct subject {
    const ptxgen_family *family;
    const void *spec;
    const char *name;
};

static const ptxgen_rmsnorm_q4k_spec rmsnorm_spec = {.k = 4096,
                                                     .n = {14336},
                                                     .epsilon = 1e-6f,
                                                     .max_m = 1,
                                                     .x_type = PTXGEN_F16,
                                                     .y_type = PTXGEN_F16};
static const ptxgen_marlin_spec marlin_spec = {
    .k = 4096, .n = 14336, .group_size = 128, .max_m = 16, .type = PTXGEN_F16};
static const ptxgen_w8a8_spec w8a8_spec = {
    .k = 4096, .n = 14336, .max_m = 16, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};

static const ptxgen_sparse24_spec sparse24_spec = {
    .n = 14336, .k = 4096, .max_m = 16, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16};

static const ptxgen_dense_spec dense_spec = {
    .n = 14336, .k = 4096, .max_m = 16, .type = PTXGEN_F16};

/* Whatever there is in a batch: most variants, the longest texts. */
static const ptxgen_marlin_spec whole_marlin_spec = {
    .k = 4096, .n = 14336, .group_size = 128, .max_m = 4096, .type = PTXGEN_F16};
static const ptxgen_w8a8_spec whole_w8a8_spec = {
    .k = 4096, .n = 14336, .max_m = 4096, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};

enum { SUBJECTS = 7 };
static struct subject subject_at(int index)
{
    const struct subject subjects[SUBJECTS] = {
        {ptxgen_rmsnorm_q4k_family(), &rmsnorm_spec, "rmsnorm_q4k 4096x14336, M=1"},
        {ptxgen_marlin_family(), &marlin_spec, "marlin 4096x14336, M<=16"},
        {ptxgen_w8a8_family(), &w8a8_spec, "w8a8 4096x14336, M<=16"},
        {ptxgen_sparse24_family(), &sparse24_spec, "sparse24 4096x14336, M<=16"},
        {ptxgen_dense_family(), &dense_spec, "dense 4096x14336, M<=16"},
        {ptxgen_marlin_family(), &whole_marlin_spec, "marlin 4096x14336, M<=4096"},
        {ptxgen_w8a8_family(), &whole_w8a8_spec, "w8a8 4096x14336, M<=4096"},
    };
    return subjects[index];
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

_Noreturn static void stop(const char *what, const ptxgen_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->message);
    exit(1);
}

struct device {
    ptxgen_driver driver;
    ptxgen_device_facts facts;
    ptxgen_cu_context context;
};

static void open_device(struct device *device, bool emulated)
{
    ptxgen_error err = {0};
    if (emulated)
        ptxgen_emulator_driver(&device->driver);
    else if (ptxgen_driver_open(&device->driver, NULL, &err))
        stop("driver", &err);
    if (ptxgen_driver_start(&device->driver, &err) ||
        ptxgen_device_read(&device->driver, 0, &device->facts, &err))
        stop("device", &err);
    device->driver.device_primary_ctx_retain(&device->context, 0);
    device->driver.ctx_set_current(device->context);
}

static ptxgen_dispatcher *new_dispatcher(struct device *device, const ptxgen_cache *cache)
{
    ptxgen_error err = {0};
    ptxgen_dispatcher *dispatcher;
    ptxgen_dispatch_options options = {.cache = cache, .no_cache = !cache};
    if (ptxgen_dispatcher_create(&device->driver, &options, &dispatcher, &err))
        stop("dispatcher", &err);
    return dispatcher;
}

/* ---- misses and disk hits ---- */

struct timed {
    double total_ms;
    ptxgen_load_report report;
};

/* In a dispatcher that has not seen the spec. */
static struct timed get_anew(struct device *device, const ptxgen_cache *cache,
                             const struct subject *subject)
{
    ptxgen_error err = {0};
    ptxgen_loaded *loaded;
    ptxgen_dispatcher *dispatcher = new_dispatcher(device, cache);
    double start = now_ms();
    if (ptxgen_dispatch(dispatcher, subject->family, subject->spec, &loaded, &err))
        stop(subject->name, &err);
    struct timed timed = {now_ms() - start, *ptxgen_loaded_report(loaded)};
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
    return timed;
}

static void print_timed(const char *label, const struct timed *timed)
{
    const ptxgen_load_report *r = &timed->report;
    printf("  %-16s %8.3f ms = emission %.3f + key and disk %.3f + assembler %.3f + loading %.3f + "
           "publishing %.3f   (%zu bytes of PTX, %zu of cubin)\n",
           label, timed->total_ms, (double)r->emit_ns * 1e-6, (double)r->lookup_ns * 1e-6,
           (double)r->compile_ns * 1e-6, (double)r->load_ns * 1e-6, (double)r->publish_ns * 1e-6,
           r->text_bytes, r->cubin_bytes);
}

static int by_total(const void *a, const void *b)
{
    double x = ((const struct timed *)a)->total_ms, y = ((const struct timed *)b)->total_ms;
    return (x > y) - (x < y);
}

/* The median of several, in dispatchers of their own. */
static void measure_disk_hits(struct device *device, const ptxgen_cache *cache,
                              const struct subject *subject, const char *label)
{
    struct timed hits[DISK_ROUNDS];
    for (int i = 0; i < DISK_ROUNDS; i++) {
        hits[i] = get_anew(device, cache, subject);
        if (hits[i].report.origin != PTXGEN_ORIGIN_DISK)
            printf("  a disk hit was none\n");
    }
    qsort(hits, DISK_ROUNDS, sizeof *hits, by_total);
    print_timed(label, &hits[DISK_ROUNDS / 2]);
}

static void measure_misses_and_disk_hits(struct device *device, const ptxgen_cache *cache)
{
    for (int s = 0; s < SUBJECTS; s++) {
        struct subject subject = subject_at(s);
        ptxgen_family without_memos = *subject.family;
        struct timed miss = get_anew(device, cache, &subject);
        printf("%s\n", subject.name);
        print_timed("miss", &miss);
        measure_disk_hits(device, cache, &subject, "disk hit");
        without_memos.revision = NULL;
        subject.family = &without_memos;
        measure_disk_hits(device, cache, &subject, "  without a memo");
    }
}

/* ---- hits in the registry ---- */

struct hitter {
    struct subject subject;
    ptxgen_dispatcher *dispatcher;
    pthread_barrier_t *together;
    double start_ms, end_ms;
};

static void *hit(void *argument)
{
    struct hitter *hitter = argument;
    struct subject subject = hitter->subject;
    ptxgen_loaded *loaded;
    pthread_barrier_wait(hitter->together);
    hitter->start_ms = now_ms();
    for (int i = 0; i < HITS; i++) {
        if (ptxgen_dispatch(hitter->dispatcher, subject.family, subject.spec, &loaded, NULL))
            abort();
        ptxgen_release(loaded);
    }
    hitter->end_ms = now_ms();
    return NULL;
}

static void measure_hits(struct device *device, const ptxgen_cache *cache, struct subject subject,
                         int threads)
{
    struct hitter hitters[MOST_THREADS];
    pthread_t ids[MOST_THREADS];
    pthread_barrier_t together;
    ptxgen_dispatcher *dispatcher = new_dispatcher(device, cache);
    ptxgen_loaded *loaded;
    ptxgen_error err = {0};
    if (ptxgen_dispatch(dispatcher, subject.family, subject.spec, &loaded, &err))
        stop(subject.name, &err);
    pthread_barrier_init(&together, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        hitters[i] = (struct hitter){subject, dispatcher, &together, 0, 0};
        pthread_create(&ids[i], NULL, hit, &hitters[i]);
    }
    double first = 1e300, last = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        first = hitters[i].start_ms < first ? hitters[i].start_ms : first;
        last = hitters[i].end_ms > last ? hitters[i].end_ms : last;
    }
    printf("%-30s %2d threads: dispatch and release %5.1f ns each, %6.1f million a second\n",
           subject.name, threads, (last - first) * 1e6 / HITS,
           threads * (double)HITS / (last - first) * 1e-3);
    pthread_barrier_destroy(&together);
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
}

static void measure_with_cache(struct device *device)
{
    char folder[] = "/tmp/ptxgen-bench.XXXXXX", lock[sizeof folder + 8];
    ptxgen_cache *cache;
    ptxgen_error err = {0};
    if (!mkdtemp(folder) ||
        ptxgen_cache_open(&(ptxgen_cache_options){.folder = folder}, &cache, &err))
        stop("cache", &err);
    measure_misses_and_disk_hits(device, cache);
    printf("\n");
    for (int s = 0; s < SUBJECTS; s++)
        for (int threads = 1; threads <= 2; threads++)
            measure_hits(device, cache, subject_at(s), threads);
    for (int threads = 4; threads <= MOST_THREADS && threads <= sysconf(_SC_NPROCESSORS_ONLN);
         threads *= 2)
        measure_hits(device, cache, subject_at(0), threads);
    ptxgen_cache_clear(cache, NULL, NULL);
    ptxgen_cache_close(cache);
    snprintf(lock, sizeof lock, "%s/.lock", folder);
    unlink(lock);
    rmdir(folder);
}

/* ---- the driver's own cache ---- */

/* Loads each subject's PTX by the driver alone and prints the milliseconds: what the child does. */
static int load_by_driver(void)
{
    struct device device = {0};
    ptxgen_error err = {0};
    open_device(&device, false);
    ptxgen_target target = ptxgen_device_target(&device.facts);
    for (int s = 0; s < SUBJECTS; s++) {
        struct subject subject = subject_at(s);
        void *plan = calloc(1, subject.family->plan_bytes);
        ptx_module *module = ptx_module_create(&target.ptx, NULL);
        const char *text;
        ptxgen_cu_module loaded;
        if (subject.family->make_plan(subject.spec, &target, plan, &err) ||
            subject.family->emit(plan, module, &err) ||
            ptx_module_text(module, 0, &text, NULL, &err))
            stop(subject.name, &err);
        double start = now_ms();
        ptxgen_cu_result result = device.driver.module_load_data(&loaded, text);
        printf("  %-28s %8.3f ms%s\n", subject.name, now_ms() - start, result ? ", FAILED" : "");
        ptx_module_destroy(module);
        free(plan);
    }
    return 0;
}

static void run_again(const char *program, const char *label, const char *folder)
{
    printf("the driver by itself, its cache %s:\n", label);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("CUDA_CACHE_PATH", folder, 1);
        setenv("CUDA_CACHE_DISABLE", "0", 1);
        execl(program, program, "load-by-driver", (char *)NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
}

/* ---- NVRTC ---- */

/* y = W x over Q4_K rows, a warp for each: what one would write to have it compiled at run time. */
static const char nvrtc_source[] =
    "#include <cuda_fp16.h>\n"
    "struct block_q4_K { __half d, dmin; unsigned char scales[12], qs[128]; };\n"
    "extern \"C\" __global__ void q4k(const block_q4_K *w, const __half *x, const float *g,\n"
    "                                __half *y, int n, int k, float epsilon) {\n"
    "  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;\n"
    "  if (row >= n) return;\n"
    "  float sum = 0, squares = 0;\n"
    "  for (int b = 0; b < k / 256; b++) {\n"
    "    const block_q4_K &q = w[(size_t)row * (k / 256) + b];\n"
    "    float d = __half2float(q.d), m = __half2float(q.dmin);\n"
    "    for (int j = 0; j < 8; j++) {\n"
    "      int s = j < 4 ? q.scales[j] & 63 : (q.scales[j + 4] & 15) | (q.scales[j - 4] >> 6) << "
    "4;\n"
    "      int o = j < 4 ? q.scales[j + 4] & 63 : (q.scales[j + 4] >> 4) | (q.scales[j] >> 6) << "
    "4;\n"
    "      int v = q.qs[(j / 2) * 32 + lane] >> (j & 1) * 4 & 15, i = b * 256 + j * 32 + lane;\n"
    "      float h = __half2float(x[i]);\n"
    "      squares += h * h;\n"
    "      sum += (d * s * v - m * o) * h * g[i];\n"
    "    }\n"
    "  }\n"
    "  for (int s = 16; s; s >>= 1) {\n"
    "    sum += __shfl_xor_sync(~0u, sum, s);\n"
    "    squares += __shfl_xor_sync(~0u, squares, s);\n"
    "  }\n"
    "  if (lane == 0) y[row] = __float2half(sum * rsqrtf(squares / k + epsilon));\n"
    "}\n";

struct nvrtc {
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*destroy)(void **);
};

static void *open_nvrtc(struct nvrtc *nvrtc)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW);
    const struct {
        const char *name;
        void *function;
    } entries[] = {{"nvrtcCreateProgram", &nvrtc->create},
                   {"nvrtcCompileProgram", &nvrtc->compile},
                   {"nvrtcGetProgramLogSize", &nvrtc->log_size},
                   {"nvrtcGetProgramLog", &nvrtc->log},
                   {"nvrtcDestroyProgram", &nvrtc->destroy}};
    for (size_t i = 0; library && i < sizeof entries / sizeof *entries; i++) {
        void *address = dlsym(library, entries[i].name);
        memcpy(entries[i].function, &address, sizeof address);
    }
    return library;
}

static void measure_nvrtc(int compute_capability)
{
    struct nvrtc nvrtc;
    char arch[40];
    if (!open_nvrtc(&nvrtc)) {
        printf("NVRTC: not found here\n");
        return;
    }
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d", compute_capability);
    const char *const options[] = {arch, "-I/usr/local/cuda/include"};
    for (int i = 0; i < 3; i++) {
        void *program;
        double start = now_ms();
        int result = nvrtc.create(&program, nvrtc_source, "q4k.cu", 0, NULL, NULL);
        if (!result)
            result = nvrtc.compile(program, 2, options);
        printf("NVRTC, a plain Q4_K kernel to %s: %.3f ms%s\n", arch + 19, now_ms() - start,
               result ? ", FAILED" : "");
        size_t size = 0;
        if (result && !nvrtc.log_size(program, &size)) {
            char *log = calloc(1, size + 1);
            nvrtc.log(program, log);
            fputs(log, stdout);
            free(log);
        }
        nvrtc.destroy(&program);
    }
}

int main(int argc, char **argv)
{
    bool emulated = argc > 1 && strcmp(argv[1], "cpu") == 0;
    if (argc > 1 && strcmp(argv[1], "load-by-driver") == 0)
        return load_by_driver();
    struct device device = {0};
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    unsetenv("PTXGEN_CACHE"); /* what is measured lies in a folder of its own */
    open_device(&device, emulated);
    printf("%s, CUDA %d.%d\n\n", device.facts.name, device.facts.driver_version / 1000,
           device.facts.driver_version % 1000 / 10);
    measure_with_cache(&device);
    printf("\n");
    if (!emulated) {
        char folder[] = "/tmp/ptxgen-bench-driver.XXXXXX", command[100];
        if (mkdtemp(folder)) {
            run_again("/proc/self/exe", "empty", folder);
            run_again("/proc/self/exe", "filled by that", folder);
            snprintf(command, sizeof command, "rm -rf %s", folder);
            if (system(command) != 0)
                printf("%s is left behind\n", folder);
        }
    }
    measure_nvrtc(emulated ? 90 : device.facts.compute_capability);
    return 0;
}
