/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference: y and its bound by linear.h, with the parameters of the variant that serves this
 * M.
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

#include "../bound.h"
#include "../dots.h"
#include "../half.h"
#include "../linear.h"

#include <math.h>
#include <stdlib.h>

static const double activation_error = 0x1p-20; /* of gemm/activation.h, relative to |v| */
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
static double depth_of(const ptxgen_dense_spec *s, const ptxgen_tile *v)
{
    double stages = dense_stages_along_k(s, v);
    double steps = stages * DENSE_STEPS, parts = v->wk * v->split;
    return (s->type == PTXGEN_F32 ? SPLIT_DEPTH : MMA_DEPTH) * steps + parts - 1 + stages - 1;
}

/* ---- rows as doubles ---- */

/* Facts of a row of x or w: Σ|v|, whether all values are finite, and small enough to be split. */
struct row {
    double sum;
    bool is_finite;
    struct walk_operands operands; /* of f16 */
};

/* Loads a row's elements into `values`, `step` apart. */
static struct row load_row(const ptxgen_dense_spec *s, const void *array, uint64_t first,
                           double *values, size_t step)
{
    struct row row = {.is_finite = true};
    ptxgen_elements_load((ptxgen_element)s->type, array, first, s->k, values, step);
    for (uint32_t k = 0; k < s->k; k++) {
        double value = values[k * step];
        row.sum += fabs(value);
        if (s->type == PTXGEN_F16)
            walk_note(&row.operands, value);
        if (!isfinite(value) || (s->type == PTXGEN_F32 && fabs(value) >= largest_split))
            row.is_finite = false;
    }
    return row;
}

/* ---- the problem ---- */

static ptxgen_status check(const ptxgen_dense_plan *plan, const ptxgen_dense_operands *o,
                           ptxgen_error *err)
{
    const ptxgen_dense_spec *s = &plan->spec;
    const struct {
        const char *name;
        const void *given;
        bool needed;
        uint64_t stride, columns;
    } arrays[] = {{"x", o->x, o->m, o->x_stride, s->k},
                  {"w", o->w, true, o->w_stride, s->k},
                  {"bias", o->bias, s->bias, 0, 0},
                  {"residual", o->residual, s->residual && o->m, o->residual_stride, s->n}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        if (arrays[i].needed && !arrays[i].given)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "dense: %s is NULL",
                               arrays[i].name);
        if (arrays[i].needed && arrays[i].stride && arrays[i].stride < arrays[i].columns)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "dense: the row stride of %s, %llu, is below its %llu columns",
                               arrays[i].name, (unsigned long long)arrays[i].stride,
                               (unsigned long long)arrays[i].columns);
    }
    if (o->m && !ptxgen_dense_choose(plan, o->m))
        return gemm_refuse_m(&dense_planner, plan, o->m, err);
    for (uint32_t n = 0; s->bias && n < s->n; n++) {
        double bias = ptxgen_element_load((ptxgen_element)s->type, o->bias, n);
        if (!isfinite(bias))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "dense: bias[%u] is %g, not finite", n, bias);
    }
    return PTXGEN_OK;
}

struct reference {
    const ptxgen_dense_spec *spec;
    const ptxgen_dense_operands *o;
    struct linear_sum sum;
    struct linear_output output;
    struct dots_ways ways; /* of 128 bytes of K each, in turn */
    double *x, *w;         /* of dots.h; a feature of w */
    struct row *rows;      /* of x */
};

static struct linear_result finish(const struct reference *r, struct linear_estimate sum,
                                   const struct row *w, uint64_t m, uint32_t n)
{
    const ptxgen_dense_spec *s = r->spec;
    const ptxgen_dense_operands *o = r->o;
    ptxgen_element type = (ptxgen_element)s->type;
    uint64_t stride = o->residual_stride ? o->residual_stride : s->n;
    float bias = s->bias ? (float)ptxgen_element_load(type, o->bias, n) : 0;
    double residual = s->residual ? ptxgen_element_load(type, o->residual, m * stride + n) : 0;
    bool promised = r->rows[m].is_finite && (w->is_finite || s->type != PTXGEN_F32);
    if (s->type == PTXGEN_F32) {
        double lost = split_unit * (r->rows[m].sum + w->sum);
        sum.error += lost;
        spread_widen(&sum.spread, lost);
    }
    return linear_finish(&r->output, sum, s->bias ? &bias : NULL, s->residual ? &residual : NULL,
                         promised);
}

/* The results of a reference; the spread may be NULL. */
struct results {
    double *y, *bound;
    ptxgen_spread *spread;
};

/* Computes feature n of all tokens. */
static void compute(const struct reference *r, uint32_t n, const struct results *to)
{
    const ptxgen_dense_spec *s = r->spec;
    const ptxgen_dense_operands *o = r->o;
    const struct row w = load_row(s, o->w, n * (o->w_stride ? o->w_stride : s->k), r->w, 1);
    for (uint64_t first = 0; first < o->m; first += DOTS_ROWS) {
        struct dots dots;
        struct walk walks[DOTS_ROWS];
        dots_walk(r->x + first * s->k, r->w, s->k, &r->ways, &dots, walks);
        for (uint64_t m = first; m < o->m && m < first + DOTS_ROWS; m++) {
            struct linear_estimate sum =
                linear_add_up(&r->sum, dots.sums[m - first], dots.magnitudes[m - first],
                              &walks[m - first], walk_floor(&w.operands, &r->rows[m].operands));
            const struct linear_result result = finish(r, sum, &w, m, n);
            to->y[m * s->n + n] = result.y;
            to->bound[m * s->n + n] = result.bound;
            if (to->spread)
                to->spread[m * s->n + n] = result.spread;
        }
    }
}

static ptxgen_status run(struct reference *r, const struct results *to, ptxgen_error *err)
{
    const ptxgen_dense_spec *s = r->spec;
    const ptxgen_dense_operands *o = r->o;
    r->x = dots_allocate(o->m, s->k);
    r->w = malloc(s->k * sizeof *r->w);
    r->rows = calloc(o->m + 1, sizeof *r->rows);
    bool have = r->x && r->w && r->rows;
    for (uint64_t m = 0; have && m < o->m; m++)
        r->rows[m] = load_row(s, o->x, m * (o->x_stride ? o->x_stride : s->k),
                              dots_row(r->x, m, s->k), DOTS_ROWS);
    for (uint32_t n = 0; have && n < s->n; n++)
        compute(r, n, to);
    free(r->x);
    free(r->w);
    free(r->rows);
    return have ? PTXGEN_OK
                : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                              "dense: no memory for %llu tokens of %u", (unsigned long long)o->m,
                              s->k);
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
    bool is_curved =
        s->activation > PTXGEN_ACTIVATION_NONE && s->activation < PTXGEN_ACTIVATION_RELU;
    const ptxgen_tile *v = ptxgen_dense_choose(plan, operands->m ? operands->m : 1);
    struct reference r = {
        .spec = s,
        .o = operands,
        .ways = {.warps = v->wk, .steps = DENSE_BLOCK_BYTES / dense_element(s) / WALK_TERMS},
        .sum = {.terms = s->k,
                .depth = depth_of(s, v),
                .product_error = s->type == PTXGEN_F32 ? split_error : 0,
                .cuts = cuts_of(plan),
                .product_variance = s->type == PTXGEN_F32 ? split_variance : 0},
        .output = {.activation = (ptxgen_activation)s->activation,
                   .activation_error = is_curved ? activation_error : 0,
                   .type = (ptxgen_element)s->type,
                   .terms = s->k},
    };
    return run(&r, &(struct results){y, bound, spread}, err);
}
