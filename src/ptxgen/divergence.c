/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divergence: which values and which blocks differ between threads, and the check that barriers and
 * .aligned instructions are reached by all the threads that they need.
 *
 * Each register and each block has a level: the same over the CTA, the same over each warp, or
 * different between lanes. A branch whose condition has a level above CTA lends it to all blocks
 * between the branch and its immediate postdominator, and to all that is written there: a loop that
 * all threads leave by one door diverges inside, not after. A divergent exit has no postdominator
 * short of the kernel's end, so everything after it is marked.
 */
#include "internal.h"

#include <string.h>

enum level { CTA_UNIFORM, WARP_UNIFORM, LANE_VARYING };

struct analysis {
    ptx_kernel *k;
    const struct ptx_cfg *cfg;
    const struct ptx_uses *uses;
    uint32_t *ipdom;         /* by block */
    uint8_t *reg, *block;    /* levels */
    uint8_t *lane_index;     /* by register: a multiple of 32, equal over the warp, plus the lane */
    uint8_t *lent;           /* by block: the level that its branch has lent to its region */
    uint8_t *after_exit;     /* by block: the level that divergent exits before it have lent */
    uint8_t *dirty;          /* by block: to be visited (again) */
    uint32_t *mark, *stack;  /* by block, for the region search */
    uint32_t search;
};

static void release(struct analysis *a)
{
    ptx_module *m = a->k->module;
    size_t nodes = (size_t)a->cfg->count + 1;
    ptx_release(m, a->ipdom, nodes * sizeof *a->ipdom);
    ptx_release(m, a->reg, a->k->register_count);
    ptx_release(m, a->lane_index, a->k->register_count);
    ptx_release(m, a->block, nodes);
    ptx_release(m, a->lent, nodes);
    ptx_release(m, a->after_exit, nodes);
    ptx_release(m, a->dirty, nodes);
    ptx_release(m, a->mark, nodes * sizeof *a->mark);
    ptx_release(m, a->stack, nodes * sizeof *a->stack);
}

static bool prepare(struct analysis *a, ptx_kernel *k, const struct ptx_cfg *cfg,
                    const struct ptx_uses *uses)
{
    ptx_module *m = k->module;
    size_t nodes = (size_t)cfg->count + 1;
    *a = (struct analysis){.k = k, .cfg = cfg, .uses = uses};
    a->ipdom = ptx_scratch(m, nodes * sizeof *a->ipdom);
    a->reg = ptx_scratch(m, k->register_count);
    a->lane_index = ptx_scratch(m, k->register_count);
    a->block = ptx_scratch(m, nodes);
    a->lent = ptx_scratch(m, nodes);
    a->after_exit = ptx_scratch(m, nodes);
    a->dirty = ptx_scratch(m, nodes);
    a->mark = ptx_scratch(m, nodes * sizeof *a->mark);
    a->stack = ptx_scratch(m, nodes * sizeof *a->stack);
    return a->ipdom && a->reg && a->lane_index && a->block && a->lent && a->after_exit &&
           a->dirty && a->mark && a->stack;
}

/* ---- thread indices: what keeps a warp's lanes in one aligned run of 32 values ---- */

static bool one_dimensional(const ptx_kernel *k)
{
    return k->maxntid || (k->ntid[1] == 1 && k->ntid[2] == 1);
}

static bool reads_lane_index(const struct analysis *a, const struct ptx_instruction *i)
{
    const ptx_operand *o = &a->k->operands[i->first];
    return i->count == 3 && o[1].kind == PTX_OPERAND_REGISTER && a->lane_index[o[1].index] &&
           o[2].kind == PTX_OPERAND_IMMEDIATE;
}

static bool makes_lane_index(const struct analysis *a, const struct ptx_instruction *i)
{
    const ptx_operand *o = &a->k->operands[i->first];
    switch (i->op) {
    case PTX_OP_sreg_tid_x:
        return one_dimensional(a->k);
    case PTX_OP_mov_u32:
    case PTX_OP_mov_s32:
        return o[1].kind == PTX_OPERAND_REGISTER && a->lane_index[o[1].index];
    case PTX_OP_add_u32:
    case PTX_OP_add_s32:
    case PTX_OP_sub_u32:
    case PTX_OP_sub_s32:
        return reads_lane_index(a, i) && o[2].bits % 32 == 0;
    default:
        return false;
    }
}

/* Only registers written once, unguarded, count; so one pass in program order finds them. */
static void find_lane_indices(struct analysis *a)
{
    for (uint32_t at = 0; at < a->k->code_count; at++) {
        const struct ptx_instruction *i = &a->k->code[at];
        if (i->guarded || !makes_lane_index(a, i))
            continue;
        struct ptx_references refs = ptx_uses_of(a->uses, a->k->operands[i->first].index);
        unsigned writes = 0;
        for (uint32_t j = 0; j < refs.count; j++)
            writes += refs.list[j].written;
        a->lane_index[a->k->operands[i->first].index] = writes == 1;
    }
}

/* Whether the instruction makes of a lane index a value that the warp shares. */
static bool drops_the_lane(const struct analysis *a, const struct ptx_instruction *i)
{
    if (!reads_lane_index(a, i))
        return false;
    uint32_t constant = (uint32_t)a->k->operands[i->first + 2].bits;
    switch (i->op) {
    case PTX_OP_shr_u32:
    case PTX_OP_shr_s32:
        return constant >= 5;
    case PTX_OP_div_u32:
        return constant && constant % 32 == 0;
    case PTX_OP_and_b32:
    case PTX_OP_setp_lt_u32:
    case PTX_OP_setp_lt_s32:
    case PTX_OP_setp_ge_u32:
    case PTX_OP_setp_ge_s32:
        return constant % 32 == 0;
    case PTX_OP_setp_le_u32:
    case PTX_OP_setp_le_s32:
    case PTX_OP_setp_gt_u32:
    case PTX_OP_setp_gt_s32:
        return constant % 32 == 31;
    default:
        return false;
    }
}

/* ---- levels of values ---- */

static unsigned level_of(const struct analysis *a, ptx_operand o)
{
    return o.kind == PTX_OPERAND_REGISTER ? a->reg[o.index] : CTA_UNIFORM;
}

/* shfl.idx: all lanes read one lane when its number is shared and the segment is the whole warp. */
static bool reads_one_lane(const struct analysis *a, const struct ptx_instruction *i)
{
    enum { WHOLE_WARP = 31 };
    const ptx_operand *o = &a->k->operands[i->first];
    return level_of(a, o[2]) <= WARP_UNIFORM && o[3].kind == PTX_OPERAND_IMMEDIATE &&
           o[3].bits == WHOLE_WARP && level_of(a, o[4]) <= WARP_UNIFORM;
}

/* The last operand of a collective is its mask: lanes of different masks get different results. */
static bool has_one_mask(const struct analysis *a, const struct ptx_instruction *i)
{
    return i->count < 2 || level_of(a, a->k->operands[i->first + i->count - 1]) <= WARP_UNIFORM;
}

static unsigned result_level(const struct analysis *a, const struct ptx_instruction *i,
                             unsigned sources)
{
    uint32_t flags = i->flags;
    if (i->op == PTX_PSEUDO_RAW)
        return LANE_VARYING;
    if (flags & PTX_FLAG_CTAUNI)
        return CTA_UNIFORM;
    if (flags & PTX_FLAG_LANEUNI)
        return has_one_mask(a, i) ? WARP_UNIFORM : LANE_VARYING;
    if (flags & PTX_FLAG_SHFLIDX)
        return reads_one_lane(a, i) ? WARP_UNIFORM : LANE_VARYING;
    if (flags & PTX_FLAG_VARIES)
        return LANE_VARYING;
    return sources == LANE_VARYING && drops_the_lane(a, i) ? WARP_UNIFORM : sources;
}

static unsigned guard_level(const struct analysis *a, const struct ptx_instruction *i)
{
    return i->guarded ? a->reg[i->guard] : CTA_UNIFORM;
}

/* ---- propagation ---- */

/* Blocks that read the register and were visited before the write at `at` are due again. */
static void raise_register(struct analysis *a, uint32_t reg, unsigned to, uint32_t at)
{
    if (to <= a->reg[reg])
        return;
    a->reg[reg] = (uint8_t)to;
    struct ptx_references refs = ptx_uses_of(a->uses, reg);
    for (uint32_t j = 0; j < refs.count && refs.list[j].at <= at; j++)
        if (refs.list[j].read)
            a->dirty[a->cfg->block_of[refs.list[j].at]] = 1;
    for (uint32_t j = refs.count; j-- > 0 && refs.list[j].at > at;)
        if (refs.list[j].read && a->cfg->block_of[refs.list[j].at] != a->cfg->block_of[at])
            a->dirty[a->cfg->block_of[refs.list[j].at]] = 1;
}

static void raise_block(struct analysis *a, uint32_t b, unsigned to)
{
    if (to <= a->block[b])
        return;
    a->block[b] = (uint8_t)to;
    a->dirty[b] = 1;
}

/* Raises the blocks reachable from b's successors before b's immediate postdominator. */
static void lend_level(struct analysis *a, uint32_t b, unsigned level)
{
    uint32_t next[3], depth = 0, from = b, join = a->ipdom[b];
    bool exits = join == a->cfg->count; /* regions up to the kernel's end contain one another */
    a->search++;
    for (;;) {
        for (unsigned s = ptx_cfg_successors(a->cfg, from, next); s-- > 0;) {
            uint32_t to = next[s];
            bool known = a->mark[to] == a->search || (exits && a->after_exit[to] >= level);
            if (to == a->cfg->count || to == join || known)
                continue;
            a->mark[to] = a->search;
            if (exits)
                a->after_exit[to] = (uint8_t)level;
            raise_block(a, to, level);
            a->stack[depth++] = to;
        }
        if (!depth)
            return;
        from = a->stack[--depth];
    }
}

static void visit_instruction(struct analysis *a, uint32_t b, uint32_t at)
{
    const struct ptx_instruction *i = &a->k->code[at];
    struct ptx_references refs = ptx_uses_at(a->uses, at);
    unsigned sources = CTA_UNIFORM, least = LANE_VARYING;
    for (uint32_t j = 0; j < refs.count; j++) {
        const struct ptx_reference *r = &refs.list[j];
        if (r->read && a->reg[r->reg] > sources)
            sources = a->reg[r->reg];
        if (r->written && a->reg[r->reg] < least)
            least = a->reg[r->reg];
    }
    if (least == LANE_VARYING)
        return; /* nothing is written, or nothing that could still rise */
    unsigned level = result_level(a, i, sources);
    if (level < a->block[b])
        level = a->block[b];
    if (level < guard_level(a, i))
        level = guard_level(a, i);
    for (uint32_t j = 0; level > least && j < refs.count; j++)
        if (refs.list[j].written)
            raise_register(a, refs.list[j].reg, level, at);
}

static void visit_block(struct analysis *a, uint32_t b)
{
    const struct ptx_basic_block *block = &a->cfg->blocks[b];
    for (uint32_t at = block->first; at < block->end; at++)
        visit_instruction(a, b, at);
    const struct ptx_instruction *last = &a->k->code[block->end - 1];
    unsigned level = guard_level(a, last);
    if (level > a->lent[b] && (last->flags & (PTX_FLAG_BRANCH | PTX_FLAG_EXIT))) {
        a->lent[b] = (uint8_t)level;
        lend_level(a, b, level);
    }
}

static void propagate(struct analysis *a)
{
    memset(a->dirty, 1, a->cfg->count);
    for (bool any = true; any;) {
        any = false;
        for (uint32_t b = 0; b < a->cfg->count; b++) {
            if (!a->dirty[b])
                continue;
            a->dirty[b] = 0;
            any = true;
            visit_block(a, b);
        }
    }
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
    uint32_t flags = i->flags;
    if (!(flags & (PTX_FLAG_CTABAR | PTX_FLAG_ALIGNED)))
        return;
    unsigned level = a->block[b] > guard_level(a, i) ? a->block[b] : guard_level(a, i);
    if ((flags & PTX_FLAG_CTABAR) && level > CTA_UNIFORM)
        ptx_fail_at(a->k, at, PTXGEN_ERROR_DIVERGENCE,
                    "it waits for every thread of the CTA, but stands behind %s", why(level));
    else if ((flags & PTX_FLAG_ALIGNED) && level > WARP_UNIFORM)
        ptx_fail_at(a->k, at, PTXGEN_ERROR_DIVERGENCE,
                    "it must be executed by all lanes of the warp together, but stands behind %s",
                    why(level));
}

void ptx_check_divergence(ptx_kernel *k, const struct ptx_cfg *cfg, const struct ptx_uses *uses)
{
    struct analysis a;
    if (prepare(&a, k, cfg, uses) && ptx_find_postdominators(k, cfg, a.ipdom)) {
        find_lane_indices(&a);
        propagate(&a);
        for (uint32_t b = 0; b < cfg->count; b++)
            for (uint32_t i = cfg->blocks[b].first; i < cfg->blocks[b].end; i++)
                check_instruction(&a, b, i);
    }
    release(&a);
}
