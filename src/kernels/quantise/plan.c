/* SPDX-License-Identifier: Apache-2.0 */
/* From a spec of quantise to the threads of its kernel. */
#include "layout.h"

#include "../plan.h"
#include "../w8a8/code_type.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- validation ---- */

ptxgen_w8a8_spec quantise_row_spec(const ptxgen_quantise_spec *s)
{
    const ptxgen_w8a8_spec row = {.k = s->k,
                                  .n = 1,
                                  .q_min = s->q_min,
                                  .q_max = s->q_max,
                                  .x_type = s->x_type,
                                  .asymmetric = s->asymmetric,
                                  .codes = s->codes};
    return w8a8_with_range(&row);
}

static ptxgen_status check_types(const ptxgen_quantise_spec *s, ptxgen_error *err)
{
    if (s->x_type > PTXGEN_BF16 || s->gamma_type > PTXGEN_BF16)
        return ptxgen_fail(
            err, plan_refuses_enumerator(s->x_type <= PTXGEN_F64 && s->gamma_type <= PTXGEN_F64),
            "quantise: x_type = %u, gamma_type = %u; f32, f16 and bf16 are 0, 1, 2", s->x_type,
            s->gamma_type);
    if (s->codes > PTXGEN_W8A8_E4M3)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "quantise: codes = %u; s8 and e4m3 are 0 and 1", s->codes);
    if (s->group && s->group != PTXGEN_QUANTISE_GROUP)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "quantise: group = %u is neither 0, a scale for each token, nor %d",
                           s->group, PTXGEN_QUANTISE_GROUP);
    return PTXGEN_OK;
}

static ptxgen_status check_codes(const ptxgen_quantise_spec *s, ptxgen_error *err)
{
    const ptxgen_w8a8_spec row = quantise_row_spec(s);
    bool is_e4m3 = s->codes == PTXGEN_W8A8_E4M3;
    int largest = w8a8_code_type(s->codes)->largest;
    if (is_e4m3 && (s->asymmetric || row.q_max != largest || row.q_min != -largest))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "quantise: asymmetric = %u, q_min = %d, q_max = %d; e4m3 codes have "
                           "neither zero points nor a range: all must be 0",
                           s->asymmetric, s->q_min, s->q_max);
    if (!is_e4m3 && (row.q_min < -128 || row.q_min > 0 || row.q_max <= 0 || row.q_max > 127))
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "quantise: codes of %d ... %d; the rule is -128 <= q_min <= 0 < q_max <= 127", s->q_min,
            s->q_max);
    return PTXGEN_OK;
}

static ptxgen_status check_producer(const ptxgen_quantise_spec *s, ptxgen_error *err)
{
    if (s->producer > PTXGEN_QUANTISE_SILU_MUL)
        return ptxgen_fail(
            err, PTXGEN_ERROR_INVALID_ARGUMENT,
            "quantise: producer = %u; none, RMSNorm and SiLU times up are 0, 1 and 2", s->producer);
    if (!quantise_is_norm(s) && (s->residual || s->gamma_type || s->epsilon != 0))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "quantise: residual = %u, gamma_type = %u, epsilon = %g, which only the "
                           "producer RMSNorm has",
                           s->residual, s->gamma_type, (double)s->epsilon);
    if (!(s->epsilon >= 0) || isinf(s->epsilon))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "quantise: epsilon = %g is not a finite number from 0 on",
                           (double)s->epsilon);
    return PTXGEN_OK;
}

ptxgen_status quantise_check_spec(const ptxgen_quantise_spec *s, ptxgen_error *err)
{
    enum { MOST_K = 1 << 24 };
    const struct plan_flag flags[] = {{"asymmetric", s->asymmetric, 1},
                                      {"residual", s->residual, 1},
                                      {"reserved[0]", s->reserved[0], 0}};
    if (!s->k || s->k > MOST_K)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "quantise: K = %u is not within 1 and %d",
                           s->k, MOST_K);
    ptxgen_status status = plan_check_flags("quantise", flags, sizeof flags / sizeof *flags, err);
    if (status == PTXGEN_OK)
        status = check_types(s, err);
    if (status == PTXGEN_OK)
        status = check_codes(s, err);
    return status == PTXGEN_OK ? check_producer(s, err) : status;
}

static ptxgen_status check_target(const ptxgen_quantise_spec *s, const ptxgen_target *target,
                                  ptxgen_error *err)
{
    const ptx_target *t = &target->ptx;
    ptxgen_status status = plan_check_target("quantise", target, err);
    if (status != PTXGEN_OK || s->codes != PTXGEN_W8A8_E4M3)
        return status;
    int least = t->sm >= 90 ? 78 : 81;
    if (t->sm >= 89 && (!t->max_ptx || t->max_ptx >= least))
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_TARGET,
                       "quantise: e4m3 codes need sm_89 and PTX 8.1, or sm_90 and PTX 7.8; the "
                       "target is sm_%u with PTX %u.%u (0.0: any)",
                       t->sm, t->max_ptx / 10, t->max_ptx % 10);
}

/* ---- the plan ---- */

uint32_t quantise_threads(const ptxgen_quantise_spec *s)
{
    uint32_t threads = 32;
    while (threads < 1024 && threads * QUANTISE_CHUNK < s->k)
        threads *= 2;
    return threads;
}

uint32_t ptxgen_quantise_groups(const ptxgen_quantise_spec *s)
{
    if (!s || !s->k)
        return 0;
    return (s->k - 1) / quantise_group_size(s) + 1;
}

ptxgen_status ptxgen_quantise_make_plan(const ptxgen_quantise_spec *spec,
                                        const ptxgen_target *target, ptxgen_quantise_plan *plan,
                                        ptxgen_error *err)
{
    if (!spec || !target || !plan)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "quantise: spec, target and plan must be given");
    ptxgen_status status = quantise_check_spec(spec, err);
    if (status == PTXGEN_OK)
        status = check_target(spec, target, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_quantise_plan made;
    memset(&made, 0, sizeof made);
    const ptxgen_w8a8_spec row = quantise_row_spec(spec);
    made.spec = *spec;
    made.spec.q_min = row.q_min;
    made.spec.q_max = row.q_max;
    made.target = *target;
    made.threads = quantise_threads(spec);
    *plan = made;
    return PTXGEN_OK;
}

ptxgen_status ptxgen_quantise_emit(const ptxgen_quantise_plan *plan, ptx_module *module,
                                   ptxgen_error *err)
{
    if (!quantise_is_plan(plan) || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "quantise: a plan that was made, and a module, must be given");
    quantise_emit_entry(plan, module);
    return ptx_module_status(module, err);
}

/* ---- a launch ---- */

ptxgen_status quantise_refuse_m(uint64_t m, ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                       "quantise: m = %llu is above %d, the most CTAs of a grid",
                       (unsigned long long)m, QUANTISE_MOST_M);
}

ptxgen_status ptxgen_quantise_ctas(const ptxgen_quantise_plan *plan, uint64_t m, uint32_t *ctas,
                                   ptxgen_error *err)
{
    if (!quantise_is_plan(plan) || !ctas)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "quantise: a plan that was made, and ctas, must be given");
    if (m > QUANTISE_MOST_M)
        return quantise_refuse_m(m, err);
    *ctas = (uint32_t)m;
    return PTXGEN_OK;
}

void ptxgen_quantise_explain(const ptxgen_quantise_plan *p, uint64_t m, char *text, size_t size)
{
    static const char *const producers[] = {"", "the RMSNorm of ", "SiLU(gate) times up of "};
    bool made = quantise_is_plan(p);
    size = plan_room(text, size);
    if (!plan_explains_none(made, m, m <= QUANTISE_MOST_M, QUANTISE_MOST_M, text, size))
        snprintf(text, size,
                 "one launch: a CTA of %u threads quantises %sa token, with %s, for each of the "
                 "%u tokens",
                 p->threads, producers[p->spec.producer],
                 p->spec.group ? "a scale for each 128 of K" : "one scale", (unsigned)m);
}
