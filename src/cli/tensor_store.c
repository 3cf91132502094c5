/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_store.h"

#include "mapped_file.h"
#include "printable.h"

#include <stdlib.h>
#include <string.h>

struct tensor_store {
    char *path;
    struct mapped_file map;
    struct gguf_file *gguf;
    struct safetensors_file *safetensors;
};

static ptxgen_status parse(struct tensor_store *store, ptxgen_error *err)
{
    const unsigned char *bytes = store->map.data;
    size_t size = store->map.size;
    if (size >= 4 && memcmp(bytes, "GGUF", 4) == 0)
        return gguf_parse(bytes, size, &store->gguf, err);
    if (size > 8 && bytes[8] == '{')
        return safetensors_parse(bytes, size, &store->safetensors, err);
    return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                       "neither GGUF (begins with \"GGUF\") nor safetensors (byte 8 is '{'): its "
                       "%zu bytes begin with %s",
                       size, printable((const char *)bytes, size < 9 ? size : 9).text);
}

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

    ptxgen_status status = mapped_file_open(path, &opened->map, err);
    if (status == PTXGEN_OK) {
        ptxgen_error why;
        status = parse(opened, &why);
        if (status != PTXGEN_OK)
            ptxgen_fail(err, status, "%s: %s", path, why.message);
    }
    if (status == PTXGEN_OK)
        *store = opened;
    else
        tensor_store_close(opened);
    return status;
}

void tensor_store_close(struct tensor_store *store)
{
    if (!store)
        return;
    gguf_free(store->gguf);
    safetensors_free(store->safetensors);
    mapped_file_close(&store->map);
    free(store->path);
    free(store);
}

const struct tensor_list *tensor_store_tensors(const struct tensor_store *store)
{
    return store->gguf ? gguf_tensors(store->gguf) : safetensors_tensors(store->safetensors);
}

ptxgen_status tensor_store_require(const struct tensor_store *store, const char *name,
                                   const struct named_tensor **tensor, ptxgen_error *err)
{
    *tensor = tensor_list_find(tensor_store_tensors(store), name);
    if (*tensor)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "%s has no tensor %s", store->path,
                       printable(name, strlen(name)).text);
}

const struct gguf_file *tensor_store_gguf(const struct tensor_store *store)
{
    return store->gguf;
}

const struct safetensors_file *tensor_store_safetensors(const struct tensor_store *store)
{
    return store->safetensors;
}
