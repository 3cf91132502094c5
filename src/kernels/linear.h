/* SPDX-License-Identifier: Apache-2.0 */
/**
 * From an exact sum to an output and its bound, for kernels that sum in f32 (or exactly):
 *
 *     y = activation(S + bias) + residual, rounded to Y's type
 *
 * Rules for what is not an ordinary number:
 * - Where S is NaN, so is the output, whatever the activation (ReLU of NaN is NaN).
 * - A row of X with a NaN or an infinity makes no other promise, and takes none from other rows.
 * - Where Σ|X·W| could leave f32's range nothing is promised, else where Y, rounded, is infinite,
 *   it is that infinity.
 * - Nor is it where S + bias could leave that range and an activation or a residual follows. A
 *   residual that is NaN or infinite makes its output so.
 *
 * See linear.c for the derivation.
 */
#ifndef PTXGEN_KERNELS_LINEAR_H
#define PTXGEN_KERNELS_LINEAR_H

#include "spread.h"
#include "walk.h"

#include <ptxgen/accuracy.h>
#include <ptxgen/types.h>

#include <stdbool.h>

/** A value on its way through a kernel, and how far the kernel's may be from it; NaN: anything. */
struct linear_estimate {
    double value, error;
    double magnitude; /**< of what was added up, for the reference's own error */
    struct spread spread;
};

/** How a kernel sums products of k terms. */
struct linear_sum {
    double terms;
    /**
     * The most additions (an fma counts as one) that a term passes through. A tensor-core product
     * over p terms counts as p + 3: it cuts p products and the addend at 2⁻²⁴ of the largest, and
     * rounds toward zero, which may take two units more.
     */
    double depth;
    /** What a product may be off beyond one rounding, relative: operands in narrower pieces. */
    double product_error;

    struct walk_cuts cuts;
    double product_variance; /**< of what a product is off, relative to its square */
};
/**
 * Σ x·w, of which Σ|x·w| is `magnitude`, and which came this way; `floor` is what the products of a
 * step count as at least where tensor cores cut them.
 */
struct linear_estimate linear_add_up(const struct linear_sum *how, double sum, double magnitude,
                                     const struct walk *walk, double floor);

struct linear_output {
    ptxgen_activation activation;
    /** How far the kernel's activation of v may be from the exact one, relative to |v|. */
    double activation_error;
    ptxgen_element type; /**< of Y */
    double terms;        /**< of a sum, for the reference's own error */
};
/** What is known of an output: see ptxgen/accuracy.h. */
struct linear_result {
    double y, bound;
    ptxgen_spread spread;
};
/**
 * An output's result; bias and residual may be NULL. `promised` is false for a row that makes no
 * promise but that NaN stays NaN.
 */
struct linear_result linear_finish(const struct linear_output *how, struct linear_estimate sum,
                                   const float *bias, const double *residual, bool promised);

#endif
