/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operands against a slow statement of each rounding model, on integers: operands are
 * taken apart bit by bit, terms are shifted as 64-bit integers, exact sums are counted bit by bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "one_dot.h"

/** Sign, significand and exponent of the significand's last place. */
typedef struct number {
    int sign;
    int64_t significand;
    int exponent; /* of the unit place of the significand */
    int leading;  /* of the format's leading place */
} number;

static number split(emu_element type, uint32_t bits)
{
    static const struct {
        int fraction, exponent_bits;
    } formats[EMU_ELEMENT_COUNT] = {[EMU_F16] = {10, 5}, [EMU_BF16] = {7, 8}, [EMU_TF32] = {23, 8},
                                    [EMU_F32] = {23, 8}, [EMU_E4M3] = {3, 4}, [EMU_E5M2] = {2, 5}};
    int fraction = formats[type].fraction, width = formats[type].exponent_bits;
    int bias = (1 << (width - 1)) - 1;
    if (type == EMU_TF32)
        bits &= ~0x1FFFu;
    int field = (int)(bits >> fraction & ((1u << width) - 1));
    int64_t low = bits & ((1u << fraction) - 1);
    number n = {bits >> (fraction + width) & 1 ? -1 : 1, field ? low | (int64_t)1 << fraction : low,
                (field ? field : 1) - bias - fraction, (field ? field : 1) - bias};
    return n;
}

/** value · 2^exponent to a format, toward zero or to nearest even; integers only. */
static uint32_t round_integer(int64_t value, int exponent, int fraction, int width, bool nearest)
{
    int bias = (1 << (width - 1)) - 1, least = 1 - bias - fraction;
    uint64_t magnitude = (uint64_t)(value < 0 ? -value : value);
    uint32_t sign = value < 0 ? 1u << (fraction + width) : 0;
    if (magnitude == 0)
        return 0;
    int digits = 0;
    while (magnitude >> digits)
        digits++;
    int unit = exponent + digits - 1 - fraction;
    unit = unit < least ? least : unit;
    uint64_t kept;
    if (unit <= exponent) {
        kept = magnitude << (exponent - unit);
    } else {
        int drop = unit - exponent;
        kept = drop > 63 ? 0 : magnitude >> drop;
        uint64_t rest = drop > 63 ? 1 : magnitude - (kept << drop);
        uint64_t half = drop > 63 ? 2 : (uint64_t)1 << (drop - 1);
        if (nearest && (rest > half || (rest == half && (kept & 1))))
            kept++;
    }
    if (kept >> (fraction + 1)) {
        kept >>= 1;
        unit++;
    }
    if (!(kept >> fraction))
        return sign | (uint32_t)kept;
    int field = unit + fraction + bias;
    if (field >= (1 << width) - 1)
        return sign | ((1u << width) - 1) << fraction;
    return sign | (uint32_t)field << fraction | ((uint32_t)kept & ((1u << fraction) - 1));
}

static int64_t cut(number n, int unit)
{
    if (n.significand == 0)
        return 0; /* its exponent means nothing */
    int shift = n.exponent - unit;
    int64_t moved = shift >= 0    ? n.significand * ((int64_t)1 << shift)
                    : shift < -62 ? 0
                                  : n.significand >> -shift;
    return n.sign * moved;
}

static number times(number x, number y)
{
    return (number){x.sign * y.sign, x.significand * y.significand, x.exponent + y.exponent,
                    x.leading + y.leading};
}

/** The unit of each term below the largest, the fraction kept of an f32, products in a sum. */
typedef struct model {
    int fraction_bits, kept_bits;
    unsigned step;
} model;

/** One aligned sum of `count` products and c. */
static uint32_t slow_step(emu_element type, emu_element acc, const dot *in, unsigned first,
                          unsigned count, uint32_t c, model rule)
{
    const int fraction_bits = rule.fraction_bits;
    number addend = split(acc, c), products[MAX_K];
    int largest = -1000;
    if (addend.significand)
        largest = addend.leading > -126 ? addend.leading : -126;
    for (unsigned i = 0; i < count; i++) {
        products[i] = times(split(type, in->a[first + i]), split(type, in->b[first + i]));
        if (products[i].significand && products[i].leading > largest)
            largest = products[i].leading;
    }
    int64_t sum = cut(addend, largest - fraction_bits);
    for (unsigned i = 0; i < count; i++)
        sum += cut(products[i], largest - fraction_bits);
    /* hardware gives no negative zero */
    if (acc == EMU_F16) {
        uint32_t bits = round_integer(sum, largest - fraction_bits, 10, 5, true);
        return bits & 0x7FFF ? bits : 0;
    }
    uint32_t bits = round_integer(sum, largest - fraction_bits, rule.kept_bits, 8, false)
                    << (23 - rule.kept_bits);
    return bits << 1 ? bits : 0;
}

/** A sum as signed counts of powers of two, carried and rounded bit by bit. */
static uint32_t slow_exact(emu_element type, emu_element acc, const dot *in, unsigned k)
{
    enum { BITS = 700, LOW = -330 };
    int counts[BITS] = {0};
    number terms[MAX_K + 1];
    for (unsigned i = 0; i < k; i++)
        terms[i] = times(split(type, in->a[i]), split(type, in->b[i]));
    terms[k] = split(acc, in->c);
    for (unsigned i = 0; i <= k; i++) {
        for (int bit = 0; bit < 60; bit++)
            counts[terms[i].exponent - LOW + bit] +=
                terms[i].sign * (int)(terms[i].significand >> bit & 1);
    }
    for (int sign = 1, pass = 0; pass < 2; pass++) {
        int carry = 0, bits[BITS];
        for (int i = 0; i < BITS; i++) {
            int total = sign * counts[i] + carry;
            bits[i] = total & 1;
            carry = (total - bits[i]) / 2;
        }
        if (carry < 0) {
            sign = -1;
            continue;
        }
        int top = BITS - 1;
        while (top >= 0 && !bits[top])
            top--;
        if (top < 0)
            return 0;
        /* 58 leading bits and a sticky one carry all that rounding needs */
        int64_t leading = 0;
        int low = top - 57 > 0 ? top - 57 : 0;
        for (int i = top; i >= low; i--)
            leading = leading * 2 + bits[i];
        int sticky = 0;
        for (int i = 0; i < low; i++)
            sticky |= bits[i];
        leading = leading * 2 + sticky;
        return acc == EMU_F16 ? round_integer(sign * leading, low + LOW - 1, 10, 5, true)
                              : round_integer(sign * leading, low + LOW - 1, 23, 8, true);
    }
    return 0;
}

/** A finite pattern: mostly of moderate size, some of any, some zero. */
static uint32_t random_pattern(emu_element type, int style)
{
    static const struct {
        int fraction, exponent_bits, middle;
    } formats[EMU_ELEMENT_COUNT] = {
        [EMU_F16] = {10, 5, 15},  [EMU_BF16] = {7, 8, 127}, [EMU_TF32] = {23, 8, 127},
        [EMU_F32] = {23, 8, 127}, [EMU_E4M3] = {3, 4, 7},   [EMU_E5M2] = {2, 5, 15}};
    int fraction = formats[type].fraction, width = formats[type].exponent_bits;
    uint32_t low = random_bits() & ((1u << fraction) - 1), sign = random_bits() & 1;
    int field = formats[type].middle + random_int(-6, 6);
    if (style == 1)
        field = random_int(0, (1 << width) - 2);
    if (style == 2)
        field = random_int(0, 3);
    if (style == 3 && random_int(0, 1))
        field = 0, low = 0;
    return sign << (fraction + width) | (uint32_t)field << fraction | low;
}

static model model_of(emu_element type, emu_numerics numerics)
{
    const unsigned bytes = numerics < EMU_NUMERICS_HOPPER ? 16 : 32;
    const int fraction_bits = numerics < EMU_NUMERICS_HOPPER ? 24 : 25;
    if (numerics == EMU_NUMERICS_ADA && emu_element_bits(type) == 8)
        return (model){13, 13, 16};
    return (model){fraction_bits, 23, bytes * 8 / emu_element_bits(type)};
}

static bool is_infinite(emu_element acc, uint32_t bits)
{
    return acc == EMU_F16 ? (bits & 0x7FFF) == 0x7C00 : (bits & 0x7FFFFFFF) == 0x7F800000;
}

static uint32_t slow_sum(emu_element type, emu_element acc, const dot *in, unsigned k, model rule)
{
    uint32_t sum = in->c;
    for (unsigned first = 0; first < k && !is_infinite(acc, sum); first += rule.step) {
        unsigned count = k - first < rule.step ? k - first : rule.step;
        sum = slow_step(type, acc, in, first, count, sum, rule);
    }
    return sum; /* an infinity stays: all other terms are finite */
}

static void random_dot(emu_element type, emu_element acc, unsigned k, int style, dot *in)
{
    for (unsigned i = 0; i < k; i++)
        set(in, i, random_pattern(type, style), random_pattern(type, style));
    in->c = random_pattern(acc, random_int(0, 3));
}

static void check_random(emu_element type, unsigned k, emu_element acc, emu_numerics numerics)
{
    const emu_mma_op op = float_op(type, k, acc);
    for (int round = 0; round < 1500; round++) {
        dot in;
        random_dot(type, acc, k, round % 4, &in);
        uint32_t expected = numerics == EMU_NUMERICS_EXACT
                                ? slow_exact(type, acc, &in, k)
                                : slow_sum(type, acc, &in, k, model_of(type, numerics));
        assert_int_equal(run_dot(&op, numerics, &in), expected);
    }
}

/** An fp8 number as f16. */
static uint32_t widen(emu_element type, uint32_t bits)
{
    if (type == EMU_E5M2)
        return bits << 8;
    uint32_t sign = (bits & 0x80) << 8, magnitude = bits & 0x7F;
    if (magnitude >= 8)
        return sign | ((magnitude << 7) + (8 << 10));
    static const uint32_t subnormal[8] = {0,      0x1800, 0x1C00, 0x1E00,
                                          0x2000, 0x2100, 0x2200, 0x2300};
    return sign | subnormal[magnitude];
}

static uint32_t nearest_sum(emu_element acc, uint32_t x, uint32_t y)
{
    if (x == y && (x << 1 & (acc == EMU_F16 ? 0xFFFF : UINT32_MAX)) == 0)
        return x; /* zeros of one sign keep it */
    if (acc == EMU_F16) {
        number a = split(EMU_F16, x), b = split(EMU_F16, y);
        return round_integer(cut(a, -24) + cut(b, -24), -24, 10, 5, true);
    }
    float a, b;
    memcpy(&a, &x, 4);
    memcpy(&b, &y, 4);
    a += b;
    memcpy(&x, &a, 4);
    return x;
}

/** What the assembler makes of fp8 mma.sync for sm_90 and sm_100. */
static void check_widened(emu_element type, unsigned k, emu_element acc, emu_numerics numerics)
{
    const emu_mma_op op = float_op(type, k, acc);
    for (int round = 0; round < 1500; round++) {
        dot in, halves = {.c = 0};
        random_dot(type, acc, k, round % 4, &in);
        unsigned next = 0;
        for (unsigned odd = 0; odd < 2; odd++) {
            for (unsigned i = 0; i < k; i++) {
                if (i / 2 % 2 == odd)
                    set(&halves, next++, widen(type, in.a[i]), widen(type, in.b[i]));
            }
        }
        uint32_t sum = slow_sum(EMU_F16, acc, &halves, k, (model){25, 23, k / 2});
        if (is_infinite(acc, sum))
            continue;
        assert_int_equal(run_dot(&op, numerics, &in), nearest_sum(acc, in.c, sum));
    }
}

static void random_sums_match_the_slow_statement_of_each_model(void **state)
{
    (void)state;
    static const struct {
        emu_element type;
        unsigned k;
        emu_element acc;
    } ops[] = {{EMU_F16, 8, EMU_F32},  {EMU_F16, 16, EMU_F32},  {EMU_F16, 16, EMU_F16},
               {EMU_BF16, 8, EMU_F32}, {EMU_BF16, 16, EMU_F32}, {EMU_TF32, 4, EMU_F32},
               {EMU_TF32, 8, EMU_F32}};
    for (unsigned i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        for (int n = EMU_NUMERICS_EXACT; n <= EMU_NUMERICS_RTX_BLACKWELL; n++)
            check_random(ops[i].type, ops[i].k, ops[i].acc, (emu_numerics)n);
    }
    check_random(EMU_E4M3, 32, EMU_F32, EMU_NUMERICS_RTX_BLACKWELL);
    check_random(EMU_E5M2, 16, EMU_F16, EMU_NUMERICS_RTX_BLACKWELL);
    check_random(EMU_E4M3, 32, EMU_F32, EMU_NUMERICS_ADA);
    check_random(EMU_E5M2, 32, EMU_F32, EMU_NUMERICS_ADA);
    check_random(EMU_E5M2, 16, EMU_F16, EMU_NUMERICS_ADA);
    check_random(EMU_E4M3, 32, EMU_F32, EMU_NUMERICS_EXACT);
    check_random(EMU_E5M2, 32, EMU_F16, EMU_NUMERICS_EXACT);
}

static void random_fp8_sums_on_hopper_match_two_f16_operations_and_an_addition(void **state)
{
    (void)state;
    check_widened(EMU_E4M3, 32, EMU_F32, EMU_NUMERICS_HOPPER);
    check_widened(EMU_E4M3, 16, EMU_F16, EMU_NUMERICS_HOPPER);
    check_widened(EMU_E5M2, 32, EMU_F16, EMU_NUMERICS_BLACKWELL);
    check_widened(EMU_E5M2, 16, EMU_F32, EMU_NUMERICS_BLACKWELL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sums_match_the_slow_statement_of_each_model),
        cmocka_unit_test(random_fp8_sums_on_hopper_match_two_f16_operations_and_an_addition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
