/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order between clusters (ISA "Memory Consistency Model"): a release pattern at .gpu or .sys scope
 * leaves, at the location that it writes, everything its warp knows; an acquire pattern of such a
 * scope that reads the value learns it. What a warp learns it passes on within its cluster with the
 * cluster's own clocks: another warp knows it too as soon as it knows the epoch in which it was
 * learned.
 *
 * A release or a fence of one lane stands for the whole warp, and one of .cta or .cluster scope for
 * order within the cluster, whose clocks do not tell scopes apart: more order than the memory model
 * promises, never less.
 */
#ifndef PTXGEN_EMULATOR_GLOBAL_ORDER_H
#define PTXGEN_EMULATOR_GLOBAL_ORDER_H

#include "src/emulator/machine.h"

/* Last epochs of the warps of several clusters. Never changed once made, and counted. */
struct emu_known;

enum { EMU_LEARNED = 32 };

/* What a warp has to do with other clusters; NULL in most warps. */
struct emu_warp_order {
    struct {
        uint32_t epoch; /* of the warp, from when on it knows `known` */
        struct emu_known *known;
    } learned[EMU_LEARNED]; /* each holds what the ones before it hold */
    uint32_t learned_count;
    uint32_t reading_lanes; /* whose strong reads a fence turns into an acquire pattern */
    struct emu_known *read; /* what these found */
    uint32_t fenced_lanes;  /* whose strong writes release what was before their fence */
    uint32_t fenced[];      /* the warp's clock then */
};

/* A strong access to one location, when its order with others has been looked at. */
struct emu_strong_access {
    uint64_t address;
    uint32_t flags;      /* enum emu_access_flags */
    bool follows_strong; /* the location's last write of this launch was strong */
    bool follows_own;    /* and by this very thread */
    bool changes;        /* a store of another value than what is there */
};

void emu_order_strong(struct emu_warp *warp, int lane, const struct emu_strong_access *access);
/* fence.acq_rel, fence.sc and membar of .gpu or .sys scope, before emu_fence. */
void emu_order_fence(struct emu_warp *warp, uint32_t mask);
/* griddepcontrol: everything that kernels ahead did is known; dependents may be launched. */
void emu_order_wait_ahead(struct emu_warp *warp);
void emu_order_launch_dependents(struct emu_warp *warp);
/* Whether the warp knows what warp `number` of another cluster did in `epoch`; `fenced`: and that a
 * fence.proxy.async is between. */
bool emu_order_knows(const struct emu_warp *warp, uint32_t cluster, uint32_t number, uint32_t epoch,
                     bool fenced);
/* fence.proxy.async of global memory, behind emu_proxy_fence's own. */
void emu_order_proxy_fence(struct emu_warp *warp);

/* Of a warp that has ended, and of the launch after all of its warps. */
void emu_order_forget(struct emu_warp *warp);
void emu_order_free(struct emu_order *order);

#endif
