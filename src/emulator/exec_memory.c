/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ISA "Data Movement": ld, ld.global.nc, ldu, st, and the cache hints prefetch, prefetchu,
 * discard, applypriority, createpolicy, which change no value here.
 */
#include "src/emulator/access.h"
#include "src/emulator/bulk.h"
#include "src/emulator/decode.h"
#include "src/emulator/memory_order.h"
#include "src/emulator/profile.h"
#include "src/emulator/proxy.h"
#include "src/emulator/shared_buffer.h"
#include "src/emulator/shared_memory.h"

#include <string.h>

/* ---- moving elements between memory and registers ---- */

static inline uint64_t load_bits(const uint8_t *at, uint32_t bytes)
{
    uint64_t value = 0;
    switch (bytes) {
    case 1: return *at;
    case 2: memcpy(&value, at, 2); return value;
    case 4: memcpy(&value, at, 4); return value;
    default: memcpy(&value, at, 8); return value;
    }
}

static inline uint64_t widen(uint64_t value, enum emu_type type)
{
    if (emu_types[type].kind != 'S')
        return value;
    return type == T_s8    ? (uint64_t)(int8_t)value
           : type == T_s16 ? (uint64_t)(int16_t)value
           : type == T_s32 ? (uint64_t)(int32_t)value
                           : value;
}

/* A 32-bit element into or out of a 32-bit register. */
static void load_words(struct emu_warp *warp, struct emu_src to, const struct emu_place places[32],
                       uint32_t offset, uint32_t mask)
{
    uint32_t *row = (uint32_t *)(void *)emu_row(warp, to);
    EMU_EACH_LANE(mask, memcpy(&row[l], places[l].data + offset, 4););
}

static void store_words(struct emu_warp *warp, struct emu_src from,
                        const struct emu_place places[32], uint32_t offset, uint32_t mask)
{
    const uint32_t *row = (const uint32_t *)(const void *)emu_row(warp, from);
    EMU_EACH_LANE(mask, memcpy(places[l].data + offset, &row[l], 4););
}

static void load_element(struct emu_warp *warp, struct emu_src to, enum emu_type type,
                         const struct emu_place places[32], uint32_t offset, uint32_t mask)
{
    uint32_t bytes = emu_types[type].bits / 8;
    if (to.bytes == 4 && bytes == 4) {
        load_words(warp, to, places, offset, mask);
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        const uint8_t *at = places[lane].data + offset;
        if (bytes == 16)
            memcpy(emu_row(warp, to) + lane * 16, at, 16);
        else
            emu_set_lane(warp, to, lane, widen(load_bits(at, bytes), type));
    }
}

static void store_element(struct emu_warp *warp, struct emu_src from, uint32_t bytes,
                          const struct emu_place places[32], uint32_t offset, uint32_t mask)
{
    if (from.bytes == 4 && bytes == 4) {
        store_words(warp, from, places, offset, mask);
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint8_t *at = places[lane].data + offset;
        if (bytes == 16) {
            memcpy(at, emu_row(warp, from) + lane * 16, 16);
            continue;
        }
        uint64_t value = emu_lane_value(warp, from, lane);
        memcpy(at, &value, bytes);
    }
}

static bool changes_any(struct emu_warp *warp, const struct emu_insn *insn,
                        const struct emu_place places[32], uint32_t mask)
{
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        if (emu_store_changes(warp, insn, lane, places[lane].data))
            return true;
    }
    return false;
}

static void store_elements(struct emu_warp *warp, const struct emu_insn *insn,
                           const struct emu_place places[32], uint32_t mask)
{
    uint32_t element = emu_types[insn->type].bits / 8;
    if (warp->worker->look.on && changes_any(warp, insn, places, mask))
        emu_progress(warp->worker);
    for (uint32_t i = 0; i < insn->vector; i++)
        store_element(warp, insn->list[i], element, places, i * element, mask);
}

/* An address of global memory comes from no shared buffer. */
static uint32_t home_of(const struct emu_warp *warp, const struct emu_insn *insn)
{
    return insn->space == SPACE_GLOBAL ? 0 : emu_home(warp, insn->s[0]);
}

static void ld(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint64_t addresses[32];
    struct emu_place places[32];
    uint32_t element = emu_types[insn->type].bits / 8, bytes = element * insn->vector;
    emu_addresses(warp, insn->s[0], insn->imm, addresses);
    emu_locate_lanes(warp, insn, mask, insn->space, addresses, bytes, bytes,
                     ACCESS_READ | emu_ordering_flags(insn) | home_of(warp, insn), places);
    for (uint32_t i = 0; i < insn->vector; i++)
        if (!insn->list[i].absent)
            load_element(warp, insn->list[i], insn->type, places, i * element, mask);
    if (insn->strong)
        emu_after_strong_read(warp, insn, addresses[__builtin_ctz(mask)]);
}

bool emu_store_changes(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                       const uint8_t *at)
{
    uint32_t element = emu_types[insn->type].bits / 8;
    for (uint32_t i = 0; i < insn->vector; i++) {
        uint8_t bytes[16];
        if (element == 16) {
            memcpy(bytes, emu_row(warp, insn->list[i]) + lane * 16, 16);
        } else {
            uint64_t value = emu_lane_value(warp, insn->list[i], lane);
            memcpy(bytes, &value, 8);
        }
        if (memcmp(at + i * element, bytes, element) != 0)
            return true;
    }
    return false;
}

enum ptxgen_emulator_check emu_race_kind(struct emu_warp *warp, const struct emu_insn *insn,
                                         int lane, bool store, const uint8_t *at,
                                         enum ptxgen_emulator_check check)
{
    if (!store || emu_store_changes(warp, insn, lane, at))
        return check;
    return warp->cta->cluster->launch->checks & PTXGEN_CHECK_EQUAL_STORES;
}

/* Lanes that are not plainly right go one after the other, so that lanes that write one place are
 * seen to do so. */
static void st_each(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask,
                    const uint64_t addresses[32], uint32_t bytes, uint32_t flags)
{
    struct emu_place places[32];
    if (warp->worker->counters)
        emu_count_access(warp, insn, mask, insn->space, addresses, bytes);
    uint32_t plain = emu_locate_plain(warp, mask, insn->space, addresses, bytes, flags, places);
    if (insn->space == SPACE_SHARED && warp->cta->generic)
        emu_proxy_note(insn, plain, places, bytes);
    store_elements(warp, insn, places, plain);
    for (uint32_t left = mask & ~plain; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        places[lane] = emu_locate(warp, insn, lane, insn->space, addresses[lane], bytes, bytes,
                                  flags | ACCESS_STORE);
        store_elements(warp, insn, places, 1u << lane);
    }
}

static void st(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint64_t addresses[32];
    struct emu_place places[32];
    uint32_t bytes = emu_types[insn->type].bits / 8 * insn->vector;
    uint32_t flags = ACCESS_WRITE | emu_ordering_flags(insn) | home_of(warp, insn);
    emu_addresses(warp, insn->s[0], insn->imm, addresses);
    emu_go_on(warp->worker);
    if (insn->strong)
        emu_before_strong_write(warp, insn);
    if (insn->space != SPACE_LOCAL) {
        st_each(warp, insn, mask, addresses, bytes, flags);
        return;
    }
    emu_locate_lanes(warp, insn, mask, insn->space, addresses, bytes, bytes, flags, places);
    store_elements(warp, insn, places, mask);
}

/* ---- decoding ---- */

enum emu_sync_scope emu_mod_scope(struct emu_decoder *decoder, enum emu_sync_scope other)
{
    static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};
    int scope = emu_mod_of(decoder, scopes);
    return scope < 0 ? other : SCOPE_CTA + (enum emu_sync_scope)scope;
}

/* Eviction and prefetch hints: nothing of them changes a result. */
void emu_skip_hints(struct emu_decoder *decoder)
{
    const struct emu_statement *statement = decoder->statement;
    for (uint32_t i = 0; i < statement->modifier_count; i++)
        if (statement->modifiers[i].length > 4 &&
            (memcmp(statement->modifiers[i].text, "L1::", 4) == 0 ||
             memcmp(statement->modifiers[i].text, "L2::", 4) == 0))
            decoder->used |= 1u << i;
}

static uint8_t vector_of(struct emu_decoder *decoder)
{
    static const char *const vectors[] = {"v2", "v4", "v8", NULL};
    int which = emu_mod_of(decoder, vectors);
    return which < 0 ? 1 : (uint8_t)(2 << which);
}

/* volatile is relaxed of .sys scope, and so is mmio. */
static void decode_order(struct emu_decoder *decoder, struct emu_insn *insn)
{
    enum { VOLATILE = 1, MMIO = 5 };
    static const char *const orders[] = {"weak",    "volatile", "relaxed", "acquire",
                                         "release", "mmio",     NULL};
    int order;
    bool needs_scope = false;
    while ((order = emu_mod_of(decoder, orders)) >= 0) {
        insn->strong |= order > 0;
        needs_scope = needs_scope || order >= 2;
        insn->op = (uint8_t)(order == 3 || order == 4 ? order : insn->op);
        insn->scope = order == VOLATILE || order == MMIO ? SCOPE_SYS : SCOPE_GPU;
    }
    enum emu_sync_scope given = emu_mod_scope(decoder, SCOPE_NONE);
    if ((given != SCOPE_NONE) != needs_scope)
        emu_refuse(decoder, "a scope such as .gpu stands with .relaxed, .acquire and .release, and "
                            "only with them");
    if (needs_scope)
        insn->scope = (uint8_t)given;
}

static uint8_t memory_class(enum emu_space space)
{
    return space == SPACE_GLOBAL || space == SPACE_GENERIC || space == SPACE_CONST
               ? CLASS_MEMORY_GLOBAL
           : space == SPACE_SHARED || space == SPACE_SHARED_CLUSTER ? CLASS_MEMORY_SHARED
                                                                    : CLASS_MEMORY_OTHER;
}

static void decode_access(struct emu_decoder *decoder, struct emu_insn *insn, uint32_t address)
{
    static const char *const cache_operators[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", NULL};
    insn->space = (uint8_t)emu_mod_space(decoder);
    decode_order(decoder, insn);
    if (emu_mod_of(decoder, cache_operators) >= 0 && insn->strong)
        emu_refuse(decoder, "a strong access has no cache operator");
    insn->noncoherent = emu_mod(decoder, "nc");
    if (insn->noncoherent && insn->space != SPACE_GLOBAL)
        emu_refuse(decoder, ".nc is of loads from .global memory");
    emu_mod(decoder, "unified");
    emu_skip_hints(decoder);
    insn->vector = vector_of(decoder);
    insn->type = (uint8_t)emu_need_type(
        decoder, "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64");
    const struct emu_arg *operand = emu_operand_at(decoder, address);
    if (insn->space == SPACE_PARAM)
        insn->space = (uint8_t)emu_param_space(decoder, operand);
    insn->class_id = memory_class(insn->space);
    if (insn->strong && (insn->space == SPACE_GLOBAL || insn->space == SPACE_GENERIC))
        decoder->program->communicates = true;
    emu_address(decoder, operand, &insn->s[0], &insn->imm);
}

/* In a vector any kind of register may stand, but all of one width. */
static enum emu_type bits_of(enum emu_type type)
{
    switch (emu_types[type].bits) {
    case 8: return T_b8;
    case 16: return T_b16;
    case 32: return T_b32;
    case 64: return T_b64;
    default: return type;
    }
}

static void decode_elements(struct emu_decoder *decoder, struct emu_insn *insn, uint32_t index,
                            bool write)
{
    uint32_t count;
    const struct emu_arg *operand = emu_operand_at(decoder, index);
    const struct emu_arg *items = emu_items(decoder, operand, &count);
    if (count != insn->vector)
        emu_refuse(decoder, "%u elements stand in the vector, %u are due", count, insn->vector);
    insn->list = emu_alloc(&decoder->program->arena, count, sizeof *insn->list);
    insn->list_count = (uint16_t)count;
    enum emu_type type = count > 1 ? bits_of(insn->type) : (enum emu_type)insn->type;
    uint32_t width = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (write && items[i].kind == OPERAND_SINK)
            insn->list[i].absent = true;
        else
            insn->list[i] = write ? emu_write_wide(decoder, &items[i], type)
                                  : emu_read_wide(decoder, &items[i], type);
        if (items[i].kind != OPERAND_NAME)
            continue;
        if (width && insn->list[i].bytes != width)
            emu_refuse(decoder, "the registers of a vector have one width");
        width = insn->list[i].bytes;
    }
}

/* With .L2::cache_hint the last operand is the cache policy. */
void emu_read_policy(struct emu_decoder *decoder, uint32_t index)
{
    uint32_t has_policy = emu_mod_count(decoder, "L2::cache_hint");
    emu_need_operands(decoder, index + has_policy, index + has_policy);
    if (has_policy)
        emu_read_nth(decoder, index, T_b64);
}

static void decode_ld(struct emu_decoder *decoder, struct emu_insn *insn)
{
    decode_access(decoder, insn, 1);
    emu_read_policy(decoder, 2);
    insn->exec = ld;
    decode_elements(decoder, insn, 0, true);
}

/* The parameters that a function was given can only be read. */
static void refuse_parameter(struct emu_decoder *decoder, const struct emu_arg *address)
{
    uint32_t number;
    const struct emu_symbol *symbol = address->kind == OPERAND_ADDRESS
                                          ? emu_find_symbol(decoder->module, address->items[0].name,
                                                            decoder->statement->scope, &number)
                                          : NULL;
    if (symbol && symbol->kind == SYMBOL_VARIABLE && symbol->count == 3)
        emu_refuse(decoder, "'%.*s' is a parameter of this function, which it cannot write",
                   (int)symbol->name.length, symbol->name.text);
}

static void decode_st(struct emu_decoder *decoder, struct emu_insn *insn)
{
    if (emu_mod(decoder, "async")) {
        emu_decode_async_store(decoder, insn, false);
        return;
    }
    decode_access(decoder, insn, 0);
    if (insn->space == SPACE_PARAM || insn->space == SPACE_LOCAL)
        refuse_parameter(decoder, emu_operand_at(decoder, 0));
    emu_read_policy(decoder, 2);
    insn->exec = st;
    decode_elements(decoder, insn, 1, false);
}

/* ---- hints ---- */

/* prefetch{.space}.level, prefetchu.L1, prefetch.tensormap, applypriority and discard of a line. */
static void decode_hint(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const levels[] = {"L1",        "L2", "L2::evict_last", "L2::evict_normal",
                                         "tensormap", NULL};
    bool has_size = emu_str_is(decoder->statement->mnemonic, "applypriority") ||
                    emu_str_is(decoder->statement->mnemonic, "discard");
    enum emu_space space = emu_mod_space(decoder);
    if (emu_mod_of(decoder, levels) < 0)
        emu_refuse(decoder, "a level such as .L2 is missing");
    insn->space = (uint8_t)space;
    emu_need_operands(decoder, has_size ? 2 : 1, has_size ? 2 : 1);
    if (has_size && emu_immediate(decoder, emu_operand_at(decoder, 1)) != 128)
        emu_refuse(decoder, "the size is 128 bytes");
    emu_address(decoder, emu_operand_at(decoder, 0), &insn->s[0], &insn->imm);
    insn->exec = emu_exec_nothing;
    insn->class_id = CLASS_MEMORY_OTHER;
}

/* The policy is a 64-bit token without meaning here: what an H100 makes for a whole access. */
static void create_policy(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1)
            emu_set_lane(warp, insn->d, l, (uint64_t)insn->imm);
}

/* ISA "createpolicy": of a fraction of the accesses, of a range of addresses, from a property. */
static void decode_policy(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const kinds[] = {"fractional", "range", "cvt", NULL};
    static const char *const priorities[] = {"L2::evict_unchanged", "L2::evict_first",
                                             "L2::evict_last", "L2::evict_normal", NULL};
    static const char *const secondary[] = {"L2::evict_unchanged", "L2::evict_first", NULL};
    enum { FRACTIONAL, RANGE, CVT };
    int kind = emu_mod_of(decoder, kinds), priority = 0;
    int64_t offset;
    if (kind < 0)
        emu_refuse(decoder, "one of .fractional, .range and .cvt is due");
    if (kind == RANGE)
        emu_mod(decoder, "global");
    if (kind == CVT && !emu_mod(decoder, "L2"))
        emu_refuse(decoder, ".cvt needs .L2");
    if (kind != CVT) {
        priority = emu_mod_of(decoder, priorities);
        if (priority < 0)
            emu_refuse(decoder, "an eviction priority is due, such as .L2::evict_first");
        emu_mod_of(decoder, secondary);
    }
    emu_need_type(decoder, "b64");
    static const uint8_t least[] = {1, 4, 2}, most[] = {2, 4, 2};
    emu_need_operands(decoder, least[kind], most[kind]);
    if (kind == FRACTIONAL && emu_operand_count(decoder) == 2)
        emu_read_nth(decoder, 1, T_f32);
    if (kind == CVT)
        emu_read_nth(decoder, 1, T_b64);
    if (kind == RANGE) {
        emu_address(decoder, emu_operand_at(decoder, 1), &insn->s[0], &offset);
        emu_read_nth(decoder, 2, T_b32);
        emu_read_nth(decoder, 3, T_b32);
    }
    insn->imm = 0x10f0000000000000 + ((int64_t)priority << 57);
    insn->exec = create_policy;
    insn->d = emu_write_nth(decoder, 0, T_b64);
}

const struct emu_opcode emu_memory_opcodes[] = {{"ld", decode_ld, CLASS_MEMORY_OTHER},
                                                {"ldu", decode_ld, CLASS_MEMORY_GLOBAL},
                                                {"st", decode_st, CLASS_MEMORY_OTHER},
                                                {"prefetch", decode_hint, CLASS_MEMORY_OTHER},
                                                {"prefetchu", decode_hint, CLASS_MEMORY_OTHER},
                                                {"discard", decode_hint, CLASS_MEMORY_OTHER},
                                                {"applypriority", decode_hint, CLASS_MEMORY_OTHER},
                                                {"createpolicy", decode_policy, CLASS_OTHER},
                                                {NULL, NULL, CLASS_OTHER}};
