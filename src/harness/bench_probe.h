/* SPDX-License-Identifier: Apache-2.0 */
/** Kernels of the command's own, which measure what a device can do. */
#ifndef PTXGEN_HARNESS_BENCH_PROBE_H
#define PTXGEN_HARNESS_BENCH_PROBE_H

#include "bench_time.h"

#include <ptxgen/kernel.h>

struct probe {
    struct device *device;
    ptxgen_module *module;
    ptxgen_kernel *kernel;
};

/** Loads the entry `name`, which `emit` adds to a module for `target`. */
ptxgen_status probe_load(struct probe *probe, struct device *device, const ptx_target *target,
                         void (*emit)(ptx_module *module), const char *name, ptxgen_error *err);
void probe_free(struct probe *probe);

#endif
