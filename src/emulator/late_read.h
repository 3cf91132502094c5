/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma reads its operands in shared memory until a warp of the warpgroup has waited for it. The
 * words that it reads are marked with the epoch of the warpgroup's first warp; here is kept when
 * the wgmmas of an epoch were waited for. ISA "wgmma.mma_async", "wgmma.wait_group".
 */
#ifndef PTXGEN_EMULATOR_LATE_READ_H
#define PTXGEN_EMULATOR_LATE_READ_H

#include "src/emulator/shared_memory.h"

/* The warpgroup that begins at `first` starts a wgmma; false without memory. */
bool emu_late_begin(struct emu_warp *first);

/* The warp has waited for all groups of wgmmas but the newest `keep`. */
void emu_late_done(struct emu_warp *warp, uint32_t keep);

/* Whether the wait for what left the mark is ordered before what `warp` does now. */
bool emu_late_is_ordered(const struct emu_warp *warp, const struct emu_mark *read);

#endif
