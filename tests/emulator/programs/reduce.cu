/* SPDX-License-Identifier: Apache-2.0 */
/* Sum of n floats: grid-stride loads, warp shuffles, shared memory, one atomic a block. */
extern "C" __global__ void reduce(const float *x, float *sum, int n)
{
    __shared__ float parts[32];
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += x[i];
    for (int step = 16; step > 0; step >>= 1)
        mine += __shfl_xor_sync(0xffffffffu, mine, step);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        mine = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0;
        for (int step = 16; step > 0; step >>= 1)
            mine += __shfl_down_sync(0xffffffffu, mine, step);
        if (threadIdx.x == 0)
            atomicAdd(sum, mine);
    }
}
