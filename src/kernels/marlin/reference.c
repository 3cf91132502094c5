/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound, with u = 2⁻²⁴ and g(n) = nu/(1−nu) (Higham, Accuracy and Stability of Numerical
 * Algorithms, ch. 3). A kernel that scales weights rounds w = s·(q − z) to ŵ, which is known: its
 * share of the error is |Σ A·(ŵ − w)|. Beyond `depth` additions a term meets at most two products,
 * A·ŵ and that of a partial sum with its scale. With T = Σ|A·w| + Σ|A·(ŵ − w)|:
 *
 *     |Ŝ − S| ≤ |Σ A·(ŵ − w)| + g(depth + 2)·T + (1+g)·2⁻¹⁵⁰/unit·Σ(1 + |s|)      =: E
 *
 * and 22·2⁻²⁴ of the floor (walk.h) for each 16 rows, where there is one; the last term being
 * products that underflow in f32, before a scale or after it. Where sums of A·(o + q) are
 * corrected, T = Σ|A·s|·(2o + q + z), each product that underflows may come from either of two
 * sums, the second times o + z, and E has another cut·Σ|s|·max|A| over the chunks of 16 rows.
 * Adding a bias: E ← E(1+u) + u|v|. f has a slope of at most L (SiLU: 1.1; GELU: 1.13), so
 *
 *     |f̂ − f| ≤ L·E + activation_error·(|v| + E) + u·|f| + 2⁻¹⁴⁹
 *
 * A product x·y with errors X and Y is off by X|y| + Y|x| + XY, then a rounding. The residual
 * is one more addition. Storing as f16 or bf16 adds half a unit in the last place at |C| + E.
 *
 * Spread (ptxgen/accuracy.h): Σ A·(ŵ − w), which is known, widens the one side that it is on; a
 * kernel that does not round weights is right too. Tensor cores cut as walk.h says: sums of A·w;
 * where sums are corrected those of A·|s|·(2o + q + z), which are no smaller than any of A·s·(o +
 * q) or of what is taken off, and which start from 0 after `restart` rows. Sums of A·w have three
 * more roundings a chunk of 16 rows: scales, corrections, and bringing partial sums together. Codes
 * that are subnormal lose 0 to u_c = 2⁻¹⁴ of the chunk's largest |A·s| each: a third of its square,
 * and half of it where products are of one sign. Epilogues as in spread.h.
 */
#include "reference.h"

#include "../activation.h"
#include "../bound.h"
#include "../dots.h"
#include "../half.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const double unit_f32 = 0x1p-24, unit_f64 = 0x1p-53, underflow = 0x1p-150;
static const double least_f16 = 0x1p-14;       /* normal number */
static const double largest_code = 15;         /* of |q − z| */
static const double bound_slack = 1 + 0x1p-30; /* for computing the bound itself in doubles */

/* A value and how far a kernel's may be from it; NaN promises nothing. */
struct approximate {
    double value, error;
    struct spread spread;
};

/* A column of W. */
struct column {
    double *weights;      /* [k] */
    double *lost;         /* [k], ŵ − w where weights are rounded */
    double *carried;      /* [k], what w goes through where sums are corrected: |s|·(2o + q + z) */
    double *chunk_scales; /* [k / 16], |s| of each chunk of rows that mma multiplies at once */
    double *scales;       /* [groups] */
    double sum_scale;     /* Σ(1 + |s|) over k */
    struct walk_operands operands; /* ŵ, or 15·s where weights are not rounded */
};

/* Columns that are decoded at once, so that rows of A meet them while they are in a cache. */
enum { COLUMNS = 8, CHUNK = 16, CUTS = 22 /* of a chunk: two products of 8 rows, 8 + 3 each */ };

/* Rows of A, of which each has its Σ|a| and max|a| of every chunk, and columns of W and of up. */
struct work {
    double *a, *largest_a, *sum_a; /* of dots.h, both; [m] */
    struct walk_operands *rows;    /* [m], of f16 */
    struct column columns[COLUMNS][2];
};

static ptxgen_status check_matrix(const ptxgen_w4_matrix *b, ptxgen_w4_info *info,
                                  ptxgen_error *err)
{
    ptxgen_status status = ptxgen_w4_describe_matrix(b, info, err);
    for (size_t i = 0; status == PTXGEN_OK && i < info->groups * info->n; i++) {
        double scale = ptxgen_element_load(b->scale_type, b->scales, i);
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

/* What the kernel multiplies for s·(q − z) where it rounds weights. */
static double rounded_weight(const struct marlin_problem *p, double scale, int code, int zero)
{
    double s = scale * unit_of(p);
    double weight =
        p->folds ? code * s + ptxgen_element_round(p->weight_type, -zero * s) : (code - zero) * s;
    return ptxgen_element_round(p->weight_type, weight) / unit_of(p);
}

/* Of `b`, which is the problem's or its `up`. */
static void decode_column(const struct marlin_problem *p, const ptxgen_w4_matrix *b,
                          const ptxgen_w4_info *info, size_t n, struct column *column)
{
    double sum_scale = 0;
    column->operands = (struct walk_operands){.largest = 0};
    for (size_t g = 0; g < info->groups; g++)
        column->scales[g] = ptxgen_element_load(b->scale_type, b->scales, g * b->n + n);
    size_t group = 0, left = (size_t)info->group_size;
    for (size_t k = 0; k < b->k; k++, left--) {
        if (left == 0) {
            group++;
            left = (size_t)info->group_size;
        }
        size_t g = b->g_idx ? (size_t)b->g_idx[k] : group;
        int zero = b->zeros ? b->zeros[g * b->n + n] : PTXGEN_W4_SYMMETRIC_ZERO;
        int code = b->codes[k * b->n + n];
        double scale = column->scales[g], weight = scale * (code - zero);
        column->weights[k] = weight;
        column->lost[k] = rounds_weights(p) ? rounded_weight(p, scale, code, zero) - weight : 0;
        column->carried[k] = fabs(scale) * (2 * p->offset + code + zero);
        sum_scale += 1 + fabs(scale);
        if (p->a_type == PTXGEN_F16)
            walk_note(&column->operands,
                      rounds_weights(p) ? weight + column->lost[k] : largest_code * scale);
    }
    if (!rounds_weights(p)) /* those are multiplied in integers */
        column->operands.has_subnormals = false;
    size_t rows = (size_t)info->group_size;
    for (size_t c = 0; c < b->k / CHUNK; c++)
        column->chunk_scales[c] = fabs(column->scales[c * CHUNK / rows]);
    column->sum_scale = sum_scale;
}

static bool allocate_column(const ptxgen_w4_info *info, struct column *column)
{
    column->weights = malloc(info->k * sizeof(double));
    column->lost = malloc(info->k * sizeof(double));
    column->carried = malloc(info->k * sizeof(double));
    column->chunk_scales = malloc((info->k / CHUNK + 1) * sizeof(double));
    column->scales = malloc(info->groups * sizeof(double));
    return column->weights && column->lost && column->carried && column->chunk_scales &&
           column->scales;
}

static void free_column(struct column *column)
{
    free(column->weights);
    free(column->lost);
    free(column->carried);
    free(column->chunk_scales);
    free(column->scales);
}

ptxgen_status marlin_dequantise(const ptxgen_w4_matrix *b, double *weights, ptxgen_error *err)
{
    ptxgen_w4_info info;
    ptxgen_status status = check_matrix(b, &info, err);
    if (status != PTXGEN_OK)
        return status;
    const struct marlin_problem exact = {.b = b};
    struct column column;
    bool have = allocate_column(&info, &column);
    for (size_t n = 0; have && n < b->n; n++) {
        decode_column(&exact, b, &info, n, &column);
        for (size_t k = 0; k < b->k; k++)
            weights[k * b->n + n] = column.weights[k];
    }
    free_column(&column);
    return have ? PTXGEN_OK
                : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu doubles", b->k);
}

/* What is summed up for an output, of W or of up. */
struct terms {
    double sum, magnitude;       /* Σ A·w, and Σ|A·w| or what it is where sums are corrected */
    double lost, lost_magnitude; /* Σ A·(ŵ − w), Σ|A·(ŵ − w)|; 0 where weights are exact */
    double largest_products;     /* Σ|s|·max|A| over the chunks */
    double largest_squares;      /* Σ(|s|·max|A|)² */
    double sum_a;                /* Σ|A| */
    struct walk walk;            /* of Σ A·w */
    struct walk carried;         /* of what the kernel sums where sums are corrected */
    double one_sign;             /* how far its products are: Σ over Σ| | */
    double floor;                /* of products, where f16 operands are subnormal */
};

/* Of S before anything is done to it. */
static struct spread spread_of(const struct marlin_problem *p, const struct terms *t)
{
    enum { MORE_ROUNDINGS = 3 };
    const struct walk_cuts cuts = {p->cut_sums, CHUNK};
    struct walk walk = p->corrects_sums ? t->carried : t->walk;
    walk_raise(&walk, (double)p->b->k / CHUNK, t->floor, t->one_sign);
    struct spread s = walk_spread(&walk, &cuts);
    double drift = p->code_cut / 2 * CHUNK * t->one_sign;
    s.variance += MORE_ROUNDINGS * spread_of_rounding(t->walk.squares) +
                  CHUNK * p->code_cut * p->code_cut / 3 * t->largest_squares;
    s.below += fmax(-t->lost, 0) + fmax(drift, 0) * t->largest_products;
    s.above += fmax(t->lost, 0) + fmax(-drift, 0) * t->largest_products;
    return s;
}

/* S, and how far a kernel's may be from it. */
static struct approximate estimate(const struct marlin_problem *p, const struct terms *t,
                                   const struct column *column)
{
    double g = ptxgen_bound_factor(p->depth + 2.0, unit_f32);
    double abs = t->magnitude + t->lost_magnitude;
    double sums =
        p->corrects_sums ? 1 + p->offset + largest_code : 1; /* products that may underflow */
    double least = (1 + g) * sums * underflow / unit_of(p) * column->sum_scale +
                   ptxgen_bound_factor((double)p->b->k + 4, unit_f64) * abs;
    double error = fabs(t->lost) + g * abs + least + p->cut * t->largest_products +
                   CUTS * unit_f32 * t->floor * ((double)p->b->k / CHUNK);
    double largest = p->corrects_sums ? 2 * (p->offset + largest_code) : largest_code;
    double unscaled = rounds_weights(p) ? 0 : largest * t->sum_a;
    bool in_range = fmax(abs, unscaled) * (1 + g) <= FLT_MAX && isfinite(abs);
    if (p->corrects_sums && !isfinite(t->sum_a)) /* an infinity less itself */
        return (struct approximate){.value = NAN};
    struct approximate s = {t->sum, in_range ? error : NAN, spread_of(p, t)};
    spread_widen(&s.spread, least);
    return s;
}

static struct approximate add(struct approximate x, double addend)
{
    double sum = x.value + addend;
    x.spread.variance += spread_of_rounding(sum * sum);
    return (struct approximate){sum, x.error * (1 + unit_f32) + (unit_f32 + unit_f64) * fabs(sum),
                                x.spread};
}

static struct approximate multiply(struct approximate x, struct approximate y)
{
    double product = x.value * y.value;
    double error = x.error * fabs(y.value) + y.error * fabs(x.value) + x.error * y.error;
    return (struct approximate){
        product, error * (1 + unit_f32) + (unit_f32 + unit_f64) * fabs(product) + underflow,
        spread_multiply(&x.spread, x.value, &y.spread, y.value)};
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
    return bias ? add(s, ptxgen_element_load(p->c_type, bias, n)) : s;
}

/* What a reference fills, of which bound and spread may be NULL. */
struct results {
    double *c, *bound;
    ptxgen_spread *spread;
};

/* An output, of its sums with W and with up. */
static void finish(const struct marlin_problem *p, const struct approximate sums[2], size_t m,
                   size_t n, const struct results *to)
{
    size_t at = m * p->b->n + n;
    double unwanted, *c = &to->c[at], *bound = to->bound ? &to->bound[at] : &unwanted;
    struct approximate y = apply(p, biased(p, sums[0], p->bias, n));
    if (p->up)
        y = multiply(y, biased(p, sums[1], p->up_bias, n));
    if (p->residual)
        y = add(y, ptxgen_element_load(p->c_type, p->residual, m * p->ldr + n));
    *c = y.value;
    *bound = 0;
    if (to->spread)
        to->spread[at] = spread_result(&y.spread);
    if (!isfinite(y.value))
        return;
    if (p->c_type != PTXGEN_F32)
        y.error += ptxgen_element_half_ulp(p->c_type, fabs(y.value) + y.error);
    *bound = y.error * bound_slack;
    ptxgen_bound_settle(p->c_type, c, bound);
}

static ptxgen_status check(const struct marlin_problem *p, ptxgen_w4_info info[2],
                           ptxgen_error *err)
{
    ptxgen_status status;
    if ((status = check_matrix(p->b, &info[0], err)) != PTXGEN_OK ||
        (p->up && (status = check_matrix(p->up, &info[1], err)) != PTXGEN_OK))
        return status;
    if (p->up && (p->up->k != p->b->k || p->up->n != p->b->n))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "up is [%zu, %zu], but b is [%zu, %zu]", p->up->k, p->up->n, p->b->k,
                           p->b->n);
    if (p->up && p->activation != PTXGEN_ACTIVATION_SILU)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "the activation is %d, but SwiGLU's is SiLU", (int)p->activation);
    if (p->m > 0 && (!p->a || p->lda < p->b->k))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a is NULL or lda = %zu is less than K = %zu", p->lda, p->b->k);
    if (p->residual && p->ldr < p->b->n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "ldr = %zu is less than N = %zu",
                           p->ldr, p->b->n);
    return PTXGEN_OK;
}

/* Of each chunk of a row, where subnormal f16 count as the least normal one; of the whole row where
 * the kernel has it in another order. */
static void find_largest(const struct marlin_problem *p, const double *row, double *largest)
{
    size_t chunk = p->b->g_idx ? p->b->k : CHUNK;
    for (size_t c = 0; c < p->b->k / CHUNK; c++) {
        size_t first = p->b->g_idx ? 0 : c * CHUNK;
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

static void load_rows(const struct marlin_problem *p, struct work *w)
{
    for (size_t m = 0; m < p->m; m++) {
        double *row = dots_row(w->a, m, p->b->k);
        ptxgen_elements_load(p->a_type, p->a, m * p->lda, p->b->k, row, DOTS_ROWS);
        w->sum_a[m] = 0;
        for (size_t k = 0; k < p->b->k; k++)
            w->sum_a[m] += fabs(row[k * DOTS_ROWS]);
        for (size_t k = 0; p->a_type == PTXGEN_F16 && k < p->b->k; k++)
            walk_note(&w->rows[m], row[k * DOTS_ROWS]);
        find_largest(p, row, dots_row(w->largest_a, m, p->b->k / CHUNK));
    }
}

static double largest_squares(const struct marlin_problem *p, const struct work *w,
                              const struct column *column, size_t m)
{
    const double *row = dots_row(w->largest_a, m, p->b->k / CHUNK);
    double squares = 0;
    for (size_t c = 0; p->cut > 0 && c < p->b->k / CHUNK; c++) {
        double largest = row[c * DOTS_ROWS] * column->chunk_scales[c];
        squares += largest * largest;
    }
    return squares;
}

/* Column n of DOTS_ROWS rows from `first` on, or of those that there are. */
static void compute(const struct marlin_problem *p, const struct work *w,
                    const struct column columns[2], size_t first, size_t n,
                    const struct results *to)
{
    size_t k = p->b->k, chunks = k / CHUNK;
    const struct dots_ways whole = {.warps = 1, .steps = 1}, in_parts = {1, 1, p->restart / CHUNK};
    struct dots dots[2], carried[2], largest[2] = {{.sums = {0}}}, lost[2] = {{.sums = {0}}};
    struct walk walks[2][DOTS_ROWS], carried_walks[2][DOTS_ROWS] = {{{.sum = 0}}};
    for (int i = 0; i < (p->up ? 2 : 1); i++) {
        dots_walk(w->a + first * k, columns[i].weights, k, &whole, &dots[i], walks[i]);
        if (rounds_weights(p))
            dots_sum(w->a + first * k, columns[i].lost, k, &lost[i]);
        if (p->corrects_sums)
            dots_walk(w->a + first * k, columns[i].carried, k, &in_parts, &carried[i],
                      carried_walks[i]);
        if (p->cut > 0)
            dots_sum(w->largest_a + first * chunks, columns[i].chunk_scales, chunks, &largest[i]);
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
                .largest_squares = largest_squares(p, w, &columns[j], m),
                .sum_a = w->sum_a[m],
                .floor = walk_floor(&w->rows[m], &columns[j].operands),
                .walk = walks[j][i],
                .carried = carried_walks[j][i],
                .one_sign =
                    terms_of->magnitudes[i] > 0 ? terms_of->sums[i] / terms_of->magnitudes[i] : 0,
            };
            sums[j] = estimate(p, &terms, &columns[j]);
        }
        finish(p, sums, m, n, to);
    }
}

static void run(const struct marlin_problem *p, const ptxgen_w4_info info[2], struct work *w,
                const struct results *to)
{
    load_rows(p, w);
    for (size_t first = 0; first < p->b->n; first += COLUMNS) {
        size_t count = p->b->n - first < COLUMNS ? p->b->n - first : COLUMNS;
        for (size_t i = 0; i < count; i++) {
            decode_column(p, p->b, &info[0], first + i, &w->columns[i][0]);
            if (p->up)
                decode_column(p, p->up, &info[1], first + i, &w->columns[i][1]);
        }
        for (size_t m = 0; m < p->m; m += DOTS_ROWS)
            for (size_t i = 0; i < count; i++)
                compute(p, w, w->columns[i], m, first + i, to);
    }
}

static bool allocate_work(const struct marlin_problem *p, const ptxgen_w4_info info[2],
                          struct work *w)
{
    w->a = dots_allocate(p->m, p->b->k);
    w->largest_a = dots_allocate(p->m, p->b->k / CHUNK);
    w->sum_a = calloc(p->m ? p->m : 1, sizeof *w->sum_a);
    w->rows = calloc(p->m ? p->m : 1, sizeof *w->rows);
    bool have = w->a && w->largest_a && w->sum_a && w->rows;
    for (int i = 0; have && i < COLUMNS; i++)
        have = allocate_column(&info[0], &w->columns[i][0]) &&
               (!p->up || allocate_column(&info[1], &w->columns[i][1]));
    return have;
}

static void free_work(struct work *w)
{
    free(w->a);
    free(w->largest_a);
    free(w->sum_a);
    free(w->rows);
    for (int i = 0; i < COLUMNS; i++)
        for (int j = 0; j < 2; j++)
            free_column(&w->columns[i][j]);
}

ptxgen_status marlin_reference(const struct marlin_problem *p, double *c, double *bound,
                               ptxgen_spread *spread, ptxgen_error *err)
{
    ptxgen_w4_info info[2];
    ptxgen_status status = check(p, info, err);
    if (status != PTXGEN_OK)
        return status;
    struct work work = {.a = NULL};
    if (allocate_work(p, info, &work))
        run(p, info, &work, &(struct results){c, bound, spread});
    else
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                             "no memory for %zu rows of %zu doubles", p->m, p->b->k);
    free_work(&work);
    return status;
}
