/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The shared-memory swizzles of tensor maps and wgmma descriptors (PTX ISA, "Swizzling Modes"):
 * within rows of 128 bytes, the number of the 16-byte atom is XORed with the number of the row.
 */
#ifndef PTXGEN_EMULATOR_TENSOR_SWIZZLE_H
#define PTXGEN_EMULATOR_TENSOR_SWIZZLE_H

#include <stdint.h>

/**
 * Address bits 4… XOR bits 7…: one bit for 32 bytes, two for 64, three for 128; 0 leaves the
 * address alone. `row_offset` (0..7) is subtracted from the row first: it is where the pattern
 * starts, in 128-byte rows, when it does not start at a multiple of its own size.
 */
static inline uint32_t emu_swizzle(uint32_t address, uint32_t swizzle_bytes, uint32_t row_offset)
{
    uint32_t mask = swizzle_bytes / 16;
    mask = mask ? mask - 1 : 0;
    return address ^ (((address >> 7) - row_offset) & mask) << 4;
}

#endif
