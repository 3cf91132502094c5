/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch of the gguf_linear family takes and enqueues. */
#include <ptxgen/gguf_linear.h>

#include "src/kernels/gguf_linear/direct.h"
#include "src/kernels/gguf_linear/floats.h"
#include "src/kernels/gguf_rows/layout.h"
#include "src/runtime/dense.h"
#include "src/runtime/family.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const w_names[] = {"w[0]", "w[1]", "w[2]"};
static const char *const bias_names[] = {"bias[0]", "bias[1]", "bias[2]"};
static const char *const y_names[] = {"y[0]", "y[1]", "y[2]"};

FAMILY_CALLBACKS(gguf_linear)
FAMILY_EMIT(gguf_linear)

static const char *type_name(uint8_t type)
{
    const ptxgen_gguf_type_info *info = ptxgen_gguf_type_find(type);
    return info ? info->name : "?";
}

static void describe(const void *spec, char *text, size_t size)
{
    static const char *const epilogues[] = {"", " swiglu", " geglu"};
    static const char *const residuals[] = {"", " residual", " residual_after"};
    const ptxgen_gguf_linear_spec *s = spec;
    snprintf(text, size, "k=%u n=%u,%u,%u w=%s,%s,%s x=%s y=%s epsilon=%.9g max_m=%u%s%s%s%s%s%s%s",
             s->k, s->n[0], s->n[1], s->n[2], type_name(s->w_type[0]), type_name(s->w_type[1]),
             type_name(s->w_type[2]), family_element(s->x_type), family_element(s->y_type),
             s->epsilon, s->max_m, s->norm ? " rmsnorm" : "",
             s->residual <= PTXGEN_GGUF_LINEAR_AFTER ? residuals[s->residual] : " ?",
             s->residual_out ? " residual_out" : "",
             s->epilogue <= PTXGEN_EPILOGUE_GEGLU ? epilogues[s->epilogue] : " ?",
             s->bias ? " bias" : "", s->compute ? " compute=" : "",
             s->compute ? family_element(s->compute) : "");
}

static ptxgen_status arrays(const void *plan, void *args, struct family_arrays *to,
                            ptxgen_error *err)
{
    enum { F32 = 4 };
    const ptxgen_gguf_linear_spec *s = &((const ptxgen_gguf_linear_plan *)plan)->spec;
    ptxgen_gguf_linear_args *a = args;
    const bool after = s->residual == PTXGEN_GGUF_LINEAR_AFTER;
    unsigned x = (unsigned)ptxgen_element_size((ptxgen_element)s->x_type);
    unsigned y = (unsigned)ptxgen_element_size((ptxgen_element)s->y_type);
    (void)err;
    *to = (struct family_arrays){
        5,
        {OPERAND_ROWS(a, x, true, INPUT, x, s->k, a->m),
         OPERAND_BYTES(a, gamma, s->norm, INPUT, F32, (uint64_t)s->k * F32),
         OPERAND_BYTES(a, post_gamma, after, INPUT, F32, (uint64_t)s->k * F32),
         OPERAND_ROWS(a, residual, s->residual, INPUT, x, s->k, a->m),
         OPERAND_ROWS(a, residual_out, s->residual_out, OUTPUT, x, s->k, a->m)}};
    for (uint32_t i = 0; i < matrix_count(s); i++) {
        uint64_t n = s->n[i], w = n * row_bytes(s, s->w_type[i]);
        const struct launch_array own[] = {
            LAUNCH_BYTES(w_names[i], true, LAUNCH_INPUT, a->w[i], a->w_bytes[i], w_align(s, i), w),
            LAUNCH_ROWS(y_names[i], i < output_count(s), LAUNCH_OUTPUT, a->y[i], a->y_bytes[i], y,
                        &a->y_stride[i], n, a->m),
            LAUNCH_BYTES(bias_names[i], s->bias, LAUNCH_INPUT, a->bias[i], a->bias_bytes[i], F32,
                         n * F32),
        };
        memcpy(&to->arrays[to->count], own, sizeof own);
        to->count += sizeof own / sizeof *own;
    }
    return PTXGEN_OK;
}

/* ---- entries ---- */

static unsigned entry_of(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_variant *v,
                         enum gguf_linear_kind kind)
{
    unsigned index = 0;
    for (const ptxgen_gguf_linear_variant *before = p->variants; before < v; before++)
        index += entries_before(&p->spec, before, GGUF_LINEAR_KINDS);
    return index + entries_before(&p->spec, v, kind);
}

/* The first entry behind those of variants. */
static unsigned first_entry_behind(const ptxgen_gguf_linear_plan *p)
{
    unsigned index = 0;
    for (uint32_t i = 0; i < p->variant_count; i++)
        index += entries_before(&p->spec, &p->variants[i], GGUF_LINEAR_KINDS);
    return index;
}

/* Entries behind those of variants: of the product, of h, and the decoders. */
static unsigned inflated_entry(const ptxgen_gguf_linear_plan *p, const ptxgen_tile *v)
{
    return first_entry_behind(p) +
           (unsigned)(v ? v - p->inflated.variants : p->inflated.variant_count);
}

/* Entries behind those of variants: of h, then of the tiles. */
enum direct_kind { DIRECT_PREPARE, DIRECT_PRODUCT };
static unsigned direct_entry(const ptxgen_gguf_linear_plan *p, enum direct_kind kind)
{
    return first_entry_behind(p) + kind;
}

static int entry(const void *plan, uint64_t m)
{
    const ptxgen_gguf_linear_plan *p = plan;
    const ptxgen_gguf_linear_variant *v = ptxgen_gguf_linear_choose(p, m);
    const ptxgen_tile *tile = ptxgen_gguf_linear_choose_inflated(p, m);
    const ptxgen_tile *direct = ptxgen_gguf_linear_choose_direct(p, m);
    if (direct)
        return (int)(direct_entry(p, DIRECT_PRODUCT) + (direct - p->direct));
    if (tile)
        return (int)inflated_entry(p, tile);
    return v ? (int)entry_of(plan, v, has_quantised(&p->spec) ? KIND_PRODUCT : KIND_FLOAT) : -1;
}

static struct launch_entry prepare_entry(const ptxgen_gguf_linear_args *a)
{
    return (struct launch_entry){.params = PREPARE_PARAMS,
                                 .wide = PREPARE_X_STRIDE,
                                 .values = {[PREPARE_X] = a->x,
                                            [PREPARE_RESIDUAL] = a->residual,
                                            [PREPARE_RESIDUAL_OUT] = a->residual_out,
                                            [PREPARE_GAMMA] = a->gamma,
                                            [PREPARE_POST_GAMMA] = a->post_gamma,
                                            [PREPARE_RECORDS] = a->workspace,
                                            [PREPARE_X_STRIDE] = a->x_stride,
                                            [PREPARE_RESIDUAL_STRIDE] = a->residual_stride,
                                            [PREPARE_RESIDUAL_OUT_STRIDE] = a->residual_out_stride,
                                            [PREPARE_M] = a->m}};
}

/* Rows of h by an entry of their own. */
static void make_rows(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_args *a,
                      unsigned index, uint64_t h, struct launch_list *to)
{
    const uint64_t ctas = a->m * gguf_linear_prepare_ctas(&p->spec);
    struct launch_entry *e = &to->entries[to->count++];
    *e = prepare_entry(a);
    e->index = index;
    e->shape = launch_line(ctas, gguf_linear_prepare_threads(&p->spec), 0, 1);
    e->values[PREPARE_RECORDS] = h;
}

static void prepare(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_variant *v,
                    const ptxgen_gguf_linear_args *a, const struct gguf_linear_space *space,
                    struct launch_list *to)
{
    const uint64_t ctas = (uint64_t)v->tile_m * gguf_linear_prepare_ctas(&p->spec);
    struct launch_entry *e = &to->entries[to->count++];
    *e = prepare_entry(a);
    e->index = entry_of(p, v, KIND_PREPARE);
    e->shape = launch_line(ctas, gguf_linear_prepare_threads(&p->spec), 0, 1);
    e->shape.programmatic = a->overlap_previous && gemm_overlaps(&p->target);
    e->values[PREPARE_COUNTERS] = a->workspace + space->counters;
}

/* Where sums of a matrix go: those of a gate that is joined to the workspace. */
struct output {
    uint64_t address, stride;
};
static struct output output_of(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_args *a,
                               const struct gguf_linear_space *space, uint32_t matrix)
{
    if (is_joined(&p->spec) && matrix < 2)
        return (struct output){a->workspace + space->joined[matrix], p->spec.n[matrix]};
    return (struct output){a->y[matrix], a->y_stride[matrix]};
}

/* Rows of elements of 4 or 8 bytes, in boxes of what a slot has (tensor_stream.c). */
static void map_weights(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_variant *v,
                        const ptxgen_gguf_linear_args *a, struct launch_list *to)
{
    const uint32_t element = map_element(v);
    const ptxgen_gguf_linear_spec *s = &p->spec;
    for (uint32_t i = 0; i < MATRICES; i++) {
        struct launch_map *map = &to->maps[to->map_count++];
        *map = (struct launch_map){.holds = LAUNCH_MAP, .name = w_names[i], .rows = s->n[i]};
        if (!s->n[i])
            continue;
        map->address = a->w[i];
        map->columns = row_bytes(s, s->w_type[i]) / element;
        map->pitch = row_bytes(s, s->w_type[i]);
        map->type = element == 8 ? PTXGEN_CU_TENSOR_MAP_DATA_TYPE_UINT64
                                 : PTXGEN_CU_TENSOR_MAP_DATA_TYPE_UINT32;
        map->box_columns = pairs_pitch(s->w_type[i], v->ring_warps) / element;
        map->box_rows = is_interleaved(s) ? HALF_ROWS : TILE_ROWS;
    }
}

static void multiply(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_variant *v,
                     const ptxgen_gguf_linear_args *a, const struct gguf_linear_space *space,
                     struct launch_list *to)
{
    struct launch_entry *e = &to->entries[to->count++];
    *e = (struct launch_entry){.index = entry_of(p, v, KIND_PRODUCT),
                               .shape = launch_line((uint64_t)v->parts * v->part_ctas,
                                                    32 * v->wk * v->wn, v->dynamic_shared_bytes, 1),
                               .params = PRODUCT_PARAMS,
                               .wide = PRODUCT_Y_STRIDE,
                               .values = {[PRODUCT_RECORDS] = a->workspace,
                                          [PRODUCT_COUNTERS] = a->workspace + space->counters,
                                          [PRODUCT_PARTIALS] = a->workspace + space->partials,
                                          [PRODUCT_X] = a->x,
                                          [PRODUCT_RESIDUAL] = a->residual,
                                          [PRODUCT_RESIDUAL_OUT] = a->residual_out,
                                          [PRODUCT_GAMMA] = a->gamma,
                                          [PRODUCT_POST_GAMMA] = a->post_gamma,
                                          [PRODUCT_X_STRIDE] = a->x_stride,
                                          [PRODUCT_RESIDUAL_STRIDE] = a->residual_stride,
                                          [PRODUCT_RESIDUAL_OUT_STRIDE] = a->residual_out_stride,
                                          [PRODUCT_M] = a->m}};
    for (uint32_t i = 0; i < MATRICES; i++) {
        const struct output y = output_of(p, a, space, i);
        e->values[PRODUCT_W + i] = a->w[i];
        e->values[PRODUCT_BIAS + i] = a->bias[i];
        e->values[PRODUCT_Y + i] = y.address;
        e->values[PRODUCT_Y_STRIDE + i] = y.stride;
    }
    if (v->tensor)
        map_weights(p, v, a, to);
    e->shape.programmatic = (!v->makes_h || a->overlap_previous) && gemm_overlaps(&p->target);
}

/* Matrices in floats; begins early only where it is, or follows, the launch's first kernel. */
static void multiply_floats(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_variant *v,
                            const ptxgen_gguf_linear_args *a, const struct gguf_linear_space *space,
                            struct launch_list *to)
{
    const ptxgen_gguf_linear_spec *s = &p->spec;
    const bool makes_rows = has_float_rows(s), overlaps = gemm_overlaps(&p->target);
    const bool is_first = !has_quantised(s);
    if (makes_rows) {
        make_rows(p, a, entry_of(p, v, KIND_ROWS), a->workspace + space->rows, to);
        to->entries[to->count - 1].shape.programmatic = is_first && a->overlap_previous && overlaps;
    }
    struct launch_entry *e = &to->entries[to->count++];
    *e = (struct launch_entry){
        .index = entry_of(p, v, KIND_FLOAT),
        .shape = launch_line(float_all_ctas(s, v->tile_m), FLOAT_THREADS, 0, 1),
        .params = FLOAT_PARAMS,
        .wide = FLOAT_Y_STRIDE,
        .values = {[FLOAT_H] = makes_rows ? a->workspace + space->rows : a->x,
                   [FLOAT_H_STRIDE] = makes_rows ? s->k : a->x_stride,
                   [FLOAT_M] = a->m}};
    e->shape.programmatic = overlaps && (makes_rows || (is_first && a->overlap_previous));
    for (uint32_t i = 0; i < MATRICES; i++) {
        const struct output y = output_of(p, a, space, i);
        e->values[FLOAT_W + i] = a->w[i];
        e->values[FLOAT_BIAS + i] = a->bias[i];
        e->values[FLOAT_Y + i] = y.address;
        e->values[FLOAT_Y_STRIDE + i] = y.stride;
    }
}

static void join(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_variant *v,
                 const ptxgen_gguf_linear_args *a, const struct gguf_linear_space *space,
                 struct launch_list *to)
{
    const uint64_t ctas = (p->spec.n[0] + JOIN_THREADS - 1) / JOIN_THREADS;
    to->entries[to->count++] =
        (struct launch_entry){.index = entry_of(p, v, KIND_JOIN),
                              .shape = launch_line(a->m * ctas, JOIN_THREADS, 0, 1),
                              .params = JOIN_PARAMS,
                              .wide = JOIN_Y_STRIDE,
                              .values = {[JOIN_GATE] = a->workspace + space->joined[0],
                                         [JOIN_UP] = a->workspace + space->joined[1],
                                         [JOIN_GATE_BIAS] = a->bias[0],
                                         [JOIN_UP_BIAS] = a->bias[1],
                                         [JOIN_Y] = a->y[0],
                                         [JOIN_Y_STRIDE] = a->y_stride[0]}};
}

/* ---- more tokens (inflate.h) ---- */

/* A launch's workspace: what dense needs, rows of h, and a slice of the weights. */
struct inflation {
    const ptxgen_tile *v;
    uint64_t flags, h, w, bytes; /* flags to be cleared, of 4 bytes; offsets */
    bool makes_h, takes_w;       /* w is multiplied where it is */
};

static ptxgen_status plan_inflation(const ptxgen_gguf_linear_plan *p,
                                    const ptxgen_gguf_linear_args *a, struct inflation *f,
                                    ptxgen_error *err)
{
    const uint32_t element = (uint32_t)ptxgen_element_size(gguf_linear_compute_type(&p->spec));
    const uint64_t row = (uint64_t)p->spec.k * element;
    const struct launch_rows x = {"x", a->x, a->x_stride, a->m, p->spec.k, element};
    struct gemm_launch launch;
    ptxgen_status status =
        gemm_find_launch(&dense_planner, &p->inflated, a->m, &f->v, &launch, err);
    if (status != PTXGEN_OK)
        return status;
    const struct launch_rows w = {"w", a->w[0], p->spec.k, p->spec.n[0], p->spec.k, element};
    f->takes_w = gguf_linear_takes_w(&p->spec) && launch_rows_are_aligned(&w, gemm_is_bulk(f->v));
    f->makes_h = !gguf_linear_takes_x(&p->spec) || !launch_rows_are_aligned(&x, gemm_is_bulk(f->v));
    f->flags = launch.workspace_bytes
                   ? gemm_partials_offset(&p->target, PTXGEN_DENSE_MOST_CTAS) / sizeof(uint32_t)
                   : 0;
    f->h = (launch.workspace_bytes + 15) / 16 * 16;
    f->w = f->h + (f->makes_h ? a->m * row : 0);
    f->bytes = f->w + (f->takes_w ? 0 : (uint64_t)p->inflated.spec.n * row);
    return PTXGEN_OK;
}

/* Rows `first` to `first + count` of a matrix to `y`, and zeros to the flags. */
static void decode(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_args *a,
                   uint32_t matrix, uint32_t first, uint32_t count, uint64_t y, uint64_t flags,
                   struct launch_list *to)
{
    const ptxgen_gguf_rows_spec rows = {.k = p->spec.k,
                                        .w_type = p->spec.w_type[matrix],
                                        .y_type = (uint8_t)gguf_linear_compute_type(&p->spec)};
    ptxgen_gguf_rows_plan plan;
    uint32_t ctas = 1;
    ptxgen_gguf_rows_make_plan(&rows, &p->target, &plan, NULL);
    if (count)
        ptxgen_gguf_rows_ctas(&plan, count, &ctas, NULL);
    enum { FLAGS = GGUF_ROWS_ALL_PARTS, PARTS, FLAG_COUNT, PARAMS };
    to->entries[to->count++] = (struct launch_entry){
        .index = inflated_entry(p, NULL) + 1 + gguf_linear_decoder_of(&p->spec, matrix),
        .shape = launch_line(ctas, GGUF_ROWS_THREADS, 0, 1),
        .params = PARAMS,
        .wide = PARTS,
        .values = {[GGUF_ROWS_W] = a->w[matrix],
                   [GGUF_ROWS_Y] = y,
                   [GGUF_ROWS_Y_STRIDE] = p->spec.k,
                   [GGUF_ROWS_N] = p->spec.n[matrix],
                   [GGUF_ROWS_FIRST_ROW] = first,
                   [FLAGS] = a->workspace,
                   [PARTS] = (uint64_t)count * plan.parts,
                   [FLAG_COUNT] = flags}};
}

/* The rows that the slice has of all matrices; the first launch clears the flags. */
static void decode_slice(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_args *a,
                         const struct inflation *f, uint32_t slice, struct launch_list *to)
{
    const ptxgen_gguf_linear_spec *s = &p->spec;
    const struct gguf_linear_slices slices = gguf_linear_slices(p);
    const uint64_t w = a->workspace + f->w;
    const uint64_t row = (uint64_t)s->k * ptxgen_element_size(gguf_linear_compute_type(s));
    const uint32_t share = is_gated(s) ? 2 : 1; /* rows of a feature */
    const uint64_t begin = (uint64_t)slice * slices.rows / share, rows = slices.rows / share;
    const unsigned before = to->count;
    for (uint32_t i = 0; i < matrix_count(s); i++) {
        const uint64_t first = slices.first[i], end = first + s->n[i];
        const uint64_t from = begin > first ? begin : first;
        const uint64_t until = begin + rows < end ? begin + rows : end;
        const uint64_t behind = is_gated(s) ? i * (uint64_t)INFLATE_PAIRS : from - begin;
        if (from < until)
            decode(p, a, i, (uint32_t)(from - first), (uint32_t)(until - from), w + behind * row,
                   slice == 0 && to->count == before ? f->flags : 0, to);
    }
}

/* The parameters behind dense's: `first` is the slice's first feature. */
static void add_outputs(const ptxgen_gguf_linear_args *a, uint64_t first, struct launch_entry *e)
{
    uint64_t *more = &e->values[DENSE_M];
    memmove(more + INFLATE_PARAMS, more, (DENSE_PARAMS - DENSE_M) * sizeof *more);
    more[INFLATE_FIRST] = first;
    more[INFLATE_Y_1] = a->y[1];
    more[INFLATE_Y_2] = a->y[2];
    more[INFLATE_Y_STRIDE_1] = a->y_stride[1];
    more[INFLATE_Y_STRIDE_2] = a->y_stride[2];
    memcpy(more + INFLATE_BIAS, a->bias, sizeof a->bias);
    e->params += INFLATE_PARAMS;
    e->wide += INFLATE_PARAMS;
}

static ptxgen_status multiply_slice(const ptxgen_gguf_linear_plan *p,
                                    const ptxgen_gguf_linear_args *a, const struct inflation *f,
                                    uint32_t slice, struct launch_list *to, ptxgen_error *err)
{
    const ptxgen_gguf_linear_spec *s = &p->spec;
    const ptxgen_dense_args dense = {.m = a->m,
                                     .x = f->makes_h ? a->workspace + f->h : a->x,
                                     .x_stride = f->makes_h ? s->k : a->x_stride,
                                     .w = f->takes_w ? a->w[0] : a->workspace + f->w,
                                     .w_stride = s->k,
                                     .y = a->y[0],
                                     .y_stride = a->y_stride[0],
                                     .workspace = a->workspace};
    ptxgen_status status = dense_list(&p->inflated, &dense, to, err);
    if (status != PTXGEN_OK)
        return status;
    struct launch_entry *e = &to->entries[to->count - 1];
    add_outputs(a, (uint64_t)slice * p->inflated.spec.n / (is_gated(s) ? 2 : 1), e);
    e->index = inflated_entry(p, f->v);
    return PTXGEN_OK;
}

static ptxgen_status list_inflated(const ptxgen_gguf_linear_plan *p,
                                   const ptxgen_gguf_linear_args *a, struct launch_list *to,
                                   ptxgen_error *err)
{
    struct inflation f;
    ptxgen_status status = plan_inflation(p, a, &f, err);
    if (status != PTXGEN_OK)
        return status;
    if (f.makes_h && to->part == 0)
        make_rows(p, a, inflated_entry(p, NULL), a->workspace + f.h, to);
    if (!f.takes_w)
        decode_slice(p, a, &f, to->part, to);
    else if (f.flags)
        decode(p, a, 0, 0, 0, 0, f.flags, to); /* no rows: it clears the flags */
    status = multiply_slice(p, a, &f, to->part, to, err);
    to->workspace_bytes = f.bytes;
    to->parts = gguf_linear_slices(p).count;
    return status;
}

/* ---- more than 8 tokens, decoded to registers (direct.h) ---- */

/* Adds maps of the packed rows. */
static void map_rows(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_args *a,
                     struct launch_list *to)
{
    const ptxgen_gguf_linear_spec *s = &p->spec;
    const uint64_t columns = row_bytes(s, s->w_type[0]) / DIRECT_ELEMENT;
    for (uint32_t i = 0; i < matrix_count(s); i++) {
        to->maps[to->map_count++] =
            (struct launch_map){.holds = LAUNCH_MAP,
                                .name = w_names[i],
                                .address = a->w[i],
                                .columns = columns,
                                .rows = s->n[i],
                                .pitch = columns * DIRECT_ELEMENT,
                                .type = PTXGEN_CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                .box_columns = gguf_linear_direct(p)->pitch / DIRECT_ELEMENT,
                                .box_rows = DIRECT_WARPGROUP_ROWS / (is_gated(s) ? 2 : 1)};
    }
}

static ptxgen_status list_direct(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_args *a,
                                 struct launch_list *to, ptxgen_error *err)
{
    const ptxgen_gguf_linear_spec *s = &p->spec;
    const ptxgen_tile *v;
    struct gemm_launch launch;
    ptxgen_status status = gemm_find_launch(&gguf_linear_direct_planner, p, a->m, &v, &launch, err);
    if (status != PTXGEN_OK)
        return status;
    uint64_t end = (launch.copies + 15) / 16 * 16;
    const struct launch_rows h = {"h", a->workspace + end, s->k, a->m, s->k, sizeof(uint16_t)};
    end += h.rows * h.columns * h.element;
    launch_list_map(to, &h, launch_map_type((uint8_t)gguf_linear_compute_type(s)),
                    dense_box_rows(v), v->cluster > 1 ? LAUNCH_MAP_AND_NONE : LAUNCH_MAP_AND_LAST);
    map_rows(p, a, to);
    to->workspace_bytes = end;
    make_rows(p, a, direct_entry(p, DIRECT_PREPARE), h.address, to);
    to->entries[to->count - 1].values[PREPARE_COUNTERS] = a->workspace;
    struct launch_entry *e = &to->entries[to->count++];
    *e = (struct launch_entry){
        .index = direct_entry(p, DIRECT_PRODUCT) + (unsigned)(v - p->direct),
        .shape = launch_line(launch.grid, gemm_cta_threads(v), v->dynamic_shared_bytes, v->cluster),
        .params = DENSE_PARAMS,
        .wide = DENSE_M,
        .values = {[DENSE_X] = h.address,
                   [DENSE_X_STRIDE] = h.stride,
                   [DENSE_Y] = a->y[0],
                   [DENSE_Y_STRIDE] = a->y_stride[0],
                   [DENSE_WORKSPACE] = a->workspace,
                   [DENSE_M] = a->m,
                   [DENSE_SHARE] = launch.tiles.share,
                   [DENSE_EXTRA] = launch.tiles.extra,
                   [DENSE_GRANULE] = launch.tiles.granule}};
    add_outputs(a, 0, e);
    e->shape.programmatic = true;
    return PTXGEN_OK;
}

/* ---- few tokens, in passes of 8 ---- */

/* The arguments of a pass over eight tokens; only the first may begin early. */
static ptxgen_gguf_linear_args pass_of(const ptxgen_gguf_linear_plan *p,
                                       const ptxgen_gguf_linear_args *a, uint32_t number)
{
    const uint64_t x = ptxgen_element_size((ptxgen_element)p->spec.x_type);
    const uint64_t y = ptxgen_element_size((ptxgen_element)p->spec.y_type);
    const uint64_t before = (uint64_t)number * PASS_TOKENS, left = a->m - before;
    ptxgen_gguf_linear_args pass = *a;
    pass.m = left < PASS_TOKENS ? left : PASS_TOKENS;
    pass.x += before * a->x_stride * x;
    pass.residual += before * a->residual_stride * x;
    pass.residual_out += before * a->residual_out_stride * x;
    for (uint32_t i = 0; i < MATRICES; i++)
        pass.y[i] += before * a->y_stride[i] * y;
    if (number)
        pass.overlap_previous = 0;
    return pass;
}

static ptxgen_status list(const void *plan, const void *args, struct launch_list *to,
                          ptxgen_error *err)
{
    const ptxgen_gguf_linear_plan *p = plan;
    const ptxgen_gguf_linear_args *a = args;
    if (ptxgen_gguf_linear_choose_direct(p, a->m))
        return list_direct(p, a, to, err);
    if (ptxgen_gguf_linear_choose_inflated(p, a->m))
        return list_inflated(p, a, to, err);
    const ptxgen_gguf_linear_variant *v = ptxgen_gguf_linear_choose(p, a->m);
    if (!v)
        return gguf_linear_refuse_m(p, a->m, err);
    const struct gguf_linear_space space = gguf_linear_space(p, v);
    const ptxgen_gguf_linear_args pass = pass_of(p, a, to->part);
    to->workspace_bytes = space.bytes;
    to->parts = (uint32_t)((a->m + PASS_TOKENS - 1) / PASS_TOKENS);
    if (has_quantised(&p->spec)) {
        if (!v->makes_h)
            prepare(p, v, &pass, &space, to);
        multiply(p, v, &pass, &space, to);
    }
    if (float_count(&p->spec))
        multiply_floats(p, v, &pass, &space, to);
    if (is_joined(&p->spec))
        join(p, v, &pass, &space, to);
    return PTXGEN_OK;
}

static ptxgen_status check_driver(const ptxgen_driver *driver, const void *plan, ptxgen_error *err)
{
    const ptxgen_gguf_linear_plan *p = plan;
    const bool needed = takes_tensor_copies(p) || p->direct_count ||
                        family_takes_maps(&dense_planner, &p->inflated);
    return family_check_maps(driver, needed, err);
}

static const struct family gguf_linear = {
    .table = {FAMILY_TABLE(gguf_linear), .plan_version = 16, .check_driver = check_driver,
              .describe = describe, .revision = library_revision},
    FAMILY_MEMBERS(gguf_linear),
    .args = {offsetof(ptxgen_gguf_linear_args, m), offsetof(ptxgen_gguf_linear_args, workspace),
             offsetof(ptxgen_gguf_linear_args, workspace_bytes)},
    .workspace_align = 16,
    .has_narrow_strides = true,
    .entry = entry,
};
FAMILY_FUNCTIONS(gguf_linear, gguf_linear)
FAMILY_ATTRIBUTES(gguf_linear, gguf_linear)
FAMILY_WORKSPACE(gguf_linear, gguf_linear)
