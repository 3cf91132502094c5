/* SPDX-License-Identifier: Apache-2.0 */
#include "head_rope.h"

/* From the lane's first element to element `which` of its pair `pair`. */
static int offset_in_bytes(const struct head_rope *rope, uint8_t type, uint32_t pair, int which)
{
    const int stride = rope->interleaved ? 2 : 1;
    const int partner = rope->interleaved ? 1 : (int)rope->head_size / 2;
    return (int)emit_size_of(type) * ((int)pair * stride + which * partner);
}

void head_rope_init(struct head_rope *rope, ptx_u32 lane)
{
    rope->pairs = rope->head_size / 64;
    rope->first_pair = ptx_mul_lo_u32(rope->k, lane, U32(rope->pairs));
    rope->first_element =
        rope->interleaved ? ptx_shl_b32(rope->k, rope->first_pair, U32(1)) : rope->first_pair;
}

void head_rope_find_angles(struct head_rope *rope, ptx_u64 turns, ptx_u32 position)
{
    ptx_u64 wide = ptx_cvt_u64_u32(rope->k, position);
    ptx_u64 at = ptx_mad_wide_u32(rope->k, rope->first_pair, U32(8), turns);
    for (uint32_t p = 0; p < rope->pairs; p++)
        emit_angle(rope->k, wide, at, 8 * (int)p, &rope->cosine[p], &rope->sine[p]);
}

ptx_u64 head_rope_address(const struct head_rope *rope, ptx_u64 base, ptx_u32 row, uint8_t type)
{
    ptx_u64 at = ptx_mad_wide_u32(rope->k, row, U32(rope->head_size * emit_size_of(type)), base);
    return ptx_mad_wide_u32(rope->k, rope->first_element, U32(emit_size_of(type)), at);
}

void head_rope_load(const struct head_rope *rope, uint8_t type, ptx_u64 at, struct head_part *to)
{
    for (uint32_t p = 0; p < rope->pairs; p++)
        for (int i = 0; i < 2; i++)
            to->value[p][i] = emit_load(rope->k, type, at, offset_in_bytes(rope, type, p, i));
}

void head_rope_store(const struct head_rope *rope, uint8_t type, ptx_u64 at,
                     const struct head_part *head)
{
    for (uint32_t p = 0; p < rope->pairs; p++)
        for (int i = 0; i < 2; i++)
            emit_store(rope->k, type, at, offset_in_bytes(rope, type, p, i), head->value[p][i]);
}

void head_rope_store_shared(const struct head_rope *rope, uint8_t type, ptx_u32 base,
                            const struct head_part *head)
{
    ptx_u32 at = ptx_mad_lo_u32(rope->k, rope->first_element, U32(emit_size_of(type)), base);
    for (uint32_t p = 0; p < rope->pairs; p++)
        for (int i = 0; i < 2; i++)
            emit_store_shared(rope->k, type, at, offset_in_bytes(rope, type, p, i),
                              head->value[p][i]);
}

/* value · gain / √(mean of squares + epsilon): the norm. */
static void normalise(const struct head_rope *rope, const struct head_part *gain,
                      struct head_part *head)
{
    ptx_kernel *k = rope->k;
    ptx_f32 squares = ptx_mov_f32(k, F32(0));
    for (uint32_t p = 0; p < rope->pairs; p++)
        for (int i = 0; i < 2; i++)
            ptx_fma_f32_to(k, squares, head->value[p][i], head->value[p][i], squares);
    squares = emit_sum_lanes(k, squares, 32);
    ptx_f32 factor = emit_norm_factor(k, squares, rope->head_size, rope->epsilon);
    for (uint32_t p = 0; p < rope->pairs; p++)
        for (int i = 0; i < 2; i++) {
            ptx_f32 scaled = ptx_mul_f32(k, head->value[p][i], factor);
            head->value[p][i] = ptx_mul_f32(k, scaled, gain->value[p][i]);
        }
}

void head_rope_apply(const struct head_rope *rope, const struct head_part *gain,
                     struct head_part *head)
{
    ptx_kernel *k = rope->k;
    if (rope->has_norm)
        normalise(rope, gain, head);
    for (uint32_t p = 0; p < rope->pairs; p++) {
        ptx_f32 x = head->value[p][0], y = head->value[p][1];
        ptx_f32 minus = ptx_neg_f32(k, ptx_mul_f32(k, y, rope->sine[p]));
        head->value[p][0] = ptx_fma_f32(k, x, rope->cosine[p], minus);
        ptx_f32 rotated = ptx_mul_f32(k, y, rope->cosine[p]);
        head->value[p][1] = ptx_fma_f32(k, x, rope->sine[p], rotated);
    }
}
