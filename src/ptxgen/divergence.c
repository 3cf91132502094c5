/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divergence: which values and which blocks differ between threads, and the check that barriers and
 * .aligned instructions are reached by all the threads that they need.
 *
 * Each register and each block has a level: the same over the CTA, the same over each warp, or
 * different between lanes. A branch whose condition has a level above CTA lends it to all blocks
 * between the branch and its immediate postdominator, and to all that is written there. A divergent
 * exit has no postdominator short of the kernel's end, so everything after it is marked.
 */
#include "internal.h"

#include <string.h>

enum level { CTA_UNIFORM, WARP_UNIFORM, LANE_VARYING };

struct analysis {
    ptx_kernel *k;
    const struct ptx_cfg *cfg;
    size_t words;        /* of a block set */
    uint64_t *postdoms;  /* count + 1 sets over count + 1 blocks; the last is the virtual exit */
    uint8_t *reg, *block;
    uint8_t *tid_x;      /* by register: 1 + whether it is the lane-contiguous thread index */
    uint64_t *region;
    uint32_t *stack;
    bool changed;
};

static bool get(const uint64_t *set, uint32_t i)
{
    return set[i / 64] >> (i % 64) & 1;
}

static void put(uint64_t *set, uint32_t i)
{
    set[i / 64] |= UINT64_C(1) << (i % 64);
}

static void release(struct analysis *a)
{
    ptx_module *m = a->k->module;
    uint32_t nodes = a->cfg->count + 1;
    ptx_release(m, a->postdoms, nodes * a->words * sizeof *a->postdoms);
    ptx_release(m, a->reg, a->k->register_count);
    ptx_release(m, a->tid_x, a->k->register_count);
    ptx_release(m, a->block, nodes);
    ptx_release(m, a->region, a->words * sizeof *a->region);
    ptx_release(m, a->stack, nodes * sizeof *a->stack);
}

static bool prepare(struct analysis *a, ptx_kernel *k, const struct ptx_cfg *cfg)
{
    ptx_module *m = k->module;
    uint32_t nodes = cfg->count + 1;
    *a = (struct analysis){.k = k, .cfg = cfg, .words = (nodes + 63) / 64};
    a->postdoms = ptx_scratch(m, nodes * a->words * sizeof *a->postdoms);
    a->reg = ptx_scratch(m, k->register_count);
    a->tid_x = ptx_scratch(m, k->register_count);
    a->block = ptx_scratch(m, nodes);
    a->region = ptx_scratch(m, a->words * sizeof *a->region);
    a->stack = ptx_scratch(m, nodes * sizeof *a->stack);
    return a->postdoms && a->reg && a->tid_x && a->block && a->region && a->stack;
}

/* ---- postdominators ---- */

static uint64_t *postdoms(const struct analysis *a, uint32_t b)
{
    return a->postdoms + b * a->words;
}

static unsigned successors(const struct analysis *a, uint32_t b, uint32_t out[3])
{
    const struct ptx_basic_block *block = &a->cfg->blocks[b];
    unsigned count = block->successor_count;
    memcpy(out, block->successors, count * sizeof *out);
    if (block->exits || !count)
        out[count++] = a->cfg->count;
    return count;
}

static void find_postdominators(struct analysis *a)
{
    uint32_t exit_block = a->cfg->count;
    memset(a->postdoms, 0xff, (exit_block + 1) * a->words * sizeof *a->postdoms);
    memset(postdoms(a, exit_block), 0, a->words * sizeof *a->postdoms);
    put(postdoms(a, exit_block), exit_block);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = exit_block; b-- > 0;) {
            uint32_t next[3];
            unsigned count = successors(a, b, next);
            uint64_t *mine = postdoms(a, b);
            for (size_t w = 0; w < a->words; w++) {
                uint64_t all = UINT64_MAX;
                for (unsigned s = 0; s < count; s++)
                    all &= postdoms(a, next[s])[w];
                if (b / 64 == w)
                    all |= UINT64_C(1) << (b % 64);
                changed = changed || all != mine[w];
                mine[w] = all;
            }
        }
    }
}

/* Blocks reachable from b's successors before one of b's strict postdominators. */
static void find_region(struct analysis *a, uint32_t b)
{
    uint32_t next[3], depth = 0;
    memset(a->region, 0, a->words * sizeof *a->region);
    uint32_t from = b;
    for (;;) {
        unsigned count = successors(a, from, next);
        for (unsigned s = 0; s < count; s++) {
            uint32_t to = next[s];
            bool joined = to == a->cfg->count || (to != b && get(postdoms(a, b), to));
            if (!joined && !get(a->region, to)) {
                put(a->region, to);
                a->stack[depth++] = to;
            }
        }
        if (!depth)
            return;
        from = a->stack[--depth];
    }
}

/* ---- levels ---- */

static void raise(struct analysis *a, uint8_t *level, unsigned to)
{
    if (to > *level) {
        *level = (uint8_t)to;
        a->changed = true;
    }
}

static bool one_dimensional(const ptx_kernel *k)
{
    return k->maxntid || (k->ntid[1] == 1 && k->ntid[2] == 1);
}

/* tid.x is marked so that tid.x >> 5 and tid.x / 32 are known to be equal over a warp. */
static void find_thread_index(struct analysis *a)
{
    struct ptx_reference refs[PTX_MAX_REFERENCES];
    for (uint32_t i = 0; i < a->k->code_count; i++) {
        unsigned count = ptx_references(a->k, &a->k->code[i], refs);
        for (unsigned j = 0; j < count; j++)
            if (refs[j].written) {
                bool tid = a->k->code[i].op == PTX_OP_sreg_tid_x && !a->k->code[i].guarded &&
                           a->tid_x[refs[j].reg] != 1 && one_dimensional(a->k);
                a->tid_x[refs[j].reg] = tid ? 2 : 1;
            }
    }
}

static bool is_warp_index(const struct analysis *a, const struct ptx_instruction *i)
{
    if (i->op != PTX_OP_shr_u32 && i->op != PTX_OP_div_u32)
        return false;
    const ptx_operand *o = &a->k->operands[i->first];
    if (o[1].kind != PTX_OPERAND_REGISTER || a->tid_x[o[1].index] != 2 ||
        o[2].kind != PTX_OPERAND_IMMEDIATE)
        return false;
    return i->op == PTX_OP_shr_u32 ? o[2].bits >= 5 && o[2].bits < 32 : o[2].bits && o[2].bits % 32 == 0;
}

static bool reads_one_lane(const struct analysis *a, const struct ptx_instruction *i)
{
    const ptx_operand *lane = &a->k->operands[i->first + 2];
    return lane->kind == PTX_OPERAND_IMMEDIATE || a->reg[lane->index] <= WARP_UNIFORM;
}

static unsigned result_level(const struct analysis *a, const struct ptx_instruction *i, unsigned sources)
{
    uint32_t flags = ptx_flags(i);
    if (i->op == PTX_PSEUDO_RAW)
        return LANE_VARYING;
    if (flags & PTX_FLAG_CTAUNI)
        return CTA_UNIFORM;
    if (flags & PTX_FLAG_LANEUNI)
        return WARP_UNIFORM;
    if (flags & PTX_FLAG_SHFLIDX)
        return reads_one_lane(a, i) ? WARP_UNIFORM : LANE_VARYING;
    if (flags & PTX_FLAG_VARIES)
        return LANE_VARYING;
    return is_warp_index(a, i) ? WARP_UNIFORM : sources;
}

static unsigned guard_level(const struct analysis *a, const struct ptx_instruction *i)
{
    return i->guarded ? a->reg[i->guard] : CTA_UNIFORM;
}

static void visit_block(struct analysis *a, uint32_t b)
{
    struct ptx_reference refs[PTX_MAX_REFERENCES];
    const struct ptx_basic_block *block = &a->cfg->blocks[b];
    for (uint32_t at = block->first; at < block->end; at++) {
        const struct ptx_instruction *i = &a->k->code[at];
        unsigned count = ptx_references(a->k, i, refs), sources = CTA_UNIFORM;
        for (unsigned j = 0; j < count; j++)
            if (refs[j].read && a->reg[refs[j].reg] > sources)
                sources = a->reg[refs[j].reg];
        unsigned level = result_level(a, i, sources);
        if (level < a->block[b])
            level = a->block[b];
        if (level < guard_level(a, i))
            level = guard_level(a, i);
        for (unsigned j = 0; j < count; j++)
            if (refs[j].written)
                raise(a, &a->reg[refs[j].reg], level);
    }
    const struct ptx_instruction *last = &a->k->code[block->end - 1];
    unsigned level = guard_level(a, last);
    if (level == CTA_UNIFORM || !(ptx_flags(last) & (PTX_FLAG_BRANCH | PTX_FLAG_EXIT)))
        return;
    find_region(a, b);
    for (uint32_t r = 0; r < a->cfg->count; r++)
        if (get(a->region, r))
            raise(a, &a->block[r], level);
}

/* ---- the check ---- */

static const char *why(unsigned level)
{
    return level == WARP_UNIFORM ? "a branch or exit on which warps of the CTA can differ"
                                 : "a branch or exit on which lanes of a warp can differ";
}

static void check_instruction(struct analysis *a, uint32_t b, uint32_t at)
{
    const struct ptx_instruction *i = &a->k->code[at];
    uint32_t flags = ptx_flags(i);
    unsigned level = a->block[b] > guard_level(a, i) ? a->block[b] : guard_level(a, i);
    if ((flags & PTX_FLAG_CTABAR) && level > CTA_UNIFORM)
        ptx_fail_at(a->k, at, PTXGEN_ERROR_DIVERGENCE,
                    "it waits for every thread of the CTA, but stands behind %s", why(level));
    else if ((flags & PTX_FLAG_ALIGNED) && level > WARP_UNIFORM)
        ptx_fail_at(a->k, at, PTXGEN_ERROR_DIVERGENCE,
                    "it must be executed by all lanes of the warp together, but stands behind %s",
                    why(level));
}

void ptx_check_divergence(ptx_kernel *k, const struct ptx_cfg *cfg)
{
    struct analysis a;
    if (!ptx_failed(k) && prepare(&a, k, cfg)) {
        find_postdominators(&a);
        find_thread_index(&a);
        do {
            a.changed = false;
            for (uint32_t b = 0; b < cfg->count; b++)
                visit_block(&a, b);
        } while (a.changed);
        for (uint32_t b = 0; b < cfg->count; b++)
            for (uint32_t i = cfg->blocks[b].first; i < cfg->blocks[b].end; i++)
                check_instruction(&a, b, i);
        release(&a);
    }
}
