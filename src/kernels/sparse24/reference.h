/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The 2:4 sparse product in double precision, from compressed weights, with an error bound for a
 * kernel that accumulates in f32 (s8: in s32).
 *
 *     s[m,n] = Σ_k x[m,k]·w[n,k]                         over the stored elements of w
 *     v[m,n] = s[m,n]·x_scale[m]·w_scale[n]              for s8; else v = s
 *     y[m,n] = activation(v + bias[n]) + residual[m,n]   rounded to y's type
 *
 * The rules for values that are not ordinary numbers are those of linear.h. In addition, a kernel
 * that inflates w multiplies a NaN or an infinity of x by zeros, and a kernel that does not inflate
 * w leaves these products out. Bias and scales must be finite, which is checked.
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

    size_t m;      /**< tokens; may be 0 */
    const void *x; /**< [m, k] of w's type, rows `x_stride` elements apart */
    size_t x_stride;
    const float *x_scale; /**< [m], or NULL for ones; s8 only */
    const float *w_scale; /**< [n], or NULL for ones; s8 only */

    const float *bias; /**< [n], or NULL */
    ptxgen_activation activation;
    ptxgen_element y_type;
    const void *residual; /**< [m, n] of y_type, rows `residual_stride` elements apart, or NULL */
    size_t residual_stride;

    /** Parameters of the kernel for bound and spread, see struct linear_sum and linear_output. */
    unsigned dot_depth;
    double product_error, activation_error;
    double cut_sums; /**< of 16 terms, for the spread */
    /**
     * s8 with no activation or ReLU: y is computed in f32 step by step, each rounded to nearest
     * (the sum converted to f32, times x_scale, times w_scale, + bias, + residual), and rounded to
     * y_type; the bound is 0.
     */
    bool stepwise;
};

/**
 * Fills y[m·n] and bound[m·n], the largest error of a correct kernel's output. A bound of NaN makes
 * no statement; compare with ptxgen_bound_agrees. Fills spread[m·n] (ptxgen/accuracy.h) unless it
 * is NULL. linear.c has the derivation of both.
 */
ptxgen_status sparse24_reference(const struct sparse24_problem *problem, double *y, double *bound,
                                 ptxgen_spread *spread, ptxgen_error *err);

/** Computes the sums [m·n] of s8 before scales, which every kernel computes exactly. */
ptxgen_status sparse24_reference_s32(const struct sparse24_problem *problem, int32_t *sums,
                                     ptxgen_error *err);

#endif
