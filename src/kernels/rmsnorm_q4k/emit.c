/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rmsnorm_q4k kernel: one persistent CTA of wn × wk warps on each multiprocessor. Tiles of 16
 * features are dealt out to the CTAs in rotation. A warp owns one tile at a time, and of that
 * tile's K every wk-th pair of super-blocks. While the warp multiplies one pair, copies bring the
 * next pairs into its ring of `stages` slots:
 *
 *                 K: pairs of super-blocks, 512 weights ──▶
 *               ┌────┬────┬────┬────┬────┬─
 *       tile    │ w0 │ w1 │ w0 │ w1 │ …       16 features × 288 bytes a step (wk = 2)
 *   16 features ├────┼────┼────┼────┼────┼─   Cᵀ: [16 features] × [8 columns] per mma.m16n8k32;
 *               │ w2 │ w3 │ w2 │ w3 │ …       columns: 4 planes of 2 tokens, or of one token's
 *                                             2 sub-blocks
 *
 * Bytes: every weight is read once, N·K·144/256. Issue slots: about 1.3 for each weight and lane
 * with one token, 1.5 with two, 0.5 more for each further two tokens. Weights stream from the first
 * cycle on: the activations are prepared while the first copies are in flight, and 1/rms is applied
 * to the finished sums. All sums have a fixed order, K within a warp and then the warps along K, so
 * equal inputs give equal bits. docs/notes/rmsnorm_q4k.md has the measurements.
 */
#include "../gemm/empty.h"
#include "emit.h"

/* ---- parameters and thread indices ---- */

static ptx_u32 number_param(ptx_kernel *k, const char *name, bool used)
{
    if (used)
        return ptx_param_u32(k, name);
    ptx_param_declare(k, name, 4, 4);
    return U32(0);
}

static void load_params(struct rmsnorm_q4k_kernel *q)
{
    static const char *const w[] = {"w0", "w1", "w2"}, *const bias[] = {"bias0", "bias1", "bias2"},
                             *const y[] = {"y0", "y1", "y2"},
                             *const strides[] = {"y0_stride", "y1_stride", "y2_stride"},
                             *const maps[] = {"map0", "map1", "map2"};
    ptx_kernel *k = q->k;
    const ptxgen_rmsnorm_q4k_spec *s = q->spec;
    bool rows = q->v->tile_m > 1;
    q->x = gemm_param_u64(k, "x", true);
    q->residual = gemm_param_u64(k, "residual", s->residual);
    q->residual_out = gemm_param_u64(k, "residual_out", s->residual_out);
    q->gamma = gemm_param_u64(k, "gamma", true);
    for (int i = 0; i < PTXGEN_RMSNORM_Q4K_MATRICES; i++)
        q->w[i] = gemm_param_u64(k, w[i], s->n[i] && !tensor(q));
    for (int i = 0; i < PTXGEN_RMSNORM_Q4K_MATRICES; i++)
        q->bias[i] = gemm_param_u64(k, bias[i], s->n[i] && s->bias);
    for (int i = 0; i < PTXGEN_RMSNORM_Q4K_MATRICES; i++)
        q->y[i] = gemm_param_u64(k, y[i], s->n[i]);
    q->x_stride = number_param(k, "x_stride", rows);
    q->residual_stride = number_param(k, "residual_stride", rows && s->residual);
    q->residual_out_stride = number_param(k, "residual_out_stride", rows && s->residual_out);
    for (int i = 0; i < PTXGEN_RMSNORM_Q4K_MATRICES; i++)
        q->y_stride[i] = number_param(k, strides[i], s->n[i]);
    q->m = number_param(k, "m", rows);
    for (int i = 0; i < PTXGEN_RMSNORM_Q4K_MATRICES && tensor(q); i++) {
        ptx_param map = ptx_param_declare(k, maps[i], 128, 64);
        q->maps[i] = s->n[i] ? ptx_param_address(k, map) : U64(0);
    }
}

static void find_threads(struct rmsnorm_q4k_kernel *q)
{
    ptx_kernel *k = q->k;
    q->at = gemm_find_threads(k);
    ptx_u32 swapped = shifted(q, q->at.lane, 4);
    ptx_u32 low = masked(q, shifted(q, q->at.lane, 3), 1);
    ptx_u32 middle = masked(q, q->at.group, 1);
    q->lower = ptx_setp_ne_u32(k, masked(q, q->at.lane, 1), U32(0));
    q->row = times_plus(q, swapped, 4, times_plus(q, middle, 2, low));
    bool whole_rows = q->v->wk == 1;
    if (whole_rows) {
        q->wn = q->at.warp;
        q->wk = U32(0);
        return;
    }
    /* This is warp / wk for numbers up to 16; the assembler takes far longer over a division. */
    ptx_u32 scaled = times(q, q->at.warp, 256 / q->v->wk + 1);
    q->wn = shifted(q, scaled, 8);
    q->wk = ptx_sub_u32(k, q->at.warp, times(q, q->wn, q->v->wk));
}

/* Tiles are dealt to the CTAs in rotation, and the tiles of a CTA to its warps along N. */
static void find_first_tile(struct rmsnorm_q4k_kernel *q)
{
    ptx_u32 tile = times_plus(q, q->wn, q->v->grid, q->at.cta);
    q->first_output = times(q, tile, tile_outputs(q->spec));
}

struct rmsnorm_q4k_place rmsnorm_q4k_locate(struct rmsnorm_q4k_kernel *q, ptx_u32 output,
                                            const ptx_u64 addresses[3], const ptx_u32 numbers[3])
{
    ptx_kernel *k = q->k;
    struct rmsnorm_q4k_place p = {addresses[0], numbers[0], output, U32(q->spec->n[0])};
    for (int i = 1; i < PTXGEN_RMSNORM_Q4K_MATRICES && q->spec->n[i] && !is_gated(q->spec); i++) {
        ptx_u32 start = U32(matrix_end(q->spec, i - 1));
        ptx_pred here = ptx_setp_ge_u32(k, output, start);
        ptx_u32 row = ptx_sub_u32(k, output, start);
        p.address = ptx_selp_u64(k, addresses[i], p.address, here);
        p.number = ptx_selp_u32(k, numbers[i], p.number, here);
        p.row = ptx_selp_u32(k, row, p.row, here);
        p.rows = ptx_selp_u32(k, U32(q->spec->n[i]), p.rows, here);
    }
    return p;
}

static ptx_u32 shared_buffer(ptx_kernel *k, const char *name, uint32_t bytes, uint32_t align)
{
    return ptx_shared_address(k, ptx_shared_declare(k, name, bytes, align));
}

static void declare_shared(struct rmsnorm_q4k_kernel *q)
{
    const ptxgen_rmsnorm_q4k_variant *v = q->v;
    uint32_t warps = v->wk * v->wn;
    q->sh.rings = shared_buffer(q->k, "rings of weights", warps * v->stages * STAGE_BYTES, 128);
    q->sh.records =
        shared_buffer(q->k, "activation records", v->chunk * record_bytes(v->tile_m), 128);
    uint32_t staged = rmsnorm_q4k_staged_bytes(q->plan, v);
    if (staged)
        q->sh.staged = shared_buffer(q->k, "x", staged, 16);
    if (zero_bytes(v->tile_m))
        q->sh.zeros = shared_buffer(q->k, "zeros", zero_bytes(v->tile_m), 128);
    if (v->wk > 1)
        q->sh.partials = shared_buffer(q->k, "partial sums", 2 * warps * partial_bytes(v), 16);
    q->sh.squares =
        shared_buffer(q->k, "sums of squares", v->tile_m * super_blocks(q->spec) * 8, 8);
    if (tensor(q))
        q->sh.ring_barriers =
            shared_buffer(q->k, "barriers of the rings", warps * v->stages * 8, 8);
}

/* ---- the end of a round ---- */

/* The lane's token of an n-tile; the neighbouring lane of the quad has the same token. */
static ptx_u32 lane_token(struct rmsnorm_q4k_kernel *q, int n)
{
    if (q->v->tile_m == 1)
        return U32(0);
    ptx_u32 pair = shifted(q, q->at.quad, 1);
    return n ? ptx_add_u32(q->k, pair, U32(BOX_TOKENS * (unsigned)n)) : pair;
}

static ptx_f32 add_neighbour(ptx_kernel *k, ptx_f32 value, ptx_f32 sent, unsigned mask)
{
    return ptx_add_f32(k, value, ptx_shfl_sync_bfly_f32(k, sent, U32(mask), U32(31), ALL_LANES));
}

/*
 * The sums over all planes, by n-tile: an even quad lane has the sum of the tile's upper half, an
 * odd quad lane that of the lower half. With one token all four quad lanes hold shares of a sum.
 */
struct totals {
    ptx_f32 sum[MAX_N_TILES];
};

static struct totals join_planes(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_sums *sums)
{
    ptx_kernel *k = q->k;
    struct totals t;
    for (int n = 0; n < n_tiles(q); n++) {
        const ptx_f32 *acc = sums->acc[n];
        ptx_f32 kept = ptx_selp_f32(k, acc[1], acc[0], q->lower);
        ptx_f32 sent = ptx_selp_f32(k, acc[0], acc[1], q->lower);
        t.sum[n] = add_neighbour(k, kept, sent, 1);
        if (q->v->tile_m == 1)
            t.sum[n] = add_neighbour(k, t.sum[n], t.sum[n], 2);
    }
    return t;
}

/* Two places, used alternately, let a warp be one round ahead of the warp that adds. */
static void find_partials(struct rmsnorm_q4k_kernel *q)
{
    uint32_t all = q->v->wk * q->v->wn * partial_bytes(q->v);
    ptx_u32 own = times_plus(q, q->at.warp, partial_bytes(q->v), q->sh.partials);
    q->partial = times_plus(q, q->at.lane, 4, own);
    q->both_partials = times_plus(q, q->partial, 2, U32(all));
}

static void store_partials(struct rmsnorm_q4k_kernel *q, const struct totals *t)
{
    for (int n = 0; n < n_tiles(q); n++)
        ptx_st_shared_f32(q->k, q->partial, 32 * 4 * n, t->sum[n]);
}

/* The first warp along K adds the other warps' sums in order; they lie behind its own. */
static void add_partials(struct rmsnorm_q4k_kernel *q, struct totals *t)
{
    ptx_kernel *k = q->k;
    int warp_bytes = (int)partial_bytes(q->v);
    for (int n = 0; n < n_tiles(q); n++)
        for (int w = 1; w < (int)q->v->wk; w++) {
            ptx_f32 part = ptx_ld_shared_f32(k, q->partial, w * warp_bytes + 32 * 4 * n);
            ptx_add_f32_to(k, t->sum[n], t->sum[n], part);
        }
}

static void store_element(struct rmsnorm_q4k_kernel *q, ptx_u64 to, ptx_f32 value)
{
    ptx_kernel *k = q->k;
    if (q->spec->y_type == PTXGEN_F32)
        ptx_st_global_f32(k, to, 0, value);
    else if (q->spec->y_type == PTXGEN_F16)
        ptx_st_global_f16(k, to, 0, ptx_cvt_f16_f32(k, value));
    else
        ptx_st_global_bf16(k, to, 0, ptx_cvt_bf16_f32(k, value));
}

/* silu(gate) · up, with silu(x) = x / (1 + e⁻ˣ). */
static ptx_f32 swiglu(ptx_kernel *k, ptx_f32 gate, ptx_f32 up)
{
    ptx_f32 power = ptx_mul_f32(k, gate, F32(-1.44269504f));
    ptx_f32 e = ptx_ex2_approx_f32(k, power);
    ptx_f32 denominator = ptx_add_f32(k, e, F32(1));
    ptx_f32 silu = ptx_div_f32(k, gate, denominator);
    return ptx_mul_f32(k, silu, up);
}

static ptx_f32 add_bias(struct rmsnorm_q4k_kernel *q, ptx_u64 bias, ptx_u32 row, ptx_f32 value)
{
    if (!q->spec->bias)
        return value;
    ptx_u64 at = ptx_mad_wide_u32(q->k, row, U32(4), bias);
    return ptx_add_f32(q->k, value, ptx_ld_global_nc_f32(q->k, at, 0));
}

/*
 * The quotient sum / rms. Sums of activations wider than f16 may leave f32's range; the result is
 * then NaN instead of an infinity.
 */
static ptx_f32 normalise(struct rmsnorm_q4k_kernel *q, ptx_f32 sum, ptx_f32 inverse)
{
    ptx_kernel *k = q->k;
    if (q->spec->x_type == PTXGEN_F16)
        return ptx_mul_f32(k, sum, inverse);
    ptx_f32 zero_or_nan = ptx_sub_f32(k, sum, sum);
    return ptx_fma_f32(k, sum, inverse, zero_or_nan);
}

/* Stores one output of one token; with SwiGLU `sum` is the gate's and `up` is gated by it. */
static void store_output(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_place to, ptx_u64 bias,
                         ptx_u32 token, ptx_f32 inverse, ptx_f32 sum, ptx_f32 up)
{
    ptx_kernel *k = q->k;
    ptx_f32 value = add_bias(q, bias, to.row, normalise(q, sum, inverse));
    if (is_gated(q->spec)) {
        up = add_bias(q, q->bias[1], to.row, normalise(q, up, inverse));
        value = swiglu(k, value, up);
    }
    uint32_t bytes = q->spec->y_type == PTXGEN_F32 ? 4 : 2;
    ptx_u64 address = ptx_mad_wide_u32(k, to.row, U32(bytes), to.address);
    if (q->v->tile_m > 1) {
        ptx_u64 line = ptx_mul_wide_u32(k, token, to.number);
        address = ptx_add_u64(k, address, ptx_mul_lo_u64(k, line, U64(bytes)));
    }
    store_element(q, address, value);
}

static void find_inverse_rms(struct rmsnorm_q4k_kernel *q)
{
    for (int n = 0; n < n_tiles(q); n++)
        q->inverse_rms[n] = rmsnorm_q4k_inverse_rms(q, lane_token(q, n));
}

/*
 * Finishes the tile's sums and stores those of features and tokens that exist. With SwiGLU the even
 * quad lanes take the sums of up from the odd quad lanes.
 */
static void store_tile(struct rmsnorm_q4k_kernel *q, ptx_u32 start, const struct totals *t)
{
    const uint32_t PAST_ALL = 1u << 31;
    ptx_kernel *k = q->k;
    bool gated = is_gated(q->spec);
    if (q->v->chunks > 1) /* the sums of squares are complete only now */
        find_inverse_rms(q);
    ptx_u32 half = ptx_selp_u32(k, U32(gated ? PAST_ALL : HALF_ROWS), U32(0), q->lower);
    ptx_u32 output = ptx_add_u32(k, ptx_add_u32(k, start, q->row), half);
    struct rmsnorm_q4k_place to = rmsnorm_q4k_locate(q, output, q->y, q->y_stride);
    struct rmsnorm_q4k_place bias =
        q->spec->bias ? rmsnorm_q4k_locate(q, output, q->bias, q->y_stride) : to;
    ptx_pred row_exists = ptx_setp_lt_u32(k, to.row, to.rows);
    for (int n = 0; n < n_tiles(q); n++) {
        ptx_f32 up = t->sum[n];
        if (gated)
            up = ptx_shfl_sync_bfly_f32(k, up, U32(1), U32(31), ALL_LANES);
        ptx_u32 token = lane_token(q, n);
        ptx_pred mine = q->v->tile_m == 1 ? ptx_setp_bool_lt_u32(k, q->at.quad, U32(2), row_exists)
                                          : ptx_setp_bool_lt_u32(k, token, q->m, row_exists);
        ptx_if(k, mine)
            store_output(q, to, bias.address, token, q->inverse_rms[n], t->sum[n], up);
    }
}

static void finish_round(struct rmsnorm_q4k_kernel *q, ptx_u32 output,
                         const struct rmsnorm_q4k_sums *sums)
{
    ptx_kernel *k = q->k;
    ptx_section(k, "end of the tile: sum over the warps along K, apply 1/rms, store");
    ptx_pred mine = ptx_setp_lt_u32(k, output, U32(outputs(q->spec)));
    struct totals totals = join_planes(q, sums);
    if (q->v->wk > 1) {
        store_partials(q, &totals);
        ptx_bar_sync(k, 0);
        mine = ptx_setp_bool_eq_u32(k, q->wk, U32(0), mine);
    }
    ptx_if(k, mine) {
        if (q->v->wk > 1)
            add_partials(q, &totals);
        store_tile(q, output, &totals);
    }
    if (q->v->wk > 1 && q->v->rounds > 1)
        ptx_sub_u32_to(k, q->partial, q->both_partials, q->partial);
}

/* ---- the main loop ---- */

/* The slot that is multiplied next, and the number in the tile of the pair that it holds. */
struct consumer {
    struct rmsnorm_q4k_slot slot;
    ptx_u32 pair;
};

static bool counts_pairs(const struct rmsnorm_q4k_kernel *q)
{
    return pairs(q->spec) % q->v->wk || super_blocks(q->spec) % PAIR;
}

static void issue_next(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *stream)
{
    ptx_bar_warp_sync(q->k, ALL_LANES); /* all lanes have read the slot */
    rmsnorm_q4k_issue_load(q, stream);
}

/*
 * Each step issues the copies of the pair loads_ahead() further on: into the slot that the step
 * frees, or into the slot that the step before has freed.
 */
static void multiply_chunk(struct rmsnorm_q4k_kernel *q, ptx_u32 count,
                           struct rmsnorm_q4k_stream *stream, struct consumer *at,
                           ptx_pred has_tile, struct rmsnorm_q4k_sums *sums)
{
    ptx_kernel *k = q->k;
    ptx_section(k, "steps: issue copies of a pair of super-blocks, wait for another, multiply");
    bool issues_first = loads_ahead(q->v) < q->v->stages;
    ptx_u32 number = times(q, q->wk, PAIR);
    ptx_u32 step = ptx_mov_u32(k, U32(0));
    ptx_for(k, step, count, U32(1)) {
        ptx_pred valid = has_tile;
        if (issues_first)
            issue_next(q, stream);
        if (pairs(q->spec) % q->v->wk)
            valid = ptx_setp_bool_lt_u32(k, at->pair, U32(pairs(q->spec)), has_tile);
        ptx_if(k, valid) {
            rmsnorm_q4k_wait(q, stream, at->slot);
            ptx_u32 stage = rmsnorm_q4k_slot_address(q, stream, at->slot);
            rmsnorm_q4k_multiply(q, stage, at->pair, number, sums);
            rmsnorm_q4k_advance_slot(q, &at->slot);
        }
        if (!issues_first)
            issue_next(q, stream);
        move_on(q, number, q->v->wk * PAIR);
        if (counts_pairs(q))
            move_on(q, at->pair, q->v->wk);
    }
}

static void multiply_round(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *stream,
                           struct consumer *at, ptx_u32 output, struct rmsnorm_q4k_sums *sums)
{
    ptx_kernel *k = q->k;
    uint32_t all_steps = steps(q->spec, q->v->wk), per_chunk = q->v->chunk / (q->v->wk * PAIR);
    ptx_pred has_tile = ptx_setp_lt_u32(k, output, U32(outputs(q->spec)));
    if (counts_pairs(q))
        ptx_mov_u32_to(k, at->pair, q->wk);
    for (int n = 0; n < n_tiles(q); n++)
        for (int r = 0; r < 2; r++)
            ptx_mov_f32_to(k, sums->acc[n][r], F32(0));
    if (q->v->chunks == 1) {
        multiply_chunk(q, U32(all_steps), stream, at, has_tile, sums);
        return;
    }
    ptx_u32 first = ptx_mov_u32(k, U32(0)), left = ptx_mov_u32(k, U32(all_steps));
    ptx_for(k, first, U32(super_blocks(q->spec)), U32(q->v->chunk)) {
        ptx_bar_sync(k, 0); /* all have finished with the records before they are replaced */
        rmsnorm_q4k_prepare_activations(q, first, NULL);
        ptx_bar_sync(k, 0);
        multiply_chunk(q, ptx_min_u32(k, left, U32(per_chunk)), stream, at, has_tile, sums);
        ptx_sub_u32_to(k, left, left, U32(per_chunk));
    }
}

static void take_tile(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *stream,
                      struct consumer *at, ptx_u32 output, struct rmsnorm_q4k_sums *sums)
{
    multiply_round(q, stream, at, output, sums);
    finish_round(q, output, sums);
}

static void clear_zeros(struct rmsnorm_q4k_kernel *q)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = zero_bytes(q->v->tile_m), at_once = 32 * q->v->wk * q->v->wn * 16;
    if (!bytes)
        return;
    ptx_u32 none = ptx_mov_u32(k, U32(0)), zeros[4] = {none, none, none, none};
    ptx_u32 at = times(q, ptx_sreg_tid_x(k), 16);
    for (uint32_t first = 0; first < bytes; first += at_once)
        ptx_guarded(k, ptx_setp_lt_u32(k, at, U32(bytes - first)))
            ptx_st_shared_v4_u32(k, ptx_add_u32(k, at, q->sh.zeros), (int)first, zeros);
}

/*
 * The first copies of weights, then x, then the rest of the ring. Weights may be read while the
 * kernel before this one in the stream still runs (programmatic dependent launch). That kernel may
 * write x and read y, so neither may be touched before it has ended.
 */
static struct rmsnorm_q4k_stream start(struct rmsnorm_q4k_kernel *q)
{
    ptx_kernel *k = q->k;
    ptx_section(k, "first copies of weights");
    bool whole = q->v->chunks == 1, behind_x = whole && loads_ahead(q->v) > 1;
    struct rmsnorm_q4k_stream stream = rmsnorm_q4k_start_stream(q);
    rmsnorm_q4k_issue_first_load(q, &stream);
    if (!behind_x)
        rmsnorm_q4k_issue_other_loads(q, &stream);
    if (tensor(q)) {
        ptx_griddepcontrol_launch_dependents(k);
        ptx_griddepcontrol_wait(k);
    }
    clear_zeros(q);
    if (!whole)
        return stream;
    rmsnorm_q4k_prepare_activations(q, U32(0), behind_x ? &stream : NULL);
    ptx_bar_sync(k, 0);
    find_inverse_rms(q);
    return stream;
}

static void emit_entry(const ptxgen_rmsnorm_q4k_plan *plan, const ptxgen_rmsnorm_q4k_variant *v,
                       ptx_module *module)
{
    struct rmsnorm_q4k_kernel q = {.plan = plan, .spec = &plan->spec, .v = v};
    ptx_kernel *k = q.k = ptx_kernel_begin(module, ptxgen_rmsnorm_q4k_entry(v));
    ptx_kernel_reqntid(k, 32 * v->wk * v->wn, 1, 1);
    ptx_kernel_minnctapersm(k, 1);
    load_params(&q);
    find_threads(&q);
    declare_shared(&q);
    find_first_tile(&q);

    struct rmsnorm_q4k_stream stream = start(&q);
    rmsnorm_q4k_find_columns(&q);
    if (v->wk > 1)
        find_partials(&q);
    struct consumer at;
    at.slot = rmsnorm_q4k_start_slot(&q, tensor(&q));
    at.pair = ptx_mov_u32(k, q.wk);
    struct rmsnorm_q4k_sums sums;
    for (int n = 0; n < n_tiles(&q); n++)
        for (int r = 0; r < 2; r++)
            sums.acc[n][r] = ptx_mov_f32(k, F32(0));
    ptx_u32 round = ptx_mov_u32(k, U32(0)), output = ptx_mov_u32(k, q.first_output);
    if (v->rounds == 1)
        take_tile(&q, &stream, &at, output, &sums);
    else
        ptx_loop(k, rounds) {
            take_tile(&q, &stream, &at, output, &sums);
            move_on(&q, output, tile_step(&q));
            move_on(&q, round, 1);
            ptx_loop_break_if(&rounds, ptx_setp_ge_u32(k, round, U32(v->rounds)), false);
        }
    ptx_kernel_end(k);
}

ptxgen_status ptxgen_rmsnorm_q4k_emit(const ptxgen_rmsnorm_q4k_plan *plan, uint32_t variants,
                                      ptx_module *module, ptxgen_error *err)
{
    if (!rmsnorm_q4k_is_plan(plan) || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "rmsnorm_q4k: a plan that was made, and a module, must be given");
    if (!plan->variant_count)
        gemm_emit_empty(module, "rmsnorm_q4k_empty", &(const struct gemm_empty){.n = 0});
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (variants >> i & 1)
            emit_entry(plan, &plan->variants[i], module);
    return ptx_module_status(module, err);
}
