/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Q4_K weights from global memory through a ring in shared memory.
 *
 * Each warp has a ring of its own, which is `stages` pairs of super-blocks of 16 features deep. The
 * ring is filled by two tensor copies of 8 rows (sm_90), or by cp.async of 16 bytes with two lanes
 * a row. No other warp touches the ring, so warp barriers are all the synchronisation there is. The
 * copies carry an evict-first policy, so that x stays in the L2.
 */
#include "../gemm/ring.h"
#include "../policy.h"
#include "emit.h"

/* Tensor copies of a tile: with SwiGLU the halves of a tile come from two matrices. */
static int boxes(const struct rmsnorm_q4k_kernel *q)
{
    return is_gated(q->spec) ? 2 : 1;
}

/* Finds the lane's row of the tile for cp.async; rows past the last repeat the last. */
static void locate_row(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *s)
{
    ptx_kernel *k = q->k;
    ptx_u32 row = shifted(q, q->at.lane, 1);
    ptx_u32 odd = masked(q, q->at.lane, 1);
    struct rmsnorm_q4k_place at = rmsnorm_q4k_locate(q, s->output, q->w, q->y_stride);
    ptx_u32 in_matrix = is_gated(q->spec) ? masked(q, row, 7) : row;
    if (is_gated(q->spec))
        at.address = ptx_selp_u64(k, q->w[1], q->w[0], ptx_setp_ge_u32(k, row, U32(8)));
    ptx_u32 wanted = ptx_add_u32(k, at.row, in_matrix);
    ptx_u32 last = ptx_sub_u32(k, at.rows, U32(1));
    ptx_u32 real = ptx_min_u32(k, wanted, last);
    ptx_u32 row_bytes = U32(super_blocks(q->spec) * SUPER_BLOCK_BYTES);
    ptx_u64 start = ptx_mad_wide_u32(k, real, row_bytes, at.address);
    start = ptx_mad_wide_u32(k, odd, U32(16), start); /* two lanes alternate along a row */
    ptx_mad_wide_u32_to(k, s->source, s->pair, U32(PAIR_BYTES), start);
}

/* Whether tiles come from several tensor maps. Copies fill in zeros past a matrix's end. */
static bool chooses_map(const struct rmsnorm_q4k_kernel *q)
{
    return q->spec->n[1] && !is_gated(q->spec);
}

static void locate_box(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *s)
{
    struct rmsnorm_q4k_place at = rmsnorm_q4k_locate(q, s->output, q->maps, q->y_stride);
    ptx_mov_u64_to(q->k, s->maps[0], at.address);
    ptx_mov_u32_to(q->k, s->rows[0], at.row);
}

static void locate_tile(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *s)
{
    if (!tensor(q))
        locate_row(q, s);
    else if (chooses_map(q))
        locate_box(q, s);
}

static void init_barriers(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_stream *s)
{
    ptx_kernel *k = q->k;
    ptx_if(k, is_zero(q, q->at.lane)) {
        for (uint32_t i = 0; i < q->v->stages; i++)
            ptx_mbarrier_init(k, s->barriers, (int)(8 * i), U32(1));
        ptx_fence_mbarrier_init_release_cluster(k);
    }
    ptx_bar_warp_sync(k, ALL_LANES);
}

struct rmsnorm_q4k_stream rmsnorm_q4k_start_stream(struct rmsnorm_q4k_kernel *q)
{
    ptx_kernel *k = q->k;
    struct rmsnorm_q4k_stream s;
    s.output = ptx_mov_u32(k, q->first_output);
    s.pair = ptx_mov_u32(k, q->wk);
    s.source = ptx_mov_u64(k, U64(0));
    for (int box = 0; box < boxes(q); box++) { /* one map serves all tiles */
        s.maps[box] = chooses_map(q) ? ptx_mov_u64(k, U64(0)) : q->maps[box];
        s.rows[box] = chooses_map(q) ? ptx_mov_u32(k, U32(0)) : s.output;
    }
    s.fill = rmsnorm_q4k_start_slot(q, false);
    s.ring = times_plus(q, q->at.warp, q->v->stages * STAGE_BYTES, q->sh.rings);
    s.barriers = s.ring;
    if (tensor(q)) {
        s.barriers = times_plus(q, q->at.warp, q->v->stages * 8, q->sh.ring_barriers);
        init_barriers(q, &s);
    }
    locate_tile(q, &s);
    return s;
}

struct rmsnorm_q4k_slot rmsnorm_q4k_start_slot(struct rmsnorm_q4k_kernel *q, bool has_parity)
{
    struct rmsnorm_q4k_slot slot = {.index = ptx_mov_u32(q->k, U32(0)), .has_parity = has_parity};
    if (has_parity)
        slot.parity = ptx_mov_u32(q->k, U32(0));
    return slot;
}

void rmsnorm_q4k_advance_slot(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_slot *slot)
{
    ptx_kernel *k = q->k;
    if (q->v->stages == 2) { /* the parity changes after slot 1 */
        if (slot->has_parity)
            ptx_xor_b32_to(k, slot->parity, slot->parity, slot->index);
        ptx_xor_b32_to(k, slot->index, slot->index, U32(1));
        return;
    }
    move_on(q, slot->index, 1);
    ptx_pred wraps = ptx_setp_eq_u32(k, slot->index, U32(q->v->stages));
    ptx_selp_u32_to(k, slot->index, U32(0), slot->index, wraps);
    if (slot->has_parity) {
        ptx_u32 other = ptx_xor_b32(k, slot->parity, U32(1));
        ptx_selp_u32_to(k, slot->parity, other, slot->parity, wraps);
    }
}

ptx_u32 rmsnorm_q4k_slot_address(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_stream *s,
                                 struct rmsnorm_q4k_slot slot)
{
    return times_plus(q, slot.index, STAGE_BYTES, s->ring);
}

/*
 * For sm_120 and sm_121 ptxas puts a system call, with a stack frame, beside a tensor copy whose
 * destination is in the cluster's window.
 */
static bool copies_to_cta(const struct rmsnorm_q4k_kernel *q)
{
    return q->plan->target.ptx.sm >= 120;
}

/* One lane issues the copies of both halves, which arrive whole with the zeros past the end. */
static void copy_boxes(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_stream *s,
                       ptx_u32 stage, ptx_u32 barrier, ptx_u32 pair)
{
    ptx_kernel *k = q->k;
    ptx_u32 column = times(q, pair, PAIR_BYTES / 4);
    ptx_mbarrier_arrive_expect_tx(k, barrier, 0, U32(STAGE_BYTES));
    for (int box = 0; box < boxes(q); box++) {
        ptx_s32 corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(s->rows[box])};
        int to = box * HALF_ROWS * PAIR_BYTES;
        if (copies_to_cta(q))
            ptx_cp_async_bulk_tensor_2d_g2s_cta_hint(k, stage, to, s->maps[box], corner, barrier, 0,
                                                     EVICT_FIRST);
        else
            ptx_cp_async_bulk_tensor_2d_g2s_hint(k, stage, to, s->maps[box], corner, barrier, 0,
                                                 EVICT_FIRST);
    }
}

/* True in one lane of the warp, where `issues` is true. */
static ptx_pred elected(struct rmsnorm_q4k_kernel *q, ptx_pred issues)
{
    ptx_pred leader = ptx_new_pred();
    ptx_elect_sync(q->k, &leader, ALL_LANES);
    return ptx_and_pred(q->k, leader, issues);
}

/* Two lanes copy a row. At the end of an odd number of super-blocks a pair has only one. */
static void copy_pieces(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_stream *s,
                        ptx_u32 stage)
{
    ptx_kernel *k = q->k;
    ptx_u32 row = shifted(q, q->at.lane, 1);
    ptx_u32 odd = masked(q, q->at.lane, 1);
    ptx_u32 piece = times(q, odd, 16);
    ptx_u32 in_stage = times_plus(q, row, PAIR_BYTES, piece);
    ptx_u32 to = ptx_add_u32(k, stage, in_stage);
    bool uneven = super_blocks(q->spec) % PAIR;
    ptx_pred whole = ptx_setp_ne_u32(k, s->pair, U32(uneven ? pairs(q->spec) - 1 : pairs(q->spec)));
    for (int i = 0; i < PAIR_BYTES / 32; i++) {
        if (!uneven || 32 * (i + 1) <= SUPER_BLOCK_BYTES) {
            ptx_cp_async_cg(k, to, 32 * i, s->source, 32 * i, 16);
            continue;
        }
        ptx_pred first_half = whole; /* of the piece across the middle the even lane's part */
        if (32 * i < SUPER_BLOCK_BYTES)
            first_half = ptx_or_pred(k, whole, is_zero(q, odd));
        ptx_guarded(k, first_half)
            ptx_cp_async_cg(k, to, 32 * i, s->source, 32 * i, 16);
    }
}

/* Moves to the tile of the next round. */
static void next_tile(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *s)
{
    ptx_mov_u32_to(q->k, s->pair, q->wk);
    move_on(q, s->output, tile_step(q));
    locate_tile(q, s);
}

/* Moves one pair on, and past the end of a row to the tile of the next round. */
static void advance(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *s)
{
    ptx_kernel *k = q->k;
    move_on(q, s->pair, q->v->wk);
    if (!tensor(q))
        ptx_add_u64_to(k, s->source, s->source, U64(q->v->wk * PAIR_BYTES));
    if (q->v->rounds == 1)
        return;
    uint32_t end = steps(q->spec, q->v->wk) * q->v->wk;
    ptx_if(k, ptx_setp_ge_u32(k, s->pair, U32(end)))
        next_tile(q, s);
}

/* Whether all warps along K have equally many pairs of a tile. */
static bool shares_evenly(const struct rmsnorm_q4k_kernel *q)
{
    return pairs(q->spec) % q->v->wk == 0;
}

void rmsnorm_q4k_issue_load(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *s)
{
    ptx_kernel *k = q->k;
    ptx_pred issues = ptx_setp_lt_u32(k, s->output, U32(outputs(q->spec)));
    if (!shares_evenly(q) || q->v->rounds == 1)
        issues = ptx_setp_bool_lt_u32(k, s->pair, U32(pairs(q->spec)), issues);
    if (tensor(q)) {
        ptx_if(k, elected(q, issues)) {
            ptx_u32 barrier = times_plus(q, s->fill.index, 8, s->barriers);
            copy_boxes(q, s, rmsnorm_q4k_slot_address(q, s, s->fill), barrier, s->pair);
        }
    } else {
        ptx_if(k, issues)
            copy_pieces(q, s, rmsnorm_q4k_slot_address(q, s, s->fill));
        ptx_cp_async_commit_group(k);
    }
    if (shares_evenly(q)) { /* past the last tile no copies are issued */
        rmsnorm_q4k_advance_slot(q, &s->fill);
    } else {
        ptx_if(k, issues)
            rmsnorm_q4k_advance_slot(q, &s->fill);
    }
    advance(q, s);
}

/* ---- the ring's first copies ---- */

/*
 * Whether the ring's first copies are all of the warp's first tile. All warps wait for one token's
 * x, which arrives behind the copies that are issued before it. So where x is larger than the first
 * slots of all warps, only one warp of four issues a copy before x.
 */
static bool is_within_tile(const struct rmsnorm_q4k_kernel *q)
{
    return tensor(q) && shares_evenly(q) && loads_ahead(q->v) <= steps(q->spec, q->v->wk);
}

static void issue_slot(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_stream *s,
                       uint32_t slot, ptx_u32 pair)
{
    ptx_kernel *k = q->k;
    ptx_u32 stage = slot ? ptx_add_u32(k, s->ring, U32(slot * STAGE_BYTES)) : s->ring;
    ptx_u32 barrier = slot ? ptx_add_u32(k, s->barriers, U32(slot * 8)) : s->barriers;
    copy_boxes(q, s, stage, barrier, pair);
}

static void issue_slots(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_stream *s,
                        uint32_t first, uint32_t end)
{
    ptx_kernel *k = q->k;
    for (uint32_t i = first; i < end; i++)
        issue_slot(q, s, i, i ? ptx_add_u32(k, s->pair, U32(i * q->v->wk)) : s->pair);
}

static ptx_pred is_late(struct rmsnorm_q4k_kernel *q)
{
    return ptx_setp_ne_u32(q->k, masked(q, q->at.warp, 3), U32(0));
}

void rmsnorm_q4k_issue_first_load(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *s)
{
    ptx_kernel *k = q->k;
    if (!is_within_tile(q)) {
        rmsnorm_q4k_issue_load(q, s);
        return;
    }
    ptx_pred issues = ptx_setp_lt_u32(k, s->output, U32(outputs(q->spec)));
    if (x_is_larger(q->spec, q->v))
        issues = ptx_and_pred(k, issues, ptx_not_pred(k, is_late(q)));
    ptx_if(k, elected(q, issues))
        issue_slots(q, s, 0, 1);
}

void rmsnorm_q4k_issue_other_loads(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *s)
{
    ptx_kernel *k = q->k;
    uint32_t ahead = loads_ahead(q->v);
    if (!is_within_tile(q)) {
        ptx_u32 filled = ptx_mov_u32(k, U32(1));
        ptx_for(k, filled, U32(ahead), U32(1)) {
            ptx_nounroll(k);
            rmsnorm_q4k_issue_load(q, s);
        }
        return;
    }
    if (ahead > 1) {
        ptx_pred issues = ptx_setp_lt_u32(k, s->output, U32(outputs(q->spec)));
        ptx_if(k, elected(q, issues)) {
            if (x_is_larger(q->spec, q->v))
                ptx_if(k, is_late(q))
                    issue_slots(q, s, 0, 1);
            issue_slots(q, s, 1, ahead);
        }
    }
    if (ahead < q->v->stages)
        ptx_mov_u32_to(k, s->fill.index, U32(ahead));
    move_on(q, s->pair, ahead * q->v->wk);
    if (ahead == steps(q->spec, q->v->wk) && q->v->rounds > 1)
        next_tile(q, s);
}

void rmsnorm_q4k_wait(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_stream *s,
                      struct rmsnorm_q4k_slot slot)
{
    ptx_kernel *k = q->k;
    if (!tensor(q)) {
        ptx_cp_async_wait_group(k, (int)q->v->stages - 1);
        ptx_bar_warp_sync(k, ALL_LANES);
        return;
    }
    ptx_u32 barrier = times_plus(q, slot.index, 8, s->barriers);
    gemm_ring_wait(k, &(struct gemm_ring_place){.barrier = barrier, .parity = slot.parity});
}
