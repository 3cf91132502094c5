/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound, for f32 arithmetic with u = 2⁻²⁴ and no flush to zero (Higham, Accuracy and Stability
 * of Numerical Algorithms, ch. 2–3: n roundings make 1+θ with |θ| ≤ g(n) = nu/(1−nu)).
 *
 * Sum. Each term has one rounding as a product, at most `depth` more roundings by additions, and
 * product_error; each product and each sum of tensor cores may lose 2⁻¹⁴⁹ to underflow:
 *
 *     E = (g(depth + 1) + product_error)·T + (terms + depth)·2⁻¹⁴⁹      T = Σ|x·w|
 *
 * plus 22·2⁻²⁴ of the floor for each 16 terms, where there is a floor: tensor cores align products
 * by the exponents of the operands, and a subnormal f16 has the exponent of 2⁻¹⁴.
 *
 * Epilogue. An addition that gives v: E ← E + u·(|v| + E). An activation of Lipschitz constant L:
 * E ← L·E + activation_error·(|v| + E). A store as f16 or bf16: E ← E + half a unit at |y| + E.
 *
 * The error of the reference itself, g₅₃(terms + 16)·(T + |bias| + |residual|), is added.
 *
 * The spread (ptxgen/accuracy.h) counts the same roundings as independent ones: those of a sum as
 * in walk.h, and product_variance·Σ(x·w)², for which Σ M_j² is used. Underflow and the reference's
 * own error widen the interval. A bias adds the variance of a rounding; activations are treated in
 * spread.h.
 */
#include "linear.h"

#include "activation.h"
#include "bound.h"
#include "half.h"

#include <float.h>
#include <math.h>

static const double unit_f32 = 0x1p-24, unit_f64 = 0x1p-53;
static const double underflow = 0x1p-149;
static const double bound_slack = 1 + 0x1p-30; /* for computing the bound itself in doubles */
enum { REFERENCE_ROUNDINGS = 16, CUTS = 22 /* of 16 terms: two products of 8, 8 + 3 each */ };

struct linear_estimate linear_add_up(const struct linear_sum *how, double sum, double magnitude,
                                     const struct walk *walk, double floor)
{
    double g = ptxgen_bound_factor(how->depth + 1, unit_f32) + how->product_error;
    double steps = ceil(how->terms / WALK_TERMS);
    double lost = (how->terms + how->depth) * underflow, cut = CUTS * steps * unit_f32 * floor;
    struct walk raised = *walk;
    if (floor > 0 && magnitude > 0)
        walk_raise(&raised, steps, floor, sum / magnitude);
    bool in_range = magnitude * (1 + g) <= FLT_MAX;
    struct linear_estimate e = {.value = sum,
                                .error = in_range ? g * magnitude + lost + cut : NAN,
                                .magnitude = magnitude,
                                .spread = walk_spread(&raised, &how->cuts)};
    e.spread.variance += how->product_variance * raised.squares;
    spread_widen(&e.spread, lost);
    return e;
}

/* ---- one output ---- */

static void add(struct linear_estimate *e, double addend)
{
    e->value += addend;
    e->error += unit_f32 * (fabs(e->value) + e->error);
    e->magnitude += fabs(addend);
    e->spread.variance += spread_of_rounding(e->value * e->value);
}

/* Makes the bound NaN where f32 might not hold the value, so that no statement is made. */
static void require_range(struct linear_estimate *e)
{
    if (!(fabs(e->value) + e->error <= FLT_MAX))
        e->error = NAN;
}

static void activate(const struct linear_output *how, struct linear_estimate *e)
{
    if (how->activation == PTXGEN_ACTIVATION_NONE)
        return;
    require_range(e);
    const struct activation *activation = activation_named(how->activation);
    if (how->activation != PTXGEN_ACTIVATION_RELU) /* which leaves the spread as it is */
        spread_activate(&e->spread, activation, e->value, how->activation_error * fabs(e->value));
    double rough = how->activation_error * (fabs(e->value) + e->error);
    e->value = activation->of(e->value);
    e->error = activation->steepest * e->error + rough;
}

/* Adds the residual, and rounds to y's type. */
static struct linear_result settle(const struct linear_output *how, struct linear_estimate e,
                                   const double *residual, bool promised)
{
    struct linear_result r = {.y = e.value, .spread.deviation = NAN};
    if (residual) {
        require_range(&e);
        if (!isfinite(*residual)) {
            r.y = e.value + *residual;
            r.bound = isnan(e.error) || !promised ? NAN : 0;
            return r;
        }
        add(&e, *residual);
    }
    double own = ptxgen_bound_factor(how->terms + REFERENCE_ROUNDINGS, unit_f64) * e.magnitude;
    e.error += own;
    if (how->type != PTXGEN_F32)
        e.error += ptxgen_element_half_ulp(how->type, fabs(e.value) + e.error);
    r.y = e.value;
    r.bound = promised ? e.error * bound_slack : NAN;
    spread_widen(&e.spread, own);
    r.spread = spread_result(&e.spread);
    ptxgen_bound_settle(how->type, &r.y, &r.bound);
    return r;
}

struct linear_result linear_finish(const struct linear_output *how, struct linear_estimate e,
                                   const float *bias, const double *residual, bool promised)
{
    if (isnan(e.value))
        return (struct linear_result){.y = e.value, .spread.deviation = NAN};
    if (bias)
        add(&e, *bias);
    activate(how, &e);
    return settle(how, e, residual, promised);
}

/* A product a·b with errors A and B is off by A|b| + B|a| + AB, and then rounded. */
static struct linear_estimate multiply(struct linear_estimate a, struct linear_estimate b)
{
    double value = a.value * b.value;
    double error = a.error * fabs(b.value) + b.error * fabs(a.value) + a.error * b.error;
    double magnitude = a.magnitude * fabs(b.value) + b.magnitude * fabs(a.value);
    return (struct linear_estimate){
        .value = value,
        .error = error + unit_f32 * (fabs(value) + error) + underflow,
        .magnitude = 2 * magnitude, /* the activation may be steeper than 1 */
        .spread = spread_multiply(&a.spread, a.value, &b.spread, b.value)};
}

struct linear_result linear_finish_pair(const struct linear_output *how,
                                        struct linear_estimate gate, const float *bias,
                                        struct linear_estimate up, const float *up_bias,
                                        const double *residual, bool promised)
{
    if (isnan(gate.value) || isnan(up.value))
        return (struct linear_result){.y = NAN, .spread.deviation = NAN};
    if (bias) {
        add(&gate, *bias);
        add(&up, *up_bias);
    }
    activate(how, &gate);
    require_range(&up);
    return settle(how, multiply(gate, up), residual, promised);
}
