/* SPDX-License-Identifier: Apache-2.0 */
/**
 * 2:4 metadata in any form, one group at a time, and as mma.sp's lanes take it.
 *
 * A nibble is first | second << 2. These functions trust shape, form and size of the array, which
 * sparse24_check_metadata_span checks, but nothing that the array holds.
 */
#ifndef PTXGEN_KERNELS_SPARSE24_METADATA_H
#define PTXGEN_KERNELS_SPARSE24_METADATA_H

#include "shape.h"

ptxgen_status sparse24_check_metadata_span(const ptxgen_sparse24_shape *shape,
                                           ptxgen_sparse24_form form, const void *data,
                                           size_t bytes, ptxgen_error *err);

/** The nibble of a row's group, first < second; refuses, with a sentence, what stands for none. */
ptxgen_status sparse24_load_group(const ptxgen_sparse24_shape *shape, ptxgen_sparse24_form form,
                                  const void *metadata, size_t row, size_t group, unsigned *nibble,
                                  ptxgen_error *err);
/** Touches the group's own bits only. `nibble` is valid. */
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

/** What one mma.sp register file of metadata covers, by type; zeros for f32, which has none. */
struct sparse24_tile {
    unsigned rows, columns; /**< dense columns */
};
struct sparse24_tile sparse24_metadata_tile(ptxgen_sparse24_type type);

/** Where a row's group stands in a tile: its lane, and the bit its nibble starts at. */
struct sparse24_lane_slot {
    unsigned lane, bit;
};
struct sparse24_lane_slot sparse24_lane_slot(ptxgen_sparse24_type type, unsigned row,
                                             unsigned group);

/**
 * The 32 lanes' metadata registers for the tile whose first row and column are given (multiples of
 * the tile's). For 16-bit types selector 0 takes rows 0–15 of the tile and selector 1 rows 16–31;
 * s8 has selector 0 alone, and f32 no tile at all. Beyond N and K, where the tile hangs over,
 * groups are positions 0, 1.
 */
ptxgen_status sparse24_tile_words(const ptxgen_sparse24_shape *shape, ptxgen_sparse24_form form,
                                  const void *metadata, size_t row, size_t column,
                                  uint32_t words[32], ptxgen_error *err);

#endif
