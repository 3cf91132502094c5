/* SPDX-License-Identifier: Apache-2.0 */
/* Which instruction reads and writes which register: the index that the passes share. */
#include "internal.h"

#include <string.h>

static inline void add(struct ptx_uses *u, uint32_t at, const ptx_operand *o, unsigned flags)
{
    if (o->kind == PTX_OPERAND_REGISTER)
        u->by_instruction[u->count++] =
            (struct ptx_reference){.reg = o->index,
                                   .at = at,
                                   .written = (flags & PTX_TERM_WRITTEN) != 0,
                                   .read = (flags & PTX_TERM_READ) != 0,
                                   .undef_ok = (flags & PTX_TERM_UNDEF_OK) != 0};
}

static void add_pseudo(const ptx_kernel *k, struct ptx_uses *u, uint32_t at)
{
    const struct ptx_instruction *i = &k->code[at];
    for (unsigned j = 0; j < i->count; j++) {
        bool written = i->op != PTX_PSEUDO_RAW || j < i->n;
        add(u, at, &k->operands[i->first + j], written ? PTX_TERM_WRITTEN : PTX_TERM_READ);
    }
}

static void add_instruction(const ptx_kernel *k, struct ptx_uses *u, uint32_t at)
{
    const struct ptx_instruction *i = &k->code[at];
    const ptx_operand *o = &k->operands[i->first];
    const struct ptx_op *op = &ptx_ops[i->op];
    for (unsigned t = 0; t < op->term_count; t++) {
        const struct ptx_term *term = ptx_op_term(op, t);
        if (term->kind == PTX_TERM_VALUE) {
            add(u, at, o++, term->flags);
            continue;
        }
        bool address = term->kind == PTX_TERM_ADDRESS || term->kind == PTX_TERM_TENSOR;
        unsigned flags = address ? PTX_TERM_READ : term->flags;
        for (unsigned count = ptx_term_operands(term, i->n); count; count--)
            add(u, at, o++, flags);
    }
}

static void collect(const ptx_kernel *k, struct ptx_uses *u)
{
    for (uint32_t at = 0; at < k->code_count; at++) {
        const struct ptx_instruction *i = &k->code[at];
        u->instruction_start[at] = u->count;
        if (i->guarded) {
            ptx_operand guard = {.kind = PTX_OPERAND_REGISTER, .index = i->guard};
            add(u, at, &guard, PTX_TERM_READ);
        }
        if (i->op < PTX_OP_COUNT)
            add_instruction(k, u, at);
        else
            add_pseudo(k, u, at);
    }
    u->instruction_start[k->code_count] = u->count;
}

/* A counting sort, which keeps program order. */
static void group_by_register(const ptx_kernel *k, struct ptx_uses *u)
{
    uint32_t *start = u->register_start;
    for (uint32_t i = 0; i < u->count; i++)
        start[u->by_instruction[i].reg]++;
    uint32_t sum = 0;
    for (uint32_t r = 0; r <= k->register_count; r++) {
        sum += start[r];
        start[r] = sum;
    }
    for (uint32_t i = u->count; i-- > 0;)
        u->by_register[--start[u->by_instruction[i].reg]] = u->by_instruction[i];
}

static size_t capacity(const ptx_kernel *k)
{
    return (size_t)k->operand_count + k->code_count;
}

bool ptx_uses_build(ptx_kernel *k, struct ptx_uses *u)
{
    ptx_module *m = k->module;
    size_t bytes = capacity(k) * sizeof *u->by_register;
    *u = (struct ptx_uses){
        .by_instruction = ptx_unset(m, bytes),
        .by_register = ptx_unset(m, bytes),
        .instruction_start = ptx_unset(m, (k->code_count + 1) * sizeof(uint32_t)),
        .register_start = ptx_scratch(m, (k->register_count + 1) * sizeof(uint32_t))};
    if (!u->by_instruction || !u->by_register || !u->instruction_start || !u->register_start) {
        ptx_uses_free(k, u);
        return false;
    }
    collect(k, u);
    group_by_register(k, u);
    return true;
}

void ptx_uses_free(ptx_kernel *k, struct ptx_uses *u)
{
    ptx_module *m = k->module;
    ptx_release(m, u->by_instruction, capacity(k) * sizeof *u->by_instruction);
    ptx_release(m, u->by_register, capacity(k) * sizeof *u->by_register);
    ptx_release(m, u->instruction_start, (k->code_count + 1) * sizeof(uint32_t));
    ptx_release(m, u->register_start, (k->register_count + 1) * sizeof(uint32_t));
}

uint32_t ptx_uses_from(struct ptx_references refs, uint32_t at)
{
    uint32_t low = 0, high = refs.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (refs.list[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool ptx_written_between(const struct ptx_uses *u, uint32_t reg, uint32_t from, uint32_t to)
{
    struct ptx_references refs = ptx_uses_of(u, reg);
    for (uint32_t j = ptx_uses_from(refs, from); j < refs.count && refs.list[j].at < to; j++)
        if (refs.list[j].written)
            return true;
    return false;
}
