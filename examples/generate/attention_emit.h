/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of attention's kernel share. A CTA of eight warps has one token, one split of its
 * keys, and up to eight query heads that share a kv head. Keys are counted back from the token: key
 * 0 is the token's own, key 1 that of the position before. So the first split has the token's own
 * key, however long the sequence is.
 *
 * Each warp takes some of the split's keys, by one of two walks (struct attention_walk). Both are
 * an online softmax: a warp keeps, for each head, the largest score so far, the sum of weights and
 * the weighted sum of values, where a weight is 2^(score − largest score), and multiplies both sums
 * by 2^(old − new) whenever the largest score grows. It leaves the three in shared memory, where
 * attention.c merges those of all warps.
 *
 * In the walk by tensor cores, lane 4g + t of a warp is lane t of group g, as in the layouts of
 * mma.sync.
 */
#ifndef GENERATE_ATTENTION_EMIT_H
#define GENERATE_ATTENTION_EMIT_H

#include "attention.h"
#include "head_rope.h"

enum {
    WARPS = 8,
    THREADS = 32 * WARPS,
    MOST_HEADS = 8,       /* query heads of a CTA */
    MOST_ELEMENTS = 1024, /* elements of all query heads of a CTA */
    MOST_SIZE = 256,      /* elements of a head */
    SUM_PAD = 8,          /* elements between the sums of heads, against bank conflicts */
    MOST_PASSES = 2       /* in which 8 warps load up to 8 queries, k and v */
};
/* Below every score, and finite, so that the difference of two largest scores is never NaN. */
#define LOWEST (-1e30f)

struct attention_plan {
    struct attention_spec spec;
    ptxgen_target target;
    uint32_t heads; /* query heads of a CTA */
};

struct attention_emitter;
struct attention_walk {
    /* Bytes of shared memory that queries take. */
    uint32_t (*query_bytes)(const struct attention_emitter *e);
    /*
     * Loads the first keys and values that are in the cache into registers. A launch that rotates
     * does so before it waits for the kernel ahead.
     */
    void (*prefetch_first)(struct attention_emitter *e);
    /* Stores the CTA's query `number`, scaled and held by the calling warp, to shared memory. */
    void (*store_query)(struct attention_emitter *e, ptx_u32 number, const struct head_part *head);
    /* Walks over the warp's keys, and stores the warp's scores and sums to shared memory. */
    void (*walk)(struct attention_emitter *e);
};

/* Keys and values that a lane of the walk of attention_tensor.c has in registers. */
struct attention_block {
    ptx_u32 key[MOST_SIZE / 32][4]; /* [i]: of key g, elements 32i + 8t to 32i + 8t + 7 */
    /* [n][i]: of the value of key 2t + n, elements 64i + 8g to 64i + 8g + 7 */
    ptx_u32 value[2][MOST_SIZE / 64][4];
};

struct attention_emitter {
    ptx_kernel *k;
    const struct attention_plan *plan;
    const struct attention_spec *spec;
    const struct attention_walk *how;
    ptx_u64 q, k_new, v_new, q_norm, k_norm, turns;
    ptx_u64 keys, values, positions, slots, y, partials, tickets;
    ptx_u32 context, splits, used_splits; /* used_splits: those that have keys */
    ptx_u32 tid, lane, warp, token, kv_head, head_block, split;
    ptx_u32 position;             /* of the token */
    ptx_u32 begin, end;           /* the split's keys: begin to end − 1, counted back */
    ptx_u64 key_list, value_list; /* the cache's rows of the token's sequence and the kv head */
    ptx_u32 shared_query;         /* the queries, in a layout chosen by the walk */
    ptx_u32 shared_own;           /* the token's own key, then its value, of the cache's type */
    ptx_u32 shared_sums;          /* f32 [warps, heads, D + SUM_PAD] */
    ptx_u32 shared_scores;        /* f32 [warps, heads, 2]: largest score, sum of weights */
    struct head_rope rope;
    struct attention_block block;
};

/* Bytes of a key or a value in the cache. */
static inline uint32_t attention_cache_row(const struct attention_emitter *e)
{
    return e->spec->head_size * emit_size_of(e->spec->cache_type);
}

/*
 * Whether key `number` can be read from the cache: it is below the split's end, and not the token's
 * own where the launch rotates and so has yet to write that. The caller sees to number >= begin.
 */
ptx_pred attention_in_cache(const struct attention_emitter *e, ptx_u32 number);
/* The address of key `number`'s row in key_list or value_list. */
ptx_u64 attention_row_address(const struct attention_emitter *e, ptx_u64 list, ptx_u32 number);
/*
 * 2^(score − largest): the weight of a key, and what brings sums relative to an old largest score
 * to a new one.
 */
ptx_f32 attention_weight(const struct attention_emitter *e, ptx_f32 score, ptx_f32 largest);
/* Stores the warp's largest score and sum of weights of head `head` where `writes` holds. */
void attention_store_score(const struct attention_emitter *e, ptx_pred writes, ptx_u32 head,
                           ptx_f32 largest, ptx_f32 weight_sum);
/* The address in shared memory of element `element` of the warp's sums of head `head`. */
ptx_u32 attention_sums_address(const struct attention_emitter *e, ptx_u32 head, ptx_u32 element);

extern const struct attention_walk attention_by_lanes, attention_by_tensor_cores;

#endif
