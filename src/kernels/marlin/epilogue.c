/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epilogue of a tile: adds the sums of the warps along K and of the CTAs that share the tile,
 * then threads finish chunks of a row of y: bias, activation, SwiGLU, residual, rounding, store.
 */
#include "../gemm/exchange.h"
#include "../gemm/wgmma.h"
#include "emit.h"

/* Columns of a chunk. The bound shows the compiler that arrays of GEMM_SUMS_WIDTH suffice. */
static uint32_t width(const struct marlin_product *q)
{
    return q->sums.width < GEMM_SUMS_WIDTH ? q->sums.width : GEMM_SUMS_WIDTH;
}

static bool is_gated(const struct marlin_product *q)
{
    return marlin_gated(q->spec);
}

/*
 * Whether sums are rounded in their registers (halves.h): in warpgroups that have all of a tile's
 * K, where the epilogue is a bias at most.
 */
static bool stages_halves(const struct marlin_product *q)
{
    const ptxgen_marlin_spec *s = q->spec;
    bool all = (!q->v->cluster || marlin_exchanges(q->v)) && marlin_staged_wk(q->v) == 1;
    return marlin_is_wgmma(q->v) && marlin_finished_tokens(q->v) >= 16 && all && !is_gated(q) &&
           !s->activation && !s->residual;
}

static void begin_halves(struct marlin_product *q, ptx_u32 staging)
{
    uint32_t rows = 2 * marlin_pass_tokens(q->v); /* as much memory as f32 sums take */
    uint32_t all = marlin_finished_tokens(q->v);
    q->halves = (struct gemm_halves){.columns = team_features(q),
                                     .pass_m = all % rows ? marlin_pass_tokens(q->v) : rows,
                                     .bf16 = is_bf16(q),
                                     .staging = staging};
    gemm_halves_begin(q->g.k, &q->team, &q->halves);
}

ptx_u64 marlin_emit_partials(struct marlin_product *q)
{
    return ptx_add_u64(q->g.k, q->address[MARLIN_WORKSPACE], U64(marlin_partials_offset(q->plan)));
}

void marlin_emit_epilogue_begin(struct marlin_product *q, ptx_u32 staging)
{
    ptx_kernel *k = q->g.k;
    struct gemm_sums *s = &q->sums;
    s->tile_m = marlin_finished_tokens(q->v);
    s->tile_n = team_features(q);
    s->warp_n = q->v->warp_n;
    s->wk = marlin_staged_wk(q->v);
    s->interleaved = marlin_is_wgmma(q->v);
    s->pass_m = marlin_pass_tokens(q->v);
    s->ctas = marlin_exchanges(q->v) ? 0 : q->v->cluster;
    uint32_t stagers = marlin_threads(q->v) / q->teams / marlin_exchange_teams(q->v);
    s->width = gemm_chunk_width(s->pass_m * team_features(q), stagers);
    s->staging = staging;
    if (stages_halves(q))
        begin_halves(q, staging);
    else
        gemm_sums_begin(k, &q->team, q->along_n, s->wk > 1 ? q->along_k : U32(0), s);
    uint32_t chunk = stages_halves(q) ? GEMM_HALVES_WIDTH : s->width;
    q->partials.threads = marlin_threads(q->v);
    q->partials.fragments = marlin_fragments(q->v);
    gemm_partials_begin(k, &q->g.at, marlin_emit_partials(q), &q->partials);
    const bool used[MARLIN_M] = {[MARLIN_Y] = true, [MARLIN_Y_STRIDE] = true,
                                 [MARLIN_BIAS] = q->spec->bias,
                                 [MARLIN_UP_BIAS] = q->spec->bias && is_gated(q),
                                 [MARLIN_RESIDUAL] = q->spec->residual,
                                 [MARLIN_RESIDUAL_STRIDE] = q->spec->residual};
    q->chunk = (struct gemm_chunk){
        .width = chunk,
        .bf16 = is_bf16(q),
        .aligned = gemm_chunks_are_aligned(k, chunk, q->address, used, MARLIN_X_STRIDE, MARLIN_M)};
}

/* ---- one chunk ---- */

static ptxgen_activation activation(const struct marlin_product *q)
{
    return is_gated(q) ? PTXGEN_ACTIVATION_SILU : (ptxgen_activation)q->spec->activation;
}

static ptx_u64 element(struct marlin_product *q, enum marlin_param base, enum marlin_param stride,
                       ptx_u64 row, ptx_u64 column_bytes)
{
    ptx_u64 pitch = ptx_shl_b64(q->g.k, q->address[stride], U32(1));
    ptx_u64 line = ptx_mad_lo_u64(q->g.k, row, pitch, q->address[base]);
    return ptx_add_u64(q->g.k, line, column_bytes);
}

/* Finishes a chunk with sums `v`; `up` holds the sums of SwiGLU's second matrix. */
static void store_sums(struct marlin_product *q, ptx_u32 row, ptx_u32 column, ptx_f32 v[GEMM_SUMS_WIDTH],
                         ptx_f32 up[GEMM_SUMS_WIDTH])
{
    ptx_kernel *k = q->g.k;
    ptx_u64 row64 = ptx_cvt_u64_u32(k, row), bytes = ptx_mul_wide_u32(k, column, U32(2));
    if (q->spec->bias)
        gemm_chunk_add(k, &q->chunk, ptx_add_u64(k, q->address[MARLIN_BIAS], bytes), v);
    if (q->spec->bias && is_gated(q))
        gemm_chunk_add(k, &q->chunk, ptx_add_u64(k, q->address[MARLIN_UP_BIAS], bytes), up);
    for (uint32_t i = 0; i < width(q); i++) {
        v[i] = gemm_activate(k, activation(q), v[i]);
        if (is_gated(q))
            v[i] = ptx_mul_f32(k, v[i], up[i]);
    }
    if (q->spec->residual)
        gemm_chunk_add(k, &q->chunk,
                       element(q, MARLIN_RESIDUAL, MARLIN_RESIDUAL_STRIDE, row64, bytes), v);
    gemm_chunk_store(k, &q->chunk, element(q, MARLIN_Y, MARLIN_Y_STRIDE, row64, bytes), v);
}

/* ---- a tile's end ---- */

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
    if (!marlin_is_wgmma(q->v))
        return gemm_locate_in_band(k, tile, q->g.tiles_m, tiles_n,
                                   marlin_has_producer(q->v) ? 1 : 16);
    ptx_u32 tiles_m = marlin_emit_tiles_m(q); /* for each tile anew, to save a register */
    if (!q->v->cluster) {
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

struct end {
    struct marlin_product *q;
    ptx_u32 first_token, feature; /* of the tile in y */
};

/* Loads the sums of a chunk, added over the warps along K. */
static void sum_chunk(struct marlin_product *q, ptx_u32 row, ptx_u32 column, ptx_f32 v[GEMM_SUMS_WIDTH])
{
    ptx_u32 sums[GEMM_SUMS_WIDTH];
    gemm_sums_load(q->g.k, &q->sums, row, column, sums);
    for (uint32_t i = 0; i < width(q); i++)
        v[i] = ptx_u32_as_f32(sums[i]);
}

/* The packed column of a column of y: with SwiGLU a strip has 32 columns of gate, then 32 of up. */
static ptx_u32 packed_feature(struct marlin_product *q, ptx_u32 column)
{
    if (!is_gated(q))
        return column;
    ptx_u32 strip = ptx_and_b32(q->g.k, column, U32(~(MARLIN_STRIP / 2 - 1u)));
    return ptx_add_u32(q->g.k, column, strip);
}

static void finish_chunk(void *user, const struct gemm_tile_end *p, ptx_u32 row, ptx_u32 in_tile)
{
    const struct end *e = user;
    struct marlin_product *q = e->q;
    ptx_kernel *k = q->g.k;
    ptx_f32 v[GEMM_SUMS_WIDTH], up[GEMM_SUMS_WIDTH];
    ptx_u32 column = ptx_add_u32(k, e->feature, in_tile), packed = packed_feature(q, in_tile);
    ptx_if(k, ptx_setp_lt_u32(k, column, U32(q->spec->n))) {
        sum_chunk(q, row, packed, v);
        if (is_gated(q))
            sum_chunk(q, row, ptx_add_u32(k, packed, U32(MARLIN_STRIP / 2)), up);
        ptx_u32 in_pass = ptx_add_u32(k, e->first_token, row);
        store_sums(q, ptx_add_u32(k, in_pass, p->pass_row), column, v, up);
    }
}

/* Stores a chunk of results that were rounded in registers. */
static void finish_halves(void *user, const struct gemm_tile_end *p, ptx_u32 row, ptx_u32 in_tile)
{
    const struct end *e = user;
    struct marlin_product *q = e->q;
    ptx_kernel *k = q->g.k;
    ptx_u32 column = ptx_add_u32(k, e->feature, in_tile);
    ptx_if(k, ptx_setp_lt_u32(k, column, U32(q->spec->n))) {
        ptx_u32 pairs[GEMM_HALVES_WIDTH / 2];
        gemm_halves_load(k, &q->halves, row, in_tile, pairs);
        ptx_u32 in_pass = ptx_add_u32(k, e->first_token, row);
        ptx_u64 row64 = ptx_cvt_u64_u32(k, ptx_add_u32(k, in_pass, p->pass_row));
        ptx_u64 bytes = ptx_mul_wide_u32(k, column, U32(2));
        gemm_chunk_store_words(k, &q->chunk, element(q, MARLIN_Y, MARLIN_Y_STRIDE, row64, bytes),
                               pairs);
    }
}

/* Adds the bias to the lane's sums of feature g + 8r of tile t. */
static void add_bias(struct marlin_product *q, const struct end *e, uint32_t t, uint32_t r)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 in_warp = ptx_mad_lo_u32(k, q->along_n, U32(MARLIN_TILE), q->team.group);
    ptx_u32 in_tile = ptx_add_u32(k, in_warp, U32(t * MARLIN_STRIP + r * 8));
    ptx_u32 column = ptx_add_u32(k, e->feature, in_tile);
    ptx_u16 element = ptx_mov_u16(k, ptx_imm_u16(0));
    ptx_u64 at = ptx_mad_wide_u32(k, column, U32(2), q->address[MARLIN_BIAS]);
    ptx_guarded(k, ptx_setp_lt_u32(k, column, U32(q->spec->n)))
        ptx_ld_global_u16_to(k, element, at, 0);
    ptx_f32 bias = is_bf16(q) ? ptx_cvt_f32_bf16(k, ptx_u16_as_bf16(element))
                              : ptx_cvt_f32_f16(k, ptx_u16_as_f16(element));
    for (uint32_t j = 0; j < marlin_finished_tokens(q->v) / 8; j++)
        for (uint32_t i = 0; i < 2; i++)
            ptx_add_f32_to(k, q->acc[t][j][2 * r + i], q->acc[t][j][2 * r + i], bias);
}

static void locate(void *user, struct gemm_tile_end *p, ptx_u32 tile)
{
    struct end *e = user;
    struct marlin_product *q = e->q;
    ptx_kernel *k = q->g.k;
    struct gemm_place place = marlin_emit_place(q, tile);
    e->first_token = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    if (q->exchange) {
        ptx_u32 share = marlin_exchange_teams(q->v) > 1
                            ? ptx_mad_lo_u32(k, q->along_k, U32(q->v->cluster), q->sums.rank)
                            : q->sums.rank;
        e->first_token =
            ptx_mad_lo_u32(k, share, U32(marlin_finished_tokens(q->v)), e->first_token);
    }
    p->rows = ptx_sub_u32(k, q->g.m, ptx_min_u32(k, q->g.m, e->first_token));
    ptx_u32 columns =
        q->teams > 1 ? ptx_mad_lo_u32(k, place.n, U32(q->teams), q->team_index) : place.n;
    e->feature = ptx_mul_lo_u32(k, columns, U32(p->columns));
    if (q->exchange) { /* the code above runs while the other CTA's sums are in flight */
        gemm_exchange_receive(k, q->exchange, marlin_accumulator, q);
        marlin_emit_finish_sums(q);
    }
    for (uint32_t i = 0; i < 2 * tiles(q) && p->halves && q->spec->bias; i++)
        add_bias(q, e, i / 2, i % 2);
}

ptx_u32 marlin_accumulator(const void *gemm, uint32_t t, uint32_t j, uint32_t r)
{
    const struct marlin_product *q = gemm;
    return ptx_f32_as_u32(q->acc[t][j][r]);
}

void marlin_emit_epilogue(struct marlin_product *q, const struct gemm_part *part)
{
    struct end e = {.q = q};
    struct gemm_tile_end p = {.at = &q->team,
                          .division = &q->g.division,
                          .sums = &q->sums,
                          .halves = stages_halves(q) ? &q->halves : NULL,
                          .partials = marlin_exchanges(q->v) ? NULL : &q->partials,
                          .handover = q->handover.threads ? &q->handover : NULL,
                          .place = &q->g.read,
                          .releases = q->g.releases,
                          .in_cta = &q->g.at,
                          .flags = q->address[MARLIN_WORKSPACE],
                          .columns = team_features(q) / (is_gated(q) ? 2 : 1),
                          .only = q->v->cluster != 0,
                          .acc = marlin_accumulator,
                          .acc_from = q,
                          .locate = locate,
                          .finish = stages_halves(q) ? finish_halves : finish_chunk,
                          .user = &e};
    if (!q->exchange)
        marlin_emit_finish_sums(q);
    gemm_end_part(q->g.k, &p, &part->walk, part->first);
}
