/* SPDX-License-Identifier: Apache-2.0 */
/* mbarrier objects (ISA "Asynchronous barrier"), kept beside the shared memory that holds them. */
#ifndef PTXGEN_EMULATOR_MBARRIER_H
#define PTXGEN_EMULATOR_MBARRIER_H

#include "src/emulator/machine.h"

struct emu_mbarrier {
    uint32_t offset; /* in shared memory */
    bool live;
    uint32_t expected, pending; /* arrivals: of a phase, still due in this one */
    int32_t transactions;       /* bytes still due */
    uint32_t phase;
    uint32_t fruitless;    /* waits in this phase that did not succeed */
    emu_clock clock, done; /* of this phase's arrivals; of the last complete phase: one block */
    uint32_t epochs;
    uint32_t init_thread, init_epoch, line; /* who initialised it, when, by which line */
    uint32_t announced; /* the epoch that fence.mbarrier_init ended; 0: none did */
};

/* The live object at an address, which `base` holds or points near to, in whichever CTA; a fault
 * when there is none. */
struct emu_mbarrier *emu_mbarrier_at(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                     enum emu_space space, struct emu_src base, uint64_t address,
                                     struct emu_cta **owner);
struct emu_mbarrier *emu_mbarrier_find(struct emu_cta *cta, uint32_t offset);

void emu_mbarriers_free(struct emu_cta *cta);

void emu_mbarrier_arrive(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                         struct emu_mbarrier *mbarrier, uint32_t count);
void emu_mbarrier_transact(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                           struct emu_mbarrier *mbarrier, int64_t bytes);

#endif
