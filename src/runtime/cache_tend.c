/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into the disk cache and cleaning it. */
#include "src/runtime/cache_scan.h"
#include "src/runtime/uncancelled.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- checking ---- */

/* Reads a manifest, to be freed, and what belongs to it; *damage is NULL, or why it is no use. */
static enum reading check_entry(int folder, const char *key, struct contents *manifest,
                                const char **damage)
{
    struct contents cubin;
    enum reading reading = entry_read(folder, key, manifest, &cubin, damage);
    if (reading == READING_ABSENT)
        *damage = "it has no manifest";
    free(cubin.bytes);
    return reading;
}

/* The same of a memo. */
static enum reading check_memo(int folder, const char *key, struct contents *memo,
                               const char **damage)
{
    struct memo_answer answer;
    enum reading reading = memo_load(folder, key, memo, &answer, damage);
    if (reading == READING_WHOLE)
        entry_points_free(&answer.entries);
    else if (reading == READING_ABSENT)
        *damage = "it is gone";
    return reading;
}

static enum reading inspect(int folder, const struct scanned *scanned, struct contents *text,
                            const char **damage)
{
    return scanned->parts == PART_MEMO ? check_memo(folder, scanned->key, text, damage)
                                       : check_entry(folder, scanned->key, text, damage);
}

/* ---- visiting ---- */

static int visit_scanned(int folder, const struct scanned *scanned,
                         int (*visit)(void *user, const ptxgen_cache_entry *entry), void *user)
{
    struct contents text;
    const char *damage;
    inspect(folder, scanned, &text, &damage);
    ptxgen_cache_entry entry = {.key = scanned->key,
                                .manifest = text.bytes ? text.bytes : "",
                                .bytes = scanned->bytes,
                                .used = scanned->used,
                                .damage = damage,
                                .is_memo = scanned->parts == PART_MEMO};
    int stopped = visit(user, &entry);
    free(text.bytes);
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
        struct contents text;
        const char *damage;
        enum reading reading = inspect(folder, scanned, &text, &damage);
        free(text.bytes);
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
