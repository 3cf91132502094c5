/* SPDX-License-Identifier: Apache-2.0 */
/* Prints table.inc: the instructions and modifiers as the data that ../table.h declares. */
#include "instruction.h"

#include <stdio.h>

static void print_term(const struct term *t)
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
    printf("{%s, %s, %d, %d, %d, %d, %d, %d, %d, ", kind,
           t->type[0] ? find_type(t->type)->constant : "0", flags, t->count, t->divisor, t->space,
           t->lo, t->hi, t->step);
    if (t->kind == 'l')
        printf("\"%s\"}", t->literal);
    else
        printf("NULL}");
}

static void print_arrays(const struct instruction *in)
{
    if (in->term_count) {
        printf("static const struct ptx_term terms_%s[] = {", in->name);
        for (int i = 0; i < in->term_count; i++) {
            print_term(&in->terms[i]);
            printf(", ");
        }
        printf("};\n");
    }
    printf("static const struct ptx_need needs_%s[] = {", in->name);
    for (int i = 0; i < in->need_count; i++)
        printf("{%d, %d, %d}, ", in->needs[i].ptx, in->needs[i].sm, in->needs[i].suffix);
    printf("};\n");
}

static void print_row(const struct instruction *in)
{
    printf("    {\"%s\", \"%s\", ", in->name, in->text);
    if (in->term_count)
        printf("terms_%s", in->name);
    else
        printf("NULL");
    printf(", needs_%s, %uu, %d, %d, %d, ", in->name, in->flags, in->term_count, in->need_count,
           in->align);
    print_term(&in->n);
    printf("},\n");
}

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
    for_each_instruction(print_arrays);
    printf("const struct ptx_op ptx_ops[] = {\n");
    for_each_instruction(print_row);
    printf("};\n");
    for_each_group(print_alternatives);
    printf("const struct ptx_modifier_group ptx_modifier_groups[] = {\n");
    for_each_group(print_group);
    printf("};\n");
}
