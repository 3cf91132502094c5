/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of e5m2: rounding, every kind of launch against the reference, weights that are no finite
 * numbers, and what the bound says of subnormal numbers.
 */
#include "support.h"
#include "tests/problems.h"

#include "src/harness/w8a8.h"

static const char *const devices[] = {"cpu:sm_89", "cpu:sm_90", "cpu:sm_120"};
enum { DEVICES = sizeof devices / sizeof *devices, LARGEST = 0x7B, INFINITE = 0x7C };

/* ---- rounding ---- */

/* The value of a finite code by the definition of the format. */
static double value_of(uint8_t code)
{
    int exponent = code >> 2 & 31;
    double mantissa = (code & 3) / 4.0;
    double size = exponent ? (1 + mantissa) * exp2(exponent - 15) : mantissa * exp2(-14);
    return code & 0x80 ? -size : size;
}

static uint8_t code_of(float x)
{
    const float row[2] = {x, 57344}; /* the scale is 1 */
    const ptxgen_w8a8_weights weights = {
        .n = 1, .k = 2, .type = PTXGEN_F32, .w = row, .codes = PTXGEN_W8A8_E5M2};
    int8_t codes[2];
    float scale;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_quantise(&weights, 2, codes, PTXGEN_F32, &scale, &err), &err);
    assert_true(scale == 1 && (uint8_t)codes[1] == LARGEST);
    return (uint8_t)codes[0];
}

static void every_number_is_its_own_code_and_ties_go_to_the_even_one(void **state)
{
    (void)state;
    for (uint8_t code = 0; code < LARGEST; code++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double here = sign * value_of(code), next = sign * value_of(code + 1);
            float tie = (float)((here + next) / 2);
            uint8_t bit = sign < 0 ? 0x80 : 0;
            assert_int_equal(code_of((float)here * 1.0f), code | bit);
            assert_int_equal(code_of(tie), (code + code % 2) | bit);
            assert_int_equal(code_of(nextafterf(tie, sign * INFINITY)), (code + 1) | bit);
            assert_int_equal(code_of(nextafterf(tie, 0)), code | bit);
        }
}

/* ---- launches ---- */

static ptxgen_w8a8_spec spec_of(uint32_t k, uint32_t n, uint8_t group)
{
    return (ptxgen_w8a8_spec){.k = k,
                              .n = n,
                              .y_type = PTXGEN_F32,
                              .codes = PTXGEN_W8A8_E4M3,
                              .w_codes = PTXGEN_W8A8_E5M2,
                              .group = group};
}

static void launches_are_right_at_the_edges_of_every_tile(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{256, 256}, {261, 328}, {127, 72}, {640, 136}, {1, 8}};
    static const uint32_t ms[] = {1, 9, 16, 17, 33, 64, 65, 129, 257};
    enum { SIZES = sizeof sizes / sizeof *sizes, MS = sizeof ms / sizeof *ms };
    for (int i = 0; i < SIZES * MS; i++) {
        const char *device = devices[(i + i / SIZES) % DEVICES];
        ptxgen_w8a8_spec spec =
            spec_of(sizes[i % SIZES][0], sizes[i % SIZES][1], i % 2 ? PTXGEN_W8A8_GROUP : 0);
        spec.x_type = (uint8_t)(i % 3);
        spec.y_type = (uint8_t)(i / 2 % 3);
        spec.scales = i % 4 == 1 ? PTXGEN_W8A8_QUANTISED : PTXGEN_W8A8_DYNAMIC;
        spec.epilogue = i % 7 == 2 ? PTXGEN_EPILOGUE_SWIGLU : PTXGEN_EPILOGUE_NONE;
        spec.bias = i % 2;
        spec.residual = i % 3 == 0;
        if (test_in_share(i))
            run_spec(device, &w8a8_harness, &spec, ms[i % MS]);
    }
}

static void tiles_of_wgmma_are_right(void **state)
{
    (void)state;
    static const ptxgen_tile tiles[] = {
        {.kind = PTXGEN_WGMMA, .tile_m = 128, .tile_n = 128, .wn = 1, .ctas = 1, .cluster = 1},
        {.kind = PTXGEN_WGMMA, .tile_m = 64, .tile_n = 80, .wk = 4, .ctas = 1, .cluster = 1},
        {.kind = PTXGEN_WGMMA, .tile_m = 16, .tile_n = 64, .ctas = 1, .cluster = 1}};
    struct device device = open_device("cpu:sm_90");
    for (size_t i = 0; i < 2 * sizeof tiles / sizeof *tiles; i++) {
        const ptxgen_w8a8_spec spec = spec_of(2048, 300, i % 2 ? PTXGEN_W8A8_GROUP : 0);
        const ptxgen_tile *tile = &tiles[i / 2];
        struct problem p =
            make_tiled(&device, &w8a8_harness, &spec, tile, tile->tile_m - 3, NULL, i);
        run_and_release(&p, &device);
    }
    device_close(&device);
}

/* ---- weights that are infinite or no numbers ---- */

enum { K = 300, N = 40, M = 17, ZERO_TOKEN = 4 };

static double output(const struct problem *p, uint64_t m, uint64_t n)
{
    return ptxgen_element_load(PTXGEN_F32, p->buffers[W8A8_AT_Y].host,
                               m * p->strides[W8A8_AT_Y] + n);
}

/* Numbers of w of both signs, and rows with specials; no number of x is 0 but those of one token.
 */
static void fill_specials(struct problem *p)
{
    const struct random_row {
        uint32_t row, column;
        uint8_t code;
    } specials[] = {{3, 5, 0x7C},   {5, 299, 0xFC}, {7, 0, 0x7C},  {7, 200, 0xFC},
                    {9, 128, 0x7D}, {11, 17, 0xFF}, {13, 1, 0x7C}, {13, 129, 0x7C}};
    for (uint64_t n = 0; n < N; n++)
        for (uint32_t k = 0; k < K; k++)
            p->buffers[W8A8_AT_W].host[n * p->strides[W8A8_AT_W] + k] =
                (uint8_t)(0x38 + (k + n) % 8 + (k % 3 ? 0x80 : 0));
    for (uint64_t m = 0; m < M; m++)
        for (uint32_t k = 0; k < K; k++)
            typed_store(PTXGEN_F32, p->buffers[W8A8_AT_X].host, m * p->strides[W8A8_AT_X] + k,
                        m == ZERO_TOKEN ? 0 : 1 + k % 3);
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        p->buffers[W8A8_AT_W].host[specials[i].row * p->strides[W8A8_AT_W] + specials[i].column] =
            specials[i].code;
}

static void assert_specials(const struct problem *p)
{
    for (uint64_t m = 0; m < M; m++)
        for (uint64_t n = 0; n < N; n++) {
            double y = output(p, m, n), infinite = n == 5 ? -INFINITY : INFINITY;
            bool is_nan = n == 7 || n == 9 || n == 11;
            bool is_infinite = n == 3 || n == 5 || n == 13;
            if (is_nan || (is_infinite && m == ZERO_TOKEN))
                assert_true(isnan(y));
            else if (is_infinite)
                assert_true(y == infinite);
            else
                assert_true(isfinite(y));
        }
}

static void weights_that_are_infinite_or_no_numbers_stay_in_their_features(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * DEVICES; i++) {
        struct device device = open_device(devices[i / 4]);
        ptxgen_w8a8_spec spec = spec_of(K, N, i % 2 ? PTXGEN_W8A8_GROUP : 0);
        spec.residual = i % 4 >= 2;
        struct problem p = make_problem(&device, &w8a8_harness, &spec, M, NULL);
        fill_specials(&p);
        check_problem(&p, &device);
        assert_specials(&p);
        problem_release(&p);
        device_close(&device);
    }
}

/* An infinite sum is one number, and that of a function of it is not stated. */
static void the_bound_of_an_infinite_sum_is_0(void **state)
{
    (void)state;
    enum { DEPTH = 8 };
    const float x[DEPTH] = {1, 2, 3, 4, 5, 6, 7, 8}, scale[1] = {0.5f}, residual[1] = {-3};
    const uint8_t w[DEPTH] = {[2] = INFINITE, [3] = 0xB8};
    const ptxgen_w8a8_operands o = {
        .m = 1, .x = x, .w = (const int8_t *)w, .w_scale = scale, .residual = residual};
    const ptxgen_target target = target_of("sm_90a");
    for (uint8_t f = PTXGEN_ACTIVATION_NONE; f <= PTXGEN_ACTIVATION_RELU; f++) {
        ptxgen_w8a8_spec spec = spec_of(DEPTH, 1, 0);
        spec.residual = 1;
        spec.activation = f;
        ptxgen_w8a8_plan plan;
        ptxgen_w8a8_token token;
        int8_t codes[DEPTH];
        double y, bound;
        ptxgen_error err;
        assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
        assert_ok(ptxgen_w8a8_reference_codes(&plan.spec, &o, 0, codes, &token, &err), &err);
        assert_ok(
            ptxgen_w8a8_reference_bound(&plan, &o, codes, &token, 0, 1, &y, &bound, NULL, &err),
            &err);
        if (f == PTXGEN_ACTIVATION_NONE)
            assert_true(y == INFINITY && bound == 0);
        else
            assert_true(isnan(bound));
    }
}

/* ---- the bound of subnormal numbers ---- */

/*
 * A product of a subnormal number has the exponent of the least normal one, and what is added to it
 * is cut there: of 2⁻⁹ times the largest power of two, eight times as much as of an equal product
 * of normal numbers. Half of the others are just below a unit of that cut, the rest 0.
 */
static void cuts_beside_products_of_subnormal_numbers_are_within_the_bound(void **state)
{
    (void)state;
    enum { DEPTH = 32, TOKENS = 16, FEATURES = 8, SUBNORMAL = 0x01, LEAST = 0x08 };
    static const struct {
        uint8_t codes, large, small; /* powers of two, and 1.75 times one */
    } cases[] = {{0, 0x78 /* 2⁸ */, 0x0E /* 1.75 · 2⁻⁶ */},
                 {PTXGEN_W8A8_E5M2, 0x78 /* 2¹⁵ */, 0x3F /* 1.75 */}};
    for (int i = 0; i < 2 * 2; i++) {
        struct device device = open_device(devices[i / 2]);
        ptxgen_w8a8_spec spec = spec_of(DEPTH, FEATURES, 0);
        spec.scales = PTXGEN_W8A8_QUANTISED;
        spec.w_codes = cases[i % 2].codes;
        struct problem p = make_problem(&device, &w8a8_harness, &spec, TOKENS, NULL);
        for (uint64_t row = 0; row < TOKENS; row++) {
            uint8_t *x = p.buffers[W8A8_AT_X].host + row * p.strides[W8A8_AT_X];
            uint8_t *w = p.buffers[W8A8_AT_W].host + row % FEATURES * p.strides[W8A8_AT_W];
            memset(x, LEAST, DEPTH);
            memset(w, 0, DEPTH);
            memset(w, cases[i % 2].small, DEPTH / 2);
            x[0] = SUBNORMAL;
            w[0] = cases[i % 2].large;
        }
        run_and_release(&p, &device);
        device_close(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_its_own_code_and_ties_go_to_the_even_one),
        cmocka_unit_test(launches_are_right_at_the_edges_of_every_tile),
        cmocka_unit_test(tiles_of_wgmma_are_right),
        cmocka_unit_test(weights_that_are_infinite_or_no_numbers_stay_in_their_features),
        cmocka_unit_test(the_bound_of_an_infinite_sum_is_0),
        cmocka_unit_test(cuts_beside_products_of_subnormal_numbers_are_within_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
