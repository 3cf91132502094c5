/* SPDX-License-Identifier: Apache-2.0 */
#include "exit_code.h"

#include <stdio.h>

static const struct {
    ptxgen_status status;
    enum exit_code code;
} codes[] = {
    {PTXGEN_OK, EXIT_OK},
    {PTXGEN_ERROR_INVALID_ARGUMENT, EXIT_USAGE},
    {PTXGEN_ERROR_UNSUPPORTED, EXIT_USAGE},
    {PTXGEN_ERROR_TARGET, EXIT_USAGE},
    {PTXGEN_ERROR_SHARED_MEMORY, EXIT_USAGE},
    {PTXGEN_ERROR_NO_DRIVER, EXIT_NO_DEVICE},
    {PTXGEN_ERROR_DRIVER_TOO_OLD, EXIT_NO_DEVICE},
    {PTXGEN_ERROR_NO_DEVICE, EXIT_NO_DEVICE},
    {PTXGEN_ERROR_WRONG_DEVICE, EXIT_NO_DEVICE},
    {PTXGEN_ERROR_DRIVER, EXIT_DEVICE_FAILED},
    {PTXGEN_ERROR_JIT, EXIT_DEVICE_FAILED},
    {PTXGEN_ERROR_PTX_SYNTAX, EXIT_DEVICE_FAILED},
    {PTXGEN_ERROR_PTX_FAULT, EXIT_DEVICE_FAILED},
    {PTXGEN_ERROR_FILE, EXIT_FILE},
    {PTXGEN_ERROR_MALFORMED, EXIT_FILE},
    {PTXGEN_ERROR_NOT_FOUND, EXIT_FILE},
};

enum exit_code exit_code_of(ptxgen_status status)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == status)
            return codes[i].code;
    return EXIT_INTERNAL;
}

enum exit_code report_failure(const ptxgen_error *err)
{
    fflush(stdout);
    fprintf(stderr, "ptxgen: %s\n", err->message);
    return exit_code_of(err->status);
}

enum exit_code report_undone(const char *subject, const char *verb, const ptxgen_error *err)
{
    fflush(stdout);
    fprintf(stderr, "ptxgen: %s was not %s: %s\n", subject, verb, err->message);
    return exit_code_of(err->status);
}
