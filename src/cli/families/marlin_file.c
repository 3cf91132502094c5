/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of marlin from a safetensors file. */
#include "marlin.h"

#include "../float_tensor.h"
#include "../layer_parts.h"
#include "marlin_layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the file gives; NULL where it does not. */
struct sources {
    struct marlin_weights weights;
    const struct named_tensor *bias, *up_bias, *input, *expect;
    uint64_t input_rows;
};

/* ---- the spec ---- */

/* The file's spec, with what the options add to it. */
static ptxgen_status find_packed_weights(const struct tensor_store *store,
                                         const struct marlin_options *o, ptxgen_marlin_spec *spec,
                                         struct sources *s, ptxgen_error *err)
{
    ptxgen_marlin_spec found = *spec;
    if (o->up_layer || o->format || o->group_size_given || o->type_given)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is packed: --up-layer, --format, --group-size and --type do not go "
                           "with it",
                           o->layer);
    ptxgen_status status = layer_find_packed(store, o->layer, &found, &s->weights.packed, err);
    spec->k = found.k;
    spec->n = found.n;
    spec->group_size = found.group_size;
    spec->type = found.type;
    spec->zeros = found.zeros;
    spec->act_order = found.act_order;
    return status;
}

static ptxgen_status find_weights(const struct tensor_store *store, const struct marlin_options *o,
                                  ptxgen_marlin_spec *spec, struct sources *s, ptxgen_error *err)
{
    if (layer_is_packed(store, o->layer))
        return find_packed_weights(store, o, spec, s, err);
    const char *const layers[] = {o->layer, o->up_layer};
    const struct layer_choice choice = {o->format, o->group_size_given ? spec->group_size : 0};
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; status == PTXGEN_OK && i < 2 && layers[i]; i++) {
        ptxgen_w4_info info;
        ptxgen_w4_checkpoint *c = &s->weights.checkpoints[s->weights.count++];
        status = layer_find(store, layers[i], &choice, c, err);
        if (status == PTXGEN_OK)
            status = ptxgen_w4_describe(c, &info, err);
        if (status != PTXGEN_OK)
            return status;
        spec->k = (uint32_t)info.k;
        spec->n = (uint32_t)info.n;
        spec->group_size = info.groups == 1 ? PTXGEN_W4_PER_CHANNEL : (int32_t)info.group_size;
        spec->zeros |= !info.symmetric;
        spec->act_order |= info.act_order;
        if (!o->type_given && info.scale_type == PTXGEN_BF16)
            spec->type = PTXGEN_BF16;
    }
    return status;
}

static ptxgen_status require_bias(const struct tensor_store *store, const char *layer, uint32_t n,
                                  const struct named_tensor **bias, ptxgen_error *err)
{
    char name[1024];
    uint64_t rows;
    snprintf(name, sizeof name, "%s.bias", layer);
    return tensor_store_require_floats(store, name, n, &rows, bias, err);
}

/* A layer that has a bias is run with it. */
static ptxgen_status find_bias(const struct tensor_store *store, const struct marlin_options *o,
                               ptxgen_marlin_spec *spec, struct sources *s, ptxgen_error *err)
{
    if (!spec->bias && !layer_tensor(store, o->layer, "bias"))
        return PTXGEN_OK;
    spec->bias = 1;
    ptxgen_status status = require_bias(store, o->layer, spec->n, &s->bias, err);
    if (status == PTXGEN_OK && o->up_layer)
        status = require_bias(store, o->up_layer, spec->n, &s->up_bias, err);
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
                                 ptxgen_error *err)
{
    ptxgen_element type = (ptxgen_element)spec->type;
    for (size_t i = 0; i < s->input_rows * spec->k; i++)
        if (!holds_exactly(type, tensor_float(s->input, i)))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "--expect goes with activations that --type holds exactly, but "
                               "element %zu of %s is %.9g",
                               i, s->input->name, tensor_float(s->input, i));
    const ptxgen_w4_tensor *scales = &s->weights.checkpoints[0].scales; /* none where packed */
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

static ptxgen_status find_expected(const struct tensor_store *store, const struct marlin_options *o,
                                   const ptxgen_marlin_spec *spec, struct sources *s,
                                   ptxgen_error *err)
{
    ptxgen_status status =
        expected_find(store, o->expect, o->input, spec->n, s->input_rows, &s->expect, err);
    if (status != PTXGEN_OK)
        return status;
    if (spec->residual)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "--expect does not go with --residual, which is random");
    return check_exact(spec, s, err);
}

static ptxgen_status find_activations(const struct tensor_store *store,
                                      const struct marlin_options *o,
                                      const ptxgen_marlin_spec *spec, struct sources *s,
                                      ptxgen_error *err)
{
    if (!o->input)
        return PTXGEN_OK;
    ptxgen_status status =
        tensor_store_require_floats(store, o->input, spec->k, &s->input_rows, &s->input, err);
    return status == PTXGEN_OK && o->expect ? find_expected(store, o, spec, s, err) : status;
}

/* ---- the problem ---- */

static void fill_bias(const struct named_tensor *from, ptxgen_element type, struct buffer *to,
                      uint32_t n)
{
    for (size_t i = 0; from && i < n; i++)
        ptxgen_element_store(type, to->host, i, tensor_float(from, i));
}

static ptxgen_status fill_activations(struct marlin_problem *p, const struct sources *s,
                                      ptxgen_error *err)
{
    size_t k = p->plan.spec.k;
    for (size_t m = 0; s->input && m < p->m; m++)
        for (size_t i = 0; i < k; i++)
            ptxgen_element_store((ptxgen_element)p->plan.spec.type, p->x.host, m * p->x_stride + i,
                                 tensor_float(s->input, m * k + i));
    return expected_copy(s->expect, p->m, p->plan.spec.n, &p->expected, err);
}

static ptxgen_status fill(struct marlin_problem *p, const struct sources *s, uint64_t seed,
                          ptxgen_error *err)
{
    struct random r = random_start(seed);
    ptxgen_element type = (ptxgen_element)p->plan.spec.type;
    marlin_fill(p, &r);
    fill_bias(s->bias, type, &p->bias, p->plan.spec.n);
    fill_bias(s->up_bias, type, &p->up_bias, p->plan.spec.n);
    return fill_activations(p, s, err);
}

static void warn_of_unused(const struct tensor_store *store, const struct marlin_options *o,
                           const struct sources *s)
{
    const char *const layers[] = {o->layer, o->up_layer};
    for (int i = 0; i < 2 && layers[i]; i++) {
        const struct named_tensor *used[LAYER_TENSORS + 4] = {NULL};
        size_t count = LAYER_TENSORS;
        layer_list_tensors(store, layers[i], s->weights.checkpoints[i].format, used);
        used[count++] = s->bias;
        used[count++] = s->up_bias;
        used[count++] = s->input;
        used[count++] = s->expect;
        layer_warn_of_unused(store, layers[i], used, count);
    }
}

static ptxgen_status read_from(const struct tensor_store *store, struct marlin_problem *p,
                               const struct marlin_options *o, const struct run_request *request,
                               struct device *device, ptxgen_error *err)
{
    struct marlin_options options = *o;
    struct sources s = {.bias = NULL};
    ptxgen_status status = find_weights(store, o, &options.spec, &s, err);
    if (status == PTXGEN_OK)
        status = find_bias(store, o, &options.spec, &s, err);
    if (status == PTXGEN_OK)
        status = find_activations(store, o, &options.spec, &s, err);
    uint32_t m = request->m;
    if (status == PTXGEN_OK && s.input)
        status = input_rows_choose(request, "m", s.input, s.input_rows, UINT32_MAX, &m, err);
    if (status != PTXGEN_OK)
        return status;
    warn_of_unused(store, o, &s);
    const struct marlin_layout packed = {0};
    status = marlin_allocate(p, &options, m, &packed, &s.weights, device, err);
    if (status == PTXGEN_OK) {
        status = fill(p, &s, request->seed, err);
        if (status != PTXGEN_OK)
            marlin_release(p);
    }
    return status;
}

ptxgen_status marlin_read(struct marlin_problem *p, const struct marlin_options *o,
                          const struct run_request *request, struct device *device,
                          ptxgen_error *err)
{
    struct tensor_store *store;
    ptxgen_status status = tensor_store_open_as(TENSOR_SAFETENSORS, o->safetensors, &store, err);
    if (status != PTXGEN_OK)
        return status;
    status = read_from(store, p, o, request, device, err);
    tensor_store_close(store);
    return status;
}
