/* SPDX-License-Identifier: Apache-2.0 */
#include "truth.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 60 };

/* ---- digests ---- */

uint64_t truth_fold(uint64_t digest, uint64_t word)
{
    uint64_t x = (digest ^ word) + UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t truth_fold_text(uint64_t digest, const char *text)
{
    for (; *text; text++)
        digest = truth_fold(digest, (unsigned char)*text);
    return digest;
}

static uint32_t short_digest(uint64_t inputs)
{
    return (uint32_t)(inputs >> 32);
}

/* ---- writing ---- */

/* The kernel module's release, where the system tells it: "580.95.05". */
static void write_release(FILE *out)
{
    char line[256] = "";
    FILE *f = fopen("/proc/driver/nvidia/version", "r");
    if (!f)
        return;
    for (char *rest = fgets(line, sizeof line, f), *word;
         rest && (word = strtok_r(rest, " ", &rest));)
        if (word[strspn(word, "0123456789.")] == 0 && strchr(word, '.')) {
            fprintf(out, "# release %s\n", word);
            break;
        }
    fclose(f);
}

void truth_write_header(FILE *out, const char *program, const char *card, int driver,
                        uint32_t operands)
{
    fprintf(out,
            "# Recorded by %s --gpu --record; how to read it is in tests/gpu/truth.h.\n"
            "program %s\ncard %s\ndriver %d\n",
            program, program, card, driver);
    if (strncmp(card, "PTX emulator", 12) != 0)
        write_release(out);
    fprintf(out, "generator %d\noperands %" PRIu32 "\n", TRUTH_GENERATOR, operands);
}

void truth_write(FILE *out, const char *name, uint64_t inputs, uint64_t results)
{
    fprintf(out, "%08" PRIx32 " %016" PRIx64 " %s\n", short_digest(inputs), results, name);
}

void truth_write_bounded(FILE *out, const char *name, uint64_t inputs)
{
    fprintf(out, "%08" PRIx32 " - %s\n", short_digest(inputs), name);
}

void truth_write_word(FILE *out, uint64_t word, bool beyond, bool last_of_line)
{
    fprintf(out, " %s%" PRIx64 "%s", beyond ? "!" : "", word, last_of_line ? "\n" : "");
}

/* ---- reading ---- */

static char *read_text(const char *path)
{
    char *text = NULL;
    FILE *f = fopen(path, "rb");
    long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    if (size >= 0 && fseek(f, 0, SEEK_SET) == 0 && (text = calloc(1, (size_t)size + 1)) &&
        fread(text, 1, (size_t)size, f) != (size_t)size) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return text;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct truth_line *)a)->name, ((const struct truth_line *)b)->name);
}

/* "inputs results name"; false when it is none. */
static bool parse_line(char *line, struct truth_line *made)
{
    char *end, *results;
    *made = (struct truth_line){0};
    made->inputs = (uint32_t)strtoul(line, &end, 16);
    if (end != line + 8 || *end != ' ')
        return false;
    results = end + 1;
    made->results = strtoull(results, &end, 16);
    if (results[0] == '-')
        end = results + 1;
    else if (end != results + 16)
        return false;
    made->name = end + 1;
    return *end == ' ' && end[1];
}

/* The value of a line of the header. */
static const char *header_value(char *line, const char *key)
{
    size_t length = strlen(key);
    return strncmp(line, key, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

/* Lines of words stay together, as one text behind the line that they belong to. */
static void join_words(struct truth *truth, char *line)
{
    struct truth_line *owner = truth->count ? &truth->lines[truth->count - 1] : NULL;
    if (owner && owner->words)
        line[-1] = ' ';
    else if (owner)
        owner->words = line;
}

static bool parse(struct truth *truth, const char *program, char why[TRUTH_SENTENCE])
{
    long generator = -1;
    const char *recorded_by = "", *value;
    size_t capacity = 0, number = 0;
    for (char *line = truth->text, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = 0;
        number++;
        if (*line == '#' || !*line)
            continue;
        if (*line == ' ') {
            join_words(truth, line);
            continue;
        }
        if ((value = header_value(line, "program")))
            recorded_by = value;
        else if ((value = header_value(line, "card")))
            truth->card = value;
        else if ((value = header_value(line, "driver")))
            truth->driver = (int)strtol(value, NULL, 10);
        else if ((value = header_value(line, "generator")))
            generator = strtol(value, NULL, 10);
        else if ((value = header_value(line, "operands")))
            truth->operands = (uint32_t)strtoul(value, NULL, 10);
        else {
            if (truth->count == capacity) {
                capacity = capacity ? 2 * capacity : 1024;
                truth->lines = realloc(truth->lines, capacity * sizeof *truth->lines);
                if (!truth->lines)
                    abort();
            }
            if (!parse_line(line, &truth->lines[truth->count])) {
                snprintf(why, TRUTH_SENTENCE, "line %zu is none of a form: %.60s", number, line);
                return false;
            }
            truth->count++;
        }
    }
    if (strcmp(recorded_by, program) != 0)
        snprintf(why, TRUTH_SENTENCE, "recorded by \"%.60s\", not by %s", recorded_by, program);
    else if (generator != TRUTH_GENERATOR)
        snprintf(why, TRUTH_SENTENCE,
                 "recorded with generator %ld, this is %d: record it again on a card", generator,
                 TRUTH_GENERATOR);
    else if (!truth->card || strncmp(truth->card, "PTX emulator", 12) == 0)
        snprintf(why, TRUTH_SENTENCE, "recorded from the emulator, not from a card");
    else if (truth->operands == 0 || truth->operands % 128 || truth->operands > 1u << 20)
        snprintf(why, TRUTH_SENTENCE, "%" PRIu32 " operands are no multiple of 128 up to 2^20",
                 truth->operands);
    else
        return true;
    return false;
}

bool truth_read(struct truth *truth, const char *path, const char *program,
                char why[TRUTH_SENTENCE])
{
    *truth = (struct truth){.text = read_text(path)};
    if (!truth->text) {
        snprintf(why, TRUTH_SENTENCE, "it cannot be read");
        return false;
    }
    if (!parse(truth, program, why)) {
        truth_free(truth);
        return false;
    }
    if (truth->count)
        qsort(truth->lines, truth->count, sizeof *truth->lines, compare_names);
    return true;
}

void truth_free(struct truth *truth)
{
    free(truth->lines);
    free(truth->text);
    *truth = (struct truth){0};
}

const struct truth_line *truth_find(struct truth *truth, const char *name)
{
    const struct truth_line key = {.name = name};
    struct truth_line *line = truth->count ? bsearch(&key, truth->lines, truth->count,
                                                     sizeof *truth->lines, compare_names)
                                           : NULL;
    if (line)
        line->asked_for = true;
    return line;
}

size_t truth_report_unasked(const struct truth *truth, FILE *out)
{
    size_t unasked = 0;
    for (size_t i = 0; i < truth->count; i++)
        if (!truth->lines[i].asked_for && unasked++ < SHOWN)
            fprintf(out, "%s: kept, but nothing has this name any more\n", truth->lines[i].name);
    return unasked;
}

bool truth_differs(const struct truth_line *line, uint64_t inputs, uint64_t results, char *why,
                   size_t size)
{
    if (line->inputs != short_digest(inputs))
        snprintf(why, size,
                 "no truth for this form: its inputs are others than those recorded; record it on "
                 "a card");
    else if (!line->words && line->results != results)
        snprintf(why, size,
                 "its results are not the card's (digest %" PRIx64 ", kept is %" PRIx64
                 "); with --gpu the operands are told",
                 results, line->results);
    else
        return false;
    return true;
}
