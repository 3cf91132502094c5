/* SPDX-License-Identifier: Apache-2.0 */
/** What bench found, as lines for people or as JSON. */
#ifndef PTXGEN_CLI_BENCH_REPORT_H
#define PTXGEN_CLI_BENCH_REPORT_H

#include "bench_ceiling.h"
#include "bench_subject.h"

#include <cJSON.h>

struct bench_row {
    struct bench_subject subject; /**< its facts; the state may be gone */
    struct timing plain;
    struct timing overlapped; /**< replays 0: not offered */
    struct timing peer;       /**< replays 0: none */
};

struct bench_report {
    cJSON *json; /**< NULL: lines */
    const char *family;
    struct ceiling ceiling;
    char peer[256]; /**< its name, or why there is none */
};

/** With json, makes report->json; false when out of memory. */
bool report_start(struct bench_report *report, const struct device *device, bool json);
void report_row(struct bench_report *report, const struct bench_row *row);
/** Prints and frees the JSON, if it is that. */
void report_end(struct bench_report *report);

#endif
