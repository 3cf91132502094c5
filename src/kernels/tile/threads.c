/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

struct tile_threads tile_find_threads(ptx_kernel *k)
{
    struct tile_threads at = {.team = 0};
    at.thread = ptx_sreg_tid_x(k);
    at.cta = ptx_sreg_ctaid_x(k);
    ptx_u32 warp = ptx_shr_u32(k, at.thread, U32(5));
    at.warp = ptx_shfl_sync_idx_u32(k, warp, U32(0), U32(31), ALL_LANES); /* uniform to the assembler */
    at.lane = ptx_and_b32(k, at.thread, U32(31));
    at.group = ptx_shr_u32(k, at.lane, U32(2));
    at.quad = ptx_and_b32(k, at.lane, U32(3));
    return at;
}

void tile_sync(ptx_kernel *k, const struct tile_threads *at)
{
    if (at->team)
        ptx_bar_sync_n(k, at->barrier, U32(at->team));
    else
        ptx_bar_sync(k, 0);
}

ptx_u32 tile_divide(ptx_kernel *k, ptx_u32 x, uint32_t divisor)
{
    if (divisor & (divisor - 1))
        return ptx_div_u32(k, x, U32(divisor));
    return divisor == 1 ? x : ptx_shr_u32(k, x, U32((uint32_t)__builtin_ctz(divisor)));
}
