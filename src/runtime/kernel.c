/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/kernel.h>

#include "src/runtime/context.h"
#include "src/runtime/objects.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    ptxgen_cu_function_attribute attribute;
    size_t offset; /* of an int in struct ptxgen_kernel_attributes */
} attribute_table[] = {
    {PTXGEN_CU_FUNC_ATTRIBUTE_NUM_REGS, offsetof(ptxgen_kernel_attributes, registers)},
    {PTXGEN_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, offsetof(ptxgen_kernel_attributes, local_bytes)},
    {PTXGEN_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
     offsetof(ptxgen_kernel_attributes, static_shared_bytes)},
    {PTXGEN_CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, offsetof(ptxgen_kernel_attributes, const_bytes)},
    {PTXGEN_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
     offsetof(ptxgen_kernel_attributes, max_threads_per_block)},
    {PTXGEN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
     offsetof(ptxgen_kernel_attributes, max_dynamic_shared_bytes)},
    {PTXGEN_CU_FUNC_ATTRIBUTE_PTX_VERSION, offsetof(ptxgen_kernel_attributes, target)},
    {PTXGEN_CU_FUNC_ATTRIBUTE_BINARY_VERSION, offsetof(ptxgen_kernel_attributes, binary_target)},
};

static ptxgen_status fetch_function(const ptxgen_module *module, ptxgen_kernel *kernel,
                                    ptxgen_error *err)
{
    ptxgen_cu_result result =
        module->driver->module_get_function(&kernel->function, module->handle, kernel->name);
    if (result == PTXGEN_CUDA_ERROR_NOT_FOUND)
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "the module has no kernel named '%s'",
                           kernel->name);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(module->driver, result, err, "cuModuleGetFunction of '%s'",
                                  kernel->name);
    return PTXGEN_OK;
}

static ptxgen_status read_attributes(ptxgen_kernel *kernel, ptxgen_error *err)
{
    for (size_t i = 0; i < sizeof attribute_table / sizeof *attribute_table; i++) {
        int *value = (int *)((char *)&kernel->attributes + attribute_table[i].offset);
        ptxgen_cu_result result = kernel->driver->func_get_attribute(
            value, attribute_table[i].attribute, kernel->function);
        if (result != PTXGEN_CUDA_SUCCESS)
            return ptxgen_driver_fail(kernel->driver, result, err, "cuFuncGetAttribute %d of '%s'",
                                      (int)attribute_table[i].attribute, kernel->name);
    }
    return PTXGEN_OK;
}

/*
 * By default a kernel may use 48 KB of static and dynamic shared memory together. For more, its
 * limit is raised here, up to that of the device.
 */
static ptxgen_status allow_shared_memory(ptxgen_kernel *kernel, size_t bytes, ptxgen_error *err)
{
    const ptxgen_driver *driver = kernel->driver;
    ptxgen_kernel_attributes *attributes = &kernel->attributes;
    if (bytes <= (size_t)attributes->max_dynamic_shared_bytes)
        return PTXGEN_OK;
    int limit = 0;
    ptxgen_cu_result result = driver->device_get_attribute(
        &limit, PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, kernel->device);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err,
                                  "cuDeviceGetAttribute of the shared memory limit");
    if (attributes->static_shared_bytes > limit ||
        bytes > (size_t)(limit - attributes->static_shared_bytes))
        return ptxgen_fail(err, PTXGEN_ERROR_SHARED_MEMORY,
                           "kernel '%s' needs %d bytes of static and %zu of dynamic shared memory, "
                           "and device %d gives a CTA %d",
                           kernel->name, attributes->static_shared_bytes, bytes, kernel->device,
                           limit);
    result = driver->func_set_attribute(
        kernel->function, PTXGEN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err,
                                  "kernel '%s' cannot have %zu bytes of dynamic shared memory",
                                  kernel->name, bytes);
    attributes->max_dynamic_shared_bytes = (int)bytes;
    return PTXGEN_OK;
}

static ptxgen_status prepare(const ptxgen_module *module, ptxgen_kernel *kernel,
                             size_t dynamic_shared_bytes, ptxgen_error *err)
{
    ptxgen_status status = fetch_function(module, kernel, err);
    if (status == PTXGEN_OK)
        status = read_attributes(kernel, err);
    if (status == PTXGEN_OK)
        status = allow_shared_memory(kernel, dynamic_shared_bytes, err);
    return status;
}

static ptxgen_kernel *new_kernel(const ptxgen_module *module, const char *name)
{
    size_t length = strlen(name);
    ptxgen_kernel *kernel = calloc(1, sizeof *kernel + length + 1);
    if (!kernel)
        return NULL;
    kernel->driver = module->driver;
    kernel->context = module->context;
    kernel->device = module->device;
    memcpy(kernel->name, name, length + 1);
    return kernel;
}

ptxgen_status ptxgen_kernel_create(const ptxgen_module *module, const char *name,
                                   size_t dynamic_shared_bytes, ptxgen_kernel **kernel,
                                   ptxgen_error *err)
{
    if (!module || !name || !kernel)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_kernel_create: module, name or kernel is NULL");
    *kernel = NULL;
    ptxgen_kernel *created = new_kernel(module, name);
    if (!created)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for kernel '%s'", name);
    ptxgen_cu_context context;
    ptxgen_status status = context_enter(module->driver, module->context, &context, err);
    if (status == PTXGEN_OK) {
        status = prepare(module, created, dynamic_shared_bytes, err);
        context_leave(module->driver);
    }
    if (status == PTXGEN_OK)
        *kernel = created;
    else
        free(created);
    return status;
}

void ptxgen_kernel_destroy(ptxgen_kernel *kernel)
{
    free(kernel);
}

const ptxgen_kernel_attributes *ptxgen_kernel_get_attributes(const ptxgen_kernel *kernel)
{
    return kernel ? &kernel->attributes : NULL;
}

ptxgen_cu_function ptxgen_kernel_get_function(const ptxgen_kernel *kernel)
{
    return kernel ? kernel->function : NULL;
}

ptxgen_status ptxgen_kernel_occupancy(const ptxgen_kernel *kernel, int block_threads,
                                      size_t dynamic_shared_bytes, int *blocks_per_sm,
                                      ptxgen_error *err)
{
    if (!kernel || !blocks_per_sm || block_threads <= 0)
        return ptxgen_fail(
            err, PTXGEN_ERROR_INVALID_ARGUMENT,
            "ptxgen_kernel_occupancy: kernel or blocks_per_sm is NULL, or %d threads "
            "are not a CTA",
            block_threads);
    ptxgen_cu_context context;
    ptxgen_status status = context_enter(kernel->driver, kernel->context, &context, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_cu_result result = kernel->driver->occupancy_max_active_blocks(
        blocks_per_sm, kernel->function, block_threads, dynamic_shared_bytes);
    context_leave(kernel->driver);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(kernel->driver, result, err,
                                  "occupancy of '%s' with %d threads and %zu bytes", kernel->name,
                                  block_threads, dynamic_shared_bytes);
    return PTXGEN_OK;
}
