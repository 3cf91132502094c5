/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of dense with bulk copies and mma.sync (sm_90), for many tokens in 16-bit types.
 * There is no producer warp, since a ninth warp would leave each thread too few registers: the 8
 * consumer warps of 64 × 64 (2 along N by 4 along M) issue the copies in rotation, one warp for
 * each stage.
 *
 *     warp s % 8       multiply half of stage s, issue copies of a later stage, multiply the rest
 *     other warps      multiply stage s
 *
 * Each warp walks through the stages at its own pace, and stores its own sums at the end of a tile
 * while other warps multiply. Tiles are whole. A stage of 64 of K takes 48 KB from the L2, and 32
 * KB with a cluster of two CTAs that multicasts the tokens. Measurements and rejected designs are
 * in docs/notes/dense.md.
 */
#include "emit.h"

/* The thread that `issues` holds for issues the next stage; all threads go on to the one after it.
 */
static void issue_next(struct dense_product *q, ptx_pred issues)
{
    struct gemm *g = &q->g;
    ptx_kernel *k = g->k;
    struct gemm_producer *p = &q->producer.p;
    ptx_if(k, ptx_setp_ne_u32(k, q->to_issue, U32(0))) {
        ptx_if(k, ptx_setp_eq_u32(k, p->walk.stage, p->walk.stage_end))
            dense_locate(g, p);
        ptx_if(k, issues)
            dense_issue(g, p);
        gemm_ring_advance(k, &g->ring, &p->place, NULL);
        ptx_add_u32_to(k, p->walk.stage, p->walk.stage, U32(1));
        ptx_sub_u32_to(k, q->to_issue, q->to_issue, U32(1));
    }
}

/* One slot stays free: that of the stage before the present one, which some warps may still read.
 */
static void issue_first(struct dense_product *q)
{
    ptx_kernel *k = q->g.k;
    dense_begin_producer(q);
    q->to_issue = ptx_sub_u32(k, q->g.end, q->g.first);
    ptx_pred issues = ptx_setp_eq_u32(k, q->g.at.thread, U32(0));
    ptx_u32 issued = ptx_mov_u32(k, U32(1));
    ptx_for(k, issued, U32(q->g.ring.stages), U32(1)) {
        ptx_nounroll(k);
        issue_next(q, issues);
    }
}

/* In a stage's second half, when the other warps have most likely done with the stage before. */
static void issue_in_turn(void *user)
{
    struct dense_product *q = user;
    const struct gemm_threads *at = &q->g.at;
    ptx_kernel *k = q->g.k;
    ptx_u32 warp = ptx_and_b32(k, q->to_issue, U32(q->g.ring.users - 1));
    ptx_pred lane = ptx_setp_eq_u32(k, at->lane, U32(0));
    issue_next(q, ptx_setp_bool_eq_u32(k, warp, at->warp, lane));
}

static ptx_u32 next_in_ring(void *user)
{
    struct gemm *g = user;
    gemm_ring_next(g->k, &g->ring, &g->read, g->held[0], g->to_read);
    return g->read.slot;
}

static void begin_consumer(struct gemm *g)
{
    struct dense_product *q = dense_of(g);
    issue_first(q);
    g->at.team = gemm_tile_threads(q->v);
    dense_find_warp(q);
    dense_begin_operands(q);
    gemm_begin_reading(g);
    dense_begin_output(q);
    gemm_ring_wait(g->k, &g->read);
    dense_first_operands(q, g->read.slot);
}

static void multiply(struct gemm *g, const struct gemm_part *part)
{
    (void)part;
    const struct dense_between between = {.middle = issue_in_turn, .next = next_in_ring, .user = g};
    dense_multiply(dense_of(g), &between);
    gemm_ring_release(g->k, &g->ring, g->held[0], g->releases);
}

const struct gemm_ops dense_in_turn_ops = {.begin = dense_begin_bulk,
                                           .begin_consumer = begin_consumer,
                                           .clear = dense_clear,
                                           .multiply = multiply,
                                           .epilogue = gemm_epilogue,
                                           .end = dense_end_bulk};
