/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Whether a kernel's outputs are as accurate as its arithmetic allows, by two criteria that a
 * family's reference derives for each output:
 *
 * - The bound is the farthest that rounding can take an output. It grows with the K terms of a sum,
 *   since all roundings might go the same way. One output beyond it is wrong.
 * - The spread is what rounding does on the whole. Random roundings grow with √K, so a spread is
 * far narrower than a bound where K is large, and shows what stays within bounds: operands that
 * were rounded once too often, a term left out, a scale that is off by a little. It says nothing of
 *   one output, but of many: their tally must be right.
 *
 *     ptxgen_dense_reference_spread(&plan, &operands, y, bound, spread, &err);
 *     ptxgen_tally tally = {0};
 *     for (size_t i = 0; i < outputs; i++)
 *         ptxgen_tally_add(&tally, PTXGEN_F16, output[i], y[i], bound[i], &spread[i]);
 *     bool right = ptxgen_tally_ratio(&tally) <= 1;
 *
 * A spread assumes that roundings of different terms are independent, as those of measured data
 * are. Operands that repeat one value throughout, and are not exact in f32 when added up, may
 * round the same way every time; only the bound holds for them.
 *
 * Pure functions; a tally belongs to one thread at a time.
 */
#ifndef PTXGEN_ACCURACY_H
#define PTXGEN_ACCURACY_H

#include <ptxgen/types.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Where an output stands before it is rounded to a 16-bit type: on average between y − below and
 * y + above, both of which are at least 0, for what all kernels of a plan do alike and for what has
 * a sign (tensor cores round toward zero); and about that average with a standard deviation. All
 * are 0 for an exact output. A deviation of NaN promises nothing.
 */
typedef struct ptxgen_spread {
    double below, above;
    double deviation;
} ptxgen_spread;

/** What outputs have in common; zero it before the first. Tallies add up member by member. */
typedef struct ptxgen_tally {
    uint64_t outputs; /**< that have a spread */
    double squares;   /**< the sum of (d / deviation)², see ptxgen_tally_add */
} ptxgen_tally;

/**
 * Adds an output of `type`. It is the rounding of some number, d from [y − below, y + above]: d is
 * the output's own distance from there, less half a unit in its last place (f32 and f64: less
 * nothing), or 0. Outputs whose bound is not finite, or that have no spread, are left out.
 */
PTXGEN_API void ptxgen_tally_add(ptxgen_tally *tally, ptxgen_element type, double output, double y,
                                 double bound, const ptxgen_spread *spread);
/**
 * √(squares / (4·outputs + 32)); at most 1 for a kernel that rounds as it should. The mean square
 * of d / deviation is then 1 at most; twice the deviation is allowed, and 32 besides, so that
 * few outputs may be far off by chance: one alone 6 deviations, 1000 together 2.007.
 */
PTXGEN_API double ptxgen_tally_ratio(const ptxgen_tally *tally);

#ifdef __cplusplus
}
#endif
#endif
