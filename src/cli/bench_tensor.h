/* SPDX-License-Identifier: Apache-2.0 */
/** How fast this device multiplies f16 on tensor cores: a kernel that does nothing else. */
#ifndef PTXGEN_CLI_BENCH_TENSOR_H
#define PTXGEN_CLI_BENCH_TENSOR_H

#include "../harness/bench_time.h"

struct tensor_ceiling {
    double rate;      /**< multiplications and additions a second; 0: not measured */
    const char *form; /**< of the instruction */
    struct timing timing;
};

/** Sums in f32; bf16 is as fast. */
ptxgen_status bench_tensor_ceiling(struct device *device, unsigned replays,
                                   struct tensor_ceiling *ceiling, ptxgen_error *err);

#endif
