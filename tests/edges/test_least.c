/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least of each size that a family takes, alone and together, with 1 row: planned, referred to,
 * launched and right, with random data; and what is below it is refused.
 */
#include "tests/problems.h"

#include <ptxgen/dense.h>
#include <ptxgen/marlin.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_120"};
enum { DEVICES = 3 };

/* A size at its least, or some other; `which` has a bit for each that is at its least. */
static uint32_t size_of(unsigned which, int bit, uint32_t least, uint32_t other)
{
    return which >> bit & 1 ? least : other;
}

static void dense_takes_its_least_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES * 3 * 4; i++) {
        unsigned which = (unsigned)i / (DEVICES * 3);
        if (!test_in_share(i))
            continue;
        const ptxgen_dense_spec spec = {.n = size_of(which, 0, 1, 24),
                                        .k = size_of(which, 1, 1, 40),
                                        .type = (uint8_t)(i / DEVICES % 3),
                                        .bias = i % 2,
                                        .residual = (uint8_t)(which % 2)};
        run_spec(devices[i % DEVICES], &dense_harness, &spec, 1);
    }
}

static void sparse24_takes_its_least_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES * 4 * 4; i++) {
        unsigned which = (unsigned)i / (DEVICES * 4);
        uint8_t type = (uint8_t)(i / DEVICES % 4);
        if (!test_in_share(i))
            continue;
        const ptxgen_sparse24_spec spec = {.n = size_of(which, 0, 1, 24),
                                           .k = size_of(which, 1, 8, 72),
                                           .type = type,
                                           .y_type =
                                               type == PTXGEN_SPARSE24_S8 ? PTXGEN_BF16 : type,
                                           .bias = i % 2,
                                           .residual = (uint8_t)(which % 2),
                                           .tier = type < PTXGEN_SPARSE24_S8 && i % 5 == 0};
        run_spec(devices[i % DEVICES], &sparse24_harness, &spec, 1);
    }
}

static void marlin_takes_its_least_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES * 2 * 8; i++) {
        unsigned which = (unsigned)i / (DEVICES * 2);
        if (!test_in_share(i))
            continue;
        const ptxgen_marlin_spec spec = {.k = size_of(which, 0, 16, 80),
                                         .n = size_of(which, 1, 8, 72),
                                         .group_size = which >> 2 ? 16 : PTXGEN_W4_PER_CHANNEL,
                                         .type = i / DEVICES % 2 ? PTXGEN_F16 : PTXGEN_BF16,
                                         .zeros = i % 2,
                                         .act_order = which >> 2 && i % 3 == 0,
                                         .epilogue = i % 4 == 3};
        run_spec(devices[i % DEVICES], &marlin_harness, &spec, 1);
    }
}

static void rmsnorm_q4k_takes_its_least_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES * 3 * 4; i++) {
        unsigned which = (unsigned)i / (DEVICES * 3);
        if (!test_in_share(i))
            continue;
        uint32_t n = size_of(which, 0, 1, 20);
        const ptxgen_rmsnorm_q4k_spec spec = {.k = size_of(which, 1, 256, 512),
                                              .n = {n, i % 3 ? n : 0, 0},
                                              .epsilon = which ? 1e-6f : 0,
                                              .max_m = which % 2,
                                              .x_type = (uint8_t)(i / DEVICES % 3),
                                              .y_type = (uint8_t)(i % 3),
                                              .epilogue = i % 3 == 1,
                                              .bias = i % 2};
        run_spec(devices[i % DEVICES], &rmsnorm_q4k_harness, &spec, 1);
    }
}

static void w8a8_takes_its_least_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES * 4 * 4; i++) {
        unsigned which = (unsigned)i / (DEVICES * 4);
        if (!test_in_share(i))
            continue;
        const ptxgen_w8a8_spec spec = {.k = size_of(which, 0, 1, 40),
                                       .n = size_of(which, 1, 1, 24),
                                       .x_type = (uint8_t)(i / DEVICES % 4),
                                       .y_type = (uint8_t)(i % 4),
                                       .scales = (uint8_t)(i % 3),
                                       .asymmetric = i % 2,
                                       .bias = (uint8_t)(which % 2)};
        run_spec(devices[i % DEVICES], &w8a8_harness, &spec, 1);
    }
}

static void what_is_below_the_least_is_refused(void **state)
{
    (void)state;
    ptxgen_target target = target_of("sm_90a");
    ptxgen_error err = {0};
    for (unsigned none = 0; none < 2; none++) {
        const ptxgen_dense_spec dense = {.n = none, .k = !none, .type = PTXGEN_F16};
        const ptxgen_sparse24_spec sparse24 = {
            .n = none, .k = 8 * !none, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16};
        const ptxgen_marlin_spec marlin = {
            .k = 16 * none, .n = 8 * !none, .group_size = 16, .type = PTXGEN_F16};
        const ptxgen_rmsnorm_q4k_spec rmsnorm_q4k = {
            .k = 256 * none, .n = {!none}, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
        const ptxgen_w8a8_spec w8a8 = {
            .k = none, .n = !none, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
        ptxgen_dense_plan dense_plan;
        ptxgen_sparse24_plan sparse24_plan;
        ptxgen_marlin_plan marlin_plan;
        ptxgen_rmsnorm_q4k_plan rmsnorm_q4k_plan;
        ptxgen_w8a8_plan w8a8_plan;
        assert_int_equal(ptxgen_dense_make_plan(&dense, &target, &dense_plan, &err),
                         PTXGEN_ERROR_UNSUPPORTED);
        assert_int_equal(ptxgen_sparse24_make_plan(&sparse24, &target, &sparse24_plan, &err),
                         PTXGEN_ERROR_UNSUPPORTED);
        assert_int_equal(ptxgen_marlin_make_plan(&marlin, &target, &marlin_plan, &err),
                         PTXGEN_ERROR_UNSUPPORTED);
        assert_int_equal(
            ptxgen_rmsnorm_q4k_make_plan(&rmsnorm_q4k, &target, &rmsnorm_q4k_plan, &err),
            PTXGEN_ERROR_UNSUPPORTED);
        assert_int_equal(ptxgen_w8a8_make_plan(&w8a8, &target, &w8a8_plan, &err),
                         PTXGEN_ERROR_UNSUPPORTED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_takes_its_least_sizes),
        cmocka_unit_test(sparse24_takes_its_least_sizes),
        cmocka_unit_test(marlin_takes_its_least_sizes),
        cmocka_unit_test(rmsnorm_q4k_takes_its_least_sizes),
        cmocka_unit_test(w8a8_takes_its_least_sizes),
        cmocka_unit_test(what_is_below_the_least_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
