/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma reads and writes its registers until a wgmma.wait_group that covers its group, so their
 * names may not be given away before. The group is complete at a wait for all but the N latest
 * groups once more than N were committed since; all instructions on the way there hold the names.
 */
#include "internal.h"

#include <string.h>

enum { MOST_GROUPS = 9 }; /* wait_group takes 0 … 7, so more commits need not be told apart */

struct walk {
    const struct ptx_liveness *l;
    uint16_t *seen;   /* by block: commit counts with which it was entered */
    uint32_t *stack;  /* block × MOST_GROUPS + commits */
    uint32_t depth;
    uint32_t first, last; /* instructions that hold */
};

static void enter(struct walk *w, uint32_t block, unsigned commits)
{
    if (w->seen[block] >> commits & 1)
        return;
    w->seen[block] |= (uint16_t)(1u << commits);
    w->stack[w->depth++] = block * MOST_GROUPS + commits;
}

/* Walks from instruction `at` to the end of its block unless a wait completes the group before. */
static void walk_from(struct walk *w, uint32_t at, unsigned commits)
{
    const ptx_kernel *k = w->l->k;
    const struct ptx_basic_block *block = &w->l->cfg->blocks[w->l->cfg->block_of[at]];
    if (at < w->first)
        w->first = at;
    for (; at < block->end; at++) {
        const struct ptx_instruction *i = &k->code[at];
        if (at > w->last)
            w->last = at;
        if (i->op == PTX_OP_wgmma_commit_group && commits + 1 < MOST_GROUPS)
            commits++;
        if (i->op == PTX_OP_wgmma_wait_group && commits > k->operands[i->first].bits)
            return;
    }
    for (unsigned s = 0; s < block->successor_count; s++)
        enter(w, block->successors[s], commits);
}

static void walk_to_waits(struct walk *w, uint32_t wgmma)
{
    memset(w->seen, 0, w->l->cfg->count * sizeof *w->seen);
    w->first = w->last = wgmma;
    walk_from(w, wgmma, 0);
    while (w->depth) {
        uint32_t state = w->stack[--w->depth];
        walk_from(w, w->l->cfg->blocks[state / MOST_GROUPS].first, state % MOST_GROUPS);
    }
}

static bool is_wgmma(const struct ptx_instruction *i)
{
    return i->op < PTX_OP_COUNT && !strncmp(ptx_op_text(&ptx_ops[i->op]).s, "wgmma.mma_async", 15);
}

static void hold_block(struct walk *w, uint32_t b,
                       void (*hold)(void *ctx, uint32_t reg, uint32_t first, uint32_t last),
                       void *ctx)
{
    const ptx_kernel *k = w->l->k;
    const struct ptx_basic_block *block = &w->l->cfg->blocks[b];
    bool walked = false; /* from a later wgmma of the same group */
    for (uint32_t i = block->end; i-- > block->first;) {
        if (k->code[i].op == PTX_OP_wgmma_commit_group || k->code[i].op == PTX_OP_wgmma_wait_group)
            walked = false;
        if (!is_wgmma(&k->code[i]))
            continue;
        if (!walked)
            walk_to_waits(w, i);
        walked = true;
        struct ptx_references refs = ptx_uses_at(w->l->uses, i);
        for (uint32_t j = 0; j < refs.count; j++)
            hold(ctx, refs.list[j].reg, i < w->first ? i : w->first, w->last);
    }
}

void ptx_hold_asynchronous(const struct ptx_liveness *l,
                           void (*hold)(void *ctx, uint32_t reg, uint32_t first, uint32_t last),
                           void *ctx)
{
    const ptx_kernel *k = l->k;
    bool any = false, possible = k->module->target.suffix; /* base targets have no wgmma */
    for (uint32_t i = 0; possible && i < k->code_count && !any; i++)
        any = is_wgmma(&k->code[i]);
    if (!any)
        return;
    ptx_module *m = k->module;
    size_t states = (size_t)l->cfg->count * MOST_GROUPS;
    struct walk w = {.l = l,
                     .seen = ptx_scratch(m, l->cfg->count * sizeof *w.seen),
                     .stack = ptx_scratch(m, states * sizeof *w.stack)};
    for (uint32_t b = 0; w.seen && w.stack && b < l->cfg->count; b++)
        hold_block(&w, b, hold, ctx);
    ptx_release(m, w.seen, l->cfg->count * sizeof *w.seen);
    ptx_release(m, w.stack, states * sizeof *w.stack);
}
