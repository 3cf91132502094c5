/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch of the dense family takes and enqueues. */
#include "src/runtime/dense.h"

#include "src/kernels/dense/layout.h"
#include "src/runtime/family.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

FAMILY_CALLBACKS(dense)
FAMILY_EMIT(dense)
FAMILY_PRODUCT_DRIVER(dense_planner)
/* Entries are loaded as they were emitted: the plan's variants, then dense_align. */
FAMILY_PRODUCT_ENTRY(dense_planner)

static void describe(const void *spec, char *text, size_t size)
{
    const ptxgen_dense_spec *s = spec;
    snprintf(text, size, "k=%u n=%u %s max_m=%u%s%s%s", s->k, s->n, family_element(s->type),
             s->max_m, family_activation(s->activation), s->bias ? " bias" : "",
             s->residual ? " residual" : "");
}

static ptxgen_status arrays(const void *plan, void *args, struct family_arrays *to,
                            ptxgen_error *err)
{
    const ptxgen_dense_spec *s = &((const ptxgen_dense_plan *)plan)->spec;
    ptxgen_dense_args *a = args;
    uint32_t size = dense_element(s);
    uint64_t bias = (uint64_t)s->n * size;
    (void)err;
    *to =
        (struct family_arrays){5,
                               {OPERAND_ROWS(a, x, true, INPUT, size, s->k, a->m),
                                OPERAND_ROWS(a, w, true, INPUT, size, s->k, s->n),
                                OPERAND_BYTES(a, bias, s->bias, INPUT, size, bias),
                                OPERAND_ROWS(a, residual, s->residual, IN_PLACE, size, s->n, a->m),
                                OPERAND_ROWS(a, y, true, OUTPUT, size, s->n, a->m)}};
    return PTXGEN_OK;
}

/* Rows of an operand that are not aligned go to the end of the workspace. */
static void align(const ptxgen_dense_plan *plan, const ptxgen_tile *v, struct launch_rows *rows,
                  uint64_t workspace, struct launch_list *list, uint64_t *end)
{
    if (launch_rows_are_aligned(rows, gemm_is_bulk(v)))
        return;
    launch_list_align(list, plan->variant_count, rows, workspace + *end);
    list->workspace_bytes = *end += rows->rows * dense_row_bytes(&plan->spec);
}

ptxgen_status dense_list(const ptxgen_dense_plan *plan, const ptxgen_dense_args *args,
                         struct launch_list *list, ptxgen_error *err)
{
    const ptxgen_tile *v;
    struct gemm_launch launch;
    ptxgen_status status = gemm_find_launch(&dense_planner, plan, args->m, &v, &launch, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_dense_spec *s = &plan->spec;
    const ptxgen_dense_args *a = args;
    const uint32_t element = dense_element(s);
    const ptxgen_cu_tensor_map_data_type type = launch_map_type(s->type);
    struct launch_rows x = {"x", a->x, a->x_stride, a->m, s->k, element};
    struct launch_rows w = {"w", a->w, a->w_stride, s->n, s->k, element};
    uint64_t end = launch.copies;
    list->workspace_bytes = launch.workspace_bytes;
    align(plan, v, &x, a->workspace, list, &end);
    align(plan, v, &w, a->workspace, list, &end);
    if (gemm_is_bulk(v)) {
        launch_list_map(list, &x, type, dense_box_rows(v),
                        v->cluster > 1 ? LAUNCH_MAP_AND_NONE : LAUNCH_MAP_AND_LAST);
        launch_list_map(list, &w, type, v->tile_n, LAUNCH_MAP);
    }
    struct launch_entry *e = &list->entries[list->count++];
    *e = (struct launch_entry){.index = (unsigned)(v - plan->variants),
                               .shape = launch_line(launch.grid, gemm_cta_threads(v),
                                                    v->dynamic_shared_bytes, dense_cluster(v)),
                               .params = DENSE_PARAMS,
                               .wide = DENSE_M,
                               .values = {[DENSE_X] = x.address,
                                          [DENSE_W] = w.address,
                                          [DENSE_BIAS] = a->bias,
                                          [DENSE_RESIDUAL] = a->residual,
                                          [DENSE_Y] = a->y,
                                          [DENSE_WORKSPACE] = a->workspace,
                                          [DENSE_X_STRIDE] = x.stride,
                                          [DENSE_W_STRIDE] = w.stride,
                                          [DENSE_RESIDUAL_STRIDE] = a->residual_stride,
                                          [DENSE_Y_STRIDE] = a->y_stride,
                                          [DENSE_M] = a->m,
                                          [DENSE_SHARE] = launch.tiles.share,
                                          [DENSE_EXTRA] = launch.tiles.extra,
                                          [DENSE_GRANULE] = launch.tiles.granule}};
    return PTXGEN_OK;
}

static ptxgen_status list(const void *plan, const void *args, struct launch_list *to,
                          ptxgen_error *err)
{
    return dense_list(plan, args, to, err);
}

static const struct family dense = {
    .table = {FAMILY_TABLE(dense), .plan_version = 14, .check_driver = check_driver,
              .describe = describe, .revision = library_revision},
    FAMILY_MEMBERS(dense),
    FAMILY_WORKSPACE_MEMBERS(dense),
    .workspace_align = 16,
    .entry = entry,
};
FAMILY_FUNCTIONS(dense, dense)
FAMILY_ATTRIBUTES(dense, dense)
FAMILY_WORKSPACE(dense, dense)
