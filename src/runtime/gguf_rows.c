/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch of the gguf_rows family takes and enqueues. */
#include "src/kernels/gguf_rows/layout.h"
#include "src/runtime/family.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

FAMILY_CALLBACKS(gguf_rows)

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_gguf_rows_emit(plan, module, err);
}

static void describe(const void *spec, char *text, size_t size)
{
    const ptxgen_gguf_rows_spec *s = spec;
    const ptxgen_gguf_type_info *type = ptxgen_gguf_type_find(s->w_type);
    snprintf(text, size, "k=%u w=%s y=%s scale=%.9g%s", s->k, type ? type->name : "?",
             family_element(s->y_type), (double)s->scale, s->indexed ? " indexed" : "");
}

static ptxgen_status arrays(const void *plan, void *args, struct family_arrays *to,
                            ptxgen_error *err)
{
    enum { ID = 4 };
    const ptxgen_gguf_rows_spec *s = &((const ptxgen_gguf_rows_plan *)plan)->spec;
    const ptxgen_gguf_type_info *type = ptxgen_gguf_type_find(s->w_type);
    ptxgen_gguf_rows_args *a = args;
    const unsigned y = (unsigned)ptxgen_element_size((ptxgen_element)s->y_type);
    const uint64_t row_bytes = gguf_rows_row_bytes(s);
    if (a->n > UINT64_MAX / row_bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf_rows: n = %llu rows of %llu bytes are more than memory has",
                           (unsigned long long)a->n, (unsigned long long)row_bytes);
    *to = (struct family_arrays){
        3,
        {OPERAND_BYTES(a, ids, s->indexed, INPUT, ID, a->m * ID),
         OPERAND_BYTES(a, w, a->n > 0, INPUT, gguf_rows_align(type), a->n * row_bytes),
         OPERAND_ROWS(a, y, true, OUTPUT, y, s->k, a->m)}};
    return PTXGEN_OK;
}

static int entry(const void *plan, uint64_t m)
{
    return m && m <= gguf_rows_most_m(plan) ? 0 : -1;
}

static ptxgen_status list(const void *plan, const void *args, struct launch_list *to,
                          ptxgen_error *err)
{
    const ptxgen_gguf_rows_plan *p = plan;
    const ptxgen_gguf_rows_args *a = args;
    uint32_t ctas;
    ptxgen_status status = ptxgen_gguf_rows_ctas(p, a->m, &ctas, err);
    if (status != PTXGEN_OK)
        return status;
    struct launch_entry *e = &to->entries[to->count++];
    *e = (struct launch_entry){
        .index = 0,
        .shape = launch_line(ctas, GGUF_ROWS_THREADS, 0, 1),
        .params = GGUF_ROWS_PARAMS,
        .wide = GGUF_ROWS_ALL_PARTS,
        .values = {[GGUF_ROWS_IDS] = a->ids,
                   [GGUF_ROWS_W] = a->w,
                   [GGUF_ROWS_Y] = a->y,
                   [GGUF_ROWS_Y_STRIDE] = a->y_stride,
                   [GGUF_ROWS_N] = a->n,
                   /* All rows from n on are alike, and none of these numbers overflows. */
                   [GGUF_ROWS_FIRST_ROW] = a->first_row < a->n ? a->first_row : a->n,
                   [GGUF_ROWS_ALL_PARTS] = a->m * p->parts}};
    e->shape.programmatic = a->overlap_previous && gemm_overlaps(&p->target);
    return PTXGEN_OK;
}

static const struct family gguf_rows = {
    .table = {FAMILY_TABLE(gguf_rows), .plan_version = 2, .describe = describe,
              .revision = library_revision},
    .plan_target = offsetof(ptxgen_gguf_rows_plan, target),
    .plan_n = offsetof(ptxgen_gguf_rows_plan, spec.k), /* which is not 0 */
    .is_plan = gguf_rows_is_plan,
    .arrays = arrays,
    .list = list,
    .args = {offsetof(ptxgen_gguf_rows_args, m), FAMILY_HAS_NONE, FAMILY_HAS_NONE},
    .entry = entry,
};
FAMILY_FUNCTIONS(gguf_rows, gguf_rows)
FAMILY_ATTRIBUTES(gguf_rows, gguf_rows)
FAMILY_WORKSPACE(gguf_rows, gguf_rows)
