/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the header, each shown on a problem small enough to do by hand. */
#include "support.h"
#include "tests/random.h"

enum { K = 4 };

static const int8_t w[2 * K] = {1, 2, 3, -128, 127, 0, -1, 5};
static const float w_scale[2] = {0.5f, 0.25f}, bias[2] = {10, -3};

static ptxgen_w8a8_spec spec_f32(void)
{
    return (ptxgen_w8a8_spec){.k = K, .n = 2, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32};
}

struct result {
    int8_t codes[K];
    ptxgen_w8a8_token token;
    int32_t acc[2];
    float y[2];
};

static struct result compute(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_operands *o)
{
    struct result r;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_reference_codes(s, o, 0, r.codes, &r.token, &err), &err);
    assert_ok(ptxgen_w8a8_reference(s, o, r.codes, &r.token, 0, 2, r.y, r.acc, &err), &err);
    return r;
}

static struct result run_x(const ptxgen_w8a8_spec *s, const float *x)
{
    ptxgen_w8a8_operands o = {
        .x = x, .w = w, .w_scale = w_scale, .bias = s->bias ? bias : NULL, .m = 1};
    return compute(s, &o);
}

static void a_token_is_scaled_by_its_largest_magnitude(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_f32();
    const float x[K] = {1, -2, 0.5f, 0};
    struct result r = run_x(&s, x);
    const int8_t codes[K] = {64, -127, 32, 0}; /* 63.5 and 31.75 */
    assert_true(r.token.scale == 2 / 127.0f);
    assert_memory_equal(r.codes, codes, K);
    assert_int_equal(r.acc[0], 64 - 254 + 96);
    assert_true(r.y[0] == (float)r.acc[0] * (2 / 127.0f) * 0.5f);
}

static void ties_go_to_the_even_code(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_f32();
    const float x[K] = {127, 0.5f, 1.5f, -2.5f}; /* scale 1 */
    const int8_t codes[K] = {127, 0, 2, -2};
    assert_memory_equal(run_x(&s, x).codes, codes, K);
}

static void a_row_of_zeros_has_scale_one_and_gives_the_bias(void **state)
{
    (void)state;
    const float x[K] = {0, -0.0f, 0, 0};
    for (int asymmetric = 0; asymmetric < 2; asymmetric++) {
        ptxgen_w8a8_spec s = spec_f32();
        s.bias = 1;
        s.asymmetric = (uint8_t)asymmetric;
        struct result r = run_x(&s, x);
        assert_true(r.token.scale == 1);
        assert_true(r.y[0] == 10 && r.y[1] == -3);
    }
}

static void a_scale_that_underflows_is_one(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_f32();
    const float x[K] = {0x1p-149f, 0, 0, 0};
    struct result r = run_x(&s, x);
    assert_true(r.token.scale == 1 && r.y[0] == 0);
    const float denormal[K] = {200 * 0x1p-149f, -0x1p-149f, 0, 0}; /* 1.57 rounds to 2 of 2^-149 */
    r = run_x(&s, denormal);
    assert_true(r.token.scale == 0x1p-148);
    assert_int_equal(r.codes[0], 100);
    assert_int_equal(r.codes[1], 0);
}

static void a_nan_or_infinity_makes_its_row_nan(void **state)
{
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++)
        for (int scales = 0; scales < 2; scales++) {
            ptxgen_w8a8_spec s = spec_f32();
            s.bias = 1;
            s.scales = (uint8_t)scales;
            const float x[K] = {1, bad[i], 2, 3}, one = 1;
            ptxgen_w8a8_operands o = {
                .x = x, .w = w, .w_scale = w_scale, .bias = bias, .x_scale = &one, .m = 1};
            struct result r = compute(&s, &o);
            assert_true(isnan(r.y[0]) && isnan(r.y[1]));
            for (int k = 0; k < K; k++)
                assert_int_equal(r.codes[k], 0);
        }
}

static void given_scales_clamp_what_is_beyond_them(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_f32();
    s.scales = PTXGEN_W8A8_TENSOR;
    s.q_min = -128;
    s.q_max = 127;
    const float x[K] = {1000, -1000, 1e38f, 3}, scale = 0x1p-20f;
    ptxgen_w8a8_operands o = {.x = x, .w = w, .w_scale = w_scale, .x_scale = &scale, .m = 1};
    struct result r = compute(&s, &o);
    const int8_t codes[K] = {127, -128, 127, 127};
    assert_memory_equal(r.codes, codes, K);
}

static void asymmetric_codes_span_the_row_and_hold_zero_exactly(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_f32();
    s.asymmetric = 1;
    s.q_min = -128;
    s.q_max = 127;
    const float x[K] = {0, 51, 25.5f, -204}; /* scale 1, zero 76 */
    struct result r = run_x(&s, x);
    assert_true(r.token.scale == 1);
    assert_int_equal(r.token.zero, 76);
    const int8_t codes[K] = {76, 127, 102, -128}; /* 25.5 to the even 26 */
    assert_memory_equal(r.codes, codes, K);
    assert_int_equal(r.acc[0], 2 * 51 + 3 * 26 + -128 * -204);
}

static void tokens_have_scales_and_zero_points_of_their_own(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_f32();
    s.asymmetric = 1;
    s.scales = PTXGEN_W8A8_TOKEN;
    const float x[2 * K] = {1, 2, 3, 4, 1, 2, 3, 4}, scales[2] = {1, 0.5f};
    const int32_t zeros[2] = {-5, 7};
    ptxgen_w8a8_operands o = {
        .x = x, .w = w, .w_scale = w_scale, .x_scale = scales, .x_zero = zeros, .m = 2};
    int8_t codes[K];
    ptxgen_w8a8_token token;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_reference_codes(&s, &o, 1, codes, &token, &err), &err);
    const int8_t expected[K] = {9, 11, 13, 15};
    assert_memory_equal(codes, expected, K);
    assert_int_equal(token.zero, 7);
    assert_true(token.scale == 0.5);
}

static void given_scales_and_zero_points_that_the_header_excludes_are_refused(void **state)
{
    (void)state;
    static const float wrong[] = {0, -0.0f, -0.5f, NAN, INFINITY};
    static const char *const words[] = {"x_scale[1] is 0, not positive", "x_scale[1] is -0,",
                                        "x_scale[1] is -0.5,", "nan, not positive and finite",
                                        "x_scale[1] is inf, not positive and finite"};
    ptxgen_w8a8_spec s = spec_f32();
    s.asymmetric = 1;
    s.scales = PTXGEN_W8A8_TOKEN;
    const float x[2 * K] = {0};
    float scales[2] = {1, 1};
    int32_t zeros[2] = {0, 0};
    ptxgen_w8a8_operands o = {
        .x = x, .w = w, .w_scale = w_scale, .x_scale = scales, .x_zero = zeros, .m = 2};
    int8_t codes[K];
    ptxgen_w8a8_token token;
    ptxgen_error err;
    for (int i = 0; i < 5; i++) {
        scales[1] = wrong[i];
        assert_ok(ptxgen_w8a8_reference_codes(&s, &o, 0, codes, &token, &err), &err);
        assert_int_equal(ptxgen_w8a8_reference_codes(&s, &o, 1, codes, &token, &err),
                         PTXGEN_ERROR_INVALID_ARGUMENT);
        assert_says(&err, words[i]);
    }
    scales[1] = 0x1p-149f;
    assert_ok(ptxgen_w8a8_reference_codes(&s, &o, 1, codes, &token, &err), &err);
    zeros[1] = -128;
    assert_int_equal(ptxgen_w8a8_reference_codes(&s, &o, 1, codes, &token, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "x_zero[1] is -128, not within -127 ... 127");
}

/* acc · sx · sw + bias rounded four times, then to f16. */
static void outputs_are_rounded_from_left_to_right(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_f32();
    s.bias = 1;
    struct random r = {3};
    for (int i = 0; i < 1000; i++) {
        float x[K];
        for (int k = 0; k < K; k++)
            x[k] = (float)random_normal(&r);
        struct result got = run_x(&s, x);
        volatile float a = (float)got.acc[1], b = a * (float)got.token.scale;
        volatile float c = b * w_scale[1], d = c + bias[1];
        assert_true(got.y[1] == d);
    }
}

static void f64_computes_in_f64(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = {.k = K, .n = 1, .x_type = PTXGEN_F64, .y_type = PTXGEN_F64};
    assert_int_equal(ptxgen_w8a8_work_type(&s), PTXGEN_F64);
    const double x[K] = {0.1, -0.3, 0.2, 0.05}, scale = 0.1;
    ptxgen_w8a8_operands o = {.x = x, .w = w, .w_scale = &scale, .m = 1};
    int8_t codes[K];
    ptxgen_w8a8_token token;
    ptxgen_error err;
    double y;
    int32_t acc;
    assert_ok(ptxgen_w8a8_reference_codes(&s, &o, 0, codes, &token, &err), &err);
    assert_true(token.scale == 0.3 / 127);
    assert_ok(ptxgen_w8a8_reference(&s, &o, codes, &token, 0, 1, &y, &acc, &err), &err);
    assert_true(y == acc * (0.3 / 127) * 0.1);
}

/* A hair off a tie, which f32 does not have: each code is the nearer one, and not the even one. */
static void codes_of_f64_tell_what_f32_does_not(void **state)
{
    (void)state;
    for (int scales = PTXGEN_W8A8_DYNAMIC; scales <= PTXGEN_W8A8_TOKEN; scales++)
        for (int power = 30; power <= 45; power += 5) {
            const double hair = ldexp(1, -power), one[K] = {1, 1, 1, 1};
            const double x[K] = {127, 0.5 + hair, 1.5 - hair, -2.5 - hair};
            const int8_t codes[K] = {127, 1, 1, -3};
            const ptxgen_w8a8_spec s = {.k = K,
                                        .n = 1,
                                        .x_type = PTXGEN_F64,
                                        .y_type = PTXGEN_F64,
                                        .scales = (uint8_t)scales};
            const ptxgen_w8a8_operands o = {.x = x, .w = w, .w_scale = one, .x_scale = one, .m = 1};
            int8_t found[K];
            ptxgen_w8a8_token token;
            ptxgen_error err;
            assert_ok(ptxgen_w8a8_reference_codes(&s, &o, 0, found, &token, &err), &err);
            assert_memory_equal(found, codes, K);
        }
}

/* The same of weights: the scale is a 127th of 127. */
static void codes_of_f64_weights_tell_what_f32_does_not(void **state)
{
    (void)state;
    const double hair = 0x1p-40, x[K] = {127, 0.5 + hair, 1.5 - hair, -2.5 - hair};
    const int8_t codes[K] = {127, 1, 1, -3};
    const ptxgen_w8a8_weights weights = {.n = 1, .k = K, .type = PTXGEN_F64, .w = x};
    int8_t found[K];
    double scale;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_quantise(&weights, K, found, PTXGEN_F64, &scale, &err), &err);
    assert_true(scale == 1);
    assert_memory_equal(found, codes, K);
}

/* From left to right in the work type; a 16-bit output of f64 by way of f32. */
static void outputs_of_every_two_types_are_rounded_from_left_to_right(void **state)
{
    (void)state;
    struct random r = {5};
    for (int i = 0; i < 16 * 64; i++) {
        const ptxgen_element x_type = (ptxgen_element)(i % 4), y_type = (ptxgen_element)(i / 4 % 4);
        const ptxgen_w8a8_spec s = {
            .k = K, .n = 1, .x_type = (uint8_t)x_type, .y_type = (uint8_t)y_type, .bias = 1};
        const ptxgen_element work = ptxgen_w8a8_work_type(&s);
        double x[K], w_scale[1], b[1], y[1] = {0};
        for (int k = 0; k < K; k++)
            ptxgen_element_store(x_type, x, (size_t)k, random_normal(&r));
        ptxgen_element_store(work, w_scale, 0, random_uniform(&r));
        ptxgen_element_store(work, b, 0, 100 * random_normal(&r));
        const ptxgen_w8a8_operands o = {.x = x, .w = w, .w_scale = w_scale, .bias = b, .m = 1};
        int8_t codes[K];
        ptxgen_w8a8_token token;
        int32_t acc;
        ptxgen_error err;
        assert_ok(ptxgen_w8a8_reference_codes(&s, &o, 0, codes, &token, &err), &err);
        assert_ok(ptxgen_w8a8_reference(&s, &o, codes, &token, 0, 1, y, &acc, &err), &err);
        double wanted = acc, factors[] = {token.scale, ptxgen_element_load(work, w_scale, 0)};
        if (work == PTXGEN_F32) {
            volatile float f = (float)acc;
            f = f * (float)factors[0];
            f = f * (float)factors[1];
            f = f + (float)ptxgen_element_load(work, b, 0);
            wanted = (double)f;
        } else {
            wanted = wanted * factors[0] * factors[1] + ptxgen_element_load(work, b, 0);
        }
        assert_int_equal(work, x_type == PTXGEN_F64 || y_type == PTXGEN_F64 ? PTXGEN_F64 : work);
        if (y_type == PTXGEN_F16 || y_type == PTXGEN_BF16)
            wanted = (double)(float)wanted;
        double stored[1] = {0};
        ptxgen_element_store(y_type, stored, 0, wanted);
        assert_memory_equal(y, stored, ptxgen_element_size(y_type));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_scaled_by_its_largest_magnitude),
        cmocka_unit_test(ties_go_to_the_even_code),
        cmocka_unit_test(a_row_of_zeros_has_scale_one_and_gives_the_bias),
        cmocka_unit_test(a_scale_that_underflows_is_one),
        cmocka_unit_test(a_nan_or_infinity_makes_its_row_nan),
        cmocka_unit_test(given_scales_clamp_what_is_beyond_them),
        cmocka_unit_test(asymmetric_codes_span_the_row_and_hold_zero_exactly),
        cmocka_unit_test(tokens_have_scales_and_zero_points_of_their_own),
        cmocka_unit_test(given_scales_and_zero_points_that_the_header_excludes_are_refused),
        cmocka_unit_test(outputs_are_rounded_from_left_to_right),
        cmocka_unit_test(f64_computes_in_f64),
        cmocka_unit_test(codes_of_f64_tell_what_f32_does_not),
        cmocka_unit_test(codes_of_f64_weights_tell_what_f32_does_not),
        cmocka_unit_test(outputs_of_every_two_types_are_rounded_from_left_to_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
