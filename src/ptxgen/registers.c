/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Liveness over the control-flow graph, the check that no register is read before it is written,
 * the true register pressure, and the linear scan that folds virtual registers into few names.
 *
 * A guarded write leaves the old value where its guard is false, so it does not end a live range,
 * unless (a) the same register was written under the opposite guard just before, or (b) every
 * read and write of the register stands under that one guard ("predicated value").
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Inclusive positions: instruction i reads at 2i and writes at 2i + 1. */
struct interval {
    uint32_t first, last;
    bool used;
};

struct liveness {
    ptx_kernel *k;
    const struct ptx_cfg *cfg;
    size_t words;          /* of a register set */
    uint64_t *in, *out;    /* cfg->count sets each */
    uint64_t *gen, *kill;  /* what a block reads first, and what it writes wholly */
    uint8_t *predicated;   /* by register: rule (b) holds */
    uint8_t *completes;    /* by instruction: rule (a) holds for its writes */
    uint64_t *now;         /* one set, for scans */
    struct interval *intervals;
    uint32_t *order;
};

static uint64_t *set_of(const struct liveness *l, uint64_t *sets, uint32_t block)
{
    return sets + block * l->words;
}

static bool has(const uint64_t *set, uint32_t r)
{
    return set[r / 64] >> (r % 64) & 1;
}

static void insert(uint64_t *set, uint32_t r)
{
    set[r / 64] |= UINT64_C(1) << (r % 64);
}

static void erase(uint64_t *set, uint32_t r)
{
    set[r / 64] &= ~(UINT64_C(1) << (r % 64));
}

static void release(struct liveness *l)
{
    ptx_module *m = l->k->module;
    size_t sets = l->cfg->count * l->words * sizeof *l->in;
    ptx_release(m, l->in, sets);
    ptx_release(m, l->out, sets);
    ptx_release(m, l->gen, sets);
    ptx_release(m, l->kill, sets);
    ptx_release(m, l->predicated, l->k->register_count);
    ptx_release(m, l->completes, l->k->code_count);
    ptx_release(m, l->now, l->words * sizeof *l->now);
    ptx_release(m, l->intervals, l->k->register_count * sizeof *l->intervals);
    ptx_release(m, l->order, l->k->register_count * sizeof *l->order);
}

static bool prepare(struct liveness *l, ptx_kernel *k, const struct ptx_cfg *cfg)
{
    ptx_module *m = k->module;
    *l = (struct liveness){.k = k, .cfg = cfg, .words = (k->register_count + 63) / 64};
    size_t sets = cfg->count * l->words * sizeof *l->in;
    l->in = ptx_scratch(m, sets);
    l->out = ptx_scratch(m, sets);
    l->gen = ptx_scratch(m, sets);
    l->kill = ptx_scratch(m, sets);
    l->predicated = ptx_scratch(m, k->register_count);
    l->completes = ptx_scratch(m, k->code_count);
    l->now = ptx_scratch(m, l->words * sizeof *l->now);
    l->intervals = ptx_scratch(m, k->register_count * sizeof *l->intervals);
    l->order = ptx_scratch(m, k->register_count * sizeof *l->order);
    return l->in && l->out && l->gen && l->kill && l->predicated && l->completes && l->now && l->intervals && l->order;
}

/* ---- rule (a): a pair of writes under opposite guards writes wholly ---- */

static bool writes(const ptx_kernel *k, const struct ptx_instruction *i, uint32_t reg)
{
    struct ptx_reference refs[PTX_MAX_REFERENCES];
    unsigned count = ptx_references(k, i, refs);
    for (unsigned j = 0; j < count; j++)
        if (refs[j].written && refs[j].reg == reg)
            return true;
    return false;
}

static bool has_opposite_before(const struct liveness *l, uint32_t index, uint32_t reg)
{
    const struct ptx_instruction *i = &l->k->code[index];
    uint32_t start = l->cfg->blocks[l->cfg->block_of[index]].first;
    for (uint32_t j = index; j-- > start;) {
        const struct ptx_instruction *before = &l->k->code[j];
        if (before->guarded && before->guard == i->guard && before->guarded != i->guarded &&
            writes(l->k, before, reg))
            return true;
        if (writes(l->k, before, i->guard))
            return false;
    }
    return false;
}

static void find_completing_writes(struct liveness *l)
{
    struct ptx_reference refs[PTX_MAX_REFERENCES];
    for (uint32_t i = 0; i < l->k->code_count; i++) {
        if (!l->k->code[i].guarded)
            continue;
        unsigned count = ptx_references(l->k, &l->k->code[i], refs);
        bool all = true, any = false;
        for (unsigned j = 0; j < count; j++)
            if (refs[j].written) {
                any = true;
                all = all && has_opposite_before(l, i, refs[j].reg);
            }
        l->completes[i] = any && all;
    }
}

/* ---- liveness ---- */

static bool kills(const struct liveness *l, uint32_t index, const struct ptx_reference *r)
{
    return r->written && !r->read &&
           (!l->k->code[index].guarded || l->completes[index] || l->predicated[r->reg]);
}

static void summarise_block(struct liveness *l, uint32_t b)
{
    struct ptx_reference refs[PTX_MAX_REFERENCES];
    const struct ptx_basic_block *block = &l->cfg->blocks[b];
    uint64_t *gen = set_of(l, l->gen, b), *kill = set_of(l, l->kill, b);
    for (uint32_t i = block->end; i-- > block->first;) {
        unsigned count = ptx_references(l->k, &l->k->code[i], refs);
        for (unsigned j = 0; j < count; j++)
            if (kills(l, i, &refs[j])) {
                insert(kill, refs[j].reg);
                erase(gen, refs[j].reg);
            }
        for (unsigned j = 0; j < count; j++)
            if (refs[j].read)
                insert(gen, refs[j].reg);
    }
}

static void solve(struct liveness *l)
{
    size_t sets = l->cfg->count * l->words * sizeof *l->in;
    memset(l->gen, 0, sets);
    memset(l->kill, 0, sets);
    memset(l->in, 0, sets);
    memset(l->out, 0, sets);
    for (uint32_t b = 0; b < l->cfg->count; b++)
        summarise_block(l, b);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = l->cfg->count; b-- > 0;) {
            const struct ptx_basic_block *block = &l->cfg->blocks[b];
            uint64_t *out = set_of(l, l->out, b), *in = set_of(l, l->in, b);
            const uint64_t *gen = set_of(l, l->gen, b), *kill = set_of(l, l->kill, b);
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
        }
    }
}

/* ---- reads before writes ---- */

/* Rule (b). A tolerated first read (wgmma's accumulator) does not count as a read. */
static bool is_predicated_value(const struct liveness *l, uint32_t reg)
{
    struct ptx_reference refs[PTX_MAX_REFERENCES];
    uint8_t guarded = 0;
    uint32_t guard = 0;
    for (uint32_t i = 0; i < l->k->code_count; i++) {
        const struct ptx_instruction *in = &l->k->code[i];
        unsigned count = ptx_references(l->k, in, refs);
        for (unsigned j = 0; j < count; j++) {
            if (refs[j].reg != reg)
                continue;
            if (!in->guarded || (guarded && (in->guarded != guarded || in->guard != guard)))
                return false;
            guarded = in->guarded;
            guard = in->guard;
        }
    }
    return guarded != 0;
}

/* The first instruction in program order that reads `reg`, and whether that is tolerated. */
static uint32_t first_read(const struct liveness *l, uint32_t reg, bool *tolerated)
{
    struct ptx_reference refs[PTX_MAX_REFERENCES];
    *tolerated = true;
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < l->k->code_count; i++) {
        unsigned count = ptx_references(l->k, &l->k->code[i], refs);
        for (unsigned j = 0; j < count; j++) {
            if (refs[j].reg != reg || !refs[j].read)
                continue;
            if (first == UINT32_MAX)
                first = i;
            if (!refs[j].undef_ok && first == i)
                *tolerated = false;
        }
    }
    return first;
}

static bool check_initialised(struct liveness *l)
{
    const uint64_t *entry = set_of(l, l->in, 0);
    bool again = false;
    for (uint32_t r = 0; r < l->k->register_count; r++) {
        if (!has(entry, r) || l->predicated[r])
            continue;
        bool tolerated;
        uint32_t where = first_read(l, r, &tolerated);
        if (tolerated)
            continue;
        if (is_predicated_value(l, r)) {
            l->predicated[r] = 1;
            again = true;
            continue;
        }
        ptx_fail_at(l->k, where, PTXGEN_ERROR_UNINITIALISED,
                    "it reads a register that some path from the kernel's entry never wrote");
        return false;
    }
    if (again)
        solve(l);
    return true;
}

/* ---- pressure and live intervals ---- */

static unsigned weight(const ptx_kernel *k, uint32_t reg)
{
    static const uint8_t weights[PTX_CLASSES] = {0, 1, 1, 2, 4};
    return weights[ptx_class_of(k->registers[reg].type)];
}

static unsigned set_weight(const struct liveness *l, const uint64_t *set)
{
    unsigned sum = 0;
    for (size_t w = 0; w < l->words; w++)
        for (uint64_t bits = set[w]; bits; bits &= bits - 1)
            sum += weight(l->k, (uint32_t)(w * 64 + (size_t)__builtin_ctzll(bits)));
    return sum;
}

static void extend(struct interval *v, uint32_t at)
{
    if (!v->used || at < v->first)
        v->first = at;
    if (!v->used || at > v->last)
        v->last = at;
    v->used = true;
}

static void extend_set(struct liveness *l, const uint64_t *set, uint32_t at)
{
    for (size_t w = 0; w < l->words; w++)
        for (uint64_t bits = set[w]; bits; bits &= bits - 1)
            extend(&l->intervals[w * 64 + (size_t)__builtin_ctzll(bits)], at);
}

/* Steps the live set backwards over one instruction; returns the peak weight seen there. */
static unsigned step_back(struct liveness *l, uint32_t index, unsigned *now)
{
    struct ptx_reference refs[PTX_MAX_REFERENCES];
    unsigned count = ptx_references(l->k, &l->k->code[index], refs);
    for (unsigned j = 0; j < count; j++) {
        uint32_t r = refs[j].reg;
        if (refs[j].read)
            extend(&l->intervals[r], 2 * index);
        if (!refs[j].written)
            continue;
        extend(&l->intervals[r], 2 * index + 1);
        if (!has(l->now, r)) { /* never read, yet it needs a place */
            insert(l->now, r);
            *now += weight(l->k, r);
        }
    }
    unsigned peak = *now;
    for (unsigned j = 0; j < count; j++)
        if (kills(l, index, &refs[j]) && has(l->now, refs[j].reg)) {
            erase(l->now, refs[j].reg);
            *now -= weight(l->k, refs[j].reg);
        }
    for (unsigned j = 0; j < count; j++)
        if (refs[j].read && !has(l->now, refs[j].reg)) {
            insert(l->now, refs[j].reg);
            *now += weight(l->k, refs[j].reg);
        }
    return *now > peak ? *now : peak;
}

static void measure(struct liveness *l)
{
    for (uint32_t b = 0; b < l->cfg->count; b++) {
        const struct ptx_basic_block *block = &l->cfg->blocks[b];
        memcpy(l->now, set_of(l, l->out, b), l->words * sizeof *l->now);
        extend_set(l, l->now, 2 * (block->end - 1) + 1);
        extend_set(l, set_of(l, l->in, b), 2 * block->first);
        unsigned now = set_weight(l, l->now), peak = now;
        for (uint32_t i = block->end; i-- > block->first;) {
            unsigned here = step_back(l, i, &now);
            if (here > peak)
                peak = here;
        }
        if (peak > l->k->pressure)
            l->k->pressure = peak;
    }
}

/* ---- asynchronous register operands ---- */

/*
 * wgmma reads and writes its registers until a wgmma.wait_group that covers it, so their names may
 * not be given away before. The next wait in program order is taken; when a backward branch comes
 * first, the wait is in the loop's next turn and the whole loop keeps the name.
 */
static void hold_until_wait(struct liveness *l, uint32_t index)
{
    struct ptx_reference refs[PTX_MAX_REFERENCES];
    unsigned count = ptx_references(l->k, &l->k->code[index], refs);
    uint32_t first = index, last = index;
    for (uint32_t i = index + 1; i < l->k->code_count; i++) {
        const struct ptx_instruction *in = &l->k->code[i];
        last = i;
        if (in->op == PTX_OP_wgmma_wait_group)
            break;
        if (ptx_flags(in) & PTX_FLAG_BRANCH) {
            uint32_t to = l->k->labels[l->k->operands[in->first].index].position;
            if (to < first)
                first = to;
        }
    }
    for (unsigned j = 0; j < count; j++) {
        extend(&l->intervals[refs[j].reg], 2 * last + 1);
        extend(&l->intervals[refs[j].reg], 2 * first);
    }
}

static void hold_asynchronous(struct liveness *l)
{
    for (uint32_t i = 0; i < l->k->code_count; i++)
        if (l->k->code[i].op >= PTX_OP_wgmma_k16_f32_f16 && l->k->code[i].op < PTX_OP_setmaxnreg_inc)
            hold_until_wait(l, i);
}

/* ---- linear scan ---- */

/* The names of one class: which are free, and at which instruction each name in use ends. */
struct names {
    uint32_t *ends;
    uint32_t count;
};

static uint32_t take_name(struct names *n, const struct interval *v)
{
    for (uint32_t i = 0; i < n->count; i++)
        if (n->ends[i] < v->first) {
            n->ends[i] = v->last;
            return i;
        }
    n->ends[n->count] = v->last;
    return n->count++;
}

static void sort_by_start(const struct liveness *l, uint32_t *order, uint32_t count)
{
    /* Counting sort by first position: stable, so equal starts keep creation order. */
    ptx_kernel *k = l->k;
    size_t bytes = (2 * (size_t)k->code_count + 1) * sizeof(uint32_t);
    uint32_t *bucket = ptx_scratch(k->module, bytes);
    if (!bucket)
        return;
    for (uint32_t r = 0; r < count; r++)
        if (l->intervals[r].used)
            bucket[l->intervals[r].first + 1]++;
    for (uint32_t i = 0; i < 2 * k->code_count; i++)
        bucket[i + 1] += bucket[i];
    for (uint32_t r = 0; r < count; r++)
        if (l->intervals[r].used)
            order[bucket[l->intervals[r].first]++] = r;
    ptx_release(k->module, bucket, bytes);
}

static void assign_names(struct liveness *l)
{
    ptx_kernel *k = l->k;
    uint32_t used = 0;
    for (uint32_t r = 0; r < k->register_count; r++)
        used += l->intervals[r].used;
    sort_by_start(l, l->order, k->register_count);
    size_t bytes = (size_t)k->register_count * sizeof(uint32_t);
    for (int c = 0; c < PTX_CLASSES && !ptx_failed(k); c++) {
        struct names names = {ptx_scratch(k->module, bytes), 0};
        for (uint32_t i = 0; names.ends && i < used; i++) {
            uint32_t r = l->order[i];
            if ((int)ptx_class_of(k->registers[r].type) == c)
                k->registers[r].name = take_name(&names, &l->intervals[r]);
        }
        k->names[c] = names.count;
        ptx_release(k->module, names.ends, bytes);
    }
}

void ptx_allocate_registers(ptx_kernel *k, const struct ptx_cfg *cfg)
{
    struct liveness l;
    if (prepare(&l, k, cfg)) {
        find_completing_writes(&l);
        solve(&l);
        if (check_initialised(&l)) {
            measure(&l);
            hold_asynchronous(&l);
            assign_names(&l);
        }
    }
    release(&l);
}
