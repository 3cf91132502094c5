/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct progress progress_start(const char *what, size_t total)
{
    double now = now_seconds();
    return (struct progress){what, now, now, total};
}

void progress_update(struct progress *p, size_t done)
{
    double now = now_seconds();
    if (now - p->shown < 1 || !isatty(STDERR_FILENO))
        return;
    p->shown = now;
    fprintf(stderr, "\rptxgen: %s: %zu of %zu, %.0f s", p->what, done, p->total, now - p->started);
    fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->shown > p->started)
        fputc('\n', stderr);
}
