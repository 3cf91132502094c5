/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of 2:4 sparse weights. A weight PREFIX, N by K, stands in a file in one form or several:
 *
 *     dense     PREFIX.dense, or PREFIX itself   [N, K] F32, F16, BF16 or I8
 *     bytes     PREFIX.sparse                    [N, K/2], with PREFIX.meta_bytes    [N, K/4] U8
 *     nibbles   PREFIX.sparse                    …         with PREFIX.meta_nibbles  [N, K/8] U8
 *     bitmask   PREFIX.compressed, as compressed-tensors has it, PREFIX.bitmask      [N, K/8] U8
 *     cutlass   PREFIX.sparse                    …         with PREFIX.meta_cutlass
 *                                                [N, K/16] I16 of 16-bit types, [N, K/32] I32 of I8
 *
 * A layer L has its weight under L or L.weight; where they are there
 *
 *     L.bias           floats [N]
 *     L.weight_scale   of I8: floats [N], or one for all; ones otherwise
 *     L.weight_zero_point, L.input_zero_point   all zeros
 *     L.input_scale    of I8: the scale of the input, one for all; 1 otherwise
 *
 * A weight that is called L itself may have these as L.bias and so on too.
 */
#include "layer_kinds.h"
#include "number_tensor.h"

#include <stdio.h>
#include <string.h>

enum {
    FIRST = PTXGEN_LAYER_BYTES,
    LAST = PTXGEN_LAYER_DENSE,
    FORMS = LAST - FIRST + 1,
    LONGEST = 1023
};
static const char weight_suffix[] = ".weight";
enum { SUFFIX = sizeof weight_suffix - 1 };

/* ---- the weight ---- */

static ptxgen_status check_weight(const ptxgen_tensor *values, ptxgen_error *err)
{
    if (values->ndim == 2 && (tensor_is_float(values->dtype) || values->dtype == PTXGEN_DTYPE_I8))
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "%s is %s %s; expected a matrix of F32, F16, BF16 or I8", values->name,
                       ptxgen_dtype_find(values->dtype)->name, tensor_shape_text(values).text);
}

static struct nearest_text nearest_weights(const ptxgen_files *files, const char *prefix)
{
    const char *parts[FORMS];
    for (int f = 0; f < FORMS; f++)
        parts[f] = layer_suffix((ptxgen_layer_form)(FIRST + f), PTXGEN_LAYER_WEIGHT);
    return layer_nearest(files, prefix, parts, FORMS);
}

/* In this form; false where it is not there. */
static bool find_form(const ptxgen_files *files, const char *prefix, ptxgen_layer_form form,
                      ptxgen_layer *l)
{
    const char *metadata = layer_suffix(form, PTXGEN_LAYER_METADATA);
    l->form = form;
    l->parts[PTXGEN_LAYER_WEIGHT] =
        layer_part(files, prefix, layer_suffix(form, PTXGEN_LAYER_WEIGHT));
    l->parts[PTXGEN_LAYER_METADATA] = layer_part(files, prefix, metadata);
    l->parts[PTXGEN_LAYER_SHAPE] =
        layer_part(files, prefix, layer_suffix(form, PTXGEN_LAYER_SHAPE));
    if (!l->parts[PTXGEN_LAYER_WEIGHT] && form == PTXGEN_LAYER_DENSE)
        l->parts[PTXGEN_LAYER_WEIGHT] =
            ptxgen_tensor_list_find(ptxgen_files_tensors(files), prefix);
    return l->parts[PTXGEN_LAYER_WEIGHT] && !l->parts[PTXGEN_LAYER_METADATA] == !metadata;
}

ptxgen_status layer_find_sparse24_weight(const ptxgen_files *files, const char *prefix,
                                         ptxgen_layer_form form, ptxgen_layer *l, ptxgen_error *err)
{
    static const char *const names[FORMS] = {"bytes", "nibbles", "bitmask", "cutlass", "dense"};
    for (int f = form ? form : FIRST; f <= (form ? (int)form : LAST); f++)
        if (find_form(files, prefix, (ptxgen_layer_form)f, l))
            return check_weight(l->parts[PTXGEN_LAYER_WEIGHT], err);
    return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                       "the file has no weight %s%s%s (a weight PREFIX has PREFIX.sparse and "
                       "PREFIX.meta_cutlass, PREFIX.compressed and PREFIX.bitmask …)%s",
                       prefix, form ? " as " : "", form ? names[form - FIRST] : "",
                       nearest_weights(files, prefix).text);
}

/* ---- the layer's names ---- */

struct names {
    char layer[LONGEST + 1], weight[LONGEST + 1]; /* "l" and "l.weight", or both the same */
};

/* The weight L or L.weight, and what the layer is called. */
static ptxgen_status find_weight(const ptxgen_files *files, const char *name,
                                 ptxgen_layer_form form, struct names *names, ptxgen_layer *l,
                                 ptxgen_error *err)
{
    size_t length = strlen(name);
    if (length + SUFFIX > LONGEST)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer's name of %zu bytes, of which there may be %d", length,
                           LONGEST - SUFFIX);
    bool has_suffix = length > SUFFIX && !strcmp(name + length - SUFFIX, weight_suffix);
    snprintf(names->layer, sizeof names->layer, "%.*s",
             (int)(has_suffix ? length - SUFFIX : length), name);
    memcpy(names->weight, name, length + 1);
    ptxgen_error inner;
    ptxgen_status status = layer_find_sparse24_weight(files, name, form, l, &inner);
    if (status == PTXGEN_ERROR_NOT_FOUND && !has_suffix) {
        memcpy(names->weight + length, weight_suffix, sizeof weight_suffix);
        if (layer_find_sparse24_weight(files, names->weight, form, l, NULL) == PTXGEN_OK)
            return PTXGEN_OK;
    }
    return status == PTXGEN_OK ? status : ptxgen_fail(err, status, "%s", inner.message);
}

/* L.PART, or the part of a weight that is called L.weight under that name; not both. */
static ptxgen_status find_part(const ptxgen_files *files, const struct names *names,
                               const char *part, const ptxgen_tensor **to, ptxgen_error *err)
{
    const ptxgen_tensor *other = layer_part(files, names->weight, part);
    *to = layer_part(files, names->layer, part);
    if (*to && other && *to != other)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "the file has both %s and %s; one of them is the layer's", (*to)->name,
                           other->name);
    *to = *to ? *to : other;
    return PTXGEN_OK;
}

/* ---- the other parts ---- */

/* Scales go with s8 alone: weights of floats that have one would be others without it. */
static ptxgen_status check_scale(const ptxgen_layer *l, const ptxgen_tensor *scale, bool is_input,
                                 ptxgen_error *err)
{
    if (l->parts[PTXGEN_LAYER_WEIGHT]->dtype != PTXGEN_DTYPE_I8 && scale)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s: scales go with weights of I8, and this layer's are floats",
                           scale->name);
    return layer_check_scales(scale, is_input, err);
}

static ptxgen_status find_parts(const ptxgen_files *files, const struct names *names,
                                ptxgen_layer *l, ptxgen_error *err)
{
    const uint64_t n = l->parts[PTXGEN_LAYER_WEIGHT]->shape[0];
    const struct {
        ptxgen_layer_part part;
        const char *name;
        uint64_t floats; /* 0: other numbers, all 0 */
        bool may_be_one, is_scale;
        const char *why_zeros;
    } parts[] = {
        {PTXGEN_LAYER_BIAS, "bias", n, false, false, NULL},
        {PTXGEN_LAYER_SCALE, "weight_scale", n, true, true, NULL},
        {PTXGEN_LAYER_INPUT_SCALE, "input_scale", 1, false, true, NULL},
        {PTXGEN_LAYER_ZERO, "weight_zero_point", 0, false, false,
         "sparse24's weights are symmetric"},
        {PTXGEN_LAYER_INPUT_ZERO, "input_zero_point", 0, false, false,
         "sparse24's activations are symmetric"},
    };
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < sizeof parts / sizeof *parts; i++) {
        const ptxgen_tensor **to = &l->parts[parts[i].part];
        status = find_part(files, names, parts[i].name, to, err);
        if (status == PTXGEN_OK && *to && !parts[i].why_zeros)
            status = tensor_check_floats(*to, parts[i].floats, parts[i].may_be_one, err);
        if (status == PTXGEN_OK && parts[i].is_scale)
            status = check_scale(l, *to, parts[i].part == PTXGEN_LAYER_INPUT_SCALE, err);
        if (status == PTXGEN_OK && parts[i].why_zeros)
            status = layer_check_zeros(*to, parts[i].why_zeros, err);
    }
    return status;
}

static ptxgen_status find(const ptxgen_files *files, const char *name,
                          const ptxgen_layer_choice *choice, ptxgen_layer *l, ptxgen_error *err)
{
    struct names names;
    ptxgen_status status = find_weight(files, name, choice->form, &names, l, err);
    return status == PTXGEN_OK ? find_parts(files, &names, l, err) : status;
}

/* ---- which there are ---- */

/* Whether the weight is compressed: a dense one is a layer of floats to who does not choose. */
static bool has_compressed(const ptxgen_files *files, const char *prefix)
{
    ptxgen_layer l = {.form = PTXGEN_LAYER_ONE_FORM};
    for (int f = FIRST; f < LAST; f++)
        if (find_form(files, prefix, (ptxgen_layer_form)f, &l))
            return true;
    return false;
}

static bool has(const ptxgen_files *files, const char *name)
{
    char weight[LONGEST + 1];
    int length = snprintf(weight, sizeof weight, "%s%s", name, weight_suffix);
    return has_compressed(files, name) || (length <= LONGEST && has_compressed(files, weight));
}

static bool is_suffix(const char *suffix)
{
    for (int f = FIRST; f <= LAST; f++)
        for (int part = 0; part < PTXGEN_LAYER_PARTS; part++) {
            const char *own = layer_suffix((ptxgen_layer_form)f, (ptxgen_layer_part)part);
            if (own && !strcmp(suffix, own))
                return true;
        }
    return false;
}

/* Of a weight in several forms it is the one that is found first. */
static bool recognise(const ptxgen_files *files, const ptxgen_tensor *weights, char *name,
                      size_t size)
{
    const char *dot = strrchr(weights->name, '.');
    ptxgen_layer l = {.form = PTXGEN_LAYER_ONE_FORM};
    return dot && is_suffix(dot + 1) && layer_split(weights->name, dot + 1, name, size) &&
           layer_find_sparse24_weight(files, name, PTXGEN_LAYER_ONE_FORM, &l, NULL) == PTXGEN_OK &&
           l.form != PTXGEN_LAYER_DENSE && l.parts[PTXGEN_LAYER_WEIGHT] == weights;
}

const struct layer_kind_row layer_sparse24 = {has, find, recognise, PTXGEN_LAYER_BYTES,
                                              PTXGEN_LAYER_DENSE};
