/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build-time program: expands instr.def and modifiers.def into
 *     generate header > instr.h      the typed emitters
 *     generate table  > table.inc    the table as C data (see table.h)
 * It stops with a message at the first line that it does not understand.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    const char *name, *types, *variants, *text, *operands, *needs, *flags;
};

static const struct line lines[] = {
#define I(name, types, variants, text, operands, needs, flags) \
    {name, types, variants, text, operands, needs, flags},
#include "instr.def"
#undef I
};

static const struct line *current;

static void stop(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "instr.def: %s: ", current ? current->name : "");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* ---- types ---- */

static const struct type {
    const char *name, *spelt, *bits, *unsigned_, *wide, *constant;
} types[] = {
    {"pred", "pred", "pred", "pred", "", "PTX_PRED"},
    {"u16", "u16", "b16", "u16", "u32", "PTX_U16"},
    {"s16", "s16", "b16", "u16", "s32", "PTX_S16"},
    {"f16", "b16", "b16", "u16", "", "PTX_F16"},
    {"bf16", "b16", "b16", "u16", "", "PTX_BF16"},
    {"u32", "u32", "b32", "u32", "u64", "PTX_U32"},
    {"s32", "s32", "b32", "u32", "s64", "PTX_S32"},
    {"f32", "f32", "b32", "u32", "f64", "PTX_F32"},
    {"f16x2", "b32", "b32", "u32", "", "PTX_F16X2"},
    {"bf16x2", "b32", "b32", "u32", "", "PTX_BF16X2"},
    {"u64", "u64", "b64", "u64", "", "PTX_U64"},
    {"s64", "s64", "b64", "u64", "", "PTX_S64"},
    {"f64", "f64", "b64", "u64", "", "PTX_F64"},
    {"b128", "b128", "b128", "b128", "", "PTX_B128"},
};

static const struct type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    return NULL;
}

/* ---- one expanded instruction ---- */

enum { MAX_TERMS = 16, MAX_NEEDS = 8, MAX_SIGNATURES = 1024, TEXT = 256 };

struct term {
    char kind;       /* r value, v vector, a address, t tensor, c constant, l literal, b label */
    char type[16];
    int count, divisor;
    char space;
    int lo, hi, step;
    bool written, read, reg, bar, undef_ok, pow2, int_n, upto;
    char literal[64];
};

struct instruction {
    char name[TEXT], text[TEXT];
    struct term terms[MAX_TERMS];
    int term_count;
    struct term n; /* hi 0: none */
    struct { int ptx, sm; char suffix; } needs[MAX_NEEDS];
    int need_count;
    unsigned flags;
    int align;
};

static const char *const flag_names[] = {"aligned", "ctabar", "barn", "branch", "exit", "varies",
                                         "laneuni", "ctauni", "cpasync", "cpwait", "readsh",
                                         "math", "mma", "shflidx"};

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
        bool bar = s > (char *)0 && in->term_count && s[-1] == '|';
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

/* Calls visit for each instruction that the lines stand for. */
static void for_each(void (*visit)(const struct instruction *))
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
}

/* ---- the header ---- */

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
            printf(t->kind == 'a' ? ", %c, %c_offset" : t->kind == 't' ? ", %c, %c_at" : ", %c",
                   name, name);
        else if (pointer)
            printf(", %sptx_%s *%c", t->written ? "" : "const ", t->type, name);
        else if (t->kind == 'r')
            printf(", ptx_%s %c", t->type, name);
        else if (t->kind == 'a')
            printf(", ptx_%s %c, int32_t %c_offset",
                   t->space == 's' ? "u32" : t->space == 'p' ? "param" : "u64", name, name);
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
                                  t->divisor ? t->divisor : t->count, t->read && t->written ? "io" : "");
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

    printf("static inline %s%s ptx_emit_%s(ptx_kernel *k, ptx_source at, unsigned op, uint64_t m, "
           "bool keep", returns_value(in) ? "ptx_" : "",
           returns_value(in) ? in->terms[0].type : "void", name);
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
    printf(") ptx_emit_%s(k, PTX_HERE, PTX_OP_%s, %s, %s", function, in->name, modifiers ? "m" : "0",
           to ? "true" : "false");
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

/* Calls visit for each modifier group with its alternatives and its place in the mask. */
struct modifier {
    const char *group, *name, *text;
    int ptx, target;
};

static void for_each_group(void (*visit)(const struct modifier *m, int count, int shift, int bits))
{
    static const struct modifier all[] = {
#define G(group) {#group, NULL, NULL, 0, 0},
#define M(name, text, ptx, target) {NULL, #name, text, ptx, target},
#include "modifiers.def"
#undef G
#undef M
    };
    int shift = 0;
    int total = (int)(sizeof all / sizeof *all);
    for (int i = 0; i < total;) {
        int count = 1;
        while (i + count < total && all[i + count].name)
            count++;
        int bits = 0;
        while ((1 << bits) < count)
            bits++;
        visit(&all[i], count - 1, shift, bits);
        shift += bits;
        i += count;
    }
    current = NULL;
    if (shift > 64)
        stop("modifiers need %d bits", shift);
}

static void print_modifier_constants(const struct modifier *m, int count, int shift, int bits)
{
    (void)bits;
    printf("/* {%s} */\n", m->group);
    for (int j = 1; j <= count; j++)
        printf("#define PTX_%s (UINT64_C(%d) << %d)\n", m[j].name, j, shift);
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

static void print_header(void)
{
    printf("/* SPDX-License-Identifier: Apache-2.0 */\n"
           "/**\n * The typed emitters, one for each instruction. Generated from the instruction table;\n"
           " * <ptxgen/ptx.h> explains them.\n *\n"
           " * ptx_X(k, …)       emits X with its default modifiers into new registers\n"
           " * ptx_X_to(k, d, …) writes registers that exist\n"
           " * ptx_X_m(k, m, …)  with modifiers; ptx_X_m_to(k, m, d, …) both\n"
           " * An address is a base register and a constant byte offset. Vector operands are arrays.\n"
           " */\n#ifndef PTXGEN_INSTR_H\n#define PTXGEN_INSTR_H\n\n#include <ptxgen/ptx.h>\n\n"
           "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    for_each_group(print_modifier_constants);
    printf("\nenum {\n");
    for_each(print_enum);
    printf("    PTX_OP_COUNT = %u\n};\n\n", number);
    printf("static inline ptx_operand ptx_new_operand(ptx_type type)\n{\n    ptx_operand o;\n"
           "    o.kind = PTX_OPERAND_NONE;\n    o.type = (uint8_t)type;\n    o.reserved = 0;\n"
           "    o.index = 0;\n    o.bits = 0;\n    return o;\n}\n"
           "static inline ptx_operand ptx_constant_operand(int32_t value)\n{\n    ptx_operand o;\n"
           "    o.kind = PTX_OPERAND_IMMEDIATE;\n    o.type = PTX_S32;\n    o.reserved = 0;\n"
           "    o.index = 0;\n    o.bits = (uint64_t)(int64_t)value;\n    return o;\n}\n");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        printf("static inline ptx_%s ptx_new_%s(void)\n{\n    ptx_%s x;\n"
               "    x.o = ptx_new_operand(%s);\n    return x;\n}\n",
               types[i].name, types[i].name, types[i].name, types[i].constant);
    printf("\n");
    for_each(print_emitter);
    printf("#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

/* ---- the table ---- */

static void print_term(const struct term *t)
{
    static const struct { char kind; const char *name; } kinds[] = {
        {'r', "PTX_TERM_VALUE"}, {'v', "PTX_TERM_VECTOR"}, {'a', "PTX_TERM_ADDRESS"},
        {'t', "PTX_TERM_TENSOR"}, {'c', "PTX_TERM_CONST"}, {'l', "PTX_TERM_LITERAL"},
        {'b', "PTX_TERM_LABEL"}};
    const char *kind = "PTX_TERM_CONST";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == t->kind)
            kind = kinds[i].name;
    int flags = (t->written ? 1 : 0) | (t->read ? 2 : 0) | (t->reg ? 4 : 0) | (t->bar ? 8 : 0) |
                (t->undef_ok ? 16 : 0) | (t->pow2 ? 32 : 0) | (t->int_n ? 64 : 0) | (t->upto ? 128 : 0);
    printf("{%s, %s, %d, %d, %d, %d, %d, %d, %d, ", kind,
           t->type[0] ? find_type(t->type)->constant : "0", flags, t->count, t->divisor,
           t->space, t->lo, t->hi, t->step);
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

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "header"))
        print_header();
    else if (argc == 2 && !strcmp(argv[1], "table")) {
        printf("/* Generated from instr.def. */\n");
        for_each(print_arrays);
        printf("const struct ptx_op ptx_ops[] = {\n");
        for_each(print_row);
        printf("};\n");
        for_each_group(print_alternatives);
        printf("const struct ptx_modifier_group ptx_modifier_groups[] = {\n");
        for_each_group(print_group);
        printf("};\n");
    } else {
        fprintf(stderr, "usage: generate header|table\n");
        return 1;
    }
    return fflush(stdout) ? 1 : 0;
}
