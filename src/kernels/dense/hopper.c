/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of dense on wgmma (sm_90a), for 16-bit types. A producer thread of a persistent CTA
 * issues the copies of stages (bulk.c), and consumer warpgroups multiply, each its own features by
 * all tokens of the tile:
 *
 *               x: tile_m tokens    Operand A of wgmma is 64 features, operand B all tokens, both
 *              ┌─────────────┐      from shared memory, which gives 128 bytes a cycle. A slice of
 *     w:       │ warpgroup 0 │      16 of K takes 128 cycles and reads 10 KB for 64 × 256 products,
 *     tile_n   ├─────────────┤      and 64 cycles and 6 KB for 64 × 128. The copies of 128 features
 *     features │ warpgroup 1 │      and 256 tokens write 48 bytes a cycle.
 *              └─────────────┘
 *
 * The CTAs of a cluster of two may have the same tokens and multicast them: with 256 tokens and 128
 * features a stage then takes 32 KB from the L2 instead of 48, for 1024 cycles of products. Such
 * tiles are never divided. Where tiles are fewer than multiprocessors, the CTAs of a cluster may
 * instead have one tile, divide its K, and add their sums in shared memory. Measurements are in
 * docs/notes/dense.md.
 */
#include "bulk.h"

#include "../gemm/wgmma.h"

struct hopper {
    struct dense_bulk b;
    ptx_u32 w_at; /* offset of the warpgroup's features in a stage */
    ptx_pred accumulate;
};

/* The producer's loop: one thread issues the copies of all stages of the CTA, part by part. */
static void send_all(struct dense_bulk *b)
{
    ptx_kernel *k = b->q.k;
    struct dense_sender s;
    dense_sender_begin(b, &s);
    ptx_loop(k, parts) {
        ptx_nounroll(k);
        dense_sender_turn(b, &s);
        ptx_for(k, s.walk.stage, s.walk.stage_end, U32(1)) {
            ptx_nounroll(k);
            gemm_ring_claim_some(k, &b->ring, &s.place, b->boxes.bytes);
            dense_sender_send(b, &s);
            gemm_ring_advance(k, &b->ring, &s.place, NULL);
        }
        ptx_loop_break_if(&parts, ptx_setp_le_u32(k, s.walk.end, b->first), false);
    }
}

/* ---- consumer ---- */

static void multiply_tile(struct hopper *h, uint32_t t, ptx_u64 w, ptx_u64 x)
{
    struct dense_product *q = &h->b.q;
    int n = (int)dense_tile_m(q->v);
    ptx_f32 *acc = q->acc[t][0];
    if (q->spec->type == PTXGEN_BF16)
        ptx_wgmma_k16_f32_bf16(q->k, n, acc, w, x, h->accumulate, 1, 1, 0, 0);
    else
        ptx_wgmma_k16_f32_f16(q->k, n, acc, w, x, h->accumulate, 1, 1, 0, 0);
}

/* Multiplies the first `steps` steps of a stage, as one wgmma group. */
static void multiply_steps(struct hopper *h, uint32_t steps, ptx_u64 w, ptx_u64 x)
{
    enum { TILE_BYTES = 64 * DENSE_BLOCK_BYTES };
    ptx_kernel *k = h->b.q.k;
    for (uint32_t i = 0; i < steps; i++)
        for (uint32_t t = 0; t < dense_tiles(&h->b.q); t++) {
            ptx_u64 step_x = gemm_wgmma_advance(k, x, i * DENSE_STEP_BYTES);
            ptx_u64 step_w = gemm_wgmma_advance(k, w, t * TILE_BYTES + i * DENSE_STEP_BYTES);
            multiply_tile(h, t, step_w, step_x);
        }
    ptx_wgmma_commit_group(k);
}

/*
 * For tiles of the most sums the text has one step, because each further product of 256 tokens in
 * the text takes ptxas a tenth longer. Each step is then a wgmma group of its own, so that a wait
 * for the step before does not wait for the last one.
 */
static void multiply_one_by_one(struct hopper *h, ptx_u64 w, ptx_u64 x)
{
    ptx_kernel *k = h->b.q.k;
    ptx_u32 step = ptx_mov_u32(k, U32(0));
    ptx_for(k, step, U32(DENSE_STEPS), U32(1)) {
        ptx_nounroll(k);
        multiply_steps(h, 1, w, x);
        ptx_mov_u64_to(k, w, gemm_wgmma_advance(k, w, DENSE_STEP_BYTES));
        ptx_mov_u64_to(k, x, gemm_wgmma_advance(k, x, DENSE_STEP_BYTES));
    }
}

/*
 * Multiplies stage `stage` of a part whose first stage is `first`, and releases the slot of the
 * stage before, once its products have completed.
 */
static void multiply_stage(struct hopper *h, ptx_u32 stage, ptx_u32 first)
{
    struct dense_product *q = &h->b.q;
    ptx_kernel *k = q->k;
    ptx_u64 x = gemm_wgmma_descriptor(k, h->b.read.slot);
    ptx_u64 w = gemm_wgmma_descriptor(k, ptx_add_u32(k, h->b.read.slot, h->w_at));
    ptx_pred release = ptx_setp_bool_ne_u32(k, stage, first, h->b.releases);
    ptx_wgmma_fence(k);
    bool most = dense_fragments(q->v) > DENSE_MOST_DIVIDED;
    if (most)
        multiply_one_by_one(h, w, x);
    else
        multiply_steps(h, DENSE_STEPS, w, x);
    ptx_wgmma_wait_group(k, most ? DENSE_STEPS : 1);
    gemm_ring_release(k, &h->b.ring, h->b.held, release);
    gemm_ring_next(k, &h->b.ring, &h->b.read, h->b.held, h->b.to_read);
}

static void begin_multiplying(struct hopper *h)
{
    struct dense_product *q = &h->b.q;
    ptx_kernel *k = q->k;
    uint32_t tiles = dense_tiles(q);
    q->at.team = dense_threads(q->v);
    q->at.barrier = U32(1);
    ptx_u32 group = ptx_shr_u32(k, q->at.warp, U32(2));
    ptx_u32 in_group = ptx_and_b32(k, q->at.warp, U32(DENSE_WARPGROUP - 1));
    q->along_n = ptx_mad_lo_u32(k, group, U32(tiles * DENSE_WARPGROUP), in_group);
    q->along_m = q->along_k = U32(0);
    uint32_t bytes = tiles * DENSE_WARPGROUP * DENSE_TILE * DENSE_BLOCK_BYTES;
    h->w_at = ptx_mad_lo_u32(k, group, U32(bytes), U32(dense_bulk_x_bytes(&h->b)));
    for (uint32_t t = 0; t < tiles; t++)
        for (uint32_t j = 0; j < dense_row_groups(q); j++)
            for (int r = 0; r < 4; r++)
                q->acc[t][j][r] = ptx_mov_f32(k, F32(0));
    ptx_u32 stages = dense_bulk_begin_reading(&h->b);
    h->accumulate = ptx_setp_eq_u32(k, stages, stages);
}

static void multiply_all(struct hopper *h)
{
    struct dense_product *q = &h->b.q;
    ptx_kernel *k = q->k;
    begin_multiplying(h);
    dense_begin_output(q);
    gemm_ring_wait(k, &h->b.read);
    struct gemm_walk walk = gemm_walk_begin(k, h->b.first, h->b.end);
    ptx_loop(k, parts) {
        ptx_nounroll(k);
        ptx_section(k, "the next part of a tile");
        gemm_walk_next(k, &q->division, &walk);
        ptx_u32 first = ptx_mov_u32(k, walk.stage);
        dense_clear(q);
        ptx_section(k, "stages");
        ptx_for(k, walk.stage, walk.stage_end, U32(1)) {
            ptx_nounroll(k);
            multiply_stage(h, walk.stage, first);
        }
        ptx_wgmma_wait_group(k, 0);
        gemm_ring_release(k, &h->b.ring, h->b.held, h->b.releases);
        ptx_section(k, "the end of the part: sum over CTAs, store");
        gemm_epilogue_end(&q->output, &walk, first);
        ptx_loop_break_if(&parts, ptx_setp_le_u32(k, walk.end, h->b.first), false);
    }
    if (q->v->split > 1) { /* all CTAs of the cluster have read this CTA's sums */
        ptx_barrier_cluster_arrive_relaxed(k);
        ptx_barrier_cluster_wait(k);
    }
}

/* ---- the entry ---- */

void dense_emit_wgmma_entry(const ptxgen_dense_plan *plan, const ptxgen_dense_variant *v,
                            ptx_module *module)
{
    struct hopper *h = &(struct hopper){.b.q = {.spec = &plan->spec, .plan = plan, .v = v}};
    struct dense_bulk *b = &h->b;
    dense_bulk_begin(b, module);
    ptx_kernel *k = b->q.k;
    uint32_t groups = dense_threads(v) / GEMM_WARPGROUP;
    ptx_if_else(k, ptx_setp_lt_u32(k, b->q.at.warp, U32(groups * DENSE_WARPGROUP))) {
        gemm_wgmma_divide_registers(k, groups, true);
        multiply_all(h);
    } else {
        gemm_wgmma_divide_registers(k, groups, false);
        ptx_section(k, "send for stages");
        ptx_if(k, ptx_setp_eq_u32(k, b->q.at.thread, U32(dense_threads(v))))
            send_all(b);
    }
    dense_bulk_end(b);
}
