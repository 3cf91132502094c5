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
#include "emit.h"

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
    static const char *const names[MARLIN_M] = {
        [MARLIN_X] = "x", [MARLIN_CODES] = "codes", [MARLIN_SCALES] = "scales",
        [MARLIN_ZEROS] = "zeros", [MARLIN_BIAS] = "bias", [MARLIN_UP_BIAS] = "up_bias",
        [MARLIN_RESIDUAL] = "residual", [MARLIN_Y] = "y", [MARLIN_WORKSPACE] = "workspace",
        [MARLIN_X_STRIDE] = "x_stride", [MARLIN_RESIDUAL_STRIDE] = "residual_stride",
        [MARLIN_Y_STRIDE] = "y_stride"};
    ptx_kernel *k = q->k;
    for (int i = 0; i < MARLIN_M; i++)
        q->address[i] = gemm_param_u64(k, names[i], is_used(q->spec, i));
    q->m = ptx_param_u32(k, "m");
    gemm_division_begin(k, marlin_stages_along_k(q->spec, q->v), &q->division);
    q->division.early = marlin_early_stages(q->division.stages, q->v);
}

static void multiply_part(struct marlin_product *q, struct gemm_walk *w)
{
    ptx_section(q->k, "stages: multiply one, issue another");
    ptx_for(q->k, w->stage, w->stage_end, U32(1)) {
        ptx_nounroll(q->k);
        marlin_emit_multiply(q);
    }
}

void marlin_emit_parts(struct marlin_product *q, ptx_u32 first, ptx_u32 end)
{
    ptx_kernel *k = q->k;
    for (uint32_t t = 0; t < tiles(q); t++)
        for (uint32_t j = 0; j < token_groups(q); j++)
            for (int r = 0; r < 4; r++)
                q->acc[t][j][r] = ptx_mov_f32(k, F32(0));
    marlin_emit_operands_begin(q);
    marlin_emit_first_operands(q);
    struct gemm_walk walk = gemm_walk_begin(k, first, end);
    ptx_loop(k, parts) {
        ptx_nounroll(k);
        ptx_section(k, "the next part of a tile");
        gemm_walk_next(k, &q->division, &walk);
        ptx_u32 from = ptx_mov_u32(k, walk.stage);
        struct gemm_place place = marlin_emit_place(q, walk.tile);
        marlin_emit_clear(q, place.n);
        multiply_part(q, &walk);
        ptx_section(k, "the end of the part: sum over warps and CTAs, store");
        marlin_emit_epilogue(q, &walk, from);
        ptx_loop_break_if(&parts, ptx_setp_le_u32(k, walk.end, first), false);
    }
}

/* ---- entries ---- */

static void find_warp(struct marlin_product *q)
{
    ptx_kernel *k = q->k;
    q->at = gemm_find_threads(k);
    q->along_k = q->v->wk == 1 ? U32(0) : gemm_divide(k, q->at.warp, q->v->wn);
    q->along_n = q->v->wk == 1   ? q->at.warp
                 : q->v->wn == 1 ? U32(0)
                                 : ptx_rem_u32(k, q->at.warp, U32(q->v->wn));
}

static void begin(struct marlin_product *q)
{
    ptx_kernel *k = q->k;
    marlin_emit_params(q);
    find_warp(q);
    q->team = q->at;
    q->teams = 1;
    q->tiles_m = marlin_emit_tiles_m(q);
    q->x.rows = q->v->tile_m;
    q->x.blocks = q->v->wk * q->v->steps;
    q->x.threads = marlin_threads(q->v);
    q->x.row_bytes = q->spec->k * 2;
    gemm_operand_begin(k, &q->at, ptx_shl_b64(k, q->address[MARLIN_X_STRIDE], U32(1)), &q->x);
    marlin_emit_weights_begin(q);
}

static void emit_entry(const ptxgen_marlin_plan *plan, const ptxgen_marlin_variant *v,
                       ptx_module *module)
{
    struct marlin_product *q = &(struct marlin_product){.spec = &plan->spec, .plan = plan, .v = v};
    ptx_kernel *k = q->k = ptx_kernel_begin(module, ptxgen_marlin_entry(v));
    ptx_kernel_reqntid(k, marlin_threads(v), 1, 1);
    ptx_kernel_minnctapersm(k, v->ctas);
    begin(q);
    ptx_u32 first = gemm_first_stage(k, &q->division, q->at.cta);
    ptx_u32 end = gemm_first_stage(k, &q->division, ptx_add_u32(k, q->at.cta, U32(1)));
    marlin_emit_pipeline_begin(q, first, end);
    uint32_t staging = gemm_sums_bytes(marlin_tile_n(v), v->pass_m, v->wk);
    marlin_emit_epilogue_begin(q,
                               ptx_shared_address(k, ptx_shared_declare(k, "sums", staging, 16)));

    marlin_emit_parts(q, first, end);
    ptx_kernel_end(k);
}

ptxgen_status ptxgen_marlin_emit(const ptxgen_marlin_plan *plan, uint32_t variants,
                                 ptx_module *module, ptxgen_error *err)
{
    if (!marlin_is_plan(plan) || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: a plan that was made, and a module, must be given");
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (variants >> i & 1) {
            const ptxgen_marlin_variant *v = &plan->variants[i];
            (marlin_has_producer(v) ? marlin_emit_ring_entry : emit_entry)(plan, v, module);
        }
    marlin_emit_gather(plan, module);
    return ptx_module_status(module, err);
}
