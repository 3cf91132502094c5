/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound, with u = 2⁻²⁴ and g(n) = nu/(1−nu) (Higham, Accuracy and Stability of Numerical
 * Algorithms, ch. 3). A kernel that scales weights rounds w = s·(q − z) to ŵ, which is known, so
 * that this rounding contributes |Σ x·(ŵ − w)|. Besides `depth` additions, a term passes at most
 * two products: x·ŵ, and the product of a partial sum and its scale. With T = Σ|x·w| + Σ|x·(ŵ −
 * w)|:
 *
 *     |Ŝ − S| ≤ |Σ x·(ŵ − w)| + g(depth + 2)·T + (1+g)·2⁻¹⁵⁰/unit·Σ(1 + |s|)      =: E
 *
 * plus 22·2⁻²⁴ of the floor (walk.h) for each 16 of K, where there is a floor. The last term stands
 * for products that underflow in f32, before or after a scale. Where sums of x·(o + q) are
 * corrected, T = Σ|x·s|·(2o + q + z), a product that underflows may be in either of two sums, of
 * which the second is multiplied by o + z, and E also has cut·Σ|s|·max|x| over the chunks of 16 of
 * K. Adding a bias: E ← E(1+u) + u|v|. f has a slope of at most L (SiLU: 1.1; GELU: 1.13), so
 *
 *     |f̂ − f| ≤ L·E + activation_error·(|v| + E) + u·|f| + 2⁻¹⁴⁹
 *
 * A product a·b with errors A and B is off by A|b| + B|a| + AB, then a rounding. The residual
 * is one more addition. Storing as f16 or bf16 adds half a unit in the last place at |y| + E.
 *
 * The spread (ptxgen/accuracy.h): Σ x·(ŵ − w), which is known, widens the interval on its own side
 * only, because a kernel that does not round weights is right as well. Tensor cores cut sums as
 * walk.h says: sums of x·w, or where sums are corrected sums of x·|s|·(2o + q + z), which are no
 * smaller than the sums of x·s·(o + q) and the corrections, and which start from 0 after `restart`
 * of K. Sums of x·w have three more roundings for each chunk of 16 of K: scales, corrections, and
 * additions of partial sums. Codes that are subnormal lose 0 to u_c = 2⁻¹⁴ of the chunk's largest
 * |x·s| each: a third of the square of that, and half of it on average where products have one
 * sign. Epilogues are treated in spread.h.
 */
#include "reference.h"

#include "../activation.h"
#include "../bound.h"
#include "../dots.h"
#include "../half.h"
#include "../linear_product.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const double unit_f32 = 0x1p-24, unit_f64 = 0x1p-53, underflow = 0x1p-150;
static const double least_f16 = 0x1p-14;       /* normal number */
static const double largest_code = 15;         /* of |q − z| */
static const double bound_slack = 1 + 0x1p-30; /* for computing the bound itself in doubles */

/* A value, and the bound of a kernel's error; a bound of NaN makes no statement. */
struct approximate {
    double value, error;
    struct spread spread;
};

/* An output feature's weights. */
struct feature {
    double *weights;      /* [k]; the memory of all arrays begins here */
    double *lost;         /* [k], ŵ − w where weights are rounded */
    double *carried;      /* [k], what w goes through where sums are corrected: |s|·(2o + q + z) */
    double *chunk_scales; /* [k / 16], |s| of each chunk of K that mma multiplies at once */
    double *scales;       /* [groups] */
    double sum_scale;     /* Σ(1 + |s|) over k */
    struct walk_operands operands; /* ŵ, or 15·s where weights are not rounded */
};

/*
 * Features are decoded in groups, so that all tokens use them while they are in a cache. A chunk
 * counts as two products over 8 of K, of 8 + 3 cuts each.
 */
enum { FEATURES = 8, CHUNK = 16, CUTS = 22 };

/* All tokens, with Σ|x| and max|x| of every chunk of a token, and the decoded features. */
struct work {
    double *x, *largest_x, *sum_x; /* of dots.h, both; [m] */
    struct walk_operands *tokens;  /* [m], of f16 */
    struct feature features[FEATURES][2];
};

static ptxgen_status check_matrix(const ptxgen_w4_matrix *w, ptxgen_w4_info *info,
                                  ptxgen_error *err)
{
    ptxgen_status status = ptxgen_w4_describe_matrix(w, info, err);
    for (size_t i = 0; status == PTXGEN_OK && i < info->groups * info->n; i++) {
        double scale = ptxgen_element_load(w->scale_type, w->scales, i);
        if (!isfinite(scale))
            status =
                ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                            "scales[%zu, %zu] is %g, not finite", i / info->n, i % info->n, scale);
    }
    return status;
}

static bool rounds_weights(const struct marlin_problem *p)
{
    return p->weight_type != PTXGEN_F32;
}

static double unit_of(const struct marlin_problem *p)
{
    return p->unit > 0 ? p->unit : 1;
}

/* The weight that a kernel multiplies for s·(q − z), if it rounds weights. */
static double rounded_weight(const struct marlin_problem *p, double scale, int code, int zero)
{
    double s = scale * unit_of(p);
    double weight =
        p->folds ? code * s + ptxgen_element_round(p->weight_type, -zero * s) : (code - zero) * s;
    return ptxgen_element_round(p->weight_type, weight) / unit_of(p);
}

/* Decodes feature n of `w`, which is the problem's w or up. */
static void decode_feature(const struct marlin_problem *p, const ptxgen_w4_matrix *w,
                           const ptxgen_w4_info *info, size_t n, struct feature *feature)
{
    double sum_scale = 0;
    feature->operands = (struct walk_operands){.largest = 0};
    for (size_t g = 0; g < info->groups; g++)
        feature->scales[g] = ptxgen_element_load(w->scale_type, w->scales, g * w->n + n);
    size_t group = 0, left = (size_t)info->group_size;
    for (size_t k = 0; k < w->k; k++, left--) {
        if (left == 0) {
            group++;
            left = (size_t)info->group_size;
        }
        size_t g = w->g_idx ? (size_t)w->g_idx[k] : group;
        int zero = w->zeros ? w->zeros[g * w->n + n] : PTXGEN_W4_SYMMETRIC_ZERO;
        int code = w->codes[k * w->n + n];
        double scale = feature->scales[g], weight = scale * (code - zero);
        feature->weights[k] = weight;
        feature->lost[k] = rounds_weights(p) ? rounded_weight(p, scale, code, zero) - weight : 0;
        feature->carried[k] = fabs(scale) * (2 * p->offset + code + zero);
        sum_scale += 1 + fabs(scale);
        if (p->x_type == PTXGEN_F16)
            walk_note(&feature->operands,
                      rounds_weights(p) ? weight + feature->lost[k] : largest_code * scale);
    }
    if (!rounds_weights(p)) /* codes are multiplied, and scales afterwards */
        feature->operands.has_subnormals = false;
    size_t rows = (size_t)info->group_size;
    for (size_t c = 0; c < w->k / CHUNK; c++)
        feature->chunk_scales[c] = fabs(feature->scales[c * CHUNK / rows]);
    feature->sum_scale = sum_scale;
}

static bool allocate_feature(const ptxgen_w4_info *info, struct feature *f)
{
    size_t k = info->k, chunks = k / CHUNK;
    f->weights = malloc((3 * k + chunks + info->groups) * sizeof *f->weights);
    if (!f->weights)
        return false;
    f->lost = f->weights + k;
    f->carried = f->lost + k;
    f->chunk_scales = f->carried + k;
    f->scales = f->chunk_scales + chunks;
    return true;
}

/* The sums over K for an output, of w or of up. */
struct terms {
    double sum, magnitude;       /* Σ x·w, and Σ|x·w| or what it is where sums are corrected */
    double lost, lost_magnitude; /* Σ x·(ŵ − w), Σ|x·(ŵ − w)|; 0 where weights are exact */
    double largest_products;     /* Σ|s|·max|x| over the chunks */
    double largest_squares;      /* Σ(|s|·max|x|)² */
    double sum_x;                /* Σ|x| */
    struct walk walk;            /* of Σ x·w */
    struct walk carried;         /* of what the kernel sums where sums are corrected */
    double one_sign;             /* how far products have one sign: |Σ x·w| over Σ|x·w| */
    double floor;                /* of products, where f16 operands are subnormal */
};

/* The spread of S, before the epilogue. */
static struct spread spread_of(const struct marlin_problem *p, const struct terms *t)
{
    enum { MORE_ROUNDINGS = 3 };
    const struct walk_cuts cuts = {p->cut_sums, CHUNK};
    struct walk walk = p->corrects_sums ? t->carried : t->walk;
    walk_raise(&walk, (double)p->w->k / CHUNK, t->floor, t->one_sign);
    struct spread s = walk_spread(&walk, &cuts);
    double drift = p->code_cut / 2 * CHUNK * t->one_sign;
    s.variance += MORE_ROUNDINGS * spread_of_rounding(t->walk.squares) +
                  CHUNK * p->code_cut * p->code_cut / 3 * t->largest_squares;
    s.below += fmax(-t->lost, 0) + fmax(drift, 0) * t->largest_products;
    s.above += fmax(t->lost, 0) + fmax(-drift, 0) * t->largest_products;
    return s;
}

/* S, and the bound of a kernel's error in S. */
static struct approximate estimate(const struct marlin_problem *p, const struct terms *t,
                                   const struct feature *feature)
{
    double g = ptxgen_bound_factor(p->depth + 2.0, unit_f32);
    double abs = t->magnitude + t->lost_magnitude;
    double sums =
        p->corrects_sums ? 1 + p->offset + largest_code : 1; /* products that may underflow */
    double least = (1 + g) * sums * underflow / unit_of(p) * feature->sum_scale +
                   ptxgen_bound_factor((double)p->w->k + 4, unit_f64) * abs;
    double error = fabs(t->lost) + g * abs + least + p->cut * t->largest_products +
                   CUTS * unit_f32 * t->floor * ((double)p->w->k / CHUNK);
    double largest = p->corrects_sums ? 2 * (p->offset + largest_code) : largest_code;
    double unscaled = rounds_weights(p) ? 0 : largest * t->sum_x;
    bool in_range = fmax(abs, unscaled) * (1 + g) <= FLT_MAX && isfinite(abs);
    if (p->corrects_sums && !isfinite(t->sum_x)) /* the correction subtracts two infinities */
        return (struct approximate){.value = NAN};
    struct approximate s = {t->sum, in_range ? error : NAN, spread_of(p, t)};
    spread_widen(&s.spread, least);
    return s;
}

static struct approximate add(struct approximate a, double addend)
{
    double sum = a.value + addend;
    a.spread.variance += spread_of_rounding(sum * sum);
    return (struct approximate){sum, a.error * (1 + unit_f32) + (unit_f32 + unit_f64) * fabs(sum),
                                a.spread};
}

static struct approximate multiply(struct approximate a, struct approximate b)
{
    double product = a.value * b.value;
    double error = a.error * fabs(b.value) + b.error * fabs(a.value) + a.error * b.error;
    return (struct approximate){
        product, error * (1 + unit_f32) + (unit_f32 + unit_f64) * fabs(product) + underflow,
        spread_multiply(&a.spread, a.value, &b.spread, b.value)};
}

static struct approximate apply(const struct marlin_problem *p, struct approximate v)
{
    if (p->activation == PTXGEN_ACTIVATION_NONE)
        return v;
    const struct activation *f = activation_named(p->activation);
    spread_activate(&v.spread, f, v.value, p->activation_error * fabs(v.value) + 2 * underflow);
    double error = f->steepest * v.error + p->activation_error * (fabs(v.value) + v.error) +
                   (unit_f32 + 8 * unit_f64) * fabs(v.value) + 2 * underflow;
    return (struct approximate){f->of(v.value), error, v.spread};
}

static struct approximate biased(const struct marlin_problem *p, struct approximate s,
                                 const void *bias, size_t n)
{
    return bias ? add(s, ptxgen_element_load(p->y_type, bias, n)) : s;
}

/* The results of a reference; bound and spread may be NULL. */
struct results {
    double *y, *bound;
    ptxgen_spread *spread;
};

/* Computes an output from its sums over w and over up. */
static void finish(const struct marlin_problem *p, const struct approximate sums[2], size_t m,
                   size_t n, const struct results *to)
{
    size_t at = m * p->w->n + n;
    double unwanted, *y = &to->y[at], *bound = to->bound ? &to->bound[at] : &unwanted;
    struct approximate v = apply(p, biased(p, sums[0], p->bias, n));
    if (p->up)
        v = multiply(v, biased(p, sums[1], p->up_bias, n));
    if (p->residual)
        v = add(v, ptxgen_element_load(p->y_type, p->residual, m * p->residual_stride + n));
    *y = v.value;
    *bound = 0;
    if (to->spread)
        to->spread[at] = spread_result(&v.spread);
    if (!isfinite(v.value))
        return;
    if (p->y_type != PTXGEN_F32)
        v.error += ptxgen_element_half_ulp(p->y_type, fabs(v.value) + v.error);
    *bound = v.error * bound_slack;
    ptxgen_bound_settle(p->y_type, y, bound);
}

static ptxgen_status check(const struct marlin_problem *p, ptxgen_w4_info info[2],
                           ptxgen_error *err)
{
    ptxgen_status status;
    if ((status = check_matrix(p->w, &info[0], err)) != PTXGEN_OK ||
        (p->up && (status = check_matrix(p->up, &info[1], err)) != PTXGEN_OK))
        return status;
    if (p->up && (p->up->k != p->w->k || p->up->n != p->w->n))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "up is [%zu, %zu], but w is [%zu, %zu]", p->up->k, p->up->n, p->w->k,
                           p->w->n);
    if (p->up && p->activation != PTXGEN_ACTIVATION_SILU)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "the activation is %d, but SwiGLU's is SiLU", (int)p->activation);
    const struct linear_array arrays[] = {
        {"x", p->x, p->m > 0, p->x_stride, p->w->k},
        {"residual", p->residual, p->residual != NULL, p->residual_stride, p->w->n}};
    return linear_check_arrays("marlin", arrays, sizeof arrays / sizeof *arrays, err);
}

/*
 * Finds max|x| of each chunk of a token, where subnormal f16 count as the least normal number; of
 * the whole token where the kernel has K in another order.
 */
static void find_largest(const struct marlin_problem *p, const double *row, double *largest)
{
    size_t chunk = p->w->g_idx ? p->w->k : CHUNK;
    for (size_t c = 0; c < p->w->k / CHUNK; c++) {
        size_t first = p->w->g_idx ? 0 : c * CHUNK;
        double *to = largest + c * DOTS_ROWS;
        if (first == 0 && c > 0) {
            *to = *largest;
            continue;
        }
        for (size_t k = first; k < first + chunk; k++) {
            double size = fabs(row[k * DOTS_ROWS]);
            *to = fmax(*to, p->cut > 0 && size > 0 ? fmax(size, least_f16) : size);
        }
    }
}

static void load_tokens(const struct marlin_problem *p, struct work *w)
{
    for (size_t m = 0; m < p->m; m++) {
        double *row = dots_row(w->x, m, p->w->k);
        ptxgen_elements_load(p->x_type, p->x, m * p->x_stride, p->w->k, row, DOTS_ROWS);
        w->sum_x[m] = 0;
        for (size_t k = 0; k < p->w->k; k++)
            w->sum_x[m] += fabs(row[k * DOTS_ROWS]);
        for (size_t k = 0; p->x_type == PTXGEN_F16 && k < p->w->k; k++)
            walk_note(&w->tokens[m], row[k * DOTS_ROWS]);
        find_largest(p, row, dots_row(w->largest_x, m, p->w->k / CHUNK));
    }
}

static double largest_squares(const struct marlin_problem *p, const struct work *w,
                              const struct feature *feature, size_t m)
{
    const double *row = dots_row(w->largest_x, m, p->w->k / CHUNK);
    double squares = 0;
    for (size_t c = 0; p->cut > 0 && c < p->w->k / CHUNK; c++) {
        double largest = row[c * DOTS_ROWS] * feature->chunk_scales[c];
        squares += largest * largest;
    }
    return squares;
}

/* Computes feature n of up to DOTS_ROWS tokens from `first` on. */
static void compute(const struct marlin_problem *p, const struct work *w,
                    const struct feature features[2], size_t first, size_t n,
                    const struct results *to)
{
    size_t k = p->w->k, chunks = k / CHUNK;
    const struct dots_ways whole = {.warps = 1, .steps = 1},
                           in_parts = {.warps = 1, .steps = 1, .restart = p->restart / CHUNK};
    struct dots dots[2], carried[2], largest[2] = {{.sums = {0}}}, lost[2] = {{.sums = {0}}};
    struct walk walks[2][DOTS_ROWS], carried_walks[2][DOTS_ROWS] = {{{.sum = 0}}};
    for (int i = 0; i < (p->up ? 2 : 1); i++) {
        dots_walk(w->x + first * k, features[i].weights, k, &whole, &dots[i], walks[i]);
        if (rounds_weights(p))
            dots_sum(w->x + first * k, features[i].lost, k, &lost[i]);
        if (p->corrects_sums)
            dots_walk(w->x + first * k, features[i].carried, k, &in_parts, &carried[i],
                      carried_walks[i]);
        if (p->cut > 0)
            dots_sum(w->largest_x + first * chunks, features[i].chunk_scales, chunks, &largest[i]);
    }
    for (size_t i = 0; i < DOTS_ROWS && first + i < p->m; i++) {
        struct approximate sums[2];
        size_t m = first + i;
        for (int j = 0; j < (p->up ? 2 : 1); j++) {
            const struct dots *terms_of = &(p->corrects_sums ? carried : dots)[j];
            const struct terms terms = {
                .sum = dots[j].sums[i],
                .magnitude = terms_of->magnitudes[i],
                .lost = lost[j].sums[i],
                .lost_magnitude = lost[j].magnitudes[i],
                .largest_products = largest[j].sums[i],
                .largest_squares = largest_squares(p, w, &features[j], m),
                .sum_x = w->sum_x[m],
                .floor = walk_floor(&w->tokens[m], &features[j].operands),
                .walk = walks[j][i],
                .carried = carried_walks[j][i],
                .one_sign =
                    terms_of->magnitudes[i] > 0 ? terms_of->sums[i] / terms_of->magnitudes[i] : 0,
            };
            sums[j] = estimate(p, &terms, &features[j]);
        }
        finish(p, sums, m, n, to);
    }
}

static void run(const struct marlin_problem *p, const ptxgen_w4_info info[2], struct work *w,
                const struct results *to)
{
    load_tokens(p, w);
    for (size_t first = 0; first < p->w->n; first += FEATURES) {
        size_t count = p->w->n - first < FEATURES ? p->w->n - first : FEATURES;
        for (size_t i = 0; i < count; i++) {
            decode_feature(p, p->w, &info[0], first + i, &w->features[i][0]);
            if (p->up)
                decode_feature(p, p->up, &info[1], first + i, &w->features[i][1]);
        }
        for (size_t m = 0; m < p->m; m += DOTS_ROWS)
            for (size_t i = 0; i < count; i++)
                compute(p, w, w->features[i], m, first + i, to);
    }
}

static bool allocate_work(const struct marlin_problem *p, const ptxgen_w4_info info[2],
                          struct work *w)
{
    w->x = dots_allocate(p->m, p->w->k);
    w->largest_x = dots_allocate(p->m, p->w->k / CHUNK);
    w->sum_x = calloc(p->m ? p->m : 1, sizeof *w->sum_x);
    w->tokens = calloc(p->m ? p->m : 1, sizeof *w->tokens);
    bool have = w->x && w->largest_x && w->sum_x && w->tokens;
    for (int i = 0; have && i < FEATURES; i++)
        have = allocate_feature(&info[0], &w->features[i][0]) &&
               (!p->up || allocate_feature(&info[1], &w->features[i][1]));
    return have;
}

static void free_work(struct work *w)
{
    free(w->x);
    free(w->largest_x);
    free(w->sum_x);
    free(w->tokens);
    for (int i = 0; i < FEATURES; i++)
        for (int j = 0; j < 2; j++)
            free(w->features[i][j].weights);
}

ptxgen_status marlin_reference(const struct marlin_problem *p, double *y, double *bound,
                               ptxgen_spread *spread, ptxgen_error *err)
{
    ptxgen_w4_info info[2];
    ptxgen_status status = check(p, info, err);
    if (status != PTXGEN_OK)
        return status;
    struct work work = {.x = NULL};
    if (allocate_work(p, info, &work))
        run(p, info, &work, &(struct results){y, bound, spread});
    else
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                             "no memory for %zu tokens of %zu doubles", p->m, p->w->k);
    free_work(&work);
    return status;
}
