/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

ptx_u64 gemm_param_u64(ptx_kernel *k, const char *name, bool used)
{
    if (used)
        return ptx_param_u64(k, name);
    ptx_param_declare(k, name, 8, 8);
    return U64(0);
}

void gemm_params_u64(ptx_kernel *k, const struct gemm_param *params, uint32_t count, ptx_u64 *to)
{
    for (uint32_t i = 0; i < count; i++)
        to[i] = gemm_param_u64(k, params[i].name, params[i].used);
}

void gemm_add_to(ptx_kernel *k, bool integer, ptx_u32 sum, ptx_u32 more)
{
    ptx_f32 f32_sum = ptx_u32_as_f32(sum), f32_more = ptx_u32_as_f32(more);
    if (integer)
        ptx_add_u32_to(k, sum, sum, more);
    else
        ptx_add_f32_to(k, f32_sum, f32_sum, f32_more);
}

ptx_u32 gemm_narrow_pair(ptx_kernel *k, bool bf16, ptx_f32 low, ptx_f32 high)
{
    if (bf16)
        return ptx_bf16x2_as_u32(ptx_cvt_bf16x2_f32(k, high, low));
    return ptx_f16x2_as_u32(ptx_cvt_f16x2_f32(k, high, low));
}

void gemm_new_registers(ptx_kernel *k, ptx_u32 *registers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        registers[i] = ptx_mov_u32(k, U32(0));
}

struct gemm_threads gemm_find_threads(ptx_kernel *k)
{
    struct gemm_threads at = {.team = 0};
    at.thread = ptx_sreg_tid_x(k);
    at.cta = ptx_sreg_ctaid_x(k);
    ptx_u32 warp = ptx_shr_u32(k, at.thread, U32(5));
    at.warp =
        ptx_shfl_sync_idx_u32(k, warp, U32(0), U32(31), ALL_LANES); /* uniform to the assembler */
    at.lane = ptx_and_b32(k, at.thread, U32(31));
    at.group = ptx_shr_u32(k, at.lane, U32(2));
    at.quad = ptx_and_b32(k, at.lane, U32(3));
    return at;
}

void gemm_sync(ptx_kernel *k, const struct gemm_threads *at)
{
    if (at->team)
        ptx_bar_sync_n(k, at->barrier, U32(at->team));
    else
        ptx_bar_sync(k, 0);
}

/*
 * ptxas does not turn a division by a constant into a multiplication, so this function emits the
 * multiplication by a reciprocal: with 2^l ≥ d, m = ⌊2^32·(2^l − d)/d⌋ + 1, and t the high half of
 * m·x, the quotient is (t + (x − t)/2) / 2^(l−1) (Granlund and Montgomery, Division by Invariant
 * Integers using Multiplication, PLDI 1994).
 */
ptx_u32 gemm_divide(ptx_kernel *k, ptx_u32 x, uint32_t divisor)
{
    if (divisor == 1)
        return x;
    uint32_t bits = 32 - (uint32_t)__builtin_clz(divisor - 1);
    if (!(divisor & (divisor - 1)))
        return ptx_shr_u32(k, x, U32(bits));
    uint64_t above = ((UINT64_C(1) << bits) - divisor) << 32;
    ptx_u32 high = ptx_mul_hi_u32(k, x, U32((uint32_t)(above / divisor + 1)));
    ptx_u32 half = ptx_shr_u32(k, ptx_sub_u32(k, x, high), U32(1));
    return ptx_shr_u32(k, ptx_add_u32(k, high, half), U32(bits - 1));
}

ptx_u32 gemm_remainder(ptx_kernel *k, ptx_u32 x, uint32_t divisor)
{
    if (!(divisor & (divisor - 1)))
        return ptx_and_b32(k, x, U32(divisor - 1));
    ptx_u32 whole = ptx_mul_lo_u32(k, gemm_divide(k, x, divisor), U32(divisor));
    return ptx_sub_u32(k, x, whole);
}

ptx_u32 gemm_divide_up(ptx_kernel *k, ptx_u32 x, uint32_t divisor)
{
    return gemm_divide(k, ptx_add_u32(k, x, U32(divisor - 1)), divisor);
}
