/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a tile: sums over the warps along K and over the CTAs that share the tile, then
 *
 *     y = ((acc − z·Σw) · sx) · sw + bias
 *
 * a chunk of a token's row a thread, every operation rounded in the work type.
 */
#include "../tile/chunk.h"
#include "emit.h"

static uint32_t width(const struct product *q)
{
    return q->sums.width;
}

static bool has_vectors(const struct product *q)
{
    return width(q) == 8 && !q->wide;
}

static uint32_t y_bytes(const struct product *q)
{
    return (uint32_t)ptxgen_element_size((ptxgen_element)q->spec->y_type);
}

/* Chunks may be accessed in 16-byte parts wherever they start at a multiple of 8 columns. */
static ptx_pred find_aligned(struct product *q)
{
    ptx_kernel *k = q->k;
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

/* Rows of a pass that the CTA finishes: a cluster's share them. */
static uint32_t own_rows(const struct product *q)
{
    return q->sums.pass_m / q->v->cluster;
}

void w8a8_begin_output(struct product *q)
{
    ptx_kernel *k = q->k;
    struct tile_sums *s = &q->sums;
    *s = (struct tile_sums){.staging = s->staging,
                            .tile_m = w8a8_columns(q->v),
                            .tile_n = q->v->rows,
                            .warp_n = q->v->rows / q->v->wn,
                            .wk = w8a8_warps_along_k(q->v),
                            .pass_m = w8a8_pass_tokens(q->v),
                            .integer = true};
    s->width = tile_chunk_width(s->pass_m * s->tile_n, w8a8_multipliers(q->v));
    tile_sums_begin(k, &q->at, q->along_n, q->along_k, s);
    ptx_u32 above =
        ptx_mul_lo_u32(k, q->along_m, U32(s->pass_m / q->v->wm * tile_sums_pitch(s->tile_n)));
    s->lane = ptx_add_u32(k, s->lane, above);
    if (q->v->cluster > 1) {
        q->others = *s;
        q->others.remote = true;
        ptx_u32 other = ptx_xor_b32(k, q->rank, U32(1));
        q->others.staging = ptx_mapa_shared_cluster_u32(k, s->staging, other);
    } else if (!q->v->fused && !q->v->wgmma) {
        q->partials.threads = w8a8_multipliers(q->v);
        q->partials.fragments = row_tiles(q) * token_tiles(q);
        q->partials.integer = true;
        tile_partials_begin(k, &q->at, q->address[W8A8_PARTIALS], &q->partials);
    }
    uint32_t chunks = s->tile_n / s->width;
    ptx_u32 in_row = ptx_and_b32(k, q->at.thread, U32(chunks - 1));
    q->part.row = tile_divide(k, q->at.thread, chunks);
    if (q->v->cluster > 1)
        q->part.row = ptx_mad_lo_u32(k, q->rank, U32(own_rows(q)), q->part.row);
    q->part.column = ptx_mul_lo_u32(k, in_row, U32(s->width));
    if (has_vectors(q))
        q->aligned = find_aligned(q);
}

/* ---- what belongs to columns and to tokens ---- */

/* Whether a thread loads what it needs of its columns, and of its tokens, when a tile begins. */
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
    return ptx_mad_wide_u32(q->k, n, U32(bytes), q->address[param]);
}

static void load_eight(struct product *q, enum w8a8_param param, ptx_u32 to[8])
{
    ptx_u64 from = of_column(q, param, q->part.n, 4);
    for (int i = 0; i < 8; i += 4)
        ptx_ld_global_v4_u32_to(q->k, to + i, from, 4 * i);
}

static ptx_pred has_column(struct product *q, uint32_t i)
{
    return ptx_setp_gt_s32(q->k, q->part.left, S32((int32_t)i));
}

static void load_words(struct product *q, enum w8a8_param param, ptx_u32 to[8])
{
    ptx_u64 from = of_column(q, param, q->part.n, 4);
    for (uint32_t i = 0; i < width(q); i++)
        ptx_guarded(q->k, has_column(q, i))
            ptx_ld_global_u32_to(q->k, to[i], from, (int)(4 * i));
}

/* Of the thread's columns, as far as there are such; 0 beyond. */
static void load_columns(struct product *q, enum w8a8_param param, ptx_u32 to[8])
{
    ptx_kernel *k = q->k;
    for (uint32_t i = 0; i < width(q); i++)
        to[i] = ptx_mov_u32(k, U32(0));
    if (has_vectors(q)) {
        ptx_if_else(k, q->part.whole) load_eight(q, param, to);
        else load_words(q, param, to);
    } else
        load_words(q, param, to);
}

/* The tile's token whose sums stand in row `row` of the pass: warps along M share a pass. */
static ptx_u32 token_of(struct product *q, ptx_u32 pass, ptx_u32 row)
{
    ptx_kernel *k = q->k;
    uint32_t share = q->sums.pass_m / q->v->wm;
    ptx_u32 along = tile_divide(k, row, share), in_share = tile_remainder(k, row, share);
    ptx_u32 token = ptx_mad_lo_u32(k, pass, U32(share), in_share);
    return ptx_mad_lo_u32(k, along, U32(q->sums.tile_m / q->v->wm), token);
}

/* Rows of a pass that all threads finish at once, and how often that is. */
static uint32_t rows_at_once(const struct product *q)
{
    return w8a8_multipliers(q->v) * width(q) / q->sums.tile_n;
}

static uint32_t turns(const struct product *q)
{
    uint32_t rows = rows_at_once(q);
    return rows < own_rows(q) ? own_rows(q) / rows : 1;
}

static void load_shared_token(struct product *q, struct row_token *t)
{
    ptx_kernel *k = q->k;
    ptx_u32 at = ptx_mad_lo_u32(k, t->m, U32(w8a8_work_bytes(q->spec)), q->token_scales);
    ptx_u32 zero = ptx_mad_lo_u32(k, t->m, U32(4), q->token_zeros);
    ptx_guarded(k, t->exists) {
        if (q->wide)
            ptx_ld_shared_f64_to(k, t->scale.d, at, 0);
        else
            ptx_ld_shared_f32_to(k, t->scale.f, at, 0);
        if (q->spec->asymmetric)
            ptx_ld_shared_s32_to(k, t->zero, zero, 0);
    }
}

static void load_global_token(struct product *q, struct row_token *t)
{
    ptx_kernel *k = q->k;
    ptx_u64 at = of_column(q, W8A8_TOKEN_SCALES, t->m, w8a8_work_bytes(q->spec));
    ptx_u64 zero = q->spec->asymmetric ? of_column(q, W8A8_TOKEN_ZEROS, t->m, 4) : U64(0);
    ptx_guarded(k, t->exists) {
        if (q->wide)
            ptx_ld_global_f64_to(k, t->scale.d, at, 0);
        else
            ptx_ld_global_f32_to(k, t->scale.f, at, 0);
        if (q->spec->asymmetric)
            ptx_ld_global_s32_to(k, t->zero, zero, 0);
    }
}

/* Which token stands in the row, and whether the thread has something to finish there. */
static struct row_token find_token(struct product *q, ptx_u32 pass, ptx_u32 row)
{
    ptx_kernel *k = q->k;
    struct part *p = &q->part;
    struct row_token t = {.row = row};
    ptx_pred has_columns = ptx_setp_gt_s32(k, p->left, S32(0));
    if (rows_at_once(q) > own_rows(q)) {
        uint32_t threads = w8a8_multipliers(q->v) / rows_at_once(q) * own_rows(q);
        has_columns = ptx_setp_bool_lt_u32(k, q->at.thread, U32(threads), has_columns);
    }
    ptx_u32 token = token_of(q, pass, row);
    t.exists = ptx_setp_bool_lt_u32(k, token, p->tokens, has_columns);
    t.m = ptx_add_u32(k, p->first_token, token);
    return t;
}

/* The tokens that the thread finishes in a pass. */
static void load_tokens(struct product *q, ptx_u32 pass, struct row_token *tokens)
{
    ptx_kernel *k = q->k;
    for (uint32_t i = 0; i < turns(q); i++) {
        struct row_token *t = &tokens[i];
        ptx_u32 row = q->part.row;
        *t = find_token(q, pass, i ? ptx_add_u32(k, row, U32(i * rows_at_once(q))) : row);
        t->zero = ptx_mov_s32(k, S32(0));
        if (q->wide)
            t->scale.d = ptx_mov_f64(k, F64(0));
        else
            t->scale.f = ptx_mov_f32(k, F32(0));
        if (q->v->fused)
            load_shared_token(q, t);
        else
            load_global_token(q, t);
    }
}

/* ---- chunks of columns ---- */

static void store_eight(struct product *q, ptx_u64 y, const ptx_f32 v[8])
{
    ptx_kernel *k = q->k;
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
    ptx_kernel *k = q->k;
    int offset = (int)(i * y_bytes(q));
    if (q->spec->y_type == PTXGEN_F32)
        ptx_st_global_f32(k, y, offset, v);
    else if (q->spec->y_type == PTXGEN_F16)
        ptx_st_global_f16(k, y, offset, ptx_cvt_f16_f32(k, v));
    else
        ptx_st_global_bf16(k, y, offset, ptx_cvt_bf16_f32(k, v));
}

static void store_one(struct product *q, ptx_u64 y, uint32_t i, ptx_f64 v)
{
    if (q->spec->y_type == PTXGEN_F64)
        ptx_st_global_f64(q->k, y, (int)(8 * i), v);
    else
        w8a8_store_f32(q, y, i, ptx_cvt_f32_f64(q->k, v));
}

static void store_each(struct product *q, ptx_u64 y, const ptx_f32 *v)
{
    for (uint32_t i = 0; i < width(q); i++)
        ptx_guarded(q->k, has_column(q, i))
            w8a8_store_f32(q, y, i, v[i]);
}

static void store_narrow(struct product *q, ptx_u64 y, const ptx_f32 *v)
{
    if (!has_vectors(q)) {
        store_each(q, y, v);
        return;
    }
    ptx_if_else(q->k, q->part.whole) store_eight(q, y, v);
    else store_each(q, y, v);
}

/* What there is for each column, of the part or loaded here. */
static const ptx_u32 *columns_of(struct product *q, enum w8a8_param param, const ptx_u32 *ahead,
                                 ptx_u32 here[TILE_SUMS_WIDTH])
{
    if (loads_ahead(q))
        return ahead;
    load_columns(q, param, here);
    return here;
}

static void finish_narrow(struct product *q, const struct row_token *t, ptx_u64 y,
                          const ptx_u32 sums[TILE_SUMS_WIDTH])
{
    ptx_kernel *k = q->k;
    const struct columns *c = &q->part.columns;
    ptx_u32 here[TILE_SUMS_WIDTH];
    const ptx_u32 *of_w;
    ptx_f32 v[TILE_SUMS_WIDTH];
    if (q->spec->asymmetric) {
        ptx_s32 minus_zero = ptx_neg_s32(k, t->zero);
        of_w = columns_of(q, W8A8_W_SUM, c->sum, here);
        for (uint32_t i = 0; i < width(q); i++)
            v[i] = ptx_cvt_f32_s32(k, ptx_mad_lo_s32(k, minus_zero, ptx_u32_as_s32(of_w[i]),
                                                     ptx_u32_as_s32(sums[i])));
    } else
        for (uint32_t i = 0; i < width(q); i++)
            v[i] = ptx_cvt_f32_s32(k, ptx_u32_as_s32(sums[i]));
    of_w = columns_of(q, W8A8_W_SCALE, c->scale, here);
    for (uint32_t i = 0; i < width(q); i++) {
        ptx_f32 scaled = ptx_mul_f32(k, v[i], t->scale.f);
        v[i] = ptx_mul_f32(k, scaled, ptx_u32_as_f32(of_w[i]));
    }
    if (q->spec->bias) {
        of_w = columns_of(q, W8A8_BIAS, c->bias, here);
        for (uint32_t i = 0; i < width(q); i++)
            v[i] = ptx_add_f32(k, v[i], ptx_u32_as_f32(of_w[i]));
    }
    store_narrow(q, y, v);
}

static void finish_wide(struct product *q, const struct row_token *t, ptx_u64 y,
                        const ptx_u32 sums[TILE_SUMS_WIDTH])
{
    ptx_kernel *k = q->k;
    for (uint32_t i = 0; i < width(q); i++)
        ptx_if(k, has_column(q, i)) {
            ptx_u32 n = ptx_add_u32(k, q->part.n, U32(i));
            ptx_s32 acc = ptx_u32_as_s32(sums[i]);
            if (q->spec->asymmetric) {
                ptx_s32 sum = ptx_ld_global_s32(k, of_column(q, W8A8_W_SUM, n, 4), 0);
                acc = ptx_mad_lo_s32(k, ptx_neg_s32(k, t->zero), sum, acc);
            }
            ptx_f64 v = ptx_mul_f64(k, ptx_cvt_f64_s32(k, acc), t->scale.d);
            v = ptx_mul_f64(k, v, ptx_ld_global_f64(k, of_column(q, W8A8_W_SCALE, n, 8), 0));
            if (q->spec->bias)
                v = ptx_add_f64(k, v, ptx_ld_global_f64(k, of_column(q, W8A8_BIAS, n, 8), 0));
            store_one(q, y, i, v);
        }
}

/* The sums of the cluster's other CTA. */
static void add_other(struct product *q, const struct row_token *t,
                      ptx_u32 sums[TILE_SUMS_WIDTH])
{
    ptx_u32 more[TILE_SUMS_WIDTH];
    tile_sums_load(q->k, &q->others, t->row, q->part.column, more);
    for (uint32_t i = 0; i < width(q); i++)
        sums[i] = ptx_add_u32(q->k, sums[i], more[i]);
}

static void finish_chunk(struct product *q, const struct row_token *t)
{
    ptx_kernel *k = q->k;
    ptx_u32 sums[TILE_SUMS_WIDTH];
    tile_sums_load(k, &q->sums, t->row, q->part.column, sums);
    if (q->v->cluster > 1)
        add_other(q, t, sums);
    ptx_u64 element = ptx_mad_wide_u32(k, t->m, q->y_stride, ptx_cvt_u64_u32(k, q->part.n));
    ptx_u64 y = ptx_mad_lo_u64(k, element, U64(y_bytes(q)), q->address[W8A8_Y]);
    if (q->wide)
        finish_wide(q, t, y, sums);
    else
        finish_narrow(q, t, y, sums);
}

/* ---- the whole ---- */

void w8a8_begin_part(struct product *q, ptx_u32 tile)
{
    ptx_kernel *k = q->k;
    struct part *p = &q->part;
    struct tile_place place = w8a8_place_of(q, tile);
    struct row_block rows = w8a8_find_rows(q, place.n);
    p->first_token = ptx_mul_lo_u32(k, place.m, U32(q->v->tokens));
    p->tokens = ptx_sub_u32(k, q->m, p->first_token);
    p->n = ptx_add_u32(k, rows.first, p->column);
    p->left = ptx_sub_s32(k, ptx_u32_as_s32(rows.count), ptx_u32_as_s32(p->column));
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
    return ptx_s32_as_u32(q->acc[t][j][r]);
}

static ptx_u32 fragment(const void *from, uint32_t i, uint32_t r)
{
    const struct product *q = from;
    return accumulator(q, i / token_tiles(q), i % token_tiles(q), r);
}

/* The CTAs below have handed over their shares of the tile; this one adds them to its own. */
static void add_others(struct product *q, ptx_u32 tile)
{
    ptx_kernel *k = q->k;
    ptx_u32 start = ptx_mul_lo_u32(k, tile, U32(q->division.stages));
    ptx_u32 lowest = tile_lowest_cta(k, &q->division, &q->at, start);
    tile_wait_for(k, &q->at, q->address[W8A8_FLAGS], lowest, w8a8_multipliers(q->v));
    tile_partials_add(k, &q->partials, &q->at, lowest, fragment, q);
}

/* Of the CTA, or of the cluster. */
static void synchronise(struct product *q)
{
    if (q->v->cluster == 1) {
        tile_sync(q->k, &q->at);
        return;
    }
    ptx_barrier_cluster_arrive(q->k);
    ptx_barrier_cluster_wait(q->k);
}

/* What was loaded for the second turn is now for the first, and so on. */
static void move_up(struct product *q, struct row_token *tokens)
{
    ptx_kernel *k = q->k;
    for (uint32_t i = 0; i + 1 < turns(q); i++) {
        if (q->wide)
            ptx_mov_f64_to(k, tokens[i].scale.d, tokens[i + 1].scale.d);
        else
            ptx_mov_f32_to(k, tokens[i].scale.f, tokens[i + 1].scale.f);
        if (q->spec->asymmetric)
            ptx_mov_s32_to(k, tokens[i].zero, tokens[i + 1].zero);
    }
}

/* One text for all turns. */
static void finish_pass(struct product *q, ptx_u32 pass, struct row_token *tokens)
{
    ptx_kernel *k = q->k;
    if (turns(q) == 1) {
        ptx_if(k, tokens[0].exists)
            finish_chunk(q, &tokens[0]);
        return;
    }
    ptx_u32 turn = ptx_mov_u32(k, U32(0)), row = ptx_mov_u32(k, q->part.row);
    ptx_for(k, turn, U32(turns(q)), U32(1)) {
        ptx_nounroll(k);
        struct row_token t = find_token(q, pass, row);
        t.scale = tokens[0].scale;
        t.zero = tokens[0].zero;
        ptx_if(k, t.exists)
            finish_chunk(q, &t);
        move_up(q, tokens);
        ptx_add_u32_to(k, row, row, U32(rows_at_once(q)));
    }
}

/* One pass after the other, with one text for all but the staging, whose registers differ. */
static void finish_passes(struct product *q, const struct tile_sums *staged)
{
    ptx_kernel *k = q->k;
    struct row_token tokens[MOST_TURNS];
    if (q->v->wgmma)
        synchronise(q);
    ptx_u32 pass = ptx_mov_u32(k, U32(0));
    ptx_loop(k, loop) {
        ptx_nounroll(k);
        load_tokens(q, pass, tokens);
        for (uint32_t i = 0; i < passes(q); i++)
            ptx_if(k, ptx_setp_eq_u32(k, pass, U32(i)))
                tile_sums_stage(k, staged, i, accumulator, q);
        synchronise(q);
        finish_pass(q, pass, tokens);
        ptx_add_u32_to(k, pass, pass, U32(1));
        ptx_loop_break_if(&loop, ptx_setp_eq_u32(k, pass, U32(passes(q))), false);
        synchronise(q); /* all have read what the next pass overwrites */
    }
}

static void finish_tile(struct product *q)
{
    struct tile_sums staged = q->sums;
    struct row_token tokens[MOST_TURNS];
    staged.pass_m /= q->v->wm;
    if (passes(q) > 1) {
        finish_passes(q, &staged);
        return;
    }
    if (!loads_ahead(q))
        load_tokens(q, U32(0), tokens);
    if (q->v->wgmma) /* all have read the sums of the tile before */
        synchronise(q);
    tile_sums_stage(q->k, &staged, 0, accumulator, q);
    synchronise(q);
    finish_pass(q, U32(0), loads_ahead(q) ? q->part.ahead : tokens);
}

void w8a8_emit_output(struct product *q, const struct tile_walk *w, ptx_u32 first)
{
    ptx_kernel *k = q->k;
    if (q->v->fused || q->v->wgmma || q->v->cluster > 1) {
        finish_tile(q);
        if (q->v->cluster > 1) { /* the other may still read these sums */
            ptx_barrier_cluster_arrive_relaxed(k);
            ptx_barrier_cluster_wait(k);
        }
        return;
    }
    ptx_if_else(k, ptx_setp_eq_u32(k, w->stage_end, U32(q->division.stages))) {
        ptx_if(k, ptx_setp_ne_u32(k, first, U32(0)))
            add_others(q, w->tile);
        finish_tile(q);
    } else {
        tile_partials_store(k, &q->partials, fragment, q);
        tile_hand_over(k, &q->at, q->address[W8A8_FLAGS]);
    }
}
