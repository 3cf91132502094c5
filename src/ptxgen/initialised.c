/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check that no register is read before it is written on some path from the kernel's entry.
 *
 * Liveness names the suspects: registers live at the entry. For each, a forward pass keeps what is
 * known of predicates on the paths where the register is still unwritten. A write under @p leaves
 * it unwritten only where p is false; the two edges of a branch on p say what p is. A read is in
 * order where that knowledge contradicts its guard, so `ptx_if(p) write … ptx_if(p) read` passes,
 * as do a pair of opposite guarded writes and a value that lives under one guard.
 */
#include "internal.h"

#include <string.h>

enum { MAX_PREDICATES = 32 };

/*
 * Two bits for each predicate followed: "unwritten only where it is true", "… where it is false".
 */
typedef uint64_t facts;
static const facts WRITTEN = UINT64_MAX; /* on every path seen so far */

struct pass {
    struct ptx_liveness *l;
    uint32_t reg;
    uint32_t predicates[MAX_PREDICATES];
    unsigned predicate_count;
    facts *at_entry;  /* by block */
    uint32_t *queue;  /* blocks to visit: a ring of cfg->count */
    uint8_t *queued;
    uint32_t head, waiting;
};

static void push(struct pass *p, uint32_t b)
{
    if (p->queued[b])
        return;
    p->queued[b] = 1;
    p->queue[(p->head + p->waiting++) % p->l->cfg->count] = b;
}

static uint32_t pop(struct pass *p)
{
    uint32_t b = p->queue[p->head];
    p->head = (p->head + 1) % p->l->cfg->count;
    p->waiting--;
    p->queued[b] = 0;
    return b;
}

/* ---- predicates ---- */

static void follow(struct pass *p, uint32_t predicate)
{
    for (unsigned i = 0; i < p->predicate_count; i++)
        if (p->predicates[i] == predicate)
            return;
    if (p->predicate_count < MAX_PREDICATES)
        p->predicates[p->predicate_count++] = predicate;
}

/* The fact that the register is unwritten only where the predicate has this value. */
static facts only_where(const struct pass *p, uint32_t predicate, bool value)
{
    for (unsigned i = 0; i < p->predicate_count; i++)
        if (p->predicates[i] == predicate)
            return (facts)1 << (2 * i + !value);
    return 0;
}

static void choose_predicates(struct pass *p)
{
    const ptx_kernel *k = p->l->k;
    struct ptx_references refs = ptx_uses_of(p->l->uses, p->reg);
    p->predicate_count = 0;
    for (uint32_t j = 0; j < refs.count; j++)
        if (k->code[refs.list[j].at].guarded)
            follow(p, k->code[refs.list[j].at].guard);
    for (uint32_t b = 0; b < p->l->cfg->count; b++) {
        const struct ptx_instruction *last = &k->code[p->l->cfg->blocks[b].end - 1];
        /* One branch alone has nothing to agree with. */
        if (last->guarded && ptx_uses_of(p->l->uses, last->guard).count > 2)
            follow(p, last->guard);
    }
}

/* What is left of the facts after instructions [from, to) may have changed predicates. */
static facts survive(const struct pass *p, facts f, uint32_t from, uint32_t to)
{
    for (unsigned i = 0; i < p->predicate_count && f; i++) {
        facts both = (facts)3 << (2 * i);
        if ((f & both) && ptx_written_between(p->l->uses, p->predicates[i], from, to))
            f &= ~both;
    }
    return f;
}

/* ---- the pass ---- */

static facts assume(const struct pass *p, facts f, uint32_t predicate, bool value)
{
    if (f == WRITTEN || (f & only_where(p, predicate, !value)))
        return WRITTEN;
    return f | only_where(p, predicate, value);
}

static facts step(const struct pass *p, facts f, const struct ptx_reference *r)
{
    ptx_kernel *k = p->l->k;
    const struct ptx_instruction *i = &k->code[r->at];
    facts here = i->guarded ? assume(p, f, i->guard, i->guarded == '+') : f;
    if (r->read && !r->undef_ok && here != WRITTEN) {
        ptx_fail_at(k, r->at, PTXGEN_ERROR_UNINITIALISED,
                    "it reads a register that some path from the kernel's entry never wrote");
        return WRITTEN;
    }
    if (!r->written)
        return f;
    return i->guarded ? assume(p, f, i->guard, i->guarded == '-') : WRITTEN;
}

/* An instruction reads before it writes, whatever the order of its operands. */
static facts step_instruction(const struct pass *p, facts f, const struct ptx_reference *r,
                              uint32_t count)
{
    for (uint32_t j = 0; j < count; j++)
        if (!r[j].written)
            f = step(p, f, &r[j]);
    for (uint32_t j = 0; j < count; j++)
        if (r[j].written)
            f = step(p, f, &r[j]);
    return f;
}

static facts walk_block(const struct pass *p, uint32_t b, facts f)
{
    const struct ptx_basic_block *block = &p->l->cfg->blocks[b];
    struct ptx_references refs = ptx_uses_of(p->l->uses, p->reg);
    uint32_t from = block->first;
    for (uint32_t j = 0, count; j < refs.count && f != WRITTEN; j += count) {
        uint32_t at = refs.list[j].at;
        for (count = 1; j + count < refs.count && refs.list[j + count].at == at;)
            count++;
        if (at < block->first)
            continue;
        if (at >= block->end)
            break;
        f = step_instruction(p, survive(p, f, from, at), &refs.list[j], count);
        from = at;
    }
    return f == WRITTEN ? f : survive(p, f, from, block->end);
}

static void flow(struct pass *p, uint32_t to, facts f)
{
    if (f == WRITTEN || (p->at_entry[to] & f) == p->at_entry[to])
        return;
    p->at_entry[to] &= f;
    push(p, to);
}

static void visit(struct pass *p, uint32_t b)
{
    const struct ptx_basic_block *block = &p->l->cfg->blocks[b];
    const struct ptx_instruction *last = &p->l->k->code[block->end - 1];
    facts f = walk_block(p, b, p->at_entry[b]);
    bool branches = last->flags & PTX_FLAG_BRANCH;
    for (unsigned s = 0; s < block->successor_count; s++) {
        bool taken = branches && s == 0;
        bool conditional = last->guarded && (last->flags & (PTX_FLAG_BRANCH | PTX_FLAG_EXIT));
        flow(p, block->successors[s],
             conditional ? assume(p, f, last->guard, taken == (last->guarded == '+')) : f);
    }
}

static void check_register(struct pass *p)
{
    choose_predicates(p);
    memset(p->at_entry, 0xff, p->l->cfg->count * sizeof *p->at_entry);
    p->at_entry[0] = 0;
    p->head = p->waiting = 0;
    push(p, 0);
    while (p->waiting)
        visit(p, pop(p));
}

/* ---- all registers ---- */

static bool stands_under_one_guard(const struct ptx_liveness *l, uint32_t reg)
{
    struct ptx_references refs = ptx_uses_of(l->uses, reg);
    const struct ptx_instruction *first = &l->k->code[refs.list[0].at];
    for (uint32_t j = 0; j < refs.count; j++) {
        const struct ptx_instruction *i = &l->k->code[refs.list[j].at];
        if (!i->guarded || i->guarded != first->guarded || i->guard != first->guard ||
            refs.list[j].undef_ok)
            return false;
    }
    return true;
}

static void check_suspects(struct pass *p)
{
    struct ptx_liveness *l = p->l;
    bool refined = false;
    for (uint32_t n = 0; n < l->numbered && !ptx_failed(l->k); n++) {
        if (!ptx_has(l->in, n))
            continue;
        p->reg = l->reg[n];
        check_register(p);
        if (stands_under_one_guard(l, p->reg))
            l->predicated[p->reg] = refined = true;
    }
    if (refined)
        ptx_liveness_solve(l);
}

void ptx_check_initialised(struct ptx_liveness *l)
{
    ptx_module *m = l->k->module;
    uint32_t blocks = l->cfg->count;
    struct pass p = {.l = l,
                     .at_entry = ptx_scratch(m, blocks * sizeof *p.at_entry),
                     .queue = ptx_scratch(m, blocks * sizeof *p.queue),
                     .queued = ptx_scratch(m, blocks)};
    if (p.at_entry && p.queue && p.queued)
        check_suspects(&p);
    ptx_release(m, p.at_entry, blocks * sizeof *p.at_entry);
    ptx_release(m, p.queue, blocks * sizeof *p.queue);
    ptx_release(m, p.queued, blocks);
}
