/* SPDX-License-Identifier: Apache-2.0 */
#include "threaded_rows.h"

#include <pthread.h>
#include <stdlib.h>

struct parts {
    size_t rows;
    w4_work *work;
    void *job;
    ptxgen_w4_repack_options options;

    pthread_mutex_t lock; /* guards the members below */
    size_t next_row, done_rows;
    size_t failed_row; /* SIZE_MAX: none */
    ptxgen_error failure;
};

/* Takes the next part: returns its first row, or `rows` or more if no part remains. */
static size_t take_part(struct parts *p)
{
    pthread_mutex_lock(&p->lock);
    size_t first = p->failed_row == SIZE_MAX ? p->next_row : p->rows;
    p->next_row += W4_PART_ROWS;
    pthread_mutex_unlock(&p->lock);
    return first;
}

static void finish_part(struct parts *p, size_t first, size_t end, const ptxgen_error *failure)
{
    pthread_mutex_lock(&p->lock);
    p->done_rows += end - first;
    if (failure->status != PTXGEN_OK && first < p->failed_row) {
        p->failed_row = first;
        p->failure = *failure;
    }
    if (failure->status == PTXGEN_OK && p->options.progress)
        p->options.progress(p->options.user, p->done_rows, p->rows);
    pthread_mutex_unlock(&p->lock);
}

static void *work(void *argument)
{
    struct parts *p = argument;
    for (size_t first; (first = take_part(p)) < p->rows;) {
        size_t end = p->rows - first > W4_PART_ROWS ? first + W4_PART_ROWS : p->rows;
        ptxgen_error err = {.status = PTXGEN_OK};
        p->work(p->job, first, end, &err);
        finish_part(p, first, end, &err);
    }
    return NULL;
}

/* The calling thread works, too, so if the system refuses a thread, only time is lost. */
static void work_in_threads(struct parts *p)
{
    size_t count = p->rows / W4_PART_ROWS + (p->rows % W4_PART_ROWS != 0);
    size_t wanted = p->options.threads < count ? p->options.threads : count;
    pthread_t *threads = wanted > 1 ? malloc((wanted - 1) * sizeof *threads) : NULL;
    size_t started = 0;
    while (threads && started < wanted - 1 && pthread_create(&threads[started], NULL, work, p) == 0)
        started++;
    work(p);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    free(threads);
}

ptxgen_status w4_work_in_parts(size_t rows, w4_work *function, void *job,
                               const ptxgen_w4_repack_options *options, ptxgen_error *err)
{
    struct parts parts = {.rows = rows, .work = function, .job = job, .failed_row = SIZE_MAX};
    if (options)
        parts.options = *options;
    if (pthread_mutex_init(&parts.lock, NULL) != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_SYSTEM, "the system has no mutex to give");
    work_in_threads(&parts);
    pthread_mutex_destroy(&parts.lock);
    if (parts.failed_row == SIZE_MAX)
        return PTXGEN_OK;
    if (err)
        *err = parts.failure;
    return parts.failure.status;
}
