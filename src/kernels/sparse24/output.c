/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the epilogue that only sparse24 has, among them the scales of s8. */
#include "emit.h"

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
