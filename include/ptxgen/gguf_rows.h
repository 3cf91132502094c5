/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gguf_rows: rows of a matrix in a GGUF type, decoded. It looks up embeddings (ggml's get_rows),
 * and makes a matrix of floats for a product that takes no codes.
 *
 *     y[m,k] = scale · w[ids[m], k]            with ids
 *            = scale · w[first_row + m, k]     without
 *
 *     w       [N, K]  rows of any type of <ptxgen/gguf_types.h>, as files have them: packed without
 *                     gaps. Their start is a multiple of the largest power of two, up to 4, that
 *                     divides the bytes of the type's block: 4 for Q4_1, Q5_1, Q2_K, Q4_K, Q5_K,
 *                     IQ4_XS and F32, 1 for MXFP4, 2 for all others.
 *     ids     [M]     s32
 *     y       [M, K]  f32, f16 or bf16
 *
 * M and N are arguments of the launch: M is below 2³¹, and so is M times the parts of a row, of
 * which there is one for each 1024 bytes of w or fewer (ptxgen_gguf_rows_ctas refuses what is
 * more). K has any value up to 2²⁴ that is a multiple of the type's block.
 *
 * A weight has the bits that ptxgen_gguf_decode_row gives, which are ggml's. It is multiplied by
 * the scale in f32, unless that is 1, and rounded to y's type, each to nearest even. A row that w
 * does not have, of an id below 0 or from N on, is a row of NaNs, and nothing is read for it. Of w
 * no byte outside its N rows is read.
 *
 * Each warp decodes a part of a row: it reads chunks of 16 bytes, wherever the row begins, while it
 * decodes the part before, and writes chunks of 16 bytes where rows of y are multiples of that.
 *
 *     ptxgen_gguf_rows_spec spec = {.k = 4096, .w_type = PTXGEN_GGUF_Q6_K, .y_type = PTXGEN_BF16,
 *                                   .indexed = 1};
 *     ptxgen_gguf_rows_dispatch(dispatcher, &spec, &kernel, &err); // or plan and load
 *     ptxgen_gguf_rows_args args = {.m = m, .n = n, .ids = ids, .w = w, .y = y};
 *     ptxgen_gguf_rows_launch(kernel, &args, stream, &err);
 *     ptxgen_gguf_rows_destroy(kernel);
 *
 * Plans and specs are plain values: zero them, fill them, copy and compare them with memcmp. All
 * functions are pure and may be called from any thread, except for load, dispatch, destroy and
 * launch, for which kernel.h and dispatch.h say what several threads may do at the same time.
 * Errors: a status and a sentence.
 */
#ifndef PTXGEN_GGUF_ROWS_H
#define PTXGEN_GGUF_ROWS_H

#include <ptxgen/dispatch.h>
#include <ptxgen/family.h>
#include <ptxgen/gguf_types.h>
#include <ptxgen/kernel.h>
#include <ptxgen/ptx.h>
#include <ptxgen/target.h>
#include <ptxgen/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** All constants for which code is specialised. A spec is a cache key: zero it, then fill it. */
typedef struct ptxgen_gguf_rows_spec {
    uint32_t k;
    float scale;         /**< a finite factor of each weight; 0 means 1 */
    uint8_t w_type;      /**< ptxgen_gguf_type */
    uint8_t y_type;      /**< ptxgen_element: f32, f16 or bf16 */
    uint8_t indexed;     /**< 1: ids say which rows */
    uint8_t reserved[1]; /**< 0 */
} ptxgen_gguf_rows_spec;

typedef struct ptxgen_gguf_rows_plan {
    ptxgen_gguf_rows_spec spec; /**< with its defaults filled in */
    ptxgen_target target;
    uint32_t part_weights; /**< of a row, which a warp decodes at once: a multiple of 256 */
    uint32_t parts;        /**< of a row */
} ptxgen_gguf_rows_plan;

/**
 * Validates the spec. Refuses with PTXGEN_ERROR_UNSUPPORTED and the rule: a K of 0, above 2²⁴ or
 * that is no multiple of the type's block, a type of w that is not among those of gguf_types.h, and
 * f64; with PTXGEN_ERROR_INVALID_ARGUMENT a scale that is not finite.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_rows_make_plan(const ptxgen_gguf_rows_spec *spec,
                                                    const ptxgen_target *target,
                                                    ptxgen_gguf_rows_plan *plan, ptxgen_error *err);
/** Emits the entry "gguf_rows". */
PTXGEN_API ptxgen_status ptxgen_gguf_rows_emit(const ptxgen_gguf_rows_plan *plan,
                                               ptx_module *module, ptxgen_error *err);
/** CTAs of a launch of m rows. */
PTXGEN_API ptxgen_status ptxgen_gguf_rows_ctas(const ptxgen_gguf_rows_plan *plan, uint64_t m,
                                               uint32_t *ctas, ptxgen_error *err);
/** Writes one sentence for people to read: what a launch of m rows does. */
PTXGEN_API void ptxgen_gguf_rows_explain(const ptxgen_gguf_rows_plan *plan, uint64_t m, char *text,
                                         size_t size);

/* ---- the reference ---- */

/** The arrays of ptxgen_gguf_rows_args in host memory. */
typedef struct ptxgen_gguf_rows_operands {
    uint64_t m, n;
    const int32_t *ids; /**< [m], where the spec is indexed */
    uint64_t first_row; /**< else */
    const void *w;      /**< [n, k], at any address; may be NULL where n is 0 */
} ptxgen_gguf_rows_operands;

/**
 * Writes row `m` of y: [k] of y's type, aligned to it, with the bits that a launch writes, but that
 * any NaN stands for any other. Errors: PTXGEN_ERROR_INVALID_ARGUMENT, those of make_plan but for
 * the target's, PTXGEN_ERROR_OUT_OF_MEMORY.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_rows_reference(const ptxgen_gguf_rows_spec *spec,
                                                    const ptxgen_gguf_rows_operands *operands,
                                                    uint64_t m, void *y, ptxgen_error *err);

/* ---- running it ---- */

/**
 * The arguments of a launch: device addresses, and a stride in elements. Zero it, then fill it.
 * Members that the spec does not use are ignored.
 *
 * ids and y may start at any multiple of their element's size, and w as said above. Rows of y are
 * written faster if they start at multiples of 16 bytes. y must not overlap any other array of the
 * launch (kernel.h, "Arrays").
 */
typedef struct ptxgen_gguf_rows_args {
    uint64_t m;         /**< rows to write: 0 launches nothing */
    uint64_t n;         /**< rows that w has */
    uint64_t ids;       /**< s32 [m], where the spec is indexed */
    uint64_t first_row; /**< of w, otherwise */
    uint64_t w;         /**< [n, k], packed; may be null where n is 0 */
    uint64_t y;         /**< [m, k] of y's type, rows y_stride elements apart (0: k) */
    uint64_t y_stride;
    /**
     * 1 (sm_90 and later): the launch may begin before the kernel ahead of it in the stream has
     * ended (programmatic dependent launch). It then reads nothing until that kernel's results are
     * visible.
     */
    uint32_t overlap_previous;
    /** Bytes of the buffer at each address; 0: unchecked (kernel.h, "Arrays"). */
    uint64_t ids_bytes, w_bytes, y_bytes;
} ptxgen_gguf_rows_args;

/** A plan's loaded entry, in one context. */
typedef struct ptxgen_gguf_rows ptxgen_gguf_rows;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_gguf_rows_family(void);
/** ptxgen_dispatch for this family; release the reference with ptxgen_gguf_rows_destroy. */
PTXGEN_API ptxgen_status ptxgen_gguf_rows_dispatch(ptxgen_dispatcher *dispatcher,
                                                   const ptxgen_gguf_rows_spec *spec,
                                                   ptxgen_gguf_rows **kernel, ptxgen_error *err);
/** Emits the plan and loads it into the current context, without a dispatcher. */
PTXGEN_API ptxgen_status ptxgen_gguf_rows_load(const ptxgen_driver *driver,
                                               const ptxgen_gguf_rows_plan *plan,
                                               const ptxgen_module_options *options,
                                               ptxgen_gguf_rows **kernel, ptxgen_error *err);
/** Unloads a kernel from load; releases a reference from dispatch. NULL does nothing. */
PTXGEN_API void ptxgen_gguf_rows_destroy(ptxgen_gguf_rows *kernel);
/** The driver's attributes of the entry; NULL where m is 0 or cannot be launched. */
PTXGEN_API const ptxgen_kernel_attributes *
ptxgen_gguf_rows_attributes(const ptxgen_gguf_rows *kernel, uint64_t m);
/** Bytes of workspace that this launch needs: always 0. */
PTXGEN_API ptxgen_status ptxgen_gguf_rows_workspace_bytes(const ptxgen_gguf_rows *kernel,
                                                          const ptxgen_gguf_rows_args *args,
                                                          uint64_t *bytes, ptxgen_error *err);
/**
 * Enqueues the kernel on `stream`. A launch does not allocate or synchronise, and may be captured.
 * Errors, before anything runs: PTXGEN_ERROR_INVALID_ARGUMENT, with the name of the argument, for a
 * null or misaligned address, a stride below K, a buffer that is too small or arrays that overlap;
 * PTXGEN_ERROR_UNSUPPORTED for an m that is too large, or an n whose rows no memory holds; and
 * those of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_rows_launch(const ptxgen_gguf_rows *kernel,
                                                 const ptxgen_gguf_rows_args *args,
                                                 ptxgen_cu_stream stream, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
