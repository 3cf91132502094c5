/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage's products. An mma step takes 64 bytes of K of each row of X: m16n8k32 in 16-bit types,
 * m16n8k64 of s8. Operands are loaded one load of X, and one mma step of W, ahead of the arithmetic,
 * over the end of a stage too: the wait for the next stage comes an mma step before this one's end.
 *
 * All 32 lanes' metadata words are used: in 16-bit types two mma steps take one word, by selector.
 */
#include "emit.h"

static uint32_t mma_steps(const struct sparse24_product *q)
{
    return sparse24_mmas(q->spec);
}

/* mma steps that take one word of metadata. */
static uint32_t word_mmas(const struct sparse24_product *q)
{
    return mma_steps(q) / SPARSE24_WORDS;
}

/* ---- operands ---- */

static void new_registers(struct sparse24_product *q, ptx_u32 *registers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        registers[i] = ptx_mov_u32(q->k, U32(0));
}

void sparse24_operands_begin(struct sparse24_product *q)
{
    struct sparse24_operands *o = &q->operands;
    for (int i = 0; i < 2; i++) {
        for (uint32_t t = 0; t < SPARSE24_TILES; t++)
            new_registers(q, o->a[i][t], 4);
        new_registers(q, o->x[i], 4);
    }
    for (uint32_t j = 0; j < SPARSE24_WORDS; j++)
        new_registers(q, o->metadata[j], SPARSE24_TILES);
    new_registers(q, &o->x_lane, 1);
    new_registers(q, &o->x_step, 1);
    for (uint32_t t = 0; t < SPARSE24_TILES; t++)
        for (uint32_t j = 0; j < sparse24_row_groups(q); j++)
            new_registers(q, q->acc[t][j], 4);
}

/* Load p of mma step i of the stage at `slot`: row group p. */
static void load_x(struct sparse24_product *q, ptx_u32 slot, uint32_t i, uint32_t p)
{
    enum { BLOCK_MMAS = TILE_BLOCK_BYTES / SPARSE24_MMA_BYTES, MMA_STEPS = SPARSE24_MMA_BYTES / 32 };
    ptx_kernel *k = q->k;
    struct sparse24_operands *o = &q->operands;
    if (i % BLOCK_MMAS == 0 && p == 0) {
        uint32_t blocks = mma_steps(q) / BLOCK_MMAS;
        ptx_u32 block = ptx_mad_lo_u32(k, q->along_k, U32(blocks), U32(i / BLOCK_MMAS));
        ptx_mov_u32_to(k, o->x_lane, tile_operand_lane(k, &q->x, slot, block));
    }
    if (p == 0) {
        uint32_t step = i % BLOCK_MMAS * MMA_STEPS;
        ptx_mov_u32_to(k, o->x_step, tile_operand_step(k, &q->x, o->x_lane, step));
    }
    tile_operand_load_to(k, o->x_step, p, o->x[(i * sparse24_row_groups(q) + p) % 2]);
}

/* W's operands of mma step i. */
static void load_weights(struct sparse24_product *q, ptx_u32 slot, uint32_t i)
{
    struct sparse24_operands *o = &q->operands;
    for (uint32_t t = 0; t < SPARSE24_TILES; t++)
        sparse24_weights_load(q, slot, i, t, o->a[i % 2][t]);
    if (i % word_mmas(q) == 0)
        sparse24_metadata_load(q, slot, i / word_mmas(q), o->metadata[i / word_mmas(q)]);
}

void sparse24_first_operands(struct sparse24_product *q, ptx_u32 slot)
{
    load_x(q, slot, 0, 0);
    load_weights(q, slot, 0);
}

void sparse24_clear(struct sparse24_product *q)
{
    for (uint32_t t = 0; t < SPARSE24_TILES; t++)
        for (uint32_t j = 0; j < sparse24_row_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_mov_u32_to(q->k, q->acc[t][j][r], U32(0));
}

/* ---- products ---- */

static bool has_ordered_metadata(const ptx_target *target)
{
    return target->max_ptx == 0 || target->max_ptx >= 85;
}

/* The selector is part of the instruction. */
static void mma_16(struct sparse24_product *q, const ptx_u32 acc[4], const ptx_u32 a[4],
                   const ptx_u32 b[4], ptx_u32 metadata, int selector)
{
    ptx_kernel *k = q->k;
    bool ordered = has_ordered_metadata(&q->plan->target.ptx);
    ptx_f32 c[4];
    for (int r = 0; r < 4; r++)
        c[r] = ptx_u32_as_f32(acc[r]);
    if (q->spec->type == PTXGEN_SPARSE24_BF16 && ordered)
        ptx_mma_spo_m16n8k32_f32_bf16_to(k, c, a, b, c, metadata, selector);
    else if (q->spec->type == PTXGEN_SPARSE24_BF16)
        ptx_mma_sp_m16n8k32_f32_bf16_to(k, c, a, b, c, metadata, selector);
    else if (ordered)
        ptx_mma_spo_m16n8k32_f32_f16_to(k, c, a, b, c, metadata, selector);
    else
        ptx_mma_sp_m16n8k32_f32_f16_to(k, c, a, b, c, metadata, selector);
}

static void mma_s8(struct sparse24_product *q, const ptx_u32 acc[4], const ptx_u32 a[4],
                   const ptx_u32 b[4], ptx_u32 metadata)
{
    ptx_s32 c[4];
    for (int r = 0; r < 4; r++)
        c[r] = ptx_u32_as_s32(acc[r]);
    if (has_ordered_metadata(&q->plan->target.ptx))
        ptx_mma_spo_m16n8k64_s32_s8_s8_to(q->k, c, a, b, c, metadata, 0);
    else
        ptx_mma_sp_m16n8k64_s32_s8_s8_to(q->k, c, a, b, c, metadata, 0);
}

/* Of mma step i: all tiles with row group p. */
static void multiply_load(struct sparse24_product *q, uint32_t i, uint32_t p)
{
    struct sparse24_operands *o = &q->operands;
    const ptx_u32 *b = o->x[(i * sparse24_row_groups(q) + p) % 2];
    for (uint32_t t = 0; t < SPARSE24_TILES; t++) {
        ptx_u32 metadata = o->metadata[i / word_mmas(q)][t];
        if (sparse24_is_s8(q->spec))
            mma_s8(q, q->acc[t][p], o->a[i % 2][t], b, metadata);
        else
            mma_16(q, q->acc[t][p], o->a[i % 2][t], b, metadata, (int)(i % word_mmas(q)));
    }
}

/* Before load p of mma step i is multiplied. The stage at `next` follows. */
static void prepare_next(struct sparse24_product *q, ptx_u32 slot, ptx_u32 next, uint32_t i,
                         uint32_t p)
{
    uint32_t all = mma_steps(q), one = i + 1;
    ptx_u32 from = one < all ? slot : next;
    if (p + 1 < sparse24_row_groups(q))
        load_x(q, slot, i, p + 1);
    else
        load_x(q, from, one % all, 0);
    if (p == 0)
        load_weights(q, from, one % all);
}

void sparse24_multiply(struct sparse24_product *q)
{
    ptx_u32 slot = ptx_mov_u32(q->k, q->pipeline.read);
    tile_pipeline_send(q->k, &q->pipeline);
    for (uint32_t i = 0; i < mma_steps(q); i++) {
        if (i + 1 == mma_steps(q))
            tile_pipeline_next(q->k, &q->pipeline);
        for (uint32_t p = 0; p < sparse24_row_groups(q); p++) {
            prepare_next(q, slot, q->pipeline.read, i, p);
            multiply_load(q, i, p);
        }
    }
}
