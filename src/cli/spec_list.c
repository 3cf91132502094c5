/* SPDX-License-Identifier: Apache-2.0 */
#include "spec_list.h"

#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool add_item(struct spec_list *list, const struct family *family,
                     struct family_options *own, int line)
{
    if (list->count == list->capacity) {
        size_t capacity = 2 * list->capacity + 16;
        void *items = realloc(list->items, capacity * sizeof *list->items);
        if (items)
            list->items = items;
        void *options = realloc(list->options, capacity * sizeof *list->options);
        if (options)
            list->options = options;
        void *lines = realloc(list->lines, capacity * sizeof *list->lines);
        if (lines)
            list->lines = lines;
        if (!items || !options || !lines)
            return false;
        list->capacity = capacity;
    }
    list->items[list->count] = (ptxgen_warm_item){family->harness->family(), own->spec};
    list->lines[list->count] = line;
    list->options[list->count++] = own;
    return true;
}

/*
 * The place in the file stands where argp's messages have the program's name. False when the file
 * cannot be read to its end, or there is no memory.
 */
static bool read_lines(FILE *file, struct spec_list *list)
{
    char *line = NULL, place[512];
    size_t size = 0;
    bool fits = true;
    for (int number = 1; errno = 0, fits && getline(&line, &size, file) >= 0; number++) {
        char *words[1 + MOST_WORDS];
        int count = split(line, words + 1);
        if (count == 0)
            continue;
        snprintf(place, sizeof place, "%.400s:%d", list->path, number);
        words[0] = place;
        struct family_options *options;
        const struct family_arguments arguments = {0};
        const struct family *family = parse_family(count + 1, words, &arguments, &options);
        fits = add_item(list, family, options, number);
        if (!fits)
            free(options);
    }
    free(line);
    if (!fits)
        errno = ENOMEM;
    return fits && !ferror(file) && errno != ENOMEM;
}

ptxgen_status spec_list_read(const char *path, struct spec_list *list, ptxgen_error *err)
{
    *list = (struct spec_list){.path = path};
    FILE *file = fopen(path, "r");
    bool whole = file && read_lines(file, list);
    int reason = errno;
    if (file)
        fclose(file);
    if (whole)
        return PTXGEN_OK;
    if (reason == ENOMEM)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the list of kernels");
    return ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s cannot be read: %s", path, strerror(reason));
}

void spec_list_free(struct spec_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->options[i]);
    free(list->options);
    free(list->lines);
    free(list->items);
    *list = (struct spec_list){.path = NULL};
}
