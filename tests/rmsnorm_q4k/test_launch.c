/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch refuses, before anything runs; on the emulator. */
#include "specs.h"
#include "tests/launches.h"

struct bench {
    struct emulated emulated;
    ptxgen_rmsnorm_q4k *kernel;
    ptxgen_rmsnorm_q4k_args args;
};

static int setup(void **state)
{
    static struct bench b;
    memset(&b, 0, sizeof b);
    open_emulated(&b.emulated);
    ptxgen_target target = target_of("sm_90");
    ptxgen_rmsnorm_q4k_spec spec = plain_spec(256, 16);
    spec.n[1] = 8;
    spec.residual = spec.residual_out = spec.bias = 1;
    spec.max_m = 4;
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_rmsnorm_q4k_load(&b.emulated.driver, &plan, NULL, &b.kernel, &err), &err);
    b.args = (ptxgen_rmsnorm_q4k_args){.x = 0x10000,
                                       .residual = 0x20000,
                                       .residual_out = 0x30000,
                                       .gamma = 0x40000,
                                       .w = {0x50000, 0x80000},
                                       .bias = {0x60000, 0x90000},
                                       .y = {0x70000, 0xA0000},
                                       .m = 2};
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    ptxgen_rmsnorm_q4k_destroy(b->kernel);
    close_emulated(&b->emulated);
    return 0;
}

static void refused(const void *bench, const void *args, const char *words)
{
    const struct bench *b = bench;
    ptxgen_error err = {0};
    assert_refused(ptxgen_rmsnorm_q4k_launch(b->kernel, args, NULL, &err), &err, words);
}

static void no_tokens_launch_nothing(void **state)
{
    struct bench *b = *state;
    ptxgen_rmsnorm_q4k_args args = {.m = 0};
    ptxgen_error err;
    assert_int_equal(ptxgen_rmsnorm_q4k_launch(b->kernel, &args, NULL, &err), PTXGEN_OK);
    assert_int_equal(b->emulated.driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
}

static void more_tokens_than_planned_are_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_rmsnorm_q4k_args args = b->args;
    args.m = 5;
    refused(b, &args, "m = 5 is above the 4");
}

static void null_and_misaligned_addresses_are_refused_by_name(void **state)
{
    struct bench *b = *state;
    static const struct address addresses[] = {
        {"x", offsetof(ptxgen_rmsnorm_q4k_args, x), 2},
        {"gamma", offsetof(ptxgen_rmsnorm_q4k_args, gamma), 4},
        {"residual", offsetof(ptxgen_rmsnorm_q4k_args, residual), 2},
        {"residual_out", offsetof(ptxgen_rmsnorm_q4k_args, residual_out), 2},
        {"w[0]", offsetof(ptxgen_rmsnorm_q4k_args, w), 16},
        {"bias[0]", offsetof(ptxgen_rmsnorm_q4k_args, bias), 4},
        {"y[0]", offsetof(ptxgen_rmsnorm_q4k_args, y), 2},
        {"w[1]", offsetof(ptxgen_rmsnorm_q4k_args, w) + 8, 16},
        {"bias[1]", offsetof(ptxgen_rmsnorm_q4k_args, bias) + 8, 4},
        {"y[1]", offsetof(ptxgen_rmsnorm_q4k_args, y) + 8, 2},
    };
    ptxgen_rmsnorm_q4k_args args = b->args;
    assert_addresses_are_refused_by_name("rmsnorm_q4k", addresses,
                                         sizeof addresses / sizeof *addresses, &args, refused, b);
}

static void strides_below_a_row_are_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_rmsnorm_q4k_args args = b->args;
    args.x_stride = 255;
    refused(b, &args, "row stride of x, 255, is below its 256");
    args = b->args;
    args.y_stride[0] = 15;
    refused(b, &args, "row stride of y[0], 15");
}

static void strides_of_more_than_32_bits_are_refused(void **state)
{
    struct bench *b = *state;
    static const size_t strides[] = {offsetof(ptxgen_rmsnorm_q4k_args, x_stride),
                                     offsetof(ptxgen_rmsnorm_q4k_args, residual_stride),
                                     offsetof(ptxgen_rmsnorm_q4k_args, residual_out_stride),
                                     offsetof(ptxgen_rmsnorm_q4k_args, y_stride),
                                     offsetof(ptxgen_rmsnorm_q4k_args, y_stride) + 8};
    static const char *const names[] = {"x", "residual", "residual_out", "y[0]", "y[1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ptxgen_rmsnorm_q4k_args args = b->args;
        const uint64_t stride = (uint64_t)UINT32_MAX + 1;
        ptxgen_error err = {0};
        char words[64];
        uint64_t *const addresses[] = {&args.x, &args.residual, &args.residual_out, &args.y[0],
                                       &args.y[1]};
        *addresses[i] = 0x40000000000;
        memcpy((char *)&args + strides[i], &stride, sizeof stride);
        snprintf(words, sizeof words, "row stride of %s, 4294967296, is above", names[i]);
        assert_int_equal(ptxgen_rmsnorm_q4k_launch(b->kernel, &args, NULL, &err),
                         PTXGEN_ERROR_UNSUPPORTED);
        assert_says(&err, words);
    }
}

static void no_workspace_is_needed(void **state)
{
    struct bench *b = *state;
    ptxgen_rmsnorm_q4k_args args = b->args;
    uint64_t bytes = 7;
    ptxgen_error err = {0};
    assert_ok(ptxgen_rmsnorm_q4k_workspace_bytes(b->kernel, &args, &bytes, &err), &err);
    assert_int_equal(bytes, 0);
    args.m = ((uint64_t)1 << 32) + 1;
    assert_refused(ptxgen_rmsnorm_q4k_workspace_bytes(b->kernel, &args, &bytes, &err), &err,
                   "rmsnorm_q4k: m = 4294967297 is above the 4 tokens that the plan serves");
    refused(b, &args, "rmsnorm_q4k: m = 4294967297 is above the 4 tokens that the plan serves");
    assert_null(ptxgen_rmsnorm_q4k_attributes(b->kernel, args.m));
}

static void a_residual_out_over_x_or_residual_is_refused(void **state)
{
    struct bench *b = *state;
    ptxgen_rmsnorm_q4k_args args = b->args;
    args.residual_out = args.x;
    refused(b, &args, "overlaps");
    args = b->args;
    args.residual_out = args.residual + 2 * 256 * 2 - 2; /* its last element */
    refused(b, &args, "overlaps");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_tokens_launch_nothing),
        cmocka_unit_test(more_tokens_than_planned_are_refused),
        cmocka_unit_test(null_and_misaligned_addresses_are_refused_by_name),
        cmocka_unit_test(strides_below_a_row_are_refused),
        cmocka_unit_test(strides_of_more_than_32_bits_are_refused),
        cmocka_unit_test(no_workspace_is_needed),
        cmocka_unit_test(a_residual_out_over_x_or_residual_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
