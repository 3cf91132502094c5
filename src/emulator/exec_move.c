/* SPDX-License-Identifier: Apache-2.0 */
/* ISA "mov", "cvta", "isspacep", "mapa", "getctarank". */
#include "src/emulator/arith.h"
#include "src/emulator/layout.h"

#include <string.h>

/* ---- mov ---- */

#define MOVE(T, name)                                                                              \
    static void name(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)            \
    {                                                                                              \
        T *d = EMU_ROW_OF(T, insn->d);                                                             \
        const T *a = EMU_ROW_OF(T, insn->s[0]);                                                    \
        EMU_LANES(mask, d[l] = a[l];)                                                              \
    }
struct wide {
    uint64_t word[2];
};
MOVE(uint16_t, mov_16)
MOVE(uint32_t, mov_32)
MOVE(uint64_t, mov_64)
MOVE(struct wide, mov_128)

static void mov_pred(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    emu_set_predicate(warp, insn->d, emu_predicate(warp, insn->s[0]), mask);
}

/* Elements of a vector to one register, the first lowest. */
static void mov_pack(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint8_t *row = emu_row(warp, insn->d);
    uint32_t bytes = insn->d.bytes / insn->list_count;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        for (uint32_t i = 0; i < insn->list_count; i++) {
            uint64_t value = emu_lane_value(warp, insn->list[i], lane);
            memcpy(row + (uint32_t)lane * insn->d.bytes + i * bytes, &value, bytes);
        }
    }
}

static void mov_unpack(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    const uint8_t *row = emu_row(warp, insn->s[0]);
    uint32_t bytes = insn->s[0].bytes / insn->list_count;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        for (uint32_t i = 0; i < insn->list_count; i++) {
            uint64_t value = 0;
            if (insn->list[i].absent)
                continue;
            memcpy(&value, row + (uint32_t)lane * insn->s[0].bytes + i * bytes, bytes);
            emu_set_lane(warp, insn->list[i], lane, value);
        }
    }
}

static enum emu_type element_type(struct emu_decoder *decoder, uint32_t bits)
{
    switch (bits) {
    case 8: return T_b8;
    case 16: return T_b16;
    case 32: return T_b32;
    case 64: return T_b64;
    default: emu_refuse(decoder, "the elements of the vector do not fill the register");
    }
}

static void decode_vector_mov(struct emu_decoder *decoder, struct emu_insn *insn,
                              enum emu_type type, bool pack)
{
    const struct emu_arg *vector = emu_operand_at(decoder, pack ? 1 : 0);
    enum emu_type element =
        element_type(decoder, emu_types[type].bits / (vector->count ? vector->count : 1));
    insn->list = emu_alloc(&decoder->program->arena, vector->count + 1, sizeof *insn->list);
    insn->list_count = (uint16_t)vector->count;
    insn->exec = pack ? mov_pack : mov_unpack;
    for (uint32_t i = 0; i < vector->count; i++) {
        const struct emu_arg *item = &vector->items[i];
        if (!pack && item->kind == OPERAND_SINK)
            insn->list[i].absent = true;
        else
            insn->list[i] =
                pack ? emu_read(decoder, item, element) : emu_write(decoder, item, element);
    }
    if (pack)
        insn->d = emu_write_nth(decoder, 0, type);
    else
        insn->s[0] = emu_read_nth(decoder, 1, type);
}

/* mov.v2, mov.v4: the destinations are the first half of the list, the sources the second. */
static void mov_elements(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint32_t count = insn->list_count / 2u;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint64_t values[4];
        for (uint32_t i = 0; i < count; i++)
            values[i] = emu_lane_value(warp, insn->list[count + i], lane);
        for (uint32_t i = 0; i < count; i++)
            if (!insn->list[i].absent)
                emu_set_lane(warp, insn->list[i], lane, values[i]);
    }
}

static void decode_mov_elements(struct emu_decoder *decoder, struct emu_insn *insn, uint32_t count)
{
    enum emu_type type = emu_need_type(decoder, "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64");
    const struct emu_arg *to = emu_operand_at(decoder, 0), *from = emu_operand_at(decoder, 1);
    struct emu_src components[4];
    bool special = emu_read_special_vector(decoder, from, type, components);
    if (to->kind != OPERAND_VECTOR || (!special && from->kind != OPERAND_VECTOR))
        emu_refuse(decoder, "a vector in braces, or a special register that is one, is due");
    uint32_t sources = special ? 4 : from->count;
    if (to->count != count || sources != count)
        emu_refuse(decoder, "%u elements to %u; %u are due", sources, to->count, count);
    if (special && emu_types[type].bits > 32)
        emu_refuse(decoder, "special registers have 32 bits");
    insn->list = emu_alloc(&decoder->program->arena, 2 * count, sizeof *insn->list);
    insn->list_count = (uint16_t)(2 * count);
    insn->exec = mov_elements;
    for (uint32_t i = 0; i < count; i++) {
        insn->list[count + i] = special ? components[i] : emu_read(decoder, &from->items[i], type);
        if (to->items[i].kind == OPERAND_SINK)
            insn->list[i].absent = true;
        else
            insn->list[i] = emu_write(decoder, &to->items[i], type);
    }
}

static void decode_mov(struct emu_decoder *decoder, struct emu_insn *insn)
{
    bool pairs = emu_mod(decoder, "v2");
    if (pairs || emu_mod(decoder, "v4")) {
        emu_need_operands(decoder, 2, 2);
        decode_mov_elements(decoder, insn, pairs ? 2 : 4);
        return;
    }
    enum emu_type type =
        emu_need_type(decoder, "pred b16 b32 b64 b128 u16 u32 u64 s16 s32 s64 f32 f64");
    emu_need_operands(decoder, 2, 2);
    bool unpack = emu_operand_at(decoder, 0)->kind == OPERAND_VECTOR;
    bool pack = emu_operand_at(decoder, 1)->kind == OPERAND_VECTOR;
    if (pack || unpack) {
        decode_vector_mov(decoder, insn, type, pack);
        return;
    }
    switch (emu_types[type].bits) {
    case 1: insn->exec = mov_pred; break;
    case 16: insn->exec = mov_16; break;
    case 32: insn->exec = mov_32; break;
    case 64: insn->exec = mov_64; break;
    default: insn->exec = mov_128;
    }
    insn->s[0] = emu_read_nth(decoder, 1, type);
    insn->d = emu_write_nth(decoder, 0, type);
}

/* ---- address windows ---- */

static uint64_t window_base(enum emu_space space)
{
    switch (space) {
    case SPACE_SHARED:
    case SPACE_SHARED_CLUSTER: return EMU_SHARED_BASE;
    case SPACE_LOCAL: return EMU_LOCAL_BASE;
    case SPACE_PARAM: return EMU_PARAM_BASE;
    default: return 0;
    }
}

static void cvta(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint64_t base = window_base(insn->space);
    uint64_t keep = base ? ((uint64_t)1 << EMU_WINDOW_SHIFT) - 1 : ~(uint64_t)0;
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1))
            continue;
        uint64_t address = emu_lane_value(warp, insn->s[0], l);
        emu_set_lane(warp, insn->d, l, insn->mode ? address & keep : (address & keep) | base);
    }
}

static void decode_cvta(struct emu_decoder *decoder, struct emu_insn *insn)
{
    insn->mode = emu_mod(decoder, "to");
    insn->space = (uint8_t)emu_mod_space(decoder);
    if (insn->space == SPACE_GENERIC)
        emu_refuse(decoder, "a state space is missing");
    enum emu_type type = emu_need_type(decoder, "u64 u32");
    emu_need_operands(decoder, 2, 2);
    insn->exec = cvta;
    insn->s[0] = emu_read_nth(decoder, 1, type);
    insn->d = emu_write_nth(decoder, 0, type);
}

/* The window of kernel parameters lies within that of global memory (ISA "Generic Addressing"). */
static void isspacep(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    const uint64_t wanted = window_base(insn->space) >> EMU_WINDOW_SHIFT;
    const uint64_t param = window_base(SPACE_PARAM) >> EMU_WINDOW_SHIFT;
    uint32_t result = 0;
    for (int l = 0; l < 32; l++) {
        uint64_t address = emu_lane_value(warp, insn->s[0], l),
                 window = address >> EMU_WINDOW_SHIFT;
        bool own = insn->space != SPACE_SHARED || (uint32_t)address >> EMU_RANK_SHIFT == 0;
        bool hit = wanted ? window == wanted && own : window > 3 || window == param;
        result |= (uint32_t)hit << l;
    }
    emu_set_predicate(warp, insn->d, result, mask);
}

static void decode_isspacep(struct emu_decoder *decoder, struct emu_insn *insn)
{
    insn->space = (uint8_t)emu_mod_space(decoder);
    if (insn->space == SPACE_GENERIC)
        emu_refuse(decoder, "a state space is missing");
    emu_need_operands(decoder, 2, 2);
    insn->exec = isspacep;
    insn->s[0] = emu_read_nth(decoder, 1, T_b64);
    insn->d = emu_write_nth(decoder, 0, T_pred);
}

/* mapa: the same variable in the CTA of rank b. */
static void mapa(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint64_t base = insn->space == SPACE_GENERIC ? EMU_SHARED_BASE : 0;
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1))
            continue;
        uint64_t address = emu_lane_value(warp, insn->s[0], l);
        uint64_t rank = emu_lane_value(warp, insn->s[1], l);
        if (rank >= warp->cta->cluster->cta_count)
            emu_fault(warp, insn, l, PTXGEN_CHECK_OPERANDS, "CTA rank %llu in a cluster of %u CTAs",
                      (unsigned long long)rank, warp->cta->cluster->cta_count);
        emu_set_lane(warp, insn->d, l,
                     base | (rank + 1) << EMU_RANK_SHIFT | (address & EMU_SHARED_OFFSET_MASK));
    }
}

static void decode_mapa(struct emu_decoder *decoder, struct emu_insn *insn)
{
    insn->space = (uint8_t)emu_mod_space(decoder);
    enum emu_type type = emu_need_type(decoder, "u32 u64");
    emu_need_operands(decoder, 3, 3);
    insn->exec = mapa;
    insn->s[0] = emu_read_nth(decoder, 1, type);
    insn->s[1] = emu_read_nth(decoder, 2, T_b32);
    insn->d = emu_write_nth(decoder, 0, type);
}

static void getctarank(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1))
            continue;
        uint32_t rank = (uint32_t)emu_lane_value(warp, insn->s[0], l) >> EMU_RANK_SHIFT;
        emu_set_lane(warp, insn->d, l, rank ? rank - 1 : warp->cta->rank);
    }
}

static void decode_getctarank(struct emu_decoder *decoder, struct emu_insn *insn)
{
    emu_mod_space(decoder);
    enum emu_type type = emu_need_type(decoder, "u32 u64");
    emu_need_operands(decoder, 2, 2);
    insn->exec = getctarank;
    insn->s[0] = emu_read_nth(decoder, 1, type);
    insn->d = emu_write_nth(decoder, 0, T_b32);
}

const struct emu_opcode emu_move_opcodes[] = {{"mov", decode_mov, CLASS_MOVE},
                                              {"cvta", decode_cvta, CLASS_MOVE},
                                              {"isspacep", decode_isspacep, CLASS_COMPARE},
                                              {"mapa", decode_mapa, CLASS_MOVE},
                                              {"getctarank", decode_getctarank, CLASS_MOVE},
                                              {NULL, NULL, CLASS_OTHER}};
