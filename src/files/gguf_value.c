/* SPDX-License-Identifier: Apache-2.0 */
#include "gguf_read.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_NESTING = 16 };

/* Bytes of a scalar, 0 for the types of varying length. */
static const struct {
    const char *name;
    unsigned char bytes;
} types[] = {
    [PTXGEN_GGUF_VALUE_UINT8] = {"UINT8", 1},     [PTXGEN_GGUF_VALUE_INT8] = {"INT8", 1},
    [PTXGEN_GGUF_VALUE_UINT16] = {"UINT16", 2},   [PTXGEN_GGUF_VALUE_INT16] = {"INT16", 2},
    [PTXGEN_GGUF_VALUE_UINT32] = {"UINT32", 4},   [PTXGEN_GGUF_VALUE_INT32] = {"INT32", 4},
    [PTXGEN_GGUF_VALUE_FLOAT32] = {"FLOAT32", 4}, [PTXGEN_GGUF_VALUE_BOOL] = {"BOOL", 1},
    [PTXGEN_GGUF_VALUE_STRING] = {"STRING", 0},   [PTXGEN_GGUF_VALUE_ARRAY] = {"ARRAY", 0},
    [PTXGEN_GGUF_VALUE_UINT64] = {"UINT64", 8},   [PTXGEN_GGUF_VALUE_INT64] = {"INT64", 8},
    [PTXGEN_GGUF_VALUE_FLOAT64] = {"FLOAT64", 8},
};
enum { TYPE_COUNT = sizeof types / sizeof *types };

const char *ptxgen_gguf_value_type_name(ptxgen_gguf_value_type type)
{
    return (unsigned)type < TYPE_COUNT ? types[type].name : "unknown";
}

static size_t left(const struct gguf_cursor *c)
{
    return (size_t)(c->end - c->at);
}

static size_t offset(const struct gguf_cursor *c)
{
    return (size_t)(c->at - c->start);
}

static ptxgen_status need(const struct gguf_cursor *c, uint64_t bytes, ptxgen_error *err)
{
    if (bytes <= left(c))
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                       "%s: needs %" PRIu64 " bytes at offset %zu, where the file has %zu left",
                       c->subject, bytes, offset(c), left(c));
}

static uint64_t little_endian(const unsigned char *bytes, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static ptxgen_status read_unsigned(struct gguf_cursor *c, unsigned bytes, uint64_t *value,
                                   ptxgen_error *err)
{
    ptxgen_status status = need(c, bytes, err);
    if (status != PTXGEN_OK)
        return status;
    *value = little_endian(c->at, bytes);
    c->at += bytes;
    return PTXGEN_OK;
}

ptxgen_status gguf_read_u32(struct gguf_cursor *c, uint32_t *value, ptxgen_error *err)
{
    uint64_t wide = 0;
    ptxgen_status status = read_unsigned(c, 4, &wide, err);
    *value = (uint32_t)wide;
    return status;
}

ptxgen_status gguf_read_u64(struct gguf_cursor *c, uint64_t *value, ptxgen_error *err)
{
    return read_unsigned(c, 8, value, err);
}

ptxgen_status gguf_read_string(struct gguf_cursor *c, ptxgen_gguf_string *value, ptxgen_error *err)
{
    uint64_t length;
    ptxgen_status status = gguf_read_u64(c, &length, err);
    if (status == PTXGEN_OK)
        status = need(c, length, err);
    if (status != PTXGEN_OK)
        return status;
    *value = (ptxgen_gguf_string){(const char *)c->at, (size_t)length};
    c->at += length;
    return PTXGEN_OK;
}

static ptxgen_status read_scalar(struct gguf_cursor *c, ptxgen_gguf_value_type type,
                                 ptxgen_gguf_value *value, ptxgen_error *err)
{
    unsigned bytes = types[type].bytes;
    uint64_t bits;
    ptxgen_status status = read_unsigned(c, bytes, &bits, err);
    if (status != PTXGEN_OK)
        return status;

    uint32_t low = (uint32_t)bits;
    switch (type) {
    case PTXGEN_GGUF_VALUE_INT8: value->i = (int8_t)bits; break;
    case PTXGEN_GGUF_VALUE_INT16: value->i = (int16_t)bits; break;
    case PTXGEN_GGUF_VALUE_INT32: value->i = (int32_t)bits; break;
    case PTXGEN_GGUF_VALUE_INT64: value->i = (int64_t)bits; break;
    case PTXGEN_GGUF_VALUE_FLOAT32: memcpy(&value->f32, &low, sizeof low); break;
    case PTXGEN_GGUF_VALUE_FLOAT64: memcpy(&value->f64, &bits, sizeof bits); break;
    case PTXGEN_GGUF_VALUE_BOOL:
        if (bits > 1)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "%s: BOOL at offset %zu is %" PRIu64 "; only 0 and 1 are valid",
                               c->subject, offset(c) - 1, bits);
        value->boolean = bits != 0;
        break;
    default: value->u = bits; break;
    }
    return PTXGEN_OK;
}

static ptxgen_status read_value(struct gguf_cursor *c, uint32_t type, unsigned depth,
                                ptxgen_gguf_value *value, ptxgen_error *err);

/* Moves past `count` elements, each checked. Scalars other than BOOL have nothing to check. */
static ptxgen_status skip_elements(struct gguf_cursor *c, ptxgen_gguf_value_type type,
                                   uint64_t count, unsigned depth, ptxgen_error *err)
{
    unsigned bytes = types[type].bytes;
    if (bytes != 0 && type != PTXGEN_GGUF_VALUE_BOOL) {
        if (count > left(c) / bytes)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "%s: array of %" PRIu64
                               " %s at offset %zu, where the file has %zu bytes left",
                               c->subject, count, types[type].name, offset(c), left(c));
        c->at += count * bytes;
        return PTXGEN_OK;
    }
    ptxgen_gguf_value ignored;
    ptxgen_status status = PTXGEN_OK;
    for (uint64_t i = 0; i < count && status == PTXGEN_OK; i++)
        status = read_value(c, type, depth, &ignored, err);
    return status;
}

static ptxgen_status read_array(struct gguf_cursor *c, unsigned depth, ptxgen_gguf_array *array,
                                ptxgen_error *err)
{
    uint32_t type;
    uint64_t count;
    if (depth >= MAX_NESTING)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s: arrays nest deeper than %d",
                           c->subject, MAX_NESTING);
    ptxgen_status status = gguf_read_u32(c, &type, err);
    if (status == PTXGEN_OK)
        status = gguf_read_u64(c, &count, err);
    if (status != PTXGEN_OK)
        return status;
    if (type >= TYPE_COUNT)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "%s: array element type %" PRIu32 " is unknown; the last is %d",
                           c->subject, type, TYPE_COUNT - 1);

    const unsigned char *data = c->at;
    status = skip_elements(c, (ptxgen_gguf_value_type)type, count, depth + 1, err);
    if (status == PTXGEN_OK)
        *array =
            (ptxgen_gguf_array){(ptxgen_gguf_value_type)type, count, data, (size_t)(c->at - data)};
    return status;
}

static ptxgen_status read_value(struct gguf_cursor *c, uint32_t type, unsigned depth,
                                ptxgen_gguf_value *value, ptxgen_error *err)
{
    if (type >= TYPE_COUNT)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "%s: value type %" PRIu32 " is unknown; the last is %d", c->subject,
                           type, TYPE_COUNT - 1);
    value->type = (ptxgen_gguf_value_type)type;
    switch (value->type) {
    case PTXGEN_GGUF_VALUE_STRING: return gguf_read_string(c, &value->string, err);
    case PTXGEN_GGUF_VALUE_ARRAY: return read_array(c, depth, &value->array, err);
    default: return read_scalar(c, value->type, value, err);
    }
}

ptxgen_status gguf_read_value(struct gguf_cursor *c, uint32_t type, ptxgen_gguf_value *value,
                              ptxgen_error *err)
{
    return read_value(c, type, 0, value, err);
}

bool ptxgen_gguf_array_next(ptxgen_gguf_array *rest, ptxgen_gguf_value *element)
{
    if (!rest || !element || rest->count == 0)
        return false;
    struct gguf_cursor c = {.start = rest->data, .at = rest->data, .end = rest->data + rest->bytes};
    if (gguf_read_value(&c, rest->type, element, NULL) != PTXGEN_OK)
        return false;
    rest->count--;
    rest->data = c.at;
    rest->bytes = left(&c);
    return true;
}
