/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/status.h>

#include "src/ptxgen/c_locale.h"

#include <stdio.h>

const char *ptxgen_status_name(ptxgen_status status)
{
    switch (status) {
#define NAME(s) \
    case s: return #s
        NAME(PTXGEN_OK);
        NAME(PTXGEN_ERROR_INVALID_ARGUMENT);
        NAME(PTXGEN_ERROR_OUT_OF_MEMORY);
        NAME(PTXGEN_ERROR_UNSUPPORTED);
        NAME(PTXGEN_ERROR_SYSTEM);
        NAME(PTXGEN_ERROR_TARGET);
        NAME(PTXGEN_ERROR_OPERAND);
        NAME(PTXGEN_ERROR_ALIGNMENT);
        NAME(PTXGEN_ERROR_LABEL);
        NAME(PTXGEN_ERROR_UNINITIALISED);
        NAME(PTXGEN_ERROR_DIVERGENCE);
        NAME(PTXGEN_ERROR_ASYNC);
        NAME(PTXGEN_ERROR_SHARED_MEMORY);
        NAME(PTXGEN_ERROR_REGISTERS);
        NAME(PTXGEN_ERROR_STRUCTURE);
        NAME(PTXGEN_ERROR_NO_DRIVER);
        NAME(PTXGEN_ERROR_DRIVER_TOO_OLD);
        NAME(PTXGEN_ERROR_NO_DEVICE);
        NAME(PTXGEN_ERROR_WRONG_DEVICE);
        NAME(PTXGEN_ERROR_DRIVER);
        NAME(PTXGEN_ERROR_JIT);
        NAME(PTXGEN_ERROR_FILE);
        NAME(PTXGEN_ERROR_MALFORMED);
        NAME(PTXGEN_ERROR_NOT_FOUND);
        NAME(PTXGEN_ERROR_PTX_SYNTAX);
        NAME(PTXGEN_ERROR_PTX_FAULT);
#undef NAME
    }
    return "PTXGEN_ERROR_UNKNOWN";
}

/* Without memory for the C locale the sentence is written in the thread's own. */
ptxgen_status ptxgen_vfail(ptxgen_error *err, ptxgen_status status, const char *format,
                           va_list args)
{
    if (err) {
        struct c_locale locale;
        bool in_c = c_locale_begin(&locale);
        err->status = status;
        vsnprintf(err->message, sizeof err->message, format, args);
        if (in_c)
            c_locale_end(&locale);
    }
    return status;
}

ptxgen_status ptxgen_fail(ptxgen_error *err, ptxgen_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ptxgen_vfail(err, status, format, args);
    va_end(args);
    return status;
}
