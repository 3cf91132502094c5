/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of w8a8 share. */
#ifndef PTXGEN_TESTS_W8A8_SUPPORT_H
#define PTXGEN_TESTS_W8A8_SUPPORT_H

#include "tests/status.h"

#include <ptxgen/w8a8.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const target_names[] = {"sm_80",  "sm_86",  "sm_89", "sm_90",
                                           "sm_90a", "sm_100", "sm_120"};
enum { TARGETS = sizeof target_names / sizeof *target_names };

#endif
