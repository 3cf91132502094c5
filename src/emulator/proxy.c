/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/proxy.h"
#include "src/emulator/global_order.h"
#include "src/emulator/global_race.h"
#include "src/emulator/memory_order.h"
#include "src/emulator/shared_memory.h"

#include <stdio.h>

/* ---- fences ---- */

void emu_proxy_fence(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    struct emu_cluster *cluster = warp->cta->cluster;
    if (!cluster->launch->proxies) {
        emu_fence(warp);
        return;
    }
    emu_clock_acquire(warp, cluster->fences);
    uint32_t warps = cluster->cta_count * EMU_MAX_WARPS, epoch = warp->clock[warp->number];
    for (uint32_t part = PROXY_SHARED; part <= PROXY_GLOBAL; part++)
        if (insn->mode >> part & 1)
            emu_clock_join(warp->clock + part * warps, warp->clock, warps);
    if (mask != warp->live)
        warp->fences[epoch % EMU_PROXY_FENCES] = (struct emu_proxy_fence){epoch, mask};
    emu_clock_release(warp, cluster->fences);
    if ((insn->mode >> PROXY_GLOBAL & 1) && emu_race_checked(warp))
        emu_order_proxy_fence(warp);
}

static const struct emu_warp *warp_of(const struct emu_cluster *cluster, uint32_t thread)
{
    const struct emu_cta *cta = &cluster->ctas[thread / EMU_CTA_THREADS];
    return &cta->warps[thread / 32 % EMU_MAX_WARPS];
}

/* In the epoch that a fence ended it is for the lanes that executed it. */
bool emu_proxy_fenced(const struct emu_warp *warp, enum emu_proxy_part part, uint32_t thread,
                      uint32_t epoch)
{
    const struct emu_cluster *cluster = warp->cta->cluster;
    uint32_t fenced = warp->clock[emu_clock_part(cluster, part) + thread / 32];
    if (fenced != epoch)
        return fenced > epoch;
    const struct emu_proxy_fence *last =
        &warp_of(cluster, thread)->fences[epoch % EMU_PROXY_FENCES];
    return last->epoch != epoch || (last->mask >> thread % 32 & 1);
}

/* ---- reports ---- */

/* "thread (x,y,z) of CTA n of the cluster" */
static void name_thread(const struct emu_warp *warp, uint32_t thread, char *text, size_t size)
{
    const uint32_t *block = warp->cta->cluster->launch->block;
    uint32_t rank = thread / EMU_CTA_THREADS, at = thread % EMU_CTA_THREADS;
    int used = snprintf(text, size, "thread (%u,%u,%u)", at % block[0], at / block[0] % block[1],
                        at / block[0] / block[1]);
    if (rank != warp->cta->rank)
        snprintf(text + used, size - (size_t)used, " of CTA %u of the cluster", rank);
}

_Noreturn void emu_proxy_report(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                uint64_t address, bool writes, uint32_t line, uint32_t thread,
                                enum emu_proxy_part part)
{
    char who[80];
    name_thread(warp, thread, who, sizeof who);
    emu_fault_at(warp, insn, lane, PTXGEN_CHECK_PROXIES, address,
                 "this %s through the async proxy follows a write through the generic proxy, at "
                 "line %u by %s, without a fence.proxy.async of %s memory between them",
                 writes ? "write" : "read", line, who, part == PROXY_SHARED ? "shared" : "global");
}

/* ---- shared memory ---- */

static void look(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                 const struct emu_place *place, uint32_t word, bool writes)
{
    const struct emu_mark mark = emu_mark_at(&place->owner->cells->writes, word);
    if (emu_is_ordered(warp, lane, mark.thread, mark.epoch) &&
        !emu_proxy_fenced(warp, PROXY_SHARED, mark.thread, mark.epoch))
        emu_proxy_report(warp, insn, lane, word * 4, writes, place->owner->generic[word],
                         mark.thread, PROXY_SHARED);
}

void emu_proxy_shared(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                      const struct emu_place *place, uint32_t bytes, uint32_t flags)
{
    uint32_t *generic = place->owner->generic;
    const bool async = flags & ACCESS_ASYNC_PROXY, writes = flags & ACCESS_WRITE;
    if (!bytes || !(async | writes))
        return;
    for (uint32_t word = place->offset / 4; word <= (place->offset + bytes - 1) / 4; word++) {
        if (async && generic[word])
            look(warp, insn, lane, place, word, writes);
        if (writes)
            generic[word] = async ? 0 : insn->line;
    }
}

void emu_proxy_note(const struct emu_insn *insn, uint32_t mask, const struct emu_place places[32],
                    uint32_t bytes)
{
    for (uint32_t left = mask; left; left &= left - 1) {
        const struct emu_place *place = &places[__builtin_ctz(left)];
        uint32_t *at = place->owner->generic + place->offset / 4;
        for (uint32_t i = 0; i < bytes / 4; i++)
            at[i] = insn->line;
    }
}

/* ---- mbarriers ---- */

void emu_proxy_announce(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    const struct emu_cta *cta = warp->cta;
    (void)insn;
    for (uint32_t i = 0; i < cta->mbarrier_count; i++) {
        struct emu_mbarrier *mbarrier = &cta->mbarriers[i];
        bool own =
            mbarrier->init_thread / 32 == warp->number && (mask >> mbarrier->init_thread % 32 & 1);
        if (mbarrier->live && own && !mbarrier->announced)
            mbarrier->announced = warp->clock[warp->number];
    }
    emu_fence(warp);
}

static bool knows(const struct emu_warp *warp, uint32_t thread, uint32_t epoch)
{
    return thread / 32 == warp->number || epoch <= warp->clock[thread / 32];
}

void emu_proxy_mbarrier(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                        const struct emu_cta *owner, const struct emu_mbarrier *mbarrier,
                        bool async)
{
    char who[80];
    const uint32_t thread = mbarrier->init_thread;
    bool ordered = knows(warp, thread, mbarrier->init_epoch);
    bool fenced = (mbarrier->announced && knows(warp, thread, mbarrier->announced)) ||
                  emu_proxy_fenced(warp, PROXY_SHARED, thread, mbarrier->init_epoch);
    if (ordered && (fenced || !async))
        return;
    name_thread(warp, thread, who, sizeof who);
    if (!ordered)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_PROXIES, mbarrier->offset,
                     "the mbarrier was initialised at line %u by %s without %s since",
                     mbarrier->line, who,
                     owner == warp->cta ? "a barrier"
                                        : "a fence.mbarrier_init.release.cluster or a release, and "
                                          "a barrier of the cluster,");
    emu_fault_at(warp, insn, lane, PTXGEN_CHECK_PROXIES, mbarrier->offset,
                 "the async proxy will count bytes at an mbarrier that was initialised at line %u "
                 "by %s, without a fence.mbarrier_init.release.cluster by that thread or a "
                 "fence.proxy.async of shared memory since",
                 mbarrier->line, who);
}
