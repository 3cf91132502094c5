/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of sparse24 from a safetensors file. A layer L has its weight, in any form
 * (sparse24_layer.h), under L or L.weight; where they are there
 *
 *     L.bias           floats [N]
 *     L.weight_scale   of I8: floats [N], or one for all; ones otherwise
 *     L.weight_zero_point, L.input_zero_point   all zeros
 *     L.input_scale    of I8: the scale of the input, one for all; 1 otherwise
 *     an input         floats [M, K], or I8 for a weight of I8
 *
 * A weight that is called L itself may have these as L.bias and so on too.
 */
#include "../../harness/sparse24.h"

#include "files.h"
#include "sparse24_layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BIAS, SCALE, INPUT_SCALE, ZERO, INPUT_ZERO, PARTS };

struct file_layer {
    char weight_name[CONVERT_NAME], name[CONVERT_NAME]; /* "l.weight" and "l", or both the same */
    struct sparse24_layer weight;
    const ptxgen_tensor *parts[PARTS];
};

/* ---- finding ---- */

/* The weight L or L.weight, and what the layer is called. */
static ptxgen_status find_weight(const ptxgen_files *store, const char *layer, struct file_layer *l,
                                 ptxgen_error *err)
{
    static const char suffix[] = ".weight";
    size_t length = strlen(layer), tail = sizeof suffix - 1;
    if (length + tail >= sizeof l->name)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "--layer: a name of %zu bytes, of which there may be %zu", length,
                           sizeof l->name - tail - 1);
    bool has_suffix = length > tail && !strcmp(layer + length - tail, suffix);
    snprintf(l->name, sizeof l->name, "%.*s", (int)(has_suffix ? length - tail : length), layer);
    memcpy(l->weight_name, layer, length + 1);
    ptxgen_error inner;
    ptxgen_status status = sparse24_layer_find(store, layer, -1, &l->weight, &inner);
    if (status == PTXGEN_ERROR_NOT_FOUND && !has_suffix) {
        memcpy(l->weight_name + length, suffix, sizeof suffix);
        if (sparse24_layer_find(store, l->weight_name, -1, &l->weight, NULL) == PTXGEN_OK)
            return PTXGEN_OK;
    }
    return status == PTXGEN_OK ? status : ptxgen_fail(err, status, "%s", inner.message);
}

/* L.PART, or the part of a weight that is called L.weight under that name; not both. */
static ptxgen_status find_part(const ptxgen_files *store, const struct file_layer *l,
                               const char *part, const ptxgen_tensor **to, ptxgen_error *err)
{
    const ptxgen_tensor *other = layer_part(store, l->weight_name, part);
    *to = layer_part(store, l->name, part);
    if (*to && other && *to != other)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "the file has both %s and %s; one of them is the layer's", (*to)->name,
                           other->name);
    *to = *to ? *to : other;
    return PTXGEN_OK;
}

/* Scales go with s8 alone: weights of floats that have one would be others without it. */
static ptxgen_status check_scale(const struct ptxgen_sparse24_spec *s, const ptxgen_tensor *scale,
                                 bool is_input, ptxgen_error *err)
{
    if (s->type != PTXGEN_SPARSE24_S8 && scale)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s: scales go with weights of I8, and this layer's are floats",
                           scale->name);
    return layer_check_scales(scale, is_input, err);
}

static ptxgen_status find_parts(const ptxgen_files *store, const ptxgen_sparse24_spec *s,
                                struct file_layer *l, ptxgen_error *err)
{
    const struct {
        const char *name;
        uint64_t floats; /* 0: other numbers, all 0 */
        bool may_be_one, is_scale;
        const char *why_zeros;
    } parts[PARTS] = {
        [BIAS] = {"bias", s->n, false, false, NULL},
        [SCALE] = {"weight_scale", s->n, true, true, NULL},
        [INPUT_SCALE] = {"input_scale", 1, false, true, NULL},
        [ZERO] = {"weight_zero_point", 0, false, false, "sparse24's weights are symmetric"},
        [INPUT_ZERO] = {"input_zero_point", 0, false, false,
                        "sparse24's activations are symmetric"},
    };
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; status == PTXGEN_OK && i < PARTS; i++) {
        status = find_part(store, l, parts[i].name, &l->parts[i], err);
        if (status == PTXGEN_OK && l->parts[i] && parts[i].floats)
            status = tensor_check_floats(l->parts[i], parts[i].floats, parts[i].may_be_one, err);
        if (status == PTXGEN_OK && parts[i].is_scale)
            status = check_scale(s, l->parts[i], i == INPUT_SCALE, err);
        if (status == PTXGEN_OK && parts[i].why_zeros)
            status = layer_check_zeros(l->parts[i], parts[i].why_zeros, err);
    }
    return status;
}

/* Of s8 the activations are codes. */
static ptxgen_status find_rows(const ptxgen_files *store, const struct family_options *o,
                               const ptxgen_sparse24_spec *s, struct file_rows *rows,
                               ptxgen_error *err)
{
    const char *name = o->names.input;
    if (s->type != PTXGEN_SPARSE24_S8 || !name)
        return file_rows_find(store, o, s->k, s->n, s->residual, rows, err);
    ptxgen_status status = ptxgen_files_require(store, name, &rows->input, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_tensor *t = rows->input;
    if (t->dtype != PTXGEN_DTYPE_I8 || t->ndim != 2 || t->shape[1] != s->k)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is %s %s; expected I8 [M, %u]",
                           name, ptxgen_dtype_find(t->dtype)->name, tensor_shape_text(t).text,
                           s->k);
    rows->count = t->shape[0];
    return file_expect_find(store, o, s->n, s->residual, rows, err);
}

static ptxgen_status find(const ptxgen_files *store, struct family_options *o, void *sources,
                          struct file_rows *rows, ptxgen_error *err)
{
    ptxgen_sparse24_spec *s = option_spec(o);
    struct file_layer *l = sources;
    ptxgen_status status = find_weight(store, o->names.layer, l, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_sparse24_shape *shape = &l->weight.shape;
    if (shape->n > INT32_MAX || shape->k > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s is %zu by %zu", o->names.layer,
                           shape->n, shape->k);
    s->n = (uint32_t)shape->n;
    s->k = (uint32_t)shape->k;
    s->type = (uint8_t)shape->type;
    if (s->type != PTXGEN_SPARSE24_S8 && option_given(o, "y-type") && s->y_type != s->type)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "--y-type goes with weights of I8; %s has Y of its own type",
                           l->weight_name);
    if (s->type != PTXGEN_SPARSE24_S8)
        s->y_type = s->type;
    status = find_parts(store, s, l, err);
    if (status == PTXGEN_OK && s->bias && !l->parts[BIAS])
        status = layer_require_part(store, l->name, "bias", &l->parts[BIAS], err);
    if (l->parts[BIAS])
        s->bias = 1;
    return status == PTXGEN_OK ? find_rows(store, o, s, rows, err) : status;
}

/* Other forms of the same weight are no other tensors than those that were read. */
static void warn(const ptxgen_files *store, const struct family_options *o, const void *sources,
                 const struct file_rows *rows)
{
    const struct file_layer *l = sources;
    (void)o;
    enum { OWN = SPARSE24_TENSORS + PARTS + 2, FORMS = 16 };
    const ptxgen_tensor *used[OWN + FORMS] = {rows->input, rows->expect};
    memcpy(used + 2, l->weight.tensors, sizeof l->weight.tensors);
    memcpy(used + 2 + SPARSE24_TENSORS, l->parts, sizeof l->parts);
    size_t count = OWN;
    const ptxgen_tensor_list *all = ptxgen_files_tensors(store);
    size_t prefix = strlen(l->weight_name);
    for (size_t i = 0; i < all->count && count < OWN + FORMS; i++) {
        const char *name = all->items[i].name, *dot = strrchr(name, '.');
        if (dot == name + prefix && !strncmp(name, l->weight_name, prefix) &&
            sparse24_layer_has(dot + 1))
            used[count++] = &all->items[i];
    }
    layer_warn_of_unused(store, l->name, used, count);
}

/* ---- filling ---- */

static ptxgen_status take(struct problem *p, const void *sources, const struct file_rows *rows,
                          ptxgen_error *err)
{
    const struct file_layer *l = sources;
    const struct sparse24_weights *w = p->own;
    ptxgen_status status = sparse24_layer_convert(&l->weight, false, PTXGEN_SPARSE24_BYTES,
                                                  w->values, w->metadata, err);
    if (status != PTXGEN_OK)
        return status;
    take_tensor(p, SPARSE24_AT_BIAS, l->parts[BIAS]);
    problem_fill_ones(p, SPARSE24_AT_W_SCALE); /* where the file has none */
    take_tensor(p, SPARSE24_AT_W_SCALE, l->parts[SCALE]);
    if (rows->input)
        problem_fill_ones(p, SPARSE24_AT_X_SCALE);
    take_tensor(p, SPARSE24_AT_X_SCALE, l->parts[INPUT_SCALE]);
    return sparse24_pack_weights(p, err);
}

/* Of a weight in several forms it is the one that run reads. */
bool sparse24_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                        struct family_options *o, struct recognised_names *names)
{
    const char *dot = strrchr(weights->name, '.');
    struct sparse24_layer l;
    o->names.layer = names->layer;
    return dot && sparse24_layer_has(dot + 1) &&
           layer_split(weights->name, dot + 1, names->layer, sizeof names->layer) &&
           sparse24_layer_find(files, names->layer, -1, &l, NULL) == PTXGEN_OK &&
           l.form != SPARSE24_DENSE && l.tensors[SPARSE24_VALUES] == weights;
}

const struct family_file sparse24_file = {PTXGEN_FILES_SAFETENSORS, sizeof(struct file_layer), find,
                                          warn, take};
