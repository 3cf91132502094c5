/* SPDX-License-Identifier: Apache-2.0 */
/* A sieve with byte stores, constants and a struct. */
struct range {
    unsigned first, last;
    unsigned char mark;
};
__constant__ unsigned primes[6] = {2, 3, 5, 7, 11, 13};

extern "C" __global__ void sieve(unsigned char *out, struct range range)
{
    __shared__ unsigned char composite[256];
    unsigned i = threadIdx.x;
    composite[i] = 0;
    __syncthreads();
    for (int p = 0; p < 6; p++)
        if ((range.first + i) % primes[p] == 0 && range.first + i != primes[p])
            composite[i] = range.mark;
    __syncthreads();
    if (range.first + i < range.last)
        out[i] = composite[blockDim.x - 1 - i] + composite[i];
}
