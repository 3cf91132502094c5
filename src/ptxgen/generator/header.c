/* SPDX-License-Identifier: Apache-2.0 */
/* Prints instr.h: the typed emitters, an inline function for each signature and macros for each
 * instruction, and the modifiers' masks. */
#include "instruction.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SIGNATURES = 1024 };

static unsigned number;

static void print_enum(const struct instruction *in)
{
    printf("    PTX_OP_%s = %u,\n", in->name, number++);
}

static bool is_parameter(const struct term *t)
{
    return t->kind != 'l';
}

/* The name of the i-th term in the emitter's parameter list. */
static char term_name(const struct instruction *in, int index)
{
    char letter = 'a';
    for (int i = 0; i < index; i++)
        if (is_parameter(&in->terms[i]) && !(i == 0 && in->terms[0].written))
            letter += letter == 'c' ? 2 : 1;
    return index == 0 && in->terms[0].written ? 'd' : letter;
}

static void print_parameters(const struct instruction *in, bool skip_first, bool names_only)
{
    if (in->n.hi)
        printf(names_only ? ", n" : ", int n");
    for (int i = skip_first; i < in->term_count; i++) {
        const struct term *t = &in->terms[i];
        if (!is_parameter(t))
            continue;
        char name = term_name(in, i);
        bool pointer = t->kind == 'v' || (t->written && i > 0);
        if (names_only)
            printf(t->kind == 'a'   ? ", %c, %c_offset"
                   : t->kind == 't' ? ", %c, %c_at"
                                    : ", %c",
                   name, name);
        else if (pointer)
            printf(", %sptx_%s *%c", t->written ? "" : "const ", t->type, name);
        else if (t->kind == 'r')
            printf(", ptx_%s %c", t->type, name);
        else if (t->kind == 'a')
            printf(", ptx_%s %c, int32_t %c_offset",
                   t->space == 's'   ? "u32"
                   : t->space == 'p' ? "param"
                                     : "u64",
                   name, name);
        else if (t->kind == 't')
            printf(", ptx_u64 %c, const ptx_s32 *%c_at", name, name);
        else
            printf(t->kind == 'c' ? ", int %c" : ", ptx_label %c", name);
    }
}

static void print_loop(const struct term *t)
{
    if (t->divisor)
        printf("    for (int i_ = 0; i_ < n / %d; i_++)\n    ", t->divisor);
    else
        printf("    for (int i_ = 0; i_ < %d; i_++)\n    ", t->count);
}

/* Copies the terms into the operand array o_. */
static void print_marshalling(const struct instruction *in)
{
    for (int i = 0; i < in->term_count; i++) {
        const struct term *t = &in->terms[i];
        char name = term_name(in, i);
        if (!is_parameter(t))
            continue;
        bool fresh = t->written && !t->read && (t->kind == 'v' || i > 0);
        if (t->kind == 'v')
            print_loop(t);
        if (fresh)
            printf("    o_[count_++] = keep ? %c%s : ptx_new_operand(%s);\n", name,
                   t->kind == 'v' ? "[i_].o" : "->o", find_type(t->type)->constant);
        else if (t->kind == 'v')
            printf("    o_[count_++] = %c[i_].o;\n", name);
        else if (t->kind == 'c')
            printf("    o_[count_++] = ptx_constant_operand(%c);\n", name);
        else
            printf("    o_[count_++] = %c.o;\n", name);
        if (t->kind == 'a')
            printf("    o_[count_++] = ptx_constant_operand(%c_offset);\n", name);
        if (t->kind == 't') {
            print_loop(t);
            printf("    o_[count_++] = %c_at[i_].o;\n", name);
        }
    }
}

static void print_results(const struct instruction *in)
{
    printf("    count_ = 0;\n");
    for (int i = 0; i < in->term_count && in->terms[i].written; i++) {
        char name = term_name(in, i);
        if (in->terms[i].kind == 'v') {
            print_loop(&in->terms[i]);
            printf("    %c[i_].o = o_[count_++];\n", name);
        } else
            printf("    %c%s = o_[count_++];\n", name, i == 0 ? ".o" : "->o");
    }
}

static int operand_capacity(const struct instruction *in)
{
    int capacity = 0;
    for (int i = 0; i < in->term_count; i++) {
        const struct term *t = &in->terms[i];
        if (is_parameter(t))
            capacity += t->divisor       ? in->n.hi / t->divisor
                        : t->kind == 'a' ? 2
                        : t->kind == 't' ? 1 + t->count
                        : t->count       ? t->count
                                         : 1;
    }
    return capacity ? capacity : 1;
}

/* Instructions of one signature share one inline function, named for it. */
static void signature(const struct instruction *in, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "%s", in->n.hi ? "n" : "");
    bool reading = false;
    for (int i = 0; i < in->term_count; i++) {
        const struct term *t = &in->terms[i];
        if (!t->written && !reading) {
            reading = true;
            n += (size_t)snprintf(out + n, size - n, "_from");
        }
        if (t->kind == 'r')
            n += (size_t)snprintf(out + n, size - n, "_%s", t->type);
        else if (t->kind == 'v')
            n += (size_t)snprintf(out + n, size - n, "_%s%s%d%s", t->type, t->divisor ? "xn" : "v",
                                  t->divisor ? t->divisor : t->count,
                                  t->read && t->written ? "io" : "");
        else if (t->kind == 't')
            n += (size_t)snprintf(out + n, size - n, "_t%d", t->count);
        else if (is_parameter(t))
            n += (size_t)snprintf(out + n, size - n, "_%c", t->kind == 'a' ? t->space : t->kind);
    }
}

static bool returns_value(const struct instruction *in)
{
    return in->term_count && in->terms[0].kind == 'r' && in->terms[0].written;
}

static bool writes(const struct instruction *in)
{
    return in->term_count && in->terms[0].written;
}

static void print_shared_function(const struct instruction *in, const char *name)
{
    static char seen[MAX_SIGNATURES][TEXT];
    static int seen_count;
    for (int i = 0; i < seen_count; i++)
        if (!strcmp(seen[i], name))
            return;
    if (seen_count == MAX_SIGNATURES)
        stop("too many signatures");
    strcpy(seen[seen_count++], name);

    printf("PTX_EMITTER %s%s ptx_emit_%s(ptx_kernel *k, ptx_source at, unsigned op, uint64_t m, "
           "bool keep",
           returns_value(in) ? "ptx_" : "", returns_value(in) ? in->terms[0].type : "void", name);
    print_parameters(in, false, false);
    printf(")\n{\n    ptx_operand o_[%d];\n    unsigned count_ = 0;\n    (void)keep;\n",
           operand_capacity(in));
    print_marshalling(in);
    printf("    ptx_emit(k, op, m, %s, o_, count_, at);\n", in->n.hi ? "(unsigned)n" : "0");
    if (writes(in))
        print_results(in);
    if (returns_value(in))
        printf("    return d;\n");
    printf("}\n");
}

static void print_macro(const struct instruction *in, const char *function, bool modifiers, bool to)
{
    bool skip = returns_value(in) && !to;
    printf("#define ptx_%s%s%s(k%s", in->name, modifiers ? "_m" : "", to ? "_to" : "",
           modifiers ? ", m" : "");
    print_parameters(in, skip, true);
    printf(") ptx_emit_%s(k, PTX_HERE, PTX_OP_%s, %s, %s", function, in->name,
           modifiers ? "m" : "0", to ? "true" : "false");
    if (skip)
        printf(", ptx_new_%s()", in->terms[0].type);
    print_parameters(in, skip, true);
    printf(")\n");
}

static bool takes_modifiers(const struct instruction *in)
{
    for (const char *s = in->text; (s = strchr(s, '{')); s++)
        if (strncmp(s, "{n}", 3) != 0)
            return true;
    return false;
}

static void print_syntax(const struct instruction *in)
{
    printf("/** %s", in->text);
    for (int i = 0; i < in->need_count; i++)
        printf("%s PTX %d.%d sm_%d%.1s", i ? " |" : ";", in->needs[i].ptx / 10,
               in->needs[i].ptx % 10, in->needs[i].sm, &in->needs[i].suffix);
    printf(" */\n");
}

static void print_emitter(const struct instruction *in)
{
    char function[TEXT];
    signature(in, function, sizeof function);
    print_shared_function(in, function);
    print_syntax(in);
    bool read_write = writes(in) && in->terms[0].read;
    for (int modifiers = 0; modifiers <= takes_modifiers(in); modifiers++)
        for (int to = 0; to <= (writes(in) && !read_write); to++)
            print_macro(in, function, modifiers, to);
}

static void print_modifier_constants(const struct modifier *m, int count, int shift, int bits)
{
    (void)bits;
    printf("/* {%s} */\n", m->group);
    for (int j = 1; j <= count; j++)
        printf("#define PTX_%s (UINT64_C(%d) << %d)\n", m[j].name, j, shift);
}

void print_header(void)
{
    printf(
        "/* SPDX-License-Identifier: Apache-2.0 */\n"
        "/**\n * The typed emitters, one for each instruction. Generated from the instruction "
        "table;\n"
        " * <ptxgen/ptx.h> explains them.\n *\n"
        " * ptx_X(k, …)       emits X with its default modifiers into new registers\n"
        " * ptx_X_to(k, d, …) writes registers that exist\n"
        " * ptx_X_m(k, m, …)  with modifiers; ptx_X_m_to(k, m, d, …) both\n"
        " * An address is a base register and a constant byte offset. Vector operands are arrays.\n"
        " */\n#ifndef PTXGEN_INSTR_H\n#define PTXGEN_INSTR_H\n\n#include <ptxgen/ptx.h>\n\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    printf("/* Each is called from many places, so compiled for size it stays a function. */\n"
           "#if defined(__OPTIMIZE_SIZE__)\n"
           "#define PTX_EMITTER static __attribute__((noinline, unused))\n"
           "#else\n#define PTX_EMITTER static inline\n#endif\n\n");
    for_each_group(print_modifier_constants);
    printf("\nenum {\n");
    for_each_instruction(print_enum);
    printf("    PTX_OP_COUNT = %u\n};\n\n", number);
    printf("static inline ptx_operand ptx_new_operand(ptx_type type)\n{\n    ptx_operand o;\n"
           "    o.kind = PTX_OPERAND_NONE;\n    o.type = (uint8_t)type;\n    o.reserved = 0;\n"
           "    o.index = 0;\n    o.bits = 0;\n    return o;\n}\n"
           "static inline ptx_operand ptx_constant_operand(int32_t value)\n{\n    ptx_operand o;\n"
           "    o.kind = PTX_OPERAND_IMMEDIATE;\n    o.type = PTX_S32;\n    o.reserved = 0;\n"
           "    o.index = 0;\n    o.bits = (uint64_t)(int64_t)value;\n    return o;\n}\n");
    for (size_t i = 0; i < type_count; i++)
        printf("static inline ptx_%s ptx_new_%s(void)\n{\n    ptx_%s x;\n"
               "    x.o = ptx_new_operand(%s);\n    return x;\n}\n",
               types[i].name, types[i].name, types[i].name, types[i].constant);
    printf("\n");
    for_each_instruction(print_emitter);
    printf("#ifdef __cplusplus\n}\n#endif\n#endif\n");
}
