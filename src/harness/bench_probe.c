/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_probe.h"

ptxgen_status probe_load(struct probe *probe, struct device *device, const ptx_target *target,
                         void (*emit)(ptx_module *module), const char *name, ptxgen_error *err)
{
    ptx_module *module = ptx_module_create(target, NULL);
    const char *text;
    *probe = (struct probe){.device = device};
    if (!module)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a module");
    emit(module);
    ptxgen_status status = ptx_module_text(module, 0, &text, NULL, err);
    if (status == PTXGEN_OK)
        status = ptxgen_module_load_ptx(&device->driver, text, NULL, &probe->module, err);
    ptx_module_destroy(module);
    if (status == PTXGEN_OK)
        status = ptxgen_kernel_create(probe->module, name, 0, &probe->kernel, err);
    return status;
}

void probe_free(struct probe *probe)
{
    ptxgen_kernel_destroy(probe->kernel);
    ptxgen_module_destroy(probe->module);
}
