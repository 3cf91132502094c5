/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the plan, the emitter and the launch of dense share. */
#ifndef PTXGEN_KERNELS_DENSE_LAYOUT_H
#define PTXGEN_KERNELS_DENSE_LAYOUT_H

#include "../plan.h"
#include "../tile/align.h"
#include "../tile/ring.h"
#include "../tile/schedule.h"
#include "../tile/stream_k.h"
#include "../tile/sums.h"

#include <ptxgen/dense.h>

enum {
    DENSE_BLOCK_BYTES = 128, /* of a row of X and of W, a warp's of a stage */
    DENSE_STEP_BYTES = 32,   /* … in an mma step: m16n8k16 in 16 bits, m16n8k8 of f32 */
    DENSE_STEPS = DENSE_BLOCK_BYTES / DENSE_STEP_BYTES,
    DENSE_TILE = 16,         /* rows of mma's operand A */
    DENSE_MOST_DIVIDED = 16, /* sums of a thread, by four, to which wgmma adds others' */
};

/* The parameters of every entry, in order: addresses, strides in elements, then numbers. */
enum dense_param {
    /* Of 64 bits, … */
    DENSE_X, DENSE_W, DENSE_BIAS, DENSE_RESIDUAL, DENSE_Y, DENSE_WORKSPACE,
    DENSE_X_STRIDE, DENSE_W_STRIDE, DENSE_RESIDUAL_STRIDE, DENSE_Y_STRIDE,
    /* … and of 32. */
    DENSE_M, DENSE_SHARE, DENSE_EXTRA, DENSE_GRANULE,
    DENSE_PARAMS
};
/* … and in bulk the tensor maps of X (tile/boxes.h) and W: boxes of 128 bytes of the rows that a
 * CTA sends for. */
enum { DENSE_X_MAPS = DENSE_PARAMS, DENSE_W_MAP, DENSE_MOST_PARAMS };

/* Warps of a warpgroup. */
enum { DENSE_WARPGROUP = 4 };
static inline bool dense_is_wgmma(const ptxgen_dense_variant *v)
{
    return v->kind == PTXGEN_DENSE_WGMMA;
}
static inline bool dense_is_bulk(const ptxgen_dense_variant *v)
{
    return v->kind != PTXGEN_DENSE_MMA;
}
static inline bool dense_has_wgmma(const ptxgen_dense_plan *plan)
{
    return plan->target.ptx.sm == 90 && plan->target.ptx.suffix == 'a' &&
           plan->spec.type != PTXGEN_F32;
}
/* … and what comes without wgmma. */
static inline bool dense_has_bulk(const ptxgen_dense_plan *plan)
{
    const ptx_target *t = &plan->target.ptx;
    return t->sm == 90 && (!t->max_ptx || t->max_ptx >= 80) && plan->spec.type != PTXGEN_F32;
}

static inline uint32_t dense_element(const ptxgen_dense_spec *s)
{
    return s->type == PTXGEN_F32 ? 4 : 2;
}
/* Of a row of X or W as the product reads it. */
static inline uint32_t dense_row_bytes(const ptxgen_dense_spec *s)
{
    return (uint32_t)tile_aligned_bytes(s->k, dense_element(s));
}

static inline uint32_t dense_tile_m(const ptxgen_dense_variant *v)
{
    return v->wm * v->warp_m;
}
static inline uint32_t dense_tile_n(const ptxgen_dense_variant *v)
{
    return v->wn * v->warp_n;
}
static inline uint32_t dense_threads(const ptxgen_dense_variant *v)
{
    return 32 * v->wm * v->wn * v->wk;
}
static inline bool dense_is_alone(const ptxgen_dense_variant *v)
{
    return v->kind == PTXGEN_DENSE_BULK;
}
static inline uint32_t dense_staging_bytes(const ptxgen_dense_variant *v)
{
    if (dense_is_alone(v))
        return tile_sums_alone_bytes(v->warp_n, v->pass_m, v->wm * v->wn);
    return tile_sums_bytes(dense_tile_n(v), v->pass_m, v->wk);
}
/* … padded to where sums may start that warps stage alone. */
static inline uint32_t dense_barrier_bytes(const ptxgen_dense_variant *v)
{
    uint32_t bytes = dense_is_bulk(v) ? tile_ring_barrier_bytes(v->stages) : 0;
    return dense_is_alone(v) ? (bytes + 127) / 128 * 128 : bytes;
}
/* Of a CTA: those that multiply, and a warpgroup that sends. */
static inline uint32_t dense_cta_threads(const ptxgen_dense_variant *v)
{
    return dense_threads(v) + (dense_is_wgmma(v) ? 32 * DENSE_WARPGROUP : 0);
}
/* Tokens that a CTA sends for. */
static inline uint32_t dense_box_rows(const ptxgen_dense_variant *v)
{
    return v->wm * v->warp_m / v->cluster;
}
/* Accumulators of a thread, by four. */
static inline uint32_t dense_fragments(const ptxgen_dense_variant *v)
{
    return v->warp_n / DENSE_TILE * (v->warp_m / 8);
}
/*
 * Whether tiles may be divided among CTAs. Those of more sums are always whole: to add others' to
 * so many registers, which wgmma wants side by side, takes ptxas half as long as all else.
 */
static inline bool dense_divides(const ptxgen_dense_variant *v)
{
    bool few = dense_is_wgmma(v) && dense_fragments(v) <= DENSE_MOST_DIVIDED;
    return v->split == 1 && (few || !dense_is_bulk(v));
}
/* Of a CTA, or of a pair that has the same tokens. */
static inline uint32_t dense_tiles_n(const ptxgen_dense_spec *s, const ptxgen_dense_variant *v)
{
    uint32_t rows = dense_tile_n(v) * v->cluster;
    return s->n / rows + (s->n % rows != 0);
}
static inline uint32_t dense_stages_along_k(const ptxgen_dense_spec *s,
                                            const ptxgen_dense_variant *v)
{
    uint32_t bytes = v->wk * DENSE_BLOCK_BYTES;
    return (dense_row_bytes(s) - 1) / bytes + 1;
}
/* CTAs of a cluster, … */
static inline uint32_t dense_cluster(const ptxgen_dense_variant *v)
{
    return v->cluster * v->split;
}
/* … and the stages along K of one. */
static inline uint32_t dense_own_stages(const ptxgen_dense_spec *s, const ptxgen_dense_variant *v)
{
    return dense_stages_along_k(s, v) / v->split;
}
/* X, then W. */
static inline uint32_t dense_stage_bytes(const ptxgen_dense_variant *v)
{
    return (dense_tile_m(v) + dense_tile_n(v)) * v->wk * DENSE_BLOCK_BYTES;
}

/*
 * Workspace: a flag of 4 bytes for each CTA of any variant, padded to 256 bytes; each CTA's partial
 * sums, as its threads hold them, from `partials` on where tiles are divided; then what rows of X
 * and W are aligned into.
 */
static inline uint64_t dense_partials_offset(const ptxgen_dense_plan *plan)
{
    return ((uint64_t)plan->target.multiprocessors * PTXGEN_DENSE_MOST_CTAS * 4 + 255) / 256 * 256;
}
struct dense_schedule {
    struct tile_schedule tiles; /* among CTAs, or clusters of them */
    uint32_t grid;
    uint64_t aligned;         /* offset */
    uint64_t workspace_bytes; /* without aligned rows: `aligned`, or 0 where nothing is needed */
};
ptxgen_status dense_make_schedule(const ptxgen_dense_plan *plan,
                                  const ptxgen_dense_variant *variant, uint64_t m,
                                  struct dense_schedule *schedule, ptxgen_error *err);

/* Whether it is a plan that ptxgen_dense_make_plan filled. */
static inline bool dense_is_plan(const ptxgen_dense_plan *p)
{
    return p && plan_is_made(p->spec.k, p->variant_count, PTXGEN_DENSE_VARIANTS);
}

#endif
