/* SPDX-License-Identifier: Apache-2.0 */
#include "json_text.h"
#include "printable.h"
#include "tensor_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, MAX_HEADER_BYTES = 100000000 };
static const char metadata_key[] = "__metadata__";

/* Where a tensor lies in the data section, for the check that the section is filled. */
struct span {
    uint64_t begin, end;
    const ptxgen_tensor *tensor;
};

/* Tensor names and metadata point into `header`. */
struct ptxgen_safetensors {
    struct json_text *header;
    ptxgen_tensor_list tensors;
    size_t metadata_count;
    struct ptxgen_name *metadata; /* position: into metadata_values */
    const char **metadata_values;
};

static struct printable quoted(const char *name)
{
    return printable(name, strlen(name));
}

static ptxgen_status find_header(const unsigned char *bytes, size_t size, size_t *length,
                                 ptxgen_error *err)
{
    uint64_t claimed = 0;
    if (size < LENGTH_BYTES)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "not a safetensors file: %zu bytes, fewer than the %d of the header's "
                           "length",
                           size, LENGTH_BYTES);
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        claimed |= (uint64_t)bytes[i] << (8 * i);
    if (claimed > MAX_HEADER_BYTES)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "safetensors header: length %" PRIu64 "; at most %d bytes are allowed",
                           claimed, MAX_HEADER_BYTES);
    if (claimed > size - LENGTH_BYTES)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "safetensors header: length %" PRIu64 " ends past the file's %zu bytes",
                           claimed, size);
    if (claimed == 0 || bytes[LENGTH_BYTES] != '{')
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "safetensors header: it must begin with '{'");
    *length = (size_t)claimed;
    return PTXGEN_OK;
}

/* Counts and offsets: to 2^53 - 1, what every writer of JSON keeps exactly. */
static bool as_count(const struct json_value *item, uint64_t *value)
{
    enum { MOST_DIGITS = 16 };
    const uint64_t limit = UINT64_C(1) << 53;
    if (item->kind != JSON_NUMBER || item->length > MOST_DIGITS)
        return false;
    *value = 0;
    for (uint32_t i = 0; i < item->length; i++) {
        if (item->text[i] < '0' || item->text[i] > '9')
            return false;
        *value = 10 * *value + (uint64_t)(item->text[i] - '0');
    }
    return *value < limit;
}

static ptxgen_status read_dtype(const char *name, const struct json_value *item,
                                ptxgen_dtype *dtype, ptxgen_error *err)
{
    if (item->kind != JSON_STRING)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "tensor %s: \"dtype\" is not a string",
                           quoted(name).text);
    const ptxgen_dtype_info *info;
    for (int i = 0; (info = ptxgen_dtype_find((ptxgen_dtype)i)) != NULL; i++) {
        if (info->in_safetensors && strcmp(info->name, item->text) == 0) {
            *dtype = (ptxgen_dtype)i;
            return PTXGEN_OK;
        }
    }
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "tensor %s: dtype %s is unknown",
                       quoted(name).text, quoted(item->text).text);
}

static ptxgen_status read_shape(const struct json_value *item, ptxgen_tensor *tensor,
                                ptxgen_error *err)
{
    struct printable name = quoted(tensor->name);
    const struct json_value *dim;
    if (item->kind != JSON_ARRAY)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "tensor %s: \"shape\" is not an array",
                           name.text);
    json_each(dim, item)
    {
        if (tensor->ndim == PTXGEN_TENSOR_MAX_DIMS)
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "tensor %s: more than %d dimensions",
                               name.text, PTXGEN_TENSOR_MAX_DIMS);
        if (!as_count(dim, &tensor->shape[tensor->ndim]))
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "tensor %s: dimension %u is not an integer from 0 to 2^53 - 1",
                               name.text, tensor->ndim);
        tensor->ndim++;
    }
    return PTXGEN_OK;
}

static ptxgen_status read_offsets(const char *name, const struct json_value *item,
                                  struct span *span, ptxgen_error *err)
{
    const struct json_value *begin = item->kind == JSON_ARRAY ? json_child(item) : NULL;
    const struct json_value *end = begin ? json_next(begin) : NULL;
    if (!end || json_next(end) || !as_count(begin, &span->begin) || !as_count(end, &span->end))
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "tensor %s: \"data_offsets\" is not two integers from 0 to 2^53 - 1",
                           quoted(name).text);
    if (span->begin > span->end)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "tensor %s: data_offsets [%" PRIu64 ", %" PRIu64 "] run backwards",
                           quoted(name).text, span->begin, span->end);
    return PTXGEN_OK;
}

/* The three members that the format defines; others are left alone, as other readers do. */
enum member { DTYPE, SHAPE, DATA_OFFSETS, MEMBER_COUNT };

static ptxgen_status find_members(const struct json_value *entry,
                                  const struct json_value *members[MEMBER_COUNT], ptxgen_error *err)
{
    static const char *const names[MEMBER_COUNT] = {"dtype", "shape", "data_offsets"};
    const struct json_value *item;
    if (entry->kind != JSON_OBJECT)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "tensor %s: its value is not an object",
                           quoted(entry->key).text);
    json_each(item, entry)
    {
        for (int i = 0; i < MEMBER_COUNT; i++) {
            if (strcmp(item->key, names[i]) != 0)
                continue;
            if (members[i])
                return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "tensor %s: \"%s\" appears twice",
                                   quoted(entry->key).text, names[i]);
            members[i] = item;
        }
    }
    for (int i = 0; i < MEMBER_COUNT; i++)
        if (!members[i])
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "tensor %s: \"%s\" is missing",
                               quoted(entry->key).text, names[i]);
    return PTXGEN_OK;
}

static ptxgen_status read_tensor(const struct json_value *entry, ptxgen_tensor *tensor,
                                 struct span *span, ptxgen_error *err)
{
    const struct json_value *members[MEMBER_COUNT] = {0};
    ptxgen_status status;
    tensor->name = entry->key;
    span->tensor = tensor;
    if ((status = find_members(entry, members, err)) != PTXGEN_OK ||
        (status = read_dtype(tensor->name, members[DTYPE], &tensor->dtype, err)) != PTXGEN_OK ||
        (status = read_shape(members[SHAPE], tensor, err)) != PTXGEN_OK ||
        (status = read_offsets(tensor->name, members[DATA_OFFSETS], span, err)) != PTXGEN_OK ||
        (status = tensor_measure(tensor, err)) != PTXGEN_OK)
        return status;
    if (span->end - span->begin != tensor->bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "tensor %s: data_offsets [%" PRIu64 ", %" PRIu64 "] span %" PRIu64
                           " bytes, but shape %s of %s takes %zu",
                           quoted(tensor->name).text, span->begin, span->end,
                           span->end - span->begin, tensor_shape_text(tensor).text,
                           ptxgen_dtype_find(tensor->dtype)->name, tensor->bytes);
    return PTXGEN_OK;
}

static int compare_spans(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* In offset order the tensors must fill the data section: no hole, no overlap, nothing after. */
static ptxgen_status check_filled(struct span *spans, size_t count, uint64_t section,
                                  ptxgen_error *err)
{
    uint64_t filled = 0;
    if (count > 0)
        qsort(spans, count, sizeof *spans, compare_spans);
    for (size_t i = 0; i < count; i++) {
        if (spans[i].begin != filled)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "tensor %s: data_offsets begin at %" PRIu64
                               ", but the tensors before it end at %" PRIu64 ": %s",
                               quoted(spans[i].tensor->name).text, spans[i].begin, filled,
                               spans[i].begin > filled ? "a hole" : "an overlap");
        filled = spans[i].end;
    }
    if (filled != section)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "safetensors data: the tensors end at %" PRIu64
                           ", but the file holds %" PRIu64 " bytes of data",
                           filled, section);
    return PTXGEN_OK;
}

static ptxgen_status read_metadata(ptxgen_safetensors *file, const struct json_value *object,
                                   ptxgen_error *err)
{
    const struct json_value *item;
    size_t count = 0, i = 0;
    if (object->kind != JSON_OBJECT)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "\"%s\" is not an object", metadata_key);
    json_each(item, object) count++;
    if (count == 0)
        return PTXGEN_OK;
    file->metadata = calloc(count, sizeof *file->metadata);
    file->metadata_values = calloc(count, sizeof *file->metadata_values);
    if (!file->metadata || !file->metadata_values)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu metadata keys",
                           count);
    json_each(item, object)
    {
        if (item->kind != JSON_STRING)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s key %s: its value is not a string",
                               metadata_key, quoted(item->key).text);
        file->metadata[i] = (struct ptxgen_name){item->key, i};
        file->metadata_values[i++] = item->text;
    }
    file->metadata_count = count;
    name_index_sort(file->metadata, count);
    const char *twice = name_index_duplicate(file->metadata, count);
    if (twice)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s key %s appears twice", metadata_key,
                           quoted(twice).text);
    return PTXGEN_OK;
}

static bool is_metadata(const struct json_value *entry)
{
    return strcmp(entry->key, metadata_key) == 0;
}

static ptxgen_status read_entries(ptxgen_safetensors *file, struct span *spans, ptxgen_error *err)
{
    const struct json_value *entry;
    size_t i = 0;
    bool metadata_seen = false;
    json_each(entry, json_text_root(file->header))
    {
        ptxgen_status status;
        if (!is_metadata(entry)) {
            status = read_tensor(entry, &file->tensors.items[i], &spans[i], err);
            i++;
        } else if (!metadata_seen) {
            metadata_seen = true;
            status = read_metadata(file, entry, err);
        } else {
            status = ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "\"%s\" appears twice", metadata_key);
        }
        if (status != PTXGEN_OK)
            return status;
    }
    return tensor_list_index(&file->tensors, err);
}

static ptxgen_status read_tensors(ptxgen_safetensors *file, const unsigned char *data,
                                  size_t data_bytes, ptxgen_error *err)
{
    const struct json_value *entry;
    size_t count = 0;
    json_each(entry, json_text_root(file->header)) count += !is_metadata(entry);

    ptxgen_status status = tensor_list_allocate(&file->tensors, count, err);
    if (status != PTXGEN_OK)
        return status;
    struct span *spans = calloc(count ? count : 1, sizeof *spans);
    if (!spans)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu tensors", count);
    status = read_entries(file, spans, err);
    for (size_t i = 0; i < count && status == PTXGEN_OK; i++) {
        if (spans[i].end > data_bytes)
            status = ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                                 "tensor %s: data_offsets end at %" PRIu64
                                 ", past the file's %zu bytes of data",
                                 quoted(spans[i].tensor->name).text, spans[i].end, data_bytes);
        else
            file->tensors.items[i].data = data + spans[i].begin;
    }
    if (status == PTXGEN_OK)
        status = check_filled(spans, count, data_bytes, err);
    free(spans);
    return status;
}

ptxgen_status ptxgen_safetensors_parse(const void *bytes, size_t size, ptxgen_safetensors **file,
                                       ptxgen_error *err)
{
    size_t header_bytes = 0;
    if (file)
        *file = NULL;
    if (!bytes || !file)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_safetensors_parse: bytes and file must be given");
    ptxgen_status status = find_header(bytes, size, &header_bytes, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_safetensors *parsed = calloc(1, sizeof *parsed);
    if (!parsed)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to read a safetensors file");

    const unsigned char *header = (const unsigned char *)bytes + LENGTH_BYTES;
    status = json_text_parse("safetensors header", (const char *)header, header_bytes,
                             &parsed->header, err);
    if (status == PTXGEN_OK)
        status =
            read_tensors(parsed, header + header_bytes, size - LENGTH_BYTES - header_bytes, err);
    if (status == PTXGEN_OK)
        *file = parsed;
    else
        ptxgen_safetensors_destroy(parsed);
    return status;
}

void ptxgen_safetensors_destroy(ptxgen_safetensors *file)
{
    if (!file)
        return;
    free(file->metadata);
    free(file->metadata_values);
    tensor_list_free(&file->tensors);
    json_text_free(file->header);
    free(file);
}

const ptxgen_tensor_list *ptxgen_safetensors_tensors(const ptxgen_safetensors *file)
{
    return file ? &file->tensors : NULL;
}

const char *ptxgen_safetensors_metadata(const ptxgen_safetensors *file, const char *key)
{
    const struct ptxgen_name *found =
        file && key ? name_index_find(file->metadata, file->metadata_count, key) : NULL;
    return found ? file->metadata_values[found->position] : NULL;
}

const char *ptxgen_safetensors_metadata_at(const ptxgen_safetensors *file, size_t index,
                                           const char **value)
{
    if (!file || !value || index >= file->metadata_count)
        return NULL;
    *value = file->metadata_values[file->metadata[index].position];
    return file->metadata[index].name;
}
