/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of slots in shared memory between a warp that sends for stages by bulk copies and teams of
 * warps that use them (sm_90): an mbarrier a slot says that a stage has landed, another that all
 * warps have done with it; a third, if wanted, that something is noted of it. CTAs of a cluster may
 * send to each other's slots, all to the same: then a slot is free when the warps of all of them
 * have done with it.
 *
 *     sender   for each stage:  tile_ring_claim, copies that complete at the barrier, advance
 *     user     for each stage:  tile_ring_wait, reads, tile_ring_release, advance
 */
#ifndef PTXGEN_KERNELS_TILE_RING_H
#define PTXGEN_KERNELS_TILE_RING_H

#include "emit.h"

enum { TILE_RING_ALIGN = 1024 /* of slots: what swizzled operands of wgmma want */ };

struct tile_ring {
    /* Set by the caller. */
    uint32_t stages, stage_bytes; /* slots, a multiple of TILE_RING_ALIGN each */
    uint32_t users;               /* warps that release a slot, of a CTA */
    bool by_lane; /* lanes load from slots, or note: each says when it has; not with `ctas` */
    bool noted;    /* a third warp works something out of each stage, which users wait for */
    uint32_t ctas; /* of a cluster that send to each other's slots, at most 32; 0: this one only */

    ptx_u32 slots, slots_end, barriers; /* shared addresses: landed barriers, then released ones */
    ptx_u32 lane;                       /* in a cluster, the thread's */
};

/* Where one side of the ring stands. */
struct tile_ring_place {
    ptx_u32 slot, barrier, parity; /* `barrier`: the slot's that says it has landed */
};

static inline uint32_t tile_ring_barrier_bytes(uint32_t stages)
{
    return stages * 16;
}
/* … where something is noted. */
static inline uint32_t tile_ring_noted_bytes(uint32_t stages)
{
    return stages * 24;
}

/* Declares the slots. */
void tile_ring_declare(ptx_kernel *k, struct tile_ring *r);
/*
 * Declares the barriers, and sets them up, by two threads: the first may send for as many stages as
 * there are slots, before others know, when it has set up those that say that a stage has landed.
 */
void tile_ring_declare_barriers(ptx_kernel *k, struct tile_ring *r);
void tile_ring_init_landed(ptx_kernel *k, const struct tile_ring *r);
void tile_ring_init_others(ptx_kernel *k, const struct tile_ring *r);
/* All that, and others know: executed by all threads of the CTA, or the cluster. */
void tile_ring_begin(ptx_kernel *k, const struct tile_threads *at, struct tile_ring *r);
/* The first slot, for a sender or a user. */
struct tile_ring_place tile_ring_first(ptx_kernel *k, const struct tile_ring *r, bool sender);
/* On to the next slot, into registers that exist; where `more` holds, unless it is NULL. */
void tile_ring_advance(ptx_kernel *k, const struct tile_ring *r, struct tile_ring_place *p,
                       const ptx_pred *more);
/* The sender waits until the slot is free, and says how many bytes will land there. */
void tile_ring_claim(ptx_kernel *k, const struct tile_ring *r, const struct tile_ring_place *p,
                     uint32_t bytes);
/* … of which there may be fewer in some stages. */
void tile_ring_claim_some(ptx_kernel *k, const struct tile_ring *r, const struct tile_ring_place *p,
                          ptx_u32 bytes);
/* Another sender, of what the first has counted among those bytes, waits for the slot alone. */
void tile_ring_wait_free(ptx_kernel *k, const struct tile_ring *r, const struct tile_ring_place *p);
/* A user waits until the stage has landed. */
void tile_ring_wait(ptx_kernel *k, const struct tile_ring_place *p);
/* Where the barrier is, from a place's, that says so of a note. */
static inline uint32_t tile_ring_note_offset(const struct tile_ring *r)
{
    return r->stages * 16;
}
/* What is noted may be copied, too: another sender waits until the slot is free, and says so. */
void tile_ring_claim_note(ptx_kernel *k, const struct tile_ring *r, const struct tile_ring_place *p,
                          ptx_u32 bytes);
/*
 * A lane, or by_lane all of a warp, says that what is to be noted of the stage is in shared memory;
 * users wait for that.
 */
void tile_ring_note(ptx_kernel *k, const struct tile_ring *r, const struct tile_ring_place *p);
void tile_ring_wait_for_note(ptx_kernel *k, const struct tile_ring *r,
                             const struct tile_ring_place *p);
/*
 * A user turns to the next stage and waits for it, where any of its are `left` after the present
 * one, whose barrier is then `held`, to be released.
 */
void tile_ring_turn(ptx_kernel *k, const struct tile_ring *r, struct tile_ring_place *p,
                    ptx_u32 held, ptx_u32 left);
/*
 * The lanes that release slots: all, or one, or one for each CTA of the cluster. One lane's word
 * for what others have loaded is in order behind bar.warp.sync, but compute-sanitizer's racecheck
 * does not follow that; 32 words cost nothing that was measured.
 */
ptx_pred tile_ring_releasers(ptx_kernel *k, const struct tile_ring *r,
                             const struct tile_threads *at);
/*
 * Those of `releases`, where the slot is filled again, or may be: `left` stages of the CTA come
 * after its, or after the next.
 */
ptx_pred tile_ring_refilled(ptx_kernel *k, const struct tile_ring *r, ptx_u32 left,
                            ptx_pred releases);
/* They say, where `releases` holds, that the warp has done with the slot of that barrier. */
void tile_ring_release(ptx_kernel *k, const struct tile_ring *r, ptx_u32 barrier,
                       ptx_pred releases);

#endif
