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

/* ---- the files of the folder ---- */

static bool has_key(const char *name)
{
    return strspn(name, "0123456789abcdef") == DIGEST_HEX;
}

static const struct {
    const char *suffix;
    unsigned part;
} parts[] = {
    {CUBIN_SUFFIX, PART_CUBIN}, {MANIFEST_SUFFIX, PART_MANIFEST}, {MEMO_SUFFIX, PART_MEMO}};
enum { PARTS = sizeof parts / sizeof *parts };

/* 0 for files of other names. */
static unsigned part_of(const char *name)
{
    for (size_t i = 0; i < PARTS; i++)
        if (strcmp(name + DIGEST_HEX, parts[i].suffix) == 0)
            return parts[i].part;
    return 0;
}

/* Names come in any order: the parts of an entry are joined after sorting. */
static bool add_file(struct scan *scan, const char *name, const struct stat *status)
{
    unsigned part = part_of(name);
    if (!part)
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
    *entry = (struct scanned){.parts = part,
                              .bytes = (uint64_t)status->st_size,
                              .used = part == PART_CUBIN ? 0 : status->st_mtime};
    memcpy(entry->key, name, DIGEST_HEX);
    scan->bytes += entry->bytes;
    return true;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct scanned *)a)->key, ((const struct scanned *)b)->key);
}

static void join_parts(struct scan *scan)
{
    size_t count = 0;
    if (scan->count)
        qsort(scan->entries, scan->count, sizeof *scan->entries, by_key);
    for (size_t i = 0; i < scan->count; i++) {
        struct scanned *part = &scan->entries[i], *last = &scan->entries[count - (count > 0)];
        if (count > 0 && strcmp(last->key, part->key) == 0) {
            last->parts |= part->parts;
            last->bytes += part->bytes;
            last->used = last->used ? last->used : part->used;
        } else {
            scan->entries[count++] = *part;
        }
    }
    scan->count = count;
}

/* A name that folder_write gives; others that begin like it are not ours. */
static bool is_temporary(const char *name)
{
    enum { PREFIX = sizeof TEMPORARY_PREFIX - 1 };
    return strncmp(name, TEMPORARY_PREFIX, PREFIX) == 0 &&
           strspn(name + PREFIX, "0123456789abcdef") == TEMPORARY_DIGITS &&
           name[PREFIX + TEMPORARY_DIGITS] == '\0';
}

/* 0, or the error: a file that cannot be looked at would make a stray of an entry's other one. */
static int scan_file(int folder, const char *name, bool remove_temporaries, struct scan *scan)
{
    struct stat status;
    bool temporary = remove_temporaries && is_temporary(name);
    if (!temporary && !has_key(name))
        return 0;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : errno;
    if (temporary)
        scan->temporaries += S_ISREG(status.st_mode) && unlinkat(folder, name, 0) == 0;
    else if (!add_file(scan, name, &status))
        return ENOMEM;
    return 0;
}

/* The same of all that is in the folder. */
static int scan_files(int folder, DIR *files, bool remove_temporaries, struct scan *scan)
{
    int error = 0;
    struct dirent *file;
    for (errno = 0; !error && (file = readdir(files)); errno = 0)
        error = scan_file(folder, file->d_name, remove_temporaries, scan);
    return error ? error : errno;
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
    int error = scan_files(folder, files, remove_temporaries, scan);
    closedir(files);
    join_parts(scan);
    if (!error)
        return PTXGEN_OK;
    scan_free(scan);
    if (error == ENOMEM)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to list the cache folder");
    return ptxgen_fail(err, PTXGEN_ERROR_FILE, "the cache folder cannot be listed whole: %s",
                       strerror(error));
}

void scan_free(struct scan *scan)
{
    free(scan->entries);
    *scan = (struct scan){0};
}

/* ---- making room ---- */

static bool is_whole(const struct scanned *scanned)
{
    return scanned->parts == PARTS_ENTRY || scanned->parts == PART_MEMO;
}

/* The cubin last: without its manifest it is a stray. */
void scanned_remove(int folder, const struct scanned *scanned)
{
    for (size_t i = PARTS; i-- > 0;)
        unlinkat(folder, entry_name(scanned->key, parts[i].suffix).text, 0);
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
        if (entry->used > now || !is_whole(entry))
            entry->used = 0;
    }
    if (scan->count)
        qsort(scan->entries, scan->count, sizeof *scan->entries, by_use);
    removed->strays += scan->temporaries;
    for (size_t i = 0; i < scan->count; i++) {
        const struct scanned *entry = &scan->entries[i];
        bool whole = is_whole(entry);
        if (whole && scan->bytes <= most)
            continue;
        scanned_remove(folder, entry);
        removed->entries += entry->parts == PARTS_ENTRY;
        removed->strays += !whole;
        removed->bytes += entry->bytes;
        scan->bytes -= entry->bytes;
    }
}
