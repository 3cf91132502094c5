/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The products of a stage by mma.sp. An mma step takes 64 bytes of K of each token: m16n8k32 in
 * 16-bit types, m16n8k64 of s8. Operands of x are loaded one load ahead of the products, those of w
 * after their last product, across the end of a stage as well: the wait for the next stage comes
 * one mma step before the end of the current one.
 *
 * The metadata words of all 32 lanes are used: in 16-bit types two mma steps share a word, and the
 * selector says whose metadata an mma step takes.
 */
#include "emit.h"

/*
 * mma steps in the text: all of a stage, or with many tokens in 16-bit types those of one word, in
 * a loop, because ptxas takes twice as long for all.
 */
static uint32_t text_steps(const struct sparse24_product *q)
{
    bool many = sparse24_row_groups(q) >= 8 && !sparse24_is_s8(q->spec);
    return many ? sparse24_word_mmas(q->spec) : sparse24_mmas(q->spec);
}

/* ---- operands ---- */

/*
 * Shared addresses of the operands of the text's first mma step: of a stage, or of one of its
 * words.
 */
struct bases {
    ptx_u32 x, weights, metadata;
};

static struct bases find_bases(struct sparse24_product *q, ptx_u32 slot, ptx_u32 word)
{
    ptx_kernel *k = q->g.k;
    uint32_t pieces = sparse24_word_mmas(q->spec) * SPARSE24_TILES,
             x_bytes = q->v->tile_m * GEMM_BLOCK_BYTES;
    struct bases b = {.x = ptx_mad_lo_u32(k, word, U32(x_bytes), slot)};
    b.weights = ptx_mad_lo_u32(k, word, U32(pieces * SPARSE24_PIECE), slot);
    b.metadata = ptx_mad_lo_u32(k, word, U32(SPARSE24_TILES * 4), slot);
    return b;
}

/* The lane's offset in a stage for the first block of the warp's K and the first of its tokens. */
static ptx_u32 find_x_lane(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    uint32_t blocks = sparse24_mmas(q->spec) * SPARSE24_MMA_BYTES / GEMM_BLOCK_BYTES;
    ptx_u32 lane = gemm_operand_lane(k, &q->x, U32(0), ptx_mul_lo_u32(k, q->along_k, U32(blocks)));
    if (q->v->wm == 1)
        return lane;
    return ptx_mad_lo_u32(k, q->along_m, U32(q->v->warp_m * GEMM_BLOCK_BYTES), lane);
}

void sparse24_operands_begin(struct sparse24_product *q)
{
    q->x_lane = find_x_lane(q);
    struct sparse24_operands *o = &q->operands;
    for (int i = 0; i < 2; i++)
        gemm_new_registers(q->g.k, o->x[i], 4);
    for (uint32_t t = 0; t < sparse24_warp_tiles(q->v); t++)
        gemm_new_registers(q->g.k, o->a[t], 4);
    gemm_new_registers(q->g.k, o->metadata, sparse24_warp_tiles(q->v));
}

/* Issues load p of mma step i: the tokens of group p. */
static void load_x(struct sparse24_product *q, const struct bases *b, uint32_t i, uint32_t p)
{
    enum {
        BLOCK_MMAS = GEMM_BLOCK_BYTES / SPARSE24_MMA_BYTES,
        MMA_STEPS = SPARSE24_MMA_BYTES / 32
    };
    ptx_u32 lane = ptx_add_u32(q->g.k, b->x, q->x_lane);
    ptx_u32 step = gemm_operand_step(q->g.k, &q->x, lane, i % BLOCK_MMAS * MMA_STEPS);
    uint32_t row8 = i / BLOCK_MMAS * q->v->tile_m / 8 + p;
    gemm_operand_load_to(q->g.k, step, row8, q->operands.x[(i * sparse24_row_groups(q) + p) % 2]);
}

/* Loads the word of metadata that begins with mma step i, if there is one. */
static void load_metadata(struct sparse24_product *q, const struct bases *b, uint32_t i)
{
    if (i % sparse24_word_mmas(q->spec) == 0)
        sparse24_metadata_load(q, b->metadata, i / sparse24_word_mmas(q->spec),
                               q->operands.metadata);
}

void sparse24_first_operands(struct sparse24_product *q, ptx_u32 slot)
{
    const struct bases b = {slot, slot, slot};
    load_x(q, &b, 0, 0);
    load_metadata(q, &b, 0);
    for (uint32_t t = 0; t < sparse24_warp_tiles(q->v); t++)
        sparse24_weights_load(q, b.weights, 0, t, q->operands.a[t]);
}

void sparse24_clear(struct gemm *g, const struct gemm_part *part)
{
    struct sparse24_product *q = sparse24_of(g);
    (void)part;
    for (uint32_t t = 0; t < sparse24_warp_tiles(q->v); t++)
        for (uint32_t j = 0; j < sparse24_row_groups(q); j++)
            gemm_new_registers(q->g.k, q->acc[t][j], 4);
}

/* ---- products ---- */

static bool has_ordered_metadata(const ptx_target *target)
{
    return target->max_ptx == 0 || target->max_ptx >= 85;
}

/* The selector is part of the instruction, so each selector has an emitter call. */
static void mma_16(struct sparse24_product *q, const ptx_u32 acc[4], const ptx_u32 a[4],
                   const ptx_u32 b[4], ptx_u32 metadata, int selector)
{
    ptx_kernel *k = q->g.k;
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
        ptx_mma_spo_m16n8k64_s32_s8_s8_to(q->g.k, c, a, b, c, metadata, 0);
    else
        ptx_mma_sp_m16n8k64_s32_s8_s8_to(q->g.k, c, a, b, c, metadata, 0);
}

/* Multiplies tile t by token group p in mma step i. */
static void multiply_tile(struct sparse24_product *q, uint32_t i, uint32_t p, uint32_t t)
{
    struct sparse24_operands *o = &q->operands;
    const ptx_u32 *b = o->x[(i * sparse24_row_groups(q) + p) % 2];
    ptx_u32 metadata = o->metadata[t];
    if (sparse24_is_s8(q->spec))
        mma_s8(q, q->acc[t][p], o->a[t], b, metadata);
    else
        mma_16(q, q->acc[t][p], o->a[t], b, metadata, (int)(i % sparse24_word_mmas(q->spec)));
}

/*
 * Multiplies token group p in mma step i, and issues the loads of what follows; at the end of the
 * text these are the loads of its next iteration.
 */
static void multiply_group(struct sparse24_product *q, const struct bases *present,
                           const struct bases *next, uint32_t i, uint32_t p)
{
    bool last = p + 1 == sparse24_row_groups(q);
    uint32_t following = (i + 1) % text_steps(q);
    const struct bases *from = following ? present : next;
    if (last)
        load_x(q, from, following, 0);
    else
        load_x(q, present, i, p + 1);
    for (uint32_t t = 0; t < sparse24_warp_tiles(q->v); t++) {
        multiply_tile(q, i, p, t);
        if (last)
            sparse24_weights_load(q, from->weights, following, t, q->operands.a[t]);
    }
    if (last)
        load_metadata(q, from, following);
}

static void multiply_step(struct sparse24_product *q, const struct bases *present,
                          const struct bases *next, uint32_t i)
{
    for (uint32_t p = 0; p < sparse24_row_groups(q); p++)
        multiply_group(q, present, next, i, p);
}

static void multiply_words(struct sparse24_product *q, ptx_u32 slot)
{
    ptx_kernel *k = q->g.k;
    uint32_t last = text_steps(q) - 1;
    ptx_u32 word = ptx_mov_u32(k, U32(0));
    ptx_for(k, word, U32(SPARSE24_WORDS), U32(1)) {
        ptx_nounroll(k);
        struct bases present = find_bases(q, slot, word);
        for (uint32_t i = 0; i < last; i++)
            multiply_step(q, &present, NULL, i);
        ptx_if(k, ptx_setp_eq_u32(k, word, U32(SPARSE24_WORDS - 1)))
            gemm_pipeline_next(k, &q->g.pipeline);
        struct bases next = find_bases(q, q->g.pipeline.read, ptx_xor_b32(k, word, U32(1)));
        multiply_step(q, &present, &next, last);
    }
}

void sparse24_multiply(struct gemm *g, const struct gemm_part *part)
{
    struct sparse24_product *q = sparse24_of(g);
    (void)part;
    ptx_u32 slot = ptx_mov_u32(q->g.k, q->g.pipeline.read);
    uint32_t steps = sparse24_mmas(q->spec);
    gemm_pipeline_issue(q->g.k, &q->g.pipeline);
    if (text_steps(q) < steps) {
        multiply_words(q, slot);
        return;
    }
    const struct bases present = {slot, slot, slot};
    for (uint32_t i = 0; i + 1 < steps; i++)
        multiply_step(q, &present, NULL, i);
    gemm_pipeline_next(q->g.k, &q->g.pipeline);
    const struct bases next = {q->g.pipeline.read, q->g.pipeline.read, q->g.pipeline.read};
    multiply_step(q, &present, &next, steps - 1);
}
