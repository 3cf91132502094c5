/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/cache_memo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "ptxgen-memo: 1\n"

static const char label[] = "memo: ", entry_label[] = "entry: ";

/* ---- the question ---- */

/* A tuned plan goes by its ranges and no other plan has any, so none are written for those. */
static size_t append_tiles(char text[TUNING_ENTRY_BYTES], size_t used, const ptxgen_tiling *tiling,
                           const ptxgen_tuned_range *ranges, size_t count)
{
    for (size_t i = 0; used && i < count; i++)
        used = tuning_append_range(text, used, tiling->names, i ? ranges[i - 1].to_m + 1 : 1,
                                   &ranges[i]);
    return used;
}

bool memo_question_make(const ptxgen_family *family, const struct origin *origin,
                        const ptxgen_tuned_range *ranges, size_t count,
                        struct memo_question *question)
{
    char revision[DIGEST_HEX + 1];
    if (!family->revision || strlen(family->revision) >= sizeof revision)
        return false;
    strcpy(revision, family->revision);
    make_printable(revision);
    size_t used =
        (size_t)snprintf(question->text, sizeof question->text, SCHEMA "revision: %s\n", revision);
    if (origin->length >= sizeof question->text - used)
        return false;
    memcpy(question->text + used, origin->lines, origin->length);
    question->length =
        append_tiles(question->text, used + origin->length, family->tiling, ranges, count);
    question->key = digest_of(question->text, question->length);
    return question->length > 0;
}

/* ---- the answer ---- */

static size_t memo_most_bytes(size_t length, const struct entry_points *entries)
{
    size_t most = length + PTX_LINE_MOST_BYTES + CHECKSUM_MOST_LENGTH;
    for (unsigned i = 0; i < entries->count; i++)
        most += sizeof entry_label + strlen(entries->points[i].name) + 48;
    return most;
}

char *memo_make(const char *question, size_t length, const struct memo_answer *answer)
{
    const struct entry_points *entries = &answer->entries;
    size_t most = memo_most_bytes(length, entries);
    char *text = most <= MANIFEST_MOST_BYTES ? malloc(most) : NULL;
    if (!text)
        return NULL;
    memcpy(text, question, length);
    size_t used = length + ptx_line_append(text + length, &answer->ptx);
    for (unsigned i = 0; i < entries->count; i++)
        used += (size_t)snprintf(text + used, most - used, "%s%s, %zu shared bytes\n", entry_label,
                                 entries->points[i].name, entries->points[i].dynamic_shared_bytes);
    checksum_append(text, used, label);
    return text;
}

/* Cuts the names out of the lines from `line` on, which are entries->names. */
static void read_entries(char *line, struct entry_points *entries)
{
    while (strncmp(line, entry_label, sizeof entry_label - 1) == 0) {
        char *name = line + sizeof entry_label - 1, *comma = strchr(name, ',');
        if (!comma)
            return;
        *comma = '\0';
        entries->points[entries->count++] =
            (struct entry_point){name, strtoull(comma + 1, &line, 10)};
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
}

static unsigned count_lines(const char *text)
{
    unsigned lines = 0;
    for (; (text = strchr(text, '\n')); text++)
        lines++;
    return lines;
}

/* Reads the text leniently; the caller then checks that writing the answer gives the same text. */
static enum reading read_answer(const char *ptx_line, struct memo_answer *answer)
{
    struct entry_points *entries = &answer->entries;
    int end = 0;
    if (sscanf(ptx_line, "ptx: %64[0-9a-f], %zu bytes%n", answer->ptx.digest.hex,
               &answer->ptx.bytes, &end) != 2 ||
        ptx_line[end] != '\n')
        return READING_DAMAGED;
    entries->names = strdup(ptx_line + end + 1);
    entries->points = calloc(count_lines(ptx_line), sizeof *entries->points);
    if (!entries->names || !entries->points)
        return READING_FAILED;
    read_entries(entries->names, entries);
    return READING_WHOLE;
}

static enum reading compare_with_written(const char *text, size_t size, size_t length,
                                         const struct memo_answer *answer)
{
    if (memo_most_bytes(length, &answer->entries) > MANIFEST_MOST_BYTES)
        return READING_DAMAGED;
    char *again = memo_make(text, length, answer);
    if (!again)
        return READING_FAILED;
    bool same = strlen(again) == size && memcmp(again, text, size) == 0;
    free(again);
    return same ? READING_WHOLE : READING_DAMAGED;
}

enum reading memo_read(const char *key, const char *text, size_t size, struct memo_answer *answer,
                       const char **why)
{
    *answer = (struct memo_answer){0};
    *why = "it is damaged";
    const char *line = strstr(text, "\nptx: ");
    if (!line || strncmp(text, SCHEMA, sizeof SCHEMA - 1) != 0)
        return READING_DAMAGED;
    size_t length = (size_t)(line + 1 - text);
    if (strcmp(digest_of(text, length).hex, key) != 0) {
        *why = "it is of another question";
        return READING_DAMAGED;
    }
    enum reading reading = read_answer(line + 1, answer);
    if (reading == READING_WHOLE)
        reading = compare_with_written(text, size, length, answer);
    if (reading == READING_WHOLE)
        *why = NULL;
    else
        entry_points_free(&answer->entries);
    if (reading == READING_FAILED)
        *why = "there is no memory for it";
    return reading;
}
