/* SPDX-License-Identifier: Apache-2.0 */
/* Expands the lines of instr.def (which explains their columns) into instructions. */
#include "instruction.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    const char *name, *types, *variants, *text, *operands, *needs, *flags;
};

static const struct line lines[] = {
#define I(name, types, variants, text, operands, needs, flags)                                     \
    {name, types, variants, text, operands, needs, flags},
#include "instr.def"
#undef I
};

static const struct line *current;

void stop(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "instr.def: %s: ", current ? current->name : "");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static const char *const flag_names[] = {"aligned", "ctabar",  "barn",   "branch",  "exit",
                                         "varies",  "laneuni", "ctauni", "cpasync", "cpwait",
                                         "readsh",  "math",    "mma",    "shflidx"};

/* Replaces $t, $v and their derivatives. */
static void expand(char *out, const char *in, const char *type, const char *variant)
{
    const struct type *t = find_type(type);
    size_t n = 0;
    while (*in) {
        const char *insert = NULL;
        if (*in == '$') {
            switch (in[1]) {
            case 't': insert = type; break;
            case 'v': insert = variant; break;
            case 's': insert = t ? t->spelt : NULL; break;
            case 'b': insert = t ? t->bits : NULL; break;
            case 'u': insert = t ? t->unsigned_ : NULL; break;
            case 'w': insert = t ? t->wide : NULL; break;
            default: break;
            }
            if (!insert)
                stop("cannot expand '$%c' for type '%s'", in[1], type);
            in += 2;
        }
        size_t length = insert ? strlen(insert) : 1;
        if (n + length >= TEXT)
            stop("text too long");
        memcpy(out + n, insert ? insert : in, length);
        n += length;
        if (!insert)
            in++;
    }
    out[n] = 0;
}

static void identifier(char *name)
{
    char *w = name;
    for (char *r = name; *r; r++) {
        char c = *r == '.' || *r == ':' ? '_' : *r;
        if (c == '_' && w > name && w[-1] == '_')
            continue;
        *w++ = c;
    }
    *w = 0;
}

static void parse_range(const char *s, struct term *t)
{
    char *end;
    t->lo = (int)strtol(s, &end, 10);
    t->hi = t->lo;
    t->step = 1;
    if (*end == ':')
        t->hi = (int)strtol(end + 1, &end, 10);
    if (!strcmp(end, ":pow2"))
        t->pow2 = true;
    else if (*end == ':') {
        t->step = (int)strtol(end + 1, &end, 10);
        t->int_n = !strcmp(end, "int");
        if (*end && !t->int_n)
            stop("bad range '%s'", s);
    } else if (*end)
        stop("bad range '%s'", s);
}

static void parse_count(const char *s, struct term *t)
{
    if (*s == 'v')
        s++;
    if (!strncmp(s, "n/", 2)) {
        t->divisor = atoi(s + 2);
        return;
    }
    t->count = atoi(s);
    if (t->count < 1 || t->count > 64)
        stop("bad count '%s'", s);
}

static void parse_value(char *s, struct term *t)
{
    t->kind = 'r';
    size_t n = strlen(s);
    if (n && s[n - 1] == '!') {
        t->reg = true;
        s[n - 1] = 0;
    }
    char *range = strchr(s, ':');
    if (range) {
        *range = 0;
        t->upto = !strcmp(range + 1, "upto");
        if (!t->upto)
            parse_range(range + 1, t);
    }
    char *star = strchr(s, '*');
    if (star) {
        *star = 0;
        t->kind = 'v';
        parse_count(star + 1, t);
    }
    const struct type *type = find_type(s);
    if (!type)
        stop("unknown operand '%s'", s);
    strcpy(t->type, s);
    bool narrow_float = strchr(s, 'f') && strstr(s, "16");
    if (narrow_float || !strcmp(s, "b128") || !strcmp(s, "pred"))
        t->reg = true;
}

static void parse_address(char *s, struct term *t)
{
    t->kind = 'a';
    t->space = s[1];
    char *coordinates = strchr(s, ';');
    if (coordinates) {
        t->kind = 't';
        char *star = strchr(coordinates, '*');
        parse_count(star + 1, t);
        strcpy(t->type, "s32");
    }
    if (!strchr("gslp", t->space) || s[strlen(s) - 1] != ']')
        stop("bad address '%s'", s);
}

static void parse_term(char *s, bool written, struct instruction *in)
{
    if (*s == '%') {
        in->n.kind = 'c';
        parse_range(s + 1, &in->n);
        return;
    }
    if (in->term_count == MAX_TERMS)
        stop("too many operands");
    struct term *t = &in->terms[in->term_count++];
    t->written = written;
    t->read = !written;
    if (*s == '~') {
        t->read = t->undef_ok = true;
        s++;
    }
    if (*s == '#') {
        t->kind = 'c';
        parse_range(s + 1, t);
    } else if (*s == '\'') {
        t->kind = 'l';
        snprintf(t->literal, sizeof t->literal, "%.*s", (int)strlen(s) - 2, s + 1);
    } else if (*s == '[')
        parse_address(s, t);
    else if (!strcmp(s, "label"))
        t->kind = 'b';
    else
        parse_value(s, t);
}

static void parse_list(char *s, bool written, struct instruction *in)
{
    while (*s) {
        s += strspn(s, " ,");
        size_t n = strcspn(s, ",|");
        char end = s[n];
        bool bar = in->term_count && s[-1] == '|';
        char item[TEXT];
        size_t length = n;
        while (length && s[length - 1] == ' ')
            length--;
        if (!length)
            return;
        memcpy(item, s, length);
        item[length] = 0;
        int before = in->term_count;
        parse_term(item, written, in);
        if (bar && in->term_count > before)
            in->terms[in->term_count - 1].bar = true;
        s += n + (end != 0);
    }
}

static int register_bytes(const char *type)
{
    const struct type *t = find_type(type);
    return t && t->bits[0] == 'b' ? atoi(t->bits + 1) / 8 : 0;
}

static void parse_flags(const char *s, struct instruction *in)
{
    char copy[TEXT];
    snprintf(copy, sizeof copy, "%s", s);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        if (!strcmp(word, "distinct") || !strcmp(word, "notuu"))
            continue; /* read where lines are multiplied */
        if (!strncmp(word, "mem", 3)) {
            in->align = atoi(word + 3);
            for (int i = 0; !word[3] && i < in->term_count; i++)
                if (in->terms[i].type[0] && !in->align)
                    in->align = register_bytes(in->terms[i].type) *
                                (in->terms[i].count ? in->terms[i].count : 1);
            continue;
        }
        size_t f = 0, count = sizeof flag_names / sizeof *flag_names;
        while (f < count && strcmp(flag_names[f], word))
            f++;
        if (f == count)
            stop("unknown flag '%s'", word);
        in->flags |= 1u << f;
    }
}

static void parse_needs(const char *s, struct instruction *in)
{
    int major, minor, sm, used;
    while (sscanf(s, "%d.%d/%d%n", &major, &minor, &sm, &used) == 3) {
        if (in->need_count == MAX_NEEDS)
            stop("too many needs");
        s += used;
        in->needs[in->need_count].ptx = major * 10 + minor;
        in->needs[in->need_count].sm = sm;
        in->needs[in->need_count++].suffix = *s == 'a' || *s == 'f' ? *s++ : 0;
        s += strspn(s, " ");
    }
    if (*s)
        stop("bad needs '%s'", s);
    if (!in->need_count) {
        in->needs[0].ptx = 70;
        in->needs[in->need_count++].sm = 80;
    }
}

static void build(const struct line *l, const char *type, const char *variant,
                  struct instruction *in)
{
    memset(in, 0, sizeof *in);
    char operands[TEXT];
    expand(in->name, l->name, type, variant);
    identifier(in->name);
    expand(in->text, l->text, type, variant);
    expand(operands, l->operands, type, variant);
    char *equals = strchr(operands, '=');
    if (!equals)
        stop("operands need a '='");
    *equals = 0;
    parse_list(operands, true, in);
    parse_list(equals + 1, false, in);
    parse_needs(l->needs, in);
    parse_flags(l->flags, in);
}

void for_each_instruction(void (*visit)(const struct instruction *))
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        current = &lines[i];
        char type_list[TEXT], *next_type = type_list;
        snprintf(type_list, sizeof type_list, "%s", lines[i].types);
        do {
            char *type = next_type;
            next_type = strchr(type, ' ');
            if (next_type)
                *next_type++ = 0;
            char variant_list[TEXT], *next_variant = variant_list;
            snprintf(variant_list, sizeof variant_list, "%s", lines[i].variants);
            do {
                char *variant = next_variant;
                next_variant = strchr(variant, ' ');
                if (next_variant)
                    *next_variant++ = 0;
                if (strstr(lines[i].flags, "distinct") && !strcmp(type, variant))
                    continue;
                if (strstr(lines[i].flags, "notuu") && *type == 'u' && *variant == 'u')
                    continue;
                struct instruction in;
                build(&lines[i], type, variant, &in);
                visit(&in);
            } while (next_variant);
        } while (next_type);
    }
    current = NULL;
}
