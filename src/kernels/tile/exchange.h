/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums of a cluster of two CTAs that divide a tile's K: each sends the other its sums of the
 * half of the rows that the other finishes, from registers into the other's shared memory, and adds
 * what it is sent to its own half.
 *
 *     CTA 0    rows 0 … h − 1   own + sent ─▶ Y          CTA 1    ── sent ─▶ CTA 0
 *              rows h … 2h − 1  ── sent ─▶ CTA 1                  own + sent ─▶ Y
 *
 * Where two teams of each CTA divide K, they first leave each other half of the rows, in shared
 * memory, so that half as much goes between the CTAs, at some 40 bytes a nanosecond: 4096 × 4096
 * with 64 rows takes 6.6 µs of an H200 so, 7.0 where teams add up what the CTAs have exchanged, and
 * 7.2 where each sends its sums to the three others. What is asked of the other CTA before the sums
 * are there, and done between sending and receiving, saves 0.1 to 0.2 µs.
 *
 * An mbarrier counts the bytes that come, and a thread waits for these alone. A barrier of the
 * cluster, between what both stage and what both read, would wait for all that a thread has in
 * flight in the device (MEMBAR.GPU), and for two ways between the CTAs: marlin's 4096 × 4096 with
 * 64 rows took 8.5 µs of an H200 so, and takes 7.7, with 32 rows 7.05 and 6.15. st.async is of PTX
 * 8.1, sm_90.
 */
#ifndef PTXGEN_KERNELS_TILE_EXCHANGE_H
#define PTXGEN_KERNELS_TILE_EXCHANGE_H

#include "ring.h"
#include "sums.h"

struct tile_exchange {
    /* Set by the caller. */
    uint32_t threads;           /* that have sums, of a CTA */
    uint32_t teams;             /* one, or two halves of the threads that divide the CTA's K … */
    uint32_t barrier;           /* … and have a barrier */
    uint32_t tiles, row_groups; /* of a thread's accumulators (sums.h); row groups by all teams */
    bool integer;               /* s32, else f32; registers are untyped */
    ptx_u32 rank;               /* of the CTA in its cluster */
    ptx_u32 team;               /* the thread's, where there are two */

    ptx_u32 received; /* the other's sums, then the barrier that says that they are there */
    ptx_u32 of_teams; /* what two teams have for each other */
    struct tile_ring_place all;   /* that barrier, to be waited for */
    ptx_u32 here, there;          /* the thread's place in `received`, and in the other CTA's … */
    ptx_u32 of_other;             /* … which is there */
    ptx_u32 own_team, other_team; /* the thread's place in what is for its team, and the other */
    ptx_pred second;              /* whether this CTA finishes the second half */
};

/* Of shared memory. */
static inline uint32_t tile_exchange_bytes(uint32_t threads, uint32_t teams, uint32_t tiles,
                                           uint32_t row_groups)
{
    enum { BARRIER = 8 };
    uint32_t half = threads * tiles * row_groups / 2 * 16;
    return (teams > 1 ? half + half / 2 : half) + BARRIER;
}

/* Executed by all threads of the cluster, once; all but those with sums execute a wait later on. */
void tile_exchange_begin(ptx_kernel *k, const struct tile_threads *at, struct tile_exchange *x);
/* Executed by the threads with sums, before they send: waits for the other CTA to begin. */
void tile_exchange_open(ptx_kernel *k, const struct tile_threads *at, struct tile_exchange *x);
/*
 * Leaves the sums of the rows that the CTA, or its team, finishes in the accumulators of the first
 * half, or quarter, …
 */
void tile_exchange_send(ptx_kernel *k, const struct tile_exchange *x, tile_sums_register *acc,
                        const void *from);
/* … and adds the other CTA's. What stands between the two costs no time. */
void tile_exchange_receive(ptx_kernel *k, const struct tile_exchange *x, tile_sums_register *acc,
                           const void *from);

#endif
