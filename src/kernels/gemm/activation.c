/* SPDX-License-Identifier: Apache-2.0 */
#include "epilogue.h"

/* v / (1 + 2^power) */
static ptx_f32 gate(ptx_kernel *k, ptx_f32 v, ptx_f32 power)
{
    ptx_f32 e = ptx_ex2_approx_f32(k, power);
    ptx_f32 denominator = ptx_add_f32(k, e, F32(1));
    return ptx_div_full_f32(k, v, denominator);
}

/* v / (1 + e^−v) */
static ptx_f32 silu(ptx_kernel *k, ptx_f32 v)
{
    return gate(k, v, ptx_mul_f32(k, v, F32(-1.44269504f)));
}

/*
 * v/2·(1 + tanh(u)) with u = √(2/π)·(v + 0.044715·v³); (1 + tanh(u))/2 = 1 / (1 + e^−2u).
 */
static ptx_f32 gelu_tanh(ptx_kernel *k, ptx_f32 v)
{
    ptx_f32 square = ptx_mul_f32(k, v, v);
    ptx_f32 slope = ptx_fma_f32(k, square, F32(-0.102943240f), F32(-2.30220819f));
    return gate(k, v, ptx_mul_f32(k, v, slope));
}

/*
 * v/2·(1 + erf(v/√2)). For x ≥ 0, erf(x) = 1 − (a₁t + … + a₅t⁵)·e^−x² with t = 1/(1 + px); the
 * error of this approximation is at most 1.5e-7 (Abramowitz and Stegun, Handbook of Mathematical
 * Functions, 7.1.26).
 */
static ptx_f32 gelu(ptx_kernel *k, ptx_f32 v)
{
    static const float a[] = {0.254829592f, -0.284496736f, 1.421413741f, -1.453152027f,
                              1.061405429f};
    ptx_f32 magnitude = ptx_abs_f32(k, v);
    ptx_f32 x = ptx_mul_f32(k, magnitude, F32(0.707106781f));
    ptx_f32 denominator = ptx_fma_f32(k, x, F32(0.3275911f), F32(1));
    ptx_f32 t = ptx_rcp_approx_f32(k, denominator);
    ptx_f32 polynomial = ptx_fma_f32(k, t, F32(a[4]), F32(a[3]));
    for (int i = 2; i >= 0; i--)
        polynomial = ptx_fma_f32(k, polynomial, t, F32(a[i]));
    ptx_f32 weighted = ptx_mul_f32(k, polynomial, t);
    ptx_f32 square = ptx_mul_f32(k, x, x);
    ptx_f32 power = ptx_mul_f32(k, square, F32(-1.44269504f));
    ptx_f32 e = ptx_ex2_approx_f32(k, power);
    ptx_f32 half = ptx_mul_f32(k, weighted, F32(0.5f));
    ptx_f32 tail = ptx_mul_f32(k, half, e); /* (1 − erf|x|)/2 */
    ptx_pred negative = ptx_setp_lt_f32(k, v, F32(0));
    ptx_f32 rest = ptx_sub_f32(k, F32(1), tail);
    ptx_f32 share = ptx_selp_f32(k, tail, rest, negative);
    return ptx_mul_f32(k, v, share);
}

/* max(v, 0); a NaN stays a NaN. */
static ptx_f32 relu(ptx_kernel *k, ptx_f32 v)
{
    ptx_pred negative = ptx_setp_lt_f32(k, v, F32(0));
    return ptx_selp_f32(k, F32(0), v, negative);
}

ptx_f32 gemm_activate(ptx_kernel *k, ptxgen_activation activation, ptx_f32 v)
{
    switch (activation) {
    case PTXGEN_ACTIVATION_SILU: return silu(k, v);
    case PTXGEN_ACTIVATION_GELU: return gelu(k, v);
    case PTXGEN_ACTIVATION_GELU_TANH: return gelu_tanh(k, v);
    case PTXGEN_ACTIVATION_RELU: return relu(k, v);
    default: return v;
    }
}
