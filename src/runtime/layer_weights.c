/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a layer as the families have them: views, of which nothing is copied. */
#include <ptxgen/linear.h>

#include <string.h>

/* What an array of the layer has to be, beside its name. */
static ptxgen_status refuse_form(const char *what, const ptxgen_layer *layer, ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "%s: a layer of kind %d and form %d is none", what, (int)layer->kind,
                       (int)layer->form);
}

/* ---- 4 bits ---- */

static bool find_w4_dtype(ptxgen_dtype dtype, ptxgen_w4_dtype *to)
{
    switch (dtype) {
    case PTXGEN_DTYPE_F32: *to = PTXGEN_W4_F32; return true;
    case PTXGEN_DTYPE_F16: *to = PTXGEN_W4_F16; return true;
    case PTXGEN_DTYPE_BF16: *to = PTXGEN_W4_BF16; return true;
    case PTXGEN_DTYPE_I32:
    case PTXGEN_DTYPE_U32: *to = PTXGEN_W4_I32; return true;
    case PTXGEN_DTYPE_I64: *to = PTXGEN_W4_I64; return true;
    case PTXGEN_DTYPE_I8: *to = PTXGEN_W4_I8; return true;
    default: return false;
    }
}

static ptxgen_status take(const ptxgen_tensor *from, ptxgen_w4_tensor *to, ptxgen_error *err)
{
    ptxgen_w4_dtype dtype;
    *to = (ptxgen_w4_tensor){.data = NULL};
    if (!from)
        return PTXGEN_OK;
    if (find_w4_dtype(from->dtype, &dtype) && (from->ndim == 1 || from->ndim == 2)) {
        *to = (ptxgen_w4_tensor){
            .data = (void *)(uintptr_t)from->data,
            .dtype = dtype,
            .shape = {(size_t)from->shape[0], from->ndim == 2 ? (size_t)from->shape[1] : 1}};
        if (ptxgen_w4_tensor_bytes(to) == from->bytes)
            return PTXGEN_OK;
    }
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "%s: %u dimensions of dtype %d, in %zu bytes, are no tensor of a 4-bit "
                       "layer",
                       from->name, from->ndim, (int)from->dtype, from->bytes);
}

ptxgen_status ptxgen_w4_from_layer(const ptxgen_layer *layer, ptxgen_w4_checkpoint *c,
                                   ptxgen_error *err)
{
    if (!layer || !c)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_w4_from_layer: layer and checkpoint must be given");
    if (layer->kind != PTXGEN_LAYER_W4 || layer->form < PTXGEN_LAYER_GPTQ ||
        layer->form > PTXGEN_LAYER_MARLIN)
        return refuse_form("a checkpoint in 4 bits", layer, err);
    *c = (ptxgen_w4_checkpoint){.format = (ptxgen_w4_format)(layer->form - PTXGEN_LAYER_GPTQ),
                                .group_size = (ptrdiff_t)layer->group_size};
    const struct {
        ptxgen_layer_part part;
        ptxgen_w4_tensor *to;
    } tensors[] = {{PTXGEN_LAYER_WEIGHT, &c->weights},
                   {PTXGEN_LAYER_SCALE, &c->scales},
                   {PTXGEN_LAYER_ZERO, &c->zeros},
                   {PTXGEN_LAYER_ORDER, &c->g_idx},
                   {PTXGEN_LAYER_SHAPE, &c->shape}};
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < sizeof tensors / sizeof *tensors; i++)
        status = take(layer->parts[tensors[i].part], tensors[i].to, err);
    return status;
}

/* ---- packed ---- */

static ptxgen_status read_shape(const ptxgen_tensor *shape, ptxgen_marlin_spec *spec,
                                ptxgen_error *err)
{
    int64_t sizes[3];
    if (!shape || shape->dtype != PTXGEN_DTYPE_I64 || shape->bytes != sizeof sizes)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "a packed layer: its shape is not three numbers of I64");
    memcpy(sizes, shape->data, sizeof sizes);
    for (int i = 0; i < 3; i++)
        if (sizes[i] < (i < 2 ? 1 : -1) || sizes[i] > INT32_MAX)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s has %lld", shape->name,
                               (long long)sizes[i]);
    spec->k = (uint32_t)sizes[0];
    spec->n = (uint32_t)sizes[1];
    spec->group_size = (int32_t)sizes[2];
    return PTXGEN_OK;
}

/* A tensor of the size that the layout makes it. */
static ptxgen_status borrow(const ptxgen_tensor *from, size_t bytes, void **data, ptxgen_error *err)
{
    *data = from ? (void *)(uintptr_t)from->data : NULL;
    if (from && from->bytes != bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "%s is of %zu bytes, but its layer needs %zu", from->name,
                           (size_t)from->bytes, bytes);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_marlin_packed_from_layer(const ptxgen_layer *layer, ptxgen_marlin_spec *spec,
                                              ptxgen_marlin_packed *packed, ptxgen_error *err)
{
    if (!layer || !spec || !packed)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_marlin_packed_from_layer: layer, spec and packed must be given");
    if (layer->kind != PTXGEN_LAYER_W4 || layer->form != PTXGEN_LAYER_PACKED)
        return refuse_form("a packed layer", layer, err);
    const ptxgen_tensor *const *parts = layer->parts;
    if (!parts[PTXGEN_LAYER_WEIGHT] || !parts[PTXGEN_LAYER_SCALE])
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "a packed layer has codes and scales");
    ptxgen_status status = read_shape(parts[PTXGEN_LAYER_SHAPE], spec, err);
    if (status != PTXGEN_OK)
        return status;
    spec->type = parts[PTXGEN_LAYER_SCALE]->dtype == PTXGEN_DTYPE_BF16 ? PTXGEN_BF16 : PTXGEN_F16;
    spec->zeros = parts[PTXGEN_LAYER_ZERO] != NULL;
    spec->act_order = parts[PTXGEN_LAYER_ORDER] != NULL;
    status = ptxgen_marlin_packed_layout(spec, packed, err);
    void *order = NULL;
    if (status == PTXGEN_OK)
        status = borrow(parts[PTXGEN_LAYER_WEIGHT], packed->codes_bytes, &packed->codes, err);
    if (status == PTXGEN_OK)
        status = borrow(parts[PTXGEN_LAYER_SCALE], packed->scales_bytes, &packed->scales, err);
    if (status == PTXGEN_OK)
        status = borrow(parts[PTXGEN_LAYER_ZERO], packed->zeros_bytes, &packed->zeros, err);
    if (status == PTXGEN_OK)
        status = borrow(parts[PTXGEN_LAYER_ORDER], packed->order_bytes, &order, err);
    packed->order = order;
    return status;
}

/* ---- 2:4 ---- */

static bool find_sparse24_type(ptxgen_dtype dtype, ptxgen_sparse24_type *to)
{
    switch (dtype) {
    case PTXGEN_DTYPE_F32: *to = PTXGEN_SPARSE24_F32; return true;
    case PTXGEN_DTYPE_F16: *to = PTXGEN_SPARSE24_F16; return true;
    case PTXGEN_DTYPE_BF16: *to = PTXGEN_SPARSE24_BF16; return true;
    case PTXGEN_DTYPE_I8: *to = PTXGEN_SPARSE24_S8; return true;
    default: return false;
    }
}

ptxgen_status ptxgen_sparse24_from_layer(const ptxgen_layer *layer,
                                         ptxgen_sparse24_weights *weights, ptxgen_error *err)
{
    if (!layer || !weights)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_sparse24_from_layer: layer and weights must be given");
    const ptxgen_tensor *values = layer->parts[PTXGEN_LAYER_WEIGHT];
    const ptxgen_tensor *metadata = layer->parts[PTXGEN_LAYER_METADATA];
    const bool dense = layer->form == PTXGEN_LAYER_DENSE;
    *weights = (ptxgen_sparse24_weights){.x_scale = 0};
    if (layer->kind != PTXGEN_LAYER_SPARSE24 || layer->form < PTXGEN_LAYER_BYTES ||
        layer->form > PTXGEN_LAYER_DENSE || !values || values->ndim != 2 || !metadata != dense ||
        !find_sparse24_type(values->dtype, &weights->shape.type))
        return refuse_form("a 2:4 sparse weight", layer, err);
    weights->shape.n = (size_t)values->shape[0];
    weights->shape.k = (size_t)values->shape[1] * (dense ? 1 : 2);
    if (dense) {
        weights->dense = (ptxgen_const_span){values->data, values->bytes};
        return PTXGEN_OK;
    }
    weights->values = (ptxgen_const_span){values->data, values->bytes};
    weights->metadata = (ptxgen_const_span){metadata->data, metadata->bytes};
    weights->form = (ptxgen_sparse24_form)(layer->form - PTXGEN_LAYER_BYTES);
    return PTXGEN_OK;
}
