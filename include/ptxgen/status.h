/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Status codes and error sentences, shared by every layer of ptxgen.
 *
 * A function that can fail returns a `ptxgen_status`. A few functions return a pointer, a count or
 * a driver's result instead, and say how they report a failure. Most functions also take a
 * `ptxgen_error *`, which may be NULL. The caller owns the error; on failure the function fills it
 * with the status and one sentence, which names the offending value and the rule that it breaks.
 * Nothing is stored in globals, so each thread uses an error of its own.
 *
 *     ptxgen_error err;
 *     if (ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err) != PTXGEN_OK)
 *         fprintf(stderr, "%s: %s\n", ptxgen_status_name(err.status), err.message);
 *
 * Stack. A call uses at most this much of the calling thread's stack: a launch 8 KiB; a plan,
 * packing or a reference 24 KiB; emission 48 KiB; loading and dispatch 64 KiB plus what the driver
 * uses. The emulator runs kernels on the threads that launch and wait, and uses 256 KiB.
 *
 * Which refusal. PTXGEN_ERROR_INVALID_ARGUMENT refuses what is wrong for every family: NULL, a
 * number that names no enumerator, a flag that is neither 0 nor 1, a reserved byte that is not 0, a
 * stride below the length of a row, bounds that contradict each other, a plan that was not filled
 * by make_plan, an M that the plan does not cover, and addresses that are null, misaligned or
 * overlap. PTXGEN_ERROR_UNSUPPORTED refuses what is valid in itself but outside of what the family,
 * the target or a launch can do: sizes, enumerators, combinations, and tiles that the target or a
 * size does not allow. PTXGEN_ERROR_SHARED_MEMORY refuses a tile that exceeds a CTA's shared
 * memory.
 *
 * NULL. Every function may be called with NULL for any argument. A function that returns a status
 * refuses NULL where the argument is needed; a function that returns a pointer returns NULL; one
 * that returns a count returns 0; and destroying NULL, or emitting into it, does nothing. A zeroed
 * plan or driver table is treated like NULL.
 *
 * Structs. The caller sets all bytes of a struct that it fills (a spec, arguments, operands,
 * options) to zero before it sets members. A release adds members only at the end of a struct, and
 * 0 in a new member keeps the behaviour of the release before. No release renames, moves or removes
 * a member; before 1.0 one may, and CHANGELOG.md then says so. A struct that grows changes its size,
 * so a program must be compiled with the headers of the library that it is linked with. A spec is
 * compared as a whole, and its size is part of the key by which dispatch and the disk cache find a
 * kernel, so kernels of a spec that has grown are compiled anew.
 *
 * The numbers of the codes are stable: a release never renumbers them. They are grouped by layer,
 * with gaps.
 */
#ifndef PTXGEN_STATUS_H
#define PTXGEN_STATUS_H

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks the symbols that a shared library exports; all others have hidden visibility. */
#if defined(__GNUC__) && !defined(PTXGEN_API)
#define PTXGEN_API __attribute__((visibility("default")))
#elif !defined(PTXGEN_API)
#define PTXGEN_API
#endif
#if defined(__GNUC__)
#define PTXGEN_PRINTF(format_index, args_index) \
    __attribute__((format(printf, format_index, args_index)))
#else
#define PTXGEN_PRINTF(format_index, args_index)
#endif

typedef enum ptxgen_status {
    PTXGEN_OK = 0,

    /* any layer */
    PTXGEN_ERROR_INVALID_ARGUMENT = 1, /**< an argument that is wrong for every family; see above */
    PTXGEN_ERROR_OUT_OF_MEMORY = 2,
    PTXGEN_ERROR_UNSUPPORTED = 3, /**< valid, but outside of what the family can do; see above */
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

/** A failure in words: a plain value, owned by the caller, that may be copied. */
typedef struct ptxgen_error {
    ptxgen_status status;
    char message[PTXGEN_MESSAGE_SIZE]; /**< UTF-8, NUL-terminated, no trailing newline */
} ptxgen_error;

/** "PTXGEN_ERROR_TARGET" for the value of that name; "PTXGEN_ERROR_UNKNOWN" for a stray number. */
PTXGEN_API const char *ptxgen_status_name(ptxgen_status status);

/**
 * Fills `err`, unless it is NULL, with `status` and a formatted sentence, and returns `status`, so
 * that a failing function can `return ptxgen_fail(err, status, format, arguments)`. A sentence that
 * is longer than the message is cut. Control characters, and bytes that are not UTF-8 (names of
 * files and tensors may contain them), become '?'.
 */
PTXGEN_API ptxgen_status ptxgen_fail(ptxgen_error *err, ptxgen_status status, const char *format,
                                     ...) PTXGEN_PRINTF(3, 4);
PTXGEN_API ptxgen_status ptxgen_vfail(ptxgen_error *err, ptxgen_status status, const char *format,
                                      va_list args);

#ifdef __cplusplus
}
#endif
#endif
