/* SPDX-License-Identifier: Apache-2.0 */
/**
 * marlin_repack: packs 4-bit weights for <ptxgen/marlin.h> on the device, from the tensors of a
 * checkpoint in device memory. Each byte is read once and written once; with act_order more bytes
 * are read, mostly from the L2. The result is bit for bit that of ptxgen_marlin_pack.
 *
 * A kernel is specialised for a shape and a format, so a model needs one for each kind of layer.
 *
 *     ptxgen_marlin_repack_spec spec = {.k = 4096, .n = 14336, .group_size = 128,
 *                                       .type = PTXGEN_F16, .format = PTXGEN_W4_GPTQ_V1,
 *                                       .scale_type = PTXGEN_F16};
 *     ptxgen_marlin_repack_dispatch(dispatcher, &spec, &repack, &err); // or plan and load
 *     ptxgen_marlin_repack_args args = {.weights = {.weights = qweight,
 *                                                   .scales = scales, .zeros = qzeros},
 *                                       .codes = …, .scales = …, .zeros = …};
 *     ptxgen_marlin_repack_launch(repack, &args, stream, &err);
 *     ptxgen_marlin_repack_destroy(repack);
 *
 * ptxgen_marlin_packed_layout gives the sizes of the packed arrays. With act_order,
 * ptxgen_marlin_row_order computes on the host the order that this kernel and the product read.
 *
 * Zero points have to be packed in int32. A weight_zero_point of int8 can be packed by
 * ptxgen_marlin_pack, or converted by ptxgen_w4_unpack and ptxgen_w4_pack first.
 *
 * Scales outside of the limits in <ptxgen/marlin.h> are packed as they are, and reported in a word
 * of 64 bits, `refused`, which the caller zeroes before the launch and reads after it:
 *
 *     uint64_t refused = 0;
 *     driver.memcpy_dtoh(&refused, args.refused, sizeof refused);   // after the stream is done
 *     if (ptxgen_marlin_repack_verdict(&spec, refused, &err) != PTXGEN_OK)
 *         return report(&err);                    // the sentence of ptxgen_marlin_pack
 *
 * Without such a word scales are not checked, and a product may be infinite or NaN for some M and
 * not for others. Unlike in ptxgen_marlin_pack, zero points are not checked: without the spec's
 * zeros all zero points of the checkpoint are taken to be 8.
 *
 * Specs and plans are plain values: zero them, fill them. All functions are pure, except for
 * dispatch, load, destroy and launch; any thread may call any of them. Errors: a status and a
 * sentence.
 */
#ifndef PTXGEN_MARLIN_REPACK_H
#define PTXGEN_MARLIN_REPACK_H

#include <ptxgen/marlin.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * All constants for which code is specialised; the first members are those of ptxgen_marlin_spec.
 */
typedef struct ptxgen_marlin_repack_spec {
    uint32_t k, n;
    int32_t group_size;
    uint8_t type;       /**< of the packed scales: PTXGEN_F16 or PTXGEN_BF16 */
    uint8_t zeros;      /**< 1: zero points are packed */
    uint8_t act_order;  /**< 1: K is gathered by `order`; only for GPTQ and PACK_QUANTIZED */
    uint8_t epilogue;   /**< with PTXGEN_EPILOGUE_SWIGLU gate and up are interleaved */
    uint8_t format;     /**< ptxgen_w4_format of the checkpoint */
    uint8_t scale_type; /**< of its scales: PTXGEN_F16, PTXGEN_BF16 or PTXGEN_F32 */
    uint8_t reserved[2];
} ptxgen_marlin_repack_spec;

typedef struct ptxgen_marlin_repack_plan {
    ptxgen_marlin_repack_spec spec;
    ptxgen_target target;
} ptxgen_marlin_repack_plan;

/**
 * Validates the spec. Refuses, with PTXGEN_ERROR_UNSUPPORTED and the rule, a spec that the product
 * or the format cannot have.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_repack_make_plan(const ptxgen_marlin_repack_spec *spec,
                                                        const ptxgen_target *target,
                                                        ptxgen_marlin_repack_plan *plan,
                                                        ptxgen_error *err);
/** Emits the entries "marlin_repack_codes" and "marlin_repack_groups" (scales and zero points). */
PTXGEN_API ptxgen_status ptxgen_marlin_repack_emit(const ptxgen_marlin_repack_plan *plan,
                                                   ptx_module *module, ptxgen_error *err);

/**
 * Computes the order of rows for a checkpoint's g_idx [k], both in host memory, as
 * ptxgen_marlin_pack does: order[i] is the row at place i. Refuses a group number that does not
 * exist, and groups that do not have group_size rows. A weight_g_idx (PACK_QUANTIZED) that is −1
 * everywhere gives 0, 1, 2 and so on.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_row_order(const ptxgen_marlin_repack_spec *spec,
                                                 const int32_t *g_idx, uint32_t *order,
                                                 ptxgen_error *err);

/** A checkpoint's tensors in device memory, with the shapes of <ptxgen/marlin_formats.h>. */
typedef struct ptxgen_marlin_repack_tensors {
    uint64_t weights; /**< at a multiple of 16 bytes */
    uint64_t scales;  /**< at a multiple of an element */
    uint64_t zeros; /**< at a multiple of 4 bytes; 0: all are 8; read only with the spec's zeros */
    /** Bytes of the buffer at each address; 0: unchecked (kernel.h, "Arrays"). */
    uint64_t weights_bytes, scales_bytes, zeros_bytes;
} ptxgen_marlin_repack_tensors;

/**
 * The arguments of a launch, which are device addresses. Zero it, then fill it. Arrays that are
 * written must not overlap any other array of the launch (kernel.h, "Arrays").
 */
typedef struct ptxgen_marlin_repack_args {
    ptxgen_marlin_repack_tensors weights; /**< with SwiGLU: of gate */
    ptxgen_marlin_repack_tensors up;      /**< with SwiGLU */
    uint64_t order;                /**< with act_order: [k] of 32 bits, at a multiple of 16 bytes */
    uint64_t codes, scales, zeros; /**< the packed arrays, at multiples of 16 bytes */
    /**
     * Address of 8 bytes at a multiple of 8, or 0 for no check. The caller zeroes the 8 bytes. They
     * stay 0 if all scales are within the limits; ptxgen_marlin_repack_verdict explains other
     * values.
     */
    uint64_t refused;
    /** Bytes of the buffer at each address; 0: unchecked (kernel.h, "Arrays"). */
    uint64_t order_bytes, codes_bytes, scales_bytes, zeros_bytes, refused_bytes;
} ptxgen_marlin_repack_args;

/** A plan's loaded entries, in one context. */
typedef struct ptxgen_marlin_repack ptxgen_marlin_repack;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_marlin_repack_family(void);

/** ptxgen_dispatch for this family; release the reference with ptxgen_marlin_repack_destroy. */
PTXGEN_API ptxgen_status ptxgen_marlin_repack_dispatch(ptxgen_dispatcher *dispatcher,
                                                       const ptxgen_marlin_repack_spec *spec,
                                                       ptxgen_marlin_repack **kernel,
                                                       ptxgen_error *err);

/** Emits the plan and loads it into the current context, without a dispatcher. */
PTXGEN_API ptxgen_status ptxgen_marlin_repack_load(const ptxgen_driver *driver,
                                                   const ptxgen_marlin_repack_plan *plan,
                                                   const ptxgen_module_options *options,
                                                   ptxgen_marlin_repack **kernel,
                                                   ptxgen_error *err);
/** Unloads a kernel from load; releases a reference from dispatch. NULL does nothing. */
PTXGEN_API void ptxgen_marlin_repack_destroy(ptxgen_marlin_repack *kernel);

/**
 * Enqueues the packing on `stream`, which takes two kernels. A launch does not allocate or
 * synchronise, and may be captured. Errors, before anything runs: PTXGEN_ERROR_INVALID_ARGUMENT,
 * with the name of the argument, for a null or misaligned address, a buffer that is too small and
 * arrays that overlap; and those of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_repack_launch(const ptxgen_marlin_repack *kernel,
                                                     const ptxgen_marlin_repack_args *args,
                                                     ptxgen_cu_stream stream, ptxgen_error *err);

/**
 * Explains the word `refused` of a launch: returns PTXGEN_OK for 0, else PTXGEN_ERROR_UNSUPPORTED
 * and a sentence with the first scale outside of the limits, its group and its feature; gate's
 * scales come before up's. PTXGEN_ERROR_INVALID_ARGUMENT for a word that no launch of this spec
 * writes. Pure.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_repack_verdict(const ptxgen_marlin_repack_spec *spec,
                                                      uint64_t refused, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
