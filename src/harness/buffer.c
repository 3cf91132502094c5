/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 1024, GUARD_VALUE = 0xC9 };

ptxgen_status buffer_create(struct device *device, const char *name, size_t bytes, size_t misalign,
                            struct buffer *b, ptxgen_error *err)
{
    size_t guard = device->emulated ? 0 : GUARD_BYTES;
    *b = (struct buffer){
        .name = name, .device = device, .bytes = bytes, .lead = guard + misalign, .trail = guard};
    size_t total;
    if (__builtin_add_overflow(bytes, b->lead + b->trail, &total))
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "%s: %zu bytes are too many", name,
                           bytes);
    b->host = malloc(bytes ? bytes : 1);
    if (!b->host)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "%s: no memory for %zu bytes", name,
                           bytes);
    memset(b->host, BUFFER_POISON, bytes);
    ptxgen_cu_result result = device->driver.mem_alloc(&b->base, total ? total : 1);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(&device->driver, result, err,
                                  "allocating %zu bytes of device memory for %s", total, name);
    b->address = b->base + b->lead;
    return PTXGEN_OK;
}

void buffer_destroy(struct buffer *b)
{
    if (b->base)
        b->device->driver.mem_free(b->base);
    free(b->host);
    memset(b, 0, sizeof *b);
}

static ptxgen_status copied(struct buffer *b, ptxgen_cu_result result, const char *direction,
                            ptxgen_error *err)
{
    if (result == PTXGEN_CUDA_SUCCESS)
        return PTXGEN_OK;
    return ptxgen_driver_fail(&b->device->driver, result, err, "copying %s %s the device", b->name,
                              direction);
}

/*
 * A copy from pageable memory returns before its last bytes are on the device, and the device's
 * stream does not wait for the stream that copies; so this does.
 */
ptxgen_status buffer_upload(struct buffer *b, ptxgen_error *err)
{
    ptxgen_driver *driver = &b->device->driver;
    ptxgen_cu_result result = PTXGEN_CUDA_SUCCESS;
    if (b->lead)
        result = driver->memset_d8(b->base, GUARD_VALUE, b->lead);
    if (b->trail && result == PTXGEN_CUDA_SUCCESS)
        result = driver->memset_d8(b->address + b->bytes, GUARD_VALUE, b->trail);
    if (b->bytes && result == PTXGEN_CUDA_SUCCESS)
        result = driver->memcpy_htod(b->address, b->host, b->bytes);
    if (result == PTXGEN_CUDA_SUCCESS)
        result = driver->ctx_synchronize();
    return copied(b, result, "to", err);
}

/* The bytes from `from` must all be the guard's. */
static ptxgen_status check_guard(struct buffer *b, ptxgen_cu_deviceptr from, size_t count,
                                 ptxgen_error *err)
{
    unsigned char bytes[2 * GUARD_BYTES];
    size_t fits = count < sizeof bytes ? count : sizeof bytes;
    ptxgen_status status =
        copied(b, fits ? b->device->driver.memcpy_dtoh(bytes, from, fits) : PTXGEN_CUDA_SUCCESS,
               "from", err);
    for (size_t i = 0; status == PTXGEN_OK && i < fits; i++)
        if (bytes[i] != GUARD_VALUE)
            return ptxgen_fail(err, PTXGEN_ERROR_PTX_FAULT,
                               "the kernel wrote outside %s: byte %lld of its %zu is now 0x%02x",
                               b->name, (long long)(from + i - b->address), b->bytes, bytes[i]);
    return status;
}

static ptxgen_status check_guards(struct buffer *b, ptxgen_error *err)
{
    ptxgen_status status = check_guard(b, b->base, b->lead, err);
    return status == PTXGEN_OK ? check_guard(b, b->address + b->bytes, b->trail, err) : status;
}

ptxgen_status buffer_download(struct buffer *b, ptxgen_error *err)
{
    ptxgen_cu_result result = PTXGEN_CUDA_SUCCESS;
    if (b->bytes)
        result = b->device->driver.memcpy_dtoh(b->host, b->address, b->bytes);
    ptxgen_status status = copied(b, result, "from", err);
    return status == PTXGEN_OK ? check_guards(b, err) : status;
}

static ptxgen_status changed(const struct buffer *b, size_t at, const unsigned char *piece,
                             ptxgen_error *err)
{
    size_t i = 0;
    while (piece[i] == b->host[at + i])
        i++;
    return ptxgen_fail(err, PTXGEN_ERROR_PTX_FAULT,
                       "the kernel changed its input %s at byte %zu of %zu", b->name, at + i,
                       b->bytes);
}

ptxgen_status buffer_verify(struct buffer *b, ptxgen_error *err)
{
    enum { PIECE = 1 << 20 };
    ptxgen_status status = check_guards(b, err);
    unsigned char *piece = malloc(PIECE);
    if (!piece)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to verify %s", b->name);
    for (size_t at = 0; status == PTXGEN_OK && at < b->bytes; at += PIECE) {
        size_t count = b->bytes - at < PIECE ? b->bytes - at : PIECE;
        status =
            copied(b, b->device->driver.memcpy_dtoh(piece, b->address + at, count), "from", err);
        if (status == PTXGEN_OK && memcmp(piece, b->host + at, count))
            status = changed(b, at, piece, err);
    }
    free(piece);
    return status;
}

/* ---- many buffers, many rows ---- */

ptxgen_status buffers_each(struct buffer *const *buffers, size_t count,
                           ptxgen_status (*verb)(struct buffer *, ptxgen_error *),
                           ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < count; i++)
        status = verb(buffers[i], err);
    return status;
}

void buffer_check_gaps(const struct buffer *b, uint64_t m, uint64_t columns, uint64_t stride,
                       size_t element, struct check *check)
{
    for (uint64_t row = 0; row + 1 < m; row++)
        for (size_t i = columns * element; i < stride * element; i++)
            if (b->host[row * stride * element + i] != BUFFER_POISON) {
                check_fail(check, "the kernel wrote past row %llu of %s, which has %llu columns",
                           (unsigned long long)row, b->name, (unsigned long long)columns);
                return;
            }
}

ptxgen_status buffer_finding(ptxgen_status status, const ptxgen_error *err, struct check *check)
{
    if (status != PTXGEN_ERROR_PTX_FAULT)
        return status;
    check_fail(check, "%s", err->message);
    return PTXGEN_OK;
}
