/* SPDX-License-Identifier: Apache-2.0 */
/* A critical section under a spin lock, and the last block finishing the sum of all. */
__device__ unsigned finished;
__device__ int mutex;

extern "C" __global__ void lock(const double *x, double *partial, double *total, int *inside, int n)
{
    __shared__ double sums[64];
    __shared__ bool last;
    double mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += x[i];
    sums[threadIdx.x] = mine;
    __syncthreads();
    for (int step = 32; step > 0; step /= 2) {
        if (threadIdx.x < step)
            sums[threadIdx.x] += sums[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x % 16 == 0) {
        bool done = false;
        while (!done)
            if (atomicCAS(&mutex, 0, 1) == 0) {
                __threadfence();
                *(volatile int *)inside += 1;
                __threadfence();
                atomicExch(&mutex, 0);
                done = true;
            }
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sums[0];
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        __threadfence(); /* the counter is relaxed: order begins here */
        double sum = 0;
        for (unsigned b = 0; b < gridDim.x; b++)
            sum += ((volatile double *)partial)[b];
        *total = sum;
    }
}
