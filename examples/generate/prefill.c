/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CTA of four warps has a query head and 64 tokens, 16 of each warp. It walks over tiles of 64
 * keys (of 32 where heads have 256 elements): scores are products of mma.sync m16n8k16 with the
 * queries in registers, and so are the sums of values, for which the weights, as the first products
 * leave them in the lanes, are the operand of the second as they are.
 *
 *     load V(j) │ wait for K(j), scores │ load K(j+1) │ weights │ wait for V(j), sums │ …
 *
 * A row of a tile in shared memory is 16 bytes longer than a head, so that the eight rows that
 * ldmatrix reads at once lie in different banks.
 */
#include "prefill.h"

#include "emit.h"

#include <stdio.h>
#include <string.h>

enum { WARPS = 4, THREADS = 32 * WARPS, ROWS = 16, TOKENS = WARPS * ROWS, PAD = 16 };
enum { MOST_SIZE = 256, MOST_KEYS = 64 };
static const float lowest =
    -1e30f; /* below every score, and above −∞, so that differences are numbers */

struct prefill_plan {
    struct attention_spec spec;
    ptxgen_target target;
    uint32_t keys; /* of a tile */
};

struct emitter {
    ptx_kernel *k;
    const struct attention_spec *spec;
    uint32_t tile_keys, row_bytes; /* of a tile in shared memory */
    ptx_u64 q, keys, values, positions, slots, y;
    ptx_u32 m, context;
    ptx_u32 tid, lane, head, first_token;
    ptx_u32 start, last;           /* positions of token 0, and of the CTA's last token */
    ptx_u32 token[2], position[2]; /* of the lane's two rows */
    ptx_u64 key_list, value_list;  /* of the sequence and kv head */
    ptx_u32 key_tile, value_tile;  /* in shared memory */
    ptx_u32 query[MOST_SIZE / 16][4];
    ptx_f32 sum[MOST_SIZE / 8][4], largest[2], weights[2];
};

static bool is_bf16(const struct emitter *e)
{
    return e->spec->cache_type == PTXGEN_BF16;
}

static ptx_u32 narrow(const struct emitter *e, ptx_f32 low, ptx_f32 high)
{
    return emit_narrow_pair(e->k, e->spec->cache_type, low, high);
}

/* c += a · b */
static void multiply(const struct emitter *e, ptx_f32 c[4], const ptx_u32 a[4], const ptx_u32 b[2])
{
    if (is_bf16(e))
        ptx_mma_m16n8k16_f32_bf16_to(e->k, c, a, b, c);
    else
        ptx_mma_m16n8k16_f32_f16_to(e->k, c, a, b, c);
}

/* ---- what the CTA has ---- */

/* Tokens past the last of all are computed as the last one, and not stored. */
static void find_place(struct emitter *e)
{
    ptx_kernel *k = e->k;
    const uint32_t group_size = e->spec->heads / e->spec->kv_heads;
    e->tid = ptx_sreg_tid_x(k);
    e->lane = ptx_and_b32(k, e->tid, U32(31));
    e->head = ptx_sreg_ctaid_x(k);
    e->first_token = ptx_mul_lo_u32(k, ptx_sreg_ctaid_y(k), U32(TOKENS));
    e->start = ptx_ld_global_u32(k, e->positions, 0);
    ptx_u32 last_token = ptx_sub_u32(k, e->m, U32(1));
    ptx_u32 last = ptx_add_u32(k, e->first_token, U32(TOKENS - 1));
    e->last = ptx_add_u32(k, e->start, ptx_min_u32(k, last, last_token));
    ptx_u32 warp = ptx_shr_u32(k, e->tid, U32(5)), group = ptx_shr_u32(k, e->lane, U32(2));
    ptx_u32 row = ptx_mad_lo_u32(k, warp, U32(ROWS), group);
    for (int i = 0; i < 2; i++) {
        ptx_u32 token = ptx_add_u32(k, e->first_token, ptx_add_u32(k, row, U32(8 * (uint32_t)i)));
        e->token[i] = token;
        e->position[i] = ptx_add_u32(k, e->start, ptx_min_u32(k, token, last_token));
    }
    ptx_u32 slot = ptx_ld_global_u32(k, e->slots, 0), kv = ptx_div_u32(k, e->head, U32(group_size));
    ptx_u32 list = ptx_mad_lo_u32(k, slot, U32(e->spec->kv_heads), kv);
    ptx_u32 first = ptx_mul_lo_u32(k, list, e->context);
    e->key_list = ptx_mad_wide_u32(k, first, U32(2 * e->spec->head_size), e->keys);
    e->value_list = ptx_mad_wide_u32(k, first, U32(2 * e->spec->head_size), e->values);
}

/* The queries as fragments, in units that make weights powers of two. */
static void load_queries(struct emitter *e)
{
    ptx_kernel *k = e->k;
    const uint32_t D = e->spec->head_size;
    ptx_u32 quad = ptx_and_b32(k, e->lane, U32(3)), column = ptx_shl_b32(k, quad, U32(1));
    for (int i = 0; i < 2; i++) {
        ptx_u32 token = ptx_sub_u32(k, e->position[i], e->start);
        ptx_u32 row = ptx_mad_lo_u32(k, token, U32(e->spec->heads), e->head);
        ptx_u64 at = ptx_mad_wide_u32(k, row, U32(4 * D), e->q);
        at = ptx_mad_wide_u32(k, column, U32(4), at);
        for (uint32_t step = 0; step < D / 8; step++) {
            ptx_f32 pair[2];
            ptx_ld_global_v2_f32(k, pair, at, (int)(32 * step));
            for (int j = 0; j < 2; j++)
                pair[j] = ptx_mul_f32(k, pair[j], F32(e->spec->scale * 1.44269504f));
            e->query[step / 2][step % 2 * 2 + (uint32_t)i] = narrow(e, pair[0], pair[1]);
        }
        e->largest[i] = ptx_mov_f32(k, F32(lowest));
        e->weights[i] = ptx_mov_f32(k, F32(0));
    }
    for (uint32_t n = 0; n < D / 8; n++)
        for (int i = 0; i < 4; i++)
            e->sum[n][i] = ptx_mov_f32(k, F32(0));
}

/* ---- tiles ---- */

/* Copies rows `first` and after of a list; rows past the last token's are zeros. */
static void copy_tile(const struct emitter *e, ptx_u64 list, ptx_u32 first, ptx_u32 tile)
{
    ptx_kernel *k = e->k;
    const uint32_t chunks = 2 * e->spec->head_size / 16; /* of a row */
    for (uint32_t i = 0; i < e->tile_keys * chunks / THREADS; i++) {
        ptx_u32 index = ptx_add_u32(k, e->tid, U32(i * THREADS));
        ptx_u32 row = ptx_div_u32(k, index, U32(chunks)),
                chunk = ptx_rem_u32(k, index, U32(chunks));
        ptx_u32 number = ptx_add_u32(k, first, row);
        ptx_pred exists = ptx_setp_le_u32(k, number, e->last);
        ptx_u32 bytes = ptx_selp_u32(k, U32(16), U32(0), exists);
        number = ptx_min_u32(k, number, e->last);
        ptx_u64 from = ptx_mad_wide_u32(k, number, U32(2 * e->spec->head_size), list);
        from = ptx_mad_wide_u32(k, chunk, U32(16), from);
        ptx_u32 to = ptx_mad_lo_u32(k, row, U32(e->row_bytes), tile);
        ptx_cp_async_cg_zfill(k, ptx_mad_lo_u32(k, chunk, U32(16), to), 0, from, 0, 16, bytes);
    }
}

/* The copies of all threads but those of the newest group have arrived. */
static void wait_tile(const struct emitter *e)
{
    ptx_cp_async_wait_group(e->k, 1);
    ptx_bar_sync(e->k, 0);
}

/* scores[n] are those of keys 8n to 8n + 7 of the tile. */
static void find_scores(const struct emitter *e, ptx_f32 scores[MOST_KEYS / 8][4])
{
    ptx_kernel *k = e->k;
    ptx_u32 row = ptx_and_b32(k, e->lane, U32(7)), matrix = ptx_shr_u32(k, e->lane, U32(3));
    ptx_u32 at = ptx_mad_lo_u32(k, row, U32(e->row_bytes), e->key_tile);
    at = ptx_mad_lo_u32(k, matrix, U32(16), at);
    for (uint32_t n = 0; n < e->tile_keys / 8; n++) {
        for (int i = 0; i < 4; i++)
            scores[n][i] = ptx_mov_f32(k, F32(0));
        for (uint32_t step = 0; step < e->spec->head_size / 16; step += 2) {
            ptx_u32 key[4];
            ptx_ldmatrix_x4_b16(k, key, at, (int)(8 * n * e->row_bytes + 32 * step));
            multiply(e, scores[n], e->query[step], key);
            multiply(e, scores[n], e->query[step + 1], key + 2);
        }
    }
}

/* −∞ for keys after the token, or before its window. */
static void mask(const struct emitter *e, ptx_u32 first, ptx_f32 scores[MOST_KEYS / 8][4])
{
    ptx_kernel *k = e->k;
    ptx_u32 quad = ptx_and_b32(k, e->lane, U32(3));
    ptx_u32 column = ptx_mad_lo_u32(k, quad, U32(2), first);
    for (uint32_t n = 0; n < e->tile_keys / 8; n++)
        for (uint32_t i = 0; i < 4; i++) {
            ptx_u32 key = ptx_add_u32(k, column, U32(8 * n + i % 2)), own = e->position[i / 2];
            ptx_pred sees = ptx_setp_le_u32(k, key, own);
            if (e->spec->window) {
                ptx_u32 before = ptx_sub_u32(k, own, key);
                sees = ptx_setp_bool_lt_u32(k, before, U32(e->spec->window), sees);
            }
            scores[n][i] = ptx_selp_f32(k, scores[n][i], F32(-1.0f / 0.0f), sees);
        }
}

/* Over the four lanes that have a row. */
static ptx_f32 largest_of_row(ptx_kernel *k, ptx_f32 value)
{
    for (uint32_t lanes = 1; lanes < 4; lanes *= 2) {
        ptx_f32 other = ptx_shfl_sync_bfly_f32(k, value, U32(lanes), U32(31), ALL_LANES);
        value = ptx_max_f32(k, value, other);
    }
    return value;
}

/* Scores become weights, and the sums so far are brought to the new largest score. */
static void find_weights(struct emitter *e, ptx_f32 scores[MOST_KEYS / 8][4])
{
    ptx_kernel *k = e->k;
    for (int i = 0; i < 2; i++) {
        ptx_f32 largest = e->largest[i];
        for (uint32_t n = 0; n < e->tile_keys / 8; n++)
            for (int j = 0; j < 2; j++)
                largest = ptx_max_f32(k, largest, scores[n][2 * i + j]);
        largest = largest_of_row(k, largest);
        ptx_f32 change = ptx_ex2_approx_f32(k, ptx_sub_f32(k, e->largest[i], largest));
        ptx_mov_f32_to(k, e->largest[i], largest);
        ptx_mul_f32_to(k, e->weights[i], e->weights[i], change);
        for (uint32_t n = 0; n < e->spec->head_size / 8; n++)
            for (int j = 0; j < 2; j++)
                ptx_mul_f32_to(k, e->sum[n][2 * i + j], e->sum[n][2 * i + j], change);
        for (uint32_t n = 0; n < e->tile_keys / 8; n++)
            for (int j = 0; j < 2; j++) {
                ptx_f32 below = ptx_sub_f32(k, scores[n][2 * i + j], largest);
                scores[n][2 * i + j] = ptx_ex2_approx_f32(k, below);
                ptx_add_f32_to(k, e->weights[i], e->weights[i], scores[n][2 * i + j]);
            }
    }
}

static void add_values(const struct emitter *e, ptx_f32 weights[MOST_KEYS / 8][4],
                       ptx_f32 sum[MOST_SIZE / 8][4])
{
    ptx_kernel *k = e->k;
    ptx_u32 row = ptx_and_b32(k, e->lane, U32(15)), half = ptx_shr_u32(k, e->lane, U32(4));
    ptx_u32 at = ptx_mad_lo_u32(k, row, U32(e->row_bytes), e->value_tile);
    at = ptx_mad_lo_u32(k, half, U32(16), at);
    for (uint32_t step = 0; step < e->tile_keys / 16; step++) {
        ptx_u32 a[4];
        for (uint32_t i = 0; i < 4; i++) {
            const ptx_f32 *pair = &weights[2 * step + i / 2][i % 2 * 2];
            a[i] = narrow(e, pair[0], pair[1]);
        }
        for (uint32_t n = 0; n < e->spec->head_size / 8; n += 2) {
            ptx_u32 value[4];
            ptx_ldmatrix_x4_b16_m(k, PTX_TRANS, value, at,
                                  (int)(16 * step * e->row_bytes + 16 * n));
            multiply(e, sum[n], a, value);
            multiply(e, sum[n + 1], a, value + 2);
        }
    }
}

static void walk_tiles(struct emitter *e)
{
    ptx_kernel *k = e->k;
    ptx_u32 from = ptx_mov_u32(k, U32(0));
    if (e->spec->window) { /* the first key that the CTA's first token sees */
        ptx_u32 first = ptx_add_u32(k, e->start, e->first_token);
        ptx_u32 after = ptx_add_u32(k, first, U32(1));
        ptx_u32 seen = ptx_min_u32(k, after, U32(e->spec->window));
        from = ptx_mov_u32(k, ptx_sub_u32(k, after, seen));
    }
    ptx_u32 end = ptx_add_u32(k, e->last, U32(1));
    copy_tile(e, e->key_list, from, e->key_tile);
    ptx_cp_async_commit_group(k);
    ptx_for(k, from, end, U32(e->tile_keys)) {
        ptx_nounroll(k);
        ptx_f32 scores[MOST_KEYS / 8][4];
        copy_tile(e, e->value_list, from, e->value_tile);
        ptx_cp_async_commit_group(k);
        wait_tile(e);
        find_scores(e, scores);
        ptx_bar_sync(k, 0);
        ptx_u32 next = ptx_add_u32(k, from, U32(e->tile_keys));
        copy_tile(e, e->key_list, next, e->key_tile); /* zeros, after the last */
        ptx_cp_async_commit_group(k);
        mask(e, from, scores);
        find_weights(e, scores);
        wait_tile(e);
        add_values(e, scores, e->sum);
        ptx_bar_sync(k, 0);
    }
    ptx_cp_async_wait_all(k);
}

/* ---- the entry ---- */

static void store_outputs(const struct emitter *e)
{
    ptx_kernel *k = e->k;
    const uint32_t D = e->spec->head_size;
    const uint32_t bytes = (uint32_t)ptxgen_element_size((ptxgen_element)e->spec->type);
    ptx_u32 quad = ptx_and_b32(k, e->lane, U32(3)), column = ptx_shl_b32(k, quad, U32(1));
    for (int i = 0; i < 2; i++) {
        ptx_f32 weights = emit_sum_lanes(k, e->weights[i], 4);
        ptx_u32 row = ptx_mad_lo_u32(k, e->token[i], U32(e->spec->heads), e->head);
        ptx_u64 at = ptx_mad_wide_u32(k, row, U32(bytes * D), e->y);
        at = ptx_mad_wide_u32(k, column, U32(bytes), at);
        ptx_if(k, ptx_setp_lt_u32(k, e->token[i], e->m))
            for (uint32_t n = 0; n < D / 8; n++)
                for (uint32_t j = 0; j < 2; j++) {
                    ptx_f32 value = ptx_div_f32(k, e->sum[n][2 * i + (int)j], weights);
                    emit_store(k, e->spec->type, at, (int)((8 * n + j) * bytes), value);
                }
    }
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    const struct prefill_plan *p = plan;
    ptx_kernel *k = ptx_kernel_begin(module, "prefill");
    struct emitter e = {.k = k, .spec = &p->spec, .tile_keys = p->keys};
    e.row_bytes = 2 * p->spec.head_size + PAD;
    ptx_kernel_reqntid(k, THREADS, 1, 1);
    size_t bytes = (size_t)e.tile_keys * e.row_bytes;
    e.key_tile = ptx_shared_address(k, ptx_shared_declare(k, "keys", bytes, 16));
    e.value_tile = ptx_shared_address(k, ptx_shared_declare(k, "values", bytes, 16));
    e.q = ptx_param_u64(k, "q");
    e.keys = ptx_param_u64(k, "keys");
    e.values = ptx_param_u64(k, "values");
    e.positions = ptx_param_u64(k, "positions");
    e.slots = ptx_param_u64(k, "slots");
    e.y = ptx_param_u64(k, "y");
    e.m = ptx_param_u32(k, "m");
    e.context = ptx_param_u32(k, "context");
    emit_let_next_begin(k);
    emit_wait_for_previous(k);
    find_place(&e);
    load_queries(&e);
    walk_tiles(&e);
    store_outputs(&e);
    ptx_kernel_end(k);
    return ptx_module_status(module, err);
}

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    struct prefill_plan *p = plan;
    memset(p, 0, sizeof *p);
    memcpy(&p->spec, spec, sizeof p->spec);
    p->target = *target;
    p->keys = p->spec.head_size == MOST_SIZE ? MOST_KEYS / 2 : MOST_KEYS;
    ptxgen_status status = attention_check(&p->spec, err);
    if (!status && p->spec.cache_type == PTXGEN_F32)
        status = ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                             "prefill: the cache is f32; f16 and bf16 are supported");
    return status;
}

const ptxgen_family *prefill_family(void)
{
    static const ptxgen_family family = {.name = "generate_prefill",
                                         .plan_version = 1,
                                         .spec_bytes = sizeof(struct attention_spec),
                                         .plan_bytes = sizeof(struct prefill_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .describe = attention_describe};
    return &family;
}

ptxgen_status prefill_launch(const ptxgen_loaded *loaded, const struct attention_args *args,
                             ptxgen_cu_stream stream, ptxgen_error *err)
{
    const struct prefill_plan *plan = ptxgen_loaded_plan(loaded);
    struct attention_args a = *args;
    uint32_t m = (uint32_t)a.m;
    void *parameters[] = {&a.q, &a.keys, &a.values, &a.positions, &a.slots, &a.y, &m, &a.context};
    ptxgen_launch_shape shape =
        launch_shape(&plan->target, THREADS, plan->spec.heads, (a.m + TOKENS - 1) / TOKENS, 1);
    return ptxgen_launch(ptxgen_loaded_entry(loaded, 0), &shape, stream, parameters, err);
}
