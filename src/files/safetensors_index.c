/* SPDX-License-Identifier: Apache-2.0 */
#include "safetensors_index.h"

#include "json_text.h"
#include "name_index.h"
#include "printable.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 100000000 };
static const char map_key[] = "weight_map";

/* Names point into `json`. */
struct safetensors_index {
    struct json_text *json;
    size_t tensor_count, file_count;
    struct ptxgen_name *tensors; /* position: into `places` */
    const char **places;         /* the file of each tensor, in the order of the text */
    const char **files;
};

static struct printable quoted(const char *name)
{
    return printable(name, strlen(name));
}

/* A name without a folder: nothing outside the index's own folder is opened. */
static ptxgen_status check_file_name(const struct json_value *entry, ptxgen_error *err)
{
    const char *name = entry->kind == JSON_STRING ? entry->text : NULL;
    if (!name)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "safetensors index: the file of tensor %s is not a string",
                           quoted(entry->key).text);
    if (!*name || !strcmp(name, ".") || !strcmp(name, "..") || strchr(name, '/'))
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "safetensors index: tensor %s is in %s, which is not the name of a file "
                           "beside the index",
                           quoted(entry->key).text, quoted(name).text);
    return PTXGEN_OK;
}

static ptxgen_status find_map(const struct json_value *json, const struct json_value **map,
                              ptxgen_error *err)
{
    const struct json_value *item;
    *map = NULL;
    if (json->kind != JSON_OBJECT)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "safetensors index: it is not an object");
    json_each(item, json)
    {
        if (strcmp(item->key, map_key) != 0)
            continue;
        if (*map)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "safetensors index: \"%s\" appears twice", map_key);
        *map = item;
    }
    if (!*map || (*map)->kind != JSON_OBJECT)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "safetensors index: \"%s\" is %s; a sharded checkpoint's index has an "
                           "object there",
                           map_key, *map ? "not an object" : "missing");
    return PTXGEN_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each file once. */
static void list_files(struct safetensors_index *index)
{
    memcpy(index->files, index->places, index->tensor_count * sizeof *index->files);
    qsort(index->files, index->tensor_count, sizeof *index->files, compare_names);
    for (size_t i = 0; i < index->tensor_count; i++)
        if (i == 0 || strcmp(index->files[i], index->files[index->file_count - 1]) != 0)
            index->files[index->file_count++] = index->files[i];
}

static ptxgen_status read_map(struct safetensors_index *index, const struct json_value *map,
                              ptxgen_error *err)
{
    const struct json_value *entry;
    size_t count = 0, i = 0;
    json_each(entry, map) count++;
    if (!count)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "safetensors index: \"%s\" is empty",
                           map_key);
    index->tensors = calloc(count, sizeof *index->tensors);
    index->places = calloc(count, sizeof *index->places);
    index->files = calloc(count, sizeof *index->files);
    if (!index->tensors || !index->places || !index->files)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for an index of %zu tensors",
                           count);
    json_each(entry, map)
    {
        ptxgen_status status = check_file_name(entry, err);
        if (status != PTXGEN_OK)
            return status;
        index->tensors[i] = (struct ptxgen_name){entry->key, i};
        index->places[i++] = entry->text;
    }
    index->tensor_count = count;
    list_files(index);
    name_index_sort(index->tensors, count);
    const char *twice = name_index_duplicate(index->tensors, count);
    if (twice)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "safetensors index: tensor %s appears twice", quoted(twice).text);
    return PTXGEN_OK;
}

ptxgen_status safetensors_index_parse(const void *bytes, size_t size,
                                      struct safetensors_index **index, ptxgen_error *err)
{
    const struct json_value *map;
    *index = NULL;
    if (size == 0 || size > MOST_BYTES)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "safetensors index: %zu bytes; 1 to %d are accepted", size, MOST_BYTES);
    struct safetensors_index *parsed = calloc(1, sizeof *parsed);
    if (!parsed)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                           "no memory to read a safetensors index");
    ptxgen_status status = json_text_parse("safetensors index", bytes, size, &parsed->json, err);
    if (status == PTXGEN_OK)
        status = find_map(json_text_root(parsed->json), &map, err);
    if (status == PTXGEN_OK)
        status = read_map(parsed, map, err);
    if (status == PTXGEN_OK)
        *index = parsed;
    else
        safetensors_index_free(parsed);
    return status;
}

void safetensors_index_free(struct safetensors_index *index)
{
    if (!index)
        return;
    free(index->tensors);
    free(index->places);
    free(index->files);
    json_text_free(index->json);
    free(index);
}

size_t safetensors_index_file_count(const struct safetensors_index *index)
{
    return index->file_count;
}

const char *safetensors_index_file(const struct safetensors_index *index, size_t number)
{
    return index->files[number];
}

size_t safetensors_index_tensor_count(const struct safetensors_index *index)
{
    return index->tensor_count;
}

const char *safetensors_index_tensor(const struct safetensors_index *index, size_t number)
{
    return index->tensors[number].name;
}

const char *safetensors_index_find(const struct safetensors_index *index, const char *tensor)
{
    const struct ptxgen_name *found = name_index_find(index->tensors, index->tensor_count, tensor);
    return found ? index->places[found->position] : NULL;
}
