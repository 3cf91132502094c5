/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much stack calls take: a thread's stack is painted, a call runs on it, and what is no longer
 * paint was used. The limits are those of include/ptxgen/status.h.
 */
#include "src/harness/problem.h"
#include "tests/checks.h"
#include "tests/dispatch/folder.h"

#include <ptxgen/dense.h>
#include <ptxgen/emulator.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/marlin.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK_BYTES = 1024 * 1024, PAINT = 0x5A };

/* ---- what a call takes ---- */

struct job {
    void (*call)(void *);
    void *argument;
};

static void *run_job(void *argument)
{
    const struct job *job = argument;
    job->call(job->argument);
    return NULL;
}

static size_t stack_of(void (*call)(void *), void *argument)
{
    unsigned char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    assert_true(stack != MAP_FAILED);
    memset(stack, PAINT, STACK_BYTES);
    pthread_attr_t attributes;
    pthread_t thread;
    struct job job = {call, argument};
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run_job, &job), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    size_t untouched = 0;
    while (untouched < STACK_BYTES && stack[untouched] == PAINT)
        untouched++;
    munmap(stack, STACK_BYTES);
    return STACK_BYTES - untouched;
}

static void do_nothing(void *argument)
{
    (void)argument;
}

/* Beside what a thread that does nothing takes: its own descriptor and thread-local variables. */
static void assert_stack(const char *what, void (*call)(void *), void *argument, size_t limit)
{
    size_t idle = stack_of(do_nothing, NULL), used = stack_of(call, argument) - idle;
    print_message("%-28s %zu bytes\n", what, used);
    if (used > limit)
        fail_msg("%s takes %zu bytes of stack, above %zu", what, used, limit);
}

/* ---- families ---- */

static const ptxgen_marlin_spec marlin_specs[] = {
    {.k = 4096, .n = 4096, .group_size = 128, .type = PTXGEN_F16},
    {.k = 4096,
     .n = 4096,
     .group_size = 32,
     .type = PTXGEN_BF16,
     .zeros = 1,
     .act_order = 1,
     .epilogue = PTXGEN_EPILOGUE_SWIGLU,
     .bias = 1,
     .residual = 1}};
static const ptxgen_w8a8_spec w8a8_spec = {.k = 4096,
                                           .n = 4096,
                                           .q_min = -127,
                                           .q_max = 127,
                                           .x_type = PTXGEN_F16,
                                           .y_type = PTXGEN_F16,
                                           .asymmetric = 1,
                                           .bias = 1};
static const ptxgen_dense_spec dense_spec = {.n = 4096,
                                             .k = 4096,
                                             .type = PTXGEN_F16,
                                             .bias = 1,
                                             .activation = PTXGEN_ACTIVATION_GELU,
                                             .residual = 1};
static const ptxgen_sparse24_spec sparse24_specs[] = {
    {.n = 4096, .k = 4096, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16, .bias = 1},
    {.n = 4096, .k = 4096, .type = PTXGEN_SPARSE24_F32, .y_type = PTXGEN_F32, .residual = 1}};
static const ptxgen_rmsnorm_q4k_spec rmsnorm_q4k_spec = {.k = 4096,
                                                         .n = {4096, 4096},
                                                         .epsilon = 1e-6f,
                                                         .x_type = PTXGEN_F32,
                                                         .y_type = PTXGEN_BF16,
                                                         .epilogue = PTXGEN_EPILOGUE_SWIGLU,
                                                         .bias = 1,
                                                         .residual = 1,
                                                         .residual_out = 1};
static const ptxgen_gguf_linear_spec gguf_linear_spec = {.k = 4096,
                                                         .n = {4096, 4096},
                                                         .epsilon = 1e-6f,
                                                         .w_type = {PTXGEN_GGUF_Q6_K,
                                                                    PTXGEN_GGUF_Q8_0},
                                                         .x_type = PTXGEN_F32,
                                                         .y_type = PTXGEN_BF16,
                                                         .norm = 1,
                                                         .residual = PTXGEN_GGUF_LINEAR_AFTER,
                                                         .residual_out = 1,
                                                         .epilogue = PTXGEN_EPILOGUE_GEGLU,
                                                         .bias = 1};
static const ptxgen_quantise_spec quantise_spec = {.k = 20000,
                                                   .x_type = PTXGEN_BF16,
                                                   .group = PTXGEN_QUANTISE_GROUP,
                                                   .asymmetric = 1,
                                                   .producer = PTXGEN_QUANTISE_RMSNORM,
                                                   .residual = 1};
static const ptxgen_gguf_rows_spec gguf_rows_spec = {
    .k = 4096, .scale = 2, .w_type = PTXGEN_GGUF_Q3_K, .y_type = PTXGEN_BF16, .indexed = 1};

static const struct {
    const ptxgen_family *(*family)(void);
    const void *spec;
} families[] = {{ptxgen_marlin_family, &marlin_specs[0]},
                {ptxgen_marlin_family, &marlin_specs[1]},
                {ptxgen_w8a8_family, &w8a8_spec},
                {ptxgen_dense_family, &dense_spec},
                {ptxgen_sparse24_family, &sparse24_specs[0]},
                {ptxgen_sparse24_family, &sparse24_specs[1]},
                {ptxgen_rmsnorm_q4k_family, &rmsnorm_q4k_spec},
                {ptxgen_gguf_linear_family, &gguf_linear_spec},
                {ptxgen_quantise_family, &quantise_spec},
                {ptxgen_gguf_rows_family, &gguf_rows_spec}};
enum { FAMILIES = sizeof families / sizeof *families };

struct emission {
    const ptxgen_family *family;
    const void *spec;
    ptxgen_target target;
    void *plan;
    ptx_module *module;
    ptxgen_status status;
    ptxgen_error err;
};

static void make_plan(void *argument)
{
    struct emission *e = argument;
    e->status = e->family->make_plan(e->spec, &e->target, e->plan, &e->err);
}

static void emit_text(void *argument)
{
    struct emission *e = argument;
    const char *text;
    e->module = ptx_module_create(&e->target.ptx, NULL);
    e->status = e->family->emit(e->plan, e->module, &e->err);
    if (e->status == PTXGEN_OK)
        e->status = ptx_module_text(e->module, 0, &text, NULL, &e->err);
    ptx_module_destroy(e->module);
}

static void plans_take_24_and_emission_48_kilobytes(void **state)
{
    (void)state;
    static const char *const targets[] = {"sm_80", "sm_90a", "sm_120"};
    for (int f = 0; f < FAMILIES; f++)
        for (int t = 0; t < 3; t++) {
            struct emission e = {.family = families[f].family(), .spec = families[f].spec};
            char what[64];
            assert_ok(ptxgen_target_parse(targets[t], &e.target, &e.err), &e.err);
            e.plan = calloc(1, e.family->plan_bytes);
            snprintf(what, sizeof what, "%s %s plan", e.family->name, targets[t]);
            assert_stack(what, make_plan, &e, 24 * 1024);
            assert_ok(e.status, &e.err);
            snprintf(what, sizeof what, "%s %s emission", e.family->name, targets[t]);
            assert_stack(what, emit_text, &e, 48 * 1024);
            assert_ok(e.status, &e.err);
            free(e.plan);
        }
}

/* ---- references and launches: of zeros, by a driver that runs nothing ---- */

struct operation {
    const ptxgen_rmsnorm_q4k_plan *rmsnorm_q4k;
    const ptxgen_dense_plan *dense;
    ptxgen_rmsnorm_q4k *loaded_rmsnorm_q4k;
    ptxgen_dense *loaded_dense;
    struct device *device;
    void *memory;
    ptxgen_status status;
    ptxgen_error err;
};
enum { SIDE = 512, MEMORY = 4 * SIDE * SIDE };

static ptxgen_cu_result launch_nothing(ptxgen_cu_function function, unsigned grid_x,
                                       unsigned grid_y, unsigned grid_z, unsigned block_x,
                                       unsigned block_y, unsigned block_z, unsigned shared,
                                       ptxgen_cu_stream stream, void **params, void **extra)
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared, (void)stream, (void)params, (void)extra;
    return 0;
}

static void refer(void *argument)
{
    struct operation *o = argument;
    double *y = (double *)((char *)o->memory + MEMORY), *bound = y + 8 * SIDE;
    const ptxgen_rmsnorm_q4k_operands vectors = {
        .x = o->memory, .gamma = o->memory, .w = {o->memory}, .m = 8};
    const ptxgen_dense_operands matrices = {.m = 8, .x = o->memory, .w = o->memory};
    o->status =
        ptxgen_rmsnorm_q4k_reference(o->rmsnorm_q4k, &vectors, 0, 0, SIDE, y, bound, NULL, &o->err);
    if (o->status == PTXGEN_OK)
        o->status = ptxgen_dense_reference(o->dense, &matrices, y, bound, &o->err);
}

static void launch(void *argument)
{
    struct operation *o = argument;
    o->device->driver.ctx_set_current(o->device->context);
    const uint64_t in = 1 << 20, out = 1 << 24; /* never read */
    const ptxgen_rmsnorm_q4k_args vectors = {.x = in, .gamma = in, .w = {in}, .y = {out}, .m = 8};
    const ptxgen_dense_args matrices = {
        .m = 8, .x = in, .w = in, .y = out, .workspace = 2 * out, .workspace_bytes = out};
    o->status = ptxgen_rmsnorm_q4k_launch(o->loaded_rmsnorm_q4k, &vectors, NULL, &o->err);
    if (o->status == PTXGEN_OK)
        o->status = ptxgen_dense_launch(o->loaded_dense, &matrices, NULL, &o->err);
}

static void launches_take_8_and_references_24_kilobytes(void **state)
{
    (void)state;
    struct device device = open_device("cpu:sm_90");
    const ptxgen_rmsnorm_q4k_spec q4k = {.k = SIDE, .n = {SIDE}, .epsilon = 1e-6f};
    const ptxgen_dense_spec dense = {.n = SIDE, .k = SIDE, .type = PTXGEN_F16};
    ptxgen_rmsnorm_q4k_plan q4k_plan;
    ptxgen_dense_plan dense_plan;
    ptxgen_driver driver = device.driver;
    driver.launch_kernel = launch_nothing;
    ptxgen_target target = ptxgen_device_target(&device.facts);
    struct operation o = {.rmsnorm_q4k = &q4k_plan,
                          .dense = &dense_plan,
                          .device = &device,
                          .memory = calloc(1, MEMORY + 16 * SIDE * sizeof(double))};
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&q4k, &target, &q4k_plan, &o.err), &o.err);
    assert_ok(ptxgen_dense_make_plan(&dense, &target, &dense_plan, &o.err), &o.err);
    assert_stack("references", refer, &o, 24 * 1024);
    assert_ok(o.status, &o.err);
    assert_ok(ptxgen_rmsnorm_q4k_load(&driver, &q4k_plan, NULL, &o.loaded_rmsnorm_q4k, &o.err),
              &o.err);
    assert_ok(ptxgen_dense_load(&driver, &dense_plan, NULL, &o.loaded_dense, &o.err), &o.err);
    assert_stack("launches", launch, &o, 8 * 1024);
    assert_ok(o.status, &o.err);
    ptxgen_rmsnorm_q4k_destroy(o.loaded_rmsnorm_q4k);
    ptxgen_dense_destroy(o.loaded_dense);
    free(o.memory);
    device_close(&device);
}

/* ---- everything else, on the emulator ---- */

struct dispatching {
    ptxgen_dispatcher *dispatcher;
    const ptxgen_family *family;
    const void *spec;
    ptxgen_loaded *loaded;
    struct device *device;
    ptxgen_status status;
    ptxgen_error err;
};

static void dispatch(void *argument)
{
    struct dispatching *d = argument;
    d->device->driver.ctx_set_current(d->device->context);
    d->status = ptxgen_dispatch(d->dispatcher, d->family, d->spec, &d->loaded, &d->err);
}

static void dispatching_takes_64_kilobytes(void **state)
{
    (void)state;
    struct device device = open_device("cpu:sm_90");
    ptxgen_cache *cache;
    ptxgen_error err = {0};
    char folder[FOLDER_PATH];
    folder_make(folder);
    assert_ok(ptxgen_cache_open(&(ptxgen_cache_options){.folder = folder}, &cache, &err), &err);
    const ptxgen_dispatch_options options = {.cache = cache};
    for (int f = 0; f < 2 * FAMILIES; f++) { /* compiled, then from the disk */
        struct dispatching d = {.family = families[f % FAMILIES].family(),
                                .spec = families[f % FAMILIES].spec,
                                .device = &device};
        assert_ok(ptxgen_dispatcher_create(&device.driver, &options, &d.dispatcher, &d.err),
                  &d.err);
        assert_stack(d.family->name, dispatch, &d, 64 * 1024);
        assert_ok(d.status, &d.err);
        ptxgen_release(d.loaded);
        ptxgen_dispatcher_destroy(d.dispatcher);
    }
    ptxgen_cache_close(cache);
    folder_remove(folder);
    device_close(&device);
}

struct drawn {
    const struct harness *harness;
    struct device *device;
    struct check check;
    uint64_t seed;
    ptxgen_status status;
    ptxgen_error err;
};

static void run_problem(void *argument)
{
    struct drawn *p = argument;
    p->device->driver.ctx_set_current(p->device->context);
    p->status = problem_run_random(p->harness, p->seed, p->device, &p->check, &p->err);
}

/* Operands, packing, loading, a launch and the reference. */
static void problems_on_the_emulator_take_256_kilobytes(void **state)
{
    (void)state;
    static const struct harness *const harnesses[] = {
        &marlin_harness, &w8a8_harness, &dense_harness, &sparse24_harness, &rmsnorm_q4k_harness,
        &quantise_harness, &gguf_rows_harness};
    static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90"};
    for (int d = 0; d < 2; d++) {
        struct device device = open_device(devices[d]);
        for (size_t r = 0; r < sizeof harnesses / sizeof *harnesses; r++)
            for (uint64_t seed = 1; seed <= 3; seed++) {
                struct drawn p = {.harness = harnesses[r], .device = &device, .seed = seed};
                assert_stack(harnesses[r]->family()->name, run_problem, &p, 256 * 1024);
                assert_ok(p.status, &p.err);
                assert_right(&p.check);
            }
        device_close(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_take_24_and_emission_48_kilobytes),
        cmocka_unit_test(launches_take_8_and_references_24_kilobytes),
        cmocka_unit_test(dispatching_takes_64_kilobytes),
        cmocka_unit_test(problems_on_the_emulator_take_256_kilobytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
