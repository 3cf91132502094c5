/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights by tensor copies, where the rows of all matrices are multiples of 16 bytes (sm_90).
 *
 * Each warp has a ring of its own, whose slots hold two units of K of the tile's 16 rows. One lane
 * issues a slot's copies, which arrive whole, with zeros for rows and bytes past the matrix; the
 * warp waits for them at the slot's mbarrier, and fills the slot again when all lanes have read it.
 * No other warp touches the ring.
 *
 *               K: pairs of units ──▶
 *     tile    │ w0 │ w1 │ w0 │ w1 │ …      wk = 2: a warp has every second pair of its tile
 *
 * Or four warps along K share a ring, whose slots hold a pair for each: the first warp issues the
 * copies of all when all lanes of the four have arrived at the slot's empty barrier.
 *
 * The tiles of all matrices are numbered through, by phase, and the copies run ahead across the
 * ends of tiles and phases: what a copy needs to know of its matrix are values in registers.
 */
#include "../gemm/ring.h"
#include "../policy.h"
#include "emit.h"

/* ---- places ---- */

/*
 * The tile's matrix and row, of its type the 32-bit words of a pair of units and the bytes of a
 * slot, and the warp's first pair of it.
 */
static void find_tile(struct gguf_linear_kernel *q, struct tensor_stream *s)
{
    ptx_kernel *k = q->k;
    uint32_t before = 0;
    ptx_u32 start = U32(0);
    bool is_first = true;
    for (uint32_t i = 0; i < q->phase_count; i++) {
        const struct phase *p = &q->phases[i];
        for (uint32_t j = 0; j < p->count; j++) {
            const uint32_t matrix = p->matrices[j], tiles = matrix_tiles(q->spec, matrix);
            const uint32_t words = pair_size(p->type->type) / 4;
            const uint32_t slot = TILE_ROWS * pairs_pitch(p->type->type, q->v->ring_warps);
            if (!tiles)
                continue;
            if (is_first) {
                ptx_mov_u64_to(k, s->map, q->maps[matrix]);
                ptx_mov_u32_to(k, s->pair_words, U32(words));
                ptx_mov_u32_to(k, s->slot_bytes, U32(slot));
            } else {
                ptx_pred is_in = ptx_setp_ge_u32(k, s->tile, U32(before));
                ptx_selp_u64_to(k, s->map, q->maps[matrix], s->map, is_in);
                ptx_selp_u32_to(k, s->pair_words, U32(words), s->pair_words, is_in);
                ptx_selp_u32_to(k, s->slot_bytes, U32(slot), s->slot_bytes, is_in);
                start = ptx_selp_u32(k, U32(before), start, is_in);
            }
            is_first = false;
            before += tiles;
        }
    }
    ptx_u32 in_matrix = ptx_sub_u32(k, s->tile, start);
    ptx_mul_lo_u32_to(k, s->row, in_matrix, U32(tile_features(q->spec)));
    ptx_add_u32_to(k, s->pair, q->wk, q->part_pair);
}

/* ---- slots ---- */

struct slot gguf_linear_first_slot(struct gguf_linear_kernel *q)
{
    struct slot slot;
    slot.index = ptx_mov_u32(q->k, U32(0));
    slot.parity = ptx_mov_u32(q->k, U32(0));
    return slot;
}

void gguf_linear_advance_slot(struct gguf_linear_kernel *q, struct slot *slot)
{
    ptx_kernel *k = q->k;
    ptx_add_u32_to(k, slot->index, slot->index, U32(1));
    ptx_pred wraps = ptx_setp_eq_u32(k, slot->index, U32(q->v->stages));
    ptx_selp_u32_to(k, slot->index, U32(0), slot->index, wraps);
    ptx_u32 other = ptx_xor_b32(k, slot->parity, U32(1));
    ptx_selp_u32_to(k, slot->parity, other, slot->parity, wraps);
}

ptx_u32 gguf_linear_slot_address(struct gguf_linear_kernel *q, struct slot slot)
{
    uint32_t bytes = tensor_slot_bytes(q->spec, q->v);
    return ptx_mad_lo_u32(q->k, slot.index, U32(bytes), q->ring);
}

/* The slot's full barrier; its empty barrier is `empty_barrier` bytes further. */
static ptx_u32 slot_barrier(struct gguf_linear_kernel *q, struct slot slot)
{
    return ptx_mad_lo_u32(q->k, slot.index, U32(8), q->ring_barriers);
}

void gguf_linear_wait(struct gguf_linear_kernel *q, struct slot slot)
{
    struct gemm_ring_place place = {.barrier = slot_barrier(q, slot), .parity = slot.parity};
    gemm_ring_wait(q->k, &place);
}

static uint32_t empty_barrier(const struct gguf_linear_kernel *q)
{
    return 8 * q->v->stages;
}

void gguf_linear_release(struct gguf_linear_kernel *q, struct slot slot)
{
    if (shares_slots(q->v)) /* all lanes arrive, for racecheck's sake (../gemm/ring.h) */
        ptx_mbarrier_arrive(q->k, slot_barrier(q, slot), (int)empty_barrier(q));
}

/* Of warps that share a ring, the first sets it up and fills its slots. */
static ptx_pred and_leads(struct gguf_linear_kernel *q, ptx_pred condition)
{
    return shares_slots(q->v) ? ptx_setp_bool_eq_u32(q->k, q->wk, U32(0), condition) : condition;
}

static void init_barriers(struct gguf_linear_kernel *q)
{
    ptx_kernel *k = q->k;
    ptx_if(k, and_leads(q, ptx_setp_eq_u32(k, q->at.lane, U32(0)))) {
        for (uint32_t i = 0; i < q->v->stages; i++)
            ptx_mbarrier_init(k, q->ring_barriers, (int)(8 * i), U32(1));
        for (uint32_t i = 0; shares_slots(q->v) && i < q->v->stages; i++)
            ptx_mbarrier_init(k, q->ring_barriers, (int)(empty_barrier(q) + 8 * i),
                              U32(32 * q->v->ring_warps));
        ptx_fence_mbarrier_init_release_cluster(k);
    }
    ptx_bar_warp_sync(k, ALL_LANES);
}

/* ---- copies ---- */

/*
 * For sm_120 and sm_121 ptxas puts a system call, with a stack frame, beside a tensor copy whose
 * destination is in the cluster's window.
 */
static bool copies_to_cta(const struct gguf_linear_kernel *q)
{
    return q->plan->target.ptx.sm >= 120;
}

static void copy_box(struct gguf_linear_kernel *q, ptx_u32 slot, ptx_u64 map,
                     const ptx_s32 corner[2], ptx_u32 barrier)
{
    if (copies_to_cta(q))
        ptx_cp_async_bulk_tensor_2d_g2s_cta_hint(q->k, slot, 0, map, corner, barrier, 0,
                                                 EVICT_FIRST);
    else
        ptx_cp_async_bulk_tensor_2d_g2s_hint(q->k, slot, 0, map, corner, barrier, 0, EVICT_FIRST);
}

/*
 * Waits until all warps of the ring have read what the slot had before. The phase before an
 * mbarrier's first counts as complete, so that nobody waits for slots that were never filled.
 */
static void wait_until_empty(struct gguf_linear_kernel *q, ptx_u32 full, struct slot slot)
{
    struct gemm_ring_place place;
    place.barrier = ptx_add_u32(q->k, full, U32(empty_barrier(q)));
    place.parity = ptx_xor_b32(q->k, slot.parity, U32(1));
    gemm_ring_wait(q->k, &place);
}

/* The map's element at which a slot's copies begin, a multiple of 16 bytes. */
static ptx_u32 first_element(struct gguf_linear_kernel *q, const struct tensor_stream *s)
{
    ptx_u32 word = ptx_mul_lo_u32(q->k, s->pair, s->pair_words);
    return shares_slots(q->v) ? ptx_shr_u32(q->k, word, U32(1)) : ptx_and_b32(q->k, word, U32(~3u));
}

void gguf_linear_issue_pair(struct gguf_linear_kernel *q, struct tensor_stream *s)
{
    ptx_kernel *k = q->k;
    ptx_pred leader = ptx_new_pred();
    ptx_elect_sync(k, &leader, ALL_LANES);
    ptx_pred exists = ptx_setp_lt_u32(k, s->tile, U32(all_tiles(q->spec)));
    ptx_if(k, ptx_and_pred(k, leader, and_leads(q, exists))) {
        ptx_u32 barrier = slot_barrier(q, s->fill), slot = gguf_linear_slot_address(q, s->fill);
        if (shares_slots(q->v))
            wait_until_empty(q, barrier, s->fill);
        ptx_u32 column = first_element(q, s);
        const ptx_s32 corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(s->row)};
        ptx_mbarrier_arrive_expect_tx(k, barrier, 0, s->slot_bytes);
        copy_box(q, slot, s->map, corner, barrier);
        if (is_interleaved(q->spec)) {
            ptx_u32 half = ptx_shr_u32(k, s->slot_bytes, U32(1));
            copy_box(q, ptx_add_u32(k, slot, half), q->maps[1], corner, barrier);
        }
    }
    gguf_linear_advance_slot(q, &s->fill);
    ptx_add_u32_to(k, s->pair, s->pair, U32(q->v->wk));
    ptx_if(k, ptx_setp_ge_u32(k, s->pair, q->part_end_pair)) {
        ptx_add_u32_to(k, s->tile, s->tile, U32(tile_step(q)));
        find_tile(q, s);
    }
}

struct tensor_stream gguf_linear_start_tensor_stream(struct gguf_linear_kernel *q)
{
    ptx_kernel *k = q->k;
    struct tensor_stream s;
    s.tile = ptx_mov_u32(k, q->own_tile);
    s.pair = ptx_mov_u32(k, U32(0));
    s.row = ptx_mov_u32(k, U32(0));
    s.pair_words = ptx_mov_u32(k, U32(0));
    s.slot_bytes = ptx_mov_u32(k, U32(0));
    s.map = ptx_mov_u64(k, U64(0));
    s.fill = gguf_linear_first_slot(q);
    init_barriers(q);
    find_tile(q, &s);
    return s;
}

void gguf_linear_fill_slots(struct gguf_linear_kernel *q, struct tensor_stream *s, ptx_u32 count)
{
    ptx_u32 filled = ptx_mov_u32(q->k, U32(0));
    ptx_loop(q->k, slots) {
        ptx_nounroll(q->k);
        ptx_loop_break_if(&slots, ptx_setp_ge_u32(q->k, filled, count), false);
        gguf_linear_issue_pair(q, s);
        ptx_add_u32_to(q->k, filled, filled, U32(1));
    }
}
