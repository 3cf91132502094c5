/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse24_convert.h"

#include "../../files/layer_kinds.h"

#include <stdlib.h>
#include <string.h>

static const char *const form_names[SPARSE24_FORMS + 1] = {"bytes",   "nibbles", "bitmask",
                                                           "cutlass", "dense",   NULL};
/* The places of a weight's tensors; a dense one has values alone, and only a bitmask a shape. */
enum { VALUES, METADATA, SHAPE };

static const struct {
    ptxgen_dtype dtype;
    ptxgen_sparse24_type type;
} types[] = {{PTXGEN_DTYPE_F32, PTXGEN_SPARSE24_F32},
             {PTXGEN_DTYPE_F16, PTXGEN_SPARSE24_F16},
             {PTXGEN_DTYPE_BF16, PTXGEN_SPARSE24_BF16},
             {PTXGEN_DTYPE_I8, PTXGEN_SPARSE24_S8}};
enum { TYPES = sizeof types / sizeof *types };

static const char *suffix_of(int form, ptxgen_layer_part part)
{
    return layer_suffix((ptxgen_layer_form)(PTXGEN_LAYER_BYTES + form), part);
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

static ptxgen_status prune_and_compress(const ptxgen_sparse24_weights *w, int form,
                                        ptxgen_span values, ptxgen_span metadata, ptxgen_error *err)
{
    const ptxgen_span pruned = {malloc(w->dense.bytes + 1), w->dense.bytes};
    if (!pruned.data)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a weight");
    const ptxgen_const_span dense = {memcpy(pruned.data, w->dense.data, pruned.bytes),
                                     pruned.bytes};
    ptxgen_status status = ptxgen_sparse24_prune(&w->shape, dense, pruned, err);
    if (status == PTXGEN_OK)
        status = compress(&w->shape, dense, form, values, metadata, err);
    free(pruned.data);
    return status;
}

ptxgen_status sparse24_convert(const ptxgen_sparse24_weights *w, bool prune, int form,
                               ptxgen_span values, ptxgen_span metadata, ptxgen_error *err)
{
    if (w->dense.data)
        return prune ? prune_and_compress(w, form, values, metadata, err)
                     : compress(&w->shape, w->dense, form, values, metadata, err);
    if (form == SPARSE24_DENSE)
        return ptxgen_sparse24_decompress(&w->shape, w->values, w->form, w->metadata, values, err);
    ptxgen_status status =
        ptxgen_sparse24_validate(&w->shape, w->values, w->form, w->metadata, err);
    if (status != PTXGEN_OK)
        return status;
    memcpy(values.data, w->values.data, values.bytes);
    return ptxgen_sparse24_convert(&w->shape, w->form, w->metadata, (ptxgen_sparse24_form)form,
                                   metadata, err);
}

/* ---- conversions ---- */

static ptxgen_status find_weight(const struct conversion *c, const char *prefix, ptxgen_layer *l,
                                 ptxgen_error *err)
{
    const struct sparse24_convert_options *o = c->request->options;
    const int form = o->from < 0 ? PTXGEN_LAYER_ONE_FORM : PTXGEN_LAYER_BYTES + o->from;
    *l = (ptxgen_layer){.kind = PTXGEN_LAYER_SPARSE24};
    return layer_find_sparse24_weight(c->store, prefix, (ptxgen_layer_form)form, l, err);
}

/* Of weights that nobody names, dense ones are converted only where --from says so. */
static bool is_layer(const struct conversion *c, const char *prefix, const char *suffix)
{
    const struct sparse24_convert_options *o = c->request->options;
    ptxgen_layer found;
    (void)suffix;
    return find_weight(c, prefix, &found, NULL) == PTXGEN_OK &&
           (found.form != PTXGEN_LAYER_DENSE || o->from == SPARSE24_DENSE);
}

static bool is_suffix(const char *suffix)
{
    static const ptxgen_layer_part parts[] = {PTXGEN_LAYER_WEIGHT, PTXGEN_LAYER_METADATA,
                                              PTXGEN_LAYER_SHAPE};
    for (int f = 0; f < SPARSE24_FORMS; f++)
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            const char *own = suffix_of(f, parts[i]);
            if (own && !strcmp(suffix, own))
                return true;
        }
    return false;
}

static ptxgen_status find(const struct conversion *c, const char *prefix, void *layer,
                          ptxgen_error *err)
{
    ptxgen_layer found;
    ptxgen_status status = find_weight(c, prefix, &found, err);
    return status == PTXGEN_OK ? ptxgen_sparse24_from_layer(&found, layer, err) : status;
}

static ptxgen_status lay_out(const struct convert_request *r, const char *prefix, const void *layer,
                             struct layer_tensors *t, ptxgen_error *err)
{
    const ptxgen_sparse24_shape *shape = &((const ptxgen_sparse24_weights *)layer)->shape;
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
    layer_tensors_add(t, VALUES, prefix, suffix_of(form, PTXGEN_LAYER_WEIGHT), dtype, 2, shape->n,
                      dense ? shape->k : shape->k / 2);
    if (!dense && shape->n)
        layer_tensors_add(t, METADATA, prefix, suffix_of(form, PTXGEN_LAYER_METADATA), of_metadata,
                          2, shape->n,
                          metadata / shape->n / ptxgen_dtype_find(of_metadata)->block_bytes);
    if (form == PTXGEN_SPARSE24_BITMASK)
        layer_tensors_add(t, SHAPE, prefix, suffix_of(form, PTXGEN_LAYER_SHAPE), PTXGEN_DTYPE_I64,
                          1, 2, 0);
    return PTXGEN_OK;
}

static ptxgen_status fill(const struct convert_request *r, const void *layer,
                          const struct layer_tensors *t, ptxgen_error *err)
{
    const ptxgen_sparse24_weights *w = layer;
    const struct sparse24_convert_options *o = r->options;
    const int64_t shape[2] = {(int64_t)w->shape.n, (int64_t)w->shape.k};
    const ptxgen_span values = {t->data[VALUES], t->items[VALUES].bytes};
    const ptxgen_span metadata = {t->data[METADATA], t->items[METADATA].bytes};
    if (t->data[SHAPE])
        memcpy(t->data[SHAPE], shape, sizeof shape);
    return sparse24_convert(w, o->prune, r->to, values, metadata, err);
}

const struct layer_kind sparse24_layers = {
    .noun = "weight",
    .none = "compressed 2:4 weight; --layer names a dense one",
    .forms = form_names,
    .layer_bytes = sizeof(ptxgen_sparse24_weights),
    .has_plain = true,
    .is_suffix = is_suffix,
    .is_layer = is_layer,
    .find = find,
    .lay_out = lay_out,
    .fill = fill,
};
