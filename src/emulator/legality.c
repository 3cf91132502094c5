/* SPDX-License-Identifier: Apache-2.0 */
/* Statements against the rows of the instruction table whose text they have. */
#include "src/emulator/legality.h"

#include "src/emulator/decode.h"
#include "src/ptxgen/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 128, SPELLINGS = 256, LONGEST = 320, NONE = 0xffff };

/* A row of the table as a text spells it. */
struct reading {
    uint16_t row, n;
    uint8_t ptx, sm;     /* what the modifiers need */
    const char *missing; /* a modifier of the group of which one must stand, and none does */
    const char *excess;  /* a modifier that the instruction does not take */
    const char *late;    /* the modifier that needs more than the instruction */
    struct reading *next;
};

/* One spelling of an instruction, modifiers included, and the rows that it may be. */
struct spelling {
    char *text;
    struct reading *readings;
    bool unknown; /* of an instruction whose every text is in the table, and this is not */
    struct spelling *next;
};

struct emu_legality {
    struct emu_arena *arena;
    ptx_target target;
    int version;
    uint16_t rows[BUCKETS], *next_row; /* by the hash of the first word; NONE ends a chain */
    struct spelling *spellings[SPELLINGS];
};

static uint32_t hash_of(const char *text, size_t length)
{
    uint32_t hash = 5381;
    for (size_t i = 0; i < length; i++)
        hash = hash * 33 + (unsigned char)text[i];
    return hash ^ hash >> 13;
}

static bool read_target(struct emu_str name, ptx_target *target)
{
    char text[16];
    ptxgen_error err;
    if (name.length >= sizeof text)
        return false;
    memcpy(text, name.text, name.length);
    text[name.length] = 0;
    return ptx_target_parse(text, target, &err) == PTXGEN_OK;
}

struct emu_legality *emu_legality_new(struct emu_arena *arena, const struct emu_module *module)
{
    struct emu_legality *made = emu_alloc(arena, 1, sizeof *made);
    made->arena = arena;
    made->version = (int)(module->version_major * 10 + module->version_minor);
    if (!read_target(module->target, &made->target))
        return NULL; /* older than the table */
    made->next_row = emu_alloc(arena, ptx_op_count, sizeof *made->next_row);
    memset(made->rows, 0xff, sizeof made->rows);
    for (size_t row = ptx_op_count; row-- > 0;) {
        const struct ptx_string text = ptx_op_text(&ptx_ops[row]);
        uint16_t *first = &made->rows[hash_of(text.s, strcspn(text.s, ".{")) % BUCKETS];
        made->next_row[row] = *first;
        *first = (uint16_t)row;
    }
    return made;
}

bool emu_legality_of_target(const struct emu_module *module, ptxgen_error *err)
{
    ptx_target target;
    ptxgen_error why;
    if (!read_target(module->target, &target))
        return true; /* whether it runs on the chip is known without the table */
    target.max_ptx = (int)(module->version_major * 10 + module->version_minor);
    if (ptx_target_check(&target, &why) == PTXGEN_OK)
        return true;
    ptxgen_fail(err, PTXGEN_ERROR_PTX_SYNTAX,
                "line %u, column 1: .target %.*s needs .version %d.%d or later, not %u.%u",
                module->target_line, (int)module->target.length, module->target.text,
                ptx_target_first_ptx(&target) / 10, ptx_target_first_ptx(&target) % 10,
                module->version_major, module->version_minor);
    return false;
}

/* ---- spellings ---- */

static bool is_one_of(const char *text, const char *const *words)
{
    size_t length = strcspn(text, ".{");
    while (*words && (strlen(*words) != length || strncmp(*words, text, length) != 0))
        words++;
    return *words != NULL;
}

static bool is_sum_or_product(const char *text)
{
    static const char *const words[] = {"add", "sub", "mul", NULL};
    return is_one_of(text, words);
}

static bool moves_bits(const char *text)
{
    static const char *const words[] = {"ld", "ldu", "st", "mov", "selp", "shfl", NULL};
    return is_one_of(text, words);
}

/* "….f32.f32", or between the two formats of 16 bits. */
static bool ends_in_one_type(const char *text)
{
    const char *last = strrchr(text, '.'), *before = last;
    while (before > text && *--before != '.' && *before != '}')
        continue;
    size_t length = strlen(last + 1);
    bool same = (size_t)(last - before) == length + 1 && !strncmp(before + 1, last + 1, length);
    return same || !strncmp(before + 1, "f16.bf16", 9) || !strncmp(before + 1, "bf16.f16", 9);
}

/* "cvt.u32.u32", which the table leaves out. */
static bool copies_one_type(const char *text)
{
    return ends_in_one_type(text) && strchr(text + strlen("cvt."), '.') == strrchr(text, '.');
}

static bool is_conversion(const char *text)
{
    return !strncmp(text, "cvt.", 4) && strncmp(text, "cvt.pack.", 9) != 0;
}

/* Whether a modifier of a {group!} may be left out: a sum rounds to nearest without .rn, an atomic
 * is of scope .gpu, setp's .and stands only with a third source, and a conversion need not round
 * where it has one type. */
static bool may_be_left_out(const char *text, const char *group)
{
    static const char *const atomics[] = {"atom", "red", NULL};
    return is_sum_or_product(text) || is_one_of(text, atomics) || !strncmp(group, "bool", 4) ||
           !strncmp(group, "fencesem", 8) || (!strncmp(text, "cvt{", 4) && ends_in_one_type(text));
}

struct matching {
    const char *row_text;
    struct reading *reading;
};

static bool match(const struct matching *m, const char *row, const char *text);

static bool match_number(const struct matching *m, const char *row, const char *text)
{
    char *end;
    unsigned long n = *text >= '1' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    if (!n || n > 999 || !ptx_n_is_legal(ptx_op_n(&ptx_ops[m->reading->row]), (unsigned)n))
        return false;
    m->reading->n = (uint16_t)n;
    return match(m, row, end);
}

/* One of a group's modifiers, or none of them. */
static bool match_group(const struct matching *m, const char *slot, const char *text)
{
    size_t length = strcspn(slot, "!}");
    const char *rest = strchr(slot, '}') + 1;
    const struct ptx_modifier_group *group = ptx_find_group(slot, length);
    if (!group)
        return match_number(m, rest, text);
    struct reading before = *m->reading;
    for (size_t i = 0; i < group->count; i++) {
        const struct ptx_modifier *modifier = &group->alternatives[i];
        size_t bytes = strlen(modifier->text);
        if (strncmp(text, modifier->text, bytes) != 0 ||
            (text[bytes] && text[bytes] != '.' && text[bytes] != ':'))
            continue;
        if (modifier->ptx > m->reading->ptx)
            m->reading->ptx = modifier->ptx;
        if (modifier->sm > m->reading->sm)
            m->reading->sm = modifier->sm;
        if (modifier->ptx || modifier->sm)
            m->reading->late = modifier->text;
        if (match(m, rest, text + bytes))
            return true;
        *m->reading = before;
    }
    if (slot[length] == '!' && !may_be_left_out(m->row_text, slot))
        m->reading->missing = group->alternatives[0].text;
    return match(m, rest, text);
}

static bool match(const struct matching *m, const char *row, const char *text)
{
    while (*row && *row != '{' && *row == *text) {
        row++, text++;
        bool implied = !strncmp(row, ".rn", 3) && strncmp(text, ".rn", 3) != 0;
        row += implied && is_sum_or_product(m->row_text) ? 3 : 0;
    }
    return *row == '{' ? match_group(m, row + 1, text) : !*row && !*text;
}

/* The rows that have this very text. */
static struct reading *read_rows(struct emu_legality *legality, const char *text)
{
    struct reading *list = NULL, **end = &list;
    uint16_t row = legality->rows[hash_of(text, strcspn(text, ".")) % BUCKETS];
    for (; row != NONE; row = legality->next_row[row]) {
        const struct ptx_string row_text = ptx_op_text(&ptx_ops[row]);
        struct reading reading = {.row = row};
        const struct matching m = {row_text.s, &reading};
        if (!match(&m, row_text.s, text))
            continue;
        *end = emu_alloc(legality->arena, 1, sizeof **end);
        **end = reading;
        end = &(*end)->next;
    }
    return list;
}

/* The table has one type of each width for what moves bits; texts have any. */
static struct reading *read_other_types(struct emu_legality *legality, const char *text)
{
    const char *type = strrchr(text, '.');
    if (!moves_bits(text) || !type || !type[1] || !strchr("busf", type[1]) || type[2] < '1' ||
        type[2] > '9')
        return NULL;
    char other[LONGEST];
    struct reading *readings = NULL;
    for (const char *kind = "usfb"; *kind && !readings; kind++) {
        snprintf(other, sizeof other, "%.*s.%c%s", (int)(type - text), text, *kind, type + 2);
        readings = read_rows(legality, other);
    }
    return readings;
}

/* A conversion that is in the table but for its rounding. */
static struct reading *read_without_rounding(struct emu_legality *legality, const char *text)
{
    static const char *const roundings[] = {".rn.",  ".rz.",  ".rm.",  ".rp.",
                                            ".rni.", ".rzi.", ".rmi.", ".rpi."};
    char other[LONGEST];
    struct reading *readings = NULL;
    for (size_t i = 0; i < sizeof roundings / sizeof *roundings && !readings; i++) {
        const char *at = is_conversion(text) ? strstr(text, roundings[i]) : NULL;
        if (!at)
            continue;
        snprintf(other, sizeof other, "%.*s%s", (int)(at - text), text,
                 at + strlen(roundings[i]) - 1);
        readings = read_rows(legality, other);
        for (struct reading *r = readings; r; r = r->next) {
            r->excess = "a rounding";
            r->missing = NULL;
        }
    }
    return readings;
}

static struct reading *read_spelling(struct emu_legality *legality, const char *text)
{
    struct reading *readings = read_rows(legality, text);
    if (!readings)
        readings = read_other_types(legality, text);
    return readings ? readings : read_without_rounding(legality, text);
}

/* The mnemonic with its modifiers; false when that is longer than any row's. */
static bool spell(const struct emu_statement *statement, char text[LONGEST])
{
    size_t used = statement->mnemonic.length;
    if (used >= LONGEST)
        return false;
    memcpy(text, statement->mnemonic.text, used);
    for (uint32_t i = 0; i < statement->modifier_count; i++) {
        struct emu_str modifier = statement->modifiers[i];
        if (used + 1 + modifier.length >= LONGEST)
            return false;
        text[used++] = '.';
        memcpy(text + used, modifier.text, modifier.length);
        used += modifier.length;
    }
    text[used] = 0;
    return true;
}

static const struct spelling *find_spelling(struct emu_legality *legality, const char *text)
{
    size_t length = strlen(text);
    struct spelling **chain = &legality->spellings[hash_of(text, length) % SPELLINGS];
    for (const struct spelling *known = *chain; known; known = known->next)
        if (!strcmp(known->text, text))
            return known;
    struct spelling *spelling = emu_alloc(legality->arena, 1, sizeof *spelling);
    spelling->text = emu_copy_text(legality->arena, text, length);
    spelling->readings = read_spelling(legality, text);
    spelling->unknown = !spelling->readings && is_conversion(text) && !copies_one_type(text);
    spelling->next = *chain;
    *chain = spelling;
    return spelling;
}

/* ---- operands ---- */

static bool is_literal(const struct emu_arg *operand)
{
    return operand->kind == OPERAND_INT || operand->kind == OPERAND_F32 ||
           operand->kind == OPERAND_F64;
}

static bool is_scalar(const struct emu_arg *operand)
{
    return is_literal(operand) || operand->kind == OPERAND_NAME || operand->kind == OPERAND_SINK;
}

/* Whether the operand is of the term's kind; its value may still be one that the term excludes. */
static bool is_of_kind(const struct ptx_term *term, unsigned count, const struct emu_arg *operand)
{
    switch (term->kind) {
    case PTX_TERM_VALUE: return is_scalar(operand);
    case PTX_TERM_VECTOR:
        return count == 1 ? operand->kind != OPERAND_ADDRESS
                          : operand->kind == OPERAND_VECTOR && operand->count == count;
    case PTX_TERM_ADDRESS: return operand->kind == OPERAND_ADDRESS && operand->count == 1;
    case PTX_TERM_TENSOR: return operand->kind == OPERAND_ADDRESS && operand->count == 2;
    case PTX_TERM_CONST: return operand->kind == OPERAND_INT;
    case PTX_TERM_LITERAL:
        return is_scalar(operand) && emu_str_is(operand->name, ptx_literal(term).s);
    default: return operand->kind == OPERAND_NAME;
    }
}

/* The operand of each of a row's terms, in turn; a term after a bar has its operand's pair. */
static bool operands_fit(const struct emu_statement *statement, const struct reading *reading,
                         const struct emu_arg *of_term[])
{
    const struct ptx_op *op = &ptx_ops[reading->row];
    uint32_t used = 0;
    for (unsigned i = 0; i < op->term_count; i++) {
        const struct ptx_term *term = ptx_op_term(op, i);
        const struct emu_arg *operand = NULL;
        if ((term->flags & PTX_TERM_BAR) && used)
            operand = statement->operands[used - 1].pair;
        else if (used < statement->operand_count)
            operand = &statement->operands[used++];
        if (!operand || !is_of_kind(term, ptx_term_operands(term, reading->n), operand))
            return false;
        bool has_pair = i + 1u < op->term_count && (ptx_op_term(op, i + 1)->flags & PTX_TERM_BAR);
        if (operand->pair && !has_pair)
            return false;
        of_term[i] = operand;
    }
    return used == statement->operand_count;
}

/* ---- rules ---- */

enum { SENTENCE = 640, MOST_TERMS = 16 };

static bool is_baseline(const struct ptx_op *op)
{
    const struct ptx_need *needs = ptx_op_needs(op);
    for (unsigned i = 0; i < op->need_count; i++)
        if (needs[i].sm <= 80 && needs[i].ptx <= 70)
            return true;
    return op->need_count == 0;
}

static bool suits_target(const struct emu_legality *legality, const struct reading *reading,
                         char why[SENTENCE])
{
    const struct ptx_op *op = &ptx_ops[reading->row];
    const ptx_target *target = &legality->target;
    int first = is_baseline(op) ? 0 : ptx_needs_met(ptx_op_needs(op), op->need_count, target);
    char needs[PTX_NEEDS_SIZE];
    if (!is_baseline(op) && (first == 0 || first > legality->version)) {
        ptx_needs_describe(op, needs);
        snprintf(why, SENTENCE, "needs %s", needs);
        return false;
    }
    if (reading->sm > target->sm || reading->ptx > legality->version) {
        snprintf(why, SENTENCE, "has %s, which needs sm_%d with PTX %d.%d", reading->late,
                 reading->sm ? reading->sm : 80, reading->ptx ? reading->ptx / 10 : 7,
                 reading->ptx % 10);
        return false;
    }
    return true;
}

/* Predicates may be constants but for wgmma's, and what only moves 16-bit floats takes their bits.
 */
static bool must_be_register(const struct ptx_op *op, const struct ptx_term *term)
{
    const struct ptx_string text = ptx_op_text(op);
    return (term->flags & PTX_TERM_REGISTER) && term->kind == PTX_TERM_VALUE &&
           !moves_bits(text.s) && (term->type != PTX_PRED || !strncmp(text.s, "wgmma", 5));
}

static bool literal_suits(const struct ptx_op *op, const struct ptx_term *term,
                          const struct emu_arg *operand, char why[SENTENCE])
{
    int64_t value = (int64_t)operand->bits;
    if (must_be_register(op, term)) {
        snprintf(why, SENTENCE, "takes a register, not the constant %.*s",
                 (int)operand->name.length, operand->name.text);
        return false;
    }
    bool has_range = term->kind == PTX_TERM_CONST || term->hi;
    if (has_range && operand->kind == OPERAND_INT && !ptx_constant_fits(term, value)) {
        snprintf(why, SENTENCE, "takes constants from %d to %d%s, not %lld", term->lo, term->hi,
                 term->flags & PTX_TERM_POW2 ? " that are powers of two"
                 : term->step > 1            ? " in steps"
                                             : "",
                 (long long)value);
        return false;
    }
    return true;
}

static bool constants_suit(const struct reading *reading, const struct emu_arg *const of_term[],
                           char why[SENTENCE])
{
    const struct ptx_op *op = &ptx_ops[reading->row];
    for (unsigned i = 0; i < op->term_count; i++) {
        const struct ptx_term *term = ptx_op_term(op, i);
        bool has_constants = term->kind == PTX_TERM_VALUE || term->kind == PTX_TERM_CONST;
        if (has_constants && is_literal(of_term[i]) && !literal_suits(op, term, of_term[i], why))
            return false;
        if ((term->flags & PTX_TERM_UPTO) && i && of_term[i]->kind == OPERAND_INT &&
            of_term[i - 1]->kind == OPERAND_INT && of_term[i]->bits > of_term[i - 1]->bits) {
            snprintf(why, SENTENCE, "takes at most the %llu before it, not %llu",
                     (unsigned long long)of_term[i - 1]->bits,
                     (unsigned long long)of_term[i]->bits);
            return false;
        }
    }
    return true;
}

static bool modifiers_suit(const struct reading *reading, char why[SENTENCE])
{
    if (reading->missing)
        snprintf(why, SENTENCE, "needs a modifier such as %s", reading->missing);
    if (reading->excess)
        snprintf(why, SENTENCE, "does not take %s", reading->excess);
    return !reading->missing && !reading->excess;
}

/* The rows of special registers have their names as operands. */
static bool names_its_operand(const struct emu_statement *statement, const struct reading *reading)
{
    const struct emu_arg *of_term[MOST_TERMS];
    const struct ptx_op *op = &ptx_ops[reading->row];
    bool named = false;
    for (unsigned i = 0; i < op->term_count; i++)
        named = named || ptx_op_term(op, i)->kind == PTX_TERM_LITERAL;
    return named && operands_fit(statement, reading, of_term);
}

/* A text with several rows is legal if it is so by one of them; a row that names an operand is the
 * only one that the text has. */
void emu_legality_check(struct emu_decoder *decoder)
{
    struct emu_legality *legality = decoder->legality;
    char text[LONGEST], why[SENTENCE] = "", sentence[SENTENCE];
    if (!legality || !spell(decoder->statement, text))
        return;
    const struct spelling *spelling = find_spelling(legality, text);
    if (spelling->unknown)
        emu_refuse(decoder, "%s is no instruction: these types have not these modifiers", text);
    const struct reading *first = spelling->readings, *named = first;
    while (named && !names_its_operand(decoder->statement, named))
        named = named->next;
    for (const struct reading *r = named ? named : first; r; r = named ? NULL : r->next) {
        const struct emu_arg *of_term[MOST_TERMS];
        if (!operands_fit(decoder->statement, r, of_term))
            continue;
        if (modifiers_suit(r, sentence) && suits_target(legality, r, sentence) &&
            constants_suit(r, of_term, sentence))
            return;
        if (!why[0])
            memcpy(why, sentence, sizeof why);
    }
    if (why[0])
        emu_refuse(decoder, "%s %s (.target sm_%d%.1s, .version %d.%d)", text, why,
                   legality->target.sm, &legality->target.suffix, legality->version / 10,
                   legality->version % 10);
}
