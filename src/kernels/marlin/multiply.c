/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The products of a stage by mma.sync, yᵀ = w·xᵀ: 16 features are the rows of mma's operand A, and
 * 8 tokens the columns of its operand B, so a tile of 8 tokens wastes no products.
 *
 * Scales are multiplied into whatever is fewer. In tiles of few tokens each group has sums of its
 * own, which are scaled in f32; from 32 tokens on weights are scaled, and rounded to the spec's
 * type. The same holds for zero points: most tiles of few tokens multiply codes as they are, and
 * correct the sums (weights.c).
 *
 * Operands are made one mma step ahead of the products, across the end of a stage as well: the wait
 * for the next stage comes before the last mma steps of the current one.
 */
#include "emit.h"

bool marlin_scales_sums(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    return (v->tile_m <= 16 && !gemm_is_wgmma(v)) || !marlin_scale_rows(s) ||
           marlin_scales_stages(s, v);
}

bool marlin_scales_stages(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    enum { FEW_ROWS = 32, MOST_ROWS = 64, MANY_WARPS = 16, LEAST_STEPS = 2 };
    uint32_t rows = marlin_scale_rows(s), most = v->wn * v->wk == MANY_WARPS ? MOST_ROWS : FEW_ROWS;
    bool folds = s->type == PTXGEN_BF16 && !s->zeros; /* then scaling costs no instruction */
    bool few = v->tile_m <= FEW_ROWS || (v->warp_n == MARLIN_TILE && v->tile_m <= most && !folds);
    return gemm_is_wgmma(v) && few && v->steps >= LEAST_STEPS && rows &&
           rows % (v->steps * MARLIN_STEP) == 0;
}

/* ---- the ways of a variant ---- */

/* Whether sums are corrected by sums of activations at the end of a group. */
static bool needs_totals(const struct marlin_mma *m)
{
    return m->correction == MARLIN_BY_TOTALS || m->correction == MARLIN_BY_STORED_TOTALS;
}

static enum marlin_correction correction_of(const struct marlin_product *q,
                                            const struct marlin_mma *m)
{
    bool stored = marlin_stores_totals(q->spec, q->v);
    if (!marlin_corrects_sums(q->spec, q->v))
        return MARLIN_NO_CORRECTION;
    if (!q->spec->zeros && m->has_groups && m->group <= 2)
        return stored ? MARLIN_FROM_STORED_SUMS : MARLIN_FROM_ZEROS;
    return stored ? MARLIN_BY_STORED_TOTALS : MARLIN_BY_TOTALS;
}

struct marlin_mma marlin_find_mma(const struct marlin_product *q)
{
    const ptxgen_tile *v = q->v;
    struct marlin_mma m = {.steps = v->steps * STEP_MMAS,
                           .pairs = v->tile_m == 8,
                           .has_groups = marlin_scale_rows(q->spec)};
    m.group = m.steps / marlin_corrected_groups(q->spec, v);
    m.loads = m.pairs ? 1 : token_groups(q) / 2;
    m.ahead = m.loads > 1 ? 1 : 2;
    m.scales_groups = m.has_groups && marlin_scales_sums(q->spec, v);
    m.correction = correction_of(q, &m);
    m.parts_totals = !m.pairs || (m.has_groups && m.group == 1);
    bool fits = m.ahead * m.loads == 2,
         late = m.correction == MARLIN_BY_STORED_TOTALS ||
                (m.correction == MARLIN_FROM_STORED_SUMS && m.group == 1);
    m.leaves_slot = q->reads_ring && fits && !late;
    return m;
}

/* ---- stages ---- */

/* Shared address of the slot of the current stage. */
static ptx_u32 read_slot(const struct marlin_product *q)
{
    return q->reads_ring ? q->g.read.slot : q->g.pipeline.read;
}

/* Moves to the next stage and waits for it. */
static void next_stage(struct marlin_product *q)
{
    if (q->reads_ring)
        gemm_ring_next(q->g.k, &q->g.ring, &q->g.read, q->g.held[0], q->g.to_read);
    else
        gemm_pipeline_next(q->g.k, &q->g.pipeline);
}

/* ---- operands ---- */

/* The registers of load number `load` of activations. */
static ptx_u32 *activations(struct marlin_product *q, uint32_t load)
{
    return q->operands.x[load % 2];
}

/* The registers of the fragment of token group j in mma step i. */
static const ptx_u32 *fragment(struct marlin_product *q, uint32_t i, uint32_t j)
{
    if (q->mma.pairs)
        return activations(q, i / 2) + i % 2 * 2;
    return activations(q, i * q->mma.loads + j / 2) + j % 2 * 2;
}

uint32_t marlin_corrected_groups(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    uint32_t groups = marlin_stage_groups(s, v->steps);
    return groups ? groups : 1;
}

static void begin_operands(struct marlin_product *q)
{
    struct operands *o = &q->operands;
    for (uint32_t t = 0; t < tiles(q); t++) {
        gemm_new_registers(q->g.k, o->words[t], 4);
        gemm_new_registers(q->g.k, o->a[0][t], 4);
        gemm_new_registers(q->g.k, o->a[1][t], 4);
    }
    gemm_new_registers(q->g.k, o->x[0], 4);
    gemm_new_registers(q->g.k, o->x[1], 4);
    gemm_new_registers(q->g.k, o->scales.packed, tiles(q));
    if (q->spec->zeros)
        gemm_new_registers(q->g.k, &o->scales.zeros, 1);
    if (q->mma.scales_groups) {
        gemm_new_registers(q->g.k, o->group.packed, tiles(q));
        if (q->spec->zeros)
            gemm_new_registers(q->g.k, &o->group.zeros, 1);
    }
    if (needs_totals(&q->mma))
        marlin_emit_totals_begin(q);
    for (uint32_t r = 0; r < 4 && q->mma.correction == MARLIN_FROM_ZEROS; r++)
        o->zero[r] = ptx_mov_u32(q->g.k, U32(marlin_zero_pair(q, r % 2)));
    ptx_u32 block = ptx_mul_lo_u32(q->g.k, q->along_k, U32(q->v->steps));
    o->x_at = gemm_operand_lane(q->g.k, &q->x, U32(0), block);
    gemm_new_registers(q->g.k, &o->x_lane, 1);
    gemm_new_registers(q->g.k, &o->x_step, 1);
    marlin_emit_dequantiser_begin(q);
}

/* Load p of mma step i of the stage at `slot`. */
static void load_activations(struct marlin_product *q, ptx_u32 slot, uint32_t i, uint32_t p)
{
    ptx_kernel *k = q->g.k;
    struct operands *o = &q->operands;
    bool pairs = q->mma.pairs;
    uint32_t step = i / STEP_MMAS;
    if (pairs && i % 2)
        return;
    if (i == 0 && p == 0)
        ptx_add_u32_to(k, o->x_lane, slot, o->x_at);
    if (p == 0)
        ptx_mov_u32_to(k, o->x_step, gemm_operand_step(k, &q->x, o->x_lane, i % STEP_MMAS));
    uint32_t load = pairs ? i / 2 : i * q->mma.loads + p;
    gemm_operand_load_to(k, o->x_step, p * 2 + step * token_groups(q), activations(q, load));
}

/* Loads what is new in mma step i: the words of 64 of K, and the scales of a group. */
static void load_weights(struct marlin_product *q, ptx_u32 slot, uint32_t i)
{
    struct operands *o = &q->operands;
    if (i % STEP_MMAS == 0)
        marlin_emit_weights_load(q, slot, i / STEP_MMAS, o->words);
    if (q->mma.has_groups && i % q->mma.group == 0)
        marlin_emit_scales_load(q, slot, i / q->mma.group, &o->scales);
}

/* Makes the scales that were loaded last those of the next operands. */
static void enter_group(struct marlin_product *q)
{
    struct operands *o = &q->operands;
    marlin_emit_dequantiser(q, &o->scales);
    if (!q->mma.scales_groups)
        return;
    for (uint32_t t = 0; t < tiles(q); t++)
        ptx_mov_u32_to(q->g.k, o->group.packed[t], o->scales.packed[t]);
    if (q->spec->zeros)
        ptx_mov_u32_to(q->g.k, o->group.zeros, o->scales.zeros);
}

/* Makes tile t's operand of mma step i. */
static void dequantise(struct marlin_product *q, uint32_t i, uint32_t t)
{
    struct operands *o = &q->operands;
    if (q->mma.has_groups && t == 0 && i % q->mma.group == 0)
        enter_group(q);
    marlin_emit_dequantise(q, t, o->words[t][i % STEP_MMAS], o->a[i % 2][t]);
}

static void first_weights(struct marlin_product *q, ptx_u32 slot)
{
    load_weights(q, slot, 0);
    for (uint32_t t = 0; t < tiles(q); t++)
        dequantise(q, 0, t);
    if (q->mma.ahead > 1)
        load_weights(q, slot, 1);
}

/*
 * Whether a tile's first operand depends on the tile's features. If not, it is made at the end of
 * the tile before.
 */
static bool begins_anew(const struct marlin_product *q)
{
    bool zeros = !q->mma.has_groups && q->spec->zeros && !needs_totals(&q->mma);
    return zeros || (q->mma.has_groups && marlin_half_varies(q)) || marlin_has_odd_halves(q->v);
}

void marlin_begin_mma(struct marlin_product *q)
{
    for (uint32_t t = 0; t < tiles(q); t++)
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                q->acc[t][j][r] = ptx_mov_f32(q->g.k, F32(0));
    begin_operands(q);
    load_activations(q, read_slot(q), 0, 0);
    if (!begins_anew(q))
        first_weights(q, read_slot(q));
}

void marlin_clear_mma(struct gemm *g, const struct gemm_part *part)
{
    struct marlin_product *q = marlin_of(g);
    ptx_u32 tile_n = marlin_emit_place(q, part->walk.tile).n;
    for (uint32_t t = 0; t < tiles(q); t++)
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_mov_f32_to(q->g.k, q->acc[t][j][r], F32(0));
    marlin_emit_half(q, tile_n, q->operands.half);
    marlin_emit_strip(q, tile_n);
    if (!q->mma.has_groups) {
        marlin_emit_column_scales_load(q, tile_n, &q->operands.scales);
        if (q->spec->zeros)
            marlin_emit_dequantiser(q, &q->operands.scales);
    }
    if (needs_totals(&q->mma))
        marlin_emit_totals_clear(q);
    if (begins_anew(q))
        first_weights(q, read_slot(q));
}

/* ---- products ---- */

void marlin_emit_mma(struct marlin_product *q, ptx_f32 acc[4], const ptx_u32 a[4],
                     const ptx_u32 b[2])
{
    if (is_bf16(q))
        ptx_mma_m16n8k16_f32_bf16_to(q->g.k, acc, a, b, acc);
    else
        ptx_mma_m16n8k16_f32_f16_to(q->g.k, acc, a, b, acc);
}

/* Adds the activations that were loaded for mma step i, if any, to their sums. */
static void add_to_totals(struct marlin_product *q, uint32_t i)
{
    bool pairs = q->mma.pairs;
    if (!pairs || i % 2 == 0)
        marlin_emit_totals_add(q, activations(q, pairs ? i / 2 : i));
}

typedef ptx_f32 sums[MAX_TILES][MAX_TOKEN_GROUPS][4];

/* Multiplies in mma step i: all tiles by the token groups of load p. */
static void multiply_load(struct marlin_product *q, uint32_t i, uint32_t p, sums to)
{
    struct operands *o = &q->operands;
    if (q->mma.correction == MARLIN_BY_TOTALS)
        add_to_totals(q, i);
    uint32_t first = 2 * p, end = first + 2 < token_groups(q) ? first + 2 : token_groups(q);
    for (uint32_t t = 0; t < tiles(q); t++)
        for (uint32_t j = first; j < end; j++)
            marlin_emit_mma(q, to[t][j], o->a[i % 2][t], fragment(q, i, j));
}

/*
 * Issues the load of activations after load p of mma step i; `next` is the slot of the next stage.
 */
static void load_after(struct marlin_product *q, ptx_u32 slot, ptx_u32 next, uint32_t i, uint32_t p)
{
    uint32_t one = i + 1, all = q->mma.steps;
    if (p + 1 < q->mma.loads)
        load_activations(q, slot, i, p + 1);
    else
        load_activations(q, one < all ? slot : next, one % all, 0);
}

/*
 * Executed before load p of mma step i is multiplied: issues the next load, makes load p's share of
 * the next mma step's operand, and loads the words and scales with which an operand begins.
 */
static void prepare_next(struct marlin_product *q, ptx_u32 slot, ptx_u32 next, uint32_t i,
                         uint32_t p)
{
    uint32_t each = q->mma.loads, count = tiles(q), all = q->mma.steps;
    uint32_t one = i + 1, ahead = i + q->mma.ahead;
    if (p == 0 && ahead == one)
        load_weights(q, one < all ? slot : next, one % all);
    if (p > 0 || !(q->mma.leaves_slot && ahead == all))
        load_after(q, slot, next, i, p);
    for (uint32_t t = p * count / each; t < (p + 1) * count / each; t++)
        dequantise(q, one % all, t);
    if (p + 1 == each && ahead != one)
        load_weights(q, ahead < all ? slot : next, ahead % all);
}

/* A group's sums before they are scaled. */
struct group {
    sums sums;
    ptx_f32 scale[MAX_TILES][2], correction[MAX_TILES][2], totals[2][2];
};

/* Corrects the sums of tile t by the offset of codes and the zero points. */
static void correct(struct marlin_product *q, uint32_t t, const ptx_f32 correction[2],
                    ptx_f32 totals[2][2], sums of)
{
    for (uint32_t h = 0; h < 2; h++)
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (uint32_t e = 0; e < 2; e++)
                ptx_fma_f32_to(q->g.k, of[t][j][2 * h + e], totals[j][e], correction[h],
                               of[t][j][2 * h + e]);
}

/* What the sums of all tiles start from at mma step i: 0, or their correction by zero points. */
static void first_sums(struct marlin_product *q, uint32_t i, ptx_f32 first[MAX_TOKEN_GROUPS][4])
{
    if (q->mma.correction == MARLIN_FROM_STORED_SUMS) {
        marlin_emit_first_sums_load(q, i / q->mma.group, first);
        return;
    }
    for (uint32_t j = 0; j < token_groups(q); j++) {
        for (int r = 0; r < 4; r++)
            first[j][r] =
                q->mma.correction == MARLIN_FROM_ZEROS ? ptx_mov_f32(q->g.k, F32(0)) : F32(0);
        for (uint32_t step = i; step < i + q->mma.group && q->mma.correction == MARLIN_FROM_ZEROS;
             step++)
            marlin_emit_mma(q, first[j], q->operands.zero, fragment(q, step, j));
    }
}

static void begin_group(struct marlin_product *q, uint32_t i, struct group *g)
{
    bool loads = !q->mma.pairs || i % 2 == 0;
    if (q->mma.correction == MARLIN_BY_TOTALS && loads)
        marlin_emit_totals_clear(q);
    sums first;
    first_sums(q, i, first[0]);
    for (uint32_t t = 0; t < tiles(q); t++) {
        marlin_emit_scales_f32(q, &q->operands.group, t, g->scale[t]);
        for (uint32_t h = 0; h < 2 && needs_totals(&q->mma); h++)
            g->correction[t][h] = marlin_emit_correction(q, &q->operands.group, t, h);
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                g->sums[t][j][r] = ptx_mov_f32(q->g.k, first[0][j][r]);
    }
}

/*
 * Ends a group with mma step i: corrects, scales and accumulates its sums. The sums of activations
 * of a stage's last group have been loaded by end_reading.
 */
static void end_group(struct marlin_product *q, uint32_t i, struct group *g)
{
    if (q->mma.correction == MARLIN_BY_TOTALS)
        marlin_emit_totals_find(q, i, g->totals);
    else if (needs_totals(&q->mma) && i + 1 < q->mma.steps)
        marlin_emit_totals_load(q, i / q->mma.group, g->totals);
    for (uint32_t t = 0; t < tiles(q) && needs_totals(&q->mma); t++)
        correct(q, t, g->correction[t], g->totals, g->sums);
    for (uint32_t t = 0; t < tiles(q); t++)
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_fma_f32_to(q->g.k, q->acc[t][j][r], g->sums[t][j][r], g->scale[t][r / 2],
                               q->acc[t][j][r]);
}

/*
 * Loads the last sums of activations of the stage, and releases the slot: all of it has been read.
 */
static void end_reading(struct marlin_product *q, ptx_u32 barrier, struct group *last)
{
    if (q->mma.correction == MARLIN_BY_STORED_TOTALS && !q->mma.has_groups)
        marlin_emit_totals_add_stored(q);
    else if (q->mma.correction == MARLIN_BY_STORED_TOTALS)
        marlin_emit_totals_load(q, marlin_corrected_groups(q->spec, q->v) - 1, last->totals);
    gemm_ring_release(q->g.k, &q->g.ring, barrier,
                      gemm_ring_refilled(q->g.k, &q->g.ring, q->g.to_read, q->g.releases));
}

static void advance(struct marlin_product *q, ptx_u32 slot, uint32_t i, struct group *group)
{
    if (q->mma.leaves_slot) {
        load_after(q, slot, slot, i, 0);
        end_reading(q, q->g.read.barrier, group);
    }
    next_stage(q);
}

void marlin_multiply_mma(struct gemm *g, const struct gemm_part *part)
{
    struct marlin_product *q = marlin_of(g);
    (void)part;
    bool by_group = q->mma.scales_groups;
    uint32_t all = q->mma.steps;
    ptx_u32 slot = ptx_mov_u32(q->g.k, read_slot(q));
    struct group group;
    if (marlin_stores_totals(q->spec, q->v)) {
        q->totals_place.present.slot = slot;
        q->totals_place.present.barrier = ptx_mov_u32(q->g.k, q->g.read.barrier);
        q->totals_place.present.parity = ptx_mov_u32(q->g.k, q->g.read.parity);
    }
    if (!q->reads_ring)
        gemm_pipeline_issue(q->g.k, &q->g.pipeline);
    for (uint32_t i = 0; i < all; i++) {
        if (by_group && i % q->mma.group == 0)
            begin_group(q, i, &group);
        if (i + q->mma.ahead == all)
            advance(q, slot, i, &group);
        for (uint32_t p = 0; p < q->mma.loads; p++) {
            prepare_next(q, slot, read_slot(q), i, p);
            multiply_load(q, i, p, by_group ? group.sums : q->acc);
        }
        if (i + 1 == all && q->reads_ring && !q->mma.leaves_slot)
            end_reading(q, q->g.held[0], &group);
        if (by_group && (i + 1) % q->mma.group == 0)
            end_group(q, i, &group);
    }
}

void marlin_emit_finish_sums(void *product)
{
    struct marlin_product *q = product;
    ptx_kernel *k = q->g.k;
    ptx_f32 totals[2][2];
    bool corrects = marlin_corrects_sums(q->spec, q->v), has_units = marlin_code_unit(q, 0) != 1;
    if (q->mma.has_groups && !has_units)
        return;
    if (!q->mma.has_groups && corrects)
        marlin_emit_totals_find(q, 0, totals);
    for (uint32_t t = 0; t < tiles(q); t++) {
        ptx_f32 scale[2] = {F32(1), F32(1)}, correction[2];
        for (uint32_t h = 0; h < 2 && corrects; h++)
            correction[h] = marlin_emit_correction(q, &q->operands.scales, t, h);
        if (!q->mma.has_groups && corrects)
            correct(q, t, correction, totals, q->acc);
        if (!q->mma.has_groups)
            marlin_emit_scales_f32(q, &q->operands.scales, t, scale);
        for (uint32_t h = 0; h < 2 && has_units; h++) {
            ptx_f32 codes = F32(1 / marlin_code_unit(q, h));
            scale[h] = q->mma.has_groups ? codes : ptx_mul_f32(k, scale[h], codes);
        }
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_mul_f32_to(q->g.k, q->acc[t][j][r], q->acc[t][j][r], scale[r / 2]);
    }
}
