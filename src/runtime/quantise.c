/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch of the quantise family takes and enqueues. */
#include "src/kernels/quantise/layout.h"
#include "src/runtime/family.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

FAMILY_CALLBACKS(quantise)

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_quantise_emit(plan, module, err);
}

static void describe(const void *spec, char *text, size_t size)
{
    static const char *const producers[] = {"", " rmsnorm", " silu_mul"};
    const ptxgen_quantise_spec *s = spec;
    char norm[64] = "";
    if (quantise_is_norm(s))
        snprintf(norm, sizeof norm, " gamma=%s epsilon=%.9g%s", family_element(s->gamma_type),
                 (double)s->epsilon, s->residual ? " residual" : "");
    snprintf(text, size, "k=%u x=%s codes=%s%d..%d group=%u%s%s%s", s->k, family_element(s->x_type),
             s->codes == PTXGEN_W8A8_E4M3 ? "e4m3 " : "", s->q_min, s->q_max, s->group,
             s->asymmetric ? " asymmetric" : "",
             s->producer <= PTXGEN_QUANTISE_SILU_MUL ? producers[s->producer] : " ?", norm);
}

static ptxgen_status arrays(const void *plan, void *args, struct family_arrays *to,
                            ptxgen_error *err)
{
    enum { WORD = 4 };
    const ptxgen_quantise_spec *s = &((const ptxgen_quantise_plan *)plan)->spec;
    ptxgen_quantise_args *a = args;
    const unsigned x = (unsigned)ptxgen_element_size((ptxgen_element)s->x_type);
    const unsigned gamma = (unsigned)ptxgen_element_size((ptxgen_element)s->gamma_type);
    const uint32_t groups = ptxgen_quantise_groups(s);
    (void)err;
    *to = (struct family_arrays){
        7,
        {OPERAND_ROWS(a, x, true, INPUT, x, quantise_x_columns(s), a->m),
         OPERAND_BYTES(a, gamma, quantise_is_norm(s), INPUT, gamma, (uint64_t)s->k * gamma),
         OPERAND_ROWS(a, residual, s->residual, IN_PLACE, x, s->k, a->m),
         OPERAND_ROWS(a, residual_out, s->residual, OUTPUT, x, s->k, a->m),
         OPERAND_ROWS(a, codes, true, OUTPUT, 1, s->k, a->m),
         OPERAND_ROWS(a, scales, true, OUTPUT, WORD, groups, a->m),
         OPERAND_ROWS(a, zeros, s->asymmetric, OUTPUT, WORD, groups, a->m)}};
    return PTXGEN_OK;
}

static int entry(const void *plan, uint64_t m)
{
    (void)plan;
    return m && m <= QUANTISE_MOST_M ? 0 : -1;
}

static ptxgen_status list(const void *plan, const void *args, struct launch_list *to,
                          ptxgen_error *err)
{
    const ptxgen_quantise_plan *p = plan;
    const ptxgen_quantise_args *a = args;
    if (a->m > QUANTISE_MOST_M)
        return quantise_refuse_m(a->m, err);
    struct launch_entry *e = &to->entries[to->count++];
    *e = (struct launch_entry){.index = 0,
                               .shape = launch_line(a->m, p->threads, 0, 1),
                               .params = QUANTISE_PARAMS,
                               .wide = QUANTISE_X_STRIDE,
                               .values = {[QUANTISE_X] = a->x,
                                          [QUANTISE_GAMMA] = a->gamma,
                                          [QUANTISE_RESIDUAL] = a->residual,
                                          [QUANTISE_RESIDUAL_OUT] = a->residual_out,
                                          [QUANTISE_CODES] = a->codes,
                                          [QUANTISE_SCALES] = a->scales,
                                          [QUANTISE_ZEROS] = a->zeros,
                                          [QUANTISE_X_STRIDE] = a->x_stride,
                                          [QUANTISE_RESIDUAL_STRIDE] = a->residual_stride,
                                          [QUANTISE_RESIDUAL_OUT_STRIDE] = a->residual_out_stride,
                                          [QUANTISE_CODES_STRIDE] = a->codes_stride,
                                          [QUANTISE_SCALES_STRIDE] = a->scales_stride,
                                          [QUANTISE_ZEROS_STRIDE] = a->zeros_stride}};
    e->shape.programmatic = a->overlap_previous && gemm_overlaps(&p->target);
    return PTXGEN_OK;
}

static const struct family quantise = {
    .table = {FAMILY_TABLE(quantise), .plan_version = 2, .describe = describe,
              .revision = library_revision},
    .plan_target = offsetof(ptxgen_quantise_plan, target),
    .plan_n = offsetof(ptxgen_quantise_plan, spec.k), /* which is not 0 */
    .is_plan = quantise_is_plan,
    .arrays = arrays,
    .list = list,
    .args = {offsetof(ptxgen_quantise_args, m), FAMILY_HAS_NONE, FAMILY_HAS_NONE},
    .has_narrow_strides = true,
    .entry = entry,
};
FAMILY_FUNCTIONS(quantise, quantise)
FAMILY_ATTRIBUTES(quantise, quantise)
FAMILY_WORKSPACE(quantise, quantise)
