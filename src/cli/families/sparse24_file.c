/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of sparse24 from a safetensors file, whose layers <ptxgen/layer.h> describes. An input
 * is floats [M, K], or I8 for a weight of I8.
 */
#include "../../harness/sparse24.h"

#include "../unused_tensors.h"
#include "files.h"
#include "sparse24_convert.h"

#include <stdio.h>
#include <string.h>

struct file_layer {
    char weight_name[CONVERT_NAME], name[CONVERT_NAME]; /* "l.weight" and "l", or both the same */
    ptxgen_layer layer;
    ptxgen_sparse24_weights weights;
};

/* ---- finding ---- */

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

/* What a name is without ".SUFFIX", if it ends so. */
static void strip(const char *name, const char *suffix, char to[CONVERT_NAME])
{
    if (!layer_split(name, suffix, to, CONVERT_NAME))
        snprintf(to, CONVERT_NAME, "%s", name);
}

static ptxgen_status find_layer(const ptxgen_files *store, const struct family_options *o,
                                struct file_layer *l, ptxgen_error *err)
{
    static const ptxgen_layer_choice choice = {.kind = PTXGEN_LAYER_SPARSE24};
    ptxgen_status status = ptxgen_files_layer(store, o->names.layer, &choice, &l->layer, err);
    if (status == PTXGEN_OK)
        status = ptxgen_sparse24_from_layer(&l->layer, &l->weights, err);
    if (status != PTXGEN_OK)
        return status;
    strip(l->layer.parts[PTXGEN_LAYER_WEIGHT]->name,
          layer_suffix(l->layer.form, PTXGEN_LAYER_WEIGHT), l->weight_name);
    strip(o->names.layer, "weight", l->name);
    const ptxgen_sparse24_shape *shape = &l->weights.shape;
    if (shape->n > INT32_MAX || shape->k > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s is %zu by %zu", o->names.layer,
                           shape->n, shape->k);
    return PTXGEN_OK;
}

static ptxgen_status find(const ptxgen_files *store, struct family_options *o, void *sources,
                          struct file_rows *rows, ptxgen_error *err)
{
    ptxgen_sparse24_spec *s = option_spec(o);
    struct file_layer *l = sources;
    const ptxgen_tensor **bias = &l->layer.parts[PTXGEN_LAYER_BIAS];
    ptxgen_status status = find_layer(store, o, l, err);
    if (status != PTXGEN_OK)
        return status;
    s->n = (uint32_t)l->weights.shape.n;
    s->k = (uint32_t)l->weights.shape.k;
    s->type = (uint8_t)l->weights.shape.type;
    if (s->type != PTXGEN_SPARSE24_S8 && option_given(o, "y-type") && s->y_type != s->type)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "--y-type goes with weights of I8; %s has Y of its own type",
                           l->weight_name);
    if (s->type != PTXGEN_SPARSE24_S8)
        s->y_type = s->type;
    if (s->bias && !*bias)
        status = layer_require_part(store, l->name, "bias", bias, err);
    s->bias |= *bias != NULL;
    return status == PTXGEN_OK ? find_rows(store, o, s, rows, err) : status;
}

/* Other forms of the same weight are no other tensors than those that were read. */
static void warn(const ptxgen_files *store, const struct family_options *o, const void *sources,
                 const struct file_rows *rows)
{
    enum { OWN = PTXGEN_LAYER_PARTS + 2, FORMS = 16 };
    const struct file_layer *l = sources;
    const ptxgen_tensor *used[OWN + FORMS] = {rows->input, rows->expect};
    const ptxgen_tensor_list *all = ptxgen_files_tensors(store);
    size_t count = OWN, prefix = strlen(l->weight_name);
    (void)o;
    memcpy(used + 2, l->layer.parts, sizeof l->layer.parts);
    for (size_t i = 0; i < all->count && count < OWN + FORMS; i++) {
        const char *name = all->items[i].name, *dot = strrchr(name, '.');
        if (dot == name + prefix && !strncmp(name, l->weight_name, prefix) &&
            sparse24_layers.is_suffix(dot + 1))
            used[count++] = &all->items[i];
    }
    warn_of_unused_tensors(store, l->name, used, count);
}

/* ---- filling ---- */

static ptxgen_status take(struct problem *p, const void *sources, const struct file_rows *rows,
                          ptxgen_error *err)
{
    const struct file_layer *l = sources;
    const ptxgen_tensor *const *parts = l->layer.parts;
    const struct sparse24_weights *w = p->own;
    ptxgen_status status =
        sparse24_convert(&l->weights, false, PTXGEN_SPARSE24_BYTES, w->values, w->metadata, err);
    if (status != PTXGEN_OK)
        return status;
    take_tensor(p, SPARSE24_AT_BIAS, parts[PTXGEN_LAYER_BIAS]);
    problem_fill_ones(p, SPARSE24_AT_W_SCALE); /* where the file has none */
    take_tensor(p, SPARSE24_AT_W_SCALE, parts[PTXGEN_LAYER_SCALE]);
    if (rows->input)
        problem_fill_ones(p, SPARSE24_AT_X_SCALE);
    take_tensor(p, SPARSE24_AT_X_SCALE, parts[PTXGEN_LAYER_INPUT_SCALE]);
    return sparse24_pack_weights(p, err);
}

bool sparse24_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                        struct family_options *o, struct recognised_names *names)
{
    o->names.layer = names->layer;
    return ptxgen_files_layer_of(files, weights, names->layer, sizeof names->layer) ==
           PTXGEN_LAYER_SPARSE24;
}

const struct family_file sparse24_file = {PTXGEN_FILES_SAFETENSORS, sizeof(struct file_layer), find,
                                          warn, take};
