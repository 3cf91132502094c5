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

/* ---- sizes ---- */

static uint32_t mma_steps(const struct marlin_product *q)
{
    return q->v->steps * STEP_MMAS;
}

/* Loads of activations in an mma step; a load serves two groups of 8 tokens, or two mma steps. */
static uint32_t loads_of_mma_step(const struct marlin_product *q)
{
    return gemm_operand_pairs_steps(&q->x) ? 1 : token_groups(q) / 2;
}

/* mma steps of a group of scales. */
static uint32_t group_mmas(const struct marlin_product *q)
{
    uint32_t groups = marlin_stage_groups(q->spec, q->v->steps);
    return mma_steps(q) / (groups ? groups : 1);
}

static bool has_groups(const struct marlin_product *q)
{
    return marlin_scale_rows(q->spec) != 0;
}

/* Whether each group has sums of its own, which are scaled. */
static bool scales_groups(const struct marlin_product *q)
{
    return has_groups(q) && marlin_scales_sums(q->spec, q->v);
}

/* ---- stages ---- */

static bool fills_itself(const struct marlin_product *q)
{
    return !q->reads_ring;
}

/* Shared address of the slot of the current stage. */
static ptx_u32 read_slot(const struct marlin_product *q)
{
    return fills_itself(q) ? q->g.pipeline.read : q->g.read.slot;
}

/* Moves to the next stage and waits for it. */
static void next_stage(struct marlin_product *q)
{
    if (fills_itself(q))
        gemm_pipeline_next(q->g.k, &q->g.pipeline);
    else
        gemm_ring_next(q->g.k, &q->g.ring, &q->g.read, q->g.held[0], q->g.to_read);
}

/* ---- operands ---- */

/*
 * Whether a group's sums start from their correction by zero points, which takes one more mma for
 * each fragment of activations. For groups of at most two mma steps that is less than a correction
 * of each sum.
 */
static bool starts_from_zeros(const struct marlin_product *q)
{
    return marlin_corrects_sums(q->spec, q->v) && !q->spec->zeros && has_groups(q) &&
           group_mmas(q) <= 2;
}

/* Whether sums are corrected by sums of activations at the end of a group. */
static bool needs_totals(const struct marlin_product *q)
{
    return marlin_corrects_sums(q->spec, q->v) && !starts_from_zeros(q);
}

/* Whether another warp computes the sums of activations. */
static bool are_stored(const struct marlin_product *q)
{
    return marlin_stores_totals(q->spec, q->v);
}

/* The registers of load number `load` of activations. */
static ptx_u32 *activations(struct marlin_product *q, uint32_t load)
{
    return q->operands.x[load % 2];
}

/* The registers of the fragment of token group j in mma step i. */
static const ptx_u32 *fragment(struct marlin_product *q, uint32_t i, uint32_t j)
{
    if (gemm_operand_pairs_steps(&q->x))
        return activations(q, i / 2) + i % 2 * 2;
    return activations(q, i * loads_of_mma_step(q) + j / 2) + j % 2 * 2;
}

/* Whether the two fragments of a load need separate sums: their tokens or their groups differ. */
static bool parts_totals(const struct marlin_product *q)
{
    return !gemm_operand_pairs_steps(&q->x) || (has_groups(q) && group_mmas(q) == 1);
}

uint32_t marlin_corrected_groups(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    uint32_t groups = marlin_stage_groups(s, v->steps);
    return groups ? groups : 1;
}

void marlin_emit_totals_begin(struct marlin_product *q)
{
    ptx_kernel *k = q->g.k;
    struct totals *t = &q->operands.totals;
    t->ones = ptx_mov_u32(k, U32(is_bf16(q) ? 0x3F803F80 : 0x3C003C00));
    for (uint32_t e = 0; e < 2; e++) /* of group 2q + e */
        t->source[e] = ptx_mad_lo_u32(k, q->g.at.quad, U32(8), U32(4 * e));
}

static void new_totals(struct marlin_product *q)
{
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 4; r++)
            q->operands.totals.sums[i][r] = ptx_mov_f32(q->g.k, F32(0));
}

static void clear_totals(struct marlin_product *q)
{
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 4; r++)
            ptx_mov_f32_to(q->g.k, q->operands.totals.sums[i][r], F32(0));
}

void marlin_emit_operands_begin(struct marlin_product *q)
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
    if (scales_groups(q)) {
        gemm_new_registers(q->g.k, o->group.packed, tiles(q));
        if (q->spec->zeros)
            gemm_new_registers(q->g.k, &o->group.zeros, 1);
    }
    if (needs_totals(q))
        new_totals(q);
    if (needs_totals(q) && !are_stored(q))
        marlin_emit_totals_begin(q);
    for (uint32_t r = 0; r < 4 && starts_from_zeros(q) && !are_stored(q); r++)
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
    bool pairs = gemm_operand_pairs_steps(&q->x);
    uint32_t step = i / STEP_MMAS;
    if (pairs && i % 2)
        return;
    if (i == 0 && p == 0)
        ptx_add_u32_to(k, o->x_lane, slot, o->x_at);
    if (p == 0)
        ptx_mov_u32_to(k, o->x_step, gemm_operand_step(k, &q->x, o->x_lane, i % STEP_MMAS));
    uint32_t load = pairs ? i / 2 : i * loads_of_mma_step(q) + p;
    gemm_operand_load_to(k, o->x_step, p * 2 + step * token_groups(q), activations(q, load));
}

/* Loads what is new in mma step i: the words of 64 of K, and the scales of a group. */
static void load_weights(struct marlin_product *q, ptx_u32 slot, uint32_t i)
{
    struct operands *o = &q->operands;
    if (i % STEP_MMAS == 0)
        marlin_emit_weights_load(q, slot, i / STEP_MMAS, o->words);
    if (has_groups(q) && i % group_mmas(q) == 0)
        marlin_emit_scales_load(q, slot, i / group_mmas(q), &o->scales);
}

/* Makes the scales that were loaded last those of the next operands. */
static void enter_group(struct marlin_product *q)
{
    struct operands *o = &q->operands;
    marlin_emit_dequantiser(q, &o->scales);
    if (!scales_groups(q))
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
    if (has_groups(q) && t == 0 && i % group_mmas(q) == 0)
        enter_group(q);
    marlin_emit_dequantise(q, t, o->words[t][i % STEP_MMAS], o->a[i % 2][t]);
}

/*
 * How many mma steps ahead of the products words and scales are loaded. In a step with few products
 * one step ahead is not enough to hide the latency of the load.
 */
static uint32_t weights_ahead(const struct marlin_product *q)
{
    return loads_of_mma_step(q) > 1 ? 1 : 2;
}

static void first_weights(struct marlin_product *q, ptx_u32 slot)
{
    load_weights(q, slot, 0);
    for (uint32_t t = 0; t < tiles(q); t++)
        dequantise(q, 0, t);
    if (weights_ahead(q) > 1)
        load_weights(q, slot, 1);
}

/*
 * Whether a tile's first operand depends on the tile's features. If not, it is made at the end of
 * the tile before.
 */
static bool begins_anew(const struct marlin_product *q)
{
    bool zeros = !has_groups(q) && q->spec->zeros && !needs_totals(q);
    return zeros || (has_groups(q) && marlin_half_varies(q)) || marlin_has_odd_halves(q->v);
}

void marlin_emit_first_operands(struct marlin_product *q)
{
    load_activations(q, read_slot(q), 0, 0);
    if (!begins_anew(q))
        first_weights(q, read_slot(q));
}

void marlin_emit_clear(struct marlin_product *q, ptx_u32 tile_n)
{
    for (uint32_t t = 0; t < tiles(q); t++)
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_mov_f32_to(q->g.k, q->acc[t][j][r], F32(0));
    marlin_emit_half(q, tile_n, q->operands.half);
    marlin_emit_strip(q, tile_n);
    if (!has_groups(q)) {
        marlin_emit_column_scales_load(q, tile_n, &q->operands.scales);
        if (q->spec->zeros)
            marlin_emit_dequantiser(q, &q->operands.scales);
    }
    if (needs_totals(q))
        clear_totals(q);
    if (begins_anew(q))
        first_weights(q, read_slot(q));
}

/* ---- products ---- */

static void mma(struct marlin_product *q, ptx_f32 acc[4], const ptx_u32 a[4], const ptx_u32 b[2])
{
    if (is_bf16(q))
        ptx_mma_m16n8k16_f32_bf16_to(q->g.k, acc, a, b, acc);
    else
        ptx_mma_m16n8k16_f32_f16_to(q->g.k, acc, a, b, acc);
}

/* Loads the sums of activations of tokens 8j + 2q + e and group `group` of the current stage. */
static void load_totals(struct marlin_product *q, uint32_t group, ptx_f32 totals[2][2])
{
    ptx_kernel *k = q->g.k;
    const struct marlin_totals_place *u = &q->totals_place;
    if (group == 0)
        gemm_ring_side_wait(k, &q->g.ring, &u->present);
    ptx_u32 at = ptx_add_u32(k, u->present.slot, u->totals_at), pair[2];
    for (uint32_t j = 0; j < token_groups(q); j++) {
        ptx_ld_shared_v2_u32(k, pair, at, (int)((group * q->v->tile_m + 8 * j) * 4));
        for (uint32_t e = 0; e < 2; e++)
            totals[j][e] = ptx_u32_as_f32(pair[e]);
    }
}

/* Without groups: adds the stage's sums of activations to those of the part. */
static void add_stored(struct marlin_product *q)
{
    ptx_f32 totals[2][2];
    load_totals(q, 0, totals);
    for (uint32_t j = 0; j < token_groups(q); j++)
        for (uint32_t e = 0; e < 2; e++) {
            ptx_f32 sum = q->operands.totals.sums[j][e];
            ptx_add_f32_to(q->g.k, sum, sum, totals[j][e]);
        }
}

/* Adds a load to the sums of activations: both fragments to one sum, or each to its own. */
static void add_load(struct marlin_product *q, const ptx_u32 x[4])
{
    ptx_kernel *k = q->g.k;
    struct totals *t = &q->operands.totals;
    const ptx_u32 ones[2] = {t->ones, t->ones};
    if (!parts_totals(q)) {
        mma(q, t->sums[0], x, ones);
        return;
    }
    for (uint32_t i = 0; i < 2; i++)
        if (is_bf16(q))
            ptx_mma_m16n8k8_f32_bf16_to(k, t->sums[i], x + 2 * i, ones, t->sums[i]);
        else
            ptx_mma_m16n8k8_f32_f16_to(k, t->sums[i], x + 2 * i, ones, t->sums[i]);
}

/* Adds the activations that were loaded for mma step i, if any, to their sums. */
static void add_to_totals(struct marlin_product *q, uint32_t i)
{
    bool pairs = gemm_operand_pairs_steps(&q->x);
    if (!pairs || i % 2 == 0)
        add_load(q, activations(q, pairs ? i / 2 : i));
}

/* The sum of token g in fragment j of the loads that were added. */
static ptx_f32 own_total(struct marlin_product *q, uint32_t i, uint32_t j)
{
    const struct totals *t = &q->operands.totals;
    uint32_t of = !parts_totals(q) ? 0 : gemm_operand_pairs_steps(&q->x) ? i % 2 : j;
    return ptx_add_f32(q->g.k, t->sums[of][0], t->sums[of][2]);
}

void marlin_emit_totals(struct marlin_product *q, ptx_u32 slot, uint32_t along_k, uint32_t group,
                        ptx_f32 totals[2])
{
    ptx_kernel *k = q->g.k;
    uint32_t mmas = mma_steps(q) / marlin_corrected_groups(q->spec, q->v), first = group * mmas;
    bool pairs = gemm_operand_pairs_steps(&q->x);
    if (mmas > 1 || !pairs || first % 2 == 0)
        new_totals(q);
    for (uint32_t i = first; i < first + mmas; i++) {
        if (pairs && i % 2)
            continue;
        ptx_u32 block = U32(along_k * q->v->steps + i / STEP_MMAS), x[4];
        ptx_u32 lane = gemm_operand_lane(k, &q->x, slot, ptx_mov_u32(k, block));
        gemm_new_registers(k, x, 4);
        gemm_operand_load_to(k, gemm_operand_step(k, &q->x, lane, i % STEP_MMAS), 0, x);
        add_load(q, x);
    }
    for (uint32_t j = 0; j < token_groups(q); j++)
        totals[j] = own_total(q, first, j);
}

/* The sums of activations of tokens 8j + 2q + e over the mma steps up to i. */
static void find_totals(struct marlin_product *q, uint32_t i, ptx_f32 totals[2][2])
{
    ptx_kernel *k = q->g.k;
    const struct totals *t = &q->operands.totals;
    for (uint32_t j = 0; j < token_groups(q); j++) {
        for (uint32_t e = 0; e < 2 && are_stored(q); e++)
            totals[j][e] = t->sums[j][e];
        if (are_stored(q))
            continue;
        ptx_f32 sum = own_total(q, i, j);
        for (uint32_t e = 0; e < 2; e++)
            totals[j][e] = ptx_u32_as_f32(
                ptx_shfl_sync_idx_u32(k, ptx_f32_as_u32(sum), t->source[e], U32(31), ALL_LANES));
    }
}

typedef ptx_f32 sums[MAX_TILES][MAX_TOKEN_GROUPS][4];

/* Multiplies in mma step i: all tiles by the token groups of load p. */
static void multiply_load(struct marlin_product *q, uint32_t i, uint32_t p, sums to)
{
    struct operands *o = &q->operands;
    if (needs_totals(q) && !are_stored(q))
        add_to_totals(q, i);
    uint32_t first = 2 * p, end = first + 2 < token_groups(q) ? first + 2 : token_groups(q);
    for (uint32_t t = 0; t < tiles(q); t++)
        for (uint32_t j = first; j < end; j++)
            mma(q, to[t][j], o->a[i % 2][t], fragment(q, i, j));
}

/*
 * Issues the load of activations after load p of mma step i; `next` is the slot of the next stage.
 */
static void load_after(struct marlin_product *q, ptx_u32 slot, ptx_u32 next, uint32_t i, uint32_t p)
{
    uint32_t one = i + 1, all = mma_steps(q);
    if (p + 1 < loads_of_mma_step(q))
        load_activations(q, slot, i, p + 1);
    else
        load_activations(q, one < all ? slot : next, one % all, 0);
}

/*
 * Whether the rest of the stage is read at the start of mma step i, so that the slot is released
 * before the wait for the next stage. There are registers for one load of activations. Sums of
 * activations that the end of a group needs would be read too late for that.
 */
static bool leaves_slot(const struct marlin_product *q, uint32_t i)
{
    bool fits = weights_ahead(q) * loads_of_mma_step(q) == 2;
    bool stored = are_stored(q) && (needs_totals(q) || group_mmas(q) == 1);
    return !fills_itself(q) && fits && !stored && i + weights_ahead(q) == mma_steps(q);
}

/*
 * Executed before load p of mma step i is multiplied: issues the next load, makes load p's share of
 * the next mma step's operand, and loads the words and scales with which an operand begins.
 */
static void prepare_next(struct marlin_product *q, ptx_u32 slot, ptx_u32 next, uint32_t i, uint32_t p)
{
    uint32_t each = loads_of_mma_step(q), count = tiles(q), all = mma_steps(q);
    uint32_t one = i + 1, ahead = i + weights_ahead(q);
    if (p == 0 && ahead == one)
        load_weights(q, one < all ? slot : next, one % all);
    if (p > 0 || !leaves_slot(q, i))
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
static void correct(struct marlin_product *q, uint32_t t, const ptx_f32 correction[2], ptx_f32 totals[2][2],
                    sums of)
{
    for (uint32_t h = 0; h < 2; h++)
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (uint32_t e = 0; e < 2; e++)
                ptx_fma_f32_to(q->g.k, of[t][j][2 * h + e], totals[j][e], correction[h],
                               of[t][j][2 * h + e]);
}

static void load_first_sums(struct marlin_product *q, uint32_t group, ptx_f32 first[MAX_TOKEN_GROUPS][4])
{
    ptx_kernel *k = q->g.k;
    const struct marlin_totals_place *u = &q->totals_place;
    if (group == 0)
        gemm_ring_side_wait(k, &q->g.ring, &u->present);
    ptx_u32 at = ptx_add_u32(k, u->present.slot, u->totals_at), four[4];
    for (uint32_t j = 0; j < token_groups(q); j++) {
        int offset = (int)((group * token_groups(q) + j) * 64);
        ptx_ld_shared_v4_u32(k, four, at, offset);
        for (uint32_t r = 0; r < 4; r++)
            first[j][r] = ptx_u32_as_f32(four[r]);
    }
}

/* What the sums of all tiles start from at mma step i: 0, or their correction by zero points. */
static void first_sums(struct marlin_product *q, uint32_t i, ptx_f32 first[MAX_TOKEN_GROUPS][4])
{
    if (marlin_stores_first_sums(q->spec, q->v)) {
        load_first_sums(q, i / group_mmas(q), first);
        return;
    }
    for (uint32_t j = 0; j < token_groups(q); j++) {
        for (int r = 0; r < 4; r++)
            first[j][r] = starts_from_zeros(q) ? ptx_mov_f32(q->g.k, F32(0)) : F32(0);
        for (uint32_t step = i; step < i + group_mmas(q) && starts_from_zeros(q); step++)
            mma(q, first[j], q->operands.zero, fragment(q, step, j));
    }
}

static void begin_group(struct marlin_product *q, uint32_t i, struct group *g)
{
    bool loads = !gemm_operand_pairs_steps(&q->x) || i % 2 == 0;
    if (needs_totals(q) && !are_stored(q) && loads)
        clear_totals(q);
    sums first;
    first_sums(q, i, first[0]);
    for (uint32_t t = 0; t < tiles(q); t++) {
        marlin_emit_scales_f32(q, &q->operands.group, t, g->scale[t]);
        for (uint32_t h = 0; h < 2 && needs_totals(q); h++)
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
    if (needs_totals(q) && !are_stored(q))
        find_totals(q, i, g->totals);
    else if (needs_totals(q) && i + 1 < mma_steps(q))
        load_totals(q, i / group_mmas(q), g->totals);
    for (uint32_t t = 0; t < tiles(q) && needs_totals(q); t++)
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
    if (are_stored(q) && !has_groups(q))
        add_stored(q);
    else if (are_stored(q) && needs_totals(q))
        load_totals(q, marlin_corrected_groups(q->spec, q->v) - 1, last->totals);
    gemm_ring_release(q->g.k, &q->g.ring, barrier,
                      gemm_ring_refilled(q->g.k, &q->g.ring, q->g.to_read, q->g.releases));
}

static void advance(struct marlin_product *q, ptx_u32 slot, uint32_t i, struct group *group)
{
    if (leaves_slot(q, i)) {
        load_after(q, slot, slot, i, 0);
        end_reading(q, q->g.read.barrier, group);
    }
    next_stage(q);
}

void marlin_emit_multiply(struct marlin_product *q)
{
    bool by_group = scales_groups(q), leaves = false;
    uint32_t all = mma_steps(q);
    ptx_u32 slot = ptx_mov_u32(q->g.k, read_slot(q));
    struct group group;
    if (are_stored(q)) {
        q->totals_place.present.slot = slot;
        q->totals_place.present.barrier = ptx_mov_u32(q->g.k, q->g.read.barrier);
        q->totals_place.present.parity = ptx_mov_u32(q->g.k, q->g.read.parity);
    }
    if (fills_itself(q))
        gemm_pipeline_issue(q->g.k, &q->g.pipeline);
    for (uint32_t i = 0; i < all; i++) {
        if (by_group && i % group_mmas(q) == 0)
            begin_group(q, i, &group);
        leaves = leaves || leaves_slot(q, i);
        if (i + weights_ahead(q) == all)
            advance(q, slot, i, &group);
        for (uint32_t p = 0; p < loads_of_mma_step(q); p++) {
            prepare_next(q, slot, read_slot(q), i, p);
            multiply_load(q, i, p, by_group ? group.sums : q->acc);
        }
        if (i + 1 == all && !leaves && !fills_itself(q))
            end_reading(q, q->g.held[0], &group);
        if (by_group && (i + 1) % group_mmas(q) == 0)
            end_group(q, i, &group);
    }
}

void marlin_emit_finish_sums(void *product)
{
    struct marlin_product *q = product;
    ptx_kernel *k = q->g.k;
    ptx_f32 totals[2][2];
    bool corrects = marlin_corrects_sums(q->spec, q->v), has_units = marlin_code_unit(q, 0) != 1;
    if (has_groups(q) && !has_units)
        return;
    if (!has_groups(q) && corrects)
        find_totals(q, 0, totals);
    for (uint32_t t = 0; t < tiles(q); t++) {
        ptx_f32 scale[2] = {F32(1), F32(1)}, correction[2];
        for (uint32_t h = 0; h < 2 && corrects; h++)
            correction[h] = marlin_emit_correction(q, &q->operands.scales, t, h);
        if (!has_groups(q) && corrects)
            correct(q, t, correction, totals, q->acc);
        if (!has_groups(q))
            marlin_emit_scales_f32(q, &q->operands.scales, t, scale);
        for (uint32_t h = 0; h < 2 && has_units; h++) {
            ptx_f32 codes = F32(1 / marlin_code_unit(q, h));
            scale[h] = has_groups(q) ? codes : ptx_mul_f32(k, scale[h], codes);
        }
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_mul_f32_to(q->g.k, q->acc[t][j][r], q->acc[t][j][r], scale[r / 2]);
    }
}
