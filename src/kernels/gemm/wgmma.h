/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix descriptors for operands of wgmma that tensor copies have brought into shared memory: rows
 * in blocks of 128 bytes along K, with the 128-byte swizzle.
 *
 *     [block][row][128 bytes], where the 16-byte chunk c of row r is at position c ^ (r & 7)
 *
 * The layout is K-major, with core matrices of 8 rows 1024 bytes apart (PTX ISA, "Shared Memory
 * Matrix Layout").
 */
#ifndef PTXGEN_KERNELS_GEMM_WGMMA_H
#define PTXGEN_KERNELS_GEMM_WGMMA_H

#include "emit.h"

#include <stdbool.h>

enum { GEMM_WARPGROUP = 128 /* threads */ };

/* The matrix descriptor of the block at a shared address that is a multiple of 1024. */
ptx_u64 gemm_wgmma_descriptor(ptx_kernel *k, ptx_u32 address);
/* The descriptor `bytes` further on: of a step of 32 bytes within the block, or another block. */
ptx_u64 gemm_wgmma_advance(ptx_kernel *k, ptx_u64 descriptor, uint32_t bytes);

/*
 * Registers of a thread in a CTA of `groups` warpgroups that multiply and one that produces, which
 * leaves the others its own; 0 where as many as at launch are right.
 */
struct gemm_registers {
    uint32_t producer, consumer;
};
struct gemm_registers gemm_wgmma_registers(uint32_t groups);

#endif
