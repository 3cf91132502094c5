/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/cache_entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry_name entry_name(const char *key, const char *suffix)
{
    struct entry_name name;
    snprintf(name.text, sizeof name.text, "%.*s%s", DIGEST_HEX, key, suffix);
    return name;
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

enum reading entry_read(int folder, const char *key, struct contents *manifest,
                        struct contents *cubin, const char **why)
{
    struct manifest_tail tail;
    *manifest = (struct contents){0};
    *cubin = (struct contents){0};
    enum reading reading = folder_read(folder, entry_name(key, MANIFEST_SUFFIX).text,
                                       MANIFEST_MOST_BYTES, manifest, why);
    if (reading != READING_WHOLE)
        return reading;
    *why = check_manifest(key, manifest, &tail);
    if (*why)
        return READING_DAMAGED;
    reading = folder_read(folder, entry_name(key, CUBIN_SUFFIX).text, CUBIN_MOST_BYTES, cubin, why);
    if (reading == READING_ABSENT) {
        *why = "it has no cubin";
        return READING_DAMAGED;
    }
    if (reading != READING_WHOLE)
        return reading;
    *why = check_cubin(cubin, &tail);
    if (!*why)
        return READING_WHOLE;
    free(cubin->bytes);
    *cubin = (struct contents){0};
    return READING_DAMAGED;
}

enum reading memo_load(int folder, const char *key, struct contents *memo,
                       struct memo_answer *answer, const char **why)
{
    *memo = (struct contents){0};
    enum reading reading =
        folder_read(folder, entry_name(key, MEMO_SUFFIX).text, MANIFEST_MOST_BYTES, memo, why);
    if (reading != READING_WHOLE)
        return reading;
    return memo_read(key, memo->bytes, memo->size, answer, why);
}
