/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch of the sparse24 family takes and enqueues. */
#include <ptxgen/sparse24.h>

#include "src/kernels/dense/layout.h"
#include "src/kernels/sparse24/inflate.h"
#include "src/kernels/sparse24/layout.h"
#include "src/kernels/sparse24/repack.h"
#include "src/runtime/dense.h"
#include "src/runtime/family.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 16, METADATA = 2 /* bytes of which addresses are multiples */ };

FAMILY_CALLBACKS(sparse24)
FAMILY_EMIT(sparse24)

static bool is_inflated(const ptxgen_sparse24_plan *plan)
{
    return sparse24_tier(&plan->spec) == 1;
}

static ptxgen_status check_driver(const ptxgen_driver *driver, const void *plan, ptxgen_error *err)
{
    const ptxgen_sparse24_plan *p = plan;
    bool needed =
        family_takes_maps(&sparse24_planner, p) || family_takes_maps(&dense_planner, &p->dense);
    return family_check_maps(driver, needed, err);
}

static void describe(const void *spec, char *text, size_t size)
{
    static const char *const types[] = {"f32", "f16", "bf16", "s8"};
    const ptxgen_sparse24_spec *s = spec;
    snprintf(text, size, "k=%u n=%u %s to %s max_m=%u%s%s%s%s%s", s->k, s->n,
             s->type < 4 ? types[s->type] : "?", family_element(s->y_type), s->max_m,
             family_activation(s->activation), s->bias ? " bias" : "",
             s->residual ? " residual" : "", s->tier == 1 ? " inflated" : "",
             s->plain ? " plain" : "");
}

/* Whether a launch takes values and metadata in place of a packed weight. */
static bool is_plain(const ptxgen_sparse24_spec *s, uint64_t packed)
{
    return s->plain && !packed;
}

static ptxgen_status arrays(const void *plan, void *args, struct family_arrays *to,
                            ptxgen_error *err)
{
    enum { SCALE = sizeof(float) };
    const ptxgen_sparse24_spec *s = &((const ptxgen_sparse24_plan *)plan)->spec;
    ptxgen_sparse24_args *a = args;
    bool scaled = sparse24_is_s8(s), plain = is_plain(s, a->w);
    unsigned y = (unsigned)ptxgen_element_size((ptxgen_element)s->y_type);
    size_t packed;
    ptxgen_status status = ptxgen_sparse24_packed_bytes(s, &packed, err);
    if (status != PTXGEN_OK)
        return status;
    *to = (struct family_arrays){
        9,
        {OPERAND_ROWS(a, x, true, INPUT, sparse24_element(s), s->k, a->m),
         OPERAND_BYTES(a, w, !plain, INPUT, CHUNK, packed),
         OPERAND_BYTES(a, values, plain, INPUT, CHUNK, sparse24_values_bytes(s)),
         OPERAND_BYTES(a, metadata, plain, INPUT, METADATA, sparse24_metadata_bytes(s)),
         OPERAND_BYTES(a, x_scale, scaled, INPUT, SCALE, SCALE * a->m),
         OPERAND_BYTES(a, w_scale, scaled, INPUT, SCALE, SCALE * (uint64_t)s->n),
         OPERAND_BYTES(a, bias, s->bias, INPUT, y, (uint64_t)s->n * y),
         OPERAND_ROWS(a, residual, s->residual, IN_PLACE, y, s->n, a->m),
         OPERAND_ROWS(a, y, true, OUTPUT, y, s->n, a->m)}};
    return PTXGEN_OK;
}

/* A weight as values and metadata: its own, or the parts of tier 1's packed form. */
struct weight {
    uint64_t values, metadata;
};

static struct weight weight_of(const ptxgen_sparse24_spec *s, uint64_t packed, uint64_t values,
                               uint64_t metadata)
{
    if (is_plain(s, packed))
        return (struct weight){values, metadata};
    return (struct weight){packed, packed + sparse24_metadata_offset(s)};
}

/* ---- tier 1: w is inflated into the workspace, behind what dense needs of it ---- */

/* Entries are loaded as they were emitted: dense's, its dense_align, then sparse24_inflate. */
static struct launch_entry inflate(const ptxgen_sparse24_plan *plan, const struct weight *w,
                                   uint64_t dense)
{
    enum { CTA_CHUNKS = SPARSE24_INFLATE_THREADS * SPARSE24_INFLATE_CHUNKS };
    uint64_t ctas = (sparse24_inflate_chunks(&plan->spec) + CTA_CHUNKS - 1) / CTA_CHUNKS;
    return (struct launch_entry){.index = plan->dense.variant_count + 1,
                                 .shape = launch_line(ctas, SPARSE24_INFLATE_THREADS, 0, 1),
                                 .params = SPARSE24_INFLATE_PARAMS,
                                 .wide = SPARSE24_INFLATE_PARAMS,
                                 .values = {[SPARSE24_INFLATE_VALUES] = w->values,
                                            [SPARSE24_INFLATE_METADATA] = w->metadata,
                                            [SPARSE24_INFLATE_DENSE] = dense}};
}

static ptxgen_status list_inflated(const ptxgen_sparse24_plan *plan, const ptxgen_sparse24_args *a,
                                   struct launch_list *to, ptxgen_error *err)
{
    if (!ptxgen_dense_choose(&plan->dense, a->m))
        return gemm_refuse_m(&sparse24_planner, plan, a->m, err);
    ptxgen_dense_args dense = {.m = a->m,
                               .x = a->x,
                               .w = CHUNK, /* aligned, wherever it will be */
                               .w_stride = plan->spec.k,
                               .bias = a->bias,
                               .residual = a->residual,
                               .y = a->y,
                               .x_stride = a->x_stride,
                               .residual_stride = a->residual_stride,
                               .y_stride = a->y_stride,
                               .workspace = a->workspace};
    struct launch_list alone = {.count = 0};
    ptxgen_status status = dense_list(&plan->dense, &dense, &alone, err);
    if (status != PTXGEN_OK)
        return status;
    uint64_t offset = (alone.workspace_bytes + CHUNK - 1) / CHUNK * CHUNK;
    dense.w = a->workspace + offset;
    const struct weight w = weight_of(&plan->spec, a->w, a->values, a->metadata);
    to->entries[to->count++] = inflate(plan, &w, dense.w);
    status = dense_list(&plan->dense, &dense, to, err);
    to->workspace_bytes = offset + sparse24_dense_weight_bytes(&plan->spec);
    return status;
}

/* Enqueues an entry that prepares a weight alone, if its arrays are right and it has elements. */
static ptxgen_status prepare(const ptxgen_sparse24 *q, struct launch_array *arrays, size_t count,
                             const struct launch_entry *entry, ptxgen_cu_stream stream,
                             ptxgen_error *err)
{
    const ptxgen_loaded *loaded = (const ptxgen_loaded *)q;
    const struct launch_list one = {.count = 1, .entries = {*entry}};
    ptxgen_status status = launch_check_arrays("sparse24", arrays, count, err);
    if (status != PTXGEN_OK || gemm_is_empty(&sparse24_planner, ptxgen_loaded_plan(loaded)))
        return status;
    return launch_list_run(loaded, &one, stream, err);
}

ptxgen_status ptxgen_sparse24_inflate(const ptxgen_sparse24 *q,
                                      const ptxgen_sparse24_inflate_args *args,
                                      ptxgen_cu_stream stream, ptxgen_error *err)
{
    const ptxgen_sparse24_inflate_args *a = args;
    size_t packed_bytes;
    if (!q || !a)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: kernel and args must be given");
    const ptxgen_sparse24_plan *plan = ptxgen_loaded_plan((const ptxgen_loaded *)q);
    const ptxgen_sparse24_spec *s = &plan->spec;
    if (!is_inflated(plan))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: only kernels of tier 1 inflate");
    ptxgen_status status = ptxgen_sparse24_packed_bytes(s, &packed_bytes, err);
    if (status != PTXGEN_OK)
        return status;
    const bool plain = is_plain(s, a->packed);
    const uint64_t dense_bytes = sparse24_dense_weight_bytes(s);
    const struct weight w = weight_of(s, a->packed, a->values, a->metadata);
    const struct launch_entry entry = inflate(plan, &w, a->dense);
    struct launch_array arrays[] = {
        OPERAND_BYTES(a, packed, !plain, INPUT, CHUNK, packed_bytes),
        OPERAND_BYTES(a, values, plain, INPUT, CHUNK, sparse24_values_bytes(s)),
        OPERAND_BYTES(a, metadata, plain, INPUT, METADATA, sparse24_metadata_bytes(s)),
        OPERAND_BYTES(a, dense, true, OUTPUT, CHUNK, dense_bytes)};
    return prepare(q, arrays, sizeof arrays / sizeof *arrays, &entry, stream, err);
}

/* ---- tier 2 ---- */

static ptxgen_cu_tensor_map_data_type map_type(const ptxgen_sparse24_spec *s)
{
    return sparse24_is_s8(s) ? PTXGEN_CU_TENSOR_MAP_DATA_TYPE_UINT8 : launch_map_type(s->y_type);
}

/*
 * Entries are loaded as they were emitted: the plan's variants, sparse24_align, and where the spec
 * is plain sparse24_repack.
 */
static struct launch_entry repack(const ptxgen_sparse24_plan *plan, uint64_t values,
                                  uint64_t metadata, uint64_t packed, uint64_t refused)
{
    return (struct launch_entry){.index = plan->variant_count + 1,
                                 .shape = launch_line(sparse24_blocks(&plan->spec),
                                                      sparse24_repack_threads(&plan->spec), 0, 1),
                                 .params = SPARSE24_REPACK_PARAMS,
                                 .wide = SPARSE24_REPACK_PARAMS,
                                 .values = {[SPARSE24_REPACK_VALUES] = values,
                                            [SPARSE24_REPACK_METADATA] = metadata,
                                            [SPARSE24_REPACK_PACKED] = packed,
                                            [SPARSE24_REPACK_REFUSED] = refused}};
}

ptxgen_status ptxgen_sparse24_repack(const ptxgen_sparse24 *q,
                                     const ptxgen_sparse24_repack_args *args,
                                     ptxgen_cu_stream stream, ptxgen_error *err)
{
    enum { REFUSED = 8 };
    const ptxgen_sparse24_repack_args *a = args;
    size_t packed_bytes;
    if (!q || !a)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: kernel and args must be given");
    const ptxgen_sparse24_plan *plan = ptxgen_loaded_plan((const ptxgen_loaded *)q);
    const ptxgen_sparse24_spec *s = &plan->spec;
    if (!s->plain || is_inflated(plan))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: only kernels of tier 2 whose spec is plain pack weights");
    ptxgen_status status = ptxgen_sparse24_packed_bytes(s, &packed_bytes, err);
    if (status != PTXGEN_OK)
        return status;
    const struct launch_entry entry = repack(plan, a->values, a->metadata, a->packed, a->refused);
    struct launch_array arrays[] = {
        OPERAND_BYTES(a, values, true, INPUT, CHUNK, sparse24_values_bytes(s)),
        OPERAND_BYTES(a, metadata, true, INPUT, METADATA, sparse24_metadata_bytes(s)),
        OPERAND_BYTES(a, packed, true, OUTPUT, CHUNK, packed_bytes),
        OPERAND_BYTES(a, refused, a->refused != 0, OUTPUT, REFUSED, REFUSED)};
    return prepare(q, arrays, sizeof arrays / sizeof *arrays, &entry, stream, err);
}

static ptxgen_status list_product(const ptxgen_sparse24_plan *plan, const ptxgen_sparse24_args *a,
                                  struct launch_list *to, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &plan->spec;
    const ptxgen_tile *v;
    struct gemm_launch launch;
    ptxgen_status status = gemm_find_launch(&sparse24_planner, plan, a->m, &v, &launch, err);
    if (status != PTXGEN_OK)
        return status;
    struct launch_rows x = {"x", a->x, a->x_stride, a->m, s->k, sparse24_element(s)};
    bool programmatic = a->overlap_previous && gemm_overlaps(&plan->target);
    uint64_t w = a->w, end = launch.copies;
    to->workspace_bytes = launch.workspace_bytes;
    if (!launch_rows_are_aligned(&x, gemm_is_wgmma(v))) {
        launch_list_align(to, plan->variant_count, &x, a->workspace + end);
        to->workspace_bytes = end += a->m * sparse24_x_bytes(s);
        programmatic = false;
    }
    if (is_plain(s, w)) {
        w = a->workspace + end;
        to->entries[to->count++] = repack(plan, a->values, a->metadata, w, 0);
        to->workspace_bytes = end + sparse24_blocks(s) * sparse24_block_bytes(s);
        programmatic = false;
    }
    if (gemm_is_wgmma(v))
        launch_list_map(to, &x, map_type(s), v->tile_m, LAUNCH_MAP_AND_LAST);
    struct launch_entry *e = &to->entries[to->count++];
    *e = (struct launch_entry){
        .index = (unsigned)(v - plan->variants),
        .shape = launch_line(launch.grid, gemm_cta_threads(v), v->dynamic_shared_bytes, v->cluster),
        .params = SPARSE24_PARAMS,
        .wide = SPARSE24_M,
        .values = {[SPARSE24_X] = x.address,
                   [SPARSE24_W] = w,
                   [SPARSE24_X_SCALE] = a->x_scale,
                   [SPARSE24_W_SCALE] = a->w_scale,
                   [SPARSE24_BIAS] = a->bias,
                   [SPARSE24_RESIDUAL] = a->residual,
                   [SPARSE24_Y] = a->y,
                   [SPARSE24_WORKSPACE] = a->workspace,
                   [SPARSE24_X_STRIDE] = x.stride,
                   [SPARSE24_RESIDUAL_STRIDE] = a->residual_stride,
                   [SPARSE24_Y_STRIDE] = a->y_stride,
                   [SPARSE24_M] = a->m,
                   [SPARSE24_SHARE] = launch.tiles.share,
                   [SPARSE24_EXTRA] = launch.tiles.extra,
                   [SPARSE24_GRANULE] = launch.tiles.granule}};
    e->shape.programmatic = programmatic;
    return PTXGEN_OK;
}

/* ---- both ---- */

static ptxgen_status list(const void *plan, const void *args, struct launch_list *to,
                          ptxgen_error *err)
{
    return is_inflated(plan) ? list_inflated(plan, args, to, err)
                             : list_product(plan, args, to, err);
}

static int entry(const void *plan, uint64_t m)
{
    const ptxgen_sparse24_plan *p = plan;
    return is_inflated(p) ? family_product_entry(&dense_planner, &p->dense, m)
                          : family_product_entry(&sparse24_planner, p, m);
}

static const struct family sparse24 = {
    .table = {FAMILY_TABLE(sparse24), .plan_version = 17, .check_driver = check_driver,
              .describe = describe, .revision = library_revision},
    FAMILY_MEMBERS(sparse24),
    FAMILY_WORKSPACE_MEMBERS(sparse24),
    .workspace_align = CHUNK,
    .entry = entry,
};
FAMILY_FUNCTIONS(sparse24, sparse24)
FAMILY_ATTRIBUTES(sparse24, sparse24)
FAMILY_WORKSPACE(sparse24, sparse24)
