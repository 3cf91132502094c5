/* SPDX-License-Identifier: Apache-2.0 */
/* The place of codes, zero points and scales in each format, which has one row of a table. */
#ifndef PTXGEN_KERNELS_MARLIN_FORMATS_FORMAT_TABLE_H
#define PTXGEN_KERNELS_MARLIN_FORMATS_FORMAT_TABLE_H

#include <ptxgen/marlin_formats.h>

#include <string.h>

struct w4_dims {
    size_t k, n, groups;
};

/* Four bits of an array of int32. */
struct w4_place {
    size_t word;
    unsigned shift;
};

/* A checkpoint's tensors, in the order of its members. */
enum { W4_WEIGHTS, W4_SCALES, W4_ZEROS, W4_G_IDX, W4_SHAPE, W4_TENSORS };

struct w4_format {
    const char *name;
    const char *tensors[W4_TENSORS]; /* their names; NULL: not in the format */
    size_t k_multiple, n_multiple;
    size_t k_per_unit;     /* of K in an element of the weights along K */
    bool by_column;        /* matrices are [N,K] and [N,G], not [K,N] and [G,N] */
    bool interleaves;      /* the nibbles of zero points are columns 0 2 4 6 1 3 5 7 */
    bool permutes_columns; /* of scales and zero points, as Marlin does */
    bool always_zeros;     /* written even where all are 8 */
    bool always_g_idx;     /* written even in plain order */
    unsigned stored_zero_bias; /* added to z, modulo 16 */
    struct w4_place (*code)(const struct w4_dims *dims, size_t k, size_t n);
};

/* The place of a zero point, and the index of a scale. */
struct w4_place w4_zero_place(const struct w4_format *format, const struct w4_dims *dims,
                              size_t group, size_t n);
size_t w4_scale_index(const struct w4_format *format, const struct w4_dims *dims, size_t group,
                      size_t n);
/* The shapes that all tensors have in the format. */
void w4_shapes(const struct w4_format *format, const struct w4_dims *dims,
               size_t shapes[W4_TENSORS][2]);

/* The table's row of a format; NULL for a number that is no format. */
const struct w4_format *w4_format_of(ptxgen_w4_format format);

static inline uint32_t w4_load_word(const void *array, size_t index)
{
    uint32_t word;
    memcpy(&word, (const unsigned char *)array + index * sizeof word, sizeof word);
    return word;
}

static inline void w4_store_word(void *array, size_t index, uint32_t word)
{
    memcpy((unsigned char *)array + index * sizeof word, &word, sizeof word);
}

static inline unsigned w4_load_nibble(const void *array, struct w4_place at)
{
    return w4_load_word(array, at.word) >> at.shift & 15;
}

/* Writes a value into a nibble that is 0. */
static inline void w4_add_nibble(void *array, struct w4_place at, unsigned value)
{
    w4_store_word(array, at.word, w4_load_word(array, at.word) | (uint32_t)value << at.shift);
}

/* The position of element i in the order 0 2 4 6 1 3 5 7. */
static inline unsigned w4_interleaved(size_t i)
{
    return (unsigned)(i % 2 * 4 + i / 2);
}

#endif
