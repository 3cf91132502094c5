/* SPDX-License-Identifier: Apache-2.0 */
/* f16 and bf16 arithmetic, packed and single, with conversions. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void halves(const float *x, const float *y, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __half2 a = __floats2half2_rn(x[i], y[i]), b = __floats2half2_rn(y[i], 0.5f);
    __half2 c = __hfma2(a, b, __hmul2(a, a));
    __half d = __hadd(__low2half(c), __hmax(__high2half(c), __float2half(0.25f)));
    __nv_bfloat16 e = __hsub(__float2bfloat16(x[i]), __float2bfloat16(y[i]));
    out[3 * i] = __low2float(c);
    out[3 * i + 1] = __half2float(d);
    out[3 * i + 2] = __bfloat162float(__hmul(e, e));
}
