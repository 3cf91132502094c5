/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference: y and its bound by linear_product.h, with the parameters of the variant that
 * serves this M. A kernel that does not inflate w leaves products of a NaN or an infinity of x with
 * what w does not keep out; tier 1, which inflates w, is dense's reference with the inflated w.
 *
 * Sums of s8 are exact. Converted to f32 and scaled, in any order of the factors a, s_x, s_w, a sum
 * is rounded once, and once more for each scale, with u = 2⁻²⁴; a product of two factors that
 * underflows loses at most 2⁻¹⁴⁹ times the third factor:
 *
 *     E = g(3)·|v| + 2⁻¹⁴⁹·(1 + |a| + |s_x| + |s_w|)
 *
 * The reference's own error is relative to Σ|x·w|·|s_x·s_w|. The spread has the variance of the
 * roundings, a third of u²·v² each. None of this is needed with no activation or ReLU, where the
 * reference rounds as the kernel does, step by step, and the result is exact.
 */
#include "layout.h"

#include "../bound.h"
#include "../half.h"
#include "../linear_product.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const double unit_f32 = 0x1p-24, underflow = 0x1p-149;

/*
 * The number of additions for which a sparse m16n8k32 counts: two products of 8 kept terms, 8 + 3
 * each, if the hardware computes it in two steps; one of 16 terms counts less, 16 + 3.
 */
enum { MMA_DEPTH = 22 };

/*
 * The most additions that a term passes on its way into a sum: the mma steps of a warp along K,
 * then the warps along K, then the CTAs that share the tile, of which there is at most one for each
 * stage.
 */
static unsigned depth_of(const ptxgen_sparse24_spec *s, const ptxgen_tile *v)
{
    uint32_t stages = sparse24_stages_along_k(s, v);
    return MMA_DEPTH * stages * sparse24_mmas(s) + v->wk * v->cluster - 1 + stages - 1;
}

/* ---- the weights of a feature ---- */

struct problem {
    const ptxgen_sparse24_spec *spec;
    const ptxgen_sparse24_operands *o;
    struct sparse24_metadata metadata;
};

/* The metadata has been checked. */
static void load_feature(const void *user, uint32_t n, double *weights, uint32_t *columns)
{
    const struct problem *p = user;
    const ptxgen_sparse24_operands *o = p->o;
    size_t kept = p->spec->k / 2, first = n * kept;
    if (!sparse24_is_s8(p->spec))
        ptxgen_elements_load((ptxgen_element)p->spec->type, o->values.data, first, kept, weights,
                             1);
    for (size_t i = 0; sparse24_is_s8(p->spec) && i < kept; i++)
        weights[i] = ((const int8_t *)o->values.data)[first + i];
    for (size_t group = 0; group < kept / SPARSE24_KEPT; group++) {
        unsigned nibble;
        sparse24_load_group(&p->metadata, n, group, &nibble, NULL);
        uint32_t column = (uint32_t)group * SPARSE24_GROUP;
        columns[group * SPARSE24_KEPT] = column + sparse24_first(nibble);
        columns[group * SPARSE24_KEPT + 1] = column + sparse24_second(nibble);
    }
}

/* ---- sums of s8 ---- */

static struct linear_estimate scale(const void *user, uint64_t m, uint32_t n, double sum,
                                    double magnitude)
{
    const ptxgen_sparse24_operands *o = ((const struct problem *)user)->o;
    enum { ROUNDINGS = 3 };
    double value = sum * o->x_scale[m] * o->w_scale[n];
    double a = fabs(sum), sx = fabs(o->x_scale[m]), sw = fabs(o->w_scale[n]);
    double g = ptxgen_bound_factor(ROUNDINGS, unit_f32);
    double largest = fmax(fmax(a * sx, a * sw), fmax(sx * sw, fabs(value)));
    double lost = (1 + a + sx + sw) * underflow;
    return (struct linear_estimate){
        .value = value,
        .error = largest * (1 + g) <= FLT_MAX ? g * fabs(value) + lost : NAN,
        .magnitude = magnitude * sx * sw,
        .spread = {lost, lost, ROUNDINGS * spread_of_rounding(value * value)},
    };
}

/* Does every rounding of the kernel in its order; `volatile` prevents a compiler from fusing. */
static double finish(const void *user, uint64_t m, uint32_t n, double sum, const float *bias,
                     const double *residual)
{
    const struct problem *p = user;
    volatile float v = (float)sum;
    v = v * p->o->x_scale[m];
    v = v * p->o->w_scale[n];
    if (bias)
        v = v + *bias;
    if (p->spec->activation == PTXGEN_ACTIVATION_RELU)
        v = v < 0 ? 0 : v;
    if (residual)
        v = v + (float)*residual;
    return ptxgen_element_round((ptxgen_element)p->spec->y_type, v);
}

/* ---- the problem ---- */

static ptxgen_status check(const ptxgen_sparse24_plan *plan, const ptxgen_sparse24_operands *o,
                           ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &plan->spec;
    const ptxgen_sparse24_shape shape = sparse24_shape(s);
    const bool scaled = sparse24_is_s8(s);
    const struct linear_array arrays[] = {
        {"x", o->x, o->m, o->x_stride, s->k},
        {"bias", o->bias, s->bias, 0, 0},
        {"residual", o->residual, s->residual && o->m, o->residual_stride, s->n},
        {"x_scale", o->x_scale, scaled && o->m, 0, 0},
        {"w_scale", o->w_scale, scaled, 0, 0}};
    ptxgen_status status =
        linear_check_arrays("sparse24", arrays, sizeof arrays / sizeof *arrays, err);
    if (status == PTXGEN_OK && sparse24_tier(s) == 2 && o->m && !ptxgen_sparse24_choose(plan, o->m))
        status = gemm_refuse_m(&sparse24_planner, plan, o->m, err);
    if (status == PTXGEN_OK)
        status = ptxgen_sparse24_validate(&shape, o->values, o->form, o->metadata, err);
    if (status == PTXGEN_OK && scaled)
        status = ptxgen_bound_check_finite("x_scale", o->x_scale, o->m, err);
    if (status == PTXGEN_OK && scaled)
        status = ptxgen_bound_check_finite("w_scale", o->w_scale, s->n, err);
    return status;
}

/* Tier 1: the dense product with the decompressed weight. */
static ptxgen_status dense_reference(const ptxgen_sparse24_plan *plan,
                                     const ptxgen_sparse24_operands *o, double *y, double *bound,
                                     ptxgen_spread *spread, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &plan->spec;
    const ptxgen_sparse24_shape shape = sparse24_shape(s);
    size_t bytes;
    ptxgen_status status = ptxgen_sparse24_dense_bytes(&shape, &bytes, err);
    void *w = status == PTXGEN_OK ? malloc(bytes) : NULL;
    if (status == PTXGEN_OK && !w)
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                             "sparse24: no memory for a dense weight of %zu bytes", bytes);
    if (status == PTXGEN_OK)
        status = ptxgen_sparse24_decompress(&shape, o->values, o->form, o->metadata,
                                            (ptxgen_span){w, bytes}, err);
    const ptxgen_dense_operands dense = {.m = o->m,
                                         .x = o->x,
                                         .w = w,
                                         .bias = o->bias,
                                         .residual = o->residual,
                                         .x_stride = o->x_stride,
                                         .residual_stride = o->residual_stride};
    ptxgen_dense_plan part = plan->dense; /* a caller may ask for some features: see `spec` */
    part.spec.n = s->n;
    if (status == PTXGEN_OK)
        status = ptxgen_dense_reference_spread(&part, &dense, y, bound, spread, err);
    free(w);
    return status;
}

ptxgen_status ptxgen_sparse24_reference(const ptxgen_sparse24_plan *plan,
                                        const ptxgen_sparse24_operands *operands, double *y,
                                        double *bound, ptxgen_error *err)
{
    return ptxgen_sparse24_reference_spread(plan, operands, y, bound, NULL, err);
}

ptxgen_status ptxgen_sparse24_reference_spread(const ptxgen_sparse24_plan *plan,
                                               const ptxgen_sparse24_operands *operands, double *y,
                                               double *bound, ptxgen_spread *spread,
                                               ptxgen_error *err)
{
    if (!sparse24_is_plan(plan) || !operands || (operands->m && (!y || !bound)))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: a plan that was made, operands, y and bound must be given");
    ptxgen_status status = check(plan, operands, err);
    if (status != PTXGEN_OK)
        return status;
    if (sparse24_tier(&plan->spec) == 1)
        return dense_reference(plan, operands, y, bound, spread, err);
    const ptxgen_sparse24_spec *s = &plan->spec;
    const ptxgen_tile *v = ptxgen_sparse24_choose(plan, operands->m ? operands->m : 1);
    const ptxgen_activation activation = (ptxgen_activation)s->activation;
    const bool scaled = sparse24_is_s8(s), rough = linear_activation_error(activation) > 0;
    const struct linear_product product = {
        .family = "sparse24",
        .m = operands->m,
        .n = s->n,
        .k = s->k,
        .terms = s->k / 2,
        .has_codes = scaled,
        .type = (ptxgen_element)s->type,
        .x = operands->x,
        .bias = s->bias ? operands->bias : NULL,
        .residual = s->residual ? operands->residual : NULL,
        .x_stride = operands->x_stride,
        .residual_stride = operands->residual_stride,
        .activation = activation,
        .y_type = (ptxgen_element)s->y_type,
        .depth = depth_of(s, v),
        .cuts = {plan->target.ptx.sm >= 90 ? 1 : 2, WALK_TERMS},
        .warps = 1,
        .steps = 1,
        .load_feature = load_feature,
        .scale = scaled ? scale : NULL,
        .finish = scaled && !rough ? finish : NULL,
        .user =
            &(const struct problem){
                s, operands, {sparse24_shape(s), operands->form, operands->metadata.data}},
    };
    return linear_product_reference(&product, y, bound, spread, err);
}
