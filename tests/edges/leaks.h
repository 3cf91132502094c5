/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that calls keep, by what the C library says of all its blocks. Under a sanitizer, which
 * has blocks of its own, that is nothing; its check at the end of the program sees them.
 */
#ifndef PTXGEN_TESTS_EDGES_LEAKS_H
#define PTXGEN_TESTS_EDGES_LEAKS_H

#include "tests/status.h"

#include <malloc.h>

static inline size_t bytes_in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/*
 * Repeated, `call` comes to need no more memory: what it keeps once, or the C library for later,
 * does not count. Who keeps something each time needs more in every round.
 */
static inline void assert_keeps_nothing(const char *name, void (*call)(void *user), void *user)
{
    enum { ROUNDS = 12, CALLS = 8, LEAST_BLOCK = 24 };
    size_t more = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const size_t before = bytes_in_use();
        for (int i = 0; i < CALLS; i++)
            call(user);
        const size_t after = bytes_in_use();
        if (after < before + CALLS * LEAST_BLOCK)
            return;
        more = after - before;
    }
    fail_msg("%s keeps %zu bytes of each call", name, more / CALLS);
}

#endif
