/* SPDX-License-Identifier: Apache-2.0 */
/* A module as PTX text. */
#include "internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- output ---- */

static void put(ptx_module *m, const char *s)
{
    size_t length = strlen(s);
    if (m->error.status != PTXGEN_OK ||
        !ptx_reserve(m, &m->text, &m->text_capacity, m->text_length + length + 1, 1))
        return;
    memcpy(m->text + m->text_length, s, length + 1);
    m->text_length += length;
}

static void putf(ptx_module *m, const char *format, ...) PTXGEN_PRINTF(2, 3);
static void putf(ptx_module *m, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    put(m, line);
}

/* ---- mnemonics ---- */

static size_t append(char *buffer, size_t used, const char *text, size_t length)
{
    if (used + length >= PTX_MNEMONIC_SIZE)
        length = PTX_MNEMONIC_SIZE - 1 - used;
    memcpy(buffer + used, text, length);
    return used + length;
}

void ptx_mnemonic(const struct ptx_instruction *i, char *buffer)
{
    static const char *const pseudo[] = {"label", "comment", "section", "raw", "mov", "mov", "mov"};
    const char *s = i->op < PTX_OP_COUNT ? ptx_ops[i->op].text : pseudo[i->op - PTX_OP_COUNT];
    size_t used = 0;
    while (*s) {
        size_t plain = strcspn(s, "{");
        used = append(buffer, used, s, plain);
        s += plain;
        if (!*s)
            break;
        size_t length = strcspn(s + 1, "!}");
        bool has_default = s[1 + length] == '!';
        const struct ptx_modifier_group *g = ptx_find_group(s + 1, length);
        if (g) {
            unsigned value = (i->modifiers >> g->shift) & ((1u << g->bits) - 1);
            if (!value && has_default)
                value = 1;
            if (value && value <= g->count)
                used = append(buffer, used, g->alternatives[value - 1].text,
                              strlen(g->alternatives[value - 1].text));
        } else {
            char n[8];
            snprintf(n, sizeof n, "%u", i->n);
            used = append(buffer, used, n, strlen(n));
        }
        s = strchr(s, '}') + 1;
    }
    buffer[used] = 0;
}

/* ---- operands ---- */

static const char *const class_prefix[PTX_CLASSES] = {"%p", "%rs", "%r", "%rd", "%rq"};
static const char *const class_type[PTX_CLASSES] = {".pred", ".b16", ".b32", ".b64", ".b128"};

static void put_register(ptx_kernel *k, uint32_t reg)
{
    putf(k->module, "%s%u", class_prefix[ptx_class_of(k->registers[reg].type)],
         (unsigned)k->registers[reg].name);
}

static void put_immediate(ptx_module *m, ptx_type type, uint64_t bits)
{
    switch (type) {
    case PTX_F32: putf(m, "0f%08" PRIX32, (uint32_t)bits); break;
    case PTX_F64: putf(m, "0d%016" PRIX64, bits); break;
    case PTX_S16: putf(m, "%d", (int)(int16_t)bits); break;
    case PTX_S32: putf(m, "%" PRId32, (int32_t)bits); break;
    case PTX_S64: putf(m, "%" PRId64, (int64_t)bits); break;
    default:
        putf(m, bits < 65536 ? "%" PRIu64 : "0x%" PRIX64, bits);
    }
}

static void put_label(ptx_kernel *k, uint32_t label)
{
    const char *hint = ptx_note_text(k, k->labels[label].note);
    putf(k->module, *hint ? "L%u_%s" : "L%u", (unsigned)label, hint);
}

static void put_operand(ptx_kernel *k, ptx_operand o)
{
    switch (o.kind) {
    case PTX_OPERAND_REGISTER: put_register(k, o.index); break;
    case PTX_OPERAND_IMMEDIATE: put_immediate(k->module, o.type, o.bits); break;
    case PTX_OPERAND_LABEL: put_label(k, o.index); break;
    case PTX_OPERAND_PARAM:
        put(k->module, ptx_note_text(k, k->params[o.index].note));
        break;
    default: break;
    }
}

static void put_vector(ptx_kernel *k, const ptx_operand *o, unsigned count)
{
    put(k->module, "{");
    for (unsigned j = 0; j < count; j++) {
        if (j)
            put(k->module, ", ");
        put_operand(k, o[j]);
    }
    put(k->module, "}");
}

static void put_term(ptx_kernel *k, const struct ptx_term *t, const ptx_operand *o, unsigned count)
{
    switch (t->kind) {
    case PTX_TERM_VECTOR:
        put_vector(k, o, count);
        break;
    case PTX_TERM_ADDRESS:
        put(k->module, "[");
        put_operand(k, o[0]);
        if (o[1].bits)
            putf(k->module, "+%" PRId64, (int64_t)o[1].bits);
        put(k->module, "]");
        break;
    case PTX_TERM_TENSOR:
        put(k->module, "[");
        put_operand(k, o[0]);
        put(k->module, ", ");
        put_vector(k, o + 1, count - 1);
        put(k->module, "]");
        break;
    case PTX_TERM_LITERAL:
        put(k->module, t->literal);
        break;
    default:
        put_operand(k, *o);
    }
}

/* ---- instructions ---- */

static void put_operands(ptx_kernel *k, const struct ptx_instruction *i)
{
    const struct ptx_op *op = &ptx_ops[i->op];
    const ptx_operand *o = &k->operands[i->first];
    for (unsigned t = 0; t < op->term_count; t++) {
        unsigned count = ptx_term_operands(&op->terms[t], i->n);
        put(k->module, !t ? " " : op->terms[t].flags & PTX_TERM_BAR ? "|" : ", ");
        put_term(k, &op->terms[t], o, count);
        o += count;
    }
}

static void put_raw(ptx_kernel *k, const struct ptx_instruction *i)
{
    const char *s = ptx_note_text(k, i->note);
    while (*s) {
        if (s[0] == '%' && s[1] >= '0' && s[1] <= '9') {
            put_operand(k, k->operands[i->first + (unsigned)(s[1] - '0')]);
            s += 2;
        } else
            putf(k->module, "%c", *s++);
    }
}

static void put_address(ptx_kernel *k, const struct ptx_instruction *i)
{
    ptx_module *m = k->module;
    put(m, i->op == PTX_PSEUDO_SHARED_ADDRESS ? "mov.u32 " : "mov.u64 ");
    put_operand(k, k->operands[i->first]);
    if (i->op == PTX_PSEUDO_PARAM_ADDRESS) {
        putf(m, ", %s;\n\tcvta.param.u64 ", ptx_note_text(k, k->params[i->n].note));
        put_operand(k, k->operands[i->first]);
        put(m, ", ");
        put_operand(k, k->operands[i->first]);
        return;
    }
    bool shared = i->op == PTX_PSEUDO_SHARED_ADDRESS;
    size_t offset = shared ? k->shared[i->n].offset : k->local[i->n].offset;
    putf(m, ", %s_%s", k->name, shared ? "shared" : "local");
    if (offset)
        putf(m, "+%zu", offset);
}

static void put_instruction(ptx_kernel *k, const struct ptx_instruction *i, bool annotate)
{
    ptx_module *m = k->module;
    switch (i->op) {
    case PTX_PSEUDO_LABEL:
        put_label(k, k->operands[i->first].index);
        put(m, ":\n");
        return;
    case PTX_PSEUDO_SECTION:
        if (annotate)
            putf(m, "\n\t// ---- %s ----\n", ptx_note_text(k, i->note));
        return;
    case PTX_PSEUDO_COMMENT:
        if (annotate)
            putf(m, "\t// %s\n", ptx_note_text(k, i->note));
        return;
    default:
        break;
    }
    put(m, "\t");
    if (i->guarded) {
        put(m, i->guarded == '-' ? "@!" : "@");
        put_register(k, i->guard);
        put(m, " ");
    }
    if (i->op == PTX_PSEUDO_RAW)
        put_raw(k, i);
    else if (i->op >= PTX_OP_COUNT)
        put_address(k, i);
    else {
        char mnemonic[PTX_MNEMONIC_SIZE];
        ptx_mnemonic(i, mnemonic);
        put(m, mnemonic);
        put_operands(k, i);
    }
    put(m, ";\n");
}

/* ---- kernels ---- */

static void put_params(ptx_kernel *k)
{
    static const char *const spelt[PTX_TYPE_COUNT] = {
        [PTX_U32] = "u32", [PTX_U64] = "u64", [PTX_F32] = "f32"};
    for (uint32_t i = 0; i < k->param_count; i++) {
        const struct ptx_declaration *p = &k->params[i];
        const char *name = ptx_note_text(k, p->note), *end = i + 1 < k->param_count ? "," : "";
        if (p->type >= 0)
            putf(k->module, "\t.param .%s %s%s\n", spelt[p->type], name, end);
        else
            putf(k->module, "\t.param .align %zu .b8 %s[%zu]%s\n", p->align, name, p->bytes, end);
    }
}

static void put_directives(ptx_kernel *k)
{
    ptx_module *m = k->module;
    if (k->ntid[0])
        putf(m, ".reqntid %u, %u, %u\n", k->ntid[0], k->ntid[1], k->ntid[2]);
    if (k->maxntid)
        putf(m, ".maxntid %u\n", k->maxntid);
    if (k->minnctapersm)
        putf(m, ".minnctapersm %u\n", k->minnctapersm);
    if (k->maxnreg)
        putf(m, ".maxnreg %u\n", k->maxnreg);
    if (k->cluster[0])
        putf(m, ".explicitcluster\n.reqnctapercluster %u, %u, %u\n", k->cluster[0], k->cluster[1],
             k->cluster[2]);
}

static void put_buffers(ptx_kernel *k, const struct ptx_declaration *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        putf(k->module, "\t// +%zu: %s, %zu bytes\n", list[i].offset, ptx_note_text(k, list[i].note),
             list[i].bytes);
}

static void put_declarations(ptx_kernel *k, bool annotate)
{
    ptx_module *m = k->module;
    for (int c = 0; c < PTX_CLASSES; c++)
        if (k->names[c])
            putf(m, "\t.reg %s %s<%u>;\n", class_type[c], class_prefix[c], (unsigned)k->names[c]);
    if (annotate)
        putf(m, "\t// at most %u 32-bit registers live at once\n", k->pressure);
    if (k->shared_bytes && k->shared_bytes <= PTX_STATIC_SHARED_LIMIT)
        putf(m, "\t.shared .align %zu .b8 %s_shared[%zu];\n", k->shared_align, k->name,
             k->shared_bytes);
    if (annotate)
        put_buffers(k, k->shared, k->shared_count);
    if (k->local_bytes)
        putf(m, "\t.local .align 16 .b8 %s_local[%zu];\n", k->name, k->local_bytes);
}

static void put_kernel(ptx_kernel *k, bool annotate)
{
    ptx_module *m = k->module;
    if (k->shared_bytes > PTX_STATIC_SHARED_LIMIT)
        putf(m, "\n.extern .shared .align %zu .b8 %s_shared[];\n", k->shared_align, k->name);
    putf(m, "\n.visible .entry %s(\n", k->name);
    put_params(k);
    put(m, ")\n");
    put_directives(k);
    put(m, "{\n");
    put_declarations(k, annotate);
    for (uint32_t i = 0; i < k->code_count; i++)
        put_instruction(k, &k->code[i], annotate);
    put(m, "}\n");
}

ptxgen_status ptx_module_text(ptx_module *m, unsigned flags, const char **text, size_t *length,
                              ptxgen_error *err)
{
    if (m->last_kernel && !m->last_kernel->ended)
        ptx_kernel_fail(m->last_kernel, PTXGEN_ERROR_STRUCTURE, "was never ended");
    m->text_length = 0;
    char suffix[2] = {m->target.suffix, 0};
    putf(m, ".version %d.%d\n.target sm_%d%s\n.address_size 64\n", m->ptx_version / 10,
         m->ptx_version % 10, m->target.sm, suffix);
    for (ptx_kernel *k = m->kernels; k && m->error.status == PTXGEN_OK; k = k->next)
        put_kernel(k, flags & PTX_TEXT_ANNOTATE);
    if (m->error.status != PTXGEN_OK)
        return ptx_module_status(m, err);
    *text = m->text;
    if (length)
        *length = m->text_length;
    return PTXGEN_OK;
}
