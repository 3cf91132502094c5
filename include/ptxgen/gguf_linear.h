/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gguf_linear: products with weights in any GGUF type, for any number of tokens, with what usually
 * stands before and after them: a residual, RMSNorm, biases, a gate.
 *
 *     g[m,k] = x[m,k]                                             residual none
 *            = x[m,k] + residual[m,k]                             before the norm
 *            = residual[m,k] + RMSNorm(x)[m,k]·post_gamma[k]      after a norm of its own
 *     h[m,k] = g[m,k]                                             norm none
 *            = g[m,k]·gamma[k] / sqrt(mean_k(g[m,k]²) + ε)        norm RMSNorm
 *     y_i[m,n] = Σ_k w_i[n,k]·h[m,k] (+ bias_i[n])                i = 0, 1, 2
 *
 *     x, residual  [M, K]    activations of M tokens; g is rounded to their type where there is a
 *                            residual, and may be written to residual_out [M, K]
 *     w_i          [N_i, K]  weights in rows of a GGUF type (gguf_types.h), each matrix in its own
 *     y_i          [M, N_i]  outputs; bias_i [N_i]
 *
 * Up to three matrices share x (Q, K and V). A pair of them may be gate and up of equal N, with one
 * output: y_0 = silu(gate)·up with PTXGEN_EPILOGUE_SWIGLU, gelu_tanh(gate)·up with
 * PTXGEN_EPILOGUE_GEGLU, also where their types differ.
 *
 * Weights are read as files have them: rows of whole blocks without gaps. Where all matrices are
 * quantised and their rows multiples of 16 bytes, as a K that is a multiple of 2048 makes them,
 * each matrix starts at a multiple of 16; otherwise at any multiple of its type's own alignment,
 * which is 16 for Q4_K and Q5_K, 8 for Q5_1 and IQ4_XS, 4 for Q4_1, Q2_K and F32, 1 for MXFP4, and
 * else 2. Any N; K is a multiple of each type's block, 32 or 256, and of 8 for F32, F16 and BF16.
 * No byte before or past a matrix is read.
 *
 * A launch of up to 8 tokens enqueues two kernels for its quantised matrices: one makes h and
 * writes it to the workspace as fixed point, and the other multiplies, having begun to read weights
 * before the first has ended (sm_90 and later). Where it is faster, a launch of one token is one
 * kernel, each CTA of which makes h for itself; its workspace may be of no bytes.
 *
 * There h is rounded to fixed point with one power of two for each 256 values of a token: integers
 * of 16 bits where x is f16 or bf16, which lose at most 2⁻¹⁴·⁹ of the largest of the 256, and of 24
 * bits where x is f32, which lose at most 2⁻²²·⁹. Products of these integers with the codes and the
 * integer scales of a block are exact; blocks add up in f32. The bound is that of
 * ptxgen_gguf_linear_reference. The result depends on the spec, the target and the inputs only: the
 * same bits in every launch. A token with a NaN or infinity in h gives NaN in its own row of y
 * only.
 *
 * Matrices in F32, F16 and BF16 are multiplied by a kernel of their own, which reads each weight
 * once. It rounds neither the weights nor h, which is x itself where the spec has no norm and no
 * residual; else another kernel writes h to the workspace as f32. Products and sums are f32. A NaN
 * in h gives NaN in its own row of y only; about an infinity no statement is made.
 *
 * The range, for finite operands:
 * - Squares of g that overflow f32 are summed scaled by 2⁻¹⁶⁰. A row of zeros with ε = 0 gives NaN.
 * - Where sums of |w·h| exceed f32's largest number, or a block's scale is above 2¹⁰⁰ (MXFP4), y is
 *   right or not a finite number.
 * - The fixed point's power of two is at least 2⁻¹²⁵.
 *
 * From 9 to 32 tokens are multiplied in the same way, eight after eight, where no kernel below that
 * decodes in registers serves them.
 *
 * More than 32 tokens, or fewer where all matrices are floats, namely more than 8, or more than 2
 * of a single matrix in F16 or BF16 that is of the compute type, are multiplied as the family
 * `dense` multiplies: h is written to the workspace in the type `compute` (x is read as it is where
 * it is h in that type, in rows that are multiples of 16 bytes), the weights are decoded to that
 * type into the workspace, up to 2 MB for each multiprocessor, or 256 rows, at a time, and these
 * rows are multiplied. So h and the weights are rounded once, and then their products are exact in
 * f16 and bf16, and in f32 off by 2⁻²¹ at most; sums, biases and gates are f32. f32 is much slower
 * than f16 and bf16, as each product is three. A single matrix in floats of the compute type is
 * read where it is, if it starts at a multiple of 16 bytes; weights in F32, or in the other one of
 * F16 and BF16, are rounded as decoded ones are. No statement is made for a token with an infinity,
 * or where the compute type does not hold h or a weight (f16: from 65520 on). A plan whose max_m is
 * less has no entries for these launches, and is assembled sooner.
 *
 * On sm_90a, with `compute` f16 or bf16, matrices that are all of one type, not floats, K a
 * multiple of 256 and rows of a multiple of 16 bytes (IQ4_XS and MXFP4: K a multiple of 512, Q2_K
 * 1024, Q3_K and Q6_K 2048), more than 8 tokens are instead multiplied by one kernel that decodes
 * the weights in registers, and the workspace has h and sums of divided tiles alone. The launch
 * enqueues a kernel that makes h, and that one. In bf16, weights are rounded as those above. In f16
 * the scale s and the minimum m of a group of weights are rounded to f16 first, and then s·q − m
 * once: a weight is off by at most 2⁻¹¹·(|s·q| + |m| + |w|), and 2⁻²⁵·(|q| + 2) where these are
 * subnormal. Types whose scale is an f16 of the file and which have no minimum, or one in f16, have
 * their weights rounded once, and so has MXFP4, whatever the scale. Another type's scale or minimum
 * beyond 65504 is taken as 65504 and makes no NaN.
 *
 *     ptxgen_gguf_linear_spec spec = {.k = 640, .n = {1024, 256, 256}, .epsilon = 1e-6f,
 *                                     .w_type = {PTXGEN_GGUF_Q5_0, PTXGEN_GGUF_Q5_0,
 *                                                PTXGEN_GGUF_Q8_0},
 *                                     .x_type = PTXGEN_F32, .y_type = PTXGEN_F32,
 *                                     .norm = PTXGEN_GGUF_LINEAR_RMSNORM};
 *     ptxgen_gguf_linear *kernel;
 *     ptxgen_gguf_linear_dispatch(dispatcher, &spec, &kernel, &err);
 *     ptxgen_gguf_linear_launch(kernel, &args, stream, &err);
 *
 * Plans and specs are plain values: zero them, fill them, copy and compare them with memcmp. All
 * functions are pure and may be called from any thread, except for load, dispatch, destroy and
 * launch, for which kernel.h and dispatch.h say what several threads may do at the same time.
 */
#ifndef PTXGEN_GGUF_LINEAR_H
#define PTXGEN_GGUF_LINEAR_H

#include <ptxgen/accuracy.h>
#include <ptxgen/dense.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/gguf_types.h>
#include <ptxgen/guarantee.h>
#include <ptxgen/kernel.h>
#include <ptxgen/target.h>
#include <ptxgen/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PTXGEN_GGUF_LINEAR_MATRICES = 3, PTXGEN_GGUF_LINEAR_MAX_M = 8 };

typedef enum ptxgen_gguf_linear_norm {
    PTXGEN_GGUF_LINEAR_NO_NORM = 0,
    PTXGEN_GGUF_LINEAR_RMSNORM = 1
} ptxgen_gguf_linear_norm;

/** Where the residual is added. */
typedef enum ptxgen_gguf_linear_residual {
    PTXGEN_GGUF_LINEAR_NO_RESIDUAL = 0,
    PTXGEN_GGUF_LINEAR_BEFORE = 1, /**< x + residual */
    PTXGEN_GGUF_LINEAR_AFTER = 2   /**< residual + RMSNorm(x)·post_gamma, as gemma has it */
} ptxgen_gguf_linear_residual;

/** All constants for which code is specialised. A spec is a cache key: zero it, then fill it. */
typedef struct ptxgen_gguf_linear_spec {
    uint32_t k; /**< a multiple of each type's block, of floats of 8, up to 2²² */
    uint32_t n[PTXGEN_GGUF_LINEAR_MATRICES]; /**< features of each matrix; unused ones 0 */
    float epsilon;                           /**< of norms: at least 0, used at full precision */
    uint32_t max_m;                          /**< the most tokens of a launch; 0: any number */
    uint8_t w_type[PTXGEN_GGUF_LINEAR_MATRICES]; /**< ptxgen_gguf_type; of unused ones ignored */
    uint8_t x_type, y_type;                      /**< ptxgen_element: f32, f16, bf16 */
    uint8_t norm;                                /**< ptxgen_gguf_linear_norm */
    uint8_t residual;                            /**< ptxgen_gguf_linear_residual */
    uint8_t residual_out;                        /**< 1: g is also written out */
    uint8_t epilogue;                            /**< ptxgen_epilogue */
    uint8_t bias;                                /**< 1: f32 biases are added */
    /**
     * What tensor cores multiply, for more than 32 tokens, or 8 where weights are decoded in
     * registers, and of floats fewer: 0, x's type, or the ptxgen_element f16 or bf16.
     */
    uint8_t compute;
    uint8_t reserved[1];
} ptxgen_gguf_linear_spec;

/**
 * The shape of the kernels for up to `tile_m` tokens. K is divided into `parts`, each with CTAs of
 * its own. A part's CTAs of wn × wk warps walk through tiles of 16 features, or of 8 of gate and 8
 * of up where these are of one type: wn tiles at a time, each of which wk warps multiply that
 * divide the part's K. From sm_90 on, where all matrices are quantised, their rows multiples of 16
 * bytes and those of a gate of one type, tensor copies bring the weights, to a ring of each warp's
 * own, or, of one token in Q6_K, of four warps along K.
 *
 * Where all matrices are floats, `stages` is 0, and a CTA's warps take 2 features each, of more
 * than two tokens 4.
 *
 * There is no use_tile: make_plan compares every shape that fits.
 */
typedef struct ptxgen_gguf_linear_variant {
    uint32_t tile_m;       /**< 1, 2, 4 or 8 */
    uint32_t parts;        /**< parts of K; above 1, parts are added up in the workspace */
    uint32_t part_ctas;    /**< CTAs of a part */
    uint32_t wn, wk;       /**< warps along N and K */
    uint32_t stages;       /**< slots of the rings, of 256 of K for each warp */
    uint32_t tensor;       /**< 1: tensor copies bring the weights, 512 of K for each warp */
    uint32_t ring_warps;   /**< warps along K that share a ring: wk, or with tensor copies 1 or 4 */
    uint32_t makes_h;      /**< 1: every CTA makes h itself; 0: a kernel of its own does */
    uint32_t shared_bytes; /**< shared memory of one CTA */
    uint32_t dynamic_shared_bytes; /**< shared_bytes if these are above 48 KB, else 0 */
} ptxgen_gguf_linear_variant;

enum { PTXGEN_GGUF_LINEAR_VARIANTS = 4, PTXGEN_GGUF_LINEAR_DIRECT = 4 };

typedef struct ptxgen_gguf_linear_plan {
    ptxgen_gguf_linear_spec spec;
    ptxgen_target target;
    uint32_t planes; /**< bytes of an integer that h becomes: 2, or 3 where x is f32 */
    uint32_t variant_count;
    ptxgen_gguf_linear_variant variants[PTXGEN_GGUF_LINEAR_VARIANTS]; /**< by rising tile_m */
    /** More than 32 tokens, of floats fewer: the product of a slice of the weights; else zeros. */
    ptxgen_dense_plan inflated;
    /**
     * More than 8 tokens, where one kernel decodes and multiplies: its tiles, by rising tile_m,
     * whose `stages` are slots of 256 of K of 64 rows of w, and `steps` slots of 64 to 256 of K of
     * h; `inflated` has no variants then.
     */
    uint32_t direct_count;
    ptxgen_tile direct[PTXGEN_GGUF_LINEAR_DIRECT];
} ptxgen_gguf_linear_plan;

/**
 * Validates the spec and chooses the shapes. Refuses with PTXGEN_ERROR_UNSUPPORTED and the rule: a
 * type that is not decoded, K not a multiple of a type's block, or of 8 for floats, or above 2²², N
 * above 2²⁹, ε below 0 or not finite, a gate over unequal N, residual_out without a residual.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_linear_make_plan(const ptxgen_gguf_linear_spec *spec,
                                                      const ptxgen_target *target,
                                                      ptxgen_gguf_linear_plan *plan,
                                                      ptxgen_error *err);
/**
 * The variant that serves m tokens; NULL when m is 0, above 32, where the plan has direct tiles
 * above 8, of floats fewer, or the spec's max_m, or N is 0.
 */
PTXGEN_API const ptxgen_gguf_linear_variant *
ptxgen_gguf_linear_choose(const ptxgen_gguf_linear_plan *plan, uint64_t m);
/** The tile that multiplies a slice for m tokens, more than those; NULL for other m, and plans. */
PTXGEN_API const ptxgen_tile *
ptxgen_gguf_linear_choose_inflated(const ptxgen_gguf_linear_plan *plan, uint64_t m);
/** The tile that decodes and multiplies for m tokens, more than 8; NULL for other m, and plans. */
PTXGEN_API const ptxgen_tile *ptxgen_gguf_linear_choose_direct(const ptxgen_gguf_linear_plan *plan,
                                                               uint64_t m);
/** CTAs of the product in a launch of m tokens. */
PTXGEN_API ptxgen_status ptxgen_gguf_linear_ctas(const ptxgen_gguf_linear_plan *plan, uint64_t m,
                                                 uint32_t *ctas, ptxgen_error *err);
/** Writes one sentence for people to read: how a launch of m tokens is divided. */
PTXGEN_API void ptxgen_gguf_linear_explain(const ptxgen_gguf_linear_plan *plan, uint64_t m,
                                           char *text, size_t size);
/**
 * The name of the entry that multiplies, as "gguf_linear_m4"; the number is tile_m. Where all
 * matrices are floats it is "gguf_linear_float_m4". The one that makes h is
 * "gguf_linear_prepare_m4". Names are stable (guarantee.h).
 */
PTXGEN_API const char *ptxgen_gguf_linear_entry(const ptxgen_gguf_linear_variant *variant);
/** That of a tile for more tokens, as "gguf_linear_wgmma_m256". */
PTXGEN_API const char *ptxgen_gguf_linear_inflated_entry(const ptxgen_tile *tile);
/** And that of a plan's `direct`, as "gguf_linear_direct_m256". */
PTXGEN_API const char *ptxgen_gguf_linear_direct_entry(const ptxgen_tile *tile);
/** What a launch of m > 0 tokens promises (guarantee.h); refused where no variant serves m. */
PTXGEN_API ptxgen_status ptxgen_gguf_linear_guarantee(const ptxgen_gguf_linear_plan *plan,
                                                      uint64_t m, ptxgen_guarantee *guarantee,
                                                      ptxgen_error *err);
/**
 * Emits the entries of `variants`, which has a bit for each variant of the plan, and behind those
 * of PTXGEN_GGUF_LINEAR_VARIANTS one for more tokens (~0u: all). An error becomes the
 * module's sticky error and is returned.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_linear_emit(const ptxgen_gguf_linear_plan *plan,
                                                 uint32_t variants, ptx_module *module,
                                                 ptxgen_error *err);

/* ---- the reference ---- */

/**
 * The arrays of ptxgen_gguf_linear_args in host memory. Strides are in elements; 0 means the length
 * of the row. Members that the spec does not use are ignored. Gammas and biases must be aligned to
 * their elements; the other arrays may start at any address.
 */
typedef struct ptxgen_gguf_linear_operands {
    uint64_t m;                                     /**< at most the spec's max_m */
    const void *x, *residual;                       /**< [m, k] of x's type */
    const float *gamma, *post_gamma;                /**< [k] */
    const void *w[PTXGEN_GGUF_LINEAR_MATRICES];     /**< [n, k] in the matrix's type */
    const float *bias[PTXGEN_GGUF_LINEAR_MATRICES]; /**< [n] */
    uint64_t x_stride, residual_stride;
    uint64_t launch_m; /**< tokens of the launch that these m are a part of; 0: m */
} ptxgen_gguf_linear_operands;

/**
 * Computes features first_n to first_n + count − 1 of output `matrix` (0 with a gate) in double
 * precision: y [m, count], and unless `bound` is NULL the bound of the error of this plan's kernel
 * after rounding to y's type. Compare with ptxgen_gguf_linear_agrees: a bound is infinite where
 * rounding decides between the largest finite output and infinity, and NaN where the sums of a
 * kernel could exceed f32, for which no statement is made.
 *
 * Unless `sum` is NULL it receives g as [m, k] of x's type. With the residual BEFORE the norm these
 * are the bits of residual_out; AFTER it, a kernel's g may be the neighbouring number where the
 * exact one is near the middle of two. The function is slow and allocates memory; different threads
 * may compute different features.
 *
 * Errors: PTXGEN_ERROR_INVALID_ARGUMENT for what is NULL or out of range, and for weights, gammas
 * or biases that are not finite; PTXGEN_ERROR_OUT_OF_MEMORY.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_linear_reference(const ptxgen_gguf_linear_plan *plan,
                                                      const ptxgen_gguf_linear_operands *operands,
                                                      uint32_t matrix, uint32_t first_n,
                                                      uint32_t count, double *y, double *bound,
                                                      void *sum, ptxgen_error *err);
/** Like ptxgen_gguf_linear_reference, and also the spread of each output (accuracy.h), or NULL. */
PTXGEN_API ptxgen_status ptxgen_gguf_linear_reference_spread(
    const ptxgen_gguf_linear_plan *plan, const ptxgen_gguf_linear_operands *operands,
    uint32_t matrix, uint32_t first_n, uint32_t count, double *y, double *bound,
    ptxgen_spread *spread, void *sum, ptxgen_error *err);
/** True if both are NaN, if they are equal or within the bound, or if the bound is NaN. */
PTXGEN_API bool ptxgen_gguf_linear_agrees(double output, double y, double bound);

/* ---- running it ---- */

/**
 * The arguments of a launch: device addresses, and strides in elements. Zero it, then fill it.
 * Members that the spec does not use are ignored.
 *
 * Activations may start at any multiple of their element's size; rows that start at multiples of 16
 * bytes are read faster. Weights start at multiples as said above, gammas and biases at a
 * multiple of 4, the workspace at a multiple of 16; what it holds before does not matter.
 *
 * Arrays that are written must not overlap any other array of the launch (kernel.h, "Arrays").
 */
typedef struct ptxgen_gguf_linear_args {
    uint64_t m;                                 /**< tokens: 0 launches nothing */
    uint64_t x, residual, residual_out;         /**< [m, k], x's type */
    uint64_t gamma, post_gamma;                 /**< f32 [k] */
    uint64_t w[PTXGEN_GGUF_LINEAR_MATRICES];    /**< [n, k] in w_type */
    uint64_t bias[PTXGEN_GGUF_LINEAR_MATRICES]; /**< f32 [n] */
    uint64_t y[PTXGEN_GGUF_LINEAR_MATRICES];    /**< [m, n], row stride y_stride ≥ n */
    uint64_t workspace;                         /**< workspace_bytes of it, not zeroed */
    uint64_t x_stride, residual_stride, residual_out_stride; /**< below 2³²; 0 means k */
    uint64_t y_stride[PTXGEN_GGUF_LINEAR_MATRICES]; /**< below 2³²; 0 means that matrix's n */
    /**
     * 1 (sm_90 and later): the launch may begin before the kernel ahead of it in the stream has
     * ended (programmatic dependent launch). It then reads only weights until that kernel's
     * results are visible; who may have written them says kernel.h, "Overlap". Launches of more
     * tokens than the plan's variants serve do not begin early.
     */
    uint32_t overlap_previous;
    /** Bytes of the buffer at each address; 0: unchecked (kernel.h, "Arrays"). */
    uint64_t x_bytes, residual_bytes, residual_out_bytes, gamma_bytes, post_gamma_bytes;
    uint64_t w_bytes[PTXGEN_GGUF_LINEAR_MATRICES], bias_bytes[PTXGEN_GGUF_LINEAR_MATRICES];
    uint64_t y_bytes[PTXGEN_GGUF_LINEAR_MATRICES], workspace_bytes;
} ptxgen_gguf_linear_args;

/** A plan's loaded entries, in one context. */
typedef struct ptxgen_gguf_linear ptxgen_gguf_linear;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_gguf_linear_family(void);

/** ptxgen_dispatch for this family; release the reference with ptxgen_gguf_linear_destroy. */
PTXGEN_API ptxgen_status ptxgen_gguf_linear_dispatch(ptxgen_dispatcher *dispatcher,
                                                     const ptxgen_gguf_linear_spec *spec,
                                                     ptxgen_gguf_linear **kernel,
                                                     ptxgen_error *err);

/**
 * Emits the plan's text and loads it into the current context, without a dispatcher. Errors: those
 * of the builder and the driver; PTXGEN_ERROR_TARGET if the plan's target does not run on the
 * context's device.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_linear_load(const ptxgen_driver *driver,
                                                 const ptxgen_gguf_linear_plan *plan,
                                                 const ptxgen_module_options *options,
                                                 ptxgen_gguf_linear **kernel, ptxgen_error *err);
/** Unloads a kernel from load; releases a reference from dispatch. NULL does nothing. */
PTXGEN_API void ptxgen_gguf_linear_destroy(ptxgen_gguf_linear *kernel);
/** The driver's attributes of the entry that multiplies m tokens; NULL when none does. */
PTXGEN_API const ptxgen_kernel_attributes *
ptxgen_gguf_linear_attributes(const ptxgen_gguf_linear *kernel, uint64_t m);
/** Bytes of workspace that this launch needs; pure. */
PTXGEN_API ptxgen_status ptxgen_gguf_linear_workspace_bytes(const ptxgen_gguf_linear *kernel,
                                                            const ptxgen_gguf_linear_args *args,
                                                            uint64_t *bytes, ptxgen_error *err);

/**
 * Enqueues the product on `stream`, which takes, for each 8 tokens, one kernel or two for quantised
 * matrices, one or two for floats, and one for a gate of two types or of floats; more tokens than
 * variants serve take one for h, and two to four for each slice of the weights, or one that decodes
 * and multiplies. A launch does not allocate or synchronise, and may be captured. Launches that may
 * run at the same time need workspaces of their own. Errors, before anything runs:
 * PTXGEN_ERROR_INVALID_ARGUMENT, with the name of the argument, for a null or misaligned address, a
 * stride below its row, a buffer that is too small, arrays that overlap or an m above the spec's
 * max_m; PTXGEN_ERROR_UNSUPPORTED for a stride that the kernel cannot hold; and those of
 * ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_linear_launch(const ptxgen_gguf_linear *kernel,
                                                   const ptxgen_gguf_linear_args *args,
                                                   ptxgen_cu_stream stream, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
