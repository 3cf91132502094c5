/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with what tests of errors need. */
#ifndef PTXGEN_TESTS_RUNTIME_CHECK_H
#define PTXGEN_TESTS_RUNTIME_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <ptxgen/status.h>

/* The sentence must say this. */
#define assert_says(err, words)                                                                    \
    do {                                                                                           \
        if (!strstr((err).message, words))                                                         \
            fail_msg("the sentence lacks \"%s\": \"%s\"", words, (err).message);                   \
    } while (0)

#define assert_fails(call, wanted, err, words)                                                     \
    do {                                                                                           \
        (err).message[0] = '\0';                                                                   \
        assert_int_equal(call, wanted);                                                            \
        assert_int_equal((err).status, wanted);                                                    \
        assert_says(err, words);                                                                   \
    } while (0)

#endif
