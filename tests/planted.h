/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs of kernels with a fault, made in doubles from operands that are less than they should be,
 * for tests of what a comparison notices.
 */
#ifndef PTXGEN_TESTS_PLANTED_H
#define PTXGEN_TESTS_PLANTED_H

#include "random.h"
#include "status.h"

#include <ptxgen/accuracy.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* To so many significant bits, ties to even. */
static inline double round_to_bits(double value, int bits)
{
    int exponent;
    double mantissa = frexp(value, &exponent);
    return ldexp(rint(ldexp(mantissa, bits)), exponent - bits);
}

static inline double truncate_to_bits(double value, int bits)
{
    int exponent;
    double mantissa = frexp(value, &exponent);
    return ldexp(trunc(ldexp(mantissa, bits)), exponent - bits);
}

/* The value of `type` that `value` rounds to. */
static inline double round_to_type(ptxgen_element type, double value)
{
    double element; /* room for any type */
    ptxgen_element_store(type, &element, 0, value);
    return ptxgen_element_load(type, &element, 0);
}

static inline void *allocate_some(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    assert_non_null(memory);
    return memory;
}

/* ---- products with a fault ---- */

/* A kernel with a fault: its own idea of an element of X and of W, k along the row, and a factor.
 */
struct product_fault {
    const char *name;
    double (*x)(double value);
    double (*w)(double value);
    uint32_t left_out; /* of the last columns */
    double factor;     /* 0: 1 */
};

static inline double same(double value)
{
    return value;
}

static inline double as_tf32(double value)
{
    return round_to_bits(value, 11);
}

static inline double cut_to_tf32(double value)
{
    return truncate_to_bits(value, 11);
}

static inline double as_8_bits(double value)
{
    return round_to_bits(value, 8);
}

static inline double as_7_bits(double value)
{
    return round_to_bits(value, 7);
}

/* What such a kernel makes of X, [n, k], and W, [m, k]: y, [n, m]. */
static inline void multiply_with_fault(const struct product_fault *f, const double *x,
                                       const double *w, uint32_t n, uint32_t m, uint32_t k,
                                       double *y)
{
    uint32_t kept = k - f->left_out;
    double *row = allocate_some(kept, sizeof *row);
    double *all = allocate_some((size_t)m * kept, sizeof *all);
    for (uint32_t j = 0; j < m; j++)
        for (uint32_t i = 0; i < kept; i++)
            all[(size_t)j * kept + i] = f->w(w[(size_t)j * k + i]);
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t i = 0; i < kept; i++)
            row[i] = f->x(x[(size_t)r * k + i]);
        for (uint32_t j = 0; j < m; j++) {
            double sum = 0;
            for (uint32_t i = 0; i < kept; i++)
                sum += row[i] * all[(size_t)j * kept + i];
            y[r * m + j] = sum * (f->factor > 0 ? f->factor : 1);
        }
    }
    free(row);
    free(all);
}

/* `count` normal numbers of a type: their elements, and their values, which the caller frees. */
static inline double *draw_elements(struct random *r, ptxgen_element type, size_t count,
                                    void *elements)
{
    double *values = allocate_some(count, sizeof *values);
    for (size_t i = 0; i < count; i++) {
        ptxgen_element_store(type, elements, i, random_normal(r));
        values[i] = ptxgen_element_load(type, elements, i);
    }
    return values;
}

/* ---- what a reference says of them ---- */

/* Of `count` outputs. */
struct said {
    size_t count;
    double *y, *bound;
    ptxgen_spread *spread;
};

static inline struct said said_allocate(size_t count)
{
    return (struct said){count, allocate_some(count, sizeof(double)),
                         allocate_some(count, sizeof(double)),
                         allocate_some(count, sizeof(ptxgen_spread))};
}

static inline void said_free(struct said *s)
{
    free(s->y);
    free(s->bound);
    free(s->spread);
}

/* The ratio of the tally of these values, each rounded to `type`. */
static inline double ratio_of(const struct said *s, ptxgen_element type, const double *values)
{
    ptxgen_tally tally = {.outputs = 0};
    for (size_t i = 0; i < s->count; i++)
        ptxgen_tally_add(&tally, type, round_to_type(type, values[i]), s->y[i], s->bound[i],
                         &s->spread[i]);
    assert_int_equal(tally.outputs, s->count);
    return ptxgen_tally_ratio(&tally);
}

/*
 * The spread of outputs with a fault is three times its limit at least, without one half of it at
 * most.
 */
static inline void assert_tells(const struct said *s, ptxgen_element type, const double *values,
                                bool has_fault, const char *fault, const char *target, uint32_t k)
{
    double ratio = ratio_of(s, type, values);
    if (has_fault ? ratio < 3 : ratio > 0.5)
        fail_msg("%s, K=%u, output type %d: with the fault '%s' the spread is %g of its limit",
                 target, k, (int)type, fault, ratio);
}

#endif
