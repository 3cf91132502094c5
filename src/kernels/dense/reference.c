/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Y and its bound by linear.h, with the figures of the variant that serves this N.
 *
 * f32: x = h + l exactly, h the nearest tf32, so |l| ≤ 2⁻¹¹|x|; of l the tensor core takes 11
 * bits, l', which leaves |l − l'| ≤ 2⁻²³|x|, for l has at most 12. h·h' + h·l' + l'·h' are
 * summed; so of x·w are missing l'·l', below 2⁻²²|x·w|, and twice a product with what l' has left
 * out, below 2⁻²³: product_error = 2⁻²¹ and a little for products of small errors. Below
 * 2⁻¹²⁶ tf32 has units of 2⁻¹³⁶, of which each operand may lose one.
 */
#include "layout.h"

#include "../bound.h"
#include "../linear.h"

#include <math.h>
#include <stdlib.h>

static const double activation_error = 0x1p-20; /* of tile/activation.h, relative to |v| */
static const double split_error = 0x1p-21 * (1 + 0x1p-9), split_unit = 0x1p-136;
static const double largest_split = 0x1p128 - 0x1p116; /* from there on a tf32 would be infinite */

/*
 * Additions that an mma step counts as: m16n8k16 may be two products of 8 terms, 8 + 3 each;
 * f32 has three of m16n8k8, each perhaps two of 4 terms.
 */
enum { MMA_DEPTH = 22, SPLIT_DEPTH = 42 };

/*
 * The longest way of a term into a sum: through the mma steps of a warp along K, over the warps along
 * K, over the CTAs that share the tile, one a stage at most.
 */
static double depth_of(const ptxgen_dense_spec *s, const ptxgen_dense_variant *v)
{
    double stages = dense_stages_along_k(s, v);
    return (s->type == PTXGEN_F32 ? SPLIT_DEPTH : MMA_DEPTH) * stages * DENSE_STEPS + v->wk - 1 +
           stages - 1;
}

/* ---- rows as doubles ---- */

struct row {
    double *values;
    double sum;    /* Σ|v| */
    bool is_finite; /* … and f32 small enough to be split */
};

static void load_row(const ptxgen_dense_spec *s, const void *array, uint64_t first, struct row *row)
{
    row->sum = 0;
    row->is_finite = true;
    for (uint32_t k = 0; k < s->k; k++) {
        double value = ptxgen_element_load((ptxgen_element)s->type, array, first + k);
        row->values[k] = value;
        row->sum += fabs(value);
        if (!isfinite(value) || (s->type == PTXGEN_F32 && fabs(value) >= largest_split))
            row->is_finite = false;
    }
}

static struct linear_estimate dot(const ptxgen_dense_spec *s, const struct linear_sum *how,
                                  const struct row *x, const struct row *w)
{
    double sum = 0, magnitude = 0;
    for (uint32_t k = 0; k < s->k; k++) {
        double product = x->values[k] * w->values[k];
        sum += product;
        magnitude += fabs(product);
    }
    struct linear_estimate e = linear_add_up(how, sum, magnitude);
    if (s->type == PTXGEN_F32)
        e.error += split_unit * (x->sum + w->sum);
    return e;
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
    } arrays[] = {{"x", o->x, o->n, o->x_stride, s->k},
                  {"w", o->w, true, o->w_stride, s->k},
                  {"bias", o->bias, s->bias, 0, 0},
                  {"residual", o->residual, s->residual && o->n, o->residual_stride, s->m}};
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
    if (o->n && !ptxgen_dense_choose(plan, o->n))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "dense: no variant serves n = %llu",
                           (unsigned long long)o->n);
    for (uint32_t m = 0; s->bias && m < s->m; m++) {
        float bias = (float)ptxgen_element_load((ptxgen_element)s->type, o->bias, m);
        ptxgen_status status = ptxgen_bound_check_finite("bias", &bias, 1, err);
        if (status != PTXGEN_OK)
            return status;
    }
    return PTXGEN_OK;
}

struct reference {
    const ptxgen_dense_spec *spec;
    const ptxgen_dense_operands *o;
    struct linear_sum sum;
    struct linear_output output;
    struct row *x, w; /* of n rows */
};

static void compute(const struct reference *r, uint64_t n, uint32_t m, double *y, double *bound)
{
    const ptxgen_dense_spec *s = r->spec;
    const ptxgen_dense_operands *o = r->o;
    ptxgen_element type = (ptxgen_element)s->type;
    uint64_t stride = o->residual_stride ? o->residual_stride : s->m;
    float bias = s->bias ? (float)ptxgen_element_load(type, o->bias, m) : 0;
    double residual = s->residual ? ptxgen_element_load(type, o->residual, n * stride + m) : 0;
    bool promised = r->x[n].is_finite && (r->w.is_finite || s->type != PTXGEN_F32);
    linear_finish(&r->output, dot(s, &r->sum, &r->x[n], &r->w), s->bias ? &bias : NULL,
                  s->residual ? &residual : NULL, promised, y, bound);
}

static ptxgen_status run(struct reference *r, double *y, double *bound, ptxgen_error *err)
{
    const ptxgen_dense_spec *s = r->spec;
    const ptxgen_dense_operands *o = r->o;
    uint64_t count, bytes;
    if (__builtin_mul_overflow(o->n + 1, (uint64_t)s->k, &count) ||
        __builtin_mul_overflow(count, sizeof(double), &bytes) || bytes > SIZE_MAX / 2)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "dense: no memory for %llu rows of %u",
                           (unsigned long long)o->n, s->k);
    double *values = malloc(bytes);
    r->x = malloc((o->n + 1) * sizeof *r->x);
    if (values && r->x) {
        r->w.values = values + o->n * s->k;
        for (uint64_t n = 0; n < o->n; n++) {
            r->x[n].values = values + n * s->k;
            load_row(s, o->x, n * (o->x_stride ? o->x_stride : s->k), &r->x[n]);
        }
        for (uint32_t m = 0; m < s->m; m++) {
            load_row(s, o->w, m * (o->w_stride ? o->w_stride : s->k), &r->w);
            for (uint64_t n = 0; n < o->n; n++)
                compute(r, n, m, &y[n * s->m + m], &bound[n * s->m + m]);
        }
    }
    bool done = values && r->x;
    free(values);
    free(r->x);
    return done ? PTXGEN_OK
                : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                              "dense: no memory for %llu rows of %u", (unsigned long long)o->n,
                              s->k);
}

ptxgen_status ptxgen_dense_reference(const ptxgen_dense_plan *plan,
                                     const ptxgen_dense_operands *operands, double *y,
                                     double *bound, ptxgen_error *err)
{
    if (!plan || !operands || (operands->n && (!y || !bound)))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: plan, operands, y and bound must be given");
    ptxgen_status status = check(plan, operands, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_dense_spec *s = &plan->spec;
    bool is_curved = s->activation > PTXGEN_ACTIVATION_NONE && s->activation < PTXGEN_ACTIVATION_RELU;
    struct reference r = {
        .spec = s,
        .o = operands,
        .sum = {.terms = s->k,
                .depth = depth_of(s, ptxgen_dense_choose(plan, operands->n ? operands->n : 1)),
                .product_error = s->type == PTXGEN_F32 ? split_error : 0},
        .output = {.activation = (ptxgen_activation)s->activation,
                   .activation_error = is_curved ? activation_error : 0,
                   .type = (ptxgen_element)s->type,
                   .terms = s->k},
    };
    return run(&r, y, bound, err);
}
