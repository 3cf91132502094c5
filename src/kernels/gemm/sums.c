/* SPDX-License-Identifier: Apache-2.0 */
#include "sums.h"

enum { FULL = 4 /* registers of the widest access */ };

static uint32_t piece(const struct gemm_sums *s)
{
    return s->width < FULL ? s->width : FULL;
}

/* Bytes between staged rows. */
static uint32_t pitch_of(const struct gemm_sums *s)
{
    return gemm_sums_pitch(s->alone ? s->warp_n : s->tile_n);
}

void gemm_sums_begin(ptx_kernel *k, const struct gemm_threads *at, ptx_u32 warp_along_n,
                     ptx_u32 warp_along_k, struct gemm_sums *s)
{
    uint32_t pitch = pitch_of(s);
    ptx_u32 row = ptx_mul_lo_u32(k, at->quad, U32(2)), column = at->group;
    s->staged = s->staging;
    s->warp_column = ptx_mul_lo_u32(k, warp_along_n, U32(s->interleaved ? 16 : s->warp_n));
    if (s->alone)
        s->staged = ptx_mad_lo_u32(k, at->warp, U32(s->pass_m * pitch), s->staging);
    else {
        row = ptx_mad_lo_u32(k, warp_along_k, U32(s->pass_m), row);
        column = ptx_add_u32(k, s->warp_column, column);
    }
    ptx_u32 line = ptx_mad_lo_u32(k, row, U32(pitch), s->staged);
    s->lane = ptx_mad_lo_u32(k, column, U32(4), line);
    if (s->wm > 1)
        s->lane = ptx_mad_lo_u32(k, s->along_m, U32(gemm_sums_warp_pass(s) * pitch), s->lane);
    if (s->ctas == 2) {
        ptx_u32 other = ptx_xor_b32(k, s->rank, U32(1));
        s->of_cta[1] = ptx_mapa_shared_cluster_u32(k, s->staging, other);
    }
    for (uint32_t i = 0; i < s->ctas && s->ctas > 2; i++)
        s->of_cta[i] = ptx_mapa_shared_cluster_u32(k, s->staging, U32(i));
}

void gemm_sums_stage(ptx_kernel *k, const struct gemm_sums *s, uint32_t pass,
                     gemm_sums_register *acc, const void *from)
{
    uint32_t pitch = pitch_of(s), groups = gemm_sums_warp_pass(s) / 8;
    uint32_t tile_columns = s->interleaved ? 64 : 16;
    for (uint32_t t = 0; t < s->warp_n / 16; t++)
        for (uint32_t j = 0; j < groups; j++)
            for (uint32_t r = 0; r < 4; r++) {
                uint32_t offset = (8 * j + r % 2) * pitch + (tile_columns * t + r / 2 * 8) * 4;
                ptx_st_shared_u32(k, s->lane, (int)offset, acc(from, t, pass * groups + j, r));
            }
}

static ptx_u32 add(ptx_kernel *k, const struct gemm_sums *s, ptx_u32 a, ptx_u32 b)
{
    ptx_f32 f32_a = ptx_u32_as_f32(a), f32_b = ptx_u32_as_f32(b);
    return s->integer ? ptx_add_u32(k, a, b) : ptx_f32_as_u32(ptx_add_f32(k, f32_a, f32_b));
}

static void load_shared(ptx_kernel *k, uint32_t words, ptx_u32 at, uint32_t offset, ptx_u32 *to)
{
    if (words == FULL)
        ptx_ld_shared_v4_u32(k, to, at, (int)offset);
    else if (words == 2)
        ptx_ld_shared_v2_u32(k, to, at, (int)offset);
    else
        to[0] = ptx_ld_shared_u32(k, at, (int)offset);
}

static void load_of_cluster(ptx_kernel *k, uint32_t words, ptx_u32 at, uint32_t offset, ptx_u32 *to)
{
    if (words == FULL)
        ptx_ld_shared_cluster_v4_u32(k, to, at, (int)offset);
    else if (words == 2)
        ptx_ld_shared_cluster_v2_u32(k, to, at, (int)offset);
    else
        to[0] = ptx_ld_shared_cluster_u32(k, at, (int)offset);
}

/* Adds up the sums at byte `place` of each warp along K, of those staged at address `staged`. */
static void add_staged(ptx_kernel *k, const struct gemm_sums *s, ptx_u32 staged, ptx_u32 place,
                       bool own, bool first, ptx_u32 sums[GEMM_SUMS_WIDTH])
{
    ptx_u32 at = ptx_add_u32(k, staged, place);
    for (uint32_t w = 0; w < s->wk; w++)
        for (uint32_t i = 0; i < s->width; i += piece(s)) {
            ptx_u32 more[FULL];
            uint32_t offset = w * s->pass_m * pitch_of(s) + i * 4;
            (own ? load_shared : load_of_cluster)(k, piece(s), at, offset, more);
            for (uint32_t j = 0; j < piece(s); j++)
                sums[i + j] = first && w == 0 ? more[j] : add(k, s, sums[i + j], more[j]);
        }
}

void gemm_sums_load(ptx_kernel *k, const struct gemm_sums *s, ptx_u32 row, ptx_u32 column,
                    ptx_u32 sums[GEMM_SUMS_WIDTH])
{
    bool own = s->ctas <= 2;
    if (s->alone)
        column = ptx_sub_u32(k, column, s->warp_column);
    ptx_u32 line = ptx_mul_lo_u32(k, row, U32(pitch_of(s)));
    ptx_u32 place = ptx_mad_lo_u32(k, column, U32(4), line);
    if (own)
        add_staged(k, s, s->alone ? s->staged : s->staging, place, true, true, sums);
    for (uint32_t i = own; i < s->ctas; i++)
        add_staged(k, s, s->of_cta[i], place, false, i == 0, sums);
}

/* ---- rounded results ---- */

enum { CHUNK = 16, STRIP = 64 };

static uint32_t halves_pitch(const struct gemm_halves *h)
{
    return h->columns * 2;
}

/*
 * In stmatrix.x4 the lanes 8i to 8i + 7 give the addresses of the rows of block i. Blocks 0 and 1
 * are the columns 0–7 and 8–15 of the warp's tile in the first 8 rows, blocks 2 and 3 the same
 * columns in the next 8 rows.
 */
void gemm_halves_begin(ptx_kernel *k, const struct gemm_threads *at, struct gemm_halves *h)
{
    ptx_u32 in_block = ptx_and_b32(k, at->lane, U32(7));
    ptx_u32 right = ptx_bfe_u32(k, at->lane, U32(3), U32(1));
    ptx_u32 down = ptx_shr_u32(k, at->lane, U32(4));
    ptx_u32 row = ptx_mad_lo_u32(k, down, U32(8), in_block);
    ptx_u32 chunk = h->alone ? right : ptx_mad_lo_u32(k, at->warp, U32(2), right);
    ptx_u32 there = ptx_xor_b32(k, chunk, in_block);
    ptx_u32 line = ptx_mad_lo_u32(k, row, U32(halves_pitch(h)), h->staging);
    h->lane = ptx_mad_lo_u32(k, there, U32(CHUNK), line);
}

void gemm_halves_stage(ptx_kernel *k, const struct gemm_halves *h, uint32_t pass,
                       gemm_sums_register *acc, const void *from)
{
    for (uint32_t t = 0; t < h->tiles; t++) {
        ptx_u32 lane = h->lane;
        if (h->alone && t)
            lane = ptx_xor_b32(k, lane, U32(t * 2 * CHUNK));
        uint32_t strip = h->alone ? 0 : t * STRIP * 2;
        for (uint32_t j = 0; j < h->pass_m / 8; j += 2) {
            ptx_u32 blocks[4];
            for (uint32_t i = 0; i < 4; i++) {
                uint32_t group = pass * h->pass_m / 8 + j + i / 2, r = i % 2 * 2;
                ptx_f32 low = ptx_u32_as_f32(acc(from, t, group, r));
                ptx_f32 high = ptx_u32_as_f32(acc(from, t, group, r + 1));
                blocks[i] = gemm_narrow_pair(k, h->bf16, low, high);
            }
            ptx_stmatrix_x4_b16_m(k, PTX_TRANS, lane, (int)(8 * j * halves_pitch(h) + strip),
                                  blocks);
        }
    }
}

void gemm_halves_load(ptx_kernel *k, const struct gemm_halves *h, ptx_u32 row, ptx_u32 column,
                      ptx_u32 pairs[GEMM_HALVES_WIDTH / 2])
{
    ptx_u32 in_block = ptx_and_b32(k, row, U32(7));
    ptx_u32 chunk = ptx_shr_u32(k, column, U32(3));
    ptx_u32 there = ptx_xor_b32(k, chunk, in_block);
    ptx_u32 line = ptx_mad_lo_u32(k, row, U32(halves_pitch(h)), h->staging);
    ptx_ld_shared_v4_u32(k, pairs, ptx_mad_lo_u32(k, there, U32(CHUNK), line), 0);
}
