/* SPDX-License-Identifier: Apache-2.0 */
#include "lane_rope.h"

/* Where pairs are D/2 apart, a lane's partners are those of the lane D/16 away. */
static uint32_t partner_lanes(const struct lane_rope *rope)
{
    return rope->head_size / EIGHT / 2;
}

void lane_rope_begin(struct lane_rope *rope, ptx_u64 turns, ptx_u32 position)
{
    ptx_kernel *k = rope->k;
    const uint32_t half = rope->head_size / 2;
    ptx_u64 wide = ptx_cvt_u64_u32(k, position);
    if (rope->interleaved) {
        ptx_u32 pair = ptx_shr_u32(k, rope->part, U32(1));
        ptx_u64 at = ptx_mad_wide_u32(k, pair, U32(8), turns);
        for (int i = 0; i < EIGHT / 2; i++)
            emit_angle(k, wide, at, 8 * i, &rope->cosine[i], &rope->sine[i]);
        return;
    }
    ptx_u32 pair = ptx_and_b32(k, rope->part, U32(half - 1));
    ptx_u64 at = ptx_mad_wide_u32(k, pair, U32(8), turns);
    ptx_pred is_first = ptx_setp_lt_u32(k, rope->part, U32(half));
    for (int i = 0; i < EIGHT; i++) {
        emit_angle(k, wide, at, 8 * i, &rope->cosine[i], &rope->sine[i]);
        ptx_f32 minus = ptx_neg_f32(k, rope->sine[i]);
        rope->sine[i] = ptx_selp_f32(k, minus, rope->sine[i], is_first);
    }
}

void lane_rope_load(const struct lane_rope *rope, ptx_u64 base, ptx_f32 to[EIGHT])
{
    struct eight words;
    ptx_u64 at = ptx_mad_wide_u32(rope->k, rope->part, U32(4), base);
    emit_load_eight(rope->k, PTXGEN_F32, at, &words);
    emit_widen_eight(rope->k, PTXGEN_F32, &words, to);
}

static void normalise(const struct lane_rope *rope, const ptx_f32 gain[EIGHT], ptx_f32 head[EIGHT])
{
    ptx_kernel *k = rope->k;
    ptx_f32 squares = ptx_mul_f32(k, head[0], head[0]);
    for (int i = 1; i < EIGHT; i++)
        squares = ptx_fma_f32(k, head[i], head[i], squares);
    squares = emit_sum_lanes(k, squares, rope->head_size / EIGHT);
    ptx_f32 factor = emit_norm_factor(k, squares, rope->head_size, rope->epsilon);
    for (int i = 0; i < EIGHT; i++)
        head[i] = ptx_mul_f32(k, ptx_mul_f32(k, head[i], factor), gain[i]);
}

void lane_rope_apply(const struct lane_rope *rope, const ptx_f32 gain[EIGHT], ptx_f32 head[EIGHT])
{
    ptx_kernel *k = rope->k;
    if (rope->has_norm)
        normalise(rope, gain, head);
    for (int i = 0; i < EIGHT / 2 && rope->interleaved; i++) {
        ptx_f32 x = head[2 * i], y = head[2 * i + 1];
        ptx_f32 minus = ptx_neg_f32(k, ptx_mul_f32(k, y, rope->sine[i]));
        head[2 * i] = ptx_fma_f32(k, x, rope->cosine[i], minus);
        head[2 * i + 1] = ptx_fma_f32(k, x, rope->sine[i], ptx_mul_f32(k, y, rope->cosine[i]));
    }
    for (int i = 0; i < EIGHT && !rope->interleaved; i++) {
        ptx_f32 partner =
            ptx_shfl_sync_bfly_f32(k, head[i], U32(partner_lanes(rope)), U32(31), ALL_LANES);
        ptx_f32 turned = ptx_mul_f32(k, partner, rope->sine[i]);
        head[i] = ptx_fma_f32(k, head[i], rope->cosine[i], turned);
    }
}
