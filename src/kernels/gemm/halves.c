/* SPDX-License-Identifier: Apache-2.0 */
#include "halves.h"

enum { CHUNK = 16, STRIP = 64 };

static uint32_t pitch(const struct gemm_halves *h)
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
    ptx_u32 line = ptx_mad_lo_u32(k, row, U32(pitch(h)), h->staging);
    h->lane = ptx_mad_lo_u32(k, there, U32(CHUNK), line);
}

static ptx_u32 round_pair(ptx_kernel *k, const struct gemm_halves *h, ptx_u32 low, ptx_u32 high)
{
    ptx_f32 x = ptx_u32_as_f32(low), y = ptx_u32_as_f32(high);
    if (h->bf16)
        return ptx_bf16x2_as_u32(ptx_cvt_bf16x2_f32(k, y, x));
    return ptx_f16x2_as_u32(ptx_cvt_f16x2_f32(k, y, x));
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
                blocks[i] = round_pair(k, h, acc(from, t, group, r), acc(from, t, group, r + 1));
            }
            ptx_stmatrix_x4_b16_m(k, PTX_TRANS, lane, (int)(8 * j * pitch(h) + strip), blocks);
        }
    }
}

void gemm_halves_load(ptx_kernel *k, const struct gemm_halves *h, ptx_u32 row, ptx_u32 column,
                      ptx_u32 pairs[GEMM_HALVES_WIDTH / 2])
{
    ptx_u32 in_block = ptx_and_b32(k, row, U32(7));
    ptx_u32 chunk = ptx_shr_u32(k, column, U32(3));
    ptx_u32 there = ptx_xor_b32(k, chunk, in_block);
    ptx_u32 line = ptx_mad_lo_u32(k, row, U32(pitch(h)), h->staging);
    ptx_ld_shared_v4_u32(k, pairs, ptx_mad_lo_u32(k, there, U32(CHUNK), line), 0);
}
