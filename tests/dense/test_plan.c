/* SPDX-License-Identifier: Apache-2.0 */
/* Which launches a plan makes of its tiles. */
#include "tests/status.h"

#include <ptxgen/dense.h>

static const char *const target_names[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_120"};
enum { TARGETS = sizeof target_names / sizeof *target_names };

static ptxgen_dense_plan plan_of(const ptxgen_dense_spec *spec, const char *target_name)
{
    ptxgen_target target = target_of(target_name);
    ptxgen_dense_plan plan;
    ptxgen_error err = {0};
    assert_ok(ptxgen_dense_make_plan(spec, &target, &plan, &err), &err);
    return plan;
}

/* One warp a scheduler at least, whatever tiles divide evenly among the multiprocessors. */
static void no_plan_leaves_a_scheduler_without_a_warp(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{8192, 8192}, {4096, 4096}, {14336, 4096}, {4096, 14336}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int t = 0; t < TARGETS; t++) {
            ptxgen_dense_spec s = {.n = shapes[i][0], .k = shapes[i][1], .type = PTXGEN_F16};
            ptxgen_dense_plan plan = plan_of(&s, target_names[t]);
            for (uint32_t m = 1; m <= 64; m++) {
                const ptxgen_tile *v = ptxgen_dense_choose(&plan, m);
                assert_true(v->wn * v->wm * v->wk * v->ctas >= 4);
            }
        }
}

/* CTAs that divide K have one tile: of a second one they would wait for their sender. */
static void ctas_that_divide_k_get_no_second_tile(void **state)
{
    (void)state;
    const ptxgen_tile tile = {.kind = PTXGEN_WGMMA, .warp_n = 16, .warp_m = 64,
                                       .wn = 4, .wm = 1, .wk = 1, .split = 2, .pass_m = 16};
    const ptxgen_dense_spec spec = {.n = 4096, .k = 4096, .type = PTXGEN_F16};
    ptxgen_dense_plan plan = plan_of(&spec, "sm_90a");
    ptxgen_error err = {0};
    uint32_t ctas;
    assert_ok(ptxgen_dense_use_tile(&plan, &tile, &err), &err);
    assert_ok(ptxgen_dense_ctas(&plan, 64, &ctas, &err), &err);
    assert_int_equal(ctas, 128);
    assert_int_equal(ptxgen_dense_ctas(&plan, 65, &ctas, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "dense: no variant serves m = 65");
}

/* 16 pairs for 66 clusters: of 256 tokens each has one of its own, of 128 all have a share. */
static void tiles_of_most_sums_are_never_divided(void **state)
{
    (void)state;
    const ptxgen_dense_spec spec = {.n = 4096, .k = 4096, .type = PTXGEN_F16};
    for (uint32_t rows = 128; rows <= 256; rows *= 2) {
        const ptxgen_tile tile = {.kind = PTXGEN_WGMMA, .warp_n = 16, .warp_m = rows,
                                           .wn = 8, .wm = 1, .wk = 1, .cluster = 2, .pass_m = 32};
        ptxgen_dense_plan plan = plan_of(&spec, "sm_90a");
        ptxgen_error err = {0};
        uint32_t ctas;
        assert_ok(ptxgen_dense_use_tile(&plan, &tile, &err), &err);
        assert_ok(ptxgen_dense_ctas(&plan, rows, &ctas, &err), &err);
        assert_int_equal(ctas, rows == 256 ? 32 : 132);
    }
}

static void a_plan_may_be_made_of_its_own_spec_and_target(void **state)
{
    (void)state;
    const ptxgen_dense_spec s = {.n = 512, .k = 1024, .type = PTXGEN_BF16, .bias = 1};
    const ptxgen_dense_plan plan = plan_of(&s, "sm_90a");
    ptxgen_dense_plan again = plan;
    ptxgen_error err = {0};
    assert_ok(ptxgen_dense_make_plan(&again.spec, &again.target, &again, &err), &err);
    assert_memory_equal(&again, &plan, sizeof plan);
}

/* The sentence of a plan with that tile, of up to 128 tokens. */
static void explains(const ptxgen_tile *tile, uint64_t m, const char *sentence)
{
    const ptxgen_dense_spec spec = {.n = 4096, .k = 4096, .max_m = 128, .type = PTXGEN_F16};
    ptxgen_dense_plan plan = plan_of(&spec, "sm_90a");
    ptxgen_error err = {0};
    char text[256];
    assert_ok(ptxgen_dense_use_tile(&plan, tile, &err), &err);
    ptxgen_dense_explain(&plan, m, text, sizeof text);
    assert_string_equal(text, sentence);
}

static void a_plan_explains_the_tiles_of_a_launch(void **state)
{
    (void)state;
    const ptxgen_tile mma = {
        .warp_m = 16, .warp_n = 32, .wm = 1, .wn = 2, .wk = 4, .stages = 3, .pass_m = 16};
    const ptxgen_tile split = {.kind = PTXGEN_WGMMA, .warp_m = 64, .warp_n = 16,
                                        .wm = 1, .wn = 4, .wk = 1, .stages = 4, .split = 2,
                                        .pass_m = 16};
    const ptxgen_tile pair = {.kind = PTXGEN_BULK, .warp_m = 64, .warp_n = 64,
                                       .wm = 2, .wn = 2, .wk = 1, .stages = 3, .cluster = 2,
                                       .pass_m = 16};
    explains(&mma, 7,
             "tiles of 16 tokens by 64 features, 1 x 2 x 4 warps along M, N and K, 3 stages, "
             "mma.sync");
    explains(&split, 64,
             "tiles of 64 tokens by 64 features, 1 x 4 x 1 warps along M, N and K, 4 stages, "
             "wgmma; two CTAs divide K");
    explains(&pair, 128,
             "tiles of 128 tokens by 128 features, 2 x 2 x 1 warps along M, N and K, 3 stages, "
             "mma.sync with copies in bulk; two CTAs share their tokens");
    explains(&mma, 129, "no launch: 129 tokens are above the plan's 128");
    explains(&mma, 0, "no launch: there are no tokens");
    char text[64];
    ptxgen_dense_explain(NULL, 1, text, sizeof text);
    assert_string_equal(text, "no launch: there is no plan");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_plan_leaves_a_scheduler_without_a_warp),
        cmocka_unit_test(ctas_that_divide_k_get_no_second_tile),
        cmocka_unit_test(tiles_of_most_sums_are_never_divided),
        cmocka_unit_test(a_plan_may_be_made_of_its_own_spec_and_target),
        cmocka_unit_test(a_plan_explains_the_tiles_of_a_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
