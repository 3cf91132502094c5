/* SPDX-License-Identifier: Apache-2.0 */
/* All that is below a folder, in memory: to put it back, and to see what an attempt did to it. */
#ifndef PTXGEN_TESTS_FAULTS_TREE_H
#define PTXGEN_TESTS_FAULTS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct entry {
    char *name; /* relative to the folder */
    mode_t mode;
    char *bytes; /* of a file; NULL for a folder */
    size_t size;
};

struct tree {
    struct entry *entries;
    size_t count;
};

/* Reads the folder; aborts when it cannot. */
struct tree tree_read(const char *folder);
void tree_free(struct tree *tree);
/* Makes the folder hold just this. */
void tree_write(const char *folder, const struct tree *tree);

const struct entry *tree_find(const struct tree *tree, const char *name);
/* Same kind and, unless `by_name`, same bytes. Both may be NULL. */
bool entries_equal(const struct entry *a, const struct entry *b, bool by_name);
bool trees_equal(const struct tree *a, const struct tree *b, bool by_name);

#endif
