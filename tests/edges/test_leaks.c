/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What creates, loads, finds and opens, on the emulator, keeps no memory: not after it has ended
 * and was given back, and not after it has failed, whichever of the driver's calls was the one that
 * did.
 */
#include "leaks.h"

#include "tests/dispatch/folder.h"
#include "tests/launches.h"

#include <ptxgen/device.h>
#include <ptxgen/marlin.h>
#include <ptxgen/marlin_repack.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <stdlib.h>

/* ---- a driver of which one call fails ---- */

static ptxgen_cu_result no_device(ptxgen_cu_device *device)
{
    (void)device;
    return PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

static ptxgen_cu_result no_name(char *name, int size, ptxgen_cu_device device)
{
    (void)name, (void)size, (void)device;
    return PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

static ptxgen_cu_result no_size(size_t *bytes, ptxgen_cu_device device)
{
    (void)bytes, (void)device;
    return PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

static ptxgen_cu_result no_linker(unsigned count, ptxgen_cu_jit_option *options, void **values,
                                  ptxgen_cu_link_state *state)
{
    (void)count, (void)options, (void)values, (void)state;
    return PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

static ptxgen_cu_result no_assembly(ptxgen_cu_link_state state, ptxgen_cu_jit_input_type type,
                                    void *data, size_t size, const char *name, unsigned count,
                                    ptxgen_cu_jit_option *options, void **values)
{
    (void)state, (void)type, (void)data, (void)size, (void)name;
    (void)count, (void)options, (void)values;
    return PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

static ptxgen_cu_result no_cubin(ptxgen_cu_link_state state, void **cubin, size_t *size)
{
    (void)state, (void)cubin, (void)size;
    return PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

static ptxgen_cu_result no_module(ptxgen_cu_module *module, const void *image, unsigned count,
                                  ptxgen_cu_jit_option *options, void **values)
{
    (void)module, (void)image, (void)count, (void)options, (void)values;
    return PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

static ptxgen_cu_result no_function(ptxgen_cu_function *function, ptxgen_cu_module module,
                                    const char *name)
{
    (void)function, (void)module, (void)name;
    return PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

static ptxgen_cu_result no_attribute(int *value, ptxgen_cu_function_attribute attribute,
                                     ptxgen_cu_function function)
{
    (void)value, (void)attribute, (void)function;
    return PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

enum { TROUBLES = 10 };

/* Number 0 is none. */
static ptxgen_driver driver_with(const ptxgen_driver *sound, int trouble)
{
    ptxgen_driver d = *sound;
    switch (trouble) {
    case 1: d.ctx_get_device = no_device; break;
    case 2: d.device_get_name = no_name; break;
    case 3: d.device_total_mem = no_size; break;
    case 4: d.link_create = no_linker; break;
    case 5: d.link_add_data = no_assembly; break;
    case 6: d.link_complete = no_cubin; break;
    case 7: d.module_load_data_ex = no_module; break;
    case 8: d.module_get_function = no_function; break;
    case 9: d.func_get_attribute = no_attribute; break;
    default: break;
    }
    return d;
}

/* ---- what is called ---- */

struct bench {
    struct emulated emulated;
    ptxgen_driver driver;
    ptxgen_target target;
    char folder[FOLDER_PATH];
    bool fails;
};

static int setup(void **state)
{
    static struct bench b;
    ptxgen_device_facts facts;
    ptxgen_error err;
    open_emulated(&b.emulated);
    assert_ok(ptxgen_device_read(&b.emulated.driver, 0, &facts, &err), &err);
    b.target = ptxgen_device_target(&facts);
    folder_make(b.folder);
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    folder_remove(b->folder);
    close_emulated(&b->emulated);
    return 0;
}

static const ptxgen_dense_spec dense_spec = {.n = 8, .k = 8, .max_m = 1, .type = PTXGEN_F16};
static const ptxgen_sparse24_spec sparse24_spec = {
    .n = 8, .k = 8, .max_m = 1, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16};
static const ptxgen_sparse24_spec inflated_spec = {
    .n = 8, .k = 8, .max_m = 1, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16, .tier = 1};
static const ptxgen_marlin_spec marlin_spec = {
    .k = 16, .n = 8, .group_size = 16, .max_m = 1, .type = PTXGEN_F16};
static const ptxgen_marlin_repack_spec repack_spec = {
    .k = 16, .n = 8, .group_size = 16, .type = PTXGEN_F16, .scale_type = PTXGEN_F16};
static const ptxgen_rmsnorm_q4k_spec rmsnorm_q4k_spec = {
    .k = 256, .n = {8}, .epsilon = 1, .max_m = 1};
static const ptxgen_w8a8_spec w8a8_spec = {.k = 16, .n = 8, .min_m = 1, .max_m = 1};
static const ptxgen_quantise_spec quantise_spec = {.k = 16};
static const ptxgen_gguf_rows_spec gguf_rows_spec = {.k = 32, .w_type = PTXGEN_GGUF_Q8_0};

static void load_dense(void *user)
{
    struct bench *b = user;
    ptxgen_dense_plan plan;
    ptxgen_dense *kernel = NULL;
    ptxgen_error err;
    assert_ok(ptxgen_dense_make_plan(&dense_spec, &b->target, &plan, &err), &err);
    b->fails = ptxgen_dense_load(&b->driver, &plan, NULL, &kernel, &err) != PTXGEN_OK;
    ptxgen_dense_destroy(kernel);
}

static void load_sparse24_spec(struct bench *b, const ptxgen_sparse24_spec *spec)
{
    ptxgen_sparse24_plan plan;
    ptxgen_sparse24 *kernel = NULL;
    ptxgen_error err;
    assert_ok(ptxgen_sparse24_make_plan(spec, &b->target, &plan, &err), &err);
    b->fails = ptxgen_sparse24_load(&b->driver, &plan, NULL, &kernel, &err) != PTXGEN_OK;
    ptxgen_sparse24_destroy(kernel);
}

static void load_sparse24(void *user)
{
    load_sparse24_spec(user, &sparse24_spec);
}

static void load_inflated(void *user)
{
    load_sparse24_spec(user, &inflated_spec);
}

static void load_marlin(void *user)
{
    struct bench *b = user;
    ptxgen_marlin_plan plan;
    ptxgen_marlin *kernel = NULL;
    ptxgen_error err;
    assert_ok(ptxgen_marlin_make_plan(&marlin_spec, &b->target, &plan, &err), &err);
    b->fails = ptxgen_marlin_load(&b->driver, &plan, NULL, &kernel, &err) != PTXGEN_OK;
    ptxgen_marlin_destroy(kernel);
}

static void load_repack(void *user)
{
    struct bench *b = user;
    ptxgen_marlin_repack_plan plan;
    ptxgen_marlin_repack *kernel = NULL;
    ptxgen_error err;
    assert_ok(ptxgen_marlin_repack_make_plan(&repack_spec, &b->target, &plan, &err), &err);
    b->fails = ptxgen_marlin_repack_load(&b->driver, &plan, NULL, &kernel, &err) != PTXGEN_OK;
    ptxgen_marlin_repack_destroy(kernel);
}

static void load_rmsnorm_q4k(void *user)
{
    struct bench *b = user;
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k *kernel = NULL;
    ptxgen_error err;
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&rmsnorm_q4k_spec, &b->target, &plan, &err), &err);
    b->fails = ptxgen_rmsnorm_q4k_load(&b->driver, &plan, NULL, &kernel, &err) != PTXGEN_OK;
    ptxgen_rmsnorm_q4k_destroy(kernel);
}

static void load_w8a8(void *user)
{
    struct bench *b = user;
    ptxgen_w8a8_plan plan;
    ptxgen_w8a8 *kernel = NULL;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_make_plan(&w8a8_spec, &b->target, &plan, &err), &err);
    b->fails = ptxgen_w8a8_load(&b->driver, &plan, NULL, &kernel, &err) != PTXGEN_OK;
    ptxgen_w8a8_destroy(kernel);
}

static void load_quantise(void *user)
{
    struct bench *b = user;
    ptxgen_quantise_plan plan;
    ptxgen_quantise *kernel = NULL;
    ptxgen_error err;
    assert_ok(ptxgen_quantise_make_plan(&quantise_spec, &b->target, &plan, &err), &err);
    b->fails = ptxgen_quantise_load(&b->driver, &plan, NULL, &kernel, &err) != PTXGEN_OK;
    ptxgen_quantise_destroy(kernel);
}

static void load_gguf_rows(void *user)
{
    struct bench *b = user;
    ptxgen_gguf_rows_plan plan;
    ptxgen_gguf_rows *kernel = NULL;
    ptxgen_error err;
    assert_ok(ptxgen_gguf_rows_make_plan(&gguf_rows_spec, &b->target, &plan, &err), &err);
    b->fails = ptxgen_gguf_rows_load(&b->driver, &plan, NULL, &kernel, &err) != PTXGEN_OK;
    ptxgen_gguf_rows_destroy(kernel);
}

/* A dispatcher with a cache and folders of its own, and what it dispatches. */
static void dispatch(void *user)
{
    struct bench *b = user;
    const ptxgen_dispatch_options options = {
        .no_cache = true, .dump_folder = b->folder, .override_folder = b->folder};
    ptxgen_dispatcher *dispatcher = NULL;
    ptxgen_loaded *loaded = NULL, *again = NULL;
    ptxgen_error err;
    b->fails = ptxgen_dispatcher_create(&b->driver, &options, &dispatcher, &err) != PTXGEN_OK;
    if (b->fails)
        return;
    const ptxgen_family *family = ptxgen_dense_family();
    b->fails = ptxgen_dispatch(dispatcher, family, &dense_spec, &loaded, &err) != PTXGEN_OK;
    if (ptxgen_dispatch(dispatcher, family, &dense_spec, &again, &err) == PTXGEN_OK)
        ptxgen_release(again);
    if (!b->fails)
        ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
}

/* Three kernels, of which one is released: what is still referenced goes with the dispatcher. */
static void destroy_with_references(void *user)
{
    struct bench *b = user;
    const ptxgen_dispatch_options options = {.no_cache = true};
    ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded[3];
    ptxgen_error err;
    assert_ok(ptxgen_dispatcher_create(&b->driver, &options, &dispatcher, &err), &err);
    for (uint32_t i = 0; i < 3; i++) {
        ptxgen_dense_spec spec = dense_spec;
        spec.k += 8 * i;
        assert_ok(ptxgen_dispatch(dispatcher, ptxgen_dense_family(), &spec, &loaded[i], &err),
                  &err);
    }
    ptxgen_release(loaded[1]);
    ptxgen_dispatcher_destroy(dispatcher);
}

static ptxgen_cu_result broken(void)
{
    return PTXGEN_CUDA_ERROR_LAUNCH_FAILED;
}

/* A context in which a kernel has failed: waiting for it fails. */
static void destroy_in_a_broken_context(void *user)
{
    struct bench *b = user;
    b->driver.ctx_synchronize = broken;
    destroy_with_references(b);
    b->driver.ctx_synchronize = b->emulated.driver.ctx_synchronize;
}

static void create_with_cache(void *user)
{
    struct bench *b = user;
    const ptxgen_dispatch_options options = {.dump_folder = b->folder};
    ptxgen_dispatcher *dispatcher = NULL;
    ptxgen_error err;
    b->fails = ptxgen_dispatcher_create(&b->driver, &options, &dispatcher, &err) != PTXGEN_OK;
    ptxgen_dispatcher_destroy(dispatcher);
}

static void load_text(void *user)
{
    static const char *const texts[] = {
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry e()\n{\nret;\n}\n",
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry e()\n{\nnonsense;\n}\n",
        ".version 8.0\n.target sm_80\n.address_size 64\n", "nothing", ""};
    struct bench *b = user;
    for (int i = 0; i < 5; i++) {
        ptxgen_module *module = NULL;
        ptxgen_kernel *kernel = NULL;
        ptxgen_cubin cubin = {0};
        ptxgen_error err;
        b->fails = ptxgen_module_load_ptx(&b->driver, texts[i], NULL, &module, &err) != PTXGEN_OK;
        if (!b->fails) {
            (void)ptxgen_kernel_create(module, i ? "none" : "e", 0, &kernel, &err);
            ptxgen_kernel_destroy(kernel);
            ptxgen_module_destroy(module);
        }
        if (ptxgen_assemble(&b->driver, texts[i], NULL, &cubin, &err) == PTXGEN_OK) {
            if (ptxgen_module_load_cubin(&b->driver, cubin.bytes, cubin.size, NULL, &module,
                                         &err) == PTXGEN_OK)
                ptxgen_module_destroy(module);
            ptxgen_cubin_free(&cubin);
        }
    }
}

static void open_cache(void *user)
{
    static const char *const folders[] = {"", "/there", "/dev/null/none"};
    struct bench *b = user;
    for (int i = 0; i < 3; i++) {
        char path[FOLDER_PATH + 16];
        ptxgen_cache *cache = NULL;
        ptxgen_error err;
        snprintf(path, sizeof path, "%s%s", i < 2 ? b->folder : "", folders[i]);
        b->fails =
            ptxgen_cache_open(&(ptxgen_cache_options){.folder = path}, &cache, &err) != PTXGEN_OK;
        if (b->fails)
            continue;
        ptxgen_tuning *tuning = NULL;
        ptxgen_device_facts facts;
        ptxgen_cache_removed removed;
        assert_ok(ptxgen_device_read(&b->emulated.driver, 0, &facts, &err), &err);
        (void)ptxgen_cache_prune(cache, 0, &removed, &err);
        if (ptxgen_tuning_load(cache, &facts, &tuning, &err) == PTXGEN_OK)
            ptxgen_tuning_free(tuning);
        tuning = NULL;
        if (ptxgen_tuning_parse("damaged", 7, &facts, &tuning, &err) == PTXGEN_OK)
            ptxgen_tuning_free(tuning);
        ptxgen_cache_close(cache);
    }
}

/* ---- the table ---- */

static void what_is_loaded_or_fails_to_keeps_no_memory(void **state)
{
    static const struct {
        const char *name;
        void (*call)(void *user);
        bool notices; /* any trouble */
    } calls[] = {
        {"ptxgen_dense_load", load_dense, true},
        {"ptxgen_sparse24_load", load_sparse24, true},
        {"ptxgen_sparse24_load of tier 1", load_inflated, true},
        {"ptxgen_marlin_load", load_marlin, true},
        {"ptxgen_marlin_repack_load", load_repack, true},
        {"ptxgen_rmsnorm_q4k_load", load_rmsnorm_q4k, true},
        {"ptxgen_w8a8_load", load_w8a8, true},
        {"ptxgen_quantise_load", load_quantise, true},
        {"ptxgen_gguf_rows_load", load_gguf_rows, true},
        {"ptxgen_dispatcher_create and ptxgen_dispatch", dispatch, true},
        {"ptxgen_dispatcher_create", create_with_cache, false},
        {"ptxgen_module_load_ptx", load_text, false},
        {"ptxgen_cache_open", open_cache, false},
    };
    struct bench *b = *state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int trouble = 0; trouble < TROUBLES; trouble++) {
            char name[100];
            b->driver = driver_with(&b->emulated.driver, trouble);
            snprintf(name, sizeof name, "%s, with trouble %d,", calls[i].name, trouble);
            assert_keeps_nothing(name, calls[i].call, b);
            if (calls[i].notices && !trouble)
                assert_false(b->fails);
            if (calls[i].notices && trouble >= 8)
                assert_true(b->fails);
        }
}

/* The thread's context is none, or the device is none that is planned for. */
static void a_dispatcher_that_cannot_be_created_keeps_no_memory(void **state)
{
    struct bench *b = *state;
    ptxgen_cu_context current;
    b->driver = b->emulated.driver;
    assert_int_equal(b->driver.ctx_pop_current(&current), PTXGEN_CUDA_SUCCESS);
    assert_keeps_nothing("ptxgen_dispatcher_create without a context", create_with_cache, b);
    assert_true(b->fails);
    assert_keeps_nothing("ptxgen_dense_load without a context", load_dense, b);
    assert_int_equal(b->driver.ctx_push_current(current), PTXGEN_CUDA_SUCCESS);
    b->driver = driver_with(&b->emulated.driver, 1);
    assert_keeps_nothing("ptxgen_dispatcher_create without a device", create_with_cache, b);
    assert_true(b->fails);
}

static void a_dispatcher_with_kernels_left_keeps_no_memory(void **state)
{
    struct bench *b = *state;
    b->driver = b->emulated.driver;
    assert_keeps_nothing("a dispatcher of which kernels are referenced", destroy_with_references,
                         b);
    assert_keeps_nothing("a dispatcher in a broken context", destroy_in_a_broken_context, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_loaded_or_fails_to_keeps_no_memory),
        cmocka_unit_test(a_dispatcher_with_kernels_left_keeps_no_memory),
        cmocka_unit_test(a_dispatcher_that_cannot_be_created_keeps_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
