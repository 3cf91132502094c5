/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry "quantise": each CTA makes the row of a token, by its producer, and quantises it by the
 * functions of w8a8 (w8a8/quantise.c).
 *
 *     pass        reads                                  what all threads then know
 *     squares     x, residual; writes residual_out       r = 1 / √(mean square + epsilon)
 *     range       x, with up or gamma                    scale and zero point of the token
 *     codes       the same; writes codes
 *
 * Only RMSNorm has the first pass, and only tokens with one scale have the second; a group's range
 * is found in the last pass, by the 16 lanes that have the group. Where the row stays in registers
 * it is read once, in the first pass that there is, and the others begin with what was left there;
 * else each pass reads it again, from residual_out where that was written.
 */
#include "layout.h"

#include "../w8a8/emit.h"

_Static_assert((int)QUANTISE_CHUNK == (int)CHUNK, "w8a8's chunks are loaded");

_Static_assert((int)PTXGEN_QUANTISE_GROUP == (int)PTXGEN_W8A8_GROUP, "w8a8 quantises groups");

/* Rows of one of the arrays, and what a thread has of the token's row. */
struct rows {
    struct quantiser q;
    struct share share;
};

struct emitter {
    ptx_kernel *k;
    const ptxgen_quantise_spec *spec;
    ptxgen_w8a8_spec row, gamma_row; /* rows of x's type and of gamma's, as w8a8 knows them */
    uint32_t threads, chunks;        /* of the CTA, and of a row */
    uint32_t rounds;                 /* chunks that a thread has in registers */
    bool is_resident;                /* which are all of its chunks */
    struct rows x, up, residual, residual_out, gamma;
    ptx_u64 codes, scales, zeros; /* the token's */
    ptx_pred code_words;          /* rows of codes start at multiples of 8 bytes */
    ptx_u32 tid, lane, warp;
    ptx_u32 sum_slots, range_slots; /* shared: a sum and a range of each warp */
    struct batch batch, weights;    /* of the row, and of gamma where it is loaded ahead */
    bool loads_ahead;
    bool is_read, is_made; /* the batch holds rows of x, or what is quantised, and stays */
    bool has_written;      /* residual_out was written, and x + residual is read from there */
    ptx_f32 squares, r;
    struct range range;
    struct token token;
};

static uint32_t element_bytes(const struct emitter *e)
{
    return (uint32_t)ptxgen_element_size((ptxgen_element)e->spec->x_type);
}

/* ---- making rows ---- */

static void load(const struct rows *rows, ptx_u32 first, uint32_t rounds, struct batch *batch)
{
    w8a8_load_batch(&rows->q, &rows->share, first, rounds, batch);
}

static void unpack(const struct rows *rows, const struct chunk *c, int pair, ptx_f32 v[2])
{
    struct work w[2];
    w8a8_unpack_pair(&rows->q, c, pair, w);
    v[0] = w[0].f;
    v[1] = w[1].f;
}

/* Puts elements 2·pair and 2·pair + 1, rounded to x's type, into the chunk. */
static void pack(const struct emitter *e, const ptx_f32 v[2], const struct chunk *c, int pair)
{
    ptx_kernel *k = e->k;
    if (element_bytes(e) == 2) {
        bool bf16 = e->spec->x_type == PTXGEN_BF16;
        ptx_mov_u32_to(k, c->words[pair], gemm_narrow_pair(k, bf16, v[0], v[1]));
        return;
    }
    for (int j = 0; j < 2; j++)
        ptx_mov_u32_to(k, c->words[2 * pair + j], ptx_f32_as_u32(v[j]));
}

/* Element i of a chunk, which has `left` elements of the row. */
static void store_sum_element(const struct emitter *e, ptx_u64 at, ptx_u32 left,
                              const struct chunk *c, uint32_t i)
{
    ptx_kernel *k = e->k;
    ptx_pred exists = ptx_setp_gt_u32(k, left, U32(i));
    if (element_bytes(e) == 4) {
        ptx_guarded(k, exists)
            ptx_st_global_u32(k, at, 4 * (int)i, c->words[i]);
        return;
    }
    ptx_u16 halves[2];
    ptx_unpack_u32(k, halves, c->words[i / 2]);
    ptx_guarded(k, exists)
        ptx_st_global_u16(k, at, 2 * (int)i, halves[i % 2]);
}

/* Stores a chunk of the row that goes to residual_out, up to the row's end. */
static void store_sum(const struct emitter *e, ptx_u32 index, const struct chunk *c)
{
    ptx_kernel *k = e->k;
    const uint32_t bytes = element_bytes(e);
    ptx_u32 element = ptx_shl_b32(k, index, U32(3));
    ptx_u64 at = ptx_mad_wide_u32(k, element, U32(bytes), e->residual_out.share.row);
    ptx_pred whole = ptx_setp_lt_u32(k, index, U32(e->spec->k / CHUNK));
    ptx_pred at_once = ptx_and_pred(k, whole, e->residual_out.q.vectors);
    ptx_guarded(k, at_once)
        for (uint32_t i = 0; i < CHUNK * bytes / 4; i += 4)
            ptx_st_global_v4_u32(k, at, 4 * (int)i, &c->words[i]);
    ptx_pred mine = ptx_setp_lt_u32(k, index, U32(e->chunks));
    ptx_if(k, ptx_xor_pred(k, mine, at_once))
        for (uint32_t i = 0; i < CHUNK; i++)
            store_sum_element(e, at, ptx_sub_u32(k, U32(e->spec->k), element), c, i);
}

/* s = x + residual, which is written to residual_out. */
static void add_residual(const struct emitter *e, const struct batch *residual)
{
    ptx_kernel *k = e->k;
    for (uint32_t i = 0; i < e->rounds; i++) {
        const struct chunk *c = &e->batch.chunks[i];
        for (int pair = 0; pair < CHUNK / 2; pair++) {
            ptx_f32 x[2], other[2];
            unpack(&e->x, c, pair, x);
            unpack(&e->residual, &residual->chunks[i], pair, other);
            for (int j = 0; j < 2; j++)
                x[j] = ptx_add_f32(k, x[j], other[j]);
            pack(e, x, c, pair);
        }
        store_sum(e, e->batch.index[i], c);
    }
}

/* The chunks from `first` on, as the producer takes them. */
static void read_batch(struct emitter *e, ptx_u32 first)
{
    struct batch residual;
    if (e->is_read)
        return;
    load(e->has_written ? &e->residual_out : &e->x, first, e->rounds, &e->batch);
    if (e->spec->residual && !e->has_written) {
        load(&e->residual, first, e->rounds, &residual);
        add_residual(e, &residual);
    }
    e->is_read = e->is_resident;
}

/* h = (s · r) · gamma */
static void normalise(const struct emitter *e)
{
    ptx_kernel *k = e->k;
    for (uint32_t i = 0; i < e->rounds; i++) {
        const struct chunk *c = &e->batch.chunks[i];
        struct batch gamma;
        if (e->loads_ahead)
            gamma.chunks[0] = e->weights.chunks[i];
        else
            load(&e->gamma, e->batch.index[i], 1, &gamma);
        for (int pair = 0; pair < CHUNK / 2; pair++) {
            ptx_f32 s[2], weight[2];
            unpack(&e->x, c, pair, s);
            unpack(&e->gamma, &gamma.chunks[0], pair, weight);
            for (int j = 0; j < 2; j++) {
                ptx_f32 scaled = ptx_mul_f32(k, s[j], e->r);
                s[j] = ptx_mul_f32(k, scaled, weight[j]);
            }
            pack(e, s, c, pair);
        }
    }
}

/* h = silu(gate) · up */
static void multiply_by_up(const struct emitter *e, ptx_u32 first)
{
    ptx_kernel *k = e->k;
    struct batch up;
    load(&e->up, first, e->rounds, &up);
    for (uint32_t i = 0; i < e->rounds; i++)
        for (int pair = 0; pair < CHUNK / 2; pair++) {
            const struct chunk *c = &e->batch.chunks[i];
            ptx_f32 gate[2], other[2];
            unpack(&e->x, c, pair, gate);
            unpack(&e->up, &up.chunks[i], pair, other);
            for (int j = 0; j < 2; j++) {
                ptx_f32 silu = gemm_activate(k, PTXGEN_ACTIVATION_SILU, gate[j]);
                gate[j] = ptx_mul_f32(k, silu, other[j]);
            }
            pack(e, gate, c, pair);
        }
}

/* The chunks from `first` on, as they are quantised. */
static void make_batch(struct emitter *e, ptx_u32 first)
{
    if (e->is_made)
        return;
    read_batch(e, first);
    if (quantise_is_norm(e->spec))
        normalise(e);
    else if (quantise_is_gated(e->spec))
        multiply_by_up(e, first);
    e->is_made = e->is_resident;
}

/* ---- passes ---- */

/* A pass over the row; all lanes of a warp take part in each call of `work`. */
static void pass(struct emitter *e, void (*work)(struct emitter *e, ptx_u32 first))
{
    ptx_kernel *k = e->k;
    if (e->is_resident) {
        work(e, e->tid);
        return;
    }
    ptx_u32 base = ptx_mov_u32(k, U32(0));
    ptx_for(k, base, U32(e->chunks), U32(e->rounds * e->threads)) {
        ptx_nounroll(k);
        work(e, ptx_add_u32(k, base, e->tid));
    }
}

static void add_squares(struct emitter *e, ptx_u32 first)
{
    read_batch(e, first);
    for (uint32_t i = 0; i < e->rounds; i++)
        for (int pair = 0; pair < CHUNK / 2; pair++) {
            ptx_f32 s[2];
            unpack(&e->x, &e->batch.chunks[i], pair, s);
            for (int j = 0; j < 2; j++)
                ptx_fma_f32_to(e->k, e->squares, s[j], s[j], e->squares);
        }
}

static ptx_f32 add_lanes(ptx_kernel *k, ptx_f32 v, uint32_t lanes)
{
    for (uint32_t mask = 1; mask < lanes; mask *= 2) {
        ptx_f32 other = ptx_shfl_sync_bfly_f32(k, v, U32(mask), U32(31), ALL_LANES);
        v = ptx_add_f32(k, v, other);
    }
    return v;
}

/* r = 1 / √(sum · (1/K) + epsilon) */
static void find_norm(struct emitter *e)
{
    ptx_kernel *k = e->k;
    const uint32_t warps = e->threads / 32;
    e->squares = ptx_mov_f32(k, F32(0));
    pass(e, add_squares);
    e->has_written = e->spec->residual;
    ptx_f32 sum = add_lanes(k, e->squares, 32);
    if (warps > 1) {
        ptx_u32 slot = ptx_mad_lo_u32(k, e->warp, U32(4), e->sum_slots);
        ptx_if(k, ptx_setp_eq_u32(k, e->lane, U32(0)))
            ptx_st_shared_f32(k, slot, 0, sum);
        ptx_bar_sync(k, 0);
        ptx_u32 other = ptx_and_b32(k, e->lane, U32(warps - 1));
        ptx_u32 from = ptx_mad_lo_u32(k, other, U32(4), e->sum_slots);
        sum = add_lanes(k, ptx_ld_shared_f32(k, from, 0), warps);
    }
    ptx_f32 mean = ptx_mul_f32(k, sum, F32(1.0f / (float)e->spec->k));
    ptx_f32 root = ptx_sqrt_f32(k, ptx_add_f32(k, mean, F32(e->spec->epsilon)));
    e->r = ptx_rcp_f32(k, root);
}

static void widen(struct emitter *e, ptx_u32 first)
{
    make_batch(e, first);
    w8a8_widen_range(&e->x.q, &e->batch, e->rounds, &e->range);
}

/* Codes of a chunk, eight bytes at once or up to the row's end. */
static void store_codes(void *user, ptx_u32 index, const ptx_u32 codes[2])
{
    const struct emitter *e = user;
    ptx_kernel *k = e->k;
    ptx_u64 at = ptx_mad_wide_u32(k, index, U32(CHUNK), e->codes);
    ptx_pred whole = ptx_setp_lt_u32(k, index, U32(e->spec->k / CHUNK));
    ptx_pred at_once = ptx_and_pred(k, whole, e->code_words);
    ptx_guarded(k, at_once)
        ptx_st_global_v2_u32(k, at, 0, codes);
    ptx_pred mine = ptx_setp_lt_u32(k, index, U32(e->chunks));
    ptx_if(k, ptx_xor_pred(k, mine, at_once)) {
        ptx_u32 element = ptx_shl_b32(k, index, U32(3));
        ptx_u32 left = ptx_sub_u32(k, U32(e->spec->k), element);
        for (uint32_t i = 0; i < CHUNK; i++) {
            ptx_u32 code = ptx_shr_u32(k, codes[i / 4], U32(8 * (i % 4)));
            ptx_guarded(k, ptx_setp_gt_u32(k, left, U32(i)))
                ptx_st_global_u8(k, at, (int)i, code);
        }
    }
}

/* The scale and the zero point of group `group`; a thread for which `is_first` holds stores them.
 */
static void store_scale(void *user, const struct token *t, ptx_u32 group, ptx_pred is_first)
{
    const struct emitter *e = user;
    ptx_kernel *k = e->k;
    struct work scale = w8a8_written_scale(&e->x.q, t);
    ptx_if(k, is_first) {
        ptx_st_global_f32(k, ptx_mad_wide_u32(k, group, U32(4), e->scales), 0, scale.f);
        if (e->spec->asymmetric) {
            ptx_s32 zero = ptx_selp_s32(k, t->zero, S32(0), t->finite);
            ptx_st_global_s32(k, ptx_mad_wide_u32(k, group, U32(4), e->zeros), 0, zero);
        }
    }
}

static void encode(struct emitter *e, ptx_u32 first)
{
    make_batch(e, first);
    w8a8_encode_batch(&e->x.q, &e->token, &e->batch, e->rounds, store_codes, e);
}

static void quantise_token(struct emitter *e)
{
    ptx_kernel *k = e->k;
    const uint32_t range_bytes = w8a8_range_bytes(&e->row);
    e->range = w8a8_new_range(&e->x.q);
    pass(e, widen);
    w8a8_share_range(&e->x.q, &e->range);
    ptx_u32 slot = ptx_mad_lo_u32(k, e->warp, U32(range_bytes), e->range_slots);
    ptx_if(k, ptx_setp_eq_u32(k, e->lane, U32(0)))
        w8a8_store_range(&e->x.q, slot, &e->range);
    ptx_bar_sync(k, 0);
    e->range = w8a8_load_ranges(&e->x.q, e->range_slots, e->lane, e->threads / 32);
    e->token = w8a8_find_token(&e->x.q, &e->range, U32(0));
    store_scale(e, &e->token, U32(0), ptx_setp_eq_u32(k, e->tid, U32(0)));
    pass(e, encode);
}

static void quantise_groups(struct emitter *e, ptx_u32 first)
{
    make_batch(e, first);
    w8a8_quantise_groups(&e->x.q, &e->batch, e->rounds, e->chunks, store_scale, store_codes, e);
}

/* ---- the entry ---- */

static ptx_u32 number_param(ptx_kernel *k, const char *name, bool used)
{
    if (used)
        return ptx_param_u32(k, name);
    ptx_param_declare(k, name, 4, 4);
    return U32(0);
}

/* The rows of an array whose element m = 0, k = 0 is at `base`. */
static struct rows rows_at(const struct emitter *e, const ptxgen_w8a8_spec *of, ptx_u64 base,
                           ptx_u32 stride, ptx_u32 token)
{
    struct rows rows = {.q = w8a8_start_quantiser(e->k, of, base, stride, U64(0), U64(0))};
    rows.share = (struct share){.row = w8a8_row_of_token(&rows.q, token),
                                .first = e->tid,
                                .end = U32(e->chunks),
                                .step = e->threads,
                                .rounds = (e->chunks + e->threads - 1) / e->threads};
    return rows;
}

/* The address of a token's row in an array that is written. */
static ptx_u64 row_at(ptx_kernel *k, ptx_u64 base, ptx_u32 stride, uint32_t bytes, ptx_u32 token)
{
    ptx_u64 pitch = ptx_mul_wide_u32(k, stride, U32(bytes));
    return ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, token), pitch, base);
}

static void load_params(struct emitter *e)
{
    ptx_kernel *k = e->k;
    const ptxgen_quantise_spec *s = e->spec;
    const bool norm = quantise_is_norm(s), zeros = s->asymmetric;
    ptx_u64 x = gemm_param_u64(k, "x", true), gamma = gemm_param_u64(k, "gamma", norm);
    ptx_u64 residual = gemm_param_u64(k, "residual", s->residual);
    ptx_u64 residual_out = gemm_param_u64(k, "residual_out", s->residual);
    ptx_u64 codes_base = gemm_param_u64(k, "codes", true);
    ptx_u64 scales_base = gemm_param_u64(k, "scales", true);
    ptx_u64 zeros_base = gemm_param_u64(k, "zeros", zeros);
    ptx_u32 x_stride = number_param(k, "x_stride", true);
    ptx_u32 residual_stride = number_param(k, "residual_stride", s->residual);
    ptx_u32 residual_out_stride = number_param(k, "residual_out_stride", s->residual);
    ptx_u32 codes_stride = number_param(k, "codes_stride", true);
    ptx_u32 scales_stride = number_param(k, "scales_stride", true);
    ptx_u32 zeros_stride = number_param(k, "zeros_stride", zeros);
    ptx_u32 token = ptx_sreg_ctaid_x(k);
    e->x = rows_at(e, &e->row, x, x_stride, token);
    if (quantise_is_gated(s)) {
        ptx_u64 up = ptx_add_u64(k, x, U64((uint64_t)s->k * element_bytes(e)));
        e->up = rows_at(e, &e->row, up, x_stride, token);
    }
    if (norm) {
        ptx_u32 none = ptx_mov_u32(k, U32(0));
        e->gamma = rows_at(e, &e->gamma_row, gamma, none, none);
    }
    if (s->residual) {
        e->residual = rows_at(e, &e->row, residual, residual_stride, token);
        e->residual_out = rows_at(e, &e->row, residual_out, residual_out_stride, token);
    }
    ptx_u64 pitch = ptx_cvt_u64_u32(k, codes_stride);
    ptx_u64 low = ptx_and_b64(k, ptx_or_b64(k, codes_base, pitch), U64(CHUNK - 1));
    e->code_words = ptx_setp_eq_u64(k, low, U64(0));
    e->codes = row_at(k, codes_base, codes_stride, 1, token);
    e->scales = row_at(k, scales_base, scales_stride, 4, token);
    if (zeros)
        e->zeros = row_at(k, zeros_base, zeros_stride, 4, token);
}

/* Chunks of a thread in registers: fewer where two rows of f32 are, or where codes take more. */
static uint32_t batch_rounds(const struct emitter *e)
{
    const ptxgen_quantise_spec *s = e->spec;
    uint32_t all = (e->chunks + e->threads - 1) / e->threads;
    uint32_t most = s->x_type == PTXGEN_F32 && (s->residual || quantise_is_gated(s)) ? BATCH / 2
                    : w8a8_is_long_asymmetric(&e->row)                               ? 1
                                                                                     : BATCH;
    uint32_t batches = (all + most - 1) / most;
    return (all + batches - 1) / batches;
}

/* Whether gamma's chunks stay in registers, too, while the row is read and its sum is found. */
static bool loads_ahead(const struct emitter *e)
{
    enum { MOST_BYTES = 64 };
    uint32_t bytes = CHUNK * (uint32_t)ptxgen_element_size((ptxgen_element)e->spec->gamma_type);
    return quantise_is_norm(e->spec) && e->is_resident && e->rounds * bytes <= MOST_BYTES;
}

void quantise_emit_entry(const ptxgen_quantise_plan *plan, ptx_module *module)
{
    const ptxgen_quantise_spec *s = &plan->spec;
    struct emitter e = {.spec = s,
                        .row = quantise_row_spec(s),
                        .threads = plan->threads,
                        .chunks = (s->k + CHUNK - 1) / CHUNK};
    e.gamma_row = e.row;
    e.gamma_row.x_type = s->gamma_type;
    e.rounds = batch_rounds(&e);
    e.is_resident = e.rounds * e.threads >= e.chunks;
    ptx_kernel *k = e.k = ptx_kernel_begin(module, "quantise");
    ptx_kernel_reqntid(k, e.threads, 1, 1);
    bool overlaps = gemm_overlaps(&plan->target);
    if (overlaps)
        ptx_griddepcontrol_launch_dependents(k);
    e.tid = ptx_sreg_tid_x(k);
    e.lane = ptx_and_b32(k, e.tid, U32(31));
    e.warp = ptx_shr_u32(k, e.tid, U32(5));
    load_params(&e);
    e.loads_ahead = loads_ahead(&e);
    if (e.loads_ahead)
        load(&e.gamma, e.tid, e.rounds, &e.weights);
    if (overlaps)
        ptx_griddepcontrol_wait(k);
    if (quantise_is_norm(s)) {
        e.sum_slots = ptx_shared_address(k, ptx_shared_declare(k, "sums of the warps", 32 * 4, 4));
        find_norm(&e);
    }
    if (s->group) {
        pass(&e, quantise_groups);
    } else {
        e.range_slots = ptx_shared_address(
            k, ptx_shared_declare(k, "ranges of the warps", 32 * w8a8_range_bytes(&e.row), 4));
        quantise_token(&e);
    }
    ptx_kernel_end(k);
}
