/* SPDX-License-Identifier: Apache-2.0 */
/* Module level of the grammar: directives, functions, and the symbol table. */
#include "src/emulator/parser.h"
#include "src/ptxgen/c_locale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void emu_syntax(struct emu_parser *parser, const struct emu_token *at, const char *format,
                          ...)
{
    char sentence[700];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    ptxgen_fail(parser->err, PTXGEN_ERROR_PTX_SYNTAX, "line %u, column %u: %s", at->line,
                at->column, sentence);
    longjmp(parser->escape, 1);
}

void emu_advance(struct emu_parser *parser)
{
    parser->token = parser->next;
    parser->next = emu_lexer_next(&parser->lexer);
    int length = parser->token.text.length < 80 ? (int)parser->token.text.length : 80;
    if (parser->token.kind == TOK_BAD)
        emu_syntax(parser, &parser->token,
                   "'%.*s' begins nothing that PTX knows (or a comment or string is cut, or a "
                   "number cut or too large)",
                   length, parser->token.text.text);
}

bool emu_at(const struct emu_parser *parser, char punctuation)
{
    return parser->token.kind == TOK_PUNCT && *parser->token.text.text == punctuation;
}

bool emu_at_dot(const struct emu_parser *parser, const char *directive)
{
    return parser->token.kind == TOK_DOT && emu_str_is(parser->token.text, directive);
}

bool emu_accept(struct emu_parser *parser, char punctuation)
{
    bool there = emu_at(parser, punctuation);
    if (there)
        emu_advance(parser);
    return there;
}

bool emu_accept_dot(struct emu_parser *parser, const char *directive)
{
    bool there = emu_at_dot(parser, directive);
    if (there)
        emu_advance(parser);
    return there;
}

static _Noreturn void unexpected(struct emu_parser *parser, const char *wanted)
{
    const struct emu_token *token = &parser->token;
    if (token->kind == TOK_END)
        emu_syntax(parser, token, "the text ends where %s is due", wanted);
    emu_syntax(parser, token, "%s is due, not '%s%.*s'", wanted, token->kind == TOK_DOT ? "." : "",
               (int)token->text.length, token->text.text);
}

void emu_expect(struct emu_parser *parser, char punctuation)
{
    char wanted[] = {'\'', punctuation, '\'', '\0'};
    if (!emu_accept(parser, punctuation))
        unexpected(parser, wanted);
}

struct emu_str emu_expect_name(struct emu_parser *parser, const char *what)
{
    struct emu_str name = parser->token.text;
    if (parser->token.kind != TOK_NAME)
        unexpected(parser, what);
    emu_advance(parser);
    return name;
}

uint64_t emu_expect_int(struct emu_parser *parser, const char *what)
{
    struct emu_token token = parser->token;
    bool warp_size = token.kind == TOK_NAME && emu_str_is(token.text, "WARP_SZ");
    if (token.kind != TOK_INT && !warp_size)
        unexpected(parser, what);
    emu_advance(parser);
    return warp_size ? 32 : token.bits;
}

void emu_skip_to_semicolon(struct emu_parser *parser)
{
    while (!emu_accept(parser, ';')) {
        if (parser->token.kind == TOK_END)
            unexpected(parser, "';'");
        emu_advance(parser);
    }
}

void emu_skip_line(struct emu_parser *parser)
{
    uint32_t line = parser->token.line;
    while (parser->token.kind != TOK_END && parser->token.line == line)
        emu_advance(parser);
}

/* ---- symbols ---- */

static uint32_t hash_of(struct emu_str name, uint32_t scope)
{
    uint32_t hash = 2166136261u ^ scope * 0x9e3779b9u;
    for (uint32_t i = 0; i < name.length; i++)
        hash = (hash ^ (unsigned char)name.text[i]) * 16777619u;
    return hash ^ hash >> 15;
}

static struct emu_symbol **chain_of(const struct emu_module *module, uint32_t hash)
{
    return &module->symbols[hash & (module->symbol_buckets - 1)];
}

static struct emu_symbol *find_exact(const struct emu_module *module, struct emu_str name,
                                     uint32_t scope)
{
    uint32_t hash = hash_of(name, scope);
    struct emu_symbol *symbol = module->symbol_buckets ? *chain_of(module, hash) : NULL;
    while (symbol &&
           (symbol->hash != hash || symbol->scope != scope || !emu_str_equal(symbol->name, name)))
        symbol = symbol->next;
    return symbol;
}

static void link_symbol(struct emu_module *module, struct emu_symbol *symbol)
{
    struct emu_symbol **chain = chain_of(module, symbol->hash);
    symbol->next = *chain;
    *chain = symbol;
}

/* The number of buckets is a power of 2. */
static void widen_symbols(struct emu_module *module)
{
    struct emu_symbol **chains = module->symbols;
    uint32_t count = module->symbol_buckets;
    module->symbol_buckets = count ? 2 * count : 256;
    module->symbols =
        emu_alloc(&module->arena, module->symbol_buckets, sizeof(struct emu_symbol *));
    for (uint32_t i = 0; i < count; i++)
        for (struct emu_symbol *symbol = chains[i], *next; symbol; symbol = next) {
            next = symbol->next;
            link_symbol(module, symbol);
        }
}

/* "%r12" within "%r<40>": the longest digit tail without a leading zero. */
static const struct emu_symbol *find_range(const struct emu_module *module, struct emu_str name,
                                           uint32_t scope, uint32_t *index)
{
    uint32_t digits = 0;
    while (digits < name.length && digits < 9 && name.text[name.length - 1 - digits] >= '0' &&
           name.text[name.length - 1 - digits] <= '9')
        digits++;
    for (; digits > 0; digits--) {
        const char *tail = name.text + name.length - digits;
        if (*tail == '0' && digits > 1)
            continue;
        struct emu_str prefix = {name.text, name.length - digits};
        const struct emu_symbol *symbol = find_exact(module, prefix, scope);
        uint32_t number = 0;
        for (uint32_t i = 0; i < digits; i++)
            number = number * 10 + (uint32_t)(tail[i] - '0');
        if (symbol && symbol->is_range && number < symbol->count) {
            *index = symbol->first + number;
            return symbol;
        }
    }
    return NULL;
}

static _Noreturn void refuse_twice(struct emu_parser *parser, const struct emu_token *at,
                                   struct emu_str name)
{
    emu_syntax(parser, at, "'%.*s' is declared twice in one scope", (int)name.length, name.text);
}

struct emu_symbol *emu_declare(struct emu_parser *parser, const struct emu_token *at,
                               struct emu_str name, enum emu_symbol_kind kind)
{
    struct emu_module *module = parser->module;
    struct emu_symbol *symbol = find_exact(module, name, parser->scope);
    if (symbol && kind == SYMBOL_FUNCTION && symbol->kind == SYMBOL_FUNCTION)
        return symbol;
    uint32_t index;
    bool is_value = kind == SYMBOL_VARIABLE || (kind == SYMBOL_REGISTER && !emu_at(parser, '<'));
    if (symbol || (is_value && find_range(module, name, parser->scope, &index)))
        refuse_twice(parser, at, name);
    symbol = emu_alloc(&module->arena, 1, sizeof *symbol);
    *symbol = (struct emu_symbol){
        .name = name, .scope = parser->scope, .kind = kind, .hash = hash_of(name, parser->scope)};
    struct emu_symbol **last = &module->scopes[parser->scope].last;
    symbol->sibling = *last;
    *last = symbol;
    if (module->symbol_count++ >= module->symbol_buckets)
        widen_symbols(module);
    link_symbol(module, symbol);
    return symbol;
}

void emu_declare_range(struct emu_parser *parser, const struct emu_token *at,
                       struct emu_symbol *range)
{
    uint32_t index;
    range->is_range = true;
    for (const struct emu_symbol *other = range->sibling; other; other = other->sibling)
        if ((other->kind == SYMBOL_REGISTER || other->kind == SYMBOL_VARIABLE) &&
            !other->is_range && other->name.length > range->name.length &&
            !memcmp(other->name.text, range->name.text, range->name.length) &&
            find_range(parser->module, other->name, parser->scope, &index) == range)
            refuse_twice(parser, at, other->name);
}

const struct emu_symbol *emu_find_symbol(const struct emu_module *module, struct emu_str name,
                                         uint32_t scope, uint32_t *index)
{
    for (;;) {
        const struct emu_symbol *symbol = find_exact(module, name, scope);
        if (symbol && !symbol->is_range) {
            *index = symbol->first;
            return symbol;
        }
        symbol = find_range(module, name, scope, index);
        if (symbol || scope == 0)
            return symbol;
        scope = module->scopes[scope].parent;
    }
}

struct emu_str emu_source_line(const struct emu_module *module, uint32_t line,
                               struct emu_line_cursor *cursor)
{
    const char *end = module->text + module->length;
    if (!cursor->at || cursor->line > line)
        *cursor = (struct emu_line_cursor){module->text, 1};
    for (; cursor->line < line && cursor->at < end; cursor->line++) {
        const char *newline = memchr(cursor->at, '\n', (size_t)(end - cursor->at));
        cursor->at = newline ? newline + 1 : end;
    }
    const char *at = cursor->at;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    stop = stop ? stop : end;
    while (stop > at && (stop[-1] == '\r' || stop[-1] == ' '))
        stop--;
    return (struct emu_str){at, (uint32_t)(stop - at)};
}

/* ---- functions ---- */

static void parse_triple(struct emu_parser *parser, uint32_t value[3])
{
    uint64_t product = 1;
    value[0] = value[1] = value[2] = 1;
    for (int i = 0; i < 3; i++) {
        uint64_t extent = emu_expect_int(parser, "an extent");
        if (extent == 0 || extent > UINT32_MAX)
            emu_syntax(parser, &parser->token, "an extent of %llu is out of range",
                       (unsigned long long)extent);
        value[i] = (uint32_t)extent;
        product *= extent;
        if (product > UINT32_MAX)
            emu_syntax(parser, &parser->token, "extents whose product is above %u", UINT32_MAX);
        if (!emu_accept(parser, ','))
            return;
    }
}

/* ISA "Performance-Tuning Directives" and "Cluster Dimension Directives". */
static void parse_tuning(struct emu_parser *parser, struct emu_function *function)
{
    uint32_t ignored[3];
    static const char *const numbers[] = {"maxnctapersm", "maxclusterrank", "local_maxnreg"};
    while (parser->token.kind == TOK_DOT) {
        if (emu_accept_dot(parser, "maxntid"))
            parse_triple(parser, function->max_threads);
        else if (emu_accept_dot(parser, "reqntid"))
            parse_triple(parser, function->required_threads);
        else if (emu_accept_dot(parser, "reqnctapercluster"))
            parse_triple(parser, function->required_cluster);
        else if (emu_accept_dot(parser, "explicitcluster"))
            function->explicit_cluster = true;
        else if (emu_accept_dot(parser, "maxnreg"))
            function->max_registers = (uint32_t)emu_expect_int(parser, "a register count");
        else if (emu_accept_dot(parser, "minnctapersm"))
            emu_expect_int(parser, "a CTA count");
        else if (emu_accept_dot(parser, "pragma"))
            emu_skip_to_semicolon(parser);
        else if (emu_at_dot(parser, "noreturn") || emu_at_dot(parser, "blocksareclusters") ||
                 emu_at_dot(parser, "unified"))
            emu_advance(parser);
        else {
            size_t i = 0;
            while (i < sizeof numbers / sizeof *numbers && !emu_at_dot(parser, numbers[i]))
                i++;
            if (i == sizeof numbers / sizeof *numbers)
                unexpected(parser, "a performance directive, ';' or '{'");
            emu_advance(parser);
            parse_triple(parser, ignored);
        }
    }
}

static struct emu_function *new_function(struct emu_parser *parser, const struct emu_token *at,
                                         struct emu_str name)
{
    struct emu_module *module = parser->module;
    struct emu_symbol *symbol = emu_declare(parser, at, name, SYMBOL_FUNCTION);
    if (symbol->count) {
        struct emu_function *earlier = &module->functions[symbol->first];
        if (earlier->has_body)
            emu_syntax(parser, at, "function '%.*s' has two bodies", (int)name.length, name.text);
        *earlier = (struct emu_function){.name = name};
        return earlier;
    }
    emu_grow(&module->arena, &module->functions, module->function_count, &module->function_capacity,
             sizeof *module->functions);
    symbol->first = (uint32_t)module->function_count;
    symbol->count = 1;
    struct emu_function *function = &module->functions[module->function_count++];
    function->name = name;
    return function;
}

uint32_t emu_open_scope(struct emu_parser *parser)
{
    struct emu_module *module = parser->module;
    emu_grow(&module->arena, &module->scopes, module->scope_count, &module->scope_capacity,
             sizeof *module->scopes);
    module->scopes[module->scope_count].parent = parser->scope;
    return (uint32_t)module->scope_count++;
}

static void parse_function(struct emu_parser *parser, bool is_entry)
{
    struct emu_function parsed = {.is_entry = is_entry, .line = parser->token.line};
    emu_advance(parser);
    uint32_t inner = emu_open_scope(parser);
    parser->function = &parsed;
    if (!is_entry && emu_at(parser, '(')) {
        parser->scope = inner;
        emu_parse_parameters(parser, &parsed.results, &parsed.result_count,
                             &parsed.result_capacity);
        parser->scope = 0;
    }
    struct emu_token at = parser->token;
    parsed.name = emu_expect_name(parser, "the function's name");
    struct emu_function *function = new_function(parser, &at, parsed.name);
    size_t number = (size_t)(function - parser->module->functions);
    parser->scope = inner;
    if (emu_at(parser, '('))
        emu_parse_parameters(parser, &parsed.parameters, &parsed.parameter_count,
                             &parsed.parameter_capacity);
    parse_tuning(parser, &parsed);
    if (emu_accept(parser, '{')) {
        parsed.has_body = true;
        emu_parse_body(parser);
    } else {
        emu_expect(parser, ';');
    }
    parser->module->functions[number] = parsed;
    parser->function = NULL;
    parser->scope = 0;
}

/* ---- module ---- */

static void parse_version(struct emu_parser *parser)
{
    struct emu_token at = parser->token;
    if (at.kind != TOK_F64)
        unexpected(parser, "a version such as 7.8");
    char text[16] = "";
    memcpy(text, at.text.text, at.text.length < 15 ? at.text.length : 15);
    char *dot = strchr(text, '.');
    parser->module->version_major = (uint32_t)strtoul(text, NULL, 10);
    parser->module->version_minor = dot ? (uint32_t)strtoul(dot + 1, NULL, 10) : 0;
    emu_advance(parser);
}

static void skip_braces(struct emu_parser *parser)
{
    size_t depth = 0;
    do {
        if (emu_at(parser, '{'))
            depth++;
        else if (emu_at(parser, '}'))
            depth--;
        else if (parser->token.kind == TOK_END)
            unexpected(parser, "'}'");
        emu_advance(parser);
    } while (depth > 0);
}

static void parse_directive(struct emu_parser *parser)
{
    bool is_extern = false;
    if (emu_accept_dot(parser, "version")) {
        parse_version(parser);
        return;
    }
    if (emu_accept_dot(parser, "target")) {
        parser->module->target_line = parser->token.line;
        parser->module->target = emu_expect_name(parser, "a target such as sm_80");
        while (emu_accept(parser, ','))
            emu_expect_name(parser, "a target option");
        return;
    }
    if (emu_accept_dot(parser, "address_size")) {
        parser->module->address_size = (uint32_t)emu_expect_int(parser, "32 or 64");
        if (parser->module->address_size != 64)
            emu_syntax(parser, &parser->token, "only .address_size 64 is emulated");
        return;
    }
    if (emu_at_dot(parser, "file") || emu_at_dot(parser, "loc")) {
        emu_skip_line(parser);
        return;
    }
    if (emu_accept_dot(parser, "section")) {
        emu_advance(parser);
        skip_braces(parser);
        return;
    }
    if (emu_at_dot(parser, "pragma") || emu_at_dot(parser, "alias")) {
        emu_skip_to_semicolon(parser);
        return;
    }
    for (;;) {
        if (emu_accept_dot(parser, "extern"))
            is_extern = true;
        else if (emu_at_dot(parser, "visible") || emu_at_dot(parser, "weak") ||
                 emu_at_dot(parser, "common"))
            emu_advance(parser);
        else
            break;
    }
    if (emu_at_dot(parser, "entry") || emu_at_dot(parser, "func"))
        parse_function(parser, emu_at_dot(parser, "entry"));
    else if (emu_at_variable(parser))
        emu_parse_variables(parser, is_extern);
    else
        unexpected(parser, "a module directive");
}

static void parse_module(struct emu_parser *parser)
{
    emu_advance(parser);
    emu_advance(parser);
    if (!emu_at_dot(parser, "version"))
        unexpected(parser, "'.version' first");
    while (parser->token.kind != TOK_END)
        if (!emu_accept(parser, ';'))
            parse_directive(parser);
    if (!parser->module->target.length)
        emu_syntax(parser, &parser->token, "the module has no .target");
}

static ptxgen_status parse(const char *text, size_t length, struct emu_module **module,
                           ptxgen_error *err)
{
    struct emu_module *made = calloc(1, sizeof *made);
    if (!made)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a PTX module");
    struct emu_parser *parser = calloc(1, sizeof *parser);
    if (!parser) {
        free(made);
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the PTX parser");
    }
    parser->module = made;
    parser->err = err;
    made->arena.escape = &parser->escape;
    int failed = setjmp(parser->escape);
    if (!failed) {
        made->text = emu_copy_text(&made->arena, text, length);
        made->length = strlen(made->text);
        made->address_size = 64;
        emu_open_scope(parser);
        emu_lexer_start(&parser->lexer, made->text, made->length);
        parse_module(parser);
    }
    made->arena.escape = NULL;
    free(parser);
    if (failed) {
        emu_module_free(made);
        return failed == 1 ? PTXGEN_ERROR_PTX_SYNTAX
                           : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                                         "no memory to parse %zu bytes of PTX", length);
    }
    *module = made;
    return PTXGEN_OK;
}

ptxgen_status emu_module_parse(const char *text, size_t length, struct emu_module **module,
                               ptxgen_error *err)
{
    struct c_locale locale;
    if (!c_locale_begin(&locale))
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the C locale");
    ptxgen_status status = parse(text, length, module, err);
    c_locale_end(&locale);
    return status;
}

void emu_module_free(struct emu_module *module)
{
    if (!module)
        return;
    emu_arena_free(&module->arena);
    free(module);
}
