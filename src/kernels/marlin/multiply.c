/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage's products, Cᵀ = Wᵀ · Aᵀ: 16 columns of weights are the rows of mma's operand A, 8 rows
 * of activations the columns of its B, so a tile of 8 rows wastes nothing.
 *
 * Scales go where there is less to multiply. Sums of a group are separate and are scaled in f32
 * for narrow tiles; from 32 rows on, weights are scaled, rounding to the spec's type.
 */
#include "emit.h"

bool marlin_scales_sums(const ptxgen_marlin_spec *s, const ptxgen_marlin_variant *v)
{
    return v->tile_m <= 16 || !marlin_scale_rows(s);
}

void marlin_emit_clear(struct gemm *q, ptx_u32 tile_n)
{
    for (uint32_t t = 0; t < tiles(q); t++)
        for (uint32_t j = 0; j < row_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_mov_f32_to(q->k, q->acc[t][j][r], F32(0));
    if (!marlin_scale_rows(q->spec)) {
        marlin_emit_column_scales_load(q, tile_n, &q->column);
        marlin_emit_dequantiser(q, &q->column, &q->column_dequantiser);
    }
}

/* ---- operands ---- */

/* What a warp holds of a stage while it goes through its mma steps, one ahead of the arithmetic. */
struct stage {
    ptx_u32 slot;
    ptx_u32 words[2][MAX_TILES][4]; /* of the present 64 rows and the next */
    struct scales scales[STEP_MMAS]; /* of the groups of 64 rows */
    struct dequantiser dequantiser;
    ptx_u32 a[2][MAX_TILES][4]; /* operands of the present mma step and the next */
    ptx_u32 x_lane, x_step;     /* the lane's addresses of activations: of 64 rows, of an mma step */
    ptx_u32 x[2][4];            /* activations, two fragments a load, in turn */
};

static uint32_t mma_steps(const struct gemm *q)
{
    return q->v->steps * STEP_MMAS;
}

/* Loads of activations: one for two row groups of an mma step, or for two mma steps. */
static uint32_t loads_of_mma_step(const struct gemm *q)
{
    return tile_operand_pairs_steps(&q->a) ? 1 : row_groups(q) / 2;
}

static void load_activations(struct gemm *q, struct stage *s, uint32_t i, uint32_t p)
{
    ptx_kernel *k = q->k;
    bool pairs = tile_operand_pairs_steps(&q->a);
    if (i == mma_steps(q) || (pairs && i % 2))
        return;
    if (i % STEP_MMAS == 0 && p == 0) {
        uint32_t step = i / STEP_MMAS;
        ptx_u32 first = ptx_mul_lo_u32(k, q->along_k, U32(q->v->steps));
        ptx_u32 block = step ? ptx_add_u32(k, first, U32(step)) : first;
        s->x_lane = tile_operand_lane(k, &q->a, s->slot, block);
    }
    if (p == 0)
        s->x_step = tile_operand_step(k, &q->a, s->x_lane, i % STEP_MMAS);
    tile_operand_load(k, s->x_step, p * 2, s->x[pairs ? i / 2 % 2 : (i * loads_of_mma_step(q) + p) % 2]);
}

/* mma steps of a group of scales. */
static uint32_t group_mmas(const struct gemm *q)
{
    uint32_t groups = marlin_step_groups(q->spec);
    return groups ? STEP_MMAS / groups : STEP_MMAS;
}

static void enter_group(struct gemm *q, struct stage *s, uint32_t i)
{
    uint32_t group = i / group_mmas(q);
    struct scales *scales = &s->scales[group % STEP_MMAS];
    marlin_emit_scales_load(q, s->slot, group, scales);
    marlin_emit_dequantiser(q, scales, &s->dequantiser);
}

static void dequantise(struct gemm *q, struct stage *s, uint32_t i, uint32_t t)
{
    bool grouped = marlin_scale_rows(q->spec) != 0;
    if (grouped && t == 0 && i % group_mmas(q) == 0)
        enter_group(q, s, i);
    marlin_emit_dequantise(q, grouped ? &s->dequantiser : &q->column_dequantiser, t,
                    s->words[i / STEP_MMAS % 2][t][i % STEP_MMAS], s->a[i % 2][t]);
}

/* ---- products ---- */

static void mma(struct gemm *q, ptx_f32 acc[4], const ptx_u32 a[4], const ptx_u32 b[2])
{
    if (is_bf16(q))
        ptx_mma_m16n8k16_f32_bf16_to(q->k, acc, a, b, acc);
    else
        ptx_mma_m16n8k16_f32_f16_to(q->k, acc, a, b, acc);
}

typedef ptx_f32 sums[MAX_TILES][MAX_ROW_GROUPS][4];

/* Of mma step i: all tiles with the row groups of load p. */
static void multiply_load(struct gemm *q, const struct stage *s, uint32_t i, uint32_t p, sums to)
{
    for (uint32_t t = 0; t < tiles(q); t++) {
        const ptx_u32 *a = s->a[i % 2][t];
        if (tile_operand_pairs_steps(&q->a))
            mma(q, to[t][0], a, s->x[i / 2 % 2] + i % 2 * 2);
        else {
            const ptx_u32 *x = s->x[(i * loads_of_mma_step(q) + p) % 2];
            mma(q, to[t][2 * p], a, x);
            mma(q, to[t][2 * p + 1], a, x + 2);
        }
    }
}

/* While mma step i is multiplied: the next activations, and its share of the next step's operand. */
static void prepare_next(struct gemm *q, struct stage *s, uint32_t i, uint32_t p)
{
    uint32_t each = loads_of_mma_step(q), count = tiles(q);
    if (p + 1 < each)
        load_activations(q, s, i, p + 1);
    else
        load_activations(q, s, i + 1, 0);
    if (i + 1 == mma_steps(q))
        return;
    if (p == 0 && i % STEP_MMAS == STEP_MMAS - 2 && i + 2 < mma_steps(q))
        marlin_emit_weights_load(q, s->slot, i / STEP_MMAS + 1, s->words[(i / STEP_MMAS + 1) % 2]);
    for (uint32_t t = p * count / each; t < (p + 1) * count / each; t++)
        dequantise(q, s, i + 1, t);
}

static void clear_group(struct gemm *q, sums group)
{
    for (uint32_t t = 0; t < tiles(q); t++)
        for (uint32_t j = 0; j < row_groups(q); j++)
            for (int r = 0; r < 4; r++)
                group[t][j][r] = ptx_mov_f32(q->k, F32(0));
}

static void scale_group(struct gemm *q, const struct scales *s, sums group)
{
    for (uint32_t t = 0; t < tiles(q); t++) {
        ptx_f32 scale[2];
        marlin_emit_scales_f32(q, s, t, scale);
        for (uint32_t j = 0; j < row_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_fma_f32_to(q->k, q->acc[t][j][r], group[t][j][r], scale[r / 2],
                               q->acc[t][j][r]);
    }
}

void marlin_emit_multiply(struct gemm *q, ptx_u32 slot)
{
    struct stage s = {.slot = slot};
    bool by_group = marlin_scale_rows(q->spec) && marlin_scales_sums(q->spec, q->v);
    sums group;
    marlin_emit_weights_load(q, slot, 0, s.words[0]);
    load_activations(q, &s, 0, 0);
    for (uint32_t t = 0; t < tiles(q); t++)
        dequantise(q, &s, 0, t);
    for (uint32_t i = 0; i < mma_steps(q); i++) {
        if (by_group && i % group_mmas(q) == 0)
            clear_group(q, group);
        for (uint32_t p = 0; p < loads_of_mma_step(q); p++) {
            prepare_next(q, &s, i, p);
            multiply_load(q, &s, i, p, by_group ? group : q->acc);
        }
        if (by_group && (i + 1) % group_mmas(q) == 0)
            scale_group(q, &s.scales[i / group_mmas(q) % STEP_MMAS], group);
    }
}

void marlin_emit_scale_columns(struct gemm *q)
{
    for (uint32_t t = 0; t < tiles(q); t++) {
        ptx_f32 scale[2];
        marlin_emit_scales_f32(q, &q->column, t, scale);
        for (uint32_t j = 0; j < row_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_mul_f32_to(q->k, q->acc[t][j][r], q->acc[t][j][r], scale[r / 2]);
    }
}
