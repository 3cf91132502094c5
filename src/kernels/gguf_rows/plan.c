/* SPDX-License-Identifier: Apache-2.0 */
/* From a spec of gguf_rows to the parts of a row. */
#include "layout.h"

#include "../plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- validation ---- */

static ptxgen_status check_types(const ptxgen_gguf_rows_spec *s, ptxgen_error *err)
{
    size_t bytes;
    if (s->y_type > PTXGEN_BF16)
        return ptxgen_fail(err, plan_refuses_enumerator(s->y_type <= PTXGEN_F64),
                           "gguf_rows: y_type = %u; f32, f16 and bf16 are 0, 1, 2", s->y_type);
    if (!ptxgen_gguf_type_find(s->w_type))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf_rows: w_type = %u is the number of no type that this library "
                           "decodes",
                           s->w_type);
    return ptxgen_gguf_row_bytes(s->w_type, s->k, &bytes, err);
}

ptxgen_status gguf_rows_check_spec(const ptxgen_gguf_rows_spec *s, ptxgen_error *err)
{
    enum { MOST_K = 1 << 24 };
    const struct plan_flag flags[] = {{"indexed", s->indexed, 1},
                                      {"reserved[0]", s->reserved[0], 0}};
    if (!s->k || s->k > MOST_K)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf_rows: K = %u is not within 1 and %d", s->k, MOST_K);
    ptxgen_status status = plan_check_flags("gguf_rows", flags, sizeof flags / sizeof *flags, err);
    if (status != PTXGEN_OK)
        return status;
    if (!isfinite(s->scale))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_rows: scale = %g is not finite", (double)s->scale);
    return check_types(s, err);
}

/* ---- the plan ---- */

uint32_t gguf_rows_part_strips(const ptxgen_gguf_rows_spec *s)
{
    enum { BESIDE = GGUF_ROWS_COPY - 1 + 4 };
    const ptxgen_gguf_type_info *type = ptxgen_gguf_type_find(s->w_type);
    uint32_t strips = gguf_rows_strips(s);
    uint32_t most =
        (gguf_rows_rounds(type) * GGUF_ROWS_ROUND - BESIDE) / gguf_rows_strip_bytes(type);
    uint32_t parts = (strips + most - 1) / most;
    return (strips + parts - 1) / parts;
}

bool gguf_rows_is_plan(const void *plan)
{
    const ptxgen_gguf_rows_plan *p = plan;
    return p && p->target.multiprocessors && p->spec.k && ptxgen_gguf_type_find(p->spec.w_type) &&
           p->part_weights == gguf_rows_part_strips(&p->spec) * GGUF_ROWS_STRIP &&
           p->parts == (p->spec.k - 1) / p->part_weights + 1;
}

ptxgen_status ptxgen_gguf_rows_make_plan(const ptxgen_gguf_rows_spec *spec,
                                         const ptxgen_target *target, ptxgen_gguf_rows_plan *plan,
                                         ptxgen_error *err)
{
    if (!spec || !target || !plan)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_rows: spec, target and plan must be given");
    ptxgen_status status = gguf_rows_check_spec(spec, err);
    if (status == PTXGEN_OK)
        status = plan_check_target("gguf_rows", target, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_gguf_rows_plan made;
    memset(&made, 0, sizeof made);
    made.spec = *spec;
    made.spec.scale = spec->scale == 0 ? 1 : spec->scale;
    made.target = *target;
    made.part_weights = gguf_rows_part_strips(spec) * GGUF_ROWS_STRIP;
    made.parts = (spec->k - 1) / made.part_weights + 1;
    *plan = made;
    return PTXGEN_OK;
}

ptxgen_status ptxgen_gguf_rows_emit(const ptxgen_gguf_rows_plan *plan, ptx_module *module,
                                    ptxgen_error *err)
{
    if (!gguf_rows_is_plan(plan) || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_rows: a plan that was made, and a module, must be given");
    gguf_rows_emit_entry(plan, NULL, module);
    return ptx_module_status(module, err);
}

/* ---- a launch ---- */

ptxgen_status gguf_rows_refuse_m(const ptxgen_gguf_rows_plan *p, uint64_t m, ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                       "gguf_rows: m = %llu is above %u, the most rows of K = %u in a launch",
                       (unsigned long long)m, gguf_rows_most_m(p), p->spec.k);
}

ptxgen_status ptxgen_gguf_rows_ctas(const ptxgen_gguf_rows_plan *plan, uint64_t m, uint32_t *ctas,
                                    ptxgen_error *err)
{
    if (!gguf_rows_is_plan(plan) || !ctas)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_rows: a plan that was made, and ctas, must be given");
    if (m > gguf_rows_most_m(plan))
        return gguf_rows_refuse_m(plan, m, err);
    uint32_t needed = ((uint32_t)m * plan->parts + GGUF_ROWS_WARPS - 1) / GGUF_ROWS_WARPS;
    uint32_t most = plan->target.multiprocessors * GGUF_ROWS_CTAS;
    *ctas = needed < most ? needed : most;
    return PTXGEN_OK;
}

void ptxgen_gguf_rows_explain(const ptxgen_gguf_rows_plan *p, uint64_t m, char *text, size_t size)
{
    bool made = gguf_rows_is_plan(p);
    uint32_t most = made ? gguf_rows_most_m(p) : 0, ctas;
    size = plan_room(text, size);
    if (plan_explains_none(made, m, m <= most, most, text, size))
        return;
    ptxgen_gguf_rows_ctas(p, m, &ctas, NULL);
    snprintf(text, size,
             "one launch: %u CTAs of %d warps decode rows of %s, %u weights of a row by each warp "
             "at a time",
             ctas, GGUF_ROWS_WARPS, ptxgen_gguf_type_find(p->spec.w_type)->name, p->part_weights);
}
