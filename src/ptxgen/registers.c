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
    static const uint8_t weights[PTX_CLASSES] = {0, 1, 1, 2, 4};
    return weights[class_of(k, reg)];
}

static void release(struct folding *f)
{
    ptx_kernel *k = f->l->k;
    ptx_module *m = k->module;
    size_t registers = k->register_count, positions = 2 * (size_t)k->code_count;
    ptx_release(m, f->intervals, registers * sizeof *f->intervals);
    ptx_release(m, f->live, registers);
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
    f->intervals = ptx_scratch(m, registers * sizeof *f->intervals);
    f->live = ptx_scratch(m, registers);
    f->next_start = ptx_unset(m, registers * sizeof *f->next_start);
    f->next_end = ptx_unset(m, registers * sizeof *f->next_end);
    f->starts = ptx_scratch(m, positions * sizeof *f->starts);
    f->ends = ptx_scratch(m, positions * sizeof *f->ends);
    bool names = true;
    for (int c = 0; c < PTX_CLASSES; c++) {
        f->free_names[c] = ptx_scratch(m, f->words * sizeof **f->free_names);
        names = names && f->free_names[c];
    }
    return names && f->intervals && f->live && f->next_start && f->next_end && f->starts && f->ends;
}

/* ---- pressure ---- */

static void set_live(struct folding *f, uint32_t reg, bool live, unsigned *now)
{
    if (live != f->live[reg])
        *now = live ? *now + weight(f->l->k, reg) : *now - weight(f->l->k, reg);
    f->live[reg] = live;
}

/* Steps the live set backwards over one instruction; returns the weight that it needs. */
static unsigned step_back(struct folding *f, uint32_t at, unsigned *now)
{
    struct ptx_references refs = ptx_uses_at(f->l->uses, at);
    unsigned unread = 0; /* results that nobody reads need a place too */
    for (uint32_t j = 0; j < refs.count; j++)
        if (refs.list[j].written && !f->live[refs.list[j].reg])
            unread += weight(f->l->k, refs.list[j].reg);
    unsigned peak = *now + unread;
    for (uint32_t j = 0; j < refs.count; j++)
        if (ptx_kills(f->l, &refs.list[j]))
            set_live(f, refs.list[j].reg, false, now);
    for (uint32_t j = 0; j < refs.count; j++)
        if (refs.list[j].read)
            set_live(f, refs.list[j].reg, true, now);
    return *now > peak ? *now : peak;
}

/* The next register of a set, from number *n on; false when there is none. */
static bool next_of(const struct ptx_liveness *l, const uint64_t *set, uint32_t *n)
{
    for (size_t w = *n / 64; w < l->words; w++, *n = (uint32_t)w * 64) {
        uint64_t bits = set[w] >> (*n % 64);
        if (bits) {
            *n += (uint32_t)__builtin_ctzll(bits);
            return true;
        }
    }
    return false;
}

static void measure_block(struct folding *f, uint32_t b)
{
    const struct ptx_liveness *l = f->l;
    const struct ptx_basic_block *block = &l->cfg->blocks[b];
    unsigned now = 0;
    for (uint32_t n = 0; next_of(l, l->out + b * l->words, &n); n++)
        set_live(f, l->reg[n], true, &now);
    unsigned peak = now;
    for (uint32_t i = block->end; i-- > block->first;) {
        unsigned here = step_back(f, i, &now);
        peak = here > peak ? here : peak;
    }
    for (uint32_t n = 0; next_of(l, l->in + b * l->words, &n); n++)
        set_live(f, l->reg[n], false, &now);
    if (peak > l->k->pressure)
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

static void hold(void *ctx, uint32_t reg, uint32_t first, uint32_t last)
{
    extend(ctx, reg, 2 * first);
    extend(ctx, reg, 2 * last + 1);
}

static void find_intervals(struct folding *f)
{
    const struct ptx_liveness *l = f->l;
    for (uint32_t r = 0; r < l->k->register_count; r++) {
        struct ptx_references refs = ptx_uses_of(l->uses, r);
        f->intervals[r].first = UINT32_MAX;
        for (uint32_t j = 0; j < refs.count; j++) {
            if (refs.list[j].read)
                extend(f, r, 2 * refs.list[j].at);
            if (refs.list[j].written)
                extend(f, r, 2 * refs.list[j].at + 1);
        }
    }
    for (uint32_t b = 0; b < l->cfg->count; b++) {
        const struct ptx_basic_block *block = &l->cfg->blocks[b];
        for (uint32_t n = 0; next_of(l, l->in + b * l->words, &n); n++)
            extend(f, l->reg[n], 2 * block->first);
        for (uint32_t n = 0; next_of(l, l->out + b * l->words, &n); n++)
            extend(f, l->reg[n], 2 * (block->end - 1) + 1);
    }
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
        for (uint32_t b = 0; b < l->cfg->count; b++)
            measure_block(&f, b);
        find_intervals(&f);
        if (!ptx_failed(l->k))
            assign_names(&f);
    }
    release(&f);
}
