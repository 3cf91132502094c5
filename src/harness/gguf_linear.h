/* SPDX-License-Identifier: Apache-2.0 */
/** The operands of gguf_linear's launches, as problems number them; of matrix i, the i-th. */
#ifndef PTXGEN_HARNESS_GGUF_LINEAR_H
#define PTXGEN_HARNESS_GGUF_LINEAR_H

#include "problem.h"

#include <ptxgen/gguf_linear.h>

enum {
    GGUF_LINEAR_AT_X,
    GGUF_LINEAR_AT_RESIDUAL,
    GGUF_LINEAR_AT_RESIDUAL_OUT,
    GGUF_LINEAR_AT_GAMMA,
    GGUF_LINEAR_AT_POST_GAMMA,
    GGUF_LINEAR_AT_W,
    GGUF_LINEAR_AT_BIAS = GGUF_LINEAR_AT_W + PTXGEN_GGUF_LINEAR_MATRICES,
    GGUF_LINEAR_AT_Y = GGUF_LINEAR_AT_BIAS + PTXGEN_GGUF_LINEAR_MATRICES,
    GGUF_LINEAR_OPERANDS = GGUF_LINEAR_AT_Y + PTXGEN_GGUF_LINEAR_MATRICES
};

unsigned gguf_linear_matrices(const ptxgen_gguf_linear_spec *spec);

/** The types that the family multiplies, by rising number: type `index`, or −1 past the last. */
int gguf_linear_type_at(size_t index);

#endif
