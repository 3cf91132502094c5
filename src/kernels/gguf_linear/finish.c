/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a tile: from sums by column to outputs.
 *
 *     acc of each warp ─▶ shared memory ─▶ Σ over planes and over the warps along K
 *                         ─▶ with parts of K: workspace ─▶ Σ over parts, by the last part to arrive
 *                         ─▶ + bias, gate, round ─▶ y
 *
 * All sums have a fixed order. The warps along K synchronise among themselves only. The sums of the
 * tile before have been read when the next tile's first step has synchronised them; with tensor
 * copies, which do not synchronise steps, sums alternate between two places, and a warp that stores
 * in one again has met the others since they read it, at the end of the tile between. The counter
 * of a tile's parts is 0 at the begin of a launch, which the kernel that makes h sees to.
 */
#include "emit.h"

#include "../gemm/epilogue.h"

static ptxgen_activation activation_of(const ptxgen_gguf_linear_spec *s)
{
    return s->epilogue == PTXGEN_EPILOGUE_GEGLU ? PTXGEN_ACTIVATION_GELU_TANH
                                                : PTXGEN_ACTIVATION_SILU;
}

ptx_f32 gguf_linear_gate(ptx_kernel *k, const ptxgen_gguf_linear_spec *s, ptx_f32 gate, ptx_f32 up)
{
    return ptx_mul_f32(k, gemm_activate(k, activation_of(s), gate), up);
}

void gguf_linear_store(ptx_kernel *k, uint8_t type, ptx_u64 to, ptx_f32 value)
{
    if (type == PTXGEN_F32)
        ptx_st_global_f32(k, to, 0, value);
    else if (type == PTXGEN_F16)
        ptx_st_global_f16(k, to, 0, ptx_cvt_f16_f32(k, value));
    else
        ptx_st_global_bf16(k, to, 0, ptx_cvt_bf16_f32(k, value));
}

/* ---- the warps along K ---- */

void gguf_linear_synchronise(struct gguf_linear_kernel *q)
{
    ptx_kernel *k = q->k;
    if (q->v->wk == 1) {
        ptx_bar_warp_sync(k, ALL_LANES);
        return;
    }
    ptx_u32 barrier = ptx_add_u32(k, q->wn, U32(1));
    ptx_bar_sync_n(k, barrier, U32(32 * q->v->wk));
}

/* Bytes of a warp's sums: columns × 16 rows. */
static uint32_t warp_bytes(const struct gguf_linear_kernel *q)
{
    return columns(q->plan, q->v->tile_m) * TILE_ROWS * 4;
}

static void store_sums(struct gguf_linear_kernel *q, const struct sums *sums)
{
    ptx_kernel *k = q->k;
    const uint32_t all = columns(q->plan, q->v->tile_m);
    ptx_u32 own = ptx_mad_lo_u32(k, q->wk, U32(warp_bytes(q)), q->partials);
    ptx_u32 row = ptx_mad_lo_u32(k, q->at.group, U32(4), own);
    ptx_u32 pair = ptx_mul_lo_u32(k, q->at.quad, U32(2));
    ptx_u32 to = ptx_mad_lo_u32(k, pair, U32(TILE_ROWS * 4), row);
    for (uint32_t n = 0; n < n_tiles(q->plan, q->v->tile_m); n++)
        for (int i = 0; i < 4; i++) {
            uint32_t column = 8 * n + (uint32_t)i % 2; /* of quad lane 0 */
            int at = (int)(column * TILE_ROWS + (uint32_t)i / 2 * HALF_ROWS) * 4;
            if (column + 6 < all) {
                ptx_st_shared_f32(k, to, at, sums->acc[n][i]);
                continue;
            }
            if (column >= all)
                continue;
            ptx_guarded(k, ptx_setp_lt_u32(k, pair, U32(all - column)))
                ptx_st_shared_f32(k, to, at, sums->acc[n][i]);
        }
}

/* An output among those of a tile: token · rows + row. */
struct output {
    ptx_u32 row, token;
};

/* Σ over warps and planes of a row. */
static ptx_f32 add_warps(struct gguf_linear_kernel *q, const struct output *o, uint32_t first_row)
{
    ptx_kernel *k = q->k;
    ptx_u32 place = ptx_mad_lo_u32(k, o->token, U32(TILE_ROWS), o->row);
    ptx_u32 from = ptx_mad_lo_u32(k, place, U32(4), q->partials);
    ptx_f32 sum = F32(0);
    for (uint32_t w = 0; w < q->v->wk; w++)
        for (uint32_t plane = q->plan->planes; plane-- > 0;) {
            uint32_t column = plane * q->v->tile_m;
            uint32_t at = w * warp_bytes(q) + (column * TILE_ROWS + first_row) * 4;
            ptx_f32 part = ptx_ld_shared_f32(k, from, (int)at);
            bool is_first = !w && plane + 1 == q->plan->planes;
            sum = is_first ? part : ptx_add_f32(k, sum, part);
        }
    return sum;
}

/* ---- parts of K ---- */

static ptx_u64 part_sums(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 tile,
                         const struct output *o)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = q->v->tile_m * TILE_ROWS * 4;
    ptx_u32 number = p->before ? ptx_add_u32(k, tile, U32(p->before)) : tile;
    ptx_u64 of_tile =
        ptx_mad_wide_u32(k, number, U32(q->v->parts * bytes), q->params[PRODUCT_PARTIALS]);
    ptx_u32 place = ptx_mad_lo_u32(k, o->token, U32(TILE_ROWS), o->row);
    return ptx_mad_wide_u32(k, place, U32(4), of_tile);
}

static ptx_f32 add_parts(struct gguf_linear_kernel *q, ptx_u64 from, uint32_t first_row)
{
    ptx_kernel *k = q->k;
    ptx_f32 sum = F32(0);
    for (uint32_t part = 0; part < q->v->parts; part++) {
        uint32_t at = (part * q->v->tile_m * TILE_ROWS + first_row) * 4;
        ptx_f32 more = ptx_ld_global_f32_m(k, PTX_LD_CG, from, (int)at);
        sum = part ? ptx_add_f32(k, sum, more) : more;
    }
    return sum;
}

/* Whether this part is the last of the tile to arrive; its sums are in the workspace. */
static ptx_pred arrives_last(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 tile,
                             ptx_u32 thread)
{
    ptx_kernel *k = q->k;
    ptx_u32 flag = ptx_mad_lo_u32(k, q->wn, U32(4), q->arrivals);
    gguf_linear_synchronise(q);
    ptx_if(k, ptx_setp_eq_u32(k, thread, U32(0))) {
        ptx_u32 number = p->before ? ptx_add_u32(k, tile, U32(p->before)) : tile;
        ptx_u64 counter = ptx_mad_wide_u32(k, number, U32(4), q->params[PRODUCT_COUNTERS]);
        ptx_u32 before = ptx_atom_global_add_u32_m(k, PTX_ACQ_REL | PTX_GPU, counter, 0, U32(1));
        ptx_st_shared_u32(k, flag, 0, before);
    }
    gguf_linear_synchronise(q);
    ptx_u32 before = ptx_ld_shared_u32(k, flag, 0);
    return ptx_setp_eq_u32(k, before, U32(q->v->parts - 1));
}

/* ---- outputs ---- */

static ptx_f32 add_bias(struct gguf_linear_kernel *q, ptx_u64 bias, ptx_u32 feature, ptx_f32 sum)
{
    ptx_kernel *k = q->k;
    if (!q->spec->bias || is_joined(q->spec))
        return sum;
    ptx_u64 at = ptx_mad_wide_u32(k, feature, U32(4), bias);
    return ptx_add_f32(k, sum, ptx_ld_global_nc_f32(k, at, 0));
}

static void store_output(struct gguf_linear_kernel *q, const struct place *at,
                         const struct output *o, ptx_f32 sum, ptx_f32 up)
{
    ptx_kernel *k = q->k;
    uint8_t type = is_joined(q->spec) ? PTXGEN_F32 : q->spec->y_type;
    uint32_t bytes = (uint32_t)ptxgen_element_size((ptxgen_element)type);
    ptx_u32 feature = ptx_add_u32(k, at->feature, o->row);
    ptx_pred exists = ptx_setp_lt_u32(k, feature, at->n);
    ptx_if(k, ptx_setp_bool_lt_u32(k, o->token, q->in.m, exists)) {
        ptx_f32 value = add_bias(q, at->bias, feature, sum);
        if (is_interleaved(q->spec)) {
            up = add_bias(q, q->params[PRODUCT_BIAS + 1], feature, up);
            value = gguf_linear_gate(k, q->spec, value, up);
        }
        ptx_u64 line = ptx_mul_wide_u32(k, o->token, at->y_stride);
        ptx_u64 element = ptx_add_u64(k, line, ptx_cvt_u64_u32(k, feature));
        gguf_linear_store(k, type, ptx_mad_lo_u64(k, element, U64(bytes), at->y), value);
    }
}

typedef void take_output(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 tile,
                         const struct place *at, const struct output *o);

static void finish_output(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 tile,
                          const struct place *at, const struct output *o)
{
    ptx_f32 two[2] = {F32(0), F32(0)};
    ptx_u64 from = {0};
    if (q->v->parts > 1)
        from = part_sums(q, p, tile, o);
    for (uint32_t i = 0; i < (is_interleaved(q->spec) ? 2 : 1); i++)
        two[i] =
            q->v->parts > 1 ? add_parts(q, from, i * HALF_ROWS) : add_warps(q, o, i * HALF_ROWS);
    store_output(q, at, o, two[0], two[1]);
}

static void publish_output(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 tile,
                           const struct place *at, const struct output *o)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = q->v->tile_m * TILE_ROWS * 4;
    ptx_u64 to = ptx_mad_wide_u32(k, q->part, U32(bytes), part_sums(q, p, tile, o));
    (void)at;
    for (uint32_t i = 0; i < (is_interleaved(q->spec) ? 2 : 1); i++)
        ptx_st_global_f32(k, to, (int)(i * HALF_ROWS * 4), add_warps(q, o, i * HALF_ROWS));
}

/* Calls `take` for the thread's outputs of the tile. */
static void each_output(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 tile,
                        const struct place *at, ptx_u32 thread, take_output *take)
{
    ptx_kernel *k = q->k;
    uint32_t rows = tile_features(q->spec), all = rows * q->v->tile_m, threads = 32 * q->v->wk;
    for (uint32_t first = 0; first < all; first += threads) {
        ptx_u32 number = first ? ptx_add_u32(k, thread, U32(first)) : thread;
        ptx_if(k, ptx_setp_lt_u32(k, number, U32(all))) {
            struct output o;
            o.row = ptx_and_b32(k, number, U32(rows - 1));
            o.token = ptx_shr_u32(k, number, U32(rows == 8 ? 3 : 4));
            take(q, p, tile, at, &o);
        }
    }
}

void gguf_linear_finish(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 tile,
                        const struct sums *sums)
{
    ptx_kernel *k = q->k;
    ptx_section(k, "end of the tile: sums over planes, warps along K and parts, then store");
    struct place at = gguf_linear_locate(q, p, tile);
    store_sums(q, sums);
    gguf_linear_synchronise(q);
    if (q->v->parts == 1) {
        each_output(q, p, tile, &at, q->thread, finish_output);
        return;
    }
    each_output(q, p, tile, &at, q->thread, publish_output);
    ptx_if(k, arrives_last(q, p, tile, q->thread))
        each_output(q, p, tile, &at, q->thread, finish_output);
}

/* ---- a gate whose gate and up are of two types ---- */

void gguf_linear_emit_join(const ptxgen_gguf_linear_plan *plan, const ptxgen_gguf_linear_variant *v,
                           ptx_module *module)
{
    static const char *const names[] = {"gguf_linear_join_m1", "gguf_linear_join_m2",
                                        "gguf_linear_join_m4", "gguf_linear_join_m8"};
    const ptxgen_gguf_linear_spec *s = &plan->spec;
    const uint32_t n = s->n[0], ctas = (n + JOIN_THREADS - 1) / JOIN_THREADS; /* of a token */
    ptx_kernel *k = ptx_kernel_begin(module, names[__builtin_ctz(v->tile_m)]);
    ptx_kernel_reqntid(k, JOIN_THREADS, 1, 1);
    const struct gemm_param params[] = {
        {"gate", true}, {"up", true}, {"gate_bias", s->bias}, {"up_bias", s->bias}, {"y", true}};
    ptx_u64 wide[JOIN_Y_STRIDE];
    gemm_params_u64(k, params, JOIN_Y_STRIDE, wide);
    ptx_u32 y_stride = ptx_param_u32(k, "y_stride");
    ptx_u32 token = gemm_divide(k, ptx_sreg_ctaid_x(k), ctas);
    ptx_u32 chunk = gemm_remainder(k, ptx_sreg_ctaid_x(k), ctas);
    ptx_u32 feature = ptx_mad_lo_u32(k, chunk, U32(JOIN_THREADS), ptx_sreg_tid_x(k));
    ptx_if(k, ptx_setp_lt_u32(k, feature, U32(n))) {
        ptx_f32 two[2];
        ptx_u64 line = ptx_mul_wide_u32(k, token, U32(n));
        ptx_u64 element = ptx_add_u64(k, line, ptx_cvt_u64_u32(k, feature));
        for (int i = 0; i < 2; i++) {
            two[i] =
                ptx_ld_global_f32(k, ptx_mad_lo_u64(k, element, U64(4), wide[JOIN_GATE + i]), 0);
            if (!s->bias)
                continue;
            ptx_u64 at = ptx_mad_wide_u32(k, feature, U32(4), wide[JOIN_GATE_BIAS + i]);
            two[i] = ptx_add_f32(k, two[i], ptx_ld_global_nc_f32(k, at, 0));
        }
        uint32_t bytes = (uint32_t)ptxgen_element_size((ptxgen_element)s->y_type);
        ptx_u64 row = ptx_mul_wide_u32(k, token, y_stride);
        ptx_u64 place = ptx_add_u64(k, row, ptx_cvt_u64_u32(k, feature));
        ptx_u64 to = ptx_mad_lo_u64(k, place, U64(bytes), wide[JOIN_Y]);
        gguf_linear_store(k, s->y_type, to, gguf_linear_gate(k, s, two[0], two[1]));
    }
    ptx_kernel_end(k);
}
