/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text and token ids, by the vocabulary that a GGUF file has. Ids become text for SentencePiece's
 * vocabularies ("llama") and for byte-level BPE's ("gpt2"); text becomes ids for SentencePiece's
 * alone, since BPE needs rules beside the vocabulary for what is a word.
 */
#ifndef GENERATE_TOKENIZER_H
#define GENERATE_TOKENIZER_H

#include <ptxgen/gguf.h>

struct tokenizer;

/* PTXGEN_ERROR_NOT_FOUND where the file has no vocabulary. The file outlives the tokenizer, which
 * is the caller's and NULL after a failure. */
ptxgen_status tokenizer_open(const ptxgen_gguf *file, struct tokenizer **tokenizer,
                             ptxgen_error *err);
void tokenizer_close(struct tokenizer *tokenizer);

/* The bytes of a token, cut to `size` and NUL-terminated; control tokens have none. */
void tokenizer_text(const struct tokenizer *tokenizer, int32_t id, char *text, size_t size);
/* Ends the text. */
bool tokenizer_ends(const struct tokenizer *tokenizer, int32_t id);

/* The ids of a text, which the caller frees, with the first token of a text where the model has it.
 */
ptxgen_status tokenizer_ids(const struct tokenizer *tokenizer, const char *text, int32_t **ids,
                            uint32_t *count, ptxgen_error *err);

#endif
