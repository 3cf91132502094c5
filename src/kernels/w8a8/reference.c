/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The w8a8 layer on the host, with the same operations as the kernels. Codes agree in every bit,
 * and so do outputs where codes are s8: integers are exact, and every other operation is rounded in
 * the work type, in the order that the header states.
 *
 * With e4m3 codes a kernel's sums are not exact. Products are; but a tensor core cuts all that it
 * adds at u·2^E, where E is the largest exponent of it, and then its result. The exponent of a
 * product is the sum of those of its factors, of which subnormal ones have that of the least normal
 * number; such factors count as that number below. wgmma and
 * mma.sync of sm_89 have u = 2⁻¹³; mma.sync of other chips, some of which multiply e4m3 as f16,
 * has 2⁻²⁴ or less (Khattak and Mikaitis, arXiv 2512.07004). A tensor core adds 32 products to a
 * sum, in one step or in two of 16, which are at most CUTS = 36 cuts. Its sums start from 0 for
 * each 128 of K of wgmma, and for each mma.sync. With M the largest magnitude among a step's
 * products and the sum before, in and after the step,
 *
 *     |error of a step| ≤ 36·u·M·(1 + 2⁻⁴)
 *
 * where 2⁻⁴ covers what the errors of the stage add to M. Sums of stages are added in f32: at most
 * K/32 additions, and as many as there are warps and CTAs along K.
 *
 * With scales of groups each group's sum begins from 0, and its errors are multiplied by the
 * product of its scales, which is rounded; the groups' sums are added by fma. A factor, and a sum,
 * may each lose 2⁻¹⁵⁰ to underflow.
 *
 * The spread counts each cut as uniform: its mean square is (u·M)²/3. Cuts have the sign of what
 * they cut: those of products of both signs cancel, and those of sums, at most SUM_CUTS = 4 in a
 * step, make the kernel's sum smaller by up to u/2 of the sum on average.
 */
#include "code_type.h"
#include "layout.h"

#include "../bound.h"
#include "../linear_product.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

static ptxgen_status check(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o,
                           ptxgen_error *err)
{
    if (!s || !o)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: a spec and operands must be given");
    const struct linear_array arrays[] = {
        {"x", o->x, true, o->x_stride, s->k},
        {"w", o->w, true, 0, 0},
        {"w_scale", o->w_scale, true, 0, 0},
        {"bias", o->bias, s->bias, 0, 0},
        {"x_scale", o->x_scale, s->scales != PTXGEN_W8A8_DYNAMIC, 0, 0},
        {"x_zero", o->x_zero, s->scales && s->asymmetric, 0, 0},
        {"residual", o->residual, s->residual, o->residual_stride, s->n}};
    return linear_check_arrays("w8a8", arrays, sizeof arrays / sizeof *arrays, err);
}

bool ptxgen_w8a8_is_exact(const ptxgen_w8a8_spec *s)
{
    return s && w8a8_code_type(s->codes)->integer && !s->activation && !w8a8_gated(s);
}

/* ---- codes ---- */

static struct w8a8_range find_range(const ptxgen_w8a8_spec *s, const void *x, size_t first,
                                    uint32_t count)
{
    struct w8a8_range r = {.finite = true};
    for (uint32_t i = 0; i < count; i++) {
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

ptxgen_w8a8_token w8a8_dynamic_token(const ptxgen_w8a8_spec *s, const struct w8a8_range *r)
{
    ptxgen_element work = ptxgen_w8a8_work_type(s);
    ptxgen_w8a8_token t = {0};
    if (!s->asymmetric) {
        t.scale = w8a8_divide(work, fmax(r->high, -r->low), s->q_max);
        t.scale = t.scale == 0 ? 1 : t.scale;
        return t;
    }
    double range = s->q_max - s->q_min;
    t.scale =
        round_to_work(work, w8a8_divide(work, r->high, range) - w8a8_divide(work, r->low, range));
    t.scale = t.scale == 0 ? 1 : t.scale;
    double zero = s->q_min - rint(w8a8_divide(work, r->low, t.scale));
    t.zero = (int32_t)fmin(fmax(zero, s->q_min), s->q_max);
    return t;
}

static ptxgen_status given_scale(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o,
                                 uint64_t which, ptxgen_w8a8_token *token, ptxgen_error *err)
{
    token->scale = ptxgen_element_load(ptxgen_w8a8_work_type(s), o->x_scale, which);
    token->zero = s->asymmetric ? o->x_zero[which] : 0;
    bool is_nan = w8a8_takes_codes(s) && isnan(token->scale); /* of a token with a NaN */
    if (!is_nan && (!(token->scale > 0) || !isfinite(token->scale)))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: x_scale[%llu] is %g, not positive and finite",
                           (unsigned long long)which, token->scale);
    if (token->zero < s->q_min || token->zero > s->q_max)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: x_zero[%llu] is %d, not within %d ... %d",
                           (unsigned long long)which, (int)token->zero, s->q_min, s->q_max);
    return PTXGEN_OK;
}

/* The codes of `count` elements from number `first` of x on, which have one scale. */
static void encode(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o, size_t first,
                   uint32_t count, const ptxgen_w8a8_token *token, int8_t *codes)
{
    ptxgen_element work = ptxgen_w8a8_work_type(s);
    for (uint32_t i = 0; i < count; i++) {
        double x = ptxgen_element_load((ptxgen_element)s->x_type, o->x, first + i);
        codes[i] =
            w8a8_token_code(s->codes, work, x, token->scale, token->zero, s->q_min, s->q_max);
    }
}

/* Quantises elements that share a scale, of number `which` where scales are given. */
static ptxgen_status quantise_part(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o,
                                   size_t first, uint32_t count, uint64_t which, int8_t *codes,
                                   ptxgen_w8a8_token *token, ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    if (w8a8_takes_codes(s)) {
        memcpy(codes, (const int8_t *)o->x + first, count);
        return given_scale(s, o, which, token, err);
    }
    struct w8a8_range range = find_range(s, o->x, first, count);
    if (!range.finite) {
        *token = (ptxgen_w8a8_token){.scale = NAN};
        memset(codes, 0, count);
        return PTXGEN_OK;
    }
    if (!s->scales)
        *token = w8a8_dynamic_token(s, &range);
    else
        status = given_scale(s, o, which, token, err);
    if (status == PTXGEN_OK)
        encode(s, o, first, count, token, codes);
    return status;
}

static ptxgen_status check_token(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_token *token,
                                 ptxgen_error *err)
{
    if (!w8a8_has_groups(s) || token->scales)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "w8a8: token.scales is NULL; with a group of %u it has room for %u scales",
                       s->group, w8a8_groups(s));
}

/* Quantises each group by itself. */
static ptxgen_status quantise_groups(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o,
                                     size_t first, int8_t *codes, ptxgen_w8a8_token *token,
                                     ptxgen_error *err)
{
    const uint32_t groups = w8a8_groups(s);
    ptxgen_status status = check_token(s, token, err);
    token->scale = 1;
    token->zero = 0;
    for (uint32_t g = 0; status == PTXGEN_OK && g < groups; g++) {
        const uint32_t from = g * PTXGEN_W8A8_GROUP, left = s->k - from;
        const uint32_t count = left < PTXGEN_W8A8_GROUP ? left : PTXGEN_W8A8_GROUP;
        ptxgen_w8a8_token part;
        status = quantise_part(s, o, first + from, count, token->m * groups + g, codes + from,
                               &part, err);
        if (status != PTXGEN_OK)
            break;
        token->scales[g] = (float)part.scale;
        token->scale = isnan(part.scale) ? NAN : token->scale;
    }
    return status;
}

ptxgen_status ptxgen_w8a8_reference_codes(const ptxgen_w8a8_spec *spec,
                                          const ptxgen_w8a8_operands *o, uint64_t m, int8_t *codes,
                                          ptxgen_w8a8_token *token, ptxgen_error *err)
{
    ptxgen_status status = check(spec, o, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_w8a8_spec filled = w8a8_with_range(spec), *s = &filled;
    size_t first = m * (o->x_stride ? o->x_stride : s->k);
    token->m = m;
    if (w8a8_has_groups(s))
        return quantise_groups(s, o, first, codes, token, err);
    uint64_t which = s->scales == PTXGEN_W8A8_TENSOR ? 0 : m;
    status = quantise_part(s, o, first, s->k, which, codes, token, err);
    token->m = m;
    return status;
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
    float v = (float)acc * scale;
    v = v * w_scale;
    return bias ? v + *bias : v;
}

static double dequantise_f64(int32_t acc, double scale, double w_scale, const double *bias)
{
    double v = (double)acc * scale;
    v = v * w_scale;
    return bias ? v + *bias : v;
}

static double residual_of(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o, uint64_t m,
                          size_t n)
{
    uint64_t stride = o->residual_stride ? o->residual_stride : s->n;
    return ptxgen_element_load((ptxgen_element)s->y_type, o->residual, m * stride + n);
}

static ptxgen_status check_features(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o,
                                    uint32_t first_n, uint32_t count, ptxgen_error *err)
{
    ptxgen_status status = check(s, o, err);
    if (status == PTXGEN_OK && (first_n > s->n || count > s->n - first_n))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: features %u to %llu of N = %u", first_n,
                           (unsigned long long)first_n + count, s->n);
    return status;
}

ptxgen_status ptxgen_w8a8_reference(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o,
                                    const int8_t *codes, const ptxgen_w8a8_token *token,
                                    uint32_t first_n, uint32_t count, void *y, int32_t *acc,
                                    ptxgen_error *err)
{
    ptxgen_status status = check_features(s, o, first_n, count, err);
    if (status != PTXGEN_OK)
        return status;
    if (!ptxgen_w8a8_is_exact(s))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: outputs of e4m3 codes, or of a function, are not exact; "
                           "ptxgen_w8a8_reference_bound says how far y may be off");
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
        if (s->residual)
            value = (float)value + (float)residual_of(s, o, token->m, n);
        ptxgen_element_store((ptxgen_element)s->y_type, y, i, value);
        if (acc)
            acc[i] = sum;
    }
    return PTXGEN_OK;
}

/* ---- outputs that are not exact, with their bound ---- */

enum { STEP = 32, CUTS = 36, SUM_CUTS = 4 };

static const double unit_f32 = 0x1p-24;

/* How a plan's kernel for m tokens sums. */
struct summing {
    uint32_t stage; /* K after which tensor cores begin from 0 */
    double unit;    /* u */
};

/* A sum of products on its way through the steps of a tensor core. */
struct sum {
    double sum, magnitude, error;
    double start;       /* the sum when the stage began */
    double least, most; /* of the sum since K began */
    double drift;       /* the mean by which cuts make the sum smaller, at most */
    struct spread spread;
};

/* Numbers of codes, and their magnitudes, at least that of the least normal number if not 0. */
struct numbers {
    double *value, *size;
};

/* Adds some products of a step; returns the largest magnitude among them and the stage's sum. */
static double add_products(struct sum *s, const struct numbers *x, const struct numbers *w,
                           uint32_t first, uint32_t count)
{
    double largest = 0;
    for (uint32_t i = first; i < first + count; i++) {
        double product = x->value[i] * w->value[i], size = x->size[i] * w->size[i];
        s->sum += product;
        s->magnitude += fabs(product);
        largest = size > largest ? size : largest;
    }
    return fmax(largest, fabs(s->sum - s->start));
}

static void add_step(const struct summing *how, struct sum *s, const struct numbers *x,
                     const struct numbers *w, uint32_t first, uint32_t count)
{
    uint32_t half = count < STEP / 2 ? count : STEP / 2;
    double sum = s->sum, size = s->magnitude, before = fabs(sum - s->start);
    double low = add_products(s, x, w, first, half);
    double high = add_products(s, x, w, first + half, count - half);
    double cut = how->unit * fmax(before, fmax(low, high));
    s->error += CUTS * cut * (1 + 0x1p-4);
    size = s->magnitude - size;
    s->drift += size > 0 ? (s->sum - sum) / size * STEP / 2 * cut : 0;
    s->drift += SUM_CUTS / 2 * how->unit * (s->sum - s->start);
    s->least = fmin(s->least, s->sum);
    s->most = fmax(s->most, s->sum);
    double far = fmax(s->sum - s->least, s->most - s->sum);
    s->spread.variance += CUTS / 3.0 * cut * cut + spread_of_rounding(far * far);
}

/* The sum of `count` products, from a multiple of the stage on. */
static struct sum sum_of(const struct summing *how, const struct numbers *x,
                         const struct numbers *w, uint32_t from, uint32_t count)
{
    enum { ENDS = 64 /* warps and CTAs along K */ };
    struct sum s = {.sum = 0};
    const uint32_t end = from + count;
    for (uint32_t first = from; first < end; first += STEP) {
        if (first % how->stage == 0)
            s.start = s.sum;
        add_step(how, &s, x, w, first, end - first < STEP ? end - first : STEP);
    }
    s.error += ptxgen_bound_factor((double)count / STEP + ENDS, unit_f32) * s.magnitude;
    s.spread.below = fmax(s.drift, 0);
    s.spread.above = fmax(-s.drift, 0);
    return s;
}

/* An exact sum of integers, which is rounded once as it becomes an f32. */
static struct sum sum_of_integers(int32_t acc)
{
    double size = fabs((double)acc), rounded = size > 0x1p24 ? size : 0;
    return (struct sum){.sum = acc,
                        .magnitude = size,
                        .error = unit_f32 * rounded,
                        .spread.variance = spread_of_rounding(rounded * rounded)};
}

/* (sum · sx) · sw, where each product may also lose 2⁻¹⁵⁰ to underflow. */
static struct linear_estimate scale(const struct sum *sum, double sx, double sw)
{
    const struct spread exact = {.below = 0};
    double once = sum->sum * sx, size = sx * fabs(sw), lost = 0x1p-150 * (fabs(sw) + 1);
    struct spread spread = spread_multiply(&sum->spread, sum->sum, &exact, sx);
    spread = spread_multiply(&spread, once, &exact, sw);
    double rounded = ptxgen_bound_factor(2, unit_f32) * (fabs(sum->sum) + sum->error);
    struct linear_estimate e = {.value = once * sw,
                                .error = (sum->error + rounded) * size + lost,
                                .magnitude = sum->magnitude * size,
                                .spread = spread};
    spread_widen(&e.spread, lost);
    return e;
}

static struct summing summing_of(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v)
{
    bool wgmma = v && gemm_is_wgmma(v);
    return (struct summing){.stage = wgmma ? W8A8_BLOCK : STEP,
                            .unit = wgmma || plan->target.ptx.sm == 89 ? 0x1p-13 : 0x1p-24};
}

/* A token and what its outputs need. */
struct outputs {
    const ptxgen_w8a8_spec *s;
    const ptxgen_w8a8_operands *o;
    const int8_t *codes;
    const ptxgen_w8a8_token *token;
    struct summing how;
    double values[256];  /* of each code of w */
    struct numbers x, w; /* the token's numbers, and room for those of a row of w */
};

/* The sum of `block`, times the product of its scales, is added to `sum` by fma. */
static void add_scaled(struct sum *sum, const struct sum *block, double factor)
{
    double scaled = block->sum * factor, size = fabs(factor), most = fabs(block->sum);
    double lost = (most + block->error + 1) * 0x1p-150;
    sum->sum += scaled;
    sum->magnitude += block->magnitude * size;
    sum->error += block->error * size + unit_f32 * (most + block->error) * size + lost;
    sum->least = fmin(sum->least, sum->sum);
    sum->most = fmax(sum->most, sum->sum);
    double far = fmax(sum->sum - sum->least, sum->most - sum->sum);
    sum->spread.below += (factor < 0 ? block->spread.above : block->spread.below) * size + lost;
    sum->spread.above += (factor < 0 ? block->spread.below : block->spread.above) * size + lost;
    sum->spread.variance += block->spread.variance * factor * factor +
                            spread_of_rounding(scaled * scaled) + spread_of_rounding(far * far);
}

/* The scaled sum of all groups; clears `promised` where the f32 of a factor may overflow. */
static struct sum sum_of_groups(const struct outputs *p, const float *x_scales,
                                const float *w_scales, bool *promised)
{
    enum { ENDS = 64 /* warps and CTAs along K */ };
    const uint32_t k = p->s->k;
    struct sum s = {.sum = 0};
    for (uint32_t g = 0; g < w8a8_groups(p->s); g++) {
        const uint32_t first = g * PTXGEN_W8A8_GROUP, left = k - first;
        const uint32_t count = left < PTXGEN_W8A8_GROUP ? left : PTXGEN_W8A8_GROUP;
        double factor = (double)x_scales[g] * w_scales[g];
        struct sum block = sum_of(&p->how, &p->x, &p->w, first, count);
        factor = isinf(block.sum) ? (float)factor : factor; /* which may become 0 */
        add_scaled(&s, &block, factor);
        *promised = *promised && !(fabs(factor) >= FLT_MAX);
    }
    s.error += ptxgen_bound_factor(w8a8_groups(p->s) + ENDS, unit_f32) * s.magnitude;
    return s;
}

static void load_numbers(const struct numbers *to, unsigned type, const double values[256],
                         const int8_t *codes, uint32_t count)
{
    const double least = w8a8_code_type(type)->least;
    for (uint32_t i = 0; i < count; i++) {
        double value = values[(uint8_t)codes[i]], size = fabs(value);
        to->value[i] = value;
        to->size[i] = size > 0 && size < least ? least : size;
    }
}

static void load_weights(const struct outputs *p, size_t row)
{
    load_numbers(&p->w, w8a8_weight_codes(p->s), p->values, p->o->w + row * w8a8_w_stride(p->s),
                 p->s->k);
}

/* The scales of w's row, one for each group; with SwiGLU eight rows of gate and of up in turn. */
static const float *scales_of_row(const ptxgen_w8a8_spec *s, const float *all, size_t row)
{
    size_t up = w8a8_gated(s) ? row / W8A8_PAIR_ROWS % 2 : 0;
    size_t feature = w8a8_gated(s) ? row / 2 / W8A8_PAIR_ROWS * W8A8_PAIR_ROWS : row;
    size_t block = up * w8a8_feature_blocks(s) + feature / PTXGEN_W8A8_GROUP;
    return all + block * w8a8_groups(s);
}

static struct linear_estimate estimate_groups(const struct outputs *p, size_t row, bool *promised)
{
    load_weights(p, row);
    const float *w_scales = scales_of_row(p->s, p->o->w_scale, row);
    struct sum sum = sum_of_groups(p, p->token->scales, w_scales, promised);
    *promised = *promised && (sum.magnitude + sum.error < FLT_MAX || isnan(sum.sum));
    return (struct linear_estimate){
        .value = sum.sum, .error = sum.error, .magnitude = sum.magnitude, .spread = sum.spread};
}

/* The scaled sum of a row of w; clears `promised` where its f32 may overflow on the way. */
static struct linear_estimate estimate(const struct outputs *p, size_t row, bool *promised)
{
    const ptxgen_w8a8_spec *s = p->s;
    const int8_t *codes = p->o->w + row * w8a8_w_stride(s);
    double sx = p->token->scale;
    struct sum sum;
    if (w8a8_has_groups(s))
        return estimate_groups(p, row, promised);
    if (w8a8_code_type(s->codes)->integer)
        sum = sum_of_integers(dot(p->codes, p->token->zero, codes, s->k));
    else {
        load_weights(p, row);
        sum = sum_of(&p->how, &p->x, &p->w, 0, s->k);
    }
    bool in_range = (fabs(sum.sum) + sum.error) * sx < FLT_MAX;
    *promised = *promised && (in_range || isnan(sum.sum * sx));
    return scale(&sum, sx, ((const float *)p->o->w_scale)[row]);
}

/* The output of an infinite sum, which stays as it is; functions of it have no bound. */
static struct linear_result finish_infinite(double sum, const double *residual)
{
    return (struct linear_result){.y = sum + (residual ? *residual : 0), .spread.deviation = NAN};
}

static struct linear_result finish(const struct outputs *p, size_t n)
{
    const ptxgen_w8a8_spec *s = p->s;
    bool promised = true, gated = w8a8_gated(s);
    size_t row = gated ? n + n / W8A8_PAIR_ROWS * W8A8_PAIR_ROWS : n;
    const float *bias = s->bias ? (const float *)p->o->bias + row : NULL;
    ptxgen_activation f = gated ? PTXGEN_ACTIVATION_SILU : (ptxgen_activation)s->activation;
    const struct linear_output how = {.type = (ptxgen_element)s->y_type,
                                      .terms = s->k,
                                      .activation = f,
                                      .activation_error = linear_activation_error(f)};
    double loaded = s->residual ? residual_of(s, p->o, p->token->m, n) : 0;
    const double *residual = s->residual ? &loaded : NULL;
    struct linear_estimate gate = estimate(p, row, &promised);
    if (isinf(gate.value) && f == PTXGEN_ACTIVATION_NONE)
        return finish_infinite(gate.value, residual);
    if (!gated)
        return linear_finish(&how, gate, bias, residual, promised);
    struct linear_estimate up = estimate(p, row + W8A8_PAIR_ROWS, &promised);
    const float *up_bias = bias ? bias + W8A8_PAIR_ROWS : NULL;
    return linear_finish_pair(&how, gate, bias, up, up_bias, residual, promised);
}

ptxgen_status ptxgen_w8a8_reference_bound(const ptxgen_w8a8_plan *plan,
                                          const ptxgen_w8a8_operands *o, const int8_t *codes,
                                          const ptxgen_w8a8_token *token, uint32_t first_n,
                                          uint32_t count, double *y, double *bound,
                                          ptxgen_spread *spread, ptxgen_error *err)
{
    if (!w8a8_is_plan(plan) || !codes || !token || !y || !bound)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: a plan that was made, codes, a token, y and bound must be given");
    const ptxgen_w8a8_spec *s = &plan->spec;
    ptxgen_status status = check_features(s, o, first_n, count, err);
    if (status == PTXGEN_OK)
        status = check_token(s, token, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_tile *v = ptxgen_w8a8_choose(plan, o->m);
    if (!v && !gemm_is_empty(&w8a8_planner, plan)) /* K of 0 needs no tile */
        return gemm_refuse_m(&w8a8_planner, plan, o->m, err);
    if (ptxgen_w8a8_is_exact(s))
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "w8a8: outputs of s8 codes have no bound; ptxgen_w8a8_reference computes "
            "their bits");
    const size_t k = s->k;
    double *room = calloc(k + 1, 4 * sizeof *room), of_x[256];
    if (!room)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                           "w8a8: no memory for two rows of %u numbers", s->k);
    struct outputs p = {s,
                        o,
                        codes,
                        token,
                        summing_of(plan, v),
                        .x = {room, room + k},
                        .w = {room + 2 * k, room + 3 * k}};
    for (uint32_t i = 0; i < 256; i++) {
        of_x[i] = w8a8_code_value(s->codes, (uint8_t)i);
        p.values[i] = w8a8_code_value(w8a8_weight_codes(s), (uint8_t)i);
    }
    load_numbers(&p.x, s->codes, of_x, codes, s->k);
    for (uint32_t i = 0; i < count; i++) {
        struct linear_result r = finish(&p, (size_t)first_n + i);
        y[i] = r.y;
        bound[i] = r.bound;
        if (spread)
            spread[i] = r.spread;
    }
    free(room);
    return PTXGEN_OK;
}
