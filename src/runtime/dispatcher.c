/* SPDX-License-Identifier: Apache-2.0 */
/* Making and destroying dispatchers. */
#define _GNU_SOURCE /* secure_getenv */
#include "src/runtime/dispatcher.h"
#include "src/ptxgen/sentence.h"
#include "src/runtime/cache_store.h"
#include "src/runtime/context.h"
#include "src/runtime/uncancelled.h"

#include <ptxgen/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ptxgen_status read_context(ptxgen_dispatcher *d, ptxgen_cu_context wanted,
                                  const ptxgen_target *target, ptxgen_device_facts *facts,
                                  ptxgen_error *err)
{
    ptxgen_status status = context_enter(d->driver, wanted, &d->context, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_cu_result result = d->driver->ctx_get_device(&d->device);
    context_leave(d->driver);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(d->driver, result, err, "cuCtxGetDevice");
    status = ptxgen_device_read(d->driver, d->device, facts, err);
    if (status != PTXGEN_OK)
        return status;
    d->target = target ? *target : ptxgen_device_target(facts);
    assembler_read(d->driver, d->device, d->max_registers, d->line_info, &d->assembler);
    return PTXGEN_OK;
}

/* A disk cache that cannot be had is no reason to have no kernels. */
static void choose_cache(ptxgen_dispatcher *d, const ptxgen_dispatch_options *options)
{
    ptxgen_error err;
    if (options->no_cache || cache_is_switched_off()) {
        snprintf(d->no_cache, sizeof d->no_cache, "%s",
                 options->no_cache ? "the dispatcher was told to use no disk cache"
                                   : "PTXGEN_CACHE switches the disk cache off");
        return;
    }
    d->cache = options->cache;
    if (d->cache)
        return;
    if (ptxgen_cache_open(NULL, &d->own_cache, &err) != PTXGEN_OK) {
        snprintf(d->no_cache, sizeof d->no_cache, "no disk cache: %s", err.message);
        dispatcher_log(d, "%s", d->no_cache);
    }
    d->cache = d->own_cache;
}

static ptxgen_status choose_tuning(ptxgen_dispatcher *d, const ptxgen_dispatch_options *options,
                                   const ptxgen_device_facts *facts, ptxgen_error *err)
{
    d->tuning = options->tuning;
    if (d->tuning || options->no_tuning || !d->cache)
        return PTXGEN_OK;
    ptxgen_status status = ptxgen_tuning_load(d->cache, facts, &d->own_tuning, err);
    d->tuning = d->own_tuning;
    if (status == PTXGEN_OK && ptxgen_tuning_complaint(d->tuning))
        dispatcher_log(d, "%s/tuning is not used: %s", ptxgen_cache_folder(d->cache),
                       ptxgen_tuning_complaint(d->tuning));
    return status;
}

/* NULL for none; false when there is no memory. */
static bool choose_folder(const char *option, const char *variable, char **folder)
{
    if (!option)
        option = secure_getenv(variable);
    if (!option || !*option)
        return true;
    *folder = strdup(option);
    if (!*folder)
        return false;
    for (size_t last = strlen(*folder); last > 1 && (*folder)[last - 1] == '/';)
        (*folder)[--last] = '\0'; /* or a link at the end would be followed */
    return true;
}

/* Code of packs was assembled without options, and a dump wants what is assembled now. */
static ptxgen_status choose_packs(ptxgen_dispatcher *d, const ptxgen_dispatch_options *options,
                                  ptxgen_error *err)
{
    if (!options->pack_count || d->max_registers || d->line_info || d->dump_folder)
        return PTXGEN_OK;
    if (!options->packs)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "packs is NULL, but pack_count is %zu", options->pack_count);
    d->packs = calloc(options->pack_count, sizeof(ptxgen_pack *));
    if (!d->packs)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a list of packs");
    for (; d->pack_count < options->pack_count; d->pack_count++) {
        d->packs[d->pack_count] = options->packs[d->pack_count];
        if (!d->packs[d->pack_count])
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "packs[%zu] is NULL",
                               d->pack_count);
    }
    return PTXGEN_OK;
}

static ptxgen_status configure(ptxgen_dispatcher *d, const ptxgen_dispatch_options *options,
                               ptxgen_error *err)
{
    d->max_registers = options->max_registers;
    d->line_info = options->line_info;
    d->log = options->log;
    d->log_user = options->log_user;
    d->process = getpid();
    if (!choose_folder(options->dump_folder, "PTXGEN_DUMP", &d->dump_folder) ||
        (d->log &&
         !choose_folder(options->override_folder, "PTXGEN_OVERRIDE", &d->override_folder)))
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a folder's name");
    choose_cache(d, options);
    ptxgen_device_facts facts;
    ptxgen_status status = choose_packs(d, options, err);
    if (status == PTXGEN_OK)
        status = read_context(d, options->context, options->target, &facts, err);
    return status == PTXGEN_OK ? choose_tuning(d, options, &facts, err) : status;
}

/*
 * In a forked child the lock may be held by a thread that does not exist there, and the driver
 * belongs to the parent: only memory is freed, and loaded kernels are left alone.
 */
void ptxgen_dispatcher_destroy(ptxgen_dispatcher *d)
{
    UNCANCELLED;
    if (!d)
        return;
    if (d->process == getpid()) {
        if (d->context)
            ptxgen_dispatcher_unload(d, NULL, NULL, NULL, NULL);
        for (struct registry_node *node = d->registry.newest; node; node = node->next)
            loaded_free(node->loaded); /* the context is broken, or references are left */
        pthread_cond_destroy(&d->changed);
        pthread_mutex_destroy(&d->lock);
    }
    registry_free(&d->registry);
    ptxgen_tuning_free(d->own_tuning);
    ptxgen_cache_close(d->own_cache);
    free(d->packs);
    free(d->dump_folder);
    free(d->override_folder);
    free(d);
}

ptxgen_status ptxgen_dispatcher_create(const ptxgen_driver *driver,
                                       const ptxgen_dispatch_options *options,
                                       ptxgen_dispatcher **dispatcher, ptxgen_error *err)
{
    UNCANCELLED;
    static const ptxgen_dispatch_options defaults = {0};
    if (!driver || !dispatcher)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_dispatcher_create: driver or dispatcher is NULL");
    *dispatcher = NULL;
    if (!options)
        options = &defaults;
    ptxgen_dispatcher *d = calloc(1, sizeof *d);
    if (!d || !registry_init(&d->registry)) {
        free(d);
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a dispatcher");
    }
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    d->driver = driver;
    ptxgen_status status = configure(d, options, err);
    if (status == PTXGEN_OK)
        *dispatcher = d;
    else
        ptxgen_dispatcher_destroy(d);
    return status;
}

const ptxgen_target *ptxgen_dispatcher_target(const ptxgen_dispatcher *dispatcher)
{
    return dispatcher ? &dispatcher->target : NULL;
}

void dispatcher_log(const ptxgen_dispatcher *dispatcher, const char *format, ...)
{
    char message[PTXGEN_MESSAGE_SIZE];
    va_list arguments;
    if (!dispatcher->log)
        return;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    sentence_clean(message, sizeof message);
    dispatcher->log(dispatcher->log_user, message);
}
