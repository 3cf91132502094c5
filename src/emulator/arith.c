/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/arith.h"

#include <string.h>

static const struct emu_row_def *const tables[] = {emu_integer_rows, emu_bits_rows, emu_float_rows,
                                                   emu_half_rows};

static bool in_list(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static bool has_mnemonic(const struct emu_row_def *row, struct emu_str mnemonic)
{
    return row->name[0] == mnemonic.text[0] &&
           strncmp(row->name, mnemonic.text, mnemonic.length) == 0 &&
           (row->name[mnemonic.length] == '.' || row->name[mnemonic.length] == '\0');
}

/* Number of selecting modifiers of a row's name that the statement, which has the row's mnemonic,
 * has; -1 when one is missing. */
static int match_name(struct emu_decoder *decoder, const char *name, uint32_t *used)
{
    const struct emu_statement *statement = decoder->statement;
    int matched = 0;
    *used = 0;
    for (const char *part = name + statement->mnemonic.length; *part == '.'; matched++) {
        struct emu_str word = {part + 1, (uint32_t)strcspn(part + 1, ".")};
        uint32_t i = 0;
        while (i < statement->modifier_count &&
               ((*used >> i & 1) || !emu_str_equal(statement->modifiers[i], word)))
            i++;
        if (i == statement->modifier_count)
            return -1;
        *used |= 1u << i;
        part = word.text + word.length;
    }
    return matched;
}

static enum emu_type last_type(const struct emu_statement *statement)
{
    for (uint32_t i = statement->modifier_count; i-- > 0;) {
        enum emu_type type = emu_type_of(statement->modifiers[i]);
        if (type != T_none)
            return type;
    }
    return T_none;
}

static const struct emu_row_def *find_row(struct emu_decoder *decoder, enum emu_type type,
                                          bool *known)
{
    const struct emu_row_def *best = NULL;
    int most = -1;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct emu_row_def *row = tables[t]; row->name[0]; row++) {
            if (!has_mnemonic(row, decoder->statement->mnemonic))
                continue;
            *known = true;
            uint32_t used;
            int matched = match_name(decoder, row->name, &used);
            if (matched > most && in_list(row->types, emu_types[type].name)) {
                most = matched;
                best = row;
                decoder->used = used;
            }
        }
    return best;
}

static void take_allowed(struct emu_decoder *decoder, struct emu_insn *insn, uint8_t allowed)
{
    static const char *const rounds[] = {"rn", "rz", "rm", "rp", NULL};
    if (allowed & (ALLOW_ROUND | NEEDS_ROUND)) {
        int round = emu_mod_of(decoder, rounds);
        if (round < 0 && (allowed & NEEDS_ROUND))
            emu_refuse(decoder, "a rounding mode (.rn .rz .rm .rp) is missing");
        insn->mode = round < 0 ? ROUND_RN : (uint8_t)round;
    }
    if (allowed & ALLOW_FTZ)
        insn->ftz = emu_mod(decoder, "ftz");
    if (allowed & ALLOW_SAT)
        insn->sat = emu_mod(decoder, "sat");
    if ((allowed & ALLOW_NAN) && emu_mod(decoder, "NaN"))
        insn->op |= OP_NAN;
    if ((allowed & ALLOW_RELU) && emu_mod(decoder, "relu"))
        insn->op |= OP_RELU;
    if ((allowed & ALLOW_XORSIGN) && emu_mod(decoder, "xorsign")) {
        if (!emu_mod(decoder, "abs"))
            emu_refuse(decoder, ".xorsign goes with .abs");
        insn->op |= OP_XORSIGN;
    }
}

static enum emu_type shaped(enum emu_type type, char shape)
{
    switch (shape) {
    case 'w':
        switch (emu_types[type].bits) {
        case 16: return T_u32;
        case 32: return T_u64;
        default: return T_b128;
        }
    case 'u': return T_u32;
    case 'h': return T_b16;
    case 'p': return T_pred;
    default: return type;
    }
}

bool emu_decode_arith(struct emu_decoder *decoder, struct emu_insn *insn)
{
    bool known = false;
    enum emu_type type = last_type(decoder->statement);
    const struct emu_row_def *row = find_row(decoder, type, &known);
    if (!row && !known)
        return false;
    if (!row)
        emu_refuse(decoder, "there is no form for type .%s with these modifiers",
                   emu_types[type].name);
    insn->type = (uint8_t)type;
    insn->exec = row->exec;
    insn->class_id = row->class_id;
    take_allowed(decoder, insn, row->allowed);
    while (emu_mod(decoder, emu_types[type].name))
        continue;
    uint32_t count = (uint32_t)strlen(row->shape);
    emu_need_operands(decoder, count, count);
    insn->d = emu_write_nth(decoder, 0, shaped(type, row->shape[0]));
    for (uint32_t i = 1; i < count; i++)
        insn->s[i - 1] = emu_read_nth(decoder, i, shaped(type, row->shape[i]));
    return true;
}
