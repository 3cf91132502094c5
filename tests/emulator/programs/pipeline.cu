/* SPDX-License-Identifier: Apache-2.0 */
/* A moving average with asynchronous copies to shared memory, two stages deep. */
#include <cuda_pipeline.h>

extern "C" __global__ void pipeline(const float4 *in, float4 *out, int tiles)
{
    __shared__ float4 stage[2][64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&stage[0][t], &in[blockIdx.x * tiles * 64 + t], 16);
    __pipeline_commit();
    for (int i = 0; i < tiles; i++) {
        if (i + 1 < tiles)
            __pipeline_memcpy_async(&stage[(i + 1) & 1][t],
                                    &in[(blockIdx.x * tiles + i + 1) * 64 + t], 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 a = stage[i & 1][t], b = stage[i & 1][(t + 1) % 64];
        out[(blockIdx.x * tiles + i) * 64 + t] =
            make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
        __syncthreads();
    }
}
