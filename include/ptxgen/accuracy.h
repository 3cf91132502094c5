/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Whether a kernel's outputs are as accurate as its arithmetic allows. A family's reference derives
 * two criteria for each output:
 *
 * - The bound is the largest error that rounding can cause. The bound of a sum grows with its
 *   number of terms K, since all roundings might go the same way. A single output beyond its bound
 *   is wrong.
 * - The spread describes the error that rounding causes on average. Random roundings grow with √K
 *   only, so for large K a spread is far narrower than a bound, and shows faults that stay within
 *   bounds: operands that were rounded once too often, a term left out, a slightly wrong scale. A
 *   spread judges many outputs together, by a tally, and not one output.
 *
 *     ptxgen_dense_reference_spread(&plan, &operands, y, bound, spread, &err);
 *     ptxgen_tally tally = {0};
 *     for (size_t i = 0; i < outputs; i++)
 *         ptxgen_tally_add(&tally, PTXGEN_F16, output[i], y[i], bound[i], &spread[i]);
 *     bool right = ptxgen_tally_ratio(&tally) <= 1;
 *
 * A spread assumes that roundings of different terms are independent, as they are for measured
 * data. Operands that repeat one value throughout, and whose sums are not exact in f32, may round
 * the same way every time; only the bound holds for such operands.
 *
 * The functions are pure; a tally may be used by one thread at a time.
 */
#ifndef PTXGEN_ACCURACY_H
#define PTXGEN_ACCURACY_H

#include <ptxgen/types.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The distribution of an output before it is rounded to a 16-bit type. Its average lies between
 * y − below and y + above (both at least 0). This interval covers systematic errors: those that all
 * kernels of a plan have in common, and those with a known sign, as tensor cores round toward zero.
 * About the average the output has the given standard deviation. All three are 0 for an exact
 * output. Where the deviation is NaN, the reference makes no statement.
 */
typedef struct ptxgen_spread {
    double below, above;
    double deviation;
} ptxgen_spread;

/** Sums over many outputs; zero it before the first. Two tallies are added member by member. */
typedef struct ptxgen_tally {
    uint64_t outputs; /**< that have a spread */
    double squares;   /**< the sum of (d / deviation)², see ptxgen_tally_add */
} ptxgen_tally;

/**
 * Adds an output of `type`. Its error d is the distance of `output` from the interval
 * [y − below, y + above], less half a unit in the last place for the final rounding of 16-bit
 * types, and at least 0. Outputs whose bound is not finite, or that have no spread, are left out.
 */
PTXGEN_API void ptxgen_tally_add(ptxgen_tally *tally, ptxgen_element type, double output, double y,
                                 double bound, const ptxgen_spread *spread);
/**
 * √(squares / (4·outputs + 32)), which is at most 1 for a kernel that rounds as it should. The mean
 * square of d / deviation of such a kernel is at most 1; this ratio allows twice the deviation, and
 * 32 in addition, because few outputs may be far off by chance: a single output may be off by 6
 * deviations, 1000 outputs by 2.007 on average.
 */
PTXGEN_API double ptxgen_tally_ratio(const ptxgen_tally *tally);

#ifdef __cplusplus
}
#endif
#endif
