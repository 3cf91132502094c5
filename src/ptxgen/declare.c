/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters, shared and local memory, labels and CTA barriers of a kernel. */
#include "internal.h"

#include <stdarg.h>
#include <string.h>

static bool power_of_two(size_t x)
{
    return x && !(x & (x - 1));
}

static uint32_t declare(ptx_kernel *k, struct ptx_declaration **list, uint32_t *count,
                        size_t *capacity, const char *name, size_t bytes, size_t align, int type)
{
    if (!bytes || !power_of_two(align) || align > 1024)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND,
                        "'%s' has %zu bytes at alignment %zu; it needs at least one byte and a power "
                        "of two up to 1024",
                        name, bytes, align);
    if (ptx_failed(k) || !ptx_reserve(k->module, list, capacity, *count + 1, sizeof **list))
        return 0;
    (*list)[*count] = (struct ptx_declaration){ptx_note(k, "%s", name), bytes, align, 0, type};
    return (*count)++;
}

/* ---- parameters ---- */

static ptx_param declare_param(ptx_kernel *k, const char *name, size_t bytes, size_t align, int type)
{
    ptx_param p = {{.kind = PTX_OPERAND_PARAM}};
    p.o.index = declare(k, &k->params, &k->param_count, &k->param_capacity, name, bytes, align, type);
    return p;
}

ptx_param ptx_param_declare(ptx_kernel *k, const char *name, size_t bytes, size_t align)
{
    return declare_param(k, name, bytes, align, -1);
}

ptx_u32 ptx_param_u32(ptx_kernel *k, const char *name)
{
    return ptx_ld_param_u32(k, declare_param(k, name, 4, 4, PTX_U32), 0);
}

ptx_u64 ptx_param_u64(ptx_kernel *k, const char *name)
{
    return ptx_ld_param_u64(k, declare_param(k, name, 8, 8, PTX_U64), 0);
}

ptx_f32 ptx_param_f32(ptx_kernel *k, const char *name)
{
    return ptx_ld_param_f32(k, declare_param(k, name, 4, 4, PTX_F32), 0);
}

static ptx_operand address_of(ptx_kernel *k, unsigned pseudo, ptx_type type, uint32_t index)
{
    ptx_operand d = ptx_register_new(k, type);
    struct ptx_instruction *i = ptx_append(k, pseudo, PTX_HERE, &d, 1);
    if (i)
        i->n = (uint16_t)index;
    return d;
}

ptx_u64 ptx_param_address(ptx_kernel *k, ptx_param param)
{
    /* cvta.param of a .param address (PTX 7.7); the address is generic. */
    ptx_require_version(k, 77, "the generic address of a parameter");
    ptx_u64 a = {address_of(k, PTX_PSEUDO_PARAM_ADDRESS, PTX_U64, param.o.index)};
    return a;
}

/* ---- shared and local memory ---- */

ptx_shared ptx_shared_declare(ptx_kernel *k, const char *name, size_t bytes, size_t align)
{
    ptx_shared s = {declare(k, &k->shared, &k->shared_count, &k->shared_capacity, name, bytes, align, -1)};
    return s;
}

ptx_u32 ptx_shared_address(ptx_kernel *k, ptx_shared buffer)
{
    ptx_u32 a = {address_of(k, PTX_PSEUDO_SHARED_ADDRESS, PTX_U32, buffer.index)};
    return a;
}

static size_t lay_out(struct ptx_declaration *list, uint32_t count, size_t *align)
{
    size_t bytes = 0;
    *align = 1;
    for (uint32_t i = 0; i < count; i++) {
        bytes = (bytes + list[i].align - 1) & ~(list[i].align - 1);
        list[i].offset = bytes;
        bytes += list[i].bytes;
        if (list[i].align > *align)
            *align = list[i].align;
    }
    return bytes;
}

void ptx_shared_layout(ptx_kernel *k)
{
    size_t align;
    k->shared_bytes = lay_out(k->shared, k->shared_count, &k->shared_align);
    k->local_bytes = lay_out(k->local, k->local_count, &align);
    size_t limit = ptx_target_shared_limit(&k->module->target);
    if (k->shared_bytes > limit)
        ptx_kernel_fail(k, PTXGEN_ERROR_SHARED_MEMORY,
                        "%zu bytes of shared memory exceed the %zu that a CTA of sm_%d has",
                        k->shared_bytes, limit, k->module->target.sm);
}

ptx_local ptx_local_declare(ptx_kernel *k, const char *name, size_t bytes, size_t align)
{
    ptx_local l = {declare(k, &k->local, &k->local_count, &k->local_capacity, name, bytes, align, -1)};
    return l;
}

ptx_u64 ptx_local_address(ptx_kernel *k, ptx_local buffer)
{
    ptx_u64 a = {address_of(k, PTX_PSEUDO_LOCAL_ADDRESS, PTX_U64, buffer.index)};
    return a;
}

/* ---- labels ---- */

ptx_label ptx_label_new(ptx_kernel *k, const char *name)
{
    ptx_label l = {{.kind = PTX_OPERAND_LABEL}};
    if (ptx_failed(k) ||
        !ptx_reserve(k->module, &k->labels, &k->label_capacity, k->label_count + 1, sizeof *k->labels))
        return l;
    k->labels[k->label_count] = (struct ptx_label_state){.note = ptx_note(k, "%s", name ? name : "")};
    l.o.index = k->label_count++;
    return l;
}

void ptx_label_bind(ptx_kernel *k, ptx_label label)
{
    if (ptx_failed(k))
        return;
    if (label.o.kind != PTX_OPERAND_LABEL || label.o.index >= k->label_count) {
        ptx_kernel_fail(k, PTXGEN_ERROR_LABEL, "a label that is not of this kernel was bound");
        return;
    }
    struct ptx_label_state *s = &k->labels[label.o.index];
    if (s->bound) {
        ptx_kernel_fail(k, PTXGEN_ERROR_LABEL, "label %u '%s' is bound twice",
                        (unsigned)label.o.index, ptx_note_text(k, s->note));
        return;
    }
    s->bound = true;
    s->position = k->code_count;
    ptx_append(k, PTX_PSEUDO_LABEL, PTX_HERE, &label.o, 1);
}

/* ---- barriers ---- */

ptx_barrier ptx_barrier_new(ptx_kernel *k, unsigned threads)
{
    ptx_barrier b = {(uint8_t)k->barriers_used, (uint16_t)threads};
    if (k->barriers_used == 16)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND, "a CTA has 16 barriers; a 17th was asked for");
    else
        k->barriers_used++;
    if (threads % 32 || threads > 1024)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND,
                        "a barrier of %u threads; the count must be a multiple of 32 up to 1024", threads);
    return b;
}

void ptx_barrier_wait(ptx_kernel *k, ptx_barrier b)
{
    if (b.threads)
        ptx_bar_sync_n(k, ptx_imm_u32(b.number), ptx_imm_u32(b.threads));
    else
        ptx_bar_sync(k, b.number);
}

void ptx_barrier_signal(ptx_kernel *k, ptx_barrier b)
{
    unsigned threads = b.threads ? b.threads : k->ntid[0] * k->ntid[1] * k->ntid[2];
    if (!threads)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND,
                        "signalling a barrier of the whole CTA needs .reqntid for its thread count");
    ptx_bar_arrive_n(k, ptx_imm_u32(b.number), ptx_imm_u32(threads));
}

/* ---- listing ---- */

static void annotate(ptx_kernel *k, unsigned pseudo, const char *format, va_list args)
{
    uint32_t note = ptx_vnote(k, format, args);
    struct ptx_instruction *i = ptx_append(k, pseudo, PTX_HERE, NULL, 0);
    if (i) {
        i->note = note;
        i->guarded = 0;
    }
}

void ptx_section(ptx_kernel *k, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    annotate(k, PTX_PSEUDO_SECTION, format, args);
    va_end(args);
}

void ptx_comment(ptx_kernel *k, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    annotate(k, PTX_PSEUDO_COMMENT, format, args);
    va_end(args);
}
