/* SPDX-License-Identifier: Apache-2.0 */
#include "bulk_fixup.h"

enum { WARP = 32, FRAGMENT = 16 /* bytes */ };

static uint32_t pitch(const struct gemm_bulk_fixup *h)
{
    return h->threads * FRAGMENT;
}

/* Fragments of each thread that a slot holds: the largest divisor of `fragments` that fits. */
static uint32_t fragments_of_slot(const struct gemm_bulk_fixup *h)
{
    uint32_t fit = h->ring->stage_bytes / pitch(h), each = h->fragments;
    while (each > fit || h->fragments % each)
        each--;
    return each;
}

void gemm_bulk_fixup_arrive(ptx_kernel *k, const struct gemm_bulk_fixup *h)
{
    ptx_bar_arrive_n(k, U32(h->barrier), U32(h->threads + WARP));
}

/* The barrier orders the consumers' stores before the release of the flag. */
void gemm_bulk_fixup_publish(ptx_kernel *k, const struct gemm_bulk_fixup *h,
                             const struct gemm_threads *at, ptx_u64 flags)
{
    ptx_bar_sync_n(k, U32(h->barrier), U32(h->threads + WARP));
    ptx_guarded(k, ptx_setp_eq_u32(k, at->lane, U32(0)))
        gemm_raise_flag(k, flags, at->cta);
}

/*
 * Sums are stored through the generic proxy and copied through the async proxy, so a proxy fence
 * has to stand between the flag and the copies.
 */
void gemm_bulk_fixup_issue(ptx_kernel *k, const struct gemm_bulk_fixup *h, ptx_u32 lowest,
                           ptx_u64 flags, ptx_u64 sums, struct gemm_ring_place *place)
{
    uint32_t bytes = fragments_of_slot(h) * pitch(h), all = h->fragments * pitch(h);
    ptx_u64 from = ptx_mad_wide_u32(k, lowest, U32(all), sums);
    ptx_for(k, lowest, ptx_sreg_ctaid_x(k), U32(1)) {
        ptx_nounroll(k);
        gemm_take_flag(k, flags, lowest);
        ptx_fence_proxy_async_global(k);
        ptx_u32 left = ptx_mov_u32(k, U32(all));
        ptx_loop(k, slots) {
            ptx_nounroll(k);
            gemm_ring_claim(k, h->ring, place, bytes);
            ptx_cp_async_bulk_g2s(k, place->slot, 0, from, 0, U32(bytes), place->barrier, 0);
            gemm_ring_advance(k, h->ring, place, NULL);
            ptx_add_u64_to(k, from, from, U64(bytes));
            ptx_sub_u32_to(k, left, left, U32(bytes));
            ptx_loop_break_if(&slots, ptx_setp_eq_u32(k, left, U32(0)), false);
        }
    }
}

void gemm_bulk_fixup_add(ptx_kernel *k, const struct gemm_bulk_fixup *h,
                         const struct gemm_threads *at, ptx_u32 lowest,
                         struct gemm_ring_place *place, ptx_pred releases,
                         gemm_fragment_register *get, const void *from)
{
    uint32_t each = fragments_of_slot(h);
    ptx_for(k, lowest, at->cta, U32(1)) {
        ptx_nounroll(k);
        for (uint32_t i = 0; i < h->fragments; i++) {
            if (i % each == 0) {
                gemm_ring_advance(k, h->ring, place, NULL);
                gemm_ring_wait(k, place);
            }
            ptx_u32 more[4], lane = ptx_mad_lo_u32(k, at->thread, U32(FRAGMENT), place->slot);
            ptx_ld_shared_v4_u32(k, more, lane, (int)(i % each * pitch(h)));
            for (uint32_t r = 0; r < 4; r++) {
                ptx_f32 sum = ptx_u32_as_f32(get(from, i, r));
                ptx_add_f32_to(k, sum, sum, ptx_u32_as_f32(more[r]));
            }
            if (i % each == each - 1)
                gemm_ring_release(k, h->ring, place->barrier, releases);
        }
    }
}
