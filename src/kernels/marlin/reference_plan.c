/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference of a plan's kernel: the problem in the terms of reference.h, with the bound's
 * figures read off the variant that serves this M.
 */
#include "../linear_product.h"
#include "emit.h"
#include "formats/scale_range.h"
#include "reference.h"
#include "spec.h"

#include <stdlib.h>

enum {
    /*
     * The number of additions for which an m16n8k16 counts. sm_80 to sm_89 compute it as two
     * products over 8 of K, which count 8 + 3 each; later chips as one over 16 of K, which counts
     * less, 16 + 3.
     */
    MMA_DEPTH = 22,
    MMA_ROWS = 16,
    CORRECTION_DEPTH = 2, /* additions of two half sums of activations, and of the correction */
};

static const double bf16_unit = 0x1p-30;            /* of dequantised weights (weights.c) */
static const double cut_of_code = 0x1p10 * 0x1p-24; /* 2⁻²⁴ of 1024 units */
static const double activation_error = 0x1p-20;     /* of gemm/activation.c, relative to |v| */

/*
 * mma steps of a group whose sums are scaled; 0 where sums are not scaled or there are no groups.
 */
static uint32_t group_mmas_of(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    uint32_t rows = marlin_scale_rows(s);
    uint32_t most = marlin_scales_stages(s, v) ? v->steps * MARLIN_STEP : MARLIN_STEP;
    return rows && marlin_scales_sums(s, v) ? (rows < most ? rows : most) / MMA_ROWS : 0;
}

/*
 * The most additions that a term passes on its way into S: the mma steps of a warp along K, or
 * those of a packed group and then the groups; then the warps along K; then the CTAs that share the
 * tile, of which there is at most one for each stage.
 */
static unsigned depth_of(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    uint32_t stage_steps = v->wk * v->steps;
    uint32_t stages = (marlin_steps(s) + stage_steps - 1) / stage_steps;
    uint32_t mmas = stages * v->steps * (MARLIN_STEP / MMA_ROWS);
    uint32_t in_warp = MMA_DEPTH * mmas, group_mmas = group_mmas_of(s, v);
    if (group_mmas)
        in_warp = MMA_DEPTH * group_mmas + mmas / group_mmas;
    if (marlin_corrects_sums(s, v))
        in_warp += CORRECTION_DEPTH * (marlin_scale_rows(s) ? mmas : 1);
    return in_warp + v->wk - 1 + stages - 1;
}

static ptxgen_status check_matrix(const ptxgen_marlin_spec *s, const char *name,
                                  const ptxgen_w4_matrix *m, ptxgen_error *err)
{
    size_t rows = m->group_size == PTXGEN_W4_PER_CHANNEL ? m->k : (size_t)m->group_size;
    if (m->k == s->k && m->n == s->n && rows == marlin_group_rows(s))
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "marlin: %s is [%zu, %zu] in groups of %zu, but the spec says [%u, %u] in "
                       "groups of %zu",
                       name, m->k, m->n, rows, s->k, s->n, marlin_group_rows(s));
}

static ptxgen_status check(const ptxgen_marlin_plan *plan, const ptxgen_marlin_operands *o,
                           ptxgen_error *err)
{
    const ptxgen_marlin_spec *s = &plan->spec;
    bool gated = marlin_gated(s);
    const struct linear_array arrays[] = {
        {"weights", o->weights, true, 0, 0},
        {"up", o->up, gated, 0, 0},
        {"bias", o->bias, s->bias, 0, 0},
        {"up_bias", o->up_bias, s->bias && gated, 0, 0},
        {"residual", o->residual, s->residual && o->m, 0, 0}};
    ptxgen_status status =
        linear_check_arrays("marlin", arrays, sizeof arrays / sizeof *arrays, err);
    if (status == PTXGEN_OK)
        status = check_matrix(s, "weights", o->weights, err);
    if (status == PTXGEN_OK && gated)
        status = check_matrix(s, "up", o->up, err);
    if (status == PTXGEN_OK && o->m && !ptxgen_marlin_choose(plan, o->m))
        status = gemm_refuse_m(&marlin_planner, plan, o->m, err);
    return status;
}

/*
 * Makes a matrix whose scales are rounded to the spec's type, and refused, like in packing. The
 * caller frees the scales.
 */
static ptxgen_status round_scales(const char *name, const ptxgen_w4_matrix *from,
                                  ptxgen_element type, ptxgen_w4_matrix *to, ptxgen_error *err)
{
    ptxgen_w4_info info;
    ptxgen_status status = ptxgen_w4_describe_matrix(from, &info, err);
    if (status != PTXGEN_OK)
        return status;
    size_t count = info.groups * info.n;
    *to = *from;
    to->scale_type = type;
    to->scales = malloc(count * ptxgen_element_size(type));
    if (!to->scales)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "marlin: no memory for %zu scales",
                           count);
    for (size_t i = 0; status == PTXGEN_OK && i < count; i++) {
        struct marlin_scale s = {
            .matrix = name,
            .group = i / info.n,
            .feature = i % info.n,
            .zero = from->zeros ? from->zeros[i] : PTXGEN_W4_SYMMETRIC_ZERO,
            .given = ptxgen_element_load(from->scale_type, from->scales, i),
        };
        ptxgen_element_store(type, to->scales, i, s.given);
        s.stored = ptxgen_element_load(type, to->scales, i);
        status = marlin_check_scale(type, &s, err);
    }
    return status;
}

static struct marlin_problem problem_of(const ptxgen_marlin_plan *plan,
                                        const ptxgen_marlin_operands *o)
{
    const ptxgen_marlin_spec *s = &plan->spec;
    const ptxgen_tile *v = ptxgen_marlin_choose(plan, o->m ? o->m : 1);
    ptxgen_element type = (ptxgen_element)s->type;
    enum marlin_form form = marlin_find_form(s, v);
    bool masked = form == MARLIN_MASKED, rounds = form == MARLIN_SCALED || form == MARLIN_FOLDED;
    double code_cut = masked && type == PTXGEN_F16 ? cut_of_code : 0;
    return (struct marlin_problem){
        .m = o->m,
        .x_type = type,
        .y_type = type,
        .x = o->x,
        .x_stride = o->x_stride ? o->x_stride : s->k,
        .bias = s->bias ? o->bias : NULL,
        .up_bias = s->bias ? o->up_bias : NULL,
        .residual = s->residual ? o->residual : NULL,
        .residual_stride = o->residual_stride ? o->residual_stride : s->n,
        .activation = marlin_gated(s) ? PTXGEN_ACTIVATION_SILU : (ptxgen_activation)s->activation,
        .depth = depth_of(s, v),
        .weight_type = rounds ? type : PTXGEN_F32,
        .unit = type == PTXGEN_BF16 && !masked ? bf16_unit : 1,
        .folds = form == MARLIN_FOLDED,
        .activation_error = activation_error,
        .corrects_sums = masked,
        .offset = marlin_code_offset(s),
        .cut = MMA_DEPTH * code_cut,
        .cut_sums = plan->target.ptx.sm >= 90 ? 1 : 2,
        .code_cut = code_cut,
        .restart = group_mmas_of(s, v) * MMA_ROWS,
    };
}

ptxgen_status ptxgen_marlin_reference(const ptxgen_marlin_plan *plan,
                                      const ptxgen_marlin_operands *operands, double *y,
                                      double *bound, ptxgen_error *err)
{
    return ptxgen_marlin_reference_spread(plan, operands, y, bound, NULL, err);
}

ptxgen_status ptxgen_marlin_reference_spread(const ptxgen_marlin_plan *plan,
                                             const ptxgen_marlin_operands *operands, double *y,
                                             double *bound, ptxgen_spread *spread,
                                             ptxgen_error *err)
{
    if (!marlin_is_plan(plan) || !operands || (operands->m && !y))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: a plan that was made, operands and y must be given");
    ptxgen_status status = check(plan, operands, err);
    if (status != PTXGEN_OK)
        return status;
    struct marlin_problem p = problem_of(plan, operands);
    ptxgen_element type = (ptxgen_element)plan->spec.type;
    ptxgen_w4_matrix weights = {.scales = NULL}, up = {.scales = NULL};
    bool gated = marlin_gated(&plan->spec);
    status = round_scales(gated ? "gate" : "weights", operands->weights, type, &weights, err);
    if (status == PTXGEN_OK && gated) {
        status = round_scales("up", operands->up, type, &up, err);
        p.up = &up;
    }
    p.w = &weights;
    if (status == PTXGEN_OK)
        status = marlin_reference(&p, y, bound, spread, err);
    free(weights.scales);
    free(up.scales);
    return status;
}
