/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types whose blocks have 32 weights, as direct_types.c has those of 256: quad lane q has the
 * blocks 2q and 2q + 1 of a unit, which follow each other. Slices 8b to 8b + 7 are of block b of
 * the two; of nibbles the even slices are low ones and the odd ones high ones of the same four
 * bytes.
 */
#include "direct_lane.h"
#include "emit.h"

#include "../gguf/block.h"

enum { BLOCKS = 2 };

static ptx_u32 word_at(struct direct_lane *l, int row, uint32_t i)
{
    if (!l->has_word[row][i])
        l->words[row][i] =
            ptx_ld_shared_u32(l->k, l->codes, (int)(4 * i + (row ? l->row_step : 0)));
    l->has_word[row][i] = true;
    return l->words[row][i];
}

/* The four bytes from an even offset on. */
static ptx_u32 bytes_at(struct direct_lane *l, int row, uint32_t offset)
{
    ptx_u32 first = word_at(l, row, offset / 4);
    if (offset % 4 == 0)
        return first;
    return ptx_prmt_b32(l->k, first, word_at(l, row, offset / 4 + 1), U32(0x5432));
}

uint32_t direct_by_block(uint32_t slice)
{
    return slice / 8;
}

/* ---- scales ---- */

static void set_number(struct direct_lane *l, int row, struct direct_number *to, uint32_t offset)
{
    direct_set_half(l, to, word_at(l, row, offset / 4), offset % 4 != 0);
}

/* The scale of block b at `offset`, of a type without a minimum. */
static void set_scale(struct direct_lane *l, int row, uint32_t b, uint32_t offset)
{
    set_number(l, row, &l->scale[row][b], offset);
}

/* The scale of block b at `offset`, and the minimum behind it. */
static void set_both(struct direct_lane *l, int row, uint32_t b, uint32_t offset)
{
    set_number(l, row, &l->scale[row][b], offset);
    set_number(l, row, &l->addend[row][b], offset + 2);
}

/* ---- blocks ---- */

/* The first byte of the four whose codes are a slice, in the lane's two blocks. */
static uint32_t nibbles_from(const struct direct_lane *l, uint32_t slice, uint32_t codes)
{
    return slice / 8 * (l->type->quad_bytes / BLOCKS) + codes + slice % 8 / 2 * 4;
}

static void load_nibbles(struct direct_lane *l, int row, uint32_t slice, uint32_t count,
                         uint32_t codes,
                         void (*set)(struct direct_lane *l, int row, uint32_t b, uint32_t offset))
{
    for (uint32_t i = slice; i < slice + count; i++) {
        if (i % 8 == 0)
            set(l, row, i / 8, i / 8 * (l->type->quad_bytes / BLOCKS));
        if (i % 2 == 0)
            l->found[row][0] = bytes_at(l, row, nibbles_from(l, i, codes));
    }
}

static void load_q4_0(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    load_nibbles(l, row, slice, count, 2, set_scale);
}

static void load_q4_1(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    load_nibbles(l, row, slice, count, 4, set_both);
}

static void nibble_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    direct_nibble_pairs(l, l->found[row][0], slice % 2, to);
}

/* Four bits of `bits` from `first` on become bit 4 of a byte each, over a word's nibbles. */
static void five_bit_codes(struct direct_lane *l, int row, uint32_t slice, uint32_t bits_at,
                           ptx_u32 to[2])
{
    ptx_kernel *k = l->k;
    const uint32_t first = slice % 2 * 16 + slice % 8 / 2 * 4;
    ptx_u32 bits = bytes_at(l, row, slice / 8 * (l->type->quad_bytes / BLOCKS) + bits_at);
    ptx_u32 four = ptx_bfe_u32(k, bits, U32(first), U32(4));
    ptx_u32 spread = ptx_mul_lo_u32(k, four, U32(0x02040810));
    ptx_u32 nibbles = direct_nibbles_of(l, l->found[row][0], slice % 2);
    direct_byte_pairs(l, ptx_lop3_b32(k, spread, U32(0x10101010), nibbles, DIRECT_AND_OR), to);
}

static void load_q5_0(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    load_nibbles(l, row, slice, count, 6, set_scale);
}

static void q5_0_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    five_bit_codes(l, row, slice, 2, to);
}

static void load_q5_1(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    load_nibbles(l, row, slice, count, 8, set_both);
}

static void q5_1_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    five_bit_codes(l, row, slice, 4, to);
}

static void load_q8_0(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    enum { BLOCK = 34 };
    for (uint32_t i = slice; i < slice + count; i++) {
        if (i % 8 == 0)
            set_scale(l, row, i / 8, BLOCK * (i / 8));
        bytes_at(l, row, BLOCK * (i / 8) + 2 + i % 8 * 4);
    }
}

static void q8_0_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    enum { BLOCK = 34 };
    ptx_u32 bytes = bytes_at(l, row, BLOCK * (slice / 8) + 2 + slice % 8 * 4);
    direct_byte_pairs(l, ptx_xor_b32(l->k, bytes, U32(DIRECT_SIGNS)), to);
}

/* ---- a table of numbers ---- */

/* Numbers of IQ4's table, which are 128 too large, for a word's low nibbles and its high ones. */
void direct_look_up(struct direct_lane *l, ptx_u32 word, ptx_u32 to[2])
{
    uint32_t packed[4] = {0};
    for (int i = 0; i < 16; i++)
        packed[i / 4] |= (uint32_t)(gguf_iq4[i] + 128) << i % 4 * 8;
    const ptx_u32 table[4] = {U32(packed[0]), U32(packed[1]), U32(packed[2]), U32(packed[3])};
    gguf_linear_look_up(l->k, table, word, to);
}

static void load_iq4_nl(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    for (uint32_t i = slice; i < slice + count; i++) {
        if (i % 8 == 0)
            set_scale(l, row, i / 8, i / 8 * (l->type->quad_bytes / BLOCKS));
        if (i % 2 == 0)
            direct_look_up(l, bytes_at(l, row, nibbles_from(l, i, 2)), l->found[row]);
    }
}

static void iq4_nl_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    direct_byte_pairs(l, l->found[row][slice % 2], to);
}

/* ---- MXFP4: blocks of 17 bytes, an exponent and nibbles in e2m1 ---- */

/*
 * A lane's 34 bytes begin 2 bytes behind a multiple of 4 where its number is odd. From there words
 * are counted: own[b] selects those of block b's nibbles, and own[2] is the bits before the bytes.
 */
static void begin_mxfp4(struct direct_lane *l)
{
    ptx_kernel *k = l->k;
    ptx_u32 odd = ptx_and_b32(k, l->quad, U32(1));
    l->own[0] = ptx_mad_lo_u32(k, odd, U32(0x2222), U32(0x4321));
    l->own[1] = ptx_mad_lo_u32(k, odd, U32(0x2222), U32(0x5432));
    l->own[2] = ptx_shl_b32(k, odd, U32(4));
}

/* The power of two whose exponent field in f32 is `field`. */
static ptx_f32 power(struct direct_lane *l, ptx_u32 field)
{
    return ptx_u32_as_f32(ptx_shl_b32(l->k, field, U32(23)));
}

/*
 * The scale of numbers 2⁻¹⁴·e2m1 is 2^(e − 113), which f16 does not always hold. So it is two
 * factors, of which the first makes no product of it inexact: 2¹¹ and 2^(e − 124), but for
 * e < 100 and e > 139, where the second has the exponent of 100 or 139, and the first the rest.
 * For bf16 it is 2^(e − 126), since numbers are raised to 2⁻¹·e2m1 first; so f32 holds it for all
 * e below 254.
 */
static void set_power(struct direct_lane *l, int row, uint32_t b)
{
    enum { LEAST = 100, MOST = 139, FIRST = 11, SECOND = -124, FIELD = 127, INFINITE = 255 };
    enum { RAISED = 13 }; /* DIRECT_RAISED is two to this */
    ptx_kernel *k = l->k;
    ptx_u32 at = b ? ptx_add_u32(k, l->own[2], U32(8)) : l->own[2];
    ptx_u32 e = ptx_bfe_u32(k, word_at(l, row, 4 * b), at, U32(8));
    if (l->bf16) {
        ptx_u32 field = ptx_add_u32(k, e, U32(FIELD + FIRST + SECOND - RAISED));
        direct_set(l, &l->scale[row][b], power(l, ptx_min_u32(k, field, U32(INFINITE))));
        return;
    }
    ptx_u32 held = ptx_min_u32(k, ptx_max_u32(k, e, U32(LEAST)), U32(MOST));
    ptx_u32 rest = ptx_add_u32(k, ptx_sub_u32(k, e, held), U32(FIELD + FIRST));
    direct_set(l, &l->addend[row][b], power(l, rest));
    direct_set(l, &l->scale[row][b], power(l, ptx_add_u32(k, held, U32(FIELD + SECOND))));
}

static void load_mxfp4(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    if (slice == 0 && row == 0)
        l->codes = ptx_and_b32(l->k, l->codes, U32(~3u));
    for (uint32_t i = slice; i < slice + count; i++) {
        const uint32_t block = i / 8, word = 4 * block + i % 8 / 2;
        if (i % 8 == 0)
            set_power(l, row, block);
        if (i % 2)
            continue;
        ptx_u32 first = word_at(l, row, word), second = word_at(l, row, word + 1);
        l->found[row][0] = ptx_prmt_b32(l->k, first, second, l->own[block]);
    }
}

/* The upper bytes of four numbers, their sign, two bits of exponent and one of mantissa. */
static void mxfp4_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    enum { MAGNITUDES = 0x0E0E0E0E };
    ptx_kernel *k = l->k;
    const bool high = slice % 2;
    ptx_u32 word = l->found[row][0], sign = high ? word : ptx_shl_b32(k, word, U32(4));
    ptx_u32 shifted = high ? ptx_shr_u32(k, word, U32(3)) : ptx_shl_b32(k, word, U32(1));
    ptx_u32 magnitudes = ptx_and_b32(k, shifted, U32(MAGNITUDES));
    ptx_u32 upper = ptx_lop3_b32(k, sign, U32(DIRECT_SIGNS), magnitudes, DIRECT_AND_OR);
    to[0] = ptx_prmt_b32(k, upper, U32(0), U32(0x2404));
    to[1] = ptx_prmt_b32(k, upper, U32(0), U32(0x3414));
}

/* ---- the table of types ---- */

static const struct direct_type types[] = {
    {.type = PTXGEN_GGUF_Q4_0,
     .pitch = 144,
     .columns = {32, 64, 16, 128, 2, 4},
     .quad_bytes = 36,
     .bias = 8,
     .load = load_q4_0,
     .codes = nibble_codes,
     .scale_of = direct_by_block,
     .shift_of = direct_nibble_shift},
    {.type = PTXGEN_GGUF_Q4_1,
     .pitch = 176,
     .columns = {32, 64, 16, 128, 2, 4},
     .quad_bytes = 40,
     .load = load_q4_1,
     .codes = nibble_codes,
     .scale_of = direct_by_block,
     .shift_of = direct_nibble_shift},
    {.type = PTXGEN_GGUF_Q5_0,
     .pitch = 176,
     .columns = {32, 64, 16, 128, 2, 4},
     .quad_bytes = 44,
     .bias = 16,
     .load = load_q5_0,
     .codes = q5_0_codes,
     .scale_of = direct_by_block},
    {.type = PTXGEN_GGUF_Q5_1,
     .pitch = 208,
     .columns = {32, 64, 16, 128, 2, 4},
     .quad_bytes = 48,
     .load = load_q5_1,
     .codes = q5_1_codes,
     .scale_of = direct_by_block},
    {.type = PTXGEN_GGUF_Q8_0,
     .pitch = 272,
     .columns = {16, 32, 64, 128, 2, 4},
     .quad_bytes = 68,
     .bias = 128,
     .load = load_q8_0,
     .codes = q8_0_codes,
     .scale_of = direct_by_block},
    {.type = PTXGEN_GGUF_IQ4_NL,
     .pitch = 144,
     .columns = {32, 64, 16, 128, 2, 4},
     .quad_bytes = 36,
     .bias = 128,
     .load = load_iq4_nl,
     .codes = iq4_nl_codes,
     .scale_of = direct_by_block},
    {.type = PTXGEN_GGUF_MXFP4,
     .pitch = 144,
     .columns = {32, 64, 16, 128, 2, 4},
     .quad_bytes = 34,
     .has_floats = true,
     .begin = begin_mxfp4,
     .load = load_mxfp4,
     .codes = mxfp4_codes,
     .scale_of = direct_by_block},
};

const struct direct_type *direct_short_type(uint32_t type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return &types[i];
    return NULL;
}
