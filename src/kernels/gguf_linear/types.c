/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types: how a lane reads codes and scales of a unit of 256 weights from shared memory.
 *
 * mma.m16n8k32 takes from quad lane q, for its two rows, weights 4q to 4q + 3 and 16 + 4q to
 * 16 + 4q + 3 of a group of 32, as bytes. So a lane reads the word at 4q of whatever holds 16
 * weights, and its byte i belongs to weight 4q + i. A type is a row of the table at the end, with a
 * function for its codes and one for its scales; the layouts stand in <ptxgen/gguf_types.h>.
 *
 * Where rows lie at odd multiples of 2 bytes or of 1, a word is put together from the two words
 * that it is in, which the words before and after it share.
 */
#include "emit.h"

/* ---- reading ---- */

/* The aligned word `index` words on, of addresses that have been rounded down for `phase`. */
static ptx_u32 aligned_word(struct unit *u, int row, int phase, int index, bool by_lane)
{
    for (unsigned i = 0; i < u->word_count; i++)
        if (u->words[i].row == row && u->words[i].phase == phase && u->words[i].index == index &&
            u->words[i].by_lane == by_lane)
            return u->words[i].word;
    ptx_u32 base = by_lane ? u->lane_row[row] : u->row[row];
    if (u->align < 4)
        base = by_lane ? u->phases[row][phase].lane_row : u->phases[row][phase].row;
    ptx_u32 word = ptx_ld_shared_u32(u->k, base, 4 * index);
    unsigned at = u->word_count++;
    u->words[at].row = row;
    u->words[at].phase = phase;
    u->words[at].index = index;
    u->words[at].by_lane = by_lane;
    u->words[at].word = word;
    return word;
}

/* Rounds the addresses of a row's bytes `phase` on down, and finds how a word lies in two. */
static void find_phase(struct unit *u, int row, int phase)
{
    ptx_kernel *k = u->k;
    if (u->phases[row][phase].is_known)
        return;
    ptx_u32 exact = phase ? ptx_add_u32(k, u->row[row], U32((unsigned)phase)) : u->row[row];
    ptx_u32 shift = ptx_and_b32(k, exact, U32(3));
    u->phases[row][phase].is_known = true;
    u->phases[row][phase].row = ptx_sub_u32(k, exact, shift);
    u->phases[row][phase].lane_row = ptx_add_u32(k, u->phases[row][phase].row, u->quad4);
    u->phases[row][phase].selector = ptx_mad_lo_u32(k, shift, U32(0x1111), U32(0x3210));
}

/* The four bytes from `offset` on of a row; by lane, 4q bytes further. */
static ptx_u32 word_at(struct unit *u, int row, int offset, bool by_lane)
{
    offset += u->first;
    int phase = offset & 3, index = offset >> 2;
    if (u->align >= 4 && !phase)
        return aligned_word(u, row, 0, index, by_lane);
    int base = u->align < 4 ? phase : 0;
    ptx_u32 selector = U32(0x3210u + 0x1111u * (unsigned)phase);
    if (u->align < 4) {
        find_phase(u, row, phase);
        selector = u->phases[row][phase].selector;
    }
    ptx_u32 low = aligned_word(u, row, base, index, by_lane);
    ptx_u32 high = aligned_word(u, row, base, index + 1, by_lane);
    return ptx_prmt_b32(u->k, low, high, selector);
}
static ptx_u32 word(struct unit *u, int row, int offset)
{
    return word_at(u, row, offset, false);
}
static ptx_u32 lane_word(struct unit *u, int row, int offset)
{
    return word_at(u, row, offset, true);
}

static ptx_f32 half(struct unit *u, int row, int offset)
{
    ptx_u16 bits = ptx_ld_shared_u16(u->k, u->row[row], u->first + offset);
    return ptx_cvt_f32_f16(u->k, ptx_u16_as_f16(bits));
}

/* The two f16 of a word. */
static void halves(struct unit *u, ptx_u32 both, ptx_f32 *low, ptx_f32 *high)
{
    ptx_f16 parts[2];
    ptx_unpack_f16x2(u->k, parts, ptx_u32_as_f16x2(both));
    *low = ptx_cvt_f32_f16(u->k, parts[0]);
    *high = ptx_cvt_f32_f16(u->k, parts[1]);
}

/* ---- bits ---- */

static ptx_u32 masked(struct unit *u, ptx_u32 bits, unsigned shift, uint32_t mask)
{
    ptx_u32 down = shift ? ptx_shr_u32(u->k, bits, U32(shift)) : bits;
    return ptx_and_b32(u->k, down, U32(mask));
}

static ptx_u32 nibbles(struct unit *u, ptx_u32 bytes, bool high)
{
    return masked(u, bytes, high ? 4 : 0, 0x0F0F0F0F);
}

/* Bytes of at most 63 less `by`, as signed bytes; no carry leaves a byte. */
static ptx_u32 bytes_less(struct unit *u, ptx_u32 bytes, unsigned by)
{
    ptx_u32 raised = ptx_add_u32(u->k, bytes, U32((0x80 - by) * 0x01010101u));
    return ptx_xor_b32(u->k, raised, U32(0x80808080));
}

/* Bit `from` of each byte, as bit `to`, over `bytes`. */
static ptx_u32 with_bits(struct unit *u, ptx_u32 bytes, ptx_u32 bits, unsigned from, unsigned to,
                         uint32_t ones)
{
    ptx_kernel *k = u->k;
    ptx_u32 moved = from > to   ? ptx_shr_u32(k, bits, U32(from - to))
                    : from < to ? ptx_shl_b32(k, bits, U32(to - from))
                                : bits;
    ptx_u32 kept = ptx_and_b32(k, moved, U32((ones * 0x01010101u) << to));
    return ptx_or_b32(k, bytes, kept);
}

/* Bits `first` + 4q to `first` + 4q + 3, as bit 4 of a byte each, over `bytes`. */
static ptx_u32 with_fifth_bits(struct unit *u, ptx_u32 bytes, ptx_u32 bits, unsigned first)
{
    ptx_kernel *k = u->k;
    ptx_u32 shift = first ? ptx_add_u32(k, u->quad4, U32(first)) : u->quad4;
    ptx_u32 four = ptx_and_b32(k, ptx_shr_u32(k, bits, shift), U32(15));
    ptx_u32 spread = ptx_mul_lo_u32(k, four, U32(0x02040810));
    return ptx_or_b32(k, bytes, ptx_and_b32(k, spread, U32(0x10101010)));
}

void gguf_linear_look_up(ptx_kernel *k, const ptx_u32 table[4], ptx_u32 codes, ptx_u32 to[2])
{
    ptx_u32 three = ptx_and_b32(k, codes, U32(0x77777777));
    ptx_u32 top = ptx_and_b32(k, ptx_shr_u32(k, codes, U32(1)), U32(0x44444444));
    ptx_u32 pick = ptx_or_b32(k, top, U32(0x32103210)), found[2];
    for (int i = 0; i < 2; i++) {
        ptx_u32 index = i ? ptx_shr_u32(k, three, U32(16)) : three;
        ptx_u32 choice = i ? ptx_shr_u32(k, pick, U32(16)) : pick;
        ptx_u32 lower = ptx_prmt_b32(k, table[0], table[1], index);
        ptx_u32 upper = ptx_prmt_b32(k, table[2], table[3], index);
        found[i] = ptx_prmt_b32(k, lower, upper, choice);
    }
    to[0] = ptx_prmt_b32(k, found[0], found[1], U32(0x6420));
    to[1] = ptx_prmt_b32(k, found[0], found[1], U32(0x7531));
}

/* ---- blocks of 32 ---- */

static void nibbles_at(struct unit *u, int row, int offset, ptx_u32 to[2])
{
    ptx_u32 bytes = lane_word(u, row, offset);
    to[0] = nibbles(u, bytes, false);
    to[1] = nibbles(u, bytes, true);
}

static void five_bits_at(struct unit *u, int row, int high, int offset, ptx_u32 to[2])
{
    ptx_u32 bits = word(u, row, high);
    nibbles_at(u, row, offset, to);
    for (unsigned i = 0; i < 2; i++)
        to[i] = with_fifth_bits(u, to[i], bits, 16 * i);
}

static void lower_both(struct unit *u, ptx_u32 codes[2], unsigned by)
{
    for (int i = 0; i < 2; i++)
        codes[i] = bytes_less(u, codes[i], by);
}

static void q4_0_block(struct unit *u, unsigned g, int row)
{
    u->d[row] = half(u, row, 18 * (int)g);
}
static void q4_0_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    nibbles_at(u, row, 18 * (int)g + 2, to);
    lower_both(u, to, 8);
}

static void q4_1_block(struct unit *u, unsigned g, int row)
{
    halves(u, word(u, row, 20 * (int)g), &u->d[row], &u->dmin[row]);
}
static void q4_1_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    nibbles_at(u, row, 20 * (int)g + 4, to);
}

static void q5_0_block(struct unit *u, unsigned g, int row)
{
    u->d[row] = half(u, row, 22 * (int)g);
}
static void q5_0_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    five_bits_at(u, row, 22 * (int)g + 2, 22 * (int)g + 6, to);
    lower_both(u, to, 16);
}

static void q5_1_block(struct unit *u, unsigned g, int row)
{
    halves(u, word(u, row, 24 * (int)g), &u->d[row], &u->dmin[row]);
}
static void q5_1_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    five_bits_at(u, row, 24 * (int)g + 4, 24 * (int)g + 8, to);
}

static void q8_0_block(struct unit *u, unsigned g, int row)
{
    u->d[row] = half(u, row, 34 * (int)g);
}
static void q8_0_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    for (int i = 0; i < 2; i++)
        to[i] = lane_word(u, row, 34 * (int)g + 2 + 16 * i);
}

static void iq4_nl_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    gguf_linear_look_up(u->k, u->table, lane_word(u, row, 18 * (int)g + 2), to);
}

/* Half of e8m0, which is subnormal for the least two; the table has doubled numbers. */
static void mxfp4_block(struct unit *u, unsigned g, int row)
{
    ptx_kernel *k = u->k;
    ptx_u32 e = ptx_ld_shared_u8(k, u->row[row], u->first + 17 * (int)g);
    ptx_u32 normal = ptx_shl_b32(k, ptx_sub_u32(k, e, U32(1)), U32(23));
    ptx_u32 subnormal = ptx_shl_b32(k, U32(0x00200000), e);
    ptx_pred is_normal = ptx_setp_ge_u32(k, e, U32(2));
    u->d[row] = ptx_u32_as_f32(ptx_selp_u32(k, normal, subnormal, is_normal));
}
static void mxfp4_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    gguf_linear_look_up(u->k, u->table, lane_word(u, row, 17 * (int)g + 1), to);
}

/* ---- blocks of 256 ---- */

/* Four low bits from nibbles, and above them the top two of each byte of others. */
static ptx_u32 joined_scales(struct unit *u, ptx_u32 bytes, bool high, ptx_u32 tops)
{
    ptx_u32 low = nibbles(u, bytes, high);
    return ptx_or_b32(u->k, low, masked(u, tops, 2, 0x30303030));
}

/* Eight scales and eight minima of six bits in 12 bytes behind d and dmin. */
static void six_bit_scales(struct unit *u, int row)
{
    ptx_kernel *k = u->k;
    ptx_u32 s[3];
    halves(u, word(u, row, 0), &u->d[row], &u->dmin[row]);
    for (int i = 0; i < 3; i++)
        s[i] = word(u, row, 4 + 4 * i);
    u->scales[row][0] = masked(u, s[0], 0, 0x3F3F3F3F);
    u->scales[row][1] = joined_scales(u, s[2], false, s[0]);
    ptx_u32 low = masked(u, s[1], 0, 0x3F3F3F3F);
    ptx_u32 high = joined_scales(u, s[2], true, s[1]);
    u->minima[row] = ptx_prmt_b32(k, low, high, u->pair_bytes);
}

/* Low nibbles of 32 bytes are a group, high ones the next. */
static void nibble_pair(struct unit *u, unsigned g, int row, int offset, ptx_u32 to[2])
{
    for (int i = 0; i < 2; i++)
        to[i] = nibbles(u, lane_word(u, row, offset + 32 * (int)(g / 2) + 16 * i), g % 2);
}

static void q4_k_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    nibble_pair(u, g, row, 16, to);
}
static void q5_k_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    nibble_pair(u, g, row, 48, to);
    for (int i = 0; i < 2; i++)
        to[i] = with_bits(u, to[i], lane_word(u, row, 16 + 16 * i), g, 4, 1);
}

static void q6_k_scale(struct unit *u, int row)
{
    u->d[row] = half(u, row, 208);
    for (int i = 0; i < 4; i++)
        u->scales[row][i] = word(u, row, 192 + 4 * i);
    u->minima[row] = lane_word(u, row, 192);
}
static void q6_k_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    int low = 64 * (int)(g / 4) + 32 * (int)(g % 2), high = 128 + 32 * (int)(g / 4);
    for (int i = 0; i < 2; i++) {
        ptx_u32 four = nibbles(u, lane_word(u, row, low + 16 * i), g % 4 >= 2);
        to[i] = with_bits(u, four, lane_word(u, row, high + 16 * i), 2 * (g % 4), 4, 3);
    }
}

static void q2_k_scale(struct unit *u, int row)
{
    halves(u, word(u, row, 80), &u->d[row], &u->dmin[row]);
    for (int i = 0; i < 4; i++)
        u->scales[row][i] = nibbles(u, word(u, row, 4 * i), false);
    u->minima[row] = nibbles(u, lane_word(u, row, 0), true);
}
static void two_bits(struct unit *u, unsigned g, int row, int offset, ptx_u32 to[2])
{
    for (int i = 0; i < 2; i++)
        to[i] = masked(u, lane_word(u, row, offset + 32 * (int)(g / 4) + 16 * i), 2 * (g % 4),
                       0x03030303);
}
static void q2_k_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    two_bits(u, g, row, 16, to);
}

static void q3_k_scale(struct unit *u, int row)
{
    ptx_kernel *k = u->k;
    u->d[row] = half(u, row, 108);
    for (unsigned i = 0; i < 4; i++) {
        ptx_u32 low = nibbles(u, word(u, row, 96 + 4 * (int)(i % 2)), i >= 2);
        ptx_u32 six = with_bits(u, low, word(u, row, 104), 2 * i, 4, 3);
        u->scales[row][i] = bytes_less(u, six, 32);
    }
    ptx_u32 lower = ptx_selp_u32(k, u->scales[row][1], u->scales[row][0], u->odd);
    ptx_u32 upper = ptx_selp_u32(k, u->scales[row][3], u->scales[row][2], u->odd);
    u->minima[row] = ptx_selp_u32(k, upper, lower, u->upper);
}
static void q3_k_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    two_bits(u, g, row, 32, to);
    for (int i = 0; i < 2; i++)
        to[i] = with_bits(u, to[i], lane_word(u, row, 16 * i), g, 2, 1);
}

/* Pairs of bits of a byte as bits 4 and 5 of a byte each. */
static ptx_u32 spread_pairs(struct unit *u, ptx_u32 byte)
{
    ptx_kernel *k = u->k;
    ptx_u32 even = ptx_mul_lo_u32(k, ptx_and_b32(k, byte, U32(0x33)), U32(0x10010));
    ptx_u32 odd = ptx_mul_lo_u32(k, ptx_and_b32(k, byte, U32(0xCC)), U32(0x400400));
    ptx_u32 of_even = ptx_and_b32(k, even, U32(0x00300030));
    return ptx_or_b32(k, of_even, ptx_and_b32(k, odd, U32(0x30003000)));
}

static void iq4_xs_scale(struct unit *u, int row)
{
    ptx_kernel *k = u->k;
    ptx_u32 head = word(u, row, 0), packed = word(u, row, 4);
    ptx_u32 even = nibbles(u, packed, false), odd = nibbles(u, packed, true);
    u->d[row] = half(u, row, 0);
    for (unsigned i = 0; i < 2; i++) {
        ptx_u32 four = ptx_prmt_b32(k, even, odd, U32(i ? 0x7362 : 0x5140));
        ptx_u32 top = spread_pairs(u, ptx_shr_u32(k, head, U32(16 + 8 * i)));
        u->scales[row][i] = bytes_less(u, ptx_or_b32(k, four, top), 32);
    }
}
static void iq4_xs_codes(struct unit *u, unsigned g, int row, ptx_u32 to[2])
{
    gguf_linear_look_up(u->k, u->table, lane_word(u, row, 8 + 16 * (int)g), to);
}

/* ---- the table ---- */

static const uint32_t iq4_table[4] = {0xBFAD9881, 0xF6EADDCF, 0x26190D01, 0x71594535};
static const uint32_t e2m1_table[4] = {0x03020100, 0x0C080604, 0xFDFEFF00, 0xF4F8FAFC};

static const struct gguf_linear_type types[] = {
    {.type = PTXGEN_GGUF_F32, .facts = {1, 4, 4, SUMS_NONE}},
    {.type = PTXGEN_GGUF_F16, .facts = {1, 2, 2, SUMS_NONE}},
    {.type = PTXGEN_GGUF_BF16, .facts = {1, 2, 2, SUMS_NONE}},
    {PTXGEN_GGUF_Q4_0, {32, 18, 2, SUMS_NONE}, .block = q4_0_block, .codes = q4_0_codes},
    {PTXGEN_GGUF_Q4_1,
     {32, 20, 4, SUMS_F32},
     .has_dmin = true,
     .block = q4_1_block,
     .codes = q4_1_codes},
    {PTXGEN_GGUF_Q5_0, {32, 22, 2, SUMS_NONE}, .block = q5_0_block, .codes = q5_0_codes},
    {PTXGEN_GGUF_Q5_1,
     {32, 24, 8, SUMS_F32},
     .has_dmin = true,
     .block = q5_1_block,
     .codes = q5_1_codes},
    {PTXGEN_GGUF_Q8_0, {32, 34, 2, SUMS_NONE}, .block = q8_0_block, .codes = q8_0_codes},
    {PTXGEN_GGUF_Q2_K,
     {256, 84, 4, SUMS_S16},
     16,
     .has_dmin = true,
     .scale = q2_k_scale,
     .codes = q2_k_codes},
    {PTXGEN_GGUF_Q3_K,
     {256, 110, 2, SUMS_S16},
     16,
     .offset = 4,
     .scale = q3_k_scale,
     .codes = q3_k_codes},
    {PTXGEN_GGUF_Q4_K,
     {256, 144, 16, SUMS_S16},
     32,
     .has_dmin = true,
     .scale = six_bit_scales,
     .codes = q4_k_codes},
    {PTXGEN_GGUF_Q5_K,
     {256, 176, 16, SUMS_S16},
     32,
     .has_dmin = true,
     .scale = six_bit_scales,
     .codes = q5_k_codes},
    {PTXGEN_GGUF_Q6_K,
     {256, 210, 2, SUMS_S16},
     16,
     .offset = 32,
     .scale = q6_k_scale,
     .codes = q6_k_codes},
    {PTXGEN_GGUF_IQ4_NL,
     {32, 18, 2, SUMS_NONE},
     .table = iq4_table,
     .block = q4_0_block,
     .codes = iq4_nl_codes},
    {PTXGEN_GGUF_IQ4_XS,
     {256, 136, 8, SUMS_NONE},
     32,
     .table = iq4_table,
     .scale = iq4_xs_scale,
     .codes = iq4_xs_codes},
    {PTXGEN_GGUF_MXFP4,
     {32, 17, 1, SUMS_NONE},
     .table = e2m1_table,
     .block = mxfp4_block,
     .codes = mxfp4_codes},
};

const struct gguf_linear_type *gguf_linear_type(uint32_t type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return &types[i];
    return NULL;
}

const struct gguf_linear_facts *gguf_linear_facts(uint32_t type)
{
    const struct gguf_linear_type *t = gguf_linear_type(type);
    return t ? &t->facts : NULL;
}
