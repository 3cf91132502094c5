/* SPDX-License-Identifier: Apache-2.0 */
/* The device that everything runs on: a GPU, or the emulator. */
#ifndef GENERATE_DEVICE_H
#define GENERATE_DEVICE_H

#include <ptxgen/device.h>
#include <ptxgen/dispatch.h>

struct device {
    ptxgen_driver driver;
    ptxgen_device_facts facts;
    ptxgen_cu_context context;
    ptxgen_cu_stream stream;
    ptxgen_dispatcher *dispatcher;
};

/* "gpu", "cpu", "cpu:sm_90" and so on; "auto": a GPU, or the emulator where there is none. */
ptxgen_status device_open(const char *name, struct device *device, ptxgen_error *err);
/* Frees all memory of the device, too. A zeroed device may be closed. */
void device_close(struct device *device);

/* A driver call's result as a status, with a sentence that begins with `what`. */
ptxgen_status device_check(const struct device *device, ptxgen_cu_result result, const char *what,
                           ptxgen_error *err);
/* Zeroed memory of at least `bytes` bytes; an address of none where `bytes` is 0. */
ptxgen_status device_alloc(const struct device *device, uint64_t bytes, uint64_t *address,
                           ptxgen_error *err);
/* Copies in the order of the stream. The host's memory may be used again when they return, but what
 * is downloaded is there only after device_wait. */
ptxgen_status device_upload(const struct device *device, uint64_t to, const void *from,
                            size_t bytes, ptxgen_error *err);
ptxgen_status device_download(const struct device *device, void *to, uint64_t from, size_t bytes,
                              ptxgen_error *err);
ptxgen_status device_wait(const struct device *device, ptxgen_error *err);

#endif
