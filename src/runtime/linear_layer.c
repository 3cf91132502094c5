/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of files: their tensors become what the makers of the families take. */
#include "src/runtime/linear_layer.h"

#include <stdlib.h>
#include <string.h>

ptxgen_status linear_refuse_part(const ptxgen_tensor *t, const char *expected, ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "a layer: %s, of dtype %d in %zu bytes, is not %s", t->name, (int)t->dtype,
                       t->bytes, expected);
}

/* ---- numbers ---- */

static bool find_element(ptxgen_dtype dtype, ptxgen_element *type)
{
    switch (dtype) {
    case PTXGEN_DTYPE_F32: *type = PTXGEN_F32; return true;
    case PTXGEN_DTYPE_F16: *type = PTXGEN_F16; return true;
    case PTXGEN_DTYPE_BF16: *type = PTXGEN_BF16; return true;
    default: return false;
    }
}

ptxgen_status linear_read_floats(const ptxgen_tensor *t, size_t count, float **floats,
                                 ptxgen_error *err)
{
    ptxgen_element type;
    *floats = NULL;
    if (!t)
        return PTXGEN_OK;
    size_t size = find_element(t->dtype, &type) ? ptxgen_element_size(type) : 0;
    bool one = size && t->bytes == size;
    if (!size || (!one && t->bytes / size != count) || t->bytes % size)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: %s, of dtype %d in %zu bytes, is not %zu floats, or one",
                           t->name, (int)t->dtype, t->bytes, count);
    *floats = malloc(count * sizeof **floats + 1);
    if (!*floats)
        return linear_no_memory(err);
    for (size_t i = 0; i < count; i++)
        (*floats)[i] = (float)ptxgen_element_load(type, t->data, one ? 0 : i);
    return PTXGEN_OK;
}

double linear_read_number(const ptxgen_tensor *t)
{
    const unsigned char *bytes = t->data;
    ptxgen_element type;
    double value = 0;
    uint64_t word = t->bytes && bytes[t->bytes - 1] >> 7 ? UINT64_MAX : 0;
    if (find_element(t->dtype, &type))
        return ptxgen_element_load(type, t->data, 0);
    for (size_t i = t->bytes; i-- > 0;)
        word = word << 8 | bytes[i];
    if (t->dtype != PTXGEN_DTYPE_F64)
        return (double)(int64_t)word;
    memcpy(&value, &word, sizeof value);
    return value;
}

ptxgen_status linear_check_matrix(const ptxgen_tensor *t, size_t size, const char *expected,
                                  ptxgen_error *err)
{
    bool fits = size && t->ndim == 2 && t->shape[0] <= INT32_MAX && t->shape[1] <= INT32_MAX;
    return fits && t->bytes == t->shape[0] * t->shape[1] * size
               ? PTXGEN_OK
               : linear_refuse_part(t, expected, err);
}

/* ---- 4 bits ---- */

/* Arrays of a layer that is packed already are uploaded as they are. */
static ptxgen_status fill_packed(const struct linear_making *m, const struct linear_file *f,
                                 ptxgen_linear *linear, ptxgen_error *err)
{
    const ptxgen_linear_options *o = m->options;
    ptxgen_marlin_args *args = &linear->args.marlin;
    ptxgen_marlin_packed packed;
    ptxgen_marlin_spec spec = {
        .max_m = (uint32_t)o->max_m, .activation = o->activation, .bias = o->bias != NULL};
    if (f->up)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "a layer: gate and up are packed together, so neither is packed yet");
    ptxgen_status status = ptxgen_marlin_packed_from_layer(f->layer, &spec, &packed, err);
    if (status != PTXGEN_OK)
        return status;
    if (spec.type != o->type)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: type %u of the options is not that of the packed weights, %u",
                           o->type, spec.type);
    uint32_t *order = packed.order ? malloc(packed.order_bytes + 1) : NULL;
    if (packed.order && !order)
        return linear_no_memory(err);
    if (order)
        packed.order = memcpy(order, packed.order, packed.order_bytes);
    linear->k = spec.k;
    linear->n = spec.n;
    status = ptxgen_marlin_check_packed(&spec, &packed, err);
    if (status == PTXGEN_OK)
        status = linear_dispatch(linear, m, &linear_marlin, ptxgen_marlin_family(), &spec, err);
    if (status == PTXGEN_OK)
        status = linear_upload(linear, packed.codes, packed.codes_bytes, &args->codes, err);
    if (status == PTXGEN_OK)
        status = linear_upload(linear, packed.scales, packed.scales_bytes, &args->scales, err);
    if (status == PTXGEN_OK)
        status = linear_upload(linear, packed.zeros, packed.zeros_bytes, &args->zeros, err);
    if (status == PTXGEN_OK)
        status = linear_upload(linear, order, packed.order_bytes, &args->order, err);
    if (status == PTXGEN_OK)
        status = linear_upload_bias(linear, o->bias, (ptxgen_element)o->type, &args->bias, err);
    free(order);
    return status;
}

static ptxgen_status fill_w4(const struct linear_making *m, const struct linear_file *f,
                             ptxgen_linear *linear, ptxgen_error *err)
{
    ptxgen_w4_checkpoint weights, up;
    const struct linear_w4 w = {&weights, f->up ? &up : NULL};
    if (f->layer->form == PTXGEN_LAYER_PACKED)
        return fill_packed(m, f, linear, err);
    ptxgen_status status = ptxgen_w4_from_layer(f->layer, &weights, err);
    if (status == PTXGEN_OK && f->up)
        status = ptxgen_w4_from_layer(f->up, &up, err);
    return status == PTXGEN_OK ? linear_fill_w4(m, &w, linear, err) : status;
}

/* ---- 2:4 ---- */

static ptxgen_status fill_sparse24(const struct linear_making *m, const struct linear_file *f,
                                   ptxgen_linear *linear, ptxgen_error *err)
{
    const ptxgen_tensor *const *parts = f->layer->parts;
    ptxgen_sparse24_weights w;
    float *scales = NULL, *x_scale = NULL;
    ptxgen_status status = ptxgen_sparse24_from_layer(f->layer, &w, err);
    if (status == PTXGEN_OK)
        status = linear_read_floats(parts[PTXGEN_LAYER_SCALE], w.shape.n, &scales, err);
    if (status == PTXGEN_OK)
        status = linear_read_floats(parts[PTXGEN_LAYER_INPUT_SCALE], 1, &x_scale, err);
    w.scales = scales;
    w.x_scale = x_scale ? *x_scale : 0;
    if (status == PTXGEN_OK)
        status = linear_fill_sparse24(m, &w, linear, err);
    free(scales);
    free(x_scale);
    return status;
}

/* ---- GGUF ---- */

static ptxgen_status take_rows(const ptxgen_tensor *t, struct linear_rows *rows, ptxgen_error *err)
{
    static const uint8_t types[] = {
        [PTXGEN_DTYPE_Q4_0] = PTXGEN_GGUF_Q4_0,     [PTXGEN_DTYPE_Q4_1] = PTXGEN_GGUF_Q4_1,
        [PTXGEN_DTYPE_Q5_0] = PTXGEN_GGUF_Q5_0,     [PTXGEN_DTYPE_Q5_1] = PTXGEN_GGUF_Q5_1,
        [PTXGEN_DTYPE_Q8_0] = PTXGEN_GGUF_Q8_0,     [PTXGEN_DTYPE_Q2_K] = PTXGEN_GGUF_Q2_K,
        [PTXGEN_DTYPE_Q3_K] = PTXGEN_GGUF_Q3_K,     [PTXGEN_DTYPE_Q4_K] = PTXGEN_GGUF_Q4_K,
        [PTXGEN_DTYPE_Q5_K] = PTXGEN_GGUF_Q5_K,     [PTXGEN_DTYPE_Q6_K] = PTXGEN_GGUF_Q6_K,
        [PTXGEN_DTYPE_IQ4_NL] = PTXGEN_GGUF_IQ4_NL, [PTXGEN_DTYPE_IQ4_XS] = PTXGEN_GGUF_IQ4_XS,
        [PTXGEN_DTYPE_MXFP4] = PTXGEN_GGUF_MXFP4,
    };
    uint8_t type = (size_t)t->dtype < sizeof types ? types[t->dtype] : 0;
    if (!type)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "a layer: %s is of dtype %d, which gguf_linear does not multiply",
                           t->name, (int)t->dtype);
    *rows = (struct linear_rows){.rows = t->data, .bytes = t->bytes, .type = type};
    if (t->ndim != 2 || t->shape[0] > INT32_MAX || t->shape[1] > INT32_MAX)
        return linear_refuse_part(t, "a matrix", err);
    rows->n = (uint32_t)t->shape[0];
    rows->k = (uint32_t)t->shape[1];
    return PTXGEN_OK;
}

static ptxgen_status fill_gguf(const struct linear_making *m, const struct linear_file *f,
                               ptxgen_linear *linear, ptxgen_error *err)
{
    struct linear_rows rows, up;
    ptxgen_status status = take_rows(f->layer->parts[PTXGEN_LAYER_WEIGHT], &rows, err);
    if (status == PTXGEN_OK && f->up)
        status = take_rows(f->up->parts[PTXGEN_LAYER_WEIGHT], &up, err);
    rows.up = f->up ? &up : NULL;
    return status == PTXGEN_OK ? linear_fill_gguf(m, &rows, linear, err) : status;
}

/* ---- floats ---- */

static ptxgen_status fill_floats(const struct linear_making *m, const struct linear_file *f,
                                 ptxgen_linear *linear, ptxgen_error *err)
{
    const ptxgen_tensor *t = f->layer->parts[PTXGEN_LAYER_WEIGHT];
    const ptxgen_element to = (ptxgen_element)m->options->type;
    ptxgen_element from;
    size_t size = find_element(t->dtype, &from) ? ptxgen_element_size(from) : 0;
    ptxgen_status status = linear_check_matrix(t, size, "a matrix of F32, F16 or BF16", err);
    if (status != PTXGEN_OK)
        return status;
    struct linear_rows w = {
        .rows = t->data, .n = (uint32_t)t->shape[0], .k = (uint32_t)t->shape[1]};
    if (from == to)
        return linear_fill_floats(m, &w, linear, err);
    size_t count = (size_t)w.n * w.k;
    void *rounded = malloc(count * ptxgen_element_size(to) + 1);
    if (!rounded)
        return linear_no_memory(err);
    for (size_t i = 0; i < count; i++)
        ptxgen_element_store(to, rounded, i, ptxgen_element_load(from, t->data, i));
    w.rows = rounded;
    status = linear_fill_floats(m, &w, linear, err);
    free(rounded);
    return status;
}

/* ---- all kinds ---- */

static const struct {
    ptxgen_status (*fill)(const struct linear_making *m, const struct linear_file *f,
                          ptxgen_linear *linear, ptxgen_error *err);
    bool takes_up;
} kinds[] = {
    [PTXGEN_LAYER_W4] = {fill_w4, true},
    [PTXGEN_LAYER_W8] = {linear_fill_w8, true},
    [PTXGEN_LAYER_SPARSE24] = {fill_sparse24, false},
    [PTXGEN_LAYER_GGUF] = {fill_gguf, true},
    [PTXGEN_LAYER_FLOATS] = {fill_floats, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static ptxgen_status check_layers(const struct linear_file *f, ptxgen_error *err)
{
    const ptxgen_layer *const both[] = {f->layer, f->up ? f->up : f->layer};
    if (!f->layer)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: layer is NULL");
    for (int i = 0; i < 2; i++)
        if ((unsigned)both[i]->kind >= KINDS || !kinds[both[i]->kind].fill ||
            !both[i]->parts[PTXGEN_LAYER_WEIGHT])
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "a layer: one of kind %d that has %s weights was not found by "
                               "ptxgen_files_layer",
                               (int)both[i]->kind,
                               both[i]->parts[PTXGEN_LAYER_WEIGHT] ? "its" : "no");
    if (both[0]->kind != both[1]->kind)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: gate is of kind %d and up of kind %d", (int)both[0]->kind,
                           (int)both[1]->kind);
    if (f->up && !kinds[both[0]->kind].takes_up)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "a layer: gate and up go together in 4 bits, 8 bits and types of GGUF, "
                           "not in kind %d",
                           (int)both[0]->kind);
    return PTXGEN_OK;
}

/* Output features, of which the bias has one each. */
static ptxgen_status count_features(const ptxgen_layer *l, size_t *n, ptxgen_error *err)
{
    const ptxgen_tensor *w = l->parts[PTXGEN_LAYER_WEIGHT];
    ptxgen_w4_checkpoint checkpoint;
    ptxgen_w4_info info;
    ptxgen_marlin_spec spec;
    ptxgen_marlin_packed packed;
    ptxgen_status status = PTXGEN_OK;
    *n = (size_t)w->shape[0];
    if (l->kind != PTXGEN_LAYER_W4)
        return PTXGEN_OK;
    if (l->form == PTXGEN_LAYER_PACKED) {
        status = ptxgen_marlin_packed_from_layer(l, &spec, &packed, err);
        *n = status == PTXGEN_OK ? spec.n : 0;
        return status;
    }
    status = ptxgen_w4_from_layer(l, &checkpoint, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w4_describe(&checkpoint, &info, err);
    *n = status == PTXGEN_OK ? info.n : 0;
    return status;
}

/* With the layer's bias, where the options have none. */
static ptxgen_status fill(const struct linear_making *m, const void *weights, ptxgen_linear *linear,
                          ptxgen_error *err)
{
    const struct linear_file *f = weights;
    ptxgen_linear_options options = *m->options;
    const struct linear_making with_bias = {m->dispatcher, &options};
    float *bias = NULL;
    size_t n = 0;
    ptxgen_status status = check_layers(f, err);
    if (status != PTXGEN_OK)
        return status;
    if (!options.bias && f->layer->parts[PTXGEN_LAYER_BIAS]) {
        status = count_features(f->layer, &n, err);
        if (status == PTXGEN_OK)
            status = linear_read_floats(f->layer->parts[PTXGEN_LAYER_BIAS], n, &bias, err);
        options.bias = bias;
    }
    if (status == PTXGEN_OK)
        status = kinds[f->layer->kind].fill(&with_bias, f, linear, err);
    free(bias);
    return status;
}

ptxgen_status ptxgen_linear_from_layer(ptxgen_dispatcher *dispatcher, const ptxgen_layer *layer,
                                       const ptxgen_layer *up, const ptxgen_linear_options *options,
                                       ptxgen_linear **linear, ptxgen_error *err)
{
    const struct linear_making m = {dispatcher, options};
    const struct linear_file f = {layer, up};
    return linear_make(&m, fill, &f, linear, err);
}
