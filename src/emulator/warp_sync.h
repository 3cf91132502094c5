/* SPDX-License-Identifier: Apache-2.0 */
/* Getting the lanes of a warp together for instructions that need them at one point. */
#ifndef PTXGEN_EMULATOR_WARP_SYNC_H
#define PTXGEN_EMULATOR_WARP_SYNC_H

#include "src/emulator/machine.h"

/*
 * True when the lanes that `insn` names are all in the current fragment and under `mask`;
 * else the fragment is parked (and false), or it is a fault because they cannot come.
 */
bool emu_collect_lanes(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask);

/* All fragments are parked: frees some if the ISA lets it, or reports the divergence. */
bool emu_resolve_stall(struct emu_warp *warp);

/* A fault when the lane's value of a register that was never written was to come by shfl. */
void emu_shfl_without_source(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                             uint32_t slot);

#endif
