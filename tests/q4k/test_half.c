/* SPDX-License-Identifier: Apache-2.0 */
/* f16 and bf16 conversions, over every pattern and at every rounding boundary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/kernels/half.h"

#include <math.h>
#include <string.h>

/* What a pattern means, by the definition of a binary format. */
static double meaning(unsigned bits, int fraction_bits, int min_exponent)
{
    unsigned exponent_mask = 0x7FFFu >> fraction_bits;
    unsigned exponent = (bits & 0x7FFF) >> fraction_bits;
    unsigned fraction = bits & ((1u << fraction_bits) - 1);
    double magnitude;
    if (exponent == exponent_mask)
        magnitude = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(fraction, min_exponent - fraction_bits);
    else
        magnitude = ldexp(fraction + (1u << fraction_bits),
                          (int)exponent - 1 + min_exponent - fraction_bits);
    return bits & 0x8000 ? -magnitude : magnitude;
}

struct kind {
    int fraction_bits, min_exponent;
    uint16_t infinity;
    float (*to_f32)(uint16_t);
    uint16_t (*from_f64)(double);
};
static const struct kind kinds[] = {
    {10, -14, 0x7C00, ptxgen_f16_to_f32, ptxgen_f64_to_f16},
    {7, -126, 0x7F80, ptxgen_bf16_to_f32, ptxgen_f64_to_bf16},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void every_pattern_has_its_meaning_and_converts_back(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        const struct kind *kind = &kinds[i];
        for (unsigned bits = 0; bits <= 0xFFFF; bits++) {
            float value = kind->to_f32((uint16_t)bits);
            double expected = meaning(bits, kind->fraction_bits, kind->min_exponent);
            assert_int_equal(!!signbit(value), bits >> 15);
            if (isnan(expected)) {
                assert_true(isnan(value));
                uint16_t back = kind->from_f64(value);
                assert_int_equal(back, bits | 1u << (kind->fraction_bits - 1)); /* made quiet */
            } else {
                assert_true((double)value == expected);
                assert_int_equal(kind->from_f64(expected), bits);
            }
        }
    }
}

/* Between each two neighbours: the tie goes to the even one, a hair off it to the nearer one. */
static void every_tie_rounds_to_even_and_its_sides_to_the_nearest(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        const struct kind *kind = &kinds[i];
        for (unsigned low = 0; low < kind->infinity; low++) {
            /* past the largest finite value the neighbour is the power of two beyond it */
            double below = meaning(low, kind->fraction_bits, kind->min_exponent);
            double above = low + 1 == kind->infinity
                               ? ldexp(1, 1 - kind->min_exponent + 1)
                               : meaning(low + 1, kind->fraction_bits, kind->min_exponent);
            double tie = below + (above - below) / 2;
            unsigned even = low & 1 ? low + 1 : low;
            assert_int_equal(kind->from_f64(tie), even);
            assert_int_equal(kind->from_f64(-tie), even | 0x8000);
            assert_int_equal(kind->from_f64(nextafter(tie, 0)), low);
            assert_int_equal(kind->from_f64(nextafter(tie, INFINITY)), low + 1);
        }
    }
}

static void double_to_half_rounds_once(void **state)
{
    (void)state;
    double just_above_tie = 1 + 0x1p-11 + 0x1p-40; /* through float it would be the tie itself */
    assert_int_equal(ptxgen_f64_to_f16((float)just_above_tie), 0x3C00);
    assert_int_equal(ptxgen_f64_to_f16(just_above_tie), 0x3C01);
    double bf16_above_tie = 1 + 0x1p-8 + 0x1p-40;
    assert_int_equal(ptxgen_f64_to_bf16((float)bf16_above_tie), 0x3F80);
    assert_int_equal(ptxgen_f64_to_bf16(bf16_above_tie), 0x3F81);
}

static void out_of_range_values_go_to_infinity_or_zero(void **state)
{
    (void)state;
    assert_int_equal(ptxgen_f64_to_f16(65519.999), 0x7BFF);
    assert_int_equal(ptxgen_f64_to_f16(65520), 0x7C00);
    assert_int_equal(ptxgen_f64_to_f16(-1e300), 0xFC00);
    assert_int_equal(ptxgen_f64_to_bf16(1e300), 0x7F80);
    assert_int_equal(ptxgen_f64_to_f16(-0x1p-25), 0x8000);
    assert_int_equal(ptxgen_f64_to_f16(nextafter(0x1p-25, 1)), 1);
    assert_int_equal(ptxgen_f64_to_f16(5e-324), 0);
    assert_int_equal(ptxgen_f64_to_bf16(-5e-324), 0x8000);
    assert_int_equal(ptxgen_f64_to_f16(-0.0), 0x8000);
}

static void bf16_agrees_with_the_integer_rounding_of_its_float(void **state)
{
    (void)state;
    uint32_t bits = 1;
    for (int i = 0; i < 1000000; i++) {
        bits = bits * 1664525u + 1013904223u;
        float value;
        memcpy(&value, &bits, sizeof value);
        if (isnan(value))
            continue;
        uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        assert_int_equal(ptxgen_f64_to_bf16(value), rounded);
    }
}

static void float_types_load_store_and_round_at_any_address(void **state)
{
    (void)state;
    static const struct {
        ptxgen_element type;
        size_t size;
        double stored; /* of 1 + 2^-9 */
    } cases[] = {{PTXGEN_F32, 4, 1 + 0x1p-9},
                 {PTXGEN_F16, 2, 1 + 0x1p-9},
                 {PTXGEN_BF16, 2, 1},
                 {PTXGEN_F64, 8, 1 + 0x1p-9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char array[32] = {0};
        assert_int_equal(ptxgen_element_size(cases[i].type), cases[i].size);
        ptxgen_element_store(cases[i].type, array + 1, 2, 1 + 0x1p-9);
        assert_true(ptxgen_element_load(cases[i].type, array + 1, 2) == cases[i].stored);
        assert_true(ptxgen_element_round(cases[i].type, 1 + 0x1p-9) == cases[i].stored);
        double values[5] = {7, 7, 7, 7, 7};
        ptxgen_elements_load(cases[i].type, array + 1, 1, 2, values, 3);
        assert_true(values[0] == 0 && values[1] == 7 && values[3] == cases[i].stored);
    }
}

/*
 * The bits that a double has in a type, by the spacing of the type's values where it stands; of f32
 * and f64 the compiler's.
 */
static void store_by_hand(ptxgen_element type, void *at, double value)
{
    const struct kind *kind = &kinds[type == PTXGEN_BF16];
    if (type == PTXGEN_F64) {
        memcpy(at, &value, sizeof value);
    } else if (type == PTXGEN_F32) {
        float wide = (float)value;
        memcpy(at, &wide, sizeof wide);
    } else {
        int exponent = isfinite(value) && value != 0 ? ilogb(value) : kind->min_exponent;
        if (exponent < kind->min_exponent)
            exponent = kind->min_exponent;
        double unit = ldexp(1, exponent - kind->fraction_bits);
        double rounded = isfinite(value) ? rint(value / unit) * unit : value;
        uint16_t bits = kind->infinity;
        for (unsigned b = 0; b < kind->infinity; b++)
            if (meaning(b, kind->fraction_bits, kind->min_exponent) == fabs(rounded))
                bits = (uint16_t)b;
        if (signbit(value))
            bits |= 0x8000;
        memcpy(at, &bits, sizeof bits);
    }
}

/* What an element's bits stand for. */
static double load_by_hand(ptxgen_element type, const void *at)
{
    const struct kind *kind = &kinds[type == PTXGEN_BF16];
    double widest;
    float wide;
    uint16_t bits;
    switch (type) {
    case PTXGEN_F64: memcpy(&widest, at, sizeof widest); return widest;
    case PTXGEN_F32: memcpy(&wide, at, sizeof wide); return wide;
    default:
        memcpy(&bits, at, sizeof bits);
        return meaning(bits, kind->fraction_bits, kind->min_exponent);
    }
}

static void assert_same_double(double found, double wanted)
{
    if (memcmp(&found, &wanted, sizeof found) != 0)
        fail_msg("%a, not %a", found, wanted);
}

/* Edges of each type, and what the narrower types cannot hold. */
static const double edges[] = {0.0,
                               -0.0,
                               1,
                               -1,
                               1 + 0x1p-9,
                               1 + 0x1p-11,
                               1 - 0x1p-12,
                               1 + 0x1p-23,
                               1 + 0x1p-24,
                               1 + 0x1p-30,
                               -1 - 0x1p-52,
                               1. / 3,
                               -2. / 3 * 0x1p-14,
                               0x1p-14,
                               0x1p-24,
                               0x1p-25,
                               -0x1.8p-25,
                               65504,
                               65519.999,
                               -65520,
                               0x1.fffffep127,
                               0x1.ffffffp127,
                               -0x1.fep127,
                               0x1.ffp127,
                               0x1p-126,
                               -0x1p-133,
                               0x1p-134,
                               0x1p-149,
                               0x1p-150,
                               0x1.8p-150,
                               -0x1p-1022,
                               0x1p-1074,
                               0x1.fffffffffffffp1023,
                               INFINITY,
                               -INFINITY};
enum { EDGES = sizeof edges / sizeof *edges };

/* Whatever the step, the offset and the address; and nothing is written between. */
static void every_type_is_stored_and_loaded_to_the_bit(void **state)
{
    (void)state;
    for (ptxgen_element type = PTXGEN_F32; type <= PTXGEN_F64; type++) {
        unsigned char array[8 * EDGES + 1], *at = array + 1;
        size_t size = ptxgen_element_size(type);
        memset(array, 0xA5, sizeof array);
        for (size_t i = 0; i < EDGES; i++) {
            unsigned char wanted[8], *own = at + i * size;
            store_by_hand(type, wanted, edges[i]);
            ptxgen_element_store(type, at, i, edges[i]);
            if (memcmp(own, wanted, size) != 0)
                fail_msg("%a is stored as other bits of type %d", edges[i], (int)type);
            if (i + 1 < EDGES)
                assert_int_equal(own[size], 0xA5);
            assert_same_double(ptxgen_element_load(type, at, i), load_by_hand(type, wanted));
            assert_same_double(ptxgen_element_round(type, edges[i]), load_by_hand(type, wanted));
        }
        for (size_t first = 0; first < EDGES; first += 3)
            for (size_t step = 1; step <= 5; step += 2) {
                double values[5 * EDGES];
                size_t count = EDGES - first;
                for (size_t i = 0; i < 5 * EDGES; i++)
                    values[i] = 7;
                ptxgen_elements_load(type, at, first, count, values, step);
                for (size_t i = 0; i < 5 * EDGES; i++)
                    assert_same_double(values[i],
                                       i % step || i / step >= count
                                           ? 7
                                           : load_by_hand(type, at + (first + i / step) * size));
            }
    }
}

static void half_ulp_follows_the_binades_down_to_the_subnormals(void **state)
{
    (void)state;
    assert_true(ptxgen_element_half_ulp(PTXGEN_F16, 1) == 0x1p-11);
    assert_true(ptxgen_element_half_ulp(PTXGEN_F16, -1.999) == 0x1p-11);
    assert_true(ptxgen_element_half_ulp(PTXGEN_F16, 2) == 0x1p-10);
    assert_true(ptxgen_element_half_ulp(PTXGEN_F16, 0x1p-20) == 0x1p-25);
    assert_true(ptxgen_element_half_ulp(PTXGEN_F16, 0) == 0x1p-25);
    assert_true(ptxgen_element_half_ulp(PTXGEN_BF16, 1) == 0x1p-8);
    assert_true(ptxgen_element_half_ulp(PTXGEN_BF16, 0) == 0x1p-134);
    assert_true(ptxgen_element_half_ulp(PTXGEN_F32, 1) == 0x1p-24);
    assert_true(ptxgen_element_half_ulp(PTXGEN_F32, 1e-320) == 0x1p-150);
    assert_true(ptxgen_element_half_ulp(PTXGEN_F64, 1) == 0x1p-53);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_has_its_meaning_and_converts_back),
        cmocka_unit_test(every_tie_rounds_to_even_and_its_sides_to_the_nearest),
        cmocka_unit_test(double_to_half_rounds_once),
        cmocka_unit_test(out_of_range_values_go_to_infinity_or_zero),
        cmocka_unit_test(bf16_agrees_with_the_integer_rounding_of_its_float),
        cmocka_unit_test(float_types_load_store_and_round_at_any_address),
        cmocka_unit_test(every_type_is_stored_and_loaded_to_the_bit),
        cmocka_unit_test(half_ulp_follows_the_binades_down_to_the_subnormals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
