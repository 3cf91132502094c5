/* SPDX-License-Identifier: Apache-2.0 */
/* Structured control flow over labels. */
#include "internal.h"

/* The emitters used here record the line of this file's caller. */
#undef PTX_HERE
#define PTX_HERE here

enum { OPEN = 0, IN_ELSE = 1, CLOSED = 2 }; /* phases of a block */
enum { IF = 1, FOR, LOOP, GUARD };          /* its kinds */

/* ---- blocks ---- */

/* The open blocks of a kernel are a chain: the kernel knows the innermost, each knows its outer. */
static ptx_block open_block(ptx_kernel *k, ptx_source here, int kind)
{
    ptx_block b = {.kernel = k, .source = here, .kind = kind};
    if (ptx_open(k, "a block opened")) {
        b.number = ++k->blocks;
        b.outer_number = k->innermost;
        b.outer = k->innermost_source;
        k->innermost = b.number;
        k->innermost_source = here;
        k->open_blocks++;
    }
    return b;
}

/* Whether the block is the innermost open one, and of this kind: the one that may go on or end. */
static bool is_innermost(const ptx_block *b, int kind)
{
    static const char *const names[] = {"block", "if", "for", "loop", "guard"};
    ptx_kernel *k = b->kernel;
    const char *file = ptx_file_name(b->source.file);
    if (ptx_failed(k))
        return false;
    if (b->phase == CLOSED || b->number > k->innermost)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "the block opened at %s:%d is closed twice",
                        file, b->source.line);
    else if (b->kind != kind)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "the %s opened at %s:%d is closed as a %s",
                        names[b->kind], file, b->source.line, names[kind]);
    else if (b->number < k->innermost)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE,
                        "the block opened at %s:%d is closed while the one opened at %s:%d is open",
                        file, b->source.line,
                        ptx_file_name(k->innermost_source.file), k->innermost_source.line);
    return !ptx_failed(k);
}

static void close_block(ptx_block *b)
{
    ptx_kernel *k = b->kernel;
    b->phase = CLOSED;
    if (ptx_failed(k))
        return;
    k->innermost = b->outer_number;
    k->innermost_source = b->outer;
    k->open_blocks--;
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
                        "structured control flow inside ptx_guarded, at %s:%d",
                        ptx_file_name(here.file),
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
                        ptx_file_name(here.file), here.line);
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
    ptx_block b = open_block(k, here, IF);
    b.tail = ptx_label_new(k, "endif").o;
    branch(k, here, b.tail, condition, !negate);
    return b;
}

void ptx_if_end(ptx_block *b)
{
    if (!b)
        return;
    if (is_innermost(b, IF))
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
    b->phase = IN_ELSE;
    if (!is_innermost(b, IF))
        return;
    ptx_operand end = ptx_label_new(k, "endif").o;
    ptx_bra(k, (ptx_label){end});
    bind(k, here, b->tail);
    b->tail = end;
}

/* ---- loops ---- */

ptx_block ptx_for_begin(ptx_kernel *k, ptx_source here, ptx_u32 counter, ptx_u32 limit,
                        ptx_u32 step)
{
    ptx_block b = open_block(k, here, FOR);
    b.head = ptx_label_new(k, "for").o;
    b.tail = ptx_label_new(k, "endfor").o;
    b.counter = counter.o;
    b.limit = limit.o;
    b.step = step.o;
    if (!ptx_failed(k) && step.o.kind == PTX_OPERAND_IMMEDIATE && !step.o.bits)
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND, "the ptx_for at %s:%d has step 0",
                        ptx_file_name(here.file),
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
    if (is_innermost(b, FOR)) {
        ptx_add_u32_to(k, counter, counter, step);
        branch(k, here, b->head, ptx_setp_lt_u32(k, counter, limit), false);
        bind(k, here, b->tail);
    }
    close_block(b);
}

ptx_block ptx_loop_begin(ptx_kernel *k, ptx_source here)
{
    ptx_block b = open_block(k, here, LOOP);
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
    ptx_kernel *k = b->kernel;
    if (!ptx_failed(k) && b->kind != LOOP && b->kind != FOR)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE,
                        "a break at %s:%d from the block of line %d, which is no loop",
                        ptx_file_name(here.file),
                        here.line, b->source.line);
    if (!ptx_failed(k) && (b->phase == CLOSED || k->labels[b->tail.index].bound))
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE,
                        "a break at %s:%d from the loop of line %d, which has ended",
                        ptx_file_name(here.file),
                        here.line, b->source.line);
    branch(k, here, b->tail, condition, negate);
}

void ptx_loop_end(ptx_block *b)
{
    if (!b)
        return;
    ptx_source here = b->source;
    if (is_innermost(b, LOOP)) {
        ptx_bra(b->kernel, (ptx_label){b->head});
        bind(b->kernel, here, b->tail);
    }
    close_block(b);
}

/* ---- guards ---- */

ptx_block ptx_guard_begin(ptx_kernel *k, ptx_source here, ptx_pred guard, bool negate)
{
    ptx_block b = open_block(k, here, GUARD);
    if (k && k->guarded)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "ptx_guarded inside ptx_guarded, at %s:%d",
                        ptx_file_name(here.file), here.line);
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
    if (is_innermost(b, GUARD))
        b->kernel->guarded = 0;
    close_block(b);
}

void ptx_nounroll_at(ptx_kernel *k, ptx_source here)
{
    ptx_raw_at(k, here, ".pragma \"nounroll\"", 0, NULL, 0, 0);
}
