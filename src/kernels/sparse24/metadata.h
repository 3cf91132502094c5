/* SPDX-License-Identifier: Apache-2.0 */
/**
 * 2:4 metadata in any form, one group at a time, and in the order of mma.sp's lanes.
 *
 * A nibble is first | second << 2. These functions take shape, form and size of the array as
 * checked (by sparse24_check_metadata_span), but not its contents.
 */
#ifndef PTXGEN_KERNELS_SPARSE24_METADATA_H
#define PTXGEN_KERNELS_SPARSE24_METADATA_H

#include "shape.h"

ptxgen_status sparse24_check_metadata_span(const ptxgen_sparse24_shape *shape,
                                           ptxgen_sparse24_form form, const void *data,
                                           size_t bytes, ptxgen_error *err);

/** Loads the nibble of a row's group, with first < second; refuses contents that are no nibble. */
ptxgen_status sparse24_load_group(const ptxgen_sparse24_shape *shape, ptxgen_sparse24_form form,
                                  const void *metadata, size_t row, size_t group, unsigned *nibble,
                                  ptxgen_error *err);
/** Stores a valid nibble; changes the bits of this group only. */
void sparse24_store_group(const ptxgen_sparse24_shape *shape, ptxgen_sparse24_form form,
                          void *metadata, size_t row, size_t group, unsigned nibble);

static inline unsigned sparse24_first(unsigned nibble)
{
    return nibble & 3;
}

static inline unsigned sparse24_second(unsigned nibble)
{
    return nibble >> 2 & 3;
}

/** Rows and columns whose metadata fills a register of 32 lanes, by type; zeros for f32. */
struct sparse24_tile {
    unsigned rows, columns; /**< dense columns */
};
struct sparse24_tile sparse24_metadata_tile(ptxgen_sparse24_type type);

/** The place of a row's group in a tile: its lane, and the first bit of its nibble. */
struct sparse24_lane_slot {
    unsigned lane, bit;
};
struct sparse24_lane_slot sparse24_lane_slot(ptxgen_sparse24_type type, unsigned row,
                                             unsigned group);

/**
 * Computes the metadata registers of 32 lanes for the tile at the given first row and column, which
 * are multiples of the tile's size. For 16-bit types selector 0 takes rows 0–15 of the tile and
 * selector 1 rows 16–31; s8 has selector 0 only, and f32 has no tile. Past the ends of N and K
 * groups have positions 0 and 1.
 */
ptxgen_status sparse24_tile_words(const ptxgen_sparse24_shape *shape, ptxgen_sparse24_form form,
                                  const void *metadata, size_t row, size_t column,
                                  uint32_t words[32], ptxgen_error *err);

#endif
