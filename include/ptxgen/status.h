/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Status codes and error sentences, shared by every layer of ptxgen.
 *
 * What can fail returns a `ptxgen_status`, but for a few functions that return nothing else than a
 * pointer, a count or a driver's result; these say what a failure looks like. Functions that can
 * say more take a `ptxgen_error *`, which may be NULL: the caller owns it, the callee fills it on
 * failure with the status and one sentence that names the offending value and the rule it breaks.
 * Nothing is stored in globals, so each thread simply uses its own `ptxgen_error`.
 *
 *     ptxgen_error err;
 *     if (ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err) != PTXGEN_OK)
 *         fprintf(stderr, "%s: %s\n", ptxgen_status_name(err.status), err.message);
 *
 * Stack. Of the calling thread's, a call takes at most, in KiB: a launch 8, a plan, packing or a
 * reference 24, emission 48, loading and dispatch 64 and what the driver takes besides; on the
 * emulator, which runs kernels on the threads that launch and wait, 256.
 *
 * Which refusal. PTXGEN_ERROR_INVALID_ARGUMENT is what no call may pass, whatever the family: NULL,
 * a number that names no enumerator, a flag that is neither 0 nor 1, a reserved byte that is not 0,
 * a stride below its row, bounds that contradict each other, a plan that no make_plan filled, rows
 * that the plan is not for, addresses that are null, misaligned or overlap.
 * PTXGEN_ERROR_UNSUPPORTED is what is sound by itself and beyond what the family, the target or a
 * launch can do: sizes, enumerators and combinations that it does not have, tiles that the target
 * or a size does not allow. A tile that no CTA holds is PTXGEN_ERROR_SHARED_MEMORY.
 *
 * NULL. Every function takes NULL for any argument: one that returns a status refuses it where it
 * may not be left out, one that returns a pointer returns NULL, a count is 0, and what is to be
 * destroyed or emitted into is left alone. A zeroed plan or driver table is refused in the same way.
 *
 * The numbers are stable: a release never renumbers them. They are grouped by layer with gaps.
 */
#ifndef PTXGEN_STATUS_H
#define PTXGEN_STATUS_H

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks what the shared library exports; the library is built with hidden visibility. */
#if defined(__GNUC__)
#define PTXGEN_API __attribute__((visibility("default")))
#define PTXGEN_PRINTF(format_index, args_index) \
    __attribute__((format(printf, format_index, args_index)))
#else
#define PTXGEN_API
#define PTXGEN_PRINTF(format_index, args_index)
#endif

typedef enum ptxgen_status {
    PTXGEN_OK = 0,

    /* any layer */
    PTXGEN_ERROR_INVALID_ARGUMENT = 1, /**< what no call may pass; see above */
    PTXGEN_ERROR_OUT_OF_MEMORY = 2,
    PTXGEN_ERROR_UNSUPPORTED = 3, /**< sound, but outside what the family can do */
    PTXGEN_ERROR_SYSTEM = 4,      /**< the operating system refused (a thread, a file) */

    /* the PTX builder */
    PTXGEN_ERROR_TARGET = 100,      /**< the instruction needs a newer target or PTX version */
    PTXGEN_ERROR_OPERAND = 101,     /**< operand of the wrong kind, range or count */
    PTXGEN_ERROR_ALIGNMENT = 102,   /**< constant offset that breaks the access's alignment */
    PTXGEN_ERROR_LABEL = 103,       /**< label unbound, bound twice, or of another kernel */
    PTXGEN_ERROR_UNINITIALISED = 104, /**< register read on a path that never wrote it */
    PTXGEN_ERROR_DIVERGENCE = 105,  /**< barrier or .aligned instruction under divergence */
    PTXGEN_ERROR_ASYNC = 106,       /**< asynchronous copy read before its wait */
    PTXGEN_ERROR_SHARED_MEMORY = 107, /**< shared memory beyond what the target has */
    PTXGEN_ERROR_REGISTERS = 108,   /**< register pressure beyond what the target has */
    PTXGEN_ERROR_STRUCTURE = 109,   /**< blocks left open, code after the end, bad names */

    /* driver and device */
    PTXGEN_ERROR_NO_DRIVER = 200,      /**< libcuda cannot be opened */
    PTXGEN_ERROR_DRIVER_TOO_OLD = 201, /**< an entry point or PTX version is missing */
    PTXGEN_ERROR_NO_DEVICE = 202,
    PTXGEN_ERROR_WRONG_DEVICE = 203, /**< the kernel was made for another device or context */
    PTXGEN_ERROR_DRIVER = 204,       /**< any other CUresult; the sentence names it */
    PTXGEN_ERROR_JIT = 205,          /**< the driver's assembler refused; its log is in the text */

    /* files */
    PTXGEN_ERROR_FILE = 300,      /**< cannot be opened, read or written */
    PTXGEN_ERROR_MALFORMED = 301, /**< contents break the format's rules */
    PTXGEN_ERROR_NOT_FOUND = 302, /**< no tensor or key of that name */

    /* the emulator */
    PTXGEN_ERROR_PTX_SYNTAX = 400, /**< text that the emulator's parser refuses */
    PTXGEN_ERROR_PTX_FAULT = 401   /**< a kernel did what PTX leaves undefined */
} ptxgen_status;

enum { PTXGEN_MESSAGE_SIZE = 1024 };

/** A failure in words. Owned by the caller; a plain value that may be copied. */
typedef struct ptxgen_error {
    ptxgen_status status;
    char message[PTXGEN_MESSAGE_SIZE]; /**< UTF-8, NUL-terminated, no trailing newline */
} ptxgen_error;

/** "PTXGEN_ERROR_TARGET" for the value of that name; "PTXGEN_ERROR_UNKNOWN" for a stray number. */
PTXGEN_API const char *ptxgen_status_name(ptxgen_status status);

/**
 * Fills `err` (when not NULL) with `status` and a formatted sentence, and returns `status`,
 * so that a failing function can `return ptxgen_fail(err, …)`. Long sentences are cut. Bytes that
 * are no UTF-8, as names of files and tensors may have, and control characters become '?'.
 */
PTXGEN_API ptxgen_status ptxgen_fail(ptxgen_error *err, ptxgen_status status, const char *format,
                                     ...) PTXGEN_PRINTF(3, 4);
PTXGEN_API ptxgen_status ptxgen_vfail(ptxgen_error *err, ptxgen_status status, const char *format,
                                      va_list args);

#ifdef __cplusplus
}
#endif
#endif
