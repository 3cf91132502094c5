/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters, shared and local memory, labels and CTA barriers of a kernel. */
#include "internal.h"

#include <stdarg.h>
#include <string.h>

/* The emitters used here record the line of this file's caller. */
#undef PTX_HERE
#define PTX_HERE here

static bool power_of_two(size_t x)
{
    return x && !(x & (x - 1));
}

enum { MOST_BYTES = 1 << 30, MOST_ALIGN = 1024 };

static uint32_t declare(ptx_kernel *k, struct ptx_declaration **list, uint32_t *count,
                        size_t *capacity, const char *name, size_t bytes, size_t align, int type)
{
    if (!ptx_open(k, "something declared"))
        return 0;
    const char *shown = name ? name : "(null)";
    if (!bytes || bytes > MOST_BYTES || !power_of_two(align) || align > MOST_ALIGN)
        ptx_kernel_fail(
            k, PTXGEN_ERROR_OPERAND,
            "'%s' has %zu bytes at alignment %zu; it needs 1 … 2^30 bytes and a power of "
            "two up to 1024",
            shown, bytes, align);
    if (*count == PTX_MAX_DECLARATIONS)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "'%s' is one declaration too many", shown);
    if (ptx_failed(k) || !ptx_reserve(k->module, list, capacity, *count + 1, sizeof **list))
        return 0;
    (*list)[*count] = (struct ptx_declaration){ptx_note_string(k, shown), bytes, align, 0, type};
    return (*count)++;
}

/* ---- parameters ---- */

static ptx_param declare_param(ptx_kernel *k, const char *name, size_t bytes, size_t align,
                               int type)
{
    ptx_param p = {{.kind = PTX_OPERAND_PARAM}};
    if (!k)
        return p;
    p.o.reserved = k->owner;
    if (!ptx_is_identifier(name))
        ptx_kernel_fail(
            k, PTXGEN_ERROR_STRUCTURE,
            "the parameter name '%.64s' is not an identifier of ASCII letters, digits and "
            "underscores",
            name ? name : "(null)");
    for (uint32_t i = 0; i < k->param_count && !ptx_failed(k); i++)
        if (!strcmp(ptx_note_text(k, k->params[i].note), name))
            ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "the parameter '%s' is declared twice",
                            name);
    p.o.index =
        declare(k, &k->params, &k->param_count, &k->param_capacity, name, bytes, align, type);
    return p;
}

ptx_param ptx_param_declare(ptx_kernel *k, const char *name, size_t bytes, size_t align)
{
    return declare_param(k, name, bytes, align, -1);
}

ptx_u32 ptx_param_u32_at(ptx_kernel *k, ptx_source here, const char *name)
{
    return ptx_ld_param_u32(k, declare_param(k, name, 4, 4, PTX_U32), 0);
}

ptx_u64 ptx_param_u64_at(ptx_kernel *k, ptx_source here, const char *name)
{
    return ptx_ld_param_u64(k, declare_param(k, name, 8, 8, PTX_U64), 0);
}

ptx_f32 ptx_param_f32_at(ptx_kernel *k, ptx_source here, const char *name)
{
    return ptx_ld_param_f32(k, declare_param(k, name, 4, 4, PTX_F32), 0);
}

/* A pseudo-instruction that takes the address of declaration `index` of `count`. */
static ptx_operand address_of(ptx_kernel *k, ptx_source here, unsigned pseudo, ptx_type type,
                              uint32_t index, uint16_t owner, uint32_t count)
{
    ptx_operand d = {0};
    if (!ptx_open(k, "an address taken"))
        return d;
    if (owner != k->owner || index >= count) {
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND, "the address of a %s of another kernel was taken",
                        pseudo == PTX_PSEUDO_PARAM_ADDRESS ? "parameter" : "buffer");
        return d;
    }
    d = ptx_register_new(k, type);
    struct ptx_instruction *i = ptx_append(k, pseudo, here, &d, 1);
    if (i)
        i->n = (uint16_t)index;
    return d;
}

ptx_u64 ptx_param_address_at(ptx_kernel *k, ptx_source here, ptx_param param)
{
    ptx_operand o[2] = {ptx_new_operand(PTX_U64)};
    if (!k)
        return (ptx_u64){o[0]};
    o[1] = address_of(k, here, PTX_PSEUDO_PARAM_ADDRESS, PTX_U64, param.o.index, param.o.reserved,
                      k->param_count);
    ptx_raw_at(k, here, "cvta.param.u64 %0, %1", 77, o, 2, 1);
    ptx_u64 a = {o[0]};
    return a;
}

/* ---- shared and local memory ---- */

ptx_shared ptx_shared_declare(ptx_kernel *k, const char *name, size_t bytes, size_t align)
{
    if (!k)
        return (ptx_shared){0};
    ptx_shared s = {
        declare(k, &k->shared, &k->shared_count, &k->shared_capacity, name, bytes, align, -1),
        k->owner};
    return s;
}

ptx_u32 ptx_shared_address_at(ptx_kernel *k, ptx_source here, ptx_shared buffer)
{
    if (!k)
        return (ptx_u32){{0}};
    ptx_u32 a = {address_of(k, here, PTX_PSEUDO_SHARED_ADDRESS, PTX_U32, buffer.index, buffer.owner,
                            k->shared_count)};
    return a;
}

ptx_local ptx_local_declare(ptx_kernel *k, const char *name, size_t bytes, size_t align)
{
    if (!k)
        return (ptx_local){0};
    ptx_local l = {
        declare(k, &k->local, &k->local_count, &k->local_capacity, name, bytes, align, -1),
        k->owner};
    return l;
}

ptx_u64 ptx_local_address_at(ptx_kernel *k, ptx_source here, ptx_local buffer)
{
    if (!k)
        return (ptx_u64){{0}};
    ptx_u64 a = {address_of(k, here, PTX_PSEUDO_LOCAL_ADDRESS, PTX_U64, buffer.index, buffer.owner,
                            k->local_count)};
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

static void check_shared(ptx_kernel *k)
{
    size_t limit = ptx_target_shared_limit(&k->module->target);
    if (k->shared_bytes > limit)
        ptx_kernel_fail(k, PTXGEN_ERROR_SHARED_MEMORY,
                        "%zu bytes of shared memory exceed the %zu that a CTA of sm_%d has",
                        k->shared_bytes, limit, k->module->target.sm);
}

static void check_local(ptx_kernel *k)
{
    enum { LIMIT = 512 * 1024 };
    if (k->local_bytes > LIMIT)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND,
                        "%zu bytes of local memory exceed the %d of a thread", k->local_bytes,
                        LIMIT);
}

/* Kernel parameters took 4,352 bytes until PTX 8.1 raised that to 32,764. */
static void check_params(ptx_kernel *k)
{
    enum { LIMIT_BEFORE_81 = 4352, LIMIT = 32764 };
    if (k->param_bytes > LIMIT)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND,
                        "%zu bytes of parameters exceed the %d of a kernel", k->param_bytes, LIMIT);
    else if (k->param_bytes > LIMIT_BEFORE_81)
        ptx_require_version(k, 81, "parameter space beyond 4352 bytes");
}

void ptx_lay_out_memory(ptx_kernel *k)
{
    size_t align;
    k->shared_bytes = lay_out(k->shared, k->shared_count, &k->shared_align);
    k->local_bytes = lay_out(k->local, k->local_count, &k->local_align);
    k->param_bytes = lay_out(k->params, k->param_count, &align);
    check_shared(k);
    check_local(k);
    check_params(k);
}

/* ---- labels ---- */

ptx_label ptx_label_new(ptx_kernel *k, const char *name)
{
    ptx_label l = {{.kind = PTX_OPERAND_LABEL}};
    if (!k)
        return l;
    l.o.reserved = k->owner;
    if (name && *name && !ptx_is_identifier(name))
        ptx_kernel_fail(k, PTXGEN_ERROR_LABEL,
                        "the label name '%.64s' is not an identifier of ASCII letters, digits and "
                        "underscores",
                        name);
    if (!ptx_open(k, "a label made") || !ptx_reserve(k->module, &k->labels, &k->label_capacity,
                                                     k->label_count + 1, sizeof *k->labels))
        return l;
    k->labels[k->label_count] =
        (struct ptx_label_state){.note = ptx_note_string(k, name ? name : "")};
    l.o.index = k->label_count++;
    return l;
}

void ptx_label_bind_at(ptx_kernel *k, ptx_source here, ptx_label label)
{
    if (!ptx_open(k, "a label bound"))
        return;
    if (label.o.kind != PTX_OPERAND_LABEL || label.o.reserved != k->owner ||
        label.o.index >= k->label_count) {
        ptx_kernel_fail(k, PTXGEN_ERROR_LABEL,
                        "at %s:%d a label that is not of this kernel was bound",
                        ptx_file_name(here.file),
                        here.line);
        return;
    }
    struct ptx_label_state *s = &k->labels[label.o.index];
    if (s->bound) {
        ptx_kernel_fail(k, PTXGEN_ERROR_LABEL, "label %u '%s' is bound twice, at %s:%d",
                        (unsigned)label.o.index, ptx_note_text(k, s->note),
                        ptx_file_name(here.file), here.line);
        return;
    }
    s->bound = true;
    s->position = k->code_count;
    struct ptx_instruction *i = ptx_append(k, PTX_PSEUDO_LABEL, here, &label.o, 1);
    if (i)
        i->guarded = 0;
}

/* ---- barriers ---- */

ptx_barrier ptx_barrier_new(ptx_kernel *k, unsigned threads)
{
    enum { BARRIERS = 16 };
    if (!k)
        return (ptx_barrier){0};
    ptx_barrier b = {(uint8_t)k->barriers_used, (uint16_t)threads};
    if (!ptx_open(k, "a barrier taken"))
        return b;
    if (k->barriers_used == BARRIERS)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND, "a CTA has 16 barriers; a 17th was asked for");
    else
        k->barriers_used++;
    if (threads % 32 || threads > 1024)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND,
                        "a barrier of %u threads; the count must be a multiple of 32 up to 1024",
                        threads);
    return b;
}

void ptx_barrier_wait_at(ptx_kernel *k, ptx_source here, ptx_barrier b)
{
    if (b.threads)
        ptx_bar_sync_n(k, ptx_imm_u32(b.number), ptx_imm_u32(b.threads));
    else
        ptx_bar_sync(k, b.number);
}

void ptx_barrier_signal_at(ptx_kernel *k, ptx_source here, ptx_barrier b)
{
    if (!k)
        return;
    unsigned threads = b.threads ? b.threads : k->ntid[0] * k->ntid[1] * k->ntid[2];
    if (!threads || threads % 32)
        ptx_kernel_fail(
            k, PTXGEN_ERROR_OPERAND,
            "signalling a barrier of the whole CTA needs .reqntid with a multiple of 32 "
            "threads; it has %u",
            threads);
    ptx_bar_arrive_n(k, ptx_imm_u32(b.number), ptx_imm_u32(threads));
}

/* ---- listing ---- */

static void annotate(ptx_kernel *k, unsigned pseudo, const char *format, va_list args)
{
    if (!k)
        return;
    uint32_t note = ptx_vnote(k, format, args);
    struct ptx_instruction *i = ptx_append(k, pseudo, (ptx_source){0}, NULL, 0);
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
