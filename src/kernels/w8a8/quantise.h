/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of quantisation as in the kernels: every operation is rounded in the work type.
 */
#ifndef PTXGEN_W8A8_QUANTISE_H
#define PTXGEN_W8A8_QUANTISE_H

#include "layout.h"

#include <stdint.h>

#include <math.h>

static inline double w8a8_divide(ptxgen_element work, double a, double b)
{
    return work == PTXGEN_F64 ? a / b : (double)((float)a / (float)b);
}

/*
 * The e4m3 number nearest to x, ties to even, and 448 in place of larger ones (OCP 8-bit Floating
 * Point Specification, E4M3: four bits of exponent with bias 7, three of mantissa, no infinities).
 */
static inline uint8_t w8a8_e4m3_of(double x)
{
    enum { MANTISSA = 3, BIAS = 7, LEAST = -6 /* exponent of normal numbers */, LARGEST = 0x7E };
    double size = fmin(fabs(x), W8A8_E4M3_MAX);
    int exponent = size < 0x1p-6 ? LEAST : ilogb(size);
    int units = (int)rint(ldexp(size, MANTISSA - exponent)); /* 8 to 16; below 8: subnormal */
    int code = ((exponent + BIAS) << MANTISSA) + units - (1 << MANTISSA);
    return (uint8_t)((code < LARGEST ? code : LARGEST) | (signbit(x) ? 0x80 : 0));
}
static inline double w8a8_e4m3_value(uint8_t code)
{
    int field = code >> 3 & 15, mantissa = code & 7;
    double size = field ? ldexp(8 + mantissa, field - 10) : ldexp(mantissa, -9);
    return (code & 0x7F) == 0x7F ? NAN : code & 0x80 ? -size : size;
}

/* The code of a finite x: clamp(round(x / scale) + zero, q_min, q_max); the quotient may overflow.
 */
static inline int8_t w8a8_code(uint8_t codes, ptxgen_element work, double x, double scale,
                               int32_t zero, int q_min, int q_max)
{
    double quotient = w8a8_divide(work, x, scale), code = rint(quotient) + zero;
    if (codes == PTXGEN_W8A8_E4M3)
        return (int8_t)w8a8_e4m3_of(quotient);
    return (int8_t)(code < q_min ? q_min : code > q_max ? q_max : code);
}

#endif
