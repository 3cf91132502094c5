/* SPDX-License-Identifier: Apache-2.0 */
#include "gptq_words.h"

static size_t source_row(const struct w4_rows *rows, size_t row)
{
    return rows->order ? rows->order[row] : row;
}

static void load_gptq(const struct w4_rows *rows, size_t row, size_t column, size_t count,
                      uint32_t *words)
{
    const unsigned char *base = rows->from->weights.data;
    memcpy(words, base + (row / W4_WORD_ROWS * rows->dims.n + column) * sizeof *words,
           count * sizeof *words);
}

static void load_gptq_ordered(const struct w4_rows *rows, size_t row, size_t column, size_t count,
                              uint32_t *words)
{
    uint32_t source[W4_MOST_COLUMNS];
    memset(words, 0, count * sizeof *words);
    for (unsigned i = 0; i < W4_WORD_ROWS; i++) {
        size_t from = source_row(rows, row + i);
        unsigned shift = from % W4_WORD_ROWS * 4;
        load_gptq(rows, from, column, count, source);
        for (size_t c = 0; c < count; c++)
            words[c] |= (source[c] >> shift & 15) << 4 * i;
    }
}

enum { MOST_WORDS = W4_MOST_COLUMNS / 8, AHEAD = 64 /* words along a row */ };

/*
 * Transposes the 8×8 nibbles of eight rows, for each word of a row: nibble c of row i and nibble i
 * of row c are exchanged; first within pairs of rows, then within groups of four rows, then of
 * eight.
 */
static void transpose_nibbles(uint32_t rows[8][MOST_WORDS])
{
    static const uint32_t masks[] = {0x0F0F0F0F, 0x00FF00FF, 0x0000FFFF};
    for (unsigned stage = 0; stage < 3; stage++)
        for (unsigned i = 0; i < 8; i++) {
            unsigned distance = 1u << stage;
            if (i & distance)
                continue;
            for (unsigned w = 0; w < MOST_WORDS; w++) {
                uint32_t *low = &rows[i][w], *high = &rows[i + distance][w];
                uint32_t different = (*low >> 4 * distance ^ *high) & masks[stage];
                *high ^= different;
                *low ^= different << 4 * distance;
            }
        }
}

/* Prefetches a word that will be read soon; the index may be past the last word. */
static void prefetch(const struct w4_rows *rows, size_t word)
{
    uintptr_t base = (uintptr_t)rows->from->weights.data;
    __builtin_prefetch((const void *)(base + word * sizeof(uint32_t)));
}

static void load_awq(const struct w4_rows *rows, size_t row, size_t column, size_t count,
                     uint32_t *words)
{
    uint32_t nibbles[8][MOST_WORDS] = {{0}};
    const unsigned char *base = rows->from->weights.data;
    for (size_t i = 0; i < W4_WORD_ROWS; i++) {
        size_t first = (source_row(rows, row + i) * rows->dims.n + column) / 8;
        memcpy(nibbles[i], base + first * sizeof *words, count / 8 * sizeof *words);
        prefetch(rows, first + AHEAD);
    }
    transpose_nibbles(nibbles);
    for (size_t w = 0; w < count / 8; w++)
        for (size_t c = 0; c < 8; c++)
            words[w * 8 + c] = nibbles[w4_interleaved(c)][w];
}

static void load_by_column(const struct w4_rows *rows, size_t row, size_t column, size_t count,
                           uint32_t *words)
{
    size_t pitch = rows->dims.k / W4_WORD_ROWS;
    for (size_t c = 0; c < count; c++)
        words[c] =
            w4_load_word(rows->from->weights.data, (column + c) * pitch + row / W4_WORD_ROWS);
}

static void load_any(const struct w4_rows *rows, size_t row, size_t column, size_t count,
                     uint32_t *words)
{
    memset(words, 0, count * sizeof *words);
    for (unsigned i = 0; i < W4_WORD_ROWS; i++)
        for (size_t c = 0; c < count; c++) {
            struct w4_place at =
                rows->format->code(&rows->dims, source_row(rows, row + i), column + c);
            words[c] |= (uint32_t)w4_load_nibble(rows->from->weights.data, at) << 4 * i;
        }
}

w4_load_rows *w4_choose_loader(const struct w4_rows *rows)
{
    switch (rows->from->format) {
    case PTXGEN_W4_GPTQ_V1:
    case PTXGEN_W4_GPTQ_V2: return rows->order ? load_gptq_ordered : load_gptq;
    case PTXGEN_W4_AWQ: return load_awq;
    case PTXGEN_W4_PACK_QUANTIZED: return rows->order ? load_any : load_by_column;
    case PTXGEN_W4_MARLIN: break;
    }
    return load_any;
}
