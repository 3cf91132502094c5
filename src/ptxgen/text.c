/* SPDX-License-Identifier: Apache-2.0 */
/* A module as PTX text. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Where an instruction's mnemonic stands in the text already, for the next one of its kind. */
struct spelling {
    uint64_t modifiers;
    size_t offset;
    unsigned length; /* 0: not yet */
    uint16_t op, n;
};
enum { SPELLINGS = 128 };

struct listing {
    ptx_module *m;
    const ptx_kernel *k;
    struct spelling spellings[SPELLINGS]; /* the last ones, by op */
    bool annotate;
};

/* ---- output ---- */

/*
 * What writes takes the place to write at and returns the place behind, within room that was made
 * before: NAME for a name, LINE for a line with a few of them, OPERAND for an operand that is no
 * name.
 */
enum { NAME = 300, LINE = 4 * NAME, OPERAND = 32 };

/* Room for `bytes` more, NUL included; NULL when there is none. */
static char *room(struct listing *t, size_t bytes)
{
    ptx_module *m = t->m;
    if (bytes > m->text_capacity - m->text_length &&
        !ptx_grow(m, &m->text, &m->text_capacity, m->text_length + bytes, 1))
        return NULL;
    return m->text + m->text_length;
}

/* The text now ends here. */
static void end_at(struct listing *t, const char *to)
{
    t->m->text_length = (size_t)(to - t->m->text);
}

static inline char *put_bytes(char *to, const char *s, size_t length)
{
    memcpy(to, s, length);
    return to + length;
}

static char *put(char *to, const char *s)
{
    return put_bytes(to, s, strlen(s));
}

/* Bytes of a string literal. */
#define PUT(to, literal) put_bytes(to, literal, sizeof(literal) - 1)

/* Two digits of a number below 100. */
static inline char *put_pair(char *to, unsigned value)
{
    to[0] = (char)('0' + value / 10);
    to[1] = (char)('0' + value % 10);
    return to + 2;
}

static inline char *put_unsigned(char *to, uint64_t value)
{
    if (value < 10) {
        *to = (char)('0' + value);
        return to + 1;
    }
    if (value < 100)
        return put_pair(to, (unsigned)value);
    char digits[20], *first = digits + sizeof digits;
    for (; value >= 100; value /= 100)
        put_pair(first -= 2, (unsigned)(value % 100));
    if (value >= 10)
        put_pair(first -= 2, (unsigned)value);
    else
        *--first = (char)('0' + value);
    return put_bytes(to, first, (size_t)(digits + sizeof digits - first));
}

static char *put_hex(char *to, uint64_t value, unsigned least_digits)
{
    unsigned count = least_digits;
    while (count < 16 && value >> (4 * count))
        count++;
    for (unsigned i = count; i-- > 0;)
        *to++ = "0123456789ABCDEF"[value >> (4 * i) & 15];
    return to;
}

static char *put_signed(char *to, int64_t value)
{
    if (value < 0)
        *to++ = '-';
    return put_unsigned(to, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* A formatted line, shorter than LINE. */
static void putf(struct listing *t, const char *format, ...) PTXGEN_PRINTF(2, 3);
static void putf(struct listing *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *to = room(t, LINE);
    if (to)
        t->m->text_length += (size_t)vsnprintf(to, LINE, format, args);
    va_end(args);
}

/* ---- mnemonics ---- */

static size_t append(char *buffer, size_t used, const char *text, size_t length)
{
    if (used + length >= PTX_MNEMONIC_SIZE)
        length = PTX_MNEMONIC_SIZE - 1 - used;
    memcpy(buffer + used, text, length);
    return used + length;
}

static size_t append_slot(char *buffer, size_t used, const struct ptx_instruction *i,
                          const char *slot)
{
    size_t length = strcspn(slot, "!}");
    const struct ptx_modifier_group *g = ptx_find_group(slot, length);
    if (!g) {
        char n[8];
        int digits = snprintf(n, sizeof n, "%u", i->n);
        return append(buffer, used, n, (size_t)digits);
    }
    unsigned value = (i->modifiers >> g->shift) & ((1u << g->bits) - 1);
    if (!value && slot[length] == '!')
        value = 1;
    if (!value || value > g->count)
        return used;
    const char *text = g->alternatives[value - 1].text;
    return append(buffer, used, text, strlen(text));
}

void ptx_mnemonic(const struct ptx_instruction *i, char *buffer)
{
    static const char *const pseudo[] = {"label", "comment", "section", "raw", "mov", "mov", "mov"};
    struct ptx_string text;
    const char *s = text.s;
    size_t used = 0;
    if (i->op < PTX_OP_COUNT)
        text = ptx_op_text(&ptx_ops[i->op]);
    else
        s = pseudo[i->op - PTX_OP_COUNT];
    for (;;) {
        size_t plain = strcspn(s, "{");
        used = append(buffer, used, s, plain);
        s += plain;
        if (!*s)
            break;
        used = append_slot(buffer, used, i, s + 1);
        s = strchr(s, '}') + 1;
    }
    buffer[used] = 0;
}

static char *put_mnemonic(struct listing *t, char *to, const struct ptx_instruction *i)
{
    struct spelling *s = &t->spellings[i->op % SPELLINGS];
    if (s->length && s->op == i->op && s->n == i->n && s->modifiers == i->modifiers)
        return put_bytes(to, t->m->text + s->offset, s->length);
    ptx_mnemonic(i, to);
    size_t at = (size_t)(to - t->m->text);
    *s = (struct spelling){i->modifiers, at, (unsigned)strlen(to), i->op, i->n};
    return to + s->length;
}

/* ---- operands ---- */

static const char class_prefix[PTX_CLASSES][4] = {"%p", "%rs", "%r", "%rd", "%rq"};
static const char *const class_type[PTX_CLASSES] = {".pred", ".b16", ".b32", ".b64", ".b128"};

static inline char *put_register(const struct listing *t, char *to, uint32_t reg)
{
    const char *prefix = class_prefix[ptx_class_of(t->k->registers[reg].type)];
    memcpy(to, prefix, sizeof class_prefix[0]);
    return put_unsigned(to + (prefix[2] ? 3 : 2), t->k->registers[reg].name);
}

static char *put_immediate(char *to, ptx_type type, uint64_t bits)
{
    switch (type) {
    case PTX_F32: return put_hex(PUT(to, "0f"), (uint32_t)bits, 8);
    case PTX_F64: return put_hex(PUT(to, "0d"), bits, 16);
    case PTX_S16: return put_signed(to, (int16_t)bits);
    case PTX_S32: return put_signed(to, (int32_t)bits);
    case PTX_S64: return put_signed(to, (int64_t)bits);
    default: return bits < 65536 ? put_unsigned(to, bits) : put_hex(PUT(to, "0x"), bits, 1);
    }
}

/* '$' keeps labels apart from parameters, whose names may not hold one. */
static char *put_label(const struct listing *t, char *to, uint32_t label)
{
    const char *hint = ptx_note_text(t->k, t->k->labels[label].note);
    to = put_unsigned(PUT(to, "$L"), label);
    return *hint ? put(PUT(to, "_"), hint) : to;
}

static char *put_operand(const struct listing *t, char *to, const ptx_operand *o)
{
    switch (o->kind) {
    case PTX_OPERAND_REGISTER: return put_register(t, to, o->index);
    case PTX_OPERAND_IMMEDIATE: return put_immediate(to, o->type, o->bits);
    case PTX_OPERAND_LABEL: return put_label(t, to, o->index);
    case PTX_OPERAND_PARAM: return put(to, ptx_note_text(t->k, t->k->params[o->index].note));
    default: return to;
    }
}

static char *put_vector(const struct listing *t, char *to, const ptx_operand *o, unsigned count)
{
    *to++ = '{';
    for (unsigned j = 0; j < count; j++) {
        if (j)
            to = PUT(to, ", ");
        to = put_operand(t, to, &o[j]);
    }
    *to++ = '}';
    return to;
}

static char *put_address(const struct listing *t, char *to, const ptx_operand *o)
{
    *to++ = '[';
    to = put_operand(t, to, &o[0]);
    if (o[1].bits)
        to = put_signed(PUT(to, "+"), (int64_t)o[1].bits);
    *to++ = ']';
    return to;
}

static char *put_tensor(const struct listing *t, char *to, const ptx_operand *o, unsigned count)
{
    to = put_operand(t, PUT(to, "["), &o[0]);
    to = put_vector(t, PUT(to, ", "), o + 1, count - 1);
    return PUT(to, "]");
}

static char *put_term(const struct listing *t, char *to, const struct ptx_term *term,
                      const ptx_operand *o, unsigned count)
{
    switch (term->kind) {
    case PTX_TERM_VECTOR: return put_vector(t, to, o, count);
    case PTX_TERM_ADDRESS: return put_address(t, to, o);
    case PTX_TERM_TENSOR: return put_tensor(t, to, o, count);
    case PTX_TERM_LITERAL: return put(to, ptx_literal(term).s);
    default: return put_operand(t, to, o);
    }
}

/* ---- instructions ---- */

static char *put_operands(const struct listing *t, char *to, const struct ptx_instruction *i)
{
    const struct ptx_op *op = &ptx_ops[i->op];
    const ptx_operand *o = &t->k->operands[i->first];
    for (unsigned j = 0; j < op->term_count; j++) {
        const struct ptx_term *term = ptx_op_term(op, j);
        to = !j ? PUT(to, " ") : term->flags & PTX_TERM_BAR ? PUT(to, "|") : PUT(to, ", ");
        if (term->kind == PTX_TERM_VALUE && o->kind == PTX_OPERAND_REGISTER) {
            to = put_register(t, to, o++->index);
            continue;
        }
        unsigned count = ptx_term_operands(term, i->n);
        to = put_term(t, to, term, o, count);
        o += count;
    }
    return to;
}

static char *put_raw(const struct listing *t, char *to, const struct ptx_instruction *i)
{
    for (const char *s = ptx_note_text(t->k, i->note); *s;) {
        long slot = ptx_raw_slot(&s);
        if (slot >= 0)
            to = put_operand(t, to, &t->k->operands[i->first + (uint32_t)slot]);
        else
            *to++ = *s++;
    }
    return to;
}

/* A mov of the address of a parameter or a buffer. */
static char *put_address_of(const struct listing *t, char *to, const struct ptx_instruction *i)
{
    const ptx_kernel *k = t->k;
    bool shared = i->op == PTX_PSEUDO_SHARED_ADDRESS;
    to = shared ? PUT(to, "mov.u32 ") : PUT(to, "mov.u64 ");
    to = PUT(put_operand(t, to, &k->operands[i->first]), ", ");
    if (i->op == PTX_PSEUDO_PARAM_ADDRESS)
        return put(to, ptx_note_text(k, k->params[i->n].note));
    size_t offset = shared ? k->shared[i->n].offset : k->local[i->n].offset;
    to = put(put(to, k->name), shared ? "$shared" : "$local");
    return offset ? put_unsigned(PUT(to, "+"), offset) : to;
}

/* Assemblers refuse bytes beyond ASCII, in comments too. */
static const char *in_ascii(const char *s, size_t *length)
{
    static const char *const signs[][2] = {
        {"×", "x"},  {"·", "*"},    {"…", "..."},   {"≤", "<="}, {"≥", ">="}, {"≠", "!="},
        {"→", "->"}, {"←", "<-"},   {"–", "-"},     {"—", "-"},  {"−", "-"},  {"²", "^2"},
        {"ᵀ", "^T"}, {"Σ", "sum "}, {"γ", "gamma"}, {"ε", "eps"}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        *length = strlen(signs[i][0]);
        if (!strncmp(s, signs[i][0], *length))
            return signs[i][1];
    }
    for (*length = 1; ((unsigned char)s[*length] & 0xC0) == 0x80;)
        ++*length;
    return "?";
}

/* A comment's words: in ASCII, each of its lines on a line of its own. A byte becomes 6 at most. */
static char *put_words(char *to, const char *s)
{
    while (*s) {
        size_t length = 1;
        if ((unsigned char)*s >= 0x80)
            to = put(to, in_ascii(s, &length));
        else if (*s == '\n')
            to = PUT(to, "\n\t// ");
        else
            *to++ = (unsigned char)*s < ' ' ? ' ' : *s;
        s += length;
    }
    return to;
}

static void put_note(struct listing *t, const char *before, const char *words, const char *after)
{
    char *to = room(t, LINE + 6 * strlen(words));
    if (to)
        end_at(t, put(put_words(put(to, before), words), after));
}

static char *put_executed(struct listing *t, char *to, const struct ptx_instruction *i)
{
    *to++ = '\t';
    if (i->guarded) {
        to = i->guarded == '-' ? PUT(to, "@!") : PUT(to, "@");
        to = PUT(put_register(t, to, i->guard), " ");
    }
    if (i->op < PTX_OP_COUNT)
        to = put_operands(t, put_mnemonic(t, to, i), i);
    else
        to = i->op == PTX_PSEUDO_RAW ? put_raw(t, to, i) : put_address_of(t, to, i);
    return PUT(to, ";\n");
}

/* Of the table's instructions, none has more than two names, or much text beside its operands. */
static size_t room_for(const struct listing *t, const struct ptx_instruction *i)
{
    if (i->op != PTX_PSEUDO_RAW)
        return LINE + (size_t)i->count * OPERAND;
    return LINE + strlen(ptx_note_text(t->k, i->note)) * NAME;
}

static void put_instruction(struct listing *t, const struct ptx_instruction *i)
{
    bool section = i->op == PTX_PSEUDO_SECTION;
    if (section || i->op == PTX_PSEUDO_COMMENT) {
        if (t->annotate)
            put_note(t, section ? "\n\t// ---- " : "\t// ", ptx_note_text(t->k, i->note),
                     section ? " ----\n" : "\n");
        return;
    }
    char *to = room(t, room_for(t, i));
    if (!to)
        return;
    if (i->op == PTX_PSEUDO_LABEL)
        to = PUT(put_label(t, to, t->k->operands[i->first].index), ":\n");
    else
        to = put_executed(t, to, i);
    end_at(t, to);
}

/* ---- kernels ---- */

static void put_params(struct listing *t)
{
    static const char *const spelt[PTX_TYPE_COUNT] = {
        [PTX_U32] = "u32", [PTX_U64] = "u64", [PTX_F32] = "f32"};
    const ptx_kernel *k = t->k;
    for (uint32_t i = 0; i < k->param_count; i++) {
        const struct ptx_declaration *p = &k->params[i];
        const char *name = ptx_note_text(k, p->note), *end = i + 1 < k->param_count ? "," : "";
        if (p->type >= 0)
            putf(t, "\t.param .%s %s%s\n", spelt[p->type], name, end);
        else
            putf(t, "\t.param .align %zu .b8 %s[%zu]%s\n", p->align, name, p->bytes, end);
    }
}

static void put_directives(struct listing *t)
{
    const ptx_kernel *k = t->k;
    if (k->ntid[0])
        putf(t, ".reqntid %u, %u, %u\n", k->ntid[0], k->ntid[1], k->ntid[2]);
    if (k->maxntid)
        putf(t, ".maxntid %u\n", k->maxntid);
    if (k->minnctapersm)
        putf(t, ".minnctapersm %u\n", k->minnctapersm);
    if (k->maxnreg)
        putf(t, ".maxnreg %u\n", k->maxnreg);
    if (k->cluster[0])
        putf(t, ".explicitcluster\n.reqnctapercluster %u, %u, %u\n", k->cluster[0], k->cluster[1],
             k->cluster[2]);
}

static void put_buffers(struct listing *t, const char *space, const struct ptx_declaration *list,
                        uint32_t count)
{
    for (uint32_t i = 0; t->annotate && i < count; i++) {
        putf(t, "\t// %s +%zu, %zu bytes", space, list[i].offset, list[i].bytes);
        put_note(t, ": ", ptx_note_text(t->k, list[i].note), "\n");
    }
}

static void put_declarations(struct listing *t)
{
    const ptx_kernel *k = t->k;
    for (int c = 0; c < PTX_CLASSES; c++)
        if (k->names[c])
            putf(t, "\t.reg %s %s<%u>;\n", class_type[c], class_prefix[c], (unsigned)k->names[c]);
    if (t->annotate)
        putf(t, "\t// at most %u 32-bit registers live at once\n", k->pressure);
    if (k->shared_bytes && k->shared_bytes <= PTX_STATIC_SHARED_LIMIT)
        putf(t, "\t.shared .align %zu .b8 %s$shared[%zu];\n", k->shared_align, k->name,
             k->shared_bytes);
    put_buffers(t, "shared", k->shared, k->shared_count);
    if (k->local_bytes)
        putf(t, "\t.local .align %zu .b8 %s$local[%zu];\n", k->local_align, k->name,
             k->local_bytes);
    put_buffers(t, "local", k->local, k->local_count);
}

static void put_kernel(struct listing *t, const ptx_kernel *k)
{
    enum { USUAL = 36 }; /* bytes of an instruction */
    t->k = k;
    room(t, (size_t)k->code_count * USUAL);
    if (k->shared_bytes > PTX_STATIC_SHARED_LIMIT)
        putf(t, "\n.extern .shared .align %zu .b8 %s$shared[];\n", k->shared_align, k->name);
    putf(t, "\n.visible .entry %s(\n", k->name);
    put_params(t);
    putf(t, ")\n");
    put_directives(t);
    putf(t, "{\n");
    put_declarations(t);
    for (uint32_t i = 0; i < k->code_count; i++)
        put_instruction(t, &k->code[i]);
    putf(t, "}\n");
}

static void put_module(struct listing *t)
{
    ptx_module *m = t->m;
    char suffix[2] = {m->target.suffix, 0};
    m->text_length = 0;
    putf(t, ".version %d.%d\n.target sm_%d%s\n.address_size 64\n", m->ptx_version / 10,
         m->ptx_version % 10, m->target.sm, suffix);
    for (const ptx_kernel *k = m->kernels; k && m->error.status == PTXGEN_OK; k = k->next)
        put_kernel(t, k);
    if (room(t, 1))
        m->text[m->text_length] = 0;
}

ptxgen_status ptx_module_text(ptx_module *m, unsigned flags, const char **text, size_t *length,
                              ptxgen_error *err)
{
    if (!m || !text)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptx_module_text: the module or text is NULL");
    if (m->last_kernel && !m->last_kernel->ended)
        ptx_kernel_fail(m->last_kernel, PTXGEN_ERROR_STRUCTURE, "was never ended");
    struct listing t = {.m = m, .annotate = flags & PTX_TEXT_ANNOTATE};
    if (m->error.status == PTXGEN_OK)
        put_module(&t);
    if (m->error.status != PTXGEN_OK)
        return ptx_module_status(m, err);
    *text = m->text;
    if (length)
        *length = m->text_length;
    return PTXGEN_OK;
}
