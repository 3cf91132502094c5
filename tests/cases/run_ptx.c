/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a kernel of a PTX file on the emulator and prints what it leaves in out, as hexadecimal
 * words. The kernel's parameters are (.u64 out, .u64 in, .u32 n): n words of input.
 *
 *     run_ptx FILE KERNEL DEVICE THREADS OUT-WORDS [IN-WORD …]
 *
 * Refused text and faults are printed, with exit status 1. With RUN_PTX_COMMA in the environment
 * numbers have a decimal comma.
 */
#include <ptxgen/driver.h>
#include <ptxgen/emulator.h>

#include "../comma_locale.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_WORDS = 4096 };

static int ended(const char *step, ptxgen_cu_result result, const char *message)
{
    printf("%s: %d: %s\n", step, (int)result, message);
    return 1;
}

static char *text_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        return NULL;
    long size = ftell(file);
    char *text = calloc(1, (size_t)size + 1);
    rewind(file);
    bool whole = text && fread(text, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    return whole ? text : NULL;
}

int main(int argc, char **argv)
{
    static uint32_t words[MOST_WORDS];
    char folder[COMMA_LOCALE_FOLDER];
    bool comma = getenv("RUN_PTX_COMMA") != NULL;
    ptxgen_driver driver;
    ptxgen_error err = {0};
    ptxgen_cu_context context;
    int ordinal, out_words = argc > 5 ? atoi(argv[5]) : 0;
    if (argc < 6 || argc - 6 > MOST_WORDS || out_words < 1 || out_words > MOST_WORDS)
        return fprintf(stderr, "usage: run_ptx FILE KERNEL DEVICE THREADS OUT-WORDS [IN-WORD …]\n"),
               2;
    if (comma && !(comma_locale_make(folder) && comma_locale_enter()))
        return ended("locale", 0, folder);
    char *text = text_of(argv[1]);
    if (!text)
        return ended("file", 0, argv[1]);
    ptxgen_emulator_driver(&driver);
    if (ptxgen_emulator_ordinal(argv[3], &ordinal, &err) || ptxgen_driver_start(&driver, &err))
        return ended("device", 0, err.message);
    driver.ctx_create(&context, 0, ordinal);

    char log[4096] = "";
    ptxgen_cu_jit_option options[] = {PTXGEN_CU_JIT_ERROR_LOG_BUFFER,
                                      PTXGEN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    ptxgen_cu_module module;
    ptxgen_cu_function function;
    ptxgen_cu_result result = driver.module_load_data_ex(&module, text, 2, options, values);
    if (!result)
        result = driver.module_get_function(&function, module, argv[2]);
    if (result)
        return ended("load", result, log);

    ptxgen_cu_deviceptr out, in;
    uint32_t n = (uint32_t)(argc - 6);
    for (uint32_t i = 0; i < n; i++)
        words[i] = (uint32_t)strtoul(argv[6 + i], NULL, 0);
    driver.mem_alloc(&in, sizeof words);
    driver.memcpy_htod(in, words, sizeof words);
    driver.mem_alloc(&out, 4 * (size_t)out_words);
    driver.memset_d8(out, 0xEE, 4 * (size_t)out_words);
    void *parameters[] = {&out, &in, &n};
    result = driver.launch_kernel(function, 1, 1, 1, (unsigned)atoi(argv[4]), 1, 1, 0, NULL,
                                  parameters, NULL);
    if (!result)
        result = driver.memcpy_dtoh(words, out, 4 * (size_t)out_words);
    if (result) {
        ptxgen_emulator_fault fault;
        ptxgen_emulator_last_fault(context, &fault);
        return ended("run", result, fault.message);
    }
    for (int i = 0; i < out_words; i++)
        printf("%08x%c", words[i], i == out_words - 1 ? '\n' : ' ');
    driver.module_unload(module);
    driver.ctx_destroy(context);
    free(text);
    return comma && !comma_locale_remove(folder);
}
