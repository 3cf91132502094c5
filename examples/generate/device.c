/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <ptxgen/emulator.h>

#include <stdio.h>
#include <string.h>

ptxgen_status device_check(const struct device *device, ptxgen_cu_result result, const char *what,
                           ptxgen_error *err)
{
    return result == PTXGEN_CUDA_SUCCESS
               ? PTXGEN_OK
               : ptxgen_driver_fail(&device->driver, result, err, "%s", what);
}

static ptxgen_status open_emulator(struct device *device, const char *name, int *ordinal,
                                   ptxgen_error *err)
{
    ptxgen_emulator_driver(&device->driver);
    ptxgen_status status = ptxgen_emulator_ordinal(name, ordinal, err);
    return status ? status : ptxgen_driver_start(&device->driver, err);
}

static ptxgen_status open_driver(struct device *device, const char *name, int *ordinal,
                                 ptxgen_error *err)
{
    *ordinal = 0;
    if (strncmp(name, "cpu", 3) == 0)
        return open_emulator(device, name, ordinal, err);
    bool falls_back = strcmp(name, "auto") == 0;
    if (!falls_back && strcmp(name, "gpu") != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_NO_DEVICE,
                           "there is no device '%s'; known are auto, gpu, cpu and cpu:sm_90", name);
    ptxgen_status status = ptxgen_driver_open(&device->driver, NULL, err);
    if (!falls_back || (status != PTXGEN_ERROR_NO_DRIVER && status != PTXGEN_ERROR_NO_DEVICE))
        return status;
    fprintf(stderr, "generate: %s\ngenerate: running on the emulator instead\n", err->message);
    return open_emulator(device, "cpu", ordinal, err);
}

ptxgen_status device_open(const char *name, struct device *device, ptxgen_error *err)
{
    int ordinal;
    memset(device, 0, sizeof *device);
    ptxgen_status status = open_driver(device, name, &ordinal, err);
    if (status == PTXGEN_OK)
        status = ptxgen_device_read(&device->driver, ordinal, &device->facts, err);
    if (status == PTXGEN_OK)
        status = device_check(device, device->driver.ctx_create(&device->context, 0, ordinal),
                              "a context", err);
    if (status == PTXGEN_OK)
        status = device_check(
            device, device->driver.stream_create(&device->stream, PTXGEN_CU_STREAM_NON_BLOCKING),
            "a stream", err);
    if (status == PTXGEN_OK)
        status = ptxgen_dispatcher_create(&device->driver, NULL, &device->dispatcher, err);
    return status;
}

void device_close(struct device *device)
{
    if (device->context) {
        ptxgen_dispatcher_destroy(device->dispatcher);
        if (device->stream)
            device->driver.stream_destroy(device->stream);
        device->driver.ctx_destroy(device->context);
    }
    ptxgen_driver_close(&device->driver);
}

ptxgen_status device_alloc(const struct device *device, uint64_t bytes, uint64_t *address,
                           ptxgen_error *err)
{
    ptxgen_cu_deviceptr at = 0;
    size_t size = bytes ? (size_t)bytes : 1;
    ptxgen_cu_result result = device->driver.mem_alloc(&at, size);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(&device->driver, result, err, "%zu bytes of device memory", size);
    *address = at;
    return device_check(device, device->driver.memset_d8_async(at, 0, size, device->stream),
                        "zeroing memory", err);
}

ptxgen_status device_upload(const struct device *device, uint64_t to, const void *from,
                            size_t bytes, ptxgen_error *err)
{
    return device_check(device, device->driver.memcpy_htod_async(to, from, bytes, device->stream),
                        "a copy to the device", err);
}

ptxgen_status device_download(const struct device *device, void *to, uint64_t from, size_t bytes,
                              ptxgen_error *err)
{
    return device_check(device, device->driver.memcpy_dtoh_async(to, from, bytes, device->stream),
                        "a copy from the device", err);
}

ptxgen_status device_wait(const struct device *device, ptxgen_error *err)
{
    return device_check(device, device->driver.stream_synchronize(device->stream), "a kernel", err);
}
