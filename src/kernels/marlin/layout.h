/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the plan, the packer, the emitter and the launch of marlin share. */
#ifndef PTXGEN_KERNELS_MARLIN_LAYOUT_H
#define PTXGEN_KERNELS_MARLIN_LAYOUT_H

#include "../gemm/plan.h"

#include <ptxgen/marlin.h>

#include <stdbool.h>

enum {
    MARLIN_STRIP = 64,         /* columns of weights that are packed together */
    MARLIN_STEP = 64,          /* of K, packed together: 16 bytes of a lane */
    MARLIN_TILE = 16,          /* features of a tile: rows of mma's operand A */
    MARLIN_TILE_BYTES = 512,   /* of a step of a tile */
    MARLIN_STEP_BYTES = 2048,  /* of a step of a strip */
    MARLIN_SCALES_BYTES = 128, /* of a group of a strip */
    MARLIN_ZEROS_BYTES = 32,
};

/* The parameters of every entry, in order: addresses, strides in elements, then numbers. */
enum marlin_param {
    MARLIN_X,
    MARLIN_CODES,
    MARLIN_SCALES,
    MARLIN_ZEROS,
    MARLIN_BIAS,
    MARLIN_UP_BIAS,
    MARLIN_RESIDUAL,
    MARLIN_Y,
    MARLIN_WORKSPACE,
    MARLIN_X_STRIDE,
    MARLIN_RESIDUAL_STRIDE,
    MARLIN_Y_STRIDE, /* the last one of 64 bits */
    MARLIN_M,
    MARLIN_SHARE,
    MARLIN_EXTRA,
    MARLIN_GRANULE, /* of 32 bits */
    MARLIN_PARAMS
};
/*
 * The parameter that entries with bulk copies have besides: the tensor maps of x, for boxes of 64
 * of K by tile_m tokens (boxes.h).
 */
enum { MARLIN_X_MAPS = MARLIN_PARAMS };

/*
 * The entry "marlin_gather": out[m, k] = x[m, order[k]], in contiguous rows; `order` is read only
 * with act_order. A launch has a CTA of MARLIN_GATHER_THREADS threads for each token.
 */
enum marlin_gather_param {
    MARLIN_GATHER_X,
    MARLIN_GATHER_ORDER,
    MARLIN_GATHER_OUT,
    MARLIN_GATHER_X_STRIDE,
    MARLIN_GATHER_PARAMS
};
enum { MARLIN_GATHER_THREADS = 256 };

extern const ptxgen_tiling marlin_tiling; /* for the family's table */

enum { MARLIN_MOST_CTAS = 4 }; /* of a multiprocessor */

static inline bool marlin_gated(const ptxgen_marlin_spec *s)
{
    return s->epilogue == PTXGEN_EPILOGUE_SWIGLU;
}

/* Columns of y in a strip of 64 packed columns. */
static inline uint32_t marlin_strip_features(const ptxgen_marlin_spec *s)
{
    return marlin_gated(s) ? MARLIN_STRIP / 2 : MARLIN_STRIP;
}
static inline uint32_t marlin_strips(const ptxgen_marlin_spec *s)
{
    uint32_t columns = marlin_strip_features(s);
    return s->n / columns + (s->n % columns != 0);
}
static inline uint32_t marlin_steps(const ptxgen_marlin_spec *s)
{
    return s->k / MARLIN_STEP + (s->k % MARLIN_STEP != 0);
}

/*
 * How many of K share a packed scale. Groups that do not fit into steps of 64 are packed as several
 * groups of 32 or 16. 0: there is one scale for each feature.
 */
static inline uint32_t marlin_scale_rows(const ptxgen_marlin_spec *s)
{
    if (s->group_size == PTXGEN_W4_PER_CHANNEL || (uint32_t)s->group_size == s->k)
        return 0;
    uint32_t g = (uint32_t)s->group_size;
    return g % 64 == 0 ? g : g % 32 == 0 ? 32 : 16;
}
/* Packed groups of a strip, rounded up to whole steps where a step has several groups. */
static inline uint32_t marlin_groups(const ptxgen_marlin_spec *s)
{
    uint32_t rows = marlin_scale_rows(s);
    if (!rows)
        return s->k > 0;
    return rows < MARLIN_STEP ? marlin_steps(s) * (MARLIN_STEP / rows) : s->k / rows;
}

/* Whether a tile has an odd number of half strips, so that it starts or ends with half a strip. */
static inline bool marlin_has_odd_halves(const ptxgen_tile *v)
{
    return v->kind == PTXGEN_BULK && v->wn * v->warp_n % MARLIN_STRIP;
}
/*
 * Whether one warp computes the sums of activations for all consumers whose sums are corrected:
 * with four or more warps along N. With fewer, a stage has more of K, and the consumers would wait
 * for that warp.
 */
static inline bool marlin_has_totals_warp(const ptxgen_tile *v)
{
    enum { MANY = 4 };
    return v->kind == PTXGEN_BULK && v->tile_m <= 16 && v->wn >= MANY;
}
/* All threads of a CTA. */
static inline uint32_t marlin_cta_threads(const ptxgen_tile *v)
{
    uint32_t producers = gemm_is_wgmma(v) ? GEMM_WARPGROUP_WARPS : gemm_is_bulk(v);
    return gemm_tile_threads(v) + 32 * (producers + marlin_has_totals_warp(v));
}

/*
 * Whether the two CTAs of a cluster exchange sums by st.async (exchange.h), and each finishes one
 * half of the tokens. The CTAs of other clusters stage their sums, and read each other's.
 */
static inline bool marlin_exchanges(const ptxgen_tile *v)
{
    enum { FEWEST_ROWS = 32 };
    return gemm_is_wgmma(v) && v->cluster == 2 && v->tile_m >= FEWEST_ROWS;
}
/* Whether the target has what an exchange needs: st.async came with PTX 8.1. */
static inline bool marlin_exchange_fits(const ptxgen_target *target, const ptxgen_tile *v)
{
    return !marlin_exchanges(v) || !target->ptx.max_ptx || target->ptx.max_ptx >= 81;
}
/*
 * Teams of an exchange: two, where two warpgroups along K divide the tokens between them first and
 * each then has 8 tokens or a multiple of 16; else one.
 */
static inline uint32_t marlin_exchange_teams(const ptxgen_tile *v)
{
    return marlin_exchanges(v) && v->wk == 2 && (v->tile_m == 32 || v->tile_m % 64 == 0) ? 2 : 1;
}
/* Warps along K whose sums are added while they are staged. */
static inline uint32_t marlin_staged_wk(const ptxgen_tile *v)
{
    return v->wk / marlin_exchange_teams(v);
}
/* Tokens of a tile that a team finishes, and those that it finishes in one pass. */
static inline uint32_t marlin_finished_tokens(const ptxgen_tile *v)
{
    return marlin_exchanges(v) ? v->tile_m / 2 / marlin_exchange_teams(v) : v->tile_m;
}
static inline uint32_t marlin_pass_tokens(const ptxgen_tile *v)
{
    uint32_t rows = marlin_finished_tokens(v);
    return v->pass_m < rows ? v->pass_m : rows;
}

/* Tiles of an odd number of half strips need an N whose last tile is whole, and small offsets. */
static inline bool marlin_halves_fit(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    return !marlin_has_odd_halves(v) ||
           ((uint64_t)marlin_strips(s) * MARLIN_STRIP % v->tile_n == 0 && !marlin_gated(s) &&
            (uint64_t)v->wn * marlin_steps(s) * MARLIN_STEP_BYTES < INT32_MAX);
}

/*
 * Whether codes are multiplied as q + offset, as they are in the mantissa of a constant, and the
 * sums are corrected by (offset + z)·Σ activations. With 16 tokens and small groups the correction
 * costs more than it saves, unless one warp computes Σ activations for all.
 */
static inline bool marlin_corrects_sums(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    uint32_t rows = marlin_scale_rows(s);
    bool small = rows && rows < MARLIN_STEP, stored = marlin_has_totals_warp(v) && !s->zeros;
    return !gemm_is_wgmma(v) && (v->tile_m == 8 || (v->tile_m == 16 && (!small || stored)));
}
static inline bool marlin_stores_totals(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    return marlin_has_totals_warp(v) && marlin_corrects_sums(s, v);
}
/*
 * Whether the warp that computes the sums of activations stores them as corrections, from which the
 * sums of small groups start: for tokens 2q and 2q + 1, and features g and g + 8.
 */
static inline bool marlin_stores_first_sums(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    uint32_t rows = marlin_scale_rows(s);
    return marlin_stores_totals(s, v) && !s->zeros && rows && rows < MARLIN_STEP;
}
/* Bytes of the sums of activations of a group in a stage. */
static inline uint32_t marlin_total_bytes(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    return v->tile_m * (marlin_stores_first_sums(s, v) ? 8 : 4);
}

/* Accumulators of a thread, divided by four. */
static inline uint32_t marlin_fragments(const ptxgen_tile *v)
{
    return v->warp_n / MARLIN_TILE * (v->tile_m / 8);
}

/*
 * Stages by which a CTA with an earlier part of a tile has fewer than the CTA that ends the tile,
 * so that its partial sums arrive in time (gemm_deal_early); 0 where K is too short for that.
 */
static inline uint32_t marlin_early_stages(uint32_t stages, const ptxgen_tile *v)
{
    enum { EARLY_STEPS = 6, LEAST_STEPS = 128 };
    uint32_t steps = v->steps * v->wk, early = EARLY_STEPS / steps;
    return gemm_is_wgmma(v) && v->cluster == 1 && stages * steps >= LEAST_STEPS ? early : 0;
}

/* Tiles along N. */
static inline uint32_t marlin_tiles_n(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    const uint64_t features = (uint64_t)marlin_strips(s) * MARLIN_STRIP;
    return (uint32_t)((features + v->tile_n - 1) / v->tile_n);
}

/* The copy of a launch (plan.h) is the gathered x. */
extern const struct gemm_planner marlin_planner;
ptxgen_status marlin_check_tile(const void *plan, ptxgen_tile *tile, ptxgen_error *err);

/* Whether ptxgen_marlin_make_plan has filled the plan. */
static inline bool marlin_is_plan(const void *plan)
{
    const ptxgen_marlin_plan *p = plan;
    return p &&
           plan_is_made(&p->target, !p->spec.k || !p->spec.n, p->variant_count,
                        PTXGEN_MARLIN_VARIANTS) &&
           p->tuned_count <= PTXGEN_TUNED_RANGES;
}

#endif
