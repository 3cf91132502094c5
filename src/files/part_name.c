/* SPDX-License-Identifier: Apache-2.0 */
#include "part_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char pattern[] = "-#####-of-#####"; /* # is a digit */
enum { LENGTH = sizeof pattern - 1, FIRST = 1, SECOND = 10 };

static unsigned number_at(const char *digits)
{
    unsigned number = 0;
    for (int i = 0; i < 5; i++)
        number = 10 * number + (unsigned)(digits[i] - '0');
    return number;
}

bool part_name_read(const char *path, const char *extension, struct part_name *name)
{
    size_t length = strlen(path), tail = LENGTH + strlen(extension);
    if (length <= tail || strcmp(path + length - strlen(extension), extension) != 0)
        return false;
    const char *text = path + length - tail;
    for (int i = 0; i < LENGTH; i++)
        if (pattern[i] == '#' ? text[i] < '0' || text[i] > '9' : text[i] != pattern[i])
            return false;
    *name = (struct part_name){length - tail, number_at(text + FIRST), number_at(text + SECOND)};
    return name->number >= 1 && name->number <= name->count;
}

char *part_name_write(const char *path, const char *extension, const struct part_name *name,
                      unsigned number)
{
    size_t size = name->stem + LENGTH + strlen(extension) + 1;
    char *other = malloc(size);
    if (other)
        snprintf(other, size, "%.*s-%05u-of-%05u%s", (int)name->stem, path, number % 100000,
                 name->count % 100000, extension);
    return other;
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *path_beside(const char *beside, const char *name)
{
    size_t folder = (size_t)(path_name(beside) - beside), size = folder + strlen(name) + 1;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%.*s%s", (int)folder, beside, name);
    return path;
}
