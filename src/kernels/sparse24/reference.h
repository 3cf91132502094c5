/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The 2:4 sparse product in double precision, from compressed weights, with an error bound for a
 * kernel that accumulates in f32 (s8: in s32).
 *
 *     v[m,n] = Σ_k X[m,k]·W[n,k]            over the stored elements of W
 *     v[m,n] = v · x_scale[m]·w_scale[n]    s8 only
 *     Y[m,n] = activation(v + bias[n]) + residual[m,n], rounded to Y's type
 *
 * The rules for what is not an ordinary number are those of linear.h; besides, a kernel that
 * inflates W multiplies a NaN or an infinity of X by zeros, one that does not leaves them out. Bias
 * and scales must be finite, which is checked.
 */
#ifndef PTXGEN_KERNELS_SPARSE24_REFERENCE_H
#define PTXGEN_KERNELS_SPARSE24_REFERENCE_H

#include "../linear.h"

#include <ptxgen/sparse24_formats.h>
#include <ptxgen/types.h>

#include <stdbool.h>
#include <stdint.h>

struct sparse24_problem {
    ptxgen_sparse24_shape w;
    ptxgen_const_span values;
    ptxgen_sparse24_form form;
    ptxgen_const_span metadata;

    size_t m;      /**< rows of X and Y; may be 0 */
    const void *x; /**< [m, k] of W's type, rows `ldx` elements apart */
    size_t ldx;
    const float *x_scale; /**< [m], or NULL for ones; s8 only */
    const float *w_scale; /**< [n], or NULL for ones; s8 only */

    const float *bias; /**< [n], or NULL */
    ptxgen_activation activation;
    ptxgen_element y_type;
    const void *residual; /**< [m, n] of y_type, rows `ldr` elements apart, or NULL */
    size_t ldr;

    /** How the kernel sums, for bound and spread: see struct linear_sum and linear_output. */
    unsigned dot_depth;
    double product_error, activation_error;
    double cut_sums; /**< of 16 terms, for the spread */
    /**
     * s8 with no activation or ReLU: y is what f32 arithmetic gives step by step, each rounded to
     * nearest: the sum made f32, times x_scale, times w_scale, + bias, + residual, rounded to
     * y_type; and the bound is 0.
     */
    bool stepwise;
};

/**
 * Fills y[m·n] and bound[m·n]: the farthest that a correct kernel's output can be from y. NaN
 * there promises nothing; compare with ptxgen_bound_agrees. Unless it is NULL, spread[m·n] is as
 * ptxgen/accuracy.h says. See linear.c for the derivation of both.
 */
ptxgen_status sparse24_reference(const struct sparse24_problem *problem, double *y, double *bound,
                                 ptxgen_spread *spread, ptxgen_error *err);

/** s8's sums [m·n] before scales, which every kernel must give exactly. */
ptxgen_status sparse24_reference_s32(const struct sparse24_problem *problem, int32_t *sums,
                                     ptxgen_error *err);

#endif
