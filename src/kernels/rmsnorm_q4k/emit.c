/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rmsnorm_q4k kernel.
 *
 * One persistent CTA a multiprocessor, wk × wr warps. A warp owns a tile of 16 rows at a time and
 * every wk-th super-block of its K; the next ones are on their way into its ring of `stages` slots
 * while it multiplies one:
 *
 *              K: super-blocks of 256 ──▶
 *            ┌────┬────┬────┬────┬────┬─
 *    tile    │ w0 │ w1 │ w0 │ w1 │ …        16 rows × 144 bytes a super-block      (wk = 2)
 *   16 rows  ├────┼────┼────┼────┼────┼─    Cᵀ: [16 rows] × [8 columns] per mma.m16n8k16,
 *            │ w2 │ w3 │ w2 │ w3 │ …        columns = {hi, lo} of 4 tokens
 *
 * Bytes: the weights once, N·K·144/256. For each weight a lane spends about 2 issue slots (and,
 * mul.f16x2 for two; scales; one mma for 8), for any M up to 4, and an eighth more up to 8: a third
 * of what an H100 has while its memory delivers them. Weights stream from the first cycle: the
 * activations are prepared while the first copies are under way, and 1/rms is applied to the
 * finished sums.
 *
 * All sums have a fixed order: K within a warp, then the warps along K, so results are bit-stable.
 */
#include "emit.h"

#include <string.h>

/* ---- parameters and thread indices ---- */

static void load_params(struct kernel *q)
{
    ptx_kernel *k = q->k;
    q->x = ptx_param_u64(k, "x");
    q->residual = ptx_param_u64(k, "residual");
    q->residual_out = ptx_param_u64(k, "residual_out");
    q->gamma = ptx_param_u64(k, "gamma");
    static const char *const names[3][PTXGEN_RMSNORM_Q4K_MATRICES] = {
        {"weights0", "weights1", "weights2"}, {"bias0", "bias1", "bias2"}, {"y0", "y1", "y2"}};
    for (int i = 0; i < PTXGEN_RMSNORM_Q4K_MATRICES; i++)
        q->weights[i] = ptx_param_u64(k, names[0][i]);
    for (int i = 0; i < PTXGEN_RMSNORM_Q4K_MATRICES; i++)
        q->bias[i] = ptx_param_u64(k, names[1][i]);
    for (int i = 0; i < PTXGEN_RMSNORM_Q4K_MATRICES; i++)
        q->y[i] = ptx_param_u64(k, names[2][i]);
    static const char *const strides[PTXGEN_RMSNORM_Q4K_MATRICES] = {"y0_stride", "y1_stride", "y2_stride"};
    q->x_stride = ptx_param_u32(k, "x_stride");
    q->residual_stride = ptx_param_u32(k, "residual_stride");
    q->residual_out_stride = ptx_param_u32(k, "residual_out_stride");
    for (int i = 0; i < PTXGEN_RMSNORM_Q4K_MATRICES; i++)
        q->y_stride[i] = ptx_param_u32(k, strides[i]);
    q->m = ptx_param_u32(k, "m");
}

static void find_threads(struct kernel *q)
{
    ptx_kernel *k = q->k;
    q->at.tid = ptx_sreg_tid_x(k);
    q->at.cta = ptx_sreg_ctaid_x(k);
    q->at.warp = ptx_shr_u32(k, q->at.tid, U32(5));
    q->at.lane = ptx_and_b32(k, q->at.tid, U32(31));
    q->at.group = ptx_shr_u32(k, q->at.lane, U32(2));
    q->at.quad = ptx_and_b32(k, q->at.lane, U32(3));
    q->at.wr = ptx_div_u32(k, q->at.warp, U32(q->v->wk));
    q->at.wk = ptx_rem_u32(k, q->at.warp, U32(q->v->wk));
}

static void declare_shared(struct kernel *q)
{
    ptx_kernel *k = q->k;
    const ptxgen_rmsnorm_q4k_variant *v = q->v;
    ptx_shared rings = ptx_shared_declare(k, "rings of weights", v->wk * v->wr * v->stages * STAGE_BYTES, 16);
    ptx_shared records = ptx_shared_declare(k, "activation records", v->chunk * record_bytes(v->tokens), 16);
    q->sh.rings = ptx_shared_address(k, rings);
    q->sh.records = ptx_shared_address(k, records);
    if (v->wk > 1) {
        ptx_shared partials = ptx_shared_declare(k, "partial sums", 2 * v->wk * v->wr * TILE_ROWS * v->tokens * 4, 16);
        q->sh.partials = ptx_shared_address(k, partials);
    }
    ptx_shared squares = ptx_shared_declare(k, "sums of squares", v->tokens * super_blocks(q->spec) * 8, 8);
    q->sh.squares = ptx_shared_address(k, squares);
}

/* ---- the end of a round ---- */

/*
 * Partial sums in shared memory: [round parity][wr][wk][row][token]. Two parities let a warp be a
 * round ahead of the one that adds. Lanes whose token is past the last one have nothing to hand over.
 */
struct partials {
    ptx_u32 lane;       /* the lane's first cell of the first warp along K */
    ptx_pred has_token;
    uint32_t warp_bytes, row_bytes;
};

static struct partials hand_over(struct kernel *q, ptx_u32 round, const struct sums *sums)
{
    ptx_kernel *k = q->k;
    const ptxgen_rmsnorm_q4k_variant *v = q->v;
    struct partials p = {.warp_bytes = TILE_ROWS * v->tokens * 4, .row_bytes = v->tokens * 4};
    ptx_u32 parity = ptx_and_b32(k, round, U32(1));
    ptx_u32 wave = ptx_mad_lo_u32(k, parity, U32(v->wr), q->at.wr);
    ptx_u32 base = ptx_mad_lo_u32(k, wave, U32(v->wk * p.warp_bytes), q->sh.partials);
    ptx_u32 cell = ptx_mad_lo_u32(k, q->at.group, U32(v->tokens), q->at.quad);
    p.lane = ptx_mad_lo_u32(k, cell, U32(4), base);
    p.has_token = ptx_setp_lt_u32(k, q->at.quad, U32(v->tokens));
    ptx_u32 mine = ptx_mad_lo_u32(k, q->at.wk, U32(p.warp_bytes), p.lane);
    ptx_guarded(k, p.has_token)
        for (int n = 0; n < n_tiles(q); n++)
            for (int r = 0; r < 2; r++)
                ptx_st_shared_f32(k, mine, (int)(8 * p.row_bytes) * r + 16 * n, sums->acc[n][r]);
    return p;
}

/* The first warp along K adds the others' sums to its own, in order. */
static void add_partials(struct kernel *q, const struct partials *p, struct sums *sums)
{
    ptx_kernel *k = q->k;
    for (int n = 0; n < n_tiles(q); n++)
        for (int r = 0; r < 2; r++)
            for (uint32_t w = 1; w < q->v->wk; w++) {
                ptx_f32 part = ptx_mov_f32(k, F32(0));
                ptx_guarded(k, p->has_token)
                    ptx_ld_shared_f32_to(k, part, p->lane,
                                         (int)(w * p->warp_bytes + 8 * p->row_bytes * (uint32_t)r) + 16 * n);
                ptx_add_f32_to(k, sums->acc[n][r], sums->acc[n][r], part);
            }
}

static void store_element(struct kernel *q, ptx_u64 y, ptx_u64 element, ptx_f32 value)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = q->spec->y_type == PTXGEN_F32 ? 4 : 2;
    ptx_u64 offset = ptx_mul_lo_u64(k, element, U64(bytes));
    ptx_u64 to = ptx_add_u64(k, y, offset);
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

/* Which matrix the tile belongs to: base addresses, rows, and the tile's number within it. */
struct output {
    ptx_u64 y, bias;
    ptx_u32 stride, rows, tile;
};

static struct output locate_output(struct kernel *q, ptx_u32 tile)
{
    ptx_kernel *k = q->k;
    struct output o = {q->y[0], q->bias[0], q->y_stride[0], ptx_mov_u32(k, U32(q->spec->n[0])), tile};
    uint32_t before = 0;
    for (uint32_t i = 1; i < tiled_matrices(q->spec); i++) {
        before += matrix_tiles(q->spec, i - 1);
        ptx_pred here = ptx_setp_ge_u32(k, tile, U32(before));
        ptx_u32 local = ptx_sub_u32(k, tile, U32(before));
        o.y = ptx_selp_u64(k, q->y[i], o.y, here);
        o.bias = ptx_selp_u64(k, q->bias[i], o.bias, here);
        o.stride = ptx_selp_u32(k, q->y_stride[i], o.stride, here);
        o.rows = ptx_selp_u32(k, U32(q->spec->n[i]), o.rows, here);
        o.tile = ptx_selp_u32(k, local, o.tile, here);
    }
    return o;
}

static ptx_f32 add_bias(struct kernel *q, ptx_u64 bias, ptx_u32 row, ptx_f32 value)
{
    if (!q->spec->bias)
        return value;
    ptx_u64 at = ptx_mad_wide_u32(q->k, row, U32(4), bias);
    return ptx_add_f32(q->k, value, ptx_ld_global_nc_f32(q->k, at, 0));
}

/* Finishes the tile's sums and stores them; only rows and tokens that exist. */
static void store_outputs(struct kernel *q, ptx_u32 tile, const struct sums *sums)
{
    ptx_kernel *k = q->k;
    bool gated = q->spec->epilogue == PTXGEN_EPILOGUE_SWIGLU;
    struct output o = locate_output(q, tile);
    ptx_u32 first = ptx_mad_lo_u32(k, o.tile, U32(matrix_tile_rows(q->spec)), q->at.group);
    for (int n = 0; n < n_tiles(q); n++) {
        ptx_u32 token = ptx_add_u32(k, q->at.quad, U32(4 * (unsigned)n));
        ptx_u32 known = ptx_min_u32(k, token, U32(q->v->tokens - 1));
        ptx_f32 inverse = emit_inverse_rms(q, known);
        ptx_pred exists = ptx_setp_lt_u32(k, token, q->m);
        for (int r = 0; r < (gated ? 1 : 2); r++) {
            ptx_u32 row = ptx_add_u32(k, first, U32(8 * (unsigned)r));
            ptx_if(k, ptx_setp_bool_lt_u32(k, row, o.rows, exists)) {
                ptx_f32 value = ptx_mul_f32(k, sums->acc[n][r], inverse);
                value = add_bias(q, o.bias, row, value);
                if (gated) {
                    ptx_f32 up = ptx_mul_f32(k, sums->acc[n][1], inverse);
                    up = add_bias(q, q->bias[1], row, up);
                    value = swiglu(k, value, up);
                }
                ptx_u64 line = ptx_mul_wide_u32(k, token, o.stride);
                ptx_u64 element = ptx_add_u64(k, line, ptx_cvt_u64_u32(k, row));
                store_element(q, o.y, element, value);
            }
        }
    }
}

static void finish_round(struct kernel *q, ptx_u32 round, ptx_u32 tile, struct sums *sums)
{
    ptx_kernel *k = q->k;
    ptx_section(k, "end of the tile: sum over the warps along K, apply 1/rms, store");
    ptx_pred mine = ptx_setp_lt_u32(k, tile, U32(q->plan->tiles));
    struct partials partials = {0};
    if (q->v->wk > 1) {
        partials = hand_over(q, round, sums);
        ptx_bar_sync(k, 0);
        mine = ptx_setp_bool_eq_u32(k, q->at.wk, U32(0), mine);
    }
    ptx_if(k, mine) {
        if (q->v->wk > 1)
            add_partials(q, &partials, sums);
        store_outputs(q, tile, sums);
    }
}

/* ---- the main loop ---- */

/* The ring and the turn: which slot is next to be multiplied, of which super-block of the tile. */
struct consumer {
    ptx_u32 slot, super_block;
};

/*
 * The turns of one chunk. Each waits for the oldest copy, sends for the super-block stages − 1 turns
 * ahead (into the slot that the turn before has left), and multiplies.
 */
static void multiply_chunk(struct kernel *q, ptx_u32 count, struct stream *stream,
                           struct consumer *at, ptx_pred has_tile, struct sums *sums)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = record_bytes(q->v->tokens), all = super_blocks(q->spec);
    ptx_section(k, "turns: wait for a super-block, send for another, multiply");
    ptx_u32 record = ptx_mad_lo_u32(k, q->at.wk, U32(bytes), q->sh.records);
    ptx_u32 turn = ptx_mov_u32(k, U32(0));
    ptx_for(k, turn, count, U32(1)) {
        ptx_cp_async_wait_group(k, (int)q->v->stages - 2);
        ptx_bar_warp_sync(k, U32(0xFFFFFFFF));
        emit_load(q, stream);
        ptx_pred valid = has_tile;
        if (all % q->v->wk)
            valid = ptx_setp_bool_lt_u32(k, at->super_block, U32(all), has_tile);
        ptx_if(k, valid)
            emit_multiply(q, at->slot, record, sums);
        ptx_add_u32_to(k, record, record, U32(q->v->wk * bytes));
        ptx_add_u32_to(k, at->super_block, at->super_block, U32(q->v->wk));
        ptx_mov_u32_to(k, at->slot, next_slot(q, stream, at->slot));
    }
}

static void clear(ptx_kernel *k, struct sums *sums)
{
    for (int n = 0; n < 2; n++)
        for (int r = 0; r < 2; r++)
            ptx_mov_f32_to(k, sums->acc[n][r], F32(0));
}

static void multiply_round(struct kernel *q, struct stream *stream, struct consumer *at,
                           ptx_u32 tile, struct sums *sums)
{
    ptx_kernel *k = q->k;
    uint32_t all_turns = turns(q->spec, q->v->wk), per_chunk = q->v->chunk / q->v->wk;
    ptx_pred has_tile = ptx_setp_lt_u32(k, tile, U32(q->plan->tiles));
    ptx_mov_u32_to(k, at->super_block, q->at.wk);
    if (q->v->chunks == 1) {
        multiply_chunk(q, ptx_mov_u32(k, U32(all_turns)), stream, at, has_tile, sums);
        return;
    }
    ptx_u32 first = ptx_mov_u32(k, U32(0)), left = ptx_mov_u32(k, U32(all_turns));
    ptx_for(k, first, U32(super_blocks(q->spec)), U32(q->v->chunk)) {
        ptx_bar_sync(k, 0); /* all have finished with the records before they are replaced */
        emit_activations(q, first);
        ptx_bar_sync(k, 0);
        multiply_chunk(q, ptx_min_u32(k, left, U32(per_chunk)), stream, at, has_tile, sums);
        ptx_sub_u32_to(k, left, left, U32(per_chunk));
    }
}

static void emit_entry(const ptxgen_rmsnorm_q4k_plan *plan, const ptxgen_rmsnorm_q4k_variant *v,
                       ptx_module *module)
{
    struct kernel q = {.plan = plan, .spec = &plan->spec, .v = v};
    ptx_kernel *k = q.k = ptx_kernel_begin(module, ptxgen_rmsnorm_q4k_entry(v));
    ptx_kernel_reqntid(k, 32 * v->wk * v->wr, 1, 1);
    ptx_kernel_minnctapersm(k, 1);
    load_params(&q);
    declare_shared(&q);
    find_threads(&q);

    ptx_section(k, "first loads of weights");
    struct stream stream = start_stream(&q);
    for (uint32_t s = 1; s < v->stages; s++)
        emit_load(&q, &stream);
    if (v->chunks == 1) {
        emit_activations(&q, ptx_mov_u32(k, U32(0)));
        ptx_bar_sync(k, 0);
    }

    struct consumer at;
    at.slot = ptx_mov_u32(k, stream.ring);
    at.super_block = ptx_mov_u32(k, q.at.wk);
    struct sums sums;
    for (int n = 0; n < 2; n++)
        for (int r = 0; r < 2; r++)
            sums.acc[n][r] = ptx_mov_f32(k, F32(0));
    ptx_u32 round = ptx_mov_u32(k, U32(0));
    ptx_u32 tile = ptx_mad_lo_u32(k, q.at.wr, U32(v->grid), q.at.cta);
    ptx_for(k, round, U32(v->rounds), U32(1)) {
        clear(k, &sums);
        multiply_round(&q, &stream, &at, tile, &sums);
        finish_round(&q, round, tile, &sums);
        ptx_add_u32_to(k, tile, tile, U32(v->grid * v->wr));
    }
    ptx_kernel_end(k);
}

ptxgen_status ptxgen_rmsnorm_q4k_emit(const ptxgen_rmsnorm_q4k_plan *plan, ptx_module *module,
                                      ptxgen_error *err)
{
    if (!plan || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "rmsnorm_q4k: plan and module must be given");
    for (uint32_t i = 0; i < plan->variant_count; i++)
        emit_entry(plan, &plan->variants[i], module);
    return ptx_module_status(module, err);
}
