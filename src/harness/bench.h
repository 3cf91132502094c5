/* SPDX-License-Identifier: Apache-2.0 */
/** A family's kernel prepared to be timed: random operands, the weights several times over. */
#ifndef PTXGEN_HARNESS_BENCH_H
#define PTXGEN_HARNESS_BENCH_H

#include "bench_subject.h"
#include "harness.h"

/**
 * Prepares launches of m tokens. The spec and the tile of the request are copied. The subject is
 * released by its own `destroy`, but after an error.
 */
ptxgen_status bench_prepare(const struct harness *harness, const struct kernel_request *request,
                            uint32_t m, struct device *device, struct bench_subject *subject,
                            ptxgen_error *err);

#endif
