/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry of its own that copies a row-major matrix whose rows start anywhere into a workspace
 * where each row starts at a multiple of 16 bytes, as cp.async and tensor copies of 16 bytes need.
 *
 *     x    │ k elements │ gap │ k elements │ …      rows x_stride elements apart
 *     out  │ k elements │ zeros to 16 bytes │ …     rows gemm_aligned_bytes apart
 */
#ifndef PTXGEN_KERNELS_GEMM_ALIGN_H
#define PTXGEN_KERNELS_GEMM_ALIGN_H

#include <ptxgen/ptx.h>

#include <stdint.h>

/* The parameters of the entry, in order. A launch has a CTA for each row. */
enum gemm_align_param { GEMM_ALIGN_X, GEMM_ALIGN_OUT, GEMM_ALIGN_X_STRIDE, GEMM_ALIGN_PARAMS };
enum { GEMM_ALIGN_THREADS = 256 };

/* Bytes of a copied row: `k` elements of `element` (1, 2 or 4) bytes, padded with zeros. */
static inline uint64_t gemm_aligned_bytes(uint64_t k, uint32_t element)
{
    return (k * element + 15) / 16 * 16;
}
void gemm_emit_align(ptx_module *module, const char *name, uint32_t columns, uint32_t element);

#endif
