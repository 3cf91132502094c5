/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight threads dispatch, launch, release, retry, unload and clear the disk cache on one
 * dispatcher, over all families and three of the test's own, and check what they get. For
 * ThreadSanitizer above all.
 *
 *     stress [SECONDS]      2 by default
 */
#include "folder.h"
#include "toy.h"

#include <ptxgen/dense.h>
#include <ptxgen/marlin.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 8, SPECS = 24 };

struct stress {
    struct toy_device device;
    ptxgen_cache *cache;
    ptxgen_dispatcher *dispatcher;
    atomic_int stop;
    atomic_ulong hits, unloads, wrong;
};

struct worker {
    struct stress *stress;
    uint32_t random;
};

static uint32_t draw(struct worker *worker, uint32_t below)
{
    worker->random = worker->random * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)worker->random * below >> 32);
}

static void expect(struct stress *stress, bool right)
{
    if (!right)
        atomic_fetch_add(&stress->wrong, 1);
}

static void use_toy(struct worker *worker)
{
    struct stress *stress = worker->stress;
    static const ptxgen_family *const families[] = {&toy_plus, &toy_minus, &toy_memo};
    const ptxgen_family *family = families[draw(worker, 3)];
    struct toy_spec spec = {.a = draw(worker, SPECS), .b = 3};
    bool refused = spec.a % 8 == 7;
    spec.trouble = refused ? TOY_UNPLANNABLE : TOY_FINE;
    ptxgen_loaded *loaded;
    ptxgen_status status =
        draw(worker, 8) ? ptxgen_dispatch(stress->dispatcher, family, &spec, &loaded, NULL)
                        : ptxgen_dispatch_retry(stress->dispatcher, family, &spec, &loaded, NULL);
    expect(stress, status == (refused ? PTXGEN_ERROR_UNSUPPORTED : PTXGEN_OK));
    if (status != PTXGEN_OK)
        return;
    if (draw(worker, 4) == 0)
        expect(stress, toy_computes(&stress->device.driver, loaded, &spec));
    ptxgen_release(loaded);
    atomic_fetch_add(&stress->hits, 1);
}

static void use_rmsnorm(struct worker *worker)
{
    struct stress *stress = worker->stress;
    ptxgen_rmsnorm_q4k_spec spec = {
        .k = 256, .n = {16 + 16 * draw(worker, 2)}, .epsilon = 1e-5f, .max_m = 1};
    ptxgen_rmsnorm_q4k *kernel;
    ptxgen_status status = ptxgen_rmsnorm_q4k_dispatch(stress->dispatcher, &spec, &kernel, NULL);
    expect(stress, status == PTXGEN_OK && ptxgen_rmsnorm_q4k_attributes(kernel, 1));
    if (status == PTXGEN_OK)
        ptxgen_rmsnorm_q4k_destroy(kernel);
}

/* One of the other families' kernels, which nothing launches here. */
static void use_family(struct worker *worker)
{
    struct stress *stress = worker->stress;
    uint32_t n = 64 + 64 * draw(worker, 2);
    const ptxgen_marlin_spec marlin = {
        .k = 256, .n = n, .group_size = 128, .max_m = 8, .type = PTXGEN_F16};
    const ptxgen_w8a8_spec w8a8 = {
        .k = 256, .n = n, .max_m = 8, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    const ptxgen_sparse24_spec sparse24 = {
        .n = n, .k = 256, .max_m = 8, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16};
    ptxgen_sparse24_spec inflated = sparse24;
    inflated.tier = 1;
    const ptxgen_dense_spec dense = {.n = n, .k = 256, .max_m = 8, .type = PTXGEN_F16};
    const struct {
        const ptxgen_family *family;
        const void *spec;
    } all[] = {{ptxgen_marlin_family(), &marlin},
               {ptxgen_w8a8_family(), &w8a8},
               {ptxgen_sparse24_family(), &sparse24},
               {ptxgen_sparse24_family(), &inflated},
               {ptxgen_dense_family(), &dense}};
    uint32_t which = draw(worker, sizeof all / sizeof *all);
    ptxgen_loaded *loaded;
    ptxgen_status status =
        ptxgen_dispatch(stress->dispatcher, all[which].family, all[which].spec, &loaded, NULL);
    expect(stress, status == PTXGEN_OK && ptxgen_loaded_entry(loaded, 0));
    if (status == PTXGEN_OK)
        ptxgen_release(loaded);
    atomic_fetch_add(&stress->hits, 1);
}

static void unload(struct worker *worker)
{
    struct stress *stress = worker->stress;
    struct toy_spec spec = {.a = draw(worker, SPECS), .b = 3};
    const ptxgen_family *families[] = {NULL, &toy_plus, &toy_minus, ptxgen_rmsnorm_q4k_family(),
                                       ptxgen_marlin_family()};
    uint32_t which = draw(worker, sizeof families / sizeof *families);
    bool one = (which == 1 || which == 2) && draw(worker, 2);
    expect(stress, ptxgen_dispatcher_unload(stress->dispatcher, families[which], one ? &spec : NULL,
                                            NULL, NULL) == PTXGEN_OK);
    atomic_fetch_add(&stress->unloads, 1);
}

static void clear(struct worker *worker)
{
    struct stress *stress = worker->stress;
    ptxgen_status status = draw(worker, 2) ? ptxgen_cache_clear(stress->cache, NULL, NULL)
                                           : ptxgen_cache_prune(stress->cache, 4000, NULL, NULL);
    expect(stress, status == PTXGEN_OK);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct stress *stress = worker->stress;
    stress->device.driver.ctx_set_current(stress->device.context);
    while (!atomic_load(&stress->stop)) {
        uint32_t action = draw(worker, 100);
        if (action < 2)
            unload(worker);
        else if (action < 3)
            clear(worker);
        else if (action < 5)
            use_rmsnorm(worker);
        else if (action < 10)
            use_family(worker);
        else
            use_toy(worker);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct stress stress;
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    char folder[FOLDER_PATH];
    long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 2;
    toy_open(&stress.device, "cpu");
    folder_make(folder);
    ptxgen_error err = {0};
    ptxgen_cache_options where = {.folder = folder, .max_bytes = 100000};
    if (ptxgen_cache_open(&where, &stress.cache, &err) ||
        ptxgen_dispatcher_create(&stress.device.driver,
                                 &(ptxgen_dispatch_options){.cache = stress.cache},
                                 &stress.dispatcher, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){&stress, i * 7919 + 1};
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
    atomic_store(&stress.stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%lu uses, %lu unloads, %u emissions, %lu wrong\n", atomic_load(&stress.hits),
           atomic_load(&stress.unloads), toy_emissions(), atomic_load(&stress.wrong));
    ptxgen_dispatcher_destroy(stress.dispatcher);
    ptxgen_cache_close(stress.cache);
    folder_remove(folder);
    toy_close(&stress.device);
    return atomic_load(&stress.wrong) ? 1 : 0;
}
