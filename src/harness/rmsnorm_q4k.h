/* SPDX-License-Identifier: Apache-2.0 */
/** The operands of rmsnorm_q4k's launches, as problems number them; of matrix i, the i-th. */
#ifndef PTXGEN_HARNESS_RMSNORM_Q4K_H
#define PTXGEN_HARNESS_RMSNORM_Q4K_H

#include "problem.h"

#include <ptxgen/rmsnorm_q4k.h>

enum {
    RMSNORM_Q4K_AT_X,
    RMSNORM_Q4K_AT_RESIDUAL,
    RMSNORM_Q4K_AT_RESIDUAL_OUT,
    RMSNORM_Q4K_AT_GAMMA,
    RMSNORM_Q4K_AT_W,
    RMSNORM_Q4K_AT_BIAS = RMSNORM_Q4K_AT_W + PTXGEN_RMSNORM_Q4K_MATRICES,
    RMSNORM_Q4K_AT_Y = RMSNORM_Q4K_AT_BIAS + PTXGEN_RMSNORM_Q4K_MATRICES,
    RMSNORM_Q4K_OPERANDS = RMSNORM_Q4K_AT_Y + PTXGEN_RMSNORM_Q4K_MATRICES
};

unsigned rmsnorm_q4k_matrices(const ptxgen_rmsnorm_q4k_spec *spec);

#endif
