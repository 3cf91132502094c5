/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include "../gemm/ring.h"

enum {
    MOST_ROWS = 128,
    MOST_BULK_ROWS = 256,
    PAST_ROW = 2000,
};

/* ---- the spec ---- */

static ptxgen_status check_spec(const void *spec, ptxgen_error *err)
{
    const ptxgen_dense_spec *s = spec;
    if (s->type > PTXGEN_BF16)
        return ptxgen_fail(err, plan_refuses_enumerator(s->type <= PTXGEN_F64),
                           "dense: the type %u is none of PTXGEN_F32, _F16 and _BF16", s->type);
    uint32_t most_k = INT32_MAX / dense_element(s) - 15;
    if (s->n > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "dense: N = %u is above %d", s->n,
                           INT32_MAX);
    if (s->k > most_k)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "dense: K = %u is above %u", s->k,
                           most_k);
    if (s->activation > PTXGEN_ACTIVATION_RELU)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "dense: %u is not an activation",
                           s->activation);
    const struct plan_flag flags[] = {{"bias", s->bias, 1}, {"residual", s->residual, 1}};
    return plan_check_flags("dense", flags, sizeof flags / sizeof *flags, err);
}

/* ---- tiles ---- */

static void derive(ptxgen_tile *v)
{
    v->tile_m = v->wm * v->warp_m;
    v->tile_n = v->wn * v->warp_n;
}

static uint64_t shared_bytes(const void *plan, const ptxgen_tile *v)
{
    (void)plan;
    return v->stages * dense_stage_bytes(v) + dense_staging_bytes(v) + dense_barrier_bytes(v);
}

/*
 * Multiply-adds of a multiprocessor in a nanosecond, from measurements on an H100. With mma.sync a
 * warp of 32 features reaches 205 by itself.
 */
static uint64_t multiply_adds(const ptxgen_dense_spec *s, const ptxgen_tile *v)
{
    if (gemm_is_wgmma(v))
        return 2650;
    if (gemm_is_bulk(v))
        return 1900;
    if (s->type == PTXGEN_F32)
        return v->tile_m == MOST_ROWS ? 205 : 165;
    uint64_t warps = (uint64_t)v->wm * v->wn * v->wk * v->ctas * v->warp_n * 205 / 32;
    return warps < 1700 ? warps : 1700;
}

/*
 * The time of the CTA with the most work for m tokens, in picoseconds, with marlin's figures for an
 * H100. A step of 64 of K takes a tile the longest of three times: reading weights from memory (23
 * bytes a nanosecond and multiprocessor, once for all rows of tiles), reading both operands from
 * the L2 (45 bytes a nanosecond by cp.async, 90 in bulk), and multiplying. Dividing tiles takes
 * 2500 ns, and more for more tokens and for clusters; a cluster that divides K takes 2500 ns. The
 * CTAs of a cluster with the same tokens read x once. Bulk copies add a little for the L2, and in
 * such clusters 2 ns for each token of a box that does not exist.
 */
static uint64_t cost(const void *of, const ptxgen_tile *v, uint64_t m)
{
    const ptxgen_dense_plan *plan = of;
    const ptxgen_dense_spec *s = &plan->spec;
    uint64_t w = (uint64_t)v->tile_n * DENSE_BLOCK_BYTES;
    uint64_t x = (uint64_t)v->tile_m * DENSE_BLOCK_BYTES;
    uint64_t rows = (m + v->tile_m - 1) / v->tile_m;
    uint64_t products = w / dense_element(s) * v->tile_m * 1000 / multiply_adds(s, v);
    uint64_t memory = w * 1000 / 23 / rows;
    uint64_t l2 = (w + x / v->cluster) * 1000 / (gemm_is_bulk(v) ? 90 : 45);
    uint64_t step = memory > l2 ? memory : l2;
    step = step > products ? step : products;
    if (gemm_is_wgmma(v))
        step += l2 / 16;
    if (v->cluster > 1)
        step += (rows * v->tile_m - m) * PAST_ROW / rows;
    uint64_t tiles = rows * dense_tiles_n(s, v);
    uint64_t steps = (uint64_t)dense_stages_along_k(s, v) * v->wk;
    uint64_t ctas = plan->target.multiprocessors * v->ctas / dense_cluster(v);
    step *= v->ctas;
    if (v->split > 1)
        return tiles > ctas ? UINT64_MAX : steps / v->split * step + 2500000;
    if (!dense_divides(v) || gemm_deals_whole(tiles, (uint32_t)ctas))
        return (tiles + ctas - 1) / ctas * steps * step;
    uint64_t ends = 2500000 + (uint64_t)v->tile_m * 60000 + (v->cluster - 1) * 1000000;
    return (tiles * steps + ctas - 1) / ctas * step + ends;
}

/*
 * Of the candidates with equally many tokens the cheapest is used, of equally cheap ones the first.
 */
static const ptxgen_tile candidates[] = {
    {.warp_m = 16, .warp_n = 32, .wn = 2, .wk = 4, .pass_m = 16},
    {.warp_m = 16, .warp_n = 32, .wn = 4, .wk = 2, .pass_m = 16},
    {.warp_m = 16, .warp_n = 32, .wn = 2, .wk = 2, .pass_m = 16},
    {.warp_m = 32, .warp_n = 32, .wn = 2, .wk = 4, .pass_m = 16},
    {.warp_m = 32, .warp_n = 32, .wn = 4, .wk = 2, .pass_m = 16},
    {.warp_m = 32, .warp_n = 32, .wn = 2, .wk = 2, .pass_m = 16},
    {.warp_m = 64, .warp_n = 32, .wn = 2, .wk = 4, .pass_m = 16},
    {.warp_m = 64, .warp_n = 32, .wn = 4, .wk = 2, .pass_m = 16},
    {.warp_m = 64, .warp_n = 32, .wn = 2, .wk = 2, .pass_m = 16},
    {.warp_m = 64, .warp_n = 32, .wn = 4, .pass_m = 16},
    {.warp_m = 64, .warp_n = 32, .wn = 2, .pass_m = 16},
    {.warp_m = 64, .warp_n = 64, .wm = 2, .wn = 4, .pass_m = 32},
    {.warp_m = 64, .warp_n = 64, .wm = 2, .wn = 2, .pass_m = 16},
    {.warp_m = 64, .warp_n = 32, .wm = 2, .wn = 2, .pass_m = 16},
};

/* Candidates with wgmma, one for each name of an entry. */
static const ptxgen_tile wgmma_candidates[] = {
    {.kind = PTXGEN_WGMMA, .warp_m = 32, .warp_n = 16, .wn = 4, .pass_m = 32},
    {.kind = PTXGEN_WGMMA, .warp_m = 32, .warp_n = 16, .wn = 4, .pass_m = 32, .split = 2},
    {.kind = PTXGEN_WGMMA, .warp_m = 64, .warp_n = 16, .wn = 4, .pass_m = 32},
    {.kind = PTXGEN_WGMMA, .warp_m = 64, .warp_n = 16, .wn = 4, .pass_m = 32, .split = 2},
    {.kind = PTXGEN_WGMMA, .warp_m = 128, .warp_n = 16, .wn = 4, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .warp_m = 128, .warp_n = 16, .wn = 8, .pass_m = 32, .split = 2},
    {.kind = PTXGEN_WGMMA, .warp_m = 256, .warp_n = 16, .wn = 8, .pass_m = 32, .cluster = 2},
    {.kind = PTXGEN_WGMMA, .warp_m = 128, .warp_n = 16, .wn = 8, .pass_m = 32, .cluster = 2},
};

/* Candidates with bulk copies and mma.sync, for many tokens: with clusters of two, and without. */
static const ptxgen_tile bulk_candidates[] = {
    {.kind = PTXGEN_BULK, .warp_m = 64, .warp_n = 64, .wm = 4, .wn = 2, .pass_m = 16, .cluster = 2},
    {.kind = PTXGEN_BULK, .warp_m = 64, .warp_n = 64, .wm = 4, .wn = 2, .pass_m = 16},
};

/* Whether ptxas spills registers of the tile: one tile for sm_87, where K has one stage only. */
static bool is_spilled(const ptxgen_dense_plan *plan, const ptxgen_tile *v)
{
    return plan->target.ptx.sm == 87 && plan->spec.type != PTXGEN_F32 && v->warp_n == 64 &&
           v->wm == 2 && v->wn == 2 && dense_stages_along_k(&plan->spec, v) == 1;
}

/* Whether the target has the instructions and the shared memory that the tile needs. */
static bool is_usable(const ptxgen_dense_plan *plan, const ptxgen_tile *v)
{
    if (is_spilled(plan, v))
        return false;
    bool has = gemm_is_wgmma(v) ? dense_has_wgmma(plan) : dense_has_bulk(plan);
    return !gemm_is_bulk(v) || (has && plan->target.multiprocessors % dense_cluster(v) == 0 &&
                                dense_stages_along_k(&plan->spec, v) % v->split == 0);
}

/* Halves the sums of a warp for f32, whose split operands take more registers. */
static bool adapt(const void *of, ptxgen_tile *v)
{
    const ptxgen_dense_plan *plan = of;
    if (plan->spec.type == PTXGEN_F32 && v->warp_n >= 64) {
        v->wm = 4;
        v->wn = 2;
        v->warp_m = 32;
        derive(v);
    }
    return is_usable(plan, v);
}

/* Adds one tile for each number of tokens up to `widest`; the widest tile serves any M. */
static void choose_mma(ptxgen_dense_plan *plan, uint32_t most_m, uint32_t widest)
{
    for (uint32_t rows = 16, served = 0; rows <= widest && served < most_m; rows *= 2)
        if (gemm_add_cheapest(&dense_planner, plan, GEMM_AMONG(candidates, rows, rows),
                              rows == MOST_ROWS ? GEMM_ANY_M : rows))
            served = rows;
}

/* Adds one tile for each number of tokens up to 64, then the best tile for each larger M. */
static void choose_wgmma(ptxgen_dense_plan *plan, uint32_t most_m)
{
    for (uint32_t rows = 32; rows <= 1024 && rows / 2 < most_m; rows *= 2) {
        bool many = rows >= MOST_ROWS;
        gemm_add_cheapest(
            &dense_planner, plan,
            GEMM_AMONG(wgmma_candidates, many ? MOST_ROWS : rows, many ? MOST_BULK_ROWS : rows),
            rows == 1024 ? GEMM_ANY_M : rows);
    }
}

static ptxgen_status choose_tiles(void *of, ptxgen_error *err)
{
    ptxgen_dense_plan *plan = of;
    uint32_t most = plan->spec.max_m ? plan->spec.max_m : UINT32_MAX;
    bool wgmma = dense_has_wgmma(plan);
    (void)err;
    choose_mma(plan, most, wgmma ? 16 : MOST_ROWS);
    if (wgmma)
        choose_wgmma(plan, most);
    else if (dense_has_bulk(plan) && most > MOST_ROWS)
        gemm_add_cheapest(&dense_planner, plan,
                          GEMM_AMONG(bulk_candidates, MOST_BULK_ROWS, MOST_BULK_ROWS), GEMM_ANY_M);
    return PTXGEN_OK;
}

static ptxgen_status check_tile(const void *of, ptxgen_tile *v, ptxgen_error *err)
{
    const ptxgen_dense_plan *plan = of;
    bool wgmma = gemm_is_wgmma(v), bulk = gemm_is_bulk(v);
    const struct plan_number numbers[] = {
        {"warp_m", v->warp_m, 16, wgmma ? MOST_BULK_ROWS : 64, true},
        {"warp_n", v->warp_n, bulk && !wgmma ? 64 : 16, 64, true},
        {"wm", v->wm, 1, wgmma ? 1 : 16, true},
        {"wn", v->wn, wgmma ? GEMM_WARPGROUP_WARPS : 1, 16, true},
        {"wk", v->wk, 1, bulk ? 1 : 8, true},
        {"ctas", v->ctas, 1, bulk ? 1 : PTXGEN_DENSE_MOST_CTAS, false},
        {"cluster", v->cluster, 1, bulk ? 2 : 1, true},
        {"split", v->split, 1, wgmma && v->cluster == 1 ? 2 : 1, true},
        {"pass_m", v->pass_m, 8, v->warp_m, true},
        {"tile_m", v->tile_m, 16, bulk ? MOST_BULK_ROWS : MOST_ROWS, true},
    };
    ptxgen_status status =
        plan_check_numbers("dense", numbers, sizeof numbers / sizeof *numbers, err);
    if (status == PTXGEN_OK)
        status = gemm_check_warps("dense", v, err);
    if (status == PTXGEN_OK && bulk && !is_usable(plan, v))
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "dense: %s, f16 or bf16, clusters that divide the %u multiprocessors, and a split that "
            "divides the %u stages along K",
            wgmma ? "wgmma needs sm_90a" : "copies in bulk need sm_90, PTX 8.0",
            plan->target.multiprocessors, dense_stages_along_k(&plan->spec, v));
    return status;
}

/* ---- launches ---- */

/* A variant of wgmma serves more tokens than it has only where none has one tile along M. */
static uint64_t variant_cost(const void *of, const ptxgen_tile *v, uint64_t m)
{
    const ptxgen_dense_plan *plan = of;
    bool last = v == &plan->variants[plan->variant_count - 1];
    if (gemm_is_wgmma(v) && v->tile_m < m && m <= MOST_ROWS && !last)
        return UINT64_MAX;
    return cost(plan, v, m);
}

static struct gemm_work work(const void *of, const ptxgen_tile *v)
{
    const ptxgen_dense_spec *s = &((const ptxgen_dense_plan *)of)->spec;
    return (struct gemm_work){dense_tiles_n(s, v), dense_own_stages(s, v), dense_cluster(v),
                              gemm_partials_bytes(gemm_tile_threads(v), dense_fragments(v))};
}

static bool is_whole(const void *plan, const ptxgen_tile *v, uint64_t tiles, uint32_t units)
{
    (void)plan;
    return !dense_divides(v) || gemm_deals_whole(tiles, units);
}

static void describe(const void *of, const ptxgen_tile *v, uint64_t m, char *text, size_t size)
{
    const char *pairs = v->cluster > 1 ? "; two CTAs share their tokens" : "";
    (void)of, (void)m;
    gemm_describe_tile(v, gemm_name_kind(v), v->split > 1 ? "; two CTAs divide K" : pairs, text,
                       size);
}

static void guarantee(const void *of, const ptxgen_tile *v, ptxgen_guarantee *g)
{
    bool splits = ((const ptxgen_dense_plan *)of)->spec.type == PTXGEN_F32;
    (void)v;
    g->x_rounding = g->w_rounding = splits ? PTXGEN_ROUNDING_TF32_PAIR : PTXGEN_ROUNDING_NONE;
    g->bound = PTXGEN_BOUND_PRODUCTS;
}

const struct gemm_planner dense_planner = {
    GEMM_PLANNER_MEMBERS(dense),
    .is_plan = dense_is_plan,
    .check_spec = check_spec,
    .choose_tiles = choose_tiles,
    .defaults = {.warp_n = 64,
                 .wm = 1,
                 .wn = 1,
                 .wk = 1,
                 .ctas = 1,
                 .pass_m = 16,
                 .cluster = 1,
                 .split = 1},
    .unused = {"steps", "blocks_n", "fused"},
    .most_kind = PTXGEN_BULK,
    .least_stages = 3,
    .most_stages = {8, 8, 8},
    .derive = derive,
    .adapt = adapt,
    .shared_bytes = shared_bytes,
    .candidate_cost = cost,
    .cost = variant_cost,
    .check_tile = check_tile,
    .most_ctas = PTXGEN_DENSE_MOST_CTAS,
    .work = work,
    .is_whole = is_whole,
    .guarantee = guarantee,
    .describe = describe,
};
GEMM_PLANS(dense, dense_planner)
GEMM_LAUNCHES(dense, dense_planner)

const char *dense_name(const char *const names[DENSE_WAYS][GEMM_WIDTHS], const ptxgen_tile *v)
{
    uint32_t way = DENSE_MMA, pair = v->cluster > 1;
    if (v->kind == PTXGEN_BULK)
        way = pair ? DENSE_BULK_PAIR : DENSE_BULK;
    else if (v->kind == PTXGEN_WGMMA)
        way = pair ? DENSE_WGMMA_PAIR : v->split > 1 ? DENSE_WGMMA_SPLIT : DENSE_WGMMA;
    return names[way][gemm_width(v)];
}

const char *ptxgen_dense_entry(const ptxgen_tile *variant)
{
    static const char *const names[DENSE_WAYS][GEMM_WIDTHS] = {
        [DENSE_MMA] = GEMM_NAMES("dense_m"),
        [DENSE_WGMMA] = GEMM_NAMES("dense_wgmma_m"),
        [DENSE_WGMMA_PAIR] = GEMM_NAMES("dense_wgmma_pair_m"),
        [DENSE_WGMMA_SPLIT] = GEMM_NAMES("dense_wgmma_split_m"),
        [DENSE_BULK] = GEMM_NAMES("dense_bulk_m"),
        [DENSE_BULK_PAIR] = GEMM_NAMES("dense_bulk_pair_m"),
    };
    return variant ? dense_name(names, variant) : NULL;
}
