/* SPDX-License-Identifier: Apache-2.0 */
/** How long a plan takes to become text, and the text to become loaded code. */
#ifndef PTXGEN_HARNESS_BENCH_EMISSION_H
#define PTXGEN_HARNESS_BENCH_EMISSION_H

#include "bench_subject.h"

#include <ptxgen/target.h>

/** A family's emission of a plan. */
typedef ptxgen_status bench_emit(const void *plan, ptx_module *module, ptxgen_error *err);

/**
 * Fills the subject's emit_seconds, jit_seconds and text_bytes: medians of several emissions, and
 * of several loads of the text with nothing cached.
 */
ptxgen_status bench_emission(struct device *device, const ptxgen_target *target, bench_emit *emit,
                             const void *plan, struct bench_subject *subject, ptxgen_error *err);

#endif
