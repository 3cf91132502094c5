/* SPDX-License-Identifier: Apache-2.0 */
/**
 * marlin_repack: packs 4-bit weights for <ptxgen/marlin.h> on the device, from a checkpoint's
 * tensors as they are in the file: each byte is read once and written once (with act_order more
 * is read, from the L2 mostly).
 *
 * What it writes is bit for bit what ptxgen_marlin_pack writes. A kernel is made for a shape and a
 * format, so a model needs as many as it has different layers.
 *
 *     ptxgen_marlin_repack_spec spec = {.k = 4096, .n = 14336, .group_size = 128,
 *                                       .type = PTXGEN_F16, .format = PTXGEN_W4_GPTQ_V1,
 *                                       .scale_type = PTXGEN_F16};
 *     ptxgen_marlin_repack_dispatch(dispatcher, &spec, &repack, &err); // or plan and load
 *     ptxgen_marlin_repack_args args = {.weights = {qweight, scales, qzeros},
 *                                       .codes = …, .scales = …, .zeros = …};
 *     ptxgen_marlin_repack_launch(repack, &args, stream, &err);
 *     ptxgen_marlin_repack_destroy(repack);
 *
 * The sizes of what is written are those of ptxgen_marlin_packed_layout. With act_order,
 * ptxgen_marlin_row_order makes, on the host, the order that this kernel and the product read.
 *
 * Zero points are packed int32; a weight_zero_point of int8 is for ptxgen_marlin_pack, or to be
 * packed by ptxgen_w4_unpack and ptxgen_w4_pack.
 *
 * Scales past the ends that <ptxgen/marlin.h> states are packed as they are, and reported: a word of
 * 64 bits, `refused`, that the caller zeroes before the launch and reads after it.
 *
 *     uint64_t refused = 0;
 *     driver.memcpy_dtoh(&refused, args.refused, sizeof refused);   // after the stream is done
 *     if (ptxgen_marlin_repack_verdict(&spec, refused, &err) != PTXGEN_OK)
 *         return report(&err);                    // as ptxgen_marlin_pack words it
 *
 * Without such a word they are not looked at: then the product may be infinite or NaN, for some M
 * and not for others. Zero points are not checked, unlike by ptxgen_marlin_pack: without the spec's
 * zeros the checkpoint's count as 8.
 *
 * Specs and plans are plain values: zero them, fill them. All functions but dispatch, load, destroy
 * and launch are pure; any thread may call any of them. Errors are a status and a sentence.
 */
#ifndef PTXGEN_MARLIN_REPACK_H
#define PTXGEN_MARLIN_REPACK_H

#include <ptxgen/marlin.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Every specialisation constant; the first ones as in the spec of the product. */
typedef struct ptxgen_marlin_repack_spec {
    uint32_t k, n;
    int32_t group_size;
    uint8_t type;       /**< of the packed scales: PTXGEN_F16 or PTXGEN_BF16 */
    uint8_t zeros;      /**< 1: zero points are packed */
    uint8_t act_order;  /**< 1: K is gathered by `order`; of GPTQ and PACK_QUANTIZED */
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
 * Validates the spec. Refuses with PTXGEN_ERROR_UNSUPPORTED and the rule what the product or the
 * format cannot hold.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_repack_make_plan(const ptxgen_marlin_repack_spec *spec,
                                                        const ptxgen_target *target,
                                                        ptxgen_marlin_repack_plan *plan,
                                                        ptxgen_error *err);
/** Emits the entries "marlin_repack_codes" and "marlin_repack_groups" (scales and zero points). */
PTXGEN_API ptxgen_status ptxgen_marlin_repack_emit(const ptxgen_marlin_repack_plan *plan,
                                                   ptx_module *module, ptxgen_error *err);

/**
 * The order of rows for a checkpoint's g_idx [k], in host memory: order[i] is the row that comes
 * i-th, as ptxgen_marlin_pack has it. Refuses a group that is not there or has other than
 * group_size rows. A weight_g_idx (PACK_QUANTIZED) that is −1 everywhere gives 0, 1, 2 …
 */
PTXGEN_API ptxgen_status ptxgen_marlin_row_order(const ptxgen_marlin_repack_spec *spec,
                                                 const int32_t *g_idx, uint32_t *order,
                                                 ptxgen_error *err);

/** A checkpoint's tensors in device memory, with the shapes of <ptxgen/marlin_formats.h>. */
typedef struct ptxgen_marlin_repack_tensors {
    uint64_t weights; /**< at a multiple of 16 bytes */
    uint64_t scales;  /**< at a multiple of an element */
    uint64_t zeros; /**< at a multiple of 4 bytes; 0: all are 8. Read with the spec's zeros only */
} ptxgen_marlin_repack_tensors;

/**
 * Device addresses. Zero it before filling it in.
 *
 * What is written overlaps no other array of the launch (kernel.h, "Arrays").
 */
typedef struct ptxgen_marlin_repack_args {
    ptxgen_marlin_repack_tensors weights; /**< with SwiGLU: of gate */
    ptxgen_marlin_repack_tensors up;      /**< with SwiGLU */
    uint64_t order;                /**< with act_order: [k] of 32 bits, at a multiple of 16 bytes */
    uint64_t codes, scales, zeros; /**< written, at multiples of 16 bytes; zeros with the spec's */
    /**
     * 8 bytes at a multiple of 8, or 0. Zeroed by the caller; it stays 0 where all scales are
     * admitted, and else is for ptxgen_marlin_repack_verdict.
     */
    uint64_t refused;
} ptxgen_marlin_repack_args;

/** A plan's loaded entries, in one context. */
typedef struct ptxgen_marlin_repack ptxgen_marlin_repack;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_marlin_repack_family(void);

/** ptxgen_dispatch for this family: one reference, given back with ptxgen_marlin_repack_destroy. */
PTXGEN_API ptxgen_status ptxgen_marlin_repack_dispatch(ptxgen_dispatcher *dispatcher,
                                                       const ptxgen_marlin_repack_spec *spec,
                                                       ptxgen_marlin_repack **kernel,
                                                       ptxgen_error *err);

/** Emits the plan and loads it into the current context, past the registry. */
PTXGEN_API ptxgen_status ptxgen_marlin_repack_load(const ptxgen_driver *driver,
                                                   const ptxgen_marlin_repack_plan *plan,
                                                   const ptxgen_module_options *options,
                                                   ptxgen_marlin_repack **kernel,
                                                   ptxgen_error *err);
/** Unloads what load made; gives back what dispatch gave. NULL does nothing. */
PTXGEN_API void ptxgen_marlin_repack_destroy(ptxgen_marlin_repack *kernel);

/**
 * Enqueues the packing on `stream`: two kernels, no allocation, no synchronisation, capturable.
 * Errors, before anything runs: PTXGEN_ERROR_INVALID_ARGUMENT naming the argument for a null or
 * misaligned address and for arrays that overlap; and those of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_repack_launch(const ptxgen_marlin_repack *kernel,
                                                     const ptxgen_marlin_repack_args *args,
                                                     ptxgen_cu_stream stream, ptxgen_error *err);

/**
 * What a launch has left in `refused`: PTXGEN_OK for 0; else PTXGEN_ERROR_UNSUPPORTED and a sentence
 * with the first scale that is not admitted, its group and its feature, gate's before up's. Pure.
 * PTXGEN_ERROR_INVALID_ARGUMENT for a word that is no launch's of this spec.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_repack_verdict(const ptxgen_marlin_repack_spec *spec,
                                                      uint64_t refused, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
