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
    struct copies *at_entry; /* by block */
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

static bool trace_instruction(struct analysis *a, uint32_t at)
{
    const struct ptx_instruction *i = &a->k->code[at];
    struct ptx_references refs = ptx_uses_at(a->uses, at);
    uint64_t from = 0;
    bool changed = false;
    if (i->op == PTX_PSEUDO_SHARED_ADDRESS)
        from = UINT64_C(1) << (i->n % 64);
    else if (ptx_flags(i) & PTX_FLAG_MATH)
        for (uint32_t j = 0; j < refs.count; j++)
            from |= refs.list[j].read ? a->origin[refs.list[j].reg] : 0;
    for (uint32_t j = 0; from && j < refs.count; j++)
        if (refs.list[j].written && (from & ~a->origin[refs.list[j].reg])) {
            a->origin[refs.list[j].reg] |= from;
            changed = true;
        }
    return changed;
}

static void trace_origins(struct analysis *a)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t at = 0; at < a->k->code_count; at++)
            changed = trace_instruction(a, at) || changed;
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
    uint32_t flags = ptx_flags(i);
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

/* What is under way at the block's end. */
static struct copies walk_block(struct analysis *a, uint32_t b)
{
    struct copies c = a->at_entry[b];
    for (uint32_t at = a->cfg->blocks[b].first; at < a->cfg->blocks[b].end && c.reached; at++)
        step(a, at, &c);
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
    return ptx_flags(i) & PTX_FLAG_CPASYNC;
}

static bool signals(const struct ptx_instruction *i)
{
    return i->op == PTX_OP_cp_async_mbarrier_arrive ||
           i->op == PTX_OP_cp_async_mbarrier_arrive_noinc;
}

void ptx_check_async(ptx_kernel *k, const struct ptx_cfg *cfg, const struct ptx_uses *uses)
{
    if (!uses_op(k, copies))
        return;
    ptx_module *m = k->module;
    struct analysis a = {.k = k,
                         .cfg = cfg,
                         .uses = uses,
                         .signals = uses_op(k, signals),
                         .origin = ptx_scratch(m, k->register_count * sizeof *a.origin),
                         .at_entry = ptx_scratch(m, cfg->count * sizeof *a.at_entry)};
    if (a.origin && a.at_entry) {
        trace_origins(&a);
        start(&a, UNKNOWN);
        while (walk_once(&a, false))
            continue;
        start(&a, 0);
        walk_once(&a, true);
    }
    ptx_release(m, a.origin, k->register_count * sizeof *a.origin);
    ptx_release(m, a.at_entry, cfg->count * sizeof *a.at_entry);
}
