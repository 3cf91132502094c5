/* SPDX-License-Identifier: Apache-2.0 */
#include "fixup.h"

static ptx_u64 flag_of(ptx_kernel *k, ptx_u64 flags, ptx_u32 cta)
{
    return ptx_mad_wide_u32(k, cta, U32(4), flags);
}

void gemm_raise_flag(ptx_kernel *k, ptx_u64 flags, ptx_u32 cta)
{
    ptx_st_release_global_u32_m(k, PTX_GPU, flag_of(k, flags, cta), 0, U32(1));
}

void gemm_take_flag(ptx_kernel *k, ptx_u64 flags, ptx_u32 cta)
{
    ptx_u64 flag = flag_of(k, flags, cta);
    ptx_loop(k, wait) {
        ptx_u32 set = ptx_ld_acquire_global_u32_m(k, PTX_GPU, flag, 0);
        ptx_loop_break_if(&wait, ptx_setp_ne_u32(k, set, U32(0)), false);
    }
    ptx_st_global_u32(k, flag, 0, U32(0));
}

/* The barrier orders the stores of all threads before the release of the flag by thread 0. */
void gemm_fixup_publish(ptx_kernel *k, const struct gemm_threads *at, ptx_u64 flags)
{
    gemm_sync(k, at);
    ptx_if(k, ptx_setp_eq_u32(k, at->thread, U32(0)))
        gemm_raise_flag(k, flags, at->cta);
}

void gemm_fixup_wait(ptx_kernel *k, const struct gemm_threads *at, ptx_u64 flags, ptx_u32 lowest,
                     uint32_t threads)
{
    ptx_u32 cta = ptx_add_u32(k, lowest, at->thread);
    ptx_for(k, cta, at->cta, U32(threads)) {
        ptx_nounroll(k);
        gemm_take_flag(k, flags, cta);
    }
    gemm_sync(k, at);
}

ptx_u32 gemm_fixup_lowest_cta(ptx_kernel *k, const struct gemm_division *d,
                              const struct gemm_threads *at, ptx_u32 gemm_stage)
{
    ptx_u32 lowest = ptx_mov_u32(k, at->cta);
    ptx_loop(k, down) {
        ptx_nounroll(k);
        ptx_u32 first = gemm_first_stage(k, d, lowest);
        ptx_loop_break_if(&down, ptx_setp_le_u32(k, first, gemm_stage), false);
        ptx_sub_u32_to(k, lowest, lowest, U32(1));
    }
    return lowest;
}

void gemm_partials_begin(ptx_kernel *k, const struct gemm_threads *at, ptx_u64 base,
                         struct gemm_partials *p)
{
    ptx_u64 cta = ptx_cvt_u64_u32(k, at->cta);
    ptx_u64 part = ptx_mad_lo_u64(k, cta, U64(gemm_partials_bytes(p->threads, p->fragments)), base);
    p->mine = ptx_mad_wide_u32(k, at->thread, U32(16), part);
}

void gemm_partials_store(ptx_kernel *k, const struct gemm_partials *p, gemm_fragment_register *get,
                         const void *from)
{
    for (uint32_t i = 0; i < p->fragments; i++) {
        ptx_u32 registers[4];
        for (uint32_t r = 0; r < 4; r++)
            registers[r] = get(from, i, r);
        ptx_st_global_v4_u32(k, p->mine, (int)(i * p->threads * 16), registers);
    }
}

enum { MOST_PARTS = 4, MOST_LOADS = 24 };

/* CTAs whose partial sums are loaded at once: as many as MOST_LOADS loads in flight allow. */
static uint32_t parts_at_once(const struct gemm_partials *p)
{
    uint32_t parts = MOST_LOADS / p->fragments;
    return parts < 1 ? 1 : parts < MOST_PARTS ? parts : MOST_PARTS;
}

/* Loads bypass the L1 (.cg), which is not coherent with the stores of other CTAs. */
static void load_parts(ptx_kernel *k, const struct gemm_partials *p, ptx_u64 nearest, ptx_u32 left,
                       ptx_u32 to[MOST_LOADS][4])
{
    uint64_t bytes = gemm_partials_bytes(p->threads, p->fragments);
    for (uint32_t c = 0; c < parts_at_once(p); c++) {
        ptx_u64 part = c ? ptx_sub_u64(k, nearest, U64(c * bytes)) : nearest;
        ptx_pred exists = ptx_setp_gt_u32(k, left, U32(c));
        for (uint32_t i = 0; i < p->fragments && c; i++)
            for (uint32_t r = 0; r < 4; r++)
                to[c * p->fragments + i][r] = ptx_mov_u32(k, U32(0));
        for (uint32_t i = 0; i < p->fragments; i++) {
            ptx_u32 *four = to[c * p->fragments + i];
            int offset = (int)(i * p->threads * 16);
            if (!c)
                ptx_ld_global_v4_u32_m(k, PTX_LD_CG, four, part, offset);
            else
                ptx_guarded(k, exists)
                    ptx_ld_global_v4_u32_m_to(k, PTX_LD_CG, four, part, offset);
        }
    }
}

/* Adds the nearest CTA's sums first. The loads left 0 for CTAs that do not exist. */
static void add_parts(ptx_kernel *k, const struct gemm_partials *p, ptx_u32 parts[MOST_LOADS][4],
                      gemm_fragment_register *get, const void *from)
{
    for (uint32_t c = 0; c < parts_at_once(p); c++)
        for (uint32_t i = 0; i < p->fragments; i++)
            for (uint32_t r = 0; r < 4; r++)
                gemm_add_to(k, p->integer, get(from, i, r), parts[c * p->fragments + i][r]);
}

/* For many fragments: adds each fragment right after its load. */
static void add_part(ptx_kernel *k, const struct gemm_partials *p, ptx_u64 part,
                     gemm_fragment_register *get, const void *from)
{
    for (uint32_t i = 0; i < p->fragments; i++) {
        ptx_u32 more[4];
        ptx_ld_global_v4_u32_m(k, PTX_LD_CG, more, part, (int)(i * p->threads * 16));
        for (uint32_t r = 0; r < 4; r++)
            gemm_add_to(k, p->integer, get(from, i, r), more[r]);
    }
}

void gemm_partials_add(ptx_kernel *k, const struct gemm_partials *p, const struct gemm_threads *at,
                       ptx_u32 lowest, gemm_fragment_register *get, const void *from)
{
    uint64_t bytes = gemm_partials_bytes(p->threads, p->fragments);
    uint32_t at_once = parts_at_once(p);
    ptx_u64 nearest = ptx_sub_u64(k, p->mine, U64(bytes));
    ptx_u32 cta = ptx_mov_u32(k, lowest);
    ptx_for(k, cta, at->cta, U32(at_once)) {
        ptx_nounroll(k);
        ptx_u32 parts[MOST_LOADS][4], left = ptx_sub_u32(k, at->cta, cta);
        if (at_once == 1)
            add_part(k, p, nearest, get, from);
        else {
            load_parts(k, p, nearest, left, parts);
            add_parts(k, p, parts, get, from);
        }
        ptx_sub_u64_to(k, nearest, nearest, U64(at_once * bytes));
    }
}

/* ---- through a ring ---- */

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
            for (uint32_t r = 0; r < 4; r++)
                gemm_add_to(k, false, get(from, i, r), more[r]);
            if (i % each == each - 1)
                gemm_ring_release(k, h->ring, place->barrier, releases);
        }
    }
}
