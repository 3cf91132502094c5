/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/cache_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- what is there ---- */

static bool has_key(const char *name)
{
    return strspn(name, "0123456789abcdef") == DIGEST_HEX;
}

/* Names come in any order: the halves of an entry are joined after sorting. */
static bool add_file(struct scan *scan, const char *name, const struct stat *status)
{
    bool is_manifest = strcmp(name + DIGEST_HEX, MANIFEST_SUFFIX) == 0;
    if (!is_manifest && strcmp(name + DIGEST_HEX, CUBIN_SUFFIX) != 0)
        return true;
    if (scan->count == scan->capacity) {
        size_t capacity = scan->capacity ? 2 * scan->capacity : 64;
        struct scanned *larger = realloc(scan->entries, capacity * sizeof *larger);
        if (!larger)
            return false;
        scan->entries = larger;
        scan->capacity = capacity;
    }
    struct scanned *entry = &scan->entries[scan->count++];
    *entry = (struct scanned){.has_cubin = !is_manifest,
                              .has_manifest = is_manifest,
                              .bytes = (uint64_t)status->st_size,
                              .used = is_manifest ? status->st_mtime : 0};
    memcpy(entry->key, name, DIGEST_HEX);
    scan->bytes += entry->bytes;
    return true;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct scanned *)a)->key, ((const struct scanned *)b)->key);
}

static void join_halves(struct scan *scan)
{
    size_t count = 0;
    if (scan->count)
        qsort(scan->entries, scan->count, sizeof *scan->entries, by_key);
    for (size_t i = 0; i < scan->count; i++) {
        struct scanned *half = &scan->entries[i], *last = &scan->entries[count - (count > 0)];
        if (count > 0 && strcmp(last->key, half->key) == 0) {
            last->has_cubin |= half->has_cubin;
            last->has_manifest |= half->has_manifest;
            last->bytes += half->bytes;
            last->used = last->used ? last->used : half->used;
        } else {
            scan->entries[count++] = *half;
        }
    }
    scan->count = count;
}

static bool scan_file(int folder, const char *name, bool remove_temporaries, struct scan *scan)
{
    struct stat status;
    if (remove_temporaries && strncmp(name, TEMPORARY_PREFIX, sizeof TEMPORARY_PREFIX - 1) == 0) {
        scan->temporaries += unlinkat(folder, name, 0) == 0;
        return true;
    }
    if (!has_key(name) || fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return true;
    return add_file(scan, name, &status);
}

ptxgen_status scan_make(int folder, bool remove_temporaries, struct scan *scan, ptxgen_error *err)
{
    *scan = (struct scan){0};
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* closedir closes it */
    DIR *files = again < 0 ? NULL : fdopendir(again);
    if (!files) {
        int reason = errno;
        if (again >= 0)
            close(again);
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "the cache folder cannot be listed: %s",
                           strerror(reason));
    }
    bool has_memory = true;
    for (struct dirent *file; has_memory && (file = readdir(files));)
        has_memory = scan_file(folder, file->d_name, remove_temporaries, scan);
    closedir(files);
    join_halves(scan);
    if (has_memory)
        return PTXGEN_OK;
    scan_free(scan);
    return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to list the cache folder");
}

void scan_free(struct scan *scan)
{
    free(scan->entries);
    *scan = (struct scan){0};
}

/* ---- making room ---- */

/* The manifest first: without it the cubin is a stray. */
void entry_remove(int folder, const char *key)
{
    unlinkat(folder, entry_name(key, MANIFEST_SUFFIX).text, 0);
    unlinkat(folder, entry_name(key, CUBIN_SUFFIX).text, 0);
}

static int by_use(const void *a, const void *b)
{
    const struct scanned *x = a, *y = b;
    if (x->used != y->used)
        return x->used < y->used ? -1 : 1;
    return by_key(a, b);
}

void scan_shrink(int folder, struct scan *scan, uint64_t most, ptxgen_cache_removed *removed)
{
    time_t now = time(NULL);
    for (size_t i = 0; i < scan->count; i++) {
        struct scanned *entry = &scan->entries[i];
        if (entry->used > now || !entry->has_cubin || !entry->has_manifest)
            entry->used = 0;
    }
    if (scan->count)
        qsort(scan->entries, scan->count, sizeof *scan->entries, by_use);
    removed->strays += scan->temporaries;
    for (size_t i = 0; i < scan->count; i++) {
        const struct scanned *entry = &scan->entries[i];
        bool whole = entry->has_cubin && entry->has_manifest;
        if (whole && scan->bytes <= most)
            continue;
        entry_remove(folder, entry->key);
        removed->entries += whole;
        removed->strays += !whole;
        removed->bytes += entry->bytes;
        scan->bytes -= entry->bytes;
    }
}
