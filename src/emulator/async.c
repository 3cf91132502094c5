/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/async.h"
#include "src/emulator/access.h"
#include "src/emulator/atomic_op.h"
#include "src/emulator/proxy.h"
#include "src/emulator/shared_memory.h"

#include <stdlib.h>
#include <string.h>

void emu_copies_free(struct emu_copy **list)
{
    while (*list) {
        struct emu_copy *next = (*list)->next;
        free(*list);
        *list = next;
    }
}

/* One block holds the copy, its lanes or runs, and its data; the lanes are left as they are. */
struct emu_copy *emu_copy_add(struct emu_copy **list, enum emu_copy_kind kind, size_t bytes,
                              size_t runs)
{
    size_t lanes = kind == COPY_LANES || kind == COPY_ARRIVE ? 32 : 0;
    if (runs > SIZE_MAX / 2 / sizeof(struct emu_run) || bytes > SIZE_MAX / 4)
        return NULL;
    size_t parts = lanes * sizeof(struct emu_copy_lane) + runs * sizeof(struct emu_run);
    struct emu_copy *copy = malloc(sizeof *copy + parts + bytes);
    if (!copy)
        return NULL;
    memset(copy, 0, sizeof *copy);
    copy->kind = kind;
    copy->lanes = (struct emu_copy_lane *)(void *)(copy + 1);
    copy->runs = (struct emu_run *)(void *)(copy->lanes + lanes);
    copy->data = (uint8_t *)(copy->runs + runs);
    memset(copy->runs, 0, runs * sizeof(struct emu_run) + bytes);
    while (*list)
        list = &(*list)->next;
    *list = copy;
    return copy;
}

/* Whoever waits at the mbarrier knows what the warp did up to `epoch`, and which of it is fenced.
 */
static void know(const struct emu_warp *warp, struct emu_mbarrier *mbarrier, uint32_t epoch,
                 const uint32_t fenced[2])
{
    const struct emu_cluster *cluster = warp->cta->cluster;
    uint32_t at = warp->number, step = emu_clock_part(cluster, PROXY_SHARED);
    const uint32_t epochs[] = {epoch, fenced[0], fenced[1]};
    for (uint32_t part = 0; part < emu_clock_parts(cluster->launch); part++, at += step)
        mbarrier->clock[at] =
            mbarrier->clock[at] < epochs[part] ? epochs[part] : mbarrier->clock[at];
}

/* ---- cp.async ---- */

static void arrive_lanes(struct emu_warp *warp, const struct emu_copy *copy, uint32_t mask)
{
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        struct emu_mbarrier *mbarrier = emu_mbarrier_find(warp->cta, copy->lanes[lane].offset);
        if (!mbarrier)
            continue;
        uint32_t fenced[2];
        emu_proxy_fenced_epochs(warp, fenced);
        /* who waits sees what has landed */
        know(warp, mbarrier, warp->clock[warp->number], fenced);
        emu_mbarrier_arrive(warp, copy->insn, lane, mbarrier, 1);
    }
    warp->clock[warp->number]++;
}

static void land_copies(struct emu_warp *warp, struct emu_copy *copy, uint32_t mask)
{
    copy->mask &= ~mask;
    if (!mask)
        return;
    emu_progress(warp->worker);
    if (copy->kind == COPY_ARRIVE) {
        arrive_lanes(warp, copy, mask);
        return;
    }
    uint64_t addresses[32] = {0};
    struct emu_place places[32];
    EMU_EACH_LANE(mask, addresses[l] = copy->lanes[l].offset;);
    emu_locate_uncounted(warp, copy->insn, mask, SPACE_SHARED, addresses, copy->bytes, 1,
                         ACCESS_WRITE | ACCESS_ASYNC, places);
    if (copy->bytes == sizeof copy->lanes->data) {
        EMU_EACH_LANE(mask, memcpy(places[l].data, copy->lanes[l].data, sizeof copy->lanes->data););
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        memcpy(places[lane].data, copy->lanes[lane].data, copy->bytes);
    }
}

static void drop_finished(struct emu_warp *warp)
{
    for (struct emu_copy **link = &warp->copies; *link;) {
        struct emu_copy *copy = *link;
        if (copy->mask) {
            link = &copy->next;
            continue;
        }
        *link = copy->next;
        free(copy);
    }
}

void emu_land_lanes(struct emu_warp *warp, uint32_t mask, uint32_t keep)
{
    bool all = keep == (uint32_t)EMU_LAND_ALL;
    for (struct emu_copy *copy = warp->copies; copy; copy = copy->next) {
        uint32_t due = 0;
        for (uint32_t left = copy->mask & mask; left; left &= left - 1) {
            int lane = __builtin_ctz(left);
            uint32_t committed = warp->groups[lane], group = copy->lanes[lane].group;
            due |= (uint32_t)(group < committed && committed - group > keep) << lane;
        }
        if (all || copy->kind == COPY_LANES)
            land_copies(warp, copy, all ? copy->mask & mask : due);
    }
    drop_finished(warp);
}

/* Copies of each lane up to its last arrival at the mbarrier. */
static void land_arrivals(struct emu_warp *warp, uint32_t offset)
{
    for (int lane = 0; lane < 32; lane++) {
        struct emu_copy *last = NULL;
        for (struct emu_copy *copy = warp->copies; copy; copy = copy->next)
            if (copy->kind == COPY_ARRIVE && (copy->mask >> lane & 1) &&
                copy->lanes[lane].offset == offset)
                last = copy;
        for (struct emu_copy *copy = warp->copies; last && copy; copy = copy->next) {
            land_copies(warp, copy, copy->mask & 1u << lane);
            if (copy == last)
                break;
        }
    }
    drop_finished(warp);
}

/* ---- bulk copies ---- */

static void unlink_copy(struct emu_cluster *cluster, struct emu_copy *copy)
{
    struct emu_copy **link = &cluster->copies;
    while (*link != copy)
        link = &(*link)->next;
    *link = copy->next;
    free(copy);
}

static void reduce_bytes(const struct emu_copy *copy, uint8_t *to, const uint8_t *from,
                         uint32_t bytes)
{
    uint32_t element = emu_types[copy->type].bits / 8;
    uint8_t old[16] = {0}, value[16] = {0}, none[16] = {0}, result[16];
    for (uint32_t i = 0; i + element <= bytes; i += element) {
        memcpy(old, to + i, element);
        memcpy(value, from + i, element);
        emu_atomic_apply((enum emu_atomic)copy->op, (enum emu_type)copy->type, false, old, value,
                         none, result);
        memcpy(to + i, result, element);
    }
}

/* The source is read until the wait: what writes over it is to be ordered after that. For a copy to
 * another CTA that is known as soon as its issue is: the wait is the destination's. */
static void release_source(struct emu_copy *copy)
{
    const struct emu_cta *cta = copy->issuer->cta;
    if (!copy->source)
        return;
    for (uint32_t r = 0; copy->kind == COPY_OUT && cta->cells && r < copy->run_count; r++)
        emu_locate(copy->issuer, copy->insn, copy->lane, SPACE_SHARED,
                   copy->offset + copy->runs[r].at, copy->runs[r].bytes, 1,
                   ACCESS_READ | ACCESS_ASYNC);
    for (uint32_t i = 0; i < copy->bytes; i++)
        if (copy->source[i] == BYTE_SOURCE)
            copy->source[i] = BYTE_WRITTEN;
    copy->source = NULL;
}

/* One reduction less will change the bytes. */
static void reduced(uint8_t *state, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (state[i] > BYTE_REDUCED && --state[i] == BYTE_REDUCED)
            state[i] = BYTE_WRITTEN;
}

/* Data arrives in shared memory; the mbarrier counts its bytes. */
static void land_in(struct emu_copy *copy)
{
    struct emu_cta *cta = copy->cta;
    release_source(copy);
    for (uint32_t r = 0; r < copy->run_count; r++) {
        const struct emu_run *run = &copy->runs[r];
        uint8_t *to = cta->shared + run->to, *state = cta->shared_state + run->to;
        if (copy->reduces) {
            reduce_bytes(copy, to, copy->data + run->at, run->bytes);
            reduced(state, run->bytes);
        } else {
            memcpy(to, copy->data + run->at, run->bytes);
            memset(state, BYTE_WRITTEN, run->bytes);
        }
    }
    struct emu_mbarrier *mbarrier = emu_mbarrier_find(copy->mbarrier_cta, copy->mbarrier);
    if (!mbarrier)
        return;
    know(copy->issuer, mbarrier, copy->epoch, copy->fenced);
    emu_progress(copy->issuer->worker);
    emu_mbarrier_transact(copy->issuer, copy->insn, copy->lane, mbarrier,
                          -(int64_t)copy->transaction);
}

/* A reduction's elements are relaxed atomics of .gpu scope. */
static void land_out(struct emu_copy *copy)
{
    const uint32_t reduces = ACCESS_READ | ACCESS_STRONG | SCOPE_GPU << ACCESS_SCOPE_SHIFT;
    release_source(copy);
    for (uint32_t r = 0; r < copy->run_count; r++) {
        const struct emu_run *run = &copy->runs[r];
        struct emu_place place =
            emu_locate(copy->issuer, copy->insn, copy->lane, SPACE_GLOBAL, run->to, run->bytes, 1,
                       ACCESS_WRITE | ACCESS_ASYNC_PROXY | (copy->reduces ? reduces : 0));
        if (copy->reduces)
            reduce_bytes(copy, place.data, copy->data + run->at, run->bytes);
        else
            memcpy(place.data, copy->data + run->at, run->bytes);
    }
    emu_progress(copy->issuer->worker);
}

void emu_land_mbarrier(struct emu_cta *cta, struct emu_mbarrier *mbarrier)
{
    uint32_t offset = mbarrier->offset;
    for (uint32_t w = 0; w < cta->warp_count; w++)
        if (cta->warps[w].copies)
            land_arrivals(&cta->warps[w], offset);
    for (struct emu_copy *copy = cta->cluster->copies, *next; copy; copy = next) {
        next = copy->next;
        if (copy->kind != COPY_IN || copy->mbarrier_cta != cta || copy->mbarrier != offset)
            continue;
        land_in(copy);
        unlink_copy(cta->cluster, copy);
    }
}

void emu_land_bulk(struct emu_warp *warp, int lane, uint32_t keep, bool read)
{
    struct emu_cluster *cluster = warp->cta->cluster;
    uint32_t committed = warp->bulk_groups[lane];
    for (struct emu_copy *copy = cluster->copies, *next; copy; copy = next) {
        next = copy->next;
        if (copy->kind != COPY_OUT || copy->issuer != warp || copy->lane != lane ||
            copy->group >= committed || committed - copy->group <= keep)
            continue;
        if (read) {
            release_source(copy);
            continue;
        }
        land_out(copy);
        unlink_copy(cluster, copy);
    }
}

void emu_land_at_exit(struct emu_cluster *cluster)
{
    for (struct emu_copy *copy = cluster->copies, *next; copy; copy = next) {
        next = copy->next;
        copy->source = NULL;
        if (copy->kind == COPY_OUT)
            land_out(copy);
        unlink_copy(cluster, copy);
    }
}

void emu_copies_at_exit(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    const struct emu_cta *cta = warp->cta;
    if (!(cta->cluster->launch->checks & PTXGEN_CHECK_ASYNC))
        return;
    bool last = cta->live_threads == (uint32_t)__builtin_popcount(mask);
    for (const struct emu_copy *copy = cta->cluster->copies; copy; copy = copy->next) {
        if (copy->kind == COPY_OUT && copy->source && copy->issuer == warp &&
            (mask >> copy->lane & 1))
            emu_fault_at(warp, insn, copy->lane, PTXGEN_CHECK_ASYNC, copy->offset,
                         "the thread exits while its asynchronous copy out of shared memory, at "
                         "line %u, may still read it: cp.async.bulk.wait_group.read is missing",
                         copy->insn->line);
        if (copy->kind == COPY_IN && last && copy->cta == cta)
            emu_fault_at(warp, insn, __builtin_ctz(mask), PTXGEN_CHECK_ASYNC, copy->offset,
                         "the CTA's last thread exits while an asynchronous copy into its shared "
                         "memory, at line %u, is under way: nobody has waited for its mbarrier",
                         copy->insn->line);
    }
}
