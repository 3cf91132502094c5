/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the entries of sparse24 have in common, whose ways to multiply are in mma.c and wgmma.c: yᵀ
 * = w·xᵀ, where 16 features of w are the rows of mma.sp's operand A, the sparse one.
 */
#include "emit.h"

#include "../gemm/empty.h"
#include "inflate.h"
#include "repack.h"

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

void sparse24_clear(struct gemm *g, const struct gemm_part *part)
{
    struct sparse24_product *q = sparse24_of(g);
    (void)part;
    for (uint32_t t = 0; t < sparse24_warp_tiles(q->v); t++)
        for (uint32_t j = 0; j < sparse24_row_groups(q); j++)
            gemm_new_registers(q->g.k, q->acc[t][j], 4);
}

/* ---- the epilogue ---- */

enum { FEW = 4 /* most columns of a chunk where registers are few */ };

static ptx_f32 column_scale(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 scales, uint32_t i)
{
    if (!c->ragged)
        return ptx_ld_global_nc_f32(k, scales, (int)(4 * i));
    ptx_f32 scale = ptx_mov_f32(k, F32(0));
    ptx_guarded(k, ptx_setp_gt_u32(k, c->left, U32(i)))
        ptx_ld_global_nc_f32_to(k, scale, scales, (int)(4 * i));
    return scale;
}

static void scale_s32(void *user, const struct gemm_epilogue_place *at, const ptx_u32 *sums,
                      ptx_f32 *v)
{
    const struct sparse24_product *q = user;
    ptx_kernel *k = q->g.k;
    ptx_u64 of_row = ptx_mad_wide_u32(k, at->row, U32(4), q->address[SPARSE24_X_SCALE]);
    ptx_u64 of_columns = ptx_mad_wide_u32(k, at->column, U32(4), q->address[SPARSE24_W_SCALE]);
    ptx_f32 row_scale = ptx_ld_global_nc_f32(k, of_row, 0);
    for (uint32_t i = 0; i < at->chunk.width; i++) {
        ptx_f32 sum = ptx_cvt_f32_s32(k, ptx_u32_as_s32(sums[i]));
        ptx_f32 scaled = ptx_mul_f32(k, sum, row_scale);
        v[i] = ptx_mul_f32(k, scaled, column_scale(k, &at->chunk, of_columns, i));
    }
}

static void locate(void *user, ptx_u32 tile, struct gemm_epilogue *o)
{
    struct sparse24_product *q = user;
    struct gemm_place place = sparse24_place_of(q, tile);
    o->first_row = ptx_mul_lo_u32(q->g.k, place.m, U32(q->v->tile_m));
    if (sparse24_exchanges(q->v)) {
        uint32_t rows = sparse24_finished_rows(q->v);
        ptx_u32 own = ptx_mad_lo_u32(q->g.k, q->g.rank, U32(rows), o->first_row);
        o->first_row = ptx_min_u32(q->g.k, own, q->g.m);
    }
    o->first_column = ptx_mul_lo_u32(q->g.k, place.n, U32(q->v->tile_n));
}

ptx_u32 sparse24_accumulator(const void *from, uint32_t t, uint32_t j, uint32_t r)
{
    const struct sparse24_product *q = from;
    return q->acc[t][j][r];
}

void sparse24_output_begin(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    const ptxgen_sparse24_spec *s = q->spec;
    const ptxgen_tile *v = q->v;
    bool integer = sparse24_is_s8(s), exchanges = sparse24_exchanges(v);
    ptx_u64 partials = ptx_add_u64(k, q->address[SPARSE24_WORKSPACE],
                                   U64(gemm_partials_offset(&q->plan->target, 1)));
    q->output = (struct gemm_epilogue){
        .g = &q->g,
        .at = &q->g.at,
        .type = (ptxgen_element)s->y_type,
        .activation = (ptxgen_activation)s->activation,
        .has_bias = s->bias,
        .has_residual = s->residual,
        .n = s->n,
        .y = q->address[SPARSE24_Y],
        .y_stride = q->address[SPARSE24_Y_STRIDE],
        .bias = q->address[SPARSE24_BIAS],
        .residual = q->address[SPARSE24_RESIDUAL],
        .residual_stride = q->address[SPARSE24_RESIDUAL_STRIDE],
        .flags = q->address[SPARSE24_WORKSPACE],
        .sums = {.tile_m = sparse24_finished_rows(v),
                 .tile_n = v->tile_n,
                 .warp_m = sparse24_finished_rows(v) / v->wm,
                 .warp_n = v->wm * v->warp_n,
                 .warp_row = ptx_mul_lo_u32(k, q->along_m, U32(v->warp_m)),
                 .wk = v->wk,
                 .interleaved = gemm_is_wgmma(v),
                 .alone = sparse24_warps_are_alone(v),
                 .integer = integer,
                 .ctas = exchanges ? 1 : v->cluster,
                 .pass_m = v->pass_m,
                 .staging = q->staging},
        .exchange = exchanges ? &q->exchange : NULL,
        .along = q->along_n,
        .along_k = q->along_k,
        .only = exchanges,
        .most_width = sparse24_has_few_registers(v) ? FEW : 0,
        .partials = {.threads = gemm_tile_threads(v),
                     .fragments = exchanges ? 0 : sparse24_fragments(v)},
        .first_partials = partials,
        .acc = sparse24_accumulator,
        .scale = integer ? scale_s32 : NULL,
        .locate = locate,
        .user = q,
    };
    gemm_epilogue_begin(&q->output);
}

/* ---- entries ---- */

static void emit_entry(const ptxgen_sparse24_plan *plan, const ptxgen_tile *v, ptx_module *module)
{
    bool wgmma = gemm_is_wgmma(v);
    struct sparse24_product q = {.g = {.ops = wgmma ? &sparse24_wgmma_ops : &sparse24_mma_ops,
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
