/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What the launches of a plan promise about the bits and the values of y, as plain data: which
 * entry runs, whether y is exact, for which M a row of y has the same bits, what is rounded, and
 * which quantity the error is relative to. Every family of products fills it from its plan and the
 * tokens of a launch:
 *
 *     ptxgen_guarantee g;
 *     ptxgen_marlin_guarantee(&plan, 16, &g, &err);
 *     if (!g.batch_invariant)
 *         printf("%s: rows have the same bits from M = %u to %u\n", g.sku, g.from_m, g.to_m);
 *
 * How far an output may be off in numbers is what the family's reference computes, as the bound and
 * the spread of accuracy.h; a guarantee says without operands what kind of statement that is.
 *
 * Launches of a plan without products, whose K or N is 0, have sums of 0, which are exact; their
 * entry is called "marlin_empty" and so on.
 *
 * A guarantee is a plain value, with zeros where nothing is said, that may be compared by memcmp
 * and kept in a file. The functions are pure.
 */
#ifndef PTXGEN_GUARANTEE_H
#define PTXGEN_GUARANTEE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the products of x and w are summed in. */
typedef enum ptxgen_sums {
    PTXGEN_SUMS_F32 = 0, /**< in an order that plan and M determine; each addition rounds */
    PTXGEN_SUMS_S32 = 1  /**< exactly, so that the order does not matter */
} ptxgen_sums;

/** What an operand becomes before it is multiplied. */
typedef enum ptxgen_rounding {
    PTXGEN_ROUNDING_NONE = 0,      /**< it is multiplied as it is given */
    PTXGEN_ROUNDING_F16 = 1,       /**< a decoded weight, s·(q − z), or x is rounded to f16 */
    PTXGEN_ROUNDING_BF16 = 2,      /**< the same to bf16 */
    PTXGEN_ROUNDING_TF32_PAIR = 3, /**< an f32 becomes the sum of two tf32 */
    PTXGEN_ROUNDING_S8 = 4,        /**< x becomes codes of 8 bits with a scale for each token */
    PTXGEN_ROUNDING_E4M3 = 5,      /**< the same with fp8 codes */
    PTXGEN_ROUNDING_FIXED = 6,     /**< x becomes fixed point of 31 bits, one unit for 256 of K */
    PTXGEN_ROUNDING_FIXED_16 = 7,  /**< the same with 16 bits */
    PTXGEN_ROUNDING_FIXED_24 = 8   /**< the same with 24 bits */
} ptxgen_rounding;

/**
 * The quantity over K that the error of a sum is relative to, in the bound that the reference
 * computes. To the error of the sum come those of what follows it: scales, bias, activation,
 * residual and the rounding to y's type. Where weights are rounded (w_rounding), so does what that
 * changes in the sum.
 */
typedef enum ptxgen_bound_form {
    PTXGEN_BOUND_ZERO = 0,     /**< y has the bits that the reference computes */
    PTXGEN_BOUND_SUM = 1,      /**< |Σ x·w|: the sum is exact, and only what follows it rounds */
    PTXGEN_BOUND_PRODUCTS = 2, /**< Σ |x·w| */
    /**
     * Σ |x|·(|a| + |b|), where a weight is a − b: of s·q and s·z (with masked codes in bf16, of
     * s·(128 + q) and s·(128 + z)), or of d·sc·q and dmin·m. Both are summed separately, so a
     * weight of 0 contributes, too.
     */
    PTXGEN_BOUND_PARTS = 3
} ptxgen_bound_form;

enum { PTXGEN_SKU_BYTES = 32 };

typedef struct ptxgen_guarantee {
    /**
     * The name of the entry that multiplies, which identifies the kind of kernel: the family, how
     * it multiplies, and the tokens (m), or also features (n) and CTAs of a cluster (c) of its
     * tile. These names are stable: in later versions an entry of this name is such a kernel, and
     * other kernels have other names. The rest of the array is zeros.
     */
    char sku[PTXGEN_SKU_BYTES];
    uint8_t exact; /**< 1: y has the bits that the reference computes, so that its bound is 0 */
    /** 1: launches of this plan with the same M and operands give the same bits, on every device.
     */
    uint8_t same_bits;
    /** 1: a row of y has the same bits whatever M is, among those that the plan serves. */
    uint8_t batch_invariant;
    uint8_t sums;       /**< ptxgen_sums */
    uint8_t x_rounding; /**< ptxgen_rounding */
    uint8_t w_rounding; /**< ptxgen_rounding */
    uint8_t bound;      /**< ptxgen_bound_form */
    uint8_t reserved;
    /**
     * A row of y that launches of from_m to to_m tokens have in common has the same bits in all of
     * them; m is one of these. Beyond them the bits may differ. to_m is at most 2³¹ − 1.
     */
    uint32_t from_m, to_m;
} ptxgen_guarantee;

#ifdef __cplusplus
}
#endif
#endif
