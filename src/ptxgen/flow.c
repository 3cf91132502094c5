/* SPDX-License-Identifier: Apache-2.0 */
/* Structured control flow over labels. */
#include "internal.h"

static ptx_operand guard_now(const ptx_kernel *k)
{
    ptx_operand o = {0};
    o.kind = k->guarded;
    o.index = k->guard;
    return o;
}

static void set_guard(ptx_kernel *k, ptx_operand guard)
{
    k->guarded = guard.kind;
    k->guard = guard.index;
}

static ptx_block open_block(ptx_kernel *k)
{
    ptx_block b = {.kernel = k, .guard_before = guard_now(k)};
    k->open_blocks++;
    return b;
}

static void close_block(ptx_block *b)
{
    b->kernel->open_blocks--;
    b->phase = 2;
}

static void branch(ptx_kernel *k, ptx_operand label, ptx_pred condition, bool negate)
{
    ptx_operand before = guard_now(k);
    if (before.kind)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "structured control flow inside ptx_guarded");
    if (condition.o.kind != PTX_OPERAND_REGISTER)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND, "a branch condition must be a predicate register");
    k->guarded = negate ? '-' : '+';
    k->guard = condition.o.index;
    ptx_bra(k, (ptx_label){label});
    set_guard(k, before);
}

ptx_block ptx_if_begin(ptx_kernel *k, ptx_pred condition, bool negate)
{
    ptx_block b = open_block(k);
    b.tail = ptx_label_new(k, "endif").o;
    branch(k, b.tail, condition, !negate);
    return b;
}

void ptx_if_end(ptx_block *b)
{
    ptx_label_bind(b->kernel, (ptx_label){b->tail});
    close_block(b);
}

void ptx_if_else_next(ptx_block *b)
{
    if (b->phase == 0) {
        ptx_operand end = ptx_label_new(b->kernel, "endif").o;
        ptx_bra(b->kernel, (ptx_label){end});
        ptx_label_bind(b->kernel, (ptx_label){b->tail});
        b->tail = end;
        b->phase = 1;
    } else
        ptx_if_end(b);
}

ptx_block ptx_for_begin(ptx_kernel *k, ptx_u32 counter, ptx_u32 limit, ptx_u32 step)
{
    ptx_block b = open_block(k);
    b.head = ptx_label_new(k, "for").o;
    b.tail = ptx_label_new(k, "endfor").o;
    b.counter = counter.o;
    b.step = step.o;
    b.guard = limit.o;
    /* Tested before the first turn, then at the bottom: one branch a turn. */
    branch(k, b.tail, ptx_setp_ge_u32(k, counter, limit), false);
    ptx_label_bind(k, (ptx_label){b.head});
    return b;
}

void ptx_for_end(ptx_block *b)
{
    ptx_kernel *k = b->kernel;
    ptx_u32 counter = {b->counter}, step = {b->step}, limit = {b->guard};
    ptx_add_u32_to(k, counter, counter, step);
    branch(k, b->head, ptx_setp_lt_u32(k, counter, limit), false);
    ptx_label_bind(k, (ptx_label){b->tail});
    close_block(b);
}

ptx_block ptx_loop_begin(ptx_kernel *k)
{
    ptx_block b = open_block(k);
    b.head = ptx_label_new(k, "loop").o;
    b.tail = ptx_label_new(k, "endloop").o;
    ptx_label_bind(k, (ptx_label){b.head});
    return b;
}

void ptx_loop_break_if(ptx_block *b, ptx_pred condition, bool negate)
{
    branch(b->kernel, b->tail, condition, negate);
}

void ptx_loop_end(ptx_block *b)
{
    ptx_bra(b->kernel, (ptx_label){b->head});
    ptx_label_bind(b->kernel, (ptx_label){b->tail});
    close_block(b);
}

ptx_block ptx_guard_begin(ptx_kernel *k, ptx_pred guard, bool negate)
{
    ptx_block b = open_block(k);
    if (k->guarded)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "ptx_guarded inside ptx_guarded");
    if (guard.o.kind != PTX_OPERAND_REGISTER)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND, "a guard must be a predicate register");
    k->guarded = negate ? '-' : '+';
    k->guard = guard.o.index;
    return b;
}

void ptx_guard_end(ptx_block *b)
{
    set_guard(b->kernel, b->guard_before);
    close_block(b);
}
