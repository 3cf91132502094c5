/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the disk cache, and its entries' coming and going. */
#define _GNU_SOURCE /* secure_getenv */
#include "src/runtime/cache_store.h"
#include "src/runtime/uncancelled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- opening ---- */

/* NULL when unset, empty, or not to be trusted. */
static const char *variable(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

bool cache_is_switched_off(void)
{
    const char *value = variable("PTXGEN_CACHE");
    return value && (strcmp(value, "off") == 0 || strcmp(value, "0") == 0);
}

static ptxgen_status read_size(const char *text, uint64_t *bytes, ptxgen_error *err)
{
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    bool ends = unit ? end[1] == '\0' : *end == '\0';
    if (*text < '0' || *text > '9' || errno || !ends || number == 0 || number > UINT64_MAX >> shift)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "PTXGEN_CACHE_SIZE=%s is not a size: a number of bytes above 0, or one "
                           "with K, M or G",
                           text);
    *bytes = (uint64_t)number << shift;
    return PTXGEN_OK;
}

static ptxgen_cache *make(const char *folder, const char *below, uint64_t max_bytes)
{
    size_t size = strlen(folder) + strlen(below) + 1;
    ptxgen_cache *cache = malloc(sizeof *cache + size);
    if (!cache)
        return NULL;
    cache->max_bytes = max_bytes;
    snprintf(cache->folder, size, "%s%s", folder, below);
    for (size_t last = strlen(cache->folder); last > 1 && cache->folder[last - 1] == '/';)
        cache->folder[--last] = '\0'; /* or a link at the end would be followed */
    return cache;
}

/* The basedir specification ignores an XDG_CACHE_HOME that is not absolute. */
static ptxgen_status choose_folder(const char *folder, uint64_t max_bytes, ptxgen_cache **cache,
                                   ptxgen_error *err)
{
    const char *below = "";
    if (folder && !*folder)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "the name of the cache folder is empty; without one it is the default");
    if (!folder)
        folder = variable("PTXGEN_CACHE_DIR");
    if (!folder) {
        folder = variable("XDG_CACHE_HOME");
        below = "/ptxgen";
        if (folder && *folder != '/')
            folder = NULL;
    }
    if (!folder) {
        folder = variable("HOME");
        below = "/.cache/ptxgen";
    }
    if (!folder)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE,
                           "no cache folder is known: none was given, and PTXGEN_CACHE_DIR, "
                           "XDG_CACHE_HOME and HOME are not set");
    *cache = make(folder, below, max_bytes);
    if (!*cache)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a cache");
    return PTXGEN_OK;
}

ptxgen_status ptxgen_cache_open(const ptxgen_cache_options *options, ptxgen_cache **cache,
                                ptxgen_error *err)
{
    UNCANCELLED;
    if (!cache)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "ptxgen_cache_open: cache is NULL");
    *cache = NULL;
    uint64_t max_bytes = options ? options->max_bytes : 0;
    const char *size = variable("PTXGEN_CACHE_SIZE");
    ptxgen_status status = PTXGEN_OK;
    if (!max_bytes && size)
        status = read_size(size, &max_bytes, err);
    if (status == PTXGEN_OK)
        status = choose_folder(options ? options->folder : NULL,
                               max_bytes ? max_bytes : (uint64_t)256 << 20, cache, err);
    if (status != PTXGEN_OK)
        return status;
    int folder;
    ptxgen_error refusal;
    status = folder_open(*cache, false, &folder, &refusal);
    if (status == PTXGEN_OK)
        close(folder);
    if (status == PTXGEN_OK || status == PTXGEN_ERROR_NOT_FOUND)
        return PTXGEN_OK;
    ptxgen_cache_close(*cache);
    *cache = NULL;
    return ptxgen_fail(err, status, "%s", refusal.message);
}

void ptxgen_cache_close(ptxgen_cache *cache)
{
    free(cache);
}

const char *ptxgen_cache_folder(const ptxgen_cache *cache)
{
    return cache ? cache->folder : NULL;
}

uint64_t ptxgen_cache_max_bytes(const ptxgen_cache *cache)
{
    return cache ? cache->max_bytes : 0;
}

/* ---- looking up ---- */

/* False with an empty record, where none of this text can be used. */
static bool look_up(const ptxgen_cache *cache, const struct keyed_text *wanted,
                    struct record *record, const char **why)
{
    int folder;
    *why = NULL;
    if (folder_open(cache, false, &folder, NULL) != PTXGEN_OK)
        return false;
    bool sound = record_read(folder, wanted->key.hex, record, why) == READING_WHOLE;
    /* The key is a hash of the text; a collision would be news. */
    if (sound && strncmp(record->text.bytes, wanted->text, wanted->length) != 0) {
        sound = false;
        *why = record->is_memo ? "it is another one with the same key"
                               : "its manifest is another one with the same key";
    }
    const char *suffix = record->is_memo ? MEMO_SUFFIX : MANIFEST_SUFFIX;
    if (sound)
        folder_touch(folder, entry_name(wanted->key.hex, suffix).text, record->text.used);
    else
        record_free(record);
    close(folder);
    return sound;
}

bool cache_recall(const ptxgen_cache *cache, const struct keyed_text *question,
                  struct memo_answer *answer, const char **why)
{
    struct record memo = {.is_memo = true};
    bool sound = look_up(cache, question, &memo, why);
    *answer = memo.answer;
    free(memo.text.bytes);
    return sound;
}

bool cache_load(const ptxgen_cache *cache, const struct keyed_text *head, ptxgen_cubin *cubin,
                const char **why)
{
    struct record entry = {.is_memo = false};
    bool sound = look_up(cache, head, &entry, why);
    *cubin = (ptxgen_cubin){entry.cubin.bytes, entry.cubin.size};
    free(entry.text.bytes);
    return sound;
}

/* ---- publishing ---- */

static ptxgen_status make_room(const ptxgen_cache *cache, int folder, uint64_t needed,
                               ptxgen_error *err)
{
    if (needed <= cache->max_bytes)
        return cache_shrink(folder, cache->max_bytes - needed, err);
    return ptxgen_fail(err, PTXGEN_ERROR_FILE,
                       "an entry of %llu bytes is larger than the whole cache may be, %llu",
                       (unsigned long long)needed, (unsigned long long)cache->max_bytes);
}

struct file {
    struct entry_name name;
    const void *bytes;
    size_t size;
};

static bool write_files(int folder, const struct file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!folder_write(folder, files[i].name.text, files[i].bytes, files[i].size))
            return false;
    return true;
}

/*
 * With the lock held. An older manifest goes first, so that whoever is killed in between leaves a
 * cubin alone, which the next publication removes, and not two files that do not fit. A memo comes
 * last: it is never without its entry.
 */
static ptxgen_status write_publication(const ptxgen_cache *cache, int folder,
                                       const struct publication *p, const char *manifest,
                                       ptxgen_error *err)
{
    struct file files[3];
    size_t count = 0, bytes = 0;
    if (manifest) {
        files[count++] = (struct file){entry_name(p->head->key.hex, CUBIN_SUFFIX), p->cubin->bytes,
                                       p->cubin->size};
        files[count++] = (struct file){entry_name(p->head->key.hex, MANIFEST_SUFFIX), manifest,
                                       strlen(manifest)};
    }
    if (p->memo)
        files[count++] =
            (struct file){entry_name(p->question->key.hex, MEMO_SUFFIX), p->memo, strlen(p->memo)};
    for (size_t i = 0; i < count; i++)
        bytes += files[i].size;
    ptxgen_status status = make_room(cache, folder, bytes, err);
    if (status == PTXGEN_OK && manifest)
        unlinkat(folder, files[1].name.text, 0);
    if (status == PTXGEN_OK && !write_files(folder, files, count))
        status = ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s cannot be written to: %s", cache->folder,
                             strerror(errno));
    return status;
}

ptxgen_status cache_publish(const ptxgen_cache *cache, const struct publication *p,
                            ptxgen_error *err)
{
    int folder, lock;
    char *manifest = NULL;
    if (p->cubin) {
        manifest = manifest_make(p->head, p->cubin);
        if (!manifest)
            return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a manifest");
    }
    ptxgen_status status = folder_open_locked(cache, &folder, &lock, err);
    if (status == PTXGEN_OK) {
        status = write_publication(cache, folder, p, manifest, err);
        close(lock);
        close(folder);
    }
    free(manifest);
    return status;
}
