/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/late_read.h"

#include <stdlib.h>

enum { GROUP_WARPS = 4, KEPT = 64 };

/* The wgmmas of one epoch; `group` is that of the newest. Each commit begins an epoch. */
struct late {
    uint32_t epoch, group;
    uint32_t done[GROUP_WARPS]; /* the warps' epochs when they had waited; 0: not yet */
};

struct emu_late_reads {
    struct late kept[KEPT]; /* by epoch; older ones count as waited for */
};

bool emu_late_begin(struct emu_warp *first)
{
    uint32_t epoch = first->clock[first->number];
    if (!first->late && !(first->late = calloc(1, sizeof *first->late)))
        return false;
    first->late->kept[epoch % KEPT] = (struct late){.epoch = epoch, .group = first->tile_groups};
    return true;
}

void emu_late_done(struct emu_warp *warp, uint32_t keep)
{
    uint32_t within = warp->index % GROUP_WARPS;
    struct emu_late_reads *late = (warp - within)->late;
    for (uint32_t i = 0; late && i < KEPT; i++) {
        struct late *at = &late->kept[i];
        bool waited = at->group < warp->tile_groups && warp->tile_groups - at->group > keep;
        if (waited && !at->done[within])
            at->done[within] = warp->clock[warp->number];
    }
}

bool emu_late_is_ordered(const struct emu_warp *warp, const struct emu_mark *read)
{
    uint32_t number = read->thread / 32;
    const struct emu_cta *cta = &warp->cta->cluster->ctas[number / EMU_MAX_WARPS];
    const struct emu_late_reads *late = cta->warps[number % EMU_MAX_WARPS].late;
    const struct late *at = late ? &late->kept[read->epoch % KEPT] : NULL;
    if (!at || at->epoch != read->epoch)
        return true;
    for (uint32_t w = 0; w < GROUP_WARPS; w++)
        if (at->done[w] && at->done[w] <= warp->clock[number + w])
            return true;
    return false;
}
