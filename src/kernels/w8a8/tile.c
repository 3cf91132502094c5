/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of w8a8 (tile.h): how warps divide them, and what shared memory they take. */
#include "tile.h"

#include "../gemm/ring.h"
#include "../gemm/sums.h"

enum { MAX_ACCUMULATORS = 128 };

/* ---- shared memory ---- */

/* Shared memory without the ring: staged sums, and a fused CTA's codes, ranges and scales. */
static uint64_t fixed_bytes(const ptxgen_w8a8_spec *s, const ptxgen_tile *v)
{
    uint64_t bytes = w8a8_sums_bytes(v);
    if (v->fused)
        bytes += (uint64_t)v->tile_m * w8a8_resident_stride(s, v) +
                 v->tile_m * (W8A8_WARPS * w8a8_range_bytes(s) + w8a8_work_bytes(s) + 4);
    return bytes;
}

uint64_t w8a8_ring_stage_bytes(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    uint32_t barriers =
        w8a8_has_two_producers(v) ? gemm_ring_side_barrier_bytes(1) : gemm_ring_barrier_bytes(1);
    return w8a8_stage_bytes(&p->spec, v) + (gemm_is_wgmma(v) ? barriers : 0);
}

uint64_t w8a8_shared_bytes(const void *plan, const ptxgen_tile *v)
{
    const ptxgen_w8a8_plan *p = plan;
    return fixed_bytes(&p->spec, v) + v->stages * w8a8_ring_stage_bytes(p, v);
}

static bool fill_stages(const ptxgen_w8a8_plan *p, ptxgen_tile *v)
{
    return gemm_fill_stages(&w8a8_planner, p, 0, v);
}

/* ---- tiles of mma.sync, and shares of N ---- */

/*
 * Whether the warps divide the tile, and what is staged of it at once. Fragments of tokens come in
 * pairs, except in fused tiles.
 */
bool w8a8_divides(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    uint32_t all = w8a8_widens_codes(p) ? MAX_ACCUMULATORS / 4 : MAX_ACCUMULATORS;
    uint32_t most = w8a8_has_groups(&p->spec) ? all / 2 : all; /* a group's sums are apart */
    uint32_t columns = w8a8_columns(v) / v->wm, rows = v->tile_n / v->wn;
    return !(v->tile_n & (v->tile_n - 1)) && v->tile_n % (W8A8_TILE_ROWS * v->wn) == 0 &&
           rows <= 64 && columns <= 128 && rows * columns / 32 <= most &&
           w8a8_pass_tokens(v) % (W8A8_TILE_TOKENS * v->wm) == 0 &&
           (v->fused ? v->wm == 1 : columns % (2 * W8A8_TILE_TOKENS) == 0);
}

/* Bytes of w that are in flight while a stage is multiplied, up to a limit that is enough. */
static uint32_t bytes_ahead(const ptxgen_tile *v)
{
    enum { ENOUGH = 60 * 1024 };
    uint32_t bytes = (v->stages - 3) * v->tile_n * w8a8_depth(v);
    return bytes < ENOUGH ? bytes : ENOUGH;
}

uint32_t w8a8_shared_traffic(const ptxgen_tile *v)
{
    if (w8a8_tokens_are_m(v))
        return (v->wm / 4 + 1) * v->tile_n + (v->wn + 1) * v->tile_m;
    if (gemm_is_wgmma(v))
        return 2 * v->tile_n + (v->tile_n / 64 + 1) * v->tile_m;
    return (v->wm + 1) * v->tile_n + (v->wn + 1) * v->tile_m;
}

static bool is_better(const ptxgen_tile *v, const ptxgen_tile *than)
{
    if (bytes_ahead(v) != bytes_ahead(than))
        return bytes_ahead(v) > bytes_ahead(than);
    return v->wk == than->wk && w8a8_shared_traffic(v) < w8a8_shared_traffic(than);
}

/*
 * Divides the tile among warps. Fewer warps along N read each code from shared memory fewer times,
 * and warps along K let narrow tiles use all warps. Both make stages longer, so the first division
 * is taken that keeps the memory busy, or a later one with as many warps along K that reads and
 * writes less shared memory. A fused tile rather has the first of the list than the second.
 */
bool w8a8_arrange_warps(const ptxgen_w8a8_plan *p, ptxgen_tile *best)
{
    static const uint32_t warps[][3] = {{2, 1, 4}, {4, 1, 2}, {2, 1, 4}, {1, 1, 8},
                                        {2, 4, 1}, {4, 2, 1}, {8, 1, 1}};
    bool found = false;
    for (size_t i = !best->fused; i < sizeof warps / sizeof *warps; i++) {
        ptxgen_tile v = *best;
        v.wn = warps[i][0];
        v.wm = warps[i][1];
        v.wk = warps[i][2];
        if (!w8a8_divides(p, &v) || !fill_stages(p, &v))
            continue;
        if (!found || is_better(&v, best))
            *best = v;
        found = true;
    }
    return found;
}

void w8a8_divide_evenly(const ptxgen_w8a8_plan *p, uint32_t parts, uint32_t most_rows,
                        ptxgen_tile *v)
{
    uint32_t all = p->target.multiprocessors / parts, n = w8a8_rows(&p->spec);
    uint32_t tiles = n / W8A8_TILE_ROWS + (n % W8A8_TILE_ROWS != 0);
    all = all ? all : 1;
    for (v->blocks_n = all; w8a8_most_features(&p->spec, v) > most_rows; v->blocks_n += all)
        ;
    v->blocks_n = v->blocks_n < tiles ? v->blocks_n : tiles;
    uint32_t rows = w8a8_most_features(&p->spec, v), full = n / rows + (n % rows != 0);
    if (w8a8_block_unit(&p->spec, v) > 1 &&
        gemm_deals_whole(full, all)) /* no smaller blocks than needed */
        v->blocks_n = full;
    for (v->tile_n = W8A8_TILE_ROWS; v->tile_n < rows; v->tile_n *= 2)
        ;
}

void w8a8_divide_n(const ptxgen_w8a8_plan *p, uint32_t rows, ptxgen_tile *v)
{
    v->tile_n = rows;
    v->blocks_n = (uint32_t)(((uint64_t)w8a8_rows(&p->spec) + rows - 1) / rows);
}

/* ---- tiles of wgmma ---- */

/*
 * Half of the most, where operands of mma.sync that are widened need registers beside the tile's
 * sums, or scales of groups beside strips of tokens.
 */
uint32_t w8a8_most_tile_m(const ptxgen_w8a8_plan *p)
{
    bool has_strips = gemm_has_wgmma(&p->target) && !w8a8_has_groups(&p->spec);
    return w8a8_widens_codes(p) && !has_strips ? W8A8_MOST_TILE_M / 2 : W8A8_MOST_TILE_M;
}

bool w8a8_has_clusters(const ptxgen_w8a8_plan *p)
{
    return p->target.ptx.sm >= 90 && p->target.multiprocessors % 2 == 0;
}

/* Where tokens are wgmma's M, a warpgroup of even shares has at most 64 features, or 128 where it
 * has all of the tile's. */
uint32_t w8a8_most_n_of(const ptxgen_tile *v)
{
    if (w8a8_tokens_are_m(v))
        return v->tile_m == W8A8_LEAST_WGMMA_M ? W8A8_MAX_TILE_N : W8A8_MAX_WGMMA_N;
    return gemm_is_wgmma(v) ? W8A8_MAX_WGMMA_N : W8A8_MAX_TILE_N;
}

static bool can_have_wgmma(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    return v->tile_m <= w8a8_most_tile_m(p) && gemm_has_wgmma(&p->target) &&
           w8a8_copy_bytes(p, v) == GEMM_CHUNK_BYTES && !v->fused && v->cluster == 1;
}

/*
 * Of tiles for more tokens than there are multiprocessors: leaves shared memory to the CTAs that
 * quantise, beside which the product's CTAs begin then.
 */
static void leave_room(const ptxgen_w8a8_plan *p, ptxgen_tile *v)
{
    enum { ROOM = 8 * 1024 };
    uint64_t most = plan_shared_limit(&p->target, 1) - ROOM;
    bool serves_many = v->wn == 1 && v->tile_m == W8A8_WIDE_TILE_M && !w8a8_takes_codes(&p->spec);
    while (serves_many && v->stages > W8A8_LEAST_STAGES && w8a8_shared_bytes(p, v) > most)
        v->stages--;
}

/*
 * Warpgroups have 64 tokens, and few features each, so that all end the tile soon; or with wn = 1
 * all features, of which wide tiles then read fewer bytes in shared memory. Where sums of a block
 * are apart, the two warpgroups of the widest tile have two strips of 64 tokens each, and registers
 * for the sums of a block of one of them.
 */
static bool arrange_tokens_as_m(const ptxgen_w8a8_plan *p, ptxgen_tile *v)
{
    enum { MOST_WARPS = 16 };
    uint32_t sums = w8a8_code_type(p->spec.codes)->sum_blocks;
    uint32_t strips = sums && v->tile_m == W8A8_MOST_TILE_M ? 2 : 1;
    bool is_wide = v->wn == 1 || (strips > 1 && !v->wn);
    uint32_t asked = is_wide && v->tile_n % 16 == 0 ? v->tile_n : 0;
    uint32_t most = w8a8_most_features(&p->spec, v);
    v->wm = v->tile_m / W8A8_TILE_ROWS / strips;
    for (v->wn = v->wn ? v->wn : 1;
         !is_wide && 2 * v->wn * v->wm <= MOST_WARPS && most > v->wn * W8A8_FEW_ROWS; v->wn *= 2)
        ;
    uint32_t rows = (most + v->wn - 1) / v->wn;
    uint32_t unit = rows > W8A8_FEW_ROWS || w8a8_gated(&p->spec) ? 16 : 8;
    v->tile_n = (rows + unit - 1) / unit * unit * v->wn;
    v->tile_n = v->tile_n < asked ? asked : v->tile_n;
    v->wk = v->wk ? v->wk : v->tile_m == W8A8_LEAST_WGMMA_M ? 2 : 1; /* blocks of K in a stage */
    uint32_t most_blocks = sums ? sums * W8A8_LEAST_WGMMA_M / v->tile_m : v->wk;
    bool has_warps = (uint64_t)v->wn * v->wm <= MOST_WARPS && (strips == 1 || v->wn == 1);
    if (w8a8_has_groups(&p->spec) && w8a8_group_features(v) > w8a8_block_rows(&p->spec))
        return false; /* no warp has rows in three blocks */
    bool fits = has_warps && !(v->wk & (v->wk - 1)) && v->wk <= most_blocks &&
                v->tile_m >= W8A8_LEAST_WGMMA_M && v->tile_n <= w8a8_most_n_of(v) &&
                fill_stages(p, v);
    if (fits)
        leave_room(p, v);
    return fits;
}

/* Tiles of few tokens have 64 features for each warpgroup, and stages of two blocks of K. */
bool w8a8_arrange_wgmma(const ptxgen_w8a8_plan *p, ptxgen_tile *v)
{
    enum { LEAST_ROWS = 64, MOST_WARPS_ALONG_N = 8, BLOCKS = 2 };
    if (!can_have_wgmma(p, v))
        return false;
    if (w8a8_tokens_are_m(v))
        return arrange_tokens_as_m(p, v);
    v->tile_n = v->tile_n < LEAST_ROWS ? LEAST_ROWS : v->tile_n;
    v->wn = v->tile_n / W8A8_TILE_ROWS;
    v->wm = 1;
    v->wk = BLOCKS;
    return v->tile_m == W8A8_LEAST_TILE_M && w8a8_most_features(&p->spec, v) >= LEAST_ROWS &&
           v->wn <= MOST_WARPS_ALONG_N && !(v->tile_n & (v->tile_n - 1)) && fill_stages(p, v);
}
/* ---- either ---- */

/* Chooses warps. The two CTAs of a cluster need equally many stages; otherwise there is none. */
bool w8a8_arrange(const void *of, ptxgen_tile *v)
{
    const ptxgen_w8a8_plan *p = of;
    if (gemm_is_wgmma(v))
        return w8a8_arrange_wgmma(p, v);
    if (!w8a8_arrange_warps(p, v))
        return false;
    if (w8a8_steps(&p->spec, v) % v->cluster == 0)
        return true;
    v->cluster = 1;
    return w8a8_arrange_warps(p, v);
}
