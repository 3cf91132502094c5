/* SPDX-License-Identifier: Apache-2.0 */
#include "slices.h"

#include "progress.h"

#include <pthread.h>
#include <unistd.h>

struct slices {
    compare_slice *compare;
    void *state;
    uint32_t count;
    pthread_mutex_t lock; /* guards what follows */
    uint32_t next, done;
    struct comparison *total;
    ptxgen_status status;
    ptxgen_error err;
    struct progress progress;
};

static void work_on(struct slices *s, uint32_t index)
{
    struct comparison part = {.reference = {.outputs = 0}};
    ptxgen_error err;
    ptxgen_status status = s->compare(s->state, index, &part, &err);

    pthread_mutex_lock(&s->lock);
    check_add(&s->total->reference, &part.reference);
    check_add(&s->total->expected, &part.expected);
    if (status != PTXGEN_OK) {
        s->status = status;
        s->err = err;
    }
    progress_update(&s->progress, ++s->done);
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *slices)
{
    struct slices *s = slices;
    for (;;) {
        pthread_mutex_lock(&s->lock);
        uint32_t index = s->status == PTXGEN_OK && s->next < s->count ? s->next++ : s->count;
        pthread_mutex_unlock(&s->lock);
        if (index == s->count)
            return NULL;
        work_on(s, index);
    }
}

static void work_in_threads(struct slices *s)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int wanted = processors > MOST ? MOST : (int)processors, started = 0;
    while (started < wanted - 1 && !pthread_create(&threads[started], NULL, work, s))
        started++;
    work(s);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

ptxgen_status compare_slices(const char *what, uint32_t count, compare_slice *compare, void *state,
                             struct comparison *total, ptxgen_error *err)
{
    struct slices s = {.compare = compare,
                       .state = state,
                       .count = count,
                       .total = total,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .progress = progress_start(what, count)};
    work_in_threads(&s);
    progress_end(&s.progress);
    if (s.status != PTXGEN_OK && err)
        *err = s.err;
    return s.status;
}
