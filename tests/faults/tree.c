/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tree.h"

#include "tests/dispatch/folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* nftw has no argument for its callback. */
static struct tree *reading;
static size_t prefix_length;

static int read_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)kind;
    if (walk->level == 0)
        return 0;
    struct entry entry = {.name = strdup(path + prefix_length), .mode = status->st_mode & 07777};
    if (S_ISREG(status->st_mode))
        entry.bytes = file_read(path, &entry.size);
    reading->entries = realloc(reading->entries, (reading->count + 1) * sizeof entry);
    if (!entry.name || !reading->entries)
        abort();
    reading->entries[reading->count++] = entry;
    return 0;
}

struct tree tree_read(const char *folder)
{
    struct tree tree = {0};
    reading = &tree;
    prefix_length = strlen(folder) + 1;
    if (nftw(folder, read_entry, 16, FTW_PHYS) != 0) {
        perror(folder);
        abort();
    }
    return tree;
}

void tree_free(struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        free(tree->entries[i].name);
        free(tree->entries[i].bytes);
    }
    free(tree->entries);
    *tree = (struct tree){0};
}

void tree_write(const char *folder, const struct tree *tree)
{
    char path[2 * FOLDER_PATH];
    folder_remove(folder);
    mkdir(folder, 0700);
    for (size_t i = 0; i < tree->count; i++) { /* a folder comes before what is in it */
        const struct entry *entry = &tree->entries[i];
        snprintf(path, sizeof path, "%s/%s", folder, entry->name);
        if (entry->bytes)
            file_write(path, entry->bytes, entry->size);
        else
            mkdir(path, 0700);
        chmod(path, entry->mode);
    }
}

const struct entry *tree_find(const struct tree *tree, const char *name)
{
    for (size_t i = 0; i < tree->count; i++)
        if (!strcmp(tree->entries[i].name, name))
            return &tree->entries[i];
    return NULL;
}

bool entries_equal(const struct entry *a, const struct entry *b, bool by_name)
{
    if (!a || !b || !a->bytes != !b->bytes)
        return a == b;
    return by_name || (a->size == b->size && (!a->size || !memcmp(a->bytes, b->bytes, a->size)));
}

bool trees_equal(const struct tree *a, const struct tree *b, bool by_name)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!entries_equal(&a->entries[i], tree_find(b, a->entries[i].name), by_name))
            return false;
    return true;
}
