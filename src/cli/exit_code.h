/* SPDX-License-Identifier: Apache-2.0 */
/** What the process's exit code says; `ptxgen --help` prints the same table. */
#ifndef PTXGEN_CLI_EXIT_CODE_H
#define PTXGEN_CLI_EXIT_CODE_H

#include <ptxgen/status.h>

enum exit_code {
    EXIT_OK = 0,
    EXIT_WRONG_NUMBERS = 1,
    EXIT_USAGE = 2,
    EXIT_NO_DEVICE = 3,
    EXIT_FILE = 4,
    EXIT_INTERNAL = 5,
    EXIT_DEVICE_FAILED = 6
};

/** The table as lines of help text. */
#define EXIT_CODE_HELP                                                                             \
    "Exit codes:\n"                                                                                \
    "  0  done; for run: every output is within its bound\n"                                       \
    "  1  run computed wrong numbers, or wrote where it must not\n"                                \
    "  2  usage: an option, or a problem that the family refuses\n"                                \
    "  3  no driver, or no device of that name\n"                                                  \
    "  4  a file cannot be read or written, is malformed, or lacks a tensor\n"                     \
    "  5  internal: the builder refused its own kernel, or memory ran out\n"                       \
    "  6  the driver, its assembler or a kernel failed on the device"

/** The code for a failure of the library or of a reader. */
enum exit_code exit_code_of(ptxgen_status status);
/** Prints "ptxgen: sentence" to stderr and returns the code. */
enum exit_code report_failure(const ptxgen_error *err);
/** The same with what it prevented: "ptxgen: marlin was not run: sentence". */
enum exit_code report_undone(const char *subject, const char *verb, const ptxgen_error *err);

#endif
