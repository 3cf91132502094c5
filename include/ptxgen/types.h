/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Small enumerations that the kernel families share, whose values are part of cache keys, and the
 * element types' conversions on the host. Pure functions; no lifetime, any thread.
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
    PTXGEN_F64 = 3 /**< not of every family */
} ptxgen_element;

/** What happens to an output before it is stored. */
typedef enum ptxgen_epilogue {
    PTXGEN_EPILOGUE_NONE = 0,
    PTXGEN_EPILOGUE_SWIGLU = 1 /**< silu(gate) · up, over a pair of weight matrices */
} ptxgen_epilogue;

/** What is applied to a sum, after the bias. */
typedef enum ptxgen_activation {
    PTXGEN_ACTIVATION_NONE = 0,
    PTXGEN_ACTIVATION_SILU = 1,      /**< v / (1 + e^−v) */
    PTXGEN_ACTIVATION_GELU = 2,      /**< v/2·(1 + erf(v/√2)) */
    PTXGEN_ACTIVATION_GELU_TANH = 3, /**< v/2·(1 + tanh(√(2/π)·(v + 0.044715·v³))) */
    PTXGEN_ACTIVATION_RELU = 4       /**< max(v, 0), NaN of NaN; not of every family */
} ptxgen_activation;

/** Bytes of one element. */
PTXGEN_API size_t ptxgen_element_size(ptxgen_element type);
/** Element `index` of an array, which may start at any address. */
PTXGEN_API double ptxgen_element_load(ptxgen_element type, const void *array, size_t index);
/**
 * Stores `value` rounded once, to nearest, ties to even: past the largest finite value to
 * infinity, below the normal ones to a subnormal. A NaN stays one.
 */
PTXGEN_API void ptxgen_element_store(ptxgen_element type, void *array, size_t index, double value);

#ifdef __cplusplus
}
#endif
#endif
