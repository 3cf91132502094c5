/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SentencePiece's way from text to ids: spaces become ▁, each character is a piece, and of all
 * neighbours that together are a token those with the highest score are joined, until none are
 * left. Pieces that are no token are taken byte by byte.
 */
#include "vocabulary.h"

#include <stdlib.h>
#include <string.h>

struct piece {
    const char *bytes;
    size_t length;
    const struct word *joined; /* with the next piece, if that is a token */
};

static void look_ahead(const struct tokenizer *t, struct piece *pieces, size_t count, size_t i)
{
    pieces[i].joined =
        i + 1 < count ? vocabulary_find(t, pieces[i].bytes, pieces[i].length + pieces[i + 1].length)
                      : NULL;
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
static char *with_spaces(const struct tokenizer *t, const char *text, size_t length)
{
    static const char space[] = "\xE2\x96\x81"; /* ▁ */
    char *to = malloc(3 * length + 4), *end = to;
    if (!to)
        return NULL;
    if (t->adds_space) {
        memcpy(end, space, 3);
        end += 3;
    }
    for (size_t i = 0; i < length; i++) {
        bool is_space = text[i] == ' ';
        memcpy(end, is_space ? space : text + i, is_space ? 3 : 1);
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
    const struct word *word = vocabulary_find(t, piece->bytes, piece->length);
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

ptxgen_status sentencepiece_ids(const struct tokenizer *t, const char *text, size_t length,
                                struct ids *ids, ptxgen_error *err)
{
    char *spaced = with_spaces(t, text, length);
    struct piece *pieces = spaced ? calloc(strlen(spaced) + 1, sizeof *pieces) : NULL;
    if (!pieces) {
        free(spaced);
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the text's tokens");
    }
    size_t left = join_pieces(t, pieces, split_characters(spaced, pieces));
    for (size_t i = 0; i < left; i++)
        ids->count += piece_ids(t, &pieces[i], ids->list + ids->count);
    free(pieces);
    free(spaced);
    return PTXGEN_OK;
}
