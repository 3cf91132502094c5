/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The walk of a sum through its terms, for the spread of a kernel that rounds partial sums.
 *
 * A partial sum of a kernel begins at some term and ends at a later one, depending on how CTAs
 * divide K. With S_j the sum up to step j, S_0 = 0, a partial sum that ends at step j is between
 * −down_j and up_j:
 *
 *     up_j = S_j − min S_i      down_j = max S_i − S_j      i ≤ j
 *
 * In a kernel whose warps divide K, each warp walks through its own terms; the sums over steps
 * below are then sums over all walks.
 *
 * M_j² = max(up_j, down_j)² + (Σ|x·w| of the step)² is at least the square of each partial sum and
 * of each product of the step. M_j grows with √K for terms of both signs, and with K for terms of
 * one sign.
 */
#ifndef PTXGEN_KERNELS_WALK_H
#define PTXGEN_KERNELS_WALK_H

#include "spread.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

enum { WALK_TERMS = 16 /* of a step */ };

struct walk {
    double sum, least, most; /* so far */
    double up, down;         /**< Σ up_j, Σ down_j */
    double squares;          /**< Σ M_j² */
    double drift; /**< Σ M_j·(Σ x·w)/(Σ|x·w|) over the steps: how far products have one sign */
};

/** Goes on by a step whose terms have this Σ x·w and Σ|x·w|. */
static inline void walk_step(struct walk *w, double terms, double size)
{
    w->sum += terms;
    w->least = w->sum < w->least ? w->sum : w->least;
    w->most = w->sum > w->most ? w->sum : w->most;
    double up = w->sum - w->least, down = w->most - w->sum, far = up > down ? up : down;
    w->up += up;
    w->down += down;
    w->squares += far * far + size * size;
    w->drift += (far > size ? far : size) * terms / (size + DBL_MIN);
}

/** Lets the next partial sums start from 0. */
static inline void walk_restart(struct walk *w)
{
    w->sum = w->least = w->most = 0;
}

/** Adds another walk of the same sum. */
static inline void walk_join(struct walk *w, const struct walk *other)
{
    w->up += other->up;
    w->down += other->down;
    w->squares += other->squares;
    w->drift += other->drift;
}

/**
 * Facts of a row of f16 operands, for the floor of M_j: tensor cores cut products of subnormal
 * numbers as if these were the least normal number.
 */
struct walk_operands {
    double largest;
    bool has_subnormals;
};
static inline void walk_note(struct walk_operands *o, double value)
{
    double least = 0x1p-14, size = fabs(value);
    o->largest = fmax(o->largest, size);
    o->has_subnormals = o->has_subnormals || (size > 0 && size < least);
}
/**
 * The least magnitude for which a product of two such rows counts, where an operand is subnormal.
 */
static inline double walk_floor(const struct walk_operands *a, const struct walk_operands *b)
{
    double least = 0x1p-14, floor = 0;
    if (a->has_subnormals)
        floor = least * fmax(b->largest, least);
    return b->has_subnormals ? fmax(floor, least * fmax(a->largest, least)) : floor;
}
/** Raises M_j to at least `floor` in each step; `one_sign` is (Σ x·w)/(Σ|x·w|). */
static inline void walk_raise(struct walk *w, double steps, double floor, double one_sign)
{
    w->squares += steps * floor * floor;
    w->drift += steps * floor * one_sign;
}

/** The number of cuts of sums by tensor cores in a step, and of cut products. */
struct walk_cuts {
    double sums, products;
};
/**
 * The spread of tensor cores' sums, which are truncated toward zero:
 *
 * - A sum loses 0 to 2⁻²³ of itself: at most 2⁻²⁴ of itself on average, with the variance of a
 *   rounding to nearest. The loss has the sign of the partial sum, so the kernel's sum is on
 *   average lower by at most 2⁻²⁴·sums·Σ up_j, and higher by at most 2⁻²⁴·sums·Σ down_j.
 * - A product loses 0 to 2⁻²⁴ of M_j, with a mean square of a third of 2⁻⁴⁸·M_j². Products of both
 *   signs lose nothing on average. Otherwise each product without a partner of the other sign,
 *   whose share of the products is (Σ x·w)/(Σ|x·w|), loses half of 2⁻²⁴·M_j.
 *
 * One more rounding to nearest for each step stands for additions of partial sums.
 */
static inline struct spread walk_spread(const struct walk *w, const struct walk_cuts *cuts)
{
    double drift = 0x1p-25 * cuts->products * w->drift;
    return (struct spread){
        .below = 0x1p-24 * cuts->sums * w->up + fmax(drift, 0),
        .above = 0x1p-24 * cuts->sums * w->down + fmax(-drift, 0),
        .variance = (cuts->sums + cuts->products + 1) * spread_of_rounding(w->squares),
    };
}

#endif
