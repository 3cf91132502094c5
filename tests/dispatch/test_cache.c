/* SPDX-License-Identifier: Apache-2.0 */
/* What hits in the disk cache, how it is kept small, tended and steered. */
#define _GNU_SOURCE
#include "cache_bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- what it is for ---- */

static void the_next_dispatcher_gets_the_kernel_from_disk(void **state)
{
    struct bench *bench = *state;
    char manifest[FOLDER_PATH];
    struct stat status;
    assert_assembled(bench, 1);
    assert_string_equal(bench->log, "");
    assert_disk(bench, 1);
    assert_assembled(bench, 2);
    assert_disk(bench, 1);
    assert_int_equal(folder_count(bench->folder, ""), 5); /* two entries and the lock */
    assert_true(folder_find(bench->folder, ".manifest", manifest));
    assert_int_equal(stat(manifest, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void a_manifest_can_be_read(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    size_t size;
    assert_assembled(bench, 3);
    assert_true(folder_find(bench->folder, ".manifest", path));
    char *manifest = file_read(path, &size);
    assert_non_null(
        strstr(manifest, "\nfamily: toy_plus, plan version 1\nspec: a=3 b=5\nbytes: 03"));
    assert_non_null(strstr(manifest, "\ndevice: sm_90, PTX emulator, as H100\n"));
    assert_non_null(strstr(manifest, "\nlibrary: ptxgen "));
    free(manifest);
}

static void the_assemblers_options_are_in_the_key(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache;
    struct toy_spec spec = {.a = 4};
    static const ptxgen_dispatch_options variants[] = {
        {0}, {.max_registers = 64}, {.line_info = true}, {.max_registers = 65}};
    assert_int_equal(
        ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL), 0);
    for (int i = 0; i < 8; i++) {
        ptxgen_dispatcher *dispatcher;
        ptxgen_loaded *loaded;
        ptxgen_dispatch_options options = variants[i % 4];
        options.cache = cache;
        assert_int_equal(
            ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, NULL), 0);
        assert_int_equal(ptxgen_dispatch(dispatcher, &toy_plus, &spec, &loaded, NULL), 0);
        assert_int_equal(ptxgen_loaded_report(loaded)->origin,
                         i < 4 ? PTXGEN_ORIGIN_ASSEMBLER : PTXGEN_ORIGIN_DISK);
        ptxgen_release(loaded);
        ptxgen_dispatcher_destroy(dispatcher);
    }
    ptxgen_cache_close(cache);
}

static void an_older_plan_version_and_another_chip_are_misses(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache;
    ptxgen_family newer = toy_plus;
    struct toy_spec spec = {.a = 1, .b = 5};
    newer.plan_version++;
    assert_assembled(bench, 1);
    assert_int_equal(
        ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL), 0);
    struct toy_device ampere;
    toy_open(&ampere, "cpu:sm_80");
    for (int i = 0; i < 4; i++) {
        struct toy_device *device = i % 2 ? &ampere : &bench->device;
        ptxgen_dispatcher *dispatcher;
        ptxgen_loaded *loaded;
        ptxgen_dispatch_options options = {.cache = cache, .context = device->context};
        assert_int_equal(ptxgen_dispatcher_create(&device->driver, &options, &dispatcher, NULL), 0);
        assert_int_equal(ptxgen_dispatch(dispatcher, &newer, &spec, &loaded, NULL), 0);
        assert_int_equal(ptxgen_loaded_report(loaded)->origin,
                         i < 2 ? PTXGEN_ORIGIN_ASSEMBLER : PTXGEN_ORIGIN_DISK);
        ptxgen_release(loaded);
        ptxgen_dispatcher_destroy(dispatcher);
    }
    toy_close(&ampere);
    ptxgen_cache_close(cache);
}

/* ---- size and clock ---- */

static void set_age(const char *path, long seconds)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Gives the manifest of spec a, the only one in the folder that says so, an age. */
static void set_age_of(struct bench *bench, uint32_t a, long seconds)
{
    struct toy_spec spec = {.a = a, .b = 5};
    char words[64], command[FOLDER_PATH + 100], path[FOLDER_PATH];
    snprintf(words, sizeof words, "spec: a=%u b=%u", spec.a, spec.b);
    snprintf(command, sizeof command, "grep -lx '%s' %s/*.manifest", words, bench->folder);
    FILE *found = popen(command, "r");
    assert_non_null(fgets(path, sizeof path, found));
    pclose(found);
    path[strcspn(path, "\n")] = '\0';
    set_age(path, seconds);
}

static void the_least_recently_used_entries_go_first(void **state)
{
    struct bench *bench = *state;
    for (uint32_t a = 1; a <= 4; a++) {
        assert_assembled(bench, a);
        set_age_of(bench, a, 100000 - 10000 * (long)a);
    }
    assert_disk(bench, 1); /* which makes it the youngest */
    bench->max_bytes = 4 * 1300;
    assert_assembled(bench, 5);
    assert_disk(bench, 5);
    assert_disk(bench, 4);
    assert_disk(bench, 3);
    assert_disk(bench, 1);
    assert_assembled(bench, 2);
}

static void an_entry_larger_than_the_cache_is_not_kept(void **state)
{
    struct bench *bench = *state;
    bench->max_bytes = 600;
    assert_assembled(bench, 1);
    assert_log(bench, "larger than the whole cache");
    assert_assembled(bench, 1);
}

static void clocks_that_jump_lose_nothing_but_order(void **state)
{
    struct bench *bench = *state;
    static const long jumps[] = {-4000000000, -100000, 100000, 1700000000};
    for (uint32_t a = 1; a <= 4; a++) {
        assert_assembled(bench, a);
        set_age_of(bench, a, jumps[a - 1]);
    }
    for (uint32_t a = 1; a <= 4; a++)
        assert_disk(bench, a);
    set_age_of(bench, 2, -100000); /* of the future: it goes before what is known to be old */
    set_age_of(bench, 3, 7000);
    bench->max_bytes = 4 * 1300;
    assert_assembled(bench, 5);
    assert_disk(bench, 3);
    assert_assembled(bench, 2);
}

/* ---- tending ---- */

struct seen {
    size_t entries, damaged;
    char last_damage[200];
};

static int count_entry(void *user, const ptxgen_cache_entry *entry)
{
    struct seen *seen = user;
    seen->entries++;
    assert_int_equal(strlen(entry->key), 64);
    if (entry->damage) {
        seen->damaged++;
        snprintf(seen->last_damage, sizeof seen->last_damage, "%s", entry->damage);
    }
    return 0;
}

static int stop_at_once(void *user, const ptxgen_cache_entry *entry)
{
    (void)entry;
    ++*(int *)user;
    return 42;
}

static void visiting_finds_damage_and_pruning_removes_it(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    ptxgen_cache *cache;
    ptxgen_cache_removed removed;
    struct seen seen = {0};
    int calls = 0, stopped;
    for (uint32_t a = 1; a <= 5; a++)
        assert_assembled(bench, a);
    assert_true(folder_find(bench->folder, ".cubin", path));
    file_write(path, "short", 5);
    assert_int_equal(
        ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL), 0);
    assert_int_equal(ptxgen_cache_visit(cache, count_entry, &seen, &stopped, NULL), 0);
    assert_int_equal(seen.entries, 5);
    assert_int_equal(seen.damaged, 1);
    assert_string_equal(seen.last_damage, "its cubin is not as long as the manifest says");
    assert_int_equal(ptxgen_cache_visit(cache, stop_at_once, &calls, &stopped, NULL), 0);
    assert_int_equal(calls, 1);
    assert_int_equal(stopped, 42);
    assert_int_equal(ptxgen_cache_prune(cache, 3 * 1300, &removed, NULL), 0);
    assert_int_equal(removed.strays, 1);
    assert_int_equal(removed.entries, 1);
    assert_int_equal(folder_count(bench->folder, ""), 2 * 3 + 1);
    assert_int_equal(ptxgen_cache_clear(cache, &removed, NULL), 0);
    assert_int_equal(removed.entries, 3);
    assert_int_equal(folder_count(bench->folder, ""), 1);
    folder_remove(bench->folder);
    assert_int_equal(ptxgen_cache_clear(cache, &removed, NULL), 0);
    assert_int_equal(removed.entries, 0);
    ptxgen_cache_close(cache);
}

/* ---- the environment ---- */

static void the_environment_chooses_folder_size_and_none(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache;
    ptxgen_error err;
    char wanted[FOLDER_PATH + 20];
    unsetenv("PTXGEN_CACHE_DIR");
    setenv("HOME", bench->folder, 1);
    setenv("XDG_CACHE_HOME", "relative/is/ignored", 1);
    assert_int_equal(ptxgen_cache_open(NULL, &cache, &err), 0);
    snprintf(wanted, sizeof wanted, "%s/.cache/ptxgen", bench->folder);
    assert_string_equal(ptxgen_cache_folder(cache), wanted);
    assert_int_equal(ptxgen_cache_max_bytes(cache), 256 << 20);
    ptxgen_cache_close(cache);
    setenv("XDG_CACHE_HOME", bench->folder, 1);
    setenv("PTXGEN_CACHE_SIZE", "3M", 1);
    assert_int_equal(ptxgen_cache_open(NULL, &cache, &err), 0);
    snprintf(wanted, sizeof wanted, "%s/ptxgen", bench->folder);
    assert_string_equal(ptxgen_cache_folder(cache), wanted);
    assert_int_equal(ptxgen_cache_max_bytes(cache), 3 << 20);
    ptxgen_cache_close(cache);
    static const char *const no_sizes[] = {
        "0", "-1", "x", "1T", "1MB", "99999999999999999999", "18014398509481984K"};
    for (size_t i = 0; i < sizeof no_sizes / sizeof *no_sizes; i++) {
        setenv("PTXGEN_CACHE_SIZE", no_sizes[i], 1);
        assert_fails(ptxgen_cache_open(NULL, &cache, &err), PTXGEN_ERROR_INVALID_ARGUMENT, err,
                     "is not a size");
    }
    unsetenv("PTXGEN_CACHE_SIZE");
    setenv("PTXGEN_CACHE", "off", 1);
    assert_assembled(bench, 1);
    assert_assembled(bench, 1);
    unsetenv("PTXGEN_CACHE");
    assert_assembled(bench, 1);
    assert_disk(bench, 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_fails(ptxgen_cache_open(NULL, &cache, &err), PTXGEN_ERROR_FILE, err,
                 "no cache folder is known");
}

/* ---- dump and override ---- */

static void dumping_writes_text_code_and_log_and_an_edited_text_overrides(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    size_t size;
    setenv("PTXGEN_DUMP", bench->folder, 1);
    setenv("PTXGEN_CACHE", "off", 1);
    assert_assembled(bench, 6);
    unsetenv("PTXGEN_DUMP");
    assert_int_equal(folder_count(bench->folder, "toy_plus-"), 3);
    assert_true(folder_find(bench->folder, ".cubin", path));
    assert_true(folder_find(bench->folder, ".log", path));
    assert_true(folder_find(bench->folder, ".ptx", path));

    char *text = file_read(path, &size), *six = strstr(text, ", 6, ");
    assert_non_null(six);
    six[2] = '9';
    file_write(path, text, size);
    free(text);
    setenv("PTXGEN_OVERRIDE", bench->folder, 1);
    ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded;
    struct toy_spec spec = {.a = 6, .b = 5}, edited = {.a = 9, .b = 5};
    for (int with_log = 0; with_log < 2; with_log++) {
        ptxgen_dispatch_options options = {.log = with_log ? bench_keep_log : NULL,
                                           .log_user = bench};
        bench->log[0] = '\0';
        assert_int_equal(
            ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, NULL), 0);
        assert_int_equal(ptxgen_dispatch(dispatcher, &toy_plus, &spec, &loaded, NULL), 0);
        assert_int_equal(ptxgen_loaded_report(loaded)->origin,
                         with_log ? PTXGEN_ORIGIN_OVERRIDE : PTXGEN_ORIGIN_ASSEMBLER);
        assert_true(toy_computes(&bench->device.driver, loaded, with_log ? &edited : &spec));
        if (with_log)
            assert_log(bench, ".ptx is loaded INSTEAD of what ptxgen emits");
        ptxgen_release(loaded);
        ptxgen_dispatcher_destroy(dispatcher);
    }
    unsetenv("PTXGEN_OVERRIDE");
    unsetenv("PTXGEN_CACHE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(the_next_dispatcher_gets_the_kernel_from_disk),
        claim(a_manifest_can_be_read),
        claim(the_assemblers_options_are_in_the_key),
        claim(an_older_plan_version_and_another_chip_are_misses),
        claim(the_least_recently_used_entries_go_first),
        claim(an_entry_larger_than_the_cache_is_not_kept),
        claim(clocks_that_jump_lose_nothing_but_order),
        claim(visiting_finds_damage_and_pruning_removes_it),
        claim(the_environment_chooses_folder_size_and_none),
        claim(dumping_writes_text_code_and_log_and_an_edited_text_overrides),
    };
    bench_clear_environment();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
