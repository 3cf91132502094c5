/* SPDX-License-Identifier: Apache-2.0 */
/* Bitonic sort of a block's keys in dynamic shared memory. */
extern "C" __global__ void bitonic(unsigned *keys)
{
    extern __shared__ unsigned shared[];
    unsigned i = threadIdx.x;
    shared[i] = keys[blockIdx.x * blockDim.x + i];
    __syncthreads();
    for (unsigned size = 2; size <= blockDim.x; size *= 2)
        for (unsigned step = size / 2; step > 0; step /= 2) {
            unsigned other = i ^ step;
            if (other > i) {
                bool up = (i & size) == 0;
                unsigned a = shared[i], b = shared[other];
                if ((a > b) == up) {
                    shared[i] = b;
                    shared[other] = a;
                }
            }
            __syncthreads();
        }
    keys[blockIdx.x * blockDim.x + i] = shared[i];
}
