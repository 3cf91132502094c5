/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The condition code between instructions: each that writes it before each that reads it, in both
 * widths, and chains of them. In a quarter of the threads the reader's operands are equal, so that
 * a borrow comes in where x − y is 0.
 */
#include "protocol.h"

#include <stdio.h>
#include <string.h>

/* Instructions without "c" or ".cc", and their type. */
struct operation {
    const char *name, *part; /* "mad", ".lo" */
    unsigned operands;
};
static const struct operation adders[] = {
    {"add", "", 2},
    {"sub", "", 2},
    {"mad", ".lo", 3},
    {"mad", ".hi", 3},
};
enum { ADDERS = sizeof adders / sizeof *adders };

/* Registers of operands: %r100 … and %d20 … are the line's first words, of 32 and 64 bits. */
static void append_arithmetic(struct protocol *p, const struct operation *o, bool reads,
                              bool writes, const char *type, const char *to, const unsigned *from)
{
    const bool wide = !strcmp(type + 1, "64");
    protocol_append(p, "%s%s%s%s.%s %s", o->name, reads ? "c" : "", o->part, writes ? ".cc" : "",
                    type, to);
    for (unsigned i = 0; i < o->operands; i++)
        protocol_append(p, ", %%%c%u", wide ? 'd' : 'r', (wide ? 20 : 100) + from[i]);
    protocol_append(p, ";\n");
}

/* Reads 8 words of the line; words 0 and 1 are equal in every fourth thread. */
static struct protocol *add(struct protocol_list *list, const char *name, bool wide)
{
    struct protocol *p = protocol_add(list, "%s", name);
    const char c = wide ? 'd' : 'r';
    const unsigned first = wide ? 20 : 100;
    protocol_set_type(p, protocol_type(wide ? "u64" : "u32"));
    for (unsigned i = 0; i < 8; i++)
        protocol_append(p, "ld.shared.u%u %%%c%u, [%%r3+%u];\n", wide ? 64 : 32, c, first + i,
                        i * (wide ? 8 : 4));
    protocol_append(p,
                    "and.b32 %%r8, %%r0, 3;\nsetp.eq.u32 %%p3, %%r8, 3;\n"
                    "selp.b%u %%%c%u, %%%c%u, %%%c%u, %%p3;\n",
                    wide ? 64 : 32, c, first + 1, c, first, c, first + 1);
    return p;
}

/* The writer's operands are words 2 … 4; one that reads the condition code finds there what an
 * addition of words 5 and 6 has left. */
static void append_writer(struct protocol *p, const struct operation *writer, bool reads,
                          const char *type)
{
    static const unsigned from[] = {2, 3, 4}, before[] = {5, 6};
    const bool wide = !strcmp(type + 1, "64");
    if (reads)
        append_arithmetic(p, &adders[0], false, true, type, wide ? "%d28" : "%r108", before);
    append_arithmetic(p, writer, reads, true, type, wide ? "%d28" : "%r108", from);
}

/* Words of the writer's width are words of the reader's too: the narrow ones are the low halves,
 * and the wide ones repeat a word. */
static void append_other_width(struct protocol *p, bool wide)
{
    for (unsigned i = 0; i < 8; i++)
        if (wide)
            protocol_append(p, "cvt.u32.u64 %%r%u, %%d%u;\n", 100 + i, 20 + i);
        else
            protocol_append(p, "mov.b64 %%d%u, {%%r%u, %%r%u};\n", 20 + i, 100 + i, 100 + i);
}

/* One writer before all readers of a width, of which `writes` says whether they leave a carry. */
static void add_pairs(struct protocol_list *list, const struct operation *writer, bool reads,
                      const char *writer_type, const char *type, bool writes)
{
    static const unsigned from[] = {0, 1, 7};
    const bool wide = !strcmp(type + 1, "64");
    char name[80];
    unsigned at = 0;
    snprintf(name, sizeof name, "%s%s%s.cc.%s before addc, subc, madc%s.%s", writer->name,
             reads ? "c" : "", writer->part, writer_type, writes ? ".cc" : "", type);
    struct protocol *p = add(list, name, !strcmp(writer_type + 1, "64"));
    append_other_width(p, !strcmp(writer_type + 1, "64"));
    protocol_append(p, "mov.u32 %%r120, 0;\n");
    for (unsigned i = 0; i < ADDERS; i++) {
        append_writer(p, writer, reads, writer_type);
        append_arithmetic(p, &adders[i], true, writes, type, wide ? "%d29" : "%r109", from);
        protocol_append(
            p, wide ? "st.global.u64 [%%d2+%u], %%d29;\n" : "st.global.u32 [%%d2+%u], %%r109;\n",
            at);
        at += wide ? 8 : 4;
        if (writes)
            protocol_append(p, "addc.u32 %%r110, 0, 0;\nsubc.u32 %%r111, 0, 0;\n"
                               "mad.lo.u32 %%r120, %%r120, 16, %%r110;\n"
                               "mad.lo.u32 %%r120, %%r120, 16, %%r111;\n");
    }
    protocol_append(p, "st.global.u32 [%%d2+%u], %%r120;\n", at);
}

static void list_pairs(struct protocol_list *list)
{
    static const char *const types[] = {"u32", "s32", "u64", "s64"};
    for (unsigned t = 0; t < sizeof types / sizeof *types; t++)
        for (unsigned w = 0; w < 2 * ADDERS; w++)
            for (unsigned v = 0; v < 4; v++) {
                char type[8];
                snprintf(type, sizeof type, "%c%s", types[t][0], v & 1 ? "64" : "32");
                add_pairs(list, &adders[w % ADDERS], w >= ADDERS, types[t], type, v & 2);
            }
}

/* ---- chains ---- */

static void add_chain(struct protocol_list *list, const char *name, bool wide, const char *steps)
{
    struct protocol *p = add(list, name, wide);
    protocol_append(p, "%s", steps);
    for (unsigned i = 0; i < 4; i++)
        protocol_append(
            p, wide ? "st.global.u64 [%%d2+%u], %%d%u;\n" : "st.global.u32 [%%d2+%u], %%r%u;\n",
            i * (wide ? 8 : 4), (wide ? 10 : 130) + i);
}

static void list_chains(struct protocol_list *list)
{
    add_chain(list, "carry chain: a sum of 128 bits", false,
              "add.cc.u32 %r130, %r100, %r104;\naddc.cc.u32 %r131, %r101, %r105;\n"
              "addc.cc.u32 %r132, %r102, %r106;\naddc.u32 %r133, %r103, %r107;\n");
    add_chain(list, "carry chain: a difference of 128 bits", false,
              "sub.cc.u32 %r130, %r100, %r101;\nsubc.cc.u32 %r131, %r104, %r104;\n"
              "subc.cc.u32 %r132, %r102, %r106;\nsubc.u32 %r133, %r103, %r107;\n");
    add_chain(list, "carry chain: a sum of 192 bits and its carry", true,
              "add.cc.u64 %d10, %d20, %d23;\naddc.cc.u64 %d11, %d21, %d24;\n"
              "addc.cc.u64 %d12, %d22, %d25;\naddc.u64 %d13, 0, 0;\n");
    add_chain(list, "carry chain: a difference of 192 bits and its borrow", true,
              "sub.cc.u64 %d10, %d20, %d21;\nsubc.cc.u64 %d11, %d24, %d24;\n"
              "subc.cc.u64 %d12, %d22, %d25;\nsubc.u64 %d13, 0, 0;\n");
    add_chain(list, "carry chain: a product of 64 by 64 bits", false,
              "mul.lo.u32 %r130, %r100, %r102;\nmul.hi.u32 %r131, %r100, %r102;\n"
              "mad.lo.cc.u32 %r131, %r100, %r103, %r131;\nmadc.hi.u32 %r132, %r100, %r103, 0;\n"
              "mad.lo.cc.u32 %r131, %r101, %r102, %r131;\n"
              "madc.hi.cc.u32 %r132, %r101, %r102, %r132;\naddc.u32 %r133, 0, 0;\n"
              "mad.lo.cc.u32 %r132, %r101, %r103, %r132;\n"
              "madc.hi.u32 %r133, %r101, %r103, %r133;\n");
    add_chain(list, "carry chain: a borrow that turns into carries", false,
              "sub.cc.u32 %r130, %r100, %r101;\naddc.cc.u32 %r131, %r102, %r103;\n"
              "subc.cc.u32 %r132, %r104, %r105;\nmadc.lo.u32 %r133, %r106, %r107, %r100;\n");
}

void protocol_list_carries(struct protocol_list *list)
{
    list_pairs(list);
    list_chains(list);
}
