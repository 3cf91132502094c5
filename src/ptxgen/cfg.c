/* SPDX-License-Identifier: Apache-2.0 */
/* Basic blocks and their successors. */
#include "internal.h"

#include <string.h>

static bool ends_block(const struct ptx_instruction *i)
{
    return i->flags & (PTX_FLAG_BRANCH | PTX_FLAG_EXIT);
}

static uint32_t target_of(const ptx_kernel *k, const struct ptx_instruction *i)
{
    return k->labels[k->operands[i->first].index].position;
}

static bool starts_block(const ptx_kernel *k, uint32_t i)
{
    return !i || k->code[i].op == PTX_PSEUDO_LABEL || ends_block(&k->code[i - 1]);
}

static uint32_t count_blocks(const ptx_kernel *k)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < k->code_count; i++)
        count += starts_block(k, i);
    return count;
}

static void find_blocks(ptx_kernel *k, struct ptx_cfg *cfg)
{
    uint32_t begun = 0;
    for (uint32_t i = 0; i < k->code_count; i++) {
        if (starts_block(k, i))
            cfg->blocks[begun++] = (struct ptx_basic_block){.first = i};
        cfg->blocks[begun - 1].end = i + 1;
        cfg->block_of[i] = begun - 1;
    }
}

static void link_block(ptx_kernel *k, struct ptx_cfg *cfg, uint32_t b)
{
    struct ptx_basic_block *block = &cfg->blocks[b];
    const struct ptx_instruction *last = &k->code[block->end - 1];
    uint32_t flags = last->flags;
    if (flags & PTX_FLAG_BRANCH)
        block->successors[block->successor_count++] = cfg->block_of[target_of(k, last)];
    if (flags & PTX_FLAG_EXIT)
        block->exits = true;
    bool falls_through = !ends_block(last) || last->guarded;
    if (falls_through && b + 1 < cfg->count)
        block->successors[block->successor_count++] = b + 1;
}

bool ptx_cfg_build(ptx_kernel *k, struct ptx_cfg *cfg)
{
    *cfg = (struct ptx_cfg){.count = count_blocks(k)};
    cfg->blocks = ptx_unset(k->module, cfg->count * sizeof *cfg->blocks);
    cfg->block_of = ptx_unset(k->module, k->code_count * sizeof *cfg->block_of);
    if (!cfg->blocks || !cfg->block_of) {
        ptx_cfg_free(k, cfg);
        return false;
    }
    find_blocks(k, cfg);
    for (uint32_t b = 0; b < cfg->count; b++)
        link_block(k, cfg, b);
    return true;
}

void ptx_cfg_free(ptx_kernel *k, struct ptx_cfg *cfg)
{
    ptx_release(k->module, cfg->blocks, cfg->count * sizeof *cfg->blocks);
    ptx_release(k->module, cfg->block_of, k->code_count * sizeof *cfg->block_of);
}
