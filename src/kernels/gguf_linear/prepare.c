/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel that makes h of a token, and writes it to the workspace as records (layout.h).
 *
 *     x, residual ─▶ [Σx² ─▶ 1/rms] ─▶ g ─▶ [Σg² ─▶ 1/rms] ─▶ h
 *     h ─▶ integers, with a power of two for each 256 values
 *       ─▶ balanced bytes in the order of B fragments, and their sums
 *
 * A warp takes a unit of 256 values at a time, and a lane 8 consecutive ones. With a norm one CTA
 * has a token, and reads it once for each sum and once more at the end; these later reads find it
 * in the cache. Without norms a token's units are spread over CTAs.
 *
 * The largest magnitude of a unit becomes at least 2¹⁴·(1 − 2⁻⁷) and below 2¹⁵·(1 − 2⁻⁷), of three
 * planes 2²² and 2²³: balanced bytes, which are from −128 to 127, hold no more.
 */
#include "direct.h"
#include "emit.h"

#include "../gemm/tile.h"

#include <math.h>

struct preparer {
    ptx_kernel *k;
    const ptxgen_gguf_linear_plan *plan;
    const ptxgen_gguf_linear_spec *spec;
    const ptxgen_gguf_linear_variant *v; /* NULL: rows of row_type are made, not records */
    ptxgen_element row_type;
    const struct direct_type *order; /* of a row's values (direct.h); NULL: their own */
    uint32_t warps, ctas;            /* of a CTA, of a token */
    ptx_u32 tid, lane, warp;
    ptx_u32 column, token; /* its place among tile_m, and the token that stands there */
    ptx_u32 first_unit;    /* the warp's */
    ptx_pred exists;       /* the place has a token of its own */
    ptx_u64 x, residual, residual_out, gamma, post_gamma, records, counters;
    ptx_pred x_vectors, residual_vectors, gamma_vectors;
    ptx_f32 post_inverse, inverse; /* 1 / rms of x and of g */
};

/* ---- loading ---- */

static ptx_pred is_aligned(ptx_kernel *k, ptx_u64 address)
{
    return ptx_setp_eq_u64(k, ptx_and_b64(k, address, U64(15)), U64(0));
}

static void load_words(ptx_kernel *k, ptx_u64 from, uint32_t words, ptx_u32 to[LANE_VALUES])
{
    for (uint32_t i = 0; i < words; i += 4)
        ptx_ld_global_v4_u32_to(k, &to[i], from, (int)(4 * i));
}

void gguf_linear_load_elements(ptx_kernel *k, ptx_u64 from, bool narrow, ptx_u32 to[LANE_VALUES])
{
    for (int i = 0; i < LANE_VALUES; i++) {
        if (!narrow) {
            ptx_ld_global_u32_to(k, to[i], from, 4 * i);
            continue;
        }
        if (i % 2)
            continue;
        ptx_u16 pair[2];
        for (int j = 0; j < 2; j++)
            pair[j] = ptx_ld_global_u16(k, from, 2 * (i + j));
        ptx_pack_u32_to(k, to[i / 2], pair);
    }
}

void gguf_linear_widen(ptx_kernel *k, ptxgen_element type, const ptx_u32 bits[LANE_VALUES],
                       ptx_f32 to[LANE_VALUES])
{
    const bool narrow = type != PTXGEN_F32;
    for (uint32_t i = 0; i < (narrow ? LANE_VALUES / 2 : LANE_VALUES); i++) {
        ptx_f16 halves[2];
        if (!narrow) {
            to[i] = ptx_u32_as_f32(bits[i]);
        } else if (type == PTXGEN_F16) {
            ptx_unpack_f16x2(k, halves, ptx_u32_as_f16x2(bits[i]));
            to[2 * i] = ptx_cvt_f32_f16(k, halves[0]);
            to[2 * i + 1] = ptx_cvt_f32_f16(k, halves[1]);
        } else {
            to[2 * i] = ptx_u32_as_f32(ptx_shl_b32(k, bits[i], U32(16)));
            to[2 * i + 1] = ptx_u32_as_f32(ptx_and_b32(k, bits[i], U32(0xFFFF0000)));
        }
    }
}

/* The lane's values of a row from `column` on; 0 past K. */
static void load(struct preparer *p, ptx_u64 row, ptx_pred vectors, ptxgen_element type,
                 ptx_u32 column, ptx_f32 to[LANE_VALUES])
{
    ptx_kernel *k = p->k;
    const bool narrow = type != PTXGEN_F32;
    const uint32_t words = narrow ? LANE_VALUES / 2 : LANE_VALUES;
    ptx_u32 bits[LANE_VALUES];
    for (uint32_t i = 0; i < words; i++)
        bits[i] = ptx_mov_u32(k, U32(0));
    ptx_if(k, ptx_setp_lt_u32(k, column, U32(p->spec->k))) {
        ptx_u64 from = ptx_mad_wide_u32(k, column, U32(narrow ? 2 : 4), row);
        ptx_if_else(k, vectors)
            load_words(k, from, words, bits);
        else
            gguf_linear_load_elements(k, from, narrow, bits);
    }
    gguf_linear_widen(k, type, bits, to);
}

/* ---- g ---- */

/* The number rounded to x's type, and that as it is stored. */
static ptx_f32 round_to_type(struct preparer *p, ptx_f32 value, ptx_u16 *stored)
{
    ptx_kernel *k = p->k;
    if (p->spec->x_type == PTXGEN_F16) {
        ptx_f16 half = ptx_cvt_f16_f32(k, value);
        *stored = ptx_f16_as_u16(half);
        return ptx_cvt_f32_f16(k, half);
    }
    if (p->spec->x_type == PTXGEN_BF16) {
        *stored = ptx_bf16_as_u16(ptx_cvt_bf16_f32(k, value));
        ptx_u32 bits = ptx_cvt_u32_u16(k, *stored);
        return ptx_u32_as_f32(ptx_shl_b32(k, bits, U32(16)));
    }
    return value;
}

static void store_g(struct preparer *p, ptx_u32 column, const ptx_f32 g[LANE_VALUES],
                    const ptx_u16 stored[LANE_VALUES])
{
    ptx_kernel *k = p->k;
    const bool narrow = p->spec->x_type != PTXGEN_F32;
    ptx_if(k, ptx_setp_bool_lt_u32(k, column, U32(p->spec->k), p->exists)) {
        ptx_u64 to = ptx_mad_wide_u32(k, column, U32(narrow ? 2 : 4), p->residual_out);
        for (int i = 0; i < LANE_VALUES; i++) {
            if (narrow)
                ptx_st_global_u16(k, to, 2 * i, stored[i]);
            else
                ptx_st_global_f32(k, to, 4 * i, g[i]);
        }
    }
}

/* The lane's g of a unit; `store`: also to residual_out, where the spec has that. */
static void make_g(struct preparer *p, ptx_u32 column, bool store, ptx_f32 g[LANE_VALUES])
{
    ptx_kernel *k = p->k;
    const ptxgen_element type = (ptxgen_element)p->spec->x_type;
    ptx_f32 residual[LANE_VALUES], post[LANE_VALUES];
    ptx_u16 stored[LANE_VALUES];
    load(p, p->x, p->x_vectors, type, column, g);
    if (!p->spec->residual)
        return;
    load(p, p->residual, p->residual_vectors, type, column, residual);
    if (p->spec->residual == PTXGEN_GGUF_LINEAR_AFTER) {
        load(p, p->post_gamma, p->gamma_vectors, PTXGEN_F32, column, post);
        for (int i = 0; i < LANE_VALUES; i++)
            g[i] = ptx_mul_f32(k, ptx_mul_f32(k, g[i], p->post_inverse), post[i]);
    }
    for (int i = 0; i < LANE_VALUES; i++)
        g[i] = round_to_type(p, ptx_add_f32(k, g[i], residual[i]), &stored[i]);
    if (store && p->spec->residual_out)
        store_g(p, column, g, stored);
}

/* ---- sums of squares ---- */

/*
 * Squares of f16 cannot overflow f32. For wider types there are also sums of (v·2⁻⁸⁰)²: 2²² such
 * squares with |v| < 2¹²⁸ stay below 2¹¹⁸.
 */
enum { SCALED_EXPONENT = -80 };
static int square_sums(const struct preparer *p)
{
    return p->spec->x_type == PTXGEN_F16 ? 1 : 2;
}

static void add_squares(struct preparer *p, const ptx_f32 v[LANE_VALUES], ptx_f32 sums[2])
{
    ptx_kernel *k = p->k;
    for (int s = 0; s < square_sums(p); s++)
        for (int i = 0; i < LANE_VALUES; i++) {
            ptx_f32 value = s ? ptx_mul_f32(k, v[i], F32(ldexpf(1, SCALED_EXPONENT))) : v[i];
            ptx_fma_f32_to(k, sums[s], value, value, sums[s]);
        }
}

static ptx_f32 warp_sum(ptx_kernel *k, ptx_f32 value)
{
    for (unsigned mask = 16; mask; mask /= 2)
        value =
            ptx_add_f32(k, value, ptx_shfl_sync_bfly_f32(k, value, U32(mask), U32(31), ALL_LANES));
    return value;
}

/* The sum over the CTA, by way of a word of each warp. */
static ptx_f32 cta_sum(struct preparer *p, ptx_f32 value, const char *name)
{
    ptx_kernel *k = p->k;
    ptx_u32 words = ptx_shared_address(k, ptx_shared_declare(k, name, 4 * p->warps, 4));
    ptx_f32 own = warp_sum(k, value);
    ptx_guarded(k, ptx_setp_eq_u32(k, p->lane, U32(0)))
        ptx_st_shared_f32(k, ptx_mad_lo_u32(k, p->warp, U32(4), words), 0, own);
    ptx_bar_sync(k, 0);
    ptx_f32 part = ptx_mov_f32(k, F32(0));
    ptx_guarded(k, ptx_setp_lt_u32(k, p->lane, U32(p->warps)))
        ptx_ld_shared_f32_to(k, part, ptx_mad_lo_u32(k, p->lane, U32(4), words), 0);
    return warp_sum(k, part);
}

/* Makes 1 / √0 NaN. With ε = 0 that is a token whose squares are zero or below f32's range. */
static ptx_f32 without_zero(struct preparer *p, ptx_f32 inverse)
{
    ptx_kernel *k = p->k;
    if (p->spec->epsilon > 0)
        return inverse;
    ptx_pred finite = ptx_setp_lt_f32(k, inverse, F32(__builtin_inff()));
    return ptx_selp_f32(k, inverse, F32(__builtin_nanf("")), finite);
}

static ptx_f32 inverse_rms(struct preparer *p, const ptx_f32 sums[2], const char *const names[2])
{
    ptx_kernel *k = p->k;
    float per_k = 1.0f / (float)p->spec->k, epsilon = p->spec->epsilon;
    ptx_f32 sum = cta_sum(p, sums[0], names[0]);
    ptx_f32 plain = ptx_fma_f32(k, sum, F32(per_k), F32(epsilon));
    if (square_sums(p) == 1)
        return without_zero(p, ptx_rsqrt_approx_f32(k, plain));
    ptx_f32 scaled_sum = cta_sum(p, sums[1], names[1]);
    ptx_f32 small =
        ptx_fma_f32(k, scaled_sum, F32(per_k), F32(ldexpf(epsilon, 2 * SCALED_EXPONENT)));
    ptx_pred overflowed = ptx_setp_eq_f32(k, sum, F32(__builtin_inff()));
    ptx_f32 inverse = ptx_rsqrt_approx_f32(k, ptx_selp_f32(k, small, plain, overflowed));
    ptx_f32 down = ptx_mul_f32(k, inverse, F32(ldexpf(1, SCALED_EXPONENT)));
    return without_zero(p, ptx_selp_f32(k, down, inverse, overflowed));
}

/* ---- records ---- */

/* The power of two whose exponent field is `biased`. */
static ptx_f32 power_of_two(ptx_kernel *k, ptx_u32 biased)
{
    return ptx_u32_as_f32(ptx_shl_b32(k, biased, U32(23)));
}

/* The powers by which a unit is multiplied, and multiplied back: the latter is NaN where h is not
 * finite. Both are normal numbers. */
static void find_powers(struct preparer *p, const ptx_f32 h[LANE_VALUES], ptx_f32 *down,
                        ptx_f32 *up)
{
    enum { ROOM = 0x20000, BIAS = 127 }; /* 2⁻⁶ of the largest, in units of its last place */
    ptx_kernel *k = p->k;
    const uint32_t bits = p->plan->planes == 2 ? 14 : 22; /* the largest becomes about 2^bits */
    ptx_u32 most = U32(0);
    for (int i = 0; i < LANE_VALUES; i++) {
        ptx_u32 magnitude = ptx_and_b32(k, ptx_f32_as_u32(h[i]), U32(0x7FFFFFFF));
        most = i ? ptx_max_u32(k, most, magnitude) : magnitude;
    }
    most = ptx_redux_sync_max_u32(k, most, ALL_LANES);
    ptx_pred finite = ptx_setp_lt_u32(k, most, U32(0x7F800000));
    ptx_u32 field = ptx_shr_u32(k, ptx_add_u32(k, most, U32(ROOM)), U32(23));
    field = ptx_max_u32(k, field, U32(bits + 2));
    *down = power_of_two(k, ptx_sub_u32(k, U32(2 * BIAS + bits), field));
    ptx_f32 back = power_of_two(k, ptx_sub_u32(k, field, U32(bits)));
    *up = ptx_selp_f32(k, back, F32(__builtin_nanf("")), finite);
}

/* The planes of four integers, a byte each. */
static void split(struct preparer *p, const ptx_f32 v[4], ptx_u32 planes[3])
{
    ptx_kernel *k = p->k;
    const uint32_t carry = p->plan->planes == 2 ? 0x80 : 0x8080;
    ptx_u32 x[4], low[2], high[2];
    for (int i = 0; i < 4; i++) {
        ptx_u32 integer = ptx_s32_as_u32(ptx_cvt_s32_f32_m(k, PTX_RNI, v[i]));
        x[i] = ptx_xor_b32(k, ptx_add_u32(k, integer, U32(carry)), U32(carry));
    }
    for (int i = 0; i < 2; i++)
        low[i] = ptx_prmt_b32(k, x[2 * i], x[2 * i + 1], U32(0x5140));
    planes[0] = ptx_prmt_b32(k, low[0], low[1], U32(0x5410));
    planes[1] = ptx_prmt_b32(k, low[0], low[1], U32(0x7632));
    if (p->plan->planes == 2)
        return;
    for (int i = 0; i < 2; i++)
        high[i] = ptx_prmt_b32(k, x[2 * i], x[2 * i + 1], U32(0x7362));
    planes[2] = ptx_prmt_b32(k, high[0], high[1], U32(0x5410));
}

/* The lane's 8 values of a plane, as two words. */
static void store_plane(struct preparer *p, ptx_u64 record, uint32_t plane, const ptx_u32 words[2])
{
    ptx_kernel *k = p->k;
    const uint32_t all = columns(p->plan, p->v->tile_m);
    ptx_u32 group = ptx_shr_u32(k, p->lane, U32(2)), quarter = ptx_and_b32(k, p->lane, U32(3));
    ptx_u32 column = ptx_add_u32(k, p->column, U32(plane * p->v->tile_m));
    ptx_u32 of_column = ptx_mul_lo_u32(k, column, U32(32));
    ptx_u32 of_group = ptx_mad_lo_u32(k, group, U32(32 * all), of_column);
    ptx_u32 odd = ptx_and_b32(k, quarter, U32(1));
    ptx_u32 at = ptx_mad_lo_u32(k, odd, U32(16), of_group);
    at = ptx_mad_lo_u32(k, ptx_shr_u32(k, quarter, U32(1)), U32(4), at);
    ptx_u64 to = ptx_add_u64(k, record, ptx_cvt_u64_u32(k, at));
    for (int i = 0; i < 2; i++)
        ptx_st_global_u32(k, to, 8 * i, words[i]);
    if (!wants(p->spec, SUMS_S16) && !wants(p->spec, SUMS_F32))
        return;

    ptx_s32 sum = S32(0);
    for (int i = 0; i < 2; i++)
        sum = ptx_dp4a_s32_s32(k, ptx_u32_as_s32(words[i]), S32(0x01010101), sum);
    ptx_s32 other = ptx_shfl_sync_bfly_s32(k, sum, U32(1), U32(31), ALL_LANES);
    sum = ptx_add_s32(k, sum, other); /* of 16 values */
    if (wants(p->spec, SUMS_S16)) {
        ptx_u32 bits = ptx_s32_as_u32(sum), index = ptx_shr_u32(k, p->lane, U32(1));
        ptx_u32 high = ptx_shr_u32(k, ptx_add_u32(k, bits, U32(0x80)), U32(8));
        ptx_u32 cell = ptx_mad_lo_u32(k, ptx_shr_u32(k, index, U32(2)), U32(8), of_column);
        cell = ptx_add_u32(k, cell, ptx_and_b32(k, index, U32(3)));
        ptx_u64 byte = ptx_add_u64(k, record, ptx_cvt_u64_u32(k, cell));
        int first = (int)record_s16(p->plan, p->v->tile_m);
        ptx_guarded(k, ptx_setp_eq_u32(k, odd, U32(0))) {
            ptx_st_global_u8(k, byte, first, bits);
            ptx_st_global_u8(k, byte, first + 4, high);
        }
    }
    if (wants(p->spec, SUMS_F32)) {
        other = ptx_shfl_sync_bfly_s32(k, sum, U32(2), U32(31), ALL_LANES);
        ptx_f32 total = ptx_cvt_f32_s32(k, ptx_add_s32(k, sum, other));
        ptx_u32 cell = ptx_mad_lo_u32(k, group, U32(all), column);
        ptx_u64 word = ptx_mad_wide_u32(k, cell, U32(4), record);
        ptx_guarded(k, ptx_setp_eq_u32(k, quarter, U32(0)))
            ptx_st_global_f32(k, word, (int)record_s32(p->plan, p->v->tile_m), total);
    }
}

/* The powers of the token's planes, and zeros behind the record's last power. */
static void store_powers(struct preparer *p, ptx_u64 record, ptx_f32 up)
{
    ptx_kernel *k = p->k;
    const uint32_t first = record_powers(p->plan, p->v->tile_m);
    const uint32_t end = first + 4 * columns(p->plan, p->v->tile_m);
    ptx_u64 to = ptx_mad_wide_u32(k, p->column, U32(4), record);
    ptx_pred is_first = ptx_setp_eq_u32(k, p->lane, U32(0));
    ptx_if(k, is_first)
        for (uint32_t plane = 0; plane < p->plan->planes; plane++) {
            ptx_f32 power = ptx_mul_f32(k, up, F32(ldexpf(1, 8 * (int)plane)));
            ptx_st_global_f32(k, to, (int)(first + 4 * plane * p->v->tile_m), power);
        }
    ptx_guarded(k, ptx_setp_bool_eq_u32(k, p->column, U32(0), is_first))
        for (uint32_t at = end; at < record_bytes(p->plan, p->v->tile_m); at += 4)
            ptx_st_global_u32(k, record, (int)at, U32(0));
}

/* The lane's values of a row. */
static void store_row(struct preparer *p, ptx_u32 column, const ptx_f32 h[LANE_VALUES])
{
    ptx_kernel *k = p->k;
    const ptxgen_element type = p->row_type;
    const uint32_t element = (uint32_t)ptxgen_element_size(type), words = 2 * element;
    ptx_u32 bits[LANE_VALUES];
    ptx_u64 row = ptx_mul_wide_u32(k, p->token, U32(p->spec->k * element));
    for (uint32_t i = 0; i < words; i++)
        bits[i] = element == 4 ? ptx_f32_as_u32(h[i])
                               : gemm_narrow_pair(k, type == PTXGEN_BF16, h[2 * i], h[2 * i + 1]);
    ptx_if(k, ptx_setp_lt_u32(k, column, U32(p->spec->k))) {
        ptx_u64 at = ptx_mad_wide_u32(k, column, U32(element), row);
        ptx_u64 to = ptx_add_u64(k, p->records, at);
        for (uint32_t i = 0; i < words; i += 4)
            ptx_st_global_v4_u32(k, to, (int)(4 * i), &bits[i]);
    }
}

/* Both runs of four of the lane's values of a row, in the order of direct.h. */
static void store_ordered(struct preparer *p, ptx_u32 unit, const ptx_f32 h[LANE_VALUES])
{
    enum { ELEMENT = 2, LANE_BITS = 5, SECOND = 8 };
    ptx_kernel *k = p->k;
    const uint8_t *place = p->order->place;
    const bool bf16 = p->row_type == PTXGEN_BF16;
    ptx_u32 column = ptx_mul_lo_u32(k, unit, U32(UNIT));
    for (uint32_t b = 0; b < LANE_BITS; b++) {
        ptx_u32 bit = ptx_bfe_u32(k, p->lane, U32(b), U32(1));
        column = ptx_mad_lo_u32(k, bit, U32(1u << place[b + 1]), column);
    }
    ptx_u64 row = ptx_mad_wide_u32(k, p->token, U32(p->spec->k * ELEMENT), p->records);
    ptx_u64 to = ptx_mad_wide_u32(k, column, U32(ELEMENT), row);
    for (int i = 0; i < LANE_VALUES; i++) {
        const int run = i / DIRECT_RUN, of_run = i % DIRECT_RUN;
        if (of_run < 2)
            ptx_st_global_u32(k, to, ELEMENT * ((run << place[0]) + SECOND * of_run),
                              gemm_narrow_pair(k, bf16, h[i], h[i + 2]));
    }
}

static void make_record(struct preparer *p, ptx_u32 unit, ptx_u32 column, ptx_f32 h[LANE_VALUES])
{
    ptx_kernel *k = p->k;
    ptx_f32 gamma[LANE_VALUES], down, up;
    ptx_u32 words[2][3];
    if (p->spec->norm) {
        load(p, p->gamma, p->gamma_vectors, PTXGEN_F32, column, gamma);
        for (int i = 0; i < LANE_VALUES; i++)
            h[i] = ptx_mul_f32(k, ptx_mul_f32(k, h[i], p->inverse), gamma[i]);
    }
    if (p->order) {
        store_ordered(p, unit, h);
        return;
    }
    if (!p->v) {
        store_row(p, column, h);
        return;
    }
    find_powers(p, h, &down, &up);
    for (int i = 0; i < LANE_VALUES; i++)
        h[i] = ptx_mul_f32(k, h[i], down);
    for (int i = 0; i < 2; i++)
        split(p, &h[4 * i], words[i]);
    ptx_u64 record =
        ptx_mad_wide_u32(k, unit, U32(record_bytes(p->plan, p->v->tile_m)), p->records);
    for (uint32_t plane = 0; plane < p->plan->planes; plane++) {
        const ptx_u32 both[2] = {words[0][plane], words[1][plane]};
        store_plane(p, record, plane, both);
    }
    store_powers(p, record, up);
}

/* ---- passes over the token ---- */

enum pass { PASS_X_SQUARES, PASS_G_SQUARES, PASS_RECORDS };

static void pass_over(struct preparer *p, enum pass pass, ptx_f32 sums[2])
{
    ptx_kernel *k = p->k;
    ptx_u32 unit = ptx_mov_u32(k, p->first_unit);
    for (int s = 0; pass != PASS_RECORDS && s < square_sums(p); s++)
        sums[s] = ptx_mov_f32(k, F32(0));
    ptx_for(k, unit, U32(units(p->spec)), U32(p->warps * p->ctas)) {
        ptx_nounroll(k);
        ptx_u32 own = ptx_mul_lo_u32(k, p->lane, U32(LANE_VALUES));
        ptx_u32 column = ptx_mad_lo_u32(k, unit, U32(UNIT), own);
        ptx_f32 v[LANE_VALUES];
        if (pass == PASS_X_SQUARES)
            load(p, p->x, p->x_vectors, (ptxgen_element)p->spec->x_type, column, v);
        else
            make_g(p, column, pass == PASS_RECORDS, v);
        if (pass == PASS_RECORDS)
            make_record(p, unit, column, v);
        else
            add_squares(p, v, sums);
    }
}

/* Counters of parts, or flags of CTAs, that the product finds as 0. */
static uint32_t counter_count(const struct preparer *p)
{
    if (p->order)
        return direct_flags(p->plan);
    return p->v && p->v->parts > 1 ? all_tiles(p->spec) : 0;
}

static void clear_counters(struct preparer *p)
{
    ptx_kernel *k = p->k;
    const uint32_t threads = 32 * p->warps, count = counter_count(p);
    if (!count)
        return;
    ptx_u32 at = ptx_mad_lo_u32(k, ptx_sreg_ctaid_x(k), U32(threads), p->tid);
    ptx_u32 step = p->v ? U32(threads * p->ctas * p->v->tile_m)
                        : ptx_mul_lo_u32(k, ptx_sreg_nctaid_x(k), U32(threads));
    ptx_for(k, at, U32(count), step) {
        ptx_nounroll(k);
        ptx_st_global_u32(k, ptx_mad_wide_u32(k, at, U32(4), p->counters), 0, U32(0));
    }
}

/* ---- the entry ---- */

static ptx_u32 number_param(ptx_kernel *k, const char *name, bool used)
{
    if (used)
        return ptx_param_u32(k, name);
    ptx_param_declare(k, name, 4, 4);
    return U32(0);
}

static ptx_u64 row_at(struct preparer *p, ptx_u64 base, ptx_u32 stride)
{
    ptx_kernel *k = p->k;
    uint32_t bytes = (uint32_t)ptxgen_element_size((ptxgen_element)p->spec->x_type);
    ptx_u64 element = ptx_mul_wide_u32(k, p->token, stride);
    return ptx_mad_lo_u64(k, element, U64(bytes), base);
}

static void begin(struct preparer *p)
{
    ptx_kernel *k = p->k;
    const ptxgen_gguf_linear_spec *s = p->spec;
    const bool after = s->residual == PTXGEN_GGUF_LINEAR_AFTER;
    p->x = ptx_param_u64(k, "x");
    p->residual = gemm_param_u64(k, "residual", s->residual);
    p->residual_out = gemm_param_u64(k, "residual_out", s->residual_out);
    p->gamma = gemm_param_u64(k, "gamma", s->norm);
    p->post_gamma = gemm_param_u64(k, "post_gamma", after);
    p->records = ptx_param_u64(k, "records");
    p->counters = gemm_param_u64(k, "counters", counter_count(p));
    ptx_u32 x_stride = ptx_param_u32(k, "x_stride");
    ptx_u32 residual_stride = number_param(k, "residual_stride", s->residual);
    ptx_u32 out_stride = number_param(k, "residual_out_stride", s->residual_out);
    ptx_u32 m = ptx_param_u32(k, "m");

    p->tid = ptx_sreg_tid_x(k);
    p->lane = ptx_and_b32(k, p->tid, U32(31));
    p->warp = ptx_shr_u32(k, p->tid, U32(5));
    ptx_u32 cta = ptx_sreg_ctaid_x(k);
    p->column = gemm_divide(k, cta, p->ctas);
    ptx_u32 part = gemm_remainder(k, cta, p->ctas);
    p->first_unit = ptx_mad_lo_u32(k, part, U32(p->warps), p->warp);
    p->exists = ptx_setp_lt_u32(k, p->column, m);
    p->token = ptx_min_u32(k, p->column, ptx_sub_u32(k, m, U32(1)));
    p->x = row_at(p, p->x, x_stride);
    p->x_vectors = is_aligned(k, p->x);
    if (s->residual) {
        p->residual = row_at(p, p->residual, residual_stride);
        p->residual_vectors = is_aligned(k, p->residual);
    }
    if (s->residual_out)
        p->residual_out = row_at(p, p->residual_out, out_stride);
    if (s->norm && after)
        p->gamma_vectors = is_aligned(k, ptx_or_b64(k, p->gamma, p->post_gamma));
    else if (s->norm || after)
        p->gamma_vectors = is_aligned(k, s->norm ? p->gamma : p->post_gamma);
}

static void emit(const ptxgen_gguf_linear_plan *plan, const ptxgen_gguf_linear_variant *v,
                 ptxgen_element row_type, const struct direct_type *order, const char *name,
                 ptx_module *module)
{
    static const char *const words[2][2] = {{"squares of x", "small squares of x"},
                                            {"squares of g", "small squares of g"}};
    struct preparer p = {.plan = plan,
                         .spec = &plan->spec,
                         .v = v,
                         .row_type = row_type,
                         .order = order,
                         .warps = gguf_linear_prepare_threads(&plan->spec) / 32,
                         .ctas = gguf_linear_prepare_ctas(&plan->spec)};
    ptx_kernel *k = p.k = ptx_kernel_begin(module, name);
    ptx_f32 sums[2];
    ptx_kernel_reqntid(k, 32 * p.warps, 1, 1);
    if (gemm_overlaps(&plan->target))
        ptx_griddepcontrol_launch_dependents(k);
    begin(&p);
    if (gemm_overlaps(&plan->target))
        ptx_griddepcontrol_wait(k);
    clear_counters(&p);
    if (plan->spec.residual == PTXGEN_GGUF_LINEAR_AFTER) {
        ptx_section(k, "squares of x");
        pass_over(&p, PASS_X_SQUARES, sums);
        p.post_inverse = inverse_rms(&p, sums, words[0]);
    }
    if (plan->spec.norm) {
        ptx_section(k, "squares of g");
        pass_over(&p, PASS_G_SQUARES, sums);
        p.inverse = inverse_rms(&p, sums, words[1]);
    }
    ptx_section(k, "records");
    pass_over(&p, PASS_RECORDS, NULL);
    ptx_kernel_end(k);
}

void gguf_linear_emit_prepare(const ptxgen_gguf_linear_plan *plan,
                              const ptxgen_gguf_linear_variant *v, ptx_module *module)
{
    static const char *const names[] = {"gguf_linear_prepare_m1", "gguf_linear_prepare_m2",
                                        "gguf_linear_prepare_m4", "gguf_linear_prepare_m8"};
    emit(plan, v, PTXGEN_F32, NULL, names[__builtin_ctz(v->tile_m)], module);
}

void gguf_linear_emit_rows(const ptxgen_gguf_linear_plan *plan, ptxgen_element type,
                           const char *name, ptx_module *module)
{
    emit(plan, NULL, type, NULL, name, module);
}

void gguf_linear_emit_ordered_rows(const ptxgen_gguf_linear_plan *plan, ptx_module *module)
{
    emit(plan, NULL, gguf_linear_compute_type(&plan->spec), gguf_linear_direct(plan),
         "gguf_linear_prepare_direct", module);
}
