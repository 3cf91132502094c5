/* SPDX-License-Identifier: Apache-2.0 */
#include "epilogue.h"

static uint32_t element(const struct gemm_epilogue *o)
{
    return o->type == PTXGEN_F32 ? 4 : 2;
}

static ptx_u64 in_bytes(const struct gemm_epilogue *o, ptx_u64 elements)
{
    return ptx_shl_b64(o->k, elements, U32(element(o) / 2));
}

/* Whether all arrays, and all of their rows, are aligned for the vector accesses of a chunk. */
static ptx_pred find_aligned(const struct gemm_epilogue *o)
{
    ptx_kernel *k = o->k;
    uint32_t bytes = o->chunk.width * element(o) < 16 ? o->chunk.width * element(o) : 16;
    ptx_u64 all = ptx_or_b64(k, o->y, in_bytes(o, o->y_stride));
    if (o->has_bias)
        all = ptx_or_b64(k, all, o->bias);
    if (o->has_residual) {
        all = ptx_or_b64(k, all, o->residual);
        all = ptx_or_b64(k, all, in_bytes(o, o->residual_stride));
    }
    ptx_u64 low = ptx_and_b64(k, all, U64(bytes - 1));
    return ptx_setp_eq_u64(k, low, U64(0));
}

/* A pass has as many rows of 16-bit results as fit into the staging memory of f32 sums. */
static void begin_halves(struct gemm_epilogue *o)
{
    const struct gemm_sums *s = &o->sums;
    uint32_t all = gemm_sums_warp_rows(s), rows = 2 * s->pass_m < all ? 2 * s->pass_m : all;
    struct gemm_threads at = *o->at;
    at.warp = o->along;
    ptx_u32 staging = s->staging;
    if (s->alone)
        staging = ptx_mad_lo_u32(o->k, o->at->warp, U32(rows * s->warp_n * 2), staging);
    o->halves = (struct gemm_halves){.columns = s->alone ? s->warp_n : s->tile_n,
                                     .tiles = s->warp_n / 16,
                                     .pass_m = rows,
                                     .bf16 = o->type == PTXGEN_BF16,
                                     .alone = s->alone,
                                     .staging = staging};
    gemm_halves_begin(o->k, &at, &o->halves);
}

void gemm_epilogue_begin(struct gemm_epilogue *o)
{
    struct gemm_sums *s = &o->sums;
    bool halves = s->interleaved || (s->alone && o->has_stmatrix);
    o->rounds = halves && s->wk == 1 && !s->ctas && s->tile_m >= 16 && !s->integer &&
                o->type != PTXGEN_F32 && !o->has_bias && !o->has_residual && !o->activation &&
                o->n % GEMM_HALVES_WIDTH == 0;
    if (o->rounds)
        begin_halves(o);
    if (!o->rounds || s->alone)
        gemm_sums_begin(o->k, o->at, o->along, o->along_k, s);
    uint32_t threads = s->alone ? 32 : o->at->team ? o->at->team : o->partials.threads;
    uint32_t width = gemm_chunk_width(s->pass_m * (s->alone ? s->warp_n : s->tile_n), threads);
    s->width = width < o->most_width ? width : o->most_width;
    o->chunk = (struct gemm_chunk){.width = o->rounds ? GEMM_HALVES_WIDTH : s->width,
                                   .bf16 = o->type == PTXGEN_BF16,
                                   .f32 = o->type == PTXGEN_F32};
    o->chunk.ragged = o->n % o->chunk.width != 0;
    o->chunk.aligned = find_aligned(o);
}

/* ---- one chunk ---- */

static ptx_u64 find(const struct gemm_epilogue *o, ptx_u64 base, ptx_u64 stride,
                    const struct gemm_epilogue_place *at)
{
    ptx_kernel *k = o->k;
    ptx_u64 row = ptx_cvt_u64_u32(k, at->row);
    ptx_u64 line = ptx_mad_lo_u64(k, row, in_bytes(o, stride), base);
    return ptx_mad_wide_u32(k, at->column, U32(element(o)), line);
}

static void store_sums(const struct gemm_epilogue *o, const struct gemm_epilogue_place *at,
                       ptx_f32 v[GEMM_SUMS_WIDTH])
{
    ptx_kernel *k = o->k;
    if (o->has_bias)
        gemm_chunk_add(k, &at->chunk, ptx_mad_wide_u32(k, at->column, U32(element(o)), o->bias), v);
    for (uint32_t i = 0; i < o->sums.width && i < GEMM_SUMS_WIDTH; i++)
        v[i] = gemm_activate(k, o->activation, v[i]);
    if (o->has_residual)
        gemm_chunk_add(k, &at->chunk, find(o, o->residual, o->residual_stride, at), v);
    gemm_chunk_store(k, &at->chunk, find(o, o->y, o->y_stride, at), v);
}

static void finish_chunk(void *user, const struct gemm_tile_end *p, ptx_u32 row, ptx_u32 in_tile)
{
    const struct gemm_epilogue *o = user;
    ptx_kernel *k = o->k;
    struct gemm_epilogue_place at = {.chunk = o->chunk,
                                     .column = ptx_add_u32(k, o->first_column, in_tile)};
    ptx_if(k, ptx_setp_lt_u32(k, at.column, U32(o->n))) {
        ptx_u32 sums[GEMM_SUMS_WIDTH];
        ptx_f32 v[GEMM_SUMS_WIDTH];
        gemm_sums_load(k, &o->sums, row, in_tile, sums);
        ptx_u32 in_pass = ptx_add_u32(k, o->first_row, row);
        at.row = ptx_add_u32(k, in_pass, p->pass_row);
        if (at.chunk.ragged) {
            at.chunk.left = ptx_sub_u32(k, U32(o->n), at.column);
            at.chunk.aligned =
                ptx_setp_bool_ge_u32(k, at.chunk.left, U32(at.chunk.width), o->chunk.aligned);
        }
        for (uint32_t i = 0; i < o->sums.width && i < GEMM_SUMS_WIDTH && !o->scale; i++)
            v[i] = ptx_u32_as_f32(sums[i]);
        if (o->scale)
            o->scale(o->user, &at, sums, v);
        store_sums(o, &at, v);
    }
}

/* Stores a chunk of results that gemm_halves_stage has rounded. */
static void finish_halves(void *user, const struct gemm_tile_end *p, ptx_u32 row, ptx_u32 in_tile)
{
    const struct gemm_epilogue *o = user;
    ptx_kernel *k = o->k;
    struct gemm_epilogue_place at = {.column = ptx_add_u32(k, o->first_column, in_tile)};
    ptx_if(k, ptx_setp_lt_u32(k, at.column, U32(o->n))) {
        ptx_u32 pairs[GEMM_HALVES_WIDTH / 2];
        ptx_u32 own = o->sums.alone ? ptx_sub_u32(k, in_tile, o->sums.warp_column) : in_tile;
        gemm_halves_load(k, &o->halves, row, own, pairs);
        ptx_u32 in_pass = ptx_add_u32(k, o->first_row, row);
        at.row = ptx_add_u32(k, in_pass, p->pass_row);
        gemm_chunk_store_words(k, &o->chunk, find(o, o->y, o->y_stride, &at), pairs);
    }
}

/* ---- a tile's end ---- */

static void locate(void *user, struct gemm_tile_end *p, ptx_u32 tile)
{
    struct gemm_epilogue *o = user;
    o->locate(o->user, tile, o);
    p->rows = ptx_sub_u32(o->k, o->m, o->first_row);
}

void gemm_epilogue_end(struct gemm_epilogue *o, const struct gemm_walk *w, ptx_u32 first)
{
    struct gemm_tile_end p = {.at = o->at,
                              .division = o->division,
                              .sums = &o->sums,
                              .halves = o->rounds ? &o->halves : NULL,
                              .partials = o->partials.fragments ? &o->partials : NULL,
                              .flags = o->flags,
                              .columns = o->sums.tile_n,
                              .only = o->only,
                              .acc = o->acc,
                              .acc_from = o->user,
                              .locate = locate,
                              .finish = o->rounds ? finish_halves : finish_chunk,
                              .user = o};
    gemm_end_part(o->k, &p, w, first);
}
