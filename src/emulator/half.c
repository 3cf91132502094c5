/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/half.h"

const struct emu_format emu_format_f16 = {5, 10, true, 0x7fff, 0x7bff};
const struct emu_format emu_format_bf16 = {8, 7, true, 0x7fff, 0x7f7f};
const struct emu_format emu_format_tf32 = {8, 10, true, 0x3ffff, 0x3fbff};
const struct emu_format emu_format_e4m3 = {4, 3, false, 0x7f, 0x7e};
const struct emu_format emu_format_e5m2 = {5, 2, true, 0x7f, 0x7b};

static bool rounds_up(uint64_t kept, uint64_t rest, uint64_t half, bool negative,
                      enum emu_small_round round)
{
    switch (round) {
    case SMALL_RN: return rest > half || (rest == half && (kept & 1));
    case SMALL_RNA: return rest >= half && rest != 0;
    case SMALL_RM: return negative && rest != 0;
    case SMALL_RP: return !negative && rest != 0;
    default: return false;
    }
}

static uint32_t overflow(const struct emu_format *format, bool negative, enum emu_small_round round,
                         bool saturate)
{
    bool toward_zero =
        round == SMALL_RZ || (round == SMALL_RM && !negative) || (round == SMALL_RP && negative);
    if (saturate || toward_zero)
        return format->largest;
    return format->has_infinity ? format->largest + 1 : format->nan;
}

uint32_t emu_to_small(double value, const struct emu_format *format, enum emu_small_round round,
                      bool saturate)
{
    uint64_t bits = emu_bits64_of(value);
    bool negative = bits >> 63;
    uint32_t sign = (uint32_t)negative << (format->exponent_bits + format->fraction_bits);
    if (value != value)
        return format->nan;
    if (isinf(value))
        return sign |
               (saturate || !format->has_infinity ? overflow(format, negative, SMALL_RN, saturate)
                                                  : format->largest + 1);
    if (value == 0)
        return sign;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t fraction = bits & 0xfffffffffffffu;
    if (exponent == -1023)
        exponent = -1022;
    else
        fraction |= (uint64_t)1 << 52;
    int least = 2 - (1 << (format->exponent_bits - 1));
    int base = exponent > least ? exponent : least;
    int shift = base - exponent + 52 - format->fraction_bits;
    uint64_t kept = shift > 63 ? 0 : fraction >> shift;
    uint64_t half = shift > 63 ? UINT64_MAX : (uint64_t)1 << (shift - 1);
    uint64_t rest = shift > 63 ? 1 : fraction & (((uint64_t)1 << shift) - 1);
    kept += rounds_up(kept, rest, half, negative, round);
    uint64_t encoded = ((uint64_t)(base - least) << format->fraction_bits) + kept;
    return sign | (encoded > format->largest ? overflow(format, negative, round, saturate)
                                             : (uint32_t)encoded);
}

double emu_from_small(uint32_t bits, const struct emu_format *format)
{
    uint32_t width = format->exponent_bits + format->fraction_bits;
    uint32_t magnitude = bits & ((1u << width) - 1);
    double sign = bits >> width & 1 ? -1.0 : 1.0;
    if (magnitude > format->largest)
        return format->has_infinity && magnitude == format->largest + 1 ? sign * INFINITY : NAN;
    uint32_t exponent = magnitude >> format->fraction_bits;
    uint32_t fraction = magnitude & ((1u << format->fraction_bits) - 1);
    int bias = (1 << (format->exponent_bits - 1)) - 1;
    if (exponent)
        fraction |= 1u << format->fraction_bits;
    else
        exponent = 1;
    return sign * ldexp(fraction, (int)exponent - bias - format->fraction_bits);
}
