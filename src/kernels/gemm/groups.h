/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of several groups of rows, as a layer of experts has them: the tokens of x and y are
 * sorted by group, group g has the rows [ends[g − 1], ends[g]), 0 rows or more, and weights of its
 * own, w[g]. The host knows the number of groups and the sum of their rows; `ends` is in global
 * memory and known to the device alone.
 *
 *     rows of x and y    │ group 0       │ group 1 │ group 3          │      group 2 has none
 *     tiles along M      │ 0  │ 1  │ 2 ┊ │ 3  │ 4┊ │ 5  │ 6  │ 7  │8┊ │
 *
 * A tile never crosses the end of a group, and tiles are numbered group by group. A CTA begins with
 * a table in shared memory: for each group, the tiles before it and its first row. The number of
 * all tiles follows, so each CTA computes the division of stages among CTAs (walk.h) that the host
 * computes where there is one group; tiles are divided by the same rule. Where the tiles have fewer
 * stages than there are CTAs, some CTAs are idle.
 */
#ifndef PTXGEN_KERNELS_GEMM_GROUPS_H
#define PTXGEN_KERNELS_GEMM_GROUPS_H

#include "walk.h"

struct gemm_groups {
    /* Set by the caller. */
    uint32_t count;           /* 0: all rows are one group, and the host divides its tiles */
    uint32_t tile_m, tiles_n; /* rows of a tile; tiles along N, of each group */
    ptx_u64 ends;             /* address of `count` rows, u32 each, in ascending order */

    ptx_u32 table; /* shared address */
    ptx_u32 tiles; /* of all groups */
};

/*
 * Fills the table. To be executed by all threads of the CTA, when the kernel that wrote `ends` has
 * completed. No tile has rows from row `m` on, whatever `ends` holds.
 */
void gemm_groups_begin(ptx_kernel *k, const struct gemm_threads *at, ptx_u32 m,
                       struct gemm_groups *g);
/*
 * Divides the stages of all tiles among `units` CTAs, or clusters: sets all of `d` but `stages`,
 * which the caller has set. `whole`: tiles are never divided.
 */
void gemm_groups_divide(ptx_kernel *k, const struct gemm_groups *g, ptx_u32 units, bool whole,
                        struct gemm_division *d);
/* The place of a tile, in bands of `band` tiles within its group. */
struct gemm_place gemm_groups_locate(ptx_kernel *k, const struct gemm_groups *g, ptx_u32 tile,
                                     uint32_t band);

#endif
