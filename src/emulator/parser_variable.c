/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations: registers, variables with initialisers, parameters (ISA "Declarations"). */
#include "src/emulator/parser.h"

#include <string.h>

static const struct {
    const char *name;
    enum emu_space space;
} spaces[] = {{"global", SPACE_GLOBAL}, {"shared", SPACE_SHARED}, {"shared::cta", SPACE_SHARED},
              {"local", SPACE_LOCAL},   {"const", SPACE_CONST},   {"param", SPACE_PARAM}};

static const uint64_t LARGEST_VARIABLE = (uint64_t)1 << 32;
static const uint64_t MOST_INITIALISED = 64 << 20;
static const uint32_t MOST_REGISTERS = 1u << 20;

static int space_at(const struct emu_parser *parser)
{
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (emu_at_dot(parser, spaces[i].name))
            return (int)spaces[i].space;
    return -1;
}

bool emu_at_variable(const struct emu_parser *parser)
{
    return space_at(parser) >= 0 || emu_at_dot(parser, "tex");
}

static enum emu_type expect_type(struct emu_parser *parser, uint32_t *vector)
{
    *vector = 1;
    if (emu_accept_dot(parser, "v2"))
        *vector = 2;
    else if (emu_accept_dot(parser, "v4"))
        *vector = 4;
    else if (emu_accept_dot(parser, "v8"))
        *vector = 8;
    enum emu_type type = parser->token.kind == TOK_DOT ? emu_type_of(parser->token.text) : T_none;
    if (type == T_none)
        emu_syntax(parser, &parser->token, "a type such as .b32 is due here");
    emu_advance(parser);
    return type;
}

void emu_parse_registers(struct emu_parser *parser)
{
    emu_advance(parser);
    uint32_t vector;
    enum emu_type type = expect_type(parser, &vector);
    if (vector != 1)
        emu_syntax(parser, &parser->token, "vector registers are not emulated");
    if (type == T_b128 && parser->module->version_major * 10 + parser->module->version_minor < 83)
        emu_syntax(parser, &parser->token, "registers of type .b128 need .version 8.3 or later");
    do {
        struct emu_token at = parser->token;
        struct emu_str name = emu_expect_name(parser, "a register's name");
        struct emu_symbol *symbol = emu_declare(parser, &at, name, SYMBOL_REGISTER);
        symbol->type = type;
        symbol->count = 1;
        if (emu_accept(parser, '<')) {
            uint64_t count = emu_expect_int(parser, "a number of registers");
            if (count > MOST_REGISTERS)
                emu_syntax(parser, &at, "%llu registers in one range; the limit is %u",
                           (unsigned long long)count, MOST_REGISTERS);
            symbol->count = (uint32_t)count;
            emu_expect(parser, '>');
            emu_declare_range(parser, &at, symbol);
        }
        symbol->first = parser->function->register_count;
        if (symbol->count > MOST_REGISTERS - symbol->first)
            emu_syntax(parser, &at, "more than %u registers in one function", MOST_REGISTERS);
        parser->function->register_count += symbol->count;
    } while (emu_accept(parser, ','));
    emu_expect(parser, ';');
}

static uint32_t parse_alignment(struct emu_parser *parser)
{
    struct emu_token at = parser->token;
    uint64_t alignment = emu_expect_int(parser, "an alignment");
    if (alignment == 0 || alignment > 1024 || (alignment & (alignment - 1)))
        emu_syntax(parser, &at, "alignment %llu is not a power of two up to 1024",
                   (unsigned long long)alignment);
    return (uint32_t)alignment;
}

/* Array extents after the name: [n][m]; [] makes the size open. Returns the element count. */
static uint64_t parse_extents(struct emu_parser *parser, bool *open)
{
    uint64_t count = 1;
    *open = false;
    while (emu_accept(parser, '[')) {
        if (emu_accept(parser, ']')) {
            *open = true;
            continue;
        }
        struct emu_token at = parser->token;
        uint64_t extent = emu_expect_int(parser, "an array extent");
        if (extent && count > LARGEST_VARIABLE / extent)
            emu_syntax(parser, &at, "the array is larger than 4 GiB");
        count *= extent;
        emu_expect(parser, ']');
    }
    return count;
}

struct initialiser {
    struct emu_variable *variable;
    uint32_t element; /* bytes */
    uint64_t offset;
    uint64_t limit; /* bytes the variable has; open arrays grow */
    bool open;
    size_t capacity;
};

static void put_bytes(struct emu_parser *parser, struct initialiser *init, uint64_t bits)
{
    struct emu_variable *variable = init->variable;
    if (init->open && init->offset + init->element > init->capacity) {
        size_t wider = init->capacity ? init->capacity * 2 : 256;
        uint8_t *bytes = emu_alloc(&parser->module->arena, wider, 1);
        if (init->offset)
            memcpy(bytes, variable->initial, init->offset);
        variable->initial = bytes;
        init->capacity = wider;
    } else if (!init->open && init->offset + init->element > init->limit) {
        emu_syntax(parser, &parser->token, "more initial values than '%.*s' has room for",
                   (int)variable->name.length, variable->name.text);
    }
    for (uint32_t i = 0; i < init->element && i < 8; i++)
        variable->initial[init->offset + i] = (uint8_t)(bits >> (8 * i));
    init->offset += init->element;
}

static void put_symbol(struct emu_parser *parser, struct initialiser *init)
{
    struct emu_variable *variable = init->variable;
    bool generic = emu_str_is(parser->token.text, "generic") && parser->next.kind == TOK_PUNCT &&
                   *parser->next.text.text == '(';
    if (generic) {
        emu_advance(parser);
        emu_advance(parser);
    }
    struct emu_str symbol = emu_expect_name(parser, "a symbol");
    if (generic)
        emu_expect(parser, ')');
    uint64_t addend = 0;
    if (emu_accept(parser, '+') || emu_at(parser, '-'))
        addend = emu_parse_integer(parser, "an offset");
    if (init->element != 8)
        emu_syntax(parser, &parser->token, "an address needs a 64-bit element");
    emu_grow(&parser->module->arena, &variable->relocations, variable->relocation_count,
             &variable->relocation_capacity, sizeof *variable->relocations);
    variable->relocations[variable->relocation_count++] =
        (struct emu_relocation){init->offset, addend, symbol};
    put_bytes(parser, init, 0);
}

static double value_of(const struct emu_constant *constant)
{
    double value;
    float narrow;
    uint32_t bits = (uint32_t)constant->bits;
    if (constant->kind == TOK_INT)
        return constant->is_unsigned ? (double)constant->bits : (double)(int64_t)constant->bits;
    if (constant->kind == TOK_F32) {
        memcpy(&narrow, &bits, 4);
        return narrow;
    }
    memcpy(&value, &constant->bits, 8);
    return value;
}

/* The value's bits in an element of the type: of a double in 8 bytes, of a float in 4. */
static uint64_t element_bits(struct emu_parser *parser, const struct emu_token *at,
                             enum emu_type type, const struct emu_constant *constant)
{
    char kind = emu_types[type].kind;
    uint32_t size = emu_types[type].bits, bits;
    if (constant->kind == TOK_INT && (kind != 'F' || size < 32))
        return constant->bits;
    if ((kind != 'F' && kind != 'B') || (size != 32 && size != 64))
        emu_syntax(parser, at, "a floating-point value for type .%s", emu_types[type].name);
    double value = value_of(constant);
    float narrow = (float)value;
    uint64_t wide;
    memcpy(&wide, &value, 8);
    memcpy(&bits, &narrow, 4);
    return size == 64 ? wide : bits;
}

/* Nested braces are flattened: each inner list is filled up to nothing but its own values. */
static void parse_initialiser(struct emu_parser *parser, struct initialiser *init)
{
    size_t depth = 0;
    do {
        if (emu_accept(parser, '{')) {
            depth++;
            continue;
        }
        if (emu_accept(parser, '}')) {
            if (depth == 0)
                emu_syntax(parser, &parser->token, "'}' without '{' in an initialiser");
            depth--;
            emu_accept(parser, ',');
            continue;
        }
        if (emu_at_constant(parser)) {
            struct emu_token at = parser->token;
            struct emu_constant constant = emu_parse_constant(parser);
            put_bytes(parser, init, element_bits(parser, &at, init->variable->type, &constant));
        } else if (parser->token.kind == TOK_NAME) {
            put_symbol(parser, init);
        } else {
            emu_syntax(parser, &parser->token, "a constant, a symbol or a brace is due here");
        }
        emu_accept(parser, ',');
    } while (depth > 0);
    if (init->open)
        init->variable->size = init->offset;
}

static void parse_declarator(struct emu_parser *parser, struct emu_variable *variable,
                             uint32_t vector)
{
    struct emu_token at = parser->token;
    variable->line = at.line;
    variable->name = emu_expect_name(parser, "the variable's name");
    struct emu_token range = parser->token;
    if (emu_accept(parser, '<'))
        emu_syntax(parser, &range, "parameterised variable names are not emulated");
    bool open;
    uint64_t count = parse_extents(parser, &open);
    uint64_t element = (uint64_t)emu_types[variable->type].bits / 8 * vector;
    if (element == 0)
        emu_syntax(parser, &at, "a variable cannot have type .%s", emu_types[variable->type].name);
    if (count > LARGEST_VARIABLE / element)
        emu_syntax(parser, &at, "the variable is larger than 4 GiB");
    variable->size = open ? 0 : count * element;
    if (variable->alignment == 0)
        variable->alignment = (uint32_t)element;
    if (emu_accept(parser, '=')) {
        if (variable->space != SPACE_GLOBAL && variable->space != SPACE_CONST)
            emu_syntax(parser, &at, "only .global and .const variables have initial values");
        parser->initialised += variable->size;
        if (parser->initialised > MOST_INITIALISED)
            emu_syntax(parser, &at, "initialised variables of more than 64 MiB");
        struct initialiser init = {
            variable, (uint32_t)emu_types[variable->type].bits / 8, 0, variable->size, open, 0};
        if (!open)
            variable->initial = emu_alloc(&parser->module->arena, variable->size + 8, 1);
        parse_initialiser(parser, &init);
    }
}

void emu_parse_variables(struct emu_parser *parser, bool is_extern)
{
    int space = space_at(parser);
    if (space < 0)
        emu_syntax(parser, &parser->token, "textures are not emulated");
    emu_advance(parser);
    struct emu_variable model = {.space = (enum emu_space)space, .is_extern = is_extern};
    uint32_t vector;
    for (;;) {
        if (emu_accept_dot(parser, "align")) {
            model.alignment = parse_alignment(parser);
        } else if (emu_accept_dot(parser, "attribute")) {
            while (!emu_accept(parser, ')')) {
                if (parser->token.kind == TOK_END)
                    emu_syntax(parser, &parser->token, "the attribute list has no end");
                emu_advance(parser);
            }
        } else {
            break;
        }
    }
    model.type = expect_type(parser, &vector);
    struct emu_function *function = parser->function;
    struct emu_module *module = parser->module;
    do {
        struct emu_variable variable = model;
        struct emu_token at = parser->token;
        parse_declarator(parser, &variable, vector);
        struct emu_variable **list = function ? &function->variables : &module->variables;
        size_t *count = function ? &function->variable_count : &module->variable_count;
        size_t *capacity = function ? &function->variable_capacity : &module->variable_capacity;
        emu_grow(&module->arena, list, *count, capacity, sizeof **list);
        struct emu_symbol *symbol = emu_declare(parser, &at, variable.name, SYMBOL_VARIABLE);
        symbol->first = (uint32_t)*count;
        symbol->count = function ? 2 : 1; /* 1: the module's list, 2: the function's */
        (*list)[(*count)++] = variable;
        if (!function && is_extern && variable.space == SPACE_SHARED &&
            variable.alignment > module->dynamic_alignment)
            module->dynamic_alignment = variable.alignment;
    } while (emu_accept(parser, ','));
    emu_expect(parser, ';');
}

void emu_parse_parameters(struct emu_parser *parser, struct emu_variable **list, size_t *count,
                          size_t *capacity)
{
    emu_expect(parser, '(');
    while (!emu_accept(parser, ')')) {
        struct emu_variable variable = {.space = SPACE_PARAM};
        uint32_t vector;
        struct emu_token at = parser->token;
        if (!emu_accept_dot(parser, "param"))
            emu_syntax(parser, &at, "a parameter begins with .param");
        if (emu_accept_dot(parser, "align"))
            variable.alignment = parse_alignment(parser);
        variable.type = expect_type(parser, &vector);
        if (emu_accept_dot(parser, "ptr")) {
            while (parser->token.kind == TOK_DOT) {
                bool align = emu_at_dot(parser, "align");
                emu_advance(parser);
                if (align)
                    parse_alignment(parser);
            }
        }
        at = parser->token;
        parse_declarator(parser, &variable, vector);
        emu_grow(&parser->module->arena, list, *count, capacity, sizeof **list);
        struct emu_symbol *symbol = emu_declare(parser, &at, variable.name, SYMBOL_VARIABLE);
        symbol->first = (uint32_t)*count;
        symbol->count = list == &parser->function->results ? 4 : 3; /* results, parameters */
        (*list)[(*count)++] = variable;
        if (!emu_at(parser, ')'))
            emu_expect(parser, ',');
    }
}
