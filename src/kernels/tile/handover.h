/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of divided tiles (stream_k.h), handed over beside the products of a ring's users (ring.h):
 *
 *     users    │ store sums, tell the herald, go on …     │ wait for sums as for a stage, add
 *     herald   │   waits until they are in the L2, flag   │
 *     sender   │                                          │ waits for the flag, sends after stages
 *
 * A warp that multiplies would wait for its stores at one end, for flags and loads at the other: of
 * marlin's 8192 × 28672 with 128 rows 7 of an H200's 87 µs went with ends, and now 4.
 */
#ifndef PTXGEN_KERNELS_TILE_HANDOVER_H
#define PTXGEN_KERNELS_TILE_HANDOVER_H

#include "ring.h"
#include "stream_k.h"

struct tile_handover {
    /* Set by the caller. */
    uint32_t threads, fragments; /* that have sums, of a CTA; of four, of a thread */
    uint32_t barrier;            /* of the CTA, used for nothing else */
    const struct tile_ring *ring;
};

/* Executed by those who have stored their sums (tile_partials_store). */
void tile_handover_tell(ptx_kernel *k, const struct tile_handover *h);
/* Executed by the herald, a warp, of a CTA whose last stage does not end a tile. */
void tile_handover_announce(ptx_kernel *k, const struct tile_handover *h,
                            const struct tile_threads *at, ptx_u64 flags);
/*
 * Executed by the sender behind the last stage, for a tile that the CTA ends: sends for what those
 * from `lowest` up to it have of it, `lowest` being a variable. `sums`: of the first CTA.
 */
void tile_handover_send(ptx_kernel *k, const struct tile_handover *h, ptx_u32 lowest, ptx_u64 flags,
                        ptx_u64 sums, struct tile_ring_place *place);
/* Executed by the users behind their last stage, at `place`: adds that to their sums. */
void tile_handover_add(ptx_kernel *k, const struct tile_handover *h, const struct tile_threads *at,
                       ptx_u32 lowest, struct tile_ring_place *place, ptx_pred releases,
                       tile_fragment_register *get, const void *from);

#endif
