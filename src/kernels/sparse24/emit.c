/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sparse24 kernel, yᵀ = w·xᵀ: 16 features of w are the rows of mma.sp's operand A, which is the
 * sparse one, 8 tokens of x the columns of its B. A persistent CTA a multiprocessor, wn × wm × wk
 * warps, walks through its share of the tiles (gemm/walk.h). In a stage of the pipeline each
 * warp copies 32 features by 128 of K of w, and all share the tokens of x that go with them:
 *
 *              K: stages ──▶                  warps wn × wm × wk = 2 × 1 × 2
 *            ┌─────────┬─────────┬───
 *    N:      │ w0 │ w2 │ w0 │ w2 │ …          32 × 128 of w: 4608 bytes in 16 bits, 2560 of s8
 *    32·wn   ├────┼────┼────┼────┼───
 *            │ w1 │ w3 │ w1 │ w3 │ …
 *            └─────────┴─────────┴───
 *    x:      [tile_m tokens] × 128·wk of K a stage
 *
 * With many tokens two warps along M share 64 features, and each has half of the tokens: 64 × 64
 * products of a warp read 2/3 of the shared memory that 32 × 128 products read.
 *
 * A weight and its metadata are read from memory once, by the lane that multiplies them: 9/16 of
 * the bytes of dense weights, or 5/8 for s8. The pipeline goes on across the ends of tiles.
 *
 * Instead of dividing tiles among CTAs, the two CTAs of a cluster may each have half of K, and read
 * each other's sums in shared memory, which is faster than a fix-up through the L2.
 */
#include "emit.h"

#include "../gemm/empty.h"
#include "inflate.h"
#include "repack.h"

#include "../gemm/wgmma.h"

void sparse24_load_params(struct sparse24_product *q)
{
    const ptxgen_sparse24_spec *s = q->spec;
    const bool scaled = sparse24_is_s8(s);
    const struct gemm_param params[SPARSE24_M] = {
        [SPARSE24_X] = {"x", true},
        [SPARSE24_W] = {"w", true},
        [SPARSE24_X_SCALE] = {"x_scale", scaled},
        [SPARSE24_W_SCALE] = {"w_scale", scaled},
        [SPARSE24_BIAS] = {"bias", s->bias},
        [SPARSE24_RESIDUAL] = {"residual", s->residual},
        [SPARSE24_Y] = {"y", true},
        [SPARSE24_WORKSPACE] = {"workspace", true},
        [SPARSE24_X_STRIDE] = {"x_stride", true},
        [SPARSE24_RESIDUAL_STRIDE] = {"residual_stride", s->residual},
        [SPARSE24_Y_STRIDE] = {"y_stride", true},
    };
    ptx_kernel *k = q->g.k;
    gemm_params_u64(k, params, SPARSE24_M, q->address);
    q->g.m = ptx_param_u32(k, "m");
    gemm_division_begin(k, sparse24_own_stages(q->spec, q->v), &q->g.division);
}

/* ---- the stages of a CTA or a cluster ---- */

void sparse24_find_share(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    q->g.tiles_m = gemm_divide_up(k, q->g.m, q->v->tile_m);
    gemm_find_share(&q->g);
    ptx_u32 next = ptx_add_u32(k, q->g.unit, U32(1));
    ptx_u32 more = ptx_min_u32(k, next, q->g.division.extra);
    q->end_granule = ptx_mad_lo_u32(k, next, q->g.division.share, more);
}

/* A CTA walks from its last tile to its first. */
struct gemm_place sparse24_place_of(struct sparse24_product *q, ptx_u32 tile)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 last = ptx_sub_u32(k, q->end_granule, U32(1));
    ptx_u32 done = ptx_sub_u32(k, last, tile);
    ptx_u32 dealt = gemm_deal_in_turn(&q->g, done, tile);
    return gemm_locate(k, dealt, q->g.tiles_m, sparse24_tiles_n(q->spec, q->v));
}

/*
 * The number of a CTA's stage among all along K: the second CTA of a cluster has the second half.
 */
ptx_u32 sparse24_stage_of(struct sparse24_product *q, ptx_u32 stage)
{
    if (q->v->cluster == 1)
        return stage;
    return ptx_mad_lo_u32(q->g.k, q->g.rank, U32(q->g.division.stages), stage);
}

/* ---- the pipeline's copies ---- */

static void locate(void *user, const struct gemm_walk *w)
{
    struct sparse24_product *q = user;
    ptx_kernel *k = q->g.k;
    struct gemm_place place = sparse24_place_of(q, w->tile);
    ptx_u32 first_row = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    ptx_u32 stage = sparse24_stage_of(q, w->stage);
    gemm_operand_locate(k, &q->x, q->address[SPARSE24_X], first_row, q->g.m, stage);
    sparse24_weights_locate(q, place.n, stage);
}

static void issue(void *user, ptx_u32 slot)
{
    struct sparse24_product *q = user;
    sparse24_weights_issue(q, slot);
    gemm_operand_issue(q->g.k, &q->x, slot);
}

/*
 * Programmatic dependent launch: the weights of the first stages are prefetched into the L2 while
 * the kernel ahead still runs. Accesses to x, workspace and y wait for the end of that kernel.
 */
static void wait_for_previous(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    if (!gemm_overlaps(&q->plan->target))
        return;
    ptx_section(k, "weights to the L2, while the kernel ahead ends");
    ptx_griddepcontrol_launch_dependents(k);
    struct gemm_walk walk = gemm_walk_begin(k, q->g.first, q->g.end);
    gemm_walk_next(k, &q->g.division, &walk);
    ptx_u32 stage = sparse24_stage_of(q, walk.stage);
    struct gemm_place place = sparse24_place_of(q, walk.tile);
    sparse24_weights_locate(q, place.n, stage);
    sparse24_weights_prefetch(q, walk.stage, walk.stage_end);
    ptx_griddepcontrol_wait(k);
}

/* ---- entries ---- */

static void find_warp(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    q->g.at = gemm_find_threads(k);
    q->along_m = q->v->wm == 1 ? U32(0) : ptx_rem_u32(k, q->g.at.warp, U32(q->v->wm));
    ptx_u32 rest = gemm_divide(k, q->g.at.warp, q->v->wm);
    q->along_k = q->v->wk == 1 ? U32(0) : gemm_divide(k, rest, q->v->wn);
    q->along_n = q->v->wk == 1   ? rest
                 : q->v->wn == 1 ? U32(0)
                                 : ptx_rem_u32(k, rest, U32(q->v->wn));
}

static ptx_u64 in_bytes(ptx_kernel *k, ptx_u64 elements, uint32_t element)
{
    return element == 1 ? elements : ptx_shl_b64(k, elements, U32(element / 2));
}

static void begin(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    sparse24_load_params(q);
    find_warp(q);
    q->x = (struct gemm_operand){.rows = q->v->tile_m,
                                 .blocks = sparse24_x_blocks(q->spec, q->v),
                                 .threads = gemm_tile_threads(q->v),
                                 .row_bytes = (uint32_t)sparse24_x_bytes(q->spec),
                                 .deep = true};
    ptx_u64 pitch = in_bytes(k, q->address[SPARSE24_X_STRIDE], sparse24_element(q->spec));
    gemm_operand_begin(k, &q->g.at, pitch, &q->x);
    sparse24_weights_begin(q);
    sparse24_operands_begin(q);
}

static void begin_cp_async(struct gemm *g)
{
    struct sparse24_product *q = sparse24_of(g);
    const ptxgen_tile *v = q->v;
    ptx_kernel *k = g->k;
    begin(q);
    sparse24_find_share(q);
    g->pipeline = (struct gemm_pipeline){.stages = v->stages,
                                         .stage_bytes = sparse24_stage_bytes(q->spec, v),
                                         .division = &g->division,
                                         .locate = locate,
                                         .issue = issue,
                                         .user = q};
    wait_for_previous(q);
    gemm_pipeline_begin(k, &g->pipeline, g->first, g->end);
    q->staging = ptx_shared_address(k, ptx_shared_declare(k, "sums", sparse24_sums_bytes(v), 16));
}

static void begin_consumer(struct gemm *g)
{
    sparse24_first_operands(sparse24_of(g), g->pipeline.read);
}

static void epilogue(struct gemm *g, struct gemm_part *part)
{
    struct sparse24_product *q = sparse24_of(g);
    sparse24_output_begin(q);
    gemm_epilogue(g, part);
}

static const struct gemm_ops cp_async_ops = {.begin = begin_cp_async,
                                             .begin_consumer = begin_consumer,
                                             .clear = sparse24_clear,
                                             .multiply = sparse24_multiply,
                                             .epilogue = epilogue};

static void emit_entry(const ptxgen_sparse24_plan *plan, const ptxgen_tile *v, ptx_module *module)
{
    bool wgmma = gemm_is_wgmma(v);
    struct sparse24_product q = {.g = {.ops = wgmma ? &sparse24_wgmma_ops : &cp_async_ops,
                                       .name = ptxgen_sparse24_entry(v),
                                       .consumers = gemm_tile_threads(v),
                                       .threads = gemm_cta_threads(v),
                                       .ctas = 1,
                                       .cluster = v->cluster},
                                 .spec = &plan->spec,
                                 .plan = plan,
                                 .v = v};
    if (wgmma)
        q.g.registers = gemm_wgmma_registers(gemm_tile_threads(v) / GEMM_WARPGROUP);
    gemm_emit_entry(&q.g, module);
}

ptxgen_status ptxgen_sparse24_emit(const ptxgen_sparse24_plan *plan, uint32_t variants,
                                   ptx_module *module, ptxgen_error *err)
{
    if (!sparse24_is_plan(plan) || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: a plan that was made, and a module, must be given");
    const ptxgen_sparse24_spec *s = &plan->spec;
    if (gemm_is_empty(&sparse24_planner, plan)) {
        const struct gemm_empty empty = {.n = s->n,
                                         .type = (ptxgen_element)s->y_type,
                                         .bias_type = (ptxgen_element)s->y_type,
                                         .activation = (ptxgen_activation)s->activation,
                                         .bias = s->bias,
                                         .residual = s->residual};
        gemm_emit_empty(module, "sparse24_empty", &empty);
        return ptx_module_status(module, err);
    }
    if (sparse24_tier(&plan->spec) == 1) {
        ptxgen_status status = ptxgen_dense_emit(&plan->dense, variants, module, err);
        if (status == PTXGEN_OK)
            sparse24_emit_inflate(plan, module);
        return status == PTXGEN_OK ? ptx_module_status(module, err) : status;
    }
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (variants >> i & 1)
            emit_entry(plan, &plan->variants[i], module);
    gemm_emit_align(module, "sparse24_align", plan->spec.k, sparse24_element(&plan->spec));
    if (plan->spec.plain)
        sparse24_emit_repack(plan, module);
    return ptx_module_status(module, err);
}
