/* SPDX-License-Identifier: Apache-2.0 */
/* Launches that are refused before anything runs: on the emulator, with made-up addresses. */
#ifndef PTXGEN_TESTS_LAUNCHES_H
#define PTXGEN_TESTS_LAUNCHES_H

#include "status.h"

#include <ptxgen/emulator.h>


/* The emulator's driver, started, with a context that is current. */
struct emulated {
    ptxgen_driver driver;
    ptxgen_cu_context context;
};

static inline void open_emulated(struct emulated *e)
{
    ptxgen_error err = {0};
    ptxgen_emulator_driver(&e->driver);
    assert_ok(ptxgen_driver_start(&e->driver, &err), &err);
    assert_int_equal(e->driver.ctx_create(&e->context, 0, 0), PTXGEN_CUDA_SUCCESS);
}

static inline void close_emulated(const struct emulated *e)
{
    e->driver.ctx_destroy(e->context);
}

/* The same for a test whose state that driver is. */
static inline int setup_emulated(void **state)
{
    static struct emulated emulated;
    open_emulated(&emulated);
    *state = &emulated;
    return 0;
}

static inline int teardown_emulated(void **state)
{
    close_emulated(*state);
    return 0;
}

static inline void assert_refused(ptxgen_status status, const ptxgen_error *err, const char *words)
{
    assert_int_equal(status, PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(err, words);
}

#endif
