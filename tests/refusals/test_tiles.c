/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of tiles of the caller's choice, and of how large a launch of such a tile may be. */
#include "refusals.h"

#include <ptxgen/dense.h>
#include <ptxgen/marlin.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#define INVALID PTXGEN_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED PTXGEN_ERROR_UNSUPPORTED
#define SHARED PTXGEN_ERROR_SHARED_MEMORY
#define ACCEPTED PTXGEN_OK, NULL

/* ---- dense ---- */

static ptxgen_status dense_tile(const void *tile, const void *with, ptxgen_error *err)
{
    ptxgen_dense_plan plan = *(const ptxgen_dense_plan *)with;
    return ptxgen_dense_use_tile(&plan, tile, err);
}

static ptxgen_dense_plan dense_plan(const char *name, uint32_t multiprocessors)
{
    const ptxgen_dense_spec spec = {.n = 65536, .k = 65536, .type = PTXGEN_F16};
    ptxgen_target target = target_of(name);
    ptxgen_dense_plan plan;
    ptxgen_error err = {0};
    target.multiprocessors = multiprocessors;
    assert_ok(ptxgen_dense_make_plan(&spec, &target, &plan, &err), &err);
    return plan;
}

static const ptxgen_tile dense_mma = {
    .warp_m = 64, .warp_n = 64, .wm = 2, .wn = 2, .wk = 1, .stages = 3, .pass_m = 16};

#define SET(member, number) CHANGE(ptxgen_tile, member, number)
#define TILE "dense: a tile's "
static void dense_refuses_each_wrong_number_of_a_tile(void **state)
{
    (void)state;
    const ptxgen_dense_plan plan = dense_plan("sm_80", 108);
#define BULK                                                                                       \
    ", f16 or bf16, clusters that divide the 108 multiprocessors, and a split that divides the "   \
    "1024 stages along K"
    static const struct refusal rows[] = {
        {{SET(kind, 3)}, INVALID, TILE "kind is 3, not 0 to 2"},
        {{SET(warp_n, 16)}, ACCEPTED},
        {{SET(warp_n, 8)}, INVALID, TILE "warp_n is 8, not a power of two of 16 to 64"},
        {{SET(warp_n, 48)}, INVALID, TILE "warp_n is 48, not a power of two of 16 to 64"},
        {{SET(warp_n, 128)}, INVALID, TILE "warp_n is 128, not a power of two of 16 to 64"},
        {{SET(warp_m, 16)}, ACCEPTED},
        {{SET(warp_m, 8)}, INVALID, TILE "warp_m is 8, not a power of two of 16 to 64"},
        {{SET(warp_m, 128)}, INVALID, TILE "warp_m is 128, not a power of two of 16 to 64"},
        {{SET(wn, 0), SET(wm, 0), SET(wk, 0), SET(ctas, 0), SET(warp_n, 0), SET(pass_m, 0)},
         ACCEPTED},
        {{SET(wn, 3)}, INVALID, TILE "wn is 3, not a power of two of 1 to 16"},
        {{SET(wn, 32)}, INVALID, TILE "wn is 32, not a power of two of 1 to 16"},
        {{SET(wm, 3)}, INVALID, TILE "wm is 3, not a power of two of 1 to 16"},
        {{SET(wm, 32)}, INVALID, TILE "wm is 32, not a power of two of 1 to 16"},
        {{SET(wk, 3)}, INVALID, TILE "wk is 3, not a power of two of 1 to 8"},
        {{SET(wk, 16)}, INVALID, TILE "wk is 16, not a power of two of 1 to 8"},
        {{SET(ctas, 4), SET(warp_n, 16), SET(warp_m, 16)}, ACCEPTED},
        {{SET(ctas, 5)}, INVALID, TILE "ctas is 5, not 1 to 4"},
        {{SET(steps, 1)}, INVALID, TILE "steps is 1, not 0 to 0"},
        {{SET(blocks_n, 1)}, INVALID, TILE "blocks_n is 1, not 0 to 0"},
        {{SET(fused, 1)}, INVALID, TILE "fused is 1, not 0 to 0"},
        {{SET(cluster, 2)}, INVALID, TILE "cluster is 2, not a power of two of 1 to 1"},
        {{SET(split, 2)}, INVALID, TILE "split is 2, not a power of two of 1 to 1"},
        {{SET(stages, 2)}, INVALID, TILE "stages is 2, not 3 to 16"},
        {{SET(stages, 17)}, INVALID, TILE "stages is 17, not 3 to 16"},
        {{SET(stages, 5)},
         SHARED,
         "dense: the tile takes 172288 bytes of shared memory, but a CTA has 166912"},
        {{SET(stages, 4)}, ACCEPTED},
        {{SET(pass_m, 4)}, INVALID, TILE "pass_m is 4, not a power of two of 8 to 64"},
        {{SET(pass_m, 8)}, ACCEPTED},
        {{SET(pass_m, 64)}, ACCEPTED},
        {{SET(pass_m, 128)}, INVALID, TILE "pass_m is 128, not a power of two of 8 to 64"},
        {{SET(wm, 4)}, INVALID, TILE "tile_m is 256, not a power of two of 16 to 128"},
        {{SET(wn, 8), SET(warp_n, 16)}, ACCEPTED},
        {{SET(wn, 8), SET(wk, 2)},
         INVALID,
         "dense: 2 times 8 times 2 warps are more than the 16 of a CTA"},
        {{SET(kind, PTXGEN_BULK)}, UNSUPPORTED, "dense: copies in bulk need sm_90, PTX 8.0" BULK},
        {{SET(kind, PTXGEN_WGMMA), SET(warp_n, 16), SET(wn, 4), SET(wm, 1)},
         UNSUPPORTED,
         "dense: wgmma needs sm_90a" BULK},
    };
    ASSERT_REFUSALS(rows, dense_mma, dense_tile, &plan);
}

static void dense_refuses_each_wrong_number_of_a_tile_copied_in_bulk(void **state)
{
    (void)state;
    const ptxgen_dense_plan plan = dense_plan("sm_90a", 132), odd = dense_plan("sm_90a", 131);
    const ptxgen_tile wgmma = {.warp_n = 16,
                               .warp_m = 64,
                               .wn = 4,
                               .wm = 1,
                               .wk = 1,
                               .stages = 3,
                               .pass_m = 16,
                               .kind = PTXGEN_WGMMA};
#define MMA SET(kind, PTXGEN_BULK), SET(warp_n, 64)
    static const struct refusal rows[] = {
        {{SET(cluster, 2)}, ACCEPTED},
        {{SET(cluster, 4)}, INVALID, TILE "cluster is 4, not a power of two of 1 to 2"},
        {{SET(split, 2)}, ACCEPTED},
        {{SET(split, 4)}, INVALID, TILE "split is 4, not a power of two of 1 to 2"},
        {{SET(cluster, 2), SET(split, 2)},
         INVALID,
         TILE "split is 2, not a power of two of 1 to 1"},
        {{SET(warp_m, 256)}, ACCEPTED},
        {{SET(warp_m, 512)}, INVALID, TILE "warp_m is 512, not a power of two of 16 to 256"},
        {{SET(wn, 2)}, INVALID, TILE "wn is 2, not a power of two of 4 to 16"},
        {{SET(wm, 2)}, INVALID, TILE "wm is 2, not a power of two of 1 to 1"},
        {{SET(wk, 2)}, INVALID, TILE "wk is 2, not a power of two of 1 to 1"},
        {{SET(ctas, 2)}, INVALID, TILE "ctas is 2, not 1 to 1"},
        {{SET(fused, 1)}, INVALID, TILE "fused is 1, not 0 to 0"},
        {{MMA}, ACCEPTED},
        {{MMA, SET(warp_n, 32)}, INVALID, TILE "warp_n is 32, not a power of two of 64 to 64"},
        {{MMA, SET(wn, 1), SET(wm, 4)}, ACCEPTED},
        {{MMA, SET(wn, 1), SET(wm, 8)},
         INVALID,
         TILE "tile_m is 512, not a power of two of 16 to 256"},
    };
    static const struct refusal of_odd[] = {
        {{SET(cluster, 1)}, ACCEPTED},
        {{SET(cluster, 2)},
         UNSUPPORTED,
         "dense: wgmma needs sm_90a, f16 or bf16, clusters that divide the 131 multiprocessors, "
         "and a split that divides the 1024 stages along K"},
    };
    ASSERT_REFUSALS(rows, wgmma, dense_tile, &plan);
    ASSERT_REFUSALS(of_odd, wgmma, dense_tile, &odd);
}
#undef SET
#undef TILE
#undef BULK
#undef MMA

/* A tile of 128 by 128 has 512 along N, of 1024 stages each. */
static void dense_refuses_launches_of_too_many_rows_or_stages(void **state)
{
    (void)state;
    ptxgen_dense_plan plan = dense_plan("sm_80", 108);
    ptxgen_error err = {0};
    uint32_t ctas = 0;
    assert_ok(ptxgen_dense_use_tile(&plan, &dense_mma, &err), &err);
    assert_ok(ptxgen_dense_ctas(&plan, 8191 * 128, &ctas, &err), &err);
    assert_refusal(
        ptxgen_dense_ctas(&plan, 8191 * 128 + 1, &ctas, &err), &err, UNSUPPORTED,
        "dense: m = 1048449 tokens with N = 65536, K = 65536 are 4294967296 stages, more "
        "than 2^32");
    plan.spec.n = plan.spec.k = 64;
    assert_ok(ptxgen_dense_ctas(&plan, 2147483647, &ctas, &err), &err);
    assert_refusal(ptxgen_dense_ctas(&plan, 2147483648, &ctas, &err), &err, UNSUPPORTED,
                   "dense: m = 2147483648 tokens are more than a launch takes, 2147483647");
    plan.spec.max_m = 7;
    assert_ok(ptxgen_dense_ctas(&plan, 7, &ctas, &err), &err);
    assert_refusal(ptxgen_dense_ctas(&plan, 8, &ctas, &err), &err, INVALID,
                   "dense: m = 8 is above the 7 tokens that the plan serves");
}

/* ---- marlin ---- */

static ptxgen_status marlin_tile(const void *tile, const void *with, ptxgen_error *err)
{
    ptxgen_marlin_plan plan = *(const ptxgen_marlin_plan *)with;
    return ptxgen_marlin_use_tile(&plan, tile, err);
}

static ptxgen_marlin_plan marlin_plan(const char *name, int max_ptx, uint32_t k, uint32_t n)
{
    const ptxgen_marlin_spec spec = {.k = k, .n = n, .group_size = 64, .type = PTXGEN_F16};
    ptxgen_target target = target_of(name);
    ptxgen_marlin_plan plan;
    ptxgen_error err = {0};
    target.ptx.max_ptx = max_ptx;
    assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
    return plan;
}

static const ptxgen_tile marlin_mma = {
    .tile_m = 64, .warp_n = 64, .wn = 4, .wk = 2, .stages = 3, .steps = 1, .ctas = 1, .pass_m = 16};

#define SET(member, number) CHANGE(ptxgen_tile, member, number)
#define TILE "marlin: a tile's "
static void marlin_refuses_each_wrong_number_of_a_tile(void **state)
{
    (void)state;
    const ptxgen_marlin_plan plan = marlin_plan("sm_80", 0, 65536, 65536);
    static const struct refusal rows[] = {
        {{SET(tile_m, 8), SET(pass_m, 8)}, ACCEPTED},
        {{SET(tile_m, 4)}, INVALID, TILE "tile_m is 4, not a power of two of 8 to 128"},
        {{SET(tile_m, 48)}, INVALID, TILE "tile_m is 48, not a power of two of 8 to 128"},
        {{SET(tile_m, 256)}, INVALID, TILE "tile_m is 256, not a power of two of 8 to 128"},
        {{SET(warp_n, 32)}, ACCEPTED},
        {{SET(warp_n, 16)}, INVALID, TILE "warp_n is 16, not a power of two of 32 to 64"},
        {{SET(warp_n, 128)}, INVALID, TILE "warp_n is 128, not a power of two of 32 to 64"},
        {{SET(wn, 0)}, INVALID, TILE "wn is 0, not 1 to 32"},
        {{SET(wn, 33)}, INVALID, TILE "wn is 33, not 1 to 32"},
        {{SET(wk, 0), SET(steps, 0), SET(ctas, 0), SET(stages, 0), SET(cluster, 0)}, ACCEPTED},
        {{SET(wm, 2)}, INVALID, TILE "wm is 2, not 1 to 1"},
        {{SET(split, 1)}, INVALID, TILE "split is 1, not 0 to 0"},
        {{SET(kind, 3)}, INVALID, TILE "kind is 3, not 0 to 2"},
        {{SET(wk, 3)}, INVALID, TILE "wk is 3, not a power of two of 1 to 32"},
        {{SET(wk, 64)}, INVALID, TILE "wk is 64, not a power of two of 1 to 32"},
        {{SET(stages, 2)}, INVALID, TILE "stages is 2, not 3 to 16"},
        {{SET(stages, 17)}, INVALID, TILE "stages is 17, not 3 to 16"},
        {{SET(stages, 16)},
         SHARED,
         "marlin: the tile takes 573952 bytes of shared memory, but a CTA has 166912"},
        {{SET(steps, 3)}, INVALID, TILE "steps is 3, not a power of two of 1 to 4"},
        {{SET(steps, 8)}, INVALID, TILE "steps is 8, not a power of two of 1 to 4"},
        {{SET(ctas, 5)}, INVALID, TILE "ctas is 5, not 1 to 4"},
        {{SET(pass_m, 8)}, ACCEPTED},
        {{SET(pass_m, 4)}, INVALID, TILE "pass_m is 4, not a power of two of 8 to 64"},
        {{SET(pass_m, 128)}, INVALID, TILE "pass_m is 128, not a power of two of 8 to 64"},
        {{SET(cluster, 2)},
         INVALID,
         "marlin: a cluster of 2 CTAs: with copies in bulk there are 2, 4 or 8, else none"},
        {{SET(wn, 16), SET(wk, 2), SET(tile_m, 8), SET(pass_m, 8), SET(warp_n, 32)}, ACCEPTED},
        {{SET(wn, 17), SET(wk, 2)},
         INVALID,
         "marlin: 17 times 2 warps are more than the 1024 threads of a CTA"},
        {{SET(kind, PTXGEN_BULK), SET(tile_m, 8), SET(pass_m, 8)},
         UNSUPPORTED,
         "marlin: a tile copied in bulk is for sm_90a, and for whole stages of 128 along K"},
    };
    ASSERT_REFUSALS(rows, marlin_mma, marlin_tile, &plan);
}

static const ptxgen_tile marlin_wgmma = {.tile_m = 64,
                                         .warp_n = 16,
                                         .wn = 4,
                                         .wk = 1,
                                         .stages = 3,
                                         .steps = 1,
                                         .ctas = 1,
                                         .pass_m = 16,
                                         .kind = PTXGEN_WGMMA};

static void marlin_refuses_each_wrong_number_of_a_tile_copied_in_bulk(void **state)
{
    (void)state;
    const ptxgen_marlin_plan plan = marlin_plan("sm_90a", 0, 65536, 65536),
                             odd = marlin_plan("sm_90a", 0, 192, 320),
                             older = marlin_plan("sm_90a", 80, 65536, 65536),
                             newer = marlin_plan("sm_90a", 81, 65536, 65536);
#define MMA SET(kind, PTXGEN_BULK), SET(tile_m, 8), SET(pass_m, 8), SET(warp_n, 32)
    static const struct refusal rows[] = {
        {{SET(tile_m, 48)}, ACCEPTED},
        {{SET(tile_m, 256)}, ACCEPTED},
        {{SET(tile_m, 257)}, INVALID, TILE "tile_m is 257, not 8 to 256"},
        {{SET(tile_m, 40)},
         INVALID,
         "marlin: 40 tokens that a CTA finishes, pass_m 16: those are 8 or a multiple of 16, and "
         "this a multiple of 8 that divides them"},
        {{SET(pass_m, 24)},
         INVALID,
         "marlin: 64 tokens that a CTA finishes, pass_m 24: those are 8 or a multiple of 16, and "
         "this a multiple of 8 that divides them"},
        {{SET(pass_m, 12), SET(tile_m, 48)},
         INVALID,
         "marlin: 48 tokens that a CTA finishes, pass_m 12: those are 8 or a multiple of 16, and "
         "this a multiple of 8 that divides them"},
        {{SET(warp_n, 64)}, INVALID, TILE "warp_n is 64, not a power of two of 16 to 32"},
        {{SET(wn, 3)}, INVALID, TILE "wn is 3, not 4 to 16"},
        {{SET(wn, 6)}, INVALID, "marlin: 6 warps are no warpgroups, which have four"},
        {{SET(wn, 17)}, INVALID, TILE "wn is 17, not 4 to 16"},
        {{SET(wk, 8)}, INVALID, TILE "wk is 8, not a power of two of 1 to 4"},
        {{SET(ctas, 2), SET(wn, 8)}, ACCEPTED},
        {{SET(ctas, 2), SET(wn, 12)},
         INVALID,
         "marlin: 2 CTAs of 3 warpgroups are more than the 4 of a multiprocessor"},
        {{SET(cluster, 2)}, ACCEPTED},
        {{SET(cluster, 1)}, ACCEPTED},
        {{SET(cluster, 3)},
         INVALID,
         "marlin: a cluster of 3 CTAs: with copies in bulk there are 2, 4 or 8, else none"},
        {{MMA, SET(cluster, 8)}, ACCEPTED},
        {{MMA, SET(cluster, 16)},
         INVALID,
         "marlin: a cluster of 16 CTAs: with copies in bulk there are 2, 4 or 8, else none"},
        {{SET(wn, 16), SET(wk, 4)},
         INVALID,
         "marlin: 16 times 4 warps are more than the 1024 threads of a CTA"},
    };
    static const struct refusal of_odd[] = {
        {{SET(steps, 1)}, ACCEPTED},
        {{SET(steps, 2)},
         UNSUPPORTED,
         "marlin: a tile copied in bulk is for sm_90a, and for whole stages of 128 along K"},
        {{MMA, SET(wn, 5)}, ACCEPTED},
        {{MMA, SET(wn, 7)},
         INVALID,
         "marlin: tiles of 224 features, half strips copied in bulk, do not end with the 5 strips "
         "of N"},
    };
    static const struct refusal of_older[] = {
        {{SET(cluster, 2)},
         UNSUPPORTED,
         "marlin: clusters of two CTAs are for PTX 8.1, and the target's is 8.0"},
    };
    static const struct refusal of_newer[] = {{{SET(cluster, 2)}, ACCEPTED}};
    ASSERT_REFUSALS(rows, marlin_wgmma, marlin_tile, &plan);
    ASSERT_REFUSALS(of_odd, marlin_wgmma, marlin_tile, &odd);
    ASSERT_REFUSALS(of_older, marlin_wgmma, marlin_tile, &older);
    ASSERT_REFUSALS(of_newer, marlin_wgmma, marlin_tile, &newer);
}
#undef SET
#undef TILE
#undef MMA

/* A tile of 64 by 256 has 256 along N, of 512 stages each. */
static void marlin_refuses_launches_of_too_many_rows_or_stages(void **state)
{
    (void)state;
    ptxgen_marlin_plan plan = marlin_plan("sm_80", 0, 65536, 65536);
    ptxgen_error err = {0};
    uint32_t ctas = 0;
    assert_ok(ptxgen_marlin_use_tile(&plan, &marlin_mma, &err), &err);
    assert_ok(ptxgen_marlin_ctas(&plan, 32767 * 64, &ctas, &err), &err);
    assert_refusal(
        ptxgen_marlin_ctas(&plan, 32767 * 64 + 1, &ctas, &err), &err, UNSUPPORTED,
        "marlin: m = 2097089 tokens with N = 65536, K = 65536 are 4294967296 stages, more "
        "than 2^32");
    plan.spec.n = plan.spec.k = 64;
    assert_ok(ptxgen_marlin_ctas(&plan, 2147483647, &ctas, &err), &err);
    assert_refusal(ptxgen_marlin_ctas(&plan, 2147483648, &ctas, &err), &err, UNSUPPORTED,
                   "marlin: m = 2147483648 tokens are more than a launch takes, 2147483647");
    plan.spec.max_m = 7;
    assert_ok(ptxgen_marlin_ctas(&plan, 7, &ctas, &err), &err);
    assert_refusal(ptxgen_marlin_ctas(&plan, 8, &ctas, &err), &err, INVALID,
                   "marlin: m = 8 is above the 7 tokens that the plan serves");
}

static void marlin_refuses_tuned_tiles_that_do_not_go_together(void **state)
{
    (void)state;
    const ptxgen_tiling *tiling = ptxgen_marlin_family()->tiling;
    const ptxgen_marlin_plan good = marlin_plan("sm_80", 0, 4096, 4096);
    ptxgen_marlin_plan plan = good;
    ptxgen_tuned_range ranges[2] = {{.to_m = 4}, {.to_m = 8}};
    ptxgen_error err = {0};
    assert_true(tiling->candidate(&good, 0, ranges[0].tile));
    for (size_t i = 1; ranges[1].tile[0] != 8; i++)
        assert_true(tiling->candidate(&good, i, ranges[1].tile));
    assert_int_equal(ranges[0].tile[0], 8);
    assert_refusal(tiling->use(&plan, ranges, 2, &err), &err, UNSUPPORTED,
                   "marlin: two different tiles are both marlin_m8");
    plan = good;
    ranges[1].tile[0] = 12;
    assert_refusal(tiling->use(&plan, ranges, 2, &err), &err, UNSUPPORTED,
                   "marlin: the tile for M up to 8 is none that this plan may have");
    plan = good;
    ranges[1] = ranges[0];
    ranges[1].to_m = 8;
    assert_ok(tiling->use(&plan, ranges, 2, &err), &err);
}

/* ---- sparse24 ---- */

static ptxgen_status sparse24_tile(const void *tile, const void *with, ptxgen_error *err)
{
    ptxgen_sparse24_plan plan = *(const ptxgen_sparse24_plan *)with;
    return ptxgen_sparse24_use_tile(&plan, tile, err);
}

static ptxgen_sparse24_plan sparse24_plan(const char *name, uint32_t n, uint32_t k, uint8_t tier)
{
    const ptxgen_sparse24_spec spec = {
        .n = n, .k = k, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16, .tier = tier};
    const ptxgen_target target = target_of(name);
    ptxgen_sparse24_plan plan;
    ptxgen_error err = {0};
    assert_ok(ptxgen_sparse24_make_plan(&spec, &target, &plan, &err), &err);
    return plan;
}

static const ptxgen_tile sparse24_mma = {
    .tile_m = 64, .wn = 4, .wm = 1, .wk = 1, .warp_n = 32, .stages = 3, .pass_m = 16};

#define SET(member, number) CHANGE(ptxgen_tile, member, number)
#define TILE "sparse24: a tile's "
#define CLUSTER(ctas, stages)                                                                      \
    "sparse24: a cluster of " #ctas " CTAs needs sm_90, as many multiprocessors that can be "      \
    "divided by it, and so the " #stages " stages along K; with wgmma no more tiles than clusters"
static void sparse24_refuses_each_wrong_number_of_a_tile(void **state)
{
    (void)state;
    const ptxgen_sparse24_plan plan = sparse24_plan("sm_80", 65536, 65536, 2),
                               dense = sparse24_plan("sm_80", 64, 64, 1);
    static const struct refusal rows[] = {
        {{SET(kind, 2)}, INVALID, TILE "kind is 2, not 0 to 1"},
        {{SET(tile_m, 8), SET(pass_m, 8)}, ACCEPTED},
        {{SET(tile_m, 4)}, INVALID, TILE "tile_m is 4, not a power of two of 8 to 128"},
        {{SET(tile_m, 24)}, INVALID, TILE "tile_m is 24, not a power of two of 8 to 128"},
        {{SET(tile_m, 256)}, INVALID, TILE "tile_m is 256, not a power of two of 8 to 128"},
        {{SET(wn, 3)}, ACCEPTED},
        {{SET(wn, 0), SET(wm, 0), SET(wk, 0), SET(warp_n, 0), SET(pass_m, 0)}, ACCEPTED},
        {{SET(ctas, 2)}, INVALID, TILE "ctas is 2, not 1 to 1"},
        {{SET(wn, 9)}, INVALID, TILE "wn is 9, not 1 to 8"},
        {{SET(wm, 2), SET(wn, 2)}, ACCEPTED},
        {{SET(wm, 4)}, INVALID, TILE "wm is 4, not a power of two of 1 to 2"},
        {{SET(wk, 3)}, INVALID, TILE "wk is 3, not a power of two of 1 to 8"},
        {{SET(wk, 16)}, INVALID, TILE "wk is 16, not a power of two of 1 to 8"},
        {{SET(warp_n, 16)}, INVALID, TILE "warp_n is 16, not a power of two of 32 to 32"},
        {{SET(cluster, 16)}, INVALID, TILE "cluster is 16, not a power of two of 1 to 8"},
        {{SET(stages, 2)}, INVALID, TILE "stages is 2, not 3 to 16"},
        {{SET(stages, 17)}, INVALID, TILE "stages is 17, not 3 to 16"},
        {{SET(stages, 16)},
         SHARED,
         "sparse24: the tile takes 566272 bytes of shared memory, but a CTA has 166912"},
        {{SET(pass_m, 4)}, INVALID, TILE "pass_m is 4, not a power of two of 8 to 64"},
        {{SET(pass_m, 64)}, ACCEPTED},
        {{SET(pass_m, 128)}, INVALID, TILE "pass_m is 128, not a power of two of 8 to 64"},
        {{SET(wm, 2), SET(pass_m, 64)},
         INVALID,
         TILE "pass_m is 64, not a power of two of 8 to 32"},
        {{SET(wk, 4), SET(wn, 5)},
         INVALID,
         "sparse24: 1 times 5 times 4 warps are more than the 16 of a CTA"},
        {{SET(cluster, 2)}, UNSUPPORTED, CLUSTER(2, 512)},
        {{SET(kind, PTXGEN_WGMMA), SET(warp_n, 16)},
         UNSUPPORTED,
         "sparse24: wgmma.sp needs sm_90a, PTX 8.2"},
    };
    static const struct refusal of_dense[] = {
        {{SET(wn, 4)}, INVALID, "sparse24: the tiles of tier 1 are dense's, not of this family"}};
    ASSERT_REFUSALS(rows, sparse24_mma, sparse24_tile, &plan);
    ASSERT_REFUSALS(of_dense, sparse24_mma, sparse24_tile, &dense);
}

static void sparse24_refuses_each_wrong_number_of_a_tile_copied_in_bulk(void **state)
{
    (void)state;
    const ptxgen_sparse24_plan plan = sparse24_plan("sm_90a", 4224, 384, 2),
                               more = sparse24_plan("sm_90a", 4225, 512, 2),
                               even = sparse24_plan("sm_90a", 4224, 512, 2);
    const ptxgen_tile wgmma = {.tile_m = 64,
                               .wn = 4,
                               .wm = 1,
                               .wk = 1,
                               .warp_n = 16,
                               .stages = 3,
                               .pass_m = 16,
                               .kind = PTXGEN_WGMMA};
#define MMA SET(kind, PTXGEN_MMA), SET(warp_n, 32)
    static const struct refusal rows[] = {
        {{SET(wk, 1)}, ACCEPTED},
        {{SET(wk, 2)},
         UNSUPPORTED,
         "sparse24: 2 warpgroups along K do not divide its 3 steps of 128"},
        {{SET(wn, 2)}, INVALID, TILE "wn is 2, not a power of two of 4 to 16"},
        {{SET(wn, 12)}, INVALID, TILE "wn is 12, not a power of two of 4 to 16"},
        {{SET(wm, 2)}, INVALID, TILE "wm is 2, not a power of two of 1 to 1"},
        {{SET(warp_n, 8)}, INVALID, TILE "warp_n is 8, not a power of two of 16 to 32"},
        {{SET(cluster, 4)}, INVALID, TILE "cluster is 4, not a power of two of 1 to 2"},
        {{SET(cluster, 2)}, UNSUPPORTED, CLUSTER(2, 3)},
        {{SET(cluster, 2), SET(wk, 2)}, INVALID, TILE "wk is 2, not a power of two of 1 to 1"},
        {{SET(cluster, 2), SET(tile_m, 8)},
         INVALID,
         TILE "tile_m is 8, not a power of two of 16 to 128"},
        {{MMA, SET(cluster, 2)}, UNSUPPORTED, CLUSTER(2, 3)},
    };
    static const struct refusal of_even[] = {
        {{SET(wk, 2)}, ACCEPTED},
        {{SET(cluster, 2)}, ACCEPTED},
        {{SET(wn, 16)}, ACCEPTED},
        {{SET(wn, 16), SET(wk, 2)},
         INVALID,
         "sparse24: 1 times 16 times 2 warps are more than the 16 of a CTA"},
        {{MMA, SET(cluster, 4)}, ACCEPTED},
        {{MMA, SET(cluster, 8)}, UNSUPPORTED, CLUSTER(8, 4)},
    };
    static const struct refusal of_more[] = {{{SET(cluster, 2)}, UNSUPPORTED, CLUSTER(2, 4)}};
    ASSERT_REFUSALS(rows, wgmma, sparse24_tile, &plan);
    ASSERT_REFUSALS(of_even, wgmma, sparse24_tile, &even);
    ASSERT_REFUSALS(of_more, wgmma, sparse24_tile, &more);
}
#undef SET
#undef TILE

/* A tile of 64 by 128 has 512 along N, of 512 stages each. */
static void sparse24_refuses_launches_of_too_many_rows_or_stages(void **state)
{
    (void)state;
    ptxgen_sparse24_plan plan = sparse24_plan("sm_80", 65536, 65536, 2);
    ptxgen_error err = {0};
    uint32_t ctas = 0;
    assert_ok(ptxgen_sparse24_use_tile(&plan, &sparse24_mma, &err), &err);
    assert_ok(ptxgen_sparse24_ctas(&plan, 16383 * 64, &ctas, &err), &err);
    assert_refusal(ptxgen_sparse24_ctas(&plan, 16383 * 64 + 1, &ctas, &err), &err, UNSUPPORTED,
                   "sparse24: m = 1048513 tokens with N = 65536, K = 65536 are 4294967296 stages, "
                   "more than 2^32");
    plan.spec.n = plan.spec.k = 64;
    assert_ok(ptxgen_sparse24_ctas(&plan, 2147483647, &ctas, &err), &err);
    assert_refusal(ptxgen_sparse24_ctas(&plan, 2147483648, &ctas, &err), &err, UNSUPPORTED,
                   "sparse24: m = 2147483648 tokens are more than a launch takes, 2147483647");
    plan.spec.max_m = 7;
    assert_ok(ptxgen_sparse24_ctas(&plan, 7, &ctas, &err), &err);
    assert_refusal(ptxgen_sparse24_ctas(&plan, 8, &ctas, &err), &err, INVALID,
                   "sparse24: m = 8 is above the 7 tokens that the plan serves");
    plan = sparse24_plan("sm_80", 64, 64, 1);
    plan.spec.max_m = plan.dense.spec.max_m = 7;
    assert_ok(ptxgen_sparse24_ctas(&plan, 7, &ctas, &err), &err);
    assert_refusal(ptxgen_sparse24_ctas(&plan, 8, &ctas, &err), &err, INVALID,
                   "sparse24: m = 8 is above the 7 tokens that the plan serves");
}

/* Clusters have a tile each: 66 of them, with 8 tiles along N. */
static void sparse24_refuses_launches_of_more_tiles_than_clusters(void **state)
{
    (void)state;
    ptxgen_sparse24_plan plan = sparse24_plan("sm_90a", 512, 512, 2);
    const ptxgen_tile tile = {.tile_m = 64,
                              .wn = 4,
                              .wm = 1,
                              .wk = 1,
                              .warp_n = 16,
                              .cluster = 2,
                              .stages = 3,
                              .pass_m = 16,
                              .kind = PTXGEN_WGMMA};
    ptxgen_error err = {0};
    uint32_t ctas = 0;
    assert_ok(ptxgen_sparse24_use_tile(&plan, &tile, &err), &err);
    assert_ok(ptxgen_sparse24_ctas(&plan, 8 * 64, &ctas, &err), &err);
    assert_refusal(
        ptxgen_sparse24_ctas(&plan, 8 * 64 + 1, &ctas, &err), &err, UNSUPPORTED,
        "sparse24: m = 513 tokens make 72 tiles, more than the 66 clusters of this tile's "
        "launch");
}

/* ---- w8a8 ---- */

static ptxgen_status w8a8_tile(const void *tile, const void *with, ptxgen_error *err)
{
    ptxgen_w8a8_plan plan = *(const ptxgen_w8a8_plan *)with;
    return ptxgen_w8a8_use_tile(&plan, tile, err);
}

static ptxgen_w8a8_plan w8a8_plan(const char *name, uint32_t n, uint32_t k)
{
    const ptxgen_w8a8_spec spec = {.k = k, .n = n, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    const ptxgen_target target = target_of(name);
    ptxgen_w8a8_plan plan;
    ptxgen_error err = {0};
    assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
    return plan;
}

static const ptxgen_tile w8a8_mma = {
    .tile_m = 128, .tile_n = 128, .wm = 4, .wn = 2, .wk = 1, .stages = 3};

#define SET(member, number) CHANGE(ptxgen_tile, member, number)
#define TILE "w8a8: a tile's "
#define NO_CTA "w8a8: no CTA holds a tile of "
#define WARPS " warps along M, N and K in "
static void w8a8_refuses_each_wrong_number_of_a_tile(void **state)
{
    (void)state;
    const ptxgen_w8a8_plan plan = w8a8_plan("sm_80", 65536, 65536);
    static const struct refusal rows[] = {
        {{SET(tile_m, 128)}, ACCEPTED},
        {{SET(tile_m, 8)},
         INVALID,
         NO_CTA "8 tokens by 128 features for 4 x 2 x 1" WARPS "3 stages, in a cluster of 1"},
        {{SET(tile_m, 512)},
         INVALID,
         NO_CTA "512 tokens by 128 features for 4 x 2 x 1" WARPS "3 stages, in a cluster of 1"},
        {{SET(tile_m, 256), SET(stages, 0)}, ACCEPTED},
        {{SET(tile_n, 257)},
         INVALID,
         NO_CTA "128 tokens by 257 features for 4 x 2 x 1" WARPS "3 stages, in a cluster of 1"},
        {{SET(wn, 4)},
         INVALID,
         NO_CTA "128 tokens by 128 features for 4 x 4 x 1" WARPS "3 stages, in a cluster of 1"},
        {{SET(tile_n, 32)}, ACCEPTED},
        {{SET(tile_n, 32), SET(wn, 1), SET(wm, 8)},
         INVALID,
         NO_CTA "128 tokens by 32 features for 8 x 1 x 1" WARPS "3 stages, in a cluster of 1"},
        {{SET(wm, 2), SET(wk, 2)},
         INVALID,
         NO_CTA "128 tokens by 128 features for 2 x 2 x 2" WARPS "3 stages, in a cluster of 1"},
        {{SET(pass_m, 8)}, INVALID, TILE "pass_m is 8, not 0 to 0"},
        {{SET(stages, 2)}, INVALID, TILE "stages is 2, not 3 to 16"},
        {{SET(stages, 17)}, INVALID, TILE "stages is 17, not 3 to 16"},
        {{SET(kind, PTXGEN_WGMMA), SET(stages, 21)}, INVALID, TILE "stages is 21, not 3 to 20"},
        {{SET(stages, 4)}, ACCEPTED},
        {{SET(stages, 5)},
         SHARED,
         "w8a8: the tile takes 180736 bytes of shared memory, but a CTA has 166912"},
        {{SET(ctas, 2)},
         INVALID,
         NO_CTA "128 tokens by 128 features for 4 x 2 x 1" WARPS "3 stages, in a cluster of 1"},
        {{SET(wm, 0), SET(wk, 0), SET(wn, 8), SET(ctas, 0), SET(cluster, 0)}, ACCEPTED},
        {{SET(cluster, 2)},
         UNSUPPORTED,
         NO_CTA "128 tokens by 128 features for 4 x 2 x 1" WARPS "3 stages, in a cluster of 2"},
        {{SET(kind, PTXGEN_BULK)}, INVALID, TILE "kind is 2, not 0 to 1"},
        {{SET(kind, PTXGEN_WGMMA)},
         UNSUPPORTED,
         NO_CTA "128 tokens by 128 features for 4 x 2 x 1" WARPS "3 stages, in a cluster of 1"},
    };
    ASSERT_REFUSALS(rows, w8a8_mma, w8a8_tile, &plan);
}
#undef SET

/* A tile of 128 by 128 has 512 along N, of 512 stages each. */
static void w8a8_refuses_launches_of_too_many_tokens_or_stages(void **state)
{
    (void)state;
    ptxgen_w8a8_plan plan = w8a8_plan("sm_80", 65536, 65536);
    ptxgen_error err = {0};
    uint32_t ctas = 0;
    assert_ok(ptxgen_w8a8_use_tile(&plan, &w8a8_mma, &err), &err);
    assert_ok(ptxgen_w8a8_ctas(&plan, 16383 * 128, &ctas, &err), &err);
    assert_refusal(ptxgen_w8a8_ctas(&plan, 16383 * 128 + 1, &ctas, &err), &err, UNSUPPORTED,
                   "w8a8: m = 2097025 tokens with N = 65536, K = 65536 are 4294967296 stages, more "
                   "than 2^32");
    plan.spec.n = plan.spec.k = plan.spec.w_stride = 64;
    plan.variants[0].blocks_n = 1;
    assert_ok(ptxgen_w8a8_ctas(&plan, 2147483647, &ctas, &err), &err);
    assert_refusal(ptxgen_w8a8_ctas(&plan, 2147483648, &ctas, &err), &err, UNSUPPORTED,
                   "w8a8: m = 2147483648 tokens are more than a launch takes, 2147483647");
    plan.spec.min_m = 3;
    plan.spec.max_m = 7;
    for (uint32_t m = 3; m <= 7; m += 4)
        assert_ok(ptxgen_w8a8_ctas(&plan, m, &ctas, &err), &err);
    assert_refusal(ptxgen_w8a8_ctas(&plan, 2, &ctas, &err), &err, INVALID,
                   "w8a8: m = 2 is outside the 3 to 7 tokens that the plan serves (0: any)");
    assert_refusal(ptxgen_w8a8_ctas(&plan, 8, &ctas, &err), &err, INVALID,
                   "w8a8: m = 8 is outside the 3 to 7 tokens that the plan serves (0: any)");
}

/* ---- all ---- */

/*
 * Numbers whose sums and products wrap at 2^32, alone and two at a time: refused, and at once,
 * whatever the others are.
 */
static void numbers_that_could_wrap_are_refused(void **state)
{
    (void)state;
    static const uint32_t large[] = {1025,       0x10000001, 0x20000001, 0x40000000,
                                     0x80000000, 0x80000001, UINT32_MAX};
    static const char *const names[] = {"tile_m",  "tile_n", "warp_m", "warp_n", "wm",
                                        "wn",      "wk",     "steps",  "ctas",   "pass_m",
                                        "cluster", "split",  "fused"};
    enum { NAMES = sizeof names / sizeof *names, LARGE = sizeof large / sizeof *large };
    const ptxgen_dense_plan dense = dense_plan("sm_90a", 132);
    const ptxgen_marlin_plan marlin = marlin_plan("sm_90a", 0, 4096, 4096);
    const ptxgen_sparse24_plan sparse24 = sparse24_plan("sm_90a", 4096, 4096, 2);
    const ptxgen_w8a8_plan w8a8 = w8a8_plan("sm_90a", 4096, 4096);
    const ptxgen_tile w8a8_wgmma = {.kind = PTXGEN_WGMMA, .tile_m = 128, .tile_n = 64};
    const struct {
        asking *ask;
        const void *plan;
        const ptxgen_tile *good;
    } rows[] = {
        {dense_tile, &dense, &dense_mma},      {marlin_tile, &marlin, &marlin_mma},
        {marlin_tile, &marlin, &marlin_wgmma}, {sparse24_tile, &sparse24, &sparse24_mma},
        {w8a8_tile, &w8a8, &w8a8_mma},         {w8a8_tile, &w8a8, &w8a8_wgmma},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (unsigned a = 0; a < NAMES * LARGE; a++)
            for (unsigned b = 0; b < NAMES * LARGE; b++) {
                ptxgen_tile tile = *rows[i].good;
                ptxgen_error err = {.status = PTXGEN_OK};
                *ptxgen_tile_member(&tile, names[b / LARGE]) = large[b % LARGE];
                *ptxgen_tile_member(&tile, names[a / LARGE]) = large[a % LARGE];
                assert_int_equal(rows[i].ask(&tile, rows[i].plan, &err), INVALID);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_refuses_each_wrong_number_of_a_tile),
        cmocka_unit_test(dense_refuses_each_wrong_number_of_a_tile_copied_in_bulk),
        cmocka_unit_test(dense_refuses_launches_of_too_many_rows_or_stages),
        cmocka_unit_test(marlin_refuses_each_wrong_number_of_a_tile),
        cmocka_unit_test(marlin_refuses_each_wrong_number_of_a_tile_copied_in_bulk),
        cmocka_unit_test(marlin_refuses_launches_of_too_many_rows_or_stages),
        cmocka_unit_test(marlin_refuses_tuned_tiles_that_do_not_go_together),
        cmocka_unit_test(sparse24_refuses_each_wrong_number_of_a_tile),
        cmocka_unit_test(sparse24_refuses_each_wrong_number_of_a_tile_copied_in_bulk),
        cmocka_unit_test(sparse24_refuses_launches_of_too_many_rows_or_stages),
        cmocka_unit_test(sparse24_refuses_launches_of_more_tiles_than_clusters),
        cmocka_unit_test(w8a8_refuses_each_wrong_number_of_a_tile),
        cmocka_unit_test(w8a8_refuses_launches_of_too_many_tokens_or_stages),
        cmocka_unit_test(numbers_that_could_wrap_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
