/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SentencePiece's way from text to ids: spaces become ▁, each character is a piece, and of all
 * neighbours that together are a token those with the highest score are joined, until none are
 * left. Pieces that are no token are taken byte by byte.
 */
#include "tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    const char *bytes;
    size_t length;
    int32_t id;
    float score;
};

struct tokenizer {
    uint32_t count;
    struct word *words;   /* by id */
    struct word *by_text; /* sorted */
    bool *is_hidden;      /* control tokens, by id */
    int32_t bytes[256];   /* the tokens <0x00> to <0xFF>, or −1 */
    int32_t first, last;  /* of a text, or −1 */
    bool is_sentencepiece, adds_first, adds_space;
};

static const char space[] = "\xE2\x96\x81"; /* ▁ */

static int by_bytes(const void *left, const void *right)
{
    const struct word *a = left, *b = right;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->bytes, b->bytes, shorter);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

static const struct word *find(const struct tokenizer *t, const char *bytes, size_t length)
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

static void read_words(struct tokenizer *t, ptxgen_gguf_array tokens, ptxgen_gguf_array scores,
                       ptxgen_gguf_array types)
{
    enum { CONTROL = 3, BYTE = 6 };
    ptxgen_gguf_value token, score = {0}, type = {0};
    memset(t->bytes, -1, sizeof t->bytes);
    for (uint32_t i = 0; i < t->count && ptxgen_gguf_array_next(&tokens, &token); i++) {
        ptxgen_gguf_array_next(&scores, &score);
        ptxgen_gguf_array_next(&types, &type);
        t->words[i] = (struct word){token.string.bytes, token.string.length, (int32_t)i, score.f32};
        t->is_hidden[i] = type.u == CONTROL;
        int byte = type.u == BYTE ? byte_of_word(token.string) : -1;
        if (byte >= 0)
            t->bytes[byte] = (int32_t)i;
    }
    memcpy(t->by_text, t->words, t->count * sizeof *t->words);
    qsort(t->by_text, t->count, sizeof *t->by_text, by_bytes);
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
        t->is_hidden = calloc(t->count + 1, sizeof *t->is_hidden);
    }
    if (!t || !t->words || !t->by_text || !t->is_hidden) {
        tokenizer_close(t);
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the vocabulary");
    }
    read_words(t, tokens, scores, types);
    t->first = special(file, "tokenizer.ggml.bos_token_id");
    t->last = special(file, "tokenizer.ggml.eos_token_id");
    t->is_sentencepiece = model.length == 5 && memcmp(model.bytes, "llama", 5) == 0;
    t->adds_first = t->adds_space = true;
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
    free(t->is_hidden);
    free(t);
}

bool tokenizer_ends(const struct tokenizer *t, int32_t id)
{
    return id == t->last;
}

/* ---- ids to text ---- */

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

static size_t bpe_text(const struct word *word, char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < word->length && length + 1 < size; i++) {
        unsigned c = (unsigned char)word->bytes[i];
        if (c >= 0xC0 && c < 0xE0 && i + 1 < word->length)
            c = (c & 0x1F) << 6 | ((unsigned char)word->bytes[++i] & 0x3F);
        int byte = byte_of(c);
        if (byte >= 0)
            text[length++] = (char)byte;
    }
    return length;
}

static size_t piece_text(const struct tokenizer *t, const struct word *word, char *text,
                         size_t size)
{
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

void tokenizer_text(const struct tokenizer *t, int32_t id, char *text, size_t size)
{
    size_t length = 0;
    if (size > 1 && id >= 0 && (uint32_t)id < t->count && !t->is_hidden[id])
        length = t->is_sentencepiece ? piece_text(t, &t->words[id], text, size)
                                     : bpe_text(&t->words[id], text, size);
    if (size)
        text[length] = 0;
}

/* ---- text to ids ---- */

struct piece {
    const char *bytes;
    size_t length;
    const struct word *joined; /* with the next piece, if that is a token */
};

static void look_ahead(const struct tokenizer *t, struct piece *pieces, size_t count, size_t i)
{
    pieces[i].joined =
        i + 1 < count ? find(t, pieces[i].bytes, pieces[i].length + pieces[i + 1].length) : NULL;
}

static size_t join_pieces(const struct tokenizer *t, struct piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++)
        look_ahead(t, pieces, count, i);
    for (;;) {
        size_t best = count;
        for (size_t i = 0; i < count; i++)
            if (pieces[i].joined &&
                (best == count || pieces[i].joined->score > pieces[best].joined->score))
                best = i;
        if (best == count)
            return count;
        pieces[best].length += pieces[best + 1].length;
        memmove(pieces + best + 1, pieces + best + 2, (count - best - 2) * sizeof *pieces);
        count--;
        look_ahead(t, pieces, count, best);
        if (best)
            look_ahead(t, pieces, count, best - 1);
    }
}

/* The text with ▁ for spaces, and one at its beginning where the model has that. */
static char *with_spaces(const struct tokenizer *t, const char *text)
{
    char *to = malloc(3 * strlen(text) + 4), *end = to;
    if (!to)
        return NULL;
    if (t->adds_space) {
        memcpy(end, space, 3);
        end += 3;
    }
    for (; *text; text++) {
        bool is_space = *text == ' ';
        memcpy(end, is_space ? space : text, is_space ? 3 : 1);
        end += is_space ? 3 : 1;
    }
    *end = 0;
    return to;
}

static size_t split_characters(const char *text, struct piece *pieces)
{
    size_t count = 0;
    for (; *text; count++) {
        size_t length = 1;
        while (((unsigned char)text[length] & 0xC0) == 0x80)
            length++;
        pieces[count] = (struct piece){text, length, NULL};
        text += length;
    }
    return count;
}

static uint32_t piece_ids(const struct tokenizer *t, const struct piece *piece, int32_t *ids)
{
    const struct word *word = find(t, piece->bytes, piece->length);
    uint32_t count = 0;
    if (word) {
        ids[0] = word->id;
        return 1;
    }
    for (size_t i = 0; i < piece->length; i++)
        if (t->bytes[(unsigned char)piece->bytes[i]] >= 0)
            ids[count++] = t->bytes[(unsigned char)piece->bytes[i]];
    return count;
}

ptxgen_status tokenizer_ids(const struct tokenizer *t, const char *text, int32_t **ids,
                            uint32_t *count, ptxgen_error *err)
{
    *ids = NULL;
    *count = 0;
    if (!t->is_sentencepiece)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "the file's vocabulary is not SentencePiece's: give ids");
    char *spaced = with_spaces(t, text);
    struct piece *pieces = spaced ? calloc(strlen(spaced) + 1, sizeof *pieces) : NULL;
    int32_t *list = pieces ? calloc(strlen(spaced) + 1, sizeof *list) : NULL;
    if (!list) {
        free(pieces);
        free(spaced);
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the text's tokens");
    }
    if (t->adds_first && t->first >= 0)
        list[(*count)++] = t->first;
    size_t left = join_pieces(t, pieces, split_characters(spaced, pieces));
    for (size_t i = 0; i < left; i++)
        *count += piece_ids(t, &pieces[i], list + *count);
    *ids = list;
    free(pieces);
    free(spaced);
    return PTXGEN_OK;
}
