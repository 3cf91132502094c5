/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epilogue of a tile: adds the sums of the warps along K and of the CTAs that share the tile,
 * then threads finish chunks of a token's row of y:
 *
 *     y = ((acc − z·Σw) · sx) · sw + bias
 *
 * Every operation is rounded in the work type.
 */
#include "../gemm/chunk.h"
#include "emit.h"

/* Features of a chunk, which a thread finishes at once. */
static uint32_t width(const struct product *q)
{
    return q->sums.width;
}
/* Tokens of a pass that the CTA finishes: the CTAs of a cluster divide them. */
static uint32_t own_rows(const struct product *q)
{
    return q->sums.pass_m / q->v->cluster;
}

/* Tokens of a pass that all threads finish at once, and the rounds that a pass takes. */
static uint32_t rows_at_once(const struct product *q)
{
    return w8a8_consumer_threads(q->v) * width(q) / q->sums.tile_n;
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

static uint32_t y_bytes(const struct product *q)
{
    return (uint32_t)ptxgen_element_size((ptxgen_element)q->spec->y_type);
}

/* Whether chunks that start at multiples of 8 features may be accessed in parts of 16 bytes. */
static ptx_pred find_aligned(struct product *q)
{
    ptx_kernel *k = q->g.k;
    ptx_u64 all = ptx_mul_wide_u32(k, q->y_stride, U32(y_bytes(q)));
    all = ptx_or_b64(k, all, q->address[W8A8_Y]);
    all = ptx_or_b64(k, all, q->address[W8A8_W_SCALE]);
    if (q->spec->bias)
        all = ptx_or_b64(k, all, q->address[W8A8_BIAS]);
    if (q->spec->asymmetric)
        all = ptx_or_b64(k, all, q->address[W8A8_W_SUM]);
    ptx_u64 low = ptx_and_b64(k, all, U64(15));
    return ptx_setp_eq_u64(k, low, U64(0));
}

void w8a8_begin_output(struct product *q)
{
    ptx_kernel *k = q->g.k;
    struct gemm_sums *s = &q->sums;
    *s = (struct gemm_sums){.staging = s->staging,
                            .tile_m = w8a8_columns(q->v),
                            .tile_n = q->v->tile_n,
                            .warp_n = q->v->tile_n / q->v->wn,
                            .wk = w8a8_warps_along_k(q->v),
                            .pass_m = w8a8_pass_tokens(q->v),
                            .integer = w8a8_sums_are_integers(q->spec)};
    s->width = gemm_chunk_width(s->pass_m * s->tile_n, w8a8_consumer_threads(q->v));
    gemm_sums_begin(k, &q->g.at, q->along_n, q->along_k, s);
    ptx_u32 above =
        ptx_mul_lo_u32(k, q->along_m, U32(s->pass_m / q->v->wm * gemm_sums_pitch(s->tile_n)));
    s->lane = ptx_add_u32(k, s->lane, above);
    if (q->v->cluster > 1) {
        q->others = *s;
        q->others.remote = true;
        ptx_u32 other = ptx_xor_b32(k, q->g.rank, U32(1));
        q->others.staging = ptx_mapa_shared_cluster_u32(k, s->staging, other);
    } else if (!q->v->fused && !w8a8_is_wgmma(q->v)) {
        q->partials.threads = w8a8_consumer_threads(q->v);
        q->partials.fragments = feature_tiles(q) * token_tiles(q);
        q->partials.integer = w8a8_sums_are_integers(q->spec);
        gemm_partials_begin(k, &q->g.at, q->address[W8A8_PARTIALS], &q->partials);
    }
    uint32_t chunks = s->tile_n / s->width;
    ptx_u32 in_row = ptx_and_b32(k, q->g.at.thread, U32(chunks - 1));
    q->part.row = gemm_divide(k, q->g.at.thread, chunks);
    if (q->v->cluster > 1)
        q->part.row = ptx_mad_lo_u32(k, q->g.rank, U32(own_rows(q)), q->part.row);
    q->part.column = ptx_mul_lo_u32(k, in_row, U32(s->width));
    if (has_vectors(q))
        q->aligned = find_aligned(q);
}

/* ---- scales, biases and zero points of columns and tokens ---- */

/* Whether a thread loads its scales, biases and tokens when a tile begins. */
static bool loads_ahead(const struct product *q)
{
    return w8a8_takes_all_tokens(q->v) && !q->wide;
}

static uint32_t passes(const struct product *q)
{
    return q->sums.tile_m / q->sums.pass_m;
}

static ptx_u64 of_column(struct product *q, enum w8a8_param param, ptx_u32 n, uint32_t bytes)
{
    return ptx_mad_wide_u32(q->g.k, n, U32(bytes), q->address[param]);
}

static void load_eight(struct product *q, enum w8a8_param param, ptx_u32 to[8])
{
    ptx_u64 from = of_column(q, param, q->part.n, 4);
    for (int i = 0; i < 8; i += 4)
        ptx_ld_global_v4_u32_to(q->g.k, to + i, from, 4 * i);
}

static ptx_pred has_column(struct product *q, uint32_t i)
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
    ptx_u64 from = of_column(q, param, q->part.n, 4);
    for (uint32_t i = 0; i < width(q); i++)
        ptx_guarded(k, has_column(q, i))
            ptx_ld_global_u32_to(k, to[i], from, (int)(4 * i));
}

/* The tile's token whose sums are in row `row` of the pass; warps along M divide a pass. */
static ptx_u32 token_of(struct product *q, ptx_u32 pass, ptx_u32 row)
{
    ptx_kernel *k = q->g.k;
    uint32_t share = q->sums.pass_m / q->v->wm;
    ptx_u32 along = gemm_divide(k, row, share), in_share = gemm_remainder(k, row, share);
    ptx_u32 token = ptx_mad_lo_u32(k, pass, U32(share), in_share);
    return ptx_mad_lo_u32(k, along, U32(q->sums.tile_m / q->v->wm), token);
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
        there = of_column(q, W8A8_TOKEN_SCALES, t->m, bytes);
        zero_there = zeros ? of_column(q, W8A8_TOKEN_ZEROS, t->m, 4) : there;
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
static struct row_token find_token(struct product *q, ptx_u32 pass, ptx_u32 row)
{
    ptx_kernel *k = q->g.k;
    struct part *p = &q->part;
    struct row_token t = {.row = row};
    ptx_pred has_columns = ptx_setp_gt_s32(k, p->left, S32(0));
    if (rows_at_once(q) > own_rows(q)) {
        uint32_t threads = w8a8_consumer_threads(q->v) / rows_at_once(q) * own_rows(q);
        has_columns = ptx_setp_bool_lt_u32(k, q->g.at.thread, U32(threads), has_columns);
    }
    ptx_u32 token = token_of(q, pass, row);
    t.exists = ptx_setp_bool_lt_u32(k, token, p->tokens, has_columns);
    t.m = ptx_add_u32(k, p->first_token, token);
    return t;
}

/* Loads the scales and zero points of the tokens that the thread finishes in a pass. */
static void load_tokens(struct product *q, ptx_u32 pass, struct row_token *tokens)
{
    ptx_kernel *k = q->g.k;
    for (uint32_t i = 0; i < rounds(q); i++) {
        struct row_token *t = &tokens[i];
        ptx_u32 row = q->part.row;
        *t = find_token(q, pass, i ? ptx_add_u32(k, row, U32(i * rows_at_once(q))) : row);
        w8a8_load_token(q, t);
    }
}

/* ---- chunks of columns ---- */

static void store_eight(struct product *q, ptx_u64 y, const ptx_f32 v[8])
{
    ptx_kernel *k = q->g.k;
    ptx_u32 words[8];
    bool is_f32 = q->spec->y_type == PTXGEN_F32, is_bf16 = q->spec->y_type == PTXGEN_BF16;
    for (int i = 0; i < 8 && is_f32; i++)
        words[i] = ptx_f32_as_u32(v[i]);
    for (int i = 0; i < 4 && !is_f32; i++)
        words[i] = is_bf16 ? ptx_bf16x2_as_u32(ptx_cvt_bf16x2_f32(k, v[2 * i + 1], v[2 * i]))
                           : ptx_f16x2_as_u32(ptx_cvt_f16x2_f32(k, v[2 * i + 1], v[2 * i]));
    ptx_st_global_v4_u32(k, y, 0, words);
    if (is_f32)
        ptx_st_global_v4_u32(k, y, 16, words + 4);
}

void w8a8_store_f32(struct product *q, ptx_u64 y, uint32_t i, ptx_f32 v)
{
    ptx_kernel *k = q->g.k;
    int offset = (int)(i * y_bytes(q));
    if (q->spec->y_type == PTXGEN_F32)
        ptx_st_global_f32(k, y, offset, v);
    else if (q->spec->y_type == PTXGEN_F16)
        ptx_st_global_f16(k, y, offset, ptx_cvt_f16_f32(k, v));
    else
        ptx_st_global_bf16(k, y, offset, ptx_cvt_bf16_f32(k, v));
}

void w8a8_store_one(struct product *q, ptx_u64 y, uint32_t i, struct work v)
{
    if (q->spec->y_type == PTXGEN_F64)
        ptx_st_global_f64(q->g.k, y, (int)(8 * i), v.d);
    else
        w8a8_store_f32(q, y, i, q->wide ? ptx_cvt_f32_f64(q->g.k, v.d) : v.f);
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

/* The thread's sums, with those of the other CTA of the cluster added. */
static void load_sums(struct product *q, const struct row_token *t, ptx_u32 sums[GEMM_SUMS_WIDTH])
{
    ptx_u32 more[GEMM_SUMS_WIDTH];
    gemm_sums_load(q->g.k, &q->sums, t->row, q->part.column, sums);
    if (q->v->cluster == 1)
        return;
    gemm_sums_load(q->g.k, &q->others, t->row, q->part.column, more);
    for (uint32_t i = 0; i < width(q); i++)
        sums[i] = w8a8_add_sums(q->g.k, q->spec, sums[i], more[i]);
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
    load_sums(q, t, sums);
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
    if (has_vectors(q))
        store_eight(q, y, v);
    else
        for (uint32_t i = 0; i < width(q); i++)
            ptx_guarded(k, has_column(q, i))
                w8a8_store_f32(q, y, i, v[i]);
}

/* ---- single columns: f64, and chunks that are not whole ---- */

/* The sum at `place` among those of a CTA. */
static ptx_u32 load_sum(struct product *q, const struct gemm_sums *s, ptx_u32 place)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 at = ptx_add_u32(k, s->staging, place);
    ptx_u32 sum = U32(0);
    for (uint32_t w = 0; w < s->wk; w++) {
        int offset = (int)(w * s->pass_m * gemm_sums_pitch(s->tile_n));
        ptx_s32 one =
            s->remote ? ptx_ld_shared_cluster_s32(k, at, offset) : ptx_ld_shared_s32(k, at, offset);
        sum = w ? w8a8_add_sums(k, q->spec, sum, ptx_s32_as_u32(one)) : ptx_s32_as_u32(one);
    }
    return sum;
}

static struct work finish_column(struct product *q, const struct row_token *t, ptx_u32 place,
                                 ptx_u32 n)
{
    ptx_kernel *k = q->g.k;
    uint32_t bytes = w8a8_work_bytes(q->spec);
    ptx_u32 acc = load_sum(q, &q->sums, place);
    if (q->v->cluster > 1)
        acc = w8a8_add_sums(k, q->spec, acc, load_sum(q, &q->others, place));
    struct column c = {.scale =
                           work_load_global(k, q->wide, of_column(q, W8A8_W_SCALE, n, bytes), 0)};
    if (q->spec->asymmetric)
        c.sum = ptx_ld_global_s32(k, of_column(q, W8A8_W_SUM, n, 4), 0);
    if (q->spec->bias)
        c.bias = work_load_global(k, q->wide, of_column(q, W8A8_BIAS, n, bytes), 0);
    return w8a8_finish(q, t, &c, acc);
}

static void finish_columns(struct product *q, const struct row_token *t, ptx_u64 first_y)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 line = ptx_mul_lo_u32(k, t->row, U32(gemm_sums_pitch(q->sums.tile_n)));
    ptx_u32 place = ptx_mad_lo_u32(k, q->part.column, U32(4), line);
    ptx_u32 n = ptx_mov_u32(k, q->part.n);
    ptx_u32 count = ptx_min_u32(k, ptx_s32_as_u32(q->part.left), U32(width(q)));
    ptx_u32 end = ptx_add_u32(k, n, count);
    ptx_u64 y = ptx_mov_u64(k, first_y);
    ptx_for(k, n, end, U32(1)) {
        ptx_nounroll(k);
        w8a8_store_one(q, y, 0, finish_column(q, t, place, n));
        ptx_add_u32_to(k, place, place, U32(4));
        ptx_add_u64_to(k, y, y, U64(y_bytes(q)));
    }
}

static void finish_row(struct product *q, const struct row_token *t)
{
    ptx_kernel *k = q->g.k;
    ptx_u64 element = ptx_mad_wide_u32(k, t->m, q->y_stride, ptx_cvt_u64_u32(k, q->part.n));
    ptx_u64 y = ptx_mad_lo_u64(k, element, U64(y_bytes(q)), q->address[W8A8_Y]);
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

/* ---- the whole ---- */

void w8a8_begin_part(struct product *q, ptx_u32 tile)
{
    ptx_kernel *k = q->g.k;
    struct part *p = &q->part;
    struct gemm_place place = w8a8_place_of(q, tile);
    struct feature_block rows = w8a8_find_block(q, place.n);
    p->first_token = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    p->tokens = ptx_sub_u32(k, q->g.m, p->first_token);
    p->n = ptx_add_u32(k, rows.first, p->column);
    ptx_s32 count = ptx_u32_as_s32(rows.count), column = ptx_u32_as_s32(p->column);
    p->left = ptx_sub_s32(k, count, column);
    if (has_vectors(q)) {
        ptx_u32 low = ptx_and_b32(k, p->n, U32(7));
        ptx_pred aligned = ptx_setp_bool_eq_u32(k, low, U32(0), q->aligned);
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
        load_tokens(q, U32(0), p->ahead);
}

static ptx_u32 accumulator(const void *from, uint32_t t, uint32_t j, uint32_t r)
{
    const struct product *q = from;
    return q->acc[t][j][r];
}

static ptx_u32 fragment(const void *from, uint32_t i, uint32_t r)
{
    const struct product *q = from;
    return accumulator(q, i / token_tiles(q), i % token_tiles(q), r);
}

/*
 * The fix-up: adds the partial sums of the CTAs with earlier parts of the tile to the accumulators.
 */
static void add_others(struct product *q, ptx_u32 tile)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 start = ptx_mul_lo_u32(k, tile, U32(q->g.division.stages));
    ptx_u32 lowest = gemm_fixup_lowest_cta(k, &q->g.division, &q->g.at, start);
    gemm_fixup_wait(k, &q->g.at, q->address[W8A8_FLAGS], lowest, w8a8_consumer_threads(q->v));
    gemm_partials_add(k, &q->partials, &q->g.at, lowest, fragment, q);
}

/* A barrier of the CTA, or of the cluster. */
static void synchronise(struct product *q)
{
    if (q->v->cluster == 1) {
        gemm_sync(q->g.k, &q->g.at);
        return;
    }
    ptx_barrier_cluster_arrive(q->g.k);
    ptx_barrier_cluster_wait(q->g.k);
}

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

/* Finishes a pass in a loop over rounds that is not unrolled. */
static void finish_pass(struct product *q, ptx_u32 pass, struct row_token *tokens)
{
    ptx_kernel *k = q->g.k;
    if (rounds(q) == 1) {
        ptx_if(k, tokens[0].exists)
            finish_row(q, &tokens[0]);
        return;
    }
    ptx_u32 round = ptx_mov_u32(k, U32(0)), row = ptx_mov_u32(k, q->part.row);
    ptx_for(k, round, U32(rounds(q)), U32(1)) {
        ptx_nounroll(k);
        struct row_token t = find_token(q, pass, row);
        t.scale = tokens[0].scale;
        t.zero = tokens[0].zero;
        ptx_if(k, t.exists)
            finish_row(q, &t);
        move_up(q, tokens);
        ptx_add_u32_to(k, row, row, U32(rows_at_once(q)));
    }
}

/* Finishes all passes in a loop; only the staging, whose registers differ, is unrolled. */
static void finish_passes(struct product *q, const struct gemm_sums *staged)
{
    ptx_kernel *k = q->g.k;
    struct row_token tokens[MOST_ROUNDS];
    if (w8a8_is_wgmma(q->v))
        synchronise(q);
    ptx_u32 pass = ptx_mov_u32(k, U32(0));
    ptx_loop(k, loop) {
        ptx_nounroll(k);
        load_tokens(q, pass, tokens);
        for (uint32_t i = 0; i < passes(q); i++)
            ptx_if(k, ptx_setp_eq_u32(k, pass, U32(i)))
                gemm_sums_stage(k, staged, i, accumulator, q);
        synchronise(q);
        finish_pass(q, pass, tokens);
        ptx_add_u32_to(k, pass, pass, U32(1));
        ptx_loop_break_if(&loop, ptx_setp_eq_u32(k, pass, U32(passes(q))), false);
        synchronise(q); /* all threads have read the rows that the next pass overwrites */
    }
}

static void finish_tile(struct product *q)
{
    struct gemm_sums staged = q->sums;
    struct row_token here[MOST_ROUNDS], *tokens = loads_ahead(q) ? q->part.ahead : here;
    staged.pass_m /= q->v->wm;
    if (passes(q) > 1) {
        finish_passes(q, &staged);
        return;
    }
    if (!loads_ahead(q))
        load_tokens(q, U32(0), tokens);
    if (w8a8_is_wgmma(q->v)) /* all threads have read the sums of the tile before */
        synchronise(q);
    gemm_sums_stage(q->g.k, &staged, 0, accumulator, q);
    synchronise(q);
    finish_pass(q, U32(0), tokens);
}

void w8a8_emit_output(struct product *q, const struct gemm_walk *w, ptx_u32 first)
{
    ptx_kernel *k = q->g.k;
    if (q->v->fused || w8a8_is_wgmma(q->v) || q->v->cluster > 1) {
        finish_tile(q);
        if (q->v->cluster > 1) /* the other CTA has read these sums, which may be overwritten now */
            synchronise(q);
        return;
    }
    ptx_if_else(k, ptx_setp_eq_u32(k, w->stage_end, U32(q->g.division.stages))) {
        ptx_if(k, ptx_setp_ne_u32(k, first, U32(0)))
            add_others(q, w->tile);
        finish_tile(q);
    } else {
        gemm_partials_store(k, &q->partials, fragment, q);
        gemm_fixup_publish(k, &q->g.at, q->address[W8A8_FLAGS]);
    }
}
