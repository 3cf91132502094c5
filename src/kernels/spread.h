/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A spread (ptxgen/accuracy.h) during the f32 operations of a kernel: the average of the kernel's
 * value is between value − below and value + above, and it has the given variance about that
 * average.
 */
#ifndef PTXGEN_KERNELS_SPREAD_H
#define PTXGEN_KERNELS_SPREAD_H

#include "activation.h"

#include <ptxgen/accuracy.h>

struct spread {
    double below, above, variance;
};

/**
 * The variance of one rounding of each value whose squares are summed: the error of a rounding to
 * nearest in f32 is uniform within 2⁻²⁴ of the value at most, so its mean square is a third of the
 * square of that. A truncation has twice the range, and the same variance about its mean.
 */
double spread_of_rounding(double squares);
/** Widens the interval at both ends. */
void spread_widen(struct spread *spread, double by);
/**
 * The spread of f(v) for the spread of v. The interval goes from the least to the largest value of
 * f between the ends, including a minimum between them, and the deviation is the change of f within
 * one deviation of either end. `rough` is the error of the kernel's function.
 */
void spread_activate(struct spread *spread, const struct activation *f, double v, double rough);
/** The spread of x·y, rounded to f32. */
struct spread spread_multiply(const struct spread *x_spread, double x,
                              const struct spread *y_spread, double y);
ptxgen_spread spread_result(const struct spread *spread);

#endif
