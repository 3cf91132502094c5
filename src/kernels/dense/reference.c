/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference: y and its bound by linear_product.h, with the parameters of the variant that
 * serves this M.
 *
 * f32: x = h + l exactly, where h is the nearest tf32, so |l| ≤ 2⁻¹¹|x|. The tensor core takes 11
 * bits of l, which are l'; l has at most 12 bits, so |l − l'| ≤ 2⁻²³|x|. The kernel adds h·h' +
 * h·l' + l'·h'. Missing from x·w are l'·l', below 2⁻²²|x·w|, and twice a product with the rest l −
 * l', below 2⁻²³|x·w| each; so product_error is 2⁻²¹, plus a little for products of small errors.
 * Below 2⁻¹²⁶ tf32 has units of 2⁻¹³⁶, of which each operand may lose one.
 *
 * The spread: l is uniform within 2⁻¹¹|x| and l − l' within 2⁻²³|x|, so l·l' has a mean square of
 * 2⁻⁴⁴/9, and each of the two products with l − l' one of 2⁻⁴⁶/3: together product_variance. Tensor
 * cores cut f32 sums so often that a constant factor with an error below 2⁻²⁴·cuts·K/16 (2⁻¹⁰ for
 * K = 16384 before sm_90) is not noticed; errors of both signs are.
 */
#include "layout.h"

#include "../half.h"
#include "../linear_product.h"

static const double split_error = 0x1p-21 * (1 + 0x1p-9), split_unit = 0x1p-136;
static const double split_variance = 0x1p-44 / 9 + 2 * 0x1p-46 / 3;
static const double largest_split = 0x1p128 - 0x1p116; /* from there on a tf32 would be infinite */

/*
 * The number of additions for which an mma step counts: m16n8k16 may be two products of 8 terms,
 * which count 8 + 3 each; f32 has three m16n8k8, each of which may be two products of 4 terms.
 */
enum { MMA_DEPTH = 22, SPLIT_DEPTH = 42 };

/*
 * A tensor core cuts a sum of WALK_TERMS terms (m16n8k16) once, before sm_90 twice; for f32 it cuts
 * each of the three products of m16n8k8 once, before sm_90 twice.
 */
static struct walk_cuts cuts_of(const ptxgen_dense_plan *plan)
{
    double each = plan->target.ptx.sm >= 90 ? 1 : 2;
    if (plan->spec.type == PTXGEN_F32)
        return (struct walk_cuts){3 * 2 * each, 3 * WALK_TERMS};
    return (struct walk_cuts){each, WALK_TERMS};
}

/*
 * The most additions that a term passes on its way into a sum: the mma steps of a warp along K,
 * then the warps along K, then the CTAs that share the tile, of which there is at most one for each
 * stage.
 */
double dense_sum_depth(const ptxgen_dense_spec *s, const ptxgen_tile *v)
{
    double stages = dense_stages_along_k(s, v);
    double steps = stages * DENSE_STEPS, parts = v->wk * v->split;
    return (s->type == PTXGEN_F32 ? SPLIT_DEPTH : MMA_DEPTH) * steps + parts - 1 + stages - 1;
}

double dense_product_error(const ptxgen_dense_spec *s)
{
    return s->type == PTXGEN_F32 ? split_error : 0;
}

/* ---- the problem ---- */

struct weights {
    const ptxgen_dense_spec *spec;
    const ptxgen_dense_operands *o;
};

static void load_feature(const void *user, uint32_t n, double *weights, uint32_t *columns)
{
    const struct weights *w = user;
    const ptxgen_dense_spec *s = w->spec;
    uint64_t stride = w->o->w_stride ? w->o->w_stride : s->k;
    (void)columns;
    ptxgen_elements_load((ptxgen_element)s->type, w->o->w, n * stride, s->k, weights, 1);
}

static ptxgen_status check(const ptxgen_dense_plan *plan, const ptxgen_dense_operands *o,
                           ptxgen_error *err)
{
    const ptxgen_dense_spec *s = &plan->spec;
    const struct linear_array arrays[] = {
        {"x", o->x, o->m, o->x_stride, s->k},
        {"w", o->w, true, o->w_stride, s->k},
        {"bias", o->bias, s->bias, 0, 0},
        {"residual", o->residual, s->residual && o->m, o->residual_stride, s->n}};
    ptxgen_status status =
        linear_check_arrays("dense", arrays, sizeof arrays / sizeof *arrays, err);
    if (status == PTXGEN_OK && o->m && !ptxgen_dense_choose(plan, o->m))
        return gemm_refuse_m(&dense_planner, plan, o->m, err);
    return status;
}

ptxgen_status ptxgen_dense_reference(const ptxgen_dense_plan *plan,
                                     const ptxgen_dense_operands *operands, double *y,
                                     double *bound, ptxgen_error *err)
{
    return ptxgen_dense_reference_spread(plan, operands, y, bound, NULL, err);
}

ptxgen_status ptxgen_dense_reference_spread(const ptxgen_dense_plan *plan,
                                            const ptxgen_dense_operands *operands, double *y,
                                            double *bound, ptxgen_spread *spread, ptxgen_error *err)
{
    if (!dense_is_plan(plan) || !operands || (operands->m && (!y || !bound)))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: a plan that was made, operands, y and bound must be given");
    ptxgen_status status = check(plan, operands, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_dense_spec *s = &plan->spec;
    const ptxgen_tile *v = ptxgen_dense_choose(plan, operands->m ? operands->m : 1);
    const bool splits = s->type == PTXGEN_F32;
    const struct linear_product product = {
        .family = "dense",
        .m = operands->m,
        .n = s->n,
        .k = s->k,
        .terms = s->k,
        .type = (ptxgen_element)s->type,
        .x = operands->x,
        .bias = s->bias ? operands->bias : NULL,
        .residual = s->residual ? operands->residual : NULL,
        .x_stride = operands->x_stride,
        .residual_stride = operands->residual_stride,
        .activation = (ptxgen_activation)s->activation,
        .y_type = (ptxgen_element)s->type,
        .depth = dense_sum_depth(s, v),
        .product_error = splits ? split_error : 0,
        .product_variance = splits ? split_variance : 0,
        .cuts = cuts_of(plan),
        .warps = v->wk,
        .steps = DENSE_BLOCK_BYTES / dense_element(s) / WALK_TERMS,
        .load_feature = load_feature,
        .split_unit = splits ? split_unit : 0,
        .largest_split = splits ? largest_split : 0,
        .user = &(const struct weights){s, operands},
    };
    return linear_product_reference(&product, y, bound, spread, err);
}
