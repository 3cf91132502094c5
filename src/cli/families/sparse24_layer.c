/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse24_layer.h"

#include <stdio.h>
#include <string.h>

const char *const sparse24_form_names[SPARSE24_FORMS + 1] = {"bytes",   "nibbles", "bitmask",
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
    enum tensor_dtype dtype;
    ptxgen_sparse24_type type;
} types[] = {{TENSOR_F32, PTXGEN_SPARSE24_F32},
             {TENSOR_F16, PTXGEN_SPARSE24_F16},
             {TENSOR_BF16, PTXGEN_SPARSE24_BF16},
             {TENSOR_I8, PTXGEN_SPARSE24_S8}};
enum { TYPES = sizeof types / sizeof *types };

/* ---- finding ---- */

static const struct named_tensor *find(const struct tensor_store *store, const char *prefix,
                                       const char *suffix)
{
    char name[SPARSE24_NAME];
    snprintf(name, sizeof name, "%s%s%s", prefix, suffix ? "." : "", suffix ? suffix : "");
    return tensor_list_find(tensor_store_tensors(store), name);
}

static ptxgen_status describe(const struct named_tensor *values, struct sparse24_layer *l,
                              ptxgen_error *err)
{
    int type = 0;
    while (type < TYPES && types[type].dtype != values->dtype)
        type++;
    if (type == TYPES || values->ndim != 2)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s; expected a matrix of F32, F16, BF16 or I8", values->name,
                           tensor_dtype_info(values->dtype)->name, tensor_shape_text(values).text);
    l->shape = (ptxgen_sparse24_shape){types[type].type, (size_t)values->shape[0],
                                       (size_t)values->shape[1]};
    if (l->form != SPARSE24_DENSE)
        l->shape.k *= 2;
    l->values = (ptxgen_const_span){values->data, values->bytes};
    return PTXGEN_OK;
}

ptxgen_status sparse24_layer_find(const struct tensor_store *store, const char *prefix, int form,
                                  struct sparse24_layer *l, ptxgen_error *err)
{
    for (int f = form < 0 ? 0 : form; f < (form < 0 ? SPARSE24_FORMS : form + 1); f++) {
        const struct named_tensor *values = find(store, prefix, suffixes[f].values);
        const struct named_tensor *metadata = NULL;
        if (!values && f == SPARSE24_DENSE)
            values = find(store, prefix, NULL);
        if (suffixes[f].metadata)
            metadata = find(store, prefix, suffixes[f].metadata);
        if (!values || !metadata != !suffixes[f].metadata)
            continue;
        *l = (struct sparse24_layer){.form = f, .tensors = {values, metadata}};
        if (f == PTXGEN_SPARSE24_BITMASK)
            l->tensors[2] = find(store, prefix, shape_suffix);
        if (metadata)
            l->metadata = (ptxgen_const_span){metadata->data, metadata->bytes};
        return describe(values, l, err);
    }
    return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                       "the file has no weight %s%s%s (a weight PREFIX has PREFIX.sparse and "
                       "PREFIX.meta_cutlass, PREFIX.compressed and PREFIX.bitmask …)",
                       prefix, form < 0 ? "" : " as ", form < 0 ? "" : sparse24_form_names[form]);
}

size_t sparse24_layer_prefix(const char *name)
{
    const char *dot = strrchr(name, '.');
    bool known = dot && !strcmp(dot + 1, shape_suffix);
    for (int f = 0; dot && f < SPARSE24_FORMS; f++)
        known = known || !strcmp(dot + 1, suffixes[f].values) ||
                (suffixes[f].metadata && !strcmp(dot + 1, suffixes[f].metadata));
    return known ? (size_t)(dot - name) : 0;
}

/* ---- writing ---- */

static void add(struct sparse24_layer_tensors *t, const char *prefix, const char *suffix,
                enum tensor_dtype dtype, uint64_t rows, uint64_t columns, size_t bytes)
{
    snprintf(t->names[t->count], SPARSE24_NAME, "%s.%s", prefix, suffix);
    t->items[t->count] = (struct named_tensor){.name = t->names[t->count],
                                               .dtype = dtype,
                                               .ndim = columns ? 2 : 1,
                                               .shape = {rows, columns},
                                               .bytes = bytes};
    t->count++;
}

ptxgen_status sparse24_layer_lay_out(const char *prefix, const ptxgen_sparse24_shape *shape,
                                     int form, struct sparse24_layer_tensors *t, ptxgen_error *err)
{
    bool dense = form == SPARSE24_DENSE;
    size_t values, metadata = 0;
    ptxgen_status status = ptxgen_sparse24_dense_bytes(shape, &values, err);
    if (status == PTXGEN_OK && !dense)
        status = ptxgen_sparse24_metadata_bytes(shape, (ptxgen_sparse24_form)form, &metadata, err);
    if (status != PTXGEN_OK)
        return status;
    enum tensor_dtype dtype = TENSOR_F32, of_metadata = TENSOR_U8;
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == shape->type)
            dtype = types[i].dtype;
    if (form == PTXGEN_SPARSE24_CUTLASS)
        of_metadata = shape->type == PTXGEN_SPARSE24_S8 ? TENSOR_I32 : TENSOR_I16;
    t->count = 0;
    add(t, prefix, suffixes[form].values, dtype, shape->n, dense ? shape->k : shape->k / 2,
        dense ? values : values / 2);
    if (!dense && shape->n)
        add(t, prefix, suffixes[form].metadata, of_metadata, shape->n,
            metadata / shape->n / tensor_dtype_info(of_metadata)->block_bytes, metadata);
    if (form == PTXGEN_SPARSE24_BITMASK)
        add(t, prefix, shape_suffix, TENSOR_I64, 2, 0, 2 * sizeof(int64_t));
    return PTXGEN_OK;
}
