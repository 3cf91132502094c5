/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the bytes of a unit in shared memory to operand A of wgmma. Each type finds the scales that
 * a lane needs of a row's unit, and for each slice the four codes of a run, as two pairs of f16.
 * A code in the low bits of 0x6400 is the f16 number 1024 + code, from which 1024 and the codes'
 * bias are taken away exactly; a nibble in bits 4 to 7 is 1024 + 16·code. Then
 *
 *     weight = round(fma(scale, code, offset))     in f32, rounded to f16 or bf16
 *     weight = d·code                              in f16, where that is all (is_single)
 *
 * which are the weights that gguf_rows decodes. Layouts stand in <ptxgen/gguf_types.h>. Machine
 * instructions for a weight are counted in docs/notes/gguf_linear.md.
 */
#include "direct_lane.h"

enum {
    AND_OR = 0xEA,      /* lop3: (a & b) | c */
    MAGIC = 0x64006400, /* a pair of 1024 */
    NIBBLES = 0x0F0F0F0F,
    SIGNS = 0x80808080u,
};

/* ---- small things ---- */

/* Halves of a pair of equal f16 with the value −(1024 + bias) · 2^−down. */
static ptx_f16x2 less(struct direct_lane *l, uint32_t bias, bool sixteenth)
{
    /* 1024 to 2047 are 0x6400 to 0x67FF; 64 to 127 and their sixteenths are 0x5400 to 0x57FF. */
    uint32_t half = sixteenth ? 0xD400 + 16 * bias : 0xE400 + bias;
    return ptx_u32_as_f16x2(ptx_mov_u32(l->k, U32(half * 0x00010001)));
}

/* Codes in the low bytes of both halves of a pair, less their bias. */
static ptx_u32 low_pair(struct direct_lane *l, ptx_u32 bits, uint32_t mask, uint32_t bias)
{
    ptx_kernel *k = l->k;
    ptx_u32 magic = ptx_lop3_b32(k, bits, U32(mask * 0x00010001), U32(MAGIC), AND_OR);
    return ptx_f16x2_as_u32(ptx_add_f16x2(k, ptx_u32_as_f16x2(magic), less(l, bias, false)));
}

/* Codes in bits 4 to 7 of both halves. */
static ptx_u32 high_pair(struct direct_lane *l, ptx_u32 bits, uint32_t bias)
{
    ptx_kernel *k = l->k;
    ptx_u32 magic = ptx_lop3_b32(k, bits, U32(0x00F000F0), U32(MAGIC), AND_OR);
    ptx_f16x2 sixteenth = ptx_u32_as_f16x2(ptx_mov_u32(k, U32(0x2C002C00)));
    return ptx_f16x2_as_u32(
        ptx_fma_f16x2(k, ptx_u32_as_f16x2(magic), sixteenth, less(l, bias, true)));
}

/* Four codes, a byte each. */
static void byte_pairs(struct direct_lane *l, ptx_u32 bytes, uint32_t mask, uint32_t bias,
                       ptx_u32 to[2])
{
    to[0] = low_pair(l, bytes, mask, bias);
    to[1] = low_pair(l, ptx_shr_u32(l->k, bytes, U32(8)), mask, bias);
}

/* Four codes that are the low or the high nibbles of a word. */
static void nibble_pairs(struct direct_lane *l, ptx_u32 word, bool high, uint32_t bias,
                         ptx_u32 to[2])
{
    ptx_u32 parts[2] = {word, ptx_shr_u32(l->k, word, U32(8))};
    for (int i = 0; i < 2; i++)
        to[i] = high ? high_pair(l, parts[i], bias) : low_pair(l, parts[i], 0xF, bias);
}

/* The two f16 of a word as f32. */
static void widen(struct direct_lane *l, ptx_u32 pair, ptx_f32 to[2])
{
    ptx_f16 parts[2];
    ptx_unpack_f16x2(l->k, parts, ptx_u32_as_f16x2(pair));
    for (int i = 0; i < 2; i++)
        to[i] = ptx_cvt_f32_f16(l->k, parts[i]);
}

/* Both halves of a pair the low, or the high, half of a word. */
static ptx_u32 twice(struct direct_lane *l, ptx_u32 word, bool high)
{
    return ptx_prmt_b32(l->k, word, word, U32(high ? 0x3232 : 0x1010));
}

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
    ptx_ld_shared_v4_u32(l->k, to, at, (int)(offset + (row ? l->second : 0)));
}

/* ---- Q4_K and Q5_K: quad lane q has weights 64q to 64q + 63, of two groups of 32 ---- */

static void begin_six_bits(struct direct_lane *l)
{
    ptx_kernel *k = l->k;
    l->own[0] = choose(l, 0x7632, 0x5410, is_odd(l));        /* two bytes of either of two words */
    l->own[1] = ptx_mad_lo_u32(k, l->quad, U32(2), U32(28)); /* brings bit 2q to bit 4 */
}

/* Scales and minima of the lane's two groups, and d and dmin. */
static void load_six_bits(struct direct_lane *l, int row)
{
    ptx_kernel *k = l->k;
    ptx_u32 head[4], pairs[2];
    ptx_f32 ends[2], scales[2], minima[2];
    load_four(l, row, l->row, 0, head);
    ptx_u32 first = ptx_prmt_b32(k, head[1], head[2], l->own[0]);
    ptx_u32 lower = ptx_and_b32(k, first, U32(0x3F3F3F3F));
    ptx_u32 last = ptx_prmt_b32(k, head[3], ptx_shr_u32(k, head[3], U32(4)), l->own[0]);
    ptx_u32 nibbles = ptx_and_b32(k, last, U32(NIBBLES));
    ptx_u32 upper =
        ptx_lop3_b32(k, ptx_shr_u32(k, first, U32(2)), U32(0x30303030), nibbles, AND_OR);
    ptx_u32 both = ptx_selp_u32(k, upper, lower, l->is_upper);
    byte_pairs(l, both, 0xFF, 0, pairs); /* scale 0 and minimum 0; scale 1 and minimum 1 */
    widen(l, head[0], ends);
    ptx_f32 minus = ptx_neg_f32(k, ends[1]);
    for (int i = 0; i < 2; i++) {
        ptx_f32 parts[2];
        widen(l, pairs[i], parts);
        scales[i] = parts[0];
        minima[i] = parts[1];
        l->scale[row][i] = ptx_mul_f32(k, ends[0], scales[i]);
        l->offset[row][i] = ptx_mul_f32(k, minus, minima[i]);
    }
    l->has_offset = true;
}

static uint32_t by_nibble(uint32_t slice)
{
    return slice % 2;
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
    nibble_pairs(l, l->words[row][slice / 2 % 4], slice % 2, 0, to);
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
static ptx_u32 nibbles_of(struct direct_lane *l, ptx_u32 word, bool high)
{
    return ptx_and_b32(l->k, high ? ptx_shr_u32(l->k, word, U32(4)) : word, U32(NIBBLES));
}

static void q5_k_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    ptx_kernel *k = l->k;
    uint32_t i = slice / 2 % 4, high = slice % 2;
    ptx_u32 bits = high ? ptx_shr_u32(k, l->high[row][i], U32(1)) : l->high[row][i];
    ptx_u32 nibbles = nibbles_of(l, l->words[row][i], high);
    byte_pairs(l, ptx_lop3_b32(k, bits, U32(0x10101010), nibbles, AND_OR), 0xFF, 0, to);
}

/* ---- blocks of 32: quad lane q has the blocks 2q and 2q + 1, which follow each other ---- */

static ptx_u32 word_at(struct direct_lane *l, int row, uint32_t i)
{
    if (!l->has_word[row][i])
        l->words[row][i] = ptx_ld_shared_u32(l->k, l->codes, (int)(4 * i + (row ? l->second : 0)));
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

/* The f16 at an even offset is the scale of a block. */
static void set_half(struct direct_lane *l, int row, uint32_t block, uint32_t offset)
{
    ptx_u32 word = word_at(l, row, offset / 4);
    if (!l->bf16) {
        l->halves[row][block] = twice(l, word, offset % 4);
        return;
    }
    ptx_f32 parts[2];
    widen(l, word, parts);
    l->scale[row][block] = parts[offset % 4 != 0];
}

static uint32_t by_block(uint32_t slice)
{
    return slice / 8;
}

static void load_q8_0(struct direct_lane *l, int row, uint32_t slice, uint32_t count)
{
    enum { BLOCK = 34 };
    uint32_t first = slice / 8, last = (slice + count - 1) / 8;
    for (uint32_t b = first; b <= last; b++)
        if (slice <= 8 * b)
            set_half(l, row, b, BLOCK * b);
    for (uint32_t i = slice; i < slice + count; i++)
        bytes_at(l, row, BLOCK * (i / 8) + 2 + i % 8 * 4);
}

static void q8_0_codes(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2])
{
    enum { BLOCK = 34 };
    ptx_u32 bytes = bytes_at(l, row, BLOCK * (slice / 8) + 2 + slice % 8 * 4);
    byte_pairs(l, ptx_xor_b32(l->k, bytes, U32(SIGNS)), 0xFF, 128, to);
}

/* ---- the table ---- */

static const struct direct_type types[] = {
    {PTXGEN_GGUF_Q4_K,
     144,
     {5, 6, 7, 4, 1, 2},
     32,
     false,
     begin_six_bits,
     load_q4_k,
     q4_k_codes,
     by_nibble},
    {PTXGEN_GGUF_Q5_K,
     176,
     {5, 6, 7, 4, 1, 2},
     32,
     false,
     begin_six_bits,
     load_q5_k,
     q5_k_codes,
     by_nibble},
    {PTXGEN_GGUF_Q8_0, 272, {4, 5, 6, 7, 1, 2}, 68, true, NULL, load_q8_0, q8_0_codes, by_block},
};

const struct direct_type *gguf_linear_direct_type(uint32_t type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return &types[i];
    return NULL;
}

/* ---- a lane ---- */

void direct_lane_begin(struct direct_lane *l)
{
    l->is_upper = ptx_setp_ge_u32(l->k, l->quad, U32(2));
    if (l->type->begin)
        l->type->begin(l);
}

void direct_lane_enter(struct direct_lane *l, ptx_u32 row)
{
    l->row = row;
    l->codes = ptx_mad_lo_u32(l->k, l->quad, U32(l->type->quad_bytes), row);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < DIRECT_MOST_WORDS; j++)
            l->has_word[i][j] = false;
}

void direct_lane_load(struct direct_lane *l, uint32_t slice, uint32_t count)
{
    for (int row = 0; row < 2; row++)
        l->type->load(l, row, slice, count);
}

/* A pair of codes as a pair of weights. */
static void weigh(struct direct_lane *l, int row, uint32_t scale, ptx_u32 pair, ptx_u32 to)
{
    ptx_kernel *k = l->k;
    ptx_f32 parts[2];
    if (l->type->is_single && !l->bf16) {
        ptx_mul_f16x2_to(k, ptx_u32_as_f16x2(to), ptx_u32_as_f16x2(pair),
                         ptx_u32_as_f16x2(l->halves[row][scale]));
        return;
    }
    widen(l, pair, parts);
    for (int i = 0; i < 2; i++)
        parts[i] = l->has_offset
                       ? ptx_fma_f32(k, parts[i], l->scale[row][scale], l->offset[row][scale])
                       : ptx_mul_f32(k, parts[i], l->scale[row][scale]);
    ptx_mov_u32_to(k, to, gemm_narrow_pair(k, l->bf16, parts[0], parts[1]));
}

void direct_lane_decode(struct direct_lane *l, uint32_t slice, const ptx_u32 a[4])
{
    for (int row = 0; row < 2; row++) {
        ptx_u32 pairs[2];
        l->type->codes(l, row, slice, pairs);
        for (int i = 0; i < 2; i++)
            weigh(l, row, l->type->scale_of(slice), pairs[i], a[2 * i + row]);
    }
}
