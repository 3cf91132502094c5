/* SPDX-License-Identifier: Apache-2.0 */
#include "safetensors_writer.h"

#include "output_file.h"

#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct safetensors_writer {
    struct output_file *file;
    cJSON *header, *metadata;
    size_t *bytes; /* of each declared tensor */
    size_t declared, appended;
    uint64_t offset; /* of the next to be declared */
    bool header_written;
};

static void release(struct safetensors_writer *w)
{
    output_file_abandon(w->file);
    cJSON_Delete(w->header);
    free(w->bytes);
    free(w);
}

static ptxgen_status no_memory(ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to write a safetensors file");
}

ptxgen_status safetensors_writer_open(const char *path, bool force,
                                      struct safetensors_writer **writer, ptxgen_error *err)
{
    struct safetensors_writer *w = calloc(1, sizeof *w);
    if (!w)
        return no_memory(err);
    w->header = cJSON_CreateObject();
    w->metadata = w->header ? cJSON_AddObjectToObject(w->header, "__metadata__") : NULL;
    ptxgen_status status =
        w->metadata ? output_file_open(path, force, &w->file, err) : no_memory(err);
    if (status == PTXGEN_OK)
        *writer = w;
    else
        release(w);
    return status;
}

void safetensors_writer_abandon(struct safetensors_writer *w)
{
    if (w)
        release(w);
}

ptxgen_status safetensors_writer_metadata(struct safetensors_writer *w, const char *key,
                                          const char *value, ptxgen_error *err)
{
    return cJSON_AddStringToObject(w->metadata, key, value) ? PTXGEN_OK : no_memory(err);
}

/* ---- the header ---- */

/* Numbers as text: a double would not hold every offset. */
static bool add_numbers(cJSON *object, const char *key, const uint64_t *numbers, unsigned count)
{
    char text[PTXGEN_TENSOR_MAX_DIMS * 22 + 3] = "[";
    size_t used = 1;
    for (unsigned i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%llu", i ? "," : "",
                                 (unsigned long long)numbers[i]);
    snprintf(text + used, sizeof text - used, "]");
    return cJSON_AddRawToObject(object, key, text);
}

ptxgen_status safetensors_writer_declare(struct safetensors_writer *w, const ptxgen_tensor *t,
                                         ptxgen_error *err)
{
    const uint64_t offsets[2] = {w->offset, w->offset + t->bytes};
    size_t *bytes = realloc(w->bytes, (w->declared + 1) * sizeof *bytes);
    if (bytes)
        w->bytes = bytes;
    cJSON *entry = bytes ? cJSON_AddObjectToObject(w->header, t->name) : NULL;
    if (!entry || !cJSON_AddStringToObject(entry, "dtype", ptxgen_dtype_find(t->dtype)->name) ||
        !add_numbers(entry, "shape", t->shape, t->ndim) ||
        !add_numbers(entry, "data_offsets", offsets, 2))
        return no_memory(err);
    w->bytes[w->declared++] = t->bytes;
    w->offset += t->bytes;
    return PTXGEN_OK;
}

/* Eight bytes of length, then JSON, padded so that the data starts at a multiple of 8. */
static ptxgen_status write_header(struct safetensors_writer *w, ptxgen_error *err)
{
    static const char padding[8] = "       ";
    char *text = cJSON_PrintUnformatted(w->header);
    if (!text)
        return no_memory(err);
    size_t length = strlen(text), padded = (length + 7) / 8 * 8;
    unsigned char little[8];
    for (int i = 0; i < 8; i++)
        little[i] = (unsigned char)((uint64_t)padded >> 8 * i);
    ptxgen_status status = output_file_write(w->file, little, sizeof little, err);
    if (status == PTXGEN_OK)
        status = output_file_write(w->file, text, length, err);
    if (status == PTXGEN_OK)
        status = output_file_write(w->file, padding, padded - length, err);
    cJSON_free(text);
    w->header_written = true;
    return status;
}

/* ---- the data ---- */

ptxgen_status safetensors_writer_append(struct safetensors_writer *w, const void *data,
                                        size_t bytes, ptxgen_error *err)
{
    ptxgen_status status = w->header_written ? PTXGEN_OK : write_header(w, err);
    if (status != PTXGEN_OK)
        return status;
    if (w->appended == w->declared)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "data are given for more than the %zu tensors that were declared",
                           w->declared);
    if (bytes != w->bytes[w->appended])
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "tensor %zu of %zu is given %zu bytes, but %zu were declared",
                           w->appended + 1, w->declared, bytes, w->bytes[w->appended]);
    w->appended++;
    return output_file_write(w->file, data, bytes, err);
}

static ptxgen_status complete(struct safetensors_writer *w, ptxgen_error *err)
{
    ptxgen_status status = w->header_written ? PTXGEN_OK : write_header(w, err);
    if (status == PTXGEN_OK && w->appended != w->declared)
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%zu of %zu tensors have no data",
                             w->declared - w->appended, w->declared);
    return status;
}

ptxgen_status safetensors_writer_finish(struct safetensors_writer *w, ptxgen_error *err)
{
    ptxgen_status status = complete(w, err);
    if (status == PTXGEN_OK) {
        status = output_file_finish(w->file, err);
        w->file = NULL;
    }
    release(w);
    return status;
}
