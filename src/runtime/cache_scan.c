/* SPDX-License-Identifier: Apache-2.0 */
/* The folder's files as a sorted list of entries and memos: making room, visiting, cleaning. */
#include "src/runtime/cache_store.h"
#include "src/runtime/uncancelled.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PART_CUBIN = 1, PART_MANIFEST = 2, PART_MEMO = 4, PARTS_ENTRY = PART_CUBIN | PART_MANIFEST };

struct scanned {
    char key[DIGEST_HEX + 1];
    unsigned parts; /* PARTS_ENTRY and PART_MEMO are whole, all others strays */
    uint64_t bytes; /* of all */
    time_t used;
};

struct scan {
    struct scanned *entries; /* by key; strays too */
    size_t count, capacity;
    uint64_t bytes;
    uint64_t temporaries; /* removed by the scan */
};

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

static void scan_free(struct scan *scan)
{
    free(scan->entries);
    *scan = (struct scan){0};
}

/* With `remove_temporaries`, for who holds the lock: nobody is writing, so they are left over. */
static ptxgen_status scan_make(int folder, bool remove_temporaries, struct scan *scan,
                               ptxgen_error *err)
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

/* ---- making room ---- */

static bool is_whole(const struct scanned *scanned)
{
    return scanned->parts == PARTS_ENTRY || scanned->parts == PART_MEMO;
}

/* The cubin last: without its manifest it is a stray. */
static void scanned_remove(int folder, const struct scanned *scanned)
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

/*
 * With the lock held: removes the strays, then what was not used for the longest time, until at
 * most `most` bytes are left. An entry of the future counts as the oldest: if it is in use, its
 * time is put right.
 */
static void scan_shrink(int folder, struct scan *scan, uint64_t most, ptxgen_cache_removed *removed)
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

ptxgen_status cache_shrink(int folder, uint64_t most, ptxgen_error *err)
{
    struct scan scan;
    ptxgen_cache_removed removed = {0};
    ptxgen_status status = scan_make(folder, true, &scan, err);
    if (status != PTXGEN_OK)
        return status;
    scan_shrink(folder, &scan, most, &removed);
    scan_free(&scan);
    return PTXGEN_OK;
}

/* ---- visiting ---- */

/* The folder, or PTXGEN_OK with −1 when there is none. */
static ptxgen_status open_if_there(const ptxgen_cache *cache, int *folder, ptxgen_error *err)
{
    ptxgen_error refusal;
    *folder = -1;
    ptxgen_status status = folder_open(cache, false, folder, &refusal);
    if (status == PTXGEN_OK || status == PTXGEN_ERROR_NOT_FOUND)
        return PTXGEN_OK;
    return ptxgen_fail(err, status, "%s", refusal.message);
}

/* Reads what there is of it; *damage is NULL, or why it is no use. */
static enum reading inspect(int folder, const struct scanned *scanned, struct record *record,
                            const char **damage)
{
    *record = (struct record){.is_memo = scanned->parts == PART_MEMO};
    enum reading reading = record_read(folder, scanned->key, record, damage);
    if (reading == READING_ABSENT)
        *damage = record->is_memo ? "it is gone" : "it has no manifest";
    return reading;
}

static int visit_scanned(int folder, const struct scanned *scanned,
                         int (*visit)(void *user, const ptxgen_cache_entry *entry), void *user)
{
    struct record record;
    const char *damage;
    inspect(folder, scanned, &record, &damage);
    ptxgen_cache_entry entry = {.key = scanned->key,
                                .manifest = record.text.bytes ? record.text.bytes : "",
                                .bytes = scanned->bytes,
                                .used = scanned->used,
                                .damage = damage,
                                .is_memo = record.is_memo};
    int stopped = visit(user, &entry);
    record_free(&record);
    return stopped;
}

ptxgen_status ptxgen_cache_visit(const ptxgen_cache *cache,
                                 int (*visit)(void *user, const ptxgen_cache_entry *entry),
                                 void *user, int *stopped, ptxgen_error *err)
{
    UNCANCELLED;
    struct scan scan;
    int folder, result = 0;
    if (!cache || !visit)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_cache_visit: cache or visit is NULL");
    if (stopped)
        *stopped = 0;
    ptxgen_status status = open_if_there(cache, &folder, err);
    if (status != PTXGEN_OK || folder < 0)
        return status;
    status = scan_make(folder, false, &scan, err);
    for (size_t i = 0; status == PTXGEN_OK && !result && i < scan.count; i++)
        result = visit_scanned(folder, &scan.entries[i], visit, user);
    scan_free(&scan);
    close(folder);
    if (stopped)
        *stopped = result;
    return status;
}

/* ---- cleaning ---- */

/* What could not be read now, and so stays. */
struct unread {
    size_t count;
    char key[DIGEST_HEX + 1]; /* of the first */
    const char *why;
};

/* Marks what is damaged as a stray, so that shrinking removes it. */
static struct unread find_damage(int folder, struct scan *scan)
{
    struct unread unread = {.count = 0};
    for (size_t i = 0; i < scan->count; i++) {
        struct scanned *scanned = &scan->entries[i];
        struct record record;
        const char *damage;
        enum reading reading = inspect(folder, scanned, &record, &damage);
        record_free(&record);
        if (reading == READING_FAILED && unread.count++ == 0) {
            memcpy(unread.key, scanned->key, sizeof unread.key);
            unread.why = damage;
        } else if (reading == READING_DAMAGED || reading == READING_ABSENT) {
            scanned->parts = 0;
        }
    }
    return unread;
}

static ptxgen_status tell_unread(const ptxgen_cache *cache, const struct unread *unread,
                                 ptxgen_error *err)
{
    if (!unread->count)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_FILE,
                       "%zu of the entries and memos in %s cannot be read and were left there "
                       "unchecked, the first being %s: %s",
                       unread->count, cache->folder, unread->key, unread->why);
}

static ptxgen_status clean(const ptxgen_cache *cache, uint64_t max_bytes, bool check,
                           ptxgen_cache_removed *removed, ptxgen_error *err)
{
    struct scan scan;
    int folder, lock;
    ptxgen_status status = open_if_there(cache, &folder, err);
    if (status != PTXGEN_OK || folder < 0)
        return status;
    status = folder_lock(cache, folder, &lock, err);
    if (status != PTXGEN_OK) {
        close(folder);
        return status;
    }
    status = scan_make(folder, true, &scan, err);
    if (status == PTXGEN_OK) {
        struct unread unread = {.count = 0};
        if (check)
            unread = find_damage(folder, &scan);
        scan_shrink(folder, &scan, max_bytes, removed);
        scan_free(&scan);
        status = tell_unread(cache, &unread, err);
    }
    close(lock);
    close(folder);
    return status;
}

static ptxgen_status clean_and_tell(const ptxgen_cache *cache, uint64_t max_bytes, bool check,
                                    ptxgen_cache_removed *removed, ptxgen_error *err)
{
    ptxgen_cache_removed counted = {0};
    if (!cache)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "the cache is NULL");
    UNCANCELLED;
    ptxgen_status status = clean(cache, max_bytes, check, &counted, err);
    if (removed)
        *removed = counted;
    return status;
}

ptxgen_status ptxgen_cache_prune(const ptxgen_cache *cache, uint64_t max_bytes,
                                 ptxgen_cache_removed *removed, ptxgen_error *err)
{
    return clean_and_tell(cache, max_bytes, true, removed, err);
}

ptxgen_status ptxgen_cache_clear(const ptxgen_cache *cache, ptxgen_cache_removed *removed,
                                 ptxgen_error *err)
{
    return clean_and_tell(cache, 0, false, removed, err);
}
