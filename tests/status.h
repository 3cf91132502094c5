/* SPDX-License-Identifier: Apache-2.0 */
/* A status and the sentence that comes with it, as assertions; and cmocka, with what it needs. */
#ifndef PTXGEN_TESTS_STATUS_H
#define PTXGEN_TESTS_STATUS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ptxgen/target.h>

#include <string.h>

static inline void assert_ok(ptxgen_status status, const ptxgen_error *err)
{
    if (status != PTXGEN_OK)
        fail_msg("%s", err->message);
}

/* Of the sentence of a failure. */
static inline void assert_says(const ptxgen_error *err, const char *words)
{
    if (!strstr(err->message, words))
        fail_msg("'%s' does not say '%s'", err->message, words);
}

/* A call ended with this status, and with this sentence, to the letter. */
static inline void assert_refusal(ptxgen_status got, const ptxgen_error *err, ptxgen_status status,
                                  const char *sentence)
{
    if (got != status || strcmp(err->message, sentence) != 0)
        fail_msg("%s, '%s'; due is %s, '%s'", ptxgen_status_name(got), err->message,
                 ptxgen_status_name(status), sentence);
}

static inline ptxgen_target target_of(const char *name)
{
    ptxgen_target target;
    ptxgen_error err = {0};
    assert_ok(ptxgen_target_parse(name, &target, &err), &err);
    return target;
}

#endif
