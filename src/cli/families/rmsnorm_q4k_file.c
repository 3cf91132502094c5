/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of rmsnorm_q4k from a GGUF file. */
#include "../../harness/rmsnorm_q4k.h"

#include "gguf_layer.h"

#include <stddef.h>
#include <string.h>

/* ---- the problem ---- */

static bool is_q4_k(const ptxgen_tensor *tensor)
{
    return tensor->dtype == PTXGEN_DTYPE_Q4_K;
}

static ptxgen_status find(const ptxgen_files *store, struct family_options *o, void *sources,
                          struct file_rows *rows, ptxgen_error *err)
{
    static const struct gguf_layer_types types = {is_q4_k, "Q4_K"};
    ptxgen_rmsnorm_q4k_spec *spec = option_spec(o);
    struct gguf_layer *l = sources;
    rows->most = spec->max_m ? spec->max_m : PTXGEN_RMSNORM_Q4K_MAX_M;
    ptxgen_status status = gguf_layer_find(store, o, &types, l, err);
    if (status != PTXGEN_OK)
        return status;
    spec->k = l->k;
    memcpy(spec->n, l->n, sizeof spec->n);
    status = file_rows_find(store, o, spec->k, spec->n[0], false, rows, err);
    if (status == PTXGEN_OK && rows->expect && (spec->n[1] || spec->residual || spec->bias))
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                             "--expect goes with one matrix, without bias and residual");
    if (status == PTXGEN_OK && !option_given(o, "epsilon"))
        status = gguf_layer_find_epsilon(ptxgen_files_gguf(store), o->names.norm, &spec->epsilon,
                                         err);
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
    take_tensor(p, RMSNORM_Q4K_AT_GAMMA, l->norm);
    gguf_layer_take(p, l, RMSNORM_Q4K_AT_W, RMSNORM_Q4K_AT_BIAS);
    return rows->expect ? gguf_layer_keep_input(p, rows->input, l->k, err) : PTXGEN_OK;
}

bool rmsnorm_q4k_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                           struct family_options *o, struct recognised_names *names)
{
    if (!is_q4_k(weights) ||
        !gguf_layer_norm_of(files, weights->name, names->norm, sizeof names->norm))
        return false;
    o->names.tensors = weights->name;
    o->names.norm = names->norm;
    return true;
}

const struct family_file rmsnorm_q4k_file = {PTXGEN_FILES_GGUF, sizeof(struct gguf_layer), find,
                                             warn, take};
