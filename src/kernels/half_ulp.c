/* SPDX-License-Identifier: Apache-2.0 */
#include "half.h"

#include <float.h>
#include <math.h>

double ptxgen_element_half_ulp(ptxgen_element type, double magnitude)
{
    static const struct {
        int fraction_bits, min_exponent; /* stored bits; of the smallest normal number */
    } formats[] = {[PTXGEN_F32] = {23, -126},
                   [PTXGEN_F16] = {10, -14},
                   [PTXGEN_BF16] = {7, -126},
                   [PTXGEN_F64] = {52, -1022}};
    int exponent = formats[type].min_exponent;
    if (fabs(magnitude) >= DBL_MIN && ilogb(magnitude) > exponent)
        exponent = ilogb(magnitude);
    return ldexp(0.5, exponent - formats[type].fraction_bits);
}
