/* SPDX-License-Identifier: Apache-2.0 */
/**
 * 2:4 structured sparsity on the host: pruning, compressing, and the forms of its metadata.
 *
 * A weight w [N, K], row-major, is 2:4 sparse when each group of four neighbours in a row has at
 * most two non-zeros. It is then kept as
 *
 *     values    [N, K/2]: two elements of each group
 *     metadata  which two: two different positions, first and second, in 0 … 3, for each of the K/4
 *               groups of a row
 *
 * The first value has the first position, whichever is the larger; compressing writes them in the
 * order of columns. K must be a multiple of 8. Metadata comes in four forms that say the same, but
 * that a bitmask has the order of columns only; the values are alike in all of them. With group g
 * covering columns 4g … 4g+3, and the nibble first | second << 2:
 *
 *     BYTES    [N, K/4] bytes, one a group: the nibble, bits 4–7 zero. As u16 [N, K/8], the lower
 *              byte is the even group.
 *     NIBBLES  [N, K/8] bytes: group 2i in bits 0–3 of byte i, group 2i+1 in bits 4–7. Four bytes
 *              are one metadata register's half (16-bit types) or whole (s8) for one row.
 *     BITMASK  [N, K/8] bytes: column 8i+j is bit j of byte i (least significant first), 1 where
 *              an element is kept. Every group has exactly two ones.
 *     CUTLASS  what PyTorch's SparseSemiStructuredTensorCUTLASS keeps, int16 [N, K/16] for f16 and
 *              bf16, int32 [N, K/32] for s8: whole warps' metadata registers of mma.sp, in the
 *              order of lanes. A tile of 32 rows × 32 columns (16-bit types; m16n8k32, two
 *              selectors) or 16 rows × 64 columns (s8; m16n8k64) is 32 words of 32 bits; tiles
 *              follow each other down the rows, then across. In a tile, with r the row,
 *                16-bit: lane 4·(r mod 8) + 2·(r div 16) + c, half r div 8 mod 2 (low, high),
 *                        holds columns 16c … 16c+15, four nibbles, c in 0 … 1
 *                s8:     lane 4·(r mod 8) + 2·c + r div 8 holds columns 32c … 32c+31, c in 0 … 1
 *              N must be a multiple of the tile's rows and K of its columns. There is none for f32.
 *
 * Multi-byte metadata and 16- and 32-bit elements are in the host's order, little-endian.
 *
 * Arrays may start at any address. Each array comes with its size in bytes, which must be exactly
 * the size that shape and form give, so that a tensor of another shape is refused before anything
 * is read. An output must not overlap an input unless a function says so. After a failure the
 * contents of outputs are unspecified. Nothing here allocates or keeps state, so any thread may
 * call it.
 *
 *     ptxgen_sparse24_shape w = {PTXGEN_SPARSE24_F16, n, k};
 *     ptxgen_sparse24_prune(&w, (ptxgen_const_span){dense, bytes}, (ptxgen_span){dense, bytes},
 *                           &err);
 *     if (ptxgen_sparse24_compress(&w, (ptxgen_const_span){dense, bytes},
 *                                  (ptxgen_span){values, bytes / 2}, PTXGEN_SPARSE24_BYTES,
 *                                  (ptxgen_span){meta, n * k / 4}, &err))
 *         return report(&err); // "row 3, group 7 (columns 28 to 31) has 3 non-zeros; …"
 */
#ifndef PTXGEN_SPARSE24_FORMATS_H
#define PTXGEN_SPARSE24_FORMATS_H

#include <ptxgen/status.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Element types of a 2:4 weight; the first three have the values of `ptxgen_element`. */
typedef enum ptxgen_sparse24_type {
    PTXGEN_SPARSE24_F32 = 0,
    PTXGEN_SPARSE24_F16 = 1,
    PTXGEN_SPARSE24_BF16 = 2,
    PTXGEN_SPARSE24_S8 = 3
} ptxgen_sparse24_type;

/** Forms of metadata; see the head of this file. */
typedef enum ptxgen_sparse24_form {
    PTXGEN_SPARSE24_BYTES = 0,
    PTXGEN_SPARSE24_NIBBLES = 1,
    PTXGEN_SPARSE24_BITMASK = 2,
    PTXGEN_SPARSE24_CUTLASS = 3
} ptxgen_sparse24_form;

/** A weight of `n` output features, which are rows of `k` elements; `n` and `k` may be 0. */
typedef struct ptxgen_sparse24_shape {
    ptxgen_sparse24_type type;
    size_t n, k;
} ptxgen_sparse24_shape;

/** The caller's memory; `data` may be NULL where `bytes` is 0. */
typedef struct ptxgen_const_span {
    const void *data;
    size_t bytes;
} ptxgen_const_span;
typedef struct ptxgen_span {
    void *data;
    size_t bytes;
} ptxgen_span;

/** Bytes of the dense weight; its values take half. Refuses a shape that no function here takes. */
PTXGEN_API ptxgen_status ptxgen_sparse24_dense_bytes(const ptxgen_sparse24_shape *shape,
                                                     size_t *bytes, ptxgen_error *err);
/** Bytes of the metadata in a form. Refuses a shape that has none of that form. */
PTXGEN_API ptxgen_status ptxgen_sparse24_metadata_bytes(const ptxgen_sparse24_shape *shape,
                                                        ptxgen_sparse24_form form, size_t *bytes,
                                                        ptxgen_error *err);

/**
 * Keeps the two elements of each group that are largest in magnitude, bit for bit, and sets the
 * others to +0. Of two elements with equal magnitudes the one with the lower column is kept. A NaN
 * counts as larger than infinity, and all NaNs as equal, so of three or four NaNs in a group the
 * first two are kept. |−128| is 128. `pruned` may be `dense` itself.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_prune(const ptxgen_sparse24_shape *shape,
                                               ptxgen_const_span dense, ptxgen_span pruned,
                                               ptxgen_error *err);

/**
 * Writes the values and metadata of a weight that is 2:4 sparse. A group with three or four
 * non-zeros is refused, by row and group. +0 and −0 count as zero, NaN does not. Elements are
 * copied bit for bit. A group of fewer than two non-zeros keeps zeros as PyTorch does, depending on
 * the column of its non-zero:
 *
 *     column 0: positions 0, 2     column 1: 1, 2     column 2 or 3, or nowhere: 2, 3
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_compress(const ptxgen_sparse24_shape *shape,
                                                  ptxgen_const_span dense, ptxgen_span values,
                                                  ptxgen_sparse24_form form, ptxgen_span metadata,
                                                  ptxgen_error *err);

/** Writes the dense weight, with +0 where no element is kept. Refuses invalid metadata. */
PTXGEN_API ptxgen_status ptxgen_sparse24_decompress(const ptxgen_sparse24_shape *shape,
                                                    ptxgen_const_span values,
                                                    ptxgen_sparse24_form form,
                                                    ptxgen_const_span metadata, ptxgen_span dense,
                                                    ptxgen_error *err);

/**
 * Checks that values and metadata belong to a weight of this shape: their sizes, and that each
 * group has two distinct positions. The sentence of a refusal names row, group, value and
 * rule.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_validate(const ptxgen_sparse24_shape *shape,
                                                  ptxgen_const_span values,
                                                  ptxgen_sparse24_form form,
                                                  ptxgen_const_span metadata, ptxgen_error *err);

/**
 * Converts metadata from one form to another, and refuses invalid metadata. Values stay the same, so
 * a group whose first position is the larger is refused where the other form is a bitmask.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_convert(const ptxgen_sparse24_shape *shape,
                                                 ptxgen_sparse24_form from,
                                                 ptxgen_const_span source, ptxgen_sparse24_form to,
                                                 ptxgen_span target, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
