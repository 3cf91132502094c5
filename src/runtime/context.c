/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/context.h"

#include <stdio.h>

ptxgen_status context_enter(const ptxgen_driver *driver, ptxgen_cu_context context,
                            ptxgen_cu_context *entered, ptxgen_error *err)
{
    if (driver->device_count < 1 || !driver->ctx_get_current)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "the driver table was not started, by ptxgen_driver_open or _start");
    if (!context) {
        ptxgen_cu_result result = driver->ctx_get_current(&context);
        if (result != PTXGEN_CUDA_SUCCESS)
            return ptxgen_driver_fail(driver, result, err, "cuCtxGetCurrent");
    }
    if (!context)
        return ptxgen_fail(err, PTXGEN_ERROR_WRONG_DEVICE,
                           "no CUDA context is current in this thread and none was given; make "
                           "one current with cuCtxSetCurrent or pass one");
    ptxgen_cu_result result = driver->ctx_push_current(context);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err,
                                  "CUDA context %p cannot be made current (cuCtxPushCurrent)",
                                  (void *)context);
    *entered = context;
    return PTXGEN_OK;
}

void context_leave(const ptxgen_driver *driver)
{
    ptxgen_cu_context left;
    driver->ctx_pop_current(&left);
}

ptxgen_status device_compute_capability(const ptxgen_driver *driver, ptxgen_cu_device device,
                                        int *capability, ptxgen_error *err)
{
    int major = 0, minor = 0;
    ptxgen_cu_result result = driver->device_get_attribute(
        &major, PTXGEN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (result == PTXGEN_CUDA_SUCCESS)
        result = driver->device_get_attribute(
            &minor, PTXGEN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err,
                                  "cuDeviceGetAttribute of the compute capability");
    *capability = 10 * major + minor;
    return PTXGEN_OK;
}

void device_name(const ptxgen_driver *driver, ptxgen_cu_device device, char name[DEVICE_NAME_SIZE])
{
    name[0] = '\0';
    driver->device_get_name(name, DEVICE_NAME_SIZE, device);
    name[DEVICE_NAME_SIZE - 1] = '\0';
    if (!name[0])
        snprintf(name, DEVICE_NAME_SIZE, "unknown device");
}
