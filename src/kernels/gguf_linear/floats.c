/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product of up to 8 tokens with matrices in F32, F16 and BF16.
 *
 *     w, rows as files have them ─▶ 16 bytes of a lane ─▶ f32 ─┐
 *     x, or f32 rows of h ─▶ eight values of a lane ─▶ f32 ────┴▶ fma ─▶ Σ lanes ─▶ Σ warps along K
 *                                                              ─▶ + bias, round ─▶ y
 *
 * A warp takes 2 features of up to 2 tokens, and in a step up to 1024 of K; or 4 features of more
 * tokens, for which h is loaded half as often, and 256 of K. It issues all loads of a step's
 * weights, 64 to 128 bytes of a lane, before it multiplies those of the step before. With 16 warps
 * that is 32 to 64 KB under way on a multiprocessor. The first step's loads do not wait for the
 * kernel ahead.
 *
 * Each weight is read once, and neither weights nor h are rounded. All sums have a fixed order. The
 * CTAs of the first matrix come first. The sums of gate and up go to the workspace, and a kernel
 * joins them (finish.c).
 */
#include "floats.h"

#include "emit.h"

#include "../gemm/tile.h"

enum { MOST_ROWS = 4, MOST_CHUNKS = 4, MOST_SUMS = 32 };

struct float_kernel {
    ptx_kernel *k;
    const ptxgen_gguf_linear_plan *plan;
    const ptxgen_gguf_linear_spec *spec;
    uint32_t tile_m, rows, wk;
    struct gemm_threads at;
    ptx_u32 along_n, along_k;
    ptx_u64 params[FLOAT_Y_STRIDE];
    ptx_u32 y_stride[MATRICES], h_stride, m;
    ptx_u32 sums; /* shared: of all warps */
};

/* The product of one matrix, as a warp sees it. */
struct float_matrix {
    uint32_t number, type, chunks, steps;
    bool is_whole; /* K is whole steps */
    ptxgen_element element;
    ptx_u32 first; /* the CTA's first feature */
    ptx_u64 w[MOST_ROWS], h[PASS_TOKENS];
    ptx_pred w_vectors, h_vectors;
    ptx_u32 column, next; /* of the lane's first value in the step, and in that which is loaded */
    ptx_pred in_k[MOST_CHUNKS];
    ptx_u32 words[MOST_ROWS][MOST_CHUNKS][LANE_VALUES];
    ptx_f32 sum[MOST_SUMS]; /* token · rows + row */
};

/* The type of the rows of h. */
static ptxgen_element h_type(const ptxgen_gguf_linear_spec *s)
{
    return has_float_rows(s) ? PTXGEN_F32 : (ptxgen_element)s->x_type;
}

/* ---- loading ---- */

/* Eight values of a lane of each chunk of a row, which is aligned; nothing is loaded past K. */
static void load_vectors(struct float_kernel *q, const struct float_matrix *x, ptx_u64 row,
                         ptx_u32 column, ptxgen_element type,
                         ptx_u32 words[MOST_CHUNKS][LANE_VALUES])
{
    ptx_kernel *k = q->k;
    const uint32_t bytes = (uint32_t)ptxgen_element_size(type), count = 2 * bytes;
    ptx_u64 from = ptx_mad_wide_u32(k, column, U32(bytes), row);
    for (uint32_t c = 0; c < x->chunks; c++)
        for (uint32_t i = 0; i < count; i += 4) {
            const int offset = (int)(c * FLOAT_CHUNK * bytes + 4 * i);
            if (x->is_whole)
                ptx_ld_global_v4_u32_to(k, &words[c][i], from, offset);
            else
                ptx_guarded(k, x->in_k[c])
                    ptx_ld_global_v4_u32_to(k, &words[c][i], from, offset);
        }
}

/* The same, of a row that is not aligned. */
static void load_elements(struct float_kernel *q, const struct float_matrix *x, ptx_u64 row,
                          ptx_u32 column, ptxgen_element type,
                          ptx_u32 words[MOST_CHUNKS][LANE_VALUES])
{
    ptx_kernel *k = q->k;
    const uint32_t bytes = (uint32_t)ptxgen_element_size(type);
    ptx_u64 from = ptx_mad_wide_u32(k, column, U32(bytes), row);
    for (uint32_t c = 0; c < x->chunks; c++)
        ptx_if(k, x->in_k[c]) {
            ptx_u64 at = ptx_add_u64(k, from, U64(c * FLOAT_CHUNK * bytes));
            gguf_linear_load_elements(k, at, bytes == 2, words[c]);
        }
}

/* Zeros for what is past K. */
static void clear(struct float_kernel *q, const struct float_matrix *x, ptxgen_element type,
                  ptx_u32 words[MOST_CHUNKS][LANE_VALUES])
{
    for (uint32_t c = 0; !x->is_whole && c < x->chunks; c++)
        for (uint32_t i = 0; i < 2 * ptxgen_element_size(type); i++)
            ptx_mov_u32_to(q->k, words[c][i], U32(0));
}

static void find_chunks(struct float_kernel *q, struct float_matrix *x, ptx_u32 column)
{
    ptx_kernel *k = q->k;
    for (uint32_t c = 0; c < x->chunks; c++)
        x->in_k[c] =
            ptx_setp_lt_u32(k, ptx_add_u32(k, column, U32(c * FLOAT_CHUNK)), U32(q->spec->k));
}

static void load_weights(struct float_kernel *q, struct float_matrix *x)
{
    ptx_kernel *k = q->k;
    find_chunks(q, x, x->next);
    for (uint32_t r = 0; r < q->rows; r++)
        clear(q, x, x->element, x->words[r]);
    ptx_if_else(k, x->w_vectors) {
        for (uint32_t r = 0; r < q->rows; r++)
            load_vectors(q, x, x->w[r], x->next, x->element, x->words[r]);
    } else {
        for (uint32_t r = 0; r < q->rows; r++)
            load_elements(q, x, x->w[r], x->next, x->element, x->words[r]);
    }
}

/* A token's values of the step, of which x's may lie anywhere. */
static void load_h(struct float_kernel *q, struct float_matrix *x, uint32_t token,
                   ptx_u32 words[MOST_CHUNKS][LANE_VALUES])
{
    ptx_kernel *k = q->k;
    const ptxgen_element type = h_type(q->spec);
    for (uint32_t c = 0; c < x->chunks; c++)
        gemm_new_registers(k, words[c], LANE_VALUES);
    if (has_float_rows(q->spec)) {
        load_vectors(q, x, x->h[token], x->column, type, words);
        return;
    }
    ptx_if_else(k, x->h_vectors)
        load_vectors(q, x, x->h[token], x->column, type, words);
    else
        load_elements(q, x, x->h[token], x->column, type, words);
}

/* ---- multiplying ---- */

typedef ptx_f32 step_weights[MOST_ROWS][MOST_CHUNKS][LANE_VALUES];

/* Takes the step's weights out of the registers that the next ones are loaded into. */
static void take_weights(struct float_kernel *q, const struct float_matrix *x, step_weights w)
{
    ptx_kernel *k = q->k;
    for (uint32_t r = 0; r < q->rows; r++)
        for (uint32_t c = 0; c < x->chunks; c++) {
            gguf_linear_widen(k, x->element, x->words[r][c], w[r][c]);
            for (int i = 0; x->element == PTXGEN_F32 && i < LANE_VALUES; i++)
                w[r][c][i] = ptx_mov_f32(k, w[r][c][i]);
        }
}

static void multiply(struct float_kernel *q, struct float_matrix *x, step_weights w)
{
    ptx_kernel *k = q->k;
    find_chunks(q, x, x->column);
    for (uint32_t t = 0; t < q->tile_m; t++) {
        ptx_u32 words[MOST_CHUNKS][LANE_VALUES];
        load_h(q, x, t, words);
        for (uint32_t c = 0; c < x->chunks; c++) {
            ptx_f32 h[LANE_VALUES];
            gguf_linear_widen(k, h_type(q->spec), words[c], h);
            for (uint32_t i = 0; i < LANE_VALUES; i++)
                for (uint32_t r = 0; r < q->rows; r++) {
                    ptx_f32 sum = x->sum[t * q->rows + r];
                    ptx_fma_f32_to(k, sum, w[r][c][i], h[i], sum);
                }
        }
    }
}

/* ---- the end ---- */

/*
 * Adds up over the lanes: with each halving of the lanes a lane keeps half of its sums, until it
 * has one, which those lanes add up that have the same.
 */
static void add_lanes(struct float_kernel *q, struct float_matrix *x)
{
    ptx_kernel *k = q->k;
    uint32_t count = q->tile_m * q->rows;
    for (unsigned mask = 16; mask; mask /= 2) {
        ptx_pred upper = ptx_setp_ne_u32(k, ptx_and_b32(k, q->at.lane, U32(mask)), U32(0));
        if (count == 1) {
            ptx_f32 other = ptx_shfl_sync_bfly_f32(k, x->sum[0], U32(mask), U32(31), ALL_LANES);
            x->sum[0] = ptx_add_f32(k, x->sum[0], other);
            continue;
        }
        count /= 2;
        for (uint32_t i = 0; i < count; i++) {
            ptx_f32 kept = ptx_selp_f32(k, x->sum[i + count], x->sum[i], upper);
            ptx_f32 given = ptx_selp_f32(k, x->sum[i], x->sum[i + count], upper);
            ptx_f32 other = ptx_shfl_sync_bfly_f32(k, given, U32(mask), U32(31), ALL_LANES);
            x->sum[i] = ptx_add_f32(k, kept, other);
        }
    }
}

/* One sum of each lane that has the first copy of it to shared memory. */
static void store_sums(struct float_kernel *q, const struct float_matrix *x)
{
    ptx_kernel *k = q->k;
    const uint32_t all = q->tile_m * q->rows, lanes = 32 / all;
    ptx_u32 number = gemm_divide(k, q->at.lane, lanes);
    ptx_u32 place = ptx_mad_lo_u32(k, q->at.warp, U32(all), number);
    ptx_u32 to = ptx_mad_lo_u32(k, place, U32(4), q->sums);
    ptx_pred is_first = ptx_setp_eq_u32(k, gemm_remainder(k, q->at.lane, lanes), U32(0));
    ptx_guarded(k, is_first)
        ptx_st_shared_f32(k, to, 0, x->sum[0]);
}

static void store_output(struct float_kernel *q, const struct float_matrix *x, ptx_u32 feature,
                         ptx_u32 token, ptx_f32 sum)
{
    ptx_kernel *k = q->k;
    const bool joined = is_joined(q->spec);
    const uint8_t type = joined ? PTXGEN_F32 : q->spec->y_type;
    const uint32_t bytes = (uint32_t)ptxgen_element_size((ptxgen_element)type);
    if (q->spec->bias && !joined) {
        ptx_u64 bias = ptx_mad_wide_u32(k, feature, U32(4), q->params[FLOAT_BIAS + x->number]);
        sum = ptx_add_f32(k, sum, ptx_ld_global_nc_f32(k, bias, 0));
    }
    ptx_u64 line = ptx_mul_wide_u32(k, token, q->y_stride[x->number]);
    ptx_u64 element = ptx_add_u64(k, line, ptx_cvt_u64_u32(k, feature));
    ptx_u64 to = ptx_mad_lo_u64(k, element, U64(bytes), q->params[FLOAT_Y + x->number]);
    gguf_linear_store(k, type, to, sum);
}

/* The first threads have an output of the CTA each: along N, then by token, then by row. */
static void finish(struct float_kernel *q, struct float_matrix *x)
{
    ptx_kernel *k = q->k;
    const uint32_t all = q->tile_m * q->rows, outputs = FLOAT_WARPS / q->wk * all;
    ptx_section(k, "sums over lanes and over the warps along K, then store");
    add_lanes(q, x);
    store_sums(q, x);
    ptx_bar_sync(k, 0);
    ptx_if(k, ptx_setp_lt_u32(k, q->at.thread, U32(outputs))) {
        ptx_u32 along_n = gemm_divide(k, q->at.thread, all);
        ptx_u32 own = gemm_remainder(k, q->at.thread, all);
        ptx_u32 token = gemm_divide(k, own, q->rows), row = gemm_remainder(k, own, q->rows);
        ptx_u32 place = ptx_mad_lo_u32(k, along_n, U32(q->wk * all), own);
        ptx_u32 from = ptx_mad_lo_u32(k, place, U32(4), q->sums);
        ptx_f32 sum = ptx_ld_shared_f32(k, from, 0);
        for (uint32_t w = 1; w < q->wk; w++)
            sum = ptx_add_f32(k, sum, ptx_ld_shared_f32(k, from, (int)(w * all * 4)));
        ptx_u32 of_warp = ptx_mad_lo_u32(k, along_n, U32(q->rows), x->first);
        ptx_u32 feature = ptx_add_u32(k, of_warp, row);
        ptx_pred exists = ptx_setp_lt_u32(k, feature, U32(q->spec->n[x->number]));
        ptx_if(k, ptx_setp_bool_lt_u32(k, token, q->m, exists))
            store_output(q, x, feature, token, sum);
    }
}

/* ---- a matrix ---- */

static ptx_pred starts_aligned(ptx_kernel *k, ptx_u64 bits)
{
    return ptx_setp_eq_u64(k, ptx_and_b64(k, bits, U64(15)), U64(0));
}

/* Features past the last are the last, and tokens likewise; neither are stored. */
static void find_places(struct float_kernel *q, struct float_matrix *x, ptx_u32 cta)
{
    ptx_kernel *k = q->k;
    const uint64_t row = row_bytes(q->spec, x->type);
    const uint32_t h_bytes = (uint32_t)ptxgen_element_size(h_type(q->spec));
    ptx_u64 base = q->params[FLOAT_W + x->number], h = q->params[FLOAT_H];
    ptx_u32 last = ptx_sub_u32(k, q->m, U32(1));
    x->first = ptx_mul_lo_u32(k, cta, U32(float_cta_rows(q->spec, q->tile_m)));
    ptx_u32 own = ptx_mad_lo_u32(k, q->along_n, U32(q->rows), x->first);
    for (uint32_t r = 0; r < q->rows; r++) {
        ptx_u32 feature =
            ptx_min_u32(k, ptx_add_u32(k, own, U32(r)), U32(q->spec->n[x->number] - 1));
        x->w[r] = ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, feature), U64(row), base);
    }
    ptx_u64 pitch = ptx_mul_wide_u32(k, q->h_stride, U32(h_bytes));
    for (uint32_t t = 0; t < q->tile_m; t++) {
        ptx_u32 token = ptx_min_u32(k, U32(t), last);
        x->h[t] = ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, token), pitch, h);
    }
    x->w_vectors = starts_aligned(k, base);
    x->h_vectors = starts_aligned(k, ptx_or_b64(k, h, pitch));
}

static void begin_sums(struct float_kernel *q, struct float_matrix *x)
{
    ptx_kernel *k = q->k;
    ptx_u32 of_lane = ptx_mul_lo_u32(k, q->at.lane, U32(LANE_VALUES));
    ptx_u32 own = ptx_mad_lo_u32(k, q->along_k, U32(x->chunks * FLOAT_CHUNK), of_lane);
    x->column = ptx_mov_u32(k, own);
    x->next = ptx_mov_u32(k, own);
    for (uint32_t r = 0; r < q->rows; r++)
        for (uint32_t c = 0; c < x->chunks; c++)
            gemm_new_registers(k, x->words[r][c], LANE_VALUES);
    for (uint32_t i = 0; i < q->tile_m * q->rows; i++)
        x->sum[i] = ptx_mov_f32(k, F32(0));
}

static void take_matrix(struct float_kernel *q, struct float_matrix *x, ptx_u32 cta)
{
    ptx_kernel *k = q->k;
    const uint32_t along_k = q->wk * x->chunks * FLOAT_CHUNK;
    find_places(q, x, cta);
    begin_sums(q, x);
    ptx_section(k, "the first step's weights");
    load_weights(q, x);
    if (gemm_overlaps(&q->plan->target)) {
        ptx_griddepcontrol_launch_dependents(k);
        ptx_griddepcontrol_wait(k);
    }
    ptx_section(k, "steps along K");
    ptx_u32 step = ptx_mov_u32(k, U32(1));
    ptx_loop(k, steps) {
        ptx_nounroll(k);
        step_weights w;
        ptx_pred is_last = ptx_setp_ge_u32(k, step, U32(x->steps));
        take_weights(q, x, w);
        ptx_add_u32_to(k, x->next, x->next, U32(along_k));
        ptx_unless(k, is_last)
            load_weights(q, x);
        multiply(q, x, w);
        ptx_loop_break_if(&steps, is_last, false);
        ptx_add_u32_to(k, step, step, U32(1));
        ptx_mov_u32_to(k, x->column, x->next);
    }
    finish(q, x);
}

/* ---- entries ---- */

static void load_params(struct float_kernel *q)
{
    static const char *const wide[] = {"w0",    "w1", "w2", "bias0", "bias1",
                                       "bias2", "y0", "y1", "y2",    "h"};
    static const char *const narrow[] = {"y_stride0", "y_stride1", "y_stride2"};
    for (int i = 0; i < FLOAT_Y_STRIDE; i++)
        q->params[i] = ptx_param_u64(q->k, wide[i]);
    for (int i = 0; i < MATRICES; i++)
        q->y_stride[i] = ptx_param_u32(q->k, narrow[i]);
    q->h_stride = ptx_param_u32(q->k, "h_stride");
    q->m = ptx_param_u32(q->k, "m");
}

static void emit_product(const ptxgen_gguf_linear_plan *plan, uint32_t tile_m, ptx_module *module)
{
    static const ptxgen_element elements[] = {PTXGEN_F32, PTXGEN_F16};
    const ptxgen_gguf_linear_spec *s = &plan->spec;
    struct float_kernel q = {
        .plan = plan, .spec = s, .tile_m = tile_m, .rows = float_rows(tile_m), .wk = float_wk(s)};
    ptx_kernel *k = q.k = ptx_kernel_begin(module, gguf_linear_float_entry(tile_m));
    ptx_kernel_reqntid(k, FLOAT_THREADS, 1, 1);
    ptx_kernel_minnctapersm(k, 2);
    load_params(&q);
    q.at = gemm_find_threads(k);
    q.along_n = gemm_divide(k, q.at.warp, q.wk);
    q.along_k = gemm_remainder(k, q.at.warp, q.wk);
    q.sums =
        ptx_shared_address(k, ptx_shared_declare(k, "sums of the warps", float_shared(tile_m), 4));
    uint32_t before = 0;
    for (uint32_t i = 0; i < matrix_count(s); i++) {
        const uint32_t ctas = float_ctas(s, i, tile_m), type = s->w_type[i];
        struct float_matrix x = {.number = i,
                                 .type = type,
                                 .chunks = float_chunks(tile_m, type),
                                 .steps = float_steps(s, tile_m, type)};
        if (!ctas)
            continue;
        x.element = type == PTXGEN_GGUF_BF16 ? PTXGEN_BF16 : elements[type];
        x.is_whole = s->k % (q.wk * x.chunks * FLOAT_CHUNK) == 0;
        ptx_u32 cta = ptx_sub_u32(k, q.at.cta, U32(before));
        ptx_if(k, ptx_setp_lt_u32(k, cta, U32(ctas)))
            take_matrix(&q, &x, cta);
        before += ctas;
    }
    ptx_kernel_end(k);
}

const char *gguf_linear_float_entry(uint32_t tile_m)
{
    switch (tile_m) { /* a caller's variant may have any number */
    case 1: return "gguf_linear_float_m1";
    case 2: return "gguf_linear_float_m2";
    case 4: return "gguf_linear_float_m4";
    default: return "gguf_linear_float_m8";
    }
}

void gguf_linear_emit_floats(const ptxgen_gguf_linear_plan *plan,
                             const ptxgen_gguf_linear_variant *v, ptx_module *module)
{
    static const char *const names[] = {"gguf_linear_rows_m1", "gguf_linear_rows_m2",
                                        "gguf_linear_rows_m4", "gguf_linear_rows_m8"};
    if (has_float_rows(&plan->spec))
        gguf_linear_emit_rows(plan, PTXGEN_F32, names[__builtin_ctz(v->tile_m)], module);
    emit_product(plan, v->tile_m, module);
}
