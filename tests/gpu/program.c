/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPERANDS = 32 };

/* ---- the plan ---- */

static bool is_result(const struct ptx_term *t)
{
    return (t->flags & PTX_TERM_WRITTEN) != 0;
}

static void plan_source(struct plan *plan, struct source s)
{
    if (plan->source_count == FORM_SOURCES)
        abort();
    plan->sources[plan->source_count++] = s;
}

static void plan_result(struct plan *plan, uint8_t type)
{
    if (plan->result_count == sizeof plan->results)
        abort();
    plan->results[plan->result_count++] = type;
}

/* The term's results, or else its sources. */
static void plan_term(struct plan *plan, const struct ptx_op *op, unsigned term, bool results)
{
    const struct ptx_term *t = ptx_op_term(op, term);
    unsigned words = t->type == PTX_B128 ? 2 : 1, count = ptx_term_operands(t, 0) * words;
    if (t->kind > PTX_TERM_VECTOR || form_is_mask(op, term) || is_result(t) != results)
        return;
    for (unsigned j = 0; j < count; j++) {
        struct source s = form_source(op, term, j);
        if (words == 2)
            s.type = PTX_U64;
        if (is_result(t))
            plan_result(plan, s.type);
        else
            plan_source(plan, s);
    }
}

/* How often the instruction is executed: once for each way to set the condition code. */
static unsigned runs_of(const struct plan *plan)
{
    return plan->carries_in ? 2 : 1;
}

void plan_make(const struct form *f, struct plan *plan)
{
    const struct ptx_op *op = &ptx_ops[f->op];
    *plan = (struct plan){.space = form_space(op), .memory = form_memory(op)};
    for (unsigned t = 0; t < op->term_count; t++)
        plan_term(plan, op, t, false);
    plan->carries_in =
        form_starts(op, "addc_") || form_starts(op, "subc_") || form_starts(op, "madc_");
    plan->carries_out = strstr(ptx_op_name(op).s, "_cc_") != NULL;
    if (plan->carries_in)
        plan_source(plan, (struct source){.type = PTX_PRED});
    for (unsigned run = 0; run < runs_of(plan); run++) {
        for (unsigned t = 0; t < op->term_count; t++)
            plan_term(plan, op, t, true);
        for (unsigned i = 0; plan->carries_out && i < 2; i++)
            plan_result(plan, PTX_U32);
    }
}

/* ---- the kernel ---- */

struct program {
    ptx_kernel *k;
    struct plan plan;
    ptx_u64 sources[FORM_SOURCES]; /* addresses of the thread's words */
    unsigned taken;
    ptx_u64 out, line;
    ptx_param block;
    ptx_u32 shared;
    ptx_u64 local;
};

static ptx_u64 word_address(struct program *p, ptx_u64 base, ptx_u32 thread, unsigned stride)
{
    return ptx_add_u64(p->k, base, ptx_mul_wide_u32(p->k, thread, ptx_imm_u32(stride)));
}

static ptx_operand load_bits(struct program *p, uint8_t type)
{
    ptx_u64 address = p->sources[p->taken++];
    switch (ptx_class_of((ptx_type)type)) {
    case PTX_CLASS_PRED:
        return ptx_setp_ne_u32(p->k, ptx_ld_global_u32(p->k, address, 0), ptx_imm_u32(0)).o;
    case PTX_CLASS_16: return ptx_ld_global_u16(p->k, address, 0).o;
    case PTX_CLASS_32: return ptx_ld_global_u32(p->k, address, 0).o;
    default: return ptx_ld_global_u64(p->k, address, 0).o;
    }
}

static ptx_operand load_operand(struct program *p, uint8_t type)
{
    ptx_operand o;
    if (type == PTX_B128) {
        ptx_u64 halves[2];
        halves[0].o = load_bits(p, PTX_U64);
        halves[1].o = load_bits(p, PTX_U64);
        o = ptx_pack_b128(p->k, halves).o;
    } else {
        o = load_bits(p, type);
    }
    o.type = type;
    return o;
}

static void store_word(struct program *p, unsigned *word, ptx_u64 value)
{
    ptx_st_global_u64(p->k, p->out, (int32_t)(8 * (*word)++), value);
}

static void store_result(struct program *p, unsigned *word, ptx_operand o)
{
    ptx_kernel *k = p->k;
    enum ptx_class c = ptx_class_of((ptx_type)o.type);
    int32_t at = (int32_t)(8 * *word);
    if (c == PTX_CLASS_128) {
        ptx_u64 halves[2] = {{{0}}};
        ptx_unpack_b128(k, halves, (ptx_b128){o});
        store_word(p, word, halves[0]);
        store_word(p, word, halves[1]);
        return;
    }
    if (c == PTX_CLASS_PRED)
        ptx_st_global_u32(k, p->out, at,
                          ptx_selp_u32(k, ptx_imm_u32(1), ptx_imm_u32(0), (ptx_pred){o}));
    o.type = c == PTX_CLASS_16 ? PTX_U16 : c == PTX_CLASS_32 ? PTX_U32 : PTX_U64;
    if (c == PTX_CLASS_16)
        ptx_st_global_u16(k, p->out, at, (ptx_u16){o});
    if (c == PTX_CLASS_32)
        ptx_st_global_u32(k, p->out, at, (ptx_u32){o});
    if (c == PTX_CLASS_64)
        ptx_st_global_u64(k, p->out, at, (ptx_u64){o});
    (*word)++;
}

/* Copies the line to the instruction's space, or back. */
static void copy_line(struct program *p, bool back)
{
    ptx_kernel *k = p->k;
    for (int at = 0; at < FORM_LINE; at += 8) {
        bool local = p->plan.space == 'l';
        if (!back) {
            ptx_u64 v = ptx_ld_global_u64(k, p->line, at);
            if (local)
                ptx_st_local_u64(k, p->local, at, v);
            else
                ptx_st_shared_u64(k, p->shared, at, v);
        } else {
            ptx_u64 v =
                local ? ptx_ld_local_u64(k, p->local, at) : ptx_ld_shared_u64(k, p->shared, at);
            ptx_st_global_u64(k, p->line, at, v);
        }
    }
}

static void begin(struct program *p, ptx_module *m, const char *name)
{
    ptx_kernel *k = p->k = ptx_kernel_begin(m, name);
    char param[16];
    ptx_u64 bases[FORM_SOURCES];
    ptx_kernel_reqntid(k, FORM_THREADS, 1, 1);
    p->out = ptx_param_u64(k, "out");
    p->line = ptx_param_u64(k, "memory");
    for (unsigned i = 0; i < p->plan.source_count; i++) {
        snprintf(param, sizeof param, "source%u", i);
        bases[i] = ptx_param_u64(k, param);
    }
    p->block = ptx_param_declare(k, "block", FORM_LINE, 16);
    ptx_u32 tid = ptx_sreg_tid_x(k), cta = ptx_sreg_ctaid_x(k);
    ptx_u32 thread = ptx_mad_lo_u32(k, cta, ptx_imm_u32(FORM_THREADS), tid);
    p->out = word_address(p, p->out, thread, FORM_LINE);
    p->line = word_address(p, p->line, thread, FORM_LINE);
    for (unsigned i = 0; i < p->plan.source_count; i++)
        p->sources[i] = word_address(p, bases[i], thread, 8);
    if (p->plan.space == 's') {
        ptx_u32 base = ptx_shared_address(
            k, ptx_shared_declare(k, "lines", FORM_LINE * FORM_THREADS, FORM_LINE));
        p->shared = ptx_mad_lo_u32(k, tid, ptx_imm_u32(FORM_LINE), base);
    }
    if (p->plan.space == 'l')
        p->local = ptx_local_address(k, ptx_local_declare(k, "line", FORM_LINE, FORM_LINE));
}

static ptx_operand constant(int64_t value)
{
    return (ptx_operand){.kind = PTX_OPERAND_IMMEDIATE, .type = PTX_S32, .bits = (uint64_t)value};
}

static unsigned operands_of(struct program *p, const struct form *f, ptx_operand *o)
{
    const struct ptx_op *op = &ptx_ops[f->op];
    unsigned used = 0, constants = 0;
    for (unsigned i = 0; i < op->term_count; i++) {
        const struct ptx_term *t = ptx_op_term(op, i);
        unsigned count = ptx_term_operands(t, 0);
        switch (t->kind) {
        case PTX_TERM_ADDRESS:
            o[used++] = t->space == 's'   ? p->shared.o
                        : t->space == 'l' ? p->local.o
                        : t->space == 'p' ? p->block.o
                                          : p->line.o;
            o[used++] = constant(0);
            break;
        case PTX_TERM_CONST: o[used++] = constant(f->constants[constants++]); break;
        case PTX_TERM_VALUE:
        case PTX_TERM_VECTOR:
            for (unsigned j = 0; j < count; j++)
                o[used++] = is_result(t) ? (ptx_operand){.kind = PTX_OPERAND_NONE, .type = t->type}
                            : form_is_mask(op, i) ? ptx_imm_u32(UINT32_MAX).o
                                                  : load_operand(p, t->type);
            break;
        default: break;
        }
    }
    return used;
}

/* Leaves the carry's source in the condition code: as the carry of 1 + −1, or as carry ≥ 1. */
static void carry_in(struct program *p, bool subtracts, ptx_u32 carry)
{
    if (subtracts)
        ptx_sub_cc_u32(p->k, carry, ptx_imm_u32(1));
    else
        ptx_add_cc_u32(p->k, carry, ptx_imm_u32(UINT32_MAX));
}

static void store_results(struct program *p, const struct form *f, const ptx_operand *o,
                          unsigned *word)
{
    const struct ptx_op *op = &ptx_ops[f->op];
    for (unsigned i = 0; i < op->term_count; i++) {
        unsigned count = ptx_term_operands(ptx_op_term(op, i), 0);
        for (unsigned j = 0; j < count && is_result(ptx_op_term(op, i)); j++)
            store_result(p, word, o[j]);
        o += count;
    }
}

/* What addc and subc make of the condition code; neither changes it. */
static void store_carries(struct program *p, ptx_u32 added, ptx_u32 subtracted, unsigned *word)
{
    store_result(p, word, added.o);
    store_result(p, word, subtracted.o);
}

void program_emit(ptx_module *m, const struct form *f, const char *name)
{
    struct program p = {0};
    const struct ptx_op *op = &ptx_ops[f->op];
    ptx_operand operands[MOST_OPERANDS];
    ptx_u32 in = {{0}}, added = {{0}}, subtracted = {{0}};
    unsigned word = 0;
    plan_make(f, &p.plan);
    bool copies = p.plan.space == 's' || p.plan.space == 'l';
    begin(&p, m, name);
    if (copies)
        copy_line(&p, false);
    unsigned count = operands_of(&p, f, operands);
    if (p.plan.carries_in)
        in = ptx_ld_global_u32(p.k, p.sources[p.plan.source_count - 1], 0);
    if (p.plan.space == 's')
        ptx_bar_sync(p.k, 0);
    for (unsigned run = 0; run < runs_of(&p.plan); run++) {
        ptx_operand of_run[MOST_OPERANDS];
        memcpy(of_run, operands, count * sizeof *operands);
        if (p.plan.carries_in)
            carry_in(&p, run == 1, in);
        ptx_emit(p.k, f->op, f->modifiers, 0, of_run, count, PTX_HERE);
        if (p.plan.carries_out) {
            added = ptx_addc_u32(p.k, ptx_imm_u32(0), ptx_imm_u32(0));
            subtracted = ptx_subc_u32(p.k, ptx_imm_u32(0), ptx_imm_u32(0));
        }
        if (op->flags & PTX_FLAG_CPASYNC)
            ptx_cp_async_wait_all(p.k);
        if (p.plan.space == 's')
            ptx_bar_sync(p.k, 0);
        store_results(&p, f, of_run, &word);
        if (p.plan.carries_out)
            store_carries(&p, added, subtracted, &word);
    }
    if (copies)
        copy_line(&p, true);
    ptx_ret(p.k);
    ptx_kernel_end(p.k);
}
