/* SPDX-License-Identifier: Apache-2.0 */
/**
 * w8a8: a linear layer over 8-bit weights, with activations quantised to 8 bits on the way.
 *
 *     q[m,k]   = clamp(round(x[m,k] / sx[m]) + z[m], q_min, q_max)
 *     acc[m,n] = Σ_k (q[m,k] − z[m]) · W[n,k]
 *     y[m,n]   = acc[m,n] · sx[m] · sw[n]  (+ bias[n])
 *
 * W is s8 [N,K], row-major, with one scale a row (−128 is an ordinary weight); x is [M,K] and y
 * [M,N], each f32, f64, f16 or bf16. M, the tokens, belongs to the launch: 0 launches nothing, the
 * most is 2³¹ − 1. K and N are any; rows of W that are no multiples of 16 bytes are brought to such by
 * every launch (up to 32 tokens: if they are no multiples of 4), so pack them with a padded stride
 * (ptxgen_w8a8_pack).
 *
 * The rules, which kernel and reference share bit for bit:
 *   - All is computed in the *work type*: f64 when x or y is f64, else f32. Scales and biases are
 *     given in it. Every operation is rounded to nearest even; none is contracted.
 *   - Scales of x: DYNAMIC, one a token from the token itself; TENSOR, one given for all tokens;
 *     TOKEN, one given for each. A given scale is positive and finite.
 *       symmetric   sx = max|x| / q_max, z = 0
 *       asymmetric  with hi = max(0, max x), lo = min(0, min x), R = q_max − q_min:
 *                   sx = hi / R − lo / R, z = clamp(q_min − round(lo / sx), q_min, q_max)
 *     A scale that comes out as 0 is 1 instead: so for a row of zeros, whose outputs are just the
 *     bias (0 without one).
 *   - round() is to the nearest integer, ties to even, of a quotient that is itself rounded.
 *   - A token with a NaN or infinity in x gives NaN in its own row of y only. Its codes are 0.
 *   - acc is exact: a spec whose sums could leave s32 is refused. That is K above 132,104 at
 *     −127 … 127 and K above 131,071 with −128.
 *   - y = ((acc · sx) · sw) + bias from left to right, then rounded to y's type; from f64 to f16 or
 *     bf16 by way of f32.
 *
 * A few tokens (one, or up to 8 whose rows of x take 16 KB together) take one launch: each CTA
 * quantises them for itself while its first weights arrive. More take two: a kernel that
 * quantises once into the workspace, while (from sm_90 on) the first weights are fetched, then
 * the product. Before both a third brings rows of W to multiples of 16 bytes, where that is needed,
 * in the workspace. A plan says which (ptxgen_w8a8_explain). The workspace belongs to the caller,
 * its size is a query, it needs no preparation; launches that may run at the same time need one
 * each.
 *
 *     ptxgen_w8a8_spec spec = {.k = 8192, .n = 8192, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
 *     ptxgen_w8a8_plan plan;
 *     ptxgen_w8a8_make_plan(&spec, &target, &plan, &err);
 *     ptxgen_w8a8 *kernel;
 *     ptxgen_w8a8_load(&driver, &plan, NULL, &kernel, &err);
 *     ptxgen_w8a8_args args = {.m = m, .x = x, .w = w, .w_scale = sw, .y = y};
 *     ptxgen_w8a8_workspace_bytes(kernel, &args, &args.workspace_bytes, &err);
 *     args.workspace = …;                                     // of so many bytes
 *     ptxgen_w8a8_launch(kernel, &args, stream, &err);
 *
 * Plans and specs are plain values: zero them, fill them, copy and compare them with memcmp. All
 * functions but load, dispatch, destroy and launch are pure and may be called from any thread; of
 * these, kernel.h and dispatch.h say what several threads may do at once.
 */
#ifndef PTXGEN_W8A8_H
#define PTXGEN_W8A8_H

#include <ptxgen/dispatch.h>
#include <ptxgen/kernel.h>
#include <ptxgen/target.h>
#include <ptxgen/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where the scales (and zero points) of the activations come from. */
typedef enum ptxgen_w8a8_scales {
    PTXGEN_W8A8_DYNAMIC = 0,
    PTXGEN_W8A8_TENSOR = 1,
    PTXGEN_W8A8_TOKEN = 2
} ptxgen_w8a8_scales;

/** Every specialisation constant; zero it before filling it in, it is a cache key. */
typedef struct ptxgen_w8a8_spec {
    uint32_t k, n;
    uint32_t w_stride; /**< bytes from one row of W to the next, at least K; 0 means K */
    uint32_t min_m, max_m;  /**< M that will be launched; max_m 0: any from min_m on */
    int16_t q_min, q_max;   /**< −128 ≤ q_min ≤ 0 < q_max ≤ 127; both 0 mean −127, 127 */
    uint8_t x_type, y_type; /**< ptxgen_element */
    uint8_t scales;         /**< ptxgen_w8a8_scales */
    uint8_t asymmetric;     /**< 1: with zero points and row sums of W */
    uint8_t bias;           /**< 1: biases of the work type are added */
    uint8_t reserved[3];
} ptxgen_w8a8_spec;

/** The work type of a spec: PTXGEN_F64 or PTXGEN_F32. */
PTXGEN_API ptxgen_element ptxgen_w8a8_work_type(const ptxgen_w8a8_spec *spec);

/* ---- planning ---- */

/** How a variant multiplies. */
enum {
    PTXGEN_W8A8_MMA,  /**< mma.sync, operands copied by cp.async: every target */
    PTXGEN_W8A8_WGMMA /**< wgmma, operands copied in bulk: sm_90a */
};

/**
 * One product entry of the module. CTAs compute tiles of `tile_m` tokens by `tile_n` features (or a
 * few less: blocks of features are of equal size). With mma.sync eight warps, wm × wn × wk, divide
 * tokens, features and K, and each takes 128 bytes of K from a stage of the pipeline.
 *
 * With wgmma one to four producer warps issue the copies, and wk is blocks of 128 bytes of K in a
 * stage. Where tile_m is 64 or 128, tokens are the M of wgmma, 16 for each of the wm warps, and
 * tile_n / wn features its N; otherwise features are its M, 16 for each of the wn warps, and
 * tile_m / wm tokens its N.
 */
typedef struct ptxgen_w8a8_variant {
    uint32_t tile_m, tile_n;
    uint32_t wm, wn, wk;
    uint32_t stages;
    uint32_t blocks_n;             /**< tiles along N */
    uint32_t fused;                /**< 1: quantises for itself, one launch */
    uint32_t cluster;              /**< 2: two CTAs, a cluster, halve K among them; else 1 */
    uint32_t kind;                 /**< PTXGEN_W8A8_MMA or _WGMMA */
    uint32_t shared_bytes;         /**< of one CTA, in all */
    uint32_t dynamic_shared_bytes; /**< what a launch passes: all of it when above 48 KB, else 0 */
} ptxgen_w8a8_variant;

enum { PTXGEN_W8A8_VARIANTS = 6 };

typedef struct ptxgen_w8a8_plan {
    ptxgen_w8a8_spec spec; /**< with its defaults filled in */
    ptxgen_target target;
    uint32_t copy_bytes; /**< 16, 8, 4 or 1, that rows of W are a multiple of */
    uint32_t variant_count;
    ptxgen_w8a8_variant variants[PTXGEN_W8A8_VARIANTS]; /**< by rising tile_m */
} ptxgen_w8a8_plan;

/**
 * Validates the spec and chooses the tiles. Refuses with PTXGEN_ERROR_UNSUPPORTED and the rule: K
 * or N of 0, codes outside −128 … 127 or without 0, a K whose sums could overflow; with
 * PTXGEN_ERROR_INVALID_ARGUMENT a stride below K, or a min_m above max_m.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_make_plan(const ptxgen_w8a8_spec *spec,
                                               const ptxgen_target *target, ptxgen_w8a8_plan *plan,
                                               ptxgen_error *err);
/**
 * Makes `tile` the plan's only variant, for measuring it: its tile_m, tile_n (0: as even a share as
 * fits), warps, stages (0: all that fit), fused, cluster (0: 1) and kind count; the rest is worked
 * out here. Errors: PTXGEN_ERROR_INVALID_ARGUMENT for a number out of its range,
 * PTXGEN_ERROR_UNSUPPORTED for a cluster or a kind that the target or a size does not allow,
 * PTXGEN_ERROR_SHARED_MEMORY for a tile that no CTA holds.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_use_tile(ptxgen_w8a8_plan *plan,
                                              const ptxgen_w8a8_variant *tile, ptxgen_error *err);
/** The variant that serves m tokens, or NULL when m is 0 or outside what the spec says. */
PTXGEN_API const ptxgen_w8a8_variant *ptxgen_w8a8_choose(const ptxgen_w8a8_plan *plan, uint64_t m);
/** The entry's name: "w8a8_fused", "w8a8_m16", … "w8a8_m256". */
PTXGEN_API const char *ptxgen_w8a8_entry(const ptxgen_w8a8_variant *variant);
/** CTAs of the product for m tokens. */
PTXGEN_API ptxgen_status ptxgen_w8a8_ctas(const ptxgen_w8a8_plan *plan, uint64_t m, uint32_t *ctas,
                                          ptxgen_error *err);
/** One sentence: what a launch of m tokens runs, and why. */
PTXGEN_API void ptxgen_w8a8_explain(const ptxgen_w8a8_plan *plan, uint64_t m, char *text,
                                    size_t size);
/**
 * Emits the entries of `variants` (a bit for each of the plan's; ~0u: all), "w8a8_quantise" and
 * "w8a8_align" before them where one of these needs them. A spec with min_m and max_m has
 * fewer variants, and the assembler less to do.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_emit(const ptxgen_w8a8_plan *plan, uint32_t variants,
                                          ptx_module *module, ptxgen_error *err);

/* ---- weights on the host ---- */

/** A weight matrix to be quantised. */
typedef struct ptxgen_w8a8_weights {
    uint32_t n, k;
    ptxgen_element type; /**< of w */
    const void *w;       /**< [n, k], packed */
    /**
     * 0 or 100: the scale of a row is max|w| / 127. Below that its largest magnitudes are clipped:
     * the scale is that of the magnitude of rank ⌈percentile/100 · k⌉, counted from the smallest.
     */
    double percentile;
} ptxgen_w8a8_weights;

/**
 * Quantises rows one by one to −127 … 127: code = clamp(round(w / scale)), in f32 or f64 as
 * `scale_type` says, with the rounding of the activations. A scale that comes out as 0 is 1.
 * codes is [n] rows `stride` ≥ k bytes apart, whose padding is zeroed; scales is [n]. Refuses
 * weights that are not finite, naming the first.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_quantise(const ptxgen_w8a8_weights *weights, uint32_t stride,
                                              int8_t *codes, ptxgen_element scale_type,
                                              void *scales, ptxgen_error *err);
/** The stride that packed rows of k bytes should have: k rounded up to a multiple of 16. */
PTXGEN_API uint32_t ptxgen_w8a8_stride(uint32_t k);
/** Copies n rows of k codes to rows `stride` bytes apart, the padding zeroed. */
PTXGEN_API ptxgen_status ptxgen_w8a8_pack(uint32_t n, uint32_t k, const int8_t *codes,
                                          uint32_t stride, int8_t *packed, ptxgen_error *err);
/** Sums of the n rows, for asymmetric activations. |sum| < 2³¹ is the caller's, by the plan. */
PTXGEN_API ptxgen_status ptxgen_w8a8_row_sums(uint32_t n, uint32_t k, const int8_t *codes,
                                              uint32_t stride, int32_t *sums, ptxgen_error *err);

/* ---- the reference ---- */

/** What ptxgen_w8a8_args says in device addresses, in host memory. Aligned to their elements. */
typedef struct ptxgen_w8a8_operands {
    uint64_t m;
    const void *x;         /**< [m, k] of x's type, rows x_stride elements apart (0: k) */
    const int8_t *w;       /**< [n, k], rows w_stride of the spec apart */
    const void *w_scale;   /**< work type [n] */
    const void *bias;      /**< work type [n]; or NULL where the spec has none */
    const void *x_scale;   /**< TENSOR: [1], TOKEN: [m], of the work type */
    const int32_t *x_zero; /**< the same where asymmetric, within q_min … q_max */
    uint64_t x_stride;
} ptxgen_w8a8_operands;

/** A token after quantisation. */
typedef struct ptxgen_w8a8_token {
    double scale; /**< NaN for a token whose outputs are NaN; a value of the work type */
    int32_t zero;
} ptxgen_w8a8_token;

/**
 * Quantises token `m`: its k codes, and its scale and zero point. Refuses a given scale that is not
 * positive and finite, and a given zero point outside q_min … q_max, by number and value; a launch,
 * whose scales are on the device, does not look.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_reference_codes(const ptxgen_w8a8_spec *spec,
                                                     const ptxgen_w8a8_operands *operands,
                                                     uint64_t m, int8_t *codes,
                                                     ptxgen_w8a8_token *token, ptxgen_error *err);
/**
 * Features first_n … first_n + count − 1 of one token: y [count] of y's type, with the very bits
 * that a kernel writes (whatever NaN stands for), and, unless NULL, acc [count]. `codes` and
 * `token` are those of ptxgen_w8a8_reference_codes.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_reference(const ptxgen_w8a8_spec *spec,
                                               const ptxgen_w8a8_operands *operands,
                                               const int8_t *codes, const ptxgen_w8a8_token *token,
                                               uint32_t first_n, uint32_t count, void *y,
                                               int32_t *acc, ptxgen_error *err);

/* ---- running it ---- */

/**
 * What a launch works on: device addresses, strides in elements. Members that the spec does not
 * use are ignored. Zero it before filling it in.
 *
 * Everything may start at any multiple of its element's size, but W, which needs the plan's
 * copy_bytes, and the workspace, which needs 256. Bytes of W between its rows may hold anything,
 * and are read; so W is n · stride bytes. x is read fastest where rows start at multiples of 16
 * bytes.
 *
 * What is written overlaps no other array of the launch (kernel.h, "Arrays").
 */
typedef struct ptxgen_w8a8_args {
    uint64_t m;                  /**< tokens: 0 launches nothing, fewer than 2³¹ */
    uint64_t x;                  /**< [m, k], row stride x_stride ≥ k */
    uint64_t w;                  /**< s8 [n, k], row stride of the spec */
    uint64_t w_scale;            /**< [n] of the work type */
    uint64_t w_sum;              /**< asymmetric: s32 [n], sums of W's rows */
    uint64_t bias;               /**< [n] of the work type */
    uint64_t x_scale;            /**< TENSOR: [1], TOKEN: [m], of the work type */
    uint64_t x_zero;             /**< asymmetric TENSOR: s32 [1], TOKEN: s32 [m] */
    uint64_t y;                  /**< [m, n], row stride y_stride ≥ n */
    uint64_t x_stride, y_stride; /**< below 2³²; 0 means k and n */
    uint64_t workspace;          /**< scratch, of any contents */
    uint64_t workspace_bytes;    /**< at least ptxgen_w8a8_workspace_bytes */
    /**
     * 1 (sm_90 and later): the launch may begin before the kernel ahead of it in the stream has
     * ended (programmatic dependent launch). It then reads only W until that kernel's results are
     * visible, so that kernel must not be the one that writes W. A launch that brings W to
     * multiples of 16 bytes begins when that kernel has ended.
     */
    uint32_t overlap_previous;
} ptxgen_w8a8_args;

/** A plan's loaded entries, in one context. */
typedef struct ptxgen_w8a8 ptxgen_w8a8;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_w8a8_family(void);
/** ptxgen_dispatch for this family: one reference, given back with ptxgen_w8a8_destroy. */
PTXGEN_API ptxgen_status ptxgen_w8a8_dispatch(ptxgen_dispatcher *dispatcher,
                                              const ptxgen_w8a8_spec *spec, ptxgen_w8a8 **kernel,
                                              ptxgen_error *err);

/**
 * Emits the plan's text and loads it into the current context. Errors: the builder's and the
 * driver's; PTXGEN_ERROR_TARGET when the plan's target does not run on the context's device.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_load(const ptxgen_driver *driver, const ptxgen_w8a8_plan *plan,
                                          const ptxgen_module_options *options,
                                          ptxgen_w8a8 **kernel, ptxgen_error *err);
PTXGEN_API void ptxgen_w8a8_destroy(ptxgen_w8a8 *kernel);
/** The driver's attributes of the product entry that serves m tokens; NULL when none does. */
PTXGEN_API const ptxgen_kernel_attributes *ptxgen_w8a8_attributes(const ptxgen_w8a8 *kernel,
                                                                  uint64_t m);
/** Bytes of workspace that this launch needs, which may be 0; pure. */
PTXGEN_API ptxgen_status ptxgen_w8a8_workspace_bytes(const ptxgen_w8a8 *kernel,
                                                     const ptxgen_w8a8_args *args, uint64_t *bytes,
                                                     ptxgen_error *err);
/**
 * Enqueues the layer on `stream`: up to three kernels, no allocation, no synchronisation,
 * capturable. Errors, before anything runs: PTXGEN_ERROR_INVALID_ARGUMENT naming the argument for a
 * null or misaligned address, a stride below its row, arrays that overlap, an m that the spec
 * excludes or a workspace that is too small; PTXGEN_ERROR_UNSUPPORTED for an m or a stride that the
 * kernel cannot hold; and those of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_launch(const ptxgen_w8a8 *kernel, const ptxgen_w8a8_args *args,
                                            ptxgen_cu_stream stream, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
