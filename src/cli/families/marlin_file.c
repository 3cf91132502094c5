/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of marlin from a safetensors file. */
#include "files.h"

#include "../../harness/marlin.h"
#include "../unused_tensors.h"
#include "marlin_layer.h"

#include <string.h>

/* What the file gives; NULL where it does not. */
struct sources {
    ptxgen_layer layers[2]; /* of the weights, or of gate and up */
    ptxgen_w4_checkpoint checkpoints[2];
    unsigned count; /* of checkpoints; 0: packed */
    ptxgen_marlin_packed packed;
    const ptxgen_tensor *bias, *up_bias;
};

/* ---- the spec ---- */

/* The file's spec, with what the options add to it. */
static ptxgen_status find_packed_weights(const ptxgen_files *store, const struct family_options *o,
                                         ptxgen_marlin_spec *spec, struct sources *s,
                                         ptxgen_error *err)
{
    if (o->names.up_layer || o->names.format || option_given(o, "group-size") ||
        option_given(o, "type"))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is packed: --up-layer, --format, --group-size and --type do not go "
                           "with it",
                           o->names.layer);
    const struct layer_choice any = {NULL, 0};
    ptxgen_status status = marlin_layer_find(store, o->names.layer, &any, &s->layers[0], err);
    return status == PTXGEN_OK
               ? ptxgen_marlin_packed_from_layer(&s->layers[0], spec, &s->packed, err)
               : status;
}

static ptxgen_status find_weights(const ptxgen_files *store, const struct family_options *o,
                                  ptxgen_marlin_spec *spec, struct sources *s, ptxgen_error *err)
{
    if (marlin_layer_is_packed(store, o->names.layer))
        return find_packed_weights(store, o, spec, s, err);
    const char *const layers[] = {o->names.layer, o->names.up_layer};
    const struct layer_choice choice = {o->names.format,
                                        option_given(o, "group-size") ? spec->group_size : 0};
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; status == PTXGEN_OK && i < 2 && layers[i]; i++) {
        ptxgen_w4_info info;
        status = marlin_layer_find(store, layers[i], &choice, &s->layers[i], err);
        if (status == PTXGEN_OK)
            status = marlin_layer_describe(&s->layers[i], &s->checkpoints[s->count++], &info, err);
        if (status != PTXGEN_OK)
            return status;
        marlin_layer_complete_spec(&info, option_given(o, "type"), spec);
    }
    return status;
}

/* A layer that has a bias is run with it, and so is the other of a pair. */
static ptxgen_status find_bias(const ptxgen_files *store, const struct family_options *o,
                               ptxgen_marlin_spec *spec, struct sources *s, ptxgen_error *err)
{
    s->bias = s->layers[0].parts[PTXGEN_LAYER_BIAS];
    s->up_bias = s->layers[1].parts[PTXGEN_LAYER_BIAS];
    spec->bias |= s->bias != NULL;
    ptxgen_status status = PTXGEN_OK;
    if (spec->bias && !s->bias)
        status = layer_require_part(store, o->names.layer, "bias", &s->bias, err);
    if (status == PTXGEN_OK && spec->bias && o->names.up_layer && !s->up_bias)
        status = layer_require_part(store, o->names.up_layer, "bias", &s->up_bias, err);
    return status;
}

/* ---- activations ---- */

static bool holds_exactly(ptxgen_element type, double value)
{
    uint16_t stored;
    ptxgen_element_store(type, &stored, 0, value);
    return ptxgen_element_load(type, &stored, 0) == value;
}

/* The file's output was computed from its own numbers, so ours must be the same. */
static ptxgen_status check_exact(const ptxgen_marlin_spec *spec, const struct sources *s,
                                 const struct file_rows *rows, ptxgen_error *err)
{
    ptxgen_element type = (ptxgen_element)spec->type;
    for (size_t i = 0; i < rows->count * spec->k; i++)
        if (!holds_exactly(type, tensor_float(rows->input, i)))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "--expect goes with activations that --type holds exactly, but "
                               "element %zu of %s is %.9g",
                               i, rows->input->name, tensor_float(rows->input, i));
    const ptxgen_w4_tensor *scales = &s->checkpoints[0].scales; /* none where packed */
    for (size_t i = 0; i < scales->shape[0] * scales->shape[1]; i++) {
        double scale = ptxgen_element_load((ptxgen_element)scales->dtype, scales->data, i);
        if (!holds_exactly(type, scale))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "--expect goes with scales that --type holds exactly, but number "
                               "%zu is %.9g",
                               i, scale);
    }
    return PTXGEN_OK;
}

static ptxgen_status find(const ptxgen_files *store, struct family_options *o, void *sources,
                          struct file_rows *rows, ptxgen_error *err)
{
    ptxgen_marlin_spec *spec = option_spec(o);
    struct sources *s = sources;
    ptxgen_status status = find_weights(store, o, spec, s, err);
    if (status == PTXGEN_OK)
        status = find_bias(store, o, spec, s, err);
    if (status == PTXGEN_OK)
        status = file_rows_find(store, o, spec->k, spec->n, spec->residual, rows, err);
    return status == PTXGEN_OK && rows->expect ? check_exact(spec, s, rows, err) : status;
}

static void warn(const ptxgen_files *store, const struct family_options *o, const void *sources,
                 const struct file_rows *rows)
{
    const struct sources *s = sources;
    const char *const layers[] = {o->names.layer, o->names.up_layer};
    for (int i = 0; i < 2 && layers[i]; i++) {
        const ptxgen_tensor *used[PTXGEN_LAYER_PARTS + 2] = {rows->input, rows->expect};
        memcpy(used + 2, s->layers[i].parts, sizeof s->layers[i].parts);
        warn_of_unused_tensors(store, layers[i], used, sizeof used / sizeof *used);
    }
}

static ptxgen_status take(struct problem *p, const void *sources, const struct file_rows *rows,
                          ptxgen_error *err)
{
    const struct sources *s = sources;
    (void)rows;
    take_tensor(p, MARLIN_AT_BIAS, s->bias);
    take_tensor(p, MARLIN_AT_UP_BIAS, s->up_bias);
    return s->count ? marlin_pack_weights(p, &s->checkpoints[0],
                                          s->count == 2 ? &s->checkpoints[1] : NULL, err)
                    : marlin_copy_weights(p, &s->packed, err);
}

bool marlin_recognise(const ptxgen_files *files, const ptxgen_tensor *weights,
                      struct family_options *o, struct recognised_names *names)
{
    o->names.layer = names->layer;
    return ptxgen_files_layer_of(files, weights, names->layer, sizeof names->layer) ==
           PTXGEN_LAYER_W4;
}

const struct family_file marlin_file = {PTXGEN_FILES_SAFETENSORS, sizeof(struct sources), find,
                                        warn, take};
