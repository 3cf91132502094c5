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
    uint16_t (*from_f32)(float);
    uint16_t (*from_f64)(double);
};
static const struct kind kinds[] = {
    {10, -14, 0x7C00, ptxgen_f16_to_f32, ptxgen_f32_to_f16, ptxgen_f64_to_f16},
    {7, -126, 0x7F80, ptxgen_bf16_to_f32, ptxgen_f32_to_bf16, ptxgen_f64_to_bf16},
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
                uint16_t back = kind->from_f32(value);
                assert_int_equal(back, bits | 1u << (kind->fraction_bits - 1)); /* made quiet */
                assert_int_equal(kind->from_f64(value), back);
            } else {
                assert_true((double)value == expected);
                assert_int_equal(kind->from_f32(value), bits);
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
            float tie_f32 = (float)tie;
            if ((double)tie_f32 == tie) {
                assert_int_equal(kind->from_f32(tie_f32), even);
                assert_int_equal(kind->from_f32(nextafterf(tie_f32, 0)), low);
                assert_int_equal(kind->from_f32(nextafterf(tie_f32, INFINITY)), low + 1);
            }
        }
    }
}

static void double_to_half_rounds_once(void **state)
{
    (void)state;
    double just_above_tie = 1 + 0x1p-11 + 0x1p-40; /* through float it would be the tie itself */
    assert_int_equal(ptxgen_f32_to_f16((float)just_above_tie), 0x3C00);
    assert_int_equal(ptxgen_f64_to_f16(just_above_tie), 0x3C01);
    double bf16_above_tie = 1 + 0x1p-8 + 0x1p-40;
    assert_int_equal(ptxgen_f32_to_bf16((float)bf16_above_tie), 0x3F80);
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
        assert_int_equal(ptxgen_f32_to_bf16(value), rounded);
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
        cmocka_unit_test(half_ulp_follows_the_binades_down_to_the_subnormals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
