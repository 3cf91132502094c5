/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of any checkpoint as GPTQ's words: eight rows of a column, the first in the low nibble. */
#ifndef PTXGEN_KERNELS_MARLIN_FORMATS_GPTQ_WORDS_H
#define PTXGEN_KERNELS_MARLIN_FORMATS_GPTQ_WORDS_H

#include "checkpoint.h"

enum { W4_WORD_ROWS = 8, W4_MOST_COLUMNS = 64 };

struct w4_rows {
    const ptxgen_w4_checkpoint *from;
    const struct w4_format *format;
    struct w4_dims dims;
    const uint32_t *order; /* row i is the checkpoint's row order[i]; NULL: plain */
};

/*
 * Loads the words of eight rows, from `row` on, and of `count` columns from `column` on: a multiple
 * of 8 of them, at most W4_MOST_COLUMNS. `row` is a multiple of 8, as are K and N.
 */
typedef void w4_load_rows(const struct w4_rows *rows, size_t row, size_t column, size_t count,
                          uint32_t *words);
/* The fastest loader for these rows. */
w4_load_rows *w4_choose_loader(const struct w4_rows *rows);

#endif
