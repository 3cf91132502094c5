/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values and metadata as two arrays of the device, on the emulator, which refuses stray accesses:
 * packed bit for bit as on the host, and launched as they are.
 */
#include "tests/status.h"

#include "golden.h"
#include "src/harness/buffer.h"
#include "src/harness/random.h"

#include <ptxgen/sparse24.h>

#include <stdlib.h>
#include <string.h>

enum { POISON = 0xA5, ELEMENT_S8 = 1 };

struct bench {
    struct device device;
    ptxgen_sparse24_spec spec;
    ptxgen_sparse24 *kernel;
    struct buffer values, metadata, packed, refused;
};

static size_t element_of(const ptxgen_sparse24_spec *s)
{
    return s->type == PTXGEN_SPARSE24_S8    ? ELEMENT_S8
           : s->type == PTXGEN_SPARSE24_F32 ? sizeof(float)
                                            : sizeof(uint16_t);
}

static void start(struct bench *b, int type, int tier, uint32_t n, uint32_t k)
{
    ptxgen_sparse24_plan plan;
    ptxgen_error err;
    size_t bytes;
    memset(b, 0, sizeof *b);
    b->spec = (ptxgen_sparse24_spec){
        .n = n,
        .k = k,
        .max_m = 1,
        .type = (uint8_t)type,
        .y_type = (uint8_t)(type == PTXGEN_SPARSE24_S8 ? PTXGEN_F16 : (ptxgen_element)type),
        .tier = (uint8_t)tier,
        .plain = 1};
    assert_ok(device_open("cpu:sm_80", &b->device, &err), &err);
    ptxgen_target target = ptxgen_device_target(&b->device.facts);
    assert_ok(ptxgen_sparse24_make_plan(&b->spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_sparse24_load(&b->device.driver, &plan, NULL, &b->kernel, &err), &err);
    assert_ok(ptxgen_sparse24_packed_bytes(&b->spec, &bytes, &err), &err);
    assert_ok(buffer_create(&b->device, "packed", bytes, 16, &b->packed, &err), &err);
    assert_ok(buffer_create(&b->device, "values", (size_t)n * k / 2 * element_of(&b->spec), 16,
                            &b->values, &err),
              &err);
    assert_ok(buffer_create(&b->device, "metadata", (size_t)n * k / 4, 2, &b->metadata, &err),
              &err);
    assert_ok(buffer_create(&b->device, "refused", 8, 8, &b->refused, &err), &err);
}

static void stop(struct bench *b)
{
    buffer_destroy(&b->values);
    buffer_destroy(&b->metadata);
    buffer_destroy(&b->packed);
    buffer_destroy(&b->refused);
    ptxgen_sparse24_destroy(b->kernel);
    device_close(&b->device);
}

/* Any bits, and any two positions in either order. */
static void fill(struct bench *b, uint64_t seed)
{
    static const unsigned char nibbles[] = {0x4, 0x8, 0xC, 0x9, 0xD, 0xE,
                                            0x1, 0x2, 0x3, 0x6, 0x7, 0xB};
    struct random r = random_start(seed);
    random_fill(&r, b->values.host, b->values.bytes);
    for (size_t i = 0; i < b->metadata.bytes; i++)
        b->metadata.host[i] = nibbles[random_below(&r, sizeof nibbles)];
}

static ptxgen_sparse24_repack_args args_of(const struct bench *b)
{
    return (ptxgen_sparse24_repack_args){.values = b->values.address,
                                         .metadata = b->metadata.address,
                                         .packed = b->packed.address,
                                         .refused = b->refused.address,
                                         .values_bytes = b->values.bytes,
                                         .metadata_bytes = b->metadata.bytes,
                                         .packed_bytes = b->packed.bytes,
                                         .refused_bytes = b->refused.bytes};
}

/* Packs on the device; returns the word about what is refused. */
static uint64_t repack(struct bench *b)
{
    ptxgen_error err;
    uint64_t refused;
    memset(b->packed.host, POISON, b->packed.bytes);
    memset(b->refused.host, 0, b->refused.bytes);
    struct buffer *const all[] = {&b->values, &b->metadata, &b->packed, &b->refused};
    for (int i = 0; i < 4; i++)
        assert_ok(buffer_upload(all[i], &err), &err);
    const ptxgen_sparse24_repack_args args = args_of(b);
    assert_ok(ptxgen_sparse24_repack(b->kernel, &args, b->device.stream, &err), &err);
    assert_int_equal(b->device.driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
    assert_ok(buffer_verify(&b->values, &err), &err);
    assert_ok(buffer_verify(&b->metadata, &err), &err);
    assert_ok(buffer_download(&b->packed, &err), &err);
    assert_ok(buffer_download(&b->refused, &err), &err);
    memcpy(&refused, b->refused.host, sizeof refused);
    return refused;
}

static ptxgen_status pack_on_host(const struct bench *b, const unsigned char *metadata,
                                  unsigned char *packed, ptxgen_error *err)
{
    return ptxgen_sparse24_pack(&b->spec, (ptxgen_const_span){b->values.host, b->values.bytes},
                                PTXGEN_SPARSE24_BYTES,
                                (ptxgen_const_span){metadata, b->metadata.bytes},
                                (ptxgen_span){packed, b->packed.bytes}, err);
}

static void the_device_packs_as_the_host_does(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{1, 8}, {31, 136}, {64, 256}, {33, 1032}, {129, 520}};
    for (int type = PTXGEN_SPARSE24_F16; type <= PTXGEN_SPARSE24_S8; type++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct bench b;
            ptxgen_error err;
            start(&b, type, 2, sizes[i][0], sizes[i][1]);
            fill(&b, i + 1);
            unsigned char *expected = malloc(b.packed.bytes);
            assert_non_null(expected);
            assert_ok(pack_on_host(&b, b.metadata.host, expected, &err), &err);
            assert_true(repack(&b) == 0);
            assert_memory_equal(b.packed.host, expected, b.packed.bytes);
            free(expected);
            stop(&b);
        }
}

/* Of several the first; what is packed is a weight whose bad groups keep nothing. */
static void bytes_that_are_no_two_positions_are_reported(void **state)
{
    (void)state;
    static const unsigned char bad[] = {0x0, 0x5, 0xA, 0xF, 0x14, 0xFF};
    enum { N = 40, K = 264, GROUPS = N * K / 4 };
    for (int type = PTXGEN_SPARSE24_F16; type <= PTXGEN_SPARSE24_S8; type++) {
        struct bench b;
        struct random r = random_start((uint64_t)type);
        ptxgen_error of_host = {0}, of_device = {0};
        start(&b, type, 2, N, K);
        fill(&b, 3);
        unsigned char *expected = malloc(b.packed.bytes), sound[GROUPS];
        assert_non_null(expected);
        memcpy(sound, b.metadata.host, GROUPS);
        for (int i = 0; i < 9; i++) {
            size_t group = random_below(&r, GROUPS);
            unsigned char byte = bad[random_below(&r, sizeof bad)];
            b.metadata.host[group] = byte;
            sound[group] = byte & 0xF;
            if ((byte & 3) != (byte >> 2 & 3))
                continue;
            sound[group] = 0x4;
            size_t pair = b.values.bytes / GROUPS;
            memset(b.values.host + group * pair, 0, pair);
        }
        const ptxgen_sparse24_shape shape = {(ptxgen_sparse24_type)type, N, K};
        assert_int_equal(
            ptxgen_sparse24_validate(&shape, (ptxgen_const_span){b.values.host, b.values.bytes},
                                     PTXGEN_SPARSE24_BYTES,
                                     (ptxgen_const_span){b.metadata.host, GROUPS}, &of_host),
            PTXGEN_ERROR_MALFORMED);
        assert_ok(pack_on_host(&b, sound, expected, &of_device), &of_device);
        uint64_t refused = repack(&b);
        assert_refusal(ptxgen_sparse24_repack_verdict(&b.spec, refused, &of_device), &of_device,
                       PTXGEN_ERROR_MALFORMED, of_host.message);
        assert_memory_equal(b.packed.host, expected, b.packed.bytes);
        free(expected);
        stop(&b);
    }
}

static void words_that_no_packing_leaves_are_refused(void **state)
{
    (void)state;
    const ptxgen_sparse24_spec spec = {
        .n = 4, .k = 16, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16, .plain = 1};
    ptxgen_error err = {0};
    assert_ok(ptxgen_sparse24_repack_verdict(&spec, 0, &err), &err);
    assert_refusal(ptxgen_sparse24_repack_verdict(&spec, 7, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT,
                   "sparse24: 0x7 is not what a packing of this spec leaves in refused");
    const uint64_t sound = UINT64_MAX << 8 | 0x4, past = (UINT64_MAX - 16) << 8 | 0x5;
    assert_int_equal(ptxgen_sparse24_repack_verdict(&spec, sound, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ptxgen_sparse24_repack_verdict(&spec, past, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_refusal(
        ptxgen_sparse24_repack_verdict(&spec, (UINT64_MAX - 15) << 8 | 0x5, &err), &err,
        PTXGEN_ERROR_MALFORMED,
        "row 3, group 3 of byte metadata is 0x5, twice the position 1; a group keeps two "
        "different elements");
}

/* ---- refusals ---- */

static void refused(const ptxgen_sparse24 *kernel, const ptxgen_sparse24_repack_args *args,
                    const char *words)
{
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_sparse24_repack(kernel, args, NULL, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, words);
}

static void what_cannot_be_packed_is_refused(void **state)
{
    (void)state;
    struct bench b, other;
    ptxgen_error err = {0};
    start(&b, PTXGEN_SPARSE24_F16, 2, 8, 8);
    const ptxgen_sparse24_repack_args right = args_of(&b);
    ptxgen_sparse24_repack_args args = right;
    args.values = 0;
    refused(b.kernel, &args, "values is null");
    args = right;
    args.metadata++;
    refused(b.kernel, &args, "metadata at");
    args = right;
    args.packed += 8;
    refused(b.kernel, &args, "packed at");
    args = right;
    args.refused += 4;
    refused(b.kernel, &args, "refused at");
    args = right;
    args.values_bytes--;
    refused(b.kernel, &args,
            "sparse24: values has 63 bytes, fewer than the 64 that the launch needs");
    args = right;
    args.metadata_bytes--;
    refused(b.kernel, &args,
            "sparse24: metadata has 15 bytes, fewer than the 16 that the launch needs");
    refused(b.kernel, NULL, "sparse24: kernel and args must be given");
    start(&other, PTXGEN_SPARSE24_F16, 1, 8, 8);
    refused(other.kernel, &right,
            "sparse24: only kernels of tier 2 whose spec is plain pack weights");
    stop(&other);
    ptxgen_sparse24_plan plan;
    ptxgen_sparse24 *packed;
    ptxgen_target target = ptxgen_device_target(&b.device.facts);
    b.spec.plain = 0;
    assert_ok(ptxgen_sparse24_make_plan(&b.spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_sparse24_load(&b.device.driver, &plan, NULL, &packed, &err), &err);
    refused(packed, &right, "sparse24: only kernels of tier 2 whose spec is plain pack weights");
    ptxgen_sparse24_destroy(packed);
    stop(&b);
}

/* ---- launches ---- */

/* y of a launch with the packed weight, and of one with values and metadata. */
static void launches_agree(int type, int tier)
{
    enum { N = 40, K = 136, M = 1 };
    struct bench b;
    struct buffer x, y[2], scales, workspace;
    ptxgen_error err;
    start(&b, type, tier, N, K);
    const size_t element = element_of(&b.spec);
    struct random r = random_start(5);
    fill(&b, 6);
    for (size_t i = element - 1; i < b.values.bytes && element > 1; i += element)
        b.values.host[i] &= 0xBF; /* no infinities and NaNs */
    assert_ok(buffer_create(&b.device, "x", M * K * element, 16, &x, &err), &err);
    assert_ok(buffer_create(&b.device, "scales", N * sizeof(float), 16, &scales, &err), &err);
    random_fill(&r, x.host, x.bytes);
    for (size_t i = element - 1; i < x.bytes && element > 1; i += element)
        x.host[i] &= 0xBF;
    for (int i = 0; i < N; i++)
        ((float *)(void *)scales.host)[i] = 0.001f * (float)(i + 1);
    assert_ok(pack_on_host(&b, b.metadata.host, b.packed.host, &err), &err);
    struct buffer *const inputs[] = {&b.values, &b.metadata, &b.packed, &x, &scales};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        assert_ok(buffer_upload(inputs[i], &err), &err);
    for (int plain = 0; plain < 2; plain++) {
        assert_ok(buffer_create(&b.device, "y", M * N * sizeof(float), 16, &y[plain], &err), &err);
        assert_ok(buffer_upload(&y[plain], &err), &err);
        ptxgen_sparse24_args args = {.m = M,
                                     .x = x.address,
                                     .w = plain ? 0 : b.packed.address,
                                     .x_scale = scales.address,
                                     .w_scale = scales.address,
                                     .y = y[plain].address,
                                     .values = b.values.address,
                                     .metadata = b.metadata.address,
                                     .values_bytes = b.values.bytes,
                                     .metadata_bytes = b.metadata.bytes};
        uint64_t bytes;
        assert_ok(ptxgen_sparse24_workspace_bytes(b.kernel, &args, &bytes, &err), &err);
        assert_ok(buffer_create(&b.device, "workspace", bytes + 16, 16, &workspace, &err), &err);
        memset(workspace.host, 0, workspace.bytes);
        assert_ok(buffer_upload(&workspace, &err), &err);
        args.workspace = workspace.address;
        args.workspace_bytes = bytes;
        assert_ok(ptxgen_sparse24_launch(b.kernel, &args, b.device.stream, &err), &err);
        assert_int_equal(b.device.driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
        assert_ok(buffer_download(&y[plain], &err), &err);
        buffer_destroy(&workspace);
    }
    assert_memory_equal(y[0].host, y[1].host, y[0].bytes);
    struct buffer *const rest[] = {&x, &scales, &y[0], &y[1]};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        buffer_destroy(rest[i]);
    stop(&b);
}

static void launches_take_values_and_metadata_as_they_are(void **state)
{
    (void)state;
    for (int type = PTXGEN_SPARSE24_F32; type <= PTXGEN_SPARSE24_S8; type++)
        for (int tier = 1; tier <= 2; tier++)
            if (tier != (type == PTXGEN_SPARSE24_F32 ? 2 : type == PTXGEN_SPARSE24_S8 ? 1 : 0))
                launches_agree(type, tier);
}

static void a_launch_needs_a_weight_in_one_of_its_forms(void **state)
{
    (void)state;
    struct bench b;
    ptxgen_error err = {0};
    start(&b, PTXGEN_SPARSE24_F16, 2, 8, 8);
    ptxgen_sparse24_args args = {.m = 1,
                                 .x = b.packed.address,
                                 .y = b.packed.address + 4096,
                                 .metadata = b.metadata.address,
                                 .workspace = b.packed.address + 8192,
                                 .workspace_bytes = 1 << 20};
    assert_refusal(ptxgen_sparse24_launch(b.kernel, &args, NULL, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT, "sparse24: values is null");
    args.values = b.values.address;
    args.metadata = 0;
    assert_refusal(ptxgen_sparse24_launch(b.kernel, &args, NULL, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT, "sparse24: metadata is null");
    stop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_packs_as_the_host_does),
        cmocka_unit_test(bytes_that_are_no_two_positions_are_reported),
        cmocka_unit_test(words_that_no_packing_leaves_are_refused),
        cmocka_unit_test(what_cannot_be_packed_is_refused),
        cmocka_unit_test(launches_take_values_and_metadata_as_they_are),
        cmocka_unit_test(a_launch_needs_a_weight_in_one_of_its_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
