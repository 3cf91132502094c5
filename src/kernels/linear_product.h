/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A matrix product with its bound and spread in doubles, feature by feature: the part that the
 * references of dense and sparse24 have in common.
 *
 *     y[m,n] = activation(Σ_i x[m, column i]·w[n, i] + bias[n]) + residual[m,n]
 *
 * A family says how the weights of a feature are loaded, and reads the figures of linear.h off the
 * variant that serves this M.
 */
#ifndef PTXGEN_KERNELS_LINEAR_PRODUCT_H
#define PTXGEN_KERNELS_LINEAR_PRODUCT_H

#include "dots.h"
#include "linear.h"

#include <ptxgen/status.h>

/** An operand of a reference, which refuses NULL and a stride below the row where it is needed. */
struct linear_array {
    const char *name;
    const void *given;
    bool needed;
    uint64_t stride, columns; /**< stride 0: the row */
};
ptxgen_status linear_check_arrays(const char *family, const struct linear_array *arrays,
                                  size_t count, ptxgen_error *err);

struct linear_product {
    const char *family;
    uint64_t m;
    uint32_t n, k;
    uint32_t terms;       /**< of a sum: k, or fewer where a feature has weights for some of K */
    bool has_codes;       /**< x has s8 codes, else elements of type `type` */
    ptxgen_element type;  /**< of x */
    const void *x;        /**< [m, k], rows x_stride elements apart; 0: the row */
    const void *bias;     /**< [n] of y's type, or NULL */
    const void *residual; /**< [m, n] of y's type, or NULL; 0: the row */
    uint64_t x_stride, residual_stride;
    ptxgen_activation activation;
    ptxgen_element y_type;
    /** How the kernel sums, see struct linear_sum, and divides K, see struct dots_ways. */
    double depth, product_error, product_variance;
    struct walk_cuts cuts;
    size_t warps, steps;
    /** Loads the `terms` weights of feature n, and unless terms is k the columns they belong to. */
    void (*load_feature)(const void *user, uint32_t n, double *weights, uint32_t *columns);
    /**
     * Where operands are split into pieces: what the kernel loses of each operand of small
     * magnitude, and the magnitude from which on it has no pieces; 0: they are not split.
     */
    double split_unit, largest_split;
    /** The estimate of a sum that is scaled, in place of linear_add_up; or NULL. */
    struct linear_estimate (*scale)(const void *user, uint64_t m, uint32_t n, double sum,
                                    double magnitude);
    /** The output where the reference computes the kernel's own bits from the sum; or NULL. */
    double (*finish)(const void *user, uint64_t m, uint32_t n, double sum, const float *bias,
                     const double *residual);
    const void *user;
};

/** Fills y[m·n] and bound[m·n], and unless it is NULL spread[m·n]; refuses a bias not finite. */
ptxgen_status linear_product_reference(const struct linear_product *product, double *y,
                                       double *bound, ptxgen_spread *spread, ptxgen_error *err);

#endif
