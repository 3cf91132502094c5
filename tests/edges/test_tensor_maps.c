/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor map that the driver refuses is the launch's error, in each family that makes any: the
 * sentence names the family and the operand, the output stays as it was, and the next launch is as
 * if nothing had been.
 */
#include "tests/checks.h"

#include "src/harness/problem.h"

#include <ptxgen/dense.h>
#include <ptxgen/marlin.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <stdio.h>
#include <stdlib.h>

enum { N = 256, K = 256, MOST_M = 512 };

static ptxgen_cu_result
refuse_map(ptxgen_cu_tensor_map *map, ptxgen_cu_tensor_map_data_type type, unsigned rank,
           void *address, const uint64_t *shape, const uint64_t *strides, const uint32_t *box,
           const uint32_t *steps, ptxgen_cu_tensor_map_interleave interleave,
           ptxgen_cu_tensor_map_swizzle swizzle, ptxgen_cu_tensor_map_l2_promotion promotion,
           ptxgen_cu_tensor_map_float_oob_fill fill)
{
    (void)map, (void)type, (void)rank, (void)address, (void)shape, (void)strides;
    (void)box, (void)steps, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    return PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

/* A launch whose operands come through tensor maps, the first of them of `operand`. */
struct mapped {
    const struct harness *harness;
    const void *spec;
    uint64_t m; /* 0: what a tile has whose operands are copied in bulk */
    const char *operand;
};

static uint64_t tokens_of(const struct mapped *row, const struct device *device)
{
    const ptxgen_target target = ptxgen_device_target(&device->facts);
    const struct kernel_request request = {.spec = row->spec};
    for (uint64_t m = row->m ? 0 : MOST_M; m; m--) {
        struct chosen chosen;
        ptxgen_error err;
        void *plan;
        assert_ok(harness_new_plan(row->harness, &request, m, &target, &plan, &chosen, &err), &err);
        bool found = ((const ptxgen_tile *)chosen.tile)->kind != PTXGEN_MMA;
        free(plan);
        if (found)
            return m;
    }
    assert_true(row->m);
    return row->m;
}

static void assert_refused_and_untouched(struct problem *p, struct device *device,
                                         const struct mapped *row)
{
    struct check check = {.outputs = 0};
    ptxgen_error err = {0};
    char words[80];
    snprintf(words, sizeof words, "%s: the tensor map of %s, ", row->harness->family()->name,
             row->operand);
    assert_int_equal(problem_check(p, device, &check, &err), PTXGEN_ERROR_DRIVER);
    assert_says(&err, words);
    assert_int_equal(device->driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
    for (unsigned i = 0; i < p->count; i++) {
        struct buffer *y = &p->buffers[i];
        if (!p->operands[i].used || p->operands[i].role != OPERAND_OUTPUT)
            continue;
        assert_ok(buffer_download(y, &err), &err);
        for (size_t at = 0; at < y->bytes; at++)
            assert_int_equal(y->host[at], BUFFER_POISON);
    }
}

static void a_map_that_is_refused_is_the_launchs_error_by_name(void **state)
{
    const struct mapped rows[] = {
        {&dense_harness, &(const ptxgen_dense_spec){.n = N, .k = K, .type = PTXGEN_F16}, 0, "x"},
        {&sparse24_harness,
         &(const ptxgen_sparse24_spec){
             .n = N, .k = K, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16},
         0, "x"},
        {&marlin_harness,
         &(const ptxgen_marlin_spec){.k = K, .n = N, .group_size = 64, .type = PTXGEN_F16}, 0, "x"},
        {&w8a8_harness,
         &(const ptxgen_w8a8_spec){.k = K, .n = N, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16}, 0,
         "w"},
        {&rmsnorm_q4k_harness,
         &(const ptxgen_rmsnorm_q4k_spec){.k = K, .n = {N}, .epsilon = 1, .y_type = PTXGEN_F16}, 1,
         "w[0]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct mapped *row = &rows[i];
        const struct kernel_request request = {.spec = row->spec};
        struct device device = open_device("cpu:sm_90");
        const ptxgen_driver whole = device.driver;
        struct check check = {.outputs = 0};
        struct random r = random_start(1);
        struct problem p;
        ptxgen_error err = {0};
        assert_ok(problem_allocate(&p, row->harness, &request, tokens_of(row, &device), NULL,
                                   &device, &err),
                  &err);
        assert_ok(problem_fill(&p, &r, &err), &err);
        device.driver.tensor_map_encode_tiled = refuse_map;
        assert_refused_and_untouched(&p, &device, row);
        device.driver.tensor_map_encode_tiled = whole.tensor_map_encode_tiled;
        assert_ok(problem_check(&p, &device, &check, &err), &err);
        assert_right(&check);
        problem_release(&p);
        device_close(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_that_is_refused_is_the_launchs_error_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
