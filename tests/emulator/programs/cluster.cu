/* SPDX-License-Identifier: Apache-2.0 */
/* Four CTAs of a cluster exchange values through distributed shared memory. */
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster(const int *in, int *out)
{
    __shared__ int mine[64];
    cg::cluster_group group = cg::this_cluster();
    int rank = group.block_rank(), t = threadIdx.x;
    mine[t] = in[blockIdx.x * 64 + t];
    group.sync();
    int sum = 0;
    for (int r = 0; r < 4; r++)
        sum = sum * 3 + group.map_shared_rank(mine, (rank + r) % 4)[63 - t];
    group.sync();
    atomicAdd(&group.map_shared_rank(mine, 0)[t], 0);
    group.sync();
    out[blockIdx.x * 64 + t] = sum;
}
