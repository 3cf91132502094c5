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

struct w4_format {
    const char *name;
    const char *weights, *scales, *zeros, *g_idx; /* the tensors' names; NULL: not in the format */
    size_t k_multiple, n_multiple;
    unsigned k_dimension;  /* the dimension of the weights' tensor that runs along K */
    size_t k_per_unit;     /* how many of K one element along that dimension holds */
    bool scales_by_column; /* [N,G] */
    bool always_zeros;     /* written even where all are 8 */
    bool always_g_idx;     /* written even in plain order */
    bool has_shape;
    unsigned stored_zero_bias; /* added to z, modulo 16 */
    struct w4_place (*code)(const struct w4_dims *dims, size_t k, size_t n);
    struct w4_place (*zero)(const struct w4_dims *dims, size_t group, size_t n);
    size_t (*scale)(const struct w4_dims *dims, size_t group, size_t n); /* an element's index */
    void (*weights_shape)(const struct w4_dims *dims, size_t shape[2]);
    void (*zeros_shape)(const struct w4_dims *dims, size_t shape[2]);
};

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
