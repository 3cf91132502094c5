/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel whose time, for a short sequence, is a chain of latencies, so that each is begun as
 * early as may be:
 *
 *     before the kernel ahead has ended:  position; CTAs without keys leave; angles; old keys
 *     a warp for each head, k and v:      load, normalise, rotate, into shared memory
 *     a warp for each block of keys:      scores, weights, sums, into shared memory
 *     a thread for each pair of outputs:  the sums of all warps, divided
 *
 * With up to ALONE_KEYS keys that is all. With more, CTAs have splits of SPLIT_KEYS or a multiple,
 * and the one that comes last merges what they leave in memory.
 */
#include "attention_emit.h"

#include <stdio.h>
#include <string.h>

/*
 * With so many registers a thread the CTA fits beside one of gguf_linear's product, so that the one
 * ahead of attention may still run when it begins, and the one behind it begins while it runs.
 */
enum { FEW_REGISTERS = 112 };
enum { ALONE_KEYS = 256, SPLIT_KEYS = 128 };
/* Partial results that a thread loads before it waits. */
enum { MERGED = 8 };

static uint32_t size_of(uint8_t type)
{
    return (uint32_t)ptxgen_element_size((ptxgen_element)type);
}

static uint32_t log2_of(uint32_t power)
{
    return power > 1 ? 1 + log2_of(power / 2) : 0;
}

static uint32_t head_blocks(const struct attention_plan *p)
{
    return p->spec.heads / p->spec.kv_heads / p->heads;
}

static void find_place(struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    ptx_u32 unit = ptx_sreg_ctaid_x(k);
    const uint32_t blocks = head_blocks(e->plan);
    e->kv_head = blocks > 1 ? ptx_div_u32(k, unit, U32(blocks)) : unit;
    e->head_block = blocks > 1 ? ptx_rem_u32(k, unit, U32(blocks)) : ptx_mov_u32(k, U32(0));
    e->split = ptx_sreg_ctaid_y(k);
    e->splits = ptx_sreg_nctaid_y(k);
    e->token = ptx_sreg_ctaid_z(k);
    e->tid = ptx_sreg_tid_x(k);
    e->lane = ptx_and_b32(k, e->tid, U32(31));
    e->warp = ptx_shr_u32(k, e->tid, U32(5));
}

/* ---- which keys ---- */

/* Where the token stands, and which of its keys the CTA has. */
static void find_keys(struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    e->position = ptx_ld_global_u32(k, ptx_mad_wide_u32(k, e->token, U32(4), e->positions), 0);
    ptx_u32 slot = ptx_ld_global_u32(k, ptx_mad_wide_u32(k, e->token, U32(4), e->slots), 0);
    ptx_u32 count = ptx_add_u32(k, e->position, U32(1));
    if (e->spec->window)
        count = ptx_min_u32(k, count, U32(e->spec->window));
    ptx_u32 rounded = ptx_add_u32(k, count, ptx_sub_u32(k, e->splits, U32(1)));
    ptx_u32 share = ptx_div_u32(k, rounded, e->splits);
    ptx_u32 several = ptx_add_u32(k, share, U32(SPLIT_KEYS - 1));
    several = ptx_and_b32(k, several, U32(~(SPLIT_KEYS - 1u)));
    ptx_pred is_alone = ptx_setp_le_u32(k, count, U32(ALONE_KEYS));
    ptx_u32 length = ptx_selp_u32(k, U32(ALONE_KEYS), several, is_alone);
    ptx_u32 up = ptx_add_u32(k, count, ptx_sub_u32(k, length, U32(1)));
    e->used = ptx_div_u32(k, up, length);
    e->begin = ptx_mul_lo_u32(k, e->split, length);
    e->end = ptx_min_u32(k, ptx_add_u32(k, e->begin, length), count);
    ptx_u32 list = ptx_mad_lo_u32(k, slot, U32(e->spec->kv_heads), e->kv_head);
    ptx_u32 first = ptx_mul_lo_u32(k, list, e->context);
    e->key_list = ptx_mad_wide_u32(k, first, U32(attention_cache_row(e)), e->keys);
    e->value_list = ptx_mad_wide_u32(k, first, U32(attention_cache_row(e)), e->values);
}

ptx_pred attention_has_key(const struct attention_emitter *e, ptx_u32 number)
{
    ptx_pred exists = ptx_setp_lt_u32(e->k, number, e->end);
    return e->spec->rotates ? ptx_setp_bool_ne_u32(e->k, number, U32(0), exists) : exists;
}

ptx_u64 attention_row(const struct attention_emitter *e, ptx_u64 list, ptx_u32 number)
{
    ptx_u32 row = ptx_sub_u32(e->k, e->position, number);
    return ptx_mad_wide_u32(e->k, row, U32(attention_cache_row(e)), list);
}

/* ---- heads ---- */

/* Heads of the token: the CTA's queries, then k and v, one a warp and pass. */
struct heads {
    uint32_t count, passes;
    ptx_u32 number[MOST_PASSES];
    ptx_u64 from[MOST_PASSES];
    struct head gain[MOST_PASSES], head[MOST_PASSES];
};

/* What does not hang on the kernel ahead: where heads are, angles, gains. */
static void begin_heads(struct attention_emitter *e, struct heads *heads)
{
    ptx_kernel *k = e->k;
    const struct attention_spec *s = e->spec;
    const uint32_t queries = e->plan->heads;
    e->rope = (struct head_rope){.k = k,
                                 .head_size = s->head_size,
                                 .has_norm = s->has_norm,
                                 .interleaved = s->interleaved,
                                 .epsilon = s->epsilon};
    head_rope_begin(&e->rope, e->lane);
    if (s->rotates)
        head_rope_turn(&e->rope, e->turns, e->position);
    heads->count = queries + (s->rotates ? 2 : 0);
    heads->passes = (heads->count + WARPS - 1) / WARPS;
    ptx_u32 block = ptx_mad_lo_u32(k, e->kv_head, U32(head_blocks(e->plan)), e->head_block);
    ptx_u32 token = ptx_mul_lo_u32(k, e->token, U32(s->heads));
    ptx_u32 first = ptx_mad_lo_u32(k, block, U32(queries), token);
    ptx_u32 pair = ptx_mad_lo_u32(k, e->token, U32(s->kv_heads), e->kv_head);
    for (uint32_t i = 0; i < heads->passes; i++) {
        ptx_u32 number = ptx_add_u32(k, e->warp, U32(i * WARPS));
        ptx_pred is_query = ptx_setp_lt_u32(k, number, U32(queries));
        ptx_u32 query = ptx_add_u32(k, first, ptx_min_u32(k, number, U32(queries - 1)));
        ptx_u64 from = head_rope_address(&e->rope, e->q, query, PTXGEN_F32);
        heads->number[i] = number;
        heads->from[i] = from;
        if (!s->rotates)
            continue;
        ptx_pred is_key = ptx_setp_eq_u32(k, number, U32(queries));
        ptx_u64 other = ptx_selp_u64(k, e->k_new, e->v_new, is_key);
        other = head_rope_address(&e->rope, other, pair, PTXGEN_F32);
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

/* Queries and k; v stays as it is. */
static void turn_head(const struct attention_emitter *e, ptx_u32 number, const struct head *gain,
                      const struct head *head)
{
    ptx_kernel *k = e->k;
    ptx_if(k, ptx_setp_le_u32(k, number, U32(e->plan->heads))) {
        struct head turned = *head;
        head_rope_apply(&e->rope, gain, &turned);
        for (uint32_t p = 0; p < e->rope.pairs; p++)
            for (int i = 0; i < 2; i++)
                ptx_mov_f32_to(k, head->value[p][i], turned.value[p][i]);
    }
}

/* Of the CTAs that have the kv head, one writes k and v to the cache. */
static void store_own(const struct attention_emitter *e, ptx_u32 number, const struct head *head)
{
    ptx_kernel *k = e->k;
    const uint8_t type = e->spec->cache_type;
    ptx_u32 which = ptx_sub_u32(k, number, U32(e->plan->heads));
    ptx_u32 own = ptx_mad_lo_u32(k, which, U32(attention_cache_row(e)), e->shared_own);
    head_rope_share(&e->rope, type, own, head);
    ptx_if(k, ptx_setp_eq_u32(k, e->head_block, U32(0))) {
        ptx_pred is_key = ptx_setp_eq_u32(k, which, U32(0));
        ptx_u64 list = ptx_selp_u64(k, e->key_list, e->value_list, is_key);
        ptx_u64 at = head_rope_address(&e->rope, list, e->position, type);
        head_rope_store(&e->rope, type, at, head);
    }
}

/* Scores are in units of log2(e), so that weights are powers of two. */
static void share_query(struct attention_emitter *e, ptx_u32 number, const struct head *head)
{
    struct head scaled;
    for (uint32_t p = 0; p < e->rope.pairs; p++)
        for (int i = 0; i < 2; i++)
            scaled.value[p][i] =
                ptx_mul_f32(e->k, head->value[p][i], F32(e->spec->scale * 1.44269504f));
    e->how->share_query(e, number, &scaled);
}

/* The split that begins with key 0 has the token's own. */
static void share_heads(struct attention_emitter *e, const struct heads *heads)
{
    ptx_kernel *k = e->k;
    for (uint32_t i = 0; i < heads->passes; i++) {
        ptx_u32 number = heads->number[i];
        const struct head *head = &heads->head[i];
        if (e->spec->rotates)
            turn_head(e, number, &heads->gain[i], head);
        ptx_pred is_query = ptx_setp_lt_u32(k, number, U32(e->plan->heads));
        ptx_if(k, is_query)
            share_query(e, number, head);
        if (!e->spec->rotates)
            continue;
        ptx_pred is_head = ptx_setp_lt_u32(k, number, U32(heads->count));
        ptx_pred has_own = ptx_setp_bool_eq_u32(k, e->begin, U32(0), is_head);
        ptx_if(k, ptx_setp_bool_ge_u32(k, number, U32(e->plan->heads), has_own))
            store_own(e, number, head);
    }
}

/* ---- merging ---- */

void attention_share_score(const struct attention_emitter *e, ptx_pred writes, ptx_u32 head,
                           ptx_f32 largest, ptx_f32 weights)
{
    ptx_kernel *k = e->k;
    const ptx_f32 pair[] = {largest, weights};
    ptx_u32 row = ptx_mad_lo_u32(k, e->warp, U32(e->plan->heads), head);
    ptx_u32 at = ptx_mad_lo_u32(k, row, U32(8), e->shared_scores);
    ptx_guarded(k, writes)
        ptx_st_shared_v2_f32(k, at, 0, pair);
}

static uint32_t sums_row(const struct attention_emitter *e)
{
    return 4 * (e->spec->head_size + SUM_PAD);
}

ptx_u32 attention_sums(const struct attention_emitter *e, ptx_u32 head, ptx_u32 element)
{
    ptx_kernel *k = e->k;
    ptx_u32 row = ptx_mad_lo_u32(k, e->warp, U32(e->plan->heads), head);
    ptx_u32 at = ptx_mad_lo_u32(k, row, U32(sums_row(e)), e->shared_sums);
    return ptx_mad_lo_u32(k, element, U32(4), at);
}

/* What a thread has of two neighbouring outputs of the CTA's heads: pairs tid, tid + THREADS, … */
struct merged {
    ptx_f32 largest, weights, sum[2];
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

static struct merged merge(ptx_kernel *k, const struct merged *parts, uint32_t count)
{
    struct merged all = {.largest = parts[0].largest};
    for (uint32_t i = 1; i < count; i++)
        all.largest = ptx_max_f32(k, all.largest, parts[i].largest);
    for (uint32_t i = 0; i < count; i++) {
        ptx_f32 factor = ptx_ex2_approx_f32(k, ptx_sub_f32(k, parts[i].largest, all.largest));
        all.weights = i ? ptx_fma_f32(k, parts[i].weights, factor, all.weights)
                        : ptx_mul_f32(k, parts[i].weights, factor);
        for (int j = 0; j < 2; j++)
            all.sum[j] = i ? ptx_fma_f32(k, parts[i].sum[j], factor, all.sum[j])
                           : ptx_mul_f32(k, parts[i].sum[j], factor);
    }
    return all;
}

/* Threads past the last pair have what that has. */
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
            parts[w].weights = score[1];
        }
        result[i] = merge(k, parts, WARPS);
    }
}

/* ---- splits ---- */

/* The number of this token, kv head and block of heads. */
static ptx_u32 unit_number(const struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    ptx_u32 kv = ptx_mad_lo_u32(k, e->token, U32(e->spec->kv_heads), e->kv_head);
    return ptx_mad_lo_u32(k, kv, U32(head_blocks(e->plan)), e->head_block);
}

/* Where the thread's results of a split are: four numbers for each round, of all threads. */
static ptx_u64 partial_address(const struct attention_emitter *e, ptx_u32 split)
{
    ptx_kernel *k = e->k;
    ptx_u32 number = ptx_mad_lo_u32(k, unit_number(e), e->splits, split);
    ptx_u64 at = ptx_mad_wide_u32(k, number, U32(16 * rounds(e) * THREADS), e->partials);
    return ptx_mad_wide_u32(k, e->tid, U32(16), at);
}

static void store_partials(const struct attention_emitter *e,
                           const struct merged result[MOST_ROUNDS])
{
    ptx_kernel *k = e->k;
    ptx_u64 at = partial_address(e, e->split);
    for (uint32_t i = 0; i < rounds(e); i++) {
        const ptx_f32 four[4] = {result[i].largest, result[i].weights, result[i].sum[0],
                                 result[i].sum[1]};
        ptx_st_global_v4_f32(k, at, (int)(16 * i * THREADS), four);
    }
}

/* Loads bypass the L1 (.cg), which is not coherent with the stores of other CTAs. */
static struct merged load_partial(const struct attention_emitter *e, ptx_u32 split, uint32_t round)
{
    ptx_kernel *k = e->k;
    ptx_f32 four[4];
    ptx_u32 last = ptx_sub_u32(k, e->used, U32(1));
    ptx_u64 at = partial_address(e, ptx_min_u32(k, split, last));
    ptx_ld_global_v4_f32_m(k, PTX_LD_CG, four, at, (int)(16 * round * THREADS));
    ptx_pred exists = ptx_setp_le_u32(k, split, last);
    struct merged part = {.weights = four[1], .sum = {four[2], four[3]}};
    part.largest = ptx_selp_f32(k, four[0], F32(LOWEST), exists);
    return part;
}

static void merge_splits(const struct attention_emitter *e, struct merged result[MOST_ROUNDS])
{
    ptx_kernel *k = e->k;
    for (uint32_t i = 0; i < rounds(e); i++) {
        struct merged *all = &result[i];
        ptx_mov_f32_to(k, all->largest, F32(LOWEST));
        ptx_mov_f32_to(k, all->weights, F32(0));
        for (int j = 0; j < 2; j++)
            ptx_mov_f32_to(k, all->sum[j], F32(0));
        ptx_u32 split = ptx_mov_u32(k, U32(0));
        ptx_for(k, split, e->used, U32(MERGED)) {
            ptx_nounroll(k);
            struct merged parts[MERGED + 1];
            parts[0] = *all;
            for (uint32_t n = 0; n < MERGED; n++)
                parts[n + 1] = load_partial(e, ptx_add_u32(k, split, U32(n)), i);
            struct merged more = merge(k, parts, MERGED + 1);
            ptx_mov_f32_to(k, all->largest, more.largest);
            ptx_mov_f32_to(k, all->weights, more.weights);
            for (int j = 0; j < 2; j++)
                ptx_mov_f32_to(k, all->sum[j], more.sum[j]);
        }
    }
}

/* Whether this CTA is the last of its splits; the ticket is left 0 for the next launch. */
static ptx_pred come_last(const struct attention_emitter *e)
{
    ptx_kernel *k = e->k;
    ptx_u32 slot = ptx_shared_address(k, ptx_shared_declare(k, "ticket", 4, 4));
    ptx_u64 ticket = ptx_mad_wide_u32(k, unit_number(e), U32(4), e->tickets);
    ptx_bar_sync(k, 0);
    ptx_if(k, ptx_setp_eq_u32(k, e->tid, U32(0))) {
        ptx_u32 before = ptx_atom_global_add_u32_m(k, PTX_ACQ_REL | PTX_GPU, ticket, 0, U32(1));
        ptx_st_shared_u32(k, slot, 0, before);
        ptx_u32 after = ptx_add_u32(k, before, U32(1));
        ptx_if(k, ptx_setp_eq_u32(k, after, e->used))
            ptx_st_global_u32(k, ticket, 0, U32(0));
    }
    ptx_bar_sync(k, 0);
    ptx_u32 taken = ptx_add_u32(k, ptx_ld_shared_u32(k, slot, 0), U32(1));
    return ptx_setp_eq_u32(k, taken, e->used);
}

/* ---- the entry ---- */

static void store_outputs(const struct attention_emitter *e,
                          const struct merged result[MOST_ROUNDS])
{
    ptx_kernel *k = e->k;
    const uint8_t type = e->spec->type;
    ptx_u64 first = ptx_mul_wide_u32(k, unit_number(e), U32(pairs(e)));
    for (uint32_t i = 0; i < rounds(e); i++) {
        ptx_u32 number = pair_number(e, i);
        ptx_u64 pair = ptx_add_u64(k, first, ptx_cvt_u64_u32(k, number));
        ptx_u64 at = ptx_mad_lo_u64(k, pair, ptx_imm_u64(2 * size_of(type)), e->y);
        ptx_f32 factor = ptx_rcp_approx_f32(k, result[i].weights), value[2];
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
    begin_heads(e, &heads);
    if (rotates)
        e->how->begin(e);
    emit_wait_for_previous(k);
    ptx_section(k, "heads");
    load_heads(e, &heads);
    if (!rotates)
        e->how->begin(e);
    share_heads(e, &heads);
    ptx_bar_sync(k, 0);
    ptx_section(k, "scores and weighted values");
    e->how->walk(e);
    ptx_bar_sync(k, 0);
    ptx_section(k, "merge warps");
    find_place(e); /* again, which takes fewer registers than to hold it */
    merge_warps(e, result);
    ptx_section(k, "merge splits");
    ptx_if_else(k, ptx_setp_eq_u32(k, e->used, U32(1))) {
        store_outputs(e, result);
    } else {
        store_partials(e, result);
        ptx_if(k, come_last(e)) {
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
    e.how = p->spec.cache_type == PTXGEN_F32 ? &attention_by_lanes : &attention_by_tensor_cores;
    ptx_kernel_reqntid(k, THREADS, 1, 1);
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
    ptx_if(k, ptx_setp_lt_u32(k, e.split, e.used))
        attend(&e);
    ptx_kernel_end(k);
    return ptx_module_status(module, err);
}

ptxgen_status attention_check(const struct attention_spec *s, ptxgen_error *err)
{
    if (s->head_size != 64 && s->head_size != 128 && s->head_size != 256)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "attention: heads of %u elements; 64, 128 and 256 are supported",
                           s->head_size);
    if (s->kv_heads == 0 || s->heads % s->kv_heads)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "attention: %u heads cannot share %u kv heads evenly", s->heads,
                           s->kv_heads);
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
                                         .plan_version = 2,
                                         .spec_bytes = sizeof(struct attention_spec),
                                         .plan_bytes = sizeof(struct attention_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .describe = attention_describe};
    return &family;
}

uint64_t attention_partials_bytes(const struct attention_spec *spec, uint64_t m, uint32_t splits)
{
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
