/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch refuses, before anything runs, and what it says that it needs; on the emulator. */
#include "specs.h"
#include "tests/launches.h"

enum { K = 256, N = 64, MOST_M = 40 };

struct bench {
    struct emulated emulated;
    ptxgen_marlin *kernel;
    ptxgen_marlin_args args;
};

static int setup(void **state)
{
    static struct bench b;
    memset(&b, 0, sizeof b);
    open_emulated(&b.emulated);
    ptxgen_marlin_spec spec = plain_spec(K, N);
    spec.zeros = spec.act_order = spec.bias = spec.residual = 1;
    spec.epilogue = PTXGEN_EPILOGUE_SWIGLU;
    spec.max_m = MOST_M;
    ptxgen_marlin_plan plan = plan_of(&spec, "sm_90");
    ptxgen_error err;
    assert_ok(ptxgen_marlin_load(&b.emulated.driver, &plan, NULL, &b.kernel, &err), &err);
    b.args = (ptxgen_marlin_args){.m = 2,
                                  .x = 0x10000,
                                  .codes = 0x20000,
                                  .scales = 0x30000,
                                  .zeros = 0x40000,
                                  .order = 0x50000,
                                  .bias = 0x60000,
                                  .up_bias = 0x70000,
                                  .residual = 0x80000,
                                  .y = 0x90000,
                                  .workspace = 0x100000,
                                  .workspace_bytes = 1 << 30};
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    ptxgen_marlin_destroy(b->kernel);
    close_emulated(&b->emulated);
    return 0;
}

static void refused(const void *bench, const void *args, const char *words)
{
    const struct bench *b = bench;
    ptxgen_error err = {0};
    assert_refused(ptxgen_marlin_launch(b->kernel, args, NULL, &err), &err, words);
}

static void no_rows_launch_nothing_and_leave_no_error(void **state)
{
    struct bench *b = *state;
    ptxgen_marlin_args args = {.m = 0};
    ptxgen_error err;
    uint64_t bytes = 1;
    assert_int_equal(ptxgen_marlin_launch(b->kernel, &args, NULL, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_marlin_workspace_bytes(b->kernel, &args, &bytes, &err), PTXGEN_OK);
    assert_int_equal(bytes, 0);
    assert_int_equal(b->emulated.driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
}

static void more_rows_than_planned_are_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_marlin_args args = b->args;
    ptxgen_error err;
    uint64_t bytes;
    args.m = MOST_M + 1;
    refused(b, &args, "m = 41 is above the 40 tokens");
    assert_int_equal(ptxgen_marlin_workspace_bytes(b->kernel, &args, &bytes, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_null(ptxgen_marlin_attributes(b->kernel, args.m));
    assert_non_null(ptxgen_marlin_attributes(b->kernel, MOST_M));
}

static void null_and_misaligned_addresses_are_refused_by_name(void **state)
{
    struct bench *b = *state;
    static const struct address addresses[] = {
        {"x", offsetof(ptxgen_marlin_args, x), 2},
        {"codes", offsetof(ptxgen_marlin_args, codes), 16},
        {"scales", offsetof(ptxgen_marlin_args, scales), 16},
        {"zeros", offsetof(ptxgen_marlin_args, zeros), 16},
        {"order", offsetof(ptxgen_marlin_args, order), 16},
        {"bias", offsetof(ptxgen_marlin_args, bias), 2},
        {"up_bias", offsetof(ptxgen_marlin_args, up_bias), 2},
        {"residual", offsetof(ptxgen_marlin_args, residual), 2},
        {"y", offsetof(ptxgen_marlin_args, y), 2},
        {"workspace", offsetof(ptxgen_marlin_args, workspace), 16},
    };
    ptxgen_marlin_args args = b->args;
    assert_addresses_are_refused_by_name("marlin", addresses, sizeof addresses / sizeof *addresses,
                                         &args, refused, b);
}

static void strides_below_a_row_are_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_marlin_args args = b->args;
    args.x_stride = K - 1;
    refused(b, &args, "row stride of x, 255, is below its 256");
    args = b->args;
    args.residual_stride = N - 1;
    refused(b, &args, "row stride of residual, 63");
    args = b->args;
    args.y_stride = 1;
    refused(b, &args, "row stride of y, 1, is below its 64");
}

static void a_workspace_that_is_too_small_is_refused_with_what_it_takes(void **state)
{
    struct bench *b = *state;
    ptxgen_marlin_args args = b->args;
    ptxgen_error err;
    uint64_t bytes;
    char words[80];
    assert_int_equal(ptxgen_marlin_workspace_bytes(b->kernel, &args, &bytes, &err), PTXGEN_OK);
    assert_true(bytes >= 2 * K * 2); /* the gathered activations alone */
    args.workspace_bytes = bytes - 1;
    snprintf(words, sizeof words, "%llu bytes is below the %llu that m = 2 needs",
             (unsigned long long)bytes - 1, (unsigned long long)bytes);
    refused(b, &args, words);
}

static void misaligned_activations_need_room_to_be_gathered(void **state)
{
    struct bench *b = *state;
    ptxgen_marlin_spec spec = plain_spec(K, N);
    ptxgen_marlin_plan plan = plan_of(&spec, "sm_90");
    ptxgen_marlin *kernel;
    ptxgen_error err;
    uint64_t aligned, misaligned, odd_stride;
    assert_ok(ptxgen_marlin_load(&b->emulated.driver, &plan, NULL, &kernel, &err), &err);
    ptxgen_marlin_args args = {.m = 3, .x = 0x10000};
    assert_int_equal(ptxgen_marlin_workspace_bytes(kernel, &args, &aligned, &err), PTXGEN_OK);
    args.x += 8;
    assert_int_equal(ptxgen_marlin_workspace_bytes(kernel, &args, &misaligned, &err), PTXGEN_OK);
    args.x -= 8;
    args.x_stride = K + 4;
    assert_int_equal(ptxgen_marlin_workspace_bytes(kernel, &args, &odd_stride, &err), PTXGEN_OK);
    assert_true(misaligned >= aligned + 3 * K * 2);
    assert_int_equal(misaligned, odd_stride);
    ptxgen_marlin_destroy(kernel);
}

static void another_context_than_the_kernels_is_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_cu_context other;
    ptxgen_error err;
    assert_int_equal(b->emulated.driver.ctx_create(&other, 0, 1), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(ptxgen_marlin_launch(b->kernel, &b->args, NULL, &err),
                     PTXGEN_ERROR_WRONG_DEVICE);
    b->emulated.driver.ctx_destroy(other);
    assert_int_equal(b->emulated.driver.ctx_set_current(b->emulated.context), PTXGEN_CUDA_SUCCESS);
}

static void dispatch_loads_a_spec_once(void **state)
{
    struct bench *b = *state;
    ptxgen_dispatcher *dispatcher;
    ptxgen_marlin_spec spec = plain_spec(K, N);
    ptxgen_marlin *first, *second;
    ptxgen_error err;
    assert_int_equal(ptxgen_dispatcher_create(&b->emulated.driver, NULL, &dispatcher, &err),
                     PTXGEN_OK);
    assert_int_equal(ptxgen_marlin_dispatch(dispatcher, &spec, &first, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_marlin_dispatch(dispatcher, &spec, &second, &err), PTXGEN_OK);
    assert_ptr_equal(first, second);
    spec.k = 24;
    assert_int_equal(ptxgen_marlin_dispatch(dispatcher, &spec, &second, &err),
                     PTXGEN_ERROR_UNSUPPORTED);
    ptxgen_marlin_destroy(first);
    ptxgen_marlin_destroy(first);
    ptxgen_dispatcher_destroy(dispatcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_rows_launch_nothing_and_leave_no_error),
        cmocka_unit_test(more_rows_than_planned_are_refused),
        cmocka_unit_test(null_and_misaligned_addresses_are_refused_by_name),
        cmocka_unit_test(strides_below_a_row_are_refused),
        cmocka_unit_test(a_workspace_that_is_too_small_is_refused_with_what_it_takes),
        cmocka_unit_test(misaligned_activations_need_room_to_be_gathered),
        cmocka_unit_test(another_context_than_the_kernels_is_refused),
        cmocka_unit_test(dispatch_loads_a_spec_once),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
