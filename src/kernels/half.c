/* SPDX-License-Identifier: Apache-2.0 */
#include "half.h"

#include <math.h>
#include <string.h>

/* A binary format by its stored fraction bits and the exponent of its smallest normal number. */
struct format {
    int fraction_bits;
    int min_exponent;
};
static const struct format f16 = {10, -14};
static const struct format bf16 = {7, -126};

enum { F64_FRACTION_BITS = 52, F64_BIAS = 1023 };

/*
 * The double's 53-bit significand is cut to the bits that the format keeps at this exponent: one
 * shift for normal and subnormal results alike. The rounded significand is added to the exponent
 * field, so that a carry out of the fraction moves to the next binade, and at the top to infinity.
 */
static uint16_t from_f64(const struct format *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    int exponent = (int)(bits >> F64_FRACTION_BITS & 0x7FF) - F64_BIAS;
    uint64_t fraction = bits & (UINT64_MAX >> 12);
    uint16_t infinity = (uint16_t)(0x7FFF & ~((1u << to->fraction_bits) - 1));

    if (exponent > F64_BIAS && fraction != 0) {
        uint16_t quiet = (uint16_t)(1u << (to->fraction_bits - 1));
        uint16_t payload = (uint16_t)(fraction >> (F64_FRACTION_BITS - to->fraction_bits));
        return sign | infinity | quiet | payload;
    }
    if (exponent > -to->min_exponent + 1)
        return sign | infinity;

    int below_normal = exponent < to->min_exponent ? to->min_exponent - exponent : 0;
    int shift = F64_FRACTION_BITS - to->fraction_bits + below_normal;
    if (shift > F64_FRACTION_BITS + 1) /* below half of the smallest subnormal */
        return sign;
    uint64_t significand = fraction | UINT64_C(1) << F64_FRACTION_BITS;
    uint64_t kept = significand >> shift;
    uint64_t lost = significand & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    if (lost > half || (lost == half && (kept & 1)))
        kept++;
    uint64_t binade = below_normal ? 0 : (uint64_t)(exponent - to->min_exponent);
    return (uint16_t)(sign | ((binade << to->fraction_bits) + kept));
}

static float f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float ptxgen_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = bits >> 10 & 0x1F;
    uint32_t fraction = bits & 0x3FF;
    if (exponent == 0) {
        float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    uint32_t widened = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
    return f32_of_bits(sign | widened << 23 | fraction << 13);
}

float ptxgen_bf16_to_f32(uint16_t bits)
{
    return f32_of_bits((uint32_t)bits << 16);
}

uint16_t ptxgen_f64_to_f16(double value)
{
    return from_f64(&f16, value);
}

uint16_t ptxgen_f64_to_bf16(double value)
{
    return from_f64(&bf16, value);
}

size_t ptxgen_element_size(ptxgen_element type)
{
    return type == PTXGEN_F64   ? sizeof(double)
           : type == PTXGEN_F32 ? sizeof(float)
                                : sizeof(uint16_t);
}

/* Inlined where the type is known; the array may have any alignment. */
static inline __attribute__((always_inline)) double load(ptxgen_element type, const void *array,
                                                         size_t index)
{
    double widest;
    float wide;
    uint16_t bits;
    switch (type) {
    case PTXGEN_F64:
        memcpy(&widest, (const char *)array + index * sizeof widest, sizeof widest);
        return widest;
    case PTXGEN_F32:
        memcpy(&wide, (const char *)array + index * sizeof wide, sizeof wide);
        return wide;
    default:
        memcpy(&bits, (const char *)array + index * sizeof bits, sizeof bits);
        return type == PTXGEN_F16 ? ptxgen_f16_to_f32(bits) : ptxgen_bf16_to_f32(bits);
    }
}

double ptxgen_element_load(ptxgen_element type, const void *array, size_t index)
{
    return array ? load(type, array, index) : NAN;
}

static inline __attribute__((always_inline)) void load_all(ptxgen_element type, const void *array,
                                                           size_t first, size_t count,
                                                           double *values, size_t step)
{
    for (size_t i = 0; i < count; i++)
        values[i * step] = load(type, array, first + i);
}

void ptxgen_elements_load(ptxgen_element type, const void *array, size_t first, size_t count,
                          double *values, size_t step)
{
    switch (type) {
    case PTXGEN_F64: load_all(PTXGEN_F64, array, first, count, values, step); break;
    case PTXGEN_F32: load_all(PTXGEN_F32, array, first, count, values, step); break;
    case PTXGEN_F16: load_all(PTXGEN_F16, array, first, count, values, step); break;
    case PTXGEN_BF16: load_all(PTXGEN_BF16, array, first, count, values, step); break;
    }
}

void ptxgen_element_store(ptxgen_element type, void *array, size_t index, double value)
{
    if (!array)
        return;
    unsigned char *at = (unsigned char *)array + index * ptxgen_element_size(type);
    if (type == PTXGEN_F64)
        memcpy(at, &value, sizeof value);
    else if (type == PTXGEN_F32) {
        float wide = (float)value;
        memcpy(at, &wide, sizeof wide);
    } else {
        uint16_t bits = from_f64(type == PTXGEN_F16 ? &f16 : &bf16, value);
        memcpy(at, &bits, sizeof bits);
    }
}

double ptxgen_element_round(ptxgen_element type, double value)
{
    switch (type) {
    case PTXGEN_F16: return ptxgen_f16_to_f32(ptxgen_f64_to_f16(value));
    case PTXGEN_BF16: return ptxgen_bf16_to_f32(ptxgen_f64_to_bf16(value));
    case PTXGEN_F32: return (float)value;
    default: return value;
    }
}
