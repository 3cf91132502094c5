/* SPDX-License-Identifier: Apache-2.0 */
/** What several rounds over a list of M find for each of them. */
#ifndef PTXGEN_CLI_BENCH_ROUNDS_H
#define PTXGEN_CLI_BENCH_ROUNDS_H

#include "bench_report.h"

enum { BENCH_MOST_ROUNDS = 100 };

struct bench_round; /**< the times of one */

/** Of one M. */
struct bench_rounds {
    struct bench_round *each;
    unsigned count; /**< that are there */
};

/** For `ms` M, each with room for `rounds`: to be freed as a whole. NULL when out of memory. */
struct bench_rounds *bench_rounds_start(unsigned ms, unsigned rounds);
/** Keeps the row's times as those of one more round. */
void bench_rounds_add(struct bench_rounds *r, const struct bench_row *row);
/** Gives the row the medians of the rounds' medians, and the least and the most of all. */
void bench_rounds_medians(const struct bench_rounds *r, struct bench_row *row);

#endif
