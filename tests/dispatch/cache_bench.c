/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cache_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int bench_setup(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    toy_open(&bench->device, "cpu");
    folder_make(bench->folder);
    *state = bench;
    return 0;
}

int bench_teardown(void **state)
{
    struct bench *bench = *state;
    chmod(bench->folder, 0700);
    folder_remove(bench->folder);
    toy_close(&bench->device);
    free(bench);
    return 0;
}

void bench_keep_log(void *user, const char *message)
{
    struct bench *bench = user;
    size_t used = strlen(bench->log);
    snprintf(bench->log + used, LOG_SIZE - used, "%s\n", message);
}

ptxgen_origin bench_get(struct bench *bench, uint32_t a)
{
    struct toy_spec spec = {.a = a, .b = 5};
    ptxgen_cache_options where = {.folder = bench->folder, .max_bytes = bench->max_bytes};
    ptxgen_cache *cache = NULL;
    ptxgen_dispatcher *dispatcher = NULL;
    ptxgen_loaded *loaded = NULL;
    ptxgen_error err = {0};
    bench->log[0] = '\0';
    if (ptxgen_cache_open(&where, &cache, &err) != PTXGEN_OK)
        bench_keep_log(bench, err.message);
    ptxgen_dispatch_options options = {
        .cache = cache, .no_cache = !cache, .log = bench_keep_log, .log_user = bench};
    if (ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, &err) ||
        ptxgen_dispatch(dispatcher, bench->family ? bench->family : &toy_plus, &spec, &loaded,
                        &err))
        fail_msg("%s", err.message);
    ptxgen_origin origin = ptxgen_loaded_report(loaded)->origin;
    assert_true(toy_computes(&bench->device.driver, loaded, &spec));
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
    ptxgen_cache_close(cache);
    return origin;
}

ptxgen_origin bench_get_past_cache(struct bench *bench, const char *dump_folder,
                                   const char *override_folder)
{
    static const struct toy_spec spec = {.a = 6, .b = 5};
    ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded;
    const ptxgen_dispatch_options options = {.no_cache = true,
                                             .dump_folder = dump_folder,
                                             .override_folder = override_folder,
                                             .log = bench_keep_log,
                                             .log_user = bench};
    bench->log[0] = '\0';
    assert_int_equal(ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, NULL),
                     PTXGEN_OK);
    assert_int_equal(ptxgen_dispatch(dispatcher, &toy_plus, &spec, &loaded, NULL), PTXGEN_OK);
    ptxgen_origin origin = ptxgen_loaded_report(loaded)->origin;
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
    return origin;
}

void assert_disk(struct bench *bench, uint32_t a)
{
    assert_int_equal(bench_get(bench, a), PTXGEN_ORIGIN_DISK);
    assert_string_equal(bench->log, "");
}

void assert_recalled(struct bench *bench, uint32_t a)
{
    unsigned before = toy_emissions();
    assert_disk(bench, a);
    assert_int_equal(toy_emissions(), before);
}

void assert_emitted(struct bench *bench, uint32_t a)
{
    unsigned before = toy_emissions();
    assert_int_equal(bench_get(bench, a), PTXGEN_ORIGIN_DISK);
    assert_int_equal(toy_emissions(), before + 1);
}

void assert_assembled(struct bench *bench, uint32_t a)
{
    assert_int_equal(bench_get(bench, a), PTXGEN_ORIGIN_ASSEMBLER);
}

void assert_damage_heals(struct bench *bench, const char *path, bool cut,
                         void (*assert_got)(struct bench *bench, uint32_t a))
{
    size_t size;
    char *whole = file_read(path, &size);
    char *spoilt = malloc(size);
    for (size_t i = 0; i < size; i++) {
        memcpy(spoilt, whole, size);
        spoilt[i] = (char)(spoilt[i] ^ 1 << i % 8);
        file_write(path, cut ? whole : spoilt, cut ? i : size);
        assert_got(bench, 1);
        assert_log(bench, " is not used: it");
        size_t healed_size;
        char *healed = file_read(path, &healed_size);
        assert_int_equal(healed_size, size);
        assert_memory_equal(healed, whole, size);
        free(healed);
    }
    free(whole);
    free(spoilt);
}

void bench_clear_environment(void)
{
    static const char *const variables[] = {"PTXGEN_CACHE", "PTXGEN_CACHE_DIR", "PTXGEN_CACHE_SIZE",
                                            "PTXGEN_DUMP", "PTXGEN_OVERRIDE"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
}
