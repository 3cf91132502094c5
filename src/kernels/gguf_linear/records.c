/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit of h as a record (layout.h): integers with a power of two, as balanced bytes in the order
 * of B fragments, and their sums.
 *
 * The largest magnitude of a unit becomes at least 2¹⁴·(1 − 2⁻⁷) and below 2¹⁵·(1 − 2⁻⁷), of three
 * planes 2²² and 2²³: balanced bytes, which are from −128 to 127, hold no more.
 */
#include "prepare.h"

#include <math.h>

/* A place in the records, in shared memory or in the workspace. */
struct spot {
    ptx_u32 shared;
    ptx_u64 global;
};
static struct spot behind(struct preparer *p, struct spot at, ptx_u32 bytes)
{
    if (p->is_shared)
        return (struct spot){.shared = ptx_add_u32(p->k, at.shared, bytes)};
    return (struct spot){.global = ptx_add_u64(p->k, at.global, ptx_cvt_u64_u32(p->k, bytes))};
}
static struct spot record_of(struct preparer *p, ptx_u32 unit)
{
    ptx_u32 bytes = U32(record_bytes(p->plan, p->v->tile_m));
    if (p->is_shared)
        return (struct spot){.shared = ptx_mad_lo_u32(p->k, unit, bytes, p->shared_records)};
    return (struct spot){.global = ptx_mad_wide_u32(p->k, unit, bytes, p->records)};
}
static void put_u32(struct preparer *p, struct spot to, int offset, ptx_u32 value)
{
    if (p->is_shared)
        ptx_st_shared_u32(p->k, to.shared, offset, value);
    else
        ptx_st_global_u32(p->k, to.global, offset, value);
}
static void put_u8(struct preparer *p, struct spot to, int offset, ptx_u32 value)
{
    if (p->is_shared)
        ptx_st_shared_u8(p->k, to.shared, offset, value);
    else
        ptx_st_global_u8(p->k, to.global, offset, value);
}

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
    enum {
        ROOM = 0x20000,
        BIAS = 127
    }; /* 2⁻⁷ of the largest, or less, in units of its last place */
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
static void store_plane(struct preparer *p, struct spot record, uint32_t plane,
                        const ptx_u32 words[2])
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
    struct spot to = behind(p, record, at);
    for (int i = 0; i < 2; i++)
        put_u32(p, to, 8 * i, words[i]);
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
        struct spot byte = behind(p, record, cell);
        int first = (int)record_s16(p->plan, p->v->tile_m);
        ptx_guarded(k, ptx_setp_eq_u32(k, odd, U32(0))) {
            put_u8(p, byte, first, bits);
            put_u8(p, byte, first + 4, high);
        }
    }
    if (wants(p->spec, SUMS_F32)) {
        other = ptx_shfl_sync_bfly_s32(k, sum, U32(2), U32(31), ALL_LANES);
        ptx_f32 total = ptx_cvt_f32_s32(k, ptx_add_s32(k, sum, other));
        ptx_u32 cell = ptx_mad_lo_u32(k, group, U32(all), column);
        struct spot word = behind(p, record, ptx_shl_b32(k, cell, U32(2)));
        ptx_guarded(k, ptx_setp_eq_u32(k, quarter, U32(0)))
            put_u32(p, word, (int)record_s32(p->plan, p->v->tile_m), ptx_f32_as_u32(total));
    }
}

/* The powers of the token's planes, and zeros behind the record's last power. */
static void store_powers(struct preparer *p, struct spot record, ptx_f32 up)
{
    ptx_kernel *k = p->k;
    const uint32_t first = record_powers(p->plan, p->v->tile_m);
    const uint32_t end = first + 4 * columns(p->plan, p->v->tile_m);
    struct spot to = behind(p, record, ptx_shl_b32(k, p->column, U32(2)));
    ptx_pred is_first = ptx_setp_eq_u32(k, p->lane, U32(0));
    ptx_if(k, is_first)
        for (uint32_t plane = 0; plane < p->plan->planes; plane++) {
            ptx_f32 power = ptx_mul_f32(k, up, F32(ldexpf(1, 8 * (int)plane)));
            put_u32(p, to, (int)(first + 4 * plane * p->v->tile_m), ptx_f32_as_u32(power));
        }
    ptx_guarded(k, ptx_setp_bool_eq_u32(k, p->column, U32(0), is_first))
        for (uint32_t at = end; at < record_bytes(p->plan, p->v->tile_m); at += 4)
            put_u32(p, record, (int)at, U32(0));
}

void gguf_linear_store_record(struct preparer *p, ptx_u32 unit, const ptx_f32 h[LANE_VALUES])
{
    ptx_kernel *k = p->k;
    ptx_f32 scaled[LANE_VALUES], down, up;
    ptx_u32 words[2][3];
    find_powers(p, h, &down, &up);
    for (int i = 0; i < LANE_VALUES; i++)
        scaled[i] = ptx_mul_f32(k, h[i], down);
    for (int i = 0; i < 2; i++)
        split(p, &scaled[4 * i], words[i]);
    struct spot record = record_of(p, unit);
    for (uint32_t plane = 0; plane < p->plan->planes; plane++) {
        const ptx_u32 both[2] = {words[0][plane], words[1][plane]};
        store_plane(p, record, plane, both);
    }
    store_powers(p, record, up);
}
