/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 64 };
extern char **environ;

void fresh_path(char path[40])
{
    strcpy(path, "/tmp/ptxgen-convert-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
}

/* All of a stream that a finished process wrote. */
static char *read_all(FILE *stream, size_t *length)
{
    fseek(stream, 0, SEEK_END);
    *length = (size_t)ftell(stream);
    rewind(stream);
    char *text = calloc(*length + 1, 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, *length, stream), *length);
    fclose(stream);
    return text;
}

struct outcome run_program(const char *const *argv)
{
    struct outcome outcome;
    FILE *out = tmpfile(), *err = tmpfile();
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;
    size_t length;
    assert_non_null(out);
    assert_non_null(err);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(err), STDERR_FILENO);
    if (posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ))
        fail_msg("%s does not start", argv[0]);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.out = read_all(out, &outcome.out_length);
    outcome.err = read_all(err, &length);
    return outcome;
}

struct outcome run_command(const char *const *arguments)
{
    const char *argv[MAX_ARGUMENTS + 2] = {PTXGEN_COMMAND};
    for (int i = 0; arguments[i]; i++) {
        assert_true(i < MAX_ARGUMENTS);
        argv[i + 1] = arguments[i];
    }
    return run_program(argv);
}

void outcome_free(struct outcome *outcome)
{
    free(outcome->out);
    free(outcome->err);
}

void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

void assert_exit(const struct outcome *outcome, int code)
{
    if (outcome->code != code)
        fail_msg("exit code %d, not %d; stderr: %s stdout: %.2000s", outcome->code, code,
                 outcome->err, outcome->out);
}

void assert_refused(const char *const *arguments, int code, const char *part)
{
    struct outcome o = run_command(arguments);
    assert_exit(&o, code);
    assert_contains(o.err, part);
    outcome_free(&o);
}
