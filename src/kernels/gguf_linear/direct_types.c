/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the bytes of a unit in shared memory to operand A of wgmma. Each type finds the scales that
 * a lane needs of a row's unit, and for each slice the four codes of a run as two words of two
 * numbers. What makes weights of these is the same for all types (weigh):
 *
 *     f16     codes over 0x6400 are 1024 + code, and a sum makes them code − bias. Scales and
 *             minima are rounded to f16, and each weight once more, in one fma or product:
 *             weight = round(fma(code − bias, round(scale), round(−minimum)))
 *     bf16    codes are the subnormal f16 numbers code·2⁻²⁴, which f32 takes exactly:
 *             weight = round(fma(code·2⁻²⁴, scale·2²⁴, −bias·scale or −minimum))
 *
 * Codes that are floats are multiplied by their scale alone, exactly but for the last rounding.
 * Codes that stay some bits higher are numbers as much greater. −bias·scale is exact as biases are
 * powers of two. Where a file's scale is an f16 and there is no minimum, both are what gguf_rows
 * decodes; in bf16 all are. Layouts stand in <ptxgen/gguf_types.h>. Machine instructions for a
 * weight are counted in docs/notes/gguf_linear.md.
 */
#include "direct_lane.h"

enum { MAGIC = 0x6400 /* 1024 in f16 */, TWICE = 0x00010001 /* makes a pair of halves */ };

/* ---- codes ---- */

ptx_u32 direct_masked(struct direct_lane *l, ptx_u32 bits, uint32_t mask)
{
    if (l->bf16)
        return ptx_and_b32(l->k, bits, U32(mask * TWICE));
    return ptx_lop3_b32(l->k, bits, U32(mask * TWICE), U32(MAGIC * TWICE), DIRECT_AND_OR);
}

void direct_byte_pairs(struct direct_lane *l, ptx_u32 bytes, ptx_u32 to[2])
{
    const bool rotated = direct_rotates(l->type);
    ptx_u32 above = U32(l->bf16 ? 0 : MAGIC / 256 * TWICE);
    to[0] = ptx_prmt_b32(l->k, bytes, above, U32(rotated ? 0x4140 : 0x4240));
    to[1] = ptx_prmt_b32(l->k, bytes, above, U32(rotated ? 0x4342 : 0x4341));
}

void direct_nibble_pairs(struct direct_lane *l, ptx_u32 word, bool high, ptx_u32 to[2])
{
    to[0] = direct_masked(l, word, high ? 0xF0 : 0xF);
    to[1] = direct_masked(l, ptx_shr_u32(l->k, word, U32(8)), high ? 0xF0 : 0xF);
}

/* ---- scales and minima ---- */

/* The two f16 of a word as f32. */
void direct_widen(struct direct_lane *l, ptx_u32 pair, ptx_f32 to[2])
{
    ptx_f16 parts[2];
    ptx_unpack_f16x2(l->k, parts, ptx_u32_as_f16x2(pair));
    for (int i = 0; i < 2; i++)
        to[i] = ptx_cvt_f32_f16(l->k, parts[i]);
}

/* The four bytes of a word, each times 2⁻²⁴, as f32, in their order. */
static void widen_bytes(struct direct_lane *l, ptx_u32 bytes, ptx_f32 to[4])
{
    ptx_f32 parts[2];
    for (int i = 0; i < 2; i++) {
        ptx_u32 pair = ptx_prmt_b32(l->k, bytes, U32(0), U32(i ? 0x4341 : 0x4240));
        direct_widen(l, pair, parts);
        to[i] = parts[0];
        to[i + 2] = parts[1];
    }
}

/* What f16 does not hold becomes its largest number, so that no weight is the difference of two
 * infinities, nor zero times infinity. */
void direct_set(struct direct_lane *l, struct direct_number *to, ptx_f32 value)
{
    enum { CLAMP = PTX_NAN | PTX_XORSIGN_ABS };
    ptx_kernel *k = l->k;
    *to = (struct direct_number){.single = value};
    if (l->bf16)
        return;
    ptx_f32 held = ptx_min_f32_m(k, CLAMP, value, F32(65504));
    to->pair = gemm_narrow_pair(k, false, held, held);
}

void direct_set_half(struct direct_lane *l, struct direct_number *to, ptx_u32 word, bool is_upper)
{
    ptx_f32 parts[2];
    *to = (struct direct_number){0};
    if (l->bf16) {
        direct_widen(l, word, parts);
        to->single = parts[is_upper];
        return;
    }
    to->pair = ptx_prmt_b32(l->k, word, word, U32(is_upper ? 0x3232 : 0x1010));
}

/* ---- small things ---- */

/* One of two constants, by a predicate. */
static ptx_u32 choose(struct direct_lane *l, uint32_t yes, uint32_t no, ptx_pred which)
{
    return ptx_selp_u32(l->k, U32(yes), U32(no), which);
}

static ptx_pred is_odd(struct direct_lane *l)
{
    return ptx_setp_ne_u32(l->k, ptx_and_b32(l->k, l->quad, U32(1)), U32(0));
}

/* Four words of a row from `at` on, into `to`. */
static void load_four(struct direct_lane *l, int row, ptx_u32 at, uint32_t offset, ptx_u32 *to)
{
    ptx_ld_shared_v4_u32(l->k, to, at, (int)(offset + (row ? l->row_step : 0)));
}

/* ---- Q4_K and Q5_K: quad lane q has weights 64q to 64q + 63, of two groups of 32 ---- */

static void begin_six_bits(struct direct_lane *l)
{
    ptx_kernel *k = l->k;
    l->own[0] = choose(l, 0x7632, 0x5410, is_odd(l));        /* two bytes of either of two words */
    l->own[1] = ptx_mad_lo_u32(k, l->quad, U32(2), U32(28)); /* brings bit 2q to bit 4 */
}

/* Scales and minima of the lane's two groups: of low nibbles, and of high ones. */
static void load_six_bits(struct direct_lane *l, int row)
{
    ptx_kernel *k = l->k;
    ptx_u32 head[4];
    ptx_f32 ends[2], four[4];
    load_four(l, row, l->row, 0, head);
    ptx_u32 first = ptx_prmt_b32(k, head[1], head[2], l->own[0]);
    ptx_u32 lower = ptx_and_b32(k, first, U32(0x3F3F3F3F));
    ptx_u32 last = ptx_prmt_b32(k, head[3], ptx_shr_u32(k, head[3], U32(4)), l->own[0]);
    ptx_u32 nibbles = ptx_and_b32(k, last, U32(DIRECT_NIBBLES));
    ptx_u32 upper =
        ptx_lop3_b32(k, ptx_shr_u32(k, first, U32(2)), U32(0x30303030), nibbles, DIRECT_AND_OR);
    widen_bytes(l, ptx_selp_u32(k, upper, lower, l->is_upper), four);
    direct_widen(l, head[0], ends);
    ptx_f32 d = ptx_mul_f32(k, ends[0], F32(direct_byte_unit));
    ptx_f32 minus = ptx_mul_f32(k, ends[1], F32(-direct_byte_unit));
    for (int i = 0; i < 2; i++) {
        direct_set(l, &l->scale[row][i], ptx_mul_f32(k, d, four[i]));
        direct_set(l, &l->addend[row][i], ptx_mul_f32(k, minus, four[2 + i]));
    }
}

static uint32_t by_nibble(uint32_t slice)
{
    return slice % 2;
}

/* Nibbles stay in their places. */
uint32_t direct_nibble_shift(uint32_t slice)
{
    return 4 * (slice % 2);
}

static void load_q4_k(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    (void)count;
    if (slice == 0)
        load_six_bits(l, row);
    if (slice % 8 == 0)
        load_four(l, row, l->codes, 16 + 2 * slice, l->words[row]);
}

static void q4_k_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    direct_nibble_pairs(l, l->words[row][slice / 2 % 4], slice % 2, to);
}

static void load_q5_k(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    (void)count;
    if (slice == 0)
        load_six_bits(l, row);
    if (slice % 8)
        return;
    load_four(l, row, l->codes, 48 + 2 * slice, l->words[row]);
    load_four(l, row, l->row, 16 + 2 * slice, l->high[row]);
    for (int i = 0; i < 4; i++)
        l->high[row][i] = ptx_shf_r_wrap_b32(l->k, l->high[row][i], l->high[row][i], l->own[1]);
}

/* A word's low or high nibbles, in bytes. */
ptx_u32 direct_nibbles_of(struct direct_lane *l, ptx_u32 word, bool high)
{
    return ptx_and_b32(l->k, high ? ptx_shr_u32(l->k, word, U32(4)) : word, U32(DIRECT_NIBBLES));
}

static void q5_k_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    ptx_kernel *k = l->k;
    uint32_t i = slice / 2 % 4, high = slice % 2;
    ptx_u32 bits = high ? ptx_shr_u32(k, l->high[row][i], U32(1)) : l->high[row][i];
    ptx_u32 nibbles = direct_nibbles_of(l, l->words[row][i], high);
    direct_byte_pairs(l, ptx_lop3_b32(k, bits, U32(0x10101010), nibbles, DIRECT_AND_OR), to);
}

/* Scales d·(number − bias), of numbers times 2⁻²⁴. */
static void set_biased(struct direct_lane *l, int row, int count, const ptx_f32 numbers[],
                       ptx_f32 d, float bias)
{
    ptx_kernel *k = l->k;
    ptx_f32 factor = ptx_mul_f32(k, d, F32(direct_byte_unit)), less = ptx_mul_f32(k, d, F32(-bias));
    for (int i = 0; i < count; i++)
        direct_set(l, &l->scale[row][i], ptx_fma_f32(k, numbers[i], factor, less));
}

/* ---- units that begin at even bytes ---- */

/* The word at `offset` of a row's unit, from the two aligned ones around it. */
static ptx_u32 shifted_word(struct direct_lane *l, int row, ptx_u32 at, uint32_t offset,
                            ptx_u32 shift)
{
    const int from = (int)(offset + (row ? l->row_step : 0));
    ptx_u32 low = ptx_ld_shared_u32(l->k, at, from), high = ptx_ld_shared_u32(l->k, at, from + 4);
    return ptx_shf_r_wrap_b32(l->k, low, high, shift);
}

/*
 * The 16 bytes from `offset` on of the units of row `row`, as words in the order of direct.h: byte
 * r of these is byte (r − past) % 16. `at` is where a unit would have its byte 0 without `past`.
 */
static void load_rotated(struct direct_lane *l, int row, ptx_u32 at, uint32_t offset, ptx_u32 *to)
{
    ptx_u32 first[4], second[4];
    load_four(l, row, at, offset, first);
    load_four(l, row, at, offset + 16, second);
    for (int i = 0; i < 4; i++)
        to[i] = ptx_prmt_b32(l->k, first[i], second[i], l->rotation[i]);
}

/* The f16 at `offset` of a row's unit. */
static ptx_f32 shifted_half(struct direct_lane *l, int row, uint32_t offset)
{
    ptx_kernel *k = l->k;
    ptx_u16 bits = ptx_ld_shared_u16(k, l->begin, (int)(offset + (row ? l->row_step : 0)));
    return ptx_cvt_f32_f16(k, ptx_u16_as_f16(bits));
}

/*
 * Four addresses, `at` + 4·(i ^ q): where quad lane q takes the words of its 16 bytes in that
 * order, the lanes of a row read from all banks at once.
 */
static void find_words(struct direct_lane *l, ptx_u32 at, ptx_u32 to[4])
{
    for (uint32_t i = 0; i < 4; i++) {
        ptx_u32 word = i ? ptx_xor_b32(l->k, l->own[2], U32(4 * i)) : l->own[2];
        to[i] = ptx_add_u32(l->k, at, word);
    }
}

/* Q6_K: quad lane q has 32 weights of both nibbles, from 128·(q / 2) + 32·(q % 2) on. */
static void begin_q6_k(struct direct_lane *l)
{
    ptx_kernel *k = l->k;
    l->own[0] = choose(l, 0x7632, 0x5410, is_odd(l));
    l->own[1] = ptx_shl_b32(k, ptx_and_b32(k, l->quad, U32(1)), U32(1));
}

static void load_q6_k_scales(struct direct_lane *l, int row)
{
    enum { SCALES = 192, D = 208 };
    ptx_kernel *k = l->k;
    ptx_u32 half = ptx_shr_u32(k, l->quad, U32(1)), words[2];
    ptx_u32 at = ptx_mad_lo_u32(k, half, U32(8), l->words_at);
    ptx_f32 numbers[4];
    for (uint32_t i = 0; i < 2; i++)
        words[i] = shifted_word(l, row, at, SCALES + 4 * i, l->shift);
    ptx_u32 four = ptx_prmt_b32(k, words[0], words[1], l->own[0]);
    widen_bytes(l, ptx_xor_b32(k, four, U32(DIRECT_SIGNS)), numbers);
    set_biased(l, row, 4, numbers, shifted_half(l, row, D), 128);
}

static void load_q6_k(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    enum { HIGH = 128, FIELDS = 0x33333333 };
    ptx_kernel *k = l->k;
    (void)count;
    if (slice == 0)
        load_q6_k_scales(l, row);
    if (slice % 8)
        return;
    ptx_u32 half = ptx_shr_u32(k, l->quad, U32(1));
    ptx_u32 high_at = ptx_mad_lo_u32(k, half, U32(32), l->row);
    load_rotated(l, row, l->codes, 2 * slice, l->words[row]);
    load_rotated(l, row, high_at, HIGH + 2 * slice, l->high[row]);
    for (int i = 0; i < 4; i++) {
        ptx_u32 fields = ptx_shr_u32(k, l->high[row][i], l->own[1]);
        l->high[row][i] = ptx_and_b32(k, fields, U32(FIELDS));
    }
}

/*
 * Each byte of `fields` has two bits of the low nibble's code from bit 0 on, and two of the high
 * nibble's from bit 4 on. The pair that is not this slice's always is where the nibble goes.
 */
static void q6_k_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    enum { SELECT = 0xCA /* lop3: a ? b : c, bit by bit */ };
    ptx_kernel *k = l->k;
    const bool high = slice % 2;
    ptx_u32 word = l->words[row][slice / 2 % 4], fields = l->high[row][slice / 2 % 4];
    ptx_u32 nibbles = high ? ptx_shr_u32(k, word, U32(4)) : word;
    ptx_u32 bits = high ? fields : ptx_shl_b32(k, fields, U32(4));
    direct_byte_pairs(l, ptx_lop3_b32(k, U32(DIRECT_NIBBLES), nibbles, bits, SELECT), to);
}

static uint32_t q6_k_scale(uint32_t slice)
{
    return 2 * (slice % 2) + slice / 8;
}

/* ---- Q2_K: quad lane q has the pairs of bits of bytes 16q to 16q + 15, word i being i ^ q ---- */

/* Byte q % 2 of both halves of a word, and of another one. */
static void begin_bytes_of_both(struct direct_lane *l)
{
    ptx_kernel *k = l->k;
    l->own[0] = choose(l, 0x7531, 0x6420, is_odd(l));
    l->own[1] = ptx_shl_b32(k, ptx_shr_u32(k, l->quad, U32(1)), U32(2)); /* 4·(q / 2) */
    l->own[2] = ptx_shl_b32(k, l->quad, U32(2));
}

static uint32_t by_pair(uint32_t slice)
{
    return slice % 4;
}

static uint32_t pair_shift(uint32_t slice)
{
    return 2 * (slice % 4);
}

static void load_q2_k_scales(struct direct_lane *l, int row)
{
    enum { ENDS = 80 };
    ptx_kernel *k = l->k;
    const int second = row ? (int)l->row_step : 0;
    ptx_u32 at = ptx_mad_lo_u32(k, l->own[1], U32(2), l->row), words[2];
    ptx_f32 ends[2], scales[4], minima[4];
    for (int i = 0; i < 2; i++)
        words[i] = ptx_ld_shared_u32(k, at, 4 * i + second);
    ptx_u32 both = ptx_prmt_b32(k, words[0], words[1], l->own[0]);
    widen_bytes(l, direct_nibbles_of(l, both, false), scales);
    widen_bytes(l, direct_nibbles_of(l, both, true), minima);
    direct_widen(l, ptx_ld_shared_u32(k, l->row, ENDS + second), ends);
    ptx_f32 d = ptx_mul_f32(k, ends[0], F32(direct_byte_unit));
    ptx_f32 minus = ptx_mul_f32(k, ends[1], F32(-direct_byte_unit));
    for (int i = 0; i < 4; i++) {
        direct_set(l, &l->scale[row][i], ptx_mul_f32(k, d, scales[i]));
        direct_set(l, &l->addend[row][i], ptx_mul_f32(k, minus, minima[i]));
    }
}

static void load_q2_k(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    enum { CODES = 16 };
    (void)count;
    if (slice == 0 && row == 0)
        find_words(l, l->codes, l->low_at);
    if (slice == 0)
        load_q2_k_scales(l, row);
    if (slice % 4 == 0)
        l->words[row][slice / 4] =
            ptx_ld_shared_u32(l->k, l->low_at[slice / 4], CODES + (row ? (int)l->row_step : 0));
}

static void q2_k_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    ptx_u32 word = l->words[row][slice / 4];
    to[0] = direct_masked(l, word, 3u << 2 * (slice % 4));
    to[1] = direct_masked(l, ptx_shr_u32(l->k, word, U32(8)), 3u << 2 * (slice % 4));
}

/* ---- Q3_K: as Q2_K, with a third bit for each code, and scales of six bits ---- */

static void load_q3_k_scales(struct direct_lane *l, int row)
{
    enum { SCALES = 96, D = 108 };
    ptx_kernel *k = l->k;
    ptx_u32 words[3];
    ptx_f32 numbers[4];
    for (uint32_t i = 0; i < 3; i++)
        words[i] = shifted_word(l, row, l->words_at, SCALES + 4 * i, l->shift);
    ptx_u32 low = ptx_shr_u32(k, ptx_prmt_b32(k, words[0], words[1], l->own[0]), l->own[1]);
    ptx_u32 upper = ptx_prmt_b32(k, words[2], ptx_shr_u32(k, words[2], U32(2)), l->own[0]);
    upper = ptx_shl_b32(k, ptx_shr_u32(k, upper, l->own[1]), U32(4));
    ptx_u32 nibbles = ptx_and_b32(k, low, U32(DIRECT_NIBBLES));
    widen_bytes(l, ptx_lop3_b32(k, upper, U32(0x30303030), nibbles, DIRECT_AND_OR), numbers);
    set_biased(l, row, 4, numbers, shifted_half(l, row, D), 32);
}

static void load_q3_k(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    enum { CODES = 32 };
    ptx_kernel *k = l->k;
    (void)count;
    if (slice)
        return;
    ptx_u32 odd = ptx_and_b32(k, l->quad, U32(1));
    ptx_u32 high_at = ptx_mad_lo_u32(k, odd, U32(16), l->row);
    load_q3_k_scales(l, row);
    load_rotated(l, row, l->codes, CODES, l->words[row]);
    load_rotated(l, row, high_at, 0, l->high[row]);
    for (int i = 0; i < 4; i++)
        l->high[row][i] = ptx_shr_u32(k, l->high[row][i], l->own[1]);
}

static void q3_k_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    ptx_kernel *k = l->k;
    const uint32_t t = slice % 4;
    ptx_u32 word = l->words[row][slice / 4], bits = l->high[row][slice / 4];
    ptx_u32 low = ptx_and_b32(k, t ? ptx_shr_u32(k, word, U32(2 * t)) : word, U32(0x03030303));
    ptx_u32 third = t == 3   ? ptx_shr_u32(k, bits, U32(1))
                    : t == 2 ? bits
                             : ptx_shl_b32(k, bits, U32(2 - t));
    direct_byte_pairs(l, ptx_lop3_b32(k, third, U32(0x04040404), low, DIRECT_AND_OR), to);
}

/* ---- IQ4_XS: quad lane q has two groups of 32, whose 16 bytes are the words i ^ q ---- */

static void begin_iq4_xs(struct direct_lane *l)
{
    ptx_kernel *k = l->k;
    l->own[0] = ptx_shl_b32(k, l->quad, U32(3));             /* to byte q */
    l->own[1] = ptx_mad_lo_u32(k, l->quad, U32(4), U32(16)); /* to bit 4q of the half */
    l->own[2] = ptx_shl_b32(k, l->quad, U32(2));
}

static void load_iq4_xs_scales(struct direct_lane *l, int row)
{
    ptx_kernel *k = l->k;
    const int second = row ? (int)l->row_step : 0;
    ptx_u32 head = ptx_ld_shared_u32(k, l->row, second);
    ptx_u32 low = ptx_shr_u32(k, ptx_ld_shared_u32(k, l->row, 4 + second), l->own[0]);
    ptx_u32 high = ptx_shr_u32(k, head, l->own[1]);
    ptx_f32 numbers[4], d[2];
    ptx_u32 first = ptx_and_b32(k, low, U32(0xF));
    ptx_u32 bytes = ptx_lop3_b32(k, ptx_shl_b32(k, low, U32(4)), U32(0xF00), first, DIRECT_AND_OR);
    bytes = ptx_lop3_b32(k, ptx_shl_b32(k, high, U32(4)), U32(0x30), bytes, DIRECT_AND_OR);
    bytes = ptx_lop3_b32(k, ptx_shl_b32(k, high, U32(10)), U32(0x3000), bytes, DIRECT_AND_OR);
    widen_bytes(l, bytes, numbers);
    direct_widen(l, head, d);
    set_biased(l, row, 2, numbers, d[0], 32);
}

static void load_iq4_xs(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    enum { CODES = 8 };
    (void)count;
    if (slice == 0 && row == 0)
        find_words(l, l->codes, l->low_at);
    if (slice == 0)
        load_iq4_xs_scales(l, row);
    if (slice % 2 == 0)
        direct_look_up(l,
                       ptx_ld_shared_u32(l->k, l->low_at[slice / 2 % 4],
                                         (int)(CODES + slice / 8 * 16 + (row ? l->row_step : 0))),
                       l->found[row]);
}

static void iq4_xs_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    direct_byte_pairs(l, l->found[row][slice % 2], to);
}

/* ---- the table ---- */

static const struct direct_type types[] = {
    {.type = PTXGEN_GGUF_Q4_K,
     .pitch = 144,
     .columns = {32, 64, 128, 16, 2, 4},
     .quad_bytes = 32,
     .begin = begin_six_bits,
     .load = load_q4_k,
     .codes = q4_k_codes,
     .scale_of = by_nibble,
     .shift_of = direct_nibble_shift},
    {.type = PTXGEN_GGUF_Q5_K,
     .pitch = 176,
     .columns = {32, 64, 128, 16, 2, 4},
     .quad_bytes = 32,
     .begin = begin_six_bits,
     .load = load_q5_k,
     .codes = q5_k_codes,
     .scale_of = by_nibble},
    {.type = PTXGEN_GGUF_Q6_K,
     .pitch = 240,
     .columns = {32, 64, 128, 2, 16, 4},
     .quad_bytes = 32,
     .bias = 32,
     .begin = begin_q6_k,
     .load = load_q6_k,
     .codes = q6_k_codes,
     .scale_of = q6_k_scale},
    {.type = PTXGEN_GGUF_Q2_K,
     .pitch = 112,
     .columns = {64, 128, 2 | 64, 16, 32, 4 | 128},
     .quad_bytes = 16,
     .begin = begin_bytes_of_both,
     .load = load_q2_k,
     .codes = q2_k_codes,
     .scale_of = by_pair,
     .shift_of = pair_shift},
    {.type = PTXGEN_GGUF_Q3_K,
     .pitch = 144,
     .columns = {64, 128, 2, 16, 32, 4},
     .quad_bytes = 16,
     .bias = 4,
     .begin = begin_bytes_of_both,
     .load = load_q3_k,
     .codes = q3_k_codes,
     .scale_of = by_pair},
    {.type = PTXGEN_GGUF_IQ4_XS,
     .pitch = 144,
     .columns = {32, 64, 16, 128, 2 | 32, 4 | 64},
     .quad_bytes = 32,
     .bias = 128,
     .begin = begin_iq4_xs,
     .load = load_iq4_xs,
     .codes = iq4_xs_codes,
     .scale_of = direct_by_block},
};

const struct direct_type *gguf_linear_direct_type(uint32_t type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return &types[i];
    return direct_short_type(type);
}

/* ---- a lane ---- */

ptx_u32 direct_past(ptx_kernel *k, const struct direct_type *type, ptx_u32 unit)
{
    return ptx_and_b32(k, ptx_mul_lo_u32(k, unit, U32(unit_bytes(type->type))), U32(15));
}

void direct_lane_begin(struct direct_lane *l)
{
    l->is_upper = ptx_setp_ge_u32(l->k, l->quad, U32(2));
    if (l->type->begin)
        l->type->begin(l);
}

/*
 * The unit begins `past` bytes, an even number, behind a multiple of 16. Of a pair of chunks of 16
 * bytes the second has the first `past` ones of a rotated chunk: prmt takes these as its bytes 4 to
 * 7, so their nibbles of the selectors are 4 more.
 */
static void enter_rotated(struct direct_lane *l, ptx_u32 past)
{
    enum { FIRST = 0x32103210, SECOND = 0x44444444, NOT_AND_OR = 0xAE /* lop3: (~a & b) | c */ };
    ptx_kernel *k = l->k;
    ptx_u32 bits = ptx_shl_b32(k, past, U32(2)), ones = U32(0xFFFFFFFF);
    ptx_u32 more = ptx_sub_u32(k, ptx_max_u32(k, bits, U32(32)), U32(32));
    const ptx_u32 first = ptx_shl_b32(k, ones, bits), second = ptx_shl_b32(k, ones, more);
    const ptx_u32 kept[2] = {first, second};
    for (int i = 0; i < 2; i++) {
        l->rotation[2 * i] = ptx_lop3_b32(k, kept[i], U32(SECOND), U32(FIRST), NOT_AND_OR);
        l->rotation[2 * i + 1] = ptx_shr_u32(k, l->rotation[2 * i], U32(16));
    }
    l->begin = ptx_add_u32(k, l->row, past);
    l->words_at = ptx_and_b32(k, l->begin, U32(~3u));
    l->shift = ptx_shl_b32(k, ptx_and_b32(k, past, U32(3)), U32(3));
}

void direct_lane_enter(struct direct_lane *l, ptx_u32 row, ptx_u32 unit)
{
    ptx_kernel *k = l->k;
    l->row = row;
    if (direct_shifts(l->type)) {
        ptx_u32 past = direct_past(k, l->type, unit);
        if (direct_rotates(l->type))
            enter_rotated(l, past);
        else
            l->row = ptx_add_u32(k, row, past);
    }
    l->codes = ptx_mad_lo_u32(k, l->quad, U32(l->type->quad_bytes), l->row);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < DIRECT_MOST_WORDS; j++)
            l->has_word[i][j] = false;
}

void direct_lane_load(struct direct_lane *l, uint32_t slice, uint32_t count)
{
    for (int row = 0; row < 2; row++)
        l->type->load(l, row, slice, count);
}

/* A number times `factor`, which is its product number i. */
static ptx_f32 product(struct direct_lane *l, struct direct_number *n, uint32_t i, float factor)
{
    if (!n->has_product[i])
        n->products[i] = ptx_mul_f32(l->k, n->single, F32(factor));
    n->has_product[i] = true;
    return n->products[i];
}

static ptx_f16x2 pair_of(struct direct_lane *l, uint32_t half)
{
    return ptx_u32_as_f16x2(ptx_mov_u32(l->k, U32(half * TWICE)));
}

/* Numbers times a scale that is a power of two: in f16 by both of its factors, else raised. */
static void weigh_floats(struct direct_lane *l, int row, uint32_t slice, ptx_u32 codes, ptx_u32 to)
{
    ptx_kernel *k = l->k;
    const uint32_t i = l->type->scale_of(slice);
    const struct direct_number *scale = &l->scale[row][i], *first = &l->addend[row][i];
    const ptx_f16x2 numbers = ptx_u32_as_f16x2(codes), weights = ptx_u32_as_f16x2(to);
    ptx_f32 parts[2];
    if (!l->bf16) {
        const ptx_f16x2 factors[2] = {ptx_u32_as_f16x2(first->pair), ptx_u32_as_f16x2(scale->pair)};
        ptx_f16x2 exact = ptx_mul_f16x2(k, numbers, factors[0]);
        ptx_mul_f16x2_to(k, weights, exact, factors[1]);
        return;
    }
    ptx_f16x2 raised = ptx_mul_f16x2(k, numbers, pair_of(l, DIRECT_RAISED));
    direct_widen(l, ptx_f16x2_as_u32(raised), parts);
    for (int half = 0; half < 2; half++)
        parts[half] = ptx_mul_f32(k, parts[half], scale->single);
    ptx_mov_u32_to(k, to, gemm_narrow_pair(k, true, parts[0], parts[1]));
}

static void weigh_in_f32(struct direct_lane *l, int row, uint32_t slice, uint32_t shift,
                         ptx_u32 codes, ptx_u32 to)
{
    const uint32_t i = l->type->scale_of(slice);
    const float unit = direct_byte_unit / (float)(1u << shift), bias = (float)l->type->bias;
    struct direct_number *n = &l->scale[row][i];
    ptx_f32 scale = product(l, n, shift / 2, unit), parts[2];
    ptx_f32 offset =
        l->type->bias ? product(l, n, DIRECT_BY_BIAS, -bias) : l->addend[row][i].single;
    direct_widen(l, codes, parts);
    for (int half = 0; half < 2; half++)
        parts[half] = ptx_fma_f32(l->k, parts[half], scale, offset);
    ptx_mov_u32_to(l->k, to, gemm_narrow_pair(l->k, l->bf16, parts[0], parts[1]));
}

static void weigh_in_f16(struct direct_lane *l, int row, uint32_t slice, uint32_t shift,
                         ptx_u32 codes, ptx_u32 to)
{
    enum { MANTISSA = 10, BIAS = 15, SIGN = 0x8000 };
    ptx_kernel *k = l->k;
    const struct direct_type *type = l->type;
    const uint32_t i = type->scale_of(slice);
    /* −(1024·2^−shift + bias) */
    const uint32_t less = SIGN | ((BIAS + MANTISSA - shift) << MANTISSA) | (type->bias << shift);
    ptx_f16x2 pair = ptx_u32_as_f16x2(codes), weights = ptx_u32_as_f16x2(to);
    ptx_f16x2 scale = ptx_u32_as_f16x2(l->scale[row][i].pair), minus = pair_of(l, less);
    if (shift) {
        ptx_f16x2 lower = pair_of(l, (BIAS - shift) << MANTISSA);
        pair = ptx_fma_f16x2(k, pair, lower, minus);
    } else
        pair = ptx_add_f16x2(k, pair, minus);
    if (type->bias)
        ptx_mul_f16x2_to(k, weights, pair, scale);
    else
        ptx_fma_f16x2_to(k, weights, pair, scale, ptx_u32_as_f16x2(l->addend[row][i].pair));
}

void direct_lane_decode(struct direct_lane *l, uint32_t slice, const ptx_u32 a[4])
{
    for (int row = 0; row < 2; row++) {
        const uint32_t shift = l->type->shift_of ? l->type->shift_of(slice) : 0;
        ptx_u32 pairs[2];
        l->type->codes(l, row, slice, pairs);
        for (int i = 0; i < 2; i++) {
            ptx_u32 to = a[2 * i + row];
            if (l->type->has_floats)
                weigh_floats(l, row, slice, pairs[i], to);
            else
                (l->bf16 ? weigh_in_f32 : weigh_in_f16)(l, row, slice, shift, pairs[i], to);
        }
    }
}
