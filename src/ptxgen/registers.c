/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Register pressure, and the linear scan that folds virtual registers into names. A register's
 * interval runs from its first to its last live position; intervals are coloured in order of their
 * start with the lowest free name, which for intervals gives the fewest names possible.
 */
#include "internal.h"

#include <string.h>

/* Inclusive positions: instruction i reads at 2i and writes at 2i + 1. */
struct interval {
    uint32_t first, last;
};

struct folding {
    const struct ptx_liveness *l;
    struct interval *intervals;
    uint8_t *live;        /* by register, for the pressure scan */
    uint32_t *begins;     /* by register: 1 + the first of the two writes, under opposite guards,
                             that make up its value; 0 when there are none */
    uint64_t *live_set;   /* the same of the numbered ones, between blocks */
    uint64_t *seen;       /* numbered registers whose interval has its first or last block */
    uint32_t *next_start, *next_end; /* by register: the next one that starts or ends there */
    uint32_t *starts, *ends;         /* by position: 1 + the first register that does */
    uint64_t *free_names[PTX_CLASSES];
    size_t words;         /* of a set of names */
};

static enum ptx_class class_of(const ptx_kernel *k, uint32_t reg)
{
    return ptx_class_of(k->registers[reg].type);
}

static unsigned weight(const ptx_kernel *k, uint32_t reg)
{
    static const uint8_t weights[PTX_TYPE_COUNT] = {
        [PTX_U16] = 1, [PTX_S16] = 1, [PTX_F16] = 1,   [PTX_BF16] = 1,   [PTX_U32] = 1,
        [PTX_S32] = 1, [PTX_F32] = 1, [PTX_F16X2] = 1, [PTX_BF16X2] = 1, [PTX_U64] = 2,
        [PTX_S64] = 2, [PTX_F64] = 2, [PTX_B128] = 4};
    return weights[k->registers[reg].type];
}

static void release(struct folding *f)
{
    ptx_kernel *k = f->l->k;
    ptx_module *m = k->module;
    size_t registers = k->register_count, positions = 2 * (size_t)k->code_count;
    ptx_release(m, f->intervals, registers * sizeof *f->intervals);
    ptx_release(m, f->live, registers);
    ptx_release(m, f->begins, registers * sizeof *f->begins);
    ptx_release(m, f->live_set, f->l->words * sizeof *f->live_set);
    ptx_release(m, f->seen, f->l->words * sizeof *f->seen);
    ptx_release(m, f->next_start, registers * sizeof *f->next_start);
    ptx_release(m, f->next_end, registers * sizeof *f->next_end);
    ptx_release(m, f->starts, positions * sizeof *f->starts);
    ptx_release(m, f->ends, positions * sizeof *f->ends);
    for (int c = 0; c < PTX_CLASSES; c++)
        ptx_release(m, f->free_names[c], f->words * sizeof **f->free_names);
}

static bool prepare(struct folding *f, const struct ptx_liveness *l)
{
    ptx_kernel *k = l->k;
    ptx_module *m = k->module;
    size_t registers = k->register_count, positions = 2 * (size_t)k->code_count;
    *f = (struct folding){.l = l, .words = (registers + 63) / 64};
    f->intervals = ptx_unset(m, registers * sizeof *f->intervals);
    f->live = ptx_scratch(m, registers);
    f->begins = ptx_scratch(m, registers * sizeof *f->begins);
    f->live_set = ptx_scratch(m, l->words * sizeof *f->live_set);
    f->seen = ptx_unset(m, l->words * sizeof *f->seen);
    f->next_start = ptx_unset(m, registers * sizeof *f->next_start);
    f->next_end = ptx_unset(m, registers * sizeof *f->next_end);
    f->starts = ptx_scratch(m, positions * sizeof *f->starts);
    f->ends = ptx_scratch(m, positions * sizeof *f->ends);
    bool names = true;
    for (int c = 0; c < PTX_CLASSES; c++) {
        f->free_names[c] = ptx_scratch(m, f->words * sizeof **f->free_names);
        names = names && f->free_names[c];
    }
    return names && f->intervals && f->live && f->begins && f->live_set && f->seen &&
           f->next_start && f->next_end && f->starts && f->ends;
}

/* ---- pressure ---- */

/*
 * Whether the value that is live behind this write begins with it. Of two writes under opposite
 * guards the first begins the value, unless the register is read between them.
 */
static bool begins_value(struct folding *f, const struct ptx_reference *r)
{
    const struct ptx_liveness *l = f->l;
    uint32_t at = r->at;
    if (f->begins[r->reg] == at + 1) {
        f->begins[r->reg] = 0;
        return true;
    }
    if (!ptx_kills(l, r))
        return false;
    if (!l->completes[at] || l->predicated[r->reg])
        return true;
    f->begins[r->reg] = 1 + ptx_opposite_write(l, r->reg, at);
    return false;
}

/* Steps the live set backwards over one instruction; returns the weight that it needs. */
static unsigned step_back(struct folding *f, uint32_t at, unsigned *now)
{
    const ptx_kernel *k = f->l->k;
    struct ptx_references refs = ptx_uses_at(f->l->uses, at);
    unsigned peak = *now;
    for (uint32_t j = 0; j < refs.count; j++)
        if (refs.list[j].written && !f->live[refs.list[j].reg])
            peak += weight(k, refs.list[j].reg); /* what nobody reads needs a place too */
    for (uint32_t j = 0; j < refs.count; j++) {
        uint32_t reg = refs.list[j].reg;
        if (f->live[reg] && refs.list[j].written && begins_value(f, &refs.list[j])) {
            *now -= weight(k, reg);
            f->live[reg] = 0;
        }
    }
    for (uint32_t j = 0; j < refs.count; j++) {
        uint32_t reg = refs.list[j].reg;
        if (!refs.list[j].read)
            continue;
        f->begins[reg] = 0;
        if (!f->live[reg])
            *now += weight(k, reg);
        f->live[reg] = 1;
    }
    return *now > peak ? *now : peak;
}

/* Makes the numbered registers of a set the live ones. */
static void turn_to(struct folding *f, const uint64_t *set, unsigned *now)
{
    const struct ptx_liveness *l = f->l;
    for (size_t w = 0; w < l->words; w++) {
        for (uint64_t differ = set[w] ^ f->live_set[w]; differ; differ &= differ - 1) {
            uint32_t reg = l->reg[w * 64 + (size_t)__builtin_ctzll(differ)];
            f->live[reg] ^= 1;
            *now += f->live[reg] ? weight(l->k, reg) : -weight(l->k, reg);
        }
        f->live_set[w] = set[w];
    }
}

/* Backwards through the blocks, for what is live at one's start hardly differs from what is at the
 * end of the one before. */
static void measure_pressure(struct folding *f)
{
    const struct ptx_liveness *l = f->l;
    unsigned now = 0, peak = 0;
    for (uint32_t b = l->cfg->count; b-- > 0;) {
        const struct ptx_basic_block *block = &l->cfg->blocks[b];
        turn_to(f, l->out + b * l->words, &now);
        peak = now > peak ? now : peak;
        for (uint32_t i = block->end; i-- > block->first;) {
            unsigned here = step_back(f, i, &now);
            peak = here > peak ? here : peak;
        }
        memcpy(f->live_set, l->in + b * l->words, l->words * sizeof *f->live_set);
    }
    l->k->pressure = peak;
}

/* ---- live intervals ---- */

static void extend(struct folding *f, uint32_t reg, uint32_t position)
{
    struct interval *v = &f->intervals[reg];
    if (position < v->first)
        v->first = position;
    if (position > v->last)
        v->last = position;
}

/* From the first reference to the last. */
static struct interval span(struct ptx_references refs)
{
    struct interval v = {UINT32_MAX, 0};
    if (!refs.count)
        return v;
    uint32_t first = refs.list[0].at, last = refs.list[refs.count - 1].at;
    v = (struct interval){2 * first + 1, 2 * last};
    for (uint32_t j = 0; j < refs.count && refs.list[j].at == first; j++)
        if (refs.list[j].read)
            v.first = 2 * first;
    for (uint32_t j = refs.count; j-- > 0 && refs.list[j].at == last;)
        if (refs.list[j].written)
            v.last = 2 * last + 1;
    return v;
}

/* Extends registers of the set that were not seen before to the position. */
static void extend_unseen(struct folding *f, const uint64_t *set, uint32_t position)
{
    const struct ptx_liveness *l = f->l;
    for (size_t w = 0; w < l->words; w++) {
        for (uint64_t fresh = set[w] & ~f->seen[w]; fresh; fresh &= fresh - 1)
            extend(f, l->reg[w * 64 + (size_t)__builtin_ctzll(fresh)], position);
        f->seen[w] |= set[w];
    }
}

static void hold(void *ctx, uint32_t reg, uint32_t first, uint32_t last)
{
    extend(ctx, reg, 2 * first);
    extend(ctx, reg, 2 * last + 1);
}

static void find_intervals(struct folding *f)
{
    const struct ptx_liveness *l = f->l;
    size_t set_bytes = l->words * sizeof *f->seen;
    for (uint32_t r = 0; r < l->k->register_count; r++)
        f->intervals[r] = span(ptx_uses_of(l->uses, r));
    memset(f->seen, 0, set_bytes);
    for (uint32_t b = 0; b < l->cfg->count; b++)
        extend_unseen(f, l->in + b * l->words, 2 * l->cfg->blocks[b].first);
    memset(f->seen, 0, set_bytes);
    for (uint32_t b = l->cfg->count; b-- > 0;)
        extend_unseen(f, l->out + b * l->words, 2 * (l->cfg->blocks[b].end - 1) + 1);
    ptx_hold_asynchronous(l, hold, f);
}

/* ---- the linear scan ---- */

static void bucket_intervals(struct folding *f)
{
    for (uint32_t r = f->l->k->register_count; r-- > 0;) {
        const struct interval *v = &f->intervals[r];
        if (v->first == UINT32_MAX)
            continue;
        f->next_start[r] = f->starts[v->first];
        f->starts[v->first] = r + 1;
        f->next_end[r] = f->ends[v->last];
        f->ends[v->last] = r + 1;
    }
}

static uint32_t take_name(struct folding *f, enum ptx_class c)
{
    ptx_kernel *k = f->l->k;
    size_t words = (k->names[c] + 63) / 64;
    for (size_t w = 0; w < words; w++)
        if (f->free_names[c][w]) {
            uint32_t name = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(f->free_names[c][w]));
            f->free_names[c][w] &= f->free_names[c][w] - 1;
            return name;
        }
    return k->names[c]++;
}

static void assign_names(struct folding *f)
{
    ptx_kernel *k = f->l->k;
    bucket_intervals(f);
    for (uint32_t position = 0; position < 2 * k->code_count; position++) {
        for (uint32_t r = f->starts[position]; r; r = f->next_start[r - 1])
            k->registers[r - 1].name = take_name(f, class_of(k, r - 1));
        for (uint32_t r = f->ends[position]; r; r = f->next_end[r - 1])
            ptx_put(f->free_names[class_of(k, r - 1)], k->registers[r - 1].name);
    }
}

void ptx_allocate_registers(const struct ptx_liveness *l)
{
    struct folding f;
    if (prepare(&f, l)) {
        measure_pressure(&f);
        find_intervals(&f);
        if (!ptx_failed(l->k))
            assign_names(&f);
    }
    release(&f);
}
