/* SPDX-License-Identifier: Apache-2.0 */
/* What rows of GGUF's types are refused for, and what holds of any weights. */
#include "tests/random.h"
#include "tests/status.h"

#include <ptxgen/gguf_types.h>
#include <ptxgen/types.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { K = 256, MOST_BYTES = K * 4 };
static const ptxgen_status invalid = PTXGEN_ERROR_INVALID_ARGUMENT;
static const ptxgen_status unsupported = PTXGEN_ERROR_UNSUPPORTED;

static size_t bytes_of(const ptxgen_gguf_type_info *t)
{
    size_t bytes;
    ptxgen_error err;
    assert_ok(ptxgen_gguf_row_bytes(t->type, K, &bytes, &err), &err);
    assert_int_equal(bytes, K / t->block_weights * t->block_bytes);
    return bytes;
}

static void types_are_found_by_ggmls_numbers(void **state)
{
    (void)state;
    size_t count = 0;
    uint32_t last = 0;
    for (const ptxgen_gguf_type_info *t; (t = ptxgen_gguf_type_at(count)) != NULL; count++) {
        assert_true(!count || t->type > last);
        assert_ptr_equal(ptxgen_gguf_type_find(t->type), t);
        last = t->type;
    }
    assert_int_equal(count, 16);
    assert_null(ptxgen_gguf_type_at(SIZE_MAX));
    static const uint32_t others[] = {4, 5, 9, 15, 16, 40, UINT32_MAX};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_null(ptxgen_gguf_type_find(others[i]));
}

static void rows_are_whole_blocks(void **state)
{
    (void)state;
    size_t bytes = 7;
    ptxgen_error err;
    assert_ok(ptxgen_gguf_row_bytes(PTXGEN_GGUF_Q8_0, 0, &bytes, &err), &err);
    assert_int_equal(bytes, 0);
    assert_ok(ptxgen_gguf_row_bytes(PTXGEN_GGUF_Q5_0, 640, &bytes, &err), &err);
    assert_int_equal(bytes, 440);
    assert_ok(ptxgen_gguf_row_bytes(PTXGEN_GGUF_Q4_K, SIZE_MAX - 255, &bytes, &err), &err);
    assert_true(bytes == (SIZE_MAX - 255) / 256 * 144);
    bytes = 7;
    assert_refusal(ptxgen_gguf_row_bytes(PTXGEN_GGUF_Q4_K, 640, &bytes, &err), &err, unsupported,
                   "K = 640 is not a multiple of 256: a row of Q4_K is whole blocks");
    assert_refusal(ptxgen_gguf_row_bytes(PTXGEN_GGUF_MXFP4, 48, &bytes, &err), &err, unsupported,
                   "K = 48 is not a multiple of 32: a row of MXFP4 is whole blocks");
    assert_refusal(ptxgen_gguf_row_bytes(16, 256, &bytes, &err), &err, unsupported,
                   "gguf: 16 is the number of no type that this library decodes");
    assert_refusal(ptxgen_gguf_row_bytes(PTXGEN_GGUF_F32, SIZE_MAX / 2, &bytes, &err), &err,
                   unsupported,
                   "K = 9223372036854775807 weights of F32 are more bytes than memory has");
    assert_int_equal(bytes, 7);
}

static void a_row_that_is_too_short_is_refused(void **state)
{
    (void)state;
    ptxgen_error err;
    const ptxgen_gguf_type_info *t;
    for (size_t i = 0; (t = ptxgen_gguf_type_at(i)) != NULL; i++) {
        size_t bytes = bytes_of(t);
        float weights[K] = {0};
        uint8_t row[MOST_BYTES] = {0};
        assert_ok(ptxgen_gguf_decode_row(t->type, row, bytes, K, weights, &err), &err);
        assert_int_equal(ptxgen_gguf_decode_row(t->type, row, bytes - 1, K, weights, &err),
                         invalid);
        assert_int_equal(ptxgen_gguf_quantise_row(t->type, weights, K, row, bytes - 1, &err),
                         invalid);
    }
    uint8_t row[34] = {0};
    float weights[K] = {0};
    assert_refusal(ptxgen_gguf_decode_row(PTXGEN_GGUF_Q8_0, row, sizeof row, 64, weights, &err),
                   &err, invalid, "gguf: K = 64 weights of Q8_0 are 68 bytes, but there are 34");
    assert_refusal(ptxgen_gguf_decode_row(PTXGEN_GGUF_Q8_0, NULL, 34, 32, weights, &err), &err,
                   invalid, "gguf: row or weights is NULL");
    assert_refusal(ptxgen_gguf_quantise_row(PTXGEN_GGUF_Q8_0, NULL, 32, row, 34, &err), &err,
                   invalid, "gguf: row or weights is NULL");
}

static void weights_out_of_range_are_refused_by_index(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 65536, -1e30f};
    ptxgen_error err;
    const ptxgen_gguf_type_info *t;
    for (size_t i = 0; (t = ptxgen_gguf_type_at(i)) != NULL; i++) {
        bool is_wide = t->type == PTXGEN_GGUF_F32 || t->type == PTXGEN_GGUF_BF16;
        uint8_t row[MOST_BYTES];
        for (size_t b = 0; t->quantises && b < sizeof bad / sizeof *bad; b++) {
            float weights[K] = {0};
            weights[K - 1] = bad[b];
            ptxgen_status status =
                ptxgen_gguf_quantise_row(t->type, weights, K, row, sizeof row, &err);
            assert_int_equal(status, is_wide && b >= 3 ? PTXGEN_OK : unsupported);
            if (status != PTXGEN_OK)
                assert_says(&err, "weight 255 is ");
        }
    }
    float weights[K] = {[3] = 0x1.FFp127f};
    uint8_t row[MOST_BYTES];
    assert_ok(ptxgen_gguf_quantise_row(PTXGEN_GGUF_F32, weights, K, row, sizeof row, &err), &err);
    assert_refusal(ptxgen_gguf_quantise_row(PTXGEN_GGUF_BF16, weights, K, row, sizeof row, &err),
                   &err, unsupported,
                   "weight 3 is 3.39618e+38; BF16 takes finite weights up to 3.38953e+38");
    weights[3] = -65505;
    assert_refusal(ptxgen_gguf_quantise_row(PTXGEN_GGUF_Q6_K, weights, K, row, sizeof row, &err),
                   &err, unsupported, "weight 3 is -65505; Q6_K takes finite weights up to 65504");
    assert_refusal(ptxgen_gguf_quantise_row(PTXGEN_GGUF_Q2_K, weights, K, row, sizeof row, &err),
                   &err, unsupported, "gguf: there is no quantiser for Q2_K");
}

/* Bits of f32 as weights: of any size, and neighbours of any sizes. */
static void any_weights_within_range_decode_to_finite_ones(void **state)
{
    (void)state;
    struct random r = {1};
    ptxgen_error err;
    const ptxgen_gguf_type_info *t;
    for (size_t i = 0; (t = ptxgen_gguf_type_at(i)) != NULL; i++)
        for (int round = 0; t->quantises && round < 40; round++) {
            float weights[K], decoded[K];
            uint8_t row[MOST_BYTES];
            for (int j = 0; j < K; j++) {
                uint32_t bits = (uint32_t)random_bits(&r);
                memcpy(&weights[j], &bits, sizeof bits);
                if (!(fabsf(weights[j]) <= 65504))
                    weights[j] = round % 2 ? 65504 : 0;
            }
            assert_ok(ptxgen_gguf_quantise_row(t->type, weights, K, row, sizeof row, &err), &err);
            assert_ok(ptxgen_gguf_decode_row(t->type, row, sizeof row, K, decoded, &err), &err);
            for (int j = 0; j < K; j++)
                assert_true(isfinite(decoded[j]));
        }
}

/* The error over the rms of normal weights: about half a step over √3. */
static void quantising_errs_by_the_type_s_steps(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        double most;
    } limits[] = {{PTXGEN_GGUF_F32, 0},      {PTXGEN_GGUF_F16, 3e-4},   {PTXGEN_GGUF_BF16, 3e-3},
                  {PTXGEN_GGUF_Q4_0, 0.1},   {PTXGEN_GGUF_Q4_1, 0.09},  {PTXGEN_GGUF_Q5_0, 0.05},
                  {PTXGEN_GGUF_Q5_1, 0.045}, {PTXGEN_GGUF_Q8_0, 0.006}, {PTXGEN_GGUF_Q4_K, 0.08},
                  {PTXGEN_GGUF_Q5_K, 0.04},  {PTXGEN_GGUF_Q6_K, 0.025}, {PTXGEN_GGUF_MXFP4, 0.15}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct random r = {2};
        double errors = 0, squares = 0;
        for (int round = 0; round < 20; round++) {
            float weights[K], decoded[K];
            uint8_t row[MOST_BYTES];
            ptxgen_error err;
            for (int j = 0; j < K; j++)
                weights[j] = (float)(0.02 * random_normal(&r));
            assert_ok(ptxgen_gguf_quantise_row(limits[i].type, weights, K, row, sizeof row, &err),
                      &err);
            assert_ok(ptxgen_gguf_decode_row(limits[i].type, row, sizeof row, K, decoded, &err),
                      &err);
            for (int j = 0; j < K; j++) {
                double error = (double)decoded[j] - (double)weights[j];
                errors += error * error;
                squares += (double)weights[j] * (double)weights[j];
            }
        }
        double error = sqrt(errors / squares);
        if (error > limits[i].most || (error < limits[i].most / 2 && limits[i].most > 0))
            fail_msg("%s errs by %g, not %g", ptxgen_gguf_type_find(limits[i].type)->name, error,
                     limits[i].most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_found_by_ggmls_numbers),
        cmocka_unit_test(rows_are_whole_blocks),
        cmocka_unit_test(a_row_that_is_too_short_is_refused),
        cmocka_unit_test(weights_out_of_range_are_refused_by_index),
        cmocka_unit_test(any_weights_within_range_decode_to_finite_ones),
        cmocka_unit_test(quantising_errs_by_the_type_s_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
