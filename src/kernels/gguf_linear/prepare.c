/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making h of a token, and records of it (records.c): in the workspace by a kernel of its own, or
 * by each CTA of the product in its shared memory.
 *
 *     x, residual ─▶ [Σx² ─▶ 1/rms] ─▶ g ─▶ [Σg² ─▶ 1/rms] ─▶ h ─▶ records, or rows for dense
 *
 * A warp takes a unit of 256 values at a time, and a lane 8 consecutive ones. With a norm one CTA
 * has a token. Where a warp has few units, their inputs stay in registers; otherwise they are read
 * once for each sum and once more at the end, and later reads find them in the cache. Without norms
 * a kernel of its own spreads a token's units over CTAs. A product that makes h itself has all of a
 * token in every CTA, and stores each unit of g by another CTA.
 */
#include "direct.h"
#include "prepare.h"

#include "../gemm/tile.h"

#include <math.h>

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

/* The bits of the lane's values of a row from `column` on; 0 past K. */
static void load(struct preparer *p, ptx_u64 row, ptx_pred vectors, ptxgen_element type,
                 ptx_u32 column, ptx_u32 bits[LANE_VALUES])
{
    ptx_kernel *k = p->k;
    const bool narrow = type != PTXGEN_F32;
    const uint32_t words = narrow ? LANE_VALUES / 2 : LANE_VALUES;
    for (uint32_t i = 0; i < words; i++)
        bits[i] = ptx_mov_u32(k, U32(0));
    ptx_if(k, ptx_setp_lt_u32(k, column, U32(p->spec->k))) {
        ptx_u64 from = ptx_mad_wide_u32(k, column, U32(narrow ? 2 : 4), row);
        ptx_if_else(k, vectors)
            load_words(k, from, words, bits);
        else
            gguf_linear_load_elements(k, from, narrow, bits);
    }
}

void gguf_linear_widen(ptx_kernel *k, ptxgen_element type, const ptx_u32 bits[LANE_VALUES],
                       ptx_f32 to[LANE_VALUES])
{
    const uint32_t words = type == PTXGEN_F32 ? LANE_VALUES : LANE_VALUES / 2;
    for (uint32_t i = 0; i < words; i++) {
        ptx_f16 halves[2];
        if (type == PTXGEN_F32) {
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

/* What h of the lane's values of a unit is made of, as it lies in memory. */
struct unit_inputs {
    ptx_u32 unit, column; /* the lane's first value */
    ptx_u32 x[LANE_VALUES], residual[LANE_VALUES], gamma[LANE_VALUES], post_gamma[LANE_VALUES];
};

enum pass { PASS_X_SQUARES, PASS_G_SQUARES, PASS_RECORDS };

/* Loads what a pass and those before it read of a unit. */
static void load_unit(struct preparer *p, ptx_u32 unit, enum pass pass, struct unit_inputs *in)
{
    ptx_kernel *k = p->k;
    const ptxgen_gguf_linear_spec *s = p->spec;
    const ptxgen_element type = (ptxgen_element)s->x_type;
    ptx_u32 own = ptx_mul_lo_u32(k, p->lane, U32(LANE_VALUES));
    in->unit = unit;
    in->column = ptx_mad_lo_u32(k, unit, U32(UNIT), own);
    load(p, p->x, p->x_vectors, type, in->column, in->x);
    if (pass == PASS_X_SQUARES)
        return;
    if (s->residual)
        load(p, p->residual, p->residual_vectors, type, in->column, in->residual);
    if (s->residual == PTXGEN_GGUF_LINEAR_AFTER)
        load(p, p->in.post_gamma, p->gamma_vectors, PTXGEN_F32, in->column, in->post_gamma);
    if (pass == PASS_RECORDS && s->norm)
        load(p, p->in.gamma, p->gamma_vectors, PTXGEN_F32, in->column, in->gamma);
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

static void store_g(struct preparer *p, const struct unit_inputs *in, const ptx_f32 g[LANE_VALUES],
                    const ptx_u16 stored[LANE_VALUES])
{
    ptx_kernel *k = p->k;
    const bool narrow = p->spec->x_type != PTXGEN_F32;
    ptx_pred is_own = p->stores_g;
    if (p->is_shared) {
        ptx_u32 storer = gemm_remainder(k, in->unit, p->v->part_ctas);
        is_own = ptx_setp_bool_eq_u32(k, storer, p->cta, p->stores_g);
    }
    ptx_if(k, ptx_setp_bool_lt_u32(k, in->column, U32(p->spec->k), is_own)) {
        ptx_u64 to = ptx_mad_wide_u32(k, in->column, U32(narrow ? 2 : 4), p->residual_out);
        for (int i = 0; i < LANE_VALUES; i++) {
            if (narrow)
                ptx_st_global_u16(k, to, 2 * i, stored[i]);
            else
                ptx_st_global_f32(k, to, 4 * i, g[i]);
        }
    }
}

/* The lane's g of a unit; `store`: also to residual_out, where the spec has that. */
static void make_g(struct preparer *p, const struct unit_inputs *in, bool store,
                   ptx_f32 g[LANE_VALUES])
{
    ptx_kernel *k = p->k;
    const ptxgen_element type = (ptxgen_element)p->spec->x_type;
    ptx_f32 residual[LANE_VALUES], post[LANE_VALUES];
    ptx_u16 stored[LANE_VALUES];
    gguf_linear_widen(k, type, in->x, g);
    if (!p->spec->residual)
        return;
    gguf_linear_widen(k, type, in->residual, residual);
    if (p->spec->residual == PTXGEN_GGUF_LINEAR_AFTER) {
        gguf_linear_widen(k, PTXGEN_F32, in->post_gamma, post);
        for (int i = 0; i < LANE_VALUES; i++)
            g[i] = ptx_mul_f32(k, ptx_mul_f32(k, g[i], p->post_inverse), post[i]);
    }
    for (int i = 0; i < LANE_VALUES; i++)
        g[i] = round_to_type(p, ptx_add_f32(k, g[i], residual[i]), &stored[i]);
    if (store && p->spec->residual_out)
        store_g(p, in, g, stored);
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

static void warp_sums(struct preparer *p, ptx_f32 values[2])
{
    ptx_kernel *k = p->k;
    for (unsigned mask = 16; mask; mask /= 2)
        for (int s = 0; s < square_sums(p); s++) {
            ptx_f32 other = ptx_shfl_sync_bfly_f32(k, values[s], U32(mask), U32(31), ALL_LANES);
            values[s] = ptx_add_f32(k, values[s], other);
        }
}

/* The sums over the CTA, by way of a word of each warp. */
static void cta_sums(struct preparer *p, ptx_f32 sums[2], const char *const names[2])
{
    ptx_kernel *k = p->k;
    ptx_u32 words[2];
    warp_sums(p, sums);
    for (int s = 0; s < square_sums(p); s++) {
        words[s] = ptx_shared_address(k, ptx_shared_declare(k, names[s], 4 * p->warps, 4));
        ptx_guarded(k, ptx_setp_eq_u32(k, p->lane, U32(0)))
            ptx_st_shared_f32(k, ptx_mad_lo_u32(k, p->warp, U32(4), words[s]), 0, sums[s]);
    }
    ptx_bar_sync(k, 0);
    for (int s = 0; s < square_sums(p); s++) {
        ptx_u32 own = ptx_mad_lo_u32(k, p->lane, U32(4), words[s]);
        sums[s] = ptx_mov_f32(k, F32(0));
        ptx_guarded(k, ptx_setp_lt_u32(k, p->lane, U32(p->warps)))
            ptx_ld_shared_f32_to(k, sums[s], own, 0);
    }
    warp_sums(p, sums);
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

static ptx_f32 inverse_rms(struct preparer *p, ptx_f32 sums[2], const char *const names[2])
{
    ptx_kernel *k = p->k;
    float per_k = 1.0f / (float)p->spec->k, epsilon = p->spec->epsilon;
    cta_sums(p, sums, names);
    ptx_f32 plain = ptx_fma_f32(k, sums[0], F32(per_k), F32(epsilon));
    if (square_sums(p) == 1)
        return without_zero(p, ptx_rsqrt_approx_f32(k, plain));
    ptx_f32 small = ptx_fma_f32(k, sums[1], F32(per_k), F32(ldexpf(epsilon, 2 * SCALED_EXPONENT)));
    ptx_pred overflowed = ptx_setp_eq_f32(k, sums[0], F32(__builtin_inff()));
    ptx_f32 inverse = ptx_rsqrt_approx_f32(k, ptx_selp_f32(k, small, plain, overflowed));
    ptx_f32 down = ptx_mul_f32(k, inverse, F32(ldexpf(1, SCALED_EXPONENT)));
    return without_zero(p, ptx_selp_f32(k, down, inverse, overflowed));
}

/* ---- h ---- */

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

enum { H_BYTES = 2, SECOND_PAIR = 8 /* columns behind a run's first pair */ };

/* Columns by bits of the run's number, from bit `first` on, of which bit 1 is bit 0 of the lane. */
static ptx_u32 ordered_column(struct preparer *p, ptx_u32 unit, uint32_t first)
{
    enum { BITS = 6 };
    ptx_kernel *k = p->k;
    ptx_u32 column = ptx_mul_lo_u32(k, unit, U32(UNIT));
    for (uint32_t b = first; b < BITS; b++) {
        ptx_u32 bit = ptx_bfe_u32(k, p->lane, U32(b - 1), U32(1));
        column = ptx_xor_b32(k, column, ptx_mul_lo_u32(k, bit, U32(p->order->columns[b])));
    }
    return column;
}

/* Pairs of neighbours, each to its place among the 16 that are rotated (direct.h). */
static void store_rotated(struct preparer *p, ptx_u32 unit, ptx_u64 row,
                          const ptx_f32 h[LANE_VALUES])
{
    enum { FIRST_ROTATED = 2, RUN = 12, PAIR = 2 /* bits of a place among 16 */ };
    ptx_kernel *k = p->k;
    ptx_u32 column = ordered_column(p, unit, FIRST_ROTATED);
    ptx_u32 past = direct_past(k, p->order, unit);
    ptx_u32 first = ptx_mad_lo_u32(k, p->lane, U32(LANE_VALUES), past);
    for (uint32_t i = 0; i < LANE_VALUES; i += 2) {
        ptx_u32 place = ptx_add_u32(k, first, U32(i));
        ptx_u32 run = ptx_and_b32(k, place, U32(RUN)), pair = ptx_and_b32(k, place, U32(PAIR));
        ptx_u32 of_run = ptx_mad_lo_u32(k, run, U32(p->order->columns[0] / DIRECT_RUN), column);
        ptx_u32 at = ptx_mad_lo_u32(k, pair, U32(SECOND_PAIR / PAIR), of_run);
        ptx_u64 to = ptx_mad_wide_u32(k, at, U32(H_BYTES), row);
        ptx_st_global_u32(k, to, 0,
                          gemm_narrow_pair(k, p->row_type == PTXGEN_BF16, h[i], h[i + 1]));
    }
}

/* The lane's values of a row, two runs of four, in the order of direct.h. */
static void store_ordered(struct preparer *p, ptx_u32 unit, const ptx_f32 h[LANE_VALUES])
{
    ptx_kernel *k = p->k;
    const uint8_t *columns = p->order->columns;
    const bool bf16 = p->row_type == PTXGEN_BF16;
    ptx_u64 row = ptx_mad_wide_u32(k, p->token, U32(p->spec->k * H_BYTES), p->records);
    if (direct_rotates(p->order)) {
        store_rotated(p, unit, row, h);
        return;
    }
    ptx_u32 column = ordered_column(p, unit, 1);
    ptx_u32 of_other = ptx_xor_b32(k, column, U32(columns[0]));
    ptx_u64 to = ptx_mad_wide_u32(k, column, U32(H_BYTES), row);
    ptx_u64 other = ptx_mad_wide_u32(k, of_other, U32(H_BYTES), row);
    for (int i = 0; i < LANE_VALUES; i++) {
        const int run = i / DIRECT_RUN, of_run = i % DIRECT_RUN;
        if (of_run < 2)
            ptx_st_global_u32(k, run ? other : to, H_BYTES * SECOND_PAIR * of_run,
                              gemm_narrow_pair(k, bf16, h[i], h[i + 2]));
    }
}

static void store_h(struct preparer *p, const struct unit_inputs *in, ptx_f32 h[LANE_VALUES])
{
    ptx_kernel *k = p->k;
    ptx_f32 gamma[LANE_VALUES];
    if (p->spec->norm) {
        gguf_linear_widen(k, PTXGEN_F32, in->gamma, gamma);
        for (int i = 0; i < LANE_VALUES; i++)
            h[i] = ptx_mul_f32(k, ptx_mul_f32(k, h[i], p->inverse), gamma[i]);
    }
    if (p->v)
        gguf_linear_store_record(p, in->unit, h);
    else if (p->order)
        store_ordered(p, in->unit, h);
    else
        store_row(p, in->column, h);
}

/* ---- passes over the token ---- */

static void take_unit(struct preparer *p, const struct unit_inputs *in, enum pass pass,
                      ptx_f32 sums[2])
{
    ptx_f32 v[LANE_VALUES];
    if (pass == PASS_X_SQUARES)
        gguf_linear_widen(p->k, (ptxgen_element)p->spec->x_type, in->x, v);
    else
        make_g(p, in, pass == PASS_RECORDS, v);
    if (pass == PASS_RECORDS)
        store_h(p, in, v);
    else
        add_squares(p, v, sums);
}

/* Units of a warp, at most. */
static uint32_t warp_share(const struct preparer *p)
{
    uint32_t warps = p->warps * p->ctas;
    return (units(p->spec) + warps - 1) / warps;
}

/* Whether a warp's inputs stay in registers from the first pass to the last. */
static bool holds_units(const struct preparer *p)
{
    return warp_share(p) <= (p->is_shared ? product_held_units(p->spec) : HELD_UNITS);
}

/* Loads the warp's units at once. */
static void load_held(struct preparer *p, struct unit_inputs held[MOST_HELD_UNITS])
{
    ptx_kernel *k = p->k;
    ptx_u32 unit = p->first_unit;
    for (uint32_t i = 0; i < warp_share(p); i++) {
        if (i)
            unit = ptx_add_u32(k, unit, U32(p->warps * p->ctas));
        load_unit(p, unit, PASS_RECORDS, &held[i]);
    }
}

static void move_words(ptx_kernel *k, const ptx_u32 to[LANE_VALUES],
                       const ptx_u32 from[LANE_VALUES], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        ptx_mov_u32_to(k, to[i], from[i]);
}

/* Makes the records of many held units in a loop, to whose turn the inputs move up. */
static void loop_over_held(struct preparer *p, const struct unit_inputs held[MOST_HELD_UNITS])
{
    ptx_kernel *k = p->k;
    const ptxgen_gguf_linear_spec *s = p->spec;
    const uint32_t of_x = s->x_type == PTXGEN_F32 ? LANE_VALUES : LANE_VALUES / 2;
    struct unit_inputs in = held[0];
    ptx_u32 own = ptx_mul_lo_u32(k, p->lane, U32(LANE_VALUES));
    in.unit = ptx_mov_u32(k, p->first_unit);
    ptx_for(k, in.unit, U32(units(s)), U32(p->warps * p->ctas)) {
        ptx_nounroll(k);
        in.column = ptx_mad_lo_u32(k, in.unit, U32(UNIT), own);
        take_unit(p, &in, PASS_RECORDS, NULL);
        for (uint32_t i = 0; i + 1 < warp_share(p); i++) {
            move_words(k, held[i].x, held[i + 1].x, of_x);
            if (s->residual)
                move_words(k, held[i].residual, held[i + 1].residual, of_x);
            if (s->residual == PTXGEN_GGUF_LINEAR_AFTER)
                move_words(k, held[i].post_gamma, held[i + 1].post_gamma, LANE_VALUES);
            if (s->norm)
                move_words(k, held[i].gamma, held[i + 1].gamma, LANE_VALUES);
        }
    }
}

/* The same work for each of the held units that exist; past the last one all values are 0. */
static void pass_over_held(struct preparer *p, const struct unit_inputs held[MOST_HELD_UNITS],
                           enum pass pass, ptx_f32 sums[2])
{
    ptx_kernel *k = p->k;
    const uint32_t count = warp_share(p), whole = units(p->spec) / (p->warps * p->ctas);
    if (pass == PASS_RECORDS && count > HELD_UNITS) {
        loop_over_held(p, held);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (pass != PASS_RECORDS || i < whole) {
            take_unit(p, &held[i], pass, sums);
            continue;
        }
        ptx_if(k, ptx_setp_lt_u32(k, held[i].unit, U32(units(p->spec))))
            take_unit(p, &held[i], pass, sums);
    }
}

static void pass_over(struct preparer *p, const struct unit_inputs held[MOST_HELD_UNITS],
                      enum pass pass, ptx_f32 sums[2])
{
    ptx_kernel *k = p->k;
    for (int s = 0; pass != PASS_RECORDS && s < square_sums(p); s++)
        sums[s] = ptx_mov_f32(k, F32(0));
    if (holds_units(p)) {
        pass_over_held(p, held, pass, sums);
        return;
    }
    ptx_u32 unit = ptx_mov_u32(k, p->first_unit);
    ptx_for(k, unit, U32(units(p->spec)), U32(p->warps * p->ctas)) {
        ptx_nounroll(k);
        struct unit_inputs in;
        load_unit(p, unit, pass, &in);
        take_unit(p, &in, pass, sums);
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

/* ---- a token ---- */

static ptx_u64 row_at(struct preparer *p, ptx_u64 base, ptx_u32 stride)
{
    ptx_kernel *k = p->k;
    uint32_t bytes = (uint32_t)ptxgen_element_size((ptxgen_element)p->spec->x_type);
    ptx_u64 element = ptx_mul_wide_u32(k, p->token, stride);
    return ptx_mad_lo_u64(k, element, U64(bytes), base);
}

/* The rows of the token at `column`; past the last token that is the last. */
static void find_token(struct preparer *p, ptx_u32 column)
{
    ptx_kernel *k = p->k;
    const ptxgen_gguf_linear_spec *s = p->spec;
    const bool after = s->residual == PTXGEN_GGUF_LINEAR_AFTER;
    p->column = column;
    p->token = ptx_min_u32(k, p->column, ptx_sub_u32(k, p->in.m, U32(1)));
    p->x = row_at(p, p->in.x, p->in.x_stride);
    p->x_vectors = is_aligned(k, p->x);
    if (s->residual) {
        p->residual = row_at(p, p->in.residual, p->in.residual_stride);
        p->residual_vectors = is_aligned(k, p->residual);
    }
    if (s->residual_out) {
        p->residual_out = row_at(p, p->in.residual_out, p->in.residual_out_stride);
        p->stores_g = ptx_setp_lt_u32(k, p->column, p->in.m);
    }
    if (s->norm && after)
        p->gamma_vectors = is_aligned(k, ptx_or_b64(k, p->in.gamma, p->in.post_gamma));
    else if (s->norm || after)
        p->gamma_vectors = is_aligned(k, s->norm ? p->in.gamma : p->in.post_gamma);
}

/* `behind_loads` is called when what a warp holds is on its way. */
static void make_h(struct preparer *p, void (*behind_loads)(void *), void *what)
{
    static const char *const words[2][2] = {{"squares of x", "small squares of x"},
                                            {"squares of g", "small squares of g"}};
    ptx_f32 sums[2];
    struct unit_inputs held[MOST_HELD_UNITS];
    if (holds_units(p))
        load_held(p, held);
    if (behind_loads)
        behind_loads(what);
    if (p->spec->residual == PTXGEN_GGUF_LINEAR_AFTER) {
        ptx_section(p->k, "squares of x");
        pass_over(p, held, PASS_X_SQUARES, sums);
        p->post_inverse = inverse_rms(p, sums, words[0]);
    }
    if (p->spec->norm) {
        ptx_section(p->k, "squares of g");
        pass_over(p, held, PASS_G_SQUARES, sums);
        p->inverse = inverse_rms(p, sums, words[1]);
    }
    ptx_section(p->k, "records");
    pass_over(p, held, PASS_RECORDS, NULL);
}

/* ---- the product's own h ---- */

void gguf_linear_make_records(struct gguf_linear_kernel *q, void (*behind_loads)(void *),
                              void *what)
{
    ptx_kernel *k = q->k;
    struct preparer p = {.k = k,
                         .plan = q->plan,
                         .spec = q->spec,
                         .v = q->v,
                         .warps = q->v->wn * q->v->wk,
                         .ctas = 1,
                         .tid = q->at.thread,
                         .lane = q->at.lane,
                         .warp = q->at.warp,
                         .first_unit = q->at.warp,
                         .cta = q->at.cta,
                         .in = q->in,
                         .is_shared = true,
                         .shared_records = q->records};
    find_token(&p, U32(0));
    make_h(&p, behind_loads, what);
    ptx_bar_sync(k, 0);
}

/* ---- the entry ---- */

static ptx_u32 number_param(ptx_kernel *k, const char *name, bool used)
{
    if (used)
        return ptx_param_u32(k, name);
    ptx_param_declare(k, name, 4, 4);
    return U32(0);
}

void gguf_linear_h_params(ptx_kernel *k, const ptxgen_gguf_linear_spec *s, bool used,
                          struct h_inputs *in)
{
    in->x = gemm_param_u64(k, "x", used);
    in->residual = gemm_param_u64(k, "residual", used && s->residual);
    in->residual_out = gemm_param_u64(k, "residual_out", used && s->residual_out);
    in->gamma = gemm_param_u64(k, "gamma", used && s->norm);
    in->post_gamma =
        gemm_param_u64(k, "post_gamma", used && s->residual == PTXGEN_GGUF_LINEAR_AFTER);
}
void gguf_linear_h_strides(ptx_kernel *k, const ptxgen_gguf_linear_spec *s, bool used,
                           struct h_inputs *in)
{
    in->x_stride = number_param(k, "x_stride", used);
    in->residual_stride = number_param(k, "residual_stride", used && s->residual);
    in->residual_out_stride = number_param(k, "residual_out_stride", used && s->residual_out);
    in->m = ptx_param_u32(k, "m");
}

static void begin(struct preparer *p)
{
    ptx_kernel *k = p->k;
    gguf_linear_h_params(k, p->spec, true, &p->in);
    p->records = ptx_param_u64(k, "records");
    p->counters = gemm_param_u64(k, "counters", counter_count(p));
    gguf_linear_h_strides(k, p->spec, true, &p->in);

    p->tid = ptx_sreg_tid_x(k);
    p->lane = ptx_and_b32(k, p->tid, U32(31));
    p->warp = ptx_shr_u32(k, p->tid, U32(5));
    ptx_u32 cta = ptx_sreg_ctaid_x(k);
    ptx_u32 column = gemm_divide(k, cta, p->ctas);
    ptx_u32 part = gemm_remainder(k, cta, p->ctas);
    p->first_unit = ptx_mad_lo_u32(k, part, U32(p->warps), p->warp);
    find_token(p, column);
}

static void emit(const ptxgen_gguf_linear_plan *plan, const ptxgen_gguf_linear_variant *v,
                 ptxgen_element row_type, const struct direct_type *order, const char *name,
                 ptx_module *module)
{
    struct preparer p = {.plan = plan,
                         .spec = &plan->spec,
                         .v = v,
                         .row_type = row_type,
                         .order = order,
                         .warps = gguf_linear_prepare_threads(&plan->spec) / 32,
                         .ctas = gguf_linear_prepare_ctas(&plan->spec)};
    ptx_kernel *k = p.k = ptx_kernel_begin(module, name);
    ptx_kernel_reqntid(k, 32 * p.warps, 1, 1);
    if (gemm_overlaps(&plan->target))
        ptx_griddepcontrol_launch_dependents(k);
    begin(&p);
    if (gemm_overlaps(&plan->target))
        ptx_griddepcontrol_wait(k);
    clear_counters(&p);
    make_h(&p, NULL, NULL);
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
