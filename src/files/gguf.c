/* SPDX-License-Identifier: Apache-2.0 */
#include "gguf_read.h"
#include "tensor_list.h"

#include "printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_ENTRIES = 1 << 20, /* tensors, or keys: fifty times what the largest models hold */
    MAX_KEY_BYTES = 65535,
    MAX_TENSOR_NAME_BYTES = 64,
    MAX_DIMS = 4,
    DEFAULT_ALIGNMENT = 32,
    MIN_ALIGNMENT = 8,
    /* the fewest bytes a key with its value, or a tensor's description, can take */
    MIN_KEY_BYTES = 8 + 1 + 4 + 1,
    MIN_TENSOR_BYTES = 8 + 1 + 4 + 4 + 8,
};

struct entry {
    char *key;
    ptxgen_gguf_value value;
};

struct ptxgen_gguf {
    uint32_t version;
    uint32_t alignment;
    size_t key_count;
    struct entry *entries;
    struct ptxgen_name *by_key;
    ptxgen_tensor_list tensors;
    uint64_t *offsets; /* of each tensor within the data section */
};

/* A string that names something: copied with a NUL at its end. */
static ptxgen_status read_name(struct gguf_cursor *c, size_t longest, char **name,
                               ptxgen_error *err)
{
    ptxgen_gguf_string s;
    ptxgen_status status = gguf_read_string(c, &s, err);
    if (status != PTXGEN_OK)
        return status;
    struct printable shown = printable(s.bytes, s.length);
    if (s.length == 0)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s: its name is empty", c->subject);
    if (s.length > longest)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "%s: name %s has %zu bytes; at most %zu are allowed", c->subject,
                           shown.text, s.length, longest);
    if (!utf8_is_valid(s.bytes, s.length))
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s: name %s is not UTF-8", c->subject,
                           shown.text);
    if (memchr(s.bytes, 0, s.length))
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s: name %s holds a NUL", c->subject,
                           shown.text);
    *name = strndup(s.bytes, s.length);
    if (!*name)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for name %s", shown.text);
    return PTXGEN_OK;
}

static ptxgen_status check_count(const struct gguf_cursor *c, const char *what, uint64_t count,
                                 size_t least_bytes, ptxgen_error *err)
{
    size_t left = (size_t)(c->end - c->at);
    if (count > MAX_ENTRIES)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "GGUF header: %" PRIu64 " %s; at most %d are accepted", count, what,
                           MAX_ENTRIES);
    if (count > left / least_bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "GGUF header: %" PRIu64 " %s cannot fit in the %zu bytes left", count,
                           what, left);
    return PTXGEN_OK;
}

static ptxgen_status read_header(struct gguf_cursor *c, ptxgen_gguf *file, uint64_t *tensor_count,
                                 uint64_t *key_count, ptxgen_error *err)
{
    uint32_t magic;
    snprintf(c->subject, sizeof c->subject, "GGUF header");
    ptxgen_status status = gguf_read_u32(c, &magic, err);
    if (status != PTXGEN_OK)
        return status;
    if (memcmp(c->start, "GGUF", 4) != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "not a GGUF file: it begins with %s, not \"GGUF\"",
                           printable((const char *)c->start, 4).text);
    if ((status = gguf_read_u32(c, &file->version, err)) != PTXGEN_OK)
        return status;
    if (file->version == UINT32_C(0x02000000) || file->version == UINT32_C(0x03000000))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "GGUF header: the file is big-endian; only little-endian is read");
    if (file->version != 2 && file->version != 3)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "GGUF header: version %" PRIu32 "; only versions 2 and 3 are read",
                           file->version);
    if ((status = gguf_read_u64(c, tensor_count, err)) != PTXGEN_OK ||
        (status = gguf_read_u64(c, key_count, err)) != PTXGEN_OK ||
        (status = check_count(c, "tensors", *tensor_count, MIN_TENSOR_BYTES, err)) != PTXGEN_OK)
        return status;
    return check_count(c, "keys", *key_count, MIN_KEY_BYTES, err);
}

static ptxgen_status read_entry(struct gguf_cursor *c, size_t index, struct entry *entry,
                                ptxgen_error *err)
{
    uint32_t type;
    snprintf(c->subject, sizeof c->subject, "key %zu", index);
    ptxgen_status status = read_name(c, MAX_KEY_BYTES, &entry->key, err);
    if (status != PTXGEN_OK)
        return status;
    snprintf(c->subject, sizeof c->subject, "key %s",
             printable(entry->key, strlen(entry->key)).text);
    if ((status = gguf_read_u32(c, &type, err)) != PTXGEN_OK)
        return status;
    return gguf_read_value(c, type, &entry->value, err);
}

static ptxgen_status read_entries(struct gguf_cursor *c, ptxgen_gguf *file, size_t count,
                                  ptxgen_error *err)
{
    if (count == 0)
        return PTXGEN_OK;
    file->entries = calloc(count, sizeof *file->entries);
    file->by_key = calloc(count, sizeof *file->by_key);
    if (!file->entries || !file->by_key)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu keys", count);
    file->key_count = count;

    for (size_t i = 0; i < count; i++) {
        ptxgen_status status = read_entry(c, i, &file->entries[i], err);
        if (status != PTXGEN_OK)
            return status;
        file->by_key[i] = (struct ptxgen_name){file->entries[i].key, i};
    }
    name_index_sort(file->by_key, count);
    const char *twice = name_index_duplicate(file->by_key, count);
    if (twice)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "key %s appears twice; keys must differ",
                           printable(twice, strlen(twice)).text);
    return PTXGEN_OK;
}

static ptxgen_status find_alignment(ptxgen_gguf *file, ptxgen_error *err)
{
    static const char key[] = "general.alignment";
    const ptxgen_gguf_value *value = ptxgen_gguf_find(file, key);
    file->alignment = DEFAULT_ALIGNMENT;
    if (!value)
        return PTXGEN_OK;
    if (value->type != PTXGEN_GGUF_VALUE_UINT32)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "key \"%s\" is %s; it must be UINT32", key,
                           ptxgen_gguf_value_type_name(value->type));
    if (value->u < MIN_ALIGNMENT || (value->u & (value->u - 1)) != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "key \"%s\" is %" PRIu64 "; it must be a power of two, at least %d", key,
                           value->u, MIN_ALIGNMENT);
    file->alignment = (uint32_t)value->u;
    return PTXGEN_OK;
}

static ptxgen_status find_dtype(const char *subject, uint32_t ggml_type, ptxgen_dtype *dtype,
                                ptxgen_error *err)
{
    const ptxgen_dtype_info *info;
    for (int i = 0; (info = ptxgen_dtype_find((ptxgen_dtype)i)) != NULL; i++) {
        if (info->ggml_type >= 0 && (uint32_t)info->ggml_type == ggml_type) {
            *dtype = (ptxgen_dtype)i;
            return PTXGEN_OK;
        }
    }
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s: ggml type %" PRIu32 " is unknown",
                       subject, ggml_type);
}

/* The file gives the innermost dimension first. */
static ptxgen_status read_shape(struct gguf_cursor *c, ptxgen_tensor *tensor, ptxgen_error *err)
{
    ptxgen_status status = gguf_read_u32(c, &tensor->ndim, err);
    if (status != PTXGEN_OK)
        return status;
    if (tensor->ndim > MAX_DIMS)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s: %u dimensions; GGUF allows at most %d",
                           c->subject, tensor->ndim, MAX_DIMS);
    for (unsigned i = tensor->ndim; i-- > 0;)
        if ((status = gguf_read_u64(c, &tensor->shape[i], err)) != PTXGEN_OK)
            return status;
    return PTXGEN_OK;
}

static ptxgen_status check_rows(const char *subject, const ptxgen_tensor *tensor, ptxgen_error *err)
{
    const ptxgen_dtype_info *dtype = ptxgen_dtype_find(tensor->dtype);
    uint64_t row = tensor->ndim ? tensor->shape[tensor->ndim - 1] : 1;
    if (row % dtype->block_elements == 0)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                       "%s: rows of %" PRIu64 " elements are not a multiple of %s's block of %u",
                       subject, row, dtype->name, dtype->block_elements);
}

static ptxgen_status read_tensor(struct gguf_cursor *c, size_t index, uint32_t alignment,
                                 ptxgen_tensor *tensor, uint64_t *data_offset, ptxgen_error *err)
{
    char *name = NULL;
    uint32_t type;
    snprintf(c->subject, sizeof c->subject, "tensor %zu", index);
    ptxgen_status status = read_name(c, MAX_TENSOR_NAME_BYTES, &name, err);
    if (status != PTXGEN_OK)
        return status;
    tensor->name = name;
    snprintf(c->subject, sizeof c->subject, "tensor %s", printable(name, strlen(name)).text);

    if ((status = read_shape(c, tensor, err)) != PTXGEN_OK ||
        (status = gguf_read_u32(c, &type, err)) != PTXGEN_OK ||
        (status = find_dtype(c->subject, type, &tensor->dtype, err)) != PTXGEN_OK ||
        (status = gguf_read_u64(c, data_offset, err)) != PTXGEN_OK ||
        (status = check_rows(c->subject, tensor, err)) != PTXGEN_OK ||
        (status = tensor_measure(tensor, err)) != PTXGEN_OK)
        return status;
    if (*data_offset % alignment != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "%s: offset %" PRIu64 " is not a multiple of the alignment %" PRIu32,
                           c->subject, *data_offset, alignment);
    return PTXGEN_OK;
}

static ptxgen_status read_tensors(struct gguf_cursor *c, ptxgen_gguf *file, size_t count,
                                  ptxgen_error *err)
{
    ptxgen_status status = tensor_list_allocate(&file->tensors, count, err);
    if (status != PTXGEN_OK || count == 0)
        return status;
    file->offsets = calloc(count, sizeof *file->offsets);
    if (!file->offsets)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu tensors", count);
    for (size_t i = 0; i < count; i++) {
        status =
            read_tensor(c, i, file->alignment, &file->tensors.items[i], &file->offsets[i], err);
        if (status != PTXGEN_OK)
            return status;
    }
    return tensor_list_index(&file->tensors, err);
}

/* The data section starts at the first aligned offset after the descriptions. */
static ptxgen_status place_tensors(const struct gguf_cursor *c, ptxgen_gguf *file,
                                   ptxgen_error *err)
{
    uint64_t size = (uint64_t)(c->end - c->start);
    uint64_t described = (uint64_t)(c->at - c->start);
    uint64_t base = described + (file->alignment - described % file->alignment) % file->alignment;

    for (size_t i = 0; i < file->tensors.count; i++) {
        ptxgen_tensor *t = &file->tensors.items[i];
        uint64_t room = base <= size ? size - base : 0;
        if (base > size || file->offsets[i] > room || t->bytes > room - file->offsets[i])
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "tensor %s: offset %" PRIu64 " with %zu bytes ends past the %" PRIu64
                               " bytes of the data section",
                               printable(t->name, strlen(t->name)).text, file->offsets[i], t->bytes,
                               room);
        t->data = c->start + base + file->offsets[i];
    }
    return PTXGEN_OK;
}

static int compare_placement(const void *a, const void *b)
{
    const ptxgen_tensor *x = *(const ptxgen_tensor *const *)a;
    const ptxgen_tensor *y = *(const ptxgen_tensor *const *)b;
    const unsigned char *p = x->data, *q = y->data;
    return p != q ? (p > q) - (p < q) : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static ptxgen_status refuse_overlap(const ptxgen_tensor_list *tensors, ptxgen_error *err)
{
    if (tensors->count == 0)
        return PTXGEN_OK;
    const ptxgen_tensor **placed = calloc(tensors->count, sizeof *placed);
    if (!placed)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu tensors",
                           tensors->count);
    for (size_t i = 0; i < tensors->count; i++)
        placed[i] = &tensors->items[i];
    qsort(placed, tensors->count, sizeof *placed, compare_placement);

    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 1; i < tensors->count && status == PTXGEN_OK; i++) {
        const ptxgen_tensor *a = placed[i - 1], *b = placed[i];
        if ((const unsigned char *)a->data + a->bytes > (const unsigned char *)b->data)
            status = ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                                 "tensors %s and %s overlap: the first has %zu bytes, the second "
                                 "starts %td after it",
                                 printable(a->name, strlen(a->name)).text,
                                 printable(b->name, strlen(b->name)).text, a->bytes,
                                 (const unsigned char *)b->data - (const unsigned char *)a->data);
    }
    free(placed);
    return status;
}

static ptxgen_status parse(struct gguf_cursor *c, ptxgen_gguf *file, ptxgen_error *err)
{
    uint64_t tensor_count, key_count;
    ptxgen_status status;
    if ((status = read_header(c, file, &tensor_count, &key_count, err)) != PTXGEN_OK ||
        (status = read_entries(c, file, (size_t)key_count, err)) != PTXGEN_OK ||
        (status = find_alignment(file, err)) != PTXGEN_OK ||
        (status = read_tensors(c, file, (size_t)tensor_count, err)) != PTXGEN_OK ||
        (status = place_tensors(c, file, err)) != PTXGEN_OK)
        return status;
    return refuse_overlap(&file->tensors, err);
}

ptxgen_status ptxgen_gguf_parse(const void *bytes, size_t size, ptxgen_gguf **file,
                                ptxgen_error *err)
{
    if (file)
        *file = NULL;
    if (!bytes || !file)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_gguf_parse: bytes and file must be given");
    ptxgen_gguf *parsed = calloc(1, sizeof *parsed);
    if (!parsed)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to read a GGUF file");
    struct gguf_cursor c = {
        .start = bytes, .at = bytes, .end = (const unsigned char *)bytes + size};
    ptxgen_status status = parse(&c, parsed, err);
    if (status == PTXGEN_OK)
        *file = parsed;
    else
        ptxgen_gguf_destroy(parsed);
    return status;
}

void ptxgen_gguf_destroy(ptxgen_gguf *file)
{
    if (!file)
        return;
    for (size_t i = 0; i < file->key_count; i++)
        free(file->entries[i].key);
    for (size_t i = 0; i < file->tensors.count; i++)
        free((char *)file->tensors.items[i].name);
    free(file->entries);
    free(file->by_key);
    free(file->offsets);
    tensor_list_free(&file->tensors);
    free(file);
}

uint32_t ptxgen_gguf_version(const ptxgen_gguf *file)
{
    return file ? file->version : 0;
}

uint32_t ptxgen_gguf_alignment(const ptxgen_gguf *file)
{
    return file ? file->alignment : 0;
}

const ptxgen_tensor_list *ptxgen_gguf_tensors(const ptxgen_gguf *file)
{
    return file ? &file->tensors : NULL;
}

size_t ptxgen_gguf_key_count(const ptxgen_gguf *file)
{
    return file ? file->key_count : 0;
}

const char *ptxgen_gguf_key(const ptxgen_gguf *file, size_t index)
{
    return index < ptxgen_gguf_key_count(file) ? file->entries[index].key : NULL;
}

const ptxgen_gguf_value *ptxgen_gguf_value_at(const ptxgen_gguf *file, size_t index)
{
    return index < ptxgen_gguf_key_count(file) ? &file->entries[index].value : NULL;
}

const ptxgen_gguf_value *ptxgen_gguf_find(const ptxgen_gguf *file, const char *key)
{
    const struct ptxgen_name *found =
        file && key ? name_index_find(file->by_key, file->key_count, key) : NULL;
    return found ? &file->entries[found->position].value : NULL;
}
