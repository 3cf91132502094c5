/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include "../plan.h"
#include "../gemm/ring.h"

#include <stdio.h>
#include <string.h>

enum {
    LEAST_STAGES = 3,
    MOST_STAGES = 8,
    MOST_ROWS = 128,
    MOST_BULK_ROWS = 256,
    PAST_ROW = 2000,
};

/* ---- the spec ---- */

static ptxgen_status check_spec(const ptxgen_dense_spec *s, ptxgen_error *err)
{
    if (s->type > PTXGEN_BF16)
        return ptxgen_fail(err, plan_refuses_enumerator(s->type <= PTXGEN_F64),
                           "dense: the type %u is none of PTXGEN_F32, _F16 and _BF16", s->type);
    uint32_t most_k = INT32_MAX / dense_element(s) - 15;
    if (!s->n || s->n > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "dense: N = %u is not between 1 and %d",
                           s->n, INT32_MAX);
    if (!s->k || s->k > most_k)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "dense: K = %u is not between 1 and %u",
                           s->k, most_k);
    if (s->activation > PTXGEN_ACTIVATION_RELU)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "dense: %u is not an activation",
                           s->activation);
    if (s->bias > 1 || s->residual > 1)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "dense: %s is %u, not 0 or 1",
                           s->bias > 1 ? "bias" : "residual", s->bias > 1 ? s->bias : s->residual);
    return PTXGEN_OK;
}

/* ---- tiles ---- */

static bool fits(const ptxgen_target *target, ptxgen_tile *v)
{
    v->shared_bytes =
        v->stages * dense_stage_bytes(v) + dense_staging_bytes(v) + dense_barrier_bytes(v);
    v->dynamic_shared_bytes = plan_dynamic_shared(v->shared_bytes);
    return v->shared_bytes <= plan_shared_limit(target, v->ctas);
}

/* Chooses as many stages as fit; false if too few fit. */
static bool fill_stages(const ptxgen_target *target, ptxgen_tile *v)
{
    for (v->stages = MOST_STAGES; v->stages >= LEAST_STAGES; v->stages--)
        if (fits(target, v))
            return true;
    return false;
}

/*
 * Multiply-adds of a multiprocessor in a nanosecond, from measurements on an H100. With mma.sync a
 * warp of 32 features reaches 205 by itself.
 */
static uint64_t multiply_adds(const ptxgen_dense_spec *s, const ptxgen_tile *v)
{
    if (dense_is_wgmma(v))
        return 2650;
    if (dense_is_bulk(v))
        return 1900;
    if (s->type == PTXGEN_F32)
        return dense_tile_m(v) == MOST_ROWS ? 205 : 165;
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
static uint64_t cost(const ptxgen_dense_plan *plan, const ptxgen_tile *v, uint64_t m)
{
    const ptxgen_dense_spec *s = &plan->spec;
    uint64_t w = (uint64_t)dense_tile_n(v) * DENSE_BLOCK_BYTES;
    uint64_t x = (uint64_t)dense_tile_m(v) * DENSE_BLOCK_BYTES;
    uint64_t rows = (m + dense_tile_m(v) - 1) / dense_tile_m(v);
    uint64_t products = w / dense_element(s) * dense_tile_m(v) * 1000 / multiply_adds(s, v);
    uint64_t memory = w * 1000 / 23 / rows;
    uint64_t l2 = (w + x / v->cluster) * 1000 / (dense_is_bulk(v) ? 90 : 45);
    uint64_t step = memory > l2 ? memory : l2;
    step = step > products ? step : products;
    if (dense_is_wgmma(v))
        step += l2 / 16;
    if (v->cluster > 1)
        step += (rows * dense_tile_m(v) - m) * PAST_ROW / rows;
    uint64_t tiles = rows * dense_tiles_n(s, v);
    uint64_t steps = (uint64_t)dense_stages_along_k(s, v) * v->wk;
    uint64_t ctas = plan->target.multiprocessors * v->ctas / dense_cluster(v);
    step *= v->ctas;
    if (v->split > 1)
        return tiles > ctas ? UINT64_MAX : steps / v->split * step + 2500000;
    if (!dense_divides(v) || gemm_deals_whole(tiles, (uint32_t)ctas))
        return (tiles + ctas - 1) / ctas * steps * step;
    uint64_t ends = 2500000 + (uint64_t)dense_tile_m(v) * 60000 + (v->cluster - 1) * 1000000;
    return (tiles * steps + ctas - 1) / ctas * step + ends;
}

/*
 * Of the candidates with equally many tokens the cheapest is used, of equally cheap ones the first.
 */
static const ptxgen_tile candidates[] = {
    {.warp_m = 16, .warp_n = 32, .wm = 1, .wn = 2, .wk = 4, .pass_m = 16},
    {.warp_m = 16, .warp_n = 32, .wm = 1, .wn = 4, .wk = 2, .pass_m = 16},
    {.warp_m = 16, .warp_n = 32, .wm = 1, .wn = 2, .wk = 2, .pass_m = 16},
    {.warp_m = 32, .warp_n = 32, .wm = 1, .wn = 2, .wk = 4, .pass_m = 16},
    {.warp_m = 32, .warp_n = 32, .wm = 1, .wn = 4, .wk = 2, .pass_m = 16},
    {.warp_m = 32, .warp_n = 32, .wm = 1, .wn = 2, .wk = 2, .pass_m = 16},
    {.warp_m = 64, .warp_n = 32, .wm = 1, .wn = 2, .wk = 4, .pass_m = 16},
    {.warp_m = 64, .warp_n = 32, .wm = 1, .wn = 4, .wk = 2, .pass_m = 16},
    {.warp_m = 64, .warp_n = 32, .wm = 1, .wn = 2, .wk = 2, .pass_m = 16},
    {.warp_m = 64, .warp_n = 32, .wm = 1, .wn = 4, .wk = 1, .pass_m = 16},
    {.warp_m = 64, .warp_n = 32, .wm = 1, .wn = 2, .wk = 1, .pass_m = 16},
    {.warp_m = 64, .warp_n = 64, .wm = 2, .wn = 4, .wk = 1, .pass_m = 32},
    {.warp_m = 64, .warp_n = 64, .wm = 2, .wn = 2, .wk = 1, .pass_m = 16},
    {.warp_m = 64, .warp_n = 32, .wm = 2, .wn = 2, .wk = 1, .pass_m = 16},
};

/* Candidates with wgmma, one for each name of an entry. */
static const ptxgen_tile wgmma_candidates[] = {
    {.kind = PTXGEN_WGMMA, .warp_m = 32, .warp_n = 16, .wm = 1, .wn = 4, .wk = 1, .pass_m = 32},
    {.kind = PTXGEN_WGMMA,
     .warp_m = 32,
     .warp_n = 16,
     .wm = 1,
     .wn = 4,
     .wk = 1,
     .pass_m = 32,
     .split = 2},
    {.kind = PTXGEN_WGMMA, .warp_m = 64, .warp_n = 16, .wm = 1, .wn = 4, .wk = 1, .pass_m = 32},
    {.kind = PTXGEN_WGMMA,
     .warp_m = 64,
     .warp_n = 16,
     .wm = 1,
     .wn = 4,
     .wk = 1,
     .pass_m = 32,
     .split = 2},
    {.kind = PTXGEN_WGMMA, .warp_m = 128, .warp_n = 16, .wm = 1, .wn = 4, .wk = 1, .pass_m = 16},
    {.kind = PTXGEN_WGMMA,
     .warp_m = 128,
     .warp_n = 16,
     .wm = 1,
     .wn = 8,
     .wk = 1,
     .pass_m = 32,
     .split = 2},
    {.kind = PTXGEN_WGMMA,
     .warp_m = 256,
     .warp_n = 16,
     .wm = 1,
     .wn = 8,
     .wk = 1,
     .pass_m = 32,
     .cluster = 2},
    {.kind = PTXGEN_WGMMA,
     .warp_m = 128,
     .warp_n = 16,
     .wm = 1,
     .wn = 8,
     .wk = 1,
     .pass_m = 32,
     .cluster = 2},
};

/* Candidates with bulk copies and mma.sync, for many tokens: with clusters of two, and without. */
static const ptxgen_tile bulk_candidates[] = {
    {.kind = PTXGEN_BULK,
     .warp_m = 64,
     .warp_n = 64,
     .wm = 4,
     .wn = 2,
     .wk = 1,
     .pass_m = 16,
     .cluster = 2},
    {.kind = PTXGEN_BULK, .warp_m = 64, .warp_n = 64, .wm = 4, .wn = 2, .wk = 1, .pass_m = 16},
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
    bool has = dense_is_wgmma(v) ? dense_has_wgmma(plan) : dense_has_bulk(plan);
    return !dense_is_bulk(v) || (has && plan->target.multiprocessors % dense_cluster(v) == 0 &&
                                 dense_stages_along_k(&plan->spec, v) % v->split == 0);
}

/* Halves the sums of a warp for f32, whose split operands take more registers. */
static void adapt(const ptxgen_dense_spec *s, ptxgen_tile *v)
{
    v->ctas = 1;
    v->cluster = v->cluster ? v->cluster : 1;
    v->split = v->split ? v->split : 1;
    if (s->type != PTXGEN_F32 || v->warp_n < 64)
        return;
    v->wm = 4;
    v->wn = 2;
    v->warp_m = 32;
}

/* A choice among candidates: those with `least` to `most` tokens in a tile, for m tokens. */
struct choice {
    const ptxgen_tile *among;
    size_t count;
    uint32_t least, most;
    uint64_t m;
};

/* Adds the cheapest candidate to the plan, unless there is none or the plan has it. */
static bool choose_tile(ptxgen_dense_plan *plan, const struct choice *c)
{
    uint64_t least = UINT64_MAX;
    ptxgen_tile best = {.kind = 0};
    for (size_t i = 0; i < c->count; i++) {
        ptxgen_tile v = c->among[i];
        adapt(&plan->spec, &v);
        bool asked = dense_tile_m(&v) >= c->least && dense_tile_m(&v) <= c->most;
        if (!asked || !is_usable(plan, &v) || !fill_stages(&plan->target, &v) ||
            cost(plan, &v, c->m) >= least)
            continue;
        least = cost(plan, &v, c->m);
        best = v;
    }
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (!memcmp(&plan->variants[i], &best, sizeof best))
            return true;
    if (least != UINT64_MAX)
        plan->variants[plan->variant_count++] = best;
    return least != UINT64_MAX;
}

/* Adds one tile for each number of tokens up to `widest`; the widest tile serves any M. */
static void choose_mma(ptxgen_dense_plan *plan, uint32_t most_m, uint32_t widest)
{
    struct choice c = {candidates, sizeof candidates / sizeof *candidates, 0, 0, 0};
    for (uint32_t rows = 16, served = 0; rows <= widest && served < most_m; rows *= 2) {
        c.least = c.most = rows;
        c.m = rows == MOST_ROWS ? INT32_MAX : rows;
        served = choose_tile(plan, &c) ? rows : served;
    }
}

/* Adds one tile for each number of tokens up to 64, then the best tile for each larger M. */
static void choose_wgmma(ptxgen_dense_plan *plan, uint32_t most_m)
{
    struct choice c = {wgmma_candidates, sizeof wgmma_candidates / sizeof *wgmma_candidates, 0, 0,
                       0};
    for (uint32_t rows = 32; rows <= 1024 && rows / 2 < most_m; rows *= 2) {
        c.least = rows < MOST_ROWS ? rows : MOST_ROWS;
        c.most = rows < MOST_ROWS ? rows : MOST_BULK_ROWS;
        c.m = rows == 1024 ? INT32_MAX : rows;
        choose_tile(plan, &c);
    }
}

static void choose_bulk(ptxgen_dense_plan *plan, uint32_t most_m)
{
    struct choice c = {bulk_candidates, sizeof bulk_candidates / sizeof *bulk_candidates,
                       MOST_BULK_ROWS, MOST_BULK_ROWS, INT32_MAX};
    if (most_m > MOST_ROWS)
        choose_tile(plan, &c);
}

static ptxgen_status choose_tiles(ptxgen_dense_plan *plan, ptxgen_error *err)
{
    uint32_t most = plan->spec.max_m ? plan->spec.max_m : UINT32_MAX;
    bool wgmma = dense_has_wgmma(plan);
    choose_mma(plan, most, wgmma ? 16 : MOST_ROWS);
    if (wgmma)
        choose_wgmma(plan, most);
    else if (dense_has_bulk(plan))
        choose_bulk(plan, most);
    if (!plan->variant_count)
        return plan_no_tile("dense", &plan->target, err);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_dense_make_plan(const ptxgen_dense_spec *spec, const ptxgen_target *target,
                                     ptxgen_dense_plan *plan, ptxgen_error *err)
{
    if (!spec || !target || !plan)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: spec, target and plan must be given");
    ptxgen_status status = check_spec(spec, err);
    if (status == PTXGEN_OK)
        status = plan_check_target("dense", target, err);
    if (status != PTXGEN_OK)
        return status;
    memset(plan, 0, sizeof *plan);
    plan->spec = *spec;
    plan->target = *target;
    return choose_tiles(plan, err);
}

/* ---- tiles of the caller's choice ---- */

static ptxgen_status check_tile(const ptxgen_tile *v, ptxgen_error *err)
{
    bool wgmma = dense_is_wgmma(v), bulk = dense_is_bulk(v);
    const struct plan_number numbers[] = {
        {"kind", v->kind, PTXGEN_MMA, PTXGEN_BULK, false},
        {"warp_m", v->warp_m, 16, wgmma ? MOST_BULK_ROWS : 64, true},
        {"warp_n", v->warp_n, bulk && !wgmma ? 64 : 16, 64, true},
        {"wm", v->wm, 1, wgmma ? 1 : 16, true},
        {"wn", v->wn, wgmma ? DENSE_WARPGROUP : 1, 16, true},
        {"wk", v->wk, 1, bulk ? 1 : 8, true},
        {"ctas", v->ctas, 1, bulk ? 1 : PTXGEN_DENSE_MOST_CTAS, false},
        {"cluster", v->cluster, 1, bulk ? 2 : 1, true},
        {"split", v->split, 1, wgmma && v->cluster == 1 ? 2 : 1, true},
        {"stages", v->stages, LEAST_STAGES, 16, false},
        {"pass_m", v->pass_m, 8, v->warp_m, true},
        {"tile_m", dense_tile_m(v), 16, bulk ? MOST_BULK_ROWS : MOST_ROWS, true},
    };
    ptxgen_status status =
        plan_check_numbers("dense", numbers, sizeof numbers / sizeof *numbers, err);
    if (status != PTXGEN_OK)
        return status;
    if (dense_threads(v) > 512)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: %u times %u times %u warps are more than the 16 of a CTA", v->wm,
                           v->wn, v->wk);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_dense_use_tile(ptxgen_dense_plan *plan, const ptxgen_tile *tile,
                                    ptxgen_error *err)
{
    if (!dense_is_plan(plan) || !tile)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: a plan that was made, and a tile, must be given");
    ptxgen_tile v = *tile;
    v.stages = tile->stages ? tile->stages : LEAST_STAGES;
    v.ctas = tile->ctas ? tile->ctas : 1;
    v.cluster = tile->cluster ? tile->cluster : 1;
    v.split = tile->split ? tile->split : 1;
    ptxgen_status status = check_tile(&v, err);
    if (status != PTXGEN_OK)
        return status;
    if (dense_is_bulk(&v) && !is_usable(plan, &v))
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "dense: %s, f16 or bf16, clusters that divide the %u multiprocessors, and a split that "
            "divides the %u stages along K",
            dense_is_wgmma(&v) ? "wgmma needs sm_90a" : "copies in bulk need sm_90, PTX 8.0",
            plan->target.multiprocessors, dense_stages_along_k(&plan->spec, &v));
    bool fit = tile->stages ? fits(&plan->target, &v) : fill_stages(&plan->target, &v);
    if (!fit)
        return ptxgen_fail(err, PTXGEN_ERROR_SHARED_MEMORY,
                           "dense: the tile takes %u bytes of shared memory, but a CTA has %u",
                           v.shared_bytes, plan_shared_limit(&plan->target, v.ctas));
    memset(plan->variants, 0, sizeof plan->variants);
    plan->variants[0] = v;
    plan->variant_count = 1;
    return PTXGEN_OK;
}

/* ---- what serves a launch ---- */

const ptxgen_tile *ptxgen_dense_choose(const ptxgen_dense_plan *plan, uint64_t m)
{
    if (!dense_is_plan(plan) || !m || (plan->spec.max_m && m > plan->spec.max_m))
        return NULL;
    const ptxgen_tile *best = NULL;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < plan->variant_count; i++) {
        const ptxgen_tile *v = &plan->variants[i];
        bool last = i + 1 == plan->variant_count;
        if (dense_is_wgmma(v) && dense_tile_m(v) < m && m <= MOST_ROWS && !last)
            continue; /* a variant with one row of tiles follows */
        uint64_t time = cost(plan, v, m < INT32_MAX ? m : INT32_MAX);
        if (time < least) {
            least = time;
            best = v;
        }
    }
    return best;
}

void ptxgen_dense_explain(const ptxgen_dense_plan *plan, uint64_t m, char *text, size_t size)
{
    static const char *const kinds[] = {[PTXGEN_MMA] = "mma.sync",
                                        [PTXGEN_WGMMA] = "wgmma",
                                        [PTXGEN_BULK] = "mma.sync with copies in bulk"};
    const ptxgen_tile *v = ptxgen_dense_choose(plan, m);
    bool made = dense_is_plan(plan);
    if (plan_explains_none(made, m, v, made ? plan->spec.max_m : 0, text, size))
        return;
    const char *pairs = v->cluster > 1 ? "; two CTAs share their tokens" : "";
    snprintf(text, size,
             "tiles of %u tokens by %u features, %u x %u x %u warps along M, N and K, %u stages, "
             "%s%s",
             dense_tile_m(v), dense_tile_n(v), v->wm, v->wn, v->wk, v->stages, kinds[v->kind],
             v->split > 1 ? "; two CTAs divide K" : pairs);
}

const char *ptxgen_dense_entry(const ptxgen_tile *variant)
{
    enum { WIDTHS = 5 };
    static const char *const mma[WIDTHS] = {"dense_m16", "dense_m32", "dense_m64", "dense_m128"};
    static const char *const wgmma[WIDTHS][3] = {
        {"dense_wgmma_m16", "dense_wgmma_pair_m16", "dense_wgmma_split_m16"},
        {"dense_wgmma_m32", "dense_wgmma_pair_m32", "dense_wgmma_split_m32"},
        {"dense_wgmma_m64", "dense_wgmma_pair_m64", "dense_wgmma_split_m64"},
        {"dense_wgmma_m128", "dense_wgmma_pair_m128", "dense_wgmma_split_m128"},
        {"dense_wgmma_m256", "dense_wgmma_pair_m256", "dense_wgmma_split_m256"}};
    static const char *const bulk[WIDTHS][2] = {{"dense_bulk_m16", "dense_bulk_pair_m16"},
                                                {"dense_bulk_m32", "dense_bulk_pair_m32"},
                                                {"dense_bulk_m64", "dense_bulk_pair_m64"},
                                                {"dense_bulk_m128", "dense_bulk_pair_m128"},
                                                {"dense_bulk_m256", "dense_bulk_pair_m256"}};
    if (!variant)
        return NULL;
    uint32_t i = 0, pair = variant->cluster > 1 ? 1 : 0;
    while (16u << i < dense_tile_m(variant))
        i++;
    switch (variant->kind) {
    case PTXGEN_WGMMA: return wgmma[i][pair ? 1 : variant->split > 1 ? 2 : 0];
    case PTXGEN_BULK: return bulk[i][pair];
    default: return mma[i];
    }
}

ptxgen_status dense_make_schedule(const ptxgen_dense_plan *plan, const ptxgen_tile *v, uint64_t m,
                                  struct dense_schedule *schedule, ptxgen_error *err)
{
    uint32_t stages = dense_own_stages(&plan->spec, v);
    if (m > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "dense: m = %llu tokens are more than a launch takes, %d",
                           (unsigned long long)m, INT32_MAX);
    uint64_t tiles = (m + dense_tile_m(v) - 1) / dense_tile_m(v) * dense_tiles_n(&plan->spec, v);
    if (tiles * stages > UINT32_MAX)
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "dense: m = %llu tokens with N = %u, K = %u are %llu stages, more than 2^32",
            (unsigned long long)m, plan->spec.n, plan->spec.k,
            (unsigned long long)(tiles * stages));
    struct dense_schedule s = {.aligned = dense_partials_offset(plan)};
    uint32_t units = plan->target.multiprocessors * v->ctas / dense_cluster(v);
    s.tiles = gemm_deal(tiles, stages, units, !dense_divides(v) || gemm_deals_whole(tiles, units));
    s.grid = s.tiles.grid * dense_cluster(v);
    if (s.tiles.divides) {
        s.aligned += s.grid * gemm_partials_bytes(dense_threads(v), dense_fragments(v));
        s.workspace_bytes = s.aligned;
    }
    *schedule = s;
    return PTXGEN_OK;
}

ptxgen_status ptxgen_dense_ctas(const ptxgen_dense_plan *plan, uint64_t m, uint32_t *ctas,
                                ptxgen_error *err)
{
    if (!dense_is_plan(plan) || !ctas)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: a plan that was made, and ctas, must be given");
    const ptxgen_tile *v = ptxgen_dense_choose(plan, m);
    struct dense_schedule schedule = {.aligned = 0};
    ptxgen_status status = PTXGEN_OK;
    if (v)
        status = dense_make_schedule(plan, v, m, &schedule, err);
    else if (m)
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                             "dense: no variant serves m = %llu", (unsigned long long)m);
    *ctas = schedule.grid;
    return status;
}
