/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The 2:4 sparse product in double precision, from compressed weights, with an error bound for a
 * kernel that accumulates in f32 (s8: in s32).
 *
 *     v[n,m] = Σ_k X[n,k]·W[m,k]            over the stored elements of W
 *     v[n,m] = v · x_scale[n]·w_scale[m]    s8 only
 *     Y[n,m] = activation(v + bias[m]) + residual[n,m], rounded to Y's type
 *
 * Rules for what is not an ordinary number:
 * - Where Σ is NaN, so is the output, whatever the activation (ReLU of NaN is NaN).
 * - A row of X with a NaN or an infinity makes no other promise, and takes none from other rows: a
 *   kernel that inflates W multiplies it by zeros, one that does not leaves them out.
 * - Where Σ|X·W| could leave f32's range nothing is promised, else where Y, rounded, is infinite,
 *   it is that infinity.
 * - Nor is it where v + bias could leave that range and an activation or a residual follows. A
 *   residual that is NaN or infinite makes its output so.
 * - Bias and scales must be finite, which is checked.
 */
#ifndef PTXGEN_KERNELS_SPARSE24_REFERENCE_H
#define PTXGEN_KERNELS_SPARSE24_REFERENCE_H

#include <ptxgen/sparse24_formats.h>
#include <ptxgen/types.h>

#include <stdbool.h>
#include <stdint.h>

enum sparse24_activation {
    SPARSE24_IDENTITY = 0,
    SPARSE24_RELU = 1,
    SPARSE24_SILU = 2,     /**< v·σ(v) */
    SPARSE24_GELU = 3,     /**< v·Φ(v), by the error function */
    SPARSE24_GELU_TANH = 4 /**< v/2·(1 + tanh(√(2/π)·(v + 0.044715·v³))) */
};

struct sparse24_problem {
    ptxgen_sparse24_shape w;
    ptxgen_const_span values;
    ptxgen_sparse24_form form;
    ptxgen_const_span metadata;

    size_t n;      /**< rows of X and Y; may be 0 */
    const void *x; /**< [n, k] of W's type, rows `ldx` elements apart */
    size_t ldx;
    const float *x_scale; /**< [n], or NULL for ones; s8 only */
    const float *w_scale; /**< [m], or NULL for ones; s8 only */

    const float *bias; /**< [m], or NULL */
    enum sparse24_activation activation;
    ptxgen_element y_type;
    const void *residual; /**< [n, m] of y_type, rows `ldr` elements apart, or NULL */
    size_t ldr;

    /**
     * How the kernel sums, for the bound alone: the most additions (an fma counts as one) that a
     * term passes through. A tensor-core product over p terms counts as p + 3: it cuts p products
     * and the addend at 2⁻²⁴ of the largest, and rounds toward zero, which may take two units more.
     */
    unsigned dot_depth;
    /**
     * s8 with no activation or ReLU: y is what f32 arithmetic gives step by step, each rounded to
     * nearest: the sum made f32, times x_scale, times w_scale, + bias, + residual, rounded to
     * y_type; and the bound is 0.
     */
    bool stepwise;
    /** What a product may be off beyond one rounding, relative: operands in narrower pieces. */
    double product_error;
    /** How far the kernel's activation of v may be from the exact one, relative to |v|. */
    double activation_error;
};

/**
 * Fills y[n·m] and bound[n·m]: the farthest that a correct kernel's output can be from y. NaN
 * there promises nothing; compare with ptxgen_bound_agrees. See reference.c for the derivation.
 */
ptxgen_status sparse24_reference(const struct sparse24_problem *problem, double *y, double *bound,
                                 ptxgen_error *err);

/** s8's sums [n·m] before scales, which every kernel must give exactly. */
ptxgen_status sparse24_reference_s32(const struct sparse24_problem *problem, int32_t *sums,
                                     ptxgen_error *err);

#endif
