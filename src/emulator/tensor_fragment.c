/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_fragment.h"

/** Writes the elements of a register `step` apart; constant `bits` let the loop unroll. */
static inline void unpack(uint32_t word, unsigned bits, uint32_t *out, unsigned step)
{
    for (unsigned j = 0; j < 32 / bits; j++)
        out[j * step] = word >> (j * bits) & ((1u << bits) - 1);
}

static inline void unpack_any(uint32_t word, unsigned bits, uint32_t *out, unsigned step)
{
    switch (bits) {
    case 4: unpack(word, 4, out, step); break;
    case 8: unpack(word, 8, out, step); break;
    case 16: unpack(word, 16, out, step); break;
    default: *out = word;
    }
}

void emu_fragment_a(const emu_lanes *registers, unsigned bits, unsigned rows, unsigned columns,
                    uint32_t *out)
{
    const unsigned pack = 32 / bits;
    const unsigned row_groups = rows / 8;
    const unsigned count = rows * columns / (pack * EMU_WARP_LANES);
    for (unsigned r = 0; r < count; r++) {
        uint32_t *block = out + r % row_groups * 8 * columns + r / row_groups * 4 * pack;
        for (unsigned lane = 0; lane < EMU_WARP_LANES; lane++)
            unpack_any(registers[r].lane[lane], bits, block + lane / 4 * columns + lane % 4 * pack,
                       1);
    }
}

void emu_fragment_b(const emu_lanes *registers, unsigned bits, unsigned rows, uint32_t *out)
{
    const unsigned pack = 32 / bits;
    const unsigned count = rows * EMU_TILE_COLUMNS / (pack * EMU_WARP_LANES);
    for (unsigned r = 0; r < count; r++) {
        for (unsigned lane = 0; lane < EMU_WARP_LANES; lane++)
            unpack_any(registers[r].lane[lane], bits,
                       out + (r * 4 + lane % 4) * pack * EMU_TILE_COLUMNS + lane / 4,
                       EMU_TILE_COLUMNS);
    }
}

void emu_fragment_c(const emu_lanes *registers, unsigned bits, unsigned rows, emu_tile *out)
{
    for (unsigned row = 0; row < rows; row++) {
        for (unsigned column = 0; column < EMU_TILE_COLUMNS; column++) {
            unsigned lane = row % 8 * 4 + column / 2;
            if (bits == 32)
                out->at[row][column] = registers[row / 8 * 2 + column % 2].lane[lane];
            else
                out->at[row][column] = registers[row / 8].lane[lane] >> (column % 2 * 16) & 0xFFFF;
        }
    }
}

void emu_fragment_d(emu_lanes *registers, unsigned bits, unsigned rows, const emu_tile *in)
{
    for (unsigned row = 0; row < rows; row++) {
        for (unsigned column = 0; column < EMU_TILE_COLUMNS; column += 2) {
            unsigned lane = row % 8 * 4 + column / 2;
            const uint32_t *pair = &in->at[row][column];
            if (bits == 32) {
                registers[row / 8 * 2].lane[lane] = pair[0];
                registers[row / 8 * 2 + 1].lane[lane] = pair[1];
            } else {
                registers[row / 8].lane[lane] = (pair[0] & 0xFFFF) | pair[1] << 16;
            }
        }
    }
}
