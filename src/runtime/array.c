/* SPDX-License-Identifier: Apache-2.0 */
#include "array.h"

static ptxgen_status check(const char *family, const struct launch_array *a, ptxgen_error *err)
{
    if (!a->address)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s: %s is null", family, a->name);
    if (a->address % a->align)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: %s at 0x%llx is not a multiple of %u bytes", family, a->name,
                           (unsigned long long)a->address, a->align);
    if (a->stride && !*a->stride)
        *a->stride = a->columns;
    if (a->stride && *a->stride < a->columns)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: the row stride of %s, %llu, is below its %llu columns", family,
                           a->name, (unsigned long long)*a->stride, (unsigned long long)a->columns);
    return PTXGEN_OK;
}

ptxgen_status launch_check_arrays(const char *family, const struct launch_array *arrays,
                                  size_t count, ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < count; i++)
        if (arrays[i].used)
            status = check(family, &arrays[i], err);
    return status;
}

ptxgen_status launch_check_workspace(const char *family, uint64_t address, uint64_t bytes,
                                     uint64_t needed, const char *rows, uint64_t count,
                                     ptxgen_error *err)
{
    const struct launch_array workspace = {"workspace", true, address, 16, NULL, 0};
    if (needed && bytes < needed)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: a workspace of %llu bytes is below the %llu that %s = %llu needs",
                           family, (unsigned long long)bytes, (unsigned long long)needed, rows,
                           (unsigned long long)count);
    return needed ? launch_check_arrays(family, &workspace, 1, err) : PTXGEN_OK;
}
