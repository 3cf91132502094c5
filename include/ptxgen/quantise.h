/* SPDX-License-Identifier: Apache-2.0 */
/**
 * quantise: turns rows of x into codes of 8 bits with scales, which then belong to the caller. A
 * layer quantises its activations once for all products that read them. The rows may be made in the
 * same pass, by an RMSNorm or by SiLU(gate) · up.
 *
 *     h[m,k]      = the row that is quantised: x, RMSNorm(x), or silu(gate) · up
 *     codes[m,k]  = clamp(round(h[m,k] / scales[m,g]) + zeros[m,g], q_min, q_max)
 *
 *     x       [M, K]  f32, f16 or bf16; with SILU_MUL [M, 2·K]: K of gate, then K of up
 *     codes   [M, K]  s8, or e4m3: one byte each
 *     scales  [M, G]  f32; zeros [M, G] s32 with zero points
 *
 * G is 1 where a token has one scale, or ⌈K / 128⌉ where each 128 of K have one, the last of which
 * may have fewer. M is an argument of the launch, up to 2³¹ − 1; K has any value up to 2²⁴.
 *
 * Codes, scales and zero points are those that the kernels of <ptxgen/w8a8.h> compute for
 * themselves (its rules, with DYNAMIC scales and the work type f32), where a group counts as a
 * token. A token or group with a NaN or an infinity has codes 0, the scale NaN and the zero point
 * 0.
 *
 * With a producer the results are, bit for bit, those of the producer alone, whose row is rounded
 * to x's type and stored, and of a launch without a producer which reads that row:
 *   - RMSNORM, with gamma [K] and epsilon. With a residual [M, K] of x's type, s = x + residual is
 *     computed in f32, rounded to x's type and written to residual_out; otherwise s = x. Then, in
 *     f32, where each operation is rounded to nearest even and none but the first is contracted:
 *
 *         sum = Σ_k s[k]²      by fma, in an order that K alone decides
 *         r   = 1 / √(sum · (1/K) + epsilon)         1/K is rounded to f32
 *         h   = (s[k] · r) · gamma[k]                rounded to x's type
 *
 *     The order: thread t of T has the chunks t, t + T, t + 2·T … of eight elements, which it adds
 *     one after the other; then pairs of threads are added whose numbers differ in bit 0, then in
 *     bit 1, and so on. T is the plan's `threads`. Reference and kernel agree in every bit.
 *   - SILU_MUL: h = silu(gate[k]) · up[k] in f32, rounded to x's type. The silu differs from
 *     v / (1 + e^−v) by less than 2⁻²⁰ · |v|; the reference states bounds.
 *
 * Each CTA has one token. The row is read once where it fits into the registers of a CTA (up to
 * 32,768 elements, or half as many with zero points or where two rows of f32 are read), else once
 * for each pass.
 *
 *     ptxgen_quantise_spec spec = {.k = 4096, .x_type = PTXGEN_BF16, .group = 128,
 *                                  .codes = PTXGEN_W8A8_E4M3};
 *     ptxgen_quantise_dispatch(dispatcher, &spec, &kernel, &err); // or plan and load
 *     ptxgen_quantise_args args = {.m = m, .x = x, .codes = codes, .scales = scales};
 *     ptxgen_quantise_launch(kernel, &args, stream, &err);
 *     ptxgen_quantise_destroy(kernel);
 *
 * Plans and specs are plain values: zero them, fill them, copy and compare them with memcmp. All
 * functions are pure and may be called from any thread, except for load, dispatch, destroy and
 * launch, for which kernel.h and dispatch.h say what several threads may do at the same time.
 * Errors: a status and a sentence.
 */
#ifndef PTXGEN_QUANTISE_H
#define PTXGEN_QUANTISE_H

#include <ptxgen/w8a8.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What makes the rows that are quantised; see the rules above. */
typedef enum ptxgen_quantise_producer {
    PTXGEN_QUANTISE_NONE = 0,
    PTXGEN_QUANTISE_RMSNORM = 1,
    PTXGEN_QUANTISE_SILU_MUL = 2
} ptxgen_quantise_producer;

/** How many of K share a scale, where not all of a token do. */
enum { PTXGEN_QUANTISE_GROUP = 128 };

/** All constants for which code is specialised. A spec is a cache key: zero it, then fill it. */
typedef struct ptxgen_quantise_spec {
    uint32_t k;
    float epsilon; /**< RMSNORM: at least 0; else 0 */
    /** s8: −128 ≤ q_min ≤ 0 < q_max ≤ 127, and both 0 mean −127, 127; e4m3: 0, in plans ±448 */
    int16_t q_min, q_max;
    uint8_t x_type;      /**< ptxgen_element: f32, f16 or bf16 */
    uint8_t codes;       /**< ptxgen_w8a8_codes */
    uint8_t group;       /**< 0: a token has one scale; 128: each 128 of K */
    uint8_t asymmetric;  /**< 1, only with s8: with zero points */
    uint8_t producer;    /**< ptxgen_quantise_producer */
    uint8_t residual;    /**< 1, only with RMSNORM: a residual is added first, and written back */
    uint8_t gamma_type;  /**< RMSNORM: ptxgen_element of gamma, f32, f16 or bf16; else 0 */
    uint8_t reserved[1]; /**< 0 */
} ptxgen_quantise_spec;

typedef struct ptxgen_quantise_plan {
    ptxgen_quantise_spec spec; /**< with its defaults filled in */
    ptxgen_target target;
    uint32_t threads; /**< of a CTA: a power of two from 32 to 1024, which K alone decides */
} ptxgen_quantise_plan;

/**
 * Validates the spec. Refuses with PTXGEN_ERROR_UNSUPPORTED and the rule: a K of 0 or above 2²⁴,
 * codes outside −128 … 127 or without 0, e4m3 codes with zero points or a range, f64, a group that
 * is neither 0 nor 128, a residual, an epsilon or a gamma_type without RMSNORM; with
 * PTXGEN_ERROR_TARGET e4m3 codes before sm_89, or before PTX 8.1 (sm_90: 7.8).
 */
PTXGEN_API ptxgen_status ptxgen_quantise_make_plan(const ptxgen_quantise_spec *spec,
                                                   const ptxgen_target *target,
                                                   ptxgen_quantise_plan *plan, ptxgen_error *err);
/** Emits the entry "quantise". */
PTXGEN_API ptxgen_status ptxgen_quantise_emit(const ptxgen_quantise_plan *plan, ptx_module *module,
                                              ptxgen_error *err);
/** CTAs of a launch of m tokens. */
PTXGEN_API ptxgen_status ptxgen_quantise_ctas(const ptxgen_quantise_plan *plan, uint64_t m,
                                              uint32_t *ctas, ptxgen_error *err);
/** Writes one sentence for people to read: what a launch of m tokens does. */
PTXGEN_API void ptxgen_quantise_explain(const ptxgen_quantise_plan *plan, uint64_t m, char *text,
                                        size_t size);
/** Scales of a token: 1, or ⌈K / 128⌉; 0 for NULL. */
PTXGEN_API uint32_t ptxgen_quantise_groups(const ptxgen_quantise_spec *spec);

/* ---- the reference ---- */

/** The arrays of ptxgen_quantise_args in host memory, each aligned to its elements. */
typedef struct ptxgen_quantise_operands {
    uint64_t m;
    const void *x;        /**< [m, k] of x's type, rows x_stride elements apart (0: its columns) */
    const void *gamma;    /**< RMSNORM: [k] of its type */
    const void *residual; /**< [m, k] of x's type, rows residual_stride elements apart (0: k) */
    uint64_t x_stride, residual_stride;
} ptxgen_quantise_operands;

/**
 * What a launch writes for a token, and by how much that may be off: bounds are 0, except with
 * SILU_MUL, where a rounding may go the other way. Bounds of codes count steps from a code to the
 * next, those of scales are NaN where there is no statement. All arrays but `codes` and `scales`
 * may be NULL.
 */
typedef struct ptxgen_quantise_token {
    int8_t *codes;        /**< [k] */
    uint8_t *code_bounds; /**< [k]; 255: no statement */
    float *scales;        /**< [groups] */
    double *scale_bounds; /**< [groups] */
    int32_t *zeros;       /**< [groups] */
    int32_t *zero_bounds; /**< [groups] */
    void *residual_out;   /**< [k] of x's type */
} ptxgen_quantise_token;

/**
 * Computes token `m` of the operands. Errors: PTXGEN_ERROR_INVALID_ARGUMENT, those of make_plan but
 * for the target's, PTXGEN_ERROR_OUT_OF_MEMORY.
 */
PTXGEN_API ptxgen_status ptxgen_quantise_reference(const ptxgen_quantise_spec *spec,
                                                   const ptxgen_quantise_operands *operands,
                                                   uint64_t m, const ptxgen_quantise_token *token,
                                                   ptxgen_error *err);

/* ---- running it ---- */

/**
 * The arguments of a launch: device addresses, and strides in elements. Zero it, then fill it.
 * Members that the spec does not use are ignored.
 *
 * An array may start at any multiple of its element's size. Rows of x, residual and residual_out
 * are read and written faster if they start at multiples of 16 bytes, and rows of codes if they
 * start at multiples of 8; of SILU_MUL the row of up begins K elements after that of gate.
 *
 * Arrays that are written must not overlap any other array of the launch (kernel.h, "Arrays"), but
 * residual_out may be the residual itself.
 */
typedef struct ptxgen_quantise_args {
    uint64_t m;            /**< tokens: 0 launches nothing, fewer than 2³¹ */
    uint64_t x;            /**< [m, k], row stride x_stride ≥ k; SILU_MUL: [m, 2·k] */
    uint64_t gamma;        /**< RMSNORM: [k] of gamma_type */
    uint64_t residual;     /**< [m, k] of x's type */
    uint64_t residual_out; /**< [m, k] of x's type */
    uint64_t codes;        /**< [m, k], one byte each */
    uint64_t scales;       /**< f32 [m, groups] */
    uint64_t zeros;        /**< asymmetric: s32 [m, groups] */
    /** Below 2³²; 0 means the columns. */
    uint64_t x_stride, residual_stride, residual_out_stride, codes_stride, scales_stride;
    uint64_t zeros_stride;
    /**
     * 1 (sm_90 and later): the launch may begin before the kernel ahead of it in the stream has
     * ended (programmatic dependent launch). It then reads only gamma until that kernel's results
     * are visible; who may have written it says kernel.h, "Overlap".
     */
    uint32_t overlap_previous;
    /** Bytes of the buffer at each address; 0: unchecked (kernel.h, "Arrays"). */
    uint64_t x_bytes, gamma_bytes, residual_bytes, residual_out_bytes, codes_bytes, scales_bytes;
    uint64_t zeros_bytes;
} ptxgen_quantise_args;

/** A plan's loaded entry, in one context. */
typedef struct ptxgen_quantise ptxgen_quantise;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_quantise_family(void);
/** ptxgen_dispatch for this family; release the reference with ptxgen_quantise_destroy. */
PTXGEN_API ptxgen_status ptxgen_quantise_dispatch(ptxgen_dispatcher *dispatcher,
                                                  const ptxgen_quantise_spec *spec,
                                                  ptxgen_quantise **kernel, ptxgen_error *err);
/** Emits the plan and loads it into the current context, without a dispatcher. */
PTXGEN_API ptxgen_status ptxgen_quantise_load(const ptxgen_driver *driver,
                                              const ptxgen_quantise_plan *plan,
                                              const ptxgen_module_options *options,
                                              ptxgen_quantise **kernel, ptxgen_error *err);
/** Unloads a kernel from load; releases a reference from dispatch. NULL does nothing. */
PTXGEN_API void ptxgen_quantise_destroy(ptxgen_quantise *kernel);
/** The driver's attributes of the entry; NULL where m is 0 or cannot be launched. */
PTXGEN_API const ptxgen_kernel_attributes *ptxgen_quantise_attributes(const ptxgen_quantise *kernel,
                                                                      uint64_t m);
/** Bytes of workspace that this launch needs: always 0. */
PTXGEN_API ptxgen_status ptxgen_quantise_workspace_bytes(const ptxgen_quantise *kernel,
                                                         const ptxgen_quantise_args *args,
                                                         uint64_t *bytes, ptxgen_error *err);
/**
 * Enqueues the kernel on `stream`. A launch does not allocate or synchronise, and may be captured.
 * Errors, before anything runs: PTXGEN_ERROR_INVALID_ARGUMENT, with the name of the argument, for a
 * null or misaligned address, a stride below its row, a buffer that is too small or arrays that
 * overlap; PTXGEN_ERROR_UNSUPPORTED for an m or a stride that the kernel cannot hold; and those of
 * ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_quantise_launch(const ptxgen_quantise *kernel,
                                                const ptxgen_quantise_args *args,
                                                ptxgen_cu_stream stream, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
