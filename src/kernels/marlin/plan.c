/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"
#include "spec.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_ROWS = 128,       /* tokens of a tile of mma.sync, on targets without wgmma */
    MOST_MMA_ROWS = 32,    /* tokens of a tile of mma.sync, on targets with wgmma */
    MOST_WGMMA_ROWS = 192, /* tokens of a tile of wgmma */
};

/* ---- tiles ---- */

static void derive(ptxgen_tile *v)
{
    v->warp_m = v->tile_m;
    v->tile_n = v->wn * v->warp_n;
}

static uint64_t shared_bytes(const void *plan, const ptxgen_tile *v)
{
    const ptxgen_marlin_spec *s = &((const ptxgen_marlin_plan *)plan)->spec;
    if (gemm_is_bulk(v))
        return marlin_ring_shared_bytes(s, v);
    return v->stages * marlin_stage_bytes(s, v) + gemm_sums_bytes(v->tile_n, v->pass_m, v->wk);
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
static const struct limits *limits_of(const ptxgen_marlin_plan *plan, const ptxgen_tile *v)
{
    enum { FEW_ROWS = 48 };
    return gemm_is_wgmma(v)            ? v->tile_m <= FEW_ROWS ? &few_limits : &wgmma_limits
           : marlin_has_totals_warp(v) ? &bulk_limits
           : gemm_is_bulk(v) ? v->warp_n == MARLIN_STRIP ? &bulk_wide_limits : &bulk_along_k_limits
           : !gemm_has_wgmma(&plan->target) ? &mma_limits
           : v->steps > 1                   ? &long_limits
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
    bool four = v->wn * v->wk == 4 * GEMM_WARPGROUP_WARPS;
    uint32_t size = (v->tile_m > SCALED_SUMS) + (v->tile_m >= MOST_ROWS) + (v->tile_m > MOST_ROWS);
    return cycles[four][size];
}

/* Picoseconds for a tile's products over 64 of K. */
static uint64_t products_cost(const struct limits *l, const ptxgen_tile *v)
{
    enum { SLICES = MARLIN_STEP / 16, CYCLE = 588 /* ps */ };
    uint64_t n = v->tile_n;
    if (gemm_is_wgmma(v))
        return n / MARLIN_STRIP * SLICES * (v->tile_m / 3 + operand_cycles(v)) * CYCLE / v->wk;
    uint64_t rate = v->tile_m == MOST_ROWS            ? 1700
                    : v->tile_m * v->warp_n < 64 * 64 ? l->products
                                                      : 1450;
    return n * MARLIN_STEP * v->tile_m * 1000 / rate;
}

/* Picoseconds of a tile for 64 of K: the longest of the times of what it does concurrently. */
static uint64_t step_cost(const struct limits *l, bool whole, const ptxgen_tile *v)
{
    uint64_t l2 = whole ? l->l2_whole : l->l2;
    uint64_t weights = (uint64_t)v->tile_n * MARLIN_STEP, codes = weights / 2;
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
static uint64_t cluster_cost(const ptxgen_marlin_plan *plan, const ptxgen_tile *v, uint64_t tiles)
{
    const struct limits *l = limits_of(plan, v);
    uint64_t clusters = plan->target.multiprocessors * v->ctas / v->cluster;
    uint64_t steps = marlin_steps(&plan->spec) / v->cluster;
    uint64_t sums = (uint64_t)v->tile_n * v->tile_m * 4 / 2 * 1000 / 24;
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
    bool slow = v->kind == PTXGEN_BULK || v->cluster > 1;
    if (v->tile_m == ROWS && m <= ROWS / 3 * 2)
        return THIRD_EMPTY;
    return slow && 2 * m <= v->tile_m ? HALF_EMPTY : 0;
}

/* The additional time of two CTAs of two warpgroups on a multiprocessor: 3 %. */
static uint64_t beside_cost(const struct limits *l, bool whole, const ptxgen_tile *v)
{
    enum { PERCENT = 3 };
    return gemm_is_wgmma(v) && v->ctas > 1 ? step_cost(l, whole, v) * v->ctas * PERCENT / 100 : 0;
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
    if (v->cluster > 1)
        return cluster_cost(plan, v, tiles) + empty_cost(v, m);
    bool whole = gemm_deals_whole(tiles, (uint32_t)ctas);
    uint64_t step = step_cost(l, whole, v) * v->ctas + beside_cost(l, whole, v),
             empty = empty_cost(v, m);
    if (whole)
        return (tiles + ctas - 1) / ctas * steps * step + l->whole * 1000 + empty;
    uint64_t sums = gemm_partials_bytes(gemm_tile_threads(v), marlin_fragments(v)) * 1000 / 64;
    uint64_t shares = tiles < ctas ? sums * ctas / tiles : sums;
    uint64_t most = sums * marlin_stages_along_k(&plan->spec, v); /* a CTA has a stage at least */
    shares = shares < most ? shares : most;
    return (tiles * steps + ctas - 1) / ctas * step + shares + l->divided * 1000 + empty;
}

/*
 * Candidates, in the order of their tokens. Of the candidates with equally many tokens the cheapest
 * is used, and of equally cheap ones the first.
 */
#define TILE(KIND, M, N, WN, WK, STAGES, STEPS, CTAS, PASS_M, CLUSTER)                             \
    {                                                                                              \
        .kind = PTXGEN_##KIND, .tile_m = M, .warp_n = N, .wn = WN, .wk = WK, .stages = STAGES,     \
        .steps = STEPS, .ctas = CTAS, .pass_m = PASS_M, .cluster = CLUSTER                         \
    }
static const ptxgen_tile candidates[] = {
    /* kind, tile_m, warp_n, wn, wk, stages (0: as many as fit), steps, ctas, pass_m, cluster */
    TILE(MMA, 8, 64, 2, 4, 0, 1, 1, 8, 1),       TILE(MMA, 8, 64, 1, 8, 0, 1, 1, 8, 1),
    TILE(MMA, 8, 32, 1, 8, 0, 1, 1, 8, 1),       TILE(MMA, 8, 32, 7, 2, 0, 1, 1, 8, 1),
    TILE(MMA, 8, 64, 2, 4, 0, 2, 1, 8, 1),       TILE(MMA, 8, 32, 2, 4, 6, 2, 1, 8, 1),
    TILE(BULK, 8, 32, 7, 2, 4, 2, 1, 8, 1),      TILE(BULK, 8, 32, 7, 2, 8, 1, 1, 8, 1),
    TILE(BULK, 8, 32, 2, 8, 5, 1, 1, 8, 1),      TILE(MMA, 16, 64, 2, 4, 0, 1, 1, 16, 1),
    TILE(MMA, 16, 64, 1, 8, 0, 1, 1, 16, 1),     TILE(MMA, 16, 32, 1, 8, 0, 1, 1, 16, 1),
    TILE(MMA, 16, 32, 7, 2, 0, 1, 1, 16, 1),     TILE(BULK, 16, 32, 7, 2, 5, 2, 1, 16, 1),
    TILE(BULK, 16, 64, 1, 4, 5, 2, 1, 16, 1),    TILE(BULK, 16, 32, 2, 4, 4, 2, 1, 16, 1),
    TILE(BULK, 16, 32, 1, 8, 6, 1, 1, 16, 1),    TILE(MMA, 32, 64, 4, 2, 0, 1, 1, 32, 1),
    TILE(MMA, 32, 32, 2, 4, 0, 1, 1, 32, 1),     TILE(MMA, 32, 32, 1, 8, 0, 1, 1, 32, 1),
    TILE(MMA, 64, 64, 4, 2, 0, 1, 1, 32, 1),     TILE(MMA, 64, 32, 4, 2, 0, 1, 1, 32, 1),
    TILE(MMA, 64, 32, 2, 4, 0, 1, 1, 32, 1),     TILE(MMA, 128, 32, 8, 1, 0, 1, 1, 32, 1),
    TILE(WGMMA, 32, 16, 8, 1, 0, 2, 2, 16, 1),   TILE(WGMMA, 32, 16, 12, 1, 8, 2, 1, 16, 1),
    TILE(WGMMA, 48, 16, 16, 1, 0, 2, 1, 16, 1),  TILE(WGMMA, 64, 16, 8, 1, 0, 2, 1, 32, 1),
    TILE(WGMMA, 64, 16, 16, 1, 0, 2, 1, 16, 1),  TILE(WGMMA, 32, 16, 8, 1, 0, 2, 1, 32, 2),
    TILE(WGMMA, 32, 16, 8, 1, 5, 2, 2, 32, 2),   TILE(WGMMA, 32, 16, 4, 2, 8, 2, 1, 32, 2),
    TILE(WGMMA, 64, 16, 8, 1, 0, 2, 1, 64, 2),   TILE(WGMMA, 64, 16, 4, 2, 4, 2, 1, 64, 2),
    TILE(WGMMA, 96, 16, 16, 1, 0, 2, 1, 16, 1),  TILE(WGMMA, 96, 16, 8, 1, 0, 1, 1, 16, 2),
    TILE(WGMMA, 128, 16, 8, 1, 0, 1, 1, 32, 1),  TILE(WGMMA, 128, 16, 8, 1, 0, 1, 1, 32, 2),
    TILE(WGMMA, 128, 16, 16, 1, 0, 2, 1, 16, 1), TILE(WGMMA, 160, 16, 12, 1, 0, 1, 1, 16, 1),
    TILE(WGMMA, 160, 16, 8, 1, 0, 1, 1, 16, 2),  TILE(WGMMA, 192, 16, 8, 1, 0, 1, 1, 16, 2),
};
#undef TILE
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
    return has_small_groups(s) && gemm_is_wgmma(v) && v->tile_m <= ROWS && v->ctas == 1 &&
           v->wk == 1 && marlin_steps(s) / v->cluster >= LEAST_STEPS;
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
    return !gemm_is_bulk(v) && v->tile_m > most && marlin_steps(&plan->spec) == 1;
}

static bool adapt(const void *of, ptxgen_tile *v)
{
    const ptxgen_marlin_plan *plan = of;
    const ptxgen_marlin_spec *s = &plan->spec;
    uint32_t asked = v->steps, sharing = gemm_is_bulk(v) ? v->wk * v->cluster : 1;
    if (wants_long_stages(s, v) && marlin_steps(s) % (2 * v->steps * sharing) == 0) {
        v->steps *= 2;
        v->stages /= 2;
    }
    if (marlin_steps(s) % (v->steps * sharing))
        v->steps = 1;
    bool wgmma = gemm_has_wgmma(&plan->target);
    if (is_too_wide(s, v) || is_spilled(plan, v))
        return false;
    if (gemm_is_bulk(v) ? !wgmma : wgmma && v->tile_m > MOST_MMA_ROWS)
        return false;
    bool follows = !gemm_is_bulk(v) || v->tile_m == 8; /* has a candidate of fewer steps */
    if (!marlin_exchange_fits(&plan->target, v) || (v->steps < asked && follows))
        return false;
    if (marlin_gated(s) && v->tile_n % MARLIN_STRIP)
        return false; /* gate and up must be in the same tile */
    return marlin_steps(s) % sharing == 0 && marlin_halves_fit(s, v);
}

bool marlin_candidate(const ptxgen_marlin_plan *plan, size_t index, ptxgen_tile *v)
{
    for (size_t i = 0; i < CANDIDATES; i++) {
        bool fits = candidates[i].tile_m == 8 || !plan->spec.max_m ||
                    candidates[i].tile_m / 2 < plan->spec.max_m;
        if (fits && gemm_adapt(&marlin_planner, plan, &candidates[i], v) && !index--)
            return true;
    }
    return false;
}

/*
 * The cost of one row of tiles; for the widest tile, which serves any M, the cost of a feature.
 * Tiles of clusters are not compared with the others.
 */
static uint64_t candidate_cost(const void *of, const ptxgen_tile *v, uint64_t m)
{
    const ptxgen_marlin_plan *plan = of;
    if (v->cluster > 1)
        return UINT64_MAX;
    if (v->tile_m == MOST_ROWS)
        return step_cost(limits_of(plan, v), true, v) * MARLIN_STRIP / v->tile_n;
    return cost(plan, v, m);
}

/* Adds all wgmma candidates with so many tokens, or only those of clusters, as variants. */
static void add_all(ptxgen_marlin_plan *plan, uint32_t tile_m, bool clusters)
{
    for (size_t i = 0; i < CANDIDATES; i++) {
        const ptxgen_tile *c = &candidates[i];
        ptxgen_tile v;
        if (c->kind == PTXGEN_WGMMA && c->tile_m == tile_m && (c->cluster > 1 || !clusters) &&
            gemm_adapt(&marlin_planner, plan, c, &v))
            gemm_add(&marlin_planner, plan, &v);
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

static ptxgen_status choose_tiles(void *of, ptxgen_error *err)
{
    ptxgen_marlin_plan *plan = of;
    uint32_t most = plan->spec.max_m ? plan->spec.max_m : UINT32_MAX;
    bool wgmma = gemm_has_wgmma(&plan->target);
    uint32_t widest = wgmma ? MOST_ROWS / 2 : MOST_ROWS;
    (void)err;
    for (uint32_t tile_m = 8, served = 0; tile_m <= MOST_WGMMA_ROWS && served < most; tile_m += 8) {
        uint32_t before = plan->variant_count;
        bool one = tile_m <= widest && !(tile_m & (tile_m - 1));
        if (one)
            gemm_add_cheapest(&marlin_planner, plan, GEMM_AMONG(candidates, tile_m, tile_m),
                              tile_m);
        if (wgmma)
            add_all(plan, tile_m, one);
        if (plan->variant_count > before)
            served = tile_m;
    }
    if (wgmma && plan->variant_count)
        leave_out(plan);
    return PTXGEN_OK;
}

/*
 * The names of entries by kind, tokens, features, CTAs of a cluster and CTAs of a multiprocessor; 0
 * stands for any number.
 */
static const struct {
    uint8_t kind, tile_m;
    uint16_t tile_n;
    uint8_t cluster, ctas;
    char name[27];
} entries[] = {
    {PTXGEN_WGMMA, 32, 64, 2, 1, "marlin_wgmma_m32_n64_c2"},
    {PTXGEN_WGMMA, 64, 64, 2, 1, "marlin_wgmma_m64_n64_c2"},
    {PTXGEN_WGMMA, 32, 128, 1, 0, "marlin_wgmma_m32_n128"},
    {PTXGEN_WGMMA, 32, 128, 2, 1, "marlin_wgmma_m32_n128_c2"},
    {PTXGEN_WGMMA, 32, 128, 2, 2, "marlin_wgmma_m32_n128_c2x2"},
    {PTXGEN_WGMMA, 32, 192, 1, 0, "marlin_wgmma_m32_n192"},
    {PTXGEN_WGMMA, 48, 256, 1, 0, "marlin_wgmma_m48_n256"},
    {PTXGEN_WGMMA, 64, 128, 1, 0, "marlin_wgmma_m64_n128"},
    {PTXGEN_WGMMA, 64, 128, 2, 1, "marlin_wgmma_m64_n128_c2"},
    {PTXGEN_WGMMA, 64, 256, 1, 0, "marlin_wgmma_m64_n256"},
    {PTXGEN_WGMMA, 96, 256, 1, 0, "marlin_wgmma_m96_n256"},
    {PTXGEN_WGMMA, 96, 128, 2, 1, "marlin_wgmma_m96_n128_c2"},
    {PTXGEN_WGMMA, 128, 128, 1, 0, "marlin_wgmma_m128_n128"},
    {PTXGEN_WGMMA, 128, 128, 2, 1, "marlin_wgmma_m128_n128_c2"},
    {PTXGEN_WGMMA, 128, 256, 1, 0, "marlin_wgmma_m128_n256"},
    {PTXGEN_WGMMA, 160, 192, 1, 0, "marlin_wgmma_m160_n192"},
    {PTXGEN_WGMMA, 160, 128, 2, 1, "marlin_wgmma_m160_n128_c2"},
    {PTXGEN_WGMMA, 192, 128, 2, 1, "marlin_wgmma_m192_n128_c2"},
    {PTXGEN_WGMMA, 0, 0, 0, 0, "marlin_wgmma"},
    {PTXGEN_BULK, 8, 0, 0, 0, "marlin_bulk_m8"},
    {PTXGEN_BULK, 16, 0, 0, 0, "marlin_bulk_m16"},
    {PTXGEN_BULK, 0, 0, 0, 0, "marlin_bulk"},
    {PTXGEN_MMA, 8, 0, 0, 0, "marlin_m8"},
    {PTXGEN_MMA, 16, 0, 0, 0, "marlin_m16"},
    {PTXGEN_MMA, 32, 0, 0, 0, "marlin_m32"},
    {PTXGEN_MMA, 64, 0, 0, 0, "marlin_m64"},
    {PTXGEN_MMA, 128, 0, 0, 0, "marlin_m128"},
};

static bool is_entry_of(size_t i, const ptxgen_tile *v)
{
    return entries[i].kind == v->kind && (!entries[i].tile_m || entries[i].tile_m == v->tile_m) &&
           (!entries[i].tile_n || entries[i].tile_n == v->tile_n) &&
           (!entries[i].cluster || entries[i].cluster == v->cluster) &&
           (!entries[i].ctas || entries[i].ctas == v->ctas);
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

/* ---- launches ---- */

/*
 * A few tokens more than a tile has may be cheaper in two tiles than in half of a larger tile.
 * Where M was tuned, the variant that was measured is the only one.
 */
static uint64_t variant_cost(const void *of, const ptxgen_tile *v, uint64_t m)
{
    const ptxgen_marlin_plan *plan = of;
    for (uint32_t i = 0; i < plan->tuned_count; i++)
        if (m <= plan->tuned[i].to_m)
            return v == &plan->variants[plan->tuned[i].variant] ? 0 : UINT64_MAX;
    return cost(plan, v, m);
}

static struct gemm_work work(const void *of, const ptxgen_tile *v)
{
    const ptxgen_marlin_spec *s = &((const ptxgen_marlin_plan *)of)->spec;
    return (struct gemm_work){marlin_tiles_n(s, v), marlin_stages_along_k(s, v), v->cluster,
                              gemm_partials_bytes(gemm_tile_threads(v), marlin_fragments(v))};
}

static bool is_whole(const void *plan, const ptxgen_tile *v, uint64_t tiles, uint32_t units)
{
    (void)plan;
    return v->cluster > 1 || gemm_deals_whole(tiles, units);
}

bool ptxgen_marlin_rounds_weights(const ptxgen_marlin_plan *plan, const ptxgen_tile *variant)
{
    return marlin_is_plan(plan) && variant && !marlin_scales_sums(&plan->spec, variant);
}

static void describe(const void *of, const ptxgen_tile *v, uint64_t m, char *text, size_t size)
{
    const ptxgen_marlin_plan *plan = of;
    (void)m;
    char weights[64] = "scales are multiplied into sums, in f32";
    if (ptxgen_marlin_rounds_weights(plan, v))
        snprintf(weights, sizeof weights, "weights are scaled and rounded to %s",
                 plan->spec.type == PTXGEN_F16 ? "f16" : "bf16");
    snprintf(text, size, "tiles of %u tokens by %u features, %s; %s", v->tile_m, v->tile_n,
             gemm_name_kind(v), weights);
}

static void guarantee(const void *of, const ptxgen_tile *v, ptxgen_guarantee *g)
{
    const ptxgen_marlin_spec *s = &((const ptxgen_marlin_plan *)of)->spec;
    if (ptxgen_marlin_rounds_weights(of, v))
        g->w_rounding = s->type == PTXGEN_F16 ? PTXGEN_ROUNDING_F16 : PTXGEN_ROUNDING_BF16;
    g->bound = marlin_corrects_sums(s, v) ? PTXGEN_BOUND_PARTS : PTXGEN_BOUND_PRODUCTS;
}

const struct gemm_planner marlin_planner = {
    GEMM_PLANNER_MEMBERS(marlin),
    .is_plan = marlin_is_plan,
    .check_spec = marlin_check_spec,
    .choose_tiles = choose_tiles,
    .defaults = {.wm = 1, .wk = 1, .steps = 1, .ctas = 1, .cluster = 1},
    .unused = {"split", "blocks_n", "fused"},
    .most_kind = PTXGEN_BULK,
    .least_stages = 3,
    .most_stages = {8, 12, 12},
    .least_pass_m = 8,
    .derive = derive,
    .adapt = adapt,
    .shared_bytes = shared_bytes,
    .candidate_cost = candidate_cost,
    .cost = variant_cost,
    .check_tile = marlin_check_tile,
    .most_ctas = MARLIN_MOST_CTAS,
    .work = work,
    .is_whole = is_whole,
    .early_stages = marlin_early_stages,
    .has_cluster_per_tile = true,
    .guarantee = guarantee,
    .describe = describe,
};
GEMM_PLANS(marlin, marlin_planner)
GEMM_LAUNCHES(marlin, marlin_planner)
