/* SPDX-License-Identifier: Apache-2.0 */
/* Operands and modifiers: names to registers, constants and addresses. */
#include "src/emulator/decode.h"
#include "src/emulator/layout.h"
#include "src/emulator/shared_buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CONSTANTS = 512 }; /* bytes: no constant is larger */

_Noreturn void emu_refuse(struct emu_decoder *decoder, const char *format, ...)
{
    char sentence[700];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    const struct emu_statement *statement = decoder->statement;
    if (statement)
        ptxgen_fail(decoder->err, PTXGEN_ERROR_PTX_SYNTAX, "line %u, column %u: %.*s: %s",
                    statement->line, statement->column, (int)statement->mnemonic.length,
                    statement->mnemonic.text, sentence);
    else
        ptxgen_fail(decoder->err, PTXGEN_ERROR_PTX_SYNTAX, "line %u, column 1: %s",
                    decoder->unit ? decoder->unit->function->line : 1, sentence);
    longjmp(decoder->escape, 1);
}

/* ---- modifiers ---- */

bool emu_mod(struct emu_decoder *decoder, const char *name)
{
    const struct emu_statement *statement = decoder->statement;
    for (uint32_t i = 0; i < statement->modifier_count; i++) {
        if ((decoder->used >> i & 1) || !emu_str_is(statement->modifiers[i], name))
            continue;
        decoder->used |= 1u << i;
        return true;
    }
    return false;
}

uint32_t emu_mod_count(const struct emu_decoder *decoder, const char *name)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < decoder->statement->modifier_count; i++)
        count += emu_str_is(decoder->statement->modifiers[i], name);
    return count;
}

int emu_mod_of(struct emu_decoder *decoder, const char *const *names)
{
    const struct emu_statement *statement = decoder->statement;
    for (uint32_t i = 0; i < statement->modifier_count; i++) {
        if (decoder->used >> i & 1)
            continue;
        for (int n = 0; names[n]; n++) {
            if (!emu_str_is(statement->modifiers[i], names[n]))
                continue;
            decoder->used |= 1u << i;
            return n;
        }
    }
    return -1;
}

enum emu_type emu_mod_type(struct emu_decoder *decoder)
{
    const struct emu_statement *statement = decoder->statement;
    for (uint32_t i = 0; i < statement->modifier_count; i++) {
        enum emu_type type = emu_type_of(statement->modifiers[i]);
        if ((decoder->used >> i & 1) || type == T_none)
            continue;
        decoder->used |= 1u << i;
        return type;
    }
    return T_none;
}

enum emu_type emu_need_type(struct emu_decoder *decoder, const char *allowed)
{
    enum emu_type type = emu_mod_type(decoder);
    if (type == T_none)
        emu_refuse(decoder, "a type is missing; it is one of: %s", allowed);
    const char *name = emu_types[type].name;
    size_t length = strlen(name);
    for (const char *at = strstr(allowed, name); at; at = strstr(at + 1, name))
        if ((at == allowed || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return type;
    emu_refuse(decoder, "type .%s is not among: %s", name, allowed);
}

enum emu_space emu_mod_space(struct emu_decoder *decoder)
{
    static const struct {
        const char *name;
        enum emu_space space;
    } spaces[] = {{"global", SPACE_GLOBAL},      {"shared", SPACE_SHARED},
                  {"shared::cta", SPACE_SHARED}, {"shared::cluster", SPACE_SHARED_CLUSTER},
                  {"local", SPACE_LOCAL},        {"const", SPACE_CONST},
                  {"param", SPACE_PARAM},        {"param::entry", SPACE_PARAM},
                  {"param::func", SPACE_PARAM}};
    const struct emu_statement *statement = decoder->statement;
    for (uint32_t m = 0; m < statement->modifier_count; m++)
        for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
            if ((decoder->used >> m & 1) || !emu_str_is(statement->modifiers[m], spaces[i].name))
                continue;
            decoder->used |= 1u << m;
            return spaces[i].space;
        }
    return SPACE_GENERIC;
}

/* ---- registers and constants ---- */

uint32_t emu_hidden_slot(struct emu_decoder *decoder, enum emu_type type)
{
    struct emu_program *program = decoder->program;
    uint32_t bits = emu_types[type].bits, bytes = bits < 16 ? 2 : bits / 8;
    uint32_t size = type == T_pred ? 64 : bytes * 32;
    if (program->file_bytes > (64u << 20))
        emu_refuse(decoder, "the kernel uses more registers than 64 MiB a warp hold");
    emu_grow(&program->arena, &program->slots, program->slot_count, &program->slot_capacity,
             sizeof *program->slots);
    program->slots[program->slot_count] = (struct emu_slot){{"", 0}, type, program->file_bytes};
    program->file_bytes += size;
    return (uint32_t)program->slot_count++;
}

struct emu_src emu_slot_src(const struct emu_program *program, uint32_t slot)
{
    const struct emu_slot *info = &program->slots[slot];
    uint32_t bits = emu_types[info->type].bits;
    return (struct emu_src){.offset = info->offset,
                            .slot = slot,
                            .bytes = info->type == T_pred ? 0
                                     : bits < 16          ? 2
                                                          : bits / 8};
}

struct emu_src emu_constant(struct emu_decoder *decoder, uint64_t value, uint32_t bytes)
{
    struct emu_program *program = decoder->program;
    uint32_t size = bytes ? bytes * 32 : 64;
    if (program->constant_bytes + size > program->constant_capacity) {
        size_t wider =
            program->constant_capacity ? program->constant_capacity * 2 : FIRST_CONSTANTS;
        uint8_t *moved = aligned_alloc(64, wider);
        if (!moved)
            longjmp(decoder->escape, 2);
        if (program->constant_bytes)
            memcpy(moved, program->constants, program->constant_bytes);
        free(program->constants);
        program->constants = moved;
        program->constant_capacity = wider;
    }
    uint8_t *at = program->constants + program->constant_bytes;
    memset(at, 0, size);
    if (bytes == 0) {
        uint32_t mask = value ? 0xffffffffu : 0;
        memcpy(at, &mask, 4);
    } else {
        for (uint32_t lane = 0; lane < 32; lane++)
            memcpy(at + lane * bytes, &value, bytes < 8 ? bytes : 8);
    }
    struct emu_src source = {.offset = (uint32_t)program->constant_bytes,
                             .slot = EMU_NO_SLOT,
                             .bank = 1,
                             .bytes = (uint8_t)bytes};
    program->constant_bytes += size;
    return source;
}

void emu_note_read(struct emu_decoder *decoder, struct emu_src source)
{
    struct emu_insn *insn = decoder->insn;
    if (source.bank || source.absent || source.slot == EMU_NO_SLOT)
        return;
    if (insn->read_count >= sizeof decoder->reads / sizeof *decoder->reads)
        emu_refuse(decoder, "too many registers in one instruction");
    decoder->reads[insn->read_count++] = source.slot;
}

void emu_note_write(struct emu_decoder *decoder, struct emu_src source)
{
    struct emu_insn *insn = decoder->insn;
    if (source.absent)
        return;
    if (insn->write_count >= sizeof decoder->writes / sizeof *decoder->writes)
        emu_refuse(decoder, "too many registers in one instruction");
    decoder->writes[insn->write_count++] = source.slot;
}

static struct emu_src register_src(struct emu_decoder *decoder, const struct emu_symbol *symbol,
                                   uint32_t number, struct emu_str name)
{
    uint32_t *slot = &decoder->unit->register_slots[number];
    if (*slot == 0) {
        *slot = emu_hidden_slot(decoder, symbol->type) + 1;
        decoder->program->slots[*slot - 1].name = name;
    }
    return emu_slot_src(decoder->program, *slot - 1);
}

/* ISA "Special Registers": scalars. */
static const struct {
    const char *name;
    enum emu_special which;
} specials[] = {
    {"%laneid", SPECIAL_LANEID},
    {"%warpid", SPECIAL_WARPID},
    {"%nwarpid", SPECIAL_NWARPID},
    {"%smid", SPECIAL_SMID},
    {"%nsmid", SPECIAL_NSMID},
    {"%gridid", SPECIAL_GRIDID},
    {"%lanemask_eq", SPECIAL_LANEMASK_EQ},
    {"%lanemask_le", SPECIAL_LANEMASK_LE},
    {"%lanemask_lt", SPECIAL_LANEMASK_LT},
    {"%lanemask_ge", SPECIAL_LANEMASK_GE},
    {"%lanemask_gt", SPECIAL_LANEMASK_GT},
    {"%clock", SPECIAL_CLOCK},
    {"%clock_hi", SPECIAL_CLOCK_HI},
    {"%clock64", SPECIAL_CLOCK64},
    {"%globaltimer", SPECIAL_GLOBALTIMER},
    {"%globaltimer_lo", SPECIAL_GLOBALTIMER_LO},
    {"%globaltimer_hi", SPECIAL_GLOBALTIMER_HI},
    {"%cluster_ctarank", SPECIAL_CLUSTER_CTARANK},
    {"%cluster_nctarank", SPECIAL_CLUSTER_NCTARANK},
    {"%is_explicit_cluster", SPECIAL_IS_EXPLICIT_CLUSTER},
    {"%dynamic_smem_size", SPECIAL_DYNAMIC_SMEM_SIZE},
    {"%total_smem_size", SPECIAL_TOTAL_SMEM_SIZE},
    {"%aggr_smem_size", SPECIAL_AGGR_SMEM_SIZE},
    {"%reserved_smem_offset_begin", SPECIAL_ZERO},
    {"%reserved_smem_offset_end", SPECIAL_ZERO},
    {"%reserved_smem_offset_cap", SPECIAL_ZERO},
    {"%pm0", SPECIAL_ZERO},
    {"%pm1", SPECIAL_ZERO},
    {"%pm2", SPECIAL_ZERO},
    {"%pm3", SPECIAL_ZERO},
    {"%current_graph_exec", SPECIAL_ZERO},
};

/* Vectors of four, whose components are x, y, z and w, or r, g, b and a. The fourth is 0. */
static const struct {
    const char *name;
    enum emu_special x; /* y and z are the next */
} special_vectors[] = {{"%tid", SPECIAL_TID_X},
                       {"%ntid", SPECIAL_NTID_X},
                       {"%ctaid", SPECIAL_CTAID_X},
                       {"%nctaid", SPECIAL_NCTAID_X},
                       {"%clusterid", SPECIAL_CLUSTERID_X},
                       {"%nclusterid", SPECIAL_NCLUSTERID_X},
                       {"%cluster_ctaid", SPECIAL_CLUSTER_CTAID_X},
                       {"%cluster_nctaid", SPECIAL_CLUSTER_NCTAID_X}};

static bool find_scalar(struct emu_str name, enum emu_special *which)
{
    size_t i = 0, count = sizeof specials / sizeof *specials;
    while (i < count && !emu_str_is(name, specials[i].name))
        i++;
    if (i < count)
        *which = specials[i].which;
    return i < count;
}

static bool find_vector(struct emu_str name, enum emu_special *x)
{
    size_t i = 0, count = sizeof special_vectors / sizeof *special_vectors;
    while (i < count && !emu_str_is(name, special_vectors[i].name))
        i++;
    if (i < count)
        *x = special_vectors[i].x;
    return i < count;
}

static enum emu_special component_of(enum emu_special x, uint32_t component)
{
    return component == 3 ? SPECIAL_ZERO : (enum emu_special)((uint32_t)x + component);
}

/* "%laneid", or "%tid.x". */
static bool find_special(struct emu_str name, enum emu_special *which)
{
    static const char letters[] = "xyzwrgba";
    if (find_scalar(name, which))
        return true;
    const char *letter = name.length > 2 && name.text[name.length - 2] == '.'
                             ? strchr(letters, name.text[name.length - 1])
                             : NULL;
    if (!letter || !*letter || !find_vector((struct emu_str){name.text, name.length - 2}, which))
        return false;
    *which = component_of(*which, (uint32_t)(letter - letters) % 4);
    return true;
}

/* A special register is an ordinary one that the warp's start (or each read, for clocks) fills. */
static struct emu_src special_slot(struct emu_decoder *decoder, enum emu_special which,
                                   struct emu_str name, enum emu_type type)
{
    struct emu_program *program = decoder->program;
    bool clock = which >= SPECIAL_CLOCK && which <= SPECIAL_GLOBALTIMER_HI;
    if (clock)
        decoder->insn->reads_clock = true;
    for (size_t u = 0; u < program->special_count; u++) {
        const struct emu_special_use *use = &program->specials[u];
        if (use->which == which &&
            emu_types[program->slots[use->slot].type].bits == emu_types[type].bits)
            return emu_slot_src(decoder->program, use->slot);
    }
    uint32_t slot = emu_hidden_slot(decoder, type);
    program->slots[slot].name = name;
    emu_grow(&program->arena, &program->specials, program->special_count,
             &program->special_capacity, sizeof *program->specials);
    program->specials[program->special_count++] = (struct emu_special_use){which, slot};
    return emu_slot_src(decoder->program, slot);
}

static bool special_src(struct emu_decoder *decoder, struct emu_str name, enum emu_type type,
                        struct emu_src *source)
{
    enum emu_special which;
    if (find_vector(name, &which))
        emu_refuse(decoder, "'%.*s' is a vector; one of its components is due, such as %.*s.x",
                   (int)name.length, name.text, (int)name.length, name.text);
    if (!find_special(name, &which))
        return false;
    *source = special_slot(decoder, which, name, type);
    return true;
}

bool emu_read_special_vector(struct emu_decoder *decoder, const struct emu_arg *operand,
                             enum emu_type type, struct emu_src components[4])
{
    enum emu_special x;
    uint32_t number;
    if (operand->kind != OPERAND_NAME ||
        emu_find_symbol(decoder->module, operand->name, decoder->statement->scope, &number) ||
        !find_vector(operand->name, &x))
        return false;
    for (uint32_t i = 0; i < 4; i++)
        components[i] = special_slot(decoder, component_of(x, i), operand->name, type);
    return true;
}

/* Address of a variable in its own space. */
static uint64_t variable_address(struct emu_decoder *decoder, const struct emu_symbol *symbol)
{
    struct emu_unit *unit = decoder->unit;
    switch (symbol->count) {
    case 1: return emu_module_address(decoder, symbol->first);
    case 2: return unit->variable_at[symbol->first];
    case 3: return unit->parameter_at[symbol->first];
    default: return unit->result_at[symbol->first];
    }
}

/* A variable's address, which tells the buffer that it is of. */
static struct emu_src variable_src(struct emu_decoder *decoder, const struct emu_symbol *symbol,
                                   uint64_t offset, uint32_t bytes)
{
    uint64_t address = variable_address(decoder, symbol);
    struct emu_src source = emu_constant(decoder, address + offset, bytes);
    const struct emu_variable *list =
        symbol->count == 1 ? decoder->module->variables : decoder->unit->function->variables;
    if (symbol->count <= 2 && list[symbol->first].space == SPACE_SHARED)
        source.slot = emu_buffer_at(decoder->program, address);
    if (source.slot != EMU_NO_SLOT)
        emu_buffer_named(decoder, source.slot);
    return source;
}

static bool is_integer(enum emu_type type)
{
    return emu_types[type].kind == 'U' || emu_types[type].kind == 'S';
}

static uint64_t literal_bits(struct emu_decoder *decoder, const struct emu_arg *operand,
                             enum emu_type type)
{
    double wide;
    float narrow;
    uint32_t bits = (uint32_t)operand->bits;
    bool real = emu_types[type].kind == 'F' && emu_types[type].bits >= 32 && type != T_f16x2 &&
                type != T_bf16x2;
    if (emu_types[type].kind == 'F' && !real && type != T_f64)
        emu_refuse(decoder, "an operand of type .%s is a register, not '%.*s'",
                   emu_types[type].name, (int)operand->name.length, operand->name.text);
    if (operand->kind == OPERAND_INT) {
        if (real && operand->bits != 0)
            emu_refuse(decoder, "a floating-point immediate is written 0f… or 0d…, not '%.*s'",
                       (int)operand->name.length, operand->name.text);
        return operand->bits;
    }
    if (is_integer(type) || type == T_pred)
        emu_refuse(decoder, "the floating-point immediate '%.*s' does not suit type .%s",
                   (int)operand->name.length, operand->name.text, emu_types[type].name);
    if (emu_types[type].kind == 'B' &&
        emu_types[type].bits != (operand->kind == OPERAND_F32 ? 32 : 64))
        emu_refuse(decoder, "the floating-point immediate '%.*s' has not the width of type .%s",
                   (int)operand->name.length, operand->name.text, emu_types[type].name);
    if (operand->kind == OPERAND_F32) {
        memcpy(&narrow, &bits, 4);
        wide = narrow;
    } else {
        memcpy(&wide, &operand->bits, 8);
        narrow = (float)wide;
        memcpy(&bits, &narrow, 4);
    }
    uint64_t wide_bits;
    memcpy(&wide_bits, &wide, 8);
    return emu_types[type].bits == 64 ? wide_bits : bits;
}

/* ISA "Operand Type Checking": a register of a floating-point type is no integer, nor of another
 * floating-point type; .bN is any. */
static void check_kind(struct emu_decoder *decoder, struct emu_src source,
                       const struct emu_arg *operand, enum emu_type type)
{
    enum emu_type declared = decoder->program->slots[source.slot].type;
    bool packed = type == T_f16x2 || type == T_bf16x2 || type == T_u16x2 || type == T_s16x2;
    if ((packed && emu_types[declared].kind != 'B' && declared != type) ||
        (is_integer(type) && emu_types[declared].kind == 'F') ||
        (emu_types[type].kind == 'F' && is_integer(declared)) ||
        (emu_types[type].kind == 'F' && emu_types[declared].kind == 'F' &&
         emu_types[type].bits != emu_types[declared].bits))
        emu_refuse(decoder, "register '%.*s' is declared .%s, which does not suit type .%s",
                   (int)operand->name.length, operand->name.text, emu_types[declared].name,
                   emu_types[type].name);
}

static void check_width(struct emu_decoder *decoder, struct emu_src source,
                        const struct emu_arg *operand, enum emu_type type, bool wider)
{
    uint32_t bits = emu_types[type].bits, need = type == T_pred ? 0 : bits < 16 ? 2 : bits / 8;
    bool predicate_mix = (source.bytes == 0) != (type == T_pred);
    if (predicate_mix || (wider ? source.bytes < need : source.bytes != need))
        emu_refuse(decoder, "operand '%.*s' is %s wide, which does not suit type .%s",
                   (int)operand->name.length, operand->name.text,
                   source.bytes == 0   ? "a predicate, one bit"
                   : source.bytes == 2 ? "16 bits"
                   : source.bytes == 4 ? "32 bits"
                   : source.bytes == 8 ? "64 bits"
                                       : "128 bits",
                   emu_types[type].name);
    check_kind(decoder, source, operand, type);
}

static struct emu_src read_name(struct emu_decoder *decoder, const struct emu_arg *operand,
                                enum emu_type type, bool wider)
{
    uint32_t number;
    const struct emu_symbol *symbol =
        emu_find_symbol(decoder->module, operand->name, decoder->statement->scope, &number);
    struct emu_src source;
    if (symbol && symbol->kind == SYMBOL_REGISTER) {
        if (operand->bits)
            emu_refuse(decoder, "a register cannot carry an offset here");
        source = register_src(decoder, symbol, number, operand->name);
        check_width(decoder, source, operand, type, wider);
        if (operand->negated && type != T_pred)
            emu_refuse(decoder, "'!' stands before a register that is no predicate");
        source.negated = operand->negated;
        emu_note_read(decoder, source);
        return source;
    }
    if (!symbol && special_src(decoder, operand->name, type, &source)) {
        if (type == T_pred) {
            if (emu_str_is(operand->name, "%is_explicit_cluster"))
                return source;
            emu_refuse(decoder, "a special register is no predicate");
        }
        return source;
    }
    uint32_t bytes = emu_types[type].bits / 8;
    if (symbol && symbol->kind == SYMBOL_VARIABLE && bytes >= 4)
        return variable_src(decoder, symbol, operand->bits, bytes);
    if (symbol && symbol->kind == SYMBOL_FUNCTION && bytes == 8)
        return emu_constant(decoder, EMU_FUNCTION_BASE + symbol->first, bytes);
    if (!symbol && emu_str_is(operand->name, "WARP_SZ"))
        return emu_constant(decoder, 32, bytes);
    emu_refuse(decoder, "'%.*s' is not declared, or is nothing that can be read here",
               (int)operand->name.length, operand->name.text);
}

static struct emu_src read_operand(struct emu_decoder *decoder, const struct emu_arg *operand,
                                   enum emu_type type, bool wider)
{
    uint32_t bits = emu_types[type].bits;
    switch (operand->kind) {
    case OPERAND_NAME: return read_name(decoder, operand, type, wider);
    case OPERAND_INT:
    case OPERAND_F32:
    case OPERAND_F64: {
        struct emu_src constant = emu_constant(decoder, literal_bits(decoder, operand, type),
                                               type == T_pred ? 0
                                               : bits < 16    ? 2
                                                              : bits / 8);
        return constant;
    }
    default: emu_refuse(decoder, "a register or an immediate is due where a bracket stands");
    }
}

struct emu_src emu_read(struct emu_decoder *decoder, const struct emu_arg *operand,
                        enum emu_type type)
{
    return read_operand(decoder, operand, type, false);
}

struct emu_src emu_read_wide(struct emu_decoder *decoder, const struct emu_arg *operand,
                             enum emu_type type)
{
    return read_operand(decoder, operand, type, true);
}

static struct emu_src write_operand(struct emu_decoder *decoder, const struct emu_arg *operand,
                                    enum emu_type type, bool wider)
{
    if (operand->kind == OPERAND_SINK) {
        uint32_t slot = emu_hidden_slot(decoder, type);
        return emu_slot_src(decoder->program, slot);
    }
    uint32_t number;
    const struct emu_symbol *symbol =
        operand->kind != OPERAND_NAME
            ? NULL
            : emu_find_symbol(decoder->module, operand->name, decoder->statement->scope, &number);
    if (!symbol || symbol->kind != SYMBOL_REGISTER)
        emu_refuse(decoder, "'%.*s' is no register that could be written",
                   (int)operand->name.length, operand->name.text ? operand->name.text : "");
    if (operand->negated || operand->bits)
        emu_refuse(decoder, "a register that is written has neither '!' nor an offset");
    struct emu_src source = register_src(decoder, symbol, number, operand->name);
    check_width(decoder, source, operand, type, wider);
    emu_note_write(decoder, source);
    return source;
}

struct emu_src emu_write(struct emu_decoder *decoder, const struct emu_arg *operand,
                         enum emu_type type)
{
    return write_operand(decoder, operand, type, false);
}

struct emu_src emu_write_wide(struct emu_decoder *decoder, const struct emu_arg *operand,
                              enum emu_type type)
{
    return write_operand(decoder, operand, type, true);
}

/* ---- counted access ---- */

uint32_t emu_operand_count(const struct emu_decoder *decoder)
{
    return decoder->statement->operand_count;
}

void emu_need_operands(struct emu_decoder *decoder, uint32_t least, uint32_t most)
{
    uint32_t count = decoder->statement->operand_count;
    if (count < least || count > most)
        emu_refuse(decoder, "%u operands; between %u and %u are due", count, least, most);
}

const struct emu_arg *emu_operand_at(struct emu_decoder *decoder, uint32_t index)
{
    if (index >= decoder->statement->operand_count)
        emu_refuse(decoder, "operand %u is missing", index + 1);
    return &decoder->statement->operands[index];
}

struct emu_src emu_read_nth(struct emu_decoder *decoder, uint32_t index, enum emu_type type)
{
    return emu_read(decoder, emu_operand_at(decoder, index), type);
}

struct emu_src emu_write_nth(struct emu_decoder *decoder, uint32_t index, enum emu_type type)
{
    return emu_write(decoder, emu_operand_at(decoder, index), type);
}

uint64_t emu_immediate(struct emu_decoder *decoder, const struct emu_arg *operand)
{
    if (operand->kind != OPERAND_INT)
        emu_refuse(decoder, "an integer constant is due, not '%.*s'", (int)operand->name.length,
                   operand->name.text ? operand->name.text : "");
    return operand->bits;
}

const struct emu_arg *emu_items(struct emu_decoder *decoder, const struct emu_arg *operand,
                                uint32_t *count)
{
    *count = 1;
    if (operand->kind != OPERAND_VECTOR)
        return operand;
    *count = operand->count;
    if (operand->count == 0)
        emu_refuse(decoder, "an empty vector operand");
    return operand->items;
}

/* ---- addresses ---- */

enum emu_space emu_param_space(struct emu_decoder *decoder, const struct emu_arg *operand)
{
    uint32_t number;
    if (operand->kind != OPERAND_ADDRESS || operand->items[0].kind != OPERAND_NAME)
        return SPACE_PARAM;
    const struct emu_symbol *symbol = emu_find_symbol(decoder->module, operand->items[0].name,
                                                      decoder->statement->scope, &number);
    bool is_variable = symbol && symbol->kind == SYMBOL_VARIABLE;
    return is_variable && (!decoder->unit->function->is_entry || symbol->count == 2) ? SPACE_LOCAL
                                                                                     : SPACE_PARAM;
}

/* A variable is in the instruction's state space, which may be generic unless it is a parameter. */
static void check_space(struct emu_decoder *decoder, const struct emu_symbol *symbol,
                        const struct emu_arg *inside)
{
    static const char *const names[] = {"generic", "global", "shared", "shared::cluster",
                                        "local",   "const",  "param",  "reg"};
    const struct emu_function *function = decoder->unit->function;
    const struct emu_variable *variable =
        symbol->count == 1   ? &decoder->module->variables[symbol->first]
        : symbol->count == 2 ? &function->variables[symbol->first]
        : symbol->count == 3 ? &function->parameters[symbol->first]
                             : &function->results[symbol->first];
    enum emu_space used = decoder->insn->space, declared = variable->space;
    bool agrees = declared == SPACE_PARAM    ? used == SPACE_PARAM || used == SPACE_LOCAL
                  : declared == SPACE_SHARED ? used == SPACE_GENERIC || used == SPACE_SHARED ||
                                                   used == SPACE_SHARED_CLUSTER
                                             : used == SPACE_GENERIC || used == declared;
    if (!agrees)
        emu_refuse(decoder, "'%.*s' is a .%s variable, and the access is to .%s memory",
                   (int)inside->name.length, inside->name.text, names[declared], names[used]);
}

void emu_address(struct emu_decoder *decoder, const struct emu_arg *operand, struct emu_src *base,
                 int64_t *offset)
{
    if (operand->kind != OPERAND_ADDRESS)
        emu_refuse(decoder, "an address in brackets is due");
    const struct emu_arg *inside = &operand->items[0];
    *offset = 0;
    if (inside->negated)
        emu_refuse(decoder, "an address is not negated");
    uint32_t number = 0;
    if (operand->count > 1 && operand->items[1].kind != OPERAND_VECTOR)
        emu_refuse(decoder, "an address has one register or variable, and one offset");
    const struct emu_symbol *symbol =
        inside->kind == OPERAND_NAME
            ? emu_find_symbol(decoder->module, inside->name, decoder->statement->scope, &number)
            : NULL;
    if (symbol && symbol->kind == SYMBOL_REGISTER) {
        *base = register_src(decoder, symbol, number, inside->name);
        if (base->bytes != 4 && base->bytes != 8)
            emu_refuse(decoder, "an address register has 32 or 64 bits");
        if (emu_types[symbol->type].kind == 'F')
            emu_refuse(decoder, "'%.*s' is a floating-point register, and no address",
                       (int)inside->name.length, inside->name.text);
        *offset = (int64_t)inside->bits;
        emu_note_read(decoder, *base);
    } else if (symbol && symbol->kind == SYMBOL_VARIABLE) {
        check_space(decoder, symbol, inside);
        *base = variable_src(decoder, symbol, inside->bits, 8);
    } else if (inside->kind == OPERAND_INT) {
        if (decoder->insn->space != SPACE_LOCAL)
            emu_refuse(decoder, "only .local addresses may be constants");
        *base = emu_constant(decoder, inside->bits, 8);
    } else {
        emu_refuse(decoder, "'%.*s' is not declared, or is no address", (int)inside->name.length,
                   inside->name.text ? inside->name.text : "");
    }
}

uint32_t emu_label(struct emu_decoder *decoder, const struct emu_arg *operand)
{
    uint32_t number;
    const struct emu_symbol *symbol =
        operand->kind != OPERAND_NAME
            ? NULL
            : emu_find_symbol(decoder->module, operand->name, decoder->statement->scope, &number);
    if (!symbol || symbol->kind != SYMBOL_LABEL || operand->negated || operand->bits)
        emu_refuse(decoder, "'%.*s' is no label of this function", (int)operand->name.length,
                   operand->name.text ? operand->name.text : "");
    return symbol->first;
}
