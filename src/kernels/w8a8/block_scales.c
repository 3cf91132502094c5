/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of groups of K, 128 of which have one for each token and one for each block of features:
 *
 *     acc[m,n] += sums[m,n] · (sx[m,b] · sw[n / 128, b])
 *
 * for each group b, whose sums begin from 0. Scales of a part's first stage are loaded when the
 * part begins, those of the next stages when the stage before has been added; they are used when
 * the stage's products have completed. What a lane has of a tile:
 *
 *     tokens are wgmma's M   tokens g and g + 8 of the warp's 16; octets of features are the groups
 *                            of eight columns, of which the lane has two columns
 *     otherwise              tokens 8j + 2q and 8j + 2q + 1; octets are the halves of tiles of 16
 *                            features, of which the lane has one row
 */
#include "emit.h"

_Static_assert((int)PTXGEN_W8A8_GROUP == (int)W8A8_BLOCK, "a block of K of a stage is a group");

static uint32_t octets(const struct product *q)
{
    return w8a8_tokens_are_m(q->v) ? w8a8_group_features(q->v) / 8 : 2 * feature_tiles(q);
}

static uint32_t tokens(const struct product *q)
{
    return w8a8_tokens_are_m(q->v) ? 2 : 2 * token_tiles(q);
}

/* From the lane's first token to its token x. */
static uint32_t token_offset(const struct product *q, uint32_t x)
{
    return w8a8_tokens_are_m(q->v) ? 8 * x : x / 2 * W8A8_TILE_TOKENS + x % 2;
}

static uint32_t matrices(const struct product *q)
{
    return w8a8_gated(q->spec) ? 2 : 1;
}

/* Blocks of K of a stage that a warp multiplies. */
static uint32_t groups_of_stage(const struct product *q)
{
    return gemm_is_wgmma(q->v) ? q->v->wk : 1;
}

/* Blocks of features in which a warp's rows may lie: one where warps begin at even shares of it. */
static uint32_t spans(const struct product *q)
{
    uint32_t rows = 8 * octets(q), unit = w8a8_block_unit(q->spec, q->v);
    uint32_t units = w8a8_rows(q->spec) / unit + (w8a8_rows(q->spec) % unit != 0);
    uint32_t starts = units % q->v->blocks_n ? unit : units / q->v->blocks_n * unit;
    return w8a8_block_rows(q->spec) % rows || starts % rows ? 2 : 1;
}

/* ---- addresses ---- */

static ptx_u32 first_token(struct product *q, const struct gemm_place *place)
{
    ptx_kernel *k = q->g.k;
    bool rows = w8a8_tokens_are_m(q->v);
    uint32_t own = rows ? W8A8_TILE_ROWS : token_tiles(q) * W8A8_TILE_TOKENS;
    ptx_u32 warp = ptx_mul_lo_u32(k, q->along_m, U32(own));
    ptx_u32 lane = rows ? q->g.at.group : ptx_shl_b32(k, q->g.at.quad, U32(1));
    ptx_u32 tile = ptx_mad_lo_u32(k, place->m, U32(q->v->tile_m), warp);
    return ptx_add_u32(k, tile, lane);
}

static void locate_blocks(struct product *q, ptx_u32 row)
{
    ptx_kernel *k = q->g.k;
    struct block_scales *s = &q->scales;
    uint32_t all = w8a8_feature_blocks(q->spec), bytes = 4 * w8a8_groups(q->spec);
    ptx_u32 block = gemm_divide(k, row, w8a8_block_rows(q->spec)), last = U32(all - 1);
    ptx_u32 next = ptx_add_u32(k, block, U32(1));
    ptx_u32 end = ptx_mul_lo_u32(k, next, U32(w8a8_block_rows(q->spec)));
    s->rows_left = ptx_u32_as_s32(ptx_sub_u32(k, end, row));
    block = ptx_min_u32(k, block, last);
    next = ptx_min_u32(k, next, last);
    for (uint32_t h = 0; h < matrices(q); h++) {
        ptx_u64 base = q->address[W8A8_W_SCALE];
        if (h)
            base = ptx_add_u64(k, base, U64((uint64_t)all * bytes));
        for (uint32_t i = 0; i < spans(q); i++)
            s->blocks[h][i] = ptx_mad_wide_u32(k, i ? next : block, U32(bytes), base);
    }
}

static void find_scales(struct product *q, ptx_u32 tile)
{
    ptx_kernel *k = q->g.k;
    struct gemm_place place = w8a8_place_of(q, tile);
    struct feature_block block = w8a8_find_block(q, place.n);
    ptx_u32 token = first_token(q, &place);
    q->scales.tokens =
        ptx_mad_wide_u32(k, token, U32(4 * w8a8_groups(q->spec)), q->address[W8A8_TOKEN_SCALES]);
    q->scales.tokens_left = ptx_u32_as_s32(ptx_sub_u32(k, q->g.m, token));
    locate_blocks(q, ptx_mad_lo_u32(k, q->along_n, U32(8 * octets(q)), block.first));
}

/* ---- loads ---- */

/* The bytes to the scale of the group that is number i of the stage, or to that of the last one. */
static ptx_u64 find_group(struct product *q, ptx_u32 stage, uint32_t i)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 first = gemm_is_wgmma(q->v) ? U32(i) : q->along_k;
    ptx_u32 group = ptx_mad_lo_u32(k, stage, U32(q->v->wk), first);
    group = ptx_min_u32(k, group, U32(w8a8_groups(q->spec) - 1));
    return ptx_mul_wide_u32(k, group, U32(4));
}

static void load_group(struct product *q, ptx_u32 stage, uint32_t i)
{
    ptx_kernel *k = q->g.k;
    struct block_scales *s = &q->scales;
    ptx_u64 offset = find_group(q, stage, i);
    for (uint32_t h = 0; h < matrices(q); h++)
        for (uint32_t b = 0; b < spans(q); b++) {
            ptx_u64 from = ptx_add_u64(k, s->blocks[h][b], offset);
            ptx_ld_global_f32_to(k, s->of_block[i][h][b], from, 0);
        }
    ptx_u64 from = ptx_add_u64(k, s->tokens, offset);
    for (uint32_t x = 0; x < tokens(q); x++) {
        uint32_t beyond = token_offset(q, x);
        ptx_guarded(k, ptx_setp_gt_s32(k, s->tokens_left, S32((int32_t)beyond)))
            ptx_ld_global_f32_to(k, s->of_token[i][x], from,
                                 (int)(beyond * 4 * w8a8_groups(q->spec)));
    }
}

static void load_stage(struct product *q, ptx_u32 stage)
{
    for (uint32_t i = 0; i < groups_of_stage(q); i++)
        load_group(q, stage, i);
}

/* Gives the registers of scales a value, which those of tokens past the last keep. */
static void clear_scales(struct product *q)
{
    ptx_kernel *k = q->g.k;
    struct block_scales *s = &q->scales;
    for (uint32_t i = 0; i < groups_of_stage(q); i++) {
        for (uint32_t x = 0; x < tokens(q); x++)
            s->of_token[i][x] = ptx_mov_f32(k, F32(0));
        for (uint32_t h = 0; h < matrices(q); h++)
            for (uint32_t b = 0; b < spans(q); b++)
                s->of_block[i][h][b] = ptx_mov_f32(k, F32(0));
    }
}

void w8a8_locate_scales(struct product *q, ptx_u32 tile, ptx_u32 stage)
{
    find_scales(q, tile);
    clear_scales(q);
    load_stage(q, stage);
}

void w8a8_clear_group_sums(struct product *q)
{
    for (uint32_t t = 0; t < feature_tiles(q); t++)
        for (uint32_t j = 0; j < token_tiles(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_mov_u32_to(q->g.k, q->group_sums[t][j][r], U32(0));
}

/* ---- sums ---- */

/* Adds sum r of a fragment, of group i of the stage, times `factor`. */
static void add_sum(struct product *q, uint32_t i, uint32_t t, uint32_t j, uint32_t r,
                    ptx_f32 factor)
{
    ptx_f32 sum = ptx_u32_as_f32(q->acc[t][j][r]);
    ptx_f32 more =
        gemm_is_wgmma(q->v) ? q->block_sums[i][4 * j + r] : ptx_u32_as_f32(q->group_sums[t][j][r]);
    ptx_fma_f32_to(q->g.k, sum, more, factor, sum);
}

/* Adds the lane's sums of octet c and its token x. */
static void add_octet(struct product *q, uint32_t i, uint32_t c, uint32_t x, ptx_f32 factor)
{
    if (!w8a8_tokens_are_m(q->v)) {
        add_sum(q, i, c / 2, x / 2, 2 * (c % 2) + x % 2, factor);
        return;
    }
    for (uint32_t e = 0; e < 2; e++)
        add_sum(q, i, 0, c, 2 * x + e, factor);
}

/* The scale of octet c of w in group i of the stage. */
static ptx_f32 scale_of(struct product *q, uint32_t i, uint32_t c)
{
    ptx_kernel *k = q->g.k;
    const struct block_scales *s = &q->scales;
    const ptx_f32 *of = s->of_block[i][c % matrices(q)];
    if (spans(q) == 1)
        return of[0];
    ptx_pred is_next = ptx_setp_le_s32(k, s->rows_left, S32((int32_t)(8 * c)));
    return ptx_selp_f32(k, of[1], of[0], is_next);
}

static void add_groups(struct product *q)
{
    ptx_f32 factors[2][2 * MAX_TOKEN_TILES];
    for (uint32_t i = 0; i < groups_of_stage(q); i++)
        for (uint32_t c = 0; c < octets(q); c++) {
            ptx_f32 *own = factors[c % matrices(q)];
            bool is_new = spans(q) > 1 || c < matrices(q);
            ptx_f32 scale = scale_of(q, i, c);
            for (uint32_t x = 0; x < tokens(q); x++) {
                if (is_new)
                    own[x] = ptx_mul_f32(q->g.k, scale, q->scales.of_token[i][x]);
                add_octet(q, i, c, x, own[x]);
            }
        }
}

void w8a8_add_groups(struct product *q, ptx_u32 stage)
{
    add_groups(q);
    load_stage(q, ptx_add_u32(q->g.k, stage, U32(1)));
}
