/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/kernel.h>

#include "src/runtime/context.h"
#include "src/runtime/cubin_check.h"
#include "src/runtime/jit.h"
#include "src/runtime/objects.h"
#include "src/runtime/ptx_header.h"

#include <stdlib.h>
#include <string.h>

/*
 * Makes the options' context current, until context_leave, and says where code goes: all of `at`
 * but the handle. A text is looked at first; NULL: there is none.
 */
static ptxgen_status enter(ptxgen_module *at, const ptxgen_driver *driver, const char *ptx,
                           const ptxgen_module_options *options, ptxgen_error *err)
{
    *at = (ptxgen_module){.driver = driver};
    ptxgen_status status =
        context_enter(driver, options ? options->context : NULL, &at->context, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_cu_result result = driver->ctx_get_device(&at->device);
    if (result != PTXGEN_CUDA_SUCCESS)
        status = ptxgen_driver_fail(driver, result, err, "cuCtxGetDevice");
    if (status == PTXGEN_OK && ptx) {
        struct ptx_header header = ptx_header_read(ptx);
        status = ptx_header_check(&header, driver, at->device, err);
    }
    if (status != PTXGEN_OK)
        context_leave(driver);
    return status;
}

static ptxgen_status load_into(const ptxgen_module *at, const void *image,
                               const ptxgen_module_options *options, ptxgen_module **module,
                               ptxgen_error *err)
{
    ptxgen_module *loaded = malloc(sizeof *loaded);
    if (!loaded)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a module, %zu bytes",
                           sizeof *loaded);
    *loaded = *at;

    struct jit jit;
    jit_begin(&jit, options);
    ptxgen_cu_result result =
        at->driver->module_load_data_ex(&loaded->handle, image, jit.count, jit.options, jit.values);
    ptxgen_status status = jit_end(&jit, at->driver, result, err);
    if (status == PTXGEN_OK)
        *module = loaded;
    else
        free(loaded);
    return status;
}

/* A text is its own image. */
static ptxgen_status load(const ptxgen_driver *driver, const char *ptx, const void *image,
                          const ptxgen_module_options *options, ptxgen_module **module,
                          ptxgen_error *err)
{
    ptxgen_module at;
    ptxgen_status status = enter(&at, driver, ptx, options, err);
    if (status != PTXGEN_OK)
        return status;
    status = load_into(&at, image, options, module, err);
    context_leave(driver);
    return status;
}

ptxgen_status ptxgen_module_load_ptx(const ptxgen_driver *driver, const char *ptx,
                                     const ptxgen_module_options *options, ptxgen_module **module,
                                     ptxgen_error *err)
{
    if (!driver || !ptx || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_module_load_ptx: driver, ptx or module is NULL");
    *module = NULL;
    return load(driver, ptx, ptx, options, module, err);
}

ptxgen_status ptxgen_module_load_cubin(const ptxgen_driver *driver, const void *cubin, size_t size,
                                       const ptxgen_module_options *options, ptxgen_module **module,
                                       ptxgen_error *err)
{
    if (!driver || !cubin || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_module_load_cubin: driver, cubin or module is NULL");
    *module = NULL;
    ptxgen_status status = cubin_check(cubin, size, err);
    return status == PTXGEN_OK ? load(driver, NULL, cubin, options, module, err) : status;
}

void ptxgen_module_destroy(ptxgen_module *module)
{
    if (!module)
        return;
    ptxgen_cu_context context;
    if (context_enter(module->driver, module->context, &context, NULL) == PTXGEN_OK) {
        module->driver->module_unload(module->handle);
        context_leave(module->driver);
    }
    free(module);
}

ptxgen_status ptxgen_module_global(const ptxgen_module *module, const char *name,
                                   ptxgen_cu_deviceptr *address, size_t *bytes, ptxgen_error *err)
{
    if (!module || !name || !address || !bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_module_global: module, name, address or bytes is NULL");
    ptxgen_cu_context context;
    ptxgen_status status = context_enter(module->driver, module->context, &context, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_cu_result result =
        module->driver->module_get_global(address, bytes, module->handle, name);
    context_leave(module->driver);
    if (result == PTXGEN_CUDA_ERROR_NOT_FOUND)
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "the module has no variable named '%s'",
                           name);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(module->driver, result, err, "cuModuleGetGlobal of '%s'", name);
    return PTXGEN_OK;
}

/* The linker owns its cubin, so the bytes are copied out before the linker is destroyed. */
static ptxgen_status copy_cubin(const void *bytes, size_t size, ptxgen_cubin *cubin,
                                ptxgen_error *err)
{
    cubin->bytes = malloc(size);
    if (!cubin->bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a cubin of %zu bytes",
                           size);
    memcpy(cubin->bytes, bytes, size);
    cubin->size = size;
    return PTXGEN_OK;
}

static ptxgen_status link_into(const ptxgen_driver *driver, const char *ptx,
                               const ptxgen_module_options *options, ptxgen_cubin *cubin,
                               ptxgen_error *err)
{
    ptxgen_cu_link_state linker;
    struct jit jit;
    jit_begin(&jit, options);
    ptxgen_cu_result result = driver->link_create(jit.count, jit.options, jit.values, &linker);
    if (result != PTXGEN_CUDA_SUCCESS)
        return jit_end(&jit, driver, result, err);
    /* The length counts the NUL. libcuda takes the text as void * but only reads it. */
    result = driver->link_add_data(linker, PTXGEN_CU_JIT_INPUT_PTX, (void *)(uintptr_t)ptx,
                                   strlen(ptx) + 1, "ptxgen", 0, NULL, NULL);
    void *bytes = NULL;
    size_t size = 0;
    if (result == PTXGEN_CUDA_SUCCESS)
        result = driver->link_complete(linker, &bytes, &size);
    ptxgen_status status = jit_end(&jit, driver, result, err);
    if (status == PTXGEN_OK)
        status = copy_cubin(bytes, size, cubin, err);
    driver->link_destroy(linker);
    return status;
}

ptxgen_status ptxgen_assemble(const ptxgen_driver *driver, const char *ptx,
                              const ptxgen_module_options *options, ptxgen_cubin *cubin,
                              ptxgen_error *err)
{
    if (!driver || !ptx || !cubin)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_assemble: driver, ptx or cubin is NULL");
    cubin->bytes = NULL;
    cubin->size = 0;
    ptxgen_module at;
    ptxgen_status status = enter(&at, driver, ptx, options, err);
    if (status != PTXGEN_OK)
        return status;
    status = link_into(driver, ptx, options, cubin, err);
    context_leave(driver);
    return status;
}

void ptxgen_cubin_free(ptxgen_cubin *cubin)
{
    if (!cubin)
        return;
    free(cubin->bytes);
    cubin->bytes = NULL;
    cubin->size = 0;
}
