/* SPDX-License-Identifier: Apache-2.0 */
/* Inclusive prefix sum of a block: shuffles within warps, shared memory between them. */
extern "C" __global__ void scan(const int *in, int *out)
{
    __shared__ int totals[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int i = blockIdx.x * blockDim.x + threadIdx.x, value = in[i];
    for (int step = 1; step < 32; step *= 2) {
        int other = __shfl_up_sync(0xffffffffu, value, step);
        if (lane >= step)
            value += other;
    }
    if (lane == 31)
        totals[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int total = lane < (int)(blockDim.x >> 5) ? totals[lane] : 0;
        for (int step = 1; step < 32; step *= 2) {
            int other = __shfl_up_sync(0xffffffffu, total, step);
            if (lane >= step)
                total += other;
        }
        totals[lane] = total;
    }
    __syncthreads();
    out[i] = value + (warp ? totals[warp - 1] : 0);
}
