/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint packed on a device: uploaded, launched, brought back. */
#ifndef PTXGEN_TESTS_MARLIN_REPACKING_H
#define PTXGEN_TESTS_MARLIN_REPACKING_H

#include "packing.h"

#include <ptxgen/marlin_repack.h>

static inline ptxgen_marlin_repack_spec repack_spec_of(const ptxgen_marlin_spec *s,
                                                       const ptxgen_w4_checkpoint *from)
{
    return (ptxgen_marlin_repack_spec){.k = s->k,
                                       .n = s->n,
                                       .group_size = s->group_size,
                                       .type = s->type,
                                       .zeros = s->zeros,
                                       .act_order = s->act_order,
                                       .epilogue = s->epilogue,
                                       .format = (uint8_t)from->format,
                                       .scale_type = (uint8_t)from->scales.dtype};
}

/* A copy of `bytes`, nothing for none; the device's allocations end where they end. */
static inline uint64_t upload(const ptxgen_driver *driver, const void *data, size_t bytes)
{
    ptxgen_cu_deviceptr address = 0;
    if (!bytes)
        return 0;
    assert_int_equal(driver->mem_alloc(&address, bytes), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(driver->memcpy_htod(address, data, bytes), PTXGEN_CUDA_SUCCESS);
    return address;
}

static inline uint64_t upload_tensor(const ptxgen_driver *driver, const ptxgen_w4_tensor *tensor)
{
    return upload(driver, tensor->data, tensor->data ? ptxgen_w4_tensor_bytes(tensor) : 0);
}

static inline ptxgen_marlin_repack_tensors upload_checkpoint(const ptxgen_driver *driver,
                                                             const ptxgen_w4_checkpoint *from)
{
    return (ptxgen_marlin_repack_tensors){.weights = upload_tensor(driver, &from->weights),
                                          .scales = upload_tensor(driver, &from->scales),
                                          .zeros = upload_tensor(driver, &from->zeros)};
}

static inline void download(const ptxgen_driver *driver, void *data, uint64_t address, size_t bytes)
{
    if (bytes)
        assert_int_equal(driver->memcpy_dtoh(data, address, bytes), PTXGEN_CUDA_SUCCESS);
}

static inline void free_args(const ptxgen_driver *driver, const ptxgen_marlin_repack_args *a)
{
    const uint64_t addresses[] = {
        a->weights.weights, a->weights.scales, a->weights.zeros, a->up.weights, a->up.scales,
        a->up.zeros,        a->order,          a->codes,         a->scales,     a->zeros};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        if (addresses[i])
            driver->mem_free(addresses[i]);
}

/* Uploads a problem and `packed`, whose bytes are poison but for `order`. */
static inline ptxgen_marlin_repack_args upload_args(const ptxgen_driver *driver,
                                                    const struct weights *w,
                                                    const ptxgen_marlin_packed *packed)
{
    ptxgen_marlin_repack_args a = {.weights = upload_checkpoint(driver, &w->checkpoints[0])};
    if (w->count == 2)
        a.up = upload_checkpoint(driver, &w->checkpoints[1]);
    a.order = upload(driver, packed->order, packed->order_bytes);
    a.codes = upload(driver, packed->codes, packed->codes_bytes);
    a.scales = upload(driver, packed->scales, packed->scales_bytes);
    a.zeros = upload(driver, packed->zeros, packed->zeros_bytes);
    return a;
}

#endif
