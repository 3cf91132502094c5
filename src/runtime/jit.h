/* SPDX-License-Identifier: Apache-2.0 */
/* Options and logs of one run of the driver's assembler or linker. */
#ifndef PTXGEN_RUNTIME_JIT_H
#define PTXGEN_RUNTIME_JIT_H

#include <ptxgen/kernel.h>

enum { JIT_MAX_OPTIONS = 8, JIT_ERROR_LOG_SIZE = 8192 };

/* Stays in one place from jit_begin to jit_end: the driver keeps pointers into it. */
struct jit {
    unsigned int count;
    ptxgen_cu_jit_option options[JIT_MAX_OPTIONS];
    void *values[JIT_MAX_OPTIONS];
    char *log; /* the caller's, or NULL */
    size_t log_size;
    char error_log[JIT_ERROR_LOG_SIZE];
};

/* `options` may be NULL. */
void jit_begin(struct jit *jit, const ptxgen_module_options *options);

/*
 * What became of it: PTXGEN_OK for success, else a status and a sentence with the beginning of
 * the error log, the whole of which goes to the caller's log.
 */
ptxgen_status jit_end(struct jit *jit, const ptxgen_driver *driver, ptxgen_cu_result result,
                      ptxgen_error *err);

#endif
