/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of quantisation as in the kernels: every operation is rounded in the work type.
 */
#ifndef PTXGEN_W8A8_QUANTISE_H
#define PTXGEN_W8A8_QUANTISE_H

#include "layout.h"

#include <math.h>

static inline double w8a8_divide(ptxgen_element work, double a, double b)
{
    return work == PTXGEN_F64 ? a / b : (double)((float)a / (float)b);
}

/* clamp(round(x / scale) + zero, q_min, q_max) for a finite x; the quotient may overflow. */
static inline int8_t w8a8_code(ptxgen_element work, double x, double scale, int32_t zero, int q_min,
                               int q_max)
{
    double code = rint(w8a8_divide(work, x, scale)) + zero;
    return (int8_t)(code < q_min ? q_min : code > q_max ? q_max : code);
}

#endif
