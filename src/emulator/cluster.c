/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/cluster.h"
#include "src/emulator/async.h"
#include "src/emulator/global_order.h"
#include "src/emulator/mbarrier.h"
#include "src/emulator/shared_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t round_up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* The pieces of a CTA's block of memory, in order. */
struct cta_layout {
    size_t registers, written, local, local_state; /* one warp's */
    size_t warp, shared, shared_state, cells, total;
};

/* Words of shared memory, the last one perhaps in part. */
static size_t cell_count(const struct emu_launch *launch)
{
    return launch->shared_bytes / 4 + 1;
}

static struct cta_layout lay_out(const struct emu_launch *launch)
{
    const struct emu_program *program = launch->program;
    struct cta_layout layout;
    layout.registers = round_up(program->file_bytes + 64);
    layout.written = round_up(program->slot_count * sizeof(uint32_t));
    layout.local = layout.local_state = round_up((size_t)program->local_bytes * 32);
    layout.warp = layout.registers + layout.written + layout.local + layout.local_state;
    layout.shared = round_up(launch->shared_bytes + 16);
    layout.shared_state = layout.shared;
    layout.cells = launch->checks & PTXGEN_CHECK_RACES
                       ? round_up(sizeof(struct emu_cells) + cell_count(launch) * EMU_CELL_BYTES)
                       : 0;
    layout.total = layout.warp * launch->warps + layout.shared * 2 + layout.cells;
    return layout;
}

static uint32_t cta_clocks(const struct emu_launch *launch)
{
    return launch->warps + EMU_BARRIERS;
}

size_t emu_cta_bytes(const struct emu_launch *launch)
{
    size_t epochs = (size_t)launch->cluster_ctas * EMU_MAX_WARPS;
    return lay_out(launch).total + launch->warps * sizeof(struct emu_warp) +
           cta_clocks(launch) * epochs * sizeof(uint32_t);
}

static void place_cells(struct emu_cta *cta, uint8_t *at, size_t count)
{
    cta->cells = (struct emu_cells *)(void *)at;
    uint32_t *first = (uint32_t *)(void *)(cta->cells + 1);
    cta->cells->writes = (struct emu_marks){first, first + count};
    cta->cells->reads = (struct emu_marks){first + 2 * count, first + 3 * count};
    cta->cells->readers = first + 4 * count;
}

static bool start_cta(struct emu_worker *worker, struct emu_cluster *cluster, uint32_t rank)
{
    const struct emu_launch *launch = worker->launch;
    struct cta_layout layout = lay_out(launch);
    struct emu_cta *cta = &cluster->ctas[rank];
    emu_clock clock = cluster->clocks + rank * cta_clocks(launch) * cluster->epochs;
    struct emu_cta fresh = {.memory = cta->memory,
                            .warps = cta->warps,
                            .mbarriers = cta->mbarriers,
                            .mbarrier_capacity = cta->mbarrier_capacity};
    *cta = fresh;
    if (!cta->memory)
        cta->memory = aligned_alloc(64, layout.total ? layout.total : 64);
    if (!cta->warps)
        cta->warps = aligned_alloc(64, round_up(launch->warps * sizeof *cta->warps));
    if (cta->warps)
        memset(cta->warps, 0, launch->warps * sizeof *cta->warps);
    if (!cta->memory || !cta->warps)
        return false;
    memset(cta->memory, 0, layout.total);
    cta->cluster = cluster;
    cta->rank = rank;
    cta->warp_count = launch->warps;
    cta->threads = cta->live_threads = launch->threads;
    cta->shared_bytes = launch->shared_bytes;
    uint64_t index = cluster->index;
    for (int i = 0; i < 3; i++) {
        uint32_t inside = i == 0   ? rank % launch->cluster[0]
                          : i == 1 ? rank / launch->cluster[0] % launch->cluster[1]
                                   : rank / launch->cluster[0] / launch->cluster[1];
        cta->id[i] = (uint32_t)(index % launch->clusters[i]) * launch->cluster[i] + inside;
        index /= launch->clusters[i];
    }
    uint8_t *at = cta->memory;
    cta->shared = at;
    cta->shared_state = at + layout.shared;
    at += layout.shared * 2;
    if (layout.cells)
        place_cells(cta, at, cell_count(launch));
    at += layout.cells;
    for (uint32_t w = 0; w < launch->warps; w++, at += layout.warp) {
        struct emu_warp *warp = &cta->warps[w];
        warp->bank[0] = at;
        warp->bank[1] = launch->program->constants;
        warp->written = (uint32_t *)(void *)(at + layout.registers);
        warp->local = at + layout.registers + layout.written;
        warp->local_state = warp->local + layout.local;
        warp->cta = cta;
        warp->worker = worker;
        warp->index = w;
        warp->number = rank * EMU_MAX_WARPS + w;
        warp->clock = clock;
        warp->clock[warp->number] = 1;
        emu_clock_look(warp);
        clock += cluster->epochs;
        emu_warp_start(warp);
    }
    for (uint32_t b = 0; b < EMU_BARRIERS; b++, clock += cluster->epochs)
        cta->barriers[b].clock = clock;
    return true;
}

/* Those of the CTAs' warps and barriers, then the cluster's own. */
static bool start_clocks(struct emu_cluster *cluster)
{
    enum { OWN = 3 };
    const struct emu_launch *launch = cluster->launch;
    uint32_t epochs = cluster->epochs = cluster->cta_count * EMU_MAX_WARPS;
    size_t count = (size_t)cluster->cta_count * cta_clocks(launch) + OWN;
    size_t bytes = count * epochs * sizeof *cluster->clocks;
    if (!cluster->clocks)
        cluster->clocks = aligned_alloc(64, round_up(bytes));
    if (!cluster->clocks)
        return false;
    memset(cluster->clocks, 0, bytes);
    cluster->fences = cluster->clocks + (count - OWN) * epochs;
    cluster->arrivals = cluster->fences + epochs;
    cluster->met = cluster->arrivals + epochs;
    return true;
}

static void free_warps(struct emu_cta *cta)
{
    for (uint32_t w = 0; cta->warps && w < cta->warp_count; w++) {
        emu_copies_free(&cta->warps[w].copies);
        free(cta->warps[w].tiles);
        free(cta->warps[w].operands);
        free(cta->warps[w].late);
        emu_order_forget(&cta->warps[w]);
        cta->warps[w].tiles = NULL;
        cta->warps[w].operands = NULL;
        cta->warps[w].late = NULL;
    }
}

static void free_cluster(struct emu_cluster *cluster)
{
    for (uint32_t c = 0; c < EMU_MAX_CLUSTER; c++) {
        struct emu_cta *cta = &cluster->ctas[c];
        free_warps(cta);
        free(cta->memory);
        free(cta->warps);
        emu_mbarriers_free(cta);
    }
    emu_copies_free(&cluster->copies);
    free(cluster->clocks);
    free(cluster);
}

struct emu_cluster *emu_cluster_start(struct emu_worker *worker, uint64_t index)
{
    struct emu_cluster *cluster = worker->spare;
    if (cluster)
        worker->spare = cluster->next;
    else
        cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        return NULL;
    for (uint32_t c = 0; c < cluster->cta_count; c++)
        free_warps(&cluster->ctas[c]);
    emu_copies_free(&cluster->copies);
    cluster->launch = worker->launch;
    cluster->index = index;
    cluster->cta_count = worker->launch->cluster_ctas;
    cluster->cluster_arrived = cluster->cluster_phase = 0;
    cluster->rested = cluster->learned = false;
    cluster->next_warp = 0;
    bool started = start_clocks(cluster);
    for (uint32_t c = 0; started && c < cluster->cta_count; c++)
        started = start_cta(worker, cluster, c);
    if (started)
        return cluster;
    free_cluster(cluster);
    return NULL;
}

void emu_clusters_free(struct emu_worker *worker)
{
    struct emu_cluster **lists[] = {&worker->clusters, &worker->spare};
    for (int i = 0; i < 2; i++)
        while (*lists[i]) {
            struct emu_cluster *next = (*lists[i])->next;
            free_cluster(*lists[i]);
            *lists[i] = next;
        }
}

bool emu_cluster_runnable(const struct emu_cluster *cluster)
{
    for (uint32_t c = 0; c < cluster->cta_count; c++)
        for (uint32_t w = 0; w < cluster->launch->warps; w++)
            if (emu_warp_runnable(&cluster->ctas[c].warps[w]))
                return true;
    return false;
}

bool emu_cluster_done(const struct emu_cluster *cluster)
{
    for (uint32_t c = 0; c < cluster->cta_count; c++)
        if (cluster->ctas[c].live_threads > 0)
            return false;
    return true;
}

/* ---- who waits for what ---- */

/* A fragment that polls is at the instruction it polls with. */
static const struct emu_insn *where_it_is(const struct emu_warp *warp,
                                          const struct emu_fragment *fragment)
{
    if (fragment->state == FRAGMENT_RUNS && warp->last_poll)
        return warp->last_poll;
    return &warp->cta->cluster->launch->program->code[fragment->pc];
}

static void describe(char *text, size_t size, const struct emu_warp *warp,
                     const struct emu_fragment *fragment)
{
    const struct emu_cta *cta = warp->cta;
    uint32_t line = where_it_is(warp, fragment)->line;
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, size - used,
                             "; CTA (%u,%u,%u) warp %u lanes 0x%08x at line %u", cta->id[0],
                             cta->id[1], cta->id[2], warp->index, fragment->mask, line);
    if (used >= size)
        return;
    const struct emu_barrier *barrier = &cta->barriers[fragment->barrier % EMU_BARRIERS];
    if (fragment->state == FRAGMENT_BARRIER)
        snprintf(text + used, size - used, " wait at barrier %u, where %u of %u threads are",
                 fragment->barrier, barrier->arrived, barrier->expected);
    else if (fragment->state == FRAGMENT_GROUP)
        snprintf(text + used, size - used, " wait for the other warps of the warpgroup");
    else if (fragment->state == FRAGMENT_CLUSTER)
        snprintf(text + used, size - used, " wait at barrier.cluster");
    else if (fragment->state == FRAGMENT_COLLECTS)
        snprintf(text + used, size - used, " wait for other lanes of the warp");
    else if (warp->last_poll_address)
        snprintf(text + used, size - used, " poll address 0x%llx",
                 (unsigned long long)warp->last_poll_address);
    else
        snprintf(text + used, size - used, " run");
}

_Noreturn void emu_report_deadlock(struct emu_worker *worker, struct emu_cluster *cluster,
                                   const char *why)
{
    char text[640];
    snprintf(text, sizeof text, "deadlock: %s", why);
    struct emu_warp *first = NULL;
    const struct emu_fragment *where = NULL;
    uint32_t exited = 0, described = 0;
    for (uint32_t c = 0; c < cluster->cta_count; c++) {
        struct emu_cta *cta = &cluster->ctas[c];
        exited += cta->threads - cta->live_threads;
        for (uint32_t w = 0; w < cta->warp_count; w++)
            for (uint32_t f = 0; f < cta->warps[w].fragment_count; f++) {
                const struct emu_fragment *fragment = &cta->warps[w].fragments[f];
                if (!first) {
                    first = &cta->warps[w];
                    where = fragment;
                }
                if (described++ < 4)
                    describe(text, sizeof text, &cta->warps[w], fragment);
            }
    }
    size_t used = strlen(text);
    if (exited && used < sizeof text)
        snprintf(text + used, sizeof text - used, "; %u threads have exited", exited);
    bool barrier = where->state == FRAGMENT_BARRIER;
    emu_fault_record(first, where_it_is(first, where), __builtin_ctz(where->mask),
                     barrier ? PTXGEN_CHECK_BARRIERS : PTXGEN_CHECK_DEADLOCK,
                     where->state == FRAGMENT_RUNS && first->last_poll_address != 0,
                     first->last_poll_address, text);
    longjmp(worker->escape, 1);
}
