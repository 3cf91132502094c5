/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies in bulk of the stages that wgmma.sp multiplies (wgmma.c). Two lanes go through all stages
 * of the CTA, each at its own pace: one copies weights, a bulk copy for each strip of a stage, one
 * copies x, a tensor copy for each 128 bytes of K.
 */
#include "emit.h"

static uint64_t strip_bytes(const struct sparse24_product *q)
{
    return (uint64_t)sparse24_steps(q->spec) * sparse24_block_bytes(q->spec);
}

/* Stages whose weights are prefetched into the L2, after those that are copied ahead. */
static uint32_t stages_prefetched(const struct sparse24_product *q)
{
    enum { BYTES = 36864 /* of a CTA */ };
    uint32_t stages = BYTES / (sparse24_tile_strips(q->v) * sparse24_strip_stage_bytes(q));
    return stages ? stages : 1;
}

static void locate(struct gemm *g, struct gemm_producer *p)
{
    struct sparse24_product *q = sparse24_of(g);
    struct sparse24_producer *s = &q->producer;
    ptx_kernel *k = g->k;
    gemm_walk_next(k, &g->division, &p->walk);
    struct gemm_place place = sparse24_place_of(q, p->walk.tile);
    s->row = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    gemm_boxes_locate(k, &q->boxes, s->row);
    ptx_u32 last = U32(sparse24_strips(q->spec) - 1);
    ptx_u32 first = ptx_mul_lo_u32(k, place.n, U32(sparse24_tile_strips(q->v)));
    ptx_u32 strip = ptx_min_u32(k, first, last); /* past the last strip the last again, unused */
    s->strips_left = ptx_sub_u32(k, last, strip);
    s->strip =
        ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, strip), U64(strip_bytes(q)), q->address[SPARSE24_W]);
}

static void issue_x(struct sparse24_product *q, const struct sparse24_producer *s, ptx_u32 stage)
{
    ptx_kernel *k = q->g.k;
    const ptxgen_tile *v = q->v;
    uint32_t columns = GEMM_BLOCK_BYTES / sparse24_element(q->spec);
    ptx_u32 at = sparse24_stage_of(q, stage);
    ptx_u32 column = ptx_mul_lo_u32(k, at, U32(v->wk * SPARSE24_STEP));
    for (uint32_t i = 0; i < sparse24_x_blocks(q->spec, v); i++) {
        const ptx_s32 corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(s->row)};
        int to = (int)gemm_operand_stage_bytes(v->tile_m, i);
        ptx_cp_async_bulk_tensor_2d_g2s(k, s->p.place.slot, to, q->boxes.map, corner,
                                        s->p.place.barrier, 0);
        column = ptx_add_u32(k, column, U32(columns));
    }
}

/*
 * The L2 policy of weights: evict_first where no other tile reads them, so that x stays in the L2.
 */
static ptx_u64 weights_policy(const struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    ptx_u64 first = ptx_createpolicy_fractional_L2_evict_first_b64(k);
    ptx_u64 normal = ptx_createpolicy_fractional_L2_evict_normal_b64(k);
    return ptx_selp_u64(k, first, normal, ptx_setp_eq_u32(k, q->g.tiles_m, U32(1)));
}

/*
 * The address of the tile's first strip in a stage. Past w's last strip that one is copied again.
 */
static ptx_u64 first_strip(struct sparse24_product *q, const struct sparse24_producer *s,
                           ptx_u32 stage)
{
    ptx_u32 bytes = U32(sparse24_strip_stage_bytes(q));
    return ptx_mad_wide_u32(q->g.k, sparse24_stage_of(q, stage), bytes, s->strip);
}

static void advance_strip(struct sparse24_product *q, const struct sparse24_producer *s, ptx_u32 i,
                          ptx_u64 strip)
{
    ptx_kernel *k = q->g.k;
    ptx_u64 next = ptx_add_u64(k, strip, U64(strip_bytes(q)));
    ptx_selp_u64_to(k, strip, next, strip, ptx_setp_lt_u32(k, i, s->strips_left));
}

static void issue_strip(struct sparse24_product *q, const struct sparse24_producer *s, ptx_u32 slot,
                        int to, ptx_u64 from)
{
    ptx_cp_async_bulk_g2s_hint(q->g.k, slot, to, from, 0, U32(sparse24_strip_stage_bytes(q)),
                               s->p.place.barrier, 0, s->policy);
}

/* The text has one copy. */
static void issue_strips_in_a_loop(struct sparse24_product *q, struct sparse24_producer *s,
                                   ptx_u32 stage)
{
    ptx_kernel *k = q->g.k;
    s->policy = weights_policy(q);
    ptx_u64 strip = ptx_mov_u64(k, first_strip(q, s, stage));
    ptx_u32 slot = ptx_mov_u32(k, s->p.place.slot), i = ptx_mov_u32(k, U32(0));
    ptx_for(k, i, U32(sparse24_tile_strips(q->v)), U32(1)) {
        ptx_nounroll(k);
        issue_strip(q, s, slot, (int)sparse24_stage_x_bytes(q->spec, q->v), strip);
        advance_strip(q, s, i, strip);
        ptx_add_u32_to(k, slot, slot, U32(sparse24_strip_stage_bytes(q)));
    }
}

/* The text has a copy for each. */
static void issue_strips(struct sparse24_product *q, const struct sparse24_producer *s,
                         ptx_u32 stage)
{
    ptx_kernel *k = q->g.k;
    uint32_t strips = sparse24_tile_strips(q->v);
    bool tail = sparse24_strips(q->spec) % strips;
    ptx_u64 first = first_strip(q, s, stage), strip = first;
    for (uint32_t i = 0; i < strips; i++) {
        if (i && tail) {
            ptx_u32 exists = ptx_min_u32(k, s->strips_left, U32(i));
            strip = ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, exists), U64(strip_bytes(q)), first);
        } else if (i)
            strip = ptx_add_u64(k, strip, U64(strip_bytes(q)));
        int to = (int)(sparse24_stage_x_bytes(q->spec, q->v) + i * sparse24_strip_stage_bytes(q));
        issue_strip(q, s, s->p.place.slot, to, strip);
    }
}

/* Prefetches the weights of the next stages_prefetched stages, or of those that remain. */
static void prefetch_weights(struct sparse24_product *q, const struct sparse24_producer *s,
                             const struct gemm_walk *w)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 left = ptx_sub_u32(k, w->stage_end, w->stage);
    ptx_u32 stages = ptx_min_u32(k, left, U32(stages_prefetched(q)));
    ptx_u32 bytes = ptx_mul_lo_u32(k, stages, U32(sparse24_strip_stage_bytes(q)));
    ptx_u64 strip = ptx_mov_u64(k, first_strip(q, s, w->stage));
    ptx_u32 i = ptx_mov_u32(k, U32(0));
    ptx_for(k, i, U32(sparse24_tile_strips(q->v)), U32(1)) {
        ptx_nounroll(k);
        ptx_cp_async_bulk_prefetch_L2(k, strip, 0, bytes);
        advance_strip(q, s, i, strip);
    }
}

/* The first two warps of the producer warpgroup issue copies, one of weights, one of x. */
enum { PRODUCERS = 2, BEGUN = 2 /* number of the CTA barrier after which the ring may be used */ };

static uint32_t producer_warp(const struct sparse24_product *q, uint32_t producer)
{
    return gemm_tile_threads(q->v) / 32 + producer;
}

/*
 * The producer warp of weights sets the ring up, and goes on without waiting for the other warps.
 * These wait at a single bar.sync of the text, since compute-sanitizer's synccheck (CUDA 13.0)
 * takes two of them for divergence.
 */
void sparse24_begin_ring(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 all = U32(gemm_cta_threads(q->v));
    ptx_if_else(k, ptx_setp_eq_u32(k, q->g.at.warp, U32(producer_warp(q, 0)))) {
        ptx_if(k, ptx_setp_eq_u32(k, q->g.at.lane, U32(0))) {
            gemm_ring_init_full(k, &q->g.ring);
            gemm_ring_init_others(k, &q->g.ring);
        }
        ptx_bar_warp_sync(k, ALL_LANES);
        ptx_bar_arrive_n(k, U32(BEGUN), all);
    } else
        ptx_bar_sync_n(k, U32(BEGUN), all);
}

/* Stages whose weights are copied before the kernel ahead has ended: the whole ring, or fewer. */
static uint32_t stages_ahead(const struct sparse24_product *q)
{
    const ptxgen_tile *v = q->v;
    bool few = sparse24_exchanges(v) && v->tile_m >= 64;
    return few ? 256 / v->tile_n : q->g.ring.stages;
}

/*
 * Whether strips are copied in a loop: eight copies in the text take more than the 32 registers of
 * a producer lane. A stage of s8 is half as long, which makes a loop too slow, but its copies fit
 * into the registers.
 */
static bool loops_over_strips(const struct sparse24_product *q)
{
    return sparse24_has_few_registers(q->v) && !sparse24_is_s8(q->spec);
}

/*
 * The weights of a stage. Behind those of the first stages, and a prefetch of some more into the
 * L2, the lane waits for the kernel ahead.
 */
static void issue_weights(struct sparse24_product *q, struct sparse24_producer *s)
{
    ptx_kernel *k = q->g.k;
    ptx_if(k, ptx_setp_eq_u32(k, s->ahead, U32(0))) {
        prefetch_weights(q, s, &s->p.walk);
        ptx_griddepcontrol_wait(k);
    }
    ptx_sub_u32_to(k, s->ahead, s->ahead, U32(1));
    gemm_ring_claim_some(k, &q->g.ring, &s->p.place, q->boxes.bytes);
    if (loops_over_strips(q))
        issue_strips_in_a_loop(q, s, s->p.walk.stage);
    else
        issue_strips(q, s, s->p.walk.stage);
}

/* Two lanes run this code, one for weights, one for x. */
static void issue(struct gemm *g, struct gemm_producer *p)
{
    struct sparse24_product *q = sparse24_of(g);
    struct sparse24_producer *s = &q->producer;
    ptx_if_else(g->k, s->weights)
        issue_weights(q, s);
    else {
        gemm_ring_wait_free(g->k, &g->ring, &p->place);
        issue_x(q, s, p->walk.stage);
    }
}

static void issue_stages(struct sparse24_product *q, ptx_pred weights)
{
    ptx_kernel *k = q->g.k;
    struct sparse24_producer *s = &q->producer;
    s->weights = weights;
    s->p = (struct gemm_producer){.locate = locate, .issue = issue};
    s->p.place = gemm_ring_first(k, &q->g.ring, true);
    if (!loops_over_strips(q))
        s->policy = weights_policy(q);
    s->ahead = ptx_mov_u32(k, U32(stages_ahead(q)));
    s->p.walk = gemm_walk_begin(k, q->g.first, q->g.end);
    gemm_issue_parts(&q->g, &s->p);
}

/*
 * Weights may be read while the kernel ahead of this one still runs: those of the first stages are.
 * All else, x, the workspace and y, waits for that kernel's end.
 */
void sparse24_produce(struct gemm *g)
{
    struct sparse24_product *q = sparse24_of(g);
    ptx_kernel *k = g->k;
    ptx_if(k, ptx_setp_lt_u32(k, g->at.warp, U32(producer_warp(q, PRODUCERS)))) {
        ptx_u32 first = U32(producer_warp(q, 0));
        ptx_pred weights = ptx_setp_eq_u32(k, g->at.warp, first);
        ptx_if(k, ptx_setp_ne_u32(k, g->at.warp, first))
            ptx_griddepcontrol_wait(k);
        ptx_if(k, ptx_setp_eq_u32(k, g->at.lane, U32(0)))
            issue_stages(q, weights);
    }
    if (sparse24_exchanges(q->v)) {
        ptx_bar_warp_sync(k, ALL_LANES);
        ptx_barrier_cluster_wait(k);
    }
}
