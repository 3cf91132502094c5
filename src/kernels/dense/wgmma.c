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
#include "emit.h"

static void multiply_tile(struct dense_product *q, uint32_t t, ptx_u64 w, ptx_u64 x)
{
    int n = (int)q->v->tile_m;
    ptx_f32 *acc = q->acc[t][0];
    if (q->spec->type == PTXGEN_BF16)
        ptx_wgmma_k16_f32_bf16(q->g.k, n, acc, w, x, q->accumulate, 1, 1, 0, 0);
    else
        ptx_wgmma_k16_f32_f16(q->g.k, n, acc, w, x, q->accumulate, 1, 1, 0, 0);
}

/* Multiplies the first `steps` steps of a stage, as one wgmma group. */
static void multiply_steps(struct dense_product *q, uint32_t steps, ptx_u64 w, ptx_u64 x)
{
    enum { TILE_BYTES = 64 * DENSE_BLOCK_BYTES };
    ptx_kernel *k = q->g.k;
    for (uint32_t i = 0; i < steps; i++)
        for (uint32_t t = 0; t < dense_tiles(q); t++) {
            ptx_u64 step_x = gemm_wgmma_advance(k, x, i * DENSE_STEP_BYTES);
            ptx_u64 step_w = gemm_wgmma_advance(k, w, t * TILE_BYTES + i * DENSE_STEP_BYTES);
            multiply_tile(q, t, step_w, step_x);
        }
    ptx_wgmma_commit_group(k);
}

/*
 * For tiles of the most sums the text has one step, because each further product of 256 tokens in
 * the text takes ptxas a tenth longer. Each step is then a wgmma group of its own, so that a wait
 * for the step before does not wait for the last one.
 */
static void multiply_one_by_one(struct dense_product *q, ptx_u64 w, ptx_u64 x)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 step = ptx_mov_u32(k, U32(0));
    ptx_for(k, step, U32(DENSE_STEPS), U32(1)) {
        ptx_nounroll(k);
        multiply_steps(q, 1, w, x);
        ptx_mov_u64_to(k, w, gemm_wgmma_advance(k, w, DENSE_STEP_BYTES));
        ptx_mov_u64_to(k, x, gemm_wgmma_advance(k, x, DENSE_STEP_BYTES));
    }
}

/* The slot of the stage before is released when that stage's products have ended. */
static void multiply(struct gemm *g, const struct gemm_part *part)
{
    struct dense_product *q = dense_of(g);
    ptx_kernel *k = g->k;
    ptx_u64 x = gemm_wgmma_descriptor(k, g->read.slot);
    ptx_u64 w = gemm_wgmma_descriptor(k, ptx_add_u32(k, g->read.slot, q->w_at));
    ptx_pred release = ptx_setp_bool_ne_u32(k, part->walk.stage, part->first, g->releases);
    ptx_wgmma_fence(k);
    bool most = dense_fragments(q->v) > DENSE_MOST_DIVIDED;
    if (most)
        multiply_one_by_one(q, w, x);
    else
        multiply_steps(q, DENSE_STEPS, w, x);
    ptx_wgmma_wait_group(k, most ? DENSE_STEPS : 1);
    gemm_ring_release(k, &g->ring, g->held[0], release);
    gemm_ring_next(k, &g->ring, &g->read, g->held[0], g->to_read);
}

ptx_u32 dense_begin_warpgroup(struct gemm *g)
{
    struct dense_product *q = dense_of(g);
    ptx_kernel *k = g->k;
    uint32_t tiles = dense_tiles(q);
    g->at.team = gemm_tile_threads(q->v);
    g->at.barrier = U32(1);
    ptx_u32 group = ptx_shr_u32(k, g->at.warp, U32(2));
    ptx_u32 in_group = ptx_and_b32(k, g->at.warp, U32(GEMM_WARPGROUP_WARPS - 1));
    q->along_n = ptx_mad_lo_u32(k, group, U32(tiles * GEMM_WARPGROUP_WARPS), in_group);
    q->along_m = q->along_k = U32(0);
    return group;
}

/* Each warpgroup has rows of w of its own, and all of x. */
static void begin_consumer(struct gemm *g)
{
    struct dense_product *q = dense_of(g);
    ptx_kernel *k = g->k;
    uint32_t tiles = dense_tiles(q);
    ptx_u32 group = dense_begin_warpgroup(g);
    uint32_t bytes = tiles * GEMM_WARPGROUP_WARPS * DENSE_TILE * DENSE_BLOCK_BYTES;
    q->w_at = ptx_mad_lo_u32(k, group, U32(bytes), U32(dense_stage_x_bytes(q)));
    dense_declare_sums(q);
    ptx_u32 stages = gemm_begin_reading(g);
    q->accumulate = ptx_setp_eq_u32(k, stages, stages);
    dense_begin_output(q);
    gemm_ring_wait(k, &g->read);
}

static void produce(struct gemm *g)
{
    struct dense_product *q = dense_of(g);
    ptx_if(g->k, ptx_setp_eq_u32(g->k, g->at.thread, U32(gemm_tile_threads(q->v)))) {
        dense_begin_producer(q);
        gemm_issue_parts(g, &q->producer.p);
    }
}

const struct gemm_ops dense_wgmma_ops = {.begin = dense_begin_bulk,
                                         .begin_consumer = begin_consumer,
                                         .clear = dense_clear,
                                         .multiply = multiply,
                                         .drain = gemm_drain_wgmma,
                                         .epilogue = gemm_epilogue,
                                         .produce = produce,
                                         .end = dense_end_bulk};
