/* SPDX-License-Identifier: Apache-2.0 */
/** A line on stderr, renewed each second, for whatever takes longer than that; on a terminal only.
 */
#ifndef PTXGEN_HARNESS_PROGRESS_H
#define PTXGEN_HARNESS_PROGRESS_H

#include <stddef.h>

struct progress {
    const char *what;
    double started, shown; /* seconds of the monotonic clock */
    size_t total;
};

/** `what` must outlive the progress: "checking rows". */
struct progress progress_start(const char *what, size_t total);
/** `done` of the total; prints at most once a second, and nothing in the first. */
void progress_update(struct progress *p, size_t done);
/** Ends the line, if one was printed. */
void progress_end(struct progress *p);

/** Seconds of the monotonic clock. */
double now_seconds(void);

#endif
