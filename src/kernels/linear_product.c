/* SPDX-License-Identifier: Apache-2.0 */
#include "linear_product.h"

#include "half.h"

#include <math.h>
#include <stdlib.h>

ptxgen_status linear_check_arrays(const char *family, const struct linear_array *arrays,
                                  size_t count, ptxgen_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct linear_array *a = &arrays[i];
        if (a->needed && !a->given)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", family,
                               a->name);
        if (a->needed && a->stride && a->stride < a->columns)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "%s: the row stride of %s, %llu, is below its %llu columns", family,
                               a->name, (unsigned long long)a->stride,
                               (unsigned long long)a->columns);
    }
    return PTXGEN_OK;
}

static ptxgen_status check_bias(const struct linear_product *p, ptxgen_error *err)
{
    for (uint32_t n = 0; p->bias && n < p->n; n++) {
        double bias = ptxgen_element_load(p->y_type, p->bias, n);
        if (!isfinite(bias))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s: bias[%u] is %g, not finite",
                               p->family, n, bias);
    }
    return PTXGEN_OK;
}

/* Facts of a row of x or w: Σ|v|, and whether all values are finite and small enough to be split.
 */
struct row {
    double sum;
    bool is_finite;
    struct walk_operands operands; /* of f16 */
};

static struct row describe_row(const struct linear_product *p, const double *values, uint32_t count,
                               size_t step)
{
    struct row row = {.is_finite = true};
    for (uint32_t i = 0; i < count; i++) {
        double value = values[i * step];
        row.sum += fabs(value);
        if (p->type == PTXGEN_F16 && !p->has_codes)
            walk_note(&row.operands, value);
        if (!isfinite(value) || (p->largest_split > 0 && fabs(value) >= p->largest_split))
            row.is_finite = false;
    }
    return row;
}

struct work {
    double *x, *w; /* of dots.h; a feature's weights */
    uint32_t *columns;
    struct row *rows; /* of x */
};

static void load_x(const struct linear_product *p, struct work *work)
{
    for (uint64_t m = 0; m < p->m; m++) {
        double *row = dots_row(work->x, m, p->k);
        size_t first = m * (p->x_stride ? p->x_stride : p->k);
        for (uint32_t k = 0; p->has_codes && k < p->k; k++)
            row[k * DOTS_ROWS] = ((const int8_t *)p->x)[first + k];
        if (!p->has_codes)
            ptxgen_elements_load(p->type, p->x, first, p->k, row, DOTS_ROWS);
        work->rows[m] = describe_row(p, row, p->k, DOTS_ROWS);
    }
}

/* A sum over K, of token m and feature n. */
struct sum {
    uint64_t m;
    uint32_t n;
    double value, magnitude;
    struct walk walk;
};

static struct linear_result finish(const struct linear_product *p, const struct sum *s,
                                   const struct row *x, const struct row *w)
{
    uint64_t stride = p->residual_stride ? p->residual_stride : p->n;
    float loaded_bias = 0;
    double loaded_residual = 0;
    if (p->bias)
        loaded_bias = (float)ptxgen_element_load(p->y_type, p->bias, s->n);
    if (p->residual)
        loaded_residual = ptxgen_element_load(p->y_type, p->residual, s->m * stride + s->n);
    const float *bias = p->bias ? &loaded_bias : NULL;
    const double *residual = p->residual ? &loaded_residual : NULL;
    if (p->finish)
        return (struct linear_result){.y =
                                          p->finish(p->user, s->m, s->n, s->value, bias, residual)};
    const struct linear_sum how = {.terms = p->terms,
                                   .depth = p->depth,
                                   .product_error = p->product_error,
                                   .cuts = p->cuts,
                                   .product_variance = p->product_variance};
    const struct linear_output output = {p->activation, linear_activation_error(p->activation),
                                         p->y_type, p->terms};
    struct linear_estimate sum = p->scale ? p->scale(p->user, s->m, s->n, s->value, s->magnitude)
                                          : linear_add_up(&how, s->value, s->magnitude, &s->walk,
                                                          walk_floor(&w->operands, &x->operands));
    if (p->split_unit > 0) {
        double lost = p->split_unit * (x->sum + w->sum);
        sum.error += lost;
        spread_widen(&sum.spread, lost);
    }
    return linear_finish(&output, sum, bias, residual,
                         x->is_finite && (w->is_finite || !(p->split_unit > 0)));
}

static void run(const struct linear_product *p, struct work *work, double *y, double *bound,
                ptxgen_spread *spread)
{
    const struct dots_ways ways = {
        .warps = p->warps, .steps = p->steps, .columns = p->terms == p->k ? NULL : work->columns};
    load_x(p, work);
    for (uint32_t n = 0; n < p->n; n++) {
        p->load_feature(p->user, n, work->w, work->columns);
        const struct row w = describe_row(p, work->w, p->terms, 1);
        struct dots dots;
        struct walk walks[DOTS_ROWS];
        for (uint64_t m = 0; m < p->m; m++) {
            size_t i = m % DOTS_ROWS, at = m * p->n + n;
            if (i == 0)
                dots_walk(work->x + m * p->k, work->w, p->terms, &ways, &dots, walks);
            const struct sum sum = {m, n, dots.sums[i], dots.magnitudes[i], walks[i]};
            const struct linear_result r = finish(p, &sum, &work->rows[m], &w);
            y[at] = r.y;
            bound[at] = r.bound;
            if (spread)
                spread[at] = r.spread;
        }
    }
}

ptxgen_status linear_product_reference(const struct linear_product *p, double *y, double *bound,
                                       ptxgen_spread *spread, ptxgen_error *err)
{
    ptxgen_status status = check_bias(p, err);
    if (status != PTXGEN_OK)
        return status;
    struct work work = {.x = dots_allocate(p->m, p->k),
                        .w = calloc((size_t)p->terms + 1, sizeof *work.w),
                        .columns = calloc((size_t)p->terms + 1, sizeof *work.columns),
                        .rows = calloc(p->m + 1, sizeof *work.rows)};
    if (work.x && work.w && work.columns && work.rows)
        run(p, &work, y, bound, spread);
    else
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "%s: no memory for %llu tokens of %u",
                             p->family, (unsigned long long)p->m, p->k);
    free(work.x);
    free(work.w);
    free(work.columns);
    free(work.rows);
    return status;
}
