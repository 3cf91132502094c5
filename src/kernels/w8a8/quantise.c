/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a row of x to codes, in two passes over it: the maxima, then the codes.
 *
 * A code needs round(x / s) of the correctly rounded quotient. A division of each element by the
 * token's one scale is four operations: with the reciprocal of s in two parts, r + r' = 1/s to the
 * square of the unit roundoff,
 *
 *     t = RN(x·r + RN(x·r'))        within one unit in the last place of x/s
 *     q = RN(t + r·RN(x − t·s))     which is RN(x/s) (Markstein's theorem: t faithful, r = RN(1/s))
 *
 * provided that nothing under- or overflows: so x and s are multiplied by a power of two where s is
 * extreme, and |x| is cut at 4096·s, whose code is the largest anyway. Adding 1.5·2²³
 * (f64: 1.5·2⁵²) then rounds to an integer, ties to even, which is left in the low bits of the sum.
 *
 * In f32, r is an approximation to one unit in the last place and a Newton step, which rounds
 * correctly unless the mantissa of s is all ones; then r's last bit is 1. f16's maxima are divided
 * by their constant in three operations. What the assembler makes of division and reciprocal, for
 * operands of any size, took it a quarter of the kernel's time.
 */
#include "emit.h"

enum { REACH = 4096 };

static uint32_t element_bytes(const struct quantiser *q)
{
    return (uint32_t)ptxgen_element_size((ptxgen_element)q->spec->x_type);
}

static int chunk_words(const struct quantiser *q)
{
    return (int)(CHUNK * element_bytes(q) / 4);
}

struct quantiser w8a8_start_quantiser(ptx_kernel *k, const ptxgen_w8a8_spec *spec, ptx_u64 x,
                                      ptx_u32 x_stride, ptx_u64 x_scale, ptx_u64 x_zero)
{
    struct quantiser q = {.k = k,
                          .spec = spec,
                          .wide = w8a8_is_wide(spec),
                          .x = x,
                          .x_stride = x_stride,
                          .x_scale = x_scale,
                          .x_zero = x_zero};
    ptx_u64 stride = ptx_mul_wide_u32(k, x_stride, U32(element_bytes(&q)));
    ptx_u64 low = ptx_and_b64(k, ptx_or_b64(k, x, stride), U64(15));
    q.vectors = ptx_setp_eq_u64(k, low, U64(0));
    return q;
}

ptx_u64 w8a8_row_of_token(const struct quantiser *q, ptx_u32 token)
{
    ptx_u64 stride = ptx_mul_wide_u32(q->k, q->x_stride, U32(element_bytes(q)));
    return ptx_mad_lo_u64(q->k, ptx_cvt_u64_u32(q->k, token), stride, q->x);
}

/* ---- loading ---- */

static void load_vectors(const struct quantiser *q, ptx_u64 from, struct chunk *c)
{
    for (int i = 0; i < chunk_words(q); i += 4)
        ptx_ld_global_v4_u32_to(q->k, &c->words[i], from, 4 * i);
}

static ptx_pred exists(const struct quantiser *q, ptx_u32 element, int i)
{
    return ptx_setp_lt_u32(q->k, element, U32((uint32_t)((int64_t)q->spec->k - i)));
}

/* Element by element, for unaligned rows and the end of a row. */
static void load_scalars(const struct quantiser *q, ptx_u64 from, ptx_u32 element, struct chunk *c)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = element_bytes(q);
    for (int i = 0; i < CHUNK; i++) {
        if ((uint32_t)i >= q->spec->k)
            break;
        ptx_pred here = exists(q, element, i);
        if (bytes == 2) {
            ptx_u16 half[2] = {ptx_mov_u16(k, ptx_imm_u16(0)), ptx_mov_u16(k, ptx_imm_u16(0))};
            ptx_guarded(k, here)
                ptx_ld_global_u16_to(k, half[i % 2], from, 2 * i);
            ptx_u32 word;
            word = ptx_pack_u32(k, half);
            ptx_or_b32_to(k, c->words[i / 2], c->words[i / 2], word);
        } else if (bytes == 4)
            ptx_guarded(k, here)
                ptx_ld_global_u32_to(k, c->words[i], from, 4 * i);
        else
            ptx_guarded(k, here)
                ptx_ld_global_v2_u32_to(k, &c->words[2 * i], from, 8 * i);
    }
}

/* … of a chunk that is all there. */
static void load_elements(const struct quantiser *q, ptx_u64 from, struct chunk *c)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = element_bytes(q);
    for (int i = 0; i < CHUNK; i++)
        if (bytes == 2 && i % 2 == 0) {
            ptx_u16 half[2];
            for (int j = 0; j < 2; j++)
                half[j] = ptx_ld_global_u16(k, from, 2 * (i + j));
            ptx_mov_u32_to(k, c->words[i / 2], ptx_pack_u32(k, half));
        } else if (bytes == 4)
            ptx_ld_global_u32_to(k, c->words[i], from, 4 * i);
        else if (bytes == 8)
            ptx_ld_global_v2_u32_to(k, &c->words[2 * i], from, 8 * i);
}

static void load_chunk(const struct quantiser *q, const struct share *share, ptx_u32 index,
                       struct chunk *c)
{
    ptx_kernel *k = q->k;
    for (int i = 0; i < chunk_words(q); i++)
        c->words[i] = ptx_mov_u32(k, U32(0));
    ptx_u32 element = ptx_shl_b32(k, index, U32(3));
    ptx_u64 from = ptx_mad_wide_u32(k, element, U32(element_bytes(q)), share->row);
    ptx_pred mine = ptx_setp_lt_u32(k, index, share->end);
    ptx_pred whole = ptx_setp_bool_lt_u32(k, index, U32(q->spec->k / CHUNK), mine);
    ptx_pred at_once = ptx_and_pred(k, whole, q->vectors);
    ptx_guarded(k, at_once)
        load_vectors(q, from, c);
    bool ends_whole = q->spec->k % CHUNK == 0;
    ptx_pred part = ptx_xor_pred(k, ends_whole ? whole : mine, at_once);
    ptx_if(k, part) {
        if (ends_whole)
            load_elements(q, from, c);
        else
            load_scalars(q, from, element, c);
    }
}

uint32_t w8a8_batch_turns(uint32_t turns)
{
    uint32_t batches = (turns + BATCH - 1) / BATCH;
    return (turns + batches - 1) / batches;
}

void w8a8_load_batch(const struct quantiser *q, const struct share *share, ptx_u32 first,
                     uint32_t turns, struct batch *batch)
{
    for (uint32_t i = 0; i < turns; i++) {
        batch->index[i] = i ? ptx_add_u32(q->k, first, U32(i * share->step)) : first;
        load_chunk(q, share, batch->index[i], &batch->chunks[i]);
    }
}

/* ---- elements as numbers ---- */

static void unpack_word(const struct quantiser *q, ptx_u32 word, ptx_f32 to[2])
{
    ptx_kernel *k = q->k;
    if (q->spec->x_type == PTXGEN_F16) {
        ptx_f16 halves[2];
        ptx_unpack_f16x2(k, halves, ptx_u32_as_f16x2(word));
        to[0] = ptx_cvt_f32_f16(k, halves[0]);
        to[1] = ptx_cvt_f32_f16(k, halves[1]);
    } else {
        to[0] = ptx_u32_as_f32(ptx_shl_b32(k, word, U32(16)));
        to[1] = ptx_u32_as_f32(ptx_and_b32(k, word, U32(0xFFFF0000)));
    }
}

static void unpack_chunk(const struct quantiser *q, const struct chunk *c, struct work v[CHUNK])
{
    ptx_kernel *k = q->k;
    for (int i = 0; i < CHUNK; i += 2) {
        ptx_f32 pair[2] = {{{0}}};
        if (q->spec->x_type == PTXGEN_F64) {
            v[i].d = ptx_pack_f64(k, &c->words[2 * i]);
            v[i + 1].d = ptx_pack_f64(k, &c->words[2 * i + 2]);
            continue;
        }
        if (q->spec->x_type == PTXGEN_F32) {
            pair[0] = ptx_u32_as_f32(c->words[i]);
            pair[1] = ptx_u32_as_f32(c->words[i + 1]);
        } else
            unpack_word(q, c->words[i / 2], pair);
        for (int j = 0; j < 2; j++)
            if (q->wide)
                v[i + j].d = ptx_cvt_f64_f32(k, pair[j]);
            else
                v[i + j].f = pair[j];
    }
}

/* ---- the range of a row ---- */

static int maxima(const struct quantiser *q)
{
    return q->spec->asymmetric && !q->spec->scales ? 3 : 1;
}

struct range w8a8_new_range(const struct quantiser *q)
{
    struct range r = {0};
    for (int i = 0; i < maxima(q); i++)
        if (q->wide)
            r.wide[i] = ptx_mov_u64(q->k, U64(0));
        else
            r.word[i] = ptx_mov_u32(q->k, U32(0));
    return r;
}

/* Positive numbers order as their bits do; of the others only that they are no larger counts. */
static void widen_narrow(const struct quantiser *q, ptx_f32 v, struct range *r)
{
    ptx_kernel *k = q->k;
    ptx_u32 bits = ptx_and_b32(k, ptx_f32_as_u32(v), U32(0x7FFFFFFF));
    ptx_max_u32_to(k, r->word[0], r->word[0], bits);
    if (maxima(q) == 1)
        return;
    ptx_s32 plain = ptx_u32_as_s32(ptx_f32_as_u32(v));
    ptx_u32 turned = ptx_xor_b32(k, ptx_f32_as_u32(v), U32(0x80000000));
    ptx_s32 high = ptx_max_s32(k, ptx_u32_as_s32(r->word[1]), plain);
    ptx_s32 low = ptx_max_s32(k, ptx_u32_as_s32(r->word[2]), ptx_u32_as_s32(turned));
    ptx_mov_u32_to(k, r->word[1], ptx_s32_as_u32(high));
    ptx_mov_u32_to(k, r->word[2], ptx_s32_as_u32(low));
}

static void widen_wide(const struct quantiser *q, ptx_f64 v, struct range *r)
{
    ptx_kernel *k = q->k;
    ptx_u64 bits = ptx_and_b64(k, ptx_f64_as_u64(v), U64(0x7FFFFFFFFFFFFFFF));
    ptx_max_u64_to(k, r->wide[0], r->wide[0], bits);
    if (maxima(q) == 1)
        return;
    ptx_s64 plain = ptx_u64_as_s64(ptx_f64_as_u64(v));
    ptx_u64 turned = ptx_xor_b64(k, ptx_f64_as_u64(v), U64(0x8000000000000000));
    ptx_s64 high = ptx_max_s64(k, ptx_u64_as_s64(r->wide[1]), plain);
    ptx_s64 low = ptx_max_s64(k, ptx_u64_as_s64(r->wide[2]), ptx_u64_as_s64(turned));
    ptx_mov_u64_to(k, r->wide[1], ptx_s64_as_u64(high));
    ptx_mov_u64_to(k, r->wide[2], ptx_s64_as_u64(low));
}

void w8a8_widen_range(const struct quantiser *q, const struct batch *batch, uint32_t turns,
                      struct range *range)
{
    for (uint32_t i = 0; i < turns; i++) {
        struct work v[CHUNK];
        unpack_chunk(q, &batch->chunks[i], v);
        for (int j = 0; j < CHUNK; j++)
            if (q->wide)
                widen_wide(q, v[j].d, range);
            else
                widen_narrow(q, v[j].f, range);
    }
}

static ptx_u64 warp_max_u64(ptx_kernel *k, ptx_u64 x)
{
    for (uint32_t distance = 16; distance; distance /= 2) {
        ptx_u32 halves[2], other[2];
        ptx_unpack_u64(k, halves, x);
        for (int i = 0; i < 2; i++)
            other[i] = ptx_shfl_sync_bfly_u32(k, halves[i], U32(distance), U32(31), ALL_LANES);
        x = ptx_max_u64(k, x, ptx_pack_u64(k, other));
    }
    return x;
}

void w8a8_share_range(const struct quantiser *q, struct range *r)
{
    for (int i = 0; i < maxima(q); i++)
        if (q->wide)
            r->wide[i] = warp_max_u64(q->k, r->wide[i]);
        else
            r->word[i] = ptx_redux_sync_max_u32(q->k, r->word[i], ALL_LANES);
}

void w8a8_store_range(const struct quantiser *q, ptx_u32 slot, const struct range *r)
{
    for (int i = 0; i < maxima(q); i++)
        if (q->wide)
            ptx_st_shared_u64(q->k, slot, 8 * i, r->wide[i]);
        else
            ptx_st_shared_u32(q->k, slot, 4 * i, r->word[i]);
}

struct range w8a8_load_ranges(const struct quantiser *q, ptx_u32 slots, ptx_u32 lane,
                              uint32_t count)
{
    ptx_kernel *k = q->k;
    struct range r = w8a8_new_range(q);
    ptx_u32 slot = ptx_mad_lo_u32(k, lane, U32(w8a8_range_bytes(q->spec)), slots);
    ptx_guarded(k, ptx_setp_lt_u32(k, lane, U32(count)))
        for (int i = 0; i < maxima(q); i++)
            if (q->wide)
                ptx_ld_shared_u64_to(k, r.wide[i], slot, 8 * i);
            else
                ptx_ld_shared_u32_to(k, r.word[i], slot, 4 * i);
    w8a8_share_range(q, &r);
    return r;
}

/* ---- the token's scale ---- */

static struct work maximum(const struct quantiser *q, const struct range *r, int i)
{
    struct work w = {0};
    if (q->wide)
        w.d = ptx_u64_as_f64(r->wide[i]);
    else
        w.f = ptx_u32_as_f32(r->word[i]);
    return w;
}

static ptx_pred is_zero(const struct quantiser *q, struct work x)
{
    return q->wide ? ptx_setp_eq_f64(q->k, x.d, F64(0)) : ptx_setp_eq_f32(q->k, x.f, F32(0));
}

static ptx_pred is_finite(const struct quantiser *q, const struct range *r)
{
    if (q->wide)
        return ptx_setp_lt_u64(q->k, r->wide[0], U64(0x7FF0000000000000));
    return ptx_setp_lt_u32(q->k, r->word[0], U32(0x7F800000));
}

/* Scales that come of f16's values are neither small nor large. */
static bool has_normal_scale(const struct quantiser *q)
{
    return q->spec->x_type == PTXGEN_F16 && !q->spec->scales;
}

/* Of a maximum by a number of steps. */
static struct work divide_by_steps(const struct quantiser *q, struct work x, int steps)
{
    ptx_kernel *k = q->k;
    if (!has_normal_scale(q) || q->wide)
        return work_div(k, q->wide, x, work_constant(steps));
    struct work reciprocal = work_constant(1.0f / (float)steps);
    struct work near = work_mul(k, false, x, reciprocal);
    struct work miss = work_fma(k, false, near, work_constant(-steps), x);
    return work_fma(k, false, miss, reciprocal, near);
}

static struct work dynamic_scale(const struct quantiser *q, const struct range *r)
{
    const ptxgen_w8a8_spec *s = q->spec;
    struct work scale;
    if (s->asymmetric) {
        int steps = s->q_max - s->q_min;
        struct work high = divide_by_steps(q, maximum(q, r, 1), steps);
        struct work low = divide_by_steps(q, maximum(q, r, 2), steps);
        scale = work_add(q->k, q->wide, high, low); /* low is of −x */
    } else
        scale = divide_by_steps(q, maximum(q, r, 0), s->q_max);
    return work_select(q->k, q->wide, work_constant(1), scale, is_zero(q, scale));
}

/* RN(x / scale), of an x that is multiplied by `adjust` and not too large. */
static struct work divide_by_scale(const struct quantiser *q, const struct token *t, struct work x)
{
    ptx_kernel *k = q->k;
    struct work rest = work_mul(k, q->wide, x, t->rest);
    struct work near = work_fma(k, q->wide, x, t->reciprocal, rest);
    struct work miss = work_fma(k, q->wide, near, t->minus_scaled, x);
    return work_fma(k, q->wide, miss, t->reciprocal, near);
}

/* clamp(q_min + round(max(−x) / scale)). */
static ptx_s32 dynamic_zero(const struct quantiser *q, const struct range *r, const struct token *t)
{
    ptx_kernel *k = q->k;
    struct work low = maximum(q, r, 2);
    if (!has_normal_scale(q))
        low = work_mul(k, q->wide, low, t->adjust);
    struct work quotient = divide_by_scale(q, t, low);
    ptx_s32 steps = q->wide ? ptx_cvt_s32_f64_m(k, PTX_RNI, quotient.d)
                            : ptx_cvt_s32_f32_m(k, PTX_RNI, quotient.f);
    int most = q->spec->q_max - q->spec->q_min;
    ptx_s32 cut = ptx_min_s32(k, steps, S32(most));
    return ptx_add_s32(k, cut, S32(q->spec->q_min));
}

static void given_scale(const struct quantiser *q, ptx_u32 token, struct token *t)
{
    ptx_kernel *k = q->k;
    bool each = q->spec->scales == PTXGEN_W8A8_TOKEN;
    ptx_u64 at =
        each ? ptx_mad_wide_u32(k, token, U32(w8a8_work_bytes(q->spec)), q->x_scale) : q->x_scale;
    t->scale = work_load_global(k, q->wide, at, 0);
    if (q->spec->asymmetric) {
        ptx_u64 zero = each ? ptx_mad_wide_u32(k, token, U32(4), q->x_zero) : q->x_zero;
        t->zero = ptx_ld_global_s32(k, zero, 0);
    }
}

/* RN(1 / s) of a moderate s. */
static struct work invert(const struct quantiser *q, struct work s, struct work minus_s)
{
    enum { MANTISSA = 0x7FFFFF };
    ptx_kernel *k = q->k;
    struct work r = {0};
    if (q->wide)
        return work_rcp(k, true, s);
    ptx_f32 near = ptx_rcp_approx_f32_m(k, PTX_FTZ, s.f);
    ptx_f32 miss = ptx_fma_f32(k, minus_s.f, near, F32(1));
    ptx_u32 bits = ptx_f32_as_u32(ptx_fma_f32(k, miss, near, near));
    ptx_u32 mantissa = ptx_and_b32(k, ptx_f32_as_u32(s.f), U32(MANTISSA));
    ptx_u32 last = ptx_selp_u32(k, U32(1), U32(0), ptx_setp_eq_u32(k, mantissa, U32(MANTISSA)));
    r.f = ptx_u32_as_f32(ptx_or_b32(k, bits, last));
    return r;
}

/* The power of two that s and x are multiplied by. */
static struct work find_adjust(const struct quantiser *q, struct work s)
{
    ptx_kernel *k = q->k;
    bool wide = q->wide;
    struct work one = work_constant(1);
    struct work least = work_constant(wide ? 0x1p-500 : 0x1p-60);
    struct work most = work_constant(wide ? 0x1p500 : 0x1p60);
    struct work up = work_constant(wide ? 0x1p512 : 0x1p64);
    struct work down = work_constant(wide ? 0x1p-512 : 0x1p-64);
    struct work raised = work_select(k, wide, up, one, work_less(k, wide, s, least));
    return work_select(k, wide, down, raised, work_less(k, wide, most, s));
}

/* The constants of the division, from a scale that is positive and finite. */
static void prepare_division(const struct quantiser *q, struct token *t)
{
    ptx_kernel *k = q->k;
    bool wide = q->wide;
    struct work scaled = t->scale;
    if (!has_normal_scale(q)) {
        t->adjust = find_adjust(q, t->scale);
        scaled = work_mul(k, wide, t->scale, t->adjust);
        t->limit = work_mul(k, wide, scaled, work_constant(REACH));
    }
    t->minus_scaled = work_neg(k, wide, scaled);
    t->reciprocal = invert(q, scaled, t->minus_scaled);
    struct work miss = work_fma(k, wide, t->minus_scaled, t->reciprocal, work_constant(1));
    t->rest = work_mul(k, wide, miss, t->reciprocal);
}

struct token w8a8_find_token(const struct quantiser *q, const struct range *range, ptx_u32 token)
{
    ptx_kernel *k = q->k;
    struct token t = {.finite = is_finite(q, range), .zero = S32(0)};
    if (q->spec->scales)
        given_scale(q, token, &t);
    else
        t.scale = dynamic_scale(q, range);
    t.scale = work_select(k, q->wide, t.scale, work_constant(1), t.finite);
    prepare_division(q, &t);
    if (q->spec->asymmetric && !q->spec->scales)
        t.zero = dynamic_zero(q, range, &t);
    t.keep = ptx_selp_u32(k, U32(0xFFFFFFFF), U32(0), t.finite);
    t.low = work_constant(q->spec->q_min);
    t.high = work_constant(q->spec->q_max);
    if (q->spec->asymmetric) {
        struct work zero = work_of_s32(k, q->wide, t.zero);
        t.low = work_sub(k, q->wide, t.low, zero);
        t.high = work_sub(k, q->wide, t.high, zero);
    }
    return t;
}

struct work w8a8_told_scale(const struct quantiser *q, const struct token *t)
{
    return work_select(q->k, q->wide, t->scale, work_constant(__builtin_nan("")), t->finite);
}

/* ---- codes ---- */

/* A word whose low byte is the code before the zero point. */
static ptx_u32 unshifted_code(const struct quantiser *q, const struct token *t, struct work x)
{
    ptx_kernel *k = q->k;
    const ptxgen_w8a8_spec *s = q->spec;
    bool wide = q->wide;
    bool within = has_normal_scale(q) && !s->asymmetric && -s->q_min >= s->q_max;
    if (!has_normal_scale(q)) {
        x = work_mul(k, wide, x, t->adjust);
        x = work_min(k, wide, x, t->limit);
        x = work_max(k, wide, x, work_neg(k, wide, t->limit));
    }
    struct work quotient = divide_by_scale(q, t, x);
    if (!within) {
        quotient = work_min(k, wide, quotient, t->high);
        quotient = work_max(k, wide, quotient, t->low);
    }
    struct work sum = work_add(k, wide, quotient, work_constant(wide ? 0x1.8p52 : 0x1.8p23));
    if (!wide)
        return ptx_f32_as_u32(sum.f);
    ptx_u32 halves[2];
    ptx_unpack_f64(k, halves, sum.d);
    return halves[0];
}

/* code + zero point; past the end of the row 0, whatever W has there. */
static ptx_u32 shift_code(const struct quantiser *q, const struct token *t, ptx_u32 code,
                          ptx_u32 element, int i)
{
    ptx_kernel *k = q->k;
    ptx_u32 shifted = ptx_add_u32(k, code, ptx_s32_as_u32(t->zero));
    if (q->spec->k % (8 * W8A8_BLOCK) == 0)
        return shifted;
    ptx_pred inside =
        (uint32_t)i < q->spec->k ? exists(q, element, i) : ptx_setp_lt_u32(k, element, U32(0));
    return ptx_selp_u32(k, shifted, U32(0), inside);
}

void w8a8_encode_chunk(const struct quantiser *q, const struct token *t, const struct chunk *chunk,
                       ptx_u32 index, ptx_u32 codes[2])
{
    ptx_kernel *k = q->k;
    struct work v[CHUNK];
    ptx_u32 code[CHUNK];
    unpack_chunk(q, chunk, v);
    ptx_u32 element = ptx_shl_b32(k, index, U32(3));
    for (int i = 0; i < CHUNK; i++) {
        code[i] = unshifted_code(q, t, v[i]);
        if (q->spec->asymmetric)
            code[i] = shift_code(q, t, code[i], element, i);
    }
    for (int i = 0; i < 2; i++) {
        ptx_u32 low = ptx_prmt_b32(k, code[4 * i], code[4 * i + 1], U32(0x0040));
        ptx_u32 high = ptx_prmt_b32(k, code[4 * i + 2], code[4 * i + 3], U32(0x0040));
        ptx_u32 word = ptx_prmt_b32(k, low, high, U32(0x5410));
        codes[i] = ptx_and_b32(k, word, t->keep);
    }
}
