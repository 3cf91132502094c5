/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping a tuned choice: the file is read, changed and replaced under the cache's lock. */
#include "src/runtime/cache_folder.h"
#include "src/runtime/manifest.h"
#include "src/runtime/tuning.h"
#include "src/runtime/uncancelled.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
    size_t head_length, length;
    char text[TUNING_ENTRY_BYTES];
};

/* ---- the entry ---- */

static ptxgen_status write_entry(struct entry *entry, const ptxgen_device_facts *device,
                                 const ptxgen_family *family, const void *spec,
                                 const ptxgen_target *target, const ptxgen_tuned_range *ranges,
                                 size_t count, ptxgen_error *err)
{
    char line[TUNING_DEVICE_BYTES];
    tuning_device(device, line);
    entry->head_length = tuning_head(family, spec, target, line, entry->text);
    entry->length = entry->head_length;
    uint32_t from = 1;
    for (size_t i = 0; entry->length && i < count; i++) {
        if (!from || ranges[i].to_m < from)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "%s: a range of M up to %u follows one up to %u", family->name,
                               ranges[i].to_m, from - 1);
        entry->length = tuning_append_range(entry->text, entry->length, family->tiling->names, from,
                                            &ranges[i]);
        from = ranges[i].to_m + 1;
    }
    if (entry->length)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                       "%s: the spec and its ranges are too long to be kept", family->name);
}

/* Refuses ranges that no plan can use. */
static ptxgen_status check(const ptxgen_family *family, const void *spec,
                           const ptxgen_target *target, const ptxgen_tuned_range *ranges,
                           size_t count, ptxgen_error *err)
{
    if (!family->tiling)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s has no tiles to choose",
                           family->name);
    if (!count || count > PTXGEN_TUNED_RANGES)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: %zu ranges of M are not 1 to %d", family->name, count,
                           PTXGEN_TUNED_RANGES);
    void *plan = malloc(family->plan_bytes);
    if (!plan)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "%s: no memory for a plan",
                           family->name);
    ptxgen_status status = family->make_plan(spec, target, plan, err);
    if (status == PTXGEN_OK)
        status = family->tiling->use(plan, ranges, count, err);
    free(plan);
    return status;
}

/* ---- the file ---- */

/* The end of the entry that begins with the empty line at `entry`. */
static char *end_of(char *entry)
{
    char *next = strstr(entry + 1, "\n\n");
    return next ? next + 1 : entry + strlen(entry);
}

static void remove_entry(char *entry)
{
    char *end = end_of(entry);
    memmove(entry, end, strlen(end) + 1);
}

/* Takes the spec's old entry out, then the oldest until there is room. */
static void make_room(char *entries, const struct entry *entry)
{
    enum { ROOM = TUNING_MOST_BYTES - sizeof TUNING_SCHEMA - CHECKSUM_MOST_LENGTH - 1 };
    char head[TUNING_ENTRY_BYTES];
    memcpy(head, entry->text, entry->head_length);
    head[entry->head_length] = '\0';
    char *old = strstr(entries, head);
    if (old)
        remove_entry(old);
    while (*entries && strlen(entries) + entry->length > ROOM)
        remove_entry(entries);
}

/* What is damaged is lost; what cannot be read now may be in order, and stays as it is. */
static ptxgen_status read_old(const ptxgen_cache *cache, int folder, char *entries,
                              ptxgen_error *err)
{
    struct contents old;
    const char *why;
    switch (folder_read(folder, TUNING_NAME, TUNING_MOST_BYTES, &old, &why)) {
    case READING_FAILED:
        return ptxgen_fail(err, PTXGEN_ERROR_FILE,
                           "%s/" TUNING_NAME ", to which the choice would be added: %s",
                           cache->folder, why);
    case READING_WHOLE:
        strcpy(entries, tuning_entries(old.bytes, old.size, &why));
        free(old.bytes);
        break;
    case READING_ABSENT:
    case READING_DAMAGED: break;
    }
    return PTXGEN_OK;
}

static ptxgen_status replace_file(const ptxgen_cache *cache, int folder, const struct entry *entry,
                                  ptxgen_error *err)
{
    char *text = malloc(2 * TUNING_MOST_BYTES);
    if (!text)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the file of tiles");
    char *entries = text + sizeof TUNING_SCHEMA - 1;
    memcpy(text, TUNING_SCHEMA, sizeof TUNING_SCHEMA);
    ptxgen_status status = read_old(cache, folder, entries, err);
    if (status != PTXGEN_OK) {
        free(text);
        return status;
    }
    make_room(entries, entry);
    size_t used = strlen(text);
    memcpy(text + used, entry->text, entry->length);
    used += entry->length;
    text[used++] = '\n';
    used = checksum_append(text, used, TUNING_CHECKSUM);
    bool written = folder_write(folder, TUNING_NAME, text, used);
    free(text);
    if (written)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s cannot be written to: %s", cache->folder,
                       strerror(errno));
}

static ptxgen_status keep(const ptxgen_cache *cache, const struct entry *entry, ptxgen_error *err)
{
    int folder, lock;
    ptxgen_status status = folder_open_locked(cache, &folder, &lock, err);
    if (status != PTXGEN_OK)
        return status;
    status = replace_file(cache, folder, entry, err);
    close(lock);
    close(folder);
    return status;
}

ptxgen_status ptxgen_tuning_store(const ptxgen_cache *cache, const ptxgen_device_facts *device,
                                  const ptxgen_family *family, const void *spec,
                                  const ptxgen_target *target, const ptxgen_tuned_range *ranges,
                                  size_t count, ptxgen_error *err)
{
    UNCANCELLED;
    struct entry entry;
    if (!cache || !device || !family || !spec || !target || !ranges)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_tuning_store: an argument is NULL");
    ptxgen_status status = check(family, spec, target, ranges, count, err);
    if (status == PTXGEN_OK)
        status = write_entry(&entry, device, family, spec, target, ranges, count, err);
    return status == PTXGEN_OK ? keep(cache, &entry, err) : status;
}
