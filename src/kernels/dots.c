/* SPDX-License-Identifier: Apache-2.0 */
#include "dots.h"

#include <stdlib.h>
#include <string.h>

/* What the vectors of any 64-bit host hold. */
typedef double pair __attribute__((vector_size(16)));
typedef int64_t pair_bits __attribute__((vector_size(16)));

double *dots_allocate(uint64_t rows, size_t k)
{
    uint64_t padded, count;
    if (__builtin_add_overflow(rows, DOTS_ROWS - 1, &padded) ||
        __builtin_mul_overflow(padded / DOTS_ROWS * DOTS_ROWS, (uint64_t)k, &count) ||
        count > SIZE_MAX / sizeof(double))
        return NULL;
    return calloc(count ? count : 1, sizeof(double));
}

static inline void add_product(const double *x, pair w, pair *sum, pair *magnitude)
{
    pair product;
    memcpy(&product, x, sizeof product);
    product *= w;
    *sum += product;
    *magnitude += (pair)((pair_bits)product & INT64_MAX);
}

/* Written out, for compilers keep eight variables in registers, but not an array. */
void dots_sum(const double *rows, const double *w, size_t k, struct dots *dots)
{
    pair s0 = {0}, s1 = s0, s2 = s0, s3 = s0, m0 = s0, m1 = s0, m2 = s0, m3 = s0;
    for (size_t i = 0; i < k; i++) {
        const double *x = rows + i * DOTS_ROWS;
        const pair both = {w[i], w[i]};
        add_product(x, both, &s0, &m0);
        add_product(x + 2, both, &s1, &m1);
        add_product(x + 4, both, &s2, &m2);
        add_product(x + 6, both, &s3, &m3);
    }
    const pair sums[] = {s0, s1, s2, s3}, magnitudes[] = {m0, m1, m2, m3};
    memcpy(dots->sums, sums, sizeof sums);
    memcpy(dots->magnitudes, magnitudes, sizeof magnitudes);
}
