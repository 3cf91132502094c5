/* SPDX-License-Identifier: Apache-2.0 */
#include "dots.h"

#include <stdlib.h>
#include <string.h>

/* A vector of doubles that every 64-bit host has. */
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

/* Eight variables and not an array, because compilers keep only variables in registers. */
static inline __attribute__((always_inline)) void add_products(const double *rows, const double *w,
                                                               const uint32_t *columns, size_t k,
                                                               struct dots *dots)
{
    pair s[DOTS_ROWS / 2], m[DOTS_ROWS / 2];
    memcpy(s, dots->sums, sizeof s);
    memcpy(m, dots->magnitudes, sizeof m);
    pair s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], m0 = m[0], m1 = m[1], m2 = m[2], m3 = m[3];
    for (size_t i = 0; i < k; i++) {
        const double *x = rows + (columns ? columns[i] : i) * DOTS_ROWS;
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

void dots_sum(const double *rows, const double *w, size_t k, struct dots *dots)
{
    *dots = (struct dots){.sums = {0}};
    add_products(rows, w, NULL, k, dots);
}

void dots_walk(const double *rows, const double *w, size_t k, const struct dots_ways *ways,
               struct dots *dots, struct walk walks[DOTS_ROWS])
{
    struct walk all[DOTS_MOST_WAYS][DOTS_ROWS] = {{{.sum = 0}}};
    *dots = (struct dots){.sums = {0}};
    for (size_t i = 0; i * WALK_TERMS < k; i++) {
        size_t first = i * WALK_TERMS;
        struct walk *way = all[i / ways->steps % ways->warps];
        const struct dots before = *dots;
        if (ways->restart && i % ways->restart == 0)
            for (size_t r = 0; r < DOTS_ROWS; r++)
                walk_restart(&way[r]);
        size_t count = k - first < WALK_TERMS ? k - first : WALK_TERMS;
        if (ways->columns)
            add_products(rows, w + first, ways->columns + first, count, dots);
        else
            add_products(rows + first * DOTS_ROWS, w + first, NULL, count, dots);
        for (size_t r = 0; r < DOTS_ROWS; r++)
            walk_step(&way[r], dots->sums[r] - before.sums[r],
                      dots->magnitudes[r] - before.magnitudes[r]);
    }
    memcpy(walks, all[0], sizeof all[0]);
    for (size_t i = 1; i < ways->warps; i++)
        for (size_t r = 0; r < DOTS_ROWS; r++)
            walk_join(&walks[r], &all[i][r]);
}
