/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies read before any wait. Shared addresses are traced to the buffer they came
 * from; a load from a buffer into which a copy was issued is an error when some path from the
 * kernel's entry leads there without a wait that can cover a copy. (Whether a wait covers the right
 * stage of a pipeline depends on run-time values: the emulator checks that.)
 *
 * Two passes. The first walks all paths and takes every wait at its word. The second walks the
 * paths without a backward branch, on which the number of committed groups is often known: a
 * cp.async.wait_group N behind at most N groups waits for nothing.
 *
 * Bulk copies, and copies that signal an mbarrier, are waited for by one thread on behalf of
 * others; so a barrier ends the concern for them.
 */
#include "internal.h"

#include <string.h>

enum { UNKNOWN = -1 };

/* What is under way at a place, on some path without a wait. */
struct copies {
    bool reached;           /* there is such a path */
    uint64_t own, delegated; /* buffers written: the thread itself must wait, or another may */
    int32_t groups;         /* committed by the thread so far, or UNKNOWN */
};

struct analysis {
    ptx_kernel *k;
    const struct ptx_cfg *cfg;
    const struct ptx_uses *uses;
    bool signals;      /* copies may complete at an mbarrier */
    uint64_t *origin;  /* by register: the buffers (modulo 64) it may point into */
    uint32_t *stack;   /* registers whose origin grew, each once: its readers are to be told */
    uint8_t *stacked;  /* by register */
    uint32_t depth;
    uint32_t *steps;      /* the instructions that matter to copies, in program order */
    uint32_t *step_start; /* by block, one more than there are */
    struct copies *at_entry;      /* by block */
};

/* ---- which buffers an address may point into ---- */

static uint64_t shared_base(const struct analysis *a, const struct ptx_instruction *i)
{
    const struct ptx_op *op = &ptx_ops[i->op];
    const ptx_operand *o = &a->k->operands[i->first];
    for (unsigned t = 0; t < op->term_count; t++) {
        if (ptx_op_term(op, t)->kind == PTX_TERM_ADDRESS && ptx_op_term(op, t)->space == 's')
            return o->kind == PTX_OPERAND_REGISTER ? a->origin[o->index] : 0;
        o += ptx_term_operands(ptx_op_term(op, t), i->n);
    }
    return 0;
}

/* Adds to the origins of what the instruction writes. */
static void add_origins(struct analysis *a, uint32_t at, uint64_t from)
{
    struct ptx_references refs = ptx_uses_at(a->uses, at);
    for (uint32_t j = 0; j < refs.count; j++) {
        uint32_t reg = refs.list[j].reg;
        if (!refs.list[j].written || !(from & ~a->origin[reg]))
            continue;
        a->origin[reg] |= from;
        if (!a->stacked[reg])
            a->stack[a->depth++] = reg;
        a->stacked[reg] = 1;
    }
}

static void trace_origins(struct analysis *a)
{
    for (uint32_t at = 0; at < a->k->code_count; at++)
        if (a->k->code[at].op == PTX_PSEUDO_SHARED_ADDRESS)
            add_origins(a, at, UINT64_C(1) << (a->k->code[at].n % 64));
    while (a->depth) {
        uint32_t reg = a->stack[--a->depth];
        a->stacked[reg] = 0;
        struct ptx_references refs = ptx_uses_of(a->uses, reg);
        for (uint32_t j = 0; j < refs.count; j++)
            if (refs.list[j].read && (a->k->code[refs.list[j].at].flags & PTX_FLAG_MATH))
                add_origins(a, refs.list[j].at, a->origin[reg]);
    }
}

/* ---- one block ---- */

static bool is_delegated(const struct analysis *a, const struct ptx_instruction *i)
{
    bool bulk = i->op != PTX_OP_cp_async_ca && i->op != PTX_OP_cp_async_cg &&
                i->op != PTX_OP_cp_async_ca_zfill && i->op != PTX_OP_cp_async_cg_zfill;
    return bulk || a->signals;
}

static bool waits_for_nothing(const struct analysis *a, const struct ptx_instruction *i,
                              int32_t groups)
{
    return i->op == PTX_OP_cp_async_wait_group && !i->guarded && groups != UNKNOWN &&
           (uint64_t)groups <= a->k->operands[i->first].bits;
}

static void step(struct analysis *a, uint32_t at, struct copies *c)
{
    const struct ptx_instruction *i = &a->k->code[at];
    uint32_t flags = i->flags;
    if ((flags & PTX_FLAG_CPWAIT) && !waits_for_nothing(a, i, c->groups))
        c->reached = false;
    else if (flags & PTX_FLAG_CPASYNC)
        *(is_delegated(a, i) ? &c->delegated : &c->own) |= shared_base(a, i);
    else if (i->op == PTX_OP_cp_async_commit_group && c->groups != UNKNOWN)
        c->groups = i->guarded ? UNKNOWN : c->groups + 1;
    else if ((flags & (PTX_FLAG_CTABAR | PTX_FLAG_BARN)) || i->op == PTX_OP_barrier_cluster_wait)
        c->delegated = 0;
    else if ((flags & PTX_FLAG_READSH) && (shared_base(a, i) & (c->own | c->delegated)))
        ptx_fail_at(a->k, at, PTXGEN_ERROR_ASYNC,
                    "it reads shared memory that an asynchronous copy writes, on a path that has "
                    "not waited for any copy");
}

static bool matters(const struct ptx_instruction *i)
{
    return (i->flags & (PTX_FLAG_CPWAIT | PTX_FLAG_CPASYNC | PTX_FLAG_CTABAR | PTX_FLAG_BARN |
                        PTX_FLAG_READSH)) ||
           i->op == PTX_OP_cp_async_commit_group || i->op == PTX_OP_barrier_cluster_wait;
}

static void find_steps(struct analysis *a)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < a->cfg->count; b++) {
        a->step_start[b] = count;
        for (uint32_t at = a->cfg->blocks[b].first; at < a->cfg->blocks[b].end; at++)
            if (matters(&a->k->code[at]))
                a->steps[count++] = at;
    }
    a->step_start[a->cfg->count] = count;
}

/* What is under way at the block's end. */
static struct copies walk_block(struct analysis *a, uint32_t b)
{
    struct copies c = a->at_entry[b];
    for (uint32_t j = a->step_start[b]; j < a->step_start[b + 1] && c.reached; j++)
        step(a, a->steps[j], &c);
    return c;
}

/* ---- paths ---- */

static bool merge(struct copies *to, const struct copies *from)
{
    struct copies before = *to;
    to->groups = !before.reached || before.groups == from->groups ? from->groups : UNKNOWN;
    to->reached = true;
    to->own |= from->own;
    to->delegated |= from->delegated;
    return !before.reached || to->own != before.own || to->delegated != before.delegated;
}

static bool walk_once(struct analysis *a, bool forward_only)
{
    bool changed = false;
    for (uint32_t b = 0; b < a->cfg->count && !ptx_failed(a->k); b++) {
        struct copies c = walk_block(a, b);
        const struct ptx_basic_block *block = &a->cfg->blocks[b];
        for (unsigned s = 0; c.reached && s < block->successor_count; s++)
            if (!forward_only || block->successors[s] > b)
                changed = merge(&a->at_entry[block->successors[s]], &c) || changed;
    }
    return changed;
}

static void start(struct analysis *a, int32_t groups)
{
    memset(a->at_entry, 0, a->cfg->count * sizeof *a->at_entry);
    a->at_entry[0] = (struct copies){.reached = true, .groups = groups};
}

static bool uses_op(const ptx_kernel *k, bool (*is)(const struct ptx_instruction *i))
{
    for (uint32_t i = 0; i < k->code_count; i++)
        if (is(&k->code[i]))
            return true;
    return false;
}

static bool copies(const struct ptx_instruction *i)
{
    return i->flags & PTX_FLAG_CPASYNC;
}

static bool signals(const struct ptx_instruction *i)
{
    return i->op == PTX_OP_cp_async_mbarrier_arrive ||
           i->op == PTX_OP_cp_async_mbarrier_arrive_noinc;
}

static void release(struct analysis *a)
{
    ptx_module *m = a->k->module;
    size_t registers = a->k->register_count, blocks = a->cfg->count;
    ptx_release(m, a->origin, registers * sizeof *a->origin);
    ptx_release(m, a->stack, registers * sizeof *a->stack);
    ptx_release(m, a->stacked, registers);
    ptx_release(m, a->steps, a->k->code_count * sizeof *a->steps);
    ptx_release(m, a->step_start, (blocks + 1) * sizeof *a->step_start);
    ptx_release(m, a->at_entry, blocks * sizeof *a->at_entry);
}

static bool prepare(struct analysis *a)
{
    ptx_module *m = a->k->module;
    size_t registers = a->k->register_count, blocks = a->cfg->count;
    a->origin = ptx_scratch(m, registers * sizeof *a->origin);
    a->stack = ptx_unset(m, registers * sizeof *a->stack);
    a->stacked = ptx_scratch(m, registers);
    a->steps = ptx_unset(m, a->k->code_count * sizeof *a->steps);
    a->step_start = ptx_unset(m, (blocks + 1) * sizeof *a->step_start);
    a->at_entry = ptx_unset(m, blocks * sizeof *a->at_entry);
    return a->origin && a->stack && a->stacked && a->steps && a->step_start && a->at_entry;
}

void ptx_check_async(ptx_kernel *k, const struct ptx_cfg *cfg, const struct ptx_uses *uses)
{
    if (!uses_op(k, copies))
        return;
    struct analysis a = {.k = k, .cfg = cfg, .uses = uses, .signals = uses_op(k, signals)};
    if (prepare(&a)) {
        trace_origins(&a);
        find_steps(&a);
        start(&a, UNKNOWN);
        while (walk_once(&a, false))
            continue;
        start(&a, 0);
        walk_once(&a, true);
    }
    release(&a);
}
