/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary that tokenizer.c reads, and the two ways from text to ids. */
#ifndef GENERATE_VOCABULARY_H
#define GENERATE_VOCABULARY_H

#include "tokenizer.h"

#include <stddef.h>

struct word {
    const char *bytes;
    size_t length;
    int32_t id;
    float score;
};

/* Two tokens that BPE joins to a third; those of the least rank come first. */
struct merge {
    int32_t left, right, joined;
    uint32_t rank;
};

struct tokenizer {
    uint32_t count;
    struct word *words;    /* by id */
    struct word *by_text;  /* sorted */
    uint8_t *kinds;        /* by id: enum kind */
    struct word *specials; /* control tokens and those of the model's maker, the longest first */
    uint32_t special_count;
    int32_t bytes[256];  /* SentencePiece's tokens <0x00> to <0xFF>, or −1 */
    int32_t first, last; /* of a text, or −1 */
    bool is_sentencepiece, adds_first, adds_space;

    /* Byte-level BPE. */
    ptxgen_gguf_string pre; /* how text is split into words; empty: the file does not say */
    ptxgen_gguf_array merge_strings; /* "left right" */
    struct merge *merges; /* sorted by left and right; NULL until the first text is read */
    uint32_t merge_count;
};

/* token_type of GGUF */
enum kind { KIND_CONTROL = 3, KIND_USER_DEFINED = 4, KIND_BYTE = 6 };

/* NULL where the vocabulary has no such token. */
const struct word *vocabulary_find(const struct tokenizer *t, const char *bytes, size_t length);

struct ids {
    int32_t *list;
    uint32_t count;
};

/*
 * Adds the ids of a text without special tokens, for which the list has room: one for each byte,
 * and three more.
 */
ptxgen_status sentencepiece_ids(const struct tokenizer *t, const char *text, size_t length,
                                struct ids *ids, ptxgen_error *err);
ptxgen_status bpe_ids(struct tokenizer *t, const char *text, size_t length, struct ids *ids,
                      ptxgen_error *err);

/* The bytes that a token of byte-level BPE stands for; at most `size` of them. */
size_t bpe_text(const struct word *word, char *text, size_t size);

#endif
