/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel's bits: a captured launch is replayed many times on two streams at once, each with a
 * workspace and an output of its own. A family says what is launched, and whether what the first
 * launch, alone, left is right; every replay must leave its bits.
 */
#ifndef PTXGEN_TESTS_REPLAYS_H
#define PTXGEN_TESTS_REPLAYS_H

#include "src/harness/device.h"

enum { REPLAY_STREAMS = 2, REPLAY_POISON = 0xFF };

/* What is replayed. */
struct replayed {
    void *problem; /* handed to the functions below */
    ptxgen_status (*launch)(void *problem, ptxgen_cu_deviceptr y, ptxgen_cu_deviceptr workspace,
                            ptxgen_cu_stream stream, ptxgen_error *err);
    bool (*is_right)(void *problem, const unsigned char *y);
    size_t y_bytes; /* y is poisoned before each replay */
    uint64_t workspace_bytes;
    unsigned char workspace_fill; /* what each of them is before the first replay */
};

/* How many replays left other bits than the first launch, and 1 more where that was not right. */
unsigned replays_that_differ(const ptxgen_driver *driver, const struct replayed *what,
                             unsigned replays);

/* End the program with a sentence on stderr where something other than the bits went wrong. */
void must_do(ptxgen_status status, const char *what, const ptxgen_error *err);
void must(ptxgen_cu_result result, const char *what);

#endif
