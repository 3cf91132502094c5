/* SPDX-License-Identifier: Apache-2.0 */
/* The time that a launch's tiles are expected to take. */
#include "tile.h"

/*
 * Multiply-adds of a multiprocessor in a nanosecond: fewer where sums of blocks are apart, which
 * two strips of a warpgroup hide in part.
 */
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
uint64_t w8a8_byte_cost(const ptxgen_w8a8_plan *p, const ptxgen_tile *v, uint32_t m, uint64_t busy)
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
                              (uint64_t)w8a8_shared_traffic(v) * (tokens_are_m ? 4 : 5)};
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

static uint64_t tiles_of(const ptxgen_tile *v, uint64_t m)
{
    return (m + v->tile_m - 1) / v->tile_m * v->blocks_n;
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
    uint64_t each = w8a8_byte_cost(p, v, m, busy * v->cluster);
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
    return (tiles * k + sms - 1) / sms * w8a8_byte_cost(p, v, m, sms) + shares + 3000000;
}

uint64_t w8a8_cost(const ptxgen_w8a8_plan *p, const ptxgen_tile *v, uint32_t m)
{
    return align_cost(p, v) + product_cost(p, v, m);
}
