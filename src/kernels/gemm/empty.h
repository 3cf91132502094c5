/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry of a plan without products: K is 0, so all sums are 0, and outputs are what an epilogue
 * makes of that:
 *
 *     y[m,n] = f(bias[n]) + residual[m,n]      with SwiGLU silu(bias[n])·up_bias[n] + residual[m,n]
 *
 * Where N is 0 the entry is emitted, too, so that a module has one, and is never launched.
 */
#ifndef PTXGEN_KERNELS_GEMM_EMPTY_H
#define PTXGEN_KERNELS_GEMM_EMPTY_H

#include <ptxgen/ptx.h>
#include <ptxgen/types.h>

#include <stdbool.h>

enum { GEMM_EMPTY_THREADS = 256 /* of the CTA of a token */ };

/* The parameters, of 64 bits: addresses, and strides in elements; unused ones are not read. */
enum gemm_empty_param {
    GEMM_EMPTY_Y,
    GEMM_EMPTY_BIAS,
    GEMM_EMPTY_UP_BIAS,
    GEMM_EMPTY_RESIDUAL,
    GEMM_EMPTY_Y_STRIDE,
    GEMM_EMPTY_RESIDUAL_STRIDE,
    GEMM_EMPTY_PARAMS
};

struct gemm_empty {
    uint32_t n;               /* features of y */
    ptxgen_element type;      /* of y and residual */
    ptxgen_element bias_type; /* f64 where y is f64 */
    ptxgen_activation activation;
    bool bias, residual;
    bool pairs;          /* SwiGLU */
    uint32_t bias_pairs; /* `bias` has so many of gate before as many of up; 0: up_bias has those */
};

/* Emits the entry `name`. */
void gemm_emit_empty(ptx_module *module, const char *name, const struct gemm_empty *what);

#endif
