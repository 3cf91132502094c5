/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Names sorted for look-up. Each entry borrows its name; what `position` counts is the caller's.
 */
#ifndef PTXGEN_CLI_NAME_INDEX_H
#define PTXGEN_CLI_NAME_INDEX_H

#include <stddef.h>

struct name_index_entry {
    const char *name;
    size_t position;
};

void name_index_sort(struct name_index_entry *entries, size_t count);

/** A name that stands twice in sorted `entries`, or NULL. */
const char *name_index_duplicate(const struct name_index_entry *entries, size_t count);

/** NULL when absent. */
const struct name_index_entry *name_index_find(const struct name_index_entry *entries, size_t count,
                                               const char *name);

#endif
