/* SPDX-License-Identifier: Apache-2.0 */
/* Directed rounding, single and double, square roots, reciprocals and the fast approximations. */
extern "C" __global__ void rounding(const double *x, const double *y, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double a = x[i], b = y[i];
    float p = (float)a, q = (float)b;
    double *o = out + 16 * i;
    o[0] = __dadd_rz(a, b);
    o[1] = __dmul_ru(a, b);
    o[2] = __fma_rd(a, b, 1.0);
    o[3] = __ddiv_rn(a, b);
    o[4] = __dsqrt_rn(fabs(a));
    o[5] = __fadd_rd(p, q);
    o[6] = __fmul_ru(p, q);
    o[7] = __fmaf_rz(p, q, 1.0f);
    o[8] = __fdiv_rn(p, q);
    o[9] = __fsqrt_ru(fabsf(p));
    o[10] = __float2int_rn(p * 100) + __double2ll_rd(a * 1000);
    o[11] = __frcp_rn(q);
    o[12] = __expf(p * 0.01f);
    o[13] = __sinf(p * 0.01f);
    o[14] = rsqrtf(fabsf(p) + 1);
    o[15] = __uint2float_rz(__float2uint_ru(fabsf(p) * 1e5f)) + __ll2double_rn(1ll << 60);
}
