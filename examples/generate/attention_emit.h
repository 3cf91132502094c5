/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of attention's kernel share. A CTA of eight warps has up to eight query heads that
 * share a kv head, of one token, and one split of its keys. Keys are counted back from the token's
 * own, which is key 0: so the first split of a sequence has it, whatever the length.
 *
 * Each warp takes some of the keys, in one of two ways (struct attention_walk), and leaves in
 * shared memory, for each head, its largest score, the sum of its weights and the weighted sum of
 * its values, which attention.c merges.
 */
#ifndef GENERATE_ATTENTION_EMIT_H
#define GENERATE_ATTENTION_EMIT_H

#include "attention.h"
#include "head_rope.h"

enum {
    WARPS = 8,
    THREADS = 32 * WARPS,
    MOST_HEADS = 8,
    MOST_ELEMENTS = 1024, /* of a CTA's heads */
    MOST_SIZE = 256,      /* elements of a head */
    SUM_PAD = 8,          /* elements after a head's sums: lanes of four heads store at once */
    MOST_PASSES = 2       /* heads, k and v over warps */
};
/* Below every score, and above −∞, so that differences are numbers. */
#define LOWEST (-1e30f)

struct attention_plan {
    struct attention_spec spec;
    ptxgen_target target;
    uint32_t heads; /* query heads of a CTA */
};

struct attention_emitter;
struct attention_walk {
    uint32_t (*query_bytes)(const struct attention_emitter *e); /* shared memory for queries */
    /* Loads the first old keys and values: before the kernel ahead has ended, if the launch
     * rotates. */
    void (*begin)(struct attention_emitter *e);
    /* Puts query head `number` of the CTA, scaled, into shared memory; the warp has it. */
    void (*share_query)(struct attention_emitter *e, ptx_u32 number, const struct head *head);
    /* Finds the warp's sums and shares them. */
    void (*walk)(struct attention_emitter *e);
};

/* Keys that the walk of attention_tensor.c has in registers. */
struct attention_block {
    ptx_u32 key[MOST_SIZE / 32][4];      /* of key g, elements 32i + 8t to 32i + 8t + 7 */
    ptx_u32 value[2][MOST_SIZE / 64][4]; /* of keys 2t and 2t + 1, elements 64i + 8g to … + 7 */
};

struct attention_emitter {
    ptx_kernel *k;
    const struct attention_plan *plan;
    const struct attention_spec *spec;
    const struct attention_walk *how;
    ptx_u64 q, k_new, v_new, q_norm, k_norm, turns;
    ptx_u64 keys, values, positions, slots, y, partials, tickets;
    ptx_u32 context, splits, used; /* splits that have keys */
    ptx_u32 tid, lane, warp, token, kv_head, head_block, split;
    ptx_u32 position, begin, end; /* of the token; of the split's keys, counted back */
    ptx_u64 key_list, value_list; /* in the cache, of the sequence and kv head */
    ptx_u32 shared_query;         /* as the walk has it */
    ptx_u32 shared_own;           /* the token's own key and value, as the cache has them */
    ptx_u32 shared_sums;          /* f32 [warps, heads, D + SUM_PAD] */
    ptx_u32 shared_scores;        /* f32 [warps, heads, 2]: largest score, sum of weights */
    struct head_rope rope;
    struct attention_block block;
};

static inline uint32_t attention_cache_element(const struct attention_emitter *e)
{
    return (uint32_t)ptxgen_element_size((ptxgen_element)e->spec->cache_type);
}

static inline uint32_t attention_cache_row(const struct attention_emitter *e)
{
    return e->spec->head_size * attention_cache_element(e);
}

/* Whether the cache has key `number` of the split: with a launch that rotates it lacks key 0. */
ptx_pred attention_has_key(const struct attention_emitter *e, ptx_u32 number);
/* The row of key `number` in a list of the cache. */
ptx_u64 attention_row(const struct attention_emitter *e, ptx_u64 list, ptx_u32 number);
/* Writes a head's largest score and sum of weights where `writes` holds. */
void attention_share_score(const struct attention_emitter *e, ptx_pred writes, ptx_u32 head,
                           ptx_f32 largest, ptx_f32 weights);
/* The warp's sums of head `head`, from element `element` on. */
ptx_u32 attention_sums(const struct attention_emitter *e, ptx_u32 head, ptx_u32 element);

extern const struct attention_walk attention_by_lanes, attention_by_tensor_cores;

#endif
