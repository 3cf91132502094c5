/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the plan, the emitter and the launch of w8a8 share. */
#ifndef PTXGEN_W8A8_LAYOUT_H
#define PTXGEN_W8A8_LAYOUT_H

#include "../gemm/align.h"
#include "../gemm/operand.h"
#include "../gemm/plan.h"
#include "../gemm/sums.h"
#include "code_type.h"

#include <ptxgen/w8a8.h>

#include <stdbool.h>

enum {
    W8A8_THREADS = 256, /* of a product's CTA */
    W8A8_WARPS = W8A8_THREADS / 32,
    W8A8_BLOCK = 128,             /* bytes of K that a warp takes of a stage */
    W8A8_MOST_BLOCKS = 4,         /* of K in a stage of wgmma that have sums apart */
    W8A8_STEPS = W8A8_BLOCK / 32, /* of an mma.sync or a wgmma, along K of a block */
    W8A8_TILE_ROWS = 16,          /* features of an mma.m16n8k32, its M */
    W8A8_TILE_TOKENS = 8,         /* tokens of an mma.m16n8k32, its N */
    W8A8_CODES_ALIGN = 128,       /* rows of codes in the workspace are padded to this */
    W8A8_LEAST_STAGES = 3,
    W8A8_MOST_STAGES = 12,
    W8A8_MOST_WGMMA_STAGES = 20
};

/* The parameters of every product entry, in order: addresses, then numbers. */
enum w8a8_param {
    W8A8_X,
    W8A8_W,
    W8A8_W_SCALE,
    W8A8_W_SUM,
    W8A8_BIAS,
    W8A8_X_SCALE,
    W8A8_X_ZERO,
    W8A8_Y,
    W8A8_CODES,
    W8A8_TOKEN_SCALES,
    W8A8_TOKEN_ZEROS,
    W8A8_FLAGS,
    W8A8_PARTIALS,
    W8A8_RESIDUAL, /* the last one of 64 bits */
    W8A8_X_STRIDE,
    W8A8_Y_STRIDE,
    W8A8_RESIDUAL_STRIDE,
    W8A8_M,
    W8A8_SHARE,
    W8A8_EXTRA,
    W8A8_GRANULE, /* of 32 bits, like those before it */
    W8A8_PARAMS
};

/*
 * The parameters that wgmma's entries have besides: tensor maps of w and codes, 128 bytes of K
 * wide.
 */
enum {
    W8A8_W_MAP = W8A8_PARAMS,
    W8A8_CODES_MAP,
    W8A8_WGMMA_PARAMS,
    W8A8_MAP_BYTES = 128,
    W8A8_MAP_ALIGN = 64
};

/* The parameters of "w8a8_quantise", which has a CTA for each token and CTAs that prefetch. */
enum w8a8_quantise_param {
    W8A8_Q_X,
    W8A8_Q_X_SCALE,
    W8A8_Q_X_ZERO,
    W8A8_Q_CODES,
    W8A8_Q_SCALES,
    W8A8_Q_ZEROS,
    W8A8_Q_FLAGS,
    W8A8_Q_W, /* the last one of 64 bits */
    W8A8_Q_X_STRIDE,
    W8A8_Q_FLAG_COUNT,
    W8A8_Q_M,
    W8A8_Q_LINES,
    W8A8_Q_PART_BITS,
    W8A8_Q_PART_BYTES,
    W8A8_Q_LINE_BITS,
    W8A8_Q_BLOCKS,
    W8A8_Q_STAGES,
    W8A8_Q_STAGE_BYTES, /* of 32 bits, like those before it */
    W8A8_Q_PARAMS
};

static inline uint32_t w8a8_w_stride(const ptxgen_w8a8_spec *spec)
{
    return spec->w_stride ? spec->w_stride : spec->k;
}
/* Whether x is codes of the caller's. */
static inline bool w8a8_takes_codes(const ptxgen_w8a8_spec *spec)
{
    return spec->scales == PTXGEN_W8A8_QUANTISED;
}
static inline uint32_t w8a8_x_bytes(const ptxgen_w8a8_spec *spec)
{
    return w8a8_takes_codes(spec) ? 1 : (uint32_t)ptxgen_element_size((ptxgen_element)spec->x_type);
}
static inline bool w8a8_gated(const ptxgen_w8a8_spec *spec)
{
    return spec->epilogue == PTXGEN_EPILOGUE_SWIGLU;
}
/* Rows of w: with SwiGLU those of gate and up, in turn W8A8_PAIR_ROWS of each. */
enum { W8A8_PAIR_ROWS = 8 };
static inline uint32_t w8a8_rows(const ptxgen_w8a8_spec *spec)
{
    return w8a8_gated(spec) ? 2 * spec->n : spec->n;
}
static inline bool w8a8_is_wide(const ptxgen_w8a8_spec *spec)
{
    return ptxgen_w8a8_work_type(spec) == PTXGEN_F64;
}
/* Whether rows have zero points and are so long that unrolled loops take the assembler too long. */
static inline bool w8a8_is_long_asymmetric(const ptxgen_w8a8_spec *spec)
{
    enum { LONG = 16384 };
    return spec->asymmetric && spec->k > LONG;
}
static inline uint32_t w8a8_work_bytes(const ptxgen_w8a8_spec *spec)
{
    return w8a8_is_wide(spec) ? 8 : 4;
}
/* Whether scales are of groups of K, and of blocks of w. */
static inline bool w8a8_has_groups(const ptxgen_w8a8_spec *spec)
{
    return spec->group != 0;
}
/* Groups of K, of which the last may be shorter. */
static inline uint32_t w8a8_groups(const ptxgen_w8a8_spec *spec)
{
    return spec->k / PTXGEN_W8A8_GROUP + (spec->k % PTXGEN_W8A8_GROUP != 0);
}
/* Rows of w that a block of features takes; with SwiGLU rows of gate and of up are in turn. */
static inline uint32_t w8a8_block_rows(const ptxgen_w8a8_spec *spec)
{
    return w8a8_gated(spec) ? 2 * PTXGEN_W8A8_GROUP : PTXGEN_W8A8_GROUP;
}
/* Blocks of features, of gate or of up. */
static inline uint32_t w8a8_feature_blocks(const ptxgen_w8a8_spec *spec)
{
    return spec->n / PTXGEN_W8A8_GROUP + (spec->n % PTXGEN_W8A8_GROUP != 0);
}
/* Scales of a token, and of w. */
static inline uint32_t w8a8_token_scales(const ptxgen_w8a8_spec *spec)
{
    return w8a8_has_groups(spec) ? w8a8_groups(spec) : 1;
}
static inline uint64_t w8a8_weight_scales(const ptxgen_w8a8_spec *spec)
{
    uint64_t blocks = (w8a8_gated(spec) ? 2 : 1) * (uint64_t)w8a8_feature_blocks(spec);
    return w8a8_has_groups(spec) ? blocks * w8a8_groups(spec) : w8a8_rows(spec);
}
/* Bytes of the three maxima that a part of a row is reduced to, see emit.h. */
static inline uint32_t w8a8_range_bytes(const ptxgen_w8a8_spec *spec)
{
    return 3 * w8a8_work_bytes(spec);
}
static inline uint64_t w8a8_code_stride(const ptxgen_w8a8_spec *spec)
{
    return ((uint64_t)spec->k + W8A8_CODES_ALIGN - 1) / W8A8_CODES_ALIGN * W8A8_CODES_ALIGN;
}
/* Threads that quantise a token, up to 1024: one for each chunk of 8 elements, or fewer. */
static inline uint32_t w8a8_quantise_threads(const ptxgen_w8a8_spec *spec)
{
    uint32_t threads = 256;
    while (threads < 1024 && threads * 8 < w8a8_code_stride(spec))
        threads *= 2;
    return threads;
}

/* ---- a variant's tile ---- */

/* Bytes of K in a stage: a block for each warp along K. */
static inline uint32_t w8a8_depth(const ptxgen_tile *v)
{
    return v->wk * W8A8_BLOCK;
}
/* Stages of a tile along K. */
static inline uint32_t w8a8_steps(const ptxgen_w8a8_spec *spec, const ptxgen_tile *v)
{
    return spec->k / w8a8_depth(v) + (spec->k % w8a8_depth(v) != 0);
}
/* Tiles of few tokens serve launches of no more tokens: one tile along M. */
static inline bool w8a8_takes_all_tokens(const ptxgen_tile *v)
{
    return v->tile_m <= 64;
}
/*
 * Rows of w that are no multiples of 16 bytes, but of 4, are copied as they are by tiles of few
 * tokens. Otherwise the entry "w8a8_align" first copies W to the workspace, with rows of multiples
 * of 16 bytes.
 */
static inline bool w8a8_copies_directly(const ptxgen_w8a8_plan *plan)
{
    return plan->copy_bytes >= 4;
}
static inline bool w8a8_aligns(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v)
{
    enum { FEW_TOKENS = 32 };
    return plan->copy_bytes < GEMM_CHUNK_BYTES &&
           !(w8a8_copies_directly(plan) && v->tile_m <= FEW_TOKENS);
}
static inline uint32_t w8a8_align_element(const ptxgen_w8a8_plan *plan)
{
    return w8a8_copies_directly(plan) ? 4 : 1;
}
static inline uint32_t w8a8_align_columns(const ptxgen_w8a8_plan *plan)
{
    uint32_t element = w8a8_align_element(plan);
    return (plan->spec.k + element - 1) / element;
}
/* Bytes of w that a tile copies at once, and bytes between the rows that the tile reads. */
static inline uint32_t w8a8_copy_bytes(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v)
{
    return w8a8_aligns(plan, v) ? GEMM_CHUNK_BYTES : plan->copy_bytes;
}
static inline uint32_t w8a8_read_stride(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v)
{
    return w8a8_aligns(plan, v) ? (uint32_t)gemm_aligned_bytes(plan->spec.k, 1)
                                : w8a8_w_stride(&plan->spec);
}
/*
 * Whether tiles with cp.async copy w in pieces that end with the row: where rows do not start at
 * multiples of 16 bytes, and where a chunk of 16 bytes would bring bytes past K that are NaNs.
 */
static inline bool w8a8_copies_pieces(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v)
{
    bool ends_in_chunk = plan->spec.k % GEMM_CHUNK_BYTES != 0;
    bool has_nans = w8a8_code_type(plan->spec.codes)->has_nans && !w8a8_aligns(plan, v);
    return w8a8_copy_bytes(plan, v) < GEMM_CHUNK_BYTES || (ends_in_chunk && has_nans);
}
/* Stages of K of one CTA; the two CTAs of a cluster have half each. */
static inline uint32_t w8a8_own_steps(const ptxgen_w8a8_spec *spec, const ptxgen_tile *v)
{
    return w8a8_steps(spec, v) / v->cluster;
}
/* Whether tokens are the M of wgmma and features its N. */
static inline bool w8a8_tokens_are_m(const ptxgen_tile *v)
{
    return gemm_is_wgmma(v) && v->tile_m >= 64;
}
/* The N of wgmma, where it is features, and where it is tokens. */
static inline uint32_t w8a8_group_features(const ptxgen_tile *v)
{
    return v->tile_n / v->wn;
}
static inline uint32_t w8a8_group_tokens(const ptxgen_tile *v)
{
    return v->tile_m / v->wm;
}
/* Warps along K. With wgmma, wk is the blocks of K in a stage, and every warp multiplies all. */
static inline uint32_t w8a8_warps_along_k(const ptxgen_tile *v)
{
    return gemm_is_wgmma(v) ? 1 : v->wk;
}
/* Whether boxes of codes have only the tokens of the launch. */
static inline bool w8a8_copies_present_tokens(const ptxgen_tile *v)
{
    return gemm_is_wgmma(v) && v->tile_m <= 128;
}
/* Whether one producer warp copies weights and another codes. */
static inline bool w8a8_has_two_producers(const ptxgen_tile *v)
{
    return gemm_is_wgmma(v) && v->tile_m < 64;
}
/* The consumer threads of a CTA. */
static inline uint32_t w8a8_consumer_threads(const ptxgen_tile *v)
{
    return 32 * v->wn * v->wm * w8a8_warps_along_k(v);
}
/* Strips of 64 tokens that a warpgroup multiplies one after the other. */
static inline uint32_t w8a8_strips(const ptxgen_tile *v)
{
    return w8a8_tokens_are_m(v) ? v->tile_m / W8A8_TILE_ROWS / v->wm : 1;
}
/* Whether consumer warpgroups, of many sums each, need registers of the producer's. */
static inline bool w8a8_moves_registers(const ptxgen_tile *v)
{
    return gemm_is_wgmma(v) && v->tile_m == 256;
}
static inline uint32_t w8a8_threads(const ptxgen_tile *v)
{
    uint32_t producers = w8a8_moves_registers(v) ? 128 : w8a8_has_two_producers(v) ? 64 : 32;
    return w8a8_consumer_threads(v) + (gemm_is_wgmma(v) ? producers : 0);
}
/* Whether tiles, of launches with one tile along M, are dealt out whole. */
static inline bool w8a8_is_whole(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v)
{
    return v->fused || gemm_is_wgmma(v) || v->cluster > 1 ||
           gemm_deals_whole(v->blocks_n, plan->target.multiprocessors);
}
/*
 * Whether CTAs that all read the same codes begin at different stages: in a row of whole tiles each
 * CTA begins at a stage of its own along K, and goes on from the start of K after the end.
 */
static inline bool w8a8_rotates(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v)
{
    return w8a8_takes_all_tokens(v) && w8a8_is_whole(plan, v) && !gemm_is_wgmma(v) &&
           !w8a8_has_groups(&plan->spec) && (v->fused || v->wk > 1);
}
/* Tokens in the products: a fused tile multiplies 8 however few tokens it has. */
static inline uint32_t w8a8_columns(const ptxgen_tile *v)
{
    return v->tile_m < W8A8_TILE_TOKENS ? W8A8_TILE_TOKENS : v->tile_m;
}
/*
 * Blocks of features are multiples of eight, so that outputs are written 16 bytes at a time, and
 * with SwiGLU of the rows of both matrices. Fused CTAs write few outputs; their blocks are
 * multiples of one, for an even share of w. Of scales of groups, wide tiles begin where blocks of
 * features do, or in their middle.
 */
static inline uint32_t w8a8_block_unit(const ptxgen_w8a8_spec *spec, const ptxgen_tile *v)
{
    bool is_wide = w8a8_tokens_are_m(v) && v->wn == 1 && v->tile_m > 64;
    if (w8a8_has_groups(spec) && is_wide && v->tile_n % 64 == 0)
        return v->tile_n;
    return w8a8_gated(spec) ? 2 * W8A8_PAIR_ROWS : v->fused ? 1 : 8;
}
/* Features of the largest block. */
static inline uint32_t w8a8_most_features(const ptxgen_w8a8_spec *spec, const ptxgen_tile *v)
{
    uint32_t unit = w8a8_block_unit(spec, v), rows = w8a8_rows(spec);
    uint32_t units = rows / unit + (rows % unit != 0);
    return unit * (units / v->blocks_n + (units % v->blocks_n != 0));
}
/*
 * Features in a stage. With wgmma these are the features of the largest block, rounded up to the
 * eight rows of the swizzle. wgmma reads tile_n features; the products of those that lie behind the
 * block in the stage are not used.
 */
static inline uint32_t w8a8_stage_features(const ptxgen_w8a8_spec *spec, const ptxgen_tile *v)
{
    if (!gemm_is_wgmma(v))
        return v->tile_n;
    uint32_t most = w8a8_most_features(spec, v);
    uint32_t behind = v->wk * v->tile_m, least = v->tile_n > behind ? v->tile_n - behind : 0;
    return ((most > least ? most : least) + 7) / 8 * 8;
}
static inline uint32_t w8a8_stage_bytes(const ptxgen_w8a8_spec *spec, const ptxgen_tile *v)
{
    return (w8a8_stage_features(spec, v) + (v->fused ? 0 : v->tile_m)) * w8a8_depth(v);
}
/*
 * Bytes from one token's codes to the next in a fused CTA: a multiple of 128 plus 16, so that
 * ldmatrix has no bank conflicts.
 */
static inline uint32_t w8a8_resident_stride(const ptxgen_w8a8_spec *spec, const ptxgen_tile *v)
{
    return w8a8_steps(spec, v) * w8a8_depth(v) + 16;
}
/*
 * Tokens whose sums are staged at once at the end of a tile. A cluster stages all tokens, because
 * its barriers are slow.
 */
static inline uint32_t w8a8_pass_tokens(const ptxgen_tile *v)
{
    if (gemm_is_wgmma(v))
        return v->tile_m < 64 ? v->tile_m : 64;
    return w8a8_columns(v) < 32 || v->cluster > 1 ? w8a8_columns(v) : 32;
}

/* Bytes of shared memory in which sums are staged. */
static inline uint32_t w8a8_sums_bytes(const ptxgen_tile *v)
{
    if (w8a8_tokens_are_m(v))
        return 0;
    return gemm_sums_bytes(v->tile_n, w8a8_pass_tokens(v), w8a8_warps_along_k(v));
}
/* Whether no CTA has more than one tile for any M. */
static inline bool w8a8_has_one_tile(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v)
{
    return w8a8_takes_all_tokens(v) && v->blocks_n <= plan->target.multiprocessors / v->cluster;
}

/* ---- a launch ---- */

/*
 * While few tokens are quantised the memory would idle, so additional CTAs of the quantising kernel
 * prefetch the first bytes of the product into the L2: of each row of w, 2^line_bits cache lines at
 * the start of each of 2^part_bits parts, `lines` lines in all. 0: no prefetch.
 */
struct w8a8_prefetch {
    uint32_t ctas, lines, part_bits, part_bytes, line_bits;
    uint32_t blocks, stages, stage_bytes; /* where a part begins, see w8a8_rotates */
};
enum { W8A8_LINE_BYTES = 128 };
/*
 * Whether launches of the variant may prefetch. With wgmma that fills the time between the two
 * launches, and is worth it where w does not fit into the rings of all multiprocessors.
 */
static inline bool w8a8_prefetches(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v)
{
    const ptxgen_target *t = &plan->target;
    uint64_t rings = (uint64_t)t->multiprocessors * t->shared_per_cta;
    bool large = (uint64_t)w8a8_rows(&plan->spec) * w8a8_w_stride(&plan->spec) > rings;
    return plan->target.ptx.sm >= 90 && w8a8_takes_all_tokens(v) && !w8a8_aligns(plan, v) &&
           (large || !gemm_is_wgmma(v)) && !v->fused && !w8a8_takes_codes(&plan->spec);
}

/* Entries that are emitted before those of `variants` (a bit for each), for one of these or more.
 */
struct w8a8_entries {
    bool prepares;   /* "w8a8_quantise", or for the caller's codes "w8a8_align_x" */
    bool prefetches; /* it prefetches too */
    bool aligns;     /* "w8a8_align", behind it */
};
static inline struct w8a8_entries w8a8_entries(const ptxgen_w8a8_plan *plan, uint32_t variants)
{
    struct w8a8_entries e = {false, false, false};
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (variants >> i & 1) {
            e.prepares = e.prepares || !plan->variants[i].fused;
            e.prefetches = e.prefetches || w8a8_prefetches(plan, &plan->variants[i]);
            e.aligns = e.aligns || w8a8_aligns(plan, &plan->variants[i]);
        }
    return e;
}

/*
 * How a launch divides its work, see gemm/fixup.h, and where the parts of the workspace begin:
 * flags (u32, one for each CTA, zeroed by w8a8_quantise; for the caller's codes one for each
 * multiprocessor, which are 0 between launches), partial sums where tiles are divided, codes of the
 * tokens, their scales and zero points, and aligned rows of w.
 */
struct w8a8_schedule {
    struct gemm_schedule tiles; /* among CTAs, or among clusters */
    uint32_t grid;
    uint64_t flags, partials, codes, scales, zeros, weights;
    uint64_t copies; /* where those of the caller's codes begin, if rows are not aligned */
    uint64_t workspace_bytes;
    struct w8a8_prefetch prefetch;
};
ptxgen_status w8a8_schedule(const ptxgen_w8a8_plan *plan, const ptxgen_tile *variant, uint64_t m,
                            struct w8a8_schedule *schedule, ptxgen_error *err);
extern const struct gemm_planner w8a8_planner;

/* Whether ptxgen_w8a8_make_plan has filled the plan. */
static inline bool w8a8_is_plan(const void *plan)
{
    const ptxgen_w8a8_plan *p = plan;
    return p && plan_is_made(&p->target, !p->spec.k || !p->spec.n, p->variant_count,
                             PTXGEN_W8A8_VARIANTS);
}

#endif
