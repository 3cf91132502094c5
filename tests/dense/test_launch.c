/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch refuses, before anything runs, and what it says that it needs; on the emulator. */
#include "tests/launches.h"

#include <ptxgen/dense.h>

enum { K = 256, N = 64, MOST_M = 40 };

struct bench {
    struct emulated emulated;
    ptxgen_dense *kernel;
    ptxgen_dense_args args;
};

static const ptxgen_dense_spec full = {.n = N,
                                          .k = K,
                                          .max_m = MOST_M,
                                          .type = PTXGEN_F16,
                                          .bias = 1,
                                          .residual = 1};

static int setup(void **state)
{
    static struct bench b;
    memset(&b, 0, sizeof b);
    open_emulated(&b.emulated);
    ptxgen_target target = target_of("sm_90");
    ptxgen_dense_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_dense_make_plan(&full, &target, &plan, &err), &err);
    assert_ok(ptxgen_dense_load(&b.emulated.driver, &plan, NULL, &b.kernel, &err), &err);
    b.args = (ptxgen_dense_args){.m = 2,
                                    .x = 0x10000,
                                    .w = 0x20000,
                                    .bias = 0x50000,
                                    .residual = 0x60000,
                                    .y = 0x70000,
                                    .workspace = 0x100000,
                                    .workspace_bytes = 1 << 30};
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    ptxgen_dense_destroy(b->kernel);
    close_emulated(&b->emulated);
    return 0;
}

static void refused(const void *bench, const void *args, const char *words)
{
    const struct bench *b = bench;
    ptxgen_error err = {0};
    assert_refused(ptxgen_dense_launch(b->kernel, args, NULL, &err), &err, words);
}

static void no_rows_launch_nothing_and_leave_no_error(void **state)
{
    struct bench *b = *state;
    ptxgen_dense_args args = {.m = 0};
    ptxgen_error err;
    uint64_t bytes = 1;
    assert_int_equal(ptxgen_dense_launch(b->kernel, &args, NULL, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_dense_workspace_bytes(b->kernel, &args, &bytes, &err), PTXGEN_OK);
    assert_int_equal(bytes, 0);
    assert_int_equal(b->emulated.driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
}

static void more_rows_than_planned_are_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_dense_args args = b->args;
    args.m = MOST_M + 1;
    refused(b, &args, "m = 41 is above the 40 tokens");
    assert_null(ptxgen_dense_attributes(b->kernel, args.m));
    assert_non_null(ptxgen_dense_attributes(b->kernel, MOST_M));
}

static void null_and_misaligned_addresses_are_refused_by_name(void **state)
{
    struct bench *b = *state;
    static const struct address addresses[] = {
        {"x", offsetof(ptxgen_dense_args, x), 2},
        {"w", offsetof(ptxgen_dense_args, w), 2},
        {"bias", offsetof(ptxgen_dense_args, bias), 2},
        {"residual", offsetof(ptxgen_dense_args, residual), 2},
        {"y", offsetof(ptxgen_dense_args, y), 2},
        {"workspace", offsetof(ptxgen_dense_args, workspace), 16},
    };
    ptxgen_dense_args args = b->args;
    args.x_stride = K + 1; /* to be aligned, so that there is a workspace */
    assert_addresses_are_refused_by_name("dense", addresses, sizeof addresses / sizeof *addresses,
                                         &args, refused, b);
}

static void strides_below_a_row_are_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_dense_args args = b->args;
    args.x_stride = K - 1;
    refused(b, &args, "row stride of x, 255, is below its 256");
    args = b->args;
    args.residual_stride = N - 1;
    refused(b, &args, "row stride of residual, 63");
    args = b->args;
    args.y_stride = 1;
    refused(b, &args, "row stride of y, 1, is below its 64");
}

static void buffers_that_are_too_short_are_refused_with_what_they_must_hold(void **state)
{
    struct bench *b = *state;
    ptxgen_dense_args args = b->args;
    args.x_bytes = 1023;
    refused(b, &args,
            "dense: x has 1023 bytes, fewer than the 1024 of 2 rows of 256 elements of 2 bytes "
            "with a row stride of 256");
    args = b->args;
    args.bias_bytes = 127;
    refused(b, &args, "dense: bias has 127 bytes, fewer than the 128 that the launch needs");
}

static void rows_of_x_that_are_not_aligned_need_room(void **state)
{
    struct bench *b = *state;
    ptxgen_dense_args args = b->args;
    ptxgen_error err;
    uint64_t aligned, misaligned, odd_stride;
    assert_int_equal(ptxgen_dense_workspace_bytes(b->kernel, &args, &aligned, &err), PTXGEN_OK);
    args.x += 8;
    assert_int_equal(ptxgen_dense_workspace_bytes(b->kernel, &args, &misaligned, &err),
                     PTXGEN_OK);
    args.x -= 8;
    args.x_stride = K + 4;
    assert_int_equal(ptxgen_dense_workspace_bytes(b->kernel, &args, &odd_stride, &err),
                     PTXGEN_OK);
    assert_true(misaligned >= aligned + 2 * K);
    assert_int_equal(misaligned, odd_stride);
    args.workspace_bytes = odd_stride - 1;
    char words[80];
    snprintf(words, sizeof words, "%llu bytes is below the %llu that m = 2 needs",
             (unsigned long long)odd_stride - 1, (unsigned long long)odd_stride);
    refused(b, &args, words);
}

static void dispatch_loads_a_spec_once(void **state)
{
    struct bench *b = *state;
    ptxgen_dispatcher *dispatcher;
    ptxgen_dense_spec spec = full;
    ptxgen_dense *first, *second;
    ptxgen_error err;
    assert_int_equal(ptxgen_dispatcher_create(&b->emulated.driver, NULL, &dispatcher, &err),
                     PTXGEN_OK);
    assert_int_equal(ptxgen_dense_dispatch(dispatcher, &spec, &first, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_dense_dispatch(dispatcher, &spec, &second, &err), PTXGEN_OK);
    assert_ptr_equal(first, second);
    spec.k = 0;
    assert_int_equal(ptxgen_dense_dispatch(dispatcher, &spec, &second, &err),
                     PTXGEN_ERROR_UNSUPPORTED);
    ptxgen_dense_destroy(first);
    ptxgen_dense_destroy(first);
    ptxgen_dispatcher_destroy(dispatcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_rows_launch_nothing_and_leave_no_error),
        cmocka_unit_test(more_rows_than_planned_are_refused),
        cmocka_unit_test(null_and_misaligned_addresses_are_refused_by_name),
        cmocka_unit_test(strides_below_a_row_are_refused),
        cmocka_unit_test(buffers_that_are_too_short_are_refused_with_what_they_must_hold),
        cmocka_unit_test(rows_of_x_that_are_not_aligned_need_room),
        cmocka_unit_test(dispatch_loads_a_spec_once),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
