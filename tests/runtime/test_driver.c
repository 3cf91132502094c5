/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a driver library and starting a table. Library paths come from the build. */
#include "tests/runtime/check.h"
#include "tests/runtime/fake_driver.h"

#include <dlfcn.h>
#include <stdio.h>

static ptxgen_driver driver;
static ptxgen_error err;

static void assert_table_is_zero(void)
{
    static const ptxgen_driver zero;
    assert_memory_equal(&driver, &zero, sizeof zero);
}

static void a_missing_library_is_named(void **state)
{
    (void)state;
    assert_fails(ptxgen_driver_open(&driver, "/nowhere/libcuda.so.1", &err), PTXGEN_ERROR_NO_DRIVER,
                 err, "'/nowhere/libcuda.so.1' cannot be opened");
    assert_says(err, "No such file");
    assert_table_is_zero();
}

static void a_library_that_is_no_driver_is_refused(void **state)
{
    (void)state;
    assert_fails(ptxgen_driver_open(&driver, NO_DRIVER_LIBRARY, &err), PTXGEN_ERROR_NO_DRIVER, err,
                 "has no cuDriverGetVersion");
    assert_table_is_zero();
}

static void a_missing_entry_point_is_named_with_both_versions(void **state)
{
    (void)state;
    assert_fails(ptxgen_driver_open(&driver, INCOMPLETE_DRIVER_LIBRARY, &err),
                 PTXGEN_ERROR_DRIVER_TOO_OLD, err,
                 "has no cuDeviceGetCount, which came with CUDA 2.0, though it reports CUDA 11.2");
    assert_table_is_zero();
}

static void a_driver_before_cuda_11_is_too_old(void **state)
{
    (void)state;
    assert_fails(ptxgen_driver_open(&driver, OLD_DRIVER_LIBRARY, &err), PTXGEN_ERROR_DRIVER_TOO_OLD,
                 err, "supports CUDA 10.2, and ptxgen needs a driver for CUDA 11.0 or later");
}

static void the_oldest_version_that_will_do_is_cuda_11_0(void **state)
{
    (void)state;
    fake_reset();
    fake.version = PTXGEN_DRIVER_MIN_VERSION;
    assert_int_equal(ptxgen_driver_start(&fake.table, &err), PTXGEN_OK);
    assert_int_equal(fake.table.version, 11000);
    fake.version = PTXGEN_DRIVER_MIN_VERSION - 10;
    assert_fails(ptxgen_driver_start(&fake.table, &err), PTXGEN_ERROR_DRIVER_TOO_OLD, err,
                 "supports CUDA 10.99, and ptxgen needs a driver for CUDA 11.0");
}

static void a_whole_library_fills_every_member_with_its_symbol(void **state)
{
    (void)state;
    assert_int_equal(ptxgen_driver_open(&driver, WHOLE_DRIVER_LIBRARY, &err), PTXGEN_OK);
    assert_int_equal(driver.version, 12040);
    assert_int_equal(driver.device_count, 1);
#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    assert_non_null(driver.member);                                                                \
    assert_ptr_equal(*(void **)&driver.member, dlsym(driver.library, symbol));
#include <ptxgen/driver_calls.def>
    ptxgen_driver_close(&driver);
    assert_table_is_zero();
}

static void a_null_path_means_libcuda(void **state)
{
    (void)state;
    ptxgen_status status = ptxgen_driver_open(&driver, NULL, &err);
    if (status == PTXGEN_OK)
        ptxgen_driver_close(&driver);
    else
        assert_in_range(err.status, PTXGEN_ERROR_NO_DRIVER, PTXGEN_ERROR_DRIVER);
    if (status == PTXGEN_ERROR_NO_DRIVER)
        assert_says(err, "libcuda");
}

static void closing_an_unopened_or_null_table_does_nothing(void **state)
{
    (void)state;
    memset(&driver, 0, sizeof driver);
    ptxgen_driver_close(&driver);
    ptxgen_driver_close(NULL);
}

static void null_tables_are_refused(void **state)
{
    (void)state;
    assert_fails(ptxgen_driver_open(NULL, NULL, &err), PTXGEN_ERROR_INVALID_ARGUMENT, err, "NULL");
    assert_fails(ptxgen_driver_start(NULL, &err), PTXGEN_ERROR_INVALID_ARGUMENT, err, "NULL");
}

static void start_names_the_required_member_that_is_null(void **state)
{
    (void)state;
    fake_reset();
    fake.table.launch_kernel = NULL;
    assert_fails(ptxgen_driver_start(&fake.table, &err), PTXGEN_ERROR_INVALID_ARGUMENT, err,
                 "no cuLaunchKernel,");
}

static void start_does_without_optional_members(void **state)
{
    (void)state;
    fake_reset();
    fake.table.launch_kernel_ex = NULL;
    fake.table.tensor_map_encode_tiled = NULL;
    fake.table.get_proc_address = NULL;
    assert_int_equal(ptxgen_driver_start(&fake.table, &err), PTXGEN_OK);
}

static void a_missing_optional_call_is_named_when_needed(void **state)
{
    (void)state;
    fake_reset();
    size_t encode = offsetof(ptxgen_driver, tensor_map_encode_tiled);
    assert_int_equal(ptxgen_driver_require(&fake.table, encode, &err), PTXGEN_OK);
    fake.table.tensor_map_encode_tiled = NULL;
    assert_fails(ptxgen_driver_require(&fake.table, encode, &err), PTXGEN_ERROR_DRIVER_TOO_OLD, err,
                 "no cuTensorMapEncodeTiled, which came with CUDA 12.0; it reports CUDA 12.4");
    assert_fails(ptxgen_driver_require(&fake.table, 1, &err), PTXGEN_ERROR_INVALID_ARGUMENT, err,
                 "offset 1");
}

static void start_says_when_there_is_no_device(void **state)
{
    (void)state;
    fake_reset();
    fake.fail[FAKE_init] = PTXGEN_CUDA_ERROR_NO_DEVICE;
    assert_fails(ptxgen_driver_start(&fake.table, &err), PTXGEN_ERROR_NO_DEVICE, err,
                 "shows no GPU");
    fake_reset();
    fake.device_count = 0;
    assert_fails(ptxgen_driver_start(&fake.table, &err), PTXGEN_ERROR_NO_DEVICE, err,
                 "shows no GPU");
}

static void start_names_the_error_of_cu_init(void **state)
{
    (void)state;
    fake_reset();
    fake.fail[FAKE_init] = PTXGEN_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    assert_fails(
        ptxgen_driver_start(&fake.table, &err), PTXGEN_ERROR_DRIVER, err,
        "cannot start (cuInit): CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803, as the test asked)");
}

static void start_recognises_the_linking_stub(void **state)
{
    (void)state;
    fake_reset();
    fake.fail[FAKE_init] = PTXGEN_CUDA_ERROR_STUB_LIBRARY;
    assert_fails(ptxgen_driver_start(&fake.table, &err), PTXGEN_ERROR_NO_DRIVER, err, "stub");
    fake_reset();
    fake.fail[FAKE_driver_get_version] = PTXGEN_CUDA_ERROR_STUB_LIBRARY;
    assert_fails(ptxgen_driver_start(&fake.table, &err), PTXGEN_ERROR_NO_DRIVER, err, "stub");
}

/* The status of each result, a second time: one without a case here does not compile. */
static ptxgen_status status_of(ptxgen_cu_result result)
{
    switch (result) {
    case PTXGEN_CUDA_ERROR_OUT_OF_MEMORY: return PTXGEN_ERROR_OUT_OF_MEMORY;
    case PTXGEN_CUDA_ERROR_NO_DEVICE: return PTXGEN_ERROR_NO_DEVICE;
    case PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU: return PTXGEN_ERROR_WRONG_DEVICE;
    case PTXGEN_CUDA_ERROR_UNSUPPORTED_PTX_VERSION: return PTXGEN_ERROR_DRIVER_TOO_OLD;
    case PTXGEN_CUDA_ERROR_INVALID_PTX: /* what the assembler says of a text, or that there is none
                                         */
    case PTXGEN_CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case PTXGEN_CUDA_ERROR_JIT_COMPILATION_DISABLED: return PTXGEN_ERROR_JIT;
    case PTXGEN_CUDA_SUCCESS:
    case PTXGEN_CUDA_ERROR_INVALID_VALUE:
    case PTXGEN_CUDA_ERROR_NOT_INITIALIZED:
    case PTXGEN_CUDA_ERROR_DEINITIALIZED:
    case PTXGEN_CUDA_ERROR_STUB_LIBRARY:
    case PTXGEN_CUDA_ERROR_DEVICE_UNAVAILABLE:
    case PTXGEN_CUDA_ERROR_INVALID_DEVICE:
    case PTXGEN_CUDA_ERROR_INVALID_IMAGE:
    case PTXGEN_CUDA_ERROR_INVALID_CONTEXT:
    case PTXGEN_CUDA_ERROR_INVALID_SOURCE:
    case PTXGEN_CUDA_ERROR_OPERATING_SYSTEM:
    case PTXGEN_CUDA_ERROR_INVALID_HANDLE:
    case PTXGEN_CUDA_ERROR_ILLEGAL_STATE:
    case PTXGEN_CUDA_ERROR_NOT_FOUND:
    case PTXGEN_CUDA_ERROR_NOT_READY:
    case PTXGEN_CUDA_ERROR_ILLEGAL_ADDRESS:
    case PTXGEN_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case PTXGEN_CUDA_ERROR_LAUNCH_TIMEOUT:
    case PTXGEN_CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE:
    case PTXGEN_CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case PTXGEN_CUDA_ERROR_ASSERT:
    case PTXGEN_CUDA_ERROR_HARDWARE_STACK_ERROR:
    case PTXGEN_CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case PTXGEN_CUDA_ERROR_MISALIGNED_ADDRESS:
    case PTXGEN_CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case PTXGEN_CUDA_ERROR_INVALID_PC:
    case PTXGEN_CUDA_ERROR_LAUNCH_FAILED:
    case PTXGEN_CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
    case PTXGEN_CUDA_ERROR_NOT_PERMITTED:
    case PTXGEN_CUDA_ERROR_NOT_SUPPORTED:
    case PTXGEN_CUDA_ERROR_SYSTEM_NOT_READY:
    case PTXGEN_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case PTXGEN_CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    case PTXGEN_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case PTXGEN_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case PTXGEN_CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case PTXGEN_CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case PTXGEN_CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case PTXGEN_CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case PTXGEN_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case PTXGEN_CUDA_ERROR_CAPTURED_EVENT:
    case PTXGEN_CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
    case PTXGEN_CUDA_ERROR_TIMEOUT:
    case PTXGEN_CUDA_ERROR_UNKNOWN: return PTXGEN_ERROR_DRIVER;
    }
    return PTXGEN_ERROR_DRIVER;
}

static void each_result_has_its_status_and_is_named(void **state)
{
    static const struct {
        ptxgen_cu_result result;
        const char *name;
    } results[] = {
#define RESULT(name, value) {PTXGEN_##name, #name},
        PTXGEN_CU_RESULTS(RESULT)
#undef RESULT
    };
    char words[100];
    (void)state;
    fake_reset();
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        ptxgen_cu_result result = results[i].result;
        snprintf(words, sizeof words, "copy of 7 bytes: %s (%d, as the test asked)",
                 results[i].name, (int)result);
        ptxgen_status status = ptxgen_driver_fail(&fake.table, result, &err, "copy of %d bytes", 7);
        if (status != status_of(result) || err.status != status || strcmp(err.message, words) != 0)
            fail_msg("%s: status %d, '%s'", results[i].name, (int)status, err.message);
    }
    assert_int_equal(ptxgen_driver_fail(&fake.table, (ptxgen_cu_result)12345, &err, "x"),
                     PTXGEN_ERROR_DRIVER);
    assert_says(err, "x: unknown driver error (12345");
}

/* The toolkit's stub exports every symbol of the real library, so this proves their spelling. */
static void the_toolkits_libcuda_has_every_symbol(void **state)
{
    (void)state;
    if (!*TOOLKIT_STUB_LIBRARY) {
        print_message("this machine has no CUDA toolkit with a libcuda stub\n");
        skip();
    }
    void *library = dlopen(TOOLKIT_STUB_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    if (!dlsym(library, symbol))                                                                   \
        fail_msg("libcuda exports no %s", symbol);
#include <ptxgen/driver_calls.def>
    dlclose(library);
    assert_fails(ptxgen_driver_open(&driver, TOOLKIT_STUB_LIBRARY, &err), PTXGEN_ERROR_NO_DRIVER,
                 err, "stub");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_library_is_named),
        cmocka_unit_test(a_library_that_is_no_driver_is_refused),
        cmocka_unit_test(a_missing_entry_point_is_named_with_both_versions),
        cmocka_unit_test(a_driver_before_cuda_11_is_too_old),
        cmocka_unit_test(the_oldest_version_that_will_do_is_cuda_11_0),
        cmocka_unit_test(a_whole_library_fills_every_member_with_its_symbol),
        cmocka_unit_test(a_null_path_means_libcuda),
        cmocka_unit_test(closing_an_unopened_or_null_table_does_nothing),
        cmocka_unit_test(null_tables_are_refused),
        cmocka_unit_test(start_names_the_required_member_that_is_null),
        cmocka_unit_test(start_does_without_optional_members),
        cmocka_unit_test(a_missing_optional_call_is_named_when_needed),
        cmocka_unit_test(start_says_when_there_is_no_device),
        cmocka_unit_test(start_names_the_error_of_cu_init),
        cmocka_unit_test(start_recognises_the_linking_stub),
        cmocka_unit_test(each_result_has_its_status_and_is_named),
        cmocka_unit_test(the_toolkits_libcuda_has_every_symbol),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
