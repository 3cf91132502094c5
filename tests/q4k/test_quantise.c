/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising to Q4_K: error against a bound and against plain min/max, and the odd inputs. */
#include "tests/status.h"

#include "tests/random.h"
#include "src/kernels/half.h"
#include "src/kernels/rmsnorm_q4k/q4k.h"

#include <math.h>
#include <string.h>

enum { BLOCK = PTXGEN_Q4K_BLOCK_WEIGHTS, SUB = 32, K = 1024, ROW_BYTES = K / 256 * 144, ROWS = 16 };

static void quantise_and_decode(const float *weights, size_t k, double *decoded)
{
    uint8_t row[ROW_BYTES];
    ptxgen_error err;
    assert_true(k <= K);
    assert_ok(ptxgen_q4k_quantise_row(weights, k, row, &err), &err);
    assert_int_equal(ptxgen_q4k_decode_row_f64(row, k, decoded, NULL), PTXGEN_OK);
}

/* ---- the plain quantiser to beat: 16 steps from min to max, scales rounded to 6 bits ---- */

static double range_of(const float *sub, double *lowest)
{
    double low = 0, high = -INFINITY;
    for (int i = 0; i < SUB; i++) {
        low = fmin(low, sub[i]);
        high = fmax(high, sub[i]);
    }
    *lowest = low;
    return high - low;
}

static void naive_block(const float *weights, double *decoded)
{
    double scale[8], min[8], max_scale = 0, max_min = 0;
    for (int j = 0; j < 8; j++) {
        scale[j] = range_of(weights + j * SUB, &min[j]) / 15;
        min[j] = -min[j];
        max_scale = fmax(max_scale, scale[j]);
        max_min = fmax(max_min, min[j]);
    }
    double d = ptxgen_element_round(PTXGEN_F16, max_scale / 63);
    double dmin = ptxgen_element_round(PTXGEN_F16, max_min / 63);
    for (int i = 0; i < BLOCK; i++) {
        double s = d * fmin(63, round(scale[i / SUB] / d));
        double m = dmin > 0 ? dmin * fmin(63, round(min[i / SUB] / dmin)) : 0;
        double code = s > 0 ? fmin(15, fmax(0, round((weights[i] + m) / s))) : 0;
        decoded[i] = s * code - m;
    }
}

/* Rows of some distribution; returns the ratio of ours to the plain quantiser's RMSE. */
static double error_ratio(double (*draw)(struct random *), uint64_t seed)
{
    struct random r = {seed};
    double ours = 0, naive = 0;
    for (int row = 0; row < ROWS; row++) {
        float weights[K];
        double decoded[K], plain[K];
        for (int i = 0; i < K; i++)
            weights[i] = (float)draw(&r);
        quantise_and_decode(weights, K, decoded);
        for (int i = 0; i < K; i += BLOCK)
            naive_block(weights + i, plain + i);
        for (int i = 0; i < K; i++) {
            ours += (decoded[i] - weights[i]) * (decoded[i] - weights[i]);
            naive += (plain[i] - weights[i]) * (plain[i] - weights[i]);
        }
    }
    return sqrt(ours / naive);
}

static double draw_positive(struct random *r)
{
    return fabs(random_normal(r));
}

static double draw_with_outliers(struct random *r)
{
    double z = random_normal(r);
    return random_uniform(r) < 0.01 ? 20 * z : z;
}

static double draw_uneven(struct random *r)
{
    return random_normal(r) * exp(2 * random_normal(r));
}

static void quantising_beats_plain_min_max(void **state)
{
    (void)state;
    assert_true(error_ratio(random_normal, 1) < 0.92);
    assert_true(error_ratio(random_heavy, 2) < 0.93);
    assert_true(error_ratio(random_uniform, 3) < 0.93);
    assert_true(error_ratio(draw_positive, 4) < 0.95);
    assert_true(error_ratio(draw_with_outliers, 5) < 0.92);
    assert_true(error_ratio(draw_uneven, 6) < 0.6);
}

/*
 * Rounding to the nearest of 16 steps errs by half a step s = range/15; rounding s to the nearest
 * of 63 steps of the largest moves the top code by 15·s_max/126, and the min by m_max/126; f16
 * adds 2⁻¹¹ of each. In the mean square, as quantising minimises, no block may do worse.
 */
static void block_error_stays_within_the_rounding_of_its_steps(void **state)
{
    (void)state;
    double (*const draws[])(struct random *) = {random_normal, random_heavy,       random_uniform,
                                                draw_positive, draw_with_outliers, draw_uneven};
    for (size_t kind = 0; kind < sizeof draws / sizeof *draws; kind++) {
        struct random r = {kind};
        for (int row = 0; row < ROWS; row++) {
            float weights[BLOCK];
            double decoded[BLOCK], low, max_step = 0, max_min = 0, error = 0, bound = 0;
            for (int i = 0; i < BLOCK; i++)
                weights[i] = (float)draws[kind](&r);
            quantise_and_decode(weights, BLOCK, decoded);
            for (int j = 0; j < 8; j++) {
                max_step = fmax(max_step, range_of(weights + j * SUB, &low) / 15);
                max_min = fmax(max_min, -low);
            }
            for (int j = 0; j < 8; j++) {
                double squares = 0, step = range_of(weights + j * SUB, &low) / 15;
                double most = step / 2 + (15 * max_step + max_min) * (1.0 / 126 + 0x1p-11);
                for (int i = j * SUB; i < (j + 1) * SUB; i++)
                    squares += (double)weights[i] * weights[i];
                for (int i = j * SUB; i < (j + 1) * SUB; i++) {
                    double counts = fabs((double)weights[i]) + sqrt(squares / SUB);
                    error += counts * (decoded[i] - weights[i]) * (decoded[i] - weights[i]);
                    bound += counts * most * most;
                }
            }
            assert_true(error <= bound);
        }
    }
}

static void zeros_decode_to_zero(void **state)
{
    (void)state;
    float weights[BLOCK] = {0};
    double decoded[BLOCK];
    quantise_and_decode(weights, BLOCK, decoded);
    for (int i = 0; i < BLOCK; i++)
        assert_true(decoded[i] == 0);
}

/* c > 0 is stored as d·63·15 and c < 0 as dmin·63: what is lost is what f16 rounds off. */
static void constants_err_by_the_rounding_of_d(void **state)
{
    (void)state;
    static const float constants[] = {1, -1, 0.3f, -0.3f, 1e-3f, -7000, 4e6f, -4e6f};
    for (size_t c = 0; c < sizeof constants / sizeof *constants; c++) {
        float weights[BLOCK];
        double decoded[BLOCK];
        for (int i = 0; i < BLOCK; i++)
            weights[i] = constants[c];
        quantise_and_decode(weights, BLOCK, decoded);
        double most = 945 * ptxgen_element_half_ulp(PTXGEN_F16, constants[c] / 945.0);
        for (int i = 0; i < BLOCK; i++)
            assert_true(fabs(decoded[i] - weights[i]) <= most);
    }
}

static void one_outlier_does_not_erase_its_neighbours(void **state)
{
    (void)state;
    struct random r = {7};
    float weights[BLOCK];
    double decoded[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        weights[i] = (float)random_normal(&r);
    weights[100] = 50; /* sub-block 3 */
    quantise_and_decode(weights, BLOCK, decoded);
    for (int i = 0; i < BLOCK; i++) {
        double off = fabs(decoded[i] - weights[i]);
        assert_true(off < (i / SUB == 3 ? 50.0 / 15 : 0.8));
    }
}

static void tiny_weights_err_by_less_than_the_smallest_step(void **state)
{
    (void)state;
    static const double sizes[] = {1e-45, 1e-40, 1e-38, 1e-10, 3e-8, 1e-7, 1e-6, 1e-5};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct random r = {s};
        float weights[BLOCK];
        double decoded[BLOCK];
        for (int i = 0; i < BLOCK; i++)
            weights[i] = (float)(sizes[s] * (2 * random_uniform(&r) - 1));
        quantise_and_decode(weights, BLOCK, decoded);
        for (int i = 0; i < BLOCK; i++)
            assert_true(fabs(decoded[i] - weights[i]) <= fmax(0x1p-24, sizes[s] / 7));
    }
}

static void the_largest_weights_decode_to_finite_neighbours(void **state)
{
    (void)state;
    float weights[BLOCK];
    double decoded[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        weights[i] = i % 3 ? PTXGEN_Q4K_MAX_WEIGHT : -PTXGEN_Q4K_MAX_WEIGHT;
    quantise_and_decode(weights, BLOCK, decoded);
    for (int i = 0; i < BLOCK; i++)
        assert_true(fabs(decoded[i] - weights[i]) <= 1e-3 * (double)PTXGEN_Q4K_MAX_WEIGHT);
    for (int i = 0; i < BLOCK; i++)
        weights[i] = -PTXGEN_Q4K_MAX_WEIGHT;
    quantise_and_decode(weights, BLOCK, decoded);
    for (int i = 0; i < BLOCK; i++)
        assert_true(decoded[i] == -(double)PTXGEN_Q4K_MAX_WEIGHT);
}

/* A fitted minimum may lie below every weight; d and dmin must not follow it past f16. */
static void weights_near_the_limit_never_overflow_d_or_dmin(void **state)
{
    (void)state;
    const double limit = (double)PTXGEN_Q4K_MAX_WEIGHT;
    struct random r = {10};
    for (int round = 0; round < 100; round++) {
        float weights[BLOCK];
        double decoded[BLOCK], base = 0, spread = 0;
        for (int i = 0; i < BLOCK; i++) {
            if (i % SUB == 0) {
                base = 0.02 * random_uniform(&r);
                spread = 0.2 * pow(random_uniform(&r), 3);
            }
            weights[i] = (float)(limit * (base + spread * random_uniform(&r) - 1));
        }
        quantise_and_decode(weights, BLOCK, decoded);
        for (int i = 0; i < BLOCK; i++)
            assert_true(fabs(decoded[i] - weights[i]) <= 0.02 * limit);
    }
}

static void weights_out_of_range_are_refused_by_index(void **state)
{
    (void)state;
    const struct {
        float weight;
        const char *sentence;
    } bad[] = {
        {NAN, "weight 300 is nan; Q4_K takes finite weights up to 4126752"},
        {INFINITY, "weight 300 is inf; Q4_K takes finite weights up to 4126752"},
        {-INFINITY, "weight 300 is -inf; Q4_K takes finite weights up to 4126752"},
        {nextafterf(PTXGEN_Q4K_MAX_WEIGHT, INFINITY),
         "weight 300 is 4.12675e+06; Q4_K takes finite weights up to 4126752"},
        {-1e30f, "weight 300 is -1e+30; Q4_K takes finite weights up to 4126752"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        float weights[2 * BLOCK] = {0};
        uint8_t row[ROW_BYTES];
        ptxgen_error err;
        weights[300] = bad[i].weight;
        assert_int_equal(ptxgen_q4k_quantise_row(weights, 2 * BLOCK, row, &err),
                         PTXGEN_ERROR_UNSUPPORTED);
        assert_string_equal(err.message, bad[i].sentence);
    }
}

static void the_same_weights_give_the_same_bytes_at_any_address(void **state)
{
    (void)state;
    struct random r = {8};
    float weights[K];
    uint8_t first[ROW_BYTES], second[ROW_BYTES + 3];
    for (int i = 0; i < K; i++)
        weights[i] = (float)random_heavy(&r);
    memset(second, 0xA5, sizeof second);
    assert_int_equal(ptxgen_q4k_quantise_row(weights, K, first, NULL), PTXGEN_OK);
    assert_int_equal(ptxgen_q4k_quantise_row(weights, K, second + 1, NULL), PTXGEN_OK);
    assert_memory_equal(first, second + 1, ROW_BYTES);
    assert_int_equal(second[0], 0xA5);
    assert_int_equal(second[ROW_BYTES + 1], 0xA5);
}

static void blocks_of_a_row_are_independent(void **state)
{
    (void)state;
    struct random r = {9};
    float weights[K];
    uint8_t whole[ROW_BYTES], alone[144];
    for (int i = 0; i < K; i++)
        weights[i] = (float)random_normal(&r);
    assert_int_equal(ptxgen_q4k_quantise_row(weights, K, whole, NULL), PTXGEN_OK);
    for (int b = 0; b < K / BLOCK; b++) {
        assert_int_equal(ptxgen_q4k_quantise_row(weights + b * BLOCK, BLOCK, alone, NULL),
                         PTXGEN_OK);
        assert_memory_equal(alone, whole + b * 144, 144);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantising_beats_plain_min_max),
        cmocka_unit_test(block_error_stays_within_the_rounding_of_its_steps),
        cmocka_unit_test(zeros_decode_to_zero),
        cmocka_unit_test(constants_err_by_the_rounding_of_d),
        cmocka_unit_test(one_outlier_does_not_erase_its_neighbours),
        cmocka_unit_test(tiny_weights_err_by_less_than_the_smallest_step),
        cmocka_unit_test(the_largest_weights_decode_to_finite_neighbours),
        cmocka_unit_test(weights_near_the_limit_never_overflow_d_or_dmin),
        cmocka_unit_test(weights_out_of_range_are_refused_by_index),
        cmocka_unit_test(the_same_weights_give_the_same_bytes_at_any_address),
        cmocka_unit_test(blocks_of_a_row_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
