/* SPDX-License-Identifier: Apache-2.0 */
#include "../plan.h"
#include "emit.h"
#include "spec.h"

#include <string.h>

enum {
    MOST_STAGES = 8,
    MOST_ROWS = 128,       /* tokens of a tile of mma.sync, on targets without wgmma */
    MOST_MMA_ROWS = 32,    /* tokens of a tile of mma.sync, on targets with wgmma */
    MOST_WGMMA_ROWS = 192, /* tokens of a tile of wgmma */
};

/* ---- tiles ---- */

uint32_t marlin_shared_bytes(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    if (marlin_has_producer(v))
        return marlin_ring_shared_bytes(s, v);
    return v->stages * marlin_stage_bytes(s, v) +
           gemm_sums_bytes(marlin_tile_n(v), v->pass_m, v->wk);
}

/* Chooses as many stages as fit, or as the tile prescribes; false if fewer than three fit. */
static bool choose_stages(const ptxgen_marlin_spec *s, const ptxgen_target *target,
                          ptxgen_tile *v)
{
    uint32_t most = marlin_has_producer(v) ? 12 : MOST_STAGES;
    for (v->stages = v->stages ? v->stages : most; v->stages >= 3; v->stages--) {
        v->shared_bytes = marlin_shared_bytes(s, v);
        if (v->shared_bytes <= plan_shared_limit(target, v->ctas)) {
            v->dynamic_shared_bytes = plan_dynamic_shared(v->shared_bytes);
            return true;
        }
    }
    return false;
}

/*
 * Fills the sizes of a variant with a given tile; stages fewer rows of sums at once where needed.
 */
static bool complete(const ptxgen_marlin_spec *s, const ptxgen_target *target,
                     ptxgen_tile *v)
{
    if (marlin_gated(s) && marlin_tile_n(v) % MARLIN_STRIP)
        return false; /* gate and up must be in the same tile */
    for (uint32_t most = v->stages; v->pass_m >= 8; v->pass_m /= 2) {
        v->stages = most;
        if (choose_stages(s, target, v))
            return true;
    }
    return false;
}

/*
 * The model of the chip: what limits a kind of tile, from measurements on an H100. For one
 * multiprocessor and microsecond: bytes from memory; bytes from the L2 (l2_whole: where tiles are
 * whole); weights that are dequantised; thousands of mma's multiply-adds where a warp has few
 * features and tokens (products_cost has the rest). In nanoseconds: the additional time of divided
 * tiles, of whole tiles, and of the tile of a cluster.
 */
static const struct limits {
    uint64_t memory, l2, l2_whole, weights, products, divided, whole, cluster;
} mma_limits = {23000, 45000, 45000, 36000, 1350, 2000, 0, 0},
  narrow_limits = {23000, 41000, 41000, 41000, 1050, 3000, 0, 0},
  long_limits = {23000, 41000, 41000, 45000, 1050, 3800, 0, 0},
  bulk_limits = {23000, 45000, 45000, 50000, 1250, 8000, 0, 0},
  bulk_along_k_limits = {23000, 45000, 60000, 50000, 1250, 3600, 0, 0},
  bulk_wide_limits = {23000, 45000, 60000, 50000, 1250, 4200, 0, 0},
  few_limits = {21000, 45000, 53000, 60000, 0, 5000, 2500, 2100},
  wgmma_limits = {22000, 47000, 58000, 60000, 0, 5000, 2500, 2100};

/*
 * The limits of a variant's kind. Where the target has wgmma, mma.sync serves few tokens only, and
 * has limits of its own for stages of one step, for stages of two, and for each kind of bulk
 * copies; wgmma has limits of its own for up to 48 tokens, where bytes are the limit.
 */
static const struct limits *limits_of(const ptxgen_marlin_plan *plan,
                                      const ptxgen_tile *v)
{
    enum { FEW_ROWS = 48 };
    return marlin_is_wgmma(v)          ? v->tile_m <= FEW_ROWS ? &few_limits : &wgmma_limits
           : marlin_has_totals_warp(v) ? &bulk_limits
           : marlin_has_producer(v)
               ? v->warp_n == MARLIN_STRIP ? &bulk_wide_limits : &bulk_along_k_limits
           : !marlin_has_wgmma(&plan->target) ? &mma_limits
           : v->steps > 1                     ? &long_limits
                                              : &narrow_limits;
}

/*
 * With wgmma, a slice of 16 of K of a strip takes a third of a cycle for each token, plus this
 * number of cycles for the operand from registers, at 1.7 GHz. The number is smaller where four
 * warpgroups alternate, and where they scale sums. Tiles of 128 and 160 tokens take as long as
 * their products alone.
 */
static uint32_t operand_cycles(const ptxgen_tile *v)
{
    enum { SCALED_SUMS = 64 };
    static const uint32_t cycles[2][4] = {{31, 31, 33, 38}, {23, 25, 30}};
    bool four = v->wn * v->wk == 4 * MARLIN_WARPGROUP;
    uint32_t size = (v->tile_m > SCALED_SUMS) + (v->tile_m >= MOST_ROWS) + (v->tile_m > MOST_ROWS);
    return cycles[four][size];
}

/* Picoseconds for a tile's products over 64 of K. */
static uint64_t products_cost(const struct limits *l, const ptxgen_tile *v)
{
    enum { SLICES = MARLIN_STEP / 16, CYCLE = 588 /* ps */ };
    uint64_t n = marlin_tile_n(v);
    if (marlin_is_wgmma(v))
        return n / MARLIN_STRIP * SLICES * (v->tile_m / 3 + operand_cycles(v)) * CYCLE / v->wk;
    uint64_t rate = v->tile_m == MOST_ROWS ? 1700
                    : v->tile_m * v->warp_n < 64 * 64 ? l->products : 1450;
    return n * MARLIN_STEP * v->tile_m * 1000 / rate;
}

/* Picoseconds of a tile for 64 of K: the longest of the times of what it does concurrently. */
static uint64_t step_cost(const struct limits *l, bool whole, const ptxgen_tile *v)
{
    uint64_t l2 = whole ? l->l2_whole : l->l2;
    uint64_t weights = (uint64_t)marlin_tile_n(v) * MARLIN_STEP, codes = weights / 2;
    uint64_t activations = (uint64_t)v->tile_m * MARLIN_STEP * 2;
    const uint64_t times[] = {codes * 1000000 / l->memory, (codes + activations) * 1000000 / l2,
                              weights * 1000000 / l->weights, products_cost(l, v)};
    uint64_t most = 0;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        most = times[i] > most ? times[i] : most;
    return most;
}

/*
 * The additional time of tiles that have a cluster each: half of the sums at 24 bytes a nanosecond.
 * Where clusters share multiprocessors, the work of others hides a part of that.
 */
static uint64_t cluster_cost(const ptxgen_marlin_plan *plan, const ptxgen_tile *v,
                             uint64_t tiles)
{
    const struct limits *l = limits_of(plan, v);
    uint64_t clusters = plan->target.multiprocessors * v->ctas / v->cluster;
    uint64_t steps = marlin_steps(&plan->spec) / v->cluster;
    uint64_t sums = (uint64_t)marlin_tile_n(v) * v->tile_m * 4 / 2 * 1000 / 24;
    uint64_t end = (l->cluster * 1000 + sums) / v->ctas;
    uint64_t each = steps * step_cost(l, true, v) * v->ctas + end;
    return clusters ? (tiles + clusters - 1) / clusters * each : UINT64_MAX;
}

/*
 * The additional time of a tile with bulk copies, or of a cluster, where half of its tokens do not
 * exist; a tile of 8 tokens takes less. For up to 32 tokens, which have tiles of their own, a tile
 * of 48 has the same bytes but more products.
 */
static uint64_t empty_cost(const ptxgen_tile *v, uint64_t m)
{
    enum { HALF_EMPTY = 1000000, THIRD_EMPTY = 4000000, ROWS = 48 };
    bool slow = v->kind == PTXGEN_BULK || v->cluster;
    if (v->tile_m == ROWS && m <= ROWS / 3 * 2)
        return THIRD_EMPTY;
    return slow && 2 * m <= v->tile_m ? HALF_EMPTY : 0;
}

/* The additional time of two CTAs of two warpgroups on a multiprocessor: 3 %. */
static uint64_t beside_cost(const struct limits *l, bool whole, const ptxgen_tile *v)
{
    enum { PERCENT = 3 };
    return marlin_is_wgmma(v) && v->ctas > 1 ? step_cost(l, whole, v) * v->ctas * PERCENT / 100 : 0;
}

/*
 * The time of the CTA with the most work for m tokens, in picoseconds. A CTA that ends a divided
 * tile reads the partial sums of the others at 64 bytes a nanosecond.
 */
static uint64_t cost(const ptxgen_marlin_plan *plan, const ptxgen_tile *v, uint64_t m)
{
    const struct limits *l = limits_of(plan, v);
    uint64_t steps = marlin_steps(&plan->spec), ctas = plan->target.multiprocessors * v->ctas;
    uint64_t tiles = (m + v->tile_m - 1) / v->tile_m * marlin_tiles_n(&plan->spec, v);
    if (v->cluster)
        return cluster_cost(plan, v, tiles) + empty_cost(v, m);
    bool whole = gemm_deals_whole(tiles, (uint32_t)ctas);
    uint64_t step = step_cost(l, whole, v) * v->ctas + beside_cost(l, whole, v),
             empty = empty_cost(v, m);
    if (whole)
        return (tiles + ctas - 1) / ctas * steps * step + l->whole * 1000 + empty;
    uint64_t sums = gemm_partials_bytes(marlin_threads(v), marlin_fragments(v)) * 1000 / 64;
    uint64_t shares = tiles < ctas ? sums * ctas / tiles : sums;
    uint64_t most = sums * marlin_stages_along_k(&plan->spec, v); /* a CTA has a stage at least */
    shares = shares < most ? shares : most;
    return (tiles * steps + ctas - 1) / ctas * step + shares + l->divided * 1000 + empty;
}

/*
 * Candidates, in the order of their tokens. Of the candidates with equally many tokens the cheapest
 * is used, and of equally cheap ones the first.
 */
static const struct candidate {
    uint8_t tile_m, warp_n, wn, wk, stages, steps, ctas, pass_m, kind, cluster;
} candidates[] = {
    {.tile_m = 8, .warp_n = 64, .wn = 2, .wk = 4, .pass_m = 8},
    {.tile_m = 8, .warp_n = 64, .wn = 1, .wk = 8, .pass_m = 8},
    {.tile_m = 8, .warp_n = 32, .wn = 1, .wk = 8, .pass_m = 8},
    {.tile_m = 8, .warp_n = 32, .wn = 7, .wk = 2, .pass_m = 8},
    {.tile_m = 8, .warp_n = 64, .wn = 2, .wk = 4, .steps = 2, .pass_m = 8},
    {.tile_m = 8, .warp_n = 32, .wn = 2, .wk = 4, .stages = 6, .steps = 2, .pass_m = 8},
    {.tile_m = 8, .warp_n = 32, .wn = 7, .wk = 2, .stages = 5, .steps = 2, .pass_m = 8},
    {.kind = PTXGEN_BULK, .tile_m = 8, .warp_n = 32, .wn = 7,
     .wk = 2, .stages = 4, .steps = 2, .pass_m = 8},
    {.kind = PTXGEN_BULK, .tile_m = 8, .warp_n = 32, .wn = 7,
     .wk = 2, .stages = 8, .steps = 1, .pass_m = 8},
    {.kind = PTXGEN_BULK, .tile_m = 8, .warp_n = 32, .wn = 2,
     .wk = 8, .stages = 5, .steps = 1, .pass_m = 8},
    {.tile_m = 16, .warp_n = 64, .wn = 2, .wk = 4, .pass_m = 16},
    {.tile_m = 16, .warp_n = 64, .wn = 1, .wk = 8, .pass_m = 16},
    {.tile_m = 16, .warp_n = 32, .wn = 1, .wk = 8, .pass_m = 16},
    {.tile_m = 16, .warp_n = 32, .wn = 7, .wk = 2, .pass_m = 16},
    {.tile_m = 16, .warp_n = 32, .wn = 7, .wk = 2, .stages = 4, .steps = 2, .pass_m = 16},
    {.kind = PTXGEN_BULK, .tile_m = 16, .warp_n = 32, .wn = 7,
     .wk = 2, .stages = 5, .steps = 2, .pass_m = 16},
    {.kind = PTXGEN_BULK, .tile_m = 16, .warp_n = 64, .wn = 1,
     .wk = 4, .stages = 5, .steps = 2, .pass_m = 16},
    {.kind = PTXGEN_BULK, .tile_m = 16, .warp_n = 32, .wn = 2,
     .wk = 4, .stages = 4, .steps = 2, .pass_m = 16},
    {.kind = PTXGEN_BULK, .tile_m = 16, .warp_n = 32, .wn = 1,
     .wk = 8, .stages = 6, .steps = 1, .pass_m = 16},
    {.tile_m = 32, .warp_n = 64, .wn = 4, .wk = 2, .pass_m = 32},
    {.tile_m = 32, .warp_n = 32, .wn = 2, .wk = 4, .pass_m = 32},
    {.tile_m = 32, .warp_n = 32, .wn = 1, .wk = 8, .pass_m = 32},
    {.tile_m = 64, .warp_n = 64, .wn = 4, .wk = 2, .pass_m = 32},
    {.tile_m = 64, .warp_n = 32, .wn = 4, .wk = 2, .pass_m = 32},
    {.tile_m = 64, .warp_n = 32, .wn = 2, .wk = 4, .pass_m = 32},
    {.tile_m = 128, .warp_n = 32, .wn = 8, .wk = 1, .pass_m = 32},
    {.tile_m = 128, .warp_n = 32, .wn = 4, .wk = 1, .pass_m = 32},
    {.kind = PTXGEN_WGMMA, .tile_m = 32, .warp_n = 16, .wn = 8,
     .wk = 1, .steps = 2, .ctas = 2, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 32, .warp_n = 16, .wn = 12,
     .wk = 1, .stages = 8, .steps = 2, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 48, .warp_n = 16, .wn = 16,
     .wk = 1, .steps = 2, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 64, .warp_n = 16, .wn = 8,
     .wk = 1, .steps = 2, .pass_m = 32},
    {.kind = PTXGEN_WGMMA, .tile_m = 64, .warp_n = 16, .wn = 16,
     .wk = 1, .steps = 2, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 32, .warp_n = 16, .wn = 8,
     .wk = 1, .steps = 2, .pass_m = 32, .cluster = 2},
    {.kind = PTXGEN_WGMMA, .tile_m = 32, .warp_n = 16, .wn = 8,
     .wk = 1, .stages = 5, .steps = 2, .ctas = 2, .pass_m = 32, .cluster = 2},
    {.kind = PTXGEN_WGMMA, .tile_m = 32, .warp_n = 16, .wn = 4,
     .wk = 2, .stages = 8, .steps = 2, .pass_m = 32, .cluster = 2},
    {.kind = PTXGEN_WGMMA, .tile_m = 64, .warp_n = 16, .wn = 8,
     .wk = 1, .steps = 2, .pass_m = 64, .cluster = 2},
    {.kind = PTXGEN_WGMMA, .tile_m = 64, .warp_n = 16, .wn = 4,
     .wk = 2, .stages = 4, .steps = 2, .pass_m = 64, .cluster = 2},
    {.kind = PTXGEN_WGMMA, .tile_m = 96, .warp_n = 16, .wn = 16,
     .wk = 1, .steps = 2, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 96, .warp_n = 16, .wn = 8,
     .wk = 1, .pass_m = 16, .cluster = 2},
    {.kind = PTXGEN_WGMMA, .tile_m = 128, .warp_n = 16, .wn = 8, .wk = 1, .pass_m = 32},
    {.kind = PTXGEN_WGMMA, .tile_m = 128, .warp_n = 16, .wn = 8,
     .wk = 1, .pass_m = 32, .cluster = 2},
    {.kind = PTXGEN_WGMMA, .tile_m = 128, .warp_n = 16, .wn = 16,
     .wk = 1, .steps = 2, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 160, .warp_n = 16, .wn = 12, .wk = 1, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 160, .warp_n = 16, .wn = 8,
     .wk = 1, .pass_m = 16, .cluster = 2},
    {.kind = PTXGEN_WGMMA, .tile_m = 192, .warp_n = 16, .wn = 8,
     .wk = 1, .pass_m = 16, .cluster = 2},
};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };

static bool has_small_groups(const ptxgen_marlin_spec *s)
{
    uint32_t rows = marlin_scale_rows(s);
    return rows && rows < MARLIN_STEP;
}

/*
 * Whether stages are twice as long: with small groups, whose scaling makes the time between two
 * stages a smaller share, and where K is long enough.
 */
static bool wants_long_stages(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    enum { ROWS = 32, LEAST_STEPS = 64 };
    return has_small_groups(s) && marlin_is_wgmma(v) && v->tile_m <= ROWS && v->ctas == 1 &&
           v->wk == 1 && marlin_steps(s) / marlin_cluster(v) >= LEAST_STEPS;
}

/*
 * Whether warps of 64 features are too wide: with small groups, the two or more warps that share a
 * scheduler would spend too much time on scaling sums.
 */
static bool is_too_wide(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    return has_small_groups(s) && v->kind == PTXGEN_BULK && v->warp_n == MARLIN_STRIP;
}

/*
 * Whether ptxas spills registers of the tile: where K has one step only, in tiles of 128 tokens for
 * most targets, and of 64 for sm_87. Tiles of fewer tokens serve all M then.
 */
static bool is_spilled(const ptxgen_marlin_plan *plan, const ptxgen_tile *v)
{
    uint32_t most = plan->target.ptx.sm == 87 ? 32 : 64;
    return !marlin_has_producer(v) && v->tile_m > most && marlin_steps(&plan->spec) == 1;
}

static bool make_candidate(const ptxgen_marlin_plan *plan, size_t i, ptxgen_tile *v)
{
    const struct candidate *c = &candidates[i];
    *v = (ptxgen_tile){.tile_m = c->tile_m,
                                 .warp_n = c->warp_n,
                                 .wn = c->wn,
                                 .wk = c->wk,
                                 .stages = c->stages,
                                 .steps = c->steps,
                                 .ctas = c->ctas ? c->ctas : 1,
                                 .pass_m = c->pass_m,
                                 .kind = c->kind,
                                 .cluster = c->cluster};
    uint32_t sharing = marlin_has_producer(v) ? v->wk * marlin_cluster(v) : 1; /* that divide K */
    if (wants_long_stages(&plan->spec, v) &&
        marlin_steps(&plan->spec) % (2 * v->steps * sharing) == 0) {
        v->steps *= 2;
        v->stages /= 2;
    }
    if (!v->steps || marlin_steps(&plan->spec) % (v->steps * sharing))
        v->steps = 1;
    bool wgmma = marlin_has_wgmma(&plan->target);
    if (is_too_wide(&plan->spec, v) || is_spilled(plan, v))
        return false;
    if (marlin_has_producer(v) ? !wgmma : wgmma && v->tile_m > MOST_MMA_ROWS)
        return false;
    bool follows = !marlin_has_producer(v) || v->tile_m == 8; /* has a candidate of fewer steps */
    if (!marlin_exchange_fits(&plan->target, v) || (v->steps < c->steps && follows))
        return false;
    if (marlin_steps(&plan->spec) % sharing || !marlin_halves_fit(&plan->spec, v))
        return false;
    return complete(&plan->spec, &plan->target, v);
}

bool marlin_candidate(const ptxgen_marlin_plan *plan, size_t index, ptxgen_tile *v)
{
    for (size_t i = 0; i < CANDIDATES; i++) {
        bool fits = candidates[i].tile_m == 8 || !plan->spec.max_m ||
                    candidates[i].tile_m / 2 < plan->spec.max_m;
        if (fits && make_candidate(plan, i, v) && !index--)
            return true;
    }
    return false;
}

/* The cost of one row of tiles; for the widest tile, which serves any M, the cost of a feature. */
static uint64_t candidate_cost(const ptxgen_marlin_plan *plan, const ptxgen_tile *v)
{
    if (v->tile_m == MOST_ROWS)
        return step_cost(limits_of(plan, v), true, v) * MARLIN_STRIP / marlin_tile_n(v);
    return cost(plan, v, v->tile_m);
}

static bool choose_tile(const ptxgen_marlin_plan *plan, uint32_t tile_m,
                        ptxgen_tile *best)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < CANDIDATES; i++) {
        ptxgen_tile v;
        if (candidates[i].tile_m != tile_m || candidates[i].cluster || !make_candidate(plan, i, &v))
            continue;
        uint64_t time = candidate_cost(plan, &v);
        if (time >= least)
            continue;
        least = time;
        *best = v;
    }
    return least != UINT64_MAX;
}

/* Adds all wgmma candidates with so many tokens, or only those of clusters, as variants. */
static void add_all(ptxgen_marlin_plan *plan, uint32_t tile_m, bool clusters)
{
    for (size_t i = 0; i < CANDIDATES; i++) {
        const struct candidate *c = &candidates[i];
        ptxgen_tile v;
        if (c->kind == PTXGEN_WGMMA && c->tile_m == tile_m && (c->cluster || !clusters) &&
            make_candidate(plan, i, &v))
            plan->variants[plan->variant_count++] = v;
    }
}

/* The cost of each variant for a number of values of M. */
struct probes {
    uint32_t count;
    uint64_t cost[64][PTXGEN_MARLIN_VARIANTS];
};

static void probe(const ptxgen_marlin_plan *plan, struct probes *p)
{
    enum { MOST = 8192 };
    uint32_t most = plan->spec.max_m && plan->spec.max_m < MOST ? plan->spec.max_m : MOST;
    p->count = 0;
    for (uint32_t m = 1; m <= most; m += m < 8 ? 7 : m < 256 ? 8 : m < 512 ? 32 : m / 4) {
        for (uint32_t i = 0; i < plan->variant_count; i++)
            p->cost[p->count][i] = cost(plan, &plan->variants[i], m);
        p->count++;
    }
}

/* The least cost among the variants in a set, which has a bit for each variant. */
static uint64_t least_cost(const uint64_t cost[PTXGEN_MARLIN_VARIANTS], uint32_t set)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < PTXGEN_MARLIN_VARIANTS; i++)
        if (set >> i & 1 && cost[i] < least)
            least = cost[i];
    return least;
}

/* Whether some M takes much longer without the variant. */
static bool is_needed(const struct probes *p, uint32_t set, uint32_t variant)
{
    enum { MUCH_PERCENT = 2 };
    for (uint32_t i = 0; i < p->count; i++) {
        uint64_t with = least_cost(p->cost[i], set);
        if (least_cost(p->cost[i], set & ~(1u << variant)) > with + with / 100 * MUCH_PERCENT)
            return true;
    }
    return false;
}

/*
 * Removes variants that others replace without loss, since assembling an entry takes a tenth of a
 * second. The variant with the fewest tokens always stays: the model counts bytes, and would
 * underestimate a single token in a wider tile.
 */
static void leave_out(ptxgen_marlin_plan *plan)
{
    struct probes p;
    probe(plan, &p);
    uint32_t set = (1u << plan->variant_count) - 1;
    for (uint32_t i = plan->variant_count; i-- > 1;)
        if (!is_needed(&p, set, i))
            set &= ~(1u << i);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (set >> i & 1)
            plan->variants[kept++] = plan->variants[i];
    memset(&plan->variants[kept], 0, (plan->variant_count - kept) * sizeof *plan->variants);
    plan->variant_count = kept;
}

static ptxgen_status choose_tiles(ptxgen_marlin_plan *plan, ptxgen_error *err)
{
    uint32_t most = plan->spec.max_m ? plan->spec.max_m : UINT32_MAX;
    bool wgmma = marlin_has_wgmma(&plan->target);
    uint32_t widest = wgmma ? MOST_ROWS / 2 : MOST_ROWS;
    for (uint32_t tile_m = 8, served = 0; tile_m <= MOST_WGMMA_ROWS && served < most; tile_m += 8) {
        uint32_t before = plan->variant_count;
        bool one = tile_m <= widest && !(tile_m & (tile_m - 1));
        if (one && choose_tile(plan, tile_m, &plan->variants[plan->variant_count]))
            plan->variant_count++;
        if (wgmma)
            add_all(plan, tile_m, one);
        if (plan->variant_count > before)
            served = tile_m;
    }
    if (!plan->variant_count)
        return plan_no_tile("marlin", &plan->target, err);
    if (wgmma)
        leave_out(plan);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_marlin_make_plan(const ptxgen_marlin_spec *spec, const ptxgen_target *target,
                                      ptxgen_marlin_plan *plan, ptxgen_error *err)
{
    if (!spec || !target || !plan)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: spec, target and plan must be given");
    ptxgen_status status = marlin_check_spec(spec, err);
    if (status == PTXGEN_OK)
        status = plan_check_target("marlin", target, err);
    if (status != PTXGEN_OK)
        return status;
    memset(plan, 0, sizeof *plan);
    plan->spec = *spec;
    plan->target = *target;
    return choose_tiles(plan, err);
}

/* A few tokens more than a tile has may be cheaper in two tiles than in half of a larger tile. */
const ptxgen_tile *ptxgen_marlin_choose(const ptxgen_marlin_plan *plan, uint64_t m)
{
    if (!marlin_is_plan(plan) || !m || (plan->spec.max_m && m > plan->spec.max_m))
        return NULL;
    for (uint32_t i = 0; i < plan->tuned_count; i++)
        if (m <= plan->tuned[i].to_m)
            return &plan->variants[plan->tuned[i].variant];
    const ptxgen_tile *best = NULL;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < plan->variant_count; i++) {
        uint64_t time = cost(plan, &plan->variants[i], m < INT32_MAX ? m : INT32_MAX);
        if (time < least) {
            least = time;
            best = &plan->variants[i];
        }
    }
    return best;
}

/*
 * The names of entries by kind, tokens, features and clusters; 0 stands for any number. `clusters`
 * is ten times the CTAs of a cluster plus the CTAs of a multiprocessor.
 */
static const struct {
    uint8_t kind, tile_m, clusters;
    uint16_t tile_n;
    char name[27];
} entries[] = {
    {PTXGEN_WGMMA, 32, 21, 64, "marlin_wgmma_m32_n64_c2"},
    {PTXGEN_WGMMA, 64, 21, 64, "marlin_wgmma_m64_n64_c2"},
    {PTXGEN_WGMMA, 32, 0, 128, "marlin_wgmma_m32_n128"},
    {PTXGEN_WGMMA, 32, 21, 128, "marlin_wgmma_m32_n128_c2"},
    {PTXGEN_WGMMA, 32, 22, 128, "marlin_wgmma_m32_n128_c2x2"},
    {PTXGEN_WGMMA, 32, 0, 192, "marlin_wgmma_m32_n192"},
    {PTXGEN_WGMMA, 48, 0, 256, "marlin_wgmma_m48_n256"},
    {PTXGEN_WGMMA, 64, 0, 128, "marlin_wgmma_m64_n128"},
    {PTXGEN_WGMMA, 64, 21, 128, "marlin_wgmma_m64_n128_c2"},
    {PTXGEN_WGMMA, 64, 0, 256, "marlin_wgmma_m64_n256"},
    {PTXGEN_WGMMA, 96, 0, 256, "marlin_wgmma_m96_n256"},
    {PTXGEN_WGMMA, 96, 21, 128, "marlin_wgmma_m96_n128_c2"},
    {PTXGEN_WGMMA, 128, 0, 128, "marlin_wgmma_m128_n128"},
    {PTXGEN_WGMMA, 128, 21, 128, "marlin_wgmma_m128_n128_c2"},
    {PTXGEN_WGMMA, 128, 0, 256, "marlin_wgmma_m128_n256"},
    {PTXGEN_WGMMA, 160, 0, 192, "marlin_wgmma_m160_n192"},
    {PTXGEN_WGMMA, 160, 21, 128, "marlin_wgmma_m160_n128_c2"},
    {PTXGEN_WGMMA, 192, 21, 128, "marlin_wgmma_m192_n128_c2"},
    {PTXGEN_WGMMA, 0, 0, 0, "marlin_wgmma"},
    {PTXGEN_BULK, 8, 0, 0, "marlin_bulk_m8"},
    {PTXGEN_BULK, 16, 0, 0, "marlin_bulk_m16"},
    {PTXGEN_BULK, 0, 0, 0, "marlin_bulk"},
    {PTXGEN_MMA, 8, 0, 0, "marlin_m8"},
    {PTXGEN_MMA, 16, 0, 0, "marlin_m16"},
    {PTXGEN_MMA, 32, 0, 0, "marlin_m32"},
    {PTXGEN_MMA, 64, 0, 0, "marlin_m64"},
    {PTXGEN_MMA, 128, 0, 0, "marlin_m128"},
};

static bool is_entry_of(size_t i, const ptxgen_tile *v)
{
    uint32_t clusters = v->cluster ? 10 * v->cluster + v->ctas : 0;
    return entries[i].kind == v->kind && (!entries[i].tile_m || entries[i].tile_m == v->tile_m) &&
           (!entries[i].tile_n ||
            (entries[i].tile_n == marlin_tile_n(v) && entries[i].clusters == clusters));
}

const char *ptxgen_marlin_entry(const ptxgen_tile *variant)
{
    if (!variant)
        return NULL;
    size_t i = 0;
    while (i < sizeof entries / sizeof *entries - 1 && !is_entry_of(i, variant))
        i++;
    return entries[i].name;
}

/* ---- a launch's division of work ---- */

ptxgen_status marlin_schedule(const ptxgen_marlin_plan *plan, const ptxgen_tile *v,
                              uint64_t m, struct marlin_schedule *schedule, ptxgen_error *err)
{
    uint32_t stages = marlin_stages_along_k(&plan->spec, v);
    uint32_t ctas = plan->target.multiprocessors * v->ctas;
    if (m > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "marlin: m = %llu tokens are more than a launch takes, %d",
                           (unsigned long long)m, INT32_MAX);
    uint64_t tiles = (m + v->tile_m - 1) / v->tile_m * marlin_tiles_n(&plan->spec, v);
    if (tiles * stages > UINT32_MAX)
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "marlin: m = %llu tokens with K = %u, N = %u are %llu stages, more than 2^32",
            (unsigned long long)m, plan->spec.k, plan->spec.n,
            (unsigned long long)(tiles * stages));
    struct marlin_schedule s = {.partials = marlin_partials_offset(plan)};
    if (v->cluster) /* each cluster has one tile, whatever the number of multiprocessors */
        s.tiles = gemm_deal(tiles, stages, (uint32_t)tiles, true);
    else
        s.tiles = gemm_make_schedule(tiles, stages, ctas);
    uint32_t early = marlin_early_stages(stages, v);
    if (s.tiles.divides && early && tiles < ctas && tiles * (stages - early) >= ctas)
        s.tiles = gemm_deal_early(tiles, stages, early, ctas);
    s.gathered = s.partials;
    if (s.tiles.divides) {
        s.gathered += s.tiles.grid * gemm_partials_bytes(marlin_threads(v), marlin_fragments(v));
        s.workspace_bytes = s.gathered;
    }
    *schedule = s;
    return PTXGEN_OK;
}
