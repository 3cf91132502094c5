/* SPDX-License-Identifier: Apache-2.0 */
#include "name_index.h"

#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
    const struct ptxgen_name *x = a, *y = b;
    return strcmp(x->name, y->name);
}

void name_index_sort(struct ptxgen_name *entries, size_t count)
{
    if (count > 0)
        qsort(entries, count, sizeof *entries, compare_names);
}

const char *name_index_duplicate(const struct ptxgen_name *entries, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (strcmp(entries[i - 1].name, entries[i].name) == 0)
            return entries[i].name;
    return NULL;
}

const struct ptxgen_name *name_index_find(const struct ptxgen_name *entries, size_t count,
                                          const char *name)
{
    struct ptxgen_name key = {.name = name};
    return count ? bsearch(&key, entries, count, sizeof *entries, compare_names) : NULL;
}
