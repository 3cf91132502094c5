/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of 4-bit weights: GPTQ, AWQ, pack-quantized, Marlin, and the library's own order. */
#include "layer_kinds.h"

#include <stdlib.h>
#include <string.h>

/* The weights of each form. */
static const char *const weight_parts[] = {"qweight", "weight_packed", "B", "marlin_codes"};
enum { WEIGHT_PARTS = sizeof weight_parts / sizeof *weight_parts };

static bool has(const ptxgen_files *files, const char *name)
{
    for (int i = 0; i < WEIGHT_PARTS; i++)
        if (layer_part(files, name, weight_parts[i]))
            return true;
    return false;
}

static bool recognise(const ptxgen_files *files, const ptxgen_tensor *weights, char *name,
                      size_t size)
{
    for (int i = 0; i < WEIGHT_PARTS; i++)
        if (layer_split(weights->name, weight_parts[i], name, size))
            return strcmp(weight_parts[i], "B") != 0 || layer_part(files, name, "s");
    return false;
}

/* ---- the form ---- */

/* AWQ packs eight columns into a word, GPTQ eight rows, under the same names. */
static bool is_awq(const ptxgen_files *files, const char *name)
{
    const ptxgen_tensor *weights = layer_part(files, name, "qweight"),
                        *scales = layer_part(files, name, "scales");
    return weights && scales && weights->ndim == 2 && scales->ndim == 2 &&
           weights->shape[1] * 8 == scales->shape[1];
}

static const char *metadata_of(const ptxgen_files *files, const char *key)
{
    return ptxgen_safetensors_metadata(ptxgen_files_safetensors(files), key);
}

static ptxgen_status choose_form(const ptxgen_files *files, const char *name,
                                 ptxgen_layer_form *form, ptxgen_error *err)
{
    static const ptxgen_layer_form named[] = {PTXGEN_LAYER_PACKED, PTXGEN_LAYER_PACK_QUANTIZED,
                                              PTXGEN_LAYER_MARLIN};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (layer_part(files, name, layer_suffix(named[i], PTXGEN_LAYER_WEIGHT))) {
            *form = named[i];
            return PTXGEN_OK;
        }
    if (!layer_part(files, name, "qweight"))
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                           "the file has no %s.qweight, %s.weight_packed or %s.B%s", name, name,
                           name, layer_nearest(files, name, weight_parts, WEIGHT_PARTS).text);
    const char *format = metadata_of(files, "checkpoint_format");
    bool second = format && !strcmp(format, "gptq_v2");
    *form = is_awq(files, name) ? PTXGEN_LAYER_AWQ
            : second            ? PTXGEN_LAYER_GPTQ_V2
                                : PTXGEN_LAYER_GPTQ;
    return PTXGEN_OK;
}

/* ---- the tensors ---- */

static ptxgen_status check_part(const ptxgen_tensor *t, ptxgen_error *err)
{
    switch (t->dtype) {
    case PTXGEN_DTYPE_F32:
    case PTXGEN_DTYPE_F16:
    case PTXGEN_DTYPE_BF16:
    case PTXGEN_DTYPE_I32:
    case PTXGEN_DTYPE_U32:
    case PTXGEN_DTYPE_I64:
    case PTXGEN_DTYPE_I8:
        if (t->ndim == 1 || t->ndim == 2)
            return PTXGEN_OK;
        break;
    default: break;
    }
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                       "%s is %s %s; expected I32, I8, F16, BF16 or F32 of one or two dimensions",
                       t->name, ptxgen_dtype_find(t->dtype)->name, tensor_shape_text(t).text);
}

/* The shape of a packed layer: K, N, group size. */
static ptxgen_status check_packed(const char *name, const ptxgen_layer *l, ptxgen_error *err)
{
    const ptxgen_tensor *shape = l->parts[PTXGEN_LAYER_SHAPE];
    int64_t sizes[3];
    if (!l->parts[PTXGEN_LAYER_SCALE] || !shape || shape->bytes != sizeof sizes ||
        shape->dtype != PTXGEN_DTYPE_I64)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "%s.%s needs marlin_scales, and a marlin_shape of three I64", name,
                           layer_suffix(PTXGEN_LAYER_PACKED, PTXGEN_LAYER_WEIGHT));
    memcpy(sizes, shape->data, sizeof sizes);
    for (int i = 0; i < 3; i++)
        if (sizes[i] < (i < 2 ? 1 : -1) || sizes[i] > INT32_MAX)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s has %lld", shape->name,
                               (long long)sizes[i]);
    return PTXGEN_OK;
}

static ptxgen_status find_parts(const ptxgen_files *files, const char *name, ptxgen_layer *l,
                                ptxgen_error *err)
{
    for (int i = 0; i < PTXGEN_LAYER_PARTS; i++) {
        const char *suffix = layer_suffix(l->form, (ptxgen_layer_part)i);
        l->parts[i] = layer_part(files, name, suffix);
        if (l->form == PTXGEN_LAYER_PACKED)
            continue;
        ptxgen_status status = l->parts[i] ? check_part(l->parts[i], err) : PTXGEN_OK;
        if (!l->parts[i] && (i == PTXGEN_LAYER_WEIGHT || i == PTXGEN_LAYER_SCALE))
            status =
                ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "the file has no %s.%s", name, suffix);
        if (status != PTXGEN_OK)
            return status;
    }
    return l->form == PTXGEN_LAYER_PACKED ? check_packed(name, l, err) : PTXGEN_OK;
}

/* Output features, as the shapes say that ptxgen_w4_describe compares with the others. */
static uint64_t features_of(const ptxgen_layer *l)
{
    const ptxgen_tensor *scales = l->parts[PTXGEN_LAYER_SCALE];
    int64_t sizes[3];
    switch (l->form) {
    case PTXGEN_LAYER_PACKED:
        memcpy(sizes, l->parts[PTXGEN_LAYER_SHAPE]->data, sizeof sizes);
        return (uint64_t)sizes[1];
    case PTXGEN_LAYER_PACK_QUANTIZED: return scales->shape[0];
    default: return scales->ndim == 2 ? scales->shape[1] : 1;
    }
}

static ptxgen_status find(const ptxgen_files *files, const char *name,
                          const ptxgen_layer_choice *choice, ptxgen_layer *l, ptxgen_error *err)
{
    const char *group = metadata_of(files, "group_size");
    l->form = choice->form;
    l->group_size = choice->group_size ? choice->group_size : group ? strtol(group, NULL, 10) : 0;
    ptxgen_status status = l->form ? PTXGEN_OK : choose_form(files, name, &l->form, err);
    if (status == PTXGEN_OK)
        status = find_parts(files, name, l, err);
    if (status != PTXGEN_OK)
        return status;
    const struct layer_floats bias = {"bias", features_of(l), .one = false};
    return layer_find_floats(files, name, &bias, &l->parts[PTXGEN_LAYER_BIAS], err);
}

const struct layer_kind_row layer_w4 = {has, find, recognise, PTXGEN_LAYER_GPTQ,
                                        PTXGEN_LAYER_PACKED};
