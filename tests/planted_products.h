/* SPDX-License-Identifier: Apache-2.0 */
/* Products of f32, f16 and bf16 with a fault, and what a family's reference says of them. */
#ifndef PTXGEN_TESTS_PLANTED_PRODUCTS_H
#define PTXGEN_TESTS_PLANTED_PRODUCTS_H

#include "planted.h"
#include "share.h"

/* A kernel with a fault: its own idea of an element of x and of w, k along the row, and a factor.
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

/* What such a kernel makes of x [m, k] and w [n, k]: y [m, n]. */
static inline void multiply_with_fault(const struct product_fault *f, const double *x,
                                       const double *w, uint32_t m, uint32_t n, uint32_t k,
                                       double *y)
{
    uint32_t kept = k - f->left_out;
    double *row = allocate_some(kept, sizeof *row);
    double *all = allocate_some((size_t)n * kept, sizeof *all);
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t i = 0; i < kept; i++)
            all[(size_t)j * kept + i] = f->w(w[(size_t)j * k + i]);
    for (uint32_t r = 0; r < m; r++) {
        for (uint32_t i = 0; i < kept; i++)
            row[i] = f->x(x[(size_t)r * k + i]);
        for (uint32_t j = 0; j < n; j++) {
            double sum = 0;
            for (uint32_t i = 0; i < kept; i++)
                sum += row[i] * all[(size_t)j * kept + i];
            y[r * n + j] = sum * (f->factor > 0 ? f->factor : 1);
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

enum { PRODUCT_N = 64 };

/*
 * What a family's reference says of a product y [m, PRODUCT_N] of normal numbers, whose values the
 * caller frees.
 */
typedef struct said ask_of_product(const char *target, ptxgen_element type, uint32_t m, uint32_t k,
                                   double **x, double **w);

static inline void check_faults(const char *target, ptxgen_element type,
                                const struct product_fault *faults, uint32_t m, uint32_t k,
                                ask_of_product *ask)
{
    double *x, *w;
    struct said s = ask(target, type, m, k, &x, &w);
    double *y = allocate_some(s.count, sizeof *y);
    for (size_t i = 0; faults[i].name; i++) {
        multiply_with_fault(&faults[i], x, w, m, PRODUCT_N, k, y);
        assert_tells(&s, type, y, i > 0, faults[i].name, target, k);
    }
    free(y);
    free(x);
    free(w);
    said_free(&s);
}

/* Far over its limit for each fault but the first, which is none; `last` of K may be left out. */
static inline void check_product_faults(ptxgen_element type, uint32_t last, ask_of_product *ask)
{
    const struct product_fault f32[] = {
        {"none", same, same, 0, 0},
        {"one tf32 product for three", as_tf32, as_tf32, 0, 0},
        {"one tf32 product for three, cut off", cut_to_tf32, cut_to_tf32, 0, 0},
        {"two tf32 products for three, of x", same, as_tf32, 0, 0},
        {"two tf32 products for three, of w", as_tf32, same, 0, 0},
        {"bf16 operands", as_8_bits, as_8_bits, 0, 0},
        {"the last of K left out", same, same, last, 0},
        {"2^-9 too large", same, same, 0, 1 + 0x1p-9},
        {0},
    };
    const struct product_fault f16[] = {
        {"none", same, same, 0, 0},
        {"x in 8 bits", as_8_bits, same, 0, 0},
        {"w in 8 bits", same, as_8_bits, 0, 0},
        {"x in 7 bits", as_7_bits, same, 0, 0},
        {"the last of K left out", same, same, last, 0},
        {"2^-9 too large", same, same, 0, 1 + 0x1p-9},
        {0},
    };
    const struct product_fault bf16[] = {
        {"none", same, same, 0, 0},
        {"x in 7 bits", as_7_bits, same, 0, 0},
        {"w in 7 bits", same, as_7_bits, 0, 0},
        {"the last of K left out", same, same, last, 0},
        {"2^-9 too large", same, same, 0, 1 + 0x1p-9},
        {0},
    };
    static const uint32_t depths[] = {4096, 16384}, rows[] = {1, 3};
    static const char *const targets[] = {"sm_80", "sm_90a"};
    const struct product_fault *faults = type == PTXGEN_F32 ? f32 : type == PTXGEN_F16 ? f16 : bf16;
    for (int i = 0; i < 8; i++)
        if (test_in_share(i + (int)type))
            check_faults(targets[i & 1], type, faults, rows[i >> 1 & 1], depths[i >> 2], ask);
}

#endif
