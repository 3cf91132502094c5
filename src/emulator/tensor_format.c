/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_format.h"

#include "host_vector.h"

#include <math.h>

/** A format narrower than f32, as an f32 shifted down and biased. */
typedef struct small_float {
    uint32_t magnitude_mask;
    uint32_t first_special; /* magnitudes from here on are not finite */
    bool has_infinity;      /* first_special is ∞, not NaN */
    uint8_t fraction_bits;
    int16_t bias;
    uint32_t kept; /* bits of the word that count */
} small_float;

static const small_float FLOATS[EMU_ELEMENT_COUNT] = {
    [EMU_F16] = {0x7FFF, 0x7C00, true, 10, 15, 0xFFFF},
    [EMU_BF16] = {0x7FFF, 0x7F80, true, 7, 127, 0xFFFF},
    [EMU_TF32] = {0x7FFFFFFF, 0x7F800000, true, 23, 127, 0xFFFFE000},
    [EMU_F32] = {0x7FFFFFFF, 0x7F800000, true, 23, 127, 0xFFFFFFFF},
    [EMU_E4M3] = {0x7F, 0x7F, false, 3, 7, 0xFF},
    [EMU_E5M2] = {0x7F, 0x7C, true, 2, 15, 0xFF},
};

static const uint8_t BITS[EMU_ELEMENT_COUNT] = {
    [EMU_F16] = 16, [EMU_BF16] = 16, [EMU_TF32] = 32, [EMU_F32] = 32, [EMU_F64] = 64,
    [EMU_E4M3] = 8, [EMU_E5M2] = 8,  [EMU_S8] = 8,    [EMU_U8] = 8,   [EMU_S4] = 4,
    [EMU_U4] = 4,   [EMU_B1] = 1,    [EMU_S32] = 32,
};

unsigned emu_element_bits(emu_element type)
{
    return BITS[type];
}

bool emu_element_is_float(emu_element type)
{
    return FLOATS[type].magnitude_mask != 0;
}

bool emu_element_is_fp8(emu_element type)
{
    return type == EMU_E4M3 || type == EMU_E5M2;
}

uint32_t emu_element_sign_bit(emu_element type)
{
    return FLOATS[type].magnitude_mask + 1;
}

/** Replaces the values of infinities and NaNs, which the common path decodes as finite. */
static void fix_specials(const small_float *format, const uint32_t *bits, unsigned count,
                         float *value)
{
    for (unsigned i = 0; i < count; i++) {
        uint32_t word = bits[i] & format->kept;
        uint32_t magnitude = word & format->magnitude_mask;
        if (magnitude < format->first_special)
            continue;
        bool infinite = format->has_infinity && magnitude == format->first_special;
        float special = infinite ? INFINITY : NAN;
        value[i] = word & (format->magnitude_mask + 1) ? -special : special;
    }
}

/** All elements as if they were finite; returns the largest magnitude. */
EMU_WIDE static uint32_t decode_finite(const small_float *of, unsigned sign_up,
                                       const uint32_t *bits, unsigned count, float *value,
                                       int16_t *exponent, emu_decoded_range *range)
{
    const small_float format = *of;
    const unsigned up = 23u - format.fraction_bits;
    const float rebias = emu_f32_of_bits((uint32_t)(254 - format.bias) << 23);
    uint32_t top = 0;
    int16_t max_exponent = range->max_exponent;
    for (unsigned i = 0; i < count; i++) {
        uint32_t word = bits[i] & format.kept;
        uint32_t magnitude = word & format.magnitude_mask;
        uint32_t sign = (word << sign_up) & 0x80000000u;
        value[i] = emu_f32_of_bits(emu_f32_bits(emu_f32_of_bits(magnitude << up) * rebias) | sign);
        int16_t field = (int16_t)(magnitude >> format.fraction_bits);
        int16_t e = (int16_t)((field ? field : 1) - format.bias);
        exponent[i] = magnitude ? e : EMU_ZERO_EXPONENT;
        max_exponent = exponent[i] > max_exponent ? exponent[i] : max_exponent;
        top = magnitude > top ? magnitude : top;
    }
    range->max_exponent = max_exponent;
    return top;
}

void emu_decode(emu_element type, const uint32_t *bits, unsigned count, float *value,
                int16_t *exponent, emu_decoded_range *range)
{
    const small_float format = FLOATS[type];
    const unsigned sign_up = 31u - (BITS[type] - 1u);
    uint32_t top = decode_finite(&format, sign_up, bits, count, value, exponent, range);
    if (top >= format.first_special) {
        range->special = true;
        fix_specials(&format, bits, count, value);
    }
}

float emu_f16_value(uint32_t bits)
{
    float value;
    int16_t exponent;
    emu_decoded_range range = {false, EMU_ZERO_EXPONENT};
    emu_decode(EMU_F16, &bits, 1, &value, &exponent, &range);
    return value;
}

uint32_t emu_f16_round(double value)
{
    if (isnan(value))
        return EMU_F16_NAN;
    uint32_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    if (magnitude >= 65520.0)
        return sign | 0x7C00;
    if (magnitude < 0x1p-14) /* adding 2^28 leaves units of 2^-24 in the double's last place */
        return sign | (uint32_t)((magnitude + 0x1p28 - 0x1p28) * 0x1p24);
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    bits += 0x1FFFFFFFFFFull + (bits >> 42 & 1); /* nearest even at 10 fraction bits */
    return sign | (uint32_t)((bits >> 42) - ((1023u - 15u) << 10));
}

uint32_t emu_f32_truncate(double value, unsigned fraction_bits)
{
    if (isnan(value))
        return EMU_F32_NAN;
    if (fabs(value) < 0x1p-126) {
        double unit = ldexp(1.0, -126 - (int)fraction_bits);
        return emu_f32_bits((float)(trunc(value / unit) * unit));
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= ~0ull << (52 - fraction_bits);
    memcpy(&value, &bits, sizeof bits);
    return emu_f32_bits((float)value);
}
