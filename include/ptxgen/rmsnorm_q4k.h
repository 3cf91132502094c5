/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rmsnorm_q4k: RMSNorm fused with a matrix-vector product over GGUF Q4_K weights, for decoding
 * 1 to 8 tokens at a time.
 *
 *     h[m,k] = x[m,k] (+ r[m,k], rounded to x's type)
 *     y[m,n] = Σ_k W[n,k] · h[m,k] · γ[k] / sqrt(mean_k(h[m,k]²) + ε)  (+ bias[n])
 *
 * W is [N,K] in Q4_K rows as GGUF stores them (ptxgen/q4k.h): nothing is repacked. One launch may
 * serve up to three weight matrices that share x (Q, K and V), each with its own N, output and
 * bias; or, with PTXGEN_EPILOGUE_SWIGLU, the pair gate and up: y = silu(gate) · up.
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
 * - Products: where Σ_k |d·sc·q·h·γ| + |dmin·m·h·γ| of a row of W exceeds f32's largest number,
 *   3.4e38, y is right or NaN; with x of f16, which takes a γ near 1e30, infinite perhaps.
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
 * functions but load, dispatch, destroy and launch are pure and may be called from any thread; of
 * these, kernel.h and dispatch.h say what several threads may do at once.
 */
#ifndef PTXGEN_RMSNORM_Q4K_H
#define PTXGEN_RMSNORM_Q4K_H

#include <ptxgen/accuracy.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/kernel.h>
#include <ptxgen/target.h>
#include <ptxgen/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PTXGEN_RMSNORM_Q4K_MATRICES = 3, PTXGEN_RMSNORM_Q4K_MAX_M = 8 };

/** Every specialisation constant; zero it before filling it in, it is a cache key. */
typedef struct ptxgen_rmsnorm_q4k_spec {
    uint32_t k;    /**< a multiple of 256 */
    uint32_t n[PTXGEN_RMSNORM_Q4K_MATRICES]; /**< features of each matrix; unused ones 0 */
    float epsilon; /**< at least 0, used at full precision */
    uint32_t max_m;         /**< largest M that will be launched, 1 … 8; 0 means 8 */
    uint8_t x_type, y_type; /**< ptxgen_element */
    uint8_t epilogue;       /**< ptxgen_epilogue */
    uint8_t bias;           /**< 1: f32 biases are added */
    uint8_t residual;       /**< 1: a residual of x's type is added to x first */
    uint8_t residual_out;   /**< 1: the sum h is also written out */
    uint8_t reserved[2];
} ptxgen_rmsnorm_q4k_spec;

/**
 * The shape of one entry of the module, for up to `tile_m` tokens. Tiles of 16 features are dealt
 * out to the CTAs, which have wn × wk warps: wn tiles at a time, each by wk warps that divide K.
 */
typedef struct ptxgen_rmsnorm_q4k_variant {
    uint32_t tile_m;       /**< 1, 4 or 8; 2 where 2 are the most */
    uint32_t wn, wk;       /**< warps along N and K */
    uint32_t stages;       /**< pairs of super-blocks in a warp's ring, 2 … 4 */
    uint32_t grid;         /**< CTAs */
    uint32_t rounds;       /**< tiles that each warp works on, one after the other */
    uint32_t chunk, chunks; /**< super-blocks of x held in shared memory at once; how many such */
    uint32_t shared_bytes; /**< of one CTA, in all */
    uint32_t dynamic_shared_bytes; /**< what a launch passes: all of it when above 48 KB, else 0 */
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
/** The variant that serves m tokens, or NULL when m is 0 or above the plan's largest. */
PTXGEN_API const ptxgen_rmsnorm_q4k_variant *
ptxgen_rmsnorm_q4k_choose(const ptxgen_rmsnorm_q4k_plan *plan, uint64_t m);
/** CTAs that a launch of m tokens has. */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_ctas(const ptxgen_rmsnorm_q4k_plan *plan, uint64_t m,
                                                 uint32_t *ctas, ptxgen_error *err);
/** One sentence: what a launch of m tokens runs. */
PTXGEN_API void ptxgen_rmsnorm_q4k_explain(const ptxgen_rmsnorm_q4k_plan *plan, uint64_t m,
                                           char *text, size_t size);
/**
 * The entry's name in the module: "rmsnorm_q4k_m1", "…_m4", "…_m8"; of 2 tokens at most, "…_m2".
 */
PTXGEN_API const char *ptxgen_rmsnorm_q4k_entry(const ptxgen_rmsnorm_q4k_variant *variant);
/**
 * Emits the entries of `variants` (a bit for each of the plan's; ~0u: all). Errors are the module's
 * sticky error, also returned.
 */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_emit(const ptxgen_rmsnorm_q4k_plan *plan,
                                                 uint32_t variants, ptx_module *module,
                                                 ptxgen_error *err);

/* ---- the reference ---- */

/**
 * What ptxgen_rmsnorm_q4k_args says in device addresses, in host memory. Strides are in elements,
 * 0 meaning the row itself; members that the spec does not use are ignored. Nothing need be
 * aligned but floats.
 */
typedef struct ptxgen_rmsnorm_q4k_operands {
    uint64_t m;           /**< at most the spec's max_m */
    const void *x;        /**< [m, k] of x's type */
    const void *residual; /**< [m, k] of x's type */
    const float *gamma;   /**< [k] */
    const void *w[PTXGEN_RMSNORM_Q4K_MATRICES]; /**< Q4_K [n, k] */
    const float *bias[PTXGEN_RMSNORM_Q4K_MATRICES];   /**< [n] */
    uint64_t x_stride, residual_stride;
} ptxgen_rmsnorm_q4k_operands;

/**
 * Features first_n … first_n + count − 1 of output `matrix` (0 with SwiGLU), computed in double:
 * y[m, count], and, unless `bound` is NULL, how far the kernel of this plan may be from each after
 * rounding to y's type. Compare with ptxgen_rmsnorm_q4k_agrees: a bound is infinite where rounding
 * decides between the largest finite output and infinity, and NaN, which promises nothing, where
 * f32 could not hold what a kernel adds up.
 *
 * Unless `sum` is NULL it receives h as [m, k] of x's type; a spec with residual_out writes just
 * these bits. Slow and allocating; different features may be computed by different threads.
 *
 * Errors: PTXGEN_ERROR_INVALID_ARGUMENT for what is NULL or out of range, and for weights, gamma
 * or bias that are not finite; PTXGEN_ERROR_OUT_OF_MEMORY.
 */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_reference(const ptxgen_rmsnorm_q4k_plan *plan,
                                                      const ptxgen_rmsnorm_q4k_operands *operands,
                                                      uint32_t matrix, uint32_t first_n,
                                                      uint32_t count, double *y, double *bound,
                                                      void *sum, ptxgen_error *err);
/** The same, and the spread of each output, [m, count]: accuracy.h says what for. It may be NULL. */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_reference_spread(
    const ptxgen_rmsnorm_q4k_plan *plan, const ptxgen_rmsnorm_q4k_operands *operands,
    uint32_t matrix, uint32_t first_n, uint32_t count, double *y, double *bound,
    ptxgen_spread *spread, void *sum, ptxgen_error *err);
/** True when both are NaN, equal, within the bound, or the bound is NaN: nothing is promised. */
PTXGEN_API bool ptxgen_rmsnorm_q4k_agrees(double output, double y, double bound);

/* ---- running it ---- */

/**
 * What a launch works on: device addresses, strides in elements. Members that the spec does not
 * use are ignored. Zero it before filling it in.
 *
 * Activations may start at any multiple of their element size (16-byte aligned rows are read
 * faster); the weights at a multiple of 16 bytes; gamma and bias at 4.
 *
 * What is written overlaps no other array of the launch (kernel.h, "Arrays").
 */
typedef struct ptxgen_rmsnorm_q4k_args {
    uint64_t m;            /**< tokens: 0 launches nothing, at most the spec's max_m */
    uint64_t x;            /**< [m, k], row stride x_stride ≥ k */
    uint64_t residual;     /**< [m, k], x's type */
    uint64_t residual_out; /**< [m, k], x's type */
    uint64_t gamma;        /**< f32 [k] */
    uint64_t w[PTXGEN_RMSNORM_Q4K_MATRICES]; /**< Q4_K [n, k] */
    uint64_t bias[PTXGEN_RMSNORM_Q4K_MATRICES];    /**< f32 [n] */
    uint64_t y[PTXGEN_RMSNORM_Q4K_MATRICES];       /**< [m, n], row stride y_stride ≥ n */
    uint64_t x_stride, residual_stride, residual_out_stride; /**< below 2³²; 0 means k */
    uint64_t y_stride[PTXGEN_RMSNORM_Q4K_MATRICES]; /**< below 2³²; 0 means that matrix's n */
    /**
     * 1 (sm_90 and later): the launch may begin before the kernel ahead of it in the stream has
     * ended (programmatic dependent launch). It then reads only weights until that kernel's
     * results are visible, so that kernel must not be the one that writes the weights.
     */
    uint32_t overlap_previous;
} ptxgen_rmsnorm_q4k_args;

/** A plan's loaded entries, in one context; underneath, a ptxgen_loaded. */
typedef struct ptxgen_rmsnorm_q4k ptxgen_rmsnorm_q4k;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_rmsnorm_q4k_family(void);

/** ptxgen_dispatch for this family: one reference, given back with ptxgen_rmsnorm_q4k_destroy. */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_dispatch(ptxgen_dispatcher *dispatcher,
                                                     const ptxgen_rmsnorm_q4k_spec *spec,
                                                     ptxgen_rmsnorm_q4k **kernel,
                                                     ptxgen_error *err);

/**
 * Emits the plan's text and loads it into the current context, past registry and disk cache.
 * Errors: the builder's and the driver's; PTXGEN_ERROR_TARGET when the plan's target does not run
 * on the context's device.
 */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_load(const ptxgen_driver *driver,
                                                 const ptxgen_rmsnorm_q4k_plan *plan,
                                                 const ptxgen_module_options *options,
                                                 ptxgen_rmsnorm_q4k **kernel, ptxgen_error *err);
/** Unloads what load made; gives back what dispatch gave. NULL does nothing. */
PTXGEN_API void ptxgen_rmsnorm_q4k_destroy(ptxgen_rmsnorm_q4k *kernel);
/** The driver's attributes of the entry that serves m tokens; NULL when none does. */
PTXGEN_API const ptxgen_kernel_attributes *
ptxgen_rmsnorm_q4k_attributes(const ptxgen_rmsnorm_q4k *kernel, uint64_t m);
/** Bytes of workspace that this launch needs: none of this family needs any, so 0; pure. */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_workspace_bytes(const ptxgen_rmsnorm_q4k *kernel,
                                                            const ptxgen_rmsnorm_q4k_args *args,
                                                            uint64_t *bytes, ptxgen_error *err);

/**
 * Enqueues the product on `stream`: one kernel, no allocation, no synchronisation, capturable. From
 * sm_90 on the weights' tensor maps are encoded first, on the host.
 * Errors, before anything runs: PTXGEN_ERROR_INVALID_ARGUMENT naming the argument for a null or
 * misaligned address, a stride below its row, arrays that overlap or m above the plan's largest;
 * PTXGEN_ERROR_UNSUPPORTED for a stride that the kernel cannot hold; and those of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_rmsnorm_q4k_launch(const ptxgen_rmsnorm_q4k *kernel,
                                                   const ptxgen_rmsnorm_q4k_args *args,
                                                   ptxgen_cu_stream stream, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
