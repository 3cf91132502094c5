/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/lexer.h"

#include <stdlib.h>
#include <string.h>

/* A double written out in full has up to 1,077 characters. */
enum { LONGEST_NUMBER = 1100 };

void emu_lexer_start(struct emu_lexer *lexer, const char *text, size_t length)
{
    const char *nul = memchr(text, '\0', length);
    *lexer = (struct emu_lexer){text, nul ? nul : text + length, text, 1};
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

static bool is_name(char c)
{
    return is_name_start(c) || is_digit(c);
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static char peek(const struct emu_lexer *lexer, size_t ahead)
{
    return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : '\0';
}

static void step(struct emu_lexer *lexer)
{
    if (*lexer->at++ == '\n') {
        lexer->line++;
        lexer->line_start = lexer->at;
    }
}

static uint32_t column_of(const struct emu_lexer *lexer)
{
    return (uint32_t)(lexer->at - lexer->line_start) + 1;
}

/* Blanks, comments of both kinds and preprocessor lines; false in a comment without end, whose
 * beginning `open` then names. */
static bool skip_blank(struct emu_lexer *lexer, struct emu_token *open)
{
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f') {
            step(lexer);
        } else if ((c == '/' && peek(lexer, 1) == '/') || c == '#') {
            while (lexer->at < lexer->end && *lexer->at != '\n')
                lexer->at++;
        } else if (c == '/' && peek(lexer, 1) == '*') {
            *open = (struct emu_token){TOK_BAD, {lexer->at, 2}, lexer->line, column_of(lexer), 0};
            lexer->at += 2;
            while (!(peek(lexer, 0) == '*' && peek(lexer, 1) == '/')) {
                if (lexer->at >= lexer->end)
                    return false;
                step(lexer);
            }
            lexer->at += 2;
        } else {
            return true;
        }
    }
    return true;
}

static void scan_radix(struct emu_lexer *lexer, struct emu_token *token, int radix)
{
    const char *first = lexer->at;
    for (; lexer->at < lexer->end; lexer->at++) {
        int digit = hex_value(*lexer->at);
        if (digit < 0 || digit >= radix)
            break;
        if (token->bits > (UINT64_MAX - (unsigned)digit) / (unsigned)radix)
            token->kind = TOK_BAD;
        token->bits = token->bits * (unsigned)radix + (unsigned)digit;
    }
    if (lexer->at == first)
        token->kind = TOK_BAD;
    if (peek(lexer, 0) == 'U' || peek(lexer, 0) == 'u')
        lexer->at++;
}

static void scan_pattern(struct emu_lexer *lexer, struct emu_token *token, int digits)
{
    for (int i = 0; i < digits; i++) {
        int digit = lexer->at < lexer->end ? hex_value(*lexer->at) : -1;
        if (digit < 0) {
            token->kind = TOK_BAD;
            return;
        }
        token->bits = token->bits << 4 | (unsigned)digit;
        lexer->at++;
    }
}

/* Length of the digits `ahead`. */
static size_t digits_at(const struct emu_lexer *lexer, size_t ahead)
{
    size_t count = 0;
    while (is_digit(peek(lexer, ahead + count)))
        count++;
    return count;
}

/* Length of the decimal fraction here (2.5, 1e-3, 6.02E+23); 0 when it is a whole number. */
static size_t decimal_float_length(const struct emu_lexer *lexer)
{
    size_t whole = digits_at(lexer, 0), length = whole;
    if (peek(lexer, length) == '.' && digits_at(lexer, length + 1))
        length += 1 + digits_at(lexer, length + 1);
    if ((peek(lexer, length) | 32) == 'e') {
        char sign = peek(lexer, length + 1);
        size_t first = length + (sign == '-' || sign == '+' ? 2 : 1),
               digits = digits_at(lexer, first);
        length = digits ? first + digits : length;
    }
    return length == whole ? 0 : length;
}

/* The parser has put the thread into the C locale, where strtod reads a decimal point. */
static void scan_decimal_float(struct emu_lexer *lexer, struct emu_token *token, size_t length)
{
    char text[LONGEST_NUMBER + 1];
    token->kind = length > LONGEST_NUMBER ? TOK_BAD : TOK_F64;
    if (token->kind == TOK_F64) {
        memcpy(text, lexer->at, length);
        text[length] = '\0';
        double value = strtod(text, NULL);
        memcpy(&token->bits, &value, sizeof value);
    }
    lexer->at += length;
}

static void scan_number(struct emu_lexer *lexer, struct emu_token *token)
{
    char second = peek(lexer, 1) | 32;
    token->kind = TOK_INT;
    if (*lexer->at != '0' || is_digit(second) || second == ('.' | 32) || second == 'e') {
        size_t length = decimal_float_length(lexer);
        if (length)
            scan_decimal_float(lexer, token, length);
        else
            scan_radix(lexer, token, *lexer->at == '0' ? 8 : 10);
        return;
    }
    static const struct {
        char letter;
        int radix, digits;
        enum emu_token_kind kind;
    } prefixes[] = {
        {'x', 16, 0, TOK_INT}, {'b', 2, 0, TOK_INT}, {'f', 0, 8, TOK_F32}, {'d', 0, 16, TOK_F64}};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (second != prefixes[i].letter)
            continue;
        lexer->at += 2;
        token->kind = prefixes[i].kind;
        if (prefixes[i].radix)
            scan_radix(lexer, token, prefixes[i].radix);
        else
            scan_pattern(lexer, token, prefixes[i].digits);
        return;
    }
    scan_radix(lexer, token, 10);
}

/* ".shared::cta" is one token; so is ".2d". */
static void scan_dot(struct emu_lexer *lexer, struct emu_token *token)
{
    token->kind = TOK_DOT;
    token->text.text = ++lexer->at;
    while (is_name(peek(lexer, 0)) ||
           (peek(lexer, 0) == ':' && peek(lexer, 1) == ':' && is_name(peek(lexer, 2))))
        lexer->at += peek(lexer, 0) == ':' ? 2 : 1;
    token->text.length = (uint32_t)(lexer->at - token->text.text);
    if (token->text.length == 0)
        token->kind = TOK_BAD;
}

static void scan_string(struct emu_lexer *lexer, struct emu_token *token)
{
    token->text.text = ++lexer->at;
    while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n')
        lexer->at++;
    token->text.length = (uint32_t)(lexer->at - token->text.text);
    token->kind = peek(lexer, 0) == '"' ? TOK_STRING : TOK_BAD;
    if (token->kind == TOK_STRING)
        lexer->at++;
}

struct emu_token emu_lexer_next(struct emu_lexer *lexer)
{
    struct emu_token open;
    if (!skip_blank(lexer, &open))
        return open;
    struct emu_token token = {TOK_END, {lexer->at, 0}, lexer->line, column_of(lexer), 0};
    if (lexer->at >= lexer->end)
        return token;
    char c = *lexer->at;
    if (is_name_start(c)) {
        token.kind = TOK_NAME;
        while (is_name(peek(lexer, 0)))
            lexer->at++;
    } else if (is_digit(c)) {
        scan_number(lexer, &token);
    } else if (c == '.') {
        scan_dot(lexer, &token);
        return token;
    } else if (c == '"') {
        scan_string(lexer, &token);
        return token;
    } else {
        token.kind = strchr("{}[]()<>,;:@!|+-=&*~^/?", c) ? TOK_PUNCT : TOK_BAD;
        lexer->at++;
    }
    token.text.length = (uint32_t)(lexer->at - token.text.text);
    return token;
}
