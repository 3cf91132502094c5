/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound, for f32 arithmetic with u = 2⁻²⁴ and no flush to zero (Higham, Accuracy and Stability
 * of Numerical Algorithms, ch. 2–3: n roundings make 1+θ with |θ| ≤ g(n) = nu/(1−nu)).
 *
 * Sum. Each term takes one rounding as a product, at most `depth` more as additions, and what
 * product_error allows; each product and each sum of tensor cores may lose 2⁻¹⁴⁹ to underflow:
 *
 *     E = (g(depth + 1) + product_error)·T + (terms + depth)·2⁻¹⁴⁹      T = Σ|x·w|
 *
 * Epilogue. An addition that gives v: E ← E + u·(|v| + E). An activation of Lipschitz constant L:
 * E ← L·E + activation_error·(|v| + E). A store as f16 or bf16: E ← E + half a unit at |y| + E.
 *
 * The reference itself errs by g₅₃(terms + 16)·(T + |bias| + |residual|), which is added.
 *
 * The spread counts the same roundings as independent ones (ptxgen/accuracy.h; walk.h for M_j, up_j
 * and down_j). One to nearest, in a unit of 2⁻²³ of at most |v|, has no mean and a variance of
 * (2⁻²³·v)²/12. Tensor cores cut, toward zero:
 *
 * - A sum, cut_sums times a step, loses 0 to 2⁻²³ of it: 2⁻²⁴ of it on average, at most, with that
 *   variance. It has the sign of the partial sum, so the kernel's sum is on average lower by no
 *   more than 2⁻²⁴·cut_sums·Σ up_j, and higher by 2⁻²⁴·cut_sums·Σ down_j.
 * - A product, cut_products in a step, loses 0 to 2⁻²⁴ of M_j; its mean square is a third of
 *   2⁻⁴⁸·M_j². Products of both signs lose nothing on average; else half of 2⁻²⁴·M_j of each that
 *   has no partner of the other sign, the share of which is (Σ x·w)/(Σ|x·w|).
 *
 * One more rounding a step, to nearest, is for partial sums that are brought together. In all
 *
 *     variance = 2⁻⁴⁸/3·(cut_sums + cut_products + 1)·Σ M_j² + product_variance·Σ(x·w)²
 *     below = 2⁻²⁴·cut_sums·Σ up_j + 2⁻²⁵·cut_products·max(drift, 0)
 *     above = 2⁻²⁴·cut_sums·Σ down_j + 2⁻²⁵·cut_products·max(−drift, 0)
 *
 * where Σ M_j² stands for Σ(x·w)² too. Both means are for partial sums and cuts that are anywhere
 * in their units of 2⁻²³; what underflows and the reference's own error widen them. A
 * bias adds a rounding, an activation takes the three numbers where it takes their ends.
 */
#include "linear.h"

#include "bound.h"
#include "half.h"

#include <float.h>
#include <math.h>

static const double unit_f32 = 0x1p-24, unit_f64 = 0x1p-53;
static const double underflow = 0x1p-149;
static const double bound_slack = 1 + 0x1p-30; /* for computing the bound itself in doubles */
enum { REFERENCE_ROUNDINGS = 16 };

/* Of a rounding to nearest, or of what a cut leaves open, at so many squares of values. */
static double variance_of(double squares)
{
    return squares * unit_f32 * unit_f32 / 3;
}

struct linear_estimate linear_add_up(const struct linear_sum *how, double sum, double magnitude,
                                     const struct walk *walk)
{
    double g = ptxgen_bound_factor(how->depth + 1, unit_f32) + how->product_error;
    double lost = (how->terms + how->depth) * underflow;
    bool in_range = magnitude * (1 + g) <= FLT_MAX;
    double cut = unit_f32 * how->cut_sums, drift = unit_f32 / 2 * how->cut_products * walk->drift;
    return (struct linear_estimate){
        .value = sum,
        .error = in_range ? g * magnitude + lost : NAN,
        .magnitude = magnitude,
        .below = cut * walk->up + fmax(drift, 0) + lost,
        .above = cut * walk->down + fmax(-drift, 0) + lost,
        .variance = (how->cut_sums + how->cut_products + 1) * variance_of(walk->squares) +
                    how->product_variance * walk->squares,
    };
}

/* ---- activations ---- */

static double relu(double v)
{
    return v < 0 ? 0 : v;
}

static double silu(double v)
{
    return v / (1 + exp(-v));
}

static double gelu(double v)
{
    return 0.5 * v * erfc(-v * 0.70710678118654752440);
}

/* (1 + tanh z)/2 = 1/(1 + e^(−2z)), which does not cancel where z is very negative. */
static double gelu_tanh(double v)
{
    return v / (1 + exp(-2 * 0.79788456080286535588 * (v + 0.044715 * v * v * v)));
}

static const struct {
    double (*of)(double v);
    double lipschitz; /* at least the largest slope */
} activations[] = {
    [PTXGEN_ACTIVATION_SILU] = {silu, 1.1},
    [PTXGEN_ACTIVATION_GELU] = {gelu, 1.13},
    [PTXGEN_ACTIVATION_GELU_TANH] = {gelu_tanh, 1.13},
    [PTXGEN_ACTIVATION_RELU] = {relu, 1},
};

/* ---- one output ---- */

static void add(struct linear_estimate *e, double addend)
{
    e->value += addend;
    e->error += unit_f32 * (fabs(e->value) + e->error);
    e->magnitude += fabs(addend);
    e->variance += variance_of(e->value * e->value);
}

/* Nothing is promised of what follows a value that f32 might not hold. */
static void require_range(struct linear_estimate *e)
{
    if (!(fabs(e->value) + e->error <= FLT_MAX))
        e->error = NAN;
}

/* The spread of of(v): ReLU keeps it, of the others the slope near v is that of all of it. */
static void activate_spread(const struct linear_output *how, struct linear_estimate *e)
{
    if (how->activation == PTXGEN_ACTIVATION_RELU)
        return;
    double (*of)(double v) = activations[how->activation].of;
    double v = e->value, y = of(v), deviation = sqrt(e->variance);
    double low = of(v - e->below) - y, high = of(v + e->above) - y;
    double steps = fmax(fabs(of(v + deviation) - y), fabs(of(v - deviation) - y));
    double rough = how->activation_error * fabs(v);
    e->below = fmax(-fmin(low, high), 0) + rough;
    e->above = fmax(fmax(low, high), 0) + rough;
    e->variance = steps * steps + variance_of(y * y);
}

static void activate(const struct linear_output *how, struct linear_estimate *e)
{
    if (how->activation == PTXGEN_ACTIVATION_NONE)
        return;
    require_range(e);
    activate_spread(how, e);
    double rough = how->activation_error * (fabs(e->value) + e->error);
    e->value = activations[how->activation].of(e->value);
    e->error = activations[how->activation].lipschitz * e->error + rough;
}

struct linear_result linear_finish(const struct linear_output *how, struct linear_estimate e,
                                   const float *bias, const double *residual, bool promised)
{
    struct linear_result r = {.y = e.value, .spread.deviation = NAN};
    if (isnan(e.value))
        return r;
    if (bias)
        add(&e, *bias);
    activate(how, &e);
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
    r.spread = (ptxgen_spread){e.below + own, e.above + own, sqrt(e.variance)};
    ptxgen_bound_settle(how->type, &r.y, &r.bound);
    return r;
}
