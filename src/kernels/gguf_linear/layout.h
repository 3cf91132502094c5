/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the plan, the emitters, the reference and the launch of gguf_linear share. */
#ifndef PTXGEN_GGUF_LINEAR_LAYOUT_H
#define PTXGEN_GGUF_LINEAR_LAYOUT_H

#include "../plan.h"

#include <ptxgen/gguf_linear.h>

#include <stdbool.h>

enum {
    UNIT = 256,              /* values of K that share a power of two, and that a step multiplies */
    UNIT_GROUPS = UNIT / 32, /* groups of 32 in it */
    TILE_ROWS = 16,
    HALF_ROWS = TILE_ROWS / 2,
    MATRICES = PTXGEN_GGUF_LINEAR_MATRICES,
    PASS_TOKENS = PTXGEN_GGUF_LINEAR_MAX_M, /* that a variant multiplies at once, at most */
    MOST_PASSES = 4 /* over quantised weights, before tensor cores are faster */
};

/* What a type wants to know of h beside its integers. */
enum gguf_linear_sums {
    SUMS_NONE,
    SUMS_S16, /* integer sums over 16 values: integer minima, and offsets of codes with a scale */
    SUMS_F32  /* sums over 32 values as f32: a minimum for each block of 32 */
};

/* The facts of a type that the plan needs; types.c has the table. */
struct gguf_linear_facts {
    uint32_t block_weights, block_bytes, align;
    enum gguf_linear_sums sums;
};
/* NULL for a type that is not multiplied. */
const struct gguf_linear_facts *gguf_linear_facts(uint32_t type);

/* ---- rows of weights ---- */

static inline uint32_t matrix_count(const ptxgen_gguf_linear_spec *s)
{
    uint32_t count = 0;
    while (count < MATRICES && s->n[count])
        count++;
    return count;
}
/* F32, F16 and BF16, whose blocks are a weight; floats.h says how they are multiplied. */
static inline bool is_float(const ptxgen_gguf_linear_spec *s, uint32_t matrix)
{
    const struct gguf_linear_facts *f = gguf_linear_facts(s->w_type[matrix]);
    return f && f->block_weights == 1;
}
static inline uint32_t float_count(const ptxgen_gguf_linear_spec *s)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < matrix_count(s); i++)
        count += is_float(s, i);
    return count;
}
static inline bool has_quantised(const ptxgen_gguf_linear_spec *s)
{
    return float_count(s) < matrix_count(s);
}
static inline uint32_t units(const ptxgen_gguf_linear_spec *s)
{
    return (s->k + UNIT - 1) / UNIT;
}
static inline uint64_t row_bytes(const ptxgen_gguf_linear_spec *s, uint32_t type)
{
    const struct gguf_linear_facts *f = gguf_linear_facts(type);
    return (uint64_t)(s->k / f->block_weights) * f->block_bytes;
}
/* Bytes of a row's weights of one unit. */
static inline uint32_t unit_bytes(uint32_t type)
{
    const struct gguf_linear_facts *f = gguf_linear_facts(type);
    return UNIT / f->block_weights * f->block_bytes;
}

/*
 * Whether all matrices are quantised, in rows of multiples of 16 bytes; their addresses are such
 * multiples, too, then.
 */
static inline bool has_aligned_rows(const ptxgen_gguf_linear_spec *s)
{
    bool are_aligned = matrix_count(s) && !float_count(s);
    for (uint32_t i = 0; i < matrix_count(s); i++)
        are_aligned = are_aligned && row_bytes(s, s->w_type[i]) % 16 == 0;
    return are_aligned;
}
static inline uint32_t w_align(const ptxgen_gguf_linear_spec *s, uint32_t matrix)
{
    return has_aligned_rows(s) ? 16 : gguf_linear_facts(s->w_type[matrix])->align;
}

/*
 * The largest power of two up to 16 of which the address of each row's unit is a multiple. Where
 * that is less than 16, a copy begins at the multiple of 16 below, and where it is less than 4,
 * words are put together from two.
 */
static inline uint32_t row_align(const ptxgen_gguf_linear_spec *s, uint32_t type)
{
    const struct gguf_linear_facts *f = gguf_linear_facts(type);
    uint64_t bits = row_bytes(s, type) | unit_bytes(type) | f->align | 16;
    return (uint32_t)(bits & -bits);
}
/*
 * Bytes of a row's `units` copied at once that a lane may read, past an address that is a multiple
 * of 16.
 */
static inline uint32_t copied_bytes(const ptxgen_gguf_linear_spec *s, uint32_t type, uint32_t units)
{
    uint32_t align = row_align(s, type), most_shift = 16 - align, word = align < 4 ? 4 : 0;
    return most_shift + units * unit_bytes(type) + word;
}
/* Chunks of 16 bytes of a copied row. */
static inline uint32_t row_chunks(const ptxgen_gguf_linear_spec *s, uint32_t type, uint32_t units)
{
    return (copied_bytes(s, type, units) + 15) / 16;
}
/* Bytes from row to row of a slot: an odd number of 16 bytes, which spreads 8 rows over all banks.
 */
static inline uint32_t slot_pitch(const ptxgen_gguf_linear_spec *s, uint32_t type, uint32_t units)
{
    return (row_chunks(s, type, units) | 1) * 16;
}
/* A slot of the ring of wk warps, which has a unit for each. */
static inline uint32_t slot_bytes(const ptxgen_gguf_linear_spec *s, uint32_t wk)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < matrix_count(s); i++) {
        uint32_t bytes = is_float(s, i) ? 0 : TILE_ROWS * slot_pitch(s, s->w_type[i], wk);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* ---- pairs of units, which tensor copies bring ---- */

static inline uint32_t pairs(const ptxgen_gguf_linear_spec *s)
{
    return (units(s) + 1) / 2;
}
static inline uint32_t pair_size(uint32_t type)
{
    return 2 * unit_bytes(type);
}
/*
 * Of one token, four warps along K may share slots of four pairs of Q6_K, which are 1680 bytes, a
 * multiple of 16, and of which rows that tensor copies bring are a multiple. A pair is not: its
 * copies overlap with the next pair's, and read 7 % more sectors of the L2 than the rows have.
 */
enum { SHARED_PAIRS = 4 };
static inline bool may_share_slots(const ptxgen_gguf_linear_spec *s,
                                   const ptxgen_gguf_linear_variant *v)
{
    bool may = v->tensor && v->tile_m == 1 && v->parts == 1 && v->wk == SHARED_PAIRS;
    for (uint32_t i = 0; i < matrix_count(s); i++)
        may = may && s->w_type[i] == PTXGEN_GGUF_Q6_K;
    return may;
}
static inline bool shares_slots(const ptxgen_gguf_linear_variant *v)
{
    return v->tensor && v->ring_warps > 1;
}
static inline uint32_t ring_count(const ptxgen_gguf_linear_variant *v)
{
    return v->wn * v->wk / v->ring_warps;
}
/* A full barrier for each slot, and an empty one where warps share it. */
static inline uint32_t ring_barrier_bytes(const ptxgen_gguf_linear_variant *v)
{
    return (shares_slots(v) ? 16 : 8) * v->stages;
}
/* Bytes of an element of the tensor maps: a copy has at most 256 elements of a row. */
static inline uint32_t map_element(const ptxgen_gguf_linear_variant *v)
{
    return shares_slots(v) ? 8 : 4;
}
/*
 * Bytes from row to row of a slot of so many pairs, which are what a copy takes. Copies must begin
 * at multiples of 16 bytes: they do at or below the pairs, as far below for all rows. Where 8 rows
 * would fall on two sets of banks or one, a copy takes 16 bytes more, which spread them over all.
 */
static inline uint32_t pairs_pitch(uint32_t type, uint32_t count)
{
    uint32_t size = count * pair_size(type), align = size & -size;
    uint32_t most_shift = align < 16 ? 16 - align : 0, chunks = (size + most_shift + 15) / 16;
    return (chunks % 4 == 0 ? chunks + 1 : chunks) * 16;
}
static inline uint32_t tensor_slot_bytes(const ptxgen_gguf_linear_spec *s,
                                         const ptxgen_gguf_linear_variant *v)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < matrix_count(s); i++) {
        uint32_t bytes = is_float(s, i) ? 0 : TILE_ROWS * pairs_pitch(s->w_type[i], v->ring_warps);
        most = bytes > most ? bytes : most;
    }
    return (most + 127) / 128 * 128;
}

/* ---- gates ---- */

static inline bool is_gated(const ptxgen_gguf_linear_spec *s)
{
    return s->epilogue != PTXGEN_EPILOGUE_NONE;
}
/* Gate and up are of one quantised type: a tile is 8 features of gate and the same 8 of up. */
static inline bool is_interleaved(const ptxgen_gguf_linear_spec *s)
{
    return is_gated(s) && s->w_type[0] == s->w_type[1] && !is_float(s, 0);
}
/* Gate and up are of two types, or floats: both go to the workspace as f32, and a third kernel
 * joins them. */
static inline bool is_joined(const ptxgen_gguf_linear_spec *s)
{
    return is_gated(s) && !is_interleaved(s);
}
/* Whether tensor copies bring the weights, whose maps only a launch's last kernel can have. */
static inline bool takes_tensor_copies(const ptxgen_gguf_linear_plan *p)
{
    return p->target.ptx.sm >= 90 && has_aligned_rows(&p->spec) && !is_joined(&p->spec);
}
static inline uint32_t output_count(const ptxgen_gguf_linear_spec *s)
{
    return is_gated(s) ? 1 : matrix_count(s);
}

/* ---- tiles ---- */

static inline uint32_t tile_features(const ptxgen_gguf_linear_spec *s)
{
    return is_interleaved(s) ? HALF_ROWS : TILE_ROWS;
}
/* Tiles of a quantised matrix; of interleaved matrices the first has them all. */
static inline uint32_t matrix_tiles(const ptxgen_gguf_linear_spec *s, uint32_t matrix)
{
    if (is_float(s, matrix) || (is_interleaved(s) && matrix))
        return 0;
    return (s->n[matrix] + tile_features(s) - 1) / tile_features(s);
}
static inline uint32_t all_tiles(const ptxgen_gguf_linear_spec *s)
{
    uint32_t tiles = 0;
    for (uint32_t i = 0; i < matrix_count(s); i++)
        tiles += matrix_tiles(s, i);
    return tiles;
}

/*
 * Units of a warp whose inputs stay in registers while h is made, at most: by a kernel of its own,
 * whose CTAs have 32 warps, and by the product, whose lanes have 128 registers.
 */
enum { HELD_UNITS = 2, MOST_HELD_UNITS = 8, MOST_HELD_WORDS = 64 };
static inline uint32_t product_held_units(const ptxgen_gguf_linear_spec *s)
{
    const uint32_t of_x = s->x_type == PTXGEN_F32 ? 8 : 4, of_gamma = 8; /* words of a lane's 8 */
    const uint32_t words = of_x * (s->residual ? 2 : 1) + of_gamma * (s->norm ? 1 : 0) +
                           of_gamma * (s->residual == PTXGEN_GGUF_LINEAR_AFTER ? 1 : 0);
    const uint32_t most = MOST_HELD_WORDS / words;
    return most < MOST_HELD_UNITS ? most : MOST_HELD_UNITS;
}

/* ---- h as fixed point ---- */

/*
 * A unit of a token is i·2^e, and i is `planes` signed bytes. Columns of the product are tokens ×
 * planes, column plane · tile_m + token. The record of a unit, for all of them:
 *   planes  8 groups of 32 × columns × 4 quad lanes × 8 bytes, B fragments of mma.m16n8k32: values
 *           4q to 4q + 3 and 16 + 4q to 16 + 4q + 3 of the group for quad lane q
 *   S16     columns × 4 quad lanes × {low, high} × 4 bytes: sums of a plane over 16 values, as two
 *           signed bytes each; where a type wants them
 *   S32     8 groups × columns × f32: sums of a plane over 32 values; where a type wants them
 *   powers  columns × f32: 2^e · 256^plane, or NaN for a unit with a NaN or infinity
 */
static inline bool wants(const ptxgen_gguf_linear_spec *s, enum gguf_linear_sums sums)
{
    for (uint32_t i = 0; i < matrix_count(s); i++)
        if (gguf_linear_facts(s->w_type[i])->sums == sums)
            return true;
    return false;
}
static inline uint32_t columns(const ptxgen_gguf_linear_plan *p, uint32_t tile_m)
{
    return p->planes * tile_m;
}
static inline uint32_t n_tiles(const ptxgen_gguf_linear_plan *p, uint32_t tile_m)
{
    return (columns(p, tile_m) + 7) / 8;
}
static inline uint32_t record_s16(const ptxgen_gguf_linear_plan *p, uint32_t tile_m)
{
    return columns(p, tile_m) * UNIT;
}
static inline uint32_t record_s32(const ptxgen_gguf_linear_plan *p, uint32_t tile_m)
{
    return record_s16(p, tile_m) + (wants(&p->spec, SUMS_S16) ? columns(p, tile_m) * 32 : 0);
}
static inline uint32_t record_powers(const ptxgen_gguf_linear_plan *p, uint32_t tile_m)
{
    return record_s32(p, tile_m) +
           (wants(&p->spec, SUMS_F32) ? columns(p, tile_m) * 4 * UNIT_GROUPS : 0);
}
static inline uint32_t record_bytes(const ptxgen_gguf_linear_plan *p, uint32_t tile_m)
{
    return (record_powers(p, tile_m) + columns(p, tile_m) * 4 + 15) / 16 * 16;
}
/* The most units of a part of K, which has whole pairs with tensor copies. */
static inline uint32_t part_units(const ptxgen_gguf_linear_spec *s,
                                  const ptxgen_gguf_linear_variant *v)
{
    if (!v->tensor)
        return (units(s) + v->parts - 1) / v->parts;
    uint32_t most = 2 * ((pairs(s) + v->parts - 1) / v->parts);
    return most < units(s) ? most : units(s);
}

/* ---- the workspace ---- */

/*
 * Records of all units; sums of both matrices of a gate that is joined, f32 [tile_m, N]; where K
 * has parts, a counter for each tile, and the parts' sums: tiles × parts × tile_m × 16 f32; and for
 * matrices of floats rows of h, f32 [tile_m, K], where h is not x.
 */
struct gguf_linear_space {
    uint64_t joined[2], counters, partials, rows, bytes;
};
struct gguf_linear_space gguf_linear_space(const ptxgen_gguf_linear_plan *p,
                                           const ptxgen_gguf_linear_variant *v);

/* ---- entries and their parameters ---- */

/* Of a variant, in order of emission. */
enum gguf_linear_kind {
    KIND_PREPARE, /* where there are quantised matrices, and the product does not make h */
    KIND_PRODUCT, /* where there are quantised matrices */
    KIND_ROWS,    /* where there are matrices of floats, and h is not x */
    KIND_FLOAT,   /* where there are matrices of floats */
    KIND_JOIN,    /* where a gate is joined */
    GGUF_LINEAR_KINDS
};
/* Whether matrices of floats are multiplied by rows of h that are not x. */
static inline bool has_float_rows(const ptxgen_gguf_linear_spec *s)
{
    return float_count(s) && (s->norm || s->residual);
}
static inline bool has_entry(const ptxgen_gguf_linear_spec *s, const ptxgen_gguf_linear_variant *v,
                             enum gguf_linear_kind kind)
{
    const bool has_floats = float_count(s) > 0;
    const bool has[GGUF_LINEAR_KINDS] = {[KIND_PREPARE] = has_quantised(s) && !v->makes_h,
                                         [KIND_PRODUCT] = has_quantised(s),
                                         [KIND_ROWS] = has_float_rows(s),
                                         [KIND_FLOAT] = has_floats,
                                         [KIND_JOIN] = is_joined(s)};
    return has[kind];
}
/* Entries of a variant before that of a kind; of GGUF_LINEAR_KINDS, all. */
static inline uint32_t entries_before(const ptxgen_gguf_linear_spec *s,
                                      const ptxgen_gguf_linear_variant *v, unsigned kind)
{
    uint32_t count = 0;
    for (unsigned i = 0; i < kind; i++)
        count += has_entry(s, v, (enum gguf_linear_kind)i);
    return count;
}

enum gguf_linear_prepare_param {
    PREPARE_X,
    PREPARE_RESIDUAL,
    PREPARE_RESIDUAL_OUT,
    PREPARE_GAMMA,
    PREPARE_POST_GAMMA,
    PREPARE_RECORDS,
    PREPARE_COUNTERS, /* the last one of 64 bits */
    PREPARE_X_STRIDE,
    PREPARE_RESIDUAL_STRIDE,
    PREPARE_RESIDUAL_OUT_STRIDE,
    PREPARE_M,
    PREPARE_PARAMS
};
/* Those from PRODUCT_X on, and the strides of these, are read only where the product makes h. */
enum gguf_linear_product_param {
    PRODUCT_W,
    PRODUCT_BIAS = PRODUCT_W + MATRICES,
    PRODUCT_Y = PRODUCT_BIAS + MATRICES,
    PRODUCT_RECORDS = PRODUCT_Y + MATRICES,
    PRODUCT_COUNTERS,
    PRODUCT_PARTIALS,
    PRODUCT_X,
    PRODUCT_RESIDUAL,
    PRODUCT_RESIDUAL_OUT,
    PRODUCT_GAMMA,
    PRODUCT_POST_GAMMA, /* the last one of 64 bits */
    PRODUCT_Y_STRIDE,
    PRODUCT_X_STRIDE = PRODUCT_Y_STRIDE + MATRICES,
    PRODUCT_RESIDUAL_STRIDE,
    PRODUCT_RESIDUAL_OUT_STRIDE,
    PRODUCT_M,
    PRODUCT_PARAMS
};
enum gguf_linear_join_param {
    JOIN_GATE,
    JOIN_UP,
    JOIN_GATE_BIAS,
    JOIN_UP_BIAS,
    JOIN_Y, /* the last one of 64 bits */
    JOIN_Y_STRIDE,
    JOIN_PARAMS
};

/* Threads of the CTA of a token that makes h, and CTAs of a token. */
uint32_t gguf_linear_prepare_threads(const ptxgen_gguf_linear_spec *s);
uint32_t gguf_linear_prepare_ctas(const ptxgen_gguf_linear_spec *s);
enum { JOIN_THREADS = 256 };

/* Whether it is a plan that ptxgen_gguf_linear_make_plan filled. */
static inline bool gguf_linear_is_plan(const void *plan)
{
    const ptxgen_gguf_linear_plan *p = plan;
    return p && plan_is_made(&p->target, !p->spec.n[0],
                             p->variant_count + p->inflated.variant_count + p->direct_count,
                             PTXGEN_GGUF_LINEAR_VARIANTS + PTXGEN_DENSE_VARIANTS +
                                 PTXGEN_GGUF_LINEAR_DIRECT);
}
/* The sentence for an m that no variant serves. */
ptxgen_status gguf_linear_refuse_m(const ptxgen_gguf_linear_plan *plan, uint64_t m,
                                   ptxgen_error *err);
/* The most units that a warp multiplies of a tile. */
static inline uint32_t warp_units(const ptxgen_gguf_linear_spec *s,
                                  const ptxgen_gguf_linear_variant *v)
{
    const uint32_t own = part_units(s, v);
    if (v->tensor) /* whole pairs */
        return 2 * (((own + 1) / 2 + v->wk - 1) / v->wk);
    return (own + v->wk - 1) / v->wk;
}

#endif
