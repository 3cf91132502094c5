/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime writes, under a decimal comma: keys of the disk cache, and sentences. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "folder.h"
#include "toy.h"

#include "tests/comma_locale.h"
#include "tests/status.h"

#include <ptxgen/rmsnorm_q4k.h>

static void describe_with_a_fraction(const void *spec, char *text, size_t size)
{
    const struct toy_spec *s = spec;
    snprintf(text, size, "a/4=%.9g", s->a / 4.0);
}

/* Where the code of the spec comes from, for a program that begins now. */
static int origin_of(const struct toy_device *device, const char *folder,
                     const ptxgen_family *family, const void *spec)
{
    ptxgen_cache *cache;
    ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded;
    assert_int_equal(ptxgen_cache_open(&(ptxgen_cache_options){.folder = folder}, &cache, NULL),
                     PTXGEN_OK);
    ptxgen_dispatch_options options = {.cache = cache};
    assert_int_equal(ptxgen_dispatcher_create(&device->driver, &options, &dispatcher, NULL),
                     PTXGEN_OK);
    assert_int_equal(ptxgen_dispatch(dispatcher, family, spec, &loaded, NULL), PTXGEN_OK);
    int origin = (int)ptxgen_loaded_report(loaded)->origin;
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
    ptxgen_cache_close(cache);
    return origin;
}

static void check_family(const struct toy_device *device, const ptxgen_family *family,
                         const void *spec)
{
    char folder[FOLDER_PATH], locales[COMMA_LOCALE_FOLDER];
    folder_make(folder);
    assert_int_equal(origin_of(device, folder, family, spec), PTXGEN_ORIGIN_ASSEMBLER);
    assert_int_equal(origin_of(device, folder, family, spec), PTXGEN_ORIGIN_DISK);
    size_t files = folder_count(folder, "");
    assert_true(comma_locale_make(locales));
    assert_true(comma_locale_enter());
    assert_int_equal(origin_of(device, folder, family, spec), PTXGEN_ORIGIN_DISK);
    assert_true(comma_locale_remove(locales));
    assert_int_equal(folder_count(folder, ""), files);
    folder_remove(folder);
}

static void an_entry_is_found_in_every_locale(void **state)
{
    (void)state;
    struct toy_device device;
    toy_open(&device, "cpu:sm_90");
    ptxgen_rmsnorm_q4k_spec rmsnorm = {.k = 512, .n = {64}, .epsilon = 1.5e-5f};
    check_family(&device, ptxgen_rmsnorm_q4k_family(), &rmsnorm);
    ptxgen_family described = toy_plus;
    described.describe = describe_with_a_fraction;
    struct toy_spec toy = {.a = 1, .b = 2};
    check_family(&device, &described, &toy);
    toy_close(&device);
}

static void sentences_have_a_decimal_point(void **state)
{
    (void)state;
    char locales[COMMA_LOCALE_FOLDER];
    ptxgen_error err;
    ptxgen_target target = target_of("sm_80");
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k_spec spec = {.k = 512, .n = {64}, .epsilon = -1.5f};
    assert_true(comma_locale_make(locales));
    assert_true(comma_locale_enter());
    assert_int_not_equal(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err), PTXGEN_OK);
    assert_says(&err, "-1.5 ");
    assert_true(comma_locale_enter());
    assert_true(comma_locale_remove(locales));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_found_in_every_locale),
        cmocka_unit_test(sentences_have_a_decimal_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
