/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumers with mma.sync on the ring of bulk.c: each warp multiplies stages at its own pace.
 * A warp has warp_n features by `steps` times 64 of K in a stage. The strips of a stage are in the
 * order of memory; where a tile has an odd number of half strips, the half strip follows them.
 *
 *     producer    │ codes, scales, activations of a stage ─▶ slot
 *     totals warp │          Σ activations of each group ─▶ slot
 *     consumers   │          masked codes ─▶ mma.sync ─▶ − z·Σ, · scale ─▶ accumulators
 *
 * A consumer multiplies codes as they are and corrects the sums by zero point times Σ activations
 * (weights.c). Where four or more warps along N have the same of K, one warp computes Σ activations
 * for all of them; each warp by itself would take a quarter more mma instructions. Then 8 weights
 * take 10 to 13 instructions of a lane (16 where weights are dequantised), and for 16 tokens a
 * scheduler with four warps spends 1024 of 1650 cycles of a stage on mma. Measurements and rejected
 * designs are in docs/notes/marlin.md.
 */
#include "bulk.h"

static void find_groups(struct marlin_bulk *b, ptx_u32 strip)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    struct weights *w = &q->w;
    const struct stage_layout *l = &b->stage;
    uint32_t warps = q->v->wk > l->groups ? q->v->wk / l->groups : 1; /* that share a group */
    uint32_t each = l->groups > q->v->wk ? l->groups / q->v->wk : 1;
    ptx_u32 first = ptx_mul_lo_u32(k, gemm_divide(k, q->along_k, warps), U32(each));
    ptx_u32 scales = ptx_mad_lo_u32(k, first, U32(MARLIN_SCALES_BYTES), U32(l->scales));
    w->strips_scales = ptx_mad_lo_u32(k, q->g.at.group, U32(GEMM_CHUNK_BYTES), scales);
    w->scales_bytes = l->scales_bytes;
    ptx_u32 half = ptx_mad_lo_u32(k, q->operands.half, U32(GEMM_CHUNK_BYTES / 2), w->strips_scales);
    w->scales_at = ptx_mad_lo_u32(k, strip, U32(l->scales_bytes), half);
    if (!q->spec->zeros)
        return;
    ptx_u32 zeros = ptx_mad_lo_u32(k, first, U32(MARLIN_ZEROS_BYTES), U32(l->zeros));
    w->strips_zeros = ptx_mad_lo_u32(k, q->g.at.group, U32(4), zeros);
    w->zeros_bytes = l->zeros_bytes;
    w->zeros_at = ptx_mad_lo_u32(k, strip, U32(l->zeros_bytes), w->strips_zeros);
}

/*
 * Offsets of the lane's codes in a stage: in the whole strips, and in the half strip behind them.
 * Which of the two a warp has may differ from tile to tile.
 */
static void find_codes(struct marlin_bulk *b, ptx_u32 strip)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    struct weights *w = &q->w;
    const struct stage_layout *l = &b->stage;
    uint32_t parts = MARLIN_STRIP / q->v->warp_n;
    w->step_bytes = MARLIN_STEP_BYTES;
    ptx_u32 lane = ptx_mul_lo_u32(k, q->g.at.lane, U32(GEMM_CHUNK_BYTES));
    ptx_u32 first =
        ptx_add_u32(k, past_others(q, U32(l->codes), q->v->steps * MARLIN_STEP_BYTES), lane);
    if (marlin_has_odd_halves(q->v)) {
        w->strips_codes = first;
        w->codes_bytes = l->codes_bytes;
        ptx_u32 half = past_others(q, U32(l->half), q->v->steps * MARLIN_STEP_BYTES / 2);
        w->half_codes = ptx_add_u32(k, half, lane);
        w->codes_at = ptx_mov_u32(k, first);
        w->codes_step = ptx_mov_u32(k, U32(MARLIN_STEP_BYTES));
        return;
    }
    ptx_u32 codes = ptx_mad_lo_u32(k, strip, U32(l->codes_bytes), first);
    w->codes_at = ptx_mad_lo_u32(k, q->operands.half, U32(MARLIN_STEP_BYTES / parts), codes);
}

static void find_weights(struct marlin_bulk *b)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    uint32_t parts = MARLIN_STRIP / q->v->warp_n;
    ptx_u32 strip = gemm_divide(k, q->along_n, parts);
    q->operands.half = ptx_mov_u32(k, ptx_and_b32(k, q->along_n, U32(parts - 1)));
    find_codes(b, strip);
    if (b->stage.groups)
        find_groups(b, strip);
}

static void begin_reading(struct marlin_bulk *b)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    q->x = (struct gemm_operand){.rows = q->v->tile_m, .blocks = marlin_stage_steps(q->v)};
    gemm_operand_begin_reading(k, &q->g.at, &q->x);
    find_weights(b);
    struct marlin_totals_place *u = &q->totals_place;
    uint32_t each = marlin_corrected_groups(q->spec, q->v) * marlin_total_bytes(q->spec, q->v);
    uint32_t two_rows = marlin_total_bytes(q->spec, q->v) / q->v->tile_m * 2;
    ptx_u32 totals = past_others(q, U32(b->stage.totals), each);
    u->totals_at = ptx_mad_lo_u32(k, q->g.at.quad, U32(two_rows), totals);
    struct gemm *g = &q->g;
    g->read = gemm_ring_first(k, &g->ring, false);
    g->held[0] = ptx_mov_u32(k, g->read.barrier);
    g->to_read = ptx_sub_u32(k, ptx_sub_u32(k, g->end, g->first), U32(1));
    g->releases = gemm_ring_releasers(k, &g->ring, &g->at);
}

static void begin_consumer(struct gemm *g)
{
    struct marlin_bulk *b = marlin_bulk_of(g);
    marlin_find_mma_warp(&b->q);
    b->q.team.team = gemm_tile_threads(b->q.v);
    b->q.team.barrier = U32(1);
    b->q.team_index = U32(0);
    marlin_emit_epilogue_begin(&b->q, b->staging);
    begin_reading(b);
    gemm_ring_wait(g->k, &g->read);
    marlin_begin_mma(&b->q);
}

const struct gemm_ops marlin_mma_bulk_ops = {.begin = marlin_begin_bulk,
                                             .begin_consumer = begin_consumer,
                                             .clear = marlin_clear_mma,
                                             .multiply = marlin_multiply_mma,
                                             .epilogue = gemm_epilogue,
                                             .produce = marlin_produce};
