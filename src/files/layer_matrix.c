/* SPDX-License-Identifier: Apache-2.0 */
/* Layers whose weights are a matrix as it is: in a type of blocks of GGUF, or of floats. */
#include "layer_kinds.h"
#include "number_tensor.h"

#include <string.h>

static bool has_blocks(const ptxgen_tensor *t)
{
    return ptxgen_dtype_find(t->dtype)->block_elements > 1 &&
           ptxgen_dtype_find(t->dtype)->ggml_type >= 0;
}

static bool has_floats(const ptxgen_tensor *t)
{
    return tensor_is_float(t->dtype);
}

/* L.weight, or L itself; NULL where there is none of two dimensions. */
static const ptxgen_tensor *matrix_of(const ptxgen_files *files, const char *name)
{
    const ptxgen_tensor *t = layer_part(files, name, "weight");
    t = t ? t : ptxgen_tensor_list_find(ptxgen_files_tensors(files), name);
    return t && t->ndim == 2 && t->shape[0] <= INT32_MAX && t->shape[1] <= INT32_MAX ? t : NULL;
}

static bool gguf_has(const ptxgen_files *files, const char *name)
{
    const ptxgen_tensor *t = matrix_of(files, name);
    return t && has_blocks(t);
}

static bool floats_has(const ptxgen_files *files, const char *name)
{
    const ptxgen_tensor *t = matrix_of(files, name);
    return t && has_floats(t);
}

static struct nearest_text nearest_matrices(const ptxgen_files *files, const char *name)
{
    static const char *const part[] = {"weight"};
    return layer_nearest(files, name, part, 1);
}

static ptxgen_status find(const ptxgen_files *files, const char *name,
                          bool (*takes)(const ptxgen_tensor *), const char *expected,
                          ptxgen_layer *l, ptxgen_error *err)
{
    const ptxgen_tensor *t = layer_part(files, name, "weight");
    t = t ? t : ptxgen_tensor_list_find(ptxgen_files_tensors(files), name);
    if (!t)
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "the file has no matrix %s.weight or %s%s",
                           name, name, nearest_matrices(files, name).text);
    if (!takes(t) || !matrix_of(files, name))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is %s %s; expected a matrix %s",
                           t->name, ptxgen_dtype_find(t->dtype)->name, tensor_shape_text(t).text,
                           expected);
    const struct layer_floats bias = {"bias", t->shape[0], .one = false};
    l->parts[PTXGEN_LAYER_WEIGHT] = t;
    return layer_find_floats(files, name, &bias, &l->parts[PTXGEN_LAYER_BIAS], err);
}

static ptxgen_status gguf_find(const ptxgen_files *files, const char *name,
                               const ptxgen_layer_choice *choice, ptxgen_layer *l,
                               ptxgen_error *err)
{
    (void)choice;
    return find(files, name, has_blocks, "in a type of blocks of GGUF", l, err);
}

static ptxgen_status floats_find(const ptxgen_files *files, const char *name,
                                 const ptxgen_layer_choice *choice, ptxgen_layer *l,
                                 ptxgen_error *err)
{
    (void)choice;
    return find(files, name, has_floats, "of F32, F16 or BF16", l, err);
}

/* By their names: what else is a matrix of floats may be the scales of another layer. */
static bool is_called_weight(const ptxgen_tensor *t, char *name, size_t size)
{
    return t->ndim == 2 && layer_split(t->name, "weight", name, size);
}

static bool gguf_recognise(const ptxgen_files *files, const ptxgen_tensor *weights, char *name,
                           size_t size)
{
    (void)files;
    return has_blocks(weights) && is_called_weight(weights, name, size);
}

static bool floats_recognise(const ptxgen_files *files, const ptxgen_tensor *weights, char *name,
                             size_t size)
{
    (void)files;
    return has_floats(weights) && is_called_weight(weights, name, size);
}

const struct layer_kind_row layer_gguf = {gguf_has, gguf_find, gguf_recognise,
                                          PTXGEN_LAYER_ONE_FORM, PTXGEN_LAYER_ONE_FORM};
const struct layer_kind_row layer_floats = {floats_has, floats_find, floats_recognise,
                                            PTXGEN_LAYER_ONE_FORM, PTXGEN_LAYER_ONE_FORM};
