/* SPDX-License-Identifier: Apache-2.0 */
/**
 * w8a8: a linear layer with 8-bit weights, whose launches also quantise the activations to 8 bits.
 *
 *     q[m,k]   = clamp(round(x[m,k] / sx[m]) + z[m], q_min, q_max)
 *     acc[m,n] = Σ_k (q[m,k] − z[m]) · w[n,k]
 *     v[m,n]   = acc[m,n] · sx[m] · sw[n]  (+ bias[n])
 *     y[m,n]   = f(v[m,n])  (+ residual[m,n])      f: identity, SiLU, GELU or ReLU
 *     y[m,n]   = silu(v) · v'  (+ residual[m,n])   with PTXGEN_EPILOGUE_SWIGLU: v of gate, v' of up
 *
 *     x         [M, K]  activations of M tokens: f32, f64, f16 or bf16
 *     w         [N, K]  weights of N output features, codes as those of x, with a scale sw for each
 *                       feature
 *     y         [M, N]  outputs: f32, f64, f16 or bf16; residual likewise, bias [N]
 *
 * Codes are s8, or e4m3: numbers of 8 bits with three bits of mantissa (fp8). Where those of x are
 * e4m3, those of w may be e5m2, with two bits of mantissa and a wider range. M is an argument of
 * the launch, up to 2³¹ − 1; K and N may have any value. If the rows of w are no multiples of 16
 * bytes (with up to 32 tokens: of 4 bytes), every launch copies w first, so pack such weights with
 * a padded stride (ptxgen_w8a8_pack).
 *
 * The rules, which kernel and reference share bit for bit where codes are s8:
 *   - All is computed in the *work type*, which is f64 when x or y is f64, else f32. Scales and
 *     biases have the work type. Every operation is rounded to nearest even; none is contracted.
 *   - Scales of x: with DYNAMIC the scale of a token is computed from that token; with TENSOR one
 *     scale is given for all tokens; with TOKEN a scale is given for each token. A given scale is
 *     positive and finite.
 *       symmetric   sx = max|x| / q_max, z = 0
 *       asymmetric  with hi = max(0, max x), lo = min(0, min x), R = q_max − q_min:
 *                   sx = hi / R − lo / R, z = clamp(q_min − round(lo / sx), q_min, q_max)
 *     A computed scale of 0 is replaced by 1, as for a token of zeros, whose outputs are the bias
 *     (0 without a bias).
 *   - round() rounds to the nearest integer, ties to even; the quotient has been rounded before.
 *   - A token with a NaN or infinity in x gives NaN in its own row of y only. Its codes are 0.
 *   - −128 is an ordinary weight. acc is exact: a spec whose sums could exceed s32 is refused,
 *     that is, K above 132,104 for codes from −127 to 127, and K above 131,071 with −128.
 *   - v = ((acc · sx) · sw) + bias, and v + residual, are computed from left to right, and y is
 *     rounded to its type; f64 is rounded to f32 first if y is f16 or bf16.
 *   - A function f, SwiGLU and a residual need a work type of f32. f and SwiGLU are not exact:
 *     ptxgen_w8a8_reference_bound states how far y may be off.
 *
 * Where codes are e4m3 (sm_89 and later):
 *   - q[m,k] = x[m,k] / sx[m], rounded to f32, then to the nearest e4m3 number, ties to even;
 *     larger ones become 448, the largest; the code of 0 and of −0 is +0. With DYNAMIC sx = max|x|
 * / 448. There are no zero points.
 *   - acc is f32. Tensor cores may keep only 13 bits while they add e4m3 products, so these are
 *     summed for at most 128 of K at a time, and the rest in f32; ptxgen_w8a8_reference_bound
 *     states how far y may be off. Launches of the same plan with the same M and operands give
 *     the same bits.
 *   - A weight that is NaN makes its feature's outputs NaN. Infinite weights of e5m2 are multiplied
 *     and added as IEEE 754 has it: with others, with codes that are 0, and with scales that are 0
 *     the sum is NaN, else it is infinite.
 *   - x and y are f32, f16 or bf16; K is at most 131,072.
 *
 * With a group of 128, scales are of parts of K, as DeepSeek's checkpoints have them, and sums are
 * scaled while they are added. b is ⌊k / 128⌋, and G = ⌈K / 128⌉; the last part may be shorter.
 *
 *     q[m,k]   = x[m,k] / sx[m,b]             sx[m,b] = max|x[m,k]| / 448 of those k
 *     acc[m,n] = Σ_b (Σ_k q[m,k] · w[n,k]) · (sx[m,b] · sw[⌊n / 128⌋, b])
 *     v[m,n]   = acc[m,n]  (+ bias[n])
 *
 *   - Codes are e4m3; x's scales are dynamic, or x is the caller's codes with scales [M, G].
 *   - sw is [⌈N / 128⌉, G] and finite; with SwiGLU those of gate, then as many of up.
 *   - The sum of a part is as above, the product of both scales is rounded to f32, and acc is added
 *     up by fma in f32.
 *   - A part with a NaN or an infinity in x has codes 0 and the scale NaN.
 *
 * With SwiGLU w has 2·N rows, in blocks of 16: eight of gate, then the same eight of up. w_scale,
 * w_sum and bias have 2·N elements in the same order. ptxgen_w8a8_pair brings rows into this order.
 * N is a multiple of 8.
 *
 * Where the caller has quantised x (PTXGEN_W8A8_QUANTISED), as <ptxgen/quantise.h> does for several
 * products at once, x is codes [M, K] of one byte each, and x_scale [M] f32, and with zero points
 * x_zero [M] s32, are those of the tokens. Exact outputs then have the bits of a launch that
 * quantises the same tokens for itself; a token whose scale is NaN has outputs that are NaN. x_type
 * is not used, and y is f32, f16 or bf16. The launch is one kernel, which may begin before the
 * codes are there (overlap_previous). Rows of x that do not start at multiples of 16 bytes, and
 * those of a K that is no multiple of 16, are copied first. Where a launch needs a workspace, for
 * tiles that several CTAs divide or for copies, zero it once: launches leave 0 what has to be 0,
 * as long as none uses that memory but those of such kernels.
 *
 * Otherwise, without groups, with few tokens (one, or up to 8 whose rows of x take 16 KB together)
 * the layer is one kernel: each CTA quantises the tokens for itself while its first weights arrive.
 * With more tokens it is two kernels: one quantises x into the workspace, and the other multiplies;
 * from sm_90 on the second copies its first weights meanwhile. Where w has to be copied, another
 * kernel does that before both. ptxgen_w8a8_explain says which kernels a launch has. The caller
 * allocates the workspace, whose contents then do not matter; launches that may run at the same
 * time need a workspace each.
 *
 *     ptxgen_w8a8_spec spec = {.k = 8192, .n = 8192, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
 *     ptxgen_w8a8_plan plan;
 *     ptxgen_w8a8_make_plan(&spec, &target, &plan, &err);
 *     ptxgen_w8a8 *kernel;
 *     ptxgen_w8a8_load(&driver, &plan, NULL, &kernel, &err);
 *     ptxgen_w8a8_args args = {.m = m, .x = x, .w = w, .w_scale = sw, .y = y};
 *     ptxgen_w8a8_workspace_bytes(kernel, &args, &args.workspace_bytes, &err);
 *     args.workspace = …;                                     // workspace_bytes bytes
 *     ptxgen_w8a8_launch(kernel, &args, stream, &err);
 *
 * Plans and specs are plain values: zero them, fill them, copy and compare them with memcmp. All
 * functions are pure and may be called from any thread, except for load, dispatch, destroy and
 * launch, for which kernel.h and dispatch.h say what several threads may do at the same time.
 */
#ifndef PTXGEN_W8A8_H
#define PTXGEN_W8A8_H

#include <ptxgen/accuracy.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/guarantee.h>
#include <ptxgen/kernel.h>
#include <ptxgen/target.h>
#include <ptxgen/tile.h>
#include <ptxgen/types.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The source of the scales (and zero points) of the activations; see the rules above. */
typedef enum ptxgen_w8a8_scales {
    PTXGEN_W8A8_DYNAMIC = 0,
    PTXGEN_W8A8_TENSOR = 1,
    PTXGEN_W8A8_TOKEN = 2,
    PTXGEN_W8A8_QUANTISED = 3 /**< x is codes already, with a scale for each token */
} ptxgen_w8a8_scales;

/** The type of the codes of weights and activations. */
typedef enum ptxgen_w8a8_codes {
    PTXGEN_W8A8_S8 = 0,
    PTXGEN_W8A8_E4M3 = 1, /**< sign, 4 bits of exponent, 3 of mantissa; 0x7F and 0xFF are NaN */
    PTXGEN_W8A8_E5M2 = 2  /**< weights alone: 5 bits of exponent, 2 of mantissa; 0x7C is infinite */
} ptxgen_w8a8_codes;

/** How many of K, and of w's features, share a scale where not all of a row do. */
enum { PTXGEN_W8A8_GROUP = 128 };

/** All constants for which code is specialised. A spec is a cache key: zero it, then fill it. */
typedef struct ptxgen_w8a8_spec {
    uint32_t k, n;
    uint32_t w_stride;     /**< bytes from one row of w to the next, at least K; 0 means K */
    uint32_t min_m, max_m; /**< the least and the most tokens of a launch; max_m 0: no limit */
    /** s8: −128 ≤ q_min ≤ 0 < q_max ≤ 127, and both 0 mean −127, 127; e4m3: 0, in plans ±448 */
    int16_t q_min, q_max;
    uint8_t x_type, y_type; /**< ptxgen_element */
    uint8_t scales;         /**< ptxgen_w8a8_scales */
    uint8_t asymmetric;     /**< 1, only with s8: with zero points, and with sums of w's rows */
    uint8_t bias;           /**< 1: biases of the work type are added */
    uint8_t codes;          /**< ptxgen_w8a8_codes of x, and of w unless w_codes says otherwise */
    uint8_t epilogue;       /**< ptxgen_epilogue; with SwiGLU n is of gate and of up each */
    uint8_t activation;     /**< ptxgen_activation; none with SwiGLU, which has its own */
    uint8_t residual;       /**< 1: a residual of y's type is added to y */
    uint8_t group;          /**< 0, or with e4m3 128: scales of groups of K and of blocks of w */
    uint8_t w_codes;        /**< 0, or with e4m3 PTXGEN_W8A8_E5M2: the codes of w */
    uint8_t reserved;       /**< 0 */
} ptxgen_w8a8_spec;

/** The work type of a spec: PTXGEN_F64 or PTXGEN_F32. */
PTXGEN_API ptxgen_element ptxgen_w8a8_work_type(const ptxgen_w8a8_spec *spec);
/**
 * Whether outputs are exact: codes are s8, and there is no function and no SwiGLU. Then kernels
 * and ptxgen_w8a8_reference have the same bits; otherwise ptxgen_w8a8_reference_bound says how far
 * they may be apart.
 */
PTXGEN_API bool ptxgen_w8a8_is_exact(const ptxgen_w8a8_spec *spec);

/* ---- planning ---- */

/*
 * Tiles (tile.h). A CTA computes tile_m tokens by tile_n features, or a few less, since the
 * blocks_n tiles along N have equal sizes. With PTXGEN_MMA eight warps, wm × wn × wk, divide
 * tokens, features and K, and each takes 128 bytes of K from a stage; the two CTAs of a cluster
 * divide K. A fused tile has each CTA quantise the tokens for itself.
 *
 * With PTXGEN_WGMMA (sm_90a) one to four producer warps issue the copies, and wk is blocks of 128
 * bytes of K in a stage. Where tile_m is 64 or more, tokens are the M of wgmma, 16 for each of the
 * wm warps, and tile_n / wn features its N; otherwise features are its M, 16 for each of the wn
 * warps, and tile_m / wm tokens its N. There is no PTXGEN_BULK.
 */

enum { PTXGEN_W8A8_VARIANTS = 8 };

typedef struct ptxgen_w8a8_plan {
    ptxgen_w8a8_spec spec; /**< with its defaults filled in */
    ptxgen_target target;
    uint32_t copy_bytes; /**< 16, 8, 4 or 1: the largest of these that divides w_stride */
    uint32_t variant_count;
    ptxgen_tile variants[PTXGEN_W8A8_VARIANTS]; /**< by rising tile_m */
} ptxgen_w8a8_plan;

/**
 * Validates the spec and chooses the tiles. Refuses with PTXGEN_ERROR_UNSUPPORTED and the rule: N
 * above 2³¹ − 1, codes outside −128 … 127 or without 0, a K whose sums could overflow, e4m3 codes
 * with f64, zero points or a range, weights of e5m2 with s8 codes, a group other than 128, with s8
 * codes, or with given scales of x that is not codes, a function, SwiGLU, a residual or the
 * caller's codes with f64, and SwiGLU with an N that is no multiple of 8; with PTXGEN_ERROR_TARGET
 * e4m3 codes before sm_89 or PTX 8.4; with PTXGEN_ERROR_INVALID_ARGUMENT a stride below K, a min_m
 * above max_m, or a function with SwiGLU.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_make_plan(const ptxgen_w8a8_spec *spec,
                                               const ptxgen_target *target, ptxgen_w8a8_plan *plan,
                                               ptxgen_error *err);
/**
 * Makes `tile` the plan's only variant, to measure it: its kind, tile_m, tile_n (0: the most even
 * division of N that fits), wn, wm and wk (0: 1, with wgmma what suits the tile), stages (0: all
 * that fit), fused and cluster (0: 1) are used, and the other members are computed here. Errors:
 * PTXGEN_ERROR_INVALID_ARGUMENT for a number out of its range, PTXGEN_ERROR_UNSUPPORTED for a
 * cluster or a kind that the target or a size does not allow, PTXGEN_ERROR_SHARED_MEMORY for a tile
 * that no CTA holds.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_use_tile(ptxgen_w8a8_plan *plan, const ptxgen_tile *tile,
                                              ptxgen_error *err);
/**
 * The variant that serves m tokens; NULL when m is 0 or not between the spec's min_m and max_m, or N
 * or K is 0.
 */
PTXGEN_API const ptxgen_tile *ptxgen_w8a8_choose(const ptxgen_w8a8_plan *plan, uint64_t m);
/**
 * The entry's name in the module: "w8a8_fused", or as "w8a8_m16" and "w8a8_m128_n64" by tokens and
 * features. Names are stable (guarantee.h).
 */
PTXGEN_API const char *ptxgen_w8a8_entry(const ptxgen_tile *variant);
/** What a launch of m > 0 tokens promises (guarantee.h). Refuses an m that the plan does not serve.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_guarantee(const ptxgen_w8a8_plan *plan, uint64_t m,
                                               ptxgen_guarantee *guarantee, ptxgen_error *err);
/** CTAs of the product for m tokens. */
PTXGEN_API ptxgen_status ptxgen_w8a8_ctas(const ptxgen_w8a8_plan *plan, uint64_t m, uint32_t *ctas,
                                          ptxgen_error *err);
/** Writes one sentence for people to read: which kernels a launch of m tokens has, and why. */
PTXGEN_API void ptxgen_w8a8_explain(const ptxgen_w8a8_plan *plan, uint64_t m, char *text,
                                    size_t size);
/**
 * Emits the entries of `variants`, which has a bit for each variant of the plan (~0u: all), and
 * before them "w8a8_quantise" and "w8a8_align" if one of the variants needs these. A spec with
 * min_m and max_m has fewer variants, which take the assembler less time.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_emit(const ptxgen_w8a8_plan *plan, uint32_t variants,
                                          ptx_module *module, ptxgen_error *err);

/* ---- weights on the host ---- */

/** A weight matrix to be quantised. */
typedef struct ptxgen_w8a8_weights {
    uint32_t n, k;
    ptxgen_element type; /**< of w */
    const void *w;       /**< [n, k], in contiguous rows */
    /**
     * 0 or 100: the scale of a row is max|w| / 127. Other values clip the largest magnitudes of a
     * row: max|w| is replaced by the magnitude of rank ⌈percentile/100 · k⌉, counted from the
     * smallest.
     */
    double percentile;
    ptxgen_w8a8_codes codes; /**< e4m3: 448 stands in place of 127; e5m2: 57344 */
} ptxgen_w8a8_weights;

/**
 * Quantises each row to codes from −127 to 127, code = clamp(round(w / scale)), or to e4m3 or e5m2
 * numbers, as the activations are: computed in f32 or f64 as `scale_type` says, with the rounding rules of
 * the activations. A computed scale of 0 is replaced by 1. `codes` has n rows `stride` ≥ k bytes
 * apart, whose padding is zeroed; `scales` is [n]. Refuses weights that are not finite, with the
 * place of the first.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_quantise(const ptxgen_w8a8_weights *weights, uint32_t stride,
                                              int8_t *codes, ptxgen_element scale_type,
                                              void *scales, ptxgen_error *err);
/** The stride that packed rows of k bytes should have: k rounded up to a multiple of 16. */
PTXGEN_API uint32_t ptxgen_w8a8_stride(uint32_t k);
/** Copies n rows of k codes to rows that are `stride` bytes apart, and zeroes the padding. */
PTXGEN_API ptxgen_status ptxgen_w8a8_pack(uint32_t n, uint32_t k, const int8_t *codes,
                                          uint32_t stride, int8_t *packed, ptxgen_error *err);
/** Computes the sums of the n rows, for asymmetric activations. For a K that make_plan accepts no
 *  sum exceeds s32. */
PTXGEN_API ptxgen_status ptxgen_w8a8_row_sums(uint32_t n, uint32_t k, const int8_t *codes,
                                              uint32_t stride, int32_t *sums, ptxgen_error *err);

/**
 * Brings rows of gate and of up, n of `bytes` bytes each without gaps, into the order that SwiGLU
 * takes: codes (packed to the stride), scales, sums or biases. `to` has 2·n rows. Refuses an n that
 * is no multiple of 8.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_pair(uint32_t n, size_t bytes, const void *gate,
                                          const void *up, void *to, ptxgen_error *err);

/* ---- the reference ---- */

/** The arrays of ptxgen_w8a8_args in host memory, each aligned to its elements. */
typedef struct ptxgen_w8a8_operands {
    uint64_t m;
    const void *x;         /**< [m, k] of x's type, or codes, rows x_stride elements apart (0: k) */
    const int8_t *w;       /**< codes [n, k], s8 or bytes of e4m3 or e5m2, rows w_stride apart */
    const void *w_scale;   /**< work type [n]; with a group [⌈n / 128⌉, ⌈k / 128⌉] */
    const void *bias;      /**< work type [n]; or NULL where the spec has none */
    const void *x_scale;   /**< TENSOR: [1], TOKEN: [m], QUANTISED: [m] or [m, G] */
    const int32_t *x_zero; /**< asymmetric: as many, from q_min to q_max */
    uint64_t x_stride;
    const void *residual; /**< [m, n] of y's type, rows residual_stride elements apart (0: n) */
    uint64_t residual_stride;
} ptxgen_w8a8_operands;

/** A token after quantisation. */
typedef struct ptxgen_w8a8_token {
    double scale; /**< NaN for a token whose outputs are NaN; a value of the work type */
    int32_t zero;
    uint64_t m; /**< its number */
    float *scales; /**< with a group: the caller's room for the scales of the token's groups */
} ptxgen_w8a8_token;

/**
 * Quantises token `m`: computes its k codes, its scale and its zero point; with a group the scales
 * of its groups, and `scale` is NaN where one of these is, else 1. Refuses a given scale
 * that is not positive and finite, and a given zero point below q_min or above q_max, with its
 * index and value. A launch, whose scales are on the device, does not check them.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_reference_codes(const ptxgen_w8a8_spec *spec,
                                                     const ptxgen_w8a8_operands *operands,
                                                     uint64_t m, int8_t *codes,
                                                     ptxgen_w8a8_token *token, ptxgen_error *err);
/**
 * Computes features first_n to first_n + count − 1 of one token: y [count] of y's type, with the
 * same bits that a kernel writes (but for the bits of a NaN), and acc [count] unless `acc` is NULL.
 * `codes` and `token` are the results of ptxgen_w8a8_reference_codes. Refuses specs that are not
 * exact.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_reference(const ptxgen_w8a8_spec *spec,
                                               const ptxgen_w8a8_operands *operands,
                                               const int8_t *codes, const ptxgen_w8a8_token *token,
                                               uint32_t first_n, uint32_t count, void *y,
                                               int32_t *acc, ptxgen_error *err);

/**
 * The same for a plan that is not exact: computes y [count] in double precision, and the bound
 * [count] of the error of the output of the plan's kernel for operands->m tokens
 * (ptxgen/accuracy.h; NaN where there is no statement, as where acc · sx leaves the range of f32),
 * and spread [count] unless `spread` is NULL. Errors: PTXGEN_ERROR_UNSUPPORTED for a plan whose
 * outputs are exact; PTXGEN_ERROR_OUT_OF_MEMORY.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_reference_bound(
    const ptxgen_w8a8_plan *plan, const ptxgen_w8a8_operands *operands, const int8_t *codes,
    const ptxgen_w8a8_token *token, uint32_t first_n, uint32_t count, double *y, double *bound,
    ptxgen_spread *spread, ptxgen_error *err);

/* ---- running it ---- */

/**
 * The arguments of a launch: device addresses, and strides in elements. Zero it, then fill it.
 * Members that the spec does not use are ignored.
 *
 * An array may start at any multiple of its element's size, except for w, which starts at a
 * multiple of the plan's copy_bytes, and the workspace, which starts at a multiple of 256 bytes.
 * The bytes of w between its rows may have any value, but are read, so w has n · w_stride bytes. x
 * is read faster if its rows start at multiples of 16 bytes.
 *
 * Arrays that are written must not overlap any other array of the launch (kernel.h, "Arrays"), but
 * y may be the residual itself.
 */
typedef struct ptxgen_w8a8_args {
    uint64_t m;                  /**< tokens: 0 launches nothing, fewer than 2³¹ */
    uint64_t x;                  /**< [m, k], row stride x_stride ≥ k */
    uint64_t w;                  /**< codes [n, k], row stride of the spec */
    uint64_t w_scale;            /**< [n] of the work type; with a group see the rules */
    uint64_t w_sum;              /**< asymmetric: s32 [n], sums of w's rows */
    uint64_t bias;               /**< [n] of the work type */
    uint64_t x_scale;            /**< TENSOR: [1], TOKEN: [m], QUANTISED: [m] or [m, G] */
    uint64_t x_zero;             /**< asymmetric: s32, as many */
    uint64_t y;                  /**< [m, n], row stride y_stride ≥ n */
    uint64_t x_stride, y_stride; /**< below 2³²; 0 means k and n */
    uint64_t workspace;          /**< scratch memory; with QUANTISED zeroed once */
    uint64_t workspace_bytes;    /**< at least ptxgen_w8a8_workspace_bytes */
    /**
     * 1 (sm_90 and later): the launch may begin before the kernel ahead of it in the stream has
     * ended (programmatic dependent launch). It then reads only w until that kernel's results are
     * visible; who may have written it says kernel.h, "Overlap". A launch that has to copy w begins
     * when that kernel has ended.
     */
    uint32_t overlap_previous;
    /** Bytes of the buffer at each address; 0: unchecked (kernel.h, "Arrays"). */
    uint64_t x_bytes, w_bytes, w_scale_bytes, w_sum_bytes, bias_bytes;
    uint64_t x_scale_bytes, x_zero_bytes, y_bytes;
    uint64_t residual;        /**< [m, n] of y's type; may be y itself, with the same stride */
    uint64_t residual_stride; /**< at least n, below 2³²; 0 means n */
    uint64_t residual_bytes;
} ptxgen_w8a8_args;

/** A plan's loaded entries, in one context. */
typedef struct ptxgen_w8a8 ptxgen_w8a8;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_w8a8_family(void);
/** ptxgen_dispatch for this family; release the reference with ptxgen_w8a8_destroy. */
PTXGEN_API ptxgen_status ptxgen_w8a8_dispatch(ptxgen_dispatcher *dispatcher,
                                              const ptxgen_w8a8_spec *spec, ptxgen_w8a8 **kernel,
                                              ptxgen_error *err);

/**
 * Emits the plan's text and loads it into the current context, without a dispatcher. Errors: those
 * of the builder and the driver; PTXGEN_ERROR_TARGET if the plan's target does not run on the
 * context's device.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_load(const ptxgen_driver *driver, const ptxgen_w8a8_plan *plan,
                                          const ptxgen_module_options *options,
                                          ptxgen_w8a8 **kernel, ptxgen_error *err);
/** Unloads a kernel from load; releases a reference from dispatch. NULL does nothing. */
PTXGEN_API void ptxgen_w8a8_destroy(ptxgen_w8a8 *kernel);
/** The driver's attributes of the product entry that serves m tokens; NULL if there is none. */
PTXGEN_API const ptxgen_kernel_attributes *ptxgen_w8a8_attributes(const ptxgen_w8a8 *kernel,
                                                                  uint64_t m);
/** Bytes of workspace that this launch needs, which may be 0; pure. */
PTXGEN_API ptxgen_status ptxgen_w8a8_workspace_bytes(const ptxgen_w8a8 *kernel,
                                                     const ptxgen_w8a8_args *args, uint64_t *bytes,
                                                     ptxgen_error *err);
/**
 * Enqueues the layer on `stream`, which takes up to three kernels. A launch does not allocate or
 * synchronise, and may be captured. Errors, before anything runs: PTXGEN_ERROR_INVALID_ARGUMENT,
 * with the name of the argument, for a null or misaligned address, a stride below its row, a buffer
 * that is too small, arrays that overlap, an m outside of the spec's min_m and max_m or a workspace
 * that is too small; PTXGEN_ERROR_UNSUPPORTED for an m or a stride that the kernel cannot hold; and
 * those of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_w8a8_launch(const ptxgen_w8a8 *kernel, const ptxgen_w8a8_args *args,
                                            ptxgen_cu_stream stream, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
