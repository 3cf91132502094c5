/* SPDX-License-Identifier: Apache-2.0 */
/* Prints table.inc: the instructions and modifiers as the data that ../table.h declares. */
#include "instruction.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is shared: strings, and runs of terms and of needs, each printed once ---- */

enum { LINE = 128 };

/* Lines of C, each an element of an array to be printed. */
struct lines {
    char (*text)[LINE];
    size_t count, capacity;
};

static void *more(void *array, size_t capacity, size_t element)
{
    void *larger = realloc(array, capacity * element);
    if (!larger)
        stop("no memory");
    return larger;
}

/* Where the run stands in the array; it is appended when it is new. */
static size_t place_run(struct lines *all, char (*run)[LINE], size_t count)
{
    for (size_t at = 0; at + count <= all->count; at++) {
        size_t same = 0;
        while (same < count && strcmp(all->text[at + same], run[same]) == 0)
            same++;
        if (same == count)
            return at;
    }
    while (all->count + count > all->capacity) {
        all->capacity = 2 * all->capacity + 64;
        all->text = more(all->text, all->capacity, sizeof *all->text);
    }
    memcpy(all->text[all->count], run, count * sizeof *run);
    all->count += count;
    return all->count - count;
}

static void print_lines(const char *type, const char *name, const struct lines *lines)
{
    printf("const struct %s %s[] = {\n", type, name);
    for (size_t i = 0; i < lines->count; i++)
        printf("    {%s},\n", lines->text[i]);
    printf("};\n");
}

/* All strings, one behind the other with their NULs. */
struct strings {
    char *text;
    size_t length, capacity;
};

static size_t place_string(struct strings *all, const char *string)
{
    size_t size = strlen(string) + 1;
    for (size_t at = 0; at < all->length; at += strlen(all->text + at) + 1)
        if (strcmp(all->text + at, string) == 0)
            return at;
    while (all->length + size > all->capacity) {
        all->capacity = 2 * all->capacity + 1024;
        all->text = more(all->text, all->capacity, 1);
    }
    memcpy(all->text + all->length, string, size);
    all->length += size;
    return all->length - size;
}

static void print_strings(const struct strings *all)
{
    printf("const char ptx_strings[] =\n");
    for (size_t at = 0; at < all->length; at += strlen(all->text + at) + 1)
        printf("    \"%s\\0\"\n", all->text + at);
    printf("    ;\n");
}

static struct strings strings;
static struct lines terms, needs, rows;

/* ---- instructions ---- */

static void write_term(char line[LINE], const struct term *t)
{
    static const struct {
        char kind;
        const char *name;
    } kinds[] = {{'r', "PTX_TERM_VALUE"},  {'v', "PTX_TERM_VECTOR"}, {'a', "PTX_TERM_ADDRESS"},
                 {'t', "PTX_TERM_TENSOR"}, {'c', "PTX_TERM_CONST"},  {'l', "PTX_TERM_LITERAL"},
                 {'b', "PTX_TERM_LABEL"}};
    const char *kind = "PTX_TERM_CONST";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == t->kind)
            kind = kinds[i].name;
    int flags = (t->written ? 1 : 0) | (t->read ? 2 : 0) | (t->reg ? 4 : 0) | (t->bar ? 8 : 0) |
                (t->undef_ok ? 16 : 0) | (t->pow2 ? 32 : 0) | (t->int_n ? 64 : 0) |
                (t->upto ? 128 : 0);
    size_t literal = t->kind == 'l' ? place_string(&strings, t->literal) : 0;
    if (literal > UINT16_MAX)
        stop("the literals lie too far back: place them first");
    snprintf(line, LINE, "%s, %s, %d, %d, %d, %d, %zu, %d, %d, %d", kind,
             t->type[0] ? find_type(t->type)->constant : "0", flags, t->count, t->divisor, t->space,
             literal, t->lo, t->step, t->hi);
}

/* Literals come first among the strings: their places have 16 bits. */
static void place_literals(const struct instruction *in)
{
    for (int i = 0; i < in->term_count; i++)
        if (in->terms[i].kind == 'l')
            place_string(&strings, in->terms[i].literal);
}

/* How many operands the instruction takes; 255 when that depends on n. */
static int operand_count(const struct instruction *in)
{
    enum { VARY = 255 };
    int count = 0;
    for (int i = 0; i < in->term_count; i++) {
        const struct term *t = &in->terms[i];
        if (t->divisor)
            return VARY;
        count += t->kind == 'v'   ? t->count
                 : t->kind == 'a' ? 2
                 : t->kind == 't' ? 1 + t->count
                                  : t->kind != 'l';
    }
    return count;
}

static void place_row(const struct instruction *in)
{
    char run[MAX_TERMS][LINE], needed[MAX_NEEDS][LINE], n[1][LINE], row[1][LINE];
    for (int i = 0; i < in->term_count; i++)
        write_term(run[i], &in->terms[i]);
    for (int i = 0; i < in->need_count; i++)
        snprintf(needed[i], LINE, "%d, %d, %d", in->needs[i].ptx, in->needs[i].sm,
                 in->needs[i].suffix);
    write_term(n[0], &in->n);
    size_t first = place_run(&terms, run, (size_t)in->term_count);
    size_t first_need = place_run(&needs, needed, (size_t)in->need_count);
    size_t n_at = place_run(&terms, n, 1);
    if (terms.count > UINT16_MAX || needs.count > UINT16_MAX)
        stop("more than %d terms or needs", UINT16_MAX);
    snprintf(row[0], LINE, "%zu, %zu, %zu, %zu, %zu, %d, %d, %d, %d, %uu",
             place_string(&strings, in->name), place_string(&strings, in->text), first, n_at,
             first_need, in->term_count, in->need_count, operand_count(in), in->align,
             in->flags);
    if (rows.count == rows.capacity) {
        rows.capacity = 2 * rows.capacity + 64;
        rows.text = more(rows.text, rows.capacity, sizeof *rows.text);
    }
    memcpy(rows.text[rows.count++], row, sizeof row);
}

/* ---- modifiers ---- */

static void print_alternatives(const struct modifier *m, int count, int shift, int bits)
{
    (void)shift;
    (void)bits;
    printf("static const struct ptx_modifier group_%s[] = {", m->group);
    for (int j = 1; j <= count; j++)
        printf("{\"%s\", %d, %d}, ", m[j].text, m[j].ptx, m[j].target);
    printf("};\n");
}

static void print_group(const struct modifier *m, int count, int shift, int bits)
{
    printf("    {\"%s\", %d, %d, %d, group_%s},\n", m->group, shift, bits, count, m->group);
}

void print_table(void)
{
    printf("/* Generated from instr.def. */\n");
    for_each_instruction(place_literals);
    for_each_instruction(place_row);
    print_strings(&strings);
    print_lines("ptx_term", "ptx_terms", &terms);
    print_lines("ptx_need", "ptx_needs", &needs);
    print_lines("ptx_op", "ptx_ops", &rows);
    for_each_group(print_alternatives);
    printf("const struct ptx_modifier_group ptx_modifier_groups[] = {\n");
    for_each_group(print_group);
    printf("};\n");
}
