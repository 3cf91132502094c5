/* SPDX-License-Identifier: Apache-2.0 */
/* Running the ptxgen command from a test. */
#ifndef PTXGEN_TESTS_CLI_COMMAND_H
#define PTXGEN_TESTS_CLI_COMMAND_H

#include <stddef.h>

/* What a finished process left. The texts are NUL-terminated. */
struct outcome {
    int code; /* of the exit; 128 + signal when it was killed */
    char *out, *err;
    size_t out_length;
};

/* A name in /tmp that no file has. */
void fresh_path(char path[40]);

/* Runs ptxgen with these arguments, the last of which is NULL. */
struct outcome run_command(const char *const *arguments);
#define run(...) run_command((const char *const[]){__VA_ARGS__, NULL})
/* Runs any program, found by PATH. */
struct outcome run_program(const char *const *argv);
void outcome_free(struct outcome *outcome);

/* Fails the test unless `text` contains `part`. */
void assert_contains(const char *text, const char *part);
/* Fails the test, showing stderr, unless the code is this one. */
void assert_exit(const struct outcome *outcome, int code);
/* Runs, wants the code and that stderr has `part`; frees the outcome. */
void assert_refused(const char *const *arguments, int code, const char *part);
#define assert_refuses(code, part, ...)                                                            \
    assert_refused((const char *const[]){__VA_ARGS__, NULL}, code, part)

#endif
