/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The products of a stage by mma.sync. An mma step takes 32 bytes of K of each row. ldmatrix loads
 * both operands: a load brings 16 features, or two groups of 8 tokens. The loads are spread over
 * the products of the mma step before, across the end of a stage as well: the wait for the next
 * stage comes one mma step before the end of the current one. With cp.async the text has two of a
 * stage's four steps (one of f32), because ptxas takes twice as long for all four; with bulk copies
 * it has all four.
 *
 * f32 operands are split into two tf32, x = h + l, and the products h·l', l·h' and h·h' are added.
 * The remaining product is below 2⁻²¹ of |x·w|, see reference.c.
 */
#include "emit.h"

/*
 * Sets of registers for operands: one for the current step and one for the next. f32 needs one set,
 * because its operands are split at the beginning of a step, which frees their registers.
 */
static uint32_t operand_sets(const struct dense_product *q)
{
    return q->spec->type == PTXGEN_F32 ? 1 : 2;
}

/* Mma steps in the text. */
static uint32_t text_steps(const struct dense_product *q)
{
    return gemm_is_bulk(q->v) ? DENSE_STEPS : operand_sets(q);
}

/* ---- operands ---- */

void dense_declare_sums(struct dense_product *q)
{
    for (uint32_t t = 0; t < dense_tiles(q); t++)
        for (uint32_t j = 0; j < dense_row_groups(q); j++)
            for (int r = 0; r < 4; r++)
                q->acc[t][j][r] = ptx_mov_f32(q->g.k, F32(0));
}

void dense_clear(struct gemm *g, const struct gemm_part *part)
{
    struct dense_product *q = dense_of(g);
    (void)part;
    for (uint32_t t = 0; t < dense_tiles(q); t++)
        for (uint32_t j = 0; j < dense_row_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_mov_f32_to(g->k, q->acc[t][j][r], F32(0));
}

void dense_declare_operands(struct dense_product *q)
{
    struct dense_operands *o = &q->operands;
    for (uint32_t i = 0; i < operand_sets(q); i++) {
        for (uint32_t t = 0; t < dense_tiles(q); t++)
            gemm_new_registers(q->g.k, o->w[i][t], 4);
        for (uint32_t p = 0; p < dense_row_groups(q) / 2; p++)
            gemm_new_registers(q->g.k, o->x[i][p], 4);
    }
    gemm_new_registers(q->g.k, &o->w_lane, 1);
    gemm_new_registers(q->g.k, &o->x_lane, 1);
    gemm_new_registers(q->g.k, &o->w_step, 1);
    gemm_new_registers(q->g.k, &o->x_step, 1);
    dense_declare_sums(q);
}

/* Sets the lane's addresses for the stage at `slot`. */
static void turn_to_stage(struct dense_product *q, ptx_u32 slot)
{
    ptx_kernel *k = q->g.k;
    struct dense_operands *o = &q->operands;
    uint32_t x_bytes = gemm_operand_stage_bytes(q->v->tile_m, q->v->wk);
    ptx_u32 stage_w = ptx_add_u32(k, slot, U32(x_bytes));
    ptx_mov_u32_to(k, o->x_lane, gemm_operand_lane(k, &q->x, slot, q->along_k));
    ptx_mov_u32_to(k, o->w_lane, gemm_operand_lane(k, &q->w, stage_w, q->along_k));
}

/*
 * Sets the lane's addresses for the next iteration of the text within a stage; with the swizzle,
 * the addresses of two steps differ by an exclusive or.
 */
static void turn_on(struct dense_product *q, ptx_u32 turn)
{
    ptx_kernel *k = q->g.k;
    struct dense_operands *o = &q->operands;
    uint32_t steps = text_steps(q);
    ptx_u32 bytes = U32(steps * DENSE_STEP_BYTES);
    if (2 * steps < DENSE_STEPS) {
        ptx_u32 flips = ptx_xor_b32(k, turn, ptx_add_u32(k, turn, U32(1)));
        bytes = ptx_mul_lo_u32(k, flips, bytes);
    }
    ptx_xor_b32_to(k, o->x_lane, o->x_lane, bytes);
    ptx_xor_b32_to(k, o->w_lane, o->w_lane, bytes);
}

static uint32_t loads(const struct dense_product *q)
{
    return dense_tiles(q) + dense_row_groups(q) / 2;
}

/* Issues load l of mma step i of the text; the loads of w come before those of x. */
static void load(struct dense_product *q, uint32_t i, uint32_t l)
{
    struct dense_operands *o = &q->operands;
    uint32_t set = i % operand_sets(q);
    if (l == 0) {
        ptx_mov_u32_to(q->g.k, o->x_step, gemm_operand_step(q->g.k, &q->x, o->x_lane, i));
        ptx_mov_u32_to(q->g.k, o->w_step, gemm_operand_step(q->g.k, &q->w, o->w_lane, i));
    }
    uint32_t tiles = dense_tiles(q);
    if (l < tiles)
        gemm_operand_load_to(q->g.k, o->w_step, 2 * l, o->w[set][l]);
    else
        gemm_operand_load_to(q->g.k, o->x_step, 2 * (l - tiles), o->x[set][l - tiles]);
}

void dense_first_operands(struct dense_product *q, ptx_u32 slot)
{
    turn_to_stage(q, slot);
    for (uint32_t l = 0; l < loads(q); l++)
        load(q, 0, l);
}

/* ---- products ---- */

static void mma(struct dense_product *q, ptx_f32 acc[4], const ptx_u32 w[4], const ptx_u32 x[2])
{
    if (q->spec->type == PTXGEN_F32)
        ptx_mma_m16n8k8_f32_tf32_to(q->g.k, acc, w, x, acc);
    else if (q->spec->type == PTXGEN_BF16)
        ptx_mma_m16n8k16_f32_bf16_to(q->g.k, acc, w, x, acc);
    else
        ptx_mma_m16n8k16_f32_f16_to(q->g.k, acc, w, x, acc);
}

/* The four registers of an f32 operand: the nearest tf32, and the rest, which mma cuts to tf32. */
struct halves {
    ptx_u32 high[4], low[4];
};

static void split(struct dense_product *q, const ptx_u32 words[4], struct halves *to)
{
    ptx_kernel *k = q->g.k;
    for (int r = 0; r < 4; r++) {
        to->high[r] = words[r];
        if (q->spec->type != PTXGEN_F32)
            continue;
        ptx_u32 rounded = ptx_add_u32(k, words[r], U32(0x1000));
        to->high[r] = ptx_and_b32(k, rounded, U32(~0x1FFFu));
        ptx_f32 whole = ptx_u32_as_f32(words[r]), high = ptx_u32_as_f32(to->high[r]);
        to->low[r] = ptx_f32_as_u32(ptx_sub_f32(k, whole, high));
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
 * The tile and the token group of product number `done` of an mma step. Each operand A is
 * multiplied by all token groups, alternately forwards and backwards, so that two consecutive
 * products share an operand; that operand is read from the register file once, which saves power.
 * For f32 all operands A are kept split instead, and those of 16 tokens.
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

/* The progress of mma step i of the text. */
struct step {
    uint32_t i, loaded, split_w, split_x;
    struct halves w[DENSE_TILES], x[DENSE_ROW_GROUPS / 2];
};

static uint32_t products(const struct dense_product *q)
{
    return dense_tiles(q) * dense_row_groups(q);
}

/* Emits products `from` to `to` − 1 of the step, with loads of the next step between them. */
static void multiply_some(struct dense_product *q, struct step *s, uint32_t from, uint32_t to)
{
    struct dense_operands *o = &q->operands;
    uint32_t set = s->i % operand_sets(q);
    for (uint32_t done = from; done < to; done++) {
        uint32_t t, j;
        find_product(q, done, &t, &j);
        if (t == s->split_w)
            split(q, o->w[set][s->split_w++], &s->w[t]);
        if (j / 2 == s->split_x)
            split(q, o->x[set][s->split_x++], &s->x[j / 2]);
        while (s->loaded < loads(q) && s->loaded * products(q) <= done * loads(q))
            load(q, (s->i + 1) % text_steps(q), s->loaded++);
        multiply(q, q->acc[t][j], &s->w[t], &s->x[j / 2], j % 2);
    }
}

static void multiply_step(struct dense_product *q, uint32_t i)
{
    struct step s = {.i = i};
    multiply_some(q, &s, 0, products(q));
}

/*
 * ptxas (13.0) takes much longer for a loop of many products than for two loops of half as many. So
 * half of a step is in a loop of its own with one iteration, which ptxas cannot know: m is never 0,
 * but only the launch ensures that. Steps of few products have no such loop.
 */
enum { LEAST_IN_HALVES = 8 };

static void multiply_step_in_halves(struct dense_product *q, uint32_t i)
{
    ptx_kernel *k = q->g.k;
    struct step s = {.i = i};
    multiply_some(q, &s, 0, products(q) / 2);
    ptx_loop(k, once) {
        ptx_nounroll(k);
        multiply_some(q, &s, products(q) / 2, products(q));
        ptx_loop_break_if(&once, ptx_setp_ne_u32(k, q->g.m, U32(0)), false);
    }
}

static void multiply_but_last(struct dense_product *q, uint32_t i)
{
    (products(q) < LEAST_IN_HALVES ? multiply_step : multiply_step_in_halves)(q, i);
}

static void multiply_by_turns(struct dense_product *q, const struct dense_between *between)
{
    ptx_kernel *k = q->g.k;
    uint32_t count = DENSE_STEPS / text_steps(q);
    ptx_u32 turn = ptx_mov_u32(k, U32(0));
    ptx_for(k, turn, U32(count), U32(1)) {
        ptx_nounroll(k);
        for (uint32_t i = 0; i + 1 < text_steps(q); i++)
            multiply_but_last(q, i);
        ptx_if_else(k, ptx_setp_eq_u32(k, turn, U32(count - 1)))
            turn_to_stage(q, between->next(between->user));
        else
            turn_on(q, turn);
        multiply_step(q, text_steps(q) - 1);
    }
}

static void multiply_at_once(struct dense_product *q, const struct dense_between *between)
{
    for (uint32_t i = 0; i + 1 < DENSE_STEPS; i++) {
        if (i == DENSE_STEPS / 2)
            between->middle(between->user);
        multiply_step_in_halves(q, i);
    }
    turn_to_stage(q, between->next(between->user));
    multiply_step(q, DENSE_STEPS - 1);
}

void dense_multiply(struct dense_product *q, const struct dense_between *between)
{
    (text_steps(q) == DENSE_STEPS ? multiply_at_once : multiply_by_turns)(q, between);
}
