/* SPDX-License-Identifier: Apache-2.0 */
/* What tools ask: facts of finished kernels, and the instruction table in words. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ptx_kernel *kernel_at(const ptx_module *m, unsigned index)
{
    const ptx_kernel *k = m->kernels;
    while (k && index--)
        k = k->next;
    return k;
}

unsigned ptx_module_kernels(const ptx_module *m)
{
    return m->kernel_count;
}

ptxgen_status ptx_module_kernel_info(const ptx_module *m, unsigned index, ptx_kernel_info *info)
{
    const ptx_kernel *k = kernel_at(m, index);
    if (!k || !k->ended || !info)
        return PTXGEN_ERROR_INVALID_ARGUMENT;
    *info = (ptx_kernel_info){.name = k->name, .virtual_registers = k->register_count};
    for (uint32_t i = 0; i < k->code_count; i++) {
        unsigned op = k->code[i].op;
        info->instructions += op != PTX_PSEUDO_LABEL && op != PTX_PSEUDO_COMMENT && op != PTX_PSEUDO_SECTION;
        info->sections += op == PTX_PSEUDO_SECTION;
    }
    info->names_pred = k->names[PTX_CLASS_PRED];
    info->names_16 = k->names[PTX_CLASS_16];
    info->names_32 = k->names[PTX_CLASS_32];
    info->names_64 = k->names[PTX_CLASS_64];
    info->names_128 = k->names[PTX_CLASS_128];
    info->pressure = k->pressure;
    bool dynamic = k->shared_bytes > PTX_STATIC_SHARED_LIMIT;
    info->static_shared_bytes = dynamic ? 0 : k->shared_bytes;
    info->dynamic_shared_bytes = dynamic ? k->shared_bytes : 0;
    info->local_bytes = k->local_bytes;
    info->threads = k->ntid[0] ? k->ntid[0] * k->ntid[1] * k->ntid[2] : k->maxntid;
    return PTXGEN_OK;
}

static int more_frequent(const void *a, const void *b)
{
    const ptx_mix_row *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->mnemonic, y->mnemonic);
}

size_t ptx_module_kernel_mix(const ptx_module *m, unsigned index, ptx_mix_row *rows, size_t capacity)
{
    const ptx_kernel *k = kernel_at(m, index);
    if (!k)
        return 0;
    ptx_mix_row *all = calloc(PTX_OP_COUNT, sizeof *all);
    if (!all)
        return 0;
    for (uint32_t i = 0; i < k->code_count; i++)
        if (k->code[i].op < PTX_OP_COUNT)
            all[k->code[i].op].count++;
    size_t used = 0;
    for (size_t op = 0; op < PTX_OP_COUNT; op++)
        if (all[op].count)
            all[used++] = (ptx_mix_row){ptx_ops[op].name, all[op].count};
    qsort(all, used, sizeof *all, more_frequent);
    if (used && rows)
        memcpy(rows, all, (used < capacity ? used : capacity) * sizeof *rows);
    free(all);
    return used;
}

/* ---- the table in words ---- */

size_t ptx_instruction_count(void)
{
    return ptx_op_count;
}

const char *ptx_instruction_name(size_t index)
{
    return index < ptx_op_count ? ptx_ops[index].name : NULL;
}

struct writer {
    char *buffer;
    size_t size, used;
};

static void write(struct writer *w, const char *text, size_t length)
{
    for (size_t i = 0; i < length && w->used + 1 < w->size; i++)
        w->buffer[w->used++] = text[i];
    w->buffer[w->used] = 0;
}

static void write_string(struct writer *w, const char *text)
{
    write(w, text, strlen(text));
}

static void write_slot(struct writer *w, const char *name, size_t length)
{
    const struct ptx_modifier_group *g = ptx_find_group(name, length);
    write_string(w, "{");
    if (!g)
        write(w, name, length);
    for (unsigned i = 0; g && i < g->count; i++) {
        if (i)
            write_string(w, "|");
        write_string(w, g->alternatives[i].text);
    }
    write_string(w, "}");
}

static const char *const type_names[PTX_TYPE_COUNT] = {
    "pred", "u16", "s16", "f16", "bf16", "u32", "s32", "f32", "f16x2", "bf16x2",
    "u64",  "s64", "f64", "b128"};

static void write_term(struct writer *w, const struct ptx_term *t)
{
    char text[64];
    switch (t->kind) {
    case PTX_TERM_VECTOR:
        if (t->divisor)
            snprintf(text, sizeof text, "{%s × n/%d}", type_names[t->type], t->divisor);
        else
            snprintf(text, sizeof text, "{%s × %d}", type_names[t->type], t->count);
        break;
    case PTX_TERM_ADDRESS:
        snprintf(text, sizeof text, "[%s]", t->space == 's' ? "shared"
                                            : t->space == 'p' ? "param"
                                            : t->space == 'l' ? "local"
                                                              : "global");
        break;
    case PTX_TERM_TENSOR:
        snprintf(text, sizeof text, "[tensor map, {s32 × %d}]", t->count);
        break;
    case PTX_TERM_CONST:
        snprintf(text, sizeof text, "%d…%d", t->lo, t->hi);
        break;
    case PTX_TERM_LITERAL:
        snprintf(text, sizeof text, "%s", t->literal);
        break;
    case PTX_TERM_LABEL:
        snprintf(text, sizeof text, "label");
        break;
    default:
        snprintf(text, sizeof text, "%s%s", type_names[t->type],
                 t->flags & (PTX_TERM_REGISTER | PTX_TERM_WRITTEN) ? "" : "|imm");
    }
    write_string(w, text);
}

void ptx_instruction_describe(size_t index, char *buffer, size_t size)
{
    struct writer w = {buffer, size, 0};
    if (!size)
        return;
    *buffer = 0;
    if (index >= ptx_op_count)
        return;
    const struct ptx_op *op = &ptx_ops[index];
    for (const char *s = op->text; *s;) {
        size_t plain = strcspn(s, "{");
        write(&w, s, plain);
        s += plain;
        if (*s) {
            write_slot(&w, s + 1, strcspn(s + 1, "!}"));
            s = strchr(s, '}') + 1;
        }
    }
    for (unsigned t = 0; t < op->term_count; t++) {
        write_string(&w, !t ? " " : op->terms[t].flags & PTX_TERM_BAR ? "|" : ", ");
        write_term(&w, &op->terms[t]);
    }
    for (unsigned i = 0; i < op->need_count; i++) {
        char need[64];
        snprintf(need, sizeof need, "%s PTX %d.%d sm_%d%.1s", i ? " or" : ";", op->needs[i].ptx / 10,
                 op->needs[i].ptx % 10, op->needs[i].sm, &op->needs[i].suffix);
        write_string(&w, need);
    }
}
