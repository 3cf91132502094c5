/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of this kernel, for a short sequence, is a chain of latencies, each of which begins as
 * early as it can. In this order:
 *
 *     all threads                  position; CTAs without keys leave
 *     all, where it rotates        angles, gains, first keys and values of the cache
 *     all                          wait for the kernel ahead to end
 *     a warp for each q, k and v   load, normalise, rotate, store to shared memory
 *     a warp for some of the keys  scores, weights, sums, to shared memory
 *     a thread for two outputs     the sums of all warps, merged and divided
 *
 * With up to ALONE_KEYS keys that is all. A token with more keys has splits of SPLIT_KEYS keys or a
 * multiple. Each split's CTA stores its sums to global memory, and the last of them merges all.
 */
#include "attention_emit.h"

#include <stdio.h>
#include <string.h>

/*
 * CTAs of gguf_linear's products have up to 512 threads of up to 72 registers. Of the 65,536
 * registers of a multiprocessor they leave 256 · 112. With so many a thread, a CTA of attention
 * begins beside the product ahead of it, and the product behind it begins beside attention.
 */
enum { FEW_REGISTERS = 112 };
/* ALONE_KEYS: as many keys one CTA takes alone. SPLIT_KEYS: splits have a multiple of it, 2^n. */
enum { ALONE_KEYS = 256, SPLIT_KEYS = 128 };
/* Splits whose results a thread loads before it waits for them. */
enum { MERGED_AT_ONCE = 8 };

static uint32_t log2_of(uint32_t power)
{
    return power > 1 ? 1 + log2_of(power / 2) : 0;
}

/* CTAs over which the query heads of a kv head are spread. */
static uint32_t head_blocks(const struct attention_plan *p)
{
    return p->spec.heads / p->spec.kv_heads / p->heads;
}

/* Which token, heads and split the CTA has, and which warp and lane the thread is. */
static void find_place(struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    ptx_u32 x = ptx_sreg_ctaid_x(k);
    const uint32_t blocks = head_blocks(e->plan);
    e->kv_head = blocks > 1 ? ptx_div_u32(k, x, U32(blocks)) : x;
    e->head_block = blocks > 1 ? ptx_rem_u32(k, x, U32(blocks)) : ptx_mov_u32(k, U32(0));
    e->split = ptx_sreg_ctaid_y(k);
    e->splits = ptx_sreg_nctaid_y(k);
    e->token = ptx_sreg_ctaid_z(k);
    e->tid = ptx_sreg_tid_x(k);
    e->lane = ptx_and_b32(k, e->tid, U32(31));
    e->warp = ptx_shr_u32(k, e->tid, U32(5));
}

/* ---- which keys ---- */

static ptx_u32 ceil_div(ptx_kernel *k, ptx_u32 x, ptx_u32 y)
{
    ptx_u32 up = ptx_add_u32(k, x, ptx_sub_u32(k, y, U32(1)));
    return ptx_div_u32(k, up, y);
}

/* The token's position, how many splits have keys, and which keys the CTA's split has. */
static void find_keys(struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    e->position = ptx_ld_global_u32(k, ptx_mad_wide_u32(k, e->token, U32(4), e->positions), 0);
    ptx_u32 slot = ptx_ld_global_u32(k, ptx_mad_wide_u32(k, e->token, U32(4), e->slots), 0);
    ptx_u32 count = ptx_add_u32(k, e->position, U32(1));
    if (e->spec->window)
        count = ptx_min_u32(k, count, U32(e->spec->window));
    /* ceil(count / splits), rounded up to a multiple of SPLIT_KEYS */
    ptx_u32 per_split = ceil_div(k, count, e->splits);
    per_split = ptx_add_u32(k, per_split, U32(SPLIT_KEYS - 1));
    per_split = ptx_and_b32(k, per_split, U32(~(SPLIT_KEYS - 1u)));
    ptx_pred is_alone = ptx_setp_le_u32(k, count, U32(ALONE_KEYS));
    ptx_u32 split_length = ptx_selp_u32(k, U32(ALONE_KEYS), per_split, is_alone);
    e->used_splits = ceil_div(k, count, split_length);
    e->begin = ptx_mul_lo_u32(k, e->split, split_length);
    e->end = ptx_min_u32(k, ptx_add_u32(k, e->begin, split_length), count);
    ptx_u32 list = ptx_mad_lo_u32(k, slot, U32(e->spec->kv_heads), e->kv_head);
    ptx_u32 first = ptx_mul_lo_u32(k, list, e->context);
    e->key_list = ptx_mad_wide_u32(k, first, U32(attention_cache_row(e)), e->keys);
    e->value_list = ptx_mad_wide_u32(k, first, U32(attention_cache_row(e)), e->values);
}

ptx_pred attention_in_cache(const struct attention_emitter *e, ptx_u32 number)
{
    ptx_pred exists = ptx_setp_lt_u32(e->k, number, e->end);
    return e->spec->rotates ? ptx_setp_bool_ne_u32(e->k, number, U32(0), exists) : exists;
}

ptx_u64 attention_row_address(const struct attention_emitter *e, ptx_u64 list, ptx_u32 number)
{
    ptx_u32 row = ptx_sub_u32(e->k, e->position, number);
    return ptx_mad_wide_u32(e->k, row, U32(attention_cache_row(e)), list);
}

/* ---- heads ---- */

/*
 * The heads that the CTA loads: its queries, and with `rotates` then k and v. In each pass a warp
 * has one of them.
 */
struct heads {
    uint32_t count, passes;
    ptx_u32 number[MOST_PASSES]; /* the warp's head; from `count` on the warp has none */
    ptx_u64 from[MOST_PASSES];
    struct head_part gain[MOST_PASSES], head[MOST_PASSES];
};

/* What does not depend on the kernel ahead: the addresses of heads, the angles and the gains. */
static void prepare_heads(struct attention_emitter *e, struct heads *heads)
{
    ptx_kernel *k = e->k;
    const struct attention_spec *s = e->spec;
    const uint32_t queries = e->plan->heads;
    e->rope = (struct head_rope){.k = k,
                                 .head_size = s->head_size,
                                 .has_norm = s->has_norm,
                                 .interleaved = s->interleaved,
                                 .epsilon = s->epsilon};
    head_rope_init(&e->rope, e->lane);
    if (s->rotates)
        head_rope_find_angles(&e->rope, e->turns, e->position);
    heads->count = queries + (s->rotates ? 2 : 0);
    heads->passes = (heads->count + WARPS - 1) / WARPS;
    ptx_u32 block = ptx_mad_lo_u32(k, e->kv_head, U32(head_blocks(e->plan)), e->head_block);
    ptx_u32 token_first_head = ptx_mul_lo_u32(k, e->token, U32(s->heads));
    ptx_u32 cta_first_head = ptx_mad_lo_u32(k, block, U32(queries), token_first_head);
    ptx_u32 kv_row = ptx_mad_lo_u32(k, e->token, U32(s->kv_heads), e->kv_head);
    for (uint32_t i = 0; i < heads->passes; i++) {
        ptx_u32 number = ptx_add_u32(k, e->warp, U32(i * WARPS));
        ptx_pred is_query = ptx_setp_lt_u32(k, number, U32(queries));
        ptx_u32 query = ptx_add_u32(k, cta_first_head, ptx_min_u32(k, number, U32(queries - 1)));
        ptx_u64 from = head_rope_address(&e->rope, e->q, query, PTXGEN_F32);
        heads->number[i] = number;
        heads->from[i] = from;
        if (!s->rotates)
            continue;
        ptx_pred is_key = ptx_setp_eq_u32(k, number, U32(queries));
        ptx_u64 other = ptx_selp_u64(k, e->k_new, e->v_new, is_key);
        other = head_rope_address(&e->rope, other, kv_row, PTXGEN_F32);
        heads->from[i] = ptx_selp_u64(k, from, other, is_query);
        if (!s->has_norm)
            continue;
        ptx_u64 gain = ptx_selp_u64(k, e->q_norm, e->k_norm, is_query);
        gain = head_rope_address(&e->rope, gain, U32(0), PTXGEN_F32);
        head_rope_load(&e->rope, PTXGEN_F32, gain, &heads->gain[i]);
    }
}

static void load_heads(const struct attention_emitter *e, struct heads *heads)
{
    for (uint32_t i = 0; i < heads->passes; i++)
        head_rope_load(&e->rope, PTXGEN_F32, heads->from[i], &heads->head[i]);
}

/* Normalises and rotates queries and k, not v. Overwrites the head's registers. */
static void rotate_head(const struct attention_emitter *e, ptx_u32 number,
                        const struct head_part *gain, struct head_part *head)
{
    ptx_kernel *k = e->k;
    ptx_if(k, ptx_setp_le_u32(k, number, U32(e->plan->heads))) {
        struct head_part rotated = *head;
        head_rope_apply(&e->rope, gain, &rotated);
        for (uint32_t p = 0; p < e->rope.pairs; p++)
            for (int i = 0; i < 2; i++)
                ptx_mov_f32_to(k, head->value[p][i], rotated.value[p][i]);
    }
}

/*
 * Stores k or v to shared memory, rounded to the cache's type, for the CTA itself. Of the CTAs that
 * have the kv head, the one with its first block of query heads also stores it to the cache.
 */
static void store_own(const struct attention_emitter *e, ptx_u32 number,
                      const struct head_part *head)
{
    ptx_kernel *k = e->k;
    const uint8_t type = e->spec->cache_type;
    ptx_u32 which = ptx_sub_u32(k, number, U32(e->plan->heads));
    ptx_u32 own = ptx_mad_lo_u32(k, which, U32(attention_cache_row(e)), e->shared_own);
    head_rope_store_shared(&e->rope, type, own, head);
    ptx_if(k, ptx_setp_eq_u32(k, e->head_block, U32(0))) {
        ptx_pred is_key = ptx_setp_eq_u32(k, which, U32(0));
        ptx_u64 list = ptx_selp_u64(k, e->key_list, e->value_list, is_key);
        ptx_u64 at = head_rope_address(&e->rope, list, e->position, type);
        head_rope_store(&e->rope, type, at, head);
    }
}

/* Scales a query and stores it. Scores are in units of log₂(e): weights are powers of two. */
static void scale_query(struct attention_emitter *e, ptx_u32 number, const struct head_part *head)
{
    const float log2_e = 1.44269504f;
    struct head_part scaled;
    for (uint32_t p = 0; p < e->rope.pairs; p++)
        for (int i = 0; i < 2; i++)
            scaled.value[p][i] = ptx_mul_f32(e->k, head->value[p][i], F32(e->spec->scale * log2_e));
    e->how->store_query(e, number, &scaled);
}

/* Rotates the heads and stores them. The split that begins with key 0 stores k and v. */
static void finish_heads(struct attention_emitter *e, struct heads *heads)
{
    ptx_kernel *k = e->k;
    for (uint32_t i = 0; i < heads->passes; i++) {
        ptx_u32 number = heads->number[i];
        struct head_part *head = &heads->head[i];
        if (e->spec->rotates)
            rotate_head(e, number, &heads->gain[i], head);
        ptx_pred is_query = ptx_setp_lt_u32(k, number, U32(e->plan->heads));
        ptx_if(k, is_query)
            scale_query(e, number, head);
        if (!e->spec->rotates)
            continue;
        ptx_pred is_head = ptx_setp_lt_u32(k, number, U32(heads->count));
        ptx_pred has_own = ptx_setp_bool_eq_u32(k, e->begin, U32(0), is_head);
        ptx_if(k, ptx_setp_bool_ge_u32(k, number, U32(e->plan->heads), has_own))
            store_own(e, number, head);
    }
}

/* ---- merging ---- */

ptx_f32 attention_weight(const struct attention_emitter *e, ptx_f32 score, ptx_f32 largest)
{
    return ptx_ex2_approx_f32(e->k, ptx_sub_f32(e->k, score, largest));
}

void attention_store_score(const struct attention_emitter *e, ptx_pred writes, ptx_u32 head,
                           ptx_f32 largest, ptx_f32 weight_sum)
{
    ptx_kernel *k = e->k;
    const ptx_f32 pair[] = {largest, weight_sum};
    ptx_u32 row = ptx_mad_lo_u32(k, e->warp, U32(e->plan->heads), head);
    ptx_u32 at = ptx_mad_lo_u32(k, row, U32(8), e->shared_scores);
    ptx_guarded(k, writes)
        ptx_st_shared_v2_f32(k, at, 0, pair);
}

/* Bytes of a head's sums in shared memory. */
static uint32_t sums_row(const struct attention_emitter *e)
{
    return 4 * (e->spec->head_size + SUM_PAD);
}

ptx_u32 attention_sums_address(const struct attention_emitter *e, ptx_u32 head, ptx_u32 element)
{
    ptx_kernel *k = e->k;
    ptx_u32 row = ptx_mad_lo_u32(k, e->warp, U32(e->plan->heads), head);
    ptx_u32 at = ptx_mad_lo_u32(k, row, U32(sums_row(e)), e->shared_sums);
    return ptx_mad_lo_u32(k, element, U32(4), at);
}

/*
 * What is found of a pair, which is two neighbouring outputs of the CTA's heads. In round i a
 * thread has pair tid + i · THREADS.
 */
struct merged {
    ptx_f32 largest, weight_sum, sum[2];
};
enum { MOST_ROUNDS = MOST_ELEMENTS / 2 / THREADS };

static uint32_t pairs(const struct attention_emitter *e)
{
    return e->plan->heads * e->spec->head_size / 2;
}

static uint32_t rounds(const struct attention_emitter *e)
{
    return (pairs(e) + THREADS - 1) / THREADS;
}

static ptx_u32 pair_number(const struct attention_emitter *e, uint32_t round)
{
    return ptx_add_u32(e->k, e->tid, U32(round * THREADS));
}

static void assign_merged(ptx_kernel *k, const struct merged *to, struct merged from)
{
    ptx_mov_f32_to(k, to->largest, from.largest);
    ptx_mov_f32_to(k, to->weight_sum, from.weight_sum);
    for (int j = 0; j < 2; j++)
        ptx_mov_f32_to(k, to->sum[j], from.sum[j]);
}

static struct merged merge(const struct attention_emitter *e, const struct merged *parts,
                           uint32_t count)
{
    ptx_kernel *k = e->k;
    struct merged all = {.largest = parts[0].largest};
    for (uint32_t i = 1; i < count; i++)
        all.largest = ptx_max_f32(k, all.largest, parts[i].largest);
    for (uint32_t i = 0; i < count; i++) {
        ptx_f32 factor = attention_weight(e, parts[i].largest, all.largest);
        all.weight_sum = i ? ptx_fma_f32(k, parts[i].weight_sum, factor, all.weight_sum)
                           : ptx_mul_f32(k, parts[i].weight_sum, factor);
        for (int j = 0; j < 2; j++)
            all.sum[j] = i ? ptx_fma_f32(k, parts[i].sum[j], factor, all.sum[j])
                           : ptx_mul_f32(k, parts[i].sum[j], factor);
    }
    return all;
}

/* Threads past the last pair repeat it; store_outputs drops what they have. */
static void merge_warps(const struct attention_emitter *e, struct merged result[MOST_ROUNDS])
{
    ptx_kernel *k = e->k;
    const uint32_t D = e->spec->head_size, heads = e->plan->heads;
    for (uint32_t i = 0; i < rounds(e); i++) {
        struct merged parts[WARPS];
        ptx_u32 pair = ptx_min_u32(k, pair_number(e, i), U32(pairs(e) - 1));
        ptx_u32 head = ptx_shr_u32(k, pair, U32(log2_of(D / 2)));
        ptx_u32 in_head = ptx_and_b32(k, pair, U32(D / 2 - 1));
        ptx_u32 row = ptx_mad_lo_u32(k, head, U32(sums_row(e)), e->shared_sums);
        ptx_u32 sums = ptx_mad_lo_u32(k, in_head, U32(8), row);
        ptx_u32 scores = ptx_mad_lo_u32(k, head, U32(8), e->shared_scores);
        for (uint32_t w = 0; w < WARPS; w++) {
            ptx_f32 score[2];
            ptx_ld_shared_v2_f32(k, score, scores, (int)(8 * w * heads));
            ptx_ld_shared_v2_f32(k, parts[w].sum, sums, (int)(w * heads * sums_row(e)));
            parts[w].largest = score[0];
            parts[w].weight_sum = score[1];
        }
        result[i] = merge(e, parts, WARPS);
    }
}

/* ---- splits ---- */

/* The number of the CTA's block of heads, among those of all tokens and kv heads. */
static ptx_u32 head_block_number(const struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    ptx_u32 kv = ptx_mad_lo_u32(k, e->token, U32(e->spec->kv_heads), e->kv_head);
    return ptx_mad_lo_u32(k, kv, U32(head_blocks(e->plan)), e->head_block);
}

/*
 * The address of the thread's results of a split in f32 [head blocks, splits, rounds, THREADS, 4].
 */
static ptx_u64 partial_address(const struct attention_emitter *e, ptx_u32 split)
{
    ptx_kernel *k = e->k;
    ptx_u32 number = ptx_mad_lo_u32(k, head_block_number(e), e->splits, split);
    ptx_u64 at = ptx_mad_wide_u32(k, number, U32(16 * rounds(e) * THREADS), e->partials);
    return ptx_mad_wide_u32(k, e->tid, U32(16), at);
}

static void store_partials(const struct attention_emitter *e,
                           const struct merged result[MOST_ROUNDS])
{
    ptx_kernel *k = e->k;
    ptx_u64 at = partial_address(e, e->split);
    for (uint32_t i = 0; i < rounds(e); i++) {
        const ptx_f32 four[4] = {result[i].largest, result[i].weight_sum, result[i].sum[0],
                                 result[i].sum[1]};
        ptx_st_global_v4_f32(k, at, (int)(16 * i * THREADS), four);
    }
}

/*
 * What a split has of the thread's pair; past the last used split, what weighs nothing. Loads
 * bypass the L1 (.cg), which is not coherent with the stores of other CTAs.
 */
static struct merged load_partial(const struct attention_emitter *e, ptx_u32 split, uint32_t round)
{
    ptx_kernel *k = e->k;
    ptx_f32 four[4];
    ptx_u32 last = ptx_sub_u32(k, e->used_splits, U32(1));
    ptx_u64 at = partial_address(e, ptx_min_u32(k, split, last));
    ptx_ld_global_v4_f32_m(k, PTX_LD_CG, four, at, (int)(16 * round * THREADS));
    ptx_pred exists = ptx_setp_le_u32(k, split, last);
    struct merged part = {.weight_sum = four[1], .sum = {four[2], four[3]}};
    part.largest = ptx_selp_f32(k, four[0], F32(LOWEST), exists);
    return part;
}

static void merge_splits(const struct attention_emitter *e, struct merged result[MOST_ROUNDS])
{
    ptx_kernel *k = e->k;
    const struct merged nothing = {F32(LOWEST), F32(0), {F32(0), F32(0)}};
    for (uint32_t i = 0; i < rounds(e); i++) {
        struct merged *all = &result[i];
        assign_merged(k, all, nothing);
        ptx_u32 split = ptx_mov_u32(k, U32(0));
        ptx_for(k, split, e->used_splits, U32(MERGED_AT_ONCE)) {
            ptx_nounroll(k);
            struct merged parts[MERGED_AT_ONCE + 1];
            parts[0] = *all;
            for (uint32_t n = 0; n < MERGED_AT_ONCE; n++)
                parts[n + 1] = load_partial(e, ptx_add_u32(k, split, U32(n)), i);
            assign_merged(k, all, merge(e, parts, MERGED_AT_ONCE + 1));
        }
    }
}

/*
 * Whether this CTA is the last of the token's splits to have stored its sums. The last one leaves
 * the ticket 0 for the next launch.
 */
static ptx_pred is_last_cta(const struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    ptx_u32 ticket_copy = ptx_shared_address(k, ptx_shared_declare(k, "ticket", 4, 4));
    ptx_u64 ticket = ptx_mad_wide_u32(k, head_block_number(e), U32(4), e->tickets);
    ptx_bar_sync(k, 0);
    ptx_if(k, ptx_setp_eq_u32(k, e->tid, U32(0))) {
        ptx_u32 earlier_ctas =
            ptx_atom_global_add_u32_m(k, PTX_ACQ_REL | PTX_GPU, ticket, 0, U32(1));
        ptx_st_shared_u32(k, ticket_copy, 0, earlier_ctas);
        ptx_u32 ctas = ptx_add_u32(k, earlier_ctas, U32(1));
        ptx_if(k, ptx_setp_eq_u32(k, ctas, e->used_splits))
            ptx_st_global_u32(k, ticket, 0, U32(0));
    }
    ptx_bar_sync(k, 0);
    ptx_u32 ctas = ptx_add_u32(k, ptx_ld_shared_u32(k, ticket_copy, 0), U32(1));
    return ptx_setp_eq_u32(k, ctas, e->used_splits);
}

/* ---- the entry ---- */

static void store_outputs(const struct attention_emitter *e,
                          const struct merged result[MOST_ROUNDS])
{
    ptx_kernel *k = e->k;
    const uint8_t type = e->spec->type;
    ptx_u64 first = ptx_mul_wide_u32(k, head_block_number(e), U32(pairs(e)));
    for (uint32_t i = 0; i < rounds(e); i++) {
        ptx_u32 number = pair_number(e, i);
        ptx_u64 pair = ptx_add_u64(k, first, ptx_cvt_u64_u32(k, number));
        ptx_u64 at = ptx_mad_lo_u64(k, pair, ptx_imm_u64(2 * emit_size_of(type)), e->y);
        ptx_f32 factor = ptx_rcp_approx_f32(k, result[i].weight_sum), value[2];
        for (int j = 0; j < 2; j++)
            value[j] = ptx_mul_f32(k, result[i].sum[j], factor);
        ptx_if(k, ptx_setp_lt_u32(k, number, U32(pairs(e))))
            emit_store_pair(k, type, at, value);
    }
}

static void attend(struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    const bool rotates = e->spec->rotates;
    struct heads heads;
    struct merged result[MOST_ROUNDS];
    prepare_heads(e, &heads);
    if (rotates)
        e->how->prefetch_first(e);
    emit_wait_for_previous(k);
    ptx_section(k, "heads");
    load_heads(e, &heads);
    if (!rotates)
        e->how->prefetch_first(e);
    finish_heads(e, &heads);
    ptx_bar_sync(k, 0);
    ptx_section(k, "scores and weighted values");
    e->how->walk(e);
    ptx_bar_sync(k, 0);
    ptx_section(k, "merge warps");
    find_place(e); /* Finding these again takes fewer registers than keeping them. */
    merge_warps(e, result);
    ptx_section(k, "merge splits");
    ptx_if_else(k, ptx_setp_eq_u32(k, e->used_splits, U32(1))) {
        store_outputs(e, result);
    } else {
        store_partials(e, result);
        ptx_if(k, is_last_cta(e)) {
            merge_splits(e, result);
            store_outputs(e, result);
        }
    }
}

static void load_params(struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    e->q = ptx_param_u64(k, "q");
    e->k_new = ptx_param_u64(k, "k");
    e->v_new = ptx_param_u64(k, "v");
    e->q_norm = ptx_param_u64(k, "q_norm");
    e->k_norm = ptx_param_u64(k, "k_norm");
    e->turns = ptx_param_u64(k, "turns");
    e->keys = ptx_param_u64(k, "keys");
    e->values = ptx_param_u64(k, "values");
    e->positions = ptx_param_u64(k, "positions");
    e->slots = ptx_param_u64(k, "slots");
    e->y = ptx_param_u64(k, "y");
    e->partials = ptx_param_u64(k, "partials");
    e->tickets = ptx_param_u64(k, "tickets");
    e->context = ptx_param_u32(k, "context");
}

static ptx_u32 shared(ptx_kernel *k, const char *name, size_t bytes)
{
    return ptx_shared_address(k, ptx_shared_declare(k, name, bytes, 16));
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    const struct attention_plan *p = plan;
    ptx_kernel *k = ptx_kernel_begin(module, "attention");
    struct attention_emitter e = {.k = k, .plan = p, .spec = &p->spec};
    /* No mma.sync multiplies f32 without rounding it, to tf32 at best. */
    e.how = p->spec.cache_type == PTXGEN_F32 ? &attention_by_lanes : &attention_by_tensor_cores;
    ptx_kernel_reqntid(k, THREADS, 1, 1);
    /*
     * With fewer registers two kernels would spill: the walk by lanes, of an f32 cache, holds up to
     * eight queries and their sums, and blocks of keys and values of 256 elements take twice the
     * registers of those of 128.
     */
    if (p->spec.cache_type != PTXGEN_F32 && p->spec.head_size < MOST_SIZE)
        ptx_kernel_maxnreg(k, FEW_REGISTERS);
    e.shared_query = shared(k, "queries", e.how->query_bytes(&e));
    e.shared_own = shared(k, "own key and value", 2 * attention_cache_row(&e));
    e.shared_sums = shared(k, "sums of the warps", (size_t)WARPS * p->heads * sums_row(&e));
    e.shared_scores = shared(k, "scores of the warps", (size_t)WARPS * p->heads * 8);
    emit_let_next_begin(k);
    load_params(&e);
    find_place(&e);
    find_keys(&e);
    ptx_if(k, ptx_setp_lt_u32(k, e.split, e.used_splits))
        attend(&e);
    ptx_kernel_end(k);
    return ptx_module_status(module, err);
}

static bool is_supported(uint8_t type)
{
    return type == PTXGEN_F32 || type == PTXGEN_F16 || type == PTXGEN_BF16;
}

ptxgen_status attention_check(const struct attention_spec *s, ptxgen_error *err)
{
    if (s->head_size != 64 && s->head_size != 128 && s->head_size != 256)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "attention: heads of %u elements; 64, 128 and 256 are supported",
                           s->head_size);
    if (s->heads == 0 || s->kv_heads == 0 || s->heads % s->kv_heads)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "attention: %u heads cannot share %u kv heads evenly", s->heads,
                           s->kv_heads);
    if (!is_supported(s->type) || !is_supported(s->cache_type))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "attention: y of element type %u and a cache of %u; f32 (%u), f16 (%u) "
                           "and bf16 (%u) are supported",
                           s->type, s->cache_type, PTXGEN_F32, PTXGEN_F16, PTXGEN_BF16);
    return PTXGEN_OK;
}

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    struct attention_plan *p = plan;
    memset(p, 0, sizeof *p);
    memcpy(&p->spec, spec, sizeof p->spec);
    p->target = *target;
    const struct attention_spec *s = &p->spec;
    ptxgen_status status = attention_check(s, err);
    if (status)
        return status;
    const uint32_t group_size = s->heads / s->kv_heads;
    /* The query heads of a kv head go to as few CTAs as can have the same number each. */
    p->heads = group_size;
    for (uint32_t blocks = 2; p->heads > MOST_HEADS || p->heads * s->head_size > MOST_ELEMENTS;
         blocks++)
        if (group_size % blocks == 0)
            p->heads = group_size / blocks;
    return PTXGEN_OK;
}

void attention_describe(const void *spec, char *text, size_t size)
{
    const struct attention_spec *s = spec;
    snprintf(
        text, size,
        "heads=%u kv_heads=%u head_size=%u window=%u scale=%a type=%u cache=%u rotates=%u norm=%u "
        "interleaved=%u epsilon=%a",
        s->heads, s->kv_heads, s->head_size, s->window, (double)s->scale, s->type, s->cache_type,
        s->rotates, s->has_norm, s->interleaved, (double)s->epsilon);
}

const ptxgen_family *attention_family(void)
{
    static const ptxgen_family family = {.name = "generate_attention",
                                         .plan_version = 2, /* raised whenever the text changes */
                                         .spec_bytes = sizeof(struct attention_spec),
                                         .plan_bytes = sizeof(struct attention_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .describe = attention_describe};
    return &family;
}

uint64_t attention_partials_bytes(const struct attention_spec *spec, uint64_t m, uint32_t splits)
{
    /* A head block has results of all threads for each round, and no more rounds than heads. */
    return m * splits * spec->heads * THREADS * 4 * sizeof(float);
}

uint64_t attention_tickets_bytes(const struct attention_spec *spec, uint64_t m)
{
    return m * spec->heads * sizeof(uint32_t);
}

uint32_t attention_splits(const struct attention_spec *spec, const ptxgen_target *target,
                          uint64_t m, uint32_t context)
{
    enum { MOST_SPLITS = 32 };
    const uint64_t ctas = m * spec->kv_heads;
    uint64_t splits = (2 * (uint64_t)target->multiprocessors + ctas - 1) / ctas;
    uint64_t most = context <= ALONE_KEYS ? 1 : (context + SPLIT_KEYS - 1) / SPLIT_KEYS;
    splits = splits < most ? splits : most;
    return splits > MOST_SPLITS ? MOST_SPLITS : (uint32_t)splits;
}

ptxgen_status attention_launch(const ptxgen_loaded *loaded, const struct attention_args *args,
                               ptxgen_cu_stream stream, ptxgen_error *err)
{
    const struct attention_plan *plan = ptxgen_loaded_plan(loaded);
    struct attention_args a = *args;
    void *parameters[] = {&a.q,     &a.k,        &a.v,       &a.q_norm,    &a.k_norm,
                          &a.turns, &a.keys,     &a.values,  &a.positions, &a.slots,
                          &a.y,     &a.partials, &a.tickets, &a.context};
    ptxgen_launch_shape shape = launch_shape(
        &plan->target, THREADS, (uint64_t)plan->spec.kv_heads * head_blocks(plan), a.splits, a.m);
    return ptxgen_launch(ptxgen_loaded_entry(loaded, 0), &shape, stream, parameters, err);
}
