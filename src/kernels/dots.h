/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Products of many rows with one column in doubles, for references. Rows stand DOTS_ROWS side by
 * side, an element of each next to the others', so that a host's vectors sum up as many rows at
 * once. Every sum takes its terms in the order of k, however wide those vectors are: all hosts
 * give the same bits.
 */
#ifndef PTXGEN_KERNELS_DOTS_H
#define PTXGEN_KERNELS_DOTS_H

#include "walk.h"

#include <ptxgen/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DOTS_ROWS = 8 };

/** Zeroed memory for `rows` rows of k doubles, and some; NULL if there is none. */
double *dots_allocate(uint64_t rows, size_t k);
/** The first element of a row; the next ones are DOTS_ROWS apart. */
static inline double *dots_row(double *rows, uint64_t row, size_t k)
{
    return rows + row / DOTS_ROWS * DOTS_ROWS * k + row % DOTS_ROWS;
}

/** Σ x·w and Σ|x·w| of DOTS_ROWS rows; `rows` is the first element of one at a multiple of that. */
struct dots {
    double sums[DOTS_ROWS], magnitudes[DOTS_ROWS];
};
void dots_sum(const double *rows, const double *w, size_t k, struct dots *dots);
/** How partial sums go along K. */
struct dots_ways {
    size_t warps,
        steps;      /**< so many warps divide K, each takes so many steps in turn; at most 16 */
    size_t restart; /**< steps after which every one starts from 0; 0: none does */
};
enum { DOTS_MOST_WAYS = 16 };
/** The same, and what the ways of each sum add up to. */
void dots_walk(const double *rows, const double *w, size_t k, const struct dots_ways *ways,
               struct dots *dots, struct walk walks[DOTS_ROWS]);

#endif
