/* SPDX-License-Identifier: Apache-2.0 */
/* Ballots, matches, reductions and elections in a warp, whole and in parts. */
extern "C" __global__ void votes(const int *in, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, value = in[i];
    unsigned odd = __ballot_sync(0xffffffffu, value & 1), r = odd;
    r = r * 31 + __match_any_sync(0xffffffffu, value % 5);
    r = r * 31 + __any_sync(0xffffffffu, value > 90) * 2 + __all_sync(0xffffffffu, value < 100);
    r = r * 31 + __reduce_add_sync(0xffffffffu, (unsigned)value);
    r = r * 31 + (unsigned)__reduce_max_sync(0xffffffffu, value);
    if (value & 1) {
        unsigned leader = __ffs(odd) - 1;
        r = r * 31 + (unsigned)__shfl_sync(odd, value, leader);
        r = r * 31 + __reduce_min_sync(odd, (unsigned)value);
    } else {
        r = r * 31 + __popc(__ballot_sync(~odd, value % 4 == 0));
    }
    __syncwarp();
    out[i] = r;
}
