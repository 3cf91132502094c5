/* SPDX-License-Identifier: Apache-2.0 */
#include "epilogue.h"

/* ---- the share of a CTA ---- */

static ptx_u32 count_units(struct gemm *g)
{
    return gemm_divide(g->k, ptx_sreg_nctaid_x(g->k), g->cluster);
}

void gemm_find_share(struct gemm *g)
{
    ptx_kernel *k = g->k;
    g->unit = gemm_divide(k, g->at.cta, g->cluster);
    if (g->cluster > 1)
        g->rank = ptx_and_b32(k, g->at.cta, U32(g->cluster - 1));
    if (g->groups.count) {
        gemm_groups_begin(k, &g->at, g->m, &g->groups);
        gemm_groups_divide(k, &g->groups, count_units(g), g->whole_tiles, &g->division);
    }
    g->first = gemm_first_stage(k, &g->division, g->unit);
    g->end = gemm_first_stage(k, &g->division, ptx_add_u32(k, g->unit, U32(1)));
}

ptx_u32 gemm_deal_in_turn(struct gemm *g, ptx_u32 turn, ptx_u32 tile)
{
    ptx_kernel *k = g->k;
    ptx_u32 dealt = ptx_mad_lo_u32(k, turn, count_units(g), g->unit);
    ptx_pred whole = ptx_setp_eq_u32(k, g->division.granule, U32(g->division.stages));
    return ptx_selp_u32(k, dealt, tile, whole);
}

ptx_u32 gemm_begin_reading(struct gemm *g)
{
    ptx_kernel *k = g->k;
    ptx_u32 stages = ptx_sub_u32(k, g->end, g->first);
    g->to_read = ptx_sub_u32(k, stages, U32(1));
    g->read = gemm_ring_first(k, &g->ring, false);
    g->held[0] = ptx_mov_u32(k, g->read.barrier);
    g->releases = gemm_ring_releasers(k, &g->ring, &g->at);
    return stages;
}

void gemm_drain_wgmma(struct gemm *g)
{
    ptx_wgmma_wait_group(g->k, 0);
    gemm_ring_release(g->k, &g->ring, g->held[0], g->releases);
}

/* ---- the producer's loop ---- */

static void issue_part(struct gemm *g, struct gemm_producer *p)
{
    ptx_kernel *k = g->k;
    ptx_for(k, p->walk.stage, p->walk.stage_end, U32(1)) {
        ptx_nounroll(k);
        p->issue(g, p);
        gemm_ring_advance(k, p->ring ? p->ring : &g->ring, &p->place, NULL);
    }
}

void gemm_issue_parts(struct gemm *g, struct gemm_producer *p)
{
    ptx_kernel *k = g->k;
    if (g->one_part && p->located) {
        issue_part(g, p);
        return;
    }
    ptx_loop(k, parts) {
        ptx_nounroll(k);
        if (!p->located)
            p->locate(g, p);
        issue_part(g, p);
        ptx_loop_break_if(&parts, ptx_setp_le_u32(k, p->walk.end, g->first), false);
        if (p->located)
            p->locate(g, p);
    }
}

/* ---- the consumers' loop ---- */

static void multiply_stages(struct gemm *g, struct gemm_part *part)
{
    ptx_kernel *k = g->k;
    struct gemm_walk *w = &part->walk;
    ptx_for(k, w->stage, w->stage_end, U32(1)) {
        ptx_nounroll(k);
        g->ops->multiply(g, part);
    }
}

static void multiply_part(struct gemm *g, struct gemm_part *part)
{
    ptx_kernel *k = g->k;
    ptx_section(k, "the next part of a tile");
    part->first = g->whole_tiles     ? U32(0)
                  : g->keeps_no_walk ? part->walk.stage
                                     : ptx_mov_u32(k, part->walk.stage);
    g->ops->clear(g, part);
    ptx_section(k, "stages");
    if (g->loops_itself)
        g->ops->multiply_part(g, part);
    else
        multiply_stages(g, part);
    if (g->ops->drain)
        g->ops->drain(g);
    ptx_section(k, "the end of the part: sums of other warps and CTAs, epilogue");
    g->ops->epilogue(g, part);
}

static void multiply_parts(struct gemm *g)
{
    ptx_kernel *k = g->k;
    struct gemm_part part = {.walk = gemm_walk_begin(k, g->first, g->end)};
    if (g->one_part) {
        gemm_walk_next(k, &g->division, &part.walk);
        multiply_part(g, &part);
        return;
    }
    ptx_loop(k, parts) {
        ptx_nounroll(k);
        gemm_walk_next(k, &g->division, &part.walk);
        multiply_part(g, &part);
        ptx_loop_break_if(&parts, ptx_setp_le_u32(k, part.walk.end, g->first), false);
    }
}

/* ---- the entry ---- */

static void consume(struct gemm *g)
{
    if (g->ops->begin_consumer)
        g->ops->begin_consumer(g);
    multiply_parts(g);
    gemm_epilogue_leave(g);
}

/* Consumers take the registers that producers leave, a warpgroup at a time. */
static void set_registers(ptx_kernel *k, uint32_t registers, bool more)
{
    if (registers && more)
        ptx_setmaxnreg_inc(k, (int)registers);
    else if (registers)
        ptx_setmaxnreg_dec(k, (int)registers);
}

static void divide_roles(struct gemm *g)
{
    ptx_kernel *k = g->k;
    ptx_u32 number = g->parts_by_thread ? g->at.thread : g->at.warp;
    uint32_t consumers = g->parts_by_thread ? g->consumers : g->consumers / 32;
    ptx_if_else(k, ptx_setp_lt_u32(k, number, U32(consumers))) {
        set_registers(k, g->registers.consumer, true);
        consume(g);
    } else {
        set_registers(k, g->registers.producer, false);
        ptx_section(k, "producers");
        g->ops->produce(g);
    }
}

static void work(struct gemm *g)
{
    if (g->threads > g->consumers)
        divide_roles(g);
    else
        consume(g);
}

void gemm_emit_entry(struct gemm *g, ptx_module *module)
{
    ptx_kernel *k = g->k = ptx_kernel_begin(module, g->name);
    ptx_kernel_reqntid(k, g->threads, 1, 1);
    ptx_kernel_minnctapersm(k, g->ctas);
    g->ops->begin(g);
    if (!g->groups.count)
        work(g);
    else /* the host cannot know which CTAs have stages */
        ptx_if(k, ptx_setp_ne_u32(k, g->first, g->end))
            work(g);
    if (g->ops->end)
        g->ops->end(g);
    ptx_kernel_end(k);
}
