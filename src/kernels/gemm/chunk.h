/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of a row of f16, bf16 or f32 in global memory, read and written as f32 values. A chunk is
 * what a thread handles at once: by vector accesses where it is aligned and all of it is in the
 * row, else element by element.
 */
#ifndef PTXGEN_KERNELS_GEMM_CHUNK_H
#define PTXGEN_KERNELS_GEMM_CHUNK_H

#include "sums.h"

struct gemm_chunk {
    uint32_t width;   /* elements: 2, 4 or 8 */
    bool bf16, f32;   /* else f16 */
    bool ragged;      /* rows may end within a chunk */
    bool apart;       /* loads are element by element, without a branch that would wait for them */
    ptx_pred aligned; /* the chunk may be accessed by vectors */
    ptx_u32 left;     /* where ragged: elements from the chunk's first to the row's end, above 0 */
};

/*
 * The narrowest chunk with which `threads` threads cover `sums` sums in one pass; the widest chunk
 * where none does.
 */
uint32_t gemm_chunk_width(uint32_t sums, uint32_t threads);
void gemm_chunk_load(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 from,
                     ptx_f32 to[GEMM_SUMS_WIDTH]);
void gemm_chunk_store(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 to,
                      const ptx_f32 values[GEMM_SUMS_WIDTH]);
/* Rounds values to elements: a word holds two 16-bit elements, or one f32. */
void gemm_chunk_round(ptx_kernel *k, const struct gemm_chunk *c, const ptx_f32 values[],
                      ptx_u32 words[]);
/* Stores elements that have been rounded. */
void gemm_chunk_store_words(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 to,
                            const ptx_u32 words[]);
/* The same where all of the chunk is in the row and aligned. */
void gemm_chunk_store_vectors(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 to, int offset,
                              const ptx_u32 words[]);
/* Adds the chunk at `from` to v, element by element. */
void gemm_chunk_add(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 from,
                    ptx_f32 v[GEMM_SUMS_WIDTH]);

#endif
