/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least of each size that a family takes, alone and together, with 1 row: planned, referred to,
 * launched and right, with random data.
 */
#include "tests/problems.h"

#include <ptxgen/dense.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/marlin.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
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

static void gguf_linear_takes_its_least_sizes(void **state)
{
    static const uint8_t types[] = {PTXGEN_GGUF_Q8_0, PTXGEN_GGUF_MXFP4, PTXGEN_GGUF_Q5_1};
    (void)state;
    for (int i = 0; i < DEVICES * 3 * 4; i++) {
        unsigned which = (unsigned)i / (DEVICES * 3);
        if (!test_in_share(i))
            continue;
        uint32_t n = size_of(which, 0, 1, 20);
        const ptxgen_gguf_linear_spec spec = {.k = size_of(which, 1, 32, 96),
                                              .n = {n, i % 3 ? n : 0, 0},
                                              .epsilon = which ? 1e-6f : 0,
                                              .max_m = which % 2,
                                              .w_type = {types[i % 3], types[i / 3 % 3]},
                                              .x_type = (uint8_t)(i / DEVICES % 3),
                                              .y_type = (uint8_t)(i % 3),
                                              .norm = i % 2,
                                              .epilogue = (uint8_t)(i % 3),
                                              .bias = i % 2};
        run_spec(devices[i % DEVICES], &gguf_linear_harness, &spec, 1);
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

static void quantise_takes_its_least_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES * 3 * 4; i++) {
        unsigned which = (unsigned)i / (DEVICES * 3);
        if (!test_in_share(i))
            continue;
        const ptxgen_quantise_spec spec = {.k = size_of(which, 0, 1, 9),
                                           .x_type = (uint8_t)(i / DEVICES % 3),
                                           .group = which % 2 ? PTXGEN_QUANTISE_GROUP : 0,
                                           .asymmetric = i % 2,
                                           .producer = (uint8_t)(i % 3)};
        run_spec(devices[i % DEVICES], &quantise_harness, &spec, 1);
    }
}

/* One block, or one float. */
static void gguf_rows_takes_its_least_sizes(void **state)
{
    const ptxgen_gguf_type_info *type;
    (void)state;
    for (size_t i = 0; (type = ptxgen_gguf_type_at(i)) != NULL; i++) {
        const ptxgen_gguf_rows_spec spec = {.k = type->block_weights,
                                            .w_type = (uint8_t)type->type,
                                            .y_type = (uint8_t)(i % 3),
                                            .indexed = i / 2 % 2};
        if (test_in_share((int)i))
            run_spec(devices[i % DEVICES], &gguf_rows_harness, &spec, 1);
    }
}

/* The mean of no squares is undefined; products of K or N of 0 are those of test_no_depth.c. */
static void a_norm_of_nothing_is_refused(void **state)
{
    (void)state;
    const ptxgen_target target = target_of("sm_90a");
    const ptxgen_rmsnorm_q4k_spec spec = {.n = {1}, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err),
                     PTXGEN_ERROR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_takes_its_least_sizes),
        cmocka_unit_test(sparse24_takes_its_least_sizes),
        cmocka_unit_test(marlin_takes_its_least_sizes),
        cmocka_unit_test(rmsnorm_q4k_takes_its_least_sizes),
        cmocka_unit_test(gguf_linear_takes_its_least_sizes),
        cmocka_unit_test(w8a8_takes_its_least_sizes),
        cmocka_unit_test(a_norm_of_nothing_is_refused),
        cmocka_unit_test(quantise_takes_its_least_sizes),
        cmocka_unit_test(gguf_rows_takes_its_least_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
