/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_warm.h"
#include "exit_code.h"
#include "options.h"

#include <ptxgen/dispatch.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the file ---- */

struct list {
    const char *path;
    ptxgen_warm_item *items;
    struct family_options **options; /* of each item, which hold its spec */
    int *lines;                      /* of each item, in the file */
    size_t count, capacity;
    size_t not_kept;       /* items that the cache does not have after all */
    ptxgen_status failure; /* of the first item that failed */
};

enum { MOST_WORDS = 64 };

static int split(char *line, char *words[MOST_WORDS])
{
    int count = 0;
    char *place = NULL;
    line[strcspn(line, "#\n")] = '\0';
    for (char *word = strtok_r(line, " \t\r", &place); word; word = strtok_r(NULL, " \t\r", &place))
        if (count < MOST_WORDS - 1)
            words[count++] = word;
    words[count] = NULL;
    return count;
}

static void add_item(struct list *list, const struct family *family, struct family_options *options,
                     int line)
{
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 16;
        list->items = realloc(list->items, list->capacity * sizeof *list->items);
        list->options = realloc(list->options, list->capacity * sizeof *list->options);
        list->lines = realloc(list->lines, list->capacity * sizeof *list->lines);
        if (!list->items || !list->options || !list->lines) {
            fputs("ptxgen: no memory for the list of kernels\n", stderr);
            exit(EXIT_INTERNAL);
        }
    }
    list->items[list->count] = (ptxgen_warm_item){family->harness->family(), options->spec};
    list->lines[list->count] = line;
    list->options[list->count++] = options;
}

/*
 * The place in the file stands where argp's messages have the program's name. False when the file
 * cannot be read to its end.
 */
static bool read_list(FILE *file, const char *path, struct list *list)
{
    char *line = NULL, place[512];
    size_t size = 0;
    for (int number = 1; errno = 0, getline(&line, &size, file) >= 0; number++) {
        char *words[1 + MOST_WORDS];
        int count = split(line, words + 1);
        if (count == 0)
            continue;
        snprintf(place, sizeof place, "%.400s:%d", path, number);
        words[0] = place;
        struct family_options *options;
        const struct family_arguments arguments = {0};
        const struct family *family = parse_family(count + 1, words, &arguments, &options);
        add_item(list, family, options, number);
    }
    free(line);
    return !ferror(file) && errno != ENOMEM;
}

static void free_list(struct list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->options[i]);
    free(list->options);
    free(list->lines);
    free(list->items);
}

/* ---- compiling ---- */

static void print_step(void *user, const ptxgen_warm_step *step)
{
    char spec[200] = "";
    const ptxgen_family *family = step->item->family;
    struct list *list = user;
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
    list->not_kept += not_kept != NULL;
    if (!step->report && list->failure == PTXGEN_OK)
        list->failure = step->error->status;
    if (!step->report || not_kept)
        fprintf(stderr, "ptxgen: %s:%d: %s: %s\n", list->path, list->lines[step->index],
                not_kept ? "the kernel is not kept" : "no kernel",
                not_kept ? not_kept : step->error->message);
}

static void print_log(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "ptxgen: %s\n", message);
}

static int warm(const ptxgen_cache *cache, struct device *device, struct list *list,
                unsigned threads)
{
    ptxgen_dispatcher *dispatcher;
    ptxgen_warm *started;
    ptxgen_error err = {0};
    size_t failed = 0;
    const ptxgen_dispatch_options options = {
        .context = device->context, .cache = cache, .log = print_log};
    ptxgen_status status = ptxgen_dispatcher_create(&device->driver, &options, &dispatcher, &err);
    if (status != PTXGEN_OK)
        return report_failure(&err);
    status = ptxgen_warm_start(dispatcher, list->items, list->count, threads, print_step, list,
                               &started, &err);
    if (status == PTXGEN_OK)
        failed = ptxgen_warm_finish(started, false);
    ptxgen_dispatcher_destroy(dispatcher);
    if (status != PTXGEN_OK)
        return report_failure(&err);
    if (failed)
        return exit_code_of(list->failure);
    return list->not_kept ? EXIT_FILE : EXIT_OK;
}

int cache_warm(const ptxgen_cache *cache, const char *path, const char *device_name,
               unsigned threads)
{
    struct device device;
    struct list list = {.path = path};
    ptxgen_error err = {0};
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "ptxgen: %s cannot be read: %s\n", path, strerror(errno));
        return EXIT_FILE;
    }
    int code = EXIT_OK;
    bool whole = read_list(file, path, &list);
    int reason = errno;
    fclose(file);
    if (!whole) {
        fprintf(stderr, "ptxgen: %s cannot be read: %s\n", path, strerror(reason));
        code = EXIT_FILE;
    } else if (device_open(device_name, &device, &err) == PTXGEN_OK) {
        code = warm(cache, &device, &list, threads);
        device_close(&device);
    } else {
        code = report_failure(&err);
    }
    free_list(&list);
    return code;
}
