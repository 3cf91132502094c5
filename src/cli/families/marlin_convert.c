/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed layers have PREFIX.marlin_codes, marlin_scales, marlin_zeros and marlin_order
 * (<ptxgen/marlin.h>), and marlin_shape = K, N, group size.
 */
#include "marlin_convert.h"

#include "../../harness/marlin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const forms[] = {"gptq",   "gptq_v2", "awq", "pack-quantized",
                                    "marlin", "packed",  NULL};

/* Forms are those of ptxgen_w4_format, then "packed"; tensors have the places of their parts. */
enum { PACKED = PTXGEN_LAYER_PACKED - PTXGEN_LAYER_GPTQ, FORMS, TENSORS = PTXGEN_LAYER_SHAPE + 1 };

struct layer {
    bool packed; /* the input: else a checkpoint */
    ptxgen_layer found;
    ptxgen_w4_checkpoint from;
    ptxgen_marlin_packed from_packed;
    ptxgen_marlin_spec spec; /* of the packed form, where there is one on either side */
    ptxgen_w4_info info;
};

/* What tensor i, a ptxgen_layer_part, is called in a form. */
static const char *suffix_of(int form, int i)
{
    return layer_suffix((ptxgen_layer_form)(PTXGEN_LAYER_GPTQ + form), (ptxgen_layer_part)i);
}

/* ---- the input's layers ---- */

static bool is_suffix(const char *suffix)
{
    for (int f = 0; f < FORMS; f++)
        for (int i = 0; i < TENSORS; i++) {
            const char *own = suffix_of(f, i);
            if (own && !strcmp(suffix, own))
                return true;
        }
    return false;
}

/* At weights whose scales are there as well. */
static bool is_layer(const struct conversion *c, const char *prefix, const char *suffix)
{
    for (int f = 0; f < FORMS; f++)
        if (!strcmp(suffix, suffix_of(f, PTXGEN_LAYER_WEIGHT)) &&
            layer_part(c->store, prefix, suffix_of(f, PTXGEN_LAYER_SCALE)))
            return true;
    return false;
}

static ptxgen_status find_checkpoint(const struct conversion *c, const char *prefix,
                                     struct layer *l, ptxgen_error *err)
{
    const struct marlin_convert_options *o = c->request->options;
    ptxgen_status status = marlin_layer_find(c->store, prefix, &o->choice, &l->found, err);
    if (status == PTXGEN_OK)
        status = marlin_layer_describe(&l->found, &l->from, &l->info, err);
    if (status != PTXGEN_OK)
        return status;
    l->spec.type = (uint8_t)(o->type_given ? o->type : PTXGEN_F16);
    marlin_layer_complete_spec(&l->info, o->type_given, &l->spec);
    return PTXGEN_OK;
}

static ptxgen_status find(const struct conversion *c, const char *prefix, void *layer,
                          ptxgen_error *err)
{
    struct layer *l = layer;
    ptxgen_error inner;
    ptxgen_status status;
    l->packed = marlin_layer_is_packed(c->store, prefix);
    if (l->packed && c->request->to == PACKED)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is packed already", prefix);
    if (l->packed) {
        const struct layer_choice any = {NULL, 0};
        status = marlin_layer_find(c->store, prefix, &any, &l->found, &inner);
        if (status == PTXGEN_OK)
            status = ptxgen_marlin_packed_from_layer(&l->found, &l->spec, &l->from_packed, &inner);
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
    (void)c, (void)prefix;
    for (int i = 0; i < TENSORS; i++)
        if (l->found.parts[i] == t)
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
    ptxgen_marlin_packed p;
    ptxgen_status status = ptxgen_marlin_packed_layout(spec, &p, err);
    if (status != PTXGEN_OK)
        return status;
    const struct {
        ptxgen_dtype dtype;
        size_t count;
    } vectors[TENSORS] = {
        [PTXGEN_LAYER_WEIGHT] = {PTXGEN_DTYPE_U8, p.codes_bytes},
        [PTXGEN_LAYER_SCALE] = {spec->type == PTXGEN_BF16 ? PTXGEN_DTYPE_BF16 : PTXGEN_DTYPE_F16,
                                p.scales_bytes / 2},
        [PTXGEN_LAYER_ZERO] = {PTXGEN_DTYPE_U8, p.zeros_bytes},
        [PTXGEN_LAYER_ORDER] = {PTXGEN_DTYPE_I32, p.order_bytes / 4},
        [PTXGEN_LAYER_SHAPE] = {PTXGEN_DTYPE_I64, 3},
    };
    for (unsigned i = 0; i < TENSORS; i++)
        if (vectors[i].count)
            layer_tensors_add(t, i, prefix, suffix_of(PACKED, (int)i), vectors[i].dtype, 1,
                              vectors[i].count, 0);
    return PTXGEN_OK;
}

/* The files' dtypes of ptxgen_w4_dtype. */
static const ptxgen_dtype dtypes[] = {
    [PTXGEN_W4_F32] = PTXGEN_DTYPE_F32,   [PTXGEN_W4_F16] = PTXGEN_DTYPE_F16,
    [PTXGEN_W4_BF16] = PTXGEN_DTYPE_BF16, [PTXGEN_W4_I32] = PTXGEN_DTYPE_I32,
    [PTXGEN_W4_I64] = PTXGEN_DTYPE_I64,   [PTXGEN_W4_I8] = PTXGEN_DTYPE_I8};

static ptxgen_status lay_out_checkpoint(const char *prefix, const ptxgen_w4_info *info,
                                        ptxgen_w4_format format, struct layer_tensors *t,
                                        ptxgen_error *err)
{
    if (format == PTXGEN_W4_MARLIN && info->act_order)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s: a marlin file has no place for the order of rows (g_idx)", prefix);
    ptxgen_w4_checkpoint c;
    ptxgen_w4_tensor *tensors[TENSORS];
    ptxgen_status status = ptxgen_w4_layout(info, format, &c, err);
    if (status != PTXGEN_OK)
        return status;
    marlin_list_tensors(&c, tensors);
    for (unsigned i = 0; i < TENSORS; i++)
        if (tensors[i]->shape[0])
            layer_tensors_add(t, i, prefix, suffix_of((int)format, (int)i),
                              dtypes[tensors[i]->dtype], i < PTXGEN_LAYER_ORDER ? 2 : 1,
                              tensors[i]->shape[0], tensors[i]->shape[1]);
    return PTXGEN_OK;
}

static ptxgen_status lay_out(const struct convert_request *r, const char *prefix, const void *layer,
                             struct layer_tensors *t, ptxgen_error *err)
{
    const struct layer *l = layer;
    return r->to == PACKED ? lay_out_packed(prefix, &l->spec, t, err)
                           : lay_out_checkpoint(prefix, &l->info, (ptxgen_w4_format)r->to, t, err);
}

/* ---- the conversion of a layer ---- */

static ptxgen_status pack(const struct layer *l, const ptxgen_w4_repack_options *options,
                          void *const data[TENSORS], ptxgen_error *err)
{
    const int64_t shape[3] = {l->spec.k, l->spec.n, l->spec.group_size};
    ptxgen_marlin_packed p;
    ptxgen_status status = ptxgen_marlin_packed_layout(&l->spec, &p, err);
    if (status != PTXGEN_OK)
        return status;
    p.codes = data[PTXGEN_LAYER_WEIGHT];
    p.scales = data[PTXGEN_LAYER_SCALE];
    p.zeros = data[PTXGEN_LAYER_ZERO];
    p.order = data[PTXGEN_LAYER_ORDER];
    memcpy(data[PTXGEN_LAYER_SHAPE], shape, sizeof shape);
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
    ptxgen_w4_tensor *tensors[TENSORS];
    if (r->to == PACKED)
        return pack(l, &options, t->data, err);
    ptxgen_status status = ptxgen_w4_layout(&l->info, (ptxgen_w4_format)r->to, &to, err);
    if (status != PTXGEN_OK)
        return status;
    marlin_list_tensors(&to, tensors);
    for (int i = 0; i < TENSORS; i++)
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
