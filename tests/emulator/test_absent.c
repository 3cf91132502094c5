/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is built without the emulator: src/emulator/absent.c, linked before the emulator.
 */
#include <ptxgen/emulator.h>

#include "tests/status.h"

#define ABSENT "this libptxgen was built without its emulator"

static void a_driver_table_without_emulator_cannot_start(void **state)
{
    (void)state;
    ptxgen_driver driver;
    ptxgen_error err = {0};
    const char *text = NULL;
    ptxgen_emulator_driver(NULL);
    ptxgen_emulator_driver(&driver);
    assert_refusal(ptxgen_driver_start(&driver, &err), &err, PTXGEN_ERROR_DRIVER,
                   "the NVIDIA driver cannot start (cuInit): CUDA_ERROR_NOT_SUPPORTED (801, " ABSENT
                   ")");
    assert_int_equal(driver.ctx_create(NULL, 0, 0), PTXGEN_CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(driver.get_error_name(PTXGEN_CUDA_SUCCESS, &text),
                     PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(driver.get_error_string(PTXGEN_CUDA_SUCCESS, &text),
                     PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(driver.driver_get_version(NULL), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_null(text);
}

static void the_other_calls_say_that_nothing_is_emulated(void **state)
{
    (void)state;
    int ordinal = -1;
    uint64_t warps = 1, lanes = 1;
    double seconds = 1;
    ptxgen_error err = {0};
    ptxgen_emulator_options options = {0};
    ptxgen_emulator_profile *profile = (void *)&options;
    ptxgen_emulator_fault fault = {.check = PTXGEN_CHECK_TRAP};
    assert_refusal(ptxgen_emulator_ordinal("cpu:sm_80", &ordinal, &err), &err,
                   PTXGEN_ERROR_NO_DEVICE, "there is no device 'cpu:sm_80': " ABSENT);
    assert_int_equal(ordinal, -1);
    assert_refusal(ptxgen_emulator_ordinal(NULL, &ordinal, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT,
                   "the device's name, or the place for its ordinal, is NULL");
    assert_refusal(ptxgen_emulator_set_options(NULL, &options, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT, "no context is emulated: " ABSENT);
    assert_refusal(ptxgen_emulator_profile_take(NULL, &profile, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT, "no context is emulated: " ABSENT);
    assert_null(profile);
    assert_int_equal(ptxgen_emulator_profile_count(NULL), 0);
    assert_null(ptxgen_emulator_profile_line(NULL, 0).kernel);
    ptxgen_emulator_profile_free(NULL);
    ptxgen_emulator_clear_fault(NULL);
    ptxgen_emulator_last_fault(NULL, &fault);
    assert_int_equal(fault.check, PTXGEN_CHECK_NONE);
    ptxgen_emulator_last_launch(NULL, &warps, &lanes, &seconds);
    assert_true(warps == 0 && lanes == 0 && seconds == 0);
    ptxgen_emulator_last_fault(NULL, NULL);
    ptxgen_emulator_last_launch(NULL, NULL, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_table_without_emulator_cannot_start),
        cmocka_unit_test(the_other_calls_say_that_nothing_is_emulated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
