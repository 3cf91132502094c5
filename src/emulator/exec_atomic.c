/* SPDX-License-Identifier: Apache-2.0 */
/* ISA "atom" and "red": one lane after the other, in lane order. */
#include "src/emulator/access.h"
#include "src/emulator/atomic_op.h"
#include "src/emulator/bulk.h"
#include "src/emulator/decode.h"
#include "src/emulator/memory_order.h"
#include "src/emulator/shared_buffer.h"
#include "src/emulator/shared_memory.h"

#include <string.h>

/* Holds the lock of a global address while several workers run. */
static pthread_mutex_t *lock_of(struct emu_warp *warp, const struct emu_place *place)
{
    struct emu_launch *launch = warp->cta->cluster->launch;
    if (launch->worker_count == 1 || place->owner)
        return NULL;
    pthread_mutex_t *lock =
        &launch->memory->atomics[((uintptr_t)place->data >> 4) % EMU_ATOMIC_LOCKS];
    pthread_mutex_lock(lock);
    return lock;
}

static void operand_bytes(struct emu_warp *warp, struct emu_src source, int lane, uint8_t out[16])
{
    memset(out, 0, 16);
    if (source.bytes == 16) {
        memcpy(out, emu_row(warp, source) + lane * 16, 16);
    } else {
        uint64_t value = emu_lane_value(warp, source, lane);
        memcpy(out, &value, 8);
    }
}

/* One element: reads, computes, writes; true when memory has changed. */
static bool apply(struct emu_warp *warp, const struct emu_insn *insn, int lane, uint32_t index,
                  uint8_t *at, bool flush)
{
    uint32_t bytes = emu_types[insn->type].bits / 8;
    uint8_t old[16] = {0}, b[16], c[16] = {0}, result[16];
    memcpy(old, at, bytes);
    operand_bytes(warp, insn->list[insn->vector + index], lane, b);
    if (insn->mode == ATOMIC_CAS)
        operand_bytes(warp, insn->s[1], lane, c);
    emu_atomic_apply((enum emu_atomic)insn->mode, (enum emu_type)insn->type, flush, old, b, c,
                     result);
    memcpy(at, result, bytes);
    if (!insn->list[index].absent) {
        if (bytes == 16) {
            memcpy(emu_row(warp, insn->list[index]) + lane * 16, old, 16);
        } else {
            uint64_t value = 0;
            memcpy(&value, old, 8);
            emu_set_lane(warp, insn->list[index], lane, value);
        }
    }
    return memcmp(old, result, bytes) != 0;
}

static void atom(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint64_t addresses[32];
    struct emu_place places[32];
    uint32_t element = emu_types[insn->type].bits / 8, bytes = element * insn->vector;
    bool changed = false;
    emu_addresses(warp, insn->s[0], insn->imm, addresses);
    emu_before_strong_write(warp, insn);
    emu_locate_lanes(
        warp, insn, mask, insn->space, addresses, bytes, bytes,
        ACCESS_READ | ACCESS_WRITE | emu_ordering_flags(insn) | emu_home(warp, insn->s[0]), places);
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        pthread_mutex_t *lock = lock_of(warp, &places[lane]);
        for (uint32_t i = 0; i < insn->vector; i++)
            changed |=
                apply(warp, insn, lane, i, places[lane].data + i * element, !places[lane].owner);
        if (lock)
            pthread_mutex_unlock(lock);
    }
    if (insn->op == ORDER_ACQUIRE || insn->op == ORDER_BOTH)
        emu_clock_acquire(warp, warp->cta->cluster->fences);
    if (changed) {
        emu_progress(warp->worker);
    } else {
        emu_poll(warp, insn, addresses[__builtin_ctz(mask)]);
    }
}

static void decode_semantics(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel", NULL};
    static const uint8_t codes[] = {0, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_BOTH};
    int order = emu_mod_of(decoder, orders);
    insn->op = order < 0 ? 0 : codes[order];
    insn->strong = true;
    insn->scope = (uint8_t)emu_mod_scope(decoder, SCOPE_GPU);
}

static void decode_values(struct emu_decoder *decoder, struct emu_insn *insn, uint32_t value,
                          bool has_result)
{
    uint32_t count;
    const struct emu_arg *items = emu_items(decoder, emu_operand_at(decoder, value), &count);
    if (count != insn->vector)
        emu_refuse(decoder, "%u elements stand in the vector, %u are due", count, insn->vector);
    insn->list = emu_alloc(&decoder->program->arena, 2 * count, sizeof *insn->list);
    insn->list_count = (uint16_t)(2 * count);
    for (uint32_t i = 0; i < count; i++)
        insn->list[count + i] = emu_read(decoder, &items[i], insn->type);
    if (has_result)
        items = emu_items(decoder, emu_operand_at(decoder, 0), &count);
    if (count != insn->vector)
        emu_refuse(decoder, "%u elements stand in the vector, %u are due", count, insn->vector);
    for (uint32_t i = 0; i < count; i++) {
        insn->list[i].absent = !has_result || items[i].kind == OPERAND_SINK;
        if (!insn->list[i].absent)
            insn->list[i] = emu_write(decoder, &items[i], insn->type);
    }
}

static void decode_atom(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const vectors[] = {"v2", "v4", "v8", NULL};
    bool has_result = decoder->statement->mnemonic.length == 4;
    uint32_t address = has_result ? 1 : 0;
    if (!has_result && emu_mod(decoder, "async")) {
        emu_decode_async_store(decoder, insn, true);
        return;
    }
    insn->space = (uint8_t)emu_mod_space(decoder);
    decode_semantics(decoder, insn);
    emu_mod(decoder, "L2::cache_hint");
    bool noftz = emu_mod(decoder, "noftz");
    int vector = emu_mod_of(decoder, vectors);
    insn->vector = vector < 0 ? 1 : (uint8_t)(2 << vector);
    int op = emu_mod_of(decoder, emu_atomic_names);
    if (op < 0)
        emu_refuse(decoder, "an operation such as .add is missing");
    insn->mode = (uint8_t)op;
    insn->type = (uint8_t)emu_mod_type(decoder);
    if (!emu_atomic_allows((enum emu_atomic)op, (enum emu_type)insn->type))
        emu_refuse(decoder, "operation .%s has no form for type .%s", emu_atomic_names[op],
                   emu_types[insn->type].name);
    if (op == ATOMIC_ADD && insn->type == T_s64)
        emu_refuse(decoder, ".add has no form for type .s64");
    if (insn->vector > 1 && emu_types[insn->type].kind != 'F')
        emu_refuse(decoder, "vectors are of floats");
    bool small = emu_types[insn->type].kind == 'F' && insn->type != T_f32 && insn->type != T_f64;
    if (noftz != small)
        emu_refuse(decoder, ".noftz stands with 16-bit floats, and only with them");
    uint32_t least = address + (op == ATOMIC_CAS ? 3 : 2);
    emu_read_policy(decoder, least);
    insn->exec = atom;
    emu_address(decoder, emu_operand_at(decoder, address), &insn->s[0], &insn->imm);
    decode_values(decoder, insn, address + 1, has_result);
    if (op == ATOMIC_CAS)
        insn->s[1] = emu_read_nth(decoder, address + 2, insn->type);
    if (insn->space == SPACE_GLOBAL || insn->space == SPACE_GENERIC)
        decoder->program->communicates = true;
}

const struct emu_opcode emu_atomic_opcodes[] = {{"atom", decode_atom, CLASS_ATOMIC},
                                                {"red", decode_atom, CLASS_ATOMIC},
                                                {NULL, NULL, CLASS_OTHER}};
