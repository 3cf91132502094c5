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
#include "bulk.h"

struct in_turn {
    struct dense_bulk b;
    struct dense_sender s;
    ptx_u32 to_send; /* stages whose copies are still to be issued */
};

/* Issues the copies of the next stage where `sends` holds; all threads move on by a stage. */
static void send_next(struct in_turn *t, ptx_pred sends)
{
    ptx_kernel *k = t->b.q.k;
    struct dense_sender *s = &t->s;
    ptx_if(k, ptx_setp_ne_u32(k, t->to_send, U32(0))) {
        ptx_if(k, ptx_setp_eq_u32(k, s->walk.stage, s->walk.stage_end))
            dense_sender_turn(&t->b, s);
        ptx_if(k, sends) {
            gemm_ring_claim_some(k, &t->b.ring, &s->place, t->b.boxes.bytes);
            dense_sender_send(&t->b, s);
        }
        gemm_ring_advance(k, &t->b.ring, &s->place, NULL);
        ptx_add_u32_to(k, s->walk.stage, s->walk.stage, U32(1));
        ptx_sub_u32_to(k, t->to_send, t->to_send, U32(1));
    }
}

/*
 * Issues the copies of the first stages. One slot stays free: that of the stage before the current
 * one, which other warps may still read.
 */
static void send_first(struct in_turn *t)
{
    struct dense_product *q = &t->b.q;
    ptx_kernel *k = q->k;
    dense_sender_begin(&t->b, &t->s);
    t->to_send = ptx_sub_u32(k, t->b.end, t->b.first);
    ptx_pred sends = ptx_setp_eq_u32(k, q->at.thread, U32(0));
    ptx_u32 sent = ptx_mov_u32(k, U32(1));
    ptx_for(k, sent, U32(t->b.ring.stages), U32(1)) {
        ptx_nounroll(k);
        send_next(t, sends);
    }
}

/*
 * Executed in the middle of a stage, when the other warps have most likely released the slot of the
 * stage before: one lane of the warp that is next in the rotation issues the copies of a stage.
 */
static void send_in_turn(void *user)
{
    struct in_turn *t = user;
    const struct gemm_threads *at = &t->b.q.at;
    ptx_kernel *k = t->b.q.k;
    ptx_u32 warp = ptx_and_b32(k, t->to_send, U32(t->b.ring.users - 1));
    ptx_pred lane = ptx_setp_eq_u32(k, at->lane, U32(0));
    send_next(t, ptx_setp_bool_eq_u32(k, warp, at->warp, lane));
}

static ptx_u32 turn_to_next(void *user)
{
    struct dense_bulk *b = &((struct in_turn *)user)->b;
    gemm_ring_next(b->q.k, &b->ring, &b->read, b->held, b->to_read);
    return b->read.slot;
}

static void begin(struct in_turn *t)
{
    struct dense_product *q = &t->b.q;
    send_first(t);
    q->at.team = dense_threads(q->v);
    dense_find_warp(q);
    dense_begin_reading(q);
    dense_operands_begin(q);
    dense_bulk_begin_reading(&t->b);
    dense_begin_output(q);
    gemm_ring_wait(q->k, &t->b.read);
    dense_first_operands(q, t->b.read.slot);
}

void dense_emit_in_turn_entry(const ptxgen_dense_plan *plan, const ptxgen_dense_variant *v,
                              ptx_module *module)
{
    struct in_turn *t = &(struct in_turn){.b.q = {.spec = &plan->spec, .plan = plan, .v = v}};
    struct dense_bulk *b = &t->b;
    struct dense_product *q = &b->q;
    const struct dense_between between = {.middle = send_in_turn, .next = turn_to_next, .user = t};
    dense_bulk_begin(b, module);
    ptx_kernel *k = q->k;
    begin(t);
    struct gemm_walk walk = gemm_walk_begin(k, b->first, b->end);
    ptx_loop(k, parts) {
        ptx_nounroll(k);
        ptx_section(k, "the next tile");
        gemm_walk_next(k, &q->division, &walk);
        dense_clear(q);
        ptx_section(k, "stages: multiply one, send for another");
        ptx_for(k, walk.stage, walk.stage_end, U32(1)) {
            ptx_nounroll(k);
            dense_multiply(q, &between);
            gemm_ring_release(k, &b->ring, b->held, b->releases);
        }
        ptx_section(k, "the end of the tile: store");
        gemm_epilogue_end(&q->output, &walk, U32(0));
        ptx_loop_break_if(&parts, ptx_setp_le_u32(k, walk.end, b->first), false);
    }
    dense_bulk_end(b);
}
