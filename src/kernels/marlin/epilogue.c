/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the epilogue that only marlin has, and where its tiles are in y. */
#include "../gemm/wgmma.h"
#include "emit.h"

/* ---- tiles ---- */

/*
 * Tiles along M in a band. A token of x has four times the bytes of a feature of w (16 and 4 bits
 * an element), and the tiles of 132 multiprocessors in a band have about as many bytes of x as of
 * w.
 */
static uint32_t band(const ptxgen_tile *v)
{
    uint32_t rows = 8 * 128;
    return v->tile_m < rows ? rows / v->tile_m : 1;
}

ptx_u32 marlin_emit_tiles_m(struct marlin_product *q)
{
    return gemm_divide_up(q->g.k, q->g.m, q->v->tile_m);
}

struct gemm_place marlin_emit_place(struct marlin_product *q, ptx_u32 tile)
{
    ptx_kernel *k = q->g.k;
    uint32_t tiles_n = marlin_tiles_n(q->spec, q->v);
    if (!gemm_is_wgmma(q->v))
        return gemm_locate_in_band(k, tile, q->g.tiles_m, tiles_n,
                                   gemm_is_bulk(q->v) ? 1 : 16);
    ptx_u32 tiles_m = marlin_emit_tiles_m(q); /* for each tile anew, to save a register */
    if (q->v->cluster == 1) {
        ptx_u32 at = gemm_deal_places(k, &q->g.division, tile);
        return gemm_locate_in_band(k, at, tiles_m, tiles_n, band(q->v));
    }
    struct gemm_place p;
    p.m = ptx_mov_u32(k, U32(0));
    p.n = ptx_mov_u32(k, tile);
    ptx_if(k, ptx_setp_ne_u32(k, tiles_m, U32(1))) { /* one row of tiles needs no division */
        struct gemm_place other = gemm_locate_in_band(k, tile, tiles_m, tiles_n, band(q->v));
        ptx_mov_u32_to(k, p.m, other.m);
        ptx_mov_u32_to(k, p.n, other.n);
    }
    return p;
}

/* ---- the epilogue ---- */

/* Of an exchange, each CTA of the cluster, and each team in it, finishes some tokens of the tile.
 */
static ptx_u32 own_tokens(struct marlin_product *q, ptx_u32 first)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 share = q->g.rank;
    if (marlin_exchange_teams(q->v) > 1)
        share = ptx_mad_lo_u32(k, q->along_k, U32(q->v->cluster), share);
    ptx_u32 own = ptx_mad_lo_u32(k, share, U32(marlin_finished_tokens(q->v)), first);
    return ptx_min_u32(k, q->g.m, own);
}

static void locate(void *user, ptx_u32 tile, struct gemm_epilogue *o)
{
    struct marlin_product *q = user;
    ptx_kernel *k = q->g.k;
    struct gemm_place place = marlin_emit_place(q, tile);
    o->first_row = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    if (marlin_exchanges(q->v))
        o->first_row = own_tokens(q, o->first_row);
    ptx_u32 columns =
        q->teams > 1 ? ptx_mad_lo_u32(k, place.n, U32(q->teams), q->team_index) : place.n;
    uint32_t each = marlin_gated(q->spec) ? team_features(q) / 2 : team_features(q);
    o->first_column = ptx_mul_lo_u32(k, columns, U32(each));
}

ptx_u32 marlin_accumulator(const void *gemm, uint32_t t, uint32_t j, uint32_t r)
{
    const struct marlin_product *q = gemm;
    return ptx_f32_as_u32(q->acc[t][j][r]);
}

ptx_u64 marlin_emit_partials(struct marlin_product *q)
{
    return ptx_add_u64(q->g.k, q->address[MARLIN_WORKSPACE],
                       U64(gemm_partials_offset(&q->plan->target, MARLIN_MOST_CTAS)));
}

void marlin_emit_epilogue_begin(struct marlin_product *q, ptx_u32 staging)
{
    const ptxgen_marlin_spec *s = q->spec;
    const ptxgen_tile *v = q->v;
    bool exchanges = marlin_exchanges(v);
    ptx_u64 partials = marlin_emit_partials(q);
    q->output = (struct gemm_epilogue){
        .g = &q->g,
        .at = &q->team,
        .type = (ptxgen_element)s->type,
        .activation = (ptxgen_activation)s->activation,
        .has_bias = s->bias,
        .has_residual = s->residual,
        .n = s->n,
        .pairs = marlin_gated(s) ? MARLIN_STRIP / 2 : 0,
        .y = q->address[MARLIN_Y],
        .y_stride = q->address[MARLIN_Y_STRIDE],
        .bias = q->address[MARLIN_BIAS],
        .up_bias = q->address[MARLIN_UP_BIAS],
        .residual = q->address[MARLIN_RESIDUAL],
        .residual_stride = q->address[MARLIN_RESIDUAL_STRIDE],
        .sums = {.tile_m = marlin_finished_tokens(v),
                 .tile_n = team_features(q),
                 .warp_n = v->warp_n,
                 .wk = marlin_staged_wk(v),
                 .interleaved = gemm_is_wgmma(v),
                 .pass_m = marlin_pass_tokens(v),
                 .ctas = exchanges ? 1 : v->cluster,
                 .staging = staging},
        .partials = {.threads = gemm_tile_threads(v),
                     .fragments = v->cluster > 1 ? 0 : marlin_fragments(v)},
        .first_partials = partials,
        .flags = q->address[MARLIN_WORKSPACE],
        .bulk_fixup = q->bulk_fixup.threads ? &q->bulk_fixup : NULL,
        .exchange = q->exchange,
        .along = q->along_n,
        .along_k = marlin_staged_wk(v) > 1 ? q->along_k : U32(0),
        .only = v->cluster > 1,
        .rounds_biased = true,
        .acc = marlin_accumulator,
        .scale_accumulators = marlin_emit_finish_sums,
        .locate = locate,
        .user = q,
    };
    gemm_epilogue_begin(&q->output);
}
