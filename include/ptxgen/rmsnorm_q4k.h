/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rmsnorm_q4k: RMSNorm fused with a matrix-vector product over GGUF Q4_K weights, for decoding
 * 1 to 8 tokens at a time.
 *
 *     h[m,k] = x[m,k] (+ r[m,k], rounded to x's type)
 *     y[m,n] = Σ_k w[n,k] · h[m,k] · γ[k] / sqrt(mean_k(h[m,k]²) + ε)  (+ bias[n])
 *
 *     x         [M, K]  activations of M tokens; the residual r likewise, γ [K]
 *     w         [N, K]  weights of N output features, in Q4_K rows as GGUF has them (gguf_types.h)
 *     y         [M, N]  outputs; bias [N]
 *
 * Weights are not repacked. One launch may serve up to three weight matrices that share x (Q, K and
 * V), each with its own N, output and bias; or, with PTXGEN_EPILOGUE_SWIGLU, the pair gate and up:
 * y = silu(gate) · up.
 *
 * Activations keep their precision: h·γ is rounded to f32, then held as 31-bit fixed point with one
 * power of two for each 256 values of a token, which loses nothing down to 2⁻⁷ of the largest of
 * them and at most 2⁻³¹ of it below. Its products with the weights' nibbles and scales are exact
 * integers; super-blocks add up in f32 (the bound is at ptxgen_rmsnorm_q4k_reference). The result
 * depends on the spec, the target and the inputs only: the same bits in every launch. A token with
 * a NaN or infinity in h, or in h·γ as f32, gives NaN in its own row of y only.
 *
 * The range, for finite operands, with γ and ε f32:
 * - h may be any number of its type: squares that overflow f32 are summed scaled by 2⁻¹⁶⁰.
 * - Products: where Σ_k |d·sc·q·h·γ| + |dmin·m·h·γ| of a feature exceeds f32's largest number,
 *   3.4e38, y is right or NaN; with x of f16 and a γ near 1e30 it may also be infinite.
 * - Small products are not flushed, but the power of two is at least 2⁻¹²⁶: h·γ keeps no more than
 *   whole multiples of 2⁻¹²⁶ (1.2e-38). Digits are lost from 2⁻⁹⁶ (1.3e-29) on, if all of a
 *   token's super-block are as small, and signs with them.
 * - Squares are summed in f32 down to 2⁻¹⁴⁹, so 1/sqrt loses digits where mean(h²) + ε is below
 *   2⁻¹²⁵ (2.4e-38). Where it is 0 in f32, which takes ε = 0, y is NaN: a row of zeros, as 0/0.
 *   With ε > 0 a row of zeros gives 0 (+ bias).
 * The reference has the same range: a bound that grows where digits are lost, NaN where only
 * "right or NaN" is said.
 *
 *     ptxgen_rmsnorm_q4k_spec spec = {.k = 4096, .n = {14336}, .epsilon = 1e-6f,
 *                                     .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
 *     ptxgen_rmsnorm_q4k_plan plan;
 *     ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err);
 *     ptx_module *m = ptx_module_create(&target.ptx, NULL);
 *     ptxgen_rmsnorm_q4k_emit(&plan, ~0u, m, &err);         // then ptx_module_text(m, …)
 *
 * Plans and specs are plain values: zero them, fill them, copy and compare them with memcmp. All
 * functions are pure and may be called from any thread, except for load, dispatch, destroy and
 * launch, for which kernel.h and dispatch.h say what several threads may do at the same time.
 */
#ifndef PTXGEN_RMSNORM_Q4K_H
#define PTXGEN_RMSNORM_Q4K_H

#include <ptxgen/accuracy.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/guarantee.h>
#include <ptxgen/kernel.h>
#include <ptxgen/target.h>
#include <ptxgen/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PTXGEN_RMSNORM_Q4K_MATRICES = 3, PTXGEN_RMSNORM_Q4K_MAX_M = 8 };

/** All constants for which code is specialised. A spec is a cache key: zero it, then fill it. */
typedef struct ptxgen_rmsnorm_q4k_spec {
    uint32_t k;                              /**< a multiple of 256 */
    uint32_t n[PTXGEN_RMSNORM_Q4K_MATRICES]; /**< features of each matrix; unused ones 0 */
    float epsilon;                           /**< at least 0, used at full precision */
    uint32_t max_m;                          /**< the most tokens of a launch, 1 to 8; 0 means 8 */
    uint8_t x_type, y_type;                  /**< ptxgen_element */
    uint8_t epilogue;                        /**< ptxgen_epilogue */
    uint8_t bias;                            /**< 1: f32 biases are added */
    uint8_t residual;                        /**< 1: a residual of x's type is added to x first */
    uint8_t residual_out;                    /**< 1: the sum h is also written out */
    uint8_t reserved[2];
} ptxgen_rmsnorm_q4k_spec;

/**
 * The tile of one entry of the module, for up to `tile_m` tokens. CTAs of wn × wk warps walk
 * through tiles of 16 features: wn tiles at a time, each of which wk warps multiply that divide K.
 *
 * There is no use_tile: make_plan compares every wn, wk and stages that fit, so a list of tiles to
 * choose from would hold nothing that it has not seen.
 */
typedef struct ptxgen_rmsnorm_q4k_variant {
    uint32_t tile_m;               /**< 1, 4 or 8; 2 if the spec's max_m is 2 */
    uint32_t wn, wk;               /**< warps along N and K */
    uint32_t stages;               /**< slots of a warp's ring, of two super-blocks each: 2 to 4 */
    uint32_t grid;                 /**< CTAs */
    uint32_t rounds;               /**< tiles that each warp works on, one after the other */
    uint32_t chunk, chunks;        /**< super-blocks of x in a chunk of shared memory; chunks */
    uint32_t shared_bytes;         /**< shared memory of one CTA */
    uint32_t dynamic_shared_bytes; /**< shared_bytes if these are above 48 KB, else 0 */
} ptxgen_rmsnorm_q4k_variant;

typedef struct ptxgen_rmsnorm_q4k_plan {
    ptxgen_rmsnorm_q4k_spec spec;
    ptxgen_target target;
    uint32_t variant_count;
    ptxgen_rmsnorm_q4k_variant variants[3]; /**< by rising tile_m */
} ptxgen_rmsnorm_q4k_plan;

/**
 * Validates the spec and chooses the tiles. Refuses with PTXGEN_ERROR_UNSUPPORTED and the rule:
 * K not a multiple of 256, no features, ε below 0 or not finite, more than 8 tokens, SwiGLU over
 * unequal matrices, residual_out without residual.
 */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_make_plan(const ptxgen_rmsnorm_q4k_spec *spec,
                                                      const ptxgen_target *target,
                                                      ptxgen_rmsnorm_q4k_plan *plan,
                                                      ptxgen_error *err);
/** The variant that serves m tokens; NULL when m is 0 or above the spec's max_m, or N is 0. */
PTXGEN_API const ptxgen_rmsnorm_q4k_variant *
ptxgen_rmsnorm_q4k_choose(const ptxgen_rmsnorm_q4k_plan *plan, uint64_t m);
/** CTAs that a launch of m tokens has. */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_ctas(const ptxgen_rmsnorm_q4k_plan *plan, uint64_t m,
                                                 uint32_t *ctas, ptxgen_error *err);
/** Writes one sentence for people to read: which tile a launch of m tokens has. */
PTXGEN_API void ptxgen_rmsnorm_q4k_explain(const ptxgen_rmsnorm_q4k_plan *plan, uint64_t m,
                                           char *text, size_t size);
/**
 * The entry's name in the module, as "rmsnorm_q4k_m4"; the number is tile_m. Names are stable
 * (guarantee.h).
 */
PTXGEN_API const char *ptxgen_rmsnorm_q4k_entry(const ptxgen_rmsnorm_q4k_variant *variant);
/** What a launch of m > 0 tokens promises (guarantee.h); refused where no variant serves m. */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_guarantee(const ptxgen_rmsnorm_q4k_plan *plan, uint64_t m,
                                                      ptxgen_guarantee *guarantee,
                                                      ptxgen_error *err);
/**
 * Emits the entries of `variants`, which has a bit for each variant of the plan (~0u: all). An
 * error becomes the module's sticky error and is returned.
 */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_emit(const ptxgen_rmsnorm_q4k_plan *plan,
                                                 uint32_t variants, ptx_module *module,
                                                 ptxgen_error *err);

/* ---- the reference ---- */

/**
 * The arrays of ptxgen_rmsnorm_q4k_args in host memory. Strides are in elements; 0 means the length
 * of the row. Members that the spec does not use are ignored. gamma and bias must be aligned to
 * their elements; the other arrays may start at any address.
 */
typedef struct ptxgen_rmsnorm_q4k_operands {
    uint64_t m;                                     /**< at most the spec's max_m */
    const void *x;                                  /**< [m, k] of x's type */
    const void *residual;                           /**< [m, k] of x's type */
    const float *gamma;                             /**< [k] */
    const void *w[PTXGEN_RMSNORM_Q4K_MATRICES];     /**< Q4_K [n, k] */
    const float *bias[PTXGEN_RMSNORM_Q4K_MATRICES]; /**< [n] */
    uint64_t x_stride, residual_stride;
} ptxgen_rmsnorm_q4k_operands;

/**
 * Computes features first_n to first_n + count − 1 of output `matrix` (0 with SwiGLU) in double
 * precision: y [m, count], and unless `bound` is NULL the bound of the error of this plan's kernel
 * after rounding to y's type. Compare with ptxgen_rmsnorm_q4k_agrees: a bound is infinite where
 * rounding decides between the largest finite output and infinity, and NaN where the sums of a
 * kernel could exceed f32, for which no statement is made.
 *
 * Unless `sum` is NULL it receives h as [m, k] of x's type, with the bits that a kernel writes to
 * residual_out. The function is slow and allocates memory; different threads may compute different
 * features.
 *
 * Errors: PTXGEN_ERROR_INVALID_ARGUMENT for what is NULL or out of range, and for weights, gamma
 * or bias that are not finite; PTXGEN_ERROR_OUT_OF_MEMORY.
 */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_reference(const ptxgen_rmsnorm_q4k_plan *plan,
                                                      const ptxgen_rmsnorm_q4k_operands *operands,
                                                      uint32_t matrix, uint32_t first_n,
                                                      uint32_t count, double *y, double *bound,
                                                      void *sum, ptxgen_error *err);
/** Like ptxgen_rmsnorm_q4k_reference, and also the spread of each output (accuracy.h), or NULL. */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_reference_spread(
    const ptxgen_rmsnorm_q4k_plan *plan, const ptxgen_rmsnorm_q4k_operands *operands,
    uint32_t matrix, uint32_t first_n, uint32_t count, double *y, double *bound,
    ptxgen_spread *spread, void *sum, ptxgen_error *err);
/** True if both are NaN, if they are equal or within the bound, or if the bound is NaN. */
PTXGEN_API bool ptxgen_rmsnorm_q4k_agrees(double output, double y, double bound);

/* ---- running it ---- */

/**
 * The arguments of a launch: device addresses, and strides in elements. Zero it, then fill it.
 * Members that the spec does not use are ignored.
 *
 * Activations may start at any multiple of their element's size; rows that start at multiples of 16
 * bytes are read faster. Weights start at a multiple of 16 bytes, gamma and bias at a multiple of
 * 4.
 *
 * Arrays that are written must not overlap any other array of the launch (kernel.h, "Arrays").
 */
typedef struct ptxgen_rmsnorm_q4k_args {
    uint64_t m;            /**< tokens: 0 launches nothing, at most the spec's max_m */
    uint64_t x;            /**< [m, k], row stride x_stride ≥ k */
    uint64_t residual;     /**< [m, k], x's type */
    uint64_t residual_out; /**< [m, k], x's type */
    uint64_t gamma;        /**< f32 [k] */
    uint64_t w[PTXGEN_RMSNORM_Q4K_MATRICES];    /**< Q4_K [n, k] */
    uint64_t bias[PTXGEN_RMSNORM_Q4K_MATRICES]; /**< f32 [n] */
    uint64_t y[PTXGEN_RMSNORM_Q4K_MATRICES];    /**< [m, n], row stride y_stride ≥ n */
    uint64_t x_stride, residual_stride, residual_out_stride; /**< below 2³²; 0 means k */
    uint64_t y_stride[PTXGEN_RMSNORM_Q4K_MATRICES]; /**< below 2³²; 0 means that matrix's n */
    /**
     * 1 (sm_90 and later): the launch may begin before the kernel ahead of it in the stream has
     * ended (programmatic dependent launch). It then reads only weights until that kernel's
     * results are visible; who may have written them says kernel.h, "Overlap".
     */
    uint32_t overlap_previous;
    /** Bytes of the buffer at each address; 0: unchecked (kernel.h, "Arrays"). */
    uint64_t x_bytes, residual_bytes, residual_out_bytes, gamma_bytes;
    uint64_t w_bytes[PTXGEN_RMSNORM_Q4K_MATRICES], bias_bytes[PTXGEN_RMSNORM_Q4K_MATRICES];
    uint64_t y_bytes[PTXGEN_RMSNORM_Q4K_MATRICES];
} ptxgen_rmsnorm_q4k_args;

/** A plan's loaded entries, in one context. */
typedef struct ptxgen_rmsnorm_q4k ptxgen_rmsnorm_q4k;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_rmsnorm_q4k_family(void);

/** ptxgen_dispatch for this family; release the reference with ptxgen_rmsnorm_q4k_destroy. */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_dispatch(ptxgen_dispatcher *dispatcher,
                                                     const ptxgen_rmsnorm_q4k_spec *spec,
                                                     ptxgen_rmsnorm_q4k **kernel,
                                                     ptxgen_error *err);

/**
 * Emits the plan's text and loads it into the current context, without a dispatcher. Errors: those
 * of the builder and the driver; PTXGEN_ERROR_TARGET if the plan's target does not run on the
 * context's device.
 */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_load(const ptxgen_driver *driver,
                                                 const ptxgen_rmsnorm_q4k_plan *plan,
                                                 const ptxgen_module_options *options,
                                                 ptxgen_rmsnorm_q4k **kernel, ptxgen_error *err);
/** Unloads a kernel from load; releases a reference from dispatch. NULL does nothing. */
PTXGEN_API void ptxgen_rmsnorm_q4k_destroy(ptxgen_rmsnorm_q4k *kernel);
/** The driver's attributes of the entry that serves m tokens; NULL when none does. */
PTXGEN_API const ptxgen_kernel_attributes *
ptxgen_rmsnorm_q4k_attributes(const ptxgen_rmsnorm_q4k *kernel, uint64_t m);
/** Bytes of workspace that this launch needs, which is 0 in this family; pure. */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_workspace_bytes(const ptxgen_rmsnorm_q4k *kernel,
                                                            const ptxgen_rmsnorm_q4k_args *args,
                                                            uint64_t *bytes, ptxgen_error *err);

/**
 * Enqueues the product on `stream`, which takes one kernel. A launch does not allocate or
 * synchronise, and may be captured; from sm_90 on it also encodes the tensor maps of the weights on
 * the host. Errors, before anything runs: PTXGEN_ERROR_INVALID_ARGUMENT, with the name of the
 * argument, for a null or misaligned address, a stride below its row, a buffer that is too small,
 * arrays that overlap or an m above the spec's max_m; PTXGEN_ERROR_UNSUPPORTED for a stride that
 * the kernel cannot hold; and those of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_launch(const ptxgen_rmsnorm_q4k *kernel,
                                                   const ptxgen_rmsnorm_q4k_args *args,
                                                   ptxgen_cu_stream stream, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
