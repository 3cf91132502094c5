/* SPDX-License-Identifier: Apache-2.0 */
/* What tools ask: facts of finished kernels, and the instruction table in words. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ptx_kernel *kernel_at(const ptx_module *m, unsigned index)
{
    const ptx_kernel *k = m ? m->kernels : NULL;
    while (k && index--)
        k = k->next;
    return k;
}

unsigned ptx_module_kernels(const ptx_module *m)
{
    return m ? m->kernel_count : 0;
}

static bool is_executed(const struct ptx_instruction *i)
{
    return i->op != PTX_PSEUDO_LABEL && i->op != PTX_PSEUDO_COMMENT && i->op != PTX_PSEUDO_SECTION;
}

ptxgen_status ptx_module_kernel_info(const ptx_module *m, unsigned index, ptx_kernel_info *info)
{
    const ptx_kernel *k = kernel_at(m, index);
    if (!k || !k->ended || !info)
        return PTXGEN_ERROR_INVALID_ARGUMENT;
    *info = (ptx_kernel_info){.name = k->name, .virtual_registers = k->register_count};
    for (uint32_t i = 0; i < k->code_count; i++) {
        info->instructions += is_executed(&k->code[i]);
        info->sections += k->code[i].op == PTX_PSEUDO_SECTION;
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

ptxgen_status ptx_module_kernel_section(const ptx_module *m, unsigned index, unsigned section,
                                        const char **name, size_t *instructions)
{
    const ptx_kernel *k = kernel_at(m, index);
    if (!k || !name || !instructions)
        return PTXGEN_ERROR_INVALID_ARGUMENT;
    *name = "";
    *instructions = 0;
    unsigned now = 0;
    for (uint32_t i = 0; i < k->code_count && now <= section; i++) {
        if (k->code[i].op == PTX_PSEUDO_SECTION && ++now == section)
            *name = ptx_note_text(k, k->code[i].note);
        *instructions += now == section && is_executed(&k->code[i]);
    }
    return now < section ? PTXGEN_ERROR_INVALID_ARGUMENT : PTXGEN_OK;
}

static int more_frequent(const void *a, const void *b)
{
    const ptx_mix_row *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->mnemonic, y->mnemonic);
}

enum { ROW_RAW = PTX_OP_COUNT, ROWS };

static unsigned row_of(const struct ptx_instruction *i)
{
    if (i->op < PTX_OP_COUNT)
        return i->op;
    return i->op == PTX_PSEUDO_RAW              ? (unsigned)ROW_RAW
           : i->op == PTX_PSEUDO_SHARED_ADDRESS ? (unsigned)PTX_OP_mov_u32
                                                : (unsigned)PTX_OP_mov_u64;
}

static void copy_name(char *to, size_t size, const char *name)
{
    size_t length = strlen(name) < size ? strlen(name) : size - 1;
    memcpy(to, name, length);
    to[length] = 0;
}

/* Counts by row; how many different ones there are. */
static size_t count_rows(const ptx_kernel *k, size_t counts[ROWS])
{
    size_t different = 0;
    memset(counts, 0, ROWS * sizeof *counts);
    for (uint32_t i = 0; i < k->code_count; i++)
        if (is_executed(&k->code[i]))
            different += !counts[row_of(&k->code[i])]++;
    return different;
}

static void name_rows(const size_t counts[ROWS], ptx_mix_row *all, size_t different)
{
    for (size_t row = 0, i = 0; row < ROWS && i < different; row++)
        if (counts[row]) {
            all[i].count = counts[row];
            copy_name(all[i++].mnemonic, PTX_NAME_SIZE,
                     row == ROW_RAW ? "raw" : ptx_op_name(&ptx_ops[row]).s);
        }
    qsort(all, different, sizeof *all, more_frequent);
}

size_t ptx_module_kernel_mix(const ptx_module *m, unsigned index, ptx_mix_row *rows,
                             size_t capacity)
{
    const ptx_kernel *k = kernel_at(m, index);
    if (!k)
        return 0;
    const ptx_allocator *a = &m->allocator;
    size_t bytes = ROWS * sizeof(size_t);
    size_t *counts = a->resize(a->ctx, NULL, 0, bytes);
    size_t different = counts ? count_rows(k, counts) : 0, all_bytes = different * sizeof *rows;
    ptx_mix_row *all = different && rows ? a->resize(a->ctx, NULL, 0, all_bytes) : NULL;
    if (all) {
        name_rows(counts, all, different);
        memcpy(rows, all, (different < capacity ? different : capacity) * sizeof *rows);
        a->resize(a->ctx, all, all_bytes, 0);
    }
    if (counts)
        a->resize(a->ctx, counts, bytes, 0);
    return all || !rows ? different : 0;
}

/* ---- the table in words ---- */

size_t ptx_instruction_count(void)
{
    return ptx_op_count;
}

void ptx_instruction_name(size_t index, char *buffer, size_t size)
{
    if (buffer && size)
        copy_name(buffer, size, index < ptx_op_count ? ptx_op_name(&ptx_ops[index]).s : "");
}

struct writer {
    char *buffer;
    size_t size, used;
};

static void add(struct writer *w, const char *text, size_t length)
{
    for (size_t i = 0; i < length && w->used + 1 < w->size; i++)
        w->buffer[w->used++] = text[i];
    w->buffer[w->used] = 0;
}

static void addf(struct writer *w, const char *format, ...) PTXGEN_PRINTF(2, 3);
static void addf(struct writer *w, const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add(w, text, strlen(text));
}

static void add_slot(struct writer *w, const char *name, size_t length)
{
    const struct ptx_modifier_group *g = ptx_find_group(name, length);
    add(w, "{", 1);
    if (!g)
        add(w, name, length);
    for (unsigned i = 0; g && i < g->count; i++)
        addf(w, "%s%s", i ? "|" : "", g->alternatives[i].text);
    add(w, "}", 1);
}

static const char *const type_names[PTX_TYPE_COUNT] = {
    "pred", "u16", "s16", "f16", "bf16", "u32", "s32", "f32", "f16x2", "bf16x2",
    "u64",  "s64", "f64", "b128"};

static void add_range(struct writer *w, const struct ptx_term *t)
{
    addf(w, "%d", t->lo);
    if (t->hi != t->lo)
        addf(w, "…%d", t->hi);
    if (t->flags & PTX_TERM_WGMMA_INT_N)
        addf(w, " by 8 up to 32, then by 16");
    else if (t->flags & PTX_TERM_POW2)
        addf(w, " powers of two");
    else if (t->step > 1 && t->hi != t->lo)
        addf(w, " by %d", t->step);
}

static const char *space_name(char space)
{
    return space == 's' ? "shared" : space == 'p' ? "param" : space == 'l' ? "local" : "global";
}

static void add_term(struct writer *w, const struct ptx_term *t)
{
    switch (t->kind) {
    case PTX_TERM_VECTOR:
        if (t->divisor)
            addf(w, "{%s × n/%d}", type_names[t->type], t->divisor);
        else
            addf(w, "{%s × %d}", type_names[t->type], t->count);
        break;
    case PTX_TERM_ADDRESS: addf(w, "[%s]", space_name(t->space)); break;
    case PTX_TERM_TENSOR: addf(w, "[tensor map, {s32 × %d}]", t->count); break;
    case PTX_TERM_CONST: add_range(w, t); break;
    case PTX_TERM_LITERAL: addf(w, "%s", ptx_literal(t).s); break;
    case PTX_TERM_LABEL: addf(w, "label"); break;
    default:
        addf(w, "%s%s", type_names[t->type],
             t->flags & (PTX_TERM_REGISTER | PTX_TERM_WRITTEN) ? "" : "|imm");
    }
}

static void add_text(struct writer *w, const char *s)
{
    while (*s) {
        size_t plain = strcspn(s, "{");
        add(w, s, plain);
        s += plain;
        if (*s) {
            add_slot(w, s + 1, strcspn(s + 1, "!}"));
            s = strchr(s, '}') + 1;
        }
    }
}

void ptx_instruction_describe(size_t index, char *buffer, size_t size)
{
    struct writer w = {buffer, size, 0};
    if (!buffer || !size)
        return;
    *buffer = 0;
    if (index >= ptx_op_count)
        return;
    const struct ptx_op *op = &ptx_ops[index];
    add_text(&w, ptx_op_text(op).s);
    for (unsigned t = 0; t < op->term_count; t++) {
        addf(&w, "%s", !t ? " " : ptx_op_term(op, t)->flags & PTX_TERM_BAR ? "|" : ", ");
        add_term(&w, ptx_op_term(op, t));
    }
    if (ptx_op_n(op)->hi) {
        addf(&w, "; n ");
        add_range(&w, ptx_op_n(op));
    }
    for (unsigned i = 0; i < op->need_count; i++)
        addf(&w, "%s PTX %d.%d sm_%d%.1s", i ? " or" : ";", ptx_op_needs(op)[i].ptx / 10,
             ptx_op_needs(op)[i].ptx % 10, ptx_op_needs(op)[i].sm, &ptx_op_needs(op)[i].suffix);
}
