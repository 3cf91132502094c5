/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the epilogue has to know of w8a8:
 *
 *     v = ((acc − z·Σw) · sx) · sw + bias
 *
 * Every operation is rounded in the work type. In f32 a chunk of sums is scaled here, and stored by
 * gemm/epilogue.c; in f64 it is one column, and finished here. Tiles of few tokens load what their
 * columns and tokens need when the tile begins, so that these loads overlap the products.
 */
#include "emit.h"

uint32_t w8a8_y_bytes(const struct product *q)
{
    return (uint32_t)ptxgen_element_size((ptxgen_element)q->spec->y_type);
}

/* Whether a thread loads what its columns need when a tile begins. */
static bool loads_ahead(const struct product *q)
{
    return w8a8_takes_all_tokens(q->v) && !q->wide;
}

/* ---- what outputs need: scales, biases, sums of weights and zero points ---- */

ptx_u64 w8a8_of_column(struct product *q, enum w8a8_param param, ptx_u32 n, uint32_t bytes)
{
    return ptx_mad_wide_u32(q->g.k, n, U32(bytes), q->address[param]);
}

void w8a8_load_token(struct product *q, ptx_u32 m, struct row_token *t)
{
    ptx_kernel *k = q->g.k;
    bool shared = q->v->fused, zeros = q->spec->asymmetric;
    uint32_t bytes = w8a8_work_bytes(q->spec);
    ptx_u32 here = U32(0), zero_here = U32(0);
    ptx_u64 there = U64(0), zero_there = U64(0);
    t->m = m;
    t->exists = ptx_setp_lt_u32(k, m, q->g.m);
    if (w8a8_has_groups(q->spec))
        return; /* sums are scaled already */
    if (shared) {
        here = ptx_mad_lo_u32(k, t->m, U32(bytes), q->token_scales);
        zero_here = zeros ? ptx_mad_lo_u32(k, t->m, U32(4), q->token_zeros) : here;
    } else {
        there = w8a8_of_column(q, W8A8_TOKEN_SCALES, t->m, bytes);
        zero_there = zeros ? w8a8_of_column(q, W8A8_TOKEN_ZEROS, t->m, 4) : there;
    }
    t->zero = ptx_mov_s32(k, S32(0));
    t->scale = work_new(k, q->wide, work_constant(q->wide, 0));
    ptx_guarded(k, t->exists) {
        if (!shared)
            work_load_global_to(k, q->wide, t->scale, there, 0);
        else if (q->wide)
            ptx_ld_shared_f64_to(k, t->scale.d, here, 0);
        else
            ptx_ld_shared_f32_to(k, t->scale.f, here, 0);
        if (zeros && shared)
            ptx_ld_shared_s32_to(k, t->zero, zero_here, 0);
        else if (zeros)
            ptx_ld_global_s32_to(k, t->zero, zero_there, 0);
    }
}

/* The row of w of a chunk's first sum: with SwiGLU rows of gate and up follow each other. */
static ptx_u32 row_of(struct product *q, const struct gemm_epilogue_place *at, bool up)
{
    ptx_kernel *k = q->g.k;
    if (!w8a8_gated(q->spec))
        return at->column;
    ptx_u32 before = ptx_and_b32(k, at->column, U32(~(W8A8_PAIR_ROWS - 1u)));
    ptx_u32 gate = ptx_add_u32(k, at->column, before);
    return up ? ptx_add_u32(k, gate, U32(W8A8_PAIR_ROWS)) : gate;
}

/* Loads an array's elements for the columns of a chunk, 0 past the last column. */
static void load_words(struct product *q, enum w8a8_param param,
                       const struct gemm_epilogue_place *at, bool up, ptx_f32 to[GEMM_SUMS_WIDTH])
{
    struct gemm_chunk words = at->chunk;
    words.f32 = true;
    words.apart = loads_ahead(q) && words.width < GEMM_SUMS_WIDTH;
    ptx_u32 row = row_of(q, at, up);
    gemm_chunk_load(q->g.k, &words, w8a8_of_column(q, param, row, 4), to);
}

static void load_columns(struct product *q, const struct gemm_epilogue_place *at, bool up,
                         struct columns *c)
{
    if (!w8a8_has_groups(q->spec))
        load_words(q, W8A8_W_SCALE, at, up, c->scale);
    if (q->spec->bias)
        load_words(q, W8A8_BIAS, at, up, c->bias);
    if (q->spec->asymmetric)
        load_words(q, W8A8_W_SUM, at, up, c->sum);
}

static void load_ahead(void *user, const struct gemm_epilogue_place *at)
{
    struct product *q = user;
    for (uint32_t i = 0; i <= w8a8_gated(q->spec); i++)
        load_columns(q, at, i, &q->columns[i]);
    if (q->output.single)
        w8a8_load_token(q, at->row, &q->token);
}

/* ---- outputs ---- */

static ptx_u64 find(struct product *q, ptx_u64 base, ptx_u32 stride, ptx_u32 m, ptx_u32 n)
{
    ptx_kernel *k = q->g.k;
    ptx_u64 element = ptx_mad_wide_u32(k, m, stride, ptx_cvt_u64_u32(k, n));
    return ptx_mad_lo_u64(k, element, U64(w8a8_y_bytes(q)), base);
}

ptx_u64 w8a8_find_y(struct product *q, ptx_u32 m, ptx_u32 n)
{
    return find(q, q->address[W8A8_Y], q->y_stride, m, n);
}

ptx_u64 w8a8_find_residual(struct product *q, ptx_u32 m, ptx_u32 n)
{
    return find(q, q->address[W8A8_RESIDUAL], q->residual_stride, m, n);
}

ptx_f32 w8a8_narrow(struct product *q, struct work v)
{
    return q->wide ? ptx_cvt_f32_f64(q->g.k, v.d) : v.f;
}

void w8a8_store_one(struct product *q, ptx_u64 y, uint32_t i, struct work v)
{
    ptx_kernel *k = q->g.k;
    int offset = (int)(i * w8a8_y_bytes(q));
    if (q->spec->y_type == PTXGEN_F64) {
        ptx_st_global_f64(k, y, offset, v.d);
        return;
    }
    ptx_f32 f = w8a8_narrow(q, v);
    if (q->spec->y_type == PTXGEN_F32)
        ptx_st_global_f32(k, y, offset, f);
    else if (q->spec->y_type == PTXGEN_F16)
        ptx_st_global_f16(k, y, offset, ptx_cvt_f16_f32(k, f));
    else
        ptx_st_global_bf16(k, y, offset, ptx_cvt_bf16_f32(k, f));
}

struct work w8a8_finish(struct product *q, const struct row_token *t, const struct column *c,
                        ptx_u32 acc)
{
    ptx_kernel *k = q->g.k;
    if (q->spec->asymmetric) {
        ptx_s32 minus_zero = ptx_neg_s32(k, t->zero), sum = ptx_u32_as_s32(acc);
        acc = ptx_s32_as_u32(ptx_mad_lo_s32(k, minus_zero, c->sum, sum));
    }
    struct work v = w8a8_work_of_sum(k, q->wide, q->spec, acc);
    if (!w8a8_has_groups(q->spec)) {
        v = work_mul(k, q->wide, v, t->scale);
        v = work_mul(k, q->wide, v, c->scale);
    }
    return q->spec->bias ? work_add(k, q->wide, v, c->bias) : v;
}

static void scale(void *user, const struct gemm_epilogue_place *at, const ptx_u32 *sums, ptx_f32 *v)
{
    struct product *q = user;
    struct row_token t = q->token;
    struct columns columns = q->columns[at->up];
    if (!loads_ahead(q))
        load_columns(q, at, at->up, &columns);
    if (!loads_ahead(q) || !q->output.single)
        w8a8_load_token(q, at->row, &t);
    for (uint32_t i = 0; i < at->chunk.width; i++) {
        struct column c = {.scale.f = columns.scale[i]};
        if (q->spec->bias)
            c.bias.f = columns.bias[i];
        if (q->spec->asymmetric)
            c.sum = ptx_u32_as_s32(ptx_f32_as_u32(columns.sum[i]));
        v[i] = w8a8_finish(q, &t, &c, sums[i]).f;
    }
}

static void finish_f64(void *user, const struct gemm_epilogue_place *at, const ptx_u32 *sums)
{
    struct product *q = user;
    ptx_kernel *k = q->g.k;
    struct row_token t = {.m = at->row};
    ptx_u64 y = w8a8_find_y(q, at->row, at->column);
    struct column c = {.scale.d =
                           ptx_ld_global_f64(k, w8a8_of_column(q, W8A8_W_SCALE, at->column, 8), 0)};
    if (q->spec->asymmetric)
        c.sum = ptx_ld_global_s32(k, w8a8_of_column(q, W8A8_W_SUM, at->column, 4), 0);
    if (q->spec->bias)
        c.bias.d = ptx_ld_global_f64(k, w8a8_of_column(q, W8A8_BIAS, at->column, 8), 0);
    w8a8_load_token(q, at->row, &t);
    w8a8_store_one(q, y, 0, w8a8_finish(q, &t, &c, sums[0]));
}

/* ---- tiles ---- */

static void locate(void *user, ptx_u32 tile, struct gemm_epilogue *o)
{
    struct product *q = user;
    struct gemm_place place = w8a8_place_of(q, tile);
    struct feature_block block = w8a8_find_block(q, place.n);
    o->first_row = ptx_mul_lo_u32(q->g.k, place.m, U32(q->v->tile_m));
    o->first_column = o->pairs ? ptx_shr_u32(q->g.k, block.first, U32(1)) : block.first;
    if (!o->has_any_tiles)
        return;
    ptx_u32 count = o->pairs ? ptx_shr_u32(q->g.k, block.count, U32(1)) : block.count;
    o->end_column = ptx_add_u32(q->g.k, o->first_column, count);
}

static ptx_u32 accumulator(const void *from, uint32_t t, uint32_t j, uint32_t r)
{
    const struct product *q = from;
    return q->acc[t][j][r];
}

/* The bits of the addresses of what is loaded by chunks. */
static ptx_u64 places(struct product *q)
{
    ptx_u64 all = w8a8_has_groups(q->spec) ? U64(0) : q->address[W8A8_W_SCALE];
    if (q->spec->bias)
        all = ptx_or_b64(q->g.k, all, q->address[W8A8_BIAS]);
    if (q->spec->asymmetric)
        all = ptx_or_b64(q->g.k, all, q->address[W8A8_W_SUM]);
    return all;
}

void w8a8_begin_output(struct product *q)
{
    const ptxgen_tile *v = q->v;
    bool divides = !v->fused && !gemm_is_wgmma(v) && v->cluster == 1;
    ptx_u64 all_places = places(q), y_stride = ptx_cvt_u64_u32(q->g.k, q->y_stride);
    ptx_u64 stride = q->spec->residual ? ptx_cvt_u64_u32(q->g.k, q->residual_stride) : y_stride;
    q->output = (struct gemm_epilogue){
        .g = &q->g,
        .at = &q->g.at,
        .type = (ptxgen_element)q->spec->y_type,
        .n = q->spec->n,
        .y = q->address[W8A8_Y],
        .y_stride = y_stride,
        .residual = q->address[W8A8_RESIDUAL],
        .residual_stride = stride,
        .has_residual = q->spec->residual,
        .activation = (ptxgen_activation)q->spec->activation,
        .pairs = w8a8_gated(q->spec) ? W8A8_PAIR_ROWS : 0,
        .acc = accumulator,
        .sums = {.tile_m = w8a8_columns(v),
                 .tile_n = v->tile_n,
                 .warp_n = v->tile_n / v->wn,
                 .wk = w8a8_warps_along_k(v),
                 .wm = v->wm,
                 .along_m = q->along_m,
                 .pass_m = w8a8_pass_tokens(v),
                 .ctas = v->cluster,
                 .integer = w8a8_code_type(q->spec->codes)->integer,
                 .staging = q->staging},
        .along = q->along_n,
        .along_k = q->along_k,
        .only = w8a8_has_one_tile(q->plan, v),
        .partials = {.threads = w8a8_consumer_threads(v),
                     .fragments = divides ? feature_tiles(q) * token_tiles(q) : 0},
        .first_partials = q->address[W8A8_PARTIALS],
        .flags = q->address[W8A8_FLAGS],
        .locate = locate,
        .locates_early = true,
        .has_any_tiles = w8a8_rows(q->spec) != v->tile_n * v->blocks_n,
        .load_ahead = loads_ahead(q) ? load_ahead : NULL,
        .scale = q->wide ? NULL : scale,
        .has_scale_places = !q->wide,
        .scale_places = all_places,
        .finish = q->wide ? finish_f64 : NULL,
        .most_width = q->wide ? 1 : 0,
        .user = q,
    };
    gemm_epilogue_begin(&q->output);
}
