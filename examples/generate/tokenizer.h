/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text and token ids, by the vocabulary that a GGUF file has: SentencePiece's ("llama"), or
 * byte-level BPE's ("gpt2"), of which text becomes ids where words are split as Llama 3 splits them
 * ("llama-bpe"), since each such model has rules of its own for what is a word.
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

/*
 * The ids of a text, which the caller frees, with the first token of a text where the model has it
 * and the text does not begin with it. Special tokens in the text, as "<|eot_id|>", are these
 * tokens. Bytes that are no UTF-8 are taken as they are.
 */
ptxgen_status tokenizer_ids(struct tokenizer *tokenizer, const char *text, int32_t **ids,
                            uint32_t *count, ptxgen_error *err);

#endif
