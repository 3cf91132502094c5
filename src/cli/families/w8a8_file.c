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

#include <stdio.h>
#include <string.h>

struct layer {
    const struct named_tensor *weight, *weight_scale, *input_scale, *input_zero, *bias, *input;
};

/* ---- finding ---- */

static const struct named_tensor *find(const struct tensor_store *store, const char *layer,
                                       const char *part, char name[1024])
{
    snprintf(name, 1024, "%s%s%s", layer ? layer : "", layer && *layer ? "." : "", part);
    return tensor_list_find(tensor_store_tensors(store), name);
}

/* The part as `count` floats or one; without it NULL, or an error where it is required. */
static ptxgen_status find_floats(const struct tensor_store *store, const char *layer,
                                 const char *part, bool required, uint64_t count,
                                 const struct named_tensor **to, ptxgen_error *err)
{
    char name[1024];
    *to = find(store, layer, part, name);
    if (!*to)
        return required ? tensor_store_require(store, name, to, err) : PTXGEN_OK;
    return tensor_check_floats(*to, count, true, err);
}

static int64_t integer_at(const struct named_tensor *t, size_t i)
{
    int32_t word;
    int64_t wide;
    switch (t->dtype) {
    case TENSOR_I8: return ((const int8_t *)t->data)[i];
    case TENSOR_I32: memcpy(&word, (const char *)t->data + 4 * i, 4); return word;
    case TENSOR_I64: memcpy(&wide, (const char *)t->data + 8 * i, 8); return wide;
    default: return INT64_MAX;
    }
}

/* A zero point of the weights other than 0 is another family's business. */
static ptxgen_status check_weight_zeros(const struct tensor_store *store, const char *layer,
                                        ptxgen_error *err)
{
    char name[1024];
    const struct named_tensor *t = find(store, layer, "weight_zero_point", name);
    for (size_t i = 0; t && i < tensor_count(t); i++)
        if (integer_at(t, i))
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                               "%s[%zu] is not 0; w8a8's weights are symmetric", name, i);
    return PTXGEN_OK;
}

static ptxgen_status find_input_zero(const struct tensor_store *store, const char *layer,
                                     ptxgen_w8a8_spec *spec, struct layer *l, ptxgen_error *err)
{
    char name[1024];
    l->input_zero = find(store, layer, "input_zero_point", name);
    if (!l->input_zero || !l->input_scale)
        return PTXGEN_OK;
    int64_t zero = tensor_count(l->input_zero) == 1 ? integer_at(l->input_zero, 0) : INT64_MAX;
    if (zero < -128 || zero > 127)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s; expected one integer in -128 ... 127", name,
                           tensor_dtype_info(l->input_zero->dtype)->name,
                           tensor_shape_text(l->input_zero).text);
    if (zero)
        spec->asymmetric = 1;
    return PTXGEN_OK;
}

static ptxgen_status find_weight(const struct tensor_store *store, const char *layer,
                                 ptxgen_w8a8_spec *spec, struct layer *l, ptxgen_error *err)
{
    char name[1024];
    l->weight = find(store, layer, "weight", name);
    if (!l->weight)
        return tensor_store_require(store, name, &l->weight, err);
    const struct named_tensor *w = l->weight;
    if (w->dtype != TENSOR_I8 || w->ndim != 2 || w->shape[0] > INT32_MAX || w->shape[1] > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s; expected a matrix of I8", name,
                           tensor_dtype_info(w->dtype)->name, tensor_shape_text(w).text);
    spec->n = (uint32_t)w->shape[0];
    spec->k = (uint32_t)w->shape[1];
    return check_weight_zeros(store, layer, err);
}

static ptxgen_status find_layer(const struct tensor_store *store, const struct w8a8_options *o,
                                ptxgen_w8a8_spec *spec, struct layer *l, uint64_t *input_rows,
                                ptxgen_error *err)
{
    ptxgen_status status = find_weight(store, o->layer, spec, l, err);
    if (status == PTXGEN_OK)
        status = find_floats(store, o->layer, "weight_scale", true, spec->n, &l->weight_scale, err);
    if (status == PTXGEN_OK)
        status = find_floats(store, o->layer, "input_scale", false, 1, &l->input_scale, err);
    if (status == PTXGEN_OK && l->input_scale)
        spec->scales = PTXGEN_W8A8_TENSOR;
    if (status == PTXGEN_OK)
        status = find_input_zero(store, o->layer, spec, l, err);
    if (status == PTXGEN_OK)
        status = find_floats(store, o->layer, "bias", false, spec->n, &l->bias, err);
    if (status == PTXGEN_OK && l->bias)
        spec->bias = 1;
    if (status == PTXGEN_OK && o->input)
        status = tensor_store_require_floats(store, o->input, spec->k, input_rows, &l->input, err);
    return status;
}

/* ---- filling ---- */

static void fill_work(const ptxgen_w8a8_spec *s, const struct named_tensor *from, struct buffer *to)
{
    ptxgen_element work = ptxgen_w8a8_work_type(s);
    for (size_t i = 0; from && i < to->bytes / ptxgen_element_size(work); i++)
        ptxgen_element_store(work, to->host, i,
                             tensor_float(from, tensor_count(from) == 1 ? 0 : i));
}

/* Tokens beyond the file's repeat them from the first on. */
static void fill(struct w8a8_problem *p, const struct layer *l, uint64_t input_rows, uint64_t seed)
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
        *(int32_t *)(void *)p->x_zero.host = (int32_t)integer_at(l->input_zero, 0);
    for (size_t m = 0; l->input && m < p->m; m++)
        for (size_t i = 0; i < s->k; i++)
            ptxgen_element_store((ptxgen_element)s->x_type, p->x.host, m * p->x_stride + i,
                                 tensor_float(l->input, m % input_rows * s->k + i));
}

static ptxgen_status read_from(const struct tensor_store *store, struct w8a8_problem *p,
                               const struct w8a8_options *o, const struct run_request *request,
                               struct device *device, ptxgen_error *err)
{
    struct w8a8_options options = *o;
    const struct w8a8_layout packed = {0};
    struct layer layer = {.input = NULL};
    uint64_t rows = 0;
    ptxgen_status status = find_layer(store, o, &options.spec, &layer, &rows, err);
    if (status == PTXGEN_OK && layer.input && (!rows || rows > UINT32_MAX))
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s has %llu rows", o->input,
                             (unsigned long long)rows);
    if (status != PTXGEN_OK)
        return status;
    uint32_t m = layer.input && !request->m_given ? (uint32_t)rows : request->m;
    if (!options.spec.w_stride)
        options.spec.w_stride = ptxgen_w8a8_stride(options.spec.k);
    status = w8a8_allocate(p, &options, m, &packed, device, err);
    if (status == PTXGEN_OK)
        fill(p, &layer, rows, request->seed);
    return status;
}

ptxgen_status w8a8_read(struct w8a8_problem *p, const struct w8a8_options *o,
                        const struct run_request *request, struct device *device, ptxgen_error *err)
{
    struct tensor_store *store;
    ptxgen_status status = tensor_store_open(o->safetensors, &store, err);
    if (status != PTXGEN_OK)
        return status;
    status = read_from(store, p, o, request, device, err);
    tensor_store_close(store);
    return status;
}
