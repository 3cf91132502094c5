/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumers with wgmma. A warpgroup multiplies slices of 16 of K, in groups of one, two or four
 * slices: while wgmma multiplies a group, the warps dequantise the next group into the other of two
 * sets of registers, which the products of the group before have released.
 *
 *     wgmma    │ group 0 ──────│ group 1 ──────│ group 2 ──────│
 *     warps      dequantise 1 ─│ dequantise 2 ─│ dequantise 3 ─│
 *
 * A warp has 16 features of each strip of its warpgroup, so that its tile t is part of strip t.
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
#include "bulk.h"

enum { SLICES = STEP_MMAS, SLICE_BYTES = 32 /* of a row of activations */ };

/* ---- weights ---- */

/* Groups of scales of a stage that the warpgroup uses. */
static uint32_t own_groups(const struct marlin_bulk *b)
{
    uint32_t groups = b->stage.groups;
    return groups > 1 ? groups / b->q.v->wk : groups;
}

static uint32_t past_groups(const struct marlin_bulk *b, uint32_t bytes)
{
    return b->stage.groups > 1 ? own_groups(b) * bytes : 0;
}

/* A lane's zero points have the order of its scales, with one byte for two zero points. */
enum { ZEROS_TO_SCALES = MARLIN_SCALES_BYTES / MARLIN_ZEROS_BYTES };

static void find_lane(struct marlin_bulk *b)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    const struct stage_layout *l = &b->stage;
    ptx_u32 strip = ptx_mul_lo_u32(k, q->team_index, U32(tiles(q)));
    ptx_u32 codes = ptx_mad_lo_u32(k, strip, U32(l->codes_bytes), U32(l->codes));
    ptx_u32 tile = ptx_mad_lo_u32(k, q->along_n, U32(MARLIN_TILE_BYTES), codes);
    tile = past_others(q, tile, q->v->steps * MARLIN_STEP_BYTES);
    b->codes_at = ptx_mad_lo_u32(k, q->g.at.lane, U32(GEMM_CHUNK_BYTES), tile);
    b->block_at = past_others(q, U32(0), gemm_operand_stage_bytes(q->v->tile_m, q->v->steps));
    if (!l->groups)
        return;
    ptx_u32 zeros = ptx_mul_lo_u32(k, strip, U32(l->groups * MARLIN_ZEROS_BYTES));
    zeros = past_others(q, zeros, past_groups(b, MARLIN_ZEROS_BYTES));
    ptx_u32 row = ptx_mad_lo_u32(k, q->g.at.group, U32(4), zeros);
    ptx_u32 byte = ptx_add_u32(k, row, q->along_n);
    if (q->spec->zeros)
        b->zeros_at = ptx_add_u32(k, byte, U32(l->zeros));
    else
        b->scales_at = ptx_mad_lo_u32(k, byte, U32(ZEROS_TO_SCALES), U32(l->scales));
}

static void load_words(struct marlin_bulk *b, uint32_t step)
{
    ptx_kernel *k = b->q.g.k;
    ptx_u32 at = ptx_add_u32(k, b->q.g.read.slot, b->codes_at);
    for (uint32_t s = 0; s < tiles(&b->q); s++)
        ptx_ld_shared_v4_u32_to(k, b->q.operands.words[s], at,
                                (int)(s * b->stage.codes_bytes + step * MARLIN_STEP_BYTES));
}

/* Puts the byte with a lane's two zero points of strip s in the place that tile s reads. */
static void keep_zeros(struct marlin_bulk *b, uint32_t s, ptx_u32 two)
{
    struct marlin_product *q = &b->q;
    ptx_u32 *zeros = &q->operands.scales.zeros;
    if (s)
        ptx_bfi_b32_to(q->g.k, *zeros, two, *zeros, U32(8 * s), U32(8));
    else
        ptx_mov_u32_to(q->g.k, *zeros, two);
}

/*
 * With zero points, the offset of the scales is computed from that of the zero points, which saves
 * a register.
 */
static ptx_u32 find_scales(struct marlin_bulk *b)
{
    ptx_kernel *k = b->q.g.k;
    const struct stage_layout *l = &b->stage;
    if (!b->q.spec->zeros)
        return ptx_add_u32(k, b->q.g.read.slot, b->scales_at);
    ptx_u32 base = ptx_add_u32(k, b->q.g.read.slot, U32(l->scales - ZEROS_TO_SCALES * l->zeros));
    return ptx_mad_lo_u32(k, b->zeros_at, U32(ZEROS_TO_SCALES), base);
}

/* Loads the scales and zero points of group `group` of the stage, for the next operands. */
static void enter_group(struct marlin_bulk *b, uint32_t group)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    const struct stage_layout *l = &b->stage;
    ptx_u32 at = find_scales(b);
    for (uint32_t s = 0; s < tiles(q); s++)
        ptx_ld_shared_u32_to(k, q->operands.scales.packed[s], at,
                             (int)(s * l->scales_bytes + group * MARLIN_SCALES_BYTES));
    if (q->spec->zeros) {
        ptx_u32 zeros_at = ptx_add_u32(k, b->q.g.read.slot, b->zeros_at);
        for (uint32_t s = 0; s < tiles(q); s++)
            keep_zeros(b, s,
                       ptx_ld_shared_u8(k, zeros_at,
                                        (int)(s * l->zeros_bytes + group * MARLIN_ZEROS_BYTES)));
    }
    marlin_emit_dequantiser(q, &q->operands.scales);
}

/* Without groups: loads the scales and zero points of the lane's features from global memory. */
static void load_columns(struct marlin_bulk *b, ptx_u32 tile_n)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    ptx_u32 team = ptx_mad_lo_u32(k, tile_n, U32(q->teams), q->team_index);
    ptx_u32 first = ptx_mul_lo_u32(k, team, U32(tiles(q)));
    for (uint32_t s = 0; s < tiles(q); s++) {
        ptx_u32 after = ptx_add_u32(k, first, U32(s));
        ptx_u32 strip = ptx_min_u32(k, after, U32(marlin_strips(q->spec) - 1));
        ptx_u64 at =
            ptx_mad_wide_u32(k, strip, U32(MARLIN_SCALES_BYTES), q->address[MARLIN_SCALES]);
        ptx_u64 row = ptx_mad_wide_u32(k, q->g.at.group, U32(16), at);
        ptx_u64 tile = ptx_mad_wide_u32(k, q->along_n, U32(4), row);
        ptx_ld_global_nc_u32_to(k, q->operands.scales.packed[s], tile, 0);
        if (!q->spec->zeros)
            continue;
        ptx_u64 zeros =
            ptx_mad_wide_u32(k, strip, U32(MARLIN_ZEROS_BYTES), q->address[MARLIN_ZEROS]);
        ptx_u64 zeros_row = ptx_mad_wide_u32(k, q->g.at.group, U32(4), zeros);
        ptx_u32 word = ptx_ld_global_nc_u32(k, zeros_row, 0);
        ptx_u32 shift = ptx_mul_lo_u32(k, q->along_n, U32(8));
        keep_zeros(b, s, ptx_shr_u32(k, word, shift));
    }
    if (q->spec->zeros)
        marlin_emit_dequantiser(q, &q->operands.scales);
}

/* ---- slices ---- */

static uint32_t slices(const struct marlin_bulk *b)
{
    return b->q.v->steps * SLICES;
}

/* Loads the words of 64 of K and the scales of a group where they begin at slice i of the stage. */
static void load_weights(struct marlin_bulk *b, uint32_t i)
{
    if (i % SLICES == 0)
        load_words(b, i / SLICES);
    uint32_t groups = own_groups(b);
    if (groups && i % (slices(b) / groups) == 0)
        enter_group(b, i / (slices(b) / groups));
}

/*
 * Slices of a group. With few tokens, larger groups let the products of a warpgroup and the
 * dequantisation of another overlap better; products of 128 tokens are long enough in any case.
 */
static uint32_t group_slices(const struct marlin_bulk *b)
{
    const ptxgen_tile *v = b->q.v;
    if (tiles(&b->q) > 1 || v->tile_m > 64)
        return 1;
    if (v->tile_m <= 32 || marlin_scales_stages(b->q.spec, v))
        return SLICES / 2;
    return v->steps % 2 ? 1 : SLICES;
}

/* The operand of tile s of slice i. */
static ptx_u32 *operand(struct marlin_bulk *b, uint32_t i, uint32_t s)
{
    uint32_t size = group_slices(b);
    return b->a[i / size % 2][i % size][s];
}

static void dequantise_slice(struct marlin_bulk *b, uint32_t i)
{
    for (uint32_t s = 0; s < tiles(&b->q); s++)
        marlin_emit_dequantise(&b->q, s, b->q.operands.words[s][i % SLICES], operand(b, i, s));
}

/*
 * Dequantises the group that starts at slice `first`. The weights that slice `first` needs have
 * been loaded; those of later slices are loaded here.
 */
static void dequantise(struct marlin_bulk *b, uint32_t first)
{
    for (uint32_t i = 0; i < group_slices(b); i++) {
        if (i)
            load_weights(b, first + i);
        dequantise_slice(b, first + i);
    }
}

static void multiply_slice(struct marlin_bulk *b, uint32_t i, ptx_u64 block)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    int n = (int)q->v->tile_m;
    uint32_t bytes = gemm_operand_stage_bytes(q->v->tile_m, i / SLICES) + i % SLICES * SLICE_BYTES;
    ptx_u64 x = gemm_wgmma_advance(k, block, bytes);
    bool own = marlin_scales_stages(q->spec, q->v);
    ptx_pred accumulate = own && i == 0 ? b->start : b->accumulate;
    for (uint32_t s = 0; s < tiles(q); s++) {
        ptx_f32 *acc = own ? b->sums[s][0] : q->acc[s][0];
        if (is_bf16(q))
            ptx_wgmma_k16_f32_bf16_ra(k, n, acc, operand(b, i, s), x, accumulate, 1, 1, 0);
        else
            ptx_wgmma_k16_f32_f16_ra(k, n, acc, operand(b, i, s), x, accumulate, 1, 1, 0);
    }
}

/* acc += the stage's sums, scaled. */
static void add_stage(struct marlin_bulk *b, ptx_f32 scale[MAX_TILES][2])
{
    struct marlin_product *q = &b->q;
    for (uint32_t s = 0; s < tiles(q); s++)
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_fma_f32_to(q->g.k, q->acc[s][j][r], b->sums[s][j][r], scale[s][r / 2],
                               q->acc[s][j][r]);
}

static void multiply_group(struct marlin_bulk *b, uint32_t first, ptx_u64 block)
{
    ptx_kernel *k = b->q.g.k;
    ptx_wgmma_fence(k);
    for (uint32_t i = 0; i < group_slices(b); i++)
        multiply_slice(b, first + i, block);
    ptx_wgmma_commit_group(k);
}

/* Waits for the products of the last group, releases the slot, and adds the scaled sums. */
static void end_stage(struct marlin_bulk *b)
{
    ptx_f32 scale[MAX_TILES][2];
    for (uint32_t s = 0; s < tiles(&b->q); s++)
        marlin_emit_scales_f32(&b->q, &b->q.operands.scales, s, scale[s]);
    gemm_ring_next(b->q.g.k, &b->q.g.ring, &b->q.g.read, b->q.g.held[0], b->q.g.to_read);
    load_weights(b, 0);
    ptx_wgmma_wait_group(b->q.g.k, 0);
    gemm_ring_release(b->q.g.k, &b->q.g.ring, b->q.g.held[0], b->q.g.releases);
    add_stage(b, scale);
    dequantise(b, 0);
}

/*
 * Multiplies a stage. `release`: the lanes that release the slot of the stage before; none in the
 * first stage of a part.
 */
static void multiply_stage(struct marlin_bulk *b, ptx_pred release)
{
    ptx_kernel *k = b->q.g.k;
    bool others = b->q.v->wk > 1, scales = marlin_scales_stages(b->q.spec, b->q.v);
    ptx_u32 at = others ? ptx_add_u32(k, b->q.g.read.slot, b->block_at) : b->q.g.read.slot;
    ptx_u64 block = gemm_wgmma_descriptor(k, at);
    for (uint32_t i = 0; i < slices(b); i += group_slices(b)) {
        uint32_t next = (i + group_slices(b)) % slices(b);
        multiply_group(b, i, block);
        if (!next && scales) {
            end_stage(b);
            continue;
        }
        if (!next)
            gemm_ring_next(k, &b->q.g.ring, &b->q.g.read, b->q.g.held[0], b->q.g.to_read);
        load_weights(b, next);
        ptx_wgmma_wait_group(k, 1);
        if (i == 0 && !scales)
            gemm_ring_release(k, &b->q.g.ring, b->q.g.held[0], release);
        dequantise(b, next);
    }
}

/* ---- parts ---- */

/*
 * Whether registers are free to keep what the end of a part needs: with few tokens, or with two
 * warpgroups.
 */
bool marlin_keeps_walk(const ptxgen_tile *v)
{
    enum { FEW_ROWS = 32, TWO_GROUPS = 2 * GEMM_WARPGROUP_WARPS };
    return v->tile_m <= FEW_ROWS || (v->wn * v->wk <= TWO_GROUPS && v->ctas == 1);
}

/* Accumulators are new registers of 0; the first operands of the part are made. */
static void clear(struct gemm *g, const struct gemm_part *part)
{
    struct marlin_bulk *b = marlin_bulk_of(g);
    struct marlin_product *q = &b->q;
    if (!b->stage.groups)
        load_columns(b, marlin_emit_place(q, part->walk.tile).n);
    for (uint32_t s = 0; s < tiles(q); s++)
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                q->acc[s][j][r] = ptx_mov_f32(g->k, F32(0));
    load_weights(b, 0);
    dequantise(b, 0);
}

static void multiply(struct gemm *g, const struct gemm_part *part)
{
    multiply_stage(marlin_bulk_of(g),
                   ptx_setp_bool_ne_u32(g->k, part->walk.stage, part->first, g->releases));
}

/*
 * Multiplies the stages of a part without a counter of its own: the part ends when as many stages
 * of the CTA remain as come before the part in the walk.
 */
static void multiply_without_counter(struct gemm *g, struct gemm_part *part)
{
    struct marlin_bulk *b = marlin_bulk_of(g);
    struct gemm_walk *w = &part->walk;
    ptx_kernel *k = b->q.g.k;
    ptx_u32 after = ptx_sub_u32(k, w->end, b->q.g.first), more = ptx_mov_u32(k, U32(0));
    ptx_loop(k, stages) {
        ptx_nounroll(k);
        multiply_stage(b, ptx_setp_bool_ne_u32(k, more, U32(0), b->q.g.releases));
        ptx_mov_u32_to(k, more, U32(1));
        ptx_u32 left = ptx_add_u32(k, b->q.g.to_read, U32(1));
        ptx_loop_break_if(&stages, ptx_setp_eq_u32(k, left, after), false);
    }
    ptx_add_u32_to(k, w->end, after, b->q.g.first); /* as it was: one of the two is kept */
}

static void drain(struct gemm *g)
{
    const struct marlin_product *q = marlin_of(g);
    if (marlin_scales_stages(q->spec, q->v))
        return; /* the end of a stage has waited for its products */
    ptx_wgmma_wait_group(g->k, 0);
    gemm_ring_release(g->k, &g->ring, g->held[0], g->releases);
}

/*
 * Computes the part's tile and the end of its stages again, and returns their beginning. With four
 * warpgroups a thread has 112 registers, of which sums and operands take 84, so no register is free
 * to keep what the end of a part needs.
 */
static ptx_u32 find_part(struct marlin_bulk *b, struct gemm_walk *w)
{
    ptx_kernel *k = b->q.g.k;
    const struct gemm_division *d = &b->q.g.division;
    w->tile = gemm_divide(k, w->end, d->stages);
    ptx_u32 start = ptx_mul_lo_u32(k, w->tile, U32(d->stages));
    ptx_u32 end = gemm_first_stage(k, d, ptx_add_u32(k, ptx_sreg_ctaid_x(k), U32(1)));
    w->stage_end = ptx_min_u32(k, ptx_sub_u32(k, end, start), U32(d->stages));
    return ptx_sub_u32(k, w->end, start);
}

static void begin_epilogue(struct marlin_bulk *b)
{
    struct marlin_product *q = &b->q;
    uint32_t each =
        gemm_sums_bytes(team_features(q), marlin_pass_tokens(q->v), marlin_staged_wk(q->v));
    ptx_u32 team = marlin_exchange_teams(q->v) > 1
                       ? gemm_divide(q->g.k, q->g.at.warp, GEMM_WARPGROUP_WARPS)
                       : q->team_index;
    marlin_emit_epilogue_begin(q, ptx_mad_lo_u32(q->g.k, team, U32(each), b->staging));
}

static void epilogue(struct gemm *g, struct gemm_part *part)
{
    struct marlin_bulk *b = marlin_bulk_of(g);
    struct marlin_product *q = &b->q;
    if (q->exchange) {
        if (!marlin_keeps_walk(q->v))
            gemm_exchange_open(g->k, &g->at, &b->exchange);
        gemm_exchange_send(g->k, q->exchange, marlin_accumulator, q);
    }
    if (!marlin_keeps_walk(q->v)) {
        begin_epilogue(b);
        part->first = find_part(b, &part->walk);
    }
    gemm_epilogue(g, part);
}

/* ---- all ---- */

static void begin_registers(struct marlin_bulk *b)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    struct operands *o = &q->operands;
    for (uint32_t s = 0; s < tiles(q); s++) {
        gemm_new_registers(q->g.k, o->words[s], 4);
        for (uint32_t i = 0; i < 2 * group_slices(b); i++)
            gemm_new_registers(q->g.k, b->a[i % 2][i / 2][s], 4);
    }
    gemm_new_registers(q->g.k, o->scales.packed, tiles(q));
    if (q->spec->zeros)
        gemm_new_registers(q->g.k, &o->scales.zeros, 1);
    marlin_emit_dequantiser_begin(q);
    find_lane(b);
    ptx_u32 stages = gemm_begin_reading(&q->g);
    b->accumulate = ptx_setp_eq_u32(k, stages, stages);
    b->start = ptx_setp_ne_u32(k, stages, stages);
    for (uint32_t i = 0; marlin_scales_stages(q->spec, q->v) && i < tiles(q) * token_groups(q); i++)
        for (int r = 0; r < 4; r++)
            b->sums[i / token_groups(q)][i % token_groups(q)][r] = ptx_mov_f32(k, F32(0));
}

/* The team of the warpgroups that have the same features, with its barrier. */
static void make_team(struct marlin_product *q)
{
    ptx_kernel *k = q->g.k;
    q->teams = q->v->wn / GEMM_WARPGROUP_WARPS;
    q->team_index = gemm_divide(k, q->g.at.warp, GEMM_WARPGROUP_WARPS);
    q->along_n = ptx_and_b32(k, q->g.at.warp, U32(GEMM_WARPGROUP_WARPS - 1));
    q->along_k = U32(0);
    q->team = q->g.at;
    q->team.warp = q->along_n;
    q->team.thread = ptx_and_b32(k, q->g.at.thread, U32(GEMM_WARPGROUP - 1));
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

static void begin_consumer(struct gemm *g)
{
    struct marlin_bulk *b = marlin_bulk_of(g);
    struct marlin_product *q = &b->q;
    make_team(q);
    b->exchange.team = q->along_k;
    if (marlin_keeps_walk(q->v))
        begin_epilogue(b);
    begin_registers(b);
    if (q->exchange && marlin_keeps_walk(q->v))
        gemm_exchange_open(g->k, &g->at, &b->exchange);
    gemm_ring_wait(g->k, &g->read);
}

const struct gemm_ops marlin_wgmma_ops = {.begin = marlin_begin_bulk,
                                          .begin_consumer = begin_consumer,
                                          .clear = clear,
                                          .multiply = multiply,
                                          .multiply_part = multiply_without_counter,
                                          .drain = drain,
                                          .epilogue = epilogue,
                                          .produce = marlin_produce};
