/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which launches a plan makes of its tiles, and what is in their text; what all products' entries are
 * held to is in tests/kernels/test_entries.c.
 */
#include "tests/emitted.h"
#include "tests/status.h"

#include <ptxgen/sparse24.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whole blocks, and tails of everything with all of the epilogue. */
static const ptxgen_sparse24_spec specs[] = {
    {.n = 4096, .k = 4096, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16},
    {.n = 333, .k = 1400, .type = PTXGEN_SPARSE24_BF16, .y_type = PTXGEN_BF16, .bias = 1,
     .residual = 1, .activation = PTXGEN_ACTIVATION_GELU},
    {.n = 4096, .k = 4096, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_F16},
    {.n = 333, .k = 1400, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_BF16, .bias = 1,
     .residual = 1, .activation = PTXGEN_ACTIVATION_RELU},
};
enum { SPECS = sizeof specs / sizeof *specs };

static ptxgen_sparse24_plan plan_of(const ptxgen_sparse24_spec *spec, const char *target_name,
                                    int max_ptx)
{
    ptxgen_target target = target_of(target_name);
    ptxgen_sparse24_plan plan;
    ptxgen_error err = {0};
    target.ptx.max_ptx = max_ptx;
    assert_ok(ptxgen_sparse24_make_plan(spec, &target, &plan, &err), &err);
    return plan;
}

static char *text_of(const ptxgen_sparse24_plan *plan, uint32_t variants)
{
    ptxgen_error err = {0};
    ptx_module *module = ptx_module_create(&plan->target.ptx, NULL);
    return text_of_module(module, ptxgen_sparse24_emit(plan, variants, module, &err), &err);
}

static void metadata_is_announced_as_ordered_where_the_ptx_version_allows(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++)
        for (int old = 0; old < 2; old++) {
            ptxgen_sparse24_plan plan = plan_of(&specs[s], "sm_90", old ? 84 : 85);
            char *text = text_of(&plan, 1);
            assert_int_equal(strstr(text, "mma.sp::ordered_metadata.sync") != NULL, !old);
            assert_int_equal(strstr(text, "mma.sp.sync") != NULL, old);
            free(text);
        }
}

static unsigned count_of(const char *text, const char *what)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        count++;
    return count;
}

/*
 * Copies of a stage's strips, one of each, or one in a loop; prefetches to the L2, as many, in a
 * loop.
 */
static void weights_of_bulk_copies_leave_the_l2_first(void **state)
{
    enum { STRIP = 32, MANY_STRIPS = 8 };
    (void)state;
    ptxgen_sparse24_plan plan = plan_of(&specs[0], "sm_90a", 0);
    unsigned checked = 0;
    for (uint32_t i = 0; i < plan.variant_count; i++) {
        if (plan.variants[i].kind != PTXGEN_WGMMA)
            continue;
        char *text = text_of(&plan, 1u << i);
        unsigned copies = count_of(text, "cp.async.bulk.shared::cluster.global");
        uint32_t strips = plan.variants[i].wn * plan.variants[i].warp_n / STRIP;
        assert_int_equal(copies, strips < MANY_STRIPS ? strips : 1);
        assert_int_equal(count_of(text, "L2::evict_first"), 1);
        assert_int_equal(count_of(text, "L2::cache_hint"), copies);
        assert_int_equal(count_of(text, "cp.async.bulk.prefetch.L2"), 1);
        free(text);
        checked++;
    }
    assert_true(checked > 0);
}

/* A cluster that divides K has one tile of wgmma: at its end it waits for its senders, too. */
static void clusters_of_wgmma_get_no_second_tile(void **state)
{
    (void)state;
    const ptxgen_tile tile = {.kind = PTXGEN_WGMMA, .tile_m = 64, .wn = 4,
                                          .wm = 1, .wk = 1, .warp_n = 16, .cluster = 2,
                                          .pass_m = 16};
    ptxgen_sparse24_plan plan = plan_of(&specs[0], "sm_90a", 0);
    ptxgen_error err = {0};
    uint32_t ctas;
    assert_ok(ptxgen_sparse24_use_tile(&plan, &tile, &err), &err);
    assert_ok(ptxgen_sparse24_ctas(&plan, 64, &ctas, &err), &err);
    assert_int_equal(ctas, 128);
    assert_int_equal(ptxgen_sparse24_ctas(&plan, 65, &ctas, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_says(&err, "more than the 66 clusters");
    ptxgen_sparse24_spec wide = specs[0];
    wide.n = 8192;
    plan = plan_of(&wide, "sm_90a", 0);
    assert_int_equal(ptxgen_sparse24_use_tile(&plan, &tile, &err), PTXGEN_ERROR_UNSUPPORTED);
}

/* 112 tiles of 128 features keep memory busy; 32 do not, and are divided. */
static void one_row_of_tiles_is_whole_where_it_keeps_memory_busy(void **state)
{
    (void)state;
    const struct {
        uint32_t n, ctas;
    } cases[] = {{14336, 112}, {4096, 132}};
    const ptxgen_tile tile = {.kind = PTXGEN_WGMMA, .tile_m = 64, .wn = 8,
                                          .wm = 1, .wk = 1, .warp_n = 16, .pass_m = 16};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ptxgen_sparse24_spec spec = {.n = cases[i].n, .k = 4096, .type = PTXGEN_SPARSE24_F16,
                                           .y_type = PTXGEN_F16};
        ptxgen_sparse24_plan plan = plan_of(&spec, "sm_90a", 0);
        ptxgen_error err = {0};
        uint32_t ctas;
        assert_ok(ptxgen_sparse24_use_tile(&plan, &tile, &err), &err);
        assert_ok(ptxgen_sparse24_ctas(&plan, 64, &ctas, &err), &err);
        assert_int_equal(ctas, cases[i].ctas);
    }
}

static void explains(const ptxgen_sparse24_plan *plan, uint64_t m, const char *sentence)
{
    char text[256];
    ptxgen_sparse24_explain(plan, m, text, sizeof text);
    assert_string_equal(text, sentence);
}

static void a_plan_explains_the_tiles_of_a_launch(void **state)
{
    (void)state;
    ptxgen_sparse24_spec spec = {.n = 4096, .k = 4096, .max_m = 64, .type = PTXGEN_SPARSE24_F16,
                                 .y_type = PTXGEN_F16};
    const ptxgen_tile wgmma = {.kind = PTXGEN_WGMMA, .tile_m = 64, .wm = 1,
                                           .wn = 4, .wk = 1, .warp_n = 16, .cluster = 2,
                                           .stages = 3, .pass_m = 16};
    const ptxgen_tile mma = {
        .tile_m = 16, .wm = 1, .wn = 2, .wk = 2, .stages = 4, .pass_m = 16};
    ptxgen_sparse24_plan plan = plan_of(&spec, "sm_90a", 0);
    ptxgen_error err = {0};
    assert_ok(ptxgen_sparse24_use_tile(&plan, &wgmma, &err), &err);
    explains(&plan, 64,
             "tiles of 64 tokens by 64 features, 1 x 4 x 1 warps along M, N and K, 3 stages, "
             "wgmma.sp; 2 CTAs divide K");
    assert_ok(ptxgen_sparse24_use_tile(&plan, &mma, &err), &err);
    explains(&plan, 1,
             "tiles of 16 tokens by 64 features, 1 x 2 x 2 warps along M, N and K, 4 stages, "
             "mma.sp");
    explains(&plan, 65, "no launch: 65 tokens are above the plan's 64");
    explains(&plan, 0, "no launch: there are no tokens");
    explains(NULL, 1, "no launch: there is no plan");
    spec.tier = 1;
    plan = plan_of(&spec, "sm_80", 0);
    char dense[256], both[300];
    ptxgen_dense_explain(&plan.dense, 5, dense, sizeof dense);
    snprintf(both, sizeof both, "w is inflated first; %s", dense);
    explains(&plan, 5, both);
    explains(&plan, 65, "no launch: 65 tokens are above the plan's 64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata_is_announced_as_ordered_where_the_ptx_version_allows),
        cmocka_unit_test(weights_of_bulk_copies_leave_the_l2_first),
        cmocka_unit_test(clusters_of_wgmma_get_no_second_tile),
        cmocka_unit_test(one_row_of_tiles_is_whole_where_it_keeps_memory_busy),
        cmocka_unit_test(a_plan_explains_the_tiles_of_a_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
