/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory of a CTA with its shadow: for each byte whether it was written (or is the target
 * of an asynchronous copy under way), for each word who read and wrote it last and when. "When"
 * is the accessing warp's epoch; barriers, mbarriers and fences carry epochs from warp to warp
 * (vector clocks), so an access is ordered after another exactly if its warp knows the other's
 * epoch.
 */
#ifndef PTXGEN_EMULATOR_SHARED_MEMORY_H
#define PTXGEN_EMULATOR_SHARED_MEMORY_H

#include "src/emulator/machine.h"

enum emu_byte_state {
    BYTE_UNWRITTEN = 0,
    BYTE_WRITTEN = 1,
    BYTE_PENDING = 2, /* an asynchronous copy will write it */
    BYTE_SOURCE = 3,  /* written, and an asynchronous copy will still read it */
    BYTE_PADDING = 4, /* between two buffers */
    BYTE_OBJECT = 5,  /* of an mbarrier object */
    BYTE_REDUCED = 8  /* plus the number of asynchronous reductions that will change it */
};

/* Kinds of accesses; reads, and then writes, stand in the order of what they demand of others. */
enum emu_shared_kind {
    SHARED_STRONG_READ, /* ld.relaxed, .acquire, .volatile */
    SHARED_READ,        /* ld, ldmatrix */
    SHARED_BULK_READ,   /* of a bulk or tensor copy, which lasts until it is waited for */
    SHARED_WGMMA_READ,  /* the same of wgmma */
    SHARED_ATOMIC,      /* atom, red, red.async, cp.reduce.async.bulk */
    SHARED_STRONG_WRITE,
    SHARED_WRITE, /* st, stmatrix, mbarrier.init, mbarrier.inval */
    SHARED_COPY,  /* cp.async, bulk and tensor copies, st.async, until they are waited for */
    SHARED_KINDS
};

/* Of a first access and a second one to the same bytes. */
enum emu_verdict {
    VERDICT_FREE,   /* no race */
    VERDICT_ORDER,  /* a race unless ordered */
    VERDICT_STRONG, /* a race unless ordered or morally strong (ISA "Memory Consistency Model") */
    VERDICT_WAIT    /* a fault until the first is waited for, then a race unless ordered */
};

/* The first access chooses the row. */
extern const uint8_t emu_shared_verdicts[SHARED_KINDS][SHARED_KINDS];

/* The last access of its kind to a word of 4 bytes. Threads are those of the cluster's warps. */
struct emu_mark {
    uint32_t epoch; /* 0: never */
    union {
        struct {
            uint16_t thread;
            uint8_t bytes;     /* bit per byte */
            uint8_t kind : 3;  /* enum emu_shared_kind */
            uint8_t scope : 3; /* of a strong access */
            bool several : 1;  /* accesses of different bytes */
        };
        uint32_t who; /* all of it */
    };
};

/* Every word of a CTA's shared memory, part by part, so that many are looked at in one go. */
struct emu_marks {
    uint32_t *epoch, *who;
};
struct emu_cells {
    struct emu_marks writes, reads;
    uint32_t *readers; /* warps that read the word in the epoch of its last read */
};
enum { EMU_CELL_BYTES = 5 * sizeof(uint32_t) };

static inline struct emu_mark emu_mark_at(const struct emu_marks *marks, uint32_t word)
{
    return (struct emu_mark){.epoch = marks->epoch[word], .who = marks->who[word]};
}

struct emu_shared_access {
    struct emu_warp *warp;
    const struct emu_insn *insn;
    int lane;
    uint32_t bytes;
    enum emu_shared_kind kind;
    enum emu_sync_scope scope; /* of a strong access */
    bool store;                /* by st: no race if it changes nothing */
    const uint8_t *data;       /* where the access begins */
};

/* Whether what `thread` did in `epoch` is ordered before what `lane` of the warp does now; true
 * within a warp too when its races are not looked for. */
static inline bool emu_is_ordered(const struct emu_warp *warp, int lane, uint32_t thread,
                                  uint32_t epoch)
{
    uint32_t other = thread / 32;
    if (other == warp->number)
        return (int)(thread % 32) == lane || epoch < warp->clock[other] ||
               !(warp->cta->cluster->launch->checks & PTXGEN_CHECK_WARP_RACES);
    return epoch <= warp->clock[other];
}

/* Faults on an access that is unordered with an earlier one, and records it. */
void emu_shared_track(const struct emu_shared_access *access, struct emu_cta *owner,
                      uint32_t offset);

/* ---- the order of events ---- */
void emu_clock_join(emu_clock into, const uint32_t *from, uint32_t epochs);
/* Publishes what the warp did into `to`, and starts a new epoch. */
void emu_clock_release(struct emu_warp *warp, emu_clock to);
/* Learns what `from` holds. */
void emu_clock_acquire(struct emu_warp *warp, const uint32_t *from);
/* Sets `others` anew. */
void emu_clock_look(struct emu_warp *warp);

#endif
