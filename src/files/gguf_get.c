/* SPDX-License-Identifier: Apache-2.0 */
/* Typed look-ups over the metadata of a parsed file. */
#include <ptxgen/gguf.h>

#include "printable.h"

#include <inttypes.h>
#include <string.h>

/* `result` is where the caller wants it. */
static ptxgen_status find(const ptxgen_gguf *file, const char *key, const void *result,
                          const ptxgen_gguf_value **value, ptxgen_error *err)
{
    if (!file || !key || !result)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a look-up in a GGUF file: file, key and value must be given");
    *value = ptxgen_gguf_find(file, key);
    if (*value)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "the file has no key %s",
                       printable(key, strlen(key)).text);
}

static ptxgen_status wrong_type(const char *key, const ptxgen_gguf_value *value, const char *wanted,
                                ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "key %s is %s; %s was expected",
                       printable(key, strlen(key)).text, ptxgen_gguf_value_type_name(value->type),
                       wanted);
}

static ptxgen_status find_typed(const ptxgen_gguf *file, const char *key,
                                ptxgen_gguf_value_type type, const void *result,
                                const ptxgen_gguf_value **value, ptxgen_error *err)
{
    ptxgen_status status = find(file, key, result, value, err);
    if (status == PTXGEN_OK && (*value)->type != type)
        status = wrong_type(key, *value, ptxgen_gguf_value_type_name(type), err);
    return status;
}

static bool is_signed(ptxgen_gguf_value_type type)
{
    return type == PTXGEN_GGUF_VALUE_INT8 || type == PTXGEN_GGUF_VALUE_INT16 ||
           type == PTXGEN_GGUF_VALUE_INT32 || type == PTXGEN_GGUF_VALUE_INT64;
}

static bool is_unsigned(ptxgen_gguf_value_type type)
{
    return type == PTXGEN_GGUF_VALUE_UINT8 || type == PTXGEN_GGUF_VALUE_UINT16 ||
           type == PTXGEN_GGUF_VALUE_UINT32 || type == PTXGEN_GGUF_VALUE_UINT64;
}

static ptxgen_status get_unsigned(const ptxgen_gguf *file, const char *key, uint64_t largest,
                                  const void *result, uint64_t *wide, ptxgen_error *err)
{
    const ptxgen_gguf_value *value;
    ptxgen_status status = find(file, key, result, &value, err);
    if (status != PTXGEN_OK)
        return status;
    if (!is_signed(value->type) && !is_unsigned(value->type))
        return wrong_type(key, value, "an integer", err);
    if (is_signed(value->type) && value->i < 0)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "key %s is %" PRId64 ", below 0",
                           printable(key, strlen(key)).text, value->i);
    *wide = is_signed(value->type) ? (uint64_t)value->i : value->u;
    if (*wide > largest)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "key %s is %" PRIu64 ", above %" PRIu64,
                           printable(key, strlen(key)).text, *wide, largest);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_gguf_get_u32(const ptxgen_gguf *file, const char *key, uint32_t *value,
                                  ptxgen_error *err)
{
    uint64_t wide;
    ptxgen_status status = get_unsigned(file, key, UINT32_MAX, value, &wide, err);
    if (status == PTXGEN_OK)
        *value = (uint32_t)wide;
    return status;
}

ptxgen_status ptxgen_gguf_get_u64(const ptxgen_gguf *file, const char *key, uint64_t *value,
                                  ptxgen_error *err)
{
    uint64_t wide;
    ptxgen_status status = get_unsigned(file, key, UINT64_MAX, value, &wide, err);
    if (status == PTXGEN_OK)
        *value = wide;
    return status;
}

ptxgen_status ptxgen_gguf_get_i64(const ptxgen_gguf *file, const char *key, int64_t *value,
                                  ptxgen_error *err)
{
    const ptxgen_gguf_value *found;
    uint64_t wide;
    ptxgen_status status = find(file, key, value, &found, err);
    if (status == PTXGEN_OK && is_signed(found->type)) {
        *value = found->i;
        return PTXGEN_OK;
    }
    if (status == PTXGEN_OK)
        status = get_unsigned(file, key, INT64_MAX, value, &wide, err);
    if (status == PTXGEN_OK)
        *value = (int64_t)wide;
    return status;
}

ptxgen_status ptxgen_gguf_get_f32(const ptxgen_gguf *file, const char *key, float *value,
                                  ptxgen_error *err)
{
    const ptxgen_gguf_value *found;
    ptxgen_status status = find_typed(file, key, PTXGEN_GGUF_VALUE_FLOAT32, value, &found, err);
    if (status == PTXGEN_OK)
        *value = found->f32;
    return status;
}

ptxgen_status ptxgen_gguf_get_bool(const ptxgen_gguf *file, const char *key, bool *value,
                                   ptxgen_error *err)
{
    const ptxgen_gguf_value *found;
    ptxgen_status status = find_typed(file, key, PTXGEN_GGUF_VALUE_BOOL, value, &found, err);
    if (status == PTXGEN_OK)
        *value = found->boolean;
    return status;
}

ptxgen_status ptxgen_gguf_get_string(const ptxgen_gguf *file, const char *key,
                                     ptxgen_gguf_string *value, ptxgen_error *err)
{
    const ptxgen_gguf_value *found;
    ptxgen_status status = find_typed(file, key, PTXGEN_GGUF_VALUE_STRING, value, &found, err);
    if (status == PTXGEN_OK)
        *value = found->string;
    return status;
}

ptxgen_status ptxgen_gguf_get_array(const ptxgen_gguf *file, const char *key,
                                    ptxgen_gguf_array *value, ptxgen_error *err)
{
    const ptxgen_gguf_value *found;
    ptxgen_status status = find_typed(file, key, PTXGEN_GGUF_VALUE_ARRAY, value, &found, err);
    if (status == PTXGEN_OK)
        *value = found->array;
    return status;
}
