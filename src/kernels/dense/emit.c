/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of dense with cp.async and mma.sync, yᵀ = w·xᵀ: 16 features are the rows of mma's
 * operand A, and 8 tokens the columns of its operand B. Persistent CTAs of wn × wm × wk warps walk
 * through their shares of the tiles (fixup.h). Stages of both operands, 128·wk bytes of K, are
 * copied by cp.async across the ends of tiles, swizzled (operand.h) and read by ldmatrix:
 *
 *               x: tile_m tokens           4 × 2 warps of 64 × 64: 256 features by 128 tokens take
 *              ┌──────┬──────┐             48 KB a stage of 64 of K in 16 bits, for 1536 cycles of
 *     w:       │  w0  │  w4  │             products: 32 bytes from the L2 a cycle. A warp reads
 *     tile_n   ├──────┼──────┤             4 KB of shared memory for the 32 products of an mma
 *     features │  w1  │  w5  │             step, the 8 warps 85 bytes a cycle of 128.
 *              ├──────┼──────┤
 *              │  …   │  …   │
 *
 * All warps of a CTA stage their sums together at a tile's end. Measurements and rejected designs
 * are in docs/notes/dense.md.
 */
#include "emit.h"

#include "../gemm/empty.h"

void dense_load_params(struct dense_product *q)
{
    const ptxgen_dense_spec *s = q->spec;
    const struct gemm_param params[DENSE_M] = {
        [DENSE_X] = {"x", true},
        [DENSE_W] = {"w", true},
        [DENSE_BIAS] = {"bias", s->bias},
        [DENSE_RESIDUAL] = {"residual", s->residual},
        [DENSE_Y] = {"y", true},
        [DENSE_WORKSPACE] = {"workspace", true},
        [DENSE_X_STRIDE] = {"x_stride", true},
        [DENSE_W_STRIDE] = {"w_stride", true},
        [DENSE_RESIDUAL_STRIDE] = {"residual_stride", s->residual},
        [DENSE_Y_STRIDE] = {"y_stride", true},
    };
    ptx_kernel *k = q->g.k;
    gemm_params_u64(k, params, DENSE_M, q->address);
    if (q->use)
        q->use->params(q);
    q->g.m = ptx_param_u32(k, "m");
    gemm_division_begin(k, dense_own_stages(q->spec, q->v), &q->g.division);
}

/* ---- the pipeline's copies ---- */

/*
 * The place number of a tile of a cluster. Whole tiles are dealt out round-robin, so that the tiles
 * that are worked on at the same time are neighbours; a cluster walks from its last tile to its
 * first.
 */
static ptx_u32 deal_to_clusters(struct dense_product *q, ptx_u32 tile)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 units = gemm_divide(k, ptx_sreg_nctaid_x(k), q->v->cluster);
    ptx_u32 dealt = ptx_mad_lo_u32(k, ptx_sub_u32(k, q->last_tile, tile), units, q->g.unit);
    ptx_pred whole = ptx_setp_eq_u32(k, q->g.division.granule, U32(q->g.division.stages));
    return ptx_selp_u32(k, dealt, tile, whole);
}

struct gemm_place dense_find_tile(struct dense_product *q, ptx_u32 tile)
{
    uint32_t tiles_n = dense_tiles_n(q->spec, q->v), cluster = q->v->cluster;
    ptx_u32 dealt = tile; /* a cluster that divides K has one tile */
    if (cluster > 1)
        dealt = deal_to_clusters(q, tile);
    else if (q->v->split == 1)
        dealt = gemm_deal_places(q->g.k, &q->g.division, tile);
    struct gemm_place place = gemm_locate(q->g.k, dealt, q->g.tiles_m, tiles_n);
    place.m = ptx_mul_lo_u32(q->g.k, place.m, U32(q->v->tile_m));
    if (cluster > 1)
        place.n = ptx_mad_lo_u32(q->g.k, place.n, U32(cluster), q->g.rank);
    place.n = ptx_mul_lo_u32(q->g.k, place.n, U32(q->v->tile_n));
    return place;
}

static void locate(void *user, const struct gemm_walk *w)
{
    struct dense_product *q = user;
    struct gemm_place first = dense_find_tile(q, w->tile);
    gemm_operand_locate(q->g.k, &q->x, q->address[DENSE_X], first.m, q->g.m, w->stage);
    gemm_operand_locate(q->g.k, &q->w, q->address[DENSE_W], first.n, U32(q->spec->n), w->stage);
}

static void issue(void *user, ptx_u32 slot)
{
    struct dense_product *q = user;
    uint32_t x_bytes = gemm_operand_stage_bytes(q->v->tile_m, q->v->wk);
    gemm_operand_issue(q->g.k, &q->x, slot);
    gemm_operand_issue(q->g.k, &q->w, ptx_add_u32(q->g.k, slot, U32(x_bytes)));
}

/* ---- entries ---- */

static ptx_u32 rest_of(ptx_kernel *k, ptx_u32 x, uint32_t divisor)
{
    return divisor == 1 ? U32(0) : ptx_rem_u32(k, x, U32(divisor));
}

void dense_find_warp(struct dense_product *q)
{
    ptx_kernel *k = q->g.k;
    const ptxgen_tile *v = q->v;
    ptx_u32 above_n = gemm_divide(k, q->g.at.warp, v->wn);
    q->along_n = rest_of(k, q->g.at.warp, v->wn);
    q->along_m = rest_of(k, above_n, v->wm);
    q->along_k = v->wk == 1 ? U32(0) : gemm_divide(k, above_n, v->wm);
}

/*
 * Sets an operand up; a warp reads the fragments from its own first row on. Copies in bulk are set
 * up elsewhere.
 */
static void begin_operand(struct dense_product *q, struct gemm_operand *o, uint32_t rows,
                          enum dense_param stride, ptx_u32 along, uint32_t warp_rows)
{
    ptx_kernel *k = q->g.k;
    o->rows = rows;
    o->blocks = q->v->wk;
    if (gemm_is_bulk(q->v))
        gemm_operand_begin_reading(k, &q->g.at, o);
    else {
        o->threads = gemm_tile_threads(q->v);
        o->row_bytes = dense_row_bytes(q->spec);
        uint32_t shift = dense_element(q->spec) / 2;
        gemm_operand_begin(k, &q->g.at, ptx_shl_b64(k, q->address[stride], U32(shift)), o);
    }
    gemm_operand_divide_rows(k, along, warp_rows, o);
}

void dense_begin_operands(struct dense_product *q)
{
    q->w.as_a = true;
    begin_operand(q, &q->x, q->v->tile_m, DENSE_X_STRIDE, q->along_m, q->v->warp_m);
    begin_operand(q, &q->w, q->v->tile_n, DENSE_W_STRIDE, q->along_n, q->v->warp_n);
    dense_declare_operands(q);
}

/* ---- epilogue ---- */

static void locate_output(void *user, ptx_u32 tile, struct gemm_epilogue *o)
{
    struct dense_product *q = user;
    struct gemm_place first = dense_find_tile(q, tile);
    o->first_row = first.m;
    o->first_column = first.n;
}

static ptx_u32 accumulator(const void *from, uint32_t t, uint32_t j, uint32_t r)
{
    const struct dense_product *q = from;
    return ptx_f32_as_u32(q->acc[t][j][r]);
}

void dense_begin_output(struct dense_product *q)
{
    ptx_kernel *k = q->g.k;
    const ptxgen_dense_spec *s = q->spec;
    const ptxgen_tile *v = q->v;
    struct gemm_epilogue *o = &q->output;
    ptx_u64 partials =
        ptx_add_u64(k, q->address[DENSE_WORKSPACE],
                    U64(gemm_partials_offset(&q->plan->target, PTXGEN_DENSE_MOST_CTAS)));
    *o = (struct gemm_epilogue){
        .g = &q->g,
        .at = &q->g.at,
        .type = (ptxgen_element)s->type,
        .activation = (ptxgen_activation)s->activation,
        .has_bias = s->bias,
        .has_residual = s->residual,
        .n = s->n,
        .y = q->address[DENSE_Y],
        .y_stride = q->address[DENSE_Y_STRIDE],
        .bias = q->address[DENSE_BIAS],
        .residual = q->address[DENSE_RESIDUAL],
        .residual_stride = q->address[DENSE_RESIDUAL_STRIDE],
        .partials = {.threads = gemm_tile_threads(v),
                     .fragments = dense_divides(v) ? dense_fragments(v) : 0},
        .first_partials = partials,
        .flags = q->address[DENSE_WORKSPACE],
        .sums = {.tile_m = v->tile_m,
                 .tile_n = v->tile_n,
                 .warp_m = v->warp_m,
                 .warp_n = v->warp_n,
                 .wk = v->wk,
                 .interleaved = gemm_is_wgmma(v),
                 .alone = dense_is_alone(v),
                 .ctas = v->split,
                 .pass_m = v->pass_m},
        .along = q->along_n,
        .along_k = q->along_k,
        .only = v->split > 1,
        .has_stmatrix = gemm_is_bulk(v),
        .acc = accumulator,
        .locate = locate_output,
        .user = q,
    };
    uint32_t staging = dense_staging_bytes(v);
    uint32_t align = dense_is_alone(v) ? 128 : 16;
    o->sums.staging = ptx_shared_address(k, ptx_shared_declare(k, "sums", staging, align));
    if (v->wm > 1)
        o->sums.warp_row = ptx_mul_lo_u32(k, q->along_m, U32(v->warp_m));
    if (q->use)
        q->use->output(q, o);
    gemm_epilogue_begin(o);
}

/* ---- copies by cp.async, products by mma.sync ---- */

static void begin_cp_async(struct gemm *g)
{
    struct dense_product *q = dense_of(g);
    dense_load_params(q);
    g->at = gemm_find_threads(g->k);
    dense_find_warp(q);
    g->tiles_m = gemm_divide_up(g->k, g->m, q->v->tile_m);
    dense_begin_operands(q);
    gemm_find_share(g);
    g->pipeline = (struct gemm_pipeline){.stages = q->v->stages,
                                         .stage_bytes = dense_stage_bytes(q->v),
                                         .division = &g->division,
                                         .locate = locate,
                                         .issue = issue,
                                         .user = q};
    gemm_pipeline_begin(g->k, &g->pipeline, g->first, g->end);
}

static void begin_consumer(struct gemm *g)
{
    struct dense_product *q = dense_of(g);
    dense_begin_output(q);
    dense_first_operands(q, g->pipeline.read);
}

static ptx_u32 next_in_pipeline(void *user)
{
    struct gemm *g = user;
    gemm_pipeline_next(g->k, &g->pipeline);
    return g->pipeline.read;
}

static void multiply(struct gemm *g, const struct gemm_part *part)
{
    (void)part;
    const struct dense_between between = {.next = next_in_pipeline, .user = g};
    gemm_pipeline_issue(g->k, &g->pipeline);
    dense_multiply(dense_of(g), &between);
}

static const struct gemm_ops cp_async_ops = {.begin = begin_cp_async,
                                             .begin_consumer = begin_consumer,
                                             .clear = dense_clear,
                                             .multiply = multiply,
                                             .epilogue = gemm_epilogue};

/* ---- entries ---- */

struct dense_product dense_make_product(const ptxgen_dense_plan *plan, const ptxgen_tile *v,
                                        const struct dense_use *use)
{
    static const struct gemm_ops *const ops[] = {[PTXGEN_MMA] = &cp_async_ops,
                                                 [PTXGEN_WGMMA] = &dense_wgmma_ops,
                                                 [PTXGEN_BULK] = &dense_in_turn_ops};
    struct dense_product q = {.g = {.ops = ops[v->kind],
                                    .name = use ? use->name : ptxgen_dense_entry(v),
                                    .consumers = gemm_tile_threads(v),
                                    .threads = gemm_cta_threads(v),
                                    .ctas = v->ctas,
                                    .cluster = dense_cluster(v),
                                    .whole_tiles = v->kind == PTXGEN_BULK},
                              .use = use,
                              .spec = &plan->spec,
                              .plan = plan,
                              .v = v};
    if (gemm_is_wgmma(v))
        q.g.registers = gemm_wgmma_registers(gemm_tile_threads(v) / GEMM_WARPGROUP);
    return q;
}

void dense_emit_entry(const ptxgen_dense_plan *plan, const ptxgen_tile *v,
                      const struct dense_use *use, ptx_module *module)
{
    struct dense_product q = dense_make_product(plan, v, use);
    gemm_emit_entry(&q.g, module);
}

ptxgen_status ptxgen_dense_emit(const ptxgen_dense_plan *plan, uint32_t variants,
                                ptx_module *module, ptxgen_error *err)
{
    if (!dense_is_plan(plan) || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: a plan that was made, and a module, must be given");
    const ptxgen_dense_spec *s = &plan->spec;
    if (gemm_is_empty(&dense_planner, plan)) {
        const struct gemm_empty empty = {.n = s->n,
                                         .type = (ptxgen_element)s->type,
                                         .bias_type = (ptxgen_element)s->type,
                                         .activation = (ptxgen_activation)s->activation,
                                         .bias = s->bias,
                                         .residual = s->residual};
        gemm_emit_empty(module, "dense_empty", &empty);
        return ptx_module_status(module, err);
    }
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (variants >> i & 1)
            dense_emit_entry(plan, &plan->variants[i], NULL, module);
    gemm_emit_align(module, "dense_align", plan->spec.k, dense_element(&plan->spec));
    return ptx_module_status(module, err);
}
