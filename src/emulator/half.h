/* SPDX-License-Identifier: Apache-2.0 */
/* Small floating-point formats: f16, bf16, tf32, e4m3, e5m2 to and from wider ones. */
#ifndef PTXGEN_EMULATOR_HALF_H
#define PTXGEN_EMULATOR_HALF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float emu_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline uint32_t emu_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline double emu_double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static inline uint64_t emu_bits64_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

/* The NaN that f32 operations give (ISA "Floating Point Instructions": canonical NaN). */
#define EMU_NAN_F32 0x7fffffffu

static inline float emu_canonical(float x)
{
    return x != x ? emu_float_of(EMU_NAN_F32) : x;
}

/*
 * Choices as masks, not branches, so that loops vectorise: compilers do not compute both arms of a
 * choice when one may raise a floating-point exception.
 */
static inline uint32_t emu_is_above(uint32_t x, uint32_t bound) /* both below 2^31 */
{
    return (uint32_t)((int32_t)(bound - x) >> 31);
}

static inline uint32_t emu_pick(uint32_t mask, uint32_t yes, uint32_t no)
{
    return (yes & mask) | (no & ~mask);
}

/* f16 to f32, exact. A product moves the exponent and normalises subnormals; 31 becomes 255. */
static inline float emu_f16_to_f32(uint16_t half)
{
    uint32_t magnitude = half & 0x7fff;
    uint32_t bits = emu_bits_of(emu_float_of(magnitude << 13) * 0x1p112f);
    bits |= emu_is_above(magnitude, 0x7bff) & 0x7f800000u;
    return emu_float_of(bits | (uint32_t)(half & 0x8000) << 16);
}

/* f32 to f16, to nearest even; NaN becomes 0x7fff. */
static inline uint16_t emu_f32_to_f16(float value)
{
    uint32_t bits = emu_bits_of(value), magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t magic = 126u << 23;
    uint32_t subnormal = emu_bits_of(emu_float_of(magnitude) + emu_float_of(magic)) - magic;
    uint32_t finite = emu_pick(emu_is_above(magnitude, (113u << 23) - 1), normal, subnormal);
    uint32_t result = emu_pick(emu_is_above(magnitude, (143u << 23) - 1), 0x7c00u, finite);
    uint32_t sign = bits >> 16 & 0x8000u;
    return (uint16_t)emu_pick(emu_is_above(magnitude, 0x7f800000u), 0x7fffu, result | sign);
}

static inline float emu_bf16_to_f32(uint16_t bits)
{
    return emu_float_of((uint32_t)bits << 16);
}

static inline uint16_t emu_f32_to_bf16(float value)
{
    uint32_t bits = emu_bits_of(value);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(value != value ? 0x7fffu : rounded);
}

/* Rounding to odd keeps enough of the truth for one more rounding to a shorter format. */
static inline float emu_double_to_float_odd(double value)
{
    float nearest = (float)value;
    double back = nearest;
    uint32_t bits = emu_bits_of(nearest);
    uint32_t truncated = fabs(back) > fabs(value) ? bits - 1 : bits;
    return emu_float_of(back == value || value != value ? bits : truncated | 1);
}

/* x + y rounded to odd (exact sums stay exact), by the error term of Knuth's two-sum. */
static inline double emu_add_odd(double x, double y)
{
    double sum = x + y;
    double part = sum - x;
    double error = (x - (sum - part)) + (y - part);
    uint64_t bits = emu_bits64_of(sum);
    if (error == 0 || error != error || (bits & 1))
        return sum;
    bool away = (error > 0) == (sum > 0);
    return emu_double_of(away ? bits + 1 : bits - 1);
}

/* The same for floats, without a branch. */
static inline float emu_add_odd_f32(float x, float y)
{
    float sum = x + y;
    float part = sum - x;
    float error = (x - (sum - part)) + (y - part);
    uint32_t bits = emu_bits_of(sum), error_bits = emu_bits_of(error);
    int32_t magnitude = (int32_t)(error_bits & 0x7fffffffu);
    uint32_t inexact = (magnitude > 0) & (magnitude <= 0x7f800000); /* no NaN, as of infinities */
    uint32_t toward_odd = (error_bits ^ bits) >> 31 ? ~0u : 1u;
    return emu_float_of(bits + (inexact & ~bits & 1 ? toward_odd : 0));
}

enum emu_small_round { SMALL_RN, SMALL_RZ, SMALL_RM, SMALL_RP, SMALL_RNA };

struct emu_format {
    uint8_t exponent_bits, fraction_bits;
    bool has_infinity;
    uint32_t nan, largest; /* encodings without sign */
};

extern const struct emu_format emu_format_f16, emu_format_bf16, emu_format_tf32, emu_format_e4m3,
    emu_format_e5m2;

/* Rounds to the format. `saturate`: overflow gives the largest finite value. NaN has no sign. */
uint32_t emu_to_small(double value, const struct emu_format *format, enum emu_small_round round,
                      bool saturate);
double emu_from_small(uint32_t bits, const struct emu_format *format);

#endif
