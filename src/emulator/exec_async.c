/* SPDX-License-Identifier: Apache-2.0 */
/* ISA "cp.async": non-bulk asynchronous copies from global to shared memory. */
#include "src/emulator/async.h"
#include "src/emulator/bulk.h"
#include "src/emulator/decode.h"
#include "src/emulator/memory_order.h"
#include "src/emulator/access.h"
#include "src/emulator/profile.h"
#include "src/emulator/shared_buffer.h"
#include "src/emulator/shared_memory.h"

#include <string.h>

enum { SOURCE_SHARED, SOURCE_GLOBAL, SOURCE_SIZE, SOURCE_IGNORE };

static uint32_t source_bytes(struct emu_warp *warp, const struct emu_insn *insn, int lane)
{
    uint64_t size = (uint64_t)insn->vector;
    if (!insn->s[SOURCE_SIZE].absent)
        size = emu_lane_value(warp, insn->s[SOURCE_SIZE], lane);
    if (!insn->s[SOURCE_IGNORE].absent && (emu_predicate(warp, insn->s[SOURCE_IGNORE]) >> lane & 1))
        size = 0;
    if (size > insn->vector)
        emu_fault(warp, insn, lane, PTXGEN_CHECK_OPERANDS, "src-size %llu is above cp-size %u",
                  (unsigned long long)size, insn->vector);
    return (uint32_t)size;
}

/* Every lane copies all of its bytes. */
static void read_sources(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask,
                         const uint64_t from[32], struct emu_copy *copy)
{
    struct emu_place places[32];
    uint32_t bytes = insn->vector;
    emu_locate_lanes(warp, insn, mask, SPACE_GLOBAL, from, bytes, bytes, ACCESS_READ, places);
    if (bytes == sizeof copy->lanes->data) {
        EMU_EACH_LANE(mask, memcpy(copy->lanes[l].data, places[l].data, sizeof copy->lanes->data););
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        memcpy(copy->lanes[lane].data, places[lane].data, bytes);
    }
}

/* Lanes copy what src-size and ignore-src leave, and zeros behind it. */
static void read_part_sources(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask,
                              const uint64_t from[32], struct emu_copy *copy)
{
    uint32_t bytes = insn->vector, reading = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint32_t size = source_bytes(warp, insn, lane);
        if (from[lane] % bytes)
            emu_fault_at(warp, insn, lane, PTXGEN_CHECK_ALIGNMENT, from[lane],
                         "the address is not a multiple of %u", bytes);
        memset(copy->lanes[lane].data, 0, bytes);
        if (!size)
            continue;
        struct emu_place source =
            emu_locate(warp, insn, lane, SPACE_GLOBAL, from[lane], size, 1, ACCESS_READ);
        memcpy(copy->lanes[lane].data, source.data, size);
        reading |= 1u << lane;
    }
    if (warp->worker->counters)
        emu_count_access(warp, insn, reading, SPACE_GLOBAL, from, bytes);
}

static void cp_async(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint64_t to[32], from[32];
    struct emu_place places[32];
    uint32_t bytes = insn->vector;
    struct emu_copy *copy = emu_copy_add(&warp->copies, COPY_LANES, 0, 0);
    if (!copy)
        emu_out_of_memory(warp);
    copy->insn = insn;
    copy->bytes = bytes;
    emu_addresses(warp, insn->s[SOURCE_SHARED], insn->imm, to);
    emu_addresses(warp, insn->s[SOURCE_GLOBAL], (int32_t)insn->target, from);
    if (insn->s[SOURCE_SIZE].absent && insn->s[SOURCE_IGNORE].absent)
        read_sources(warp, insn, mask, from, copy);
    else
        read_part_sources(warp, insn, mask, from, copy);
    emu_locate_lanes(warp, insn, mask, SPACE_SHARED, to, bytes, bytes,
                     ACCESS_WRITE | ACCESS_PENDING | emu_home(warp, insn->s[SOURCE_SHARED]),
                     places);
    EMU_EACH_LANE(mask, copy->lanes[l].offset = places[l].offset;
                  copy->lanes[l].group = warp->groups[l];);
    copy->mask = mask;
}

static void commit_group(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    (void)insn;
    EMU_EACH_LANE(mask, warp->groups[l]++;);
}

static void wait_group(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    emu_land_lanes(warp, mask, (uint32_t)insn->imm);
}

/* The arrival counts when the lane's earlier copies have landed; .noinc: it was counted in init. */
static void mbarrier_arrive(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint64_t addresses[32];
    struct emu_copy *copy = emu_copy_add(&warp->copies, COPY_ARRIVE, 0, 0);
    if (!copy)
        emu_out_of_memory(warp);
    copy->insn = insn;
    emu_addresses(warp, insn->s[0], insn->imm, addresses);
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        struct emu_cta *owner;
        struct emu_mbarrier *mbarrier =
            emu_mbarrier_at(warp, insn, lane, SPACE_SHARED, insn->s[0], addresses[lane], &owner);
        if (!insn->has_value)
            mbarrier->pending++;
        copy->lanes[lane].offset = mbarrier->offset;
        copy->lanes[lane].group = warp->groups[lane];
        copy->mask |= 1u << lane;
    }
}

static void decode_arrive(struct emu_decoder *decoder, struct emu_insn *insn)
{
    if (!emu_mod(decoder, "arrive"))
        emu_refuse(decoder, ".arrive is missing");
    insn->has_value = emu_mod(decoder, "noinc");
    emu_mod_space(decoder);
    emu_need_type(decoder, "b64");
    emu_need_operands(decoder, 1, 1);
    insn->exec = mbarrier_arrive;
    emu_address(decoder, emu_operand_at(decoder, 0), &insn->s[0], &insn->imm);
}

/* The optional operands: src-size or ignore-src, then the cache policy. */
static void decode_options(struct emu_decoder *decoder, struct emu_insn *insn, bool policy)
{
    uint32_t end = emu_operand_count(decoder) - policy;
    insn->s[SOURCE_SIZE].absent = insn->s[SOURCE_IGNORE].absent = true;
    if (policy)
        emu_read_nth(decoder, end, T_b64);
    if (end <= 3)
        return;
    const struct emu_arg *option = emu_operand_at(decoder, 3);
    uint32_t number;
    const struct emu_symbol *symbol =
        option->kind != OPERAND_NAME
            ? NULL
            : emu_find_symbol(decoder->module, option->name, decoder->statement->scope, &number);
    if (symbol && symbol->kind == SYMBOL_REGISTER && symbol->type == T_pred)
        insn->s[SOURCE_IGNORE] = emu_read(decoder, option, T_pred);
    else
        insn->s[SOURCE_SIZE] = emu_read(decoder, option, T_b32);
}

static void decode_copy(struct emu_decoder *decoder, struct emu_insn *insn)
{
    bool cg = emu_mod(decoder, "cg"), ca = !cg && emu_mod(decoder, "ca");
    if (!cg && !ca)
        emu_refuse(decoder, ".ca or .cg is missing");
    enum emu_space to = emu_mod_space(decoder), from_space = emu_mod_space(decoder);
    if (to != SPACE_SHARED || from_space != SPACE_GLOBAL)
        emu_refuse(decoder, ".shared.global is missing");
    bool policy = emu_mod(decoder, "L2::cache_hint");
    emu_skip_hints(decoder);
    emu_need_operands(decoder, 3u + policy, 4u + policy);
    uint64_t size = emu_immediate(decoder, emu_operand_at(decoder, 2));
    if (size != 16 && (cg || (size != 4 && size != 8)))
        emu_refuse(decoder, "cp-size %llu; it is %s", (unsigned long long)size,
                   cg ? "16 with .cg" : "4, 8 or 16");
    int64_t from;
    insn->exec = cp_async;
    insn->vector = (uint8_t)size;
    emu_address(decoder, emu_operand_at(decoder, 0), &insn->s[SOURCE_SHARED], &insn->imm);
    emu_address(decoder, emu_operand_at(decoder, 1), &insn->s[SOURCE_GLOBAL], &from);
    if (from != (int32_t)from)
        emu_refuse(decoder, "the offset %lld does not fit 32 bits", (long long)from);
    insn->target = (uint32_t)from;
    decode_options(decoder, insn, policy);
}

static void decode_cp(struct emu_decoder *decoder, struct emu_insn *insn)
{
    if (decoder->statement->modifier_count > 1 &&
        (emu_str_is(decoder->statement->modifiers[1], "bulk") ||
         emu_str_is(decoder->statement->modifiers[0], "reduce"))) {
        emu_decode_bulk(decoder, insn);
        return;
    }
    if (!emu_mod(decoder, "async"))
        emu_refuse(decoder, ".async is missing");
    if (emu_mod(decoder, "commit_group")) {
        emu_need_operands(decoder, 0, 0);
        insn->exec = commit_group;
    } else if (emu_mod(decoder, "wait_group")) {
        emu_need_operands(decoder, 1, 1);
        insn->exec = wait_group;
        insn->imm = (int64_t)emu_immediate(decoder, emu_operand_at(decoder, 0));
    } else if (emu_mod(decoder, "wait_all")) {
        emu_need_operands(decoder, 0, 0);
        insn->exec = wait_group;
        insn->imm = EMU_LAND_ALL;
    } else if (emu_mod(decoder, "mbarrier")) {
        decode_arrive(decoder, insn);
    } else {
        decode_copy(decoder, insn);
    }
}

const struct emu_opcode emu_async_opcodes[] = {{"cp", decode_cp, CLASS_ASYNC},
                                               {NULL, NULL, CLASS_OTHER}};
