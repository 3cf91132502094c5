/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <ptxgen/emulator.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the providers ---- */

static ptxgen_status start_gpu(ptxgen_driver *driver, ptxgen_error *err)
{
    return ptxgen_driver_open(driver, NULL, err);
}

static ptxgen_status find_gpu(const ptxgen_driver *driver, const char *selector, int *ordinal,
                              ptxgen_error *err)
{
    char *end = NULL;
    long number = 0;
    errno = 0;
    if (selector)
        number = strtol(selector, &end, 10);
    if (errno || (selector && (end == selector || *end)) || number < 0)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "\"gpu:%s\" names no device; after the colon stands a number", selector);
    if (number >= driver->device_count)
        return ptxgen_fail(err, PTXGEN_ERROR_NO_DEVICE, "there is no gpu:%ld; the driver has %d",
                           number, driver->device_count);
    *ordinal = (int)number;
    return PTXGEN_OK;
}

static ptxgen_status start_cpu(ptxgen_driver *driver, ptxgen_error *err)
{
    ptxgen_emulator_driver(driver);
    return ptxgen_driver_start(driver, err);
}

static ptxgen_status find_cpu(const ptxgen_driver *driver, const char *selector, int *ordinal,
                              ptxgen_error *err)
{
    (void)driver;
    return ptxgen_emulator_ordinal(selector ? selector : "cpu", ordinal, err);
}

static const struct device_provider providers[] = {
    {"gpu", start_gpu, find_gpu, false},
    {"cpu", start_cpu, find_cpu, true},
};
enum { PROVIDERS = sizeof providers / sizeof *providers };

const struct device_provider *device_provider_at(size_t index)
{
    return index < PROVIDERS ? &providers[index] : NULL;
}

/* ---- opening ---- */

ptxgen_status device_check(struct device *device, ptxgen_cu_result result, const char *what,
                           ptxgen_error *err)
{
    if (result == PTXGEN_CUDA_SUCCESS)
        return PTXGEN_OK;
    return ptxgen_driver_fail(&device->driver, result, err, "%s", what);
}

static ptxgen_status enter(struct device *d, int ordinal, ptxgen_error *err)
{
    ptxgen_driver *driver = &d->driver;
    ptxgen_status status = ptxgen_device_read(driver, ordinal, &d->facts, err);
    ptxgen_cu_device handle = 0;
    if (status == PTXGEN_OK)
        status = device_check(d, driver->device_get(&handle, ordinal), "getting the device", err);
    if (status == PTXGEN_OK)
        status = device_check(d, driver->device_primary_ctx_retain(&d->context, handle),
                              "making a context on the device", err);
    if (status == PTXGEN_OK)
        status = device_check(d, driver->ctx_set_current(d->context), "entering the context", err);
    if (status == PTXGEN_OK)
        status = device_check(d, driver->stream_create(&d->stream, PTXGEN_CU_STREAM_NON_BLOCKING),
                              "making a stream", err);
    return status;
}

static ptxgen_status open_at(const struct device_provider *provider, const char *selector,
                             struct device *d, ptxgen_error *err)
{
    int ordinal;
    memset(d, 0, sizeof *d);
    d->emulated = provider->emulated;
    ptxgen_status status = provider->start(&d->driver, err);
    if (status == PTXGEN_OK) {
        status = provider->find(&d->driver, selector, &ordinal, err);
        if (status == PTXGEN_OK)
            status = enter(d, ordinal, err);
    }
    if (status != PTXGEN_OK)
        device_close(d);
    return status;
}

static ptxgen_status open_auto(struct device *d, ptxgen_error *err)
{
    ptxgen_error first;
    ptxgen_status status = open_at(&providers[0], NULL, d, &first);
    for (int i = 1; i < PROVIDERS && status != PTXGEN_OK; i++) {
        if (status == PTXGEN_ERROR_OUT_OF_MEMORY)
            return ptxgen_fail(err, status, "%s", first.message);
        status = open_at(&providers[i], NULL, d, err);
        if (status == PTXGEN_OK)
            fprintf(stderr, "ptxgen: no GPU (%s); running on %s, whose times mean nothing\n",
                    first.message, d->facts.name);
    }
    return status;
}

ptxgen_status device_open(const char *name, struct device *d, ptxgen_error *err)
{
    if (!strcmp(name, "auto"))
        return open_auto(d, err);
    const char *colon = strchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : strlen(name);
    for (int i = 0; i < PROVIDERS; i++)
        if (strlen(providers[i].name) == length && !strncmp(providers[i].name, name, length))
            return open_at(&providers[i], colon ? colon + 1 : NULL, d, err);
    memset(d, 0, sizeof *d);
    return ptxgen_fail(err, PTXGEN_ERROR_NO_DEVICE,
                       "no device is named \"%s\"; there are auto, gpu, gpu:NUMBER, cpu, cpu:SM",
                       name);
}

void device_close(struct device *d)
{
    if (d->stream)
        d->driver.stream_destroy(d->stream);
    if (d->context)
        d->driver.device_primary_ctx_release(d->facts.ordinal);
    ptxgen_driver_close(&d->driver);
    memset(d, 0, sizeof *d);
}

ptxgen_status device_explain(struct device *d, ptxgen_status status, ptxgen_error *err)
{
    ptxgen_emulator_fault fault;
    if (status != PTXGEN_ERROR_DRIVER || !d->emulated)
        return status;
    ptxgen_emulator_last_fault(d->context, &fault);
    if (fault.check == PTXGEN_CHECK_NONE)
        return status;
    return ptxgen_fail(err, PTXGEN_ERROR_PTX_FAULT, "%s", fault.message);
}

ptxgen_status device_wait(struct device *d, ptxgen_error *err)
{
    ptxgen_status status =
        device_check(d, d->driver.stream_synchronize(d->stream), "running the kernel", err);
    return device_explain(d, status, err);
}
