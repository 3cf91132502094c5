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
    *folder = -1;
    ptxgen_status status = folder_open(cache, false, folder, err);
    return status == PTXGEN_ERROR_NOT_FOUND ? PTXGEN_OK : status;
}

/* ---- checking ---- */

/* Reads a manifest, to be freed, and what belongs to it; NULL, or why that is not to be used. */
static const char *check_entry(int folder, const char *key, struct contents *manifest)
{
    struct contents cubin;
    const char *damage;
    if (!entry_read(folder, key, manifest, &cubin, &damage) && !damage)
        damage = "it has no manifest";
    free(cubin.bytes);
    return damage;
}

/* The same of a memo. */
static const char *check_memo(int folder, const char *key, struct contents *memo)
{
    struct memo_answer answer;
    const char *damage;
    if (memo_load(folder, key, memo, &answer, &damage))
        entry_points_free(&answer.entries);
    else if (!damage)
        damage = "it is gone";
    return damage;
}

static const char *inspect(int folder, const struct scanned *scanned, struct contents *text)
{
    return scanned->parts == PART_MEMO ? check_memo(folder, scanned->key, text)
                                       : check_entry(folder, scanned->key, text);
}

/* ---- visiting ---- */

static int visit_scanned(int folder, const struct scanned *scanned,
                         int (*visit)(void *user, const ptxgen_cache_entry *entry), void *user)
{
    struct contents text;
    const char *damage = inspect(folder, scanned, &text);
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

static ptxgen_status visit_all(const ptxgen_cache *cache,
                               int (*visit)(void *user, const ptxgen_cache_entry *entry),
                               void *user, int *stopped, ptxgen_error *err)
{
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

ptxgen_status ptxgen_cache_visit(const ptxgen_cache *cache,
                                 int (*visit)(void *user, const ptxgen_cache_entry *entry),
                                 void *user, int *stopped, ptxgen_error *err)
{
    int cancellation = cancellation_hold();
    ptxgen_status status = visit_all(cache, visit, user, stopped, err);
    cancellation_allow(cancellation);
    return status;
}

/* ---- cleaning ---- */

/* Marks what is damaged as a stray, so that shrinking removes it. */
static void find_damage(int folder, struct scan *scan)
{
    for (size_t i = 0; i < scan->count; i++) {
        struct contents text;
        if (inspect(folder, &scan->entries[i], &text))
            scan->entries[i].parts = 0;
        free(text.bytes);
    }
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
        if (check)
            find_damage(folder, &scan);
        scan_shrink(folder, &scan, max_bytes, removed);
        scan_free(&scan);
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
    int cancellation = cancellation_hold();
    ptxgen_status status = clean(cache, max_bytes, check, &counted, err);
    cancellation_allow(cancellation);
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
