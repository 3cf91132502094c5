/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is on disk stays there when one read of it fails, when its name only looks like one of ours,
 * and when a folder is not to be trusted; a file that ends early is not used. read() is wrapped by
 * the linker.
 */
#define _GNU_SOURCE
#include "cache_bench.h"

#include "src/runtime/cache_folder.h"

#include <ptxgen/device.h>
#include <ptxgen/marlin.h>
#include <ptxgen/tune.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void assert_ok(ptxgen_status status, const ptxgen_error *err)
{
    if (status != PTXGEN_OK)
        fail_msg("%s", err->message);
}

static bool reads_fail;
static bool files_end; /* with their first byte */

ssize_t __real_read(int file, void *bytes, size_t size);
ssize_t __wrap_read(int file, void *bytes, size_t size);
ssize_t __wrap_read(int file, void *bytes, size_t size)
{
    if (files_end)
        size = lseek(file, 0, SEEK_CUR) == 0 && size ? 1 : 0;
    if (!reads_fail)
        return __real_read(file, bytes, size);
    errno = EIO;
    return -1;
}

static ptxgen_cache *open_cache(const struct bench *bench)
{
    ptxgen_cache *cache;
    ptxgen_error err = {0};
    assert_ok(ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, &err),
              &err);
    return cache;
}

static char *path_of(const struct bench *bench, const char *name)
{
    static char path[FOLDER_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", bench->folder, name);
    return path;
}

/* ---- tuning ---- */

static ptxgen_marlin_spec marlin_of(uint32_t n)
{
    return (ptxgen_marlin_spec){.k = 1024, .n = n, .group_size = 128, .type = PTXGEN_F16};
}

static ptxgen_status store(struct bench *bench, uint32_t n, ptxgen_error *err)
{
    const ptxgen_family *family = ptxgen_marlin_family();
    const ptxgen_marlin_spec spec = marlin_of(n);
    ptxgen_device_facts facts;
    ptxgen_marlin_plan plan;
    ptxgen_tuned_range range = {.to_m = UINT32_MAX};
    assert_int_equal(ptxgen_device_read(&bench->device.driver, 0, &facts, NULL), PTXGEN_OK);
    ptxgen_target target = ptxgen_device_target(&facts);
    assert_int_equal(ptxgen_marlin_make_plan(&spec, &target, &plan, NULL), PTXGEN_OK);
    assert_true(family->tiling->candidate(&plan, 0, range.tile));
    ptxgen_cache *cache = open_cache(bench);
    ptxgen_status status =
        ptxgen_tuning_store(cache, &facts, family, &spec, &target, &range, 1, err);
    ptxgen_cache_close(cache);
    return status;
}

static size_t stored(struct bench *bench, uint32_t n)
{
    const ptxgen_marlin_spec spec = marlin_of(n);
    ptxgen_tuned_range ranges[PTXGEN_TUNED_RANGES];
    ptxgen_device_facts facts;
    ptxgen_tuning *tuning;
    assert_int_equal(ptxgen_device_read(&bench->device.driver, 0, &facts, NULL), PTXGEN_OK);
    ptxgen_target target = ptxgen_device_target(&facts);
    ptxgen_cache *cache = open_cache(bench);
    assert_int_equal(ptxgen_tuning_load(cache, &facts, &tuning, NULL), PTXGEN_OK);
    size_t count = ptxgen_tuning_find(tuning, ptxgen_marlin_family(), &spec, &target, ranges);
    ptxgen_tuning_free(tuning);
    ptxgen_cache_close(cache);
    return count;
}

static void a_choice_is_not_stored_over_a_table_that_cannot_be_read(void **state)
{
    struct bench *bench = *state;
    ptxgen_error err = {0};
    assert_ok(store(bench, 1024, &err), &err);
    reads_fail = true;
    ptxgen_status status = store(bench, 2048, &err);
    reads_fail = false;
    assert_int_equal(status, PTXGEN_ERROR_FILE);
    assert_says(err, "it cannot be read");
    assert_int_equal(stored(bench, 1024), 1);
    assert_int_equal(stored(bench, 2048), 0);
    assert_ok(store(bench, 2048, &err), &err);
    assert_int_equal(stored(bench, 1024), 1);
    assert_int_equal(stored(bench, 2048), 1);
}

/* ---- entries ---- */

/* As where a file is cut after its length was asked for. */
static void a_file_that_ends_early_is_not_used(void **state)
{
    struct bench *bench = *state;
    struct contents contents = {.bytes = NULL};
    const char *why;
    file_write(path_of(bench, "entry"), "nine byte", 9);
    int folder = open(bench->folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(folder_read(folder, "entry", 9, &contents, &why), READING_WHOLE);
    assert_string_equal((char *)contents.bytes, "nine byte");
    free(contents.bytes);
    files_end = true;
    enum reading reading = folder_read(folder, "entry", 9, &contents, &why);
    files_end = false;
    close(folder);
    assert_int_equal(reading, READING_DAMAGED);
    assert_string_equal(why, "it cannot be read to its end");
    assert_null(contents.bytes);
}

static void pruning_leaves_what_cannot_be_read_and_says_so(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache_removed removed;
    ptxgen_error err = {0};
    bench->family = &toy_memo;
    assert_assembled(bench, 1);
    size_t files = folder_count(bench->folder, "");
    ptxgen_cache *cache = open_cache(bench);
    reads_fail = true;
    ptxgen_status status = ptxgen_cache_prune(cache, 1 << 30, &removed, &err);
    reads_fail = false;
    assert_int_equal(status, PTXGEN_ERROR_FILE);
    assert_says(err, "2 of the entries and memos in ");
    assert_int_equal(removed.entries + removed.strays, 0);
    assert_int_equal(folder_count(bench->folder, ""), files);
    assert_ok(ptxgen_cache_prune(cache, 1 << 30, &removed, &err), &err);
    ptxgen_cache_close(cache);
    assert_recalled(bench, 1);
}

static void only_temporaries_of_our_own_are_removed(void **state)
{
    static const char *const others[] = {".tmp-", ".tmp-1", ".tmp-0123456789abcdef0",
                                         ".tmp-0123456789ABCDEF", ".tmp-0123456789abcdef.o"};
    struct bench *bench = *state;
    ptxgen_cache *cache = open_cache(bench);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        file_write(path_of(bench, others[i]), "mine", 4);
    file_write(path_of(bench, ".tmp-0123456789abcdef"), "half", 4);
    assert_int_equal(mkdir(path_of(bench, ".tmp-fedcba9876543210"), 0700), 0);
    assert_assembled(bench, 1);
    assert_int_equal(access(path_of(bench, ".tmp-0123456789abcdef"), F_OK), -1);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            assert_int_equal(access(path_of(bench, others[i]), F_OK), 0);
        assert_int_equal(access(path_of(bench, ".tmp-fedcba9876543210"), F_OK), 0);
        if (round == 0)
            assert_int_equal(ptxgen_cache_prune(cache, 1 << 30, NULL, NULL), PTXGEN_OK);
        else
            assert_int_equal(ptxgen_cache_clear(cache, NULL, NULL), PTXGEN_OK);
    }
    ptxgen_cache_close(cache);
}

static void an_empty_name_is_not_the_default_folder(void **state)
{
    ptxgen_cache *cache;
    ptxgen_error err = {0};
    (void)state;
    assert_fails(ptxgen_cache_open(&(ptxgen_cache_options){.folder = ""}, &cache, &err),
                 PTXGEN_ERROR_INVALID_ARGUMENT, err, "name of the cache folder is empty");
    assert_null(cache);
}

/* ---- the report ---- */

/* What the report of a dispatch with these options says, compared with `words`; NULL: kept. */
static void expect_report(struct bench *bench, const ptxgen_dispatch_options *options,
                          const char *words)
{
    struct toy_spec spec = {.a = 6, .b = 5};
    ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded;
    assert_int_equal(ptxgen_dispatcher_create(&bench->device.driver, options, &dispatcher, NULL),
                     PTXGEN_OK);
    assert_int_equal(ptxgen_dispatch(dispatcher, &toy_plus, &spec, &loaded, NULL), PTXGEN_OK);
    const char *not_kept = ptxgen_loaded_report(loaded)->not_kept;
    if (!words != !not_kept || (words && !strstr(not_kept, words)))
        fail_msg("expected '%s', not '%s'", words ? words : "", not_kept ? not_kept : "");
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
}

static void a_report_says_whether_the_code_is_kept(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache = open_cache(bench), *small;
    const ptxgen_cache_options tiny = {.folder = bench->folder, .max_bytes = 1};
    assert_int_equal(ptxgen_cache_open(&tiny, &small, NULL), PTXGEN_OK);
    expect_report(bench, &(ptxgen_dispatch_options){.no_cache = true}, "told to use no disk cache");
    expect_report(bench, &(ptxgen_dispatch_options){.cache = small},
                  "is larger than the whole cache may be, 1");
    setenv("PTXGEN_CACHE", "off", 1);
    expect_report(bench, &(ptxgen_dispatch_options){.cache = cache}, "PTXGEN_CACHE switches");
    unsetenv("PTXGEN_CACHE");
    expect_report(bench, &(ptxgen_dispatch_options){.cache = cache}, NULL);
    expect_report(bench, &(ptxgen_dispatch_options){.cache = cache}, NULL); /* from disk */
    ptxgen_cache_close(small);
    ptxgen_cache_close(cache);
}

/* ---- dumping and overriding ---- */

/* Dumps kernel 6 into the folder, and finds its text. */
static void dump_text(struct bench *bench, char path[FOLDER_PATH])
{
    setenv("PTXGEN_DUMP", bench->folder, 1);
    setenv("PTXGEN_CACHE", "off", 1);
    assert_assembled(bench, 6);
    unsetenv("PTXGEN_DUMP");
    assert_true(folder_find(bench->folder, ".ptx", path));
}

static void a_dump_replaces_links_and_does_not_follow_them(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    struct stat status;
    size_t size;
    dump_text(bench, path);
    file_write(path_of(bench, "victim"), "precious", 8);
    unlink(path);
    assert_int_equal(symlink(path_of(bench, "victim"), path), 0);
    dump_text(bench, path);
    char *victim = file_read(path_of(bench, "victim"), &size);
    assert_int_equal(size, 8);
    assert_memory_equal(victim, "precious", 8);
    free(victim);
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISREG(status.st_mode));
    bench_clear_environment();
}

static void an_override_that_others_could_have_written_is_ignored(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH], link[FOLDER_PATH + 8], away[FOLDER_PATH + 8];
    dump_text(bench, path);
    assert_int_equal(bench_get_past_cache(bench, NULL, bench->folder), PTXGEN_ORIGIN_OVERRIDE);

    chmod(bench->folder, 0770);
    assert_int_equal(bench_get_past_cache(bench, NULL, bench->folder), PTXGEN_ORIGIN_ASSEMBLER);
    assert_log(bench, "PTXGEN_OVERRIDE is ignored: the folder ");
    assert_log(bench, "may be written by others (mode 770)");
    chmod(bench->folder, 0755);
    assert_int_equal(bench_get_past_cache(bench, NULL, bench->folder), PTXGEN_ORIGIN_OVERRIDE);

    snprintf(link, sizeof link, "%s.link", bench->folder);
    assert_int_equal(symlink(bench->folder, link), 0);
    assert_int_equal(bench_get_past_cache(bench, NULL, link), PTXGEN_ORIGIN_ASSEMBLER);
    assert_log(bench, "it is a symbolic link");
    strcat(link, "/");
    assert_int_equal(bench_get_past_cache(bench, NULL, link), PTXGEN_ORIGIN_ASSEMBLER);
    link[strlen(link) - 1] = '\0';
    unlink(link);

    chmod(path, 0666);
    assert_int_equal(bench_get_past_cache(bench, NULL, bench->folder), PTXGEN_ORIGIN_ASSEMBLER);
    assert_log(bench, ".ptx is not used: others may write to it");
    chmod(path, 0644);
    snprintf(away, sizeof away, "%s/away", bench->folder);
    rename(path, away);
    assert_int_equal(symlink(away, path), 0);
    assert_int_equal(bench_get_past_cache(bench, NULL, bench->folder), PTXGEN_ORIGIN_ASSEMBLER);
    assert_log(bench, ".ptx is not used: it is a symbolic link");
    bench_clear_environment();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(a_choice_is_not_stored_over_a_table_that_cannot_be_read),
        claim(a_file_that_ends_early_is_not_used),
        claim(pruning_leaves_what_cannot_be_read_and_says_so),
        claim(only_temporaries_of_our_own_are_removed),
        claim(an_empty_name_is_not_the_default_folder),
        claim(a_report_says_whether_the_code_is_kept),
        claim(a_dump_replaces_links_and_does_not_follow_them),
        claim(an_override_that_others_could_have_written_is_ignored),
    };
    bench_clear_environment();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
