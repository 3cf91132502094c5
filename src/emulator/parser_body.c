/* SPDX-License-Identifier: Apache-2.0 */
/* Function bodies: labels, scopes, instructions and their operands (ISA "Instruction Operands"). */
#include "src/emulator/parser.h"

#include <string.h>

enum { MOST_MODIFIERS = 24, MOST_OPERANDS = 24, MOST_ITEMS = 512, DEEPEST_SCOPE = 64 };

static struct emu_arg constant_operand(struct emu_parser *parser)
{
    struct emu_token at = parser->token;
    struct emu_constant constant = emu_parse_constant(parser);
    size_t length = (size_t)(parser->token.text.text - at.text.text);
    while (length > at.text.length && strchr(" \t\n", at.text.text[length - 1]))
        length--;
    at.text.length = at.text.length < length ? (uint32_t)length : at.text.length;
    return (struct emu_arg){.kind = constant.kind == TOK_INT   ? OPERAND_INT
                                    : constant.kind == TOK_F32 ? OPERAND_F32
                                                               : OPERAND_F64,
                            .name = at.text,
                            .bits = constant.bits};
}

/* A constant, a name (with component and offset), or the sink. */
static struct emu_arg parse_scalar(struct emu_parser *parser)
{
    struct emu_arg operand = {.kind = OPERAND_NAME};
    struct emu_token at = parser->token;
    if (emu_at_constant(parser))
        return constant_operand(parser);
    operand.negated = emu_accept(parser, '!');
    struct emu_token token = parser->token;
    if (token.kind != TOK_NAME)
        emu_syntax(parser, &at, "an operand is due here");
    emu_advance(parser);
    operand.name = token.text;
    if (emu_str_is(token.text, "_")) {
        operand.kind = OPERAND_SINK;
        return operand;
    }
    if (parser->token.kind == TOK_DOT &&
        parser->token.text.text == token.text.text + token.text.length + 1) {
        operand.name.length += 1 + parser->token.text.length;
        emu_advance(parser);
    }
    if (emu_accept(parser, '+'))
        operand.bits = emu_parse_integer(parser, "an offset");
    return operand;
}

/* Scalars separated by commas up to `close`, appended as the operand's items. */
static void parse_items(struct emu_parser *parser, struct emu_arg *operand, char close)
{
    size_t capacity = 0;
    struct emu_arg *items = NULL;
    while (!emu_accept(parser, close)) {
        if (operand->count >= MOST_ITEMS)
            emu_syntax(parser, &parser->token, "more than %d items in one operand", MOST_ITEMS);
        emu_grow(&parser->module->arena, &items, operand->count, &capacity, sizeof *items);
        if (operand->kind == OPERAND_ADDRESS && emu_accept(parser, '{')) {
            struct emu_arg vector = {.kind = OPERAND_VECTOR};
            parse_items(parser, &vector, '}');
            items[operand->count++] = vector;
        } else {
            items[operand->count++] = parse_scalar(parser);
        }
        if (!emu_at(parser, close))
            emu_expect(parser, ',');
    }
    operand->items = items;
}

/* Parentheses hold the arguments and results of calls; elsewhere they belong to a constant. */
static struct emu_arg parse_operand(struct emu_parser *parser, bool of_call)
{
    static const struct {
        char open, close;
        enum emu_operand_kind kind;
    } brackets[] = {
        {'{', '}', OPERAND_VECTOR}, {'[', ']', OPERAND_ADDRESS}, {'(', ')', OPERAND_LIST}};
    for (size_t i = 0; i < 3; i++) {
        struct emu_token at = parser->token;
        if ((brackets[i].kind == OPERAND_LIST && !of_call) || !emu_accept(parser, brackets[i].open))
            continue;
        struct emu_arg operand = {.kind = brackets[i].kind};
        parse_items(parser, &operand, brackets[i].close);
        if (operand.kind == OPERAND_ADDRESS && operand.count == 0)
            emu_syntax(parser, &at, "an address is due between the brackets");
        return operand;
    }
    return parse_scalar(parser);
}

static void parse_guard(struct emu_parser *parser, struct emu_statement *statement)
{
    if (!emu_accept(parser, '@'))
        return;
    statement->guard = parse_scalar(parser);
    if (statement->guard.kind != OPERAND_NAME || statement->guard.bits)
        emu_syntax(parser, &parser->token, "a guard is a predicate register");
}

static void parse_instruction(struct emu_parser *parser)
{
    struct emu_arena *arena = &parser->module->arena;
    struct emu_statement statement = {.scope = parser->scope};
    struct emu_str modifiers[MOST_MODIFIERS];
    struct emu_arg operands[MOST_OPERANDS];
    parse_guard(parser, &statement);
    statement.line = parser->token.line;
    statement.column = parser->token.column;
    statement.mnemonic = emu_expect_name(parser, "an instruction");
    while (parser->token.kind == TOK_DOT) {
        if (statement.modifier_count == MOST_MODIFIERS)
            emu_syntax(parser, &parser->token, "more than %d modifiers", MOST_MODIFIERS);
        modifiers[statement.modifier_count++] = parser->token.text;
        emu_advance(parser);
    }
    while (!emu_accept(parser, ';')) {
        if (statement.operand_count == MOST_OPERANDS)
            emu_syntax(parser, &parser->token, "more than %d operands", MOST_OPERANDS);
        struct emu_arg *operand = &operands[statement.operand_count++];
        *operand = parse_operand(parser, emu_str_is(statement.mnemonic, "call"));
        if (emu_accept(parser, '|')) {
            operand->pair = emu_alloc(arena, 1, sizeof *operand->pair);
            *operand->pair = parse_scalar(parser);
        }
        if (!emu_at(parser, ';'))
            emu_expect(parser, ',');
    }
    size_t bytes = statement.modifier_count * sizeof *modifiers;
    statement.modifiers = emu_alloc(arena, 1, bytes);
    memcpy(statement.modifiers, modifiers, bytes);
    bytes = statement.operand_count * sizeof *operands;
    statement.operands = emu_alloc(arena, 1, bytes);
    memcpy(statement.operands, operands, bytes);
    struct emu_function *function = parser->function;
    emu_grow(arena, &function->statements, function->statement_count, &function->statement_capacity,
             sizeof statement);
    function->statements[function->statement_count++] = statement;
}

/* "name:", and the lists of branch targets or the prototype that may follow it. */
static void parse_label(struct emu_parser *parser)
{
    struct emu_token at = parser->token;
    struct emu_str name = at.text;
    emu_advance(parser);
    emu_expect(parser, ':');
    if (emu_accept_dot(parser, "branchtargets")) {
        struct emu_arg *targets = emu_alloc(&parser->module->arena, 1, sizeof *targets);
        targets->kind = OPERAND_LIST;
        parse_items(parser, targets, ';');
        emu_declare(parser, &at, name, SYMBOL_TARGETS)->targets = targets;
    } else if (emu_at_dot(parser, "callprototype") || emu_at_dot(parser, "calltargets")) {
        emu_skip_to_semicolon(parser);
        emu_declare(parser, &at, name, SYMBOL_PROTOTYPE);
    } else {
        emu_declare(parser, &at, name, SYMBOL_LABEL)->first =
            (uint32_t)parser->function->statement_count;
    }
}

void emu_parse_body(struct emu_parser *parser)
{
    size_t depth = 1;
    while (depth > 0) {
        if (emu_accept(parser, '{')) {
            if (++depth > DEEPEST_SCOPE)
                emu_syntax(parser, &parser->token, "scopes nest deeper than %d", DEEPEST_SCOPE);
            parser->scope = emu_open_scope(parser);
        } else if (emu_accept(parser, '}')) {
            if (--depth > 0)
                parser->scope = parser->module->scopes[parser->scope].parent;
        } else if (emu_accept(parser, ';')) {
            continue;
        } else if (emu_at_dot(parser, "reg")) {
            emu_parse_registers(parser);
        } else if (emu_at_dot(parser, "loc") || emu_at_dot(parser, "file")) {
            emu_skip_line(parser);
        } else if (emu_at_dot(parser, "pragma")) {
            emu_skip_to_semicolon(parser);
        } else if (emu_at_dot(parser, "extern") || emu_at_variable(parser)) {
            bool is_extern = emu_accept_dot(parser, "extern");
            emu_parse_variables(parser, is_extern);
        } else if (parser->token.kind == TOK_NAME && parser->next.kind == TOK_PUNCT &&
                   *parser->next.text.text == ':') {
            parse_label(parser);
        } else if (parser->token.kind == TOK_NAME || emu_at(parser, '@')) {
            parse_instruction(parser);
        } else if (parser->token.kind == TOK_END) {
            emu_syntax(parser, &parser->token, "the text ends inside a function body");
        } else {
            emu_syntax(parser, &parser->token, "'%.*s' begins no statement",
                       (int)parser->token.text.length, parser->token.text.text);
        }
    }
}
