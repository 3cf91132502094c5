/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference of a plan: how the kernel sums, which features of which matrix, and SwiGLU.
 *
 * SwiGLU, y = s(g)·u with s(x) = x/(1 + e⁻ˣ), from a gate g and an up u that are within E_g and
 * E_u of the exact ones (the bounds of plain f32 outputs). |s'| < 1.1. The kernel's
 *     p = −log2(e)·g      within 2⁻²³·|p|: the constant's rounding and the product's
 *     e = 2^p             within 2⁻²²·e + the effect of p, |p|·ln 2·2⁻²³·e
 *     s = g / (1 + e)     two roundings
 * gives with |p|·ln 2 = |g|
 *     E_s = 1.1·E_g + |s|·(2⁻²² + |g|·2⁻²³ + 2⁻²³) + 2⁻¹¹⁸
 * where the last term is e's overflow, past which s is 0 instead of less than 2⁻¹¹⁸. Then
 *     E_y = |s|·E_u + E_s·(|u| + E_u) + 2⁻²⁴·(|y| + …) and the rounding to y's type.
 */
#include "../activation.h"
#include "../bound.h"
#include "../spread.h"
#include "layout.h"
#include "reference.h"

#include <math.h>
#include <stdlib.h>

/*
 * The depth of reference.h for this kernel. The products of a super-block are exact integers; their
 * conversion and the sum of both count 2. The mins are deeper: the 8 values of a lane, the 4 lanes
 * of a quad, the 8 sub-blocks in the tensor core (counted as reference.h says), and the sum of hi
 * and lo. Then come two fma for each of the warp's super-blocks, the sum over planes, and the sums
 * of the other warps.
 */
static unsigned dot_depth(const ptxgen_rmsnorm_q4k_variant *v, const ptxgen_rmsnorm_q4k_spec *spec)
{
    enum { LANE_TREE = 3, QUAD_TREE = 2, TENSOR_CORE = 8 + 3, JOIN = 1 };
    unsigned planes_join = v->tile_m == 1 ? 2 : 1;
    return LANE_TREE + QUAD_TREE + TENSOR_CORE + JOIN + 2 * PAIR * steps(spec, v->wk) +
           planes_join + v->wk - 1;
}

static unsigned square_depth(const ptxgen_rmsnorm_q4k_spec *spec)
{
    enum { LANE = 8, LANE_TREE = 5, GROUPS = 8, GROUP_TREE = 3 };
    return LANE + LANE_TREE + (super_blocks(spec) + GROUPS - 1) / GROUPS + GROUP_TREE;
}

/*
 * h·γ is fixed point, with the super-block's largest in [2²⁹, 2³⁰): rounding to integers loses 2⁻³⁰
 * of the largest. The upper planes of the integer are summed separately. Each of these sums rounds
 * relative to the 2²³ of plane 2, or to 2²³ more than the integer: 2⁻⁶·2⁻²⁴ of the largest, twice.
 * Sums with the lower planes round relative to 2¹⁵; up to 2⁹ such roundings stay below the same.
 */
static const double operand_floor = 0x1p-28;
/* The power of two is no smaller than for this largest, so that its inverse is a normal number. */
static const double operand_least = 0x1p-96;
/*
 * d·2^e/16 is rounded at 2⁻¹⁵⁰ when it underflows, and multiplied by at most 16·Σ sc·q·i ≤
 * 16·256·945·2³⁰. The mins lose less.
 */
static const double block_loss = 0x1p-97;

static struct rmsnorm_q4k_problem problem_of(const ptxgen_rmsnorm_q4k_plan *plan,
                                             const ptxgen_rmsnorm_q4k_operands *o)
{
    const ptxgen_rmsnorm_q4k_spec *s = &plan->spec;
    const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(plan, o->m ? o->m : 1);
    return (struct rmsnorm_q4k_problem){
        .m = o->m,
        .k = s->k,
        .x_type = (ptxgen_element)s->x_type,
        .y_type = (ptxgen_element)s->y_type,
        .x = o->x,
        .x_stride = o->x_stride ? o->x_stride : s->k,
        .residual = s->residual ? o->residual : NULL,
        .residual_stride = o->residual_stride ? o->residual_stride : s->k,
        .sum_stride = s->k,
        .gamma = o->gamma,
        .eps = s->epsilon,
        .dot_depth = dot_depth(v, s),
        .square_depth = square_depth(s),
        .operand_floor = operand_floor,
        .operand_least = operand_least,
        .block_loss = block_loss,
    };
}

static void select_rows(struct rmsnorm_q4k_problem *p, const ptxgen_rmsnorm_q4k_plan *plan,
                        const ptxgen_rmsnorm_q4k_operands *o, uint32_t matrix, uint32_t first_n,
                        uint32_t count)
{
    size_t row_bytes = (size_t)super_blocks(&plan->spec) * SUPER_BLOCK_BYTES;
    const unsigned char *w = o->w[matrix]; /* may be NULL where no features are asked for */
    const float *bias = plan->spec.bias ? o->bias[matrix] : NULL;
    p->n = count;
    p->w = w ? w + first_n * row_bytes : NULL;
    p->bias = bias ? bias + first_n : NULL;
}

static struct spread spread_of(const ptxgen_spread *s)
{
    return (struct spread){s->below, s->above, s->deviation * s->deviation};
}

/* `to` holds the results of up, and receives the outputs. */
static void apply_swiglu(ptxgen_element y_type, size_t count,
                         const struct rmsnorm_q4k_results *gate,
                         const struct rmsnorm_q4k_results *to)
{
    const struct activation *silu = activation_named(PTXGEN_ACTIVATION_SILU);
    double *y = to->y, *bound = to->bound;
    for (size_t i = 0; i < count; i++) {
        double g = gate->y[i], up = y[i], up_bound = bound[i];
        double s = silu->of(g);
        double rough = fabs(s) * (0x1p-22 + fabs(g) * 0x1p-23 + 0x1p-23) + 0x1p-118;
        double s_bound = silu->steepest * gate->bound[i] + rough;
        struct spread s_spread = spread_of(&gate->spread[i]), up_spread = spread_of(&to->spread[i]);
        spread_activate(&s_spread, silu, g, rough);
        const struct spread product = spread_multiply(&s_spread, s, &up_spread, up);
        to->spread[i] = spread_result(&product);
        y[i] = s * up;
        double e = fabs(s) * up_bound + s_bound * (fabs(up) + up_bound);
        e += 0x1p-24 * (fabs(y[i]) + e) + 0x1p-149;
        if (y_type != PTXGEN_F32)
            e += ptxgen_element_half_ulp(y_type, fabs(y[i]) + e);
        bound[i] = e;
        ptxgen_bound_settle(y_type, &y[i], &bound[i]);
    }
}

static ptxgen_status swiglu(struct rmsnorm_q4k_problem *p, const ptxgen_rmsnorm_q4k_plan *plan,
                            const ptxgen_rmsnorm_q4k_operands *o, uint32_t first_n, uint32_t count,
                            const struct rmsnorm_q4k_results *to, ptxgen_error *err)
{
    size_t all = (size_t)o->m * count;
    double *memory = calloc(3 * all + 1, sizeof *memory);
    ptxgen_spread *spreads = calloc(2 * all + 1, sizeof *spreads);
    const struct rmsnorm_q4k_results gate = {memory, memory + all, spreads};
    const struct rmsnorm_q4k_results up = {to->y, to->bound ? to->bound : memory + 2 * all,
                                           to->spread ? to->spread : spreads + all};
    if (!memory || !spreads) {
        free(memory);
        free(spreads);
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                           "rmsnorm_q4k: no memory for %zu outputs", all);
    }
    p->y_type = PTXGEN_F32;
    ptxgen_status status = rmsnorm_q4k_reference(p, &gate, err);
    select_rows(p, plan, o, 1, first_n, count);
    p->sum = NULL;
    if (status == PTXGEN_OK)
        status = rmsnorm_q4k_reference(p, &up, err);
    if (status == PTXGEN_OK)
        apply_swiglu((ptxgen_element)plan->spec.y_type, all, &gate, &up);
    free(memory);
    free(spreads);
    return status;
}

static ptxgen_status check(const ptxgen_rmsnorm_q4k_plan *plan,
                           const ptxgen_rmsnorm_q4k_operands *o, uint32_t matrix, uint32_t first_n,
                           uint32_t count, ptxgen_error *err)
{
    const ptxgen_rmsnorm_q4k_spec *s = &plan->spec;
    uint32_t gated = is_gated(s);
    if (matrix >= (gated ? 1 : PTXGEN_RMSNORM_Q4K_MATRICES) || first_n > s->n[matrix] ||
        count > s->n[matrix] - first_n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "rmsnorm_q4k: the plan has no features %u to %llu of output %u", first_n,
                           (unsigned long long)first_n + count, matrix);
    if (o->m && !ptxgen_rmsnorm_q4k_choose(plan, o->m))
        return rmsnorm_q4k_refuse_m(plan, o->m, err);
    if (!o->gamma || (o->m && (!o->x || (s->residual && !o->residual))))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "rmsnorm_q4k: %s is NULL",
                           !o->gamma ? "gamma"
                           : !o->x   ? "x"
                                     : "residual");
    for (uint32_t i = matrix; i <= matrix + gated; i++)
        if (count && (!o->w[i] || (s->bias && !o->bias[i])))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "rmsnorm_q4k: %s[%u] is NULL",
                               !o->w[i] ? "w" : "bias", i);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_rmsnorm_q4k_reference(const ptxgen_rmsnorm_q4k_plan *plan,
                                           const ptxgen_rmsnorm_q4k_operands *operands,
                                           uint32_t matrix, uint32_t first_n, uint32_t count,
                                           double *y, double *bound, void *sum, ptxgen_error *err)
{
    return ptxgen_rmsnorm_q4k_reference_spread(plan, operands, matrix, first_n, count, y, bound,
                                               NULL, sum, err);
}

ptxgen_status ptxgen_rmsnorm_q4k_reference_spread(const ptxgen_rmsnorm_q4k_plan *plan,
                                                  const ptxgen_rmsnorm_q4k_operands *operands,
                                                  uint32_t matrix, uint32_t first_n, uint32_t count,
                                                  double *y, double *bound, ptxgen_spread *spread,
                                                  void *sum, ptxgen_error *err)
{
    if (!rmsnorm_q4k_is_plan(plan) || !operands || (operands->m && count && !y))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "rmsnorm_q4k: a plan that was made, operands and y must be given");
    ptxgen_status status = check(plan, operands, matrix, first_n, count, err);
    if (status != PTXGEN_OK)
        return status;
    struct rmsnorm_q4k_problem p = problem_of(plan, operands);
    p.sum = sum;
    select_rows(&p, plan, operands, matrix, first_n, count);
    const struct rmsnorm_q4k_results results = {y, bound, spread};
    if (is_gated(&plan->spec))
        return swiglu(&p, plan, operands, first_n, count, &results, err);
    return rmsnorm_q4k_reference(&p, &results, err);
}

bool ptxgen_rmsnorm_q4k_agrees(double output, double y, double bound)
{
    return ptxgen_bound_agrees(output, y, bound);
}
