/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function for each type, which finds what eight neighbouring weights of a block need: their
 * codes, as eight bytes from 0 on, and the numbers of
 *
 *     weight = scale · (code − bias) + offset
 *
 * A code less its bias, and its product with the scale, are exact in f32, as are scale and offset
 * themselves, so one fused multiply-add rounds as the host does. Layouts stand in
 * <ptxgen/gguf_types.h>; `chunk` counts eight weights, and `row` below counts them modulo 32.
 */
#include "decode.h"

#include "../gguf/block.h"

/* What eight weights are made of. */
struct codes {
    ptx_u32 words[2]; /* four codes each, the first one in the lowest byte */
    uint32_t bias;
    ptx_f32 scale, offset;
    bool has_offset;
};

/* ---- loads ---- */

/*
 * Two words from any bytes of shared memory: where blocks are not aligned to words, from the three
 * aligned words around them.
 */
static void load_words(const struct gguf_decoder *d, ptx_u32 at, int offset, ptx_u32 words[2])
{
    ptx_kernel *k = d->k;
    if (d->align == 4 && offset % 4 == 0) {
        words[0] = ptx_ld_shared_u32(k, at, offset);
        words[1] = ptx_ld_shared_u32(k, at, offset + 4);
        return;
    }
    ptx_u32 first = ptx_add_u32(k, at, U32((uint32_t)offset));
    ptx_u32 from = ptx_and_b32(k, first, U32(~3u)), parts[3];
    ptx_u32 shift = ptx_shl_b32(k, first, U32(3)); /* of which the funnel shift takes five bits */
    for (int i = 0; i < 3; i++)
        parts[i] = ptx_ld_shared_u32(k, from, 4 * i);
    for (int i = 0; i < 2; i++)
        words[i] = ptx_shf_r_wrap_b32(k, parts[i], parts[i + 1], shift);
}

static ptx_f32 load_half(const struct gguf_decoder *d, ptx_u32 at, int offset)
{
    return ptx_cvt_f32_f16(d->k, ptx_ld_shared_f16(d->k, at, offset));
}

/* base + (x / divide % modulo) · times, for powers of two */
static ptx_u32 add_scaled(const struct gguf_decoder *d, ptx_u32 base, ptx_u32 x, uint32_t divide,
                          uint32_t modulo, uint32_t times)
{
    ptx_u32 part = gemm_remainder(d->k, gemm_divide(d->k, x, divide), modulo);
    return ptx_mad_lo_u32(d->k, part, U32(times), base);
}

/* (x / divide % modulo) · times */
static ptx_u32 scaled(const struct gguf_decoder *d, ptx_u32 x, uint32_t divide, uint32_t modulo,
                      uint32_t times)
{
    ptx_u32 part = gemm_remainder(d->k, gemm_divide(d->k, x, divide), modulo);
    return ptx_mul_lo_u32(d->k, part, U32(times));
}

/* ---- codes ---- */

/* The fields of `mask` from bit `shift` on of each byte. */
static void take_fields(const struct gguf_decoder *d, ptx_u32 words[2], ptx_u32 shift,
                        uint32_t mask)
{
    for (int i = 0; i < 2; i++) {
        ptx_u32 moved = ptx_shr_u32(d->k, words[i], shift);
        words[i] = ptx_and_b32(d->k, moved, U32(mask * 0x01010101u));
    }
}

/* Adds fields to the codes, from bit `up` on. */
static void add_fields(const struct gguf_decoder *d, struct codes *c, const ptx_u32 fields[2],
                       uint32_t up)
{
    for (int i = 0; i < 2; i++) {
        ptx_u32 moved = ptx_shl_b32(d->k, fields[i], U32(up));
        c->words[i] = ptx_or_b32(d->k, c->words[i], moved);
    }
}

/* The nibbles of 16 bytes: low ones first, then high ones, of a group of 32. */
static void take_nibbles(const struct gguf_decoder *d, ptx_u32 at, int offset, ptx_u32 row,
                         struct codes *c)
{
    load_words(d, add_scaled(d, at, row, 1, 2, 8), offset, c->words);
    take_fields(d, c->words, scaled(d, row, 2, 2, 4), 0xF);
}

/* Bits of 32 bytes, bit chunk / 4 of each, as bit `up` of the codes. */
static void add_bits(const struct gguf_decoder *d, ptx_u32 block, int offset, ptx_u32 chunk,
                     uint32_t up, struct codes *c)
{
    ptx_u32 bits[2];
    load_words(d, add_scaled(d, block, chunk, 1, 4, 8), offset, bits);
    take_fields(d, bits, ptx_shr_u32(d->k, chunk, U32(2)), 1);
    add_fields(d, c, bits, up);
}

/* Pairs of bits of twice 32 bytes, as those of Q2_K lie. */
static void load_pairs(const struct gguf_decoder *d, ptx_u32 block, int offset, ptx_u32 chunk,
                       ptx_u32 pairs[2])
{
    ptx_u32 half = add_scaled(d, block, chunk, 16, 2, 32);
    load_words(d, add_scaled(d, half, chunk, 1, 4, 8), offset, pairs);
    take_fields(d, pairs, scaled(d, chunk, 4, 4, 2), 3);
}

/*
 * Replaces nibbles by bytes of a table of signed numbers, with the bias 128. The eight nibbles
 * become a word of selectors; their lower three bits select among eight bytes, and bit 3 between
 * the halves of the table.
 */
static void look_up(const struct gguf_decoder *d, const int8_t table[16], struct codes *c)
{
    ptx_kernel *k = d->k;
    uint32_t packed[4] = {0};
    for (int i = 0; i < 16; i++)
        packed[i / 4] |= (uint32_t)(table[i] + 128) << i % 4 * 8;
    ptx_u32 pairs[2];
    for (int i = 0; i < 2; i++)
        pairs[i] = ptx_or_b32(k, c->words[i], ptx_shr_u32(k, c->words[i], U32(4)));
    ptx_u32 nibbles = ptx_prmt_b32(k, pairs[0], pairs[1], U32(0x6420));
    ptx_u32 index = ptx_and_b32(k, nibbles, U32(0x77777777));
    ptx_u32 upper = ptx_shr_u32(k, ptx_and_b32(k, nibbles, U32(0x88888888)), U32(1));
    ptx_u32 pick = ptx_or_b32(k, upper, U32(0x32103210));
    for (int i = 0; i < 2; i++) {
        ptx_u32 from = i ? ptx_shr_u32(k, index, U32(16)) : index;
        ptx_u32 choice = i ? ptx_shr_u32(k, pick, U32(16)) : pick;
        ptx_u32 low = ptx_prmt_b32(k, U32(packed[0]), U32(packed[1]), from);
        ptx_u32 high = ptx_prmt_b32(k, U32(packed[2]), U32(packed[3]), from);
        c->words[i] = ptx_prmt_b32(k, low, high, choice);
    }
    c->bias = 128;
}

/* ---- blocks of 32 ---- */

static void decode_q4_0(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk, struct codes *c)
{
    take_nibbles(d, block, 2, chunk, c);
    c->scale = load_half(d, block, 0);
    c->bias = 8;
}

static void set_min(const struct gguf_decoder *d, ptx_u32 block, struct codes *c)
{
    c->scale = load_half(d, block, 0);
    c->offset = load_half(d, block, 2);
    c->has_offset = true;
}

static void decode_q4_1(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk, struct codes *c)
{
    take_nibbles(d, block, 4, chunk, c);
    set_min(d, block, c);
}

/* The fifth bits of a chunk are a byte; a product puts the bits of a nibble into four bytes. */
static void add_fifth_bits(const struct gguf_decoder *d, ptx_u32 block, int offset, ptx_u32 chunk,
                           struct codes *c)
{
    ptx_kernel *k = d->k;
    ptx_u32 byte = ptx_ld_shared_u8(k, ptx_add_u32(k, block, chunk), offset), bits[2];
    for (int i = 0; i < 2; i++) {
        ptx_u32 nibble = i ? ptx_shr_u32(k, byte, U32(4)) : ptx_and_b32(k, byte, U32(15));
        ptx_u32 spread = ptx_mul_lo_u32(k, nibble, U32(0x00204081));
        bits[i] = ptx_and_b32(k, spread, U32(0x01010101));
    }
    add_fields(d, c, bits, 4);
}

static void decode_q5_0(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk, struct codes *c)
{
    take_nibbles(d, block, 6, chunk, c);
    add_fifth_bits(d, block, 2, chunk, c);
    c->scale = load_half(d, block, 0);
    c->bias = 16;
}

static void decode_q5_1(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk, struct codes *c)
{
    take_nibbles(d, block, 8, chunk, c);
    add_fifth_bits(d, block, 4, chunk, c);
    set_min(d, block, c);
}

static void decode_q8_0(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk, struct codes *c)
{
    load_words(d, add_scaled(d, block, chunk, 1, 4, 8), 2, c->words);
    for (int i = 0; i < 2; i++)
        c->words[i] = ptx_xor_b32(d->k, c->words[i], U32(0x80808080));
    c->scale = load_half(d, block, 0);
    c->bias = 128;
}

static void decode_iq4_nl(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk,
                          struct codes *c)
{
    decode_q4_0(d, block, chunk, c);
    look_up(d, gguf_iq4, c);
}

/* The scale is 2^(e − 128): the exponent less one, but a subnormal number for the least two. */
static void decode_mxfp4(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk,
                         struct codes *c)
{
    ptx_kernel *k = d->k;
    ptx_u32 e = ptx_ld_shared_u8(k, block, 0);
    ptx_u32 normal = ptx_shl_b32(k, ptx_sub_u32(k, e, U32(1)), U32(23));
    ptx_u32 subnormal = ptx_shl_b32(k, U32(0x00200000), e);
    ptx_pred is_least = ptx_setp_lt_u32(k, e, U32(2));
    take_nibbles(d, block, 1, chunk, c);
    c->scale = ptx_u32_as_f32(ptx_selp_u32(k, subnormal, normal, is_least));
    look_up(d, gguf_e2m1, c);
}

/* ---- blocks of 256 ---- */

static ptx_f32 float_of(const struct gguf_decoder *d, ptx_u32 value, int32_t bias)
{
    ptx_s32 number = ptx_u32_as_s32(value);
    return ptx_cvt_f32_s32(d->k, bias ? ptx_sub_s32(d->k, number, S32(bias)) : number);
}

/* scale = d · scale, offset = −dmin · min */
static void set_products(const struct gguf_decoder *d, ptx_u32 block, int offset, ptx_u32 scale,
                         ptx_u32 min, struct codes *c)
{
    ptx_kernel *k = d->k;
    ptx_f32 least = ptx_neg_f32(k, load_half(d, block, offset + 2));
    ptx_f32 factor = load_half(d, block, offset);
    c->scale = ptx_mul_f32(k, factor, float_of(d, scale, 0));
    c->offset = ptx_mul_f32(k, least, float_of(d, min, 0));
    c->has_offset = true;
}

/* scale = d · (scale − bias) */
static void set_product(const struct gguf_decoder *d, ptx_u32 block, int offset, ptx_u32 scale,
                        int32_t bias, struct codes *c)
{
    ptx_f32 factor = load_half(d, block, offset);
    c->scale = ptx_mul_f32(d->k, factor, float_of(d, scale, bias));
}

static void decode_q2_k(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk, struct codes *c)
{
    ptx_kernel *k = d->k;
    load_pairs(d, block, 16, chunk, c->words);
    ptx_u32 both = ptx_ld_shared_u8(k, add_scaled(d, block, chunk, 2, 16, 1), 0);
    ptx_u32 scale = ptx_and_b32(k, both, U32(15)), min = ptx_shr_u32(k, both, U32(4));
    set_products(d, block, 80, scale, min, c);
}

static void decode_q3_k(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk, struct codes *c)
{
    ptx_kernel *k = d->k;
    load_pairs(d, block, 32, chunk, c->words);
    add_bits(d, block, 0, chunk, 2, c);
    ptx_u32 low = ptx_ld_shared_u8(k, add_scaled(d, block, chunk, 2, 8, 1), 96);
    ptx_u32 high = ptx_ld_shared_u8(k, add_scaled(d, block, chunk, 2, 4, 1), 104);
    low = ptx_and_b32(k, ptx_shr_u32(k, low, scaled(d, chunk, 16, 2, 4)), U32(15));
    high = ptx_and_b32(k, ptx_shr_u32(k, high, scaled(d, chunk, 8, 4, 2)), U32(3));
    set_product(d, block, 108, ptx_mad_lo_u32(k, high, U32(16), low), 32, c);
    c->bias = 4;
}

/* Scale and minimum of 32 weights, six bits each, of Q4_K and Q5_K. */
static void set_six_bits(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk,
                         struct codes *c)
{
    ptx_kernel *k = d->k;
    ptx_u32 at = add_scaled(d, block, chunk, 4, 4, 1);
    ptx_u32 scale = ptx_ld_shared_u8(k, at, 4), min = ptx_ld_shared_u8(k, at, 8);
    ptx_u32 nibbles = ptx_ld_shared_u8(k, at, 12);
    ptx_u32 low_scale = ptx_and_b32(k, scale, U32(63)), low_min = ptx_and_b32(k, min, U32(63));
    ptx_u32 top_scale = ptx_shr_u32(k, scale, U32(6)), top_min = ptx_shr_u32(k, min, U32(6));
    ptx_u32 first = ptx_and_b32(k, nibbles, U32(15)), second = ptx_shr_u32(k, nibbles, U32(4));
    ptx_pred is_upper = ptx_setp_ge_u32(k, chunk, U32(16));
    ptx_u32 high_scale = ptx_mad_lo_u32(k, top_scale, U32(16), first);
    ptx_u32 high_min = ptx_mad_lo_u32(k, top_min, U32(16), second);
    scale = ptx_selp_u32(k, high_scale, low_scale, is_upper);
    min = ptx_selp_u32(k, high_min, low_min, is_upper);
    set_products(d, block, 0, scale, min, c);
}

/* Nibbles of 32 bytes for 64 weights. */
static void take_long_nibbles(const struct gguf_decoder *d, ptx_u32 block, int offset,
                              ptx_u32 chunk, struct codes *c)
{
    ptx_u32 group = add_scaled(d, block, chunk, 8, 4, 32);
    load_words(d, add_scaled(d, group, chunk, 1, 4, 8), offset, c->words);
    take_fields(d, c->words, scaled(d, chunk, 4, 2, 4), 0xF);
}

static void decode_q4_k(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk, struct codes *c)
{
    take_long_nibbles(d, block, 16, chunk, c);
    set_six_bits(d, block, chunk, c);
}

static void decode_q5_k(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk, struct codes *c)
{
    take_long_nibbles(d, block, 48, chunk, c);
    add_bits(d, block, 16, chunk, 4, c);
    set_six_bits(d, block, chunk, c);
}

static void decode_q6_k(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk, struct codes *c)
{
    ptx_kernel *k = d->k;
    ptx_u32 pairs[2], half = add_scaled(d, block, chunk, 16, 2, 64);
    load_words(d, add_scaled(d, half, chunk, 1, 8, 8), 0, c->words);
    take_fields(d, c->words, scaled(d, chunk, 8, 2, 4), 0xF);
    load_pairs(d, block, 128, chunk, pairs);
    add_fields(d, c, pairs, 4);
    ptx_s32 scale = ptx_ld_shared_s8(k, add_scaled(d, block, chunk, 2, 16, 1), 192);
    set_product(d, block, 208, ptx_s32_as_u32(scale), 0, c);
    c->bias = 32;
}

static void decode_iq4_xs(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk,
                          struct codes *c)
{
    ptx_kernel *k = d->k;
    ptx_u32 low = ptx_ld_shared_u8(k, add_scaled(d, block, chunk, 8, 4, 1), 4);
    ptx_u32 high = ptx_cvt_u32_u16(k, ptx_ld_shared_u16(k, block, 2));
    low = ptx_and_b32(k, ptx_shr_u32(k, low, scaled(d, chunk, 4, 2, 4)), U32(15));
    high = ptx_and_b32(k, ptx_shr_u32(k, high, scaled(d, chunk, 4, 8, 2)), U32(3));
    ptx_u32 group = add_scaled(d, block, chunk, 4, 8, 16);
    take_nibbles(d, group, 8, gemm_remainder(k, chunk, 4), c);
    look_up(d, gguf_iq4, c);
    set_product(d, block, 0, ptx_mad_lo_u32(k, high, U32(16), low), 32, c);
}

/* ---- any type ---- */

typedef void decode_codes(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk,
                          struct codes *c);

static const struct {
    uint32_t type;
    decode_codes *codes;
} decoders[] = {
    {PTXGEN_GGUF_Q4_0, decode_q4_0},     {PTXGEN_GGUF_Q4_1, decode_q4_1},
    {PTXGEN_GGUF_Q5_0, decode_q5_0},     {PTXGEN_GGUF_Q5_1, decode_q5_1},
    {PTXGEN_GGUF_Q8_0, decode_q8_0},     {PTXGEN_GGUF_Q2_K, decode_q2_k},
    {PTXGEN_GGUF_Q3_K, decode_q3_k},     {PTXGEN_GGUF_Q4_K, decode_q4_k},
    {PTXGEN_GGUF_Q5_K, decode_q5_k},     {PTXGEN_GGUF_Q6_K, decode_q6_k},
    {PTXGEN_GGUF_IQ4_NL, decode_iq4_nl}, {PTXGEN_GGUF_IQ4_XS, decode_iq4_xs},
    {PTXGEN_GGUF_MXFP4, decode_mxfp4},
};

static decode_codes *decoder_of(uint32_t type)
{
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++)
        if (decoders[i].type == type)
            return decoders[i].codes;
    return NULL;
}

/* Byte `i` of a word below the exponent of 2²³ is the number 2²³ + byte. */
static ptx_f32 number_of(const struct gguf_decoder *d, const struct codes *c, uint32_t i)
{
    ptx_kernel *k = d->k;
    ptx_u32 bits = ptx_prmt_b32(k, c->words[i / 4], U32(0x4B000000), U32(0x7540 | i % 4));
    return ptx_sub_f32(k, ptx_u32_as_f32(bits), F32(0x1p23f + (float)c->bias));
}

/* Floats are eight numbers one after the other. */
static void load_floats(const struct gguf_decoder *d, ptx_u32 at, ptx_f32 weights[])
{
    ptx_kernel *k = d->k;
    ptx_u32 words[GGUF_ROWS_CHUNK];
    uint32_t count = GGUF_ROWS_CHUNK * d->type->block_bytes / 4;
    for (uint32_t i = 0; i < count; i += 2)
        load_words(d, at, (int)(4 * i), words + i);
    for (uint32_t i = 0; i < GGUF_ROWS_CHUNK; i++) {
        ptx_u32 word = words[i * count / GGUF_ROWS_CHUNK];
        if (d->type->type == PTXGEN_GGUF_F32) {
            weights[i] = ptx_u32_as_f32(word);
        } else if (d->type->type == PTXGEN_GGUF_BF16) {
            weights[i] = ptx_u32_as_f32(i % 2 ? ptx_and_b32(k, word, U32(0xFFFF0000))
                                              : ptx_shl_b32(k, word, U32(16)));
        } else {
            ptx_f16 halves[2];
            ptx_unpack_f16x2(k, halves, ptx_u32_as_f16x2(word));
            weights[i] = ptx_cvt_f32_f16(k, halves[i % 2]);
        }
    }
}

void gguf_decode_chunk(const struct gguf_decoder *d, ptx_u32 block, ptx_u32 chunk,
                       ptx_f32 weights[GGUF_ROWS_CHUNK])
{
    struct codes c = {.bias = 0};
    decode_codes *codes = decoder_of(d->type->type);
    if (!codes) {
        load_floats(d, block, weights);
        return;
    }
    codes(d, block, chunk, &c);
    for (uint32_t i = 0; i < GGUF_ROWS_CHUNK; i++) {
        ptx_f32 number = number_of(d, &c, i);
        weights[i] = c.has_offset ? ptx_fma_f32(d->k, c.scale, number, c.offset)
                                  : ptx_mul_f32(d->k, c.scale, number);
    }
}
