/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumers with wgmma. A warpgroup multiplies slices of 16 of K, in groups of one, two or four
 * slices: while wgmma multiplies a group, the warps dequantise the next group into the other of two
 * sets of registers, which the products of the group before have released.
 *
 *     wgmma    │ group 0 ──────│ group 1 ──────│ group 2 ──────│
 *     warps      dequantise 1 ─│ dequantise 2 ─│ dequantise 3 ─│
 *
 * At the last group of a stage the warps wait for the next stage and read its first words. They
 * release the slot of the earlier stage after the first group of the next stage, when all products
 * that read the slot have completed.
 *
 * With few tokens (up to 32, or up to 64 with four warpgroups), and where a stage has one scale for
 * a feature, the sums of a stage are scaled and accumulated instead of its weights; that saves 4 of
 * 13 instructions for 8 weights. bf16 without zero points scales weights from 33 tokens on
 * (weights.c). Measurements are in docs/notes/marlin.md.
 */
#include "hopper.h"

enum { SLICES = STEP_MMAS, SLICE_BYTES = 32 /* of a row of activations */ };

struct consumer {
    struct hopper *h;
    struct marlin_product *q;
    ptx_u32 codes_at, scales_at, zeros_at; /* the lane's offsets in a stage; one of the last two */
    struct gemm_ring_place read;
    ptx_u32 to_read;            /* stages of the CTA after the current one */
    ptx_u32 held;               /* full barrier of the slot that is to be released next */
    ptx_pred releases;          /* the lanes that release slots: all */
    ptx_pred accumulate, start; /* wgmma's scale-d: true, and false */
    ptx_f32 sums[MAX_TILES][MAX_TOKEN_GROUPS][4]; /* of one stage, where these are scaled */
    ptx_u32 a[2][SLICES][MAX_TILES][4];         /* operands of a group and of the next one */
    ptx_u32 staging;                            /* shared address of all teams' staging */
    ptx_u32 block_at; /* offset of the warpgroup's activations in a stage, if others are along K */
};

/* ---- weights ---- */

/* Groups of scales of a stage that the warpgroup uses. */
static uint32_t own_groups(const struct consumer *c)
{
    uint32_t groups = c->h->stage.groups;
    return groups > 1 ? groups / c->q->v->wk : groups;
}

/* Adds `bytes` to an offset for each warpgroup before this one along K. */
static ptx_u32 past_others(struct consumer *c, ptx_u32 offset, uint32_t bytes)
{
    return c->q->v->wk > 1 ? ptx_mad_lo_u32(c->q->k, c->q->along_k, U32(bytes), offset) : offset;
}

static uint32_t past_groups(const struct consumer *c, uint32_t bytes)
{
    return c->h->stage.groups > 1 ? own_groups(c) * bytes : 0;
}

/* A lane's zero points have the order of its scales, with one byte for two zero points. */
enum { ZEROS_TO_SCALES = MARLIN_SCALES_BYTES / MARLIN_ZEROS_BYTES };

static void find_lane(struct consumer *c)
{
    struct marlin_product *q = c->q;
    ptx_kernel *k = q->k;
    const struct stage_layout *l = &c->h->stage;
    ptx_u32 strip = ptx_mul_lo_u32(k, q->team_index, U32(group_strips(q)));
    ptx_u32 codes = ptx_mad_lo_u32(k, strip, U32(l->codes_bytes), U32(l->codes));
    ptx_u32 tile = ptx_mad_lo_u32(k, q->along_n, U32(MARLIN_TILE_BYTES), codes);
    tile = past_others(c, tile, q->v->steps * MARLIN_STEP_BYTES);
    c->codes_at = ptx_mad_lo_u32(k, q->at.lane, U32(GEMM_CHUNK_BYTES), tile);
    c->block_at = past_others(c, U32(0), gemm_operand_stage_bytes(q->v->tile_m, q->v->steps));
    if (!l->groups)
        return;
    ptx_u32 zeros = ptx_mul_lo_u32(k, strip, U32(l->groups * MARLIN_ZEROS_BYTES));
    zeros = past_others(c, zeros, past_groups(c, MARLIN_ZEROS_BYTES));
    ptx_u32 row = ptx_mad_lo_u32(k, q->at.group, U32(4), zeros);
    ptx_u32 byte = ptx_add_u32(k, row, q->along_n);
    if (q->spec->zeros)
        c->zeros_at = ptx_add_u32(k, byte, U32(l->zeros));
    else
        c->scales_at = ptx_mad_lo_u32(k, byte, U32(ZEROS_TO_SCALES), U32(l->scales));
}

static void load_words(struct consumer *c, uint32_t step)
{
    ptx_kernel *k = c->q->k;
    ptx_u32 at = ptx_add_u32(k, c->read.slot, c->codes_at);
    for (uint32_t s = 0; s < group_strips(c->q); s++)
        ptx_ld_shared_v4_u32_to(k, c->q->operands.words[s], at,
                                (int)(s * c->h->stage.codes_bytes + step * MARLIN_STEP_BYTES));
}

/* Puts the byte with a lane's two zero points of strip s in the place that tile s reads. */
static void keep_zeros(struct consumer *c, uint32_t s, ptx_u32 two)
{
    struct marlin_product *q = c->q;
    ptx_u32 *zeros = &q->operands.scales.zeros;
    if (s)
        ptx_bfi_b32_to(q->k, *zeros, two, *zeros, U32(8 * s), U32(8));
    else
        ptx_mov_u32_to(q->k, *zeros, two);
}

/*
 * With zero points, the offset of the scales is computed from that of the zero points, which saves
 * a register.
 */
static ptx_u32 find_scales(struct consumer *c)
{
    ptx_kernel *k = c->q->k;
    const struct stage_layout *l = &c->h->stage;
    if (!c->q->spec->zeros)
        return ptx_add_u32(k, c->read.slot, c->scales_at);
    ptx_u32 base = ptx_add_u32(k, c->read.slot, U32(l->scales - ZEROS_TO_SCALES * l->zeros));
    return ptx_mad_lo_u32(k, c->zeros_at, U32(ZEROS_TO_SCALES), base);
}

/* Loads the scales and zero points of group `group` of the stage, for the next operands. */
static void enter_group(struct consumer *c, uint32_t group)
{
    struct marlin_product *q = c->q;
    ptx_kernel *k = q->k;
    const struct stage_layout *l = &c->h->stage;
    ptx_u32 at = find_scales(c);
    for (uint32_t s = 0; s < group_strips(q); s++)
        ptx_ld_shared_u32_to(k, q->operands.scales.packed[s], at,
                             (int)(s * l->scales_bytes + group * MARLIN_SCALES_BYTES));
    if (q->spec->zeros) {
        ptx_u32 zeros_at = ptx_add_u32(k, c->read.slot, c->zeros_at);
        for (uint32_t s = 0; s < group_strips(q); s++)
            keep_zeros(c, s,
                       ptx_ld_shared_u8(k, zeros_at,
                                        (int)(s * l->zeros_bytes + group * MARLIN_ZEROS_BYTES)));
    }
    marlin_emit_dequantiser(q, &q->operands.scales);
}

/* Without groups: loads the scales and zero points of the lane's features from global memory. */
static void load_columns(struct consumer *c, ptx_u32 tile_n)
{
    struct marlin_product *q = c->q;
    ptx_kernel *k = q->k;
    ptx_u32 team = ptx_mad_lo_u32(k, tile_n, U32(q->teams), q->team_index);
    ptx_u32 first = ptx_mul_lo_u32(k, team, U32(group_strips(q)));
    for (uint32_t s = 0; s < group_strips(q); s++) {
        ptx_u32 after = ptx_add_u32(k, first, U32(s));
        ptx_u32 strip = ptx_min_u32(k, after, U32(marlin_strips(q->spec) - 1));
        ptx_u64 at =
            ptx_mad_wide_u32(k, strip, U32(MARLIN_SCALES_BYTES), q->address[MARLIN_SCALES]);
        ptx_u64 row = ptx_mad_wide_u32(k, q->at.group, U32(16), at);
        ptx_u64 tile = ptx_mad_wide_u32(k, q->along_n, U32(4), row);
        ptx_ld_global_nc_u32_to(k, q->operands.scales.packed[s], tile, 0);
        if (!q->spec->zeros)
            continue;
        ptx_u64 zeros =
            ptx_mad_wide_u32(k, strip, U32(MARLIN_ZEROS_BYTES), q->address[MARLIN_ZEROS]);
        ptx_u64 zeros_row = ptx_mad_wide_u32(k, q->at.group, U32(4), zeros);
        ptx_u32 word = ptx_ld_global_nc_u32(k, zeros_row, 0);
        ptx_u32 shift = ptx_mul_lo_u32(k, q->along_n, U32(8));
        keep_zeros(c, s, ptx_shr_u32(k, word, shift));
    }
    if (q->spec->zeros)
        marlin_emit_dequantiser(q, &q->operands.scales);
}

/* ---- slices ---- */

static uint32_t slices(const struct consumer *c)
{
    return c->q->v->steps * SLICES;
}

/* Loads what is new in slice i of the stage: the words of 64 of K, and the scales of a group. */
static void load_weights(struct consumer *c, uint32_t i)
{
    if (i % SLICES == 0)
        load_words(c, i / SLICES);
    uint32_t groups = own_groups(c);
    if (groups && i % (slices(c) / groups) == 0)
        enter_group(c, i / (slices(c) / groups));
}

/*
 * Slices of a group. With few tokens, larger groups let the products of a warpgroup and the
 * dequantisation of another overlap better; products of 128 tokens are long enough in any case.
 */
static uint32_t group_slices(const struct consumer *c)
{
    const ptxgen_marlin_variant *v = c->q->v;
    if (group_strips(c->q) > 1 || v->tile_m > 64)
        return 1;
    if (v->tile_m <= 32 || marlin_scales_stages(c->q->spec, v))
        return SLICES / 2;
    return v->steps % 2 ? 1 : SLICES;
}

/* The registers of the operand of tile s in slice i. */
static ptx_u32 *operand(struct consumer *c, uint32_t i, uint32_t s)
{
    uint32_t size = group_slices(c);
    return c->a[i / size % 2][i % size][s];
}

static void dequantise_slice(struct consumer *c, uint32_t i)
{
    for (uint32_t s = 0; s < group_strips(c->q); s++)
        marlin_emit_dequantise(c->q, s, c->q->operands.words[s][i % SLICES], operand(c, i, s));
}

/*
 * Dequantises the group that starts at slice `first`. The weights that slice `first` needs have
 * been loaded; those of later slices are loaded here.
 */
static void dequantise(struct consumer *c, uint32_t first)
{
    for (uint32_t i = 0; i < group_slices(c); i++) {
        if (i)
            load_weights(c, first + i);
        dequantise_slice(c, first + i);
    }
}

static void multiply_slice(struct consumer *c, uint32_t i, ptx_u64 block)
{
    struct marlin_product *q = c->q;
    ptx_kernel *k = q->k;
    int n = (int)q->v->tile_m;
    uint32_t bytes = gemm_operand_stage_bytes(q->v->tile_m, i / SLICES) + i % SLICES * SLICE_BYTES;
    ptx_u64 b = gemm_wgmma_advance(k, block, bytes);
    bool own = marlin_scales_stages(q->spec, q->v);
    ptx_pred accumulate = own && i == 0 ? c->start : c->accumulate;
    for (uint32_t s = 0; s < group_strips(q); s++) {
        ptx_f32 *acc = own ? c->sums[s][0] : q->acc[s][0];
        if (is_bf16(q))
            ptx_wgmma_k16_f32_bf16_ra(k, n, acc, operand(c, i, s), b, accumulate, 1, 1, 0);
        else
            ptx_wgmma_k16_f32_f16_ra(k, n, acc, operand(c, i, s), b, accumulate, 1, 1, 0);
    }
}

/* acc += the stage's sums, scaled. */
static void add_stage(struct consumer *c, ptx_f32 scale[MAX_TILES][2])
{
    struct marlin_product *q = c->q;
    for (uint32_t s = 0; s < group_strips(q); s++)
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_fma_f32_to(q->k, q->acc[s][j][r], c->sums[s][j][r], scale[s][r / 2],
                               q->acc[s][j][r]);
}

static void multiply_group(struct consumer *c, uint32_t first, ptx_u64 block)
{
    ptx_kernel *k = c->q->k;
    ptx_wgmma_fence(k);
    for (uint32_t i = 0; i < group_slices(c); i++)
        multiply_slice(c, first + i, block);
    ptx_wgmma_commit_group(k);
}

/* Waits for the products of the last group, releases the slot, and adds the scaled sums. */
static void end_stage(struct consumer *c)
{
    ptx_f32 scale[MAX_TILES][2];
    for (uint32_t s = 0; s < group_strips(c->q); s++)
        marlin_emit_scales_f32(c->q, &c->q->operands.scales, s, scale[s]);
    gemm_ring_next(c->q->k, &c->h->ring, &c->read, c->held, c->to_read);
    load_weights(c, 0);
    ptx_wgmma_wait_group(c->q->k, 0);
    gemm_ring_release(c->q->k, &c->h->ring, c->held, c->releases);
    add_stage(c, scale);
    dequantise(c, 0);
}

/*
 * Multiplies a stage. `release`: the lanes that release the slot of the stage before; none in the
 * first stage of a part.
 */
static void multiply_stage(struct consumer *c, ptx_pred release)
{
    ptx_kernel *k = c->q->k;
    bool others = c->q->v->wk > 1, scales = marlin_scales_stages(c->q->spec, c->q->v);
    ptx_u32 at = others ? ptx_add_u32(k, c->read.slot, c->block_at) : c->read.slot;
    ptx_u64 block = gemm_wgmma_descriptor(k, at);
    for (uint32_t i = 0; i < slices(c); i += group_slices(c)) {
        uint32_t next = (i + group_slices(c)) % slices(c);
        multiply_group(c, i, block);
        if (!next && scales) {
            end_stage(c);
            continue;
        }
        if (!next)
            gemm_ring_next(k, &c->h->ring, &c->read, c->held, c->to_read);
        load_weights(c, next);
        ptx_wgmma_wait_group(k, 1);
        if (i == 0 && !scales)
            gemm_ring_release(k, &c->h->ring, c->held, release);
        dequantise(c, next);
    }
}

/* ---- parts ---- */

static void clear(struct consumer *c)
{
    struct marlin_product *q = c->q;
    for (uint32_t s = 0; s < group_strips(q); s++)
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                q->acc[s][j][r] = ptx_mov_f32(q->k, F32(0));
}

/*
 * Computes the part's tile and the end of its stages again, and returns their beginning. With four
 * warpgroups a thread has 112 registers, of which sums and operands take 84, so no register is free
 * to keep what the end of a part needs.
 */
static ptx_u32 find_part(struct consumer *c, struct gemm_walk *w)
{
    ptx_kernel *k = c->q->k;
    const struct gemm_division *d = &c->q->division;
    w->tile = gemm_divide(k, w->end, d->stages);
    ptx_u32 start = ptx_mul_lo_u32(k, w->tile, U32(d->stages));
    ptx_u32 end = gemm_first_stage(k, d, ptx_add_u32(k, ptx_sreg_ctaid_x(k), U32(1)));
    w->stage_end = ptx_min_u32(k, ptx_sub_u32(k, end, start), U32(d->stages));
    return ptx_sub_u32(k, w->end, start);
}

/*
 * Whether registers are free to keep what the end of a part needs: with few tokens, or with two
 * warpgroups.
 */
static bool has_registers(const struct marlin_product *q)
{
    enum { FEW_ROWS = 32, TWO_GROUPS = 2 * MARLIN_WARPGROUP };
    return q->v->tile_m <= FEW_ROWS || (q->v->wn * q->v->wk <= TWO_GROUPS && q->v->ctas == 1);
}

static void begin_epilogue(struct consumer *c)
{
    struct marlin_product *q = c->q;
    uint32_t each =
        gemm_sums_bytes(team_features(q), marlin_pass_tokens(q->v), marlin_staged_wk(q->v));
    ptx_u32 team = marlin_exchange_teams(q->v) > 1
                       ? gemm_divide(q->k, q->at.warp, MARLIN_WARPGROUP)
                       : q->team_index;
    marlin_emit_epilogue_begin(q, ptx_mad_lo_u32(q->k, team, U32(each), c->staging));
}

/*
 * Multiplies the stages of a part without a counter of its own: the part ends when as many stages
 * of the CTA remain as come before the part in the walk.
 */
static void multiply_what_is_left(struct consumer *c, struct gemm_walk *w)
{
    ptx_kernel *k = c->q->k;
    ptx_u32 after = ptx_sub_u32(k, w->end, c->h->first), more = ptx_mov_u32(k, U32(0));
    ptx_loop(k, stages) {
        ptx_nounroll(k);
        multiply_stage(c, ptx_setp_bool_ne_u32(k, more, U32(0), c->releases));
        ptx_mov_u32_to(k, more, U32(1));
        ptx_u32 left = ptx_add_u32(k, c->to_read, U32(1));
        ptx_loop_break_if(&stages, ptx_setp_eq_u32(k, left, after), false);
    }
    ptx_add_u32_to(k, w->end, after, c->h->first); /* restored, to save a register */
}

static void multiply_part(struct consumer *c, struct gemm_walk *w)
{
    struct marlin_product *q = c->q;
    ptx_kernel *k = q->k;
    ptx_section(k, "the next part of a tile");
    ptx_u32 first = has_registers(q) ? ptx_mov_u32(k, w->stage) : w->stage;
    if (!c->h->stage.groups)
        load_columns(c, marlin_emit_place(q, w->tile).n);
    clear(c);
    load_weights(c, 0);
    dequantise(c, 0);
    ptx_section(k, "stages: multiply one slice, dequantise another");
    if (has_registers(q))
        ptx_for(k, w->stage, w->stage_end, U32(1)) {
            ptx_nounroll(k);
            multiply_stage(c, ptx_setp_bool_ne_u32(k, w->stage, first, c->releases));
        }
    else
        multiply_what_is_left(c, w);
    if (!marlin_scales_stages(q->spec, q->v)) {
        ptx_wgmma_wait_group(k, 0);
        gemm_ring_release(k, &c->h->ring, c->held, c->releases);
    }
    ptx_section(k, "the end of the part: sum over CTAs, store");
    if (q->exchange) {
        if (!has_registers(q))
            gemm_exchange_open(k, &q->at, &c->h->exchange);
        gemm_exchange_send(k, q->exchange, marlin_accumulator, q);
    }
    q->read = &c->read;
    q->releases = c->releases;
    if (!has_registers(q)) {
        begin_epilogue(c);
        first = find_part(c, w);
    }
    marlin_emit_epilogue(q, w, first);
}

/* ---- the consumers' loop ---- */

static void begin(struct consumer *c)
{
    struct marlin_product *q = c->q;
    ptx_kernel *k = q->k;
    struct operands *o = &q->operands;
    for (uint32_t s = 0; s < group_strips(q); s++) {
        gemm_new_registers(q->k, o->words[s], 4);
        for (uint32_t i = 0; i < 2 * group_slices(c); i++)
            gemm_new_registers(q->k, c->a[i % 2][i / 2][s], 4);
    }
    gemm_new_registers(q->k, o->scales.packed, group_strips(q));
    if (q->spec->zeros)
        gemm_new_registers(q->k, &o->scales.zeros, 1);
    marlin_emit_dequantiser_begin(q);
    find_lane(c);
    ptx_u32 stages = ptx_sub_u32(k, c->h->end, c->h->first);
    c->to_read = ptx_sub_u32(k, stages, U32(1));
    c->read = gemm_ring_first(k, &c->h->ring, false);
    c->held = ptx_mov_u32(k, c->read.barrier);
    c->releases = gemm_ring_releasers(k, &c->h->ring, &q->at);
    c->accumulate = ptx_setp_eq_u32(k, stages, stages);
    c->start = ptx_setp_ne_u32(k, stages, stages);
    for (uint32_t i = 0;
         marlin_scales_stages(q->spec, q->v) && i < group_strips(q) * token_groups(q); i++)
        for (int r = 0; r < 4; r++)
            c->sums[i / token_groups(q)][i % token_groups(q)][r] = ptx_mov_f32(k, F32(0));
}

/* The team of the warpgroups that have the same features, with its barrier. */
static void make_team(struct marlin_product *q)
{
    ptx_kernel *k = q->k;
    q->teams = q->v->wn / MARLIN_WARPGROUP;
    q->team_index = gemm_divide(k, q->at.warp, MARLIN_WARPGROUP);
    q->along_n = ptx_and_b32(k, q->at.warp, U32(MARLIN_WARPGROUP - 1));
    q->along_k = U32(0);
    q->team = q->at;
    q->team.warp = q->along_n;
    q->team.thread = ptx_and_b32(k, q->at.thread, U32(GEMM_WARPGROUP - 1));
    q->team.team = GEMM_WARPGROUP * marlin_staged_wk(q->v);
    q->team.barrier = ptx_add_u32(k, q->team_index, U32(1));
    if (q->v->wk == 1)
        return;
    q->along_k = gemm_divide(k, q->team_index, q->teams);
    q->team_index = gemm_remainder(k, q->team_index, q->teams);
    if (marlin_exchange_teams(q->v) > 1)
        return;
    q->team.thread = ptx_mad_lo_u32(k, q->along_k, U32(GEMM_WARPGROUP), q->team.thread);
    q->team.barrier = ptx_add_u32(k, q->team_index, U32(1));
}

void marlin_emit_wgmma_multiply(struct hopper *h, ptx_u32 staging)
{
    struct marlin_product *q = &h->q;
    ptx_kernel *k = q->k;
    struct consumer c = {.h = h, .q = q, .staging = staging};
    make_team(q);
    h->exchange.team = q->along_k;
    if (has_registers(q))
        begin_epilogue(&c);
    begin(&c);
    if (q->exchange && has_registers(q))
        gemm_exchange_open(k, &q->at, &h->exchange);
    gemm_ring_wait(k, &c.read);
    struct gemm_walk walk = gemm_walk_begin(k, h->first, h->end);
    ptx_loop(k, parts) {
        ptx_nounroll(k);
        gemm_walk_next(k, &q->division, &walk);
        multiply_part(&c, &walk);
        ptx_loop_break_if(&parts, ptx_setp_le_u32(k, walk.end, h->first), false);
    }
    if (q->v->cluster && !marlin_exchanges(q->v)) { /* others have read this CTA's sums */
        ptx_barrier_cluster_arrive_relaxed(k);
        ptx_barrier_cluster_wait(k);
    }
}
