/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts GPTQ's words, which hold eight rows of a column, into the words of mma.m16n8k16's lanes,
 * which hold four pairs of rows:
 *
 *     a, b, c, d: words of one column, rows 0–7 and 8–15, and of the column 8 further, in an order
 *     that the layout chooses
 *     byte i of a word holds rows 2i and 2i + 1, which are elements of the column's lane i
 *     nibble of the lane's word     0      1      2      3      4     5     6     7
 *     is a nibble of byte i of      a low  b low  c low  d low  a hi  b hi  c hi  d hi
 *
 * So masks compose four words whose bytes i are the four bytes of output word i, and a transpose of
 * 4×4 bytes gives the output words. A vector of four elements holds four such conversions.
 */
#ifndef PTXGEN_KERNELS_MARLIN_FORMATS_LANE_WORDS_H
#define PTXGEN_KERNELS_MARLIN_FORMATS_LANE_WORDS_H

#include <stdint.h>
#include <string.h>

typedef uint32_t w4_words __attribute__((vector_size(16)));

static inline void w4_store_words(unsigned char *out, w4_words words)
{
    memcpy(out, &words, sizeof words);
}

/* Writes the words of the column's four lanes, 16 bytes each. */
static inline void w4_store_lane_words(w4_words a, w4_words b, w4_words c, w4_words d,
                                       unsigned char *out)
{
    w4_words byte0 = (a & 0x0F0F0F0F) | (b & 0x0F0F0F0F) << 4;
    w4_words byte1 = (c & 0x0F0F0F0F) | (d & 0x0F0F0F0F) << 4;
    w4_words byte2 = (a >> 4 & 0x0F0F0F0F) | (b & 0xF0F0F0F0);
    w4_words byte3 = (c >> 4 & 0x0F0F0F0F) | (d & 0xF0F0F0F0);

    w4_words low02 = (byte0 & 0x00FF00FF) | (byte1 & 0x00FF00FF) << 8;
    w4_words low13 = (byte0 >> 8 & 0x00FF00FF) | (byte1 & 0xFF00FF00);
    w4_words high02 = (byte2 & 0x00FF00FF) | (byte3 & 0x00FF00FF) << 8;
    w4_words high13 = (byte2 >> 8 & 0x00FF00FF) | (byte3 & 0xFF00FF00);
    w4_store_words(out, (low02 & 0xFFFF) | high02 << 16);
    w4_store_words(out + 16, (low13 & 0xFFFF) | high13 << 16);
    w4_store_words(out + 32, low02 >> 16 | (high02 & 0xFFFF0000));
    w4_store_words(out + 48, low13 >> 16 | (high13 & 0xFFFF0000));
}

#endif
