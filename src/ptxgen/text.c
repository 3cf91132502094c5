/* SPDX-License-Identifier: Apache-2.0 */
/* A module as PTX text. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Where an instruction's mnemonic stands in the text already, for the next one of its kind. */
struct spelling {
    uint64_t modifiers;
    size_t offset, length; /* length 0: not yet */
    unsigned n;
};

struct listing {
    ptx_module *m;
    const ptx_kernel *k;
    struct spelling *spellings; /* by instruction number */
    bool annotate;
};

/* ---- output ---- */

/* Room for `bytes` more; NULL when there is none. The NUL comes at the end. */
static inline char *room(struct listing *t, size_t bytes)
{
    ptx_module *m = t->m;
    if (bytes > m->text_capacity - m->text_length &&
        !ptx_grow(m, &m->text, &m->text_capacity, m->text_length + bytes, 1))
        return NULL;
    return m->text + m->text_length;
}

static inline void put_bytes(struct listing *t, const char *s, size_t length)
{
    char *to = room(t, length);
    if (!to)
        return;
    memcpy(to, s, length);
    t->m->text_length += length;
}

static void put(struct listing *t, const char *s)
{
    put_bytes(t, s, strlen(s));
}

/* Bytes of a string literal. */
#define PUT(t, literal) put_bytes(t, literal, sizeof(literal) - 1)

static void put_unsigned(struct listing *t, uint64_t value)
{
    if (value < 10) {
        char digit = (char)('0' + value);
        put_bytes(t, &digit, 1);
        return;
    }
    char digits[20];
    size_t first = sizeof digits;
    do
        digits[--first] = (char)('0' + value % 10);
    while (value /= 10);
    put_bytes(t, digits + first, sizeof digits - first);
}

static void put_hex(struct listing *t, uint64_t value, unsigned least_digits)
{
    char digits[16];
    size_t first = sizeof digits;
    do
        digits[--first] = "0123456789ABCDEF"[value % 16];
    while ((value /= 16) || sizeof digits - first < least_digits);
    put_bytes(t, digits + first, sizeof digits - first);
}

static void put_signed(struct listing *t, int64_t value)
{
    if (value < 0)
        put_bytes(t, "-", 1);
    put_unsigned(t, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

static void putf(struct listing *t, const char *format, ...) PTXGEN_PRINTF(2, 3);
static void putf(struct listing *t, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *to = length > 0 ? room(t, (size_t)length + 1) : NULL;
    if (to) {
        vsnprintf(to, (size_t)length + 1, format, args);
        t->m->text_length += (size_t)length;
    }
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

static size_t append_slot(char *buffer, size_t used, const struct ptx_instruction *i, const char *slot)
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
    const char *s = i->op < PTX_OP_COUNT ? ptx_op_text(&ptx_ops[i->op]) : pseudo[i->op - PTX_OP_COUNT];
    size_t used = 0;
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

static void put_mnemonic(struct listing *t, const struct ptx_instruction *i)
{
    struct spelling *s = &t->spellings[i->op];
    if (s->length && s->modifiers == i->modifiers && s->n == i->n) {
        char *to = room(t, s->length);
        if (to) {
            memcpy(to, t->m->text + s->offset, s->length);
            t->m->text_length += s->length;
        }
        return;
    }
    char mnemonic[PTX_MNEMONIC_SIZE];
    ptx_mnemonic(i, mnemonic);
    *s = (struct spelling){i->modifiers, t->m->text_length, strlen(mnemonic), i->n};
    put_bytes(t, mnemonic, s->length);
}

/* ---- operands ---- */

static const char class_prefix[PTX_CLASSES][4] = {"%p", "%rs", "%r", "%rd", "%rq"};
static const char *const class_type[PTX_CLASSES] = {".pred", ".b16", ".b32", ".b64", ".b128"};

static void put_register(struct listing *t, uint32_t reg)
{
    const char *prefix = class_prefix[ptx_class_of(t->k->registers[reg].type)];
    put_bytes(t, prefix, prefix[2] ? 3 : 2);
    put_unsigned(t, t->k->registers[reg].name);
}

static void put_immediate(struct listing *t, ptx_type type, uint64_t bits)
{
    switch (type) {
    case PTX_F32:
        PUT(t, "0f");
        put_hex(t, (uint32_t)bits, 8);
        break;
    case PTX_F64:
        PUT(t, "0d");
        put_hex(t, bits, 16);
        break;
    case PTX_S16: put_signed(t, (int16_t)bits); break;
    case PTX_S32: put_signed(t, (int32_t)bits); break;
    case PTX_S64: put_signed(t, (int64_t)bits); break;
    default:
        if (bits < 65536)
            put_unsigned(t, bits);
        else {
            PUT(t, "0x");
            put_hex(t, bits, 1);
        }
    }
}

/* '$' keeps labels apart from parameters, whose names may not hold one. */
static void put_label(struct listing *t, uint32_t label)
{
    const char *hint = ptx_note_text(t->k, t->k->labels[label].note);
    PUT(t, "$L");
    put_unsigned(t, label);
    if (*hint) {
        PUT(t, "_");
        put(t, hint);
    }
}

static void put_operand(struct listing *t, ptx_operand o)
{
    switch (o.kind) {
    case PTX_OPERAND_REGISTER: put_register(t, o.index); break;
    case PTX_OPERAND_IMMEDIATE: put_immediate(t, o.type, o.bits); break;
    case PTX_OPERAND_LABEL: put_label(t, o.index); break;
    case PTX_OPERAND_PARAM: put(t, ptx_note_text(t->k, t->k->params[o.index].note)); break;
    default: break;
    }
}

static void put_vector(struct listing *t, const ptx_operand *o, unsigned count)
{
    PUT(t, "{");
    for (unsigned j = 0; j < count; j++) {
        if (j)
            PUT(t, ", ");
        put_operand(t, o[j]);
    }
    PUT(t, "}");
}

static void put_term(struct listing *t, const struct ptx_term *term, const ptx_operand *o,
                     unsigned count)
{
    switch (term->kind) {
    case PTX_TERM_VECTOR:
        put_vector(t, o, count);
        break;
    case PTX_TERM_ADDRESS:
        PUT(t, "[");
        put_operand(t, o[0]);
        if (o[1].bits) {
            PUT(t, "+");
            put_signed(t, (int64_t)o[1].bits);
        }
        PUT(t, "]");
        break;
    case PTX_TERM_TENSOR:
        PUT(t, "[");
        put_operand(t, o[0]);
        PUT(t, ", ");
        put_vector(t, o + 1, count - 1);
        PUT(t, "]");
        break;
    case PTX_TERM_LITERAL:
        put(t, ptx_literal(term));
        break;
    default:
        put_operand(t, *o);
    }
}

/* ---- instructions ---- */

static void put_operands(struct listing *t, const struct ptx_instruction *i)
{
    const struct ptx_op *op = &ptx_ops[i->op];
    const ptx_operand *o = &t->k->operands[i->first];
    for (unsigned j = 0; j < op->term_count; j++) {
        const struct ptx_term *term = ptx_op_term(op, j);
        unsigned count = ptx_term_operands(term, i->n);
        put_bytes(t, !j ? " " : term->flags & PTX_TERM_BAR ? "|" : ", ",
                  !j || term->flags & PTX_TERM_BAR ? 1 : 2);
        put_term(t, term, o, count);
        o += count;
    }
}

static void put_raw(struct listing *t, const struct ptx_instruction *i)
{
    for (const char *s = ptx_note_text(t->k, i->note); *s;) {
        size_t plain = strcspn(s, "%");
        put_bytes(t, s, plain);
        s += plain;
        long slot = ptx_raw_slot(&s);
        if (slot >= 0)
            put_operand(t, t->k->operands[i->first + (uint32_t)slot]);
        else if (*s)
            put_bytes(t, s++, 1);
    }
}

static void put_address(struct listing *t, const struct ptx_instruction *i)
{
    const ptx_kernel *k = t->k;
    put(t, i->op == PTX_PSEUDO_SHARED_ADDRESS ? "mov.u32 " : "mov.u64 ");
    put_operand(t, k->operands[i->first]);
    PUT(t, ", ");
    if (i->op == PTX_PSEUDO_PARAM_ADDRESS) {
        put(t, ptx_note_text(k, k->params[i->n].note));
        return;
    }
    bool shared = i->op == PTX_PSEUDO_SHARED_ADDRESS;
    size_t offset = shared ? k->shared[i->n].offset : k->local[i->n].offset;
    put(t, k->name);
    put(t, shared ? "$shared" : "$local");
    if (offset) {
        PUT(t, "+");
        put_unsigned(t, offset);
    }
}

/* Assemblers refuse bytes beyond ASCII, in comments too. */
static const char *in_ascii(const char *s, size_t *length)
{
    static const char *const signs[][2] = {
        {"×", "x"},  {"·", "*"},  {"…", "..."}, {"≤", "<="}, {"≥", ">="}, {"≠", "!="}, {"→", "->"},
        {"←", "<-"}, {"–", "-"},  {"—", "-"},   {"−", "-"},  {"²", "^2"}, {"ᵀ", "^T"}, {"Σ", "sum "},
        {"γ", "gamma"}, {"ε", "eps"}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        *length = strlen(signs[i][0]);
        if (!strncmp(s, signs[i][0], *length))
            return signs[i][1];
    }
    for (*length = 1; ((unsigned char)s[*length] & 0xC0) == 0x80;)
        ++*length;
    return "?";
}

/* A comment's words: in ASCII, each of its lines on a line of its own. */
static void put_words(struct listing *t, const char *s)
{
    while (*s) {
        size_t length = 1;
        if ((unsigned char)*s >= 0x80)
            put(t, in_ascii(s, &length));
        else if (*s == '\n')
            PUT(t, "\n\t// ");
        else
            put_bytes(t, (unsigned char)*s < ' ' ? " " : s, 1);
        s += length;
    }
}

static void put_note(struct listing *t, const struct ptx_instruction *i)
{
    bool section = i->op == PTX_PSEUDO_SECTION;
    put(t, section ? "\n\t// ---- " : "\t// ");
    put_words(t, ptx_note_text(t->k, i->note));
    put(t, section ? " ----\n" : "\n");
}

static void put_executed(struct listing *t, const struct ptx_instruction *i)
{
    PUT(t, "\t");
    if (i->guarded) {
        put(t, i->guarded == '-' ? "@!" : "@");
        put_register(t, i->guard);
        PUT(t, " ");
    }
    if (i->op == PTX_PSEUDO_RAW)
        put_raw(t, i);
    else if (i->op >= PTX_OP_COUNT)
        put_address(t, i);
    else {
        put_mnemonic(t, i);
        put_operands(t, i);
    }
    PUT(t, ";\n");
}

static void put_instruction(struct listing *t, const struct ptx_instruction *i)
{
    if (i->op == PTX_PSEUDO_LABEL) {
        put_label(t, t->k->operands[i->first].index);
        PUT(t, ":\n");
    } else if (i->op != PTX_PSEUDO_SECTION && i->op != PTX_PSEUDO_COMMENT)
        put_executed(t, i);
    else if (t->annotate)
        put_note(t, i);
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
        putf(t, "\t// %s +%zu, %zu bytes: ", space, list[i].offset, list[i].bytes);
        put_words(t, ptx_note_text(t->k, list[i].note));
        PUT(t, "\n");
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
        putf(t, "\t.local .align %zu .b8 %s$local[%zu];\n", k->local_align, k->name, k->local_bytes);
    put_buffers(t, "local", k->local, k->local_count);
}

static void put_kernel(struct listing *t, const ptx_kernel *k)
{
    t->k = k;
    if (k->shared_bytes > PTX_STATIC_SHARED_LIMIT)
        putf(t, "\n.extern .shared .align %zu .b8 %s$shared[];\n", k->shared_align, k->name);
    putf(t, "\n.visible .entry %s(\n", k->name);
    put_params(t);
    PUT(t, ")\n");
    put_directives(t);
    PUT(t, "{\n");
    put_declarations(t);
    for (uint32_t i = 0; i < k->code_count; i++)
        put_instruction(t, &k->code[i]);
    PUT(t, "}\n");
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
    if (m->last_kernel && !m->last_kernel->ended)
        ptx_kernel_fail(m->last_kernel, PTXGEN_ERROR_STRUCTURE, "was never ended");
    size_t bytes = PTX_OP_COUNT * sizeof(struct spelling);
    struct listing t = {.m = m, .annotate = flags & PTX_TEXT_ANNOTATE};
    if (m->error.status == PTXGEN_OK && (t.spellings = ptx_scratch(m, bytes)))
        put_module(&t);
    ptx_release(m, t.spellings, bytes);
    if (m->error.status != PTXGEN_OK)
        return ptx_module_status(m, err);
    *text = m->text;
    if (length)
        *length = m->text_length;
    return PTXGEN_OK;
}
