/* SPDX-License-Identifier: Apache-2.0 */
#include "code.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 1 << 16, NAME_ROOM = 16 /* of "$p65535" and its end */ };

struct name {
    const char *text;
    size_t length;
    unsigned number;
    bool is_parameter; /* numbered among those of the entry that declared the name last */
};

/* An open hash table of the names so far. */
struct names {
    struct name slots[2 * MOST_NAMES];
    unsigned count, parameters; /* in all, and of the present entry */
};

static struct name *slot_of(struct names *names, const char *text, size_t length)
{
    size_t hash = 5381;
    for (size_t i = 0; i < length; i++)
        hash = hash * 33 + (unsigned char)text[i];
    struct name *slot = &names->slots[hash % (2 * MOST_NAMES)];
    while (slot->text && (slot->length != length || memcmp(slot->text, text, length) != 0))
        slot = slot + 1 == names->slots + 2 * MOST_NAMES ? names->slots : slot + 1;
    return slot;
}

static struct name *add(struct names *names, const char *text, size_t length)
{
    struct name *slot = slot_of(names, text, length);
    if (!slot->text && names->count < MOST_NAMES)
        *slot = (struct name){.text = text, .length = length, .number = names->count++};
    return slot;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* The name that ends a declaration: "foo" of ".param .u64 foo," and ".shared .b8 foo[16];". */
static void add_declared(struct names *names, const char *line, size_t length)
{
    size_t end = strcspn(line, "[,(;\n");
    end = end < length ? end : length;
    size_t begin = end;
    while (begin > 0 && is_name(line[begin - 1]))
        begin--;
    if (end == begin)
        return;
    const unsigned others = names->count;
    struct name *name = add(names, line + begin, end - begin);
    name->is_parameter = strstr(line, ".param .") && strstr(line, ".param .") < line + length;
    if (name->is_parameter) {
        name->number = names->parameters++;
        names->count = others;
    }
}

static bool declares(const char *line, size_t length)
{
    static const char *const words[] = {".entry ", ".param .", ".shared .", ".global .",
                                        ".const ."};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(line, words[i]);
        if (at && at < line + length && (at == line || at[-1] == '\t' || at[-1] == ' '))
            return true;
    }
    return false;
}

/* Copies a line, with numbers in place of names. */
static char *copy_line(struct names *names, const char *line, size_t length, char *to)
{
    for (size_t i = 0; i < length;) {
        size_t end = i;
        while (end < length && is_name(line[end]))
            end++;
        bool whole = i == 0 || (line[i - 1] != '.' && line[i - 1] != '%');
        struct name *name = NULL;
        if (end > i && whole)
            name =
                line[i] == '$' ? add(names, line + i, end - i) : slot_of(names, line + i, end - i);
        if (name && name->text) {
            to += sprintf(to, name->is_parameter ? "$p%u" : "$%u", name->number);
        } else {
            size_t bytes = end > i ? end - i : 1;
            memcpy(to, line + i, bytes);
            to += bytes;
        }
        i = end > i ? end : i + 1;
    }
    return to;
}

char *code_of(const char *text)
{
    struct names *names = calloc(1, sizeof *names);
    char *code = names ? malloc(NAME_ROOM * (strlen(text) + 1)) : NULL, *to = code;
    while (code && *text) {
        size_t length = strcspn(text, "\n"), used = length;
        const char *comment = strstr(text, "//");
        if (comment && comment < text + length)
            used = (size_t)(comment - text);
        while (used > 0 && isspace((unsigned char)text[used - 1]))
            used--;
        if (used > 0) {
            if (strncmp(text, ".visible .entry ", strlen(".visible .entry ")) == 0)
                names->parameters = 0;
            if (declares(text, used))
                add_declared(names, text, used);
            to = copy_line(names, text, used, to);
            *to++ = '\n';
        }
        text += length + (text[length] == '\n');
    }
    if (code)
        *to = 0;
    free(names);
    return code;
}
