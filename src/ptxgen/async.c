/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies read before any wait. Shared addresses are traced to the buffer they came
 * from; a load from a buffer into which a copy was issued is an error when some path from the
 * kernel's entry leads there without a single wait. (Whether the wait covers the right stage of a
 * pipeline depends on run-time values: the emulator checks that.)
 */
#include "internal.h"

#include <string.h>

struct analysis {
    ptx_kernel *k;
    const struct ptx_cfg *cfg;
    uint64_t *origin;  /* by register: the buffers (modulo 64) it may point into */
    uint64_t *pending; /* by block entry: buffers with copies issued on a path without a wait */
    uint8_t *reached;  /* by block: some path without a wait leads here */
};

static uint64_t shared_base(const struct analysis *a, const struct ptx_instruction *i, bool written)
{
    const struct ptx_op *op = &ptx_ops[i->op];
    const ptx_operand *o = &a->k->operands[i->first];
    bool first = true;
    for (unsigned t = 0; t < op->term_count; t++) {
        if (op->terms[t].kind == PTX_TERM_ADDRESS && op->terms[t].space == 's') {
            if (!written || first)
                return o->kind == PTX_OPERAND_REGISTER ? a->origin[o->index] : 0;
            first = false;
        }
        o += ptx_term_operands(&op->terms[t], i->n);
    }
    return 0;
}

static void trace_origins(struct analysis *a)
{
    struct ptx_reference refs[PTX_MAX_REFERENCES];
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t at = 0; at < a->k->code_count; at++) {
            const struct ptx_instruction *i = &a->k->code[at];
            uint32_t flags = ptx_flags(i);
            uint64_t from = 0;
            unsigned count = ptx_references(a->k, i, refs);
            if (i->op == PTX_PSEUDO_SHARED_ADDRESS)
                from = UINT64_C(1) << (i->n % 64);
            else if (flags & PTX_FLAG_MATH)
                for (unsigned j = 0; j < count; j++)
                    from |= refs[j].read ? a->origin[refs[j].reg] : 0;
            for (unsigned j = 0; j < count; j++)
                if (refs[j].written && (from & ~a->origin[refs[j].reg])) {
                    a->origin[refs[j].reg] |= from;
                    changed = true;
                }
        }
    }
}

/* Walks a block from its pending set; true when the end is reached without a wait. */
static bool walk_block(struct analysis *a, uint32_t b, uint64_t *pending)
{
    for (uint32_t at = a->cfg->blocks[b].first; at < a->cfg->blocks[b].end; at++) {
        const struct ptx_instruction *i = &a->k->code[at];
        uint32_t flags = ptx_flags(i);
        if (flags & PTX_FLAG_CPWAIT)
            return false;
        if (flags & PTX_FLAG_CPASYNC)
            *pending |= shared_base(a, i, true);
        else if ((flags & PTX_FLAG_READSH) && (shared_base(a, i, false) & *pending)) {
            ptx_fail_at(a->k, at, PTXGEN_ERROR_ASYNC,
                        "it reads shared memory that an asynchronous copy writes, on a path that "
                        "has not waited for any copy");
            return false;
        }
    }
    return true;
}

static void walk(struct analysis *a)
{
    a->reached[0] = 1;
    for (bool changed = true; changed && !ptx_failed(a->k);) {
        changed = false;
        for (uint32_t b = 0; b < a->cfg->count && !ptx_failed(a->k); b++) {
            uint64_t pending = a->pending[b];
            if (!a->reached[b] || !walk_block(a, b, &pending))
                continue;
            const struct ptx_basic_block *block = &a->cfg->blocks[b];
            for (unsigned s = 0; s < block->successor_count; s++) {
                uint32_t to = block->successors[s];
                if (!a->reached[to] || (pending & ~a->pending[to])) {
                    a->reached[to] = 1;
                    a->pending[to] |= pending;
                    changed = true;
                }
            }
        }
    }
}

static bool copies_asynchronously(const ptx_kernel *k)
{
    for (uint32_t i = 0; i < k->code_count; i++)
        if (ptx_flags(&k->code[i]) & PTX_FLAG_CPASYNC)
            return true;
    return false;
}

void ptx_check_async(ptx_kernel *k, const struct ptx_cfg *cfg)
{
    if (ptx_failed(k) || !copies_asynchronously(k))
        return;
    ptx_module *m = k->module;
    struct analysis a = {k, cfg, ptx_scratch(m, k->register_count * sizeof *a.origin),
                         ptx_scratch(m, cfg->count * sizeof *a.pending), ptx_scratch(m, cfg->count)};
    if (a.origin && a.pending && a.reached) {
        trace_origins(&a);
        walk(&a);
    }
    ptx_release(m, a.origin, k->register_count * sizeof *a.origin);
    ptx_release(m, a.pending, cfg->count * sizeof *a.pending);
    ptx_release(m, a.reached, cfg->count);
}
