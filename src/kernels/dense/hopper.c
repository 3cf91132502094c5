/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dense kernel on wgmma (sm_90a), in 16-bit types. A thread of a persistent CTA sends for
 * stages, 64 columns of both operands in swizzled boxes of 128 bytes a row that tensor copies bring
 * (zeros past their ends); warpgroups multiply them, each its own rows of W with all of X's:
 *
 *               X: tile_n rows      wgmma's operand A is 64 rows of W, its B all of X, both from
 *              ┌─────────────┐      shared memory, which gives 128 bytes a cycle. A slice of 16
 *     W:       │ warpgroup 0 │      columns of 64 × 256 products takes 128 cycles and reads 10 KB,
 *     tile_m   ├─────────────┤      one of 64 × 128 takes 64 cycles and reads 6 KB; the copies of
 *     rows     │ warpgroup 1 │      128 + 256 rows take 48 bytes a cycle more.
 *              └─────────────┘
 *
 * Two CTAs of a cluster may have the same rows of X, each its own of W: both send for half of X, to
 * both. With 256 rows of X and 128 of W a stage so takes 32 KB from the L2 instead of 48, for 1024
 * cycles of products: 4096³ took 198 µs of an H200 instead of 225. These tiles are never divided.
 *
 * Or a cluster's CTAs have the same tile, one in all, and a share of K each, and bring their sums
 * together in shared memory: where tiles are fewer than multiprocessors. With that and tiles of 64
 * rows of W, 4096 × 4096 took 12.1 µs for 64 rows, where mma.sync's tiles took 17.5.
 */
#include "emit.h"

#include "../tile/boxes.h"
#include "../tile/wgmma.h"

struct hopper {
    struct dense_product q;
    struct tile_ring ring;
    struct tile_boxes boxes; /* of X */
    struct tile_ring_place read;
    ptx_u32 to_read;    /* stages of the CTA after the present one */
    ptx_u32 held;       /* the barrier of the stage before the present one */
    ptx_u32 first, end; /* stages of the CTA */
    ptx_u32 w_at;       /* the warpgroup's rows of W in a stage */
    ptx_pred releases, accumulate;
};

static uint32_t x_bytes(const struct hopper *h)
{
    return tile_operand_stage_bytes(dense_tile_n(h->q.v), 1);
}

/* ---- sending ---- */

struct sender {
    ptx_u64 w_map;
    ptx_u32 x_row, w_row; /* the first of the tile that the CTA sends for */
    struct tile_ring_place place;
};

/* Turns to the next part of the walk. */
static void turn_to(struct hopper *h, struct sender *s, struct tile_walk *walk)
{
    struct dense_product *q = &h->q;
    ptx_kernel *k = q->k;
    tile_walk_next(k, &q->division, walk);
    struct tile_place first = dense_find_tile(q, walk->tile);
    ptx_mov_u32_to(k, s->w_row, first.n);
    if (h->ring.ctas)
        ptx_mad_lo_u32_to(k, s->x_row, q->rank, U32(dense_box_rows(q->v)), first.m);
    else
    {
        ptx_mov_u32_to(k, s->x_row, first.m);
        tile_boxes_locate(k, &h->boxes, first.m);
    }
}

static void send(struct hopper *h, const struct sender *s, ptx_u32 stage)
{
    ptx_kernel *k = h->q.k;
    const struct tile_ring_place *p = &s->place;
    if (h->q.v->split > 1)
        stage = ptx_mad_lo_u32(k, h->q.rank, U32(h->q.division.stages), stage);
    ptx_u32 column = ptx_mul_lo_u32(k, stage, U32(DENSE_BLOCK_BYTES / dense_element(h->q.spec)));
    const ptx_s32 x_corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(s->x_row)};
    const ptx_s32 w_corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(s->w_row)};
    if (h->ring.ctas) {
        uint32_t bytes = dense_box_rows(h->q.v) * DENSE_BLOCK_BYTES;
        ptx_u32 slot = ptx_mad_lo_u32(k, h->q.rank, U32(bytes), p->slot);
        ptx_cp_async_bulk_tensor_2d_g2s_multicast(k, slot, 0, h->boxes.map, x_corner, p->barrier, 0,
                                                  ptx_imm_u16((uint16_t)((1 << h->ring.ctas) - 1)));
    } else
        ptx_cp_async_bulk_tensor_2d_g2s(k, p->slot, 0, h->boxes.map, x_corner, p->barrier, 0);
    ptx_cp_async_bulk_tensor_2d_g2s(k, p->slot, (int)x_bytes(h), s->w_map, w_corner, p->barrier, 0);
}

/* One thread sends for all stages of the CTA, part by part. */
static void send_all(struct hopper *h, ptx_param w_map)
{
    struct dense_product *q = &h->q;
    ptx_kernel *k = q->k;
    struct sender s = {.w_map = ptx_param_address(k, w_map)};
    s.x_row = ptx_mov_u32(k, U32(0));
    s.w_row = ptx_mov_u32(k, U32(0));
    s.place = tile_ring_first(k, &h->ring, true);
    struct tile_walk walk = tile_walk_begin(k, h->first, h->end);
    ptx_loop(k, parts) {
        ptx_nounroll(k);
        turn_to(h, &s, &walk);
        ptx_for(k, walk.stage, walk.stage_end, U32(1)) {
            ptx_nounroll(k);
            tile_ring_claim_some(k, &h->ring, &s.place, h->boxes.bytes);
            send(h, &s, walk.stage);
            tile_ring_advance(k, &h->ring, &s.place, NULL);
        }
        ptx_loop_break_if(&parts, ptx_setp_le_u32(k, walk.end, h->first), false);
    }
}

/* ---- multiplying ---- */

static void multiply_tile(struct hopper *h, uint32_t t, ptx_u64 w, ptx_u64 x)
{
    struct dense_product *q = &h->q;
    int n = (int)dense_tile_n(q->v);
    ptx_f32 *acc = q->acc[t][0];
    if (q->spec->type == PTXGEN_BF16)
        ptx_wgmma_k16_f32_bf16(q->k, n, acc, w, x, h->accumulate, 1, 1, 0, 0);
    else
        ptx_wgmma_k16_f32_f16(q->k, n, acc, w, x, h->accumulate, 1, 1, 0, 0);
}

/* The first `steps` of a stage's, a group. */
static void multiply_steps(struct hopper *h, uint32_t steps, ptx_u64 w, ptx_u64 x)
{
    enum { TILE_BYTES = 64 * DENSE_BLOCK_BYTES };
    ptx_kernel *k = h->q.k;
    for (uint32_t i = 0; i < steps; i++)
        for (uint32_t t = 0; t < dense_tiles(&h->q); t++)
            multiply_tile(h, t, tile_wgmma_advance(k, w, t * TILE_BYTES + i * DENSE_STEP_BYTES),
                          tile_wgmma_advance(k, x, i * DENSE_STEP_BYTES));
    ptx_wgmma_commit_group(k);
}

/*
 * Of tiles of most sums the text has one step: each product of 256 rows that it has more takes
 * ptxas a tenth longer. A step is a group of its own then, or a wait would take in the last step.
 */
static void multiply_one_by_one(struct hopper *h, ptx_u64 w, ptx_u64 x)
{
    ptx_kernel *k = h->q.k;
    ptx_u32 step = ptx_mov_u32(k, U32(0));
    ptx_for(k, step, U32(DENSE_STEPS), U32(1)) {
        ptx_nounroll(k);
        multiply_steps(h, 1, w, x);
        ptx_mov_u64_to(k, w, tile_wgmma_advance(k, w, DENSE_STEP_BYTES));
        ptx_mov_u64_to(k, x, tile_wgmma_advance(k, x, DENSE_STEP_BYTES));
    }
}

/* `stage` of a part that starts at `first`: the stage before is given back when it has been
 * multiplied. */
static void multiply_stage(struct hopper *h, ptx_u32 stage, ptx_u32 first)
{
    struct dense_product *q = &h->q;
    ptx_kernel *k = q->k;
    ptx_u64 x = tile_wgmma_descriptor(k, h->read.slot);
    ptx_u64 w = tile_wgmma_descriptor(k, ptx_add_u32(k, h->read.slot, h->w_at));
    ptx_pred release = ptx_setp_bool_ne_u32(k, stage, first, h->releases);
    ptx_wgmma_fence(k);
    bool most = dense_fragments(q->v) > DENSE_MOST_DIVIDED;
    if (most)
        multiply_one_by_one(h, w, x);
    else
        multiply_steps(h, DENSE_STEPS, w, x);
    ptx_wgmma_wait_group(k, most ? DENSE_STEPS : 1);
    tile_ring_release(k, &h->ring, h->held, release);
    tile_ring_turn(k, &h->ring, &h->read, h->held, h->to_read);
}

static void begin_multiplying(struct hopper *h)
{
    struct dense_product *q = &h->q;
    ptx_kernel *k = q->k;
    uint32_t tiles = dense_tiles(q);
    q->at.team = dense_threads(q->v);
    q->at.barrier = U32(1);
    ptx_u32 group = ptx_shr_u32(k, q->at.warp, U32(2));
    ptx_u32 in_group = ptx_and_b32(k, q->at.warp, U32(DENSE_WARPGROUP - 1));
    q->along_m = ptx_mad_lo_u32(k, group, U32(tiles * DENSE_WARPGROUP), in_group);
    q->along_n = q->along_k = U32(0);
    uint32_t bytes = tiles * DENSE_WARPGROUP * DENSE_TILE * DENSE_BLOCK_BYTES;
    h->w_at = ptx_mad_lo_u32(k, group, U32(bytes), U32(x_bytes(h)));
    for (uint32_t t = 0; t < tiles; t++)
        for (uint32_t j = 0; j < dense_row_groups(q); j++)
            for (int r = 0; r < 4; r++)
                q->acc[t][j][r] = ptx_mov_f32(k, F32(0));
    ptx_u32 stages = ptx_sub_u32(k, h->end, h->first);
    h->to_read = ptx_sub_u32(k, stages, U32(1));
    h->read = tile_ring_first(k, &h->ring, false);
    h->held = ptx_mov_u32(k, h->read.barrier);
    h->releases = tile_ring_releasers(k, &h->ring, &q->at);
    h->accumulate = ptx_setp_eq_u32(k, stages, stages);
}

static void multiply_all(struct hopper *h)
{
    struct dense_product *q = &h->q;
    ptx_kernel *k = q->k;
    begin_multiplying(h);
    dense_begin_output(q);
    tile_ring_wait(k, &h->read);
    struct tile_walk walk = tile_walk_begin(k, h->first, h->end);
    ptx_loop(k, parts) {
        ptx_nounroll(k);
        ptx_section(k, "the next part of a tile");
        tile_walk_next(k, &q->division, &walk);
        ptx_u32 first = ptx_mov_u32(k, walk.stage);
        dense_clear(q);
        ptx_section(k, "stages");
        ptx_for(k, walk.stage, walk.stage_end, U32(1)) {
            ptx_nounroll(k);
            multiply_stage(h, walk.stage, first);
        }
        ptx_wgmma_wait_group(k, 0);
        tile_ring_release(k, &h->ring, h->held, h->releases);
        ptx_section(k, "the end of the part: sum over CTAs, store");
        tile_output_end(&q->output, &walk, first);
        ptx_loop_break_if(&parts, ptx_setp_le_u32(k, walk.end, h->first), false);
    }
    if (q->v->split > 1) { /* the others have read this CTA's sums */
        ptx_barrier_cluster_arrive_relaxed(k);
        ptx_barrier_cluster_wait(k);
    }
}

/* ---- the entry ---- */

static void begin(struct hopper *h)
{
    struct dense_product *q = &h->q;
    ptx_kernel *k = q->k;
    uint32_t tile_n = dense_tile_n(q->v);
    dense_load_params(q);
    q->at = tile_find_threads(k);
    q->tiles_n = tile_divide(k, ptx_add_u32(k, q->n, U32(tile_n - 1)), tile_n);
    q->unit = tile_divide(k, q->at.cta, dense_cluster(q->v));
    q->rank = ptx_and_b32(k, q->at.cta, U32(dense_cluster(q->v) - 1));
    h->first = tile_first_stage(k, &q->division, q->unit);
    h->end = tile_first_stage(k, &q->division, ptx_add_u32(k, q->unit, U32(1)));
    q->at.cta = q->unit;
    q->last_tile = tile_divide(k, ptx_sub_u32(k, h->end, U32(1)), q->division.stages);
    h->ring = (struct tile_ring){.stages = q->v->stages,
                                 .stage_bytes = dense_stage_bytes(q->v),
                                 .users = dense_threads(q->v) / 32,
                                 .ctas = q->v->cluster > 1 ? q->v->cluster : 0};
}

void dense_emit_wgmma_entry(const ptxgen_dense_plan *plan, const ptxgen_dense_variant *v,
                            ptx_module *module)
{
    struct hopper *h = &(struct hopper){.q = {.spec = &plan->spec, .plan = plan, .v = v}};
    struct dense_product *q = &h->q;
    ptx_kernel *k = q->k = ptx_kernel_begin(module, ptxgen_dense_entry(v));
    ptx_kernel_reqntid(k, dense_cta_threads(v), 1, 1);
    ptx_kernel_minnctapersm(k, v->ctas);
    begin(h);
    ptx_param x_maps = ptx_param_declare(k, "x_maps", 2 * TILE_MAP_BYTES, TILE_MAP_ALIGN);
    ptx_param w_map = ptx_param_declare(k, "w_map", TILE_MAP_BYTES, TILE_MAP_ALIGN);
    tile_ring_declare(k, &h->ring);
    tile_ring_begin(k, &q->at, &h->ring);
    h->boxes = (struct tile_boxes){.rows = dense_tile_n(v),
                                   .blocks = 1,
                                   .stage_bytes = dense_stage_bytes(v),
                                   .maps = ptx_param_address(k, x_maps),
                                   .all = q->n};
    tile_boxes_begin(k, &h->boxes);
    if (v->cluster == 1) /* a pair's boxes are halves, whatever X has of them */
        tile_boxes_clear(k, &h->boxes, &q->at, dense_cta_threads(v), &h->ring);
    uint32_t groups = dense_threads(v) / TILE_WARPGROUP;
    ptx_if_else(k, ptx_setp_lt_u32(k, q->at.warp, U32(groups * DENSE_WARPGROUP))) {
        tile_wgmma_divide_registers(k, groups, true);
        multiply_all(h);
    } else {
        tile_wgmma_divide_registers(k, groups, false);
        ptx_section(k, "send for stages");
        ptx_if(k, ptx_setp_eq_u32(k, q->at.thread, U32(dense_threads(v))))
            send_all(h, w_map);
    }
    if (v->cluster > 1) { /* the other may still send to this one, and release its slots */
        ptx_bar_warp_sync(k, ALL_LANES);
        ptx_barrier_cluster_arrive(k);
        ptx_barrier_cluster_wait(k);
    }
    ptx_kernel_end(k);
}
