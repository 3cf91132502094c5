/* SPDX-License-Identifier: Apache-2.0 */
#include "block.h"

#include "../half.h"

#include <string.h>

const int8_t gguf_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                             1,    13,   25,  38,  53,  69,  89,  113};
const int8_t gguf_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static unsigned load_u16(const uint8_t *at)
{
    return at[0] | (unsigned)at[1] << 8;
}

static float load_f16(const uint8_t *at)
{
    return ptxgen_f16_to_f32((uint16_t)load_u16(at));
}

/* ---- codes ---- */

/* Low nibbles of `count` bytes, then the high ones. */
static void take_nibbles(const uint8_t *bytes, unsigned count, int8_t *codes)
{
    for (unsigned i = 0; i < count; i++) {
        codes[i] = bytes[i] & 15;
        codes[count + i] = bytes[i] >> 4;
    }
}

/* The two bits of 32 bytes each, the lowest first, as bits from `shift` on of 128 codes. */
static void add_pairs(const uint8_t *bytes, unsigned shift, int8_t *codes)
{
    for (unsigned i = 0; i < 128; i++)
        codes[i] = (int8_t)(codes[i] | (bytes[i % 32] >> i / 32 * 2 & 3) << shift);
}

/* Bits of 32 bytes, the lowest of all first, as bit `shift` of 256 codes. */
static void add_bits(const uint8_t *bytes, unsigned shift, int8_t *codes)
{
    for (unsigned i = 0; i < 256; i++)
        codes[i] = (int8_t)(codes[i] | (bytes[i % 32] >> i / 32 & 1) << shift);
}

static void shift_codes(int8_t *codes, unsigned count, int by)
{
    for (unsigned i = 0; i < count; i++)
        codes[i] = (int8_t)(codes[i] + by);
}

static void look_up(int8_t *codes, unsigned count, const int8_t values[16])
{
    for (unsigned i = 0; i < count; i++)
        codes[i] = values[codes[i]];
}

/* ---- blocks of 32 ---- */

static void set_group(struct gguf_block *block, float scale, float min)
{
    block->group = 32;
    block->scale[0] = scale;
    block->min[0] = min;
}

static void take_five_bits(const uint8_t *qh, const uint8_t *qs, int8_t *codes)
{
    take_nibbles(qs, 16, codes);
    for (unsigned i = 0; i < 32; i++)
        codes[i] = (int8_t)(codes[i] | (qh[i / 8] >> i % 8 & 1) << 4);
}

void gguf_unpack_q4_0(const uint8_t *bytes, struct gguf_block *block)
{
    set_group(block, load_f16(bytes), 0);
    take_nibbles(bytes + 2, 16, block->code);
    shift_codes(block->code, 32, -8);
}

void gguf_unpack_q4_1(const uint8_t *bytes, struct gguf_block *block)
{
    set_group(block, load_f16(bytes), -load_f16(bytes + 2));
    take_nibbles(bytes + 4, 16, block->code);
}

void gguf_unpack_q5_0(const uint8_t *bytes, struct gguf_block *block)
{
    set_group(block, load_f16(bytes), 0);
    take_five_bits(bytes + 2, bytes + 6, block->code);
    shift_codes(block->code, 32, -16);
}

void gguf_unpack_q5_1(const uint8_t *bytes, struct gguf_block *block)
{
    set_group(block, load_f16(bytes), -load_f16(bytes + 2));
    take_five_bits(bytes + 4, bytes + 8, block->code);
}

void gguf_unpack_q8_0(const uint8_t *bytes, struct gguf_block *block)
{
    set_group(block, load_f16(bytes), 0);
    memcpy(block->code, bytes + 2, 32);
}

void gguf_unpack_iq4_nl(const uint8_t *bytes, struct gguf_block *block)
{
    set_group(block, load_f16(bytes), 0);
    take_nibbles(bytes + 2, 16, block->code);
    look_up(block->code, 32, gguf_iq4);
}

float gguf_half_power(uint8_t e)
{
    uint32_t bits = e < 2 ? UINT32_C(0x00200000) << e : (uint32_t)(e - 1) << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void gguf_unpack_mxfp4(const uint8_t *bytes, struct gguf_block *block)
{
    set_group(block, gguf_half_power(bytes[0]), 0);
    take_nibbles(bytes + 1, 16, block->code);
    look_up(block->code, 32, gguf_e2m1);
}

/* ---- blocks of 256 ---- */

/* The six bits each of eight scales and eight minima in 12 bytes. */
static void take_scales(const uint8_t *bytes, struct gguf_block *block)
{
    float d = load_f16(bytes), dmin = load_f16(bytes + 2);
    const uint8_t *s = bytes + 4;
    block->group = 32;
    for (unsigned j = 0; j < 4; j++) {
        unsigned scale = (s[j + 8] & 15u) | s[j] >> 6 << 4;
        unsigned min = (unsigned)s[j + 8] >> 4 | s[j + 4] >> 6 << 4;
        block->scale[j] = d * (float)(s[j] & 63);
        block->min[j] = dmin * (float)(s[j + 4] & 63);
        block->scale[j + 4] = d * (float)scale;
        block->min[j + 4] = dmin * (float)min;
    }
}

void gguf_unpack_q4_k(const uint8_t *bytes, struct gguf_block *block)
{
    take_scales(bytes, block);
    for (unsigned i = 0; i < 4; i++)
        take_nibbles(bytes + 16 + 32 * i, 32, block->code + 64 * i);
}

void gguf_unpack_q5_k(const uint8_t *bytes, struct gguf_block *block)
{
    take_scales(bytes, block);
    for (unsigned i = 0; i < 4; i++)
        take_nibbles(bytes + 48 + 32 * i, 32, block->code + 64 * i);
    add_bits(bytes + 16, 4, block->code);
}

void gguf_unpack_q2_k(const uint8_t *bytes, struct gguf_block *block)
{
    float d = load_f16(bytes + 80), dmin = load_f16(bytes + 82);
    block->group = 16;
    for (unsigned g = 0; g < 16; g++) {
        block->scale[g] = d * (float)(bytes[g] & 15);
        block->min[g] = dmin * (float)(bytes[g] >> 4);
    }
    memset(block->code, 0, sizeof block->code);
    for (unsigned half = 0; half < 2; half++)
        add_pairs(bytes + 16 + 32 * half, 0, block->code + 128 * half);
}

void gguf_unpack_q3_k(const uint8_t *bytes, struct gguf_block *block)
{
    float d = load_f16(bytes + 108);
    const uint8_t *s = bytes + 96;
    block->group = 16;
    for (unsigned g = 0; g < 16; g++) {
        int low = s[g % 8] >> g / 8 * 4 & 15, high = s[8 + g % 4] >> g / 4 * 2 & 3;
        block->scale[g] = d * (float)((low | high << 4) - 32);
        block->min[g] = 0;
    }
    memset(block->code, 0, sizeof block->code);
    for (unsigned half = 0; half < 2; half++)
        add_pairs(bytes + 32 + 32 * half, 0, block->code + 128 * half);
    add_bits(bytes, 2, block->code);
    shift_codes(block->code, 256, -4);
}

void gguf_unpack_q6_k(const uint8_t *bytes, struct gguf_block *block)
{
    float d = load_f16(bytes + 208);
    const uint8_t *scales = bytes + 192;
    block->group = 16;
    for (unsigned g = 0; g < 16; g++) {
        block->scale[g] = d * (float)(int8_t)scales[g];
        block->min[g] = 0;
    }
    for (unsigned half = 0; half < 2; half++) {
        take_nibbles(bytes + 64 * half, 64, block->code + 128 * half);
        add_pairs(bytes + 128 + 32 * half, 4, block->code + 128 * half);
    }
    shift_codes(block->code, 256, -32);
}

void gguf_unpack_iq4_xs(const uint8_t *bytes, struct gguf_block *block)
{
    float d = load_f16(bytes);
    unsigned high = load_u16(bytes + 2);
    block->group = 32;
    for (unsigned g = 0; g < 8; g++) {
        int low = bytes[4 + g / 2] >> g % 2 * 4 & 15;
        block->scale[g] = d * (float)((low | (int)(high >> 2 * g & 3) << 4) - 32);
        block->min[g] = 0;
        take_nibbles(bytes + 8 + 16 * g, 16, block->code + 32 * g);
    }
    look_up(block->code, 256, gguf_iq4);
}
