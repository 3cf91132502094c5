/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values stand in the order of the text, each with the distances to its first child and to what
 * follows it in its container. The parser keeps no stack: it returns to a container by `parent`, so
 * that nesting costs the file's length alone.
 */
#include "json_text.h"

#include "printable.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX }; /* no container */

struct json_text {
    struct json_value *values;
    char *strings; /* all of them, decoded, each with a NUL at its end */
};

struct parser {
    const char *subject;
    const char *text, *at, *end;
    struct json_text *json;
    size_t count, room; /* of values */
    char *next_string;
    const char *key; /* of the value that comes next */
    uint32_t open;   /* the innermost container that is not closed, or NONE */
    ptxgen_error *err;
};

static ptxgen_status malformed(const struct parser *p)
{
    return ptxgen_fail(p->err, PTXGEN_ERROR_MALFORMED, "%s: the JSON is malformed near byte %td",
                       p->subject, p->at - p->text);
}

static ptxgen_status no_memory(const struct parser *p)
{
    return ptxgen_fail(p->err, PTXGEN_ERROR_OUT_OF_MEMORY,
                       "no memory for the contents of %td bytes of JSON", p->end - p->text);
}

/* ---- characters ---- */

/* The byte that comes next; 0, which no JSON has outside of strings, at the end. */
static char peek(const struct parser *p)
{
    return p->at < p->end ? *p->at : '\0';
}

static bool take(struct parser *p, char c)
{
    if (peek(p) != c)
        return false;
    p->at++;
    return true;
}

static void skip_white(struct parser *p)
{
    while (peek(p) == ' ' || peek(p) == '\t' || peek(p) == '\r' || peek(p) == '\n')
        p->at++;
}

static bool take_digits(struct parser *p)
{
    const char *first = p->at;
    while (peek(p) >= '0' && peek(p) <= '9')
        p->at++;
    return p->at > first;
}

/* ---- strings ---- */

/* Four digits to the base 16; -1 where there are none. */
static int32_t hex4(const char *digits, const char *end)
{
    int32_t value = 0;
    if (end - digits < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = digits[i], letter = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            value = 16 * value + (c - '0');
        else if (letter >= 'a' && letter <= 'f')
            value = 16 * value + (letter - 'a' + 10);
        else
            return -1;
    }
    return value;
}

static void put_utf8(struct parser *p, uint32_t code)
{
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    unsigned bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (unsigned i = bytes; i-- > 1; code >>= 6)
        p->next_string[i] = (char)(0x80 | (code & 0x3F));
    p->next_string[0] = (char)(bytes == 1 ? code : leads[bytes] | code);
    p->next_string += bytes;
}

/* What follows "\u": a character, or two that are a pair of surrogates. */
static ptxgen_status take_code(struct parser *p)
{
    const char *digits = p->at + 2;
    int32_t high = hex4(digits, p->end), low;
    if (high == 0)
        return ptxgen_fail(p->err, PTXGEN_ERROR_MALFORMED,
                           "%s: a string holds a NUL (\\u0000) at byte %td", p->subject,
                           p->at - p->text);
    if (high < 0 || (high >= 0xDC00 && high < 0xE000))
        return malformed(p);
    if (high < 0xD800 || high >= 0xE000) {
        put_utf8(p, (uint32_t)high);
        p->at = digits + 4;
        return PTXGEN_OK;
    }
    if (p->end - digits < 10 || digits[4] != '\\' || digits[5] != 'u')
        return malformed(p);
    low = hex4(digits + 6, p->end);
    if (low < 0xDC00 || low >= 0xE000)
        return malformed(p);
    put_utf8(p, 0x10000 + ((uint32_t)(high - 0xD800) << 10) + (uint32_t)(low - 0xDC00));
    p->at = digits + 10;
    return PTXGEN_OK;
}

static ptxgen_status take_escape(struct parser *p)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char name = p->end - p->at < 2 ? '\0' : p->at[1];
    if (name == 'u')
        return take_code(p);
    const char *found = name ? strchr(names, name) : NULL;
    if (!found)
        return malformed(p);
    *p->next_string++ = meanings[found - names];
    p->at += 2;
    return PTXGEN_OK;
}

/* Decoded, a string is no longer than in the text, and its NUL takes the place of a quote. */
static ptxgen_status take_string(struct parser *p, const char **string, uint32_t *length)
{
    char *first = p->next_string;
    if (!take(p, '"'))
        return malformed(p);
    while (p->at < p->end && *p->at != '"') {
        ptxgen_status status = PTXGEN_OK;
        if ((unsigned char)*p->at < 0x20)
            status = ptxgen_fail(p->err, PTXGEN_ERROR_MALFORMED,
                                 "%s: a string holds the raw control character 0x%02X at byte %td",
                                 p->subject, (unsigned)(unsigned char)*p->at, p->at - p->text);
        else if (*p->at == '\\')
            status = take_escape(p);
        else
            *p->next_string++ = *p->at++;
        if (status != PTXGEN_OK)
            return status;
    }
    if (!take(p, '"'))
        return malformed(p);
    *string = first;
    *length = (uint32_t)(p->next_string - first);
    *p->next_string++ = '\0';
    return PTXGEN_OK;
}

/* ---- values ---- */

static struct json_value *append(struct parser *p, enum json_kind kind)
{
    struct json_text *json = p->json;
    if (p->count == p->room) {
        size_t room = p->room ? 2 * p->room : 64;
        struct json_value *values = realloc(json->values, room * sizeof *values);
        if (!values)
            return NULL;
        json->values = values;
        p->room = room;
    }
    uint32_t place = (uint32_t)p->count++;
    json->values[place] = (struct json_value){.key = p->key, .kind = kind, .parent = p->open};
    if (p->open != NONE) {
        struct json_value *container = &json->values[p->open];
        if (container->last)
            json->values[container->last].next = place - container->last;
        else
            container->child = place - p->open;
        container->last = place;
    }
    p->key = NULL;
    return &json->values[place];
}

static ptxgen_status take_number(struct parser *p)
{
    const char *first = p->at;
    take(p, '-');
    if (!take(p, '0') && !take_digits(p))
        return malformed(p);
    if (take(p, '.') && !take_digits(p))
        return malformed(p);
    if (take(p, 'e') || take(p, 'E')) {
        if (!take(p, '+'))
            take(p, '-');
        if (!take_digits(p))
            return malformed(p);
    }
    struct json_value *value = append(p, JSON_NUMBER);
    if (!value)
        return no_memory(p);
    value->text = first;
    value->length = (uint32_t)(p->at - first);
    return PTXGEN_OK;
}

static ptxgen_status take_literal(struct parser *p)
{
    static const char *const literals[] = {"null", "true", "false"};
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
        size_t length = strlen(literals[i]);
        if ((size_t)(p->end - p->at) < length || memcmp(p->at, literals[i], length) != 0)
            continue;
        p->at += length;
        return append(p, JSON_LITERAL) ? PTXGEN_OK : no_memory(p);
    }
    return malformed(p);
}

static ptxgen_status take_string_value(struct parser *p)
{
    struct json_value *value = append(p, JSON_STRING);
    return value ? take_string(p, &value->text, &value->length) : no_memory(p);
}

static ptxgen_status open_container(struct parser *p, enum json_kind kind)
{
    p->at++;
    struct json_value *value = append(p, kind);
    if (!value)
        return no_memory(p);
    p->open = (uint32_t)(value - p->json->values);
    return PTXGEN_OK;
}

/* One value, of a container its beginning. */
static ptxgen_status take_value(struct parser *p)
{
    switch (peek(p)) {
    case '{': return open_container(p, JSON_OBJECT);
    case '[': return open_container(p, JSON_ARRAY);
    case '"': return take_string_value(p);
    case 'n':
    case 't':
    case 'f': return take_literal(p);
    default: return take_number(p);
    }
}

static ptxgen_status take_key(struct parser *p)
{
    uint32_t length;
    skip_white(p);
    ptxgen_status status = take_string(p, &p->key, &length);
    if (status != PTXGEN_OK)
        return status;
    skip_white(p);
    return take(p, ':') ? PTXGEN_OK : malformed(p);
}

/* Goes to where the next value begins, or closes containers until none is open. */
static ptxgen_status go_on(struct parser *p)
{
    while (p->open != NONE) {
        const struct json_value *container = &p->json->values[p->open];
        bool is_object = container->kind == JSON_OBJECT;
        bool is_empty = !container->last;
        skip_white(p);
        if (take(p, is_object ? '}' : ']')) {
            p->open = container->parent;
            continue;
        }
        if (!is_empty && !take(p, ','))
            return malformed(p);
        return is_object ? take_key(p) : PTXGEN_OK;
    }
    return PTXGEN_OK;
}

static ptxgen_status parse(struct parser *p)
{
    do {
        skip_white(p);
        ptxgen_status status = take_value(p);
        if (status == PTXGEN_OK)
            status = go_on(p);
        if (status != PTXGEN_OK)
            return status;
    } while (p->open != NONE);
    skip_white(p);
    if (p->at < p->end)
        return ptxgen_fail(p->err, PTXGEN_ERROR_MALFORMED,
                           "%s: byte %td follows the JSON object but is not white space",
                           p->subject, p->at - p->text);
    return PTXGEN_OK;
}

ptxgen_status json_text_parse(const char *subject, const char *text, size_t length,
                              struct json_text **json, ptxgen_error *err)
{
    struct parser p = {.subject = subject,
                       .text = text,
                       .at = text,
                       .end = text + length,
                       .open = NONE,
                       .err = err};
    *json = NULL;
    if (!utf8_is_valid(text, length))
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s: it is not UTF-8", subject);
    p.json = calloc(1, sizeof *p.json);
    if (!p.json)
        return no_memory(&p);
    p.json->strings = p.next_string = malloc(length ? length : 1);
    ptxgen_status status = p.next_string ? parse(&p) : no_memory(&p);
    if (status == PTXGEN_OK)
        *json = p.json;
    else
        json_text_free(p.json);
    return status;
}

void json_text_free(struct json_text *json)
{
    if (!json)
        return;
    free(json->values);
    free(json->strings);
    free(json);
}

const struct json_value *json_text_root(const struct json_text *json)
{
    return &json->values[0];
}
