/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Livelocks: threads that spin for ever. Every so many steps a worker looks at its warps for a
 * while; it does nothing else then than it would have done.
 *
 * As long as nothing changes that a thread can read, what lanes do next depends on where they stand
 * and on their registers alone: when they stand there a second time with the same registers, they
 * go round for ever. When that is so of all threads that ran, and all others wait for them, nothing
 * will change any more, in whatever order the warps run. Stores of what is there already and
 * arrivals at CTA and cluster barriers change nothing by themselves.
 *
 * Not seen are loops that go on changing memory (a lock taken and given back, a phase of an
 * mbarrier completed, a copy made) and those whose registers never repeat (counted tries, clocks):
 * these may end. Of lanes that exchange values by shuffles, votes or barrier.red in the loop each
 * fragment is held to repeat by itself, which is taken for all of them repeating together. Where
 * several workers share a launch whose CTAs communicate, nothing is looked for.
 */
#ifndef PTXGEN_EMULATOR_LIVELOCK_H
#define PTXGEN_EMULATOR_LIVELOCK_H

#include "src/emulator/machine.h"

struct emu_watch {
    uint32_t look;            /* by its number; others have left the rest behind */
    uint32_t left;            /* steps in which it has to repeat */
    uint32_t moved, repeated; /* lanes that ran since; that came back to where they were */
    uint32_t from[32];        /* where each lane stood */
    uint32_t carry;
    /* Of the fragment whose lowest lane it is: the instructions run since, what it reads. */
    uint32_t low[32], high[32];
    const struct emu_insn *read[32];
    uint64_t address[32];
    uint8_t registers[];
};

/* Changes made so far by all workers. */
uint64_t emu_launch_progress(const struct emu_launch *launch);

/* The first look of a launch is put off; later ones by emu_look. */
void emu_look_later(struct emu_worker *worker);

/* All seem to wait: the next look, if any, is not put off. */
void emu_look_soon(struct emu_worker *worker);

/* After each round: begins and ends looks; reports a livelock, or options.max_steps passed. */
void emu_look(struct emu_worker *worker);

/* Before a warp's turn in a look: false when it cannot be watched. */
bool emu_watch_begin(struct emu_warp *warp);

/* Before each instruction of a warp that is watched. */
void emu_watch_step(struct emu_warp *warp);

/* The current fragment waits for what is there. */
void emu_watch_poll(struct emu_warp *warp, const struct emu_insn *insn, uint64_t address);

/* What is known of a warp by the look under way; NULL: nothing. */
const struct emu_watch *emu_watch_of(const struct emu_warp *warp);

#endif
