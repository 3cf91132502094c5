/* SPDX-License-Identifier: Apache-2.0 */
/* Tier 1: a weight that is packed in its compressed form, and inflated before a dense product. */
#ifndef PTXGEN_KERNELS_SPARSE24_INFLATE_H
#define PTXGEN_KERNELS_SPARSE24_INFLATE_H

#include "layout.h"

/* The parameters of the entry "sparse24_inflate", and its threads and chunks of 16 dense bytes. */
enum sparse24_inflate_param {
    SPARSE24_INFLATE_VALUES,
    SPARSE24_INFLATE_METADATA,
    SPARSE24_INFLATE_DENSE,
    SPARSE24_INFLATE_PARAMS
};
enum { SPARSE24_INFLATE_THREADS = 256, SPARSE24_INFLATE_CHUNKS = 4 /* of a thread */ };

static inline uint64_t sparse24_dense_weight_bytes(const ptxgen_sparse24_spec *s)
{
    return 2 * sparse24_values_bytes(s);
}
static inline uint64_t sparse24_inflate_chunks(const ptxgen_sparse24_spec *s)
{
    return sparse24_dense_weight_bytes(s) / 16;
}
/* Offset of the metadata, which follows the values at a multiple of 16 bytes. */
static inline uint64_t sparse24_metadata_offset(const ptxgen_sparse24_spec *s)
{
    return (sparse24_values_bytes(s) + 15) / 16 * 16;
}

void sparse24_emit_inflate(const ptxgen_sparse24_plan *plan, ptx_module *module);

#endif
