/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantises a row of x in two passes: the first finds the maxima, the second computes the codes
 * (division.c).
 *
 * For f64, and for long rows with zero points, the loops over a thread's chunks and over the halves
 * of a chunk are not unrolled, which keeps the kernel short. A loop rotates the chunks through the
 * registers that its body reads, until every chunk is where it was.
 */
#include "emit.h"

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

/* Whether loops over a thread's chunks, and over the halves of a chunk, are not unrolled. */
static bool has_one_text(const struct quantiser *q)
{
    return q->wide || (w8a8_is_long_asymmetric(q->spec) && q->spec->x_type != PTXGEN_F16);
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

/* Loads a chunk element by element, for the end of a row. */
static void load_scalars(const struct quantiser *q, ptx_u64 from, ptx_u32 element, struct chunk *c)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = element_bytes(q);
    for (int i = 0; i < CHUNK; i++) {
        if ((uint32_t)i >= q->spec->k)
            break;
        ptx_pred here = exists(q, element, i);
        if (bytes == 2) {
            ptx_u16 half[2];
            for (int h = 0; h < 2; h++)
                half[h] = ptx_mov_u16(k, ptx_imm_u16(0));
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

/* Loads a chunk element by element where all of it is in the row, for unaligned rows. */
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

uint32_t w8a8_batch_rounds(const struct quantiser *q, uint32_t rounds)
{
    uint32_t most = q->wide && rounds > BATCH ? BATCH / 2 : BATCH;
    uint32_t batches = (rounds + most - 1) / most;
    return (rounds + batches - 1) / batches;
}

void w8a8_load_batch(const struct quantiser *q, const struct share *share, ptx_u32 first,
                     uint32_t rounds, struct batch *batch)
{
    for (uint32_t i = 0; i < rounds; i++) {
        batch->index[i] =
            i || has_one_text(q) ? ptx_add_u32(q->k, first, U32(i * share->step)) : first;
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

void w8a8_unpack_pair(const struct quantiser *q, const struct chunk *c, int pair, struct work v[2])
{
    ptx_kernel *k = q->k;
    ptx_f32 narrow[2] = {{{0}}};
    if (q->spec->x_type == PTXGEN_F64) {
        v[0].d = ptx_pack_f64(k, &c->words[4 * pair]);
        v[1].d = ptx_pack_f64(k, &c->words[4 * pair + 2]);
        return;
    }
    if (q->spec->x_type == PTXGEN_F32) {
        narrow[0] = ptx_u32_as_f32(c->words[2 * pair]);
        narrow[1] = ptx_u32_as_f32(c->words[2 * pair + 1]);
    } else
        unpack_word(q, c->words[pair], narrow);
    for (int j = 0; j < 2; j++)
        if (q->wide)
            v[j].d = ptx_cvt_f64_f32(k, narrow[j]);
        else
            v[j].f = narrow[j];
}

enum { PAIRS = CHUNK / 2 };

static void exchange_halves(const struct quantiser *q, const struct chunk *c)
{
    ptx_kernel *k = q->k;
    int half = chunk_words(q) / 2;
    for (int i = 0; i < half; i++) {
        ptx_u32 word = ptx_mov_u32(k, c->words[i]);
        ptx_mov_u32_to(k, c->words[i], c->words[i + half]);
        ptx_mov_u32_to(k, c->words[i + half], word);
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

/* Positive numbers are ordered like their bits; others only have to be no larger. */
static void widen_narrow(const struct quantiser *q, ptx_f32 v, struct range *r)
{
    ptx_kernel *k = q->k;
    ptx_u32 plain = ptx_f32_as_u32(v), turned = plain;
    ptx_max_u32_to(k, r->word[0], r->word[0], ptx_and_b32(k, plain, U32(0x7FFFFFFF)));
    for (int i = 1; i < maxima(q); i++) {
        ptx_s32 most = ptx_u32_as_s32(r->word[i]);
        if (i == 2)
            turned = ptx_xor_b32(k, plain, U32(0x80000000));
        ptx_max_s32_to(k, most, most, ptx_u32_as_s32(turned));
    }
}

static void widen_wide(const struct quantiser *q, ptx_f64 v, struct range *r)
{
    ptx_kernel *k = q->k;
    ptx_u64 plain = ptx_f64_as_u64(v), turned = plain;
    ptx_max_u64_to(k, r->wide[0], r->wide[0], ptx_and_b64(k, plain, U64(INT64_MAX)));
    for (int i = 1; i < maxima(q); i++) {
        ptx_s64 most = ptx_u64_as_s64(r->wide[i]);
        if (i == 2)
            turned = ptx_xor_b64(k, plain, U64(0x8000000000000000));
        ptx_max_s64_to(k, most, most, ptx_u64_as_s64(turned));
    }
}

static void widen_by_pair(const struct quantiser *q, const struct chunk *c, int pair,
                          struct range *range)
{
    struct work v[2];
    w8a8_unpack_pair(q, c, pair, v);
    for (int j = 0; j < 2; j++)
        if (q->wide)
            widen_wide(q, v[j].d, range);
        else
            widen_narrow(q, v[j].f, range);
}

static void widen_by_halves(const struct quantiser *q, const struct chunk *c, struct range *range)
{
    ptx_u32 half = ptx_mov_u32(q->k, U32(0));
    ptx_for(q->k, half, U32(2), U32(1)) {
        ptx_nounroll(q->k);
        for (int pair = 0; pair < PAIRS / 2; pair++)
            widen_by_pair(q, c, pair, range);
        exchange_halves(q, c);
    }
}

/* Rotates the chunks: the second becomes the first, and the first becomes the last. */
static void rotate_batch(const struct quantiser *q, const struct batch *batch, uint32_t rounds)
{
    ptx_kernel *k = q->k;
    struct chunk first;
    ptx_u32 index = ptx_mov_u32(k, batch->index[0]);
    for (int w = 0; w < chunk_words(q); w++)
        first.words[w] = ptx_mov_u32(k, batch->chunks[0].words[w]);
    for (uint32_t i = 0; i < rounds; i++) {
        bool last = i + 1 == rounds;
        ptx_mov_u32_to(k, batch->index[i], last ? index : batch->index[i + 1]);
        for (int w = 0; w < chunk_words(q); w++)
            ptx_mov_u32_to(k, batch->chunks[i].words[w],
                           last ? first.words[w] : batch->chunks[i + 1].words[w]);
    }
}

static void widen_by_chunks(const struct quantiser *q, const struct batch *batch, uint32_t rounds,
                            struct range *range)
{
    ptx_kernel *k = q->k;
    ptx_u32 round = ptx_mov_u32(k, U32(0));
    ptx_for(k, round, U32(rounds), U32(1)) {
        ptx_nounroll(k);
        widen_by_halves(q, &batch->chunks[0], range);
        rotate_batch(q, batch, rounds);
    }
}

void w8a8_widen_range(const struct quantiser *q, const struct batch *batch, uint32_t rounds,
                      struct range *range)
{
    if (has_one_text(q) && rounds > 1)
        widen_by_chunks(q, batch, rounds, range);
    else if (has_one_text(q))
        widen_by_halves(q, &batch->chunks[0], range);
    else
        for (uint32_t i = 0; i < rounds * PAIRS; i++)
            widen_by_pair(q, &batch->chunks[i / PAIRS], (int)(i % PAIRS), range);
}

static void max_with_lane(ptx_kernel *k, ptx_u64 x, ptx_u32 distance)
{
    ptx_u32 halves[2], other[2];
    ptx_unpack_u64(k, halves, x);
    for (int i = 0; i < 2; i++)
        other[i] = ptx_shfl_sync_bfly_u32(k, halves[i], distance, U32(31), ALL_LANES);
    ptx_max_u64_to(k, x, x, ptx_pack_u64(k, other));
}

/* A loop over the distances of the shuffles. */
static void share_wide(const struct quantiser *q, struct range *r)
{
    ptx_kernel *k = q->k;
    ptx_u32 distance = ptx_mov_u32(k, U32(1));
    ptx_loop(k, distances) {
        ptx_nounroll(k);
        for (int i = 0; i < maxima(q); i++)
            max_with_lane(k, r->wide[i], distance);
        ptx_shl_b32_to(k, distance, distance, U32(1));
        ptx_loop_break_if(&distances, ptx_setp_eq_u32(k, distance, U32(32)), false);
    }
}

void w8a8_share_range(const struct quantiser *q, struct range *r)
{
    if (q->wide)
        share_wide(q, r);
    else
        for (int i = 0; i < maxima(q); i++)
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

static struct work dynamic_scale(const struct quantiser *q, const struct range *r)
{
    const ptxgen_w8a8_spec *s = q->spec;
    struct work scale;
    if (s->asymmetric) {
        int steps = s->q_max - s->q_min;
        struct work reach[2] = {maximum(q, r, 1),
                                maximum(q, r, 2)}; /* the largest of x and of −x */
        w8a8_divide_by_steps(q, steps, reach, 2);
        scale = work_add(q->k, q->wide, reach[0], reach[1]);
    } else {
        scale = maximum(q, r, 0);
        w8a8_divide_by_steps(q, s->q_max, &scale, 1);
    }
    return work_select(q->k, q->wide, work_constant(q->wide, 1), scale, is_zero(q, scale));
}

/* The zero point, clamp(q_min + round(max(−x) / scale)). */
static ptx_s32 dynamic_zero(const struct quantiser *q, const struct range *r, const struct token *t)
{
    ptx_kernel *k = q->k;
    struct work low = maximum(q, r, 2);
    if (!w8a8_has_normal_scale(q))
        low = work_mul(k, q->wide, low, t->adjust);
    struct work quotient = w8a8_divide_by_scale(q, t, low);
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

struct token w8a8_find_token(const struct quantiser *q, const struct range *range, ptx_u32 token)
{
    ptx_kernel *k = q->k;
    struct token t = {.finite = is_finite(q, range), .zero = S32(0)};
    if (q->spec->scales)
        given_scale(q, token, &t);
    else
        t.scale = dynamic_scale(q, range);
    t.scale = work_select(k, q->wide, t.scale, work_constant(q->wide, 1), t.finite);
    w8a8_prepare_division(q, &t);
    if (q->spec->asymmetric && !q->spec->scales)
        t.zero = dynamic_zero(q, range, &t);
    t.keep = ptx_selp_u32(k, U32(0xFFFFFFFF), U32(0), t.finite);
    t.low = work_constant(q->wide, q->spec->q_min);
    t.high = work_constant(q->wide, q->spec->q_max);
    t.least = S32(q->spec->q_min);
    t.most = S32(q->spec->q_max);
    if (q->spec->asymmetric && q->wide) {
        t.least = ptx_sub_s32(k, t.least, t.zero);
        t.most = ptx_sub_s32(k, t.most, t.zero);
    } else if (q->spec->asymmetric) {
        struct work zero = work_of_s32(k, false, t.zero);
        t.low = work_sub(k, false, t.low, zero);
        t.high = work_sub(k, false, t.high, zero);
    }
    return t;
}

struct work w8a8_written_scale(const struct quantiser *q, const struct token *t)
{
    return work_select(q->k, q->wide, t->scale, work_constant(q->wide, __builtin_nan("")),
                       t->finite);
}

/* ---- codes ---- */

/* x within ±limit; for f64 by its bits, which takes fewer machine instructions. */
static struct work cut(const struct quantiser *q, struct work x, struct work limit)
{
    ptx_kernel *k = q->k;
    if (!q->wide) {
        x.f = ptx_min_f32(k, x.f, limit.f);
        x.f = ptx_max_f32(k, x.f, ptx_neg_f32(k, limit.f));
        return x;
    }
    ptx_u64 bits = ptx_f64_as_u64(x.d), magnitude = ptx_and_b64(k, bits, U64(INT64_MAX));
    ptx_u64 sign = ptx_xor_b64(k, bits, magnitude);
    magnitude = ptx_min_u64(k, magnitude, ptx_f64_as_u64(limit.d));
    x.d = ptx_u64_as_f64(ptx_or_b64(k, magnitude, sign));
    return x;
}

/* A word whose low byte is the code without the zero point. */
static ptx_u32 unshifted_code(const struct quantiser *q, const struct token *t, struct work x)
{
    if (!w8a8_has_normal_scale(q))
        x = cut(q, work_mul(q->k, q->wide, x, t->adjust), t->limit);
    return w8a8_code_of(q, t, w8a8_divide_by_scale(q, t, x));
}

/* code + zero point; past the end of the row 0, as W may have anything there. */
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

/* The codes of a pair, each in a low byte. */
static void encode_pair(const struct quantiser *q, const struct token *t, const struct chunk *chunk,
                        int pair, ptx_u32 first, int i, ptx_u32 code[2])
{
    struct work v[2];
    w8a8_unpack_pair(q, chunk, pair, v);
    for (int j = 0; j < 2; j++) {
        code[j] = unshifted_code(q, t, v[j]);
        if (q->spec->asymmetric)
            code[j] = shift_code(q, t, code[j], first, i + j);
    }
}

static ptx_u32 pack_codes(ptx_kernel *k, const ptx_u32 code[4])
{
    ptx_u32 low = ptx_prmt_b32(k, code[0], code[1], U32(0x0040));
    ptx_u32 high = ptx_prmt_b32(k, code[2], code[3], U32(0x0040));
    return ptx_prmt_b32(k, low, high, U32(0x5410));
}

static void encode_by_halves(const struct quantiser *q, const struct token *t,
                             const struct chunk *chunk, ptx_u32 element, ptx_u32 codes[2])
{
    ptx_kernel *k = q->k;
    ptx_u32 end = ptx_add_u32(k, element, U32(CHUNK)), at = ptx_mov_u32(k, element);
    ptx_u32 code[CHUNK / 2];
    for (int i = 0; i < 2; i++)
        codes[i] = ptx_mov_u32(k, U32(0));
    ptx_for(k, at, end, U32(CHUNK / 2)) {
        ptx_nounroll(k);
        for (int pair = 0; pair < PAIRS / 2; pair++)
            encode_pair(q, t, chunk, pair, at, 2 * pair, code + 2 * pair);
        ptx_mov_u32_to(k, codes[0], codes[1]);
        ptx_and_b32_to(k, codes[1], pack_codes(k, code), t->keep);
        exchange_halves(q, chunk);
    }
}

static void encode_chunk(const struct quantiser *q, const struct token *t,
                         const struct chunk *chunk, ptx_u32 index, ptx_u32 codes[2])
{
    ptx_kernel *k = q->k;
    ptx_u32 code[CHUNK];
    ptx_u32 element = ptx_shl_b32(k, index, U32(3));
    if (has_one_text(q)) {
        encode_by_halves(q, t, chunk, element, codes);
        return;
    }
    for (int pair = 0; pair < PAIRS; pair++)
        encode_pair(q, t, chunk, pair, element, 2 * pair, code + 2 * pair);
    for (int i = 0; i < 2; i++)
        codes[i] = ptx_and_b32(k, pack_codes(k, code + 4 * i), t->keep);
}

static void encode_into(const struct quantiser *q, const struct token *t, const struct batch *batch,
                        uint32_t i, w8a8_store_codes *store, void *user)
{
    ptx_u32 codes[2];
    encode_chunk(q, t, &batch->chunks[i], batch->index[i], codes);
    store(user, batch->index[i], codes);
}

void w8a8_encode_batch(const struct quantiser *q, const struct token *t, const struct batch *batch,
                       uint32_t rounds, w8a8_store_codes *store, void *user)
{
    ptx_kernel *k = q->k;
    if (!has_one_text(q) || rounds == 1) {
        for (uint32_t i = 0; i < rounds; i++)
            encode_into(q, t, batch, i, store, user);
        return;
    }
    ptx_u32 round = ptx_mov_u32(k, U32(0));
    ptx_for(k, round, U32(rounds), U32(1)) {
        ptx_nounroll(k);
        encode_into(q, t, batch, 0, store, user);
        rotate_batch(q, batch, rounds);
    }
}

/* ---- groups ---- */

/* The maxima over the lanes that have a group. */
static void share_among_group(const struct quantiser *q, const struct range *range)
{
    ptx_kernel *k = q->k;
    for (int i = 0; i < maxima(q); i++)
        for (uint32_t mask = 1; mask < GROUP_LANES; mask *= 2) {
            ptx_u32 other =
                ptx_shfl_sync_bfly_u32(k, range->word[i], U32(mask), U32(31), ALL_LANES);
            ptx_max_u32_to(k, range->word[i], range->word[i], other);
        }
}

void w8a8_quantise_groups(const struct quantiser *q, const struct batch *batch, uint32_t rounds,
                          uint32_t chunks, w8a8_store_group *store_group,
                          w8a8_store_codes *store_codes, void *user)
{
    ptx_kernel *k = q->k;
    for (uint32_t i = 0; i < rounds; i++) {
        const struct batch one = {.chunks = {batch->chunks[i]}, .index = {batch->index[i]}};
        struct range range = w8a8_new_range(q);
        w8a8_widen_range(q, &one, 1, &range);
        share_among_group(q, &range);
        struct token token = w8a8_find_token(q, &range, U32(0));
        ptx_u32 lane = ptx_and_b32(k, one.index[0], U32(GROUP_LANES - 1));
        ptx_pred exists = ptx_setp_lt_u32(k, one.index[0], U32(chunks));
        ptx_pred is_first = ptx_setp_bool_eq_u32(k, lane, U32(0), exists);
        store_group(user, &token, ptx_shr_u32(k, one.index[0], U32(4)), is_first);
        w8a8_encode_batch(q, &token, &one, 1, store_codes, user);
    }
}
