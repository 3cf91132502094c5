/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of the warps along K: copies of weights by cp.async, some steps ahead of the product.
 *
 * A slot has, of each of the tile's 16 rows, wk neighbouring units, one for each warp, as chunks of
 * 16 bytes. They are numbered row by row, and the warps copy consecutive ones at a time: neighbours
 * along a row reach memory as one request, and the requests that a multiprocessor can have under
 * way are what limits it.
 *
 * Rows of most types do not begin at multiples of 16 bytes. A chunk begins at the multiple below,
 * and the row lies as far into its place as it did behind that. These copies read a few bytes
 * before and behind a unit, which are other weights of the matrix. In the matrix's first and last
 * tile, where they might leave it, such a chunk is copied byte by byte, with zeros for what is
 * outside.
 */
#include "emit.h"

static bool is_shifted(const struct gguf_linear_kernel *q, const struct phase *p)
{
    return row_align(q->spec, p->type->type) < 16;
}

void gguf_linear_next_slot(struct gguf_linear_kernel *q, ptx_u32 slot)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = slot_bytes(q->spec, q->v->wk);
    ptx_u32 next = ptx_add_u32(k, slot, U32(bytes));
    ptx_u32 end = ptx_add_u32(k, q->ring, U32(q->v->stages * bytes));
    ptx_selp_u32_to(k, slot, q->ring, next, ptx_setp_eq_u32(k, next, end));
}

/* ---- places ---- */

ptx_u32 gguf_linear_first_tile(struct gguf_linear_kernel *q, const struct phase *p)
{
    ptx_kernel *k = q->k;
    uint32_t step = tile_step(q), behind = p->before % step;
    ptx_u32 own = q->own_tile;
    if (!behind) /* the warps that the phase before left without a tile come first */
        return own;
    ptx_u32 moved = ptx_add_u32(k, own, U32(step - behind));
    ptx_u32 wrapped = ptx_sub_u32(k, moved, U32(step));
    return ptx_selp_u32(k, wrapped, moved, ptx_setp_ge_u32(k, moved, U32(step)));
}

struct place gguf_linear_locate(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 tile)
{
    ptx_kernel *k = q->k;
    uint32_t i = p->matrices[0], before = 0;
    struct place at = {.w = q->params[PRODUCT_W + i],
                       .bias = q->params[PRODUCT_BIAS + i],
                       .y = q->params[PRODUCT_Y + i],
                       .n = U32(q->spec->n[i]),
                       .y_stride = q->y_stride[i]};
    ptx_u32 in_matrix = tile;
    for (uint32_t next = 1; next < p->count; next++) {
        before += matrix_tiles(q->spec, i);
        i = p->matrices[next];
        if (!matrix_tiles(q->spec, i))
            continue;
        ptx_pred is_in = ptx_setp_ge_u32(k, tile, U32(before));
        at.w = ptx_selp_u64(k, q->params[PRODUCT_W + i], at.w, is_in);
        at.bias = ptx_selp_u64(k, q->params[PRODUCT_BIAS + i], at.bias, is_in);
        at.y = ptx_selp_u64(k, q->params[PRODUCT_Y + i], at.y, is_in);
        at.n = ptx_selp_u32(k, U32(q->spec->n[i]), at.n, is_in);
        at.y_stride = ptx_selp_u32(k, q->y_stride[i], at.y_stride, is_in);
        ptx_u32 rest = ptx_sub_u32(k, tile, U32(before));
        in_matrix = ptx_selp_u32(k, rest, in_matrix, is_in);
    }
    at.feature = ptx_mul_lo_u32(k, in_matrix, U32(tile_features(q->spec)));
    return at;
}

/* Rows past the last are the last. */
void gguf_linear_find_rows(struct gguf_linear_kernel *q, const struct phase *p,
                           const struct place *at, ptx_u64 rows[2])
{
    ptx_kernel *k = q->k;
    uint64_t bytes = row_bytes(q->spec, p->type->type);
    ptx_u32 last = ptx_sub_u32(k, at->n, U32(1));
    for (unsigned i = 0; i < 2; i++) {
        bool is_up = is_interleaved(q->spec) && i;
        ptx_u32 in_tile = is_up || !i ? q->at.group : ptx_add_u32(k, q->at.group, U32(HALF_ROWS));
        ptx_u32 row = ptx_min_u32(k, ptx_add_u32(k, at->feature, in_tile), last);
        ptx_u64 base = is_up ? q->params[PRODUCT_W + 1] : at->w;
        rows[i] = ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, row), U64(bytes), base);
    }
}

/* ---- copies ---- */

/* Threads that copy together, and times that each copies a chunk. */
static uint32_t team(const struct gguf_linear_kernel *q)
{
    return 32 * q->v->wk;
}
static uint32_t copies(const struct gguf_linear_kernel *q, const struct phase *p)
{
    uint32_t chunks = TILE_ROWS * row_chunks(q->spec, p->type->type, q->v->wk);
    return (chunks + team(q) - 1) / team(q);
}

/* The row and the chunk of it that the lane copies at a time, and its place in a slot. */
struct chunk {
    ptx_u32 row, in_row, place;
};
static struct chunk find_chunk(struct gguf_linear_kernel *q, const struct phase *p, uint32_t copy)
{
    ptx_kernel *k = q->k;
    const uint32_t type = p->type->type, chunks = row_chunks(q->spec, type, q->v->wk);
    ptx_u32 number = copy ? ptx_add_u32(k, q->thread, U32(team(q) * copy)) : q->thread;
    struct chunk c;
    c.row = gemm_divide(k, number, chunks);
    c.in_row = gemm_remainder(k, number, chunks);
    ptx_u32 in_row = ptx_mul_lo_u32(k, c.in_row, U32(16));
    c.place = ptx_mad_lo_u32(k, c.row, U32(slot_pitch(q->spec, type, q->v->wk)), in_row);
    return c;
}

/* The tile's first units of the part, and where the lane's chunks are behind it. */
static void find_tile(struct gguf_linear_kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    const struct phase *p = s->phase;
    const uint32_t type = p->type->type;
    const uint64_t bytes = row_bytes(q->spec, type);
    struct place at = gguf_linear_locate(q, p, s->tile);
    ptx_u64 feature = ptx_cvt_u64_u32(k, at.feature), n = ptx_cvt_u64_u32(k, at.n);
    ptx_u32 first = ptx_mul_lo_u32(k, q->part_first, U32(unit_bytes(type)));
    ptx_u64 ahead = ptx_mad_lo_u64(k, feature, U64(bytes), ptx_cvt_u64_u32(k, first));
    for (unsigned i = 0; i < (is_interleaved(q->spec) ? 2u : 1u); i++) {
        ptx_u64 begin = i ? q->params[PRODUCT_W + 1] : at.w;
        ptx_mov_u64_to(k, s->begin[i], begin);
        ptx_mad_lo_u64_to(k, s->end[i], n, U64(bytes), begin);
        ptx_add_u64_to(k, s->next[i], begin, ahead);
    }
    ptx_u32 last = ptx_sub_u32(k, ptx_sub_u32(k, at.n, at.feature), U32(1));
    for (uint32_t i = 0; i < copies(q, p); i++) {
        struct chunk c = find_chunk(q, p, i);
        ptx_u32 row = c.row;
        if (is_interleaved(q->spec))
            row = ptx_and_b32(k, row, U32(HALF_ROWS - 1));
        row = ptx_min_u32(k, row, last); /* rows past the last are the last */
        ptx_u32 of_row = ptx_mul_lo_u32(k, row, U32((uint32_t)bytes));
        ptx_mad_lo_u32_to(k, s->offsets[i], c.in_row, U32(16), of_row);
    }
    ptx_pred is_edge = ptx_setp_eq_u32(k, at.feature, U32(0));
    uint32_t reach = copied_bytes(q->spec, type, q->v->wk) / (uint32_t)bytes + 1; /* rows */
    ptx_pred is_near = ptx_setp_lt_u32(k, last, U32(tile_features(q->spec) + reach));
    is_edge = ptx_or_pred(k, is_edge, is_near);
    ptx_selp_u32_to(k, s->edge, U32(1), U32(0), is_edge);
    ptx_mov_u32_to(k, s->left, q->part_count);
}

/* Neighbours in the L2's line are wanted soon; the modifier is of PTX 7.4. */
static uint64_t line_hint(const struct gguf_linear_kernel *q)
{
    const uint32_t most = q->plan->target.ptx.max_ptx;
    return !most || most >= 74 ? PTX_L2_128B : 0;
}

/* Sixteen bytes, of which those outside of the matrix are 0. */
static void copy_bytes(ptx_kernel *k, ptx_u64 from, ptx_u32 to, ptx_u64 begin, ptx_u64 end)
{
    ptx_u32 byte = ptx_mov_u32(k, U32(0));
    ptx_for(k, byte, U32(16), U32(1)) {
        ptx_nounroll(k);
        ptx_u64 source = ptx_add_u64(k, from, ptx_cvt_u64_u32(k, byte));
        ptx_u32 value = ptx_mov_u32(k, U32(0));
        ptx_pred inside = ptx_setp_ge_u64(k, source, begin);
        ptx_guarded(k, ptx_setp_bool_lt_u64(k, source, end, inside))
            ptx_ld_global_u8_to(k, value, source, 0);
        ptx_st_shared_u8(k, ptx_add_u32(k, to, byte), 0, value);
    }
}

/* Whether the lane has a chunk this time. */
static ptx_pred has_chunk(struct gguf_linear_kernel *q, const struct stream *s, uint32_t copy)
{
    uint32_t all = TILE_ROWS * row_chunks(q->spec, s->phase->type->type, q->v->wk);
    return ptx_setp_lt_u32(q->k, q->thread, U32(all - team(q) * copy));
}

/* One of two values by the half of the tile that the lane's chunk is in. */
static ptx_u64 of_half(struct gguf_linear_kernel *q, const struct stream *s, uint32_t copy,
                       const ptx_u64 values[2])
{
    ptx_kernel *k = q->k;
    uint32_t lower = HALF_ROWS * row_chunks(q->spec, s->phase->type->type, q->v->wk); /* chunks */
    if (!is_interleaved(q->spec) || team(q) * (copy + 1) <= lower)
        return values[0];
    if (team(q) * copy >= lower)
        return values[1];
    ptx_pred is_upper = ptx_setp_ge_u32(k, q->thread, U32(lower - team(q) * copy));
    return ptx_selp_u64(k, values[1], values[0], is_upper);
}

/* Whether each slot has a unit for each warp. */
static bool fills_slots(const struct gguf_linear_kernel *q)
{
    return q->v->parts == 1 && units(q->spec) % q->v->wk == 0;
}

/* Bytes of a row's next units. */
static ptx_u32 piece_bytes(struct gguf_linear_kernel *q, const struct stream *s)
{
    const uint32_t bytes = unit_bytes(s->phase->type->type);
    if (fills_slots(q))
        return U32(q->v->wk * bytes);
    return ptx_mul_lo_u32(q->k, ptx_min_u32(q->k, s->left, U32(q->v->wk)), U32(bytes));
}

/* The lane's chunk of units whose rows lie at multiples of 16 bytes. */
static void copy_aligned(struct gguf_linear_kernel *q, const struct stream *s, uint32_t copy,
                         ptx_u32 bytes)
{
    ptx_kernel *k = q->k;
    uint32_t all = TILE_ROWS * row_chunks(q->spec, s->phase->type->type, q->v->wk);
    ptx_u64 from = of_half(q, s, copy, s->next);
    from = ptx_add_u64(k, from, ptx_cvt_u64_u32(k, s->offsets[copy]));
    ptx_u32 to = ptx_add_u32(k, s->fill, s->places[copy]);
    if (all >= team(q) * (copy + 1) && fills_slots(q)) {
        ptx_cp_async_cg_m(k, line_hint(q), to, 0, from, 0, 16);
        return;
    }
    ptx_pred wanted = has_chunk(q, s, copy);
    if (!fills_slots(q)) {
        ptx_u32 in_row = find_chunk(q, s->phase, copy).in_row;
        wanted = ptx_setp_bool_lt_u32(k, ptx_mul_lo_u32(k, in_row, U32(16)), bytes, wanted);
    }
    ptx_guarded(k, wanted)
        ptx_cp_async_cg_m(k, line_hint(q), to, 0, from, 0, 16);
}

/* Of other units, the chunk that has the byte as far behind the row's first. */
static void copy_shifted(struct gguf_linear_kernel *q, const struct stream *s, uint32_t copy,
                         ptx_u32 bytes, bool is_edge)
{
    ptx_kernel *k = q->k;
    const uint32_t type = s->phase->type->type, chunks = row_chunks(q->spec, type, q->v->wk);
    const uint32_t word = row_align(q->spec, type) < 4 ? 4 : 0;
    ptx_u64 exact = of_half(q, s, copy, s->next);
    exact = ptx_add_u64(k, exact, ptx_cvt_u64_u32(k, s->offsets[copy]));
    ptx_u64 from = ptx_and_b64(k, exact, U64(~UINT64_C(15)));
    ptx_u32 shift = ptx_and_b32(k, ptx_cvt_u32_u64(k, exact), U32(15));
    ptx_u32 to = ptx_add_u32(k, s->fill, s->places[copy]);
    ptx_u32 in_row = find_chunk(q, s->phase, copy).in_row;
    ptx_u32 begins = ptx_mul_lo_u32(k, in_row, U32(16));
    ptx_u32 end_byte = ptx_add_u32(k, ptx_add_u32(k, shift, bytes), U32(word));
    ptx_pred wanted = ptx_setp_lt_u32(k, begins, end_byte);
    if (TILE_ROWS * chunks < team(q) * (copy + 1))
        wanted = ptx_and_pred(k, wanted, has_chunk(q, s, copy));
    if (!is_edge) {
        ptx_guarded(k, wanted)
            ptx_cp_async_cg_m(k, line_hint(q), to, 0, from, 0, 16);
        return;
    }
    ptx_u64 begin = of_half(q, s, copy, s->begin), end = of_half(q, s, copy, s->end);
    ptx_pred inside = ptx_setp_ge_u64(k, from, begin);
    inside = ptx_setp_bool_le_u64(k, ptx_add_u64(k, from, U64(16)), end, inside);
    ptx_if(k, wanted) {
        ptx_if_else(k, inside)
            ptx_cp_async_cg(k, to, 0, from, 0, 16);
        else
            copy_bytes(k, from, to, begin, end);
    }
}

static void copy_units(struct gguf_linear_kernel *q, const struct stream *s)
{
    ptx_kernel *k = q->k;
    ptx_u32 bytes = piece_bytes(q, s);
    if (!is_shifted(q, s->phase)) { /* then K is whole units, too */
        for (uint32_t i = 0; i < copies(q, s->phase); i++)
            copy_aligned(q, s, i, bytes);
        return;
    }
    ptx_if_else(k, ptx_setp_eq_u32(k, s->edge, U32(0)))
        for (uint32_t i = 0; i < copies(q, s->phase); i++)
            copy_shifted(q, s, i, bytes, false);
    else
        for (uint32_t i = 0; i < copies(q, s->phase); i++)
            copy_shifted(q, s, i, bytes, true);
}

void gguf_linear_issue(struct gguf_linear_kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = q->v->wk * unit_bytes(s->phase->type->type);
    ptx_if(k, ptx_setp_lt_u32(k, s->tile, U32(phase_tiles(q->spec, s->phase)))) {
        copy_units(q, s);
        for (unsigned i = 0; i < (is_interleaved(q->spec) ? 2u : 1u); i++)
            ptx_add_u64_to(k, s->next[i], s->next[i], U64(bytes));
        gguf_linear_next_slot(q, s->fill);
        ptx_if_else(k, ptx_setp_gt_u32(k, s->left, U32(q->v->wk)))
            ptx_sub_u32_to(k, s->left, s->left, U32(q->v->wk));
        else {
            ptx_add_u32_to(k, s->tile, s->tile, U32(tile_step(q)));
            find_tile(q, s);
        }
    }
    ptx_cp_async_commit_group(k);
}

struct stream gguf_linear_start_stream(struct gguf_linear_kernel *q, const struct phase *p)
{
    ptx_kernel *k = q->k;
    struct stream s = {.phase = p};
    s.tile = ptx_mov_u32(k, gguf_linear_first_tile(q, p));
    s.fill = ptx_mov_u32(k, q->ring);
    s.left = ptx_mov_u32(k, U32(0));
    s.edge = ptx_mov_u32(k, U32(0));
    for (int i = 0; i < 2; i++) {
        s.next[i] = ptx_mov_u64(k, U64(0));
        s.begin[i] = ptx_mov_u64(k, U64(0));
        s.end[i] = ptx_mov_u64(k, U64(0));
    }
    for (uint32_t i = 0; i < copies(q, p); i++) {
        s.offsets[i] = ptx_mov_u32(k, U32(0));
        s.places[i] = find_chunk(q, p, i).place;
    }
    find_tile(q, &s);
    ptx_u32 filled = ptx_mov_u32(k, U32(0));
    ptx_for(k, filled, U32(q->v->stages - 1), U32(1)) {
        ptx_nounroll(k);
        gguf_linear_issue(q, &s);
    }
    return s;
}
