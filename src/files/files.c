/* SPDX-License-Identifier: Apache-2.0 */
#include "nearest.h"
#include "printable.h"
#include "tensor_list.h"
#include "tensor_parts.h"

#include <stdlib.h>
#include <string.h>

struct ptxgen_files {
    char *path;
    struct tensor_parts parts;
};

ptxgen_status ptxgen_files_open(const char *path, ptxgen_files **files, ptxgen_error *err)
{
    if (files)
        *files = NULL;
    if (!path || !files)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_files_open: path and files must be given");
    ptxgen_files *opened = calloc(1, sizeof *opened);
    if (opened)
        opened->path = strdup(path);
    if (!opened || !opened->path) {
        free(opened);
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to open %s", path);
    }
    ptxgen_status status = tensor_parts_open(path, &opened->parts, err);
    if (status == PTXGEN_OK)
        *files = opened;
    else
        ptxgen_files_close(opened);
    return status;
}

ptxgen_status ptxgen_files_open_as(ptxgen_files_format format, const char *path,
                                   ptxgen_files **files, ptxgen_error *err)
{
    static const char *const names[] = {
        [PTXGEN_FILES_GGUF] = "GGUF", [PTXGEN_FILES_SAFETENSORS] = "safetensors"};
    if (files)
        *files = NULL;
    if ((unsigned)format >= sizeof names / sizeof *names)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_files_open_as: the format %d is none of PTXGEN_FILES_GGUF and "
                           "PTXGEN_FILES_SAFETENSORS",
                           (int)format);
    ptxgen_status status = ptxgen_files_open(path, files, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_files_format found =
        ptxgen_files_gguf(*files) ? PTXGEN_FILES_GGUF : PTXGEN_FILES_SAFETENSORS;
    if (found == format)
        return PTXGEN_OK;
    ptxgen_files_close(*files);
    *files = NULL;
    return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s is a %s file; a %s file is needed here",
                       path, names[found], names[format]);
}

void ptxgen_files_close(ptxgen_files *files)
{
    if (!files)
        return;
    tensor_parts_close(&files->parts);
    free(files->path);
    free(files);
}

const ptxgen_tensor_list *ptxgen_files_tensors(const ptxgen_files *files)
{
    if (!files)
        return NULL;
    if (files->parts.count > 1)
        return &files->parts.merged;
    const struct tensor_part *only = &files->parts.items[0];
    return only->gguf ? ptxgen_gguf_tensors(only->gguf)
                      : ptxgen_safetensors_tensors(only->safetensors);
}

static struct nearest_text nearest_tensors(const ptxgen_tensor_list *tensors, const char *name)
{
    struct nearest nearest = {.wanted = name};
    for (size_t i = 0; i < tensors->count; i++)
        nearest_offer(&nearest, tensors->items[i].name, strlen(tensors->items[i].name));
    return nearest_text(&nearest);
}

ptxgen_status ptxgen_files_require(const ptxgen_files *files, const char *name,
                                   const ptxgen_tensor **tensor, ptxgen_error *err)
{
    if (!files || !name || !tensor)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_files_require: files, name and tensor must be given");
    const ptxgen_tensor_list *tensors = ptxgen_files_tensors(files);
    const char *index = files->parts.missing_index;
    *tensor = ptxgen_tensor_list_find(tensors, name);
    if (*tensor)
        return PTXGEN_OK;
    struct printable shown = printable(name, strlen(name));
    if (index)
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                           "%s has no tensor %s; it is one part of several, which are read through "
                           "%s, and that is not there",
                           files->path, shown.text, index);
    return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "%s has no tensor %s%s", files->path,
                       shown.text, nearest_tensors(tensors, name).text);
}

const ptxgen_gguf *ptxgen_files_gguf(const ptxgen_files *files)
{
    return files ? files->parts.items[0].gguf : NULL;
}

const ptxgen_safetensors *ptxgen_files_safetensors(const ptxgen_files *files)
{
    return files ? files->parts.items[0].safetensors : NULL;
}
