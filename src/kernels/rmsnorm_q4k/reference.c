/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound, for a kernel that computes in f32 (u = 2⁻²⁴, round to nearest, no flush to zero) in
 * any order that respects the two depths. It uses two standard facts (Higham, Accuracy and
 * Stability of Numerical Algorithms, ch. 2–3): an operation's result is exact·(1+δ) + η with
 * |δ| ≤ u and, for products that underflow, |η| ≤ 2⁻¹⁵⁰ (sums have no η); and a product of n
 * factors (1+δ)^±1 is 1+θ with |θ| ≤ g(n) = nu/(1−nu).
 *
 * Dot product. With t = x·γ, an output is S = Σ (d·sc)·q·t − (dmin·m)·t. d·sc and dmin·m are
 * exact in f32 (17 bits). A kernel may sum the two parts apart, Σ_j d·sc·(Σ q·t) − dmin·m·(Σ t),
 * so that each is rounded at its own size before they cancel. Each term passes through at most
 * three products (x·γ, ·q, ·scale; a kernel that decodes w = d·sc·q − dmin·m first has one
 * rounding there, relative to |w| ≤ |d·sc·q| + |dmin·m|) and dot_depth additions:
 *
 *     |Ŝ − S| ≤ g(dot_depth + 3)·T + U      T = Σ |d·sc·q·t| + |dmin·m·t|
 *     U = 2⁻¹⁵⁰·(Σ |d·sc·q| + |dmin·m|  +  2K)·(1 + g)
 *
 * where U is underflow: of t, scaled by its weight, and of the products with a scale.
 *
 * Norm. v = Σx²/K + ε is a sum of terms of one sign: square, square_depth additions, 1/K and its
 * product, + ε make v̂ = v·(1+θ), |θ| ≤ g(square_depth + 4), plus underflow of at most 2⁻¹⁴⁹. The
 * root halves that, and rsqrt.approx.f32 adds 2^-22.9 (PTX ISA): with τ = g + 2⁻¹⁴⁹/v,
 *
 *     ρ̂ = ρ·(1+β)      |β| ≤ (1 − τ)^(-1/2)·(1 + 2^-22.9) − 1
 *
 * Product z = S·ρ, taken after the sum, has one rounding:
 *
 *     |ẑ − z| ≤ ρ·(1+β)(1+u)·(g·T + U) + |z|·((1+β)(1+u) − 1) + 2⁻¹⁵⁰      =: E
 *
 * Bias: E ← E·(1+u) + u·|y|, one addition. Storing as f16 or bf16: E ← E + half a unit in the last
 * place at |y| + E. An f32 output was already rounded by the last operation.
 *
 * The reference itself errs by at most K + 4 roundings of 2⁻⁵³ in S and K + 8 in z, which is
 * added; its squares, products with γ and weights are exact or within those counts.
 */
#include "reference.h"

#include "q4k.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DOT_PRODUCTS = 3, NORM_ROUNDINGS = 4 };
static const double unit_f32 = 0x1p-24, unit_f64 = 0x1p-53;
static const double underflow = 0x1p-150;
static const double rsqrt_error = 0x1.125fbee25067p-23; /* 2^-22.9 */
static const double bound_slack = 1 + 0x1p-30; /* for computing the bound itself in doubles */

/* g(n) */
static double rounding_factor(double n, double unit)
{
    return n * unit < 1 ? n * unit / (1 - n * unit) : INFINITY;
}

/* A token's t = x·γ, its ρ, and what the bound needs of them. */
struct token {
    double *t;
    double rho;  /* NaN for a row whose outputs are NaN */
    double beta; /* relative error of the kernel's ρ; infinite where Σx² could overflow */
    double sum_abs_t;
};

/* What one output's terms add up to. */
struct dot {
    double sum; /* S */
    double abs; /* T */
};

static ptxgen_status check_finite(const char *what, const float *values, size_t count,
                                  ptxgen_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s[%zu] is %g, not finite",
                               what, i, (double)values[i]);
    return PTXGEN_OK;
}

static ptxgen_status check_weights(const struct rmsnorm_q4k_problem *p, size_t row_bytes,
                                   ptxgen_error *err)
{
    const uint8_t *w = p->w;
    for (size_t n = 0; n < p->n; n++)
        for (size_t b = 0; b < row_bytes; b += PTXGEN_Q4K_BLOCK_BYTES) {
            struct q4k_block block;
            q4k_unpack(w + n * row_bytes + b, &block);
            if (!isfinite(ptxgen_f16_to_f32(block.d)) || !isfinite(ptxgen_f16_to_f32(block.dmin)))
                return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                                   "row %zu of W has a super-block (%zu) whose scale or minimum "
                                   "is not finite",
                                   n, b / PTXGEN_Q4K_BLOCK_BYTES);
        }
    return PTXGEN_OK;
}

static ptxgen_status check_stride(const char *what, const void *array, size_t stride, size_t k,
                                  ptxgen_error *err)
{
    if (!array || stride >= k)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s = %zu is less than K = %zu", what,
                       stride, k);
}

static ptxgen_status check(const struct rmsnorm_q4k_problem *p, size_t row_bytes, ptxgen_error *err)
{
    ptxgen_status status;
    if (p->k == 0)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "K is 0; the mean has no terms");
    if (!isfinite(p->eps) || p->eps < 0)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "epsilon is %g; it must be finite and at least 0", (double)p->eps);
    if (!p->gamma || (p->m > 0 && !p->x) || (p->n > 0 && !p->w))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is NULL",
                           !p->gamma           ? "gamma"
                           : p->m > 0 && !p->x ? "x"
                                               : "w");
    if ((status = check_stride("ldx", p->x, p->ldx, p->k, err)) != PTXGEN_OK ||
        (status = check_stride("ldr", p->residual, p->ldr, p->k, err)) != PTXGEN_OK ||
        (status = check_stride("lds", p->sum, p->lds, p->k, err)) != PTXGEN_OK ||
        (status = check_finite("gamma", p->gamma, p->k, err)) != PTXGEN_OK ||
        (p->bias && (status = check_finite("bias", p->bias, p->n, err)) != PTXGEN_OK))
        return status;
    return check_weights(p, row_bytes, err);
}

/*
 * x + r in double and then rounded equals the same in f32 or the type itself: a sum of two numbers
 * of p bits rounds to p bits as if once through any format of 2p + 2 bits or more.
 */
static double residual_sum(const struct rmsnorm_q4k_problem *p, size_t m, size_t k)
{
    double x = ptxgen_float_load(p->x_type, p->x, m * p->ldx + k);
    if (p->residual) {
        double r = ptxgen_float_load(p->x_type, p->residual, m * p->ldr + k);
        x = ptxgen_float_round(p->x_type, x + r);
    }
    if (p->sum)
        ptxgen_float_store(p->x_type, p->sum, m * p->lds + k, x);
    return x;
}

static void normalise(const struct rmsnorm_q4k_problem *p, size_t m, struct token *token)
{
    double squares = 0;
    token->sum_abs_t = 0;
    for (size_t k = 0; k < p->k; k++) {
        double x = residual_sum(p, m, k);
        squares += x * x;
        token->t[k] = x * (double)p->gamma[k];
        token->sum_abs_t += fabs(token->t[k]);
    }
    double v = squares / (double)p->k + (double)p->eps;
    token->rho = isfinite(v) && v > 0 ? 1 / sqrt(v) : NAN;

    double g = rounding_factor(p->square_depth + NORM_ROUNDINGS, unit_f32);
    double tau = g + 2 * underflow / v;
    bool in_range = squares * (1 + g) <= FLT_MAX && tau < 1;
    token->beta = in_range ? (1 + rsqrt_error) / sqrt(1 - tau) - 1 : INFINITY;
}

/* `decoded`: the row's d·sc·q and dmin·m, interleaved. */
static struct dot dot_row(const double *decoded, const double *t, size_t k)
{
    struct dot dot = {0};
    for (size_t i = 0; i < k; i++) {
        double scaled = decoded[2 * i] * t[i], min = decoded[2 * i + 1] * t[i];
        dot.sum += (decoded[2 * i] - decoded[2 * i + 1]) * t[i];
        dot.abs += fabs(scaled) + fabs(min);
    }
    return dot;
}

/* Returns Σ |d·sc·q| + |dmin·m|. */
static double decode_parts(const uint8_t *row, size_t k, double *parts)
{
    double sum_abs = 0;
    for (size_t base = 0; base < k; base += PTXGEN_Q4K_BLOCK_WEIGHTS) {
        struct q4k_block block;
        q4k_unpack(row + base / PTXGEN_Q4K_BLOCK_WEIGHTS * PTXGEN_Q4K_BLOCK_BYTES, &block);
        double d = ptxgen_f16_to_f32(block.d), dmin = ptxgen_f16_to_f32(block.dmin);
        for (size_t i = 0; i < PTXGEN_Q4K_BLOCK_WEIGHTS; i++) {
            size_t j = i / Q4K_SUB_WEIGHTS;
            double *part = parts + 2 * (base + i);
            part[0] = d * block.scale[j] * block.code[i];
            part[1] = dmin * block.min[j];
            sum_abs += fabs(part[0]) + fabs(part[1]);
        }
    }
    return sum_abs;
}

static double error_bound(const struct rmsnorm_q4k_problem *p, const struct token *token,
                          struct dot dot, double weight_abs, double y)
{
    double g = rounding_factor(p->dot_depth + DOT_PRODUCTS, unit_f32);
    double k = (double)p->k;
    /* Σ|q·t| and T bound every partial sum, before and after the scales */
    if (isinf(token->beta) || !(Q4K_MAX_CODE * token->sum_abs_t * (1 + g) <= FLT_MAX) ||
        !(dot.abs * (1 + g) <= FLT_MAX))
        return INFINITY;

    double z = fabs(dot.sum * token->rho);
    double grown = (1 + token->beta) * (1 + unit_f32);
    double underflows = underflow * (weight_abs + 2 * k) * (1 + g);
    double e = token->rho * grown * (g * dot.abs + underflows) + z * (grown - 1) + underflow;
    if (p->bias)
        e = e * (1 + unit_f32) + unit_f32 * fabs(y);
    e += rounding_factor(k + 4, unit_f64) * dot.abs * token->rho +
         rounding_factor(k + 8, unit_f64) * z + unit_f64 * fabs(y);
    if (p->y_type != PTXGEN_FLOAT_F32)
        e += ptxgen_float_half_ulp(p->y_type, fabs(y) + e);
    return e * bound_slack;
}

/* Settles an output near or beyond the largest finite value of its type. */
static void apply_range(enum ptxgen_float_type type, double *y, double *bound)
{
    double rounded = ptxgen_float_round(type, *y);
    bool may_be_finite = isfinite(ptxgen_float_round(type, fabs(*y) - *bound));
    bool may_be_infinite = isinf(ptxgen_float_round(type, fabs(*y) + *bound));
    if (isinf(rounded))
        *y = rounded;
    if (may_be_infinite && isfinite(*bound))
        *bound = may_be_finite ? INFINITY : 0;
}

static void compute_output(const struct rmsnorm_q4k_problem *p, const struct token *token,
                           struct dot dot, double weight_abs, double bias, double *y, double *bound)
{
    *y = dot.sum * token->rho + bias;
    *bound = 0;
    if (isnan(*y))
        return;
    *bound = error_bound(p, token, dot, weight_abs, *y);
    apply_range(p->y_type, y, bound);
}

static void run(const struct rmsnorm_q4k_problem *p, size_t row_bytes, struct token *tokens,
                double *parts, double *y, double *bound)
{
    const uint8_t *w = p->w;
    for (size_t m = 0; m < p->m; m++)
        normalise(p, m, &tokens[m]);
    for (size_t n = 0; n < p->n; n++) {
        double weight_abs = decode_parts(w + n * row_bytes, p->k, parts);
        for (size_t m = 0; m < p->m; m++) {
            double unwanted;
            struct dot dot = dot_row(parts, tokens[m].t, p->k);
            compute_output(p, &tokens[m], dot, weight_abs, p->bias ? (double)p->bias[n] : 0,
                           &y[m * p->n + n], bound ? &bound[m * p->n + n] : &unwanted);
        }
    }
}

ptxgen_status rmsnorm_q4k_reference(const struct rmsnorm_q4k_problem *p, double *y, double *bound,
                                    ptxgen_error *err)
{
    size_t row_bytes, values;
    ptxgen_status status;
    if ((status = ptxgen_q4k_row_bytes(p->k, &row_bytes, err)) != PTXGEN_OK ||
        (status = check(p, row_bytes, err)) != PTXGEN_OK)
        return status;

    /* one block: the decoded row's two parts, then each token's t */
    struct token *tokens = NULL;
    double *block = NULL;
    if (!__builtin_add_overflow(p->m, 2, &values) &&
        !__builtin_mul_overflow(values, p->k, &values)) {
        tokens = calloc(p->m ? p->m : 1, sizeof *tokens);
        block = calloc(values, sizeof *block);
    }
    if (tokens && block) {
        for (size_t m = 0; m < p->m; m++)
            tokens[m].t = block + (m + 2) * p->k;
        run(p, row_bytes, tokens, block, y, bound);
    } else {
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                             "no memory for %zu tokens of %zu elements in double", p->m, p->k);
    }
    free(tokens);
    free(block);
    return status;
}

bool rmsnorm_q4k_agrees(double output, double y, double bound)
{
    if (isnan(y))
        return isnan(output);
    return output == y || fabs(output - y) <= bound;
}
