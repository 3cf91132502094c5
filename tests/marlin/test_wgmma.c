/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries with a sender on the emulator: what they must get right beside what test_kernel.c asks
 * of every device, for tiles of every shape that the plan may choose.
 */
#include "problems.h"

#include <string.h>

/*
 * One or two strips a warpgroup; one to four warpgroups, beside and behind each other along K; stages
 * of one, two and four steps; clusters. Without wgmma whole and half strips a warp.
 */
static const ptxgen_tile tiles[] = {
    {.tile_m = 8, .warp_n = 16, .wn = 16, .stages = 3, .steps = 2, .pass_m = 8},
    {.tile_m = 16, .warp_n = 16, .wn = 8, .stages = 4, .steps = 4, .pass_m = 16},
    {.tile_m = 32, .warp_n = 16, .wn = 12, .stages = 3, .steps = 1, .pass_m = 16},
    {.tile_m = 64, .warp_n = 32, .wn = 4, .stages = 3, .steps = 2, .pass_m = 32},
    {.tile_m = 128, .warp_n = 32, .wn = 8, .stages = 6, .steps = 1, .pass_m = 32},
    {.tile_m = 128, .warp_n = 16, .wn = 16, .stages = 3, .steps = 2, .pass_m = 16},
    {.tile_m = 48, .warp_n = 16, .wn = 8, .wk = 2, .stages = 3, .steps = 2, .pass_m = 16},
    {.tile_m = 96, .warp_n = 32, .wn = 4, .stages = 3, .steps = 2, .pass_m = 16},
    {.tile_m = 160, .warp_n = 16, .wn = 8, .stages = 3, .steps = 1, .pass_m = 16, .cluster = 2},
    {.tile_m = 96, .warp_n = 16, .wn = 8, .stages = 4, .steps = 1, .pass_m = 16, .cluster = 2},
    {.tile_m = 192, .warp_n = 16, .wn = 8, .stages = 3, .steps = 1, .pass_m = 16, .cluster = 2},
    {.tile_m = 64, .warp_n = 16, .wn = 16, .stages = 3, .steps = 2, .pass_m = 16},
    {.tile_m = 144, .warp_n = 16, .wn = 8, .stages = 3, .steps = 1, .pass_m = 24},
    {.tile_m = 192, .warp_n = 16, .wn = 12, .stages = 3, .steps = 2, .pass_m = 16},
    {.tile_m = 256, .warp_n = 16, .wn = 8, .stages = 3, .steps = 1, .pass_m = 32},
    {.tile_m = 32, .warp_n = 16, .wn = 8, .stages = 3, .steps = 2, .pass_m = 32, .cluster = 2},
    {.tile_m = 64, .warp_n = 32, .wn = 4, .stages = 4, .steps = 1, .pass_m = 32, .cluster = 4},
    {.tile_m = 16, .warp_n = 16, .wn = 8, .wk = 2, .stages = 3, .steps = 1, .pass_m = 16},
    {.tile_m = 32, .warp_n = 16, .wn = 4, .wk = 2, .stages = 3, .steps = 1, .pass_m = 16, .cluster = 2},
    {.tile_m = 64, .warp_n = 16, .wn = 8, .wk = 2, .stages = 3, .steps = 1, .pass_m = 64, .cluster = 2},
    {.tile_m = 96, .warp_n = 16, .wn = 4, .wk = 2, .stages = 3, .steps = 1, .pass_m = 16, .cluster = 2},
    {.tile_m = 32, .warp_n = 16, .wn = 12, .stages = 3, .steps = 2, .pass_m = 16},
    {.kind = PTXGEN_BULK, .tile_m = 8, .warp_n = 32, .wn = 4, .stages = 3, .steps = 2,
     .pass_m = 8},
    {.kind = PTXGEN_BULK, .tile_m = 16, .warp_n = 32, .wn = 2, .wk = 4, .stages = 3, .steps = 1,
     .pass_m = 16},
    {.kind = PTXGEN_BULK, .tile_m = 16, .warp_n = 64, .wn = 1, .wk = 2, .stages = 4, .steps = 2,
     .pass_m = 8},
    {.kind = PTXGEN_BULK, .tile_m = 32, .warp_n = 32, .wn = 2, .wk = 2, .stages = 3, .steps = 1,
     .pass_m = 32, .cluster = 2},
};
enum { TILES = sizeof tiles / sizeof *tiles };

static void run_tile(struct device *device, const ptxgen_marlin_spec *spec, uint32_t m,
                     const ptxgen_tile *tile)
{
    struct kernel_options options = {.spec = *spec, .tile = *tile};
    options.tile.kind = tile->kind ? tile->kind : PTXGEN_WGMMA;
    options.tile.wk = tile->wk ? tile->wk : 1;
    options.tile.ctas = 1;
    struct problem p = make_of(device, &options, m, PTXGEN_W4_PACK_QUANTIZED, NULL);
    run_and_release(&p, device);
}

/* Tokens below, at and above a tile's, so that copies end within x and y. */
static void every_tile_does_every_kind_of_spec(void **state)
{
    (void)state;
    static const ptxgen_marlin_spec specs[] = {
        {.k = 512, .n = 256, .group_size = 128, .type = PTXGEN_F16},
        {.k = 256, .n = 72, .group_size = 32, .type = PTXGEN_BF16, .zeros = 1, .bias = 1},
        {.k = 240, .n = 136, .group_size = -1, .type = PTXGEN_F16, .zeros = 1, .residual = 1},
        {.k = 224, .n = 520, .group_size = 16, .type = PTXGEN_BF16, .act_order = 1,
         .activation = PTXGEN_ACTIVATION_GELU},
        {.k = 768, .n = 40, .group_size = 192, .type = PTXGEN_F16, .zeros = 1, .bias = 1,
         .epilogue = PTXGEN_EPILOGUE_SWIGLU},
    };
    struct device device = open_device("cpu:sm_90");
    for (int t = 0; t < TILES; t++)
        for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
            const uint32_t tile_m = tiles[t].tile_m, ms[] = {tile_m - 3, tile_m, tile_m + 5};
            if (test_in_share(t + (int)s))
                run_tile(&device, &specs[s], ms[(t + s) % 3], &tiles[t]);
        }
    device_close(&device);
}

/* Tiles divided among CTAs, and the warpgroups of each handing over by themselves, in several orders. */
static void warpgroups_in_any_order_hand_over_and_do_not_race(void **state)
{
    (void)state;
    struct device device = open_device("cpu:sm_90");
    for (uint64_t seed = 1; seed <= (uint64_t)test_share(TILES); seed++) {
        ptxgen_marlin_spec spec = f16(2048, 192, seed % 2 ? 128 : 64);
        order_by(&device, seed);
        run_tile(&device, &spec, tiles[seed % TILES].tile_m / 2, &tiles[seed % TILES]);
    }
    device_close(&device);
}

/* K of 8192: CTAs whose stages are all within a tile end before the one that ends it, see layout.h. */
static void tiles_divided_unevenly_are_right_and_do_not_race(void **state)
{
    (void)state;
    static const ptxgen_tile uneven[] = {
        {.tile_m = 64, .warp_n = 16, .wn = 8, .stages = 3, .steps = 2, .pass_m = 32},
        {.tile_m = 48, .warp_n = 16, .wn = 4, .wk = 2, .stages = 3, .steps = 1, .pass_m = 16},
    };
    struct device device = open_device("cpu:sm_90");
    for (uint64_t seed = 1; seed <= (uint64_t)test_share(4); seed++) {
        ptxgen_marlin_spec spec = f16(8192, 264, 128);
        order_by(&device, seed);
        run_tile(&device, &spec, seed < 3 ? 9 : 70, &uneven[seed % 2]);
    }
    device_close(&device);
}

/* More tiles than multiprocessors: what is staged of one is read before that of the next is written. */
static void warpgroups_that_end_several_tiles_do_not_race(void **state)
{
    (void)state;
    static const ptxgen_tile tile = {
        .tile_m = 16, .warp_n = 16, .wn = 8, .stages = 3, .steps = 1, .pass_m = 16};
    struct device device = open_device("cpu:sm_90");
    for (uint64_t seed = 1; seed <= (uint64_t)test_share(4); seed++) {
        ptxgen_marlin_spec spec = f16(64, 4096, -1);
        spec.activation = seed % 2 ? PTXGEN_ACTIVATION_NONE : PTXGEN_ACTIVATION_SILU;
        order_by(&device, seed);
        run_tile(&device, &spec, 9 * tile.tile_m, &tile);
    }
    device_close(&device);
}

/* Tiles that start with either half of a strip, one after the other and divided among CTAs. */
static void tiles_of_odd_half_strips_are_right_and_do_not_race(void **state)
{
    (void)state;
    static const ptxgen_marlin_spec specs[] = {
        {.k = 512, .n = 448, .group_size = 128, .type = PTXGEN_F16},
        {.k = 2048, .n = 896, .group_size = 32, .type = PTXGEN_BF16, .bias = 1},
        {.k = 256, .n = 1344, .group_size = -1, .type = PTXGEN_F16, .zeros = 1, .residual = 1},
        {.k = 1024, .n = 448, .group_size = 64, .type = PTXGEN_F16, .zeros = 1, .act_order = 1},
    };
    struct device device = open_device("cpu:sm_90");
    for (uint64_t i = 0; i < 16; i++) { /* of seven and of one */
        const ptxgen_tile tile = {.kind = PTXGEN_BULK, .tile_m = i % 2 ? 16 : 8,
                                            .warp_n = 32, .wn = i & 8 ? 1 : 7, .wk = i & 2 ? 2 : 1,
                                            .stages = 3, .steps = i & 4 ? 2 : 1, .pass_m = 8};
        order_by(&device, i + 1);
        if (test_in_share((int)i))
            run_tile(&device, &specs[i % 4], i & 4 ? 37 : 5, &tile);
    }
    device_close(&device);
}

static void half_strips_that_do_not_end_with_n_are_refused(void **state)
{
    (void)state;
    ptxgen_marlin_spec spec = f16(512, 512, 128);
    const ptxgen_tile tile = {.kind = PTXGEN_BULK, .tile_m = 8, .warp_n = 32, .wn = 7,
                                        .wk = 1, .stages = 3, .steps = 1, .ctas = 1, .pass_m = 8};
    ptxgen_target target;
    ptxgen_marlin_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_target_parse("sm_90a", &target, &err), &err);
    assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
    assert_int_equal(ptxgen_marlin_use_tile(&plan, &tile, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "224 features");
}

static bool has_wgmma(const char *target_name, const ptxgen_marlin_spec *spec)
{
    ptxgen_target target;
    ptxgen_marlin_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_target_parse(target_name, &target, &err), &err);
    assert_ok(ptxgen_marlin_make_plan(spec, &target, &plan, &err), &err);
    bool any = false;
    for (uint32_t i = 0; i < plan.variant_count; i++)
        any = any || plan.variants[i].kind == PTXGEN_WGMMA;
    return any;
}

static void wgmma_is_for_sm_90a_alone_and_a_9_0_device_is_one(void **state)
{
    (void)state;
    static const char *const others[] = {"sm_80", "sm_89", "sm_90", "sm_100a", "sm_120f"};
    ptxgen_marlin_spec spec = f16(4096, 4096, 128);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(has_wgmma(others[i], &spec));
    assert_true(has_wgmma("sm_90a", &spec));
    struct device device = open_device("cpu:sm_90");
    ptxgen_target target = ptxgen_device_target(&device.facts);
    assert_int_equal(target.ptx.suffix, 'a');
    device_close(&device);
    device = open_device("cpu:sm_100");
    target = ptxgen_device_target(&device.facts);
    assert_int_equal(target.ptx.suffix, 0);
    device_close(&device);
}

/* A driver too old for sm_90a has sm_90 and mma.sync. */
static void an_old_driver_gets_the_base_target(void **state)
{
    (void)state;
    ptxgen_device_facts facts = {.compute_capability = 90, .max_ptx_version = 78, .sm_count = 132,
                                 .shared_per_block_optin = 227 * 1024};
    assert_int_equal(ptxgen_device_target(&facts).ptx.suffix, 0);
    facts.max_ptx_version = 80;
    assert_int_equal(ptxgen_device_target(&facts).ptx.suffix, 'a');
}

/* A driver of PTX 8.0 knows sm_90a, but no stores into another CTA. */
static void pairs_of_ctas_are_for_ptx_8_1(void **state)
{
    (void)state;
    const ptxgen_marlin_spec spec = f16(4096, 4096, 128);
    ptxgen_tile tile = {.kind = PTXGEN_WGMMA, .tile_m = 64, .warp_n = 16, .wn = 4,
                                  .wk = 2, .stages = 8, .steps = 1, .ctas = 1, .pass_m = 32, .cluster = 2};
    ptxgen_target target;
    ptxgen_marlin_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_target_parse("sm_90a", &target, &err), &err);
    for (int ptx = 80; ptx <= 81; ptx++) {
        uint32_t pairs = 0;
        target.ptx.max_ptx = ptx;
        assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
        for (uint32_t i = 0; i < plan.variant_count; i++)
            pairs += plan.variants[i].cluster > 1;
        assert_int_equal(pairs != 0, ptx == 81);
        assert_int_equal(ptxgen_marlin_use_tile(&plan, &tile, &err),
                         ptx == 81 ? PTXGEN_OK : PTXGEN_ERROR_UNSUPPORTED);
    }
}

static void clusters_that_do_not_divide_k_or_have_no_wgmma_are_refused(void **state)
{
    (void)state;
    const struct {
        uint32_t k, cluster, kind, wk;
        const char *words;
        ptxgen_status status;
    } cases[] = {
        {512, 3, PTXGEN_WGMMA, 1, "cluster of 3", PTXGEN_ERROR_INVALID_ARGUMENT},
        {512, 16, PTXGEN_WGMMA, 1, "cluster of 16", PTXGEN_ERROR_INVALID_ARGUMENT},
        {512, 2, PTXGEN_MMA, 1, "cluster of 2", PTXGEN_ERROR_INVALID_ARGUMENT},
        {576, 2, PTXGEN_WGMMA, 1, "stages of 128 along K", PTXGEN_ERROR_UNSUPPORTED}};
    ptxgen_target target;
    ptxgen_error err;
    assert_ok(ptxgen_target_parse("sm_90a", &target, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_marlin_spec spec = f16(cases[i].k, 256, 64);
        ptxgen_tile tile = tiles[3];
        ptxgen_marlin_plan plan;
        tile.steps = tile.ctas = 1;
        tile.wk = cases[i].wk;
        tile.kind = cases[i].kind;
        tile.cluster = cases[i].cluster;
        assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
        assert_int_equal(ptxgen_marlin_use_tile(&plan, &tile, &err), cases[i].status);
        if (!strstr(err.message, cases[i].words))
            fail_msg("'%s' does not say '%s'", err.message, cases[i].words);
    }
}

static void tiles_that_are_no_warpgroups_or_for_other_targets_are_refused(void **state)
{
    (void)state;
    const struct {
        const char *target, *words;
        uint32_t k, wn, steps, ctas;
        ptxgen_status status;
    } cases[] = {
        {"sm_90a", "6 warps", 512, 6, 1, 1, PTXGEN_ERROR_INVALID_ARGUMENT},
        {"sm_90a", "2 CTAs of 4 warpgroups", 512, 16, 1, 2, PTXGEN_ERROR_INVALID_ARGUMENT},
        {"sm_90", "sm_90a", 512, 8, 1, 1, PTXGEN_ERROR_UNSUPPORTED},
        {"sm_90a", "stages of 256 along K", 576, 8, 4, 1, PTXGEN_ERROR_UNSUPPORTED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_marlin_spec spec = f16(cases[i].k, 256, 64);
        ptxgen_tile tile = tiles[1];
        ptxgen_target target;
        ptxgen_marlin_plan plan;
        ptxgen_error err;
        tile.kind = PTXGEN_WGMMA;
        tile.wk = 1;
        tile.ctas = cases[i].ctas;
        tile.wn = cases[i].wn;
        tile.steps = cases[i].steps;
        assert_ok(ptxgen_target_parse(cases[i].target, &target, &err), &err);
        assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
        assert_int_equal(ptxgen_marlin_use_tile(&plan, &tile, &err), cases[i].status);
        assert_says(&err, cases[i].words);
    }
}

static void rows_that_no_tile_of_wgmma_has_are_refused(void **state)
{
    (void)state;
    const struct {
        uint32_t tile_m, pass_m, cluster;
        const char *words;
    } cases[] = {{24, 8, 0, "24 tokens that a CTA finishes, pass_m 8"},
                 {48, 8, 2, "24 tokens that a CTA finishes, pass_m 8"},
                 {272, 16, 0, "tile_m is 272, not 8 to 256"},
                 {80, 32, 0, "80 tokens that a CTA finishes, pass_m 32"},
                 {80, 20, 0, "80 tokens that a CTA finishes, pass_m 20"},
                 {96, 32, 2, "48 tokens that a CTA finishes, pass_m 32"}};
    ptxgen_target target;
    ptxgen_error err;
    assert_ok(ptxgen_target_parse("sm_90a", &target, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_marlin_spec spec = f16(512, 256, 64);
        const ptxgen_tile tile = {
            .kind = PTXGEN_WGMMA, .tile_m = cases[i].tile_m, .warp_n = 16, .wn = 8, .wk = 1,
            .stages = 3, .steps = 1, .ctas = 1, .pass_m = cases[i].pass_m,
            .cluster = cases[i].cluster};
        ptxgen_marlin_plan plan;
        assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
        assert_int_equal(ptxgen_marlin_use_tile(&plan, &tile, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
        assert_says(&err, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_does_every_kind_of_spec),
        cmocka_unit_test(warpgroups_in_any_order_hand_over_and_do_not_race),
        cmocka_unit_test(tiles_divided_unevenly_are_right_and_do_not_race),
        cmocka_unit_test(warpgroups_that_end_several_tiles_do_not_race),
        cmocka_unit_test(tiles_of_odd_half_strips_are_right_and_do_not_race),
        cmocka_unit_test(half_strips_that_do_not_end_with_n_are_refused),
        cmocka_unit_test(wgmma_is_for_sm_90a_alone_and_a_9_0_device_is_one),
        cmocka_unit_test(an_old_driver_gets_the_base_target),
        cmocka_unit_test(tiles_that_are_no_warpgroups_or_for_other_targets_are_refused),
        cmocka_unit_test(pairs_of_ctas_are_for_ptx_8_1),
        cmocka_unit_test(rows_that_no_tile_of_wgmma_has_are_refused),
        cmocka_unit_test(clusters_that_do_not_divide_k_or_have_no_wgmma_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
