/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage's products. An mma step takes 32 bytes of K of each row; both operands come by ldmatrix,
 * a load of W for 16 rows, one of X for two groups of 8. Loads are spread over the products of
 * the mma step before, over the end of a stage too: the wait for the next stage comes an mma step
 * before this one's end.
 *
 * f32 is split into two tf32 each, x = h + l, and h·l', l·h' and h·h' are summed; what is left
 * out is below 2⁻²¹ of |x·w|, see reference.c.
 */
#include "emit.h"

/* ---- operands ---- */

void dense_operands_begin(struct dense_product *q)
{
    struct dense_operands *o = &q->operands;
    for (int i = 0; i < 2; i++) {
        for (uint32_t t = 0; t < dense_tiles(q); t++)
            tile_new_registers(q->k, o->w[i][t], 4);
        for (uint32_t p = 0; p < dense_row_groups(q) / 2; p++)
            tile_new_registers(q->k, o->x[i][p], 4);
    }
    tile_new_registers(q->k, &o->w_lane, 1);
    tile_new_registers(q->k, &o->x_lane, 1);
    tile_new_registers(q->k, &o->w_step, 1);
    tile_new_registers(q->k, &o->x_step, 1);
    for (uint32_t t = 0; t < dense_tiles(q); t++)
        for (uint32_t j = 0; j < dense_row_groups(q); j++)
            for (int r = 0; r < 4; r++)
                q->acc[t][j][r] = ptx_mov_f32(q->k, F32(0));
}

static void find_step(struct dense_product *q, const struct tile_operand *operand, ptx_u32 lane,
                      ptx_u32 step, ptx_u32 slot, uint32_t i)
{
    ptx_kernel *k = q->k;
    if (i == 0)
        ptx_mov_u32_to(k, lane, tile_operand_lane(k, operand, slot, q->along_k));
    ptx_mov_u32_to(k, step, tile_operand_step(k, operand, lane, i));
}

static uint32_t loads(const struct dense_product *q)
{
    return dense_tiles(q) + dense_row_groups(q) / 2;
}

/* Load l of mma step i of the stage at `slot`: of W, then of X. */
static void load(struct dense_product *q, ptx_u32 slot, uint32_t i, uint32_t l)
{
    struct dense_operands *o = &q->operands;
    if (l == 0) {
        ptx_u32 stage_w = ptx_add_u32(
            q->k, slot, U32(tile_operand_stage_bytes(dense_tile_n(q->v), q->v->wk)));
        find_step(q, &q->x, o->x_lane, o->x_step, slot, i);
        find_step(q, &q->w, o->w_lane, o->w_step, stage_w, i);
    }
    uint32_t tiles = dense_tiles(q);
    if (l < tiles)
        tile_operand_load_to(q->k, o->w_step, 2 * l, o->w[i % 2][l]);
    else
        tile_operand_load_to(q->k, o->x_step, 2 * (l - tiles), o->x[i % 2][l - tiles]);
}

void dense_first_operands(struct dense_product *q, ptx_u32 slot)
{
    for (uint32_t l = 0; l < loads(q); l++)
        load(q, slot, 0, l);
}

void dense_clear(struct dense_product *q)
{
    for (uint32_t t = 0; t < dense_tiles(q); t++)
        for (uint32_t j = 0; j < dense_row_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_mov_f32_to(q->k, q->acc[t][j][r], F32(0));
}

/* ---- products ---- */

static void mma(struct dense_product *q, ptx_f32 acc[4], const ptx_u32 w[4], const ptx_u32 x[2])
{
    if (q->spec->type == PTXGEN_F32)
        ptx_mma_m16n8k8_f32_tf32_to(q->k, acc, w, x, acc);
    else if (q->spec->type == PTXGEN_BF16)
        ptx_mma_m16n8k16_f32_bf16_to(q->k, acc, w, x, acc);
    else
        ptx_mma_m16n8k16_f32_f16_to(q->k, acc, w, x, acc);
}

/* An operand's four registers: of f32 the nearest tf32, and the rest, of which mma takes a tf32. */
struct halves {
    ptx_u32 high[4], low[4];
};

static void split(struct dense_product *q, const ptx_u32 words[4], struct halves *to)
{
    ptx_kernel *k = q->k;
    for (int r = 0; r < 4; r++) {
        to->high[r] = words[r];
        if (q->spec->type != PTXGEN_F32)
            continue;
        ptx_u32 rounded = ptx_add_u32(k, words[r], U32(0x1000));
        to->high[r] = ptx_and_b32(k, rounded, U32(~0x1FFFu));
        ptx_f32 rest = ptx_sub_f32(k, ptx_u32_as_f32(words[r]), ptx_u32_as_f32(to->high[r]));
        to->low[r] = ptx_f32_as_u32(rest);
    }
}

static void multiply(struct dense_product *q, ptx_f32 acc[4], const struct halves *w,
                     const struct halves *x, uint32_t group)
{
    if (q->spec->type == PTXGEN_F32) {
        mma(q, acc, w->low, x->high + 2 * group);
        mma(q, acc, w->high, x->low + 2 * group);
    }
    mma(q, acc, w->high, x->high + 2 * group);
}

/*
 * Product `done` of an mma step. An operand A is multiplied with all of X before the next one is, to
 * and fro, so that one operand of each product is that of the product before: it is read from the
 * register file once, which saves power. f32 keeps all of A split instead, and of X 16 rows.
 */
static void find_product(const struct dense_product *q, uint32_t done, uint32_t *t, uint32_t *j)
{
    uint32_t groups = dense_row_groups(q), tiles = dense_tiles(q);
    if (q->spec->type == PTXGEN_F32) {
        *t = done % tiles;
        *j = done / tiles;
    } else {
        *t = done / groups;
        *j = *t % 2 ? groups - 1 - done % groups : done % groups;
    }
}

/* Of mma step i, with the loads of the next, whose stage is at `next`, in between. */
static void multiply_step(struct dense_product *q, ptx_u32 next, uint32_t i)
{
    struct dense_operands *o = &q->operands;
    struct halves w[DENSE_TILES], x[DENSE_ROW_GROUPS / 2];
    uint32_t products = dense_tiles(q) * dense_row_groups(q), loaded = 0, split_w = 0, split_x = 0;
    for (uint32_t done = 0; done < products; done++) {
        uint32_t t, j;
        find_product(q, done, &t, &j);
        if (t == split_w)
            split(q, o->w[i % 2][split_w++], &w[t]);
        if (j / 2 == split_x)
            split(q, o->x[i % 2][split_x++], &x[j / 2]);
        while (loaded < loads(q) && loaded * products <= done * loads(q))
            load(q, next, (i + 1) % DENSE_STEPS, loaded++);
        multiply(q, q->acc[t][j], &w[t], &x[j / 2], j % 2);
    }
}

void dense_multiply(struct dense_product *q)
{
    ptx_u32 slot = ptx_mov_u32(q->k, q->pipeline.read);
    tile_pipeline_send(q->k, &q->pipeline);
    for (uint32_t i = 0; i < DENSE_STEPS; i++) {
        bool last = i + 1 == DENSE_STEPS;
        if (last)
            tile_pipeline_next(q->k, &q->pipeline);
        multiply_step(q, last ? q->pipeline.read : slot, i);
    }
}
