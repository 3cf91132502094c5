/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of very different lengths within a warp, with breaks and continues. */
extern "C" __global__ void collatz(const unsigned *start, unsigned *steps, unsigned *peak, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long x = start[i], top = 0;
    unsigned count = 0;
    while (true) {
        if (x > top)
            top = x;
        if (x <= 1)
            break;
        count++;
        if (x % 2 == 0) {
            x /= 2;
            continue;
        }
        x = 3 * x + 1;
        if (count > 5000)
            break;
    }
    steps[i] = count;
    peak[i] = (unsigned)(top % 1000003);
}
