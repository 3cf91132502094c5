/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising, packing and summing weights. */
#include "support.h"
#include "tests/random.h"

enum { N = 17, K = 203 };

/* The rank-th smallest magnitude, by counting. */
static double magnitude_of_rank(const double *row, uint32_t k, uint32_t rank)
{
    for (uint32_t i = 0; i < k; i++) {
        uint32_t below = 0, equal = 0;
        for (uint32_t j = 0; j < k; j++) {
            below += fabs(row[j]) < fabs(row[i]);
            equal += fabs(row[j]) == fabs(row[i]);
        }
        if (below < rank && rank <= below + equal)
            return fabs(row[i]);
    }
    return NAN;
}

static void check_f32(ptxgen_element type, double percentile, uint32_t rank)
{
    struct random r = {9};
    double w[N * K];
    char stored[N * K * 8];
    for (int i = 0; i < N * K; i++) {
        ptxgen_element_store(type, stored, i, 0.02 * random_heavy(&r));
        w[i] = (float)ptxgen_element_load(type, stored, i);
    }
    ptxgen_w8a8_weights weights = {
        .n = N, .k = K, .type = type, .w = stored, .percentile = percentile};
    int8_t codes[N * 208];
    float scales[N];
    ptxgen_error err;
    memset(codes, 0x55, sizeof codes);
    assert_ok(ptxgen_w8a8_quantise(&weights, 208, codes, PTXGEN_F32, scales, &err), &err);
    for (int n = 0; n < N; n++) {
        float clip = (float)magnitude_of_rank(&w[n * K], K, rank);
        assert_true(scales[n] == clip / 127.0f);
        for (int k = 0; k < 208; k++) {
            float quotient = k < K ? (float)w[n * K + k] / scales[n] : 0;
            int code = (int)nearbyintf(fminf(fmaxf(quotient, -127), 127));
            assert_int_equal(codes[n * 208 + k], code);
        }
    }
}

static void codes_and_scales_are_those_of_the_stated_formula(void **state)
{
    (void)state;
    for (int type = PTXGEN_F32; type <= PTXGEN_F64; type++) {
        check_f32((ptxgen_element)type, 0, K);
        check_f32((ptxgen_element)type, 100, K);
        check_f32((ptxgen_element)type, 99, 201); /* ⌈0.99 · 203⌉ */
        check_f32((ptxgen_element)type, 50, 102);
    }
}

static void f64_scales_are_divided_in_f64(void **state)
{
    (void)state;
    const double w[] = {0.1, -0.7, 0.3};
    ptxgen_w8a8_weights weights = {.n = 1, .k = 3, .type = PTXGEN_F64, .w = w};
    int8_t codes[3];
    double scale;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_quantise(&weights, 3, codes, PTXGEN_F64, &scale, &err), &err);
    assert_true(scale == 0.7 / 127);
    assert_int_equal(codes[1], -127);
}

static void a_row_of_zeros_has_scale_one(void **state)
{
    (void)state;
    const float w[8] = {0, 0, -0.0f, 0, 1, 2, 3, 4};
    ptxgen_w8a8_weights weights = {.n = 2, .k = 4, .type = PTXGEN_F32, .w = w};
    int8_t codes[8];
    float scales[2];
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_quantise(&weights, 4, codes, PTXGEN_F32, scales, &err), &err);
    assert_true(scales[0] == 1 && scales[1] == 4 / 127.0f);
    for (int i = 0; i < 4; i++)
        assert_int_equal(codes[i], 0);
}

static void weights_that_are_not_finite_are_refused_by_place(void **state)
{
    (void)state;
    float w[6] = {1, 2, 3, 4, INFINITY, 6};
    double large[1] = {1e300};
    ptxgen_w8a8_weights weights = {.n = 2, .k = 3, .type = PTXGEN_F32, .w = w};
    int8_t codes[6];
    float scales[2];
    ptxgen_error err;
    assert_int_equal(ptxgen_w8a8_quantise(&weights, 3, codes, PTXGEN_F32, scales, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "w[1, 1] is inf"));
    weights = (ptxgen_w8a8_weights){.n = 1, .k = 1, .type = PTXGEN_F64, .w = large};
    assert_int_equal(ptxgen_w8a8_quantise(&weights, 1, codes, PTXGEN_F32, scales, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    weights.percentile = 101;
    assert_int_equal(ptxgen_w8a8_quantise(&weights, 1, codes, PTXGEN_F64, scales, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "percentile = 101"));
}

static void packing_pads_with_zeros_and_keeps_minus_128(void **state)
{
    (void)state;
    const int8_t codes[10] = {-128, 1, 2, 3, 4, 5, 6, 7, 8, 127};
    int8_t packed[32];
    int32_t sums[2];
    ptxgen_error err;
    assert_int_equal(ptxgen_w8a8_stride(5), 16);
    assert_int_equal(ptxgen_w8a8_stride(16), 16);
    memset(packed, 0x55, sizeof packed);
    assert_ok(ptxgen_w8a8_pack(2, 5, codes, 16, packed, &err), &err);
    for (int n = 0; n < 2; n++)
        for (int k = 0; k < 16; k++)
            assert_int_equal(packed[n * 16 + k], k < 5 ? codes[n * 5 + k] : 0);
    assert_ok(ptxgen_w8a8_row_sums(2, 5, packed, 16, sums, &err), &err);
    assert_int_equal(sums[0], -128 + 1 + 2 + 3 + 4);
    assert_int_equal(sums[1], 5 + 6 + 7 + 8 + 127);
    assert_int_equal(ptxgen_w8a8_pack(2, 5, codes, 4, packed, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_and_scales_are_those_of_the_stated_formula),
        cmocka_unit_test(f64_scales_are_divided_in_f64),
        cmocka_unit_test(a_row_of_zeros_has_scale_one),
        cmocka_unit_test(weights_that_are_not_finite_are_refused_by_place),
        cmocka_unit_test(packing_pads_with_zeros_and_keeps_minus_128),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
