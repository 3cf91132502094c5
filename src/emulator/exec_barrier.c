/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ISA "Parallel Synchronization": bar and barrier{.cta}, bar.warp.sync, barrier.cluster, membar
 * and fence. bar.* is barrier.cta.*.aligned.
 */
#include "src/emulator/arith.h"
#include "src/emulator/global_order.h"
#include "src/emulator/global_race.h"
#include "src/emulator/memory_order.h"
#include "src/emulator/proxy.h"
#include "src/emulator/shared_memory.h"
#include "src/emulator/warp_sync.h"

#include <string.h>

enum { BAR_SYNC, BAR_ARRIVE, BAR_RED };
enum { RED_POPC, RED_AND, RED_OR };
enum { BAR_ID, BAR_COUNT, BAR_PREDICATE }; /* sources */

static uint32_t threads_of(const struct emu_warp *warp, uint32_t mask, bool counted)
{
    return counted && mask == warp->lanes ? 32 : (uint32_t)__builtin_popcount(mask);
}

static uint32_t expected_threads(struct emu_warp *warp, const struct emu_insn *insn, int lane)
{
    const struct emu_cta *cta = warp->cta;
    if (insn->s[BAR_COUNT].absent)
        return cta->cluster->launch->checks & PTXGEN_CHECK_BARRIERS ? cta->threads
                                                                    : cta->live_threads;
    uint64_t count = emu_lane_value(warp, insn->s[BAR_COUNT], lane);
    if (count == 0 || count % 32 || count > cta->warp_count * 32u)
        emu_fault(warp, insn, lane, PTXGEN_CHECK_BARRIERS,
                  "the barrier's thread count is %llu; it is a multiple of 32 up to the CTA's %u",
                  (unsigned long long)count, cta->threads);
    return (uint32_t)count;
}

static void give_results(struct emu_warp *warp, const struct emu_fragment *fragment,
                         const struct emu_insn *insn, const struct emu_barrier *barrier)
{
    if (insn->op != BAR_RED)
        return;
    if (insn->mode == RED_POPC) {
        uint32_t *d = EMU_ROW_OF(uint32_t, insn->d);
        EMU_LANES(fragment->mask, d[l] = barrier->count;)
    } else {
        bool truth = insn->mode == RED_AND ? barrier->all : barrier->any;
        emu_set_predicate(warp, insn->d, truth ? ~0u : 0, fragment->mask);
    }
    warp->written[insn->d.slot] |= fragment->mask;
}

/* Lets everyone at the barrier go and makes it ready for its next use. */
static void complete(struct emu_cta *cta, uint32_t id)
{
    struct emu_barrier *barrier = &cta->barriers[id];
    const struct emu_insn *code = cta->cluster->launch->program->code;
    for (uint32_t w = 0; w < cta->warp_count; w++) {
        struct emu_warp *warp = &cta->warps[w];
        for (uint32_t f = 0; f < warp->fragment_count; f++) {
            struct emu_fragment *fragment = &warp->fragments[f];
            if (fragment->state != FRAGMENT_BARRIER || fragment->barrier != id)
                continue;
            give_results(warp, fragment, &code[fragment->pc], barrier);
            emu_clock_acquire(warp, barrier->clock);
            warp->clock[warp->number] = barrier->newest + 1;
            fragment->state = FRAGMENT_RUNS;
            fragment->pc++;
            fragment->age = 0;
        }
    }
    memset(barrier->clock, 0, cta->cluster->epochs * sizeof *barrier->clock);
    *barrier = (struct emu_barrier){.clock = barrier->clock};
}

static struct emu_barrier *arrive(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask,
                                  uint32_t *id)
{
    int lane = __builtin_ctz(mask);
    uint64_t which = emu_lane_value(warp, insn->s[BAR_ID], lane);
    if (which >= EMU_BARRIERS)
        emu_fault(warp, insn, lane, PTXGEN_CHECK_OPERANDS,
                  "barrier %llu; a CTA has barriers 0 to 15", (unsigned long long)which);
    struct emu_barrier *barrier = &warp->cta->barriers[which];
    uint32_t expected = expected_threads(warp, insn, lane);
    if (barrier->arrived && barrier->expected != expected)
        emu_fault(warp, insn, lane, PTXGEN_CHECK_BARRIERS,
                  "barrier %llu is used with %u threads here, but threads wait at it with %u",
                  (unsigned long long)which, expected, barrier->expected);
    if (barrier->arrived == 0)
        barrier->all = 1;
    barrier->expected = expected;
    barrier->arrived += threads_of(warp, mask, !insn->s[BAR_COUNT].absent);
    if (barrier->arrived > barrier->expected)
        emu_fault(warp, insn, lane, PTXGEN_CHECK_BARRIERS,
                  "%u threads have arrived at barrier %llu, which is for %u", barrier->arrived,
                  (unsigned long long)which, barrier->expected);
    emu_clock_join(barrier->clock, warp->clock, warp->cta->cluster->epochs);
    if (warp->clock[warp->number] > barrier->newest)
        barrier->newest = warp->clock[warp->number];
    emu_go_on(warp->worker);
    *id = (uint32_t)which;
    return barrier;
}

static void gather_predicate(struct emu_warp *warp, const struct emu_insn *insn,
                             struct emu_barrier *barrier, uint32_t mask)
{
    uint32_t p = emu_predicate(warp, insn->s[BAR_PREDICATE]) & mask;
    barrier->count += (uint32_t)__builtin_popcount(p);
    barrier->all &= p == mask;
    barrier->any |= p != 0;
}

static void bar(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint32_t id;
    if (mask == 0) {
        warp->current->pc++;
        return;
    }
    if (insn->aligned && !emu_collect_lanes(warp, insn, mask))
        return;
    if (mask != warp->current->mask)
        emu_split(warp, warp->current->mask & ~mask, warp->current->pc + 1);
    struct emu_barrier *barrier = arrive(warp, insn, mask, &id);
    if (insn->op == BAR_RED)
        gather_predicate(warp, insn, barrier, mask);
    if (insn->op == BAR_ARRIVE) {
        warp->clock[warp->number]++;
        warp->current->pc++;
    } else {
        warp->current->state = FRAGMENT_BARRIER;
        warp->current->barrier = (uint8_t)id;
    }
    if (barrier->arrived == barrier->expected)
        complete(warp->cta, id);
}

static void decode_bar_red(struct emu_decoder *decoder, struct emu_insn *insn, uint32_t *at)
{
    static const char *const ops[] = {"popc", "and", "or", NULL};
    int op = emu_mod_of(decoder, ops);
    if (op < 0)
        emu_refuse(decoder, "an operation (.popc .and .or) is missing");
    insn->mode = (uint8_t)op;
    emu_need_type(decoder, op == RED_POPC ? "u32" : "pred");
    uint32_t last = emu_operand_count(decoder) - 1;
    emu_need_operands(decoder, 3, 4);
    insn->s[BAR_PREDICATE] = emu_read_nth(decoder, last, T_pred);
    insn->d = emu_write_nth(decoder, 0, op == RED_POPC ? T_u32 : T_pred);
    insn->write_count = 0; /* written when the barrier completes */
    *at = 1;
}

/* bar.warp.sync: orders the memory accesses of the lanes in the mask. */
static void bar_warp(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    (void)insn;
    (void)mask;
    warp->clock[warp->number]++;
}

static void decode_bar_warp(struct emu_decoder *decoder, struct emu_insn *insn)
{
    if (!emu_mod(decoder, "sync"))
        emu_refuse(decoder, ".sync is missing");
    emu_need_operands(decoder, 1, 1);
    insn->exec = bar_warp;
    insn->flow = FLOW_COLLECT;
    insn->collect = COLLECT_MEMBERS;
    insn->has_value = true; /* lanes at different ones of the same mask count as together */
    insn->class_id = CLASS_WARP;
    insn->s[EMU_SOURCES - 1] = emu_read_nth(decoder, 0, T_b32);
}

/* ---- clusters ---- */

static void cluster_complete(struct emu_cluster *cluster)
{
    uint32_t live = 0;
    for (uint32_t c = 0; c < cluster->cta_count; c++)
        live += cluster->ctas[c].live_threads;
    if (cluster->cluster_arrived == 0 || cluster->cluster_arrived < live)
        return;
    cluster->cluster_arrived = 0;
    cluster->cluster_phase++;
    memcpy(cluster->met, cluster->arrivals, cluster->epochs * sizeof *cluster->met);
    for (uint32_t c = 0; c < cluster->cta_count; c++)
        for (uint32_t w = 0; w < cluster->ctas[c].warp_count; w++) {
            struct emu_warp *warp = &cluster->ctas[c].warps[w];
            for (uint32_t f = 0; f < warp->fragment_count; f++)
                if (warp->fragments[f].state == FRAGMENT_CLUSTER)
                    warp->fragments[f].state = FRAGMENT_RUNS;
        }
}

static void cluster_arrive(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    struct emu_cluster *cluster = warp->cta->cluster;
    uint32_t twice = mask & warp->cluster_arrived;
    if (twice)
        emu_fault(warp, insn, __builtin_ctz(twice), PTXGEN_CHECK_BARRIERS,
                  "barrier.cluster.arrive a second time without a wait between");
    warp->cluster_arrived |= mask;
    for (uint32_t left = mask; left; left &= left - 1)
        warp->cluster_phase[__builtin_ctz(left)] = cluster->cluster_phase;
    cluster->cluster_arrived += (uint32_t)__builtin_popcount(mask);
    if (insn->has_value) /* .relaxed: what a fence before it has released */
        emu_clock_join(cluster->arrivals, warp->fenced, cluster->epochs);
    else
        emu_clock_release(warp, cluster->arrivals);
    emu_go_on(warp->worker);
    cluster_complete(cluster);
}

static void cluster_wait(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    struct emu_cluster *cluster = warp->cta->cluster;
    if (mask == 0) {
        warp->current->pc++;
        return;
    }
    if (insn->aligned && !emu_collect_lanes(warp, insn, mask))
        return;
    uint32_t without = mask & ~warp->cluster_arrived;
    if (without)
        emu_fault(warp, insn, __builtin_ctz(without), PTXGEN_CHECK_BARRIERS,
                  "barrier.cluster.wait without an arrive before it");
    if (mask != warp->current->mask)
        emu_split(warp, warp->current->mask & ~mask, warp->current->pc + 1);
    for (uint32_t left = mask; left; left &= left - 1)
        if (warp->cluster_phase[__builtin_ctz(left)] == cluster->cluster_phase) {
            warp->current->state = FRAGMENT_CLUSTER;
            return;
        }
    warp->cluster_arrived &= ~mask;
    emu_clock_acquire(warp, cluster->met);
    warp->current->pc++;
}

static void decode_cluster(struct emu_decoder *decoder, struct emu_insn *insn)
{
    bool is_arrive = emu_mod(decoder, "arrive");
    if (!is_arrive && !emu_mod(decoder, "wait"))
        emu_refuse(decoder, ".arrive or .wait is missing");
    emu_mod(decoder, "acquire");
    emu_mod(decoder, "release");
    insn->has_value = emu_mod(decoder, "relaxed");
    decoder->program->arrives_relaxed |= insn->has_value;
    insn->aligned = emu_mod(decoder, "aligned");
    emu_need_operands(decoder, 0, 0);
    insn->exec = is_arrive ? cluster_arrive : cluster_wait;
    insn->collect = COLLECT_ALIGNED;
    insn->flow = !is_arrive ? FLOW_CONTROL : insn->aligned ? FLOW_COLLECT : FLOW_NEXT;
}

static void decode_bar(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const ops[] = {"sync", "arrive", "red", NULL};
    if (emu_mod(decoder, "warp")) {
        decode_bar_warp(decoder, insn);
        return;
    }
    if (emu_mod(decoder, "cluster")) {
        decode_cluster(decoder, insn);
        return;
    }
    emu_mod(decoder, "cta");
    bool legacy = decoder->statement->mnemonic.length == 3;
    int op = emu_mod_of(decoder, ops);
    insn->aligned = legacy || emu_mod(decoder, "aligned");
    if (op < 0)
        emu_refuse(decoder, ".sync, .arrive or .red is missing");
    uint32_t at = 0;
    insn->op = (uint8_t)op;
    insn->exec = bar;
    insn->flow = FLOW_CONTROL;
    insn->collect = COLLECT_ALIGNED;
    if (op == BAR_RED)
        decode_bar_red(decoder, insn, &at);
    else
        emu_need_operands(decoder, op == BAR_ARRIVE ? 2 : 1, 2);
    uint32_t end = emu_operand_count(decoder) - (op == BAR_RED);
    insn->s[BAR_ID] = emu_read_nth(decoder, at, T_u32);
    insn->s[BAR_COUNT].absent = at + 1 >= end;
    if (!insn->s[BAR_COUNT].absent)
        insn->s[BAR_COUNT] = emu_read_nth(decoder, at + 1, T_u32);
}

/* Those who wait at barrier.cluster wait for no exited thread, and none counts as one of them. */
static void leave_cluster(struct emu_warp *warp, uint32_t mask)
{
    struct emu_cluster *cluster = warp->cta->cluster;
    for (uint32_t left = mask & warp->cluster_arrived; left; left &= left - 1)
        cluster->cluster_arrived -=
            warp->cluster_phase[__builtin_ctz(left)] == cluster->cluster_phase;
    cluster_complete(cluster);
}

void emu_barriers_after_exit(struct emu_warp *warp, uint32_t mask)
{
    struct emu_cta *cta = warp->cta;
    leave_cluster(warp, mask);
    if (cta->cluster->launch->checks & PTXGEN_CHECK_BARRIERS)
        return;
    for (uint32_t id = 0; id < EMU_BARRIERS; id++) {
        struct emu_barrier *barrier = &cta->barriers[id];
        if (barrier->arrived && barrier->expected > cta->live_threads)
            barrier->expected = cta->live_threads;
        if (barrier->arrived && barrier->arrived >= barrier->expected)
            complete(cta, id);
    }
}

/* ---- fences ---- */

static void fence(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    if (insn->scope >= SCOPE_GPU && emu_race_checked(warp))
        emu_order_fence(warp, mask);
    emu_fence(warp);
}

/* The state spaces whose generic writes a fence.proxy.async orders: all that it does not leave out.
 */
static uint8_t fenced_parts(struct emu_decoder *decoder)
{
    static const char *const shared[] = {"shared::cta", "shared::cluster",
                                         "sync_restrict::shared::cta",
                                         "sync_restrict::shared::cluster"};
    const uint8_t of_shared = 1 << PROXY_SHARED, of_global = 1 << PROXY_GLOBAL;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (emu_mod_count(decoder, shared[i]))
            return of_shared;
    return emu_mod_count(decoder, "global") ? of_global : of_shared | of_global;
}

/* Fences between proxies count as fences between threads too. */
static void decode_fence(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const known[] = {"sc",
                                        "acq_rel",
                                        "acquire",
                                        "release",
                                        "relaxed",
                                        "cta",
                                        "cluster",
                                        "gpu",
                                        "gl",
                                        "sys",
                                        "proxy",
                                        "alias",
                                        "async",
                                        "async::generic",
                                        "tensormap::generic",
                                        "generic::async",
                                        "generic::tensormap",
                                        "global",
                                        "shared::cta",
                                        "shared::cluster",
                                        "sync_restrict::shared::cta",
                                        "sync_restrict::shared::cluster",
                                        "mbarrier_init",
                                        NULL};
    bool proxy = emu_mod_count(decoder, "proxy");
    if (!proxy && !emu_mod_count(decoder, "mbarrier_init"))
        insn->scope =
            (uint8_t)emu_mod_scope(decoder, emu_mod(decoder, "gl") ? SCOPE_GPU : SCOPE_NONE);
    while (emu_mod_of(decoder, known) >= 0)
        continue;
    if (!decoder->statement->modifier_count)
        emu_refuse(decoder, "a scope or a proxy is missing");
    if (!proxy && (emu_mod_count(decoder, "alias") || emu_mod_count(decoder, "async")))
        emu_refuse(decoder, ".proxy is missing");
    for (uint32_t i = 0; i < emu_operand_count(decoder); i++) {
        const struct emu_arg *operand = emu_operand_at(decoder, i);
        if (operand->kind == OPERAND_ADDRESS)
            emu_address(decoder, operand, &insn->s[0], &insn->imm);
    }
    bool async = emu_mod_count(decoder, "async") || emu_mod_count(decoder, "async::generic");
    insn->mode = fenced_parts(decoder);
    insn->exec = emu_mod_count(decoder, "mbarrier_init") ? emu_proxy_announce
                 : async                                 ? emu_proxy_fence
                                                         : fence;
}

const struct emu_opcode emu_barrier_opcodes[] = {{"bar", decode_bar, CLASS_BARRIER},
                                                 {"barrier", decode_bar, CLASS_BARRIER},
                                                 {"membar", decode_fence, CLASS_BARRIER},
                                                 {"fence", decode_fence, CLASS_BARRIER},
                                                 {NULL, NULL, CLASS_OTHER}};
