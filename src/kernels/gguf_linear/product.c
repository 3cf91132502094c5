/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product of a unit: 256 weights each of 16 rows by the planes of all tokens.
 *
 * A lane's codes of a group of 32 are an A fragment of mma.m16n8k32 as types.c reads them, and the
 * record in shared memory has B in the same order. A group's sums of code · plane are exact.
 *
 * Types with integer scales go on in integers: the unit's Σ scale · (group's sum), less what is due
 * to an offset of the codes, becomes f32 and is multiplied by d. Minima are one more product,
 * Σ_j m_j · (sum of the plane over group j), of mma.m16n8k16: the 16 sums of a unit are two bytes
 * each, of which the high ones are multiplied first and then taken 256-fold. Codes that are too
 * large by an offset, as Q6_K's by 32, want the same with the scales in place of the minima.
 *
 * Types whose blocks of 32 have an f32 scale of their own add up groups in f32. There mma begins
 * with 1.5·2²³ as f32, so that the bits of its result are that number plus the sum, |sum| < 2²².
 *
 * Both multiply by 2^e · 256^plane at the unit's end, so all planes add up in f32.
 */
#include "emit.h"

#include <string.h>

static const float raised = 0x1.8p23f;
enum { RAISED_BITS = 0x4B400000 };

void gguf_linear_find_columns(struct gguf_linear_kernel *q)
{
    ptx_kernel *k = q->k;
    const uint32_t all = columns(q->plan, q->v->tile_m);
    ptx_u32 pair = ptx_mul_lo_u32(k, q->at.quad, U32(2));
    q->quad4 = ptx_mul_lo_u32(k, q->at.quad, U32(4));
    q->pair_bytes = ptx_mad_lo_u32(k, q->at.quad, U32(0x2222), U32(0x1100));
    q->odd = ptx_setp_ne_u32(k, ptx_and_b32(k, q->at.quad, U32(1)), U32(0));
    q->upper = ptx_setp_ge_u32(k, q->at.quad, U32(2));
    for (uint32_t n = 0; n < n_tiles(q->plan, q->v->tile_m); n++) {
        /* Past the last column a lane reads others, and nobody reads its sums. */
        ptx_u32 column = ptx_add_u32(k, q->at.group, U32(8 * n));
        ptx_u32 first = ptx_add_u32(k, pair, U32(8 * n));
        if (8 * (n + 1) > all) {
            column = ptx_min_u32(k, column, U32(all - 1));
            first = all > 1 ? ptx_min_u32(k, first, U32((all - 1) & ~1u)) : U32(0);
        }
        ptx_u32 quad8 = ptx_mul_lo_u32(k, q->at.quad, U32(8));
        q->b[n] = ptx_mad_lo_u32(k, column, U32(32), quad8);
        q->s16[n] = ptx_mad_lo_u32(k, column, U32(32), U32(record_s16(q->plan, q->v->tile_m)));
        q->s16[n] = ptx_add_u32(k, q->s16[n], quad8);
        q->columns[n] = ptx_mul_lo_u32(k, first, U32(4));
    }
}

/* ---- a unit's operands ---- */

struct operands {
    struct unit u;
    const struct gguf_linear_type *type;
    ptx_u32 record;
    uint32_t n_tiles;
    ptx_u32 unit_index;
};

/* An n-tile's two f32 of the lane's columns, from an array of columns in the record. */
static void column_pair(struct gguf_linear_kernel *q, struct operands *o, uint32_t n, uint32_t at,
                        ptx_f32 to[2])
{
    ptx_kernel *k = q->k;
    ptx_u32 from = ptx_add_u32(k, o->record, q->columns[n]);
    for (int i = 0; i < 2; i++)
        to[i] = ptx_ld_shared_f32(k, from, (int)at + 4 * i);
}

static void load_codes(struct operands *o, unsigned g, ptx_u32 a[4])
{
    for (int row = 0; row < 2; row++) {
        ptx_u32 two[2];
        o->type->codes(&o->u, g, row, two);
        a[row] = two[0];
        a[2 + row] = two[1];
    }
}

static void load_b(struct gguf_linear_kernel *q, struct operands *o, unsigned g, uint32_t n,
                   ptx_u32 b[2])
{
    ptx_u32 from = ptx_add_u32(q->k, o->record, q->b[n]);
    int group = (int)(g * 32 * columns(q->plan, q->v->tile_m));
    ptx_ld_shared_v2_u32(q->k, b, from, group);
}

/* ---- types with integer scales ---- */

static ptx_s32 scale_of(struct operands *o, int row, unsigned index)
{
    unsigned byte = index % 4, sign = 8 + byte;
    uint32_t selector = byte | sign << 4 | sign << 8 | sign << 12;
    ptx_u32 wide = ptx_prmt_b32(o->u.k, o->u.scales[row][index / 4], U32(0), U32(selector));
    return ptx_u32_as_s32(wide);
}

/* Adds scale · c to the unit's sums, or makes them of the first. */
static void add_scaled(ptx_kernel *k, bool is_first, const ptx_s32 scale[2], const ptx_s32 c[4],
                       ptx_s32 sums[4])
{
    for (int i = 0; i < 4; i++)
        sums[i] = is_first ? ptx_mul_lo_s32(k, scale[i / 2], c[i])
                           : ptx_mad_lo_s32(k, scale[i / 2], c[i], sums[i]);
}

static void multiply_group(struct gguf_linear_kernel *q, struct operands *o, unsigned g,
                           ptx_s32 zero, ptx_s32 sums[MAX_N_TILES][4])
{
    ptx_kernel *k = q->k;
    const ptx_s32 none[4] = {zero, zero, zero, zero};
    ptx_u32 a[4];
    load_codes(o, g, a);
    uint32_t halves = o->type->group == 16 ? 2 : 1;
    ptx_s32 scale[2][2];
    for (uint32_t h = 0; h < halves; h++)
        for (int row = 0; row < 2; row++)
            scale[h][row] = scale_of(o, row, halves * g + h);
    for (uint32_t n = 0; n < o->n_tiles; n++) {
        ptx_u32 b[2];
        ptx_s32 c[4];
        load_b(q, o, g, n, b);
        for (uint32_t h = 0; h < halves; h++) {
            if (halves == 2)
                ptx_mma_m16n8k16_s32_s8_s8(k, c, &a[2 * h], &b[h], none);
            else
                ptx_mma_m16n8k32_s32_s8_s8(k, c, a, b, none);
            add_scaled(k, !g && !h, scale[h], c, sums[n]);
        }
    }
}

/* Σ minima · sums of planes. */
static void multiply_minima(struct gguf_linear_kernel *q, struct operands *o, uint32_t n,
                            ptx_s32 zero, ptx_s32 c[4])
{
    ptx_kernel *k = q->k;
    const ptx_s32 none[4] = {zero, zero, zero, zero};
    ptx_u32 both[2];
    ptx_ld_shared_v2_u32(k, both, ptx_add_u32(k, o->record, q->s16[n]), 0);
    ptx_s32 high[4];
    ptx_mma_m16n8k16_s32_s8_s8(k, high, o->u.minima, &both[1], none);
    for (int i = 0; i < 4; i++)
        high[i] = ptx_u32_as_s32(ptx_shl_b32(k, ptx_s32_as_u32(high[i]), U32(8)));
    ptx_mma_m16n8k16_s32_s8_s8(k, c, o->u.minima, &both[0], high);
}

static void multiply_scaled(struct gguf_linear_kernel *q, struct operands *o, struct sums *sums)
{
    ptx_kernel *k = q->k;
    ptx_s32 zero = ptx_mov_s32(k, S32(0)), unit[MAX_N_TILES][4];
    for (int row = 0; row < 2; row++)
        o->type->scale(&o->u, row);
    for (unsigned g = 0; g < UNIT_GROUPS; g++)
        multiply_group(q, o, g, zero, unit);
    for (uint32_t n = 0; n < o->n_tiles; n++) {
        ptx_f32 power[2];
        ptx_s32 minima[4];
        column_pair(q, o, n, record_powers(q->plan, q->v->tile_m), power);
        if (o->type->facts.sums == SUMS_S16)
            multiply_minima(q, o, n, zero, minima);
        for (int i = 0; i < 4; i++) {
            ptx_s32 sum = unit[n][i];
            if (o->type->offset)
                sum = ptx_mad_lo_s32(k, minima[i], S32(-o->type->offset), sum);
            ptx_f32 value = ptx_mul_f32(k, ptx_cvt_f32_s32(k, sum), o->u.d[i / 2]);
            if (o->type->has_dmin) {
                ptx_f32 minus = ptx_neg_f32(k, ptx_cvt_f32_s32(k, minima[i]));
                value = ptx_fma_f32(k, minus, o->u.dmin[i / 2], value);
            }
            ptx_fma_f32_to(k, sums->acc[n][i], value, power[i % 2], sums->acc[n][i]);
        }
    }
}

/* ---- types whose blocks of 32 have a scale of their own ---- */

/* Blocks past K count as 0, whatever bytes are there. */
static void without_absent(struct gguf_linear_kernel *q, struct operands *o, unsigned g)
{
    ptx_kernel *k = q->k;
    uint32_t blocks = q->spec->k / 32;
    if (blocks % UNIT_GROUPS == 0 || g < blocks % UNIT_GROUPS)
        return;
    ptx_pred exists = ptx_setp_ne_u32(k, o->unit_index, U32(units(q->spec) - 1));
    for (int row = 0; row < 2; row++) {
        o->u.d[row] = ptx_selp_f32(k, o->u.d[row], F32(0), exists);
        if (o->type->has_dmin)
            o->u.dmin[row] = ptx_selp_f32(k, o->u.dmin[row], F32(0), exists);
    }
}

static void multiply_block(struct gguf_linear_kernel *q, struct operands *o, unsigned g,
                           ptx_s32 start, ptx_f32 unit[MAX_N_TILES][4])
{
    ptx_kernel *k = q->k;
    const ptx_s32 from[4] = {start, start, start, start};
    const uint32_t pitch = columns(q->plan, q->v->tile_m) * 4;
    ptx_u32 a[4];
    load_codes(o, g, a);
    for (int row = 0; row < 2; row++)
        o->type->block(&o->u, g, row);
    without_absent(q, o, g);
    for (uint32_t n = 0; n < o->n_tiles; n++) {
        ptx_u32 b[2];
        ptx_s32 c[4];
        ptx_f32 total[2];
        load_b(q, o, g, n, b);
        ptx_mma_m16n8k32_s32_s8_s8(k, c, a, b, from);
        if (o->type->has_dmin)
            column_pair(q, o, n, record_s32(q->plan, q->v->tile_m) + g * pitch, total);
        for (int i = 0; i < 4; i++) {
            ptx_f32 sum = ptx_sub_f32(k, ptx_u32_as_f32(ptx_s32_as_u32(c[i])), F32(raised));
            unit[n][i] = g ? ptx_fma_f32(k, sum, o->u.d[i / 2], unit[n][i])
                           : ptx_mul_f32(k, sum, o->u.d[i / 2]);
            if (o->type->has_dmin)
                unit[n][i] = ptx_fma_f32(k, total[i % 2], o->u.dmin[i / 2], unit[n][i]);
        }
    }
}

static void multiply_blocks(struct gguf_linear_kernel *q, struct operands *o, struct sums *sums)
{
    ptx_kernel *k = q->k;
    ptx_s32 start = ptx_mov_s32(k, S32(RAISED_BITS));
    ptx_f32 unit[MAX_N_TILES][4];
    for (unsigned g = 0; g < UNIT_GROUPS; g++)
        multiply_block(q, o, g, start, unit);
    for (uint32_t n = 0; n < o->n_tiles; n++) {
        ptx_f32 power[2];
        column_pair(q, o, n, record_powers(q->plan, q->v->tile_m), power);
        for (int i = 0; i < 4; i++)
            ptx_fma_f32_to(k, sums->acc[n][i], unit[n][i], power[i % 2], sums->acc[n][i]);
    }
}

/* ---- a unit ---- */

static struct operands begin_unit(struct gguf_linear_kernel *q, const struct phase *p,
                                  ptx_u32 record, ptx_u32 unit_index)
{
    struct operands o = {.type = p->type,
                         .record = record,
                         .n_tiles = n_tiles(q->plan, q->v->tile_m),
                         .unit_index = unit_index};
    o.u.k = q->k;
    o.u.quad4 = q->quad4;
    o.u.pair_bytes = q->pair_bytes;
    o.u.odd = q->odd;
    o.u.upper = q->upper;
    return o;
}

static void multiply_unit(struct gguf_linear_kernel *q, struct operands *o, struct sums *sums)
{
    for (unsigned i = 0; i < 2; i++)
        o->u.lane_row[i] = ptx_add_u32(q->k, o->u.row[i], q->quad4);
    for (int i = 0; o->type->table && i < 4; i++)
        o->u.table[i] = ptx_mov_u32(q->k, U32(o->type->table[i]));
    if (o->type->group)
        multiply_scaled(q, o, sums);
    else
        multiply_blocks(q, o, sums);
}

void gguf_linear_multiply(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 slot,
                          const ptx_u32 shift[2], ptx_u32 record, ptx_u32 unit_index,
                          struct sums *sums)
{
    ptx_kernel *k = q->k;
    const uint32_t pitch = slot_pitch(q->spec, p->type->type, q->v->wk);
    struct operands o = begin_unit(q, p, record, unit_index);
    o.u.align = row_align(q->spec, p->type->type);
    ptx_u32 own = ptx_mad_lo_u32(k, q->wk, U32(unit_bytes(p->type->type)), slot);
    ptx_u32 row = ptx_mad_lo_u32(k, q->at.group, U32(pitch), own);
    for (unsigned i = 0; i < 2; i++) {
        o.u.row[i] = i ? ptx_add_u32(k, row, U32(HALF_ROWS * pitch)) : row;
        if (o.u.align < 16)
            o.u.row[i] = ptx_add_u32(k, o.u.row[i], shift[i]);
    }
    multiply_unit(q, &o, sums);
}

void gguf_linear_multiply_of_pair(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 slot,
                                  uint32_t in_pair, ptx_u32 record, ptx_u32 unit_index,
                                  struct sums *sums)
{
    ptx_kernel *k = q->k;
    const uint32_t pitch = pairs_pitch(p->type->type, q->v->ring_warps);
    struct operands o = begin_unit(q, p, record, unit_index);
    o.u.align = 4;
    o.u.first = (int)(in_pair * unit_bytes(p->type->type));
    o.u.row[0] = ptx_mad_lo_u32(k, q->at.group, U32(pitch), slot);
    o.u.row[1] = ptx_add_u32(k, o.u.row[0], U32(HALF_ROWS * pitch));
    multiply_unit(q, &o, sums);
}
