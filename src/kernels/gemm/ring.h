/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of slots in shared memory between a producer warp, which issues bulk copies of stages, and
 * consumer warps, which multiply (sm_90 and later).
 *
 *     producer   for each stage:  gemm_ring_claim       wait for empty, expect bytes at full
 *                                 copies that complete at the full barrier
 *                                 gemm_ring_advance
 *     consumer   for each stage:  gemm_ring_wait        wait for full
 *                                 reads
 *                                 gemm_ring_release     arrive at empty
 *                                 gemm_ring_advance
 *
 * Each slot has two mbarriers: full (the copies of the stage have completed) and empty (all
 * consumer warps have released the slot). A slot may have a third one, the side barrier: something
 * that a second producer computes of a stage, or copies beside it, is in shared memory; consumers
 * wait for the side barrier where they need that. The CTAs of a cluster may multicast each copy to
 * the same slot of all of them; a slot is then empty when the consumers of all CTAs have released
 * it.
 */
#ifndef PTXGEN_KERNELS_GEMM_RING_H
#define PTXGEN_KERNELS_GEMM_RING_H

#include "emit.h"

enum { GEMM_RING_ALIGN = 1024 /* of slots: what swizzled operands of wgmma want */ };

struct gemm_ring {
    /* Set by the caller. */
    uint32_t stages, stage_bytes;     /* slots, a multiple of GEMM_RING_ALIGN each */
    uint32_t users;                   /* consumer warps of a CTA */
    const char *name, *barriers_name; /* of the shared memory; NULL: "stages" and "barriers" */
    bool by_lane;  /* each of a warp's 32 lanes arrives, not one for all; not with `ctas` */
    bool has_side; /* slots have a side barrier */
    uint32_t ctas; /* of a cluster that multicast to each other's slots, at most 32; 0: none */

    ptx_u32 slots, slots_end; /* shared addresses */
    ptx_u32 barriers;         /* shared address: all full barriers, all empty, all side barriers */
    ptx_u32 lane;             /* of the thread; set in a cluster only */
};

/* The slot at which one side of the ring is. */
struct gemm_ring_place {
    ptx_u32 slot, barrier, parity; /* `barrier` is the address of the slot's full barrier */
};

/* Bytes of shared memory for the full and empty barriers. */
static inline uint32_t gemm_ring_barrier_bytes(uint32_t stages)
{
    return stages * 16;
}
/* Bytes of shared memory for the full, empty and side barriers. */
static inline uint32_t gemm_ring_side_barrier_bytes(uint32_t stages)
{
    return stages * 24;
}

/* Declares the shared memory of the slots. */
void gemm_ring_declare(ptx_kernel *k, struct gemm_ring *r);
/*
 * gemm_ring_begin in three steps, for a producer that is not to wait for the rest of the CTA. The
 * first call declares the shared memory of the barriers. A thread that has executed
 * gemm_ring_init_full, which sets up the full barriers, may issue the copies of as many stages as
 * there are slots at once. Another thread executes gemm_ring_init_others, which sets up the rest;
 * then the CTA, or the cluster, synchronises.
 */
void gemm_ring_declare_barriers(ptx_kernel *k, struct gemm_ring *r);
void gemm_ring_init_full(ptx_kernel *k, const struct gemm_ring *r);
void gemm_ring_init_others(ptx_kernel *k, const struct gemm_ring *r);
/*
 * Declares and sets up all barriers, and synchronises. To be executed by all threads of the CTA, or
 * of the cluster.
 */
void gemm_ring_begin(ptx_kernel *k, const struct gemm_threads *at, struct gemm_ring *r);
/* The first slot, for a producer or a consumer. */
struct gemm_ring_place gemm_ring_first(ptx_kernel *k, const struct gemm_ring *r, bool producer);
/*
 * Moves `p`, whose registers are written, to the next slot. Where `more` is not NULL, the move
 * happens only if that predicate holds.
 */
void gemm_ring_advance(ptx_kernel *k, const struct gemm_ring *r, struct gemm_ring_place *p,
                       const ptx_pred *more);
/* Moves `p`, whose registers are written, on by `count` slots, of which the ring has as many. */
void gemm_ring_advance_by(ptx_kernel *k, const struct gemm_ring *r, struct gemm_ring_place *p,
                          uint32_t count);
/* Producer: waits until the slot is empty, then expects `bytes` bytes at the full barrier. */
void gemm_ring_claim(ptx_kernel *k, const struct gemm_ring *r, const struct gemm_ring_place *p,
                     uint32_t bytes);
/* Producer: the same for a number of bytes that is in a register, and may differ by stage. */
void gemm_ring_claim_some(ptx_kernel *k, const struct gemm_ring *r, const struct gemm_ring_place *p,
                          ptx_u32 bytes);
/*
 * Waits until the slot is empty: for a second producer, whose bytes the first producer's claim
 * includes.
 */
void gemm_ring_wait_free(ptx_kernel *k, const struct gemm_ring *r, const struct gemm_ring_place *p);
/* Consumer: waits at the full barrier. */
void gemm_ring_wait(ptx_kernel *k, const struct gemm_ring_place *p);
/* Bytes from the full barrier of a slot to its side barrier. */
static inline uint32_t gemm_ring_side_offset(const struct gemm_ring *r)
{
    return r->stages * 16;
}
/* Second producer: waits until the slot is empty, then expects `bytes` at the side barrier. */
void gemm_ring_claim_side(ptx_kernel *k, const struct gemm_ring *r, const struct gemm_ring_place *p,
                          ptx_u32 bytes);
/*
 * Arrives at the side barrier: what was computed of the stage is in shared memory. To be executed
 * by one lane, or with `by_lane` by all lanes of a warp.
 */
void gemm_ring_side_arrive(ptx_kernel *k, const struct gemm_ring *r,
                           const struct gemm_ring_place *p);
/* Consumer: waits at the side barrier. */
void gemm_ring_side_wait(ptx_kernel *k, const struct gemm_ring *r, const struct gemm_ring_place *p);
/*
 * Consumer: keeps the full barrier of the current slot in `held`, for a later release, and moves to
 * the next slot and waits for its stage. `left` counts the consumer's stages after the current one
 * and is reduced by one; at 0 the place stays where it is.
 */
void gemm_ring_next(ptx_kernel *k, const struct gemm_ring *r, struct gemm_ring_place *p,
                    ptx_u32 held, ptx_u32 left);
/*
 * The lanes of a consumer warp that release slots: all with `by_lane`, one for each CTA in a
 * cluster, else one. A release by one lane after bar.warp.sync covers the loads of the other lanes,
 * too, but compute-sanitizer's racecheck does not follow that, so warps that load from slots by
 * ld.shared use `by_lane`.
 */
ptx_pred gemm_ring_releasers(ptx_kernel *k, const struct gemm_ring *r,
                             const struct gemm_threads *at);
/*
 * The lanes of `releases` if the slot may be filled again, else none. `left` stages of the CTA come
 * after the slot's stage, or after the one that follows it.
 */
ptx_pred gemm_ring_refilled(ptx_kernel *k, const struct gemm_ring *r, ptx_u32 left,
                            ptx_pred releases);
/*
 * Consumer: the lanes of `releases` arrive at the empty barrier of a slot. `barrier` is the address
 * of the slot's full barrier.
 */
void gemm_ring_release(ptx_kernel *k, const struct gemm_ring *r, ptx_u32 barrier,
                       ptx_pred releases);

#endif
