/* SPDX-License-Identifier: Apache-2.0 */
/**
 * An operand of a kernel, in host and device memory.
 *
 * On a GPU guard bands lie on both sides of the device copy; the emulator needs none, it refuses
 * accesses out of bounds. The host copy starts as poison (all bits set, a NaN in every float
 * type), so that elements which nobody fills in are noticed when they are used.
 *
 *     struct buffer x;
 *     buffer_create(device, "x", bytes, 2, &x, err);  // starts 2 bytes off a multiple of 256
 *     …fill x.host…
 *     buffer_upload(&x, err);
 *     …launch, wait…
 *     buffer_verify(&x, err);                          // an input: still what was uploaded
 *     buffer_download(&y, err);                        // an output: guard bands are intact
 */
#ifndef PTXGEN_HARNESS_BUFFER_H
#define PTXGEN_HARNESS_BUFFER_H

#include "check.h"
#include "device.h"

enum { BUFFER_POISON = 0xFF };

struct buffer {
    const char *name;
    struct device *device;
    size_t bytes;
    unsigned char *host;         /**< `bytes` of them, aligned as malloc does */
    ptxgen_cu_deviceptr address; /**< of the device copy */
    ptxgen_cu_deviceptr base;    /**< of the allocation: guard, misalignment, copy, guard */
    size_t lead, trail;
};

/** `misalign` is the distance of the device copy from a multiple of 256 bytes. */
ptxgen_status buffer_create(struct device *device, const char *name, size_t bytes, size_t misalign,
                            struct buffer *buffer, ptxgen_error *err);
/** Harmless on a zeroed buffer. */
void buffer_destroy(struct buffer *buffer);
/** Copies host to device and renews the guard bands. */
ptxgen_status buffer_upload(struct buffer *buffer, ptxgen_error *err);
/**
 * Copies device to host. PTXGEN_ERROR_PTX_FAULT names the byte of a guard band that changed; the
 * same from buffer_verify for a byte of the copy itself.
 */
ptxgen_status buffer_download(struct buffer *buffer, ptxgen_error *err);
ptxgen_status buffer_verify(struct buffer *buffer, ptxgen_error *err);

/** Applies one of the above to all buffers, until one fails. */
ptxgen_status buffers_each(struct buffer *const *buffers, size_t count,
                           ptxgen_status (*verb)(struct buffer *, ptxgen_error *),
                           ptxgen_error *err);

/** Notes in the check where bytes between the rows of an output are no longer poison. */
void buffer_check_gaps(const struct buffer *buffer, uint64_t m, uint64_t columns, uint64_t stride,
                       size_t element, struct check *check);
/** A stray write, which upload, download and verify report, is a finding, not a failure. */
ptxgen_status buffer_finding(ptxgen_status status, const ptxgen_error *err, struct check *check);

#endif
