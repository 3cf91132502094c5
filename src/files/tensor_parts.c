/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GGUF file that says split.count > 1 is read with the other parts, whose names differ in
 * -00001-of-00003 alone. A safetensors file whose name has that form is read through the index
 * beside it, if there is one: STEM.safetensors.index.json.
 */
#include "tensor_parts.h"

#include "part_name.h"
#include "printable.h"
#include "safetensors_index.h"
#include "tensor_folder.h"
#include "tensor_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char gguf_extension[] = ".gguf", safetensors_extension[] = ".safetensors";

static ptxgen_status no_memory(const char *path, ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to open %s", path);
}

/* ---- one file ---- */

/* safetensors begins with a length below 2^32 in eight bytes, of which the upper ones are 0. */
static bool is_index(const struct mapped_file *map)
{
    size_t first = 0;
    while (first < map->size && strchr(" \t\r\n", map->data[first]) && map->data[first])
        first++;
    return first < map->size && map->data[first] == '{' &&
           !memchr(map->data, 0, map->size < 8 ? map->size : 8);
}

static ptxgen_status parse(struct tensor_part *part, ptxgen_error *err)
{
    const unsigned char *bytes = part->map.data;
    size_t size = part->map.size;
    if (size >= 4 && memcmp(bytes, "GGUF", 4) == 0)
        return ptxgen_gguf_parse(bytes, size, &part->gguf, err);
    if (size > 8 && bytes[8] == '{')
        return ptxgen_safetensors_parse(bytes, size, &part->safetensors, err);
    return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                       "neither GGUF (begins with \"GGUF\") nor safetensors (byte 8 is '{'): its "
                       "%zu bytes begin with %s",
                       size, printable((const char *)bytes, size < 9 ? size : 9).text);
}

/* The part owns the path, whatever happens. */
static ptxgen_status map_part(char *path, struct tensor_part *part, ptxgen_error *err)
{
    *part = (struct tensor_part){.path = path};
    return mapped_file_open(path, &part->map, err);
}

static ptxgen_status parse_part(struct tensor_part *part, ptxgen_error *err)
{
    ptxgen_error why;
    ptxgen_status status = parse(part, &why);
    return status == PTXGEN_OK ? status
                               : ptxgen_fail(err, status, "%s: %s", part->path, why.message);
}

static void close_part(struct tensor_part *part)
{
    ptxgen_gguf_destroy(part->gguf);
    ptxgen_safetensors_destroy(part->safetensors);
    mapped_file_close(&part->map);
    free(part->path);
    *part = (struct tensor_part){.path = NULL};
}

static const ptxgen_tensor_list *tensors_of(const struct tensor_part *part)
{
    return part->gguf ? ptxgen_gguf_tensors(part->gguf)
                      : ptxgen_safetensors_tensors(part->safetensors);
}

static ptxgen_status allocate(struct tensor_parts *parts, size_t count, const char *path,
                              ptxgen_error *err)
{
    parts->items = calloc(count, sizeof *parts->items);
    if (!parts->items)
        return no_memory(path, err);
    parts->count = count;
    return PTXGEN_OK;
}

/* A further file, which `namer` says there is. */
static ptxgen_status open_part(char *path, const char *namer, struct tensor_part *part,
                               ptxgen_error *err)
{
    ptxgen_error why;
    if (!path)
        return no_memory(namer, err);
    ptxgen_status status = map_part(path, part, &why);
    if (status == PTXGEN_OK)
        status = parse_part(part, &why);
    return status == PTXGEN_OK
               ? status
               : ptxgen_fail(err, status, "%s (a part that %s names)", why.message, namer);
}

/* ---- the tensors of all files ---- */

/* Of a tensor in several files that is the one that the index says; it may leave tensors out. */
static bool is_meant(const struct safetensors_index *index, const struct tensor_part *part,
                     const char *name)
{
    const char *file = index ? safetensors_index_find(index, name) : NULL;
    return !file || !strcmp(file, path_name(part->path));
}

static ptxgen_status merge(struct tensor_parts *parts, const struct safetensors_index *index,
                           ptxgen_error *err)
{
    size_t count = 0, next = 0;
    for (size_t i = 0; i < parts->count; i++)
        count += tensors_of(&parts->items[i])->count;
    ptxgen_status status = tensor_list_allocate(&parts->merged, count, err);
    if (status != PTXGEN_OK || count == 0)
        return status;
    for (size_t i = 0; i < parts->count; i++) {
        const ptxgen_tensor_list *list = tensors_of(&parts->items[i]);
        for (size_t t = 0; t < list->count; t++)
            if (is_meant(index, &parts->items[i], list->items[t].name))
                parts->merged.items[next++] = list->items[t];
    }
    parts->merged.count = next;
    return tensor_list_index(&parts->merged, err);
}

/* ---- safetensors by an index ---- */

static ptxgen_status read_index(const char *path, const struct mapped_file *map,
                                struct safetensors_index **index, ptxgen_error *err)
{
    ptxgen_error why;
    ptxgen_status status = safetensors_index_parse(map->data, map->size, index, &why);
    return status == PTXGEN_OK ? status : ptxgen_fail(err, status, "%s: %s", path, why.message);
}

/* What the index says of each tensor is so. */
static ptxgen_status check_places(const struct tensor_parts *parts, const char *path,
                                  const struct safetensors_index *index, ptxgen_error *err)
{
    for (size_t i = 0; i < safetensors_index_tensor_count(index); i++) {
        const char *name = safetensors_index_tensor(index, i);
        if (!ptxgen_tensor_list_find(&parts->merged, name))
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "%s: it says that tensor %s is in %s, which has none of that name",
                               path, printable(name, strlen(name)).text,
                               safetensors_index_find(index, name));
    }
    return PTXGEN_OK;
}

static ptxgen_status open_indexed(const char *path, const struct safetensors_index *index,
                                  struct tensor_parts *parts, ptxgen_error *err)
{
    ptxgen_status status = allocate(parts, safetensors_index_file_count(index), path, err);
    for (size_t i = 0; status == PTXGEN_OK && i < parts->count; i++) {
        struct tensor_part *part = &parts->items[i];
        status = open_part(path_beside(path, safetensors_index_file(index, i)), path, part, err);
        if (status == PTXGEN_OK && !part->safetensors)
            status = ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                                 "%s: it names %s, which is no safetensors file", path,
                                 path_name(part->path));
    }
    if (status == PTXGEN_OK)
        status = merge(parts, index, err);
    return status == PTXGEN_OK ? check_places(parts, path, index, err) : status;
}

static bool names_file(const struct safetensors_index *index, const char *name)
{
    for (size_t i = 0; i < safetensors_index_file_count(index); i++)
        if (!strcmp(safetensors_index_file(index, i), name))
            return true;
    return false;
}

/* The index at `path`, of which `member` is a file if it is not NULL. */
static ptxgen_status open_index(const char *path, const struct mapped_file *map, const char *member,
                                struct tensor_parts *parts, ptxgen_error *err)
{
    struct safetensors_index *index;
    ptxgen_status status = read_index(path, map, &index, err);
    if (status != PTXGEN_OK)
        return status;
    if (member && !names_file(index, path_name(member)))
        status = ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                             "%s: it is beside %s, whose name says that it is a part, and does not "
                             "name it",
                             path, member);
    else
        status = open_indexed(path, index, parts, err);
    safetensors_index_free(index);
    return status;
}

/* ---- a part of safetensors ---- */

static char *index_path(const char *path, const struct part_name *name)
{
    static const char suffix[] = ".safetensors.index.json";
    char *index = malloc(name->stem + sizeof suffix);
    if (index) {
        memcpy(index, path, name->stem);
        memcpy(index + name->stem, suffix, sizeof suffix);
    }
    return index;
}

/* Keeps the first file alone, with the name of the index that would have named the others. */
static ptxgen_status keep_alone(struct tensor_part *first, char *missing_index,
                                struct tensor_parts *parts, ptxgen_error *err)
{
    ptxgen_status status = allocate(parts, 1, first->path, err);
    if (status != PTXGEN_OK) {
        free(missing_index);
        return status;
    }
    parts->items[0] = *first;
    parts->missing_index = missing_index;
    *first = (struct tensor_part){.path = NULL};
    return PTXGEN_OK;
}

static ptxgen_status open_safetensors(struct tensor_part *first, struct tensor_parts *parts,
                                      ptxgen_error *err)
{
    struct part_name name;
    struct mapped_file map;
    if (!part_name_read(first->path, safetensors_extension, &name) || name.count == 1)
        return keep_alone(first, NULL, parts, err);
    char *index = index_path(first->path, &name);
    if (!index)
        return no_memory(first->path, err);
    if (access(index, F_OK) != 0)
        return keep_alone(first, index, parts, err);
    ptxgen_status status = mapped_file_open(index, &map, err);
    if (status == PTXGEN_OK) {
        status = open_index(index, &map, first->path, parts, err);
        mapped_file_close(&map);
    }
    free(index);
    return status;
}

/* ---- GGUF in parts ---- */

/* split.count and split.no of a file, 1 and 0 where it does not say. */
static ptxgen_status read_split(const struct tensor_part *part, uint64_t *number, uint64_t *count,
                                ptxgen_error *err)
{
    ptxgen_error why;
    *number = 0;
    *count = 1;
    ptxgen_status status = ptxgen_gguf_get_u64(part->gguf, "split.count", count, &why);
    if (status == PTXGEN_OK && *count > 1)
        status = ptxgen_gguf_get_u64(part->gguf, "split.no", number, &why);
    else if (status == PTXGEN_ERROR_NOT_FOUND)
        status = PTXGEN_OK;
    return status == PTXGEN_OK
               ? status
               : ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s: %s", part->path, why.message);
}

static ptxgen_status check_split(const struct tensor_part *part, unsigned number, unsigned count,
                                 ptxgen_error *err)
{
    uint64_t said, of;
    ptxgen_status status = part->gguf
                               ? read_split(part, &said, &of, err)
                               : ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                                             "%s: no GGUF file, as its name says", part->path);
    if (status != PTXGEN_OK || (said + 1 == number && of == count))
        return status;
    return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                       "%s: its name says part %u of %u, and its keys part %" PRIu64 " of %" PRIu64
                       " (split.no + 1, split.count)",
                       part->path, number, count, said + 1, of);
}

/* The first part may say how many tensors all have. */
static ptxgen_status check_total(const struct tensor_parts *parts, ptxgen_error *err)
{
    uint64_t total;
    ptxgen_error why;
    ptxgen_status status =
        ptxgen_gguf_get_u64(parts->items[0].gguf, "split.tensors.count", &total, &why);
    if (status == PTXGEN_ERROR_NOT_FOUND)
        return PTXGEN_OK;
    if (status == PTXGEN_OK && total != parts->merged.count)
        status = ptxgen_fail(&why, PTXGEN_ERROR_MALFORMED,
                             "split.tensors.count is %" PRIu64 ", but the %zu parts have %zu "
                             "tensors",
                             total, parts->count, parts->merged.count);
    return status == PTXGEN_OK ? status
                               : ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s: %s",
                                             parts->items[0].path, why.message);
}

static ptxgen_status open_gguf(struct tensor_part *first, struct tensor_parts *parts,
                               ptxgen_error *err)
{
    struct part_name name;
    uint64_t number, count;
    ptxgen_status status = read_split(first, &number, &count, err);
    if (status != PTXGEN_OK)
        return status;
    if (count <= 1)
        return keep_alone(first, NULL, parts, err);
    if (!part_name_read(first->path, gguf_extension, &name))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s is one of %" PRIu64 " parts (split.count), which are found by names "
                           "that end in -00001-of-%05" PRIu64 ".gguf and so on",
                           first->path, count, count);
    status = check_split(first, name.number, name.count, err);
    if (status == PTXGEN_OK)
        status = allocate(parts, name.count, first->path, err);
    for (unsigned i = 0; status == PTXGEN_OK && i < parts->count; i++) {
        char *path = part_name_write(first->path, gguf_extension, &name, i + 1);
        status = open_part(path, first->path, &parts->items[i], err);
        if (status == PTXGEN_OK)
            status = check_split(&parts->items[i], i + 1, name.count, err);
    }
    if (status == PTXGEN_OK)
        status = merge(parts, NULL, err);
    return status == PTXGEN_OK ? check_total(parts, err) : status;
}

/* ---- opening ---- */

static ptxgen_status open_first(struct tensor_part *first, struct tensor_parts *parts,
                                ptxgen_error *err)
{
    if (is_index(&first->map))
        return open_index(first->path, &first->map, NULL, parts, err);
    ptxgen_status status = parse_part(first, err);
    if (status != PTXGEN_OK)
        return status;
    return first->gguf ? open_gguf(first, parts, err) : open_safetensors(first, parts, err);
}

ptxgen_status tensor_parts_open(const char *path, struct tensor_parts *parts, ptxgen_error *err)
{
    struct tensor_part first = {.path = NULL};
    char *file;
    *parts = (struct tensor_parts){.count = 0};
    ptxgen_status status = tensor_folder_resolve(path, &file, err);
    if (status == PTXGEN_OK)
        status = map_part(file, &first, err);
    if (status == PTXGEN_OK)
        status = open_first(&first, parts, err);
    close_part(&first);
    return status;
}

void tensor_parts_close(struct tensor_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        close_part(&parts->items[i]);
    free(parts->items);
    free(parts->missing_index);
    tensor_list_free(&parts->merged);
    *parts = (struct tensor_parts){.count = 0};
}
