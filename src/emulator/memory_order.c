/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/memory_order.h"
#include "src/emulator/shared_memory.h"

#include <string.h>

void emu_fence(struct emu_warp *warp)
{
    struct emu_cluster *cluster = warp->cta->cluster;
    emu_clock_acquire(warp, cluster->fences);
    if (warp->fenced)
        memcpy(warp->fenced, warp->clock, cluster->epochs * sizeof *warp->fenced);
    emu_clock_release(warp, cluster->fences);
}

void emu_after_strong_read(struct emu_warp *warp, const struct emu_insn *insn, uint64_t address)
{
    if (insn->op == ORDER_ACQUIRE || insn->op == ORDER_BOTH)
        emu_clock_acquire(warp, warp->cta->cluster->fences);
    emu_poll(warp, insn, address);
}

void emu_before_strong_write(struct emu_warp *warp, const struct emu_insn *insn)
{
    if (insn->op == ORDER_RELEASE || insn->op == ORDER_BOTH)
        emu_clock_release(warp, warp->cta->cluster->fences);
}
