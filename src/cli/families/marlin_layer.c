/* SPDX-License-Identifier: Apache-2.0 */
#include "marlin_layer.h"

#include "../../harness/marlin.h"
#include "../layer_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const layer_suffixes[LAYER_FORMATS][LAYER_TENSORS] = {
    [PTXGEN_W4_GPTQ_V1] = {"qweight", "scales", "qzeros", "g_idx", NULL},
    [PTXGEN_W4_GPTQ_V2] = {"qweight", "scales", "qzeros", "g_idx", NULL},
    [PTXGEN_W4_AWQ] = {"qweight", "scales", "qzeros", NULL, NULL},
    [PTXGEN_W4_PACK_QUANTIZED] = {"weight_packed", "weight_scale", "weight_zero_point",
                                  "weight_g_idx", "weight_shape"},
    [PTXGEN_W4_MARLIN] = {"B", "s", "zeros", NULL, NULL},
    [LAYER_PACKED] = {"marlin_codes", "marlin_scales", "marlin_zeros", "marlin_order",
                      "marlin_shape"},
};

const ptxgen_dtype layer_dtypes[] = {
    [PTXGEN_W4_F32] = PTXGEN_DTYPE_F32,   [PTXGEN_W4_F16] = PTXGEN_DTYPE_F16,
    [PTXGEN_W4_BF16] = PTXGEN_DTYPE_BF16, [PTXGEN_W4_I32] = PTXGEN_DTYPE_I32,
    [PTXGEN_W4_I64] = PTXGEN_DTYPE_I64,   [PTXGEN_W4_I8] = PTXGEN_DTYPE_I8};

void layer_list_tensors(const ptxgen_files *store, const char *prefix, int format,
                        const ptxgen_tensor *tensors[LAYER_TENSORS])
{
    for (int i = 0; i < LAYER_TENSORS; i++)
        tensors[i] = layer_part(store, prefix, layer_suffixes[format][i]);
}

/* ---- the format ---- */

/* The weights of each format, and of a packed layer. */
static const char *const weight_parts[] = {"qweight", "weight_packed", "B", "marlin_codes"};

/* AWQ packs eight columns into a word, GPTQ eight rows, under the same names. */
static bool is_awq(const ptxgen_files *store, const char *prefix)
{
    const ptxgen_tensor *weights = layer_part(store, prefix, "qweight"),
                        *scales = layer_part(store, prefix, "scales");
    return weights && scales && weights->ndim == 2 && scales->ndim == 2 &&
           weights->shape[1] * 8 == scales->shape[1];
}

static ptxgen_status choose_format(const ptxgen_files *store, const char *prefix,
                                   const char *choice, ptxgen_w4_format *format, ptxgen_error *err)
{
    if (choice)
        return ptxgen_w4_detect_format(NULL, choice, format, err);
    *format = PTXGEN_W4_PACK_QUANTIZED;
    if (layer_part(store, prefix, layer_suffixes[*format][LAYER_WEIGHTS]))
        return PTXGEN_OK;
    *format = PTXGEN_W4_MARLIN;
    if (layer_part(store, prefix, layer_suffixes[*format][LAYER_WEIGHTS]))
        return PTXGEN_OK;
    if (!layer_part(store, prefix, "qweight"))
        return ptxgen_fail(
            err, PTXGEN_ERROR_NOT_FOUND, "the file has no %s.qweight, %s.weight_packed or %s.B%s",
            prefix, prefix, prefix,
            layer_nearest(store, prefix, weight_parts, sizeof weight_parts / sizeof *weight_parts)
                .text);
    *format = PTXGEN_W4_AWQ;
    if (is_awq(store, prefix))
        return PTXGEN_OK;
    const char *metadata =
        ptxgen_safetensors_metadata(ptxgen_files_safetensors(store), "checkpoint_format");
    bool second = metadata && !strcmp(metadata, "gptq_v2");
    *format = second ? PTXGEN_W4_GPTQ_V2 : PTXGEN_W4_GPTQ_V1;
    return PTXGEN_OK;
}

/* ---- the tensors ---- */

static ptxgen_status take(const ptxgen_tensor *from, ptxgen_w4_tensor *to, ptxgen_error *err)
{
    bool fits = from->ndim == 1 || from->ndim == 2;
    ptxgen_dtype dtype = from->dtype == PTXGEN_DTYPE_U32 ? PTXGEN_DTYPE_I32 : from->dtype;
    for (int i = 0; fits && i <= PTXGEN_W4_I8; i++)
        if (dtype == layer_dtypes[i]) {
            *to =
                (ptxgen_w4_tensor){.data = (void *)(uintptr_t)from->data,
                                   .dtype = (ptxgen_w4_dtype)i,
                                   .shape = {from->shape[0], from->ndim == 2 ? from->shape[1] : 1}};
            return PTXGEN_OK;
        }
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                       "%s is %s %s; expected I32, I8, F16, BF16 or F32 of one or two dimensions",
                       from->name, ptxgen_dtype_find(from->dtype)->name,
                       tensor_shape_text(from).text);
}

static ptrdiff_t metadata_group_size(const ptxgen_files *store)
{
    const char *text = ptxgen_safetensors_metadata(ptxgen_files_safetensors(store), "group_size");
    return text ? strtol(text, NULL, 10) : 0;
}

ptxgen_status layer_find(const ptxgen_files *store, const char *prefix,
                         const struct layer_choice *choice, ptxgen_w4_checkpoint *c,
                         ptxgen_error *err)
{
    *c = (ptxgen_w4_checkpoint){.group_size = choice->group_size ? choice->group_size
                                                                 : metadata_group_size(store)};
    ptxgen_status status = choose_format(store, prefix, choice->format, &c->format, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_tensor *from[LAYER_TENSORS];
    ptxgen_w4_tensor *to[LAYER_TENSORS];
    layer_list_tensors(store, prefix, (int)c->format, from);
    marlin_list_tensors(c, to);
    for (int i = 0; status == PTXGEN_OK && i < LAYER_TENSORS; i++) {
        if (from[i])
            status = take(from[i], to[i], err);
        else if (i <= LAYER_SCALES)
            status = ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "the file has no %s.%s", prefix,
                                 layer_suffixes[c->format][i]);
    }
    return status;
}

void layer_complete_spec(const ptxgen_w4_info *info, bool type_given, ptxgen_marlin_spec *spec)
{
    spec->k = (uint32_t)info->k;
    spec->n = (uint32_t)info->n;
    spec->group_size = info->groups == 1 ? PTXGEN_W4_PER_CHANNEL : (int32_t)info->group_size;
    spec->zeros |= !info->symmetric;
    spec->act_order |= info->act_order;
    if (!type_given && info->scale_type == PTXGEN_BF16)
        spec->type = PTXGEN_BF16;
}

/* ---- packed layers ---- */

bool layer_recognise(const ptxgen_files *store, const ptxgen_tensor *weights, char *layer,
                     size_t size)
{
    for (size_t i = 0; i < sizeof weight_parts / sizeof *weight_parts; i++)
        if (layer_split(weights->name, weight_parts[i], layer, size))
            return strcmp(weight_parts[i], "B") != 0 || layer_part(store, layer, "s");
    return false;
}

bool layer_is_packed(const ptxgen_files *store, const char *prefix)
{
    return layer_part(store, prefix, layer_suffixes[LAYER_PACKED][LAYER_WEIGHTS]);
}

static ptxgen_status read_packed_shape(const ptxgen_tensor *shape, int64_t sizes[3],
                                       ptxgen_error *err)
{
    memcpy(sizes, shape->data, 3 * sizeof *sizes);
    for (int i = 0; i < 3; i++)
        if (sizes[i] < (i < 2 ? 1 : -1) || sizes[i] > INT32_MAX)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s has %lld", shape->name,
                               (long long)sizes[i]);
    return PTXGEN_OK;
}

/* Borrows a tensor of the size that the layout makes it. */
static ptxgen_status borrow(const ptxgen_tensor *from, size_t bytes, void **data, ptxgen_error *err)
{
    *data = from ? (void *)(uintptr_t)from->data : NULL;
    if (from && from->bytes != bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "%s is of %zu bytes, but its layer needs %zu", from->name,
                           (size_t)from->bytes, bytes);
    return PTXGEN_OK;
}

ptxgen_status layer_find_packed(const ptxgen_files *store, const char *prefix,
                                ptxgen_marlin_spec *spec, ptxgen_marlin_packed *packed,
                                ptxgen_error *err)
{
    const ptxgen_tensor *from[LAYER_TENSORS], *shape;
    int64_t sizes[3];
    layer_list_tensors(store, prefix, LAYER_PACKED, from);
    shape = from[LAYER_SHAPE];
    if (!from[LAYER_WEIGHTS] || !from[LAYER_SCALES] || !shape || shape->bytes != sizeof sizes ||
        shape->dtype != PTXGEN_DTYPE_I64)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "%s.%s needs marlin_scales, and a marlin_shape of three I64", prefix,
                           layer_suffixes[LAYER_PACKED][LAYER_WEIGHTS]);
    ptxgen_status status = read_packed_shape(shape, sizes, err);
    if (status != PTXGEN_OK)
        return status;
    spec->k = (uint32_t)sizes[0];
    spec->n = (uint32_t)sizes[1];
    spec->group_size = (int32_t)sizes[2];
    spec->type = from[LAYER_SCALES]->dtype == PTXGEN_DTYPE_BF16 ? PTXGEN_BF16 : PTXGEN_F16;
    spec->zeros = from[LAYER_ZEROS] != NULL;
    spec->act_order = from[LAYER_ORDER] != NULL;
    status = ptxgen_marlin_packed_layout(spec, packed, err);
    if (status != PTXGEN_OK)
        return status;
    void *data[LAYER_SHAPE];
    const size_t bytes[LAYER_SHAPE] = {packed->codes_bytes, packed->scales_bytes,
                                       packed->zeros_bytes, packed->order_bytes};
    for (int i = 0; status == PTXGEN_OK && i < LAYER_SHAPE; i++)
        status = borrow(from[i], bytes[i], &data[i], err);
    if (status != PTXGEN_OK)
        return status;
    packed->codes = data[LAYER_WEIGHTS];
    packed->scales = data[LAYER_SCALES];
    packed->zeros = data[LAYER_ZEROS];
    packed->order = data[LAYER_ORDER];
    return PTXGEN_OK;
}
