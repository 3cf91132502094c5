/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/livelock.h"
#include "src/emulator/access.h"
#include "src/emulator/cluster.h"

#include <stdlib.h>
#include <string.h>

enum { PAUSE = 1 << 17, FIRST_WINDOW = 512, PAUSE_WINDOWS = 64, LAST_LOOK = 1 << 14 };

uint64_t emu_launch_progress(const struct emu_launch *launch)
{
    uint64_t sum = launch->next_cluster;
    for (uint32_t i = 0; i < launch->worker_count; i++)
        sum += atomic_load_explicit(&launch->workers[i].progress, memory_order_relaxed);
    return sum;
}

static void end_look(struct emu_look *look, uint64_t next, uint32_t window)
{
    look->on = false;
    look->next = next;
    look->window = window;
}

/* A warp has not come back to where it was: a longer look may show that it does. */
static void give_up(struct emu_worker *worker)
{
    struct emu_look *look = &worker->look;
    uint64_t pause = (uint64_t)PAUSE_WINDOWS * look->window;
    end_look(look, worker->steps + (pause > PAUSE ? pause : PAUSE),
             look->window < UINT32_MAX / 2 ? 2 * look->window : look->window);
}

/* ---- warps ---- */

const struct emu_watch *emu_watch_of(const struct emu_warp *warp)
{
    const struct emu_look *look = &warp->worker->look;
    return look->on && warp->watch && warp->watch->look == look->number ? warp->watch : NULL;
}

static size_t register_bytes(const struct emu_warp *warp)
{
    return warp->cta->cluster->launch->program->file_bytes;
}

bool emu_watch_begin(struct emu_warp *warp)
{
    struct emu_look *look = &warp->worker->look;
    if (!look->last && warp->worker->progress != look->own) {
        end_look(look, warp->worker->steps + PAUSE, FIRST_WINDOW);
        return false;
    }
    if (!warp->watch)
        warp->watch = calloc(1, sizeof *warp->watch + register_bytes(warp));
    struct emu_watch *watch = warp->watch;
    if (!watch || watch->look == look->number)
        return watch != NULL;
    memset(watch, 0, sizeof *watch);
    watch->look = look->number;
    watch->left = look->window;
    watch->carry = warp->carry;
    memcpy(watch->registers, warp->bank[0], register_bytes(warp));
    for (uint32_t i = 0; i < warp->fragment_count; i++)
        for (uint32_t left = warp->fragments[i].mask; left; left &= left - 1)
            watch->from[__builtin_ctz(left)] = warp->fragments[i].pc;
    memset(watch->low, 0xff, sizeof watch->low);
    return true;
}

void emu_watch_poll(struct emu_warp *warp, const struct emu_insn *insn, uint64_t address)
{
    if (!emu_watch_of(warp))
        return;
    int first = __builtin_ctz(warp->current->mask);
    warp->watch->read[first] = insn;
    warp->watch->address[first] = address;
}

static bool stands_where_it_was(const struct emu_watch *watch, uint32_t pc, uint32_t mask)
{
    for (uint32_t left = mask; left; left &= left - 1)
        if (watch->from[__builtin_ctz(left)] != pc)
            return false;
    return true;
}

static bool same_registers(const struct emu_warp *warp, uint32_t mask)
{
    const struct emu_program *program = warp->cta->cluster->launch->program;
    const uint8_t *then = warp->watch->registers, *now = warp->bank[0];
    if ((warp->carry ^ warp->watch->carry) & mask)
        return false;
    if (mask == 0xffffffffu)
        return memcmp(then, now, register_bytes(warp)) == 0;
    for (size_t i = 0; i < program->slot_count; i++) {
        const struct emu_slot *slot = &program->slots[i];
        uint32_t bits = emu_types[slot->type].bits, old, new;
        uint32_t bytes = slot->type == T_pred ? 0 : bits < 16 ? 2 : bits / 8;
        if (!bytes) {
            memcpy(&old, then + slot->offset, 4);
            memcpy(&new, now + slot->offset, 4);
            if ((old ^ new) & mask)
                return false;
        }
        for (uint32_t left = bytes ? mask : 0; left; left &= left - 1) {
            size_t at = slot->offset + (size_t)__builtin_ctz(left) * bytes;
            if (memcmp(then + at, now + at, bytes) != 0)
                return false;
        }
    }
    return true;
}

/* What the fragment reads is what it waits for: rather what it polls. */
static void note_read(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask,
                      uint32_t first)
{
    struct emu_watch *watch = warp->watch;
    if (!insn->guard.absent)
        mask &= emu_predicate(warp, insn->guard);
    bool memory = insn->class_id == CLASS_MEMORY_GLOBAL || insn->class_id == CLASS_MEMORY_SHARED;
    if (!mask || !memory || !insn->write_count || watch->read[first])
        return;
    uint64_t addresses[32];
    emu_addresses(warp, insn->s[0], insn->imm, addresses);
    watch->read[first] = insn;
    watch->address[first] = addresses[__builtin_ctz(mask)];
}

void emu_watch_step(struct emu_warp *warp)
{
    struct emu_watch *watch = warp->watch;
    uint32_t pc = warp->current->pc, mask = warp->current->mask;
    uint32_t first = (uint32_t)__builtin_ctz(mask);
    if (!(mask & ~watch->repeated) || !warp->worker->look.on)
        return;
    if (!(mask & ~watch->moved) && stands_where_it_was(watch, pc, mask) &&
        same_registers(warp, mask)) {
        watch->repeated |= mask;
        return;
    }
    if (watch->left-- == 0 && !warp->worker->look.last) {
        give_up(warp->worker);
        return;
    }
    watch->moved |= mask;
    watch->low[first] = pc < watch->low[first] ? pc : watch->low[first];
    watch->high[first] = pc > watch->high[first] ? pc : watch->high[first];
    note_read(warp, &warp->cta->cluster->launch->program->code[pc], mask, first);
}

/* ---- the look ---- */

static bool warp_repeats(const struct emu_warp *warp)
{
    const struct emu_watch *watch = emu_watch_of(warp);
    for (uint32_t i = 0; i < warp->fragment_count; i++) {
        const struct emu_fragment *fragment = &warp->fragments[i];
        uint32_t moved = watch ? watch->moved : 0;
        if (fragment->state == FRAGMENT_RUNS)
            moved = fragment->mask;
        if (moved & fragment->mask & ~(watch ? watch->repeated : 0))
            return false;
    }
    return true;
}

static bool all_repeat(const struct emu_worker *worker)
{
    const struct emu_launch *launch = worker->launch;
    if (launch->next_cluster < launch->cluster_count && worker->live_clusters < launch->resident)
        return false;
    for (const struct emu_cluster *cluster = worker->clusters; cluster; cluster = cluster->next)
        for (uint32_t c = 0; c < cluster->cta_count; c++)
            for (uint32_t w = 0; w < launch->warps; w++)
                if (!warp_repeats(&cluster->ctas[c].warps[w]))
                    return false;
    return true;
}

static void begin_look(struct emu_worker *worker)
{
    struct emu_look *look = &worker->look;
    look->on = true;
    look->number++;
    look->progress = emu_launch_progress(worker->launch);
    look->own = worker->progress;
}

void emu_look_later(struct emu_worker *worker)
{
    const struct emu_launch *launch = worker->launch;
    bool alone = launch->worker_count == 1 || !launch->program->communicates;
    bool wanted = alone && (launch->checks & PTXGEN_CHECK_LIVELOCK);
    end_look(&worker->look, wanted ? PAUSE : UINT64_MAX, FIRST_WINDOW);
}

void emu_look_soon(struct emu_worker *worker)
{
    if (worker->look.next != UINT64_MAX)
        worker->look.next = worker->steps;
}

/* Past options.max_steps, a last look finds out in which lines the warps go round. */
static void stop_at_limit(struct emu_worker *worker, uint64_t limit)
{
    if (!worker->look.last) {
        worker->look.last = true;
        begin_look(worker);
    } else if (worker->steps > limit + LAST_LOOK) {
        emu_report_deadlock(worker, worker->clusters, PTXGEN_CHECK_DEADLOCK,
                            "the launch has passed options.max_steps");
    }
}

void emu_look(struct emu_worker *worker)
{
    struct emu_look *look = &worker->look;
    uint64_t limit = worker->launch->options->max_steps;
    if (!worker->clusters)
        return;
    if (limit && worker->steps > limit) {
        stop_at_limit(worker, limit);
    } else if (!look->on) {
        if (worker->steps >= look->next)
            begin_look(worker);
    } else if (emu_launch_progress(worker->launch) != look->progress) {
        end_look(look, worker->steps + PAUSE, FIRST_WINDOW);
    } else if (all_repeat(worker)) {
        emu_report_deadlock(worker, worker->clusters, PTXGEN_CHECK_LIVELOCK,
                            "threads spin for ever: all that run repeat what they did, and nothing "
                            "changes any more");
    }
}
