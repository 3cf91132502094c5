/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sum without error: a fixed-point number that spans every product of two bf16 or tf32
 * numbers and every f32, in 32-bit limbs with room for carries above each.
 */
#include <math.h>

#include "tensor_dot.h"

enum {
    LOWEST = -320, /* weight of bit 0: below the last place of the smallest product */
    LIMBS = 20     /* 640 bits: up to 2^320, above 33 terms of 2^256 */
};

typedef struct wide_sum {
    int64_t limb[LIMBS];
} wide_sum;

static void wide_add(wide_sum *sum, double term)
{
    if (term == 0)
        return;
    int exponent;
    int64_t mantissa = (int64_t)ldexp(frexp(term, &exponent), 31); /* at most 24 bits set */
    unsigned bit = (unsigned)(exponent - 31 - LOWEST);
    int64_t shifted = mantissa * ((int64_t)1 << bit % 32); /* below 2^63: no limb overflows */
    sum->limb[bit / 32] += shifted % ((int64_t)1 << 32);
    sum->limb[bit / 32 + 1] += shifted / ((int64_t)1 << 32);
}

/** Brings all limbs but the top one, which keeps the sign, to 0 … 2^32 - 1. */
static void wide_carry(wide_sum *sum)
{
    for (unsigned i = 0; i + 1 < LIMBS; i++) {
        int64_t low = sum->limb[i] & 0xFFFFFFFF;
        sum->limb[i + 1] += (sum->limb[i] - low) / ((int64_t)1 << 32);
        sum->limb[i] = low;
    }
}

/** Makes the number its own magnitude; returns whether it was negative. */
static bool wide_take_sign(wide_sum *sum)
{
    wide_carry(sum);
    if (sum->limb[LIMBS - 1] >= 0)
        return false;
    for (unsigned i = 0; i < LIMBS; i++)
        sum->limb[i] = -sum->limb[i];
    wide_carry(sum);
    return true;
}

/** The sum to nearest even at `digits` fraction bits, or fewer so that no unit is below `least`. */
static double wide_round(const wide_sum *sum, int digits, int least)
{
    int top = LIMBS * 32 - 1;
    while (top >= 0 && !(sum->limb[top / 32] >> top % 32 & 1))
        top--;
    if (top < 0)
        return 0;
    int unit = top - digits;
    if (unit < least - LOWEST)
        unit = least - LOWEST;
    double kept = 0;
    for (int bit = top; bit >= unit; bit--)
        kept = 2 * kept + (double)(sum->limb[bit / 32] >> bit % 32 & 1);
    bool half = sum->limb[(unit - 1) / 32] >> (unit - 1) % 32 & 1;
    bool sticky = false;
    for (int bit = 0; bit < unit - 1 && !sticky; bit++)
        sticky = sum->limb[bit / 32] >> bit % 32 & 1;
    if (half && (sticky || fmod(kept, 2) != 0))
        kept += 1;
    return ldexp(kept, unit + LOWEST);
}

uint32_t emu_dot_exact(const emu_dot_terms *terms, bool f16_result)
{
    wide_sum sum = {{0}};
    for (unsigned i = 0; i < terms->count; i++)
        wide_add(&sum, (double)terms->a[i] * terms->b[i]);
    wide_add(&sum, terms->c);
    bool negative = wide_take_sign(&sum);
    double magnitude = f16_result ? wide_round(&sum, 10, -24) : wide_round(&sum, 23, -149);
    double value = negative ? -magnitude : magnitude;
    return f16_result ? emu_f16_round(value) : emu_f32_bits((float)value);
}
