/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_warm.h"
#include "exit_code.h"
#include "spec_list.h"

#include <ptxgen/dispatch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A list that is being compiled, and what became of it. */
struct warming {
    const struct spec_list *list;
    size_t not_kept;       /* items that the cache does not have after all */
    ptxgen_status failure; /* of the first item that failed */
};

static void print_step(void *user, const ptxgen_warm_step *step)
{
    char spec[200] = "";
    const ptxgen_family *family = step->item->family;
    struct warming *warming = user;
    const char *not_kept = step->report ? step->report->not_kept : NULL;
    if (family->describe)
        family->describe(step->item->spec, spec, sizeof spec);
    printf("[%zu/%zu] %s %s: ", step->done, step->count, family->name, spec);
    if (!step->report)
        printf("failed: %s\n", step->error->message);
    else if (step->report->origin == PTXGEN_ORIGIN_DISK)
        printf("was there\n");
    else
        printf("assembled in %.1f ms%s\n", (double)step->report->compile_ns * 1e-6,
               not_kept ? ", NOT KEPT" : "");
    fflush(stdout);
    warming->not_kept += not_kept != NULL;
    if (!step->report && warming->failure == PTXGEN_OK)
        warming->failure = step->error->status;
    if (!step->report || not_kept)
        fprintf(stderr, "ptxgen: %s:%d: %s: %s\n", warming->list->path,
                warming->list->lines[step->index],
                not_kept ? "the kernel is not kept" : "no kernel",
                not_kept ? not_kept : step->error->message);
}

static void print_log(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "ptxgen: %s\n", message);
}

static int warm(const ptxgen_cache *cache, struct device *device, const struct spec_list *list,
                unsigned threads)
{
    ptxgen_dispatcher *dispatcher;
    ptxgen_warm *started;
    ptxgen_error err = {0};
    size_t failed = 0;
    struct warming warming = {.list = list};
    const ptxgen_dispatch_options options = {
        .context = device->context, .cache = cache, .log = print_log};
    ptxgen_status status = ptxgen_dispatcher_create(&device->driver, &options, &dispatcher, &err);
    if (status != PTXGEN_OK)
        return report_failure(&err);
    status = ptxgen_warm_start(dispatcher, list->items, list->count, threads, print_step, &warming,
                               &started, &err);
    if (status == PTXGEN_OK)
        failed = ptxgen_warm_finish(started, false);
    ptxgen_dispatcher_destroy(dispatcher);
    if (status != PTXGEN_OK)
        return report_failure(&err);
    if (failed)
        return exit_code_of(warming.failure);
    return warming.not_kept ? EXIT_FILE : EXIT_OK;
}

int cache_warm(const ptxgen_cache *cache, const char *path, const char *device_name,
               unsigned threads)
{
    struct device device;
    struct spec_list list;
    ptxgen_error err = {0};
    int code;
    if (spec_list_read(path, &list, &err) != PTXGEN_OK ||
        device_open(device_name, &device, &err) != PTXGEN_OK) {
        code = report_failure(&err);
    } else {
        code = warm(cache, &device, &list, threads);
        device_close(&device);
    }
    spec_list_free(&list);
    return code;
}
