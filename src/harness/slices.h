/* SPDX-License-Identifier: Apache-2.0 */
/** A comparison cut into slices that threads take one by one, a thread a processor. */
#ifndef PTXGEN_HARNESS_SLICES_H
#define PTXGEN_HARNESS_SLICES_H

#include "check.h"

#include <ptxgen/status.h>

/** What a comparison fills: against the reference, and against a file's own expectation. */
struct comparison {
    struct check reference, expected;
};

/** Compares slice `index` and adds to `part`, which is this call's alone. */
typedef ptxgen_status compare_slice(void *state, uint32_t index, struct comparison *part,
                                    ptxgen_error *err);

/** Compares all slices; `what` names them for the progress line. The first failure ends it. */
ptxgen_status compare_slices(const char *what, uint32_t count, compare_slice *compare, void *state,
                             struct comparison *total, ptxgen_error *err);

#endif
