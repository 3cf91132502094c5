/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the plan, the packer, the emitter and the launch of marlin share. */
#ifndef PTXGEN_KERNELS_MARLIN_LAYOUT_H
#define PTXGEN_KERNELS_MARLIN_LAYOUT_H

#include "../plan.h"
#include "../tile/schedule.h"

#include <ptxgen/marlin.h>

#include <stdbool.h>

enum {
    MARLIN_STRIP = 64,        /* columns of weights that are packed together */
    MARLIN_STEP = 64,         /* rows of weights that are packed together: 16 bytes of a lane */
    MARLIN_TILE = 16,         /* columns of a tile: rows of mma's operand A */
    MARLIN_TILE_BYTES = 512,  /* of a step of a tile */
    MARLIN_STEP_BYTES = 2048, /* of a step of a strip */
    MARLIN_SCALES_BYTES = 128, /* of a group of a strip */
    MARLIN_ZEROS_BYTES = 32,
};

/* The parameters of every entry, in order: addresses, strides in elements, then numbers. */
enum marlin_param {
    MARLIN_X, MARLIN_CODES, MARLIN_SCALES, MARLIN_ZEROS, MARLIN_BIAS, MARLIN_UP_BIAS,
    MARLIN_RESIDUAL, MARLIN_Y, MARLIN_WORKSPACE,
    MARLIN_X_STRIDE, MARLIN_RESIDUAL_STRIDE, MARLIN_Y_STRIDE, /* 64 bits up to here, … */
    MARLIN_M, MARLIN_SHARE, MARLIN_EXTRA, MARLIN_GRANULE,     /* … 32 from here */
    MARLIN_PARAMS
};
/* … and with copies in bulk the tensor maps of A, in boxes of 64 columns and `tile_m` rows
 * (tile/boxes.h). */
enum { MARLIN_X_MAPS = MARLIN_PARAMS };

/* "marlin_gather": out[m, k] = a[m, order[k]], dense; order is read with act_order only. A CTA of
 * MARLIN_GATHER_THREADS a row. */
enum marlin_gather_param {
    MARLIN_GATHER_X, MARLIN_GATHER_ORDER, MARLIN_GATHER_OUT, MARLIN_GATHER_X_STRIDE,
    MARLIN_GATHER_PARAMS
};
enum { MARLIN_GATHER_THREADS = 256 };

extern const ptxgen_tiling marlin_tiling; /* for the family's table */

enum { MARLIN_MOST_CTAS = 4 }; /* of a multiprocessor */

static inline bool marlin_gated(const ptxgen_marlin_spec *s)
{
    return s->epilogue == PTXGEN_EPILOGUE_SWIGLU;
}

/* Whether entries may begin before the kernel ahead of them ends: they wait for it themselves. */
static inline bool marlin_overlaps(const ptxgen_marlin_plan *plan)
{
    return plan->target.ptx.sm >= 90;
}

/* Columns of C in a strip of 64 packed columns. */
static inline uint32_t marlin_strip_columns(const ptxgen_marlin_spec *s)
{
    return marlin_gated(s) ? MARLIN_STRIP / 2 : MARLIN_STRIP;
}
static inline uint32_t marlin_strips(const ptxgen_marlin_spec *s)
{
    uint32_t columns = marlin_strip_columns(s);
    return s->n / columns + (s->n % columns != 0);
}
static inline uint32_t marlin_steps(const ptxgen_marlin_spec *s)
{
    return s->k / MARLIN_STEP + (s->k % MARLIN_STEP != 0);
}

/*
 * Rows that share a packed scale: groups that do not fit steps of 64 are packed as several, of 32
 * or 16 rows. 0: one scale for the column.
 */
static inline uint32_t marlin_scale_rows(const ptxgen_marlin_spec *s)
{
    if (s->group_size == PTXGEN_W4_PER_CHANNEL || (uint32_t)s->group_size == s->k)
        return 0;
    uint32_t g = (uint32_t)s->group_size;
    return g % 64 == 0 ? g : g % 32 == 0 ? 32 : 16;
}
/* Packed groups of a strip: whole steps where several share one. */
static inline uint32_t marlin_groups(const ptxgen_marlin_spec *s)
{
    uint32_t rows = marlin_scale_rows(s);
    if (!rows)
        return 1;
    return rows < MARLIN_STEP ? marlin_steps(s) * (MARLIN_STEP / rows) : s->k / rows;
}

/* Packed columns of a CTA's tile. */
static inline uint32_t marlin_tile_n(const ptxgen_marlin_variant *v)
{
    return v->wn * v->warp_n;
}
/* … that multiply. */
static inline uint32_t marlin_threads(const ptxgen_marlin_variant *v)
{
    return 32 * v->wn * v->wk;
}

/* Warps of a warpgroup, and those that send for what the others multiply. */
enum { MARLIN_WARPGROUP = 4 };
static inline bool marlin_is_wgmma(const ptxgen_marlin_variant *v)
{
    return v->kind == PTXGEN_MARLIN_WGMMA;
}
/* Whether a thread of the CTA sends for what the others multiply. */
static inline bool marlin_has_sender(const ptxgen_marlin_variant *v)
{
    return v->kind != PTXGEN_MARLIN_MMA;
}
/*
 * Whether what is copied in bulk is an odd number of half strips, which a tile starts or ends with.
 */
static inline bool marlin_has_odd_halves(const ptxgen_marlin_variant *v)
{
    return v->kind == PTXGEN_MARLIN_BULK && v->wn * v->warp_n % MARLIN_STRIP;
}
static inline bool marlin_has_wgmma(const ptxgen_target *target)
{
    return target->ptx.sm == 90 && target->ptx.suffix == 'a';
}
/*
 * Whether a warp sums up activations for all others, where their sums are corrected: for four warps
 * along N and more. With fewer, and more of K in a stage instead, the others would wait for it.
 */
static inline bool marlin_has_totals_warp(const ptxgen_marlin_variant *v)
{
    enum { MANY = 4 };
    return v->kind == PTXGEN_MARLIN_BULK && v->tile_m <= 16 && v->wn >= MANY;
}
/* Of a CTA, in all. */
static inline uint32_t marlin_cta_threads(const ptxgen_marlin_variant *v)
{
    uint32_t senders = marlin_is_wgmma(v) ? MARLIN_WARPGROUP : marlin_has_sender(v);
    return marlin_threads(v) + 32 * (senders + marlin_has_totals_warp(v));
}

/* CTAs that have sums of the same tile, each of a share of K. A cluster has one tile. */
static inline uint32_t marlin_cluster(const ptxgen_marlin_variant *v)
{
    return v->cluster ? v->cluster : 1;
}

/*
 * Whether the two CTAs of a cluster send each other the sums of half the rows, and finish a half
 * each (tile/exchange.h). Others of a cluster stage theirs for each other.
 */
static inline bool marlin_exchanges(const ptxgen_marlin_variant *v)
{
    enum { FEWEST_ROWS = 32 };
    return marlin_is_wgmma(v) && v->cluster == 2 && v->tile_m >= FEWEST_ROWS;
}
/* … with stores that came with PTX 8.1. */
static inline bool marlin_exchange_fits(const ptxgen_target *target, const ptxgen_marlin_variant *v)
{
    return !marlin_exchanges(v) || !target->ptx.max_ptx || target->ptx.max_ptx >= 81;
}
/*
 * Warpgroups along K of each that divide the rows between them first: two, where what is left of
 * the rows to each is 8 or a multiple of 16.
 */
static inline uint32_t marlin_exchange_teams(const ptxgen_marlin_variant *v)
{
    return marlin_exchanges(v) && v->wk == 2 && (v->tile_m == 32 || v->tile_m % 64 == 0) ? 2 : 1;
}
/* Warps along K that stage sums together. */
static inline uint32_t marlin_staged_wk(const ptxgen_marlin_variant *v)
{
    return v->wk / marlin_exchange_teams(v);
}
/* Rows of a tile that those finish, and so many of them at once. */
static inline uint32_t marlin_finished_rows(const ptxgen_marlin_variant *v)
{
    return marlin_exchanges(v) ? v->tile_m / 2 / marlin_exchange_teams(v) : v->tile_m;
}
static inline uint32_t marlin_pass_rows(const ptxgen_marlin_variant *v)
{
    uint32_t rows = marlin_finished_rows(v);
    return v->pass_m < rows ? v->pass_m : rows;
}

/* An odd number of half strips is copied where the last tile ends with N, and within offsets. */
static inline bool marlin_halves_fit(const ptxgen_marlin_spec *s, const ptxgen_marlin_variant *v)
{
    return !marlin_has_odd_halves(v) ||
           (marlin_strips(s) * MARLIN_STRIP % marlin_tile_n(v) == 0 && !marlin_gated(s) &&
            (uint64_t)v->wn * marlin_steps(s) * MARLIN_STEP_BYTES < INT32_MAX);
}

/*
 * Whether codes are multiplied as they stand in a constant's mantissa, an offset more than q, and
 * sums are rid of it and of the zero point's share: not where that is more than what it saves, 16
 * rows in small groups, unless a warp does it for all.
 */
static inline bool marlin_corrects_sums(const ptxgen_marlin_spec *s, const ptxgen_marlin_variant *v)
{
    uint32_t rows = marlin_scale_rows(s);
    bool small = rows && rows < MARLIN_STEP, noted = marlin_has_totals_warp(v) && !s->zeros;
    return !marlin_is_wgmma(v) && (v->tile_m == 8 || (v->tile_m == 16 && (!small || noted)));
}
static inline bool marlin_notes_totals(const ptxgen_marlin_spec *s, const ptxgen_marlin_variant *v)
{
    return marlin_has_totals_warp(v) && marlin_corrects_sums(s, v);
}
/*
 * Whether it says what sums of small groups start from, of rows 2q and 2q + 1, columns g and g + 8.
 */
static inline bool marlin_notes_first_sums(const ptxgen_marlin_spec *s,
                                           const ptxgen_marlin_variant *v)
{
    uint32_t rows = marlin_scale_rows(s);
    return marlin_notes_totals(s, v) && !s->zeros && rows && rows < MARLIN_STEP;
}
/* Of a group, in a stage. */
static inline uint32_t marlin_note_bytes(const ptxgen_marlin_spec *s,
                                         const ptxgen_marlin_variant *v)
{
    return v->tile_m * (marlin_notes_first_sums(s, v) ? 8 : 4);
}

/* Accumulators of a thread, by four. */
static inline uint32_t marlin_fragments(const ptxgen_marlin_variant *v)
{
    return v->warp_n / MARLIN_TILE * (v->tile_m / 8);
}

/*
 * Stages by which a CTA ends before the one that ends its tile, as long as handing sums over takes,
 * where K is long enough for that to be a small share: 8192 × 28672 with 128 rows takes 83.1 µs of
 * an H200 so, and 83.8 with equal shares, but 4096 × 14336 would take 29.7, and not 28.9.
 */
static inline uint32_t marlin_early_stages(uint32_t stages, const ptxgen_marlin_variant *v)
{
    enum { EARLY_STEPS = 6, LEAST_STEPS = 128 };
    uint32_t steps = v->steps * v->wk, early = EARLY_STEPS / steps;
    return marlin_is_wgmma(v) && !v->cluster && stages * steps >= LEAST_STEPS ? early : 0;
}

/* Tiles along N. */
static inline uint32_t marlin_tiles_n(const ptxgen_marlin_spec *s, const ptxgen_marlin_variant *v)
{
    return (marlin_strips(s) * MARLIN_STRIP + marlin_tile_n(v) - 1) / marlin_tile_n(v);
}

/*
 * Workspace: a flag of 4 bytes for each CTA of any variant, padded to 256 bytes; each CTA's partial
 * sums, as its threads hold them, from `partials` on where tiles are divided; the gathered A from
 * `gathered` on.
 */
static inline uint64_t marlin_partials_offset(const ptxgen_marlin_plan *plan)
{
    return ((uint64_t)plan->target.multiprocessors * MARLIN_MOST_CTAS * 4 + 255) / 256 * 256;
}
struct marlin_schedule {
    struct tile_schedule tiles;
    uint64_t partials, gathered; /* offsets */
    uint64_t workspace_bytes; /* without a gathered A: `gathered`, or 0 where nothing is needed */
};
ptxgen_status marlin_schedule(const ptxgen_marlin_plan *plan, const ptxgen_marlin_variant *variant,
                              uint64_t m, struct marlin_schedule *schedule, ptxgen_error *err);

/* Whether it is a plan that ptxgen_marlin_make_plan filled. */
static inline bool marlin_is_plan(const ptxgen_marlin_plan *p)
{
    return p && plan_is_made(p->spec.k, p->variant_count, PTXGEN_MARLIN_VARIANTS) &&
           p->tuned_count <= PTXGEN_TUNED_RANGES;
}

#endif
