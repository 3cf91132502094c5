/* SPDX-License-Identifier: Apache-2.0 */
#include "number_tensor.h"

#include <ptxgen/types.h>

#include <string.h>

bool tensor_is_float(ptxgen_dtype dtype)
{
    return dtype == PTXGEN_DTYPE_F32 || dtype == PTXGEN_DTYPE_F16 || dtype == PTXGEN_DTYPE_BF16;
}

double tensor_float(const ptxgen_tensor *t, size_t index)
{
    ptxgen_element type = t->dtype == PTXGEN_DTYPE_F32   ? PTXGEN_F32
                          : t->dtype == PTXGEN_DTYPE_F16 ? PTXGEN_F16
                                                         : PTXGEN_BF16;
    return ptxgen_element_load(type, t->data, index);
}

bool tensor_is_number(ptxgen_dtype dtype)
{
    switch (dtype) {
    case PTXGEN_DTYPE_F64:
    case PTXGEN_DTYPE_I8:
    case PTXGEN_DTYPE_I16:
    case PTXGEN_DTYPE_I32:
    case PTXGEN_DTYPE_I64:
    case PTXGEN_DTYPE_U8:
    case PTXGEN_DTYPE_U16:
    case PTXGEN_DTYPE_U32:
    case PTXGEN_DTYPE_U64: return true;
    default: return tensor_is_float(dtype);
    }
}

/* Little-endian, with the sign in every upper bit if there is one. */
static uint64_t word_at(const ptxgen_tensor *t, size_t index, bool is_signed)
{
    unsigned size = ptxgen_dtype_find(t->dtype)->block_bytes;
    const unsigned char *bytes = (const unsigned char *)t->data + index * size;
    uint64_t word = is_signed && bytes[size - 1] >> 7 ? UINT64_MAX : 0;
    for (unsigned i = size; i-- > 0;)
        word = word << 8 | bytes[i];
    return word;
}

double tensor_number(const ptxgen_tensor *t, size_t index)
{
    double value;
    uint64_t word;
    switch (t->dtype) {
    case PTXGEN_DTYPE_F64:
        word = word_at(t, index, false);
        memcpy(&value, &word, sizeof value);
        return value;
    case PTXGEN_DTYPE_U8:
    case PTXGEN_DTYPE_U16:
    case PTXGEN_DTYPE_U32:
    case PTXGEN_DTYPE_U64: return (double)word_at(t, index, false);
    case PTXGEN_DTYPE_I8:
    case PTXGEN_DTYPE_I16:
    case PTXGEN_DTYPE_I32:
    case PTXGEN_DTYPE_I64: return (double)(int64_t)word_at(t, index, true);
    default: return tensor_float(t, index);
    }
}

uint64_t tensor_count(const ptxgen_tensor *t)
{
    uint64_t count = 1;
    for (unsigned i = 0; i < t->ndim; i++)
        count *= t->shape[i];
    return count;
}

ptxgen_status tensor_check_floats(const ptxgen_tensor *t, uint64_t count, bool or_one,
                                  ptxgen_error *err)
{
    uint64_t found = tensor_count(t);
    if (tensor_is_float(t->dtype) && (found == count || (or_one && found == 1)))
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is %s %s; expected %llu floats%s",
                       t->name, ptxgen_dtype_find(t->dtype)->name, tensor_shape_text(t).text,
                       (unsigned long long)count, or_one ? ", or one" : "");
}

ptxgen_status require_floats(const ptxgen_files *store, const char *name, uint64_t columns,
                             uint64_t *rows, const ptxgen_tensor **tensor, ptxgen_error *err)
{
    ptxgen_status status = ptxgen_files_require(store, name, tensor, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_tensor *t = *tensor;
    if (!tensor_is_float(t->dtype) || !t->ndim || t->shape[t->ndim - 1] != columns)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s; expected F32, F16 or BF16 with %llu columns", name,
                           ptxgen_dtype_find(t->dtype)->name, tensor_shape_text(t).text,
                           (unsigned long long)columns);
    *rows = 1;
    for (unsigned i = 0; i + 1 < t->ndim; i++)
        *rows *= t->shape[i];
    return PTXGEN_OK;
}
