/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of squares of h in shared memory, one for each super-block of a token, and 1 / rms. */
#include "emit.h"

#include <float.h>
#include <math.h>

/*
 * Squares of f16 cannot overflow f32. For wider types there are also sums of (h·2⁻⁸⁰)²: 2²⁴ such
 * squares with |h| < 2¹²⁸ stay below 2¹²⁰.
 */
enum { SCALED_EXPONENT = -80 };
static int square_sums(const struct rmsnorm_q4k_kernel *q)
{
    return q->spec->x_type == PTXGEN_F16 ? 1 : 2;
}

ptx_f32 rmsnorm_q4k_warp_sum(ptx_kernel *k, ptx_f32 value, unsigned first_mask, unsigned last_mask)
{
    for (unsigned mask = first_mask; mask >= last_mask; mask /= 2)
        value =
            ptx_add_f32(k, value, ptx_shfl_sync_bfly_f32(k, value, U32(mask), U32(31), ALL_LANES));
    return value;
}

void rmsnorm_q4k_store_squares(struct rmsnorm_q4k_kernel *q, ptx_u32 token, ptx_u32 super_block,
                               const ptx_f32 h[LANE_VALUES])
{
    ptx_kernel *k = q->k;
    ptx_u32 cell = super_block;
    if (q->v->tile_m > 1)
        cell = times_plus(q, token, super_blocks(q->spec), super_block);
    ptx_u32 to = times_plus(q, cell, 8, q->sh.squares);
    ptx_f32 scaled_down = F32(ldexpf(1, SCALED_EXPONENT));
    for (int s = 0; s < square_sums(q); s++) {
        ptx_f32 sum = h[0];
        for (int i = 0; i < LANE_VALUES; i++) {
            ptx_f32 value = s ? ptx_mul_f32(k, h[i], scaled_down) : h[i];
            sum = i ? ptx_fma_f32(k, value, value, sum) : ptx_mul_f32(k, value, value);
        }
        sum = rmsnorm_q4k_warp_sum(k, sum, 16, 1);
        ptx_guarded(k, is_zero(q, q->at.lane))
            ptx_st_shared_f32(k, to, 4 * s, sum);
    }
}

/* A token's sum number `s` over all super-blocks, of which each group of lanes adds every eighth.
 */
static ptx_f32 sum_squares(struct rmsnorm_q4k_kernel *q, ptx_u32 row, int s)
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
    return rmsnorm_q4k_warp_sum(k, sum, 16, 4);
}

/* Makes 1 / √0 NaN. With ε = 0 that is a token whose squares are zero or below f32's range. */
static ptx_f32 without_zero(struct rmsnorm_q4k_kernel *q, ptx_f32 inverse)
{
    ptx_kernel *k = q->k;
    if (q->spec->epsilon > 0)
        return inverse;
    ptx_pred finite = ptx_setp_lt_f32(k, inverse, F32(__builtin_inff()));
    return ptx_selp_f32(k, inverse, F32(__builtin_nanf("")), finite);
}

ptx_f32 rmsnorm_q4k_inverse_rms(struct rmsnorm_q4k_kernel *q, ptx_u32 token)
{
    ptx_kernel *k = q->k;
    float per_k = 1.0f / (float)q->spec->k, epsilon = q->spec->epsilon;
    uint32_t flush = epsilon >= FLT_MIN
                         ? PTX_FTZ
                         : 0; /* the cheaper instruction, where all radicands are normal */
    ptx_u32 row = at_token(q, q->sh.squares, token, super_blocks(q->spec) * 8);
    ptx_f32 sum = sum_squares(q, row, 0);
    ptx_f32 plain = ptx_fma_f32(k, sum, F32(per_k), F32(epsilon));
    if (square_sums(q) == 1)
        return without_zero(q, ptx_rsqrt_approx_f32_m(k, flush, plain));
    float scaled_epsilon = ldexpf(epsilon, 2 * SCALED_EXPONENT);
    ptx_f32 scaled_sum = sum_squares(q, row, 1);
    ptx_f32 small = ptx_fma_f32(k, scaled_sum, F32(per_k), F32(scaled_epsilon));
    ptx_pred overflowed = ptx_setp_eq_f32(k, sum, F32(__builtin_inff()));
    ptx_f32 radicand = ptx_selp_f32(k, small, plain, overflowed);
    ptx_f32 inverse = ptx_rsqrt_approx_f32_m(k, flush, radicand);
    ptx_f32 down = ptx_mul_f32(k, inverse, F32(ldexpf(1, SCALED_EXPONENT)));
    return without_zero(q, ptx_selp_f32(k, down, inverse, overflowed));
}
