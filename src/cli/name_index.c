/* SPDX-License-Identifier: Apache-2.0 */
#include "name_index.h"

#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
    const struct name_index_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

void name_index_sort(struct name_index_entry *entries, size_t count)
{
    if (count > 0)
        qsort(entries, count, sizeof *entries, compare_names);
}

const char *name_index_duplicate(const struct name_index_entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (strcmp(entries[i - 1].name, entries[i].name) == 0)
            return entries[i].name;
    return NULL;
}

const struct name_index_entry *name_index_find(const struct name_index_entry *entries, size_t count,
                                               const char *name)
{
    struct name_index_entry key = {.name = name};
    return count ? bsearch(&key, entries, count, sizeof *entries, compare_names) : NULL;
}
