/* SPDX-License-Identifier: Apache-2.0 */
/**
 * sparse24: a matrix product with 2:4 sparse weights. Tier 2 multiplies weights in their compressed
 * form on sparse tensor cores (mma.sp, wgmma.sp). Tier 1 inflates the weights in every launch and
 * multiplies them on dense tensor cores: for f32, which mma.sp does not have, and for outputs that
 * must be rounded like those of a dense product.
 *
 *     s[m,n] = Σ_k x[m,k]·w[n,k]                      over the kept elements of w
 *     v[m,n] = s[m,n]·x_scale[m]·w_scale[n]           for s8; else v = s
 *     y[m,n] = f(v[m,n] + bias[n]) + residual[m,n]    f: identity, ReLU, SiLU or GELU
 *
 *     x         [M, K]  activations of M tokens
 *     w         [N, K]  2:4 sparse weights of N output features
 *     y         [M, N]  outputs; residual likewise, bias [N]
 *
 * x and w are f32, f16, bf16 or s8. y, bias and residual have the same type, or for s8 f16 or bf16;
 * scales are f32 and finite. s8 has tier 2 only. N and M may have any value; K is a multiple of 8,
 * as 2:4 metadata needs. Sums are f32, or for s8 exact in s32, in an order that depends on the plan
 * and M only, so equal inputs give equal bits.
 *
 * An infinity or NaN in x affects its own token only. Tier 2 does not multiply it where w keeps no
 * element of its column, so that output follows the formula. Tier 1 is a dense product, in which
 * the elements that w does not keep are 0, so that output is NaN (0·∞).
 *
 * Weights are pruned and compressed by <ptxgen/sparse24_formats.h>, or come compressed from a
 * checkpoint. They are packed once into the order in which the kernel's lanes read them, which is
 * the same for every target: by ptxgen_sparse24_pack on the host, or by ptxgen_sparse24_repack on
 * the device. Packing refuses metadata that describes no 2:4 weight.
 *
 * A kernel whose spec is plain also takes the two compressed arrays as they are, values [N, K/2]
 * and metadata as bytes [N, K/4] (u16 [N, K/8]), whose positions may be in either order. Tier 1
 * inflates from them. Tier 2 packs them into the workspace in every launch, which reads and writes
 * all of w once more; who launches more than once packs once.
 *
 *     ptxgen_sparse24_spec spec = {.n = 14336, .k = 4096, .type = PTXGEN_SPARSE24_F16,
 *                                  .y_type = PTXGEN_F16};
 *     ptxgen_sparse24_plan plan;
 *     ptxgen_sparse24_make_plan(&spec, &target, &plan, &err);
 *     size_t packed_bytes;
 *     ptxgen_sparse24_packed_bytes(&spec, &packed_bytes, &err);
 *     ptxgen_sparse24_pack(&spec, values, PTXGEN_SPARSE24_BYTES, metadata, packed, &err);
 *     // copy `packed` to the device
 *     ptxgen_sparse24 *kernel;
 *     ptxgen_sparse24_load(&driver, &plan, NULL, &kernel, &err);
 *     ptxgen_sparse24_args args = {.m = 16, .x = …, .w = …, .y = …};
 *     uint64_t bytes;
 *     ptxgen_sparse24_workspace_bytes(kernel, &args, &bytes, &err); // allocate it, zero it once
 *     ptxgen_sparse24_launch(kernel, &args, stream, &err);
 *
 * Plans and specs are plain values: zero them, fill them, copy and compare them with memcmp. All
 * functions are pure and may be called from any thread, except for load, dispatch, destroy,
 * inflate, repack and launch, for which kernel.h and dispatch.h say what several threads may do at
 * the same time.
 */
#ifndef PTXGEN_SPARSE24_H
#define PTXGEN_SPARSE24_H

#include <ptxgen/dense.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/guarantee.h>
#include <ptxgen/kernel.h>
#include <ptxgen/sparse24_formats.h>
#include <ptxgen/target.h>
#include <ptxgen/tile.h>
#include <ptxgen/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** All constants for which code is specialised. A spec is a cache key: zero it, then fill it. */
typedef struct ptxgen_sparse24_spec {
    uint32_t n;         /**< output features */
    uint32_t k;         /**< a multiple of 8 */
    uint32_t max_m;     /**< the most tokens that will be launched; 0: any */
    uint8_t type;       /**< of x and w: ptxgen_sparse24_type */
    uint8_t y_type;     /**< of y, bias and residual: that of x, or for s8 PTXGEN_F16 or _BF16 */
    uint8_t activation; /**< ptxgen_activation */
    uint8_t bias;       /**< 1: biases are added */
    uint8_t residual;   /**< 1: a residual is added */
    uint8_t tier;  /**< 1: inflate w, then multiply; 2: mma.sp or wgmma.sp; 0: 1 for f32, else 2 */
    uint8_t plain; /**< 1: launches may also take values and metadata as they are */
    uint8_t reserved[1];
} ptxgen_sparse24_spec;

enum { PTXGEN_SPARSE24_VARIANTS = 6 };

/*
 * Tiles of tier 2 (tile.h). In a stage a warp multiplies wm · warp_n features by 128 of K with
 * tile_m / wm tokens. tile_m is 8, 16, 32, 64 or 128, wm 1 or 2, warp_n 32, or 16 with
 * PTXGEN_WGMMA, which needs sm_90a and PTX 8.2; there is no PTXGEN_BULK. The two CTAs of a cluster
 * divide K, with wgmma only where wk is 1.
 */

typedef struct ptxgen_sparse24_plan {
    ptxgen_sparse24_spec spec;
    ptxgen_target target;
    uint32_t variant_count;
    ptxgen_tile variants[PTXGEN_SPARSE24_VARIANTS]; /**< by rising tile_m; of tier 2 */
    ptxgen_dense_plan dense;                        /**< of tier 1 */
} ptxgen_sparse24_plan;

/**
 * Validates the spec and chooses the tiles. Refuses with PTXGEN_ERROR_UNSUPPORTED and the rule: N
 * or K above 2³¹ − 1, K not a multiple of 8, types that are not as above, an s8 K whose sums could overflow.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_make_plan(const ptxgen_sparse24_spec *spec,
                                                   const ptxgen_target *target,
                                                   ptxgen_sparse24_plan *plan, ptxgen_error *err);
/**
 * Makes `tile` the plan's only variant, to measure it: its kind, tile_m, warps (0: 1), warp_n (0:
 * 32), stages (0: all that fit), cluster (0: 1) and pass_m (0: 8) are used, and the other members
 * are computed here. Errors: PTXGEN_ERROR_INVALID_ARGUMENT for a number out of its range or a plan
 * of tier 1, PTXGEN_ERROR_UNSUPPORTED for a cluster or warps along K that the target or K does not
 * allow, PTXGEN_ERROR_SHARED_MEMORY for a tile that no CTA holds.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_use_tile(ptxgen_sparse24_plan *plan,
                                                  const ptxgen_tile *tile, ptxgen_error *err);
/**
 * Tier 2's variant that serves m tokens; NULL when m is 0 or above the plan's most, or N or K is 0.
 */
PTXGEN_API const ptxgen_tile *ptxgen_sparse24_choose(const ptxgen_sparse24_plan *plan, uint64_t m);
/** CTAs that a launch of m tokens has. */
PTXGEN_API ptxgen_status ptxgen_sparse24_ctas(const ptxgen_sparse24_plan *plan, uint64_t m,
                                              uint32_t *ctas, ptxgen_error *err);
/**
 * The entry's name in the module, as "sparse24_m16"; the number is tokens. Names are stable
 * (guarantee.h).
 */
PTXGEN_API const char *ptxgen_sparse24_entry(const ptxgen_tile *variant);
/**
 * What a launch of m > 0 tokens promises (guarantee.h), in tier 1 that of the dense product;
 * refused where no variant serves m.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_guarantee(const ptxgen_sparse24_plan *plan, uint64_t m,
                                                   ptxgen_guarantee *guarantee,
                                                   ptxgen_error *err);
/** One sentence: the tiles that m tokens have. */
PTXGEN_API void ptxgen_sparse24_explain(const ptxgen_sparse24_plan *plan, uint64_t m, char *text,
                                        size_t size);
/**
 * Emits the entries of `variants`, which has a bit for each variant of the plan (~0u: all), and
 * "sparse24_align", which copies rows of x to multiples of 16 bytes. For tier 1 these are dense's
 * entries, and "sparse24_inflate". Where a spec of tier 2 is plain, "sparse24_repack" follows. An
 * error becomes the module's sticky error and is returned.
 * Where the target has PTX 8.5, instructions are mma.sp::ordered_metadata.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_emit(const ptxgen_sparse24_plan *plan, uint32_t variants,
                                              ptx_module *module, ptxgen_error *err);

/* ---- packing ---- */

/**
 * Bytes of the packed weight. Tier 1 has the values, then at a multiple of 16 bytes the metadata as
 * bytes, both in the order of sparse24_formats.h. Tier 2 has blocks of 32 features by 128 columns
 * of K, padded with zeros; the blocks of 32 features are contiguous. A block consists of pieces of
 * 512 bytes, 16 bytes for each lane. There is one piece for each 64 bytes of K of a token and each
 * 16 features, in this order, which holds what mma.sp takes from the lane as its operand A. The
 * last piece is metadata: word 2j + t of a lane belongs to columns 64j to 64j + 63 and features 16t
 * to 16t + 15. In 16-bit types selector 0 takes the first 32 of these columns, and selector 1 the
 * others.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_packed_bytes(const ptxgen_sparse24_spec *spec,
                                                      size_t *bytes, ptxgen_error *err);
/**
 * Packs a compressed weight [N, K] with any form of metadata; sparse24_formats.h has the sizes.
 * Refuses sizes that are not the spec's, and metadata of a group that does not name two different
 * positions; of positions in falling order it swaps the values. On the device the packed weight has
 * to start at a multiple of 16 bytes.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_pack(const ptxgen_sparse24_spec *spec,
                                              ptxgen_const_span values, ptxgen_sparse24_form form,
                                              ptxgen_const_span metadata, ptxgen_span packed,
                                              ptxgen_error *err);

/* ---- the reference ---- */

/** A problem in host memory. Strides are in elements; 0 means the length of the row. */
typedef struct ptxgen_sparse24_operands {
    uint64_t m;
    const void *x; /**< [m, k] */
    ptxgen_const_span values;
    ptxgen_sparse24_form form;
    ptxgen_const_span metadata;
    const float *x_scale, *w_scale; /**< s8: [m], [n], refused unless finite */
    const void *bias;               /**< [n] */
    const void *residual;           /**< [m, n] */
    uint64_t x_stride, residual_stride;
} ptxgen_sparse24_operands;

/**
 * Computes y [m, n] in double precision, and for each output the bound of the error of this plan's
 * kernel after rounding. A bound of NaN makes no statement. For s8 with no activation or with ReLU,
 * y is exact: it is rounded as the kernel rounds, and bounds are 0. Values that are not ordinary
 * numbers follow the rules at ptxgen_dense_reference in dense.h. Bias and scales must be finite.
 * The function is slow and allocates memory.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_reference(const ptxgen_sparse24_plan *plan,
                                                   const ptxgen_sparse24_operands *operands,
                                                   double *y, double *bound, ptxgen_error *err);
/** Like ptxgen_sparse24_reference, and also computes the spread of each output (accuracy.h). */
PTXGEN_API ptxgen_status ptxgen_sparse24_reference_spread(const ptxgen_sparse24_plan *plan,
                                                          const ptxgen_sparse24_operands *operands,
                                                          double *y, double *bound,
                                                          ptxgen_spread *spread, ptxgen_error *err);

/* ---- running it ---- */

/**
 * The arguments of a launch: device addresses, and strides in elements. Zero it, then fill it.
 * Members that the spec does not use are ignored.
 *
 * x, y, bias and residual may start at any multiple of their element's size. Addresses and strides
 * that are multiples of 16 bytes are faster.
 *
 * Arrays that are written must not overlap any other array of the launch (kernel.h, "Arrays"), but
 * y may be the residual itself, at the same address and with the same row stride.
 */
typedef struct ptxgen_sparse24_args {
    uint64_t m; /**< tokens: 0 launches nothing */
    uint64_t x; /**< [m, k], row stride x_stride ≥ k */
    uint64_t w; /**< as packed; with the spec's plain 0: the weight is values and metadata */
    uint64_t x_scale, w_scale;                    /**< s8: f32 [m], [n] */
    uint64_t bias;                                /**< [n] */
    uint64_t residual;                            /**< [m, n], row stride residual_stride ≥ n */
    uint64_t y;                                   /**< [m, n], row stride y_stride ≥ n */
    uint64_t x_stride, residual_stride, y_stride; /**< 0 means the row itself */
    /**
     * Address of workspace_bytes bytes, at least ptxgen_sparse24_workspace_bytes, at a multiple of
     * 16. Zero the workspace once after allocating it; every launch leaves it ready for the next
     * launch in its stream. Launches that are in flight at the same time need a workspace each.
     */
    uint64_t workspace;
    uint64_t workspace_bytes;
    /**
     * 1 (sm_90 and later; tier 1 ignores it): the launch may begin before the kernel ahead of it in
     * the stream has ended (programmatic dependent launch). It then reads only weights until that
     * kernel's results are visible; who may have written them says kernel.h, "Overlap". A launch
     * that packs ignores it.
     */
    uint32_t overlap_previous;
    /** Bytes of the buffer at each address; 0: unchecked (kernel.h, "Arrays"). */
    uint64_t x_bytes, w_bytes, x_scale_bytes, w_scale_bytes;
    uint64_t bias_bytes, residual_bytes, y_bytes;
    /**
     * The compressed weight, where w is 0: values [n, k/2], at a multiple of 16 bytes, and metadata
     * in the form of bytes [n, k/4], at a multiple of 2. Metadata is not checked: a group with one
     * position twice, and bits that should be 0, make that feature's outputs wrong, but nothing
     * outside of the arrays is read.
     */
    uint64_t values, metadata;
    uint64_t values_bytes, metadata_bytes;
} ptxgen_sparse24_args;

/** A plan's loaded entries, in one context. */
typedef struct ptxgen_sparse24 ptxgen_sparse24;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_sparse24_family(void);
/** ptxgen_dispatch for this family; release the reference with ptxgen_sparse24_destroy. */
PTXGEN_API ptxgen_status ptxgen_sparse24_dispatch(ptxgen_dispatcher *dispatcher,
                                                  const ptxgen_sparse24_spec *spec,
                                                  ptxgen_sparse24 **kernel, ptxgen_error *err);
/** Emits all entries of the plan and loads them into the current context, without a dispatcher. */
PTXGEN_API ptxgen_status ptxgen_sparse24_load(const ptxgen_driver *driver,
                                              const ptxgen_sparse24_plan *plan,
                                              const ptxgen_module_options *options,
                                              ptxgen_sparse24 **kernel, ptxgen_error *err);
/** Unloads a kernel from load; releases a reference from dispatch. NULL does nothing. */
PTXGEN_API void ptxgen_sparse24_destroy(ptxgen_sparse24 *kernel);
/** The driver's attributes of the entry that serves m tokens; NULL if there is none. */
PTXGEN_API const ptxgen_kernel_attributes *ptxgen_sparse24_attributes(const ptxgen_sparse24 *kernel,
                                                                      uint64_t m);
/** Bytes of workspace that this launch needs, which may be 0; tier 1 includes inflated w. Pure. */
PTXGEN_API ptxgen_status ptxgen_sparse24_workspace_bytes(const ptxgen_sparse24 *kernel,
                                                         const ptxgen_sparse24_args *args,
                                                         uint64_t *bytes, ptxgen_error *err);
/** The arguments of an inflation: device addresses of two arrays that do not overlap. */
typedef struct ptxgen_sparse24_inflate_args {
    uint64_t packed; /**< as packed; with the spec's plain 0: values and metadata */
    uint64_t dense;  /**< w [N, K], which is written */
    /** Bytes of the buffer at each address; 0: unchecked (kernel.h, "Arrays"). */
    uint64_t packed_bytes, dense_bytes;
    uint64_t values, metadata; /**< as in ptxgen_sparse24_args */
    uint64_t values_bytes, metadata_bytes;
} ptxgen_sparse24_inflate_args;

/**
 * Tier 1: enqueues only the inflation of a packed weight, to a dense w [N, K], for
 * ptxgen_dense_launch or other kernels. Both addresses are multiples of 16 bytes. Kept elements are
 * copied bit for bit, and the others are +0. Whatever the metadata holds, the elements of a group
 * stay in that group. Errors: PTXGEN_ERROR_INVALID_ARGUMENT for a kernel of tier 2, a null or
 * misaligned address, a buffer that is too small and arrays that overlap; those of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_inflate(const ptxgen_sparse24 *kernel,
                                                 const ptxgen_sparse24_inflate_args *args,
                                                 ptxgen_cu_stream stream, ptxgen_error *err);

/** The arguments of a packing: device addresses of arrays that do not overlap. */
typedef struct ptxgen_sparse24_repack_args {
    uint64_t values, metadata; /**< as in ptxgen_sparse24_args */
    uint64_t packed;           /**< as packed, at a multiple of 16 bytes, which is written */
    /**
     * Address of 8 bytes at a multiple of 8, or 0 for no check. The caller zeroes the 8 bytes. They
     * stay 0 if each byte of metadata is two different positions; ptxgen_sparse24_repack_verdict
     * explains other values.
     */
    uint64_t refused;
    /** Bytes of the buffer at each address; 0: unchecked (kernel.h, "Arrays"). */
    uint64_t values_bytes, metadata_bytes, packed_bytes, refused_bytes;
} ptxgen_sparse24_repack_args;

/**
 * Tier 2, for a spec that is plain: enqueues the packing of values and metadata, bit for bit as
 * ptxgen_sparse24_pack does on the host; launches then take the packed weight as w. A group with
 * one position twice keeps nothing. Errors: PTXGEN_ERROR_INVALID_ARGUMENT for another kernel, a
 * null or misaligned address, a buffer that is too small and arrays that overlap; those of
 * ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_repack(const ptxgen_sparse24 *kernel,
                                                const ptxgen_sparse24_repack_args *args,
                                                ptxgen_cu_stream stream, ptxgen_error *err);
/**
 * Explains the word `refused` of a packing: returns PTXGEN_OK for 0, else PTXGEN_ERROR_MALFORMED
 * and the sentence of ptxgen_sparse24_pack about the first byte that is refused.
 * PTXGEN_ERROR_INVALID_ARGUMENT for a word that no packing of this spec writes. Pure.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_repack_verdict(const ptxgen_sparse24_spec *spec,
                                                        uint64_t refused, ptxgen_error *err);

/**
 * Enqueues the product on `stream`: one kernel, before it one that aligns x if rows of x do not
 * start at multiples of 16 bytes (s8: or if K is no multiple of 16), in tier 1 one that inflates w,
 * and in tier 2 where w is 0 one that packs values and metadata. A launch does not allocate or
 * synchronise, and may be captured. Errors, before anything runs: PTXGEN_ERROR_INVALID_ARGUMENT,
 * with the name of the argument, for a null or misaligned address, a stride below its row, a buffer
 * that is too small, arrays that overlap, an m above the plan's max_m or a workspace that is too
 * small; and those of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_launch(const ptxgen_sparse24 *kernel,
                                                const ptxgen_sparse24_args *args,
                                                ptxgen_cu_stream stream, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
