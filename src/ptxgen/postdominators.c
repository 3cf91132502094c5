/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Immediate postdominators, by the iteration of Cooper, Harvey and Kennedy ("A simple, fast
 * dominance algorithm") on the reversed graph. One node more than there are blocks stands for the
 * kernel's exit.
 */
#include "internal.h"

struct pass {
    const struct ptx_cfg *cfg;
    uint32_t *ipdom;
    uint32_t *predecessor_start, *predecessors;
    uint32_t *order; /* nodes in postorder of the reversed graph */
    uint32_t *rank;  /* by node: 1 + place in that order, 0 when the exit cannot be reached */
    uint32_t *stack, *next;
};

unsigned ptx_cfg_successors(const struct ptx_cfg *cfg, uint32_t b, uint32_t out[3])
{
    const struct ptx_basic_block *block = &cfg->blocks[b];
    unsigned count = 0;
    for (; count < block->successor_count; count++)
        out[count] = block->successors[count];
    if (block->exits || !count)
        out[count++] = cfg->count;
    return count;
}

static void find_predecessors(struct pass *p)
{
    uint32_t to[3];
    for (uint32_t b = 0; b < p->cfg->count; b++)
        for (unsigned s = ptx_cfg_successors(p->cfg, b, to); s-- > 0;)
            p->predecessor_start[to[s]]++;
    for (uint32_t n = 1; n <= p->cfg->count + 1; n++)
        p->predecessor_start[n] += p->predecessor_start[n - 1];
    for (uint32_t b = p->cfg->count; b-- > 0;)
        for (unsigned s = ptx_cfg_successors(p->cfg, b, to); s-- > 0;)
            p->predecessors[--p->predecessor_start[to[s]]] = b;
}

/* Depth first from the exit against the edges; returns how many nodes it reached. */
static uint32_t number_nodes(struct pass *p)
{
    uint32_t depth = 0, ranked = 0;
    p->stack[depth++] = p->cfg->count;
    p->rank[p->cfg->count] = UINT32_MAX; /* entered */
    while (depth) {
        uint32_t n = p->stack[depth - 1];
        uint32_t i = p->predecessor_start[n] + p->next[n];
        if (i == p->predecessor_start[n + 1]) {
            p->order[ranked] = n;
            p->rank[n] = ++ranked;
            depth--;
            continue;
        }
        p->next[n]++;
        if (!p->rank[p->predecessors[i]]) {
            p->rank[p->predecessors[i]] = UINT32_MAX;
            p->stack[depth++] = p->predecessors[i];
        }
    }
    return ranked;
}

static uint32_t meet(const struct pass *p, uint32_t a, uint32_t b)
{
    while (a != b) {
        while (p->rank[a] < p->rank[b])
            a = p->ipdom[a];
        while (p->rank[b] < p->rank[a])
            b = p->ipdom[b];
    }
    return a;
}

static void solve(struct pass *p, uint32_t ranked)
{
    uint32_t exit_node = p->cfg->count, to[3];
    for (uint32_t n = 0; n <= exit_node; n++)
        p->ipdom[n] = PTX_NO_BLOCK;
    p->ipdom[exit_node] = exit_node;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = ranked - 1; i-- > 0;) { /* the last is the exit itself */
            uint32_t b = p->order[i], now = PTX_NO_BLOCK;
            for (unsigned s = ptx_cfg_successors(p->cfg, b, to); s-- > 0;)
                if (p->ipdom[to[s]] != PTX_NO_BLOCK)
                    now = now == PTX_NO_BLOCK ? to[s] : meet(p, to[s], now);
            changed = changed || now != p->ipdom[b];
            p->ipdom[b] = now;
        }
    }
}

bool ptx_find_postdominators(ptx_kernel *k, const struct ptx_cfg *cfg, uint32_t *ipdom)
{
    ptx_module *m = k->module;
    size_t nodes = (size_t)cfg->count + 1, bytes = (nodes + 1) * sizeof(uint32_t);
    struct pass p = {.cfg = cfg,
                     .ipdom = ipdom,
                     .predecessor_start = ptx_scratch(m, bytes),
                     .predecessors = ptx_scratch(m, 3 * bytes),
                     .order = ptx_scratch(m, bytes),
                     .rank = ptx_scratch(m, bytes),
                     .stack = ptx_scratch(m, bytes),
                     .next = ptx_scratch(m, bytes)};
    bool memory = p.predecessor_start && p.predecessors && p.order && p.rank && p.stack && p.next;
    if (memory) {
        find_predecessors(&p);
        solve(&p, number_nodes(&p));
    }
    ptx_release(m, p.predecessor_start, bytes);
    ptx_release(m, p.predecessors, 3 * bytes);
    ptx_release(m, p.order, bytes);
    ptx_release(m, p.rank, bytes);
    ptx_release(m, p.stack, bytes);
    ptx_release(m, p.next, bytes);
    return memory;
}
