/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums of a cluster of two CTAs that divide a tile's K: each sends the other its sums of the
 * half of the rows that the other finishes, from registers into the other's shared memory, and adds
 * what it is sent to its own half.
 *
 *     CTA 0    rows 0 … h − 1   own + sent ─▶ Y          CTA 1    ── sent ─▶ CTA 0
 *              rows h … 2h − 1  ── sent ─▶ CTA 1                  own + sent ─▶ Y
 *
 * An mbarrier counts the bytes that come, and a thread waits for these alone. A barrier of the
 * cluster, between what both stage and what both read, would wait for all that a thread has in
 * flight in the device (MEMBAR.GPU), and for two ways between the CTAs: marlin's 4096 × 4096 with
 * 64 rows took 8.5 µs of an H200 so, and takes 7.7, with 32 rows 7.05 and 6.15. st.async is of PTX
 * 8.1, sm_90.
 */
#ifndef PTXGEN_KERNELS_TILE_EXCHANGE_H
#define PTXGEN_KERNELS_TILE_EXCHANGE_H

#include "sums.h"

struct tile_exchange {
    /* Set by the caller. */
    uint32_t threads;           /* that have sums, of a CTA */
    uint32_t tiles, row_groups; /* of a thread's accumulators (sums.h), row groups by two */
    bool integer;               /* s32, else f32; registers are untyped */
    ptx_u32 rank;               /* of the CTA in its cluster */

    ptx_u32 received; /* the other's sums, then the barrier that says that they are there */
};

/* Of shared memory. */
static inline uint32_t tile_exchange_bytes(uint32_t threads, uint32_t tiles, uint32_t row_groups)
{
    enum { BARRIER = 8 };
    return threads * tiles * row_groups / 2 * 16 + BARRIER;
}

/* Executed by all threads of the cluster, once; all but those with sums execute a wait later on. */
void tile_exchange_begin(ptx_kernel *k, const struct tile_threads *at, struct tile_exchange *x);
/* Leaves the sums of the rows that the CTA finishes in the accumulators of the first half. */
void tile_exchange_sums(ptx_kernel *k, const struct tile_threads *at, const struct tile_exchange *x,
                        tile_sums_register *acc, const void *from);

#endif
