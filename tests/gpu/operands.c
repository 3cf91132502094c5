/* SPDX-License-Identifier: Apache-2.0 */
#include "operands.h"

/* ---- random words ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t word(uint64_t a, uint64_t b, uint64_t c)
{
    return mix(mix(mix(a) ^ b) ^ c);
}

unsigned operand_width(uint8_t type)
{
    static const uint8_t bits[PTX_CLASSES] = {1, 16, 32, 64, 128};
    return bits[ptx_class_of(type)];
}

/* ---- floating-point formats ---- */

struct format {
    unsigned exponent_bits, fraction_bits;
    bool finite_only; /* e4m3: no infinities, one NaN */
};
static const struct format f16 = {5, 10, false}, bf16 = {8, 7, false}, tf32 = {8, 23, false},
                           f32 = {8, 23, false}, f64 = {11, 52, false}, e4m3 = {4, 3, true},
                           e5m2 = {5, 2, false};

enum { SPECIALS = 20 };

static uint64_t special_float(const struct format *f, unsigned index)
{
    uint64_t one = 1, exponent_ones = (one << f->exponent_bits) - 1;
    uint64_t infinity = exponent_ones << f->fraction_bits, fraction = (one << f->fraction_bits) - 1;
    uint64_t bias = exponent_ones / 2, sign = one << (f->exponent_bits + f->fraction_bits);
    uint64_t unit = bias << f->fraction_bits;
    const uint64_t positive[SPECIALS / 2] = {0,
                                             unit,
                                             unit + 1,
                                             1,
                                             fraction,
                                             one << f->fraction_bits,
                                             infinity - 1,
                                             infinity,
                                             infinity | (fraction + 1) / 2 | 1,
                                             unit + (fraction + 1) / 2};
    uint64_t bits = positive[index / 2 % (SPECIALS / 2)] | (index % 2 ? sign : 0);
    /* the other NaNs: signalling where the sign is set */
    return bits == (sign | infinity | (fraction + 1) / 2 | 1) ? sign | infinity | 1 : bits;
}

enum temper { TAME, WIDE, LOW, SPECIAL, ANY_BITS };

static uint64_t float_of(const struct format *f, enum temper temper, int64_t centre, uint64_t r)
{
    int64_t top = (1 << f->exponent_bits) - 1 - !f->finite_only;
    uint64_t fraction = r >> 4 & ((UINT64_C(1) << f->fraction_bits) - 1);
    if (r % 4 == 0)
        fraction &= fraction << (f->fraction_bits / 2); /* few bits: sums and halves are exact */
    int64_t spread = temper == TAME ? 4 : top / 3, exponent;
    exponent = centre + (int64_t)(mix(r) % (uint64_t)(2 * spread + 1)) - spread;
    if (temper == LOW)
        exponent = (int64_t)(mix(r) % 3);
    if (temper == SPECIAL && mix(r ^ 1) % 16 == 0)
        return special_float(f, (unsigned)(mix(r ^ 2) % SPECIALS));
    if (temper == ANY_BITS)
        return mix(r ^ 3) & ((UINT64_C(2) << (f->exponent_bits + f->fraction_bits)) - 1);
    exponent = exponent < 0 ? 0 : exponent > top ? top : exponent;
    uint64_t bits = (uint64_t)exponent << f->fraction_bits | fraction;
    if (f->finite_only && temper != SPECIAL &&
        bits == (UINT64_C(1) << (f->exponent_bits + f->fraction_bits)) - 1)
        bits--;
    return bits | (r >> 63) << (f->exponent_bits + f->fraction_bits);
}

static uint64_t pack(const struct format *f, unsigned width, unsigned count, enum temper temper,
                     int64_t centre, uint64_t r)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < count; i++)
        bits |= float_of(f, temper, centre, word(r, i, 7)) << (i * width);
    return bits;
}

/* ---- matrices ---- */

static uint64_t matrix_bits(struct source source, uint64_t r, uint32_t tuple)
{
    static const enum temper tempers[8] = {TAME, TAME, TAME, WIDE, WIDE, LOW, SPECIAL, TAME};
    static const uint8_t codes[6] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe}; /* tf32 has the outer two */
    enum temper temper = tempers[tuple / 32 % 8];
    uint64_t bits = 0;
    switch (source.role) {
    case ROLE_F16: return pack(&f16, 16, 2, temper, 15, r);
    case ROLE_BF16: return pack(&bf16, 16, 2, temper, 127, r);
    case ROLE_TF32: return pack(&tf32, 32, 1, temper, 127, r) & 0xffffe000u;
    case ROLE_E4M3: return pack(&e4m3, 8, 4, temper, 7, r);
    case ROLE_E5M2: return pack(&e5m2, 8, 4, temper, 15, r);
    case ROLE_F32_MATRIX: /* zeros at times: they align nothing */
        return tuple / 256 % 4 == 3 ? 0 : pack(&f32, 32, 1, temper, 127, r);
    case ROLE_F64_MATRIX: return pack(&f64, 64, 1, temper, 1023, r);
    case ROLE_METADATA:
        for (unsigned i = 0; i < 8; i++)
            bits |= (uint64_t)codes[source.lo ? 5 * (mix(r + i) % 2) : mix(r + i) % 6] << (4 * i);
        return bits;
    default: /* integers: extremes by themselves now and then */
        return temper == SPECIAL
                   ? (r & 1 ? 0x7f7f7f7f80808080u >> (r & 32) & 0xffffffffu : 0xffffffffu)
                   : r & 0xffffffffu;
    }
}

/* ---- registers ---- */

static uint64_t special_integer(unsigned width, unsigned index)
{
    uint64_t top = UINT64_C(1) << (width - 1), all = top | (top - 1);
    const uint64_t values[SPECIALS] = {0,
                                       1,
                                       2,
                                       3,
                                       7,
                                       8,
                                       31,
                                       32,
                                       33,
                                       127,
                                       128,
                                       255,
                                       all,
                                       all - 1,
                                       top,
                                       top - 1,
                                       top + 1,
                                       UINT64_C(1) << (width / 2),
                                       (UINT64_C(1) << (width / 2)) - 1,
                                       all / 3};
    return values[index % SPECIALS] & all;
}

static uint64_t integer_bits(unsigned width, int special, uint64_t r)
{
    uint64_t all = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    if (special >= 0)
        return special_integer(width, (unsigned)special);
    switch (r % 4) {
    case 0: return special_integer(width, (unsigned)(r >> 8) % SPECIALS);
    case 1: return (mix(r) >> (mix(r + 1) % 64)) & all; /* any magnitude */
    case 2: return (0 - (mix(r) >> (mix(r + 1) % 64))) & all;
    default: return mix(r) & all;
    }
}

/*
 * The fraction ends in zeros, in a half or beside one, or in ones, at any bit, mostly where a
 * narrower type ends; the exponent is where f16, e4m3 and e5m2 have theirs, where integers have
 * halves, or anywhere.
 */
static uint64_t converted_float(const struct format *f, int special, uint64_t r)
{
    if (special >= 0)
        return special_float(f, (unsigned)special);
    int64_t bias = (1 << (f->exponent_bits - 1)) - 1, top = (1 << f->exponent_bits) - 1;
    static const uint8_t kept[] = {2, 3, 7, 10, 23};
    uint64_t where = mix(r), at = 1 + mix(r ^ 5) % f->fraction_bits; /* bits of the tail */
    unsigned narrow = kept[mix(r ^ 7) % sizeof kept];
    if (mix(r ^ 9) % 2 && narrow < f->fraction_bits)
        at = f->fraction_bits - narrow;
    const uint64_t half = UINT64_C(1) << (at - 1);
    const uint64_t tails[8] = {0,        half,         half, half - 1,
                               half + 1, 2 * half - 1, 1,    mix(r ^ 6) & (2 * half - 1)};
    uint64_t fraction = r >> 8 & ((UINT64_C(1) << f->fraction_bits) - 1);
    int64_t exponent = where % 4 < 2    ? bias - 27 + (int64_t)(where >> 8 & 0xffffff) % 46
                       : where % 4 == 2 ? bias - 2 + (int64_t)(where >> 8 & 0xffffff) % 68
                                        : (int64_t)(where >> 8 & 0xffffff) % (top + 1);
    fraction = (fraction >> at << at | tails[r % 8]) & ((UINT64_C(1) << f->fraction_bits) - 1);
    exponent = exponent < 0 ? 0 : exponent > top ? top : exponent;
    return (uint64_t)exponent << f->fraction_bits | fraction |
           (r >> 63) << (f->exponent_bits + f->fraction_bits);
}

static uint64_t converted_bits(uint8_t type, int special, uint64_t r)
{
    switch (type) {
    case PTX_F16: return converted_float(&f16, special, r);
    case PTX_BF16: return converted_float(&bf16, special, r);
    case PTX_F64: return converted_float(&f64, special, r);
    case PTX_F16X2:
        return converted_float(&f16, special, r) | converted_float(&f16, -1, mix(r)) << 16;
    case PTX_BF16X2:
        return converted_float(&bf16, special, r) | converted_float(&bf16, -1, mix(r)) << 16;
    default: return converted_float(&f32, special, r);
    }
}

/* Where fields of 32 and 64 bits begin and end, and beside it. */
static uint64_t field_bits(uint64_t r)
{
    static const uint8_t edges[] = {0, 1, 2, 15, 16, 30, 31, 32, 33, 47, 48, 62, 63, 64, 65, 255};
    return r % 4 ? edges[mix(r) % sizeof edges] : mix(r) % 256;
}

static uint64_t typed_float(const struct format *f, int special, uint64_t r, uint64_t shared)
{
    static const enum temper tempers[8] = {TAME, TAME,    TAME,     WIDE,
                                           LOW,  SPECIAL, ANY_BITS, ANY_BITS};
    if (special >= 0)
        return special_float(f, (unsigned)special);
    int64_t bias = (1 << (f->exponent_bits - 1)) - 1;
    /* the operands of one tuple share a centre, half the time near 1 */
    int64_t centre = shared & 8 ? bias : (int64_t)((shared >> 4) % (uint64_t)(2 * bias));
    return float_of(f, tempers[shared % 8], centre, r);
}

static uint64_t typed_bits(uint8_t type, int special, uint64_t r, uint64_t shared)
{
    switch (type) {
    case PTX_F16: return typed_float(&f16, special, r, shared);
    case PTX_BF16: return typed_float(&bf16, special, r, shared);
    case PTX_F32: return typed_float(&f32, special, r, shared);
    case PTX_F64: return typed_float(&f64, special, r, shared);
    case PTX_F16X2:
        return typed_float(&f16, special, r, shared) | typed_float(&f16, -1, mix(r), mix(shared))
                                                           << 16;
    case PTX_BF16X2:
        return typed_float(&bf16, special, r, shared) | typed_float(&bf16, -1, mix(r), mix(shared))
                                                            << 16;
    case PTX_PRED: return r >> 9 & 1;
    default: return integer_bits(operand_width(type) > 64 ? 64 : operand_width(type), special, r);
    }
}

uint64_t operand_bits(struct source s, unsigned slot, uint32_t tuple)
{
    uint64_t r = word(s.type + 64u * s.role, slot + 1, tuple), shared = word(s.type, 0, tuple);
    unsigned width = operand_width(s.type);
    uint64_t all = width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    int special = tuple >= SPECIALS * SPECIALS ? -1
                  : slot == 0                  ? (int)(tuple % SPECIALS)
                  : slot == 1                  ? (int)(tuple / SPECIALS)
                                               : (int)(r % SPECIALS);
    /* normal, evict_first and evict_last for all of an access */
    static const uint64_t policies[] = {0x1000000000000000, 0x12F0000000000000, 0x14F0000000000000};
    uint64_t bits;
    switch (s.role) {
    case ROLE_TYPED: return typed_bits(s.type, special, r, shared);
    case ROLE_NONZERO: bits = typed_bits(s.type, special, r, shared); return bits ? bits : 1;
    case ROLE_COMPARED:
        s.role = ROLE_TYPED;
        return operand_bits(s, tuple % 2 ? (unsigned)s.lo : slot + 16, tuple);
    case ROLE_RANGE: return (uint64_t)(s.lo + (int64_t)(r % (uint64_t)(s.hi - s.lo + 1))) & all;
    case ROLE_SHIFT: return (r % 4 ? mix(r) % 71 : mix(r)) & all;
    case ROLE_FIELD: return field_bits(r);
    case ROLE_CONVERTED: return converted_bits(s.type, special, r);
    case ROLE_POLICY: return policies[r % (sizeof policies / sizeof *policies)];
    case ROLE_FEW: /* warps of one value, of two, of many */
        return (tuple / 32 % 3 == 0 ? tuple / 32 : r % (tuple / 32 % 3 == 1 ? 2 : 40)) * 0x1234567 &
               all;
    default: return matrix_bits(s, r, tuple);
    }
}
