/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts PTX text into tokens (ISA "Syntax"). The text need not end in NUL. The thread is in the C
 * locale (src/ptxgen/c_locale.h) as long as tokens are taken.
 */
#ifndef PTXGEN_EMULATOR_LEXER_H
#define PTXGEN_EMULATOR_LEXER_H

#include "src/emulator/types.h"

#include <stddef.h>

enum emu_token_kind {
    TOK_END,
    TOK_NAME,   /* add, %r1, $L_2, _ */
    TOK_DOT,    /* .global, .shared::cta: text without the leading dot */
    TOK_INT,    /* bits holds the value */
    TOK_F32,    /* 0f…: bits holds the pattern */
    TOK_F64,    /* 0d… or a decimal fraction: bits holds the double's pattern */
    TOK_STRING, /* text without the quotes */
    TOK_PUNCT,  /* text is one character */
    TOK_BAD     /* text is the offending character, or an unterminated comment or string */
};

struct emu_token {
    enum emu_token_kind kind;
    struct emu_str text;
    uint32_t line, column;
    uint64_t bits;
};

struct emu_lexer {
    const char *at, *end, *line_start;
    uint32_t line;
};

void emu_lexer_start(struct emu_lexer *lexer, const char *text, size_t length);
struct emu_token emu_lexer_next(struct emu_lexer *lexer);

#endif
