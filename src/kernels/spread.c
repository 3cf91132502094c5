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

static double change_within(const struct activation *f, double v, double deviation)
{
    double y = f->of(v);
    return fmax(fabs(f->of(v + deviation) - y), fabs(f->of(v - deviation) - y));
}

void spread_activate(struct spread *s, const struct activation *f, double v, double rough)
{
    double y = f->of(v), deviation = sqrt(s->variance);
    double first = v - s->below, last = v + s->above;
    double low = fmin(f->of(first), f->of(last)), high = fmax(f->of(first), f->of(last));
    if (first < f->least_at && f->least_at < last)
        low = f->of(f->least_at);
    double step = fmax(change_within(f, first, deviation), change_within(f, last, deviation));
    *s = (struct spread){fmax(y - low, 0), fmax(high - y, 0),
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
    struct spread s = {product - low, high - product,
                       a->variance * (y * y + b->variance) + b->variance * x * x +
                           spread_of_rounding(product * product)};
    spread_widen(&s, 0x1p-150); /* a product that underflows */
    return s;
}

ptxgen_spread spread_result(const struct spread *s)
{
    return (ptxgen_spread){s->below, s->above, sqrt(s->variance)};
}
