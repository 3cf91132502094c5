/* SPDX-License-Identifier: Apache-2.0 */
/** The output that a file expects of a launch. */
#ifndef PTXGEN_HARNESS_EXPECTED_H
#define PTXGEN_HARNESS_EXPECTED_H

#include "check.h"

/** Its numbers; without one `values` is NULL. */
struct expected {
    double *values; /**< for free() */
    size_t columns;
    double unit, least; /**< how the file rounded them: by unit · |value| + least at most */
};

/**
 * Checks an output of `type` against the file's. `own` has the bound and the spread of the output
 * about what is right; how the file rounded comes on top, and a file that rounds to 16 bits says
 * nothing about a spread.
 */
void expected_check(const struct expected *expected, size_t row, size_t column, ptxgen_element type,
                    double output, const struct expected_output *own, struct check *check);

#endif
