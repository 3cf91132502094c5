/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of w8a8 share. */
#ifndef PTXGEN_TESTS_W8A8_SUPPORT_H
#define PTXGEN_TESTS_W8A8_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ptxgen/w8a8.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline ptxgen_target target_of(const char *name)
{
    ptxgen_target target;
    assert_int_equal(ptxgen_target_parse(name, &target, NULL), PTXGEN_OK);
    return target;
}

static inline void succeed(ptxgen_status status, const ptxgen_error *err)
{
    if (status != PTXGEN_OK)
        fail_msg("%s", err->message);
}

static const char *const target_names[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};
enum { TARGETS = sizeof target_names / sizeof *target_names };

#endif
