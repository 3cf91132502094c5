/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of a file, and special tokens in a text. */
#include "vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_bytes(const void *left, const void *right)
{
    const struct word *a = left, *b = right;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->bytes, b->bytes, shorter);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

const struct word *vocabulary_find(const struct tokenizer *t, const char *bytes, size_t length)
{
    const struct word key = {.bytes = bytes, .length = length};
    return bsearch(&key, t->by_text, t->count, sizeof *t->by_text, by_bytes);
}

/* ---- opening ---- */

/* The byte that a word "<0x0A>" stands for; −1 for any other. */
static int byte_of_word(ptxgen_gguf_string word)
{
    static const char digits[] = "0123456789ABCDEF";
    if (word.length != 6 || memcmp(word.bytes, "<0x", 3) != 0 || word.bytes[5] != '>' ||
        !word.bytes[3] || !word.bytes[4])
        return -1;
    const char *high = strchr(digits, word.bytes[3]), *low = strchr(digits, word.bytes[4]);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

static int32_t special(const ptxgen_gguf *file, const char *key)
{
    uint32_t id;
    return ptxgen_gguf_get_u32(file, key, &id, NULL) == PTXGEN_OK ? (int32_t)id : -1;
}

static int by_length(const void *left, const void *right)
{
    const struct word *a = left, *b = right;
    return (a->length < b->length) - (a->length > b->length);
}

static void read_words(struct tokenizer *t, ptxgen_gguf_array tokens, ptxgen_gguf_array scores,
                       ptxgen_gguf_array types)
{
    ptxgen_gguf_value token, score = {0}, type = {0};
    memset(t->bytes, -1, sizeof t->bytes);
    for (uint32_t i = 0; i < t->count && ptxgen_gguf_array_next(&tokens, &token); i++) {
        ptxgen_gguf_array_next(&scores, &score);
        ptxgen_gguf_array_next(&types, &type);
        t->words[i] = (struct word){token.string.bytes, token.string.length, (int32_t)i, score.f32};
        t->kinds[i] = type.u < UINT8_MAX ? (uint8_t)type.u : 0;
        if ((type.u == KIND_CONTROL || type.u == KIND_USER_DEFINED) && token.string.length)
            t->specials[t->special_count++] = t->words[i];
        int byte = type.u == KIND_BYTE ? byte_of_word(token.string) : -1;
        if (byte >= 0)
            t->bytes[byte] = (int32_t)i;
    }
    memcpy(t->by_text, t->words, t->count * sizeof *t->words);
    qsort(t->by_text, t->count, sizeof *t->by_text, by_bytes);
    qsort(t->specials, t->special_count, sizeof *t->specials, by_length);
}

ptxgen_status tokenizer_open(const ptxgen_gguf *file, struct tokenizer **tokenizer,
                             ptxgen_error *err)
{
    ptxgen_gguf_string model;
    ptxgen_gguf_array tokens, scores = {0}, types = {0};
    *tokenizer = NULL;
    ptxgen_status status = ptxgen_gguf_get_string(file, "tokenizer.ggml.model", &model, err);
    if (!status)
        status = ptxgen_gguf_get_array(file, "tokenizer.ggml.tokens", &tokens, err);
    if (!status && (tokens.type != PTXGEN_GGUF_VALUE_STRING || tokens.count > INT32_MAX))
        status = ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "tokenizer.ggml.tokens are no strings");
    if (status)
        return status;
    ptxgen_gguf_get_array(file, "tokenizer.ggml.scores", &scores, NULL);
    ptxgen_gguf_get_array(file, "tokenizer.ggml.token_type", &types, NULL);
    struct tokenizer *t = calloc(1, sizeof *t);
    if (t) {
        t->count = (uint32_t)tokens.count;
        t->words = calloc(t->count + 1, sizeof *t->words);
        t->by_text = calloc(t->count + 1, sizeof *t->by_text);
        t->specials = calloc(t->count + 1, sizeof *t->specials);
        t->kinds = calloc(t->count + 1, sizeof *t->kinds);
    }
    if (!t || !t->words || !t->by_text || !t->specials || !t->kinds) {
        tokenizer_close(t);
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the vocabulary");
    }
    read_words(t, tokens, scores, types);
    t->first = special(file, "tokenizer.ggml.bos_token_id");
    t->last = special(file, "tokenizer.ggml.eos_token_id");
    t->is_sentencepiece = model.length == 5 && memcmp(model.bytes, "llama", 5) == 0;
    t->adds_first = t->adds_space = true;
    ptxgen_gguf_get_string(file, "tokenizer.ggml.pre", &t->pre, NULL);
    ptxgen_gguf_get_array(file, "tokenizer.ggml.merges", &t->merge_strings, NULL);
    ptxgen_gguf_get_bool(file, "tokenizer.ggml.add_bos_token", &t->adds_first, NULL);
    ptxgen_gguf_get_bool(file, "tokenizer.ggml.add_space_prefix", &t->adds_space, NULL);
    *tokenizer = t;
    return PTXGEN_OK;
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t)
        return;
    free(t->words);
    free(t->by_text);
    free(t->specials);
    free(t->kinds);
    free(t->merges);
    free(t);
}

bool tokenizer_ends(const struct tokenizer *t, int32_t id)
{
    return id == t->last;
}

/* ---- ids to text ---- */

static size_t piece_text(const struct tokenizer *t, const struct word *word, char *text,
                         size_t size)
{
    static const char space[] = "\xE2\x96\x81"; /* ▁ */
    size_t length = 0;
    for (int byte = 0; byte < 256; byte++)
        if (t->bytes[byte] == word->id) {
            text[0] = (char)byte;
            return 1;
        }
    for (size_t i = 0; i < word->length && length + 1 < size;) {
        bool is_space = word->length - i >= 3 && memcmp(word->bytes + i, space, 3) == 0;
        text[length++] = is_space ? ' ' : word->bytes[i];
        i += is_space ? 3 : 1;
    }
    return length;
}

/* A token whose text stands for itself. */
static size_t plain_text(const struct word *word, char *text, size_t size)
{
    size_t length = word->length < size - 1 ? word->length : size - 1;
    memcpy(text, word->bytes, length);
    return length;
}

void tokenizer_text(const struct tokenizer *t, int32_t id, char *text, size_t size)
{
    size_t length = 0;
    if (size > 1 && id >= 0 && (uint32_t)id < t->count && t->kinds[id] != KIND_CONTROL) {
        const struct word *word = &t->words[id];
        length = t->is_sentencepiece                 ? piece_text(t, word, text, size)
                 : t->kinds[id] == KIND_USER_DEFINED ? plain_text(word, text, size)
                                                     : bpe_text(word, text, size - 1);
    }
    if (size)
        text[length] = 0;
}

/* ---- text to ids ---- */

/* The longest special token at the text's begin, or NULL. */
static const struct word *special_at(const struct tokenizer *t, const char *text, size_t length)
{
    for (uint32_t i = 0; i < t->special_count; i++) {
        const struct word *word = &t->specials[i];
        if (word->length <= length && memcmp(word->bytes, text, word->length) == 0)
            return word;
    }
    return NULL;
}

/* The text up to the next special token, then that token. */
static ptxgen_status add_part(struct tokenizer *t, const char **text, struct ids *ids,
                              ptxgen_error *err)
{
    const char *at = *text;
    const struct word *word = NULL;
    const size_t length = strlen(at);
    size_t before = 0;
    while (before < length && !(word = special_at(t, at + before, length - before)))
        before++;
    *text += before + (word ? word->length : 0);
    ptxgen_status status = PTXGEN_OK;
    if (before)
        status = t->is_sentencepiece ? sentencepiece_ids(t, at, before, ids, err)
                                     : bpe_ids(t, at, before, ids, err);
    if (!status && word)
        ids->list[ids->count++] = word->id;
    return status;
}

ptxgen_status tokenizer_ids(struct tokenizer *t, const char *text, int32_t **list, uint32_t *count,
                            ptxgen_error *err)
{
    enum { ADDED = 3 }; /* to a part between special tokens: ▁ may be three tokens */
    struct ids ids = {.list = calloc((ADDED + 1) * (strlen(text) + 1), sizeof *ids.list)};
    ptxgen_status status = PTXGEN_OK;
    *list = NULL;
    *count = 0;
    if (!ids.list)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the text's tokens");
    const struct word *begin = special_at(t, text, strlen(text));
    if (t->adds_first && t->first >= 0 && !(begin && begin->id == t->first))
        ids.list[ids.count++] = t->first;
    do
        status = add_part(t, &text, &ids, err);
    while (!status && *text);
    if (status) {
        free(ids.list);
        return status;
    }
    *list = ids.list;
    *count = ids.count;
    return PTXGEN_OK;
}
