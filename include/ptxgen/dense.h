/* SPDX-License-Identifier: Apache-2.0 */
/**
 * dense: a matrix product of weights that are not quantised, on tensor cores (mma.sync, wgmma).
 *
 *     y[m,n] = f(Σ_k x[m,k]·w[n,k] + bias[n]) + residual[m,n]      f: identity, ReLU, SiLU or GELU
 *
 *     x         [M, K]  activations of M tokens
 *     w         [N, K]  weights of N output features
 *     y         [M, N]  outputs; residual likewise, bias [N]
 *
 * All arrays have one type: f16, bf16 or f32. M, N and K may have any value; M is an argument of
 * the launch. Sums are f32, in an order that depends on the plan and M only, so equal inputs give
 * equal bits.
 *
 * An f32 product is computed as three tf32 products and is off by at most 2⁻²¹ of |x·w| before it
 * is added, which is as much as four roundings. |x| and |w| must be below 2¹²⁸ − 2¹¹⁶, and products
 * underflow below 2⁻¹³⁶.
 *
 *     ptxgen_dense_spec spec = {.n = 14336, .k = 4096, .type = PTXGEN_F16};
 *     ptxgen_dense_plan plan;
 *     ptxgen_dense_make_plan(&spec, &target, &plan, &err);
 *     ptxgen_dense *kernel;
 *     ptxgen_dense_load(&driver, &plan, NULL, &kernel, &err);
 *     ptxgen_dense_args args = {.m = 4096, .x = …, .w = …, .y = …};
 *     uint64_t bytes;
 *     ptxgen_dense_workspace_bytes(kernel, &args, &bytes, &err); // allocate it, and zero it once
 *     ptxgen_dense_launch(kernel, &args, stream, &err);
 *
 * Plans and specs are plain values: zero them, fill them, copy and compare them with memcmp. All
 * functions are pure and may be called from any thread, except for load, dispatch, destroy and
 * launch, for which kernel.h and dispatch.h say what several threads may do at the same time.
 */
#ifndef PTXGEN_DENSE_H
#define PTXGEN_DENSE_H

#include <ptxgen/accuracy.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/guarantee.h>
#include <ptxgen/kernel.h>
#include <ptxgen/target.h>
#include <ptxgen/tile.h>
#include <ptxgen/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** All constants for which code is specialised. A spec is a cache key: zero it, then fill it. */
typedef struct ptxgen_dense_spec {
    uint32_t n;         /**< output features */
    uint32_t k;         /**< input features */
    uint32_t max_m;     /**< the most tokens that will be launched; 0: any */
    uint8_t type;       /**< of all matrices and the bias: PTXGEN_F16, _BF16 or _F32 */
    uint8_t activation; /**< ptxgen_activation */
    uint8_t bias;       /**< 1: biases are added */
    uint8_t residual;   /**< 1: a residual is added */
} ptxgen_dense_spec;

enum { PTXGEN_DENSE_VARIANTS = 8, PTXGEN_DENSE_MOST_CTAS = 4 /* of a multiprocessor */ };

/*
 * Tiles (tile.h). In a stage a warp multiplies 128 bytes of K of warp_m tokens by those of warp_n
 * features, of which each is 16, 32 or 64, and warp_m up to 256 with wgmma. wm, wn and wk are
 * powers of two, 16 warps in all at most. PTXGEN_WGMMA (sm_90a) and PTXGEN_BULK (sm_90) multiply
 * 16-bit types; with PTXGEN_BULK the warps that multiply issue the copies in rotation. The CTAs of
 * a cluster have the same tokens (cluster = 2: copies in bulk) or divide K (split = 2: wgmma).
 */

typedef struct ptxgen_dense_plan {
    ptxgen_dense_spec spec;
    ptxgen_target target;
    uint32_t variant_count;
    ptxgen_tile variants[PTXGEN_DENSE_VARIANTS]; /**< by rising tokens of a tile */
} ptxgen_dense_plan;

/**
 * Validates the spec and chooses the tiles. Refuses with PTXGEN_ERROR_UNSUPPORTED and the rule: N
 * or K above 2³¹ − 1 (K: 2³¹ bytes a row), f64; with PTXGEN_ERROR_INVALID_ARGUMENT a NULL,
 * a type or an activation that is none, a flag that is neither 0 nor 1 or a target that is none.
 */
PTXGEN_API ptxgen_status ptxgen_dense_make_plan(const ptxgen_dense_spec *spec,
                                                const ptxgen_target *target,
                                                ptxgen_dense_plan *plan, ptxgen_error *err);
/**
 * Makes `tile` the plan's only variant, to measure it: its kind, warp_m, warp_n (0: 64), warps (0:
 * 1), ctas (0: 1), stages (0: all that fit), pass_m (0: 16), cluster and split (0: 1) are used, and
 * the other members are computed here. Errors: PTXGEN_ERROR_INVALID_ARGUMENT for a number out of
 * its range, PTXGEN_ERROR_SHARED_MEMORY for a tile that no CTA holds.
 */
PTXGEN_API ptxgen_status ptxgen_dense_use_tile(ptxgen_dense_plan *plan, const ptxgen_tile *tile,
                                               ptxgen_error *err);
/** The variant that serves m tokens; NULL when m is 0 or above the plan's most, or N or K is 0. */
PTXGEN_API const ptxgen_tile *ptxgen_dense_choose(const ptxgen_dense_plan *plan, uint64_t m);
/** CTAs that a launch of m tokens has. */
PTXGEN_API ptxgen_status ptxgen_dense_ctas(const ptxgen_dense_plan *plan, uint64_t m,
                                           uint32_t *ctas, ptxgen_error *err);
/**
 * The entry's name in the module, as "dense_m16" or "dense_bulk_m256"; the number is tokens. Names
 * are stable (guarantee.h).
 */
PTXGEN_API const char *ptxgen_dense_entry(const ptxgen_tile *variant);
/** What a launch of m > 0 tokens promises (guarantee.h); refused where no variant serves m. */
PTXGEN_API ptxgen_status ptxgen_dense_guarantee(const ptxgen_dense_plan *plan, uint64_t m,
                                                ptxgen_guarantee *guarantee,
                                                ptxgen_error *err);
/** One sentence: the tiles that m tokens have. */
PTXGEN_API void ptxgen_dense_explain(const ptxgen_dense_plan *plan, uint64_t m, char *text,
                                     size_t size);
/**
 * Emits the entries of `variants`, which has a bit for each variant of the plan (~0u: all), and
 * "dense_align", which copies rows to multiples of 16 bytes. An error becomes the module's sticky
 * error and is returned.
 */
PTXGEN_API ptxgen_status ptxgen_dense_emit(const ptxgen_dense_plan *plan, uint32_t variants,
                                           ptx_module *module, ptxgen_error *err);

/* ---- the reference ---- */

/** A problem in host memory. Strides are in elements; 0 means the length of the row. */
typedef struct ptxgen_dense_operands {
    uint64_t m;
    const void *x, *w;    /**< [m, k], [n, k] */
    const void *bias;     /**< [n] */
    const void *residual; /**< [m, n] */
    uint64_t x_stride, w_stride, residual_stride;
} ptxgen_dense_operands;

/**
 * Computes y [m, n] in double precision, and for each output the bound of the error of this plan's
 * kernel after rounding. A bound of NaN makes no statement. The function is slow and allocates
 * memory. For values that are not ordinary numbers:
 *   - Where the sum is NaN, y is NaN, whatever the activation (ReLU of NaN is NaN). A residual that
 *     is NaN or infinite makes its output NaN or infinite.
 *   - Beyond that, no statement is made for a token of x with a NaN or an infinity; other tokens
 *     are not affected.
 *   - No statement is made where Σ|x·w|, or the sum with its bias before an activation or a
 *     residual, could exceed the range of f32. Otherwise, where y rounds to an infinity, y is that
 *     infinity.
 */
PTXGEN_API ptxgen_status ptxgen_dense_reference(const ptxgen_dense_plan *plan,
                                                const ptxgen_dense_operands *operands, double *y,
                                                double *bound, ptxgen_error *err);
/** Like ptxgen_dense_reference, and also computes the spread of each output (accuracy.h). */
PTXGEN_API ptxgen_status ptxgen_dense_reference_spread(const ptxgen_dense_plan *plan,
                                                       const ptxgen_dense_operands *operands,
                                                       double *y, double *bound,
                                                       ptxgen_spread *spread, ptxgen_error *err);

/* ---- running it ---- */

/**
 * The arguments of a launch: device addresses, and strides in elements. Zero it, then fill it.
 * Members that the spec does not use are ignored.
 *
 * An array may start at any multiple of its element's size. Addresses and strides that are
 * multiples of 16 bytes are faster, above all for w, which every launch copies otherwise.
 *
 * Arrays that are written must not overlap any other array of the launch (kernel.h, "Arrays"), but
 * y may be the residual itself, at the same address and with the same row stride.
 */
typedef struct ptxgen_dense_args {
    uint64_t m;        /**< tokens: 0 launches nothing */
    uint64_t x;        /**< [m, k], row stride x_stride ≥ k */
    uint64_t w;        /**< [n, k], row stride w_stride ≥ k */
    uint64_t bias;     /**< [n] */
    uint64_t residual; /**< [m, n], row stride residual_stride ≥ n */
    uint64_t y;        /**< [m, n], row stride y_stride ≥ n */
    uint64_t x_stride, w_stride, residual_stride, y_stride; /**< 0 means the row itself */
    /**
     * Address of workspace_bytes bytes, at least ptxgen_dense_workspace_bytes, at a multiple of 16.
     * Zero the workspace once after allocating it; every launch leaves it ready for the next launch
     * in its stream. Launches that are in flight at the same time need a workspace each.
     */
    uint64_t workspace;
    uint64_t workspace_bytes;
    /** Bytes of the buffer at each address; 0: unchecked (kernel.h, "Arrays"). */
    uint64_t x_bytes, w_bytes, bias_bytes, residual_bytes, y_bytes;
} ptxgen_dense_args;

/** A plan's loaded entries, in one context. */
typedef struct ptxgen_dense ptxgen_dense;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_dense_family(void);
/** ptxgen_dispatch for this family; release the reference with ptxgen_dense_destroy. */
PTXGEN_API ptxgen_status ptxgen_dense_dispatch(ptxgen_dispatcher *dispatcher,
                                               const ptxgen_dense_spec *spec, ptxgen_dense **kernel,
                                               ptxgen_error *err);
/** Emits all entries of the plan and loads them into the current context, without a dispatcher. */
PTXGEN_API ptxgen_status ptxgen_dense_load(const ptxgen_driver *driver,
                                           const ptxgen_dense_plan *plan,
                                           const ptxgen_module_options *options,
                                           ptxgen_dense **kernel, ptxgen_error *err);
/** Unloads a kernel from load; releases a reference from dispatch. NULL does nothing. */
PTXGEN_API void ptxgen_dense_destroy(ptxgen_dense *kernel);
/** The driver's attributes of the entry that serves m tokens; NULL if there is none. */
PTXGEN_API const ptxgen_kernel_attributes *ptxgen_dense_attributes(const ptxgen_dense *kernel,
                                                                   uint64_t m);
/** Bytes of workspace that this launch needs, which may be 0; pure. */
PTXGEN_API ptxgen_status ptxgen_dense_workspace_bytes(const ptxgen_dense *kernel,
                                                      const ptxgen_dense_args *args,
                                                      uint64_t *bytes, ptxgen_error *err);
/**
 * Enqueues the product on `stream`: one kernel, and before it one more for each of x and w whose
 * rows do not start at multiples of 16 bytes or whose length is no multiple of 16 bytes. A launch
 * does not allocate or synchronise, and may be captured. Errors, before anything runs:
 * PTXGEN_ERROR_INVALID_ARGUMENT, with the name of the argument, for a null or misaligned address, a
 * stride below its row, a buffer that is too small, arrays that overlap, an m above the plan's
 * max_m or a workspace that is too small; and those of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_dense_launch(const ptxgen_dense *kernel,
                                             const ptxgen_dense_args *args, ptxgen_cu_stream stream,
                                             ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
