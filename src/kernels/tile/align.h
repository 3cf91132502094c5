/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a matrix brought to multiples of 16 bytes, for copies of 16 bytes: an entry of its own.
 */
#ifndef PTXGEN_KERNELS_TILE_ALIGN_H
#define PTXGEN_KERNELS_TILE_ALIGN_H

#include <ptxgen/ptx.h>

#include <stdint.h>

/* out[r, k] = x[r, k], dense rows of tile_aligned_bytes. A CTA a row. */
enum tile_align_param { TILE_ALIGN_X, TILE_ALIGN_OUT, TILE_ALIGN_X_STRIDE, TILE_ALIGN_PARAMS };
enum { TILE_ALIGN_THREADS = 256 };

/* Of a row of `k` elements, of 1, 2 or 4 bytes each, padded with zeros. */
static inline uint64_t tile_aligned_bytes(uint64_t k, uint32_t element)
{
    return (k * element + 15) / 16 * 16;
}
void tile_emit_align(ptx_module *module, const char *name, uint32_t columns, uint32_t element);

#endif
