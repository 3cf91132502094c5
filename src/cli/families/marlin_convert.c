/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed layers have PREFIX.marlin_codes, marlin_scales, marlin_zeros and marlin_order
 * (<ptxgen/marlin.h>), and marlin_shape = K, N, group size.
 */
#include "marlin_convert.h"

#include "../../harness/marlin.h"
#include "../layer_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const forms[] = {"gptq",   "gptq_v2", "awq", "pack-quantized",
                                    "marlin", "packed",  NULL};

struct layer {
    bool packed; /* the input: else a checkpoint */
    ptxgen_w4_checkpoint from;
    ptxgen_marlin_packed from_packed;
    ptxgen_marlin_spec spec; /* of the packed form, where there is one on either side */
    ptxgen_w4_info info;
};

/* ---- the input's layers ---- */

static bool is_suffix(const char *suffix)
{
    for (int f = 0; f < LAYER_FORMATS; f++)
        for (int i = 0; i < LAYER_TENSORS; i++)
            if (layer_suffixes[f][i] && !strcmp(suffix, layer_suffixes[f][i]))
                return true;
    return false;
}

/* At weights whose scales are there as well. */
static bool is_layer(const struct conversion *c, const char *prefix, const char *suffix)
{
    for (int f = 0; f < LAYER_FORMATS; f++)
        if (!strcmp(suffix, layer_suffixes[f][LAYER_WEIGHTS]) &&
            layer_part(c->store, prefix, layer_suffixes[f][LAYER_SCALES]))
            return true;
    return false;
}

static ptxgen_status find_checkpoint(const struct conversion *c, const char *prefix,
                                     struct layer *l, ptxgen_error *err)
{
    const struct marlin_convert_options *o = c->request->options;
    ptxgen_status status = layer_find(c->store, prefix, &o->choice, &l->from, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w4_describe(&l->from, &l->info, err);
    if (status != PTXGEN_OK)
        return status;
    l->spec.type = (uint8_t)(o->type_given ? o->type : PTXGEN_F16);
    layer_complete_spec(&l->info, o->type_given, &l->spec);
    return PTXGEN_OK;
}

static ptxgen_status find(const struct conversion *c, const char *prefix, void *layer,
                          ptxgen_error *err)
{
    struct layer *l = layer;
    ptxgen_error inner;
    ptxgen_status status;
    l->packed = layer_is_packed(c->store, prefix);
    if (l->packed && c->request->to == LAYER_PACKED)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is packed already", prefix);
    if (l->packed) {
        status = layer_find_packed(c->store, prefix, &l->spec, &l->from_packed, &inner);
        if (status == PTXGEN_OK)
            l->info = marlin_info(&l->spec);
    } else {
        status = find_checkpoint(c, prefix, l, &inner);
    }
    return status == PTXGEN_OK ? status : ptxgen_fail(err, status, "%s: %s", prefix, inner.message);
}

static bool reads(const struct conversion *c, const char *prefix, const void *layer,
                  const ptxgen_tensor *t)
{
    const struct layer *l = layer;
    const ptxgen_tensor *own[LAYER_TENSORS];
    layer_list_tensors(c->store, prefix, l->packed ? LAYER_PACKED : (int)l->from.format, own);
    for (int i = 0; i < LAYER_TENSORS; i++)
        if (own[i] == t)
            return true;
    return false;
}

static void describe(const struct convert_request *r,
                     struct convert_metadata metadata[CONVERT_METADATA])
{
    const struct marlin_convert_options *o = r->options;
    metadata[0].key = "checkpoint_format";
    snprintf(metadata[0].value, sizeof metadata[0].value, "%s", forms[r->to]);
    if (o->choice.group_size) {
        metadata[1].key = "group_size";
        snprintf(metadata[1].value, sizeof metadata[1].value, "%td", o->choice.group_size);
    }
}

/* ---- the output's tensors ---- */

static ptxgen_status lay_out_packed(const char *prefix, const ptxgen_marlin_spec *spec,
                                    struct layer_tensors *t, ptxgen_error *err)
{
    const char *const *names = layer_suffixes[LAYER_PACKED];
    ptxgen_marlin_packed p;
    ptxgen_status status = ptxgen_marlin_packed_layout(spec, &p, err);
    if (status != PTXGEN_OK)
        return status;
    const struct {
        ptxgen_dtype dtype;
        size_t count;
    } vectors[LAYER_TENSORS] = {
        [LAYER_WEIGHTS] = {PTXGEN_DTYPE_U8, p.codes_bytes},
        [LAYER_SCALES] = {spec->type == PTXGEN_BF16 ? PTXGEN_DTYPE_BF16 : PTXGEN_DTYPE_F16,
                          p.scales_bytes / 2},
        [LAYER_ZEROS] = {PTXGEN_DTYPE_U8, p.zeros_bytes},
        [LAYER_ORDER] = {PTXGEN_DTYPE_I32, p.order_bytes / 4},
        [LAYER_SHAPE] = {PTXGEN_DTYPE_I64, 3},
    };
    for (unsigned i = 0; i < LAYER_TENSORS; i++)
        if (vectors[i].count)
            layer_tensors_add(t, i, prefix, names[i], vectors[i].dtype, 1, vectors[i].count, 0);
    return PTXGEN_OK;
}

static ptxgen_status lay_out_checkpoint(const char *prefix, const ptxgen_w4_info *info,
                                        ptxgen_w4_format format, struct layer_tensors *t,
                                        ptxgen_error *err)
{
    if (format == PTXGEN_W4_MARLIN && info->act_order)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s: a marlin file has no place for the order of rows (g_idx)", prefix);
    ptxgen_w4_checkpoint c;
    ptxgen_w4_tensor *tensors[LAYER_TENSORS];
    ptxgen_status status = ptxgen_w4_layout(info, format, &c, err);
    if (status != PTXGEN_OK)
        return status;
    marlin_list_tensors(&c, tensors);
    for (unsigned i = 0; i < LAYER_TENSORS; i++)
        if (tensors[i]->shape[0])
            layer_tensors_add(t, i, prefix, layer_suffixes[format][i],
                              layer_dtypes[tensors[i]->dtype], i < LAYER_ORDER ? 2 : 1,
                              tensors[i]->shape[0], tensors[i]->shape[1]);
    return PTXGEN_OK;
}

static ptxgen_status lay_out(const struct convert_request *r, const char *prefix, const void *layer,
                             struct layer_tensors *t, ptxgen_error *err)
{
    const struct layer *l = layer;
    return r->to == LAYER_PACKED
               ? lay_out_packed(prefix, &l->spec, t, err)
               : lay_out_checkpoint(prefix, &l->info, (ptxgen_w4_format)r->to, t, err);
}

/* ---- the conversion of a layer ---- */

static ptxgen_status pack(const struct layer *l, const ptxgen_w4_repack_options *options,
                          void *const data[LAYER_TENSORS], ptxgen_error *err)
{
    const int64_t shape[3] = {l->spec.k, l->spec.n, l->spec.group_size};
    ptxgen_marlin_packed p;
    ptxgen_status status = ptxgen_marlin_packed_layout(&l->spec, &p, err);
    if (status != PTXGEN_OK)
        return status;
    p.codes = data[LAYER_WEIGHTS];
    p.scales = data[LAYER_SCALES];
    p.zeros = data[LAYER_ZEROS];
    p.order = data[LAYER_ORDER];
    memcpy(data[LAYER_SHAPE], shape, sizeof shape);
    return ptxgen_marlin_pack(&l->spec, &l->from, NULL, &p, options, err);
}

/* In the file the order of a packed layer's rows may start at any address. */
static ptxgen_status unpack(const struct layer *l, ptxgen_w4_matrix *m, ptxgen_error *err)
{
    ptxgen_marlin_packed p = l->from_packed;
    if (!p.order)
        return ptxgen_marlin_unpack(&l->spec, &p, m, NULL, err);
    uint32_t *order = malloc(p.order_bytes + 1);
    if (!order)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the order of rows");
    p.order = memcpy(order, p.order, p.order_bytes);
    ptxgen_status status = ptxgen_marlin_unpack(&l->spec, &p, m, NULL, err);
    free(order);
    return status;
}

/* By way of the neutral form. */
static ptxgen_status convert_by_matrix(const struct layer *l, const ptxgen_w4_checkpoint *to,
                                       ptxgen_error *err)
{
    ptxgen_w4_matrix m = {.codes = NULL};
    ptxgen_status status = marlin_allocate_matrix(&l->info, &m, err);
    if (status == PTXGEN_OK)
        status = l->packed ? unpack(l, &m, err) : ptxgen_w4_unpack(&l->from, &m, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w4_pack(&m, to, err);
    marlin_free_matrix(&m);
    return status;
}

static ptxgen_status fill(const struct convert_request *r, const void *layer,
                          const struct layer_tensors *t, ptxgen_error *err)
{
    const struct layer *l = layer;
    const struct marlin_convert_options *o = r->options;
    const ptxgen_w4_repack_options options = {.threads = o->threads};
    ptxgen_w4_checkpoint to;
    ptxgen_w4_tensor *tensors[LAYER_TENSORS];
    if (r->to == LAYER_PACKED)
        return pack(l, &options, t->data, err);
    ptxgen_status status = ptxgen_w4_layout(&l->info, (ptxgen_w4_format)r->to, &to, err);
    if (status != PTXGEN_OK)
        return status;
    marlin_list_tensors(&to, tensors);
    for (int i = 0; i < LAYER_TENSORS; i++)
        tensors[i]->data = t->data[i];
    if (r->to == PTXGEN_W4_MARLIN && !l->packed)
        return ptxgen_w4_to_marlin(&l->from, &to, NULL, &options, err);
    return convert_by_matrix(l, &to, err);
}

const struct layer_kind marlin_layers = {
    .noun = "layer",
    .none = "4-bit layer",
    .forms = forms,
    .layer_bytes = sizeof(struct layer),
    .is_suffix = is_suffix,
    .is_layer = is_layer,
    .find = find,
    .reads = reads,
    .describe = describe,
    .lay_out = lay_out,
    .fill = fill,
};
