/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activation functions of an epilogue, of one f32 value in a register. The result of each function
 * differs from the exact one by less than 2⁻²⁰·|v|.
 */
#ifndef PTXGEN_KERNELS_GEMM_ACTIVATION_H
#define PTXGEN_KERNELS_GEMM_ACTIVATION_H

#include "emit.h"

#include <ptxgen/types.h>

/* v / (1 + e^−v) */
ptx_f32 gemm_silu(ptx_kernel *k, ptx_f32 v);
/* v/2·(1 + erf(v/√2)) */
ptx_f32 gemm_gelu(ptx_kernel *k, ptx_f32 v);
/* v/2·(1 + tanh(√(2/π)·(v + 0.044715·v³))) */
ptx_f32 gemm_gelu_tanh(ptx_kernel *k, ptx_f32 v);
/* max(v, 0); a NaN stays a NaN. */
ptx_f32 gemm_relu(ptx_kernel *k, ptx_f32 v);
/* Applies the function that `activation` names; PTXGEN_ACTIVATION_NONE returns v as it is. */
ptx_f32 gemm_activate(ptx_kernel *k, ptxgen_activation activation, ptx_f32 v);

#endif
