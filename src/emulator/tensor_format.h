/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Element formats of tensor-core operands: from bits to a value and the exponent that the
 * aligning adder sees, and from exact sums back to bits.
 */
#ifndef PTXGEN_EMULATOR_TENSOR_FORMAT_H
#define PTXGEN_EMULATOR_TENSOR_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tensor_core.h"

/** Exponent of a zero: so small that sums of two still lie below every real one. */
enum { EMU_ZERO_EXPONENT = -10000, EMU_NO_EXPONENT = -5000 };

enum { EMU_F32_NAN = 0x7FFFFFFF, EMU_F16_NAN = 0x7FFF };

/** What a decoded array holds. Merge over arrays by starting from {false, EMU_ZERO_EXPONENT}. */
typedef struct emu_decoded_range {
    bool special;         /**< an infinity or a NaN is among the elements */
    int16_t max_exponent; /**< of the finite ones */
} emu_decoded_range;

/**
 * Decodes floating-point elements, one in the low bits of each word. The exponent is that of
 * the leading place of the format, so a subnormal has the format's least exponent: a value is
 * significand · 2^exponent with significand in [0, 2). tf32 drops its 13 low bits.
 */
void emu_decode(emu_element type, const uint32_t *bits, unsigned count, float *value,
                int16_t *exponent, emu_decoded_range *range);

bool emu_element_is_float(emu_element type);
bool emu_element_is_fp8(emu_element type);

/** The sign bit of a floating-point element, in the low bits of a word. */
uint32_t emu_element_sign_bit(emu_element type);

float emu_f16_value(uint32_t bits);

static inline uint32_t emu_f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float emu_f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/** To f16, nearest even; NaN is canonical. */
uint32_t emu_f16_round(double value);

/** To f32, toward zero, keeping `fraction_bits` (≤ 23) of the fraction; past the range: ∞. */
uint32_t emu_f32_truncate(double value, unsigned fraction_bits);

#endif
