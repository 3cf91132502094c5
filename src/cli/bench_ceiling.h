/* SPDX-License-Identifier: Apache-2.0 */
/** How fast this device reads memory, by a kernel of ours that does nothing else. */
#ifndef PTXGEN_CLI_BENCH_CEILING_H
#define PTXGEN_CLI_BENCH_CEILING_H

#include "../harness/bench_time.h"

struct ceiling {
    double bandwidth; /**< bytes a second: the best median of several grid sizes */
    uint64_t bytes;   /**< that a launch read */
    unsigned ctas;    /**< a multiprocessor, of the best */
    struct timing timing;
};

ptxgen_status bench_ceiling(struct device *device, unsigned replays, struct ceiling *ceiling,
                            ptxgen_error *err);

#endif
