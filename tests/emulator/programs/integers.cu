/* SPDX-License-Identifier: Apache-2.0 */
/* 64-bit division, high products, counting bits, byte permutation, 128-bit sums, dot products. */
extern "C" __global__ void integers(const unsigned long long *x, unsigned long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long a = x[i], b = x[(i + 1) % n] | 1;
    long long s = (long long)a >> 3, t = (long long)b;
    unsigned low = (unsigned)a, high = (unsigned)(a >> 32);
    unsigned __int128 wide = (unsigned __int128)a * b + a;
    unsigned long long r = a / b + a % b + (unsigned long long)(s / t) + (unsigned long long)(s % t);
    r += __umul64hi(a, b) ^ (unsigned long long)(wide >> 64) ^ (unsigned long long)wide;
    r += __popcll(a) + 3 * __clzll(b) + 5 * __ffsll(a) + __brev(low) + __brevll(b);
    r ^= (unsigned long long)__byte_perm(low, high, low & 0x7777) << 7;
    r += __dp4a((int)low, (int)high, 17) + __dp4a(low, high, 19u) + __sad(low, high, 3u);
    r ^= __funnelshift_l(low, high, low & 31) + __funnelshift_r(low, high, high & 31);
    r += (unsigned)__mul24((int)low, (int)high) + __umulhi(low, high) + (unsigned)__mulhi((int)low, (int)high);
    out[i] = r;
}
