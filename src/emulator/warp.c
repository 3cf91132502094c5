/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter's loop. A warp runs one fragment at a time: the one that gave way least often,
 * and among these the one at the lowest instruction, so that fragments wait at the point where
 * structured code joins. A fragment that polls memory gives way, so that a lane holding a lock
 * gets to release it while its neighbours spin.
 */
#include "src/emulator/global_order.h"
#include "src/emulator/host_vector.h"
#include "src/emulator/livelock.h"
#include "src/emulator/warp_sync.h"

#include <string.h>

enum { POLLS_BEFORE_GIVING_WAY = 16, STEPS_BEFORE_GIVING_WAY = 1 << 17 };

void emu_warp_start(struct emu_warp *warp)
{
    const struct emu_launch *launch = warp->cta->cluster->launch;
    uint32_t first = warp->index * 32, left = launch->threads - first;
    warp->lanes = warp->live = left >= 32 ? 0xffffffffu : (1u << left) - 1;
    warp->fragment_count = 1;
    warp->fragments[0] = (struct emu_fragment){.pc = 0, .mask = warp->lanes};
    warp->current = &warp->fragments[0];
    emu_fill_specials(warp);
}

/* Moves the lanes of `mask` from the current fragment to a new one at `pc`. */
void emu_split(struct emu_warp *warp, uint32_t mask, uint32_t pc)
{
    struct emu_fragment *from = warp->current;
    from->mask &= ~mask;
    if (from->mask == 0) {
        from->mask = mask;
        from->pc = pc;
        return;
    }
    struct emu_fragment *made = &warp->fragments[warp->fragment_count++];
    *made = (struct emu_fragment){.pc = pc, .mask = mask, .age = from->age};
}

static void drop_fragment(struct emu_warp *warp, uint32_t index)
{
    struct emu_fragment *last = &warp->fragments[--warp->fragment_count];
    struct emu_fragment *gone = &warp->fragments[index];
    if (warp->current == last)
        warp->current = gone;
    *gone = *last;
}

/* Takes exited lanes out of the current fragment; parked ones look again at who is left. */
void emu_warp_retire(struct emu_warp *warp, uint32_t mask)
{
    if (warp->cta->cluster->launch->follows)
        emu_order_launch_dependents(warp);
    warp->live &= ~mask;
    warp->cta->live_threads -= (uint32_t)__builtin_popcount(mask);
    emu_progress(warp->worker);
    warp->current->mask &= ~mask;
    for (uint32_t i = 0; i < warp->fragment_count; i++)
        if (warp->fragments[i].state == FRAGMENT_COLLECTS)
            warp->fragments[i].state = FRAGMENT_RUNS;
    if (warp->current->mask == 0) {
        drop_fragment(warp, (uint32_t)(warp->current - warp->fragments));
        warp->current = NULL;
    }
    emu_barriers_after_exit(warp, mask);
}

static bool can_join(const struct emu_fragment *fragment)
{
    return fragment->state == FRAGMENT_RUNS || fragment->state == FRAGMENT_COLLECTS;
}

static void join_fragments(struct emu_warp *warp)
{
    for (uint32_t a = 0; a + 1 < warp->fragment_count; a++) {
        struct emu_fragment *kept = &warp->fragments[a];
        for (uint32_t b = a + 1; b < warp->fragment_count;) {
            struct emu_fragment *other = &warp->fragments[b];
            if (kept->pc != other->pc || !can_join(kept) || !can_join(other)) {
                b++;
                continue;
            }
            kept->mask |= other->mask;
            kept->age = kept->age < other->age ? kept->age : other->age;
            kept->state = FRAGMENT_RUNS;
            kept->polls = 0;
            warp->current = warp->current == other ? kept : warp->current;
            drop_fragment(warp, b);
        }
    }
}

/* The fragment to run next; NULL when all are parked. */
static struct emu_fragment *choose_fragment(struct emu_warp *warp)
{
    if (warp->fragment_count > 1)
        join_fragments(warp);
    struct emu_fragment *best = NULL;
    for (uint32_t i = 0; i < warp->fragment_count; i++) {
        struct emu_fragment *fragment = &warp->fragments[i];
        if (fragment->state != FRAGMENT_RUNS)
            continue;
        if (!best || fragment->age < best->age ||
            (fragment->age == best->age && fragment->pc < best->pc))
            best = fragment;
    }
    return best;
}

static void give_way(struct emu_warp *warp)
{
    warp->current->polls = 0;
    if (warp->fragment_count > 1)
        warp->current->age++;
}

void emu_poll(struct emu_warp *warp, const struct emu_insn *insn, uint64_t address)
{
    warp->polls++;
    if (insn) {
        if (address != warp->last_poll_address)
            warp->seen_polls = warp->polls; /* it does not wait for one place */
        warp->last_poll = insn;
        warp->last_poll_address = address;
        emu_watch_poll(warp, insn, address);
    }
    if (++warp->current->polls % POLLS_BEFORE_GIVING_WAY == 0) {
        warp->yields = true;
        give_way(warp);
    }
}

bool emu_warp_runnable(const struct emu_warp *warp)
{
    for (uint32_t i = 0; i < warp->fragment_count; i++)
        if (warp->fragments[i].state == FRAGMENT_RUNS)
            return true;
    return false;
}

static struct emu_str slot_name(const struct emu_warp *warp, uint32_t slot)
{
    return warp->cta->cluster->launch->program->slots[slot].name;
}

static void check_reads(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    for (uint32_t i = 0; i < insn->read_count; i++) {
        uint32_t missing = mask & ~warp->written[insn->reads[i]];
        if (!missing)
            continue;
        emu_shfl_without_source(warp, insn, __builtin_ctz(missing), insn->reads[i]);
        struct emu_str name = slot_name(warp, insn->reads[i]);
        emu_fault(warp, insn, __builtin_ctz(missing), PTXGEN_CHECK_REGISTERS,
                  "register %.*s is read, but was never written", (int)name.length, name.text);
    }
}

static inline void mark_writes(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    for (uint32_t i = 0; i < insn->write_count; i++)
        warp->written[insn->writes[i]] |= mask;
}

static void count(struct emu_warp *warp, uint32_t pc, uint32_t mask)
{
    struct emu_counters *counters = &warp->worker->counters[pc];
    counters->warps++;
    counters->lanes += (uint32_t)__builtin_popcount(mask);
}

EMU_INLINE uint32_t guarded(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask,
                            bool check)
{
    if (insn->guard.absent)
        return mask;
    if (check && insn->guard.slot != EMU_NO_SLOT && (mask & ~warp->written[insn->guard.slot]))
        check_reads(warp, insn, mask);
    return mask & emu_predicate(warp, insn->guard);
}

/* What a turn looks at; constants where the loop is compiled for them. */
struct looks {
    bool reads;   /* registers that are read have been written */
    bool counts;  /* the launch is profiled */
    bool watched; /* a look for livelocks is under way, and the warp can be watched */
};

/* One instruction of the current fragment. */
EMU_INLINE void step(struct emu_warp *warp, struct emu_worker *worker, const struct emu_insn *code,
                     struct looks looks)
{
    struct emu_fragment *fragment = warp->current;
    const struct emu_insn *insn = &code[fragment->pc];
    uint32_t mask = guarded(warp, insn, fragment->mask, looks.reads);
    if (insn->reads_clock)
        emu_fill_clocks(warp);
    if (insn->flow == FLOW_COLLECT && mask && !emu_collect_lanes(warp, insn, mask))
        return;
    if (looks.reads)
        check_reads(warp, insn, mask);
    if (looks.counts)
        count(warp, fragment->pc, mask);
    worker->steps++;
    worker->lane_steps += mask == 0xffffffffu ? 32u : (uint32_t)__builtin_popcount(mask);
    if (insn->flow == FLOW_CONTROL || insn->flow == FLOW_BRANCH) {
        insn->exec(warp, insn, mask);
        return;
    }
    if (mask) {
        insn->exec(warp, insn, mask);
        mark_writes(warp, insn, mask);
    }
    fragment->pc++;
}

/* After an instruction: the fragment to run next. */
static void go_on(struct emu_warp *warp)
{
    if (warp->current && ++warp->steps_alone % STEPS_BEFORE_GIVING_WAY == 0)
        give_way(warp);
    warp->current = choose_fragment(warp);
    if (!warp->current && warp->fragment_count > 0 && emu_resolve_stall(warp))
        warp->current = choose_fragment(warp);
}

EMU_INLINE void run(struct emu_warp *warp, uint32_t budget, struct looks looks)
{
    struct emu_worker *worker = warp->worker;
    const struct emu_insn *code = worker->launch->program->code;
    while (warp->current && budget-- > 0 && !warp->yields) {
        if (looks.watched)
            emu_watch_step(warp);
        step(warp, worker, code, looks);
        if (warp->fragment_count != 1 || !warp->current || warp->current->state != FRAGMENT_RUNS)
            go_on(warp);
    }
}

void emu_warp_run(struct emu_warp *warp, uint32_t budget)
{
    const struct emu_worker *worker = warp->worker;
    const struct looks looks = {.reads = worker->launch->checks & PTXGEN_CHECK_REGISTERS,
                                .counts = worker->counters,
                                .watched = worker->look.on && emu_watch_begin(warp)};
    warp->yields = false;
    warp->current = choose_fragment(warp);
    if (looks.counts || looks.watched)
        run(warp, budget, looks);
    else if (looks.reads)
        run(warp, budget, (struct looks){.reads = true});
    else
        run(warp, budget, (struct looks){0});
}
