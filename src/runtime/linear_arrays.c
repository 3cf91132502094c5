/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of weights in the caller's arrays: a maker for each family. */
#include "src/runtime/linear.h"

#include <math.h>
#include <stdlib.h>

/* ---- marlin ---- */

/* Packs into host memory and uploads from there. */
static ptxgen_status pack_w4(const struct linear_w4 *w, const ptxgen_marlin_spec *spec,
                             ptxgen_linear *linear, ptxgen_error *err)
{
    ptxgen_marlin_packed packed;
    ptxgen_marlin_args *args = &linear->args.marlin;
    ptxgen_status status = ptxgen_marlin_packed_layout(spec, &packed, err);
    if (status != PTXGEN_OK)
        return status;
    struct {
        void **host;
        size_t bytes;
        uint64_t *address;
    } arrays[] = {{&packed.codes, packed.codes_bytes, &args->codes},
                  {&packed.scales, packed.scales_bytes, &args->scales},
                  {&packed.zeros, packed.zeros_bytes, &args->zeros},
                  {(void **)&packed.order, packed.order_bytes, &args->order}};
    enum { ARRAYS = sizeof arrays / sizeof *arrays };
    void *memory[ARRAYS] = {NULL};
    for (int i = 0; status == PTXGEN_OK && i < ARRAYS; i++) {
        memory[i] = arrays[i].bytes ? malloc(arrays[i].bytes) : NULL;
        if (arrays[i].bytes && !memory[i])
            status = linear_no_memory(err);
    }
    packed.codes = memory[0];
    packed.scales = memory[1];
    packed.zeros = memory[2];
    packed.order = memory[3];
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_pack(spec, w->weights, w->up, &packed, NULL, err);
    for (int i = 0; status == PTXGEN_OK && i < ARRAYS; i++)
        status = linear_upload(linear, memory[i], arrays[i].bytes, arrays[i].address, err);
    for (int i = 0; i < ARRAYS; i++)
        free(memory[i]);
    return status;
}

ptxgen_status linear_fill_w4(const struct linear_making *m, const void *weights,
                             ptxgen_linear *linear, ptxgen_error *err)
{
    const struct linear_w4 *w = weights;
    ptxgen_w4_info info, up = {.symmetric = true};
    const ptxgen_linear_options *o = m->options;
    if (!w->weights)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: weights is NULL");
    if (w->up && (o->bias || o->activation))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: gate and up take neither a bias nor an activation");
    ptxgen_status status = ptxgen_w4_describe(w->weights, &info, err);
    if (status == PTXGEN_OK && w->up)
        status = ptxgen_w4_describe(w->up, &up, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_marlin_spec spec = {.k = linear->k = (uint32_t)info.k,
                                     .n = linear->n = (uint32_t)info.n,
                                     .group_size = (int32_t)info.group_size,
                                     .max_m = (uint32_t)o->max_m,
                                     .type = o->type,
                                     .zeros = !info.symmetric || !up.symmetric,
                                     .act_order = info.act_order,
                                     .epilogue =
                                         w->up ? PTXGEN_EPILOGUE_SWIGLU : PTXGEN_EPILOGUE_NONE,
                                     .activation = o->activation,
                                     .bias = o->bias != NULL};
    status = linear_dispatch(linear, m, &linear_marlin, ptxgen_marlin_family(), &spec, err);
    if (status == PTXGEN_OK)
        status = pack_w4(w, &spec, linear, err);
    if (status == PTXGEN_OK && spec.bias)
        status = linear_upload_bias(linear, o->bias, (ptxgen_element)o->type,
                                    &linear->args.marlin.bias, err);
    return status;
}

ptxgen_status ptxgen_linear_from_w4(ptxgen_dispatcher *dispatcher,
                                    const ptxgen_w4_checkpoint *weights,
                                    const ptxgen_w4_checkpoint *up,
                                    const ptxgen_linear_options *options, ptxgen_linear **linear,
                                    ptxgen_error *err)
{
    const struct linear_making m = {dispatcher, options};
    const struct linear_w4 w = {weights, up};
    return linear_make(&m, linear_fill_w4, &w, linear, err);
}

/* ---- w8a8 ---- */

static ptxgen_status fill_w8a8(const struct linear_making *m, const void *weights,
                               ptxgen_linear *linear, ptxgen_error *err)
{
    enum { ALIGN = 16 }; /* rows of codes that are copied as they are */
    const ptxgen_w8a8_weights *w = weights;
    const ptxgen_linear_options *o = m->options;
    ptxgen_w8a8_args *args = &linear->args.w8a8;
    if (!w)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: weights is NULL");
    const uint32_t stride = w->k > UINT32_MAX - ALIGN ? w->k : (w->k + ALIGN - 1) / ALIGN * ALIGN;
    const bool e5m2 = w->codes == PTXGEN_W8A8_E5M2;
    const ptxgen_w8a8_spec spec = {.k = linear->k = w->k,
                                   .n = linear->n = w->n,
                                   .w_stride = stride,
                                   .max_m = (uint32_t)o->max_m,
                                   .x_type = o->type,
                                   .y_type = o->type,
                                   .codes = (uint8_t)(e5m2 ? PTXGEN_W8A8_E4M3 : w->codes),
                                   .w_codes = e5m2 ? PTXGEN_W8A8_E5M2 : 0,
                                   .activation = o->activation,
                                   .bias = o->bias != NULL};
    ptxgen_status status =
        linear_dispatch(linear, m, &linear_w8a8, ptxgen_w8a8_family(), &spec, err);
    if (status != PTXGEN_OK)
        return status;
    size_t bytes = (size_t)w->n * stride, scale_bytes = w->n * sizeof(float);
    int8_t *codes = malloc(bytes + 1);
    float *scales = malloc(scale_bytes + 1);
    status = codes && scales ? ptxgen_w8a8_quantise(w, stride, codes, PTXGEN_F32, scales, err)
                             : linear_no_memory(err);
    if (status == PTXGEN_OK)
        status = linear_upload(linear, codes, bytes, &args->w, err);
    if (status == PTXGEN_OK)
        status = linear_upload(linear, scales, scale_bytes, &args->w_scale, err);
    if (status == PTXGEN_OK)
        status = linear_upload_bias(linear, o->bias, PTXGEN_F32, &args->bias, err);
    free(codes);
    free(scales);
    return status;
}

ptxgen_status ptxgen_linear_from_w8a8(ptxgen_dispatcher *dispatcher,
                                      const ptxgen_w8a8_weights *weights,
                                      const ptxgen_linear_options *options, ptxgen_linear **linear,
                                      ptxgen_error *err)
{
    const struct linear_making m = {dispatcher, options};
    return linear_make(&m, fill_w8a8, weights, linear, err);
}

/* ---- gguf_linear ---- */

/* Of a matrix, whose bytes are *bytes. */
static ptxgen_status measure_rows(const struct linear_rows *w, size_t *bytes, ptxgen_error *err)
{
    size_t row_bytes;
    if (!w->rows && w->n && w->k)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: rows is NULL");
    ptxgen_status status = ptxgen_gguf_row_bytes(w->type, w->k, &row_bytes, err);
    if (status != PTXGEN_OK)
        return status;
    if (row_bytes && w->bytes / row_bytes < w->n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: %u rows of %zu bytes do not fit into %zu", w->n, row_bytes,
                           w->bytes);
    *bytes = w->n * row_bytes;
    return PTXGEN_OK;
}

static ptxgen_status check_gguf(const struct linear_rows *w, const ptxgen_linear_options *o,
                                ptxgen_error *err)
{
    if (o->activation)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "a layer: gguf_linear has no activation");
    if (w->up && o->bias)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: gate and up take neither a bias nor an activation");
    if (w->up && (w->up->k != w->k || w->up->n != w->n))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: gate is %u by %u and up is %u by %u", w->n, w->k, w->up->n,
                           w->up->k);
    return PTXGEN_OK;
}

ptxgen_status linear_fill_gguf(const struct linear_making *m, const void *weights,
                               ptxgen_linear *linear, ptxgen_error *err)
{
    const struct linear_rows *w = weights, *up = w->up;
    const ptxgen_linear_options *o = m->options;
    ptxgen_gguf_linear_args *args = &linear->args.gguf;
    size_t bytes, up_bytes = 0;
    ptxgen_status status = measure_rows(w, &bytes, err);
    if (status == PTXGEN_OK && up)
        status = measure_rows(up, &up_bytes, err);
    if (status == PTXGEN_OK)
        status = check_gguf(w, o, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_gguf_linear_spec spec = {.k = linear->k = w->k,
                                          .n = {linear->n = w->n, up ? up->n : 0},
                                          .max_m = (uint32_t)o->max_m,
                                          .w_type = {(uint8_t)w->type, up ? (uint8_t)up->type : 0},
                                          .x_type = o->type,
                                          .y_type = o->type,
                                          .epilogue =
                                              up ? PTXGEN_EPILOGUE_SWIGLU : PTXGEN_EPILOGUE_NONE,
                                          .bias = o->bias != NULL};
    status = linear_dispatch(linear, m, &linear_gguf, ptxgen_gguf_linear_family(), &spec, err);
    if (status == PTXGEN_OK)
        status = linear_upload(linear, w->rows, bytes, &args->w[0], err);
    if (status == PTXGEN_OK && up)
        status = linear_upload(linear, up->rows, up_bytes, &args->w[1], err);
    if (status == PTXGEN_OK)
        status = linear_upload_bias(linear, o->bias, PTXGEN_F32, &args->bias[0], err);
    return status;
}

ptxgen_status ptxgen_linear_from_gguf(ptxgen_dispatcher *dispatcher, uint32_t type,
                                      const void *rows, size_t bytes, uint32_t n, uint32_t k,
                                      const ptxgen_linear_options *options, ptxgen_linear **linear,
                                      ptxgen_error *err)
{
    const struct linear_making m = {dispatcher, options};
    const struct linear_rows w = {.type = type, .rows = rows, .bytes = bytes, .n = n, .k = k};
    return linear_make(&m, linear_fill_gguf, &w, linear, err);
}

/* ---- dense ---- */

ptxgen_status linear_fill_floats(const struct linear_making *m, const void *weights,
                                 ptxgen_linear *linear, ptxgen_error *err)
{
    const struct linear_rows *w = weights;
    const ptxgen_linear_options *o = m->options;
    const ptxgen_element type = (ptxgen_element)o->type;
    if (!w->rows && w->n && w->k)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: w is NULL");
    const ptxgen_dense_spec spec = {.n = linear->n = w->n,
                                    .k = linear->k = w->k,
                                    .max_m = (uint32_t)o->max_m,
                                    .type = o->type,
                                    .activation = o->activation,
                                    .bias = o->bias != NULL};
    ptxgen_status status =
        linear_dispatch(linear, m, &linear_dense, ptxgen_dense_family(), &spec, err);
    if (status == PTXGEN_OK)
        status = linear_upload(linear, w->rows, (size_t)w->n * w->k * ptxgen_element_size(type),
                               &linear->args.dense.w, err);
    if (status == PTXGEN_OK)
        status = linear_upload_bias(linear, o->bias, type, &linear->args.dense.bias, err);
    return status;
}

ptxgen_status ptxgen_linear_from_floats(ptxgen_dispatcher *dispatcher, const void *w, uint32_t n,
                                        uint32_t k, const ptxgen_linear_options *options,
                                        ptxgen_linear **linear, ptxgen_error *err)
{
    const struct linear_making m = {dispatcher, options};
    const struct linear_rows rows = {.rows = w, .n = n, .k = k};
    return linear_make(&m, linear_fill_floats, &rows, linear, err);
}

/* ---- sparse24 ---- */

/* Compresses dense weights, on the host, and packs what is compressed. */
static ptxgen_status pack_sparse24(const ptxgen_sparse24_weights *w,
                                   const ptxgen_sparse24_spec *spec, ptxgen_span packed,
                                   ptxgen_error *err)
{
    size_t dense_bytes, metadata_bytes;
    if (!w->dense.bytes)
        return ptxgen_sparse24_pack(spec, w->values, w->form, w->metadata, packed, err);
    ptxgen_status status = ptxgen_sparse24_dense_bytes(&w->shape, &dense_bytes, err);
    if (status == PTXGEN_OK)
        status =
            ptxgen_sparse24_metadata_bytes(&w->shape, PTXGEN_SPARSE24_BYTES, &metadata_bytes, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_span values = {malloc(dense_bytes / 2 + 1), dense_bytes / 2};
    const ptxgen_span metadata = {malloc(metadata_bytes + 1), metadata_bytes};
    status = values.data && metadata.data
                 ? ptxgen_sparse24_compress(&w->shape, w->dense, values, PTXGEN_SPARSE24_BYTES,
                                            metadata, err)
                 : linear_no_memory(err);
    if (status == PTXGEN_OK)
        status = ptxgen_sparse24_pack(
            spec, (ptxgen_const_span){values.data, values.bytes}, PTXGEN_SPARSE24_BYTES,
            (ptxgen_const_span){metadata.data, metadata.bytes}, packed, err);
    free(values.data);
    free(metadata.data);
    return status;
}

/* Of codes: a scale for each feature, and for each token of runs that bring none. */
static ptxgen_status upload_scales(const ptxgen_sparse24_weights *w, ptxgen_linear *linear,
                                   ptxgen_error *err)
{
    ptxgen_sparse24_args *args = &linear->args.sparse24;
    size_t most = linear->n > linear->max_m ? linear->n : linear->max_m;
    float *scales = malloc((most + 1) * sizeof *scales);
    if (!scales)
        return linear_no_memory(err);
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < linear->n; i++) {
        scales[i] = w->scales ? w->scales[i] : 1;
        if (!isfinite(scales[i]))
            status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                                 "a layer: scale %zu of the weights is %g, not finite", i,
                                 (double)scales[i]);
    }
    if (status == PTXGEN_OK)
        status = linear_upload(linear, scales, linear->n * sizeof *scales, &args->w_scale, err);
    for (size_t i = 0; i < linear->max_m; i++)
        scales[i] = w->x_scale != 0 ? w->x_scale : 1;
    if (status == PTXGEN_OK)
        status = linear_upload(linear, scales, linear->max_m * sizeof *scales, &args->x_scale, err);
    free(scales);
    return status;
}

static ptxgen_status check_sparse24(const struct linear_making *m, const ptxgen_sparse24_weights *w,
                                    ptxgen_error *err)
{
    if (!w)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: weights is NULL");
    if (w->dense.bytes && (w->values.bytes || w->metadata.bytes))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: weights are dense, or values and metadata, not both");
    if (!isfinite(w->x_scale))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: x_scale of the weights is %g, not finite", (double)w->x_scale);
    if (w->shape.n > INT32_MAX || w->shape.k > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "a layer: a weight of %zu by %zu is too large for sparse24", w->shape.n,
                           w->shape.k);
    if (w->shape.type == PTXGEN_SPARSE24_S8 || (unsigned)w->shape.type == m->options->type)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "a layer: type %u of the options is not that of the weights, %u",
                       m->options->type, (unsigned)w->shape.type);
}

ptxgen_status linear_fill_sparse24(const struct linear_making *m, const void *weights,
                                   ptxgen_linear *linear, ptxgen_error *err)
{
    const ptxgen_sparse24_weights *w = weights;
    const ptxgen_linear_options *o = m->options;
    ptxgen_sparse24_args *args = &linear->args.sparse24;
    ptxgen_span packed = {NULL, 0};
    ptxgen_status status = check_sparse24(m, w, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_sparse24_spec spec = {.n = linear->n = (uint32_t)w->shape.n,
                                       .k = linear->k = (uint32_t)w->shape.k,
                                       .max_m = (uint32_t)o->max_m,
                                       .type = (uint8_t)w->shape.type,
                                       .y_type = o->type,
                                       .activation = o->activation,
                                       .bias = o->bias != NULL};
    status = linear_dispatch(linear, m, &linear_sparse24, ptxgen_sparse24_family(), &spec, err);
    if (status == PTXGEN_OK)
        status = ptxgen_sparse24_packed_bytes(&spec, &packed.bytes, err);
    if (status != PTXGEN_OK)
        return status;
    packed.data = malloc(packed.bytes + 1);
    status = packed.data ? pack_sparse24(w, &spec, packed, err) : linear_no_memory(err);
    if (status == PTXGEN_OK)
        status = linear_upload(linear, packed.data, packed.bytes, &args->w, err);
    free(packed.data);
    if (status == PTXGEN_OK && spec.type == PTXGEN_SPARSE24_S8)
        status = upload_scales(w, linear, err);
    if (status == PTXGEN_OK)
        status = linear_upload_bias(linear, o->bias, (ptxgen_element)o->type, &args->bias, err);
    return status;
}

ptxgen_status ptxgen_linear_from_sparse24(ptxgen_dispatcher *dispatcher,
                                          const ptxgen_sparse24_weights *weights,
                                          const ptxgen_linear_options *options,
                                          ptxgen_linear **linear, ptxgen_error *err)
{
    const struct linear_making m = {dispatcher, options};
    return linear_make(&m, linear_fill_sparse24, weights, linear, err);
}
