/* SPDX-License-Identifier: Apache-2.0 */
#include "mutate.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 2048, MOST_SPANS = 600 };

static size_t draw(struct random *random, size_t count)
{
    return (size_t)(random_bits(random) % count);
}

#define DRAW(random, list) (list)[draw(random, sizeof(list) / sizeof *(list))]

/* A piece of a line. */
struct span {
    size_t at, length;
};

struct pieces {
    struct span spans[MOST_SPANS];
    size_t count;
};

static void add_span(struct pieces *p, size_t at, size_t end)
{
    if (p->count < MOST_SPANS)
        p->spans[p->count++] = (struct span){at, end - at};
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_%$.:", c));
}

/* Where the operands begin: behind the guard and the instruction's name. */
static size_t operands_at(const char *line)
{
    size_t at = strspn(line, "\t ");
    if (line[at] == '@')
        at += strcspn(line + at, " ") + 1;
    return at + strcspn(line + at, " ;");
}

/* The modifiers of a line's instruction, with their dots. */
static void find_modifiers(const char *line, struct pieces *p)
{
    size_t at = strspn(line, "\t "), end = operands_at(line);
    if (line[at] == '@')
        at += strcspn(line + at, " ") + 1;
    p->count = 0;
    for (at += strcspn(line + at, ". ;"); at < end && line[at] == '.';) {
        size_t next = at + 1 + strcspn(line + at + 1, ". ;");
        add_span(p, at, next);
        at = next;
    }
}

/* Names and numbers among the operands; `kind`: '%' registers, '0' integers, 'a' all of them. */
static void find_atoms(const char *line, char kind, struct pieces *p)
{
    p->count = 0;
    for (size_t at = operands_at(line); line[at] && line[at] != ';';) {
        size_t end = at;
        if (line[end] == '-' && isdigit((unsigned char)line[end + 1]))
            end++;
        while (in_word(line[end]))
            end++;
        bool is_register = line[at] == '%';
        bool is_integer = end > at && (isdigit((unsigned char)line[at]) || line[at] == '-') &&
                          !memchr(line + at, 'f', end - at) && !memchr(line + at, 'd', end - at);
        if (end > at &&
            (kind == 'a' || (kind == '%' && is_register) || (kind == '0' && is_integer)))
            add_span(p, at, end);
        at = end > at ? end : at + 1;
    }
}

/* ---- one line ---- */

static bool replace(char *line, struct span span, const char *by)
{
    char tail[LONGEST];
    size_t length = strlen(by), rest = strlen(line + span.at + span.length);
    if (span.at + length + rest + 1 > LONGEST)
        return false;
    memcpy(tail, line + span.at + span.length, rest + 1);
    memcpy(line + span.at, by, length);
    memcpy(line + span.at + length, tail, rest + 1);
    return true;
}

static bool replace_one(struct random *random, char *line, const struct pieces *p, const char *by)
{
    return p->count && replace(line, p->spans[draw(random, p->count)], by);
}

static bool change_type(struct random *random, char *line)
{
    static const char *const types[] = {".u8",  ".u16",  ".u32",   ".u64",    ".s16",  ".s32",
                                        ".s64", ".b16",  ".b32",   ".b64",    ".f16",  ".f32",
                                        ".f64", ".bf16", ".f16x2", ".bf16x2", ".pred", ".b128"};
    struct pieces all, typed = {.count = 0};
    find_modifiers(line, &all);
    for (size_t i = 0; i < all.count; i++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            if (strlen(types[t]) == all.spans[i].length &&
                !strncmp(types[t], line + all.spans[i].at, all.spans[i].length))
                add_span(&typed, all.spans[i].at, all.spans[i].at + all.spans[i].length);
    return replace_one(random, line, &typed, DRAW(random, types));
}

static bool drop_modifier(struct random *random, char *line)
{
    struct pieces p;
    find_modifiers(line, &p);
    return replace_one(random, line, &p, "");
}

static bool add_modifier(struct random *random, char *line)
{
    static const char *const more[] = {".rn",     ".rz",  ".ftz",  ".sat",    ".relu", ".cg",
                                       ".global", ".gpu", ".sync", ".approx", ".cc",   ".aligned"};
    struct pieces p;
    find_modifiers(line, &p);
    if (!p.count)
        return false;
    struct span at = p.spans[draw(random, p.count)];
    at.length = 0;
    return replace(line, at, DRAW(random, more));
}

static bool repeat_modifier(struct random *random, char *line)
{
    struct pieces p;
    char again[64];
    find_modifiers(line, &p);
    if (!p.count)
        return false;
    struct span at = p.spans[draw(random, p.count)];
    snprintf(again, sizeof again, "%.*s", (int)at.length, line + at.at);
    at.length = 0;
    return replace(line, at, again);
}

/* Of another width, or a predicate. */
static bool change_register(struct random *random, char *line)
{
    static const char *const others[] = {"%p1", "%r1", "%wide1", "%half1", "%real1", "%whole1"};
    struct pieces p;
    find_atoms(line, '%', &p);
    return replace_one(random, line, &p, DRAW(random, others));
}

static bool register_to_constant(struct random *random, char *line)
{
    static const char *const constants[] = {"1", "-1", "300", "0f3F800000", "0d3FF0000000000000"};
    struct pieces p;
    find_atoms(line, '%', &p);
    return replace_one(random, line, &p, DRAW(random, constants));
}

static bool constant_to_register(struct random *random, char *line)
{
    static const char *const registers[] = {"%r1", "%wide1", "%p1"};
    struct pieces p;
    find_atoms(line, '0', &p);
    return replace_one(random, line, &p, DRAW(random, registers));
}

static bool change_constant(struct random *random, char *line)
{
    static const char *const constants[] = {
        "-1", "0",  "1",  "2",  "3",  "4",  "5",   "7",   "8",   "12",  "15",   "16",   "17",
        "32", "33", "63", "64", "65", "96", "100", "255", "256", "257", "1024", "1056", "4096"};
    struct pieces p;
    find_atoms(line, '0', &p);
    return replace_one(random, line, &p, DRAW(random, constants));
}

static bool undeclare(struct random *random, char *line)
{
    struct pieces p;
    find_atoms(line, '%', &p);
    return replace_one(random, line, &p, "%undeclared");
}

static bool drop_operand(struct random *random, char *line)
{
    struct pieces p;
    find_atoms(line, 'a', &p);
    if (!p.count)
        return false;
    struct span span = p.spans[draw(random, p.count)];
    if (!strncmp(line + span.at + span.length, ", ", 2))
        span.length += 2;
    else if (span.at >= 2 && !strncmp(line + span.at - 2, ", ", 2))
        span.at -= 2, span.length += 2;
    else
        return false;
    return replace(line, span, "");
}

static bool add_operand(struct random *random, char *line)
{
    static const char *const more[] = {", %r1", ", %wide1", ", %p1", ", 1"};
    struct pieces p;
    find_atoms(line, 'a', &p);
    if (!p.count)
        return false;
    struct span span = p.spans[draw(random, p.count)];
    return replace(line, (struct span){span.at + span.length, 0}, DRAW(random, more));
}

static bool change_vector(struct random *random, char *line)
{
    static const char *const widths[] = {"", ".v2", ".v4", ".v8", ".v3"};
    struct pieces all, vectors = {.count = 0};
    find_modifiers(line, &all);
    for (size_t i = 0; i < all.count; i++)
        if (all.spans[i].length == 3 && line[all.spans[i].at + 1] == 'v')
            add_span(&vectors, all.spans[i].at, all.spans[i].at + 3);
    return replace_one(random, line, &vectors, DRAW(random, widths));
}

/* An offset that no access of more than a byte has its alignment with, and others. */
static bool change_offset(struct random *random, char *line)
{
    static const char *const offsets[] = {"+1]", "+2]", "+4]", "+8]", "-16]", "+4294967296]"};
    struct pieces p = {.count = 0};
    for (const char *open = strchr(line, '['); open; open = strchr(open + 1, '[')) {
        size_t at = (size_t)(open - line) + 1;
        at += strcspn(line + at, "+],");
        if (line[at] != ',' && line[at])
            add_span(&p, at, at + strcspn(line + at, "]") + 1);
    }
    return replace_one(random, line, &p, DRAW(random, offsets));
}

static bool drop_brackets(struct random *random, char *line)
{
    (void)random;
    char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
    if (!close)
        return false;
    *open = *close = ' ';
    return true;
}

static bool guard(struct random *random, char *line)
{
    static const char *const guards[] = {"@%p1 ", "@!%p1 ", "@%r1 ", "@%undeclared "};
    size_t at = strspn(line, "\t ");
    return line[at] != '@' && replace(line, (struct span){at, 0}, DRAW(random, guards));
}

static bool drop_semicolon(struct random *random, char *line)
{
    (void)random;
    char *end = strrchr(line, ';');
    if (end)
        *end = ' ';
    return end != NULL;
}

/* ---- declarations ---- */

/* A line more, that declares. */
static bool declare(struct random *random, char *line)
{
    static const char *const more[] = {
        "\t.reg .b32 %r1;\n",        "\t.reg .f32 %r<3>;\n",
        "\t.reg .pred %p1;\n",       "\t.shared .b32 %r1;\n",
        "\t.reg .b32 fresh;\n",      "\t{ .reg .b32 %r1; }\n",
        "\t.reg .b32 e, e;\n",       "\t.reg .b32 e1, e<2>;\n",
        "\t.reg .b32 e2, e<2>;\n",   "\tfresh: fresh:\n",
        "\tfresh: { fresh: }\n",     "\t.reg .b32 f; f:\n",
        "\t.reg .b32 e<2>, e<3>;\n", "\t.reg .b32 e<2>, e1<3>;\n",
        "\t.reg .b32 e01, e<2>;\n",  "\t.local .b8 a[4]; .shared .b8 a[4];\n"};
    return replace(line, (struct span){0, 0}, DRAW(random, more));
}

static const struct {
    const char *name;
    bool (*change)(struct random *random, char *line);
} rules[] = {{"the type is another", change_type},
             {"a modifier is missing", drop_modifier},
             {"there is a modifier more", add_modifier},
             {"a modifier stands twice", repeat_modifier},
             {"a register of another kind", change_register},
             {"a constant for a register", register_to_constant},
             {"a register for a constant", constant_to_register},
             {"the constant is another", change_constant},
             {"a name is not declared", undeclare},
             {"an operand is missing", drop_operand},
             {"there is an operand more", add_operand},
             {"the vector has another width", change_vector},
             {"the offset is another", change_offset},
             {"no brackets", drop_brackets},
             {"a guard", guard},
             {"no semicolon", drop_semicolon},
             {"a declaration more", declare}};

enum { LINE_RULES = sizeof rules / sizeof *rules, TARGET_RULE = LINE_RULES, VERSION_RULE, RULES };
const size_t mutation_count = RULES;

/* ---- the whole ---- */

static const char *find_line(const char *text, size_t number)
{
    for (; number && text; number--) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text;
}

static char *with_line(const char *text, const char *at, const char *by)
{
    size_t before = (size_t)(at - text), length = strcspn(at, "\n");
    char *made = malloc(strlen(text) + strlen(by) + 1);
    if (!made)
        abort();
    memcpy(made, text, before);
    strcpy(made + before, by);
    strcat(made + before, at + length);
    return made;
}

static void read_header(struct mutant *mutant)
{
    const char *version = strstr(mutant->text, ".version"),
               *target = strstr(mutant->text, ".target sm_");
    if (!target || sscanf(target, ".target sm_%15[0-9af]", mutant->target) != 1 || !version ||
        sscanf(version, ".version %7[0-9.]", mutant->version) != 1)
        abort();
}

static bool change_header(struct random *random, size_t rule, char *line)
{
    static const char *const targets[] = {"80",  "86",   "89",  "90", "90a",
                                          "100", "100a", "103", "120"};
    static const char *const versions[] = {"7.0", "7.1", "7.4", "7.8", "8.0", "8.1",
                                           "8.2", "8.4", "8.6", "8.7", "8.8", "9.0"};
    if (rule == TARGET_RULE)
        snprintf(line, LONGEST, ".target sm_%s", DRAW(random, targets));
    else
        snprintf(line, LONGEST, ".version %s", DRAW(random, versions));
    return true;
}

struct mutant mutate(struct random *random, const char *text, size_t line, size_t rule)
{
    struct mutant made = {.rule = rule < LINE_RULES     ? rules[rule].name
                                  : rule == TARGET_RULE ? "the target is another"
                                                        : "the version is another"};
    char changed[LONGEST] = "";
    const char *at = rule == TARGET_RULE    ? strstr(text, ".target")
                     : rule == VERSION_RULE ? strstr(text, ".version")
                                            : find_line(text, line);
    size_t length = strcspn(at, "\n");
    if (length + 1 > LONGEST)
        return made;
    memcpy(changed, at, length);
    if (rule < LINE_RULES ? !rules[rule].change(random, changed)
                          : !change_header(random, rule, changed))
        return made;
    if (strlen(changed) == length && !memcmp(changed, at, length))
        return made;
    made.text = with_line(text, at, changed);
    read_header(&made);
    const char *shown = rule < LINE_RULES ? changed : find_line(text, line);
    snprintf(made.line, sizeof made.line, "%.*s", (int)strcspn(shown, "\n"),
             shown + strspn(shown, "\t"));
    if (rule >= LINE_RULES)
        snprintf(made.line + strlen(made.line), sizeof made.line - strlen(made.line), " %s",
                 changed);
    for (char *c = made.line; *c; c++)
        *c = *c == '\n' || *c == '\t' ? ' ' : *c;
    return made;
}
