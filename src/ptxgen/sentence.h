/* SPDX-License-Identifier: Apache-2.0 */
/* What sentences for people may hold, whatever names of files, tensors or drivers are quoted. */
#ifndef PTXGEN_SENTENCE_H
#define PTXGEN_SENTENCE_H

#include <stddef.h>

/*
 * Puts '?' for every byte that is not of a UTF-8 character, and for control characters but newline
 * and tab. `size` is the buffer's: of a text that fills it, a character that was cut is dropped.
 */
void sentence_clean(char *text, size_t size);

#endif
