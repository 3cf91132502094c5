/* SPDX-License-Identifier: Apache-2.0 */
/**
 * 4-bit weights on the host: the formats that checkpoints use, and one neutral form between them.
 *
 * The weights are a matrix w [N, K] of N output features: w[n,k] = s·(q − z), a code q of 0…15, and
 * the scale s and zero point z of feature n in k's group. Most formats store it transposed, [K,N]:
 * a row is then a k, and a column a feature. A `ptxgen_w4_matrix` holds that plainly. A
 * `ptxgen_w4_checkpoint` holds the same as a file's tensors, in one of these layouts (G = K/group
 * size; a nibble is four bits of an int32, the lowest first):
 *
 *     format               weights (codes)        scales    zeros               more
 *     GPTQ_V1, GPTQ_V2     qweight [K/8,N]        [G,N]     qzeros [G,N/8]      g_idx [K]
 *       nibble i is row 8r+i                                nibble i is column 8c+i; v1
 *                                                           stores z−1 (15 for z = 0), v2 z
 *     AWQ                  qweight [K,N/8]        [G,N]     qzeros [G,N/8]
 *       nibbles are columns 8c + 0 2 4 6 1 3 5 7            the same order
 *     PACK_QUANTIZED       weight_packed [N,K/8]  [N,G]     weight_zero_point   weight_g_idx [K],
 *       (compressed-       nibble i is row 8r+i             [N/8,G], nibble i   weight_shape [2]
 *       tensors)                                            is column 8c+i      = N, K
 *     MARLIN               B [K/16,2N]            [G,N]     [G,N/8], ours
 *       word 4·lane + j of the 128 of a 16×64 block holds   permuted as the
 *       what `lane` feeds to mma.m16n8k16 from the block's  scales, then the
 *       j-th 16×16 tile: its fragments of columns 0–7 and   order 0 2 4 6 1 3 5 7
 *       8–15, in nibble order 0 2 4 6 1 3 5 7
 *
 * [K/8,N] and the like are rounded up for PACK_QUANTIZED, and must be whole elsewhere: GPTQ needs
 * K%8 = 0 and N%8 = 0, AWQ N%8 = 0, Marlin K%16 = 0 and N%64 = 0. Codes and zero points of
 * PACK_QUANTIZED are signed and stored with 8 added, so that the stored nibbles are q and z. Its
 * zero points may also come unpacked, as int8 [N,G], of which each is z − 8; checkpoints that are
 * symmetric carry such zeros.
 * Marlin's scales are permuted for the lanes that use them: in blocks of 64 columns, position
 * 8i+j holds column i+8j; with a single group in blocks of 32, position 8i+2b+c holds 8b+2i+c.
 * The zeros of MARLIN are this library's addition; the original format has none.
 *
 * Absent zeros mean that every zero point is 8. An absent g_idx means that row k belongs to group
 * k / group size, and so does a weight_g_idx that is −1 everywhere, with which compressed-tensors
 * initialises it.
 * Act-order checkpoints have a g_idx in another order; ptxgen_w4_sort_rows and
 * ptxgen_w4_to_marlin bring rows of a group together and say which activation goes with each.
 *
 * Nothing here keeps state or pointers, so every function may run in any thread; all memory belongs
 * to the caller. Tensors of a checkpoint may start at any address. Inputs are checked before
 * anything is written, except for zero points and g_idx: a refusal of one of their values leaves
 * the output unspecified.
 *
 *     ptxgen_w4_checkpoint from = {.format = PTXGEN_W4_GPTQ_V1, .weights = qweight,
 *                                  .scales = scales, .zeros = qzeros};
 *     ptxgen_w4_info info;
 *     if (ptxgen_w4_describe(&from, &info, &err) != PTXGEN_OK)
 *         return report(&err);                  // "qzeros is [32, 511], but K = 4096, N = 4096 …"
 *     ptxgen_w4_checkpoint to;
 *     ptxgen_w4_layout(&info, PTXGEN_W4_MARLIN, &to, &err);        // shapes; data is NULL
 *     to.weights.data = malloc(ptxgen_w4_tensor_bytes(&to.weights));
 *     to.scales.data = malloc(ptxgen_w4_tensor_bytes(&to.scales));
 *     ptxgen_w4_to_marlin(&from, &to, NULL, &(ptxgen_w4_repack_options){.threads = 8}, &err);
 */
#ifndef PTXGEN_MARLIN_FORMATS_H
#define PTXGEN_MARLIN_FORMATS_H

#include <ptxgen/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PTXGEN_W4_SYMMETRIC_ZERO = 8, PTXGEN_W4_PER_CHANNEL = -1 };

/** The weights in the neutral form, stored transposed: [k, n], row-major. */
typedef struct ptxgen_w4_matrix {
    size_t k, n;
    ptrdiff_t group_size; /**< divides k; or PTXGEN_W4_PER_CHANNEL, the same as k */
    uint8_t *codes;       /**< [k, n], each 0…15 */
    ptxgen_element scale_type;
    void *scales;   /**< [k/group_size, n] of scale_type */
    uint8_t *zeros; /**< [k/group_size, n], each 0…15; NULL: 8 everywhere */
    int32_t *g_idx; /**< [k]: each row's group; NULL: row / group_size */
} ptxgen_w4_matrix;

typedef enum ptxgen_w4_format {
    PTXGEN_W4_GPTQ_V1 = 0,
    PTXGEN_W4_GPTQ_V2 = 1,
    PTXGEN_W4_AWQ = 2,
    PTXGEN_W4_PACK_QUANTIZED = 3,
    PTXGEN_W4_MARLIN = 4
} ptxgen_w4_format;

typedef enum ptxgen_w4_dtype {
    PTXGEN_W4_F32 = PTXGEN_F32,
    PTXGEN_W4_F16 = PTXGEN_F16,
    PTXGEN_W4_BF16 = PTXGEN_BF16,
    PTXGEN_W4_I32 = 3,
    PTXGEN_W4_I64 = 4,
    PTXGEN_W4_I8 = 5
} ptxgen_w4_dtype;

/** A tensor as the file has it; absent when data is NULL. A vector's second dimension is 1. */
typedef struct ptxgen_w4_tensor {
    void *data; /**< little-endian; only read where the checkpoint is an input */
    ptxgen_w4_dtype dtype;
    size_t shape[2]; /**< outermost first */
} ptxgen_w4_tensor;

typedef struct ptxgen_w4_checkpoint {
    ptxgen_w4_format format;
    ptrdiff_t group_size;     /**< to be confirmed by the scales; 0: whatever they say */
    ptxgen_w4_tensor weights; /**< int32: qweight, weight_packed or B */
    ptxgen_w4_tensor scales;  /**< f16, bf16 or f32: scales, weight_scale or s */
    ptxgen_w4_tensor zeros;   /**< int32, may be absent: qzeros or weight_zero_point; that may be
                               *   int8 where the checkpoint is an input */
    ptxgen_w4_tensor g_idx;   /**< int32, may be absent: g_idx or weight_g_idx */
    ptxgen_w4_tensor shape;   /**< int32 or int64, may be absent: weight_shape */
} ptxgen_w4_checkpoint;

/** What a checkpoint holds. */
typedef struct ptxgen_w4_info {
    size_t k, n, groups;
    ptrdiff_t group_size; /**< k / groups */
    ptxgen_element scale_type;
    bool symmetric; /**< every zero point is 8 */
    bool act_order; /**< some row is not of group row / group_size */
} ptxgen_w4_info;

/** The format's name in metadata, as "gptq_v2"; NULL for a number that is no format. */
PTXGEN_API const char *ptxgen_w4_format_name(ptxgen_w4_format format);

/**
 * Finds the format that a checkpoint's metadata names, by its "checkpoint_format" (gptq, gptq_v2,
 * awq, marlin) or "format" (pack-quantized). `metadata` may be NULL, which means gptq, since older
 * tools wrote gptq without that key. A name in `choice` overrides the metadata, for files that have
 * none or the wrong one.
 */
PTXGEN_API ptxgen_status ptxgen_w4_detect_format(const char *metadata, const char *choice,
                                                 ptxgen_w4_format *format, ptxgen_error *err);

/** Bytes of a tensor, 0 when they do not fit in a size_t. */
PTXGEN_API size_t ptxgen_w4_tensor_bytes(const ptxgen_w4_tensor *tensor);

/** Checks every tensor against the format's rules, and g_idx and weight_shape by their values. */
PTXGEN_API ptxgen_status ptxgen_w4_describe(const ptxgen_w4_checkpoint *checkpoint,
                                            ptxgen_w4_info *info, ptxgen_error *err);

/**
 * Fills shapes and dtypes of the tensors that `format` needs for such a matrix, with data NULL.
 * There are zeros unless the matrix is symmetric (GPTQ and AWQ always have zeros), and a g_idx for
 * GPTQ or with act-order. A tensor that the matrix does not need has the shape {0, 0}. Refuses a
 * matrix that the format cannot hold.
 */
PTXGEN_API ptxgen_status ptxgen_w4_layout(const ptxgen_w4_info *info, ptxgen_w4_format format,
                                          ptxgen_w4_checkpoint *checkpoint, ptxgen_error *err);

/**
 * Fills the arrays of `matrix`, which the caller allocates by the sizes in `info`; the other
 * members are set here. If zeros is NULL the checkpoint must be symmetric; if g_idx is NULL its
 * rows must be in plain order.
 */
PTXGEN_API ptxgen_status ptxgen_w4_unpack(const ptxgen_w4_checkpoint *checkpoint,
                                          ptxgen_w4_matrix *matrix, ptxgen_error *err);

/** Checks the values of a matrix, and fills `info` as for a checkpoint of that matrix. */
PTXGEN_API ptxgen_status ptxgen_w4_describe_matrix(const ptxgen_w4_matrix *matrix,
                                                   ptxgen_w4_info *info, ptxgen_error *err);

/** Fills a checkpoint's tensors, which have the shapes of ptxgen_w4_layout. */
PTXGEN_API ptxgen_status ptxgen_w4_pack(const ptxgen_w4_matrix *matrix,
                                        const ptxgen_w4_checkpoint *checkpoint, ptxgen_error *err);

/**
 * Sorts rows by group: row i of `sorted` is row order[i] of `matrix`, so that y[m,n] is the sum
 * over i of x[m,order[i]]·sorted[i,n]. Within a group rows keep their order. The function writes
 * codes [k,n] and order [k], and points `sorted` to the scales and zeros of `matrix`. Refuses
 * groups that do not have exactly group_size rows. `sorted` must have an array of codes of its own.
 */
PTXGEN_API ptxgen_status ptxgen_w4_sort_rows(const ptxgen_w4_matrix *matrix,
                                             ptxgen_w4_matrix *sorted, uint32_t *order,
                                             ptxgen_error *err);

typedef struct ptxgen_w4_repack_options {
    unsigned threads; /**< 0 counts as 1: the calling thread alone */
    /** Called after each part that is finished, by one thread at a time; or NULL. */
    void (*progress)(void *user, size_t done_rows, size_t all_rows);
    void *user;
} ptxgen_w4_repack_options;

/**
 * Converts any format to Marlin's without the neutral form. `to` has the shapes of
 * ptxgen_w4_layout. For an act-order checkpoint rows are sorted like in ptxgen_w4_sort_rows, and
 * `order` [k] is needed; otherwise `order` may be NULL, and becomes 0, 1, 2 and so on if it is not.
 * `options` may be NULL.
 *
 * Codes may be converted alone: where `from` has no scales, K and N are those of its weights, and
 * both checkpoints must have neither scales nor zeros. `to` then needs its weights only, int32
 * [K/16, 2N]. A g_idx sorts rows as always, by groups of from->group_size; without one, or with a
 * group size of 0, there is a single group.
 */
PTXGEN_API ptxgen_status ptxgen_w4_to_marlin(const ptxgen_w4_checkpoint *from,
                                             const ptxgen_w4_checkpoint *to, uint32_t *order,
                                             const ptxgen_w4_repack_options *options,
                                             ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
