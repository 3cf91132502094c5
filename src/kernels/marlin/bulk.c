/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mma.sync's products on the ring that wgmma's entries have (hopper.c): a thread sends for stages,
 * warps multiply them, each at its own pace. A warp has `steps` times 64 rows of its warp_n columns
 * in a stage; strips stand there one after the other, as in memory, and past them half a strip
 * where a tile has an odd number of halves. Where many warps have the same rows of K another warp
 * sums up activations, which all need to be rid of zero points (weights.c): by itself each would
 * take a quarter more mma's.
 *
 *     sender   │ codes, scales, activations of a stage ─▶ slot
 *     totals   │                     Σ activations of each group ─▶ slot
 *     warps    │                     codes under a mask ─▶ mma … ─▶ − z·Σ, · scale ─▶ sums
 *
 * For K × N = 8192 × 28672, group 128, on an H200 whose copies alone take 30 µs: 8 weights take a
 * lane 10 to 13 instructions, 16 where warps send for themselves and dequantise (multiply.c). 31.6
 * µs for a row, where that takes 34.7, and 33.2 for 16 rows, where it takes 38.4: a
 * multiprocessor's quarters with four of the fourteen warps then have 1024 cycles of mma in each
 * stage's 1650. A warp has 128 rows in a stage, which are fewer instructions than 64, and four
 * stages for one row: 30.8 µs, with groups of 32 33.8, where eight stages of 64 rows took 31.1 and
 * 34.3 (overlapping the launch before 29.0 and 29.5, 31.9 and 32.9). Copies of 448 columns by pairs
 * of CTAs that divide K read half of the activations and took 2 µs longer: CTAs then end 4 µs
 * apart, and their sums meet in 1 µs where one CTA's take 0.4.
 *
 * Groups of 32 rows take 36.5 µs of an H200 with 16 rows of A, groups of 128 33.5 (9 % more bytes).
 * What one of the quarters of four warps takes for a stage is nearly the sum of 8 cycles for each
 * mma and one for each other instruction, 1024 and 860 of 1880: the two do not overlap. Uneven
 * shares of a stage, 96 to 160 rows a warp so that each quarter has as many, took 8 to 12 % longer:
 * a loop of single steps of 64 rows has more that waits, and the warp that sums up activations, 400
 * cycles a stage, filled its quarter.
 *
 * What did not help there, 16 rows and one: activations sent for before weights where nothing is to
 * be waited for, though the first stage was there 0.6 µs sooner; halves of them sent by pairs of
 * CTAs to both (8192 × 8192 12 % longer, one row of 8192 × 28672 5 %); none sent for at all gains 1
 * %. CTAs end 4 µs apart, 2 on each side of the mean, by how much each has on its way: a word that
 * senders add to and read, to wait where they are ahead, brought them to 1.5 to 3, but all as late
 * as the last had been. Weights that were in the L2 already would take 29.2 µs with 16 rows, 25.4
 * with one. Two CTAs on a multiprocessor, so that the next launch's begin early, ended with two of
 * the same launch on some: 40 µs for a row, 70 for 16.
 *
 * A strip is a tile where K is not much shorter than N: 8192 × 8192 with 16 rows takes 11.6 µs by
 * four warps along K, 64 columns each, 12.0 by eight of 32, 13.1 where warps send for themselves.
 * Activations are as many bytes as codes there, and a slot that is free before the next stage is
 * waited for is what it gains by. Pairs of CTAs that divide K, in tiles of 128 columns, took 14.2:
 * a loop shorter by 8 %, but a later start and end.
 */
#include "hopper.h"

/* Past the warps before this one along K. */
static ptx_u32 past_others(struct gemm *q, ptx_u32 offset, uint32_t bytes)
{
    return q->v->wk > 1 ? ptx_mad_lo_u32(q->k, q->along_k, U32(bytes), offset) : offset;
}

static void find_groups(struct hopper *h, ptx_u32 strip)
{
    struct gemm *q = &h->q;
    ptx_kernel *k = q->k;
    struct weights *w = &q->w;
    const struct stage_layout *l = &h->stage;
    uint32_t warps = q->v->wk > l->groups ? q->v->wk / l->groups : 1; /* that share a group */
    uint32_t each = l->groups > q->v->wk ? l->groups / q->v->wk : 1;
    ptx_u32 first = ptx_mul_lo_u32(k, tile_divide(k, q->along_k, warps), U32(each));
    ptx_u32 scales = ptx_mad_lo_u32(k, first, U32(MARLIN_SCALES_BYTES), U32(l->scales));
    w->strips_scales = ptx_mad_lo_u32(k, q->at.group, U32(TILE_CHUNK_BYTES), scales);
    w->scales_bytes = l->scales_bytes;
    ptx_u32 half = ptx_mad_lo_u32(k, q->operands.half, U32(TILE_CHUNK_BYTES / 2), w->strips_scales);
    w->scales_at = ptx_mad_lo_u32(k, strip, U32(l->scales_bytes), half);
    if (!q->spec->zeros)
        return;
    ptx_u32 zeros = ptx_mad_lo_u32(k, first, U32(MARLIN_ZEROS_BYTES), U32(l->zeros));
    w->strips_zeros = ptx_mad_lo_u32(k, q->at.group, U32(4), zeros);
    w->zeros_bytes = l->zeros_bytes;
    w->zeros_at = ptx_mad_lo_u32(k, strip, U32(l->zeros_bytes), w->strips_zeros);
}

/* … of whole strips, and of the half past them: the tile's parts turn between them. */
static void find_codes(struct hopper *h, ptx_u32 strip)
{
    struct gemm *q = &h->q;
    ptx_kernel *k = q->k;
    struct weights *w = &q->w;
    const struct stage_layout *l = &h->stage;
    uint32_t parts = MARLIN_STRIP / q->v->warp_n;
    w->step_bytes = MARLIN_STEP_BYTES;
    ptx_u32 lane = ptx_mul_lo_u32(k, q->at.lane, U32(TILE_CHUNK_BYTES));
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

static void find_weights(struct hopper *h)
{
    struct gemm *q = &h->q;
    ptx_kernel *k = q->k;
    uint32_t parts = MARLIN_STRIP / q->v->warp_n;
    ptx_u32 strip = tile_divide(k, q->along_n, parts);
    q->operands.half = ptx_mov_u32(k, ptx_and_b32(k, q->along_n, U32(parts - 1)));
    find_codes(h, strip);
    if (h->stage.groups)
        find_groups(h, strip);
}

static void find_warp(struct gemm *q)
{
    ptx_kernel *k = q->k;
    q->along_k = q->v->wk == 1 ? U32(0) : tile_divide(k, q->at.warp, q->v->wn);
    q->along_n = q->v->wk == 1 ? q->at.warp : tile_remainder(k, q->at.warp, q->v->wn);
    q->team = q->at;
    q->team.team = marlin_threads(q->v);
    q->team.barrier = U32(1);
    q->teams = 1;
    q->team_index = U32(0);
}

static void begin_reading(struct hopper *h)
{
    struct gemm *q = &h->q;
    ptx_kernel *k = q->k;
    q->x = (struct tile_operand){.rows = q->v->tile_m, .blocks = marlin_stage_steps(q->v)};
    tile_operand_begin_reading(k, &q->at, &q->x);
    find_weights(h);
    struct ring_user *u = &q->user;
    uint32_t each = marlin_corrected_groups(q->spec, q->v) * marlin_note_bytes(q->spec, q->v);
    uint32_t two_rows = marlin_note_bytes(q->spec, q->v) / q->v->tile_m * 2;
    ptx_u32 totals = past_others(q, U32(h->stage.totals), each);
    u->totals_at = ptx_mad_lo_u32(k, q->at.quad, U32(two_rows), totals);
    u->ring = &h->ring;
    u->place = tile_ring_first(k, &h->ring, false);
    u->held = ptx_mov_u32(k, u->place.barrier);
    ptx_u32 stages = ptx_sub_u32(k, h->end, h->first);
    u->left = ptx_sub_u32(k, stages, U32(1));
    u->releases = tile_ring_releasers(k, &h->ring, &q->at);
}

/*
 * Of a group of a stage of those at `along_k`: row g of each fragment is in all lanes of the group.
 */
static void note_group(struct hopper *h, ptx_u32 slot, uint32_t along_k, uint32_t group,
                       const ptx_f32 totals[2])
{
    struct gemm *q = &h->q;
    ptx_kernel *k = q->k;
    uint32_t index = along_k * marlin_corrected_groups(q->spec, q->v) + group;
    uint32_t each = marlin_note_bytes(q->spec, q->v);
    bool starts = marlin_notes_first_sums(q->spec, q->v);
    ptx_u32 row = ptx_mad_lo_u32(k, q->at.group, U32(4), slot);
    if (starts) /* 8 bytes more past each two rows */
        row = ptx_mad_lo_u32(k, ptx_shr_u32(k, q->at.group, U32(1)), U32(8), row);
    ptx_pred first = ptx_setp_eq_u32(k, q->at.quad, U32(0));
    for (uint32_t j = 0; j < row_groups(q); j++)
        for (uint32_t half = 0; half < (starts ? 2 : 1); half++) {
            uint32_t to = h->stage.totals + index * each + j * (each / row_groups(q)) + half * 8;
            ptx_f32 noted = totals[j];
            if (starts)
                noted = ptx_mul_f32(k, noted, marlin_emit_correction(q, NULL, 0, half));
            ptx_guarded(k, first)
                ptx_st_shared_f32(k, row, (int)to, noted);
        }
}

/* Stores come behind all loads, which would wait for them: groups that follow each other took 100
 * cycles each. */
static void note_stage(struct hopper *h, ptx_u32 slot, uint32_t along_k)
{
    enum { MOST = 16 };
    uint32_t groups = marlin_corrected_groups(h->q.spec, h->q.v);
    ptx_f32 totals[MOST][2];
    for (uint32_t i = 0; i < groups && i < MOST; i++)
        marlin_emit_totals(&h->q, slot, along_k, i, totals[i]);
    for (uint32_t i = 0; i < groups && i < MOST; i++)
        note_group(h, slot, along_k, i, totals[i]);
}

void marlin_emit_bulk_totals(struct hopper *h)
{
    struct gemm *q = &h->q;
    ptx_kernel *k = q->k;
    ptx_section(k, "sum up activations");
    q->x = (struct tile_operand){.rows = q->v->tile_m, .blocks = marlin_stage_steps(q->v)};
    tile_operand_begin_reading(k, &q->at, &q->x);
    marlin_emit_totals_begin(q);
    struct tile_ring_place place = tile_ring_first(k, &h->ring, false);
    ptx_u32 stage = ptx_mov_u32(k, h->first);
    ptx_for(k, stage, h->end, U32(1)) {
        ptx_nounroll(k);
        tile_ring_wait(k, &place);
        for (uint32_t along_k = 0; along_k < q->v->wk; along_k++)
            note_stage(h, place.slot, along_k);
        tile_ring_note(k, &h->ring, &place);
        tile_ring_advance(k, &h->ring, &place, NULL);
    }
}

void marlin_emit_bulk_multiply(struct hopper *h, ptx_u32 staging)
{
    struct gemm *q = &h->q;
    ptx_kernel *k = q->k;
    find_warp(q);
    marlin_emit_epilogue_begin(q, staging);
    begin_reading(h);
    tile_ring_wait(k, &q->user.place);
    marlin_emit_parts(q, h->first, h->end);
    if (q->v->cluster) { /* the others have read this CTA's sums */
        ptx_barrier_cluster_arrive_relaxed(k);
        ptx_barrier_cluster_wait(k);
    }
}
