/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of tuned choices: reading the file, and planning by it. */
#include "src/runtime/tuning.h"
#include "src/runtime/cache_folder.h"
#include "src/runtime/cuda_version.h"
#include "src/runtime/manifest.h"
#include "src/runtime/uncancelled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ptxgen_tuning {
    char device[TUNING_DEVICE_BYTES];
    const char *complaint;
    char *text;          /* malloc'ed; NULL: there is none */
    const char *entries; /* within it, or "" */
};

/* ---- the text ---- */

void tuning_device(const ptxgen_device_facts *device, char line[TUNING_DEVICE_BYTES])
{
    char name[sizeof device->name];
    snprintf(name, sizeof name, "%.*s", (int)sizeof name - 1, device->name);
    make_printable(name);
    snprintf(line, TUNING_DEVICE_BYTES, "device: sm_%d, %s, CUDA %d.%d\n",
             device->compute_capability, name, CUDA_MAJOR(device->driver_version),
             CUDA_MINOR(device->driver_version));
}

size_t tuning_head(const ptxgen_family *family, const void *spec, const ptxgen_target *target,
                   const char *device, char text[TUNING_ENTRY_BYTES])
{
    size_t device_length = strlen(device);
    text[0] = '\n';
    size_t used = manifest_subject(family, spec, target, text + 1, TUNING_ENTRY_BYTES - 1);
    if (!used || device_length >= TUNING_ENTRY_BYTES - 1 - used)
        return 0;
    memcpy(text + 1 + used, device, device_length + 1);
    return 1 + used + device_length;
}

size_t tuning_append_range(char text[TUNING_ENTRY_BYTES], size_t used, const char *const *names,
                           uint32_t from, const ptxgen_tuned_range *range)
{
    int written = snprintf(text + used, TUNING_ENTRY_BYTES - used, "m %u-%u:", from, range->to_m);
    for (size_t i = 0; written >= 0 && names[i]; i++) {
        used += (size_t)written;
        if (used >= TUNING_ENTRY_BYTES)
            return 0;
        written =
            snprintf(text + used, TUNING_ENTRY_BYTES - used, " %s=%u", names[i], range->tile[i]);
    }
    used += written < 0 ? TUNING_ENTRY_BYTES : (size_t)written;
    if (used + 1 >= TUNING_ENTRY_BYTES)
        return 0;
    memcpy(text + used, "\n", 2);
    return used + 1;
}

const char *tuning_entries(char *text, size_t length, const char **why)
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
    tuning_device(device, (*tuning)->device);
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
        tuning->entries = tuning_entries(file.bytes, file.size, &tuning->complaint);
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
        t->entries = tuning_entries(t->text, length, &t->complaint);
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
    size_t length = tuning_append_range(again, 0, names, from, range);
    if (!length || range->to_m < from || strncmp(*line, again, length) != 0)
        return false;
    *line += length;
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

size_t ptxgen_tuning_find(const ptxgen_tuning *tuning, const ptxgen_family *family,
                          const void *spec, const ptxgen_target *target,
                          ptxgen_tuned_range ranges[PTXGEN_TUNED_RANGES])
{
    char head[TUNING_ENTRY_BYTES];
    if (!tuning || !family || !spec || !target || !ranges || !*tuning->entries || !family->tiling)
        return 0;
    size_t length = tuning_head(family, spec, target, tuning->device, head);
    const char *entry = length ? strstr(tuning->entries, head) : NULL;
    return entry ? read_ranges(entry + length, family->tiling->names, ranges) : 0;
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
