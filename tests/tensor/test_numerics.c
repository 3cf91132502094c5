/* SPDX-License-Identifier: Apache-2.0 */
/* What sums become: hand-computed cases in which the models differ, and special values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "one_dot.h"

static uint32_t f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/** f16 power of two, also below 2^-14. */
static uint32_t half_pow2(int exponent)
{
    return exponent >= -14 ? (uint32_t)(exponent + 15) << 10 : 1u << (exponent + 24);
}

/** One expectation for each of EXACT, AMPERE, ADA, HOPPER, BLACKWELL, RTX_BLACKWELL. */
static void expect_each(const emu_mma_op *op, const dot *in, const uint32_t expected[6])
{
    for (int n = 0; n < 6; n++)
        assert_int_equal(run_dot(op, (emu_numerics)n, in), expected[n]);
}

static void expect_all(const emu_mma_op *op, const dot *in, uint32_t expected)
{
    const uint32_t same[6] = {expected, expected, expected, expected, expected, expected};
    expect_each(op, in, same);
}

/* ---- truncation ---- */

static void products_are_cut_24_bits_below_on_ampere_and_25_on_hopper(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_F16, 8, EMU_F32);
    dot in = {.c = f32(1.0f)};
    for (unsigned k = 0; k < 4; k++) /* four times 2^-25 is one unit above 1 */
        set(&in, k, half_pow2(-12), half_pow2(-13));
    const uint32_t up = f32(1.0f) + 1;
    expect_each(&op, &in, (uint32_t[]){up, f32(1), f32(1), up, up, up});
    for (unsigned k = 0; k < 4; k++) /* four times 2^-26 is nothing: also exactly, a tie */
        set(&in, k, half_pow2(-13), half_pow2(-13));
    expect_all(&op, &in, f32(1));
    set(&in, 4, half_pow2(-13), half_pow2(-13)); /* above the tie: only exact mode sees it */
    expect_each(&op, &in, (uint32_t[]){up, f32(1), f32(1), f32(1), f32(1), f32(1)});
}

static void ampere_takes_k16_in_two_sums(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_F16, 16, EMU_F32);
    const uint32_t up = f32(1.0f) + 1;
    dot in = {.c = f32(1.0f)};
    set(&in, 0, half_pow2(-12), half_pow2(-12)); /* 2^-24, half a unit, in each half of K */
    set(&in, 8, half_pow2(-12), half_pow2(-12));
    expect_each(&op, &in, (uint32_t[]){up, f32(1), f32(1), up, up, up});
    in = (dot){.c = f32(1.0f)};
    set(&in, 0, half_pow2(-12), half_pow2(-12)); /* both in the first half */
    set(&in, 7, half_pow2(-12), half_pow2(-12));
    expect_all(&op, &in, up);
}

static void tf32_k8_is_two_sums_on_ampere(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_TF32, 8, EMU_F32);
    const uint32_t up = f32(1.0f) + 1;
    dot in = {.c = f32(1.0f)};
    set(&in, 3, f32(0x1p-12f), f32(0x1p-12f));
    set(&in, 4, f32(0x1p-12f), f32(0x1p-12f));
    expect_each(&op, &in, (uint32_t[]){up, f32(1), f32(1), up, up, up});
}

static void cut_is_toward_zero_for_negative_terms_and_results(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_F16, 8, EMU_F32);
    dot in = {.c = f32(1.0f)};
    set(&in, 0, half_pow2(-12) | 0x8000, half_pow2(-13)); /* 1 - 2^-25: a tie to 1 */
    const uint32_t below = f32(1.0f) - 1;
    expect_each(&op, &in, (uint32_t[]){f32(1), f32(1), f32(1), below, below, below});
    in.c = f32(-1.0f); /* -1 - 2^-25 */
    expect_all(&op, &in, f32(-1));
    set(&in, 1, half_pow2(-12) | 0x8000, half_pow2(-13)); /* -1 - 2^-24: a tie; then cut */
    expect_all(&op, &in, f32(-1));
}

static void product_exponents_are_not_normalised(void **state)
{
    (void)state;
    /* 1.5 · 1.5 counts as 2.25 · 2^0: terms of 2^-24 survive beside it on Ampere. */
    const emu_mma_op op = float_op(EMU_F16, 8, EMU_F32);
    dot in = {.c = 0};
    set(&in, 0, 0x3E00, 0x3E00);
    for (unsigned k = 1; k < 5; k++)
        set(&in, k, half_pow2(-12), half_pow2(-12));
    expect_all(&op, &in, f32(2.25f) + 1);
}

static void subnormal_factors_count_with_the_least_exponent(void **state)
{
    (void)state;
    /* 2^-24 · 1 counts as exponent -14, so 2^-39 is cut on Ampere (unit 2^-38), and is exactly
     * the last place on Hopper. */
    const emu_mma_op op = float_op(EMU_F16, 8, EMU_F32);
    dot in = {.c = 0};
    set(&in, 0, half_pow2(-24), half_pow2(0));
    set(&in, 1, half_pow2(-15), half_pow2(-24));
    const uint32_t both = f32(0x1p-24f + 0x1p-39f), one = f32(0x1p-24f);
    expect_each(&op, &in, (uint32_t[]){both, one, one, both, both, both});
}

static void zero_products_do_not_align_the_others(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_BF16, 8, EMU_F32);
    dot in = {.c = f32(0x1.8p-60f)};
    set(&in, 0, 0, 0x7F00); /* 0 · 2^127 */
    expect_all(&op, &in, f32(0x1.8p-60f));
}

static void f16_accumulators_round_to_nearest_even(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_F16, 16, EMU_F16);
    dot in = {.c = 0x6800}; /* 2048, whose neighbours are 2 apart */
    set(&in, 0, 0x3C00, 0x3C00);
    expect_all(&op, &in, 0x6800); /* 2049 ties to even */
    set(&in, 1, 0x3C00, 0x4000);
    expect_all(&op, &in, 0x6802); /* 2051 ties to 2052 */
    in = (dot){.c = 0x6800};
    set(&in, 0, 0x3C00, 0x3C00); /* one in each half of K: two ties on Ampere */
    set(&in, 8, 0x3C00, 0x3C00);
    expect_each(&op, &in, (uint32_t[]){0x6801, 0x6800, 0x6800, 0x6801, 0x6801, 0x6801});
}

static void f16_results_pass_to_infinity_at_65520(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_F16, 8, EMU_F16);
    dot in = {.c = 0x7BFF};      /* 65504 */
    set(&in, 0, 0x3C00, 0x4B80); /* + 15 */
    expect_all(&op, &in, 0x7BFF);
    set(&in, 0, 0x3C00, 0x4C00); /* + 16 */
    expect_all(&op, &in, 0x7C00);
}

static void f16_results_can_be_subnormal(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_F16, 8, EMU_F16);
    dot in = {.c = 0x0001};
    set(&in, 0, half_pow2(-12), half_pow2(-13)); /* 2^-24 + 2^-25 ties to 2^-23 */
    expect_all(&op, &in, 0x0002);
    in.c = 0x0002; /* 2^-23 + 2^-25 */
    expect_all(&op, &in, 0x0002);
}

/* ---- fp8 ---- */

static void ada_fp8_keeps_13_bits(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_E4M3, 32, EMU_F32);
    dot in = {.c = f32(1.0f)};
    set(&in, 0, 0x08, 0x02); /* 2^-6 · 2^-8 */
    set(&in, 1, 0x08, 0x02);
    const uint32_t full = f32(1 + 0x1p-13f);
    expect_each(&op, &in, (uint32_t[]){full, full, f32(1), full, full, full});
    in = (dot){.c = f32(1 + 0x1p-14f)}; /* the addend is cut too */
    const uint32_t kept = f32(1 + 0x1p-14f);
    expect_each(&op, &in, (uint32_t[]){kept, kept, f32(1), kept, kept, kept});
}

static void ada_fp8_results_keep_13_bits_after_a_carry(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_E4M3, 16, EMU_F32);
    dot in = {.c = f32(1 + 0x1p-13f)};
    set(&in, 0, 0x38, 0x38); /* 2 + 2^-13 */
    const uint32_t full = f32(2 + 0x1p-13f);
    expect_each(&op, &in, (uint32_t[]){full, full, f32(2), full, full, full});
}

static void hopper_fp8_subnormals_are_normal_f16_numbers(void **state)
{
    (void)state;
    /* e4m3 2^-9 · e5m2 2^15: exponent 6 as f16, but 9 where fp8 is native, which cuts 2^-17 */
    const emu_mma_op op = {MMA(16, 16, EMU_F32, EMU_E4M3, EMU_E5M2, EMU_F32)};
    dot in = {.c = 0};
    set(&in, 0, 0x01, 0x78);
    set(&in, 1, 0x01, 0x1C); /* 2^-9 · 2^-8 */
    const uint32_t both = f32(64 + 0x1p-17f);
    assert_int_equal(run_dot(&op, EMU_NUMERICS_HOPPER, &in), both);
    assert_int_equal(run_dot(&op, EMU_NUMERICS_RTX_BLACKWELL, &in), f32(64));
    assert_int_equal(run_dot(&op, EMU_NUMERICS_EXACT, &in), both);
}

static void sums_of_largest_significands_do_not_overflow(void **state)
{
    (void)state;
    dot in = {.c = f32(1.5f)};
    for (unsigned k = 0; k < 32; k++)
        set(&in, k, 0x3F, 0x3F); /* 1.875² */
    const emu_mma_op op = float_op(EMU_E4M3, 32, EMU_F32);
    assert_int_equal(run_dot(&op, EMU_NUMERICS_RTX_BLACKWELL, &in), f32(114));
    assert_int_equal(run_dot(&op, EMU_NUMERICS_EXACT, &in), f32(114));
}

static void hopper_fp8_adds_c_in_a_separate_rounded_addition(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_E5M2, 16, EMU_F32);
    dot in = {.c = f32(1.0f) + 1};
    set(&in, 0, (uint32_t)(-12 + 15) << 2, (uint32_t)(-12 + 15) << 2); /* 2^-24: half a unit */
    const uint32_t tie_up = f32(1.0f) + 2, cut = f32(1.0f) + 1;
    const uint32_t ada = f32(1.0f);
    expect_each(&op, &in, (uint32_t[]){tie_up, cut, ada, tie_up, tie_up, cut});
}

static void hopper_fp8_sums_even_pairs_of_k_before_odd_ones(void **state)
{
    (void)state;
    /* 2^15·2^15 at k 0 hides 1 at k 4 (even pairs), but not at k 2 after -2^30 at k 3. */
    const emu_mma_op op = float_op(EMU_E5M2, 16, EMU_F32);
    dot in = {.c = 0};
    set(&in, 0, 0x78, 0x78);
    set(&in, 4, 0x3C, 0x3C);
    set(&in, 2, 0xF8, 0x78);
    assert_int_equal(run_dot(&op, EMU_NUMERICS_EXACT, &in), f32(1));
    assert_int_equal(run_dot(&op, EMU_NUMERICS_HOPPER, &in), f32(0));
    in = (dot){.c = 0};
    set(&in, 0, 0x78, 0x78);
    set(&in, 1, 0xF8, 0x78);
    set(&in, 6, 0x3C, 0x3C);
    assert_int_equal(run_dot(&op, EMU_NUMERICS_HOPPER, &in), f32(1));
}

/* ---- special values ---- */

static void infinities_and_nans_follow_ieee_with_a_canonical_nan(void **state)
{
    (void)state;
    const uint32_t inf = 0x7C00, minus_inf = 0xFC00, one = 0x3C00, nan = 0xFE01;
    static const emu_element accumulators[] = {EMU_F32, EMU_F16};
    for (unsigned i = 0; i < 2; i++) {
        const bool half = accumulators[i] == EMU_F16;
        const emu_mma_op op = float_op(EMU_F16, 16, accumulators[i]);
        const uint32_t out_nan = half ? 0x7FFF : 0x7FFFFFFF, out_inf = half ? inf : 0x7F800000;
        const uint32_t c_minus_inf = half ? minus_inf : 0xFF800000;
        dot in = {.c = 0};
        set(&in, 5, inf, one);
        expect_all(&op, &in, out_inf);
        set(&in, 13, one, inf);
        expect_all(&op, &in, out_inf);
        set(&in, 13, minus_inf, one);
        expect_all(&op, &in, out_nan);
        set(&in, 13, minus_inf, 0);
        expect_all(&op, &in, out_nan);
        set(&in, 5, 0, 0);
        expect_all(&op, &in, out_nan); /* ∞ · 0 alone */
        set(&in, 13, 0xBC00, inf);
        expect_all(&op, &in, c_minus_inf);
        set(&in, 5, inf, one);
        set(&in, 13, 0, 0);
        in.c = c_minus_inf;
        expect_all(&op, &in, out_nan);
        set(&in, 5, minus_inf, one);
        expect_all(&op, &in, c_minus_inf);
        set(&in, 5, nan, 0);
        expect_all(&op, &in, out_nan);
        in = (dot){.c = half ? 0xFD00 : 0xFFC12345};
        expect_all(&op, &in, out_nan);
    }
}

static void e4m3_has_one_nan_and_no_infinity(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_E4M3, 32, EMU_F32);
    dot in = {.c = 0};
    set(&in, 0, 0x7E, 0x38); /* 448 */
    expect_all(&op, &in, f32(448));
    set(&in, 1, 0xFF, 0x00);
    expect_all(&op, &in, 0x7FFFFFFF);
}

static void f32_overflow_is_infinity_and_truncation_stays_below_it(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_BF16, 8, EMU_F32);
    dot in = {.c = 0x7F7FFFFF};
    set(&in, 0, 0x7300, 0x3F80); /* 2^103, half a unit of the largest f32 */
    const uint32_t max = 0x7F7FFFFF, inf = 0x7F800000;
    expect_each(&op, &in, (uint32_t[]){inf, max, max, max, max, max});
    set(&in, 0, 0x7380, 0x3F80); /* 2^104 */
    expect_all(&op, &in, inf);
    in = (dot){.c = 0};
    set(&in, 0, 0xFF00, 0x7F00); /* -2^254 */
    expect_all(&op, &in, 0xFF800000);
    set(&in, 1, 0x7F00, 0x7F00); /* cancels; a 1 beside them is cut */
    set(&in, 2, 0x3F80, 0x3F80);
    expect_each(&op, &in, (uint32_t[]){f32(1), 0, 0, 0, 0, 0});
}

static void f32_subnormals_are_read_and_made(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_BF16, 8, EMU_F32);
    dot in = {.c = 0x00000001};
    expect_all(&op, &in, 0x00000001);
    set(&in, 0, 0x0080, 0x3600); /* 2^-126 · 2^-19 = 2^-145 */
    expect_all(&op, &in, 0x00000011);
    in.c = 0x80000001;
    expect_all(&op, &in, 0x0000000F);
    in = (dot){.c = 0};
    set(&in, 0, 0x0001, 0x3F80); /* a bf16 subnormal: 2^-133 */
    expect_all(&op, &in, 0x00010000);
    set(&in, 0, 0x8080, 0x3380); /* -2^-126 · 2^-24: half the least f32 */
    expect_each(&op, &in, (uint32_t[]){0x80000000, 0, 0, 0, 0, 0});
}

static void an_addend_aligns_no_lower_than_at_the_least_f32_exponent(void **state)
{
    (void)state;
    /* eight times 2^-152 make the least f32, but each lies below the unit 2^(-126 - 25) */
    const emu_mma_op op = float_op(EMU_BF16, 8, EMU_F32);
    dot in = {.c = 1};
    for (unsigned k = 0; k < 8; k++)
        set(&in, k, 0x0080, 0x3280);
    expect_each(&op, &in, (uint32_t[]){2, 1, 1, 1, 1, 1});
    in.c = 0; /* which aligns nothing */
    expect_all(&op, &in, 1);
}

static void exact_sums_see_terms_far_below_a_tie(void **state)
{
    (void)state;
    /* 1 + 2^-24 ties to 1, but 2^-55 is left of two products that nearly cancel */
    const emu_mma_op op = float_op(EMU_TF32, 8, EMU_F32);
    dot in = {.c = f32(1)};
    set(&in, 0, f32(0x1p-24f), f32(1));
    set(&in, 1, f32(0x1p-35f + 0x1p-45f), f32(1 + 0x1p-10f));
    set(&in, 2, f32(0x1p-35f + 0x1p-44f), f32(-1));
    assert_int_equal(run_dot(&op, EMU_NUMERICS_EXACT, &in), f32(1) + 1);
    set(&in, 1, 0, 0);
    set(&in, 2, 0, 0);
    assert_int_equal(run_dot(&op, EMU_NUMERICS_EXACT, &in), f32(1));
    /* and to f16, where 2^-25 ties to 0 and 2^-48 decides */
    const emu_mma_op half = float_op(EMU_F16, 8, EMU_F16);
    in = (dot){.c = 0};
    set(&in, 0, half_pow2(10), 0x3C00);
    set(&in, 1, half_pow2(10), 0xBC00);
    set(&in, 2, half_pow2(-12), half_pow2(-13));
    assert_int_equal(run_dot(&half, EMU_NUMERICS_EXACT, &in), 0);
    set(&in, 3, half_pow2(-24), half_pow2(-24));
    assert_int_equal(run_dot(&half, EMU_NUMERICS_EXACT, &in), 1);
}

static void zero_sums_are_positive(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_F16, 16, EMU_F32), half = float_op(EMU_F16, 16, EMU_F16);
    dot in = {.c = 0x80000000};
    set(&in, 0, 0x8000, 0x3C00);
    expect_all(&op, &in, 0);
    in.c = 0x8000;
    expect_all(&half, &in, 0);
    in.c = 0xBC00;
    set(&in, 0, 0x3C00, 0x3C00);
    expect_all(&half, &in, 0);
}

static void tf32_drops_its_low_13_bits(void **state)
{
    (void)state;
    const emu_mma_op op = float_op(EMU_TF32, 4, EMU_F32);
    dot in = {.c = 0};
    set(&in, 0, f32(1.0f) | 0x1FFF, f32(-3.0f) | 0x1FFF);
    expect_all(&op, &in, f32(-3));
}

/* ---- f64 ---- */

static double run_f64(emu_rounding rounding, double a0, double b0, double a1, double b1, double c0)
{
    emu_mma_op op = {MMA(8, 4, EMU_F64, EMU_F64, EMU_F64, EMU_F64), .rounding = rounding};
    emu_lanes a[2] = {{{0}}}, b[2] = {{{0}}}, c[4] = {{{0}}}, d[4];
    const double av[2] = {a0, a1}, bv[2] = {b0, b1};
    for (unsigned lane = 0; lane < 2; lane++) {
        uint64_t bits;
        memcpy(&bits, &av[lane], 8);
        put_element(a, 64, lane, 0, bits);
        memcpy(&bits, &bv[lane], 8);
        put_element(b, 64, lane, 0, bits);
    }
    uint64_t bits;
    memcpy(&bits, &c0, 8);
    put_element(c, 64, 0, 0, bits);
    assert_int_equal(emu_mma_check(&op, NULL), PTXGEN_OK);
    emu_mma(&op, EMU_NUMERICS_HOPPER, d, a, b, c);
    bits = get_element(d, 64, 0, 0);
    double result;
    memcpy(&result, &bits, 8);
    return result;
}

static void f64_is_a_chain_of_fused_multiply_adds(void **state)
{
    (void)state;
    const double e = 0x1p-53;
    /* 1 + 2^-53 ties to 1 twice in a chain; together they would make 1 + 2^-52 */
    assert_true(run_f64(EMU_RN, e, 1, e, 1, 1) == 1);
    /* K ascends: 1 + 2^53 ties to 2^53, and so does the next 1 */
    assert_true(run_f64(EMU_RN, 0x1p53, 1, 1, 1, 1) == 0x1p53);
    assert_true(run_f64(EMU_RN, 1, 1, 0x1p53, 1, 1) == 0x1p53 + 2);
    /* the product is not rounded: (1 + e)(1 - e) - 1 with e = 2^-30 leaves -2^-60 */
    assert_true(run_f64(EMU_RN, 1 + 0x1p-30, 1 - 0x1p-30, 0, 0, -1) == -0x1p-60);
}

static void f64_rounding_modifiers_reach_every_addition(void **state)
{
    (void)state;
    const double e = 0x1p-60;
    assert_true(run_f64(EMU_RN, e, 1, 0, 0, 1) == 1);
    assert_true(run_f64(EMU_RP, e, 1, e, 1, 1) == 1 + 0x1p-51);
    assert_true(run_f64(EMU_RM, -e, 1, 0, 0, 1) == 1 - 0x1p-53);
    assert_true(run_f64(EMU_RZ, -e, 1, 0, 0, 1) == 1 - 0x1p-53);
    assert_true(run_f64(EMU_RZ, e, -1, 0, 0, -1) == -1);
    assert_true(1.0 + e == 1.0); /* the mode of the host is restored */
}

/* ---- integers ---- */

static void s8_sums_wrap_or_saturate(void **state)
{
    (void)state;
    emu_mma_op op = {MMA(16, 32, EMU_S32, EMU_S8, EMU_S8, EMU_S32)};
    dot in = {.c = 0x7FFFFFFF};
    set(&in, 0, 2, 5);
    expect_all(&op, &in, 0x80000009);
    op.satfinite = true;
    expect_all(&op, &in, 0x7FFFFFFF);
    set(&in, 0, 0xFE, 5); /* -2 · 5 */
    expect_all(&op, &in, 0x7FFFFFF5);
    in.c = 0x80000003;
    expect_all(&op, &in, 0x80000000);
    op.satfinite = false;
    expect_all(&op, &in, 0x7FFFFFF9);
    in = (dot){.c = 0};
    for (unsigned k = 0; k < 32; k++)
        set(&in, k, 0x80, 0x80);
    expect_all(&op, &in, 32 * 128 * 128);
}

static void models_are_those_of_the_compute_capabilities(void **state)
{
    (void)state;
    static const unsigned sm[] = {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
    static const emu_numerics expected[] = {
        EMU_NUMERICS_AMPERE,        EMU_NUMERICS_AMPERE,       EMU_NUMERICS_AMPERE,
        EMU_NUMERICS_AMPERE,        EMU_NUMERICS_ADA,          EMU_NUMERICS_HOPPER,
        EMU_NUMERICS_BLACKWELL,     EMU_NUMERICS_BLACKWELL,    EMU_NUMERICS_BLACKWELL,
        EMU_NUMERICS_RTX_BLACKWELL, EMU_NUMERICS_RTX_BLACKWELL};
    for (unsigned i = 0; i < sizeof sm / sizeof sm[0]; i++)
        assert_int_equal(emu_numerics_of_sm(sm[i]), expected[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_cut_24_bits_below_on_ampere_and_25_on_hopper),
        cmocka_unit_test(ampere_takes_k16_in_two_sums),
        cmocka_unit_test(tf32_k8_is_two_sums_on_ampere),
        cmocka_unit_test(cut_is_toward_zero_for_negative_terms_and_results),
        cmocka_unit_test(product_exponents_are_not_normalised),
        cmocka_unit_test(subnormal_factors_count_with_the_least_exponent),
        cmocka_unit_test(zero_products_do_not_align_the_others),
        cmocka_unit_test(f16_accumulators_round_to_nearest_even),
        cmocka_unit_test(f16_results_pass_to_infinity_at_65520),
        cmocka_unit_test(f16_results_can_be_subnormal),
        cmocka_unit_test(ada_fp8_keeps_13_bits),
        cmocka_unit_test(ada_fp8_results_keep_13_bits_after_a_carry),
        cmocka_unit_test(hopper_fp8_subnormals_are_normal_f16_numbers),
        cmocka_unit_test(sums_of_largest_significands_do_not_overflow),
        cmocka_unit_test(hopper_fp8_adds_c_in_a_separate_rounded_addition),
        cmocka_unit_test(hopper_fp8_sums_even_pairs_of_k_before_odd_ones),
        cmocka_unit_test(infinities_and_nans_follow_ieee_with_a_canonical_nan),
        cmocka_unit_test(e4m3_has_one_nan_and_no_infinity),
        cmocka_unit_test(f32_overflow_is_infinity_and_truncation_stays_below_it),
        cmocka_unit_test(f32_subnormals_are_read_and_made),
        cmocka_unit_test(an_addend_aligns_no_lower_than_at_the_least_f32_exponent),
        cmocka_unit_test(exact_sums_see_terms_far_below_a_tie),
        cmocka_unit_test(zero_sums_are_positive),
        cmocka_unit_test(tf32_drops_its_low_13_bits),
        cmocka_unit_test(f64_is_a_chain_of_fused_multiply_adds),
        cmocka_unit_test(f64_rounding_modifiers_reach_every_addition),
        cmocka_unit_test(s8_sums_wrap_or_saturate),
        cmocka_unit_test(models_are_those_of_the_compute_capabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
