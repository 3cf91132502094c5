/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of launches of many tokens, and their entries; inflate.h has the picture. */
#include "inflate.h"

#include "emit.h"
#include "output.h"

#include "../gguf_rows/layout.h"

#include <stdio.h>
#include <string.h>

/* ---- the plan ---- */

static uint32_t round_up(uint64_t n, uint32_t unit)
{
    return (uint32_t)((n + unit - 1) / unit * unit);
}

/* The first rows of matrices, and those of all. */
static uint32_t place_matrices(const ptxgen_gguf_linear_spec *s, uint32_t first[MATRICES])
{
    uint32_t rows = 0;
    if (is_gated(s))
        return 2 * round_up(s->n[0], INFLATE_PAIRS);
    for (uint32_t i = 0; i < matrix_count(s); i++) {
        first[i] = round_up(rows, INFLATE_ROWS);
        rows = first[i] + s->n[i];
    }
    return rows;
}

uint32_t gguf_linear_all_rows(const ptxgen_gguf_linear_spec *s)
{
    uint32_t first[MATRICES];
    return place_matrices(s, first);
}

struct gguf_linear_slices gguf_linear_slices(const ptxgen_gguf_linear_plan *p)
{
    const ptxgen_gguf_linear_spec *s = &p->spec;
    struct gguf_linear_slices slices = {.count = 1};
    const uint64_t row = (uint64_t)s->k * ptxgen_element_size(gguf_linear_compute_type(s));
    uint64_t most = (uint64_t)p->target.multiprocessors * INFLATE_SLICE_BYTES / row;
    most = most < INFLATE_ROWS ? INFLATE_ROWS : most / INFLATE_ROWS * INFLATE_ROWS;
    uint32_t rows = place_matrices(s, slices.first);
    slices.rows = rows;
    if (rows <= most || gguf_linear_takes_w(s))
        return slices;
    slices.count = (uint32_t)((rows + most - 1) / most);
    slices.rows = round_up((rows + slices.count - 1) / slices.count, INFLATE_ROWS);
    slices.count = (rows + slices.rows - 1) / slices.rows;
    return slices;
}

/* The warps of tiles of that kind stage sums alone, which may not hold those of gate and up. */
static void drop_bulk_tiles(ptxgen_dense_plan *plan)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (!dense_is_alone(&plan->variants[i]))
            plan->variants[kept++] = plan->variants[i];
    memset(&plan->variants[kept], 0, (plan->variant_count - kept) * sizeof *plan->variants);
    plan->variant_count = kept;
}

ptxgen_status gguf_linear_plan_inflated(ptxgen_gguf_linear_plan *plan, ptxgen_error *err)
{
    const ptxgen_dense_spec dense =
        gguf_linear_dense_spec(&plan->spec, gguf_linear_slices(plan).rows);
    ptxgen_status status = ptxgen_dense_make_plan(&dense, &plan->target, &plan->inflated, err);
    if (status == PTXGEN_OK && is_gated(&plan->spec))
        drop_bulk_tiles(&plan->inflated);
    return status;
}

const ptxgen_tile *ptxgen_gguf_linear_choose_inflated(const ptxgen_gguf_linear_plan *p, uint64_t m)
{
    if (!gguf_linear_is_plan(p) || m <= passes_most_m(p) || !p->inflated.variant_count)
        return NULL;
    return ptxgen_dense_choose(&p->inflated, m);
}

/* ---- the product ---- */

static struct gguf_linear_output *inflated_of(const struct dense_product *q)
{
    return q->use->user;
}

void gguf_linear_declare_output(struct dense_product *q)
{
    static const char *const names[INFLATE_PARAMS] = {
        "first", "y_1", "y_2", "y_stride_1", "y_stride_2", "bias_0", "bias_1", "bias_2"};
    struct gguf_linear_output *f = inflated_of(q);
    const uint32_t matrices = matrix_count(f->spec), outputs = output_count(f->spec);
    struct gemm_param params[INFLATE_PARAMS];
    for (int i = 0; i < INFLATE_PARAMS; i++)
        params[i].name = names[i];
    params[INFLATE_FIRST].used = true;
    params[INFLATE_Y_1].used = params[INFLATE_Y_STRIDE_1].used = outputs > 1;
    params[INFLATE_Y_2].used = params[INFLATE_Y_STRIDE_2].used = outputs > 2;
    for (uint32_t i = 0; i < MATRICES; i++)
        params[INFLATE_BIAS + i].used = f->spec->bias && i < matrices;
    gemm_params_u64(q->g.k, params, INFLATE_PARAMS, f->params);
}

/* One of the values that matrices have, by the tile's matrix. */
static ptx_u64 choose(ptx_kernel *k, const ptx_pred is_later[MATRICES], uint32_t count,
                      const ptx_u64 values[MATRICES])
{
    ptx_u64 chosen = values[0];
    for (uint32_t i = 1; i < count; i++)
        chosen = ptx_selp_u64(k, values[i], chosen, is_later[i]);
    return chosen;
}

/* Finds the matrix of a tile whose first row of all is `row`, and the row's feature of it. */
static void find_matrix(struct dense_product *q, ptx_u32 row, struct gemm_epilogue *o)
{
    ptx_kernel *k = q->g.k;
    struct gguf_linear_output *f = inflated_of(q);
    const uint32_t count = output_count(f->spec);
    const ptx_u64 *p = f->params;
    const ptx_u64 y[MATRICES] = {q->address[DENSE_Y], p[INFLATE_Y_1], p[INFLATE_Y_2]};
    const ptx_u64 strides[MATRICES] = {q->address[DENSE_Y_STRIDE], p[INFLATE_Y_STRIDE_1],
                                       p[INFLATE_Y_STRIDE_2]};
    ptx_pred is_later[MATRICES];
    ptx_u32 first = U32(0), n = U32(f->spec->n[0]);
    for (uint32_t i = 1; i < count; i++) {
        is_later[i] = ptx_setp_ge_u32(k, row, U32(f->slices.first[i]));
        first = ptx_selp_u32(k, U32(f->slices.first[i]), first, is_later[i]);
        n = ptx_selp_u32(k, U32(f->spec->n[i]), n, is_later[i]);
    }
    o->first_column = ptx_sub_u32(k, row, first);
    o->end_column = n;
    o->y = choose(k, is_later, count, y);
    o->y_stride = choose(k, is_later, count, strides);
    if (f->spec->bias)
        f->bias[0] = choose(k, is_later, count, p + INFLATE_BIAS);
}

static void locate(void *user, ptx_u32 tile, struct gemm_epilogue *o)
{
    struct dense_product *q = user;
    ptx_kernel *k = q->g.k;
    struct gguf_linear_output *f = inflated_of(q);
    struct gemm_place place = dense_find_tile(q, tile);
    ptx_u32 first = ptx_cvt_u32_u64(k, f->params[INFLATE_FIRST]);
    o->first_row = place.m;
    if (is_gated(f->spec))
        o->first_column = ptx_add_u32(k, first, ptx_shr_u32(k, place.n, U32(1)));
    else if (output_count(f->spec) == 1)
        o->first_column = ptx_add_u32(k, first, place.n);
    else
        find_matrix(q, ptx_add_u32(k, first, place.n), o);
}

/* Sums with their biases, which are f32 whatever y is. */
static void add_bias(void *user, const struct gemm_epilogue_place *at, const ptx_u32 *sums,
                     ptx_f32 *v)
{
    struct dense_product *q = user;
    ptx_kernel *k = q->g.k;
    struct gemm_chunk words = at->chunk;
    words.f32 = true;
    for (uint32_t i = 0; i < words.width; i++)
        v[i] = ptx_u32_as_f32(sums[i]);
    ptx_u64 from = ptx_mad_wide_u32(k, at->column, U32(4), inflated_of(q)->bias[at->up]);
    gemm_chunk_add(k, &words, from, v);
}

static ptx_u64 any_of(ptx_kernel *k, const ptx_u64 *values, uint32_t count, ptx_u64 bits)
{
    for (uint32_t i = 0; i < count; i++)
        bits = ptx_or_b64(k, bits, values[i]);
    return bits;
}

void gguf_linear_begin_output(struct dense_product *q, struct gemm_epilogue *o)
{
    ptx_kernel *k = q->g.k;
    struct gguf_linear_output *f = inflated_of(q);
    const ptxgen_gguf_linear_spec *s = f->spec;
    const uint32_t count = output_count(s);
    o->type = (ptxgen_element)s->y_type;
    o->locate = locate;
    o->n = s->n[0];
    for (uint32_t i = 1; i < count; i++)
        o->n = s->n[i] % 8 ? s->n[i] : o->n; /* one whose rows end within a chunk, if there is */
    o->has_any_tiles = count > 1 && o->n % 8;
    /* The bits of all, by which rows of each are aligned or not. */
    o->y = any_of(k, f->params + INFLATE_Y_1, count - 1, o->y);
    o->y_stride = any_of(k, f->params + INFLATE_Y_STRIDE_1, count - 1, o->y_stride);
    if (is_gated(s)) {
        o->pairs = INFLATE_PAIRS;
        o->gate = s->epilogue == PTXGEN_EPILOGUE_GEGLU ? PTXGEN_ACTIVATION_GELU_TANH : 0;
    }
    if (!s->bias)
        return;
    memcpy(f->bias, f->params + INFLATE_BIAS, sizeof f->bias);
    o->scale = add_bias;
    o->has_scale_places = true;
    o->scale_places =
        any_of(k, f->params + INFLATE_BIAS + 1, matrix_count(s) - 1, f->params[INFLATE_BIAS]);
}

/* ---- entries ---- */

const char *ptxgen_gguf_linear_inflated_entry(const ptxgen_tile *tile)
{
    static const char *const names[DENSE_WAYS][GEMM_WIDTHS] = {
        [DENSE_MMA] = GEMM_NAMES("gguf_linear_mma_m"),
        [DENSE_WGMMA] = GEMM_NAMES("gguf_linear_wgmma_m"),
        [DENSE_WGMMA_PAIR] = GEMM_NAMES("gguf_linear_wgmma_pair_m"),
        [DENSE_WGMMA_SPLIT] = GEMM_NAMES("gguf_linear_wgmma_split_m"),
        [DENSE_BULK] = GEMM_NAMES("gguf_linear_bulk_m"),
        [DENSE_BULK_PAIR] = GEMM_NAMES("gguf_linear_bulk_pair_m"),
    };
    return tile ? dense_name(names, tile) : NULL;
}

static void emit_product(const ptxgen_gguf_linear_plan *plan, const ptxgen_tile *v,
                         ptx_module *module)
{
    struct gguf_linear_output f = {.spec = &plan->spec, .slices = gguf_linear_slices(plan)};
    const struct dense_use use = {ptxgen_gguf_linear_inflated_entry(v), gguf_linear_declare_output,
                                  gguf_linear_begin_output, &f};
    dense_emit_entry(&plan->inflated, v, &use, module);
}

static void emit_decoders(const ptxgen_gguf_linear_plan *plan, ptx_module *module)
{
    static const char *const names[MATRICES] = {"gguf_linear_decode_0", "gguf_linear_decode_1",
                                                "gguf_linear_decode_2"};
    const ptxgen_gguf_linear_spec *s = &plan->spec;
    uint32_t emitted = 0;
    for (uint32_t i = 0; i < matrix_count(s); i++) {
        const ptxgen_gguf_rows_spec rows = {
            .k = s->k, .w_type = s->w_type[i], .y_type = (uint8_t)gguf_linear_compute_type(s)};
        const struct gguf_rows_decoder decoder = {names[emitted], is_gated(s)};
        ptxgen_gguf_rows_plan made;
        if (gguf_linear_decoder_of(s, i) != emitted)
            continue;
        ptxgen_gguf_rows_make_plan(&rows, &plan->target, &made, NULL);
        gguf_rows_emit_entry(&made, &decoder, module);
        emitted++;
    }
}

void gguf_linear_emit_inflated(const ptxgen_gguf_linear_plan *plan, ptx_module *module)
{
    for (uint32_t i = 0; i < plan->inflated.variant_count; i++)
        emit_product(plan, &plan->inflated.variants[i], module);
    gguf_linear_emit_rows(plan, gguf_linear_compute_type(&plan->spec), "gguf_linear_prepare",
                          module);
    emit_decoders(plan, module);
}
