/* SPDX-License-Identifier: Apache-2.0 */
/* What damage, attacks and a failing disk do to the disk cache: misses, never wrong code. */
#define _GNU_SOURCE
#include "cache_bench.h"

#include "src/runtime/cache_folder.h"
#include "src/runtime/cache_store.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- damage ---- */

static void every_flipped_byte_and_every_cut_is_a_miss(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    assert_assembled(bench, 1);
    for (int i = 0; i < 4; i++) {
        assert_true(folder_find(bench->folder, i % 2 ? ".manifest" : ".cubin", path));
        assert_damage_heals(bench, path, i < 2, assert_assembled);
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
    struct keyed_text head;
    head.length = (size_t)(strstr(manifest, "library: ") - manifest);
    memcpy(head.text, manifest, head.length);
    head.key = digest_of(head.text, head.length);
    free(manifest);
    ptxgen_cache *cache;
    assert_int_equal(
        ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL), 0);
    char nonsense[500] = "no cubin at all";
    const struct publication publication = {.head = &head,
                                            .cubin = &(ptxgen_cubin){nonsense, sizeof nonsense}};
    assert_int_equal(cache_publish(cache, &publication, NULL), 0);
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
    assert_log(bench, "cannot be locked: it is not writable, or another process is writing to it");
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
            if (bench_get(bench, a) != PTXGEN_ORIGIN_ASSEMBLER)
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
    if (bench_get(bench, 1) != PTXGEN_ORIGIN_ASSEMBLER)
        return 1;
    if (mount("none", bench->folder, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return 2;
    if (bench_get(bench, 1) != PTXGEN_ORIGIN_DISK || bench_get(bench, 2) != PTXGEN_ORIGIN_ASSEMBLER)
        return 3;
    return strstr(bench->log, "cannot be locked") ? CHILD_RIGHT : 4;
}

static bool write_line(const char *path, const char *line)
{
    FILE *file = fopen(path, "w");
    bool written = file && fputs(line, file) >= 0;
    return file && fclose(file) == 0 && written;
}

static bool map_own_id(const char *path, unsigned long id)
{
    char line[64];
    snprintf(line, sizeof line, "%lu %lu 1", id, id);
    return write_line(path, line);
}

/* Only root may mount, or who is alone in a name space of users and groups. */
static bool may_mount(void)
{
    unsigned long user = geteuid(), group = getegid();
    if (unshare(CLONE_NEWNS) != 0 &&
        (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !map_own_id("/proc/self/uid_map", user) ||
         !write_line("/proc/self/setgroups", "deny") || !map_own_id("/proc/self/gid_map", group)))
        return false;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static int with_mounts(struct bench *bench, int (*body)(struct bench *bench))
{
    return may_mount() ? body(bench) : CHILD_CANNOT;
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
        print_message("this user may not mount a tmpfs, even in a name space of its own\n");
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

/* Root may do anything, so a child of root becomes nobody. To others, `/` is another user's. */
static int as_another_user(struct bench *bench)
{
    enum { NOBODY = 65534 };
    if (geteuid() != 0)
        snprintf(bench->folder, sizeof bench->folder, "/");
    else if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        return 1;
    if (bench_get(bench, 1) != PTXGEN_ORIGIN_ASSEMBLER)
        return 2;
    return strstr(bench->log, "cannot be opened") || strstr(bench->log, "belongs to user") ? 0 : 3;
}

static void a_folder_of_another_user_is_refused(void **state)
{
    struct bench *bench = *state;
    assert_assembled(bench, 1);
    for (int i = 0; i < 2; i++) {
        chmod(bench->folder, i ? 0755 : 0700);
        assert_int_equal(in_child(as_another_user, bench), CHILD_RIGHT);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    bench_clear_environment();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
