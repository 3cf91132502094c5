/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Bounds of rounding errors, which the references of all families share, and the comparison of
 * outputs with bounds.
 *
 * A reference gives y and a bound: the largest error that the output of a correct kernel can have
 * after rounding to its type. An infinite bound admits every number, and a bound of NaN makes no
 * statement.
 */
#ifndef PTXGEN_KERNELS_BOUND_H
#define PTXGEN_KERNELS_BOUND_H

#include <ptxgen/status.h>
#include <ptxgen/types.h>

#include <stdbool.h>
#include <stddef.h>

/**
 * g(n) = nu/(1 − nu) for unit roundoff u: the largest relative change of a product by n roundings
 * (Higham, Accuracy and Stability of Numerical Algorithms, ch. 3). Infinite where nu ≥ 1.
 */
double ptxgen_bound_factor(double n, double unit);

/**
 * Corrects y and bound of an output near or beyond the largest finite value of its type: y becomes
 * infinite if it rounds to infinity, and where the bound does not decide that, the bound becomes
 * infinite.
 */
void ptxgen_bound_settle(ptxgen_element type, double *y, double *bound);

/** Whether a kernel's output agrees: both are NaN, or equal, or within the bound, or it is NaN. */
bool ptxgen_bound_agrees(double output, double y, double bound);

/** Refuses `values` with the place of the first that is not finite; NULL is accepted. */
ptxgen_status ptxgen_bound_check_finite(const char *what, const float *values, size_t count,
                                        ptxgen_error *err);

#endif
