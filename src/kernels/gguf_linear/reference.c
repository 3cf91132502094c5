/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference in double precision, and the bound, for a kernel that computes in f32 (u = 2⁻²⁴,
 * round to nearest, no flush to zero); g(n) = nu/(1 − nu) as in bound.h.
 *
 * Each h[k] of the kernel is within e[k] of the exact one:
 *
 *     1/rms of v    square_depth additions of squares, then mean, + ε, and rsqrt.approx (2^-22.9):
 *                   relative error β = (1 − τ)^(-1/2)·(1 + 2^-22.9) − 1 with τ = g(depth + 4)
 *     g AFTER       a = x·post_gamma/rms is within |a|·(β + 3u), the sum one rounding more. Rounded
 *                   to x's type it is the reference's g, or its neighbour where the exact sum is
 *                   that near to the middle of two
 *     norm          |h|·(β + 3u), and what g's own errors change in g and in Σg²
 *     integers      half a unit: 2⁻¹⁴·⁹ / 2 of the largest of 256 values with 16 bits, 2⁻²²·⁹ / 2
 * with 24, at least 2⁻¹²⁶
 *
 * Products of the integers with codes and scales are exact. What is rounded are sums of a unit,
 * once as they become f32 and with d and dmin, and their additions; a type whose blocks have a d of
 * their own adds 8 of them first. Planes are summed separately; those of a value v add up to |v| +
 * 2⁻⁵·⁹ of the unit's largest at most. With t[k] that sum and a = |d·sc·q| + |dmin·m|, dot_depth
 * additions:
 *
 *     |ŷ − y| ≤ Σ |w|·e + g(dot_depth)·Σ a·t
 *
 * Launches of more tokens (inflate.h, direct.h) round h and w to the compute type instead, by r and
 * s at most: e[k] grows by r, products are exact, or of f32 off by 2⁻²¹, and the additions are
 * those of dense (dense/reference.c):
 *
 *     |ŷ − y| ≤ Σ |w|·e + s·(|h| + e) + g(depth)·Σ (|w| + s)·(|h| + e)
 *
 * Those that decode in packed f16 (direct.h) have the weight of direct_f16_weight, whose difference
 * from the exact one is s.
 *
 * Matrices in floats round neither h nor w: products are exact, and a term passes float_depth
 * additions (floats.h):
 *
 *     |ŷ − y| ≤ Σ |w|·e + g(float_depth)·Σ |w|·(|h| + e)
 *
 * Bias, gate and the rounding to y's type are as for every family (linear.h, activation.h). The
 * reference's own roundings of 2⁻⁵³ are added.
 *
 * Spread (ptxgen/accuracy.h): the integers' rounding errors are uniform, so their variance is a
 * third of (Σ w²·half²); each unit's roundings have a third of the square of 2⁻²⁴ of what is added;
 * errors of 1/rms, which a row has in common, widen both sides.
 */
#include "direct.h"
#include "floats.h"

#include "../activation.h"
#include "../bound.h"
#include "../gguf/block.h"
#include "../half.h"
#include "../spread.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double unit_f32 = 0x1p-24, unit_f64 = 0x1p-53;
static const double rsqrt_error = 0x1.125fbee25067p-23; /* 2^-22.9 */
static const double underflow = 0x1p-150;
static const double bound_slack = 1 + 0x1p-30; /* for computing the bound itself in doubles */
static const double planes_excess = 0x1.1p-6;

/* A token: exact h, the error of the kernel's, and by unit the largest and the integers' half. */
struct token {
    double *h, *error; /* [k] */
    double *half;      /* [units]: by which an integer may be off */
    double *excess;    /* [units]: by which planes add up to more than the value */
    double common;     /* the part of the error that is relative to h */
    double largest;
    bool has_nan, is_nan, is_beyond; /* the compute type does not hold h */
    bool is_open;                    /* squares are below what f32 holds: no statement */
};

/* A row of w as the two parts of each weight, and what launches of rounded operands multiply. */
struct row {
    double *scaled, *min; /* [k] */
    double *off;          /* [k]: by which the rounded weight may be off */
    double largest_scale, largest;
};

struct job {
    const ptxgen_gguf_linear_plan *plan;
    const ptxgen_gguf_linear_spec *spec;
    const ptxgen_gguf_linear_operands *o;
    const ptxgen_gguf_linear_variant *v;
    const ptxgen_tile *tile; /* where there is no variant; or NULL */
};

/* ---- tokens ---- */

static double load(const struct job *j, const void *array, uint64_t stride, size_t m, size_t k)
{
    uint64_t pitch = stride ? stride : j->spec->k;
    return ptxgen_element_load((ptxgen_element)j->spec->x_type, array, m * pitch + k);
}

static unsigned square_depth(const struct job *j)
{
    enum { LANE_VALUES = 8, TREES = 10 };
    const bool makes_h = j->v && j->v->makes_h;
    uint32_t warps = makes_h ? j->v->wn * j->v->wk : gguf_linear_prepare_threads(j->spec) / 32;
    return LANE_VALUES * ((units(j->spec) + warps - 1) / warps) + TREES;
}

/* 1 / rms, and the relative error of the kernel's. */
static double inverse_rms(const struct job *j, double squares, double *beta)
{
    enum { NORM_ROUNDINGS = 4 };
    double v = squares / (double)j->spec->k + (double)j->spec->epsilon;
    if (!isfinite(v) || !(v > 0))
        return NAN;
    double tau =
        ptxgen_bound_factor(square_depth(j) + NORM_ROUNDINGS, unit_f32) + 2 * underflow / v;
    double grown = (1 + rsqrt_error) * (1 + underflow * sqrt(v));
    *beta = tau < 1 ? grown / sqrt(1 - tau) - 1 : INFINITY;
    return 1 / sqrt(v);
}

/* x or x + residual, and AFTER its own norm, by how much a kernel's g may differ. */
static void make_g(const struct job *j, size_t m, struct token *t)
{
    const ptxgen_gguf_linear_spec *s = j->spec;
    const ptxgen_element type = (ptxgen_element)s->x_type;
    const bool after = s->residual == PTXGEN_GGUF_LINEAR_AFTER;
    double squares = 0, beta = 0, rho = 1;
    for (size_t k = 0; after && k < s->k; k++) {
        double x = load(j, j->o->x, j->o->x_stride, m, k);
        squares += x * x;
    }
    if (after)
        rho = inverse_rms(j, squares, &beta);
    for (size_t k = 0; k < s->k; k++) {
        double x = load(j, j->o->x, j->o->x_stride, m, k), r;
        t->h[k] = x;
        t->error[k] = 0;
        if (!s->residual)
            continue;
        r = load(j, j->o->residual, j->o->residual_stride, m, k);
        double a = after ? x * rho * (double)j->o->post_gamma[k] : x;
        double g = ptxgen_element_round(type, a + r);
        t->h[k] = g;
        if (!after)
            continue;
        double off = fabs(a) * (beta + 4 * unit_f32) + unit_f32 * fabs(a + r) + 4 * underflow;
        double ulp = 2 * ptxgen_element_half_ulp(type, fabs(g));
        double to_middle = ulp / 2 - fabs(a + r - g);
        t->error[k] = type == PTXGEN_F32 ? off + fabs(a + r - g) : to_middle <= off ? ulp + off : 0;
    }
}

static void normalise(const struct job *j, struct token *t)
{
    const ptxgen_gguf_linear_spec *s = j->spec;
    double squares = 0, changed = 0, beta = 0;
    for (size_t k = 0; k < s->k; k++) {
        squares += t->h[k] * t->h[k];
        changed += (2 * fabs(t->h[k]) + t->error[k]) * t->error[k];
    }
    double rho = inverse_rms(j, squares, &beta);
    if (squares > 0)
        beta += changed / squares;
    t->common = beta + 3 * unit_f32;
    for (size_t k = 0; k < s->k; k++) {
        double gamma = (double)j->o->gamma[k];
        double h = t->h[k] * rho * gamma;
        t->error[k] = fabs(rho * gamma) * t->error[k] * (1 + t->common) + fabs(h) * t->common +
                      4 * underflow * (1 + fabs(gamma));
        t->h[k] = h;
    }
}

/* What the compute type makes of h. */
static void round_token(const struct job *j, struct token *t)
{
    const ptxgen_element type = gguf_linear_compute_type(j->spec);
    for (size_t k = 0; k < j->spec->k; k++) {
        double most = fabs(t->h[k]) + t->error[k];
        bool is_exact = t->error[k] == 0 && ptxgen_element_round(type, t->h[k]) == t->h[k];
        t->is_nan = t->is_nan || isnan(t->h[k]);
        t->is_beyond = t->is_beyond || !isfinite(ptxgen_element_round(type, most));
        t->error[k] += is_exact ? 0 : ptxgen_element_half_ulp(type, most);
        t->largest = fmax(t->largest, most);
    }
}

static void make_token(const struct job *j, size_t m, struct token *t, void *sum)
{
    const ptxgen_gguf_linear_spec *s = j->spec;
    const double relative = j->plan->planes == 2 ? 0x1.04p-15 : 0x1.04p-23;
    make_g(j, m, t);
    for (size_t k = 0; sum && k < s->k; k++)
        ptxgen_element_store((ptxgen_element)s->x_type, sum, m * s->k + k, t->h[k]);
    if (s->norm)
        normalise(j, t);
    for (size_t k = 0; k < s->k; k++)
        t->is_open = t->is_open || !isfinite(t->error[k]);
    if (j->tile) {
        round_token(j, t);
        return;
    }
    for (size_t u = 0; u < units(s); u++) {
        double most = 0;
        for (size_t k = u * UNIT; k < s->k && k < (u + 1) * UNIT; k++) {
            bool finite = isfinite(ptxgen_element_round(PTXGEN_F32, t->h[k]));
            t->has_nan = t->has_nan || isnan(t->h[k]);
            t->is_nan = t->is_nan || !finite;
            most = fmax(most, fabs(t->h[k]) + t->error[k]);
        }
        t->half[u] = fmax(most * relative, 0x1p-126);
        t->excess[u] = fmax(most * planes_excess, 0x1p-118);
    }
}

/* ---- rows ---- */

/* Whether launches of rounded operands have the weights of direct_f16_weight. */
static bool decodes_in_f16(const struct job *j)
{
    return j->plan->direct_count && gguf_linear_compute_type(j->spec) == PTXGEN_F16;
}

/* By which a weight is off that is rounded to f32 and then to the compute type. */
static double off_rounded(const struct job *j, double w)
{
    const ptxgen_element type = gguf_linear_compute_type(j->spec);
    if (ptxgen_element_round(type, w) == w)
        return 0;
    return unit_f32 * fabs(w) + ptxgen_element_half_ulp(type, fabs(w));
}

static ptxgen_status decode_floats(const struct job *j, uint32_t matrix, size_t n, struct row *row,
                                   ptxgen_error *err)
{
    const uint32_t type = j->spec->w_type[matrix];
    const ptxgen_element element = type == PTXGEN_GGUF_F32   ? PTXGEN_F32
                                   : type == PTXGEN_GGUF_F16 ? PTXGEN_F16
                                                             : PTXGEN_BF16;
    const uint8_t *bytes = (const uint8_t *)j->o->w[matrix] + n * row_bytes(j->spec, type);
    for (size_t k = 0; k < j->spec->k; k++) {
        row->scaled[k] = ptxgen_element_load(element, bytes, k);
        row->min[k] = 0;
        row->off[k] = off_rounded(j, row->scaled[k]);
        row->largest = fmax(row->largest, fabs(row->scaled[k]));
        if (!isfinite(row->scaled[k]))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "row %zu of w[%u] has a weight (%zu) that is not finite", n, matrix,
                               k);
    }
    return PTXGEN_OK;
}

static ptxgen_status decode(const struct job *j, uint32_t matrix, size_t n, struct row *row,
                            ptxgen_error *err)
{
    const uint32_t type = j->spec->w_type[matrix];
    const struct gguf_format *f = gguf_format_of(type);
    const uint8_t *bytes = (const uint8_t *)j->o->w[matrix] + n * row_bytes(j->spec, type);
    const struct direct_type *in_f16 = decodes_in_f16(j) ? gguf_linear_direct(j->plan) : NULL;
    row->largest_scale = row->largest = 0;
    if (is_float(j->spec, matrix))
        return decode_floats(j, matrix, n, row, err);
    for (size_t first = 0; first < j->spec->k; first += f->info.block_weights) {
        struct gguf_block block;
        f->unpack(bytes, &block);
        bytes += f->info.block_bytes;
        for (size_t i = 0; i < f->info.block_weights; i++) {
            unsigned g = (unsigned)i / block.group;
            row->scaled[first + i] = (double)block.scale[g] * block.code[i];
            row->min[first + i] = (double)block.min[g];
            double w = row->scaled[first + i] - row->min[first + i];
            double decoded = in_f16 ? direct_f16_weight(in_f16, &block, i) : w;
            row->off[first + i] = in_f16 ? fabs(decoded - w) : off_rounded(j, w);
            row->largest = fmax(row->largest, fmax(fabs(w), fabs(decoded)));
            if (!isfinite(block.scale[g]) || !isfinite(block.min[g]))
                return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                                   "row %zu of w[%u] has a block (%zu) whose scale or minimum is "
                                   "not finite",
                                   n, matrix, first / f->info.block_weights);
            row->largest_scale = fmax(row->largest_scale, fabs((double)block.scale[g]));
        }
    }
    return PTXGEN_OK;
}

/* ---- products ---- */

/* A sum with its bound and spread. */
struct estimate {
    double value, bound;
    struct spread spread;
};

static double dot_depth(const struct job *j)
{
    enum { UNIT_ROUNDINGS = 4, BLOCKS = 16, LAST = 2 };
    return UNIT_ROUNDINGS + BLOCKS + 2.0 * warp_units(j->spec, j->v) + j->v->wk * j->plan->planes +
           j->v->parts + LAST;
}

/* The product as dense computes it, of operands that were rounded. */
static struct estimate multiply_rounded(const struct job *j, const struct row *row,
                                        const struct token *t)
{
    enum { CUTS = 22, TERMS = 16 }; /* of 16 products, as in linear.c */
    const ptxgen_dense_spec dense = gguf_linear_dense_spec(j->spec, gguf_linear_all_rows(j->spec));
    const ptxgen_dense_spec *s = &dense;
    const ptxgen_element type = (ptxgen_element)s->type;
    const double off_variance = decodes_in_f16(j) ? 1 : 1.0 / 3; /* of an error, or its bound */
    double sum = 0, errors = 0, parts = 0, weights = 0, tokens = 0, variance = 0, squares = 0;
    for (size_t k = 0; k < s->k; k++) {
        double w = row->scaled[k] - row->min[k], most = fabs(t->h[k]) + t->error[k];
        double off_w = row->off[k];
        sum += w * t->h[k];
        errors += fabs(w) * t->error[k] + off_w * most;
        parts += (fabs(w) + off_w) * most;
        weights += fabs(w);
        tokens += most;
        variance += w * w * t->error[k] * t->error[k] / 3;
        variance += off_w * off_w * most * most * off_variance;
        squares += k % TERMS ? 0 : sum * sum + parts * parts;
    }
    const double factor =
        ptxgen_bound_factor(dense_sum_depth(s, j->tile) + 1, unit_f32) + dense_product_error(s);
    const double floor = 0x1p-14 * fmax(fmax(row->largest, t->largest), 0x1p-14);
    const double steps = ceil((double)s->k / TERMS);
    double lost = ptxgen_bound_factor((double)s->k + 8, unit_f64) * parts +
                  CUTS * steps * unit_f32 * floor + 0x1p-136 * (weights + tokens) +
                  underflow * 64 * (double)s->k;
    struct estimate e = {.value = t->is_nan ? NAN : sum, .bound = errors + factor * parts + lost};
    if (!(parts * 2 <= FLT_MAX) || t->is_beyond || t->is_open ||
        !isfinite(ptxgen_element_round(type, row->largest)))
        e.bound = NAN;
    e.spread = (struct spread){.variance = variance + 4 * spread_of_rounding(squares)};
    spread_widen(&e.spread, lost + factor * parts);
    return e;
}

/* Weights in floats. An infinity in h may become NaN or not: no statement. */
static struct estimate multiply_floats(const struct job *j, uint32_t matrix, const struct row *row,
                                       const struct token *t)
{
    const ptxgen_gguf_linear_spec *s = j->spec;
    const size_t wk = float_wk(s), chunks = float_chunks(j->v->tile_m, s->w_type[matrix]);
    double sum = 0, errors = 0, parts = 0, squares = 0, lanes[FLOAT_THREADS] = {0};
    for (size_t k = 0; k < s->k; k++) {
        double w = row->scaled[k];
        double *lane =
            &lanes[k / FLOAT_CHUNK / chunks % wk * 32 + k % FLOAT_CHUNK / FLOAT_MULTIPLE];
        sum += w * t->h[k];
        errors += fabs(w) * t->error[k];
        parts += fabs(w) * (fabs(t->h[k]) + t->error[k]);
        *lane += w * t->h[k];
        squares += *lane * *lane;
    }
    for (size_t i = 0; i < 32 * wk; i++)
        squares += lanes[i] * lanes[i] * FLOAT_LANE_TREE;
    squares += sum * sum * (double)(FLOAT_LANE_TREE + wk);
    const double depth = float_depth(s, j->v->tile_m, s->w_type[matrix]);
    double lost = ptxgen_bound_factor((double)s->k + 8, unit_f64) * parts +
                  2 * underflow * ((double)s->k + depth);
    struct estimate e = {.value = t->has_nan ? NAN : sum};
    e.bound = errors + ptxgen_bound_factor(depth, unit_f32) * parts + lost;
    if (!t->has_nan && (t->is_nan || !(parts * 2 <= FLT_MAX) || t->is_open))
        e = (struct estimate){.value = 0, .bound = NAN};
    e.spread = (struct spread){.variance = spread_of_rounding(squares)};
    spread_widen(&e.spread, errors + lost);
    return e;
}

static struct estimate multiply(const struct job *j, uint32_t matrix, const struct row *row,
                                const struct token *t)
{
    if (j->tile)
        return multiply_rounded(j, row, t);
    if (is_float(j->spec, matrix))
        return multiply_floats(j, matrix, row, t);
    const ptxgen_gguf_linear_spec *s = j->spec;
    double sum = 0, errors = 0, parts = 0, weights = 0, common = 0, variance = 0, squares = 0;
    for (size_t u = 0; u < units(s); u++) {
        double of_unit = 0, part = 0;
        for (size_t k = u * UNIT; k < s->k && k < (u + 1) * UNIT; k++) {
            double w = row->scaled[k] - row->min[k], a = fabs(row->scaled[k]) + fabs(row->min[k]);
            of_unit += w * t->h[k];
            errors += fabs(w) * (t->error[k] + t->half[u]);
            part += a * (fabs(t->h[k]) + t->error[k] + t->excess[u]);
            weights += a;
            common += fabs(w) * t->error[k];
            variance += w * w * t->half[u] * t->half[u] / 3;
        }
        sum += of_unit;
        parts += part;
        squares += sum * sum + part * part;
    }
    struct estimate e = {.value = t->is_nan ? NAN : sum};
    double own = ptxgen_bound_factor((double)s->k + 8, unit_f64) * parts;
    double lost = underflow * (weights + 64.0 * units(s)) * (1 + 1 / unit_f32);
    e.bound = errors + ptxgen_bound_factor(dot_depth(j), unit_f32) * parts + own + lost;
    if (!(parts * 2 <= FLT_MAX) || row->largest_scale > 0x1p100 || t->is_open)
        e.bound = NAN;
    e.spread = (struct spread){.variance = variance + 4 * spread_of_rounding(squares)};
    spread_widen(&e.spread, common + own + lost);
    return e;
}

static void add_bias(struct estimate *e, double bias)
{
    e->value += bias;
    e->bound = e->bound * (1 + unit_f32) + unit_f32 * fabs(e->value);
    e->spread.variance += spread_of_rounding(e->value * e->value);
}

/* f(gate)·up; the activation's own error is that of gemm/epilogue.h. */
static struct estimate gate(const struct job *j, const struct estimate *g,
                            const struct estimate *up)
{
    const struct activation *f =
        activation_named(j->spec->epilogue == PTXGEN_EPILOGUE_GEGLU ? PTXGEN_ACTIVATION_GELU_TANH
                                                                    : PTXGEN_ACTIVATION_SILU);
    double s = f->of(g->value), rough = 0x1p-20 * fabs(g->value) + 0x1p-118;
    double s_bound = f->steepest * g->bound + rough;
    struct spread s_spread = g->spread;
    struct estimate e = {.value = s * up->value};
    spread_activate(&s_spread, f, g->value, rough);
    e.spread = spread_multiply(&s_spread, s, &up->spread, up->value);
    e.bound = fabs(s) * up->bound + s_bound * (fabs(up->value) + up->bound);
    e.bound += unit_f32 * (fabs(e.value) + e.bound) + 2 * underflow;
    return e;
}

struct results {
    double *y, *bound;
    ptxgen_spread *spread;
};

static void store(const struct job *j, const struct estimate *e, size_t at,
                  const struct results *to)
{
    const ptxgen_element type = (ptxgen_element)j->spec->y_type;
    double bound = e->bound, y = e->value;
    if (to->spread)
        to->spread[at] = spread_result(&e->spread);
    if (isnan(y)) {
        bound = 0;
    } else {
        if (type != PTXGEN_F32)
            bound += ptxgen_element_half_ulp(type, fabs(y) + bound);
        bound *= bound_slack;
        ptxgen_bound_settle(type, &y, &bound);
    }
    to->y[at] = y;
    if (to->bound)
        to->bound[at] = bound;
}

static struct estimate biased(const struct job *j, uint32_t matrix, size_t n, const struct row *row,
                              const struct token *t)
{
    struct estimate e = multiply(j, matrix, row, t);
    if (j->spec->bias)
        add_bias(&e, (double)j->o->bias[matrix][n]);
    return e;
}

static ptxgen_status run(const struct job *j, uint32_t matrix, uint32_t first_n, uint32_t count,
                         struct token *tokens, struct row rows[2], const struct results *to,
                         ptxgen_error *err)
{
    const uint32_t pair = is_gated(j->spec) ? 2 : 1;
    for (size_t n = 0; n < count; n++) {
        ptxgen_status status = PTXGEN_OK;
        for (uint32_t i = 0; status == PTXGEN_OK && i < pair; i++)
            status = decode(j, matrix + i, first_n + n, &rows[i], err);
        if (status != PTXGEN_OK)
            return status;
        for (size_t m = 0; m < j->o->m; m++) {
            struct estimate e = biased(j, matrix, first_n + n, &rows[0], &tokens[m]), up;
            if (pair == 2) {
                up = biased(j, matrix + 1, first_n + n, &rows[1], &tokens[m]);
                e = gate(j, &e, &up);
            }
            store(j, &e, m * count + n, to);
        }
    }
    return PTXGEN_OK;
}

/* ---- the public functions ---- */

static ptxgen_status check_values(const struct job *j, uint32_t matrix, uint32_t first_n,
                                  uint32_t count, ptxgen_error *err)
{
    const ptxgen_gguf_linear_spec *s = j->spec;
    ptxgen_status status = PTXGEN_OK;
    if (s->norm)
        status = ptxgen_bound_check_finite("gamma", j->o->gamma, s->k, err);
    if (status == PTXGEN_OK && s->residual == PTXGEN_GGUF_LINEAR_AFTER)
        status = ptxgen_bound_check_finite("post_gamma", j->o->post_gamma, s->k, err);
    for (uint32_t i = 0; status == PTXGEN_OK && s->bias && count && i < (is_gated(s) ? 2 : 1); i++)
        status = ptxgen_bound_check_finite("bias", j->o->bias[matrix + i] + first_n, count, err);
    return status;
}

static ptxgen_status check_strides(const struct job *j, ptxgen_error *err)
{
    const struct {
        const char *name;
        uint64_t value;
    } strides[] = {{"x_stride", j->o->x_stride}, {"residual_stride", j->o->residual_stride}};
    for (int i = 0; i < (j->spec->residual ? 2 : 1); i++)
        if (strides[i].value && strides[i].value < j->spec->k)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "gguf_linear: %s = %llu is less than K = %u", strides[i].name,
                               (unsigned long long)strides[i].value, j->spec->k);
    return PTXGEN_OK;
}

static ptxgen_status check(const struct job *j, uint32_t matrix, uint32_t first_n, uint32_t count,
                           ptxgen_error *err)
{
    const ptxgen_gguf_linear_spec *s = j->spec;
    const ptxgen_gguf_linear_operands *o = j->o;
    if (matrix >= (is_gated(s) ? 1 : MATRICES) || first_n > s->n[matrix] ||
        count > s->n[matrix] - first_n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_linear: the plan has no features %u to %llu of output %u", first_n,
                           (unsigned long long)first_n + count, matrix);
    if (o->m && !j->v && !j->tile)
        return gguf_linear_refuse_m(j->plan, o->launch_m ? o->launch_m : o->m, err);
    const struct {
        const char *name;
        const void *at;
        bool used;
    } arrays[] = {{"x", o->x, o->m},
                  {"residual", o->residual, o->m && s->residual},
                  {"gamma", o->gamma, s->norm},
                  {"post_gamma", o->post_gamma, s->residual == PTXGEN_GGUF_LINEAR_AFTER}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i].used && !arrays[i].at)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "gguf_linear: %s is NULL",
                               arrays[i].name);
    for (uint32_t i = matrix; count && i < matrix + (is_gated(s) ? 2 : 1); i++)
        if (!o->w[i] || (s->bias && !o->bias[i]))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "gguf_linear: %s[%u] is NULL",
                               !o->w[i] ? "w" : "bias", i);
    ptxgen_status status = check_strides(j, err);
    return status == PTXGEN_OK ? check_values(j, matrix, first_n, count, err) : status;
}

/* One zeroed block of doubles for two rows of w and all tokens; NULL when there is no room. */
static double *allocate(const struct job *j, struct token *tokens, struct row rows[2])
{
    const size_t k = j->spec->k, all = units(j->spec), each = 3 * k + 2 * all;
    double *memory = calloc(((size_t)j->o->m + 2) * each, sizeof *memory);
    if (!memory)
        return NULL;
    for (size_t i = 0; i < 2; i++) {
        rows[i].scaled = memory + i * each;
        rows[i].min = rows[i].scaled + k;
        rows[i].off = rows[i].min + k;
    }
    for (size_t m = 0; m < j->o->m; m++) {
        tokens[m].h = memory + (m + 2) * each;
        tokens[m].error = tokens[m].h + k;
        tokens[m].half = tokens[m].error + k;
        tokens[m].excess = tokens[m].half + all;
    }
    return memory;
}

ptxgen_status ptxgen_gguf_linear_reference_spread(const ptxgen_gguf_linear_plan *plan,
                                                  const ptxgen_gguf_linear_operands *operands,
                                                  uint32_t matrix, uint32_t first_n, uint32_t count,
                                                  double *y, double *bound, ptxgen_spread *spread,
                                                  void *sum, ptxgen_error *err)
{
    if (!gguf_linear_is_plan(plan) || !operands || (operands->m && count && !y))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_linear: a plan that was made, operands and y must be given");
    const uint64_t m = operands->launch_m ? operands->launch_m : operands->m;
    const struct job j = {plan, &plan->spec, operands, ptxgen_gguf_linear_choose(plan, m),
                          plan->direct_count ? ptxgen_gguf_linear_choose_direct(plan, m)
                                             : ptxgen_gguf_linear_choose_inflated(plan, m)};
    ptxgen_status status = check(&j, matrix, first_n, count, err);
    if (status != PTXGEN_OK)
        return status;
    struct token *tokens = calloc((size_t)operands->m + 1, sizeof *tokens);
    struct row rows[2];
    double *memory = tokens ? allocate(&j, tokens, rows) : NULL;
    for (size_t i = 0; memory && i < operands->m; i++)
        make_token(&j, i, &tokens[i], sum);
    const struct results results = {y, bound, spread};
    if (memory)
        status = run(&j, matrix, first_n, count, tokens, rows, &results, err);
    else
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "%s: no memory for %llu tokens of %u",
                             "gguf_linear", (unsigned long long)operands->m, plan->spec.k);
    free(memory);
    free(tokens);
    return status;
}

ptxgen_status ptxgen_gguf_linear_reference(const ptxgen_gguf_linear_plan *plan,
                                           const ptxgen_gguf_linear_operands *operands,
                                           uint32_t matrix, uint32_t first_n, uint32_t count,
                                           double *y, double *bound, void *sum, ptxgen_error *err)
{
    return ptxgen_gguf_linear_reference_spread(plan, operands, matrix, first_n, count, y, bound,
                                               NULL, sum, err);
}

bool ptxgen_gguf_linear_agrees(double output, double y, double bound)
{
    return ptxgen_bound_agrees(output, y, bound);
}
