/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of marlin with cp.async and mma.sync. A persistent CTA of wn × wk warps walks through
 * its share of the tiles (fixup.h). In a stage of the pipeline each warp has `steps` times 64 of
 * K of its own features, and all warps along N share the activations:
 *
 *              K: stages ──▶                  warps wn × wk = 2 × 2
 *            ┌─────────┬─────────┬───
 *    N:      │ w0 │ w2 │ w0 │ w2 │ …          warp_n features × 64·steps of K each
 *    tile_n  ├────┼────┼────┼────┼───
 *            │ w1 │ w3 │ w1 │ w3 │ …
 *            └─────────┴─────────┴───
 *    x:      [tile_m tokens] × 64·steps·wk of K a stage
 *
 * A weight is read from memory once, by the lane that multiplies it: half a byte, plus its share of
 * the scales. The pipeline goes on across the ends of tiles.
 */
#include "bulk.h"

/* ---- parameters ---- */

static bool is_used(const ptxgen_marlin_spec *s, int param)
{
    switch (param) {
    case MARLIN_ZEROS: return s->zeros;
    case MARLIN_BIAS: return s->bias;
    case MARLIN_UP_BIAS: return s->bias && marlin_gated(s);
    case MARLIN_RESIDUAL:
    case MARLIN_RESIDUAL_STRIDE: return s->residual;
    default: return true;
    }
}

void marlin_emit_params(struct marlin_product *q)
{
    static const char *const names[MARLIN_M] = {[MARLIN_X] = "x",
                                                [MARLIN_CODES] = "codes",
                                                [MARLIN_SCALES] = "scales",
                                                [MARLIN_ZEROS] = "zeros",
                                                [MARLIN_BIAS] = "bias",
                                                [MARLIN_UP_BIAS] = "up_bias",
                                                [MARLIN_RESIDUAL] = "residual",
                                                [MARLIN_Y] = "y",
                                                [MARLIN_WORKSPACE] = "workspace",
                                                [MARLIN_X_STRIDE] = "x_stride",
                                                [MARLIN_RESIDUAL_STRIDE] = "residual_stride",
                                                [MARLIN_Y_STRIDE] = "y_stride"};
    ptx_kernel *k = q->g.k;
    for (int i = 0; i < MARLIN_M; i++)
        q->address[i] = gemm_param_u64(k, names[i], is_used(q->spec, i));
    q->g.m = ptx_param_u32(k, "m");
    gemm_division_begin(k, marlin_stages_along_k(q->spec, q->v), &q->g.division);
    q->g.division.early = marlin_early_stages(q->g.division.stages, q->v);
}

void marlin_begin_mma(struct marlin_product *q)
{
    for (uint32_t t = 0; t < tiles(q); t++)
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                q->acc[t][j][r] = ptx_mov_f32(q->g.k, F32(0));
    marlin_emit_operands_begin(q);
    marlin_emit_first_operands(q);
}

void marlin_clear_mma(struct gemm *g, const struct gemm_part *part)
{
    struct marlin_product *q = marlin_of(g);
    struct gemm_place place = marlin_emit_place(q, part->walk.tile);
    marlin_emit_clear(q, place.n);
}

void marlin_multiply_mma(struct gemm *g, const struct gemm_part *part)
{
    (void)part;
    marlin_emit_multiply(marlin_of(g));
}

/* ---- entries ---- */

static void find_warp(struct marlin_product *q)
{
    ptx_kernel *k = q->g.k;
    q->g.at = gemm_find_threads(k);
    q->along_k = q->v->wk == 1 ? U32(0) : gemm_divide(k, q->g.at.warp, q->v->wn);
    q->along_n = q->v->wk == 1   ? q->g.at.warp
                 : q->v->wn == 1 ? U32(0)
                                 : ptx_rem_u32(k, q->g.at.warp, U32(q->v->wn));
}

static void begin(struct marlin_product *q)
{
    ptx_kernel *k = q->g.k;
    marlin_emit_params(q);
    find_warp(q);
    q->team = q->g.at;
    q->teams = 1;
    q->g.tiles_m = marlin_emit_tiles_m(q);
    q->x.rows = q->v->tile_m;
    q->x.blocks = q->v->wk * q->v->steps;
    q->x.threads = gemm_tile_threads(q->v);
    q->x.row_bytes = q->spec->k * 2;
    gemm_operand_begin(k, &q->g.at, ptx_shl_b64(k, q->address[MARLIN_X_STRIDE], U32(1)), &q->x);
    marlin_emit_weights_begin(q);
}

static void begin_cp_async(struct gemm *g)
{
    struct marlin_product *q = marlin_of(g);
    begin(q);
    gemm_find_share(g);
    marlin_emit_pipeline_begin(q);
}

static void begin_consumer(struct gemm *g)
{
    struct marlin_product *q = marlin_of(g);
    const ptxgen_tile *v = q->v;
    uint32_t staging = gemm_sums_bytes(v->tile_n, v->pass_m, v->wk);
    marlin_emit_epilogue_begin(
        q, ptx_shared_address(g->k, ptx_shared_declare(g->k, "sums", staging, 16)));
    marlin_begin_mma(q);
}

static const struct gemm_ops cp_async_ops = {.begin = begin_cp_async,
                                             .begin_consumer = begin_consumer,
                                             .clear = marlin_clear_mma,
                                             .multiply = marlin_multiply_mma,
                                             .epilogue = gemm_epilogue};

static void emit_entry(const ptxgen_marlin_plan *plan, const ptxgen_tile *v, ptx_module *module)
{
    static const struct gemm_ops *const ops[] = {[PTXGEN_MMA] = &cp_async_ops,
                                                 [PTXGEN_WGMMA] = &marlin_wgmma_ops,
                                                 [PTXGEN_BULK] = &marlin_mma_bulk_ops};
    struct marlin_bulk b = {.q = {.g = {.ops = ops[v->kind],
                                        .name = ptxgen_marlin_entry(v),
                                        .consumers = gemm_tile_threads(v),
                                        .threads = marlin_cta_threads(v),
                                        .ctas = v->ctas,
                                        .cluster = v->cluster,
                                        .registers = marlin_registers(v)},
                                  .spec = &plan->spec,
                                  .plan = plan,
                                  .v = v}};
    b.q.g.loops_itself = b.q.g.keeps_no_walk = gemm_is_wgmma(v) && !marlin_keeps_walk(v);
    gemm_emit_entry(&b.q.g, module);
}

ptxgen_status ptxgen_marlin_emit(const ptxgen_marlin_plan *plan, uint32_t variants,
                                 ptx_module *module, ptxgen_error *err)
{
    if (!marlin_is_plan(plan) || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: a plan that was made, and a module, must be given");
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (variants >> i & 1)
            emit_entry(plan, &plan->variants[i], module);
    marlin_emit_gather(plan, module);
    return ptx_module_status(module, err);
}
