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

/* ---- what kernels with a fault make of a row of activations ---- */

static inline void whole(double *row, uint32_t k)
{
    (void)row, (void)k;
}

static inline void in_bits(double *row, uint32_t k, int bits)
{
    for (uint32_t i = 0; i < k; i++)
        row[i] = round_to_bits(row[i], bits);
}

static inline void in_8_bits(double *row, uint32_t k)
{
    in_bits(row, k, 8);
}

static inline void in_7_bits(double *row, uint32_t k)
{
    in_bits(row, k, 7);
}

/* As ggml's q8_1: 32 at a time in steps of a 127th of the largest. */
static inline void in_blocks_of_8_bits(double *row, uint32_t k)
{
    enum { BLOCK = 32 };
    for (uint32_t i = 0; i < k; i += BLOCK) {
        double largest = 0;
        for (uint32_t j = i; j < i + BLOCK; j++)
            largest = fmax(largest, fabs(row[j]));
        for (uint32_t j = i; j < i + BLOCK && largest > 0; j++)
            row[j] = rint(row[j] * 127 / largest) * largest / 127;
    }
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
