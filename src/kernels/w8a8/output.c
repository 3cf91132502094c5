/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the epilogue that only w8a8 has:
 *
 *     y = ((acc − z·Σw) · sx) · sw + bias
 *
 * Every operation is rounded in the work type. A thread finishes the same few features of a tile in
 * all passes. Where registers allow, it loads what it needs of them and of its tokens when the tile
 * begins, so that these loads overlap the products.
 */
#include "emit.h"

/* Features of a chunk, which a thread finishes at once. */
static uint32_t width(const struct product *q)
{
    return q->output.sums.width;
}
/* Tokens of a pass that the CTA finishes: the CTAs of a cluster divide them. */
static uint32_t own_rows(const struct product *q)
{
    return q->output.sums.pass_m / q->v->cluster;
}

/* Tokens of a pass that all threads finish at once, and the rounds that a pass takes. */
static uint32_t rows_at_once(const struct product *q)
{
    return w8a8_consumer_threads(q->v) * width(q) / q->output.sums.tile_n;
}

static uint32_t rounds(const struct product *q)
{
    uint32_t rows = rows_at_once(q);
    return rows < own_rows(q) ? own_rows(q) / rows : 1;
}

static bool has_vectors(const struct product *q)
{
    return width(q) == 8 && !q->wide;
}

uint32_t w8a8_y_bytes(const struct product *q)
{
    return (uint32_t)ptxgen_element_size((ptxgen_element)q->spec->y_type);
}

/* ---- scales, biases and zero points of columns and tokens ---- */

/* Whether a thread loads its scales, biases and tokens when a tile begins. */
static bool loads_ahead(const struct product *q)
{
    return w8a8_takes_all_tokens(q->v) && !q->wide;
}

static uint32_t passes(const struct product *q)
{
    return q->output.sums.tile_m / q->output.sums.pass_m;
}

ptx_u64 w8a8_of_column(struct product *q, enum w8a8_param param, ptx_u32 n, uint32_t bytes)
{
    return ptx_mad_wide_u32(q->g.k, n, U32(bytes), q->address[param]);
}

static void load_eight(struct product *q, enum w8a8_param param, ptx_u32 to[8])
{
    ptx_u64 from = w8a8_of_column(q, param, q->part.n, 4);
    for (int i = 0; i < 8; i += 4)
        ptx_ld_global_v4_u32_to(q->g.k, to + i, from, 4 * i);
}

ptx_pred w8a8_has_column(struct product *q, uint32_t i)
{
    return ptx_setp_gt_s32(q->g.k, q->part.left, S32((int32_t)i));
}

/*
 * Loads an array's elements for the thread's columns, 0 past the last column. Where chunks are
 * stored at once, only those of whole chunks are loaded.
 */
static void load_columns(struct product *q, enum w8a8_param param, ptx_u32 to[8])
{
    ptx_kernel *k = q->g.k;
    for (uint32_t i = 0; i < width(q); i++)
        to[i] = ptx_mov_u32(k, U32(0));
    if (has_vectors(q)) {
        ptx_guarded(k, q->part.whole)
            load_eight(q, param, to);
        return;
    }
    ptx_u64 from = w8a8_of_column(q, param, q->part.n, 4);
    for (uint32_t i = 0; i < width(q); i++)
        ptx_guarded(k, w8a8_has_column(q, i))
            ptx_ld_global_u32_to(k, to[i], from, (int)(4 * i));
}

/* The tile's token whose sums are in row `row` of the pass; warps along M divide a pass. */
static ptx_u32 token_of(struct product *q, ptx_u32 pass_row, ptx_u32 row)
{
    ptx_kernel *k = q->g.k;
    uint32_t share = q->output.sums.pass_m / q->v->wm;
    ptx_u32 along = gemm_divide(k, row, share), in_share = gemm_remainder(k, row, share);
    ptx_u32 token = ptx_add_u32(k, pass_row, in_share);
    return ptx_mad_lo_u32(k, along, U32(q->output.sums.tile_m / q->v->wm), token);
}

void w8a8_load_token(struct product *q, struct row_token *t)
{
    ptx_kernel *k = q->g.k;
    bool shared = q->v->fused, zeros = q->spec->asymmetric;
    uint32_t bytes = w8a8_work_bytes(q->spec);
    ptx_u32 here = U32(0), zero_here = U32(0);
    ptx_u64 there = U64(0), zero_there = U64(0);
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

/* The token of the row, and whether the thread has outputs to finish there. */
static struct row_token find_token(struct product *q, ptx_u32 pass_row, ptx_u32 row)
{
    ptx_kernel *k = q->g.k;
    struct part *p = &q->part;
    struct row_token t = {.row = row};
    ptx_pred has_columns = ptx_setp_gt_s32(k, p->left, S32(0));
    if (rows_at_once(q) > own_rows(q)) {
        uint32_t threads = w8a8_consumer_threads(q->v) / rows_at_once(q) * own_rows(q);
        has_columns = ptx_setp_bool_lt_u32(k, q->g.at.thread, U32(threads), has_columns);
    }
    ptx_u32 token = token_of(q, pass_row, row);
    t.exists = ptx_setp_bool_lt_u32(k, token, q->output.rows, has_columns);
    t.m = ptx_add_u32(k, q->output.first_row, token);
    return t;
}

/* Loads the scales and zero points of the tokens that the thread finishes in a pass. */
static void load_tokens(struct product *q, ptx_u32 pass_row)
{
    ptx_u32 row = q->part.row;
    for (uint32_t i = 0; i < rounds(q); i++) {
        struct row_token *t = &q->part.tokens[i];
        ptx_u32 here = i ? ptx_add_u32(q->g.k, row, U32(i * rows_at_once(q))) : row;
        *t = find_token(q, pass_row, here);
        w8a8_load_token(q, t);
    }
}

/* ---- chunks of columns ---- */

ptx_u64 w8a8_find_y(struct product *q, const struct row_token *t)
{
    ptx_kernel *k = q->g.k;
    ptx_u64 element = ptx_mad_wide_u32(k, t->m, q->y_stride, ptx_cvt_u64_u32(k, q->part.n));
    return ptx_mad_lo_u64(k, element, U64(w8a8_y_bytes(q)), q->address[W8A8_Y]);
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

/* An array's elements for the columns: those loaded ahead, or else loaded here. */
static const ptx_u32 *columns_of(struct product *q, enum w8a8_param param, const ptx_u32 *ahead,
                                 ptx_u32 here[GEMM_SUMS_WIDTH])
{
    if (loads_ahead(q))
        return ahead;
    if (has_vectors(q)) {
        gemm_new_registers(q->g.k, here, GEMM_SUMS_WIDTH);
        load_eight(q, param, here);
    } else
        load_columns(q, param, here);
    return here;
}

struct work w8a8_finish(struct product *q, const struct row_token *t, const struct column *c,
                        ptx_u32 acc)
{
    ptx_kernel *k = q->g.k;
    if (q->spec->asymmetric) {
        ptx_s32 minus_zero = ptx_neg_s32(k, t->zero), sum = ptx_u32_as_s32(acc);
        acc = ptx_s32_as_u32(ptx_mad_lo_s32(k, minus_zero, c->sum, sum));
    }
    struct work v = work_mul(k, q->wide, w8a8_work_of_sum(k, q->wide, q->spec, acc), t->scale);
    v = work_mul(k, q->wide, v, c->scale);
    return q->spec->bias ? work_add(k, q->wide, v, c->bias) : v;
}

/* Finishes all columns of the thread at once. */
static void finish_chunk(struct product *q, const struct row_token *t, ptx_u64 y)
{
    ptx_kernel *k = q->g.k;
    const struct columns *ahead = &q->part.columns;
    ptx_u32 sums[GEMM_SUMS_WIDTH], here[3][GEMM_SUMS_WIDTH];
    const ptx_u32 *scale, *bias = here[1], *sum = here[2];
    ptx_f32 v[GEMM_SUMS_WIDTH];
    gemm_sums_load(k, &q->output.sums, t->row, q->part.column, sums);
    if (q->spec->asymmetric)
        sum = columns_of(q, W8A8_W_SUM, ahead->sum, here[2]);
    scale = columns_of(q, W8A8_W_SCALE, ahead->scale, here[0]);
    if (q->spec->bias)
        bias = columns_of(q, W8A8_BIAS, ahead->bias, here[1]);
    for (uint32_t i = 0; i < width(q); i++) {
        struct column c = {.scale.f = ptx_u32_as_f32(scale[i])};
        if (q->spec->asymmetric)
            c.sum = ptx_u32_as_s32(sum[i]);
        if (q->spec->bias)
            c.bias.f = ptx_u32_as_f32(bias[i]);
        v[i] = w8a8_finish(q, t, &c, sums[i]).f;
    }
    if (has_vectors(q)) {
        ptx_u32 words[GEMM_SUMS_WIDTH];
        gemm_chunk_round(k, &q->output.chunk, v, words);
        gemm_chunk_store_vectors(k, &q->output.chunk, y, 0, words);
        return;
    }
    for (uint32_t i = 0; i < width(q); i++)
        ptx_guarded(k, w8a8_has_column(q, i))
            w8a8_store_one(q, y, i, (struct work){.f = v[i]});
}

/* ---- single columns: f64, and chunks that are not whole ---- */

static struct work finish_column(struct product *q, const struct row_token *t, ptx_u32 n,
                                 ptx_u32 acc)
{
    ptx_kernel *k = q->g.k;
    uint32_t bytes = w8a8_work_bytes(q->spec);
    ptx_u64 scale = w8a8_of_column(q, W8A8_W_SCALE, n, bytes);
    struct column c = {.scale = work_load_global(k, q->wide, scale, 0)};
    if (q->spec->asymmetric)
        c.sum = ptx_ld_global_s32(k, w8a8_of_column(q, W8A8_W_SUM, n, 4), 0);
    if (q->spec->bias)
        c.bias = work_load_global(k, q->wide, w8a8_of_column(q, W8A8_BIAS, n, bytes), 0);
    return w8a8_finish(q, t, &c, acc);
}

static void finish_columns(struct product *q, const struct row_token *t, ptx_u64 first_y)
{
    ptx_kernel *k = q->g.k;
    struct gemm_sums one = q->output.sums;
    one.width = 1;
    ptx_u32 place = gemm_sums_place(k, &one, t->row, q->part.column);
    ptx_u32 n = ptx_mov_u32(k, q->part.n);
    ptx_u32 count = ptx_min_u32(k, ptx_s32_as_u32(q->part.left), U32(width(q)));
    ptx_u32 end = ptx_add_u32(k, n, count);
    ptx_u64 y = ptx_mov_u64(k, first_y);
    ptx_for(k, n, end, U32(1)) {
        ptx_nounroll(k);
        ptx_u32 sum[GEMM_SUMS_WIDTH];
        gemm_sums_load_at(k, &one, place, sum);
        w8a8_store_one(q, y, 0, finish_column(q, t, n, sum[0]));
        ptx_add_u32_to(k, place, place, U32(4));
        ptx_add_u64_to(k, y, y, U64(w8a8_y_bytes(q)));
    }
}

static void finish_row(struct product *q, const struct row_token *t)
{
    ptx_kernel *k = q->g.k;
    ptx_u64 y = w8a8_find_y(q, t);
    if (q->wide)
        finish_columns(q, t, y);
    else if (!has_vectors(q))
        finish_chunk(q, t, y);
    else {
        ptx_if_else(k, q->part.whole)
            finish_chunk(q, t, y);
        else
            finish_columns(q, t, y);
    }
}

/* ---- passes ---- */

/* Moves what was loaded for each round to the round before. */
static void move_up(struct product *q, struct row_token *tokens)
{
    ptx_kernel *k = q->g.k;
    for (uint32_t i = 0; i + 1 < rounds(q); i++) {
        work_copy(k, q->wide, tokens[i].scale, tokens[i + 1].scale);
        if (q->spec->asymmetric)
            ptx_mov_s32_to(k, tokens[i].zero, tokens[i + 1].zero);
    }
}

static void begin_pass(void *user)
{
    struct product *q = user;
    if (!loads_ahead(q) || passes(q) > 1)
        load_tokens(q, q->output.pass_row);
}

/* Finishes a pass in a loop over rounds that is not unrolled. */
static void finish_pass(void *user)
{
    struct product *q = user;
    struct row_token *tokens = q->part.tokens;
    ptx_kernel *k = q->g.k;
    if (rounds(q) == 1) {
        ptx_if(k, tokens[0].exists)
            finish_row(q, &tokens[0]);
        return;
    }
    ptx_u32 round = ptx_mov_u32(k, U32(0)), row = ptx_mov_u32(k, q->part.row);
    ptx_for(k, round, U32(rounds(q)), U32(1)) {
        ptx_nounroll(k);
        struct row_token t = find_token(q, q->output.pass_row, row);
        t.scale = tokens[0].scale;
        t.zero = tokens[0].zero;
        ptx_if(k, t.exists)
            finish_row(q, &t);
        move_up(q, tokens);
        ptx_add_u32_to(k, row, row, U32(rows_at_once(q)));
    }
}

/* ---- tiles ---- */

void w8a8_find_columns(struct product *q, ptx_u32 block)
{
    ptx_kernel *k = q->g.k;
    struct part *p = &q->part;
    struct feature_block rows = w8a8_find_block(q, block);
    p->n = ptx_add_u32(k, rows.first, p->column);
    ptx_s32 count = ptx_u32_as_s32(rows.count), column = ptx_u32_as_s32(p->column);
    p->left = ptx_sub_s32(k, count, column);
}

static void locate(void *user, ptx_u32 tile, struct gemm_epilogue *o)
{
    struct product *q = user;
    struct gemm_place place = w8a8_place_of(q, tile);
    o->first_row = ptx_mul_lo_u32(q->g.k, place.m, U32(q->v->tile_m));
    w8a8_find_columns(q, place.n);
}

void w8a8_begin_part(struct product *q, ptx_u32 tile)
{
    ptx_kernel *k = q->g.k;
    struct part *p = &q->part;
    gemm_epilogue_locate(&q->output, tile);
    if (has_vectors(q)) {
        ptx_u32 low = ptx_and_b32(k, p->n, U32(7));
        ptx_pred aligned = ptx_setp_bool_eq_u32(k, low, U32(0), q->output.chunk.aligned);
        p->whole = ptx_setp_bool_ge_s32(k, p->left, S32(8), aligned);
    }
    if (!loads_ahead(q))
        return;
    load_columns(q, W8A8_W_SCALE, p->columns.scale);
    if (q->spec->bias)
        load_columns(q, W8A8_BIAS, p->columns.bias);
    if (q->spec->asymmetric)
        load_columns(q, W8A8_W_SUM, p->columns.sum);
    if (passes(q) == 1)
        load_tokens(q, U32(0));
}

static ptx_u32 accumulator(const void *from, uint32_t t, uint32_t j, uint32_t r)
{
    const struct product *q = from;
    return q->acc[t][j][r];
}

/* The thread's first row in a pass, and its first feature in a tile. */
static void find_part(struct product *q)
{
    ptx_kernel *k = q->g.k;
    uint32_t chunks = q->v->tile_n / width(q);
    ptx_u32 in_row = ptx_and_b32(k, q->g.at.thread, U32(chunks - 1));
    q->part.row = gemm_divide(k, q->g.at.thread, chunks);
    if (q->v->cluster > 1)
        q->part.row = ptx_mad_lo_u32(k, q->g.rank, U32(own_rows(q)), q->part.row);
    q->part.column = ptx_mul_lo_u32(k, in_row, U32(width(q)));
}

/* The bits of all addresses and pitches of what is accessed by chunks. */
static ptx_u64 places(struct product *q)
{
    ptx_u64 all = ptx_mul_wide_u32(q->g.k, q->y_stride, U32(w8a8_y_bytes(q)));
    all = ptx_or_b64(q->g.k, all, q->address[W8A8_Y]);
    all = ptx_or_b64(q->g.k, all, q->address[W8A8_W_SCALE]);
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
    ptx_u64 all_places = places(q);
    q->output = (struct gemm_epilogue){
        .g = &q->g,
        .at = &q->g.at,
        .type = (ptxgen_element)q->spec->y_type,
        .n = q->spec->n,
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
        .begin_pass = begin_pass,
        .finish_pass = finish_pass,
        .places = all_places,
        .user = q,
    };
    gemm_epilogue_begin(&q->output);
    find_part(q);
}
