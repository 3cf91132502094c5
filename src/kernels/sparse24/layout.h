/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the plan, the packer, the emitter and the launch of sparse24 share. */
#ifndef PTXGEN_KERNELS_SPARSE24_LAYOUT_H
#define PTXGEN_KERNELS_SPARSE24_LAYOUT_H

#include "../gemm/align.h"
#include "../gemm/exchange.h"
#include "../gemm/operand.h"
#include "../gemm/plan.h"
#include "../gemm/sums.h"
#include "formats.h"

#include <ptxgen/sparse24.h>

#include <stdbool.h>

enum {
    SPARSE24_STRIP = 32, /* features that are packed together, and that a warp copies */
    SPARSE24_STEP = 128, /* columns of K that are packed together: those of a warp in a stage */
    SPARSE24_TILE = 16,  /* features of an mma: the rows of its operand A */
    SPARSE24_TILES = SPARSE24_STRIP / SPARSE24_TILE,
    SPARSE24_MOST_WM = 2,
    SPARSE24_MMA_BYTES = 64,    /* bytes of a token in an mma step */
    SPARSE24_WORD_COLUMNS = 64, /* columns of K whose metadata is one word of each lane */
    SPARSE24_WORDS = SPARSE24_STEP / SPARSE24_WORD_COLUMNS,
    SPARSE24_PIECE = 512, /* bytes of a piece: 16 bytes of each lane */
};

/* The parameters of every entry, in order: addresses, strides in elements, then numbers. */
enum sparse24_param {
    SPARSE24_X,
    SPARSE24_W,
    SPARSE24_X_SCALE,
    SPARSE24_W_SCALE,
    SPARSE24_BIAS,
    SPARSE24_RESIDUAL,
    SPARSE24_Y,
    SPARSE24_WORKSPACE,
    SPARSE24_X_STRIDE,
    SPARSE24_RESIDUAL_STRIDE,
    SPARSE24_Y_STRIDE, /* the last one of 64 bits */
    SPARSE24_M,
    SPARSE24_SHARE,
    SPARSE24_EXTRA,
    SPARSE24_GRANULE, /* of 32 bits */
    SPARSE24_PARAMS
};
/*
 * The parameter that entries with wgmma have besides: the tensor maps of x, for boxes of 128 bytes
 * by a tile's tokens (boxes.h).
 */
enum { SPARSE24_X_MAPS = SPARSE24_PARAMS };

static inline ptxgen_sparse24_shape sparse24_shape(const ptxgen_sparse24_spec *s)
{
    return (ptxgen_sparse24_shape){(ptxgen_sparse24_type)s->type, s->n, s->k};
}
static inline uint32_t sparse24_element(const ptxgen_sparse24_spec *s)
{
    return (uint32_t)sparse24_element_bytes((ptxgen_sparse24_type)s->type);
}
static inline uint32_t sparse24_tier(const ptxgen_sparse24_spec *s)
{
    return s->tier ? s->tier : s->type == PTXGEN_SPARSE24_F32 ? 1 : 2;
}
static inline bool sparse24_is_s8(const ptxgen_sparse24_spec *s)
{
    return s->type == PTXGEN_SPARSE24_S8;
}
/* Bytes of a token as the product reads it: padded to a multiple of 16. */
static inline uint64_t sparse24_x_bytes(const ptxgen_sparse24_spec *s)
{
    return gemm_aligned_bytes(s->k, sparse24_element(s));
}

static inline uint32_t sparse24_strips(const ptxgen_sparse24_spec *s)
{
    return s->n / SPARSE24_STRIP + (s->n % SPARSE24_STRIP != 0);
}
static inline uint32_t sparse24_steps(const ptxgen_sparse24_spec *s)
{
    return s->k / SPARSE24_STEP + (s->k % SPARSE24_STEP != 0);
}
/* mma steps in a step of SPARSE24_STEP columns. */
static inline uint32_t sparse24_mmas(const ptxgen_sparse24_spec *s)
{
    return SPARSE24_STEP * sparse24_element(s) / SPARSE24_MMA_BYTES;
}
/* mma steps that share a word of metadata. */
static inline uint32_t sparse24_word_mmas(const ptxgen_sparse24_spec *s)
{
    return sparse24_mmas(s) / SPARSE24_WORDS;
}
/* Pieces of values in a block; one piece of metadata follows them. */
static inline uint32_t sparse24_pieces(const ptxgen_sparse24_spec *s)
{
    return sparse24_mmas(s) * SPARSE24_TILES;
}
static inline uint32_t sparse24_block_bytes(const ptxgen_sparse24_spec *s)
{
    return (sparse24_pieces(s) + 1) * SPARSE24_PIECE;
}

/* Bytes of a compressed weight's values, and of its metadata in the form of bytes. */
static inline uint64_t sparse24_values_bytes(const ptxgen_sparse24_spec *s)
{
    return (uint64_t)s->n * s->k / 2 * sparse24_element(s);
}
static inline uint64_t sparse24_metadata_bytes(const ptxgen_sparse24_spec *s)
{
    return (uint64_t)s->n * s->k / SPARSE24_GROUP;
}
/* Blocks of a packed weight. */
static inline uint64_t sparse24_blocks(const ptxgen_sparse24_spec *s)
{
    return (uint64_t)sparse24_strips(s) * sparse24_steps(s);
}

/* Strips of a tile. With mma.sp each warp copies one block, of wm · wn strips and wk steps. */
static inline uint32_t sparse24_tile_strips(const ptxgen_tile *v)
{
    return v->tile_n / SPARSE24_STRIP;
}
/* Whether the target has wgmma.sp, which needs PTX 8.2; with an older driver sm_90a has mma.sp. */
static inline bool sparse24_has_wgmma(const ptxgen_target *target)
{
    return gemm_has_wgmma(target) && (!target->ptx.max_ptx || target->ptx.max_ptx >= 82);
}
/* Tiles of 16 features of a warp. */
static inline uint32_t sparse24_warp_tiles(const ptxgen_tile *v)
{
    return v->wm * v->warp_n / SPARSE24_TILE;
}
/* Whether each warp finishes its own sums alone, because no other warp has sums of its outputs. */
static inline bool sparse24_warps_are_alone(const ptxgen_tile *v)
{
    return v->wk == 1 && v->cluster == 1 && !gemm_is_wgmma(v);
}
static inline uint32_t sparse24_sums_bytes(const ptxgen_tile *v)
{
    return sparse24_warps_are_alone(v)
               ? gemm_sums_alone_bytes(v->wm * v->warp_n, v->pass_m, v->wm * v->wn)
               : gemm_sums_bytes(v->tile_n, v->pass_m, v->wk);
}
/* Whether the two CTAs of a cluster exchange sums, and each finishes half of the tokens. */
static inline bool sparse24_exchanges(const ptxgen_tile *v)
{
    return gemm_is_wgmma(v) && v->cluster > 1;
}
static inline uint32_t sparse24_finished_rows(const ptxgen_tile *v)
{
    return sparse24_exchanges(v) ? v->tile_m / 2 : v->tile_m;
}
/* Accumulators of a thread, divided by four. */
static inline uint32_t sparse24_fragments(const ptxgen_tile *v)
{
    return sparse24_warp_tiles(v) * (v->warp_m / 8);
}
/* Whether registers are few: five warps a scheduler leave each thread 96, and sums take 64. */
static inline bool sparse24_has_few_registers(const ptxgen_tile *v)
{
    return gemm_cta_threads(v) > 512 && sparse24_fragments(v) >= 16;
}
static inline uint32_t sparse24_tiles_n(const ptxgen_sparse24_spec *s, const ptxgen_tile *v)
{
    return (sparse24_strips(s) + sparse24_tile_strips(v) - 1) / sparse24_tile_strips(v);
}
static inline uint32_t sparse24_stages_along_k(const ptxgen_sparse24_spec *s, const ptxgen_tile *v)
{
    return (sparse24_steps(s) + v->wk - 1) / v->wk;
}
/* Stages along K of one CTA of a cluster. */
static inline uint32_t sparse24_own_stages(const ptxgen_sparse24_spec *s, const ptxgen_tile *v)
{
    return sparse24_stages_along_k(s, v) / v->cluster;
}

ptxgen_status sparse24_check_spec(const void *spec, ptxgen_error *err);

/* The copy of a launch (plan.h) is that of x with aligned rows (align.h). */
extern const struct gemm_planner sparse24_planner;

/* Whether ptxgen_sparse24_make_plan has filled the plan; the variants of tier 1 are dense's. */
static inline bool sparse24_is_plan(const void *plan)
{
    const ptxgen_sparse24_plan *p = plan;
    if (!p || p->spec.tier > 2)
        return false;
    bool is_empty = !p->spec.k || !p->spec.n, inflates = sparse24_tier(&p->spec) == 1;
    return inflates
               ? plan_is_made(&p->target, is_empty, p->dense.variant_count, PTXGEN_DENSE_VARIANTS)
               : plan_is_made(&p->target, is_empty, p->variant_count, PTXGEN_SPARSE24_VARIANTS);
}

#endif
