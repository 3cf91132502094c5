/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor map that the driver refuses is the launch's error, in each family that makes any: the
 * sentence names the family and the operand, the output stays as it was, and the next launch is as
 * if nothing had been.
 */
#include "tests/launches.h"

#include <ptxgen/device.h>
#include <ptxgen/marlin.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <stdlib.h>

enum { N = 256, K = 256, MOST_ROWS = 512, ARRAY = 1 << 20, ARRAYS = 8 };

struct bench {
    struct emulated emulated;
    ptxgen_driver driver; /* whose maps may be refused */
    ptxgen_target target;
    ptxgen_cu_deviceptr arrays; /* zeros */
};

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

static int setup(void **state)
{
    static struct bench b;
    ptxgen_device_facts facts;
    ptxgen_error err;
    void *zeros = calloc(ARRAYS, ARRAY);
    open_emulated(&b.emulated);
    b.driver = b.emulated.driver;
    assert_ok(ptxgen_device_read(&b.driver, 0, &facts, &err), &err);
    b.target = ptxgen_device_target(&facts);
    assert_int_equal(b.target.ptx.sm, 90);
    assert_non_null(zeros);
    assert_int_equal(b.driver.mem_alloc(&b.arrays, (size_t)ARRAYS * ARRAY), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(b.driver.memcpy_htod(b.arrays, zeros, (size_t)ARRAYS * ARRAY),
                     PTXGEN_CUDA_SUCCESS);
    free(zeros);
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    b->driver.mem_free(b->arrays);
    close_emulated(&b->emulated);
    return 0;
}

static uint64_t array(const struct bench *b, int i)
{
    return b->arrays + (uint64_t)i * ARRAY;
}

typedef ptxgen_status launch_kernel(const void *kernel, const void *args, ptxgen_error *err);

/* `output` are 2 bytes of what a launch writes, which become zeros. */
static void check_launch(struct bench *b, launch_kernel *launch, const void *kernel,
                         const void *args, uint64_t output, const char *family)
{
    const uint16_t poison = 0x5A5A;
    uint16_t found;
    ptxgen_error err = {0};
    b->driver.memcpy_htod(output, &poison, sizeof poison);
    b->driver.tensor_map_encode_tiled = refuse_map;
    assert_int_equal(launch(kernel, args, &err), PTXGEN_ERROR_DRIVER);
    assert_says(&err, family);
    assert_says(&err, "the tensor map of ");
    assert_int_equal(b->driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
    b->driver.memcpy_dtoh(&found, output, sizeof found);
    assert_int_equal(found, poison);
    b->driver.tensor_map_encode_tiled = b->emulated.driver.tensor_map_encode_tiled;
    assert_ok(launch(kernel, args, &err), &err);
    assert_int_equal(b->driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
    b->driver.memcpy_dtoh(&found, output, sizeof found);
    assert_int_equal(found, 0);
}

static ptxgen_status launch_dense(const void *kernel, const void *args, ptxgen_error *err)
{
    return ptxgen_dense_launch(kernel, args, NULL, err);
}

static void dense_says_which_map_is_refused(void **state)
{
    struct bench *b = *state;
    const ptxgen_dense_spec spec = {.n = N, .k = K, .type = PTXGEN_F16};
    ptxgen_dense_plan plan;
    ptxgen_dense *kernel;
    ptxgen_error err;
    uint32_t m = MOST_ROWS;
    assert_ok(ptxgen_dense_make_plan(&spec, &b->target, &plan, &err), &err);
    while (m && ptxgen_dense_choose(&plan, m)->kind == PTXGEN_MMA)
        m--;
    assert_true(m > 0);
    assert_ok(ptxgen_dense_load(&b->driver, &plan, NULL, &kernel, &err), &err);
    const ptxgen_dense_args args = {.m = m,
                                    .x = array(b, 0),
                                    .w = array(b, 1),
                                    .y = array(b, 2),
                                    .workspace = array(b, 3),
                                    .workspace_bytes = (ARRAYS - 3) * (uint64_t)ARRAY};
    check_launch(b, launch_dense, kernel, &args, args.y, "dense: ");
    ptxgen_dense_destroy(kernel);
}

static ptxgen_status launch_sparse24(const void *kernel, const void *args, ptxgen_error *err)
{
    return ptxgen_sparse24_launch(kernel, args, NULL, err);
}

static void sparse24_says_which_map_is_refused(void **state)
{
    struct bench *b = *state;
    const ptxgen_sparse24_spec spec = {
        .n = N, .k = K, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16};
    ptxgen_sparse24_plan plan;
    ptxgen_sparse24 *kernel;
    ptxgen_error err;
    uint32_t m = MOST_ROWS;
    size_t bytes;
    unsigned char *values = calloc(N, K), *metadata = malloc(N * K / 4), *packed;
    assert_ok(ptxgen_sparse24_packed_bytes(&spec, &bytes, &err), &err);
    packed = malloc(bytes);
    assert_true(values && metadata && packed && bytes <= ARRAY);
    memset(metadata, 0 | 1 << 2, N * K / 4);
    assert_ok(ptxgen_sparse24_pack(&spec, (ptxgen_const_span){values, N * K}, PTXGEN_SPARSE24_BYTES,
                                   (ptxgen_const_span){metadata, N * K / 4},
                                   (ptxgen_span){packed, bytes}, &err),
              &err);
    b->driver.memcpy_htod(array(b, 1), packed, bytes);
    free(values);
    free(metadata);
    free(packed);
    assert_ok(ptxgen_sparse24_make_plan(&spec, &b->target, &plan, &err), &err);
    while (m && ptxgen_sparse24_choose(&plan, m)->kind == PTXGEN_MMA)
        m--;
    assert_true(m > 0);
    assert_ok(ptxgen_sparse24_load(&b->driver, &plan, NULL, &kernel, &err), &err);
    const ptxgen_sparse24_args args = {.m = m,
                                       .x = array(b, 0),
                                       .w = array(b, 1),
                                       .y = array(b, 2),
                                       .workspace = array(b, 3),
                                       .workspace_bytes = (ARRAYS - 3) * (uint64_t)ARRAY};
    check_launch(b, launch_sparse24, kernel, &args, args.y, "sparse24: ");
    ptxgen_sparse24_destroy(kernel);
}

static ptxgen_status launch_marlin(const void *kernel, const void *args, ptxgen_error *err)
{
    return ptxgen_marlin_launch(kernel, args, NULL, err);
}

static void marlin_says_which_map_is_refused(void **state)
{
    struct bench *b = *state;
    const ptxgen_marlin_spec spec = {.k = K, .n = N, .group_size = 64, .type = PTXGEN_F16};
    ptxgen_marlin_plan plan;
    ptxgen_marlin *kernel;
    ptxgen_error err;
    uint32_t m = MOST_ROWS;
    assert_ok(ptxgen_marlin_make_plan(&spec, &b->target, &plan, &err), &err);
    while (m && ptxgen_marlin_choose(&plan, m)->kind != PTXGEN_WGMMA)
        m--;
    assert_true(m > 0);
    assert_ok(ptxgen_marlin_load(&b->driver, &plan, NULL, &kernel, &err), &err);
    const ptxgen_marlin_args args = {.m = m,
                                     .x = array(b, 0),
                                     .codes = array(b, 1),
                                     .scales = array(b, 4),
                                     .y = array(b, 2),
                                     .workspace = array(b, 5),
                                     .workspace_bytes = (ARRAYS - 5) * (uint64_t)ARRAY};
    check_launch(b, launch_marlin, kernel, &args, args.y, "marlin: ");
    ptxgen_marlin_destroy(kernel);
}

static ptxgen_status launch_w8a8(const void *kernel, const void *args, ptxgen_error *err)
{
    return ptxgen_w8a8_launch(kernel, args, NULL, err);
}

static void w8a8_says_which_map_is_refused(void **state)
{
    struct bench *b = *state;
    const ptxgen_w8a8_spec spec = {.k = K, .n = N, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    ptxgen_w8a8_plan plan;
    ptxgen_w8a8 *kernel;
    ptxgen_error err;
    uint32_t m = MOST_ROWS;
    assert_ok(ptxgen_w8a8_make_plan(&spec, &b->target, &plan, &err), &err);
    while (m && ptxgen_w8a8_choose(&plan, m)->kind != PTXGEN_WGMMA)
        m--;
    assert_true(m > 0);
    assert_ok(ptxgen_w8a8_load(&b->driver, &plan, NULL, &kernel, &err), &err);
    const ptxgen_w8a8_args args = {.m = m,
                                   .x = array(b, 0),
                                   .w = array(b, 1),
                                   .w_scale = array(b, 4),
                                   .y = array(b, 2),
                                   .workspace = array(b, 5),
                                   .workspace_bytes = (ARRAYS - 5) * (uint64_t)ARRAY};
    check_launch(b, launch_w8a8, kernel, &args, args.y, "w8a8: ");
    ptxgen_w8a8_destroy(kernel);
}

static ptxgen_status launch_rmsnorm_q4k(const void *kernel, const void *args, ptxgen_error *err)
{
    return ptxgen_rmsnorm_q4k_launch(kernel, args, NULL, err);
}

static void rmsnorm_q4k_says_which_map_is_refused(void **state)
{
    struct bench *b = *state;
    const ptxgen_rmsnorm_q4k_spec spec = {.k = K, .n = {N}, .epsilon = 1, .y_type = PTXGEN_F16};
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k *kernel;
    ptxgen_error err;
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&spec, &b->target, &plan, &err), &err);
    assert_ok(ptxgen_rmsnorm_q4k_load(&b->driver, &plan, NULL, &kernel, &err), &err);
    const ptxgen_rmsnorm_q4k_args args = {.m = 1,
                                          .x = array(b, 0),
                                          .gamma = array(b, 1),
                                          .w = {array(b, 3)},
                                          .y = {array(b, 2)}};
    check_launch(b, launch_rmsnorm_q4k, kernel, &args, args.y[0], "rmsnorm_q4k: ");
    ptxgen_rmsnorm_q4k_destroy(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_says_which_map_is_refused),
        cmocka_unit_test(sparse24_says_which_map_is_refused),
        cmocka_unit_test(marlin_says_which_map_is_refused),
        cmocka_unit_test(w8a8_says_which_map_is_refused),
        cmocka_unit_test(rmsnorm_q4k_says_which_map_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
