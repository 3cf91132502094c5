/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the entries with bulk copies have in common. A stage is 64 of K of both operands, in
 * swizzled boxes of 128 bytes a row that tensor copies bring, with zeros past the ends of the
 * operands.
 *
 * The two CTAs of a cluster may have the same tokens, and features of their own. Then each CTA
 * multicasts half of the tokens' rows to both CTAs, and copies its own rows of w.
 */
#include "emit.h"

void dense_begin_bulk(struct gemm *g)
{
    struct dense_product *q = dense_of(g);
    ptx_kernel *k = g->k;
    dense_load_params(q);
    g->at = gemm_find_threads(k);
    g->tiles_m = gemm_divide_up(k, g->m, q->v->tile_m);
    gemm_find_share(g);
    g->at.cta = g->unit;
    q->last_tile = gemm_divide(k, ptx_sub_u32(k, g->end, U32(1)), g->division.stages);
    g->ring = (struct gemm_ring){.stages = q->v->stages,
                                 .stage_bytes = dense_stage_bytes(q->v),
                                 .users = gemm_tile_threads(q->v) / 32,
                                 .ctas = q->v->cluster > 1 ? q->v->cluster : 0};
    ptx_param x_maps = ptx_param_declare(k, "x_maps", 2 * GEMM_MAP_BYTES, GEMM_MAP_ALIGN);
    q->w_map = ptx_param_declare(k, "w_map", GEMM_MAP_BYTES, GEMM_MAP_ALIGN);
    gemm_ring_declare(k, &g->ring);
    gemm_ring_begin(k, &g->at, &g->ring);
    q->boxes = (struct gemm_boxes){.rows = q->v->tile_m,
                                   .blocks = 1,
                                   .stage_bytes = dense_stage_bytes(q->v),
                                   .maps = ptx_param_address(k, x_maps),
                                   .all = g->m};
    gemm_boxes_begin(k, &q->boxes);
    if (q->v->cluster == 1) /* the boxes of a pair of CTAs are halves, whatever x has of them */
        gemm_boxes_clear(k, &q->boxes, &g->at, gemm_cta_threads(q->v), &g->ring);
}

void dense_end_bulk(struct gemm *g)
{
    ptx_kernel *k = g->k;
    if (dense_of(g)->v->cluster == 1)
        return;
    ptx_bar_warp_sync(
        k, ALL_LANES); /* the other CTA may still write this one's slots, and release them */
    ptx_barrier_cluster_arrive(k);
    ptx_barrier_cluster_wait(k);
}

uint32_t dense_stage_x_bytes(const struct dense_product *q)
{
    return gemm_operand_stage_bytes(q->v->tile_m, 1);
}

/* ---- issuing copies ---- */

void dense_begin_producer(struct dense_product *q)
{
    ptx_kernel *k = q->g.k;
    struct dense_producer *s = &q->producer;
    s->w_map = ptx_param_address(k, q->w_map);
    s->x_row = ptx_mov_u32(k, U32(0));
    s->w_row = ptx_mov_u32(k, U32(0));
    s->p = (struct gemm_producer){.locate = dense_locate, .issue = dense_issue};
    s->p.place = gemm_ring_first(k, &q->g.ring, true);
    s->p.walk = gemm_walk_begin(k, q->g.first, q->g.end);
}

void dense_locate(struct gemm *g, struct gemm_producer *p)
{
    struct dense_product *q = dense_of(g);
    ptx_kernel *k = g->k;
    gemm_walk_next(k, &g->division, &p->walk);
    struct gemm_place first = dense_find_tile(q, p->walk.tile);
    ptx_mov_u32_to(k, q->producer.w_row, first.n);
    if (g->ring.ctas)
        ptx_mad_lo_u32_to(k, q->producer.x_row, g->rank, U32(dense_box_rows(q->v)), first.m);
    else {
        ptx_mov_u32_to(k, q->producer.x_row, first.m);
        gemm_boxes_locate(k, &q->boxes, first.m);
    }
}

void dense_issue(struct gemm *g, struct gemm_producer *producer)
{
    struct dense_product *q = dense_of(g);
    ptx_kernel *k = g->k;
    const struct gemm_ring_place *p = &producer->place;
    gemm_ring_claim_some(k, &g->ring, p, q->boxes.bytes);
    ptx_u32 stage = producer->walk.stage;
    if (q->v->split > 1)
        stage = ptx_mad_lo_u32(k, g->rank, U32(g->division.stages), stage);
    ptx_u32 column = ptx_mul_lo_u32(k, stage, U32(DENSE_BLOCK_BYTES / dense_element(q->spec)));
    const ptx_s32 x_corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(q->producer.x_row)};
    const ptx_s32 w_corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(q->producer.w_row)};
    if (g->ring.ctas) {
        uint32_t bytes = dense_box_rows(q->v) * DENSE_BLOCK_BYTES;
        ptx_u32 slot = ptx_mad_lo_u32(k, g->rank, U32(bytes), p->slot);
        ptx_cp_async_bulk_tensor_2d_g2s_multicast(k, slot, 0, q->boxes.map, x_corner, p->barrier, 0,
                                                  ptx_imm_u16((uint16_t)((1 << g->ring.ctas) - 1)));
    } else
        ptx_cp_async_bulk_tensor_2d_g2s(k, p->slot, 0, q->boxes.map, x_corner, p->barrier, 0);
    ptx_cp_async_bulk_tensor_2d_g2s(k, p->slot, (int)dense_stage_x_bytes(q), q->producer.w_map,
                                    w_corner, p->barrier, 0);
}
