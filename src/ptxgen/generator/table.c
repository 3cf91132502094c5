/* SPDX-License-Identifier: Apache-2.0 */
/* Prints table.inc: the instructions and modifiers as the data that ../table.h declares. */
#include "instruction.h"
#include "strings.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is shared: terms, and runs of terms and of needs, each printed once ---- */

enum { LINE = 128 };

/* Lines of C, each an element of an array to be printed. */
struct lines {
    char (*text)[LINE];
    size_t count, capacity;
};

static void append_lines(struct lines *all, char (*run)[LINE], size_t count)
{
    while (all->count + count > all->capacity) {
        all->capacity = 2 * all->capacity + 64;
        all->text = realloc(all->text, all->capacity * sizeof *all->text);
        if (!all->text)
            stop("no memory");
    }
    memcpy(all->text[all->count], run, count * sizeof *run);
    all->count += count;
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
    append_lines(all, run, count);
    return all->count - count;
}

static void print_lines(const char *type, const char *name, const struct lines *lines)
{
    printf("const struct %s %s[] = {\n", type, name);
    for (size_t i = 0; i < lines->count; i++)
        printf("    {%s},\n", lines->text[i]);
    printf("};\n");
}

static struct lines terms, runs, needs, rows, literals;

/* ---- instructions ---- */

/* Where the number stands in the list; it is appended when it is new. */
static size_t place_number(struct lines *all, size_t number)
{
    char line[1][LINE];
    snprintf(line[0], LINE, "%zu", number);
    return place_run(all, line, 1);
}

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
    size_t literal = t->kind == 'l' ? place_number(&literals, place_string(t->literal)) : 0;
    snprintf(line, LINE, "%s, %s, %d, %d, %d, %d, %zu, %d, %d, %d", kind,
             t->type[0] ? find_type(t->type)->constant : "0", flags, t->count, t->divisor, t->space,
             literal, t->lo, t->step, t->hi);
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

/* The term's number among the different ones. */
static size_t place_term(const struct term *t)
{
    char line[1][LINE];
    write_term(line[0], t);
    return place_run(&terms, line, 1);
}

static void place_row(const struct instruction *in)
{
    char run[MAX_TERMS][LINE], needed[MAX_NEEDS][LINE], rest[1][LINE];
    for (int i = 0; i < in->term_count; i++)
        snprintf(run[i], LINE, "%zu", place_term(&in->terms[i]));
    for (int i = 0; i < in->need_count; i++)
        snprintf(needed[i], LINE, "%d, %d, %d", in->needs[i].ptx, in->needs[i].sm,
                 in->needs[i].suffix);
    size_t first = place_run(&runs, run, (size_t)in->term_count);
    size_t first_need = place_run(&needs, needed, (size_t)in->need_count);
    size_t n = place_term(&in->n);
    if (terms.count > UINT8_MAX || needs.count > UINT8_MAX || runs.count > UINT16_MAX)
        stop("more terms or needs than their numbers have bits for");
    snprintf(rest[0], LINE, "%zu %zu %zu, %u, %zu, %zu, %d, %d, %d, %d", place_string(in->name),
             place_string(in->text), first, in->flags, first_need, n, in->term_count,
             in->need_count, operand_count(in), in->align);
    append_lines(&rows, rest, 1);
}

/* A row holds the numbers of its strings, which now have their places. */
static void print_rows(void)
{
    printf("const struct ptx_op ptx_ops[] = {\n");
    for (size_t i = 0; i < rows.count; i++) {
        char *rest;
        size_t name = strtoul(rows.text[i], &rest, 10), text = strtoul(rest, &rest, 10);
        printf("    {%zu, %zu,%s},\n", packed_place(name), packed_place(text), rest);
    }
    printf("};\n");
}

static void print_numbers(const char *type, const char *name, const struct lines *lines)
{
    printf("const %s %s[] = {\n    ", type, name);
    for (size_t i = 0; i < lines->count; i++)
        printf("%s,%s", lines->text[i], i % 24 == 23 ? "\n    " : " ");
    printf("};\n");
}

static void print_literals(void)
{
    printf("const uint16_t ptx_literals[] = {\n    ");
    for (size_t i = 0; i < literals.count; i++)
        printf("%zu, ", packed_place(strtoul(literals.text[i], NULL, 10)));
    printf("};\n");
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
    for_each_instruction(place_row);
    pack_strings();
    print_strings();
    print_literals();
    print_lines("ptx_term", "ptx_terms", &terms);
    print_numbers("uint8_t", "ptx_term_runs", &runs);
    print_lines("ptx_need", "ptx_needs", &needs);
    print_rows();
    for_each_group(print_alternatives);
    printf("const struct ptx_modifier_group ptx_modifier_groups[] = {\n");
    for_each_group(print_group);
    printf("};\n");
}
