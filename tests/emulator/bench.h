/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workbench for emulator tests: one context, kernels loaded from PTX text, buffers that are
 * freed at the end. Every failure of a driver call fails the test, unless it is what is tested.
 */
#ifndef EMULATOR_BENCH_H
#define EMULATOR_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ptxgen/emulator.h"

enum { BENCH_BUFFERS = 32 };

struct bench {
    ptxgen_driver driver;
    ptxgen_cu_context context;
    ptxgen_cu_module module;
    ptxgen_cu_deviceptr buffers[BENCH_BUFFERS];
    int buffer_count, ordinal;
    uint32_t cluster;                        /* CTAs along x; 0 and 1: none */
    bool programmatic;                       /* launches may overlap what is ahead of them */
    uint32_t dynamic_bytes, grid_y, block_y; /* 0: 1 */
    char log[4096];                          /* of the last load */
};

/* "cpu:sm_90" and so on. */
void bench_open(struct bench *bench, const char *device);
void bench_close(struct bench *bench);
void bench_options(struct bench *bench, const ptxgen_emulator_options *options);

/* Loads a module; text that is no whole module is put behind a header with `target`. */
ptxgen_cu_result bench_try_load(struct bench *bench, const char *text);
void bench_load(struct bench *bench, const char *text);
/* "header + .visible .entry k(params) { body }" for a kernel called k. */
void bench_kernel(struct bench *bench, const char *target, const char *params, const char *body);

ptxgen_cu_deviceptr bench_buffer(struct bench *bench, const void *data, size_t bytes);
ptxgen_cu_deviceptr bench_blank(struct bench *bench, size_t bytes); /* never written */
void bench_read(struct bench *bench, void *to, ptxgen_cu_deviceptr from, size_t bytes);

ptxgen_cu_result bench_launch(struct bench *bench, const char *kernel, uint32_t ctas,
                              uint32_t threads, void **arguments);
void bench_run(struct bench *bench, const char *kernel, uint32_t ctas, uint32_t threads,
               void **arguments);
ptxgen_emulator_fault bench_fault(struct bench *bench);

/* A text file, NUL-terminated, to be freed. */
char *bench_file(const char *path, size_t *length);

#endif
