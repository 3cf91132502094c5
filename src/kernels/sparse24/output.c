/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a tile: scales of s8, bias, activation, residual, rounding and the stores. */
#include "emit.h"

enum { FEW = 4 /* columns of a chunk, where registers are few */ };

/* Five warps a scheduler leave each thread 96, of which these have 64 sums. */
static bool has_few_registers(const ptxgen_sparse24_variant *v)
{
    return sparse24_cta_threads(v) > 512 && sparse24_fragments(v) >= 16;
}

static uint32_t width(const struct sparse24_product *q)
{
    return q->sums.width < TILE_SUMS_WIDTH ? q->sums.width : TILE_SUMS_WIDTH;
}

/* Whether sums are rounded in their registers: wgmma's, to which nothing more is done. */
static bool stages_halves(const struct sparse24_product *q)
{
    const ptxgen_sparse24_spec *s = q->spec;
    const ptxgen_sparse24_variant *v = q->v;
    return sparse24_is_wgmma(v) && v->wk == 1 && v->cluster == 1 && v->tile_n >= 16 &&
           !sparse24_is_s8(s) && !s->bias && !s->residual && !s->activation &&
           s->m % TILE_HALVES_WIDTH == 0;
}

/* As many rows as the sums' staging holds. */
static void begin_halves(struct sparse24_product *q)
{
    uint32_t rows = 2 * q->v->pass_n;
    struct tile_threads at = q->at;
    at.warp = q->along_m;
    q->halves = (struct tile_halves){.columns = sparse24_tile_m(q->v),
                                     .tiles = sparse24_warp_tiles(q->v),
                                     .pass_m = rows < q->v->tile_n ? rows : q->v->tile_n,
                                     .bf16 = q->spec->y_type == PTXGEN_BF16,
                                     .staging = q->sums.staging};
    tile_halves_begin(q->k, &at, &q->halves);
}

static ptx_pred find_aligned(struct sparse24_product *q)
{
    const bool used[SPARSE24_N] = {[SPARSE24_Y] = true, [SPARSE24_Y_STRIDE] = true,
                                   [SPARSE24_BIAS] = q->spec->bias,
                                   [SPARSE24_RESIDUAL] = q->spec->residual,
                                   [SPARSE24_RESIDUAL_STRIDE] = q->spec->residual};
    return tile_chunks_are_aligned(q->k, q->chunk.width, q->address, used, SPARSE24_X_STRIDE,
                                   SPARSE24_N);
}

void sparse24_output_begin(struct sparse24_product *q)
{
    ptx_kernel *k = q->k;
    struct tile_sums *s = &q->sums;
    s->tile_m = q->v->tile_n;
    s->tile_n = sparse24_tile_m(q->v);
    s->warp_n = q->v->wn * q->v->warp_m;
    s->interleaved = sparse24_is_wgmma(q->v);
    s->warp_m = sparse24_warp_n(q->v);
    s->warp_row = ptx_mul_lo_u32(k, q->along_n, U32(s->warp_m));
    s->wk = q->v->wk;
    s->pass_m = q->v->pass_n;
    s->alone = sparse24_warps_are_alone(q->v);
    s->ctas = q->v->cluster > 1 ? q->v->cluster : 0;
    s->rank = q->rank;
    uint32_t warps = s->alone ? 1 : sparse24_threads(q->v) / 32;
    s->width = tile_chunk_width(s->pass_m * (s->alone ? s->warp_n : s->tile_n), 32 * warps);
    if (has_few_registers(q->v) && s->width > FEW)
        s->width = FEW;
    s->integer = sparse24_is_s8(q->spec);
    if (stages_halves(q))
        begin_halves(q);
    else
        tile_sums_begin(k, &q->at, q->along_m, q->along_k, s);
    ptx_u64 partials =
        ptx_add_u64(k, q->address[SPARSE24_WORKSPACE], U64(sparse24_partials_offset(q->plan)));
    q->partials = (struct tile_partials){.threads = sparse24_threads(q->v),
                                         .fragments = sparse24_fragments(q->v),
                                         .integer = s->integer};
    tile_partials_begin(k, &q->at, partials, &q->partials);
    q->chunk = (struct tile_chunk){.width = stages_halves(q) ? TILE_HALVES_WIDTH : s->width,
                                   .bf16 = q->spec->y_type == PTXGEN_BF16};
    q->chunk.ragged = q->spec->m % q->chunk.width != 0;
    q->chunk.aligned = find_aligned(q);
}

/* ---- one chunk ---- */

/* Where a chunk of Y stands. */
struct place {
    struct tile_chunk chunk;
    ptx_u32 row, column;
};

static ptx_f32 column_scale(struct sparse24_product *q, const struct place *at, ptx_u64 scales,
                            uint32_t i)
{
    ptx_kernel *k = q->k;
    if (!at->chunk.ragged)
        return ptx_ld_global_nc_f32(k, scales, (int)(4 * i));
    ptx_f32 scale = ptx_mov_f32(k, F32(0));
    ptx_guarded(k, ptx_setp_gt_u32(k, at->chunk.left, U32(i)))
        ptx_ld_global_nc_f32_to(k, scale, scales, (int)(4 * i));
    return scale;
}

static void scale_s32(struct sparse24_product *q, const struct place *at,
                      const ptx_u32 sums[TILE_SUMS_WIDTH], ptx_f32 v[TILE_SUMS_WIDTH])
{
    ptx_kernel *k = q->k;
    ptx_u64 of_row = ptx_mad_wide_u32(k, at->row, U32(4), q->address[SPARSE24_X_SCALE]);
    ptx_u64 of_columns = ptx_mad_wide_u32(k, at->column, U32(4), q->address[SPARSE24_W_SCALE]);
    ptx_f32 row_scale = ptx_ld_global_nc_f32(k, of_row, 0);
    for (uint32_t i = 0; i < width(q); i++) {
        ptx_f32 sum = ptx_cvt_f32_s32(k, ptx_u32_as_s32(sums[i]));
        ptx_f32 scaled = ptx_mul_f32(k, sum, row_scale);
        v[i] = ptx_mul_f32(k, scaled, column_scale(q, at, of_columns, i));
    }
}

static ptx_u64 element(struct sparse24_product *q, enum sparse24_param base,
                       enum sparse24_param stride, const struct place *at)
{
    ptx_kernel *k = q->k;
    ptx_u64 pitch = ptx_shl_b64(k, q->address[stride], U32(1));
    ptx_u64 row = ptx_cvt_u64_u32(k, at->row);
    ptx_u64 line = ptx_mad_lo_u64(k, row, pitch, q->address[base]);
    return ptx_mad_wide_u32(k, at->column, U32(2), line);
}

static void store_sums(struct sparse24_product *q, const struct place *at,
                       const ptx_u32 sums[TILE_SUMS_WIDTH])
{
    ptx_kernel *k = q->k;
    ptx_f32 v[TILE_SUMS_WIDTH];
    if (sparse24_is_s8(q->spec))
        scale_s32(q, at, sums, v);
    else
        for (uint32_t i = 0; i < width(q); i++)
            v[i] = ptx_u32_as_f32(sums[i]);
    if (q->spec->bias) {
        ptx_u64 bias = ptx_mad_wide_u32(k, at->column, U32(2), q->address[SPARSE24_BIAS]);
        tile_chunk_add(k, &at->chunk, bias, v);
    }
    for (uint32_t i = 0; i < width(q); i++)
        v[i] = tile_activate(k, (ptxgen_activation)q->spec->activation, v[i]);
    if (q->spec->residual)
        tile_chunk_add(k, &at->chunk, element(q, SPARSE24_RESIDUAL, SPARSE24_RESIDUAL_STRIDE, at),
                       v);
    tile_chunk_store(k, &at->chunk, element(q, SPARSE24_Y, SPARSE24_Y_STRIDE, at), v);
}

/* ---- a tile's end ---- */

struct end {
    struct sparse24_product *q;
    ptx_u32 first_row, column; /* of the tile in Y */
};

static void finish_chunk(void *user, const struct tile_part *p, ptx_u32 row, ptx_u32 in_tile)
{
    const struct end *e = user;
    struct sparse24_product *q = e->q;
    ptx_kernel *k = q->k;
    struct place at = {.chunk = q->chunk, .column = ptx_add_u32(k, e->column, in_tile)};
    ptx_if(k, ptx_setp_lt_u32(k, at.column, U32(q->spec->m))) {
        ptx_u32 sums[TILE_SUMS_WIDTH];
        tile_sums_load(k, &q->sums, row, in_tile, sums);
        ptx_u32 in_pass = ptx_add_u32(k, e->first_row, row);
        at.row = ptx_add_u32(k, in_pass, p->pass_row);
        if (at.chunk.ragged) {
            at.chunk.left = ptx_sub_u32(k, U32(q->spec->m), at.column);
            at.chunk.aligned = ptx_setp_bool_ge_u32(k, at.chunk.left, U32(at.chunk.width),
                                                    q->chunk.aligned);
        }
        store_sums(q, &at, sums);
    }
}

/* The same, rounded already. */
static void finish_halves(void *user, const struct tile_part *p, ptx_u32 row, ptx_u32 in_tile)
{
    const struct end *e = user;
    struct sparse24_product *q = e->q;
    ptx_kernel *k = q->k;
    struct place at = {.column = ptx_add_u32(k, e->column, in_tile)};
    ptx_if(k, ptx_setp_lt_u32(k, at.column, U32(q->spec->m))) {
        ptx_u32 pairs[TILE_HALVES_WIDTH / 2];
        tile_halves_load(k, &q->halves, row, in_tile, pairs);
        ptx_u32 in_pass = ptx_add_u32(k, e->first_row, row);
        at.row = ptx_add_u32(k, in_pass, p->pass_row);
        tile_chunk_store_words(k, &q->chunk, element(q, SPARSE24_Y, SPARSE24_Y_STRIDE, &at), pairs);
    }
}

static void locate(void *user, struct tile_part *p, ptx_u32 tile)
{
    struct end *e = user;
    struct sparse24_product *q = e->q;
    ptx_kernel *k = q->k;
    struct tile_place place = sparse24_place_of(q, tile);
    e->first_row = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_n));
    p->rows = ptx_sub_u32(k, q->n, e->first_row);
    e->column = ptx_mul_lo_u32(k, place.n, U32(p->columns));
}

static ptx_u32 accumulator(const void *from, uint32_t t, uint32_t j, uint32_t r)
{
    const struct sparse24_product *q = from;
    return q->acc[t][j][r];
}

void sparse24_output(struct sparse24_product *q, const struct tile_walk *w, ptx_u32 first)
{
    struct end e = {.q = q};
    struct tile_part p = {.at = &q->at,
                          .division = &q->division,
                          .sums = &q->sums,
                          .halves = stages_halves(q) ? &q->halves : NULL,
                          .partials = &q->partials,
                          .flags = q->address[SPARSE24_WORKSPACE],
                          .columns = sparse24_tile_m(q->v),
                          .only = sparse24_is_wgmma(q->v) && q->v->cluster > 1,
                          .acc = accumulator,
                          .acc_from = q,
                          .locate = locate,
                          .finish = stages_halves(q) ? finish_halves : finish_chunk,
                          .user = &e};
    tile_part_end(q->k, &p, w, first);
}
