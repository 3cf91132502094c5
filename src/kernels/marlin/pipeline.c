/* SPDX-License-Identifier: Apache-2.0 */
/* The copies of marlin's pipeline: the weights and the activations of a stage. */
#include "emit.h"

static void locate(void *user, const struct gemm_walk *w)
{
    struct marlin_product *q = user;
    ptx_kernel *k = q->g.k;
    struct gemm_place place = marlin_emit_place(q, w->tile);
    ptx_u32 first_token = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    gemm_operand_locate(k, &q->x, q->address[MARLIN_X], first_token, q->g.m, w->stage);
    marlin_emit_weights_locate(q, place.n, w->stage);
}

/*
 * Issues all copies of a stage together, because a cp.async between reads of shared memory costs
 * more instructions.
 */
static void issue(void *user, ptx_u32 slot)
{
    struct marlin_product *q = user;
    marlin_emit_weights_issue(q, slot);
    gemm_operand_issue(q->g.k, &q->x, slot);
}

/* Prefetches the weights of the first stages into the L2. */
static void prefetch(struct marlin_product *q)
{
    ptx_kernel *k = q->g.k;
    struct gemm_walk walk = gemm_walk_begin(k, q->g.first, q->g.end);
    gemm_walk_next(k, &q->g.division, &walk);
    marlin_emit_weights_locate(q, marlin_emit_place(q, walk.tile).n, walk.stage);
    marlin_emit_weights_prefetch(q, walk.stage, walk.stage_end);
}

/*
 * Programmatic dependent launch: weights are prefetched while the kernel ahead still runs, and
 * accesses to activations, workspace and y wait for the end of that kernel. A CTA with few stages
 * does not prefetch, since that would cost as much time as it saves.
 */
static void wait_for_previous(struct marlin_product *q)
{
    ptx_kernel *k = q->g.k;
    if (!gemm_overlaps(&q->plan->target))
        return;
    ptx_section(k, "weights to the L2, while the kernel ahead ends");
    ptx_griddepcontrol_launch_dependents(k);
    ptx_if(k, ptx_setp_gt_u32(k, ptx_sub_u32(k, q->g.end, q->g.first), U32(q->v->stages)))
        prefetch(q);
    ptx_griddepcontrol_wait(k);
}

void marlin_emit_pipeline_begin(struct marlin_product *q)
{
    q->g.pipeline = (struct gemm_pipeline){.stages = q->v->stages,
                                           .stage_bytes = marlin_stage_bytes(q->spec, q->v),
                                           .division = &q->g.division,
                                           .locate = locate,
                                           .issue = issue,
                                           .user = q};
    wait_for_previous(q);
    gemm_pipeline_begin(q->g.k, &q->g.pipeline, q->g.first, q->g.end);
}
