/* SPDX-License-Identifier: Apache-2.0 */
/** What bench found, as lines for people or as JSON; the JSON is made in either case. */
#ifndef PTXGEN_CLI_BENCH_REPORT_H
#define PTXGEN_CLI_BENCH_REPORT_H

#include "bench_ceiling.h"
#include "../harness/bench.h"
#include "bench_tensor.h"
#include "json_draft.h"

struct bench_row {
    struct bench_subject subject; /**< its facts; the state may be gone */
    struct timing plain;
    struct timing overlapped; /**< replays 0: not offered */
    struct timing peer;       /**< replays 0: none */
    char peer_missing[256];   /**< why an open peer has no time here; "" otherwise */
};

struct bench_report {
    struct json_draft json;
    bool prints_json; /**< else lines, as they come */
    const char *family;
    struct ceiling ceiling;
    struct tensor_ceiling tensor; /**< rate 0: no row needs it */
    char peer[256];               /**< its name, or why there is none */
};

/** Begins report->json, which memory may run out for: report_print_end says so. */
void report_start(struct bench_report *report, const struct device *device, bool prints_json);
/** Adds the tensor cores' ceiling, before the first row that needs it. */
void report_tensor_ceiling(struct bench_report *report, const struct tensor_ceiling *tensor);
void report_row(struct bench_report *report, const struct bench_row *row);
/** Prints the JSON, or which M are slower than larger ones. */
ptxgen_status report_print_end(const struct bench_report *report, ptxgen_error *err);
void report_end(struct bench_report *report);

#endif
