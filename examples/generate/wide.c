/* SPDX-License-Identifier: Apache-2.0 */
#include "wide.h"

#include "gate.h"
#include "norm.h"

#include <ptxgen/dense.h>
#include <ptxgen/gguf_rows.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_KERNELS = 64 };

/* Matrices of one shape share the product, those of one type and length of rows the decoder. */
struct product {
    uint32_t n, k;
    ptxgen_dense *kernel;
};

struct decoder {
    uint32_t k;
    uint8_t type;
    ptxgen_gguf_rows *kernel;
};

struct wide {
    const struct device *device;
    const struct model *model;
    struct wide_options options;
    ptxgen_loaded *first_norm, *norm, *gate; /* before the first layer; everywhere else */
    struct product products[MOST_KERNELS];
    struct decoder decoders[MOST_KERNELS];
    uint32_t product_count, decoder_count;
    uint64_t decoded, decoded_bytes, workspace, workspace_bytes;
    uint64_t normed, product, gates, ups; /* [tokens, hidden], and [tokens, feed forward] */
};

/* ---- decoding and multiplying ---- */

static ptxgen_dense *find_product(const struct wide *w, const struct matrix *m)
{
    for (uint32_t i = 0; i < w->product_count; i++)
        if (w->products[i].n == m->n && w->products[i].k == m->k)
            return w->products[i].kernel;
    return NULL;
}

static ptxgen_gguf_rows *find_decoder(const struct wide *w, const struct matrix *m)
{
    for (uint32_t i = 0; i < w->decoder_count; i++)
        if (w->decoders[i].k == m->k && w->decoders[i].type == m->type)
            return w->decoders[i].kernel;
    return NULL;
}

static ptxgen_status add_product(struct wide *w, const struct matrix *m, ptxgen_error *err)
{
    ptxgen_dense_spec spec;
    struct product *p = &w->products[w->product_count];
    if (find_product(w, m))
        return PTXGEN_OK;
    if (w->product_count == MOST_KERNELS)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "matrices have more than %d shapes",
                           MOST_KERNELS);
    memset(&spec, 0, sizeof spec);
    spec.n = m->n;
    spec.k = m->k;
    spec.max_m = w->options.most_tokens;
    spec.type = w->options.type;
    *p = (struct product){.n = m->n, .k = m->k};
    w->product_count++;
    return ptxgen_dense_dispatch(w->device->dispatcher, &spec, &p->kernel, err);
}

static ptxgen_status add_decoder(struct wide *w, const struct matrix *m, ptxgen_error *err)
{
    ptxgen_gguf_rows_spec spec;
    struct decoder *d = &w->decoders[w->decoder_count];
    if (find_decoder(w, m))
        return PTXGEN_OK;
    if (w->decoder_count == MOST_KERNELS)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "matrices have more than %d types",
                           MOST_KERNELS);
    memset(&spec, 0, sizeof spec);
    spec.k = m->k;
    spec.w_type = m->type;
    spec.y_type = w->options.type;
    *d = (struct decoder){.k = m->k, .type = m->type};
    w->decoder_count++;
    return ptxgen_gguf_rows_dispatch(w->device->dispatcher, &spec, &d->kernel, err);
}

/* Also finds how much memory the largest matrix and the neediest product take. */
static ptxgen_status add_matrix(struct wide *w, const struct matrix *m, ptxgen_error *err)
{
    uint64_t bytes = (uint64_t)m->n * m->k * ptxgen_element_size((ptxgen_element)w->options.type);
    w->decoded_bytes = bytes > w->decoded_bytes ? bytes : w->decoded_bytes;
    ptxgen_status status = add_product(w, m, err);
    if (!status)
        status = add_decoder(w, m, err);
    ptxgen_dense_args args;
    memset(&args, 0, sizeof args);
    for (args.m = 1; args.m <= w->options.most_tokens && !status; args.m++) {
        status = ptxgen_dense_workspace_bytes(find_product(w, m), &args, &bytes, err);
        w->workspace_bytes = bytes > w->workspace_bytes ? bytes : w->workspace_bytes;
    }
    return status;
}

static ptxgen_status add_layer(struct wide *w, const struct layer *layer, ptxgen_error *err)
{
    const struct matrix *matrices[] = {&layer->q,    &layer->k,  &layer->v,   &layer->o,
                                       &layer->gate, &layer->up, &layer->down};
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices && !status; i++)
        if (!find_product(w, matrices[i]) || !find_decoder(w, matrices[i]))
            status = add_matrix(w, matrices[i], err);
    return status;
}

/* y[m, n] = x[m, k] · wᵀ */
static ptxgen_status multiply(struct wide *w, const struct matrix *matrix, uint64_t x, uint64_t y,
                              uint64_t m, ptxgen_error *err)
{
    ptxgen_gguf_rows_args rows;
    ptxgen_dense_args dense;
    memset(&rows, 0, sizeof rows);
    rows.m = rows.n = matrix->n;
    rows.w = matrix->at;
    rows.w_bytes = matrix->bytes;
    rows.y = w->decoded;
    rows.y_bytes = w->decoded_bytes;
    rows.overlap_previous = ptxgen_dispatcher_target(w->device->dispatcher)->ptx.sm >= 90;
    memset(&dense, 0, sizeof dense);
    dense.m = m;
    dense.x = x;
    dense.w = w->decoded;
    dense.w_bytes = w->decoded_bytes;
    dense.y = y;
    dense.workspace = w->workspace;
    dense.workspace_bytes = w->workspace_bytes;
    ptxgen_status status =
        ptxgen_gguf_rows_launch(find_decoder(w, matrix), &rows, w->device->stream, err);
    return status ? status
                  : ptxgen_dense_launch(find_product(w, matrix), &dense, w->device->stream, err);
}

/* ---- norms and gates ---- */

static ptxgen_status load_norms(struct wide *w, ptxgen_error *err)
{
    const struct model *m = w->model;
    ptxgen_dispatcher *dispatcher = w->device->dispatcher;
    struct norm_spec norm;
    struct gate_spec gate;
    memset(&norm, 0, sizeof norm);
    norm.k = m->hidden;
    norm.epsilon = m->epsilon;
    norm.mode = NORM_ALONE;
    norm.stream_type = w->options.stream_type;
    norm.type = w->options.type;
    memset(&gate, 0, sizeof gate);
    gate.type = w->options.type;
    gate.is_gelu = m->is_gemma;
    ptxgen_status status = ptxgen_dispatch(dispatcher, norm_family(), &norm, &w->first_norm, err);
    norm.mode = m->is_gemma ? NORM_AFTER : NORM_BEFORE;
    if (!status)
        status = ptxgen_dispatch(dispatcher, norm_family(), &norm, &w->norm, err);
    return status ? status : ptxgen_dispatch(dispatcher, gate_family(), &gate, &w->gate, err);
}

/* The stream takes in the last product, if there is one, and is normalised. */
static ptxgen_status normalise(struct wide *w, bool is_first, uint64_t gain, uint64_t post_gain,
                               uint64_t m, ptxgen_error *err)
{
    const struct norm_args args = {.m = m,
                                   .x = w->product,
                                   .stream = w->options.arrays.stream,
                                   .y = w->normed,
                                   .gain = gain,
                                   .post_gain = post_gain};
    return norm_launch(is_first ? w->first_norm : w->norm, &args, w->device->stream, err);
}

static ptxgen_status join_gate(struct wide *w, uint64_t m, ptxgen_error *err)
{
    const struct gate_args args = {
        .count = m * w->model->feed_forward, .gate = w->gates, .up = w->ups, .y = w->gates};
    return gate_launch(w->gate, &args, w->device->stream, err);
}

/* ---- layers ---- */

ptxgen_status wide_before(struct wide *w, uint32_t l, uint64_t m, ptxgen_error *err)
{
    const struct layer *layer = &w->model->layer[l];
    const struct wide_arrays *a = &w->options.arrays;
    uint64_t post = l ? w->model->layer[l - 1].post_ffw_norm : 0;
    ptxgen_status status = normalise(w, l == 0, layer->attn_norm, post, m, err);
    if (!status)
        status = multiply(w, &layer->q, w->normed, a->q, m, err);
    if (!status)
        status = multiply(w, &layer->k, w->normed, a->k, m, err);
    return status ? status : multiply(w, &layer->v, w->normed, a->v, m, err);
}

ptxgen_status wide_after(struct wide *w, uint32_t l, uint64_t m, ptxgen_error *err)
{
    const struct layer *layer = &w->model->layer[l];
    ptxgen_status status = multiply(w, &layer->o, w->options.arrays.attended, w->product, m, err);
    if (!status)
        status = normalise(w, false, layer->ffn_norm, layer->post_attention_norm, m, err);
    if (!status)
        status = multiply(w, &layer->gate, w->normed, w->gates, m, err);
    if (!status)
        status = multiply(w, &layer->up, w->normed, w->ups, m, err);
    if (!status)
        status = join_gate(w, m, err);
    return status ? status : multiply(w, &layer->down, w->gates, w->product, m, err);
}

ptxgen_status wide_end(struct wide *w, uint64_t m, ptxgen_error *err)
{
    uint64_t post = w->model->layer[w->model->layers - 1].post_ffw_norm;
    return normalise(w, false, w->model->output_norm, post, m, err);
}

/* ---- making it ---- */

static ptxgen_status allocate(struct wide *w, ptxgen_error *err)
{
    const uint64_t size = ptxgen_element_size((ptxgen_element)w->options.type);
    const uint64_t row = w->options.most_tokens * size;
    ptxgen_status status = device_alloc(w->device, w->decoded_bytes, &w->decoded, err);
    if (!status)
        status = device_alloc(w->device, w->workspace_bytes, &w->workspace, err);
    if (!status)
        status = device_alloc(w->device, row * w->model->hidden, &w->normed, err);
    if (!status)
        status = device_alloc(w->device, row * w->model->hidden, &w->product, err);
    if (!status)
        status = device_alloc(w->device, row * w->model->feed_forward, &w->gates, err);
    return status ? status : device_alloc(w->device, row * w->model->feed_forward, &w->ups, err);
}

ptxgen_status wide_create(const struct device *device, const struct model *model,
                          const struct wide_options *options, struct wide **wide, ptxgen_error *err)
{
    *wide = NULL;
    struct wide *w = calloc(1, sizeof *w);
    if (!w)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for products");
    w->device = device;
    w->model = model;
    w->options = *options;
    ptxgen_status status = load_norms(w, err);
    for (uint32_t l = 0; l < model->layers && !status; l++)
        status = add_layer(w, &model->layer[l], err);
    if (!status)
        status = allocate(w, err);
    if (status)
        wide_destroy(w);
    else
        *wide = w;
    return status;
}

void wide_destroy(struct wide *w)
{
    if (!w)
        return;
    for (uint32_t i = 0; i < w->product_count; i++)
        ptxgen_dense_destroy(w->products[i].kernel);
    for (uint32_t i = 0; i < w->decoder_count; i++)
        ptxgen_gguf_rows_destroy(w->decoders[i].kernel);
    ptxgen_release(w->first_norm);
    ptxgen_release(w->norm);
    ptxgen_release(w->gate);
    free(w);
}
