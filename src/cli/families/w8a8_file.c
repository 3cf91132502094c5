/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of w8a8 from a safetensors file, named as compressed-tensors' int-quantized and
 * float-quantized formats do, ModelOpt for fp8, and DeepSeek for fp8 with scales of blocks:
 *
 *     weight        I8 [N, K], or F8_E4M3 or F8_E5M2, where codes of x are e4m3
 *     weight_scale  floats, N of them, or one for all; or of F8 [⌈N / 128⌉, ⌈K / 128⌉]
 *     weight_scale_inv    DeepSeek's name of the latter
 *     weight_zero_point   optional, all zeros
 *     input_scale, input_zero_point   optional: static scales of the activations, one for all
 *     bias          optional, [N]
 */
#include "../../harness/w8a8.h"

#include "files.h"

#include <math.h>

struct layer {
    const ptxgen_tensor *weight, *weight_scale, *weight_zero, *input_scale, *input_zero, *bias;
};

/* ---- finding ---- */

/* Of given scales, whose codes are signed; a type without a sign has others. */
static ptxgen_status find_input_zero(const ptxgen_files *store, const char *layer,
                                     ptxgen_w8a8_spec *spec, struct layer *l, ptxgen_error *err)
{
    const ptxgen_tensor *t = l->input_zero = layer_part(store, layer, "input_zero_point");
    if (!t && l->input_scale && spec->asymmetric)
        return layer_require_part(store, layer, "input_zero_point", &t, err);
    if (!t || !l->input_scale)
        return layer_check_zeros(t, "without an input_scale there is none", err);
    bool is_number = tensor_is_number(t->dtype) && tensor_count(t) == 1;
    double zero = is_number ? tensor_number(t, 0) : NAN;
    bool is_unsigned = t->dtype == PTXGEN_DTYPE_U8 || t->dtype == PTXGEN_DTYPE_U16 ||
                       t->dtype == PTXGEN_DTYPE_U32 || t->dtype == PTXGEN_DTYPE_U64;
    if (!(zero >= -128 && zero <= 127) || zero != rint(zero) || (is_unsigned && zero != 0))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s%s%.9g; expected one signed integer in -128 ... 127",
                           t->name, ptxgen_dtype_find(t->dtype)->name, tensor_shape_text(t).text,
                           is_number ? ", " : ", first ", zero);
    if (zero != 0)
        spec->asymmetric = 1;
    return PTXGEN_OK;
}

static bool is_float(ptxgen_dtype dtype)
{
    return dtype == PTXGEN_DTYPE_F8_E4M3 || dtype == PTXGEN_DTYPE_F8_E5M2;
}

static bool is_of_codes(ptxgen_dtype dtype)
{
    return dtype == PTXGEN_DTYPE_I8 || is_float(dtype);
}

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

/* The type of the codes is that of the weights, or with F8_E5M2 e4m3. */
static ptxgen_status find_codes(const ptxgen_tensor *w, ptxgen_w8a8_spec *spec, ptxgen_error *err)
{
    bool floats = is_float(w->dtype);
    if (!floats && spec->codes == PTXGEN_W8A8_E4M3)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is I8; with --codes e4m3 weights are F8_E4M3 or F8_E5M2", w->name);
    if (floats && (spec->q_min || spec->q_max))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s; a range as of --codes is for I8", w->name,
                           ptxgen_dtype_find(w->dtype)->name);
    if (!floats)
        return PTXGEN_OK;
    spec->codes = PTXGEN_W8A8_E4M3;
    spec->w_codes = w->dtype == PTXGEN_DTYPE_F8_E5M2 ? PTXGEN_W8A8_E5M2 : 0;
    return check_numbers(w, err);
}

static ptxgen_status find_weight(const ptxgen_files *store, const char *layer,
                                 ptxgen_w8a8_spec *spec, struct layer *l, ptxgen_error *err)
{
    ptxgen_status status = layer_require_part(store, layer, "weight", &l->weight, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_tensor *w = l->weight;
    if (!is_of_codes(w->dtype) || w->ndim != 2 || w->shape[0] > INT32_MAX ||
        w->shape[1] > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s; expected a matrix of I8, F8_E4M3 or F8_E5M2", w->name,
                           ptxgen_dtype_find(w->dtype)->name, tensor_shape_text(w).text);
    if (spec->epilogue)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "a file's layer is one matrix; with --swiglu weights are random");
    if ((status = find_codes(w, spec, err)) != PTXGEN_OK)
        return status;
    spec->n = (uint32_t)w->shape[0];
    spec->k = (uint32_t)w->shape[1];
    l->weight_zero = layer_part(store, layer, "weight_zero_point");
    return layer_check_zeros(l->weight_zero, "w8a8's weights are symmetric", err);
}

static uint64_t blocks_of(uint32_t size)
{
    return ((uint64_t)size + PTXGEN_W8A8_GROUP - 1) / PTXGEN_W8A8_GROUP;
}

static bool has_blocks(const ptxgen_tensor *scales, const ptxgen_w8a8_spec *spec)
{
    return scales->ndim == 2 && (uint64_t)scales->shape[0] == blocks_of(spec->n) &&
           (uint64_t)scales->shape[1] == blocks_of(spec->k);
}

/* Scales of blocks, by DeepSeek's name or by that of others where they can be no other scales. */
static ptxgen_status find_block_scales(const ptxgen_files *store, const char *layer,
                                       ptxgen_w8a8_spec *spec, struct layer *l, ptxgen_error *err)
{
    const ptxgen_tensor *own = layer_part(store, layer, "weight_scale_inv");
    const ptxgen_tensor *scales = own ? own : layer_part(store, layer, "weight_scale");
    uint64_t count = scales ? tensor_count(scales) : 0;
    if (!own && (!scales || count == 1 || count == spec->n || !has_blocks(scales, spec)))
        return PTXGEN_OK;
    if (!is_float(l->weight->dtype))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s has scales of blocks, %s, but is %s; such weights are F8_E4M3 or "
                           "F8_E5M2",
                           l->weight->name, scales->name,
                           ptxgen_dtype_find(l->weight->dtype)->name);
    if (!has_blocks(scales, spec))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s; expected [%llu, %llu], a scale for each 128 by 128 of %s",
                           scales->name, tensor_shape_text(scales).text,
                           (unsigned long long)blocks_of(spec->n),
                           (unsigned long long)blocks_of(spec->k), l->weight->name);
    spec->group = PTXGEN_W8A8_GROUP;
    const struct layer_floats blocks = {own ? "weight_scale_inv" : "weight_scale", count,
                                        .required = true};
    return layer_find_floats(store, layer, &blocks, &l->weight_scale, err);
}

static ptxgen_status find_scales(const ptxgen_files *store, const char *layer,
                                 ptxgen_w8a8_spec *spec, struct layer *l, ptxgen_error *err)
{
    const struct layer_floats of_weight = {"weight_scale", spec->n, .one = true, .required = true};
    const struct layer_floats of_input = {"input_scale", 1, .one = true};
    ptxgen_status status = find_block_scales(store, layer, spec, l, err);
    if (status == PTXGEN_OK && !spec->group)
        status = layer_find_floats(store, layer, &of_weight, &l->weight_scale, err);
    if (status == PTXGEN_OK)
        status = layer_check_scales(l->weight_scale, false, err);
    if (status == PTXGEN_OK)
        status = layer_find_floats(store, layer, &of_input, &l->input_scale, err);
    if (status == PTXGEN_OK)
        status = layer_check_scales(l->input_scale, true, err);
    if (status == PTXGEN_OK && l->input_scale)
        spec->scales = PTXGEN_W8A8_TENSOR;
    return status == PTXGEN_OK ? find_input_zero(store, layer, spec, l, err) : status;
}

static ptxgen_status find(const ptxgen_files *store, struct family_options *o, void *sources,
                          struct file_rows *rows, ptxgen_error *err)
{
    ptxgen_w8a8_spec *spec = option_spec(o);
    struct layer *l = sources;
    const char *layer = o->names.layer;
    ptxgen_status status = find_weight(store, layer, spec, l, err);
    if (status == PTXGEN_OK)
        status = find_scales(store, layer, spec, l, err);
    if (status == PTXGEN_OK)
        status = layer_find_floats(
            store, layer,
            &(struct layer_floats){"bias", spec->n, .one = true, .required = spec->bias}, &l->bias,
            err);
    if (status == PTXGEN_OK && l->bias)
        spec->bias = 1;
    if (!spec->w_stride)
        spec->w_stride = ptxgen_w8a8_stride(spec->k);
    return status == PTXGEN_OK
               ? file_rows_find(store, o, spec->k, spec->n, spec->residual, rows, err)
               : status;
}

static void warn(const ptxgen_files *store, const struct family_options *o, const void *sources,
                 const struct file_rows *rows)
{
    const struct layer *l = sources;
    const ptxgen_tensor *const used[] = {l->weight,      l->weight_scale, l->weight_zero,
                                         l->input_scale, l->input_zero,   l->bias,
                                         rows->input,    rows->expect};
    layer_warn_of_unused(store, o->names.layer, used, sizeof used / sizeof *used);
}

static ptxgen_status take(struct problem *p, const void *sources, const struct file_rows *rows,
                          ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = p->plan;
    const struct layer *l = sources;
    (void)rows, (void)err;
    ptxgen_w8a8_pack(s->n, s->k, l->weight->data, s->w_stride, (int8_t *)p->buffers[W8A8_AT_W].host,
                     NULL);
    w8a8_sum_rows(p);
    take_tensor(p, W8A8_AT_W_SCALE, l->weight_scale);
    take_tensor(p, W8A8_AT_BIAS, l->bias);
    take_tensor(p, W8A8_AT_X_SCALE, l->input_scale);
    take_tensor(p, W8A8_AT_X_ZERO, l->input_zero);
    return PTXGEN_OK;
}

bool w8a8_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                    struct family_options *o, struct recognised_names *names)
{
    o->names.layer = names->layer;
    return is_of_codes(weights->dtype) && weights->ndim == 2 &&
           layer_split(weights->name, "weight", names->layer, sizeof names->layer) &&
           (layer_part(files, names->layer, "weight_scale") ||
            layer_part(files, names->layer, "weight_scale_inv"));
}

const struct family_file w8a8_file = {PTXGEN_FILES_SAFETENSORS, sizeof(struct layer), find, warn,
                                      take};
