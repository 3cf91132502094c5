/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention over keys of an f32 cache, without tensor cores. A group of D/8 lanes has one key,
 * eight elements a lane, so that a warp loads 256/D keys at once, and UNROLL times as many before
 * it waits for them. Each group has an online softmax of its own for each query head, of which each
 * lane holds eight elements of the weighted sum of values. The groups of a warp merge at the end.
 *
 *     warp 0:  key b + 0        key b + 1       …     of a step of 8 · 256/D · UNROLL keys,
 *     warp 1:  key b + 256/D    …                     D = 256: one key a warp, D = 64: four
 */
#include "attention_emit.h"

#include <math.h>

enum { UNROLL = 2 };

/* What a lane holds. */
struct state {
    ptx_u32 first_element; /* of the lane's eight, in a head */
    ptx_f32 query[MOST_HEADS][EIGHT];
    ptx_f32 largest[MOST_HEADS], weight_sum[MOST_HEADS], sum[MOST_HEADS][EIGHT];
};

static uint32_t lanes_of_key(const struct attention_emitter *e)
{
    return e->spec->head_size / EIGHT;
}

static uint32_t query_bytes(const struct attention_emitter *e)
{
    return e->plan->heads * e->spec->head_size * 4;
}

/* All loads are in the walk. */
static void prefetch_first(struct attention_emitter *e)
{
    (void)e;
}

static void store_query(struct attention_emitter *e, ptx_u32 number, const struct head_part *head)
{
    ptx_u32 row = ptx_mad_lo_u32(e->k, number, U32(e->spec->head_size * 4), e->shared_query);
    head_rope_store_shared(&e->rope, PTXGEN_F32, row, head);
}

static void start(const struct attention_emitter *e, struct state *s)
{
    ptx_kernel *k = e->k;
    ptx_u32 lane = ptx_and_b32(k, e->tid, U32(lanes_of_key(e) - 1));
    s->first_element = ptx_mul_lo_u32(k, lane, U32(EIGHT));
    ptx_u32 query = ptx_mad_lo_u32(k, s->first_element, U32(4), e->shared_query);
    for (uint32_t h = 0; h < e->plan->heads; h++) {
        for (int i = 0; i < EIGHT; i += 4)
            ptx_ld_shared_v4_f32(k, &s->query[h][i], query,
                                 (int)(4 * h * e->spec->head_size) + 4 * i);
        for (int i = 0; i < EIGHT; i++)
            s->sum[h][i] = ptx_mov_f32(k, F32(0));
        s->largest[h] = ptx_mov_f32(k, F32(LOWEST));
        s->weight_sum[h] = ptx_mov_f32(k, F32(0));
    }
}

/*
 * Loads the lane's elements of a key's row in `list`. They are zeros if there is no such key, and
 * come from shared memory, at `own`, if the key is the token's own and the launch rotates.
 */
static void load(const struct attention_emitter *e, const struct state *s, ptx_u64 list,
                 ptx_u32 number, ptx_u32 own, ptx_f32 to[EIGHT])
{
    ptx_kernel *k = e->k;
    ptx_pred exists = attention_in_cache(e, number);
    ptx_u64 row = attention_row_address(e, list, number);
    ptx_u64 at = ptx_mad_wide_u32(k, s->first_element, U32(4), row);
    for (int i = 0; i < EIGHT; i++)
        to[i] = ptx_mov_f32(k, F32(0));
    ptx_guarded(k, exists)
        for (int i = 0; i < EIGHT; i += 4)
            ptx_ld_global_v4_f32_to(k, to + i, at, 4 * i);
    if (!e->spec->rotates)
        return;
    ptx_pred is_own = ptx_setp_eq_u32(k, number, U32(0));
    ptx_u32 own_at = ptx_mad_lo_u32(k, s->first_element, U32(4), own);
    ptx_guarded(k, is_own)
        for (int i = 0; i < EIGHT; i += 4)
            ptx_ld_shared_v4_f32_to(k, to + i, own_at, 4 * i);
}

/* The scores of a key with each query head; −∞ for keys past the end. */
static void find_masked_scores(const struct attention_emitter *e, const struct state *s,
                               const ptx_f32 key[EIGHT], ptx_u32 number, ptx_f32 scores[MOST_HEADS])
{
    ptx_kernel *k = e->k;
    ptx_pred exists = ptx_setp_lt_u32(k, number, e->end);
    for (uint32_t h = 0; h < e->plan->heads; h++) {
        ptx_f32 dot = ptx_mul_f32(k, s->query[h][0], key[0]);
        for (int i = 1; i < EIGHT; i++)
            dot = ptx_fma_f32(k, s->query[h][i], key[i], dot);
        dot = emit_sum_lanes(k, dot, lanes_of_key(e));
        scores[h] = ptx_selp_f32(k, dot, F32(-INFINITY), exists);
    }
}

/* Finds the weights of a step's keys and adds its values, relative to the new largest score. */
static void add_weighted_values(const struct attention_emitter *e, struct state *s,
                                ptx_f32 value[UNROLL][EIGHT], ptx_f32 scores[UNROLL][MOST_HEADS])
{
    ptx_kernel *k = e->k;
    for (uint32_t h = 0; h < e->plan->heads; h++) {
        ptx_f32 largest = s->largest[h];
        for (uint32_t u = 0; u < UNROLL; u++)
            largest = ptx_max_f32(k, largest, scores[u][h]);
        ptx_f32 change = attention_weight(e, s->largest[h], largest);
        ptx_mov_f32_to(k, s->largest[h], largest);
        ptx_mul_f32_to(k, s->weight_sum[h], s->weight_sum[h], change);
        for (int i = 0; i < EIGHT; i++)
            ptx_mul_f32_to(k, s->sum[h][i], s->sum[h][i], change);
        for (uint32_t u = 0; u < UNROLL; u++) {
            ptx_f32 weight = attention_weight(e, scores[u][h], largest);
            ptx_add_f32_to(k, s->weight_sum[h], s->weight_sum[h], weight);
            for (int i = 0; i < EIGHT; i++)
                ptx_fma_f32_to(k, s->sum[h][i], weight, value[u][i], s->sum[h][i]);
        }
    }
}

/* Merges the groups of a warp; afterwards each group has the warp's sums. */
static void merge_groups(const struct attention_emitter *e, struct state *s)
{
    ptx_kernel *k = e->k;
    for (uint32_t mask = lanes_of_key(e); mask < 32; mask *= 2)
        for (uint32_t h = 0; h < e->plan->heads; h++) {
            ptx_f32 mine = s->largest[h];
            ptx_f32 other = ptx_shfl_sync_bfly_f32(k, mine, U32(mask), U32(31), ALL_LANES);
            s->largest[h] = ptx_max_f32(k, mine, other);
            ptx_f32 change = attention_weight(e, mine, s->largest[h]);
            ptx_f32 scaled = ptx_mul_f32(k, s->weight_sum[h], change);
            ptx_f32 more = ptx_shfl_sync_bfly_f32(k, scaled, U32(mask), U32(31), ALL_LANES);
            s->weight_sum[h] = ptx_add_f32(k, scaled, more);
            for (int i = 0; i < EIGHT; i++) {
                scaled = ptx_mul_f32(k, s->sum[h][i], change);
                more = ptx_shfl_sync_bfly_f32(k, scaled, U32(mask), U32(31), ALL_LANES);
                s->sum[h][i] = ptx_add_f32(k, scaled, more);
            }
        }
}

static void store_state(const struct attention_emitter *e, const struct state *s)
{
    ptx_kernel *k = e->k;
    ptx_pred is_first = ptx_setp_eq_u32(k, e->lane, U32(0));
    ptx_pred is_group = ptx_setp_lt_u32(k, e->lane, U32(lanes_of_key(e)));
    for (uint32_t h = 0; h < e->plan->heads; h++) {
        attention_store_score(e, is_first, U32(h), s->largest[h], s->weight_sum[h]);
        ptx_u32 at = attention_sums_address(e, U32(h), s->first_element);
        ptx_guarded(k, is_group)
            for (int i = 0; i < EIGHT; i += 4)
                ptx_st_shared_v4_f32(k, at, 4 * i, &s->sum[h][i]);
    }
}

static void walk(struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    const uint32_t groups = 32 / lanes_of_key(e), step = UNROLL * WARPS * groups;
    struct state s;
    start(e, &s);
    ptx_u32 own_value = ptx_add_u32(k, e->shared_own, U32(attention_cache_row(e)));
    ptx_u32 group = ptx_div_u32(k, e->lane, U32(lanes_of_key(e)));
    ptx_u32 mine = ptx_mad_lo_u32(k, e->warp, U32(groups), group);
    ptx_u32 base = ptx_mov_u32(k, e->begin);
    ptx_for(k, base, e->end, U32(step)) {
        ptx_nounroll(k);
        ptx_f32 key[UNROLL][EIGHT], value[UNROLL][EIGHT], scores[UNROLL][MOST_HEADS];
        ptx_u32 number[UNROLL];
        ptx_u32 first = ptx_add_u32(k, base, mine);
        for (uint32_t u = 0; u < UNROLL; u++) {
            number[u] = ptx_add_u32(k, first, U32(u * WARPS * groups));
            load(e, &s, e->key_list, number[u], e->shared_own, key[u]);
            load(e, &s, e->value_list, number[u], own_value, value[u]);
        }
        for (uint32_t u = 0; u < UNROLL; u++)
            find_masked_scores(e, &s, key[u], number[u], scores[u]);
        add_weighted_values(e, &s, value, scores);
    }
    merge_groups(e, &s);
    store_state(e, &s);
}

const struct attention_walk attention_by_lanes = {query_bytes, prefetch_first, store_query, walk};
