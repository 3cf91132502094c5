/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of a warp: copies of weights by cp.async, some units ahead of the product.
 *
 * A slot has a unit of each of the tile's 16 rows. Four lanes copy a row, 16 bytes each at a time,
 * of the two rows that they multiply. Rows of most types do not begin at multiples of 16 bytes: a
 * copy begins at the multiple below, and the row lies as far into its place as it did behind that.
 * These copies read a few bytes before and behind a unit, which are other weights of the matrix.
 * Where they would leave the matrix, the row is copied byte by byte instead, with zeros for what is
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
    uint32_t bytes = slot_bytes(q->spec);
    ptx_u32 next = ptx_add_u32(k, slot, U32(bytes));
    ptx_u32 end = ptx_add_u32(k, q->ring, U32(q->v->stages * bytes));
    ptx_selp_u32_to(k, slot, q->ring, next, ptx_setp_eq_u32(k, next, end));
}

/* ---- places ---- */

ptx_u32 gguf_linear_first_tile(struct gguf_linear_kernel *q, const struct phase *p)
{
    ptx_kernel *k = q->k;
    uint32_t step = tile_step(q), behind = p->before % step;
    ptx_u32 own = ptx_mad_lo_u32(k, q->place, U32(q->v->wn), q->wn);
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

/* The first unit of the tile. */
static void find_tile(struct gguf_linear_kernel *q, struct stream *s, bool is_first)
{
    ptx_kernel *k = q->k;
    const struct phase *p = s->phase;
    struct place at = gguf_linear_locate(q, p, s->tile);
    ptx_u64 rows[2];
    gguf_linear_find_rows(q, p, &at, rows);
    uint64_t bytes = row_bytes(q->spec, p->type->type);
    ptx_u64 begin = ptx_mov_u64(k, at.w);
    ptx_u64 end = ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, at.n), U64(bytes), begin);
    for (int i = 0; i < 2; i++) {
        ptx_u64 row = ptx_mad_wide_u32(k, q->first, U32(unit_bytes(p->type->type)), rows[i]);
        if (is_first)
            s->rows[i] = ptx_mov_u64(k, row);
        else
            ptx_mov_u64_to(k, s->rows[i], row);
    }
    if (is_first) {
        s->begin = begin;
        s->end = end;
        s->left = ptx_mov_u32(k, q->count);
    } else {
        ptx_mov_u64_to(k, s->begin, begin);
        ptx_mov_u64_to(k, s->end, end);
        ptx_mov_u32_to(k, s->left, q->count);
    }
}

/* ---- copies ---- */

static void copy_bytes(struct gguf_linear_kernel *q, const struct stream *s, ptx_u64 from,
                       ptx_u32 to, ptx_u64 begin, ptx_u64 end)
{
    ptx_kernel *k = q->k;
    uint32_t chunks = row_chunks(q->spec, s->phase->type->type);
    ptx_u32 chunk = ptx_mov_u32(k, q->at.quad);
    ptx_for(k, chunk, U32(chunks), U32(4)) {
        ptx_nounroll(k);
        ptx_u32 byte = ptx_mov_u32(k, U32(0));
        ptx_for(k, byte, U32(16), U32(1)) {
            ptx_nounroll(k);
            ptx_u32 offset = ptx_mad_lo_u32(k, chunk, U32(16), byte);
            ptx_u64 source = ptx_add_u64(k, from, ptx_cvt_u64_u32(k, offset));
            ptx_u32 value = ptx_mov_u32(k, U32(0));
            ptx_pred inside = ptx_setp_ge_u64(k, source, begin);
            ptx_guarded(k, ptx_setp_bool_lt_u64(k, source, end, inside))
                ptx_ld_global_u8_to(k, value, source, 0);
            ptx_st_shared_u8(k, ptx_add_u32(k, to, offset), 0, value);
        }
    }
}

/* Copies of the lane's chunks of a row that begins `shift` bytes behind `from`. */
static void copy_chunks(struct gguf_linear_kernel *q, const struct stream *s, ptx_u64 from,
                        ptx_u32 to, ptx_u32 shift)
{
    ptx_kernel *k = q->k;
    const uint32_t type = s->phase->type->type, chunks = row_chunks(q->spec, type);
    const uint32_t word = row_align(q->spec, type) < 4 ? 4 : 0;
    const uint32_t always = (unit_bytes(type) + word) / 16; /* chunks whatever the shift is */
    ptx_u64 source = ptx_mad_wide_u32(k, q->at.quad, U32(16), from);
    ptx_u32 place = ptx_mad_lo_u32(k, q->at.quad, U32(16), to);
    for (uint32_t first = 0; first < chunks; first += 4) {
        int offset = (int)(16 * first);
        if (first + 4 <= always) {
            ptx_cp_async_cg(k, place, offset, source, offset, 16);
            continue;
        }
        ptx_u32 begins = ptx_mad_lo_u32(k, q->at.quad, U32(16), U32(16 * first));
        ptx_u32 end = is_shifted(q, s->phase) ? ptx_add_u32(k, shift, U32(unit_bytes(type) + word))
                                              : U32(unit_bytes(type));
        ptx_guarded(k, ptx_setp_lt_u32(k, begins, end))
            ptx_cp_async_cg(k, place, offset, source, offset, 16);
    }
}

static void copy_row(struct gguf_linear_kernel *q, struct stream *s, int i)
{
    ptx_kernel *k = q->k;
    const uint32_t type = s->phase->type->type, pitch = slot_pitch(q->spec, type);
    ptx_u32 to = ptx_mad_lo_u32(k, q->at.group, U32(pitch), s->fill), shift = U32(0);
    if (i)
        to = ptx_add_u32(k, to, U32(HALF_ROWS * pitch));
    ptx_u64 from = s->rows[i];
    if (!is_shifted(q, s->phase)) { /* then K is whole units, too */
        copy_chunks(q, s, from, to, shift);
        return;
    }
    from = ptx_and_b64(k, s->rows[i], U64(~UINT64_C(15)));
    shift = ptx_cvt_u32_u64(k, ptx_and_b64(k, s->rows[i], U64(15)));
    ptx_u64 begin = s->begin, end = s->end;
    if (is_interleaved(q->spec) && i) {
        uint64_t bytes = row_bytes(q->spec, type) * q->spec->n[1];
        begin = q->params[PRODUCT_W + 1];
        end = ptx_add_u64(k, begin, U64(bytes));
    }
    ptx_u64 stop = ptx_add_u64(k, from, U64(16 * row_chunks(q->spec, type)));
    ptx_pred inside = ptx_setp_ge_u64(k, from, begin);
    inside = ptx_setp_bool_le_u64(k, stop, end, inside);
    ptx_if_else(k, inside)
        copy_chunks(q, s, from, to, shift);
    else
        copy_bytes(q, s, from, to, begin, end);
}

void gguf_linear_issue(struct gguf_linear_kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = unit_bytes(s->phase->type->type);
    ptx_pred has_units = ptx_setp_ne_u32(k, q->count, U32(0));
    ptx_if(k, ptx_setp_bool_lt_u32(k, s->tile, U32(phase_tiles(q->spec, s->phase)), has_units)) {
        for (int i = 0; i < 2; i++) {
            copy_row(q, s, i);
            ptx_add_u64_to(k, s->rows[i], s->rows[i], U64(bytes));
        }
        ptx_sub_u32_to(k, s->left, s->left, U32(1));
        gguf_linear_next_slot(q, s->fill);
        ptx_if(k, ptx_setp_eq_u32(k, s->left, U32(0))) {
            ptx_add_u32_to(k, s->tile, s->tile, U32(tile_step(q)));
            find_tile(q, s, false);
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
    find_tile(q, &s, true);
    ptx_u32 filled = ptx_mov_u32(k, U32(0));
    ptx_for(k, filled, U32(q->v->stages - 1), U32(1)) {
        ptx_nounroll(k);
        gguf_linear_issue(q, &s);
    }
    return s;
}
