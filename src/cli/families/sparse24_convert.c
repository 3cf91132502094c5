/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse24_convert.h"

#include "sparse24_layer.h"

#include <string.h>

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
    const struct sparse24_layer *l = layer;
    return sparse24_layer_lay_out(prefix, &l->shape, r->to, t, err);
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
    .forms = sparse24_form_names,
    .layer_bytes = sizeof(struct sparse24_layer),
    .has_plain = true,
    .is_suffix = sparse24_layer_has,
    .is_layer = is_layer,
    .find = find,
    .lay_out = lay_out,
    .fill = fill,
};
