/* SPDX-License-Identifier: Apache-2.0 */
/* From a w8a8 spec to the tiles of its kernels, and from M to the one that serves it. */
#include "layout.h"

#include "../gemm/ring.h"
#include "../gemm/sums.h"

#include <stdio.h>

enum {
    MAX_TILE_N = 256,
    MAX_WGMMA_N = 128,
    LEAST_TILE_M = 16, /* of a tile that is not fused */
    LEAST_WGMMA_M = 64,
    MOST_TILE_M = 256,
    WIDE_TILE_M = 128,
    FEW_ROWS = 32, /* of a warpgroup whose M is tokens, where there are warpgroups enough */
    MAX_ACCUMULATORS = 128
};

ptxgen_element ptxgen_w8a8_work_type(const ptxgen_w8a8_spec *spec)
{
    bool wide_x = spec && !w8a8_takes_codes(spec) && spec->x_type == PTXGEN_F64;
    bool wide = spec && (wide_x || spec->y_type == PTXGEN_F64);
    return wide ? PTXGEN_F64 : PTXGEN_F32;
}

/* ---- validation ---- */

static ptxgen_status check_epilogue(const ptxgen_w8a8_spec *s, ptxgen_error *err)
{
    bool gated = w8a8_gated(s);
    if (s->epilogue > PTXGEN_EPILOGUE_SWIGLU)
        return ptxgen_fail(err, plan_refuses_enumerator(s->epilogue <= PTXGEN_EPILOGUE_GEGLU),
                           "w8a8: %u is not an epilogue of this family", s->epilogue);
    if (s->activation > PTXGEN_ACTIVATION_RELU)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "w8a8: %u is not an activation",
                           s->activation);
    if (gated && s->activation)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: SwiGLU has its own activation, but activation is %u",
                           s->activation);
    if (gated && (s->n % W8A8_PAIR_ROWS || s->n > INT32_MAX / 2))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: N = %u; with SwiGLU it must be a multiple of 8 below 2^30", s->n);
    if (w8a8_is_wide(s) && (gated || s->activation || s->residual || w8a8_takes_codes(s)))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: x_type = %u, y_type = %u; a function, SwiGLU, a residual or the "
                           "caller's codes are not supported with f64 (3)",
                           s->x_type, s->y_type);
    return PTXGEN_OK;
}

static ptxgen_status check_groups(const ptxgen_w8a8_spec *s, ptxgen_error *err)
{
    if (s->group && s->group != PTXGEN_W8A8_GROUP)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: group = %u is neither 0, scales of tokens and features, nor %d",
                           s->group, PTXGEN_W8A8_GROUP);
    if (s->group && s->codes != PTXGEN_W8A8_E4M3)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: group = %u with codes = %u; scales of groups need e4m3 codes (1)",
                           s->group, s->codes);
    if (s->group && s->scales != PTXGEN_W8A8_DYNAMIC && !w8a8_takes_codes(s))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: group = %u with scales = %u; scales of groups are dynamic (0), "
                           "or x is quantised (3)",
                           s->group, s->scales);
    return PTXGEN_OK;
}

static ptxgen_status check_spec(const void *spec, ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = spec;
    if (s->n > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "w8a8: N = %u is above %d", s->n,
                           INT32_MAX);
    if (s->max_m && s->min_m > s->max_m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: min_m = %u is above max_m = %u", s->min_m, s->max_m);
    if (s->w_stride && s->w_stride < s->k)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: w_stride = %u is below K = %u", s->w_stride, s->k);
    if (s->x_type > PTXGEN_F64 || s->y_type > PTXGEN_F64)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: x_type = %u, y_type = %u; f32, f16, bf16 and f64 are 0, 1, 2, 3",
                           s->x_type, s->y_type);
    if (s->scales > PTXGEN_W8A8_QUANTISED)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: scales = %u; dynamic, tensor, token and quantised are 0, 1, 2, 3",
                           s->scales);
    if (s->asymmetric > 1 || s->bias > 1 || s->residual > 1 || s->reserved)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: a flag is neither 0 nor 1, or a reserved byte is not 0");
    ptxgen_status status = check_epilogue(s, err);
    if (status == PTXGEN_OK)
        status = w8a8_check_codes(s, err);
    return status == PTXGEN_OK ? check_groups(s, err) : status;
}

/* ---- tiles ---- */

/* Shared memory without the ring: staged sums, and a fused CTA's codes, ranges and scales. */
static uint64_t fixed_bytes(const ptxgen_w8a8_spec *s, const ptxgen_tile *v)
{
    uint64_t bytes = w8a8_sums_bytes(v);
    if (v->fused)
        bytes += (uint64_t)v->tile_m * w8a8_resident_stride(s, v) +
                 v->tile_m * (W8A8_WARPS * w8a8_range_bytes(s) + w8a8_work_bytes(s) + 4);
    return bytes;
}

/* Bytes of a stage of the ring with its barriers. */
static uint64_t stage_bytes(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    uint32_t barriers =
        w8a8_has_two_producers(v) ? gemm_ring_side_barrier_bytes(1) : gemm_ring_barrier_bytes(1);
    return w8a8_stage_bytes(&p->spec, v) + (gemm_is_wgmma(v) ? barriers : 0);
}

static uint64_t shared_bytes(const void *plan, const ptxgen_tile *v)
{
    const ptxgen_w8a8_plan *p = plan;
    return fixed_bytes(&p->spec, v) + v->stages * stage_bytes(p, v);
}

static bool fill_stages(const ptxgen_w8a8_plan *p, ptxgen_tile *v)
{
    return gemm_fill_stages(&w8a8_planner, p, 0, v);
}

/*
 * Whether the warps divide the tile, and what is staged of it at once. Fragments of tokens come in
 * pairs, except in fused tiles.
 */
static bool divides(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
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

/* Bytes of shared memory that are written and read for each byte of K. */
static uint32_t shared_traffic(const ptxgen_tile *v)
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
    return v->wk == than->wk && shared_traffic(v) < shared_traffic(than);
}

/*
 * Divides the tile among warps. Fewer warps along N read each code from shared memory fewer times,
 * and warps along K let narrow tiles use all warps. Both make stages longer, so the first division
 * that keeps the memory busy is taken.
 */
static bool arrange_warps(const ptxgen_w8a8_plan *p, ptxgen_tile *best)
{
    static const uint32_t warps[][3] = {{2, 1, 4}, {4, 1, 2}, {2, 1, 4}, {1, 1, 8},
                                        {2, 4, 1}, {4, 2, 1}, {8, 1, 1}};
    bool found = false;
    for (size_t i = !best->fused; i < sizeof warps / sizeof *warps; i++) {
        ptxgen_tile v = *best;
        v.wn = warps[i][0];
        v.wm = warps[i][1];
        v.wk = warps[i][2];
        if (!divides(p, &v) || !fill_stages(p, &v))
            continue;
        if (!found || is_better(&v, best))
            *best = v;
        found = true;
    }
    return found;
}

/*
 * Divides N into blocks such that `parts` CTAs for each block occupy all multiprocessors once, or
 * as few times as the largest tile allows.
 */
static void divide_evenly(const ptxgen_w8a8_plan *p, uint32_t parts, uint32_t most_rows,
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

static void divide_n(const ptxgen_w8a8_plan *p, uint32_t rows, ptxgen_tile *v)
{
    v->tile_n = rows;
    v->blocks_n = (uint32_t)(((uint64_t)w8a8_rows(&p->spec) + rows - 1) / rows);
}

static uint64_t tiles_of(const ptxgen_tile *v, uint64_t m)
{
    return (m + v->tile_m - 1) / v->tile_m * v->blocks_n;
}

/* ---- tiles of wgmma ---- */

/*
 * Tokens of the widest tile. Operands of mma.sync that are widened need registers beside the tile's
 * sums, and so do scales of groups beside strips of tokens.
 */
static uint32_t most_tile_m(const ptxgen_w8a8_plan *p)
{
    bool has_strips = gemm_has_wgmma(&p->target) && !w8a8_has_groups(&p->spec);
    return w8a8_widens_codes(p) && !has_strips ? MOST_TILE_M / 2 : MOST_TILE_M;
}

static bool has_clusters(const ptxgen_w8a8_plan *p)
{
    return p->target.ptx.sm >= 90 && p->target.multiprocessors % 2 == 0;
}

/* The most features of even shares; where tokens are wgmma's M, no warpgroup has more than 64. */
static uint32_t most_n_of(const ptxgen_tile *v)
{
    if (w8a8_tokens_are_m(v))
        return v->tile_m == LEAST_WGMMA_M ? MAX_TILE_N : MAX_WGMMA_N;
    return gemm_is_wgmma(v) ? MAX_WGMMA_N : MAX_TILE_N;
}

static bool can_have_wgmma(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    return v->tile_m <= most_tile_m(p) && gemm_has_wgmma(&p->target) &&
           w8a8_copy_bytes(p, v) == GEMM_CHUNK_BYTES && !v->fused && v->cluster == 1;
}

/*
 * Leaves shared memory of a multiprocessor to CTAs that quantise where there are more tokens than
 * multiprocessors, so that the product's CTAs begin beside them.
 */
static void leave_room(const ptxgen_w8a8_plan *p, ptxgen_tile *v)
{
    enum { ROOM = 8 * 1024 };
    uint64_t most = plan_shared_limit(&p->target, 1) - ROOM;
    bool has_many = v->wn == 1 && v->tile_m == WIDE_TILE_M && !w8a8_takes_codes(&p->spec);
    while (has_many && v->stages > W8A8_LEAST_STAGES && shared_bytes(p, v) > most)
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
    uint32_t strips = sums && v->tile_m == MOST_TILE_M ? 2 : 1;
    bool is_wide = v->wn == 1 || (strips > 1 && !v->wn);
    uint32_t asked = is_wide && v->tile_n % 16 == 0 ? v->tile_n : 0;
    uint32_t most = w8a8_most_features(&p->spec, v);
    v->wm = v->tile_m / W8A8_TILE_ROWS / strips;
    for (v->wn = v->wn ? v->wn : 1;
         !is_wide && 2 * v->wn * v->wm <= MOST_WARPS && most > v->wn * FEW_ROWS; v->wn *= 2)
        ;
    uint32_t rows = (most + v->wn - 1) / v->wn;
    uint32_t unit = rows > FEW_ROWS || w8a8_gated(&p->spec) ? 16 : 8;
    v->tile_n = (rows + unit - 1) / unit * unit * v->wn;
    v->tile_n = v->tile_n < asked ? asked : v->tile_n;
    v->wk = v->wk ? v->wk : v->tile_m == LEAST_WGMMA_M ? 2 : 1; /* blocks of K in a stage */
    uint32_t most_blocks = sums ? sums * LEAST_WGMMA_M / v->tile_m : v->wk;
    bool has_warps = (uint64_t)v->wn * v->wm <= MOST_WARPS && (strips == 1 || v->wn == 1);
    if (w8a8_has_groups(&p->spec) && w8a8_group_features(v) > w8a8_block_rows(&p->spec))
        return false; /* no warp has rows in three blocks */
    bool fits = has_warps && !(v->wk & (v->wk - 1)) && v->wk <= most_blocks &&
                v->tile_m >= LEAST_WGMMA_M && v->tile_n <= most_n_of(v) && fill_stages(p, v);
    if (fits)
        leave_room(p, v);
    return fits;
}

/* Tiles of few tokens have 64 features for each warpgroup, and stages of two blocks of K. */
static bool arrange_wgmma(const ptxgen_w8a8_plan *p, ptxgen_tile *v)
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
    return v->tile_m == LEAST_TILE_M && w8a8_most_features(&p->spec, v) >= LEAST_ROWS &&
           v->wn <= MOST_WARPS_ALONG_N && !(v->tile_n & (v->tile_n - 1)) && fill_stages(p, v);
}

/* Multiply-adds of a tile in a nanosecond; fewer where sums of blocks are apart. */
static uint32_t multiply_rate(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    if (!gemm_is_wgmma(v))
        return 3000;
    if (w8a8_code_type(p->spec.codes)->integer)
        return 6500;
    return w8a8_strips(v) > 1 ? 5440 : 5200;
}

/*
 * The time of a tile for a byte of K, in picoseconds: the longest of reading W from memory (23
 * bytes a nanosecond and multiprocessor, more where some are idle), reading W and codes from the L2
 * (45, as boxes 80 to 100), multiplying, writing and reading operands in shared memory (200 to
 * 250), and the least time of wgmma between two stages. docs/notes/w8a8.md says where the rates
 * come from.
 */
static uint64_t byte_cost(const ptxgen_w8a8_plan *p, const ptxgen_tile *v, uint32_t m,
                          uint64_t busy)
{
    enum { LEAST_TIME = 900 };
    bool tokens_are_m = w8a8_tokens_are_m(v);
    uint64_t rows = w8a8_most_features(&p->spec, v);
    bool present = w8a8_copies_present_tokens(v) && m <= v->tile_m;
    uint64_t codes = v->fused ? 0 : present ? m : v->tile_m;
    uint64_t rate = present ? 100 : gemm_is_wgmma(v) ? 80 : 45;
    /* reads of w, all but the first from the L2 */
    uint64_t reads = tokens_are_m ? (m + v->tile_m - 1) / v->tile_m : 1;
    const uint64_t times[] = {rows * busy * 1000 / (23 * reads * p->target.multiprocessors),
                              (rows + codes) * 1000 / rate,
                              (uint64_t)v->tile_n * v->tile_m * 1000 / multiply_rate(p, v),
                              (uint64_t)shared_traffic(v) * (tokens_are_m ? 4 : 5)};
    uint64_t most = tokens_are_m ? LEAST_TIME : 1;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        most = times[i] > most ? times[i] : most;
    return most;
}

/* The time of copying W to aligned rows first, which reads and writes all of it. */
static uint64_t align_cost(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    uint64_t bytes = 2 * (uint64_t)w8a8_rows(&p->spec) * p->spec.k;
    return w8a8_aligns(p, v) ? bytes * 1000 / (32 * (uint64_t)p->target.multiprocessors) : 0;
}

/*
 * The time of the CTA with the most work for m tokens, in picoseconds. The fix-up of divided tiles
 * costs a constant, and the CTA that ends a tile reads the partial sums of the others at 64 bytes a
 * nanosecond; a cluster costs the constant alone. Each token past m in a box of codes costs 14
 * picoseconds a byte of K; launches with one tile along M of up to 128 tokens have no such tokens.
 */
static uint64_t product_cost(const ptxgen_w8a8_plan *p, const ptxgen_tile *v, uint32_t m)
{
    uint64_t tiles = tiles_of(v, m), sms = p->target.multiprocessors, k = p->spec.k;
    uint64_t units = sms / v->cluster, busy = tiles < units ? tiles : units;
    uint64_t each = byte_cost(p, v, m, busy * v->cluster);
    if (gemm_is_wgmma(v)) {
        bool none = w8a8_copies_present_tokens(v) && m <= v->tile_m;
        uint64_t past_m = none ? 0 : (v->tile_m - m % v->tile_m) % v->tile_m;
        return (tiles + units - 1) / units * k * each + past_m * k * 14;
    }
    if (v->cluster > 1)
        return (tiles + units - 1) / units * (k / v->cluster * each + 3000000);
    if (v->fused || gemm_deals_whole(tiles, (uint32_t)sms))
        return (tiles + sms - 1) / sms * k * each;
    uint64_t sums = (uint64_t)v->tile_n * v->tile_m * v->wk * 4 * 1000 / 64;
    uint64_t shares = tiles < sms ? sums * sms / tiles : sums;
    return (tiles * k + sms - 1) / sms * byte_cost(p, v, m, sms) + shares + 3000000;
}

static uint64_t cost(const ptxgen_w8a8_plan *p, const ptxgen_tile *v, uint32_t m)
{
    return align_cost(p, v) + product_cost(p, v, m);
}

/* Chooses warps. The two CTAs of a cluster need equally many stages; otherwise there is none. */
static bool adapt(const void *of, ptxgen_tile *v)
{
    const ptxgen_w8a8_plan *p = of;
    if (gemm_is_wgmma(v))
        return arrange_wgmma(p, v);
    if (!arrange_warps(p, v))
        return false;
    if (w8a8_steps(&p->spec, v) % v->cluster == 0)
        return true;
    v->cluster = 1;
    return arrange_warps(p, v);
}

/* The time of one tile along M; of the widest tiles the time of a feature, for any M. */
static uint64_t candidate_cost(const void *of, const ptxgen_tile *v, uint64_t m)
{
    const ptxgen_w8a8_plan *p = of;
    if (v->tile_m == MOST_TILE_M)
        return byte_cost(p, v, MOST_TILE_M, p->target.multiprocessors) * MAX_TILE_N / v->tile_n;
    return cost(p, v, (uint32_t)m);
}

/* Candidates for `tokens`, with even shares of N or with a fixed tile_n. */
enum { MOST_CANDIDATES = 10 };
static size_t list_candidates(const ptxgen_w8a8_plan *p, uint32_t tokens,
                              ptxgen_tile all[MOST_CANDIDATES])
{
    static const uint32_t wgmma_n[] = {0, 64, 128}; /* 0: even shares */
    static const uint32_t parts[] = {1, 2, 4}, fixed_n[] = {128, 64, 32, 16};
    size_t count = 0;
    for (size_t i = tokens == MOST_TILE_M; i < (tokens == LEAST_TILE_M ? 1 : 3); i++) {
        ptxgen_tile *v = &all[count++];
        *v = (ptxgen_tile){.kind = PTXGEN_WGMMA, .tile_m = tokens, .cluster = 1};
        if (wgmma_n[i])
            divide_n(p, wgmma_n[i], v);
        else
            divide_evenly(p, 1, most_n_of(v), v);
    }
    for (size_t i = 0; i < 3 && tokens < MOST_TILE_M; i++) {
        ptxgen_tile *v = &all[count++];
        *v = (ptxgen_tile){.tile_m = tokens, .cluster = parts[i] == 2 && has_clusters(p) ? 2 : 1};
        divide_evenly(p, parts[i], MAX_TILE_N, v);
    }
    bool has_mma = tokens < MOST_TILE_M || !w8a8_widens_codes(p);
    for (size_t i = 0; i < 4 && has_mma; i++) {
        ptxgen_tile *v = &all[count++];
        *v = (ptxgen_tile){.tile_m = tokens};
        divide_n(p, fixed_n[i], v);
    }
    return count;
}

static bool choose_tile(const ptxgen_w8a8_plan *p, uint32_t tokens, ptxgen_tile *best)
{
    ptxgen_tile all[MOST_CANDIDATES];
    struct gemm_choice choice = {all, list_candidates(p, tokens, all), tokens, tokens};
    return gemm_cheapest(&w8a8_planner, p, &choice, tokens, best);
}

/* CTAs that quantise for themselves find one scale for each token. */
static bool may_be_fused(const ptxgen_w8a8_plan *p)
{
    return w8a8_copies_directly(p) && !w8a8_takes_codes(&p->spec) && !w8a8_has_groups(&p->spec);
}

/*
 * The fused tile with the most tokens that leave room for a ring that keeps the memory busy, and
 * that every CTA can read twice from the L2 while its first weights arrive.
 */
static bool choose_fused(const ptxgen_w8a8_plan *p, ptxgen_tile *v)
{
    enum { LEAST_RING = 24 * 1024, MOST_OF_X = 16 * 1024 };
    uint64_t row = (uint64_t)p->spec.k * ptxgen_element_size((ptxgen_element)p->spec.x_type);
    for (uint32_t tokens = W8A8_TILE_TOKENS; tokens && may_be_fused(p); tokens /= 2) {
        *v = (ptxgen_tile){.tile_m = tokens, .fused = 1, .ctas = 1, .cluster = 1};
        divide_evenly(p, 1, MAX_TILE_N, v);
        if ((tokens == 1 || tokens * row <= MOST_OF_X) && arrange_warps(p, v) &&
            (v->stages - 1) * stage_bytes(p, v) >= LEAST_RING)
            return true;
    }
    return false;
}

/*
 * Tiles of 128 tokens for launches of more, whose warpgroups have all features of the tile. Tiles
 * of fewer features are added where N is so small that two rows of tiles take less time with them.
 */
static void add_wide(ptxgen_w8a8_plan *p)
{
    ptxgen_tile wide[] = {{.kind = PTXGEN_WGMMA, .tile_m = WIDE_TILE_M, .wn = 1},
                          {.kind = PTXGEN_WGMMA, .tile_m = WIDE_TILE_M, .wn = 1}};
    divide_n(p, MAX_WGMMA_N / 2, &wide[0]);
    divide_n(p, MAX_WGMMA_N, &wide[1]);
    bool serves_more = !p->spec.max_m || p->spec.max_m > WIDE_TILE_M;
    if (!serves_more || w8a8_rows(&p->spec) <= FEW_ROWS)
        return;
    gemm_add_cheapest(&w8a8_planner, p, GEMM_AMONG(wide, WIDE_TILE_M, WIDE_TILE_M),
                      2 * WIDE_TILE_M);
    const struct gemm_choice widest = {&wide[1], 1, WIDE_TILE_M, WIDE_TILE_M};
    gemm_add_cheapest(&w8a8_planner, p, &widest, 2 * WIDE_TILE_M);
}

/* wgmma's tile of 64 tokens copies only the launch's tokens, so it may serve fewer as well. */
static bool is_served_by_wgmma(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    ptxgen_tile w = {.kind = PTXGEN_WGMMA, .tile_m = LEAST_WGMMA_M, .ctas = 1, .cluster = 1};
    divide_evenly(p, 1, most_n_of(&w), &w);
    return v->tile_m < w.tile_m && arrange_wgmma(p, &w) &&
           cost(p, &w, v->tile_m) < cost(p, v, v->tile_m) + !gemm_is_wgmma(v);
}

static uint32_t copy_bytes(const ptxgen_w8a8_spec *s)
{
    uint32_t stride = w8a8_w_stride(s);
    return stride % 16 == 0 ? 16 : stride % 8 == 0 ? 8 : stride % 4 == 0 ? 4 : 1;
}

static ptxgen_status choose_tiles(void *of, ptxgen_error *err)
{
    ptxgen_w8a8_plan *p = of;
    p->spec = w8a8_with_range(&p->spec);
    if (w8a8_takes_codes(&p->spec))
        p->spec.x_type = PTXGEN_F32; /* which is not used */
    p->spec.w_stride = w8a8_w_stride(&p->spec);
    p->copy_bytes = copy_bytes(&p->spec);
    ptxgen_status status = w8a8_check_code_target(p, err);
    if (status != PTXGEN_OK)
        return status;
    uint32_t served = 0;
    ptxgen_tile v;
    if (choose_fused(p, &v)) {
        served = v.tile_m;
        if (served >= p->spec.min_m)
            gemm_add(&w8a8_planner, p, &v);
    }
    for (uint32_t tokens = LEAST_TILE_M; tokens <= most_tile_m(p); tokens *= 2) {
        if (p->spec.max_m && served >= p->spec.max_m)
            break;
        bool serves = tokens >= p->spec.min_m || tokens >= MOST_TILE_M / 2;
        if (!serves || !choose_tile(p, tokens, &v) || is_served_by_wgmma(p, &v))
            continue;
        served = tokens;
        gemm_add(&w8a8_planner, p, &v);
        if (tokens == WIDE_TILE_M)
            add_wide(p);
    }
    bool ends_fused = p->variant_count && p->variants[p->variant_count - 1].fused;
    if (p->variant_count && (!ends_fused || (p->spec.max_m && served >= p->spec.max_m)))
        return PTXGEN_OK;
    return plan_no_tile("w8a8", &p->target, err);
}

/* ---- tiles of the caller's choice ---- */

static bool is_known(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    if (v->fused)
        return v->fused == 1 && v->tile_m && v->tile_m <= W8A8_TILE_TOKENS && may_be_fused(p);
    return v->tile_m >= LEAST_TILE_M && v->tile_m <= MOST_TILE_M && !(v->tile_m & (v->tile_m - 1));
}

/* Whether the caller's warps of mma.sync divide the tile. */
static bool has_known_warps(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    return v->wn && (v->wm == 1 || v->wk == 1) && v->wn * v->wm * v->wk == W8A8_WARPS &&
           divides(p, v);
}

static ptxgen_status check_tile(const void *of, ptxgen_tile *v, ptxgen_error *err)
{
    const ptxgen_w8a8_plan *p = of;
    const ptxgen_tile asked = *v;
    bool wgmma = gemm_is_wgmma(v), known = is_known(p, v);
    if (!wgmma) {
        v->wm = v->wm ? v->wm : 1;
        v->wk = v->wk ? v->wk : 1;
    }
    if (known && !v->tile_n)
        divide_evenly(p, v->cluster, most_n_of(v), v);
    else if (known)
        divide_n(p, v->tile_n, v);
    bool in_range =
        known && (wgmma || has_known_warps(p, v)) && v->tile_n <= MAX_TILE_N && v->ctas == 1;
    bool clusters = v->cluster == 1 || (v->cluster == 2 && !v->fused && has_clusters(p));
    bool allowed = in_range && (wgmma ? arrange_wgmma(p, v)
                                      : clusters && w8a8_steps(&p->spec, v) % v->cluster == 0);
    v->stages = asked.stages;
    if (!allowed)
        return ptxgen_fail(
            err, in_range ? PTXGEN_ERROR_UNSUPPORTED : PTXGEN_ERROR_INVALID_ARGUMENT,
            "w8a8: no CTA of 8 warps holds a tile of %u tokens by %u features for %u x %u x %u "
            "warps along M, N and K in %u stages, in a cluster of %u",
            asked.tile_m, asked.tile_n, asked.wm, asked.wn, asked.wk, asked.stages, asked.cluster);
    return PTXGEN_OK;
}

/* ---- what serves m tokens ---- */

/* The fused variant serves as many tokens as it has, otherwise the cheapest does. */
static uint64_t variant_cost(const void *of, const ptxgen_tile *v, uint64_t m)
{
    if (v->fused && m <= v->tile_m)
        return 0;
    return w8a8_takes_all_tokens(v) && m > v->tile_m ? UINT64_MAX : cost(of, v, (uint32_t)m);
}

const char *ptxgen_w8a8_entry(const ptxgen_tile *v)
{
    if (!v)
        return NULL;
    /* even shares of more than 32 features have more warps along N */
    bool wide = w8a8_tokens_are_m(v) && v->wn == 1 && v->tile_n > FEW_ROWS;
    if (wide && v->tile_m == WIDE_TILE_M)
        return v->tile_n > MAX_WGMMA_N / 2 ? "w8a8_m128_n128" : "w8a8_m128_n64";
    return v->fused           ? "w8a8_fused"
           : v->tile_m == 16  ? "w8a8_m16"
           : v->tile_m == 32  ? "w8a8_m32"
           : v->tile_m == 64  ? "w8a8_m64"
           : v->tile_m == 128 ? "w8a8_m128"
                              : "w8a8_m256";
}

static void describe(const void *of, const ptxgen_tile *v, uint64_t m, char *text, size_t size)
{
    const ptxgen_w8a8_plan *p = of;
    if (v->fused)
        snprintf(
            text, size,
            "one launch: each CTA quantises the %u tokens (at most %u) for itself while its first "
            "weights arrive",
            (unsigned)m, v->tile_m);
    else if (w8a8_takes_codes(&p->spec))
        snprintf(text, size, "%s: tiles of %u tokens by %u features take the caller's codes",
                 w8a8_aligns(p, v) ? "two launches, of which one copies W" : "one launch",
                 v->tile_m, v->tile_n);
    else if (w8a8_aligns(p, v))
        snprintf(
            text, size,
            "three launches: rows of W, %u bytes apart, are brought to multiples of 16; one kernel "
            "quantises the %llu tokens; then tiles of %u tokens by %u features",
            p->spec.w_stride, (unsigned long long)m, v->tile_m, v->tile_n);
    else
        snprintf(
            text, size,
            "two launches: %llu tokens are too many for every CTA to quantise again, so one kernel "
            "does it; then tiles of %u tokens by %u features",
            (unsigned long long)m, v->tile_m, v->tile_n);
}

/* ---- a launch's division of work ---- */

static bool is_whole(const void *of, const ptxgen_tile *v, uint64_t tiles, uint32_t units)
{
    if (w8a8_takes_all_tokens(v) || gemm_is_wgmma(v))
        return w8a8_is_whole(of, v);
    return v->cluster > 1 || gemm_deals_whole(tiles, units);
}

/* Bytes of a CTA's partial sums: those of a tile, as in registers. */
static uint64_t partials_bytes(const ptxgen_tile *v)
{
    return (uint64_t)v->tile_n * v->tile_m * v->wk * 4;
}

static struct gemm_work work(const void *of, const ptxgen_tile *v)
{
    const ptxgen_w8a8_plan *p = of;
    return (struct gemm_work){v->blocks_n, w8a8_own_steps(&p->spec, v), v->cluster,
                              partials_bytes(v)};
}

static void guarantee(const void *of, const ptxgen_tile *v, ptxgen_guarantee *g)
{
    const ptxgen_w8a8_spec *s = &((const ptxgen_w8a8_plan *)of)->spec;
    const struct w8a8_code_type *codes = w8a8_code_type(s->codes);
    (void)v;
    g->exact = ptxgen_w8a8_is_exact(s);
    g->sums = codes->integer ? PTXGEN_SUMS_S32 : PTXGEN_SUMS_F32;
    g->x_rounding = w8a8_takes_codes(s) ? PTXGEN_ROUNDING_NONE : codes->rounding;
    g->bound = g->exact         ? PTXGEN_BOUND_ZERO
               : codes->integer ? PTXGEN_BOUND_SUM
                                : PTXGEN_BOUND_PRODUCTS;
}

const struct gemm_planner w8a8_planner = {
    GEMM_PLANNER_MEMBERS(w8a8),
    .min_m = offsetof(ptxgen_w8a8_plan, spec.min_m),
    .is_plan = w8a8_is_plan,
    .check_spec = check_spec,
    .choose_tiles = choose_tiles,
    .defaults = {.ctas = 1, .cluster = 1},
    .unused = {"warp_m", "warp_n", "steps", "pass_m", "split"},
    .most_kind = PTXGEN_WGMMA,
    .least_stages = W8A8_LEAST_STAGES,
    .most_stages = {W8A8_MOST_STAGES, W8A8_MOST_WGMMA_STAGES},
    .adapt = adapt,
    .shared_bytes = shared_bytes,
    .candidate_cost = candidate_cost,
    .cost = variant_cost,
    .check_tile = check_tile,
    .most_ctas = 1,
    .work = work,
    .is_whole = is_whole,
    .guarantee = guarantee,
    .describe = describe,
};
GEMM_PLANS(w8a8, w8a8_planner)
GEMM_LAUNCHES(w8a8, w8a8_planner)
