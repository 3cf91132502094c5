/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind the opaque types of ptxgen/kernel.h. */
#ifndef PTXGEN_RUNTIME_OBJECTS_H
#define PTXGEN_RUNTIME_OBJECTS_H

#include <ptxgen/kernel.h>

struct ptxgen_module {
    const ptxgen_driver *driver;
    ptxgen_cu_context context;
    ptxgen_cu_device device;
    ptxgen_cu_module handle;
};

struct ptxgen_kernel {
    const ptxgen_driver *driver;
    ptxgen_cu_context context;
    ptxgen_cu_device device;
    ptxgen_cu_function function;
    ptxgen_kernel_attributes attributes;
    char name[]; /* for sentences */
};

#endif
