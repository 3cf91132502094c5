/* SPDX-License-Identifier: Apache-2.0 */
#include "spec_list.h"

#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 63 };

/* How many words the line has; the first MOST_WORDS are stored, with NULL behind the last. */
static int split(char *line, char *words[MOST_WORDS + 1])
{
    int count = 0;
    char *place = NULL;
    line[strcspn(line, "#\n")] = '\0';
    for (char *word = strtok_r(line, " \t\r", &place); word; word = strtok_r(NULL, " \t\r", &place))
        if (count++ < MOST_WORDS)
            words[count - 1] = word;
    words[count < MOST_WORDS ? count : MOST_WORDS] = NULL;
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

static ptxgen_status no_memory(ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the list of kernels");
}

/* The place in the file stands where argp's messages have the program's name. */
static ptxgen_status read_line(char *line, int number, struct spec_list *list, ptxgen_error *err)
{
    char place[512], *words[1 + MOST_WORDS + 1] = {place};
    int count = split(line, words + 1);
    snprintf(place, sizeof place, "%.400s:%d", list->path, number);
    if (count == 0)
        return PTXGEN_OK;
    if (count > MOST_WORDS)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: %d words, more than the %d of a kernel", place, count, MOST_WORDS);
    struct family_options *options;
    const struct family_arguments arguments = {0};
    const struct family *family = parse_family(count + 1, words, &arguments, &options);
    if (add_item(list, family, options, number))
        return PTXGEN_OK;
    free(options);
    return no_memory(err);
}

static ptxgen_status read_lines(FILE *file, struct spec_list *list, ptxgen_error *err)
{
    char *line = NULL;
    size_t size = 0;
    ptxgen_status status = PTXGEN_OK;
    for (int number = 1; errno = 0, status == PTXGEN_OK && getline(&line, &size, file) >= 0;
         number++)
        status = read_line(line, number, list, err);
    int reason = errno;
    free(line);
    if (status != PTXGEN_OK)
        return status;
    if (reason == ENOMEM)
        return no_memory(err);
    return ferror(file) ? ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s cannot be read: %s", list->path,
                                      strerror(reason))
                        : PTXGEN_OK;
}

ptxgen_status spec_list_read(const char *path, struct spec_list *list, ptxgen_error *err)
{
    *list = (struct spec_list){.path = path};
    FILE *file = fopen(path, "r");
    if (!file)
        return errno == ENOMEM ? no_memory(err)
                               : ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s cannot be read: %s", path,
                                             strerror(errno));
    ptxgen_status status = read_lines(file, list, err);
    fclose(file);
    return status;
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
