/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of sparse24 from a safetensors file: a weight in any form (sparse24_layer.h), and where
 * they are there
 *
 *     PREFIX.bias           floats [M]
 *     PREFIX.weight_scale   of I8: floats [M], or one for all; ones otherwise
 *     an input              floats [N, K], or I8 for a weight of I8
 */
#include "sparse24.h"

#include "../float_tensor.h"
#include "sparse24_layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct file_layer {
    struct sparse24_layer weight;
    const struct named_tensor *bias, *scale, *input;
    uint64_t input_rows;
};

/* The part as `count` floats, or one where it may be; NULL without it. */
static ptxgen_status find_floats(const struct tensor_store *store, const char *layer,
                                 const char *part, uint64_t count, bool one,
                                 const struct named_tensor **to, ptxgen_error *err)
{
    char name[SPARSE24_NAME];
    snprintf(name, sizeof name, "%s.%s", layer, part);
    *to = tensor_list_find(tensor_store_tensors(store), name);
    return *to ? tensor_check_floats(*to, count, one, err) : PTXGEN_OK;
}

static ptxgen_status find_input(const struct tensor_store *store, const char *name,
                                const ptxgen_sparse24_spec *s, struct file_layer *l,
                                ptxgen_error *err)
{
    if (s->type != PTXGEN_SPARSE24_S8)
        return tensor_store_require_floats(store, name, s->k, &l->input_rows, &l->input, err);
    ptxgen_status status = tensor_store_require(store, name, &l->input, err);
    if (status != PTXGEN_OK)
        return status;
    if (l->input->dtype != TENSOR_I8 || l->input->ndim != 2 || l->input->shape[1] != s->k)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is %s %s; expected I8 [N, %u]",
                           name, tensor_dtype_info(l->input->dtype)->name,
                           tensor_shape_text(l->input).text, s->k);
    l->input_rows = l->input->shape[0];
    return PTXGEN_OK;
}

static ptxgen_status find_layer(const struct tensor_store *store, const struct sparse24_options *o,
                                ptxgen_sparse24_spec *s, struct file_layer *l, ptxgen_error *err)
{
    ptxgen_status status = sparse24_layer_find(store, o->layer, -1, &l->weight, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_sparse24_shape *shape = &l->weight.shape;
    if (shape->m > INT32_MAX || shape->k > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s is %zu by %zu", o->layer, shape->m,
                           shape->k);
    s->m = (uint32_t)shape->m;
    s->k = (uint32_t)shape->k;
    s->type = (uint8_t)shape->type;
    if (s->type != PTXGEN_SPARSE24_S8)
        s->y_type = s->type;
    status = find_floats(store, o->layer, "bias", s->m, false, &l->bias, err);
    if (status == PTXGEN_OK && l->bias)
        s->bias = 1;
    if (status == PTXGEN_OK)
        status = find_floats(store, o->layer, "weight_scale", s->m, true, &l->scale, err);
    if (status == PTXGEN_OK && o->input)
        status = find_input(store, o->input, s, l, err);
    if (status == PTXGEN_OK && l->input && (!l->input_rows || l->input_rows > UINT32_MAX))
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s has %llu rows", o->input,
                             (unsigned long long)l->input_rows);
    return status;
}

/* ---- filling ---- */

static ptxgen_status read_weight(struct sparse24_problem *p, const struct sparse24_layer *l,
                                 ptxgen_error *err)
{
    if (l->form == SPARSE24_DENSE)
        return ptxgen_sparse24_compress(&l->shape, l->values, p->values, PTXGEN_SPARSE24_BYTES,
                                        p->metadata, err);
    ptxgen_sparse24_form form = (ptxgen_sparse24_form)l->form;
    ptxgen_status status = ptxgen_sparse24_validate(&l->shape, l->values, form, l->metadata, err);
    if (status != PTXGEN_OK)
        return status;
    memcpy(p->values.data, l->values.data, p->values.bytes);
    return ptxgen_sparse24_convert(&l->shape, form, l->metadata, PTXGEN_SPARSE24_BYTES, p->metadata,
                                   err);
}

static void read_floats(const struct named_tensor *from, ptxgen_element type, size_t count,
                        struct buffer *to)
{
    for (size_t i = 0; i < count; i++)
        ptxgen_element_store(type, to->host, i,
                             from ? tensor_float(from, tensor_count(from) == 1 ? 0 : i) : 1);
}

/* Rows beyond the file's repeat them from the first on. */
static void read_input(struct sparse24_problem *p, const struct file_layer *l)
{
    const ptxgen_sparse24_spec *s = &p->plan.spec;
    for (size_t n = 0; n < p->n; n++) {
        size_t row = n % l->input_rows * s->k, to = n * p->x_stride;
        if (s->type == PTXGEN_SPARSE24_S8)
            memcpy(p->x.host + to, (const char *)l->input->data + row, s->k);
        else
            for (size_t i = 0; i < s->k; i++)
                ptxgen_element_store((ptxgen_element)s->y_type, p->x.host, to + i,
                                     tensor_float(l->input, row + i));
    }
}

static ptxgen_status fill(struct sparse24_problem *p, const struct file_layer *l, uint64_t seed,
                          ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &p->plan.spec;
    struct random r = random_start(seed);
    ptxgen_status status = sparse24_fill(p, &r, err);
    if (status == PTXGEN_OK)
        status = read_weight(p, &l->weight, err);
    if (status != PTXGEN_OK)
        return status;
    if (l->bias)
        read_floats(l->bias, (ptxgen_element)s->y_type, s->m, &p->bias);
    if (s->type == PTXGEN_SPARSE24_S8)
        read_floats(l->scale, PTXGEN_F32, s->m, &p->w_scale);
    if (l->input)
        read_input(p, l);
    return sparse24_repack(p, err);
}

static ptxgen_status read_from(const struct tensor_store *store, struct sparse24_problem *p,
                               const struct sparse24_options *o, const struct run_request *request,
                               struct device *device, ptxgen_error *err)
{
    struct sparse24_options options = *o;
    const struct sparse24_layout packed = {0};
    struct file_layer l = {.input = NULL};
    ptxgen_status status = find_layer(store, o, &options.spec, &l, err);
    if (status != PTXGEN_OK)
        return status;
    uint32_t n = l.input && !request->m_given ? (uint32_t)l.input_rows : request->m;
    status = sparse24_allocate(p, &options, n, &packed, device, err);
    if (status == PTXGEN_OK && (status = fill(p, &l, request->seed, err)) != PTXGEN_OK)
        sparse24_release(p);
    return status;
}

ptxgen_status sparse24_read(struct sparse24_problem *p, const struct sparse24_options *o,
                            const struct run_request *request, struct device *device,
                            ptxgen_error *err)
{
    struct tensor_store *store;
    ptxgen_status status = tensor_store_open(o->safetensors, &store, err);
    if (status != PTXGEN_OK)
        return status;
    status = read_from(store, p, o, request, device, err);
    tensor_store_close(store);
    return status;
}
