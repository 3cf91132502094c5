/* SPDX-License-Identifier: Apache-2.0 */
/* Typed look-ups over the metadata of a parsed file. */
#include "gguf.h"

#include "printable.h"

#include <inttypes.h>
#include <string.h>

static ptxgen_status find(const struct gguf_file *file, const char *key,
                          const struct gguf_value **value, ptxgen_error *err)
{
    *value = gguf_find(file, key);
    if (*value)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "the file has no key %s",
                       printable(key, strlen(key)).text);
}

static ptxgen_status wrong_type(const char *key, const struct gguf_value *value, const char *wanted,
                                ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "key %s is %s; %s was expected",
                       printable(key, strlen(key)).text, gguf_type_name(value->type), wanted);
}

static ptxgen_status find_typed(const struct gguf_file *file, const char *key, enum gguf_type type,
                                const struct gguf_value **value, ptxgen_error *err)
{
    ptxgen_status status = find(file, key, value, err);
    if (status == PTXGEN_OK && (*value)->type != type)
        status = wrong_type(key, *value, gguf_type_name(type), err);
    return status;
}

static bool is_signed(enum gguf_type type)
{
    return type == GGUF_INT8 || type == GGUF_INT16 || type == GGUF_INT32 || type == GGUF_INT64;
}

static bool is_unsigned(enum gguf_type type)
{
    return type == GGUF_UINT8 || type == GGUF_UINT16 || type == GGUF_UINT32 || type == GGUF_UINT64;
}

static ptxgen_status get_unsigned(const struct gguf_file *file, const char *key, uint64_t largest,
                                  uint64_t *result, ptxgen_error *err)
{
    const struct gguf_value *value;
    ptxgen_status status = find(file, key, &value, err);
    if (status != PTXGEN_OK)
        return status;
    if (!is_signed(value->type) && !is_unsigned(value->type))
        return wrong_type(key, value, "an integer", err);
    if (is_signed(value->type) && value->i < 0)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "key %s is %" PRId64 ", below 0",
                           printable(key, strlen(key)).text, value->i);
    *result = is_signed(value->type) ? (uint64_t)value->i : value->u;
    if (*result > largest)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "key %s is %" PRIu64 ", above %" PRIu64,
                           printable(key, strlen(key)).text, *result, largest);
    return PTXGEN_OK;
}

ptxgen_status gguf_get_u32(const struct gguf_file *file, const char *key, uint32_t *value,
                           ptxgen_error *err)
{
    uint64_t wide;
    ptxgen_status status = get_unsigned(file, key, UINT32_MAX, &wide, err);
    if (status == PTXGEN_OK)
        *value = (uint32_t)wide;
    return status;
}

ptxgen_status gguf_get_u64(const struct gguf_file *file, const char *key, uint64_t *value,
                           ptxgen_error *err)
{
    uint64_t wide;
    ptxgen_status status = get_unsigned(file, key, UINT64_MAX, &wide, err);
    if (status == PTXGEN_OK)
        *value = wide;
    return status;
}

ptxgen_status gguf_get_i64(const struct gguf_file *file, const char *key, int64_t *value,
                           ptxgen_error *err)
{
    const struct gguf_value *found;
    uint64_t wide;
    ptxgen_status status = find(file, key, &found, err);
    if (status == PTXGEN_OK && is_signed(found->type)) {
        *value = found->i;
        return PTXGEN_OK;
    }
    if (status == PTXGEN_OK)
        status = get_unsigned(file, key, INT64_MAX, &wide, err);
    if (status == PTXGEN_OK)
        *value = (int64_t)wide;
    return status;
}

ptxgen_status gguf_get_f32(const struct gguf_file *file, const char *key, float *value,
                           ptxgen_error *err)
{
    const struct gguf_value *found;
    ptxgen_status status = find_typed(file, key, GGUF_FLOAT32, &found, err);
    if (status == PTXGEN_OK)
        *value = found->f32;
    return status;
}

ptxgen_status gguf_get_bool(const struct gguf_file *file, const char *key, bool *value,
                            ptxgen_error *err)
{
    const struct gguf_value *found;
    ptxgen_status status = find_typed(file, key, GGUF_BOOL, &found, err);
    if (status == PTXGEN_OK)
        *value = found->boolean;
    return status;
}

ptxgen_status gguf_get_string(const struct gguf_file *file, const char *key,
                              struct gguf_string *value, ptxgen_error *err)
{
    const struct gguf_value *found;
    ptxgen_status status = find_typed(file, key, GGUF_STRING, &found, err);
    if (status == PTXGEN_OK)
        *value = found->string;
    return status;
}

ptxgen_status gguf_get_array(const struct gguf_file *file, const char *key,
                             struct gguf_array *value, ptxgen_error *err)
{
    const struct gguf_value *found;
    ptxgen_status status = find_typed(file, key, GGUF_ARRAY, &found, err);
    if (status == PTXGEN_OK)
        *value = found->array;
    return status;
}
