/* SPDX-License-Identifier: Apache-2.0 */
#include "unused_tensors.h"

#include "../files/printable.h"

#include <stdio.h>
#include <string.h>

static bool is_part(const char *name, const char *prefix)
{
    size_t length = prefix ? strlen(prefix) : 0;
    if (!length)
        return !strchr(name, '.');
    return !strncmp(name, prefix, length) && name[length] == '.';
}

static bool is_used(const ptxgen_tensor *t, const ptxgen_tensor *const *used, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (used[i] == t)
            return true;
    return false;
}

void warn_of_unused_tensors(const ptxgen_files *store, const char *prefix,
                            const ptxgen_tensor *const *used, size_t count)
{
    enum { MOST_NAMED = 8 };
    const ptxgen_tensor_list *tensors = ptxgen_files_tensors(store);
    size_t found = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        const ptxgen_tensor *t = &tensors->items[i];
        if (!is_part(t->name, prefix) || is_used(t, used, count))
            continue;
        if (found++ < MOST_NAMED)
            fprintf(stderr, "%s %s %s", found == 1 ? "ptxgen: not used of the layer:" : ",",
                    printable(t->name, strlen(t->name)).text, ptxgen_dtype_find(t->dtype)->name);
    }
    if (found > MOST_NAMED)
        fprintf(stderr, " and %zu more", found - MOST_NAMED);
    if (found)
        fputc('\n', stderr);
}
