/* SPDX-License-Identifier: Apache-2.0 */
/* The module: its entries, each by the kind of its tile, and what entries of mma.sync share. */
#include "../gemm/empty.h"
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

/* ---- mma.sync ---- */

void marlin_find_mma_warp(struct marlin_product *q)
{
    ptx_kernel *k = q->g.k;
    q->along_k = q->v->wk == 1 ? U32(0) : gemm_divide(k, q->g.at.warp, q->v->wn);
    q->along_n = q->v->wk == 1   ? q->g.at.warp
                 : q->v->wn == 1 ? U32(0)
                                 : gemm_remainder(k, q->g.at.warp, q->v->wn);
    q->team = q->g.at;
    q->teams = 1;
}

/* ---- entries ---- */

static void emit_entry(const ptxgen_marlin_plan *plan, const ptxgen_tile *v, ptx_module *module)
{
    static const struct gemm_ops *const ops[] = {[PTXGEN_MMA] = &marlin_cp_async_ops,
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
                                  .v = v,
                                  .form = marlin_find_form(&plan->spec, v),
                                  .reads_ring = v->kind == PTXGEN_BULK}};
    b.q.mma = marlin_find_mma(&b.q);
    b.q.g.loops_itself = b.q.g.keeps_no_walk = gemm_is_wgmma(v) && !marlin_keeps_walk(v);
    gemm_emit_entry(&b.q.g, module);
}

ptxgen_status ptxgen_marlin_emit(const ptxgen_marlin_plan *plan, uint32_t variants,
                                 ptx_module *module, ptxgen_error *err)
{
    if (!marlin_is_plan(plan) || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: a plan that was made, and a module, must be given");
    const ptxgen_marlin_spec *s = &plan->spec;
    if (gemm_is_empty(&marlin_planner, plan)) {
        const struct gemm_empty empty = {.n = s->n,
                                         .type = (ptxgen_element)s->type,
                                         .bias_type = (ptxgen_element)s->type,
                                         .activation = (ptxgen_activation)s->activation,
                                         .bias = s->bias,
                                         .residual = s->residual,
                                         .pairs = marlin_gated(s)};
        gemm_emit_empty(module, "marlin_empty", &empty);
        return ptx_module_status(module, err);
    }
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (variants >> i & 1)
            emit_entry(plan, &plan->variants[i], module);
    marlin_emit_gather(plan, module);
    return ptx_module_status(module, err);
}
