/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output that is the residual itself has the same bits as one apart, whatever the kernel: few
 * rows and many, one CTA a tile and several, clusters; on the emulator, which reports races.
 */
#include "tests/launches.h"
#include "tests/random.h"

#include <ptxgen/dense.h>
#include <ptxgen/device.h>
#include <ptxgen/marlin.h>
#include <ptxgen/sparse24.h>

#include <stdlib.h>

enum { K = 512, N = 136, MOST_ROWS = 96, MOST_BUFFERS = 12 };

struct bench {
    struct emulated emulated;
    ptxgen_target target;
    struct random random;
    ptxgen_cu_deviceptr buffers[MOST_BUFFERS];
    unsigned used;
};

static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90"};
static const uint32_t row_counts[] = {1, 7, MOST_ROWS};

static void start(struct bench *b, const char *name)
{
    ptxgen_error err = {0};
    int ordinal;
    ptxgen_device_facts facts;
    memset(b, 0, sizeof *b);
    b->random = (struct random){7};
    ptxgen_emulator_driver(&b->emulated.driver);
    assert_ok(ptxgen_driver_start(&b->emulated.driver, &err), &err);
    assert_ok(ptxgen_emulator_ordinal(name, &ordinal, &err), &err);
    assert_int_equal(b->emulated.driver.ctx_create(&b->emulated.context, 0, ordinal),
                     PTXGEN_CUDA_SUCCESS);
    assert_ok(ptxgen_device_read(&b->emulated.driver, ordinal, &facts, &err), &err);
    b->target = ptxgen_device_target(&facts);
}

static void stop(struct bench *b)
{
    while (b->used)
        b->emulated.driver.mem_free(b->buffers[--b->used]);
    close_emulated(&b->emulated);
}

/* Halves of magnitude 2⁻⁴ to 1. */
static uint64_t upload(struct bench *b, size_t bytes)
{
    const ptxgen_driver *driver = &b->emulated.driver;
    uint16_t *halves = malloc(bytes + 2);
    for (size_t i = 0; i < (bytes + 1) / 2; i++)
        halves[i] = (uint16_t)(0x2C00 + random_bits(&b->random) % 0x1000 +
                               0x8000 * random_bits(&b->random) % 2);
    assert_true(b->used < MOST_BUFFERS);
    ptxgen_cu_deviceptr *buffer = &b->buffers[b->used++];
    assert_int_equal(driver->mem_alloc(buffer, bytes), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(driver->memcpy_htod(*buffer, halves, bytes), PTXGEN_CUDA_SUCCESS);
    free(halves);
    return *buffer;
}

static uint64_t zeros(struct bench *b, size_t bytes)
{
    uint64_t address = upload(b, bytes ? bytes : 16);
    assert_int_equal(b->emulated.driver.memset_d8(address, 0, bytes), PTXGEN_CUDA_SUCCESS);
    return address;
}

static void *download(struct bench *b, uint64_t address, size_t bytes)
{
    void *copy = malloc(bytes);
    assert_int_equal(b->emulated.driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(b->emulated.driver.memcpy_dtoh(copy, address, bytes), PTXGEN_CUDA_SUCCESS);
    return copy;
}

/* The outputs of two launches, the second into its residual. */
static void expect_same(struct bench *b, uint64_t apart, uint64_t in_place, uint32_t rows)
{
    size_t bytes = 2 * (size_t)N * rows;
    void *one = download(b, apart, bytes), *other = download(b, in_place, bytes);
    assert_memory_equal(one, other, bytes);
    free(one);
    free(other);
}

static void dense_adds_a_residual_in_place(void **state)
{
    static const ptxgen_dense_spec spec = {.n = N, .k = K, .type = PTXGEN_F16, .residual = 1};
    (void)state;
    for (int i = 0; i < 2 * 3; i++) {
        struct bench b;
        uint32_t m = row_counts[i % 3];
        ptxgen_dense_plan plan;
        ptxgen_dense *kernel;
        ptxgen_error err;
        start(&b, devices[i / 3]);
        assert_ok(ptxgen_dense_make_plan(&spec, &b.target, &plan, &err), &err);
        assert_ok(ptxgen_dense_load(&b.emulated.driver, &plan, NULL, &kernel, &err), &err);
        ptxgen_dense_args args = {.m = m,
                                  .x = upload(&b, 2 * K * m),
                                  .w = upload(&b, 2 * K * N),
                                  .residual = upload(&b, 2 * N * m),
                                  .y = upload(&b, 2 * N * m)};
        assert_ok(ptxgen_dense_workspace_bytes(kernel, &args, &args.workspace_bytes, &err), &err);
        args.workspace = zeros(&b, args.workspace_bytes);
        assert_ok(ptxgen_dense_launch(kernel, &args, NULL, &err), &err);
        uint64_t apart = args.y;
        args.y = args.residual;
        assert_ok(ptxgen_dense_launch(kernel, &args, NULL, &err), &err);
        expect_same(&b, apart, args.y, m);
        ptxgen_dense_destroy(kernel);
        stop(&b);
    }
}

static void marlin_adds_a_residual_in_place(void **state)
{
    static const ptxgen_marlin_spec spec = {
        .k = K, .n = N, .group_size = 128, .type = PTXGEN_F16, .residual = 1};
    (void)state;
    for (int i = 0; i < 2 * 3; i++) {
        struct bench b;
        uint32_t m = row_counts[i % 3];
        ptxgen_marlin_plan plan;
        ptxgen_marlin_packed packed;
        ptxgen_marlin *kernel;
        ptxgen_error err;
        start(&b, devices[i / 3]);
        assert_ok(ptxgen_marlin_make_plan(&spec, &b.target, &plan, &err), &err);
        assert_ok(ptxgen_marlin_packed_layout(&spec, &packed, &err), &err);
        assert_ok(ptxgen_marlin_load(&b.emulated.driver, &plan, NULL, &kernel, &err), &err);
        ptxgen_marlin_args args = {.m = m,
                                   .x = upload(&b, 2 * K * m),
                                   .codes = upload(&b, packed.codes_bytes),
                                   .scales = upload(&b, packed.scales_bytes),
                                   .residual = upload(&b, 2 * N * m),
                                   .y = upload(&b, 2 * N * m)};
        assert_ok(ptxgen_marlin_workspace_bytes(kernel, &args, &args.workspace_bytes, &err), &err);
        args.workspace = zeros(&b, args.workspace_bytes);
        assert_ok(ptxgen_marlin_launch(kernel, &args, NULL, &err), &err);
        uint64_t apart = args.y;
        args.y = args.residual;
        assert_ok(ptxgen_marlin_launch(kernel, &args, NULL, &err), &err);
        expect_same(&b, apart, args.y, m);
        ptxgen_marlin_destroy(kernel);
        stop(&b);
    }
}

/* Two of four, the first two: any values are a 2:4 weight then. */
static uint64_t upload_sparse(struct bench *b, const ptxgen_sparse24_spec *spec)
{
    size_t bytes, values = (size_t)N * K / 2 * 2, metadata = (size_t)N * K / 4;
    unsigned char *from = malloc(values), *positions = malloc(metadata), *packed;
    ptxgen_error err;
    assert_ok(ptxgen_sparse24_packed_bytes(spec, &bytes, &err), &err);
    packed = malloc(bytes);
    for (size_t i = 0; i < values; i += 2) {
        from[i] = (unsigned char)random_bits(&b->random) % 256;
        from[i + 1] = (unsigned char)(0x2C + random_bits(&b->random) % 16);
    }
    memset(positions, 0x4, metadata);
    assert_ok(ptxgen_sparse24_pack(spec, (ptxgen_const_span){from, values}, PTXGEN_SPARSE24_BYTES,
                                   (ptxgen_const_span){positions, metadata},
                                   (ptxgen_span){packed, bytes}, &err),
              &err);
    uint64_t address = upload(b, bytes);
    assert_int_equal(b->emulated.driver.memcpy_htod(address, packed, bytes), PTXGEN_CUDA_SUCCESS);
    free(packed);
    free(positions);
    free(from);
    return address;
}

static void sparse24_adds_a_residual_in_place(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * 2 * 3; i++) {
        const ptxgen_sparse24_spec spec = {.n = N,
                                           .k = K,
                                           .type = PTXGEN_SPARSE24_F16,
                                           .y_type = PTXGEN_F16,
                                           .residual = 1,
                                           .tier = (uint8_t)(1 + i / 6)};
        struct bench b;
        uint32_t m = row_counts[i % 3];
        ptxgen_sparse24_plan plan;
        ptxgen_sparse24 *kernel;
        ptxgen_error err;
        start(&b, devices[i / 3 % 2]);
        assert_ok(ptxgen_sparse24_make_plan(&spec, &b.target, &plan, &err), &err);
        assert_ok(ptxgen_sparse24_load(&b.emulated.driver, &plan, NULL, &kernel, &err), &err);
        ptxgen_sparse24_args args = {.m = m,
                                     .x = upload(&b, 2 * K * m),
                                     .w = upload_sparse(&b, &spec),
                                     .residual = upload(&b, 2 * N * m),
                                     .y = upload(&b, 2 * N * m)};
        assert_ok(ptxgen_sparse24_workspace_bytes(kernel, &args, &args.workspace_bytes, &err),
                  &err);
        args.workspace = zeros(&b, args.workspace_bytes);
        assert_ok(ptxgen_sparse24_launch(kernel, &args, NULL, &err), &err);
        uint64_t apart = args.y;
        args.y = args.residual;
        assert_ok(ptxgen_sparse24_launch(kernel, &args, NULL, &err), &err);
        expect_same(&b, apart, args.y, m);
        ptxgen_sparse24_destroy(kernel);
        stop(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_adds_a_residual_in_place),
        cmocka_unit_test(marlin_adds_a_residual_in_place),
        cmocka_unit_test(sparse24_adds_a_residual_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
