/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a GGUF type from bytes in shared memory: the device's part of gguf/unpack.c. */
#ifndef PTXGEN_GGUF_ROWS_DECODE_H
#define PTXGEN_GGUF_ROWS_DECODE_H

#include "layout.h"

#include "../gemm/emit.h"

struct gguf_decoder {
    ptx_kernel *k;
    const ptxgen_gguf_type_info *type;
    uint32_t align; /* of blocks in shared memory: 4, 2 or 1 */
};

/*
 * Eight neighbouring weights, whose first is weight 8·chunk of the block at `block` in shared
 * memory. Up to four bytes before and behind those of the block are read, too, and must be there.
 */
void gguf_decode_chunk(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk,
                       ptx_f32 weights[GGUF_ROWS_CHUNK]);

#endif
