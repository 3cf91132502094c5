/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma's operand B in shared memory, as tensor copies bring it: rows of an operand, in blocks of
 * 128 bytes along K under the 128-byte swizzle,
 *
 *     [block][row][128 bytes], the 16-byte chunk c of row r standing at c ^ (r & 7)
 *
 * K-major, core matrices of 8 rows 1024 bytes apart (PTX ISA, "Shared Memory Matrix Layout").
 */
#ifndef PTXGEN_KERNELS_TILE_WGMMA_H
#define PTXGEN_KERNELS_TILE_WGMMA_H

#include "emit.h"

#include <stdbool.h>

enum { TILE_WARPGROUP = 128 /* threads */ };

/* The matrix descriptor of the block at a shared address, a multiple of 1024. */
ptx_u64 tile_wgmma_descriptor(ptx_kernel *k, ptx_u32 address);
/* … and of what lies `bytes` further on: a step of 32 bytes within the block, or another block. */
ptx_u64 tile_wgmma_advance(ptx_kernel *k, ptx_u64 descriptor, uint32_t bytes);

/*
 * Registers of a thread of a CTA of `groups` warpgroups that multiply and one that sends for them:
 * those take what these leave. Executed by all of a warpgroup.
 */
void tile_wgmma_divide_registers(ptx_kernel *k, uint32_t groups, bool multiplies);

#endif
