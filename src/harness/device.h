/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The device that a command works on: a started driver, its facts, a context that is current in
 * this thread, and a stream. Where devices come from is a table of providers in device.c.
 */
#ifndef PTXGEN_HARNESS_DEVICE_H
#define PTXGEN_HARNESS_DEVICE_H

#include <ptxgen/device.h>
#include <ptxgen/dispatch.h>

#include <stdbool.h>

struct device {
    ptxgen_driver driver;
    ptxgen_device_facts facts;
    ptxgen_cu_context context;
    ptxgen_cu_stream stream;
    bool emulated; /**< times mean nothing; accesses out of bounds are faults */
    /** The caller's: kernels that are run must come from its packs; NULL: they are emitted. */
    ptxgen_dispatcher *packs;
};

/**
 * Opens "auto", "gpu", "gpu:1", "cpu" or "cpu:sm_80". "auto" is the first GPU, or else the
 * emulator, which it says on stderr. `device` is zeroed on failure.
 */
ptxgen_status device_open(const char *name, struct device *device, ptxgen_error *err);
/** Harmless on a zeroed device. */
void device_close(struct device *device);

/** Waits for the stream; a kernel's fault becomes a sentence. */
ptxgen_status device_wait(struct device *device, ptxgen_error *err);
/**
 * Returns `status`; but where the emulator knows of a fault behind a driver error, puts its
 * sentence into err and returns PTXGEN_ERROR_PTX_FAULT. For failed launches.
 */
ptxgen_status device_explain(struct device *device, ptxgen_status status, ptxgen_error *err);
/** PTXGEN_OK, or `what` failed with this result. */
ptxgen_status device_check(struct device *device, ptxgen_cu_result result, const char *what,
                           ptxgen_error *err);

/** The providers, for the devices command. */
struct device_provider {
    const char *name; /**< "gpu" */
    /** Fills and starts the driver table. */
    ptxgen_status (*start)(ptxgen_driver *driver, ptxgen_error *err);
    /** The ordinal that the text after the colon names; NULL when there is none. */
    ptxgen_status (*find)(const ptxgen_driver *driver, const char *selector, int *ordinal,
                          ptxgen_error *err);
    bool emulated;
};
const struct device_provider *device_provider_at(size_t index);

#endif
