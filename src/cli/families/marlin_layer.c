/* SPDX-License-Identifier: Apache-2.0 */
#include "marlin_layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct layer_names names[] = {
    [PTXGEN_W4_GPTQ_V1] = {"qweight", "scales", "qzeros", "g_idx", NULL},
    [PTXGEN_W4_GPTQ_V2] = {"qweight", "scales", "qzeros", "g_idx", NULL},
    [PTXGEN_W4_AWQ] = {"qweight", "scales", "qzeros", NULL, NULL},
    [PTXGEN_W4_PACK_QUANTIZED] = {"weight_packed", "weight_scale", "weight_zero_point",
                                  "weight_g_idx", "weight_shape"},
    [PTXGEN_W4_MARLIN] = {"B", "s", "zeros", NULL, NULL},
};

const struct layer_names *layer_names_of(ptxgen_w4_format format)
{
    return &names[format];
}

const struct named_tensor *layer_tensor(const struct tensor_store *store, const char *prefix,
                                        const char *suffix)
{
    char name[1024];
    if (!suffix || snprintf(name, sizeof name, "%s.%s", prefix, suffix) >= (int)sizeof name)
        return NULL;
    return tensor_list_find(tensor_store_tensors(store), name);
}

/* ---- the format ---- */

/* AWQ packs eight columns into a word, GPTQ eight rows, under the same names. */
static bool is_awq(const struct tensor_store *store, const char *prefix)
{
    const struct named_tensor *weights = layer_tensor(store, prefix, "qweight"),
                              *scales = layer_tensor(store, prefix, "scales");
    return weights && scales && weights->ndim == 2 && scales->ndim == 2 &&
           weights->shape[1] * 8 == scales->shape[1];
}

static ptxgen_status choose_format(const struct tensor_store *store, const char *prefix,
                                   const char *choice, ptxgen_w4_format *format, ptxgen_error *err)
{
    if (choice)
        return ptxgen_w4_detect_format(NULL, choice, format, err);
    *format = PTXGEN_W4_PACK_QUANTIZED;
    if (layer_tensor(store, prefix, names[*format].weights))
        return PTXGEN_OK;
    *format = PTXGEN_W4_MARLIN;
    if (layer_tensor(store, prefix, names[*format].weights))
        return PTXGEN_OK;
    if (!layer_tensor(store, prefix, "qweight"))
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                           "the file has no %s.qweight, %s.weight_packed or %s.B", prefix, prefix,
                           prefix);
    *format = PTXGEN_W4_AWQ;
    if (is_awq(store, prefix))
        return PTXGEN_OK;
    const char *metadata =
        safetensors_metadata(tensor_store_safetensors(store), "checkpoint_format");
    bool second = metadata && !strcmp(metadata, "gptq_v2");
    *format = second ? PTXGEN_W4_GPTQ_V2 : PTXGEN_W4_GPTQ_V1;
    return PTXGEN_OK;
}

/* ---- the tensors ---- */

static ptxgen_status take(const struct named_tensor *from, ptxgen_w4_tensor *to, ptxgen_error *err)
{
    static const struct {
        enum tensor_dtype file;
        ptxgen_w4_dtype ours;
    } dtypes[] = {{TENSOR_F32, PTXGEN_W4_F32},   {TENSOR_F16, PTXGEN_W4_F16},
                  {TENSOR_BF16, PTXGEN_W4_BF16}, {TENSOR_I32, PTXGEN_W4_I32},
                  {TENSOR_U32, PTXGEN_W4_I32},   {TENSOR_I64, PTXGEN_W4_I64},
                  {TENSOR_I8, PTXGEN_W4_I8}};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (from->dtype == dtypes[i].file && (from->ndim == 1 || from->ndim == 2)) {
            *to =
                (ptxgen_w4_tensor){.data = (void *)(uintptr_t)from->data,
                                   .dtype = dtypes[i].ours,
                                   .shape = {from->shape[0], from->ndim == 2 ? from->shape[1] : 1}};
            return PTXGEN_OK;
        }
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                       "%s is %s %s; expected I32, I8, F16, BF16 or F32 of one or two dimensions",
                       from->name, tensor_dtype_info(from->dtype)->name,
                       tensor_shape_text(from).text);
}

static ptrdiff_t metadata_group_size(const struct tensor_store *store)
{
    const char *text = safetensors_metadata(tensor_store_safetensors(store), "group_size");
    return text ? strtol(text, NULL, 10) : 0;
}

ptxgen_status layer_find(const struct tensor_store *store, const char *prefix,
                         const struct layer_choice *choice, ptxgen_w4_checkpoint *c,
                         ptxgen_error *err)
{
    *c = (ptxgen_w4_checkpoint){.group_size = choice->group_size ? choice->group_size
                                                                 : metadata_group_size(store)};
    ptxgen_status status = choose_format(store, prefix, choice->format, &c->format, err);
    if (status != PTXGEN_OK)
        return status;
    const struct layer_names *n = &names[c->format];
    const struct {
        const char *suffix;
        ptxgen_w4_tensor *tensor;
        bool needed;
    } tensors[] = {{n->weights, &c->weights, true},
                   {n->scales, &c->scales, true},
                   {n->zeros, &c->zeros, false},
                   {n->g_idx, &c->g_idx, false},
                   {n->shape, &c->shape, false}};
    for (size_t i = 0; status == PTXGEN_OK && i < sizeof tensors / sizeof *tensors; i++) {
        const struct named_tensor *from = layer_tensor(store, prefix, tensors[i].suffix);
        if (from)
            status = take(from, tensors[i].tensor, err);
        else if (tensors[i].needed)
            status = ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "the file has no %s.%s", prefix,
                                 tensors[i].suffix);
    }
    return status;
}

/* ---- packed layers ---- */

const struct packed_names packed_names = {"marlin_codes", "marlin_scales", "marlin_zeros",
                                          "marlin_order", "marlin_shape"};

bool layer_is_packed(const struct tensor_store *store, const char *prefix)
{
    return layer_tensor(store, prefix, packed_names.codes);
}

static ptxgen_status read_packed_shape(const struct named_tensor *shape, int64_t sizes[3],
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
static ptxgen_status borrow(const struct named_tensor *from, size_t bytes, void **data,
                            ptxgen_error *err)
{
    *data = from ? (void *)(uintptr_t)from->data : NULL;
    if (from && from->bytes != bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "%s is of %zu bytes, but its layer needs %zu", from->name,
                           (size_t)from->bytes, bytes);
    return PTXGEN_OK;
}

ptxgen_status layer_find_packed(const struct tensor_store *store, const char *prefix,
                                ptxgen_marlin_spec *spec, ptxgen_marlin_packed *packed,
                                ptxgen_error *err)
{
    const struct named_tensor *codes = layer_tensor(store, prefix, packed_names.codes),
                              *scales = layer_tensor(store, prefix, packed_names.scales),
                              *zeros = layer_tensor(store, prefix, packed_names.zeros),
                              *order = layer_tensor(store, prefix, packed_names.order),
                              *shape = layer_tensor(store, prefix, packed_names.shape);
    int64_t sizes[3];
    if (!codes || !scales || !shape || shape->bytes != sizeof sizes || shape->dtype != TENSOR_I64)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "%s.%s needs marlin_scales, and a marlin_shape of three I64", prefix,
                           packed_names.codes);
    ptxgen_status status = read_packed_shape(shape, sizes, err);
    if (status != PTXGEN_OK)
        return status;
    *spec = (ptxgen_marlin_spec){
        .k = (uint32_t)sizes[0],
        .n = (uint32_t)sizes[1],
        .group_size = (int32_t)sizes[2],
        .type = scales->dtype == TENSOR_BF16 ? PTXGEN_BF16 : PTXGEN_F16,
        .zeros = zeros != NULL,
        .act_order = order != NULL,
    };
    void *rows = NULL;
    if ((status = ptxgen_marlin_packed_layout(spec, packed, err)) != PTXGEN_OK ||
        (status = borrow(codes, packed->codes_bytes, &packed->codes, err)) != PTXGEN_OK ||
        (status = borrow(scales, packed->scales_bytes, &packed->scales, err)) != PTXGEN_OK ||
        (status = borrow(zeros, packed->zeros_bytes, &packed->zeros, err)) != PTXGEN_OK ||
        (status = borrow(order, packed->order_bytes, &rows, err)) != PTXGEN_OK)
        return status;
    packed->order = rows;
    return PTXGEN_OK;
}

/* ---- what belongs to a layer ---- */

void layer_list_tensors(const struct tensor_store *store, const char *prefix,
                        ptxgen_w4_format format, const struct named_tensor *tensors[LAYER_TENSORS])
{
    const struct layer_names *n = &names[format];
    const struct packed_names *p = &packed_names;
    const bool packed = layer_is_packed(store, prefix);
    const char *const suffixes[LAYER_TENSORS] = {
        packed ? p->codes : n->weights, packed ? p->scales : n->scales,
        packed ? p->zeros : n->zeros, packed ? p->order : n->g_idx, packed ? p->shape : n->shape};
    for (int i = 0; i < LAYER_TENSORS; i++)
        tensors[i] = layer_tensor(store, prefix, suffixes[i]);
}
