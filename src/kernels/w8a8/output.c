/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a tile: sums over the warps along K and over the CTAs that share the tile, then
 *
 *     y = ((acc − z·Σw) · sx) · sw + bias
 *
 * a chunk of a token's row a thread, every operation rounded in the work type.
 */
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

void w8a8_begin_output(struct product *q)
{
    ptx_kernel *k = q->k;
    struct tile_sums *s = &q->sums;
    *s = (struct tile_sums){.staging = s->staging,
                            .tile_m = w8a8_columns(q->v),
                            .tile_n = q->v->rows,
                            .warp_n = q->v->rows / q->v->wn,
                            .wk = q->v->wk,
                            .pass_m = w8a8_pass_tokens(q->v),
                            .integer = true};
    s->width = s->tile_m < 32 ? 2 : 8;
    tile_sums_begin(k, &q->at, q->along_n, q->along_k, s);
    ptx_u32 above =
        ptx_mul_lo_u32(k, q->along_m, U32(s->pass_m / q->v->wm * tile_sums_pitch(s->tile_n)));
    s->lane = ptx_add_u32(k, s->lane, above);
    if (!q->v->fused) {
        q->partials.threads = W8A8_THREADS;
        q->partials.fragments = row_tiles(q) * token_tiles(q);
        q->partials.integer = true;
        tile_partials_begin(k, &q->at, q->address[W8A8_PARTIALS], &q->partials);
    }
    if (has_vectors(q))
        q->aligned = find_aligned(q);
}

/* ---- chunks of columns ---- */

/* A token's share of a row block: where its columns stand, and what all of them have in common. */
struct chunk_place {
    ptx_u32 n,
        left;  /* the chunk's first row of W, and how many of the block there are from it on */
    ptx_u64 y; /* its first element */
    struct work scale;
    ptx_s32 minus_zero;
};

/* What belongs to a column. */
struct column {
    struct work scale, bias;
    ptx_s32 sum;
};

static ptx_u64 of_column(struct product *q, enum w8a8_param param, ptx_u32 n, uint32_t bytes)
{
    return ptx_mad_wide_u32(q->k, n, U32(bytes), q->address[param]);
}

static struct work finish(struct product *q, const struct chunk_place *c,
                          const struct column *column, ptx_u32 sum)
{
    ptx_kernel *k = q->k;
    ptx_s32 acc = ptx_u32_as_s32(sum);
    if (q->spec->asymmetric)
        acc = ptx_mad_lo_s32(k, c->minus_zero, column->sum, acc);
    struct work v = work_of_s32(k, q->wide, acc);
    v = work_mul(k, q->wide, v, c->scale);
    v = work_mul(k, q->wide, v, column->scale);
    return q->spec->bias ? work_add(k, q->wide, v, column->bias) : v;
}

/* ---- whole chunks of eight, in f32 ---- */

static void load_eight(struct product *q, enum w8a8_param param, ptx_u32 n, ptx_u32 to[8])
{
    ptx_u64 from = of_column(q, param, n, 4);
    for (int i = 0; i < 8; i += 4)
        ptx_ld_global_v4_u32(q->k, to + i, from, 4 * i);
}

static ptx_u32 narrow_pair(struct product *q, struct work low, struct work high)
{
    if (q->spec->y_type == PTXGEN_BF16)
        return ptx_bf16x2_as_u32(ptx_cvt_bf16x2_f32(q->k, high.f, low.f));
    return ptx_f16x2_as_u32(ptx_cvt_f16x2_f32(q->k, high.f, low.f));
}

static void store_eight(struct product *q, ptx_u64 y, const struct work v[8])
{
    ptx_kernel *k = q->k;
    ptx_u32 words[8];
    if (q->spec->y_type == PTXGEN_F32) {
        for (int i = 0; i < 8; i++)
            words[i] = ptx_f32_as_u32(v[i].f);
        ptx_st_global_v4_u32(k, y, 0, words);
        ptx_st_global_v4_u32(k, y, 16, words + 4);
        return;
    }
    for (int i = 0; i < 4; i++)
        words[i] = narrow_pair(q, v[2 * i], v[2 * i + 1]);
    ptx_st_global_v4_u32(k, y, 0, words);
}

static void finish_eight(struct product *q, const struct chunk_place *c, const ptx_u32 sums[8])
{
    ptx_u32 scales[8], bias[8] = {{{0}}}, w_sums[8] = {{{0}}};
    struct work v[8];
    load_eight(q, W8A8_W_SCALE, c->n, scales);
    if (q->spec->bias)
        load_eight(q, W8A8_BIAS, c->n, bias);
    if (q->spec->asymmetric)
        load_eight(q, W8A8_W_SUM, c->n, w_sums);
    for (int i = 0; i < 8; i++) {
        struct column column = {.scale.f = ptx_u32_as_f32(scales[i]),
                                .bias.f = ptx_u32_as_f32(bias[i]),
                                .sum = ptx_u32_as_s32(w_sums[i])};
        v[i] = finish(q, c, &column, sums[i]);
    }
    store_eight(q, c->y, v);
}

/* ---- element by element ---- */

static struct work load_work(struct product *q, enum w8a8_param param, ptx_u32 n)
{
    return work_load_global(q->k, q->wide, of_column(q, param, n, w8a8_work_bytes(q->spec)), 0);
}

static void store_one(struct product *q, ptx_u64 y, struct work v)
{
    ptx_kernel *k = q->k;
    if (q->spec->y_type == PTXGEN_F64) {
        ptx_st_global_f64(k, y, 0, v.d);
        return;
    }
    ptx_f32 narrow = q->wide ? ptx_cvt_f32_f64(k, v.d) : v.f;
    if (q->spec->y_type == PTXGEN_F32)
        ptx_st_global_f32(k, y, 0, narrow);
    else if (q->spec->y_type == PTXGEN_F16)
        ptx_st_global_f16(k, y, 0, ptx_cvt_f16_f32(k, narrow));
    else
        ptx_st_global_bf16(k, y, 0, ptx_cvt_bf16_f32(k, narrow));
}

static void finish_one(struct product *q, const struct chunk_place *c, uint32_t i, ptx_u32 sum)
{
    ptx_kernel *k = q->k;
    ptx_u32 n = i ? ptx_add_u32(k, c->n, U32(i)) : c->n;
    ptx_if(k, ptx_setp_gt_u32(k, c->left, U32(i))) {
        struct column column = {.scale = load_work(q, W8A8_W_SCALE, n)};
        if (q->spec->bias)
            column.bias = load_work(q, W8A8_BIAS, n);
        if (q->spec->asymmetric)
            column.sum = ptx_ld_global_s32(k, of_column(q, W8A8_W_SUM, n, 4), 0);
        ptx_u64 y = i ? ptx_add_u64(k, c->y, U64(i * y_bytes(q))) : c->y;
        store_one(q, y, finish(q, c, &column, sum));
    }
}

static void finish_ones(struct product *q, const struct chunk_place *c, const ptx_u32 *sums)
{
    for (uint32_t i = 0; i < width(q); i++)
        finish_one(q, c, i, sums[i]);
}

static void finish_chunk(struct product *q, const struct chunk_place *c, const ptx_u32 *sums)
{
    ptx_kernel *k = q->k;
    if (!has_vectors(q)) {
        finish_ones(q, c, sums);
        return;
    }
    ptx_u32 low = ptx_and_b32(k, c->n, U32(7));
    ptx_pred whole = ptx_setp_bool_eq_u32(k, low, U32(0), q->aligned);
    whole = ptx_setp_bool_ge_u32(k, c->left, U32(8), whole);
    ptx_if_else(k, whole) finish_eight(q, c, sums);
    else finish_ones(q, c, sums);
}

/* ---- one pass over tokens ---- */

struct part {
    ptx_u32 first_token, tokens; /* of the tile; tokens there are from its first on */
    struct row_block rows;
};

/* The tile's token whose sums stand in row `row` of the pass: warps along M share a pass. */
static ptx_u32 token_of(struct product *q, ptx_u32 pass, ptx_u32 row)
{
    ptx_kernel *k = q->k;
    uint32_t share = q->sums.pass_m / q->v->wm;
    ptx_u32 along = tile_divide(k, row, share), in_share = ptx_rem_u32(k, row, U32(share));
    ptx_u32 token = ptx_mad_lo_u32(k, pass, U32(share), in_share);
    return ptx_mad_lo_u32(k, along, U32(q->sums.tile_m / q->v->wm), token);
}

static struct chunk_place find_chunk(struct product *q, const struct part *p, ptx_u32 token,
                                     ptx_u32 column)
{
    ptx_kernel *k = q->k;
    struct chunk_place c = {.n = ptx_add_u32(k, p->rows.first, column),
                            .left = ptx_sub_u32(k, p->rows.count, column)};
    ptx_u32 m = ptx_add_u32(k, p->first_token, token);
    ptx_u64 element = ptx_mad_wide_u32(k, m, q->y_stride, ptx_cvt_u64_u32(k, c.n));
    c.y = ptx_mad_lo_u64(k, element, U64(y_bytes(q)), q->address[W8A8_Y]);
    if (q->v->fused) {
        ptx_u32 at = ptx_mad_lo_u32(k, m, U32(w8a8_work_bytes(q->spec)), q->token_scales);
        if (q->wide)
            c.scale.d = ptx_ld_shared_f64(k, at, 0);
        else
            c.scale.f = ptx_ld_shared_f32(k, at, 0);
    } else
        c.scale = load_work(q, W8A8_TOKEN_SCALES, m);
    if (q->spec->asymmetric && q->v->fused)
        c.minus_zero =
            ptx_neg_s32(k, ptx_ld_shared_s32(k, ptx_mad_lo_u32(k, m, U32(4), q->token_zeros), 0));
    else if (q->spec->asymmetric)
        c.minus_zero =
            ptx_neg_s32(k, ptx_ld_global_s32(k, of_column(q, W8A8_TOKEN_ZEROS, m, 4), 0));
    return c;
}

static void finish_pass(struct product *q, const struct part *p, ptx_u32 pass)
{
    ptx_kernel *k = q->k;
    uint32_t chunks = q->sums.tile_n / width(q);
    ptx_u32 chunk = ptx_mov_u32(k, q->at.thread);
    ptx_for(k, chunk, U32(q->sums.pass_m * chunks), U32(W8A8_THREADS)) {
        ptx_nounroll(k);
        ptx_u32 row = tile_divide(k, chunk, chunks), in_row = ptx_rem_u32(k, chunk, U32(chunks));
        ptx_u32 column = ptx_mul_lo_u32(k, in_row, U32(width(q)));
        ptx_u32 token = token_of(q, pass, row);
        ptx_pred has_rows = ptx_setp_lt_u32(k, column, p->rows.count);
        ptx_if(k, ptx_setp_bool_lt_u32(k, token, p->tokens, has_rows)) {
            ptx_u32 sums[TILE_SUMS_WIDTH];
            tile_sums_load(k, &q->sums, row, column, sums);
            struct chunk_place c = find_chunk(q, p, token, column);
            finish_chunk(q, &c, sums);
        }
    }
}

/* ---- the whole ---- */

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
    tile_wait_for(k, &q->at, q->address[W8A8_FLAGS], lowest, W8A8_THREADS);
    tile_partials_add(k, &q->partials, &q->at, lowest, fragment, q);
}

/* One pass after the other, with one text for all but the staging, whose registers differ. */
static void emit_passes(struct product *q, const struct part *p)
{
    ptx_kernel *k = q->k;
    struct tile_sums staged = q->sums;
    uint32_t passes = q->sums.tile_m / q->sums.pass_m;
    staged.pass_m /= q->v->wm;
    ptx_u32 pass = ptx_mov_u32(k, U32(0));
    ptx_for(k, pass, U32(passes), U32(1)) {
        ptx_nounroll(k);
        for (uint32_t i = 0; i < passes; i++)
            ptx_if(k, ptx_setp_eq_u32(k, pass, U32(i)))
                tile_sums_stage(k, &staged, i, accumulator, q);
        ptx_bar_sync(k, 0);
        finish_pass(q, p, pass);
        ptx_bar_sync(k, 0); /* all have read what the next pass overwrites */
    }
}

static void finish_tile(struct product *q, ptx_u32 tile)
{
    ptx_kernel *k = q->k;
    struct part p;
    struct tile_place place = {U32(0), tile};
    if (!q->v->fused)
        place = tile_locate(k, tile, q->tiles_m, q->v->row_blocks);
    p.first_token = ptx_mul_lo_u32(k, place.m, U32(q->v->tokens));
    p.tokens = ptx_sub_u32(k, q->m, p.first_token);
    p.rows = w8a8_find_rows(q, place.n);
    emit_passes(q, &p);
}

void w8a8_emit_output(struct product *q, const struct tile_walk *w, ptx_u32 first)
{
    ptx_kernel *k = q->k;
    if (q->v->fused) {
        finish_tile(q, w->tile);
        return;
    }
    ptx_if_else(k, ptx_setp_eq_u32(k, w->stage_end, U32(q->division.stages))) {
        ptx_if(k, ptx_setp_ne_u32(k, first, U32(0)))
            add_others(q, w->tile);
        finish_tile(q, w->tile);
    } else {
        tile_partials_store(k, &q->partials, fragment, q);
        tile_hand_over(k, &q->at, q->address[W8A8_FLAGS]);
    }
}
