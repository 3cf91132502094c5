/* SPDX-License-Identifier: Apache-2.0 */
/** A matrix of outputs against the reference, in blocks that threads take one by one. */
#ifndef PTXGEN_HARNESS_BLOCKS_H
#define PTXGEN_HARNESS_BLOCKS_H

#include "harness.h"
#include "slices.h"

#include <ptxgen/types.h>

enum { BLOCK_SIDE = 64 };

typedef ptxgen_status compare_block(const void *problem, const struct block *block,
                                    struct comparison *part, ptxgen_error *err);

/** What is compared, and by what. */
struct blocks {
    const void *problem;
    compare_block *compare;
    uint64_t rows;
    uint32_t columns;
    double work;      /**< multiply-adds of the whole reference */
    double most_work; /**< beyond these not every block is compared */
};

/**
 * Adds what the blocks found to the check, and where only some were compared, notes that. What they
 * found against a file's own expectation goes to `expected`, which may be NULL.
 */
ptxgen_status compare_blocks(const struct blocks *blocks, struct check *check,
                             struct check *expected, ptxgen_error *err);

/** Checks a block's outputs, in rows that are `stride` elements apart, against its reference. */
void check_side_block(struct check *check, const char *name, const struct block *block,
                 ptxgen_element type, const void *outputs, uint64_t stride,
                 const struct block_reference *reference);

#endif
