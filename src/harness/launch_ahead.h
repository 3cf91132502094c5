/* SPDX-License-Identifier: Apache-2.0 */
/** The kernel ahead: what writes the activations of a launch that may overlap it. */
#ifndef PTXGEN_HARNESS_LAUNCH_AHEAD_H
#define PTXGEN_HARNESS_LAUNCH_AHEAD_H

#include "bench_probe.h"
#include "buffer.h"

ptxgen_status launch_ahead_load(struct probe *probe, struct device *device, ptxgen_error *err);
/** Enqueues a kernel that writes over the buffer's first words what they hold. */
ptxgen_status launch_ahead(const struct probe *probe, const struct buffer *activations,
                           ptxgen_error *err);

#endif
