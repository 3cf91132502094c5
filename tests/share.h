/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a long test is run: all of it, or one part in PTXGEN_TEST_SHARE, which the
 * environment sets where a build repeats what another has done in full (.ci/test).
 */
#ifndef PTXGEN_TESTS_SHARE_H
#define PTXGEN_TESTS_SHARE_H

#include <stdbool.h>
#include <stdlib.h>

static inline int test_parts(void)
{
    const char *parts = getenv("PTXGEN_TEST_SHARE");
    int n = parts ? atoi(parts) : 1;
    return n > 1 ? n : 1;
}

/* Of `count` repetitions; at least one. */
static inline int test_share(int count)
{
    return (count + test_parts() - 1) / test_parts();
}

/* Whether case number `index` of a list is run. */
static inline bool test_in_share(int index)
{
    return index % test_parts() == 0;
}

#endif
