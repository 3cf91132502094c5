/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver answers: every attribute of every chip, by the CUDA programming guide's tables;
 * of a function; of a pointer, anywhere in its allocation; which launches fit, dimension by
 * dimension.
 */
#include "bench.h"

#include <stdio.h>
#include <string.h>

/* ---- devices ---- */

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* CUDA programming guide, "Technical Specifications per Compute Capability", and data sheets. */
static const struct chip {
    const char *device, *name, *uuid;
    int major, minor, multiprocessors, shared_per_sm, shared_per_cta, threads_per_sm, ctas_per_sm,
        l2_bytes, clock_khz, memory_khz, bus_bits;
    size_t gib;
    bool has_clusters;
} chips[] = {
    {"cpu", "PTX emulator, as H100", "emu:sm_90", 9, 0, 132, 228 * KIB, 227 * KIB, 2048, 32,
     50 * MIB, 1980000, 2619000, 5120, 80, true},
    {"cpu:sm_80", "PTX emulator, as A100", "emu:sm_80", 8, 0, 108, 164 * KIB, 163 * KIB, 2048, 32,
     40 * MIB, 1410000, 1512000, 5120, 80, false},
    {"cpu:sm_86", "PTX emulator, as A40", "emu:sm_86", 8, 6, 84, 100 * KIB, 99 * KIB, 1536, 16,
     6 * MIB, 1740000, 7251000, 384, 48, false},
    {"cpu:sm_87", "PTX emulator, as Orin", "emu:sm_87", 8, 7, 16, 164 * KIB, 163 * KIB, 1536, 16,
     4 * MIB, 1300000, 1600000, 256, 32, false},
    {"cpu:sm_89", "PTX emulator, as L40S", "emu:sm_89", 8, 9, 142, 100 * KIB, 99 * KIB, 1536, 24,
     96 * MIB, 2520000, 9001000, 384, 48, false},
    {"cpu:sm_100", "PTX emulator, as B200", "emu:sm_100", 10, 0, 148, 228 * KIB, 227 * KIB, 2048,
     32, 126 * MIB, 1965000, 3996000, 8192, 180, true},
    {"cpu:sm_103", "PTX emulator, as B300", "emu:sm_103", 10, 3, 148, 228 * KIB, 227 * KIB, 2048,
     32, 126 * MIB, 1965000, 3996000, 8192, 268, true},
    {"cpu:sm_120", "PTX emulator, as RTX PRO 6000", "emu:sm_120", 12, 0, 188, 100 * KIB, 99 * KIB,
     1536, 24, 128 * MIB, 2617000, 14001000, 512, 96, true},
};
enum { CHIPS = sizeof chips / sizeof *chips };

static void check_attributes(const ptxgen_driver *d, const struct chip *chip, int device)
{
    const struct {
        int attribute, value; /* by cuda.h's number */
    } rows[] = {
        {1, 1024},      {2, 1024},
        {3, 1024},      {4, 64},
        {5, INT32_MAX}, {6, 65535},
        {7, 65535},     {8, 48 * KIB},
        {9, 64 * KIB},  {10, 32},
        {12, 65536},    {13, chip->clock_khz},
        {17, 0},        {16, chip->multiprocessors},
        {18, 0},        {20, 0},
        {31, 1},        {32, 0},
        {33, 0},        {34, 0},
        {41, 1},        {36, chip->memory_khz},
        {50, 0},        {37, chip->bus_bits},
        {82, 65536},    {38, chip->l2_bytes},
        {95, 1},        {39, chip->threads_per_sm},
        {111, 1 * KIB}, {75, chip->major},
        {115, 0},       {76, chip->minor},
        {11, 0},        {81, chip->shared_per_sm},
        {0, 0},         {97, chip->shared_per_cta},
        {9999, 0},      {106, chip->ctas_per_sm},
        {-1, 0},        {108, chip->l2_bytes / 2},
        {14, 0},        {120, chip->has_clusters},
        {15, 0},        {127, chip->has_clusters},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int value = -7;
        assert_int_equal(
            d->device_get_attribute(&value, (ptxgen_cu_device_attribute)rows[i].attribute, device),
            PTXGEN_CUDA_SUCCESS);
        if (value != rows[i].value)
            fail_msg("%s: attribute %d is %d, not %d", chip->device, rows[i].attribute, value,
                     rows[i].value);
    }
}

static void every_chip_has_its_attributes_name_and_memory(void **state)
{
    struct bench bench;
    int count;
    (void)state;
    bench_open(&bench, "cpu");
    const ptxgen_driver *d = &bench.driver;
    assert_int_equal(d->device_get_count(&count), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(count, CHIPS);
    for (size_t i = 0; i < CHIPS; i++) {
        ptxgen_error err;
        ptxgen_cu_device device = -1;
        ptxgen_cu_uuid uuid;
        char name[64];
        size_t bytes;
        int ordinal;
        assert_int_equal(ptxgen_emulator_ordinal(chips[i].device, &ordinal, &err), PTXGEN_OK);
        assert_int_equal(ordinal, i);
        assert_int_equal(d->device_get(&device, ordinal), PTXGEN_CUDA_SUCCESS);
        assert_int_equal(device, i);
        assert_int_equal(d->device_get_name(name, sizeof name, device), PTXGEN_CUDA_SUCCESS);
        assert_string_equal(name, chips[i].name);
        assert_int_equal(d->device_get_name(name, 5, device), PTXGEN_CUDA_SUCCESS);
        assert_string_equal(name, "PTX ");
        assert_int_equal(d->device_get_name(name, 0, device), PTXGEN_CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(d->device_total_mem(&bytes, device), PTXGEN_CUDA_SUCCESS);
        assert_int_equal(bytes, chips[i].gib << 30);
        assert_int_equal(d->device_get_uuid(&uuid, device), PTXGEN_CUDA_SUCCESS);
        assert_string_equal(uuid.bytes, chips[i].uuid);
        check_attributes(d, &chips[i], device);
    }
    bench_close(&bench);
}

static void a_device_that_is_not_there_answers_nothing(void **state)
{
    static const int devices[] = {-1, CHIPS, CHIPS + 1, INT32_MAX};
    struct bench bench;
    (void)state;
    bench_open(&bench, "cpu");
    const ptxgen_driver *d = &bench.driver;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        ptxgen_cu_device device;
        ptxgen_cu_context context;
        ptxgen_cu_uuid uuid;
        char name[64];
        size_t bytes;
        int value;
        unsigned flags;
        assert_int_equal(d->device_get(&device, devices[i]), PTXGEN_CUDA_ERROR_INVALID_DEVICE);
        assert_int_equal(d->device_get_name(name, sizeof name, devices[i]),
                         PTXGEN_CUDA_ERROR_INVALID_DEVICE);
        assert_int_equal(d->device_total_mem(&bytes, devices[i]), PTXGEN_CUDA_ERROR_INVALID_DEVICE);
        assert_int_equal(d->device_get_uuid(&uuid, devices[i]), PTXGEN_CUDA_ERROR_INVALID_DEVICE);
        assert_int_equal(
            d->device_get_attribute(&value, PTXGEN_CU_DEVICE_ATTRIBUTE_WARP_SIZE, devices[i]),
            PTXGEN_CUDA_ERROR_INVALID_DEVICE);
        assert_int_equal(d->ctx_create(&context, 0, devices[i]), PTXGEN_CUDA_ERROR_INVALID_DEVICE);
        assert_int_equal(d->device_primary_ctx_retain(&context, devices[i]),
                         PTXGEN_CUDA_ERROR_INVALID_DEVICE);
        assert_int_equal(d->device_primary_ctx_get_state(devices[i], &flags, &value),
                         PTXGEN_CUDA_ERROR_INVALID_DEVICE);
    }
    bench_close(&bench);
}

/* ---- pointers ---- */

static void check_pointer(const struct bench *bench, ptxgen_cu_deviceptr start, size_t bytes,
                          ptxgen_cu_deviceptr at)
{
    const ptxgen_driver *d = &bench->driver;
    ptxgen_cu_context context = NULL;
    ptxgen_cu_deviceptr address = 0, first = 0;
    size_t size = 0;
    unsigned type = 0, managed = 7;
    int ordinal = -1;
    const struct {
        ptxgen_cu_pointer_attribute attribute;
        void *value;
    } asked[] = {
        {PTXGEN_CU_POINTER_ATTRIBUTE_CONTEXT, &context},
        {PTXGEN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &type},
        {PTXGEN_CU_POINTER_ATTRIBUTE_DEVICE_POINTER, &address},
        {PTXGEN_CU_POINTER_ATTRIBUTE_IS_MANAGED, &managed},
        {PTXGEN_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &ordinal},
        {PTXGEN_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &first},
        {PTXGEN_CU_POINTER_ATTRIBUTE_RANGE_SIZE, &size},
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        assert_int_equal(d->pointer_get_attribute(asked[i].value, asked[i].attribute, at),
                         PTXGEN_CUDA_SUCCESS);
    assert_ptr_equal(context, bench->context);
    assert_int_equal(type, PTXGEN_CU_MEMORYTYPE_DEVICE);
    assert_int_equal(address, at);
    assert_int_equal(managed, 0);
    assert_int_equal(ordinal, bench->ordinal);
    assert_int_equal(first, start);
    assert_int_equal(size, bytes);
    assert_int_equal(d->pointer_get_attribute(&first, PTXGEN_CU_POINTER_ATTRIBUTE_HOST_POINTER, at),
                     PTXGEN_CUDA_ERROR_INVALID_VALUE);
}

static void a_pointer_is_answered_for_anywhere_in_its_allocation(void **state)
{
    static const size_t sizes[] = {1, 100, 4096, 100000};
    struct bench bench;
    ptxgen_cu_deviceptr starts[4], value;
    (void)state;
    bench_open(&bench, "cpu:sm_86");
    for (int i = 0; i < 4; i++)
        starts[i] = bench_blank(&bench, sizes[i]);
    for (int i = 0; i < 4; i++) {
        const size_t places[] = {0, sizes[i] / 2, sizes[i] - 1};
        assert_int_equal(starts[i] % 256, 0);
        for (int p = 0; p < 3; p++)
            check_pointer(&bench, starts[i], sizes[i], starts[i] + places[p]);
        assert_int_equal(
            bench.driver.pointer_get_attribute(&value, PTXGEN_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                               starts[i] + sizes[i]),
            PTXGEN_CUDA_ERROR_INVALID_VALUE);
    }
    bench_close(&bench);
}

/* What has been freed, and the middle of what has not, cannot be freed. */
static void memory_is_counted_and_freed_by_its_start_alone(void **state)
{
    struct bench bench;
    ptxgen_cu_deviceptr a, b, value;
    size_t before, bytes, total;
    (void)state;
    bench_open(&bench, "cpu:sm_86");
    const ptxgen_driver *d = &bench.driver;
    assert_int_equal(d->mem_get_info(&before, &total), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(total, (size_t)48 << 30);
    assert_in_range(before, 1, total);
    assert_int_equal(d->mem_alloc(&a, 1 << 20), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->mem_alloc(&b, 1 << 16), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->mem_get_info(&bytes, &total), PTXGEN_CUDA_SUCCESS);
    assert_in_range(before - bytes, (1 << 20) + (1 << 16), (1 << 20) + (1 << 16) + 4096);
    assert_int_equal(d->mem_free(a + 512), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(d->mem_free(a), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->mem_free(a), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(
        d->pointer_get_attribute(&value, PTXGEN_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a),
        PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(d->mem_free(b), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->mem_free(0), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->mem_get_info(&bytes, &total), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(bytes, before);
    assert_int_equal(d->mem_alloc(&a, 0), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(d->mem_alloc(&a, total + 1), PTXGEN_CUDA_ERROR_OUT_OF_MEMORY);
    bench_close(&bench);
}

/* Only as many bytes as are said are changed, and no copy leaves its allocation. */
static void copies_and_fills_have_their_ends(void **state)
{
    struct bench bench;
    uint8_t bytes[64], there[64], filled[64];
    (void)state;
    bench_open(&bench, "cpu");
    const ptxgen_driver *d = &bench.driver;
    for (int i = 0; i < 64; i++)
        bytes[i] = (uint8_t)(i + 1);
    ptxgen_cu_deviceptr a = bench_buffer(&bench, bytes, sizeof bytes);
    ptxgen_cu_deviceptr b = bench_buffer(&bench, NULL, sizeof bytes);
    assert_int_equal(d->memcpy_dtod(b + 8, a + 16, 5), PTXGEN_CUDA_SUCCESS);
    memset(filled, 0, sizeof filled);
    memcpy(filled + 8, bytes + 16, 5);
    assert_int_equal(d->memset_d8(b + 20, 0x11, 3), PTXGEN_CUDA_SUCCESS);
    memset(filled + 20, 0x11, 3);
    assert_int_equal(d->memset_d16(b + 24, 0x2322, 3), PTXGEN_CUDA_SUCCESS);
    memcpy(filled + 24, "\x22\x23\x22\x23\x22\x23", 6);
    assert_int_equal(d->memset_d32(b + 32, 0x47464544, 2), PTXGEN_CUDA_SUCCESS);
    memcpy(filled + 32, "\x44\x45\x46\x47\x44\x45\x46\x47", 8);
    assert_int_equal(d->memset_d8_async(b + 44, 0x51, 2, NULL), PTXGEN_CUDA_SUCCESS);
    memset(filled + 44, 0x51, 2);
    assert_int_equal(d->memset_d16_async(b + 48, 0x6261, 2, NULL), PTXGEN_CUDA_SUCCESS);
    memcpy(filled + 48, "\x61\x62\x61\x62", 4);
    assert_int_equal(d->memset_d32_async(b + 56, 0x74737271, 1, NULL), PTXGEN_CUDA_SUCCESS);
    memcpy(filled + 56, "\x71\x72\x73\x74", 4);
    assert_int_equal(d->memcpy_htod_async(b, bytes + 40, 3, NULL), PTXGEN_CUDA_SUCCESS);
    memcpy(filled, bytes + 40, 3);
    assert_int_equal(d->memcpy_dtod_async(b + 60, a, 4, NULL), PTXGEN_CUDA_SUCCESS);
    memcpy(filled + 60, bytes, 4);
    assert_int_equal(d->memcpy_dtoh_async(there, b, sizeof there, NULL), PTXGEN_CUDA_SUCCESS);
    assert_memory_equal(there, filled, sizeof there);
    assert_int_equal(d->memcpy_dtoh(there, a + 1, 64), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(d->memcpy_htod(a + 1, bytes, 64), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(d->memcpy_dtod(a + 1, b, 64), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(d->memcpy_dtod(b, a + 1, 64), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(d->memset_d8(a, 0, 65), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(d->memset_d16(a, 0, 33), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(d->memset_d32(a, 0, 17), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    bench_close(&bench);
}

/* ---- functions ---- */

static const char functions[] =
    ".version 8.3\n.target sm_90\n.address_size 64\n.const .b8 c[24];\n"
    ".visible .entry plain() { ret; }\n"
    ".visible .entry sized(.param .u64 p) .maxntid 8, 4, 2 .maxnreg 40\n{\n"
    ".reg .b32 %r<9>; .reg .b64 %rd<3>; .shared .align 16 .b8 s[1000]; .local .align 8 .b8 l[80];\n"
    "mov.u32 %r1, s; mov.u64 %rd1, l; ld.const.u32 %r2, [c];\nret;\n}\n"
    ".visible .entry exact() .reqntid 5, 3, 2 .explicitcluster .reqnctapercluster 4, 2, 1\n"
    "{ ret; }\n";

static void functions_have_the_attributes_of_their_text(void **state)
{
    enum { MOST = 227 * KIB };
    static const struct {
        const char *name;
        int threads, shared, constant, local, dynamic, width, height, depth;
    } rows[] = {
        {"plain", 1024, 0, 24, 0, 48 * KIB, 0, 0, 0},
        {"sized", 64, 1000, 24, 80, 48 * KIB - 1000, 0, 0, 0},
        {"exact", 30, 0, 24, 0, 48 * KIB, 4, 2, 1},
    };
    struct bench bench;
    (void)state;
    bench_open(&bench, "cpu");
    bench_load(&bench, functions);
    const ptxgen_driver *d = &bench.driver;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptxgen_cu_function k;
        assert_int_equal(d->module_get_function(&k, bench.module, rows[i].name), 0);
        const struct {
            ptxgen_cu_function_attribute attribute;
            int value;
        } wanted[] = {
            {PTXGEN_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, rows[i].threads},
            {PTXGEN_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, rows[i].shared},
            {PTXGEN_CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, rows[i].constant},
            {PTXGEN_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, rows[i].local},
            {PTXGEN_CU_FUNC_ATTRIBUTE_PTX_VERSION, 83},
            {PTXGEN_CU_FUNC_ATTRIBUTE_BINARY_VERSION, 90},
            {PTXGEN_CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, 0},
            {PTXGEN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, rows[i].dynamic},
            {PTXGEN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, rows[i].width},
            {PTXGEN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, rows[i].height},
            {PTXGEN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, rows[i].depth},
        };
        for (size_t w = 0; w < sizeof wanted / sizeof *wanted; w++) {
            int value = -1;
            assert_int_equal(d->func_get_attribute(&value, wanted[w].attribute, k), 0);
            if (value != wanted[w].value)
                fail_msg("%s: attribute %d is %d, not %d", rows[i].name, (int)wanted[w].attribute,
                         value, wanted[w].value);
        }
        int most = MOST - rows[i].shared, value;
        assert_int_equal(d->func_set_attribute(
                             k, PTXGEN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1),
                         PTXGEN_CUDA_ERROR_INVALID_VALUE);
        static const ptxgen_cu_function_attribute settable[] = {
            PTXGEN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            PTXGEN_CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            PTXGEN_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED};
        const int values[] = {most, 50, 1};
        for (int s = 0; s < 3; s++) {
            assert_int_equal(d->func_set_attribute(k, settable[s], values[s]), 0);
            assert_int_equal(d->func_get_attribute(&value, settable[s], k), 0);
            assert_int_equal(value, values[s]);
            assert_int_equal(d->func_set_attribute(k, settable[s], -1),
                             PTXGEN_CUDA_ERROR_INVALID_VALUE);
        }
        assert_int_equal(
            d->func_set_attribute(k, PTXGEN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2),
            PTXGEN_CUDA_ERROR_NOT_SUPPORTED);
        assert_int_equal(d->func_set_attribute(k, PTXGEN_CU_FUNC_ATTRIBUTE_NUM_REGS, 2),
                         PTXGEN_CUDA_ERROR_INVALID_VALUE);
    }
    bench_close(&bench);
}

static void a_variable_has_its_address_and_size(void **state)
{
    struct bench bench;
    ptxgen_cu_deviceptr address = 0, start = 0;
    ptxgen_cu_function k;
    size_t bytes = 0;
    uint32_t value;
    (void)state;
    bench_open(&bench, "cpu");
    bench_load(&bench, ".version 7.0\n.target sm_80\n.global .align 16 .u32 g[6] = {1, 2, 3};\n"
                       ".visible .entry k() { ret; }");
    const ptxgen_driver *d = &bench.driver;
    assert_int_equal(d->module_get_global(&address, &bytes, bench.module, "g"), 0);
    assert_int_equal(bytes, 24);
    assert_int_equal(address % 16, 0);
    bench_read(&bench, &value, address + 8, 4);
    assert_int_equal(value, 3);
    assert_int_equal(d->module_get_global(&start, NULL, bench.module, "g"), 0);
    assert_int_equal(start, address);
    assert_int_equal(d->module_get_global(NULL, &bytes, bench.module, "k"),
                     PTXGEN_CUDA_ERROR_NOT_FOUND);
    assert_int_equal(d->module_get_function(&k, bench.module, "g"), PTXGEN_CUDA_ERROR_NOT_FOUND);
    assert_int_equal(d->module_get_function(&k, bench.module, "kk"), PTXGEN_CUDA_ERROR_NOT_FOUND);
    bench_close(&bench);
}

/* ---- launches ---- */

static void each_dimension_has_its_limit(void **state)
{
    static const struct {
        const char *kernel;
        uint32_t grid[3], block[3], cluster[3];
        ptxgen_cu_result result;
    } rows[] = {
        {"plain", {1, 1, 1}, {1024, 1, 1}, {0}, PTXGEN_CUDA_SUCCESS},
        {"plain", {1, 1, 1}, {1025, 1, 1}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {1, 1, 1}, {1, 1024, 1}, {0}, PTXGEN_CUDA_SUCCESS},
        {"plain", {1, 1, 1}, {1, 1025, 1}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {1, 1, 1}, {1, 1, 64}, {0}, PTXGEN_CUDA_SUCCESS},
        {"plain", {1, 1, 1}, {1, 1, 65}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {1, 1, 1}, {16, 8, 8}, {0}, PTXGEN_CUDA_SUCCESS},
        {"plain", {1, 1, 1}, {16, 13, 5}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {1, 1, 1}, {0, 1, 1}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {1, 1, 1}, {1, 0, 1}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {1, 1, 1}, {1, 1, 0}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {0, 1, 1}, {1, 1, 1}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {1, 0, 1}, {1, 1, 1}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {1, 1, 0}, {1, 1, 1}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {65536, 1, 1}, {1, 1, 1}, {0}, PTXGEN_CUDA_SUCCESS},
        {"plain", {0x80000000, 1, 1}, {1, 1, 1}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {1, 65535, 1}, {1, 1, 1}, {0}, PTXGEN_CUDA_SUCCESS},
        {"plain", {1, 65536, 1}, {1, 1, 1}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {1, 1, 65535}, {1, 1, 1}, {0}, PTXGEN_CUDA_SUCCESS},
        {"plain", {1, 1, 65536}, {1, 1, 1}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {8, 1, 1}, {1, 1, 1}, {8, 1, 1}, PTXGEN_CUDA_SUCCESS},
        {"plain", {2, 4, 1}, {1, 1, 1}, {2, 4, 1}, PTXGEN_CUDA_SUCCESS},
        {"plain", {16, 1, 1}, {1, 1, 1}, {16, 1, 1}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {3, 1, 1}, {1, 1, 1}, {2, 1, 1}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {2, 3, 1}, {1, 1, 1}, {1, 2, 1}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"plain", {2, 1, 3}, {1, 1, 1}, {1, 1, 2}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"sized", {1, 1, 1}, {64, 1, 1}, {0}, PTXGEN_CUDA_SUCCESS},
        {"sized", {1, 1, 1}, {65, 1, 1}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"exact", {4, 2, 1}, {5, 3, 2}, {0}, PTXGEN_CUDA_SUCCESS},
        {"exact", {4, 2, 1}, {5, 3, 2}, {4, 2, 1}, PTXGEN_CUDA_SUCCESS},
        {"exact", {4, 2, 1}, {5, 3, 2}, {2, 2, 1}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"exact", {4, 2, 1}, {5, 2, 3}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
        {"exact", {4, 3, 1}, {5, 3, 2}, {0}, PTXGEN_CUDA_ERROR_INVALID_VALUE},
    };
    struct bench bench;
    uint64_t argument = 0;
    (void)state;
    bench_open(&bench, "cpu");
    bench_load(&bench, functions);
    const ptxgen_driver *d = &bench.driver;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t *grid = rows[i].grid, *block = rows[i].block, *cluster = rows[i].cluster;
        ptxgen_cu_function k;
        ptxgen_cu_launch_attribute attribute = {
            .id = PTXGEN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            .value.cluster_dim = {cluster[0], cluster[1], cluster[2]}};
        const ptxgen_cu_launch_config config = {.grid_dim_x = grid[0],
                                                .grid_dim_y = grid[1],
                                                .grid_dim_z = grid[2],
                                                .block_dim_x = block[0],
                                                .block_dim_y = block[1],
                                                .block_dim_z = block[2],
                                                .attributes = &attribute,
                                                .attribute_count = cluster[0] != 0};
        assert_int_equal(d->module_get_function(&k, bench.module, rows[i].kernel), 0);
        ptxgen_cu_result result = d->launch_kernel_ex(&config, k, (void *[]){&argument}, NULL);
        if (result != rows[i].result)
            fail_msg("row %zu, %s: %d, not %d", i, rows[i].kernel, (int)result,
                     (int)rows[i].result);
        if (cluster[0] == 0)
            assert_int_equal(d->launch_kernel(k, grid[0], grid[1], grid[2], block[0], block[1],
                                              block[2], 0, NULL, (void *[]){&argument}, NULL),
                             rows[i].result);
    }
    bench_close(&bench);
}

/* Every thread of a grid and block of three dimensions stores what its special registers say. */
static void threads_have_their_places_in_three_dimensions(void **state)
{
    enum { GX = 4, GY = 3, GZ = 2, BX = 3, BY = 4, BZ = 5, THREADS = BX * BY * BZ };
    static const char body[] =
        ".reg .b32 %r<40>; .reg .b64 %rd<4>;\nld.param.u64 %rd1, [p];\n"
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;\n"
        "mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;\n"
        "mov.u32 %r7, %ntid.x; mov.u32 %r8, %ntid.y; mov.u32 %r9, %ntid.z;\n"
        "mov.u32 %r10, %nctaid.x; mov.u32 %r11, %nctaid.y; mov.u32 %r12, %nctaid.z;\n"
        "mov.u32 %r13, %clusterid.x; mov.u32 %r14, %clusterid.y; mov.u32 %r15, %clusterid.z;\n"
        "mov.u32 %r16, %cluster_ctaid.x; mov.u32 %r17, %cluster_ctaid.y;\n"
        "mov.u32 %r18, %cluster_ctaid.z; mov.u32 %r19, %cluster_ctarank;\n"
        "mov.u32 %r20, %nclusterid.x; mov.u32 %r21, %cluster_nctaid.x;\n"
        "mov.u32 %r22, %cluster_nctarank; mov.u32 %r23, %laneid; mov.u32 %r24, %warpid;\n"
        "mad.lo.u32 %r30, %r6, %r11, %r5; mad.lo.u32 %r30, %r30, %r10, %r4;\n"
        "mad.lo.u32 %r31, %r3, %r8, %r2; mad.lo.u32 %r31, %r31, %r7, %r1;\n"
        "mad.lo.u32 %r30, %r30, 60, %r31; mul.wide.u32 %rd2, %r30, 96; add.u64 %rd1, %rd1, %rd2;\n"
        "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};\n"
        "st.global.v4.u32 [%rd1+16], {%r5, %r6, %r7, %r8};\n"
        "st.global.v4.u32 [%rd1+32], {%r9, %r10, %r11, %r12};\n"
        "st.global.v4.u32 [%rd1+48], {%r13, %r14, %r15, %r16};\n"
        "st.global.v4.u32 [%rd1+64], {%r17, %r18, %r19, %r20};\n"
        "st.global.v4.u32 [%rd1+80], {%r21, %r22, %r23, %r24};\nret;";
    static uint32_t found[GX * GY * GZ * THREADS][24];
    struct bench bench;
    ptxgen_cu_function k;
    ptxgen_cu_launch_attribute attribute = {.id = PTXGEN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                            .value.cluster_dim = {2, 1, 2}};
    const ptxgen_cu_launch_config config = {.grid_dim_x = GX,
                                            .grid_dim_y = GY,
                                            .grid_dim_z = GZ,
                                            .block_dim_x = BX,
                                            .block_dim_y = BY,
                                            .block_dim_z = BZ,
                                            .attributes = &attribute,
                                            .attribute_count = 1};
    (void)state;
    bench_open(&bench, "cpu");
    bench_kernel(&bench, "sm_90", ".param .u64 p", body);
    ptxgen_cu_deviceptr p = bench_blank(&bench, sizeof found);
    assert_int_equal(bench.driver.module_get_function(&k, bench.module, "k"), 0);
    assert_int_equal(bench.driver.launch_kernel_ex(&config, k, (void *[]){&p}, NULL), 0);
    bench_read(&bench, found, p, sizeof found);
    for (uint32_t i = 0; i < GX * GY * GZ * THREADS; i++) {
        const uint32_t cta = i / THREADS, t = i % THREADS;
        const uint32_t x = cta % GX, y = cta / GX % GY, z = cta / GX / GY;
        const uint32_t wanted[24] = {t % BX,
                                     t / BX % BY,
                                     t / BX / BY,
                                     x,
                                     y,
                                     z,
                                     BX,
                                     BY,
                                     BZ,
                                     GX,
                                     GY,
                                     GZ,
                                     x / 2,
                                     y,
                                     z / 2,
                                     x % 2,
                                     0,
                                     z % 2,
                                     x % 2 + z % 2 * 2,
                                     GX / 2,
                                     2,
                                     4,
                                     t % 32,
                                     t / 32};
        assert_memory_equal(found[i], wanted, sizeof wanted);
    }
    bench_close(&bench);
}

/* ---- reports ---- */

/* Thread (0,1,2) of a block of 3, 4 and 5 does one thing, thread (2,1,3), a warp later, another. */
static ptxgen_emulator_fault report_of(const char *first, const char *second, bool two_ctas)
{
    static const char head[] =
        ".reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<4>;\n"
        ".shared .align 128 .b8 buf[128];\nld.param.u64 %rd1, [p];\n"
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;\n"
        "mad.lo.u32 %r4, %r2, 10, %r1; mad.lo.u32 %r4, %r3, 100, %r4;\n"
        "mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ctaid.y; mov.u32 %r7, %ctaid.z;\n"
        "mad.lo.u32 %r8, %r6, 10, %r5; mad.lo.u32 %r8, %r7, 100, %r8;\n"
        "mov.u32 %r9, buf;\n"
        "setp.eq.u32 %p1, %r4, 210; setp.eq.and.u32 %p1, %r8, 120, %p1;\n"
        "setp.eq.u32 %p2, %r4, 312;";
    char body[1600];
    struct bench bench;
    ptxgen_cu_function k;
    ptxgen_cu_launch_attribute attribute = {.id = PTXGEN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                            .value.cluster_dim = {2, 1, 2}};
    const ptxgen_cu_launch_config config = {.grid_dim_x = 2,
                                            .grid_dim_y = 3,
                                            .grid_dim_z = 4,
                                            .block_dim_x = 3,
                                            .block_dim_y = 4,
                                            .block_dim_z = 5,
                                            .attributes = &attribute,
                                            .attribute_count = 1};
    snprintf(body, sizeof body, "%s setp.eq.and.u32 %%p2, %%r8, %d, %%p2;\n@%%p1 %s\n%s\nret;",
             head, two_ctas ? 321 : 120, first, second);
    bench_open(&bench, "cpu");
    bench_options(&bench, &(ptxgen_emulator_options){.workers = 1});
    bench_kernel(&bench, "sm_90", ".param .u64 p", body);
    ptxgen_cu_deviceptr p = bench_buffer(&bench, NULL, 128);
    assert_int_equal(bench.driver.module_get_function(&k, bench.module, "k"), 0);
    ptxgen_cu_result result = bench.driver.launch_kernel_ex(&config, k, (void *[]){&p}, NULL);
    ptxgen_emulator_fault fault = bench_fault(&bench);
    assert_int_not_equal(result, PTXGEN_CUDA_SUCCESS);
    ptxgen_emulator_clear_fault(bench.context);
    bench_close(&bench);
    return fault;
}

static void reports_name_threads_of_three_dimensions(void **state)
{
    static const struct {
        const char *first, *second;
        bool two_ctas;
        const char *cta, *says;
    } rows[] = {
        {"st.global.u32 [%rd1], 1;", "@%p2 st.global.u32 [%rd1], 2;", false, "(0,2,1)",
         ("race in global memory: this write follows a write by thread (0,1,2) of CTA (0,2,1) "
          "without a barrier between them")},
        {"st.global.u32 [%rd1], 1;", "@%p2 st.global.u32 [%rd1], 2;", true, "(1,2,3)",
         ("race in global memory: this write follows a write by thread (0,1,2) of CTA (0,2,1) "
          "without a release and an acquire of .gpu scope or wider between them")},
        {"st.shared.u32 [%r9], 1;", "@%p2 st.shared.u32 [%r9], 2;", false, "(0,2,1)",
         ("race in shared memory: this write follows a write by thread (0,1,2) without a barrier "
          "between them")},
        {"st.shared.v4.u32 [%r9], {%r4, %r4, %r4, %r4};",
         ("bar.sync 0;\n"
          "@%p2 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r9], 16;"),
         false, "(0,2,1)",
         ("this read through the async proxy follows a write through the generic proxy, at line 16 "
          "by thread (0,1,2), without a fence.proxy.async of shared memory between them")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptxgen_emulator_fault fault = report_of(rows[i].first, rows[i].second, rows[i].two_ctas);
        char where[64];
        const char *said = strstr(fault.message, rows[i].says);
        snprintf(where, sizeof where, "', CTA %s, thread (2,1,3), address 0x", rows[i].cta);
        if (!said || strcmp(said, rows[i].says) != 0 || !strstr(fault.message, where) ||
            strncmp(fault.message, "kernel k, line ", 15) != 0)
            fail_msg("row %zu: '%s'", i, fault.message);
        snprintf(where, sizeof where, "(%u,%u,%u)", fault.cta[0], fault.cta[1], fault.cta[2]);
        assert_string_equal(where, rows[i].cta);
        assert_int_equal(fault.thread[0], 2);
        assert_int_equal(fault.thread[1], 1);
        assert_int_equal(fault.thread[2], 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chip_has_its_attributes_name_and_memory),
        cmocka_unit_test(a_device_that_is_not_there_answers_nothing),
        cmocka_unit_test(a_pointer_is_answered_for_anywhere_in_its_allocation),
        cmocka_unit_test(memory_is_counted_and_freed_by_its_start_alone),
        cmocka_unit_test(copies_and_fills_have_their_ends),
        cmocka_unit_test(functions_have_the_attributes_of_their_text),
        cmocka_unit_test(a_variable_has_its_address_and_size),
        cmocka_unit_test(each_dimension_has_its_limit),
        cmocka_unit_test(threads_have_their_places_in_three_dimensions),
        cmocka_unit_test(reports_name_threads_of_three_dimensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
