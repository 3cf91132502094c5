/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

/* Bytes from the full barrier of a slot to its empty barrier. */
static uint32_t released(const struct gemm_ring *r)
{
    return r->stages * 8;
}

void gemm_ring_declare(ptx_kernel *k, struct gemm_ring *r)
{
    uint32_t bytes = r->stages * r->stage_bytes;
    const char *name = r->name ? r->name : "stages";
    r->slots = ptx_shared_address(k, ptx_shared_declare(k, name, bytes, GEMM_RING_ALIGN));
    r->slots_end = ptx_add_u32(k, r->slots, U32(bytes));
}

void gemm_ring_declare_barriers(ptx_kernel *k, struct gemm_ring *r)
{
    uint32_t bytes =
        r->has_side ? gemm_ring_side_barrier_bytes(r->stages) : gemm_ring_barrier_bytes(r->stages);
    const char *name = r->barriers_name ? r->barriers_name : "barriers";
    r->barriers = ptx_shared_address(k, ptx_shared_declare(k, name, bytes, 8));
}

/* Sets up, for all slots, the barriers that are `offset` bytes behind the full barriers. */
static void init(ptx_kernel *k, const struct gemm_ring *r, uint32_t offset, uint32_t arrivals)
{
    for (uint32_t i = 0; i < r->stages; i++)
        ptx_mbarrier_init(k, r->barriers, (int)(offset + 8 * i), U32(arrivals));
}

void gemm_ring_init_full(ptx_kernel *k, const struct gemm_ring *r)
{
    init(k, r, 0, 1);
    ptx_fence_mbarrier_init_release_cluster(k);
}

/* Lanes of a consumer warp that arrive at an empty barrier. */
static uint32_t releasers(const struct gemm_ring *r)
{
    return r->by_lane ? 32 : r->ctas ? r->ctas : 1;
}

void gemm_ring_init_others(ptx_kernel *k, const struct gemm_ring *r)
{
    init(k, r, released(r), r->users * releasers(r));
    if (r->has_side)
        init(k, r, gemm_ring_side_offset(r), r->by_lane ? 32 : 1);
    ptx_fence_mbarrier_init_release_cluster(k);
}

void gemm_ring_begin(ptx_kernel *k, const struct gemm_threads *at, struct gemm_ring *r)
{
    gemm_ring_declare_barriers(k, r);
    ptx_if(k, ptx_setp_eq_u32(k, at->thread, U32(0))) {
        init(k, r, 0, 1);
        gemm_ring_init_others(k, r);
    }
    if (r->ctas) {
        r->lane = at->lane;
        ptx_barrier_cluster_arrive(k);
        ptx_barrier_cluster_wait(k);
    } else
        ptx_bar_sync(k, 0);
}

/*
 * A producer starts at parity 1: the phase before an mbarrier's first phase counts as complete,
 * so all slots are empty at the start.
 */
struct gemm_ring_place gemm_ring_first(ptx_kernel *k, const struct gemm_ring *r, bool producer)
{
    struct gemm_ring_place p;
    p.slot = ptx_mov_u32(k, r->slots);
    p.barrier = ptx_mov_u32(k, r->barriers);
    p.parity = ptx_mov_u32(k, U32(producer));
    return p;
}

void gemm_ring_advance(ptx_kernel *k, const struct gemm_ring *r, struct gemm_ring_place *p,
                       const ptx_pred *more)
{
    ptx_u32 slot = ptx_add_u32(k, p->slot, U32(r->stage_bytes));
    ptx_u32 barrier = ptx_add_u32(k, p->barrier, U32(8));
    ptx_u32 other = ptx_xor_b32(k, p->parity, U32(1));
    ptx_pred wraps = ptx_setp_eq_u32(k, slot, r->slots_end);
    struct gemm_ring_place next = {.slot = ptx_selp_u32(k, r->slots, slot, wraps)};
    next.barrier = ptx_selp_u32(k, r->barriers, barrier, wraps);
    next.parity = ptx_selp_u32(k, other, p->parity, wraps);
    ptx_u32 *const to[] = {&p->slot, &p->barrier, &p->parity};
    const ptx_u32 from[] = {next.slot, next.barrier, next.parity};
    for (int i = 0; i < 3; i++)
        if (more)
            ptx_selp_u32_to(k, *to[i], from[i], *to[i], *more);
        else
            ptx_mov_u32_to(k, *to[i], from[i]);
}

void gemm_ring_advance_by(ptx_kernel *k, const struct gemm_ring *r, struct gemm_ring_place *p,
                          uint32_t count)
{
    ptx_add_u32_to(k, p->slot, p->slot, U32(count * r->stage_bytes));
    ptx_add_u32_to(k, p->barrier, p->barrier, U32(count * 8));
    ptx_pred wraps = ptx_setp_ge_u32(k, p->slot, r->slots_end);
    ptx_u32 slot = ptx_sub_u32(k, p->slot, U32(r->stages * r->stage_bytes));
    ptx_u32 barrier = ptx_sub_u32(k, p->barrier, U32(r->stages * 8));
    ptx_u32 parity = ptx_xor_b32(k, p->parity, U32(1));
    ptx_selp_u32_to(k, p->slot, slot, p->slot, wraps);
    ptx_selp_u32_to(k, p->barrier, barrier, p->barrier, wraps);
    ptx_selp_u32_to(k, p->parity, parity, p->parity, wraps);
}

static void wait_for(ptx_kernel *k, ptx_u32 barrier, uint32_t offset, ptx_u32 parity)
{
    ptx_loop(k, spin) {
        ptx_pred done = ptx_mbarrier_try_wait_parity(k, barrier, (int)offset, parity);
        ptx_loop_break_if(&spin, done, false);
    }
}

void gemm_ring_wait_free(ptx_kernel *k, const struct gemm_ring *r, const struct gemm_ring_place *p)
{
    wait_for(k, p->barrier, released(r), p->parity);
}

void gemm_ring_claim(ptx_kernel *k, const struct gemm_ring *r, const struct gemm_ring_place *p,
                     uint32_t bytes)
{
    gemm_ring_claim_some(k, r, p, U32(bytes));
}

void gemm_ring_claim_some(ptx_kernel *k, const struct gemm_ring *r, const struct gemm_ring_place *p,
                          ptx_u32 bytes)
{
    gemm_ring_wait_free(k, r, p);
    ptx_mbarrier_arrive_expect_tx(k, p->barrier, 0, bytes);
}

void gemm_ring_claim_side(ptx_kernel *k, const struct gemm_ring *r, const struct gemm_ring_place *p,
                          ptx_u32 bytes)
{
    gemm_ring_wait_free(k, r, p);
    ptx_mbarrier_arrive_expect_tx(k, p->barrier, (int)gemm_ring_side_offset(r), bytes);
}

void gemm_ring_wait(ptx_kernel *k, const struct gemm_ring_place *p)
{
    wait_for(k, p->barrier, 0, p->parity);
}

void gemm_ring_side_arrive(ptx_kernel *k, const struct gemm_ring *r,
                           const struct gemm_ring_place *p)
{
    ptx_mbarrier_arrive(k, p->barrier, (int)gemm_ring_side_offset(r));
}

void gemm_ring_side_wait(ptx_kernel *k, const struct gemm_ring *r, const struct gemm_ring_place *p)
{
    wait_for(k, p->barrier, gemm_ring_side_offset(r), p->parity);
}

void gemm_ring_next(ptx_kernel *k, const struct gemm_ring *r, struct gemm_ring_place *p,
                    ptx_u32 held, ptx_u32 left)
{
    ptx_mov_u32_to(k, held, p->barrier);
    ptx_pred more = ptx_setp_ne_u32(k, left, U32(0));
    gemm_ring_advance(k, r, p, &more);
    ptx_sub_u32_to(k, left, left, U32(1));
    gemm_ring_wait(k, p);
}

ptx_pred gemm_ring_releasers(ptx_kernel *k, const struct gemm_ring *r,
                             const struct gemm_threads *at)
{
    return ptx_setp_lt_u32(k, at->lane, U32(releasers(r)));
}

ptx_pred gemm_ring_refilled(ptx_kernel *k, const struct gemm_ring *r, ptx_u32 left,
                            ptx_pred releases)
{
    return ptx_setp_bool_ge_u32(k, left, U32(r->stages - 1), releases);
}

/*
 * In a cluster lane c arrives at the empty barrier of CTA c. The arrival has CTA scope: the values
 * that the warp read from the slot are in registers by then, so nothing has to be ordered at
 * cluster scope, where a release and an acquire would invalidate the L1 for each stage.
 */
void gemm_ring_release(ptx_kernel *k, const struct gemm_ring *r, ptx_u32 barrier, ptx_pred releases)
{
    if (!r->by_lane)
        ptx_bar_warp_sync(k, ALL_LANES); /* all lanes have read the slot */
    if (!r->ctas) {
        ptx_guarded(k, releases)
            ptx_mbarrier_arrive(k, barrier, (int)released(r));
        return;
    }
    ptx_if(k, releases)
        ptx_mbarrier_arrive_remote(k, ptx_mapa_shared_cluster_u32(k, barrier, r->lane),
                                   (int)released(r));
}
