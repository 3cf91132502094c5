/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers that lack one call, for each call of driver_calls.def. What is required follows a rule
 * that is stated here a second time: every driver that ptxgen accepts, which is one for CUDA 11.0
 * or later, has all calls that came with CUDA 11.0 or before; what came later is optional, and one
 * documented feature needs it.
 */
#include "tests/runtime/check.h"
#include "tests/runtime/fake_driver.h"

#include <ptxgen/dense.h>
#include <ptxgen/device.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/emulator.h>
#include <ptxgen/kernel.h>
#include <ptxgen/marlin.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OPTIONAL = 0, REQUIRED = 1 };

static const struct call {
    const char *symbol;
    int since, need;
    size_t offset;
} calls[] = {
#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    {symbol, since, need, offsetof(ptxgen_driver, member)},
#include <ptxgen/driver_calls.def>
};
enum { CALLS = sizeof calls / sizeof *calls };

static ptxgen_error err;

/* ---- what is required ---- */

/* The calls that came after CUDA 11.0; which feature needs one is tested below. */
static const struct {
    const char *symbol;
    int since;
} later[] = {
    {"cuGetProcAddress_v2", 12000},          /* nothing of ptxgen's */
    {"cuDeviceGetUuid_v2", 11040},           /* the UUID among a device's facts */
    {"cuLaunchKernelEx", 11060},             /* clusters, overlapped and cooperative launches */
    {"cuOccupancyMaxActiveClusters", 11070}, /* ptxgen_kernel_max_clusters */
    {"cuTensorMapEncodeTiled", 12000},       /* kernels with tensor maps */
    {"cuGraphInstantiateWithFlags", 11040},  /* the command's bench and tune */
};
enum { LATER = sizeof later / sizeof *later };

static int since_of_later(const char *symbol)
{
    for (size_t i = 0; i < LATER; i++)
        if (strcmp(later[i].symbol, symbol) == 0)
            return later[i].since;
    return 0;
}

static void what_every_accepted_driver_has_is_required_and_the_rest_optional(void **state)
{
    size_t optional = 0;
    (void)state;
    assert_int_equal(PTXGEN_DRIVER_MIN_VERSION, 11000);
    for (size_t i = 0; i < CALLS; i++) {
        int since = since_of_later(calls[i].symbol);
        bool required = calls[i].since <= PTXGEN_DRIVER_MIN_VERSION;
        optional += !required;
        if (required != (calls[i].need == REQUIRED) || required != !since ||
            (since && since != calls[i].since))
            fail_msg("%s, since CUDA %d: required %d", calls[i].symbol, calls[i].since,
                     calls[i].need);
    }
    assert_int_equal(optional, LATER);
}

/* ---- a library without one symbol ---- */

static char *library_bytes;
static size_t library_size;

/* Misspells the name wherever the library has it; how often that is. */
static unsigned misspell(char *bytes, size_t size, const char *symbol)
{
    size_t length = strlen(symbol) + 2;
    char *name = calloc(length, 1); /* with the NUL of the string before it */
    unsigned found = 0;
    memcpy(name + 1, symbol, length - 2);
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(bytes + i, name, length) == 0) {
            bytes[i + 1] = 'x';
            found++;
        }
    free(name);
    return found;
}

static int read_library(void **state)
{
    FILE *file = fopen(WHOLE_DRIVER_LIBRARY, "rb");
    (void)state;
    if (!file)
        return -1;
    fseek(file, 0, SEEK_END);
    library_size = (size_t)ftell(file);
    rewind(file);
    library_bytes = malloc(library_size);
    bool whole = library_bytes && fread(library_bytes, 1, library_size, file) == library_size;
    fclose(file);
    return whole ? 0 : -1;
}

static int free_library(void **state)
{
    (void)state;
    free(library_bytes);
    return 0;
}

static ptxgen_status open_without(const char *symbol, ptxgen_driver *driver)
{
    char path[] = WHOLE_DRIVER_LIBRARY ".XXXXXX";
    char *bytes = malloc(library_size);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    memcpy(bytes, library_bytes, library_size);
    assert_true(misspell(bytes, library_size, symbol) > 0);
    assert_int_equal(write(fd, bytes, library_size), library_size);
    close(fd);
    free(bytes);
    err.message[0] = '\0';
    ptxgen_status status = ptxgen_driver_open(driver, path, &err);
    unlink(path);
    return status;
}

static void a_library_without_a_required_call_is_refused_by_name(void **state)
{
    static const ptxgen_driver zero;
    char words[200];
    (void)state;
    for (size_t i = 0; i < CALLS; i++) {
        ptxgen_driver driver;
        bool is_version = strcmp(calls[i].symbol, "cuDriverGetVersion") == 0;
        if (since_of_later(calls[i].symbol))
            continue;
        ptxgen_status status = open_without(calls[i].symbol, &driver);
        if (is_version)
            strcpy(words, "is not a CUDA driver library: it has no cuDriverGetVersion");
        else
            snprintf(words, sizeof words,
                     " has no %s, which came with CUDA %d.%d, though it reports CUDA 12.4",
                     calls[i].symbol, calls[i].since / 1000, calls[i].since % 1000 / 10);
        if (status != (is_version ? PTXGEN_ERROR_NO_DRIVER : PTXGEN_ERROR_DRIVER_TOO_OLD) ||
            err.status != status || !strstr(err.message, words))
            fail_msg("without %s: status %d, '%s'", calls[i].symbol, (int)status, err.message);
        assert_memory_equal(&driver, &zero, sizeof zero);
    }
}

static void a_library_without_an_optional_call_opens(void **state)
{
    (void)state;
    for (size_t i = 0; i < CALLS; i++) {
        ptxgen_driver driver;
        if (!since_of_later(calls[i].symbol))
            continue;
        if (open_without(calls[i].symbol, &driver) != PTXGEN_OK)
            fail_msg("without %s: '%s'", calls[i].symbol, err.message);
        void *entry;
        memcpy(&entry, (char *)&driver + calls[i].offset, sizeof entry);
        assert_null(entry);
        assert_int_equal(ptxgen_driver_require(&driver, calls[i].offset, &err),
                         PTXGEN_ERROR_DRIVER_TOO_OLD);
        assert_says(err, calls[i].symbol);
        ptxgen_driver_close(&driver);
    }
}

/* ---- a table without one member ---- */

static void a_table_starts_without_optional_members_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < CALLS; i++) {
        fake_reset();
        memset((char *)&fake.table + calls[i].offset, 0, sizeof(void *));
        err.message[0] = '\0';
        ptxgen_status status = ptxgen_driver_start(&fake.table, &err);
        bool optional = since_of_later(calls[i].symbol) != 0;
        if (status != (optional ? PTXGEN_OK : PTXGEN_ERROR_INVALID_ARGUMENT))
            fail_msg("without %s: status %d, '%s'", calls[i].symbol, (int)status, err.message);
        if (!optional)
            assert_says(err, calls[i].symbol);
    }
}

/* ---- the features that need an optional call ---- */

static void the_uuid_is_zero_without_its_call_and_nothing_else_is_missed(void **state)
{
    ptxgen_device_facts with, without;
    (void)state;
    fake_reset();
    assert_int_equal(ptxgen_device_read(&fake.table, 1, &with, &err), PTXGEN_OK);
    fake.table.device_get_uuid = NULL;
    assert_int_equal(ptxgen_device_read(&fake.table, 1, &without, &err), PTXGEN_OK);
    assert_int_not_equal(with.uuid.bytes[0], 0);
    memset(&with.uuid, 0, sizeof with.uuid);
    assert_memory_equal(&with, &without, sizeof with);
}

static void launches_with_attributes_need_launch_kernel_ex_and_plain_ones_do_not(void **state)
{
    static const ptxgen_launch_shape shapes[] = {
        {.grid = {8, 1, 1}, .block = {32, 1, 1}},
        {.grid = {8, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}},
        {.grid = {8, 1, 1}, .block = {32, 1, 1}, .programmatic = true},
        {.grid = {8, 1, 1}, .block = {32, 1, 1}, .cooperative = true},
    };
    ptxgen_module *module;
    ptxgen_kernel *kernel;
    int clusters;
    (void)state;
    fake_reset();
    fake_make_current(fake_context(0));
    assert_int_equal(
        ptxgen_module_load_ptx(&fake.table, ".version 7.0\n.target sm_80\n", NULL, &module, &err),
        PTXGEN_OK);
    assert_int_equal(ptxgen_kernel_create(module, "axpy", 0, &kernel, &err), PTXGEN_OK);
    fake.table.launch_kernel_ex = NULL;
    fake_forget_calls();
    assert_int_equal(ptxgen_launch(kernel, &shapes[0], NULL, NULL, &err), PTXGEN_OK);
    assert_int_equal(fake.calls[FAKE_launch_kernel], 1);
    for (size_t i = 1; i < sizeof shapes / sizeof *shapes; i++)
        assert_fails(ptxgen_launch(kernel, &shapes[i], NULL, NULL, &err),
                     PTXGEN_ERROR_DRIVER_TOO_OLD, err, "no cuLaunchKernelEx");
    assert_int_equal(fake.total, 1);
    assert_int_equal(ptxgen_kernel_max_clusters(kernel, &shapes[1], &clusters, &err), PTXGEN_OK);
    fake.table.occupancy_max_active_clusters = NULL;
    assert_fails(ptxgen_kernel_max_clusters(kernel, &shapes[1], &clusters, &err),
                 PTXGEN_ERROR_DRIVER_TOO_OLD, err, "no cuOccupancyMaxActiveClusters");
    ptxgen_kernel_destroy(kernel);
    ptxgen_module_destroy(module);
}

static const ptxgen_dense_spec dense = {.n = 64, .k = 64, .type = PTXGEN_F16};
static const ptxgen_marlin_spec marlin = {
    .k = 256, .n = 256, .group_size = 128, .type = PTXGEN_F16};
static const ptxgen_sparse24_spec sparse24 = {
    .n = 64, .k = 64, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16};
static const ptxgen_w8a8_spec w8a8 = {.k = 64, .n = 64, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
static const ptxgen_rmsnorm_q4k_spec rmsnorm_q4k = {
    .k = 256, .n = {64}, .epsilon = 1e-5f, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};

/* Dispatches on the emulator as if its driver had no `symbol`. */
static ptxgen_status dispatch_without(const char *device, const ptxgen_family *family,
                                      const void *spec, const char *symbol)
{
    ptxgen_driver driver;
    ptxgen_cu_context context;
    ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded = NULL;
    const ptxgen_dispatch_options options = {.no_cache = true};
    int ordinal;
    ptxgen_emulator_driver(&driver);
    assert_int_equal(ptxgen_emulator_ordinal(device, &ordinal, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_driver_start(&driver, &err), PTXGEN_OK);
    assert_int_equal(driver.ctx_create(&context, 0, ordinal), PTXGEN_CUDA_SUCCESS);
    for (size_t i = 0; i < CALLS; i++)
        if (strcmp(calls[i].symbol, symbol) == 0)
            memset((char *)&driver + calls[i].offset, 0, sizeof(void *));
    err.message[0] = '\0';
    assert_int_equal(ptxgen_dispatcher_create(&driver, &options, &dispatcher, &err), PTXGEN_OK);
    ptxgen_status status = ptxgen_dispatch(dispatcher, family, spec, &loaded, &err);
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
    assert_int_equal(driver.ctx_destroy(context), PTXGEN_CUDA_SUCCESS);
    return status;
}

static void kernels_need_tensor_maps_on_sm_90_alone(void **state)
{
    const struct {
        const ptxgen_family *family;
        const void *spec;
    } subjects[] = {
        {ptxgen_dense_family(), &dense},
        {ptxgen_marlin_family(), &marlin},
        {ptxgen_sparse24_family(), &sparse24},
        {ptxgen_w8a8_family(), &w8a8},
        {ptxgen_rmsnorm_q4k_family(), &rmsnorm_q4k},
    };
    (void)state;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        const ptxgen_family *family = subjects[i].family;
        const void *spec = subjects[i].spec;
        if (dispatch_without("sm_80", family, spec, "cuTensorMapEncodeTiled") != PTXGEN_OK)
            fail_msg("%s on sm_80: %s", family->name, err.message);
        if (dispatch_without("sm_90", family, spec, "cuTensorMapEncodeTiled") !=
                PTXGEN_ERROR_DRIVER_TOO_OLD ||
            err.status != PTXGEN_ERROR_DRIVER_TOO_OLD ||
            !strstr(err.message, "cuTensorMapEncodeTiled, which came with CUDA 12.0"))
            fail_msg("%s on sm_90: %s", family->name, err.message);
    }
}

static void other_optional_calls_are_not_missed_by_dispatch(void **state)
{
    (void)state;
    for (size_t i = 0; i < LATER; i++)
        if (strcmp(later[i].symbol, "cuTensorMapEncodeTiled") != 0)
            assert_int_equal(dispatch_without("sm_90", ptxgen_rmsnorm_q4k_family(), &rmsnorm_q4k,
                                              later[i].symbol),
                             PTXGEN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_every_accepted_driver_has_is_required_and_the_rest_optional),
        cmocka_unit_test(a_library_without_a_required_call_is_refused_by_name),
        cmocka_unit_test(a_library_without_an_optional_call_opens),
        cmocka_unit_test(a_table_starts_without_optional_members_alone),
        cmocka_unit_test(the_uuid_is_zero_without_its_call_and_nothing_else_is_missed),
        cmocka_unit_test(launches_with_attributes_need_launch_kernel_ex_and_plain_ones_do_not),
        cmocka_unit_test(kernels_need_tensor_maps_on_sm_90_alone),
        cmocka_unit_test(other_optional_calls_are_not_missed_by_dispatch),
    };
    return cmocka_run_group_tests(tests, read_library, free_library);
}
