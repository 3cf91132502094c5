/* SPDX-License-Identifier: Apache-2.0 */
/**
 * W4A16 GEMM in double precision, with an error bound for a kernel that accumulates in f32.
 *
 *     S[m,n] = Σ_k x[m,k]·s·(q − z)        v = S + bias[n]
 *     y[m,n] = f(v) + residual[m,n]        f: identity, SiLU or GELU
 *     y[m,n] = silu(v)·v' + residual[m,n]  with a second matrix (SwiGLU): v' = S' + bias'[n]
 *
 * Scales must be finite, which is checked. Where y is not finite because x, bias or residual is
 * not, the bound is 0: a kernel gives that NaN or infinity; where it corrects sums, see below, NaN
 * for a token with an infinity.
 */
#ifndef PTXGEN_KERNELS_MARLIN_REFERENCE_H
#define PTXGEN_KERNELS_MARLIN_REFERENCE_H

#include "../spread.h"

#include <ptxgen/marlin_formats.h>

#include <stdbool.h>

struct marlin_problem {
    size_t m; /**< may be 0 */
    const ptxgen_w4_matrix *w;
    const ptxgen_w4_matrix *up; /**< SwiGLU's second matrix, of w's K and N; or NULL */

    ptxgen_element x_type, y_type; /**< y_type is also that of bias and residual */
    const void *x;                 /**< [m, k] of x_type, tokens `x_stride` elements apart */
    size_t x_stride;
    const void *bias;     /**< [n], or NULL */
    const void *up_bias;  /**< [n], or NULL */
    const void *residual; /**< [m, n], tokens `residual_stride` apart, or NULL */
    size_t residual_stride;
    ptxgen_activation activation; /**< PTXGEN_ACTIVATION_SILU with `up`; not _RELU */

    /**
     * For the bound alone. depth: the most f32 additions that a term passes through on its way
     * into S; a tensor-core product over p terms counts as p + 3, since it cuts products and
     * addend at 2⁻²⁴ of the largest and rounds toward zero. weight_type: what s·(q − z) is rounded
     * to before it is multiplied, PTXGEN_F32 where scales are applied to sums. unit: what weights
     * are rounded, and sums kept, in units of; 0 counts as 1. folds: the rounded weight is
     * q·s + (−z·s), whose second term is a number of weight_type too. activation_error: of the
     * kernel's f(v), relative to |v|.
     */
    unsigned depth;
    ptxgen_element weight_type;
    double unit;
    bool folds;
    double activation_error;

    /**
     * The kernel multiplies o + q instead of q − z, o being the offset, and then takes
     * (o + z)·Σ x[m,k] of each group off the sum; weight_type is PTXGEN_F32. cut: what the products
     * of 16 of K lose together, relative to their largest |x·s|, where codes are subnormals: a
     * tensor core cuts products where those of the least normal number would be cut.
     */
    bool corrects_sums;
    double offset, cut;

    /**
     * For the spread alone. cut_sums: how often tensor cores cut a sum over 16 of K. restart:
     * how much of K after which sums that are corrected start from 0, or 0. code_cut: what each
     * product may lose where codes are subnormals, as `cut` is of 16.
     */
    double cut_sums, code_cut;
    size_t restart;
};

/**
 * Fills y[m·n] and, unless NULL, bound[m·n] and spread[m·n] (ptxgen/accuracy.h). The bound is the
 * farthest that a correct kernel's output can be from y, after rounding to y_type. Infinite where
 * rounding decides between the largest finite output and infinity; NaN, which promises nothing,
 * where Σ|x·w|, or Σ|x·(q − z)| where scales are applied to sums in f32, could leave f32's range,
 * or a rounded weight is not finite.
 */
ptxgen_status marlin_reference(const struct marlin_problem *problem, double *y, double *bound,
                               ptxgen_spread *spread, ptxgen_error *err);

#endif
