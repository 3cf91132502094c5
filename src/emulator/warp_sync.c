/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/warp_sync.h"

static uint32_t fragment_members(struct emu_warp *warp, const struct emu_insn *insn, int lane)
{
    return (uint32_t)emu_lane_value(warp, insn->s[EMU_SOURCES - 1], lane);
}

static bool park(struct emu_warp *warp)
{
    warp->current->state = FRAGMENT_COLLECTS;
    return false;
}

/* ".aligned requires that all threads in the warp execute the same instruction". */
static bool collect_aligned(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    if (mask == warp->lanes)
        return true;
    if (!(warp->cta->cluster->launch->checks & PTXGEN_CHECK_DIVERGENCE) && mask == warp->live)
        return true;
    uint32_t gone = warp->lanes & ~warp->live;
    if (gone)
        emu_fault(warp, insn, __builtin_ctz(gone), PTXGEN_CHECK_DIVERGENCE,
                  "the instruction is .aligned: every thread of the warp must execute it, but "
                  "lanes 0x%08x have exited",
                  gone);
    if (mask != warp->current->mask)
        emu_fault(warp, insn, __builtin_ctz(warp->current->mask & ~mask), PTXGEN_CHECK_DIVERGENCE,
                  "the instruction is .aligned: every thread of the warp must execute it, but its "
                  "guard is false in lanes 0x%08x",
                  warp->current->mask & ~mask);
    return park(warp);
}

/* "The executing thread must be in membermask; it waits for all others there" (".sync"). */
static bool collect_members(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint32_t needed = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint32_t members = fragment_members(warp, insn, lane);
        if (!(members >> lane & 1))
            emu_fault(warp, insn, lane, PTXGEN_CHECK_DIVERGENCE,
                      "lane %d executes, but membermask 0x%08x does not name it", lane, members);
        needed |= members;
    }
    needed &= warp->live;
    if ((needed & ~mask) == 0)
        return true;
    uint32_t off = needed & warp->current->mask & ~mask;
    if (off)
        emu_fault(warp, insn, __builtin_ctz(off), PTXGEN_CHECK_DIVERGENCE,
                  "membermask names lanes 0x%08x, whose guard is false", off);
    return park(warp);
}

bool emu_collect_lanes(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    return insn->collect == COLLECT_ALIGNED ? collect_aligned(warp, insn, mask)
                                            : collect_members(warp, insn, mask);
}

/* Lanes wait at different bar.warp.sync of one mask: they count as one barrier. */
static bool free_warp_barriers(struct emu_warp *warp)
{
    const struct emu_insn *code = warp->cta->cluster->launch->program->code;
    uint32_t together = 0, members = 0;
    for (uint32_t i = 0; i < warp->fragment_count; i++) {
        const struct emu_fragment *fragment = &warp->fragments[i];
        const struct emu_insn *insn = &code[fragment->pc];
        if (fragment->state != FRAGMENT_COLLECTS || insn->collect != COLLECT_MEMBERS ||
            !insn->has_value)
            continue;
        members = fragment_members(warp, insn, __builtin_ctz(fragment->mask));
        together |= fragment->mask;
    }
    members &= warp->live;
    if (!members || (members & ~together))
        return false;
    for (uint32_t i = 0; i < warp->fragment_count; i++) {
        struct emu_fragment *fragment = &warp->fragments[i];
        if (fragment->state != FRAGMENT_COLLECTS || !code[fragment->pc].has_value ||
            (fragment->mask & ~members))
            continue;
        fragment->state = FRAGMENT_RUNS;
        fragment->pc++;
    }
    warp->clock[warp->number]++;
    return true;
}

bool emu_resolve_stall(struct emu_warp *warp)
{
    const struct emu_insn *code = warp->cta->cluster->launch->program->code;
    const struct emu_fragment *stuck = NULL;
    for (uint32_t i = 0; i < warp->fragment_count; i++) {
        if (warp->fragments[i].state != FRAGMENT_COLLECTS)
            return false;
        if (!stuck || warp->fragments[i].pc < stuck->pc)
            stuck = &warp->fragments[i];
    }
    if (!stuck)
        return false;
    if (free_warp_barriers(warp))
        return true;
    const struct emu_insn *insn = &code[stuck->pc];
    uint32_t others = warp->live & ~stuck->mask;
    const struct emu_fragment *other = &warp->fragments[0];
    if (other == stuck && warp->fragment_count > 1)
        other = &warp->fragments[1];
    emu_fault(warp, insn, __builtin_ctz(stuck->mask), PTXGEN_CHECK_DIVERGENCE,
              "lanes 0x%08x wait here for lanes 0x%08x, which wait elsewhere (line %u)",
              stuck->mask, others, code[other->pc].line);
}
