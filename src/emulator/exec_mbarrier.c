/* SPDX-License-Identifier: Apache-2.0 */
/* ISA "mbarrier". */
#include "src/emulator/access.h"
#include "src/emulator/async.h"
#include "src/emulator/bulk.h"
#include "src/emulator/decode.h"
#include "src/emulator/mbarrier.h"
#include "src/emulator/memory_order.h"
#include "src/emulator/proxy.h"
#include "src/emulator/shared_buffer.h"
#include "src/emulator/shared_memory.h"

#include <stdlib.h>
#include <string.h>

enum { OBJECT_BYTES = 8, MOST_COUNT = (1 << 20) - 1, POLLS_BEFORE_LANDING = 2 };

/* ---- objects ---- */

struct emu_mbarrier *emu_mbarrier_find(struct emu_cta *cta, uint32_t offset)
{
    for (uint32_t i = 0; i < cta->mbarrier_count; i++)
        if (cta->mbarriers[i].live && cta->mbarriers[i].offset == offset)
            return &cta->mbarriers[i];
    return NULL;
}

struct emu_mbarrier *emu_mbarrier_at(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                     enum emu_space space, struct emu_src base, uint64_t address,
                                     struct emu_cta **owner)
{
    uint32_t offset;
    emu_window(space, &address);
    *owner = emu_shared_owner(warp, insn, lane, address, &offset);
    if (offset % 8)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_ALIGNMENT, address,
                     "an mbarrier object lies at a multiple of 8");
    emu_buffer_check(warp, insn, lane, address, OBJECT_BYTES, emu_home(warp, base));
    struct emu_mbarrier *mbarrier = emu_mbarrier_find(*owner, offset);
    if (!mbarrier)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BARRIERS, address,
                     "no mbarrier object is there: mbarrier.init is missing");
    if (warp->cta->cluster->launch->proxies)
        emu_proxy_mbarrier(warp, insn, lane, *owner, mbarrier, false);
    return mbarrier;
}

static struct emu_mbarrier *new_object(struct emu_cta *cta, uint32_t offset)
{
    for (uint32_t i = 0; i < cta->mbarrier_count; i++)
        if (!cta->mbarriers[i].live || cta->mbarriers[i].offset == offset)
            return &cta->mbarriers[i];
    if (cta->mbarrier_count == cta->mbarrier_capacity) {
        uint32_t wider = cta->mbarrier_capacity ? cta->mbarrier_capacity * 2 : 16;
        struct emu_mbarrier *list = realloc(cta->mbarriers, wider * sizeof *list);
        if (!list)
            return NULL;
        memset(list + cta->mbarrier_capacity, 0, (wider - cta->mbarrier_capacity) * sizeof *list);
        cta->mbarriers = list;
        cta->mbarrier_capacity = wider;
    }
    return &cta->mbarriers[cta->mbarrier_count++];
}

/* The object's clocks outlive it. */
static bool start_object(struct emu_mbarrier *mbarrier, uint32_t offset, uint32_t count,
                         uint32_t epochs)
{
    emu_clock clock = mbarrier->clock ? mbarrier->clock : malloc(2 * epochs * sizeof *clock);
    if (!clock)
        return false;
    memset(clock, 0, 2 * epochs * sizeof *clock);
    *mbarrier = (struct emu_mbarrier){.offset = offset,
                                      .live = true,
                                      .expected = count,
                                      .pending = count,
                                      .clock = clock,
                                      .done = clock + epochs,
                                      .epochs = epochs};
    return true;
}

void emu_mbarriers_free(struct emu_cta *cta)
{
    for (uint32_t i = 0; i < cta->mbarrier_capacity; i++)
        free(cta->mbarriers[i].clock);
    free(cta->mbarriers);
}

static void complete_phase(struct emu_mbarrier *mbarrier)
{
    if (mbarrier->pending || mbarrier->transactions)
        return;
    mbarrier->phase++;
    mbarrier->pending = mbarrier->expected;
    mbarrier->fruitless = 0;
    memcpy(mbarrier->done, mbarrier->clock, mbarrier->epochs * sizeof *mbarrier->done);
}

void emu_mbarrier_arrive(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                         struct emu_mbarrier *mbarrier, uint32_t count)
{
    if (count == 0 || count > mbarrier->pending)
        emu_fault(warp, insn, lane, PTXGEN_CHECK_BARRIERS,
                  "%u arrivals at the mbarrier, where %u are still due in this phase (of %u)",
                  count, mbarrier->pending, mbarrier->expected);
    mbarrier->pending -= count;
    emu_progress(warp->worker);
    complete_phase(mbarrier);
}

void emu_mbarrier_transact(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                           struct emu_mbarrier *mbarrier, int64_t bytes)
{
    int64_t sum = mbarrier->transactions + bytes;
    if (sum > MOST_COUNT || sum < -MOST_COUNT)
        emu_fault(warp, insn, lane, PTXGEN_CHECK_OPERANDS,
                  "the mbarrier's transaction count becomes %lld; its range is ±%d", (long long)sum,
                  MOST_COUNT);
    mbarrier->transactions = (int32_t)sum;
    emu_progress(warp->worker);
    complete_phase(mbarrier);
}

/* ---- instructions ---- */

static void init(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint64_t addresses[32];
    emu_addresses(warp, insn->s[0], insn->imm, addresses);
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint64_t count = emu_lane_value(warp, insn->s[1], lane);
        if (count == 0 || count > MOST_COUNT)
            emu_fault(warp, insn, lane, PTXGEN_CHECK_OPERANDS,
                      "an mbarrier for %llu arrivals; the range is 1 to %d",
                      (unsigned long long)count, MOST_COUNT);
        struct emu_place place =
            emu_locate(warp, insn, lane, insn->space, addresses[lane], OBJECT_BYTES, 8,
                       ACCESS_WRITE | emu_home(warp, insn->s[0]));
        if (!place.owner)
            emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BOUNDS, addresses[lane],
                         "an mbarrier object lies in shared memory");
        struct emu_mbarrier *mbarrier = new_object(place.owner, place.offset);
        if (!mbarrier ||
            !start_object(mbarrier, place.offset, (uint32_t)count, warp->cta->cluster->epochs))
            emu_out_of_memory(warp);
        mbarrier->init_thread = warp->number * 32 + (uint32_t)lane;
        mbarrier->init_epoch = warp->clock[warp->number];
        mbarrier->line = insn->line;
        memcpy(place.data, &count, 8);
        memset(place.state, BYTE_OBJECT, OBJECT_BYTES);
        emu_progress(warp->worker);
    }
}

static void inval(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint64_t addresses[32];
    emu_addresses(warp, insn->s[0], insn->imm, addresses);
    for (uint32_t left = mask; left; left &= left - 1) {
        struct emu_cta *owner;
        int lane = __builtin_ctz(left);
        struct emu_mbarrier *mbarrier =
            emu_mbarrier_at(warp, insn, lane, insn->space, insn->s[0], addresses[lane], &owner);
        uint8_t *state = owner->shared_state + mbarrier->offset;
        mbarrier->live = false;
        memset(state, BYTE_WRITTEN, OBJECT_BYTES);
        emu_locate(warp, insn, lane, insn->space, addresses[lane], OBJECT_BYTES, 8, ACCESS_WRITE);
        memset(state, BYTE_UNWRITTEN, OBJECT_BYTES);
    }
}

enum { ARRIVE = 1, EXPECT = 2, COMPLETE = 4, DROP = 8, RELAXED = 16 };

/* The state that arrive returns: the phase in the high half, what was pending in the low. */
static uint64_t state_of(const struct emu_mbarrier *mbarrier)
{
    return (uint64_t)mbarrier->phase << 32 | mbarrier->pending;
}

/*
 * What the warp did before is ordered before what follows the wait, in whichever CTA of the cluster
 * and of whichever scope the arrival is: a release to the CTA alone is enough for a peer that
 * overwrites what has been read.
 */
static void arrive(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint64_t addresses[32];
    emu_addresses(warp, insn->s[0], insn->imm, addresses);
    uint32_t released = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        struct emu_cta *owner;
        int lane = __builtin_ctz(left);
        struct emu_mbarrier *mbarrier =
            emu_mbarrier_at(warp, insn, lane, insn->space, insn->s[0], addresses[lane], &owner);
        uint64_t state = state_of(mbarrier);
        int64_t value = insn->s[1].absent ? 1 : (int64_t)emu_lane_value(warp, insn->s[1], lane);
        if ((insn->mode & ARRIVE) && !(insn->mode & RELAXED)) {
            emu_clock_join(mbarrier->clock, warp->clock, mbarrier->epochs);
            released = 1;
        }
        if (insn->mode & EXPECT)
            emu_mbarrier_transact(warp, insn, lane, mbarrier, value);
        if (insn->mode & COMPLETE)
            emu_mbarrier_transact(warp, insn, lane, mbarrier, -value);
        if ((insn->mode & DROP) && mbarrier->expected)
            mbarrier->expected -= insn->mode & EXPECT ? 1 : (uint32_t)value;
        if (insn->mode & ARRIVE)
            emu_mbarrier_arrive(warp, insn, lane, mbarrier,
                                insn->mode & EXPECT ? 1 : (uint32_t)value);
        if (!insn->d.absent)
            emu_set_lane(warp, insn->d, lane, state);
    }
    warp->clock[warp->number] += released;
}

/* Whether the phase that the operand names is over. */
static bool is_over(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                    const struct emu_mbarrier *mbarrier)
{
    uint64_t value = emu_lane_value(warp, insn->s[1], lane);
    if (insn->has_value) {
        if (value > 1)
            emu_fault(warp, insn, lane, PTXGEN_CHECK_OPERANDS, "phase parity %llu; it is 0 or 1",
                      (unsigned long long)value);
        return (mbarrier->phase & 1) != value;
    }
    return mbarrier->phase != (uint32_t)(value >> 32);
}

static void test_wait(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint64_t addresses[32];
    uint32_t result = 0;
    emu_addresses(warp, insn->s[0], insn->imm, addresses);
    for (uint32_t left = mask; left; left &= left - 1) {
        struct emu_cta *owner;
        int lane = __builtin_ctz(left);
        struct emu_mbarrier *mbarrier =
            emu_mbarrier_at(warp, insn, lane, insn->space, insn->s[0], addresses[lane], &owner);
        bool over = is_over(warp, insn, lane, mbarrier);
        if (!over && ++mbarrier->fruitless >= POLLS_BEFORE_LANDING) {
            emu_land_mbarrier(owner, mbarrier);
            over = is_over(warp, insn, lane, mbarrier);
        }
        if (over && !(insn->mode & RELAXED))
            emu_clock_acquire(warp, mbarrier->done);
        result |= (uint32_t)over << lane;
    }
    emu_set_predicate(warp, insn->d, result, mask);
    if (result != mask) {
        emu_poll(warp, insn, addresses[__builtin_ctz(mask & ~result)]);
        warp->yields = true;
    }
}

static void pending_count(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        emu_set_lane(warp, insn->d, lane, (uint32_t)emu_lane_value(warp, insn->s[0], lane));
    }
}

/* ---- decoding ---- */

static void decode_wait(struct emu_decoder *decoder, struct emu_insn *insn)
{
    insn->has_value = emu_mod(decoder, "parity");
    emu_need_operands(decoder, 3, 4);
    insn->exec = test_wait;
    emu_address(decoder, emu_operand_at(decoder, 1), &insn->s[0], &insn->imm);
    insn->s[1] = emu_read_nth(decoder, 2, insn->has_value ? T_b32 : T_b64);
    if (emu_operand_count(decoder) == 4)
        emu_read_nth(decoder, 3, T_b32);
    insn->d = emu_write_nth(decoder, 0, T_pred);
}

static void decode_arrive(struct emu_decoder *decoder, struct emu_insn *insn)
{
    uint32_t at = emu_operand_at(decoder, 0)->kind == OPERAND_ADDRESS ? 0 : 1;
    insn->exec = arrive;
    if (!(insn->mode & ARRIVE) != !at)
        emu_refuse(decoder, at ? "it has no result" : "its result is missing; it may be '_'");
    emu_need_operands(decoder, at + 1, at + 2);
    emu_address(decoder, emu_operand_at(decoder, at), &insn->s[0], &insn->imm);
    insn->s[1].absent = emu_operand_count(decoder) == at + 1;
    if (!insn->s[1].absent)
        insn->s[1] = emu_read_nth(decoder, at + 1, T_b32);
    else if (insn->mode & (EXPECT | COMPLETE))
        emu_refuse(decoder, "the transaction count is missing");
    insn->d.absent = at == 0 || emu_operand_at(decoder, 0)->kind == OPERAND_SINK;
    if (!insn->d.absent)
        insn->d = emu_write_nth(decoder, 0, T_b64);
}

static void decode_mbarrier(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const orders[] = {"relaxed", "acquire", "release", NULL};
    static const char *const waits[] = {"test_wait", "try_wait", NULL};
    bool relaxed = emu_mod_of(decoder, orders) == 0;
    insn->space = (uint8_t)emu_mod_space(decoder);
    emu_mod_scope(decoder, SCOPE_NONE);
    emu_need_type(decoder, "b64");
    insn->mode = relaxed ? RELAXED : 0;
    if (insn->space == SPACE_SHARED_CLUSTER)
        decoder->program->uses_proxies = true;
    if (emu_mod(decoder, "pending_count")) {
        insn->exec = pending_count;
        emu_need_operands(decoder, 2, 2);
        insn->s[0] = emu_read_nth(decoder, 1, T_b64);
        insn->d = emu_write_nth(decoder, 0, T_b32);
    } else if (emu_mod_of(decoder, waits) >= 0) {
        decode_wait(decoder, insn);
    } else if (emu_mod(decoder, "init")) {
        insn->exec = init;
        emu_need_operands(decoder, 2, 2);
        emu_address(decoder, emu_operand_at(decoder, 0), &insn->s[0], &insn->imm);
        insn->s[1] = emu_read_nth(decoder, 1, T_b32);
    } else if (emu_mod(decoder, "inval")) {
        insn->exec = inval;
        emu_need_operands(decoder, 1, 1);
        emu_address(decoder, emu_operand_at(decoder, 0), &insn->s[0], &insn->imm);
    } else {
        insn->mode |= emu_mod(decoder, "arrive") ? ARRIVE : 0;
        insn->mode |= emu_mod(decoder, "arrive_drop") ? ARRIVE | DROP : 0;
        insn->mode |= emu_mod(decoder, "expect_tx") ? EXPECT : 0;
        insn->mode |= emu_mod(decoder, "complete_tx") ? COMPLETE : 0;
        emu_mod(decoder, "noComplete");
        if (!(insn->mode & ~RELAXED))
            emu_refuse(decoder, "an operation such as .init or .arrive is missing");
        decode_arrive(decoder, insn);
    }
}

const struct emu_opcode emu_mbarrier_opcodes[] = {{"mbarrier", decode_mbarrier, CLASS_BARRIER},
                                                  {NULL, NULL, CLASS_OTHER}};
