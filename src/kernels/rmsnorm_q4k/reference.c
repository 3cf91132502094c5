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
 * so that each is rounded at its own size before they cancel. Each term passes through dot_depth
 * additions and at most three units of other rounding: the products x·γ, ·q, ·scale; or x·γ, then
 * one rounding of w = d·sc·q − dmin·m, relative to |w| ≤ |d·sc·q| + |dmin·m|, then w·t; or x·γ,
 * then two for the split of its 24 bits into two f16, whose products with sc·q are exact.
 *
 *     |Ŝ − S| ≤ g(dot_depth + 3)·T + U      T = Σ |d·sc·q·t| + |dmin·m·t|
 *     U = (1 + g)·(2⁻¹⁵⁰·(Σ a + 2K) + Σ_b (operand_floor·max_b|t|·Σ_b a + block_loss))
 *     a = |d·sc·q| + |dmin·m|
 *
 * where U is underflow: of t, scaled by its weight; of the products with a scale; and, over each
 * super-block b, what the pieces of t cannot hold (max_b|t| at least operand_least) and what
 * underflowing scales lose.
 *
 * Norm. v = Σx²/K + ε is a sum of terms of one sign: square, square_depth additions, 1/K and its
 * product, + ε make v̂ = v·(1+θ), |θ| ≤ g(square_depth + 4), plus underflow of at most 2⁻¹⁴⁹. The
 * root halves that, and rsqrt.approx.f32 adds 2^-22.9 (PTX ISA): with τ = g + 2⁻¹⁴⁹/v,
 *
 *     ρ̂ = ρ·(1+β)      |β| ≤ (1 − τ)^(-1/2)·(1 + 2^-22.9)·(1 + 2⁻¹⁵⁰/ρ) − 1
 *
 * where the last factor is underflow of a ρ that is below f32's normal numbers.
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
 *
 * Spread (ptxgen/accuracy.h): the same roundings, each with a third of its square as variance. Of a
 * super-block b these are
 *
 * - 6 of its sums and of those that it is added to: 2⁻²⁴·M_b, M_b of walk.h, whose step is a
 *   super-block
 * - what the pieces of t leave out, operand_floor·max_b|t|·Σ_b a
 * - sums of t over sub-blocks in two f16, and what tensor cores cut of their products with mins:
 *   2⁻²²·T_b, T_b = Σ_j |dmin·m·Σ_j t| over the sub-blocks
 *
 * Tensor cores cut sums of mins, S_b = Σ dmin·m·t, toward zero: on average by 2⁻²⁴·|S_b|, and by
 * half of that for each of 8 products of one sign, whose share is |S_b|/T_b. This widens both
 * sides. So do ρ's errors, which a row's outputs have in common: 2^-22.9, and 2⁻²² for the sum of
 * squares, four units where it has a mean of roundings to nearest; and what underflows. Then come
 * two roundings, and one with a bias.
 */
#include "reference.h"

#include "../bound.h"
#include "../gguf/block.h"
#include "../spread.h"
#include "../walk.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256, BLOCK_BYTES = 144, SUB_BLOCK = 32, MOST_CODE = 15 }; /* of Q4_K */
enum { DOT_PRODUCTS = 3, NORM_ROUNDINGS = 4 };
static const double unit_f32 = 0x1p-24, unit_f64 = 0x1p-53;
static const double underflow = 0x1p-150;
static const double rsqrt_error = 0x1.125fbee25067p-23; /* 2^-22.9 */
static const double bound_slack = 1 + 0x1p-30; /* for computing the bound itself in doubles */

/* A token's t = x·γ, its ρ, and what the bound needs of them. */
struct token {
    double *t;       /* [k] */
    double *largest; /* [k / 256]: of |t| over each super-block */
    double sum_abs_t;
    double rho;       /* NaN for a row whose outputs are NaN */
    double beta;      /* relative error of the kernel's ρ */
    double underflow; /* the part of the error that is due to underflow */
};

/* A row of w as its two parts, d·sc·q and dmin·m. */
struct row {
    double *scaled, *min; /* [k] */
    double *sum_abs;      /* [k / 256]: of both over each super-block */
};

/* The sums of one output's terms. */
struct dot {
    double sum;     /* S */
    double abs;     /* T */
    double weights; /* Σ a */
    double largest; /* Σ_b max_b|t|·Σ_b a */

    struct walk walk; /* the walk of S, whose step is a super-block */
    double min_cuts;  /* what sums of mins lose on average, in units of 2⁻²⁴ */
    double pieces;    /* variance of what pieces of t and of their sums leave out */
};

static ptxgen_status check_weights(const struct rmsnorm_q4k_problem *p, size_t row_bytes,
                                   ptxgen_error *err)
{
    const uint8_t *w = p->w;
    for (size_t n = 0; n < p->n; n++)
        for (size_t b = 0; b < row_bytes; b += BLOCK_BYTES) {
            struct gguf_block block;
            gguf_unpack_q4_k(w + n * row_bytes + b, &block);
            if (!isfinite(block.scale[0]) || !isfinite(block.min[0]))
                return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                                   "row %zu of W has a super-block (%zu) whose scale or minimum "
                                   "is not finite",
                                   n, b / BLOCK_BYTES);
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
    ptxgen_status status = check_stride("x_stride", p->x, p->x_stride, p->k, err);
    if (status == PTXGEN_OK)
        status = check_stride("residual_stride", p->residual, p->residual_stride, p->k, err);
    if (status == PTXGEN_OK)
        status = ptxgen_bound_check_finite("gamma", p->gamma, p->k, err);
    if (status == PTXGEN_OK)
        status = ptxgen_bound_check_finite("bias", p->bias, p->n, err);
    return status == PTXGEN_OK ? check_weights(p, row_bytes, err) : status;
}

/*
 * x + r in double and then rounded equals the same in f32 or the type itself: a sum of two numbers
 * of p bits rounds to p bits as if once through any format of 2p + 2 bits or more.
 */
static double residual_sum(const struct rmsnorm_q4k_problem *p, size_t m, size_t k)
{
    double x = ptxgen_element_load(p->x_type, p->x, m * p->x_stride + k);
    if (p->residual) {
        double r = ptxgen_element_load(p->x_type, p->residual, m * p->residual_stride + k);
        x = ptxgen_element_round(p->x_type, x + r);
    }
    if (p->sum)
        ptxgen_element_store(p->x_type, p->sum, m * p->sum_stride + k, x);
    return x;
}

static void normalise(const struct rmsnorm_q4k_problem *p, size_t m, struct token *token)
{
    double squares = 0;
    bool in_range = true;
    for (size_t k = 0; k < p->k; k++) {
        double x = residual_sum(p, m, k), t = x * (double)p->gamma[k];
        double *largest = &token->largest[k / BLOCK];
        squares += x * x;
        token->t[k] = t;
        token->sum_abs_t += fabs(t);
        *largest = fmax(*largest, fabs(t));
        in_range = in_range && isfinite(ptxgen_element_round(PTXGEN_F32, t));
    }
    for (size_t b = 0; b < p->k / BLOCK; b++)
        token->largest[b] = fmax(token->largest[b], p->operand_least);
    double v = squares / (double)p->k + (double)p->eps;
    token->rho = in_range && isfinite(v) && v > 0 ? 1 / sqrt(v) : NAN;

    double tau =
        ptxgen_bound_factor(p->square_depth + NORM_ROUNDINGS, unit_f32) + 2 * underflow / v;
    double grown = (1 + rsqrt_error) * (1 + underflow * sqrt(v));
    token->beta = tau < 1 ? grown / sqrt(1 - tau) - 1 : INFINITY;
    token->underflow = underflow / v + underflow * sqrt(v);
}

static void decode(const uint8_t *bytes, size_t k, struct row *row)
{
    for (size_t b = 0; b < k / BLOCK; b++) {
        struct gguf_block block;
        gguf_unpack_q4_k(bytes + b * BLOCK_BYTES, &block);
        row->sum_abs[b] = 0;
        for (size_t i = 0; i < BLOCK; i++) {
            size_t j = i / SUB_BLOCK, at = b * BLOCK + i;
            row->scaled[at] = (double)block.scale[j] * block.code[i];
            row->min[at] = (double)block.min[j];
            row->sum_abs[b] += fabs(row->scaled[at]) + fabs(row->min[at]);
        }
    }
}

static double third_of_square(double most)
{
    return most * most / 3;
}

/* The spread's terms of super-block b. */
static void note_block(const struct rmsnorm_q4k_problem *p, const struct row *row,
                       const struct token *token, size_t b, struct dot *dot)
{
    size_t first = b * BLOCK;
    double scaled = 0, mins = 0, min_sizes = 0;
    for (size_t j = first; j < first + BLOCK; j += SUB_BLOCK) {
        double sum = 0;
        for (size_t i = j; i < j + SUB_BLOCK; i++) {
            scaled += row->scaled[i] * token->t[i];
            sum += token->t[i];
        }
        mins += row->min[j] * sum;
        min_sizes += fabs(row->min[j] * sum);
    }
    walk_step(&dot->walk, scaled - mins, fabs(scaled) + min_sizes);
    dot->min_cuts += fabs(mins) * (1 + 4 * fabs(mins) / (min_sizes + DBL_MIN));
    dot->pieces += third_of_square(0x1p-22 * min_sizes) +
                   third_of_square(p->operand_floor * token->largest[b] * row->sum_abs[b]);
}

static struct dot multiply(const struct rmsnorm_q4k_problem *p, const struct row *row,
                           const struct token *token)
{
    size_t k = p->k;
    struct dot dot = {0};
    for (size_t i = 0; i < k; i++) {
        double t = token->t[i];
        dot.sum += (row->scaled[i] - row->min[i]) * t;
        dot.abs += fabs(row->scaled[i] * t) + fabs(row->min[i] * t);
    }
    for (size_t b = 0; b < k / BLOCK; b++) {
        dot.weights += row->sum_abs[b];
        dot.largest += row->sum_abs[b] * token->largest[b];
        note_block(p, row, token, b, &dot);
    }
    return dot;
}

/* The bound's terms for products, and for pieces of t, whose scales underflow. */
static double underflown(const struct rmsnorm_q4k_problem *p, const struct dot *dot)
{
    double k = (double)p->k;
    return underflow * (dot->weights + 2 * k) + p->block_loss * k / BLOCK;
}

static double error_bound(const struct rmsnorm_q4k_problem *p, const struct token *token,
                          const struct dot *dot, double y)
{
    double g = ptxgen_bound_factor(p->dot_depth + DOT_PRODUCTS, unit_f32);
    double k = (double)p->k;
    /*
     * Σ|q·t| and T bound every partial sum, before and after the scales. Pieces of t are integers,
     * whose products with q cannot overflow; sums of one piece pass T by 2⁻¹⁴ of the largest.
     */
    bool pieces = p->operand_floor > 0;
    double before = pieces ? 0 : MOST_CODE * token->sum_abs_t;
    double after = dot->abs + (pieces ? 0x1p-14 * dot->largest : 0);
    bool in_range =
        before * (1 + g) <= FLT_MAX && after * (1 + g) <= FLT_MAX && isfinite(token->beta);
    if (!in_range)
        return NAN;

    double z = fabs(dot->sum * token->rho);
    double grown = (1 + token->beta) * (1 + unit_f32);
    double lost = underflown(p, dot) + p->operand_floor * dot->largest;
    double e = token->rho * grown * (g * dot->abs + (1 + g) * lost) + z * (grown - 1) + underflow;
    if (p->bias)
        e = e * (1 + unit_f32) + unit_f32 * fabs(y);
    e += ptxgen_bound_factor(k + 4, unit_f64) * dot->abs * token->rho +
         ptxgen_bound_factor(k + 8, unit_f64) * z + unit_f64 * fabs(y);
    if (p->y_type != PTXGEN_F32)
        e += ptxgen_element_half_ulp(p->y_type, fabs(y) + e);
    return e * bound_slack;
}

static struct spread spread_of(const struct rmsnorm_q4k_problem *p, const struct token *token,
                               const struct dot *dot, double y)
{
    enum { BLOCK_ROUNDINGS = 6, LAST_ROUNDINGS = 2 };
    double k = (double)p->k, rho = token->rho, z = fabs(dot->sum * rho);
    double rho_error = rsqrt_error + 0x1p-22 + token->underflow;
    double own = ptxgen_bound_factor(k + 8, unit_f64) * (dot->abs * rho + fabs(y));
    struct spread s = {
        .variance =
            rho * rho * (BLOCK_ROUNDINGS * spread_of_rounding(dot->walk.squares) + dot->pieces) +
            LAST_ROUNDINGS * spread_of_rounding(z * z)};
    if (p->bias)
        s.variance += spread_of_rounding(y * y);
    spread_widen(&s, rho * (unit_f32 * dot->min_cuts + underflown(p, dot)) + z * rho_error +
                         underflow + own);
    return s;
}

static void compute_output(const struct rmsnorm_q4k_problem *p, const struct token *token,
                           const struct row *row, double bias, size_t at,
                           const struct rmsnorm_q4k_results *to)
{
    double unwanted, *y = &to->y[at], *bound = to->bound ? &to->bound[at] : &unwanted;
    struct dot dot = multiply(p, row, token);
    *y = dot.sum * token->rho + bias;
    *bound = 0;
    if (to->spread) {
        struct spread spread = spread_of(p, token, &dot, *y);
        to->spread[at] = spread_result(&spread);
    }
    if (isnan(*y))
        return;
    *bound = error_bound(p, token, &dot, *y);
    ptxgen_bound_settle(p->y_type, y, bound);
}

static void run(const struct rmsnorm_q4k_problem *p, size_t row_bytes, struct token *tokens,
                struct row *row, const struct rmsnorm_q4k_results *to)
{
    for (size_t m = 0; m < p->m; m++)
        normalise(p, m, &tokens[m]);
    for (size_t n = 0; n < p->n; n++) {
        decode((const uint8_t *)p->w + n * row_bytes, p->k, row);
        for (size_t m = 0; m < p->m; m++)
            compute_output(p, &tokens[m], row, p->bias ? (double)p->bias[n] : 0, m * p->n + n, to);
    }
}

/* One zeroed block of doubles for a row of w and all tokens; NULL when there is no room. */
static double *allocate(const struct rmsnorm_q4k_problem *p, struct token *tokens, struct row *row)
{
    size_t blocks = p->k / BLOCK, each = p->k + blocks, vectors;
    if (__builtin_add_overflow(p->m, 2, &vectors) || vectors > SIZE_MAX / sizeof(double) / each)
        return NULL;
    double *memory = calloc(vectors * each, sizeof *memory);
    if (!memory)
        return NULL;
    row->scaled = memory;
    row->sum_abs = row->scaled + p->k;
    row->min = memory + each;
    for (size_t m = 0; m < p->m; m++) {
        tokens[m].t = memory + (m + 2) * each;
        tokens[m].largest = tokens[m].t + p->k;
    }
    return memory;
}

ptxgen_status rmsnorm_q4k_reference(const struct rmsnorm_q4k_problem *p,
                                    const struct rmsnorm_q4k_results *results, ptxgen_error *err)
{
    size_t row_bytes = p->k / BLOCK * BLOCK_BYTES;
    ptxgen_status status = check(p, row_bytes, err);
    if (status != PTXGEN_OK)
        return status;

    struct row row;
    struct token *tokens = calloc(p->m ? p->m : 1, sizeof *tokens);
    double *memory = tokens ? allocate(p, tokens, &row) : NULL;
    if (memory)
        run(p, row_bytes, tokens, &row, results);
    else
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                             "no memory for %zu tokens of %zu elements in double", p->m, p->k);
    free(memory);
    free(tokens);
    return status;
}
