/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime says when a call of the driver fails, word for word. */
#include "tests/runtime/fake_driver.h"
#include "tests/status.h"

#include <ptxgen/dense.h>
#include <ptxgen/device.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/emulator.h>
#include <ptxgen/kernel.h>
#include <ptxgen/rmsnorm_q4k.h>

#include <stdio.h>
#include <stdlib.h>

static ptxgen_error err;

/* ---- what is done ---- */

static ptxgen_status start(void)
{
    return ptxgen_driver_start(&fake.table, &err);
}

static ptxgen_status read_device(void)
{
    ptxgen_device_facts facts;
    return ptxgen_device_read(&fake.table, 1, &facts, &err);
}

static ptxgen_status dispatch(void)
{
    ptxgen_dispatcher *dispatcher;
    return ptxgen_dispatcher_create(&fake.table, NULL, &dispatcher, &err);
}

static ptxgen_status load(void)
{
    ptxgen_module *module = NULL;
    ptxgen_status status = ptxgen_module_load_ptx(
        &fake.table, ".version 7.0\n.target sm_80\n.address_size 64\n", NULL, &module, &err);
    ptxgen_module_destroy(module);
    return status;
}

/* Of a module that is loaded while nothing fails. */
static ptxgen_status with_module(ptxgen_status (*ask)(ptxgen_module *module))
{
    ptxgen_cu_result fail[FAKE_CALL_COUNT];
    ptxgen_module *module = NULL;
    memcpy(fail, fake.fail, sizeof fail);
    memset(fake.fail, 0, sizeof fake.fail);
    assert_ok(ptxgen_module_load_ptx(&fake.table, ".version 7.0\n.target sm_80\n", NULL, &module,
                                     &err),
              &err);
    memcpy(fake.fail, fail, sizeof fail);
    ptxgen_status status = ask(module);
    memset(fake.fail, 0, sizeof fake.fail);
    ptxgen_module_destroy(module);
    return status;
}

static ptxgen_status ask_kernel(ptxgen_module *module)
{
    ptxgen_kernel *kernel = NULL;
    ptxgen_status status = ptxgen_kernel_create(module, "axpy", 100000, &kernel, &err);
    ptxgen_kernel_destroy(kernel);
    return status;
}

static ptxgen_status kernel(void)
{
    return with_module(ask_kernel);
}

static ptxgen_status ask_clusters(ptxgen_module *module)
{
    const ptxgen_launch_shape shape = {.grid = {2, 1, 1}, .block = {64, 1, 1}};
    ptxgen_kernel *created = NULL;
    int clusters;
    assert_ok(ptxgen_kernel_create(module, "axpy", 0, &created, &err), &err);
    ptxgen_status status = ptxgen_kernel_max_clusters(created, &shape, &clusters, &err);
    ptxgen_kernel_destroy(created);
    return status;
}

static ptxgen_status clusters(void)
{
    return with_module(ask_clusters);
}

static ptxgen_status ask_variable(ptxgen_module *module)
{
    ptxgen_cu_deviceptr address;
    size_t bytes;
    return ptxgen_module_global(module, "table", &address, &bytes, &err);
}

static ptxgen_status variable(void)
{
    return with_module(ask_variable);
}

/* ---- what fails ---- */

#define UNKNOWN PTXGEN_CUDA_ERROR_UNKNOWN
#define SAYS_UNKNOWN ": CUDA_ERROR_UNKNOWN (999, as the test asked)"

static ptxgen_cu_result get_all_but_the_warps_size(int *value, ptxgen_cu_device_attribute attribute,
                                                   ptxgen_cu_device device)
{
    *value = device;
    return attribute == PTXGEN_CU_DEVICE_ATTRIBUTE_WARP_SIZE ? UNKNOWN : PTXGEN_CUDA_SUCCESS;
}

static void each_call_that_fails_is_named(void **state)
{
    (void)state;
    static const struct {
        ptxgen_status (*act)(void);
        enum fake_call call;
        ptxgen_cu_result result;
        ptxgen_status status;
        const char *says;
    } rows[] = {
        {start, FAKE_driver_get_version, PTXGEN_CUDA_ERROR_STUB_LIBRARY, PTXGEN_ERROR_NO_DRIVER,
         "this libcuda is the CUDA toolkit's stub for linking, not a driver; take its folder off "
         "the library path"},
        {start, FAKE_init, PTXGEN_CUDA_ERROR_STUB_LIBRARY, PTXGEN_ERROR_NO_DRIVER,
         "this libcuda is the CUDA toolkit's stub for linking, not a driver; take its folder off "
         "the library path"},
        {start, FAKE_driver_get_version, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "cuDriverGetVersion failed with error 999"},
        {start, FAKE_init, PTXGEN_CUDA_ERROR_NO_DEVICE, PTXGEN_ERROR_NO_DEVICE,
         "the NVIDIA driver is present but shows no GPU; if there is one, look at "
         "CUDA_VISIBLE_DEVICES and at the access rights of /dev/nvidia*"},
        {start, FAKE_init, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "the NVIDIA driver cannot start (cuInit)" SAYS_UNKNOWN},
        {start, FAKE_device_get_count, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "cuDeviceGetCount" SAYS_UNKNOWN},
        {read_device, FAKE_device_get, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "cuDeviceGet of device 1" SAYS_UNKNOWN},
        {read_device, FAKE_device_get_name, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "cuDeviceGetName" SAYS_UNKNOWN},
        {read_device, FAKE_device_total_mem, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "cuDeviceTotalMem" SAYS_UNKNOWN},
        {read_device, FAKE_device_get_uuid, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "cuDeviceGetUuid" SAYS_UNKNOWN},
        {read_device, FAKE_device_get_attribute, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "cuDeviceGetAttribute of the compute capability" SAYS_UNKNOWN},
        {load, FAKE_ctx_get_current, UNKNOWN, PTXGEN_ERROR_DRIVER, "cuCtxGetCurrent" SAYS_UNKNOWN},
        {load, FAKE_ctx_get_device, UNKNOWN, PTXGEN_ERROR_DRIVER, "cuCtxGetDevice" SAYS_UNKNOWN},
        {dispatch, FAKE_ctx_get_device, PTXGEN_CUDA_ERROR_OUT_OF_MEMORY,
         PTXGEN_ERROR_OUT_OF_MEMORY,
         "cuCtxGetDevice: CUDA_ERROR_OUT_OF_MEMORY (2, as the test asked)"},
        {load, FAKE_module_load_data_ex, PTXGEN_CUDA_ERROR_INVALID_PTX, PTXGEN_ERROR_JIT,
         "the driver's assembler refused the text: line 5: what is this?: CUDA_ERROR_INVALID_PTX "
         "(218, as the test asked)"},
        {kernel, FAKE_module_get_function, PTXGEN_CUDA_ERROR_NOT_FOUND, PTXGEN_ERROR_NOT_FOUND,
         "the module has no kernel named 'axpy'"},
        {kernel, FAKE_module_get_function, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "cuModuleGetFunction of 'axpy'" SAYS_UNKNOWN},
        {kernel, FAKE_func_get_attribute, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "cuFuncGetAttribute 4 of 'axpy'" SAYS_UNKNOWN},
        {kernel, FAKE_device_get_attribute, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "cuDeviceGetAttribute of the shared memory limit" SAYS_UNKNOWN},
        {kernel, FAKE_func_set_attribute, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "kernel 'axpy' cannot have 100000 bytes of dynamic shared memory" SAYS_UNKNOWN},
        {clusters, FAKE_occupancy_max_active_clusters, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "cluster occupancy of 'axpy'" SAYS_UNKNOWN},
        {variable, FAKE_module_get_global, PTXGEN_CUDA_ERROR_NOT_FOUND, PTXGEN_ERROR_NOT_FOUND,
         "the module has no variable named 'table'"},
        {variable, FAKE_module_get_global, UNKNOWN, PTXGEN_ERROR_DRIVER,
         "cuModuleGetGlobal of 'table'" SAYS_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_reset();
        fake_make_current(fake_context(0));
        fake.error_log = "line 5: what is this?";
        fake.fail[rows[i].call] = rows[i].result;
        assert_refusal(rows[i].act(), &err, rows[i].status, rows[i].says);
    }
    char says[200];
    fake_reset();
    fake_make_current(fake_context(0));
    fake.fail[FAKE_ctx_push_current] = UNKNOWN;
    snprintf(says, sizeof says,
             "CUDA context %p cannot be made current (cuCtxPushCurrent)" SAYS_UNKNOWN,
             (void *)fake_context(0));
    assert_refusal(load(), &err, PTXGEN_ERROR_DRIVER, says);
    fake_reset();
    fake.table.device_get_attribute = get_all_but_the_warps_size;
    assert_refusal(read_device(), &err, PTXGEN_ERROR_DRIVER,
                   "cuDeviceGetAttribute of CU_DEVICE_ATTRIBUTE_WARP_SIZE" SAYS_UNKNOWN);
}

/* ---- maps of operands ---- */

static ptxgen_cu_result no_map(ptxgen_cu_tensor_map *map, ptxgen_cu_tensor_map_data_type type,
                               unsigned int rank, void *address, const uint64_t *shape,
                               const uint64_t *pitches, const uint32_t *box, const uint32_t *steps,
                               ptxgen_cu_tensor_map_interleave interleave,
                               ptxgen_cu_tensor_map_swizzle swizzle,
                               ptxgen_cu_tensor_map_l2_promotion promotion,
                               ptxgen_cu_tensor_map_float_oob_fill fill)
{
    (void)map, (void)type, (void)rank, (void)address, (void)shape, (void)pitches, (void)box;
    (void)steps, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    return PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

static void a_map_that_cannot_be_made_is_of_a_named_operand(void **state)
{
    (void)state;
    ptxgen_driver driver;
    ptxgen_cu_context context;
    int ordinal;
    ptxgen_emulator_driver(&driver);
    assert_ok(ptxgen_driver_start(&driver, &err), &err);
    assert_ok(ptxgen_emulator_ordinal("cpu:sm_90", &ordinal, &err), &err);
    assert_int_equal(driver.ctx_create(&context, 0, ordinal), PTXGEN_CUDA_SUCCESS);
    driver.tensor_map_encode_tiled = no_map;
    const ptxgen_target target = target_of("sm_90a");

    const ptxgen_rmsnorm_q4k_spec norm = {
        .k = 512, .n = {48}, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    ptxgen_rmsnorm_q4k_plan norm_plan;
    ptxgen_rmsnorm_q4k *norm_kernel;
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&norm, &target, &norm_plan, &err), &err);
    assert_ok(ptxgen_rmsnorm_q4k_load(&driver, &norm_plan, NULL, &norm_kernel, &err), &err);
    ptxgen_rmsnorm_q4k_args norm_args = {
        .x = 0x1000, .gamma = 0x2000, .w = {0x3000}, .y = {0x8000}, .m = 1};
    assert_refusal(ptxgen_rmsnorm_q4k_launch(norm_kernel, &norm_args, NULL, &err), &err,
                   PTXGEN_ERROR_DRIVER,
                   "rmsnorm_q4k: the tensor map of w[0], 48 rows 288 bytes apart: "
                   "CUDA_ERROR_INVALID_VALUE (1, CUDA_ERROR_INVALID_VALUE)");
    ptxgen_rmsnorm_q4k_destroy(norm_kernel);

    const ptxgen_dense_spec dense = {.n = 64, .k = 128, .type = PTXGEN_F16};
    const ptxgen_tile tile = {.warp_n = 16,
                                       .warp_m = 64,
                                       .wn = 4,
                                       .wm = 1,
                                       .wk = 1,
                                       .pass_m = 16,
                                       .kind = PTXGEN_WGMMA};
    ptxgen_dense_plan dense_plan;
    ptxgen_dense *dense_kernel;
    assert_ok(ptxgen_dense_make_plan(&dense, &target, &dense_plan, &err), &err);
    assert_ok(ptxgen_dense_use_tile(&dense_plan, &tile, &err), &err);
    assert_ok(ptxgen_dense_load(&driver, &dense_plan, NULL, &dense_kernel, &err), &err);
    ptxgen_dense_args dense_args = {.x = 0x1000, .w = 0x2000, .y = 0x8000, .m = 3, .x_stride = 136,
                                    .workspace = 0x10000, .workspace_bytes = 1 << 20};
    assert_refusal(ptxgen_dense_launch(dense_kernel, &dense_args, NULL, &err), &err,
                   PTXGEN_ERROR_DRIVER,
                   "dense: the tensor map of x, 3 rows 272 bytes apart: CUDA_ERROR_INVALID_VALUE "
                   "(1, CUDA_ERROR_INVALID_VALUE)");
    ptxgen_dense_destroy(dense_kernel);
    driver.ctx_destroy(context);
}

/* ---- the size of the cache ---- */

static void the_caches_size_is_a_number_above_0(void **state)
{
    (void)state;
    static const char *const good[] = {"", "1", "1K", "18446744073709551615", "17179869183G"};
    static const char *const bad[] = {"0", "-1", "1k", "1KB", " 1", "18446744073709551616",
                                      "17179869184G", "M"};
    const ptxgen_cache_options options = {.folder = "/nowhere"};
    ptxgen_cache *cache;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        setenv("PTXGEN_CACHE_SIZE", good[i], 1);
        assert_ok(ptxgen_cache_open(&options, &cache, &err), &err);
        ptxgen_cache_close(cache);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char says[200];
        snprintf(says, sizeof says,
                 "PTXGEN_CACHE_SIZE=%s is not a size: a number of bytes above 0, or one with K, M "
                 "or G",
                 bad[i]);
        setenv("PTXGEN_CACHE_SIZE", bad[i], 1);
        assert_refusal(ptxgen_cache_open(&options, &cache, &err), &err,
                       PTXGEN_ERROR_INVALID_ARGUMENT, says);
    }
    unsetenv("PTXGEN_CACHE_SIZE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_that_fails_is_named),
        cmocka_unit_test(a_map_that_cannot_be_made_is_of_a_named_operand),
        cmocka_unit_test(the_caches_size_is_a_number_above_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
