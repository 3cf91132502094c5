/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Integer and single-bit tiles: exact s32 sums, wrapping or saturating. The sums of products are
 * formed in floats, which hold them exactly: 64 · 255 · 255 < 2^24.
 */
#ifndef PTXGEN_EMULATOR_TENSOR_INTEGER_H
#define PTXGEN_EMULATOR_TENSOR_INTEGER_H

#include "tensor_fragment.h"

/** Rows of A, `[row * terms + term]`, and the row of B that each term meets. */
typedef struct emu_integer_a {
    unsigned terms;
    bool dense; /* a term meets the row of B of its own number */
    float value[EMU_TILE_ROWS * EMU_TILE_MAX_TERMS];
    uint8_t depth[EMU_TILE_ROWS * EMU_TILE_MAX_TERMS];
} emu_integer_a;

typedef struct emu_integer_b {
    float value[EMU_TILE_MAX_DEPTH][EMU_TILE_COLUMNS];
} emu_integer_b;

/** A dense A has no `depth`. */
void emu_integer_load_a(emu_element type, const uint32_t *bits, const uint8_t *depth, unsigned rows,
                        unsigned terms, emu_integer_a *out);
void emu_integer_load_b(emu_element type, const uint32_t *bits, unsigned rows, emu_integer_b *out);

/** tile = A·B + tile on the first `rows` rows. */
void emu_integer_dot(const emu_integer_a *a, const emu_integer_b *b, unsigned rows, bool saturate,
                     emu_tile *tile);

/** As above for b1: 32 bits in each word of `a[row * words + w]` and of `b[w * 8 + column]`. */
void emu_bit_dot(const uint32_t *a, const uint32_t *b, unsigned words, unsigned rows,
                 emu_mma_bit_op op, emu_tile *tile);

#endif
