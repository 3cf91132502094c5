/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which launches a plan makes of its tiles, and what is in their text; what all products' entries are
 * held to is in tests/kernels/test_entries.c.
 */
#include "specs.h"
#include "tests/emitted.h"

#include <stdlib.h>

static char *text_of(const ptxgen_marlin_plan *plan, uint32_t variants)
{
    ptxgen_error err = {0};
    ptx_module *module = ptx_module_create(&plan->target.ptx, NULL);
    return text_of_module(module, ptxgen_marlin_emit(plan, variants, module, &err), &err);
}

/* Every way of scaling, zero points, both ends of an epilogue; and wgmma's widest tile of 64 rows. */
static const ptxgen_marlin_spec specs[] = {
    {.k = 4096, .n = 4096, .group_size = 128, .type = PTXGEN_F16},
    {.k = 8192, .n = 28672, .group_size = 128, .type = PTXGEN_F16},
    {.k = 4096, .n = 4096, .group_size = 32, .type = PTXGEN_BF16, .zeros = 1},
    {.k = 1040,
     .n = 1032,
     .group_size = -1,
     .type = PTXGEN_F16,
     .bias = 1,
     .residual = 1,
     .act_order = 1,
     .epilogue = PTXGEN_EPILOGUE_SWIGLU},
    {.k = 1072,
     .n = 72,
     .group_size = 16,
     .type = PTXGEN_BF16,
     .zeros = 1,
     .bias = 1,
     .residual = 1,
     .activation = PTXGEN_ACTIVATION_GELU},
};
enum { SPECS = sizeof specs / sizeof *specs };

/* Else a launch that overlaps would not wait for what it reads. */
static void entries_wait_for_the_kernel_ahead_from_sm_90_on(void **state)
{
    (void)state;
    for (int t = 0; t < TARGETS; t++) {
        ptxgen_marlin_plan plan = plan_of(&specs[0], target_names[t]);
        char *text = text_of(&plan, ~0u);
        uint32_t waits = 0;
        for (const char *at = text; (at = strstr(at, "griddepcontrol.wait")); at++)
            waits++;
        assert_int_equal(waits, plan.target.ptx.sm >= 90 ? plan.variant_count + 1 : 0);
        free(text);
    }
}

/* The registers of two slices take turns: those of the slice before the last are written anew. */
static void one_group_of_wgmma_at_most_is_under_way_after_a_wait(void **state)
{
    (void)state;
    static const char wait[] = "wgmma.wait_group.sync.aligned ";
    for (int s = 0; s < SPECS; s++) {
        ptxgen_marlin_plan plan = plan_of(&specs[s], "sm_90a");
        char *text = text_of(&plan, ~0u);
        unsigned waits = 0;
        for (const char *at = text; (at = strstr(at, wait)); waits++) {
            at += strlen(wait);
            assert_in_range(strtoul(at, NULL, 10), 0, 1);
        }
        assert_true(waits > 0);
        free(text);
    }
}

static void wide_matrices_with_up_to_192_rows_have_less_than_32_computed_for_nothing(void **state)
{
    (void)state;
    ptxgen_marlin_plan plan = plan_of(&specs[1], "sm_90a");
    for (uint32_t m = 1; m <= 192; m++) {
        uint32_t tile_m = ptxgen_marlin_choose(&plan, m)->tile_m;
        uint32_t rows = (m + tile_m - 1) / tile_m * tile_m;
        if (rows >= m + 32)
            fail_msg("%u rows are computed as %u, in tiles of %u", m, rows, tile_m);
    }
}

/* ---- tiles of the caller's choice ---- */

static void groups_of_32_have_tiles_of_their_own_for_few_rows(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        const ptxgen_marlin_spec spec = {
            .k = 8192, .n = 8192, .group_size = small ? 32 : 128, .type = PTXGEN_F16};
        ptxgen_marlin_plan plan = plan_of(&spec, "sm_90a");
        assert_int_equal(ptxgen_marlin_choose(&plan, 16)->warp_n, small ? 32 : 64);
        assert_int_equal(ptxgen_marlin_choose(&plan, 32)->steps, small ? 4 : 2);
    }
}

static void a_tile_of_the_callers_choice_is_the_only_one(void **state)
{
    (void)state;
    ptxgen_marlin_plan plan = plan_of(&specs[0], "sm_90");
    ptxgen_tile tile = {
        .tile_m = 16, .warp_n = 64, .wn = 2, .wk = 2, .stages = 3, .steps = 1,
        .ctas = 1, .pass_m = 16};
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_marlin_use_tile(&plan, &tile, &err), PTXGEN_OK);
    assert_int_equal(plan.variant_count, 1);
    assert_int_equal(ptxgen_marlin_choose(&plan, 4096)->wn, 2);
    ptx_module *module = ptx_module_create(&plan.target.ptx, NULL);
    ptx_kernel_info info;
    assert_int_equal(ptxgen_marlin_emit(&plan, ~0u, module, &err), PTXGEN_OK);
    assert_int_equal(ptx_module_kernel_info(module, 0, &info), PTXGEN_OK);
    assert_int_equal(info.static_shared_bytes + info.dynamic_shared_bytes,
                     plan.variants[0].shared_bytes);
    ptx_module_destroy(module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_wait_for_the_kernel_ahead_from_sm_90_on),
        cmocka_unit_test(one_group_of_wgmma_at_most_is_under_way_after_a_wait),
        cmocka_unit_test(wide_matrices_with_up_to_192_rows_have_less_than_32_computed_for_nothing),
        cmocka_unit_test(groups_of_32_have_tiles_of_their_own_for_few_rows),
        cmocka_unit_test(a_tile_of_the_callers_choice_is_the_only_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
