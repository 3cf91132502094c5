/* SPDX-License-Identifier: Apache-2.0 */
#include "spread.h"

#include <math.h>

double spread_of_rounding(double squares)
{
    return 0x1p-48 / 3 * squares;
}

void spread_widen(struct spread *s, double by)
{
    s->below += by;
    s->above += by;
}

void spread_map(struct spread *s, double (*of)(double v), double v, double rough)
{
    double y = of(v), deviation = sqrt(s->variance);
    double low = of(v - s->below) - y, high = of(v + s->above) - y;
    double step = fmax(fabs(of(v + deviation) - y), fabs(of(v - deviation) - y));
    *s = (struct spread){fmax(-fmin(low, high), 0), fmax(fmax(low, high), 0),
                         step * step + spread_of_rounding(y * y)};
    spread_widen(s, rough);
}

struct spread spread_multiply(const struct spread *a, double x, const struct spread *b, double y)
{
    double product = x * y, low = product, high = product;
    for (int corner = 0; corner < 4; corner++) {
        double u = corner & 1 ? x + a->above : x - a->below;
        double v = corner & 2 ? y + b->above : y - b->below;
        low = fmin(low, u * v);
        high = fmax(high, u * v);
    }
    return (struct spread){product - low, high - product,
                           a->variance * (y * y + b->variance) + b->variance * x * x +
                               spread_of_rounding(product * product)};
}

ptxgen_spread spread_result(const struct spread *s)
{
    return (ptxgen_spread){s->below, s->above, sqrt(s->variance)};
}
