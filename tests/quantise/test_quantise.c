/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of row that is quantised, on the emulator: codes and scales to the last bit. */
#include "tests/problems.h"

#include "src/harness/quantise.h"

#include <math.h>
#include <string.h>

/* ---- every kind ---- */

enum {
    TYPES = 3,
    CODES = 4,
    GROUPINGS = 2,
    PRODUCERS = 4,
    KINDS = TYPES * CODES * GROUPINGS * PRODUCERS
};

static ptxgen_quantise_spec kind(int number, uint32_t k)
{
    const int codes = number / TYPES % CODES, producer = number / (TYPES * CODES * GROUPINGS);
    ptxgen_quantise_spec s = {.k = k,
                              .x_type = (uint8_t)(number % TYPES),
                              .group = number / (TYPES * CODES) % 2 ? PTXGEN_QUANTISE_GROUP : 0,
                              .producer = (uint8_t)(producer < 3 ? producer : 1),
                              .residual = producer == 3};
    if (codes == 1)
        s.asymmetric = 1;
    if (codes == 2)
        s.codes = PTXGEN_W8A8_E4M3;
    if (codes == 3) {
        s.asymmetric = 1;
        s.q_min = -128;
        s.q_max = 100;
    }
    if (s.producer == PTXGEN_QUANTISE_RMSNORM) {
        s.epsilon = 1e-5f;
        s.gamma_type = (uint8_t)(number % 2 ? s.x_type : PTXGEN_F32);
    }
    return s;
}

/* Rows of one element, of parts of a chunk, of a group and of a warp, of many warps. */
static void every_kind_of_row_is_right(void **state)
{
    static const char *const devices[] = {"cpu:sm_89", "cpu:sm_90", "cpu:sm_120"};
    static const uint32_t ks[] = {1, 13, 200, 256, 1033};
    enum { KS = sizeof ks / sizeof *ks };
    (void)state;
    for (int d = 0; d < 3; d++) {
        struct device device = open_device(devices[d]);
        for (int i = d; i < KINDS * KS; i += 3) {
            const ptxgen_quantise_spec spec = kind(i % KINDS, ks[i / KINDS]);
            if (!test_in_share(i / 3))
                continue;
            struct problem p = make_problem(&device, &quantise_harness, &spec, 3, NULL);
            order_by(&device, (uint64_t)(i % 8)); /* of CTAs and of warps */
            run_and_release(&p, &device);
        }
        device_close(&device);
    }
}

/* Rows that a CTA reads anew in each pass. */
static void rows_that_do_not_fit_into_registers_are_right(void **state)
{
    static const ptxgen_quantise_spec specs[] = {
        {.k = 33001, .x_type = PTXGEN_F16},
        {.k = 33000, .x_type = PTXGEN_BF16, .group = 128, .producer = PTXGEN_QUANTISE_SILU_MUL},
        {.k = 16900, .x_type = PTXGEN_F32, .producer = PTXGEN_QUANTISE_SILU_MUL},
        {.k = 16900,
         .x_type = PTXGEN_F32,
         .producer = PTXGEN_QUANTISE_RMSNORM,
         .residual = 1,
         .epsilon = 1e-6f},
        {.k = 16400,
         .x_type = PTXGEN_BF16,
         .asymmetric = 1,
         .producer = PTXGEN_QUANTISE_RMSNORM,
         .residual = 1,
         .epsilon = 1e-6f},
        {.k = 33001, .x_type = PTXGEN_F16, .group = 128, .producer = PTXGEN_QUANTISE_RMSNORM},
    };
    struct device device = open_device("cpu:sm_80");
    (void)state;
    for (int i = 0; i < (int)(sizeof specs / sizeof *specs); i++)
        for (int in_place = 0; in_place <= specs[i].residual; in_place++) {
            const struct layout layout = {.in_place = in_place};
            if (!test_in_share(i))
                continue;
            struct problem p = make_problem(&device, &quantise_harness, &specs[i], 2, &layout);
            run_and_release(&p, &device);
        }
    device_close(&device);
}

/* Starts and strides of each array that words and chunks of it do not divide. */
static void views_that_are_strided_or_misaligned_are_right(void **state)
{
    struct device device = open_device("cpu:sm_90");
    (void)state;
    for (int i = 0; i < KINDS * QUANTISE_OPERANDS; i += 5) {
        const ptxgen_quantise_spec spec = kind(i % KINDS, i % 2 ? 264 : 267);
        struct layout layout = {.in_place = spec.residual && i % 4 == 0};
        const int which = i / KINDS;
        layout.gap[which] = i % 3 ? 8 : 5;
        layout.shift[which] = i % 3 == 1 ? 0 : 3;
        if (!test_in_share(i / 5))
            continue;
        struct problem p = make_problem(&device, &quantise_harness, &spec, 3, &layout);
        run_and_release(&p, &device);
    }
    device_close(&device);
}

static void random_problems_are_right(void **state)
{
    (void)state;
    assert_drawn_problems_are_right(&quantise_harness, 8);
}

/* ---- rows that are no ordinary ones ---- */

static double scale_of(const struct problem *p, uint64_t row, uint64_t group)
{
    return typed_load(PTXGEN_F32, problem_at(p, QUANTISE_AT_SCALES, row, group), 0);
}

static void assert_codes(const struct problem *p, uint64_t row, uint32_t first, uint32_t count,
                         int8_t code)
{
    for (uint32_t k = first; k < first + count; k++)
        assert_int_equal(*(const int8_t *)problem_at(p, QUANTISE_AT_CODES, row, k), code);
}

/* A NaN or an infinity spoils its own group; a group of zeros has the scale 1. */
static void a_group_that_is_not_finite_has_codes_0_and_the_scale_nan(void **state)
{
    enum { K = 300, M = 3 };
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    struct device device = open_device("cpu:sm_80");
    (void)state;
    for (int i = 0; i < 3 * TYPES; i++) {
        const ptxgen_quantise_spec spec = {.k = K,
                                           .x_type = (uint8_t)(i % TYPES),
                                           .group = PTXGEN_QUANTISE_GROUP,
                                           .asymmetric = (uint8_t)(i % 2)};
        struct problem p = make_problem(&device, &quantise_harness, &spec, M, NULL);
        unsigned char *x = p.buffers[QUANTISE_AT_X].host;
        for (uint32_t k = 0; k < 128; k++)
            typed_store(spec.x_type, x, K + k, 0);            /* the first group of token 1 */
        typed_store(spec.x_type, x, K + 299, bad[i / TYPES]); /* the last one, of 44 elements */
        check_problem(&p, &device);
        assert_codes(&p, 1, 0, 128, spec.asymmetric ? -127 : 0);
        assert_true(scale_of(&p, 1, 0) == 1);
        assert_true(isfinite(scale_of(&p, 1, 1)));
        assert_codes(&p, 1, 256, 44, 0);
        assert_true(isnan(scale_of(&p, 1, 2)));
        assert_true(isfinite(scale_of(&p, 0, 2)) && isfinite(scale_of(&p, 2, 2)));
        if (spec.asymmetric)
            assert_int_equal(*(const int32_t *)problem_at(&p, QUANTISE_AT_ZEROS, 1, 2), 0);
        problem_release(&p);
    }
    device_close(&device);
}

/* ---- any number of tokens ---- */

static void a_token_has_the_same_bits_among_any_number(void **state)
{
    enum { K = 1000, M = 6 };
    struct device device = open_device("cpu:sm_90");
    (void)state;
    for (int i = 0; i < KINDS; i += 7) {
        const ptxgen_quantise_spec spec = kind(i, K);
        if (!test_in_share(i / 7))
            continue;
        struct problem all = make_problem(&device, &quantise_harness, &spec, M, NULL);
        struct problem one = make_problem(&device, &quantise_harness, &spec, 1, NULL);
        const size_t x = (size_t)all.strides[QUANTISE_AT_X] * typed_bytes(spec.x_type);
        const size_t sum = (size_t)K * typed_bytes(spec.x_type);
        memcpy(one.buffers[QUANTISE_AT_X].host, all.buffers[QUANTISE_AT_X].host + 4 * x, x);
        if (spec.producer == PTXGEN_QUANTISE_RMSNORM)
            memcpy(one.buffers[QUANTISE_AT_GAMMA].host, all.buffers[QUANTISE_AT_GAMMA].host,
                   all.buffers[QUANTISE_AT_GAMMA].bytes);
        if (spec.residual)
            memcpy(one.buffers[QUANTISE_AT_RESIDUAL].host,
                   all.buffers[QUANTISE_AT_RESIDUAL].host + 4 * sum, sum);
        check_problem(&all, &device);
        check_problem(&one, &device);
        for (unsigned o = QUANTISE_AT_CODES; o < QUANTISE_OPERANDS; o++)
            if (all.operands[o].used)
                assert_memory_equal(problem_at(&all, o, 4, 0), problem_at(&one, o, 0, 0),
                                    one.buffers[o].bytes);
        problem_release(&all);
        problem_release(&one);
    }
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_row_is_right),
        cmocka_unit_test(rows_that_do_not_fit_into_registers_are_right),
        cmocka_unit_test(views_that_are_strided_or_misaligned_are_right),
        cmocka_unit_test(random_problems_are_right),
        cmocka_unit_test(a_group_that_is_not_finite_has_codes_0_and_the_scale_nan),
        cmocka_unit_test(a_token_has_the_same_bits_among_any_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
