/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The w8a8 layer on the host, with the same operations as the kernels, so that outputs agree in
 * every bit. Integers are exact; every other operation is rounded in the work type, in the order
 * that the header states.
 */
#include "quantise.h"

#include <string.h>

static ptxgen_status check(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o,
                           ptxgen_error *err)
{
    if (!s || !o || !o->x || !o->w || !o->w_scale || (s->bias && !o->bias) ||
        (s->scales && (!o->x_scale || (s->asymmetric && !o->x_zero))))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: spec, operands or an operand that the spec needs is NULL");
    if (o->x_stride && o->x_stride < s->k)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: the row stride of x, %llu, is below its %u columns",
                           (unsigned long long)o->x_stride, s->k);
    return PTXGEN_OK;
}

/* ---- codes ---- */

struct range {
    double low, high; /* the least and the largest of 0 and the row */
    bool finite;
};

static struct range find_range(const ptxgen_w8a8_spec *s, const void *x, size_t first)
{
    struct range r = {.finite = true};
    for (uint32_t i = 0; i < s->k; i++) {
        double value = ptxgen_element_load((ptxgen_element)s->x_type, x, first + i);
        r.finite = r.finite && isfinite(value);
        r.low = fmin(r.low, value);
        r.high = fmax(r.high, value);
    }
    return r;
}

static double round_to_work(ptxgen_element work, double value)
{
    return work == PTXGEN_F64 ? value : (double)(float)value;
}

static ptxgen_w8a8_token dynamic_scale(const ptxgen_w8a8_spec *s, int q_min, int q_max,
                                       const struct range *r)
{
    ptxgen_element work = ptxgen_w8a8_work_type(s);
    ptxgen_w8a8_token t = {0};
    if (!s->asymmetric) {
        t.scale = w8a8_divide(work, fmax(r->high, -r->low), q_max);
        t.scale = t.scale == 0 ? 1 : t.scale;
        return t;
    }
    double range = q_max - q_min;
    t.scale =
        round_to_work(work, w8a8_divide(work, r->high, range) - w8a8_divide(work, r->low, range));
    t.scale = t.scale == 0 ? 1 : t.scale;
    double zero = q_min - rint(w8a8_divide(work, r->low, t.scale));
    t.zero = (int32_t)(zero < q_min ? q_min : zero > q_max ? q_max : zero);
    return t;
}

static ptxgen_status given_scale(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o,
                                 uint64_t m, int q_min, int q_max, ptxgen_w8a8_token *token,
                                 ptxgen_error *err)
{
    uint64_t which = s->scales == PTXGEN_W8A8_TOKEN ? m : 0;
    token->scale = ptxgen_element_load(ptxgen_w8a8_work_type(s), o->x_scale, which);
    token->zero = s->asymmetric ? o->x_zero[which] : 0;
    if (!(token->scale > 0) || !isfinite(token->scale))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: x_scale[%llu] is %g, not positive and finite",
                           (unsigned long long)which, token->scale);
    if (token->zero < q_min || token->zero > q_max)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: x_zero[%llu] is %d, not within %d ... %d",
                           (unsigned long long)which, (int)token->zero, q_min, q_max);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_w8a8_reference_codes(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o,
                                          uint64_t m, int8_t *codes, ptxgen_w8a8_token *token,
                                          ptxgen_error *err)
{
    ptxgen_status status = check(s, o, err);
    if (status != PTXGEN_OK)
        return status;
    bool by_default = !s->q_min && !s->q_max;
    int q_min = by_default ? -127 : s->q_min, q_max = by_default ? 127 : s->q_max;
    ptxgen_element work = ptxgen_w8a8_work_type(s);
    size_t first = m * (o->x_stride ? o->x_stride : s->k);
    struct range range = find_range(s, o->x, first);
    if (!range.finite) {
        *token = (ptxgen_w8a8_token){.scale = NAN};
        memset(codes, 0, s->k);
        return PTXGEN_OK;
    }
    if (!s->scales)
        *token = dynamic_scale(s, q_min, q_max, &range);
    else if ((status = given_scale(s, o, m, q_min, q_max, token, err)) != PTXGEN_OK)
        return status;
    for (uint32_t i = 0; i < s->k; i++) {
        double x = ptxgen_element_load((ptxgen_element)s->x_type, o->x, first + i);
        codes[i] = w8a8_code(work, x, token->scale, token->zero, q_min, q_max);
    }
    return PTXGEN_OK;
}

/* ---- outputs ---- */

/* The factors are 16-bit numbers, which compilers vectorise; codes and zero points have 8 bits. */
static int32_t dot(const int8_t *codes, int32_t zero, const int8_t *w, uint32_t k)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < k; i++) {
        int16_t code = (int16_t)(codes[i] - zero), weight = w[i];
        sum += code * weight;
    }
    return sum;
}

static double dequantise_f32(int32_t acc, float scale, float w_scale, const float *bias)
{
    float y = (float)acc * scale;
    y = y * w_scale;
    return bias ? y + *bias : y;
}

static double dequantise_f64(int32_t acc, double scale, double w_scale, const double *bias)
{
    double y = (double)acc * scale;
    y = y * w_scale;
    return bias ? y + *bias : y;
}

ptxgen_status ptxgen_w8a8_reference(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o,
                                    const int8_t *codes, const ptxgen_w8a8_token *token,
                                    uint32_t first_n, uint32_t count, void *y, int32_t *acc,
                                    ptxgen_error *err)
{
    ptxgen_status status = check(s, o, err);
    if (status != PTXGEN_OK)
        return status;
    if (first_n > s->n || count > s->n - first_n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: features %u to %llu of N = %u", first_n,
                           (unsigned long long)first_n + count, s->n);
    for (uint32_t i = 0; i < count; i++) {
        size_t n = (size_t)first_n + i;
        int32_t sum = dot(codes, token->zero, o->w + n * w8a8_w_stride(s), s->k);
        double value;
        if (w8a8_is_wide(s))
            value = dequantise_f64(sum, token->scale, ((const double *)o->w_scale)[n],
                                   s->bias ? (const double *)o->bias + n : NULL);
        else
            value = dequantise_f32(sum, (float)token->scale, ((const float *)o->w_scale)[n],
                                   s->bias ? (const float *)o->bias + n : NULL);
        if (w8a8_is_wide(s) && s->y_type != PTXGEN_F64)
            value = (float)value;
        ptxgen_element_store((ptxgen_element)s->y_type, y, i, value);
        if (acc)
            acc[i] = sum;
    }
    return PTXGEN_OK;
}
