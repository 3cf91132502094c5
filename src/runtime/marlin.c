/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch of the marlin family takes and enqueues. */
#include <ptxgen/marlin.h>

#include "src/kernels/marlin/layout.h"
#include "src/runtime/family.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { ELEMENT = 2, CHUNK = 16 };

FAMILY_CALLBACKS(marlin)
FAMILY_EMIT(marlin)
FAMILY_PRODUCT_DRIVER(marlin_planner)
/* Entries are loaded as they were emitted: the plan's variants, then marlin_gather. */
FAMILY_PRODUCT_ENTRY(marlin_planner)

static void describe(const void *spec, char *text, size_t size)
{
    const ptxgen_marlin_spec *s = spec;
    snprintf(text, size, "k=%u n=%u group=%d %s max_m=%u%s%s%s%s%s%s", s->k, s->n,
             (int)s->group_size, family_element(s->type), s->max_m, s->zeros ? " zeros" : "",
             s->act_order ? " act_order" : "", marlin_gated(s) ? " swiglu" : "",
             family_activation(s->activation), s->bias ? " bias" : "",
             s->residual ? " residual" : "");
}

static ptxgen_status arrays(const void *plan, void *args, struct family_arrays *to,
                            ptxgen_error *err)
{
    const ptxgen_marlin_spec *s = &((const ptxgen_marlin_plan *)plan)->spec;
    ptxgen_marlin_args *a = args;
    bool has_up_bias = s->bias && marlin_gated(s);
    uint64_t bias = (uint64_t)s->n * ELEMENT;
    ptxgen_marlin_packed packed;
    ptxgen_status status = ptxgen_marlin_packed_layout(s, &packed, err);
    if (status != PTXGEN_OK)
        return status;
    *to = (struct family_arrays){
        9,
        {OPERAND_ROWS(a, x, true, INPUT, ELEMENT, s->k, a->m),
         OPERAND_BYTES(a, codes, true, INPUT, CHUNK, packed.codes_bytes),
         OPERAND_BYTES(a, scales, true, INPUT, CHUNK, packed.scales_bytes),
         OPERAND_BYTES(a, zeros, s->zeros, INPUT, CHUNK, packed.zeros_bytes),
         OPERAND_BYTES(a, order, s->act_order, INPUT, CHUNK, packed.order_bytes),
         OPERAND_BYTES(a, bias, s->bias, INPUT, ELEMENT, bias),
         OPERAND_BYTES(a, up_bias, has_up_bias, INPUT, ELEMENT, bias),
         OPERAND_ROWS(a, residual, s->residual, IN_PLACE, ELEMENT, s->n, a->m),
         OPERAND_ROWS(a, y, true, OUTPUT, ELEMENT, s->n, a->m)}};
    return PTXGEN_OK;
}

/* Activations are brought into order, or to 16-byte alignment, at `out` before the product. */
static void gather(const ptxgen_marlin_plan *plan, uint64_t order, uint64_t out, bool programmatic,
                   struct launch_rows *x, struct launch_list *list)
{
    struct launch_entry *e = &list->entries[list->count++];
    *e = (struct launch_entry){.index = plan->variant_count,
                               .shape = launch_line(x->rows, MARLIN_GATHER_THREADS, 0, 1),
                               .params = MARLIN_GATHER_PARAMS,
                               .wide = MARLIN_GATHER_PARAMS,
                               .values = {[MARLIN_GATHER_X] = x->address,
                                          [MARLIN_GATHER_ORDER] = order,
                                          [MARLIN_GATHER_OUT] = out,
                                          [MARLIN_GATHER_X_STRIDE] = x->stride}};
    e->shape.programmatic = programmatic;
    x->address = out;
    x->stride = x->columns;
}

static ptxgen_status list(const void *plan, const void *args, struct launch_list *to,
                          ptxgen_error *err)
{
    const ptxgen_marlin_plan *p = plan;
    const ptxgen_marlin_args *a = args;
    const ptxgen_tile *v;
    struct gemm_launch launch;
    ptxgen_status status = gemm_find_launch(&marlin_planner, p, a->m, &v, &launch, err);
    if (status != PTXGEN_OK)
        return status;
    struct launch_rows x = {"x", a->x, a->x_stride, a->m, p->spec.k, ELEMENT};
    bool overlaps = gemm_overlaps(&p->target), programmatic = overlaps && a->overlap_previous;
    to->workspace_bytes = launch.workspace_bytes;
    if (p->spec.act_order || !launch_rows_are_aligned(&x, gemm_is_bulk(v))) {
        to->workspace_bytes = launch.copies + a->m * p->spec.k * ELEMENT;
        gather(p, a->order, a->workspace + launch.copies, programmatic, &x, to);
        programmatic = overlaps;
    }
    if (gemm_is_bulk(v))
        launch_list_map(to, &x, launch_map_type(p->spec.type), v->tile_m, LAUNCH_MAP_AND_LAST);
    struct launch_entry *e = &to->entries[to->count++];
    *e = (struct launch_entry){.index = (unsigned)(v - p->variants),
                               .shape = launch_line(launch.grid, marlin_cta_threads(v),
                                                    v->dynamic_shared_bytes, v->cluster),
                               .params = MARLIN_PARAMS,
                               .wide = MARLIN_M,
                               .values = {[MARLIN_X] = x.address,
                                          [MARLIN_CODES] = a->codes,
                                          [MARLIN_SCALES] = a->scales,
                                          [MARLIN_ZEROS] = a->zeros,
                                          [MARLIN_BIAS] = a->bias,
                                          [MARLIN_UP_BIAS] = a->up_bias,
                                          [MARLIN_RESIDUAL] = a->residual,
                                          [MARLIN_Y] = a->y,
                                          [MARLIN_WORKSPACE] = a->workspace,
                                          [MARLIN_X_STRIDE] = x.stride,
                                          [MARLIN_RESIDUAL_STRIDE] = a->residual_stride,
                                          [MARLIN_Y_STRIDE] = a->y_stride,
                                          [MARLIN_M] = a->m,
                                          [MARLIN_SHARE] = launch.tiles.share,
                                          [MARLIN_EXTRA] = launch.tiles.extra,
                                          [MARLIN_GRANULE] = launch.tiles.granule}};
    e->shape.programmatic = programmatic;
    return PTXGEN_OK;
}

static const struct family marlin = {
    .table = {FAMILY_TABLE(marlin), .plan_version = 27, .check_driver = check_driver,
              .describe = describe, .tiling = &marlin_tiling, .revision = library_revision},
    FAMILY_MEMBERS(marlin),
    FAMILY_WORKSPACE_MEMBERS(marlin),
    .workspace_align = CHUNK,
    .entry = entry,
};
FAMILY_FUNCTIONS(marlin, marlin)
FAMILY_ATTRIBUTES(marlin, marlin)
FAMILY_WORKSPACE(marlin, marlin)
