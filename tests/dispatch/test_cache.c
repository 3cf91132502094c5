/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk cache under dispatch: what hits, and what damage, attacks and a failing disk do. Each
 * dispatch here is by a new dispatcher, as in a new process, and its kernel is run.
 */
#define _GNU_SOURCE
#include "folder.h"
#include "tests/runtime/check.h"
#include "toy.h"

#include "src/runtime/cache_store.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOG_SIZE = 4096 };

struct bench {
    struct toy_device device;
    char folder[FOLDER_PATH];
    uint64_t max_bytes;
    char log[LOG_SIZE]; /* of the last dispatch */
};

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    toy_open(&bench->device, "cpu");
    folder_make(bench->folder);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    chmod(bench->folder, 0700);
    folder_remove(bench->folder);
    toy_close(&bench->device);
    free(bench);
    return 0;
}

static void keep_log(void *user, const char *message)
{
    struct bench *bench = user;
    size_t used = strlen(bench->log);
    snprintf(bench->log + used, LOG_SIZE - used, "%s\n", message);
}

/* Where the kernel came from; it computes the right thing, or this fails. */
static ptxgen_origin get(struct bench *bench, uint32_t a)
{
    struct toy_spec spec = {.a = a, .b = 5};
    ptxgen_cache_options where = {.folder = bench->folder, .max_bytes = bench->max_bytes};
    ptxgen_cache *cache = NULL;
    ptxgen_dispatcher *dispatcher = NULL;
    ptxgen_loaded *loaded = NULL;
    ptxgen_error err = {0};
    bench->log[0] = '\0';
    if (ptxgen_cache_open(&where, &cache, &err) != PTXGEN_OK)
        keep_log(bench, err.message);
    ptxgen_dispatch_options options = {
        .cache = cache, .no_cache = !cache, .log = keep_log, .log_user = bench};
    if (ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, &err) ||
        ptxgen_dispatch(dispatcher, &toy_plus, &spec, &loaded, &err))
        fail_msg("%s", err.message);
    ptxgen_origin origin = ptxgen_loaded_report(loaded)->origin;
    assert_true(toy_computes(&bench->device.driver, loaded, &spec));
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
    ptxgen_cache_close(cache);
    return origin;
}

#define assert_log(bench, words)                                                                   \
    do {                                                                                           \
        if (!strstr((bench)->log, words))                                                          \
            fail_msg("the log lacks \"%s\": %s", words, (bench)->log);                             \
    } while (0)

static void assert_disk(struct bench *bench, uint32_t a)
{
    assert_int_equal(get(bench, a), PTXGEN_ORIGIN_DISK);
    assert_string_equal(bench->log, "");
}

static void assert_assembled(struct bench *bench, uint32_t a)
{
    assert_int_equal(get(bench, a), PTXGEN_ORIGIN_ASSEMBLER);
}

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

/* ---- damage ---- */

/* Damages the file at `path` for each i below its size, and wants a miss that heals it. */
static void damage_each(struct bench *bench, const char *path, bool cut)
{
    size_t size;
    char *whole = file_read(path, &size);
    char *spoilt = malloc(size);
    for (size_t i = 0; i < size; i++) {
        memcpy(spoilt, whole, size);
        spoilt[i] = (char)(spoilt[i] ^ 1 << i % 8);
        file_write(path, cut ? whole : spoilt, cut ? i : size);
        assert_assembled(bench, 1);
        assert_log(bench, "is not used: its ");
        size_t healed_size;
        char *healed = file_read(path, &healed_size);
        assert_int_equal(healed_size, size);
        assert_memory_equal(healed, whole, size);
        free(healed);
    }
    free(whole);
    free(spoilt);
}

static void every_flipped_byte_and_every_cut_is_a_miss(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    assert_assembled(bench, 1);
    for (int i = 0; i < 4; i++) {
        assert_true(folder_find(bench->folder, i % 2 ? ".manifest" : ".cubin", path));
        damage_each(bench, path, i < 2);
    }
    assert_disk(bench, 1);
    assert_int_equal(folder_count(bench->folder, ""), 3);
}

static void a_whole_entry_under_another_key_is_a_miss(void **state)
{
    struct bench *bench = *state;
    char path[2][FOLDER_PATH], second[2][FOLDER_PATH];
    static const char *const suffixes[] = {".cubin", ".manifest"};
    char *stolen[2];
    size_t sizes[2];
    assert_assembled(bench, 1);
    for (int i = 0; i < 2; i++) {
        assert_true(folder_find(bench->folder, suffixes[i], path[i]));
        stolen[i] = file_read(path[i], &sizes[i]);
        unlink(path[i]);
    }
    assert_assembled(bench, 2);
    for (int i = 0; i < 2; i++) {
        assert_true(folder_find(bench->folder, suffixes[i], second[i]));
        file_write(second[i], stolen[i], sizes[i]);
        free(stolen[i]);
    }
    assert_assembled(bench, 2);
    assert_log(bench, "belongs to another key");
    assert_disk(bench, 2);
}

/* An entry that is perfectly in order, but for what is in its cubin. */
static void code_that_the_driver_refuses_is_replaced(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    size_t size;
    assert_assembled(bench, 1);
    assert_true(folder_find(bench->folder, ".manifest", path));
    char *manifest = file_read(path, &size);
    struct manifest_head head;
    head.length = (size_t)(strstr(manifest, "library: ") - manifest);
    memcpy(head.text, manifest, head.length);
    head.key = digest_of(head.text, head.length);
    free(manifest);
    ptxgen_cache *cache;
    assert_int_equal(
        ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL), 0);
    char nonsense[500] = "no cubin at all";
    assert_int_equal(cache_publish(cache, &head, &(ptxgen_cubin){nonsense, sizeof nonsense}, NULL),
                     0);
    ptxgen_cache_close(cache);
    assert_assembled(bench, 1);
    assert_log(bench, "are not a cubin");
    assert_disk(bench, 1);
}

/* ---- attacks ---- */

static void links_pipes_and_files_of_others_are_misses(void **state)
{
    struct bench *bench = *state;
    char cubin[FOLDER_PATH], away[FOLDER_PATH + 8];
    assert_assembled(bench, 1);
    assert_true(folder_find(bench->folder, ".cubin", cubin));
    snprintf(away, sizeof away, "%s/away", bench->folder);

    rename(cubin, away);
    assert_int_equal(symlink(away, cubin), 0);
    assert_assembled(bench, 1);
    assert_log(bench, "it is a symbolic link");
    assert_disk(bench, 1);

    unlink(cubin);
    assert_int_equal(mkfifo(cubin, 0600), 0);
    assert_assembled(bench, 1);
    assert_log(bench, "it is not a plain file");
    assert_disk(bench, 1);

    chmod(cubin, 0622);
    assert_assembled(bench, 1);
    assert_log(bench, "others may write to it");
    assert_disk(bench, 1);

    unlink(cubin);
    assert_int_equal(mkdir(cubin, 0700), 0);
    assert_assembled(bench, 1);
    assert_log(bench, "is not kept on disk");
    rmdir(cubin);
    assert_assembled(bench, 1);
    assert_disk(bench, 1);
}

static void a_folder_that_others_may_write_to_is_refused(void **state)
{
    struct bench *bench = *state;
    char link[FOLDER_PATH + 8];
    ptxgen_cache *cache;
    ptxgen_error err;
    assert_assembled(bench, 1);
    assert_int_equal(chmod(bench->folder, 0770), 0);
    assert_assembled(bench, 1);
    assert_log(bench, "may be written by others (mode 770)");
    chmod(bench->folder, 0700);
    snprintf(link, sizeof link, "%s.link", bench->folder);
    assert_int_equal(symlink(bench->folder, link), 0);
    assert_fails(ptxgen_cache_open(&(ptxgen_cache_options){.folder = link}, &cache, &err),
                 PTXGEN_ERROR_FILE, err, "it is a symbolic link");
    assert_null(cache);
    strcat(link, "/");
    assert_fails(ptxgen_cache_open(&(ptxgen_cache_options){.folder = link}, &cache, &err),
                 PTXGEN_ERROR_FILE, err, "it is a symbolic link");
    link[strlen(link) - 1] = '\0';
    unlink(link);
}

static void a_lock_that_is_a_link_is_not_followed(void **state)
{
    struct bench *bench = *state;
    char lock[FOLDER_PATH + 8], target[FOLDER_PATH + 8];
    snprintf(lock, sizeof lock, "%s/.lock", bench->folder);
    snprintf(target, sizeof target, "%s/victim", bench->folder);
    assert_int_equal(symlink(target, lock), 0);
    assert_assembled(bench, 1);
    assert_log(bench, "cannot be locked");
    assert_int_equal(access(target, F_OK), -1);
}

/* ---- a disk that fails ---- */

static const struct rlimit no_limit = {RLIM_INFINITY, RLIM_INFINITY};

static void a_disk_that_is_full_at_any_byte_costs_only_the_entry(void **state)
{
    struct bench *bench = *state;
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 0; limit < 1200; limit += 97) {
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, RLIM_INFINITY});
        assert_assembled(bench, 1);
        if (limit < 700)
            assert_log(bench, "is not kept on disk");
        setrlimit(RLIMIT_FSIZE, &no_limit);
        assert_int_equal(folder_count(bench->folder, ".tmp-"), 0);
        folder_remove(bench->folder);
    }
    assert_assembled(bench, 1);
    assert_disk(bench, 1);
}

/* Runs `body` in a child; its exit status, or −1 for a signal. The child is not cmocka's. */
static int in_child(int (*body)(struct bench *bench), struct bench *bench)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(body(bench));
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum { CHILD_RIGHT = 0, CHILD_CANNOT = 77 };

static int on_a_tiny_file_system(struct bench *bench)
{
    char size[32];
    for (long pages = 1; pages <= 4; pages++) {
        snprintf(size, sizeof size, "size=%ld", pages * sysconf(_SC_PAGESIZE));
        if (mount("none", bench->folder, "tmpfs", MS_NOSUID | MS_NODEV, size) != 0)
            return CHILD_CANNOT;
        chmod(bench->folder, 0700);
        for (uint32_t a = 0; a < 6; a++) /* two pages an entry */
            if (get(bench, a) != PTXGEN_ORIGIN_ASSEMBLER)
                return 1;
        bool was_full = strstr(bench->log, "is not kept on disk") != NULL;
        if (!was_full || folder_count(bench->folder, ".tmp-") != 0)
            return 2;
        umount(bench->folder);
    }
    return CHILD_RIGHT;
}

static int on_a_read_only_file_system(struct bench *bench)
{
    if (mount("none", bench->folder, "tmpfs", 0, "mode=0700") != 0)
        return CHILD_CANNOT;
    if (get(bench, 1) != PTXGEN_ORIGIN_ASSEMBLER)
        return 1;
    if (mount("none", bench->folder, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return 2;
    if (get(bench, 1) != PTXGEN_ORIGIN_DISK || get(bench, 2) != PTXGEN_ORIGIN_ASSEMBLER)
        return 3;
    return strstr(bench->log, "cannot be locked") ? CHILD_RIGHT : 4;
}

static int with_mounts(struct bench *bench, int (*body)(struct bench *bench))
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return CHILD_CANNOT;
    return body(bench);
}

static int tiny(struct bench *bench)
{
    return with_mounts(bench, on_a_tiny_file_system);
}

static int read_only(struct bench *bench)
{
    return with_mounts(bench, on_a_read_only_file_system);
}

static void assert_right_where_mounting_is_allowed(int (*body)(struct bench *bench),
                                                   struct bench *bench)
{
    int code = in_child(body, bench);
    if (code == CHILD_CANNOT) {
        print_message("SKIP: this user may not mount a tmpfs\n");
        skip();
    }
    assert_int_equal(code, CHILD_RIGHT);
}

static void a_full_file_system_never_fails_a_dispatch(void **state)
{
    assert_right_where_mounting_is_allowed(tiny, *state);
}

static void a_read_only_file_system_still_serves_what_it_has(void **state)
{
    assert_right_where_mounting_is_allowed(read_only, *state);
}

/* Root may do anything, so a child of root becomes nobody. */
static int as_another_user(struct bench *bench)
{
    enum { NOBODY = 65534 };
    if (geteuid() != 0)
        return CHILD_CANNOT;
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        return 1;
    if (get(bench, 1) != PTXGEN_ORIGIN_ASSEMBLER)
        return 2;
    return strstr(bench->log, "cannot be opened") || strstr(bench->log, "belongs to user") ? 0 : 3;
}

static void a_folder_of_another_user_is_refused(void **state)
{
    struct bench *bench = *state;
    assert_assembled(bench, 1);
    for (int i = 0; i < 2; i++) {
        chmod(bench->folder, i ? 0755 : 0700);
        int code = in_child(as_another_user, bench);
        if (code == CHILD_CANNOT) {
            print_message("SKIP: only root can become another user\n");
            skip();
        }
        assert_int_equal(code, CHILD_RIGHT);
    }
}

static void a_folder_that_vanishes_is_made_again(void **state)
{
    struct bench *bench = *state;
    struct stat status;
    assert_assembled(bench, 1);
    folder_remove(bench->folder);
    assert_assembled(bench, 1);
    assert_disk(bench, 1);
    assert_int_equal(stat(bench->folder, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    folder_remove(bench->folder);
    file_write(bench->folder, "a file in its place", 10);
    assert_assembled(bench, 1);
    unlink(bench->folder);
}

static void left_over_temporary_files_are_removed(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH + 32];
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "%s/.tmp-%016d", bench->folder, i);
        file_write(path, "cut", 3);
    }
    snprintf(path, sizeof path, "%s/somebody's", bench->folder);
    file_write(path, "", 0);
    assert_assembled(bench, 1);
    assert_int_equal(folder_count(bench->folder, ".tmp-"), 0);
    assert_int_equal(folder_count(bench->folder, "somebody's"), 1);
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
        ptxgen_dispatch_options options = {.log = with_log ? keep_log : NULL, .log_user = bench};
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

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(the_next_dispatcher_gets_the_kernel_from_disk),
        claim(a_manifest_can_be_read),
        claim(the_assemblers_options_are_in_the_key),
        claim(an_older_plan_version_and_another_chip_are_misses),
        claim(every_flipped_byte_and_every_cut_is_a_miss),
        claim(a_whole_entry_under_another_key_is_a_miss),
        claim(code_that_the_driver_refuses_is_replaced),
        claim(links_pipes_and_files_of_others_are_misses),
        claim(a_folder_that_others_may_write_to_is_refused),
        claim(a_lock_that_is_a_link_is_not_followed),
        claim(a_disk_that_is_full_at_any_byte_costs_only_the_entry),
        claim(a_full_file_system_never_fails_a_dispatch),
        claim(a_read_only_file_system_still_serves_what_it_has),
        claim(a_folder_of_another_user_is_refused),
        claim(a_folder_that_vanishes_is_made_again),
        claim(left_over_temporary_files_are_removed),
        claim(the_least_recently_used_entries_go_first),
        claim(an_entry_larger_than_the_cache_is_not_kept),
        claim(clocks_that_jump_lose_nothing_but_order),
        claim(visiting_finds_damage_and_pruning_removes_it),
        claim(the_environment_chooses_folder_size_and_none),
        claim(dumping_writes_text_code_and_log_and_an_edited_text_overrides),
    };
    static const char *const variables[] = {"PTXGEN_CACHE", "PTXGEN_CACHE_DIR", "PTXGEN_CACHE_SIZE",
                                            "PTXGEN_DUMP", "PTXGEN_OVERRIDE"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
