/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/jit.h"

#include <stdio.h>
#include <string.h>

static void add_option(struct jit *jit, ptxgen_cu_jit_option option, void *value)
{
    jit->options[jit->count] = option;
    jit->values[jit->count++] = value;
}

/* Integers travel by value in the pointer. */
static void add_number(struct jit *jit, ptxgen_cu_jit_option option, size_t number)
{
    add_option(jit, option, (void *)(uintptr_t)number);
}

/*
 * CU_JIT_SPLIT_COMPILE (CUDA 13.0) is not among them. It halves the time of modules of several
 * entries, but under cuLink the assembler then takes each entry for a compilation unit that others
 * call: it ignores setmaxnreg, serialises wgmma, and says so on standard output.
 */
void jit_begin(struct jit *jit, const ptxgen_module_options *options)
{
    jit->count = 0;
    jit->log = options ? options->log : NULL;
    jit->log_size = jit->log ? options->log_size : 0;
    jit->error_log[0] = '\0';
    add_option(jit, PTXGEN_CU_JIT_ERROR_LOG_BUFFER, jit->error_log);
    add_number(jit, PTXGEN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, sizeof jit->error_log);
    if (jit->log_size > 0) {
        /* The driver reads the size as an unsigned int. */
        size_t size = jit->log_size < UINT32_MAX ? jit->log_size : UINT32_MAX;
        jit->log[0] = '\0';
        add_option(jit, PTXGEN_CU_JIT_INFO_LOG_BUFFER, jit->log);
        add_number(jit, PTXGEN_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, size);
        add_number(jit, PTXGEN_CU_JIT_LOG_VERBOSE, 1);
    }
    if (options && options->max_registers > 0)
        add_number(jit, PTXGEN_CU_JIT_MAX_REGISTERS, (size_t)options->max_registers);
    if (options && options->line_info)
        add_number(jit, PTXGEN_CU_JIT_GENERATE_LINE_INFO, 1);
}

/* The log as one line for a sentence: a newline between two lines becomes "; ". */
static void flatten(char *flat, size_t size, const char *log)
{
    size_t used = 0;
    for (; *log && used + 3 < size; log++) {
        if (*log != '\n') {
            flat[used++] = *log;
        } else if (used > 0 && log[1] != '\0' && log[1] != '\n') {
            flat[used++] = ';';
            flat[used++] = ' ';
        }
    }
    flat[used] = '\0';
}

/* The assembler had its say, so the text is to blame, whatever the driver makes of that. */
static ptxgen_status blame_text(ptxgen_status status, ptxgen_error *err)
{
    if (status != PTXGEN_ERROR_DRIVER && status != PTXGEN_ERROR_WRONG_DEVICE)
        return status;
    if (err)
        err->status = PTXGEN_ERROR_JIT;
    return PTXGEN_ERROR_JIT;
}

ptxgen_status jit_end(struct jit *jit, const ptxgen_driver *driver, ptxgen_cu_result result,
                      ptxgen_error *err)
{
    jit->error_log[sizeof jit->error_log - 1] = '\0';
    if (jit->log_size > 0)
        jit->log[jit->log_size - 1] = '\0';
    if (result == PTXGEN_CUDA_SUCCESS)
        return PTXGEN_OK;
    if (jit->log_size > 0)
        snprintf(jit->log, jit->log_size, "%s", jit->error_log);
    if (result == PTXGEN_CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
        return ptxgen_driver_fail(driver, result, err,
                                  "the driver's PTX assembler, libnvidia-ptxjitcompiler, is not "
                                  "installed beside libcuda");
    char beginning[3 * PTXGEN_MESSAGE_SIZE / 4]; /* leaves room for the driver's own name for it */
    flatten(beginning, sizeof beginning, jit->error_log);
    if (!beginning[0])
        return ptxgen_driver_fail(driver, result, err, "the driver cannot load the code");
    return blame_text(ptxgen_driver_fail(driver, result, err,
                                         "the driver's assembler refused the text: %s", beginning),
                      err);
}
