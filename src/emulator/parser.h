/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser's files share: the token window, errors, and the pieces of the grammar. */
#ifndef PTXGEN_EMULATOR_PARSER_H
#define PTXGEN_EMULATOR_PARSER_H

#include "src/emulator/lexer.h"
#include "src/emulator/module.h"

struct emu_parser {
    struct emu_module *module;
    struct emu_lexer lexer;
    struct emu_token token, next;
    struct emu_function *function; /* being parsed, NULL at module level */
    uint32_t scope;
    uint64_t initialised; /* bytes of initialised variables so far */
    jmp_buf escape;
    ptxgen_error *err;
};

_Noreturn void emu_syntax(struct emu_parser *parser, const struct emu_token *at, const char *format,
                          ...) PTXGEN_PRINTF(3, 4);
void emu_advance(struct emu_parser *parser);
bool emu_at(const struct emu_parser *parser, char punctuation);
bool emu_at_dot(const struct emu_parser *parser, const char *directive);
bool emu_accept(struct emu_parser *parser, char punctuation);
bool emu_accept_dot(struct emu_parser *parser, const char *directive);
void emu_expect(struct emu_parser *parser, char punctuation);
struct emu_str emu_expect_name(struct emu_parser *parser, const char *what);
uint64_t emu_expect_int(struct emu_parser *parser, const char *what);
void emu_skip_to_semicolon(struct emu_parser *parser);
void emu_skip_line(struct emu_parser *parser);

/* A new scope within the current one, which stays current. */
uint32_t emu_open_scope(struct emu_parser *parser);
struct emu_symbol *emu_declare(struct emu_parser *parser, const struct emu_token *at,
                               struct emu_str name, enum emu_symbol_kind kind);
/* Refuses a range of registers that another name of its scope is one of. */
void emu_declare_range(struct emu_parser *parser, const struct emu_token *at,
                       struct emu_symbol *range);

/* parser_variable.c: a declaration after its linkage; the current token is its state space. */
bool emu_at_variable(const struct emu_parser *parser);
void emu_parse_variables(struct emu_parser *parser, bool is_extern);
void emu_parse_registers(struct emu_parser *parser);
void emu_parse_parameters(struct emu_parser *parser, struct emu_variable **list, size_t *count,
                          size_t *capacity);

/* parser_constant.c: the value of a constant expression, an integer or a floating-point pattern. */
struct emu_constant {
    enum emu_token_kind kind; /* TOK_INT, TOK_F64, or TOK_F32 for 0f… alone */
    bool is_unsigned;         /* of an integer */
    uint64_t bits;
};
/* True where a constant may begin, and a name may not: "-%r" and "!%p" are no constants. */
bool emu_at_constant(const struct emu_parser *parser);
struct emu_constant emu_parse_constant(struct emu_parser *parser);
/* The same for a place where only an integer, called `what`, may be. */
uint64_t emu_parse_integer(struct emu_parser *parser, const char *what);

/* parser_body.c: statements between the braces of a function. */
void emu_parse_body(struct emu_parser *parser);

#endif
