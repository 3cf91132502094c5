/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/cache_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry_name entry_name(const char *key, const char *suffix)
{
    struct entry_name name;
    snprintf(name.text, sizeof name.text, "%.*s%s", DIGEST_HEX, key, suffix);
    return name;
}

void record_free(struct record *record)
{
    free(record->text.bytes);
    free(record->cubin.bytes);
    entry_points_free(&record->answer.entries);
    *record = (struct record){.is_memo = record->is_memo};
}

static const char *check_manifest(const char *key, const struct contents *manifest,
                                  struct manifest_tail *tail)
{
    if (!manifest_read(manifest->bytes, manifest->size, tail))
        return "its manifest is damaged";
    if (strcmp(digest_of(manifest->bytes, tail->head_length).hex, key) != 0)
        return "its manifest belongs to another key";
    return NULL;
}

static const char *check_cubin(const struct contents *cubin, const struct manifest_tail *tail)
{
    if (cubin->size != tail->cubin_bytes)
        return "its cubin is not as long as the manifest says";
    if (strcmp(digest_of(cubin->bytes, cubin->size).hex, tail->cubin.hex) != 0)
        return "its cubin has the wrong checksum";
    return NULL;
}

/* The cubin that the manifest promises. */
static enum reading read_cubin(int folder, const char *key, struct record *r, const char **why)
{
    struct manifest_tail tail;
    *why = check_manifest(key, &r->text, &tail);
    if (*why)
        return READING_DAMAGED;
    enum reading reading =
        folder_read(folder, entry_name(key, CUBIN_SUFFIX).text, CUBIN_MOST_BYTES, &r->cubin, why);
    if (reading == READING_WHOLE)
        *why = check_cubin(&r->cubin, &tail);
    else if (reading == READING_ABSENT)
        *why = "it has no cubin";
    return reading != READING_FAILED && *why ? READING_DAMAGED : reading;
}

enum reading record_read(int folder, const char *key, struct record *r, const char **why)
{
    enum reading reading =
        folder_read(folder, entry_name(key, r->is_memo ? MEMO_SUFFIX : MANIFEST_SUFFIX).text,
                    MANIFEST_MOST_BYTES, &r->text, why);
    if (reading != READING_WHOLE)
        return reading;
    return r->is_memo ? memo_read(key, r->text.bytes, r->text.size, &r->answer, why)
                      : read_cubin(folder, key, r, why);
}
