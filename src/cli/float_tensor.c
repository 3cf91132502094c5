/* SPDX-License-Identifier: Apache-2.0 */
#include "float_tensor.h"

#include <ptxgen/types.h>

bool tensor_is_float(enum tensor_dtype dtype)
{
    return dtype == TENSOR_F32 || dtype == TENSOR_F16 || dtype == TENSOR_BF16;
}

double tensor_float(const struct named_tensor *t, size_t index)
{
    ptxgen_element type = t->dtype == TENSOR_F32   ? PTXGEN_F32
                          : t->dtype == TENSOR_F16 ? PTXGEN_F16
                                                   : PTXGEN_BF16;
    return ptxgen_element_load(type, t->data, index);
}

uint64_t tensor_count(const struct named_tensor *t)
{
    uint64_t count = 1;
    for (unsigned i = 0; i < t->ndim; i++)
        count *= t->shape[i];
    return count;
}

ptxgen_status tensor_check_floats(const struct named_tensor *t, uint64_t count, bool or_one,
                                  ptxgen_error *err)
{
    uint64_t found = tensor_count(t);
    if (tensor_is_float(t->dtype) && (found == count || (or_one && found == 1)))
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is %s %s; expected %llu floats%s",
                       t->name, tensor_dtype_info(t->dtype)->name, tensor_shape_text(t).text,
                       (unsigned long long)count, or_one ? ", or one" : "");
}

ptxgen_status tensor_store_require_floats(const struct tensor_store *store, const char *name,
                                          uint64_t columns, uint64_t *rows,
                                          const struct named_tensor **tensor, ptxgen_error *err)
{
    ptxgen_status status = tensor_store_require(store, name, tensor, err);
    if (status != PTXGEN_OK)
        return status;
    const struct named_tensor *t = *tensor;
    if (!tensor_is_float(t->dtype) || !t->ndim || t->shape[t->ndim - 1] != columns)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s; expected F32, F16 or BF16 with %llu columns", name,
                           tensor_dtype_info(t->dtype)->name, tensor_shape_text(t).text,
                           (unsigned long long)columns);
    *rows = 1;
    for (unsigned i = 0; i + 1 < t->ndim; i++)
        *rows *= t->shape[i];
    return PTXGEN_OK;
}
