/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Names sorted for look-up. Each entry borrows its name; what `position` counts is the caller's.
 */
#ifndef PTXGEN_FILES_NAME_INDEX_H
#define PTXGEN_FILES_NAME_INDEX_H

#include <stddef.h>

struct ptxgen_name {
    const char *name;
    size_t position;
};

void name_index_sort(struct ptxgen_name *entries, size_t count);

/** A name that stands twice in sorted `entries`, or NULL. */
const char *name_index_duplicate(const struct ptxgen_name *entries, size_t count);

/** NULL when absent. */
const struct ptxgen_name *name_index_find(const struct ptxgen_name *entries, size_t count,
                                          const char *name);

#endif
