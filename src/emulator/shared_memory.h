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
    BYTE_SOURCE = 3   /* written, and an asynchronous copy will still read it */
};

/* One word of 4 bytes. Threads are numbered within the CTA; 0 epochs mean "never". */
struct emu_cell {
    uint32_t write_epoch, read_epoch;
    uint32_t read_warps; /* warps that read it in read_epoch */
    uint16_t write_thread, read_thread;
    uint8_t write_bytes, read_bytes; /* bit per byte */
    bool write_strong, read_strong;  /* atomics and other strong accesses do not race together */
};

struct emu_shared_access {
    struct emu_warp *warp;
    const struct emu_insn *insn;
    int lane;
    uint32_t bytes;
    bool write, strong;
    bool store;          /* by st: no race if it changes nothing */
    const uint8_t *data; /* where the access begins */
};

/* Faults on an access that is unordered with an earlier one, and records it. */
void emu_shared_track(const struct emu_shared_access *access, struct emu_cta *owner,
                      uint32_t offset);

/* ---- the order of events ---- */
void emu_clock_join(struct emu_clock *into, const struct emu_clock *from, uint32_t own);
/* Publishes what the warp did into `to`, and starts a new epoch. */
void emu_clock_release(struct emu_warp *warp, struct emu_clock *to);
/* Learns what `from` holds. */
void emu_clock_acquire(struct emu_warp *warp, const struct emu_clock *from);

#endif
