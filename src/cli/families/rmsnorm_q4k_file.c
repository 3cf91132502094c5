/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of rmsnorm_q4k from a GGUF file. */
#include "rmsnorm_q4k.h"

#include "../float_tensor.h"

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

/* The value of the one key that ends in attention.layer_norm_rms_epsilon. */
static ptxgen_status find_epsilon(const struct gguf_file *gguf, float *epsilon, ptxgen_error *err)
{
    static const char suffix[] = ".attention.layer_norm_rms_epsilon";
    for (size_t i = 0; i < gguf_key_count(gguf); i++) {
        const char *key = gguf_key(gguf, i);
        size_t length = strlen(key);
        if (length >= sizeof suffix - 1 && !strcmp(key + length - (sizeof suffix - 1), suffix))
            return gguf_get_f32(gguf, key, epsilon, err);
    }
    return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "the file has no key *%s; say --epsilon",
                       suffix);
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
        status = tensor_store_require_floats(store, o->expect, spec->n[0], &rows, &s->expect, err);
        if (status == PTXGEN_OK && rows != s->input_rows)
            status = ptxgen_fail(
                err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s has %llu rows and %s has %llu", o->expect,
                (unsigned long long)rows, o->input, (unsigned long long)s->input_rows);
        if (status == PTXGEN_OK && (spec->n[1] || spec->residual || spec->bias))
            status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                                 "--expect goes with one matrix, without bias and residual");
    }
    return status;
}

/* Tokens beyond the file's repeat them from the first on. */
static ptxgen_status fill_activations(struct rmsnorm_q4k_problem *p, const struct sources *s,
                                      ptxgen_error *err)
{
    const ptxgen_rmsnorm_q4k_spec *spec = &p->plan.spec;
    size_t k = spec->k, n = spec->n[0];
    if (!s->input)
        return PTXGEN_OK;
    if (s->expect) {
        p->exact_x = calloc(p->m * k + 1, sizeof *p->exact_x);
        p->expected = calloc(p->m * n + 1, sizeof *p->expected);
        if (!p->exact_x || !p->expected)
            return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the file's tensors");
    }
    for (size_t m = 0; m < p->m; m++) {
        size_t row = m % s->input_rows;
        for (size_t i = 0; i < k; i++) {
            double value = tensor_float(s->input, row * k + i);
            ptxgen_element_store((ptxgen_element)spec->x_type, p->x.host, m * p->x_stride + i,
                                 value);
            if (p->exact_x)
                p->exact_x[m * k + i] = value;
        }
        for (size_t i = 0; p->expected && i < n; i++)
            p->expected[m * n + i] = tensor_float(s->expect, row * n + i);
    }
    return PTXGEN_OK;
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
        memcpy(p->weights[i].host, s->weights[i]->data, p->weights[i].bytes);
        float *bias = (float *)(void *)p->bias[i].host;
        for (size_t j = 0; s->bias[i] && j < p->plan.spec.n[i]; j++)
            bias[j] = (float)tensor_float(s->bias[i], j);
    }
    return fill_activations(p, s, err);
}

static ptxgen_status read_from(const struct tensor_store *store, struct rmsnorm_q4k_problem *p,
                               const struct rmsnorm_q4k_options *o, uint32_t m, bool m_given,
                               uint64_t seed, struct device *device, ptxgen_error *err)
{
    ptxgen_rmsnorm_q4k_spec spec = o->spec;
    struct sources sources = {0};
    ptxgen_status status = find_tensors(store, o, &spec, &sources, err);
    if (status == PTXGEN_OK && !o->epsilon_given)
        status = tensor_store_gguf(store)
                     ? find_epsilon(tensor_store_gguf(store), &spec.epsilon, err)
                     : ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "%s is no GGUF file; say --epsilon",
                                   o->gguf);
    if (status != PTXGEN_OK)
        return status;
    if (!m_given && sources.input)
        m = sources.input_rows < PTXGEN_RMSNORM_Q4K_MAX_TOKENS ? (uint32_t)sources.input_rows
                                                               : PTXGEN_RMSNORM_Q4K_MAX_TOKENS;
    const struct rmsnorm_q4k_layout packed = {0};
    status = rmsnorm_q4k_allocate(p, &spec, m, &packed, device, err);
    if (status == PTXGEN_OK) {
        status = fill(p, &sources, seed, err);
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
    ptxgen_status status = tensor_store_open(o->gguf, &store, err);
    if (status != PTXGEN_OK)
        return status;
    status = read_from(store, p, o, request->m, request->m_given, request->seed, device, err);
    tensor_store_close(store);
    return status;
}
