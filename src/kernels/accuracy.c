/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/accuracy.h>

#include "half.h"

#include <math.h>
#include <stdbool.h>

/* The least distance from [y − below, y + above] of a number that rounds to `output`. */
static double distance(ptxgen_element type, double output, double y, const ptxgen_spread *spread)
{
    double error = output - y;
    double outside = fmax(error - spread->above, -error - spread->below);
    if (type == PTXGEN_F16 || type == PTXGEN_BF16)
        outside -= ptxgen_element_half_ulp(type, fmax(fabs(output), fabs(y)));
    return fmax(outside, 0);
}

void ptxgen_tally_add(ptxgen_tally *tally, ptxgen_element type, double output, double y,
                      double bound, const ptxgen_spread *spread)
{
    if (!tally || !spread)
        return;
    bool is_exact = spread->deviation == 0 && spread->below == 0 && spread->above == 0;
    if (!isfinite(bound) || !isfinite(y) || isnan(spread->deviation) || (is_exact && output == y))
        return;
    tally->outputs++;
    if (!isfinite(output)) {
        tally->squares = INFINITY;
        return;
    }
    double d = is_exact ? INFINITY : distance(type, output, y, spread);
    if (d > 0)
        tally->squares += d * d / (spread->deviation * spread->deviation);
}

double ptxgen_tally_ratio(const ptxgen_tally *tally)
{
    return !tally ? 0 : sqrt(tally->squares / (4 * (double)tally->outputs + 32));
}
