/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a launch: workers take clusters in order of their index, keep as many live as the chip
 * would, and run them in turns, so that CTAs that wait for each other all make progress. Where
 * options.seed is given, clusters begin and have their turns, of any length, in a shuffled order,
 * and so do the warps of each.
 */
#include "src/emulator/async.h"
#include "src/emulator/cluster.h"
#include "src/emulator/livelock.h"
#include "src/emulator/shared_buffer.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { QUANTUM_SLICES = 64, SLICE_STEPS = 4096, LOOK_ROUNDS = 1000, STUCK_ROUNDS = 20000 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A function whose values look random: the finaliser of SplitMix64. */
static uint64_t scramble(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

/* Of the launch, or of a part of it that has this number; 0 is no state of next_random. */
static uint64_t random_of(const struct emu_launch *launch, uint64_t part)
{
    return scramble(launch->order_seed + scramble(part + 1)) | 1;
}

/*
 * The cluster that begins as number `n`: a permutation, of the least power of 4 that is not less
 * than the number of clusters, by four rounds of a Feistel network, until it gives one of them.
 */
static uint64_t shuffled(const struct emu_launch *launch, uint64_t n)
{
    enum { ROUNDS = 4 };
    uint32_t half = 1;
    while (half < 32 && (uint64_t)1 << 2 * half < launch->cluster_count)
        half++;
    uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = n >> half, right = n & mask;
        for (uint64_t round = 0; round < ROUNDS; round++) {
            uint64_t next = left ^ (random_of(launch, right << 2 | round) >> 32 & mask);
            left = right;
            right = next;
        }
        n = left << half | right;
    } while (n >= launch->cluster_count);
    return n;
}

static bool take_cluster(struct emu_launch *launch, uint64_t *index)
{
    if (atomic_load_explicit(&launch->next_cluster, memory_order_relaxed) >= launch->cluster_count)
        return false;
    uint64_t n = atomic_fetch_add(&launch->next_cluster, 1);
    if (n >= launch->cluster_count)
        return false;
    *index = launch->options->seed ? shuffled(launch, n) : n;
    return true;
}

/* A new cluster begins when there is none, or when all live ones have had a long turn. */
static bool wants_cluster(const struct emu_worker *worker)
{
    if (worker->live_clusters >= worker->launch->resident)
        return false;
    for (const struct emu_cluster *cluster = worker->clusters; cluster; cluster = cluster->next)
        if (!cluster->rested)
            return false;
    return true;
}

static bool begin_cluster(struct emu_worker *worker)
{
    uint64_t index;
    if (!take_cluster(worker->launch, &index))
        return true;
    struct emu_cluster *cluster = emu_cluster_start(worker, index);
    if (!cluster)
        return false;
    uint32_t before = worker->live_clusters++;
    cluster->random = random_of(worker->launch, ~index);
    if (worker->launch->options->seed)
        before = (uint32_t)(next_random(&worker->random) % worker->live_clusters);
    struct emu_cluster **link = &worker->clusters;
    while (before--)
        link = &(*link)->next;
    cluster->next = *link;
    *link = cluster;
    emu_progress(worker);
    return true;
}

/* Runs the cluster's warps in turn; false when none of them can run. */
static bool run_cluster(struct emu_worker *worker, struct emu_cluster *cluster)
{
    const struct emu_launch *launch = worker->launch;
    uint32_t warps = launch->warps * cluster->cta_count, slices = 0, idle = 0;
    uint32_t quantum = QUANTUM_SLICES;
    bool ran = false;
    if (launch->options->seed)
        quantum = 1 + (uint32_t)(next_random(&worker->random) % (2 * QUANTUM_SLICES));
    while (slices < quantum && idle < warps && !launch->stop) {
        uint32_t number = cluster->next_warp++ % warps;
        uint32_t budget = SLICE_STEPS;
        if (launch->options->seed) {
            number = (uint32_t)(next_random(&cluster->random) % warps);
            budget = 1 + (uint32_t)(next_random(&cluster->random) % 64);
        }
        struct emu_warp *warp =
            &cluster->ctas[number / launch->warps].warps[number % launch->warps];
        if (!emu_warp_runnable(warp)) {
            idle++;
            continue;
        }
        uint64_t polls = warp->polls;
        emu_warp_run(warp, budget);
        idle = warp->polls == polls ? 0 : idle + 1;
        slices++;
        ran = true;
    }
    cluster->rested = true;
    return ran || emu_cluster_runnable(cluster);
}

/* True when every live warp is parked or did nothing since the last look but poll. */
static bool only_polls(struct emu_worker *worker)
{
    bool only = true;
    for (struct emu_cluster *cluster = worker->clusters; cluster; cluster = cluster->next)
        for (uint32_t c = 0; c < cluster->cta_count; c++)
            for (uint32_t w = 0; w < worker->launch->warps; w++) {
                struct emu_warp *warp = &cluster->ctas[c].warps[w];
                if (emu_warp_runnable(warp) && warp->polls == warp->seen_polls)
                    only = false;
                warp->seen_polls = warp->polls;
            }
    return only;
}

static void run_rounds(struct emu_worker *worker)
{
    struct emu_launch *launch = worker->launch;
    uint64_t seen = 0;
    uint32_t stuck = 0;
    emu_look_later(worker);
    for (;;) {
        if (launch->stop)
            return;
        if (wants_cluster(worker) && !begin_cluster(worker)) {
            emu_launch_out_of_memory(launch);
            return;
        }
        if (!worker->clusters)
            return;
        for (struct emu_cluster **link = &worker->clusters; *link;) {
            struct emu_cluster *cluster = *link;
            bool alive = run_cluster(worker, cluster);
            if (emu_cluster_done(cluster)) {
                emu_land_at_exit(cluster);
                *link = cluster->next;
                cluster->next = worker->spare;
                worker->spare = cluster;
                worker->live_clusters--;
                emu_progress(worker);
                continue;
            }
            if (!alive && !launch->stop)
                emu_report_deadlock(worker, cluster, PTXGEN_CHECK_DEADLOCK,
                                    "no thread of the CTA can go on");
            link = &cluster->next;
        }
        emu_look(worker);
        uint64_t progress = emu_launch_progress(launch);
        bool polling = only_polls(worker);
        stuck = polling && progress == seen ? stuck + 1 : 0;
        seen = progress;
        if (stuck == LOOK_ROUNDS)
            emu_look_soon(worker);
        if (stuck > STUCK_ROUNDS && launch->next_cluster >= launch->cluster_count)
            emu_report_deadlock(worker, worker->clusters, PTXGEN_CHECK_DEADLOCK,
                                "every thread waits, and nothing changes any more");
        if (stuck > STUCK_ROUNDS && worker->live_clusters >= launch->resident)
            emu_report_deadlock(worker, worker->clusters, PTXGEN_CHECK_DEADLOCK,
                                "every resident thread waits, and nothing changes any more");
    }
}

static void *worker_main(void *argument)
{
    struct emu_worker *worker = argument;
    if (setjmp(worker->escape) == 0)
        run_rounds(worker);
    emu_clusters_free(worker);
    return NULL;
}

static void start_workers(struct emu_launch *launch)
{
    for (uint32_t i = 1; i < launch->worker_count; i++)
        launch->workers[i].started =
            pthread_create(&launch->workers[i].thread, NULL, worker_main, &launch->workers[i]) == 0;
    worker_main(&launch->workers[0]);
    for (uint32_t i = 1; i < launch->worker_count; i++)
        if (launch->workers[i].started)
            pthread_join(launch->workers[i].thread, NULL);
    for (uint32_t i = 0; i < launch->worker_count; i++) {
        launch->steps += launch->workers[i].steps;
        launch->lane_steps += launch->workers[i].lane_steps;
    }
}

ptxgen_status emu_launch_run(struct emu_launch *launch, ptxgen_error *err)
{
    bool profile = launch->options->profile;
    launch->workers = calloc(launch->worker_count, sizeof *launch->workers);
    bool enough = launch->workers && emu_buffers_start(launch);
    for (uint32_t i = 0; enough && i < launch->worker_count; i++) {
        struct emu_worker *worker = &launch->workers[i];
        worker->launch = launch;
        worker->index = i;
        worker->random = random_of(launch, i);
        if (profile)
            worker->counters = calloc(launch->program->count, sizeof *worker->counters);
        enough = !profile || worker->counters;
    }
    if (enough)
        start_workers(launch);
    emu_buffers_end(launch);
    if (!enough || (launch->out_of_memory && !launch->faulted))
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to run %.*s",
                           (int)launch->program->function->name.length,
                           launch->program->function->name.text);
    if (launch->faulted)
        return ptxgen_fail(err, PTXGEN_ERROR_PTX_FAULT, "%s", launch->fault.message);
    return PTXGEN_OK;
}
