/* SPDX-License-Identifier: Apache-2.0 */
#include "gguf_layer.h"

#include "../../files/printable.h"
#include "../unused_tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

struct name_list {
    char *copy;
    const char *names[GGUF_LAYER_MATRICES];
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
        if (list->count == GGUF_LAYER_MATRICES)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s %s: at most %d names",
                               option, text, GGUF_LAYER_MATRICES);
        list->names[list->count++] = name;
    }
    if (!list->count)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s: no name is given", option);
    return PTXGEN_OK;
}

/* ---- tensors ---- */

static ptxgen_status require_weights(const ptxgen_files *store, const char *name,
                                     const struct gguf_layer_types *types,
                                     const ptxgen_tensor **tensor, ptxgen_error *err)
{
    ptxgen_status status = ptxgen_files_require(store, name, tensor, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_tensor *t = *tensor;
    if (!types->takes(t) || t->ndim != 2 || t->shape[0] > UINT32_MAX || t->shape[1] > UINT32_MAX)
        return ptxgen_fail(
            err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is %s %s; expected a matrix in %s", name,
            ptxgen_dtype_find(t->dtype)->name, tensor_shape_text(t).text, types->expected);
    return PTXGEN_OK;
}

static ptxgen_status find_weights(const ptxgen_files *store, const struct family_options *o,
                                  const struct gguf_layer_types *types, struct gguf_layer *l,
                                  ptxgen_error *err)
{
    struct name_list names;
    ptxgen_status status = split_names("--tensor", o->names.tensors, &names, err);
    for (unsigned i = 0; status == PTXGEN_OK && i < names.count; i++) {
        status = require_weights(store, names.names[i], types, &l->weights[i], err);
        if (status == PTXGEN_OK && i && l->weights[i]->shape[1] != l->weights[0]->shape[1])
            status =
                ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                            "%s has %llu columns and %s has %llu; matrices of one launch share x",
                            names.names[i], (unsigned long long)l->weights[i]->shape[1],
                            names.names[0], (unsigned long long)l->weights[0]->shape[1]);
        if (status == PTXGEN_OK)
            l->n[l->count++] = (uint32_t)l->weights[i]->shape[0];
    }
    if (status == PTXGEN_OK)
        l->k = (uint32_t)l->weights[0]->shape[1];
    free(names.copy);
    return status;
}

static ptxgen_status find_bias(const ptxgen_files *store, const struct family_options *o,
                               struct gguf_layer *l, ptxgen_error *err)
{
    if (!o->names.bias)
        return PTXGEN_OK;
    struct name_list names;
    uint64_t rows;
    ptxgen_status status = split_names("--bias-tensor", o->names.bias, &names, err);
    if (status == PTXGEN_OK && names.count != l->count)
        status =
            ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                        "--bias-tensor names %u tensors for %u matrices", names.count, l->count);
    for (unsigned i = 0; status == PTXGEN_OK && i < names.count; i++)
        status = require_floats(store, names.names[i], l->n[i], &rows, &l->bias[i], err);
    free(names.copy);
    return status;
}

ptxgen_status gguf_layer_find(const ptxgen_files *store, const struct family_options *o,
                              const struct gguf_layer_types *types, struct gguf_layer *l,
                              ptxgen_error *err)
{
    uint64_t one;
    ptxgen_status status = find_weights(store, o, types, l, err);
    if (status == PTXGEN_OK)
        status = find_bias(store, o, l, err);
    if (status == PTXGEN_OK && o->names.norm)
        status = require_floats(store, o->names.norm, l->k, &one, &l->norm, err);
    return status;
}

/* ---- epsilon ---- */

static const char epsilon_suffix[] = ".attention.layer_norm_rms_epsilon";

static bool is_epsilon(const char *key)
{
    size_t length = strlen(key), tail = sizeof epsilon_suffix - 1;
    return length >= tail && !strcmp(key + length - tail, epsilon_suffix);
}

/* The keys that end so: how many, and the first two. */
static unsigned list_epsilons(const ptxgen_gguf *gguf, const char *keys[2])
{
    unsigned count = 0;
    for (size_t i = 0; i < ptxgen_gguf_key_count(gguf); i++)
        if (is_epsilon(ptxgen_gguf_key(gguf, i)) && count++ < 2)
            keys[count - 1] = ptxgen_gguf_key(gguf, i);
    return count;
}

/* Towers for images and sounds have norms, and epsilons, of their own. */
static bool is_of_a_tower(const char *tensor)
{
    return !strncmp(tensor, "v.", 2) || !strncmp(tensor, "a.", 2) || !strncmp(tensor, "mm.", 3);
}

/* "ARCHITECTURE.attention.layer_norm_rms_epsilon" where the file has that, else NULL. */
static const char *epsilon_of_text(const ptxgen_gguf *gguf)
{
    ptxgen_gguf_string name;
    if (ptxgen_gguf_get_string(gguf, "general.architecture", &name, NULL) != PTXGEN_OK)
        return NULL;
    for (size_t i = 0; i < ptxgen_gguf_key_count(gguf); i++) {
        const char *key = ptxgen_gguf_key(gguf, i);
        if (is_epsilon(key) && strlen(key) == name.length + sizeof epsilon_suffix - 1 &&
            !memcmp(key, name.bytes, name.length))
            return key;
    }
    return NULL;
}

ptxgen_status gguf_layer_find_epsilon(const ptxgen_gguf *gguf, const char *norm, float *epsilon,
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
    if (!key && !ptxgen_gguf_find(gguf, "general.architecture") && count == 1)
        key = keys[0];
    if (key)
        return ptxgen_gguf_get_f32(gguf, key, epsilon, err);
    return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                       "the file has %s%s%s%s, but none for its general.architecture; say "
                       "--epsilon",
                       printable(keys[0], strlen(keys[0])).text, count > 1 ? " and " : "",
                       count > 1 ? printable(keys[1], strlen(keys[1])).text : "",
                       count > 2 ? " and more" : "");
}

/* ---- the problem ---- */

void gguf_layer_warn(const ptxgen_files *store, const struct gguf_layer *l)
{
    static const char suffix[] = ".weight";
    for (unsigned i = 0; i < l->count; i++) {
        const char *name = l->weights[i]->name;
        size_t length = strlen(name), tail = sizeof suffix - 1;
        char prefix[128];
        const ptxgen_tensor *const used[] = {l->weights[i], l->bias[i]};
        if (length <= tail || length >= sizeof prefix || strcmp(name + length - tail, suffix) != 0)
            continue;
        snprintf(prefix, sizeof prefix, "%.*s", (int)(length - tail), name);
        warn_of_unused_tensors(store, prefix, used, 2);
    }
}

void gguf_layer_take(struct problem *p, const struct gguf_layer *l, unsigned first_w,
                     unsigned first_bias)
{
    for (unsigned i = 0; i < l->count; i++) {
        const struct buffer *w = &p->buffers[first_w + i];
        memcpy(w->host, l->weights[i]->data, w->bytes);
        take_tensor(p, first_bias + i, l->bias[i]);
    }
}

ptxgen_status gguf_layer_keep_input(struct problem *p, const ptxgen_tensor *input, uint32_t k,
                                    ptxgen_error *err)
{
    size_t count = p->m * (size_t)k;
    float *x = p->own = calloc(count + 1, sizeof *x);
    if (!x)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the file's tensors");
    for (size_t i = 0; i < count; i++)
        x[i] = (float)tensor_float(input, i);
    return PTXGEN_OK;
}

/* ---- recognising ---- */

/* Matrices that have a norm's output as their input, as converters to GGUF name both. */
static const struct {
    const char *weight, *norm;
} normed[] = {
    {"attn_q.weight", "attn_norm.weight"},   {"attn_k.weight", "attn_norm.weight"},
    {"attn_v.weight", "attn_norm.weight"},   {"attn_qkv.weight", "attn_norm.weight"},
    {"ffn_gate.weight", "ffn_norm.weight"},  {"ffn_up.weight", "ffn_norm.weight"},
    {"output.weight", "output_norm.weight"},
};

bool gguf_layer_norm_of(const ptxgen_files *files, const char *weight, char *norm, size_t size)
{
    size_t length = strlen(weight);
    for (size_t i = 0; i < sizeof normed / sizeof *normed; i++) {
        size_t tail = strlen(normed[i].weight), stem = length - tail;
        if (length < tail || strcmp(weight + stem, normed[i].weight) != 0 ||
            (stem && weight[stem - 1] != '.'))
            continue;
        snprintf(norm, size, "%.*s%s", (int)stem, weight, normed[i].norm);
        return ptxgen_tensor_list_find(ptxgen_files_tensors(files), norm);
    }
    return false;
}
