/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Which lane and register holds which matrix element (PTX ISA, "Matrix Fragments for mma.*").
 *
 * All shapes but m8n8k4 f16 follow one rule. With g = lane / 4, t = lane % 4 and P elements in
 * a register, a register of A holds row g (or g + 8, in odd registers of the 16-row shapes)
 * and P consecutive columns from t·P on; each further pair of registers (each further one in
 * the 8-row shapes) lies 4·P columns further. B is the same with columns and rows exchanged.
 * C and D hold two consecutive columns from 2·t on: in two registers, or packed in one (f16).
 */
#ifndef PTXGEN_EMULATOR_TENSOR_FRAGMENT_H
#define PTXGEN_EMULATOR_TENSOR_FRAGMENT_H

#include <stdint.h>

#include "tensor_core.h"

enum {
    EMU_TILE_ROWS = 16,
    EMU_TILE_COLUMNS = 8,
    EMU_TILE_MAX_TERMS = 64, /**< products in a dot product: dense s4 k64, sparse s4 k128 */
    EMU_TILE_MAX_DEPTH = 128 /**< rows of B: sparse s4 k128 */
};

/** A 16×8 accumulator tile as bit patterns; 8-row shapes use the first 8 rows. */
typedef struct emu_tile {
    uint32_t at[EMU_TILE_ROWS][EMU_TILE_COLUMNS];
} emu_tile;

/** Elements of A, `bits` ≤ 32 wide, to `out[row * columns + column]`. */
void emu_fragment_a(const emu_lanes *registers, unsigned bits, unsigned rows, unsigned columns,
                    uint32_t *out);

/** Elements of the 8 columns of B to `out[row * 8 + column]`. */
void emu_fragment_b(const emu_lanes *registers, unsigned bits, unsigned rows, uint32_t *out);

/** C and D with 32-bit or with packed 16-bit elements. */
void emu_fragment_c(const emu_lanes *registers, unsigned bits, unsigned rows, emu_tile *out);
void emu_fragment_d(emu_lanes *registers, unsigned bits, unsigned rows, const emu_tile *in);

#endif
