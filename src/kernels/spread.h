/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A spread (ptxgen/accuracy.h) on its way through a kernel's f32 operations: of a value, by how
 * much the kernel's is on average below or above it at most, and its variance about that average.
 */
#ifndef PTXGEN_KERNELS_SPREAD_H
#define PTXGEN_KERNELS_SPREAD_H

#include "activation.h"

#include <ptxgen/accuracy.h>

struct spread {
    double below, above, variance;
};

/**
 * The variance of a rounding of each value in such a sum of squares: a rounding to nearest in f32
 * is anywhere within 2⁻²⁴ of the value at most, and a third of that squared is its mean square.
 * What is cut off on average twice as far has the same variance about its mean.
 */
double spread_of_rounding(double squares);
/** Both ends, farther. */
void spread_widen(struct spread *spread, double by);
/**
 * Of f(v), for that of v: from the least to the largest that f takes between the ends, its minimum
 * included where that is between them, and as far as f changes within one deviation of either end;
 * `rough`: how far the kernel's function is from f.
 */
void spread_activate(struct spread *spread, const struct activation *f, double v, double rough);
/** Of x·y, rounded to f32. */
struct spread spread_multiply(const struct spread *x_spread, double x,
                              const struct spread *y_spread, double y);
ptxgen_spread spread_result(const struct spread *spread);

#endif
