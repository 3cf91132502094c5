/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of tuned choices: reading the file, planning by it, and storing a choice. */
#include "src/runtime/ptx_version.h"
#include "src/runtime/tuning.h"
#include "src/runtime/cache_folder.h"
#include "src/runtime/manifest.h"
#include "src/runtime/uncancelled.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ptxgen_tuning {
    char device[TUNING_DEVICE_BYTES]; /* "device: …", a line */
    const char *complaint;
    char *text;          /* malloc'ed; NULL: there is none */
    const char *entries; /* within it, or "" */
};

/* ---- the text ---- */

/* "device: …", a line. */
static void add_device(const ptxgen_device_facts *device, struct text *to)
{
    char name[sizeof device->name];
    snprintf(name, sizeof name, "%.*s", (int)sizeof name - 1, device->name);
    make_printable(name);
    text_add(to, "device: sm_%d, %s, CUDA %d.%d\n", device->compute_capability, name,
             CUDA_MAJOR(device->driver_version), CUDA_MINOR(device->driver_version));
}

void tuning_add_range(struct text *to, const char *const *names, uint32_t from,
                      const ptxgen_tuned_range *range)
{
    text_add(to, "m %u-%u:", from, range->to_m);
    for (size_t i = 0; names[i]; i++)
        text_add(to, " %s=%u", names[i], range->tile[i]);
    text_add(to, "\n");
}

/*
 * The entries of a file, NUL-terminated within `text`, which is changed; "" when it is damaged,
 * with the reason in *why, else NULL.
 */
static const char *entries_of(char *text, size_t length, const char **why)
{
    enum { SCHEMA_LENGTH = sizeof TUNING_SCHEMA - 1 };
    *why = "its first line is another";
    if (strncmp(text, TUNING_SCHEMA, SCHEMA_LENGTH) != 0)
        return "";
    *why = "its checksum is wrong";
    if (!checksum_remove(text, &length, TUNING_CHECKSUM) || length <= SCHEMA_LENGTH)
        return "";
    text[length - 1] = '\0'; /* the empty line before the checksum */
    *why = NULL;
    return text + SCHEMA_LENGTH;
}

/* ---- loading ---- */

static ptxgen_status create(const ptxgen_device_facts *device, ptxgen_tuning **tuning,
                            ptxgen_error *err)
{
    if (!device || !tuning)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_tuning: device or tuning is NULL");
    *tuning = calloc(1, sizeof **tuning);
    if (!*tuning)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a table of tiles");
    add_device(device, &(struct text){.at = (*tuning)->device, .size = TUNING_DEVICE_BYTES});
    (*tuning)->entries = "";
    return PTXGEN_OK;
}

static void read_file(ptxgen_tuning *tuning, const ptxgen_cache *cache)
{
    ptxgen_error err;
    struct contents file;
    int folder;
    ptxgen_status status = folder_open(cache, false, &folder, &err);
    if (status == PTXGEN_ERROR_FILE)
        tuning->complaint = "the cache folder cannot be opened, or is refused";
    if (status != PTXGEN_OK)
        return;
    if (folder_read(folder, TUNING_NAME, TUNING_MOST_BYTES, &file, &tuning->complaint) ==
        READING_WHOLE) {
        tuning->text = file.bytes;
        tuning->entries = entries_of(file.bytes, file.size, &tuning->complaint);
    }
    close(folder);
}

ptxgen_status ptxgen_tuning_load(const ptxgen_cache *cache, const ptxgen_device_facts *device,
                                 ptxgen_tuning **tuning, ptxgen_error *err)
{
    UNCANCELLED;
    ptxgen_status status = create(device, tuning, err);
    if (status == PTXGEN_OK && cache)
        read_file(*tuning, cache);
    return status;
}

ptxgen_status ptxgen_tuning_parse(const char *text, size_t length,
                                  const ptxgen_device_facts *device, ptxgen_tuning **tuning,
                                  ptxgen_error *err)
{
    if (!text)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "ptxgen_tuning_parse: text is NULL");
    ptxgen_status status = create(device, tuning, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_tuning *t = *tuning;
    t->complaint = "it is too long";
    t->text = length <= TUNING_MOST_BYTES ? malloc(length + 1) : NULL;
    if (t->text) {
        memcpy(t->text, text, length);
        t->text[length] = '\0';
        t->entries = entries_of(t->text, length, &t->complaint);
    } else if (length <= TUNING_MOST_BYTES) {
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a table of tiles");
    }
    if (status == PTXGEN_OK && t->complaint)
        status = ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "the table of tiles is not used: %s",
                             t->complaint);
    if (status == PTXGEN_OK)
        return PTXGEN_OK;
    ptxgen_tuning_free(t);
    *tuning = NULL;
    return status;
}

void ptxgen_tuning_free(ptxgen_tuning *tuning)
{
    if (tuning)
        free(tuning->text);
    free(tuning);
}

const char *ptxgen_tuning_complaint(const ptxgen_tuning *tuning)
{
    return tuning ? tuning->complaint : NULL;
}

/* ---- looking up ---- */

/* The number behind `before`, where *at stands, which moves on. */
static bool read_number(const char **at, const char *before, uint32_t *number)
{
    size_t length = strlen(before);
    char *end;
    if (strncmp(*at, before, length) != 0)
        return false;
    *number = (uint32_t)strtoul(*at + length, &end, 10);
    bool read = end != *at + length;
    *at = end;
    return read;
}

/* Reads numbers leniently, and then checks that writing them gives the same line. */
static bool read_range(const char **line, const char *const *names, uint32_t from,
                       ptxgen_tuned_range *range)
{
    char again[TUNING_ENTRY_BYTES], before[64];
    const char *at = *line;
    uint32_t unused;
    *range = (ptxgen_tuned_range){0};
    if (!read_number(&at, "m ", &unused) || !read_number(&at, "-", &range->to_m) || *at++ != ':')
        return false;
    for (size_t i = 0; names[i]; i++) {
        snprintf(before, sizeof before, " %s=", names[i]);
        if (!read_number(&at, before, &range->tile[i]))
            return false;
    }
    struct text written = {.at = again, .size = sizeof again};
    tuning_add_range(&written, names, from, range);
    if (written.is_cut || range->to_m < from || strncmp(*line, again, written.used) != 0)
        return false;
    *line += written.used;
    return true;
}

/* Reads the ranges of an entry, and returns their number; 0 when a line is wrong. */
static size_t read_ranges(const char *line, const char *const *names,
                          ptxgen_tuned_range ranges[PTXGEN_TUNED_RANGES])
{
    size_t count = 0;
    for (uint32_t from = 1; *line && *line != '\n'; from = ranges[count++].to_m + 1)
        if (count == PTXGEN_TUNED_RANGES || !from ||
            !read_range(&line, names, from, &ranges[count]))
            return 0;
    return count;
}

/* The lines of an entry before its ranges, with the empty one in front. */
static void add_head(const ptxgen_family *family, const void *spec, const ptxgen_target *target,
                     const char *device, struct text *to)
{
    text_add(to, "\n");
    manifest_subject(family, spec, target, to);
    text_add(to, "%s", device);
}

size_t ptxgen_tuning_find(const ptxgen_tuning *tuning, const ptxgen_family *family,
                          const void *spec, const ptxgen_target *target,
                          ptxgen_tuned_range ranges[PTXGEN_TUNED_RANGES])
{
    char head[TUNING_ENTRY_BYTES];
    if (!tuning || !family || !spec || !target || !ranges || !*tuning->entries || !family->tiling)
        return 0;
    struct text text = {.at = head, .size = sizeof head};
    add_head(family, spec, target, tuning->device, &text);
    const char *entry = text.is_cut ? NULL : strstr(tuning->entries, head);
    return entry ? read_ranges(entry + text.used, family->tiling->names, ranges) : 0;
}

ptxgen_status ptxgen_tuned_plan(const ptxgen_tuning *tuning, const ptxgen_family *family,
                                const void *spec, const ptxgen_target *target, void *plan,
                                bool *tuned, ptxgen_error *err)
{
    ptxgen_tuned_range ranges[PTXGEN_TUNED_RANGES];
    if (!family || !family->make_plan || !spec || !target || !plan)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_tuned_plan: family, spec, target or plan is NULL, or the family "
                           "has no make_plan");
    ptxgen_status status = family->make_plan(spec, target, plan, err);
    if (tuned)
        *tuned = false;
    size_t count =
        status == PTXGEN_OK ? ptxgen_tuning_find(tuning, family, spec, target, ranges) : 0;
    if (!count)
        return status;
    if (family->tiling->use(plan, ranges, count, NULL) != PTXGEN_OK)
        return family->make_plan(spec, target, plan, err);
    if (tuned)
        *tuned = true;
    return PTXGEN_OK;
}

/* ---- storing: the file is read, changed and replaced under the cache's lock ---- */

struct entry {
    size_t head_length, length;
    char text[TUNING_ENTRY_BYTES];
};

static ptxgen_status write_entry(struct entry *entry, const ptxgen_device_facts *device,
                                 const ptxgen_family *family, const void *spec,
                                 const ptxgen_target *target, const ptxgen_tuned_range *ranges,
                                 size_t count, ptxgen_error *err)
{
    char line[TUNING_DEVICE_BYTES];
    struct text text = {.at = entry->text, .size = sizeof entry->text};
    add_device(device, &(struct text){.at = line, .size = sizeof line});
    add_head(family, spec, target, line, &text);
    entry->head_length = text.used;
    uint32_t from = 1;
    for (size_t i = 0; !text.is_cut && i < count; i++) {
        if (!from || ranges[i].to_m < from)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "%s: a range of M up to %u follows one up to %u", family->name,
                               ranges[i].to_m, from - 1);
        tuning_add_range(&text, family->tiling->names, from, &ranges[i]);
        from = ranges[i].to_m + 1;
    }
    entry->length = text.used;
    if (!text.is_cut)
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
        strcpy(entries, entries_of(old.bytes, old.size, &why));
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
