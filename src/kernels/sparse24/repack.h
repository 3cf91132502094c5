/* SPDX-License-Identifier: Apache-2.0 */
/* Tier 2: a weight that comes as values and metadata, and is packed on the device. */
#ifndef PTXGEN_KERNELS_SPARSE24_REPACK_H
#define PTXGEN_KERNELS_SPARSE24_REPACK_H

#include "layout.h"

/* The parameters of the entry "sparse24_repack". A launch has a CTA for each block. */
enum sparse24_repack_param {
    SPARSE24_REPACK_VALUES,
    SPARSE24_REPACK_METADATA,
    SPARSE24_REPACK_PACKED,
    SPARSE24_REPACK_REFUSED,
    SPARSE24_REPACK_PARAMS
};
/* A warp for each piece of a block. */
static inline uint32_t sparse24_repack_threads(const ptxgen_sparse24_spec *s)
{
    return sparse24_block_bytes(s) / GEMM_CHUNK_BYTES;
}
/*
 * A byte of metadata that is refused is reported as a number of 64 bits: the low 8 have the byte,
 * the others are all ones less the index of its group in the weight. atomicMax keeps the largest
 * number, which is that of the first group.
 */
enum { SPARSE24_REFUSED_BYTE = 8 /* bits */ };
#define SPARSE24_REFUSED_INDEX (UINT64_MAX >> SPARSE24_REFUSED_BYTE)

void sparse24_emit_repack(const ptxgen_sparse24_plan *plan, ptx_module *module);

#endif
