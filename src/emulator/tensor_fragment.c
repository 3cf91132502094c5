/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_fragment.h"

#include "host_vector.h"

#include <string.h>

/** Writes the elements of a register `step` apart; constant `bits` let the loop unroll. */
EMU_INLINE void unpack(uint32_t word, unsigned bits, uint32_t *out, unsigned step)
{
    for (unsigned j = 0; j < 32 / bits; j++)
        out[j * step] = word >> (j * bits) & (0xFFFFFFFFu >> (32 - bits));
}

/** The four lanes of a row hold elements that follow each other. */
EMU_INLINE void rows_of_a(const emu_lanes *registers, unsigned bits, unsigned rows,
                          unsigned columns, uint32_t *out)
{
    const unsigned pack = 32 / bits;
    const unsigned row_groups = rows / 8;
    const unsigned count = rows * columns / (pack * EMU_WARP_LANES);
    for (unsigned r = 0; r < count; r++) {
        uint32_t *block = out + r % row_groups * 8 * columns + r / row_groups * 4 * pack;
        for (unsigned g = 0; g < 8; g++)
            for (unsigned t = 0; t < 4; t++)
                unpack(registers[r].lane[4 * g + t], bits, block + g * columns + t * pack, 1);
    }
}

EMU_WIDE static void all_of_a(const emu_lanes *registers, unsigned bits, unsigned rows,
                              unsigned columns, uint32_t *out)
{
    switch (bits) {
    case 4: rows_of_a(registers, 4, rows, columns, out); break;
    case 8: rows_of_a(registers, 8, rows, columns, out); break;
    case 16: rows_of_a(registers, 16, rows, columns, out); break;
    default: rows_of_a(registers, 32, rows, columns, out);
    }
}

EMU_INLINE void rows_of_b(const emu_lanes *registers, unsigned bits, unsigned rows, uint32_t *out)
{
    const unsigned pack = 32 / bits;
    const unsigned count = rows * EMU_TILE_COLUMNS / (pack * EMU_WARP_LANES);
    for (unsigned r = 0; r < count; r++) {
        for (unsigned lane = 0; lane < EMU_WARP_LANES; lane++)
            unpack(registers[r].lane[lane], bits,
                   out + (r * 4 + lane % 4) * pack * EMU_TILE_COLUMNS + lane / 4, EMU_TILE_COLUMNS);
    }
}

/* As above for 16 bits, line by line. */
EMU_INLINE void half_rows_of_b(const emu_lanes *registers, unsigned rows, uint32_t *out)
{
    for (unsigned pair = 0; pair < rows / 2; pair++, out += 2 * EMU_TILE_COLUMNS)
        for (unsigned column = 0; column < EMU_TILE_COLUMNS; column++) {
            uint32_t word = registers[pair / 4].lane[4 * column + pair % 4];
            out[column] = word & 0xFFFF;
            out[EMU_TILE_COLUMNS + column] = word >> 16;
        }
}

EMU_WIDE static void all_of_b(const emu_lanes *registers, unsigned bits, unsigned rows,
                              uint32_t *out)
{
    switch (bits) {
    case 4: rows_of_b(registers, 4, rows, out); break;
    case 8: rows_of_b(registers, 8, rows, out); break;
    case 16: half_rows_of_b(registers, rows, out); break;
    default: rows_of_b(registers, 32, rows, out);
    }
}

void emu_fragment_a(const emu_lanes *registers, unsigned bits, unsigned rows, unsigned columns,
                    uint32_t *out)
{
    all_of_a(registers, bits, rows, columns, out);
}

void emu_fragment_b(const emu_lanes *registers, unsigned bits, unsigned rows, uint32_t *out)
{
    all_of_b(registers, bits, rows, out);
}

/* Row r of the tile is lanes 4 (r mod 8) … + 3, two columns each. */

EMU_INLINE void rows_of_c(const emu_lanes *registers, unsigned bits, unsigned rows, emu_tile *out)
{
    for (unsigned row = 0; row < rows; row++) {
        const unsigned first = row % 8 * 4;
        const uint32_t *even = registers[row / 8 * (bits / 16)].lane + first;
        const uint32_t *odd = registers[row / 8 * (bits / 16) + bits / 32].lane + first;
        for (unsigned t = 0; t < EMU_TILE_COLUMNS / 2; t++) {
            out->at[row][2 * t] = bits == 32 ? even[t] : even[t] & 0xFFFF;
            out->at[row][2 * t + 1] = bits == 32 ? odd[t] : even[t] >> 16;
        }
    }
}

void emu_fragment_c(const emu_lanes *registers, unsigned bits, unsigned rows, emu_tile *out)
{
    if (bits == 32)
        rows_of_c(registers, 32, rows, out);
    else
        rows_of_c(registers, 16, rows, out);
}

EMU_INLINE void rows_of_d(emu_lanes *registers, unsigned bits, unsigned rows, const emu_tile *in)
{
    for (unsigned row = 0; row < rows; row++) {
        const unsigned first = row % 8 * 4;
        uint32_t *even = registers[row / 8 * (bits / 16)].lane + first;
        uint32_t *odd = registers[row / 8 * (bits / 16) + bits / 32].lane + first;
        uint32_t low[EMU_TILE_COLUMNS / 2], high[EMU_TILE_COLUMNS / 2];
        for (unsigned t = 0; t < EMU_TILE_COLUMNS / 2; t++) {
            low[t] = in->at[row][2 * t];
            high[t] = in->at[row][2 * t + 1];
            if (bits == 16)
                low[t] = (low[t] & 0xFFFF) | high[t] << 16;
        }
        memcpy(even, low, sizeof low);
        if (bits == 32)
            memcpy(odd, high, sizeof high);
    }
}

void emu_fragment_d(emu_lanes *registers, unsigned bits, unsigned rows, const emu_tile *in)
{
    if (bits == 32)
        rows_of_d(registers, 32, rows, in);
    else
        rows_of_d(registers, 16, rows, in);
}
