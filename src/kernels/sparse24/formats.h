/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Elements of a 2:4 weight as bits, and its metadata in any form, one group at a time and in the
 * order of mma.sp's lanes. A nibble is first | second << 2.
 */
#ifndef PTXGEN_KERNELS_SPARSE24_FORMATS_H
#define PTXGEN_KERNELS_SPARSE24_FORMATS_H

#include <ptxgen/sparse24_formats.h>

#include <stdbool.h>
#include <stdint.h>

enum { SPARSE24_GROUP = 4 }; /* elements, of which SPARSE24_KEPT are stored */
enum { SPARSE24_KEPT = 2 };
enum { SPARSE24_FILLER = 0x4 }; /* the nibble of groups past a weight's ends */

/** Bytes of one element; 0 for a type that is none. */
size_t sparse24_element_bytes(ptxgen_sparse24_type type);

/** Element `index` as raw bits, from an array at any address. */
uint32_t sparse24_bits(ptxgen_sparse24_type type, const void *array, size_t index);
void sparse24_put_bits(ptxgen_sparse24_type type, void *array, size_t index, uint32_t bits);

/**
 * A number that orders magnitudes: 0 only for ±0, equal for x and −x, equal for all NaNs, which are
 * above infinity.
 */
uint32_t sparse24_magnitude(ptxgen_sparse24_type type, uint32_t bits);

/** The caller's array, which must be exactly `expected` bytes; `name` is for the refusal. */
struct sparse24_array {
    const char *name;
    const void *data;
    size_t bytes, expected;
};
ptxgen_status sparse24_check_arrays(const struct sparse24_array *arrays, size_t count,
                                    ptxgen_error *err);

/* ---- metadata ---- */

/** Metadata of a weight in a form, in an array whose size has been checked, but not its contents.
 */
struct sparse24_metadata {
    ptxgen_sparse24_shape shape;
    ptxgen_sparse24_form form;
    const void *data;
};
static inline size_t sparse24_groups(const ptxgen_sparse24_shape *shape)
{
    return shape->k / SPARSE24_GROUP;
}
/** The array of metadata of this size, for sparse24_check_arrays; refuses what has none. */
ptxgen_status sparse24_describe_metadata(const ptxgen_sparse24_shape *shape,
                                         ptxgen_sparse24_form form, ptxgen_const_span metadata,
                                         struct sparse24_array *array, ptxgen_error *err);

/** Loads the nibble of a row's group, of two different positions; refuses all else. */
ptxgen_status sparse24_load_group(const struct sparse24_metadata *m, size_t row, size_t group,
                                  unsigned *nibble, ptxgen_error *err);
/** Refuses a byte of metadata in the form of bytes that is no nibble of two positions. */
ptxgen_status sparse24_check_byte(size_t row, size_t group, unsigned byte, ptxgen_error *err);
/**
 * Stores a valid nibble to `data`; changes the bits of this group only. A bitmask does not keep the
 * order of positions.
 */
void sparse24_store_group(const ptxgen_sparse24_shape *shape, ptxgen_sparse24_form form, void *data,
                          size_t row, size_t group, unsigned nibble);

static inline unsigned sparse24_first(unsigned nibble)
{
    return nibble & 3;
}

static inline unsigned sparse24_second(unsigned nibble)
{
    return nibble >> 2 & 3;
}
/** Whether the first value belongs to the later column. */
static inline bool sparse24_falls(unsigned nibble)
{
    return sparse24_first(nibble) > sparse24_second(nibble);
}

/** The place of a group in the words of 32 lanes: its lane, and the first bit of its nibble. */
struct sparse24_lane_slot {
    unsigned lane, bit;
};
/**
 * In 16-bit types 32 words are the metadata of 32 rows by 8 groups, of which selector 0 takes rows
 * 0 to 15 and selector 1 the others; of s8 that of 16 rows by 16 groups.
 */
struct sparse24_lane_slot sparse24_lane_slot(ptxgen_sparse24_type type, unsigned row,
                                             unsigned group);

#endif
