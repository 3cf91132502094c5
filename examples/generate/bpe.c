/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte-level BPE as Llama 3 has it ("llama-bpe"): text is split into words by the kinds of its
 * characters, each byte of a word is a piece, and of all neighbours that a merge joins those of the
 * least rank are joined, the first of them first, until no merge is left. A word that is a token is
 * that token, whatever the merges are.
 *
 *     word    's 't 're 've 'm 'll 'd, in any case
 *           | letters, behind one character that is no letter, number or line break
 *           | one to three numbers
 *           | other characters, behind one space, and the line breaks behind them
 *           | white space up to the last line break in it
 *           | white space, but for its last character where a word follows
 */
#include "classes.h"
#include "vocabulary.h"

#include <stdlib.h>
#include <string.h>

/* ---- bytes as characters ---- */

/*
 * Byte-level BPE writes each byte as a character: those that print as themselves, the others, in
 * order, from U+0100 on.
 */
static int byte_of(unsigned character)
{
    int byte = -1;
    bool prints = (character > 32 && character < 127) ||
                  (character > 160 && character < 256 && character != 173);
    if (prints)
        return (int)character;
    for (unsigned others = 256; others <= character && byte < 256; others++)
        do
            byte++;
        while ((byte > 32 && byte < 127) || (byte > 160 && byte < 256 && byte != 173));
    return byte < 256 ? byte : -1;
}

size_t bpe_text(const struct word *word, char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < word->length && length < size; i++) {
        unsigned c = (unsigned char)word->bytes[i];
        if (c >= 0xC0 && c < 0xE0 && i + 1 < word->length)
            c = (c & 0x1F) << 6 | ((unsigned char)word->bytes[++i] & 0x3F);
        int byte = byte_of(c);
        if (byte >= 0)
            text[length++] = (char)byte;
    }
    return length;
}

/* Writes the character of each byte; the two bytes of some are why there is room for twice as many.
 */
static size_t write_characters(const char *text, size_t length, char *to)
{
    size_t written = 0;
    for (size_t i = 0; i < length; i++) {
        const int byte = (unsigned char)text[i];
        unsigned character = (unsigned)byte;
        if (byte_of(character) != byte)
            for (character = 256; byte_of(character) != byte;)
                character++;
        if (character >= 0x80)
            to[written++] = (char)(0xC0 | character >> 6);
        to[written++] = (char)(character >= 0x80 ? 0x80 | (character & 0x3F) : character);
    }
    return written;
}

/* ---- words ---- */

/* The bytes from `at` on to the first character of none of the classes. */
static size_t run(const char *text, size_t length, size_t at, int classes)
{
    size_t bytes;
    while (class_of(text + at, length - at, &bytes) & classes)
        at += bytes;
    return at;
}

/* The bytes of a contraction's end at the text's begin, or 0. ſ is an s. */
static size_t contraction(const char *text, size_t length)
{
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d", "\xC5\xBF"};
    for (size_t i = 0; length && text[0] == '\'' && i < sizeof ends / sizeof *ends; i++) {
        size_t same = 0, due = strlen(ends[i]);
        for (; same < due && same + 1 < length; same++) {
            char c = text[same + 1];
            if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != ends[i][same])
                break;
        }
        if (same == due)
            return due + 1;
    }
    return 0;
}

static size_t up_to_three_numbers(const char *text, size_t length)
{
    size_t at = 0, bytes;
    for (int i = 0; i < 3 && class_of(text + at, length - at, &bytes) == CLASS_NUMBER; i++)
        at += bytes;
    return at;
}

static size_t white_space(const char *text, size_t length)
{
    const size_t end = run(text, length, 0, CLASS_SPACE | CLASS_NEWLINE);
    size_t last_break = end, last = 0, bytes = 0;
    while (last_break && text[last_break - 1] != '\n' && text[last_break - 1] != '\r')
        last_break--;
    if (last_break)
        return last_break;
    for (size_t at = 0; at < end; at += bytes) {
        class_of(text + at, end - at, &bytes);
        last = at;
    }
    return end == length || !last ? end : last;
}

/* The bytes of the first word of a text that is not empty. */
static size_t first_word(const char *text, size_t length)
{
    size_t first_bytes, bytes, end = contraction(text, length);
    const enum class first = class_of(text, length, &first_bytes);
    const enum class second = class_of(text + first_bytes, length - first_bytes, &bytes);
    if (end)
        return end;
    if (first == CLASS_LETTER || (second == CLASS_LETTER && first & (CLASS_SPACE | CLASS_OTHER)))
        return run(text, length, first_bytes, CLASS_LETTER);
    if (first == CLASS_NUMBER)
        return up_to_three_numbers(text, length);
    if (first == CLASS_OTHER || (text[0] == ' ' && second == CLASS_OTHER)) {
        end = run(text, length, first_bytes, CLASS_OTHER);
        return run(text, length, end, CLASS_NEWLINE);
    }
    return white_space(text, length);
}

/* ---- merges ---- */

static int by_pair(const void *left, const void *right)
{
    const struct merge *a = left, *b = right;
    return a->left != b->left ? (a->left > b->left) - (a->left < b->left)
                              : (a->right > b->right) - (a->right < b->right);
}

/* A merge whose tokens the vocabulary does not have is never reached. */
static bool read_merge(const struct tokenizer *t, ptxgen_gguf_string text, struct merge *merge)
{
    const char *gap = text.length > 1 ? memchr(text.bytes + 1, ' ', text.length - 1) : NULL;
    if (!gap)
        return false;
    const size_t left = (size_t)(gap - text.bytes), right = text.length - left - 1;
    char joined[512];
    if (left + right > sizeof joined)
        return false;
    memcpy(joined, text.bytes, left);
    memcpy(joined + left, gap + 1, right);
    const struct word *words[] = {vocabulary_find(t, text.bytes, left),
                                  vocabulary_find(t, gap + 1, right),
                                  vocabulary_find(t, joined, left + right)};
    if (!words[0] || !words[1] || !words[2])
        return false;
    merge->left = words[0]->id;
    merge->right = words[1]->id;
    merge->joined = words[2]->id;
    return true;
}

static ptxgen_status read_merges(struct tokenizer *t, ptxgen_error *err)
{
    ptxgen_gguf_array strings = t->merge_strings;
    ptxgen_gguf_value value;
    if (t->merges)
        return PTXGEN_OK;
    if (strings.type != PTXGEN_GGUF_VALUE_STRING || strings.count > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "tokenizer.ggml.merges are no strings");
    t->merges = calloc((size_t)strings.count + 1, sizeof *t->merges);
    if (!t->merges)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the merges");
    for (uint32_t rank = 0; ptxgen_gguf_array_next(&strings, &value); rank++) {
        t->merges[t->merge_count].rank = rank;
        t->merge_count += read_merge(t, value.string, &t->merges[t->merge_count]);
    }
    qsort(t->merges, t->merge_count, sizeof *t->merges, by_pair);
    return PTXGEN_OK;
}

static const struct merge *find_merge(const struct tokenizer *t, const int32_t *pair)
{
    const struct merge key = {.left = pair[0], .right = pair[1]};
    return bsearch(&key, t->merges, t->merge_count, sizeof *t->merges, by_pair);
}

/* Joins ids of a word until no merge is left; returns how many there are. */
static uint32_t join(const struct tokenizer *t, int32_t *ids, uint32_t count)
{
    for (;;) {
        const struct merge *best = NULL;
        uint32_t at = 0;
        for (uint32_t i = 0; i + 1 < count; i++) {
            const struct merge *merge = find_merge(t, ids + i);
            if (merge && (!best || merge->rank < best->rank)) {
                best = merge;
                at = i;
            }
        }
        if (!best)
            return count;
        ids[at] = best->joined;
        count--;
        memmove(ids + at + 1, ids + at + 2, (count - at - 1) * sizeof *ids);
    }
}

/* ---- text to ids ---- */

/* `characters` has room for two bytes for each of the word's. */
static ptxgen_status add_word(const struct tokenizer *t, const char *text, size_t length,
                              char *characters, struct ids *ids, ptxgen_error *err)
{
    int32_t *const to = ids->list + ids->count;
    const struct word *whole =
        vocabulary_find(t, characters, write_characters(text, length, characters));
    if (whole) {
        to[0] = whole->id;
        ids->count++;
        return PTXGEN_OK;
    }
    for (size_t i = 0; i < length; i++) {
        const struct word *byte =
            vocabulary_find(t, characters, write_characters(text + i, 1, characters));
        if (!byte)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "the vocabulary has no token for the byte 0x%02X",
                               (unsigned char)text[i]);
        to[i] = byte->id;
    }
    ids->count += join(t, to, (uint32_t)length);
    return PTXGEN_OK;
}

static ptxgen_status check_pattern(const struct tokenizer *t, ptxgen_error *err)
{
    static const char *const known[] = {"llama-bpe", "llama3", "llama-v3"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (t->pre.length == strlen(known[i]) && memcmp(t->pre.bytes, known[i], t->pre.length) == 0)
            return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                       "text is split into words as llama-bpe does, and tokenizer.ggml.pre is "
                       "\"%.*s\": give ids",
                       (int)t->pre.length, t->pre.length ? t->pre.bytes : "");
}

ptxgen_status bpe_ids(struct tokenizer *t, const char *text, size_t length, struct ids *ids,
                      ptxgen_error *err)
{
    ptxgen_status status = check_pattern(t, err);
    if (!status)
        status = read_merges(t, err);
    if (status)
        return status;
    char *characters = malloc(2 * length + 1);
    if (!characters)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the text's tokens");
    for (size_t bytes; !status && length; text += bytes, length -= bytes) {
        bytes = first_word(text, length);
        status = add_word(t, text, bytes, characters, ids, err);
    }
    free(characters);
    return status;
}
