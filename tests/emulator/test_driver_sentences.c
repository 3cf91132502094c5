/* SPDX-License-Identifier: Apache-2.0 */
/* What the emulated driver says of devices, modules and options that it refuses, word for word. */
#include "bench.h"

#include "tests/status.h"

#include <stdlib.h>

static void only_emulated_devices_have_an_ordinal(void **state)
{
    (void)state;
    static const char null[] = "the device's name, or the place for its ordinal, is NULL";
    int ordinal = -1;
    ptxgen_error err = {0};
    assert_refusal(ptxgen_emulator_ordinal("cpu:sm_91", &ordinal, &err), &err,
                   PTXGEN_ERROR_NO_DEVICE,
                   "no emulated device is called 'cpu:sm_91'; there are: cpu cpu:sm_90 cpu:sm_80 "
                   "cpu:sm_86 cpu:sm_87 cpu:sm_89 cpu:sm_100 cpu:sm_103 cpu:sm_120");
    assert_int_equal(ordinal, -1);
    assert_refusal(ptxgen_emulator_ordinal(NULL, &ordinal, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT, null);
    assert_refusal(ptxgen_emulator_ordinal("cpu", NULL, &err), &err, PTXGEN_ERROR_INVALID_ARGUMENT,
                   null);
}

static void options_and_profiles_are_of_live_contexts(void **state)
{
    (void)state;
    static const char dead[] = "the context is none of the emulator's, or is destroyed";
    struct bench bench;
    ptxgen_emulator_options options = {.workers = 1024};
    ptxgen_emulator_profile *profile = NULL;
    ptxgen_error err = {0};
    bench_open(&bench, "cpu");
    assert_ok(ptxgen_emulator_set_options(bench.context, &options, &err), &err);
    options.workers = 1025;
    assert_refusal(ptxgen_emulator_set_options(bench.context, &options, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT, "1025 workers; the limit is 1024");
    assert_refusal(ptxgen_emulator_set_options(bench.context, NULL, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT, "the options are NULL");
    assert_refusal(ptxgen_emulator_profile_take(bench.context, NULL, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT, "the place for the profile is NULL");
    ptxgen_cu_context context = bench.context;
    bench_close(&bench);
    options.workers = 1;
    assert_refusal(ptxgen_emulator_set_options(context, &options, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT, dead);
    assert_refusal(ptxgen_emulator_profile_take(context, &profile, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT, dead);
    assert_null(profile);
}

static void modules_of_newer_versions_and_other_targets_are_refused(void **state)
{
    (void)state;
#define KERNEL "\n.visible .entry k() { ret; }\n"
    static const struct {
        const char *device, *text;
        ptxgen_cu_result result;
        const char *says; /* the whole log */
    } rows[] = {
        {"cpu:sm_90", ".version 9.0\n.target sm_80" KERNEL, PTXGEN_CUDA_SUCCESS, ""},
        {"cpu:sm_90", ".version 9.1\n.target sm_80" KERNEL,
         PTXGEN_CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
         "line 1, column 1: .version 9.1 is newer than 9.0, which this driver takes"},
        {"cpu:sm_89", ".version 9.0\n.target sm_89" KERNEL, PTXGEN_CUDA_SUCCESS, ""},
        {"cpu:sm_89", ".version 9.0\n.target sm_90" KERNEL, PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU,
         ".target sm_90 does not run on sm_89"},
        {"cpu:sm_90", ".version 7.8\n.target sm_90" KERNEL, PTXGEN_CUDA_SUCCESS, ""},
        {"cpu:sm_90", ".version 7.7\n.target sm_90" KERNEL, PTXGEN_CUDA_ERROR_INVALID_PTX,
         "line 2, column 1: .target sm_90 needs .version 7.8 or later, not 7.7"},
        {"cpu:sm_90",
         ".version 7.8\n.target sm_90\n.global .u32 v;\n\n.global .u64 p = v;\n" KERNEL,
         PTXGEN_CUDA_SUCCESS, ""},
        {"cpu:sm_90",
         ".version 7.8\n.target sm_90\n.func f() { ret; }\n\n.global .u64 p = f;\n" KERNEL,
         PTXGEN_CUDA_ERROR_INVALID_PTX,
         "line 5, column 1: 'f' is no variable whose address could be taken"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench bench;
        bench_open(&bench, rows[i].device);
        assert_int_equal(bench_try_load(&bench, rows[i].text), rows[i].result);
        assert_string_equal(bench.log, rows[i].says);
        bench_close(&bench);
    }
}

static void a_damaged_cubin_is_named(void **state)
{
    (void)state;
    static const char text[] = ".version 7.0\n.target sm_80" KERNEL;
    struct bench bench;
    ptxgen_cu_link_state link;
    void *cubin;
    size_t size;
    bench_open(&bench, "cpu");
    const ptxgen_driver *d = &bench.driver;
    assert_int_equal(d->link_create(0, NULL, NULL, &link), 0);
    assert_int_equal(d->link_add_data(link, PTXGEN_CU_JIT_INPUT_PTX, (void *)(uintptr_t)text,
                                      sizeof text, "k", 0, NULL, NULL),
                     0);
    assert_int_equal(d->link_complete(link, &cubin, &size), 0);
    ((char *)cubin)[size - 5] ^= 1;
    assert_int_equal(bench_try_load(&bench, cubin), PTXGEN_CUDA_ERROR_INVALID_IMAGE);
    assert_string_equal(bench.log, "the emulator's cubin is damaged, or has a wrong checksum");
    assert_int_equal(d->link_destroy(link), 0);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_emulated_devices_have_an_ordinal),
        cmocka_unit_test(options_and_profiles_are_of_live_contexts),
        cmocka_unit_test(modules_of_newer_versions_and_other_targets_are_refused),
        cmocka_unit_test(a_damaged_cubin_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
