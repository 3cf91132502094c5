/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Small enumerations that the kernel families share, and conversions of the element types on the
 * host. The enumerators' values are part of cache keys and never change. The functions are pure:
 * nothing has a lifetime, and any thread may call them.
 *
 *     size_t bytes = k * ptxgen_element_size(PTXGEN_F16);
 *     ptxgen_element_store(PTXGEN_F16, x, i, 0.5);           // x[i] = 0.5
 *     double value = ptxgen_element_load(PTXGEN_F16, x, i);
 */
#ifndef PTXGEN_TYPES_H
#define PTXGEN_TYPES_H

#include <ptxgen/status.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Element types of activations and outputs. */
typedef enum ptxgen_element {
    PTXGEN_F32 = 0,
    PTXGEN_F16 = 1,
    PTXGEN_BF16 = 2,
    PTXGEN_F64 = 3 /**< only in families whose header says so */
} ptxgen_element;

/** How outputs of several weight matrices are combined before they are stored. */
typedef enum ptxgen_epilogue {
    PTXGEN_EPILOGUE_NONE = 0,
    PTXGEN_EPILOGUE_SWIGLU = 1, /**< silu(gate) · up, over a pair of weight matrices */
    PTXGEN_EPILOGUE_GEGLU = 2   /**< gelu_tanh(gate) · up; only in families whose header says so */
} ptxgen_epilogue;

/** The function that an epilogue applies to a sum v, after it has added the bias. */
typedef enum ptxgen_activation {
    PTXGEN_ACTIVATION_NONE = 0,
    PTXGEN_ACTIVATION_SILU = 1,      /**< v / (1 + e^−v) */
    PTXGEN_ACTIVATION_GELU = 2,      /**< v/2·(1 + erf(v/√2)) */
    PTXGEN_ACTIVATION_GELU_TANH = 3, /**< v/2·(1 + tanh(√(2/π)·(v + 0.044715·v³))) */
    PTXGEN_ACTIVATION_RELU = 4       /**< max(v, 0); a NaN stays a NaN; not in every family */
} ptxgen_activation;

/** Bytes of one element. */
PTXGEN_API size_t ptxgen_element_size(ptxgen_element type);
/** Returns element `index` of an array; the array may start at any address. */
PTXGEN_API double ptxgen_element_load(ptxgen_element type, const void *array, size_t index);
/**
 * Stores `value` rounded once, to nearest with ties to even. A value past the largest finite one
 * becomes an infinity, a value below the normal ones a subnormal, and a NaN stays a NaN.
 */
PTXGEN_API void ptxgen_element_store(ptxgen_element type, void *array, size_t index, double value);

#ifdef __cplusplus
}
#endif
#endif
