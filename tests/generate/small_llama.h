/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A llama model of random weights, small enough to be computed in plain double precision: written
 * as a GGUF file in two parts, and as a function of tokens.
 */
#ifndef PTXGEN_TESTS_GENERATE_SMALL_LLAMA_H
#define PTXGEN_TESTS_GENERATE_SMALL_LLAMA_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LLAMA_LAYERS = 2,
    LLAMA_HIDDEN = 96,
    LLAMA_HEADS = 6,
    LLAMA_KV_HEADS = 2,
    LLAMA_HEAD_SIZE = 64,
    LLAMA_FEED_FORWARD = 160,
    LLAMA_VOCABULARY = 50,
    LLAMA_CONTEXT = 64
};

struct small_llama;

/* With factors of RoPE's frequencies and an output matrix of its own, or without. */
struct small_llama *small_llama_make(bool has_factors, bool has_output);
void small_llama_free(struct small_llama *llama);

/* Writes both parts into a folder; `path` receives the path of the first. */
void small_llama_write(const struct small_llama *llama, const char *folder, char *path,
                       uint64_t size);
/* The logits of the last of `count` tokens. */
void small_llama_logits(const struct small_llama *llama, const int32_t *ids, uint32_t count,
                        double logits[LLAMA_VOCABULARY]);

#endif
