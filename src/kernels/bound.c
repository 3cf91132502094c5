/* SPDX-License-Identifier: Apache-2.0 */
#include "bound.h"

#include "half.h"

#include <math.h>

double ptxgen_bound_factor(double n, double unit)
{
    return n * unit < 1 ? n * unit / (1 - n * unit) : INFINITY;
}

void ptxgen_bound_settle(ptxgen_element type, double *y, double *bound)
{
    double rounded = ptxgen_element_round(type, *y);
    double least = fmax(fabs(*y) - *bound, 0);
    bool may_be_finite = isfinite(ptxgen_element_round(type, least));
    bool may_be_infinite = isinf(ptxgen_element_round(type, fabs(*y) + *bound));
    if (isinf(rounded))
        *y = rounded;
    if (may_be_infinite)
        *bound = may_be_finite ? INFINITY : 0;
}

bool ptxgen_bound_agrees(double output, double y, double bound)
{
    if (isnan(bound))
        return true;
    if (isnan(y))
        return isnan(output);
    return output == y || fabs(output - y) <= bound;
}

ptxgen_status ptxgen_bound_check_finite(const char *what, const float *values, size_t count,
                                        ptxgen_error *err)
{
    for (size_t i = 0; values && i < count; i++)
        if (!isfinite(values[i]))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s[%zu] is %g, not finite",
                               what, i, (double)values[i]);
    return PTXGEN_OK;
}
