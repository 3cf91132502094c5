/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose descriptors 0, 1 and 2 are closed, as daemons have it: what the cache opens may
 * get those numbers. For each file that is opened, in turn, that is number 0. Kernels are stored,
 * found, pruned and tuned as ever, and each verb, whether it succeeds or is refused, closes what it
 * has opened.
 */
#define _GNU_SOURCE
#include "cache_bench.h"

#include "src/runtime/tuning.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STANDARD = 3, HIGH = 50 };

/* ---- who gets number 0 ---- */

static int opened, low; /* files since the child began; the number of the one that gets 0 */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, int mode);
int __real_openat64(int folder, const char *path, int flags, ...);
int __wrap_openat64(int folder, const char *path, int flags, int mode);

static int numbered(int descriptor)
{
    if (descriptor < 0 || opened++ == low || descriptor >= HIGH)
        return descriptor;
    int high = fcntl(descriptor, F_DUPFD_CLOEXEC, HIGH);
    close(descriptor);
    return high;
}

int __wrap_open64(const char *path, int flags, int mode)
{
    return numbered(__real_open64(path, flags, mode));
}

int __wrap_openat64(int folder, const char *path, int flags, int mode)
{
    return numbered(__real_openat64(folder, path, flags, mode));
}

/* ---- verbs ---- */

static bool dispatch(struct bench *bench, uint32_t a, ptxgen_origin from, const char *dump)
{
    const ptxgen_dispatch_options options = {
        .cache = NULL, .dump_folder = dump, .log = bench_keep_log, .log_user = bench};
    const struct toy_spec spec = {.a = a, .b = 5};
    ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded;
    *bench->log = '\0';
    if (ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, NULL) != PTXGEN_OK)
        return false;
    bool right = ptxgen_dispatch(dispatcher, &toy_memo, &spec, &loaded, NULL) == PTXGEN_OK;
    if (right) {
        right = ptxgen_loaded_report(loaded)->origin == from;
        ptxgen_release(loaded);
    }
    ptxgen_dispatcher_destroy(dispatcher);
    return right;
}

static bool stores(struct bench *bench)
{
    return dispatch(bench, 1, PTXGEN_ORIGIN_ASSEMBLER, NULL) && !*bench->log;
}

static bool finds(struct bench *bench)
{
    return dispatch(bench, 1, PTXGEN_ORIGIN_DISK, NULL) && !*bench->log;
}

static bool dumps(struct bench *bench)
{
    char folder[FOLDER_PATH + 8], found[FOLDER_PATH];
    snprintf(folder, sizeof folder, "%s/dump", bench->folder);
    return dispatch(bench, 2, PTXGEN_ORIGIN_ASSEMBLER, folder) &&
           folder_find(folder, ".ptx", found) && !*bench->log;
}

static bool heals(struct bench *bench)
{
    char cubin[FOLDER_PATH];
    if (!folder_find(bench->folder, ".cubin", cubin))
        return false;
    file_write(cubin, "damaged", 7);
    bool of_first = dispatch(bench, 1, PTXGEN_ORIGIN_ASSEMBLER, NULL);
    bool of_second = dispatch(bench, 2, PTXGEN_ORIGIN_ASSEMBLER, NULL);
    return of_first != of_second && finds(bench);
}

static int count_entry(void *user, const ptxgen_cache_entry *entry)
{
    *(unsigned *)user += !entry->damage;
    return 0;
}

static bool lists_and_prunes(struct bench *bench)
{
    ptxgen_cache *cache;
    ptxgen_cache_removed removed;
    unsigned count = 0;
    if (ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL))
        return false;
    bool right =
        ptxgen_cache_visit(cache, count_entry, &count, NULL, NULL) == PTXGEN_OK && count == 4;
    right = right && ptxgen_cache_prune(cache, UINT64_MAX, &removed, NULL) == PTXGEN_OK;
    ptxgen_cache_close(cache);
    return right && finds(bench);
}

static bool tunes(struct bench *bench)
{
    static const ptxgen_tuned_range range = {.to_m = 16, .tile = {7}};
    const struct toy_spec spec = {.a = 9};
    ptxgen_family family = toy_plus;
    ptxgen_device_facts facts;
    ptxgen_cache *cache;
    ptxgen_tuning *tuning = NULL;
    family.tiling = &toy_tiling;
    if (ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL) ||
        ptxgen_device_read(&bench->device.driver, 0, &facts, NULL))
        return false;
    const ptxgen_target target = ptxgen_device_target(&facts);
    bool right = true;
    for (int i = 0; i < 2; i++)
        right = right && ptxgen_tuning_store(cache, &facts, &family, &spec, &target, &range, 1,
                                             NULL) == PTXGEN_OK;
    right = right && ptxgen_tuning_load(cache, &facts, &tuning, NULL) == PTXGEN_OK &&
            !ptxgen_tuning_complaint(tuning);
    ptxgen_tuning_free(tuning);
    ptxgen_cache_close(cache);
    return right;
}

static bool is_refused_a_folder_of_all(struct bench *bench)
{
    chmod(bench->folder, 0777);
    bool right = dispatch(bench, 3, PTXGEN_ORIGIN_ASSEMBLER, NULL) && *bench->log;
    chmod(bench->folder, 0700);
    return right;
}

static bool is_refused_a_lock_that_is_a_link(struct bench *bench)
{
    char lock[FOLDER_PATH + 8];
    snprintf(lock, sizeof lock, "%s/.lock", bench->folder);
    unlink(lock);
    if (symlink("/dev/null", lock) != 0)
        return false;
    bool right = dispatch(bench, 4, PTXGEN_ORIGIN_ASSEMBLER, NULL) && *bench->log;
    unlink(lock);
    return right;
}

static const struct verb {
    const char *name;
    bool (*is_right)(struct bench *bench);
} verbs[] = {
    {"stores", stores},
    {"finds", finds},
    {"dumps", dumps},
    {"heals", heals},
    {"lists and prunes", lists_and_prunes},
    {"tunes", tunes},
    {"is refused a folder of all", is_refused_a_folder_of_all},
    {"is refused a lock that is a link", is_refused_a_lock_that_is_a_link},
};
enum { VERBS = sizeof verbs / sizeof *verbs, LEFT_OPEN = 100 };

static int exit_code_of_closed(struct bench *bench, int fd_of_count)
{
    for (int i = 0; i < STANDARD; i++)
        close(i);
    opened = 0;
    for (int v = 0; v < VERBS; v++) {
        if (!verbs[v].is_right(bench))
            return 1 + v;
        for (int i = 0; i < HIGH + STANDARD; i++)
            if ((i < STANDARD || i >= HIGH) && i != fd_of_count && fcntl(i, F_GETFD) != -1)
                return LEFT_OPEN + v;
    }
    return write(fd_of_count, &opened, sizeof opened) == sizeof opened ? 0 : VERBS + 1;
}

/* How many files the child opens. */
static int count_with(struct bench *bench, int number)
{
    int status, count = 0, ends[2];
    low = number;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(exit_code_of_closed(bench, ends[1]));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    int code = WEXITSTATUS(status);
    if (code)
        fail_msg("number %d: %s: %s", number, verbs[(code - 1) % (LEFT_OPEN - 1)].name,
                 code < LEFT_OPEN ? "not so" : "a descriptor is left open");
    assert_int_equal(read(ends[0], &count, sizeof count), sizeof count);
    close(ends[0]);
    close(ends[1]);
    return count;
}

static void closed_standard_descriptors_are_numbers_like_others(void **state)
{
    struct bench *bench = *state;
    int count = 1;
    setenv("PTXGEN_CACHE_DIR", bench->folder, 1);
    for (int i = 0; i < count; i++) {
        int now = count_with(bench, i);
        count = i ? count : now;
        folder_remove(bench->folder);
    }
    unsetenv("PTXGEN_CACHE_DIR");
    assert_true(count > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(closed_standard_descriptors_are_numbers_like_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
