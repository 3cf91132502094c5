/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of squares of h, one a super-block of a token, in shared memory, and 1 / rms from them.
 */
#include "emit.h"

#include <float.h>

/* Squares of f16 cannot overflow f32; of wider types, sums of (h·2⁻⁶⁴)² stand beside those of h².
 */
static int square_sums(const struct kernel *q)
{
    return q->spec->x_type == PTXGEN_F16 ? 1 : 2;
}

ptx_f32 warp_sum(ptx_kernel *k, ptx_f32 value, unsigned first_mask, unsigned last_mask)
{
    for (unsigned mask = first_mask; mask >= last_mask; mask /= 2)
        value =
            ptx_add_f32(k, value, ptx_shfl_sync_bfly_f32(k, value, U32(mask), U32(31), ALL_LANES));
    return value;
}

void emit_squares(struct kernel *q, ptx_u32 token, ptx_u32 super_block,
                  const ptx_f32 h[LANE_VALUES])
{
    ptx_kernel *k = q->k;
    ptx_u32 cell = super_block;
    if (q->v->tokens > 1)
        cell = times_plus(q, token, super_blocks(q->spec), super_block);
    ptx_u32 to = times_plus(q, cell, 8, q->sh.squares);
    for (int s = 0; s < square_sums(q); s++) {
        ptx_f32 sum = h[0];
        for (int i = 0; i < LANE_VALUES; i++) {
            ptx_f32 value = s ? ptx_mul_f32(k, h[i], F32(0x1p-64f)) : h[i];
            sum = i ? ptx_fma_f32(k, value, value, sum) : ptx_mul_f32(k, value, value);
        }
        sum = warp_sum(k, sum, 16, 1);
        ptx_guarded(k, is_zero(q, q->at.lane))
            ptx_st_shared_f32(k, to, 4 * s, sum);
    }
}

/* One token's sum number `s` over all super-blocks: each group of lanes takes every eighth. */
static ptx_f32 sum_squares(struct kernel *q, ptx_u32 row, int s)
{
    ptx_kernel *k = q->k;
    uint32_t all = super_blocks(q->spec);
    ptx_u32 at = times_plus(q, q->at.group, 8, row);
    ptx_f32 sum = F32(0);
    for (uint32_t first = 0; first < all; first += 8) {
        ptx_f32 part;
        if (first + 8 <= all)
            part = ptx_ld_shared_f32(k, at, (int)first * 8 + 4 * s);
        else {
            part = ptx_mov_f32(k, F32(0));
            ptx_guarded(k, ptx_setp_lt_u32(k, q->at.group, U32(all - first)))
                ptx_ld_shared_f32_to(k, part, at, (int)first * 8 + 4 * s);
        }
        sum = first ? ptx_add_f32(k, sum, part) : part;
    }
    return warp_sum(k, sum, 16, 4);
}

ptx_f32 emit_inverse_rms(struct kernel *q, ptx_u32 token)
{
    ptx_kernel *k = q->k;
    float per_k = 1.0f / (float)q->spec->k;
    uint32_t flush =
        q->spec->epsilon >= FLT_MIN ? PTX_FTZ : 0; /* a lesser form, where all are normal */
    ptx_u32 row = at_token(q, q->sh.squares, token, super_blocks(q->spec) * 8);
    ptx_f32 sum = sum_squares(q, row, 0);
    ptx_f32 plain = ptx_fma_f32(k, sum, F32(per_k), F32(q->spec->epsilon));
    if (square_sums(q) == 1)
        return ptx_rsqrt_approx_f32_m(k, flush, plain);
    /* Where the squares overflowed, epsilon is far below their last bit. */
    ptx_f32 small = ptx_mul_f32(k, sum_squares(q, row, 1), F32(per_k));
    ptx_pred overflowed = ptx_setp_eq_f32(k, sum, F32(__builtin_inff()));
    ptx_f32 radicand = ptx_selp_f32(k, small, plain, overflowed);
    ptx_f32 inverse = ptx_rsqrt_approx_f32_m(k, flush, radicand);
    ptx_f32 down = ptx_mul_f32(k, inverse, F32(0x1p-64f));
    return ptx_selp_f32(k, down, inverse, overflowed);
}
