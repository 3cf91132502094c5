/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention over keys of a 16-bit cache, by mma.sync. A warp takes a block of 8 keys at a time, and
 * its next block is 64 keys further on. For the heads h of the CTA:
 *
 *     scores [16, 8 keys] = Q [16, D] · Kᵀ        row h of Q: upper part of query h; 8 + h: lower
 *     sums [D, 8] += Vᵀ [D, 8 keys] · P           column h of P: weights of head h
 *
 * A query is the sum of two 16-bit numbers, upper and lower, so that it loses next to nothing.
 * Weights are rounded once, and their sum is that of rounded weights. The first product leaves the
 * scores of a head in the lanes in which the second product needs its weights.
 *
 * Operands are used as they come from the cache. Both operands of the first product may permute D
 * alike. So the 16 bytes that lane 4g + t loads of key g serve as the B fragments of two k16
 * products. Of V, the word of key 2t and that of key 2t + 1 give, by prmt, rows g (the even
 * elements) and g + 8 (the odd ones) of the A fragment.
 *
 * 32 registers a lane hold a block of D = 128. The next keys are on their way while weights are
 * found, and the next values while scores are.
 */
#include "attention_emit.h"

#include <math.h>

/*
 * Keys of a warp's block, and of all warps' blocks; bytes between the queries in shared memory,
 * against bank conflicts: the eight lanes that read at once read two rows, which lie on all banks.
 */
enum { BLOCK = 8, STEP = WARPS * BLOCK, QUERY_PAD = 64 };

static uint32_t query_row(const struct attention_emitter *e)
{
    return 2 * e->spec->head_size + QUERY_PAD;
}

static uint32_t query_bytes(const struct attention_emitter *e)
{
    return 2 * e->plan->heads * query_row(e);
}

/* The lane's g. */
static ptx_u32 group_of(const struct attention_emitter *e)
{
    return ptx_shr_u32(e->k, e->lane, U32(2));
}

/* The lane's t. */
static ptx_u32 lane_in_group(const struct attention_emitter *e)
{
    return ptx_and_b32(e->k, e->lane, U32(3));
}

/* ---- the cache ---- */

/* The lane's key of the block that begins with key `first`. */
static ptx_u32 key_number(const struct attention_emitter *e, ptx_u32 first)
{
    return ptx_add_u32(e->k, first, group_of(e));
}

/* The key of value `i` of the lane's two, in the block that begins with key `first`. */
static ptx_u32 value_number(const struct attention_emitter *e, ptx_u32 first, uint32_t i)
{
    ptx_u32 from = ptx_add_u32(e->k, first, U32(i));
    return ptx_mad_lo_u32(e->k, lane_in_group(e), U32(2), from);
}

/*
 * Registers of keys and values that the cache lacks keep their words, of an earlier block or zeros.
 * load_own brings the token's own. The score of another such key is replaced by −∞, so that the
 * weight of its value is 0, and stale finite words do no harm.
 */
static void load_keys(struct attention_emitter *e, ptx_u32 first)
{
    ptx_kernel *k = e->k;
    ptx_u32 number = key_number(e, first);
    ptx_pred exists = attention_in_cache(e, number);
    ptx_u64 row = attention_row_address(e, e->key_list, number);
    ptx_u64 at = ptx_mad_wide_u32(k, lane_in_group(e), U32(16), row);
    ptx_guarded(k, exists)
        for (uint32_t c = 0; c < e->spec->head_size / 32; c++)
            ptx_ld_global_v4_u32_to(k, e->block.key[c], at, (int)(64 * c));
}

static void load_values(struct attention_emitter *e, ptx_u32 first)
{
    ptx_kernel *k = e->k;
    for (uint32_t i = 0; i < 2; i++) {
        ptx_u32 number = value_number(e, first, i);
        ptx_pred exists = attention_in_cache(e, number);
        ptx_u64 row = attention_row_address(e, e->value_list, number);
        ptx_u64 at = ptx_mad_wide_u32(k, group_of(e), U32(16), row);
        ptx_guarded(k, exists)
            for (uint32_t c = 0; c < e->spec->head_size / 64; c++)
                ptx_ld_global_v4_u32_to(k, e->block.value[i][c], at, (int)(128 * c));
    }
}

static void clear(ptx_kernel *k, ptx_u32 words[4])
{
    for (int i = 0; i < 4; i++)
        words[i] = ptx_mov_u32(k, U32(0));
}

static ptx_u32 first_key(const struct attention_emitter *e)
{
    return ptx_mad_lo_u32(e->k, e->warp, U32(BLOCK), e->begin);
}

/*
 * Brings the warp's later blocks to the L2; a lane prefetches lines of 128 bytes. With D = 64 a
 * block has 16 lines, and lanes 16 to 31 prefetch lines of values again, which does no harm.
 */
static void prefetch_blocks(const struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    const uint32_t lines = attention_cache_row(e) / 128, all = 2 * BLOCK * lines;
    ptx_u32 first = ptx_add_u32(k, first_key(e), U32(STEP));
    ptx_for(k, first, e->end, U32(STEP)) {
        ptx_nounroll(k);
        for (uint32_t i = 0; 32 * i < all; i++) {
            ptx_u32 item = ptx_add_u32(k, e->lane, U32(32 * i));
            ptx_u32 row = ptx_and_b32(k, item, U32(BLOCK - 1)), rest = ptx_shr_u32(k, item, U32(3));
            ptx_u32 line = ptx_and_b32(k, rest, U32(lines - 1));
            ptx_pred is_key = ptx_setp_lt_u32(k, rest, U32(lines));
            ptx_u64 list = ptx_selp_u64(k, e->key_list, e->value_list, is_key);
            ptx_u32 number = ptx_add_u32(k, first, row);
            ptx_pred exists = attention_in_cache(e, number);
            ptx_u64 at = attention_row_address(e, list, number);
            ptx_mad_wide_u32_to(k, at, line, U32(128), at);
            ptx_guarded(k, exists)
                ptx_prefetch_global_L2(k, at, 0);
        }
    }
}

/*
 * The registers are zeros first, since a product of weight 0 and an undefined word might be NaN. A
 * launch that rotates has time here, before the kernel ahead has ended, and prefetches later blocks
 * too; another launch has waited already, and would only put off its own loads.
 */
static void prefetch_first(struct attention_emitter *e)
{
    for (uint32_t c = 0; c < e->spec->head_size / 32; c++)
        clear(e->k, e->block.key[c]);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t c = 0; c < e->spec->head_size / 64; c++)
            clear(e->k, e->block.value[i][c]);
    ptx_u32 first = first_key(e);
    load_keys(e, first);
    load_values(e, first);
    if (e->spec->rotates)
        prefetch_blocks(e);
}

/* Loads the token's own key and value, of key 0, from shared memory into the lanes that have it. */
static void load_own(struct attention_emitter *e, ptx_u32 first)
{
    ptx_kernel *k = e->k;
    ptx_pred has_key = ptx_setp_eq_u32(k, key_number(e, first), U32(0));
    ptx_u32 key = ptx_mad_lo_u32(k, lane_in_group(e), U32(16), e->shared_own);
    ptx_guarded(k, has_key)
        for (uint32_t c = 0; c < e->spec->head_size / 32; c++)
            ptx_ld_shared_v4_u32_to(k, e->block.key[c], key, (int)(64 * c));
    ptx_pred has_value = ptx_setp_eq_u32(k, value_number(e, first, 0), U32(0));
    ptx_u32 value = ptx_mad_lo_u32(k, group_of(e), U32(16), e->shared_own);
    ptx_guarded(k, has_value)
        for (uint32_t c = 0; c < e->spec->head_size / 64; c++)
            ptx_ld_shared_v4_u32_to(k, e->block.value[0][c], value,
                                    (int)(attention_cache_row(e) + 128 * c));
}

/* ---- queries ---- */

/* The upper part is the query rounded to the cache's type, the lower part what that leaves. */
static void store_query(struct attention_emitter *e, ptx_u32 number, const struct head_part *head)
{
    ptx_kernel *k = e->k;
    const uint8_t type = e->spec->cache_type;
    struct head_part upper, lower;
    for (uint32_t p = 0; p < e->rope.pairs; p++)
        for (int i = 0; i < 2; i++) {
            upper.value[p][i] = emit_round(k, type, head->value[p][i]);
            lower.value[p][i] = ptx_sub_f32(k, head->value[p][i], upper.value[p][i]);
        }
    ptx_u32 row = ptx_mad_lo_u32(k, number, U32(query_row(e)), e->shared_query);
    head_rope_store_shared(&e->rope, type, row, &upper);
    ptx_u32 lower_row = ptx_add_u32(k, row, U32(e->plan->heads * query_row(e)));
    head_rope_store_shared(&e->rope, type, lower_row, &lower);
}

/* ---- products ---- */

/*
 * The lane's scores: of head g with keys 2t and 2t + 1. Lanes whose head the CTA lacks have those
 * of its last head, which nobody reads.
 */
static void find_scores(const struct attention_emitter *e, ptx_u32 query, ptx_f32 scores[2])
{
    ptx_kernel *k = e->k;
    /* Two independent accumulators, so that consecutive products need not wait for each other. */
    ptx_f32 sums[2][4];
    for (int i = 0; i < 8; i++)
        sums[i / 4][i % 4] = ptx_mov_f32(k, F32(0));
    for (uint32_t c = 0; c < e->spec->head_size / 32; c++) {
        ptx_u32 upper[4], lower[4];
        ptx_ld_shared_v4_u32(k, upper, query, (int)(64 * c));
        ptx_ld_shared_v4_u32(k, lower, query, (int)(e->plan->heads * query_row(e) + 64 * c));
        for (int half = 0; half < 2; half++) {
            const ptx_u32 a[4] = {upper[2 * half], lower[2 * half], upper[2 * half + 1],
                                  lower[2 * half + 1]};
            const ptx_u32 *b = &e->block.key[c][2 * half];
            if (e->spec->cache_type == PTXGEN_BF16)
                ptx_mma_m16n8k16_f32_bf16_to(k, sums[half], a, b, sums[half]);
            else
                ptx_mma_m16n8k16_f32_f16_to(k, sums[half], a, b, sums[half]);
        }
    }
    for (int i = 0; i < 2; i++) {
        ptx_f32 first = ptx_add_f32(k, sums[0][i], sums[0][i + 2]);
        ptx_f32 second = ptx_add_f32(k, sums[1][i], sums[1][i + 2]);
        scores[i] = ptx_add_f32(k, first, second);
    }
}

/* Scores become −∞ where keys are past the end. */
static void mask(const struct attention_emitter *e, ptx_u32 first, ptx_f32 scores[2])
{
    ptx_kernel *k = e->k;
    for (uint32_t i = 0; i < 2; i++) {
        ptx_pred exists = ptx_setp_lt_u32(k, value_number(e, first, i), e->end);
        scores[i] = ptx_selp_f32(k, scores[i], F32(-INFINITY), exists);
    }
}

/* What the lane has found so far. */
struct state {
    ptx_f32 largest;    /* of head g */
    ptx_f32 weight_sum; /* of head g, over the lane's keys */
    /*
     * sums[4i + j]: elements 64i + 8g + 2j and the next, over the warp's keys; [0] and [2] of head
     * 2t, [1] and [3] of head 2t + 1.
     */
    ptx_f32 sums[MOST_SIZE / 16][4];
};

/* The largest value of the four lanes of a group, which have the scores of a head. */
static ptx_f32 largest_of_group(ptx_kernel *k, ptx_f32 value)
{
    for (uint32_t mask = 1; mask < 4; mask *= 2) {
        ptx_f32 other = ptx_shfl_sync_bfly_f32(k, value, U32(mask), U32(31), ALL_LANES);
        value = ptx_max_f32(k, value, other);
    }
    return value;
}

/*
 * Brings the sums so far to a new largest score. `change` is 2^(old − new) of head g; lanes 8t and
 * 8t + 4 have that of the lane's heads 2t and 2t + 1.
 */
static void rescale(const struct attention_emitter *e, struct state *s, ptx_f32 change)
{
    ptx_kernel *k = e->k;
    ptx_mul_f32_to(k, s->weight_sum, s->weight_sum, change);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_u32 from = ptx_mad_lo_u32(k, lane_in_group(e), U32(8), U32(4 * i));
        ptx_f32 its = ptx_shfl_sync_idx_f32(k, change, from, U32(31), ALL_LANES);
        for (uint32_t n = 0; n < e->spec->head_size / 16; n++)
            for (uint32_t j = i; j < 4; j += 2)
                ptx_mul_f32_to(k, s->sums[n][j], s->sums[n][j], its);
    }
}

/* The weights of head g with keys 2t and 2t + 1: the second operand of the product with values. */
static ptx_u32 find_weights(const struct attention_emitter *e, struct state *s,
                            const ptx_f32 scores[2])
{
    ptx_kernel *k = e->k;
    ptx_f32 largest = largest_of_group(k, ptx_max_f32(k, scores[0], scores[1]));
    largest = ptx_max_f32(k, s->largest, largest);
    ptx_f32 change = attention_weight(e, s->largest, largest);
    ptx_mov_f32_to(k, s->largest, largest);
    rescale(e, s, change);
    ptx_f32 weight[2], rounded[2];
    for (int i = 0; i < 2; i++)
        weight[i] = attention_weight(e, scores[i], largest);
    ptx_u32 packed = emit_narrow_pair(k, e->spec->cache_type, weight[0], weight[1]);
    emit_widen_pair(k, e->spec->cache_type, packed, rounded);
    for (int i = 0; i < 2; i++)
        ptx_add_f32_to(k, s->weight_sum, s->weight_sum, rounded[i]);
    return packed;
}

/*
 * Adds the block's weighted values to the sums. Of a word of key 2t and that of key 2t + 1, both
 * lower halves become the A fragment's word of row g, and both upper halves that of row g + 8.
 */
static void add_values(const struct attention_emitter *e, struct state *s, ptx_u32 packed)
{
    ptx_kernel *k = e->k;
    static const uint32_t halves[2] = {0x5410, 0x7632};
    const ptx_u32 b[1] = {packed};
    for (uint32_t c = 0; c < e->spec->head_size / 64; c++)
        for (uint32_t word = 0; word < 4; word++) {
            ptx_f32 *sums = s->sums[4 * c + word];
            ptx_u32 a[2];
            for (int i = 0; i < 2; i++)
                a[i] = ptx_prmt_b32(k, e->block.value[0][c][word], e->block.value[1][c][word],
                                    U32(halves[i]));
            if (e->spec->cache_type == PTXGEN_BF16)
                ptx_mma_m16n8k8_f32_bf16_to(k, sums, a, b, sums);
            else
                ptx_mma_m16n8k8_f32_f16_to(k, sums, a, b, sums);
        }
}

/* ---- the walk ---- */

static struct state nothing(const struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    struct state s;
    s.largest = ptx_mov_f32(k, F32(LOWEST));
    s.weight_sum = ptx_mov_f32(k, F32(0));
    for (uint32_t n = 0; n < e->spec->head_size / 16; n++)
        for (int i = 0; i < 4; i++)
            s.sums[n][i] = ptx_mov_f32(k, F32(0));
    return s;
}

static void store_state(const struct attention_emitter *e, const struct state *s)
{
    ptx_kernel *k = e->k;
    ptx_u32 group = group_of(e), t = lane_in_group(e);
    ptx_f32 weight_sum = emit_sum_lanes(k, s->weight_sum, 4);
    ptx_pred is_head = ptx_setp_lt_u32(k, group, U32(e->plan->heads));
    ptx_pred writes = ptx_setp_bool_eq_u32(k, t, U32(0), is_head);
    attention_store_score(e, writes, group, s->largest, weight_sum);
    ptx_u32 element = ptx_shl_b32(k, group, U32(3));
    for (uint32_t i = 0; i < 2; i++) {
        ptx_u32 head = ptx_mad_lo_u32(k, t, U32(2), U32(i));
        ptx_u32 at = attention_sums_address(e, head, element);
        ptx_pred exists = ptx_setp_lt_u32(k, head, U32(e->plan->heads));
        ptx_guarded(k, exists)
            for (uint32_t n = 0; n < e->spec->head_size / 16; n += 2) {
                const ptx_f32 four[4] = {s->sums[n][i], s->sums[n][i + 2], s->sums[n + 1][i],
                                         s->sums[n + 1][i + 2]};
                ptx_st_shared_v4_f32(k, at, (int)(4 * (n / 4 * 64 + n % 4 * 2)), four);
            }
    }
}

static void walk(struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    ptx_u32 first = first_key(e);
    if (e->spec->rotates)
        load_own(e, first);
    ptx_u32 head = ptx_min_u32(k, group_of(e), U32(e->plan->heads - 1));
    ptx_u32 query = ptx_mad_lo_u32(k, head, U32(query_row(e)), e->shared_query);
    ptx_mad_lo_u32_to(k, query, lane_in_group(e), U32(16), query);
    struct state s = nothing(e);
    ptx_for(k, first, e->end, U32(STEP)) {
        ptx_nounroll(k);
        ptx_f32 scores[2];
        ptx_u32 next = ptx_add_u32(k, first, U32(STEP));
        find_scores(e, query, scores);
        load_keys(e, next);
        mask(e, first, scores);
        add_values(e, &s, find_weights(e, &s, scores));
        load_values(e, next);
    }
    store_state(e, &s);
}

const struct attention_walk attention_by_tensor_cores = {query_bytes, prefetch_first, store_query,
                                                         walk};
