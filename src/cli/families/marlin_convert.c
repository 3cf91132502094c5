/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output has the input's tensors in their order; in the place of a layer's first tensor stand
 * the tensors of its new format. Packed layers have PREFIX.marlin_codes, marlin_scales,
 * marlin_zeros and marlin_order (<ptxgen/marlin.h>), and marlin_shape = K, N, group size.
 */
#include "marlin_convert.h"

#include "../printable.h"
#include "../../harness/progress.h"
#include "../safetensors_writer.h"

#include <ptxgen/marlin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const convert_formats[] = {"gptq",   "gptq_v2", "awq", "pack-quantized",
                                       "marlin", "packed",  NULL};

enum { OUTPUTS = 5 };

struct layer {
    char *prefix;
    bool packed;     /* the input: else a checkpoint */
    uint32_t *order; /* a packed input's, at an address that is aligned */
    ptxgen_w4_checkpoint from;
    ptxgen_marlin_packed from_packed;
    ptxgen_marlin_spec spec; /* of the packed form, where there is one on either side */
    ptxgen_w4_info info;
    bool declared;
};

struct conversion {
    const struct convert_request *request;
    struct tensor_store *store;
    struct safetensors_writer *writer;
    struct layer *layers;
    size_t layer_count;
};

/* ---- the input's layers ---- */

/* The suffixes that a layer's tensors have in any format. */
static bool is_layer_suffix(const char *suffix)
{
    const char *const packed[] = {packed_names.codes, packed_names.scales, packed_names.zeros,
                                  packed_names.order, packed_names.shape};
    for (int i = 0; i < 5; i++)
        if (!strcmp(suffix, packed[i]))
            return true;
    for (int f = 0; f < CONVERT_PACKED; f++) {
        const struct layer_names *n = layer_names_of((ptxgen_w4_format)f);
        const char *const names[] = {n->weights, n->scales, n->zeros, n->g_idx, n->shape};
        for (int i = 0; i < 5; i++)
            if (names[i] && !strcmp(suffix, names[i]))
                return true;
    }
    return false;
}

/* Whether it is the weights of a layer whose scales are there as well. */
static bool is_weights(const struct tensor_store *store, const char *prefix, const char *suffix)
{
    const struct {
        const char *weights, *scales;
    } pairs[] = {{"qweight", "scales"},
                 {"weight_packed", "weight_scale"},
                 {"B", "s"},
                 {packed_names.codes, packed_names.scales}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (!strcmp(suffix, pairs[i].weights) && layer_tensor(store, prefix, pairs[i].scales))
            return true;
    return false;
}

/* The converted layer that a tensor is part of, or NULL. */
static struct layer *layer_of(const struct conversion *c, const char *name)
{
    const char *dot = strrchr(name, '.');
    if (!dot || !is_layer_suffix(dot + 1))
        return NULL;
    size_t length = (size_t)(dot - name);
    for (size_t i = 0; i < c->layer_count; i++)
        if (strlen(c->layers[i].prefix) == length && !memcmp(c->layers[i].prefix, name, length))
            return &c->layers[i];
    return NULL;
}

static ptxgen_status read_packed(const struct conversion *c, struct layer *l, ptxgen_error *err)
{
    ptxgen_marlin_packed *p = &l->from_packed;
    ptxgen_status status = layer_find_packed(c->store, l->prefix, &l->spec, p, err);
    if (status != PTXGEN_OK)
        return status;
    if (p->order) {
        l->order = malloc(p->order_bytes + 1);
        if (!l->order)
            return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the order of rows");
        memcpy(l->order, p->order, p->order_bytes);
        p->order = l->order;
    }
    size_t group = l->spec.group_size < 0 ? l->spec.k : (size_t)l->spec.group_size;
    l->info = (ptxgen_w4_info){.k = l->spec.k,
                               .n = l->spec.n,
                               .groups = l->spec.k / group,
                               .group_size = (ptrdiff_t)group,
                               .scale_type = (ptxgen_element)l->spec.type,
                               .symmetric = !l->spec.zeros,
                               .act_order = l->spec.act_order};
    return PTXGEN_OK;
}

static ptxgen_status read_checkpoint(const struct conversion *c, struct layer *l, ptxgen_error *err)
{
    const struct convert_request *r = c->request;
    ptxgen_status status = layer_find(c->store, l->prefix, &r->choice, &l->from, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w4_describe(&l->from, &l->info, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_element type = l->info.scale_type == PTXGEN_BF16 ? PTXGEN_BF16 : PTXGEN_F16;
    l->spec = (ptxgen_marlin_spec){
        .k = (uint32_t)l->info.k,
        .n = (uint32_t)l->info.n,
        .group_size = l->info.groups == 1 ? PTXGEN_W4_PER_CHANNEL : (int32_t)l->info.group_size,
        .type = (uint8_t)(r->type_given ? r->type : type),
        .zeros = !l->info.symmetric,
        .act_order = l->info.act_order,
    };
    return PTXGEN_OK;
}

static ptxgen_status add_layer(struct conversion *c, const char *prefix, ptxgen_error *err)
{
    struct layer *layers = realloc(c->layers, (c->layer_count + 1) * sizeof *layers);
    char *copy = strdup(prefix);
    if (layers)
        c->layers = layers;
    if (!layers || !copy) {
        free(copy);
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a layer");
    }
    struct layer *l = &c->layers[c->layer_count++];
    *l = (struct layer){.prefix = copy};
    l->packed = layer_is_packed(c->store, l->prefix);
    if (l->packed && c->request->to == CONVERT_PACKED)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is packed already", l->prefix);
    ptxgen_error inner;
    ptxgen_status status = l->packed ? read_packed(c, l, &inner) : read_checkpoint(c, l, &inner);
    return status == PTXGEN_OK ? status
                               : ptxgen_fail(err, status, "%s: %s", l->prefix, inner.message);
}

static ptxgen_status find_layers(struct conversion *c, ptxgen_error *err)
{
    const struct convert_request *r = c->request;
    const struct tensor_list *tensors = tensor_store_tensors(c->store);
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < r->layer_count; i++)
        status = add_layer(c, r->layers[i], err);
    for (size_t i = 0; !r->layer_count && status == PTXGEN_OK && i < tensors->count; i++) {
        const char *name = tensors->items[i].name, *dot = strrchr(name, '.');
        char *prefix = dot ? strndup(name, (size_t)(dot - name)) : NULL;
        if (prefix && is_weights(c->store, prefix, dot + 1))
            status = add_layer(c, prefix, err);
        free(prefix);
    }
    if (status == PTXGEN_OK && !c->layer_count)
        status = ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "%s has no 4-bit layer", r->input);
    return status;
}

static bool is_converted(const struct conversion *c, const struct layer *l,
                         const struct named_tensor *t)
{
    const struct named_tensor *own[LAYER_TENSORS];
    layer_list_tensors(c->store, l->prefix, l->from.format, own);
    for (int i = 0; i < LAYER_TENSORS; i++)
        if (own[i] == t)
            return true;
    return false;
}

/* What another format would have under the layer's name says nothing of the layer that is written.
 */
static void warn_of_dropped(const struct conversion *c)
{
    const struct tensor_list *tensors = tensor_store_tensors(c->store);
    for (size_t i = 0; i < tensors->count; i++) {
        const struct named_tensor *t = &tensors->items[i];
        const struct layer *l = layer_of(c, t->name);
        if (l && !is_converted(c, l, t))
            fprintf(stderr, "ptxgen: left out, as its layer's format has no such tensor: %s\n",
                    printable(t->name, strlen(t->name)).text);
    }
}

/* ---- the output's tensors ---- */

/* One layer's output: the tensors, and what fills them. */
struct output {
    ptxgen_w4_checkpoint checkpoint;
    ptxgen_marlin_packed packed;
    struct {
        const char *suffix;
        enum tensor_dtype dtype;
        size_t shape[2], bytes;
        unsigned ndim;
        void **data; /* of the checkpoint or of packed */
    } tensors[OUTPUTS];
    unsigned count;
    int64_t shape[3];
    void *shape_data; /* of packed: points to `shape` */
};

static void add_output(struct output *o, const char *suffix, enum tensor_dtype dtype, size_t rows,
                       size_t columns, void **data)
{
    if (!rows)
        return;
    o->tensors[o->count].suffix = suffix;
    o->tensors[o->count].dtype = dtype;
    o->tensors[o->count].shape[0] = rows;
    o->tensors[o->count].shape[1] = columns;
    o->tensors[o->count].ndim = columns ? 2 : 1;
    o->tensors[o->count].bytes =
        rows * (columns ? columns : 1) * tensor_dtype_info(dtype)->block_bytes;
    o->tensors[o->count++].data = data;
}

static ptxgen_status lay_out_packed(const struct layer *l, struct output *o, ptxgen_error *err)
{
    ptxgen_marlin_packed *p = &o->packed;
    ptxgen_status status = ptxgen_marlin_packed_layout(&l->spec, p, err);
    if (status != PTXGEN_OK)
        return status;
    const int64_t shape[3] = {l->spec.k, l->spec.n, l->spec.group_size};
    memcpy(o->shape, shape, sizeof shape);
    o->shape_data = o->shape;
    enum tensor_dtype scales = l->spec.type == PTXGEN_BF16 ? TENSOR_BF16 : TENSOR_F16;
    add_output(o, packed_names.codes, TENSOR_U8, p->codes_bytes, 0, &p->codes);
    add_output(o, packed_names.scales, scales, p->scales_bytes / 2, 0, &p->scales);
    add_output(o, packed_names.zeros, TENSOR_U8, p->zeros_bytes, 0, &p->zeros);
    add_output(o, packed_names.order, TENSOR_I32, p->order_bytes / 4, 0, (void **)&p->order);
    add_output(o, packed_names.shape, TENSOR_I64, 3, 0, &o->shape_data);
    return PTXGEN_OK;
}

static ptxgen_status lay_out_checkpoint(const struct layer *l, ptxgen_w4_format format,
                                        struct output *o, ptxgen_error *err)
{
    static const enum tensor_dtype dtypes[] = {[PTXGEN_W4_F32] = TENSOR_F32,
                                               [PTXGEN_W4_F16] = TENSOR_F16,
                                               [PTXGEN_W4_BF16] = TENSOR_BF16,
                                               [PTXGEN_W4_I32] = TENSOR_I32,
                                               [PTXGEN_W4_I64] = TENSOR_I64};
    if (format == PTXGEN_W4_MARLIN && l->info.act_order)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s: a marlin file has no place for the order of rows (g_idx)",
                           l->prefix);
    ptxgen_w4_checkpoint *c = &o->checkpoint;
    ptxgen_status status = ptxgen_w4_layout(&l->info, format, c, err);
    if (status != PTXGEN_OK)
        return status;
    const struct layer_names *n = layer_names_of(format);
    const struct {
        const char *suffix;
        ptxgen_w4_tensor *tensor;
        bool vector;
    } tensors[OUTPUTS] = {{n->weights, &c->weights, false},
                          {n->scales, &c->scales, false},
                          {n->zeros, &c->zeros, false},
                          {n->g_idx, &c->g_idx, true},
                          {n->shape, &c->shape, true}};
    for (int i = 0; i < OUTPUTS; i++)
        add_output(o, tensors[i].suffix, dtypes[tensors[i].tensor->dtype],
                   tensors[i].tensor->shape[0], tensors[i].vector ? 0 : tensors[i].tensor->shape[1],
                   &tensors[i].tensor->data);
    return PTXGEN_OK;
}

static ptxgen_status lay_out(const struct conversion *c, const struct layer *l, struct output *o,
                             ptxgen_error *err)
{
    memset(o, 0, sizeof *o);
    return c->request->to == CONVERT_PACKED
               ? lay_out_packed(l, o, err)
               : lay_out_checkpoint(l, (ptxgen_w4_format)c->request->to, o, err);
}

static ptxgen_status declare_layer(struct conversion *c, struct layer *l, ptxgen_error *err)
{
    struct output o;
    ptxgen_status status = lay_out(c, l, &o, err);
    for (unsigned i = 0; status == PTXGEN_OK && i < o.count; i++) {
        char name[1024];
        snprintf(name, sizeof name, "%s.%s", l->prefix, o.tensors[i].suffix);
        const struct named_tensor t = {.name = name,
                                       .dtype = o.tensors[i].dtype,
                                       .ndim = o.tensors[i].ndim,
                                       .shape = {o.tensors[i].shape[0], o.tensors[i].shape[1]},
                                       .bytes = o.tensors[i].bytes};
        status = safetensors_writer_declare(c->writer, &t, err);
    }
    return status;
}

/* ---- the conversion of a layer ---- */

static void free_matrix(ptxgen_w4_matrix *m)
{
    free(m->codes);
    free(m->scales);
    free(m->zeros);
    free(m->g_idx);
}

/* By way of the neutral form. */
static ptxgen_status convert_by_matrix(const struct layer *l, struct output *o, ptxgen_error *err)
{
    const ptxgen_w4_info *info = &l->info;
    ptxgen_w4_matrix m = {
        .codes = malloc(info->k * info->n),
        .scales = malloc(info->groups * info->n * ptxgen_element_size(info->scale_type)),
        .zeros = malloc(info->groups * info->n),
        .g_idx = malloc(info->k * sizeof(int32_t))};
    ptxgen_status status = PTXGEN_OK;
    if (!m.codes || !m.scales || !m.zeros || !m.g_idx)
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the weights");
    if (status == PTXGEN_OK)
        status = l->packed ? ptxgen_marlin_unpack(&l->spec, &l->from_packed, &m, NULL, err)
                           : ptxgen_w4_unpack(&l->from, &m, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w4_pack(&m, &o->checkpoint, err);
    free_matrix(&m);
    return status;
}

static ptxgen_status fill_output(const struct conversion *c, const struct layer *l,
                                 struct output *o, ptxgen_error *err)
{
    const ptxgen_w4_repack_options options = {.threads = c->request->threads};
    if (c->request->to == CONVERT_PACKED)
        return ptxgen_marlin_pack(&l->spec, &l->from, NULL, &o->packed, &options, err);
    if (c->request->to == PTXGEN_W4_MARLIN && !l->packed)
        return ptxgen_w4_to_marlin(&l->from, &o->checkpoint, NULL, &options, err);
    return convert_by_matrix(l, o, err);
}

static ptxgen_status allocate_output(struct output *o, ptxgen_error *err)
{
    for (unsigned i = 0; i < o->count; i++) {
        if (*o->tensors[i].data)
            continue;
        *o->tensors[i].data = malloc(o->tensors[i].bytes);
        if (!*o->tensors[i].data)
            return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes",
                               o->tensors[i].bytes);
    }
    return PTXGEN_OK;
}

static ptxgen_status write_layer(struct conversion *c, struct layer *l, ptxgen_error *err)
{
    struct output o;
    ptxgen_status status = lay_out(c, l, &o, err);
    if (status == PTXGEN_OK)
        status = allocate_output(&o, err);
    ptxgen_error inner;
    if (status == PTXGEN_OK && (status = fill_output(c, l, &o, &inner)) != PTXGEN_OK)
        ptxgen_fail(err, status, "%s: %s", l->prefix, inner.message);
    for (unsigned i = 0; status == PTXGEN_OK && i < o.count; i++)
        status = safetensors_writer_append(c->writer, *o.tensors[i].data, o.tensors[i].bytes, err);
    for (unsigned i = 0; i < o.count; i++)
        if (*o.tensors[i].data != o.shape)
            free(*o.tensors[i].data);
    return status;
}

/* ---- the file ---- */

/* The input's metadata, but for what the new format and the options say. */
static ptxgen_status write_metadata(struct conversion *c, ptxgen_error *err)
{
    const struct safetensors_file *from = tensor_store_safetensors(c->store);
    ptrdiff_t group_size = c->request->choice.group_size;
    const char *key, *value;
    char text[24];
    ptxgen_status status = safetensors_writer_metadata(c->writer, "checkpoint_format",
                                                       convert_formats[c->request->to], err);
    for (size_t i = 0;
         status == PTXGEN_OK && (key = safetensors_metadata_at(from, i, &value)) != NULL; i++)
        if (strcmp(key, "checkpoint_format") && (!group_size || strcmp(key, "group_size")))
            status = safetensors_writer_metadata(c->writer, key, value, err);
    snprintf(text, sizeof text, "%td", group_size);
    if (status == PTXGEN_OK && group_size)
        status = safetensors_writer_metadata(c->writer, "group_size", text, err);
    return status;
}

/* Each tensor in its place, each layer at its first tensor. */
static ptxgen_status declare_all(struct conversion *c, ptxgen_error *err)
{
    const struct tensor_list *tensors = tensor_store_tensors(c->store);
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < tensors->count; i++) {
        struct layer *l = layer_of(c, tensors->items[i].name);
        if (!l)
            status = safetensors_writer_declare(c->writer, &tensors->items[i], err);
        else if (!l->declared)
            status = declare_layer(c, l, err);
        if (l)
            l->declared = true;
    }
    return status;
}

static ptxgen_status write_all(struct conversion *c, struct convert_outcome *outcome,
                               ptxgen_error *err)
{
    const struct tensor_list *tensors = tensor_store_tensors(c->store);
    struct progress progress = progress_start("layers", c->layer_count);
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < tensors->count; i++) {
        const struct named_tensor *t = &tensors->items[i];
        struct layer *l = layer_of(c, t->name);
        if (!l) {
            status = safetensors_writer_append(c->writer, t->data, t->bytes, err);
            outcome->copied++;
        } else if (l->declared) {
            status = write_layer(c, l, err);
            l->declared = false;
            progress_update(&progress, ++outcome->converted);
        }
    }
    progress_end(&progress);
    return status;
}

static ptxgen_status write_file(struct conversion *c, struct convert_outcome *outcome,
                                ptxgen_error *err)
{
    ptxgen_status status =
        safetensors_writer_open(c->request->output, c->request->force, &c->writer, err);
    if (status != PTXGEN_OK)
        return status;
    status = write_metadata(c, err);
    if (status == PTXGEN_OK)
        status = declare_all(c, err);
    if (status == PTXGEN_OK)
        status = write_all(c, outcome, err);
    if (status == PTXGEN_OK)
        return safetensors_writer_finish(c->writer, err);
    safetensors_writer_abandon(c->writer);
    return status;
}

ptxgen_status convert(const struct convert_request *request, struct convert_outcome *outcome,
                      ptxgen_error *err)
{
    struct conversion c = {.request = request};
    ptxgen_status status = tensor_store_open_as(TENSOR_SAFETENSORS, request->input, &c.store, err);
    if (status != PTXGEN_OK)
        return status;
    status = find_layers(&c, err);
    if (status == PTXGEN_OK) {
        warn_of_dropped(&c);
        status = write_file(&c, outcome, err);
    }
    for (size_t i = 0; i < c.layer_count; i++) {
        free(c.layers[i].prefix);
        free(c.layers[i].order);
    }
    free(c.layers);
    tensor_store_close(c.store);
    return status;
}
