/* SPDX-License-Identifier: Apache-2.0 */
/**
 * marlin: a matrix product with 4-bit weights and 16-bit activations on tensor cores.
 *
 *     v = x·wᵀ + bias
 *     y = f(v) + residual           f: identity, SiLU or GELU
 *     y = silu(v)·v' + residual     with PTXGEN_EPILOGUE_SWIGLU: v of gate, v' of up
 *
 *     x         [M, K]  activations of M tokens
 *     w         [N, K]  4-bit weights of N output features: w[n,k] = s·(q − z), of a code q and of
 *                       the scale s and the zero point z that a group of k shares in feature n
 *     y         [M, N]  outputs; residual likewise, bias [N]
 *
 * x, y, s, bias and residual are all f16, or all bf16. Sums are f32, in an order that depends on
 * the plan and M only, so equal inputs give equal bits.
 *
 * Whether the scale s is multiplied into weights or into sums depends on the variant, and so on M:
 *
 *     variant                                    groups                one scale for a feature
 *     mma.sync, in bulk or not, up to 16 tokens  into sums, in f32     into sums, in f32
 *     mma.sync from 32 tokens on                 into weights          into sums, in f32
 *     wgmma                                      into weights; but up  into sums, in f32
 *                                                to 32 tokens, or 64, into sums where a stage
 *                                                has one scale for a feature
 *
 * A scaled weight is s·(q − z) rounded to the type: it is off by at most 2⁻¹¹ of itself in f16, and
 * 2⁻⁸ in bf16. Scales that are multiplied into sums add no such rounding. So the outputs of a token
 * may differ in their last bits when the launch has more tokens. ptxgen_marlin_rounds_weights says
 * which way a variant has, and ptxgen_marlin_explain says it for an M.
 *
 * Scales may be negative, 0 and subnormal. Packing refuses scales outside of these limits, whatever
 * the codes and the variants are, so that variants differ by such rounding only:
 *
 *     f16     |s|·max(z, 15 − z) ≤ 65504: no code makes a weight that f16 cannot hold (without
 *             zero points |s| ≤ 8188)
 *     bf16    |s| < 2²⁵
 *     both    s is finite, and not 0 in the type where it is not 0 in the checkpoint
 *
 * Some variants for bf16 (tiles from 16 tokens on) compute in units of 2⁻³⁰. A scaled weight below
 * 2⁻⁹⁶ then loses bits and may be off by 2⁻¹⁰³, and a sum may be off by 2⁻¹²⁰ for each of its
 * products.
 *
 * Weights are packed once, from any checkpoint format of <ptxgen/marlin_formats.h>, into the order
 * in which the kernel's lanes read them (ptxgen_marlin_pack). That order is the same for every
 * target, so packed weights may be kept in a file.
 *
 *     ptxgen_marlin_spec spec = {.k = 4096, .n = 14336, .group_size = 128, .type = PTXGEN_F16};
 *     ptxgen_marlin_plan plan;
 *     ptxgen_marlin_make_plan(&spec, &target, &plan, &err);
 *     ptxgen_marlin_packed packed;
 *     ptxgen_marlin_packed_layout(&spec, &packed, &err);        // sizes; allocate the arrays
 *     ptxgen_marlin_pack(&spec, &checkpoint, NULL, &packed, NULL, &err);
 *     // copy packed.codes, scales, zeros and order to the device
 *     ptxgen_marlin *kernel;
 *     ptxgen_marlin_load(&driver, &plan, NULL, &kernel, &err);
 *     ptxgen_marlin_args args = {.m = 16, .x = …, .codes = …, .scales = …, .y = …};
 *     uint64_t bytes;
 *     ptxgen_marlin_workspace_bytes(kernel, &args, &bytes, &err); // allocate it, and zero it once
 *     ptxgen_marlin_launch(kernel, &args, stream, &err);
 *
 * Plans and specs are plain values: zero them, fill them, copy and compare them with memcmp. All
 * functions are pure and may be called from any thread, except for load, dispatch, destroy and
 * launch, for which kernel.h and dispatch.h say what several threads may do at the same time.
 */
#ifndef PTXGEN_MARLIN_H
#define PTXGEN_MARLIN_H

#include <ptxgen/accuracy.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/guarantee.h>
#include <ptxgen/kernel.h>
#include <ptxgen/marlin_formats.h>
#include <ptxgen/target.h>
#include <ptxgen/tile.h>
#include <ptxgen/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** All constants for which code is specialised. A spec is a cache key: zero it, then fill it. */
typedef struct ptxgen_marlin_spec {
    uint32_t k;         /**< a multiple of 16 */
    uint32_t n;         /**< output features, a multiple of 8; with SwiGLU of gate and of up each */
    int32_t group_size; /**< a multiple of 16 that divides k, or PTXGEN_W4_PER_CHANNEL */
    uint32_t max_m;     /**< the largest M that will be launched; 0: any */
    uint8_t type;       /**< PTXGEN_F16 or PTXGEN_BF16 */
    uint8_t zeros;      /**< 1: zero points are given; 0: they are 8 */
    uint8_t act_order;  /**< 1: activations are gathered along K by `order` */
    uint8_t epilogue;   /**< ptxgen_epilogue */
    uint8_t activation; /**< ptxgen_activation; none with SwiGLU, which has its own */
    uint8_t bias;       /**< 1: biases are added */
    uint8_t residual;   /**< 1: a residual is added to y */
    uint8_t reserved;
} ptxgen_marlin_spec;

enum { PTXGEN_MARLIN_VARIANTS = 24 };

/*
 * Tiles (tile.h). A CTA has one warp along M; a warp multiplies the weights of warp_n features, 32
 * or 64, with wgmma 16 or 32, by all tile_m tokens: 8, 16, 32, 64 or 128, with wgmma any multiple
 * of 16 up to 256, of 32 for clusters. All kinds but PTXGEN_MMA are for sm_90a. With PTXGEN_BULK
 * there is one producer warp, and with four or more warps along N another warp, which computes sums
 * of activations. The CTAs of a cluster, 2, 4 or 8, divide K.
 */

typedef struct ptxgen_marlin_plan {
    ptxgen_marlin_spec spec;
    ptxgen_target target;
    uint32_t variant_count;
    ptxgen_tile variants[PTXGEN_MARLIN_VARIANTS]; /**< by rising tile_m */
    uint32_t tuned_count; /**< ranges of M, by rising to_m, that were tuned (tune.h); usually 0 */
    ptxgen_tuned_variant tuned[PTXGEN_TUNED_RANGES];
} ptxgen_marlin_plan;

/**
 * Validates the spec and chooses the tiles. Refuses with PTXGEN_ERROR_UNSUPPORTED and the rule:
 * K not a multiple of 16, N not of 8, a group size that is not a multiple of 16 or does not divide
 * K, a type other than f16 and bf16.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_make_plan(const ptxgen_marlin_spec *spec,
                                                 const ptxgen_target *target,
                                                 ptxgen_marlin_plan *plan, ptxgen_error *err);
/**
 * Makes `tile` the plan's only variant, to measure it: its kind, tile_m, warp_n, wn, wk (0: 1),
 * stages (0: all that fit), steps (0: 1), ctas (0: 1), pass_m and cluster (0: 1) are used, and the
 * other members are computed here. Errors: PTXGEN_ERROR_INVALID_ARGUMENT for a number out of its
 * range, PTXGEN_ERROR_UNSUPPORTED for wgmma where the target or K does not allow it,
 * PTXGEN_ERROR_SHARED_MEMORY for a tile that no CTA holds.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_use_tile(ptxgen_marlin_plan *plan, const ptxgen_tile *tile,
                                                ptxgen_error *err);
/**
 * The variant that serves m tokens; NULL when m is 0 or above the plan's largest, or N or K is 0.
 */
PTXGEN_API const ptxgen_tile *ptxgen_marlin_choose(const ptxgen_marlin_plan *plan, uint64_t m);
/** CTAs that a launch of m tokens has. */
PTXGEN_API ptxgen_status ptxgen_marlin_ctas(const ptxgen_marlin_plan *plan, uint64_t m,
                                            uint32_t *ctas, ptxgen_error *err);
/**
 * The entry's name in the module, as "marlin_m8", "marlin_bulk_m8" or "marlin_wgmma_m128_n256".
 * Names are stable (guarantee.h).
 */
PTXGEN_API const char *ptxgen_marlin_entry(const ptxgen_tile *variant);
/** What a launch of m > 0 tokens promises (guarantee.h); refused where no variant serves m. */
PTXGEN_API ptxgen_status ptxgen_marlin_guarantee(const ptxgen_marlin_plan *plan, uint64_t m,
                                                 ptxgen_guarantee *guarantee,
                                                 ptxgen_error *err);
/**
 * Whether this variant of the plan multiplies s·(q − z), rounded to the spec's type. If not, scales
 * are multiplied into sums.
 */
PTXGEN_API bool ptxgen_marlin_rounds_weights(const ptxgen_marlin_plan *plan,
                                             const ptxgen_tile *variant);
/**
 * Writes a line for people to read: the tile that serves m tokens, and where scales are applied.
 */
PTXGEN_API void ptxgen_marlin_explain(const ptxgen_marlin_plan *plan, uint64_t m, char *text,
                                      size_t size);
/**
 * Emits the entries of `variants`, which has a bit for each variant of the plan (~0u: all), and
 * "marlin_gather", which copies activations into the order and alignment that the entries need. An
 * error becomes the module's sticky error and is returned.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_emit(const ptxgen_marlin_plan *plan, uint32_t variants,
                                            ptx_module *module, ptxgen_error *err);

/* ---- packing ---- */

/**
 * Packed weights in the caller's host memory. The size of each array is a multiple of 16 bytes; on
 * the device each array has to start at a multiple of 16 bytes.
 *
 * Features are in strips of 64 (with SwiGLU 32 of gate, then the same 32 of up), padded with zeros.
 * A strip has K in steps of 64, and a step of a strip has four tiles of 16 features. A tile of a
 * step has 512 bytes: 16 bytes for each lane, one word for each 16 of K. Word `i` of a lane holds
 * what mma.m16n8k16 takes from the lane as its operand A, whose rows are the tile's features:
 * nibbles j and j + 4 are the low and the high half of register j.
 */
typedef struct ptxgen_marlin_packed {
    void *codes;     /**< [strips][steps][4 tiles][32 lanes][16 bytes] */
    void *scales;    /**< [strips][groups][8 g][4 tiles][features g, g + 8], of the spec's type */
    void *zeros;     /**< [strips][groups][8 g] words: nibble 2t + h is z of tile t, feature
                          g + 8h; NULL without the spec's zeros */
    uint32_t *order; /**< [k]: the index along K of each packed k; NULL without act_order */
    size_t codes_bytes, scales_bytes, zeros_bytes, order_bytes;
} ptxgen_marlin_packed;

/** Fills the sizes, and sets the pointers to NULL. */
PTXGEN_API ptxgen_status ptxgen_marlin_packed_layout(const ptxgen_marlin_spec *spec,
                                                     ptxgen_marlin_packed *packed,
                                                     ptxgen_error *err);
/**
 * Packs a checkpoint. With SwiGLU `weights` is the gate matrix and `up` the other one; otherwise
 * `up` is NULL. Scales are converted to the spec's type. Refuses a checkpoint whose K, N or group
 * size is not the spec's, zero points other than 8 or an order of groups that the spec does not
 * allow, and gate and up with different orders along K. Refuses scales outside of the limits above
 * with PTXGEN_ERROR_UNSUPPORTED, by group and feature. `options` may be NULL.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_pack(const ptxgen_marlin_spec *spec,
                                            const ptxgen_w4_checkpoint *weights,
                                            const ptxgen_w4_checkpoint *up,
                                            const ptxgen_marlin_packed *packed,
                                            const ptxgen_w4_repack_options *options,
                                            ptxgen_error *err);

/**
 * Checks packed weights of another origin, for example a file: that every array is there with its
 * size, that `order` is a permutation, and that scales are within the limits above. Any codes and
 * zero points are valid. Errors: PTXGEN_ERROR_INVALID_ARGUMENT with the name of the array;
 * PTXGEN_ERROR_UNSUPPORTED for a scale, by group and feature.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_check_packed(const ptxgen_marlin_spec *spec,
                                                    const ptxgen_marlin_packed *packed,
                                                    ptxgen_error *err);

/**
 * Unpacks packed weights into `weights`, and with SwiGLU into `up` (NULL otherwise). The caller
 * allocates the arrays, with zeros and g_idx where the spec has zeros and act_order; the other
 * members are set here. K is in the checkpoint's order, and scales have the spec's type.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_unpack(const ptxgen_marlin_spec *spec,
                                              const ptxgen_marlin_packed *packed,
                                              ptxgen_w4_matrix *weights, ptxgen_w4_matrix *up,
                                              ptxgen_error *err);

/* ---- the reference ---- */

/** A problem in host memory. Strides are in elements; 0 means the length of the row. */
typedef struct ptxgen_marlin_operands {
    uint64_t m;
    const void *x; /**< [m, k] */
    const ptxgen_w4_matrix *weights;
    const ptxgen_w4_matrix *up; /**< with SwiGLU */
    const void *bias, *up_bias; /**< [n] */
    const void *residual;       /**< [m, n] */
    uint64_t x_stride, residual_stride;
} ptxgen_marlin_operands;

/**
 * Computes y [m, n] in double precision from exact weights, and unless `bound` is NULL the bound of
 * the error of the kernel that serves m tokens, after rounding. Where that kernel rounds weights,
 * the effect of that rounding is part of the bound. A NaN or an infinity in a token of x affects
 * the same token of y only; for an infinity y may be NaN. Scales are rounded, and refused, like in
 * ptxgen_marlin_pack. The function is slow and allocates memory.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_reference(const ptxgen_marlin_plan *plan,
                                                 const ptxgen_marlin_operands *operands, double *y,
                                                 double *bound, ptxgen_error *err);
/** Like ptxgen_marlin_reference, and also computes the spread of each output (accuracy.h). */
PTXGEN_API ptxgen_status ptxgen_marlin_reference_spread(const ptxgen_marlin_plan *plan,
                                                        const ptxgen_marlin_operands *operands,
                                                        double *y, double *bound,
                                                        ptxgen_spread *spread, ptxgen_error *err);

/* ---- running it ---- */

/**
 * The arguments of a launch: device addresses, and strides in elements. Zero it, then fill it.
 * Members that the spec does not use are ignored.
 *
 * x, y, bias and residual may start at any multiple of 2 bytes. Addresses that are multiples of 16
 * bytes, with strides that are multiples of 8, are faster.
 *
 * Arrays that are written must not overlap any other array of the launch (kernel.h, "Arrays"), but
 * y may be the residual itself, at the same address and with the same stride.
 */
typedef struct ptxgen_marlin_args {
    uint64_t m;                                   /**< tokens: 0 launches nothing */
    uint64_t x;                                   /**< [m, k], tokens x_stride ≥ k apart */
    uint64_t codes, scales, zeros, order;         /**< as packed */
    uint64_t bias, up_bias;                       /**< [n] */
    uint64_t residual;                            /**< [m, n], tokens residual_stride ≥ n apart */
    uint64_t y;                                   /**< [m, n], tokens y_stride ≥ n apart */
    uint64_t x_stride, residual_stride, y_stride; /**< 0 means the row itself */
    /**
     * Address of workspace_bytes bytes, at least ptxgen_marlin_workspace_bytes, at a multiple of
     * 16. Zero the workspace once after allocating it; every launch leaves it ready for the next
     * launch in its stream. Launches that are in flight at the same time need a workspace each.
     */
    uint64_t workspace;
    uint64_t workspace_bytes;
    /**
     * 1 (sm_90 and later): the launch may begin before the kernel ahead of it in the stream has
     * ended (programmatic dependent launch). It then reads only weights until that kernel's
     * results are visible; who may have written them says kernel.h, "Overlap".
     */
    uint32_t overlap_previous;
    /** Bytes of the buffer at each address; 0: unchecked (kernel.h, "Arrays"). */
    uint64_t x_bytes, codes_bytes, scales_bytes, zeros_bytes, order_bytes;
    uint64_t bias_bytes, up_bias_bytes, residual_bytes, y_bytes;
} ptxgen_marlin_args;

/** A plan's loaded entries, in one context. */
typedef struct ptxgen_marlin ptxgen_marlin;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_marlin_family(void);

/** ptxgen_dispatch for this family; release the reference with ptxgen_marlin_destroy. */
PTXGEN_API ptxgen_status ptxgen_marlin_dispatch(ptxgen_dispatcher *dispatcher,
                                                const ptxgen_marlin_spec *spec,
                                                ptxgen_marlin **kernel, ptxgen_error *err);

/** Emits all entries of the plan and loads them into the current context, without a dispatcher. */
PTXGEN_API ptxgen_status ptxgen_marlin_load(const ptxgen_driver *driver,
                                            const ptxgen_marlin_plan *plan,
                                            const ptxgen_module_options *options,
                                            ptxgen_marlin **kernel, ptxgen_error *err);
/** Unloads a kernel from load; releases a reference from dispatch. NULL does nothing. */
PTXGEN_API void ptxgen_marlin_destroy(ptxgen_marlin *kernel);
/** The driver's attributes of the entry that serves m tokens; NULL if there is none. */
PTXGEN_API const ptxgen_kernel_attributes *ptxgen_marlin_attributes(const ptxgen_marlin *kernel,
                                                                    uint64_t m);
/** Bytes of workspace that this launch needs, which may be 0; pure. */
PTXGEN_API ptxgen_status ptxgen_marlin_workspace_bytes(const ptxgen_marlin *kernel,
                                                       const ptxgen_marlin_args *args,
                                                       uint64_t *bytes, ptxgen_error *err);
/**
 * Enqueues the product on `stream`: one kernel, and before it one that gathers activations if the
 * spec has act_order or x is misaligned. A launch does not allocate or synchronise, and may be
 * captured; with bulk copies it also encodes a tensor map on the host. Errors, before anything
 * runs: PTXGEN_ERROR_INVALID_ARGUMENT, with the name of the argument, for a null or misaligned
 * address, a stride below its row, a buffer that is too small, arrays that overlap, an m above the
 * plan's max_m or a workspace that is too small; PTXGEN_ERROR_DRIVER for the tensor map; and those
 * of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_launch(const ptxgen_marlin *kernel,
                                              const ptxgen_marlin_args *args,
                                              ptxgen_cu_stream stream, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
