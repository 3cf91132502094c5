/* SPDX-License-Identifier: Apache-2.0 */
/**
 * GGUF's Q4_K weights on the host: sizes, decoding, quantising.
 *
 * A row of K weights is K/256 super-blocks of 144 bytes, so K must be a multiple of 256: no block
 * spans two rows. Rows of a matrix follow each other without gaps. A super-block is eight
 * sub-blocks of 32 weights:
 *
 *     byte   0  f16 d      \  little-endian
 *     byte   2  f16 dmin   /
 *     byte   4  scale bytes s[12]: a 6-bit scale sc and a 6-bit minimum m for each sub-block j
 *                 j < 4:  sc = s[j] & 63                         m = s[j+4] & 63
 *                 j >= 4: sc = s[j+4] & 15 | s[j-4] >> 6 << 4    m = s[j+4] >> 4 | s[j] >> 6 << 4
 *     byte  16  128 bytes of 4-bit codes q: bytes 32i to 32i+31 hold sub-block 2i in their low
 *               nibbles and sub-block 2i+1 in their high ones
 *
 * A weight is w = d·sc·q − dmin·m. The format is the one that ggml writes as GGML_TYPE_Q4_K.
 *
 * Nothing here allocates, and nothing is shared: every function may run in any thread. Rows may
 * start at any address.
 *
 *     size_t bytes;
 *     if (ptxgen_q4k_row_bytes(k, &bytes, &err) != PTXGEN_OK)
 *         return report(&err);                       // "K = 4544 is not a multiple of 256 …"
 *     for (size_t n = 0; n < rows; n++)
 *         if (ptxgen_q4k_quantise_row(w + n * k, k, packed + n * bytes, &err) != PTXGEN_OK)
 *             return report(&err);
 */
#ifndef PTXGEN_Q4K_H
#define PTXGEN_Q4K_H

#include <ptxgen/status.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PTXGEN_Q4K_BLOCK_WEIGHTS = 256, PTXGEN_Q4K_BLOCK_BYTES = 144 };

/** The largest |w| that ptxgen_q4k_quantise_row takes: 63 times the largest f16. */
#define PTXGEN_Q4K_MAX_WEIGHT 4126752.0f

/** Bytes of a row of `k` weights. Refuses a `k` that is not a multiple of 256. */
PTXGEN_API ptxgen_status ptxgen_q4k_row_bytes(size_t k, size_t *bytes, ptxgen_error *err);

/**
 * Decodes `k` weights. The double is exact: d·sc·q and dmin·m are 21- and 17-bit products on
 * f16's range, and their difference fits in 53 bits. The float is that value rounded once, which
 * is also what ggml's own order of float operations gives: its products are exact, so it rounds
 * only in the final subtraction. An infinite or NaN d or dmin carries into the weights.
 */
PTXGEN_API ptxgen_status ptxgen_q4k_decode_row_f32(const void *row, size_t k, float *weights,
                                                   ptxgen_error *err);
PTXGEN_API ptxgen_status ptxgen_q4k_decode_row_f64(const void *row, size_t k, double *weights,
                                                   ptxgen_error *err);

/**
 * Quantises `k` finite weights into ptxgen_q4k_row_bytes(k) bytes at `row`. The same weights give
 * the same bytes. The error that it makes small is the sum of (w − decoded)² weighed by
 * |w| + rms of the sub-block, so that large weights keep more of their precision.
 *
 * Refused, naming the index: NaN, infinities, and |w| above PTXGEN_Q4K_MAX_WEIGHT, whose minimum
 * f16 could not hold; `row` is then unspecified. At the other end the smallest step is d = 2⁻²⁴:
 * sub-blocks whose weights span less than half of that decode to a constant.
 */
PTXGEN_API ptxgen_status ptxgen_q4k_quantise_row(const float *weights, size_t k, void *row,
                                                 ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
