/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/driver.h>

#include "src/runtime/ptx_version.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct entry_point {
    const char *symbol;
    int since;
    bool required;
    size_t offset; /* of the function pointer in struct ptxgen_driver */
};

enum { OPTIONAL = false, REQUIRED = true };

static const struct entry_point entry_points[] = {
#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    {symbol, since, need, offsetof(ptxgen_driver, member)},
#include <ptxgen/driver_calls.def>
};
enum { ENTRY_POINT_COUNT = sizeof entry_points / sizeof *entry_points };

typedef void (*any_function)(void);

static any_function get_entry(const ptxgen_driver *driver, const struct entry_point *entry)
{
    any_function function;
    memcpy(&function, (const char *)driver + entry->offset, sizeof function);
    return function;
}

/*
 * Each entry is looked up by its exported symbol with dlsym. cuGetProcAddress would add nothing:
 * the suffix in the symbol already pins the one signature that the list declares, every driver
 * since CUDA 3.2 exports it so, and a symbol cannot quietly become its per-thread-stream twin.
 */
static void resolve_entries(ptxgen_driver *driver)
{
    for (size_t i = 0; i < ENTRY_POINT_COUNT; i++) {
        void *address = dlsym(driver->library, entry_points[i].symbol);
        memcpy((char *)driver + entry_points[i].offset, &address, sizeof address);
    }
}

static const struct entry_point *first_missing_entry(const ptxgen_driver *driver)
{
    for (size_t i = 0; i < ENTRY_POINT_COUNT; i++)
        if (entry_points[i].required && !get_entry(driver, &entry_points[i]))
            return &entry_points[i];
    return NULL;
}

static ptxgen_status fail_no_library(const char *path, int error, ptxgen_error *err)
{
    const char *reason = dlerror();
    if (error == ENOMEM)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to open '%s'", path);
    return ptxgen_fail(err, PTXGEN_ERROR_NO_DRIVER,
                       "the CUDA driver library '%s' cannot be opened (%s); is an NVIDIA driver "
                       "installed?",
                       path, reason ? reason : "no reason given");
}

static ptxgen_status fail_stub(ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_NO_DRIVER,
                       "this libcuda is the CUDA toolkit's stub for linking, not a driver; take "
                       "its folder off the library path");
}

static ptxgen_status check_version(ptxgen_driver *driver, ptxgen_error *err)
{
    ptxgen_cu_result result = driver->driver_get_version(&driver->version);
    if (result == PTXGEN_CUDA_ERROR_STUB_LIBRARY)
        return fail_stub(err);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_fail(err, PTXGEN_ERROR_DRIVER, "cuDriverGetVersion failed with error %d",
                           (int)result);
    if (driver->version < PTXGEN_DRIVER_MIN_VERSION)
        return ptxgen_fail(err, PTXGEN_ERROR_DRIVER_TOO_OLD,
                           "the NVIDIA driver is too old: it supports CUDA %d.%d, and ptxgen needs "
                           "a driver for CUDA %d.%d or later",
                           CUDA_MAJOR(driver->version), CUDA_MINOR(driver->version),
                           CUDA_MAJOR(PTXGEN_DRIVER_MIN_VERSION),
                           CUDA_MINOR(PTXGEN_DRIVER_MIN_VERSION));
    return PTXGEN_OK;
}

static ptxgen_status check_library(ptxgen_driver *driver, const char *path, ptxgen_error *err)
{
    if (!driver->driver_get_version)
        return ptxgen_fail(err, PTXGEN_ERROR_NO_DRIVER,
                           "'%s' is not a CUDA driver library: it has no cuDriverGetVersion", path);
    ptxgen_status status = check_version(driver, err);
    if (status != PTXGEN_OK)
        return status;
    const struct entry_point *missing = first_missing_entry(driver);
    if (missing)
        return ptxgen_fail(err, PTXGEN_ERROR_DRIVER_TOO_OLD,
                           "the NVIDIA driver is too old: '%s' has no %s, which came with CUDA "
                           "%d.%d, though it reports CUDA %d.%d",
                           path, missing->symbol, CUDA_MAJOR(missing->since),
                           CUDA_MINOR(missing->since), CUDA_MAJOR(driver->version),
                           CUDA_MINOR(driver->version));
    return PTXGEN_OK;
}

ptxgen_status ptxgen_driver_open(ptxgen_driver *driver, const char *path, ptxgen_error *err)
{
    if (!driver)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_driver_open: driver is NULL");
    memset(driver, 0, sizeof *driver);
    if (!path)
        path = "libcuda.so.1";
    /* NODELETE: closing must not unmap code that the driver's own threads still run. */
    errno = 0; /* dlopen sets it where memory runs out */
    driver->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!driver->library)
        return fail_no_library(path, errno, err);
    resolve_entries(driver);
    ptxgen_status status = check_library(driver, path, err);
    if (status == PTXGEN_OK)
        status = ptxgen_driver_start(driver, err);
    if (status != PTXGEN_OK)
        ptxgen_driver_close(driver);
    return status;
}

static ptxgen_status fail_no_device(ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_NO_DEVICE,
                       "the NVIDIA driver is present but shows no GPU; if there is one, look at "
                       "CUDA_VISIBLE_DEVICES and at the access rights of /dev/nvidia*");
}

ptxgen_status ptxgen_driver_start(ptxgen_driver *driver, ptxgen_error *err)
{
    if (!driver)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_driver_start: driver is NULL");
    const struct entry_point *missing = first_missing_entry(driver);
    if (missing)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "the driver table has no %s, which is a required entry",
                           missing->symbol);
    ptxgen_status status = check_version(driver, err);
    if (status != PTXGEN_OK)
        return status;

    ptxgen_cu_result result = driver->init(0);
    if (result == PTXGEN_CUDA_ERROR_STUB_LIBRARY)
        return fail_stub(err);
    if (result == PTXGEN_CUDA_ERROR_NO_DEVICE)
        return fail_no_device(err);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err, "the NVIDIA driver cannot start (cuInit)");
    result = driver->device_get_count(&driver->device_count);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err, "cuDeviceGetCount");
    return driver->device_count > 0 ? PTXGEN_OK : fail_no_device(err);
}

void ptxgen_driver_close(ptxgen_driver *driver)
{
    if (!driver)
        return;
    if (driver->library)
        dlclose(driver->library);
    memset(driver, 0, sizeof *driver);
}

ptxgen_status ptxgen_driver_require(const ptxgen_driver *driver, size_t member_offset,
                                    ptxgen_error *err)
{
    for (size_t i = 0; i < ENTRY_POINT_COUNT; i++) {
        const struct entry_point *entry = &entry_points[i];
        if (entry->offset != member_offset)
            continue;
        if (get_entry(driver, entry))
            return PTXGEN_OK;
        return ptxgen_fail(err, PTXGEN_ERROR_DRIVER_TOO_OLD,
                           "the driver has no %s, which came with CUDA %d.%d; it reports CUDA "
                           "%d.%d",
                           entry->symbol, CUDA_MAJOR(entry->since), CUDA_MINOR(entry->since),
                           CUDA_MAJOR(driver->version), CUDA_MINOR(driver->version));
    }
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "offset %zu is not of a call in struct ptxgen_driver", member_offset);
}

static ptxgen_status status_of_result(ptxgen_cu_result result)
{
    static const struct {
        ptxgen_cu_result result;
        ptxgen_status status;
    } known[] = {
        {PTXGEN_CUDA_ERROR_OUT_OF_MEMORY, PTXGEN_ERROR_OUT_OF_MEMORY},
        {PTXGEN_CUDA_ERROR_NO_DEVICE, PTXGEN_ERROR_NO_DEVICE},
        {PTXGEN_CUDA_ERROR_INVALID_PTX, PTXGEN_ERROR_JIT},
        {PTXGEN_CUDA_ERROR_JIT_COMPILER_NOT_FOUND, PTXGEN_ERROR_JIT},
        {PTXGEN_CUDA_ERROR_JIT_COMPILATION_DISABLED, PTXGEN_ERROR_JIT},
        {PTXGEN_CUDA_ERROR_UNSUPPORTED_PTX_VERSION, PTXGEN_ERROR_DRIVER_TOO_OLD},
        {PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU, PTXGEN_ERROR_WRONG_DEVICE},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].result == result)
            return known[i].status;
    return PTXGEN_ERROR_DRIVER;
}

ptxgen_status ptxgen_driver_fail(const ptxgen_driver *driver, ptxgen_cu_result result,
                                 ptxgen_error *err, const char *format, ...)
{
    char action[PTXGEN_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(action, sizeof action, format, args);
    va_end(args);

    const char *name = NULL, *text = NULL;
    if (driver && driver->get_error_name && driver->get_error_string) {
        driver->get_error_name(result, &name);
        driver->get_error_string(result, &text);
    }
    return ptxgen_fail(err, status_of_result(result), "%s: %s (%d%s%s)", action,
                       name ? name : "unknown driver error", (int)result, text ? ", " : "",
                       text ? text : "");
}
