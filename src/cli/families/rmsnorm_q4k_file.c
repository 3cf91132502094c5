/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of rmsnorm_q4k from a GGUF file. */
#include "rmsnorm_q4k.h"

#include "../float_tensor.h"
#include "../layer_parts.h"
#include "../printable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

struct name_list {
    char *copy;
    const char *names[MATRICES];
    unsigned count;
};

/* Splits "a,b,c". */
static ptxgen_status split_names(const char *option, const char *text, struct name_list *list,
                                 ptxgen_error *err)
{
    *list = (struct name_list){.copy = strdup(text)};
    if (!list->copy)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %s", option);
    char *rest = NULL;
    for (char *name = strtok_r(list->copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (list->count == MATRICES)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s %s: at most %d names",
                               option, text, MATRICES);
        list->names[list->count++] = name;
    }
    if (!list->count)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s: no name is given", option);
    return PTXGEN_OK;
}

/* ---- tensors ---- */

static ptxgen_status require_weights(const struct tensor_store *store, const char *name,
                                     const struct named_tensor **tensor, ptxgen_error *err)
{
    ptxgen_status status = tensor_store_require(store, name, tensor, err);
    if (status != PTXGEN_OK)
        return status;
    const struct named_tensor *t = *tensor;
    if (t->dtype != TENSOR_Q4_K || t->ndim != 2 || t->shape[0] > UINT32_MAX ||
        t->shape[1] > UINT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s is %s %s; expected a matrix in Q4_K", name,
                           tensor_dtype_info(t->dtype)->name, tensor_shape_text(t).text);
    return PTXGEN_OK;
}

/* ---- epsilon ---- */

static const char epsilon_suffix[] = ".attention.layer_norm_rms_epsilon";

static bool is_epsilon(const char *key)
{
    size_t length = strlen(key), tail = sizeof epsilon_suffix - 1;
    return length >= tail && !strcmp(key + length - tail, epsilon_suffix);
}

/* The keys that end so: how many, and the first two. */
static unsigned list_epsilons(const struct gguf_file *gguf, const char *keys[2])
{
    unsigned count = 0;
    for (size_t i = 0; i < gguf_key_count(gguf); i++)
        if (is_epsilon(gguf_key(gguf, i)) && count++ < 2)
            keys[count - 1] = gguf_key(gguf, i);
    return count;
}

/* Towers for images and sounds have norms, and epsilons, of their own. */
static bool is_of_a_tower(const char *tensor)
{
    return !strncmp(tensor, "v.", 2) || !strncmp(tensor, "a.", 2) || !strncmp(tensor, "mm.", 3);
}

/* "ARCHITECTURE.attention.layer_norm_rms_epsilon" where the file has that, else NULL. */
static const char *epsilon_of_text(const struct gguf_file *gguf)
{
    struct gguf_string name;
    if (gguf_get_string(gguf, "general.architecture", &name, NULL) != PTXGEN_OK)
        return NULL;
    for (size_t i = 0; i < gguf_key_count(gguf); i++) {
        const char *key = gguf_key(gguf, i);
        if (is_epsilon(key) && strlen(key) == name.length + sizeof epsilon_suffix - 1 &&
            !memcmp(key, name.bytes, name.length))
            return key;
    }
    return NULL;
}

/*
 * Of the model of text, which general.architecture names; of a file without that key, the only one
 * that there is. What is left is for the user to say.
 */
static ptxgen_status find_epsilon(const struct gguf_file *gguf, const char *norm, float *epsilon,
                                  ptxgen_error *err)
{
    const char *keys[2] = {NULL, NULL}, *key = epsilon_of_text(gguf);
    unsigned count = list_epsilons(gguf, keys);
    if (!count)
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "the file has no key *%s; say --epsilon",
                           epsilon_suffix);
    if (count > 1 && is_of_a_tower(norm))
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                           "the file has %u keys *%s, and %s is not the text model's; say "
                           "--epsilon",
                           count, epsilon_suffix, norm);
    if (!key && !gguf_find(gguf, "general.architecture") && count == 1)
        key = keys[0];
    if (key)
        return gguf_get_f32(gguf, key, epsilon, err);
    return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                       "the file has %s%s%s%s, but none for its general.architecture; say "
                       "--epsilon",
                       printable(keys[0], strlen(keys[0])).text, count > 1 ? " and " : "",
                       count > 1 ? printable(keys[1], strlen(keys[1])).text : "",
                       count > 2 ? " and more" : "");
}

/* ---- the problem ---- */

struct sources {
    const struct named_tensor *weights[MATRICES], *bias[MATRICES], *norm, *input, *expect;
    uint64_t input_rows;
};

static ptxgen_status find_weights(const struct tensor_store *store,
                                  const struct rmsnorm_q4k_options *o,
                                  ptxgen_rmsnorm_q4k_spec *spec, struct sources *s,
                                  ptxgen_error *err)
{
    struct name_list names;
    ptxgen_status status = split_names("--tensor", o->tensors, &names, err);
    for (unsigned i = 0; status == PTXGEN_OK && i < names.count; i++) {
        status = require_weights(store, names.names[i], &s->weights[i], err);
        if (status == PTXGEN_OK && i && s->weights[i]->shape[1] != s->weights[0]->shape[1])
            status =
                ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                            "%s has %llu columns and %s has %llu; matrices of one launch share x",
                            names.names[i], (unsigned long long)s->weights[i]->shape[1],
                            names.names[0], (unsigned long long)s->weights[0]->shape[1]);
        if (status == PTXGEN_OK)
            spec->n[i] = (uint32_t)s->weights[i]->shape[0];
    }
    if (status == PTXGEN_OK)
        spec->k = (uint32_t)s->weights[0]->shape[1];
    free(names.copy);
    return status;
}

static ptxgen_status find_bias(const struct tensor_store *store,
                               const struct rmsnorm_q4k_options *o,
                               const ptxgen_rmsnorm_q4k_spec *spec, struct sources *s,
                               ptxgen_error *err)
{
    if (!o->bias)
        return PTXGEN_OK;
    struct name_list names;
    uint64_t rows;
    ptxgen_status status = split_names("--bias-tensor", o->bias, &names, err);
    if (status == PTXGEN_OK && names.count != rmsnorm_q4k_matrices(spec))
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                             "--bias-tensor names %u tensors for %u matrices", names.count,
                             rmsnorm_q4k_matrices(spec));
    for (unsigned i = 0; status == PTXGEN_OK && i < names.count; i++)
        status =
            tensor_store_require_floats(store, names.names[i], spec->n[i], &rows, &s->bias[i], err);
    free(names.copy);
    return status;
}

static ptxgen_status find_tensors(const struct tensor_store *store,
                                  const struct rmsnorm_q4k_options *o,
                                  ptxgen_rmsnorm_q4k_spec *spec, struct sources *s,
                                  ptxgen_error *err)
{
    uint64_t rows;
    ptxgen_status status = find_weights(store, o, spec, s, err);
    if (status == PTXGEN_OK)
        status = find_bias(store, o, spec, s, err);
    if (status == PTXGEN_OK)
        status = tensor_store_require_floats(store, o->norm, spec->k, &rows, &s->norm, err);
    if (status == PTXGEN_OK && o->input)
        status =
            tensor_store_require_floats(store, o->input, spec->k, &s->input_rows, &s->input, err);
    if (status == PTXGEN_OK && o->expect) {
        status =
            expected_find(store, o->expect, o->input, spec->n[0], s->input_rows, &s->expect, err);
        if (status == PTXGEN_OK && (spec->n[1] || spec->residual || spec->bias))
            status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                                 "--expect goes with one matrix, without bias and residual");
    }
    return status;
}

static ptxgen_status fill_activations(struct rmsnorm_q4k_problem *p, const struct sources *s,
                                      ptxgen_error *err)
{
    const ptxgen_rmsnorm_q4k_spec *spec = &p->plan.spec;
    size_t k = spec->k;
    if (!s->input)
        return PTXGEN_OK;
    if (s->expect) {
        p->exact_x = calloc(p->m * k + 1, sizeof *p->exact_x);
        if (!p->exact_x)
            return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the file's tensors");
    }
    for (size_t m = 0; m < p->m; m++)
        for (size_t i = 0; i < k; i++) {
            double value = tensor_float(s->input, m * k + i);
            ptxgen_element_store((ptxgen_element)spec->x_type, p->x.host, m * p->x_stride + i,
                                 value);
            if (p->exact_x)
                p->exact_x[m * k + i] = value;
        }
    return expected_copy(s->expect, p->m, spec->n[0], &p->expected, err);
}

static ptxgen_status fill(struct rmsnorm_q4k_problem *p, const struct sources *s, uint64_t seed,
                          ptxgen_error *err)
{
    struct random r = random_start(seed);
    rmsnorm_q4k_fill(p, &r);
    float *gamma = (float *)(void *)p->gamma.host;
    for (size_t i = 0; i < p->plan.spec.k; i++)
        gamma[i] = (float)tensor_float(s->norm, i);
    for (unsigned i = 0; i < rmsnorm_q4k_matrices(&p->plan.spec); i++) {
        memcpy(p->w[i].host, s->weights[i]->data, p->w[i].bytes);
        float *bias = (float *)(void *)p->bias[i].host;
        for (size_t j = 0; s->bias[i] && j < p->plan.spec.n[i]; j++)
            bias[j] = (float)tensor_float(s->bias[i], j);
    }
    return fill_activations(p, s, err);
}

/* Of a matrix NAME.weight: what else is called NAME.…, as a bias that was not asked for. */
static void warn_of_unused(const struct tensor_store *store, const struct sources *s)
{
    static const char suffix[] = ".weight";
    for (unsigned i = 0; i < MATRICES && s->weights[i]; i++) {
        const char *name = s->weights[i]->name;
        size_t length = strlen(name), tail = sizeof suffix - 1;
        char prefix[128];
        const struct named_tensor *const used[] = {s->weights[i], s->bias[i]};
        if (length <= tail || length >= sizeof prefix || strcmp(name + length - tail, suffix) != 0)
            continue;
        snprintf(prefix, sizeof prefix, "%.*s", (int)(length - tail), name);
        layer_warn_of_unused(store, prefix, used, 2);
    }
}

static uint32_t most_tokens(const ptxgen_rmsnorm_q4k_spec *spec)
{
    return spec->max_m ? spec->max_m : PTXGEN_RMSNORM_Q4K_MAX_M;
}

static ptxgen_status read_from(const struct tensor_store *store, struct rmsnorm_q4k_problem *p,
                               const struct rmsnorm_q4k_options *o,
                               const struct run_request *request, struct device *device,
                               ptxgen_error *err)
{
    ptxgen_rmsnorm_q4k_spec spec = o->spec;
    struct sources sources = {0};
    ptxgen_status status = find_tensors(store, o, &spec, &sources, err);
    if (status == PTXGEN_OK && !o->epsilon_given)
        status = find_epsilon(tensor_store_gguf(store), o->norm, &spec.epsilon, err);
    if (status != PTXGEN_OK)
        return status;
    uint32_t m = request->m;
    if (sources.input)
        status = input_rows_choose(request, "m", sources.input, sources.input_rows,
                                   most_tokens(&spec), &m, err);
    if (status != PTXGEN_OK)
        return status;
    warn_of_unused(store, &sources);
    const struct rmsnorm_q4k_layout packed = {0};
    status = rmsnorm_q4k_allocate(p, &spec, m, &packed, device, err);
    if (status == PTXGEN_OK) {
        status = fill(p, &sources, request->seed, err);
        if (status != PTXGEN_OK)
            rmsnorm_q4k_release(p);
    }
    return status;
}

ptxgen_status rmsnorm_q4k_read(struct rmsnorm_q4k_problem *p, const struct rmsnorm_q4k_options *o,
                               const struct run_request *request, struct device *device,
                               ptxgen_error *err)
{
    struct tensor_store *store;
    ptxgen_status status = tensor_store_open_as(TENSOR_GGUF, o->gguf, &store, err);
    if (status != PTXGEN_OK)
        return status;
    status = read_from(store, p, o, request, device, err);
    tensor_store_close(store);
    return status;
}
