/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound is that of linear.c, except for s8, whose sums are exact. Converted to f32 and scaled,
 * in any order of the factors a, s_x, s_w, a sum is rounded once, and once more for each scale,
 * with u = 2⁻²⁴; a product of two factors that underflows loses at most 2⁻¹⁴⁹ times the third
 * factor:
 *
 *     E = g(3)·|v| + 2⁻¹⁴⁹·(1 + |a| + |s_x| + |s_w|)
 *
 * The reference's own error is relative to Σ|x·w|·|s_x·s_w|. The spread has the variance of the
 * roundings, a third of u²·v² each. None of this is needed where s8 is finished step by step, since
 * the result is then exact.
 */
#include "reference.h"

#include "../bound.h"
#include "../half.h"
#include "metadata.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double unit_f32 = 0x1p-24, underflow = 0x1p-149;

/* ---- checks ---- */

static ptxgen_status check_type(const struct sparse24_problem *p, ptxgen_error *err)
{
    if (p->w.type != PTXGEN_SPARSE24_S8 && (p->x_scale || p->w_scale))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is for s8 weights only",
                           p->x_scale ? "x_scale" : "w_scale");
    if (p->w.type == PTXGEN_SPARSE24_S8 && p->w.k / 2 > INT32_MAX / (128 * 128))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "K = %zu: %zu products of s8 can overflow s32", p->w.k, p->w.k / 2);
    return PTXGEN_OK;
}

static ptxgen_status check_rows(const char *what, const void *array, size_t stride, size_t columns,
                                size_t rows, ptxgen_error *err)
{
    if (rows > 0 && columns > 0 && !array)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is NULL", what);
    if (stride < columns)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "rows of %s are %zu elements apart, less than their %zu elements", what,
                           stride, columns);
    return PTXGEN_OK;
}

static ptxgen_status check(const struct sparse24_problem *p, ptxgen_error *err)
{
    ptxgen_status status;
    if ((status = ptxgen_sparse24_validate(&p->w, p->values, p->form, p->metadata, err)) !=
            PTXGEN_OK ||
        (status = check_type(p, err)) != PTXGEN_OK ||
        (status = check_rows("x", p->x, p->x_stride, p->w.k, p->m, err)) != PTXGEN_OK ||
        (p->residual &&
         (status = check_rows("residual", p->residual, p->residual_stride, p->w.n, p->m, err)) !=
             PTXGEN_OK) ||
        (status = ptxgen_bound_check_finite("x_scale", p->x_scale, p->m, err)) != PTXGEN_OK ||
        (status = ptxgen_bound_check_finite("w_scale", p->w_scale, p->w.n, err)) != PTXGEN_OK ||
        (status = ptxgen_bound_check_finite("bias", p->bias, p->w.n, err)) != PTXGEN_OK)
        return status;
    if ((unsigned)p->activation > PTXGEN_ACTIVATION_RELU)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%d is no activation",
                           (int)p->activation);
    if (p->stepwise &&
        (p->w.type != PTXGEN_SPARSE24_S8 ||
         (p->activation != PTXGEN_ACTIVATION_NONE && p->activation != PTXGEN_ACTIVATION_RELU)))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "stepwise outputs are of s8 weights, with no activation or ReLU");
    if (!(p->product_error >= 0) || !(p->activation_error >= 0))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "product_error is %g and activation_error %g; both must be at least 0",
                           p->product_error, p->activation_error);
    return PTXGEN_OK;
}

/* ---- the sums ---- */

static double element(ptxgen_sparse24_type type, const void *array, size_t index)
{
    if (type == PTXGEN_SPARSE24_S8)
        return ((const int8_t *)array)[index];
    return ptxgen_element_load((ptxgen_element)type, array, index);
}

/* A stored weight and the column it belongs to. */
struct stored {
    double weight;
    size_t column;
};

/* Loads the two stored weights of a group; the metadata has been checked. */
static void load_stored(const struct sparse24_problem *p, size_t n, size_t group,
                        struct stored stored[SPARSE24_KEPT])
{
    unsigned nibble;
    sparse24_load_group(&p->w, p->form, p->metadata.data, n, group, &nibble, NULL);
    const unsigned position[] = {sparse24_first(nibble), sparse24_second(nibble)};
    for (size_t i = 0; i < SPARSE24_KEPT; i++) {
        size_t index = n * (p->w.k / 2) + group * SPARSE24_KEPT + i;
        stored[i].weight = element(p->w.type, p->values.data, index);
        stored[i].column = group * SPARSE24_GROUP + position[i];
    }
}

/* Tokens of a block, which is stored as doubles and whose sums are computed together. */
enum { BLOCK_ROWS = 64 };

/* Loads the tokens from `first` on into a block [k][BLOCK_ROWS]. */
static void load_block(const struct sparse24_problem *p, size_t first, size_t rows, double *block)
{
    for (size_t m = 0; m < rows; m++)
        for (size_t k = 0; k < p->w.k; k++)
            block[k * BLOCK_ROWS + m] = element(p->w.type, p->x, (first + m) * p->x_stride + k);
}

/* Σ x·w, Σ|x·w|, the walk of the sum, and its floor. */
struct sum {
    double value, magnitude, floor;
    struct walk walk;
};

/* Computes the sums of feature n with the tokens of a block; a step of the walk has 16 terms. */
static void sum_row(const struct sparse24_problem *p, size_t n, size_t rows, const double *block,
                    const struct walk_operands x_rows[BLOCK_ROWS], struct sum sums[BLOCK_ROWS])
{
    enum { STEP_GROUPS = WALK_TERMS / SPARSE24_KEPT };
    double sum[BLOCK_ROWS] = {0}, abs_sum[BLOCK_ROWS] = {0};
    struct walk_operands w_row = {.largest = 0};
    size_t groups = p->w.k / SPARSE24_GROUP;
    memset(sums, 0, rows * sizeof *sums);
    for (size_t group = 0; group < groups; group++) {
        struct stored stored[SPARSE24_KEPT];
        load_stored(p, n, group, stored);
        for (size_t i = 0; i < SPARSE24_KEPT; i++) {
            const double *x = block + stored[i].column * BLOCK_ROWS;
            if (p->w.type == PTXGEN_SPARSE24_F16)
                walk_note(&w_row, stored[i].weight);
            for (size_t m = 0; m < rows; m++) {
                double product = x[m] * stored[i].weight;
                sum[m] += product;
                abs_sum[m] += fabs(product);
            }
        }
        if (group % STEP_GROUPS == STEP_GROUPS - 1 || group + 1 == groups)
            for (size_t m = 0; m < rows; m++) {
                walk_step(&sums[m].walk, sum[m] - sums[m].value, abs_sum[m] - sums[m].magnitude);
                sums[m].value = sum[m];
                sums[m].magnitude = abs_sum[m];
            }
    }
    for (size_t m = 0; m < rows; m++)
        sums[m].floor = walk_floor(&w_row, &x_rows[m]);
}

/* ---- one output ---- */

static struct linear_estimate scaled_sum(const struct sparse24_problem *p, size_t m, size_t n,
                                         double sum, double abs_sum)
{
    double x_scale = p->x_scale ? p->x_scale[m] : 1, w_scale = p->w_scale ? p->w_scale[n] : 1;
    double roundings = 1 + (p->x_scale != NULL) + (p->w_scale != NULL);
    double value = sum * x_scale * w_scale, a = fabs(sum), sx = fabs(x_scale), sw = fabs(w_scale);
    double g = ptxgen_bound_factor(roundings, unit_f32);
    double largest = fmax(fmax(a * sx, a * sw), fmax(sx * sw, fabs(value)));
    double lost = (1 + a + sx + sw) * underflow;
    return (struct linear_estimate){
        .value = value,
        .error = largest * (1 + g) <= FLT_MAX ? g * fabs(value) + lost : NAN,
        .magnitude = abs_sum * sx * sw,
        .spread = {lost, lost, roundings * spread_of_rounding(value * value)},
    };
}

/*
 * s8: does every rounding of the kernel in its order; `volatile` prevents a compiler from fusing.
 */
static double finish_stepwise(const struct sparse24_problem *p, size_t m, size_t n, double sum)
{
    volatile float v = (float)sum;
    v = v * (p->x_scale ? p->x_scale[m] : 1);
    v = v * (p->w_scale ? p->w_scale[n] : 1);
    if (p->bias)
        v = v + p->bias[n];
    if (p->activation == PTXGEN_ACTIVATION_RELU)
        v = v < 0 ? 0 : v;
    if (p->residual)
        v = v + (float)ptxgen_element_load(p->y_type, p->residual, m * p->residual_stride + n);
    return ptxgen_element_round(p->y_type, v);
}

static struct linear_result finish(const struct sparse24_problem *p, size_t m, size_t n,
                                   bool row_is_finite, const struct sum *total)
{
    double terms = (double)(p->w.k / 2), residual = 0;
    const struct linear_sum how = {.terms = terms,
                                   .depth = p->dot_depth,
                                   .product_error = p->product_error,
                                   .cuts = {p->cut_sums, WALK_TERMS}};
    const struct linear_output output = {p->activation, p->activation_error, p->y_type, terms};
    if (p->stepwise)
        return (struct linear_result){.y = finish_stepwise(p, m, n, total->value)};
    struct linear_estimate sum =
        p->w.type == PTXGEN_SPARSE24_S8
            ? scaled_sum(p, m, n, total->value, total->magnitude)
            : linear_add_up(&how, total->value, total->magnitude, &total->walk, total->floor);
    if (p->residual)
        residual = ptxgen_element_load(p->y_type, p->residual, m * p->residual_stride + n);
    return linear_finish(&output, sum, p->bias ? &p->bias[n] : NULL, p->residual ? &residual : NULL,
                         row_is_finite);
}

static bool is_finite_row(const struct sparse24_problem *p, size_t m)
{
    for (size_t k = 0; k < p->w.k; k++)
        if (!isfinite(element(p->w.type, p->x, m * p->x_stride + k)))
            return false;
    return true;
}

/* Computes all outputs of the `rows` tokens from `first` on, which are in the block. */
static void compute(const struct sparse24_problem *p, size_t first, size_t rows,
                    const double *block, double *y, double *bound, ptxgen_spread *spread)
{
    bool is_finite[BLOCK_ROWS];
    struct walk_operands x_rows[BLOCK_ROWS] = {{.largest = 0}};
    struct sum sums[BLOCK_ROWS];
    for (size_t m = 0; m < rows; m++)
        is_finite[m] = is_finite_row(p, first + m);
    for (size_t k = 0; p->w.type == PTXGEN_SPARSE24_F16 && k < p->w.k; k++)
        for (size_t m = 0; m < rows; m++)
            walk_note(&x_rows[m], block[k * BLOCK_ROWS + m]);
    for (size_t n = 0; n < p->w.n; n++) {
        sum_row(p, n, rows, block, x_rows, sums);
        for (size_t m = 0; m < rows; m++) {
            size_t at = (first + m) * p->w.n + n;
            const struct linear_result r = finish(p, first + m, n, is_finite[m], &sums[m]);
            y[at] = r.y;
            bound[at] = r.bound;
            if (spread)
                spread[at] = r.spread;
        }
    }
}

ptxgen_status sparse24_reference(const struct sparse24_problem *p, double *y, double *bound,
                                 ptxgen_spread *spread, ptxgen_error *err)
{
    ptxgen_status status = check(p, err);
    if (status != PTXGEN_OK)
        return status;
    double *block = p->m ? calloc(p->w.k, BLOCK_ROWS * sizeof *block) : NULL;
    if (p->m && p->w.k && !block)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for rows of %zu", p->w.k);
    for (size_t first = 0; first < p->m; first += BLOCK_ROWS) {
        size_t rows = p->m - first < BLOCK_ROWS ? p->m - first : BLOCK_ROWS;
        load_block(p, first, rows, block);
        compute(p, first, rows, block, y, bound, spread);
    }
    free(block);
    return PTXGEN_OK;
}

ptxgen_status sparse24_reference_s32(const struct sparse24_problem *p, int32_t *sums,
                                     ptxgen_error *err)
{
    ptxgen_status status = check(p, err);
    if (status != PTXGEN_OK)
        return status;
    if (p->w.type != PTXGEN_SPARSE24_S8)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sums in s32 are of s8 weights, not of element type %d", (int)p->w.type);
    const int8_t *x = p->x;
    for (size_t n = 0; n < p->w.n; n++) {
        for (size_t m = 0; m < p->m; m++)
            sums[m * p->w.n + n] = 0;
        for (size_t group = 0; group < p->w.k / SPARSE24_GROUP; group++) {
            struct stored stored[SPARSE24_KEPT];
            load_stored(p, n, group, stored);
            for (size_t m = 0; m < p->m; m++)
                for (size_t i = 0; i < SPARSE24_KEPT; i++)
                    sums[m * p->w.n + n] +=
                        x[m * p->x_stride + stored[i].column] * (int32_t)stored[i].weight;
        }
    }
    return PTXGEN_OK;
}
