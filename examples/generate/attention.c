/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CTA of eight warps has up to eight query heads that share a kv head, of one token, and one
 * split of its keys. D/8 lanes have a key together, eight elements each, so that a warp loads 256/D
 * keys at once, and UNROLL times as many before it waits. Every such group of lanes keeps, for each
 * query head, the largest score so far, the sum of weights and its eight elements of the weighted
 * sum of values (an online softmax); at the end these are merged over the groups of a warp, the
 * warps and the splits.
 *
 *     warp 0:  key b + 0        key b + 1       …     of a step of 8 · 256/D · UNROLL keys,
 *     warp 1:  key b + 256/D    …                     D = 256: one key a warp, D = 64: four
 */
#include "attention.h"

#include "lane_rope.h"

#include <stdio.h>
#include <string.h>

enum { WARPS = 8, THREADS = 32 * WARPS, MOST_HEADS = 8, MOST_UNROLL = 4, STEPS = 2 };
enum { MOST_ELEMENTS = 1024, MOST_OUTPUTS = MOST_ELEMENTS / THREADS }; /* of a CTA's heads */
static const float lowest =
    -1e30f; /* below every score, and above −∞, so that differences are numbers */

struct attention_plan {
    struct attention_spec spec;
    ptxgen_target target;
    uint32_t heads;  /* query heads of a CTA */
    uint32_t unroll; /* keys that a lane loads before it waits */
};

struct emitter {
    ptx_kernel *k;
    const struct attention_plan *plan;
    const struct attention_spec *spec;
    uint32_t lanes, groups; /* lanes that have a key, and keys that a warp has at once */
    ptx_u64 q, k_new, v_new, q_norm, k_norm, turns;
    ptx_u64 keys, values, positions, slots, y, partials, tickets;
    ptx_u32 context, splits, used; /* splits that have keys */
    ptx_u32 tid, warp, token, kv_head, head_block, split;
    ptx_u32 slot, position;        /* of the token in the cache */
    ptx_u32 begin, end, end_there; /* keys of the split, and of those that the cache has */
    struct lane_rope rope;
    ptx_f32 q_gain[EIGHT], k_gain[EIGHT];
    ptx_u32 part; /* the lane's first element */
    ptx_f32 query[MOST_HEADS][EIGHT];
    ptx_f32 largest[MOST_HEADS], weights[MOST_HEADS], sum[MOST_HEADS][EIGHT];
    ptx_u32 shared_sums, shared_scores;
};

static uint32_t size_of(uint8_t type)
{
    return (uint32_t)ptxgen_element_size((ptxgen_element)type);
}

static uint32_t head_blocks(const struct attention_plan *p)
{
    return p->spec.heads / p->spec.kv_heads / p->heads;
}

/* Keys of a CTA between two waits. */
static uint32_t step_keys(const struct attention_plan *p)
{
    return WARPS * (256 / p->spec.head_size) * p->unroll;
}

/* ---- which keys ---- */

/*
 * The keys of a token are divided into splits of a multiple of a few steps, so that a short
 * sequence is not cut into pieces that cost more to merge than to read.
 */
static void find_keys(struct emitter *e)
{
    ptx_kernel *k = e->k;
    const uint32_t unit = STEPS * step_keys(e->plan);
    e->position = ptx_ld_global_u32(k, ptx_mad_wide_u32(k, e->token, U32(4), e->positions), 0);
    e->slot = ptx_ld_global_u32(k, ptx_mad_wide_u32(k, e->token, U32(4), e->slots), 0);
    ptx_u32 after = ptx_add_u32(k, e->position, U32(1)), first = ptx_mov_u32(k, U32(0));
    if (e->spec->window) {
        ptx_u32 seen = ptx_min_u32(k, after, U32(e->spec->window));
        first = ptx_sub_u32(k, after, seen);
    }
    ptx_u32 count = ptx_sub_u32(k, after, first);
    ptx_u32 rounded = ptx_add_u32(k, count, ptx_sub_u32(k, e->splits, U32(1)));
    ptx_u32 share = ptx_div_u32(k, rounded, e->splits);
    ptx_u32 units = ptx_div_u32(k, ptx_add_u32(k, share, U32(unit - 1)), U32(unit));
    ptx_u32 length = ptx_mul_lo_u32(k, units, U32(unit));
    ptx_u32 up = ptx_add_u32(k, count, ptx_sub_u32(k, length, U32(1)));
    e->used = ptx_div_u32(k, up, length);
    e->begin = ptx_mad_lo_u32(k, e->split, length, first);
    e->end = ptx_min_u32(k, ptx_add_u32(k, e->begin, length), after);
    e->end_there = e->spec->rotates ? ptx_min_u32(k, e->end, e->position) : e->end;
}

/* The lane's part of key or value 0 of the sequence. */
static ptx_u64 cache_address(const struct emitter *e, ptx_u64 base, ptx_u32 slot)
{
    ptx_kernel *k = e->k;
    const uint32_t bytes = size_of(e->spec->cache_type);
    ptx_u32 list = ptx_mad_lo_u32(k, slot, U32(e->spec->kv_heads), e->kv_head);
    ptx_u32 row = ptx_mul_lo_u32(k, list, e->context);
    ptx_u64 at = ptx_mad_wide_u32(k, row, U32(e->spec->head_size * bytes), base);
    return ptx_mad_wide_u32(k, e->part, U32(bytes), at);
}

/* ---- scores and sums ---- */

/* Scores are in units of log2(e), so that weights are powers of two. */
static void load_query(struct emitter *e)
{
    ptx_kernel *k = e->k;
    const uint32_t D = e->spec->head_size;
    ptx_u32 first = ptx_mad_lo_u32(k, e->kv_head, U32(head_blocks(e->plan)), e->head_block);
    ptx_u32 token = ptx_mul_lo_u32(k, e->token, U32(e->spec->heads));
    ptx_u32 head = ptx_mad_lo_u32(k, first, U32(e->plan->heads), token);
    ptx_u64 at = ptx_mad_wide_u32(k, head, U32(4 * D), e->q);
    for (uint32_t h = 0; h < e->plan->heads; h++) {
        ptx_f32 head_elements[EIGHT];
        lane_rope_load(&e->rope, at, head_elements);
        at = ptx_add_u64(k, at, ptx_imm_u64(4 * D));
        if (e->spec->rotates)
            lane_rope_apply(&e->rope, e->q_gain, head_elements);
        for (int i = 0; i < EIGHT; i++) {
            e->query[h][i] = ptx_mul_f32(k, head_elements[i], F32(e->spec->scale * 1.44269504f));
            e->sum[h][i] = ptx_mov_f32(k, F32(0));
        }
        e->largest[h] = ptx_mov_f32(k, F32(lowest));
        e->weights[h] = ptx_mov_f32(k, F32(0));
    }
}

/* The scores of a key with each query head; −∞ for keys past the end. */
static void find_scores(const struct emitter *e, const struct eight *words, ptx_pred exists,
                        ptx_f32 scores[MOST_HEADS])
{
    ptx_kernel *k = e->k;
    ptx_f32 key[EIGHT];
    emit_widen_eight(k, e->spec->cache_type, words, key);
    for (uint32_t h = 0; h < e->plan->heads; h++) {
        ptx_f32 dot = ptx_mul_f32(k, e->query[h][0], key[0]);
        for (int i = 1; i < EIGHT; i++)
            dot = ptx_fma_f32(k, e->query[h][i], key[i], dot);
        dot = emit_sum_lanes(k, dot, e->lanes);
        scores[h] = ptx_selp_f32(k, dot, F32(-1.0f / 0.0f), exists);
    }
}

/* Adds a step's values, after the sums so far were brought to the new largest score. */
static void add_values(struct emitter *e, uint32_t unroll, const struct eight *words,
                       ptx_f32 scores[MOST_UNROLL][MOST_HEADS])
{
    ptx_kernel *k = e->k;
    for (uint32_t h = 0; h < e->plan->heads; h++) {
        ptx_f32 largest = e->largest[h];
        for (uint32_t u = 0; u < unroll; u++)
            largest = ptx_max_f32(k, largest, scores[u][h]);
        ptx_f32 change = ptx_ex2_approx_f32(k, ptx_sub_f32(k, e->largest[h], largest));
        ptx_mov_f32_to(k, e->largest[h], largest);
        ptx_mul_f32_to(k, e->weights[h], e->weights[h], change);
        for (int i = 0; i < EIGHT; i++)
            ptx_mul_f32_to(k, e->sum[h][i], e->sum[h][i], change);
        for (uint32_t u = 0; u < unroll; u++) {
            scores[u][h] = ptx_ex2_approx_f32(k, ptx_sub_f32(k, scores[u][h], largest));
            ptx_add_f32_to(k, e->weights[h], e->weights[h], scores[u][h]);
        }
    }
    for (uint32_t u = 0; u < unroll; u++) {
        ptx_f32 value[EIGHT];
        emit_widen_eight(k, e->spec->cache_type, &words[u], value);
        for (uint32_t h = 0; h < e->plan->heads; h++)
            for (int i = 0; i < EIGHT; i++)
                ptx_fma_f32_to(k, e->sum[h][i], scores[u][h], value[i], e->sum[h][i]);
    }
}

/* Keys past the end are read as the last one, whose memory is there. */
static void walk_keys(struct emitter *e)
{
    ptx_kernel *k = e->k;
    const uint32_t unroll = e->plan->unroll,
                   row = e->spec->head_size * size_of(e->spec->cache_type);
    ptx_u64 keys = cache_address(e, e->keys, e->slot),
            values = cache_address(e, e->values, e->slot);
    ptx_u32 group = ptx_div_u32(k, ptx_and_b32(k, e->tid, U32(31)), U32(e->lanes));
    ptx_u32 mine = ptx_mad_lo_u32(k, e->warp, U32(e->groups), group);
    ptx_u32 last = ptx_sub_u32(k, e->end_there, U32(1));
    ptx_u32 base = ptx_mov_u32(k, e->begin);
    ptx_for(k, base, e->end_there, U32(step_keys(e->plan))) {
        ptx_nounroll(k);
        struct eight key[MOST_UNROLL], value[MOST_UNROLL];
        ptx_f32 scores[MOST_UNROLL][MOST_HEADS];
        ptx_pred exists[MOST_UNROLL];
        ptx_u32 first = ptx_add_u32(k, base, mine);
        for (uint32_t u = 0; u < unroll; u++) {
            ptx_u32 number = ptx_add_u32(k, first, U32(u * WARPS * e->groups));
            exists[u] = ptx_setp_lt_u32(k, number, e->end_there);
            number = ptx_min_u32(k, number, last);
            emit_load_eight(k, e->spec->cache_type, ptx_mad_wide_u32(k, number, U32(row), keys),
                            &key[u]);
            emit_load_eight(k, e->spec->cache_type, ptx_mad_wide_u32(k, number, U32(row), values),
                            &value[u]);
        }
        for (uint32_t u = 0; u < unroll; u++)
            find_scores(e, &key[u], exists[u], scores[u]);
        add_values(e, unroll, value, scores);
    }
}

/* ---- the token's own key, where the launch rotates ---- */

/* What does not hang on the kernel ahead. */
static void begin_rope(struct emitter *e)
{
    const struct attention_spec *s = e->spec;
    e->rope = (struct lane_rope){.k = e->k,
                                 .head_size = s->head_size,
                                 .has_norm = s->has_norm,
                                 .interleaved = s->interleaved,
                                 .epsilon = s->epsilon,
                                 .part = e->part};
    if (!s->rotates)
        return;
    lane_rope_begin(&e->rope, e->turns, e->position);
    if (s->has_norm) {
        lane_rope_load(&e->rope, e->q_norm, e->q_gain);
        lane_rope_load(&e->rope, e->k_norm, e->k_gain);
    }
}

/* Of the CTAs that have the kv head, one writes to the cache. */
static void store_own(const struct emitter *e, ptx_pred mine, const struct eight *key,
                      const struct eight *value)
{
    ptx_kernel *k = e->k;
    const uint32_t row = e->spec->head_size * size_of(e->spec->cache_type);
    ptx_u64 keys = cache_address(e, e->keys, e->slot),
            values = cache_address(e, e->values, e->slot);
    ptx_pred writes = ptx_setp_bool_eq_u32(k, e->head_block, U32(0), mine);
    ptx_if(k, writes) {
        emit_store_eight(k, e->spec->cache_type, ptx_mad_wide_u32(k, e->position, U32(row), keys),
                         key);
        emit_store_eight(k, e->spec->cache_type, ptx_mad_wide_u32(k, e->position, U32(row), values),
                         value);
    }
}

/* The first lanes of the CTA of the last split have it beside what they have of the cache. */
static void add_own(struct emitter *e)
{
    ptx_kernel *k = e->k;
    ptx_f32 elements[EIGHT], scores[MOST_UNROLL][MOST_HEADS];
    struct eight key, value;
    ptx_u32 list = ptx_mad_lo_u32(k, e->token, U32(e->spec->kv_heads), e->kv_head);
    lane_rope_load(&e->rope, ptx_mad_wide_u32(k, list, U32(4 * e->spec->head_size), e->k_new),
                   elements);
    lane_rope_apply(&e->rope, e->k_gain, elements);
    emit_narrow_eight(k, e->spec->cache_type, elements, &key);
    lane_rope_load(&e->rope, ptx_mad_wide_u32(k, list, U32(4 * e->spec->head_size), e->v_new),
                   elements);
    emit_narrow_eight(k, e->spec->cache_type, elements, &value);
    ptx_pred mine = ptx_setp_lt_u32(k, e->tid, U32(e->lanes));
    store_own(e, mine, &key, &value);
    find_scores(e, &key, mine, scores[0]);
    add_values(e, 1, &value, scores);
}

/* ---- merging ---- */

/* Over the groups of a warp; afterwards each group has the warp's sums. */
static void merge_groups(struct emitter *e)
{
    ptx_kernel *k = e->k;
    for (uint32_t mask = e->lanes; mask < 32; mask *= 2)
        for (uint32_t h = 0; h < e->plan->heads; h++) {
            ptx_f32 mine = e->largest[h];
            ptx_f32 other = ptx_shfl_sync_bfly_f32(k, mine, U32(mask), U32(31), ALL_LANES);
            ptx_f32 largest = ptx_max_f32(k, mine, other);
            ptx_f32 change = ptx_ex2_approx_f32(k, ptx_sub_f32(k, mine, largest));
            e->largest[h] = largest;
            ptx_f32 scaled = ptx_mul_f32(k, e->weights[h], change);
            ptx_f32 more = ptx_shfl_sync_bfly_f32(k, scaled, U32(mask), U32(31), ALL_LANES);
            e->weights[h] = ptx_add_f32(k, scaled, more);
            for (int i = 0; i < EIGHT; i++) {
                scaled = ptx_mul_f32(k, e->sum[h][i], change);
                more = ptx_shfl_sync_bfly_f32(k, scaled, U32(mask), U32(31), ALL_LANES);
                e->sum[h][i] = ptx_add_f32(k, scaled, more);
            }
        }
}

/* A score and its weights are neighbours: shared_scores [warp][head][2]. */
static void share_warp(struct emitter *e)
{
    ptx_kernel *k = e->k;
    const uint32_t D = e->spec->head_size, heads = e->plan->heads;
    ptx_u32 lane = ptx_and_b32(k, e->tid, U32(31));
    ptx_u32 sums = ptx_mad_lo_u32(k, e->warp, U32(heads * D * 4), e->shared_sums);
    ptx_u32 at = ptx_mad_lo_u32(k, lane, U32(EIGHT * 4), sums);
    ptx_u32 scores = ptx_mad_lo_u32(k, e->warp, U32(heads * 8), e->shared_scores);
    ptx_if(k, ptx_setp_lt_u32(k, lane, U32(e->lanes)))
        for (uint32_t h = 0; h < heads; h++)
            for (int i = 0; i < EIGHT; i += 4)
                ptx_st_shared_v4_f32(k, at, (int)(h * D * 4) + 4 * i, &e->sum[h][i]);
    ptx_if(k, ptx_setp_eq_u32(k, lane, U32(0)))
        for (uint32_t h = 0; h < heads; h++) {
            const ptx_f32 pair[] = {e->largest[h], e->weights[h]};
            ptx_st_shared_v2_f32(k, scores, (int)(8 * h), pair);
        }
    ptx_bar_sync(k, 0);
}

/* What a thread has of the outputs of the CTA's heads: elements tid, tid + THREADS, … */
struct merged {
    ptx_f32 largest, weights, sum;
};

static uint32_t outputs(const struct emitter *e)
{
    return (e->plan->heads * e->spec->head_size + THREADS - 1) / THREADS;
}

static ptx_u32 output_index(const struct emitter *e, uint32_t i)
{
    return ptx_add_u32(e->k, e->tid, U32(i * THREADS));
}

static struct merged no_keys(ptx_kernel *k)
{
    struct merged none;
    none.largest = ptx_mov_f32(k, F32(lowest));
    none.weights = ptx_mov_f32(k, F32(0));
    none.sum = ptx_mov_f32(k, F32(0));
    return none;
}

static void merge(ptx_kernel *k, const struct merged *to, const struct merged *more)
{
    ptx_f32 largest = ptx_max_f32(k, to->largest, more->largest);
    ptx_f32 old = ptx_ex2_approx_f32(k, ptx_sub_f32(k, to->largest, largest));
    ptx_f32 factor = ptx_ex2_approx_f32(k, ptx_sub_f32(k, more->largest, largest));
    ptx_mov_f32_to(k, to->largest, largest);
    ptx_mul_f32_to(k, to->weights, to->weights, old);
    ptx_fma_f32_to(k, to->weights, more->weights, factor, to->weights);
    ptx_mul_f32_to(k, to->sum, to->sum, old);
    ptx_fma_f32_to(k, to->sum, more->sum, factor, to->sum);
}

static void merge_warps(const struct emitter *e, struct merged result[MOST_OUTPUTS])
{
    ptx_kernel *k = e->k;
    const uint32_t D = e->spec->head_size, heads = e->plan->heads;
    for (uint32_t i = 0; i < outputs(e); i++) {
        ptx_u32 index = ptx_min_u32(k, output_index(e, i), U32(heads * D - 1));
        ptx_u32 sums = ptx_mad_lo_u32(k, index, U32(4), e->shared_sums);
        ptx_u32 head = ptx_div_u32(k, index, U32(D));
        ptx_u32 scores = ptx_mad_lo_u32(k, head, U32(8), e->shared_scores);
        result[i] = no_keys(k);
        for (int w = 0; w < WARPS; w++) {
            ptx_f32 pair[2];
            ptx_ld_shared_v2_f32(k, pair, scores, w * (int)heads * 8);
            struct merged more = {pair[0], pair[1],
                                  ptx_ld_shared_f32(k, sums, w * (int)(heads * D * 4))};
            merge(k, &result[i], &more);
        }
    }
}

/* ---- splits ---- */

/* The number of this token, kv head and block of heads. */
static ptx_u32 unit_number(const struct emitter *e)
{
    ptx_kernel *k = e->k;
    ptx_u32 kv = ptx_mad_lo_u32(k, e->token, U32(e->spec->kv_heads), e->kv_head);
    return ptx_mad_lo_u32(k, kv, U32(head_blocks(e->plan)), e->head_block);
}

/* Where the thread's triples of a split are: three planes of outputs. */
static ptx_u64 partial_address(const struct emitter *e, ptx_u32 split)
{
    ptx_kernel *k = e->k;
    ptx_u32 number = ptx_mad_lo_u32(k, unit_number(e), e->splits, split);
    ptx_u64 at = ptx_mad_wide_u32(k, number, U32(3 * outputs(e) * THREADS * 4), e->partials);
    return ptx_mad_wide_u32(k, e->tid, U32(4), at);
}

static int plane(const struct emitter *e, int which, uint32_t i)
{
    return (int)(((uint32_t)which * outputs(e) + i) * THREADS * 4);
}

static void store_partials(const struct emitter *e, const struct merged result[MOST_OUTPUTS])
{
    ptx_kernel *k = e->k;
    ptx_u64 at = partial_address(e, e->split);
    for (uint32_t i = 0; i < outputs(e); i++) {
        ptx_st_global_f32(k, at, plane(e, 0, i), result[i].largest);
        ptx_st_global_f32(k, at, plane(e, 1, i), result[i].weights);
        ptx_st_global_f32(k, at, plane(e, 2, i), result[i].sum);
    }
}

/* Loads bypass the L1 (.cg), which is not coherent with the stores of other CTAs. */
static void merge_splits(const struct emitter *e, struct merged result[MOST_OUTPUTS])
{
    ptx_kernel *k = e->k;
    const struct merged none = no_keys(k);
    for (uint32_t i = 0; i < outputs(e); i++) {
        ptx_mov_f32_to(k, result[i].largest, none.largest);
        ptx_mov_f32_to(k, result[i].weights, none.weights);
        ptx_mov_f32_to(k, result[i].sum, none.sum);
    }
    ptx_u32 split = ptx_mov_u32(k, U32(0));
    ptx_for(k, split, e->used, U32(1)) {
        ptx_nounroll(k);
        ptx_u64 at = partial_address(e, split);
        struct merged more[MOST_OUTPUTS];
        for (uint32_t i = 0; i < outputs(e); i++) {
            more[i].largest = ptx_ld_global_f32_m(k, PTX_LD_CG, at, plane(e, 0, i));
            more[i].weights = ptx_ld_global_f32_m(k, PTX_LD_CG, at, plane(e, 1, i));
            more[i].sum = ptx_ld_global_f32_m(k, PTX_LD_CG, at, plane(e, 2, i));
        }
        for (uint32_t i = 0; i < outputs(e); i++)
            merge(k, &result[i], &more[i]);
    }
}

/* Whether this CTA is the last of its splits; the ticket is left 0 for the next launch. */
static ptx_pred come_last(const struct emitter *e)
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

static void store_outputs(const struct emitter *e, const struct merged result[MOST_OUTPUTS])
{
    ptx_kernel *k = e->k;
    const uint32_t count = e->plan->heads * e->spec->head_size;
    ptx_u64 first = ptx_mul_wide_u32(k, unit_number(e), U32(count));
    for (uint32_t i = 0; i < outputs(e); i++) {
        ptx_u32 index = output_index(e, i);
        ptx_u64 element = ptx_add_u64(k, first, ptx_cvt_u64_u32(k, index));
        ptx_u64 at = ptx_mad_lo_u64(k, element, ptx_imm_u64(size_of(e->spec->type)), e->y);
        ptx_f32 value = ptx_div_f32(k, result[i].sum, result[i].weights);
        ptx_if(k, ptx_setp_lt_u32(k, index, U32(count)))
            emit_store(k, e->spec->type, at, 0, value);
    }
}

static void attend(struct emitter *e)
{
    ptx_kernel *k = e->k;
    struct merged result[MOST_OUTPUTS];
    ptx_section(k, "scores and weighted values");
    load_query(e);
    walk_keys(e);
    if (e->spec->rotates) {
        ptx_section(k, "the token's own key");
        ptx_if(k, ptx_setp_gt_u32(k, e->end, e->position))
            add_own(e);
    }
    ptx_section(k, "merge lanes and warps");
    merge_groups(e);
    share_warp(e);
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

static void load_params(struct emitter *e)
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

static void find_place(struct emitter *e)
{
    ptx_kernel *k = e->k;
    ptx_u32 unit = ptx_sreg_ctaid_x(k);
    e->kv_head = ptx_div_u32(k, unit, U32(head_blocks(e->plan)));
    e->head_block = ptx_rem_u32(k, unit, U32(head_blocks(e->plan)));
    e->split = ptx_sreg_ctaid_y(k);
    e->splits = ptx_sreg_nctaid_y(k);
    e->token = ptx_sreg_ctaid_z(k);
    e->tid = ptx_sreg_tid_x(k);
    e->warp = ptx_shr_u32(k, e->tid, U32(5));
    ptx_u32 lane = ptx_and_b32(k, e->tid, U32(e->lanes - 1));
    e->part = ptx_mul_lo_u32(k, lane, U32(EIGHT));
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    const struct attention_plan *p = plan;
    ptx_kernel *k = ptx_kernel_begin(module, "attention");
    struct emitter e = {.k = k, .plan = p, .spec = &p->spec};
    e.lanes = p->spec.head_size / EIGHT;
    e.groups = 32 / e.lanes;
    ptx_kernel_reqntid(k, THREADS, 1, 1);
    size_t sums = (size_t)WARPS * p->heads * p->spec.head_size * 4;
    e.shared_sums = ptx_shared_address(k, ptx_shared_declare(k, "sums of the warps", sums, 16));
    e.shared_scores = ptx_shared_address(
        k, ptx_shared_declare(k, "scores of the warps", (size_t)WARPS * p->heads * 8, 8));
    emit_let_next_begin(k);
    load_params(&e);
    find_place(&e);
    find_keys(&e);
    begin_rope(&e);
    emit_wait_for_previous(k);
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
    p->unroll = p->heads > 4 || s->cache_type == PTXGEN_F32 ? MOST_UNROLL / 2 : MOST_UNROLL;
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
                                         .plan_version = 1,
                                         .spec_bytes = sizeof(struct attention_spec),
                                         .plan_bytes = sizeof(struct attention_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .describe = attention_describe};
    return &family;
}

uint64_t attention_partials_bytes(const struct attention_spec *spec, uint64_t m, uint32_t splits)
{
    uint32_t outputs = spec->head_size > THREADS ? spec->head_size : THREADS;
    return m * splits * spec->heads * outputs * 3 * sizeof(float);
}

uint64_t attention_tickets_bytes(const struct attention_spec *spec, uint64_t m)
{
    return m * spec->heads * sizeof(uint32_t);
}

uint32_t attention_splits(const struct attention_spec *spec, const ptxgen_target *target,
                          uint64_t m)
{
    enum { MOST_SPLITS = 32 };
    uint64_t ctas = m * spec->kv_heads;
    uint64_t splits = (2 * (uint64_t)target->multiprocessors + ctas - 1) / ctas;
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
