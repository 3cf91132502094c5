/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Plain statements of what a matrix product is, for the tests of the tensor-core functions:
 * small integers that every format and every rounding model keeps exactly.
 */
#ifndef PTXGEN_TESTS_TENSOR_SLOW_MMA_H
#define PTXGEN_TESTS_TENSOR_SLOW_MMA_H

#include <stdint.h>
#include <string.h>

#include "src/emulator/tensor_core.h"

/** The fields of an emu_mma_op, and of an emu_wgmma_op, in the order of the PTX qualifiers. */
#define MMA(M, K, D, A, B, C) .m = M, .n = 8, .k = K, .d = D, .a = A, .b = B, .c = C
#define WGMMA(N, K, D, A, B) .n = N, .k = K, .d = D, .a = A, .b = B

static uint64_t random_state = 1;

static inline uint32_t random_bits(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) * 2 ^ (uint32_t)(random_state >> 20 & 1);
}

static inline int random_int(int low, int high)
{
    return low + (int)(random_bits() % (uint32_t)(high - low + 1));
}

/** A value that the type can hold; small for floats, so that sums stay exact in f16. */
static inline int random_element(emu_element type)
{
    switch (type) {
    case EMU_S8: return random_int(-128, 127);
    case EMU_U8: return random_int(0, 255);
    case EMU_S4: return random_int(-8, 7);
    case EMU_U4: return random_int(0, 15);
    case EMU_B1: return random_int(0, 1);
    default: return random_int(-2, 2);
    }
}

/** Bits of a small integer; tf32 gets noise in the bits that the hardware drops. */
static inline uint64_t element_bits(emu_element type, int value)
{
    static const uint32_t one[EMU_ELEMENT_COUNT] = {
        [EMU_F16] = 0x3C00, [EMU_BF16] = 0x3F80, [EMU_E4M3] = 0x38, [EMU_E5M2] = 0x3C};
    static const uint32_t two[EMU_ELEMENT_COUNT] = {
        [EMU_F16] = 0x4000, [EMU_BF16] = 0x4000, [EMU_E4M3] = 0x40, [EMU_E5M2] = 0x40};
    if (type == EMU_F64) {
        double d = value;
        uint64_t bits;
        memcpy(&bits, &d, sizeof bits);
        return bits;
    }
    if (type == EMU_F32 || type == EMU_TF32) {
        float f = (float)value;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        return type == EMU_TF32 ? bits | (random_bits() & 0x1FFF) : bits;
    }
    if (one[type]) {
        uint32_t magnitude = value == 0 ? 0 : value == 1 || value == -1 ? one[type] : two[type];
        uint32_t sign = 1u << (emu_element_bits(type) - 1);
        return value < 0 ? magnitude | sign : magnitude;
    }
    unsigned bits = emu_element_bits(type);
    return (uint64_t)value & (bits == 32 ? 0xFFFFFFFFu : (1u << bits) - 1);
}

/** Bits of an accumulator holding an integer below 2048 in magnitude (any s32, any small f64). */
static inline uint64_t accumulator_bits(emu_element type, int value)
{
    if (type != EMU_F16)
        return element_bits(type, value);
    if (value == 0)
        return 0;
    uint32_t magnitude = (uint32_t)(value < 0 ? -value : value), exponent = 15;
    uint32_t significand = magnitude << 10;
    while (significand >= 2048) {
        significand /= 2;
        exponent++;
    }
    return (value < 0 ? 0x8000u : 0) | exponent << 10 | (significand - 1024);
}

/** Element `index` of a lane's vector operand, low bits first. */
static inline void put_element(emu_lanes *registers, unsigned bits, unsigned lane, unsigned index,
                               uint64_t value)
{
    unsigned at = index * bits;
    if (bits == 64) {
        registers[2 * index].lane[lane] = (uint32_t)value;
        registers[2 * index + 1].lane[lane] = (uint32_t)(value >> 32);
    } else {
        registers[at / 32].lane[lane] |= (uint32_t)value << at % 32;
    }
}

static inline uint64_t get_element(const emu_lanes *registers, unsigned bits, unsigned lane,
                                   unsigned index)
{
    unsigned at = index * bits;
    if (bits == 64)
        return registers[2 * index].lane[lane] | (uint64_t)registers[2 * index + 1].lane[lane]
                                                     << 32;
    uint32_t word = registers[at / 32].lane[lane] >> at % 32;
    return bits == 32 ? word : word & ((1u << bits) - 1);
}

#endif
