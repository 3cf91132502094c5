/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Turns an exact sum into an output with its bound, for kernels that sum in f32 or exactly:
 *
 *     y = activation(S + bias) + residual, rounded to y's type
 *
 * Rules for values that are not ordinary numbers:
 * - Where S is NaN, the output is NaN, whatever the activation (ReLU of NaN is NaN).
 * - Otherwise no statement is made for a token with a NaN or an infinity; other tokens are not
 *   affected.
 * - No statement is made where Σ|x·w| could exceed the range of f32. Otherwise, where y, rounded,
 *   is infinite, the output is that infinity.
 * - No statement is made either where S + bias could exceed that range and an activation or a
 *   residual follows. A residual that is NaN or infinite makes its output NaN or infinite.
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

/** A value, and the bound of a kernel's error in it; a bound of NaN makes no statement. */
struct linear_estimate {
    double value, error;
    double magnitude; /**< sum of the magnitudes of all terms, for the reference's own error */
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
    /** Relative error of a product beyond one rounding, where operands are split into pieces. */
    double product_error;

    struct walk_cuts cuts;
    double product_variance; /**< variance of a product's error, relative to the product's square */
};
/**
 * The approximate value of Σ x·w with Σ|x·w| = `magnitude` and the given walk; `floor` is the least
 * magnitude for which the products of a step count where tensor cores cut them.
 */
struct linear_estimate linear_add_up(const struct linear_sum *how, double sum, double magnitude,
                                     const struct walk *walk, double floor);

/** The error of the activations of gemm/activation.c, relative to |v|. */
static inline double linear_activation_error(ptxgen_activation activation)
{
    bool is_curved = activation > PTXGEN_ACTIVATION_NONE && activation < PTXGEN_ACTIVATION_RELU;
    return is_curved ? 0x1p-20 : 0;
}

struct linear_output {
    ptxgen_activation activation;
    double activation_error; /**< of the kernel's activation of v, relative to |v| */
    ptxgen_element type;     /**< of y */
    double terms;            /**< of a sum, for the reference's own error */
};
/** An output with its bound and spread, see ptxgen/accuracy.h. */
struct linear_result {
    double y, bound;
    ptxgen_spread spread;
};
/**
 * Computes an output from its sum; bias and residual may be NULL. `promised` is false for a token
 * of which only is known that NaN stays NaN.
 */
struct linear_result linear_finish(const struct linear_output *how, struct linear_estimate sum,
                                   const float *bias, const double *residual, bool promised);
/**
 * The same for activation(gate + bias)·(up + up_bias) + residual; biases are both given or both
 * NULL.
 */
struct linear_result linear_finish_pair(const struct linear_output *how,
                                        struct linear_estimate gate, const float *bias,
                                        struct linear_estimate up, const float *up_bias,
                                        const double *residual, bool promised);

#endif
