/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f32 to the types with blocks of 32, as ggml's quantize_row_*_ref do it: the same operations in
 * f32, in the same order, so that rows have the same bits. A number that no code stands for becomes
 * the nearest code that the type has.
 */
#include "block.h"

#include "../half.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 32 };

void gguf_store_f16(uint8_t *at, float value)
{
    uint16_t bits = ptxgen_f64_to_f16((double)value);
    at[0] = (uint8_t)bits;
    at[1] = (uint8_t)(bits >> 8);
}

/* Rounded down, between 0 and `most`; a NaN is 0. */
static unsigned code_below(float value, unsigned most)
{
    return !(value > 0) ? 0 : value >= (float)most ? most : (unsigned)value;
}

static float inverse_of(float d)
{
    return d != 0 ? 1 / d : 0;
}

/* Stores nibbles as bytes hold them, and fifth bits in front of them if there are any. */
static void store_codes(const unsigned codes[BLOCK], bool has_fifth, uint8_t *bytes)
{
    if (has_fifth) {
        memset(bytes, 0, BLOCK / 8);
        for (unsigned i = 0; i < BLOCK; i++)
            bytes[i / 8] = (uint8_t)(bytes[i / 8] | (codes[i] >> 4) << i % 8);
        bytes += BLOCK / 8;
    }
    for (unsigned i = 0; i < BLOCK / 2; i++)
        bytes[i] = (uint8_t)((codes[i] & 15) | (codes[i + BLOCK / 2] & 15) << 4);
}

/* The weight of the largest magnitude, of equal ones the first. */
static float extreme_of(const float *weights)
{
    float extreme = 0;
    for (int i = 0; i < BLOCK; i++)
        if (fabsf(weights[i]) > fabsf(extreme))
            extreme = weights[i];
    return extreme;
}

/* Codes around `half`, of which the extreme weight has 0. */
static void quantise_symmetric(const float *weights, unsigned half, uint8_t *bytes)
{
    float d = extreme_of(weights) / -(float)half, inverse = inverse_of(d);
    unsigned codes[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        codes[i] = code_below(weights[i] * inverse + ((float)half + 0.5f), 2 * half - 1);
    gguf_store_f16(bytes, d);
    store_codes(codes, half > 8, bytes + 2);
}

/* Codes from the least weight, 0, to the largest, `most`. */
static void quantise_from_least(const float *weights, unsigned most, uint8_t *bytes)
{
    float least = weights[0], largest = weights[0];
    for (int i = 1; i < BLOCK; i++) {
        least = weights[i] < least ? weights[i] : least;
        largest = weights[i] > largest ? weights[i] : largest;
    }
    float d = (largest - least) / (float)most, inverse = inverse_of(d);
    unsigned codes[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        codes[i] = code_below((weights[i] - least) * inverse + 0.5f, most);
    gguf_store_f16(bytes, d);
    gguf_store_f16(bytes + 2, least);
    store_codes(codes, most > 15, bytes + 4);
}

void gguf_quantise_q4_0(const float *weights, uint8_t *bytes)
{
    quantise_symmetric(weights, 8, bytes);
}

void gguf_quantise_q5_0(const float *weights, uint8_t *bytes)
{
    quantise_symmetric(weights, 16, bytes);
}

void gguf_quantise_q4_1(const float *weights, uint8_t *bytes)
{
    quantise_from_least(weights, 15, bytes);
}

void gguf_quantise_q5_1(const float *weights, uint8_t *bytes)
{
    quantise_from_least(weights, 31, bytes);
}

void gguf_quantise_q8_0(const float *weights, uint8_t *bytes)
{
    float d = fabsf(extreme_of(weights)) / 127, inverse = inverse_of(d);
    gguf_store_f16(bytes, d);
    for (int i = 0; i < BLOCK; i++) {
        float code = roundf(weights[i] * inverse); /* halves away from zero */
        bytes[2 + i] = (uint8_t)(int8_t)fmaxf(-127, fminf(127, code));
    }
}

/* The number of e2m1 whose `half`-fold is nearest, of equally near ones the first. */
static unsigned nearest_e2m1(float weight, float half)
{
    unsigned best = 0;
    float least = fabsf((float)gguf_e2m1[0] * half - weight);
    for (unsigned i = 1; i < 16; i++) {
        float error = fabsf((float)gguf_e2m1[i] * half - weight);
        if (error < least) {
            least = error;
            best = i;
        }
    }
    return best;
}

void gguf_quantise_mxfp4(const float *weights, uint8_t *bytes)
{
    enum { BIAS = 127, LARGEST_EXPONENT = 2 /* of e2m1 */ };
    float most = fabsf(extreme_of(weights));
    float e = most > 0 ? floorf(log2f(most)) - LARGEST_EXPONENT + BIAS : 0;
    unsigned codes[BLOCK];
    bytes[0] = (uint8_t)code_below(e, 255);
    for (int i = 0; i < BLOCK; i++)
        codes[i] = nearest_e2m1(weights[i], gguf_half_power(bytes[0]));
    store_codes(codes, false, bytes + 1);
}
