/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epilogue of tiles whose tokens are the rows of wgmma's A: outputs are stored straight from
 * the accumulators, which belong to rows g and g + 8 of the warp's 16 tokens, and to columns 8j +
 * 2q and 8j + 2q + 1 of the tile. With SwiGLU the groups of eight columns are in turn those of gate
 * and of up. The operations are those of output.c and gemm/epilogue.c.
 */
#include "emit.h"

enum { MOST_AHEAD = 8 /* groups of eight columns */, STRIP_TOKENS = 64 };

/* Whether tiles along N end at a multiple of eight features, or have all features of wgmma's N. */
static bool is_exact(const struct product *q)
{
    return w8a8_rows(q->spec) == q->v->tile_n * q->v->blocks_n;
}
static bool is_whole(const struct product *q)
{
    return w8a8_rows(q->spec) % 8 == 0;
}

static uint32_t groups(const struct product *q)
{
    return w8a8_group_features(q->v) / 8;
}

/*
 * Groups of each block of 32 columns of 16 bits: four lanes have 64 bytes of a token's row, each
 * lane four bytes of every 16. The lanes exchange these, so that each stores 16 bytes at once.
 */
enum { BLOCK_GROUPS = 4 };

/* Whether an output has more operands than there are registers for those of a block. */
static bool is_short(const struct product *q)
{
    return w8a8_moves_registers(q->v) && (q->spec->asymmetric || q->spec->residual);
}

static bool has_blocks(const struct product *q)
{
    return groups(q) % BLOCK_GROUPS == 0 && !w8a8_gated(q->spec) && is_whole(q) && !q->wide &&
           w8a8_y_bytes(q) == 2 && !is_short(q);
}

static bool loads_ahead(const struct product *q)
{
    return !q->wide && groups(q) <= MOST_AHEAD && !w8a8_has_groups(q->spec);
}

void w8a8_begin_direct(struct product *q)
{
    ptx_kernel *k = q->g.k;
    struct direct *d = &q->direct;
    uint32_t bytes = w8a8_y_bytes(q);
    ptx_u64 stride = ptx_mul_wide_u32(k, q->y_stride, U32(bytes));
    uint32_t whole = has_blocks(q) ? 16 : 2 * bytes;
    ptx_u64 places = ptx_or_b64(k, stride, q->address[W8A8_Y]);
    if (q->spec->residual) {
        ptx_u64 pitch = ptx_mul_wide_u32(k, q->residual_stride, U32(bytes));
        places = ptx_or_b64(k, places, ptx_or_b64(k, pitch, q->address[W8A8_RESIDUAL]));
    }
    ptx_u64 low = ptx_and_b64(k, places, U64(whole - 1));
    d->aligned = ptx_setp_eq_u64(k, low, U64(0));
    d->pair = (struct gemm_chunk){
        .width = 2, .f32 = q->spec->y_type == PTXGEN_F32, .bf16 = q->spec->y_type == PTXGEN_BF16};
    ptx_u32 own = ptx_mul_lo_u32(k, q->along_n, U32(w8a8_group_features(q->v)));
    q->direct.column = ptx_mad_lo_u32(k, q->g.at.quad, U32(2), own);
    d->row[0] = ptx_mad_lo_u32(k, q->along_m, U32(16), q->g.at.group);
    uint32_t more = w8a8_strips(q->v) - 1; /* strips of each of the warpgroups before */
    if (more) {
        ptx_u32 group = ptx_shr_u32(k, q->along_m, U32(2));
        ptx_mad_lo_u32_to(k, d->row[0], group, U32(more * STRIP_TOKENS), d->row[0]);
    }
    d->row[1] = ptx_add_u32(k, d->row[0], U32(8));
}

/* ---- scales and biases of columns ---- */

/* Whether the lane has a column c, counted from its first one. */
static ptx_pred has_column(struct product *q, uint32_t c)
{
    return ptx_setp_gt_s32(q->g.k, q->direct.left, S32((int32_t)c));
}

/* Loads the value of column c, counted from the lane's first one, if there is such a column. */
static struct work load_work(struct product *q, ptx_u64 from, uint32_t c)
{
    ptx_kernel *k = q->g.k;
    int offset = (int)(c * w8a8_work_bytes(q->spec));
    if (is_exact(q))
        return work_load_global(k, q->wide, from, offset);
    struct work w = work_new(k, q->wide, work_constant(q->wide, 0));
    ptx_guarded(k, has_column(q, c))
        work_load_global_to(k, q->wide, w, from, offset);
    return w;
}

static ptx_s32 load_sum(struct product *q, ptx_u64 from, uint32_t c)
{
    ptx_kernel *k = q->g.k;
    ptx_s32 sum = ptx_mov_s32(k, S32(0));
    ptx_guarded(k, has_column(q, c))
        ptx_ld_global_s32_to(k, sum, from, (int)(4 * c));
    return sum;
}

/* The column of y of the lane's first row of w; the blocks and halves before it are of 16 rows. */
static ptx_u32 find_y_column(struct product *q)
{
    ptx_kernel *k = q->g.k;
    if (!w8a8_gated(q->spec))
        return q->direct.n;
    ptx_u32 low = ptx_and_b32(k, q->direct.n, U32(W8A8_PAIR_ROWS - 1));
    ptx_u32 half = ptx_shr_u32(k, ptx_sub_u32(k, q->direct.n, low), U32(1));
    return ptx_add_u32(k, half, low);
}

/* Loads what the lane's tokens of the strip have, and finds their outputs. */
static void find_tokens(struct product *q)
{
    ptx_kernel *k = q->g.k;
    struct direct *d = &q->direct;
    ptx_u32 column = find_y_column(q);
    for (int i = 0; i < 2; i++) {
        ptx_u32 row = ptx_add_u32(k, d->first, d->row[i]);
        ptx_u32 m = d->strip ? ptx_add_u32(k, row, U32(d->strip * STRIP_TOKENS)) : row;
        w8a8_load_token(q, m, &d->tokens[i]);
        d->y[i] = w8a8_find_y(q, m, column);
        if (q->spec->residual)
            d->residual[i] = w8a8_find_residual(q, m, column);
    }
}

void w8a8_locate_direct(struct product *q, ptx_u32 tile)
{
    ptx_kernel *k = q->g.k;
    struct direct *d = &q->direct;
    struct gemm_place place = w8a8_place_of(q, tile);
    struct feature_block block = w8a8_find_block(q, place.n);
    d->n = ptx_add_u32(k, block.first, d->column);
    const ptx_s32 count = ptx_u32_as_s32(block.count), column = ptx_u32_as_s32(d->column);
    d->left = ptx_sub_s32(k, count, column);
    d->first = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    if (w8a8_strips(q->v) == 1)
        find_tokens(q);
    if (!loads_ahead(q))
        return;
    ptx_u64 from = w8a8_of_column(q, W8A8_W_SCALE, q->direct.n, 4);
    for (uint32_t j = 0; j < groups(q); j++)
        for (uint32_t e = 0; e < 2; e++)
            d->scale[j][e] = load_work(q, from, 8 * j + e).f;
}

/* ---- outputs ---- */

static void store_pair(struct product *q, ptx_u64 y, uint32_t c, const struct work v[2])
{
    ptx_kernel *k = q->g.k;
    int offset = (int)(c * w8a8_y_bytes(q));
    if (q->spec->y_type == PTXGEN_F64) {
        const ptx_f64 both[2] = {v[0].d, v[1].d};
        ptx_st_global_v2_f64(k, y, offset, both);
        return;
    }
    ptx_f32 both[2];
    ptx_u32 words[2];
    for (int e = 0; e < 2; e++)
        both[e] = w8a8_narrow(q, v[e]);
    gemm_chunk_round(k, &q->direct.pair, both, words);
    gemm_chunk_store_vectors(k, &q->direct.pair, y, offset, words);
}

static void load_pair(struct product *q, uint32_t j, struct column pair[2])
{
    ptx_u32 n = q->direct.n;
    uint32_t work = w8a8_work_bytes(q->spec);
    for (uint32_t e = 0; e < 2; e++) {
        uint32_t c = 8 * j + e;
        if (loads_ahead(q))
            pair[e].scale.f = q->direct.scale[j][e];
        else if (!w8a8_has_groups(q->spec))
            pair[e].scale = load_work(q, w8a8_of_column(q, W8A8_W_SCALE, n, work), c);
        if (q->spec->bias)
            pair[e].bias = load_work(q, w8a8_of_column(q, W8A8_BIAS, n, work), c);
        if (q->spec->asymmetric)
            pair[e].sum = load_sum(q, w8a8_of_column(q, W8A8_W_SUM, n, 4), c);
    }
}

static uint32_t matrices(const struct product *q)
{
    return w8a8_gated(q->spec) ? 2 : 1;
}

/* Adds the residual to a pair of outputs of token i, whose sums are in group j; y's group is g. */
static void add_residual(struct product *q, uint32_t j, uint32_t g, int i, struct work v[2])
{
    ptx_kernel *k = q->g.k;
    const struct direct *d = &q->direct;
    struct gemm_chunk pair = d->pair;
    ptx_f32 both[GEMM_SUMS_WIDTH] = {v[0].f, v[1].f};
    ptx_s32 left = ptx_sub_s32(k, d->left, S32((int32_t)(8 * j)));
    left = ptx_max_s32(k, left, S32(0));
    pair.ragged = true;
    pair.left = ptx_selp_u32(k, ptx_s32_as_u32(left), U32(0), d->tokens[i].exists);
    pair.aligned = ptx_setp_bool_ge_u32(k, pair.left, U32(2), d->aligned);
    ptx_u64 from = ptx_add_u64(k, d->residual[i], U64(8 * (uint64_t)g * w8a8_y_bytes(q)));
    gemm_chunk_add(k, &pair, from, both);
    for (int e = 0; e < 2; e++)
        v[e].f = both[e];
}

/* The lane's outputs of token i in group g of y: a pair of columns. */
static void finish_outputs(struct product *q, struct column p[2][2], uint32_t g, int i,
                           struct work v[2])
{
    ptx_kernel *k = q->g.k;
    uint32_t j = g * matrices(q);
    bool gated = w8a8_gated(q->spec);
    ptxgen_activation f = gated ? PTXGEN_ACTIVATION_SILU : (ptxgen_activation)q->spec->activation;
    for (uint32_t e = 0; e < 2; e++) {
        struct work of[2];
        for (uint32_t h = 0; h < matrices(q); h++)
            of[h] = w8a8_finish(q, &q->direct.tokens[i], &p[h][e],
                                q->acc[q->direct.strip][j + h][2 * i + (int)e]);
        v[e] = of[0];
        if (f != PTXGEN_ACTIVATION_NONE)
            v[e].f = gemm_activate(k, f, v[e].f);
        if (gated)
            v[e].f = ptx_mul_f32(k, v[e].f, of[1].f);
    }
    if (q->spec->residual)
        add_residual(q, j, g, i, v);
}

/* Stores a pair of outputs at once where both exist and are aligned, else one by one. */
static void finish_pair(struct product *q, struct column p[2][2], uint32_t g, int i)
{
    ptx_kernel *k = q->g.k;
    const struct direct *d = &q->direct;
    const struct row_token *t = &d->tokens[i];
    uint32_t c = 8 * g * matrices(q);
    struct work v[2];
    finish_outputs(q, p, g, i, v);
    ptx_pred whole = ptx_and_pred(k, t->exists, d->aligned);
    if (!is_whole(q))
        whole = ptx_and_pred(k, whole, has_column(q, c + 1));
    ptx_guarded(k, whole)
        store_pair(q, d->y[i], 8 * g, v);
    ptx_pred apart = ptx_xor_pred(k, t->exists, whole);
    for (uint32_t e = 0; e < 2; e++) {
        ptx_pred alone = is_whole(q) ? apart : ptx_and_pred(k, apart, has_column(q, c + e));
        ptx_guarded(k, alone)
            w8a8_store_one(q, d->y[i], 8 * g + e, v[e]);
    }
}

/* Loads what the columns of group g of y need. */
static void load_group(struct product *q, uint32_t g, struct column p[2][2])
{
    for (uint32_t h = 0; h < matrices(q); h++)
        load_pair(q, g * matrices(q) + h, p[h]);
}

static void finish_group(struct product *q, uint32_t g)
{
    struct column p[2][2];
    load_group(q, g, p);
    for (int i = 0; i < 2; i++)
        finish_pair(q, p, g, i);
}

/* ---- blocks of 32 columns of 16 bits ---- */

/* Transposes: word w of lane q becomes word q of lane w. */
static void exchange(struct product *q, ptx_u32 words[BLOCK_GROUPS])
{
    ptx_kernel *k = q->g.k;
    for (uint32_t s = 1; s < BLOCK_GROUPS; s *= 2) {
        ptx_pred upper = ptx_setp_ne_u32(k, ptx_and_b32(k, q->g.at.quad, U32(s)), U32(0));
        for (uint32_t w = 0; w < BLOCK_GROUPS; w++) {
            if (w & s)
                continue;
            ptx_u32 sent = ptx_selp_u32(k, words[w], words[w | s], upper);
            ptx_u32 got = ptx_shfl_sync_bfly_u32(k, sent, U32(s), U32(31), ALL_LANES);
            words[w | s] = ptx_selp_u32(k, words[w | s], got, upper);
            words[w] = ptx_selp_u32(k, got, words[w], upper);
        }
    }
}

/* Stores those columns of a token that begin with column c. */
static void store_block(struct product *q, uint32_t c, int i, ptx_f32 v[BLOCK_GROUPS][2])
{
    ptx_kernel *k = q->g.k;
    const struct direct *d = &q->direct;
    ptx_u32 words[BLOCK_GROUPS];
    for (int j = 0; j < BLOCK_GROUPS; j++)
        gemm_chunk_round(k, &d->pair, v[j], &words[j]);
    exchange(q, words);
    ptx_u32 beyond =
        ptx_mul_lo_u32(k, q->g.at.quad, U32(6)); /* from the lane's pair to its eight columns */
    ptx_u64 to = ptx_mad_wide_u32(k, beyond, U32(2), d->y[i]);
    ptx_s32 left = c ? ptx_sub_s32(k, q->direct.left, S32((int)c)) : q->direct.left;
    ptx_pred has = ptx_setp_bool_gt_s32(k, left, ptx_u32_as_s32(beyond), d->tokens[i].exists);
    ptx_guarded(k, has)
        ptx_st_global_v4_u32(k, to, (int)(2 * c), words);
}

static void store_apart(struct product *q, uint32_t c, int i, ptx_f32 v[BLOCK_GROUPS][2])
{
    const struct direct *d = &q->direct;
    for (uint32_t j = 0; j < BLOCK_GROUPS; j++) {
        ptx_pred has = ptx_and_pred(q->g.k, d->tokens[i].exists, has_column(q, c + 8 * j));
        for (uint32_t e = 0; e < 2; e++)
            ptx_guarded(q->g.k, has)
                w8a8_store_one(q, d->y[i], c + 8 * j + e, (struct work){.f = v[j][e]});
    }
}

static void finish_block(struct product *q, uint32_t first_group)
{
    uint32_t c = 8 * first_group;
    ptx_f32 v[2][BLOCK_GROUPS][2];
    for (uint32_t j = 0; j < BLOCK_GROUPS; j++) {
        struct column p[2][2];
        load_group(q, first_group + j, p);
        for (int i = 0; i < 2; i++) {
            struct work pair[2];
            finish_outputs(q, p, first_group + j, i, pair);
            for (int e = 0; e < 2; e++)
                v[i][j][e] = pair[e].f;
        }
    }
    ptx_if_else(q->g.k, q->direct.aligned) {
        for (int i = 0; i < 2; i++)
            store_block(q, c, i, v[i]);
    } else {
        for (int i = 0; i < 2; i++)
            store_apart(q, c, i, v[i]);
    }
}

/* Finishes the columns of the group at j: a block of groups, a pair of gate and up, or one. */
static void finish_from(struct product *q, uint32_t j)
{
    if (has_blocks(q))
        finish_block(q, j);
    else
        finish_group(q, j / matrices(q));
}

static void store_strip(struct product *q)
{
    uint32_t each = has_blocks(q) ? BLOCK_GROUPS : matrices(q);
    for (uint32_t j = 0; j < groups(q); j += each)
        if (!is_exact(q) || is_short(q)) /* a branch, too, keeps what groups load apart */
            ptx_if(q->g.k, has_column(q, 8 * j))
                finish_from(q, j);
        else
            finish_from(q, j);
}

void w8a8_store_direct(struct product *q)
{
    for (q->direct.strip = 0; q->direct.strip < w8a8_strips(q->v); q->direct.strip++) {
        if (w8a8_strips(q->v) > 1)
            find_tokens(q);
        store_strip(q);
    }
    q->direct.strip = 0;
}
