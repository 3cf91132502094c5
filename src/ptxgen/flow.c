/* SPDX-License-Identifier: Apache-2.0 */
/* Structured control flow over labels. */
#include "internal.h"

/* The emitters used here record the line of this file's caller. */
#undef PTX_HERE
#define PTX_HERE here

enum { OPEN = 0, IN_ELSE = 1, CLOSED = 2 }; /* phases of a block */

static ptx_block open_block(ptx_kernel *k, ptx_source here)
{
    ptx_block b = {.kernel = k, .source = here};
    if (ptx_open(k, "a block opened"))
        k->open_blocks++;
    return b;
}

static void close_block(ptx_block *b)
{
    if (!b->kernel)
        ; /* memory ran out where the module was to be made */
    else if (b->phase == CLOSED)
        ptx_kernel_fail(b->kernel, PTXGEN_ERROR_STRUCTURE,
                        "the block opened at %s:%d is closed twice", b->source.file,
                        b->source.line);
    else if (b->kernel->open_blocks)
        b->kernel->open_blocks--;
    b->phase = CLOSED;
}

static void bind(ptx_kernel *k, ptx_source here, ptx_operand label)
{
    ptx_label_bind_at(k, here, (ptx_label){label});
}

/* Structured control flow branches by its own conditions, so no other guard may stand. */
static bool free_of_guards(ptx_kernel *k, ptx_source here)
{
    if (k && k->guarded)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE,
                        "structured control flow inside ptx_guarded, at %s:%d", here.file,
                        here.line);
    return !ptx_failed(k);
}

static bool is_predicate(ptx_kernel *k, ptx_source here, ptx_operand o)
{
    bool good = o.kind == PTX_OPERAND_REGISTER && o.reserved == k->owner &&
                o.index < k->register_count && k->registers[o.index].type == PTX_PRED;
    if (!good)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND,
                        "the condition at %s:%d is not a predicate register of this kernel",
                        here.file, here.line);
    return !ptx_failed(k);
}

static void branch(ptx_kernel *k, ptx_source here, ptx_operand label, ptx_pred condition,
                   bool negate)
{
    if (ptx_failed(k) || !free_of_guards(k, here) || !is_predicate(k, here, condition.o))
        return;
    k->guarded = negate ? '-' : '+';
    k->guard = condition.o.index;
    ptx_bra(k, (ptx_label){label});
    k->guarded = 0;
}

/* ---- if ---- */

ptx_block ptx_if_begin(ptx_kernel *k, ptx_source here, ptx_pred condition, bool negate)
{
    ptx_block b = open_block(k, here);
    b.tail = ptx_label_new(k, "endif").o;
    branch(k, here, b.tail, condition, !negate);
    return b;
}

void ptx_if_end(ptx_block *b)
{
    if (!b)
        return;
    free_of_guards(b->kernel, b->source);
    bind(b->kernel, b->source, b->tail);
    close_block(b);
}

void ptx_if_else_next(ptx_block *b)
{
    if (!b)
        return;
    if (b->phase != OPEN) {
        ptx_if_end(b);
        return;
    }
    ptx_kernel *k = b->kernel;
    ptx_source here = b->source;
    ptx_operand end = ptx_label_new(k, "endif").o;
    if (free_of_guards(k, here))
        ptx_bra(k, (ptx_label){end});
    bind(k, here, b->tail);
    b->tail = end;
    b->phase = IN_ELSE;
}

/* ---- loops ---- */

ptx_block ptx_for_begin(ptx_kernel *k, ptx_source here, ptx_u32 counter, ptx_u32 limit,
                        ptx_u32 step)
{
    ptx_block b = open_block(k, here);
    b.head = ptx_label_new(k, "for").o;
    b.tail = ptx_label_new(k, "endfor").o;
    b.counter = counter.o;
    b.limit = limit.o;
    b.step = step.o;
    if (!ptx_failed(k) && step.o.kind == PTX_OPERAND_IMMEDIATE && !step.o.bits)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND, "the ptx_for at %s:%d has step 0", here.file,
                        here.line);
    /* Tested before the first turn, then at the bottom: one branch a turn. */
    if (free_of_guards(k, here))
        branch(k, here, b.tail, ptx_setp_ge_u32(k, counter, limit), false);
    bind(k, here, b.head);
    return b;
}

void ptx_for_end(ptx_block *b)
{
    if (!b)
        return;
    ptx_kernel *k = b->kernel;
    ptx_source here = b->source;
    ptx_u32 counter = {b->counter}, step = {b->step}, limit = {b->limit};
    if (free_of_guards(k, here)) {
        ptx_add_u32_to(k, counter, counter, step);
        branch(k, here, b->head, ptx_setp_lt_u32(k, counter, limit), false);
    }
    bind(k, here, b->tail);
    close_block(b);
}

ptx_block ptx_loop_begin(ptx_kernel *k, ptx_source here)
{
    ptx_block b = open_block(k, here);
    b.head = ptx_label_new(k, "loop").o;
    b.tail = ptx_label_new(k, "endloop").o;
    free_of_guards(k, here);
    bind(k, here, b.head);
    return b;
}

void ptx_loop_break_if_at(ptx_block *b, ptx_source here, ptx_pred condition, bool negate)
{
    if (!b)
        return;
    if (b->phase == CLOSED)
        ptx_kernel_fail(b->kernel, PTXGEN_ERROR_STRUCTURE,
                        "a break at %s:%d from the loop of line %d, which has ended", here.file,
                        here.line, b->source.line);
    branch(b->kernel, here, b->tail, condition, negate);
}

void ptx_loop_end(ptx_block *b)
{
    if (!b)
        return;
    ptx_source here = b->source;
    if (free_of_guards(b->kernel, here))
        ptx_bra(b->kernel, (ptx_label){b->head});
    bind(b->kernel, here, b->tail);
    close_block(b);
}

/* ---- guards ---- */

ptx_block ptx_guard_begin(ptx_kernel *k, ptx_source here, ptx_pred guard, bool negate)
{
    ptx_block b = open_block(k, here);
    if (k && k->guarded)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "ptx_guarded inside ptx_guarded, at %s:%d",
                        here.file, here.line);
    if (!ptx_failed(k) && is_predicate(k, here, guard.o)) {
        k->guarded = negate ? '-' : '+';
        k->guard = guard.o.index;
    }
    return b;
}

void ptx_guard_end(ptx_block *b)
{
    if (!b)
        return;
    if (b->kernel)
        b->kernel->guarded = 0;
    close_block(b);
}

void ptx_nounroll_at(ptx_kernel *k, ptx_source here)
{
    ptx_raw_at(k, here, ".pragma \"nounroll\"", 0, NULL, 0, 0);
}
