/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fused RMSNorm + Q4_K GEMV in double precision, with an error bound for an f32 kernel.
 *
 *     x'[m,k] = x[m,k] + r[m,k], rounded to x's type (x' = x without a residual)
 *     y[m,n]  = Σ_k W[n,k]·x'[m,k]·γ[k] / sqrt(Σ_k x'[m,k]²/K + ε) + bias[n]
 *
 * Rules for what is not an ordinary number:
 * - A NaN or infinity in x'[m,·] makes all of y[m,·] NaN, and no other row. (An infinity would be
 *   Inf/Inf.) So does a product x'·γ that f32 cannot hold, and a row of zeros with ε = 0 (0/0).
 * - Where y[m,n], rounded to the output's type, would be infinite, the result is that infinity.
 * - W, γ and bias must be finite, which is checked: no kernel promises anything about others.
 */
#ifndef PTXGEN_KERNELS_RMSNORM_Q4K_REFERENCE_H
#define PTXGEN_KERNELS_RMSNORM_Q4K_REFERENCE_H

#include "../half.h"

#include <ptxgen/accuracy.h>
#include <ptxgen/status.h>

#include <stddef.h>

struct rmsnorm_q4k_problem {
    size_t m, k, n; /**< tokens, weights a row (a multiple of 256), outputs; m and n may be 0 */
    ptxgen_element x_type, y_type;

    const void *x; /**< [m, k] of x_type, rows `x_stride` elements apart */
    size_t x_stride;
    const void *residual; /**< [m, k] of x_type, rows `residual_stride` apart, or NULL */
    size_t residual_stride;
    void *sum; /**< receives x' as [m, k] of x_type, rows `sum_stride` apart, or NULL; may be x or r
                */
    size_t sum_stride;

    const float *gamma; /**< [k] */
    const void *w;      /**< [n] rows of Q4_K, contiguous */
    const float *bias;  /**< [n], or NULL */
    float eps;          /**< at least 0 */

    /**
     * How the kernel sums, for the bound alone: the most additions (an fma counts as one) that a
     * single term passes through on its way into Σ W·x·γ, and into Σ x². For a thread that
     * chains c terms and a tree over t threads that is c + ceil(log2 t). A tensor-core product
     * over p terms counts as p + 3: it cuts p products and the addend at 2⁻²⁴ of the largest, and
     * rounds toward zero, which may take two units more.
     */
    unsigned dot_depth, square_depth;
    /**
     * Where x·γ is kept in pieces of a narrower range: how much of it may be lost beyond rounding,
     * relative to the largest of its super-block. 0 for a kernel that keeps it in f32.
     */
    double operand_floor;
    /** What the largest counts as at least, where those pieces have a least exponent too; or 0. */
    double operand_least;
    /** What each super-block of a dot product may lose besides, through scales that underflow; or
     * 0. */
    double block_loss;
};

/** The arrays that a reference fills, an element for each output; bound and spread may be NULL. */
struct rmsnorm_q4k_results {
    double *y, *bound;
    ptxgen_spread *spread;
};

/**
 * Fills y[m·n] and, unless NULL, bound[m·n] and spread[m·n] (ptxgen/accuracy.h). The bound is the
 * farthest that a correct kernel's output, after rounding to y_type, can be from y. See reference.c
 * for the derivation. The bound is infinite where rounding decides between the largest finite
 * output and infinity, and NaN, which promises nothing, where Σ|q·x·γ| (of a kernel without pieces)
 * or Σ|W·x·γ| could leave f32's range on the way to a smaller y, and where Σx²/K + ε is below what
 * f32 holds. A row whose Σx² leaves f32's range gets no such licence: a kernel can scale x first.
 */
ptxgen_status rmsnorm_q4k_reference(const struct rmsnorm_q4k_problem *problem,
                                    const struct rmsnorm_q4k_results *results, ptxgen_error *err);

#endif
