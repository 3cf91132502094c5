/* SPDX-License-Identifier: Apache-2.0 */
/** Times against M, out of the JSON that bench makes. */
#ifndef PTXGEN_CLI_BENCH_SERIES_H
#define PTXGEN_CLI_BENCH_SERIES_H

#include <ptxgen/status.h>

#include <cJSON.h>
#include <stdio.h>
#include <stddef.h>

struct bench_point {
    double m;
    double ours, overlapped, peer, floor; /**< microseconds; 0: not there */
};

/** One shape, by rising M. */
struct bench_series {
    char name[512];   /**< "marlin K=4096 N=4096 group=128 f16 on NVIDIA …", printable ASCII */
    const char *peer; /**< of the JSON: its name */
    struct bench_point *points;
    size_t count;
};

/**
 * Reads the rows of one shape, from row `*row` on, and moves it behind them. Errors:
 * PTXGEN_ERROR_MALFORMED for what is no such JSON, PTXGEN_ERROR_NOT_FOUND when no row is left.
 */
ptxgen_status bench_series_read(const cJSON *bench, size_t *row, struct bench_series *series,
                                ptxgen_error *err);
void bench_series_free(struct bench_series *series);

/** From one M of the series to another: each takes more than 5 % longer than some larger M. */
struct bench_cliff {
    double from_m, to_m;
    double worst_m, than_m, by; /**< the worst of them, the fastest larger M, 0.07 for 7 % */
};

/**
 * The first cliff from point `*point` on, which moves behind it; false when there is none. Cliffs
 * next to each other are one.
 */
int bench_next_cliff(const struct bench_series *series, size_t *point, struct bench_cliff *cliff);

/** Prints a line for each cliff of each shape of the JSON, or that there is none. */
ptxgen_status bench_print_cliffs(FILE *out, const cJSON *bench, ptxgen_error *err);

#endif
