/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the plan, the emitter and the launch of dense share. */
#ifndef PTXGEN_KERNELS_DENSE_LAYOUT_H
#define PTXGEN_KERNELS_DENSE_LAYOUT_H

#include "../gemm/align.h"
#include "../gemm/fixup.h"
#include "../gemm/plan.h"
#include "../gemm/ring.h"
#include "../gemm/sums.h"

#include <ptxgen/dense.h>

enum {
    DENSE_BLOCK_BYTES = 128, /* bytes of K of a warp in a stage */
    DENSE_STEP_BYTES = 32,   /* bytes of K in an mma step: m16n8k16 of 16 bits, m16n8k8 of f32 */
    DENSE_STEPS = DENSE_BLOCK_BYTES / DENSE_STEP_BYTES,
    DENSE_TILE = 16,         /* features of an mma: the rows of its operand A */
    DENSE_MOST_DIVIDED = 16, /* most sums of a thread, divided by four, in divided tiles of wgmma */
};

/* The parameters of every entry, in order: addresses, strides in elements, then numbers. */
enum dense_param {
    /* Parameters of 64 bits. */
    DENSE_X,
    DENSE_W,
    DENSE_BIAS,
    DENSE_RESIDUAL,
    DENSE_Y,
    DENSE_WORKSPACE,
    DENSE_X_STRIDE,
    DENSE_W_STRIDE,
    DENSE_RESIDUAL_STRIDE,
    DENSE_Y_STRIDE,
    /* Parameters of 32 bits. */
    DENSE_M,
    DENSE_SHARE,
    DENSE_EXTRA,
    DENSE_GRANULE,
    DENSE_PARAMS
};
/*
 * The parameters that entries with bulk copies have besides: the tensor maps of x (boxes.h) and of
 * w, for boxes of 128 bytes by the rows that a CTA copies.
 */
enum { DENSE_X_MAPS = DENSE_PARAMS, DENSE_W_MAP, DENSE_MOST_PARAMS };

/* How tiles are multiplied, by which entries are named. */
enum dense_way {
    DENSE_MMA,
    DENSE_WGMMA,
    DENSE_WGMMA_PAIR,
    DENSE_WGMMA_SPLIT,
    DENSE_BULK,
    DENSE_BULK_PAIR,
    DENSE_WAYS
};
/* A tile's name among those of all ways. */
const char *dense_name(const char *const names[DENSE_WAYS][GEMM_WIDTHS], const ptxgen_tile *v);

static inline bool dense_has_wgmma(const ptxgen_dense_plan *plan)
{
    return gemm_has_wgmma(&plan->target) && plan->spec.type != PTXGEN_F32;
}
/* Whether the plan may have tiles with bulk copies and mma.sync. */
static inline bool dense_has_bulk(const ptxgen_dense_plan *plan)
{
    const ptx_target *t = &plan->target.ptx;
    return t->sm == 90 && (!t->max_ptx || t->max_ptx >= 80) && plan->spec.type != PTXGEN_F32;
}

static inline uint32_t dense_element(const ptxgen_dense_spec *s)
{
    return s->type == PTXGEN_F32 ? 4 : 2;
}
/* Bytes of a row of x or w as the product reads it. */
static inline uint32_t dense_row_bytes(const ptxgen_dense_spec *s)
{
    return (uint32_t)gemm_aligned_bytes(s->k, dense_element(s));
}

static inline bool dense_is_alone(const ptxgen_tile *v)
{
    return v->kind == PTXGEN_BULK;
}
static inline uint32_t dense_staging_bytes(const ptxgen_tile *v)
{
    if (dense_is_alone(v))
        return gemm_sums_alone_bytes(v->warp_n, v->pass_m, v->wm * v->wn);
    return gemm_sums_bytes(v->tile_n, v->pass_m, v->wk);
}
/* Bytes of the barriers, padded to the alignment of sums that each warp stages alone. */
static inline uint32_t dense_barrier_bytes(const ptxgen_tile *v)
{
    uint32_t bytes = gemm_is_bulk(v) ? gemm_ring_barrier_bytes(v->stages) : 0;
    return dense_is_alone(v) ? (bytes + 127) / 128 * 128 : bytes;
}
/* Tokens that a CTA copies. */
static inline uint32_t dense_box_rows(const ptxgen_tile *v)
{
    return v->wm * v->warp_m / v->cluster;
}
/* Accumulators of a thread, divided by four. */
static inline uint32_t dense_fragments(const ptxgen_tile *v)
{
    return v->warp_n / DENSE_TILE * (v->warp_m / 8);
}
/*
 * Whether tiles may be divided among CTAs. Tiles of many sums are always whole, because the fix-up
 * of so many registers, which wgmma needs to be contiguous, takes ptxas too long.
 */
static inline bool dense_divides(const ptxgen_tile *v)
{
    bool few = gemm_is_wgmma(v) && dense_fragments(v) <= DENSE_MOST_DIVIDED;
    return v->split == 1 && (few || !gemm_is_bulk(v));
}
/* Tiles along N; the CTAs of a cluster with the same tokens count as one tile. */
static inline uint32_t dense_tiles_n(const ptxgen_dense_spec *s, const ptxgen_tile *v)
{
    uint32_t rows = v->tile_n * v->cluster;
    return s->n / rows + (s->n % rows != 0);
}
static inline uint32_t dense_stages_along_k(const ptxgen_dense_spec *s, const ptxgen_tile *v)
{
    uint32_t bytes = v->wk * DENSE_BLOCK_BYTES;
    return (dense_row_bytes(s) - 1) / bytes + 1;
}
/* CTAs of a cluster, whether it has the same tokens or divides K. */
static inline uint32_t dense_cluster(const ptxgen_tile *v)
{
    return v->cluster * v->split;
}
/* Stages along K of one CTA of a cluster. */
static inline uint32_t dense_own_stages(const ptxgen_dense_spec *s, const ptxgen_tile *v)
{
    return dense_stages_along_k(s, v) / v->split;
}
/* Bytes of a stage: x, then w. */
static inline uint32_t dense_stage_bytes(const ptxgen_tile *v)
{
    return (v->tile_m + v->tile_n) * v->wk * DENSE_BLOCK_BYTES;
}

/* The copies of a launch (plan.h) are those of x and w with aligned rows (align.h). */
extern const struct gemm_planner dense_planner;

/* reference.c: the additions that a term passes, and what a product loses, relative to it. */
double dense_sum_depth(const ptxgen_dense_spec *s, const ptxgen_tile *v);
double dense_product_error(const ptxgen_dense_spec *s);

/* Whether ptxgen_dense_make_plan has filled the plan. */
static inline bool dense_is_plan(const void *plan)
{
    const ptxgen_dense_plan *p = plan;
    return p && plan_is_made(&p->target, !p->spec.k || !p->spec.n, p->variant_count,
                             PTXGEN_DENSE_VARIANTS);
}

#endif
