/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The way of a sum through its terms, for the spread of a kernel that rounds partial sums.
 *
 * A kernel's partial sum begins at some term and ends at some later one; which, depends on how CTAs
 * divide K. With S_j the sum up to step j, S_0 = 0, one that ends at step j is between −down_j and
 * up_j:
 *
 *     up_j = S_j − min S_i      down_j = max S_i − S_j      i ≤ j
 *
 * A kernel whose warps divide K walks in as many ways at once, each warp through its own terms; the
 * sums over steps below are then those of all ways.
 *
 * And M_j² = max(up_j, down_j)² + (Σ|x·w| of the step)² is at least the square of all partial sums
 * and products of the step. For terms of both signs M_j grows with √K, for terms of one sign with
 * K.
 */
#ifndef PTXGEN_KERNELS_WALK_H
#define PTXGEN_KERNELS_WALK_H

#include <float.h>
#include <math.h>

enum { WALK_TERMS = 16 /* of a step */ };

struct walk {
    double sum, least, most; /* so far */
    double up, down;         /**< Σ up_j, Σ down_j */
    double squares;          /**< Σ M_j² */
    double drift; /**< Σ M_j·(Σ x·w)/(Σ|x·w|) of the steps: how far products are of one sign */
};

/** A step over terms with this Σ x·w and Σ|x·w|. */
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

/** Another way of the same sum. */
static inline void walk_join(struct walk *w, const struct walk *other)
{
    w->up += other->up;
    w->down += other->down;
    w->squares += other->squares;
    w->drift += other->drift;
}

#endif
