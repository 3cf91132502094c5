/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

ptx_f32 emit_load(ptx_kernel *k, uint8_t type, ptx_u64 at, int offset)
{
    if (type == PTXGEN_F16)
        return ptx_cvt_f32_f16(k, ptx_ld_global_f16(k, at, offset));
    if (type == PTXGEN_BF16)
        return ptx_cvt_f32_bf16(k, ptx_ld_global_bf16(k, at, offset));
    return ptx_ld_global_f32(k, at, offset);
}

void emit_widen_pair(ptx_kernel *k, uint8_t type, ptx_u32 word, ptx_f32 to[2])
{
    if (type == PTXGEN_BF16) { /* the upper halves of two f32 */
        to[0] = ptx_u32_as_f32(ptx_shl_b32(k, word, U32(16)));
        to[1] = ptx_u32_as_f32(ptx_and_b32(k, word, U32(0xFFFF0000)));
        return;
    }
    ptx_f16 halves[2];
    ptx_unpack_f16x2(k, halves, ptx_u32_as_f16x2(word));
    for (int i = 0; i < 2; i++)
        to[i] = ptx_cvt_f32_f16(k, halves[i]);
}

ptx_u32 emit_narrow_pair(ptx_kernel *k, uint8_t type, ptx_f32 low, ptx_f32 high)
{
    return type == PTXGEN_BF16 ? ptx_bf16x2_as_u32(ptx_cvt_bf16x2_f32(k, high, low))
                               : ptx_f16x2_as_u32(ptx_cvt_f16x2_f32(k, high, low));
}

ptx_f32 emit_round(ptx_kernel *k, uint8_t type, ptx_f32 value)
{
    if (type == PTXGEN_F16)
        return ptx_cvt_f32_f16(k, ptx_cvt_f16_f32(k, value));
    if (type == PTXGEN_BF16)
        return ptx_cvt_f32_bf16(k, ptx_cvt_bf16_f32(k, value));
    return value;
}

void emit_store(ptx_kernel *k, uint8_t type, ptx_u64 at, int offset, ptx_f32 value)
{
    if (type == PTXGEN_F16)
        ptx_st_global_f16(k, at, offset, ptx_cvt_f16_f32(k, value));
    else if (type == PTXGEN_BF16)
        ptx_st_global_bf16(k, at, offset, ptx_cvt_bf16_f32(k, value));
    else
        ptx_st_global_f32(k, at, offset, value);
}

void emit_store_pair(ptx_kernel *k, uint8_t type, ptx_u64 at, const ptx_f32 pair[2])
{
    if (type == PTXGEN_F32)
        ptx_st_global_v2_f32(k, at, 0, pair);
    else
        ptx_st_global_u32(k, at, 0, emit_narrow_pair(k, type, pair[0], pair[1]));
}

void emit_store_shared(ptx_kernel *k, uint8_t type, ptx_u32 at, int offset, ptx_f32 value)
{
    if (type == PTXGEN_F16)
        ptx_st_shared_f16(k, at, offset, ptx_cvt_f16_f32(k, value));
    else if (type == PTXGEN_BF16)
        ptx_st_shared_bf16(k, at, offset, ptx_cvt_bf16_f32(k, value));
    else
        ptx_st_shared_f32(k, at, offset, value);
}

void emit_angle(ptx_kernel *k, ptx_u64 position, ptx_u64 at, int offset, ptx_f32 *cosine,
                ptx_f32 *sine)
{
    const float unit = (float)(6.283185307179586 / 4294967296.0);
    ptx_u32 halves[2];
    ptx_unpack_u64(k, halves, ptx_mul_lo_u64(k, position, ptx_ld_global_u64(k, at, offset)));
    ptx_f32 turn = ptx_cvt_f32_s32(k, ptx_u32_as_s32(halves[1]));
    ptx_f32 angle = ptx_mul_f32(k, turn, F32(unit));
    *cosine = ptx_cos_approx_f32(k, angle);
    *sine = ptx_sin_approx_f32(k, angle);
}

ptx_f32 emit_norm_factor(ptx_kernel *k, ptx_f32 squares, uint32_t count, float epsilon)
{
    ptx_f32 mean = ptx_mul_f32(k, squares, F32(1.0f / (float)count));
    ptx_f32 root = ptx_sqrt_f32(k, ptx_add_f32(k, mean, F32(epsilon)));
    return ptx_rcp_f32(k, root);
}

ptx_f32 emit_sum_lanes(ptx_kernel *k, ptx_f32 value, uint32_t lanes)
{
    for (uint32_t mask = 1; mask < lanes; mask *= 2) {
        ptx_f32 other = ptx_shfl_sync_bfly_f32(k, value, U32(mask), U32(31), ALL_LANES);
        value = ptx_add_f32(k, value, other);
    }
    return value;
}

static bool overlaps(ptx_kernel *k)
{
    return ptx_module_target(ptx_kernel_module(k))->sm >= 90;
}

void emit_let_next_begin(ptx_kernel *k)
{
    if (overlaps(k))
        ptx_griddepcontrol_launch_dependents(k);
}

void emit_wait_for_previous(ptx_kernel *k)
{
    if (overlaps(k))
        ptx_griddepcontrol_wait(k);
}

ptxgen_launch_shape launch_shape(const ptxgen_target *target, uint32_t threads, uint64_t x,
                                 uint64_t y, uint64_t z)
{
    return (ptxgen_launch_shape){
        .grid = {x, y, z}, .block = {threads, 1, 1}, .programmatic = target->ptx.sm >= 90};
}
