/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a launch of quantise writes, on the host. Rows without a producer and those of RMSNorm are
 * made by the same operations as in the kernel, so all bits agree.
 *
 * With SILU_MUL each element lies in an interval: about silu(gate) · up, |gate · up| · 2⁻²⁰ for the
 * kernel's silu and |silu · up| · 2⁻²³ for the roundings, the product's among them; both ends are
 * rounded to x's type, which is monotone. The scale rises with the magnitudes of the row, and a
 * code is monotone in the element, the scale and the zero point one by one, so the ends of these
 * intervals give the ends of the code's.
 */
#include "layout.h"

#include "../activation.h"
#include "../half.h"
#include "../w8a8/code_type.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* A row in x's type: least, likely and largest values, which are one array where they are equal. */
struct row {
    double *low, *value, *high;
};

static ptxgen_status check(const ptxgen_quantise_spec *s, const ptxgen_quantise_operands *o,
                           uint64_t m, const ptxgen_quantise_token *t, ptxgen_error *err)
{
    if (!s || !o || !t || !o->x || !t->codes || !t->scales || (s->residual && !o->residual) ||
        (quantise_is_norm(s) && !o->gamma))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "quantise: spec, operands, token or an array that the spec needs is "
                           "NULL");
    if (m >= o->m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "quantise: there is no token %llu among %llu", (unsigned long long)m,
                           (unsigned long long)o->m);
    if ((o->x_stride && o->x_stride < quantise_x_columns(s)) ||
        (s->residual && o->residual_stride && o->residual_stride < s->k))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "quantise: a row stride, %llu of x or %llu of residual, is below the "
                           "row's %u columns",
                           (unsigned long long)o->x_stride, (unsigned long long)o->residual_stride,
                           quantise_x_columns(s));
    return quantise_check_spec(s, err);
}

/* ---- rows ---- */

static double rounded(const ptxgen_quantise_spec *s, double value)
{
    return ptxgen_element_round((ptxgen_element)s->x_type, value);
}

/* Each thread's sum of squares, then sums of threads whose numbers differ in one bit. */
static float sum_squares(const ptxgen_quantise_spec *s, const double *row)
{
    float sums[1024] = {0};
    const uint32_t threads = quantise_threads(s);
    for (uint32_t i = 0; i < s->k; i++) {
        float *sum = &sums[i / QUANTISE_CHUNK % threads];
        *sum = fmaf((float)row[i], (float)row[i], *sum);
    }
    for (uint32_t width = threads; width > 1; width /= 2)
        for (uint32_t i = 0; i < width / 2; i++)
            sums[i] = sums[2 * i] + sums[2 * i + 1];
    return sums[0];
}

static void normalise(const ptxgen_quantise_spec *s, const void *gamma, double *row)
{
    float mean = sum_squares(s, row) * (1.0f / (float)s->k);
    float r = 1.0f / sqrtf(mean + s->epsilon);
    for (uint32_t i = 0; i < s->k; i++) {
        float weight = (float)ptxgen_element_load((ptxgen_element)s->gamma_type, gamma, i);
        float scaled = (float)row[i] * r;
        row[i] = rounded(s, scaled * weight);
    }
}

static void multiply_by_up(const ptxgen_quantise_spec *s, const void *x, size_t first,
                           struct row *row)
{
    for (uint32_t i = 0; i < s->k; i++) {
        double gate = ptxgen_element_load((ptxgen_element)s->x_type, x, first + i);
        double up = ptxgen_element_load((ptxgen_element)s->x_type, x, first + s->k + i);
        double value = activation_named(PTXGEN_ACTIVATION_SILU)->of(gate) * up;
        double off = fabs(gate * up) * 0x1p-20 + fabs(value) * 0x1p-23 + 0x1p-148;
        bool finite = isfinite(off);
        off = gate * up == 0 ? 0 : off;
        row->value[i] = rounded(s, value);
        row->low[i] = finite ? rounded(s, value - off) : row->value[i];
        row->high[i] = finite ? rounded(s, value + off) : row->value[i];
    }
}

static void make_row(const ptxgen_quantise_spec *s, const ptxgen_quantise_operands *o, uint64_t m,
                     void *residual_out, struct row *row)
{
    const ptxgen_element type = (ptxgen_element)s->x_type;
    size_t first = m * (o->x_stride ? o->x_stride : quantise_x_columns(s));
    size_t added = m * (o->residual_stride ? o->residual_stride : s->k);
    if (quantise_is_gated(s)) {
        multiply_by_up(s, o->x, first, row);
        return;
    }
    for (uint32_t i = 0; i < s->k; i++) {
        float x = (float)ptxgen_element_load(type, o->x, first + i);
        if (s->residual)
            x += (float)ptxgen_element_load(type, o->residual, added + i);
        row->value[i] = rounded(s, x);
        if (s->residual && residual_out)
            ptxgen_element_store(type, residual_out, i, row->value[i]);
    }
    if (quantise_is_norm(s))
        normalise(s, o->gamma, row->value);
}

/* ---- codes ---- */

/* Scales and zero points of a group: likely ones, and the least and the largest. */
struct scales {
    ptxgen_w8a8_token token, least, most;
    int32_t least_zero, most_zero;
    bool finite, stated; /* stated: what is finite is so for the whole interval */
};

static void widen(struct w8a8_range *range, double value)
{
    range->finite = range->finite && isfinite(value);
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
}

static struct w8a8_range range_of(const double *values, uint32_t count)
{
    struct w8a8_range range = {.finite = true};
    for (uint32_t i = 0; i < count; i++)
        widen(&range, values[i]);
    return range;
}

static void widen_zeros(const ptxgen_w8a8_spec *w, double low, double scale, struct scales *s)
{
    double zero = w->q_min - rint(w8a8_divide(PTXGEN_F32, low, scale));
    int32_t cut = (int32_t)fmin(fmax(zero, w->q_min), w->q_max);
    s->least_zero = cut < s->least_zero ? cut : s->least_zero;
    s->most_zero = cut > s->most_zero ? cut : s->most_zero;
}

static struct scales find_scales(const ptxgen_w8a8_spec *w, const struct row *row, uint32_t first,
                                 uint32_t count)
{
    const struct w8a8_range range = range_of(row->value + first, count);
    /* Of the ends nearer to 0, and of those farther from it. */
    const struct w8a8_range low = range_of(row->low + first, count);
    const struct w8a8_range high = range_of(row->high + first, count);
    const struct w8a8_range near = {high.low, low.high, true}, far = {low.low, high.high, true};
    struct scales s = {.finite = range.finite};
    s.stated = range.finite == (low.finite && high.finite);
    if (!range.finite) {
        s.token = (ptxgen_w8a8_token){.scale = NAN};
        return s;
    }
    s.token = w8a8_dynamic_token(w, &range);
    s.least = w8a8_dynamic_token(w, &near);
    s.most = w8a8_dynamic_token(w, &far);
    bool near_zero = near.low == 0 && near.high == 0, far_zero = far.low == 0 && far.high == 0;
    s.stated = s.stated && near_zero == far_zero;
    s.least_zero = s.most_zero = s.token.zero;
    for (int i = 0; w->asymmetric && i < 4; i++)
        widen_zeros(w, i % 2 ? near.low : far.low, i / 2 ? s.least.scale : s.most.scale, &s);
    return s;
}

static int8_t code(const ptxgen_w8a8_spec *w, double value, double scale, int32_t zero)
{
    return w8a8_token_code(w->codes, PTXGEN_F32, value, scale, zero, w->q_min, w->q_max);
}

/* How far a code may be off, from the codes at the ends of all intervals. */
static uint8_t bound_of(const ptxgen_w8a8_spec *w, const struct row *row, uint32_t i,
                        const struct scales *s, int8_t likely)
{
    enum { NO_STATEMENT = 255, MOST = 254 };
    int off = 0;
    if (!s->stated || (w->codes && signbit(row->low[i]) != signbit(row->high[i])))
        return NO_STATEMENT;
    for (int end = 0; end < 8; end++) {
        int apart =
            code(w, end & 1 ? row->low[i] : row->high[i], end & 2 ? s->least.scale : s->most.scale,
                 end & 4 ? s->least_zero : s->most_zero) -
            likely;
        off = abs(apart) > off ? abs(apart) : off;
    }
    return (uint8_t)(off < MOST ? off : MOST);
}

static double scale_bound(const struct scales *s)
{
    if (!s->stated)
        return NAN;
    return s->finite ? fmax(s->most.scale - s->token.scale, s->token.scale - s->least.scale) : 0;
}

static void quantise_group(const ptxgen_w8a8_spec *w, const struct row *row, uint32_t first,
                           uint32_t count, uint32_t group, const ptxgen_quantise_token *t)
{
    const struct scales s = find_scales(w, row, first, count);
    const bool exact = row->low == row->high;
    t->scales[group] = (float)s.token.scale;
    if (t->scale_bounds)
        t->scale_bounds[group] = scale_bound(&s);
    if (t->zeros)
        t->zeros[group] = s.token.zero;
    if (t->zero_bounds)
        t->zero_bounds[group] = s.stated ? s.most_zero - s.least_zero : 255;
    for (uint32_t i = first; i < first + count; i++) {
        t->codes[i] = s.finite ? code(w, row->value[i], s.token.scale, s.token.zero) : 0;
        if (t->code_bounds)
            t->code_bounds[i] =
                exact || (s.stated && !s.finite) ? 0 : bound_of(w, row, i, &s, t->codes[i]);
    }
}

ptxgen_status ptxgen_quantise_reference(const ptxgen_quantise_spec *s,
                                        const ptxgen_quantise_operands *o, uint64_t m,
                                        const ptxgen_quantise_token *t, ptxgen_error *err)
{
    ptxgen_status status = check(s, o, m, t, err);
    if (status != PTXGEN_OK)
        return status;
    const size_t arrays = quantise_is_gated(s) ? 3 : 1;
    double *values = malloc(arrays * s->k * sizeof *values);
    if (!values)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "quantise: no memory for a row");
    struct row row = {values, values, values};
    if (quantise_is_gated(s)) {
        row.value = values + s->k;
        row.high = row.value + s->k;
    }
    const ptxgen_w8a8_spec w = quantise_row_spec(s);
    const uint32_t width = quantise_group_size(s);
    make_row(s, o, m, t->residual_out, &row);
    for (uint32_t first = 0, group = 0; first < s->k; first += width, group++)
        quantise_group(&w, &row, first, s->k - first < width ? s->k - first : width, group, t);
    free(values);
    return PTXGEN_OK;
}
