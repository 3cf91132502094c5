/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/cluster.h"
#include "src/emulator/async.h"
#include "src/emulator/global_order.h"
#include "src/emulator/livelock.h"
#include "src/emulator/mbarrier.h"
#include "src/emulator/proxy.h"
#include "src/emulator/shared_buffer.h"
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
    size_t warp, shared, shared_state, cells, generic, total;
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
    layout.generic =
        layout.cells && launch->proxies ? round_up(cell_count(launch) * sizeof(uint32_t)) : 0;
    layout.total = layout.warp * launch->warps + layout.shared * 2 + layout.cells + layout.generic;
    return layout;
}

static uint32_t cta_clocks(const struct emu_launch *launch)
{
    return launch->warps * (launch->program->arrives_relaxed ? 2 : 1) + EMU_BARRIERS;
}

size_t emu_cta_bytes(const struct emu_launch *launch)
{
    size_t epochs = (size_t)launch->cluster_ctas * EMU_MAX_WARPS * emu_clock_parts(launch);
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
    emu_buffers_pad(launch, cta->shared_state);
    at += layout.shared * 2;
    if (layout.cells)
        place_cells(cta, at, cell_count(launch));
    at += layout.cells;
    if (layout.generic)
        cta->generic = (uint32_t *)(void *)at;
    at += layout.generic;
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
        if (launch->program->arrives_relaxed) {
            warp->fenced = clock;
            clock += cluster->epochs;
        }
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
    uint32_t epochs = cluster->epochs =
        cluster->cta_count * EMU_MAX_WARPS * emu_clock_parts(launch);
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
        free(cta->warps[w].watch);
        emu_order_forget(&cta->warps[w]);
        cta->warps[w].tiles = NULL;
        cta->warps[w].operands = NULL;
        cta->warps[w].late = NULL;
        cta->warps[w].watch = NULL;
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

/* Where a fragment is, and the address that it reads or polls there again and again, if any. */
struct stand {
    const struct emu_insn *insn, *first, *last; /* first, last: of the loop it goes round in */
    bool polls;
    uint64_t address;
};

/* The round that a look under way has seen; of what waits for others only in a livelock. */
static struct stand where_it_is(const struct emu_warp *warp, const struct emu_fragment *fragment,
                                bool livelock)
{
    const struct emu_insn *code = warp->cta->cluster->launch->program->code;
    const struct emu_watch *watch = emu_watch_of(warp);
    int lane = __builtin_ctz(fragment->mask);
    bool runs = fragment->state == FRAGMENT_RUNS;
    struct stand stand = {.insn = &code[fragment->pc]};
    if (watch && (runs || livelock) && watch->low[lane] <= watch->high[lane]) {
        stand = (struct stand){watch->read[lane], &code[watch->low[lane]], &code[watch->high[lane]],
                               watch->read[lane], watch->address[lane]};
        stand.insn = stand.insn ? stand.insn : stand.first;
    } else if (runs && warp->last_poll) {
        stand = (struct stand){warp->last_poll, NULL, NULL, true, warp->last_poll_address};
    }
    return stand;
}

struct text {
    char *at;
    size_t room;
};

PTXGEN_PRINTF(2, 3) static void append(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text->at, text->room, format, args);
    va_end(args);
    size_t used = length < 0 ? 0 : (size_t)length < text->room ? (size_t)length : text->room - 1;
    text->at += used;
    text->room -= used;
}

static void describe_poll(struct text *text, const struct emu_warp *warp, const struct stand *stand)
{
    append(text, " poll address 0x%llx", (unsigned long long)stand->address);
    const struct emu_mbarrier *mbarrier =
        stand->insn->class_id == CLASS_BARRIER
            ? emu_mbarrier_find(warp->cta, (uint32_t)stand->address)
            : NULL;
    if (mbarrier)
        append(text, ", an mbarrier to which %u of %u arrivals and %d bytes are due",
               mbarrier->pending, mbarrier->expected, mbarrier->transactions);
}

static void describe(struct text *text, const struct emu_warp *warp,
                     const struct emu_fragment *fragment, bool livelock)
{
    const struct emu_cta *cta = warp->cta;
    const struct emu_barrier *barrier = &cta->barriers[fragment->barrier % EMU_BARRIERS];
    struct stand stand = where_it_is(warp, fragment, livelock);
    append(text, "; CTA (%u,%u,%u) warp %u lanes 0x%08x", cta->id[0], cta->id[1], cta->id[2],
           warp->index, fragment->mask);
    if (stand.first)
        append(text, " go round in lines %u to %u and", stand.first->line, stand.last->line);
    append(text, " at line %u", stand.insn->line);
    if (stand.polls)
        describe_poll(text, warp, &stand);
    else if (stand.first || fragment->state == FRAGMENT_RUNS)
        append(text, " run");
    else if (fragment->state == FRAGMENT_BARRIER)
        append(text, " wait at barrier %u, where %u of %u threads are", fragment->barrier,
               barrier->arrived, barrier->expected);
    else if (fragment->state == FRAGMENT_GROUP)
        append(text, " wait for the other warps of the warpgroup");
    else if (fragment->state == FRAGMENT_CLUSTER)
        append(text, " wait at barrier.cluster");
    else
        append(text, " wait for other lanes of the warp");
}

/* Of a cluster where no thread can go on, and the first waits at a barrier. */
static const char *missing_barrier(const struct emu_cluster *cluster, uint32_t exited)
{
    uint32_t ids = 0;
    for (uint32_t c = 0; c < cluster->cta_count; c++)
        for (uint32_t w = 0; w < cluster->ctas[c].warp_count; w++) {
            const struct emu_warp *warp = &cluster->ctas[c].warps[w];
            for (uint32_t f = 0; f < warp->fragment_count; f++)
                if (warp->fragments[f].state == FRAGMENT_BARRIER)
                    ids |= 1u << warp->fragments[f].barrier;
        }
    if (ids & (ids - 1))
        return "a barrier is missing: threads wait at different barriers, each for those at others";
    return exited ? "a barrier is missing: threads have exited without the one that others wait at"
                  : "a barrier is missing: threads wait elsewhere, not at the one of the others";
}

/* What goes round in a livelock tells more than what waits; of what waits, what a barrier holds. */
static bool is_better(const struct emu_fragment *fragment, const struct stand *stand,
                      const struct emu_fragment *where, const struct stand *at, bool livelock)
{
    if (livelock)
        return !at->first && stand->first;
    return where->state != FRAGMENT_RUNS && where->state != FRAGMENT_BARRIER &&
           fragment->state == FRAGMENT_BARRIER;
}

_Noreturn void emu_report_deadlock(struct emu_worker *worker, struct emu_cluster *cluster,
                                   enum ptxgen_emulator_check check, const char *why)
{
    char sentence[740], more[600] = "";
    struct text text = {more, sizeof more};
    struct emu_warp *first = NULL;
    const struct emu_fragment *where = NULL;
    struct stand at = {0};
    const bool livelock = check == PTXGEN_CHECK_LIVELOCK;
    uint32_t exited = 0, described = 0;
    for (uint32_t c = 0; c < cluster->cta_count; c++) {
        struct emu_cta *cta = &cluster->ctas[c];
        exited += cta->threads - cta->live_threads;
        for (uint32_t w = 0; w < cta->warp_count; w++)
            for (uint32_t f = 0; f < cta->warps[w].fragment_count; f++) {
                const struct emu_fragment *fragment = &cta->warps[w].fragments[f];
                struct stand stand = where_it_is(&cta->warps[w], fragment, livelock);
                if (!first || is_better(fragment, &stand, where, &at, livelock)) {
                    first = &cta->warps[w];
                    where = fragment;
                    at = stand;
                }
                if (described++ < 4)
                    describe(&text, &cta->warps[w], fragment, livelock);
            }
    }
    if (exited)
        append(&text, "; %u threads have exited", exited);
    if (check == PTXGEN_CHECK_DEADLOCK && where->state == FRAGMENT_BARRIER) {
        check = PTXGEN_CHECK_BARRIERS;
        why = missing_barrier(cluster, exited);
    }
    snprintf(sentence, sizeof sentence, "%s: %s%s", livelock ? "livelock" : "deadlock", why, more);
    emu_fault_record(first, at.insn, __builtin_ctz(where->mask), check, at.polls, at.address,
                     sentence);
    longjmp(worker->escape, 1);
}
