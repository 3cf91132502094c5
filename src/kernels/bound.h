/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What the references of all kernel families share: rounding error bounds, and outputs compared
 * with them.
 *
 * A reference gives y and bound: the farthest that a correct kernel's output, after rounding to
 * its type, can be from y. An infinite bound admits every number, a NaN bound promises nothing.
 */
#ifndef PTXGEN_KERNELS_BOUND_H
#define PTXGEN_KERNELS_BOUND_H

#include <ptxgen/status.h>
#include <ptxgen/types.h>

#include <stdbool.h>
#include <stddef.h>

/**
 * g(n) = nu/(1 − nu) for unit roundoff u: the most that n roundings change a product, relative to
 * it (Higham, Accuracy and Stability of Numerical Algorithms, ch. 3). Infinite once nu reaches 1.
 */
double ptxgen_bound_factor(double n, double unit);

/**
 * Settles an output near or beyond the largest finite value of its type: what rounds to infinity
 * is infinite, and where the bound leaves open whether it does, the bound is infinite.
 */
void ptxgen_bound_settle(ptxgen_element type, double *y, double *bound);

/** Whether a kernel's output agrees: both NaN, equal, within the bound, or nothing promised. */
bool ptxgen_bound_agrees(double output, double y, double bound);

/** An error that names the first of `values` that is not finite, if any; NULL passes. */
ptxgen_status ptxgen_bound_check_finite(const char *what, const float *values, size_t count,
                                        ptxgen_error *err);

#endif
