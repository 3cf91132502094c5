/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of w8a8 from a safetensors file, whose layers <ptxgen/layer.h> describes. */
#include "../../harness/w8a8.h"

#include "../unused_tensors.h"
#include "files.h"

#include <string.h>

/* ---- finding ---- */

/* The type of the codes is that of the weights, or with F8_E5M2 e4m3. */
static ptxgen_status find_codes(const ptxgen_tensor *w, ptxgen_w8a8_spec *spec, ptxgen_error *err)
{
    bool floats = w->dtype != PTXGEN_DTYPE_I8;
    if (!floats && spec->codes == PTXGEN_W8A8_E4M3)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is I8; with --codes e4m3 weights are F8_E4M3 or F8_E5M2", w->name);
    if (floats && (spec->q_min || spec->q_max))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s; a range as of --codes is for I8", w->name,
                           ptxgen_dtype_find(w->dtype)->name);
    if (!floats)
        return PTXGEN_OK;
    spec->codes = PTXGEN_W8A8_E4M3;
    spec->w_codes = w->dtype == PTXGEN_DTYPE_F8_E5M2 ? PTXGEN_W8A8_E5M2 : 0;
    return PTXGEN_OK;
}

/* What the layer says of the spec, and what the options ask of the layer. */
static ptxgen_status complete_spec(const ptxgen_files *store, const char *name, ptxgen_layer *l,
                                   ptxgen_w8a8_spec *spec, ptxgen_error *err)
{
    const ptxgen_tensor *w = l->parts[PTXGEN_LAYER_WEIGHT];
    const ptxgen_tensor *zero = l->parts[PTXGEN_LAYER_INPUT_ZERO];
    if (spec->epilogue)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "a file's layer is one matrix; with --swiglu weights are random");
    ptxgen_status status = find_codes(w, spec, err);
    spec->n = (uint32_t)w->shape[0];
    spec->k = (uint32_t)w->shape[1];
    if (!spec->w_stride)
        spec->w_stride = ptxgen_w8a8_stride(spec->k);
    if (l->form == PTXGEN_LAYER_BLOCKS)
        spec->group = PTXGEN_W8A8_GROUP;
    if (l->parts[PTXGEN_LAYER_INPUT_SCALE]) {
        spec->scales = PTXGEN_W8A8_TENSOR;
        if (status == PTXGEN_OK && !zero && spec->asymmetric)
            status = layer_require_part(store, name, "input_zero_point", &zero, err);
        if (zero && tensor_number(zero, 0) != 0)
            spec->asymmetric = 1;
    }
    if (status == PTXGEN_OK && spec->bias && !l->parts[PTXGEN_LAYER_BIAS])
        status = layer_require_part(store, name, "bias", &l->parts[PTXGEN_LAYER_BIAS], err);
    spec->bias |= l->parts[PTXGEN_LAYER_BIAS] != NULL;
    return status;
}

static ptxgen_status find(const ptxgen_files *store, struct family_options *o, void *sources,
                          struct file_rows *rows, ptxgen_error *err)
{
    static const ptxgen_layer_choice choice = {.kind = PTXGEN_LAYER_W8};
    ptxgen_w8a8_spec *spec = option_spec(o);
    ptxgen_layer *l = sources;
    const char *name = o->names.layer ? o->names.layer : "";
    ptxgen_status status = ptxgen_files_layer(store, name, &choice, l, err);
    if (status == PTXGEN_OK)
        status = complete_spec(store, name, l, spec, err);
    return status == PTXGEN_OK
               ? file_rows_find(store, o, spec->k, spec->n, spec->residual, rows, err)
               : status;
}

static void warn(const ptxgen_files *store, const struct family_options *o, const void *sources,
                 const struct file_rows *rows)
{
    const ptxgen_layer *l = sources;
    const ptxgen_tensor *used[PTXGEN_LAYER_PARTS + 2] = {rows->input, rows->expect};
    memcpy(used + 2, l->parts, sizeof l->parts);
    warn_of_unused_tensors(store, o->names.layer, used, sizeof used / sizeof *used);
}

static ptxgen_status take(struct problem *p, const void *sources, const struct file_rows *rows,
                          ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = p->plan;
    const ptxgen_tensor *const *parts = ((const ptxgen_layer *)sources)->parts;
    (void)rows, (void)err;
    ptxgen_w8a8_pack(s->n, s->k, parts[PTXGEN_LAYER_WEIGHT]->data, s->w_stride,
                     (int8_t *)p->buffers[W8A8_AT_W].host, NULL);
    w8a8_sum_rows(p);
    take_tensor(p, W8A8_AT_W_SCALE, parts[PTXGEN_LAYER_SCALE]);
    take_tensor(p, W8A8_AT_BIAS, parts[PTXGEN_LAYER_BIAS]);
    take_tensor(p, W8A8_AT_X_SCALE, parts[PTXGEN_LAYER_INPUT_SCALE]);
    take_tensor(p, W8A8_AT_X_ZERO, parts[PTXGEN_LAYER_INPUT_ZERO]);
    return PTXGEN_OK;
}

bool w8a8_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                    struct family_options *o, struct recognised_names *names)
{
    o->names.layer = names->layer;
    return ptxgen_files_layer_of(files, weights, names->layer, sizeof names->layer) ==
           PTXGEN_LAYER_W8;
}

const struct family_file w8a8_file = {PTXGEN_FILES_SAFETENSORS, sizeof(ptxgen_layer), find, warn,
                                      take};
