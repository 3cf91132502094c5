/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers in 8 bits, as compressed-tensors' int-quantized and float-quantized formats name their
 * tensors, ModelOpt for fp8, and DeepSeek for fp8 with scales of blocks.
 */
#include "layer_kinds.h"
#include "number_tensor.h"

#include <math.h>

enum { BLOCK = 128 /* of features, and of K, that share a scale */ };

static bool is_float(ptxgen_dtype dtype)
{
    return dtype == PTXGEN_DTYPE_F8_E4M3 || dtype == PTXGEN_DTYPE_F8_E5M2;
}

static bool is_of_codes(ptxgen_dtype dtype)
{
    return dtype == PTXGEN_DTYPE_I8 || is_float(dtype);
}

static bool has(const ptxgen_files *files, const char *name)
{
    const ptxgen_tensor *weight = layer_part(files, name, "weight");
    return weight && is_of_codes(weight->dtype);
}

static bool recognise(const ptxgen_files *files, const ptxgen_tensor *weights, char *name,
                      size_t size)
{
    return is_of_codes(weights->dtype) && weights->ndim == 2 &&
           layer_split(weights->name, "weight", name, size) &&
           (layer_part(files, name, "weight_scale") || layer_part(files, name, "weight_scale_inv"));
}

/* ---- weights ---- */

/* Refuses the first weight that is a NaN or infinite. */
static ptxgen_status check_numbers(const ptxgen_tensor *w, ptxgen_error *err)
{
    enum { MAGNITUDE = 0x7F, NAN_OF_E4M3 = 0x7F, INFINITY_OF_E5M2 = 0x7C };
    const bool e5m2 = w->dtype == PTXGEN_DTYPE_F8_E5M2;
    const unsigned char *bytes = w->data;
    for (size_t i = 0; i < w->bytes; i++) {
        unsigned magnitude = bytes[i] & MAGNITUDE;
        if (magnitude >= (e5m2 ? INFINITY_OF_E5M2 : NAN_OF_E4M3))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s[%zu, %zu] is %s", w->name,
                               i / (size_t)w->shape[1], i % (size_t)w->shape[1],
                               magnitude == INFINITY_OF_E5M2 ? "infinite" : "a NaN");
    }
    return PTXGEN_OK;
}

static ptxgen_status find_weight(const ptxgen_files *files, const char *name, ptxgen_layer *l,
                                 ptxgen_error *err)
{
    const ptxgen_tensor **weight = &l->parts[PTXGEN_LAYER_WEIGHT];
    ptxgen_status status = layer_require_part(files, name, "weight", weight, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_tensor *w = *weight;
    if (!is_of_codes(w->dtype) || w->ndim != 2 || w->shape[0] > INT32_MAX ||
        w->shape[1] > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s; expected a matrix of I8, F8_E4M3 or F8_E5M2", w->name,
                           ptxgen_dtype_find(w->dtype)->name, tensor_shape_text(w).text);
    if (is_float(w->dtype) && (status = check_numbers(w, err)) != PTXGEN_OK)
        return status;
    const ptxgen_tensor *zero = layer_part(files, name, "weight_zero_point");
    l->parts[PTXGEN_LAYER_ZERO] = zero;
    return layer_check_zeros(zero, "w8a8's weights are symmetric", err);
}

/* ---- scales ---- */

static uint64_t blocks_of(uint64_t size)
{
    return (size + BLOCK - 1) / BLOCK;
}

static bool has_blocks(const ptxgen_tensor *scales, const ptxgen_tensor *w)
{
    return scales->ndim == 2 && scales->shape[0] == blocks_of(w->shape[0]) &&
           scales->shape[1] == blocks_of(w->shape[1]);
}

/* Scales of blocks, by DeepSeek's name or by that of others where they can be no other scales. */
static ptxgen_status find_block_scales(const ptxgen_files *files, const char *name, ptxgen_layer *l,
                                       ptxgen_error *err)
{
    const ptxgen_tensor *w = l->parts[PTXGEN_LAYER_WEIGHT];
    const ptxgen_tensor *own = layer_part(files, name, "weight_scale_inv");
    const ptxgen_tensor *scales = own ? own : layer_part(files, name, "weight_scale");
    uint64_t count = scales ? tensor_count(scales) : 0;
    if (!own && (!scales || count == 1 || count == w->shape[0] || !has_blocks(scales, w)))
        return PTXGEN_OK;
    if (!is_float(w->dtype))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s has scales of blocks, %s, but is %s; such weights are F8_E4M3 or "
                           "F8_E5M2",
                           w->name, scales->name, ptxgen_dtype_find(w->dtype)->name);
    if (!has_blocks(scales, w))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s; expected [%llu, %llu], a scale for each 128 by 128 of %s",
                           scales->name, tensor_shape_text(scales).text,
                           (unsigned long long)blocks_of(w->shape[0]),
                           (unsigned long long)blocks_of(w->shape[1]), w->name);
    l->form = PTXGEN_LAYER_BLOCKS;
    l->parts[PTXGEN_LAYER_SCALE] = scales;
    return tensor_check_floats(scales, count, false, err);
}

/* Of given scales, whose codes are signed; a type without a sign has others. */
static ptxgen_status find_input_zero(const ptxgen_files *files, const char *name, ptxgen_layer *l,
                                     ptxgen_error *err)
{
    const ptxgen_tensor *t = layer_part(files, name, "input_zero_point");
    l->parts[PTXGEN_LAYER_INPUT_ZERO] = t;
    if (!t || !l->parts[PTXGEN_LAYER_INPUT_SCALE])
        return layer_check_zeros(t, "without an input_scale there is none", err);
    bool is_number = tensor_is_number(t->dtype) && tensor_count(t) == 1;
    double zero = is_number ? tensor_number(t, 0) : NAN;
    bool is_unsigned = t->dtype == PTXGEN_DTYPE_U8 || t->dtype == PTXGEN_DTYPE_U16 ||
                       t->dtype == PTXGEN_DTYPE_U32 || t->dtype == PTXGEN_DTYPE_U64;
    if (!(zero >= -128 && zero <= 127) || zero != (int)zero || (is_unsigned && zero != 0))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s%s%.9g; expected one signed integer in -128 ... 127",
                           t->name, ptxgen_dtype_find(t->dtype)->name, tensor_shape_text(t).text,
                           is_number ? ", " : ", first ", zero);
    return PTXGEN_OK;
}

static ptxgen_status find_scales(const ptxgen_files *files, const char *name, ptxgen_layer *l,
                                 ptxgen_error *err)
{
    const uint64_t n = l->parts[PTXGEN_LAYER_WEIGHT]->shape[0];
    const struct layer_floats of_weight = {"weight_scale", n, .one = true, .required = true};
    const struct layer_floats of_input = {"input_scale", 1, .one = true};
    const ptxgen_tensor **scale = &l->parts[PTXGEN_LAYER_SCALE];
    const ptxgen_tensor **input = &l->parts[PTXGEN_LAYER_INPUT_SCALE];
    ptxgen_status status = find_block_scales(files, name, l, err);
    if (status == PTXGEN_OK && l->form != PTXGEN_LAYER_BLOCKS)
        status = layer_find_floats(files, name, &of_weight, scale, err);
    if (status == PTXGEN_OK)
        status = layer_check_scales(*scale, false, err);
    if (status == PTXGEN_OK)
        status = layer_find_floats(files, name, &of_input, input, err);
    if (status == PTXGEN_OK)
        status = layer_check_scales(*input, true, err);
    return status == PTXGEN_OK ? find_input_zero(files, name, l, err) : status;
}

static ptxgen_status find(const ptxgen_files *files, const char *name,
                          const ptxgen_layer_choice *choice, ptxgen_layer *l, ptxgen_error *err)
{
    (void)choice;
    l->form = PTXGEN_LAYER_ROWS;
    ptxgen_status status = find_weight(files, name, l, err);
    if (status == PTXGEN_OK)
        status = find_scales(files, name, l, err);
    if (status != PTXGEN_OK)
        return status;
    const struct layer_floats bias = {"bias", l->parts[PTXGEN_LAYER_WEIGHT]->shape[0], .one = true};
    return layer_find_floats(files, name, &bias, &l->parts[PTXGEN_LAYER_BIAS], err);
}

const struct layer_kind_row layer_w8 = {has, find, recognise, PTXGEN_LAYER_ONE_FORM,
                                        PTXGEN_LAYER_ONE_FORM};
