/* SPDX-License-Identifier: Apache-2.0 */
/* Counting: sectors of global memory, bank conflicts of shared memory, instructions by class. */
#ifndef PTXGEN_EMULATOR_PROFILE_H
#define PTXGEN_EMULATOR_PROFILE_H

#include "src/emulator/machine.h"

void emu_count_access(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask,
                      enum emu_space space, const uint64_t addresses[32], uint32_t bytes);

/* The bytes of a bulk copy, which follow each other in global memory. */
void emu_count_run(struct emu_warp *warp, const struct emu_insn *insn, uint64_t address,
                   uint32_t bytes);

/* Counts of all launches of a context so far. */
struct emu_tally {
    struct ptxgen_emulator_line *lines;
    size_t count, capacity;
};

/* Adds a launch's counts; false when memory runs out. */
bool emu_tally_add(struct emu_tally *tally, const struct emu_launch *launch);
void emu_tally_free(struct emu_tally *tally);

#endif
