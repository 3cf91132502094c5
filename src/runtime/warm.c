/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatching a list in the background. */
#include <ptxgen/dispatch.h>

#include "src/runtime/uncancelled.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 256 };

struct ptxgen_warm {
    ptxgen_dispatcher *dispatcher;
    ptxgen_warm_item *items;
    size_t count;
    void (*step)(void *user, const ptxgen_warm_step *step);
    void *user;
    pthread_mutex_t lock; /* of what follows, and held while `step` is called */
    size_t next, done, failed;
    unsigned threads;
    pthread_t ids[MOST_THREADS];
};

static bool take_next(ptxgen_warm *warm, size_t *index)
{
    pthread_mutex_lock(&warm->lock);
    bool some = warm->next < warm->count;
    if (some)
        *index = warm->next++;
    pthread_mutex_unlock(&warm->lock);
    return some;
}

static void tell(ptxgen_warm *warm, size_t index, const ptxgen_loaded *loaded,
                 const ptxgen_error *err)
{
    pthread_mutex_lock(&warm->lock);
    warm->done++;
    warm->failed += !loaded;
    ptxgen_warm_step step = {.item = &warm->items[index],
                             .index = index,
                             .done = warm->done,
                             .count = warm->count,
                             .report = loaded ? ptxgen_loaded_report(loaded) : NULL,
                             .error = loaded ? NULL : err};
    if (warm->step)
        warm->step(warm->user, &step);
    pthread_mutex_unlock(&warm->lock);
}

static void *work(void *argument)
{
    ptxgen_warm *warm = argument;
    size_t index;
    while (take_next(warm, &index)) {
        const ptxgen_warm_item *item = &warm->items[index];
        ptxgen_loaded *loaded = NULL;
        ptxgen_error err = {0};
        ptxgen_dispatch(warm->dispatcher, item->family, item->spec, &loaded, &err);
        tell(warm, index, loaded, &err);
        ptxgen_release(loaded);
    }
    return NULL;
}

static void free_warm(ptxgen_warm *warm)
{
    for (size_t i = 0; warm->items && i < warm->count; i++)
        free((void *)warm->items[i].spec);
    free(warm->items);
    pthread_mutex_destroy(&warm->lock);
    free(warm);
}

static ptxgen_warm *copy_items(const ptxgen_warm_item *items, size_t count)
{
    ptxgen_warm *warm = calloc(1, sizeof *warm);
    if (!warm)
        return NULL;
    pthread_mutex_init(&warm->lock, NULL);
    warm->items = calloc(count + 1, sizeof *warm->items);
    bool has_memory = warm->items != NULL;
    for (; has_memory && warm->count < count; warm->count++) {
        const ptxgen_warm_item *item = &items[warm->count];
        void *spec = malloc(item->family->spec_bytes);
        has_memory = spec != NULL;
        if (has_memory)
            memcpy(spec, item->spec, item->family->spec_bytes);
        warm->items[warm->count] = (ptxgen_warm_item){item->family, spec};
    }
    if (has_memory)
        return warm;
    free_warm(warm);
    return NULL;
}

static unsigned choose_threads(unsigned threads, size_t count)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (threads == 0)
        threads = processors > 0 ? (unsigned)processors : 1;
    if (threads > MOST_THREADS)
        threads = MOST_THREADS;
    return threads < count ? threads : (unsigned)count;
}

ptxgen_status ptxgen_warm_start(ptxgen_dispatcher *dispatcher, const ptxgen_warm_item *items,
                                size_t count, unsigned threads,
                                void (*step)(void *user, const ptxgen_warm_step *step), void *user,
                                ptxgen_warm **warm, ptxgen_error *err)
{
    UNCANCELLED;
    if (!dispatcher || !warm || (count && !items))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_warm_start: dispatcher, items or warm is NULL");
    *warm = NULL;
    for (size_t i = 0; i < count; i++)
        if (!items[i].family || !items[i].spec)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "ptxgen_warm_start: item %zu has no family or no spec", i);
    ptxgen_warm *w = copy_items(items, count);
    if (!w)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to warm up %zu kernels",
                           count);
    w->dispatcher = dispatcher;
    w->step = step;
    w->user = user;
    unsigned wanted = choose_threads(threads, count);
    while (w->threads < wanted && pthread_create(&w->ids[w->threads], NULL, work, w) == 0)
        w->threads++;
    if (wanted > 0 && w->threads == 0) {
        free_warm(w);
        return ptxgen_fail(err, PTXGEN_ERROR_SYSTEM, "no thread can be started for a warm-up");
    }
    *warm = w;
    return PTXGEN_OK;
}

size_t ptxgen_warm_finish(ptxgen_warm *warm, bool cancel)
{
    UNCANCELLED;
    if (!warm)
        return 0;
    if (cancel) {
        pthread_mutex_lock(&warm->lock);
        warm->next = warm->count;
        pthread_mutex_unlock(&warm->lock);
    }
    for (unsigned i = 0; i < warm->threads; i++)
        pthread_join(warm->ids[i], NULL);
    size_t failed = warm->failed;
    free_warm(warm);
    return failed;
}
