/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-K's fix-up: where a tile is divided among CTAs, the one with its last stage adds the
 * others' partial sums to its own. Each CTA has a flag of 4 bytes, 0 between launches, and room for
 * the accumulators of its threads in the workspace:
 *
 *     CTA c − 1   stores its sums, raises its flag (release)
 *     CTA c       waits for the flag (acquire), lowers it, adds the sums to its own
 */
#ifndef PTXGEN_KERNELS_GEMM_FIXUP_H
#define PTXGEN_KERNELS_GEMM_FIXUP_H

#include "ring.h"
#include "walk.h"

/*
 * Sets the CTA's flag after all threads have stored their partial sums. Each CTA has a flag of 4
 * bytes at `flags`, which is 0 between launches. To be executed by all threads of the team.
 */
void gemm_fixup_publish(ptx_kernel *k, const struct gemm_threads *at, ptx_u64 flags);
/* Sets a CTA's flag; waits for a CTA's flag and clears it. Each to be executed by one thread. */
void gemm_raise_flag(ptx_kernel *k, ptx_u64 flags, ptx_u32 cta);
void gemm_take_flag(ptx_kernel *k, ptx_u64 flags, ptx_u32 cta);
/*
 * Waits for the flags of the CTAs from `lowest` up to this one, and clears them. To be executed by
 * all `threads` threads of the team.
 */
void gemm_fixup_wait(ptx_kernel *k, const struct gemm_threads *at, ptx_u64 flags, ptx_u32 lowest,
                     uint32_t threads);
/*
 * The lowest CTA that has a stage of a tile that this CTA ends; `gemm_stage` is the first stage of
 * the tile.
 */
ptx_u32 gemm_fixup_lowest_cta(ptx_kernel *k, const struct gemm_division *d,
                              const struct gemm_threads *at, ptx_u32 gemm_stage);

/*
 * The partial sums of a CTA in the workspace, in the order of the accumulators' registers: fragment
 * i of thread t is 16 bytes at 16·(i·threads + t), so that a warp's accesses are contiguous.
 */
struct gemm_partials {
    uint32_t threads, fragments; /* of a CTA, of a thread */
    bool integer;                /* s32, else f32; registers are untyped */
    ptx_u64 mine;                /* address of the thread's first fragment */
};
static inline uint64_t gemm_partials_bytes(uint32_t threads, uint32_t fragments)
{
    return (uint64_t)threads * fragments * 16;
}
/* `base`: address of the partial sums of CTA 0. */
void gemm_partials_begin(ptx_kernel *k, const struct gemm_threads *at, ptx_u64 base,
                         struct gemm_partials *p);
/* Returns register r of fragment i of the thread's accumulators. */
typedef ptx_u32 gemm_fragment_register(const void *from, uint32_t i, uint32_t r);
void gemm_partials_store(ptx_kernel *k, const struct gemm_partials *p, gemm_fragment_register *get,
                         const void *from);
/* Adds the partial sums of the CTAs from this CTA's neighbour down to `lowest` to the registers. */
void gemm_partials_add(ptx_kernel *k, const struct gemm_partials *p, const struct gemm_threads *at,
                       ptx_u32 lowest, gemm_fragment_register *get, const void *from);

/*
 * The fix-up for kernels with a ring (ring.h), which does not hold up the warps that multiply:
 *
 *     CTA with a part     consumers    store partial sums, arrive at a CTA barrier, go on
 *                         flag warp    waits at that barrier, then releases the CTA's flag
 *     CTA that ends it    producer     acquires the flag, copies the sums into slots of the ring
 *                         consumers    wait for those slots as for stages, and add
 *
 * So no consumer waits until its stores are visible in the L2, for a flag, or for loads of sums.
 */
struct gemm_bulk_fixup {
    /* Set by the caller. */
    uint32_t threads;   /* consumer threads of a CTA: they hold the sums */
    uint32_t fragments; /* of four sums, of a thread */
    uint32_t barrier;   /* number of a CTA barrier that is used for nothing else */
    const struct gemm_ring *ring;
};

/* Arrives at the barrier. To be executed by the consumers after gemm_partials_store. */
void gemm_bulk_fixup_arrive(ptx_kernel *k, const struct gemm_bulk_fixup *h);
/*
 * Waits until all consumers have stored their sums, then sets the CTA's flag. To be executed by
 * the flag warp, in a CTA whose last stage does not end a tile.
 */
void gemm_bulk_fixup_publish(ptx_kernel *k, const struct gemm_bulk_fixup *h,
                             const struct gemm_threads *at, ptx_u64 flags);
/*
 * Issues the copies of the partial sums of the CTAs from `lowest` up to this one. To be executed by
 * the producer after the last stage of a tile that the CTA ends and that has earlier parts.
 * `lowest` is a register that the call changes; `sums` is the address of the sums of CTA 0.
 */
void gemm_bulk_fixup_issue(ptx_kernel *k, const struct gemm_bulk_fixup *h, ptx_u32 lowest,
                           ptx_u64 flags, ptx_u64 sums, struct gemm_ring_place *place);
/*
 * Adds those partial sums to the accumulators. To be executed by the consumers after the last stage
 * of the same tile; `place` is the slot of that stage.
 */
void gemm_bulk_fixup_add(ptx_kernel *k, const struct gemm_bulk_fixup *h,
                         const struct gemm_threads *at, ptx_u32 lowest,
                         struct gemm_ring_place *place, ptx_pred releases,
                         gemm_fragment_register *get, const void *from);

#endif
