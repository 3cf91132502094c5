/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of a row of f16, bf16 or f32 in global memory: read and written as f32 values. */
#ifndef PTXGEN_KERNELS_TILE_CHUNK_H
#define PTXGEN_KERNELS_TILE_CHUNK_H

#include "sums.h"

struct tile_chunk {
    uint32_t width; /* elements: 2, 4 or 8 */
    bool bf16, f32; /* else f16 */
    bool ragged;    /* rows may end within a chunk */
    /* Whether chunks may be accessed whole; where ragged, this one, of which `left` > 0 elements
     * are there. */
    ptx_pred aligned;
    ptx_u32 left;
};

/* The narrowest chunk that leaves each thread one of `sums`, if any does. */
uint32_t tile_chunk_width(uint32_t sums, uint32_t threads);
/*
 * Whether all arrays of 16-bit elements that are used, and their rows, start at multiples of a
 * chunk: `address` has `strides` addresses, then strides in elements, `count` in all.
 */
ptx_pred tile_chunks_are_aligned(ptx_kernel *k, uint32_t width, const ptx_u64 *address,
                                 const bool *used, int strides, int count);
void tile_chunk_load(ptx_kernel *k, const struct tile_chunk *c, ptx_u64 from,
                     ptx_f32 to[TILE_SUMS_WIDTH]);
void tile_chunk_store(ptx_kernel *k, const struct tile_chunk *c, ptx_u64 to,
                      const ptx_f32 values[TILE_SUMS_WIDTH]);
/* … of what is rounded already: words of two elements, or of one of f32. */
void tile_chunk_store_words(ptx_kernel *k, const struct tile_chunk *c, ptx_u64 to,
                            const ptx_u32 words[]);
/* v += the chunk at `from`. */
void tile_chunk_add(ptx_kernel *k, const struct tile_chunk *c, ptx_u64 from,
                    ptx_f32 v[TILE_SUMS_WIDTH]);

#endif
