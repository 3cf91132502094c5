/* SPDX-License-Identifier: Apache-2.0 */
/* Launches that are refused before anything runs: on the emulator, with made-up addresses. */
#ifndef PTXGEN_TESTS_LAUNCHES_H
#define PTXGEN_TESTS_LAUNCHES_H

#include "status.h"

#include <ptxgen/emulator.h>

#include <stdio.h>

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

static inline void assert_refused(ptxgen_status status, const ptxgen_error *err, const char *words)
{
    assert_int_equal(status, PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(err, words);
}

/* An address among a launch's arguments. */
struct address {
    const char *name;
    size_t offset; /* of the uint64_t in the arguments */
    unsigned align;
};

/*
 * `refused` asserts that the arguments, of this many bytes, are refused with these words: with each
 * of the addresses null, then half its alignment off.
 */
static inline void assert_addresses_are_refused_by_name(
    const char *family, const struct address *addresses, size_t count, void *args,
    void (*refused)(const void *bench, const void *args, const char *words), const void *bench)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t *address = (uint64_t *)(void *)((char *)args + addresses[i].offset);
        const uint64_t kept = *address;
        char words[80];
        *address = 0;
        snprintf(words, sizeof words, "%s: %s is null", family, addresses[i].name);
        refused(bench, args, words);
        *address = kept + addresses[i].align / 2;
        snprintf(words, sizeof words, "%s: %s at 0x%llx is not a multiple of %u", family,
                 addresses[i].name, (unsigned long long)*address, addresses[i].align);
        if (addresses[i].align > 1)
            refused(bench, args, words);
        *address = kept;
    }
}

#endif
