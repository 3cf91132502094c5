/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_store.h"

#include "printable.h"
#include "tensor_parts.h"

#include <stdlib.h>
#include <string.h>

struct tensor_store {
    char *path;
    struct tensor_parts parts;
};

ptxgen_status tensor_store_open(const char *path, struct tensor_store **store, ptxgen_error *err)
{
    *store = NULL;
    struct tensor_store *opened = calloc(1, sizeof *opened);
    if (opened)
        opened->path = strdup(path);
    if (!opened || !opened->path) {
        free(opened);
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to open %s", path);
    }
    ptxgen_status status = tensor_parts_open(path, &opened->parts, err);
    if (status == PTXGEN_OK)
        *store = opened;
    else
        tensor_store_close(opened);
    return status;
}

ptxgen_status tensor_store_open_as(enum tensor_format format, const char *path,
                                   struct tensor_store **store, ptxgen_error *err)
{
    static const char *const names[] = {
        [TENSOR_GGUF] = "GGUF", [TENSOR_SAFETENSORS] = "safetensors"};
    ptxgen_status status = tensor_store_open(path, store, err);
    if (status != PTXGEN_OK)
        return status;
    enum tensor_format found = tensor_store_gguf(*store) ? TENSOR_GGUF : TENSOR_SAFETENSORS;
    if (found == format)
        return PTXGEN_OK;
    tensor_store_close(*store);
    *store = NULL;
    return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s is a %s file; a %s file is needed here",
                       path, names[found], names[format]);
}

void tensor_store_close(struct tensor_store *store)
{
    if (!store)
        return;
    tensor_parts_close(&store->parts);
    free(store->path);
    free(store);
}

const struct tensor_list *tensor_store_tensors(const struct tensor_store *store)
{
    const struct tensor_part *only = &store->parts.items[0];
    if (store->parts.count > 1)
        return &store->parts.merged;
    return only->gguf ? gguf_tensors(only->gguf) : safetensors_tensors(only->safetensors);
}

ptxgen_status tensor_store_require(const struct tensor_store *store, const char *name,
                                   const struct named_tensor **tensor, ptxgen_error *err)
{
    const char *index = store->parts.missing_index;
    *tensor = tensor_list_find(tensor_store_tensors(store), name);
    if (*tensor)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "%s has no tensor %s%s%s%s", store->path,
                       printable(name, strlen(name)).text,
                       index ? "; it is one part of several, which are read through " : "",
                       index ? index : "", index ? ", and that is not there" : "");
}

const struct gguf_file *tensor_store_gguf(const struct tensor_store *store)
{
    return store->parts.items[0].gguf;
}

const struct safetensors_file *tensor_store_safetensors(const struct tensor_store *store)
{
    return store->parts.items[0].safetensors;
}
