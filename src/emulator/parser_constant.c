/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constant expressions (ISA "Constant Expressions"): the operators of C, with C's precedence, on
 * 64-bit integers, which are signed unless they do not fit or end in U, and on doubles. As ptxas
 * has it, ~ and % give unsigned integers, ?: gives the type of the operand that it chooses, shifts
 * use the low six bits of their amount, and integers and doubles do not mix.
 */
#include "src/emulator/parser.h"

#include <string.h>

enum { DEEPEST_EXPRESSION = 128, LOWEST_PRECEDENCE = 1 };

enum operation {
    OP_OR_ELSE,
    OP_AND_ALSO,
    OP_OR,
    OP_XOR,
    OP_AND,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_GREATER,
    OP_GREATER_EQUAL,
    OP_LEFT,
    OP_RIGHT,
    OP_PLUS,
    OP_MINUS,
    OP_TIMES,
    OP_OVER,
    OP_MODULO
};

/* Those of two characters come before those of one, which they begin with. */
static const struct binary {
    const char *text;
    uint8_t precedence;
    enum operation operation;
} binaries[] = {{"||", 1, OP_OR_ELSE}, {"&&", 2, OP_AND_ALSO},   {"==", 6, OP_EQUAL},
                {"!=", 6, OP_UNEQUAL}, {"<=", 7, OP_LESS_EQUAL}, {">=", 7, OP_GREATER_EQUAL},
                {"<<", 8, OP_LEFT},    {">>", 8, OP_RIGHT},      {"|", 3, OP_OR},
                {"^", 4, OP_XOR},      {"&", 5, OP_AND},         {"<", 7, OP_LESS},
                {">", 7, OP_GREATER},  {"+", 9, OP_PLUS},        {"-", 9, OP_MINUS},
                {"*", 10, OP_TIMES},   {"/", 10, OP_OVER},       {"%", 10, OP_MODULO}};

static struct emu_constant expression(struct emu_parser *parser, unsigned depth);

static struct emu_constant integer(uint64_t bits, bool is_unsigned)
{
    return (struct emu_constant){.kind = TOK_INT, .is_unsigned = is_unsigned, .bits = bits};
}

static struct emu_constant number(double value)
{
    struct emu_constant constant = {.kind = TOK_F64};
    memcpy(&constant.bits, &value, sizeof value);
    return constant;
}

static double value_of(struct emu_constant constant)
{
    double value;
    memcpy(&value, &constant.bits, sizeof value);
    return value;
}

/* ---- operators ---- */

/* "%" is a name for the lexer. */
static const struct binary *binary_at(const struct emu_parser *parser)
{
    const struct emu_token *token = &parser->token, *next = &parser->next;
    bool modulo = token->kind == TOK_NAME && emu_str_is(token->text, "%");
    if (token->kind != TOK_PUNCT && !modulo)
        return NULL;
    bool adjoins = next->kind == TOK_PUNCT && next->text.text == token->text.text + 1;
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++) {
        const char *text = binaries[i].text;
        if (*token->text.text == text[0] &&
            (text[1] == '\0' || (adjoins && *next->text.text == text[1])))
            return &binaries[i];
    }
    return NULL;
}

static struct emu_constant of_integers(struct emu_parser *parser, const struct emu_token *at,
                                       enum operation operation, struct emu_constant x,
                                       struct emu_constant y)
{
    bool is_unsigned = x.is_unsigned || y.is_unsigned;
    int64_t a = (int64_t)x.bits, b = (int64_t)y.bits;
    bool less = is_unsigned ? x.bits < y.bits : a < b;
    unsigned amount = y.bits & 63;
    if ((operation == OP_OVER || operation == OP_MODULO) && y.bits == 0)
        emu_syntax(parser, at, "a constant expression divides by zero");
    switch (operation) {
    case OP_OR_ELSE: return integer(x.bits || y.bits, false);
    case OP_AND_ALSO: return integer(x.bits && y.bits, false);
    case OP_OR: return integer(x.bits | y.bits, is_unsigned);
    case OP_XOR: return integer(x.bits ^ y.bits, is_unsigned);
    case OP_AND: return integer(x.bits & y.bits, is_unsigned);
    case OP_EQUAL: return integer(x.bits == y.bits, false);
    case OP_UNEQUAL: return integer(x.bits != y.bits, false);
    case OP_LESS: return integer(less, false);
    case OP_LESS_EQUAL: return integer(less || x.bits == y.bits, false);
    case OP_GREATER: return integer(!less && x.bits != y.bits, false);
    case OP_GREATER_EQUAL: return integer(!less, false);
    case OP_LEFT: return integer(x.bits << amount, x.is_unsigned);
    case OP_RIGHT:
        return integer(x.is_unsigned ? x.bits >> amount : (uint64_t)(a >> amount), x.is_unsigned);
    case OP_PLUS: return integer(x.bits + y.bits, is_unsigned);
    case OP_MINUS: return integer(x.bits - y.bits, is_unsigned);
    case OP_TIMES: return integer(x.bits * y.bits, is_unsigned);
    case OP_MODULO: return integer(x.bits % y.bits, true);
    default:
        if (is_unsigned)
            return integer(x.bits / y.bits, true);
        return integer(b == -1 ? 0 - x.bits : (uint64_t)(a / b), false);
    }
}

static struct emu_constant of_doubles(struct emu_parser *parser, const struct emu_token *at,
                                      enum operation operation, double x, double y)
{
    if (operation == OP_OVER && y == 0)
        emu_syntax(parser, at, "a constant expression divides by zero");
    switch (operation) {
    case OP_EQUAL: return integer(x == y, false);
    case OP_UNEQUAL: return integer(x != y, false);
    case OP_LESS: return integer(x < y, false);
    case OP_LESS_EQUAL: return integer(x <= y, false);
    case OP_GREATER: return integer(x > y, false);
    case OP_GREATER_EQUAL: return integer(x >= y, false);
    case OP_PLUS: return number(x + y);
    case OP_MINUS: return number(x - y);
    case OP_TIMES: return number(x * y);
    case OP_OVER: return number(x / y);
    default: emu_syntax(parser, at, "'%c' takes integers", *at->text.text);
    }
}

static struct emu_constant apply(struct emu_parser *parser, const struct emu_token *at,
                                 enum operation operation, struct emu_constant x,
                                 struct emu_constant y)
{
    if (x.kind != y.kind || x.kind == TOK_F32)
        emu_syntax(parser, at, "the operands of '%c' are not both integers or both doubles",
                   *at->text.text);
    return x.kind == TOK_INT ? of_integers(parser, at, operation, x, y)
                             : of_doubles(parser, at, operation, value_of(x), value_of(y));
}

static struct emu_constant apply_unary(struct emu_parser *parser, const struct emu_token *at,
                                       struct emu_constant x)
{
    char operation = *at->text.text;
    if (x.kind != TOK_INT && (operation == '!' || operation == '~'))
        emu_syntax(parser, at, "'%c' takes an integer", operation);
    switch (operation) {
    case '!': return integer(x.bits == 0, false);
    case '~': return integer(~x.bits, true);
    case '-':
        if (x.kind == TOK_INT)
            x.bits = 0 - x.bits;
        else
            x.bits ^= (uint64_t)1 << (x.kind == TOK_F32 ? 31 : 63);
        return x;
    default: return x;
    }
}

/* ---- the grammar ---- */

static bool at_warp_size(const struct emu_token *token)
{
    return token->kind == TOK_NAME && emu_str_is(token->text, "WARP_SZ");
}

static struct emu_constant literal(struct emu_parser *parser)
{
    struct emu_token token = parser->token;
    if (at_warp_size(&token)) {
        emu_advance(parser);
        return integer(32, false);
    }
    if (token.kind != TOK_INT && token.kind != TOK_F32 && token.kind != TOK_F64)
        emu_syntax(parser, &token, "a constant is due here");
    emu_advance(parser);
    char last = token.text.text[token.text.length - 1];
    return (struct emu_constant){.kind = token.kind,
                                 .is_unsigned = token.kind == TOK_INT &&
                                                (last == 'U' || last == 'u' || token.bits >> 63),
                                 .bits = token.bits};
}

/* A cast, after its opening parenthesis. */
static bool accept_cast(struct emu_parser *parser, bool *is_unsigned)
{
    *is_unsigned = emu_at_dot(parser, "u64");
    if (!emu_accept_dot(parser, "u64") && !emu_accept_dot(parser, "s64"))
        return false;
    emu_expect(parser, ')');
    return true;
}

static struct emu_constant unary(struct emu_parser *parser, unsigned depth)
{
    struct emu_token at = parser->token;
    bool is_unsigned;
    if (depth > DEEPEST_EXPRESSION)
        emu_syntax(parser, &at, "a constant expression nests deeper than %d", DEEPEST_EXPRESSION);
    if (emu_accept(parser, '-') || emu_accept(parser, '+') || emu_accept(parser, '!') ||
        emu_accept(parser, '~')) {
        struct emu_constant operand = unary(parser, depth + 1);
        return apply_unary(parser, &at, operand);
    }
    if (!emu_accept(parser, '('))
        return literal(parser);
    if (accept_cast(parser, &is_unsigned)) {
        struct emu_constant operand = unary(parser, depth + 1);
        if (operand.kind != TOK_INT)
            emu_syntax(parser, &at, "a cast takes an integer");
        return integer(operand.bits, is_unsigned);
    }
    struct emu_constant inner = expression(parser, depth + 1);
    emu_expect(parser, ')');
    return inner;
}

/* Operators of this precedence and above, from the left. */
static struct emu_constant binary(struct emu_parser *parser, unsigned precedence, unsigned depth)
{
    struct emu_constant left = unary(parser, depth);
    for (;;) {
        struct emu_token at = parser->token;
        const struct binary *found = binary_at(parser);
        if (!found || found->precedence < precedence)
            return left;
        for (size_t i = 0; i < strlen(found->text); i++)
            emu_advance(parser);
        struct emu_constant right = binary(parser, found->precedence + 1u, depth + 1);
        left = apply(parser, &at, found->operation, left, right);
    }
}

static struct emu_constant expression(struct emu_parser *parser, unsigned depth)
{
    struct emu_constant condition = binary(parser, LOWEST_PRECEDENCE, depth);
    struct emu_token at = parser->token;
    if (!emu_accept(parser, '?'))
        return condition;
    struct emu_constant yes = expression(parser, depth + 1);
    emu_expect(parser, ':');
    struct emu_constant no = expression(parser, depth + 1);
    if (condition.kind != TOK_INT || yes.kind != TOK_INT || no.kind != TOK_INT)
        emu_syntax(parser, &at, "'?:' takes integers");
    return condition.bits ? yes : no;
}

bool emu_at_constant(const struct emu_parser *parser)
{
    bool sign = emu_at(parser, '-') || emu_at(parser, '!');
    const struct emu_token *first = sign ? &parser->next : &parser->token;
    return first->kind == TOK_INT || first->kind == TOK_F32 || first->kind == TOK_F64 ||
           at_warp_size(first) || (first->kind == TOK_PUNCT && strchr("(+-~!", *first->text.text));
}

struct emu_constant emu_parse_constant(struct emu_parser *parser)
{
    return expression(parser, 0);
}

uint64_t emu_parse_integer(struct emu_parser *parser, const char *what)
{
    struct emu_token at = parser->token;
    struct emu_constant constant = emu_parse_constant(parser);
    if (constant.kind != TOK_INT)
        emu_syntax(parser, &at, "%s is due, which is an integer", what);
    return constant.bits;
}
