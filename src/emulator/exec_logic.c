/* SPDX-License-Identifier: Apache-2.0 */
/* ISA "lop3" and "prmt". */
#include "src/emulator/arith.h"

/* One bit of the table at a time, as masks: at most eight terms, all on 32 lanes. */
static inline uint32_t lookup(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t result = 0;
    for (uint32_t term = 0; term < 8; term++) {
        uint32_t keep = table >> term & 1 ? 0xffffffffu : 0;
        result |= (term & 4 ? a : ~a) & (term & 2 ? b : ~b) & (term & 1 ? c : ~c) & keep;
    }
    return result;
}

static void lop3(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint32_t *d = EMU_ROW_OF(uint32_t, insn->d);
    const uint32_t *a = EMU_ROW_OF(uint32_t, insn->s[0]), *b = EMU_ROW_OF(uint32_t, insn->s[1]);
    const uint32_t *c = EMU_ROW_OF(uint32_t, insn->s[2]);
    uint32_t table = (uint32_t)insn->imm;
    uint32_t out[32];
    for (int l = 0; l < 32; l++)
        out[l] = lookup(a[l], b[l], c[l], table);
    EMU_LANES(mask, d[l] = out[l];)
    if (insn->e.bank == 0 && insn->has_value) {
        uint32_t any = 0, q = emu_predicate(warp, insn->s[3]);
        for (int l = 0; l < 32; l++)
            any |= (uint32_t)(out[l] != 0) << l;
        emu_set_predicate(warp, insn->e, insn->mode ? any & q : any | q, mask);
    }
}

/* lop3.b32 d, a, b, c, lut  and  lop3.{or,and}.b32 d|p, a, b, c, lut, q. */
static void decode_lop3(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const bools[] = {"or", "and", NULL};
    int combine = emu_mod_of(decoder, bools);
    emu_need_type(decoder, "b32");
    emu_need_operands(decoder, combine < 0 ? 5 : 6, combine < 0 ? 5 : 6);
    uint64_t table = emu_immediate(decoder, emu_operand_at(decoder, 4));
    if (table > 255)
        emu_refuse(decoder, "immLut is %llu; it has 8 bits", (unsigned long long)table);
    insn->exec = lop3;
    insn->imm = (int64_t)table;
    for (uint32_t i = 0; i < 3; i++)
        insn->s[i] = emu_read_nth(decoder, i + 1, T_b32);
    const struct emu_arg *target = emu_operand_at(decoder, 0);
    insn->d = emu_write(decoder, target, T_b32);
    if (combine < 0)
        return;
    if (!target->pair)
        emu_refuse(decoder, "the predicate destination d|p is missing");
    insn->has_value = true;
    insn->mode = (uint8_t)combine;
    insn->s[3] = emu_read_nth(decoder, 5, T_pred);
    insn->e = emu_write(decoder, target->pair, T_pred);
}

enum { PRMT_INDEX, PRMT_F4E, PRMT_B4E, PRMT_RC8, PRMT_ECL, PRMT_ECR, PRMT_RC16 };

/* Selector nibbles of the modes that have a fixed pattern (ISA's tables). */
static uint32_t selector(uint32_t c, int mode)
{
    uint32_t s = c & 3, result = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t pick;
        switch (mode) {
        case PRMT_F4E: pick = s + i; break;
        case PRMT_B4E: pick = (s - i) & 7; break;
        case PRMT_RC8: pick = s; break;
        case PRMT_ECL: pick = i > s ? i : s; break;
        case PRMT_ECR: pick = i < s ? i : s; break;
        case PRMT_RC16: pick = (s & 1) * 2 + (i & 1); break;
        default: return c;
        }
        result |= pick << (4 * i);
    }
    return result;
}

static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t select)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t pick = select >> (4 * i) & 15;
        uint32_t byte = (uint32_t)(bytes >> (8 * (pick & 7))) & 0xff;
        if (pick & 8)
            byte = byte & 0x80 ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}

EMU_TERNARY(prmt, uint32_t, uint32_t, uint32_t, uint32_t,
            permute(x, y, insn->mode == PRMT_INDEX ? z : selector(z, insn->mode)))

static void decode_prmt(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16", NULL};
    emu_need_type(decoder, "b32");
    emu_need_operands(decoder, 4, 4);
    insn->mode = (uint8_t)(emu_mod_of(decoder, modes) + 1);
    insn->exec = prmt;
    for (uint32_t i = 0; i < 3; i++)
        insn->s[i] = emu_read_nth(decoder, i + 1, T_b32);
    insn->d = emu_write_nth(decoder, 0, T_b32);
}

const struct emu_opcode emu_logic_opcodes[] = {{"lop3", decode_lop3, CLASS_INTEGER},
                                               {"prmt", decode_prmt, CLASS_INTEGER},
                                               {NULL, NULL, CLASS_OTHER}};
