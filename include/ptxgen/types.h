/* SPDX-License-Identifier: Apache-2.0 */
/** Small enumerations that the kernel families share. Their values are part of cache keys. */
#ifndef PTXGEN_TYPES_H
#define PTXGEN_TYPES_H

/** Element types of activations and outputs. */
typedef enum ptxgen_element { PTXGEN_F32 = 0, PTXGEN_F16 = 1, PTXGEN_BF16 = 2 } ptxgen_element;

/** What happens to an output before it is stored. */
typedef enum ptxgen_epilogue {
    PTXGEN_EPILOGUE_NONE = 0,
    PTXGEN_EPILOGUE_SWIGLU = 1 /**< silu(gate) · up, over a pair of weight matrices */
} ptxgen_epilogue;

#endif
