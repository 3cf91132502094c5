/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch refuses, before anything runs; on the emulator. */
#include "support.h"
#include "tests/launches.h"

struct bench {
    struct emulated emulated;
    ptxgen_w8a8 *kernel;
    ptxgen_w8a8_args args;
};

static int setup(void **state)
{
    static struct bench b;
    memset(&b, 0, sizeof b);
    open_emulated(&b.emulated);
    ptxgen_target target = target_of("sm_90");
    ptxgen_w8a8_spec spec = {.k = 256,
                             .n = 16,
                             .max_m = 16,
                             .x_type = PTXGEN_F16,
                             .y_type = PTXGEN_F32,
                             .scales = PTXGEN_W8A8_TENSOR,
                             .asymmetric = 1,
                             .bias = 1};
    ptxgen_w8a8_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_w8a8_load(&b.emulated.driver, &plan, NULL, &b.kernel, &err), &err);
    b.args = (ptxgen_w8a8_args){.x = 0x10000,
                                .w = 0x20000,
                                .w_scale = 0x30000,
                                .w_sum = 0x40000,
                                .bias = 0x50000,
                                .x_scale = 0x60000,
                                .x_zero = 0x70000,
                                .y = 0x80000,
                                .workspace = 0x90000,
                                .workspace_bytes = 1 << 30,
                                .m = 12};
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    ptxgen_w8a8_destroy(b->kernel);
    close_emulated(&b->emulated);
    return 0;
}

static void refused(const void *bench, const void *args, const char *words)
{
    const struct bench *b = bench;
    ptxgen_error err = {0};
    assert_refused(ptxgen_w8a8_launch(b->kernel, args, NULL, &err), &err, words);
}

static void no_tokens_launch_nothing(void **state)
{
    struct bench *b = *state;
    ptxgen_w8a8_args args = {.m = 0};
    ptxgen_error err;
    assert_int_equal(ptxgen_w8a8_launch(b->kernel, &args, NULL, &err), PTXGEN_OK);
    assert_int_equal(b->emulated.driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
}

static void more_tokens_than_planned_are_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_w8a8_args args = b->args;
    args.m = 17;
    refused(b, &args, "m = 17 is outside the 0 to 16");
}

static void null_and_misaligned_addresses_are_refused_by_name(void **state)
{
    struct bench *b = *state;
    static const struct address addresses[] = {
        {"x", offsetof(ptxgen_w8a8_args, x), 2},
        {"w", offsetof(ptxgen_w8a8_args, w), 16},
        {"w_scale", offsetof(ptxgen_w8a8_args, w_scale), 4},
        {"w_sum", offsetof(ptxgen_w8a8_args, w_sum), 4},
        {"bias", offsetof(ptxgen_w8a8_args, bias), 4},
        {"x_scale", offsetof(ptxgen_w8a8_args, x_scale), 4},
        {"x_zero", offsetof(ptxgen_w8a8_args, x_zero), 4},
        {"y", offsetof(ptxgen_w8a8_args, y), 4},
        {"workspace", offsetof(ptxgen_w8a8_args, workspace), 256},
    };
    ptxgen_w8a8_args args = b->args;
    assert_addresses_are_refused_by_name("w8a8", addresses, sizeof addresses / sizeof *addresses,
                                         &args, refused, b);
}

static void strides_below_a_row_are_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_w8a8_args args = b->args;
    args.x_stride = 255;
    refused(b, &args, "row stride of x, 255, is below its 256");
    args = b->args;
    args.y_stride = 15;
    refused(b, &args, "row stride of y, 15");
}

static void unsupported(const struct bench *b, const ptxgen_w8a8_args *args, const char *words)
{
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_w8a8_launch(b->kernel, args, NULL, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_says(&err, words);
}

static void strides_of_more_than_32_bits_are_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_w8a8_args args = b->args;
    args.x = 0x40000000000;
    args.x_stride = (uint64_t)UINT32_MAX + 1;
    unsupported(b, &args,
                "w8a8: the row stride of x, 4294967296, is above the 4294967295 elements that the "
                "kernel takes");
    args = b->args;
    args.y = 0x40000000000;
    args.y_stride = (uint64_t)UINT32_MAX + 16;
    unsupported(b, &args, "the row stride of y, 4294967311, is above the 4294967295 elements");
}

static void tokens_of_more_than_32_bits_are_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_w8a8_args args = b->args;
    uint64_t bytes;
    ptxgen_error err = {0};
    args.m = ((uint64_t)1 << 32) + 12;
    refused(b, &args, "m = 4294967308 is outside the 0 to 16");
    assert_refused(ptxgen_w8a8_workspace_bytes(b->kernel, &args, &bytes, &err), &err,
                   "m = 4294967308 is outside the 0 to 16");
    assert_null(ptxgen_w8a8_attributes(b->kernel, args.m));
}

static void a_workspace_that_is_too_small_is_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_w8a8_args args = b->args;
    ptxgen_error err = {0};
    assert_ok(ptxgen_w8a8_workspace_bytes(b->kernel, &args, &args.workspace_bytes, &err), &err);
    assert_true(args.workspace_bytes > 12 * 256);
    args.workspace_bytes--;
    refused(b, &args, "w8a8: a workspace of ");
    refused(b, &args, "that m = 12 needs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_tokens_launch_nothing),
        cmocka_unit_test(more_tokens_than_planned_are_refused),
        cmocka_unit_test(null_and_misaligned_addresses_are_refused_by_name),
        cmocka_unit_test(strides_below_a_row_are_refused),
        cmocka_unit_test(strides_of_more_than_32_bits_are_refused),
        cmocka_unit_test(tokens_of_more_than_32_bits_are_refused),
        cmocka_unit_test(a_workspace_that_is_too_small_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
