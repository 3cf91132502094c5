/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the entries with bulk copies have in common. A stage is 64 of K of both operands, in
 * swizzled boxes of 128 bytes a row that tensor copies bring, with zeros past the ends of the
 * operands.
 *
 * The two CTAs of a cluster may have the same tokens, and features of their own. Then each CTA
 * multicasts half of the tokens' rows to both CTAs, and copies its own rows of w.
 */
#include "bulk.h"

static void begin_walk(struct dense_bulk *b)
{
    struct dense_product *q = &b->q;
    ptx_kernel *k = q->k;
    uint32_t tile_m = dense_tile_m(q->v);
    dense_load_params(q);
    q->at = gemm_find_threads(k);
    q->tiles_m = gemm_divide(k, ptx_add_u32(k, q->m, U32(tile_m - 1)), tile_m);
    q->unit = gemm_divide(k, q->at.cta, dense_cluster(q->v));
    q->rank = ptx_and_b32(k, q->at.cta, U32(dense_cluster(q->v) - 1));
    b->first = gemm_first_stage(k, &q->division, q->unit);
    b->end = gemm_first_stage(k, &q->division, ptx_add_u32(k, q->unit, U32(1)));
    q->at.cta = q->unit;
    q->last_tile = gemm_divide(k, ptx_sub_u32(k, b->end, U32(1)), q->division.stages);
    b->ring = (struct gemm_ring){.stages = q->v->stages,
                                 .stage_bytes = dense_stage_bytes(q->v),
                                 .users = dense_threads(q->v) / 32,
                                 .ctas = q->v->cluster > 1 ? q->v->cluster : 0};
}

void dense_bulk_begin(struct dense_bulk *b, ptx_module *module)
{
    struct dense_product *q = &b->q;
    const ptxgen_dense_variant *v = q->v;
    ptx_kernel *k = q->k = ptx_kernel_begin(module, ptxgen_dense_entry(v));
    ptx_kernel_reqntid(k, dense_cta_threads(v), 1, 1);
    ptx_kernel_minnctapersm(k, v->ctas);
    begin_walk(b);
    ptx_param x_maps = ptx_param_declare(k, "x_maps", 2 * GEMM_MAP_BYTES, GEMM_MAP_ALIGN);
    b->w_map = ptx_param_declare(k, "w_map", GEMM_MAP_BYTES, GEMM_MAP_ALIGN);
    gemm_ring_declare(k, &b->ring);
    gemm_ring_begin(k, &q->at, &b->ring);
    b->boxes = (struct gemm_boxes){.rows = dense_tile_m(v),
                                   .blocks = 1,
                                   .stage_bytes = dense_stage_bytes(v),
                                   .maps = ptx_param_address(k, x_maps),
                                   .all = q->m};
    gemm_boxes_begin(k, &b->boxes);
    if (v->cluster == 1) /* in a cluster each CTA copies whole half boxes, so none are cleared */
        gemm_boxes_clear(k, &b->boxes, &q->at, dense_cta_threads(v), &b->ring);
}

void dense_bulk_end(struct dense_bulk *b)
{
    ptx_kernel *k = b->q.k;
    if (b->q.v->cluster > 1) { /* the other CTA may still copy to this CTA, and release its slots */
        ptx_bar_warp_sync(k, ALL_LANES);
        ptx_barrier_cluster_arrive(k);
        ptx_barrier_cluster_wait(k);
    }
    ptx_kernel_end(k);
}

uint32_t dense_bulk_x_bytes(const struct dense_bulk *b)
{
    return gemm_operand_stage_bytes(dense_tile_m(b->q.v), 1);
}

/* ---- producer ---- */

void dense_sender_begin(struct dense_bulk *b, struct dense_sender *s)
{
    ptx_kernel *k = b->q.k;
    s->w_map = ptx_param_address(k, b->w_map);
    s->x_row = ptx_mov_u32(k, U32(0));
    s->w_row = ptx_mov_u32(k, U32(0));
    s->place = gemm_ring_first(k, &b->ring, true);
    s->walk = gemm_walk_begin(k, b->first, b->end);
}

void dense_sender_turn(struct dense_bulk *b, struct dense_sender *s)
{
    struct dense_product *q = &b->q;
    ptx_kernel *k = q->k;
    gemm_walk_next(k, &q->division, &s->walk);
    struct gemm_place first = dense_find_tile(q, s->walk.tile);
    ptx_mov_u32_to(k, s->w_row, first.n);
    if (b->ring.ctas)
        ptx_mad_lo_u32_to(k, s->x_row, q->rank, U32(dense_box_rows(q->v)), first.m);
    else {
        ptx_mov_u32_to(k, s->x_row, first.m);
        gemm_boxes_locate(k, &b->boxes, first.m);
    }
}

void dense_sender_send(struct dense_bulk *b, const struct dense_sender *s)
{
    ptx_kernel *k = b->q.k;
    const struct gemm_ring_place *p = &s->place;
    ptx_u32 stage = s->walk.stage;
    if (b->q.v->split > 1)
        stage = ptx_mad_lo_u32(k, b->q.rank, U32(b->q.division.stages), stage);
    ptx_u32 column = ptx_mul_lo_u32(k, stage, U32(DENSE_BLOCK_BYTES / dense_element(b->q.spec)));
    const ptx_s32 x_corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(s->x_row)};
    const ptx_s32 w_corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(s->w_row)};
    if (b->ring.ctas) {
        uint32_t bytes = dense_box_rows(b->q.v) * DENSE_BLOCK_BYTES;
        ptx_u32 slot = ptx_mad_lo_u32(k, b->q.rank, U32(bytes), p->slot);
        ptx_cp_async_bulk_tensor_2d_g2s_multicast(k, slot, 0, b->boxes.map, x_corner, p->barrier, 0,
                                                  ptx_imm_u16((uint16_t)((1 << b->ring.ctas) - 1)));
    } else
        ptx_cp_async_bulk_tensor_2d_g2s(k, p->slot, 0, b->boxes.map, x_corner, p->barrier, 0);
    ptx_cp_async_bulk_tensor_2d_g2s(k, p->slot, (int)dense_bulk_x_bytes(b), s->w_map, w_corner,
                                    p->barrier, 0);
}

/* ---- consumer ---- */

ptx_u32 dense_bulk_begin_reading(struct dense_bulk *b)
{
    ptx_kernel *k = b->q.k;
    ptx_u32 stages = ptx_sub_u32(k, b->end, b->first);
    b->to_read = ptx_sub_u32(k, stages, U32(1));
    b->read = gemm_ring_first(k, &b->ring, false);
    b->held = ptx_mov_u32(k, b->read.barrier);
    b->releases = gemm_ring_releasers(k, &b->ring, &b->q.at);
    return stages;
}
