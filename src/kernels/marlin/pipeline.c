/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline of copies into shared memory, ahead of the arithmetic and on through tiles' ends. */
#include "emit.h"

static void advance_slot(struct gemm *q, ptx_u32 slot)
{
    ptx_kernel *k = q->k;
    ptx_add_u32_to(k, slot, slot, U32(marlin_stage_bytes(q->spec, q->v)));
    ptx_pred past = ptx_setp_eq_u32(k, slot, q->pipeline.end);
    ptx_selp_u32_to(k, slot, q->pipeline.begin, slot, past);
}

static void locate(struct gemm *q, struct tile_walk *w)
{
    ptx_kernel *k = q->k;
    tile_walk_next(k, &q->division, w);
    struct tile_place place = tile_locate(k, w->tile, q->tiles_m, marlin_tiles_n(q->spec, q->v));
    ptx_u32 first_row = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    tile_operand_locate(k, &q->a, q->address[MARLIN_A], first_row, q->m, w->stage);
    marlin_emit_weights_locate(q, place.n, w->stage);
}

/*
 * All copies of a stage together: between reads of shared memory each cp.async would cost three more
 * instructions on an H100.
 */
static void send_all(struct gemm *q)
{
    struct pipeline *p = &q->pipeline;
    marlin_emit_weights_send(q, p->fill);
    tile_operand_send(q->k, &q->a, p->fill);
    advance_slot(q, p->fill);
    ptx_add_u32_to(q->k, p->copies.stage, p->copies.stage, U32(1));
    ptx_sub_u32_to(q->k, p->to_send, p->to_send, U32(1));
}

void marlin_emit_pipeline_send(struct gemm *q)
{
    ptx_kernel *k = q->k;
    struct pipeline *p = &q->pipeline;
    ptx_if(k, ptx_setp_ne_u32(k, p->to_send, U32(0))) {
        ptx_if(k, ptx_setp_eq_u32(k, p->copies.stage, p->copies.stage_end))
            locate(q, &p->copies);
        send_all(q);
    }
    ptx_cp_async_commit_group(k);
}

/* Waits, with all threads, for all but the newest groups of copies. */
static void wait_for_copies(struct gemm *q)
{
    ptx_cp_async_wait_group(q->k, q->v->stages - 3);
    ptx_bar_sync(q->k, 0);
}

void marlin_emit_pipeline_next(struct gemm *q)
{
    ptx_kernel *k = q->k;
    struct pipeline *p = &q->pipeline;
    ptx_u32 present = ptx_mov_u32(k, p->read);
    advance_slot(q, p->read);
    ptx_sub_u32_to(k, p->to_read, p->to_read, U32(1));
    ptx_pred more = ptx_setp_ne_u32(k, p->to_read, U32(0));
    ptx_selp_u32_to(k, p->read, p->read, present, more);
    wait_for_copies(q);
}

void marlin_emit_pipeline_begin(struct gemm *q, ptx_u32 first, ptx_u32 end)
{
    ptx_kernel *k = q->k;
    struct pipeline *p = &q->pipeline;
    uint32_t bytes = q->v->stages * marlin_stage_bytes(q->spec, q->v);
    p->begin = ptx_shared_address(k, ptx_shared_declare(k, "stages", bytes, TILE_BLOCK_BYTES));
    p->end = ptx_add_u32(k, p->begin, U32(bytes));
    p->fill = ptx_mov_u32(k, p->begin);
    p->read = ptx_mov_u32(k, p->begin);
    p->copies = tile_walk_begin(k, first, end);
    p->to_send = ptx_sub_u32(k, end, first);
    p->to_read = ptx_mov_u32(k, p->to_send);
    ptx_section(k, "first stages");
    ptx_u32 sent = ptx_mov_u32(k, U32(2));
    ptx_for(k, sent, U32(q->v->stages), U32(1)) {
        ptx_nounroll(k);
        marlin_emit_pipeline_send(q);
    }
    wait_for_copies(q);
}
