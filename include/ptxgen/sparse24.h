/* SPDX-License-Identifier: Apache-2.0 */
/**
 * sparse24: a matrix product with 2:4 sparse weights, straight from their compressed form, on
 * sparse tensor cores (mma.sp: tier 2), or of the weight inflated by every launch, on dense ones
 * (tier 1: f32, which mma.sp does not have, or what must be rounded as a dense product is).
 *
 *     v = x·wᵀ                          over the kept elements of w
 *     v = v·x_scale[m]·w_scale[n]       s8 only
 *     y = f(v + bias) + residual        f: identity, ReLU, SiLU or GELU
 *
 *     x         [M, K]  activations of M tokens, which belong to the launch: 0 launches nothing
 *     w         [N, K]  2:4 sparse weights of N output features
 *     y         [M, N]  outputs; residual likewise, bias [N]
 *
 * x and w are f32, f16, bf16 or s8, bias, residual and y are of that type, or for s8 f16 or bf16,
 * scales f32: any finite numbers. s8 has tier 2 only.
 * An infinity or NaN in x leaves other tokens as they are. In its own token, tier 2 does not
 * multiply it where w keeps no element of its column, so that this output is the formula's. Tier 1
 * is a dense product, in which what w does not keep is 0: this output is NaN (0·∞).
 * Sums are f32 (of s8 exact, in s32), in an order that depends on the plan and M only, so equal
 * inputs give equal bits. N is any, K a multiple of 8, as 2:4 metadata needs.
 *
 * Weights are pruned and compressed by <ptxgen/sparse24_formats.h>, or come compressed from a
 * checkpoint, and are packed once into the order in which the kernel's lanes read them; that order
 * is the same for every target. Packing refuses metadata that stands for no 2:4 weight, so that a
 * launch meets none.
 *
 *     ptxgen_sparse24_spec spec = {.n = 14336, .k = 4096, .type = PTXGEN_SPARSE24_F16,
 *                                  .y_type = PTXGEN_F16};
 *     ptxgen_sparse24_plan plan;
 *     ptxgen_sparse24_make_plan(&spec, &target, &plan, &err);
 *     size_t packed_bytes;
 *     ptxgen_sparse24_packed_bytes(&spec, &packed_bytes, &err);
 *     ptxgen_sparse24_pack(&spec, values, PTXGEN_SPARSE24_BYTES, metadata, packed, &err);
 *     …copy it to the device…
 *     ptxgen_sparse24 *kernel;
 *     ptxgen_sparse24_load(&driver, &plan, NULL, &kernel, &err);
 *     ptxgen_sparse24_args args = {.m = 16, .x = …, .w = …, .y = …};
 *     uint64_t bytes;
 *     ptxgen_sparse24_workspace_bytes(kernel, &args, &bytes, &err); // zeroed once by the caller
 *     ptxgen_sparse24_launch(kernel, &args, stream, &err);
 *
 * Plans and specs are plain values: zero them, fill them, copy and compare them with memcmp. All
 * functions but load, dispatch, destroy and launch are pure and may be called from any thread; of
 * these, kernel.h and dispatch.h say what several threads may do at once.
 */
#ifndef PTXGEN_SPARSE24_H
#define PTXGEN_SPARSE24_H

#include <ptxgen/dense.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/kernel.h>
#include <ptxgen/sparse24_formats.h>
#include <ptxgen/target.h>
#include <ptxgen/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Every specialisation constant; zero it before filling it in, it is a cache key. */
typedef struct ptxgen_sparse24_spec {
    uint32_t n;         /**< output features */
    uint32_t k;         /**< a multiple of 8 */
    uint32_t max_m;     /**< the most tokens that will be launched; 0: any */
    uint8_t type;       /**< of x and w: ptxgen_sparse24_type */
    uint8_t y_type;     /**< of y, bias and residual: that of x, or for s8 PTXGEN_F16 or _BF16 */
    uint8_t activation; /**< ptxgen_activation */
    uint8_t bias;       /**< 1: biases are added */
    uint8_t residual;   /**< 1: a residual is added to y */
    uint8_t tier; /**< 1: inflate w, then multiply; 2: mma.sp or wgmma.sp; 0: 1 for f32, else 2 */
    uint8_t reserved[2];
} ptxgen_sparse24_spec;

enum { PTXGEN_SPARSE24_VARIANTS = 6 };

/** How a variant of tier 2 multiplies. */
enum {
    PTXGEN_SPARSE24_MMA,   /**< mma.sp.sync, operands copied by cp.async: every target */
    PTXGEN_SPARSE24_WGMMA, /**< wgmma.sp, operands copied in bulk: sm_90a, PTX 8.2 */
};

/**
 * The shape of one entry of the module. A CTA has wm × wn × wk warps, along M, N and K; from a
 * stage a warp multiplies 32·wm features by 128 columns of w with tile_m / wm tokens. With wgmma
 * four warps along N are a warpgroup, its warps may have 16 features each instead of 32, and four
 * more warps issue the copies.
 */
typedef struct ptxgen_sparse24_variant {
    uint32_t tile_m;       /**< tokens of a CTA's tile: 8, 16, 32, 64 or 128 */
    uint32_t wm, wn, wk;   /**< warps along M (1 or 2), along N and along K */
    uint32_t warp_n;       /**< features of a warp, for each along M: 32, or 16 with wgmma */
    uint32_t cluster;      /**< 2: two CTAs, a cluster, halve K (of wgmma with wk = 1); else 1 */
    uint32_t stages;       /**< of the pipeline of copies */
    uint32_t pass_m;       /**< tokens whose sums are brought together at once */
    uint32_t kind;         /**< PTXGEN_SPARSE24_MMA or _WGMMA */
    uint32_t shared_bytes; /**< of one CTA, in all */
    uint32_t dynamic_shared_bytes; /**< what a launch passes: all of it when above 48 KB, else 0 */
} ptxgen_sparse24_variant;

typedef struct ptxgen_sparse24_plan {
    ptxgen_sparse24_spec spec;
    ptxgen_target target;
    uint32_t variant_count;
    ptxgen_sparse24_variant variants[PTXGEN_SPARSE24_VARIANTS]; /**< by rising tile_m; of tier 2 */
    ptxgen_dense_plan dense; /**< of tier 1 */
} ptxgen_sparse24_plan;

/**
 * Validates the spec and chooses the tiles. Refuses with PTXGEN_ERROR_UNSUPPORTED and the rule: N
 * or K of 0, K not a multiple of 8, types that are not as above, an s8 K whose sums could overflow.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_make_plan(const ptxgen_sparse24_spec *spec,
                                                   const ptxgen_target *target,
                                                   ptxgen_sparse24_plan *plan, ptxgen_error *err);
/**
 * Makes `tile` the plan's only variant, for measuring it: its tile_m, warps, warp_n (0: 32), stages
 * (0: all that fit), cluster (0: 1) and pass_m; the rest is worked out here. Errors:
 * PTXGEN_ERROR_INVALID_ARGUMENT for a number out of its range or a plan of tier 1,
 * PTXGEN_ERROR_UNSUPPORTED for a cluster or warps along K that the target or K does not allow,
 * PTXGEN_ERROR_SHARED_MEMORY for a tile that no CTA holds.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_use_tile(ptxgen_sparse24_plan *plan,
                                                  const ptxgen_sparse24_variant *tile,
                                                  ptxgen_error *err);
/** Tier 2's variant that serves m tokens; NULL when m is 0 or above the plan's most. */
PTXGEN_API const ptxgen_sparse24_variant *ptxgen_sparse24_choose(const ptxgen_sparse24_plan *plan,
                                                                 uint64_t m);
/** CTAs that a launch of m tokens has. */
PTXGEN_API ptxgen_status ptxgen_sparse24_ctas(const ptxgen_sparse24_plan *plan, uint64_t m,
                                              uint32_t *ctas, ptxgen_error *err);
/** The entry's name in the module: "sparse24_m8", "sparse24_m16" … */
PTXGEN_API const char *ptxgen_sparse24_entry(const ptxgen_sparse24_variant *variant);
/**
 * Emits the entries of `variants` (a bit for each of the plan's; ~0u: all), and "sparse24_align",
 * which brings rows of x to multiples of 16 bytes; of tier 1 dense's, and "sparse24_inflate".
 * Errors are the module's sticky error, also returned. Metadata is announced as ordered where the
 * target's PTX version allows (8.5).
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_emit(const ptxgen_sparse24_plan *plan, uint32_t variants,
                                              ptx_module *module, ptxgen_error *err);

/* ---- packing ---- */

/**
 * Bytes of the packed weight. Of tier 1: the values, then from a multiple of 16 bytes on the
 * metadata as bytes, both as sparse24_formats.h has them. Of tier 2: blocks of 32 rows by 128
 * columns, padded with zeros, those of 32 rows one after the other. A block is pieces of 512 bytes,
 * 16 a lane. One for each 64 bytes of K in x and 16 rows, in this order: what mma.sp takes from the
 * lane as its operand A. The last piece is metadata: word 2j + t of a lane belongs to 64 columns j
 * and 16 rows t; in 16-bit types, selector 0 takes the first 32 columns of these, selector 1 the
 * others.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_packed_bytes(const ptxgen_sparse24_spec *spec,
                                                      size_t *bytes, ptxgen_error *err);
/**
 * Packs a compressed weight of N × K in any form of metadata; see sparse24_formats.h for the sizes.
 * Refuses sizes that are not the spec's, and metadata of a group that does not name two positions
 * in order. On the device the packed weight starts at a multiple of 16 bytes.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_pack(const ptxgen_sparse24_spec *spec,
                                              ptxgen_const_span values, ptxgen_sparse24_form form,
                                              ptxgen_const_span metadata, ptxgen_span packed,
                                              ptxgen_error *err);

/* ---- the reference ---- */

/** A problem in host memory. Strides are in elements, 0: the row. */
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
 * y in double precision, [m, n], and how far this plan's kernel may be from it after rounding: NaN
 * promises nothing. Of s8 with no activation or ReLU, y is exact: rounded as the kernel rounds,
 * with bounds of 0. What is not an ordinary number is as dense.h has it at
 * ptxgen_dense_reference. Bias and scales must be finite. Slow and allocating.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_reference(const ptxgen_sparse24_plan *plan,
                                                   const ptxgen_sparse24_operands *operands,
                                                   double *y, double *bound, ptxgen_error *err);
/** The same, and the spread of each output, [m, n]: accuracy.h says what for. */
PTXGEN_API ptxgen_status ptxgen_sparse24_reference_spread(const ptxgen_sparse24_plan *plan,
                                                          const ptxgen_sparse24_operands *operands,
                                                          double *y, double *bound,
                                                          ptxgen_spread *spread, ptxgen_error *err);

/* ---- running it ---- */

/**
 * What a launch works on: device addresses, strides in elements. Members that the spec does not
 * use are ignored. Zero it before filling it in.
 *
 * x, y, bias and residual may start at any multiple of their element's size; multiples of 16
 * bytes, with strides that are too, are faster.
 *
 * What is written overlaps no other array of the launch (kernel.h, "Arrays").
 * y may be the residual itself, at the same address with the same row stride.
 */
typedef struct ptxgen_sparse24_args {
    uint64_t m;      /**< tokens: 0 launches nothing */
    uint64_t x;      /**< [m, k], row stride x_stride ≥ k */
    uint64_t w;      /**< as packed */
    uint64_t x_scale, w_scale; /**< s8: f32 [m], [n] */
    uint64_t bias;     /**< [n] */
    uint64_t residual; /**< [m, n], row stride residual_stride ≥ n */
    uint64_t y;        /**< [m, n], row stride y_stride ≥ n */
    uint64_t x_stride, residual_stride, y_stride; /**< 0 means the row itself */
    /**
     * At least ptxgen_sparse24_workspace_bytes. Zeroed once when it is allocated; every launch
     * leaves it ready for the next in its stream. Launches in flight at once need one each. It
     * starts at a multiple of 16 bytes.
     */
    uint64_t workspace;
    uint64_t workspace_bytes;
    /**
     * 1 (sm_90 and later; tier 1 ignores it): the launch may begin before the kernel ahead of it in
     * the stream has ended (programmatic dependent launch). It then reads only weights until that
     * kernel's results are visible, so that kernel must not be the one that writes the weights.
     */
    uint32_t overlap_previous;
} ptxgen_sparse24_args;

/** A plan's loaded entries, in one context. */
typedef struct ptxgen_sparse24 ptxgen_sparse24;

/** The family for ptxgen/dispatch.h. */
PTXGEN_API const ptxgen_family *ptxgen_sparse24_family(void);
/** ptxgen_dispatch for this family: one reference, given back with ptxgen_sparse24_destroy. */
PTXGEN_API ptxgen_status ptxgen_sparse24_dispatch(ptxgen_dispatcher *dispatcher,
                                                  const ptxgen_sparse24_spec *spec,
                                                  ptxgen_sparse24 **kernel, ptxgen_error *err);
/** Emits all of the plan's entries and loads them into the current context, past the registry. */
PTXGEN_API ptxgen_status ptxgen_sparse24_load(const ptxgen_driver *driver,
                                              const ptxgen_sparse24_plan *plan,
                                              const ptxgen_module_options *options,
                                              ptxgen_sparse24 **kernel, ptxgen_error *err);
/** Unloads what load made; gives back what dispatch gave. NULL does nothing. */
PTXGEN_API void ptxgen_sparse24_destroy(ptxgen_sparse24 *kernel);
/** The driver's attributes of the entry that serves m tokens; NULL when none does. */
PTXGEN_API const ptxgen_kernel_attributes *
ptxgen_sparse24_attributes(const ptxgen_sparse24 *kernel, uint64_t m);
/** Bytes of workspace that this launch needs, which may be 0, of tier 1 with w's; pure. */
PTXGEN_API ptxgen_status ptxgen_sparse24_workspace_bytes(const ptxgen_sparse24 *kernel,
                                                         const ptxgen_sparse24_args *args,
                                                         uint64_t *bytes, ptxgen_error *err);
/**
 * Tier 1: enqueues the inflating of a packed weight alone, to the dense w [N, K] at `dense`, for
 * ptxgen_dense_launch or others. Both start at multiples of 16 bytes. What is not kept is +0, the
 * rest is copied bit for bit. Whatever the metadata holds, each group's elements stay in it.
 * What is written overlaps no other array of the launch (kernel.h, "Arrays").
 * Errors: PTXGEN_ERROR_INVALID_ARGUMENT for a kernel of tier 2, a null or misaligned address and
 * arrays that overlap; those of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_inflate(const ptxgen_sparse24 *kernel, uint64_t packed,
                                                 uint64_t dense, ptxgen_cu_stream stream,
                                                 ptxgen_error *err);
/**
 * Enqueues the product on `stream`: one kernel, after an aligning one where rows of x do not start
 * at multiples of 16 bytes (s8: or K is not one); of tier 1 after one that inflates w, too. No
 * allocation, no synchronisation, capturable.
 * Errors, before anything runs: PTXGEN_ERROR_INVALID_ARGUMENT naming the argument for a null or
 * misaligned address, a stride below its row, arrays that overlap, m above the plan's most or a
 * workspace that is too small; and those of ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_launch(const ptxgen_sparse24 *kernel,
                                                const ptxgen_sparse24_args *args,
                                                ptxgen_cu_stream stream, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
