/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Structured sparsity of A (PTX ISA, "Sparse matrix storage"): which column of the dense A each
 * compressed element stands in.
 *
 * Metadata is one nibble a chunk of A: i0 | i1 << 2, the two kept units of four. A unit is one
 * element for 16- and 8-bit types, two for 4-bit types; a tf32 is itself two units, so that
 * only 0b0100 (the first of two elements) and 0b1110 (the second) mean something.
 *
 * Who holds it, with g = lane / 4 and t = lane % 4:
 *   16- and 32-bit types: bits 0…15 of a lane are row g, bits 16…31 row g + 8, four chunks
 *     each. Four chunks a row: the lane with t = selector. Eight: lanes 2·selector and the next.
 *   8- and 4-bit types: a lane holds eight chunks of one row, even t row g and odd t row g + 8.
 *     Eight chunks a row: t = 2·selector and the next. Sixteen: all t, the upper half in t ≥ 2.
 */
#ifndef PTXGEN_EMULATOR_TENSOR_SPARSE_H
#define PTXGEN_EMULATOR_TENSOR_SPARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor_core.h"

/** Columns of the dense A by `out[row * terms + term]`, 16 rows; `terms` compressed columns. */
ptxgen_status emu_sparse_columns(emu_element a, unsigned k, bool ordered, const emu_lanes *metadata,
                                 uint32_t selector, uint8_t *out, ptxgen_error *err);

/** Compressed columns: k / 2. */
unsigned emu_sparse_terms(unsigned k);

/** The lanes that `selector` reads, as a mask; 0 when it is out of range. */
uint32_t emu_sparse_lanes(emu_element a, unsigned k, uint32_t selector);

#endif
