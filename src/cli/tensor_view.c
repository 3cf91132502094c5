/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_view.h"

#include "printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct tensor_dtype_info *tensor_dtype_info(enum tensor_dtype dtype)
{
    static const struct tensor_dtype_info table[TENSOR_DTYPE_COUNT] = {
#define ROW(name, ggml, safetensors, elements, bytes) {#name, ggml, safetensors, elements, bytes},
        TENSOR_DTYPES(ROW)
#undef ROW
    };
    return &table[dtype];
}

struct tensor_shape_text tensor_shape_text(const struct named_tensor *tensor)
{
    struct tensor_shape_text out;
    int used = snprintf(out.text, sizeof out.text, "[");
    for (unsigned i = 0; i < tensor->ndim; i++)
        used += snprintf(out.text + used, sizeof out.text - (size_t)used, "%s%" PRIu64,
                         i ? ", " : "", tensor->shape[i]);
    snprintf(out.text + used, sizeof out.text - (size_t)used, "]");
    return out;
}

ptxgen_status named_tensor_measure(struct named_tensor *tensor, ptxgen_error *err)
{
    const struct tensor_dtype_info *dtype = tensor_dtype_info(tensor->dtype);
    struct printable name = printable(tensor->name, strlen(tensor->name));
    uint64_t elements = 1, bytes;

    for (unsigned i = 0; i < tensor->ndim; i++)
        if (__builtin_mul_overflow(elements, tensor->shape[i], &elements))
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "tensor %s: the element count of shape %s exceeds 64 bits",
                               name.text, tensor_shape_text(tensor).text);
    if (elements % dtype->block_elements != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "tensor %s: shape %s has %" PRIu64
                           " elements, not a multiple of %s's block of %u",
                           name.text, tensor_shape_text(tensor).text, elements, dtype->name,
                           dtype->block_elements);
    if (__builtin_mul_overflow(elements / dtype->block_elements, dtype->block_bytes, &bytes) ||
        bytes > SIZE_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "tensor %s: shape %s of %s takes more bytes than can be addressed",
                           name.text, tensor_shape_text(tensor).text, dtype->name);
    tensor->bytes = (size_t)bytes;
    return PTXGEN_OK;
}

ptxgen_status tensor_list_allocate(struct tensor_list *list, size_t count, ptxgen_error *err)
{
    *list = (struct tensor_list){.count = count};
    if (count == 0)
        return PTXGEN_OK;
    list->items = calloc(count, sizeof *list->items);
    list->by_name = calloc(count, sizeof *list->by_name);
    if (!list->items || !list->by_name) {
        tensor_list_free(list);
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a list of %zu tensors",
                           count);
    }
    return PTXGEN_OK;
}

ptxgen_status tensor_list_index(struct tensor_list *list, ptxgen_error *err)
{
    for (size_t i = 0; i < list->count; i++)
        list->by_name[i] = (struct name_index_entry){list->items[i].name, i};
    name_index_sort(list->by_name, list->count);
    const char *twice = name_index_duplicate(list->by_name, list->count);
    if (twice)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "tensor %s appears twice; names must differ",
                           printable(twice, strlen(twice)).text);
    return PTXGEN_OK;
}

const struct named_tensor *tensor_list_find(const struct tensor_list *list, const char *name)
{
    const struct name_index_entry *found = name_index_find(list->by_name, list->count, name);
    return found ? &list->items[found->position] : NULL;
}

void tensor_list_free(struct tensor_list *list)
{
    free(list->items);
    free(list->by_name);
    *list = (struct tensor_list){0};
}
