/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running machine: a launch holds workers (host threads), a worker its clusters, a cluster its
 * CTAs, a CTA its warps, a warp its fragments. A fragment is a set of lanes that stand at one
 * instruction; branches split fragments, and fragments that meet at one instruction join again
 * (independent thread scheduling: every fragment makes progress).
 */
#ifndef PTXGEN_EMULATOR_MACHINE_H
#define PTXGEN_EMULATOR_MACHINE_H

#include "ptxgen/emulator.h"
#include "src/emulator/chip.h"
#include "src/emulator/device_memory.h"
#include "src/emulator/program.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>

enum {
    EMU_MAX_WARPS = 32,
    EMU_CTA_THREADS = 32 * EMU_MAX_WARPS,
    EMU_BARRIERS = 16,
    EMU_MAX_CLUSTER = 16
};

enum emu_fragment_state {
    FRAGMENT_RUNS,
    FRAGMENT_COLLECTS, /* at a warp-wide instruction, until the lanes it names are there */
    FRAGMENT_BARRIER,  /* at a CTA barrier */
    FRAGMENT_GROUP,    /* at a wgmma, until the warpgroup's other warps are there */
    FRAGMENT_CLUSTER   /* at barrier.cluster.wait */
};

struct emu_fragment {
    uint32_t pc, mask;
    uint32_t age;   /* how often it gave way to the warp's other fragments */
    uint32_t polls; /* reads that look like waiting, since it last gave way */
    uint8_t state, barrier;
};

/*
 * Order of events between the warps of a cluster, which are numbered EMU_MAX_WARPS by
 * EMU_MAX_WARPS CTA: a clock holds the last epoch of each that is known.
 */
typedef uint32_t *emu_clock;

/* A proxy fence by the lanes of `mask`, which ended the epoch (proxy.h). */
struct emu_proxy_fence {
    uint32_t epoch, mask;
};
enum { EMU_PROXY_FENCES = 8 };

struct emu_copy;       /* async.h */
struct emu_late_reads; /* late_read.h */
struct emu_warp_order; /* global_order.h */
struct emu_known;
struct emu_race_page; /* global_race.h */
struct emu_watch;     /* livelock.h */

struct emu_warp {
    uint8_t *bank[2];
    uint32_t *written; /* lanes that hold a value, by register slot */
    struct emu_cta *cta;
    struct emu_worker *worker;
    uint32_t index, number; /* in the CTA, in the cluster */
    uint32_t lanes, live;   /* lanes that exist; that have not exited */
    uint32_t fragment_count;
    struct emu_fragment fragments[32], *current;
    uint32_t carry; /* CC.CF, one bit a lane */
    bool yields;    /* let other warps run */
    uint8_t *local, *local_state;
    emu_clock clock;
    emu_clock fenced;               /* the clock at its last fence; NULL: nobody asks for it */
    uint32_t others;                /* the least of the other warps' epochs in the clock */
    uint64_t polls;                 /* waiting reads */
    uint64_t seen_polls;            /* polls at the last look for a deadlock */
    struct emu_copy *copies;        /* cp.async under way, oldest first */
    uint32_t groups[32];            /* cp.async groups committed, by lane */
    uint32_t bulk_groups[32];       /* the same for bulk copies */
    struct emu_pending_tile *tiles; /* wgmma accumulators under way */
    uint32_t tile_count, tile_capacity, tile_groups;
    struct emu_pending_operand *operands; /* registers that wgmmas under way read */
    uint32_t operand_count, operand_capacity;
    struct emu_late_reads *late;                 /* of the warpgroup, in its first warp */
    struct emu_warp_order *order;                /* with other clusters */
    uint32_t cluster_phase[32], cluster_arrived; /* barrier.cluster: phase arrived in, by lane */
    const struct emu_allocation *last_allocation;
    const struct emu_insn *last_poll; /* and its address */
    uint64_t last_poll_address;
    uint32_t steps_alone;    /* of one fragment, while the warp has others */
    struct emu_watch *watch; /* how it stood when the worker began to look; NULL: not looked at */
    struct emu_proxy_fence fences[EMU_PROXY_FENCES]; /* by some of the warp's lanes */
};

struct emu_barrier {
    uint32_t arrived, expected; /* threads */
    uint32_t all, any, count;   /* barrier.red, over the threads so far */
    emu_clock clock;
    uint32_t newest; /* the largest epoch among the arrivals */
};

struct emu_cells; /* shared_memory.h */
struct emu_mbarrier;

struct emu_cta {
    struct emu_cluster *cluster;
    uint32_t rank; /* in the cluster */
    uint32_t id[3];
    struct emu_warp *warps;
    uint32_t warp_count, threads, live_threads;
    uint8_t *memory; /* one block: registers, shared memory, local memory */
    uint8_t *shared, *shared_state;
    struct emu_cells *cells; /* NULL when races are not looked for */
    uint32_t *generic;       /* proxy.h; NULL when proxies are not looked at */
    uint32_t shared_bytes;
    struct emu_barrier barriers[EMU_BARRIERS];
    struct emu_mbarrier *mbarriers;
    uint32_t mbarrier_count, mbarrier_capacity;
};

struct emu_cluster {
    struct emu_launch *launch;
    struct emu_cta ctas[EMU_MAX_CLUSTER];
    uint32_t cta_count;
    uint64_t index;
    uint32_t epochs;                         /* of a clock */
    emu_clock clocks;                        /* one block with all but the mbarriers' */
    emu_clock fences;                        /* what fences and acquire/release have published */
    uint32_t cluster_arrived, cluster_phase; /* barrier.cluster */
    emu_clock arrivals, met;                 /* of this phase, of the last complete one */
    struct emu_copy *copies;                 /* bulk copies under way */
    struct emu_cluster *next;
    uint64_t random; /* the order of its warps */
    bool rested;     /* has used up one quantum */
    bool learned;    /* one of its warps has learned what other clusters did */
    uint32_t next_warp;
};

struct emu_counters {
    uint64_t warps, lanes, sectors, bytes_moved, bytes_needed, conflicts, shared_accesses;
};

/* A look for livelocks (livelock.h). */
struct emu_look {
    bool on, last; /* last: options.max_steps are passed */
    uint32_t number;
    uint64_t progress; /* of the launch when it began */
    uint64_t own;      /* of the worker */
    uint64_t next;     /* steps of the worker at which the next begins */
    uint32_t window;   /* steps in which each warp has to repeat */
};

struct emu_worker {
    struct emu_launch *launch;
    struct emu_cluster *clusters, *spare;
    struct emu_counters *counters; /* by pc, when profiling */
    pthread_t thread;
    jmp_buf escape;
    uint64_t random; /* the order of its clusters */
    uint64_t steps, lane_steps;
    _Atomic uint64_t progress; /* changes made; only this worker writes it */
    uint32_t index, live_clusters;
    struct emu_look look;
    bool started;
};

/* A location that strong writes have been made to. */
struct emu_flag {
    uint64_t address; /* 0: none */
    struct emu_known *known;
};

struct emu_order {
    struct emu_known *all;
    struct emu_flag *flags; /* hashed */
    size_t flag_count, flag_capacity;
};

/* Bytes of shared memory from `at` on. */
struct emu_reach {
    uint32_t at, bytes;
};

struct emu_launch {
    const struct emu_program *program;
    const struct emu_chip *chip;
    struct emu_memory *memory;
    const struct ptxgen_emulator_options *options;
    uint32_t grid[3], block[3], cluster[3], clusters[3]; /* clusters: the grid in clusters */
    uint32_t cluster_ctas, threads, warps;
    uint32_t dynamic_bytes, shared_bytes;
    uint32_t seam;             /* as in the program; shared_buffer.h */
    struct emu_reach *reaches; /* by home: all of the memory, then each buffer */
    bool explicit_cluster;
    const uint8_t *parameters;
    uint64_t cluster_count, grid_number;
    uint64_t order_seed; /* of the launch, where options->seed is not 0 */
    _Atomic uint64_t next_cluster;
    uint32_t resident; /* clusters that may be live on one worker */
    uint32_t worker_count;
    struct emu_worker *workers;
    pthread_mutex_t lock;
    _Atomic bool stop;
    struct ptxgen_emulator_fault fault;
    bool faulted;
    bool out_of_memory; /* of the host: no fault of the kernel */
    uint64_t steps, lane_steps;
    uint32_t checks;
    bool proxies;                               /* PTXGEN_CHECK_PROXIES has something to look at */
    struct emu_order order;                     /* between clusters */
    _Atomic(struct emu_race_page *) race_pages; /* marks of global memory */
    bool follows;              /* kernels ahead may still run, until griddepcontrol.wait */
    _Atomic bool leaves_early; /* and do so when kernels behind begin */
};

/* Runs a launch to its end. On a fault, launch->fault says what happened. */
ptxgen_status emu_launch_run(struct emu_launch *launch, ptxgen_error *err);

/* fault.c: records what went wrong and leaves the worker. */
__attribute__((cold)) _Noreturn void emu_fault(struct emu_warp *warp, const struct emu_insn *insn,
                                               int lane, enum ptxgen_emulator_check check,
                                               const char *format, ...) PTXGEN_PRINTF(5, 6);
__attribute__((cold)) _Noreturn void
emu_fault_at(struct emu_warp *warp, const struct emu_insn *insn, int lane,
             enum ptxgen_emulator_check check, uint64_t address, const char *format, ...)
    PTXGEN_PRINTF(6, 7);
void emu_fault_record(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                      enum ptxgen_emulator_check check, bool has_address, uint64_t address,
                      const char *sentence);
/* The host has no memory left: the launch stops, and that is no fault of the kernel. */
void emu_launch_out_of_memory(struct emu_launch *launch);
__attribute__((cold)) _Noreturn void emu_out_of_memory(struct emu_warp *warp);

/* warp.c */
void emu_warp_start(struct emu_warp *warp);
void emu_warp_run(struct emu_warp *warp, uint32_t budget);
bool emu_warp_runnable(const struct emu_warp *warp);
void emu_warp_retire(struct emu_warp *warp, uint32_t mask);
void emu_split(struct emu_warp *warp, uint32_t mask, uint32_t pc);
/* Counts what looks like waiting for another thread: a read, or (insn NULL) a sleep. */
void emu_poll(struct emu_warp *warp, const struct emu_insn *insn, uint64_t address);

/* special.c */
void emu_fill_specials(struct emu_warp *warp);
void emu_fill_clocks(struct emu_warp *warp);

/* exec_barrier.c: the warp's lanes of `mask` have exited, which may complete a barrier. */
void emu_barriers_after_exit(struct emu_warp *warp, uint32_t mask);

/* Something has changed that others may wait for. */
static inline void emu_progress(struct emu_worker *worker)
{
    uint64_t before = atomic_load_explicit(&worker->progress, memory_order_relaxed);
    atomic_store_explicit(&worker->progress, before + 1, memory_order_relaxed);
}

/* Something has happened again that changes nothing by itself: no progress to a look. */
static inline void emu_go_on(struct emu_worker *worker)
{
    if (!worker->look.on)
        emu_progress(worker);
}

static inline uint8_t *emu_row(struct emu_warp *warp, struct emu_src source)
{
    return warp->bank[source.bank] + source.offset;
}

static inline uint32_t emu_predicate(const struct emu_warp *warp, struct emu_src source)
{
    uint32_t mask = *(const uint32_t *)(const void *)(warp->bank[source.bank] + source.offset);
    return source.negated ? ~mask : mask;
}

static inline void emu_set_predicate(struct emu_warp *warp, struct emu_src target, uint32_t value,
                                     uint32_t mask)
{
    uint32_t *row = (uint32_t *)(void *)emu_row(warp, target);
    *row = (*row & ~mask) | (value & mask);
}

/* An integer of any register width, zero-extended. */
static inline uint64_t emu_lane_value(struct emu_warp *warp, struct emu_src source, int lane)
{
    const uint8_t *row = emu_row(warp, source);
    switch (source.bytes) {
    case 2: return ((const uint16_t *)(const void *)row)[lane];
    case 4: return ((const uint32_t *)(const void *)row)[lane];
    case 8: return ((const uint64_t *)(const void *)row)[lane];
    default: return *(const uint32_t *)(const void *)row >> lane & 1;
    }
}

static inline void emu_set_lane(struct emu_warp *warp, struct emu_src target, int lane,
                                uint64_t value)
{
    uint8_t *row = emu_row(warp, target);
    switch (target.bytes) {
    case 2: ((uint16_t *)(void *)row)[lane] = (uint16_t)value; break;
    case 4: ((uint32_t *)(void *)row)[lane] = (uint32_t)value; break;
    case 8: ((uint64_t *)(void *)row)[lane] = value; break;
    default: emu_set_predicate(warp, target, value ? ~0u : 0, 1u << lane);
    }
}

/* Runs `body` for every lane of `mask`; the full mask gets a loop that vectorises. */
#define EMU_EACH_LANE(mask, body)                                                                  \
    do {                                                                                           \
        if ((mask) == 0xffffffffu) {                                                               \
            for (int l = 0; l < 32; l++) {                                                         \
                body                                                                               \
            }                                                                                      \
        } else {                                                                                   \
            for (int l = 0; l < 32; l++)                                                           \
                if ((mask) >> l & 1) {                                                             \
                    body                                                                           \
                }                                                                                  \
        }                                                                                          \
    } while (0)

#endif
