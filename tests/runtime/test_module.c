/* SPDX-License-Identifier: Apache-2.0 */
/* Loading PTX and cubins, and assembling, on a fake driver. */
#include "tests/runtime/check.h"
#include "tests/runtime/fake_driver.h"
#include "tests/runtime/tiny_cubin.h"

#include <ptxgen/kernel.h>

static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n";
static ptxgen_module *module;
static ptxgen_cubin cubin;
static ptxgen_error err;

static int reset(void **state)
{
    (void)state;
    fake_reset();
    fake_make_current(fake_context(0));
    module = NULL;
    return 0;
}

/* Whatever happened, the thread has its own context back and nothing stays loaded. */
static int check_balance(void **state)
{
    (void)state;
    assert_int_equal(fake.modules, 0);
    assert_int_equal(fake.linkers, 0);
    assert_int_equal(fake.calls[FAKE_ctx_push_current], fake.calls[FAKE_ctx_pop_current]);
    return 0;
}

static void ptx_loads_into_the_current_context(void **state)
{
    (void)state;
    assert_int_equal(ptxgen_module_load_ptx(&fake.table, text, NULL, &module, &err), PTXGEN_OK);
    assert_non_null(module);
    assert_int_equal(fake.modules, 1);
    assert_int_equal(fake.depth, 1);
    ptxgen_module_destroy(module);
}

static void ptx_loads_into_the_context_of_the_options(void **state)
{
    (void)state;
    fake_make_current(NULL);
    ptxgen_module_options options = {.context = fake_context(1)};
    assert_int_equal(ptxgen_module_load_ptx(&fake.table, text, &options, &module, &err), PTXGEN_OK);
    assert_int_equal(fake.depth, 0);
    ptxgen_module_destroy(module);
}

static void no_context_at_all_is_an_error(void **state)
{
    (void)state;
    fake_make_current(NULL);
    assert_fails(ptxgen_module_load_ptx(&fake.table, text, NULL, &module, &err),
                 PTXGEN_ERROR_WRONG_DEVICE, err, "no CUDA context is current in this thread");
    assert_null(module);
}

static void a_context_that_cannot_be_pushed_is_an_error(void **state)
{
    (void)state;
    fake.fail[FAKE_ctx_push_current] = PTXGEN_CUDA_ERROR_CONTEXT_IS_DESTROYED;
    assert_fails(ptxgen_module_load_ptx(&fake.table, text, NULL, &module, &err),
                 PTXGEN_ERROR_DRIVER, err, "CUDA_ERROR_CONTEXT_IS_DESTROYED");
    fake.calls[FAKE_ctx_push_current] = 0; /* it did not push */
}

static void text_for_another_device_is_refused_before_the_driver_sees_it(void **state)
{
    (void)state;
    ptxgen_module_options options = {.context = fake_context(1)};
    assert_fails(ptxgen_module_load_ptx(&fake.table, ".version 8.0\n.target sm_90a\n", &options,
                                        &module, &err),
                 PTXGEN_ERROR_WRONG_DEVICE, err, "sm_90a");
    assert_fails(ptxgen_module_load_ptx(&fake.table, ".version 9.0\n.target sm_80\n", &options,
                                        &module, &err),
                 PTXGEN_ERROR_DRIVER_TOO_OLD, err, "PTX 9.0");
    assert_int_equal(fake.calls[FAKE_module_load_data_ex], 0);
}

static void the_assemblers_complaint_is_in_the_sentence(void **state)
{
    (void)state;
    fake.fail[FAKE_module_load_data_ex] = PTXGEN_CUDA_ERROR_INVALID_PTX;
    fake.error_log = "\nptxas line 7; error : Unknown symbol 'q'\nptxas fatal : aborted\n\n";
    char log[256] = "?";
    ptxgen_module_options options = {.log = log, .log_size = sizeof log};
    assert_fails(ptxgen_module_load_ptx(&fake.table, text, &options, &module, &err),
                 PTXGEN_ERROR_JIT, err,
                 "refused the text: ptxas line 7; error : Unknown symbol 'q'; ptxas fatal : "
                 "aborted: CUDA_ERROR_INVALID_PTX (218");
    assert_string_equal(log, fake.error_log);
    assert_null(module);
}

static void a_complaint_makes_any_refusal_a_jit_error(void **state)
{
    (void)state;
    fake.fail[FAKE_module_load_data_ex] = PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU;
    fake.error_log = "too much shared data";
    assert_fails(ptxgen_module_load_ptx(&fake.table, text, NULL, &module, &err), PTXGEN_ERROR_JIT,
                 err, "too much shared data");
    assert_int_equal(ptxgen_module_load_ptx(&fake.table, text, NULL, &module, NULL),
                     PTXGEN_ERROR_JIT);
}

static void a_long_complaint_leaves_room_for_the_drivers_name_of_it(void **state)
{
    (void)state;
    static char flood[20000];
    memset(flood, 'e', sizeof flood - 1);
    fake.fail[FAKE_module_load_data_ex] = PTXGEN_CUDA_ERROR_INVALID_PTX;
    fake.error_log = flood;
    char log[64];
    ptxgen_module_options options = {.log = log, .log_size = sizeof log};
    assert_fails(ptxgen_module_load_ptx(&fake.table, text, &options, &module, &err),
                 PTXGEN_ERROR_JIT, err, "eee: CUDA_ERROR_INVALID_PTX");
    assert_int_equal(strlen(log), sizeof log - 1);
}

static void a_silent_refusal_still_names_the_result(void **state)
{
    (void)state;
    fake.fail[FAKE_module_load_data_ex] = PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    assert_fails(ptxgen_module_load_ptx(&fake.table, text, NULL, &module, &err),
                 PTXGEN_ERROR_OUT_OF_MEMORY, err,
                 "cannot load the code: CUDA_ERROR_OUT_OF_MEMORY (2");
}

static void a_missing_jit_compiler_is_named(void **state)
{
    (void)state;
    fake.fail[FAKE_module_load_data_ex] = PTXGEN_CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    assert_fails(ptxgen_module_load_ptx(&fake.table, text, NULL, &module, &err), PTXGEN_ERROR_JIT,
                 err, "libnvidia-ptxjitcompiler");
}

static void the_log_of_a_success_is_the_callers(void **state)
{
    (void)state;
    fake.info_log = "Used 42 registers, 8 bytes spill stores";
    char log[16] = "?";
    ptxgen_module_options options = {
        .log = log, .log_size = sizeof log, .max_registers = 96, .line_info = true};
    assert_int_equal(ptxgen_module_load_ptx(&fake.table, text, &options, &module, &err), PTXGEN_OK);
    assert_string_equal(log, "Used 42 registe");
    assert_int_equal(fake.max_registers, 96);
    assert_true(fake.line_info);
    ptxgen_module_destroy(module);
}

static void options_not_given_are_not_passed(void **state)
{
    (void)state;
    fake.info_log = "unheard";
    assert_int_equal(ptxgen_module_load_ptx(&fake.table, text, NULL, &module, &err), PTXGEN_OK);
    assert_int_equal(fake.max_registers, -1);
    assert_false(fake.line_info);
    ptxgen_module_destroy(module);
}

static void a_cubin_loads_and_a_cut_one_never_reaches_the_driver(void **state)
{
    (void)state;
    struct tiny_cubin tiny = tiny_cubin_make();
    assert_int_equal(ptxgen_module_load_cubin(&fake.table, &tiny, sizeof tiny, NULL, &module, &err),
                     PTXGEN_OK);
    ptxgen_module_destroy(module);
    fake_forget_calls();
    assert_fails(ptxgen_module_load_cubin(&fake.table, &tiny, sizeof tiny - 1, NULL, &module, &err),
                 PTXGEN_ERROR_MALFORMED, err, "cut short");
    assert_int_equal(fake.total, 0);
    assert_null(module);
}

static void a_cubin_for_another_architecture_is_the_wrong_device(void **state)
{
    (void)state;
    struct tiny_cubin tiny = tiny_cubin_make();
    fake.fail[FAKE_module_load_data_ex] = PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU;
    assert_fails(ptxgen_module_load_cubin(&fake.table, &tiny, sizeof tiny, NULL, &module, &err),
                 PTXGEN_ERROR_WRONG_DEVICE, err, "CUDA_ERROR_NO_BINARY_FOR_GPU");
}

static void globals_are_found_or_named(void **state)
{
    (void)state;
    ptxgen_cu_deviceptr address;
    size_t bytes;
    assert_int_equal(ptxgen_module_load_ptx(&fake.table, text, NULL, &module, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_module_global(module, "table", &address, &bytes, &err), PTXGEN_OK);
    assert_int_equal(address, 0x7000);
    assert_int_equal(bytes, 64);
    fake.fail[FAKE_module_get_global] = PTXGEN_CUDA_ERROR_NOT_FOUND;
    assert_fails(ptxgen_module_global(module, "tabel", &address, &bytes, &err),
                 PTXGEN_ERROR_NOT_FOUND, err, "no variable named 'tabel'");
    ptxgen_module_destroy(module);
}

static void assembling_copies_the_cubin_before_the_linker_goes(void **state)
{
    (void)state;
    assert_int_equal(ptxgen_assemble(&fake.table, text, NULL, &cubin, &err), PTXGEN_OK);
    assert_int_equal(cubin.size, 16);
    assert_memory_equal(cubin.bytes, "machine code....", 16);
    assert_int_equal(fake.linked_bytes, sizeof text);
    assert_int_equal(fake.calls[FAKE_link_destroy], 1);
    ptxgen_cubin_free(&cubin);
    assert_null(cubin.bytes);
    ptxgen_cubin_free(&cubin);
    ptxgen_cubin_free(NULL);
}

static void assembling_reports_the_log_of_each_step(void **state)
{
    (void)state;
    fake.error_log = "ptxas line 3; error";
    fake.fail[FAKE_link_add_data] = PTXGEN_CUDA_ERROR_INVALID_PTX;
    assert_fails(ptxgen_assemble(&fake.table, text, NULL, &cubin, &err), PTXGEN_ERROR_JIT, err,
                 "ptxas line 3; error");
    assert_null(cubin.bytes);
    assert_int_equal(fake.calls[FAKE_link_complete], 0);
    assert_int_equal(fake.calls[FAKE_link_destroy], 1);

    fake.fail[FAKE_link_add_data] = PTXGEN_CUDA_SUCCESS;
    fake.fail[FAKE_link_complete] = PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    assert_fails(ptxgen_assemble(&fake.table, text, NULL, &cubin, &err), PTXGEN_ERROR_OUT_OF_MEMORY,
                 err, "CUDA_ERROR_OUT_OF_MEMORY");
    fake.fail[FAKE_link_create] = PTXGEN_CUDA_ERROR_INVALID_VALUE;
    assert_fails(ptxgen_assemble(&fake.table, text, NULL, &cubin, &err), PTXGEN_ERROR_DRIVER, err,
                 "CUDA_ERROR_INVALID_VALUE");
}

static void null_arguments_are_refused(void **state)
{
    (void)state;
    assert_fails(ptxgen_module_load_ptx(&fake.table, NULL, NULL, &module, &err),
                 PTXGEN_ERROR_INVALID_ARGUMENT, err, "NULL");
    assert_fails(ptxgen_module_load_cubin(NULL, text, 1, NULL, &module, &err),
                 PTXGEN_ERROR_INVALID_ARGUMENT, err, "NULL");
    assert_fails(ptxgen_assemble(&fake.table, text, NULL, NULL, &err),
                 PTXGEN_ERROR_INVALID_ARGUMENT, err, "NULL");
    assert_fails(ptxgen_module_global(NULL, "x", NULL, NULL, &err), PTXGEN_ERROR_INVALID_ARGUMENT,
                 err, "NULL");
    ptxgen_module_destroy(NULL);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, reset, check_balance)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(ptx_loads_into_the_current_context),
        CASE(ptx_loads_into_the_context_of_the_options),
        CASE(no_context_at_all_is_an_error),
        CASE(a_context_that_cannot_be_pushed_is_an_error),
        CASE(text_for_another_device_is_refused_before_the_driver_sees_it),
        CASE(the_assemblers_complaint_is_in_the_sentence),
        CASE(a_complaint_makes_any_refusal_a_jit_error),
        CASE(a_long_complaint_leaves_room_for_the_drivers_name_of_it),
        CASE(a_silent_refusal_still_names_the_result),
        CASE(a_missing_jit_compiler_is_named),
        CASE(the_log_of_a_success_is_the_callers),
        CASE(options_not_given_are_not_passed),
        CASE(a_cubin_loads_and_a_cut_one_never_reaches_the_driver),
        CASE(a_cubin_for_another_architecture_is_the_wrong_device),
        CASE(globals_are_found_or_named),
        CASE(assembling_copies_the_cubin_before_the_linker_goes),
        CASE(assembling_reports_the_log_of_each_step),
        CASE(null_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
