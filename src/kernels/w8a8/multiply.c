/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The products of a stage by mma.sync, yᵀ = w·qᵀ: 16 features are the rows of mma's operand A, and
 * 8 tokens the columns of its operand B. A warp multiplies its own block of 128 bytes of K, in four
 * steps of 32 bytes, each of which has its own code.
 *
 * Operands are loaded one step ahead of the products, across the end of a stage as well: the wait
 * for the next stage comes before the last step of the current one.
 */
#include "emit.h"

/* Loads of codes in a step; with 8 tokens a load serves two steps. */
static uint32_t loads_of_step(const struct product *q)
{
    return q->v->fused ? 1 : token_tiles(q) / 2;
}

void w8a8_begin_operands(struct product *q)
{
    struct operands *o = &q->operands;
    for (int i = 0; i < 2; i++) {
        for (uint32_t t = 0; t < feature_tiles(q); t++)
            gemm_new_registers(q->g.k, o->w[i][t], 4);
        gemm_new_registers(q->g.k, o->codes[i], 4);
    }
    gemm_new_registers(q->g.k, &o->w_lane, 1);
    gemm_new_registers(q->g.k, &o->w_step, 1);
    gemm_new_registers(q->g.k, &o->codes_lane, 1);
    gemm_new_registers(q->g.k, &o->codes_step, 1);
}

/* ---- loads ---- */

static void find_lane(struct product *q, const struct gemm_operand *o, ptx_u32 slot, ptx_u32 along,
                      uint32_t rows, ptx_u32 to)
{
    ptx_u32 lane = gemm_operand_lane(q->g.k, o, slot, q->along_k);
    ptx_mad_lo_u32_to(q->g.k, to, along, U32(rows * GEMM_BLOCK_BYTES), lane);
}

static void find_w_lane(struct product *q, ptx_u32 slot)
{
    find_lane(q, &q->w.operand, slot, q->along_n, feature_tiles(q) * W8A8_TILE_ROWS,
              q->operands.w_lane);
}

static void find_codes_lane(struct product *q, ptx_u32 slot)
{
    ptx_u32 behind = ptx_add_u32(q->g.k, slot, U32(q->v->tile_n * w8a8_depth(q->v)));
    find_lane(q, &q->codes, behind, q->along_m, token_tiles(q) * W8A8_TILE_TOKENS,
              q->operands.codes_lane);
}

/* Loads tile t of features of step `step` of the stage at `slot`. */
static void load_features(struct product *q, ptx_u32 slot, uint32_t step, uint32_t t)
{
    ptx_kernel *k = q->g.k;
    struct operands *o = &q->operands;
    if (t == 0 && step == 0)
        find_w_lane(q, slot);
    if (t == 0)
        ptx_mov_u32_to(k, o->w_step, gemm_operand_step(k, &q->w.operand, o->w_lane, step));
    gemm_operand_load_to(k, o->w_step, 2 * t, o->w[step % 2][t]);
}

/* Loads resident codes, a stage further each time and from the first again after the last. */
static void load_resident(struct product *q, uint32_t step)
{
    ptx_kernel *k = q->g.k;
    struct operands *o = &q->operands;
    if (step % 2)
        return;
    if (step == 0) {
        ptx_add_u32_to(k, o->codes_lane, o->codes_lane, U32(w8a8_depth(q->v)));
        ptx_pred past = ptx_setp_eq_u32(k, o->codes_lane, q->resident_end);
        ptx_selp_u32_to(k, o->codes_lane, q->resident_lane, o->codes_lane, past);
    }
    ptx_ldmatrix_x4_b16_to(k, o->codes[step / 2], o->codes_lane, (int)step * 32);
}

/* Issues load p of codes of step `step` of the stage at `slot`. */
static void load_codes(struct product *q, ptx_u32 slot, uint32_t step, uint32_t p)
{
    ptx_kernel *k = q->g.k;
    struct operands *o = &q->operands;
    if (q->v->fused) {
        load_resident(q, step);
        return;
    }
    if (p == 0 && step == 0)
        find_codes_lane(q, slot);
    if (p == 0)
        ptx_mov_u32_to(k, o->codes_step, gemm_operand_step(k, &q->codes, o->codes_lane, step));
    gemm_operand_load_to(k, o->codes_step, 2 * p, o->codes[(step * loads_of_step(q) + p) % 2]);
}

void w8a8_clear_operands(struct product *q)
{
    struct operands *o = &q->operands;
    for (uint32_t t = 0; t < feature_tiles(q); t++)
        for (int r = 0; r < 4; r++)
            ptx_mov_u32_to(q->g.k, o->w[0][t][r], U32(0));
    for (int r = 0; r < 4; r++)
        ptx_mov_u32_to(q->g.k, o->codes[0][r], U32(0));
    ptx_mov_u32_to(q->g.k, o->w_lane, U32(0));
    ptx_mov_u32_to(q->g.k, o->codes_lane, U32(0));
    ptx_mov_u32_to(q->g.k, o->codes_step, U32(0));
}

void w8a8_first_operands(struct product *q)
{
    if (q->v->fused) { /* one stage before the first */
        ptx_u32 first =
            ptx_mad_lo_u32(q->g.k, q->rotation, U32(w8a8_depth(q->v)), q->resident_lane);
        ptx_sub_u32_to(q->g.k, q->operands.codes_lane, first, U32(w8a8_depth(q->v)));
    }
    load_codes(q, q->g.pipeline.read, 0, 0);
    for (uint32_t t = 0; t < feature_tiles(q); t++)
        load_features(q, q->g.pipeline.read, 0, t);
}

/* ---- products ---- */

static void multiply_tokens(struct product *q, uint32_t step, const ptx_u32 *codes, uint32_t tile)
{
    for (uint32_t t = 0; t < feature_tiles(q); t++)
        w8a8_mma(q, w8a8_has_groups(q->spec) ? q->group_sums[t][tile] : q->acc[t][tile],
                 q->operands.w[step % 2][t], codes);
}

static void multiply_load(struct product *q, uint32_t step, uint32_t p)
{
    struct operands *o = &q->operands;
    if (q->v->fused) {
        multiply_tokens(q, step, o->codes[step / 2] + step % 2 * 2, 0);
        return;
    }
    const ptx_u32 *codes = o->codes[(step * loads_of_step(q) + p) % 2];
    multiply_tokens(q, step, codes, 2 * p);
    multiply_tokens(q, step, codes + 2, 2 * p + 1);
}

/* Before load p is multiplied: issues the next load, and a share of the next step's features. */
static void prepare_next(struct product *q, ptx_u32 slot, ptx_u32 next, uint32_t step, uint32_t p)
{
    uint32_t each = loads_of_step(q), count = feature_tiles(q), after = (step + 1) % W8A8_STEPS;
    ptx_u32 place = after ? slot : next;
    if (p + 1 < each)
        load_codes(q, slot, step, p + 1);
    else
        load_codes(q, place, after, 0);
    for (uint32_t t = p * count / each; t < (p + 1) * count / each; t++)
        load_features(q, place, after, t);
}

static void multiply_steps(struct product *q, ptx_u32 slot)
{
    for (uint32_t step = 0; step < W8A8_STEPS; step++) {
        if (step + 1 == W8A8_STEPS)
            gemm_pipeline_next(q->g.k, &q->g.pipeline);
        for (uint32_t p = 0; p < loads_of_step(q); p++) {
            prepare_next(q, slot, q->g.pipeline.read, step, p);
            multiply_load(q, step, p);
        }
    }
}

void w8a8_multiply_stage(struct product *q, ptx_u32 slot, ptx_u32 stage)
{
    if (w8a8_has_groups(q->spec))
        w8a8_clear_group_sums(q);
    multiply_steps(q, slot);
    if (w8a8_has_groups(q->spec))
        w8a8_add_groups(q, stage);
}
