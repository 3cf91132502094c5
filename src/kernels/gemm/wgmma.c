/* SPDX-License-Identifier: Apache-2.0 */
#include "wgmma.h"

enum { UNIT = 16, ROWS_OF_8 = 1024 };

/*
 * The descriptor without its start address: the leading offset (which a swizzled K-major operand
 * does not use), the stride offset, and the 128-byte swizzle.
 */
static const uint64_t fields =
    UINT64_C(1) << 16 | (uint64_t)(ROWS_OF_8 / UNIT) << 32 | UINT64_C(1) << 62;

ptx_u64 gemm_wgmma_descriptor(ptx_kernel *k, ptx_u32 address)
{
    ptx_u32 start = ptx_bfe_u32(k, address, U32(4), U32(14));
    return ptx_or_b64(k, ptx_cvt_u64_u32(k, start), U64(fields));
}

ptx_u64 gemm_wgmma_advance(ptx_kernel *k, ptx_u64 descriptor, uint32_t bytes)
{
    return bytes ? ptx_add_u64(k, descriptor, U64(bytes / UNIT)) : descriptor;
}

struct gemm_registers gemm_wgmma_registers(uint32_t groups)
{
    static const struct gemm_registers registers[] = {
        {0, 0}, {0, 0}, {40, 232}, {32, 160}, {32, 112}};
    enum { KNOWN = sizeof registers / sizeof *registers };
    return registers[groups < KNOWN ? groups : 0];
}
