/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split-K within a cluster of two CTAs. Each CTA has partial sums of the whole tile, over its half
 * of K, and finishes one half of the tile's rows (tokens): st.async stores its sums of the other
 * half from registers into the other CTA's shared memory, and the CTA adds the sums that it
 * receives to those of its own half.
 *
 *                 sums of rows 0 to h − 1       sums of rows h to 2h − 1
 *     CTA 0       kept, + received ─▶ Y         st.async ─▶ CTA 1
 *     CTA 1       st.async ─▶ CTA 0             kept, + received ─▶ Y
 *
 * Where two teams of warps of each CTA divide the CTA's K once more, the teams first exchange
 * halves of the rows through the CTA's own shared memory; that halves the bytes between the CTAs.
 *
 * An mbarrier in the receiving CTA counts the bytes of st.async, so a thread waits for those bytes
 * alone. A cluster barrier instead would also wait for all of a thread's accesses to global memory
 * (ptxas emits MEMBAR.GPU with it). st.async needs PTX 8.1 and sm_90.
 */
#ifndef PTXGEN_KERNELS_GEMM_EXCHANGE_H
#define PTXGEN_KERNELS_GEMM_EXCHANGE_H

#include "ring.h"
#include "sums.h"

struct gemm_exchange {
    /* Set by the caller. */
    uint32_t threads;           /* of a CTA that hold sums */
    uint32_t teams;             /* 1, or 2: halves of `threads` divide the CTA's K */
    uint32_t barrier;           /* number of the CTA barrier for two teams */
    uint32_t tiles, row_groups; /* of a thread's accumulators (sums.h), of all teams together */
    bool integer;               /* sums are s32, else f32; registers are untyped */
    ptx_u32 rank;               /* of the CTA in its cluster */
    ptx_u32 team;               /* 0 or 1, where there are two */

    /* Shared addresses, but for `second`. */
    ptx_u32 received;             /* buffer for the other CTA's sums; the mbarrier follows it */
    ptx_u32 of_teams;             /* buffer for the exchange between teams */
    struct gemm_ring_place all;   /* the mbarrier, in the form that gemm_ring_wait takes */
    ptx_u32 here, there;          /* the thread's place in this and in the other CTA's `received` */
    ptx_u32 of_other;             /* the other CTA's mbarrier */
    ptx_u32 own_team, other_team; /* the thread's place in of_teams to read from, and to write to */
    ptx_pred second;              /* this CTA finishes the second half of the rows */
};

/* Bytes of shared memory that an exchange takes. */
static inline uint32_t gemm_exchange_bytes(uint32_t threads, uint32_t teams, uint32_t tiles,
                                           uint32_t row_groups)
{
    enum { BARRIER = 8 };
    uint32_t half = threads * tiles * row_groups / 2 * 16;
    return (teams > 1 ? half + half / 2 : half) + BARRIER;
}

/*
 * Sets up the mbarrier and arrives at the cluster barrier. To be executed once by all threads of
 * the cluster. The threads without sums have to wait at the cluster barrier later on; those with
 * sums do so in gemm_exchange_open.
 */
void gemm_exchange_begin(ptx_kernel *k, const struct gemm_threads *at, struct gemm_exchange *x);
/* Waits until the other CTA has begun. To be executed by the threads with sums before they send. */
void gemm_exchange_open(ptx_kernel *k, const struct gemm_threads *at, struct gemm_exchange *x);
/*
 * Sends the sums of the other CTA's rows. The sums of the rows that the CTA finishes are then in
 * the accumulators of the first half of the rows; with two teams, the sums of the rows that a team
 * finishes are in those of the first quarter.
 */
void gemm_exchange_send(ptx_kernel *k, const struct gemm_exchange *x, gemm_sums_register *acc,
                        const void *from);
/*
 * Waits for the other CTA's sums and adds them to the accumulators that gemm_exchange_send left.
 * Work that is emitted between gemm_exchange_send and this call overlaps the transfer.
 */
void gemm_exchange_receive(ptx_kernel *k, const struct gemm_exchange *x, gemm_sums_register *acc,
                           const void *from);

#endif
