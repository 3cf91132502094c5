/* SPDX-License-Identifier: Apache-2.0 */
/* The standard output: nothing that a user was to see is lost without a word. */
#include "exit_code.h"
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* argp ends the process inside of --help, so the check is one of the process's end. */
static void check_at_exit(void)
{
    errno = 0;
    bool failed = ferror(stdout) != 0;
    failed |= fflush(stdout) != 0;
    int reason = errno;
    if (fclose(stdout) != 0 && !failed) {
        failed = true;
        reason = errno;
    }
    if (!failed)
        return;
    fprintf(stderr, "ptxgen: standard output cannot be written%s%s\n", reason ? ": " : "",
            reason ? strerror(reason) : "");
    _exit(EXIT_FILE);
}

/* A closed descriptor becomes one that cannot be used the way it is meant to be. */
static void occupy(int descriptor, int flags)
{
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF && open("/dev/null", flags) < 0)
        _exit(EXIT_FILE);
}

void standard_output_start(void)
{
    occupy(STDIN_FILENO, O_WRONLY);
    occupy(STDOUT_FILENO, O_RDONLY);
    occupy(STDERR_FILENO, O_WRONLY);
    signal(SIGXFSZ, SIG_IGN);
    if (atexit(check_at_exit) != 0)
        _exit(EXIT_INTERNAL);
}
