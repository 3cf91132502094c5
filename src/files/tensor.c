/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_list.h"

#include "printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const ptxgen_dtype_info *ptxgen_dtype_find(ptxgen_dtype dtype)
{
    static const ptxgen_dtype_info table[] = {
        [PTXGEN_DTYPE_F32] = {"F32", 0, true, 1, 4},
        [PTXGEN_DTYPE_F16] = {"F16", 1, true, 1, 2},
        [PTXGEN_DTYPE_BF16] = {"BF16", 30, true, 1, 2},
        [PTXGEN_DTYPE_F64] = {"F64", 28, true, 1, 8},
        [PTXGEN_DTYPE_I8] = {"I8", 24, true, 1, 1},
        [PTXGEN_DTYPE_I16] = {"I16", 25, true, 1, 2},
        [PTXGEN_DTYPE_I32] = {"I32", 26, true, 1, 4},
        [PTXGEN_DTYPE_I64] = {"I64", 27, true, 1, 8},
        [PTXGEN_DTYPE_U8] = {"U8", -1, true, 1, 1},
        [PTXGEN_DTYPE_U16] = {"U16", -1, true, 1, 2},
        [PTXGEN_DTYPE_U32] = {"U32", -1, true, 1, 4},
        [PTXGEN_DTYPE_U64] = {"U64", -1, true, 1, 8},
        [PTXGEN_DTYPE_BOOL] = {"BOOL", -1, true, 1, 1},
        [PTXGEN_DTYPE_C64] = {"C64", -1, true, 1, 8},
        [PTXGEN_DTYPE_F8_E4M3] = {"F8_E4M3", -1, true, 1, 1},
        [PTXGEN_DTYPE_F8_E5M2] = {"F8_E5M2", -1, true, 1, 1},
        [PTXGEN_DTYPE_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", -1, true, 1, 1},
        [PTXGEN_DTYPE_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", -1, true, 1, 1},
        [PTXGEN_DTYPE_F8_E8M0] = {"F8_E8M0", -1, true, 1, 1},
        [PTXGEN_DTYPE_F6_E2M3] = {"F6_E2M3", -1, true, 4, 3},
        [PTXGEN_DTYPE_F6_E3M2] = {"F6_E3M2", -1, true, 4, 3},
        [PTXGEN_DTYPE_F4] = {"F4", -1, true, 2, 1},
        [PTXGEN_DTYPE_Q4_0] = {"Q4_0", 2, false, 32, 18},
        [PTXGEN_DTYPE_Q4_1] = {"Q4_1", 3, false, 32, 20},
        [PTXGEN_DTYPE_Q5_0] = {"Q5_0", 6, false, 32, 22},
        [PTXGEN_DTYPE_Q5_1] = {"Q5_1", 7, false, 32, 24},
        [PTXGEN_DTYPE_Q8_0] = {"Q8_0", 8, false, 32, 34},
        [PTXGEN_DTYPE_Q8_1] = {"Q8_1", 9, false, 32, 36},
        [PTXGEN_DTYPE_Q2_K] = {"Q2_K", 10, false, 256, 84},
        [PTXGEN_DTYPE_Q3_K] = {"Q3_K", 11, false, 256, 110},
        [PTXGEN_DTYPE_Q4_K] = {"Q4_K", 12, false, 256, 144},
        [PTXGEN_DTYPE_Q5_K] = {"Q5_K", 13, false, 256, 176},
        [PTXGEN_DTYPE_Q6_K] = {"Q6_K", 14, false, 256, 210},
        [PTXGEN_DTYPE_Q8_K] = {"Q8_K", 15, false, 256, 292},
        [PTXGEN_DTYPE_IQ2_XXS] = {"IQ2_XXS", 16, false, 256, 66},
        [PTXGEN_DTYPE_IQ2_XS] = {"IQ2_XS", 17, false, 256, 74},
        [PTXGEN_DTYPE_IQ3_XXS] = {"IQ3_XXS", 18, false, 256, 98},
        [PTXGEN_DTYPE_IQ1_S] = {"IQ1_S", 19, false, 256, 50},
        [PTXGEN_DTYPE_IQ4_NL] = {"IQ4_NL", 20, false, 32, 18},
        [PTXGEN_DTYPE_IQ3_S] = {"IQ3_S", 21, false, 256, 110},
        [PTXGEN_DTYPE_IQ2_S] = {"IQ2_S", 22, false, 256, 82},
        [PTXGEN_DTYPE_IQ4_XS] = {"IQ4_XS", 23, false, 256, 136},
        [PTXGEN_DTYPE_IQ1_M] = {"IQ1_M", 29, false, 256, 56},
        [PTXGEN_DTYPE_TQ1_0] = {"TQ1_0", 34, false, 256, 54},
        [PTXGEN_DTYPE_TQ2_0] = {"TQ2_0", 35, false, 256, 66},
        [PTXGEN_DTYPE_MXFP4] = {"MXFP4", 39, false, 32, 17},
        [PTXGEN_DTYPE_NVFP4] = {"NVFP4", 40, false, 64, 36},
        [PTXGEN_DTYPE_Q1_0] = {"Q1_0", 41, false, 128, 18},
        [PTXGEN_DTYPE_Q2_0] = {"Q2_0", 42, false, 64, 18},
    };
    return (size_t)dtype < sizeof table / sizeof *table ? &table[dtype] : NULL;
}

struct tensor_shape_text tensor_shape_text(const ptxgen_tensor *tensor)
{
    struct tensor_shape_text out;
    int used = snprintf(out.text, sizeof out.text, "[");
    for (unsigned i = 0; i < tensor->ndim; i++)
        used += snprintf(out.text + used, sizeof out.text - (size_t)used, "%s%" PRIu64,
                         i ? ", " : "", tensor->shape[i]);
    snprintf(out.text + used, sizeof out.text - (size_t)used, "]");
    return out;
}

ptxgen_status tensor_measure(ptxgen_tensor *tensor, ptxgen_error *err)
{
    const ptxgen_dtype_info *dtype = ptxgen_dtype_find(tensor->dtype);
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

ptxgen_status tensor_list_allocate(ptxgen_tensor_list *list, size_t count, ptxgen_error *err)
{
    *list = (ptxgen_tensor_list){.count = count};
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

ptxgen_status tensor_list_index(ptxgen_tensor_list *list, ptxgen_error *err)
{
    for (size_t i = 0; i < list->count; i++)
        list->by_name[i] = (struct ptxgen_name){list->items[i].name, i};
    name_index_sort(list->by_name, list->count);
    const char *twice = name_index_duplicate(list->by_name, list->count);
    if (twice)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "tensor %s appears twice; names must differ",
                           printable(twice, strlen(twice)).text);
    return PTXGEN_OK;
}

const ptxgen_tensor *ptxgen_tensor_list_find(const ptxgen_tensor_list *list, const char *name)
{
    const struct ptxgen_name *found =
        list && name ? name_index_find(list->by_name, list->count, name) : NULL;
    return found ? &list->items[found->position] : NULL;
}

void tensor_list_free(ptxgen_tensor_list *list)
{
    free(list->items);
    free(list->by_name);
    *list = (ptxgen_tensor_list){0};
}
