/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of w8a8 from a safetensors file, named as compressed-tensors' int-quantized format does:
 *
 *     weight        I8 [N, K]
 *     weight_scale  floats, N of them, or one for all
 *     weight_zero_point   optional, all zeros
 *     input_scale, input_zero_point   optional: static scales of the activations, one for all
 *     bias          optional, [N]
 */
#include "w8a8.h"

#include "../float_tensor.h"
#include "../input_rows.h"
#include "../layer_parts.h"

#include <math.h>

struct layer {
    const struct named_tensor *weight, *weight_scale, *weight_zero, *input_scale, *input_zero,
        *bias, *input, *expect;
    uint64_t input_rows;
};

/* ---- finding ---- */

/* The part as `count` floats or one; without it NULL, or an error where it is required. */
static ptxgen_status find_floats(const struct tensor_store *store, const char *layer,
                                 const char *part, bool required, uint64_t count,
                                 const struct named_tensor **to, ptxgen_error *err)
{
    *to = layer_part(store, layer, part);
    if (*to)
        return tensor_check_floats(*to, count, true, err);
    return required ? layer_require_part(store, layer, part, to, err) : PTXGEN_OK;
}

/* Of given scales, whose codes are signed; a type without a sign has others. */
static ptxgen_status find_input_zero(const struct tensor_store *store, const char *layer,
                                     ptxgen_w8a8_spec *spec, struct layer *l, ptxgen_error *err)
{
    const struct named_tensor *t = l->input_zero = layer_part(store, layer, "input_zero_point");
    if (!t && l->input_scale && spec->asymmetric)
        return layer_require_part(store, layer, "input_zero_point", &t, err);
    if (!t || !l->input_scale)
        return layer_check_zeros(t, "without an input_scale there is none", err);
    bool is_number = tensor_is_number(t->dtype) && tensor_count(t) == 1;
    double zero = is_number ? tensor_number(t, 0) : NAN;
    bool is_unsigned = t->dtype == TENSOR_U8 || t->dtype == TENSOR_U16 || t->dtype == TENSOR_U32 ||
                       t->dtype == TENSOR_U64;
    if (!(zero >= -128 && zero <= 127) || zero != rint(zero) || (is_unsigned && zero != 0))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s%s%.9g; expected one signed integer in -128 ... 127",
                           t->name, tensor_dtype_info(t->dtype)->name, tensor_shape_text(t).text,
                           is_number ? ", " : ", first ", zero);
    if (zero != 0)
        spec->asymmetric = 1;
    return PTXGEN_OK;
}

static ptxgen_status find_weight(const struct tensor_store *store, const char *layer,
                                 ptxgen_w8a8_spec *spec, struct layer *l, ptxgen_error *err)
{
    ptxgen_status status = layer_require_part(store, layer, "weight", &l->weight, err);
    if (status != PTXGEN_OK)
        return status;
    const struct named_tensor *w = l->weight;
    if (w->dtype != TENSOR_I8 || w->ndim != 2 || w->shape[0] > INT32_MAX || w->shape[1] > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s; expected a matrix of I8", w->name,
                           tensor_dtype_info(w->dtype)->name, tensor_shape_text(w).text);
    spec->n = (uint32_t)w->shape[0];
    spec->k = (uint32_t)w->shape[1];
    l->weight_zero = layer_part(store, layer, "weight_zero_point");
    return layer_check_zeros(l->weight_zero, "w8a8's weights are symmetric", err);
}

static ptxgen_status find_scales(const struct tensor_store *store, const char *layer,
                                 ptxgen_w8a8_spec *spec, struct layer *l, ptxgen_error *err)
{
    ptxgen_status status =
        find_floats(store, layer, "weight_scale", true, spec->n, &l->weight_scale, err);
    if (status == PTXGEN_OK)
        status = layer_check_scales(l->weight_scale, false, err);
    if (status == PTXGEN_OK)
        status = find_floats(store, layer, "input_scale", false, 1, &l->input_scale, err);
    if (status == PTXGEN_OK)
        status = layer_check_scales(l->input_scale, true, err);
    if (status == PTXGEN_OK && l->input_scale)
        spec->scales = PTXGEN_W8A8_TENSOR;
    return status == PTXGEN_OK ? find_input_zero(store, layer, spec, l, err) : status;
}

static ptxgen_status find_layer(const struct tensor_store *store, const struct w8a8_options *o,
                                ptxgen_w8a8_spec *spec, struct layer *l, ptxgen_error *err)
{
    ptxgen_status status = find_weight(store, o->layer, spec, l, err);
    if (status == PTXGEN_OK)
        status = find_scales(store, o->layer, spec, l, err);
    if (status == PTXGEN_OK)
        status = find_floats(store, o->layer, "bias", spec->bias, spec->n, &l->bias, err);
    if (status == PTXGEN_OK && l->bias)
        spec->bias = 1;
    if (status == PTXGEN_OK && o->input)
        status =
            tensor_store_require_floats(store, o->input, spec->k, &l->input_rows, &l->input, err);
    if (status == PTXGEN_OK && o->expect)
        status = expected_find(store, o->expect, o->input, spec->n, l->input_rows, &l->expect, err);
    return status;
}

static void warn_of_unused(const struct tensor_store *store, const char *layer,
                           const struct layer *l)
{
    const struct named_tensor *const used[] = {l->weight,      l->weight_scale, l->weight_zero,
                                               l->input_scale, l->input_zero,   l->bias,
                                               l->input,       l->expect};
    layer_warn_of_unused(store, layer, used, sizeof used / sizeof *used);
}

/* ---- filling ---- */

static void fill_work(const ptxgen_w8a8_spec *s, const struct named_tensor *from, struct buffer *to)
{
    ptxgen_element work = ptxgen_w8a8_work_type(s);
    for (size_t i = 0; from && i < to->bytes / ptxgen_element_size(work); i++)
        ptxgen_element_store(work, to->host, i,
                             tensor_float(from, tensor_count(from) == 1 ? 0 : i));
}

static void fill(struct w8a8_problem *p, const struct layer *l, uint64_t seed)
{
    const ptxgen_w8a8_spec *s = &p->plan.spec;
    struct random r = random_start(seed);
    w8a8_fill(p, &r);
    ptxgen_w8a8_pack(s->n, s->k, l->weight->data, s->w_stride, (int8_t *)p->w.host, NULL);
    w8a8_sum_rows(p);
    fill_work(s, l->weight_scale, &p->w_scale);
    fill_work(s, l->bias, &p->bias);
    fill_work(s, l->input_scale, &p->x_scale);
    if (s->scales && s->asymmetric && l->input_zero)
        *(int32_t *)(void *)p->x_zero.host = (int32_t)tensor_number(l->input_zero, 0);
    for (size_t m = 0; l->input && m < p->m; m++)
        for (size_t i = 0; i < s->k; i++)
            ptxgen_element_store((ptxgen_element)s->x_type, p->x.host, m * p->x_stride + i,
                                 tensor_float(l->input, m * s->k + i));
}

static ptxgen_status read_from(const struct tensor_store *store, struct w8a8_problem *p,
                               const struct w8a8_options *o, const struct run_request *request,
                               struct device *device, ptxgen_error *err)
{
    struct w8a8_options options = *o;
    const struct w8a8_layout packed = {0};
    struct layer layer = {.input = NULL};
    uint32_t m = request->m;
    ptxgen_status status = find_layer(store, o, &options.spec, &layer, err);
    if (status == PTXGEN_OK && layer.input)
        status =
            input_rows_choose(request, "m", layer.input, layer.input_rows, UINT32_MAX, &m, err);
    if (status != PTXGEN_OK)
        return status;
    warn_of_unused(store, o->layer, &layer);
    if (!options.spec.w_stride)
        options.spec.w_stride = ptxgen_w8a8_stride(options.spec.k);
    status = w8a8_allocate(p, &options, m, &packed, device, err);
    if (status != PTXGEN_OK)
        return status;
    fill(p, &layer, request->seed);
    status = expected_copy(layer.expect, m, options.spec.n, &p->expected, err);
    if (status != PTXGEN_OK)
        w8a8_release(p);
    return status;
}

ptxgen_status w8a8_read(struct w8a8_problem *p, const struct w8a8_options *o,
                        const struct run_request *request, struct device *device, ptxgen_error *err)
{
    struct tensor_store *store;
    ptxgen_status status = tensor_store_open_as(TENSOR_SAFETENSORS, o->safetensors, &store, err);
    if (status != PTXGEN_OK)
        return status;
    status = read_from(store, p, o, request, device, err);
    tensor_store_close(store);
    return status;
}
