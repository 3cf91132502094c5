/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of gguf_linear from a GGUF file. */
#include "../../harness/gguf_linear.h"

#include "gguf_layer.h"

#include <string.h>

/* The type's number, of those that the family multiplies; −1: none. */
static int type_of(const ptxgen_tensor *tensor)
{
    int type;
    for (size_t i = 0; (type = gguf_linear_type_at(i)) >= 0; i++)
        if (!strcmp(ptxgen_gguf_type_find((uint32_t)type)->name,
                    ptxgen_dtype_find(tensor->dtype)->name))
            return type;
    return -1;
}

/* Rows of every type are multiples of this, and of floats of no more. */
enum { FLOAT_K = 8 };

static bool is_taken(const ptxgen_tensor *tensor)
{
    return type_of(tensor) >= 0;
}

static ptxgen_status find(const ptxgen_files *store, struct family_options *o, void *sources,
                          struct file_rows *rows, ptxgen_error *err)
{
    static const struct gguf_layer_types types = {is_taken, "a type of GGUF that is multiplied"};
    ptxgen_gguf_linear_spec *spec = option_spec(o);
    struct gguf_layer *l = sources;
    rows->most = spec->max_m ? spec->max_m : PTXGEN_GGUF_LINEAR_MAX_M;
    ptxgen_status status = gguf_layer_find(store, o, &types, l, err);
    if (status != PTXGEN_OK)
        return status;
    spec->k = l->k;
    memcpy(spec->n, l->n, sizeof spec->n);
    for (unsigned i = 0; i < l->count; i++)
        spec->w_type[i] = (uint8_t)type_of(l->weights[i]);
    status = file_rows_find(store, o, spec->k, spec->n[0], false, rows, err);
    if (status == PTXGEN_OK && rows->expect && (spec->n[1] || spec->residual || spec->bias))
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                             "--expect goes with one matrix, without bias and residual");
    if (status == PTXGEN_OK && l->norm && !option_given(o, "epsilon"))
        status =
            gguf_layer_find_epsilon(ptxgen_files_gguf(store), o->names.norm, &spec->epsilon, err);
    return status;
}

static void warn(const ptxgen_files *store, const struct family_options *o, const void *sources,
                 const struct file_rows *rows)
{
    (void)o, (void)rows;
    gguf_layer_warn(store, sources);
}

static ptxgen_status take(struct problem *p, const void *sources, const struct file_rows *rows,
                          ptxgen_error *err)
{
    const struct gguf_layer *l = sources;
    take_tensor(p, GGUF_LINEAR_AT_GAMMA, l->norm);
    gguf_layer_take(p, l, GGUF_LINEAR_AT_W, GGUF_LINEAR_AT_BIAS);
    return rows->expect ? gguf_layer_keep_input(p, rows->input, l->k, err) : PTXGEN_OK;
}

/* Any matrix but those that rmsnorm_q4k recognises, which is faster where it applies. */
bool gguf_linear_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                           struct family_options *o, struct recognised_names *names)
{
    ptxgen_gguf_linear_spec *spec = option_spec(o);
    if (!is_taken(weights) || weights->ndim != 2 || weights->shape[1] % FLOAT_K != 0 ||
        rmsnorm_q4k_recognise(files, weights, o, names))
        return false;
    o->names.tensors = weights->name;
    if (gguf_layer_norm_of(files, weights->name, names->norm, sizeof names->norm)) {
        o->names.norm = names->norm;
        spec->norm = PTXGEN_GGUF_LINEAR_RMSNORM;
    }
    return true;
}

const struct family_file gguf_linear_file = {PTXGEN_FILES_GGUF, sizeof(struct gguf_layer), find,
                                             warn, take};
