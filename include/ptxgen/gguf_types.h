/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The types in which GGUF files hold weights, on the host: sizes, decoding, quantising.
 *
 * A row of K weights is whole blocks, so K is a multiple of the type's block, and no block spans
 * two rows. Rows of a matrix follow each other without gaps, and may start at any address. The
 * layouts are those of ggml, the tensor library of llama.cpp, whose numbers for the types are the
 * enumerators. All numbers are little-endian; j counts the weights of a block of 32, k those of a
 * block of 256, and nib is the low nibble of qs[j] for j < 16, else the high one of qs[j − 16]:
 *
 *     type    weights / bytes   fields: offset                            weight
 *     Q4_0     32 / 18    f16 d: 0, qs[16]: 2                             d·(nib − 8)
 *     Q4_1     32 / 20    d: 0, f16 m: 2, qs[16]: 4                       d·nib + m
 *     Q5_0     32 / 22    d: 0, u32 qh: 2, qs[16]: 6                      d·(nib + 16·h − 16)
 *     Q5_1     32 / 24    d: 0, m: 2, qh: 4, qs[16]: 8                    d·(nib + 16·h) + m
 *                           h: bit j of qh
 *     Q8_0     32 / 34    d: 0, s8 q[32]: 2                               d·q
 *     MXFP4    32 / 17    u8 e: 0, qs[16]: 1                              2^(e − 128)·E[nib]
 *                           E = 0 1 2 3 4 6 8 12, then 0 and the negatives
 *     IQ4_NL   32 / 18    d: 0, qs[16]: 2                                 d·T[nib]
 *                           T = −127 −104 −83 −65 −49 −35 −22 −10 1 13 25 38 53 69 89 113
 *     IQ4_XS  256 / 136   d: 0, u16 sh: 2, sl[4]: 4, qs[128]: 8           d·(s − 32)·T[q]
 *                           s: of k/32, nibble of sl and two bits of sh above; q: 16 bytes for each
 *                           32 weights, as nib
 *     Q2_K    256 / 84    s[16]: 0, qs[64]: 16, d: 80, f16 dmin: 82       d·sc·q − dmin·m
 *                           sc, m: low and high nibble of s[k/16]; q: two bits of byte
 *                           32·(k/128) + k%32, from bit 2·(k/32 % 4) on
 *     Q3_K    256 / 110   hm[32]: 0, qs[64]: 32, s[12]: 96, d: 108        d·(sc − 32)·(q − 4·h)
 *                           q as Q2_K; h: 1 where bit k/32 of hm[k%32] is 0; sc of i = k/16: nibble
 *                           i/8 of s[i%8], above it two of s[8 + i%4] from 2·(i/4) on
 *     Q4_K    256 / 144   d: 0, dmin: 2, s[12]: 4, qs[128]: 16            d·sc·q − dmin·m
 *                           sc, m of j = k/32, six bits each:
 *                           j < 4:  sc = s[j] & 63                       m = s[j+4] & 63
 *                           j ≥ 4:  sc = s[j+4] & 15 | s[j−4] >> 6 << 4  m = s[j+4] >> 4 |
 *                                                                          s[j] >> 6 << 4
 *                           q: nibble of byte 32·(k/64) + k%32, the high one where k/32 is odd
 *     Q5_K    256 / 176   d: 0, dmin: 2, s[12]: 4, qh[32]: 16, qs[128]: 48
 *                           as Q4_K with q + 16·(bit k/32 of qh[k%32])
 *     Q6_K    256 / 210   ql[128]: 0, qh[64]: 128, s8 sc[16]: 192, d: 208 d·sc[k/16]·(q − 32)
 *                           q: nibble of ql byte 64·(k/128) + k%64, the high one where k%128 ≥ 64,
 *                           and above it two bits of qh, as q of Q2_K
 *     F32, F16, BF16: one weight each
 *
 * Nothing here allocates, and nothing is shared: every function may run in any thread. Arrays must
 * not overlap.
 *
 *     size_t bytes;
 *     if (ptxgen_gguf_row_bytes(PTXGEN_GGUF_Q6_K, k, &bytes, &err) != PTXGEN_OK)
 *         return report(&err);                       // "K = 4544 is not a multiple of 256 …"
 *     for (size_t n = 0; n < rows; n++)
 *         if (ptxgen_gguf_quantise_row(PTXGEN_GGUF_Q6_K, w + n * k, k, packed + n * bytes, bytes,
 *                                      &err) != PTXGEN_OK)
 *             return report(&err);
 */
#ifndef PTXGEN_GGUF_TYPES_H
#define PTXGEN_GGUF_TYPES_H

#include <ptxgen/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ptxgen_gguf_type {
    PTXGEN_GGUF_F32 = 0,
    PTXGEN_GGUF_F16 = 1,
    PTXGEN_GGUF_Q4_0 = 2,
    PTXGEN_GGUF_Q4_1 = 3,
    PTXGEN_GGUF_Q5_0 = 6,
    PTXGEN_GGUF_Q5_1 = 7,
    PTXGEN_GGUF_Q8_0 = 8,
    PTXGEN_GGUF_Q2_K = 10,
    PTXGEN_GGUF_Q3_K = 11,
    PTXGEN_GGUF_Q4_K = 12,
    PTXGEN_GGUF_Q5_K = 13,
    PTXGEN_GGUF_Q6_K = 14,
    PTXGEN_GGUF_IQ4_NL = 20,
    PTXGEN_GGUF_IQ4_XS = 23,
    PTXGEN_GGUF_BF16 = 30,
    PTXGEN_GGUF_MXFP4 = 39
} ptxgen_gguf_type;

typedef struct ptxgen_gguf_type_info {
    const char *name;       /**< as GGUF's tools write it: "Q4_K" */
    uint32_t type;          /**< ptxgen_gguf_type: ggml's number */
    uint32_t block_weights; /**< neighbours along a row that share a block: 1, 32 or 256 */
    uint32_t block_bytes;
    bool quantises; /**< ptxgen_gguf_quantise_row takes the type */
} ptxgen_gguf_type_info;

/**
 * The facts of a type, by ggml's number as files have it; NULL for a type that is not among the
 * above. They live as long as the program.
 */
PTXGEN_API const ptxgen_gguf_type_info *ptxgen_gguf_type_find(uint32_t type);
/** All types, by rising number: type `index`, or NULL past the last. */
PTXGEN_API const ptxgen_gguf_type_info *ptxgen_gguf_type_at(size_t index);

/**
 * Bytes of a row of `k` weights. Refuses, with PTXGEN_ERROR_UNSUPPORTED, a type that is not among
 * the above, and a `k` that is no multiple of its block or has more bytes than memory.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_row_bytes(uint32_t type, size_t k, size_t *bytes,
                                               ptxgen_error *err);

/**
 * Decodes `k` weights from the `bytes` at `row`, of which no more are read than a row has; fewer
 * are refused. Each weight is rounded once, where it has a minimum, or else exact, and has the bits
 * that ggml's dequantize_row_* gives. An infinite or NaN scale carries into the weights.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_decode_row(uint32_t type, const void *row, size_t bytes,
                                                size_t k, float *weights, ptxgen_error *err);

/**
 * Quantises `k` weights into a row, for which there are `bytes` at `row`; nothing behind the row is
 * written. Types: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K and MXFP4; others
 * are refused. The row has the bits that ggml's quantize_row_*_ref gives without fused
 * multiply-add, except in blocks whose weights are all below 2⁻¹¹⁰ (1e-33): there ggml converts to
 * integers what they cannot hold.
 *
 * Refused, naming the index: NaN, infinities, and |w| above 65504, the largest f16, so that scales
 * and minima are finite; BF16 and F32 take up to their own largest number. `row` is then
 * unspecified.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_quantise_row(uint32_t type, const float *weights, size_t k,
                                                  void *row, size_t bytes, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
