/* SPDX-License-Identifier: Apache-2.0 */
/* What the command's output files replace, keep and leave behind; and a full standard output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command.h"
#include "src/cli/output_file.h"
#include "tests/dispatch/folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAYERS GOLDEN_DIR "/marlin_g128.safetensors"
#define SPARSE GOLDEN_DIR "/sparse24_torch.safetensors"
#define EMIT "emit", "rmsnorm_q4k", "--k", "256", "--n", "8", "-o"

static char folder[FOLDER_PATH], path[FOLDER_PATH + 16], other[FOLDER_PATH + 16];

static int setup(void **state)
{
    (void)state;
    folder_make(folder);
    snprintf(path, sizeof path, "%s/out", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static void assert_file_is(const char *file, const char *text)
{
    size_t size;
    char *bytes = file_read(file, &size);
    if (size != strlen(text) || memcmp(bytes, text, size) != 0)
        fail_msg("%s has %zu bytes, not \"%s\"", file, size, text);
    free(bytes);
}

static void assert_file_begins(const char *file, const char *text)
{
    size_t size;
    char *bytes = file_read(file, &size);
    assert_true(size >= strlen(text) && memcmp(bytes, text, strlen(text)) == 0);
    free(bytes);
}

static mode_t mode_of(const char *file)
{
    struct stat st;
    assert_int_equal(lstat(file, &st), 0);
    return st.st_mode;
}

#define succeeds(...)                                                                              \
    do {                                                                                           \
        struct outcome o_ = run(__VA_ARGS__);                                                      \
        assert_exit(&o_, 0);                                                                       \
        outcome_free(&o_);                                                                         \
    } while (0)

/* ---- files ---- */

static void a_file_that_is_there_is_replaced_only_by_force(void **state)
{
    (void)state;
    file_write(path, "old", 3);
    assert_refuses(4, "is there already; --force replaces it", EMIT, path);
    assert_refuses(4, "is there already; --force", "convert", LAYERS, path, "--to", "awq");
    assert_refuses(4, "is there already; --force", "convert", "sparse24", SPARSE, path, "--to",
                   "bitmask");
    assert_refuses(4, "is there already; --force", "bench", "marlin", "--device", "cpu", "--plot",
                   path, "--shape", "128x64");
    assert_file_is(path, "old");
    succeeds(EMIT, path, "--force");
    assert_file_begins(path, ".version");
    succeeds("convert", LAYERS, path, "--to", "awq", "--force");
    succeeds("convert", "sparse24", SPARSE, path, "--to", "bitmask", "--force");
    assert_int_equal(folder_count(folder, ""), 1);
}

static void a_new_file_has_the_modes_of_the_umask_and_an_old_one_keeps_its_own(void **state)
{
    (void)state;
    mode_t mask = umask(027);
    succeeds(EMIT, path);
    umask(mask);
    assert_int_equal(mode_of(path) & 07777, 0640);
    assert_int_equal(chmod(path, 0604), 0);
    succeeds(EMIT, path, "--force");
    assert_int_equal(mode_of(path) & 07777, 0604);
}

static void a_file_is_converted_in_place_by_force_and_whole(void **state)
{
    (void)state;
    size_t size, wanted;
    char *bytes = file_read(LAYERS, &size);
    file_write(path, bytes, size);
    assert_int_equal(chmod(path, 0600), 0);
    assert_refuses(4, "--force replaces it", "convert", path, path, "--to", "awq");
    succeeds("convert", path, path, "--to", "awq", "--force");
    succeeds("convert", LAYERS, other, "--to", "awq");
    free(bytes);
    bytes = file_read(path, &size);
    char *right = file_read(other, &wanted);
    assert_int_equal(size, wanted);
    assert_memory_equal(bytes, right, size);
    assert_int_equal(mode_of(path) & 07777, 0600);
    free(bytes);
    free(right);
}

static void a_link_stays_and_its_target_is_written(void **state)
{
    (void)state;
    file_write(other, "old", 3);
    assert_int_equal(symlink("other", path), 0);
    assert_refuses(4, "is there already", EMIT, path);
    succeeds(EMIT, path, "--force");
    assert_true(S_ISLNK(mode_of(path)));
    assert_true(S_ISREG(mode_of(other)));
    assert_file_begins(other, ".version");
    unlink(other);
    succeeds(EMIT, path); /* a link to nothing yet */
    assert_true(S_ISLNK(mode_of(path)));
    assert_file_begins(other, ".version");
    unlink(other);
    assert_int_equal(symlink("out", other), 0); /* a circle */
    assert_refuses(4, "cannot be written: Too many levels", EMIT, path, "--force");
}

static void folders_sockets_and_places_that_are_not_there_are_refused(void **state)
{
    (void)state;
    assert_refuses(4, "is a folder, which is not written to", EMIT, folder, "--force");
    assert_refuses(4, "cannot be written: No such file", EMIT, "/nonexistent/out");
    assert_refuses(4, "cannot be written: Not a directory", EMIT, "/dev/null/out");
    assert_refuses(4, "has no name", EMIT, "");
}

static void a_pipe_is_written_and_stays(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t reader = fork();
    if (reader == 0) {
        char first[8] = "", rest[4096];
        int fd = open(path, O_RDONLY);
        ssize_t got = read(fd, first, sizeof first);
        while (got > 0)
            got = read(fd, rest, sizeof rest);
        _exit(memcmp(first, ".version", 8) != 0);
    }
    succeeds(EMIT, path);
    int status;
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    assert_true(S_ISFIFO(mode_of(path)));
    assert_refuses(4, "nothing reads from it", EMIT, path);
}

static void devices_and_descriptors_are_written_as_they_are(void **state)
{
    (void)state;
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1"};
    succeeds(EMIT, "/dev/null");
    assert_true(S_ISCHR(mode_of("/dev/null")));
    for (int i = 0; i < 3; i++) {
        struct outcome o = run(EMIT, names[i]);
        assert_exit(&o, 0);
        assert_int_equal(strncmp(o.out, ".version", 8), 0);
        outcome_free(&o);
    }
    struct outcome o = run("convert", LAYERS, "-", "--to", "awq");
    assert_exit(&o, 0);
    assert_contains(o.err, "-: 2 layers as awq, 4 other tensors copied");
    succeeds("convert", LAYERS, path, "--to", "awq");
    size_t size;
    char *bytes = file_read(path, &size);
    assert_int_equal(o.out_length, size);
    assert_memory_equal(o.out, bytes, size);
    free(bytes);
    outcome_free(&o);
}

/* ---- failures ---- */

/* Of the shell, which limits what the command may write. */
static struct outcome run_shell(const char *script, const char *argument)
{
    return run_program((const char *const[]){"sh", "-c", script, PTXGEN_COMMAND, argument, NULL});
}

static void a_failure_keeps_the_old_file_and_leaves_no_other(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "ulimit -f 1; exec \"$0\" emit dense --n 4096 --k 4096 -o \"$1\" --force",
        "ulimit -f 1; exec \"$0\" convert " LAYERS " \"$1\" --to awq --force"};
    file_write(path, "old", 3);
    for (int i = 0; i < 2; i++) {
        struct outcome o = run_shell(scripts[i], path);
        assert_exit(&o, 4);
        assert_contains(o.err, "cannot be written: File too large");
        outcome_free(&o);
        assert_file_is(path, "old");
        assert_int_equal(folder_count(folder, ""), 1);
    }
}

/* A process that is ended by a signal in the middle of its output. */
static int end_by_signal(int number)
{
    pid_t process = fork();
    if (process == 0) {
        struct output_file *out;
        ptxgen_error err;
        signal(number, SIG_DFL);
        if (output_file_open(path, true, &out, &err) != PTXGEN_OK ||
            output_file_write(out, "new", 3, &err) != PTXGEN_OK || folder_count(folder, "") != 2)
            _exit(1);
        raise(number);
        _exit(2);
    }
    int status;
    assert_int_equal(waitpid(process, &status, 0), process);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void a_signal_keeps_the_old_file_and_leaves_no_other(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE,
                                  SIGXFSZ, SIGXCPU, SIGUSR1, SIGALRM};
    file_write(path, "old", 3);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        assert_int_equal(end_by_signal(signals[i]), signals[i]);
        assert_file_is(path, "old");
        assert_int_equal(folder_count(folder, ""), 1);
    }
}

/* Between the question whether a file is there and its creation another may appear. */
static void a_file_that_appears_meanwhile_is_not_replaced(void **state)
{
    (void)state;
    struct output_file *out;
    ptxgen_error err;
    assert_int_equal(output_file_open(path, false, &out, &err), PTXGEN_OK);
    file_write(path, "another's", 9);
    assert_int_equal(output_file_write(out, "new", 3, &err), PTXGEN_OK);
    assert_int_equal(output_file_finish(out, &err), PTXGEN_ERROR_FILE);
    assert_contains(err.message, "cannot be written: File exists");
    assert_file_is(path, "another's");
    assert_int_equal(folder_count(folder, ""), 1);
}

/* ---- the standard output ---- */

static void a_full_standard_output_is_a_failed_file(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "--help",
        "--version",
        "--usage",
        "list",
        "list --help",
        "devices",
        "emit rmsnorm_q4k --k 256 --n 8",
        "emit --help",
        "emit rmsnorm_q4k --help",
        "inspect rmsnorm_q4k --k 256 --n 8",
        "run rmsnorm_q4k --k 256 --n 8 --device cpu",
        "run marlin --random-specs 1 --device cpu",
        "profile rmsnorm_q4k --k 256 --n 8 --device cpu",
        "bench rmsnorm_q4k --k 256 --n 8 --device cpu --replays 1 --launches 1",
        "tune marlin --k 128 --n 64 --device cpu --replays 1 --m 1 --dry-run",
        "convert " LAYERS " - --to awq",
        "convert " LAYERS " /dev/full --to awq",
        "emit rmsnorm_q4k --k 256 --n 8 -o /dev/full",
        "cache --help",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char script[256];
        snprintf(script, sizeof script, "exec \"$0\" %s >/dev/full", commands[i]);
        struct outcome o = run_shell(script, path);
        if (o.code != 4 || !strstr(o.err, "cannot be written"))
            fail_msg("%s: exit code %d, stderr: %s", commands[i], o.code, o.err);
        outcome_free(&o);
        assert_true(S_ISCHR(mode_of("/dev/full")));
    }
}

static void a_closed_standard_output_is_one_too_and_no_file_takes_its_place(void **state)
{
    (void)state;
    struct outcome o = run_shell("exec \"$0\" list >&-", path);
    assert_exit(&o, 4);
    outcome_free(&o);
    o = run_shell("exec \"$0\" emit rmsnorm_q4k --k 256 --n 8 -o \"$1\" >&-", path);
    assert_exit(&o, 0);
    assert_file_begins(path, ".version");
    outcome_free(&o);
    o = run_shell("exec \"$0\" convert " LAYERS " \"$1\" --to awq --force >&-", path);
    assert_exit(&o, 4); /* the sentence of what was done is lost, the file is not */
    outcome_free(&o);
    succeeds("convert", LAYERS, other, "--to", "awq");
    size_t size, wanted;
    char *bytes = file_read(path, &size), *right = file_read(other, &wanted);
    assert_int_equal(size, wanted);
    assert_memory_equal(bytes, right, size);
    free(bytes);
    free(right);
}

#define with_folder(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_folder(a_file_that_is_there_is_replaced_only_by_force),
        with_folder(a_new_file_has_the_modes_of_the_umask_and_an_old_one_keeps_its_own),
        with_folder(a_file_is_converted_in_place_by_force_and_whole),
        with_folder(a_link_stays_and_its_target_is_written),
        with_folder(folders_sockets_and_places_that_are_not_there_are_refused),
        with_folder(a_pipe_is_written_and_stays),
        with_folder(devices_and_descriptors_are_written_as_they_are),
        with_folder(a_failure_keeps_the_old_file_and_leaves_no_other),
        with_folder(a_signal_keeps_the_old_file_and_leaves_no_other),
        with_folder(a_file_that_appears_meanwhile_is_not_replaced),
        with_folder(a_full_standard_output_is_a_failed_file),
        with_folder(a_closed_standard_output_is_one_too_and_no_file_takes_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
