/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proxies (ISA "Memory Consistency Model"): bulk and tensor copies, their reductions and wgmma's
 * reads of shared memory go through the async proxy, everything else through the generic one:
 * ld, st, atom, red, ldmatrix, stmatrix, mbarrier.init, and cp.async, st.async and red.async too.
 *
 * What the generic proxy wrote the async proxy may read or write only behind a fence.proxy.async of
 * its state space, anywhere on the way of causality order: by the writer before it releases, by the
 * reader once it has acquired, or between. The fence of .shared::cta counts as one of
 * .shared::cluster. What the async proxy wrote is visible to the generic one when its completion is
 * observed, which fences. And a generic read needs no fence before the async proxy writes over it:
 * order alone is asked for, as in the rings of CUTLASS, whose consumers give a stage back by an
 * arrival at an mbarrier only.
 *
 * A clock has three parts, each with an entry for every warp of the cluster: up to which epoch its
 * accesses are known, its generic writes to shared memory fenced and known, and those to global
 * memory. A fence copies entries of the first part to the others, and ends its warp's epoch.
 * Without such fences to look at a clock is the first part only.
 */
#ifndef PTXGEN_EMULATOR_PROXY_H
#define PTXGEN_EMULATOR_PROXY_H

#include "src/emulator/access.h"
#include "src/emulator/mbarrier.h"

enum emu_proxy_part { PROXY_SHARED = 1, PROXY_GLOBAL = 2, PROXY_PARTS = 3 };

static inline uint32_t emu_clock_parts(const struct emu_launch *launch)
{
    return launch->proxies ? PROXY_PARTS : 1;
}

/* Where a part of a clock begins; 0 when a clock has only one. */
static inline uint32_t emu_clock_part(const struct emu_cluster *cluster, enum emu_proxy_part part)
{
    return cluster->launch->proxies ? (uint32_t)part * cluster->cta_count * EMU_MAX_WARPS : 0;
}

/* fence.proxy.async of the spaces in insn->mode, bits 1 << enum emu_proxy_part. */
void emu_proxy_fence(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask);
/* fence.mbarrier_init.release.cluster */
void emu_proxy_announce(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask);

/* Of the warp's own epochs the last whose generic writes are fenced, in shared and global memory.
 */
static inline void emu_proxy_fenced_epochs(const struct emu_warp *warp, uint32_t fenced[2])
{
    const struct emu_cluster *cluster = warp->cta->cluster;
    fenced[0] = warp->clock[emu_clock_part(cluster, PROXY_SHARED) + warp->number];
    fenced[1] = warp->clock[emu_clock_part(cluster, PROXY_GLOBAL) + warp->number];
}

/* Whether a fence for `part` lies between what `thread` of the cluster did in `epoch` and now. */
bool emu_proxy_fenced(const struct emu_warp *warp, enum emu_proxy_part part, uint32_t thread,
                      uint32_t epoch);

/* One lane's access to shared memory, before its marks change: it is looked at if it is of the
 * async proxy and ordered, and noted if it writes. */
void emu_proxy_shared(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                      const struct emu_place *place, uint32_t bytes, uint32_t flags);

/* Lanes that have written shared memory of their own CTA through the generic proxy. */
void emu_proxy_note(const struct emu_insn *insn, uint32_t mask, const struct emu_place places[32],
                    uint32_t bytes);

/* The init of an mbarrier that is used must be known, and for the async proxy fenced. */
void emu_proxy_mbarrier(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                        const struct emu_cta *owner, const struct emu_mbarrier *mbarrier,
                        bool async);

/* The sentence on an access of the async proxy that a fence should precede. */
_Noreturn void emu_proxy_report(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                uint64_t address, bool writes, uint32_t line, uint32_t thread,
                                enum emu_proxy_part part);

#endif
