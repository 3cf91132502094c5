/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Products of many rows with one column in doubles, for references. DOTS_ROWS rows are interleaved
 * element by element, so that the vectors of a host add up several rows at once. Every sum adds its
 * terms in the order of k, whatever the width of vectors, so all hosts give the same bits.
 */
#ifndef PTXGEN_KERNELS_DOTS_H
#define PTXGEN_KERNELS_DOTS_H

#include "walk.h"

#include <ptxgen/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DOTS_ROWS = 8 };

/** Allocates zeroed memory for at least `rows` rows of k doubles; NULL if memory runs out. */
double *dots_allocate(uint64_t rows, size_t k);
/** The address of a row's first element; its next elements are DOTS_ROWS apart. */
static inline double *dots_row(double *rows, uint64_t row, size_t k)
{
    return rows + row / DOTS_ROWS * DOTS_ROWS * k + row % DOTS_ROWS;
}

/** Σ x·w and Σ|x·w| of DOTS_ROWS rows; `rows` is the first element of a multiple of DOTS_ROWS. */
struct dots {
    double sums[DOTS_ROWS], magnitudes[DOTS_ROWS];
};
void dots_sum(const double *rows, const double *w, size_t k, struct dots *dots);
/** The columns of a sum, and the division of K into partial sums. */
struct dots_ways {
    size_t warps,
        steps;      /**< so many warps divide K, each takes so many steps in turn; at most 16 */
    size_t restart; /**< steps after which partial sums start from 0 again; 0: never */
    const uint32_t *columns; /**< of `rows` for each of w's elements; NULL: 0, 1, 2 and so on */
};
enum { DOTS_MOST_WAYS = 16 };
/** Like dots, and also computes the walks (walk.h) of each sum, added up. */
void dots_walk(const double *rows, const double *w, size_t k, const struct dots_ways *ways,
               struct dots *dots, struct walk walks[DOTS_ROWS]);

#endif
