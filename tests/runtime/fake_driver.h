/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver table that does nothing, notes every call and fails on demand. Two devices: an sm_90
 * (ordinal 0) and an sm_80 (ordinal 1), one context each. One object, reset by each test.
 */
#ifndef PTXGEN_TESTS_FAKE_DRIVER_H
#define PTXGEN_TESTS_FAKE_DRIVER_H

#include <ptxgen/driver.h>

#include <stdbool.h>

enum fake_call {
#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters) FAKE_##member,
#include <ptxgen/driver_calls.def>
    FAKE_CALL_COUNT
};

enum { FAKE_DEVICES = 2, FAKE_STACK = 8 };

struct fake_driver {
    ptxgen_driver table;

    /* what a test sets */
    ptxgen_cu_result fail[FAKE_CALL_COUNT]; /* the answer of that call, when not success */
    int version;
    int device_count;
    ptxgen_cu_device_attribute unknown_from; /* attributes from this on are invalid values */
    const char *error_log;                   /* written by a load or link that fails */
    const char *info_log;                    /* written by one that succeeds */
    int function_attributes[16];

    /* what a test reads */
    int calls[FAKE_CALL_COUNT];
    int total;
    ptxgen_cu_context stack[FAKE_STACK];
    int depth;
    unsigned int grid[3], block[3], shared_bytes;
    ptxgen_cu_stream stream;
    void **parameters;
    ptxgen_cu_launch_attribute attributes[4];
    unsigned int attribute_count;
    int max_registers; /* -1 when the option was not given */
    bool line_info;
    size_t linked_bytes;
    int modules, linkers; /* loaded and not unloaded */
};

extern struct fake_driver fake;

/* A started table with nothing failing, no call counted and no context current. */
void fake_reset(void);
/* Forgets the calls counted so far. */
void fake_forget_calls(void);
ptxgen_cu_context fake_context(int device);
void fake_make_current(ptxgen_cu_context context);

#endif
