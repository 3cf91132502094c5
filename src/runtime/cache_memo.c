/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/cache_memo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "ptxgen-memo: 1\n"

static const char label[] = "memo: ", entry_label[] = "entry: ";

/* ---- the question ---- */

/* A tuned plan goes by its ranges and no other plan has any, so none are written for those. */
bool memo_question_make(const ptxgen_family *family, const struct origin *origin,
                        const ptxgen_tuned_range *ranges, size_t count, struct keyed_text *question)
{
    char revision[DIGEST_HEX + 1];
    struct text text = {.at = question->text, .size = sizeof question->text};
    if (!family->revision || strlen(family->revision) >= sizeof revision)
        return false;
    strcpy(revision, family->revision);
    make_printable(revision);
    text_add(&text, SCHEMA "revision: %s\n%s", revision, origin->lines);
    for (size_t i = 0; i < count; i++)
        tuning_add_range(&text, family->tiling->names, i ? ranges[i - 1].to_m + 1 : 1, &ranges[i]);
    question->length = text.used;
    question->key = digest_of(question->text, question->length);
    return !text.is_cut;
}

/* ---- the answer ---- */

/* Its length; 0 when it is too long. */
static size_t write_memo(const char *question, size_t length, const struct memo_answer *answer,
                         char memo[MANIFEST_MOST_BYTES])
{
    const struct entry_points *entries = &answer->entries;
    struct text text = {.at = memo, .size = MANIFEST_MOST_BYTES - CHECKSUM_MOST_LENGTH};
    text_add(&text, "%.*s", (int)length, question);
    ptx_line_add(&text, &answer->ptx);
    for (unsigned i = 0; i < entries->count; i++)
        text_add(&text, "%s%s, %zu shared bytes\n", entry_label, entries->points[i].name,
                 entries->points[i].dynamic_shared_bytes);
    return text.is_cut ? 0 : checksum_append(memo, text.used, label);
}

char *memo_make(const char *question, size_t length, const struct memo_answer *answer)
{
    char memo[MANIFEST_MOST_BYTES];
    return write_memo(question, length, answer, memo) ? strdup(memo) : NULL;
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

enum reading memo_read(const char *key, const char *text, size_t size, struct memo_answer *answer,
                       const char **why)
{
    char again[MANIFEST_MOST_BYTES];
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
        reading = write_memo(text, length, answer, again) == size && !memcmp(again, text, size)
                      ? READING_WHOLE
                      : READING_DAMAGED;
    if (reading == READING_FAILED)
        *why = "there is no memory for it";
    if (reading == READING_WHOLE)
        *why = NULL;
    else
        entry_points_free(&answer->entries);
    return reading;
}
