/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of refusals: what is good in all but a few members, and the whole sentence with which it is
 * refused; NULL where it is accepted, at the end of what is.
 */
#ifndef PTXGEN_TESTS_REFUSALS_REFUSALS_H
#define PTXGEN_TESTS_REFUSALS_REFUSALS_H

#include "tests/status.h"

#include <stdio.h>

/* A member that becomes `number`: the low bytes of it, as the machine, which is little-endian, has
 * them. */
struct change {
    size_t offset, size;
    int64_t number;
};
#define CHANGE(type, member, number)                                                               \
    {                                                                                              \
        offsetof(type, member), sizeof(((type *)0)->member), number                                \
    }

enum { MOST_CHANGES = 6, MOST_BYTES = 512 };

struct refusal {
    struct change changes[MOST_CHANGES];
    ptxgen_status status;
    const char *says;
};

/* What is asked of the structure: `with` is the caller's. */
typedef ptxgen_status asking(const void *structure, const void *with, ptxgen_error *err);

static inline void assert_refusals(const struct refusal *rows, size_t count, const void *good,
                                   size_t size, asking *ask, const void *with)
{
    int wrong = 0;
    assert_true(size <= MOST_BYTES);
    for (size_t i = 0; i < count; i++) {
        _Alignas(16) unsigned char changed[MOST_BYTES];
        ptxgen_error err = {.status = PTXGEN_OK};
        memcpy(changed, good, size);
        for (size_t c = 0; c < MOST_CHANGES; c++)
            memcpy(changed + rows[i].changes[c].offset, &rows[i].changes[c].number,
                   rows[i].changes[c].size);
        ptxgen_status status = ask(changed, with, &err);
        const char *due = rows[i].says ? rows[i].says : "";
        if (status == rows[i].status && strcmp(err.message, due) == 0)
            continue;
        print_error("row %zu: %s, '%s'; due is %s, '%s'\n", i, ptxgen_status_name(status),
                    err.message, ptxgen_status_name(rows[i].status), due);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}
#define ASSERT_REFUSALS(rows, good, ask, with)                                                     \
    assert_refusals(rows, sizeof(rows) / sizeof *(rows), &(good), sizeof(good), ask, with)

#endif
