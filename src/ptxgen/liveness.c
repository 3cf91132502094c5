/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Liveness over the control-flow graph.
 *
 * A guarded write leaves the old value where its guard is false, so it does not end a live range,
 * unless (a) the write of the register just before it stands under the opposite guard, or (b) all
 * that touches the register stands under that one guard.
 */
#include "internal.h"

#include <string.h>

static uint64_t *set_of(const struct ptx_liveness *l, uint64_t *sets, uint32_t block)
{
    return sets + block * l->words;
}

/* ---- rule (a) ---- */

uint32_t ptx_opposite_write(const struct ptx_liveness *l, uint32_t reg, uint32_t at)
{
    struct ptx_references refs = ptx_uses_of(l->uses, reg);
    uint32_t j = ptx_uses_from(refs, at);
    while (j && !refs.list[j - 1].written)
        j--;
    if (!j)
        return PTX_NO_WRITE;
    uint32_t before = refs.list[j - 1].at;
    const struct ptx_instruction *mine = &l->k->code[at], *other = &l->k->code[before];
    bool opposite = other->guarded && other->guard == mine->guard &&
                    other->guarded != mine->guarded &&
                    l->cfg->block_of[before] == l->cfg->block_of[at] &&
                    !ptx_written_between(l->uses, mine->guard, before, at);
    return opposite ? before : PTX_NO_WRITE;
}

/*
 * An instruction completes when each register that it writes was written under the opposite guard.
 */
static void find_completing_writes(struct ptx_liveness *l)
{
    for (uint32_t at = 0; at < l->k->code_count; at++) {
        if (!l->k->code[at].guarded)
            continue;
        struct ptx_references refs = ptx_uses_at(l->uses, at);
        bool writes = false, completes = true;
        for (uint32_t j = 0; j < refs.count && completes; j++)
            if (refs.list[j].written) {
                writes = true;
                completes = ptx_opposite_write(l, refs.list[j].reg, at) != PTX_NO_WRITE;
            }
        l->completes[at] = writes && completes;
    }
}

/* ---- rule (b) within a block; ptx_check_initialised extends it over blocks ---- */

static bool is_predicated_in_block(const struct ptx_liveness *l, struct ptx_references refs)
{
    if (!refs.count)
        return false;
    const struct ptx_reference *first = &refs.list[0], *last = &refs.list[refs.count - 1];
    const struct ptx_instruction *i = &l->k->code[first->at];
    if (!i->guarded || ptx_written_between(l->uses, i->guard, first->at, last->at))
        return false;
    for (uint32_t j = 0; j < refs.count; j++) {
        const struct ptx_instruction *here = &l->k->code[refs.list[j].at];
        bool read_first = refs.list[j].read && refs.list[j].at == first->at;
        if (here->guarded != i->guarded || here->guard != i->guard || read_first)
            return false;
    }
    return l->cfg->block_of[first->at] == l->cfg->block_of[last->at];
}

/* ---- numbering ---- */

/* Whether the register is written, wholly and before it is read, in the only block that has it. */
static bool stays_in_block(const struct ptx_liveness *l, struct ptx_references refs)
{
    bool killed = false;
    uint32_t first = refs.count ? refs.list[0].at : 0;
    for (uint32_t j = 0; j < refs.count && refs.list[j].at == first; j++) {
        if (refs.list[j].read)
            return false;
        killed = killed || ptx_kills(l, &refs.list[j]);
    }
    return !refs.count ||
           (killed && l->cfg->block_of[first] == l->cfg->block_of[refs.list[refs.count - 1].at]);
}

static void number_registers(struct ptx_liveness *l)
{
    for (uint32_t r = 0; r < l->k->register_count; r++) {
        struct ptx_references refs = ptx_uses_of(l->uses, r);
        l->predicated[r] = is_predicated_in_block(l, refs);
        if (stays_in_block(l, refs))
            continue;
        l->reg[l->numbered] = r;
        l->number[r] = ++l->numbered;
    }
    l->words = (l->numbered + 63) / 64;
}

/* ---- the equations ---- */

/* Puts register number n into the sets of the blocks that read it first or write it wholly. */
static void summarise_register(struct ptx_liveness *l, uint32_t n)
{
    struct ptx_references refs = ptx_uses_of(l->uses, l->reg[n]);
    for (uint32_t j = 0; j < refs.count;) {
        uint32_t b = l->cfg->block_of[refs.list[j].at], end = l->cfg->blocks[b].end;
        bool killed = false, read_first = false;
        while (j < refs.count && refs.list[j].at < end) {
            bool kills = false; /* after all of the instruction's reads */
            for (uint32_t at = refs.list[j].at; j < refs.count && refs.list[j].at == at; j++) {
                read_first = read_first || (refs.list[j].read && !killed);
                kills = kills || ptx_kills(l, &refs.list[j]);
            }
            killed = killed || kills;
        }
        if (read_first)
            ptx_put(set_of(l, l->gen, b), n);
        if (killed)
            ptx_put(set_of(l, l->kill, b), n);
    }
}

static bool update_block(struct ptx_liveness *l, uint32_t b)
{
    const struct ptx_basic_block *block = &l->cfg->blocks[b];
    uint64_t *out = set_of(l, l->out, b), *in = set_of(l, l->in, b);
    const uint64_t *gen = set_of(l, l->gen, b), *kill = set_of(l, l->kill, b);
    bool changed = false;
    for (unsigned s = 0; s < block->successor_count; s++) {
        const uint64_t *next = set_of(l, l->in, block->successors[s]);
        for (size_t w = 0; w < l->words; w++)
            out[w] |= next[w];
    }
    for (size_t w = 0; w < l->words; w++) {
        uint64_t now = gen[w] | (out[w] & ~kill[w]);
        changed = changed || now != in[w];
        in[w] = now;
    }
    return changed;
}

void ptx_liveness_solve(struct ptx_liveness *l)
{
    size_t bytes = l->cfg->count * l->words * sizeof *l->in;
    memset(l->in, 0, bytes);
    memset(l->out, 0, bytes);
    memset(l->gen, 0, bytes);
    memset(l->kill, 0, bytes);
    for (uint32_t n = 0; n < l->numbered; n++)
        summarise_register(l, n);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = l->cfg->count; b-- > 0;)
            changed = update_block(l, b) || changed;
    }
}

/* ---- life ---- */

static bool allocate_sets(struct ptx_liveness *l)
{
    ptx_module *m = l->k->module;
    size_t bytes = l->cfg->count * l->words * sizeof *l->in;
    l->in = ptx_unset(m, bytes);
    l->out = ptx_unset(m, bytes);
    l->gen = ptx_unset(m, bytes);
    l->kill = ptx_unset(m, bytes);
    return l->in && l->out && l->gen && l->kill;
}

bool ptx_liveness_build(ptx_kernel *k, const struct ptx_cfg *cfg, const struct ptx_uses *uses,
                        struct ptx_liveness *l)
{
    ptx_module *m = k->module;
    *l = (struct ptx_liveness){.k = k, .cfg = cfg, .uses = uses};
    l->number = ptx_scratch(m, k->register_count * sizeof *l->number);
    l->reg = ptx_scratch(m, k->register_count * sizeof *l->reg);
    l->predicated = ptx_scratch(m, k->register_count);
    l->completes = ptx_scratch(m, k->code_count);
    if (l->number && l->reg && l->predicated && l->completes) {
        find_completing_writes(l);
        number_registers(l);
        if (allocate_sets(l)) {
            ptx_liveness_solve(l);
            return true;
        }
    }
    ptx_liveness_free(l);
    return false;
}

void ptx_liveness_free(struct ptx_liveness *l)
{
    ptx_module *m = l->k->module;
    size_t bytes = l->cfg->count * l->words * sizeof *l->in;
    ptx_release(m, l->in, bytes);
    ptx_release(m, l->out, bytes);
    ptx_release(m, l->gen, bytes);
    ptx_release(m, l->kill, bytes);
    ptx_release(m, l->number, l->k->register_count * sizeof *l->number);
    ptx_release(m, l->reg, l->k->register_count * sizeof *l->reg);
    ptx_release(m, l->predicated, l->k->register_count);
    ptx_release(m, l->completes, l->k->code_count);
}
