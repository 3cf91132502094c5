/* SPDX-License-Identifier: Apache-2.0 */
/* sparse24_inflate on the emulator, which refuses stray accesses: the dense weight, bit for bit. */
#include "tests/status.h"

#include "golden.h"
#include "src/harness/buffer.h"
#include "src/harness/random.h"

#include <ptxgen/sparse24.h>

#include <stdlib.h>
#include <string.h>

enum { POISON = 0xA5 };

struct bench {
    struct device device;
    ptxgen_sparse24_spec spec;
    ptxgen_sparse24 *kernel;
    struct buffer packed, dense;
};

static size_t dense_bytes(const ptxgen_sparse24_spec *s)
{
    return (size_t)s->n * s->k * (s->type == PTXGEN_SPARSE24_F32 ? 4 : 2);
}

static ptxgen_sparse24_shape shape_of(const ptxgen_sparse24_spec *s)
{
    return (ptxgen_sparse24_shape){(ptxgen_sparse24_type)s->type, s->n, s->k};
}

static void start(struct bench *b, int type, uint32_t n, uint32_t k)
{
    ptxgen_sparse24_plan plan;
    ptxgen_error err;
    size_t bytes;
    memset(b, 0, sizeof *b);
    b->spec = (ptxgen_sparse24_spec){
        .n = n, .k = k, .max_m = 1, .type = (uint8_t)type, .y_type = (uint8_t)type, .tier = 1};
    assert_ok(device_open("cpu", &b->device, &err), &err);
    ptxgen_target target = ptxgen_device_target(&b->device.facts);
    assert_ok(ptxgen_sparse24_make_plan(&b->spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_sparse24_load(&b->device.driver, &plan, NULL, &b->kernel, &err), &err);
    assert_ok(ptxgen_sparse24_packed_bytes(&b->spec, &bytes, &err), &err);
    assert_ok(buffer_create(&b->device, "packed", bytes, 16, &b->packed, &err), &err);
    assert_ok(buffer_create(&b->device, "dense", dense_bytes(&b->spec), 16, &b->dense, &err), &err);
}

static void stop(struct bench *b)
{
    buffer_destroy(&b->packed);
    buffer_destroy(&b->dense);
    ptxgen_sparse24_destroy(b->kernel);
    device_close(&b->device);
}

static ptxgen_sparse24_inflate_args args_of(const struct bench *b)
{
    return (ptxgen_sparse24_inflate_args){.packed = b->packed.address,
                                          .dense = b->dense.address,
                                          .packed_bytes = b->packed.bytes,
                                          .dense_bytes = b->dense.bytes};
}

static void inflate(struct bench *b)
{
    ptxgen_error err;
    memset(b->dense.host, POISON, b->dense.bytes);
    assert_ok(buffer_upload(&b->packed, &err), &err);
    assert_ok(buffer_upload(&b->dense, &err), &err);
    const ptxgen_sparse24_inflate_args args = args_of(b);
    assert_ok(ptxgen_sparse24_inflate(b->kernel, &args, b->device.stream, &err), &err);
    assert_int_equal(b->device.driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
    assert_ok(buffer_verify(&b->packed, &err), &err);
    assert_ok(buffer_download(&b->dense, &err), &err);
}

static void pack(struct bench *b, ptxgen_const_span values, ptxgen_sparse24_form form,
                 ptxgen_const_span metadata)
{
    ptxgen_error err;
    assert_ok(ptxgen_sparse24_pack(&b->spec, values, form, metadata,
                                   (ptxgen_span){b->packed.host, b->packed.bytes}, &err),
              &err);
}

/* Any bits, NaNs of every kind among them, and any two positions. */
static void fill(struct bench *b, uint64_t seed)
{
    static const unsigned char nibbles[] = {0x4, 0x8, 0xC, 0x9, 0xD, 0xE};
    struct random r = random_start(seed);
    size_t values = dense_bytes(&b->spec) / 2, groups = (size_t)b->spec.n * b->spec.k / 4;
    unsigned char *bits = malloc(values), *metadata = malloc(groups);
    assert_true(bits && metadata);
    random_fill(&r, bits, values);
    for (size_t i = 0; i < groups; i++)
        metadata[i] = nibbles[random_below(&r, 6)];
    pack(b, (ptxgen_const_span){bits, values}, PTXGEN_SPARSE24_BYTES,
         (ptxgen_const_span){metadata, groups});
    free(bits);
    free(metadata);
}

/* What the host makes of the packed weight. */
static unsigned char *decompress(const struct bench *b)
{
    const ptxgen_sparse24_shape shape = shape_of(&b->spec);
    size_t bytes = dense_bytes(&b->spec), groups = (size_t)b->spec.n * b->spec.k / 4;
    unsigned char *dense = malloc(bytes);
    ptxgen_error err;
    assert_non_null(dense);
    assert_ok(ptxgen_sparse24_decompress(
                  &shape, (ptxgen_const_span){b->packed.host, bytes / 2}, PTXGEN_SPARSE24_BYTES,
                  (ptxgen_const_span){b->packed.host + b->packed.bytes - groups, groups},
                  (ptxgen_span){dense, bytes}, &err),
              &err);
    return dense;
}

static void weights_of_every_size_come_back_bit_for_bit(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{1, 8},    {3, 8},    {1, 2040}, {33, 136},
                                        {64, 256}, {7, 4104}, {129, 520}};
    for (int type = PTXGEN_SPARSE24_F32; type <= PTXGEN_SPARSE24_BF16; type++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct bench b;
            start(&b, type, sizes[i][0], sizes[i][1]);
            fill(&b, i + 1);
            inflate(&b);
            unsigned char *expected = decompress(&b);
            assert_memory_equal(b.dense.host, expected, b.dense.bytes);
            free(expected);
            stop(&b);
        }
}

/* Where PyTorch's dense weight has a −0 that is not kept, +0 comes back. */
static void pytorchs_weights_come_back(void **state)
{
    (void)state;
    ptxgen_files *store = golden_open();
    for (int i = 0; i < 2; i++) {
        struct golden_weight w = golden_weight(store, i);
        struct bench b;
        start(&b, w.shape.type, (uint32_t)w.shape.n, (uint32_t)w.shape.k);
        pack(&b, w.values, PTXGEN_SPARSE24_CUTLASS, w.cutlass);
        inflate(&b);
        assert_int_equal(b.dense.bytes, w.dense.bytes);
        for (size_t e = 0; e < w.dense.bytes / 2; e++)
            assert_true(ptxgen_element_load((ptxgen_element)w.shape.type, b.dense.host, e) ==
                        ptxgen_element_load((ptxgen_element)w.shape.type, w.dense.data, e));
        stop(&b);
    }
    ptxgen_files_close(store);
}

/* A copy of the packed weight that nobody validated: other groups are as they were. */
static void metadata_without_meaning_stays_in_its_group(void **state)
{
    (void)state;
    for (int type = PTXGEN_SPARSE24_F32; type <= PTXGEN_SPARSE24_F16; type++) {
        struct bench b;
        start(&b, type, 40, 136);
        size_t groups = 40 * 136 / 4, group_bytes = dense_bytes(&b.spec) / groups;
        struct random r = random_start(9);
        fill(&b, 5);
        unsigned char *expected = decompress(&b);
        bool touched[40 * 136 / 4] = {false};
        for (int i = 0; i < 700; i++) {
            size_t group = random_below(&r, (uint32_t)groups);
            b.packed.host[b.packed.bytes - groups + group] = (unsigned char)random_below(&r, 256);
            touched[group] = true;
        }
        inflate(&b);
        for (size_t g = 0; g < groups; g++)
            if (!touched[g])
                assert_memory_equal(b.dense.host + g * group_bytes, expected + g * group_bytes,
                                    group_bytes);
        free(expected);
        stop(&b);
    }
}

static void refused(const ptxgen_sparse24 *kernel, const ptxgen_sparse24_inflate_args *args,
                    const char *words)
{
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_sparse24_inflate(kernel, args, NULL, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, words);
}

static void what_cannot_be_inflated_is_refused(void **state)
{
    (void)state;
    struct bench b;
    ptxgen_error err = {0};
    start(&b, PTXGEN_SPARSE24_F16, 8, 8);
    const ptxgen_sparse24_inflate_args right = args_of(&b);
    ptxgen_sparse24_inflate_args args = right;
    args.packed = 0;
    refused(b.kernel, &args, "packed is null");
    args = right;
    args.dense += 8;
    refused(b.kernel, &args, "dense at");
    args = right;
    args.packed_bytes--;
    refused(b.kernel, &args,
            "sparse24: packed has 79 bytes, fewer than the 80 that the launch needs");
    args = right;
    args.dense_bytes--;
    refused(b.kernel, &args,
            "sparse24: dense has 127 bytes, fewer than the 128 that the launch needs");
    refused(b.kernel, NULL, "sparse24: kernel and args must be given");
    ptxgen_sparse24_plan plan;
    ptxgen_sparse24 *other;
    ptxgen_target target = ptxgen_device_target(&b.device.facts);
    b.spec.tier = 2;
    assert_ok(ptxgen_sparse24_make_plan(&b.spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_sparse24_load(&b.device.driver, &plan, NULL, &other, &err), &err);
    refused(other, &right, "only kernels of tier 1 inflate");
    ptxgen_sparse24_destroy(other);
    stop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_every_size_come_back_bit_for_bit),
        cmocka_unit_test(pytorchs_weights_come_back),
        cmocka_unit_test(metadata_without_meaning_stays_in_its_group),
        cmocka_unit_test(what_cannot_be_inflated_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
