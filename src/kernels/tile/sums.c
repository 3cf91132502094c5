/* SPDX-License-Identifier: Apache-2.0 */
#include "sums.h"

enum { FULL = 4 /* registers of the widest access */ };

static uint32_t piece(const struct tile_sums *s)
{
    return s->width < FULL ? s->width : FULL;
}

void tile_sums_begin(ptx_kernel *k, const struct tile_threads *at, ptx_u32 warp_along_n,
                     ptx_u32 warp_along_k, struct tile_sums *s)
{
    uint32_t pitch = tile_sums_pitch(s->tile_n);
    ptx_u32 pair = ptx_mul_lo_u32(k, at->quad, U32(2));
    ptx_u32 row = ptx_mad_lo_u32(k, warp_along_k, U32(s->pass_m), pair);
    uint32_t warp_columns = s->interleaved ? 16 : s->warp_n;
    ptx_u32 column = ptx_mad_lo_u32(k, warp_along_n, U32(warp_columns), at->group);
    ptx_u32 line = ptx_mad_lo_u32(k, row, U32(pitch), s->staging);
    s->lane = ptx_mad_lo_u32(k, column, U32(4), line);
}

void tile_sums_stage(ptx_kernel *k, const struct tile_sums *s, uint32_t pass,
                     tile_sums_register *acc, const void *from)
{
    uint32_t pitch = tile_sums_pitch(s->tile_n), groups = s->pass_m / 8;
    uint32_t tile_columns = s->interleaved ? 64 : 16;
    for (uint32_t t = 0; t < s->warp_n / 16; t++)
        for (uint32_t j = 0; j < groups; j++)
            for (uint32_t r = 0; r < 4; r++) {
                uint32_t offset = (8 * j + r % 2) * pitch + (tile_columns * t + r / 2 * 8) * 4;
                ptx_st_shared_u32(k, s->lane, (int)offset, acc(from, t, pass * groups + j, r));
            }
}

static ptx_u32 add(ptx_kernel *k, const struct tile_sums *s, ptx_u32 a, ptx_u32 b)
{
    if (s->integer)
        return ptx_add_u32(k, a, b);
    return ptx_f32_as_u32(ptx_add_f32(k, ptx_u32_as_f32(a), ptx_u32_as_f32(b)));
}

static void load_shared(ptx_kernel *k, const struct tile_sums *s, ptx_u32 at, uint32_t offset,
                        ptx_u32 *to)
{
    bool full = piece(s) == FULL;
    if (full && s->remote)
        ptx_ld_shared_cluster_v4_u32(k, to, at, (int)offset);
    else if (full)
        ptx_ld_shared_v4_u32(k, to, at, (int)offset);
    else if (s->remote)
        ptx_ld_shared_cluster_v2_u32(k, to, at, (int)offset);
    else
        ptx_ld_shared_v2_u32(k, to, at, (int)offset);
}

void tile_sums_load(ptx_kernel *k, const struct tile_sums *s, ptx_u32 row, ptx_u32 column,
                    ptx_u32 sums[TILE_SUMS_WIDTH])
{
    uint32_t pitch = tile_sums_pitch(s->tile_n);
    ptx_u32 line = ptx_mad_lo_u32(k, row, U32(pitch), s->staging);
    ptx_u32 at = ptx_mad_lo_u32(k, column, U32(4), line);
    for (uint32_t i = 0; i < s->width; i += piece(s))
        load_shared(k, s, at, i * 4, &sums[i]);
    for (uint32_t w = 1; w < s->wk; w++)
        for (uint32_t i = 0; i < s->width; i += piece(s)) {
            ptx_u32 more[FULL];
            load_shared(k, s, at, w * s->pass_m * pitch + i * 4, more);
            for (uint32_t j = 0; j < piece(s); j++)
                sums[i + j] = add(k, s, sums[i + j], more[j]);
        }
}
