/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a tile: sums over the warps along K and over the CTAs that share the tile, then bias,
 * activation, residual, rounding and the stores, a chunk of a row a thread.
 */
#include "emit.h"

/* Of a chunk; bounded for the compiler's sake. */
static uint32_t width(const struct gemm *q)
{
    return q->sums.width < TILE_SUMS_WIDTH ? q->sums.width : TILE_SUMS_WIDTH;
}

static bool is_gated(const struct gemm *q)
{
    return marlin_gated(q->spec);
}

/* The narrowest that leaves each thread one chunk of a pass, if any does. */
static uint32_t chunk_width(const ptxgen_marlin_variant *v)
{
    uint32_t sums = v->pass_m * marlin_tile_n(v), width = 2;
    while (width < TILE_SUMS_WIDTH && sums > width * marlin_threads(v))
        width *= 2;
    return width;
}

void marlin_emit_epilogue_begin(struct gemm *q)
{
    ptx_kernel *k = q->k;
    struct tile_sums *s = &q->sums;
    s->tile_m = q->v->tile_m;
    s->tile_n = marlin_tile_n(q->v);
    s->warp_n = q->v->warp_n;
    s->wk = q->v->wk;
    s->pass_m = q->v->pass_m;
    s->width = chunk_width(q->v);
    tile_sums_begin(k, &q->at, q->along_n, q->along_k, s);
    q->partials.threads = marlin_threads(q->v);
    q->partials.fragments = marlin_fragments(q->v);
    ptx_u64 base = ptx_add_u64(k, q->address[MARLIN_WORKSPACE], U64(marlin_partials_offset(q->plan)));
    tile_partials_begin(k, &q->at, base, &q->partials);
    ptx_u64 all = U64(0);
    const bool used[MARLIN_M] = {[MARLIN_C] = true, [MARLIN_C_STRIDE] = true,
                                 [MARLIN_BIAS] = q->spec->bias,
                                 [MARLIN_UP_BIAS] = q->spec->bias && is_gated(q),
                                 [MARLIN_RESIDUAL] = q->spec->residual,
                                 [MARLIN_RESIDUAL_STRIDE] = q->spec->residual};
    for (int i = 0; i < MARLIN_M; i++)
        if (used[i]) {
            bool stride = i >= MARLIN_A_STRIDE;
            ptx_u64 bytes = stride ? ptx_shl_b64(k, q->address[i], U32(1)) : q->address[i];
            all = ptx_or_b64(k, all, bytes);
        }
    ptx_u64 low = ptx_and_b64(k, all, U64(s->width * 2 - 1));
    q->aligned = ptx_setp_eq_u64(k, low, U64(0));
}

/* ---- chunks of 16-bit elements ---- */

static void widen_pair(struct gemm *q, ptx_u32 pair, ptx_f32 to[2])
{
    ptx_kernel *k = q->k;
    ptx_u16 halves[2];
    ptx_unpack_u32(k, halves, pair);
    for (int i = 0; i < 2; i++)
        if (is_bf16(q))
            ptx_cvt_f32_bf16_to(k, to[i], ptx_u16_as_bf16(halves[i]));
        else
            ptx_cvt_f32_f16_to(k, to[i], ptx_u16_as_f16(halves[i]));
}

/* The chunk at `from`, whole or, where something is not aligned, by elements. */
static void load_chunk(struct gemm *q, ptx_u64 from, ptx_f32 to[TILE_SUMS_WIDTH])
{
    ptx_kernel *k = q->k;
    uint32_t columns = width(q);
    ptx_u32 pairs[TILE_SUMS_WIDTH / 2];
    for (uint32_t i = 0; i < columns / 2; i++)
        pairs[i] = ptx_mov_u32(k, U32(0));
    ptx_if_else(k, q->aligned) {
        if (columns == 8)
            ptx_ld_global_v4_u32_to(k, pairs, from, 0);
        else if (columns == 4)
            ptx_ld_global_v2_u32_to(k, pairs, from, 0);
        else
            ptx_ld_global_u32_to(k, pairs[0], from, 0);
    } else {
        for (uint32_t i = 0; i < columns / 2; i++) {
            ptx_u16 halves[2];
            halves[0] = ptx_ld_global_u16(k, from, (int)(4 * i));
            halves[1] = ptx_ld_global_u16(k, from, (int)(4 * i + 2));
            ptx_pack_u32_to(k, pairs[i], halves);
        }
    }
    for (uint32_t i = 0; i < columns; i++)
        to[i] = ptx_mov_f32(k, F32(0));
    for (uint32_t i = 0; i < columns / 2; i++)
        widen_pair(q, pairs[i], to + 2 * i);
}

static ptx_u32 narrow_pair(struct gemm *q, ptx_f32 low, ptx_f32 high)
{
    if (is_bf16(q))
        return ptx_bf16x2_as_u32(ptx_cvt_bf16x2_f32(q->k, high, low));
    return ptx_f16x2_as_u32(ptx_cvt_f16x2_f32(q->k, high, low));
}

static void store_chunk(struct gemm *q, ptx_u64 to, const ptx_f32 values[TILE_SUMS_WIDTH])
{
    ptx_kernel *k = q->k;
    uint32_t columns = width(q);
    ptx_u32 pairs[TILE_SUMS_WIDTH / 2];
    for (uint32_t i = 0; i < columns / 2; i++)
        pairs[i] = narrow_pair(q, values[2 * i], values[2 * i + 1]);
    ptx_if_else(k, q->aligned) {
        if (columns == 8)
            ptx_st_global_v4_u32(k, to, 0, pairs);
        else if (columns == 4)
            ptx_st_global_v2_u32(k, to, 0, pairs);
        else
            ptx_st_global_u32(k, to, 0, pairs[0]);
    } else {
        for (uint32_t i = 0; i < columns / 2; i++) {
            ptx_u16 halves[2];
            ptx_unpack_u32(k, halves, pairs[i]);
            ptx_st_global_u16(k, to, (int)(4 * i), halves[0]);
            ptx_st_global_u16(k, to, (int)(4 * i + 2), halves[1]);
        }
    }
}

/* ---- one chunk ---- */

static ptx_f32 activate(struct gemm *q, ptx_f32 v)
{
    switch (is_gated(q) ? PTXGEN_ACTIVATION_SILU : q->spec->activation) {
    case PTXGEN_ACTIVATION_SILU: return tile_silu(q->k, v);
    case PTXGEN_ACTIVATION_GELU: return tile_gelu(q->k, v);
    case PTXGEN_ACTIVATION_GELU_TANH: return tile_gelu_tanh(q->k, v);
    default: return v;
    }
}

static void add_chunk(struct gemm *q, ptx_u64 from, ptx_f32 v[TILE_SUMS_WIDTH])
{
    ptx_f32 more[TILE_SUMS_WIDTH];
    load_chunk(q, from, more);
    for (uint32_t i = 0; i < width(q); i++)
        v[i] = ptx_add_f32(q->k, v[i], more[i]);
}

static ptx_u64 element(struct gemm *q, enum marlin_param base, enum marlin_param stride, ptx_u64 row,
                       ptx_u64 column_bytes)
{
    ptx_u64 pitch = ptx_shl_b64(q->k, q->address[stride], U32(1));
    ptx_u64 line = ptx_mad_lo_u64(q->k, row, pitch, q->address[base]);
    return ptx_add_u64(q->k, line, column_bytes);
}

/* v: sums of the chunk's columns, up: of SwiGLU's other matrix. */
static void store_sums(struct gemm *q, ptx_u32 row, ptx_u32 column, ptx_f32 v[TILE_SUMS_WIDTH],
                         ptx_f32 up[TILE_SUMS_WIDTH])
{
    ptx_kernel *k = q->k;
    ptx_u64 row64 = ptx_cvt_u64_u32(k, row), bytes = ptx_mul_wide_u32(k, column, U32(2));
    if (q->spec->bias)
        add_chunk(q, ptx_add_u64(k, q->address[MARLIN_BIAS], bytes), v);
    if (q->spec->bias && is_gated(q))
        add_chunk(q, ptx_add_u64(k, q->address[MARLIN_UP_BIAS], bytes), up);
    for (uint32_t i = 0; i < width(q); i++) {
        v[i] = activate(q, v[i]);
        if (is_gated(q))
            v[i] = ptx_mul_f32(k, v[i], up[i]);
    }
    if (q->spec->residual)
        add_chunk(q, element(q, MARLIN_RESIDUAL, MARLIN_RESIDUAL_STRIDE, row64, bytes), v);
    store_chunk(q, element(q, MARLIN_C, MARLIN_C_STRIDE, row64, bytes), v);
}

/* ---- one pass over rows ---- */

struct part {
    ptx_u32 first_row, column; /* of the tile in A, and of its columns in C */
    ptx_u32 rows;              /* of A from the tile's first on */
    ptx_u32 pass_row;          /* the first row, within the tile, that is staged */
};

/* A chunk's sums over the CTA's warps. */
static void sum_chunk(struct gemm *q, ptx_u32 row, ptx_u32 column, ptx_f32 v[TILE_SUMS_WIDTH])
{
    ptx_u32 sums[TILE_SUMS_WIDTH];
    tile_sums_load(q->k, &q->sums, row, column, sums);
    for (uint32_t i = 0; i < width(q); i++)
        v[i] = ptx_u32_as_f32(sums[i]);
}

/* Of the tile's columns of C, the packed one: SwiGLU has 32 of gate, then 32 of up. */
static ptx_u32 packed_column(struct gemm *q, ptx_u32 column)
{
    if (!is_gated(q))
        return column;
    ptx_u32 strip = ptx_and_b32(q->k, column, U32(~(MARLIN_STRIP / 2 - 1u)));
    return ptx_add_u32(q->k, column, strip);
}

static void finish_chunk(struct gemm *q, const struct part *p, ptx_u32 row, ptx_u32 in_tile)
{
    ptx_kernel *k = q->k;
    ptx_f32 v[TILE_SUMS_WIDTH], up[TILE_SUMS_WIDTH];
    ptx_u32 column = ptx_add_u32(k, p->column, in_tile), packed = packed_column(q, in_tile);
    ptx_if(k, ptx_setp_lt_u32(k, column, U32(q->spec->n))) {
        sum_chunk(q, row, packed, v);
        if (is_gated(q))
            sum_chunk(q, row, ptx_add_u32(k, packed, U32(MARLIN_STRIP / 2)), up);
        ptx_u32 in_pass = ptx_add_u32(k, p->first_row, row);
        store_sums(q, ptx_add_u32(k, in_pass, p->pass_row), column, v, up);
    }
}

/* The staged rows that exist, a chunk a thread. */
static void finish_pass(struct gemm *q, const struct part *p)
{
    ptx_kernel *k = q->k;
    uint32_t columns = q->sums.tile_n / (is_gated(q) ? 2 : 1), chunks = columns / q->sums.width;
    ptx_u32 pass_end = ptx_add_u32(k, p->pass_row, U32(q->sums.pass_m));
    ptx_u32 end = ptx_min_u32(k, p->rows, pass_end), begin = ptx_min_u32(k, p->rows, p->pass_row);
    ptx_u32 rows = ptx_sub_u32(k, end, begin);
    ptx_u32 limit = ptx_mul_lo_u32(k, rows, U32(chunks));
    ptx_u32 chunk = ptx_mov_u32(k, q->at.thread);
    ptx_for(k, chunk, limit, U32(marlin_threads(q->v))) {
        ptx_nounroll(k);
        ptx_u32 row = tile_divide(k, chunk, chunks), in_row = ptx_rem_u32(k, chunk, U32(chunks));
        finish_chunk(q, p, row, ptx_mul_lo_u32(k, in_row, U32(q->sums.width)));
    }
}

static ptx_u32 accumulator(const void *from, uint32_t t, uint32_t j, uint32_t r)
{
    const struct gemm *q = from;
    return ptx_f32_as_u32(q->acc[t][j][r]);
}

/* Accumulators have fixed registers, so each pass has its own stores. */
static void stage_pass(struct gemm *q, const struct part *p)
{
    ptx_kernel *k = q->k;
    uint32_t passes = q->v->tile_m / q->sums.pass_m;
    if (passes == 1) {
        tile_sums_stage(k, &q->sums, 0, accumulator, q);
        return;
    }
    for (uint32_t i = 0; i < passes; i++)
        ptx_if(k, ptx_setp_eq_u32(k, p->pass_row, U32(i * q->sums.pass_m)))
            tile_sums_stage(k, &q->sums, i, accumulator, q);
}

static ptx_u32 fragment(const void *from, uint32_t i, uint32_t r)
{
    const struct gemm *q = from;
    return accumulator(q, i / row_groups(q), i % row_groups(q), r);
}

/* The tile's sums of this CTA, and what it has of C. */
static void finish_tile(struct gemm *q, ptx_u32 tile)
{
    ptx_kernel *k = q->k;
    struct tile_place place = tile_locate(k, tile, q->tiles_m, marlin_tiles_n(q->spec, q->v));
    struct part p;
    p.first_row = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    p.rows = ptx_sub_u32(k, q->m, p.first_row);
    uint32_t columns = marlin_tile_n(q->v) / (is_gated(q) ? 2 : 1);
    p.column = ptx_mul_lo_u32(k, place.n, U32(columns));
    p.pass_row = ptx_mov_u32(k, U32(0));
    ptx_loop(k, passes) {
        ptx_nounroll(k);
        stage_pass(q, &p);
        ptx_bar_sync(k, 0);
        finish_pass(q, &p);
        ptx_add_u32_to(k, p.pass_row, p.pass_row, U32(q->sums.pass_m));
        ptx_loop_break_if(&passes, ptx_setp_ge_u32(k, p.pass_row, U32(q->v->tile_m)), false);
        ptx_bar_sync(k, 0); /* all have read what the next pass overwrites */
    }
}

/* The CTAs below have handed over their shares of the tile; this one adds them to its own. */
static void add_others(struct gemm *q, ptx_u32 tile)
{
    ptx_kernel *k = q->k;
    ptx_u32 start = ptx_mul_lo_u32(k, tile, U32(q->division.stages));
    ptx_u32 lowest = tile_lowest_cta(k, &q->division, &q->at, start);
    tile_wait_for(k, &q->at, q->address[MARLIN_WORKSPACE], lowest, marlin_threads(q->v));
    tile_partials_add(k, &q->partials, &q->at, lowest, fragment, q);
}

void marlin_emit_epilogue(struct gemm *q, const struct tile_walk *w, ptx_u32 first)
{
    ptx_kernel *k = q->k;
    if (!marlin_scale_rows(q->spec))
        marlin_emit_scale_columns(q);
    ptx_if_else(k, ptx_setp_eq_u32(k, w->stage_end, U32(q->division.stages))) {
        ptx_if(k, ptx_setp_ne_u32(k, first, U32(0)))
            add_others(q, w->tile);
        finish_tile(q, w->tile);
    } else {
        tile_partials_store(k, &q->partials, fragment, q);
        tile_hand_over(k, &q->at, q->address[MARLIN_WORKSPACE]);
    }
}
