/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse24_layer.h"

#include "../layer_parts.h"

#include <stdlib.h>
#include <string.h>

static const char *const form_names[SPARSE24_FORMS + 1] = {"bytes",   "nibbles", "bitmask",
                                                           "cutlass", "dense",   NULL};

static const struct {
    const char *values, *metadata;
} suffixes[SPARSE24_FORMS] = {
    [PTXGEN_SPARSE24_BYTES] = {"sparse", "meta_bytes"},
    [PTXGEN_SPARSE24_NIBBLES] = {"sparse", "meta_nibbles"},
    [PTXGEN_SPARSE24_BITMASK] = {"compressed", "bitmask"},
    [PTXGEN_SPARSE24_CUTLASS] = {"sparse", "meta_cutlass"},
    [SPARSE24_DENSE] = {"dense", NULL},
};
static const char shape_suffix[] = "shape"; /* beside a bitmask: N, K */

static const struct {
    ptxgen_dtype dtype;
    ptxgen_sparse24_type type;
} types[] = {{PTXGEN_DTYPE_F32, PTXGEN_SPARSE24_F32},
             {PTXGEN_DTYPE_F16, PTXGEN_SPARSE24_F16},
             {PTXGEN_DTYPE_BF16, PTXGEN_SPARSE24_BF16},
             {PTXGEN_DTYPE_I8, PTXGEN_SPARSE24_S8}};
enum { TYPES = sizeof types / sizeof *types };

/* ---- finding ---- */

static ptxgen_status describe(const ptxgen_tensor *values, struct sparse24_layer *l,
                              ptxgen_error *err)
{
    int type = 0;
    while (type < TYPES && types[type].dtype != values->dtype)
        type++;
    if (type == TYPES || values->ndim != 2)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s; expected a matrix of F32, F16, BF16 or I8", values->name,
                           ptxgen_dtype_find(values->dtype)->name, tensor_shape_text(values).text);
    l->shape = (ptxgen_sparse24_shape){types[type].type, (size_t)values->shape[0],
                                       (size_t)values->shape[1]};
    if (l->form != SPARSE24_DENSE)
        l->shape.k *= 2;
    l->values = (ptxgen_const_span){values->data, values->bytes};
    return PTXGEN_OK;
}

static struct nearest_text nearest_weights(const ptxgen_files *store, const char *prefix)
{
    const char *parts[SPARSE24_FORMS];
    for (int f = 0; f < SPARSE24_FORMS; f++)
        parts[f] = suffixes[f].values;
    return layer_nearest(store, prefix, parts, SPARSE24_FORMS);
}

ptxgen_status sparse24_layer_find(const ptxgen_files *store, const char *prefix, int form,
                                  struct sparse24_layer *l, ptxgen_error *err)
{
    for (int f = form < 0 ? 0 : form; f < (form < 0 ? SPARSE24_FORMS : form + 1); f++) {
        const ptxgen_tensor *values = layer_part(store, prefix, suffixes[f].values);
        const ptxgen_tensor *metadata = layer_part(store, prefix, suffixes[f].metadata);
        if (!values && f == SPARSE24_DENSE)
            values = ptxgen_tensor_list_find(ptxgen_files_tensors(store), prefix);
        if (!values || !metadata != !suffixes[f].metadata)
            continue;
        *l = (struct sparse24_layer){.form = f, .tensors = {values, metadata}};
        if (f == PTXGEN_SPARSE24_BITMASK)
            l->tensors[SPARSE24_SHAPE] = layer_part(store, prefix, shape_suffix);
        if (metadata)
            l->metadata = (ptxgen_const_span){metadata->data, metadata->bytes};
        return describe(values, l, err);
    }
    return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                       "the file has no weight %s%s%s (a weight PREFIX has PREFIX.sparse and "
                       "PREFIX.meta_cutlass, PREFIX.compressed and PREFIX.bitmask …)%s",
                       prefix, form < 0 ? "" : " as ", form < 0 ? "" : form_names[form],
                       nearest_weights(store, prefix).text);
}

bool sparse24_layer_has(const char *suffix)
{
    bool known = !strcmp(suffix, shape_suffix);
    for (int f = 0; f < SPARSE24_FORMS; f++)
        known = known || !strcmp(suffix, suffixes[f].values) ||
                (suffixes[f].metadata && !strcmp(suffix, suffixes[f].metadata));
    return known;
}

/* ---- converting ---- */

static ptxgen_status compress(const ptxgen_sparse24_shape *shape, ptxgen_const_span dense, int form,
                              ptxgen_span values, ptxgen_span metadata, ptxgen_error *err)
{
    if (form != SPARSE24_DENSE)
        return ptxgen_sparse24_compress(shape, dense, values, (ptxgen_sparse24_form)form, metadata,
                                        err);
    memcpy(values.data, dense.data, values.bytes);
    return PTXGEN_OK;
}

static ptxgen_status prune_and_compress(const struct sparse24_layer *l, int form,
                                        ptxgen_span values, ptxgen_span metadata, ptxgen_error *err)
{
    const ptxgen_span pruned = {malloc(l->values.bytes + 1), l->values.bytes};
    if (!pruned.data)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a weight");
    const ptxgen_const_span dense = {memcpy(pruned.data, l->values.data, pruned.bytes),
                                     pruned.bytes};
    ptxgen_status status = ptxgen_sparse24_prune(&l->shape, dense, pruned, err);
    if (status == PTXGEN_OK)
        status = compress(&l->shape, dense, form, values, metadata, err);
    free(pruned.data);
    return status;
}

ptxgen_status sparse24_layer_convert(const struct sparse24_layer *l, bool prune, int form,
                                     ptxgen_span values, ptxgen_span metadata, ptxgen_error *err)
{
    ptxgen_sparse24_form from = (ptxgen_sparse24_form)l->form;
    if (l->form == SPARSE24_DENSE)
        return prune ? prune_and_compress(l, form, values, metadata, err)
                     : compress(&l->shape, l->values, form, values, metadata, err);
    if (form == SPARSE24_DENSE)
        return ptxgen_sparse24_decompress(&l->shape, l->values, from, l->metadata, values, err);
    ptxgen_status status = ptxgen_sparse24_validate(&l->shape, l->values, from, l->metadata, err);
    if (status != PTXGEN_OK)
        return status;
    memcpy(values.data, l->values.data, values.bytes);
    return ptxgen_sparse24_convert(&l->shape, from, l->metadata, (ptxgen_sparse24_form)form,
                                   metadata, err);
}

/* ---- conversions ---- */

/* Of weights that nobody names, dense ones are converted only where --from says so. */
static bool is_layer(const struct conversion *c, const char *prefix, const char *suffix)
{
    const struct sparse24_convert_options *o = c->request->options;
    struct sparse24_layer found;
    (void)suffix;
    return sparse24_layer_find(c->store, prefix, o->from, &found, NULL) == PTXGEN_OK &&
           (found.form != SPARSE24_DENSE || o->from == SPARSE24_DENSE);
}

static ptxgen_status find(const struct conversion *c, const char *prefix, void *layer,
                          ptxgen_error *err)
{
    const struct sparse24_convert_options *o = c->request->options;
    return sparse24_layer_find(c->store, prefix, o->from, layer, err);
}

static ptxgen_status lay_out(const struct convert_request *r, const char *prefix, const void *layer,
                             struct layer_tensors *t, ptxgen_error *err)
{
    const ptxgen_sparse24_shape *shape = &((const struct sparse24_layer *)layer)->shape;
    const int form = r->to;
    bool dense = form == SPARSE24_DENSE;
    size_t values, metadata = 0; /* bytes */
    ptxgen_status status = ptxgen_sparse24_dense_bytes(shape, &values, err);
    if (status == PTXGEN_OK && !dense)
        status = ptxgen_sparse24_metadata_bytes(shape, (ptxgen_sparse24_form)form, &metadata, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_dtype dtype = PTXGEN_DTYPE_F32, of_metadata = PTXGEN_DTYPE_U8;
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == shape->type)
            dtype = types[i].dtype;
    if (form == PTXGEN_SPARSE24_CUTLASS)
        of_metadata = shape->type == PTXGEN_SPARSE24_S8 ? PTXGEN_DTYPE_I32 : PTXGEN_DTYPE_I16;
    layer_tensors_add(t, SPARSE24_VALUES, prefix, suffixes[form].values, dtype, 2, shape->n,
                      dense ? shape->k : shape->k / 2);
    if (!dense && shape->n)
        layer_tensors_add(t, SPARSE24_METADATA, prefix, suffixes[form].metadata, of_metadata, 2,
                          shape->n,
                          metadata / shape->n / ptxgen_dtype_find(of_metadata)->block_bytes);
    if (form == PTXGEN_SPARSE24_BITMASK)
        layer_tensors_add(t, SPARSE24_SHAPE, prefix, shape_suffix, PTXGEN_DTYPE_I64, 1, 2, 0);
    return PTXGEN_OK;
}

static ptxgen_status fill(const struct convert_request *r, const void *layer,
                          const struct layer_tensors *t, ptxgen_error *err)
{
    const struct sparse24_layer *l = layer;
    const struct sparse24_convert_options *o = r->options;
    const int64_t shape[2] = {(int64_t)l->shape.n, (int64_t)l->shape.k};
    const ptxgen_span values = {t->data[SPARSE24_VALUES], t->items[SPARSE24_VALUES].bytes};
    const ptxgen_span metadata = {t->data[SPARSE24_METADATA], t->items[SPARSE24_METADATA].bytes};
    if (t->data[SPARSE24_SHAPE])
        memcpy(t->data[SPARSE24_SHAPE], shape, sizeof shape);
    return sparse24_layer_convert(l, o->prune, r->to, values, metadata, err);
}

const struct layer_kind sparse24_layers = {
    .noun = "weight",
    .none = "compressed 2:4 weight; --layer names a dense one",
    .forms = form_names,
    .layer_bytes = sizeof(struct sparse24_layer),
    .has_plain = true,
    .is_suffix = sparse24_layer_has,
    .is_layer = is_layer,
    .find = find,
    .lay_out = lay_out,
    .fill = fill,
};
